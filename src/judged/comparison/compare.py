"""`compare`: tests of systems from a table of scores, by the functions of `judged.stats`."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from math import comb
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from judged.comparison.answer import Comparison, MeasureComparison
from judged.comparison.choices import AGAINST_BASELINE, Choices, Family, default_resamples, default_test, notes
from judged.comparison.pair import Pair, TopicDifference, is_test_of_means
from judged.data.run import find_run_name
from judged.errors import InputError
from judged.scoring.evaluation.evaluate import build_run_function, select_measures
from judged.scoring.measures.aggregates import logarithms
from judged.stats.inputs import complete_topics, paired_differences, spread
from judged.stats.interval import IntervalMethod
from judged.stats.results import Difference
from judged.stats.sample_size import cannot_be_significant, detectable
from judged.stats.sensitivity import sensitivity
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.results.types import Floats
    from judged.scoring.evaluation import Scores
    from judged.scoring.measures.base import Measure
    from judged.stats.interval import IntervalName

_MAX_TOPICS = 3
_SHARED_FIELDS = ("n", "left_out", "resamples", "exact", "seed", "note")  # of joint and paired tests
_NOT_ON_MEANS = ("sign", "wilcoxon", "nemenyi", "ratio")
_NO_DETECTABLE = (*_NOT_ON_MEANS, "bounded")  # `detectable` is that of the more powerful t-test


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
    """Compare systems over the same topics: tests, intervals, effect sizes, and detectable differences.

    Parameters
    ----------
    scores
        Result of `evaluate`.
    measures
        Subset of the evaluated measures; None: all.
    baseline
        Name of the run that all others are compared with; None: all pairs.
    test
        ``randomization`` (flips the signs of differences), ``t``, ``wilcoxon``, ``sign``, ``bootstrap``, ``bca``,
        ``studentized``, ``bounded``, ``ratio``, ``bayes``; or a joint test of all systems, which corrects for its own
        comparisons: ``tukey``, ``randomized-tukey``, ``nemenyi``, ``dunnett``. Geometric means are always compared
        by ``ratio``; counts and sums are shown but not tested. ``bounded`` is valid for every distribution and number
        of topics, and requires bounded measures. None: ``randomization``, or ``t`` with more than 2,000 topics.
    correction
        Correction for multiple comparisons: ``holm``, ``bonferroni``, ``hochberg``, ``bh``, ``by`` or ``none``.
    family
        Comparisons that are corrected together: the pairs of each ``measure``, or the pairs of ``all`` measures.
    alpha
        P-values up to this value are significant. Intervals of differences have level 1 - alpha with the same
        correction: they exclude 0 exactly if the difference is significant.
    resamples, seed
        Of resampling tests; None: 100,000 resamples, or 10,000 with more than 300 topics. The intervals of means use
        2000 resamples with the same seed.
    min_difference
        Smallest difference on a topic that counts as a win or a loss.
    margin
        Margin of the equivalence test; for ``bayes``, the region of practical equivalence. None: no such test.
    ci
        Method of the intervals of means (see `IntervalMethod`): ``adjusted``, ``t``, ``bootstrap`` or ``none``.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        If there are fewer than two runs, the baseline, test, correction, or measure is unknown, or input is invalid.
    MeasureError
        If a measure does not exist.

    Examples
    --------
    >>> from judged import evaluate
    >>> qrels = {f"q{i}": {"d": 1} for i in range(8)}
    >>> good, bad = ({topic: docs for topic in qrels} for docs in (["d"], ["x", "d"]))
    >>> scores = evaluate(qrels, {"bad": bad, "good": good}, ["RR", "AP"])
    >>> scores.compare(measures="RR", baseline="bad").pair("bad", "good").better
    'good'
    """
    topics = len(scores.query_ids)
    test, resamples = test or default_test(topics), resamples or default_resamples(topics)
    choices = Choices(test, correction, family, alpha, resamples, seed, min_difference, margin, baseline)
    return compare_scores(scores if measures is None else select_measures(scores, measures), choices, ci)


compare = build_run_function(
    comparison_of_scores,
    "compare",
    examples="""
    >>> from judged import compare
    >>> qrels = {f"q{i}": {"d": 1} for i in range(8)}
    >>> good, bad = ({topic: docs for topic in qrels} for docs in (["d"], ["x", "d"]))
    >>> pair = compare(qrels, {"bad": bad, "good": good}, "RR").pair("bad", "good")
    >>> pair.result.difference, pair.result.p, pair.better  # 2 of the 2^8 ways to flip signs are as extreme
    (0.5, 0.0078125, 'good')
    """,
)


def compare_scores(scores: Scores, choices: Choices, ci: IntervalName = "adjusted") -> Comparison:
    """Compare the systems of a table of scores."""
    names = scores.run_names
    if len(names) < 2:
        raise InputError(f"at least two runs are required, got {', '.join(names) or 'none'}", fix="add a run")
    if choices.baseline is not None:
        choices = replace(choices, baseline=find_run_name(choices.baseline, names, "to use as the baseline"))
    if choices.test == "bounded":
        for measure in scores.measures:
            check_bounds(measure)
    comparison = untested_comparison(scores, choices, ci)
    measures = [*comparison.measures]
    pairs = [() if row.untested else _index_pairs(names, choices.baseline, row.order()) for row in measures]

    def test(column: int, pairs: Sequence[tuple[int, int]], level: float) -> PairTests:
        measure = scores.measures[column]
        geometric, max_difference = measure.entry.aggregate == "geometric mean", measure.properties.score_range
        return run_paired_tests(
            scores.values[:, column], pairs, choices, geometric=geometric, max_difference=max_difference, level=level
        )

    # intervals need the corrected level before the p-values, and so the size of the family, are known
    sizes = [*map(len, pairs)]
    expected = [sum(sizes) if choices.family == "all" else size for size in sizes]
    tests = [
        test(column, pairs[column], 1 - choices.alpha_per_comparison(size)) if pairs[column] else PairTests()
        for column, size in enumerate(expected)
    ]
    corrected, sizes = _correct_families([*map(attrgetter("differences"), tests)], pairs, choices, test, len(names))
    for column, row in enumerate(measures):
        tested_pairs = tuple(
            build_pair(scores, column, rows, difference, choices, sizes[column], tests[column].critical)
            for rows, difference in zip(pairs[column], corrected[column], strict=True)
        )
        measures[column] = replace(row, pairs=tested_pairs, family=sizes[column], overall=tests[column].overall)
    return replace(comparison, measures=tuple(measures), notes=(*scores.notes, *notes(scores, measures, choices)))


def comparison_of_runs(comparison: Comparison, scores: Scores) -> Comparison:
    """Return a comparison restricted to some runs; tests and corrections are still those of all runs.

    Parameters
    ----------
    comparison
        Comparison of all runs.
    scores
        Scores of the remaining runs, by the same measures and over the same topics.
    """
    runs = scores.run_names
    measures = tuple(
        replace(
            measure,
            estimates=tuple(estimate for run in runs for estimate in measure.estimates if estimate.run == run),
            pairs=tuple(pair for pair in measure.pairs if pair.first in runs and pair.second in runs),
        )
        for measure in comparison.measures
    )
    all_notes = (*scores.notes, *notes(scores, measures, comparison.choices))
    return replace(comparison, scores=scores, measures=measures, notes=all_notes)


def untested_comparison(scores: Scores, choices: Choices, ci: IntervalName = "adjusted") -> Comparison:
    """Return the estimates of one or more systems with their intervals, without any test."""
    estimates = scores.estimates(ci=ci, level=choices.level, seed=choices.seed)
    measures = (
        MeasureComparison(measure, estimates[column :: len(scores.measures)], (), 0, _untested_reason(measure, choices))
        for column, measure in enumerate(scores.measures)
    )
    interval_rules = scores.interval_caption(IntervalMethod(ci, choices.level, seed=choices.seed))
    return Comparison(scores, tuple(measures), choices, scores.notes, interval_rules, scores.rules())


def _index_pairs(names: Sequence[str], baseline: str | None, order: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Select pairs (first, second): baseline first; two systems in given order; else the better system second."""
    if baseline is not None:
        first = names.index(baseline)
        return tuple((first, i) for i in range(len(names)) if i != first)
    if len(names) == 2:
        return ((0, 1),)
    return tuple((worse, better) for better, worse in combinations(order, 2))


def check_bounds(measure: Measure) -> None:
    """Raise InputError if the bounded test cannot compare a measure."""
    if measure.entry.aggregate == "geometric mean":
        problem = (
            f"test 'bounded' requires bounded scores, but the logarithms in the geometric mean {measure} are unbounded"
        )
        raise InputError(problem, fix="remove the measure, or use another test")
    if measure.entry.aggregate == "mean" and math.isinf(measure.properties.score_range):
        end = "lower" if measure.properties.low is None else "upper"
        problem = f"test 'bounded' requires bounded scores, but {measure} has no {end} bound"
        raise InputError(problem, fix="use a bounded measure, such as nDCG@10, or another test")


def _untested_reason(measure: Measure, choices: Choices) -> str:
    kind = measure.entry.aggregate
    if kind in {"sum", "count"}:
        return f"{measure} is a {kind} over topics, and was not tested"
    if kind == "geometric mean" and choices.is_joint_test:
        return f"{measure} requires a comparison by ratios, which {choices.test} does not support, and was not tested"
    return ""


def _correct_families(
    tested: list[tuple[Difference, ...]],
    pairs: Sequence[Sequence[tuple[int, int]]],
    choices: Choices,
    test: Callable[[int, Sequence[tuple[int, int]], float], PairTests],
    systems: int,
) -> tuple[list[list[Difference]], list[int]]:
    """Correct p-values and intervals by family, and return the family size of each measure."""
    sizes = [sum(not np.isnan(difference.p) for difference in members) for members in tested]
    if choices.is_joint_test:  # Tukey's and Nemenyi's tests correct for all pairs, even if only a few are reported
        all_pairs = 0 if choices.test in AGAINST_BASELINE else comb(systems, 2)
        return [list(members) for members in tested], [max(size, all_pairs) if size else 0 for size in sizes]
    from judged.stats.correction import corrected_family

    columns = range(len(tested))
    corrected: list[list[Difference]] = [[] for _ in columns]
    for members in [columns] if choices.family == "all" else [[column] for column in columns]:
        keys = [(column, i) for column in members for i in range(len(tested[column]))]

        # step-down corrections use a larger alpha in later steps: intervals are recomputed at that level
        def retest(positions: list[int], level: float, keys: list[tuple[int, int]] = keys) -> list[Difference]:
            selected = [keys[i] for i in positions]
            return [
                difference
                for column in dict.fromkeys(column for column, _ in selected)
                for difference in test(column, [pairs[c][i] for c, i in selected if c == column], level).differences
            ]

        family = [tested[column][i] for column, i in keys]
        differences = corrected_family(family, choices.correction, choices.alpha, retest)
        for (column, _), difference in zip(keys, differences, strict=True):
            corrected[column].append(difference)
    return corrected, [sum(sizes)] * len(tested) if choices.family == "all" else sizes


class PairTests(NamedTuple):
    """Test results before correction."""

    differences: tuple[Difference, ...] = ()  # in the order of the pairs
    overall: str = ""  # overall result of a joint test
    critical: float = math.nan  # smallest significant mean difference of a joint test; NaN if it is not constant


def run_paired_tests(
    values: Floats,  # (R, T), NaN where a topic has no score
    pairs: Sequence[tuple[int, int]],
    choices: Choices,
    *,
    geometric: bool,
    max_difference: float,
    level: float | None = None,
) -> PairTests:
    """Test pairs of systems; `max_difference` is the largest possible difference of two scores."""
    if choices.is_joint_test:
        return _run_joint_test(values, pairs, choices)
    from judged.stats.paired import paired_tests

    options: dict[str, Any] = {"level": level or choices.level, "resamples": choices.resamples, "seed": choices.seed}
    if choices.test == "bounded" and not geometric:
        options["max_difference"] = max_difference
    if choices.margin is not None:
        options["rope"] = choices.margin
    results = paired_tests(values, pairs, "ratio" if geometric else choices.test, **options)
    return PairTests(tuple(map(_drop_invalid_test, results)))


def _drop_invalid_test(difference: Difference) -> Difference:
    """Remove p-value and interval of a difference over too few topics."""
    reason = insufficiency(difference.n)
    if reason is None or difference.n < 2:  # for one topic, `paired_tests` adds a note of its own
        return difference
    note = reason.sentence("topic").removesuffix(".")
    return replace(difference, p=math.nan, interval=None, posterior=None, note=note)


def _run_joint_test(values: Floats, pairs: Sequence[tuple[int, int]], choices: Choices) -> PairTests:
    """Run a joint test, and extract the pairs from its matrices."""
    from judged.stats.analysis_of_variance import nemenyi
    from judged.stats.multiple import dunnett, randomized_dunnett, randomized_tukey, tukey_hsd

    test: Callable[..., Any] = {
        "tukey": tukey_hsd,
        "randomized-tukey": randomized_tukey,
        "nemenyi": nemenyi,
        "dunnett": dunnett,
        "randomized-dunnett": randomized_dunnett,
    }[choices.test]
    options: dict[str, Any] = {"level": choices.level}
    if choices.test in AGAINST_BASELINE:
        options["baseline"] = pairs[0][0]
    if choices.uses_resampling:
        options |= {"resamples": choices.resamples, "seed": choices.seed}
    matrices = test(values, **options)
    # tests against a baseline return one value per system, the others a matrix
    indices = [(second,) for _, second in pairs] if choices.test in AGAINST_BASELINE else list(pairs)
    rows = zip(pairs, indices, strict=True)
    differences = tuple(_matrix_difference(matrices, values, pair, index, choices) for pair, index in rows)
    critical = math.nan if choices.test in _NOT_ON_MEANS else matrices.critical
    return PairTests(differences, matrices.sentence, critical)


def _matrix_difference(
    matrices: Any, values: Floats, pair: tuple[int, int], index: tuple[int, ...], choices: Choices
) -> Difference:
    low, high = (math.nan if matrix is None else float(matrix[index]) for matrix in (matrices.low, matrices.high))
    complete, _ = complete_topics(values)
    topic_differences, _ = paired_differences(complete[pair[0]], complete[pair[1]])
    # standardized effect: mean difference in units of the spread of topic differences
    deviation = spread(topic_differences)
    difference = float(matrices.differences[index])
    ranks = getattr(matrices, "ranks", None)  # Nemenyi's: 1 is the highest score
    sign = 1.0 if ranks is None else float(np.sign(ranks[pair[0]] - ranks[pair[1]]))
    result = Difference(
        test=choices.test,
        difference=difference,
        statistic=float(matrices.statistic[index]) * sign,
        p=float(matrices.p[index]),
        interval=None if math.isnan(low) or math.isnan(high) else (low, high),
        level=choices.level,
        alpha=choices.alpha,
        effect=difference / deviation if deviation > 0 else math.nan,
        differing=int(np.count_nonzero(topic_differences)),
        alternative="two-sided",
        adjusted=float(matrices.p[index]),
        correction=choices.test,
        **{name: getattr(matrices, name) for name in _SHARED_FIELDS},
    )
    return replace(result, adjusted=math.nan) if math.isnan((result := _drop_invalid_test(result)).p) else result


def build_pair(
    scores: Scores,
    column: int,
    rows: tuple[int, int],
    difference: Difference,
    choices: Choices,
    family: int,  # number of comparisons that share alpha
    critical: float = math.nan,
) -> Pair:
    """Build the full comparison of two systems."""
    from judged.stats.effect import effect_sizes, equivalence, wins

    measure, values = scores.measures[column], _complete_scores(scores.values[:, column], choices)
    geometric = difference.test == "ratio"
    scaled_values = np.stack([logarithms(row) for row in values]) if geometric else values
    first, second = (values[row] for row in rows)
    scaled = [scaled_values[row] for row in rows]
    # the equivalence test (TOST) is one of mean differences
    tost = choices.margin is not None and not geometric and difference.posterior is None
    pair = Pair(
        measure=str(measure),
        first=scores.run_names[rows[0]],
        second=scores.run_names[rows[1]],
        result=difference,
        effects=effect_sizes(*scaled, reference=scaled_values if len(scaled_values) > 2 else None),
        wins=wins(first, second, choices.min_difference),
        detectable=_detectable(first, second, difference, choices, family, critical),
        equivalence=equivalence(first, second, choices.margin or 0.0, level=choices.level) if tost else None,
        gains=_extreme_topics(scores.query_ids, first, second, 1),
        losses=_extreme_topics(scores.query_ids, first, second, -1),
        side=int(np.sign(difference.statistic)) if difference.test == "nemenyi" else difference.side,
        alpha=choices.alpha,
        lower_is_better=measure.properties.higher_is_better is False,
        sharing=round(choices.alpha / choices.alpha_per_comparison(family)),
    )
    if pair.better is None or not is_test_of_means(difference.test):
        return pair
    # logarithms have no bounds
    max_difference = math.inf if geometric else measure.properties.score_range
    sensitivity_result = sensitivity(*scaled, alpha=choices.alpha, max_difference=max_difference, seed=choices.seed)
    few_topics = tuple(scores.query_ids[topic] for topic in sensitivity_result.few_topics)
    return replace(pair, sensitivity=sensitivity_result, few_topics=few_topics)


def _complete_scores(values: Floats, choices: Choices) -> Floats:
    # joint tests need complete topics: they drop a topic for all systems if one system has no score there
    return np.where(np.isnan(values).any(axis=0), np.nan, values) if choices.is_joint_test else values


def _detectable(
    first: Floats, second: Floats, result: Difference, choices: Choices, family: int, critical: float
) -> float:
    # Mean difference found with 80% power. NaN: unknown for this test, no variance, or too few topics.
    differences, _ = paired_differences(first, second)
    alpha, n = choices.alpha_per_comparison(family), len(differences)
    if result.test in _NO_DETECTABLE or cannot_be_significant(alpha, n, result.test, resamples=choices.resamples):
        return math.nan
    if insufficiency(n, "verdict"):
        return math.nan
    return detectable(differences, alpha, flips=result.test == "randomization", critical=critical, seed=choices.seed)


def _extreme_topics(query_ids: Sequence[str], first: Floats, second: Floats, sign: int) -> tuple[TopicDifference, ...]:
    shared = np.flatnonzero(~(np.isnan(first) | np.isnan(second)))
    differences, _ = paired_differences(first, second)
    rows = np.flatnonzero(sign * differences > 0)
    # stable sort: topics with equal differences stay in the order of their ids
    order = rows[np.argsort(-np.abs(differences[rows]), kind="stable")][:_MAX_TOPICS]
    return tuple(
        TopicDifference(query_ids[int(topic)], difference, float(first[topic]), float(second[topic]))
        for topic, difference in zip(shared[order].tolist(), differences[order].tolist(), strict=True)
    )
