"""Simulated days of a share: weekdays, autocorrelated noise, drops."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import numpy as np

from judged.online.watch.config import LogSeries, SeriesKind, WatchConfig
from judged.online.watch.watched import DailySeries, watch_series

FIRST = date(2026, 1, 1)  # a Thursday
MONTH = 30.44


def config(baseline_days: int = 28, margin_relative: float = 0.05) -> WatchConfig:
    """Return a configuration with a baseline of this many days."""
    log = LogSeries(("PageCTR",))
    return WatchConfig(FIRST, FIRST + timedelta(baseline_days - 1), log=log, margin_relative=margin_relative)


def days(
    rng: np.random.Generator,
    number: int,
    p: Any = 0.3,
    *,
    pages: Any = 2000,
    autocorrelation: float = 0.0,
    overdispersion: float = 2.0,
) -> DailySeries:
    """Simulate days of a share: weekends have fewer pages and more clicks.

    `overdispersion`: standard deviation relative to that of the binomial distribution.
    """
    noise = rng.standard_normal(number)
    for day in range(1, number):
        noise[day] = autocorrelation * noise[day - 1] + np.sqrt(1 - autocorrelation**2) * noise[day]
    weekend = (np.arange(number) + 3) % 7 >= 5
    sizes = np.maximum(rng.poisson(pages * np.where(weekend, 0.6, 1.0)), 1)
    probability = np.minimum(p * np.where(weekend, 1.2, 1.0), 0.99)
    probability = probability + noise * np.sqrt(probability * (1 - probability) / sizes * (overdispersion**2 - 1))
    values = rng.binomial(sizes, np.clip(probability, 0, 1)) / sizes
    return DailySeries(FIRST, values, np.sqrt(values * (1 - values) / sizes), sizes.astype(float))


def begun(series: Any) -> int:
    """Count the starts of alarms."""
    alarms = [point.alarm for point in series.points]
    return sum(is_alarm and not was_alarm for was_alarm, is_alarm in zip([False, *alarms], alarms, strict=False))


def look(
    series: DailySeries, baseline_days: int = 28, rate: float = 0.5, margin_relative: float = 0.05, better: int = 1
) -> Any:
    """Watch one series, with this rate of false alarms per month."""
    return watch_series(
        ("PageCTR", ""), series, SeriesKind(better, share=True), config(baseline_days, margin_relative), rate / MONTH
    )
