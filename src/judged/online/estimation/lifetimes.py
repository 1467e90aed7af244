"""Metrics read off Kaplan-Meier curves: of how long visits last, and of how long users stay away."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from judged.online.engine import Relation
from judged.online.estimates import OnlineEstimate
from judged.online.estimation.survival import Reading, survival_readings
from judged.online.metrics import OnlineMetric

if TYPE_CHECKING:
    from judged.online.estimation.survival import SurvivalEstimate
    from judged.online.log import InteractionLog

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
