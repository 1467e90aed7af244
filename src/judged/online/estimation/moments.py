"""Ratios of sums by unit: moments, intervals by the delta method, and by drawing units anew."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.online.engine import identifier, literal
from judged.online.estimation.sums import UnitSums, column_of, scale_of
from judged.online.metrics import OnlineMetric
from judged.online.numbers import OnlineEstimate
from judged.online.statistics.users import bootstrap_intervals
from judged.stats.ratio import ratio_errors, ratio_intervals
from judged.stats.ratio_difference import RatioSums

if TYPE_CHECKING:
    from judged.results.types import Floats

_BOUNDED = ("share", "reciprocal rank")  # every row lies between 0 and 1
_COUNTS = ("count", "rank")
_SIGNED = ("money", "rating")  # money can be given back, and ratings below 0


def ratios(sums: UnitSums, metrics: Sequence[OnlineMetric], level: float) -> list[OnlineEstimate]:
    """Estimate ratios over units, by slice where the sums are sliced, in the order of the metrics.

    Units with neither a numerator nor a denominator tell nothing of the ratio and are not counted.
    """
    if not metrics:
        return []
    found = moments(sums, metrics)
    return [
        estimate
        for metric in metrics
        for estimate in _estimates(metric, [row["slice"] for row in found], _parts(found, metric), level)
    ]


def moments(sums: UnitSums, metrics: Sequence[OnlineMetric]) -> list[dict[str, Any]]:
    """Add numerators, denominators, their squares and products over units: one row a slice, whole numbers.

    What several metrics share is added up once.
    """
    pairs = list(dict.fromkeys(_pair(metric) for metric in metrics))
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    code = {name: f"f{at}" for at, name in enumerate(names)}
    facts = ", ".join(f"{sums.column(name)} AS {code[name]}" for name in names)
    wanted: dict[str, str] = {}
    for name in names:
        fact = code[name]
        wanted |= {
            f"sum {name}": f"sum({fact})",
            f"square {name}": f"sum({_product(sums, (name, fact), (name, fact))})",
        }
    for name, other in pairs:
        n, d = code[name], code[other]
        wanted[f"product {name} {other}"] = f"sum({_product(sums, (name, n), (other, d))})"
        wanted[f"units {name} {other}"] = f"sum(CASE WHEN {n} <> 0 OR {d} <> 0 THEN 1 ELSE 0 END)"
    slices, group = ("slice, ", "GROUP BY slice ORDER BY slice") if sums.sliced else ("", "")
    columns = ", ".join(f"CAST({total} AS VARCHAR) AS m{at}" for at, total in enumerate(wanted.values()))
    found = sums.table.engine.rows(f"SELECT {slices}{columns} FROM (SELECT {slices}{facts} FROM {sums.table}) {group}")
    return [
        {"slice": row.get("slice"), **{name: int(row[f"m{at}"] or 0) for at, name in enumerate(wanted)}}
        for row in found
    ]


def _product(sums: UnitSums, *facts: tuple[str, str]) -> str:
    """Multiply two sums in a type that the product fits into: that of two counts of pages fits into 64 bits."""
    few = sums.packing is not None and all(name in sums.packing.flags for name, _ in facts)
    product = " * ".join(fact if few else f"CAST({fact} AS HUGEINT)" for _, fact in facts)
    return f"CAST({product} AS HUGEINT)" if few else product


def ratio_sums(found: Sequence[dict[str, Any]], metric: OnlineMetric) -> dict[str | None, RatioSums]:
    """Give the sums of one metric by slice, in its unit, out of `moments`."""
    made = _parts(found, metric)
    order = ("units", "n", "d", "nn", "dd", "nd")
    return {row["slice"]: RatioSums(*(float(made[part][at]) for part in order)) for at, row in enumerate(found)}


def shared_products(
    sums: UnitSums, metrics: Sequence[OnlineMetric], unit: str, first: str, second: str
) -> dict[OnlineMetric, tuple[float, float, float, float]]:
    """Add over the units that two slices share the products of a metric's sums: nn, nd, dn, dd of `correlation`."""
    pairs = list(dict.fromkeys(map(_pair, metrics)))
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    facts = ", ".join(f"{sums.column(name)} AS f{at}" for at, name in enumerate(names))
    of = {name: f"f{at}" for at, name in enumerate(names)}
    products = [(x, y) for n, d in pairs for x in (n, d) for y in (n, d)]
    added = ", ".join(
        f"CAST(sum(CAST(a.{of[x]} AS HUGEINT) * b.{of[y]}) AS VARCHAR) AS m{at}" for at, (x, y) in enumerate(products)
    )
    sides = (
        f"(SELECT {identifier(unit)} AS unit, {facts} FROM {sums.table} WHERE slice = {literal(name)})"
        for name in (first, second)
    )
    a, b = sides
    row = sums.table.engine.rows(f"SELECT {added} FROM {a} AS a JOIN {b} AS b ON a.unit = b.unit")[0]
    found = dict(zip(products, (int(value or 0) for value in row.values()), strict=True))
    made: dict[OnlineMetric, tuple[float, float, float, float]] = {}
    for metric in metrics:
        (n, d), scale = _pair(metric), scale_of(metric)
        made[metric] = (found[n, n] / scale**2, found[n, d] / scale, found[d, n] / scale, float(found[d, d]))
    return made


def interval_kind(metric: OnlineMetric) -> dict[str, bool]:
    """Say how the interval of a metric's ratio is made, as `judged.stats.ratio.ratio_interval` asks."""
    return {"share": metric.unit in _BOUNDED, "counted": metric.unit in _COUNTS}


def _pair(metric: OnlineMetric) -> tuple[str, str]:
    numerator, denominator = metric.columns()
    return column_of(numerator), column_of(denominator)


def _parts(found: Sequence[dict[str, Any]], metric: OnlineMetric) -> dict[str, Floats]:
    """Give the moments of one metric as arrays over slices, in its unit."""
    name, other = _pair(metric)
    scale = scale_of(metric)
    columns = {"n": (f"sum {name}", scale), "d": (f"sum {other}", 1), "nn": (f"square {name}", scale**2)}
    columns |= {"dd": (f"square {other}", 1), "nd": (f"product {name} {other}", scale)}
    columns |= {"units": (f"units {name} {other}", 1)}
    return {part: np.array([row[column] / by for row in found]) for part, (column, by) in columns.items()}


def _estimates(
    metric: OnlineMetric, slices: Sequence[str | None], made: dict[str, Floats], level: float
) -> list[OnlineEstimate]:
    """Give the estimates of one metric over slices."""
    units, n, d, dd = made["units"], made["n"], made["d"], made["dd"]
    errors = ratio_errors(units, n, d, made["nn"], dd, made["nd"])
    with np.errstate(divide="ignore", invalid="ignore"):
        values, effective = np.where(d != 0, n / d, np.nan), d**2 / dd
    share, counted = np.array(metric.unit in _BOUNDED), np.array(metric.unit in _COUNTS)
    low, high = ratio_intervals(
        values, errors, units, effective, level, share=share, counted=counted, signed=metric.unit == "rating"
    )
    low = low if metric.unit in _SIGNED else np.maximum(low, 0.0)
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
            effective_units=float(effective[at]),
        )
        for at in range(len(slices))
    ]


def _method(metric: OnlineMetric, value: float, low: float) -> Any:
    if np.isnan(low):
        return "none"
    return "exact" if metric.unit in _BOUNDED and value in {0.0, 1.0} else "delta"


def with_bootstrap(
    estimates: Sequence[OnlineEstimate], sums: UnitSums, level: float, *, resamples: int, seed: int
) -> list[OnlineEstimate]:
    """Give the same estimates with intervals of the bootstrap over units, one slice at a time.

    Shares that are 0 or 1 for all units keep their exact interval: drawing equal units anew says nothing. What the
    draws cannot bound keeps its interval of the delta method.
    """
    drawn: dict[tuple[str, str | None], OnlineEstimate] = {}
    for value in dict.fromkeys(one.slice for one in estimates):
        chosen = [one for one in estimates if one.slice == value and one.method == "delta"]
        if not chosen:
            continue
        drawn_from = sums_of_units(sums, [one.metric for one in chosen], value)
        limits = bootstrap_intervals(*drawn_from, level=level, resamples=resamples, seed=seed)
        for one, (low, high) in zip(chosen, limits.tolist(), strict=True):
            # 0, 1 and infinity are what draws are cut at, unless the value is it
            cut = (low == 0.0 and one.value != 0.0) or (high == 1.0 and one.value != 1.0)
            if math.isfinite(low) and math.isfinite(high) and not cut:
                drawn[str(one.metric), value] = replace(one, low=low, high=high, method="bootstrap")
    return [drawn.get((str(one.metric), one.slice), one) for one in estimates]


def sums_of_units(sums: UnitSums, metrics: Sequence[OnlineMetric], group: str | None = None) -> tuple[Floats, Floats]:
    """Fetch the sums of each unit, of one slice if it is named: (units, metrics) numerators and denominators."""
    names = sorted({column_of(name) for metric in metrics for name in metric.columns()})
    columns = ", ".join(f"{sums.column(name)} AS f{at}" for at, name in enumerate(names))
    where = "" if group is None else f"WHERE slice = {literal(group)}"
    found = sums.table.engine.arrow(f"SELECT {columns} FROM {sums.table} {where} ORDER BY ALL")
    facts = {name: found[f"f{at}"].to_numpy().astype(np.float64) for at, name in enumerate(names)}
    pairs = [(metric, *_pair(metric)) for metric in metrics]
    numerators = np.stack([facts[name] / scale_of(metric) for metric, name, _ in pairs], axis=1)
    return numerators, np.stack([facts[name] for _, _, name in pairs], axis=1)
