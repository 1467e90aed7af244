"""Change points: where the level of a series changes, told from its noise at a declared error rate.

Binary segmentation (Scott and Knott, Biometrics 1974): the series is cut where the means of the two parts differ most
for their sizes, if they differ more than they do in random orders of the same points; then each part in the same way.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.errors import InputError
from judged.stats.options import check_resampling

if TYPE_CHECKING:
    from judged._types import Floats

_HELD = 1 << 20  # values permuted at a time


@dataclass(frozen=True)
class Change:
    """A change of level."""

    point: int  # index of the first point of the new level
    # before, after: weighted means of the stretches on both sides, each up to the next change
    before: float
    after: float
    # chance of so large a difference somewhere in the stretch that was cut, had its points come in random order
    p: float


def change_points(
    values: Floats,  # (n,) in order of time. NaN: no point.
    weights: Floats,
    *,
    alpha: float = 0.01,
    shortest: int = 5,
    resamples: int = 999,  # resamples, seed: random orders, at least 100, and of what they are drawn
    seed: int = 0,
) -> tuple[Change, ...]:
    """Find where the level of a series changes.

    >>> values = np.array([0.30, 0.31, 0.29, 0.30, 0.31, 0.30, 0.25, 0.24, 0.25, 0.26, 0.24, 0.25])
    >>> [(one.point, round(one.before, 3), round(one.after, 3)) for one in change_points(values, np.ones(12))]
    [(6, 0.302, 0.248)]
    """
    # `weights`: (n,) what each point counts: in proportion to `1 / errors**2`, and so to the size of its sample. Above
    # 0. Returns in order of time. None for a series of fewer than `2 * shortest` points.
    check_resampling(resamples, seed)
    if not 0 < alpha < 1 or shortest < 1:
        raise InputError(
            f"an error rate of {alpha} with stretches of {shortest} points makes no sense",
            fix="a rate between 0 and 1, 0.01 say, and at least 1 point",
        )
    if (resamples + 1) * alpha < 1:
        raise InputError(f"{resamples} resamples cannot reach {alpha}", fix=f"at least {int(np.ceil(1 / alpha))}")
    known = np.flatnonzero(np.isfinite(values) & np.isfinite(weights) & (weights > 0))
    x, w = values[known], weights[known]
    cuts: dict[int, float] = {}
    parts = [(0, len(x))]
    while parts:
        start, end = parts.pop()
        rng = np.random.default_rng((seed, start, end))
        cut, p = _cut(x[start:end], w[start:end], shortest, resamples, rng)
        if p <= alpha:
            cuts[start + cut] = p
            parts += [(start, start + cut), (start + cut, end)]
    edges = [0, *sorted(cuts), len(x)]
    means = [float(np.average(x[a:b], weights=w[a:b])) for a, b in itertools.pairwise(edges) if b > a]
    return tuple(Change(int(known[edge]), means[at], means[at + 1], cuts[edge]) for at, edge in enumerate(edges[1:-1]))


def _cut(x: Floats, w: Floats, shortest: int, resamples: int, rng: np.random.Generator) -> tuple[int, float]:
    """Find the best place to cut, and the chance of one as good in random orders."""
    if len(x) < 2 * shortest:
        return 0, 1.0
    centred = (x - np.average(x, weights=w)) * np.sqrt(w)  # of one variance: what may come in any order
    largest = np.abs(centred).max()
    if largest <= 1e-12 * np.abs(x * np.sqrt(w)).max():
        return 0, 1.0
    centred /= largest
    scores = _scores(centred[None, :], w, shortest)[0]
    cut = int(scores.argmax())
    reached = 1
    size = max(1, _HELD // len(x))
    for first in range(0, resamples, size):
        orders = rng.permuted(np.broadcast_to(centred, (min(size, resamples - first), len(x))), axis=1)
        reached += int((_scores(orders, w, shortest).max(axis=1) >= scores[cut] * (1.0 - 1e-12)).sum())
    return cut + shortest, reached / (resamples + 1)


def _scores(standardised: Floats, w: Floats, shortest: int) -> Floats:
    """Give the weighted CUSUM statistic, squared, of each place to cut: what cutting there takes off the variance."""
    # With sums S of `w x` and W of w up to the cut, and the mean of all at 0: `S**2 / W + S**2 / (W_all - W)`, as a
    # share of the sum of squares around the means, which orders of weighted points change.
    root = np.sqrt(w)
    sums = np.cumsum(standardised * root, axis=1)
    up_to = np.cumsum(w)
    total, all_of_it = sums[:, -1:], up_to[-1]
    squares = (standardised**2).sum(axis=1, keepdims=True) - total**2 / all_of_it
    inside = slice(shortest - 1, len(w) - shortest)
    left, there = sums[:, inside], up_to[inside]
    gain = left**2 / there + (total - left) ** 2 / (all_of_it - there) - total**2 / all_of_it
    return gain / np.maximum(squares, 1e-300)
