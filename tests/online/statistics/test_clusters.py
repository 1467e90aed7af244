"""Cluster bootstrap: weights, limits by hand, coverage by simulation, and errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from judged import InputError
from judged.online.statistics import users as clusters
from judged.online.statistics.users import bootstrap_intervals
from judged.stats.ratio import exact_share_interval, ratio_error, ratio_interval


def test_weights_are_poisson_with_mean_1() -> None:
    counts = np.bincount(clusters._poisson_table().astype(int)) / 65536
    exact = scipy_stats.poisson.pmf(np.arange(len(counts)), 1.0)
    assert np.abs(counts - exact).max() < 1 / 65536
    assert counts @ np.arange(len(counts)) == pytest.approx(1.0, abs=5e-5)
    assert len(counts) == 9  # 8 is as rare as one in 65536


def test_limits_by_hand() -> None:
    """Compute the studentized interval resample by resample, with the same weights."""
    rng = np.random.default_rng(1)
    d = rng.integers(1, 9, size=(40, 1)).astype(float)
    n = rng.normal(2.0, 1.0, size=(40, 1)) * d
    random_bits = np.random.default_rng((7, 0)).integers(0, 1 << 16, size=(199, 40), dtype=np.uint16)
    ratio = n.sum() / d.sum()
    t = []
    for bits in random_bits:
        w = scipy_stats.poisson.ppf((bits + 0.5) / 65536, 1.0)[:, None]
        resampled_ratio = (w * n).sum() / (w * d).sum()
        error = math.sqrt((w * (n - resampled_ratio * d) ** 2).sum()) / (w * d).sum()
        t.append((resampled_ratio - ratio) / error)
    t.sort()
    error = math.sqrt(((n - ratio * d) ** 2).sum()) / d.sum()
    low, high = bootstrap_intervals(n, d, level=0.9, resamples=199, seed=7)[0]
    assert low == pytest.approx(ratio - error * t[-10], rel=1e-9)  # 0.05 * 200 = the tenth
    assert high == pytest.approx(ratio - error * t[9], rel=1e-9)


def test_a_ratio_does_not_depend_on_its_neighbors_nor_on_the_order_of_resamples() -> None:
    rng = np.random.default_rng(2)
    d = rng.integers(1, 9, size=(9000, 3)).astype(float)  # more than two blocks of units
    n = rng.binomial(d.astype(int), 0.3).astype(float)
    three_ratios = bootstrap_intervals(n, d, resamples=150, seed=3)
    for i in range(3):
        one_ratio = bootstrap_intervals(n[:, [i]], d[:, [i]], resamples=150, seed=3)
        assert one_ratio[0].tolist() == pytest.approx(three_ratios[i].tolist(), rel=1e-9)
    assert bootstrap_intervals(n, d, resamples=150, seed=4).tolist() != three_ratios.tolist()


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    d = rng.integers(1, 9, size=(300, 2)).astype(float)
    n = rng.gamma(2.0, size=(300, 2)) * d
    unblocked = bootstrap_intervals(n, d, resamples=200)
    monkeypatch.setattr(clusters, "_WEIGHTS", 4096 * 7)
    assert bootstrap_intervals(n, d, resamples=200).ravel().tolist() == pytest.approx(
        unblocked.ravel().tolist(), rel=1e-9
    )


def test_many_users_agree_with_the_delta_method() -> None:
    rng = np.random.default_rng(6)
    d = rng.integers(1, 9, size=(10_000, 1)).astype(float)
    n = rng.binomial(d.astype(int), rng.beta(1, 2, size=d.shape)).astype(float)
    low, high = bootstrap_intervals(n, d, resamples=1000)[0]
    error = ratio_error(len(n), n.sum(), d.sum(), (n * n).sum(), (d * d).sum(), (n * d).sum())
    delta = ratio_interval(n.sum() / d.sum(), error, len(n), 0.95, share=True)
    assert low == pytest.approx(delta[0], abs=0.2 * error)
    assert high == pytest.approx(delta[1], abs=0.2 * error)


def test_blocks_of_users_are_drawn_independently() -> None:
    """The same 4096 users twice: with the same weights in both blocks, the interval would be 1.41 times as long."""
    rng = np.random.default_rng(8)
    d = np.tile(rng.integers(1, 9, size=(4096, 1)).astype(float), (2, 1))
    n = np.tile(rng.normal(size=(4096, 1)), (2, 1))
    error = ratio_error(len(n), n.sum(), d.sum(), (n * n).sum(), (d * d).sum(), (n * d).sum())
    low, high = bootstrap_intervals(n, d, resamples=600)[0]
    assert (high - low) / (2 * 1.96 * error) == pytest.approx(1.0, abs=0.12)


def test_natural_bounds_hold() -> None:
    d = np.array([[4.0], [2.0], [2.0], [2.0]])
    assert bootstrap_intervals(np.array([[4.0], [0.0], [0.0], [1.0]]), d).tolist() == [[0.0, 1.0]]
    low, high = bootstrap_intervals(np.array([[50.0], [0.0], [0.0], [1.0]]), d)[0]
    assert low == 0.0
    assert high > 51 / 10
    assert bootstrap_intervals(np.array([[4.0], [-3.0], [0.0], [1.0]]), d)[0, 0] < 0


def test_shares_of_none_and_of_all_are_exact() -> None:
    d = np.array([[2.0, 2.0, 2.0], [3.0, 3.0, 3.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [2.0, 2.0, 2.0]])
    n = np.array([[0.0, 2.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, -1.0], [0.0, 2.0, 0.0]])
    intervals = bootstrap_intervals(n, d, level=0.9, resamples=100)
    assert intervals[0].tolist() == list(exact_share_interval(4, 0.9, 0))
    assert intervals[1].tolist() == list(exact_share_interval(4, 0.9, 1))
    assert intervals[2, 0] < 0


def test_nothing_to_vary() -> None:
    d = np.array([[2.0, 1.0, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0], [4.0, 0.0, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0]])
    n = np.array([[0.2, 1.0, 0.0, 0.0], [0.3, 0.0, 0.0, 0.0], [0.4, 0.0, 0.0, 4.0], [0.3, 0.0, 0.0, 0.0]])
    assert np.isnan(bootstrap_intervals(n, d, resamples=100)).all()
    assert np.isnan(bootstrap_intervals(np.zeros((0, 2)), np.zeros((0, 2)))).all()


@pytest.mark.parametrize(("pages", "has_interval"), [((2, 2), False), ((2, 2, 2), True), ((9, 2, 2, 2), False)])
def test_fewer_than_three_effective_users_have_no_interval(pages: tuple[int, ...], has_interval: bool) -> None:
    """9, 2, 2 and 2 pages are 15**2 / 93 = 2.4 effective users."""
    d = np.array(pages, dtype=float)[:, None]
    n = np.arange(len(pages), dtype=float)[:, None]
    assert np.isfinite(bootstrap_intervals(n, d, resamples=200)).all() == has_interval


def test_refusals() -> None:
    small = np.ones((10, 2))
    with pytest.raises(InputError, match="at least 100 resamples are required, got 50"):
        bootstrap_intervals(small, small, resamples=50)
    with pytest.raises(InputError, match="seed must not be negative, got -1"):
        bootstrap_intervals(small, small, seed=-1)
    large = np.broadcast_to(np.ones(1), (3_000_000, 50))
    with pytest.raises(InputError, match="1000 resamples of 50 metrics over 3000000 units takes too long"):
        bootstrap_intervals(large, large)


def drawn(rng: np.random.Generator, users: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    d = np.minimum(np.ceil(rng.pareto(1.6, size=users) + 1e-9), 100.0)
    counts = d.astype(np.int64)
    if kind == "clicks":
        return rng.binomial(counts, rng.beta(0.6, 1.4, size=users)).astype(float), d
    user = np.repeat(np.arange(users), counts)
    spend = np.exp(np.repeat(rng.normal(0, 0.7, users), counts) + rng.normal(3, 1, len(user)))
    return np.bincount(user, np.minimum(spend, 400) * (rng.random(len(user)) < 0.15), minlength=users), d


@pytest.mark.parametrize(
    ("kind", "users", "min_coverage"),
    [("clicks", 50, 0.92), ("clicks", 400, 0.92), ("money", 50, 0.91), ("money", 400, 0.92)],
)
def test_coverage(kind: str, users: int, min_coverage: float) -> None:
    """Each ratio is a sample of its own: 300 of them in a call."""
    rng = np.random.default_rng(users)
    samples = [drawn(rng, users, kind) for _ in range(300)]
    n, d = (np.stack(column, axis=1) for column in zip(*samples, strict=True))
    population_n, population_d = drawn(rng, 400_000, kind)
    truth = 0.3 if kind == "clicks" else population_n.sum() / population_d.sum()
    low, high = bootstrap_intervals(n, d, resamples=400).T
    coverage = ((low <= truth) & (truth <= high)).mean()
    assert min_coverage <= coverage <= 0.98
    sums = (n.sum(0), d.sum(0), (n * n).sum(0), (d * d).sum(0), (n * d).sum(0))
    delta_covered = 0
    for i in range(300):
        column = tuple(float(column[i]) for column in sums)
        limits = ratio_interval(
            column[0] / column[1], ratio_error(users, *column), users, 0.95, share=False, signed=True
        )
        delta_covered += limits[0] <= truth <= limits[1]
    assert coverage >= delta_covered / 300
