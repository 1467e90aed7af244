"""Change points: the statistic against least squares, planted shifts, and the rate of false alarms."""

from __future__ import annotations

import numpy as np
import pytest
from calibration import series
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from judged import InputError
from judged.online.statistics.changes import _split_scores, change_points


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(0.5, 4.0)), min_size=6, max_size=15), st.integers(2, 3))
def test_the_statistic_is_the_share_of_residual_squares_that_a_cut_explains(
    rows: list[tuple[float, float]], shortest: int
) -> None:
    x, w = (np.array(column) for column in zip(*rows, strict=True))

    def squares(*steps: int) -> float:
        """Regress each point on the one before, with a slope from 0 to 1/2, and on steps."""
        columns = [x[:-1], *(np.arange(1, len(x)) >= step for step in (0, *steps))]
        limits = [(0, *[-np.inf] * (len(steps) + 1)), (0.5, *[np.inf] * (len(steps) + 1))]
        root = np.sqrt(w[1:])
        fit = lsq_linear(np.stack(columns, axis=1) * root[:, None], x[1:] * root, limits, tol=1e-14)
        return 2 * float(fit.cost)

    if squares() < 1e-3 or np.ptp(x[:-1]) < 0.1:
        return
    scores = _split_scores(x[None, :], w, shortest)[0][0]
    cuts = range(shortest, len(x) - shortest + 1)
    assert scores.tolist() == pytest.approx([1 - squares(cut) / squares() for cut in cuts], abs=1e-4)


def test_a_large_shift_is_found_exactly_and_alone() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(500, 5000, 60).astype(float)
        values = 0.3 + rng.normal(size=60) * np.sqrt(0.21 / sizes)
        values[23:] -= 0.15
        changes = change_points(values, sizes, alpha=0.001)
        assert [change.point for change in changes] == [23]
        assert changes[0].before == pytest.approx(np.average(values[:23], weights=sizes[:23]))
        assert changes[0].after == pytest.approx(np.average(values[23:], weights=sizes[23:]))
        assert changes[0].p == 0.001


def test_several_levels() -> None:
    rng = np.random.default_rng(5)
    levels = np.repeat([0.30, 0.36, 0.24, 0.30], [20, 15, 25, 10])
    changes = change_points(levels + rng.normal(0, 0.004, 70), np.ones(70))
    assert [change.point for change in changes] == [20, 35, 60]
    assert [round(change.after, 2) for change in changes] == [0.36, 0.24, 0.30]


@pytest.mark.parametrize("days", [14, 30, 60])
@pytest.mark.parametrize(
    "world", ["1 event a day", "weekends 3 sigmas lower", "autocorrelated 0.3", "autocorrelated 0.5"]
)
def test_flat_series_change_at_most_a_little_more_often_than_declared(world: str, days: int) -> None:
    """Had its points come in any order, every fifth series with an autocorrelation of 0.5 would have one."""
    trials = 200
    assert series.changed(world, days, trials) <= 0.02 + 2 * np.sqrt(0.02 * 0.98 / trials)


@pytest.mark.parametrize("days", [30, 60])
def test_shifts_are_found_behind_weekends(days: int) -> None:
    assert series.changed("weekends 3 sigmas lower", days, 40, shift=4.0) >= 0.9


def test_planted_shifts_are_found() -> None:
    """Two standard errors, after 30 of 90 points: nearly always, mostly within two points."""
    rng = np.random.default_rng(2)
    detected = near = several = 0
    for seed in range(100):
        values = rng.normal(size=90)
        values[30:] += 2.0
        changes = change_points(values, np.ones(90), resamples=299, seed=seed)
        detected += bool(changes)
        several += len(changes) > 1
        near += any(abs(change.point - 30) <= 2 for change in changes)
    assert detected == 100
    assert near >= 85
    assert several <= 6


def test_missing_points_are_passed_over_and_places_kept() -> None:
    values = np.array([1.0, 1.1, np.nan, 0.9, 1.0, 1.05, np.nan, 2.0, 2.1, 1.9, 2.0, 2.05])
    assert [change.point for change in change_points(values, np.ones(12), alpha=0.05)] == [7]
    weights = np.where(np.arange(12) == 7, 0.0, 1.0)
    assert [change.point for change in change_points(values, weights, alpha=0.05, shortest=4)] == [8]


def test_one_strange_point_is_no_change_and_scale_does_not_matter() -> None:
    rng = np.random.default_rng(9)
    values = rng.normal(size=30)
    values[12] += 30
    assert change_points(values, np.ones(30)) == ()
    values[15:] += 60
    for scale in (1e-12, 1.0, 1e12):
        assert [change.point for change in change_points(values * scale, np.ones(30) * 7)] == [15]


@pytest.mark.parametrize("values", [np.zeros(0), np.arange(9.0), np.full(40, 0.1), np.full(40, np.nan)])
def test_nothing_to_find(values: np.ndarray) -> None:
    assert change_points(values, np.ones(len(values))) == ()


def test_the_same_seed_gives_the_same() -> None:
    values = np.random.default_rng(1).normal(size=40) + np.repeat([0, 1.2], 20)
    assert change_points(values, np.ones(40), alpha=0.2) == change_points(values, np.ones(40), alpha=0.2)


def test_refusals() -> None:
    values = np.arange(20.0)
    for options in ({"alpha": 0.0}, {"alpha": 1.0}, {"shortest": 0}):
        with pytest.raises(InputError, match="must be between 0 and 1"):
            change_points(values, values, **options)
    with pytest.raises(InputError, match=r"got 199. Fix: use 1000"):
        change_points(values, values, alpha=0.001, resamples=199)
