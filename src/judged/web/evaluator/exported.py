"""The evaluator's lists and scores as files: TREC qrels and run, JSON, Markdown."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import judged
from judged.answer import plain
from judged.data import Qrels, Run
from judged.data.write import write_qrels, write_run
from judged.decimals import decimal
from judged.errors import InputError
from judged.measures.parameters import spell
from judged.tables import Table, markdown_text
from judged.web.evaluator.evaluated import evaluated
from judged.web.evaluator.scored import LIST, World, worlds_of
from judged.web.evaluator.state import State, read_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from judged.web.evaluator.asked import ExportAsked
    from judged.web.workspace import Workspace

_BLANK = re.compile(r"[\s\x00-\x1f\x7f]")
_TO_ENCODE = re.compile(r"[\s%\x00-\x1f\x7f]")


@dataclass(frozen=True)
class File:
    """A file that is given away."""

    name: str
    media: str
    content: bytes


def exported(workspace: Workspace, asked: ExportAsked) -> File:
    """Write what was asked for."""
    if asked.format == "qrels":
        return _qrels(read_state(workspace, asked))
    if asked.format == "run":
        return _run(read_state(workspace, asked), asked.which)
    data = evaluated(workspace, asked)
    if asked.format == "json":
        return File("list.json", "application/json", _json(data))
    return File("list.md", "text/markdown; charset=utf-8", _markdown(data).encode())


def _qrels(state: State) -> File:
    world = worlds_of(state)[0]
    if not world.grades:
        raise InputError("no document has a grade, so there are no judgments", fix="give at least one grade")
    name = _encoder(state)
    judgments = Qrels.of({name(_topic(state)): {name(doc): grade for doc, grade in world.grades.items()}})
    return File("list.qrels", "text/plain; charset=utf-8", _written(lambda path: write_qrels(judgments, path, "trec")))


def _run(state: State, which: str) -> File:
    worlds: dict[str, World] = {world.name: world for world in worlds_of(state)}
    if which not in worlds:
        raise InputError("there is no second list", fix=f"give which={LIST}")
    name = _encoder(state)
    ranking = {name(doc): score for doc, score in worlds[which].run.items()}
    if not ranking:
        raise InputError("the list is empty, so there is no run", fix="give at least one document")
    run = Run.of({name(_topic(state)): ranking})
    return File(f"{which}.run", "text/plain; charset=utf-8", _written(lambda path: write_run(run, path, "trec")))


def _topic(state: State) -> str:
    return state.source.topic if state.source else LIST


def _encoder(state: State) -> Callable[[str], str]:
    """Give a way to write names in TREC format, which has no blanks in them."""
    # Where one of the names has a blank, blanks and percent signs are percent-encoded in all of them, so that different
    # names stay different and qrels and run go together; otherwise names stay as they are.
    names = [_topic(state), *(doc for world in worlds_of(state) for doc in (*world.docs, *world.grades))]
    if not any(map(_BLANK.search, names)):
        return str
    return lambda name: _TO_ENCODE.sub(lambda found: quote(found[0], safe=""), name)


def _written(write: Callable[[Path], None]) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "list.txt"
        write(path)
        return path.read_bytes()


def _json(data: dict[str, Any]) -> bytes:
    kept = {
        "judged": judged.__version__,
        "query": data["query"],
        "state": data["state"],
        "measures": [row for group in data["groups"] for row in group["measures"]],
        "lists": data["lists"],
        "notes": data["notes"],
    }
    return json.dumps(plain(kept), ensure_ascii=False, allow_nan=False, indent=1).encode()


def _markdown(data: dict[str, Any]) -> str:
    state, both = data["state"], data["state"]["other"] is not None
    parts = ["# A ranked list and its measures"]
    if source := state["source"]:
        runs = " and ".join(filter(None, [source["run"], source["other_run"]]))
        parts.append(markdown_text(f"Topic {source['topic']}, {runs}. {source['query']}".strip()))
    for title, rows in zip(("The list", "The other list"), data["lists"], strict=False):
        cells = [(str(row["rank"]), row["doc"], _grade(row["grade"])) for row in rows["rows"]]
        parts += [f"## {title}", Table(("rank", "document", "grade"), tuple(cells), labels=2).markdown()]
    gone = ", ".join(map(spell, state["missing"])) or "none"
    parts.append(
        f"Judged and not returned, by grade: {gone}. Relevant documents (grade {spell(state['rel'])} or more):"
        f" {state['relevant']}."
    )
    parts += ["## Measures", _measures(data["groups"], both=both).markdown()]
    parts += ["## Address", f"`/evaluator?{data['query']}`"]
    return "\n\n".join(parts) + "\n"


def _measures(groups: Iterable[dict[str, Any]], *, both: bool) -> Table:
    header = ("measure", "list", "other", "difference") if both else ("measure", "list")
    shown = ("value", "other", "difference") if both else ("value",)
    rows = [(row["name"], *(_score(row[name]) for name in shown)) for group in groups for row in group["measures"]]
    return Table(header, tuple(rows), labels=1)


def _grade(grade: float | None) -> str:
    return "-" if grade is None else spell(grade)


def _score(value: float | None) -> str:
    return "-" if value is None else decimal(value)
