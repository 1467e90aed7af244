"""Every Python example of the documentation runs in an interpreter of its own, and every name in it exists there.

An example may use names of those before it on its page. It is run with those statements only that make these names, so
that an import in another example hides nothing.
"""

from __future__ import annotations

import ast
import doctest
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from judged import Judged

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
DOTTED = re.compile(r"`(judged(?:\.[A-Za-z]\w*)+)(?:\(|`)")
NO_NAMES = {"judged.toml", "judged.duckdb", "judged.stage", "judged.trace"}  # files, and attributes of spans
NEED_COMMANDS = {"experiments.md", "labels.md"}
"""Pages whose examples read what the commands above them have written; `tools/docs.py` runs both."""
NEED_OTHER_TOOLS = {"integrations.md"}  # tests/docs/test_integrations_page.py runs its programs beside stand-ins


ATTRIBUTES = {*dir(Judged), *(field.name for field in fields(Judged))}


def blocks(page: Path) -> list[str]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def bound(tree: ast.AST) -> set[str]:
    """Return the names that statements bind, at any depth."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
    return names


def used(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def needed(before: Sequence[doctest.Example], example_statements: Sequence[doctest.Example]) -> list[doctest.Example]:
    """Return the earlier statements that bind names which an example uses, and those that these use in turn."""
    required_names: set[str] = set()
    for statement in reversed(example_statements):
        tree = ast.parse(statement.source)
        required_names = (required_names - bound(tree)) | used(tree)
    statements: list[doctest.Example] = []
    for statement in reversed(before):
        tree = ast.parse(statement.source)
        required_bindings = bound(tree) & (required_names | {"*"})
        changes = isinstance(tree.body[0], ast.Expr) and used(tree) & required_names and ".append(" in statement.source
        if required_bindings or changes:
            statements.append(statement)
            required_names = (required_names - required_bindings) | used(tree)
    return statements[::-1]


def doctests() -> Iterator[tuple[str, list[str]]]:
    """Yield every example with ``>>>``: its title, and its source after the statements that it needs.

    Examples of the catalog of measures import one class each from one package; they share a process, not names.
    """
    parser = doctest.DocTestParser()
    measures: list[str] = []
    for block in blocks(ROOT / "docs" / "measures.md"):
        if "import" in block:
            measures.append(block)
        else:
            measures[-1] += "\n" + block
    yield "measures.md", measures
    for page in PAGES:
        if page.name in {"measures.md", *NEED_COMMANDS}:
            continue
        earlier_statements: list[doctest.Example] = []
        for number, block in enumerate(blocks(page), 1):
            if not block.startswith(">>>"):
                continue
            statements = parser.get_examples(block)
            prelude = "".join(map(prompted, needed(earlier_statements, statements)))
            earlier_statements += statements
            yield f"{page.name}, example {number}", [prelude + block]


def prompted(example: doctest.Example) -> str:
    """Format a statement as a doctest with its expected output."""
    first_line, *more_lines = example.source.splitlines()
    return "\n".join([f">>> {first_line}", *(f"... {line}" for line in more_lines), example.want])


def imports() -> Iterator[tuple[str, str]]:
    """Yield the imports of every program without ``>>>``; the rest may need files of the reader."""
    for page in (page for page in PAGES if page.name not in NEED_OTHER_TOOLS):
        for number, block in enumerate(blocks(page), 1):
            if not block.startswith(">>>"):
                imports_of_block = [
                    node for node in ast.walk(ast.parse(block)) if isinstance(node, (ast.Import, ast.ImportFrom))
                ]
                judged_imports = [node for node in imports_of_block if "judged" in ast.unparse(node)]
                yield f"{page.name}, program {number}", "\n".join(map(ast.unparse, judged_imports))


def dotted_names() -> list[str]:
    """Return every dotted name of judged in the text and in the programs of the documentation."""
    names: set[str] = set()
    for page in PAGES:
        names |= set(DOTTED.findall(page.read_text(encoding="utf-8")))
        for block in blocks(page):
            source = block
            if block.startswith(">>>"):
                source = "\n".join(example.source for example in doctest.DocTestParser().get_examples(block))
            names |= {
                ast.unparse(node)
                for node in ast.walk(ast.parse(source))
                if isinstance(node, ast.Attribute) and re.fullmatch(r"judged(\.\w+)+", ast.unparse(node))
            }
    # In definitions of measures the parameter `judged` is a judged list.
    return sorted(name for name in names - NO_NAMES if name.removeprefix("judged.") not in ATTRIBUTES)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    command = [sys.executable, "-m", "judged", "demo", "--to", "sample"]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    return folder


def problems(examples: list[dict[str, Any]], folder: Path) -> dict[str, str]:
    """Run all examples and return error texts by title."""
    payload = json.dumps([{**example, "folder": str(folder)} for example in examples])
    command = [sys.executable, str(Path(__file__).parent / "zygote.py")]
    completed = subprocess.run(command, input=payload, capture_output=True, text=True, check=True)
    outcomes = json.loads(completed.stdout)
    assert len(outcomes) == len(examples)
    return {example["title"]: error for example, error in zip(examples, outcomes, strict=True) if error}


def test_every_example_runs_by_itself(sample: Path) -> None:
    examples = [{"title": title, "doctests": sources} for title, sources in doctests()]
    assert sum(len(example["doctests"]) for example in examples) > 100
    assert problems(examples, sample) == {}


def test_the_imports_of_every_program_work_by_themselves(sample: Path) -> None:
    programs = [{"title": title, "program": source} for title, source in imports() if source]
    assert programs
    assert problems(programs, sample) == {}


def test_every_dotted_name_exists_after_import_judged(sample: Path) -> None:
    names = dotted_names()
    assert "judged.uncertainty.tie_expected" in names
    assert problems([{"title": name, "name": name} for name in names], sample) == {}


def test_what_goes_wrong_is_reported(sample: Path) -> None:
    """A wrong value, a name that another example imported, and a process that ends."""
    examples = [
        {"title": "value", "doctests": [">>> 1 + 1\n3\n"]},
        {"title": "import", "doctests": [">>> import sys\n>>> 'judged' in sys.modules\nFalse\n"]},
        {"title": "loads", "doctests": [">>> import judged\n"]},
        {"title": "again", "doctests": [">>> import sys\n>>> 'judged' in sys.modules\nFalse\n"]},
        {"title": "end", "program": "import os; os._exit(3)"},
        {"title": "name", "name": "judged.scoring.uncertainty.no_such_name"},
    ]
    assert set(problems(examples, sample)) == {"value", "end", "name"}
