"""What the disagreement of judges does to systems: the same runs, scored by the judgments of each."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from judged.agreement.answer import SystemEffect
from judged.errors import MeasureError
from judged.evaluation import measures_of, runs_of
from judged.judging import judge
from judged.judging.grading import withdrawn
from judged.measures import aggregate
from judged.stats.rankings import kendall_tau, spearman, tau_ap

if TYPE_CHECKING:
    from judged._types import Bools, Floats
    from judged.agreement.judges import Judges
    from judged.judging import Judged, Precision, TiePolicy
    from judged.measures import Measure


class Policies(NamedTuple):
    """How runs are ranked."""

    ties: TiePolicy
    depth: int | None
    precision: Precision


def system_effects(
    judges: Judges, runs: Any, measures: Any, policies: Policies, *, own: bool
) -> tuple[SystemEffect, ...]:
    """Score every run by the judgments of each two judges, over the topics that both have; none without such topics."""
    # Each run is joined once, with every pair that anyone judged; the grades of one judge are then put in.
    wanted = measures_of(measures)
    for measure in wanted:
        if measure.properties.every_label:
            raise MeasureError(f"{measure} looks at every label of a document. Fix: leave it out here")
        if not measure.properties.topics_apart:
            raise MeasureError(f"{measure} looks at the judgments of all topics. Fix: leave it out here")
    lists = [judge(judges.everything, run, **policies._asdict()) for run in runs_of(runs)]
    names = tuple(one.run.name for one in lists)
    found: list[SystemEffect] = []
    topic, count = judges.everything.index.topic, len(judges.everything.topics)
    for one, other in combinations(range(len(judges.names)), 2):
        shared = judges.both(one, other)
        seen = [np.bincount(topic[~np.isnan(judges.grades[:, at])], minlength=count) > 0 for at in (one, other)]
        topics = seen[0] & seen[1] if own else np.bincount(topic[shared], minlength=count) > 0
        if not topics.any():
            continue
        scores = [_scores(lists, judges.grades[:, at], None if own else shared, topics, wanted) for at in (one, other)]
        found += [
            _effect(judges.names[one], judges.names[other], measure, int(topics.sum()), names, *columns)
            for measure, *columns in zip(wanted, scores[0], scores[1], strict=True)
        ]
    return tuple(found)


def _scores(
    lists: list[Judged], grades: Floats, shared: Bools | None, topics: Bools, measures: tuple[Measure, ...]
) -> Floats:
    """Give the aggregate of each measure and run: (M, R)."""
    gone = np.isnan(grades) if shared is None else ~shared
    table = np.full((len(measures), len(lists)), np.nan)
    for column, judged in enumerate(lists):
        left = withdrawn(judged, gone)
        label_grade = grades[left.label_row]  # this judge's grades, in the place of those in the list
        left = replace(left, grade=label_grade[left.row], label_grade=label_grade)
        for row, measure in enumerate(measures):
            values = measure(left)[topics]
            table[row, column] = aggregate(measure.entry.aggregate, values[~np.isnan(values)])
    return table


def _effect(
    first: str, second: str, measure: Measure, topics: int, runs: tuple[str, ...], scores: Floats, other: Floats
) -> SystemEffect:
    sign = -1.0 if measure.properties.higher_is_better is False else 1.0
    # scores that differ only in the last bits are equal: means of the same fractions in another order differ so
    one, two = (np.round(sign * side, 12) for side in (scores, other))
    return SystemEffect(
        first, second, str(measure), topics, runs, scores, other,
        kendall_tau(one, two), tau_ap(one, two, "b"), spearman(one, two),
    )  # fmt: skip
