"""From sums by unit to estimates: first and second moments in the engine, errors and intervals of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.online.engine import rows_of
from judged.online.estimating.sums import SLICE, UnitSums
from judged.online.metrics.metric import OnlineMetric
from judged.online.result import OnlineEstimate
from judged.stats.ratio import ratio_errors, ratio_intervals

if TYPE_CHECKING:
    from judged._types import Floats

_BOUNDED = ("share", "reciprocal rank")  # every row lies between 0 and 1
_COUNTED = {"session": "n_sessions", "user": "n_users"}


def ratios(sums: UnitSums, metrics: Sequence[OnlineMetric], level: float) -> list[OnlineEstimate]:
    """Estimate ratios over units, by slice where the sums are sliced, in the order of the metrics.

    Units with neither a numerator nor a denominator tell nothing of the ratio and are not counted.
    """
    if not metrics:
        return []
    found = moments(sums, metrics)
    return [
        one
        for metric in metrics
        for one in _estimates(metric, [row[SLICE] for row in found], _parts(found, metric), level)
    ]


def moments(sums: UnitSums, metrics: Sequence[OnlineMetric]) -> list[dict[str, Any]]:
    """Add numerators, denominators, their squares and products over units: one row a slice.

    What several metrics share is added up once.
    """
    table = sums.parted()
    pairs = [_pair(metric) for metric in metrics]
    wanted: dict[str, Any] = {}
    for one in dict.fromkeys(name for pair in pairs for name in pair):
        wanted |= {f"sum {one}": table[one].sum(), f"square {one}": (table[one] * table[one]).sum()}
    for one, other in dict.fromkeys(pairs):
        n, d = table[one], table[other]
        wanted[f"product {one} {other}"] = (n * d).sum()
        wanted[f"units {one} {other}"] = ((n != 0) | (d != 0)).ifelse(1, 0).sum()
    if sums.sliced:
        return rows_of(table.group_by(SLICE).agg(**wanted).order_by(SLICE))
    return [{SLICE: None, **row} for row in rows_of(table.agg(**wanted))]


def column_of(name: str) -> str:
    """Name the column of the sums that a fact is added up in: sessions and users are counted."""
    return _COUNTED.get(name, name)


def _pair(metric: OnlineMetric) -> tuple[str, str]:
    numerator, denominator = metric.columns()
    return column_of(numerator), column_of(denominator)


def _parts(found: Sequence[dict[str, Any]], metric: OnlineMetric) -> dict[str, Floats]:
    """Give the moments of one metric as arrays over slices."""
    one, other = _pair(metric)
    names = {"n": f"sum {one}", "d": f"sum {other}", "nn": f"square {one}", "dd": f"square {other}"}
    names |= {"units": f"units {one} {other}", "nd": f"product {one} {other}"}
    return {part: np.array([row[name] or 0.0 for row in found], dtype=np.float64) for part, name in names.items()}


def _estimates(
    metric: OnlineMetric, slices: Sequence[str | None], made: dict[str, Floats], level: float
) -> list[OnlineEstimate]:
    """Give the estimates of one metric over slices."""
    units, n, d, dd = made["units"], made["n"], made["d"], made["dd"]
    errors = ratio_errors(units, n, d, made["nn"], dd, made["nd"])
    with np.errstate(divide="ignore", invalid="ignore"):
        values, effective = np.where(d != 0, n / d, np.nan), d**2 / dd
    low, high = ratio_intervals(values, errors, units, effective, level, share=np.array(metric.unit in _BOUNDED))
    low = low if metric.unit == "money" else np.maximum(low, 0.0)  # only money can be given back
    return [
        OnlineEstimate(
            metric=metric,
            slice=slices[at],
            value=float(values[at]),
            low=float(low[at]),
            high=float(high[at]),
            error=float(errors[at]),
            numerator=float(n[at]),
            denominator=float(d[at]),
            units=int(units[at]),
            method=_method(metric, float(values[at]), float(low[at])),
        )
        for at in range(len(slices))
    ]


def _method(metric: OnlineMetric, value: float, low: float) -> Any:
    if np.isnan(low):
        return "none"
    return "exact" if metric.unit in _BOUNDED and value in {0.0, 1.0} else "delta"
