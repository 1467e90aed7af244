"""Whether a deployment should be rolled back: each series after it against the weeks before, on any day."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from judged.online.watch.watched import MIX, QUALITY, Watched
from judged.results import listed
from judged.stats.adjusted_difference import NO_RELATIVE, AdjustedDifference, RelativeDifference
from judged.stats.always_valid import critical_value, prior_size
from judged.stats.control import FEWEST
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from datetime import date

    from judged.online.watch.config import Event, WatchConfig

Decision: TypeAlias = Literal["roll back", "keep", "keep watching", "nothing is known"]
Fate: TypeAlias = Literal["harmed", "fine", "open"]
_BEFORE = 28  # days before a deployment that it is held against, at most
_EXPECTED = 7  # points after which intervals are narrowest
_ALPHA = 0.05


@dataclass(frozen=True)
class Guard:
    """One series before and after a deployment: its relative change with an interval for any day, and what it costs.

    ``state``: whether it lost more than the margin (``harmed``), surely not (``fine``), or may have (``open``).
    ``a_day``: of what the series counts, how much is lost each day, where it may be harmed; else NaN.
    """

    series: str
    part: str
    relative: float
    ci: tuple[float, float]
    state: Fate
    a_day: float


@dataclass(frozen=True)
class Rollback:
    """What follows for a deployment."""

    event: Event
    decision: Decision
    guards: tuple[Guard, ...]
    margin: float

    def __str__(self) -> str:
        harmed = [_name(one) for one in self.guards if one.state == "harmed"]
        waiting = [one for one in self.guards if one.state == "open"]
        said = f"{self.event.what} of {self.event.date}: {self.decision}"
        if harmed:
            return f"{said}. {listed(harmed)} got worse by more than {100 * self.margin:g} %."
        if self.decision == "nothing is known":
            return (
                f"{said}: no series with a direction has a baseline of {FEWEST} points, {FEWEST} points in the"
                f" {_BEFORE} days before the deployment, and a point after it."
            )
        if not waiting:
            return f"{said}. Nothing got worse by {100 * self.margin:g} %."
        costs = [f"{one.a_day:,.0f} a day of {_name(one)}" for one in waiting if one.a_day >= 1]
        wait = f" To wait costs some {listed(costs)}, if what was seen goes on." if costs else ""
        return (
            f"{said}. {listed([_name(one) for one in waiting])} may have lost more than {100 * self.margin:g} %.{wait}"
        )


def rollbacks(found: Sequence[Watched], config: WatchConfig) -> Iterator[Rollback]:
    """Decide for each deployment by the series that have a better side; of the mix nobody is to blame."""
    deploys = sorted((event for event in config.event if event.deploy), key=lambda event: event.date)
    for at, event in enumerate(deploys):
        later = deploys[at + 1].date if at + 1 < len(deploys) else None
        guarded = [one for one in found if one.part != MIX and one.better and one.points]
        made = [_guard(one, event, later, config.margin_relative, _ALPHA / len(guarded)) for one in guarded]
        guards = tuple(one for one in made if one)
        if not guards:
            decision: Decision = "nothing is known"
        elif any(one.state == "harmed" for one in guards):
            decision = "roll back"
        else:
            decision = "keep" if all(one.state == "fine" for one in guards) else "keep watching"
        yield Rollback(event, decision, guards, config.margin_relative)


def _guard(one: Watched, event: Event, later: date | None, margin: float, alpha: float) -> Guard | None:
    """Compare what came after a deployment, up to the next one, with the weeks before, in each point's own noise."""
    known = [point for point in one.points if point.value == point.value and point.sigma > 0]
    day = event.date.toordinal()
    before = [point for point in known if day - _BEFORE <= point.start.toordinal() <= day - one.days]
    after = [point for point in known if point.start.toordinal() >= day and (later is None or point.start < later)]
    if insufficiency(len(before), "verdict", min_units=FEWEST) or not after:  # only points before estimate the variance
        return None
    excess = [np.array([point.value - point.expected for point in points]) for points in (before, after)]
    sigma = [np.array([point.sigma for point in points]) for points in (before, after)]
    weights = [1.0 / side**2 for side in sigma]
    means = [float((x * w).sum() / w.sum()) for x, w in zip(excess, weights, strict=True)]
    alike = math.sqrt((1.0 + one.alike) / (1.0 - one.alike))
    n, df = len(after), len(before) - 1
    # like one coefficient of n days whose standard error includes that of the days before
    errors = [alike / math.sqrt(float(side.sum())) for side in weights]
    critical = critical_value(n + df, df, prior_size(_EXPECTED + df, alpha), alpha)
    if not math.isfinite(critical):
        return None
    level = float((np.array([point.expected for point in before]) * weights[0]).sum() / weights[0].sum()) + means[0]
    made = AdjustedDifference(
        means[1] - means[0], math.hypot(*errors), 0.0, 0.0, level, errors[0], base_covariance=-(errors[0] ** 2)
    )
    relative = made.relative(critical)
    state = _state(made, relative, critical, one.better, margin)
    lost = -one.better * made.value * one.size / one.days
    a_day = lost if state != "fine" and lost > 0 else math.nan
    return Guard(one.series, one.part, relative.value, relative[1:], state, a_day)


def _state(made: AdjustedDifference, relative: RelativeDifference, critical: float, better: int, margin: float) -> Fate:
    """Return whether a series surely lost more than the margin, surely not, or may have.

    Without a relative difference, the loss is compared with the margin of the largest level that the data allow.
    """
    if relative is NO_RELATIVE:
        gain, half = better * made.value, critical * made.error
        largest = abs(made.base) + critical * made.base_error
        return "harmed" if gain + half < -margin * largest else "fine" if gain - half >= 0 else "open"
    low, high = (relative.low, relative.high) if better > 0 else (-relative.high, -relative.low)
    return "harmed" if high < -margin else "fine" if low > -margin else "open"


def _name(one: Guard) -> str:
    return f"{one.series} of {one.part}" if one.part != QUALITY else one.series
