"""Labels with too little data: values and reasons, without intervals or verdicts; and means that hold at the edge."""

from __future__ import annotations

import math

import numpy as np
import pytest

from judged.labels.corrected_systems import topic_interval
from judged.labels.estimation import Design, mean_estimate
from judged.labels.trust import _share  # pyright: ignore[reportPrivateUsage]
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
    assert (_share(size, size, 0.95) is not None) is interval


@pytest.mark.parametrize(("varied", "interval"), [(5, False), (6, True)])
def test_where_a_grade_is_rare_agreement_has_an_interval_from_six_things_with_it_on(
    varied: int, interval: bool
) -> None:
    """Of 60 things `varied` have another grade than the most frequent one, by one of the judges or both."""
    first, second = np.zeros(60), np.zeros(60)
    first[: varied - 1], second[1:varied] = 1.0, 1.0
    for found in (cohen_kappa(first, second), krippendorff_alpha(np.stack([first, second], axis=1))):
        assert not math.isnan(found.value)
        assert (found.interval is not None) is interval


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
        ([2.0, 2.0, 2.0], [4], False),  # all alike, and one is not known
        ([2.0, 2.0, 2.0], [3], True),  # nothing is left to chance
    ],
)
def test_a_sample_has_an_interval_from_three_units_that_vary(
    values: list[float], sizes: list[int], interval: bool
) -> None:
    design = Design(np.zeros(len(values), dtype=np.int64), np.array(sizes), np.array([0]), 1)
    drawn = np.array(values)
    found = mean_estimate(design, design.totals(drawn), drawn)
    assert found.value == pytest.approx(sizes[0] * drawn.mean())
    assert (found.limits is not None) is interval
    if sizes == [3]:
        assert found.limits == (6.0, 6.0)


def test_known_values_that_are_all_the_same_have_no_interval() -> None:
    found = prediction_powered([0.5] * 8, [0.5] * 8, [0.5] * 20, resamples=100)
    assert (found.value, found.interval, found.known_interval, found.worth_interval) == (0.5, None, None, None)
    five = prediction_powered([0.1, 0.2, 0.4, 0.3, 0.5], [0.1, 0.3, 0.3, 0.3, 0.5], np.linspace(0, 1, 20))
    assert five.interval is not None
    assert five.worth_interval is None  # too few to say what the judge is worth
    assert "too little data" in five.sentence


def collapse_coverage(share: float, n: int, trials: int) -> float:
    """Return how often intervals hold the mean where a good judge says 0 on a share of topics."""
    chance, held = np.random.default_rng([n, int(100 * share)]), 0
    for _ in range(trials):
        truth = chance.beta(2, 2, size=5 * n)
        judge = np.clip(truth + chance.normal(0, 0.02, 5 * n), 0, 1) * (chance.random(5 * n) >= share)
        found = prediction_powered(truth[:n], judge[:n], judge[n:], bounds=(0, 1), resamples=100)
        assert found.interval is not None
        held += found.interval[0] <= 0.5 <= found.interval[1]
    return held / trials


@pytest.mark.parametrize("share", [0.03, 0.1])
def test_corrected_means_hold_where_a_judge_collapses_on_few_topics(share: float) -> None:
    assert collapse_coverage(share, 25, 250) >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 250)


def test_bounds_allow_for_what_no_known_topic_shows() -> None:
    """A perfect judge on the known topics: without bounds the residuals leave only the others' variance."""
    known = np.linspace(0.1, 0.9, 25)
    others = np.linspace(0.05, 0.95, 100)
    narrow = prediction_powered(known, known, others, resamples=100)
    wide = prediction_powered(known, known, others, bounds=(0, 1), resamples=100)
    assert narrow.interval is not None
    assert wide.interval is not None
    assert wide.value == narrow.value
    assert wide.interval[0] < narrow.interval[0] < narrow.interval[1] < wide.interval[1]
    beyond = prediction_powered(known, known, others, bounds=(0, 0.2), resamples=100)  # no bounds of these values
    assert beyond.interval == narrow.interval
