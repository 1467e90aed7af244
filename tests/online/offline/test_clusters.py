"""Intervals from influences of units: against derivatives, DeLong, a bootstrap of units, and simulated truth."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from judged.errors import InputError
from judged.online.log import validate
from judged.online.offline import agreement, concordance
from judged.online.offline.concordance import (
    IntervalEstimate,
    ScoredPages,
    calibration_bins,
    concordance_probability,
    count_pairs,
    estimate_probability,
    estimate_slope,
    estimate_tau_b,
    influence_estimate,
    ratio_estimate,
    topic_relation,
)
from judged.stats.ratio import ratio_interval

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.results.types import Floats, Ints

NAMES = ("pooled", "within", "tau", "slope")


def simulate_pages(
    rng: np.random.Generator, n_users: int, threshold: float = 0.0, n_topics: int = 15
) -> tuple[Any, ...]:
    """Simulate pages with user and topic effects on score and outcome; some users have many pages."""
    unit = np.repeat(np.arange(n_users), 1 + np.minimum(rng.pareto(2, n_users) * 4, 30).astype(np.int64))
    topic = rng.integers(n_topics, size=len(unit))
    user_effect, topic_effect = rng.normal(size=n_users)[unit], np.linspace(-1, 1, n_topics)[topic]
    score = np.round(0.7 * user_effect + topic_effect + rng.normal(size=len(unit)), 1)
    value = 0.6 * user_effect + 0.5 * topic_effect + 0.5 * score + rng.normal(size=len(unit)) > threshold
    return score, value * 1.0, unit, topic


def estimates(score: Floats, value: Floats, unit: Ints, topic: Ints) -> list[IntervalEstimate]:
    pairs, pages = count_pairs(score, value), scored_pages(score, value, unit, topic)
    return [estimate_probability(pairs, unit, 0.95), estimate_probability(count_pairs(score, value, topic), unit, 0.95),
            estimate_tau_b(pairs, unit, 0.95), estimate_slope(pages, 0.95)]  # fmt: skip


def scored_pages(score: Floats, value: Floats, unit: Ints, topic: Ints) -> ScoredPages:
    return ScoredPages("m", "o", score, value, (1, 1), unit, topic, 0 * unit, share=True)


def weighted_statistics(score: Floats, value: Floats, unit: Ints, topic: Ints) -> Callable[[Floats], Floats]:
    """Return a function from unit weights, (U,), to the four statistics, by enumeration of pairs of pages."""
    x, y, topic_difference = (column[:, None] - column for column in (score, value, topic))
    unit_tables: list[Floats] = []
    for table in (
        np.sign(x) * np.sign(y),
        x != 0,
        y != 0,
        np.sign(x) * np.sign(y) * (topic_difference == 0),
        (y != 0) * (topic_difference == 0),
    ):
        rows = np.stack([np.bincount(unit, row) for row in table.T.astype(float)])
        unit_tables.append(np.stack([np.bincount(unit, row) for row in rows.T]))

    def statistics(weights: Floats) -> Floats:
        net, untied_first, untied_second, within_net, within_untied = (
            weights @ table @ weights for table in unit_tables
        )
        w = weights[unit]
        dx, dy = (column - np.average(column, weights=w) for column in (score, value))
        tau = net / math.sqrt(untied_first * untied_second)
        least_squares = (w * dx) @ dy / ((w * dx) @ dx)
        return np.array([(1 + net / untied_second) / 2, (1 + within_net / within_untied) / 2, tau, least_squares])

    return statistics


def derivatives(statistics: Callable[[Floats], Floats], n_units: int) -> Floats:
    """Compute numerical derivatives by the weight of each unit, (U, K)."""
    steps = 1e-5 * np.eye(n_units)
    return np.stack([(statistics(1 + step) - statistics(1 - step)) / 2e-5 for step in steps])


def record_influences(monkeypatch: pytest.MonkeyPatch, module: Any) -> list[Floats]:
    """Patch `influence_estimate`, and return the list of its influences."""
    influences: list[Floats] = []

    def record(value: float, influence: Floats, *arguments: Any, **options: Any) -> IntervalEstimate:
        influences.append(influence)
        return influence_estimate(value, influence, *arguments, **options)

    monkeypatch.setattr(module, "influence_estimate", record)
    return influences


def test_influences_are_derivatives_by_the_weight_of_a_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    influences = record_influences(monkeypatch, concordance)
    pages = simulate_pages(np.random.default_rng(3), 25)
    interval_estimates, statistics = estimates(*pages), weighted_statistics(*pages)
    assert [estimate.value for estimate in interval_estimates] == pytest.approx(statistics(np.ones(25)), abs=1e-12)
    influences[2] = 2 * influences[2]  # of (1 + tau) / 2
    np.testing.assert_allclose(np.stack(influences, axis=1), derivatives(statistics, 25), atol=1e-8)


def test_error_of_independent_pages_equals_delong() -> None:
    rng = np.random.default_rng(5)
    score, clicked = rng.normal(size=400), rng.random(400) < 0.3
    score[clicked] += 0.7
    placements = np.sign(score[clicked][:, None] - score[~clicked]) / 2 + 0.5
    variance = (
        placements.mean(axis=1).var(ddof=1) / clicked.sum() + placements.mean(axis=0).var(ddof=1) / (~clicked).sum()
    )
    estimate = estimate_probability(count_pairs(score, clicked * 1.0), np.arange(400), 0.95)
    assert estimate.value == pytest.approx(placements.mean())
    expected = ratio_interval(placements.mean(), math.sqrt(variance), 400, 0.95, share=True)
    assert [estimate.low, estimate.high] == pytest.approx(expected, abs=2e-3)


def test_errors_equal_a_bootstrap_over_users() -> None:
    rng = np.random.default_rng(7)
    pages = simulate_pages(rng, 80)
    statistics = weighted_statistics(*pages)
    resampled = np.stack([statistics(row.astype(float)) for row in rng.multinomial(80, np.full(80, 1 / 80), size=1500)])
    for name, estimate, sd in zip(NAMES, estimates(*pages), resampled.std(axis=0), strict=True):
        assert (estimate.high - estimate.low) / 4 == pytest.approx(sd, rel=0.12), (
            name
        )  # the interval is 4 standard errors wide


@cache
def true_values(threshold: float) -> list[float]:
    """Return the statistics of a very large simulation."""
    return [estimate.value for estimate in estimates(*simulate_pages(np.random.default_rng(11), 10_000, threshold))]


@pytest.mark.parametrize(("n_users", "threshold", "n_runs"), [(30, 0.0, 200), (100, 2.5, 100), (500, 0.0, 40)])
def test_intervals_over_users_cover(n_users: int, threshold: float, n_runs: int) -> None:
    """A threshold of 2.5 has clicks on one of ten pages."""
    rng, truth, n_covered = np.random.default_rng(n_users), true_values(threshold), np.zeros(4)
    for _ in range(n_runs):
        interval_estimates = estimates(*simulate_pages(rng, n_users, threshold))
        n_covered += [
            estimate.low <= value <= estimate.high for estimate, value in zip(interval_estimates, truth, strict=True)
        ]
    tolerance = 3 * math.sqrt(0.95 * 0.05 / n_runs)
    assert (n_covered / n_runs >= 0.95 - tolerance).all(), n_covered / n_runs
    assert (n_covered / n_runs <= 0.95 + tolerance + 0.015).all(), (
        n_covered / n_runs
    )  # slightly too wide with few clicks


def test_intervals_that_ignore_clusters_are_too_narrow() -> None:
    score, value, *_ = (np.repeat(column, 4) for column in simulate_pages(np.random.default_rng(12), 200))
    page = np.arange(len(score)) // 4  # four copies of each page
    over_pages, over_views = (
        estimate_probability(count_pairs(score, value), unit, 0.95) for unit in (page, np.arange(len(score)))
    )
    assert over_pages.value == over_views.value
    assert (over_pages.high - over_pages.low) / (over_views.high - over_views.low) == pytest.approx(2.0, rel=0.03)


def test_one_unit_has_no_interval() -> None:
    score, value, unit, topic = simulate_pages(np.random.default_rng(1), 20)
    for estimate in estimates(score, value, 0 * unit, topic):
        assert not math.isnan(estimate.value)
        assert not estimate.has_interval
        assert not estimate.excludes(7.0)
    assert str(IntervalEstimate(1.0, math.nan, math.nan)) == "1.000"


def test_two_clicked_pages_have_no_interval() -> None:
    score = np.arange(50) / 50
    two_clicks = estimate_probability(count_pairs(score, 1.0 * (score >= 0.96)), np.arange(50), 0.95)
    assert two_clicks.value == 1.0
    assert math.isnan(two_clicks.low), "about two effective users have no interval"
    assert math.isnan(two_clicks.high)
    many_clicks = estimate_probability(count_pairs(score, 1.0 * (score >= 0.5)), np.arange(50), 0.95)
    assert many_clicks.low == pytest.approx(0.025 ** (1 / 50))


def test_bins_are_ratios_over_users() -> None:
    score, value, unit, topic = simulate_pages(np.random.default_rng(2), 60)
    bins = calibration_bins(scored_pages(score, value, unit, topic), 4, 0.9)
    assert sum(bin_.pages for bin_ in bins) == len(score)
    for bin_ in bins:
        in_bin = (score >= bin_.low) & (score <= bin_.high)
        n, d = (np.bincount(unit[in_bin], column) for column in (value[in_bin], np.ones(in_bin.sum())))
        assert bin_.mean == ratio_estimate(n, d, 0.9, share=True)
        assert bin_.units == len(np.unique(unit[in_bin]))


def test_coverage_of_spearmans_rho_over_topics() -> None:
    rng, n_covered, truth = np.random.default_rng(8), 0, 6 / math.pi * math.asin(0.5 / 2)
    for _ in range(300):
        topic_values = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], size=20)
        topic = np.repeat(np.arange(20), 3)
        relation = topic_relation(scored_pages(*np.repeat(topic_values, 3, axis=0).T, np.arange(60), topic), 3, 0.95)
        assert relation is not None
        n_covered += relation.rho.low <= truth <= relation.rho.high
    assert 0.92 <= n_covered / 300 <= 0.98
    assert topic_relation(scored_pages(*np.repeat(topic_values, 3, axis=0).T, np.arange(60), topic), 4, 0.95) is None


def test_influences_on_expected_agreement_are_derivatives(monkeypatch: pytest.MonkeyPatch) -> None:
    influences, rng, n_users = record_influences(monkeypatch, agreement), np.random.default_rng(4), 12
    unit, grades = rng.integers(n_users, size=60), rng.integers(3, size=(60, 3)) * 1.0
    page = np.repeat(np.arange(60), 2)
    ranks = np.stack([rng.permutation(3)[:2] for _ in page])
    better, worse = (grades[page, rank] for rank in ranks.T)
    fields = (0 * page, page, unit[page], *(ranks.T + 1), better, worse, page, better > worse)
    preferences, page_topics = agreement._Preferences(*fields), type("Pages", (), {"unit": unit})()
    rows = np.flatnonzero(better != worse)
    assert len(np.unique(unit[page[rows]])) == n_users
    interval_estimates = agreement._estimate_agreement(
        preferences, rows, better[rows] > worse[rows], grades, page_topics, 0.95
    )

    def statistics(weights: Floats) -> Floats:
        row_weights, page_weights, total = weights[unit[page[rows]]], weights[unit], 0.0
        for w, (rank, other_rank) in zip(row_weights, ranks[rows], strict=True):
            win_weight = page_weights @ (grades[:, rank] > grades[:, other_rank])
            total += w * win_weight / (page_weights @ (grades[:, rank] != grades[:, other_rank]))
        expected = total / row_weights.sum()
        return np.array([expected, row_weights @ (better[rows] > worse[rows]) / row_weights.sum() - expected])

    assert [estimate.value for estimate in interval_estimates[2:]] == pytest.approx(statistics(np.ones(n_users)))
    np.testing.assert_allclose(np.stack(influences, axis=1), derivatives(statistics, n_users), atol=1e-8)


@pytest.mark.parametrize("level", [0, 1, 95, math.nan])
def test_level_must_be_between_0_and_1(level: float) -> None:
    with pytest.raises(InputError, match="level"):
        validate(level=level)


def test_perfect_order_has_probability_1() -> None:
    assert concordance_probability(count_pairs(np.arange(4.0), np.array([0.0, 0.0, 1.0, 1.0]))) == 1.0
