"""Correct p-values for the number of comparisons made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from judged._types import Floats

CORRECTIONS = {
    "none": "the p-values as they are",
    "bonferroni": "times the number of comparisons: holds the chance of any false finding (family-wise error)",
    "holm": "Bonferroni step by step from the least p (Holm 1979): the same guarantee, never less powerful",
    "hochberg": "Holm's steps from the largest p (Hochberg 1988): for independent or positively dependent tests",
    "bh": "Benjamini and Hochberg (1995): holds the expected share of false findings, under positive dependence",
    "by": "Benjamini and Yekutieli (2001): the same under any dependence",
}


def adjust(p_values: ArrayLike, method: str = "holm") -> Floats:
    """Give p-values that may be compared with alpha although many comparisons were made.

    Parameters
    ----------
    p_values
        (N,) from 0 to 1. NaN: a comparison that was not made; it stays NaN and does not count.
    method
        A name in `CORRECTIONS`.

    Returns
    -------
    (N,) float64
        In the order given; never below the p-value given, at most 1, and in the same order of size.

    Raises
    ------
    InputError
        If there is no such method, or a value is no probability.

    Examples
    --------
    >>> adjust([0.01, 0.04, 0.03], "holm").round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    if method not in CORRECTIONS:
        raise InputError(f"no correction {method!r}", fix=f"one of {', '.join(CORRECTIONS)}")
    given = np.array(p_values, dtype=np.float64)
    if given.ndim != 1:
        raise InputError(f"the p-values have {given.ndim} dimensions", fix="give a list of numbers")
    made = ~np.isnan(given)
    counted = given[made]
    if np.any((counted < 0) | (counted > 1)):
        raise InputError("a p-value is not between 0 and 1", fix="give probabilities, or NaN for no comparison")
    order = np.argsort(counted, kind="stable")
    adjusted = np.empty_like(counted)
    adjusted[order] = np.minimum(_RULES[method](counted[order]), 1.0) if len(order) else counted
    given[made] = np.maximum(adjusted, counted)  # a product may round below its factor
    return given


def _bonferroni(rising: Floats) -> Floats:
    return rising * len(rising)


def _holm(rising: Floats) -> Floats:
    return np.maximum.accumulate(rising * _left(rising))


def _hochberg(rising: Floats) -> Floats:
    return _least_from_above(rising * _left(rising))


def _benjamini_hochberg(rising: Floats) -> Floats:
    return _least_from_above(rising * len(rising) / np.arange(1, len(rising) + 1))


def _benjamini_yekutieli(rising: Floats) -> Floats:
    harmonic = float((1.0 / np.arange(1, len(rising) + 1)).sum())
    return _least_from_above(rising * len(rising) * harmonic / np.arange(1, len(rising) + 1))


def _left(rising: Floats) -> Any:
    """Give how many hypotheses are left at each step: N, N - 1, ..., 1."""
    return np.arange(len(rising), 0, -1)


def _least_from_above(steps: Floats) -> Floats:
    return np.minimum.accumulate(steps[::-1])[::-1]


_RULES: dict[str, Callable[[Floats], Floats]] = {
    "none": lambda rising: rising,
    "bonferroni": _bonferroni,
    "holm": _holm,
    "hochberg": _hochberg,
    "bh": _benjamini_hochberg,
    "by": _benjamini_yekutieli,
}
