"""Estimates of metrics with intervals, by slice, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from judged.online.metrics import OnlineMetric

Method: TypeAlias = Literal["delta", "bootstrap", "exact", "woodruff", "greenwood", "none"]


@dataclass(frozen=True)
class OnlineEstimate:
    """One metric on one slice.

    Parameters
    ----------
    metric
        The metric.
    slice
        Value of the slice; None: all rows.
    value
        The estimate; NaN where there is nothing to divide by.
    low, high
        The interval; NaN where there is none (one user, or nothing).
    error
        Standard error; NaN where there is none.
    numerator, denominator
        The two sums (for quantiles: rows at or below the value, and rows; for survival: NaN, and visits).
    units
        How many users (or other units) the interval is made over.
    method
        How the interval was made: ``delta``, ``bootstrap``, ``exact`` (shares that are 0 or 1 for all units:
        Clopper and Pearson over units), ``woodruff`` (quantiles), ``greenwood`` (survival, clustered), ``none``.
    rank
        The rank, for CTR by rank; else None.
    """

    metric: OnlineMetric
    slice: str | None
    value: float
    low: float
    high: float
    error: float
    numerator: float
    denominator: float
    units: int
    method: Method
    rank: int | None = None
