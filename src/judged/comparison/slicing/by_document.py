"""`by_document`: scores by group of documents, and so which kind of document is lost."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from judged.comparison.slicing.parts import FEW, PartEstimate, ScoresOfParts
from judged.comparison.slicing.topic_slices import AGE, MINIMUM, written
from judged.data.compute import pc
from judged.data.documents import Documents
from judged.data.qrels import Qrels
from judged.errors import InputError, JudgedWarning
from judged.results import COUNT, Column, columns_of
from judged.results.blocks import Note, first_few
from judged.results.decimals import decimal, percent
from judged.scoring.evaluation import evaluate, measures_of, runs_of
from judged.stats.interval import IntervalMethod

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.results.types import Bools, Ints
    from judged.stats.interval import IntervalName


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


ALL = "all documents"


@dataclass(frozen=True, kw_only=True)
class GroupEstimate(PartEstimate):
    """One number: a measure of a run over the topics of a group, where only documents of the group are relevant."""

    relevant: int  # relevant documents of the group, counted for each topic


@dataclass(frozen=True, eq=False, repr=False)
class ScoresByDocument(ScoresOfParts[GroupEstimate]):
    """What `by_document` returns: scores by group of documents.

    Attributes
    ----------
    scores : Scores
        Of all documents.
    estimates : tuple of GroupEstimate
        By group, run and measure; ``all documents`` first, ``unknown`` ones last.
    method : IntervalMethod
        How intervals were made.
    column : str
        The column of documents that names their group.
    min_topics : int
        Topics, below which a group is small.
    notes : tuple of Note

    Examples
    --------
    >>> sources = {"d1": {"source": "web"}, "d2": {"source": "mail"}}
    >>> found = by_document({"q": {"d1": 1, "d2": 1}}, {"q": ["d1", "x"]}, "R@2", sources, "source", ci="none")
    >>> {row.part: row.value for row in found.estimates}
    {'all documents': 0.5, 'mail': 0.0, 'web': 1.0}
    """

    kind: ClassVar[str] = "documents"
    part: ClassVar[str] = "group"
    known: ClassVar[tuple[str, ...]] = ("relevant",)

    column: str
    min_topics: int
    notes: tuple[Note, ...] = ()

    @property
    def by(self) -> str:
        """By what documents are grouped."""
        return f"by {self.column} of documents"

    @property
    def rule(self) -> str:
        """How the dots of a chart were made."""
        return f"{super().rule}; only documents of one {self.column} relevant"

    def about(self, rows: Sequence[GroupEstimate]) -> tuple[Column, ...]:
        """Give how many topics groups have, and how many relevant documents."""
        return columns_of(rows, ("size", COUNT, "topics"), ("relevant", COUNT))

    def facts(self) -> dict[str, Any]:
        """Give the column of documents, how intervals were made, and the least number of topics."""
        return {"by": self.column, "min_topics": self.min_topics, "ci": vars(self.method)}

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the rows are, what is lost most, and what may not be concluded."""
        said = [f"In each row only documents of one {self.column} are relevant; topics without any do not count."]
        for run in self.scores.run_names:
            rows = self.estimates_of(run, self.scores.measure_names[0])
            rows = [row for row in rows if row.part != ALL and not row.small and not math.isnan(row.value)]
            if len(rows) > 1:
                least = min(rows, key=lambda row: row.value)
                said.append(
                    f"{run} has its lowest {least.measure} where {self.column} is {least.part}: {decimal(least.value)}"
                    f" over {least.size} topics and {least.relevant} relevant documents."
                )
        said.append(
            "Compare runs within a row. Rows have different topics, and documents of other groups count as not"
            " relevant, so that comparing two rows of one run is not a test."
        )
        if any(row.small for row in self.estimates):
            said.append(f"Rows marked {FEW} have fewer than {self.min_topics} topics.")
        return tuple(said)


def by_document(
    qrels: Any,
    runs: Any,
    measures: Any,
    documents: Any,
    by: str,
    *,
    rel: float = 1,
    today: Any = None,
    date: str = "date",
    min_topics: int = MINIMUM,
    ci: IntervalName = "adjusted",
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> ScoresByDocument:
    """Score runs by group of relevant documents, to see which kind of document is lost.

    For each group, only its documents count as relevant (`document_slices`), and the topics that have such
    documents. Compare runs within a group. Groups are not to be compared with each other: their topics differ, and
    a document of another group counts as not relevant even where it stands first for good reason. Only recall
    without a cutoff does not depend on what stands above.

    Parameters
    ----------
    qrels, runs, measures
        As for `evaluate`.
    documents, by, rel, today, date
        As for `document_slices`.
    min_topics
        Topics, below which a group is shown and marked as small.
    ci, level, resamples, seed
        How the intervals over topics are made, as for `Scores.estimates`.

    Raises
    ------
    InputError
        If something cannot be read, or there is no such column.
    MeasureError
        If a measure does not exist.
    """
    method = IntervalMethod(ci, level, resamples, seed)
    facts, given, wanted = Documents.of(documents), runs_of(runs), measures_of(measures)
    grouped = group_judgments(Qrels.of(qrels), facts, by, rel=rel, today=today, date=date)
    if ALL in grouped.names:
        raise InputError(f"a group is called {ALL!r}", fix=f"rename this {by}", path=facts.where)
    whole = evaluate(grouped.qrels, given, wanted, documents=facts)
    scores, counts = {ALL: whole}, {ALL: int(grouped.relevant.sum())}
    for at, name in enumerate(grouped.names):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", JudgedWarning)  # topics that a run lacks: said of all documents
            group = evaluate(grouped.only(at), given, wanted, documents=facts)
        # over all topics, so that a run that lacks the group's topics is still one of these
        kept = set(grouped.qrels.table["query_id"].filter(grouped.rows_of_topics(at)).to_pylist())
        scores[name] = group.over_topics(np.array([query in kept for query in group.query_ids], dtype=np.bool_))
        counts[name] = int((grouped.relevant & (grouped.group == at)).sum())
    sizes = {name: len(group.query_ids) for name, group in scores.items()}
    estimates = tuple(
        GroupEstimate(**vars(row), part=name, size=sizes[name], relevant=counts[name], small=sizes[name] < min_topics)
        for name, group in scores.items()
        for row in group.estimates(ci=ci, level=level, resamples=resamples, seed=seed)
    )
    notes = list(whole.notes)
    if UNKNOWN in counts:
        some = f"{counts[UNKNOWN]} of {counts[ALL]} relevant documents ({percent(counts[UNKNOWN] / counts[ALL])})"
        notes.append(Note("unknown-group", f"the {by} of {some} is not known"))
    if small := [name for name, size in sizes.items() if size < min_topics]:
        text = f"fewer than {min_topics} topics, too few for a mean to say much: {first_few(small)}"
        notes.append(Note("small-groups", text))
    return ScoresByDocument(whole, estimates, method, by, min_topics, tuple(notes))
