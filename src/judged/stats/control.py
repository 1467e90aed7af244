"""Control limits for a series of estimates: which points differ by more than the series always did.

An error says how far a point would stray if only its own sample made it stray. Days differ more than that. Laney's
correction measures by how much, on the points themselves: limits stand three times ``error * sigma_z`` from the centre,
where sigma_z is what neighbouring points, divided by their errors, differ by (Laney, Quality Engineering 2002).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from judged.errors import InputError
from judged.stats.inputs import check_resampling

if TYPE_CHECKING:
    from judged._types import Bools, Floats

Rule: TypeAlias = Literal["nelson-1", "nelson-2"]
Side: TypeAlias = Literal["above", "below"]

FEWEST = 8
"""So many points are needed for limits."""

RUN = 9
"""So many points in a row on one side of the centre are a signal: chance of it at a given point, 2 / 2**9."""

_SIGMAS = 3.0
_OF_RANGE = 2.0 / math.sqrt(math.pi)  # mean absolute difference of two independent normal values, sigma 1


@dataclass(frozen=True)
class Signal:
    """A point at which a rule of Nelson (Journal of Quality Technology 1984) speaks."""

    # `nelson-1`: a point outside the limits. `nelson-2`: nine points in a row on one side of the centre; told once a
    # run, at its ninth point.
    rule: Rule
    point: int  # its index
    first: int  # index of the first point of the run; `point` itself for `nelson-1`
    side: Side  # `above` or `below`


@dataclass(frozen=True, eq=False)
class Control:
    """Limits of a series."""

    centre: float  # weighted mean of the base; NaN where there are too few points
    sigma_z: float  # how much more points differ than their errors say: 1 if nothing but their own samples moves them
    # low, high: (n,) limits of each point; NaN where there are none
    low: Floats
    high: Floats
    errors: Floats  # (n,) the errors that the limits are made of
    base: int  # how many points centre and limits come from
    signals: tuple[Signal, ...]  # in order of points


def control_limits(
    values: Floats,  # values, errors: (n,) estimates in order of time, with their standard errors. NaN: no point.
    errors: Floats,
    *,
    weights: Floats | None = None,
    base: Bools | None = None,  # (n,) which points centre and limits come from; None: all
    bounds: tuple[float, float] = (-math.inf, math.inf),  # limits are cut there: (0, 1) for shares
) -> Control:
    """Give the individuals chart of a series with Laney's correction, and its signals.

    >>> values = np.array([0.30, 0.31, 0.29, 0.30, 0.32, 0.30, 0.29, 0.31, 0.30, 0.20])
    >>> found = control_limits(values, np.full(10, 0.01), base=np.arange(10) < 9)
    >>> round(found.centre, 4), round(float(found.low[0]), 4), found.signals
    (0.3022, 0.2623, (Signal(rule='nelson-1', point=9, first=9, side='below'),))
    """
    # `weights`: (n,) sizes of the samples. Given, a point's error is taken from all points: the pooled one for its
    # size, as in the p chart. A day without a click then has an error, which its own sample does not have. None: the
    # errors as they are, the centre weighted by `1 / errors**2`, and points without error left out. Returns without
    # limits and signals if the base has fewer than `FEWEST` points or does not vary.
    errors = errors if weights is None else pooled_errors(errors, weights, base)
    usable = np.isfinite(values) & np.isfinite(errors) & (errors > 0)
    chosen = usable if base is None else usable & base
    nothing = np.full(len(values), np.nan)
    none = Control(math.nan, math.nan, nothing, nothing, errors, int(chosen.sum()), ())
    if none.base < FEWEST:
        return none
    counts = (1.0 / errors[chosen] ** 2) if weights is None else weights[chosen]
    centre = float((values[chosen] * counts).sum() / counts.sum())
    z = (values[chosen] - centre) / errors[chosen]
    sigma_z = float(np.abs(np.diff(z)).mean()) / _OF_RANGE
    if sigma_z == 0:
        return none
    room = np.where(usable, _SIGMAS * sigma_z * errors, np.nan)
    low, high = np.maximum(centre - room, bounds[0]), np.minimum(centre + room, bounds[1])
    return Control(centre, sigma_z, low, high, errors, none.base, _signals(values, centre, room))


def pooled_errors(errors: Floats, weights: Floats, base: Bools | None = None) -> Floats:
    """Give each point the error that the points have together for a sample of its size.

    >>> pooled_errors(np.array([0.1, 0.1, 0.0]), np.array([100.0, 100.0, 25.0])).round(4).tolist()
    [0.0816, 0.0816, 0.1633]
    """
    # `sqrt(mean(w * error**2) / w)` over the points of the base that have an error; NaN for points without weight.
    known = np.isfinite(errors) & (weights > 0) & (True if base is None else base)
    if not known.any():
        return np.full(len(errors), np.nan)
    pooled = float((weights[known] * errors[known] ** 2).mean())
    return np.sqrt(pooled / np.where(weights > 0, weights, np.nan))


def _signals(values: Floats, centre: float, room: Floats) -> tuple[Signal, ...]:
    """Apply both rules; a point that is missing neither ends a run nor counts in it."""
    found: list[Signal] = []
    run: list[int] = []
    last = 0
    for at, (value, half) in enumerate(zip(values.tolist(), room.tolist(), strict=True)):
        if math.isnan(half):
            continue
        side = (value > centre) - (value < centre)
        run = [*run, at] if side == last and side != 0 else [at]
        last = side
        name: Side = "above" if side > 0 else "below"
        if abs(value - centre) > half:
            found.append(Signal("nelson-1", at, at, name))
        if len(run) == RUN:
            found.append(Signal("nelson-2", at, run[0], name))
    return tuple(found)


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
