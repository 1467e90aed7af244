"""Coverage of 95% intervals over n users.

Users have 1 to 100 pages with a heavy tail (Pareto 1.6), so that 20 users have an effective number of 11. *None*: share
of logs without an interval. *Width*: median, relative to the true value. Purchases are log-normal (sigma 1 within and
0.7 between users), at most 400. Times are log-normal (1.2 and 0.5, for quantiles 1 and 0.5).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from calibration import CoverageCell
from judged.stats.ratio import ratio_error, ratio_errors, ratio_intervals, woodruff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Sums: TypeAlias = tuple[np.ndarray, np.ndarray]  # (samples, users): numerators and denominators
SIZES = (5, 20, 50, 200)
_OF_TRUTH = 1_000_000


def pages(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Sample the number of pages of each user."""
    return np.minimum(np.ceil(rng.pareto(1.6, size=shape) + 1e-9), 100.0)


def clicked(
    mean: float, concentration: float, activity: float = 0.0
) -> Callable[[np.random.Generator, int, int], Sums]:
    """Return a sampler of pages with a click: rates from Beta, times (or divided by) a power of the user's activity."""

    def draw(rng: np.random.Generator, samples: int, users: int) -> Sums:
        d = pages(rng, (samples, users))
        click_probability = rng.beta(mean * concentration, (1 - mean) * concentration, size=d.shape)
        click_probability *= 1.0 - 0.8 * d**-activity if activity > 0 else d**activity
        return rng.binomial(d.astype(np.int64), click_probability).astype(float), d

    return draw


def counts(mean: float, concentration: float, activity: float = 0.0) -> Callable[[np.random.Generator, int, int], Sums]:
    """Return a sampler of events per page: Poisson, with rates from Gamma, times a power of the user's activity."""

    def draw(rng: np.random.Generator, samples: int, users: int) -> Sums:
        d = pages(rng, (samples, users))
        return rng.poisson(rng.gamma(concentration, mean / concentration, size=d.shape) * d ** (1 + activity)).astype(
            float
        ), d

    return draw


def amounts(
    rate: float, *, buyers: float = 1.0, equal: bool = False, per: str = "page", spread: tuple[float, float] = (0.7, 1)
) -> Callable[[np.random.Generator, int, int], Sums]:
    """Return a sampler of money per page or user: a share `rate` of the pages of a share `buyers` of the users."""

    def draw(rng: np.random.Generator, samples: int, users: int) -> Sums:
        d = np.full((samples, users), 3.0) if equal else pages(rng, (samples, users))
        user = np.repeat(np.arange(d.size), d.astype(np.int64).ravel())
        amounts = np.exp(rng.normal(0, spread[0], d.size)[user] + rng.normal(3, spread[1], len(user)))
        amounts = np.minimum(amounts, 400.0) * (rng.random(len(user)) < rate) * (rng.random(d.size) < buyers)[user]
        n = np.bincount(user, amounts, minlength=d.size).reshape(d.shape)
        return n, np.ones_like(d) if per == "user" else d

    return draw


Kind: TypeAlias = Literal["share", "count", "amount"]
WORLDS: dict[str, tuple[Kind, Callable[[np.random.Generator, int, int], Sums]]] = {
    "share of 30%": ("share", clicked(0.3, 2.0)),
    "share of 90%": ("share", clicked(0.9, 2.0)),
    "share of 3%": ("share", clicked(0.03, 3.0)),
    "share, active users less": ("share", clicked(0.3, 2.0, -0.5)),
    "share, active users more": ("share", clicked(0.3, 2.0, 0.5)),
    "1 event a page": ("count", counts(1.0, 1.0)),
    "1 event in 20 pages": ("count", counts(0.05, 0.5)),
    "events, active users more": ("count", counts(0.5, 1.0, 0.25)),
    "money on 15% of pages": ("amount", amounts(0.15)),
    "money on 15%, equal users": ("amount", amounts(0.15, equal=True)),
    "money on 3% of pages": ("amount", amounts(0.03)),
    "money of 30% of users": ("amount", amounts(0.3, buyers=0.3)),
    "money by user": ("amount", amounts(0.15, per="user")),
    "seconds by page": ("amount", amounts(1.0, spread=(0.5, 1.2))),
}
QUANTILES = (0.5, 0.9, 0.95)


def intervals(n: np.ndarray, d: np.ndarray, kind: Kind) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper limits of each sample."""
    users = np.full(len(n), float(n.shape[1]))
    sums = (users, n.sum(1), d.sum(1), (n * n).sum(1), (d * d).sum(1), (n * d).sum(1))
    return ratio_intervals(
        sums[1] / sums[2],
        ratio_errors(*sums),
        users,
        sums[2] ** 2 / sums[4],
        0.95,
        share=np.array(kind == "share"),
        counted=np.array(kind == "count"),
    )


def ratio_coverage(world: str, users: int, trials: int) -> dict[str, float]:
    """Return coverage of intervals of a ratio, the share of samples without an interval, and the width."""
    kind, draw = WORLDS[world]
    low, high = intervals(*draw(np.random.default_rng(users), trials, users), kind)
    return _summary(low, high, _truth(world))


@cache
def _truth(world: str) -> float:
    n, d = WORLDS[world][1](np.random.default_rng(99), 1, _OF_TRUTH)
    return float(n.sum() / d.sum())


def quantile_coverage(q: float, users: int, trials: int) -> dict[str, float]:
    """Return coverage, share without an interval, and width for a quantile of durations."""
    rng = np.random.default_rng(users)
    truth = float(np.quantile(_times(np.random.default_rng(99), _OF_TRUTH // 3)[1], q))
    limits = np.array([_quantile_limits(*_times(rng, users), q, users) for _ in range(trials)])
    return _summary(*limits.T, truth)


def _times(rng: np.random.Generator, users: int) -> tuple[np.ndarray, np.ndarray]:
    user = np.repeat(np.arange(users), pages(rng, (users,)).astype(np.int64))
    return user, np.exp(rng.normal(0, 0.5, users)[user] + rng.normal(size=len(user)))


def _quantile_limits(user: np.ndarray, times: np.ndarray, q: float, users: int) -> tuple[float, float]:
    ordered = np.sort(times)

    def quantile(share: float) -> float:
        return float(ordered[min(max(int(np.ceil(share * len(ordered) * (1 - 1e-12))) - 1, 0), len(ordered) - 1)])

    n, d = np.bincount(user, times <= quantile(q), minlength=users), np.bincount(user, minlength=users).astype(float)
    error = ratio_error(users, n.sum(), d.sum(), (n * n).sum(), (d * d).sum(), (n * d).sum())
    low, high = woodruff(q, error, users, 0.95, effective=d.sum() ** 2 / (d * d).sum())
    return (np.nan, np.nan) if np.isnan(low) else (quantile(low), quantile(high))


def _summary(low: np.ndarray, high: np.ndarray, truth: float) -> dict[str, float]:
    has_interval = ~np.isnan(low)
    is_covered = (low[has_interval] <= truth) & (truth <= high[has_interval])
    width = float(np.median((high - low)[has_interval])) / truth if has_interval.any() else np.nan
    return {
        "coverage": float(is_covered.mean()) if has_interval.mean() >= 0.01 else np.nan,
        "none": float(1 - has_interval.mean()),
        "width": width,
    }


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield coverage of ratios in each world, and of quantiles."""
    for users in SIZES:
        for world in WORLDS:
            yield from _cells(world, users, ratio_coverage(world, users, trials), trials)
        for q in QUANTILES:
            yield from _cells(f"seconds, quantile {q}", users, quantile_coverage(q, users, trials), trials)


def _cells(situation: str, users: int, rates: dict[str, float], trials: int) -> Iterator[CoverageCell]:
    return (CoverageCell(name, situation, users, rate, trials) for name, rate in rates.items() if not np.isnan(rate))
