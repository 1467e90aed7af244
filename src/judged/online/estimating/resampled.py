"""Intervals of ratios by drawing units anew, in place of the delta method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.online.estimating.moments import column_of
from judged.online.estimating.sums import SLICE, UnitSums
from judged.online.result import OnlineEstimate
from judged.online.tables import Relation
from judged.stats.clusters import bootstrap_intervals

if TYPE_CHECKING:
    from judged._types import Floats


def with_bootstrap(
    estimates: Sequence[OnlineEstimate], sums: UnitSums, level: float, *, resamples: int, seed: int
) -> list[OnlineEstimate]:
    """Give the same estimates with intervals of the bootstrap over units, one slice at a time.

    Shares that are 0 or 1 for all units keep their exact interval: drawing equal units anew says nothing.
    """
    drawn: dict[tuple[str, str | None], OnlineEstimate] = {}
    for value in dict.fromkeys(one.slice for one in estimates):
        chosen = [one for one in estimates if one.slice == value and one.method == "delta"]
        if not chosen:
            continue
        table = sums.parted() if value is None else sums.parted().filter(sums.table[SLICE] == value)
        limits = bootstrap_intervals(*_sums(table, chosen), level=level, resamples=resamples, seed=seed)
        for one, (low, high) in zip(chosen, limits.tolist(), strict=True):
            method = "none" if math.isnan(low) else "bootstrap"
            drawn[str(one.metric), value] = replace(one, low=low, high=high, method=method)
    return [drawn.get((str(one.metric), one.slice), one) for one in estimates]


def _sums(table: Relation, chosen: Sequence[OnlineEstimate]) -> tuple[Floats, Floats]:
    """Fetch the sums of each unit: (units, metrics) numerators and denominators."""
    names = sorted({column_of(name) for one in chosen for name in one.metric.columns()})
    found = table.select(*names).to_pyarrow()
    sides = ([found[column_of(one.metric.columns()[side])].to_numpy() for one in chosen] for side in (0, 1))
    numerators, denominators = (np.stack(side, axis=1).astype(np.float64) for side in sides)
    return numerators, denominators
