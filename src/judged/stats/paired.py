"""Tests of two systems over the same topics: whether a difference is more than chance in the choice of topics."""

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
from judged.stats.resampling import randomisation
from judged.stats.results import TEST_NAMES, Difference, Options, PairedResult, Posterior
from judged.stats.sample_size import LEAST_DIFFERING, LEAST_EFFECTIVE, believed, effective_differing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from judged.results.types import Bools, Floats, Ints
    from judged.stats.results import Alternative

TESTS = {
    "randomisation": "Fisher's randomisation test: signs of differences flipped at random; interval by inverting it",
    "t": "Student's paired t-test",
    "wilcoxon": "Wilcoxon's signed-rank test: zero differences dropped; exact up to 100 topics, with ties too",
    "sign": "the sign test: wins against losses, ties dropped",
    "bootstrap": "topics resampled, and shifted to a mean of 0; interval by inverting it",
    "bca": "topics resampled: bias-corrected and accelerated interval, p by inverting it",
    "studentised": "topics resampled: interval and p from the bootstrapped t statistic",
    "bounded": "bets on differences of a bounded measure: holds for every distribution and number of topics",
    "ratio": "randomisation test of the ratio of geometric means, as for GMAP",
    "bayes": "posterior of the mean difference under a reference prior: probabilities instead of a p-value",
}
_TESTS: dict[str, Callable[[Floats, Floats, Options], list[PairedResult]]] = {
    "randomisation": randomisation,
    "t": classical.student,
    "wilcoxon": classical.wilcoxon,
    "sign": classical.signs,
    "bootstrap": bootstrap.percentile,
    "bca": bootstrap.bca,
    "studentised": bootstrap.studentised,
    "bounded": bounded,
    "ratio": randomisation,
    "bayes": classical.bayes,
}
_WITHOUT_INTERVAL = {"wilcoxon", "sign"}
_LEAST = 1e-150  # smaller differences have no square
_MOST = 1e100


def paired_test(
    first: ArrayLike,
    second: ArrayLike,
    test: str = "randomisation",
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
        (T,) scores; the same topic at the same place. NaN: no score; the topic is left out, and counted.
    test
        A name in `TESTS`; ``randomization``, ``fisher`` and ``studentized`` are understood as well.
    alternative
        ``greater``: only a second system that is higher counts; ``less``: only one that is lower.
    level
        Of the interval.
    resamples, seed
        Of the methods that draw some. The randomisation test lists all 2^T sign flips where these are not more.
    rope
        For ``bayes``: mean differences from ``-rope`` to ``rope`` are practically nothing.
    floor
        For ``ratio``: lower scores count as this, as 0 has no logarithm.
    max_difference
        For ``bounded``: largest possible difference of two scores, by the definition of the measure.

    Returns
    -------
    Difference
        Second minus first. Without a topic, or with one, p is NaN. If no topic has a difference, p is 1 and the
        interval 0 to 0 (that of ``bounded`` is wider). Where so few topics differ, or a few outweigh the others so
        much, that the method would not hold its error rate (`judged.stats.sample_size.believed`,
        `judged.stats.sample_size.effective_differing`), or all have the same difference and it judges by how they vary,
        the randomisation test takes its place, and the result says so; ``bayes`` then has no answer. Differences of at
        most 1e-12 times the largest score are rounding and count as 0.

    Raises
    ------
    InputError
        If the scores or an option cannot be used.

    Examples
    --------
    >>> found = paired_test([0.2, 0.4, 0.5, 0.1, 0.3], [0.3, 0.6, 0.6, 0.3, 0.3])
    >>> found.p, found.exact, found.resamples
    (0.125, True, 32)
    """
    one, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.ndim != 1 or one.shape != two.shape:
        raise InputError(
            f"the scores have the shapes {one.shape} and {two.shape}",
            fix="give two lists of numbers of the same length, the same topic at the same place",
        )
    (found,) = paired_tests(
        np.stack([one, two]),
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
    return found


def paired_tests(
    values: ArrayLike,
    pairs: Sequence[tuple[int, int]],
    test: str = "randomisation",
    *,
    alternative: Alternative = "two-sided",
    level: float = 0.95,
    resamples: int = 100_000,
    seed: int = 0,
    rope: float = 0.01,
    floor: float = 1e-5,
    max_difference: float | None = None,
) -> tuple[Difference, ...]:
    """Compare many pairs of systems at the cost of a few; each result is that of `paired_test`.

    p-values are not corrected for the number of pairs: see `judged.stats.correction.adjust`.

    Parameters
    ----------
    values
        (S, T): one row per system, one column per topic. NaN: no score.
    pairs
        Rows ``(first, second)``.
    test, alternative, level, resamples, seed, rope, floor, max_difference
        As for `paired_test`. Pairs with the same topics share their resamples.

    Returns
    -------
    One for each pair, in their order.

    Raises
    ------
    InputError
        If the scores, a pair or an option cannot be used.

    Examples
    --------
    >>> scores = [[0.2, 0.4, 0.5, 0.1], [0.3, 0.6, 0.6, 0.3], [0.2, 0.4, 0.5, 0.1]]
    >>> [found.p for found in paired_tests(scores, [(0, 1), (0, 2)])]
    [0.125, 1.0]
    """
    name = one_of("paired test", test, TESTS)
    options = Options(alternative, level, resamples, seed, rope, floor, max_difference)
    scores = _checked(values, name)
    rows = _rows(pairs, len(scores))
    if name == "ratio":
        scores = np.log(np.maximum(scores, floor))
    shared = ~(np.isnan(scores[rows[:, 0]]) | np.isnan(scores[rows[:, 1]]))
    results: list[Difference | None] = [None] * len(rows)
    masks, mask_of = _distinct(shared)
    for at, mask in enumerate(masks):
        alike = np.flatnonzero(mask_of == at)
        for place, found in zip(alike.tolist(), _over(scores, rows[alike], mask, name, options), strict=True):
            results[place] = found
    return tuple(found for found in results if found is not None)


def _distinct(shared: Bools) -> tuple[Bools, Ints]:
    """Give the distinct rows, and which of them each row is; sorting long rows costs more than most tests do."""
    if len(shared) and (shared == shared[0]).all():
        return shared[:1], np.zeros(len(shared), dtype=np.int64)
    masks, mask_of = np.unique(shared, axis=0, return_inverse=True)
    return masks, mask_of.ravel()


def _over(
    scores: Floats, rows: np.ndarray[tuple[int, int], np.dtype[np.intp]], mask: Bools, name: str, options: Options
) -> list[Difference]:
    """Compare pairs that share their topics."""
    first, second = scores[rows[:, 0]][:, mask], scores[rows[:, 1]][:, mask]
    n = first.shape[1]
    shared = {"n": n, "left_out": len(mask) - n}
    if n < 2:
        means = (second - first).sum(axis=1) if n else np.full(len(rows), np.nan)
        unknown = PairedResult(math.nan, math.nan, note=f"{n} {'topic' if n == 1 else 'topics'}: no test is possible")
        return [
            _difference(name, unknown, options, difference=mean, effect=math.nan, differing=n if mean else 0, **shared)
            for mean in means.tolist()
        ]
    largest = np.maximum(np.abs(first), np.abs(second))
    differences = _snapped(second - first, np.maximum(ROUNDING * largest.max(axis=1), _LEAST))
    means = differences.mean(axis=1)
    level = differences.min(axis=1) == differences.max(axis=1)
    deviations = np.where(level, 1.0, differences.std(axis=1, ddof=1))
    effects = np.where(level, np.nan, means / deviations)
    answers: list[PairedResult] = [_level(float(row[0]), name, options) for row in differences]
    differing = np.count_nonzero(differences, axis=1)
    effective = effective_differing(differences) if name in LEAST_EFFECTIVE else differing
    replaced = [
        _replaced(name, n, *row) for row in zip(differing.tolist(), effective.tolist(), level.tolist(), strict=True)
    ]
    methods = ["randomisation" if why else name for why in replaced]
    rounding = ROUNDING * (largest.sum(axis=1) + np.abs(differences).sum(axis=1))
    for method in dict.fromkeys(methods):
        alike = np.array([other == method for other in methods])
        # topics without a difference are no proof that others have none: the bounded test has an answer there too
        tested = np.flatnonzero(alike & ((differing > 0) | (method == "bounded")) & ~(level & (method == "bayes")))
        if len(tested):
            found = _TESTS[method](differences[tested], rounding[tested], options)
            for row, answer in zip(tested.tolist(), found, strict=True):
                answers[row] = replace(answer, note=replaced[row] or answer.note)
    return [
        _difference(method, answer, options, difference=mean, effect=effect, differing=moved, **shared)
        for method, mean, effect, moved, answer in zip(
            methods, means.tolist(), effects.tolist(), differing.tolist(), answers, strict=True
        )
    ]


def _replaced(name: str, n: int, differing: int, effective: float, level: bool) -> str:
    """Say why the randomisation test stands in place of the one that was asked for; nothing, where that is believed."""
    instead = "this is the randomisation test in its place"
    if not differing or name not in LEAST_DIFFERING:
        return ""
    if level:
        return f"all topics have the same difference, by which the {TEST_NAMES[name]} cannot judge: {instead}"
    finds = f"the {TEST_NAMES[name]} finds differences too often: {instead}"
    if believed(name, n, differing):
        if effective >= (least := LEAST_EFFECTIVE.get(name, 0)):
            return ""
        uneven = f"a few large differences outweigh the others, like {effective:.2g} topics with equal differences"
        return f"{uneven}, and with fewer than {least} {finds}"
    some = f"{differing} of {n} topics have a difference" if differing < n else f"there are {topics_text(n)}"
    return f"{some}, and with fewer than {LEAST_DIFFERING[name]} that differ {finds}"


def _level(value: float, name: str, options: Options) -> PairedResult:
    """Answer where no topic has a difference, or all have the same one and beliefs are asked for."""
    if value:
        return PairedResult(
            math.nan, math.nan, note=f"all topics have the same difference: {name} needs some variation"
        )
    posterior = Posterior(0.5, 0.5, 0.0, 1.0, 0.0, options.rope) if name == "bayes" else None
    return PairedResult(
        statistic={"ratio": 1.0, "bayes": 0.5}.get(name, 0.0),
        p=math.nan if name == "bayes" else 1.0,
        interval=None if name in _WITHOUT_INTERVAL else options.interval(0.0, 0.0),
        exact=name != "bayes",
        note="no topic has a difference",
        posterior=posterior,
    )


def _difference(name: str, found: PairedResult, options: Options, **seen: Any) -> Difference:
    """Put together what was asked, what was seen before any test, and what the test answers."""
    if name == "ratio" and found.resamples is not None:
        found = replace(found, statistic=math.exp(seen["difference"]))
    asked: dict[str, Any] = {"level": options.level, "alpha": options.alpha, "alternative": options.alternative}
    return Difference(test=name, **asked, **seen, **vars(found))


def _checked(values: ArrayLike, name: str) -> Floats:
    scores = np.asarray(values, dtype=np.float64)
    if scores.ndim != 2:
        raise InputError(
            f"the scores have {scores.ndim} dimensions", fix="give one row per system, one column per topic"
        )
    known = scores[~np.isnan(scores)]
    if np.any(np.abs(known) > _MOST):
        raise InputError("a score is infinite, or as good as", fix="give finite scores, or NaN for no score")
    if name == "ratio" and np.any(known < 0):
        raise InputError("a score is below 0, and a ratio of geometric means is of none", fix="take randomisation")
    return scores


def _rows(pairs: Sequence[tuple[int, int]], systems: int) -> np.ndarray[tuple[int, int], np.dtype[np.intp]]:
    rows = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    if np.any((rows < 0) | (rows >= systems)):
        raise InputError(f"a pair names a row that is not there: there are {systems}", fix="count rows from 0")
    return rows


def _snapped(differences: Floats, rounding: Floats) -> Floats:
    """Make sizes that differ by rounding alone the same size, and those that are rounding alone 0; rows (P, T)."""
    sizes = np.abs(differences)
    order = np.argsort(sizes, axis=1)
    rising = np.take_along_axis(sizes, order, axis=1)
    steps = np.diff(rising, axis=1, prepend=0.0)
    level = np.maximum.accumulate(np.where(steps > rounding[:, None], rising, 0.0), axis=1)
    snapped = np.empty_like(level)
    np.put_along_axis(snapped, order, level, axis=1)
    return np.copysign(snapped, differences) + 0.0
