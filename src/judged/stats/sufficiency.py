"""Whether there is enough data for an interval, a p-value, or a verdict.

Every statistic of the product asks `insufficiency` before it reports more than a descriptive value, so that one table
of minimums holds everywhere. Units are what was sampled independently: topics, users, sessions, participants, judges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from judged.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Purpose: TypeAlias = Literal["interval", "verdict"]
InsufficiencyCode: TypeAlias = Literal["few-units", "few-values", "no-variance", "dominated", "few-effective-units"]

MIN_UNITS: dict[Purpose, int] = {"interval": 3, "verdict": 6}
"""Minimum number of independent units. One or two units cannot show how units vary; with five or fewer, no assignment
of signs to differences is rarer than 1 in 16 two-sided, so no distribution-free test can reject at 0.05."""

MAX_SHARE = 0.5
"""A unit with a larger share of the total weight decides the result alone."""


@dataclass(frozen=True)
class Insufficiency:
    """Why a value has no interval, p-value, or verdict.

    Parameters
    ----------
    code
        ``few-units``: fewer units than the minimum; ``few-values``: fewer distinct values; ``no-variance``: all units
        have the same value; ``dominated``: one unit has more than half of the weight; ``few-effective-units``:
        unequal weights leave fewer effective units (Kish) than the minimum.
    observed
        The number, share, or value that was compared with the limit.
    required
        The limit.
    """

    code: InsufficiencyCode
    observed: float
    required: float

    def sentence(self, unit: str = "unit") -> str:
        """Describe the reason in one sentence; `unit` is the singular noun for what was sampled.

        >>> Insufficiency("few-units", 2, 6).sentence("participant")
        'Not enough data: 2 participants, at least 6 are required.'
        """
        observed, required = _number(self.observed), _number(self.required)
        noun, values = (f"{word}{'' if observed == '1' else 's'}" for word in (unit, "value"))
        reason = {
            "few-units": f"{observed} {noun}, at least {required} are required",
            "few-values": f"{observed} distinct {values}, at least {required} are required",
            "no-variance": f"all {unit}s have the same value, so their variance cannot be estimated",
            "dominated": f"one {unit} has {100 * self.observed:.0f}% of the weight, at most"
            f" {100 * self.required:.0f}% is allowed",
            "few-effective-units": f"unequal weights leave {observed} effective {noun},"
            f" at least {required} are required",
        }[self.code]
        return f"Not enough data: {reason}."


def insufficiency(
    units: float,
    purpose: Purpose = "interval",
    *,
    variance: float | None = None,
    weights: ArrayLike | None = None,
    effective_units: float | None = None,
    min_effective_units: float | None = None,
    distinct_values: int | None = None,
    min_units: int | None = None,
) -> Insufficiency | None:
    """Return why the data do not support an interval or a verdict, or None if they do.

    Parameters
    ----------
    units
        Number of independent units with a value: the smaller number where two groups are compared.
    purpose
        ``interval`` for intervals and p-values, ``verdict`` for anything that says better, worse, equivalent,
        significant, passed, or failed.
    variance
        Estimated variance (or standard deviation, or standard error) that the statistic rests on. 0 and NaN are
        insufficient. None: the statistic does not estimate one (a sign test, a bound from the measure's range).
    weights
        (units,) non-negative weights, such as pages by user; 0 or NaN weights do not count. Their largest share must
        be at most `MAX_SHARE`, and their effective number (Kish) at least the minimum.
    effective_units
        Effective number of units, where it is known without the weights.
    min_effective_units
        Minimum for the effective number; None: that for `units`.
    distinct_values
        Number of distinct values that a rank statistic or a quantile rests on; at least 2 are required.
    min_units
        A larger minimum than `MIN_UNITS`; a smaller one is ignored.

    Raises
    ------
    InputError
        If a weight is negative.

    Examples
    --------
    >>> insufficiency(12, "verdict", variance=0.3) is None
    True
    >>> insufficiency(2, variance=0.0)
    Insufficiency(code='few-units', observed=2, required=3)
    >>> insufficiency(8, variance=0.0).code, insufficiency(8, weights=[1] * 7 + [20]).code
    ('no-variance', 'dominated')
    """
    required = max(MIN_UNITS[purpose], min_units or 0)
    if not units >= required:
        return Insufficiency("few-units", units, required)
    if distinct_values is not None and distinct_values < 2:
        return Insufficiency("few-values", distinct_values, 2)
    if variance is not None and not variance > 0:
        return Insufficiency("no-variance", variance, 0.0)
    if weights is not None:
        share, effective = _concentration(weights)
        if not share <= MAX_SHARE:
            return Insufficiency("dominated", share, MAX_SHARE)
        effective_units = effective if effective_units is None else min(effective, effective_units)
    if effective_units is not None and not effective_units >= (limit := min_effective_units or required) * (1 - 1e-9):
        return Insufficiency("few-effective-units", effective_units, limit)
    return None


def _concentration(weights: ArrayLike) -> tuple[float, float]:
    """Return the largest share of the total weight, and Kish's effective number of units."""
    positive = np.asarray(weights, dtype=np.float64)
    if np.any(positive < 0):
        raise InputError(f"weights must not be negative, got {positive.min():g}", fix="give weights of 0 or more")
    positive = positive[positive > 0]  # NaN is not above 0
    total = float(positive.sum())
    if not total > 0:
        return math.nan, 0.0
    shares = positive / total
    return float(shares.max()), 1.0 / float((shares**2).sum())


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"
