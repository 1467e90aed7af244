"""Estimates of metrics with intervals, by slice, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from judged.online.findings import are_of_nobody

if TYPE_CHECKING:
    from judged.online.findings import LogFinding
    from judged.online.metrics.metric import OnlineMetric

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


@dataclass(frozen=True)
class ScoresTable:
    """Metrics of one log, without the forms in which they are shown.

    Parameters
    ----------
    log, layout
        Its name, and what it was read as.
    estimates
        By metric, then slice; those over all rows (slice None) come first for each metric.
    by
        What it was sliced by; None: nothing.
    slices
        The values of the slice in order, and pages in each.
    unit
        ``user`` or ``session``: what intervals are made over.
    level
        Of the intervals.
    interval
        ``delta`` or ``bootstrap``, as asked.
    counts
        ``pages``, ``events``, ``sessions``, ``users`` that were counted.
    ranks
        CTR by rank, shown wherever a click metric is: position bias is visible there.
    refused
        Metrics asked for that this log cannot tell, with the reason.
    policies
        What was chosen: of the log and of the call, name to value.
    findings
        What is wrong with the log.
    doubts
        Why its numbers should not be trusted as they are; empty where it is fit.
    """

    log: str
    layout: str
    estimates: tuple[OnlineEstimate, ...]
    by: str | None
    slices: tuple[tuple[str, int], ...]
    unit: str
    level: float
    interval: str
    counts: tuple[tuple[str, int], ...]
    ranks: tuple[OnlineEstimate, ...]
    refused: tuple[tuple[OnlineMetric, str], ...]
    policies: tuple[tuple[str, str], ...]
    findings: tuple[LogFinding, ...]
    doubts: tuple[str, ...] = ()

    @property
    def over(self) -> str:
        """What intervals are made over: `unit`, and ``session`` where no page names a user."""
        return "session" if are_of_nobody(self.findings) else self.unit

    @property
    def metrics(self) -> tuple[OnlineMetric, ...]:
        """The metrics that were computed, in order."""
        return tuple(dict.fromkeys(one.metric for one in self.estimates))

    def of(self, metric: str | OnlineMetric, slice: str | None = None) -> OnlineEstimate:
        """Give one estimate.

        Raises
        ------
        KeyError
            If there is none.
        """
        for one in self.estimates:
            if str(one.metric) == str(metric) and one.slice == slice:
                return one
        raise KeyError(f"{metric} on {slice or 'all'}")

    def value(self, metric: str | OnlineMetric, slice: str | None = None) -> float:
        """Give one value: see `of`."""
        return self.of(metric, slice).value

    def to_dicts(self) -> list[dict[str, Any]]:
        """Give the estimates as plain rows: what JSON, CSV and data frames are made of."""
        return [
            {
                "metric": str(one.metric),
                "by": self.by if one.slice is not None else None,
                "slice": one.slice,
                "rank": one.rank,
                "value": one.value,
                "low": one.low,
                "high": one.high,
                "error": one.error,
                "numerator": one.numerator,
                "denominator": one.denominator,
                "row": one.metric.row,
                "unit": one.metric.unit,
                "units": one.units,
                "method": one.method,
            }
            for one in (*self.estimates, *self.ranks)
        ]
