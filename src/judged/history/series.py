"""Scores of one system in order of time, by the same judgments and settings, and their changes."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from judged.errors import InputError
from judged.history.detection import alarm_threshold, detect
from judged.scoring.evaluation.evaluate import select_measures
from judged.scoring.evaluation.inputs import measures_of
from judged.stats.paired import paired_test
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.data.qrels import Qrels
    from judged.history.detection import Detection, Shift
    from judged.history.store import HistoryStore, StoredEvaluation
    from judged.results.types import Floats
    from judged.scoring.evaluation.scores import Scores
    from judged.scoring.measures.base import Measure
    from judged.stats.results import Difference

FALSE_ALARMS = 365
"""Default number of evaluations per false alarm."""
Verdict: TypeAlias = Literal["better", "worse", "changed", "not significant over topics", "too few topics"]
MARGIN_RELATIVE = 0.01
"""Default of the smallest reported change, as a share of the mean score."""


@dataclass(frozen=True, eq=False)
class ScoreSeries:
    """Scores of one system in order of time.

    Parameters
    ----------
    evaluations
        Evaluations, in order of time.
    scores_then
        Scores by the judgments and settings of each evaluation.
    scores
        Scores of the last evaluation.
    values
        (evaluations, measures, topics) scores by the judgments and settings of the last evaluation, over the topics
        that all evaluations have.
    query_ids
        These topics.
    """

    evaluations: tuple[StoredEvaluation, ...]
    scores_then: tuple[Scores, ...]
    scores: Scores
    values: Floats
    query_ids: tuple[str, ...]

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Measures of the scores."""
        return self.scores.measures

    @property
    def system(self) -> str:
        """Name of the system."""
        return self.evaluations[0].system

    def segment_scores(self, before: slice, after: slice, names: tuple[str, str]) -> Scores:
        """Return the mean scores of topics in two segments of evaluations as those of two runs."""
        run = self.scores.runs[0]
        return replace(
            self.scores,
            runs=tuple(replace(run, name=name) for name in names),
            query_ids=self.query_ids,
            values=np.stack([self.values[part].mean(axis=0) for part in (before, after)]),
            counted=np.ones((2, len(self.query_ids)), dtype=np.bool_),
            ranges=(),
            queries=None,
        )


def read_series(store: HistoryStore, system: str = "", measures: Any = None) -> ScoreSeries:
    """Read the scores of a system.

    Parameters
    ----------
    store
        The history.
    system
        Name of the system. Default: that of the last evaluation.
    measures
        Measures. Default: those of the last evaluation that are means over topics.

    Raises
    ------
    InputError
        If there are no evaluations, or no topic is in all of them.
    """
    rows = store.evaluations(system)
    if not rows:
        raise InputError("there are no evaluations", fix="add one: judged history add QRELS RUN", path=store.where)
    rows = tuple(row for row in rows if row.system == rows[-1].system)
    last = rows[-1] if measures is None else _with_measures(rows[-1], measures)
    scores_then = [store.scores(row) for row in rows]
    scores_now = [
        scores if (row.qrels, row.settings) == (last.qrels, last.settings) else store.scores(row, last)
        for row, scores in zip(rows, scores_then, strict=True)
    ]
    means = [measure for measure in scores_now[-1].measures if measure.entry.aggregate == "mean"]
    if not means or (measures is not None and len(means) < len(scores_now[-1].measures)):
        problem = "a history requires measures that are means over topics"
        raise InputError(problem, fix="use other measures, such as nDCG@10", path=store.where)
    scores_now = [select_measures(scores, means) for scores in scores_now]
    common = sorted(set.intersection(*(set(scores.query_ids) for scores in (*scores_then, *scores_now))))
    values = np.stack([_over_topics(scores, common) for scores in scores_now])
    has_values = np.flatnonzero(~np.isnan(values).any(axis=(0, 1))).tolist()
    query_ids = tuple(np.array(common, dtype=object)[has_values].tolist())
    if not query_ids:
        fix = "use another file for evaluations of other topics"
        raise InputError("the evaluations have no topic in common", fix=fix, path=store.where)
    return ScoreSeries(rows, tuple(scores_then), scores_now[-1], values[:, :, has_values], query_ids)


def _with_measures(evaluation: StoredEvaluation, measures: Any) -> StoredEvaluation:
    """Return an evaluation with other measures, to score all evaluations by them."""
    settings = json.loads(evaluation.settings) | {"measures": list(map(str, measures_of(measures)))}
    return evaluation._replace(settings=json.dumps(settings))


def _over_topics(scores: Scores, query_ids: Sequence[str]) -> Floats:
    column_of = {query: column for column, query in enumerate(scores.query_ids)}
    return scores.values[0][:, [column_of[query] for query in query_ids]]


class ScoreChange(NamedTuple):
    """Change of the mean score of one measure that is larger than the usual variation between evaluations."""

    measure: Measure
    shift: Shift
    end: int  # index after the last evaluation before the next change
    begin: int  # index of the first evaluation after the change before
    mean_before: float
    mean_after: float
    difference: Difference  # after minus before, over topics

    @property
    def before(self) -> slice:
        """Evaluations from the last change to this one."""
        return slice(self.begin, self.shift.start)

    @property
    def after(self) -> slice:
        """Evaluations from this change to the next one."""
        return slice(self.shift.start, self.end)

    @property
    def verdict(self) -> Verdict:
        """Verdict over topics, by the interval of the difference."""
        low, high = self.difference.interval or (np.nan, np.nan)
        higher = self.measure.properties.higher_is_better
        if np.isnan(low) or insufficiency(self.difference.n, "verdict"):
            return "too few topics"
        if low <= 0.0 <= high:
            return "not significant over topics"
        return "changed" if higher is None else "better" if (low > 0.0) == higher else "worse"


def detect_changes(
    series: ScoreSeries, false_alarms: float = FALSE_ALARMS, margin_relative: float = MARGIN_RELATIVE
) -> list[tuple[Detection, list[ScoreChange]]]:
    """Detect the changes of each measure; `false_alarms` is shared by the measures.

    Raises
    ------
    InputError
        If an option is out of range.
    """
    if not false_alarms >= 1:
        raise InputError(f"false_alarms must be at least 1, got {false_alarms:g}", fix="use a number such as 365")
    if not 0 <= margin_relative < 1:
        raise InputError(f"margin_relative must be between 0 and 1, got {margin_relative:g}", fix="use 0.01 for 1%")
    threshold = alarm_threshold(float(false_alarms) * len(series.measures))
    results: list[tuple[Detection, list[ScoreChange]]] = []
    for i, measure in enumerate(series.measures):
        values = series.values[:, i]
        detection = detect(values, threshold, margin_relative)
        limits = [0, *(shift.start for shift in detection.shifts), len(values)]
        changes: list[ScoreChange] = []
        for begin, shift, end in zip(limits, detection.shifts, limits[2:], strict=False):
            before, after = values[begin : shift.start].mean(axis=0), values[shift.start : end].mean(axis=0)
            difference = paired_test(before, after, "t")
            means = float(before.mean()), float(after.mean())
            changes.append(ScoreChange(measure, shift, end, begin, means[0], means[1], difference))
        results.append((detection, changes))
    return results


class JudgmentChange(NamedTuple):
    """Change of the judgments between two evaluations."""

    evaluation: StoredEvaluation
    added: int  # judgments
    removed: int
    changed: int  # judgments with another grade
    n_change: int  # change of the number of topics
    effect: float  # change of the mean score of the previous run with the new judgments, over topics judged in both


def judgment_changes(store: HistoryStore, series: ScoreSeries) -> Iterator[JudgmentChange]:
    """Yield the changes of the judgments, with their effect on the first measure for the run before the change."""
    for previous, row in pairwise(series.evaluations):
        if previous.qrels == row.qrels:
            continue
        before, after = (_grades(store.qrels(evaluation)) for evaluation in (previous, row))
        if before == after:
            continue
        both = before.keys() & after.keys()
        topics = [len({query for query, *_ in grades}) for grades in (before, after)]
        # The same run and settings, by the judgments of both evaluations.
        settings = _with_measures(previous, [series.measures[0]]).settings
        scores = [store.scores(previous, each._replace(settings=settings)) for each in (previous, row)]
        query_ids = sorted({*scores[0].query_ids} & {*scores[1].query_ids})
        differences = np.subtract(*(_over_topics(part, query_ids)[0] for part in reversed(scores)))
        differences = differences[~np.isnan(differences)]
        yield JudgmentChange(
            row,
            len(after) - len(both),
            len(before) - len(both),
            sum(before[pair] != after[pair] for pair in both),
            topics[1] - topics[0],
            float(differences.mean()) if len(differences) else np.nan,
        )


def _grades(qrels: Qrels) -> dict[tuple[str, ...], float]:
    """Return grades by topic, document, and iteration."""
    names = [name for name in ("query_id", "doc_id", "iteration", "relevance") if name in qrels.table.column_names]
    *keys, grades = (qrels.table[name].to_pylist() for name in names)
    return dict(zip(zip(*keys, strict=True), grades, strict=True))
