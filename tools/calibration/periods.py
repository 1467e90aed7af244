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
STATISTICS = {
    "share": CurveStatistic("share", 10_000), "mean": CurveStatistic("mean", 30_000),
    "median": CurveStatistic("quantile", 0.5),
    "quantile 0.9": CurveStatistic("quantile", 0.9),
}  # fmt: skip


class World(NamedTuple):
    """Distribution of the events of users."""

    kind: str  # share, count, amount
    mean: float
    active: bool = False
    concentration: float = 2.0  # similarity of users: sum of the parameters of a beta distribution


WORLDS = {
    "share of 30%": World("share", 0.3),
    "share of 3%": World("share", 0.03, concentration=3.0),
    "share, active users more": World("share", 0.3, active=True),
    "1 event in 2 pages": World("count", 0.5),
    "money on 15% of pages": World("amount", 0.15),
}


def sample_users(rng: np.random.Generator, world: World, size: int, sides: int, times: float) -> list[list[np.ndarray]]:
    """Sample numerators and denominators of users on each side; the last side has `times` as many events."""
    beta = world.concentration * world.mean, world.concentration * (1 - world.mean)
    activity = rng.gamma(2.0, 0.5, size) if world.kind == "count" else rng.beta(*beta, size)
    mean_log_amount, sides_data = rng.normal(3.0, 0.7, size), list[list[np.ndarray]]()
    for side in range(sides):
        d = pages(rng, (size,)) * (rng.random(size) < (0.6 if sides > 1 else 1.0))
        factor = times if side == sides - 1 else 1.0
        if world.kind == "count":
            n = rng.poisson(world.mean * factor * activity * d).astype(float)
        else:
            click_probability = activity * (1.0 - 0.8 * np.maximum(d, 1.0) ** -0.5 if world.active else 1.0)
            click_probability = 1.0 - (1.0 - click_probability) ** factor
            n = rng.binomial(d.astype(np.int64), click_probability).astype(float)
        if world.kind == "amount":
            owner = np.repeat(np.arange(size), n.astype(np.int64))
            n = np.bincount(
                owner, np.minimum(np.exp(rng.normal(0, 1, len(owner)) + mean_log_amount[owner]), 400.0), size
            )
        sides_data.append([n, d])
    return sides_data


def sums(n: np.ndarray, d: np.ndarray) -> RatioSums:
    """Return the sums over users of one side."""
    units = int(((n != 0) | (d != 0)).sum())
    return RatioSums(units, *map(float, (n.sum(), d.sum(), n @ n, d @ d, n @ d)))


@cache
def _truth(name: str, times: float) -> float:
    (n, d), (m, e) = sample_users(np.random.default_rng(98), WORLDS[name], _OF_TRUTH, 2, times)
    return float(m.sum() / e.sum() - n.sum() / d.sum()) if times != 1.0 else 0.0


def difference_coverage(name: str, size: int, trials: int, *, is_paired: bool, times: float) -> tuple[float, float]:
    """Return coverage of the difference of two periods, or slices, and the share of logs without an interval."""
    rng, world, is_covered, truth = np.random.default_rng([41, size]), WORLDS[name], list[bool](), _truth(name, times)
    for _ in range(trials):
        if is_paired:
            (n, d), (m, e) = sample_users(rng, world, round(size / 0.6), 2, times)
            first, second = sums(n, d), sums(m, e)
            rho = correlation(first, second, *map(float, (n @ m, n @ e, d @ m, d @ e))) if first.d and second.d else 0.0
        else:
            first, second = (sums(*sample_users(rng, world, k, 1, f)[0]) for k, f in ((size, 1.0), (3 * size, times)))
            rho = 0.0
        kind_options = {"share": world.kind == "share", "counted": world.kind == "count"}
        with patch.object(differences, "_STEPS", 0):  # the p-value is the level at which the interval ends at 0
            difference = ratio_difference(first, second, 0.95, rho=rho, **kind_options)
        if not np.isnan(difference.low):
            is_covered.append(difference.low <= truth <= difference.high)
    return _rates(is_covered, trials)


def arm_coverage(size: int, trials: int, *, statistic: str) -> tuple[float, float]:
    """Return coverage of a difference of 0 between two equal arms, and the share of logs without an interval."""
    rng, is_covered, inference = np.random.default_rng([42, size]), list[bool](), Inference(any_day=False)
    for _ in range(trials):
        if statistic == "winsorized":
            arm_data = [sample_users(rng, WORLDS["money on 15% of pages"], size, 1, 1.0)[0] for _ in range(2)]
            amounts = np.concatenate([n for n, _ in arm_data])
            limit = np.quantile(amounts[amounts > 0], 0.99, method="inverted_cdf") if amounts.any() else 0.0
            first, second = (Arm(sums(np.minimum(n, limit), d)) for n, d in arm_data)
            difference = adjusted_difference(first, second)
            value, error = difference.value, difference.error
            effective = [arm.after.d**2 / arm.after.dd for arm in (first, second)]
        else:
            arm_data = [_quantile(rng, size, float(statistic.removeprefix("quantile "))) for _ in range(2)]
            value, error = arm_data[1][0] - arm_data[0][0], float(np.hypot(arm_data[0][1], arm_data[1][1]))
            effective = [side[2] for side in arm_data]
        critical = inference.critical(2 * size, sum(effective) - 2.0)
        if error > 0 and np.isfinite(critical):
            is_covered.append(abs(value) <= critical * error)
    return _rates(is_covered, trials)


def _quantile(rng: np.random.Generator, size: int, q: float) -> tuple[float, float, float]:
    """Return a quantile, its standard error (NaN: no interval), and the effective number of users, as for logs."""
    d = pages(rng, (size,))
    owner = np.repeat(np.arange(size), d.astype(np.int64))
    durations = np.exp(rng.normal(0, 0.5, size)[owner] + rng.normal(size=len(owner)))
    ordered = np.sort(durations)

    def quantile(share: float) -> float:
        return float(ordered[min(max(int(np.ceil(share * len(ordered) - 1e-9)) - 1, 0), len(ordered) - 1)])

    n = np.bincount(owner, durations <= quantile(q), minlength=size).astype(np.float64)
    share_error = ratio_error(size, *map(float, (n.sum(), d.sum(), n @ n, d @ d, n @ d)))
    effective = float(d.sum() ** 2 / (d @ d))
    low, high = woodruff(q, share_error, size, 0.95, effective=effective)
    if np.isnan(low):
        return quantile(q), np.nan, effective
    half_width = (quantile(high) - quantile(low)) / 2
    return quantile(q), half_width / float(student_quantiles(0.975, np.array(effective - 1))), effective


def sample_visits(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sample durations of visits in milliseconds, whether their end was observed, and their users."""
    owner = np.repeat(np.arange(size), pages(rng, (size,)).astype(np.int64))
    durations = np.exp(rng.normal(2.0, 0.5, size)[owner] + rng.normal(size=len(owner)))
    observed = rng.uniform(5.0, 60.0, len(owner))
    return np.ceil(1000 * np.minimum(durations, observed)).astype(np.int64), durations <= observed, owner


@cache
def _survival_truth() -> dict[str, float]:
    rng = np.random.default_rng(99)
    durations = 1000 * np.exp(rng.normal(2.0, np.sqrt(1.25), 10 * _OF_TRUTH))
    return {
        "share": float((durations > 10_000).mean()), "mean": float(np.minimum(durations, 30_000).mean()),
        "median": float(np.median(durations)), "quantile 0.9": float(np.quantile(durations, 0.9)),
    }  # fmt: skip


def survival_coverage(size: int, trials: int) -> dict[str, tuple[float, float]]:
    """Return coverage of statistics of a survival curve, and the share of logs without an interval."""
    rng, is_covered = np.random.default_rng([43, size]), {name: list[bool]() for name in STATISTICS}
    for _ in range(trials):
        times, ended, owner = sample_visits(rng, size)
        distinct, position = np.unique(times, return_inverse=True)
        num_ended = np.bincount(position, ended).astype(np.int64)
        curve = kaplan_meier(distinct, num_ended, np.bincount(position).astype(np.int64) - num_ended)
        d = np.bincount(owner).astype(float)
        for name, statistic in STATISTICS.items():
            ended_influence, observed_influence = statistic.influence(curve)
            by_user = np.bincount(owner, np.where(ended, ended_influence[position], observed_influence[position]))
            _, _, low, high, _ = statistic.estimate(
                curve, float(by_user @ by_user), (size, float(d.sum() ** 2 / (d @ d))), 0.95
            )
            if not np.isnan(low):
                is_covered[name].append(low <= _survival_truth()[name] <= high)
    return {name: _rates(coverage, trials) for name, coverage in is_covered.items()}


def _rates(is_covered: list[bool], trials: int) -> tuple[float, float]:
    return float(np.mean(is_covered)) if len(is_covered) >= trials / 10 else np.nan, 1 - len(is_covered) / trials


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield coverage of differences of periods, slices, and arms, and of survival curves."""
    for size in SIZES:
        rates: dict[tuple[str, str], tuple[float, float]] = {}
        for name in WORLDS:
            for times, suffix in ((1.0, ""), (2.0, ", twice as much")):
                rates["periods", f"{name}{suffix}"] = difference_coverage(
                    name, size, trials, is_paired=True, times=times
                )
            rates["slices", name] = difference_coverage(name, size, trials, is_paired=False, times=1.0)
        for statistic in ("winsorized", "quantile 0.5", "quantile 0.9"):
            rates["arms", statistic] = arm_coverage(size, trials, statistic=statistic)
        rates |= {("survival", name): coverage for name, coverage in survival_coverage(size, trials).items()}
        for (method, situation), (rate, no_interval) in rates.items():
            if not np.isnan(rate):
                yield CoverageCell(method, situation, size, rate, trials)
            yield CoverageCell(f"{method}, none", situation, size, no_interval, trials)
