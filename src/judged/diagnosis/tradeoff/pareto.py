"""Which points dominate which: at least as good on all, and better on one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.stats.pairing import ROUNDING

if TYPE_CHECKING:
    from judged._types import Bools, Floats


def dominators(row: int, values: Floats, dearer: Floats) -> Bools:
    """Mark the points that are at least as good as this one on all, and better on one: (R,).

    >>> dominators(2, np.array([0.5, 0.7, 0.6]), np.array([[1.0], [2.0], [2.0]])).tolist()
    [False, True, False]
    """
    # `values`: (R,): more is better. `dearer`: (R, C): less is better; NaN dominates nothing.
    tiny = ROUNDING * np.maximum(np.abs(values), abs(values[row]))
    ahead, behind = values - values[row] > tiny, values[row] - values > tiny
    no_dearer, cheaper = (dearer <= dearer[row]).all(axis=1), (dearer < dearer[row]).any(axis=1)
    return no_dearer & ~behind & (ahead | cheaper)
