"""Intervals of ratios by drawing units anew, in place of the delta method.

They are studentised (`judged.stats.clusters`), over the resamples in which there is something to divide by. Of few
units with any event, many resamples have none: with three, one in twenty. Nothing varies in such a resample, and where
these are more than an end of the interval leaves out, there is no telling where it ends: that end would be 0, 1 or
infinite, which the share of something that happened is not. Then the interval of the delta method stays, and is named.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.online.engine import literal
from judged.online.estimates import OnlineEstimate
from judged.online.estimation.sums import UnitSums, column_of, scale_of
from judged.stats.clusters import bootstrap_intervals

if TYPE_CHECKING:
    from judged._types import Floats


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
        limits = bootstrap_intervals(*_sums(sums, value, chosen), level=level, resamples=resamples, seed=seed)
        for one, (low, high) in zip(chosen, limits.tolist(), strict=True):
            if _is_bounded(one, low, high):
                drawn[str(one.metric), value] = replace(one, low=low, high=high, method="bootstrap")
    return [drawn.get((str(one.metric), one.slice), one) for one in estimates]


def _is_bounded(one: OnlineEstimate, low: float, high: float) -> bool:
    """Whether draws say where both ends are: 0, 1 and infinity are what they are cut at, unless the value is it."""
    cut = (low == 0.0 and one.value != 0.0) or (high == 1.0 and one.value != 1.0)
    return math.isfinite(low) and math.isfinite(high) and not cut


def _sums(sums: UnitSums, group: str | None, chosen: Sequence[OnlineEstimate]) -> tuple[Floats, Floats]:
    """Fetch the sums of each unit: (units, metrics) numerators and denominators."""
    names = sorted({column_of(name) for one in chosen for name in one.metric.columns()})
    columns = ", ".join(f"{sums.column(name)} AS f{at}" for at, name in enumerate(names))
    where = "" if group is None else f"WHERE slice = {literal(group)}"
    found = sums.table.engine.arrow(f"SELECT {columns} FROM {sums.table} {where} ORDER BY ALL")
    facts = {name: found[f"f{at}"].to_numpy().astype(np.float64) for at, name in enumerate(names)}
    pairs = [(one.metric, *map(column_of, one.metric.columns())) for one in chosen]
    numerators = np.stack([facts[name] / scale_of(metric) for metric, name, _ in pairs], axis=1)
    return numerators, np.stack([facts[name] for _, _, name in pairs], axis=1)
