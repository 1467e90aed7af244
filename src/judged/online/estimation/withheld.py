"""What is not said of a log: metrics that it cannot tell, each with the reason. What nobody logged is not 0."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from judged.online.metrics import missing

if TYPE_CHECKING:
    from judged.online.estimates import OnlineEstimate
    from judged.online.log import InteractionLog
    from judged.online.metrics import OnlineMetric

_Found: TypeAlias = Mapping[str, Sequence["OnlineEstimate"]]
_ALL_0 = {
    "first_click_s": "clicks have the time of their page",
    "latency_s": "the log says of every page that the engine took no time",
}
"""Durations that are 0 wherever they are known, by their column: their clock is not that of what they measure."""


def tellable(
    wanted: Sequence[OnlineMetric], log: InteractionLog, unit: str
) -> tuple[tuple[OnlineMetric, ...], tuple[tuple[OnlineMetric, str], ...]]:
    """Part the metrics that this log can tell from those that it cannot, with the reason."""
    has = log.has | ({"clock"} if log.has_time else set()) | ({"dates"} if log.has_time and log.dated else set())
    reasons = {one: missing(one, has) or _unfit(one, unit) for one in wanted}
    told = tuple(one for one in wanted if not reasons[one])
    return told, tuple((one, why) for one, why in reasons.items() if why)


def _unfit(metric: OnlineMetric, unit: str) -> str:
    return "sessions are the unit here, not users" if unit == "session" and metric.row == "user" else ""


def not_there(told: Sequence[OnlineMetric], found: _Found) -> dict[OnlineMetric, str]:
    """Find what nobody asked for and this log has nothing of."""
    empty = [one for one in told if all(each.denominator == 0 for each in found.get(str(one), ()))]
    short = [one for one in told if all(math.isnan(each.value) for each in found.get(str(one), ()))]
    return {
        **dict.fromkeys(short, "nothing of it was watched for so long"),
        **dict.fromkeys(empty, "the log has nothing that it could be counted of"),
    }


def not_measured(told: Sequence[OnlineMetric], found: _Found) -> dict[OnlineMetric, str]:
    """Find durations that are 0 on every row: they were not measured."""
    of = {one: [each for each in found.get(str(one), ()) if each.slice is None] for one in told}
    return {
        one: _ALL_0[one.columns()[0]]
        for one, whole in of.items()
        if one.columns()[0] in _ALL_0 and whole and all(map(_is_0_everywhere, whole))
    }


def _is_0_everywhere(one: OnlineEstimate) -> bool:
    """Whether a duration is 0 on all rows: its sum is; or its quantile, and no row exceeds it."""
    if one.metric.kind == "quantile":
        return one.value == 0 and one.numerator == one.denominator
    return one.numerator == 0 and one.denominator > 0
