"""Control limits for a series of estimates: which points differ by more than the series always did.

An error says how far a point would stray if only its own sample made it stray. Days differ more than that. Laney's
correction measures by how much, on the points themselves: limits stand three times ``error * sigma_z`` from the centre
(Laney, Quality Engineering 2002). Three departures from his chart hold its rate where days are few, rare or alike:

- sigma_z is what *any* two points, divided by their errors, differ by (Gini's mean difference), not neighbours alone:
  days that resemble the day before would make that too small. Runs must be longer for the same reason.
- Where values have bounds, limits follow the skewness that a count has near them (Cornish and Fisher).
- Points that limits are not made of are held against those of a prediction, with Student's t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from judged.stats.student import student_quantile

if TYPE_CHECKING:
    from judged._types import Bools, Floats, Ints

Rule: TypeAlias = Literal["nelson-1", "nelson-2"]
Side: TypeAlias = Literal["above", "below"]

FEWEST = 8
"""So many points are needed for limits."""

RUN = 9
"""So many points in a row on one side of the centre are a signal, or as many as have its chance, 2 / 2**9."""

_SIGMAS = 3.0
_WITHIN = 0.9986501019683699  # chance of a normal value below 3
_OF_TWO = 2.0 / math.sqrt(math.pi)  # mean absolute difference of two independent normal values, sigma 1
_SKEWEST = 1.5  # of more, about 0.4 events a day, Cornish and Fisher's lower limit would rise above none
_WEEKS = 4  # of days, from which on those of one weekday have a centre of their own


@dataclass(frozen=True)
class Signal:
    """A point at which a rule of Nelson (Journal of Quality Technology 1984) speaks."""

    # `nelson-1`: a point outside the limits. `nelson-2`: nine points in a row, or more, on one side of the centre; told
    # once a run, at its last point that it takes.
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
    run: int  # how many points in a row on one side are a signal: 9, or more where points resemble the one before
    signals: tuple[Signal, ...]  # in order of points


def control_limits(
    values: Floats,  # values, errors: (n,) estimates in order of time, with their standard errors. NaN: no point.
    errors: Floats,
    *,
    weights: Floats | None = None,
    base: Bools | None = None,  # (n,) which points centre and limits come from; None: all
    bounds: tuple[float, float] = (-math.inf, math.inf),  # of values, (0, 1) for shares: limits are cut there
    usual: Floats | None = None,  # (n,) by how much points lie above the centre as a rule: `weekly`; None: not at all
) -> Control:
    """Give the individuals chart of a series with Laney's correction, and its signals.

    >>> values = np.array([0.30, 0.31, 0.29, 0.30, 0.32, 0.30, 0.29, 0.31, 0.30, 0.20])
    >>> found = control_limits(values, np.full(10, 0.01), base=np.arange(10) < 9)
    >>> round(found.centre, 4), round(float(found.low[0]), 4), found.signals
    (0.3022, 0.2727, (Signal(rule='nelson-1', point=9, first=9, side='below'),))
    """
    # `weights`: (n,) sizes of the samples. Given, a point's error is taken from all points: the pooled one for its
    # size, as in the p chart. A day without a click then has an error, which its own sample does not have. None: the
    # errors as they are, the centre weighted by `1 / errors**2`, and points without error left out. Returns without
    # limits and signals if the base has fewer than `FEWEST` points or does not vary.
    errors = errors if weights is None else pooled_errors(errors, weights, base)
    usable = np.isfinite(values) & np.isfinite(errors) & (errors > 0)
    chosen = usable if base is None else usable & base
    nothing = np.full(len(values), np.nan)
    none = Control(math.nan, math.nan, nothing, nothing, errors, int(chosen.sum()), RUN, ())
    if none.base < FEWEST:
        return none
    level = values if usual is None else values - usual
    counts = (1.0 / errors[chosen] ** 2) if weights is None else weights[chosen]
    centre = float((level[chosen] * counts).sum() / counts.sum())
    z = (level[chosen] - centre) / errors[chosen]
    sigma_z = _mean_difference(z) / _OF_TWO
    if sigma_z == 0:
        return none
    centres = centre + (values - level)
    predicted = student_quantile(_WITHIN, none.base - 1) * math.sqrt(1.0 + 1.0 / none.base)
    sigmas = np.where(chosen, _SIGMAS, predicted)
    low, high = _limits(centres, np.where(usable, sigma_z * errors, np.nan), sigmas, bounds)
    run = _longest_by_chance(z)
    return Control(centre, sigma_z, low, high, errors, none.base, run, _signals(values, centres, (low, high), run))


def _limits(centres: Floats, spread: Floats, sigmas: Floats, bounds: tuple[float, float]) -> tuple[Floats, Floats]:
    """Give limits so many sigmas from the centres, moved for the skewness of a count with this centre and spread."""
    below, above = (np.maximum(room, spread / _SKEWEST) for room in (centres - bounds[0], bounds[1] - centres))
    moved = centres + spread * (spread / below - spread / above) * (_SIGMAS**2 - 1.0) / 6.0
    low, high = moved - sigmas * spread, moved + sigmas * spread
    return np.clip(low, *bounds), np.clip(high, *bounds)


def _mean_difference(z: Floats) -> float:
    """Give the mean absolute difference of any two values."""
    n = len(z)
    return float((2.0 * np.arange(n) - n + 1.0) @ np.sort(z)) * 2.0 / (n * (n - 1))


def _longest_by_chance(z: Floats) -> int:
    """Give how many points in a row on one side are as rare as nine where points do not resemble the one before."""
    alike = float(np.clip((z[1:] * z[:-1]).sum() / (z * z).sum(), 0.0, 0.95))
    same_side = 0.5 + math.asin(alike) / math.pi
    return math.ceil(1 + (RUN - 1) * math.log(0.5) / math.log(same_side) - 1e-9)


def weekly(values: Floats, weights: Floats, weekdays: Ints) -> Floats:
    """Give by how much the days of each weekday lie above the mean of all, as far as chance does not explain it.

    >>> days = np.arange(28) % 7
    >>> weekly(np.where(days < 5, 0.3, 0.2) + 0.001 * (np.arange(28) // 14), np.ones(28), days)[:7].round(3).tolist()
    [0.029, 0.029, 0.029, 0.029, 0.029, -0.071, -0.071]
    """
    # Means of weekdays, drawn together by the factor `1 - 1 / F`, F being that of an analysis of variance: without a
    # pattern hardly anything is left of them. `weekdays`: (n,) from 0 to 6. Returns 0 where a weekday has fewer than
    # `_WEEKS` days with a value.
    known = np.isfinite(values) & (weights > 0)
    x, w, day = values[known], weights[known], weekdays[known]
    if np.bincount(day, minlength=7).min() < _WEEKS:
        return np.zeros(len(values))
    sums = np.bincount(day, w, minlength=7)
    means, centre = np.bincount(day, w * x, minlength=7) / sums, float((w * x).sum() / w.sum())
    between, within = float((sums * (means - centre) ** 2).sum()) / 6.0, float((w * (x - means[day]) ** 2).sum())
    shrunk = max(0.0, 1.0 - within / (len(x) - 7) / between) if between > 0 else 0.0
    return (shrunk * (means - centre))[weekdays]


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


def _signals(values: Floats, centres: Floats, limits: tuple[Floats, Floats], length: int) -> tuple[Signal, ...]:
    """Apply both rules; a point that is missing neither ends a run nor counts in it."""
    signals: list[Signal] = []
    run: list[int] = []
    last = 0
    for at, (value, centre, low, high) in enumerate(zip(values, centres, *limits, strict=True)):
        if math.isnan(low):
            continue
        side = int(value > centre) - int(value < centre)
        run = [*run, at] if side == last and side != 0 else [at]
        last = side
        name: Side = "above" if side > 0 else "below"
        if not low <= value <= high:
            signals.append(Signal("nelson-1", at, at, name))
        if len(run) == length:
            signals.append(Signal("nelson-2", at, run[0], name))
    return tuple(signals)
