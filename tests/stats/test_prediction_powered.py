"""Prediction-powered means: by hand, and by simulated judges with a known truth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from judged.errors import InputError
from judged.stats.interval import adjusted
from judged.stats.prediction_powered import PredictionPoweredMean, _estimate, _extra_known_values, prediction_powered
from judged.stats.student import student_quantile


def test_by_hand() -> None:
    known, predicted, others = np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 3.0]), np.array([2.0, 4.0, 5.0, 1.0])
    result = prediction_powered(known, predicted, others, resamples=100)
    # cov = ((-4/3)(-4/3) + (-1/3)(2/3) + (5/3)(2/3)) / 2 = 4/3; all seven predictions have variance 16.857.../6
    spread = np.concatenate([predicted, others]).var(ddof=1)
    weight = (4 / 3) / ((1 + 3 / 4) * spread)
    assert result.weight == pytest.approx(weight)
    assert result.value == pytest.approx(weight * 3.0 + (known - weight * predicted).mean())
    left = known - weight * predicted
    variance = weight**2 * others.var(ddof=1) / 4 + ((left - left.mean()) ** 2).sum() / (2 - 1) / 3
    assert result.interval[1] - result.value == pytest.approx(4.302653 * variance**0.5, rel=1e-6)  # t with 2 degrees
    assert (result.n, result.predicted, result.holds) == (3, 4, False)


def test_weights_are_kept_between_0_and_1() -> None:
    """Of rows of known values, predictions of 0.3 times them have weight 1, and others, unrelated, none."""
    rng = np.random.default_rng(1)
    y = rng.random(8)
    f, rest = np.stack([0.3 * y, -y, np.full(8, 0.5)]), np.stack([rng.random(5), rng.random(5), np.full(5, 0.5)])
    rest[0] = 0.2 + 0.01 * rest[0]
    value, variance, weight = _estimate(np.stack([y, y, y]), f, rest)
    assert weight.tolist() == [1.0, 0.0, 0.0]
    assert value == pytest.approx([rest[0].mean() + 0.7 * y.mean(), y.mean(), y.mean()])
    # a weight that is given takes no degree of freedom: sample variances of 8
    own = np.var(y, ddof=1) / 8
    assert variance == pytest.approx([np.var(rest[0], ddof=1) / 5 + 0.49 * own, own, own])


def test_what_predictions_are_worth_by_hand() -> None:
    """A variance of a third is that of three times as many values; none is worth less than nothing."""
    result = _extra_known_values(np.array([3.0, 1.0, 1.0, 0.0, 1.0]), np.array([1.0, 1.0, 2.0, 0.0, 0.0]), 10)
    assert result.tolist() == [20.0, 0.0, 0.0, 0.0, math.inf]


def test_intervals_by_hand() -> None:
    """Known values alone: Student's, or within bounds that of a mean; with predictions, both errors by Pythagoras."""
    rng = np.random.default_rng(3)
    y = np.array([0.0, 1.0, *rng.random(8)])  # values at the bounds are within them
    f, rest = np.clip(y + 0.2 * rng.standard_normal(10), 0, 1), rng.random(30)
    plain = prediction_powered(y, f, rest, level=0.9, resamples=100)
    assert plain.known_interval == pytest.approx(stats.t.interval(0.9, 9, y.mean(), stats.sem(y)))
    assert plain.interval is not None
    left = y - plain.weight * f
    others = plain.weight**2 * np.var(rest, ddof=1) / 30
    assert 0 < plain.weight < 1
    error = math.sqrt(((left - left.mean()) ** 2).sum() / 8 / 10 + others)  # the weight takes a degree of freedom
    assert plain.interval == pytest.approx(stats.t.interval(0.9, 9, plain.value, error))
    result = prediction_powered(y, f, rest, level=0.9, bounds=(0.0, 1.0), resamples=100)
    assert result.value == plain.value == pytest.approx(plain.weight * rest.mean() + left.mean())
    assert result.known_interval == pytest.approx(adjusted(y[None], (0.0, 1.0), 0.9)[0].tolist())
    low, high = adjusted(left[None], (-result.weight, 1.0), 0.9)[0]  # of 0 - w * 1 to 1 - w * 0
    half = stats.t.ppf(0.95, 10) * math.sqrt(others)
    expected = result.value - math.hypot(left.mean() - low, half), result.value + math.hypot(high - left.mean(), half)
    assert result.interval == pytest.approx(expected)
    wider = prediction_powered(y, f, rest, level=0.9, bounds=(-1.0, 3.0), resamples=100)
    low, high = adjusted(left[None], (-1 - 3 * result.weight, 3 + result.weight), 0.9)[0]
    expected = result.value - math.hypot(left.mean() - low, half), result.value + math.hypot(high - left.mean(), half)
    assert wider.interval == pytest.approx(expected)
    for bounds in ((0.0, 0.99), (0.01, 1.0), (math.nan, 1.0), (0.0, math.inf)):  # none, for these values
        assert prediction_powered(y, f, rest, level=0.9, bounds=bounds, resamples=100).known_interval == (
            plain.known_interval
        )


def test_a_judge_that_is_off_by_the_same_everywhere_leaves_the_error_of_the_others() -> None:
    f, rest = np.array([0.0, 4, 8, 12, 16, 20]), np.array([9.0, 10, 11, 10, 9, 11, 10, 10, 9, 11, 10, 10])
    result = prediction_powered(f + 1, f, rest, level=0.9, resamples=100)
    assert (result.weight, result.value) == (1.0, 11.0)
    assert result.interval == pytest.approx(stats.t.interval(0.9, 5, 11.0, stats.sem(rest)))


def test_what_predictions_are_worth_is_drawn_over_units() -> None:
    """Each of 200 drawn samples is estimated by itself: drawn known units first, then drawn others."""
    rng = np.random.default_rng(4)
    y, rest = rng.random(9), rng.random(14)
    f = y + 0.15 * rng.standard_normal(9)
    result = prediction_powered(y, f, rest, level=0.8, resamples=200, seed=5)
    chance = np.random.default_rng(5)
    rows, columns = chance.integers(0, 9, (200, 9)), chance.integers(0, 14, (200, 14))
    worths = [
        prediction_powered(y[row], f[row], rest[column], resamples=100).worth
        for row, column in zip(rows, columns, strict=True)
    ]
    assert result.worth_interval == pytest.approx(tuple(np.quantile(worths, [0.1, 0.9])))
    assert result.interval is not None
    _, variance, _ = _estimate(y[None], f[None], rest[None])
    assert result.worth == pytest.approx(9 * (np.var(y, ddof=1) / 9 / variance[0] - 1))
    assert (result.level, result.n, result.predicted, result.known_mean) == (0.8, 9, 14, y.mean())
    usual = prediction_powered(y, f, rest)
    assert usual == prediction_powered(y, f, rest, level=0.95, bounds=(math.nan, math.nan), resamples=1000, seed=0)
    assert len({usual.worth_interval, *(prediction_powered(y, f, rest, **more).worth_interval for more in (
        {"resamples": 1001}, {"seed": 1}, {"seed": 2}))}) == 4  # fmt: skip


@pytest.mark.parametrize(
    ("worth", "said"),
    [
        (None, "there are too few data to estimate how much the predictions improve on the 25 known values"),
        (
            (0.0, 7.4),
            (
                "the predictions add no significant information to the 25 known values"
                " (upper limit: as much as 7 more known values)"
            ),
        ),
        (
            (0.1, 7.4),
            (
                "the predictions add as much information as 3 more known values (95% CI [0, 7])"
                " would add to the 25 known values"
            ),
        ),
    ],
)
def test_sentences_of_what_predictions_are_worth(worth: tuple[float, float] | None, said: str) -> None:
    result = PredictionPoweredMean(0.5, None, 0.5, 0.5, None, 25, 9, 3.2, worth, 0.95)
    assert result.sentence == said
    assert result.holds
    assert not PredictionPoweredMean(0.5, None, 0.5, 0.5, None, 24, 9, 3.2, worth, 0.95).holds


def test_predictions_that_leave_no_variance_are_worth_infinitely_many() -> None:
    """In most samples of a perfect judge's 0 and 0.9 the others are all drawn alike, and nothing varies."""
    known = np.array([0.0, 0.9] * 4)
    result = prediction_powered(known, known / 0.9, [0.5, 0.5 + 1e-3], resamples=200)
    assert result.worth_interval is not None
    assert result.worth_interval[1] > result.worth_interval[0] >= 0


def test_three_known_values_and_two_others_are_the_fewest() -> None:
    assert prediction_powered([1, 2, 4], [1, 2, 3], [1, 2], resamples=100).n == 3
    for sizes in ((2, 2, 2), (3, 3, 1)):
        with pytest.raises(InputError, match="at least 3 known values"):
            prediction_powered(*(np.arange(size) for size in sizes))
    for odd in (([1, 2, 3], [1, 2], [1, 2]), ([[1, 2, 3]], [[1, 2, 3]], [1, 2]), ([1, 2, 3], [1, 2, 3], [[1, 2]])):
        with pytest.raises(InputError, match="shapes must be"):
            prediction_powered(*odd)


def test_an_adversary_gets_no_weight() -> None:
    known = np.linspace(0, 1, 30)
    result = prediction_powered(known, 1 - known, 1 - known)
    assert (result.weight, result.value, result.worth, result.worth_interval) == (0.0, known.mean(), 0.0, (0.0, 0.0))
    assert result.interval == pytest.approx(result.known_interval)
    assert "no significant information" in result.sentence


def test_the_estimated_weight_brings_a_bias_to_skew_values_that_a_given_one_does_not() -> None:
    chance = np.random.default_rng(0)

    def errors(n: int) -> tuple[float, float, float]:
        known, others = (chance.random((20_000, size)) * (chance.random((20_000, size)) < 0.1) for size in (n, 8 * n))
        value, variance, _ = _estimate(known, known, others)  # a perfect judge; the mean is 0.05
        given = 0.5 * others.mean(axis=1) + (known - 0.5 * known).mean(axis=1)
        inside = np.abs(value - 0.05) <= student_quantile(0.975, n - 1) * variance**0.5
        return float(value.mean() - 0.05), float(given.mean() - 0.05), float(inside.mean())

    (few, given, covered), (many, _, _) = errors(25), errors(100)
    assert (few, given) == (pytest.approx(-0.011, abs=0.001), pytest.approx(0, abs=0.0005))
    assert many == pytest.approx(few / 4, abs=0.001)  # it shrinks as 1/n
    assert covered == pytest.approx(0.77, abs=0.02)


@pytest.mark.parametrize("sizes", [(2, 2, 5), (3, 4, 5), (5, 5, 1)])
def test_too_few_values_are_refused(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(InputError):
        prediction_powered(*(np.zeros(size) for size in sizes))


def _drawn(kind: str, size: int, shape: tuple[float, float], chance: np.random.Generator) -> tuple[Any, Any]:
    """Draw topic scores between 0 and 1, and what a judge makes of them."""
    truth = chance.beta(*shape, size=size)
    noise = chance.normal(0, 0.1, size)
    seen = {
        "good": np.clip(truth + noise, 0, 1),
        "biased": np.clip(truth + 0.2 + noise, 0, 1),
        "useless": chance.beta(2, 2, size=size),
        "adversarial": 1 - truth,
    }[kind]
    return truth, seen


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(2.0, 2.0), (5.0, 2.0), (0.6, 0.9)])
@pytest.mark.parametrize("kind", ["good", "biased", "useless", "adversarial"])
@pytest.mark.parametrize(("n", "others"), [(25, 100), (50, 50), (100, 400)])
def test_intervals_hold_their_level_and_cost_nothing(
    kind: str, shape: tuple[float, float], n: int, others: int
) -> None:
    chance, draws = np.random.default_rng(n), 4000
    truth, seen = _drawn(kind, draws * (n + others), shape, chance)
    truth, seen = truth.reshape(draws, -1), seen.reshape(draws, -1)
    value, variance, _ = _estimate(truth[:, :n], seen[:, :n], seen[:, n:])
    held = np.abs(value - shape[0] / sum(shape)) <= student_quantile(0.975, n - 1) * variance**0.5
    width = (variance / (truth[:, :n].var(axis=1, ddof=1) / n)) ** 0.5
    assert 0.93 - 0.01 <= held.mean() <= 0.97 + 0.01  # three standard errors of the simulation are 0.01
    assert width.mean() < 1.02
    assert width.mean() < 0.9 or kind in {"useless", "adversarial"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["good", "biased", "adversarial"])
def test_what_a_judge_is_worth_is_inside_its_interval(kind: str) -> None:
    chance, n, others = np.random.default_rng(3), 50, 100
    truth, seen = _drawn(kind, 200_000, (2, 2), chance)
    weight = np.clip(np.cov(truth, seen)[0, 1] / ((1 + n / others) * seen.var()), 0, 1)
    variance = weight**2 * seen.var() / others + (truth - weight * seen).var() / n
    worth = n * (truth.var() / n / variance - 1)
    held = 0
    for seed in range(200):
        truth, seen = _drawn(kind, n + others, (2, 2), chance)
        low, high = prediction_powered(truth[:n], seen[:n], seen[n:], resamples=200, seed=seed).worth_interval
        held += low - 1e-9 <= worth <= high + 1e-9
    assert held >= 180  # 95 % of 200, less three standard errors


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_levels_are_between_0_and_1(level: float) -> None:
    with pytest.raises(InputError, match="level"):
        prediction_powered([1, 2, 3], [1, 2, 3], [1, 2], level=level)


def test_what_is_not_finite_is_refused() -> None:
    with pytest.raises(InputError, match="finite"):
        prediction_powered([1, 2, float("nan")], [1, 2, 3], [1, 2])
