"""The form in which labels are judged again, and the judgments that come back from one that was filled in."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from judged.data.ids import id_text
from judged.data.qrels import Qrels
from judged.data.records import records_of
from judged.data.texts import shortened
from judged.errors import InputError
from judged.results.decimals import read_number
from judged.results.escaping import csv_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.diagnosis.review.answer import ReviewItem

_FORM = ("query_id", "doc_id", "relevance", "new_grade", "query", "title", "text")
_NEEDED = ("query_id", "doc_id", "new_grade")
_LONGEST = 1000  # characters of a text in a form: cells of spreadsheets have an end
_FIX = "fill in what ReviewList.tsv wrote: query_id, doc_id, relevance, new_grade"
_OTHER = "give the qrels that the list was made from"


def as_form(items: Iterable[ReviewItem]) -> str:
    """Write judgments with an empty column for the new grade; texts in one line, those of documents cut."""
    rows: list[Sequence[str]] = [_FORM]
    for item in items:
        query, title, text = (" ".join(part.split()) for part in (item.query, item.title, item.text))
        grade = "" if item.grade is None else str(int(item.grade)) if item.grade.is_integer() else repr(item.grade)
        rows.append([item.query_id, item.doc_id, grade, "", query, title, shortened(text, _LONGEST)])
    return csv_lines(rows, "\t")


class _Label(NamedTuple):
    """One row that was filled in; without ``relevance``, the list does not say what the grade was."""

    query_id: str
    doc_id: str
    relevance: str | None
    new_grade: float
    line: int | None


def apply_review(qrels: Any, reviewed: Any) -> Qrels:
    """Put the new grades of a reviewed list into judgments.

    Parameters
    ----------
    qrels
        The judgments that the list was made from; a `Qrels`, or anything that `Qrels.of` takes. They stay as they are.
    reviewed
        A file that `ReviewList.tsv` wrote, with numbers in the column ``new_grade``; as CSV it is understood too. Or
        a data frame, or a list of dicts with these columns. Rows without a new grade change nothing.

    Returns
    -------
    Qrels
        In the same order; documents that were not judged come last.

    Raises
    ------
    InputError
        If no grade is filled in, one is not a number, a row is not of these judgments (an unknown topic, another grade
        than it had), a document is listed twice with different grades, or has several labels.

    Examples
    --------
    >>> reviewed = [{"query_id": "q", "doc_id": "b", "relevance": 0, "new_grade": 2},
    ...             {"query_id": "q", "doc_id": "x", "relevance": None, "new_grade": 1}]
    >>> apply_review({"q": {"a": 1, "b": 0}}, reviewed).table.to_pydict()["relevance"]
    [1.0, 2.0, 1.0]
    """
    known = Qrels.of(qrels)
    where = str(reviewed) if isinstance(reviewed, (str, Path)) else "<reviewed>"
    index, old = known.index, known.table
    if old.num_rows > len(index.topic):
        problem = "some documents have several labels (subtopics, assessors), and a review has one new grade"
        raise InputError(problem, fix="review the judgments of each by itself", path=known.where)
    labels = _filled(reviewed, where)
    for label in labels.values():
        if label.query_id not in index.codes:
            problem = f"the qrels have no topic {label.query_id!r}"
            raise InputError(problem, fix=_OTHER, path=where, line=label.line)
    codes = np.array([index.codes[query] for query, _ in labels], dtype=np.int64)
    rows = index.rows_of(codes, pa.array([doc for _, doc in labels], pa.string())).tolist()
    for label, row in zip(labels.values(), rows, strict=True):
        _refuse_other(label, None if row < 0 else float(index.grade[row]), where)
    new = {key: label.new_grade for key, label in labels.items()}
    keys = zip(old["query_id"].to_pylist(), old["doc_id"].to_pylist(), strict=True)
    grades = [new.get(key, grade) for key, grade in zip(keys, old["relevance"].to_pylist(), strict=True)]
    table = old.set_column(old.column_names.index("relevance"), "relevance", pa.array(grades, pa.float64()))
    added = [(*key, new[key], "0") for key, row in zip(labels, rows, strict=True) if row < 0]
    names = ("query_id", "doc_id", "relevance", "iteration")
    columns = dict(zip(names, zip(*added, strict=True) if added else [()] * 4, strict=True))
    more = pa.table({name: pa.array(columns[name], old[name].type) for name in old.column_names})
    return Qrels(pa.concat_tables([table, more]), known.name, known.where, origin=known.origin)


def _filled(reviewed: Any, where: str) -> dict[tuple[str, str], _Label]:
    """Read the rows in which a new grade is filled in."""
    labels: dict[tuple[str, str], _Label] = {}
    for line, row in records_of(reviewed, where, "reviewed labels", _FIX):
        if lacking := [name for name in _NEEDED if name not in row]:
            raise InputError(f"no column {lacking[0]} in it", fix=_FIX, path=where, line=line)
        if not _text(row["new_grade"]):
            continue
        query = id_text(row["query_id"], "query id", path=where, line=line)
        doc = id_text(row["doc_id"], "document id", path=where, line=line)
        had = _text(row["relevance"]) if "relevance" in row else None
        label = _Label(query, doc, had, _grade(row["new_grade"], where, line), line)
        before = labels.setdefault((query, doc), label)
        if before.new_grade != label.new_grade:
            both = f"{before.new_grade:g} and {label.new_grade:g}"
            problem = f"document {doc} of topic {query} has two new grades, {both}"
            raise InputError(problem, fix="decide for one", path=where, line=line)
    if not labels:
        raise InputError("no new grade is filled in", fix="write grades into the column new_grade", path=where)
    return labels


def _grade(text: Any, where: str, line: int | None) -> float:
    try:
        value = read_number(text)
    except ValueError as error:
        raise InputError(f"the new grade {text!r:.60} {error}", fix="write 0, 1, 2...", path=where, line=line) from None
    if math.isinf(value):
        raise InputError(f"the new grade {text!r} is infinite", fix="write 0, 1, 2...", path=where, line=line)
    return value


def _text(value: Any) -> str:
    """Give what stands in a cell; ``""``: nothing."""
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value).strip()


def _refuse_other(label: _Label, now: float | None, where: str) -> None:
    """Refuse a row that was made from other judgments."""
    if label.relevance is None:
        return
    try:
        then = read_number(label.relevance) if label.relevance else None
    except ValueError:
        then = math.nan
    if now != then:
        had, has = ("none" if grade is None else f"{grade:g}" for grade in (then, now))
        document = f"document {label.doc_id} of topic {label.query_id}"
        problem = f"the list says that {document} has grade {had}, the qrels say {has}"
        raise InputError(problem, fix=_OTHER, path=where, line=label.line)
