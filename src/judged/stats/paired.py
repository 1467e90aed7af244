"""Paired tests of two systems over the same topics."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import InputError
from judged.results.spelling import one_of
from judged.stats import classical
from judged.stats import resampling as bootstrap
from judged.stats.bounded import bounded
from judged.stats.inputs import ROUNDING, topics_text
from judged.stats.resampling import randomization
from judged.stats.results import TEST_NAMES, Difference, Options, PairedResult, Posterior
from judged.stats.sample_size import MIN_DIFFERING, MIN_EFFECTIVE_DIFFERING, effective_differing, holds_error_rate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from judged.results.types import Bools, Floats, Ints
    from judged.stats.results import Alternative

TESTS = {
    "randomization": "Fisher's randomization test: random signs of the differences; interval by inverting the test",
    "t": "Student's paired t-test",
    "wilcoxon": "Wilcoxon's signed-rank test: zero differences dropped; exact up to 100 topics, with ties too",
    "sign": "the sign test: number of topics with a higher and with a lower score, ties dropped",
    "bootstrap": "bootstrap test: topics resampled after the mean difference was shifted to 0; interval by inverting"
    " the test",
    "bca": "BCa bootstrap of topics: bias-corrected and accelerated interval; p by inverting the interval",
    "studentized": "studentized bootstrap of topics: interval and p from the resampled t statistic",
    "bounded": "test by betting, for a bounded measure: valid for every distribution and number of topics",
    "ratio": "randomization test of the ratio of geometric means, as for GMAP",
    "bayes": "posterior of the mean difference under a reference prior: probabilities instead of a p-value",
}
_TESTS: dict[str, Callable[[Floats, Floats, Options], list[PairedResult]]] = {
    "randomization": randomization,
    "t": classical.student,
    "wilcoxon": classical.wilcoxon,
    "sign": classical.signs,
    "bootstrap": bootstrap.percentile,
    "bca": bootstrap.bca,
    "studentized": bootstrap.studentized,
    "bounded": bounded,
    "ratio": randomization,
    "bayes": classical.bayes,
}
_WITHOUT_INTERVAL = {"wilcoxon", "sign"}
_SMALLEST_DIFFERENCE = 1e-150  # squares of smaller differences underflow
_LARGEST_SCORE = 1e100


def paired_test(
    first: ArrayLike,
    second: ArrayLike,
    test: str = "randomization",
    *,
    alternative: Alternative = "two-sided",
    level: float = 0.95,
    resamples: int = 100_000,
    seed: int = 0,
    rope: float = 0.01,
    floor: float = 1e-5,
    max_difference: float | None = None,
) -> Difference:
    """Compare two systems by their scores on the same topics.

    Parameters
    ----------
    first, second
        (T,) scores, in the same order of topics. Topics with a NaN are left out and counted.
    test
        A name in `TESTS`; ``randomization``, ``fisher`` and ``studentized`` are accepted as well.
    alternative
        ``greater``: the second system is higher; ``less``: it is lower.
    level
        Confidence level of the interval.
    resamples, seed
        Of tests that use random numbers. The randomization test lists all 2^T sign flips if these are not more.
    rope
        For ``bayes``: mean differences from ``-rope`` to ``rope`` are practically equivalent to 0.
    floor
        For ``ratio``: minimum score; lower scores are replaced by it, as 0 has no logarithm.
    max_difference
        For ``bounded``: largest possible difference of two scores, by the definition of the measure.

    Returns
    -------
    Difference
        Second minus first. With fewer than two topics, p is NaN. If no topic has a difference, p is 1 and the interval
        is 0 to 0 (wider for ``bounded``). The randomization test replaces the requested test, and `note` says so, if
        that test would not hold its error rate with so few or so unequal differences
        (`judged.stats.sample_size.holds_error_rate`, `judged.stats.sample_size.effective_differing`), or uses their
        variance and it is 0; ``bayes`` then has no result. Differences of at most 1e-12 times the largest score count
        as 0.

    Raises
    ------
    InputError
        If the scores or an option are invalid.

    Examples
    --------
    >>> difference = paired_test([0.2, 0.4, 0.5, 0.1, 0.3], [0.3, 0.6, 0.6, 0.3, 0.3])
    >>> difference.p, difference.exact, difference.resamples
    (0.125, True, 32)
    """
    first_scores, second_scores = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if first_scores.ndim != 1 or first_scores.shape != second_scores.shape:
        raise InputError(
            f"both systems must have one score per topic, got shapes {first_scores.shape} and {second_scores.shape}",
            fix="pass two lists of numbers of the same length, in the same order of topics",
        )
    (difference,) = paired_tests(
        np.stack([first_scores, second_scores]),
        [(0, 1)],
        test,
        alternative=alternative,
        level=level,
        resamples=resamples,
        seed=seed,
        rope=rope,
        floor=floor,
        max_difference=max_difference,
    )
    return difference


def paired_tests(
    values: ArrayLike,
    pairs: Sequence[tuple[int, int]],
    test: str = "randomization",
    *,
    alternative: Alternative = "two-sided",
    level: float = 0.95,
    resamples: int = 100_000,
    seed: int = 0,
    rope: float = 0.01,
    floor: float = 1e-5,
    max_difference: float | None = None,
) -> tuple[Difference, ...]:
    """Compare many pairs of systems at once; each result is that of `paired_test`.

    p-values are not corrected for the number of pairs: see `judged.stats.correction.adjust`.

    Parameters
    ----------
    values
        (S, T): one row per system, one column per topic; NaN for missing scores.
    pairs
        Rows ``(first, second)``.
    test, alternative, level, resamples, seed, rope, floor, max_difference
        As for `paired_test`. Pairs with the same topics share their resamples.

    Returns
    -------
    tuple of Difference
        One per pair, in the same order.

    Raises
    ------
    InputError
        If the scores, a pair, or an option are invalid.

    Examples
    --------
    >>> scores = [[0.2, 0.4, 0.5, 0.1], [0.3, 0.6, 0.6, 0.3], [0.2, 0.4, 0.5, 0.1]]
    >>> [difference.p for difference in paired_tests(scores, [(0, 1), (0, 2)])]
    [0.125, 1.0]
    """
    name = one_of("paired test", test, TESTS)
    options = Options(alternative, level, resamples, seed, rope, floor, max_difference)
    scores = _check_scores(values, name)
    rows = _check_pairs(pairs, len(scores))
    if name == "ratio":
        scores = np.log(np.maximum(scores, floor))
    shared = ~(np.isnan(scores[rows[:, 0]]) | np.isnan(scores[rows[:, 1]]))
    results: list[Difference | None] = [None] * len(rows)
    masks, mask_index = _distinct_masks(shared)
    for i, mask in enumerate(masks):
        same_topics = np.flatnonzero(mask_index == i)
        differences = _test_pairs(scores, rows[same_topics], mask, name, options)
        for row, difference in zip(same_topics.tolist(), differences, strict=True):
            results[row] = difference
    return tuple(difference for difference in results if difference is not None)


def _distinct_masks(shared: Bools) -> tuple[Bools, Ints]:
    """Return the distinct rows, and the index of each row among them."""
    if len(shared) and (shared == shared[0]).all():  # np.unique sorts long rows, which takes longer than most tests
        return shared[:1], np.zeros(len(shared), dtype=np.int64)
    masks, mask_index = np.unique(shared, axis=0, return_inverse=True)
    return masks, mask_index.ravel()


def _test_pairs(
    scores: Floats, rows: np.ndarray[tuple[int, int], np.dtype[np.intp]], mask: Bools, name: str, options: Options
) -> list[Difference]:
    """Compare pairs that share their topics."""
    first, second = scores[rows[:, 0]][:, mask], scores[rows[:, 1]][:, mask]
    n = first.shape[1]
    counts = {"n": n, "left_out": len(mask) - n}
    if n < 2:
        means = (second - first).sum(axis=1) if n else np.full(len(rows), np.nan)
        no_test = PairedResult(math.nan, math.nan, note=f"{n} {'topic' if n == 1 else 'topics'}: no test is possible")
        return [
            _build_difference(
                name, no_test, options, difference=mean, effect=math.nan, differing=n if mean else 0, **counts
            )
            for mean in means.tolist()
        ]
    largest = np.maximum(np.abs(first), np.abs(second))
    differences = _snap(second - first, np.maximum(ROUNDING * largest.max(axis=1), _SMALLEST_DIFFERENCE))
    means = differences.mean(axis=1)
    is_constant = differences.min(axis=1) == differences.max(axis=1)
    sds = np.where(is_constant, 1.0, differences.std(axis=1, ddof=1))
    effects = np.where(is_constant, np.nan, means / sds)
    results: list[PairedResult] = [_constant_result(float(row[0]), name, options) for row in differences]
    differing = np.count_nonzero(differences, axis=1)
    effective = effective_differing(differences) if name in MIN_EFFECTIVE_DIFFERING else differing
    notes = [
        _replacement_note(name, n, *row)
        for row in zip(differing.tolist(), effective.tolist(), is_constant.tolist(), strict=True)
    ]
    methods = ["randomization" if note else name for note in notes]
    rounding = ROUNDING * (largest.sum(axis=1) + np.abs(differences).sum(axis=1))
    for method in dict.fromkeys(methods):
        same_method = np.array([row_method == method for row_method in methods])
        # the bounded test also has a result if no observed topic has a difference, because others may have one
        testable = np.flatnonzero(
            same_method & ((differing > 0) | (method == "bounded")) & ~(is_constant & (method == "bayes"))
        )
        if len(testable):
            method_results = _TESTS[method](differences[testable], rounding[testable], options)
            for row, result in zip(testable.tolist(), method_results, strict=True):
                results[row] = replace(result, note=notes[row] or result.note)
    return [
        _build_difference(method, result, options, difference=mean, effect=effect, differing=n_differing, **counts)
        for method, mean, effect, n_differing, result in zip(
            methods, means.tolist(), effects.tolist(), differing.tolist(), results, strict=True
        )
    ]


def _replacement_note(name: str, n: int, differing: int, effective: float, is_constant: bool) -> str:
    """Return the reason why the randomization test replaces the requested test, or "" if it does not."""
    instead = "the randomization test is used instead"
    if not differing or name not in MIN_DIFFERING:
        return ""
    if is_constant:
        return f"all topics have the same difference, so the {TEST_NAMES[name]} is not possible: {instead}"
    error = f"the {TEST_NAMES[name]} has too many false positives: {instead}"
    if holds_error_rate(name, n, differing):
        if effective >= (minimum := MIN_EFFECTIVE_DIFFERING.get(name, 0)):
            return ""
        uneven = (
            f"a few large differences dominate: together, all differences count as much as {effective:.2g}"
            " differences of equal size"
        )
        return f"{uneven}, and with fewer than {minimum} differences of equal size, {error}"
    observed = f"{differing} of {n} topics have a difference" if differing < n else f"there are {topics_text(n)}"
    unit = "topics with a difference" if differing < n else "topics"
    return f"{observed}, and with fewer than {MIN_DIFFERING[name]} {unit}, {error}"


def _constant_result(value: float, name: str, options: Options) -> PairedResult:
    """Return the result for pairs without a difference on any topic, or `bayes` with the same one on all topics."""
    if value:
        return PairedResult(math.nan, math.nan, note=f"all topics have the same difference: {name} requires variation")
    posterior = Posterior(0.5, 0.5, 0.0, 1.0, 0.0, options.rope) if name == "bayes" else None
    return PairedResult(
        statistic={"ratio": 1.0, "bayes": 0.5}.get(name, 0.0),
        p=math.nan if name == "bayes" else 1.0,
        interval=None if name in _WITHOUT_INTERVAL else options.interval(0.0, 0.0),
        exact=name != "bayes",
        note="the difference is 0 on every topic",
        posterior=posterior,
    )


def _build_difference(name: str, result: PairedResult, options: Options, **observed: Any) -> Difference:
    if name == "ratio" and result.resamples is not None:
        result = replace(result, statistic=math.exp(observed["difference"]))
    options_used: dict[str, Any] = {"level": options.level, "alpha": options.alpha, "alternative": options.alternative}
    return Difference(test=name, **options_used, **observed, **vars(result))


def _check_scores(values: ArrayLike, name: str) -> Floats:
    scores = np.asarray(values, dtype=np.float64)
    if scores.ndim != 2:
        raise InputError(
            f"scores must have 2 dimensions, got {scores.ndim}", fix="pass one row per system, one column per topic"
        )
    present = scores[~np.isnan(scores)]
    if np.any(np.abs(present) > _LARGEST_SCORE):
        raise InputError(f"scores must be finite and at most {_LARGEST_SCORE:g}", fix="use NaN for missing scores")
    if name == "ratio" and np.any(present < 0):
        raise InputError("the test 'ratio' requires scores of 0 or more", fix="use the test 'randomization'")
    return scores


def _check_pairs(pairs: Sequence[tuple[int, int]], systems: int) -> np.ndarray[tuple[int, int], np.dtype[np.intp]]:
    rows = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    if np.any((rows < 0) | (rows >= systems)):
        raise InputError(f"pairs must be row indices from 0 to {systems - 1}", fix="count rows from 0")
    return rows


def _snap(differences: Floats, rounding: Floats) -> Floats:
    """Set sizes that differ only by rounding to the same size, and sizes within rounding of 0 to 0: rows (P, T)."""
    sizes = np.abs(differences)
    order = np.argsort(sizes, axis=1)
    rising = np.take_along_axis(sizes, order, axis=1)
    steps = np.diff(rising, axis=1, prepend=0.0)
    snapped_sizes = np.maximum.accumulate(np.where(steps > rounding[:, None], rising, 0.0), axis=1)
    snapped = np.empty_like(snapped_sizes)
    np.put_along_axis(snapped, order, snapped_sizes, axis=1)
    return np.copysign(snapped, differences) + 0.0
