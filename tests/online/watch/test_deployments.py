"""What follows from deployments: decisions, sentences, and relative losses by hand and by Fieller's interval."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from judged.online.statistics.allocation import critical_value, prior_size
from judged.online.statistics.users import NO_RELATIVE, AdjustedDifference, RelativeDifference
from judged.online.watch.config import Event
from judged.online.watch.watched import Guard, Point, Rollback, Watched, _guard, _state, rollbacks
from online.watch.test_points import FIRST, config, day

NAN = math.nan


def guard(state: Any, a_day: float = NAN, part: str = "") -> Guard:
    return Guard("clicks", part, -0.1, (-0.2, 0.0), state, a_day)


EVENT = Event(day(20), "ranker 2", deploy=True)


@pytest.mark.parametrize(
    ("decision", "guards", "text"),
    [
        ("roll back", [guard("harmed", 9), guard("fine"), guard("harmed", part="x")],
         "roll back. clicks and clicks of x got worse by more than 5 %."),
        ("keep", [guard("fine")], "keep. Nothing got worse by 5 %."),
        ("keep watching", [guard("fine"), guard("open", 1234.4)],
         ("keep watching. clicks may have lost more than 5 %."
          " To wait costs some 1,234 a day of clicks, if what was seen goes on.")),
        ("keep watching", [guard("open", 1.0)], ("keep watching. clicks may have lost more than 5 %."
          " To wait costs some 1 a day of clicks, if what was seen goes on.")),
        ("keep watching", [guard("open", 0.99), guard("open", part="x")],
         "keep watching. clicks and clicks of x may have lost more than 5 %."),
        ("nothing is known", [], ("nothing is known: no series with a direction has a baseline of 8 points, 8 points"
          " in the 28 days before the deployment, and a point after it.")),
    ],
)  # fmt: skip
def test_sentences_of_deployments(decision: Any, guards: list[Guard], text: str) -> None:
    assert str(Rollback(EVENT, decision, tuple(guards), 0.05)) == f"ranker 2 of {day(20)}: {text}"


def seen(values: list[float], *, better: int = 1, part: str = "", sigma: float = 1.0, **more: Any) -> Watched:
    points = tuple(Point(day(at), value, 100.0, sigma, False, False) for at, value in enumerate(values))
    return Watched("s", part, "fine", points=points, better=better, **{"size": 50.0, "alike": 0.0, **more})


def test_a_deployment_against_the_weeks_before_by_hand() -> None:
    """20 days at 100 and 5 at 80, of a standard deviation of 1: - 20 %, and 50 times 20 lost a day."""
    found = _guard(seen([100.0] * 20 + [80.0] * 5), EVENT, None, 0.05, 0.05)
    assert found is not None
    assert (found.relative, found.a_day, found.state) == (pytest.approx(-0.2), pytest.approx(1000), "harmed")
    weekly = _guard(seen([100.0] * 20 + [80.0] * 5, days=7), EVENT, None, 0.05, 0.05)
    assert weekly is not None
    assert weekly.a_day == pytest.approx(1000 / 7)
    gained = _guard(seen([100.0] * 20 + [120.0] * 5), EVENT, None, 0.05, 0.05)
    assert gained is not None
    assert (gained.relative, gained.state, math.isnan(gained.a_day)) == (pytest.approx(0.2), "fine", True)
    # half of the points after it are those of the next deployment
    cut = _guard(seen([100.0] * 20 + [80.0] * 5 + [150.0] * 5), EVENT, day(25), 0.05, 0.05)
    assert cut is not None
    assert cut == found
    # what resembles the day before tells less: by sqrt((1 + 0.6) / (1 - 0.6)) = 2
    wide = _guard(seen([100.0] * 20 + [80.0] * 5, alike=0.6), EVENT, None, 0.05, 0.05)
    assert wide is not None
    assert (wide.ci[1] - wide.ci[0]) / (found.ci[1] - found.ci[0]) == pytest.approx(2, rel=0.02)
    lesser = _guard(seen([100.0] * 20 + [80.0] * 5, sigma=2.0), EVENT, None, 0.05, 0.05)
    assert lesser is not None
    assert lesser.ci == pytest.approx(wide.ci)


@pytest.mark.parametrize(
    ("values", "known"),
    [
        ([100.0] * 21, True),
        ([100.0] * 20, False),
        ([NAN] * 12 + [100.0] * 9, True),
        ([NAN] * 13 + [100.0] * 8, False),
        ([100.0] * 20 + [NAN], False),
    ],
)
def test_eight_points_before_and_one_after(values: list[float], known: bool) -> None:
    assert (_guard(seen(values), EVENT, None, 0.05, 0.05) is not None) == known
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
    later = Event(day(30), "ranker 3", deploy=True)
    found = [
        seen([100.0] * 20 + [80.0] * 10 + [79.0] * 10), seen([100.0] * 40, part="x"),
        seen([100.0] * 20 + [1.0] * 20, part="mix"),
        seen([100.0] * 20 + [1.0] * 20, better=0, part="y"), Watched("none", "", "not watched", better=1),
    ]  # fmt: skip
    first, second = rollbacks(found, config("", later, EVENT, Event(day(3), "left out", day(4))))
    assert (first.event, first.decision, first.margin) == (EVENT, "roll back", 0.1)
    assert [(one.part, one.state) for one in first.guards] == [("", "harmed"), ("x", "fine")]
    assert second.event == later
    # the level before the second is 85.7 in the mean of 28 days; from day 2 on, 18 at 100 and 10 at 80: 92.9
    assert second.guards[0].relative == pytest.approx(79 / ((18 * 100 + 10 * 80) / 28) - 1)
    (none,) = rollbacks(found[2:], config("", EVENT))
    assert (none.decision, none.guards) == ("nothing is known", ())
    (open_,) = rollbacks([seen([100.0] * 20 + [90.0], sigma=3.0)], config("", EVENT))
    assert (open_.decision, open_.guards[0].state) == ("keep watching", "open")
    assert open_.guards[0].a_day == pytest.approx(500)


def at_turns(values: list[float], *, days: int = 1, better: int = 1, alike: float = 0.2, part: str = "") -> Watched:
    """Return a watched series of these values; expected values and sigmas are in turn 10 and 11, 1 and 2."""
    points = tuple(
        Point(FIRST + timedelta(days * at), value, 10.0 + at % 2, 1.0 + at % 2, inside=True, alarm=False)
        for at, value in enumerate(values)
    )
    return Watched("x", part, "fine", points=points, better=better, days=days, size=50.0, alike=alike)


@pytest.mark.parametrize(("better", "days"), [(1, 1), (-1, 1), (1, 7)])
def test_a_guard_compares_weighted_means_with_fiellers_interval(better: int, days: int) -> None:
    rng = np.random.default_rng(better + days)
    values = [10.0 + at % 2 + (1.0 + at % 2) * rng.standard_normal() - 1.2 * better * (at >= 40) for at in range(60)]
    day, later = FIRST + timedelta(40 * days), FIRST + timedelta(50 * days)
    deploys = [Event(later, "next", deploy=True), Event(day, "new", deploy=True), Event(day, "other", until=day)]
    one, other = at_turns(values, days=days, better=better), at_turns(values[::-1], days=days)
    mix, undirected = at_turns(values, part="mix"), at_turns(values, better=0)
    found = list(rollbacks([one, other, mix, undirected], config("", *deploys, days=39 * days)))
    assert [made.event.what for made in found] == ["new", "next"]
    assert [len(made.guards) for made in found] == ([2, 2] if days == 1 else [0, 0])
    if days == 7:  # 28 days before have 4 points
        assert found[0].decision == "nothing is known"
        return
    rows = [np.arange(12, 40), np.arange(40, 50)]
    expected, sigma = 10.0 + np.arange(60) % 2, 1.0 + np.arange(60) % 2
    weights = [1 / sigma[side] ** 2 for side in rows]
    means = [np.average((np.array(values) - expected)[side], weights=w) for side, w in zip(rows, weights, strict=True)]
    errors = [math.sqrt(1.2 / 0.8 / w.sum()) for w in weights]
    level = np.average(expected[rows[0]], weights=weights[0]) + means[0]
    difference = means[1] - means[0]
    guard = found[0].guards[0]
    assert guard.relative == pytest.approx(difference / level)
    critical = critical_value(10 + 27, 27, prior_size(7 + 27, 0.025), 0.025)  # two series
    for end in guard.ci:  # at the ends the difference less end * level is `critical` standard errors from 0
        variance = errors[1] ** 2 + errors[0] ** 2 + 2 * end * errors[0] ** 2 + end**2 * errors[0] ** 2
        assert (difference - end * level) ** 2 == pytest.approx(critical**2 * variance)
    lost = -better * difference * 50.0
    assert guard.a_day == pytest.approx(lost)
    assert lost > 0


@pytest.mark.parametrize(
    ("after", "sigma", "state", "a_day"),
    [
        ([100.5], 6.0, "open", None),
        ([99.99], 6.0, "open", 0.5),
        ([100.0], 6.0, "open", None),
        ([99.99] * 5, 0.1, "fine", None),
    ],
)
def test_what_may_be_lost_a_day(after: list[float], sigma: float, state: str, a_day: float | None) -> None:
    """A point counts 50: a hundredth less is half a unit a day; what gains, or is fine, costs nothing."""
    found = _guard(seen([100.0] * 20 + after, sigma=sigma), EVENT, None, 0.05, 0.05)
    assert found is not None
    assert found.state == state
    assert found.a_day == pytest.approx(NAN if a_day is None else a_day, nan_ok=True)


def test_a_deployment_lasts_until_the_next_one() -> None:
    values = [*[100.0] * 20, *[80.0] * 4, *[100.0] * 4, *[50.0] * 4]
    deploys = [Event(day(at), str(at), deploy=True) for at in (28, 20, 24)]
    found = list(rollbacks([seen(values)], config("", *deploys)))
    assert [one.event.what for one in found] == ["20", "24", "28"]
    means = [100.0, (20 * 100 + 4 * 80) / 24, (20 * 100 + 4 * 80 + 4 * 100) / 28]
    expected = [after / before - 1 for after, before in zip((80, 100, 50), means, strict=True)]
    assert [one.guards[0].relative for one in found] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("better", "low", "high", "state"),
    [
        (1, -0.2, -0.11, "harmed"), (1, -0.2, -0.1, "open"), (1, -0.1, 0.1, "open"), (1, -0.09, 0.1, "fine"),
        (-1, 0.11, 0.2, "harmed"), (-1, 0.1, 0.2, "open"), (-1, -0.1, 0.1, "open"), (-1, -0.1, 0.09, "fine"),
        (1, 0.2, 0.3, "fine"), (-1, -0.3, -0.2, "fine"), (1, -0.3, 0.3, "open"), (-1, -0.3, 0.3, "open"),
    ],
)  # fmt: skip
def test_losses_beyond_the_margin_of_a_tenth(better: int, low: float, high: float, state: str) -> None:
    made = AdjustedDifference(0.0, 1.0, 0.0, 0.0)
    assert _state(made, RelativeDifference(0.0, low, high), 2.0, better, 0.1) == state


@pytest.mark.parametrize(
    ("value", "state"), [(-17.5, "harmed"), (-17.0, "open"), (5.9, "open"), (6.0, "fine"), (7.0, "fine")]
)
@pytest.mark.parametrize("better", [1, -1])
def test_losses_of_a_baseline_around_0(value: float, state: str, better: int) -> None:
    """6 is half the interval; the level is -2 +- 20, so at most 22, of which a half is 11: beyond -17 is harmed."""
    made = AdjustedDifference(better * value, 3.0, 0.0, 0.0, -2.0, 10.0)
    assert _state(made, NO_RELATIVE, 2.0, better, 0.5) == state
