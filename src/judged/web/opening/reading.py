"""Makes a workspace of files that were sent. Whatever is wrong with them is said with the names that people know."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from judged.data import Qrels, Run, TableRows, split_runs
from judged.data.attributes import Attributes
from judged.data.run import run_ids
from judged.data.sources import source_name
from judged.data.text import TextRows
from judged.data.topics import Topics
from judged.errors import InputError, JudgedError, MissingExtraError
from judged.web.workspace import open_workspace

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from judged.web.opening.storing import Limits, Stored
    from judged.web.workspace import Workspace

_LOG = logging.getLogger("judged.web")


@dataclass(frozen=True)
class Given:
    """The files that were sent."""

    qrels: Stored
    runs: tuple[Stored, ...] = ()
    queries: Stored | None = None
    attributes: Stored | None = None
    documents: Stored | None = None

    @property
    def files(self) -> tuple[Stored, ...]:
        """All of them."""
        several = (self.qrels, *self.runs, self.queries, self.attributes, self.documents)
        return tuple(file for file in several if file is not None)


def workspace_of(given: Given, limits: Limits) -> Workspace:
    """Read what was sent."""
    with _names_of(given.files):
        with _names_of([given.qrels]):
            qrels = replace(Qrels.read(given.qrels.path, name=_name(given.qrels)), where=given.qrels.shown)
        runs = [run for file in given.runs for run in _runs(file, limits.runs)]
        if len(runs) > limits.runs:
            raise InputError(f"there are {len(runs):,} runs in these files", fix=f"open at most {limits.runs}")
        for run in runs:
            if len(run.name) > limits.name or not run.name.isprintable():
                fix = f"name runs with at most {limits.name} printable characters"
                raise InputError(f"{run.name[:40]!r}... is no name of a run", fix=fix, path=run.where)
        opened = open_workspace(qrels, runs, **_beside(given))
        texts = opened.texts
        if texts is None or given.documents is None:
            return opened
        return replace(opened, texts=replace(texts, where=given.documents.shown))


def _beside(given: Given) -> dict[str, Any]:
    """Read what is known of topics and name the file of documents."""
    made: dict[str, Any] = {}
    if given.queries is not None:
        with _names_of([given.queries]):
            made["queries"] = replace(Topics.read(given.queries.path), where=given.queries.shown)
    if given.attributes is not None:
        with _names_of([given.attributes]):
            made["attributes"] = replace(Attributes.read(given.attributes.path), where=given.attributes.shown)
    if given.documents is not None:
        made["docs"] = given.documents.path
    return made


def _runs(file: Stored, most: int) -> list[Run]:
    """Name the runs of a file; how many there are is looked at before they are taken apart."""
    with _names_of([file]):
        found: Any = Run.scan(file.path).rows
        rows: Any = replace(found, where=file.shown)
        if isinstance(rows, TextRows) and rows.layout.header and "run_id" in rows.layout.names:
            rows = TableRows(Run(rows).table, rows.where)
        if (many := len(run_ids(rows))) > most:
            raise InputError(f"there are {many:,} runs in this file", fix=f"open at most {most}", path=file.shown)
        return split_runs(rows, _name(file))


def _name(file: Stored) -> str:
    return source_name(file.shown)


@contextmanager
def _names_of(stored: Iterable[Stored]) -> Generator[None]:
    """Say what is wrong with the names that people gave; what no reader foresaw is said as well, and logged."""
    known = list(stored)
    try:
        yield
    except InputError as error:
        said = [_with_names(text, known) for text in (error.problem, error.fix, error.path)]
        raise InputError(said[0], fix=said[1], path=said[2], line=error.line) from None
    except MissingExtraError:
        raise
    except JudgedError as error:
        raise InputError(_with_names(str(error), known)) from None
    except Exception as error:  # noqa: BLE001  a file may make a reader do anything
        _LOG.exception("a file that was sent could not be read")
        what = f"it cannot be read ({type(error).__name__})"
        where = known[0].shown if len(known) == 1 else "the files"
        raise InputError(what, fix="check its format with 'judged check'", path=where) from None


def _with_names(text: str, stored: Iterable[Stored]) -> str:
    for file in stored:
        text = text.replace(str(file.path), file.shown).replace(file.path.name, file.shown)
    return text
