"""Days of a share whose truth is known: weekdays, noise of days that resembles the day before, drops, classes."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import numpy as np

from judged.online.watch.config import LogSeries, Meaning, WatchConfig
from judged.online.watch.watched import Days, watched

FIRST = date(2026, 1, 1)  # a Thursday
MONTH = 30.44


def config(base: int = 28, margin_relative: float = 0.05) -> WatchConfig:
    """Give a baseline of so many days."""
    log = LogSeries(("PageCTR",))
    return WatchConfig(FIRST, FIRST + timedelta(base - 1), log=log, margin_relative=margin_relative)


def days(
    rng: np.random.Generator, number: int, p: Any = 0.3, *, pages: Any = 2000, alike: float = 0.0, over: float = 2.0
) -> Days:
    """Draw days of a share with weekends that have fewer pages and more clicks, and `over` times the binomial noise."""
    noise = rng.standard_normal(number)
    for at in range(1, number):
        noise[at] = alike * noise[at - 1] + np.sqrt(1 - alike**2) * noise[at]
    weekend = (np.arange(number) + 3) % 7 >= 5
    sizes = np.maximum(rng.poisson(pages * np.where(weekend, 0.6, 1.0)), 1)
    chance = np.minimum(p * np.where(weekend, 1.2, 1.0), 0.99)
    chance = chance + noise * np.sqrt(chance * (1 - chance) / sizes * (over**2 - 1))
    values = rng.binomial(sizes, np.clip(chance, 0, 1)) / sizes
    return Days(FIRST, values, np.sqrt(values * (1 - values) / sizes), sizes.astype(float))


def begun(found: Any) -> int:
    """Count the alarms that begin."""
    on = [point.alarm for point in found.points]
    return sum(now and not before for before, now in zip([False, *on], on, strict=False))


def look(made: Days, base: int = 28, rate: float = 0.5, margin_relative: float = 0.05, better: int = 1) -> Any:
    """Watch one series, with so many false alarms a month."""
    return watched(("PageCTR", ""), made, Meaning(better, share=True), config(base, margin_relative), rate / MONTH)
