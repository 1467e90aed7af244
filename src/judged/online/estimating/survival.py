"""How long opened results are looked at: the Kaplan-Meier curve of a log, with intervals over users.

A visit that is the last thing seen of a user was watched for a while and did not end: such visits are neither dropped
nor taken as ended. The database counts durations, and sums by user what each of them adds; the curve between the two is
made of the counts alone. What one adds is rounded to a part in 10 to the 10, so that sums are of whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from judged.errors import InputError
from judged.online.engine import Relation, identifier
from judged.stats.ratio import effective_units, woodruff
from judged.stats.survival import SurvivalCurve, clustered_error, kaplan_meier

if TYPE_CHECKING:
    from judged._types import Floats

DISTINCT = 200_000
"""Durations, by slice, that are told apart at most: more are rounded up to a grid of 10 ms, or 100, or 1000..."""

_COARSEST = 10**9  # milliseconds: more than ten days
_PART = 1e10  # influences are counted in such parts of the largest one
_Times: TypeAlias = Callable[[SurvivalCurve], Sequence[float]]


@dataclass(frozen=True)
class SurvivalEstimate:
    """The share of visits that last longer than a time, on one slice; or the time itself, for a quantile.

    Parameters
    ----------
    slice
        Value of the slice; None: all rows.
    at_ms
        The time. Of a quantile that is not reached: infinite.
    value, low, high
        The share with its interval; for a quantile, the time in milliseconds with its interval, infinite where the
        curve does not come down so far. NaN where no visit was watched so long, and limits for fewer than two units.
    error
        Standard error of the share at `at_ms`, over units; for a quantile, of the share that it is the quantile of.
    units
        How many users (or other units) the interval is made over.
    observed, censored
        Visits whose end was seen, and those that were only watched for a while.
    grid_ms
        1, or what durations were rounded up to. Times that are asked for stay exact.
    """

    slice: str | None
    at_ms: float
    value: float
    low: float
    high: float
    error: float
    units: int
    observed: int
    censored: int
    grid_ms: int = 1


@dataclass(frozen=True)
class _Summed:
    """One slice: its curve, and at each time the sum over units of squared influences."""

    slice: str | None
    curve: SurvivalCurve
    times: tuple[float, ...]
    squares: tuple[float, ...]
    units: int
    effective: float
    grid_ms: int


def survival_of(
    clicks: Relation,
    *,
    at_ms: Sequence[int],
    by: str | None = None,
    pooled: bool = False,
    unit: str = "user",
    level: float = 0.95,
) -> list[SurvivalEstimate]:
    """Give the share of visits that last longer than some times.

    Parameters
    ----------
    clicks
        One row a visit: `unit`, perhaps `by`, ``dwell_ms`` (how long it lasted, or was watched) and ``ended`` (1: it
        was seen to end; 0: it was not). Rows in which one of them is null do not count.
    at_ms
        The times in milliseconds. "At least 30 s" is "longer than 29 999 ms".
    by
        Column to slice by; None: all rows together.
    pooled
        With `by`: give all rows together too, before the slices.
    unit
        Column of what is independent.
    level
        Of the intervals.

    Returns
    -------
    list of SurvivalEstimate
        By slice in order of its values, then time as given. Empty where there are no rows.

    Raises
    ------
    InputError
        If there are more slices than durations are told apart.

    Examples
    --------
    >>> import pyarrow
    >>> from judged.online.engine import Engine
    >>> rows = {"user": [1, 1, 2, 3], "dwell_ms": [10, 20, 20, 30], "ended": [1, 1, 0, 1]}
    >>> visits = Engine().register(pyarrow.table(rows))
    >>> [(one.at_ms, one.value, one.units) for one in survival_of(visits, at_ms=[10, 25])]
    [(10, 0.75, 3), (25, 0.5, 3)]
    """
    times = tuple(at_ms)
    found: list[SurvivalEstimate] = []
    for one in _summed(clicks, lambda _: times, by=by, unit=unit, exact=times, pooled=pooled):
        for time, squares in zip(one.times, one.squares, strict=True):
            value = one.curve.at(time)
            error = math.nan if math.isnan(value) else clustered_error(value, squares, one.units)
            limits = one.curve.interval(time, error, one.units, level, effective=one.effective)
            found.append(_estimate(one, time, value, limits, error))
    return found


def survival_quantile(
    clicks: Relation, *, probability: float = 0.5, by: str | None = None, unit: str = "user", level: float = 0.95
) -> list[SurvivalEstimate]:
    """Give the time by which a share of the visits has ended: the median dwell time.

    Its interval holds the times whose share is within the interval of the share at the estimate (Woodruff, JASA 1952;
    as Brookmeyer and Crowley, Biometrics 1982, with the error at the estimate).

    Parameters
    ----------
    clicks, by, unit, level
        As for `survival_of`.
    probability
        The share that has ended, above 0 and below 1.

    Returns
    -------
    list of SurvivalEstimate
        By slice in order of its values.

    Examples
    --------
    >>> import pyarrow
    >>> from judged.online.engine import Engine
    >>> rows = {"user": [1, 1, 2, 3], "dwell_ms": [10, 20, 20, 30], "ended": [1, 1, 0, 1]}
    >>> survival_quantile(Engine().register(pyarrow.table(rows)))[0].value
    20.0
    """
    found: list[SurvivalEstimate] = []
    for one in _summed(clicks, lambda curve: (_last_above_0(curve, probability),), by=by, unit=unit, exact=()):
        share = one.curve.at(one.times[0])
        error = clustered_error(share, one.squares[0], one.units)
        low, high = woodruff(probability, error, one.units, level, effective=one.effective)
        limits = (math.nan, math.nan) if math.isnan(low) else (one.curve.quantile(low), one.curve.quantile(high))
        time = one.curve.quantile(probability)
        found.append(_estimate(one, time, time, limits, error))
    return found


def _last_above_0(curve: SurvivalCurve, probability: float) -> float:
    """Find where the error of a quantile is taken: at it, or at the last step at which the curve is above 0."""
    above = curve.times[curve.survival > 0]
    return min(curve.quantile(probability), float(above[-1])) if len(above) else 0.0


def _estimate(one: _Summed, time: float, value: float, limits: tuple[float, float], error: float) -> SurvivalEstimate:
    ended, censored = int(one.curve.ended.sum()), int(one.curve.censored.sum())
    return SurvivalEstimate(one.slice, time, value, *limits, error, one.units, ended, censored, one.grid_ms)


def _summed(
    clicks: Relation, times_of: _Times, *, by: str | None, unit: str, exact: Sequence[int], pooled: bool = False
) -> list[_Summed]:
    """Count durations, make the curves, and sum influences by unit and slice."""
    keyed, counted, grid_ms = _counted(clicks, exact, by=by, unit=unit)
    curves = _curves(counted)
    if not curves:
        return []
    times = [tuple(times_of(curve)) for _, curve in curves]
    sums = _squares(keyed, curves, times)
    made = [
        _Summed(None if by is None else name, curve, wanted, *sums[name], grid_ms)
        for (name, curve), wanted in zip(curves, times, strict=True)
    ]
    if not pooled or by is None:
        return made
    whole = _pooled(counted)
    together = clicks.engine.query(f"SELECT unit, duration, ended, '' AS slice FROM {keyed}")
    return [_Summed(None, whole, times[0], *_squares(together, [("", whole)], times[:1])[""], grid_ms), *made]


def _counted(clicks: Relation, exact: Sequence[int], *, by: str | None, unit: str) -> tuple[Relation, Any, int]:
    """Count visits by slice and duration, on the finest grid that leaves few enough."""
    engine, grid_ms = clicks.engine, 1
    cut = "''" if by is None else f"CAST({identifier(by)} AS VARCHAR)"
    while True:
        key = "dwell_ms"
        if grid_ms > 1:
            key = f"(dwell_ms + {grid_ms - 1}) // {grid_ms} * {grid_ms}"
            for time in sorted(exact):  # rounding up must not carry a visit over a time that is asked for
                key = f"CASE WHEN dwell_ms <= {time} AND {key} > {time} THEN {time} ELSE {key} END"
        keyed = engine.query(f"""
            SELECT unit, CAST({key} AS BIGINT) AS duration, ended, slice FROM (
                SELECT {identifier(unit)} AS unit, dwell_ms, ended, {cut} AS slice FROM {clicks})
            WHERE unit IS NOT NULL AND dwell_ms IS NOT NULL AND ended IS NOT NULL AND slice IS NOT NULL""")
        found = engine.arrow(f"""
            SELECT slice, duration, count(*) AS visits, CAST(sum(ended) AS BIGINT) AS ended FROM {keyed}
            GROUP BY slice, duration LIMIT {DISTINCT + 1}""")
        if found.num_rows <= DISTINCT:
            return keyed, found, grid_ms
        if grid_ms >= _COARSEST:
            raise InputError(f"more than {DISTINCT:,} slices", fix="slice by something with fewer values")
        grid_ms *= 10


def _curves(counted: Any) -> list[tuple[str, SurvivalCurve]]:
    """Make a curve of each slice, in order of their values."""
    names, codes = np.unique(np.asarray(counted["slice"].to_pylist(), dtype=object), return_inverse=True)
    durations, visits, ended = (counted[name].to_numpy().astype(np.int64) for name in ("duration", "visits", "ended"))
    made: list[tuple[str, SurvivalCurve]] = []
    for code, name in enumerate(names.tolist()):
        mine = np.flatnonzero(codes == code)
        mine = mine[np.argsort(durations[mine])]
        made.append((name, kaplan_meier(durations[mine], ended[mine], visits[mine] - ended[mine])))
    return made


def _pooled(counted: Any) -> SurvivalCurve:
    """Make the curve of all slices together."""
    durations, visits, ended = (counted[name].to_numpy().astype(np.int64) for name in ("duration", "visits", "ended"))
    distinct, at = np.unique(durations, return_inverse=True)
    all_visits, all_ended = (
        np.bincount(at, weights=column, minlength=len(distinct)).astype(np.int64) for column in (visits, ended)
    )
    return kaplan_meier(distinct, all_ended, all_visits - all_ended)


def _squares(
    keyed: Relation, curves: list[tuple[str, SurvivalCurve]], times: list[tuple[float, ...]]
) -> dict[str, tuple[tuple[float, ...], int, float]]:
    """Sum influences by unit; give by slice the sum of their squares at each time, units, and effective ones."""
    influences, scale = _influences(curves, times)
    columns = [f"influence_{at}" for at in range(len(times[0]))]
    given = keyed.engine.register(influences)
    sums = ", ".join(f"CAST(sum(i.{name}) AS HUGEINT) AS {name}" for name in columns)
    squares = ", ".join(f"CAST(sum({name} * {name}) AS VARCHAR) AS {name}" for name in columns)
    found = keyed.engine.rows(f"""
        SELECT slice, count(*) AS units, CAST(sum(visits) AS BIGINT) AS visits,
            CAST(sum(visits * visits) AS BIGINT) AS square, {squares}
        FROM (
            SELECT k.slice, k.unit, count(*) AS visits, {sums} FROM {keyed} AS k
            JOIN {given} AS i ON i.slice = k.slice AND i.duration = k.duration AND i.ended = k.ended
            GROUP BY k.slice, k.unit)
        GROUP BY slice""")
    return {
        row["slice"]: (
            tuple(int(row[name]) / scale**2 for name in columns),
            row["units"],
            effective_units(row["visits"], row["square"]),
        )
        for row in found
    }


def _influences(curves: list[tuple[str, SurvivalCurve]], times: list[tuple[float, ...]]) -> tuple[Any, float]:
    """Make a table of what a visit adds to each point of its slice's curve, by its length and whether it ended.

    And in how many parts it is counted.
    """
    import pyarrow as pa

    names: list[str] = []
    durations: list[np.ndarray] = []
    values: list[list[Floats]] = [[] for _ in times[0]]
    for (name, curve), wanted in zip(curves, times, strict=True):
        names += [name] * (2 * len(curve.times))
        durations += [curve.times, curve.times]
        for at, time in enumerate(wanted):
            values[at] += curve.influence(time)
    ended = np.concatenate([np.repeat([1, 0], len(curve.times)) for _, curve in curves])
    made = {"slice": pa.array(names, pa.string()), "duration": np.concatenate(durations), "ended": ended}
    joined = [np.concatenate(value) for value in values]
    scale = _PART / max(max((float(np.abs(value).max(initial=0.0)) for value in joined), default=0.0), 1e-12)
    made |= {f"influence_{at}": np.round(value * scale).astype(np.int64) for at, value in enumerate(joined)}
    return pa.table(made), scale
