"""Decisions on deployments: sentences, and relative losses by hand and by Fieller's interval."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from judged.online.statistics.allocation import critical_value, prior_size
from judged.online.statistics.users import NO_RELATIVE, AdjustedDifference, RelativeDifference
from judged.online.watch.config import Event
from judged.online.watch.watched import Guard, Rollback, WatchedPoint, WatchedSeries, _guard, _state, rollbacks
from online.watch.test_points import FIRST, config, day

NAN = math.nan


def guard(state: Any, loss_per_day: float = NAN, part: str = "") -> Guard:
    return Guard("clicks", part, -0.1, (-0.2, 0.0), state, loss_per_day)


EVENT = Event(day(20), "ranker 2", deploy=True)


@pytest.mark.parametrize(
    ("decision", "guards", "text"),
    [
        ("roll back", [guard("harmed", 9), guard("ok"), guard("harmed", part="x")],
         "roll back. clicks and clicks of x got worse by more than 5%."),
        ("keep", [guard("ok")], "keep. For all series, the confidence interval excludes a loss of 5% or more."),
        ("keep watching", [guard("ok"), guard("inconclusive", 1234.4)],
         "keep watching. clicks may be worse by more than 5%. Estimated loss per day: 1,234 of clicks."),
        ("keep watching", [guard("inconclusive", 1.0)],
         "keep watching. clicks may be worse by more than 5%. Estimated loss per day: 1 of clicks."),
        ("keep watching", [guard("inconclusive", 0.99), guard("inconclusive", part="x")],
         "keep watching. clicks and clicks of x may be worse by more than 5%."),
        ("no data", [], ("no data. No series with a preferred direction has a baseline of 8 points, 8 points"
          " in the 28 days before the deployment, and a point after the deployment.")),
    ],
)  # fmt: skip
def test_sentences_of_deployments(decision: Any, guards: list[Guard], text: str) -> None:
    assert str(Rollback(EVENT, decision, tuple(guards), 0.05)) == f"Deployment ranker 2 on {day(20)}: {text}"


def seen(values: list[float], *, better: int = 1, part: str = "", sigma: float = 1.0, **options: Any) -> WatchedSeries:
    points = tuple(WatchedPoint(day(i), value, 100.0, sigma, False, False) for i, value in enumerate(values))
    return WatchedSeries(
        "s", part, "ok", points=points, better=better, **{"size": 50.0, "autocorrelation": 0.0, **options}
    )


def test_a_deployment_against_the_weeks_before_by_hand() -> None:
    """20 days at 100 and 5 at 80, of a standard deviation of 1: - 20 %, and 50 times 20 lost a day."""
    harmed = _guard(seen([100.0] * 20 + [80.0] * 5), EVENT, None, 0.05, 0.05)
    assert harmed is not None
    assert (harmed.relative, harmed.loss_per_day, harmed.state) == (pytest.approx(-0.2), pytest.approx(1000), "harmed")
    by_week = _guard(seen([100.0] * 20 + [80.0] * 5, days=7), EVENT, None, 0.05, 0.05)
    assert by_week is not None
    assert by_week.loss_per_day == pytest.approx(1000 / 7)
    gained = _guard(seen([100.0] * 20 + [120.0] * 5), EVENT, None, 0.05, 0.05)
    assert gained is not None
    assert (gained.relative, gained.state, math.isnan(gained.loss_per_day)) == (pytest.approx(0.2), "ok", True)
    # half of the points after it are those of the next deployment
    until_next = _guard(seen([100.0] * 20 + [80.0] * 5 + [150.0] * 5), EVENT, day(25), 0.05, 0.05)
    assert until_next is not None
    assert until_next == harmed
    # what resembles the day before tells less: by sqrt((1 + 0.6) / (1 - 0.6)) = 2
    autocorrelated = _guard(seen([100.0] * 20 + [80.0] * 5, autocorrelation=0.6), EVENT, None, 0.05, 0.05)
    assert autocorrelated is not None
    assert (autocorrelated.ci[1] - autocorrelated.ci[0]) / (harmed.ci[1] - harmed.ci[0]) == pytest.approx(2, rel=0.02)
    noisy = _guard(seen([100.0] * 20 + [80.0] * 5, sigma=2.0), EVENT, None, 0.05, 0.05)
    assert noisy is not None
    assert noisy.ci == pytest.approx(autocorrelated.ci)


@pytest.mark.parametrize(
    ("values", "is_known"),
    [
        ([100.0] * 21, True),
        ([100.0] * 20, False),
        ([NAN] * 12 + [100.0] * 9, True),
        ([NAN] * 13 + [100.0] * 8, False),
        ([100.0] * 20 + [NAN], False),
    ],
)
def test_eight_points_before_and_one_after(values: list[float], is_known: bool) -> None:
    assert (_guard(seen(values), EVENT, None, 0.05, 0.05) is not None) == is_known
    assert _guard(seen(values, sigma=0.0), EVENT, None, 0.05, 0.05) is None


def test_four_weeks_before_a_deployment_count() -> None:
    event = Event(day(40), "x", deploy=True)
    recent = _guard(seen([500.0] * 12 + [100.0] * 28 + [100.0]), event, None, 0.05, 0.05)
    older = _guard(seen([500.0] * 13 + [100.0] * 27 + [100.0]), event, None, 0.05, 0.05)
    assert recent is not None
    assert older is not None
    assert recent.relative == pytest.approx(0.0)
    assert older.relative < -0.05


def test_each_deployment_is_decided_by_series_with_a_direction() -> None:
    next_event = Event(day(30), "ranker 3", deploy=True)
    series = [
        seen([100.0] * 20 + [80.0] * 10 + [79.0] * 10), seen([100.0] * 40, part="x"),
        seen([100.0] * 20 + [1.0] * 20, part="mix"),
        seen([100.0] * 20 + [1.0] * 20, better=0, part="y"), WatchedSeries("none", "", "not monitored", better=1),
    ]  # fmt: skip
    first, second = rollbacks(series, config("", next_event, EVENT, Event(day(3), "left out", day(4))))
    assert (first.event, first.decision, first.margin) == (EVENT, "roll back", 0.1)
    assert [(guard.part, guard.state) for guard in first.guards] == [("", "harmed"), ("x", "ok")]
    assert second.event == next_event
    # the level before the second is 85.7 in the mean of 28 days; from day 2 on, 18 at 100 and 10 at 80: 92.9
    assert second.guards[0].relative == pytest.approx(79 / ((18 * 100 + 10 * 80) / 28) - 1)
    (undecidable,) = rollbacks(series[2:], config("", EVENT))
    assert (undecidable.decision, undecidable.guards) == ("no data", ())
    (undecided,) = rollbacks([seen([100.0] * 20 + [90.0], sigma=3.0)], config("", EVENT))
    assert (undecided.decision, undecided.guards[0].state) == ("keep watching", "inconclusive")
    assert undecided.guards[0].loss_per_day == pytest.approx(500)


def test_the_first_day_of_harm() -> None:
    values = [100.0] * 20 + [99.0, 98.0, 75.0, 70.0, 70.0, 71.0, 69.0]
    series = seen(values, sigma=2.0)
    (decision,) = rollbacks([series], config("", EVENT))
    assert decision.decision == "roll back"
    decisions = [
        rollbacks([replace(series, points=series.points[:count])], config("", EVENT))
        for count in range(21, len(values) + 1)
    ]
    harmful = [next(iter(found)).decision == "roll back" for found in decisions]
    first = len(harmful) - harmful[::-1].index(False) if False in harmful else 0
    assert decision.since == day(20 + first)
    assert first > 1  # the first points after the deployment do not show harm
    (recovered,) = rollbacks([seen([*values, *[100.0] * 12], sigma=2.0)], config("", EVENT))
    assert (recovered.decision, recovered.since) == ("keep", None)


def at_turns(
    values: list[float], *, days: int = 1, better: int = 1, autocorrelation: float = 0.2, part: str = ""
) -> WatchedSeries:
    """Return a watched series with these values; expected values alternate between 10 and 11, and sigmas between 1 and
    2."""
    points = tuple(
        WatchedPoint(FIRST + timedelta(days * i), value, 10.0 + i % 2, 1.0 + i % 2, inside=True, alarm=False)
        for i, value in enumerate(values)
    )
    return WatchedSeries(
        "x", part, "ok", points=points, better=better, days=days, size=50.0, autocorrelation=autocorrelation
    )


@pytest.mark.parametrize(("better", "days"), [(1, 1), (-1, 1), (1, 7)])
def test_a_guard_compares_weighted_means_with_fiellers_interval(better: int, days: int) -> None:
    rng = np.random.default_rng(better + days)
    values = [10.0 + i % 2 + (1.0 + i % 2) * rng.standard_normal() - 1.2 * better * (i >= 40) for i in range(60)]
    day, next_day = FIRST + timedelta(40 * days), FIRST + timedelta(50 * days)
    deploys = [Event(next_day, "next", deploy=True), Event(day, "new", deploy=True), Event(day, "other", until=day)]
    series, reversed_series = at_turns(values, days=days, better=better), at_turns(values[::-1], days=days)
    mix, undirected = at_turns(values, part="mix"), at_turns(values, better=0)
    decisions = list(rollbacks([series, reversed_series, mix, undirected], config("", *deploys, days=39 * days)))
    assert [decision.event.description for decision in decisions] == ["new", "next"]
    assert [len(decision.guards) for decision in decisions] == ([2, 2] if days == 1 else [0, 0])
    if days == 7:  # 28 days before have 4 points
        assert decisions[0].decision == "no data"
        return
    rows = [np.arange(12, 40), np.arange(40, 50)]
    expected, sigma = 10.0 + np.arange(60) % 2, 1.0 + np.arange(60) % 2
    weights = [1 / sigma[side] ** 2 for side in rows]
    means = [
        np.average((np.array(values) - expected)[side], weights=weight)
        for side, weight in zip(rows, weights, strict=True)
    ]
    errors = [math.sqrt(1.2 / 0.8 / weight.sum()) for weight in weights]
    level = np.average(expected[rows[0]], weights=weights[0]) + means[0]
    difference = means[1] - means[0]
    guard = decisions[0].guards[0]
    assert guard.relative == pytest.approx(difference / level)
    critical = critical_value(10 + 27, 27, prior_size(7 + 27, 0.025), 0.025)  # two series
    for limit in guard.ci:  # at the ends the difference less end * level is `critical` standard errors from 0
        variance = errors[1] ** 2 + errors[0] ** 2 + 2 * limit * errors[0] ** 2 + limit**2 * errors[0] ** 2
        assert (difference - limit * level) ** 2 == pytest.approx(critical**2 * variance)
    loss = -better * difference * 50.0
    assert guard.loss_per_day == pytest.approx(loss)
    assert loss > 0


@pytest.mark.parametrize(
    ("after", "sigma", "state", "loss_per_day"),
    [
        ([100.5], 6.0, "inconclusive", None),
        ([99.99], 6.0, "inconclusive", 0.5),
        ([100.0], 6.0, "inconclusive", None),
        ([99.99] * 5, 0.1, "ok", None),
    ],
)
def test_what_may_be_lost_a_day(after: list[float], sigma: float, state: str, loss_per_day: float | None) -> None:
    """A point counts 50: a hundredth less is half a unit a day; what gains, or is fine, costs nothing."""
    result = _guard(seen([100.0] * 20 + after, sigma=sigma), EVENT, None, 0.05, 0.05)
    assert result is not None
    assert result.state == state
    assert result.loss_per_day == pytest.approx(NAN if loss_per_day is None else loss_per_day, nan_ok=True)


def test_a_deployment_lasts_until_the_next_one() -> None:
    values = [*[100.0] * 20, *[80.0] * 4, *[100.0] * 4, *[50.0] * 4]
    deploys = [Event(day(day_number), str(day_number), deploy=True) for day_number in (28, 20, 24)]
    decisions = list(rollbacks([seen(values)], config("", *deploys)))
    assert [decision.event.description for decision in decisions] == ["20", "24", "28"]
    means = [100.0, (20 * 100 + 4 * 80) / 24, (20 * 100 + 4 * 80 + 4 * 100) / 28]
    expected = [after / before - 1 for after, before in zip((80, 100, 50), means, strict=True)]
    assert [decision.guards[0].relative for decision in decisions] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("better", "low", "high", "state"),
    [
        (1, -0.2, -0.11, "harmed"), (1, -0.2, -0.1, "inconclusive"),
        (1, -0.1, 0.1, "inconclusive"), (1, -0.09, 0.1, "ok"),
        (-1, 0.11, 0.2, "harmed"), (-1, 0.1, 0.2, "inconclusive"),
        (-1, -0.1, 0.1, "inconclusive"), (-1, -0.1, 0.09, "ok"),
        (1, 0.2, 0.3, "ok"), (-1, -0.3, -0.2, "ok"), (1, -0.3, 0.3, "inconclusive"), (-1, -0.3, 0.3, "inconclusive"),
    ],
)  # fmt: skip
def test_losses_beyond_the_margin_of_a_tenth(better: int, low: float, high: float, state: str) -> None:
    difference = AdjustedDifference(0.0, 1.0, 0.0, 0.0)
    assert _state(difference, RelativeDifference(0.0, low, high), 2.0, better, 0.1) == state


@pytest.mark.parametrize(
    ("value", "state"), [(-17.5, "harmed"), (-17.0, "inconclusive"), (5.9, "inconclusive"), (6.0, "ok"), (7.0, "ok")]
)
@pytest.mark.parametrize("better", [1, -1])
def test_losses_of_a_baseline_around_0(value: float, state: str, better: int) -> None:
    """6 is half the interval; the level is -2 +- 20, so at most 22, of which a half is 11: beyond -17 is harmed."""
    difference = AdjustedDifference(better * value, 3.0, 0.0, 0.0, -2.0, 10.0)
    assert _state(difference, NO_RELATIVE, 2.0, better, 0.5) == state
