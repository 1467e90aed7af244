"""Hooks of MkDocs: generated pages, formulas, docstrings as Markdown, and the search.

The reference of the Python API is generated from ``__all__`` of each public module, and the reference of results from
the subclasses of `Answer`, so that no name is missing. Pages such as CHANGELOG.md are read from the root of the
repository.
"""

from __future__ import annotations

import copy
import html
import importlib
import inspect
import pkgutil
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import griffe
from markdown.extensions.toc import slugify
from mkdocs.structure.files import File

import judged
from judged.interface.pages.learn.lessons import formula
from judged.results import Answer
from judged.scoring.evaluation.scores import LazyMethod, Scores
from judged.scoring.measures import Measure
from judged.scoring.measures.pages import as_markdown
from judged.scoring.measures.pages import page as page_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
MODULES = (
    "judged",
    "judged.scoring.measures",
    "judged.stats",
    "judged.data",
    "judged.comparison.slicing",
    "judged.online",
)
FROM_ROOT = {name.lower(): name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")}
CATALOGS = ("measures.md", "choosing.md")
RESULTS = """\
# Results

The functions return these results. Each is an `Answer`: it prints as text, displays in a notebook, and converts to
other formats by the methods of `Answer`. In addition it has the attributes and methods listed below."""
SEARCH = tomllib.loads((ROOT / "tools" / "website" / "search.toml").read_text(encoding="utf-8"))
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
_TESTS = re.compile(r"\[[^\]]*\]\((tests/[^)]*)\)")
_EXAMPLES = "Examples\n--------\n"
_DOCTEST = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"(?<!`)`([A-Za-z]\w*)((?:\.\w+)?)(?:\(.*?\))?`(?!`)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the generated pages and the decision records to the navigation."""
    folders = {
        "reference/": [f"reference/{page}.md" for page in (*MODULES, "results")],
        "decisions/": [f"decisions/{path.name}" for path in sorted((ROOT / "docs" / "decisions").glob("*.md"))],
    }

    def fill(entries: list[dict[str, Any]]) -> None:
        for entry in entries:
            for title, target in entry.items():
                if isinstance(target, list):
                    fill(target)
                else:
                    entry[title] = folders.get(target, target)

    fill(config.nav or [])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and pages at the root of the repository."""
    pages = {f"reference/{module}.md": reference(module) for module in MODULES} | {"reference/results.md": results()}
    for name, source in FROM_ROOT.items():
        pages[name] = (ROOT / source).read_text(encoding="utf-8").replace("](docs/", "](")
        for other, link in FROM_ROOT.items():
            pages[name] = pages[name].replace(f"]({link})", f"]({other})")
        pages[name] = _TESTS.sub(r"`\1`", pages[name])  # tests are not part of the site
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(_: str, *, page: Page, **_events: Any) -> None:
    """Set the search weight and the keywords of a page. Keywords rank above titles and texts."""
    name = page.file.src_uri
    boosts = [boost for prefix, boost in SEARCH["boost"].items() if name.startswith(prefix)]
    page.meta["search"] = {"boost": boosts[0] if boosts else 1}
    page.meta["tags"] = SEARCH["keywords"].get(name, [])


def on_page_content(content: str, *, page: Page, **_: Any) -> str:
    """Convert formulas to MathML, and remove subsections of catalogs from the table of contents."""
    if page.file.src_uri in CATALOGS:
        for title in page.toc.items:
            for entry in title.children:
                entry.children = []
    return _FORMULA.sub(lambda match: formula(html.unescape(match[2]).strip(), block=match[1] == "div"), content)


def on_post_page(output: str, **_: Any) -> str:
    """Name the search for screen readers."""
    output = output.replace('role="dialog">', 'role="dialog" aria-label="Search">')
    return output.replace('id="__search"', 'id="__search" aria-label="Search"')


def on_post_template(output_content: str, **_: Any) -> str:
    """Name the search of 404.html for screen readers."""
    return on_post_page(output_content)


class Docstrings(griffe.Extension):
    """Converts formulas and code in docstrings to Markdown, and public names to links."""

    def __init__(self) -> None:
        self._done: dict[int, griffe.Docstring] = {}  # references keep the ids unique

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Convert a docstring once, because a method can share the docstring of a function."""
        if obj.docstring and id(obj.docstring) not in self._done:
            self._done[id(obj.docstring)] = obj.docstring
            before, *after = obj.docstring.value.partition(_EXAMPLES)
            before = _DOCTEST.sub(r"```python\n\g<0>\n```", as_markdown(_NAME.sub(_link, before)))
            obj.docstring.value = "".join([before, *after])

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Add the signature and docstring of the called function to each lazy method of `Scores`."""
        if pkg.name == "judged":
            scores = pkg["scoring.evaluation.scores.Scores"]
            for name in [name for name, value in vars(Scores).items() if isinstance(value, LazyMethod)]:
                function = getattr(Scores, name)
                method = copy.copy(pkg[f"{function.__module__}.{function.__name__}".removeprefix("judged.")])
                method.name, method.parent = name, scores
                scores.members[name] = method


def public(module: str) -> dict[str, Any]:
    """Return the public values of a module except submodules, which have their own pages."""
    module_object = importlib.import_module(module)
    values = {name: getattr(module_object, name) for name in module_object.__all__ if not name.startswith("__")}
    return {name: value for name, value in values.items() if not inspect.ismodule(value)}


def reference(module: str) -> str:
    """Render the page of a module: functions, classes, and links to its measures in the catalog."""
    kinds: dict[str, list[str]] = {"Functions": [], "Classes": [], "Errors and warnings": [], "Values": []}
    measures: list[str] = []
    for name, value in sorted(public(module).items(), key=lambda item: item[0].lower()):
        if is_measure(value):
            measures.append(f"[{name}](../measures.md#{anchor(value)})")
        else:
            kinds[_kind(value)].append(f"::: {module}.{name}")
    parts = [f"# {module}", inspect.getdoc(importlib.import_module(module)) or ""]
    if measures:
        parts += ["## Measures", "Each is a class with its own parameters: " + ", ".join(measures) + "."]
    for title, directives in kinds.items():
        parts += [f"## {title}", *directives] if directives else []
    return "\n\n".join(parts) + "\n"


def results() -> str:
    """Render the page of the results that functions return."""
    classes = sorted(set(_answers(Answer)), key=lambda answer: answer.__name__.lower())
    others = [answer for answer in classes if answer not in public("judged").values()]
    return (
        "\n\n".join([RESULTS, *(f"::: {answer.__module__}.{answer.__name__}" for answer in (Answer, *others))]) + "\n"
    )


def is_measure(value: Any) -> bool:
    """Return whether a value is a measure of the catalog."""
    return inspect.isclass(value) and issubclass(value, Measure) and hasattr(value, "entry")


def anchor(measure: type[Measure]) -> str:
    """Return the anchor of a measure in the catalog."""
    return slugify(page_of(measure.entry.name).partition("\n")[0].lstrip("# "), "-")


def _kind(value: Any) -> str:
    if inspect.isclass(value):
        return "Errors and warnings" if issubclass(value, Exception) else "Classes"
    return "Functions" if callable(value) else "Values"


def _answers(base: type[Answer]) -> Iterator[type[Answer]]:
    """Yield the subclasses of `Answer` except pages of the workbench."""
    if base is Answer:
        for module in pkgutil.walk_packages(judged.__path__, "judged."):
            if not module.name.startswith(("judged.web", "judged.scoring.compat", "judged.integrations", "judged.__main__")):
                importlib.import_module(module.name)
    for answer in base.__subclasses__():
        yield from _answers(answer)
        if not answer.__module__.startswith("judged.web"):
            yield answer


def _link(match: re.Match[str]) -> str:
    """Return a link to a public name, or the text unchanged; an inherited attribute links to its class."""
    name, attribute = match[1], match[2][1:]
    for module in MODULES:
        value = public(module).get(name)
        if value is None or is_measure(value):
            continue
        owner = next((base for base in getattr(value, "__mro__", ()) if attribute in vars(base)), None)
        if owner not in {Answer, value} or not inspect.isroutine(vars(owner)[attribute]):  # fields have no anchor
            return f"[{match[0]}][{module}.{name}]"
        identifier = f"{module}.{name}" if owner is value else f"{Answer.__module__}.{Answer.__name__}"
        return f"[{match[0]}][{identifier}.{attribute}]"
    return match[0]
