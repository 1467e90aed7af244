"""The two runs that are compared, their scores by topic, and the tests: what all of the page is made from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison import compare
from judged.evaluation import measures_of
from judged.evaluation.facts import order_of
from judged.measures import parse
from judged.stats.pairing import paired_differences
from judged.web.comparing.asked import MEASURE, MOST, RefusedError, concerning
from judged.web.workspace import RESAMPLES

if TYPE_CHECKING:
    from collections.abc import Hashable

    from judged._types import Floats
    from judged.comparison import Comparison, MeasureComparison, Pair
    from judged.evaluation import Scores
    from judged.measures import Measure
    from judged.web.comparing.asked import Asked
    from judged.web.workspace import Workspace

HOW: dict[str, Any] = {"family": "all", "ci": "none", "resamples": RESAMPLES}
"""How `compare` is called: the p-values of all measures of the table are corrected together."""


@dataclass(frozen=True, eq=False)
class Two:
    """Two runs over the same topics."""

    first: str
    second: str
    measure: Measure  # the one whose topics are looked at
    where: str  # the expression that chose the topics
    comparison: Comparison  # by this measure and those of the table
    key: tuple[Hashable, ...]  # what tells this comparison from others, for what is remembered of it

    @property
    def scores(self) -> Scores:
        """The scores of both, by every measure that is compared."""
        return self.comparison.scores

    @property
    def query_ids(self) -> tuple[str, ...]:
        """The topics, in byte order."""
        return self.scores.query_ids

    @property
    def compared(self) -> MeasureComparison:
        """What was found by the measure that is looked at."""
        return self.comparison.measure(str(self.measure))

    @property
    def pair(self) -> Pair | None:
        """The test by this measure; None where it is not tested."""
        return self.compared.by_runs.get((self.first, self.second))

    @property
    def values(self) -> tuple[Floats, Floats]:
        """The scores of the first and of the second: (T,), NaN where a topic has none."""
        at = self.scores.measure_names.index(str(self.measure))
        names = self.scores.run_names
        return self.scores.values[names.index(self.first), at], self.scores.values[names.index(self.second), at]

    @cached_property
    def differences(self) -> Floats:
        """Second minus first: (T,), exactly 0 where they are equal but for rounding, NaN where one has no score."""
        first, second = self.values
        made = np.full(len(first), np.nan)
        made[~(np.isnan(first) | np.isnan(second))] = paired_differences(first, second)[0]
        return made

    @property
    def side(self) -> int:
        """-1 where the lower score is the better one, otherwise 1."""
        return -1 if self.compared.lower_is_better else 1

    @property
    def words(self) -> tuple[str, str]:
        """What the second run is where it is ahead, and where it is behind."""
        judges = self.measure.properties.higher_is_better is not None
        return ("better", "worse") if judges else ("higher", "lower")


def two_runs(workspace: Workspace, asked: Asked) -> Two:
    """Choose the runs, the measures and the topics, and test the difference."""
    with concerning("measure"):
        measure = parse(asked.measure.strip() or MEASURE)
    with concerning("measures"):
        family = tuple(dict.fromkeys((*measures_of(asked.names or (measure,)), measure)))
    if len(family) > MOST + 1:
        raise RefusedError("measures", f"{len(family)} measures are too many for one table", f"name at most {MOST}")
    first, second = _runs(workspace, asked, measure)
    with concerning("measure"):
        workspace.scores((measure,), (first, second))
    where = asked.where.strip()
    key = ("compare", first, second, family, where)
    with concerning("measures"):
        scores = workspace.scores(family, (first, second))
    if where:
        with concerning("where"):
            scores = _over(workspace, scores, where, first)
        found = workspace.remember(key, lambda: compare(scores, baseline=first, **HOW))
    else:
        found = workspace.comparison(family, first, (first, second), **HOW)
    made: Two = workspace.remember((*key, measure), lambda: Two(first, second, measure, where, found, (*key, measure)))
    return made


def _runs(workspace: Workspace, asked: Asked, measure: Measure) -> tuple[str, str]:
    """Choose the two runs: what was asked for, else the first, and the best of the others."""
    names = workspace.run_names
    if len(names) < 2:
        is_open = f"only {names[0]} is open" if names else "no run is open"
        raise RefusedError("second", f"two runs are needed to compare, and {is_open}", "open another run")
    for name, given in (("first", asked.first), ("second", asked.second)):
        if given:
            with concerning(name):
                workspace.judged(given)
    first = asked.first or next(name for name in names if name != asked.second)
    second = asked.second or _best(workspace, measure, first)
    if first == second:
        raise RefusedError("second", f"{first} is compared with itself: there is no difference", "choose another run")
    return first, second


def _best(workspace: Workspace, measure: Measure, beside: str) -> str:
    """Name the best run by a measure, beside one."""
    with concerning("measure"):
        scores = workspace.scores((measure,))
    less = measure.properties.higher_is_better is False
    order = workspace.remember(
        ("order", scores.run_names, measure),
        lambda: order_of([one.value for one in scores.estimates(ci="none")], lower_is_better=less),
    )
    return next(name for at in order if (name := scores.run_names[at]) != beside)


def _over(workspace: Workspace, scores: Scores, where: str, run: str) -> Scores:
    """Keep the topics that satisfy an expression."""
    mask = workspace.mask(where, run).tolist()
    kept = {query_id for query_id, is_in in zip(workspace.query_ids, mask, strict=True) if is_in}
    return scores.over_topics(np.array([query_id in kept for query_id in scores.query_ids], dtype=np.bool_))
