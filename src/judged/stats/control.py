"""Control limits for a series of estimates: which points differ by more than the series always did.

An error says how far a point would stray if only its own sample made it stray. Days differ more than that. Laney's
correction measures by how much, on the points themselves: limits stand three times ``error * sigma_z`` from the centre,
where sigma_z is what neighbouring points, divided by their errors, differ by (Laney, Quality Engineering 2002).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

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
