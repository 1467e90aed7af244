"""Clicks over expected clicks: by hand, against simulated truth, and against OpenSearch's formula."""

from __future__ import annotations

import numpy as np
import pytest
from calibration import clicks_over_expected
from scipy.stats import beta, kendalltau

import planted_clicks
from judged.errors import InputError
from judged.online.clicks import ImpressionCounts, coec, count_impressions, propensities
from judged.online.clicks.clicks_over_expected import compute_coec, estimate_ratios, expected_clicks, shrink_ratios
from online.offline.page_logs import log_of

HAS = frozenset({"shown", "clicks", "ranks", "unclicked"})


def partly_random_cells(seed: int):
    """Simulate pages ranked by noisy attractiveness, with 20% in random order."""
    rng = np.random.default_rng(seed)
    attractiveness = rng.beta(1.0, 3.0, (80, 10))
    ranked = planted_clicks.rank_documents(rng, 80, rankers=1, noise=0.3, attractive=attractiveness)
    shuffled = planted_clicks.rank_documents(rng, 80, rankers=4, noise=50.0, attractive=attractiveness)
    lists = planted_clicks.RankedLists(
        attractiveness, np.vstack([ranked.lists, shuffled.lists]), np.concatenate([ranked.query, shuffled.query])
    )
    return attractiveness, planted_clicks.sample_counts(lists, np.repeat([160, 10], [80, 320]), rng)


def test_four_pages_by_hand():
    # click-through rates: 3 of 4 at rank 1, 1 of 4 at rank 2; each document is twice at each rank
    pages = [
        {"query": "q", "shown": ["a", "b"], "clicks": ["a"], "user": 1},
        {"query": "q", "shown": ["a", "b"], "clicks": ["a", "b"], "user": 2},
        {"query": "q", "shown": ["b", "a"], "clicks": ["b"], "user": 3},
        {"query": "q", "shown": ["b", "a"], "clicks": [], "user": 4},
    ]
    result = coec(log_of(pages, has=HAS))
    assert [(row.rank, row.shown, row.clicks, row.ctr) for row in result.ranks] == [(1, 4, 3, 0.75), (2, 4, 1, 0.25)]
    assert result.clicks.tolist() == [2, 2]
    assert result.expected.tolist() == [2 * 0.75 + 2 * 0.25] * 2
    assert {note.rule for note in result.notes} == {"no-differences"}
    assert not any("inf" in sentence.split() for sentence in result.sentences)


@pytest.mark.parametrize("seed", range(3))
def test_the_mean_weighted_by_expected_clicks_is_one(seed):
    _, cells = partly_random_cells(seed)
    for curve in (None, planted_clicks.EXAMINED):
        clicks, expected, _ = expected_clicks(cells, curve)
        assert (clicks / expected) @ expected / expected.sum() == pytest.approx(1, abs=1e-12)
        assert expected.sum() == pytest.approx(clicks.sum(), rel=1e-12)


def test_coec_orders_documents_better_than_ctr_and_opensearch():
    taus = []
    for seed in range(5):
        attractiveness, cells = partly_random_cells(seed)
        result = compute_coec(cells)
        top_rank = np.full(len(result.clicks), 99)
        np.minimum.at(top_rank, cells.pair, cells.rank)
        ctr = np.array([row.ctr for row in result.ranks])
        by_top_rank = result.clicks / (result.impressions * ctr[top_rank - 1])  # OpenSearch's formula, SRW at 1134d566
        with_propensities = compute_coec(cells, propensities=planted_clicks.EXAMINED)
        values = (result.shrunk.value, result.clicks / result.impressions, by_top_rank, with_propensities.shrunk.value)
        tables = [value.reshape(attractiveness.shape) for value in values]
        taus.append([
            np.mean([kendalltau(*rows)[0] for rows in zip(table, attractiveness, strict=True)]) for table in tables
        ])  # fmt: skip
    coec_tau, ctr_tau, top_rank_tau, propensity_tau = np.mean(taus, axis=0)
    assert coec_tau > ctr_tau > 0.5
    assert coec_tau > top_rank_tau
    assert propensity_tau > coec_tau


def test_standard_deviations_of_shrunk_ratios_are_calibrated():
    rng = np.random.default_rng(3)
    ratios = rng.gamma(1.5, 1 / 1.5, 4000)
    expected = rng.exponential(4.0, 4000)
    result = shrink_ratios(rng.poisson(ratios * expected).astype(float), expected)
    assert result.prior == pytest.approx(1.5, abs=0.15)
    assert np.mean((result.value - ratios) ** 2) < np.mean((rng.poisson(ratios * expected) / expected - ratios) ** 2)
    assert np.mean(((result.value - ratios) / result.sd) ** 2) == pytest.approx(1, abs=0.1)


def test_intervals_are_jeffreys_intervals_without_error_of_expected_clicks():
    clicks, impressions = np.array([0.0, 1.0, 7.0, 20.0]), np.array([30.0, 9.0, 40.0, 20.0])
    result = estimate_ratios(clicks, impressions / 5, impressions, np.zeros(4), 0.9)
    limits = beta(clicks + 0.5, impressions - clicks + 0.5).ppf([[0.05], [0.95]]) * 5
    limits[0][0] = 0  # no clicks
    np.testing.assert_allclose([result.low, result.high], limits, rtol=1e-9)
    assert (result.se > 0).all()
    assert result.se[2] == pytest.approx(5 * np.sqrt(7 * 33 / 40) / 40, rel=0.01)  # binomial
    with_error = estimate_ratios(clicks, impressions / 5, impressions, np.full(4, 0.04), 0.9)
    assert with_error.se[2] ** 2 == pytest.approx(result.se[2] ** 2 + 0.04 * result.value[2] ** 2)
    assert (with_error.high - with_error.low > result.high - result.low).all()


def test_error_of_expected_clicks_equals_the_simulated_variance():
    """Three pairs that share two ranks: variance of log ratios over simulated logs."""
    impressions = np.array([[300, 0], [200, 200], [0, 400]])
    ctr, rng = np.array([[0.4, 0], [0.3, 0.15], [0, 0.2]]), np.random.default_rng(5)
    pair, rank = np.nonzero(impressions)
    zeros, log_ratios, variances = np.zeros(4, dtype=np.int64), [], []
    for _ in range(1500):
        counts = rng.binomial(impressions, ctr)
        cells = ImpressionCounts(planted_clicks.pair_table(1, 3), pair, rank + 1, zeros, zeros, ("",),
                                 impressions[pair, rank], counts[pair, rank], "query")  # fmt: skip
        clicks, expected, error = expected_clicks(cells)
        result = estimate_ratios(clicks, expected, impressions.sum(axis=1) * 1.0, error)
        log_ratios.append(np.log(result.value))
        variances.append((result.se / result.value) ** 2)
    np.testing.assert_allclose(np.mean(variances, axis=0), np.var(log_ratios, axis=0), rtol=0.1)


@pytest.mark.parametrize("situation", ["equal queries", "rare clicks", "few pairs", "estimated propensities"])
def test_coverage_of_intervals(situation):
    rng = np.random.default_rng(11)
    n_covered, n_pairs = np.sum([clicks_over_expected.simulate(situation, 50, rng) for _ in range(25)], axis=0)
    assert 0.93 <= n_covered / n_pairs <= 0.97


def test_propensities_of_the_same_log_widen_intervals():
    pages = [
        {"query": f"q{i % 3}", "shown": ["b", "a"] if i % 4 else ["a", "b"], "user": i // 2,
         "clicks": ["b" if i % 4 else "a"] * (i % 7 < 3) + ["a" if i % 4 else "b"] * (i % 5 == 0)}
        for i in range(240)
    ]  # fmt: skip
    log = log_of(pages, has=HAS)
    estimated = propensities(log)
    from_log, from_elsewhere = coec(log, propensities=estimated), coec(log, propensities=estimated.of() * [1, 1.0001])
    assert (
        from_log.ratios.high - from_log.ratios.low > 1.01 * (from_elsewhere.ratios.high - from_elsewhere.ratios.low)
    ).all()
    np.testing.assert_allclose(from_log.ratios.value, from_elsewhere.ratios.value, rtol=1e-3)


def test_counting_satisfied_clicks_and_purchases():
    pages = [{"query": "q", "shown": ["a", "b"], "clicks": [("a", 40.0), ("b", 5.0)], "user": 1}]
    log = log_of(pages, has=HAS | {"dwell"})
    assert coec(log, counting="satisfied").clicks.tolist() == [1, 0]
    assert coec(log, counting="satisfied", dwell=5).clicks.tolist() == [1, 1]
    assert coec(log, counting="purchases").clicks.tolist() == [0, 0]
    with pytest.raises(InputError, match="must be clicks, satisfied, or purchases"):
        coec(log, counting="views")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="require 2 propensities, got 1"):
        coec(log, propensities=[1.0])
    assert compute_coec(count_impressions(log)).impressions.tolist() == [1, 1]
