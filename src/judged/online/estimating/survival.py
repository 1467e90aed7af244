"""How long opened results are looked at: the Kaplan-Meier curve of a log, with intervals over users.

A visit that is the last thing seen of a user was watched for a while and did not end: such visits are neither dropped
nor taken as ended. The engine counts durations, and sums by user what each of them adds; the curve between the two is
made of the counts alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from judged.errors import InputError
from judged.online.engine import ibis_library, kept, rows_of
from judged.stats.ratio import effective_units, woodruff
from judged.stats.survival import SurvivalCurve, clustered_error, kaplan_meier

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from judged._types import Floats

DISTINCT = 200_000
"""Durations, by slice, that are told apart at most: more are rounded up to a grid of 10 ms, or 100, or 1000..."""

_COARSEST = 10**9  # milliseconds: more than ten days
_KEY, _SLICE = "judged_key", "judged_slice"
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
    clicks: ir.Table,
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
    >>> import ibis, pyarrow
    >>> rows = {"user": [1, 1, 2, 3], "dwell_ms": [10, 20, 20, 30], "ended": [1, 1, 0, 1]}
    >>> [(one.at_ms, one.value, one.units) for one in survival_of(ibis.memtable(pyarrow.table(rows)), at_ms=[10, 25])]
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
    clicks: ir.Table, *, probability: float = 0.5, by: str | None = None, unit: str = "user", level: float = 0.95
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
    >>> import ibis, pyarrow
    >>> rows = {"user": [1, 1, 2, 3], "dwell_ms": [10, 20, 20, 30], "ended": [1, 1, 0, 1]}
    >>> survival_quantile(ibis.memtable(pyarrow.table(rows)))[0].value
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
    clicks: Any, times_of: _Times, *, by: str | None, unit: str, exact: Sequence[int], pooled: bool = False
) -> list[_Summed]:
    """Count durations, make the curves, and sum influences by unit and slice."""
    rows = _rows(clicks, by=by, unit=unit)
    keyed, counted, grid_ms = _counted(rows, exact)
    curves = _curves(counted)
    if not curves:
        return []
    whole = _pooled(counted) if pooled and by is not None else None
    times = [tuple(times_of(curve)) for _, curve in curves]
    sums, all_sums = _squares(keyed, curves, times, whole)
    made = [
        _Summed(None if by is None else name, curve, wanted, *sums[name], grid_ms)
        for (name, curve), wanted in zip(curves, times, strict=True)
    ]
    return made if whole is None else [_Summed(None, whole, times[0], *all_sums, grid_ms), *made]


def _rows(clicks: Any, *, by: str | None, unit: str) -> Any:
    """Give the four columns that are needed under names of our own."""
    import ibis

    rows = clicks.select(
        clicks[unit].name("unit"),
        clicks["dwell_ms"].cast("int64").name("dwell_ms"),
        clicks["ended"].cast("int64").name("ended"),
        (ibis.literal("") if by is None else clicks[by].cast("string")).name(_SLICE),
    )
    return rows.filter(
        rows["unit"].notnull(), rows["dwell_ms"].notnull(), rows["ended"].notnull(), rows[_SLICE].notnull()
    )


def _counted(rows: Any, exact: Sequence[int]) -> tuple[Any, Any, int]:
    """Count visits by slice and duration, on the finest grid that leaves few enough."""
    grid_ms = 1
    while True:
        key = rows["dwell_ms"]
        if grid_ms > 1:
            key = ((key + (grid_ms - 1)) // grid_ms) * grid_ms
            for time in sorted(exact):  # rounding up must not carry a visit over a time that is asked for
                key = ((rows["dwell_ms"] <= time) & (key > time)).ifelse(time, key)
        keyed = rows.mutate(**{_KEY: key.cast("int64")})
        counts = keyed.group_by([_SLICE, _KEY]).aggregate(rows=keyed.count(), ended=keyed["ended"].sum())
        found = counts.limit(DISTINCT + 1).to_pyarrow()
        if found.num_rows <= DISTINCT:
            return keyed, found, grid_ms
        if grid_ms >= _COARSEST:
            raise InputError(f"more than {DISTINCT:,} slices", fix="slice by something with fewer values")
        grid_ms *= 10


def _curves(counted: Any) -> list[tuple[str, SurvivalCurve]]:
    """Make a curve of each slice, in order of their values."""
    names, codes = np.unique(np.asarray(counted[_SLICE].to_pylist(), dtype=object), return_inverse=True)
    keys, rows, ended = (counted[name].to_numpy().astype(np.int64) for name in (_KEY, "rows", "ended"))
    made: list[tuple[str, SurvivalCurve]] = []
    for code, name in enumerate(names.tolist()):
        mine = np.flatnonzero(codes == code)
        mine = mine[np.argsort(keys[mine])]
        made.append((name, kaplan_meier(keys[mine], ended[mine], rows[mine] - ended[mine])))
    return made


def _pooled(counted: Any) -> SurvivalCurve:
    """Make the curve of all slices together."""
    keys, rows, ended = (counted[name].to_numpy().astype(np.int64) for name in (_KEY, "rows", "ended"))
    distinct, at = np.unique(keys, return_inverse=True)
    sums = (np.bincount(at, weights=column, minlength=len(distinct)).astype(np.int64) for column in (rows, ended))
    all_rows, all_ended = sums
    return kaplan_meier(distinct, all_ended, all_rows - all_ended)


_Sums: TypeAlias = tuple[tuple[float, ...], int, float]


def _squares(
    keyed: Any, curves: list[tuple[str, SurvivalCurve]], times: list[tuple[float, ...]], whole: SurvivalCurve | None
) -> tuple[dict[str, _Sums], _Sums]:
    """Sum influences by unit in the engine; give the sum of their squares at each time, units, and effective ones.

    For each slice, and for all of them together.
    """
    columns = [f"influence_{at}" for at in range(len(times[0]))]
    pooled = [] if whole is None else [f"pooled_{at}" for at in range(len(times[0]))]
    joined = keyed.join(_influences(curves, times, columns, whole), [_SLICE, _KEY, "ended"])
    summed = {name: joined[name].sum() for name in (*columns, *pooled)}
    by_unit = joined.group_by([_SLICE, "unit"]).aggregate(rows=joined.count().cast("float64"), **summed)
    if whole is None:
        return _squared(by_unit, columns), ((), 0, math.nan)
    by_unit = kept(by_unit)
    sums = {name: by_unit[name].sum() for name in ("rows", *pooled)}
    together = by_unit.group_by("unit").aggregate(**sums).mutate(**{_SLICE: ibis_library().literal("")})
    return _squared(by_unit, columns), _squared(together, pooled)[""]


def _squared(by_unit: Any, columns: Sequence[str]) -> dict[str, _Sums]:
    squared = {name: (by_unit[name] * by_unit[name]).sum() for name in columns}
    by_slice = by_unit.group_by(_SLICE).aggregate(
        units=by_unit.count(),
        rows=by_unit["rows"].sum(),
        rows_squared=(by_unit["rows"] * by_unit["rows"]).sum(),
        **squared,
    )
    return {
        row[_SLICE]: (
            tuple(row[name] for name in columns),
            row["units"],
            effective_units(row["rows"], row["rows_squared"]),
        )
        for row in rows_of(by_slice)
    }


def _influences(
    curves: list[tuple[str, SurvivalCurve]],
    times: list[tuple[float, ...]],
    columns: list[str],
    whole: SurvivalCurve | None,
) -> Any:
    """Make a table of what a visit adds to each point of its slice's curve, by its length and whether it ended.

    And of what it adds to the curve of all slices together, where that is given.
    """
    import ibis
    import pyarrow as pa

    names: list[str] = []
    keys: list[np.ndarray] = []
    values: list[list[Floats]] = [[] for _ in columns]
    for (name, curve), wanted in zip(curves, times, strict=True):
        names += [name] * (2 * len(curve.times))
        keys += [curve.times, curve.times]
        for at, time in enumerate(wanted):
            values[at] += curve.influence(time)
    ended = np.concatenate([np.repeat([1, 0], len(curve.times)) for _, curve in curves])
    made = {_SLICE: pa.array(names, pa.string()), _KEY: np.concatenate(keys), "ended": ended}
    made |= {column: np.concatenate(value) for column, value in zip(columns, values, strict=True)}
    if whole is not None:
        places = [np.searchsorted(whole.times, curve.times) for _, curve in curves]
        for at, time in enumerate(times[0]):
            both = whole.influence(time)
            made[f"pooled_{at}"] = np.concatenate([part[place] for place in places for part in both])
    return ibis.memtable(pa.table(made))
