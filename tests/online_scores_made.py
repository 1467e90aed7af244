"""Metrics of a hand-written log, with numbers that are easy to check."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from judged.online.dwell import SECONDS, THRESHOLDS, DwellTimes
from judged.online.estimation.over_time import build_series
from judged.online.estimation.survival import SurvivalEstimate
from judged.online.findings import LogFinding, position_bias_notes, unfit_log_notes
from judged.online.layout import OnlineEstimate
from judged.online.metrics import online_metric
from judged.online.scores import OnlineScores
from judged.online.series import OverTime

if TYPE_CHECKING:
    from judged.online.metrics import OnlineMetric

_DAY = 86_400_000
NAN = math.nan


CTR = online_metric("PageCTR")
ZERO = online_metric("ZeroResults")
DWELL = online_metric("TimeToFirstClick")
DEPTH = online_metric("DeepestClickRank")
CARTS = online_metric("AddToCart")
WEIRD = "<script>alert(1)</script> | *b*"


def estimate(of: OnlineMetric, top: float, bottom: float, half: float, **more: Any) -> OnlineEstimate:
    """Create an estimate from two sums and half the width of its interval."""
    value = more.pop("value", top / bottom if bottom else NAN)
    fields = {"slice": None, "error": half / 1.96, "units": 40, "method": "delta", **more}
    return OnlineEstimate(
        of, value=value, low=value - half, high=value + half, numerator=top, denominator=bottom, **fields
    )


def ranks(*values: float) -> tuple[OnlineEstimate, ...]:
    """Create CTR by rank, with 1,000 pages each."""
    return tuple(
        estimate(online_metric("ImpressionCTR"), 1000 * value, 1000, 0.02, rank=i) for i, value in enumerate(values, 1)
    )


DOUBT = "60 of 1,060 query rows (5.7%) are excluded or lost, more than 5%: facet-request 60"


def scores(*, sliced: bool = False, estimates: tuple[OnlineEstimate, ...] | None = None, **more: Any) -> OnlineScores:
    """Create a result with four metrics, by device if `sliced`."""
    overall = (
        estimate(CTR, 381, 1000, 0.0123),
        estimate(ZERO, 6, 84, NAN, units=1, method="none"),
        estimate(DWELL, 60, 120, 2.4, value=41.25, method="greenwood"),
        estimate(DEPTH, 0, 0, NAN, units=0, method="none"),
    )
    by = tuple(estimate(CTR, top, 500, 0.02, slice=name) for name, top in (("desktop", 200), (WEIRD, 181)))
    facets = ("facet requests are no searches", "do not log them as searches")
    fields: dict[str, Any] = {
        "log": "ubi.ndjson",
        "layout": "ubi",
        "estimates": (overall[0], *by, *overall[1:]) if sliced else overall,
        "by": "device" if sliced else None,
        "slices": (("desktop", 500), (WEIRD, 500)) if sliced else (),
        "unit": "user",
        "level": 0.95,
        "interval": "delta",
        "counts": (("pages", 1000), ("events", 2345), ("sessions", 120), ("users", 40)),
        "ranks": ranks(0.3, 0.15, 0.1),
        "refused": ((CARTS, "no add_to_cart event is in this log"),),
        "policies": (("session_gap", "30 min"), ("rank_base", "1 (found)"), ("bots", "exclude")),
        "findings": (
            LogFinding("facet-request", "query", 60, 1060, "excluded", *facets),
            LogFinding("rank-base", "event", 287, 2345, "repaired", "ranks start at 0", "start at 1"),
        ),
    }
    if estimates is not None:
        fields["estimates"] = estimates
    metrics = [estimate.metric for estimate in fields["estimates"]]
    fields["notes"] = (
        *(() if "findings" in more else unfit_log_notes("ubi.ndjson", [DOUBT])),
        *position_bias_notes(metrics),
    )
    return OnlineScores(**{**fields, **more})


def dwell() -> DwellTimes:
    """Half of 100 visits last longer than 30 s; the upper end of that time is not reached."""
    estimates = tuple(estimate(online_metric(f"SatisfiedClicks(t={t})"), 90 - t, 100, 0.02) for t in THRESHOLDS)
    curve = tuple(SurvivalEstimate(None, 1000 * i - 1, 1 / (1 + i / 30), 0.1, 0.9, 0.05, 40, 80, 20) for i in SECONDS)
    median = SurvivalEstimate(None, 30_000, 30_000.0, 25_500.0, math.inf, 0.05, 40, 80, 20)
    result = scores(estimates=estimates, ranks=(), refused=())
    return DwellTimes(result, curve, median, result.notes)


def series() -> OverTime:
    """CTR of 30 days of which the tenth is low, and the last eight are, for good; the last of them is cut off."""
    wobble = (0.004, -0.004, 0.001, -0.001, 0.002, -0.002)
    level = [(0.2 if i == 9 else 0.3 if i >= 22 else 0.4) + wobble[i % 6] for i in range(30)]
    points = [(_DAY * (20_000 + i), estimate(CTR, 1000 * value, 1000, 0.01)) for i, value in enumerate(level)]
    series = build_series(points, period="day", covered=(points[0][0], points[-1][0] + _DAY // 2), warm_up=9)
    result = scores(estimates=(estimate(CTR, 370, 1000, 0.01),), refused=())
    return OverTime(result, (series,), result.notes)
