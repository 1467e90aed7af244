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


ATTRIBUTES = {*dir(Judged), *(field.name for field in fields(Judged))}


def blocks(page: Path) -> list[str]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def bound(tree: ast.AST) -> set[str]:
    """Return the names that statements make, at any depth."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
    return names


def used(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def needed(before: Sequence[doctest.Example], own: Sequence[doctest.Example]) -> list[doctest.Example]:
    """Choose the earlier statements that make names which an example uses, and those that these use in turn."""
    wanted: set[str] = set()
    for example in reversed(own):
        tree = ast.parse(example.source)
        wanted = (wanted - bound(tree)) | used(tree)
    chosen: list[doctest.Example] = []
    for example in reversed(before):
        tree = ast.parse(example.source)
        made = bound(tree) & (wanted | {"*"})
        changes = isinstance(tree.body[0], ast.Expr) and used(tree) & wanted and ".append(" in example.source
        if made or changes:
            chosen.append(example)
            wanted = (wanted - made) | used(tree)
    return chosen[::-1]


def doctests() -> Iterator[tuple[str, list[str]]]:
    """Give every example with ``>>>``: its title, and its source behind the statements that it needs.

    Those of the catalog of measures import one class each from one package; they share a process, not their names.
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
        before: list[doctest.Example] = []
        for number, block in enumerate(blocks(page), 1):
            if not block.startswith(">>>"):
                continue
            own = parser.get_examples(block)
            prelude = "".join(map(prompted, needed(before, own)))
            before += own
            yield f"{page.name}, example {number}", [prelude + block]


def prompted(example: doctest.Example) -> str:
    """Write a statement as a doctest, with what it prints."""
    first, *rest = example.source.splitlines()
    return "\n".join([f">>> {first}", *(f"... {line}" for line in rest), example.want])


def imports() -> Iterator[tuple[str, str]]:
    """Give the imports of every program without ``>>>``, which may need files that a reader has."""
    for page in PAGES:
        for number, block in enumerate(blocks(page), 1):
            if not block.startswith(">>>"):
                kept = [node for node in ast.walk(ast.parse(block)) if isinstance(node, (ast.Import, ast.ImportFrom))]
                own = [node for node in kept if "judged" in ast.unparse(node)]
                yield f"{page.name}, program {number}", "\n".join(map(ast.unparse, own))


def dotted_names() -> list[str]:
    """List every dotted name of judged in the text and in the programs of the documentation."""
    found: set[str] = set()
    for page in PAGES:
        found |= set(DOTTED.findall(page.read_text(encoding="utf-8")))
        for block in blocks(page):
            source = block
            if block.startswith(">>>"):
                source = "\n".join(example.source for example in doctest.DocTestParser().get_examples(block))
            found |= {
                ast.unparse(node)
                for node in ast.walk(ast.parse(source))
                if isinstance(node, ast.Attribute) and re.fullmatch(r"judged(\.\w+)+", ast.unparse(node))
            }
    # In definitions of measures the parameter `judged` is a judged list.
    return sorted(name for name in found - NO_NAMES if name.removeprefix("judged.") not in ATTRIBUTES)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    command = [sys.executable, "-m", "judged", "demo", "--to", "sample"]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    return folder


def problems(examples: list[dict[str, Any]], folder: Path) -> dict[str, str]:
    """Run all examples, and return what went wrong with which."""
    given = json.dumps([{**example, "folder": str(folder)} for example in examples])
    command = [sys.executable, str(Path(__file__).parent / "zygote.py")]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    outcomes = json.loads(done.stdout)
    assert len(outcomes) == len(examples)
    return {example["title"]: wrong for example, wrong in zip(examples, outcomes, strict=True) if wrong}


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
