"""`compare`: from scores to tested differences."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison.choices import AGAINST_BASELINE, Choices, Family
from judged.comparison.comparison import Comparison
from judged.comparison.notes import notes
from judged.comparison.pair import MeasureComparison, order_of
from judged.comparison.testing import Tested, differences, pair_of
from judged.errors import InputError
from judged.evaluation.given import scores_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.evaluation import Scores
    from judged.measures import Measure
    from judged.stats import IntervalName
    from judged.stats.results import Difference


def compare(
    scores: Any,
    runs: Any = None,
    measures: Any = None,
    *,
    baseline: str | None = None,
    test: str = "randomisation",
    correction: str = "holm",
    family: Family = "measure",
    alpha: float = 0.05,
    resamples: int = 100_000,
    seed: int = 0,
    minimum: float = 0.0,
    margin: float | None = None,
    ci: IntervalName = "adjusted",
    **policies: Any,
) -> Comparison:
    """Compare systems over the same topics: whether they differ, by how much, and what could have been seen.

    Parameters
    ----------
    scores
        What `evaluate` returned, or a file that `Scores.save` wrote; or qrels, and then `runs` follow.
    runs, measures
        As `evaluate` takes them. From given scores, `measures` chooses some; with qrels they are nDCG@10 and AP, or
        the dialect's, if they are left out.
    baseline
        The name of the run that all others are compared with; None: every pair is compared.
    test
        ``randomisation`` (flips the signs of differences), ``t``, ``wilcoxon``, ``sign``, ``bootstrap``, ``bca``,
        ``studentised``, ``ratio``, ``bayes``; or a test of all systems at once, which allows for its own
        comparisons: ``tukey``, ``randomised-tukey``, ``nemenyi``, ``dunnett``. Geometric means are always compared
        by ``ratio``; counts and sums are shown, but not tested.
    correction
        For the number of comparisons: ``holm``, ``bonferroni``, ``hochberg``, ``bh``, ``by`` or ``none``.
    family
        What is corrected together: the pairs of each ``measure``, or the pairs of ``all`` measures.
    alpha
        A p-value up to here is significant. Intervals of differences have the level 1 - alpha, corrected as p is:
        they leave out 0 just where a difference is significant.
    resamples, seed
        Of tests by resampling; the intervals of the means have 2000 resamples of the same seed.
    minimum
        The least difference on a topic that counts as a win or a loss.
    margin
        Say whether systems are equivalent: surely closer than this. For ``bayes``, the region of equivalence.
    ci
        How intervals of means are made, as `IntervalMethod` says: ``adjusted``, ``t``, ``bootstrap`` or ``none``.
    policies
        Of `evaluate`, where qrels and runs are given: dialect, topics, ties, depth, precision, documents, progress.

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
    >>> from judged import compare
    >>> qrels = {f"q{at}": {"d": 1} for at in range(8)}
    >>> good, bad = ({topic: docs for topic in qrels} for docs in (["d"], ["x", "d"]))
    >>> found = compare(qrels, {"bad": bad, "good": good}, "RR")
    >>> pair = found.pair("bad", "good")
    >>> pair.found.difference, pair.found.p, pair.better  # 2 of the 2^8 ways to flip signs are as extreme
    (0.5, 0.0078125, 'good')
    """
    choices = Choices(test, correction, family, alpha, resamples, seed, minimum, margin, baseline)
    table = scores_of(scores, runs, measures, policies)
    return compared(table, choices, ci)


def compared(scores: Scores, choices: Choices, ci: IntervalName = "adjusted") -> Comparison:
    """Compare the systems of a table of scores."""
    names = scores.run_names
    if len(names) < 2:
        raise InputError(f"there is nothing to compare {', '.join(names)} with", fix="give two runs or more")
    if choices.baseline is not None and choices.baseline not in names:
        raise InputError(f"no run {choices.baseline!r} to be the baseline", fix=f"one of {', '.join(names)}")
    estimates = scores.estimates(ci=ci, level=choices.level, seed=choices.seed)
    by_measure = [tuple(one for one in estimates if one.measure == name) for name in scores.measure_names]
    reasons = [_untested(one, choices) for one in scores.measures]
    pairs: list[tuple[tuple[int, int], ...]] = [
        () if reason else _pairs(names, choices.baseline, order_of(one, found))
        for one, reason, found in zip(scores.measures, reasons, by_measure, strict=True)
    ]

    def test(at: int, which: Sequence[tuple[int, int]], level: float) -> Tested:
        geometric = scores.measures[at].entry.aggregate == "geometric mean"
        return differences(scores.values[:, at], which, choices, geometric=geometric, level=level)

    sizes = [len(which) for which in pairs]
    expected = [sum(sizes) if choices.family == "all" else size for size in sizes]
    tested = [
        test(at, which, 1 - choices.alpha_of_one(expected[at])) if which else Tested() for at, which in enumerate(pairs)
    ]
    corrected, sizes = _corrected([one.found for one in tested], pairs, choices, test, len(names))
    made = tuple(
        MeasureComparison(
            measure=one,
            estimates=by_measure[at],
            pairs=tuple(
                pair_of(scores, at, which, found, choices, sizes[at], tested[at].critical)
                for which, found in zip(pairs[at], corrected[at], strict=True)
            ),
            family=sizes[at],
            untested=reasons[at],
            overall=tested[at].overall,
        )
        for at, one in enumerate(scores.measures)
    )
    return Comparison(scores, made, choices, ci, notes(scores, made, choices))


def _pairs(names: Sequence[str], baseline: str | None, order: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Choose pairs (first, second): all against the baseline; two as they are given; of many the better one second."""
    if baseline is not None:
        first = names.index(baseline)
        return tuple((first, at) for at in range(len(names)) if at != first)
    if len(names) == 2:
        return ((0, 1),)
    return tuple((worse, better) for better, worse in combinations(order, 2))


def _untested(measure: Measure, choices: Choices) -> str:
    """Say why a measure is not tested, or nothing."""
    kind = measure.entry.aggregate
    if kind in {"sum", "count"}:
        return f"{measure} is a {kind} over the topics: it is shown, and not tested"
    if kind == "geometric mean" and choices.many:
        return f"{measure} is compared by ratios, which {choices.test} does not do: it is shown, and not tested"
    return ""


def _corrected(
    found: list[tuple[Difference, ...]],
    pairs: Sequence[Sequence[tuple[int, int]]],
    choices: Choices,
    test: Callable[[int, Sequence[tuple[int, int]], float], Tested],
    systems: int,
) -> tuple[list[list[Difference]], list[int]]:
    """Correct each family, p-values and intervals, and give the size of the family that each measure belongs to."""
    sizes = [sum(not np.isnan(one.p) for one in part) for part in found]
    if choices.many:  # what compares every pair allows for every pair, also where those of a baseline are shown
        whole = 0 if choices.test in AGAINST_BASELINE else comb(systems, 2)
        return [list(part) for part in found], [max(size, whole) if size else 0 for size in sizes]
    from judged.stats.correction import corrected_family

    every = range(len(found))
    made: list[list[Difference]] = [[] for _ in every]
    for part in [every] if choices.family == "all" else [[at] for at in every]:
        keys = [(at, place) for at in part for place in range(len(found[at]))]

        def again(places: list[int], level: float, keys: list[tuple[int, int]] = keys) -> list[Difference]:
            chosen = [keys[place] for place in places]
            return [
                one
                for at in dict.fromkeys(at for at, _ in chosen)
                for one in test(at, [pairs[at][place] for of, place in chosen if of == at], level).found
            ]

        family = [found[at][place] for at, place in keys]
        for (at, _), one in zip(keys, corrected_family(family, choices.correction, choices.alpha, again), strict=True):
            made[at].append(one)
    return made, [sum(sizes)] * len(found) if choices.family == "all" else sizes
