"""Intervals from influences of units: against derivatives, DeLong, a bootstrap of units, and a known truth."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from judged.errors import InputError
from judged.online.log import need
from judged.online.offline import agreement
from judged.online.offline import concordance as relations
from judged.online.offline.concordance import (
    Compared,
    Estimate,
    calibration,
    correlated,
    influenced,
    ordered,
    pairs_of,
    probability,
    ratio_estimate,
    slope,
    topic_relation,
)
from judged.stats.ratio import ratio_interval

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.results.types import Floats, Ints

NAMES = ("pooled", "within", "tau", "slope")


def simulated(rng: np.random.Generator, users: int, bar: float = 0.0, topics: int = 15) -> tuple[Any, ...]:
    """Pages of users who differ, of topics that differ, in score and in outcome; some users have many pages."""
    unit = np.repeat(np.arange(users), 1 + np.minimum(rng.pareto(2, users) * 4, 30).astype(np.int64))
    topic = rng.integers(topics, size=len(unit))
    luck, hard = rng.normal(size=users)[unit], np.linspace(-1, 1, topics)[topic]
    score = np.round(0.7 * luck + hard + rng.normal(size=len(unit)), 1)
    value = 0.6 * luck + 0.5 * hard + 0.5 * score + rng.normal(size=len(unit)) > bar
    return score, value * 1.0, unit, topic


def estimates(score: Floats, value: Floats, unit: Ints, topic: Ints) -> list[Estimate]:
    pairs, pages = pairs_of(score, value), compared(score, value, unit, topic)
    return [ordered(pairs, unit, 0.95), ordered(pairs_of(score, value, topic), unit, 0.95),
            correlated(pairs, unit, 0.95), slope(pages, 0.95)]  # fmt: skip


def compared(score: Floats, value: Floats, unit: Ints, topic: Ints) -> Compared:
    return Compared("m", "o", score, value, (1, 1), unit, topic, 0 * unit, share=True)


def weighted(score: Floats, value: Floats, unit: Ints, topic: Ints) -> Callable[[Floats], Floats]:
    """Give a function from weights of units, (U,), to the four statistics, by enumeration of pairs of pages."""
    x, y, same = (one[:, None] - one for one in (score, value, topic))
    every: list[Floats] = []
    for table in (
        np.sign(x) * np.sign(y),
        x != 0,
        y != 0,
        np.sign(x) * np.sign(y) * (same == 0),
        (y != 0) * (same == 0),
    ):
        rows = np.stack([np.bincount(unit, row) for row in table.T.astype(float)])
        every.append(np.stack([np.bincount(unit, row) for row in rows.T]))

    def statistics(weights: Floats) -> Floats:
        net, first, second, inside, those = (weights @ table @ weights for table in every)
        w = weights[unit]
        dx, dy = (one - np.average(one, weights=w) for one in (score, value))
        return np.array([(1 + net / second) / 2, (1 + inside / those) / 2, net / math.sqrt(first * second),
                         (w * dx) @ dy / ((w * dx) @ dx)])  # fmt: skip

    return statistics


def derivatives(statistics: Callable[[Floats], Floats], units: int) -> Floats:
    """Differentiate by the weight of each unit: (U, K)."""
    small = 1e-5 * np.eye(units)
    return np.stack([(statistics(1 + one) - statistics(1 - one)) / 2e-5 for one in small])


def caught(monkeypatch: pytest.MonkeyPatch, module: Any) -> list[Floats]:
    """Give the list that influences go to."""
    found: list[Floats] = []

    def catching(value: float, influence: Floats, *rest: Any, **more: Any) -> Estimate:
        found.append(influence)
        return influenced(value, influence, *rest, **more)

    monkeypatch.setattr(module, "influenced", catching)
    return found


def test_influences_are_derivatives_by_the_weight_of_a_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    found = caught(monkeypatch, relations)
    pages = simulated(np.random.default_rng(3), 25)
    made, statistics = estimates(*pages), weighted(*pages)
    assert [one.value for one in made] == pytest.approx(statistics(np.ones(25)), abs=1e-12)
    found[2] = 2 * found[2]  # of (1 + tau) / 2
    np.testing.assert_allclose(np.stack(found, axis=1), derivatives(statistics, 25), atol=1e-8)


def test_areas_of_independent_pages_have_the_error_of_delong() -> None:
    rng = np.random.default_rng(5)
    score, clicked = rng.normal(size=400), rng.random(400) < 0.3
    score[clicked] += 0.7
    placed = np.sign(score[clicked][:, None] - score[~clicked]) / 2 + 0.5
    variance = placed.mean(axis=1).var(ddof=1) / clicked.sum() + placed.mean(axis=0).var(ddof=1) / (~clicked).sum()
    found = ordered(pairs_of(score, clicked * 1.0), np.arange(400), 0.95)
    assert found.value == pytest.approx(placed.mean())
    wanted = ratio_interval(placed.mean(), math.sqrt(variance), 400, 0.95, share=True)
    assert [found.low, found.high] == pytest.approx(wanted, abs=2e-3)


def test_errors_are_those_of_resampled_users() -> None:
    rng = np.random.default_rng(7)
    pages = simulated(rng, 80)
    statistics = weighted(*pages)
    drawn = np.stack([statistics(row.astype(float)) for row in rng.multinomial(80, np.full(80, 1 / 80), size=1500)])
    for name, one, spread in zip(NAMES, estimates(*pages), drawn.std(axis=0), strict=True):
        assert (one.high - one.low) / 4 == pytest.approx(spread, rel=0.12), name  # two errors each way


@cache
def known(bar: float) -> list[float]:
    """Take what very many users give for the truth."""
    return [one.value for one in estimates(*simulated(np.random.default_rng(11), 10_000, bar))]


@pytest.mark.parametrize(("users", "bar", "runs"), [(30, 0.0, 200), (100, 2.5, 100), (500, 0.0, 40)])
def test_intervals_over_users_cover(users: int, bar: float, runs: int) -> None:
    """With a bar of 2.5 one page of ten is clicked."""
    rng, truth, covered = np.random.default_rng(users), known(bar), np.zeros(4)
    for _ in range(runs):
        made = estimates(*simulated(rng, users, bar))
        covered += [one.low <= value <= one.high for one, value in zip(made, truth, strict=True)]
    luck = 3 * math.sqrt(0.95 * 0.05 / runs)
    assert (covered / runs >= 0.95 - luck).all(), covered / runs
    assert (covered / runs <= 0.95 + luck + 0.015).all(), covered / runs  # few clicks: a little too wide


def test_intervals_over_pages_that_users_see_again_are_too_narrow() -> None:
    score, value, *_ = (np.repeat(one, 4) for one in simulated(np.random.default_rng(12), 200))
    page = np.arange(len(score)) // 4  # each page four times
    over_pages, over_views = (ordered(pairs_of(score, value), who, 0.95) for who in (page, np.arange(len(score))))
    assert over_pages.value == over_views.value
    assert (over_pages.high - over_pages.low) / (over_views.high - over_views.low) == pytest.approx(2.0, rel=0.03)


def test_one_unit_has_values_and_no_interval() -> None:
    score, value, unit, topic = simulated(np.random.default_rng(1), 20)
    for one in estimates(score, value, 0 * unit, topic):
        assert not math.isnan(one.value)
        assert not one.known
        assert not one.excludes(7.0)
    assert str(Estimate(1.0, math.nan, math.nan)) == "1.000"


def test_two_clicked_pages_above_all_others_do_not_make_certain() -> None:
    score = np.arange(50) / 50
    found = ordered(pairs_of(score, 1.0 * (score >= 0.96)), np.arange(50), 0.95)
    assert found.value == 1.0
    assert math.isnan(found.low), "hardly more than two effective users have no interval"
    assert math.isnan(found.high)
    many = ordered(pairs_of(score, 1.0 * (score >= 0.5)), np.arange(50), 0.95)
    assert many.low == pytest.approx(0.025 ** (1 / 50))


def test_bins_are_ratios_over_users() -> None:
    score, value, unit, topic = simulated(np.random.default_rng(2), 60)
    bins = calibration(compared(score, value, unit, topic), 4, 0.9)
    assert sum(one.pages for one in bins) == len(score)
    for one in bins:
        kept = (score >= one.low) & (score <= one.high)
        n, d = (np.bincount(unit[kept], column) for column in (value[kept], np.ones(kept.sum())))
        assert one.mean == ratio_estimate(n, d, 0.9, share=True)
        assert one.units == len(np.unique(unit[kept]))


def test_topics_are_ranked_by_their_means_and_drawn_from_many() -> None:
    rng, covered, truth = np.random.default_rng(8), 0, 6 / math.pi * math.asin(0.5 / 2)
    for _ in range(300):
        both = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], size=20)
        topic = np.repeat(np.arange(20), 3)
        found = topic_relation(compared(*np.repeat(both, 3, axis=0).T, np.arange(60), topic), 3, 0.95)
        assert found is not None
        covered += found.rho.low <= truth <= found.rho.high
    assert 0.92 <= covered / 300 <= 0.98
    assert topic_relation(compared(*np.repeat(both, 3, axis=0).T, np.arange(60), topic), 4, 0.95) is None


def test_influences_on_what_ranks_let_expect_are_derivatives_too(monkeypatch: pytest.MonkeyPatch) -> None:
    found, rng, users = caught(monkeypatch, agreement), np.random.default_rng(4), 12
    unit, grades = rng.integers(users, size=60), rng.integers(3, size=(60, 3)) * 1.0
    page = np.repeat(np.arange(60), 2)
    ranks = np.stack([rng.permutation(3)[:2] for _ in page])
    better, worse = (grades[page, rank] for rank in ranks.T)
    fields = (0 * page, page, unit[page], *(ranks.T + 1), better, worse, page, better > worse)
    preferences, joined = agreement._Preferences(*fields), type("Pages", (), {"unit": unit})()
    rows = np.flatnonzero(better != worse)
    assert len(np.unique(unit[page[rows]])) == users
    shares = agreement._shares(preferences, rows, better[rows] > worse[rows], grades, joined, 0.95)

    def statistics(weights: Floats) -> Floats:
        of_row, of_page, total = weights[unit[page[rows]]], weights[unit], 0.0
        for w, (rank, other) in zip(of_row, ranks[rows], strict=True):
            wins = of_page @ (grades[:, rank] > grades[:, other])
            total += w * wins / (of_page @ (grades[:, rank] != grades[:, other]))
        expected = total / of_row.sum()
        return np.array([expected, of_row @ (better[rows] > worse[rows]) / of_row.sum() - expected])

    assert [one.value for one in shares[2:]] == pytest.approx(statistics(np.ones(users)))
    np.testing.assert_allclose(np.stack(found, axis=1), derivatives(statistics, users), atol=1e-8)


@pytest.mark.parametrize("level", [0, 1, 95, math.nan])
def test_a_level_is_a_share(level: float) -> None:
    with pytest.raises(InputError, match="level"):
        need(level=level)


def test_a_perfect_order_is_a_probability_of_1() -> None:
    assert probability(pairs_of(np.arange(4.0), np.array([0.0, 0.0, 1.0, 1.0]))) == 1.0
