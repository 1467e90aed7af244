"""Labels with too few data: values and reasons without intervals or verdicts, and coverage in small samples."""

from __future__ import annotations

import math

import numpy as np
import pytest

from judged.labels.corrected_systems import topic_interval
from judged.labels.estimation import StratifiedSample, mean_estimate
from judged.labels.trust import _share_interval  # pyright: ignore[reportPrivateUsage]
from judged.stats.agreement import cohen_kappa, krippendorff_alpha
from judged.stats.prediction_powered import prediction_powered


@pytest.mark.parametrize(("means", "interval"), [([0.1, 0.5], False), ([0.1, 0.5, 0.3], True), ([0.2] * 9, False)])
def test_means_over_topics_need_three_topics_that_vary(means: list[float], interval: bool) -> None:
    assert (topic_interval(np.array(means), 0.95) is not None) is interval


def test_an_interval_over_topics_is_students() -> None:
    """0.1, 0.3, 0.5: the standard error is 0.2 / sqrt(3), Student's quantile with 2 degrees of freedom 4.302653."""
    half = 4.302653 * 0.2 / math.sqrt(3)
    assert topic_interval(np.array([0.1, 0.5, 0.3]), 0.95) == pytest.approx((0.3 - half, 0.3 + half), rel=1e-6)


@pytest.mark.parametrize(("size", "interval"), [(0, False), (2, False), (3, True)])
def test_shares_of_documents_need_three(size: int, interval: bool) -> None:
    assert (_share_interval(size, size, 0.95) is not None) is interval


@pytest.mark.parametrize(("varied", "interval"), [(5, False), (6, True)])
def test_agreement_has_an_interval_from_six_varying_documents_on(varied: int, interval: bool) -> None:
    """Of 60 documents, `varied` have a grade other than the most frequent, from one of the judges or both."""
    first, second = np.zeros(60), np.zeros(60)
    first[: varied - 1], second[1:varied] = 1.0, 1.0
    for agreement in (cohen_kappa(first, second), krippendorff_alpha(np.stack([first, second], axis=1))):
        assert not math.isnan(agreement.value)
        assert (agreement.interval is not None) is interval


def test_five_topics_have_an_interval_and_no_verdict_on_agreement() -> None:
    first, second = np.array([0.0, 1, 1, 0, 1, 0, 1, 0, 1, 0]), np.array([1.0, 0, 0, 1, 0, 1, 0, 1, 1, 0])
    groups = np.repeat(np.arange(5), 2)
    few = cohen_kappa(first, second, groups=groups)
    assert few.value < 0
    assert "disagree more" not in few.sentence


@pytest.mark.parametrize(
    ("values", "sizes", "interval"),
    [
        ([1.0, 3.0], [4], False),  # two of four units
        ([1.0, 3.0, 2.0], [4], True),
        ([2.0, 2.0, 2.0], [4], False),  # no variation, and one unit is not in the sample
        ([2.0, 2.0, 2.0], [3], True),  # all units are in the sample
    ],
)
def test_a_sample_has_an_interval_from_three_units_that_vary(
    values: list[float], sizes: list[int], interval: bool
) -> None:
    sample = StratifiedSample(np.zeros(len(values), dtype=np.int64), np.array(sizes), np.array([0]), 1)
    unit_values = np.array(values)
    mean = mean_estimate(sample, sample.totals(unit_values), unit_values)
    assert mean.value == pytest.approx(sizes[0] * unit_values.mean())
    assert (mean.limits is not None) is interval
    if sizes == [3]:
        assert mean.limits == (6.0, 6.0)


def test_constant_values_have_no_interval() -> None:
    mean = prediction_powered([0.5] * 8, [0.5] * 8, [0.5] * 20, resamples=100)
    assert (mean.value, mean.interval, mean.known_interval, mean.worth_interval) == (0.5, None, None, None)
    five_topics = prediction_powered([0.1, 0.2, 0.4, 0.3, 0.5], [0.1, 0.3, 0.3, 0.3, 0.5], np.linspace(0, 1, 20))
    assert five_topics.interval is not None
    assert five_topics.worth_interval is None  # too few for the interval of `worth`
    assert "too few data" in five_topics.sentence


def collapse_coverage(share: float, n: int, trials: int) -> float:
    """Return the coverage of intervals if a good judge returns 0 on a share of topics."""
    rng, covered = np.random.default_rng([n, int(100 * share)]), 0
    for _ in range(trials):
        truth = rng.beta(2, 2, size=5 * n)
        judge = np.clip(truth + rng.normal(0, 0.02, 5 * n), 0, 1) * (rng.random(5 * n) >= share)
        mean = prediction_powered(truth[:n], judge[:n], judge[n:], bounds=(0, 1), resamples=100)
        assert mean.interval is not None
        covered += mean.interval[0] <= 0.5 <= mean.interval[1]
    return covered / trials


@pytest.mark.parametrize("share", [0.03, 0.1])
def test_intervals_of_corrected_means_cover_if_a_judge_fails_on_few_topics(share: float) -> None:
    assert collapse_coverage(share, 25, 250) >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 250)


def test_bounds_widen_intervals_for_errors_that_no_known_topic_shows() -> None:
    """A perfect judge on the known topics: without bounds, only the variance of the other topics remains."""
    known_scores = np.linspace(0.1, 0.9, 25)
    other_scores = np.linspace(0.05, 0.95, 100)
    narrow = prediction_powered(known_scores, known_scores, other_scores, resamples=100)
    wide = prediction_powered(known_scores, known_scores, other_scores, bounds=(0, 1), resamples=100)
    assert narrow.interval is not None
    assert wide.interval is not None
    assert wide.value == narrow.value
    assert wide.interval[0] < narrow.interval[0] < narrow.interval[1] < wide.interval[1]
    too_narrow = prediction_powered(
        known_scores, known_scores, other_scores, bounds=(0, 0.2), resamples=100
    )  # no bounds of these values
    assert too_narrow.interval == narrow.interval
