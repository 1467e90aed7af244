"""Facts about relevant documents: judgments by group of documents, and the attributes that topics get from them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from judged.comparison.slicing.topic_slices import AGE, written
from judged.data.compute import pc
from judged.data.documents import Documents
from judged.data.qrels import Qrels
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.results.types import Bools, Ints

UNKNOWN = "unknown"
_MOST_GROUPS = 50  # values of a column: with more it is a title or a text, and no group
_MOST_NUMBERS = 12

Columns = dict[str, list[Any]]


class Grouped(NamedTuple):
    """Judgments whose documents have groups; N rows."""

    qrels: Qrels
    names: tuple[str, ...]  # G: the groups that have relevant documents, in the order in which they are shown
    group: Ints  # (N,): the group of each row's document; -1 where it has no relevant ones
    relevant: Bools  # (N,)

    def only(self, at: int) -> Qrels:
        """Give the judgments of all topics in which only documents of one group are relevant."""
        grades = self.qrels.grades
        return replace(self.qrels.regraded(np.where((self.group != at) & (grades > 0), 0.0, grades)), sha256=None)

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
        made[name] = replace(whole, table=table, name=f"{grouped.qrels.name}, {by}={name}")
    return made


def group_judgments(
    qrels: Qrels, documents: Documents, by: str, *, rel: float, today: Any = None, date: str = "date"
) -> Grouped:
    """Give each judgment the group of its document."""
    if by not in documents.names:
        known = ", ".join(documents.names) or "nothing"
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
    counts = Counter(names[relevant].tolist())
    order = (
        [*AGE.names[1:], AGE.names[0], UNKNOWN]
        if by == date
        else sorted(counts, key=lambda name: (name == UNKNOWN, -counts[name], name))
    )
    ordered = tuple(name for name in order if name in counts)
    code = {name: at for at, name in enumerate(ordered)}
    return Grouped(qrels, ordered, np.array([code.get(name, -1) for name in names], dtype=np.int64), relevant)


def _groups(documents: Documents, by: str, today: Any, date: str) -> dict[str, str | None]:
    """Name the group of each document; None where it is not known."""
    docs, values = documents.ids, documents.table[by].to_pylist()
    if by == date:
        return {doc: AGE.of(days) for doc, days in _ages(docs, values, by, today, documents.where).items()}
    distinct = {*values} - {None}
    number = str(documents.table[by].type) == "double"
    if len(distinct) > (_MOST_NUMBERS if number else _MOST_GROUPS):
        raise InputError(
            f"the column {by} has {len(distinct)} different values: too many for groups",
            fix="add a column that names a few groups" + (", or name it the column of dates: date=" if number else ""),
            path=documents.where,
        )
    return {doc: None if value is None else written(value) for doc, value in zip(docs, values, strict=True)}


def document_columns(
    query_ids: Sequence[str], qrels: Qrels, documents: Documents, *, today: Any, date: str, rel: float
) -> Columns:
    """Give the attributes that a topic has from its relevant documents; None where nothing is known about these."""
    # `freshness` and `freshness_band`: the age in days of the newest one, where the documents have dates. For each
    # column of text with at most 50 values, `relevant_` and its name: the value that most of them have, or `mixed`
    # where no value is alone the most frequent.
    table, index = documents.table, qrels.index
    relevant: dict[str, list[str]] = {query: [] for query in (*query_ids, *index.topics)}
    for topic, doc, grade in zip(index.topic.tolist(), index.row_names, index.grade.tolist(), strict=True):
        if grade >= rel and grade >= 0:
            relevant[index.topics[topic]].append(doc)
    docs = documents.ids
    made: Columns = {}
    for name in documents.names:
        values = table[name].to_pylist()
        if name == date:
            days = _ages(docs, values, name, today, documents.where)
            known = [[float(days[doc]) for doc in relevant[query] if doc in days] for query in query_ids]
            ages = [min(some, default=None) for some in known]
            made |= {"freshness": ages, "freshness_band": AGE.all_of(ages)}
        elif str(table[name].type) == "string" and 0 < len({*values} - {None}) <= _MOST_GROUPS:
            group = dict(zip(docs, values, strict=True))
            made[f"relevant_{name}"] = [_most_frequent(relevant[query], group) for query in query_ids]
    if (today is not None or date != "date") and "freshness" not in made:
        raise InputError(
            f"there is no column {date!r} to count ages from (there is {', '.join(documents.names) or 'nothing'})",
            fix="name the column of dates: date=",
            path=documents.where,
        )
    return made


def _most_frequent(docs: Sequence[str], group: dict[str, str | None]) -> str | None:
    """Name the group that most documents are of; ``mixed`` for a tie, None where no group is known.

    >>> _most_frequent(["a", "b", "c"], {"a": "web", "b": "web", "c": "mail"}), _most_frequent(["x"], {})
    ('web', None)
    """
    counts = Counter(name for doc in docs if (name := group.get(doc)) is not None).most_common(2)
    if not counts:
        return None
    return "mixed" if len(counts) == 2 and counts[0][1] == counts[1][1] else counts[0][0]


def day_of(value: Any, what: str, where: str = "") -> date:
    """Read a day: a date, or text or a number such as ``2024-05-31``, ``2024-05-31T12:00:00Z`` and ``20240531``.

    >>> day_of("2024-05-31T23:59:00+02:00", "today"), day_of(20240531.0, "today")
    (datetime.date(2024, 5, 31), datetime.date(2024, 5, 31))
    """
    # The time of day and its zone are not looked at.
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    text = f"{value:.0f}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value).strip()
    digits = text[:8].isdigit() and text[8:9] in {"", "T", " "}
    try:
        return date.fromisoformat(text[:8] if digits else text[:10])
    except ValueError:
        raise InputError(f"{what} is {text[:40]!r}, no date", fix="write 2024-05-31", path=where) from None


def days_by_doc(docs: Sequence[str], values: list[Any], column: str, where: str) -> dict[str, date]:
    """Give the day of each document that has one."""
    known = zip(docs, values, strict=True)
    return {doc: day_of(value, f"the {column} of document {doc}", where) for doc, value in known if value is not None}


def _ages(docs: Sequence[str], values: list[Any], column: str, today: Any, where: str) -> dict[str, int]:
    """Give ages in days, of documents that have one: against a day that is named or their newest, never the clock's."""
    days = days_by_doc(docs, values, column, where)
    if today is None and not days:
        raise InputError("no document has a date", fix="name today, or leave out the column of dates")
    now = max(days.values()) if today is None else day_of(today, "today")
    return {doc: (now - day).days for doc, day in days.items()}
