"""Differences between two arms from hand-picked estimates, and logs of tests with one page per user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from judged.online.ab_tests.assignment import Assignment
from judged.online.ab_tests.differences import ArmDifference, Inference, arm_difference
from judged.online.layout import OnlineEstimate
from judged.online.metrics import OnlineMetric, online_metric
from judged.online.statistics.allocation import sample_ratio
from judged.online.statistics.users import AdjustedDifference
from typed_logs import typed_log

DAY = 86_400_000
ONE_DAY = Inference(any_day=False)


def users(a: int = 1000, b: int = 1000, *, days: float = 10.0, **fields: Any) -> Assignment:
    """Return the assignment of a valid test."""
    return Assignment(("a", "b"), {"a": a, "b": b}, 0, 0, days, days, sample_ratio([a, b], [a, b]), **fields)


def estimate(
    metric: OnlineMetric, value: float, error: float, *, units: int = 1000, effective: float | None = None
) -> OnlineEstimate:
    """Return an estimate with a normal interval."""
    half = 1.96 * error
    return OnlineEstimate(
        metric, None, value, value - half, value + half, error, value * units, float(units), units, "delta",
        effective_units=float(units if effective is None else effective),
    )  # fmt: skip


def difference(
    base: float, other: float, error: float = 1.0, *, metric: str = "RevenuePerUser", role: Any = "primary",
    base_error: float = 0.1, units: int = 1000, effective: float | None = None, slice_name: str = "",
    inference: Inference = ONE_DAY, p_before: float = float("nan"), reduction: float = 0.0,
) -> ArmDifference:  # fmt: skip
    """Return the difference between arms b and a; `error`: its standard error, `base_error`: that of arm a."""
    metric_object = online_metric(metric)
    estimates = (
        estimate(metric_object, base, base_error, units=units, effective=effective),
        estimate(metric_object, other, error, units=units, effective=effective),
    )
    adjusted = AdjustedDifference(other - base, error, 0.0, reduction, base, base_error, -(base_error**2))
    return arm_difference(
        (metric_object, role, "b", slice_name), estimates, adjusted, users(units, units), inference, p_before
    )


def log_of_users(
    arms: Sequence[str], clicked: Sequence[float], exposed_days: Sequence[float], **fields: Sequence[Any]
) -> Any:
    """Return a log with one page per user and a satisfied click on it where `clicked` is true."""
    pages = [
        {
            "serp": user,
            "session": user,
            "user": user,
            "time_ms": int(day * DAY),
            "query": "q",
            "n_shown": 10,
            "variant": arm,
            "zero_results": False,
            **{name: values[user] for name, values in fields.items()},
        }
        for user, (arm, day) in enumerate(zip(arms, exposed_days, strict=True))
    ]
    events = [
        {
            "serp": user,
            "session": user,
            "user": user,
            "time_ms": pages[user]["time_ms"] + 1000,
            "rank": 1,
            "action": "click",
            "object_id": "d",
            "dwell_ms": 60_000,
        }
        for user in np.flatnonzero(np.asarray(clicked) > 0).tolist()
    ]
    return typed_log(pages, events)
