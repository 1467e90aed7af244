"""Detection of changes: published run lengths, simulations of false alarms, delays, and positions, and edge cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from history.simulated import deviation, series
from judged.history.detection import MIN_EVALUATIONS, Shift, alarm_threshold, change_probabilities, detect

EVALUATIONS = 365  # per false alarm


@pytest.mark.parametrize(("threshold", "run_length"), [(4.0, 168), (5.0, 465)])
def test_threshold_has_the_published_run_length(threshold: float, run_length: float) -> None:
    # Montgomery, Introduction to Statistical Quality Control (2009), table 9.3: k = 0.5, both sides.
    assert alarm_threshold(run_length) == pytest.approx(threshold, abs=0.05)


@pytest.mark.parametrize(
    "noise",
    [{}, {"common": 0.01}, {"common": 0.01, "autocorrelation": 0.3}],
    ids=["topics", "shared", "autocorrelated"],
)  # fmt: skip
def test_false_alarms_are_at_most_as_declared(noise: Any) -> None:
    rng, threshold, repetitions = np.random.default_rng(9401), alarm_threshold(EVALUATIONS), 400
    counts = [len(detect(series(rng, 200, **noise), threshold, 0.0).shifts) for _ in range(repetitions)]
    expected = repetitions * 200 / EVALUATIONS
    assert 0.25 * expected < sum(counts) < expected + 2.6 * np.sqrt(expected)


@pytest.mark.parametrize("noise", [{}, {"common": 0.01}], ids=["topics", "shared"])
@pytest.mark.parametrize("evaluations", [25, 60])
def test_delay_of_a_detectable_change_is_as_declared(evaluations: int, noise: Any) -> None:
    rng, threshold = np.random.default_rng(9402), alarm_threshold(EVALUATIONS)
    in_time, delays = list[bool](), list[float]()
    while len(in_time) < 300:
        values = series(rng, evaluations + 40, **noise)
        before = detect(values[:evaluations], threshold, 0.0)
        if before.shifts:  # a false alarm
            continue
        values[evaluations:] -= before.detectable
        detected = [shift.detected - evaluations + 1 for shift in detect(values, threshold, 0.0).shifts]
        in_time.append(bool(detected) and detected[0] <= before.delay)
        delays.append(before.delay)
    assert np.mean(in_time) > 0.8 - 2.0 * np.sqrt(0.8 * 0.2 / 300)
    assert 3 <= min(delays) <= max(delays) <= 12


@pytest.mark.parametrize(("size", "varied"), [(4.0, 0.0), (2.0, 0.05)], ids=["same on all topics", "varied"])
def test_position_of_a_change_is_right_in_nine_of_ten(size: float, varied: float) -> None:
    rng, threshold = np.random.default_rng(9403), alarm_threshold(EVALUATIONS)
    right, likely = list[bool](), list[bool]()
    for _ in range(200):
        at = int(rng.integers(20, 80))
        shifts = detect(series(rng, 100, [(at, -size * deviation())], varied=varied), threshold, 0.0).shifts
        nearest = min(shifts, key=lambda shift: abs(shift.start - at), default=None)
        right.append(nearest is not None and nearest.start == at)
        likely.append(nearest is not None and at in nearest.likely(0.9))
    assert np.mean(right) >= (0.97 if varied else 0.9)
    assert np.mean(likely) >= 0.9


def test_without_noise_every_change_above_the_margin_is_detected_at_once() -> None:
    values = np.tile([0.5, 0.3, 0.7], (40, 1))
    values[20:, 0] += 0.1  # mean +0.033, by 7%
    values[30:, 1] -= 0.01  # mean -0.003, by 0.6%
    detection = detect(values, alarm_threshold(EVALUATIONS), 0.01)
    assert [(shift.start, shift.detected) for shift in detection.shifts] == [(20, 20)]
    assert [(s.start, s.detected) for s in detect(values, alarm_threshold(EVALUATIONS), 0.0).shifts] == [
        (20, 20),
        (30, 30),
    ]


def test_one_bad_night_begins_and_ends() -> None:
    values = series(np.random.default_rng(5), 40)
    values[25] -= 0.2
    detection = detect(values, alarm_threshold(EVALUATIONS), 0.01)
    assert [(shift.start, shift.detected) for shift in detection.shifts] == [(25, 25), (26, 26)]


@pytest.mark.parametrize("evaluations", [1, 2, MIN_EVALUATIONS - 1])
def test_too_few_evaluations_have_no_changes(evaluations: int) -> None:
    values = series(np.random.default_rng(1), evaluations, [(evaluations // 2, 0.4)])
    detection = detect(values, alarm_threshold(EVALUATIONS), 0.0)
    assert detection.shifts == ()
    assert np.isnan(detection.deviation)
    assert np.isnan(detection.delay)


def test_decisions_do_not_depend_on_later_evaluations() -> None:
    values, threshold = series(np.random.default_rng(8), 90, [(30, -0.05), (60, 0.03)]), alarm_threshold(EVALUATIONS)
    alarms = [shift.detected for shift in detect(values, threshold, 0.0).shifts]
    for length in range(2, 91):
        assert [shift.detected for shift in detect(values[:length], threshold, 0.0).shifts] == [
            alarm for alarm in alarms if alarm < length
        ]


def test_probabilities_of_one_topic_by_hand() -> None:
    # One topic: the centered part is 0, and the mean has the likelihood exp(explained / 2 variance).
    values = np.array([[0.0], [1.0], [4.0], [5.0]])
    explained = np.array([(0 - 10 / 4) ** 2 * 4 / 3, (1 - 2 * 10 / 4) ** 2 * 4 / 4, (5 - 3 * 10 / 4) ** 2 * 4 / 3])
    variance = (17.0 - explained.max()) / 2
    expected = np.exp(explained / 2 / variance)
    # The prior of the changes of topics differs a little between positions.
    assert change_probabilities(values) == pytest.approx(expected / expected.sum(), rel=0.05)


def test_likely_evaluations_grow_towards_the_more_probable_side() -> None:
    shift = Shift(12, 14, np.array([0.05, 0.2, 0.6, 0.1, 0.05]), 10)
    assert list(shift.likely(0.6)) == [12]
    assert list(shift.likely(0.7)) == [11, 12]
    assert list(shift.likely(0.9)) == [11, 12, 13]
    assert list(shift.likely(1.0)) == [10, 11, 12, 13, 14]
