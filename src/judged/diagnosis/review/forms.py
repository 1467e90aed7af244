"""Lists of labels to review as files, and the judgments that come back from one that was filled in."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import pyarrow as pa

from judged.data import Qrels
from judged.data.ids import id_text
from judged.data.records import read_records, unique_columns
from judged.data.rows import table_of
from judged.data.texts import shortened
from judged.decimals import read_number
from judged.diagnosis.review.layout import sentences
from judged.diagnosis.review.rates import ReviewRates
from judged.errors import InputError
from judged.evaluation.document import number
from judged.tables import csv_lines, csv_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.data.index import QrelsIndex
    from judged.diagnosis.review.rows import ReviewItem, ReviewTable

_FORM = ("query_id", "doc_id", "relevance", "new_grade", "query", "title", "text")
_NEEDED = ("query_id", "doc_id", "new_grade")
_LONGEST = 1000  # characters of a text in a form: cells of spreadsheets have an end
_FIX = "fill in what ReviewList.tsv wrote: query_id, doc_id, relevance, new_grade"


def as_csv(listed: ReviewTable) -> str:
    """Write one row an item, with columns for each run."""
    several = len(listed.runs) > 1
    header = ["query_id", "doc_id", "kind", "grade", "other_grade"]
    header += [f"rank {run}" for run in listed.runs] + [f"change {run}" for run in listed.runs]
    header += [*(["difference", "turns"] if several else []), "slices", "query", "title", "text"]
    rows: list[list[str]] = [header]
    for one in listed.items:
        numbers = [one.grade, one.other_grade, *one.ranks.values(), *one.change.values()]
        numbers += [one.difference, str(one.turns).lower()] if several else []
        slices = "; ".join(one.slices)
        cells = [one.query_id, one.doc_id, one.kind, *map(_cell, numbers), slices, one.query, one.title, one.text]
        rows.append(cells)
    return csv_lines(rows)


def _cell(value: float | str | None) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else str(int(value)) if value.is_integer() else repr(value)
    return "" if value is None else str(value)


def as_jsonl(listed: ReviewTable) -> str:
    """Write one object an item."""
    return "\n".join(json.dumps(_item(one), ensure_ascii=False) for one in listed.items)


def _item(one: ReviewItem) -> dict[str, Any]:
    made = dict(vars(one))
    made |= {"ranks": dict(one.ranks), "slices": list(one.slices), "missed": list(one.missed)}
    made["change"] = {run: number(value) for run, value in one.change.items()}
    made["difference"] = None if one.difference is None else number(one.difference)
    return made


def document(listed: ReviewTable) -> dict[str, Any]:
    """Lay out everything as plain Python values."""
    return {
        **listed.provenance.to_dict(),
        "measure": listed.measure,
        "k": listed.k,
        "rel": listed.rel,
        "highest": listed.highest,
        "kinds": list(listed.kinds),
        "found": dict(listed.found),
        "turning": listed.turning,
        "rates": [_rates(one) for one in listed.rates],
        "items": [_item(one) for one in listed.items],
        "sentences": list(sentences(listed)),
        "warnings": list(listed.warnings),
    }


def _rates(one: ReviewRates) -> dict[str, Any]:
    rates = {"false_positive_rate": one.false_positive_rate, "unjudged_rate": one.unjudged_rate}
    rates["miss_rate"] = one.miss_rate
    return vars(one) | {name: number(rate) for name, rate in rates.items()}


def as_form(listed: ReviewTable) -> str:
    """Write judgments with an empty column for the new grade; texts in one line, those of documents cut."""
    rows: list[list[str]] = [list(_FORM)]
    for one in listed.items:
        query, title, text = (" ".join(part.split()) for part in (one.query, one.title, one.text))
        cells = [one.query_id, one.doc_id, _cell(one.grade), "", query, title, shortened(text, _LONGEST)]
        rows.append(cells)
    return csv_lines(rows, "\t")


class _Filled(NamedTuple):
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
        If no grade is filled in, one is no number, a row is not of these judgments (an unknown topic, another grade
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
    index, topics = known.index, known.index.codes
    if known.table.num_rows > len(index.topic):
        problem = "some documents have several labels (subtopics, assessors), and a review has one new grade"
        raise InputError(problem, fix="review the judgments of each by itself", path=known.where)
    filled = _filled(reviewed, where)
    for one in filled.values():
        if one.query_id not in topics:
            problem = f"the qrels have no topic {one.query_id!r}"
            raise InputError(problem, fix="give the qrels that the list was made from", path=where, line=one.line)
    codes = np.array([topics[query] for query, _ in filled], dtype=np.int64)
    rows = index.rows_of(codes, pa.array([doc for _, doc in filled], pa.string()))
    for one, row in zip(filled.values(), rows.tolist(), strict=True):
        _refuse_other(one, row, index, where)
    new = {(one.query_id, one.doc_id): one.new_grade for one in filled.values()}
    return _applied(known, new, [key for key, row in zip(filled, rows.tolist(), strict=True) if row < 0])


def _filled(reviewed: Any, where: str) -> dict[tuple[str, str], _Filled]:
    found: dict[tuple[str, str], _Filled] = {}
    for line, row in _rows(reviewed, where):
        if lacking := [name for name in _NEEDED if name not in row]:
            raise InputError(f"no column {lacking[0]} in it", fix=_FIX, path=where, line=line)
        grade = row["new_grade"]
        if grade is None or not str(grade).strip() or (isinstance(grade, float) and math.isnan(grade)):
            continue
        query = id_text(row["query_id"], "query id", path=where, line=line)
        doc = id_text(row["doc_id"], "document id", path=where, line=line)
        one = _Filled(
            query, doc, _said(row["relevance"]) if "relevance" in row else None, _grade(grade, where, line), line
        )
        before = found.setdefault((query, doc), one)
        if before.new_grade != one.new_grade:
            problem = f"document {doc} of topic {query} has two new grades, {before.new_grade:g} and {one.new_grade:g}"
            raise InputError(problem, fix="decide for one", path=where, line=line)
    if not found:
        raise InputError("no new grade is filled in", fix="write grades into the column new_grade", path=where)
    return found


def _grade(text: Any, where: str, line: int | None) -> float:
    try:
        value = read_number(text)
    except ValueError as error:
        raise InputError(f"the new grade {text!r:.60} {error}", fix="write 0, 1, 2...", path=where, line=line) from None
    if math.isinf(value):
        raise InputError(f"the new grade {text!r} is infinite", fix="write 0, 1, 2...", path=where, line=line)
    return value


def _said(value: Any) -> str:
    """Give the grade that the list says a document had; ``""``: none."""
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value).strip()


def _rows(reviewed: Any, where: str) -> Iterator[tuple[int | None, Mapping[str, Any]]]:
    if isinstance(reviewed, (str, Path)):
        for line, row in read_records(reviewed):
            yield line, {name: csv_text(value) if isinstance(value, str) else value for name, value in row.items()}
    elif hasattr(reviewed, "__arrow_c_stream__"):
        yield from enumerate(unique_columns(table_of(reviewed), where).to_pylist(), 1)
    elif isinstance(reviewed, Iterable) and not isinstance(reviewed, (bytes, Mapping)):
        for at, row in enumerate(cast("Iterable[Any]", reviewed), 1):
            if not isinstance(row, Mapping):
                raise InputError(f"{row!r:.40} is no row of a reviewed list", fix=_FIX, path=where)
            yield at, cast("Mapping[str, Any]", row)
    else:
        raise InputError(f"a {type(reviewed).__name__} is no reviewed list", fix=_FIX, path=where)


def _refuse_other(one: _Filled, row: int, index: QrelsIndex, where: str) -> None:
    """Refuse a row that was made from other judgments."""
    if one.relevance is None:
        return
    now = None if row < 0 else float(index.grade[row])
    try:
        then = read_number(one.relevance) if one.relevance else None
    except ValueError:
        then = math.nan
    if now != then:
        had, has = ("none" if grade is None else f"{grade:g}" for grade in (then, now))
        raise InputError(
            f"the list says that document {one.doc_id} of topic {one.query_id} has grade {had}, the qrels say {has}",
            fix="give the qrels that the list was made from",
            path=where,
            line=one.line,
        )


def _applied(known: Qrels, new: Mapping[tuple[str, str], float], added: list[tuple[str, str]]) -> Qrels:
    old = known.table
    keys = zip(old["query_id"].to_pylist(), old["doc_id"].to_pylist(), strict=True)
    grades = [new.get(key, grade) for key, grade in zip(keys, old["relevance"].to_pylist(), strict=True)]
    place = old.column_names.index("relevance")
    table = old.set_column(place, "relevance", pa.array(grades, pa.float64()))
    if added:
        columns: dict[str, Any] = {
            "query_id": [query for query, _ in added],
            "doc_id": [doc for _, doc in added],
            "relevance": [new[key] for key in added],
        }
        if "iteration" in old.column_names:
            columns["iteration"] = ["0"] * len(added)
        part = pa.table({name: pa.array(columns[name], old[name].type) for name in old.column_names})
        table = pa.concat_tables([table, part])
    return Qrels(table, known.name, known.where)
