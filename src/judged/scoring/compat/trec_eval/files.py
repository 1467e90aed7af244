"""The files of the command: judgments and runs in TREC's form and in no other.

Our readers do the work. What trec_eval refuses is refused here too: other numbers of fields, blank lines in
judgments.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.data import files
from judged.data.compute import pc
from judged.data.layout import Layout, is_data
from judged.data.qrels import Qrels, by_user
from judged.data.run import Run
from judged.data.sources import Source, open_source
from judged.data.text_rows import TextRows
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged._types import Table
    from judged.data.columns import Kind

_QRELS = ("query_id", "iteration", "doc_id", "relevance")
_PREFS = ("query_id", "user", "subgroup", "doc_id", "relevance")
_SCORE = re.compile(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")
_BLANK = rb"[ \t\v\f\r]"
_WORDS = {"iteration": "user (or 0)", "user": "user", "doc_id": "document", "relevance": "grade"}


def read_qrels(path: str, *, by_user: bool = False) -> Qrels:
    """Read judgments: four fields a line.

    With `by_user` the second field is the user, and a user who judges a document twice for a topic is refused.
    Otherwise a pair may stand in them twice: only the evaluation of its topic fails.
    """
    table, where = _table(path, _QRELS)
    if by_user:
        counts = table.group_by(["query_id", "iteration", "doc_id"]).aggregate([([], "count_all")])
        for pair in counts.filter(pc.greater(counts["count_all"], 1)).slice(0, 1).to_pylist():
            problem = f"user {pair['iteration']} judges document {pair['doc_id']} twice for topic {pair['query_id']}"
            raise InputError(problem, fix="keep one judgment", path=where)
    return Qrels(table, "qrels", where)


def whole_grades(qrels: Qrels) -> tuple[Qrels, str]:
    """Cut grades to whole numbers as C's ``atol`` does; with a warning where that changes any, else an empty text."""
    whole = qrels.regraded(np.trunc(qrels.grades) + 0.0)
    changed = np.count_nonzero(whole.grades != qrels.grades)
    text = f"warning: {qrels.where}: {changed} of {len(qrels)} grades are no whole numbers; their fractions are ignored"
    return whole, text if changed else ""


def open_run(path: str) -> Run:
    """Open a run: six fields a line or more, of which topic, document and score count; ``-`` is standard input."""
    rows = _text_rows(path, "run")
    names = ("query_id", "", "doc_id", "", "score", "run_id")
    layout = Layout(names, rows.layout.delimiter, fields=rows.layout.fields, open_ended=True)
    return Run(replace(rows, layout=layout))


def run_tag(run: Run) -> str:
    """Give the tag in the last line of a run's file."""
    assert isinstance(run.rows, TextRows)  # noqa: S101 - made by open_run
    last = b""
    for block in files.blocks(run.rows.path):
        last = next(filter(is_data, _backwards(block)), last)
    return last.split()[5].decode(errors="replace")


def in_words(error: InputError, path: str) -> InputError:
    """Say what a line of a run lacks in trec_eval's words, in place of the names of our columns."""
    if error.rule != "too-few-fields" or path == "-":  # what came through a pipe is not there to be read again
        return error
    rows = _text_rows(path, "run")
    raw = next((raw for number, raw in rows.numbered() if error.path == rows.where and number == error.line), b"")
    fields = raw.decode(errors="replace").split()
    problem, fix = error.problem, "write topic, Q0, document, rank, score, tag"
    if len(fields) == 5 and _SCORE.fullmatch(fields[-1]):
        problem = f"the run tag is missing: {problem}"
        fix = "add a sixth column, any word; 'judged evaluate' reads runs without it"
    return InputError(problem, fix=fix if fields else error.fix, path=error.path, line=error.line)


def _backwards(block: bytes) -> Iterator[bytes]:
    end = len(block)
    while end > 0:
        start = block.rfind(b"\n", 0, end - 1) + 1
        yield block[start:end]
        end = start


def _text_rows(path: str, kind: Kind) -> TextRows:
    rows = open_source(path, kind, "trec").rows
    if not isinstance(rows, TextRows):
        raise InputError("this is not a text file", fix="give a file in TREC's form", path=str(path))
    return rows


def _refuse_malformed(rows: TextRows, names: tuple[str, ...]) -> None:
    """Refuse a line that is blank or has another number of fields."""
    complete = rb"\S+" + (len(names) - 1) * (_BLANK + rb"+\S+") + _BLANK + rb"*$"
    malformed = re.compile(rb"^(?!" + _BLANK + rb"*(?:#|" + complete + rb")).*$", re.MULTILINE)
    above = 0
    for block in files.blocks(rows.path):
        if bad := malformed.search(block.removesuffix(b"\n")):
            count = len(bad[0].split())
            problem = (
                f"{count} fields where {len(names)} are needed" if count else "a blank line, which is refused here"
            )
            fix = "write topic, " + ", ".join(_WORDS.get(name, name) for name in names[1:])
            line = above + block.count(b"\n", 0, bad.start()) + 1
            raise InputError(problem, fix=fix, path=rows.where, line=line)
        above += block.count(b"\n")


def read_preferences(path: str, form: str) -> Qrels:
    """Read preferences: ``prefs`` have a user and a group, ``qrels_prefs`` a user whose one group is all."""
    # User and group together are the iteration.
    subgroup = None if form == "qrels_prefs" else "subgroup"
    names = ("query_id", "user", "doc_id", "relevance") if subgroup is None else _PREFS
    table, where = _table(path, names)
    return Qrels(by_user(table, subgroup), "qrels", where)


def _table(path: str, names: tuple[str, ...]) -> tuple[Table, str]:
    rows = _text_rows(path, "qrels")
    _refuse_malformed(rows, names)
    rows = replace(rows, layout=Layout(names, rows.layout.delimiter, fields=rows.layout.fields))
    table, _ = Source(rows).table(names)
    return table, rows.where
