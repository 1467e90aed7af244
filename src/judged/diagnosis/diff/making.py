"""`diff`: two rankings side by side, document by document: what moved, and what that did to the score."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.data import Qrels, Run
from judged.data.texts import Texts
from judged.data.topics import Topics
from judged.diagnosis.diff.result import Diff, TopicDiff
from judged.diagnosis.diff.rows import DiffRow, MeanPair, ScorePair
from judged.diagnosis.shares import shares
from judged.errors import InputError
from judged.evaluation import measures_of, runs_of
from judged.evaluation.provenance import provenance_of_lists, refuse_foreign
from judged.judging import judge
from judged.judging.align import align
from judged.measures import aggregate
from judged.stats.pairing import paired_differences, topics_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged._types import Floats
    from judged.judging import Judged, Precision, TiePolicy
    from judged.judging.align import Aligned
    from judged.measures import Measure


def diff(
    qrels: Any,
    first: Any,
    second: Any,
    topic: str | Iterable[str] | None = None,
    *,
    measure: Any = "nDCG@10",
    depth: int = 10,
    show: int = 5,
    docs: Any = None,
    queries: Any = None,
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
    depth
        How far down both lists are shown.
    show
        How many topics are shown each way where none is named.
    docs
        Titles or texts of documents: `Texts`, a path (JSONL, CSV, TSV, Parquet), or ``{doc_id: text}``.
    queries
        Texts of topics: `Topics`, a path, or ``{query_id: text}``.
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
    if depth < 1 or show < 1:
        raise InputError(f"a depth of {depth} and {topics_text(show)} show nothing", fix="give whole numbers from 1")
    judgments = Qrels.of(qrels)
    runs = _two(first, second)
    measures = measures_of(measure)
    lists = [judge(judgments, run, ties=ties, precision=precision) for run in runs]
    for judged in lists:
        refuse_foreign(judged)
    rests = provenance_of_lists(lists, measures)
    values = np.array([[one(judged) for one in measures] for judged in lists])
    named = None if topic is None else [topic] if isinstance(topic, str) else [str(one) for one in topic]
    chosen = _extremes(lists[0].query_ids, values, measures[0], show) if named is None else _known(lists[0], named)
    both = align(*runs, ties=ties, precision=precision)
    texts = None if queries is None else Topics.of(queries)
    made = tuple(_topic_diff(lists, measures, values[:, :, at], both, at, depth, texts) for at in chosen)
    grades = judgments.grades
    return Diff(
        runs=(runs[0].name, runs[1].name),
        measures=tuple(map(str, measures)),
        means=tuple(_mean_pair(one, values[:, row]) for row, one in enumerate(measures)),
        topics=_captioned(made, docs),
        depth=depth,
        named=named is not None,
        grades=(float(grades.min()), float(grades.max())),
        ranking=both.ranking,
        provenance=rests,
        warnings=rests.warnings,
    )


def _captioned(topics: Sequence[TopicDiff], docs: Any) -> tuple[TopicDiff, ...]:
    """Give titles, or texts, to the documents that are shown."""
    if docs is None:
        return tuple(topics)
    wanted = {row.doc_id for one in topics for row in one.rows}
    texts = Texts.of(docs, wanted)
    return tuple(one.with_texts({doc: texts.caption(doc) for doc in wanted}) for one in topics)


def _two(first: Any, second: Any) -> tuple[Run, Run]:
    found = [run for one in (first, second) for run in runs_of([one])]
    if len(found) != 2:
        names = ", ".join(run.name for run in found)
        raise InputError(f"there are {len(found)} runs: {names}", fix="give two runs, one after the other")
    for run in found:
        if not run.has_scores:
            raise InputError("a run without scores is no ranking", fix="give the scores", path=run.where)
    one, two = runs_of(found) if found[0].where != found[1].where else found
    if one.name == two.name or {one.name, two.name} == {"run", "run#2"}:
        one, two = Run(one.rows, "first"), Run(two.rows, "second")
    return one, two


def _known(judged: Judged, named: Sequence[str]) -> list[int]:
    return [judged.query_ids.index(judged.only(name).query_ids[0]) for name in dict.fromkeys(named)]


def _extremes(query_ids: Sequence[str], values: Floats, measure: Measure, most: int) -> list[int]:
    """Choose the topics with the largest differences: those that the second run wins, then those that it loses."""
    gaps = _gaps(values[0, 0], values[1, 0]) * _side(measure)
    order = sorted(np.flatnonzero(np.abs(gaps) > 0).tolist(), key=lambda at: (-abs(gaps[at]), query_ids[at]))
    won, lost = ([at for at in order if side * gaps[at] > 0][:most] for side in (1, -1))
    return won + lost


def _gaps(first: Floats, second: Floats) -> Floats:
    """Subtract, topic by topic: exactly 0 where scores are equal but for rounding, NaN where there is none."""
    both = ~(np.isnan(first) | np.isnan(second))
    made = np.full(len(first), np.nan)
    made[both], _ = paired_differences(first, second)
    return made


def _side(measure: Measure) -> float:
    return -1.0 if measure.properties.higher_is_better is False else 1.0


def _mean_pair(measure: Measure, values: Floats) -> MeanPair:
    kind = measure.entry.aggregate
    gaps = _gaps(values[0], values[1]) * _side(measure)
    one, two = (aggregate(kind, row[~np.isnan(row)]) for row in values)
    counts = [int(np.count_nonzero(test)) for test in (gaps > 0, gaps < 0, gaps == 0)]
    return MeanPair(str(measure), kind, one, two, better=counts[0], worse=counts[1], same=counts[2])


def _topic_diff(
    lists: Sequence[Judged],
    measures: Sequence[Measure],
    values: Floats,
    both: Aligned,
    at: int,
    depth: int,
    queries: Topics | None,
) -> TopicDiff:
    query = lists[0].query_ids[at]
    ones = [judged.only(query) for judged in lists]
    grades = dict(zip(_labelled(ones[0]), ones[0].label_grade.tolist(), strict=True))
    place = both.rows(query) if query in both.query_ids else slice(0, 0)
    docs = both.doc[place].to_pylist()
    ranks = np.stack([both.first[place], both.second[place]])
    added = [[shares(one, measure) for one in ones] for measure in measures]
    visible = np.flatnonzero(((ranks > 0) & (ranks <= depth)).any(axis=0)).tolist()
    rows = [_row(docs[doc], ranks[:, doc].tolist(), grades.get(docs[doc]), added) for doc in visible]
    rows.sort(key=lambda row: (row.second_rank or math.inf) if (row.second_rank or math.inf) <= depth else math.inf)
    pairs = tuple(
        ScorePair(str(one), float(values[0, row]), float(values[1, row]), _side(one) < 0)
        for row, one in enumerate(measures)
    )
    return TopicDiff(
        query_id=query,
        query="" if queries is None else queries.text(query),
        scores=pairs,
        rows=tuple(rows),
        below=tuple(_below(pair, [row.changes[m] for row in rows]) for m, pair in enumerate(pairs)),
        returned=(int(ones[0].returned[0]), int(ones[1].returned[0])),
        depth=depth,
        runs=both.runs,
    )


def _labelled(one: Judged) -> list[str]:
    names = one.qrels.index.row_names
    return [names[row] for row in one.label_row.tolist()]


def _row(
    doc: str, ranks: Sequence[int], grade: float | None, added: Sequence[Sequence[dict[str, float] | None]]
) -> DiffRow:
    changes: list[float | None] = []
    for first, second in added:
        if first is None or second is None:
            changes.append(None)
        else:
            changes.append(second.get(doc, 0.0) - first.get(doc, 0.0))
    return DiffRow(doc, ranks[0] or None, ranks[1] or None, grade, tuple(changes))


def _below(pair: ScorePair, changes: Sequence[float | None]) -> float | None:
    """Give what the documents that are not shown add to the difference: the rest of it."""
    known = [change for change in changes if change is not None]
    if len(known) < len(changes) or not changes or math.isnan(pair.difference):
        return None
    rest = pair.difference - sum(known)
    return 0.0 if abs(rest) < 1e-9 else rest
