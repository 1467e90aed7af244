"""How often `judged watch` is wrong about series with a known truth; n is the number of pages a day.

*Alarms* is the number of false alarms in the year after a baseline of 84 days (or 28), as a share of the declared 0.5 a
month: at most 100 % is right, up to some 5 points of chance. *Late*: share of drops of a share of 30 % by a fifth that
are not detected within the days that the watch states; 20 % is right. *Rolled back* is how often a deployment that lost
exactly the margin, 5 %, is ever called worse on any of the 14 days after it, and *kept* how often it is called not
worse: 5 % at most each. *Rolled back, unchanged* is the first where nothing is lost, and *kept* there, as *rolled back*
of a loss of a fifth, is power on day 14. *None*: share of series that are not watched; the others count.

Days have twice the noise of their pages, and fewer pages at weekends. *Heavy tails*: the noise of days is Student's t
with 3 degrees of freedom; *users*: pages are of users with 1 to 100 of them (Pareto 1.6), who like clicking more or
less, and the errors of days are over users; *money* is log-normal (sigma 1.5) of one page in ten. Points
have as many days as bring ten events, or ten equal sums; deployments of such series have no verdict here.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

import numpy as np

from calibration import Measured
from judged.online.statistics import control as cusum
from judged.online.watch import watched as watched_module
from judged.online.watch.config import Event, LogSeries, SeriesKind, WatchConfig
from judged.online.watch.watched import DailySeries, rollbacks, watch_series

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.online.watch.watched import WatchedSeries

SIZES = (20, 200, 2000)
FIRST, MONTH, DECLARED, LOOKS = date(2026, 1, 1), 30.44, 0.5, 14


class World(NamedTuple):
    """How days vary."""

    kind: str = "share"  # or users, money
    alike: float = 0.0
    tails: float = np.inf  # degrees of freedom of the noise of days
    missing: float = 0.0
    base: int = 84


WORLDS = {
    "as the watch assumes": World(),
    "baseline of 28 days": World(base=28),
    "days like the one before (0.4)": World(alike=0.4),
    "30 % of days missing": World(missing=0.3),
    "heavy tails": World(tails=3.0),
    "users": World("users"),
    "money": World("money"),
}


def series(rng: np.random.Generator, world: World, pages: int, level: np.ndarray) -> DailySeries:
    """Draw days with these levels, as shares of the usual one."""
    number, weekend = len(level), (np.arange(len(level)) + 3) % 7 >= 5
    drawn = rng.standard_normal(number) if np.isinf(world.tails) else rng.standard_t(world.tails, number) / np.sqrt(3)
    for day in range(1, number):
        drawn[day] = world.alike * drawn[day - 1] + np.sqrt(1 - world.alike**2) * drawn[day]
    sizes = np.maximum(rng.poisson(pages * np.where(weekend, 0.6, 1.0)), 2)
    if world.kind == "share":
        chance = 0.3 * level
        chance = chance + drawn * np.sqrt(chance * (1 - chance) / sizes * 3.0)
        values = rng.binomial(sizes, np.clip(chance, 0, 1)) / sizes
        errors = np.sqrt(values * (1 - values) / sizes)
    elif world.kind == "money":
        bought = rng.binomial(sizes, 0.1)
        day = np.repeat(np.arange(number), bought)
        paid = np.exp(rng.normal(3.0, 1.5, len(day))) * level[day]
        values, squares = (np.bincount(day, part, minlength=number) / sizes for part in (paid, paid**2))
        errors = np.sqrt((squares - values**2) / sizes)
    else:
        day = np.repeat(np.arange(number), np.maximum(sizes // 3, 2))
        d = np.minimum(np.ceil(rng.pareto(1.6, len(day)) + 1e-9), 100.0)
        chance = np.minimum(rng.beta(0.6, 1.4, len(day)) * level[day], 1)
        n = rng.binomial(d.astype(np.int64), chance).astype(float)
        sums = [np.bincount(day, part, minlength=number) for part in (n, d, n * n, d * d, n * d)]
        values, sizes = sums[0] / sums[1], sums[1]
        left = sums[2] - 2 * values * sums[4] + values**2 * sums[3]
        errors = np.sqrt(np.maximum(left, 0)) / sizes
    gone = rng.random(number) < world.missing
    parts = (np.where(gone, np.nan, part) for part in (values, errors, sizes.astype(float)))
    return DailySeries(FIRST, *parts)


@cache
def _grid(days: int, rate: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    alike, k = np.linspace(0.0, 0.8, 9), np.array([0.25, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5])
    made = [[cusum.threshold(days, float(a), rate, float(b)) for b in k] for a in alike]
    return alike, k, np.log(made)


def threshold(days: int, alike: float, rate: float, k: float) -> float:
    """Interpolate thresholds, which take a tenth of a second each to simulate, between those of a grid."""
    known, sizes, logs = _grid(max(7 * round(days / 7), 7) if days > 14 else days, rate)
    return float(np.exp(np.interp(alike, known, [np.interp(k, sizes, row) for row in logs])))


def look(
    days: DailySeries, world: World, *, stated: bool = False, deployed: date | None = None
) -> tuple[WatchedSeries, WatchConfig]:
    """Watch one series."""
    event = (Event(deployed, "new", deploy=True),) if deployed else ()
    margin = 0.2 if stated else 0.05
    last = FIRST + timedelta(world.base - 1)
    config = WatchConfig(FIRST, last, margin_relative=margin, log=LogSeries(("PageCTR",)), event=event)
    meaning, name = SeriesKind(1, share=world.kind != "money", amount=world.kind == "money"), ("PageCTR", "")
    parts: dict[str, Any] = {"threshold": threshold, "delay": _delay if stated else lambda *_, **__: np.nan}
    with patch.multiple(watched_module, **parts):
        return watch_series(name, days, meaning, config, DECLARED / MONTH), config


def _delay(shift: float, alike: float, k: float, level: float, missing: float) -> float:
    return cusum.delay(round(shift, 1), round(alike, 1), round(k, 1), round(level * 4) / 4, missing=missing)


def alarms(world: World, pages: int, trials: int) -> tuple[float, float]:
    """Return false alarms as a share of the declared ones, and the share of series that are not watched."""
    rng, begun, known = np.random.default_rng([31, pages]), 0, 0
    for _ in range(trials):
        found, _ = look(series(rng, world, pages, np.ones(world.base + 365)), world)
        known += found.state != "not watched"
        on = [False, *(point.alarm for point in found.points)]
        begun += sum(now and not before for before, now in pairwise(on))
    return begun / max(known, 1) / (DECLARED * 365 / MONTH), 1 - known / trials


def late(world: World, pages: int, trials: int) -> float:
    """Return how often a drop of a fifth is not detected within the stated days, of those with a finite number."""
    rng, made, drop = np.random.default_rng([32, pages]), list[bool](), world.base + 7
    for _ in range(trials):
        level = np.where(np.arange(drop + 150) < drop, 1.0, 0.8)
        found, _ = look(series(rng, world, pages, level), world, stated=True)
        if found.within < 150:
            after = (p.start for p in found.points if p.alarm and (p.start - FIRST).days + found.days > drop)
            first = next(after, None)
            made.append(first is None or (first - FIRST).days + found.days - drop > found.within)
    return float(np.mean(made)) if len(made) >= trials / 4 else np.nan


def decisions(world: World, pages: int, trials: int, lost: float) -> dict[str, float]:
    """Return how often a deployment that lost so much is rolled back, ever or on the last day, or kept."""
    rng, counts, known = np.random.default_rng([33, pages]), np.zeros(3), 0
    start = world.base + 14
    for _ in range(trials):
        level = np.where(np.arange(start + LOOKS) < start, 1.0, 1.0 - lost)
        one, config = look(series(rng, world, pages, level), world, deployed=FIRST + timedelta(start))
        if not one.points:
            continue
        each = list[str]()
        for day in range(start, start + LOOKS):
            seen = tuple(point for point in one.points if (point.start - FIRST).days + one.days <= day + 1)
            each += [made.decision for made in rollbacks([replace(one, points=seen)], config)]
        if each[-1] != "nothing is known":
            known += 1
            counts += "roll back" in each, "keep" in each, each[-1] == ("roll back" if lost else "keep")
    rates = counts / known if known >= trials / 4 else np.full(3, np.nan)
    return dict(zip(("rolled back", "kept", "last"), rates.tolist(), strict=True))


def measure(trials: int) -> Iterator[Measured]:
    """Measure alarms, delays and verdicts in each world."""
    for pages in SIZES:
        for name, world in WORLDS.items():
            if world.kind == "users" and pages > 200:
                continue
            rate, none = alarms(world, pages, trials)
            rates = {"none": none, "alarms": rate if none < 0.75 else np.nan, "late": late(world, pages, trials)}
            at_margin, unchanged, large = (decisions(world, pages, trials, lost) for lost in (0.05, 0.0, 0.2))
            rates |= {"rolled back": at_margin["rolled back"], "kept": at_margin["kept"]}
            rates |= {"rolled back, unchanged": unchanged["rolled back"], "kept, unchanged": unchanged["last"]}
            rates |= {"rolled back, a fifth lost": large["last"]}
            for method, rate in rates.items():
                if not np.isnan(rate):
                    yield Measured(method, name, pages, rate, trials)
