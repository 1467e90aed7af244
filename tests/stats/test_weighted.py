"""Weighted means: by hand, as plain means where weights are equal, against scipy, and against a known truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from judged import InputError
from judged.stats import IntervalMethod, mean_intervals
from judged.stats.weighted import encode_groups, group_balanced_means, weighted_means

BOOTSTRAP, STUDENT, NONE = IntervalMethod("bootstrap", resamples=1000), IntervalMethod("t"), IntervalMethod("none")
NAN = math.nan


def test_by_hand() -> None:
    """(0.2 + 0.4 + 2 * 0.9) / 4 = 0.6; weighted residuals -0.4, -0.2, 0.6, whose squares add up to 0.56.

    The standard error is sqrt(0.56 * 3/2) / 4 = 0.229129; 16 / 6 = 2.67 effective topics leave 2 degrees of freedom,
    whose 0.975 quantile is 4.302653.
    """
    result = weighted_means([[0.2, 0.4, 0.9]], [1, 1, 2], STUDENT)
    half = 4.302653 * 0.22912878
    assert result.values[0] == pytest.approx(0.6, abs=1e-15)
    assert result.effective[0] == pytest.approx(16 / 6)
    assert result.limits[0] == pytest.approx([0.6 - half, 0.6 + half], rel=1e-6)


@pytest.mark.parametrize("method", [BOOTSTRAP, STUDENT, NONE])
def test_equal_weights_give_the_plain_mean_and_its_interval(method: IntervalMethod) -> None:
    values = np.random.default_rng(1).beta(0.6, 1.4, size=(4, 30))
    values[1, :7] = values[2, 3] = NAN
    values[3] = 0.25
    result = weighted_means(values, np.full(30, 3.7), method)
    assert result.values == pytest.approx(np.nanmean(values, axis=1), rel=1e-13)
    assert result.limits == pytest.approx(mean_intervals(values, method), rel=1e-9, nan_ok=True)
    assert result.n.tolist() == [30, 23, 29, 30]
    assert result.effective == pytest.approx(result.n)


@pytest.mark.parametrize("method", [BOOTSTRAP, STUDENT])
def test_a_topic_without_weight_might_as_well_not_be_there(method: IntervalMethod) -> None:
    rng = np.random.default_rng(2)
    values, weights = rng.random((2, 12)), rng.integers(1, 9, 12).astype(float)
    without = weights.copy()
    without[3], without[7] = 0.0, NAN
    kept = np.delete(np.arange(12), [3, 7])
    one, two = weighted_means(values, without, method), weighted_means(values[:, kept], weights[kept], method)
    assert one.values == pytest.approx(two.values, rel=1e-14)
    assert one.limits == pytest.approx(two.limits, rel=1e-12)
    assert one.n.tolist() == two.n.tolist() == [10, 10]


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 9)), min_size=1, max_size=12), st.floats(0.01, 1000))
def test_a_weight_is_so_many_topics_and_scale_means_nothing(rows: list[tuple[float, int]], scale: float) -> None:
    values, weights = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    result = weighted_means(values[None], weights, NONE).values[0]
    assert result == pytest.approx(np.repeat(values, weights.astype(int)).mean(), rel=1e-12, abs=1e-15)
    assert weighted_means(values[None], weights * scale, NONE).values[0] == pytest.approx(result, rel=1e-12, abs=1e-15)
    assert values.min() - 1e-15 <= result <= values.max() + 1e-15


@pytest.mark.parametrize("method", [BOOTSTRAP, STUDENT])
def test_limits_do_not_depend_on_scale_or_on_other_rows(method: IntervalMethod) -> None:
    rng = np.random.default_rng(3)
    values, weights = rng.random((3, 25)), rng.lognormal(0, 1, 25)
    one = weighted_means(values, weights, method).limits
    assert weighted_means(values, weights * 1000, method).limits == pytest.approx(one, rel=1e-11)
    assert weighted_means(values[1:2], weights, method).limits[0] == pytest.approx(one[1], rel=1e-11)


def test_the_bootstrap_is_scipys() -> None:
    """Scipy resamples pairs of weight and product, and leaves out one at a time, by its own code."""
    rng = np.random.default_rng(4)
    values, weights = rng.beta(0.5, 1.5, 40), rng.lognormal(0, 0.8, 40)
    theirs = scipy_stats.bootstrap(
        (weights * values, weights), lambda a, b, axis: a.sum(axis) / b.sum(axis), paired=True, vectorized=True,
        n_resamples=20_000, method="BCa", rng=np.random.default_rng(5),
    ).confidence_interval  # fmt: skip
    ours = weighted_means(values[None], weights, IntervalMethod("bootstrap", resamples=20_000)).limits[0]
    assert ours == pytest.approx([theirs.low, theirs.high], abs=0.004)  # widths are 0.2


@pytest.mark.parametrize(
    ("method", "spread", "least", "most"), [(STUDENT, 1.0, 0.90, 0.98), (BOOTSTRAP, 0.5, 0.90, 0.98)]
)
def test_intervals_hold_the_truth(method: IntervalMethod, spread: float, least: float, most: float) -> None:
    """Weights are log-normal; scores are the higher the rarer the query. 300 samples: standard error 0.0126."""
    rng = np.random.default_rng(6)

    def drawn(size: int) -> tuple[np.ndarray, np.ndarray]:
        weights = rng.lognormal(0, spread, size)
        return np.clip(rng.beta(1.2, 1.2, size) / (1 + 0.2 * weights), 0, 1), weights

    scores, weights = drawn(2_000_000)
    truth = float((scores * weights).sum() / weights.sum())
    held = 0
    for _ in range(300):
        values, weights = drawn(60)
        low, high = weighted_means(values[None], weights, method).limits[0]
        held += low <= truth <= high
    assert least <= held / 300 <= most


def test_edges() -> None:
    result = weighted_means([[0.5, NAN, NAN], [NAN, NAN, NAN], [0.1, 0.1, 0.1], [0.2, 0.4, NAN]], [1, 2, 3], BOOTSTRAP)
    assert result.n.tolist() == [1, 0, 3, 2]
    assert result.values.tolist()[0] == 0.5
    assert math.isnan(result.values[1])
    assert np.isnan(result.limits[:2]).all()
    assert np.isnan(result.limits[2]).all()  # no variation is no proof that there is none
    assert result.effective.tolist()[1] == 0.0


@pytest.mark.parametrize("weights", [[1, -1], [1, math.inf], [1, 2, 3], [[1, 2]]])
def test_impossible_weights(weights: list[float]) -> None:
    with pytest.raises(InputError):
        weighted_means([[0.1, 0.2]], weights)


def test_an_interval_for_plain_means_is_refused() -> None:
    with pytest.raises(InputError, match="'adjusted' is not available for weighted means"):
        weighted_means([[0.1, 0.2]], [1, 2], IntervalMethod())


def test_the_mean_of_means_by_hand() -> None:
    """Means 0.3 and 0.7; squared errors 0.02 / 2 and 0.08 / 2, together 0.05: the error is sqrt(0.05) / 2.

    Satterthwaite: 0.05^2 / (0.01^2 + 0.04^2) = 1.47, so 1 degree of freedom: 12.7062 times the error.
    """
    result = group_balanced_means([[0.2, 0.4, 0.9, 0.5, 99.0]], [0, 0, 7, 7, -1])
    half = 12.7062047 * math.sqrt(0.05) / 2
    assert result.values[0] == pytest.approx(0.5)
    assert result.limits[0] == pytest.approx([0.5 - half, 0.5 + half], rel=1e-6)
    assert result.n.tolist() == [4]


def test_each_group_counts_the_same() -> None:
    values = np.array([[0.0] * 30 + [1.0] * 2])
    groups = [0] * 30 + [1] * 2
    result = group_balanced_means(values, groups)
    assert result.values.tolist() == [0.5]
    assert np.isnan(result.limits).all()  # neither group varies
    assert result.effective[0] == pytest.approx(4 / (1 / 30 + 1 / 2))
    assert math.isnan(group_balanced_means(values, [0] * 32, None).limits[0, 0])
    assert math.isnan(group_balanced_means([[NAN, 1.0]], [0, 1]).values[0])
    assert math.isnan(group_balanced_means([[0.5, 1.0]], [-1, -1]).values[0])


def test_intervals_of_the_mean_of_means_hold_the_truth() -> None:
    """Groups of 10, 25 and 60 topics, of unlike spread; their true means are 0.2, 0.5 and 0.8."""
    rng, groups = np.random.default_rng(7), np.repeat([0, 1, 2], [10, 25, 60])
    center, spread = np.array([0.2, 0.5, 0.8])[groups], np.array([0.15, 0.1, 0.05])[groups]
    samples = rng.normal(center, spread, size=(1000, len(groups)))
    limits = group_balanced_means(samples, groups).limits
    held = np.mean((limits[:, 0] <= 0.5) & (limits[:, 1] >= 0.5))
    assert abs(held - 0.95) <= 3.3 * math.sqrt(0.95 * 0.05 / 1000)


def test_groups_of_members() -> None:
    assert encode_groups(np.array([[1, 0, 0], [0, 0, 1]], dtype=bool)).tolist() == [0, -1, 1]
    assert encode_groups(np.array([[1, 0], [1, 1]], dtype=bool)) is None
