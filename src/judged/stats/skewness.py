"""A second look at tests of a mean, for differences that lie far more to one side than to the other."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.stats.bootstrap import studentised
from judged.stats.options import Options
from judged.stats.pairing import ROUNDING, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Floats
    from judged.stats.results import Difference


def allowing_for_skew(
    gaps: Floats, tests: Sequence[Difference], *, resamples: int = 100_000, seed: int = 0
) -> tuple[Difference, ...]:
    """Take the larger p-value of each test and of the studentised bootstrap, and the wider of their finite limits.

    Tests that flip signs, and Student's t, take differences to spread alike to both sides: of a dozen topics with many
    small losses and a few large gains they reject a mean of 0 twice as often as they say, and four times at 0.01. The
    studentised bootstrap sees such a skew, but errs where most topics tie. Each holds where the other fails. What none
    of the topics shows, no test sees.

    Parameters
    ----------
    gaps
        (P, T): the differences that were tested, NaN where a topic has none.
    tests
        One for each row. Tests of other kinds, without a p-value, or of differences that do not vary, stay as they are.
    resamples, seed
        Of the bootstrap.
    """
    made = list(tests)
    known = ~np.isnan(gaps)
    for mask in np.unique(known, axis=0):
        alike = np.flatnonzero((known == mask).all(axis=1)).tolist()
        at = [row for row in alike if _takes_symmetry(tests[row]) and spread(gaps[row, mask]) > 0]
        if not at:
            continue
        rows = gaps[at][:, mask]
        options = Options(tests[at[0]].alternative, tests[at[0]].level, resamples, seed)
        for row, also in zip(at, studentised(rows, ROUNDING * np.abs(rows).sum(axis=1), options), strict=True):
            interval = _wider(tests[row].interval, also.interval)
            made[row] = replace(tests[row], p=max(tests[row].p, also.p), interval=interval)
    return tuple(made)


def _takes_symmetry(test: Difference) -> bool:
    return test.method in {"randomisation", "t", "ratio"} and not math.isnan(test.p)


def _wider(one: tuple[float, float] | None, other: tuple[float, float] | None) -> tuple[float, float] | None:
    if one is None or other is None:
        return one
    low, high = other
    return (
        min(one[0], low) if math.isfinite(low) else one[0],
        max(one[1], high) if math.isfinite(high) else one[1],
    )
