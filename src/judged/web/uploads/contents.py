"""Makes a workspace of files that were sent. Whatever is wrong with them is said with the names that people know."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from judged.data.attributes import Attributes
from judged.data.qrels import Qrels
from judged.data.rows import TableRows
from judged.data.run import Run, run_ids, split_runs
from judged.data.sources import source_name
from judged.data.text_rows import TextRows
from judged.data.topics import Topics
from judged.errors import InputError, JudgedError, MissingExtraError
from judged.web.workspace import open_workspace

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from judged.web.uploads.storage import Limits, Stored
    from judged.web.workspace import Workspace

_LOG = logging.getLogger("judged.web")


def workspace_of(files: Mapping[str, Sequence[Stored]], limits: Limits) -> Workspace:
    """Read what was sent, by what it is: the judgments, and beside them runs, queries, attributes and documents."""
    with _names_of([file for several in files.values() for file in several]):
        (sent,) = files["qrels"]
        with _names_of([sent]):
            qrels = replace(Qrels.read(sent.path, name=source_name(sent.shown)), where=sent.shown)
        runs = [run for file in files.get("runs", ()) for run in _runs(file, limits.runs)]
        if len(runs) > limits.runs:
            raise InputError(f"there are {len(runs):,} runs in these files", fix=f"open at most {limits.runs}")
        for run in runs:
            if len(run.name) > limits.name or not run.name.isprintable():
                fix = f"name runs with at most {limits.name} printable characters"
                raise InputError(f"{run.name[:40]!r}... is not a name for a run", fix=fix, path=run.where)
        beside: dict[str, Any] = {}
        for role, read in (("queries", Topics.read), ("attributes", Attributes.read)):
            for file in files.get(role, ()):
                with _names_of([file]):
                    beside[role] = replace(read(file.path), where=file.shown)
        (documents,) = files.get("documents", (None,))
        workspace = open_workspace(qrels, runs, texts=documents and documents.path, **beside)
        if documents is None or workspace.texts is None:
            return workspace
        return replace(workspace, texts=replace(workspace.texts, where=documents.shown))


def _runs(file: Stored, most: int) -> list[Run]:
    """Name the runs of a file; how many there are is looked at before they are taken apart."""
    with _names_of([file]):
        found: Any = Run.scan(file.path).rows
        rows: Any = replace(found, where=file.shown)
        if isinstance(rows, TextRows) and rows.layout.header and "run_id" in rows.layout.names:
            rows = TableRows(Run(rows).table, rows.where)
        if (many := len(run_ids(rows))) > most:
            raise InputError(f"there are {many:,} runs in this file", fix=f"open at most {most}", path=file.shown)
        return split_runs(rows, source_name(file.shown))


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
