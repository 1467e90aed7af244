"""Compare two rankings document by document: movements, and contributions to the difference of scores."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast, get_args

import numpy as np

from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.data.texts import Texts
from judged.data.topics import Topics
from judged.diagnosis.diff.answer import Diff, DiffRow, MeanPair, Only, ScorePair, TopicDiff
from judged.errors import InputError
from judged.results.spelling import one_of, with_parameter_hints
from judged.scoring.evaluation.facts import check_common_topics, provenance_of_lists
from judged.scoring.evaluation.inputs import filter_topics, measures_of, run_pair
from judged.scoring.judging import judge
from judged.scoring.judging.align import align
from judged.scoring.judging.judged import place_hits
from judged.scoring.measures.aggregates import aggregate
from judged.stats.inputs import check_count, paired_differences

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.results.types import Floats
    from judged.scoring.judging import Judged, Precision, TiePolicy
    from judged.scoring.judging.align import Aligned
    from judged.scoring.measures.base import Measure

_TOLERANCE = 1e-9


@with_parameter_hints
def diff(
    qrels: Any,
    first: Any,
    second: Any,
    topic: str | Iterable[str] | None = None,
    *,
    measure: Any = "nDCG@10",
    cutoff: int = 10,
    limit: int = 5,
    only: Only | None = None,
    texts: Any = None,
    queries: Any = None,
    attributes: Any = None,
    where: str | None = None,
    ties: TiePolicy = "docid",
    precision: Precision = "double",
) -> Diff:
    """Compare two rankings: the movement of each document, and its contribution to the difference of scores.

    Parameters
    ----------
    qrels, first, second
        Judgments and two runs, as for `evaluate`.
    topic
        One or more topic ids. None: the topics with the largest differences in both directions.
    measure
        One or more measures. The first one determines the topics with the largest differences.
    cutoff
        Depth to which both lists are shown.
    limit
        Number of topics in each direction if `topic` is None.
    only
        If `topic` is None, show only topics on which the second run is ``worse``, or ``better``. None: both.
    texts
        Titles or texts of documents: `Texts`, a path (JSONL, CSV, TSV, Parquet), or ``{doc_id: text}``.
    queries
        Texts of topics: `Topics`, a path, or ``{query_id: text}``.
    attributes, where
        Topic filter and attributes of topics, as for `evaluate`.
    ties, precision
        As for `judge`.

    Returns
    -------
    Diff

    Raises
    ------
    InputError
        If the input cannot be read, a run has no scores, or a topic is not in the qrels.
    MeasureError
        If a measure does not exist.

    Examples
    --------
    >>> qrels = {"q": {"a": 3, "b": 1, "c": 0}}
    >>> result = diff(qrels, {"q": {"b": 3.0, "a": 2.0, "x": 1.0}}, {"q": {"a": 3.0, "b": 2.0, "c": 1.0}})
    >>> [(row.doc_id, row.first_rank, row.second_rank, row.movement, row.grade) for row in result.topics[0].rows]
    [('a', 2, 1, 'up 1', 3.0), ('b', 1, 2, 'down 1', 1.0), ('c', None, 3, 'new', 0.0), ('x', 3, None, 'gone', None)]
    >>> [round(row.changes[0], 3) for row in result.topics[0].rows]  # 3/log2(2) - 3/log2(3), over the ideal of 3.631
    [0.305, -0.102, 0.0, 0.0]
    """
    check_count("cutoff", cutoff)
    check_count("limit", limit)
    only = None if only is None else cast("Only", one_of("value of `only`", only, get_args(Only)))
    judgments, filter_notes = filter_topics(Qrels.of(qrels), where, attributes)
    runs = _two_runs(first, second)
    measures = measures_of(measure)
    rankings = [judge(judgments, run, ties=ties, precision=precision) for run in runs]
    for judged in rankings:
        check_common_topics(judged)
    provenance = provenance_of_lists(rankings, measures)
    values = np.array([[measure(judged) for measure in measures] for judged in rankings])
    query_ids = rankings[0].query_ids
    if topic is None:
        topic_indices = _largest_differences(query_ids, _gains(values[:, 0], measures[0]), limit, only)
    else:
        topic_ids = [topic] if isinstance(topic, str) else [str(name) for name in topic]
        topic_indices = [query_ids.index(rankings[0].only(name).query_ids[0]) for name in dict.fromkeys(topic_ids)]
    aligned = align(*runs, ties=ties, precision=precision)
    topics = [_topic_diff(rankings, measures, values[:, :, i], aligned, query_ids[i], cutoff) for i in topic_indices]
    if queries is not None:
        topic_texts = Topics.of(queries)
        topics = [replace(topic_diff, query=topic_texts.text(topic_diff.query_id)) for topic_diff in topics]
    if texts is not None:
        captions = Texts.of(texts, {row.doc_id for topic_diff in topics for row in topic_diff.rows})
        topics = [
            replace(topic_diff, rows=tuple(replace(row, text=captions.caption(row.doc_id)) for row in topic_diff.rows))
            for topic_diff in topics
        ]
    return Diff(
        runs=(runs[0].name, runs[1].name),
        measures=tuple(map(str, measures)),
        means=tuple(_mean_pair(measure, values[:, i]) for i, measure in enumerate(measures)),
        topics=tuple(topics),
        cutoff=cutoff,
        selected_topics=topic is not None,
        only=only,
        rel=float(getattr(measures[0], "rel", 0) or math.ulp(0.0)),
        highest=float(judgments.grades.max()),
        provenance=provenance,
        notes=(*filter_notes, *provenance.notes),
    )


def _two_runs(first_source: Any, second_source: Any) -> tuple[Run, Run]:
    runs = run_pair(first_source, second_source, ("first", "second"))
    for run in runs:
        if not run.has_scores:
            raise InputError("a run without scores has no ranking", fix="add scores to the run", path=run.where)
    return runs


def _gains(values: Floats, measure: Measure) -> Floats:
    """Return the gain of the second run on each topic: 0 if equal up to rounding, NaN without a score."""
    gains = np.full(values.shape[1], np.nan)
    gains[~np.isnan(values).any(axis=0)], _ = paired_differences(values[0], values[1])
    return gains * (-1.0 if measure.properties.higher_is_better is False else 1.0)


def _largest_differences(query_ids: Sequence[str], gains: Floats, limit: int, only: Only | None) -> list[int]:
    """Return the indices of the topics with the largest gains of the second run, then the largest losses."""
    order = sorted(np.flatnonzero(np.abs(gains) > 0).tolist(), key=lambda i: (-abs(gains[i]), query_ids[i]))
    won, lost = ([i for i in order if sign * gains[i] > 0][:limit] for sign in (1, -1))
    return won * (only != "worse") + lost * (only != "better")


def _mean_pair(measure: Measure, values: Floats) -> MeanPair:
    gains, aggregate_name = _gains(values, measure), measure.entry.aggregate
    first, second = (aggregate(aggregate_name, row[~np.isnan(row)]) for row in values)
    better, worse, same = (int(np.count_nonzero(mask)) for mask in (gains > 0, gains < 0, gains == 0))
    return MeanPair(str(measure), aggregate_name, first, second, better, worse, same)


def _topic_diff(
    lists: Sequence[Judged], measures: Sequence[Measure], values: Floats, aligned: Aligned, topic: str, cutoff: int
) -> TopicDiff:
    topic_rankings = [judged.only(topic) for judged in lists]
    doc_ids = topic_rankings[0].qrels.index.row_names
    labeled = zip(topic_rankings[0].label_row.tolist(), topic_rankings[0].label_grade.tolist(), strict=True)
    grades = {doc_ids[row]: grade for row, grade in labeled}
    rows = aligned.rows(topic) if topic in aligned.query_ids else slice(0, 0)
    shares_by_measure = [[contributions(judged, measure) for judged in topic_rankings] for measure in measures]
    diff_rows: list[DiffRow] = []
    for doc, *ranks in zip(
        aligned.doc[rows].to_pylist(), aligned.first[rows].tolist(), aligned.second[rows].tolist(), strict=True
    ):
        if any(0 < rank <= cutoff for rank in ranks):
            changes = [
                None if first is None or second is None else second.get(doc, 0.0) - first.get(doc, 0.0)
                for first, second in shares_by_measure
            ]
            diff_rows.append(DiffRow(doc, ranks[0] or None, ranks[1] or None, grades.get(doc), tuple(changes)))
    # The sort is stable: documents that only the first list shows keep their order.
    diff_rows.sort(key=lambda row: row.second_rank if row.second_rank and row.second_rank <= cutoff else math.inf)
    pairs = [
        ScorePair(str(measure), first, second, measure.properties.higher_is_better is False)
        for measure, first, second in zip(measures, *values.tolist(), strict=True)
    ]
    return TopicDiff(
        query_id=topic,
        query="",
        scores=tuple(pairs),
        rows=tuple(diff_rows),
        below=tuple(
            _remaining_contribution(pair, [row.changes[i] for row in diff_rows]) for i, pair in enumerate(pairs)
        ),
        returned=(int(topic_rankings[0].returned[0]), int(topic_rankings[1].returned[0])),
        cutoff=cutoff,
        runs=aligned.runs,
    )


def _remaining_contribution(pair: ScorePair, changes: Sequence[float | None]) -> float | None:
    """Return the contribution of the documents that are not shown to the difference."""
    contributions = [change for change in changes if change is not None]
    if len(contributions) < len(changes) or not changes or math.isnan(pair.difference):
        return None
    remaining = pair.difference - sum(contributions)
    return 0.0 if abs(remaining) < _TOLERANCE else remaining


def contributions(judged: Judged, measure: Measure) -> dict[str, float] | None:
    """Compute the contribution of each judged and returned document to the score of the only topic, by document id.

    >>> from judged.scoring.judging import judge_list
    >>> from judged.scoring.measures import parse
    >>> contributions(judge_list([3, None, 1], missing=[2]), parse("P@2")), contributions(judge_list([1]), parse("AP"))
    ({'d1': 0.5, 'd3': 0.0}, None)
    """
    # Each contribution is the score of a list with only this document, at its rank, minus the score of an empty list.
    # The measure declares that it is additive, but that is checked: contributions and the score of an empty list must
    # sum to the score. Returns None if the measure is not additive, or does not depend on relevance.
    if not measure.properties.additive or not measure.properties.depends_on_relevance:
        return None
    cutoff = getattr(measure, "cutoff", None)
    rows = np.flatnonzero(judged.within(cutoff if isinstance(cutoff, int) else None))
    rank = judged.rank[rows]
    single_document_lists = place_hits(
        judged, np.zeros(len(rows) + 1, dtype=np.int64), np.arange(len(rows)), rows, rank
    )
    scores = measure(single_document_lists)
    shares, empty_score = scores[:-1] - scores[-1], float(scores[-1])
    total = float(shares.sum()) + empty_score
    if not math.isclose(total, float(measure(judged)[0]), rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
        return None
    by_document = dict.fromkeys(judged.doc, 0.0)
    docs = judged.doc
    by_document.update((docs[row], share) for row, share in zip(rows.tolist(), shares.tolist(), strict=True))
    return by_document
