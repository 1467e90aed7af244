"""Error rates of A/B tests at alpha = 0.05, with n users in each of two equal arms.

*Differs*: share of significant fixed-sample tests; *verdict*: the same for tests with enough users for a verdict; *any
day*: significant on any of 15 days; *CUPED*: adjusted for the time before. *Relative*: share of intervals of the
relative difference without the true value. *Ramp-up*: arm b has a tenth of the users, and half of them in the second
half, when users do less. *Pooled* ignores this; *stratified* is the method of `judged online abtest`. *Allocation*:
share of tests over 14 days with a false change of allocation. *Shares*: false sample ratio mismatch at p < 0.001.

Values are normal, log-normal money of one user in five (sigma 1.5), or clicks on 1 to 100 pages (Pareto 1.6). Click
rates differ between users, and in one situation increase with activity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from calibration import CoverageCell
from judged.online.ab_tests.differences import EQUAL_USERS, Inference
from judged.online.statistics.allocation import allocation_periods, sample_ratio
from judged.online.statistics.users import AdjustedDifference, Arm, adjusted_difference
from judged.stats.ratio import RatioSums, correlation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Users: TypeAlias = tuple[np.ndarray, np.ndarray]  # numerators and denominators
SIZES = (50, 200, 1000)
_MIN_USERS = 30  # of a stratum
VERDICT_USERS = 200  # of an arm, by default


def _normal(mean: float) -> Callable[[np.random.Generator, int, float], Users]:
    def draw(rng: np.random.Generator, users: int, level: float) -> Users:
        return rng.normal(mean * level, 3.0, users), np.ones(users)

    return draw


def _money(rng: np.random.Generator, users: int, level: float) -> Users:
    amounts = np.exp(rng.normal(3.0, 1.5, users)) * (rng.random(users) < 0.2 * level)
    return amounts, np.ones(users)


def _pages(activity: float) -> Callable[[np.random.Generator, int, float], Users]:
    def draw(rng: np.random.Generator, users: int, level: float) -> Users:
        d = np.minimum(np.ceil(rng.pareto(1.6, users) + 1e-9), 100.0)
        chance = level * rng.beta(1.2, 2.8, users) * (1.0 - 0.5 * d**-activity if activity else 1.0)
        return rng.binomial(d.astype(np.int64), chance).astype(float), d

    return draw


WORLDS: dict[str, Callable[[np.random.Generator, int, float], Users]] = {
    "normal, baseline 10": _normal(10.0),
    "normal, baseline -10": _normal(-10.0),
    "money of one in five": _money,
    "clicks on pages": _pages(0.0),
    "clicks, active users more": _pages(0.5),
}


def sums(n: np.ndarray, d: np.ndarray) -> RatioSums:
    """Return the sums over users of one arm."""
    return RatioSums(float(len(n)), *map(float, (n.sum(), d.sum(), (n * n).sum(), (d * d).sum(), (n * d).sum())))


def _df(first: RatioSums, second: RatioSums) -> float:
    return sum(side.d**2 / side.dd for side in (first, second)) - 2.0


def _rejects(first: Arm, second: Arm) -> bool:
    difference = adjusted_difference(first, second)
    num_users = first.after.units + second.after.units
    return (
        abs(difference.value)
        > Inference(any_day=False).critical(num_users, _df(first.after, second.after)) * difference.error
    )


def differs(world: str, users: int, trials: int) -> dict[str, float]:
    """Return rates of significant differences of equal arms on one day, and of relative intervals without 0."""
    rng, counts = np.random.default_rng(users), dict.fromkeys(("differs", "verdict", "differs, CUPED", "relative"), 0)
    num_relative = enough = 0
    for _ in range(trials):
        arms: list[Arm] = []
        for _arm in range(2):
            n, d = WORLDS[world](rng, users, 1.0)
            n0, d0 = n + rng.normal(0.0, n.std() / 2.0, users), d
            before, after = sums(n0, d0), sums(n, d)
            products = (n0 * n).sum(), (n0 * d).sum(), (d0 * n).sum(), (d0 * d).sum()
            arms.append(Arm(after, before, correlation(before, after, *map(float, products))))
        counts["differs, CUPED"] += _rejects(*arms)
        plain = Arm(arms[0].after), Arm(arms[1].after)
        rejected = _rejects(*plain)
        counts["differs"] += rejected
        if users >= VERDICT_USERS and min(arm.after.d**2 / arm.after.dd for arm in plain) >= EQUAL_USERS:
            enough += 1
            counts["verdict"] += rejected
        difference = adjusted_difference(*plain)
        critical = Inference(any_day=False).critical(2 * users, _df(plain[0].after, plain[1].after))
        relative = difference.relative(critical)
        num_relative += not np.isnan(relative.value)
        counts["relative"] += not np.isnan(relative.value) and not relative.low <= 0.0 <= relative.high
    rates = {name: count / trials for name, count in counts.items()}
    return rates | {
        "verdict": counts["verdict"] / enough if enough >= trials / 4 else np.nan,
        "relative": counts["relative"] / num_relative if num_relative else np.nan,
    }


def any_day(world: str, users: int, trials: int) -> float:
    """Return how often equal arms differ on any of 15 days, starting with a tenth of the users."""
    rng, num_significant = np.random.default_rng(users + 1), 0
    inference = Inference(expected=2 * users)
    ends = np.linspace(max(users // 10, 25), users, 15).astype(int)
    for _ in range(trials):
        parts = []
        for _arm in range(2):
            n, d = WORLDS[world](rng, users, 1.0)
            totals = [np.cumsum(part)[ends - 1] for part in (n, d, n * n, d * d, n * d)]
            parts.append([RatioSums(float(end), *map(float, row)) for end, *row in zip(ends, *totals, strict=True)])
        differences = [adjusted_difference(Arm(a), Arm(b)) for a, b in zip(*parts, strict=True)]
        num_significant += any(
            difference.error > 0 and abs(difference.value) > inference.critical(2.0 * end) * difference.error
            for difference, end in zip(differences, ends.tolist(), strict=True)
        )
    return num_significant / trials


def ramp_up(world: str, users: int, trials: int) -> dict[str, float]:
    """Return how often equal arms differ in a ramp-up of 14 days with `users` in all."""
    rng, pooled, split = np.random.default_rng(users + 2), 0, 0
    inference = Inference(any_day=False)
    for _ in range(trials):
        day = np.sort(rng.integers(0, 14, users))
        late = day >= 7
        is_second = rng.random(users) < np.where(late, 0.5, 0.1)
        parts = [WORLDS[world](rng, int(side.sum()), level) for side, level in ((~late, 1.0), (late, 0.6))]
        n, d = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        pooled += _rejects(*(Arm(sums(n[side], d[side])) for side in (~is_second, is_second)))
        counts = np.stack([np.bincount(day[side], minlength=14) for side in (~is_second, is_second)], axis=1)
        starts = [*allocation_periods(counts).starts, 14]
        split += _stratified_rejects(n, d, is_second, np.searchsorted(starts, day, side="right"), inference)
    return {"ramp-up, pooled": pooled / trials, "ramp-up, stratified": split / trials}


def _stratified_rejects(
    n: np.ndarray, d: np.ndarray, is_second: np.ndarray, period: np.ndarray, inference: Inference
) -> bool:
    """Return whether the mean of the differences within periods is significant, by the method of `stratified`."""
    strata: list[tuple[AdjustedDifference, float, float]] = []
    for part in np.unique(period).tolist():
        arms = [sums(n[side & (period == part)], d[side & (period == part)]) for side in (~is_second, is_second)]
        if min(arm.units for arm in arms) < _MIN_USERS:
            continue
        difference = adjusted_difference(Arm(arms[0]), Arm(arms[1]))
        strata.append((difference, 1.0 / sum(1.0 / arm.d for arm in arms), min(arm.d**2 / arm.dd for arm in arms)))
    if not strata:
        return False
    weights = np.array([weight for _, weight, _ in strata]) / sum(weight for _, weight, _ in strata)
    squares = np.array(
        [weight**2 * difference.error**2 for weight, (difference, _, _) in zip(weights, strata, strict=True)]
    )
    value = sum(weight * difference.value for weight, (difference, _, _) in zip(weights, strata, strict=True))
    shares = squares / squares.sum()
    effective = 1.0 / sum(share**2 / units for share, (_, _, units) in zip(shares, strata, strict=True))
    return bool(abs(value) > inference.critical(float(len(n)), 2.0 * effective - 2.0) * np.sqrt(squares.sum()))


def allocation(share: float, users: int, trials: int) -> dict[str, float]:
    """Return rates of false changes of allocation, and of false sample ratio mismatches, over 14 days."""
    rng, changed, false = np.random.default_rng(users + 3), 0, 0
    for _ in range(trials):
        new = rng.multinomial(users, np.full(14, 1 / 14))
        second = rng.binomial(new, share)
        changed += len(allocation_periods(np.stack([new - second, second], axis=1)).starts) > 1
        totals = np.stack([new - second, second], axis=1).cumsum(axis=0)
        false += any(sample_ratio(row, [1 - share, share]).p_always < 0.001 for row in totals.tolist())
    return {"allocation": changed / trials, "shares": false / trials}


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield error rates in each world and number of users."""
    for users in SIZES:
        for world in WORLDS:
            rates = differs(world, users, trials) | {"any day": any_day(world, users, trials)}
            rates |= ramp_up(world, 4 * users, trials)
            for method, rate in rates.items():
                if not np.isnan(rate):
                    yield CoverageCell(method, world, users, rate, trials)
        for share in (0.5, 0.1):
            for method, rate in allocation(share, users, trials).items():
                yield CoverageCell(method, f"share of {share:g}", users, rate, trials)
