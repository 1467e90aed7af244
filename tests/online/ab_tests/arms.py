"""Differences between two arms by hand, and logs of tests whose users have one page each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from judged.online.ab_tests.assignment import Assignment
from judged.online.ab_tests.differences import ArmDifference, Looks, arm_difference
from judged.online.layout import OnlineEstimate
from judged.online.metrics import OnlineMetric, online_metric
from judged.online.statistics.allocation import sample_ratio
from judged.online.statistics.users import AdjustedDifference
from typed_logs import typed_log

DAY = 86_400_000
ONE_DAY = Looks(any_day=False)


def users(a: int = 1000, b: int = 1000, *, days: float = 10.0, **more: Any) -> Assignment:
    """Return the users of a sound test."""
    return Assignment(("a", "b"), {"a": a, "b": b}, 0, 0, days, days, sample_ratio([a, b], [a, b]), **more)


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
    base_error: float = 0.1, units: int = 1000, effective: float | None = None, part: str = "",
    looks: Looks = ONE_DAY, earlier: float = float("nan"), reduction: float = 0.0,
) -> ArmDifference:  # fmt: skip
    """Return the difference of arm b from arm a; `error`: of the difference, whose baseline has `base_error`."""
    of = online_metric(metric)
    both = (
        estimate(of, base, base_error, units=units, effective=effective),
        estimate(of, other, error, units=units, effective=effective),
    )
    made = AdjustedDifference(other - base, error, 0.0, reduction, base, base_error, -(base_error**2))
    return arm_difference((of, role, "b", part), both, made, users(units, units), looks, earlier)


def log_of_users(
    arms: Sequence[str], clicked: Sequence[float], exposed_days: Sequence[float], **fields: Sequence[Any]
) -> Any:
    """Return a log with one page a user, and a satisfied click on it where `clicked` is true."""
    pages = [
        {"serp": at, "session": at, "user": at, "time_ms": int(day * DAY), "query": "q", "n_shown": 10, "variant": arm,
         "zero_results": False, **{name: of[at] for name, of in fields.items()}}
        for at, (arm, day) in enumerate(zip(arms, exposed_days, strict=True))
    ]  # fmt: skip
    events = [
        {"serp": at, "session": at, "user": at, "time_ms": pages[at]["time_ms"] + 1000, "rank": 1, "action": "click",
         "object_id": "d", "dwell_ms": 60_000}
        for at in np.flatnonzero(np.asarray(clicked) > 0).tolist()
    ]  # fmt: skip
    return typed_log(pages, events)
