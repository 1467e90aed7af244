"""Metrics read off the Kaplan-Meier curve of visits."""

from __future__ import annotations

import math
from collections.abc import Sequence

from judged.online.engine import Relation
from judged.online.estimating.survival import survival_of
from judged.online.metrics.metric import OnlineMetric
from judged.online.result import OnlineEstimate


def share_of_longer_visits(
    clicks: Relation, metrics: Sequence[OnlineMetric], *, unit: str, level: float, sliced: bool
) -> list[OnlineEstimate]:
    """Estimate the share of visits that last t seconds or more, for each metric's t: over all clicks, then by slice."""
    times = [_just_below(one) for one in metrics]
    by = "slice" if sliced else None
    curves = survival_of(clicks, at_ms=times, by=by, pooled=sliced, unit=unit, level=level)
    return [
        OnlineEstimate(
            metric=metric,
            slice=one.slice,
            value=one.value,
            low=one.low,
            high=one.high,
            error=one.error,
            numerator=math.nan,  # the curve is no ratio of two sums
            denominator=float(one.observed + one.censored),
            units=one.units,
            method="none" if math.isnan(one.low) else "greenwood",
        )
        for metric, time in zip(metrics, times, strict=True)
        for one in curves
        if one.at_ms == time
    ]


def _just_below(metric: OnlineMetric) -> int:
    """Give the last millisecond before t: visits are whole milliseconds, and one of exactly t lasts long enough."""
    return round(float(metric.parameters["t"] or 0.0) * 1000) - 1
