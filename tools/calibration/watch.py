"""Error rates of `judged watch` on simulated series with n pages a day.

*Alarms*: false alarms in the year after a baseline of 84 days, relative to the declared 0.5 a month; the maximum is
100%, plus about 5 points of chance. *Late*: share of 20% drops of a 30% rate that are not detected within the stated
days; 20% is nominal. *Rolled back* and *kept*: a deployment that loses exactly the margin, 5%, is called worse, or not
worse, on any of 14 days; 5% is the maximum of each. *Rolled back, unchanged* is the first rate without a loss. *Kept,
unchanged* and *rolled back, a fifth lost* are power on day 14. *None*: share of series without a watch.

Days have twice the noise of their pages, and fewer pages at weekends. *Heavy tails*: t with 3 degrees of freedom.
*Users* have 1 to 100 pages (Pareto 1.6) and different click rates. *Money* is log-normal (sigma 1.5) on one page in
ten. Points combine days until they have ten events, or ten purchases of equal size.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

import numpy as np

from calibration import CoverageCell
from judged.online.statistics import control as cusum
from judged.online.watch import watched as watched_module
from judged.online.watch.config import Event, LogSeries, SeriesKind, WatchConfig
from judged.online.watch.watched import DailySeries, rollbacks, watch_series

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.online.watch.watched import WatchedSeries

SIZES = (20, 200, 2000)
FIRST, MONTH, DECLARED, DECISION_DAYS = date(2026, 1, 1), 30.44, 0.5, 14


class World(NamedTuple):
    """Distribution of days."""

    kind: str = "share"  # or users, money
    autocorrelation: float = 0.0
    tails: float = np.inf  # degrees of freedom of the noise of days
    missing: float = 0.0
    base: int = 84


WORLDS = {
    "as the watch assumes": World(),
    "baseline of 28 days": World(base=28),
    "autocorrelated days (0.4)": World(autocorrelation=0.4),
    "30% of days missing": World(missing=0.3),
    "heavy tails": World(tails=3.0),
    "users": World("users"),
    "money": World("money"),
}


def series(rng: np.random.Generator, world: World, pages: int, level: np.ndarray) -> DailySeries:
    """Sample days whose levels are multiples of the usual level."""
    num_days, weekend = len(level), (np.arange(len(level)) + 3) % 7 >= 5
    noise = (
        rng.standard_normal(num_days) if np.isinf(world.tails) else rng.standard_t(world.tails, num_days) / np.sqrt(3)
    )
    for day in range(1, num_days):
        noise[day] = world.autocorrelation * noise[day - 1] + np.sqrt(1 - world.autocorrelation**2) * noise[day]
    sizes = np.maximum(rng.poisson(pages * np.where(weekend, 0.6, 1.0)), 2)
    if world.kind == "share":
        probability = 0.3 * level
        probability = probability + noise * np.sqrt(probability * (1 - probability) / sizes * 3.0)
        values = rng.binomial(sizes, np.clip(probability, 0, 1)) / sizes
        errors = np.sqrt(values * (1 - values) / sizes)
    elif world.kind == "money":
        num_buyers = rng.binomial(sizes, 0.1)
        day = np.repeat(np.arange(num_days), num_buyers)
        amounts = np.exp(rng.normal(3.0, 1.5, len(day))) * level[day]
        values, squares = (np.bincount(day, part, minlength=num_days) / sizes for part in (amounts, amounts**2))
        errors = np.sqrt((squares - values**2) / sizes)
    else:
        day = np.repeat(np.arange(num_days), np.maximum(sizes // 3, 2))
        d = np.minimum(np.ceil(rng.pareto(1.6, len(day)) + 1e-9), 100.0)
        probability = np.minimum(rng.beta(0.6, 1.4, len(day)) * level[day], 1)
        n = rng.binomial(d.astype(np.int64), probability).astype(float)
        sums = [np.bincount(day, part, minlength=num_days) for part in (n, d, n * n, d * d, n * d)]
        values, sizes = sums[0] / sums[1], sums[1]
        residual = sums[2] - 2 * values * sums[4] + values**2 * sums[3]
        errors = np.sqrt(np.maximum(residual, 0)) / sizes
    is_missing = rng.random(num_days) < world.missing
    columns = (np.where(is_missing, np.nan, part) for part in (values, errors, sizes.astype(float)))
    return DailySeries(FIRST, *columns)


@cache
def _grid(days: int, rate: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    autocorrelations, k = np.linspace(0.0, 0.8, 9), np.array([0.25, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5])
    thresholds = [[cusum.threshold(days, float(a), rate, float(b)) for b in k] for a in autocorrelations]
    return autocorrelations, k, np.log(thresholds)


def threshold(days: int, autocorrelation: float, rate: float, k: float) -> float:
    """Interpolate a threshold in a grid, since each simulation takes a tenth of a second."""
    autocorrelations, sizes, logs = _grid(max(7 * round(days / 7), 7) if days > 14 else days, rate)
    return float(np.exp(np.interp(autocorrelation, autocorrelations, [np.interp(k, sizes, row) for row in logs])))


def watch_days(
    days: DailySeries, world: World, *, with_delay: bool = False, deployed: date | None = None
) -> tuple[WatchedSeries, WatchConfig]:
    """Watch one series with a deployment, if there is one."""
    event = (Event(deployed, "new", deploy=True),) if deployed else ()
    margin = 0.2 if with_delay else 0.05
    baseline_end = FIRST + timedelta(world.base - 1)
    config = WatchConfig(FIRST, baseline_end, margin_relative=margin, log=LogSeries(("PageCTR",)), event=event)
    meaning, name = SeriesKind(1, share=world.kind != "money", amount=world.kind == "money"), ("PageCTR", "")
    replacements: dict[str, Any] = {"threshold": threshold, "delay": _delay if with_delay else lambda *_, **__: np.nan}
    with patch.multiple(watched_module, **replacements):
        return watch_series(name, days, meaning, config, DECLARED / MONTH), config


def _delay(shift: float, autocorrelation: float, k: float, level: float, missing: float) -> float:
    return cusum.delay(round(shift, 1), round(autocorrelation, 1), round(k, 1), round(level * 4) / 4, missing=missing)


def alarm_rate(world: World, pages: int, trials: int) -> tuple[float, float]:
    """Return the ratio of false alarms to the declared rate, and the share of series without a watch."""
    rng, num_alarms, num_watched = np.random.default_rng([31, pages]), 0, 0
    for _ in range(trials):
        result, _ = watch_days(series(rng, world, pages, np.ones(world.base + 365)), world)
        num_watched += result.state != "not monitored"
        alarm_states = [False, *(point.alarm for point in result.points)]
        num_alarms += sum(alarm and not previous for previous, alarm in pairwise(alarm_states))
    return num_alarms / max(num_watched, 1) / (DECLARED * 365 / MONTH), 1 - num_watched / trials


def late_rate(world: World, pages: int, trials: int) -> float:
    """Return how often a drop of a fifth is not detected within the stated days, if this number is finite."""
    rng, is_late, drop = np.random.default_rng([32, pages]), list[bool](), world.base + 7
    for _ in range(trials):
        level = np.where(np.arange(drop + 150) < drop, 1.0, 0.8)
        result, _ = watch_days(series(rng, world, pages, level), world, with_delay=True)
        if result.detection_days < 150:
            late_alarms = (
                point.start
                for point in result.points
                if point.alarm and (point.start - FIRST).days + result.days > drop
            )
            first_alarm = next(late_alarms, None)
            is_late.append(
                first_alarm is None or (first_alarm - FIRST).days + result.days - drop > result.detection_days
            )
    return float(np.mean(is_late)) if len(is_late) >= trials / 4 else np.nan


def decisions(world: World, pages: int, trials: int, loss: float) -> dict[str, float]:
    """Return how often a deployment that lost a share of clicks is rolled back or kept, and the last decision."""
    rng, counts, num_decided = np.random.default_rng([33, pages]), np.zeros(3), 0
    start = world.base + 14
    for _ in range(trials):
        level = np.where(np.arange(start + DECISION_DAYS) < start, 1.0, 1.0 - loss)
        result, config = watch_days(series(rng, world, pages, level), world, deployed=FIRST + timedelta(start))
        if not result.points:
            continue
        daily_decisions = list[str]()
        for day in range(start, start + DECISION_DAYS):
            points_so_far = tuple(
                point for point in result.points if (point.start - FIRST).days + result.days <= day + 1
            )
            daily_decisions += [
                rollback.decision for rollback in rollbacks([replace(result, points=points_so_far)], config)
            ]
        if daily_decisions[-1] != "no data":
            num_decided += 1
            counts += (
                "roll back" in daily_decisions,
                "keep" in daily_decisions,
                daily_decisions[-1] == ("roll back" if loss else "keep"),
            )
    rates = counts / num_decided if num_decided >= trials / 4 else np.full(3, np.nan)
    return dict(zip(("rolled back", "kept", "last"), rates.tolist(), strict=True))


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield rates of alarms, delays, and decisions in each world."""
    for pages in SIZES:
        for name, world in WORLDS.items():
            if world.kind == "users" and pages > 200:
                continue
            rate, not_watched = alarm_rate(world, pages, trials)
            rates = {
                "none": not_watched,
                "alarms": rate if not_watched < 0.75 else np.nan,
                "late": late_rate(world, pages, trials),
            }
            at_margin, unchanged, large = (decisions(world, pages, trials, loss) for loss in (0.05, 0.0, 0.2))
            rates |= {"rolled back": at_margin["rolled back"], "kept": at_margin["kept"]}
            rates |= {"rolled back, unchanged": unchanged["rolled back"], "kept, unchanged": unchanged["last"]}
            rates |= {"rolled back, a fifth lost": large["last"]}
            for method, rate in rates.items():
                if not np.isnan(rate):
                    yield CoverageCell(method, name, pages, rate, trials)
