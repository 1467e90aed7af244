"""Change points: the statistic against least squares, planted shifts, and false alarms at the declared rate."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged import InputError
from judged.stats.control import _scores, change_points


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(0.5, 4.0)), min_size=4, max_size=15), st.integers(1, 2))
def test_the_statistic_is_the_share_of_weighted_squares_that_a_cut_explains(
    rows: list[tuple[float, float]], shortest: int
) -> None:
    x, w = (np.array(column) for column in zip(*rows, strict=True))

    def squares(a: int, b: int) -> float:
        return float((w[a:b] * (x[a:b] - np.average(x[a:b], weights=w[a:b])) ** 2).sum())

    if squares(0, len(x)) < 1e-6:
        return
    found = _scores((x * np.sqrt(w))[None, :], w, shortest)[0]  # random orders are not centred
    cuts = range(shortest, len(x) - shortest + 1)
    expected = [1 - (squares(0, cut) + squares(cut, len(x))) / squares(0, len(x)) for cut in cuts]
    assert found.tolist() == pytest.approx(expected, abs=1e-8)


def test_p_is_that_of_all_orders() -> None:
    """Four points, cut in the middle alone: 2 of the 6 ways to part them explain as much."""
    values, weights = np.array([0.0, 1.0, 8.0, 9.0]), np.ones(4)
    gains = [abs(sum(values[list(half)]) - 9.0) >= 8.0 - 1e-9 for half in itertools.combinations(range(4), 2)]
    assert sum(gains) == 2
    (found,) = change_points(values, weights, alpha=0.5, shortest=2, resamples=4000)
    assert found.p == pytest.approx(1 / 3, abs=0.025)


def test_a_large_shift_is_found_exactly_and_alone() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(500, 5000, 60).astype(float)
        values = 0.3 + rng.normal(size=60) * np.sqrt(0.21 / sizes)
        values[23:] -= 0.15
        found = change_points(values, sizes, alpha=0.001)
        assert [one.point for one in found] == [23]
        assert found[0].before == pytest.approx(np.average(values[:23], weights=sizes[:23]))
        assert found[0].after == pytest.approx(np.average(values[23:], weights=sizes[23:]))
        assert found[0].p == 0.001


def test_several_levels() -> None:
    rng = np.random.default_rng(5)
    levels = np.repeat([0.30, 0.36, 0.24, 0.30], [20, 15, 25, 10])
    found = change_points(levels + rng.normal(0, 0.004, 70), np.ones(70))
    assert [one.point for one in found] == [20, 35, 60]
    assert [round(one.after, 2) for one in found] == [0.36, 0.24, 0.30]


@pytest.mark.parametrize(("points", "alpha"), [(12, 0.05), (40, 0.05), (40, 0.2)])
def test_flat_series_alarm_at_the_declared_rate(points: int, alpha: float) -> None:
    rng = np.random.default_rng(points)
    samples, found = 400, 0
    for seed in range(samples):
        sizes = rng.integers(100, 5000, points).astype(float)
        found += bool(
            change_points(0.3 + rng.normal(size=points) / np.sqrt(sizes), sizes, alpha=alpha, resamples=199, seed=seed)
        )
    spread = np.sqrt(alpha * (1 - alpha) / samples)
    assert alpha - 3 * spread <= found / samples <= alpha + 3 * spread


def test_planted_shifts_are_found() -> None:
    """Two standard errors, after 30 of 90 points: nearly always, mostly within two points."""
    rng = np.random.default_rng(2)
    found = near = more = 0
    for seed in range(100):
        values = rng.normal(size=90)
        values[30:] += 2.0
        changes = change_points(values, np.ones(90), resamples=299, seed=seed)
        found += bool(changes)
        more += len(changes) > 1
        near += any(abs(one.point - 30) <= 2 for one in changes)
    assert found == 100
    assert near >= 85
    assert more <= 6


def test_missing_points_are_passed_over_and_places_kept() -> None:
    values = np.array([1.0, 1.1, np.nan, 0.9, 1.0, 1.05, np.nan, 2.0, 2.1, 1.9, 2.0, 2.05])
    assert [one.point for one in change_points(values, np.ones(12), alpha=0.05)] == [7]
    weights = np.where(np.arange(12) == 7, 0.0, 1.0)
    assert [one.point for one in change_points(values, weights, alpha=0.05, shortest=4)] == [8]


def test_one_strange_point_is_no_change_and_scale_does_not_matter() -> None:
    rng = np.random.default_rng(9)
    values = rng.normal(size=30)
    values[12] += 30
    assert change_points(values, np.ones(30)) == ()
    values[15:] += 60
    for times in (1e-12, 1.0, 1e12):
        assert [one.point for one in change_points(values * times, np.ones(30) * 7)] == [15]


@pytest.mark.parametrize("values", [np.zeros(0), np.arange(9.0), np.full(40, 0.1), np.full(40, np.nan)])
def test_nothing_to_find(values: np.ndarray) -> None:
    assert change_points(values, np.ones(len(values))) == ()


def test_the_same_seed_gives_the_same() -> None:
    values = np.random.default_rng(1).normal(size=40) + np.repeat([0, 1.2], 20)
    assert change_points(values, np.ones(40), alpha=0.2) == change_points(values, np.ones(40), alpha=0.2)


def test_refusals() -> None:
    values = np.arange(20.0)
    for wrong in ({"alpha": 0.0}, {"alpha": 1.0}, {"shortest": 0}):
        with pytest.raises(InputError, match="makes no sense"):
            change_points(values, values, **wrong)
    with pytest.raises(InputError, match=r"199 resamples cannot reach 0.001. Fix: at least 1000"):
        change_points(values, values, alpha=0.001, resamples=199)
