"""Share of n days, or of series of n days, with a false finding.

*Days outside*: days beyond the control limits; 0.27% is nominal for three sigmas. *Series with a signal*: series with a
day outside or a run, among the days from which the limits are computed, and among as many *later* days. *Change*:
series with a change point at alpha = 0.01; with a shift of that many sigmas in the middle, it is the power. Days have
about 1,000 pages.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from calibration import CoverageCell
from judged.online.statistics.changes import change_points
from judged.online.statistics.control import control_limits, weekday_effects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Series: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]  # values, errors, pages
SIZES = (14, 30, 60, 120)


def _rare(events: float, *, weekend: float = 1.0, uneven: float = 0.0) -> Callable[[np.random.Generator, int], Series]:
    def draw(rng: np.random.Generator, days: int) -> Series:
        pages = np.round(rng.integers(800, 1200, days) * np.where(np.arange(days) % 7 < 5, 1.0, weekend))
        rates = rng.gamma(1 / uneven, uneven, days) if uneven else np.ones(days)
        share = rng.binomial(pages.astype(np.int64), np.minimum(events / 1000 * rates, 1.0)) / pages
        return share, np.sqrt(share * (1 - share) / (pages - 1)), pages

    return draw


def _normal(autocorrelation: float = 0.0, weekend: float = 0.0) -> Callable[[np.random.Generator, int], Series]:
    def draw(rng: np.random.Generator, days: int) -> Series:
        pages = rng.integers(800, 1200, days).astype(float)
        errors = np.sqrt(0.21 / pages)
        noise = autoregressive(rng, days, autocorrelation) + weekend * (np.arange(days) % 7 >= 5)
        return 0.3 + errors * noise, errors, pages

    return draw


def _money(buyers: int) -> Callable[[np.random.Generator, int], Series]:
    def draw(rng: np.random.Generator, days: int) -> Series:
        purchases = [np.exp(rng.normal(3, 1, num_changed)) for num_changed in rng.poisson(buyers, days)]
        errors = np.array([math.sqrt((amounts**2).sum()) for amounts in purchases])
        return np.array([amounts.sum() for amounts in purchases]) / 1000, errors / 1000, np.full(days, 1000.0)

    return draw


def autoregressive(rng: np.random.Generator, days: int, autocorrelation: float) -> np.ndarray:
    """Sample a normal series of variance 1 with this autocorrelation."""
    values = rng.normal(size=days)
    for day in range(1, days):
        values[day] = autocorrelation * values[day - 1] + math.sqrt(1 - autocorrelation**2) * values[day]
    return values


WORLDS: dict[str, Callable[[np.random.Generator, int], Series]] = {
    "1 event a day": _rare(1),
    "3 events a day": _rare(3),
    "5 events a day": _rare(5),
    "30% of pages": _rare(300),
    "3 events, half at weekends": _rare(3, weekend=0.5),
    "5 events, days differ": _rare(5, uneven=0.2),
    "weekends 3 sigmas lower": _normal(weekend=-3.0),
    "autocorrelated 0.3": _normal(0.3),
    "autocorrelated 0.5": _normal(0.5),
    "money of 5 a day": _money(5),
    "money of 50 a day": _money(50),
}
WEAK = {"5 events, days differ", "autocorrelated 0.5", "money of 5 a day", "money of 50 a day"}
SHIFTS = (1.0, 2.0, 3.0)


def signals(world: str, days: int, trials: int, *, later: bool = False) -> dict[str, float]:
    """Return the share of days outside the limits, and of series with any signal."""
    rng = np.random.default_rng(days)
    num_outside = num_with_signal = 0
    for _ in range(trials):
        values, errors, pages = WORLDS[world](rng, 2 * days if later else days)
        base = np.arange(len(values)) < days
        usual = weekday_effects(values, pages, np.arange(len(values)) % 7)
        bounds = (0.0, math.inf if world.startswith("money") else 1.0)
        all_signals = control_limits(values, errors, weights=pages, base=base, bounds=bounds, seasonal=usual).signals
        counted_signals = [signal for signal in all_signals if (signal.point >= days) == later]
        num_outside += sum(signal.rule == "nelson-1" for signal in counted_signals)
        num_with_signal += bool(counted_signals)
    return {"days outside": num_outside / trials / days, "series with a signal": num_with_signal / trials}


def changed(world: str, days: int, trials: int, *, shift: float = 0.0) -> float:
    """Return the share of series with a change point, or with one near a shift of `shift` sigmas."""
    rng = np.random.default_rng(days)
    num_changed = 0
    for trial in range(trials):
        values, _, pages = WORLDS[world](rng, days)
        values[days // 2 :] += shift * math.sqrt(0.21 / 1000)
        usual = weekday_effects(values, pages, np.arange(days) % 7)
        points = change_points(values - usual, pages, resamples=199, seed=trial)
        num_changed += any(abs(point.point - days // 2) <= 2 for point in points) if shift else bool(points)
    return num_changed / trials


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield rates of limits and change points in each world, and the power of change points."""
    for days in SIZES:
        for world in WORLDS:
            for later in (False, True):
                for method, rate in signals(world, days, trials, later=later).items():
                    yield CoverageCell(f"{method}, later" if later else method, world, days, rate, trials)
            yield CoverageCell("change", world, days, changed(world, days, trials), trials)
        for shift in SHIFTS:
            for world in ("30% of pages", "weekends 3 sigmas lower", "autocorrelated 0.5"):
                rate = changed(world, days, trials // 4, shift=shift)
                yield CoverageCell("change", f"{world}, shift of {shift:g}", days, rate, trials)
