"""`compare`: from scores by system and topic to tested pairs, by the functions of `judged.stats`."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from judged.comparison.answer import Comparison, MeasureComparison
from judged.comparison.choices import AGAINST_BASELINE, Choices, Family, default_resamples, default_test, notes
from judged.comparison.pair import Pair, TopicDifference, of_means
from judged.data.run import run_named
from judged.errors import InputError
from judged.scoring.evaluation.evaluate import chosen_measures, of_runs
from judged.scoring.measures.aggregates import logarithms
from judged.stats.inputs import complete_topics, paired_differences, spread
from judged.stats.interval import IntervalMethod
from judged.stats.results import Difference
from judged.stats.sample_size import detectable, out_of_reach
from judged.stats.sensitivity import sensitivity
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.results.types import Floats
    from judged.scoring.evaluation import Scores
    from judged.scoring.measures.base import Measure
    from judged.stats.interval import IntervalName

_SHOWN_TOPICS = 3
_SHARED = ("n", "left_out", "resamples", "exact", "seed", "note")  # fields of every result
_NOT_OF_MEANS = ("sign", "wilcoxon", "nemenyi", "ratio")
_NO_DETECTABLE = (*_NOT_OF_MEANS, "bounded")  # `detectable` is that of t, which finds smaller differences


def comparison_of_scores(
    scores: Scores,
    *,
    measures: Any = None,
    baseline: str | None = None,
    test: str | None = None,
    correction: str = "holm",
    family: Family = "measure",
    alpha: float = 0.05,
    resamples: int | None = None,
    seed: int = 0,
    min_difference: float = 0.0,
    margin: float | None = None,
    ci: IntervalName = "adjusted",
) -> Comparison:
    """Compare systems over the same topics: whether they differ, by how much, and what could have been seen.

    Parameters
    ----------
    scores
        What `evaluate` returned.
    measures
        Some of those that were evaluated; None: all.
    baseline
        The name of the run that all others are compared with; None: every pair is compared.
    test
        ``randomisation`` (flips the signs of differences), ``t``, ``wilcoxon``, ``sign``, ``bootstrap``, ``bca``,
        ``studentised``, ``bounded``, ``ratio``, ``bayes``; or a test of all systems at once, which allows for its own
        comparisons: ``tukey``, ``randomised-tukey``, ``nemenyi``, ``dunnett``. Geometric means are always compared
        by ``ratio``; counts and sums are shown, but not tested. ``bounded`` holds for every distribution and number
        of topics, and needs measures with bounds. None: ``randomisation``, with more than 2,000 topics
        ``t``.
    correction
        For the number of comparisons: ``holm``, ``bonferroni``, ``hochberg``, ``bh``, ``by`` or ``none``.
    family
        What is corrected together: the pairs of each ``measure``, or the pairs of ``all`` measures.
    alpha
        A p-value up to here is significant. Intervals of differences have the level 1 - alpha, corrected as p is:
        they leave out 0 just where a difference is significant.
    resamples, seed
        Of tests by resampling; None: 100,000 resamples, with more than 300 topics 10,000. The intervals of the means
        have 2000 resamples of the same seed.
    min_difference
        The least difference on a topic that counts as a win or a loss.
    margin
        Say whether systems are equivalent: surely closer than this. For ``bayes``, the region of equivalence.
    ci
        How intervals of means are made, as `IntervalMethod` says: ``adjusted``, ``t``, ``bootstrap`` or ``none``.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        If there are fewer than two runs, no such baseline, test, correction or measure, or something cannot be read.
    MeasureError
        If a measure does not exist.

    Examples
    --------
    >>> from judged import evaluate
    >>> qrels = {f"q{at}": {"d": 1} for at in range(8)}
    >>> good, bad = ({topic: docs for topic in qrels} for docs in (["d"], ["x", "d"]))
    >>> scores = evaluate(qrels, {"bad": bad, "good": good}, ["RR", "AP"])
    >>> scores.compare(measures="RR", baseline="bad").pair("bad", "good").better
    'good'
    """
    topics = len(scores.query_ids)
    test, resamples = test or default_test(topics), resamples or default_resamples(topics)
    choices = Choices(test, correction, family, alpha, resamples, seed, min_difference, margin, baseline)
    return compared(scores if measures is None else chosen_measures(scores, measures), choices, ci)


compare = of_runs(
    comparison_of_scores,
    "compare",
    examples="""
    >>> from judged import compare
    >>> qrels = {f"q{at}": {"d": 1} for at in range(8)}
    >>> good, bad = ({topic: docs for topic in qrels} for docs in (["d"], ["x", "d"]))
    >>> found = compare(qrels, {"bad": bad, "good": good}, "RR")
    >>> pair = found.pair("bad", "good")
    >>> pair.result.difference, pair.result.p, pair.better  # 2 of the 2^8 ways to flip signs are as extreme
    (0.5, 0.0078125, 'good')
    """,
)


def compared(scores: Scores, choices: Choices, ci: IntervalName = "adjusted") -> Comparison:
    """Compare the systems of a table of scores."""
    names = scores.run_names
    if len(names) < 2:
        raise InputError(f"there is nothing to compare {', '.join(names)} with", fix="give two runs or more")
    if choices.baseline is not None:
        choices = replace(choices, baseline=run_named(choices.baseline, names, "to use as the baseline"))
    if choices.test == "bounded":
        for measure in scores.measures:
            check_bounds(measure)
    plain = numbers_alone(scores, choices, ci)
    measures = [*plain.measures]
    pairs = [() if shown.untested else _pairs(names, choices.baseline, shown.order()) for shown in measures]

    def test(at: int, which: Sequence[tuple[int, int]], level: float) -> Tested:
        measure = scores.measures[at]
        geometric, reach = measure.entry.aggregate == "geometric mean", measure.properties.reach
        return differences(scores.values[:, at], which, choices, geometric=geometric, reach=reach, level=level)

    sizes = [len(which) for which in pairs]
    expected = [sum(sizes) if choices.family == "all" else size for size in sizes]
    tests = [
        test(at, which, 1 - choices.alpha_of_one(expected[at])) if which else Tested() for at, which in enumerate(pairs)
    ]
    corrected, sizes = _corrected([tested.differences for tested in tests], pairs, choices, test, len(names))
    for at, shown in enumerate(measures):
        done = tuple(
            pair_of(scores, at, which, difference, choices, sizes[at], tests[at].critical)
            for which, difference in zip(pairs[at], corrected[at], strict=True)
        )
        measures[at] = replace(shown, pairs=done, family=sizes[at], overall=tests[at].overall)
    return replace(plain, measures=tuple(measures), notes=(*scores.notes, *notes(scores, measures, choices)))


def comparison_of_runs(comparison: Comparison, scores: Scores) -> Comparison:
    """Return a comparison that shows some of its runs only; tests and corrections stay those of all runs.

    Parameters
    ----------
    comparison
        Of all runs.
    scores
        Of the runs that are kept, by the same measures and over the same topics.
    """
    runs = scores.run_names
    measures = tuple(
        replace(
            by_measure,
            estimates=tuple(estimate for run in runs for estimate in by_measure.estimates if estimate.run == run),
            pairs=tuple(pair for pair in by_measure.pairs if pair.first in runs and pair.second in runs),
        )
        for by_measure in comparison.measures
    )
    every_note = (*scores.notes, *notes(scores, measures, comparison.choices))
    return replace(comparison, scores=scores, measures=measures, notes=every_note)


def numbers_alone(scores: Scores, choices: Choices, ci: IntervalName = "adjusted") -> Comparison:
    """Give every number with its interval, of one system or more, and no test."""
    estimates = scores.estimates(ci=ci, level=choices.level, seed=choices.seed)
    measures = (
        MeasureComparison(measure, estimates[at :: len(scores.measures)], (), 0, _untested(measure, choices))
        for at, measure in enumerate(scores.measures)
    )
    words = scores.interval_words(IntervalMethod(ci, choices.level, seed=choices.seed))
    return Comparison(scores, tuple(measures), choices, scores.notes, words, scores.rules())


def _pairs(names: Sequence[str], baseline: str | None, order: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Choose pairs (first, second): all against the baseline; two as they are given; of many the better one second."""
    if baseline is not None:
        first = names.index(baseline)
        return tuple((first, at) for at in range(len(names)) if at != first)
    if len(names) == 2:
        return ((0, 1),)
    return tuple((worse, better) for better, worse in combinations(order, 2))


def check_bounds(measure: Measure) -> None:
    """Raise InputError for a measure that the bounded test cannot compare."""
    if measure.entry.aggregate == "geometric mean":
        problem = f"{measure} is a geometric mean: its logarithms have no bounds, which the bounded test needs"
        raise InputError(problem, fix="leave it out, or take another test")
    if measure.entry.aggregate == "mean" and math.isinf(measure.properties.reach):
        end = "lower" if measure.properties.low is None else "upper"
        problem = f"{measure} has no {end} bound by its definition, which the bounded test needs"
        raise InputError(problem, fix="take a measure with bounds, such as nDCG@10, or another test")


def _untested(measure: Measure, choices: Choices) -> str:
    """Say why a measure is not tested, or nothing."""
    kind = measure.entry.aggregate
    if kind in {"sum", "count"}:
        return f"{measure} is a {kind} over the topics: it is shown, and not tested"
    if kind == "geometric mean" and choices.many:
        return f"{measure} is compared by ratios, which {choices.test} does not do: it is shown, and not tested"
    return ""


def _corrected(
    tested: list[tuple[Difference, ...]],
    pairs: Sequence[Sequence[tuple[int, int]]],
    choices: Choices,
    test: Callable[[int, Sequence[tuple[int, int]], float], Tested],
    systems: int,
) -> tuple[list[list[Difference]], list[int]]:
    """Correct each family, p-values and intervals, and give the size of the family that each measure belongs to."""
    sizes = [sum(not np.isnan(difference.p) for difference in part) for part in tested]
    if choices.many:  # what compares every pair allows for every pair, also where those of a baseline are shown
        whole = 0 if choices.test in AGAINST_BASELINE else comb(systems, 2)
        return [list(part) for part in tested], [max(size, whole) if size else 0 for size in sizes]
    from judged.stats.correction import corrected_family

    every = range(len(tested))
    made: list[list[Difference]] = [[] for _ in every]
    for part in [every] if choices.family == "all" else [[at] for at in every]:
        keys = [(at, place) for at in part for place in range(len(tested[at]))]

        def again(places: list[int], level: float, keys: list[tuple[int, int]] = keys) -> list[Difference]:
            chosen = [keys[place] for place in places]
            return [
                difference
                for at in dict.fromkeys(at for at, _ in chosen)
                for difference in test(at, [pairs[at][place] for of, place in chosen if of == at], level).differences
            ]

        family = [tested[at][place] for at, place in keys]
        for (at, _), difference in zip(
            keys, corrected_family(family, choices.correction, choices.alpha, again), strict=True
        ):
            made[at].append(difference)
    return made, [sum(sizes)] * len(tested) if choices.family == "all" else sizes


class Tested(NamedTuple):
    """Pairs of systems, tested and not yet corrected."""

    differences: tuple[Difference, ...] = ()  # in the order of the pairs
    overall: str = ""  # what a test of all systems at once says first
    # the mean difference from which such a test finds any pair; NaN where it does not go by one
    critical: float = math.nan


def differences(
    values: Floats,  # (R, T), NaN where a topic has no score
    pairs: Sequence[tuple[int, int]],
    choices: Choices,
    *,
    geometric: bool,
    reach: float,
    level: float | None = None,
) -> Tested:
    """Test pairs of systems by scores that are at most `reach` apart."""
    if choices.many:
        return _of_many(values, pairs, choices)
    from judged.stats.paired import paired_tests

    how: dict[str, Any] = {"level": level or choices.level, "resamples": choices.resamples, "seed": choices.seed}
    if choices.test == "bounded" and not geometric:
        how["max_difference"] = reach
    if choices.margin is not None:
        how["rope"] = choices.margin
    return Tested(tuple(map(_sufficient, paired_tests(values, pairs, "ratio" if geometric else choices.test, **how))))


def _sufficient(found: Difference) -> Difference:
    """Leave out the p-value and the interval of a difference over too few topics."""
    lacking = insufficiency(found.n)
    if lacking is None or found.n < 2:  # of one topic, `paired_tests` says so itself
        return found
    note = lacking.sentence("topic").removesuffix(".")
    return replace(found, p=math.nan, interval=None, posterior=None, note=note)


def _of_many(values: Floats, pairs: Sequence[tuple[int, int]], choices: Choices) -> Tested:
    """Ask a test of all systems at once, and take the pairs out of its matrices."""
    from judged.stats.analysis_of_variance import nemenyi
    from judged.stats.multiple import dunnett, randomised_dunnett, randomised_tukey, tukey_hsd

    test: Callable[..., Any] = {
        "tukey": tukey_hsd,
        "randomised-tukey": randomised_tukey,
        "nemenyi": nemenyi,
        "dunnett": dunnett,
        "randomised-dunnett": randomised_dunnett,
    }[choices.test]
    how: dict[str, Any] = {"level": choices.level}
    if choices.test in AGAINST_BASELINE:
        how["baseline"] = pairs[0][0]
    if choices.draws:
        how |= {"resamples": choices.resamples, "seed": choices.seed}
    tables = test(values, **how)
    at = [(second,) for _, second in pairs] if choices.test in AGAINST_BASELINE else list(pairs)
    made = tuple(_from_tables(tables, values, pair, place, choices) for pair, place in zip(pairs, at, strict=True))
    return Tested(made, tables.sentence, math.nan if choices.test in _NOT_OF_MEANS else tables.critical)


def _from_tables(
    tables: Any, values: Floats, pair: tuple[int, int], place: tuple[int, ...], choices: Choices
) -> Difference:
    """Take one pair out of the result of a test of all systems."""
    low, high = (math.nan if part is None else float(part[place]) for part in (tables.low, tables.high))
    complete, _ = complete_topics(values)
    gaps, _ = paired_differences(complete[pair[0]], complete[pair[1]])
    deviation = spread(gaps)
    difference = float(tables.differences[place])
    ranks = getattr(tables, "ranks", None)  # Nemenyi's: 1 is the highest score
    side = 1.0 if ranks is None else float(np.sign(ranks[pair[0]] - ranks[pair[1]]))
    found = Difference(
        test=choices.test,
        difference=difference,
        statistic=float(tables.statistic[place]) * side,
        p=float(tables.p[place]),
        interval=None if math.isnan(low) or math.isnan(high) else (low, high),
        level=choices.level,
        alpha=choices.alpha,
        effect=difference / deviation if deviation > 0 else math.nan,
        differing=int(np.count_nonzero(gaps)),
        alternative="two-sided",
        adjusted=float(tables.p[place]),
        correction=choices.test,
        **{name: getattr(tables, name) for name in _SHARED},
    )
    return replace(found, adjusted=math.nan) if math.isnan((found := _sufficient(found)).p) else found


def pair_of(
    scores: Scores,
    at: int,
    which: tuple[int, int],
    difference: Difference,
    choices: Choices,
    family: int,  # how many comparisons share alpha
    critical: float = math.nan,
) -> Pair:
    """Put together everything about two systems."""
    from judged.stats.effect import effect_sizes, equivalence, wins

    measure, values = scores.measures[at], _counted(scores.values[:, at], choices)
    geometric = difference.test == "ratio"
    scale = np.stack([logarithms(row) for row in values]) if geometric else values
    first, second = (values[row] for row in which)
    pair = [scale[row] for row in which]
    tost = choices.margin is not None and not geometric and difference.posterior is None
    compared = Pair(
        measure=str(measure),
        first=scores.run_names[which[0]],
        second=scores.run_names[which[1]],
        result=difference,
        effects=effect_sizes(*pair, reference=scale if len(scale) > 2 else None),
        wins=wins(first, second, choices.min_difference),
        detectable=_detectable(first, second, difference, choices, family, critical),
        equivalence=equivalence(first, second, choices.margin or 0.0, level=choices.level) if tost else None,
        gains=_extremes(scores.query_ids, first, second, 1),
        losses=_extremes(scores.query_ids, first, second, -1),
        side=int(np.sign(difference.statistic)) if difference.test == "nemenyi" else difference.side,
        alpha=choices.alpha,
        lower_is_better=measure.properties.higher_is_better is False,
        sharing=round(choices.alpha / choices.alpha_of_one(family)),
    )
    if compared.better is None or not of_means(difference.test):
        return compared
    most = math.inf if geometric else measure.properties.reach
    found = sensitivity(*pair, alpha=choices.alpha, max_difference=most, seed=choices.seed)
    few = tuple(scores.query_ids[at] for at in found.few_topics)
    return replace(compared, sensitivity=found, few_topics=few)


def _counted(values: Floats, choices: Choices) -> Floats:
    """Leave out the topics that a test of many systems leaves out: those that some system has no score for."""
    return np.where(np.isnan(values).any(axis=0), np.nan, values) if choices.many else values


def _detectable(
    first: Floats, second: Floats, tested: Difference, choices: Choices, family: int, critical: float
) -> float:
    """Give the mean difference that would be found four times out of five."""
    # NaN where that is not known of the test, no topics vary, or there are so few that none could be found.
    gaps, _ = paired_differences(first, second)
    alpha = choices.alpha_of_one(family)
    if tested.test in _NO_DETECTABLE or out_of_reach(alpha, len(gaps), tested.test, resamples=choices.resamples):
        return math.nan
    if insufficiency(len(gaps), "verdict"):
        return math.nan
    return detectable(gaps, alpha, flips=tested.test == "randomisation", critical=critical, seed=choices.seed)


def _extremes(query_ids: Sequence[str], first: Floats, second: Floats, side: int) -> tuple[TopicDifference, ...]:
    """Give the topics with the largest differences to one side, largest first; equal ones by id."""
    both = np.flatnonzero(~(np.isnan(first) | np.isnan(second)))
    gaps, _ = paired_differences(first, second)
    ahead = np.flatnonzero(side * gaps > 0)
    order = ahead[np.argsort(-np.abs(gaps[ahead]), kind="stable")][:_SHOWN_TOPICS]  # topics are in the order of ids
    return tuple(
        TopicDifference(query_ids[int(at)], gap, float(first[at]), float(second[at]))
        for at, gap in zip(both[order].tolist(), gaps[order].tolist(), strict=True)
    )
