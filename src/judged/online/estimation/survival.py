"""How long visits last, and users stay away: survival curves of a log, and metrics read off them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from judged.errors import InputError
from judged.online.engine import Relation, identifier
from judged.online.layout import OnlineEstimate
from judged.online.metrics import OnlineMetric
from judged.online.statistics.survival import SurvivalCurve, clustered_error, kaplan_meier
from judged.stats.ratio import effective_units, ratio_interval, woodruff

if TYPE_CHECKING:
    from judged.online.log import InteractionLog
    from judged.results.types import Floats

DISTINCT = 200_000
"""Durations, by slice, that are told apart at most: more are rounded up to a grid of 10 ms, or 100, or 1000..."""

_COARSEST = 10**9  # milliseconds: more than ten days
_PART = 1e10  # influences are counted in such parts of the largest one of their kind
_Read: TypeAlias = tuple[float, float, float, float, float]  # time, value, both limits, error
_Units: TypeAlias = tuple[float, float]  # how many units, and how many effective ones


@dataclass(frozen=True)
class SurvivalEstimate:
    """What is read off the curve of one slice: the share of visits that last longer than a time, a mean, or a quantile.

    Parameters
    ----------
    slice
        Value of the slice; None: all rows.
    at_ms
        The time. Of a quantile that is not reached: infinite.
    value, low, high
        The share with its interval; the mean, or a quantile, in milliseconds with its interval, infinite where the
        curve does not come down so far. NaN where no visit was watched so long, and limits for fewer than two units.
    error
        Standard error over units; of a quantile half of what lies between the times by which one standard error less
        and more of the visits have ended.
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
class Reading:
    """What is read off a curve: the share that lasts longer than a time, the mean up to it, or a quantile.

    Parameters
    ----------
    kind
        As above.
    at
        The time in milliseconds; of a quantile the share that has ended by it.
    """

    kind: Literal["share", "mean", "quantile"]
    at: float

    def time(self, curve: SurvivalCurve) -> float:
        """Say where the error is taken: of a quantile at it, or at the last step at which the curve is above 0."""
        if self.kind != "quantile":
            return self.at
        above = curve.times[curve.survival > 0]
        return min(curve.quantile(self.at), float(above[-1])) if len(above) else 0.0

    def influence(self, curve: SurvivalCurve) -> tuple[Floats, Floats]:
        """Give what one visit adds, by its length: to a mean, or to the logarithm of the share."""
        return (curve.mean_influence if self.kind == "mean" else curve.influence)(self.time(curve))

    def estimate(self, curve: SurvivalCurve, squares: float, over: _Units, level: float) -> _Read:
        """Give time, value, both limits and error out of the sum of squared influences over units."""
        time, (units, effective) = self.time(curve), over
        if self.kind == "mean":
            mean, error = curve.mean(time), clustered_error(1.0, squares, units)
            ends = ratio_interval(mean / time, error / time, units, level, share=True, effective=effective)
            return time, mean, ends[0] * time, ends[1] * time, error
        share = curve.at(time)
        error = math.nan if math.isnan(share) else clustered_error(share, squares, units)
        if self.kind == "share":
            return time, share, *curve.interval(time, error, units, level, effective=effective), error
        low, high = woodruff(self.at, error, units, level, effective=effective)
        ends = (math.nan, math.nan) if math.isnan(low) else (curve.quantile(low), curve.quantile(high))
        quantile = curve.quantile(self.at)
        return quantile, quantile, *ends, (curve.quantile(self.at + error) - curve.quantile(self.at - error)) / 2


def survival_readings(
    clicks: Relation,
    wanted: Sequence[Reading],
    *,
    by: str | None = None,
    pooled: bool = False,
    unit: str = "user",
    level: float = 0.95,
) -> list[list[SurvivalEstimate]]:
    """Read shares, means and quantiles off the curves of visits, or of whatever lasts for a while.

    Parameters
    ----------
    clicks
        One row a visit: `unit`, perhaps `by`, ``dwell_ms`` (how long it lasted, or was watched) and ``ended`` (1: it
        was seen to end; 0: it was not). Rows in which one of them is null do not count.
    wanted
        What is read off each curve.
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
    list of list of SurvivalEstimate
        For each reading, by slice in order of its values. Empty where there are no rows.

    Raises
    ------
    InputError
        If there are more slices than durations are told apart.
    """
    exact = [int(one.at) for one in wanted if one.kind == "share"]  # durations must not be rounded over these
    keyed, counted, grid_ms = _counted(clicks, exact, by=by, unit=unit)
    curves = _curves(counted)
    if not curves:
        return [[] for _ in wanted]
    sums = _squares(keyed, curves, wanted)
    made = [(None if by is None else name, curve, *sums[name]) for name, curve in curves]
    if pooled and by is not None:
        together = clicks.engine.query(f"SELECT unit, duration, ended, '' AS slice FROM {keyed}")
        whole = _curves(counted, pooled=True)
        made.insert(0, (None, whole[0][1], *_squares(together, whole, wanted)[""]))
    return [
        [
            SurvivalEstimate(
                name,
                *reading.estimate(curve, squares[at], units, level),
                int(units[0]),
                int(curve.ended.sum()),
                int(curve.censored.sum()),
                grid_ms,
            )
            for name, curve, squares, units in made
        ]
        for at, reading in enumerate(wanted)
    ]


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


def _curves(counted: Any, *, pooled: bool = False) -> list[tuple[str, SurvivalCurve]]:
    """Make a curve of each slice, in order of their values; or one of all together."""
    slices = [""] * len(counted) if pooled else counted["slice"].to_pylist()
    names, codes = np.unique(np.asarray(slices, dtype=object), return_inverse=True)
    durations, visits, ended = (counted[name].to_numpy().astype(np.int64) for name in ("duration", "visits", "ended"))
    made: list[tuple[str, SurvivalCurve]] = []
    for code, name in enumerate(names.tolist()):
        mine = codes == code
        distinct, at = np.unique(durations[mine], return_inverse=True)
        all_visits, all_ended = (np.bincount(at, column[mine]).astype(np.int64) for column in (visits, ended))
        made.append((name, kaplan_meier(distinct, all_ended, all_visits - all_ended)))
    return made


def _squares(
    keyed: Relation, curves: list[tuple[str, SurvivalCurve]], wanted: Sequence[Reading]
) -> dict[str, tuple[tuple[float, ...], _Units]]:
    """Sum influences by unit; give by slice the sum of their squares for each reading, and the units."""
    influences, scales = _influences(curves, wanted)
    columns = [f"influence_{at}" for at in range(len(wanted))]
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
            tuple(int(row[name]) / scale**2 for name, scale in zip(columns, scales, strict=True)),
            (row["units"], effective_units(row["visits"], row["square"])),
        )
        for row in found
    }


def _influences(curves: list[tuple[str, SurvivalCurve]], wanted: Sequence[Reading]) -> tuple[Any, list[float]]:
    """Make a table of what a visit adds to each reading of its slice's curve, by its length and whether it ended.

    And in how many parts it is counted.
    """
    import pyarrow as pa

    names = [name for name, curve in curves for _ in range(2 * len(curve.times))]
    durations = np.concatenate([np.tile(curve.times, 2) for _, curve in curves])
    ended = np.concatenate([np.repeat([1, 0], len(curve.times)) for _, curve in curves])
    made = {"slice": pa.array(names, pa.string()), "duration": durations, "ended": ended}
    values = [np.concatenate([part for _, curve in curves for part in one.influence(curve)]) for one in wanted]
    largest = dict.fromkeys((one.kind for one in wanted), 1e-12)
    for one, column in zip(wanted, values, strict=True):
        largest[one.kind] = max(largest[one.kind], float(np.abs(column).max(initial=0.0)))
    scales = [_PART / largest[one.kind] for one in wanted]
    for at, (column, scale) in enumerate(zip(values, scales, strict=True)):
        made[f"influence_{at}"] = np.round(column * scale).astype(np.int64)
    return pa.table(made), scales


_DAY = 86_400_000


def visits(clicks: Relation, slices: Relation | None, chosen: Relation | None) -> Relation:
    """Give the visits of `click_facts`, of the chosen pages, with the slice of their page where there are slices."""
    joins, slice_of = _of_pages("c", slices, chosen)
    return clicks.engine.query(f"SELECT c.*{slice_of} FROM {clicks} AS c {joins}") if joins else clicks


def _of_pages(alias: str, slices: Relation | None, chosen: Relation | None) -> tuple[str, str]:
    """Write the joins that leave the chosen pages and give their slices, and the column of the slice."""
    joins = "" if slices is None else f"JOIN {slices} AS s ON s.serp = {alias}.serp "
    joins += "" if chosen is None else f"JOIN {chosen} AS w ON w.serp = {alias}.serp"
    return joins, "" if slices is None else ", s.slice"


def absences(log: InteractionLog, slices: Relation | None, chosen: Relation | None) -> Relation:
    """Give one row a user: how long after the end of the first session the second began, or the log went on.

    Returns
    -------
    Relation
        ``user``; ``dwell_ms``, of the absence; ``ended``, 1: the user came back; ``slice`` of the first page of all
        where there are slices. Users whose first page is not chosen are left out.
    """
    joins, slice_of = _of_pages("f", slices, chosen)
    return log.engine.keep(
        f"""
        WITH visit AS (
            SELECT session, "user", min(time_ms) AS start_ms FROM {log.serp} GROUP BY session, "user"),
        first AS (
            SELECT p."user", p.start_ms, min(p.serp) AS serp, min(p.session) AS session FROM (
                SELECT g.serp, g.session, g."user", b.start_ms FROM {log.serp} AS g
                JOIN (SELECT "user", min(start_ms) AS start_ms FROM visit GROUP BY "user") AS b
                ON b."user" = g."user" AND b.start_ms = g.time_ms) AS p
            GROUP BY p."user", p.start_ms),
        later AS (
            SELECT v."user", min(v.start_ms) AS next_ms FROM visit AS v JOIN first AS f ON f."user" = v."user"
            WHERE v.session <> f.session GROUP BY v."user"),
        last AS (SELECT max(end_ms) AS until_ms FROM {log.session})
        SELECT f."user", greatest(coalesce(n.next_ms, l.until_ms) - e.end_ms, 0) AS dwell_ms,
            CAST(CASE WHEN n.next_ms IS NOT NULL THEN 1 ELSE 0 END AS BIGINT) AS ended{slice_of}
        FROM first AS f JOIN {log.session} AS e ON e.session = f.session CROSS JOIN last AS l
        LEFT JOIN later AS n ON n."user" = f."user" {joins}""",
        "absence",
    )


def read_off(
    lasting: Relation, metrics: Sequence[OnlineMetric], *, unit: str, level: float, sliced: bool
) -> list[OnlineEstimate]:
    """Estimate metrics of one curve: over all rows, then by slice."""
    by = "slice" if sliced else None
    wanted = [_reading(one) for one in metrics]
    found = survival_readings(lasting, wanted, by=by, pooled=sliced, unit=unit, level=level)
    return [_estimate(metric, one) for metric, readings in zip(metrics, found, strict=True) for one in readings]


def _reading(metric: OnlineMetric) -> Reading:
    given = metric.parameters
    if metric.kind == "survival quantile":
        return Reading("quantile", float(given["q"] or 0.5))
    if metric.kind == "survival mean":
        return Reading("mean", round(1000 * float(given["t"] or 0)))
    if metric.row == "user":  # who is back after exactly so many days is back within them
        return Reading("share", round(_DAY * float(given["d"] or 0)))
    return Reading("share", round(1000 * float(given["t"] or 0)) - 1)  # a visit of exactly t lasts long enough


def _estimate(metric: OnlineMetric, one: SurvivalEstimate) -> OnlineEstimate:
    value, low, high, error = one.value, one.low, one.high, one.error
    if metric.kind == "survival":
        if metric.row == "user":
            value, low, high = 1.0 - value, 1.0 - high, 1.0 - low
    else:
        value, low, high, error = (number / 1000 for number in (value, low, high, error))
    value = value if math.isfinite(value) else math.nan
    known = math.isfinite(low) and math.isfinite(high) and not math.isnan(value)
    return OnlineEstimate(
        metric=metric,
        slice=one.slice,
        value=value,
        low=low if known else math.nan,
        high=high if known else math.nan,
        error=error,
        numerator=math.nan,  # the curve is no ratio of two sums
        denominator=float(one.observed + one.censored),
        units=one.units,
        method="none" if not known else "woodruff" if metric.kind == "survival quantile" else "greenwood",
    )
