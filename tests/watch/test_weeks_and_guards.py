"""Weeks, levels, and guards of a watched series against plain calculations on the values that were given."""

from __future__ import annotations

import math
from datetime import date, timedelta

import numpy as np
import pytest

from judged.stats.always_valid import critical_value, prior_size
from judged.watch.config import Event, LogSeries, WatchConfig
from judged.watch.points import Meaning
from judged.watch.rollback import rollbacks
from judged.watch.watched import Days, Point, Watched, watched

FIRST = date(2026, 1, 1)


def config(base: int, *event: Event) -> WatchConfig:
    return WatchConfig(FIRST, FIRST + timedelta(base - 1), log=LogSeries(("PageCTR",)), event=event)


def test_days_of_a_point_are_weighted_by_their_sizes_and_missing_ones_left_out() -> None:
    rng = np.random.default_rng(5)
    n = 7 * 20 + 3
    sizes = rng.integers(20, 60, n).astype(float)
    values = 0.05 + 0.02 * rng.standard_normal(n)
    values[[3, 10, 139]] = np.nan
    found = watched(
        ("x", ""), Days(FIRST, values, np.full(n, 0.03), sizes), Meaning(1, share=True), config(7 * 18), 0.01
    )
    assert (found.days, len(found.points)) == (7, 20)
    totals = []
    for week, point in enumerate(found.points):
        rows = [row for row in range(7 * week, 7 * week + 7) if not math.isnan(values[row])]
        assert point.start == FIRST + timedelta(7 * week)
        assert point.value == pytest.approx(np.average(values[rows], weights=sizes[rows]))
        assert point.inside is (week < 18)
        totals.append(sizes[rows].sum())
    assert found.size == pytest.approx(np.mean(totals))
    assert found.level == pytest.approx(found.points[-1].value)  # of one week


def test_the_level_is_the_weighted_mean_of_the_last_seven_days_with_a_value() -> None:
    rng = np.random.default_rng(6)
    n = 60
    values, sizes = 0.3 + 0.01 * rng.standard_normal(n), rng.integers(100, 900, n).astype(float)
    values[[52, 57]] = np.nan
    found = watched(("x", ""), Days(FIRST, values, np.full(n, 0.01), sizes), Meaning(0), config(40), 1e-6)
    rows = [row for row in range(n) if not math.isnan(values[row])][-7:]
    assert found.state == "fine"
    assert found.level == pytest.approx(np.average(values[rows], weights=sizes[rows]))
    assert found.since is None


def series(values: list[float], *, days: int = 1, better: int = 1, alike: float = 0.2, part: str = "") -> Watched:
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
    one, other = series(values, days=days, better=better), series(values[::-1], days=days)
    mix, undirected = series(values, part="mix"), series(values, better=0)
    found = list(rollbacks([one, other, mix, undirected], config(39 * days, *deploys)))
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
