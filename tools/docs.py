"""Write the generated parts of the documentation; ``--check`` only reports parts that are out of date.

Generated parts:

* in README.md and docs/*.md, the output of the commands in ``console`` blocks (lines that begin with ``$``); they run
  in a folder with the sample in ``sample/``, and ``python`` blocks with ``>>>`` are tested there as doctests;
* docs/measures.md and docs/online-metrics.md, from the registries; docs/cli.md, from ``--help``; docs/choosing.md, from
  the rules of advice; docs/api.md, from the OpenAPI description of the workbench; docs/json.md, from example answers;
* the settings of experiment engines, between ``<!-- settings of engines -->`` and ``<!-- end -->``;
* the layouts of other tools, from tests/layouts/layouts.toml, between ``<!-- layouts that are read -->`` and
  ``<!-- end -->``;
* each __init__.pyi, which declares the lazily imported names of a package for type checkers.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import choosing
from tabled import markdown_table

import judged
from judged.errors import JudgedWarning
from judged.online import catalog
from judged.online.metrics import FAMILIES, SYNONYM_ROWS
from judged.pipelines.experiments.engines import ENGINES, find_engine
from judged.pipelines.experiments.pipelines import COMMON, OPERATORS
from judged.scoring.measures.pages import page
from judged.scoring.measures.registry import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
WIDTH = "100"
_CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PYTHON = re.compile(r"^```python\n(>>>.*?)^```", re.MULTILINE | re.DOTALL)
_SETTINGS = re.compile(r"(?<=<!-- settings of engines -->\n).*?(?=<!-- end -->)", re.DOTALL)
_LAYOUTS = re.compile(r"(?<=<!-- layouts that are read -->\n).*?(?=<!-- end -->)", re.DOTALL)
_COMMANDS = (
    "evaluate", "explain", "curve", "measures", "advise", "compare", "power", "agree", "fuse", "experiment",
    "experiment plan", "experiment run", "experiment show", "slices", "matrix", "stages", "disagree", "needs", "diff",
    "review", "tradeoff", "traces", "traces check", "traces funnel", "traces failures", "traces gaps", "traces diff",
    "traces explain", "traces runs", "gate", "history", "history add", "history show", "history plot", "history bisect",
    "history compare", "change", "change review", "change rollback",
    "report", "rag", "rag check", "rag evaluate",
    "rag waterfall", "rag explain", "rag gate", "rag nuggets", "rag assign", "rag support", "rag correctness",
    "rag calibrate", "trajectories", "trajectories check", "trajectories evaluate", "trajectories compare",
    "trajectories where", "trajectories explain", "trajectories confidence", "trajectories plan",
    "trajectories conversations", "trajectories gate",
    "online", "online metrics", "online list", "online time", "online ranks", "online dwell",
    "online overview", "online queries", "online funnel", "online difference", "online abtest", "online offline",
    "online interleaving", "logs", "logs check", "logs convert", "logs draft", "clicks", "clicks models", "clicks fit",
    "clicks propensities", "clicks coec", "clicks ips", "clicks off-policy", "clicks judge", "clicks evaluate",
    "clicks against", "watch", "study", "study init", "study check", "study plan", "study links", "study run",
    "study export", "study report", "pool", "labels", "labels new", "labels judges", "labels tasks", "labels status",
    "labels import", "labels qrels", "labels export", "labels topics", "labels ask", "labels questions",
    "labels quality", "labels next", "labels estimate", "labels calibrate", "collection", "collection check",
    "serve", "check", "leave-one-out", "plugins", "demo",
)  # fmt: skip

_API = """\
# The workbench's API

Generated from the OpenAPI description at `/api/v1/openapi.json`. The page `/api` of the workbench shows the same routes
with links. Each page of the workbench has a route that returns its data. Missing numbers are null. An error is
`{"problem": ..., "fix": ...}` with status 400 or 422."""

_JSON = """\
# The JSON of answers

Generated from one example of each answer. `--format json`, `to_dict()`, and `/api/v1/` return the same document.
`schema` is its type and version; a version may gain keys, but loses none. Numbers have full precision, and null means
unknown. `notes` explain limits of the numbers, and each note has a stable rule name. `ci` and `<name>_ci` are
confidence intervals `[low, high]`."""


def main() -> int:
    """Write the documentation, or check it; return 1 if it is out of date."""
    check = "--check" in sys.argv[1:]
    stale: list[str] = []
    measure_catalog = measures()  # before examples register more measures
    texts, failures = dict[Path, str](), list[str]()
    pages = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(2) as pool:
        folders = [stack.enter_context(sample_folder()) for _ in pages]  # each page has a new folder
        for path, folder, text in zip(pages, folders, pool.map(rewritten, pages, folders), strict=True):
            texts[path] = text
            failures += doctests(path.name, text, folder) if path.name != "measures.md" else []
    with sample_folder() as folder:
        texts |= {ROOT / "docs" / "measures.md": measure_catalog, ROOT / "docs" / "cli.md": cli(folder)}
    texts[ROOT / "docs" / "choosing.md"] = choosing.page()
    texts[ROOT / "docs" / "online-metrics.md"] = online_measures()
    texts[ROOT / "docs" / "api.md"] = api()
    texts[ROOT / "docs" / "json.md"] = documents()
    for package in STUBBED:
        texts[ROOT / "src" / package.replace(".", "/") / "__init__.pyi"] = stub(package)
    for path, text in texts.items():
        if not path.exists() or path.read_text() != text:
            stale.append(str(path.relative_to(ROOT)))
            if not check:
                path.write_text(text)
    print("\n".join(failures), end="\n" if failures else "")
    if stale:
        print(("out of date, run 'make docs': " if check else "written: ") + ", ".join(stale))
    return 1 if failures or (check and stale) else 0


STUBBED = tuple(
    f"judged{part}"
    for part in (
        "",
        ".data",
        ".online",
        ".pipelines.experiments",
        ".pipelines.rag",
        ".reports",
        ".scoring.measures",
        ".scoring.uncertainty",
        ".stats",
        ".studies",
    )
)
"""Packages with lazy imports."""


# For a type checker, a package with lazy imports has only `__getattr__`, so every name is Any. Imports under
# `if TYPE_CHECKING` would repeat each name, and cannot have the signatures that `of_runs` creates at run time.
# `lazy_loader.attach_stub` would need the same stubs, and parse them at each import.
def stub(package: str) -> str:
    """Return the stub of a package for type checkers, with signatures of functions that `of_runs` created."""
    module = importlib.import_module(package)
    head = f"# Written by tools/docs.py: names that `{package}` exports and imports at first use."
    imports, definitions = set[str](), list[str]()
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.ismodule(value):
            imports.add(f"from {value.__name__.rpartition('.')[0]} import {name} as {name}")
        elif hasattr(value, "__signature__") and hasattr(value, "__wrapped__"):
            imports |= _imports(value.__wrapped__) | _imports(judged.evaluate)
            signature = inspect.signature(value).replace(return_annotation=inspect.Signature.empty)
            signature_text = re.sub(r": '([^']*)'", r": \1", str(signature))
            definitions.append(f"def {name}{signature_text} -> {value.__wrapped__.__annotations__['return']}: ...")
        else:
            imports.add(f"from {getattr(value, '__module__', '') or _home(module, name)} import {name} as {name}")
    body = "\n".join(
        [head, "", *sorted(imports), "", *definitions, "", *(["__version__: str"] * (package == "judged")), ""]
    )
    split_imports = ["check", "--fix", "--select", "I,F401", "--config", "lint.isort.force-single-line=true"]
    for command in (split_imports, ["format"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--quiet", "--stdin-filename", "stub.pyi", "-"]
        body = subprocess.run(ruff, input=body, capture_output=True, text=True, check=True).stdout
    return body


def _home(package: Any, name: str) -> str:
    """Return the module that a package declares for a constant."""
    tree = ast.parse(inspect.getsource(package))
    (homes,) = (node for node in ast.walk(tree) if isinstance(node, ast.Dict))
    return next(module for module, names in ast.literal_eval(homes).items() if name in names)


def _imports(function: Any) -> set[str]:
    """Return the imports of a function's module for the names in its annotations."""
    words = set(re.findall(r"\w+", " ".join(map(str, function.__annotations__.values()))))
    tree = ast.parse(inspect.getsource(sys.modules[function.__module__]))
    lines = {
        f"from {node.module} import {name.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module != "__future__"
        for name in node.names
        if name.name in words
    }
    local_classes = {f"from {function.__module__} import {word}" for word in words if word in _defined(tree)}
    return lines | local_classes


def _defined(tree: ast.Module) -> set[str]:
    return {node.name for node in tree.body if isinstance(node, ast.ClassDef)}


@contextlib.contextmanager
def sample_folder() -> Iterator[Path]:
    """Yield a folder with a copy of the sample in ``sample/``."""
    with tempfile.TemporaryDirectory() as name:
        command = [sys.executable, "-m", "judged", "demo", "--to", "sample"]
        subprocess.run(command, cwd=name, capture_output=True, check=True)
        yield Path(name)


def rewritten(path: Path, folder: Path) -> str:
    """Return a page with new output in each console block, the settings of engines, and the layouts."""
    text = _SETTINGS.sub(lambda _: f"\n{engine_settings()}\n\n", path.read_text())
    text = _LAYOUTS.sub(lambda _: f"\n{layouts()}\n\n", text)
    return _CONSOLE.sub(lambda block: "```console\n" + session(block[1], folder) + "```", text)


def layouts() -> str:
    """Return the table of layouts that are read, each with the file that it is tested with."""
    # A test requires that each layout in tool_layouts.toml is read from one of these files.
    content = tomllib.loads((ROOT / "tests" / "layouts" / "layouts.toml").read_text(encoding="utf-8"))
    rows = [
        (layout["tool"], layout["layout"], layout["becomes"], f"`{layout['file']}`") for layout in content["layout"]
    ]
    return markdown_table(("tool", "layout", "becomes", "tested with"), sorted(rows, key=lambda row: row[0].lower()))


def engine_settings() -> str:
    """Return the table of engine settings, with allowed values and defaults."""
    settings = {engine: find_engine(engine).settings for engine in ENGINES}
    settings |= {"all of these": COMMON, **OPERATORS}
    rows = (
        (f"`{engine}`" if engine in (*ENGINES, *OPERATORS) else engine, f"`{name}`", _toml(setting.default),
         ", ".join(map(_toml, setting.values)) or setting.allowed_values, setting.meaning)
        for engine, engine_options in settings.items()
        for name, setting in engine_options.items()
    )  # fmt: skip
    return markdown_table(("engine", "setting", "default", "values", "description"), rows)


def _toml(value: Any) -> str:
    """Format a value as in a plan."""
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def session(block: str, folder: Path) -> str:
    """Run the commands of a console block, and return them with their output."""
    commands = re.findall(r"^\$ (.*(?:\\\n.*)*)", block, re.MULTILINE)
    return "".join(f"$ {command}\n{output(command, folder)}" for command in commands)


def output(command: str, folder: Path) -> str:
    """Run a command in a shell, and return its output."""
    environment = os.environ | {"COLUMNS": WIDTH, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    completed = subprocess.run(
        command, shell=True, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    return completed.stdout.decode()


def doctests(name: str, text: str, folder: Path) -> list[str]:
    """Run the Python examples of a page in one session; return the failures."""
    source = "\n\n".join(_PYTHON.findall(text))
    if not source:
        return []
    failures: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    test = doctest.DocTestParser().get_doctest(source, {}, name, name, 0)
    with contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        runner.run(test, out=failures.append)
    return failures


def measures() -> str:
    """Return the catalog with the pages of all measures."""
    head = "# Measures\n\nGenerated from `src/judged/scoring/measures`; `judged measures NAME` shows the same.\n"
    pages = [re.sub(r"^#", "##", page(name), flags=re.MULTILINE) for name in sorted(REGISTRY, key=str.lower)]
    return head + "\n" + "\n\n".join(pages) + "\n"


def _names() -> str:
    rows = [(f"| {names} | {metric} | {other or ''} |").replace("  |", " |") for names, metric, other in SYNONYM_ROWS]
    head = "Metric names can be replaced by these synonyms. The result names the metric."
    return "\n".join([head, "", "| synonyms | metric | related metrics |", "|---|---|---|", *rows])


def online_measures() -> str:
    """Return the catalog of online metrics."""
    source = "Generated from `src/judged/online/metrics.toml`. `judged online list NAME` prints a definition."
    head = f"# Online metrics\n\n{source}\n"
    parts: list[str] = [f"## Names\n\n{_names()}"]
    for family, members in FAMILIES.items():
        pages = (re.sub(r"^#", "###", catalog.page(metric), flags=re.MULTILINE) for metric in members)
        parts += [f"## {family}", *pages]
    return head + "\n" + "\n\n".join(parts) + "\n"


def cli(folder: Path) -> str:
    """Return the help of every command."""
    parts = [f"## judged {name}\n\n```text\n{output(f'judged {name} --help', folder)}```" for name in _COMMANDS]
    return "# Command line\n\nGenerated from `--help`.\n\n" + "\n\n".join(parts) + "\n"


def api() -> str:
    """Return the documentation of the API: each route with its parameters."""
    from judged.interface.pages.workspace import open_sample
    from judged.web.app import describe_routes, make_app

    workspace = open_sample()
    parts = [_API]
    for name, routes in describe_routes(make_app(workspace).openapi(), workspace).items():
        parts.append(f"## {name}")
        for route in routes:
            parts.append("### {method} {path}\n\n{summary}. {meaning}".format(**route).rstrip())
            if parameters := route["parameter_table"].records():
                head = ("parameter", "type", "default", "description")
                rows = [(f"`{row['name']}`", row["type"], row["default"], row["meaning"]) for row in parameters]
                parts.append(markdown_table(head, rows))
    return "\n\n".join(parts) + "\n"


def documents() -> str:
    """Return the JSON schema of every answer, from the examples in the tests."""
    sys.path.insert(0, str(ROOT / "tests"))
    examples = importlib.import_module("words.answer_examples").EXAMPLES
    schemas: dict[str, dict[str, set[str]]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for build_answer in examples.values():
            document = json.loads(build_answer().json())
            key_types = schemas.setdefault(document.pop("schema"), {})
            for key, value in document.items():
                key_types.setdefault(f"`{key}`", set()).add(_kind(value))
                for record in value if isinstance(value, list) and value and isinstance(value[0], dict) else ():
                    for name, field_value in record.items():
                        key_types.setdefault(f"`{key}[].{name}`", set()).add(_kind(field_value))
    parts = [_JSON]
    for schema, key_types in sorted(schemas.items()):
        rows = ((key, ", ".join(sorted(kinds))) for key, kinds in key_types.items())
        parts += [f"## {schema}", markdown_table(("key", "type"), rows)]
    return "\n\n".join(parts) + "\n"


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return "list" if not value else f"list of {_kind(value[0])}"
    return {"dict": "object", "str": "text", "float": "number", "int": "number", "bool": "true or false",
            "NoneType": "null"}[type(value).__name__]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
