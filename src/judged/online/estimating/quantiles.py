"""Quantiles of what pages took: exact ones, with intervals over units."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.online.engine import rows_of
from judged.online.estimating.sums import SLICE
from judged.online.metrics.metric import OnlineMetric
from judged.online.result import OnlineEstimate
from judged.online.tables import Relation
from judged.stats.ratio import ratio_error, woodruff

if TYPE_CHECKING:
    from judged._types import Floats


def quantiles(
    facts: Relation, metric: OnlineMetric, unit: str, level: float, *, sliced: bool
) -> Iterator[OnlineEstimate]:
    """Estimate the smallest value that a share q of the rows does not exceed: over all rows, then by slice.

    The engine counts rows by value, so that nothing is interpolated and every backend gives the same number. The
    interval is Woodruff's: the error of the share of rows at or below the estimate is that of a ratio over units.
    """
    numerator, denominator = metric.columns()
    known = facts.filter(facts[denominator] != 0)
    keys = [SLICE] if sliced else []
    counted = known.group_by(*keys, value=known[numerator]).agg(rows=known.count()).order_by("value").to_pyarrow()
    groups: list[str | None] = [None]
    if sliced:
        groups += sorted(set(counted[SLICE].to_pylist()))
    estimates = {group: _Curve(*_distribution(counted, group)) for group in groups}
    q = float(metric.parameters["q"] or 0.5)
    errors = _errors(known, numerator, {group: curve.at(q) for group, curve in estimates.items()}, unit)
    for group, curve in estimates.items():
        yield _estimate(metric, group, curve, errors.get(group), level)


@dataclass(frozen=True)
class _Curve:
    """The distinct values of some rows in order, and how many rows have each."""

    values: Floats
    rows: Floats

    def at(self, q: float) -> float:
        """Give the smallest value that a share q of the rows does not exceed; rounding must not pass over it."""
        if not len(self.values):
            return math.nan
        below = np.cumsum(self.rows)
        at = int(np.searchsorted(below, q * below[-1] * (1.0 - 1e-12)))
        return float(self.values[min(at, len(self.values) - 1)])


def _estimate(
    metric: OnlineMetric, group: str | None, curve: _Curve, found: dict[str, Any] | None, level: float
) -> OnlineEstimate:
    """Give the quantile of one group with Woodruff's interval."""
    q = float(metric.parameters["q"] or 0.5)
    if found is None or not found["units"]:
        unknown = math.nan
        return OnlineEstimate(metric, group, unknown, unknown, unknown, unknown, 0.0, 0.0, 0, "none")
    units = int(found["units"])
    error = ratio_error(units, found["n"], found["d"], found["nn"], found["dd"], found["nd"])
    low, high = woodruff(q, error, units, level, effective=found["d"] ** 2 / found["dd"])
    return OnlineEstimate(
        metric=metric,
        slice=group,
        value=curve.at(q),
        low=math.nan if math.isnan(low) else curve.at(low),
        high=math.nan if math.isnan(high) else curve.at(high),
        error=math.nan,
        numerator=float(found["n"]),
        denominator=float(found["d"]),
        units=units,
        method="none" if math.isnan(low) else "woodruff",
    )


def _distribution(counted: Any, group: str | None) -> tuple[Floats, Floats]:
    """Give the distinct values in order, and rows at each."""
    values, rows = (counted[name].to_numpy().astype(np.float64) for name in ("value", "rows"))
    if group is not None:
        chosen = np.array([one == group for one in counted[SLICE].to_pylist()])
        return values[chosen], rows[chosen]
    distinct, at = np.unique(values, return_inverse=True)
    return distinct, np.bincount(at, weights=rows, minlength=len(distinct)).astype(np.float64)


def _errors(
    known: Relation, column: str, estimates: Mapping[str | None, float], unit: str
) -> dict[str | None, dict[str, Any]]:
    """Give, for each group, the moments over units of rows at or below its estimate, and of rows."""
    found: dict[str | None, dict[str, Any]] = {}
    if None in estimates:
        found[None] = _moments(known, (known[column] <= estimates[None]), [unit])[0]
    cuts = [(group, value) for group, value in estimates.items() if group is not None]
    if cuts:
        below = known[SLICE].cases(*((group, value) for group, value in cuts))
        found |= {row[SLICE]: row for row in _moments(known, known[column] <= below, [unit, SLICE])}
    return found


def _moments(known: Relation, below: Any, keys: list[str]) -> list[dict[str, Any]]:
    sums = known.group_by(*keys).agg(n=below.ifelse(1.0, 0.0).sum(), d=known.count().cast("float64"))
    wanted = {
        "units": sums.count(),
        "n": sums.n.sum(),
        "d": sums.d.sum(),
        "nn": (sums.n * sums.n).sum(),
        "dd": (sums.d * sums.d).sum(),
        "nd": (sums.n * sums.d).sum(),
    }
    return rows_of(sums.group_by(*keys[1:]).agg(**wanted) if keys[1:] else sums.agg(**wanted))
