"""Quantiles of what pages took: exact ones, with intervals over units."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
    facts: Relation, metrics: Sequence[OnlineMetric], unit: str, level: float, *, sliced: bool
) -> list[OnlineEstimate]:
    """Estimate the smallest value that a share q of the rows does not exceed: over all rows, and by slice.

    The engine counts rows by value, so that nothing is interpolated and every backend gives the same number. The
    interval is Woodruff's: the error of the share of rows at or below the estimate is that of a ratio over units. The
    error of the quantile is half of what lies between the values that are one such error below and above it.
    """
    if not metrics:
        return []
    curves = {columns: _curves(facts, *columns, sliced=sliced) for columns in {one.columns() for one in metrics}}
    cuts = [{group: curve.at(_q(one)) for group, curve in curves[one.columns()].items()} for one in metrics]
    errors = _errors(facts, metrics, cuts, unit, sliced=sliced)
    return [
        _estimate(metric, group, curve, errors.get(group), at, level)
        for at, metric in enumerate(metrics)
        for group, curve in curves[metric.columns()].items()
    ]


def _q(metric: OnlineMetric) -> float:
    return float(metric.parameters["q"] or 0.5)


def _curves(facts: Relation, numerator: str, denominator: str, *, sliced: bool) -> dict[str | None, _Curve]:
    """Count rows by value, over all rows (None) and by slice."""
    known = facts.filter(facts[denominator] != 0)
    keys = [SLICE] if sliced else []
    counted = known.group_by(*keys, value=known[numerator]).agg(rows=known.count()).order_by("value").to_pyarrow()
    groups = sorted(set(counted[SLICE].to_pylist())) if sliced else []
    return {group: _Curve(*_distribution(counted, group)) for group in (None, *groups)}


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

    def error(self, q: float, of_share: float) -> float:
        """Carry the error of a share over to values, as intervals are: by the quantile function."""
        return (self.at(min(q + of_share, 1.0)) - self.at(max(q - of_share, 0.0))) / 2


def _estimate(
    metric: OnlineMetric, group: str | None, curve: _Curve, found: dict[str, Any] | None, at: int, level: float
) -> OnlineEstimate:
    """Give the quantile of one group with Woodruff's interval."""
    if found is None or not found[f"units_{at}"]:
        return OnlineEstimate(metric, group, math.nan, math.nan, math.nan, math.nan, 0.0, 0.0, 0, "none")
    units, n, d, nn, dd, nd = (found[f"{part}_{at}"] for part in ("units", "n", "d", "nn", "dd", "nd"))
    error = ratio_error(units, n, d, nn, dd, nd)
    low, high = woodruff(_q(metric), error, units, level, effective=d**2 / dd)
    unknown = math.isnan(low)
    return OnlineEstimate(
        metric=metric,
        slice=group,
        value=curve.at(_q(metric)),
        low=math.nan if unknown else curve.at(low),
        high=math.nan if unknown else curve.at(high),
        error=math.nan if unknown else curve.error(_q(metric), error),
        numerator=float(n),
        denominator=float(d),
        units=int(units),
        method="none" if unknown else "woodruff",
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
    facts: Relation,
    metrics: Sequence[OnlineMetric],
    cuts: Sequence[Mapping[str | None, float]],
    unit: str,
    *,
    sliced: bool,
) -> dict[str | None, dict[str, Any]]:
    """Give, for each group, the moments over units of rows at or below its estimates, and of rows."""
    found: dict[str | None, dict[str, Any]] = {}
    whole = [facts[one.columns()[0]] <= cut[None] for one, cut in zip(metrics, cuts, strict=True)]
    found[None] = _moments(facts, metrics, whole, [unit])[0]
    if not sliced:
        return found
    named = [[(group, value) for group, value in cut.items() if group is not None] for cut in cuts]
    below = [
        facts[one.columns()[0]] <= (facts[SLICE].cases(*pairs) if pairs else math.nan)
        for one, pairs in zip(metrics, named, strict=True)
    ]
    return found | {row[SLICE]: row for row in _moments(facts, metrics, below, [unit, SLICE])}


def _moments(
    facts: Relation, metrics: Sequence[OnlineMetric], below: Sequence[Any], keys: list[str]
) -> list[dict[str, Any]]:
    sums: dict[str, Any] = {}
    for at, metric in enumerate(metrics):
        known = facts[metric.columns()[1]] != 0
        sums |= {f"n_{at}": (known & below[at]).ifelse(1.0, 0.0).sum(), f"d_{at}": known.ifelse(1.0, 0.0).sum()}
    table = facts.group_by(*keys).agg(**sums)
    wanted: dict[str, Any] = {}
    for at in range(len(metrics)):
        n, d = table[f"n_{at}"], table[f"d_{at}"]
        wanted |= {f"units_{at}": (d > 0).ifelse(1, 0).sum(), f"n_{at}": n.sum(), f"d_{at}": d.sum()}
        wanted |= {f"nn_{at}": (n * n).sum(), f"dd_{at}": (d * d).sum(), f"nd_{at}": (n * d).sum()}
    return rows_of(table.group_by(*keys[1:]).agg(**wanted) if keys[1:] else table.agg(**wanted))
