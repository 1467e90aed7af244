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
    """Draw how many pages users have."""
    return np.minimum(np.ceil(rng.pareto(1.6, size=shape) + 1e-9), 100.0)


def clicked(mean: float, alike: float, activity: float = 0.0) -> Callable[[np.random.Generator, int, int], Sums]:
    """Pages with a click: chances Beta with this mean, times (or divided by) a power of the user's activity."""

    def drawn(rng: np.random.Generator, samples: int, users: int) -> Sums:
        d = pages(rng, (samples, users))
        chance = rng.beta(mean * alike, (1 - mean) * alike, size=d.shape)
        chance *= 1.0 - 0.8 * d**-activity if activity > 0 else d**activity
        return rng.binomial(d.astype(np.int64), chance).astype(float), d

    return drawn


def counts(mean: float, alike: float, activity: float = 0.0) -> Callable[[np.random.Generator, int, int], Sums]:
    """Events by page: Poisson, with rates Gamma of this mean, times a power of the user's activity."""

    def drawn(rng: np.random.Generator, samples: int, users: int) -> Sums:
        d = pages(rng, (samples, users))
        return rng.poisson(rng.gamma(alike, mean / alike, size=d.shape) * d ** (1 + activity)).astype(float), d

    return drawn


def amounts(
    rate: float, *, buyers: float = 1.0, equal: bool = False, per: str = "page", spread: tuple[float, float] = (0.7, 1)
) -> Callable[[np.random.Generator, int, int], Sums]:
    """Money by page or user: on this share of the pages of this share of the users."""

    def drawn(rng: np.random.Generator, samples: int, users: int) -> Sums:
        d = np.full((samples, users), 3.0) if equal else pages(rng, (samples, users))
        owner = np.repeat(np.arange(d.size), d.astype(np.int64).ravel())
        paid = np.exp(rng.normal(0, spread[0], d.size)[owner] + rng.normal(3, spread[1], len(owner)))
        paid = np.minimum(paid, 400.0) * (rng.random(len(owner)) < rate) * (rng.random(d.size) < buyers)[owner]
        n = np.bincount(owner, paid, minlength=d.size).reshape(d.shape)
        return n, np.ones_like(d) if per == "user" else d

    return drawn


Kind: TypeAlias = Literal["share", "count", "amount"]
WORLDS: dict[str, tuple[Kind, Callable[[np.random.Generator, int, int], Sums]]] = {
    "share of 30 %": ("share", clicked(0.3, 2.0)),
    "share of 90 %": ("share", clicked(0.9, 2.0)),
    "share of 3 %": ("share", clicked(0.03, 3.0)),
    "share, active users less": ("share", clicked(0.3, 2.0, -0.5)),
    "share, active users more": ("share", clicked(0.3, 2.0, 0.5)),
    "1 event a page": ("count", counts(1.0, 1.0)),
    "1 event in 20 pages": ("count", counts(0.05, 0.5)),
    "events, active users more": ("count", counts(0.5, 1.0, 0.25)),
    "money on 15 % of pages": ("amount", amounts(0.15)),
    "money on 15 %, users alike": ("amount", amounts(0.15, equal=True)),
    "money on 3 % of pages": ("amount", amounts(0.03)),
    "money of 30 % of users": ("amount", amounts(0.3, buyers=0.3)),
    "money by user": ("amount", amounts(0.15, per="user")),
    "seconds by page": ("amount", amounts(1.0, spread=(0.5, 1.2))),
}
QUANTILES = (0.5, 0.9, 0.95)


def intervals(n: np.ndarray, d: np.ndarray, kind: Kind) -> tuple[np.ndarray, np.ndarray]:
    """Give low and high of each sample."""
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


def of_ratio(world: str, users: int, trials: int) -> dict[str, float]:
    """Give how often the interval of a ratio holds, how often there is none, and its width."""
    kind, drawn = WORLDS[world]
    low, high = intervals(*drawn(np.random.default_rng(users), trials, users), kind)
    return _summary(low, high, _truth(world))


@cache
def _truth(world: str) -> float:
    n, d = WORLDS[world][1](np.random.default_rng(99), 1, _OF_TRUTH)
    return float(n.sum() / d.sum())


def of_quantile(q: float, users: int, trials: int) -> dict[str, float]:
    """Give the same of a quantile of what pages took."""
    rng = np.random.default_rng(users)
    truth = float(np.quantile(_times(np.random.default_rng(99), _OF_TRUTH // 3)[1], q))
    limits = np.array([_quantile_limits(*_times(rng, users), q, users) for _ in range(trials)])
    return _summary(*limits.T, truth)


def _times(rng: np.random.Generator, users: int) -> tuple[np.ndarray, np.ndarray]:
    owner = np.repeat(np.arange(users), pages(rng, (users,)).astype(np.int64))
    return owner, np.exp(rng.normal(0, 0.5, users)[owner] + rng.normal(size=len(owner)))


def _quantile_limits(owner: np.ndarray, times: np.ndarray, q: float, users: int) -> tuple[float, float]:
    ordered = np.sort(times)

    def at(share: float) -> float:
        return float(ordered[min(max(int(np.ceil(share * len(ordered) * (1 - 1e-12))) - 1, 0), len(ordered) - 1)])

    n, d = np.bincount(owner, times <= at(q), minlength=users), np.bincount(owner, minlength=users).astype(float)
    error = ratio_error(users, n.sum(), d.sum(), (n * n).sum(), (d * d).sum(), (n * d).sum())
    low, high = woodruff(q, error, users, 0.95, effective=d.sum() ** 2 / (d * d).sum())
    return (np.nan, np.nan) if np.isnan(low) else (at(low), at(high))


def _summary(low: np.ndarray, high: np.ndarray, truth: float) -> dict[str, float]:
    given = ~np.isnan(low)
    held = (low[given] <= truth) & (truth <= high[given])
    width = float(np.median((high - low)[given])) / truth if given.any() else np.nan
    return {
        "held": float(held.mean()) if given.mean() >= 0.01 else np.nan,
        "none": float(1 - given.mean()),
        "width": width,
    }


def measure(trials: int) -> Iterator[CoverageCell]:
    """Measure ratios world by world, and quantiles."""
    for users in SIZES:
        for world in WORLDS:
            yield from _cells(world, users, of_ratio(world, users, trials), trials)
        for q in QUANTILES:
            yield from _cells(f"seconds, quantile {q}", users, of_quantile(q, users, trials), trials)


def _cells(situation: str, users: int, rates: dict[str, float], trials: int) -> Iterator[CoverageCell]:
    return (CoverageCell(name, situation, users, rate, trials) for name, rate in rates.items() if not np.isnan(rate))
