"""Intervals and tests over topics where there is enough data for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.stats.inputs import spread
from judged.stats.interval import mean_intervals
from judged.stats.slice_differences import against_rest
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from judged._types import Bools, Floats
    from judged.stats.interval import IntervalMethod
    from judged.stats.slice_differences import AgainstRest


def sufficient_intervals(values: Floats, method: IntervalMethod, bounds: ArrayLike = (np.nan, np.nan)) -> Floats:
    """Return an interval for the mean of each row, (S, T) to (S, 2); NaN where there is not enough data for one."""
    limits = mean_intervals(values, method, bounds)
    for row, known in enumerate([row[~np.isnan(row)] for row in values]):
        if insufficiency(len(known), variance=spread(known)):
            limits[row] = np.nan
    return limits


def compare_with_rest(
    values: Floats, members: Bools | Sequence[Bools], *, level: float, seed: int = 0, min_units: int = 0
) -> list[AgainstRest | None]:
    """Test the mean of each group of topics against that of all others; None where there is not enough data.

    Both sides need enough topics for a verdict, `min_units` if that is more. One side may be constant.
    """
    known = ~np.isnan(values)
    masks = np.asarray(members, dtype=np.bool_).reshape(-1, len(values)) & known
    sizes = masks.sum(axis=1)
    variance = spread(values[known])
    enough = [
        insufficiency(min(size, int(known.sum()) - size), "verdict", variance=variance, min_units=min_units) is None
        for size in sizes.tolist()
    ]
    tests = iter(against_rest(values, masks[enough], level=level, seed=seed) if any(enough) else ())
    return [next(tests) if some else None for some in enough]
