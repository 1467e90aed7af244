"""Quantiles of what pages took: exact ones, with intervals over units."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.online.engine import Relation, identifier, literal
from judged.online.estimation.sums import scale_of
from judged.online.metrics import OnlineMetric
from judged.online.numbers import OnlineEstimate
from judged.stats.ratio import ratio_error, student_quantiles, woodruff

if TYPE_CHECKING:
    from judged._types import Floats


def quantiles(
    facts: Relation, metrics: Sequence[OnlineMetric], unit: str, level: float, *, sliced: bool
) -> list[OnlineEstimate]:
    """Estimate the smallest value that a share q of the rows does not exceed: over all rows, and by slice.

    The database counts rows by value, so that nothing is interpolated and every one gives the same number. The interval
    is Woodruff's: the error of the share of rows at or below the estimate is that of a ratio over units. The error of
    the quantile is half the interval's width, over Student's quantile: that of the values one error of the share below
    and above it, which few rows decide, made tests of a difference err in 6 to 8 % of samples instead of 5 %.
    """
    if not metrics:
        return []
    curves = {one.columns(): _curves(facts, *one.columns(), sliced=sliced) for one in metrics}
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
    keys = "slice, value" if sliced else "value"
    counted = facts.engine.arrow(f"""
        SELECT {keys}, count(*) AS rows FROM (
            SELECT *, {identifier(numerator)} AS value FROM {facts} WHERE {identifier(denominator)} <> 0)
        GROUP BY {keys} ORDER BY value""")
    groups = sorted(set(counted["slice"].to_pylist())) if sliced else []
    return {group: _Curve(*_distribution(counted, group)) for group in (None, *groups)}


@dataclass(frozen=True)
class _Curve:
    """The distinct values of some rows in order, as they are counted, and how many rows have each."""

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
    metric: OnlineMetric, group: str | None, curve: _Curve, found: dict[str, Any] | None, at: int, level: float
) -> OnlineEstimate:
    """Give the quantile of one group with Woodruff's interval."""
    if found is None or not found[f"units_{at}"]:
        return OnlineEstimate(metric, group, math.nan, math.nan, math.nan, math.nan, 0.0, 0.0, 0, "none")
    units, n, d, nn, dd, nd = (float(found[f"{part}_{at}"]) for part in ("units", "n", "d", "nn", "dd", "nd"))
    error = ratio_error(units, n, d, nn, dd, nd)
    low, high = woodruff(_q(metric), error, units, level, effective=d**2 / dd)
    unknown, scale = math.isnan(low), scale_of(metric)
    ends = (math.nan, math.nan) if unknown else (curve.at(low) / scale, curve.at(high) / scale)
    student = float(student_quantiles((1.0 + level) / 2.0, np.array(d**2 / dd - 1.0)))
    return OnlineEstimate(
        metric=metric,
        slice=group,
        value=curve.at(_q(metric)) / scale,
        low=ends[0],
        high=ends[1],
        error=(ends[1] - ends[0]) / 2.0 / student,
        numerator=float(n),
        denominator=float(d),
        units=int(units),
        method="none" if unknown else "woodruff",
        effective_units=d**2 / dd,
    )


def _distribution(counted: Any, group: str | None) -> tuple[Floats, Floats]:
    """Give the distinct values in order, and rows at each."""
    values, rows = (counted[name].to_numpy().astype(np.float64) for name in ("value", "rows"))
    if group is not None:
        chosen = np.array([one == group for one in counted["slice"].to_pylist()])
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
    limits = [_limit(cut[None]) for cut in cuts]
    found: dict[str | None, dict[str, Any]] = {None: _moments(facts, metrics, limits, unit, sliced=False)[0]}
    if not sliced:
        return found
    by_slice = [
        "CASE slice "
        + " ".join(f"WHEN {literal(group)} THEN {_limit(value)}" for group, value in cut.items() if group is not None)
        + " END"
        if len(cut) > 1
        else "NULL"
        for cut in cuts
    ]
    return found | {row["slice"]: row for row in _moments(facts, metrics, by_slice, unit, sliced=True)}


def _limit(value: float) -> str:
    return "NULL" if math.isnan(value) else str(int(value))


def _moments(
    facts: Relation, metrics: Sequence[OnlineMetric], limits: Sequence[str], unit: str, *, sliced: bool
) -> list[dict[str, Any]]:
    keys = f"{identifier(unit)}, slice" if sliced else identifier(unit)
    sums, wanted = list[str](), list[str]()
    for at, (metric, limit) in enumerate(zip(metrics, limits, strict=True)):
        numerator, denominator = map(identifier, metric.columns())
        sums.append(f"sum(CASE WHEN {denominator} <> 0 AND {numerator} <= {limit} THEN 1 ELSE 0 END) AS n_{at}")
        sums.append(f"sum(CASE WHEN {denominator} <> 0 THEN 1 ELSE 0 END) AS d_{at}")
        wanted.append(f"sum(CASE WHEN d_{at} > 0 THEN 1 ELSE 0 END) AS units_{at}, sum(n_{at}) AS n_{at}")
        wanted.append(f"sum(d_{at}) AS d_{at}, sum(n_{at} * n_{at}) AS nn_{at}, sum(d_{at} * d_{at}) AS dd_{at}")
        wanted.append(f"sum(n_{at} * d_{at}) AS nd_{at}")
    group = "slice, " if sliced else ""
    return facts.engine.rows(
        f"SELECT {group}{', '.join(wanted)} FROM (SELECT {keys}, {', '.join(sums)} FROM {facts} GROUP BY {keys})"
        + (" GROUP BY slice" if sliced else "")
    )
