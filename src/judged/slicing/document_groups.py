"""Judgments in which only documents of one group are relevant: sources, languages, ages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from judged.data import Qrels
from judged.data.compute import pc
from judged.data.documents import Documents
from judged.data.fact_files import typed_facts
from judged.errors import InputError
from judged.slicing.ages import days_by_doc, today_of
from judged.slicing.bands import AGE

if TYPE_CHECKING:
    from judged._types import Bools, Ints

UNKNOWN = "unknown"
_MOST_GROUPS = 50
_MOST_NUMBERS = 12


class Grouped(NamedTuple):
    """Judgments whose documents have groups; N rows."""

    qrels: Qrels
    names: tuple[str, ...]  # G: the groups that have relevant documents, in the order in which they are shown
    group: Ints  # (N,): the group of each row's document; -1 where it has no relevant ones
    relevant: Bools  # (N,)

    def only(self, at: int) -> Qrels:
        """Give the judgments of all topics in which only documents of one group are relevant."""
        grades, table = self.qrels.grades, self.qrels.table
        kept = np.where((self.group != at) & (grades > 0), 0.0, grades)
        place = table.column_names.index("relevance")
        return Qrels(table.set_column(place, "relevance", pa.array(kept)), self.qrels.name, self.qrels.where)

    def rows_of_topics(self, at: int) -> Bools:
        """Mark the rows of topics that have relevant documents of one group: (N,)."""
        topics = self.qrels.table["query_id"]
        kept = pc.unique(topics.filter(pa.array(self.relevant & (self.group == at))))
        return pc.is_in(topics, value_set=kept).to_numpy(zero_copy_only=False)


def document_slices(
    qrels: Any, documents: Any, by: str, *, rel: float = 1, today: Any = None, date: str = "date"
) -> dict[str, Qrels]:
    """Make judgments by group of documents: in each, only the documents of one group are relevant.

    Every measure then answers which kind of document is lost. The positive grades of all other documents become 0;
    negative grades stay as they are; topics without a relevant document of the group are left out.

    Parameters
    ----------
    qrels, documents
        What `Qrels.of` and `Documents.of` take.
    by
        A column of documents: text, true and false, numbers of at most 12 values, or the column of dates, which
        makes bands of age in days: 0-1, 2-7, 8-30, 31-365, 366+, after today.
    rel
        The least grade that is relevant.
    today
        The day from which ages are counted; None for the newest date of the documents.
    date
        The column that holds dates.

    Returns
    -------
    dict
        From group to judgments: that with most relevant documents first (ages: the newest first), and documents of
        which nothing is known last, as ``unknown``. Groups without a relevant document are left out.

    Raises
    ------
    InputError
        If there is no such column, it has too many values, or nothing is relevant.

    Examples
    --------
    >>> sources = {"d1": {"source": "web"}, "d2": {"source": "mail"}}
    >>> found = document_slices({"q1": {"d1": 2, "d2": 1, "d3": 0}, "q2": {"d2": 1}}, sources, "source")
    >>> {group: judged.table.to_pydict()["relevance"] for group, judged in found.items()}
    {'mail': [0.0, 1.0, 0.0, 1.0], 'web': [2.0, 0.0, 0.0]}
    """
    grouped = group_judgments(Qrels.of(qrels), Documents.of(documents), by, rel=rel, today=today, date=date)
    made: dict[str, Qrels] = {}
    for at, name in enumerate(grouped.names):
        whole = grouped.only(at)
        table = whole.table.filter(pa.array(grouped.rows_of_topics(at)))
        made[name] = Qrels(table, f"{grouped.qrels.name}, {by}={name}", whole.where)
    return made


def group_judgments(
    qrels: Qrels, documents: Documents, by: str, *, rel: float, today: Any = None, date: str = "date"
) -> Grouped:
    """Give each judgment the group of its document."""
    if by not in documents.facts:
        known = ", ".join(documents.facts) or "nothing"
        raise InputError(f"no column {by!r} (there is {known})", fix="name one of these", path=documents.where)
    if today is not None and by != date:
        raise InputError(f"today says nothing of {by}", fix="leave it out, or name the column of dates: date=")
    grades = qrels.grades
    relevant = (grades >= rel) & (grades >= 0)
    if not relevant.any():
        raise InputError(f"no document has the grade {rel:g} or more", fix="choose rel=", path=qrels.where)
    group_of = _groups(documents, by, today, date)
    docs = qrels.table["doc_id"].to_pylist()
    names = np.array([group_of.get(doc) or UNKNOWN for doc in docs], dtype=object)
    ordered = _ordered(names[relevant].tolist(), AGE.names[1:] + AGE.names[:1] if by == date else ())
    code = {name: at for at, name in enumerate(ordered)}
    return Grouped(qrels, ordered, np.array([code.get(name, -1) for name in names], dtype=np.int64), relevant)


def _groups(documents: Documents, by: str, today: Any, date: str) -> dict[str, str | None]:
    """Name the group of each document; None where it is not known."""
    table = typed_facts(documents.table, "doc_id", documents.where)
    docs, values = table["doc_id"].to_pylist(), table[by].to_pylist()
    if by == date:
        days = days_by_doc(docs, values, by, documents.where)
        now = today_of(today, days)
        return {doc: AGE.of((now - day).days) for doc, day in days.items()}
    distinct = {*values} - {None}
    number = str(table[by].type) == "double"
    if len(distinct) > (_MOST_NUMBERS if number else _MOST_GROUPS):
        raise InputError(
            f"the column {by} has {len(distinct)} different values: too many for groups",
            fix="add a column that names a few groups" + (", or name it the column of dates: date=" if number else ""),
            path=documents.where,
        )
    shown = {value: f"{value:g}" if isinstance(value, float) else str(value) for value in distinct}
    shown |= {value: str(value).lower() for value in distinct if isinstance(value, bool)}
    return {doc: shown.get(value) for doc, value in zip(docs, values, strict=True)}


def _ordered(names: list[str], order: tuple[str, ...]) -> tuple[str, ...]:
    """Put the groups of relevant documents in order: as given, else the most frequent first; unknown ones last."""
    found = sorted({*names}, key=lambda name: order.index(name) if name in order else -1)
    if not order:
        found = sorted(found, key=lambda name: (-names.count(name), name))
    return tuple(sorted(found, key=lambda name: name == UNKNOWN))
