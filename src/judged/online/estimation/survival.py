"""Survival analysis of a log: how long visits last and users stay away, and metrics read from the curves."""

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
"""Largest number of distinct durations over all slices; more are rounded up to a grid of 10 ms, 100 ms, 1000 ms..."""

_COARSEST = 10**9  # milliseconds, more than ten days
# Influences are integers, in units of 1 / _SCALE of the largest one of their kind: sums of integers are exact, so that
# all databases return the same result.
_SCALE = 1e10
_EstimateAtTime: TypeAlias = tuple[float, float, float, float, float]  # time, value, both limits, error
_Units: TypeAlias = tuple[float, float]  # number, and effective number (Kish)


@dataclass(frozen=True)
class SurvivalEstimate:
    """Estimate from the survival curve of one slice: a share of visits that last longer, a mean, or a quantile.

    Parameters
    ----------
    slice
        Value of the slice; None: all rows.
    at_ms
        Time of the estimate, in milliseconds; infinite for a quantile that is not reached.
    value, low, high
        The share, or the mean or quantile in milliseconds, with its interval. Infinite if the curve does not fall that
        far; NaN if no visit was observed that long. Limits are NaN for fewer than two units.
    error
        Standard error over units; for a quantile, half the difference between the times at which the share of ended
        visits is one standard error above and below.
    units
        Number of users (or other units) behind the interval.
    observed, censored
        Visits with an observed end, and visits without.
    grid_ms
        Multiple to which durations were rounded up, except at the times of the estimates; 1: not rounded.
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
class CurveStatistic:
    """Statistic of a survival curve: the share that lasts longer than a time, the restricted mean, or a quantile.

    Parameters
    ----------
    kind
        Which of the three.
    point
        Time in milliseconds; for a quantile, the share that has ended by it.
    """

    kind: Literal["share", "mean", "quantile"]
    point: float

    def time(self, curve: SurvivalCurve) -> float:
        """Return the time of the error: for a quantile, the quantile or the last step at which the curve is above 0."""
        if self.kind != "quantile":
            return self.point
        # At a quantile where the curve is 0, its logarithm, and so the influence, is undefined.
        above = curve.times[curve.survival > 0]
        return min(curve.quantile(self.point), float(above[-1])) if len(above) else 0.0

    def influence(self, curve: SurvivalCurve) -> tuple[Floats, Floats]:
        """Return the influence of one visit, by its length, on the mean or on the logarithm of the share."""
        return (curve.mean_influence if self.kind == "mean" else curve.influence)(self.time(curve))

    def estimate(self, curve: SurvivalCurve, squares: float, unit_counts: _Units, level: float) -> _EstimateAtTime:
        """Return time, value, both limits, and error from the sum of squared influences over units."""
        time, (units, effective) = self.time(curve), unit_counts
        if self.kind == "mean":
            mean, error = curve.mean(time), clustered_error(1.0, squares, units)
            limits = ratio_interval(mean / time, error / time, units, level, share=True, effective=effective)
            return time, mean, limits[0] * time, limits[1] * time, error
        share = curve.survival_at(time)
        error = math.nan if math.isnan(share) else clustered_error(share, squares, units)
        if self.kind == "share":
            return time, share, *curve.interval(time, error, units, level, effective=effective), error
        # Woodruff: invert the interval of the share at the quantile.
        low, high = woodruff(self.point, error, units, level, effective=effective)
        limits = (math.nan, math.nan) if math.isnan(low) else (curve.quantile(low), curve.quantile(high))
        quantile = curve.quantile(self.point)
        error_ms = (curve.quantile(self.point + error) - curve.quantile(self.point - error)) / 2
        return quantile, quantile, *limits, error_ms


def estimate_survival(
    clicks: Relation,
    statistics: Sequence[CurveStatistic],
    *,
    by: str | None = None,
    pooled: bool = False,
    unit: str = "user",
    level: float = 0.95,
) -> list[list[SurvivalEstimate]]:
    """Estimate shares, means, and quantiles from the survival curves of visits or other durations.

    Parameters
    ----------
    clicks
        One row per visit: `unit`, optionally `by`, ``dwell_ms`` (observed duration), and ``ended`` (1: the end was
        observed; 0: censored). Rows with a null in one of them are ignored.
    statistics
        Statistics of each curve.
    by
        Slicing column; None: all rows.
    pooled
        With `by`: also estimate over all rows, before the slices.
    unit
        Column of the unit of independence.
    level
        Level of the intervals.

    Returns
    -------
    list of list of SurvivalEstimate
        For each statistic, by slice in order of its values. Empty without rows.

    Raises
    ------
    InputError
        If there are more slices than distinct durations are supported.
    """
    exact = [int(statistic.point) for statistic in statistics if statistic.kind == "share"]
    keyed, counted, grid_ms = _count_durations(clicks, exact, by=by, unit=unit)
    curves = _curves(counted)
    if not curves:
        return [[] for _ in statistics]
    sums = _squared_influences(keyed, curves, statistics)
    curves_and_sums = [(None if by is None else name, curve, *sums[name]) for name, curve in curves]
    if pooled and by is not None:
        all_rows = clicks.engine.query(f"SELECT unit, duration, ended, '' AS slice FROM {keyed}")
        overall = _curves(counted, pooled=True)
        curves_and_sums.insert(0, (None, overall[0][1], *_squared_influences(all_rows, overall, statistics)[""]))
    return [
        [
            SurvivalEstimate(
                name,
                *statistic.estimate(curve, squares[i], units, level),
                int(units[0]),
                int(curve.ended.sum()),
                int(curve.censored.sum()),
                grid_ms,
            )
            for name, curve, squares, units in curves_and_sums
        ]
        for i, statistic in enumerate(statistics)
    ]


def _count_durations(
    clicks: Relation, exact_times: Sequence[int], *, by: str | None, unit: str
) -> tuple[Relation, Any, int]:
    """Count visits by slice and duration, on the finest grid with at most `DISTINCT` rows."""
    engine, grid_ms = clicks.engine, 1
    slice_sql = "''" if by is None else f"CAST({identifier(by)} AS VARCHAR)"
    while True:
        key = "dwell_ms"
        if grid_ms > 1:
            key = f"(dwell_ms + {grid_ms - 1}) // {grid_ms} * {grid_ms}"
            for time in sorted(exact_times):  # rounding up must not move a visit past the time of an estimate
                key = f"CASE WHEN dwell_ms <= {time} AND {key} > {time} THEN {time} ELSE {key} END"
        keyed = engine.query(f"""
            SELECT unit, CAST({key} AS BIGINT) AS duration, ended, slice FROM (
                SELECT {identifier(unit)} AS unit, dwell_ms, ended, {slice_sql} AS slice FROM {clicks})
            WHERE unit IS NOT NULL AND dwell_ms IS NOT NULL AND ended IS NOT NULL AND slice IS NOT NULL""")
        counted = engine.arrow(f"""
            SELECT slice, duration, count(*) AS visits, CAST(sum(ended) AS BIGINT) AS ended FROM {keyed}
            GROUP BY slice, duration LIMIT {DISTINCT + 1}""")
        if counted.num_rows <= DISTINCT:
            return keyed, counted, grid_ms
        if grid_ms >= _COARSEST:
            problem = f"the slicing attribute must have at most {DISTINCT:,} values"
            raise InputError(problem, fix="use an attribute with fewer distinct values")
        grid_ms *= 10


def _curves(counted: Any, *, pooled: bool = False) -> list[tuple[str, SurvivalCurve]]:
    """Return the curve of each slice, in order of their values; or one of all rows."""
    slices = [""] * len(counted) if pooled else counted["slice"].to_pylist()
    names, codes = np.unique(np.asarray(slices, dtype=object), return_inverse=True)
    durations, visits, ended = (counted[name].to_numpy().astype(np.int64) for name in ("duration", "visits", "ended"))
    curves: list[tuple[str, SurvivalCurve]] = []
    for code, name in enumerate(names.tolist()):
        in_slice = codes == code
        times, time_index = np.unique(durations[in_slice], return_inverse=True)
        visits_at, ended_at = (np.bincount(time_index, column[in_slice]) for column in (visits, ended))
        ended_counts = ended_at.astype(np.int64)
        curves.append((name, kaplan_meier(times, ended_counts, visits_at.astype(np.int64) - ended_counts)))
    return curves


def _squared_influences(
    keyed: Relation, curves: list[tuple[str, SurvivalCurve]], statistics: Sequence[CurveStatistic]
) -> dict[str, tuple[tuple[float, ...], _Units]]:
    """Return, by slice, the sum over units of squared influences for each statistic, and the units."""
    influences, scales = _influences(curves, statistics)
    columns = [f"influence_{i}" for i in range(len(statistics))]
    influence_table = keyed.engine.register(influences)
    sums = ", ".join(f"CAST(sum(i.{name}) AS HUGEINT) AS {name}" for name in columns)
    # As text, because clients would round 128-bit integers.
    squares = ", ".join(f"CAST(sum({name} * {name}) AS VARCHAR) AS {name}" for name in columns)
    rows = keyed.engine.rows(f"""
        SELECT slice, count(*) AS units, CAST(sum(visits) AS BIGINT) AS visits,
            CAST(sum(visits * visits) AS BIGINT) AS square, {squares}
        FROM (
            SELECT k.slice, k.unit, count(*) AS visits, {sums} FROM {keyed} AS k
            JOIN {influence_table} AS i ON i.slice = k.slice AND i.duration = k.duration AND i.ended = k.ended
            GROUP BY k.slice, k.unit)
        GROUP BY slice""")
    return {
        row["slice"]: (
            tuple(int(row[name]) / scale**2 for name, scale in zip(columns, scales, strict=True)),
            (row["units"], effective_units(row["visits"], row["square"])),
        )
        for row in rows
    }


def _influences(
    curves: list[tuple[str, SurvivalCurve]], statistics: Sequence[CurveStatistic]
) -> tuple[Any, list[float]]:
    """Return the influences of a visit on each statistic, by slice, length, and end, as integers, and their scales."""
    import pyarrow as pa

    names = [name for name, curve in curves for _ in range(2 * len(curve.times))]
    durations = np.concatenate([np.tile(curve.times, 2) for _, curve in curves])
    ended = np.concatenate([np.repeat([1, 0], len(curve.times)) for _, curve in curves])
    columns = {"slice": pa.array(names, pa.string()), "duration": durations, "ended": ended}
    largest = dict.fromkeys((statistic.kind for statistic in statistics), 1e-12)
    influences: list[Floats] = []
    for statistic in statistics:
        influences.append(np.concatenate([part for _, curve in curves for part in statistic.influence(curve)]))
        largest[statistic.kind] = max(largest[statistic.kind], float(np.abs(influences[-1]).max(initial=0.0)))
    scales = [_SCALE / largest[statistic.kind] for statistic in statistics]
    for i, (influence, scale) in enumerate(zip(influences, scales, strict=True)):
        columns[f"influence_{i}"] = np.round(influence * scale).astype(np.int64)
    return pa.table(columns), scales


_DAY = 86_400_000


def select_visits(clicks: Relation, slices: Relation | None, matching_pages: Relation | None) -> Relation:
    """Return the visits of `click_facts` on matching pages, with the slice of their page if there are slices."""
    joins, slice_column = _page_joins("c", slices, matching_pages)
    return clicks.engine.query(f"SELECT c.*{slice_column} FROM {clicks} AS c {joins}") if joins else clicks


def _page_joins(alias: str, slices: Relation | None, matching_pages: Relation | None) -> tuple[str, str]:
    """Return SQL joins that select pages and their slices, and the SQL of the slice column."""
    joins = "" if slices is None else f"JOIN {slices} AS s ON s.serp = {alias}.serp "
    joins += "" if matching_pages is None else f"JOIN {matching_pages} AS w ON w.serp = {alias}.serp"
    return joins, "" if slices is None else ", s.slice"


def read_absences(log: InteractionLog, slices: Relation | None, matching_pages: Relation | None) -> Relation:
    """Return for each user the time from the end of the first session to the next session or the end of the log.

    Returns
    -------
    Relation
        ``user``; ``dwell_ms``, the absence; ``ended``, 1 if the user returned; ``slice`` of the user's first page, if
        there are slices. Users whose first page does not match are excluded.
    """
    joins, slice_column = _page_joins("f", slices, matching_pages)
    # The first page of a user is the one with the lowest id at the earliest time; its session is the first session.
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
            CAST(CASE WHEN n.next_ms IS NOT NULL THEN 1 ELSE 0 END AS BIGINT) AS ended{slice_column}
        FROM first AS f JOIN {log.session} AS e ON e.session = f.session CROSS JOIN last AS l
        LEFT JOIN later AS n ON n."user" = f."user" {joins}""",
        "absence",
    )


def estimate_survival_metrics(
    durations: Relation, metrics: Sequence[OnlineMetric], *, unit: str, level: float, sliced: bool
) -> list[OnlineEstimate]:
    """Estimate metrics of one curve: over all rows, then by slice."""
    by = "slice" if sliced else None
    statistics = [_statistic(metric) for metric in metrics]
    estimates = estimate_survival(durations, statistics, by=by, pooled=sliced, unit=unit, level=level)
    return [_estimate(metric, row) for metric, rows in zip(metrics, estimates, strict=True) for row in rows]


def _statistic(metric: OnlineMetric) -> CurveStatistic:
    parameters = metric.parameters
    if metric.kind == "survival quantile":
        return CurveStatistic("quantile", float(parameters["q"] or 0.5))
    if metric.kind == "survival mean":
        return CurveStatistic("mean", round(1000 * float(parameters["t"] or 0)))
    if metric.row == "user":  # a user who returns after exactly d days returned within d days
        return CurveStatistic("share", round(_DAY * float(parameters["d"] or 0)))
    # The curve is the share that lasts longer; a visit of exactly t seconds is long enough too.
    return CurveStatistic("share", round(1000 * float(parameters["t"] or 0)) - 1)


def _estimate(metric: OnlineMetric, estimate: SurvivalEstimate) -> OnlineEstimate:
    value, low, high, error = estimate.value, estimate.low, estimate.high, estimate.error
    if metric.kind == "survival":
        if metric.row == "user":
            value, low, high = 1.0 - value, 1.0 - high, 1.0 - low
    else:
        value, low, high, error = (number / 1000 for number in (value, low, high, error))
    value = value if math.isfinite(value) else math.nan
    has_interval = math.isfinite(low) and math.isfinite(high) and not math.isnan(value)
    # The numerator is NaN: the estimate is not a ratio of two sums.
    return OnlineEstimate(
        metric=metric, slice=estimate.slice, value=value, low=low if has_interval else math.nan,
        high=high if has_interval else math.nan, error=error, numerator=math.nan,
        denominator=float(estimate.observed + estimate.censored), units=estimate.units,
        method="none" if not has_interval else "woodruff" if metric.kind == "survival quantile" else "greenwood",
    )  # fmt: skip
