"""Correct p-values for the number of comparisons made."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import InputError
from judged.results.spelling import one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from judged._types import Floats
    from judged.stats.results import Difference

_ROUNDING = 1e-12
CORRECTIONS = {
    "none": "the p-values as they are",
    "bonferroni": "times the number of comparisons: holds the chance of any false finding (family-wise error)",
    "holm": "Bonferroni step by step from the least p (Holm 1979): the same guarantee, never less powerful",
    "hochberg": "Holm's steps from the largest p (Hochberg 1988): for independent or positively dependent tests",
    "bh": "Benjamini and Hochberg (1995): holds the expected share of false findings, under positive dependence",
    "by": "Benjamini and Yekutieli (2001): the same under any dependence",
}


def adjust(p_values: ArrayLike, correction: str = "holm") -> Floats:
    """Give p-values that may be compared with alpha although many comparisons were made.

    Parameters
    ----------
    p_values
        (N,) from 0 to 1. NaN: a comparison that was not made; it stays NaN and does not count.
    correction
        A name in `CORRECTIONS`.

    Returns
    -------
    (N,) float64
        In the order given; never below the p-value given, at most 1, and in the same order of size.

    Raises
    ------
    InputError
        If there is no such method, or a value is not a probability.

    Examples
    --------
    >>> adjust([0.01, 0.04, 0.03], "holm").round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    correction = one_of("correction", correction, CORRECTIONS)
    given = np.array(p_values, dtype=np.float64)
    if given.ndim != 1:
        raise InputError(f"the p-values have {given.ndim} dimensions", fix="give a list of numbers")
    made = ~np.isnan(given)
    counted = given[made]
    if np.any((counted < 0) | (counted > 1)):
        raise InputError("a p-value is not between 0 and 1", fix="give probabilities, or NaN for no comparison")
    order = np.argsort(counted, kind="stable")
    adjusted = np.empty_like(counted)
    adjusted[order] = np.minimum(_RULES[correction](counted[order]), 1.0) if len(order) else counted
    given[made] = np.maximum(adjusted, counted)  # a product may round below its factor
    return given


def interval_alphas(p_values: ArrayLike, correction: str, alpha: float) -> Floats:
    """Give 1 - level for an interval of each comparison that excludes 0 just where its corrected p is at most alpha.

    >>> interval_alphas([0.01, 0.02, 0.3], "holm", 0.05).round(4).tolist()  # the second is found at 0.05 / 2
    [0.0167, 0.025, 0.0167]
    >>> interval_alphas([0.01, 0.02, 0.3], "bh", 0.06).tolist()
    [0.04, 0.04, 0.04]
    """
    # For Bonferroni, Holm and Hochberg it is alpha / N, so that together the N intervals hold all true values with
    # probability 1 - alpha; but for what only a later step finds significant, it is that of the last step that was
    # taken. For `bh` and `by` it is the share of alpha that the R significant ones had: then at most alpha of the
    # intervals of significant comparisons are expected to miss (Benjamini and Yekutieli 2005). Returns in the order
    # given; NaN for a comparison that was not made.
    adjusted = adjust(p_values, correction)
    made = int(np.count_nonzero(~np.isnan(adjusted)))
    found = adjusted <= alpha * (1 + _ROUNDING)
    rejected = int(np.count_nonzero(found))
    share = max(rejected, 1) if correction in {"bh", "by"} else 1
    harmonic = _harmonic(made) if correction == "by" else 1.0
    base = alpha if correction == "none" or not made else alpha * share / (made * harmonic)
    later = found & (np.asarray(p_values) > base * (1 + _ROUNDING))
    alphas = np.where(later, alpha / max(made - rejected + 1, 1), base)
    return np.where(np.isnan(adjusted), np.nan, alphas)


def corrected_family(
    found: Sequence[Difference],
    method: str,
    alpha: float,
    again: Callable[[list[int], float], Sequence[Difference]],  # tests those at some places of `found` at another level
) -> list[Difference]:
    """Correct the p-values of a family, and give each difference the interval that goes with its corrected p."""
    p_values = [one.p for one in found]
    adjusted = adjust(p_values, method).tolist()
    alphas = interval_alphas(p_values, method, alpha)
    name = method if np.count_nonzero(~np.isnan(alphas)) > 1 else "none"
    made = [one.corrected(p, name, alpha) for one, p in zip(found, adjusted, strict=True)]
    off = [
        at for at, one in enumerate(found) if one.interval is not None and abs(1 - one.level - alphas[at]) > _ROUNDING
    ]
    for wanted in sorted({float(alphas[at]) for at in off}):
        places = [at for at in off if alphas[at] == wanted]
        for at, one in zip(places, again(places, 1 - wanted), strict=True):
            made[at] = replace(made[at], level=one.level, interval=one.interval)
    return made


def _left(rising: Floats) -> Any:
    """Give how many hypotheses are left at each step: N, N - 1, ..., 1."""
    return np.arange(len(rising), 0, -1)


def _harmonic(count: int) -> float:
    return float((1.0 / np.arange(1, count + 1)).sum())


def _least_from_above(steps: Floats) -> Floats:
    return np.minimum.accumulate(steps[::-1])[::-1]


_RULES: dict[str, Callable[[Floats], Floats]] = {
    "none": lambda rising: rising,
    "bonferroni": lambda rising: rising * len(rising),
    "holm": lambda rising: np.maximum.accumulate(rising * _left(rising)),
    "hochberg": lambda rising: _least_from_above(rising * _left(rising)),
    "bh": lambda rising: _least_from_above(rising * len(rising) / _left(rising)[::-1]),
    "by": lambda rising: _least_from_above(rising * len(rising) * _harmonic(len(rising)) / _left(rising)[::-1]),
}
