"""From scores by system and topic to tested pairs: which function of `judged.stats` answers what."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from judged.comparison.choices import AGAINST_BASELINE
from judged.comparison.pair import Pair
from judged.comparison.tested_pair import TopicDifference
from judged.measures import logarithms
from judged.stats.attainable import out_of_reach
from judged.stats.detecting import detectable
from judged.stats.pairing import complete_topics, paired_differences, spread
from judged.stats.results import Difference

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged._types import Floats
    from judged.comparison.choices import Choices
    from judged.evaluation import Scores

_SHOWN_TOPICS = 3
_NOT_OF_MEANS = ("sign", "wilcoxon", "nemenyi", "ratio")


class Tested(NamedTuple):
    """Pairs of systems, tested and not yet corrected."""

    found: tuple[Difference, ...] = ()  # in the order of the pairs
    overall: str = ""  # what a test of all systems at once says first
    # the mean difference from which such a test finds any pair; NaN where it does not go by one
    critical: float = math.nan


def differences(
    values: Floats,  # (R, T), NaN where a topic has no score
    pairs: Sequence[tuple[int, int]],
    choices: Choices,
    *,
    geometric: bool,
    level: float | None = None,
) -> Tested:
    """Test pairs of systems."""
    if choices.many:
        return _of_many(values, pairs, choices)
    from judged.stats.paired import paired_tests

    how: dict[str, Any] = {"level": level or choices.level, "resamples": choices.resamples, "seed": choices.seed}
    if choices.margin is not None:
        how["rope"] = choices.margin
    return Tested(paired_tests(values, pairs, "ratio" if geometric else choices.test, **how))


def _of_many(values: Floats, pairs: Sequence[tuple[int, int]], choices: Choices) -> Tested:
    """Ask a test of all systems at once, and take the pairs out of its matrices."""
    from judged.stats import blocked

    drawn = {"resamples": choices.resamples, "seed": choices.seed}
    level, baseline = choices.level, pairs[0][0]
    calls: dict[str, Callable[[], Any]] = {
        "tukey": lambda: blocked.tukey_hsd(values, level=level),
        "randomised-tukey": lambda: blocked.randomised_tukey(values, level=level, **drawn),
        "nemenyi": lambda: blocked.nemenyi(values, level=level),
        "dunnett": lambda: blocked.dunnett(values, baseline, level=level),
        "randomised-dunnett": lambda: blocked.randomised_dunnett(values, baseline, level=level, **drawn),
    }
    tables = calls[choices.test]()
    at = [(second,) for _, second in pairs] if choices.test in AGAINST_BASELINE else list(pairs)
    made = tuple(_from_tables(tables, values, pair, place, choices) for pair, place in zip(pairs, at, strict=True))
    return Tested(made, tables.sentence, math.nan if choices.test in _NOT_OF_MEANS else tables.critical)


def _from_tables(
    found: Any, values: Floats, pair: tuple[int, int], place: tuple[int, ...], choices: Choices
) -> Difference:
    """Take one pair out of the result of a test of all systems."""
    low, high = (math.nan if part is None else float(part[place]) for part in (found.low, found.high))
    p = float(found.p[place])
    complete, _ = complete_topics(values)
    gaps, _ = paired_differences(complete[pair[0]], complete[pair[1]])
    deviation = spread(gaps)
    difference = float(found.differences[place])
    ranks = getattr(found, "ranks", None)  # Nemenyi's: 1 is the highest score
    side = 1.0 if ranks is None else float(np.sign(ranks[pair[0]] - ranks[pair[1]]))
    return Difference(
        method=choices.test,
        difference=difference,
        statistic=float(found.statistic[place]) * side,
        p=p,
        interval=None if math.isnan(low) or math.isnan(high) else (low, high),
        level=choices.level,
        alpha=choices.alpha,
        effect=difference / deviation if deviation > 0 else math.nan,
        n=found.n,
        differing=int(np.count_nonzero(gaps)),
        left_out=found.left_out,
        resamples=found.resamples,
        exact=found.exact,
        seed=found.seed,
        alternative="two-sided",
        note=found.note,
        adjusted=p,
        correction=choices.test,
    )


def pair_of(
    scores: Scores,
    at: int,
    which: tuple[int, int],
    found: Difference,
    choices: Choices,
    family: int,  # how many comparisons share alpha
    critical: float = math.nan,
) -> Pair:
    """Put together all that is known of two systems."""
    from judged.stats.effect import effect_sizes, equivalence, wins

    measure, values = scores.measures[at], _counted(scores.values[:, at], choices)
    geometric = found.method == "ratio"
    scale = np.stack([logarithms(row) for row in values]) if geometric else values
    first, second = (values[row] for row in which)
    pair = [scale[row] for row in which]
    tost = choices.margin is not None and not geometric and found.posterior is None
    return Pair(
        measure=str(measure),
        first=scores.run_names[which[0]],
        second=scores.run_names[which[1]],
        found=found,
        effects=effect_sizes(*pair, reference=scale if len(scale) > 2 else None),
        wins=wins(first, second, choices.minimum),
        detectable=_detectable(first, second, found, choices, family, critical),
        equivalence=equivalence(first, second, choices.margin or 0.0, level=choices.level) if tost else None,
        gains=_extremes(scores.query_ids, first, second, 1),
        losses=_extremes(scores.query_ids, first, second, -1),
        side=int(np.sign(found.statistic)) if found.method == "nemenyi" else found.side,
        alpha=choices.alpha,
        lower_is_better=measure.properties.higher_is_better is False,
        sharing=round(choices.alpha / choices.alpha_of_one(family)),
    )


def _counted(values: Floats, choices: Choices) -> Floats:
    """Leave out the topics that a test of many systems leaves out: those that some system has no score for."""
    return np.where(np.isnan(values).any(axis=0), np.nan, values) if choices.many else values


def _detectable(
    first: Floats, second: Floats, found: Difference, choices: Choices, family: int, critical: float
) -> float:
    """Give the mean difference that would be found four times out of five."""
    # NaN where the test does not speak of means, no topics vary, or there are so few that none could be found.
    gaps, _ = paired_differences(first, second)
    alpha = choices.alpha_of_one(family)
    if found.method in _NOT_OF_MEANS or out_of_reach(alpha, len(gaps), found.method, resamples=choices.resamples):
        return math.nan
    return detectable(gaps, alpha, flips=found.method == "randomisation", critical=critical, seed=choices.seed)


def _extremes(query_ids: Sequence[str], first: Floats, second: Floats, side: int) -> tuple[TopicDifference, ...]:
    """Give the topics with the largest differences to one side, largest first; equal ones by id."""
    both = np.flatnonzero(~(np.isnan(first) | np.isnan(second)))
    gaps, _ = paired_differences(first, second)
    found = np.flatnonzero(side * gaps > 0)
    order = found[np.argsort(-np.abs(gaps[found]), kind="stable")][:_SHOWN_TOPICS]  # topics are in the order of ids
    return tuple(
        TopicDifference(query_ids[int(at)], gap, float(first[at]), float(second[at]))
        for at, gap in zip(both[order].tolist(), gaps[order].tolist(), strict=True)
    )
