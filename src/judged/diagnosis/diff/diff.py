"""`diff`: two rankings side by side, document by document: what moved, and what that did to the score."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.data.texts import Texts
from judged.data.topics import Topics
from judged.diagnosis.diff.answer import Diff, DiffRow, MeanPair, ScorePair, TopicDiff
from judged.errors import InputError
from judged.results.spelling import hinting
from judged.scoring.evaluation import measures_of, runs_of
from judged.scoring.evaluation.facts import provenance_of_lists, refuse_foreign
from judged.scoring.evaluation.inputs import narrowed
from judged.scoring.judging import judge
from judged.scoring.judging.align import align
from judged.scoring.judging.judged import placed
from judged.scoring.measures.aggregates import aggregate
from judged.stats.inputs import check_count, paired_differences

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.results.types import Floats
    from judged.scoring.judging import Judged, Precision, TiePolicy
    from judged.scoring.judging.align import Aligned
    from judged.scoring.measures.base import Measure

_SMALL = 1e-9


@hinting
def diff(
    qrels: Any,
    first: Any,
    second: Any,
    topic: str | Iterable[str] | None = None,
    *,
    measure: Any = "nDCG@10",
    cutoff: int = 10,
    limit: int = 5,
    texts: Any = None,
    queries: Any = None,
    attributes: Any = None,
    where: str | None = None,
    ties: TiePolicy = "docid",
    precision: Precision = "double",
) -> Diff:
    """Put two rankings side by side: the documents of both, how each moved, and what each adds to the difference.

    Parameters
    ----------
    qrels, first, second
        Judgments, and two runs, as `evaluate` takes them: before and after.
    topic
        One query id, or several; None: the topics whose scores differ most, for and against the second run.
    measure
        One measure or several; the first decides which topics are shown.
    cutoff
        How far down both lists are shown.
    limit
        How many topics are shown each way where none is named.
    texts
        Titles or texts of documents: `Texts`, a path (JSONL, CSV, TSV, Parquet), or ``{doc_id: text}``.
    queries
        Texts of topics: `Topics`, a path, or ``{query_id: text}``.
    attributes, where
        Which topics of the qrels are looked at, and their attributes: as for `evaluate`.
    ties, precision
        As for `judge`.

    Returns
    -------
    Diff

    Raises
    ------
    InputError
        If something cannot be read, a run has no scores, or the qrels lack a topic that was named.
    MeasureError
        If a measure does not exist.

    Examples
    --------
    >>> qrels = {"q": {"a": 3, "b": 1, "c": 0}}
    >>> found = diff(qrels, {"q": {"b": 3.0, "a": 2.0, "x": 1.0}}, {"q": {"a": 3.0, "b": 2.0, "c": 1.0}})
    >>> [(row.doc_id, row.first_rank, row.second_rank, row.movement, row.grade) for row in found.topics[0].rows]
    [('a', 2, 1, 'up 1', 3.0), ('b', 1, 2, 'down 1', 1.0), ('c', None, 3, 'new', 0.0), ('x', 3, None, 'gone', None)]
    >>> [round(row.changes[0], 3) for row in found.topics[0].rows]  # 3/log2(2) - 3/log2(3), over the ideal of 3.631
    [0.305, -0.102, 0.0, 0.0]
    """
    check_count("cutoff", cutoff)
    check_count("limit", limit)
    judgments, lacking = narrowed(Qrels.of(qrels), where, attributes)
    runs = _two(first, second)
    measures = measures_of(measure)
    lists = [judge(judgments, run, ties=ties, precision=precision) for run in runs]
    for judged in lists:
        refuse_foreign(judged)
    rests = provenance_of_lists(lists, measures)
    values = np.array([[measure(judged) for measure in measures] for judged in lists])
    query_ids = lists[0].query_ids
    if topic is None:
        chosen = _extremes(query_ids, _gaps(values[:, 0], measures[0]), limit)
    else:
        named = [topic] if isinstance(topic, str) else [str(name) for name in topic]
        chosen = [query_ids.index(lists[0].only(name).query_ids[0]) for name in dict.fromkeys(named)]
    both = align(*runs, ties=ties, precision=precision)
    topics = [_topic(lists, measures, values[:, :, at], both, query_ids[at], cutoff) for at in chosen]
    if queries is not None:
        asked = Topics.of(queries)
        topics = [replace(part, query=asked.text(part.query_id)) for part in topics]
    if texts is not None:
        known = Texts.of(texts, {row.doc_id for part in topics for row in part.rows})
        topics = [
            replace(part, rows=tuple(replace(row, text=known.caption(row.doc_id)) for row in part.rows))
            for part in topics
        ]
    return Diff(
        runs=(runs[0].name, runs[1].name),
        measures=tuple(map(str, measures)),
        means=tuple(_mean_pair(measure, values[:, at]) for at, measure in enumerate(measures)),
        topics=tuple(topics),
        cutoff=cutoff,
        named=topic is not None,
        rel=float(getattr(measures[0], "rel", 0) or math.ulp(0.0)),
        highest=float(judgments.grades.max()),
        provenance=rests,
        notes=(*lacking, *rests.notes),
    )


def _two(first: Any, second: Any) -> tuple[Run, Run]:
    given = [run for runs in (first, second) for run in runs_of([runs])]
    if len(given) != 2:
        names = ", ".join(run.name for run in given)
        raise InputError(f"there are {len(given)} runs: {names}", fix="give two runs, one after the other")
    for run in given:
        if not run.has_scores:
            raise InputError("a run without scores is not a ranking", fix="give the scores", path=run.where)
    before, after = runs_of(given) if given[0].where != given[1].where else given
    if before.name == after.name or {before.name, after.name} == {"run", "run#2"}:
        before, after = Run(before.rows, "first"), Run(after.rows, "second")
    return before, after


def _gaps(values: Floats, measure: Measure) -> Floats:
    """Tell by how much the second run is better on each topic: exactly 0 but for rounding, NaN without a score."""
    gaps = np.full(values.shape[1], np.nan)
    gaps[~np.isnan(values).any(axis=0)], _ = paired_differences(values[0], values[1])
    return gaps * (-1.0 if measure.properties.higher_is_better is False else 1.0)


def _extremes(query_ids: Sequence[str], gaps: Floats, most: int) -> list[int]:
    """Choose the topics with the largest differences: those that the second run wins, then those that it loses."""
    order = sorted(np.flatnonzero(np.abs(gaps) > 0).tolist(), key=lambda at: (-abs(gaps[at]), query_ids[at]))
    won, lost = ([at for at in order if side * gaps[at] > 0][:most] for side in (1, -1))
    return won + lost


def _mean_pair(measure: Measure, values: Floats) -> MeanPair:
    gaps, kind = _gaps(values, measure), measure.entry.aggregate
    first, second = (aggregate(kind, row[~np.isnan(row)]) for row in values)
    better, worse, same = (int(np.count_nonzero(test)) for test in (gaps > 0, gaps < 0, gaps == 0))
    return MeanPair(str(measure), kind, first, second, better, worse, same)


def _topic(
    lists: Sequence[Judged], measures: Sequence[Measure], values: Floats, both: Aligned, query: str, cutoff: int
) -> TopicDiff:
    ones = [judged.only(query) for judged in lists]
    names = ones[0].qrels.index.row_names
    labelled = zip(ones[0].label_row.tolist(), ones[0].label_grade.tolist(), strict=True)
    grades = {names[row]: grade for row, grade in labelled}
    place = both.rows(query) if query in both.query_ids else slice(0, 0)
    added = [[shares(judged, measure) for judged in ones] for measure in measures]
    rows: list[DiffRow] = []
    for doc, *ranks in zip(
        both.doc[place].to_pylist(), both.first[place].tolist(), both.second[place].tolist(), strict=True
    ):
        if any(0 < rank <= cutoff for rank in ranks):
            changes = [
                None if first is None or second is None else second.get(doc, 0.0) - first.get(doc, 0.0)
                for first, second in added
            ]
            rows.append(DiffRow(doc, ranks[0] or None, ranks[1] or None, grades.get(doc), tuple(changes)))
    rows.sort(key=lambda row: row.second_rank if row.second_rank and row.second_rank <= cutoff else math.inf)
    pairs = [
        ScorePair(str(measure), first, second, measure.properties.higher_is_better is False)
        for measure, first, second in zip(measures, *values.tolist(), strict=True)
    ]
    return TopicDiff(
        query_id=query,
        query="",
        scores=tuple(pairs),
        rows=tuple(rows),
        below=tuple(_below(pair, [row.changes[at] for row in rows]) for at, pair in enumerate(pairs)),
        returned=(int(ones[0].returned[0]), int(ones[1].returned[0])),
        cutoff=cutoff,
        runs=both.runs,
    )


def _below(pair: ScorePair, changes: Sequence[float | None]) -> float | None:
    """Give what the documents that are not shown add to the difference: the rest of it."""
    known = [change for change in changes if change is not None]
    if len(known) < len(changes) or not changes or math.isnan(pair.difference):
        return None
    rest = pair.difference - sum(known)
    return 0.0 if abs(rest) < _SMALL else rest


def shares(judged: Judged, measure: Measure) -> dict[str, float] | None:
    """Ask a measure what each judged document that was returned adds to the score of the only topic.

    >>> from judged.scoring.judging import judge_list
    >>> from judged.scoring.measures import parse
    >>> shares(judge_list([3, None, 1], missing=[2]), parse("P@2")), shares(judge_list([1]), parse("AP"))
    ({'d1': 0.5, 'd3': 0.0}, None)
    """
    # The measure scores lists with one of the documents each, at its rank, and one without any: what a document adds is
    # the difference. The measure is only known to declare itself additive; the shares and the score of nothing add up
    # to the score. Returns by document id, 0 for those that add nothing; None where documents
    # do not add shares by themselves, or only by being judged.
    if not measure.properties.additive or not measure.properties.sees_relevance:
        return None
    cutoff = getattr(measure, "cutoff", None)
    seen = np.flatnonzero(judged.within(cutoff if isinstance(cutoff, int) else None))
    rank = judged.rank[seen]
    asked = placed(judged, np.zeros(len(seen) + 1, dtype=np.int64), np.arange(len(seen)), seen, rank)
    scores = measure(asked)
    added, nothing = scores[:-1] - scores[-1], float(scores[-1])
    if not math.isclose(float(added.sum()) + nothing, float(measure(judged)[0]), rel_tol=_SMALL, abs_tol=_SMALL):
        return None
    made = dict.fromkeys(judged.doc, 0.0)
    docs = judged.doc
    made.update((docs[at], share) for at, share in zip(seen.tolist(), added.tolist(), strict=True))
    return made
