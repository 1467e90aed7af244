"""`by_document`: scores by group of relevant documents, which show the kinds of documents that a system misses."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from judged.comparison.slicing.parts import FEW, PartEstimate, PartScores
from judged.comparison.slicing.topic_slices import DEFAULT_MIN_TOPICS, format_value
from judged.data.compute import pc
from judged.data.documents import Documents
from judged.data.freshness import DatedDocuments, dated_documents
from judged.data.qrels import Qrels
from judged.errors import InputError, JudgedWarning
from judged.results import COUNT, Column, columns_of
from judged.results.blocks import Note, first_few
from judged.results.decimals import decimal, percent
from judged.results.spelling import use_one_of
from judged.scoring.evaluation import evaluate, measures_of, runs_of
from judged.stats.interval import IntervalMethod

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.results.types import Bools, Ints
    from judged.stats.interval import IntervalName


UNKNOWN = "unknown"
FRESHNESS = "freshness"
_MAX_GROUPS = 50  # columns with more values hold titles or texts, not groups
_MAX_NUMERIC_GROUPS = 12

Columns = dict[str, list[Any]]


class GroupedQrels(NamedTuple):
    """Judgments with the group of each document; N rows."""

    qrels: Qrels
    names: tuple[str, ...]  # groups with relevant documents, in display order: (G,)
    group: Ints  # index of the group of each row, -1 for groups without relevant documents: (N,)
    relevant: Bools  # whether each row is relevant: (N,)

    def with_relevant_group(self, group: int) -> Qrels:
        """Return the judgments of all topics with only the documents of one group relevant."""
        grades = self.qrels.grades
        return replace(self.qrels.regraded(np.where((self.group != group) & (grades > 0), 0.0, grades)), sha256=None)

    def topic_rows(self, group: int) -> Bools:
        """Return a mask of the rows of topics with relevant documents of one group: (N,)."""
        topics = self.qrels.table["query_id"]
        group_topics = pc.unique(topics.filter(pa.array(self.relevant & (self.group == group))))
        return pc.is_in(topics, value_set=group_topics).to_numpy(zero_copy_only=False)


def document_slices(qrels: Any, documents: Any, by: str, *, rel: float = 1) -> dict[str, Qrels]:
    """Create judgments for each group of documents, with only the documents of the group relevant.

    Scores with these judgments show which kinds of documents a system misses. Positive grades of other documents become
    0; negative grades are unchanged; topics without relevant documents of the group are removed.

    Parameters
    ----------
    qrels, documents
        Inputs of `Qrels.of` and `Documents.of`.
    by
        Column of documents: text, booleans, or numbers with at most 12 values; or ``freshness``, for bands of ages.
        `judged.data.dated_documents` sets the reference day and the bands of ages.
    rel
        Lowest relevant grade.

    Returns
    -------
    dict
        From group to judgments, by decreasing number of relevant documents (ages: newest first). Documents without a
        value form the group ``unknown`` (ages: ``no date``), which is last. Groups without relevant documents are
        omitted.

    Raises
    ------
    InputError
        If there is no such column, it has too many values, or no document is relevant.

    Examples
    --------
    >>> sources = {"d1": {"source": "web"}, "d2": {"source": "mail"}}
    >>> by_source = document_slices({"q1": {"d1": 2, "d2": 1, "d3": 0}, "q2": {"d2": 1}}, sources, "source")
    >>> {group: qrels.table.to_pydict()["relevance"] for group, qrels in by_source.items()}
    {'mail': [0.0, 1.0, 0.0, 1.0], 'web': [2.0, 0.0, 0.0]}
    """
    grouped = group_judgments(Qrels.of(qrels), Documents.of(documents), by, rel=rel)
    result: dict[str, Qrels] = {}
    for group, name in enumerate(grouped.names):
        group_qrels = grouped.with_relevant_group(group)
        table = group_qrels.table.filter(pa.array(grouped.topic_rows(group)))
        result[name] = replace(group_qrels, table=table, name=f"{grouped.qrels.name}, {by}={name}")
    return result


def group_judgments(qrels: Qrels, documents: Documents, by: str, *, rel: float) -> GroupedQrels:
    """Assign each judgment the group of its document."""
    dated = dated_documents(documents) if _is_freshness(by, documents) else None
    if dated is None and by not in documents.names:
        fix = use_one_of(documents.names) if documents.names else "add columns to the table"
        raise InputError(f"no column {by!r}", fix=fix, path=documents.where)
    grades = qrels.grades
    relevant = (grades >= rel) & (grades >= 0)
    if not relevant.any():
        raise InputError(f"no document has grade {rel:g} or higher", fix="use a lower rel=", path=qrels.where)
    doc_ids = qrels.table["doc_id"].to_pylist()
    if dated is None:
        group_by_doc = _group_by_doc(documents, by)
        groups = [group_by_doc.get(doc_id) or UNKNOWN for doc_id in doc_ids]
    else:
        groups = [dated.band(dated.ages.get(doc_id)) for doc_id in doc_ids]
    names = np.array(groups, dtype=object)
    counts = Counter(names[relevant].tolist())
    by_size = sorted(counts, key=lambda name: (name == UNKNOWN, -counts[name], name))
    ordered = tuple(by_size if dated is None else (name for name in dated.band_names if name in counts))
    indices = {name: i for i, name in enumerate(ordered)}
    group = np.array([indices.get(name, -1) for name in names], dtype=np.int64)
    return GroupedQrels(qrels, ordered, group, relevant)


def _is_freshness(by: str, documents: Documents) -> bool:
    return by == FRESHNESS and FRESHNESS not in documents.names


def _group_by_doc(documents: Documents, by: str) -> dict[str, str | None]:
    doc_ids, values = documents.ids, documents.table[by].to_pylist()
    distinct = {*values} - {None}
    is_number = str(documents.table[by].type) == "double"
    if len(distinct) > (limit := _MAX_NUMERIC_GROUPS if is_number else _MAX_GROUPS):
        raise InputError(
            f"a column may have at most {limit} distinct values, {by} has {len(distinct)}",
            fix=f"use a column with fewer values, or {FRESHNESS} for bands of ages",
            path=documents.where,
        )
    names = [None if value is None else format_value(value) for value in values]
    return dict(zip(doc_ids, names, strict=True))


def document_columns(query_ids: Sequence[str], qrels: Qrels, documents: Documents, *, rel: float) -> Columns:
    """Compute topic attributes from relevant documents; None if their values are unknown."""
    # `freshness_days` and `freshness`: age of the newest relevant document, and its band. For each text column with at
    # most 50 values, `relevant_<column>`: the most frequent value of the relevant documents, or `mixed` for a tie.
    dated = documents if isinstance(documents, DatedDocuments) else None
    table, index = documents.table, qrels.index
    relevant: dict[str, list[str]] = {query: [] for query in (*query_ids, *index.topics)}
    for topic, doc_id, grade in zip(index.topic.tolist(), index.row_names, index.grade.tolist(), strict=True):
        if grade >= rel and grade >= 0:
            relevant[index.topics[topic]].append(doc_id)
    result: Columns = {}
    if dated is not None:
        ages = [
            min((dated.ages[doc] for doc in relevant[query] if doc in dated.ages), default=None) for query in query_ids
        ]
        result["freshness"] = [
            dated.band(age) if relevant[query] else None for query, age in zip(query_ids, ages, strict=True)
        ]
        result["freshness_days"] = ages
    for name in documents.names:
        values = table[name].to_pylist()
        is_date = dated is not None and name == dated.date_column
        if not is_date and str(table[name].type) == "string" and 0 < len({*values} - {None}) <= _MAX_GROUPS:
            group = dict(zip(documents.ids, values, strict=True))
            result[f"relevant_{name}"] = [_most_frequent(relevant[query], group) for query in query_ids]
    return result


def _most_frequent(doc_ids: Sequence[str], group_by_doc: dict[str, str | None]) -> str | None:
    """Return the most frequent group of documents; ``mixed`` for a tie, None if all groups are unknown.

    >>> _most_frequent(["a", "b", "c"], {"a": "web", "b": "web", "c": "mail"}), _most_frequent(["x"], {})
    ('web', None)
    """
    counts = Counter(name for doc_id in doc_ids if (name := group_by_doc.get(doc_id)) is not None).most_common(2)
    if not counts:
        return None
    return "mixed" if len(counts) == 2 and counts[0][1] == counts[1][1] else counts[0][0]


ALL = "all documents"


@dataclass(frozen=True, kw_only=True)
class GroupEstimate(PartEstimate):
    """Value of a measure for a run and a group; only documents of the group are relevant."""

    relevant: int  # pairs of topic and relevant document in the group


@dataclass(frozen=True, eq=False, repr=False)
class ScoresByDocument(PartScores[GroupEstimate]):
    """Result of `by_document`: scores by group of documents.

    Attributes
    ----------
    scores : Scores
        Scores with all documents.
    estimates : tuple of GroupEstimate
        By group, run, and measure; ``all documents`` first, ``unknown`` last.
    method : IntervalMethod
        Method of the intervals.
    column : str
        Column of documents that defines the groups.
    min_topics : int
        Groups with fewer topics are marked as small.
    notes : tuple of Note

    Examples
    --------
    >>> sources = {"d1": {"source": "web"}, "d2": {"source": "mail"}}
    >>> result = by_document({"q": {"d1": 1, "d2": 1}}, {"q": ["d1", "x"]}, "R@2", sources, "source", ci="none")
    >>> {row.part: row.value for row in result.estimates}
    {'all documents': 0.5, 'mail': 0.0, 'web': 1.0}
    """

    kind: ClassVar[str] = "documents"
    part: ClassVar[str] = "group"
    part_columns: ClassVar[tuple[str, ...]] = ("relevant",)

    column: str
    min_topics: int
    notes: tuple[Note, ...] = ()

    @property
    def by(self) -> str:
        """Phrase that names the grouping."""
        return f"by {self.column} of documents"

    @property
    def rule(self) -> str:
        """Description of the intervals in charts."""
        return f"{super().rule}; in each row, only documents with one value of {self.column} count as relevant"

    def part_info(self, rows: Sequence[GroupEstimate]) -> tuple[Column, ...]:
        """Return the number of topics and of relevant documents of each group."""
        return columns_of(rows, ("size", COUNT, "topics"), ("relevant", COUNT))

    def facts(self) -> dict[str, Any]:
        """Return the column, the minimum number of topics, and the interval method."""
        return {"by": self.column, "min_topics": self.min_topics, "ci": vars(self.method)}

    @property
    def sentences(self) -> tuple[str, ...]:
        """Explanation of the rows, the lowest score of each run, and caveats."""
        sentences = [
            (
                f"In each row, only documents with one value of {self.column} count as relevant. Topics"
                " without a relevant document of this value are excluded."
            )
        ]
        for run in self.scores.run_names:
            rows = self.estimates_of(run, self.scores.measure_names[0])
            rows = [row for row in rows if row.part != ALL and not row.small and not math.isnan(row.value)]
            if len(rows) > 1:
                lowest = min(rows, key=lambda row: row.value)
                sentences.append(
                    f"{run} has its lowest {lowest.measure} where {self.column} is {lowest.part}:"
                    f" {decimal(lowest.value)} over {lowest.size} topics and {lowest.relevant} relevant documents."
                )
        sentences.append(
            "Compare runs within a row, not rows with each other: each row has its own topics, and only the relevant"
            " documents of the row's group count as relevant."
        )
        if any(row.small for row in self.estimates):
            sentences.append(f"Rows marked {FEW} have fewer than {self.min_topics} topics.")
        return tuple(sentences)


def by_document(
    qrels: Any,
    runs: Any,
    measures: Any,
    documents: Any,
    by: str,
    *,
    rel: float = 1,
    min_topics: int = DEFAULT_MIN_TOPICS,
    ci: IntervalName = "adjusted",
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> ScoresByDocument:
    """Score runs by group of relevant documents, to find the kinds of documents that they miss.

    For each group, only its documents count as relevant (`document_slices`), on topics that have such documents.
    Compare runs within a group, not groups with each other: their topics differ, and documents of other groups count as
    not relevant. Only recall without a cutoff does not depend on documents of other groups.

    Parameters
    ----------
    qrels, runs, measures
        As in `evaluate`.
    documents, by, rel
        As in `document_slices`.
    min_topics
        Groups with fewer topics are marked as small.
    ci, level, resamples, seed
        Method of the intervals over topics, as in `Scores.estimates`.

    Raises
    ------
    InputError
        If input is invalid, or there is no such column.
    MeasureError
        If a measure does not exist.

    Examples
    --------
    >>> documents = {"a": {"kind": "law"}, "b": {"kind": "news"}}
    >>> result = by_document({"q": {"a": 1, "b": 1}}, {"run": {"q": ["a"]}}, "R@2", documents, "kind", ci="none")
    >>> [(row.part, row.value) for row in result.estimates]
    [('all documents', 0.5), ('law', 1.0), ('news', 0.0)]
    """
    method = IntervalMethod(ci, level, resamples, seed)
    table, runs, measures = Documents.of(documents), runs_of(runs), measures_of(measures)
    table = dated_documents(table) if _is_freshness(by, table) else table
    grouped = group_judgments(Qrels.of(qrels), table, by, rel=rel)
    if ALL in grouped.names:
        raise InputError(f"the group name {ALL!r} is reserved", fix=f"rename this {by}", path=table.where)
    overall = evaluate(grouped.qrels, runs, measures, documents=table)
    scores, counts = {ALL: overall}, {ALL: int(grouped.relevant.sum())}
    for i, name in enumerate(grouped.names):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", JudgedWarning)  # missing topics: reported for all documents
            group = evaluate(grouped.with_relevant_group(i), runs, measures, documents=table)
        # evaluate on all topics and select afterwards, so that runs without topics of the group are kept
        topics = set(grouped.qrels.table["query_id"].filter(grouped.topic_rows(i)).to_pylist())
        scores[name] = group.over_topics(np.array([query in topics for query in group.query_ids], dtype=np.bool_))
        counts[name] = int((grouped.relevant & (grouped.group == i)).sum())
    sizes = {name: len(group.query_ids) for name, group in scores.items()}
    estimates = tuple(
        GroupEstimate(**vars(row), part=name, size=sizes[name], relevant=counts[name], small=sizes[name] < min_topics)
        for name, group in scores.items()
        for row in group.estimates(ci=ci, level=level, resamples=resamples, seed=seed)
    )
    notes = [*overall.notes, *([table.note()] if by == FRESHNESS and isinstance(table, DatedDocuments) else ())]
    if UNKNOWN in counts:
        share = f"{counts[UNKNOWN]} of {counts[ALL]} relevant documents ({percent(counts[UNKNOWN] / counts[ALL])})"
        notes.append(Note("unknown-group", f"the {by} of {share} is unknown"))
    if small := [name for name, size in sizes.items() if size < min_topics]:
        text = f"groups with fewer than {min_topics} topics have unreliable means: {first_few(small)}"
        notes.append(Note("small-groups", text))
    return ScoresByDocument(overall, estimates, method, by, min_topics, tuple(notes))
