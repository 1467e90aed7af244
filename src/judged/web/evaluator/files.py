"""The evaluator's lists and scores as files: TREC qrels and run, JSON, Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import quote

from judged.data import Qrels, Run
from judged.data.write import write_qrels, write_run
from judged.errors import InputError
from judged.web.evaluator.scores import LIST, evaluation, worlds_of
from judged.web.evaluator.state import State, read_state

if TYPE_CHECKING:
    from collections.abc import Callable

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
    if asked.format in {"qrels", "run"}:
        state = read_state(workspace, asked)
        return _qrels(state) if asked.format == "qrels" else _run(state, asked.which)
    answer = evaluation(workspace, asked)
    if asked.format == "json":
        return File("list.json", "application/json", answer.json().encode())
    text = f"# {answer.title}\n\n{answer.markdown()}\n"
    return File("list.md", "text/markdown; charset=utf-8", text.encode())


def _qrels(state: State) -> File:
    world = worlds_of(state)[0]
    if not world.grades:
        raise InputError("no document has a grade, so there are no judgments", fix="give at least one grade")
    name = _encoder(state)
    judgments = Qrels.of({name(_topic(state)): {name(doc): grade for doc, grade in world.grades.items()}})
    return File("list.qrels", "text/plain; charset=utf-8", _written(lambda path: write_qrels(judgments, path, "trec")))


def _run(state: State, which: str) -> File:
    worlds = {world.name: world for world in worlds_of(state)}
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
