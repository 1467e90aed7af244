"""Coverage of 95% intervals of a difference within a log, or of a survival curve, with n users on each side.

*Periods*: two periods with six of ten users in each. *Slices*: a slice of n users and one of 3n others. *Twice as
much*: the second ratio is about twice the first; otherwise they are equal. *Arms*: an A/B test on one day, *winsorized*
money and *quantiles* of seconds. *Survival*: visits of up to 30 s, observed for 5 to 60 s: share longer than 10 s, mean
up to 30 s, median, and 0.9 quantile. *None*: share of logs without an interval, which the coverage excludes.

Users have 1 to 100 pages (Pareto 1.6), different click rates, and log-normal purchases (sigma 1 and 0.7). *Active users
more*: the click rate increases with the number of pages.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple
from unittest.mock import patch

import numpy as np

from calibration import CoverageCell
from calibration.users import pages
from judged.online.ab_tests.differences import Inference
from judged.online.estimation.survival import CurveStatistic
from judged.online.statistics.survival import kaplan_meier
from judged.online.statistics.users import Arm, adjusted_difference
from judged.stats import ratio as differences
from judged.stats.ratio import RatioSums, correlation, ratio_difference, ratio_error, student_quantiles, woodruff

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES = (10, 20, 50, 200)
_OF_TRUTH = 400_000
READINGS = {
    "share": CurveStatistic("share", 10_000), "mean": CurveStatistic("mean", 30_000),
    "median": CurveStatistic("quantile", 0.5),
    "quantile 0.9": CurveStatistic("quantile", 0.9),
}  # fmt: skip


class World(NamedTuple):
    """What is counted, and how."""

    kind: str  # share, count, amount
    mean: float
    active: bool = False
    like: float = 2.0  # how alike users are: the sum of the parameters of a beta distribution


WORLDS = {
    "share of 30 %": World("share", 0.3),
    "share of 3 %": World("share", 0.03, like=3.0),
    "share, active users more": World("share", 0.3, active=True),
    "1 event in 2 pages": World("count", 0.5),
    "money on 15 % of pages": World("amount", 0.15),
}


def users(rng: np.random.Generator, world: World, size: int, sides: int, times: float) -> list[list[np.ndarray]]:
    """Draw numerators and denominators of users on each side; the last side has `times` as many events."""
    beta = world.like * world.mean, world.like * (1 - world.mean)
    liking = rng.gamma(2.0, 0.5, size) if world.kind == "count" else rng.beta(*beta, size)
    purse, made = rng.normal(3.0, 0.7, size), list[list[np.ndarray]]()
    for side in range(sides):
        d = pages(rng, (size,)) * (rng.random(size) < (0.6 if sides > 1 else 1.0))
        factor = times if side == sides - 1 else 1.0
        if world.kind == "count":
            n = rng.poisson(world.mean * factor * liking * d).astype(float)
        else:
            chance = liking * (1.0 - 0.8 * np.maximum(d, 1.0) ** -0.5 if world.active else 1.0)
            chance = 1.0 - (1.0 - chance) ** factor
            n = rng.binomial(d.astype(np.int64), chance).astype(float)
        if world.kind == "amount":
            owner = np.repeat(np.arange(size), n.astype(np.int64))
            n = np.bincount(owner, np.minimum(np.exp(rng.normal(0, 1, len(owner)) + purse[owner]), 400.0), size)
        made.append([n, d])
    return made


def sums(n: np.ndarray, d: np.ndarray) -> RatioSums:
    """Add up one side."""
    units = int(((n != 0) | (d != 0)).sum())
    return RatioSums(units, *map(float, (n.sum(), d.sum(), n @ n, d @ d, n @ d)))


@cache
def _truth(name: str, times: float) -> float:
    (n, d), (m, e) = users(np.random.default_rng(98), WORLDS[name], _OF_TRUTH, 2, times)
    return float(m.sum() / e.sum() - n.sum() / d.sum()) if times != 1.0 else 0.0


def compared(name: str, size: int, trials: int, *, same: bool, times: float) -> tuple[float, float]:
    """Return coverage of the difference of two periods, or two slices, and how often there is no interval."""
    rng, world, held, truth = np.random.default_rng([41, size]), WORLDS[name], list[bool](), _truth(name, times)
    for _ in range(trials):
        if same:
            (n, d), (m, e) = users(rng, world, round(size / 0.6), 2, times)
            one, two = sums(n, d), sums(m, e)
            rho = correlation(one, two, *map(float, (n @ m, n @ e, d @ m, d @ e))) if one.d and two.d else 0.0
        else:
            one, two = (sums(*users(rng, world, k, 1, f)[0]) for k, f in ((size, 1.0), (3 * size, times)))
            rho = 0.0
        kinds = {"share": world.kind == "share", "counted": world.kind == "count"}
        with patch.object(differences, "_STEPS", 0):  # the p-value is the level at which the interval ends at 0
            made = ratio_difference(one, two, 0.95, rho=rho, **kinds)
        if not np.isnan(made.low):
            held.append(made.low <= truth <= made.high)
    return _rates(held, trials)


def arms(size: int, trials: int, *, what: str) -> tuple[float, float]:
    """Return coverage of 0 between two equal arms, and how often there is no interval."""
    rng, held, looks = np.random.default_rng([42, size]), list[bool](), Inference(any_day=False)
    for _ in range(trials):
        if what == "winsorized":
            both = [users(rng, WORLDS["money on 15 % of pages"], size, 1, 1.0)[0] for _ in range(2)]
            spent = np.concatenate([n for n, _ in both])
            cut = np.quantile(spent[spent > 0], 0.99, method="inverted_cdf") if spent.any() else 0.0
            first, second = (Arm(sums(np.minimum(n, cut), d)) for n, d in both)
            made = adjusted_difference(first, second)
            value, error = made.value, made.error
            effective = [arm.after.d**2 / arm.after.dd for arm in (first, second)]
        else:
            both = [_quantile(rng, size, float(what.removeprefix("quantile "))) for _ in range(2)]
            value, error = both[1][0] - both[0][0], float(np.hypot(both[0][1], both[1][1]))
            effective = [side[2] for side in both]
        critical = looks.critical(2 * size, sum(effective) - 2.0)
        if error > 0 and np.isfinite(critical):
            held.append(abs(value) <= critical * error)
    return _rates(held, trials)


def _quantile(rng: np.random.Generator, size: int, q: float) -> tuple[float, float, float]:
    """Return a quantile, its error (NaN: no interval), and the effective number of users, as for logs."""
    d = pages(rng, (size,))
    owner = np.repeat(np.arange(size), d.astype(np.int64))
    times = np.exp(rng.normal(0, 0.5, size)[owner] + rng.normal(size=len(owner)))
    ordered = np.sort(times)

    def at(share: float) -> float:
        return float(ordered[min(max(int(np.ceil(share * len(ordered) - 1e-9)) - 1, 0), len(ordered) - 1)])

    n = np.bincount(owner, times <= at(q), minlength=size).astype(np.float64)
    of_share = ratio_error(size, *map(float, (n.sum(), d.sum(), n @ n, d @ d, n @ d)))
    effective = float(d.sum() ** 2 / (d @ d))
    low, high = woodruff(q, of_share, size, 0.95, effective=effective)
    if np.isnan(low):
        return at(q), np.nan, effective
    return at(q), (at(high) - at(low)) / 2 / float(student_quantiles(0.975, np.array(effective - 1))), effective


def visits(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw milliseconds of visits, whether their end was seen, and their users."""
    owner = np.repeat(np.arange(size), pages(rng, (size,)).astype(np.int64))
    lasted = np.exp(rng.normal(2.0, 0.5, size)[owner] + rng.normal(size=len(owner)))
    watched = rng.uniform(5.0, 60.0, len(owner))
    return np.ceil(1000 * np.minimum(lasted, watched)).astype(np.int64), lasted <= watched, owner


@cache
def _survival_truth() -> dict[str, float]:
    rng = np.random.default_rng(99)
    lasted = 1000 * np.exp(rng.normal(2.0, np.sqrt(1.25), 10 * _OF_TRUTH))
    return {
        "share": float((lasted > 10_000).mean()), "mean": float(np.minimum(lasted, 30_000).mean()),
        "median": float(np.median(lasted)), "quantile 0.9": float(np.quantile(lasted, 0.9)),
    }  # fmt: skip


def survival(size: int, trials: int) -> dict[str, tuple[float, float]]:
    """Return coverage of what is read off a survival curve, and how often there is no interval."""
    rng, held = np.random.default_rng([43, size]), {name: list[bool]() for name in READINGS}
    for _ in range(trials):
        times, ended, owner = visits(rng, size)
        distinct, place = np.unique(times, return_inverse=True)
        ends = np.bincount(place, ended).astype(np.int64)
        curve = kaplan_meier(distinct, ends, np.bincount(place).astype(np.int64) - ends)
        d = np.bincount(owner).astype(float)
        for name, reading in READINGS.items():
            of_ended, of_watched = reading.influence(curve)
            by_user = np.bincount(owner, np.where(ended, of_ended[place], of_watched[place]))
            _, _, low, high, _ = reading.estimate(
                curve, float(by_user @ by_user), (size, float(d.sum() ** 2 / (d @ d))), 0.95
            )
            if not np.isnan(low):
                held[name].append(low <= _survival_truth()[name] <= high)
    return {name: _rates(found, trials) for name, found in held.items()}


def _rates(held: list[bool], trials: int) -> tuple[float, float]:
    return float(np.mean(held)) if len(held) >= trials / 10 else np.nan, 1 - len(held) / trials


def measure(trials: int) -> Iterator[CoverageCell]:
    """Measure differences of periods, slices and arms, and survival curves."""
    for size in SIZES:
        rates: dict[tuple[str, str], tuple[float, float]] = {}
        for name in WORLDS:
            for times, more in ((1.0, ""), (2.0, ", twice as much")):
                rates["periods", f"{name}{more}"] = compared(name, size, trials, same=True, times=times)
            rates["slices", name] = compared(name, size, trials, same=False, times=1.0)
        for what in ("winsorized", "quantile 0.5", "quantile 0.9"):
            rates["arms", what] = arms(size, trials, what=what)
        rates |= {("survival", name): found for name, found in survival(size, trials).items()}
        for (method, situation), (rate, none) in rates.items():
            if not np.isnan(rate):
                yield CoverageCell(method, situation, size, rate, trials)
            yield CoverageCell(f"{method}, none", situation, size, none, trials)
