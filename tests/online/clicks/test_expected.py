"""Clicks over expected clicks: by hand, by known truth, and against the formula that others use."""

from __future__ import annotations

import numpy as np
import pytest
from calibration import clicks_over_expected
from scipy.stats import beta, kendalltau

import planted_clicks
from judged.errors import InputError
from judged.online.clicks import Cells, cells_of, coec, propensities
from judged.online.clicks.expected import coec_of, expected_clicks, ratios_of, shrunk
from online.offline.pages_made import log_of

HAS = frozenset({"shown", "clicks", "ranks", "unclicked"})


def reshuffled(seed: int):
    """Rank by worth, with errors, and 20 % of the pages in a random order: docs stand at several ranks."""
    rng = np.random.default_rng(seed)
    worth = rng.beta(1.0, 3.0, (80, 10))
    usual = planted_clicks.planted(rng, 80, rankers=1, noise=0.3, attractive=worth)
    random = planted_clicks.planted(rng, 80, rankers=4, noise=50.0, attractive=worth)
    lists = planted_clicks.Planted(
        worth, np.vstack([usual.lists, random.lists]), np.concatenate([usual.query, random.query])
    )
    return worth, planted_clicks.cells(lists, np.repeat([160, 10], [80, 320]), rng)


def test_of_three_pages_by_hand():
    # rank 1 has 3 clicks of 4 impressions, rank 2 has 1 of 4: a stood twice at each
    pages = [
        {"query": "q", "shown": ["a", "b"], "clicks": ["a"], "user": 1},
        {"query": "q", "shown": ["a", "b"], "clicks": ["a", "b"], "user": 2},
        {"query": "q", "shown": ["b", "a"], "clicks": ["b"], "user": 3},
        {"query": "q", "shown": ["b", "a"], "clicks": [], "user": 4},
    ]
    made = coec(log_of(pages, has=HAS))
    assert [(row.rank, row.shown, row.clicks, row.ctr) for row in made.ranks] == [(1, 4, 3, 0.75), (2, 4, 1, 0.25)]
    assert made.clicks.tolist() == [2, 2]
    assert made.expected.tolist() == [2 * 0.75 + 2 * 0.25] * 2
    assert {note.rule for note in made.notes} == {"no-differences"}
    assert not any("inf" in sentence.split() for sentence in made.sentences)


@pytest.mark.parametrize("seed", range(3))
def test_the_mean_weighted_by_expected_clicks_is_one(seed):
    _, cells = reshuffled(seed)
    for curve in (None, planted_clicks.EXAMINED):
        clicks, expected, _ = expected_clicks(cells, curve)
        assert (clicks / expected) @ expected / expected.sum() == pytest.approx(1, abs=1e-12)
        assert expected.sum() == pytest.approx(clicks.sum(), rel=1e-12)


def test_order_is_nearer_to_the_truth_than_that_of_raw_rates_and_of_the_lowest_rank():
    taus = []
    for seed in range(5):
        worth, cells = reshuffled(seed)
        made = coec_of(cells)
        lowest = np.full(len(made.clicks), 99)
        np.minimum.at(lowest, cells.pair, cells.rank)
        rate = np.array([row.ctr for row in made.ranks])
        by_lowest = made.clicks / (made.shown * rate[lowest - 1])  # OpenSearch's formula, SRW at 1134d566
        known = coec_of(cells, propensities=planted_clicks.EXAMINED)
        values = (made.shrunk.value, made.clicks / made.shown, by_lowest, known.shrunk.value)
        taus.append([
            np.mean([kendalltau(value.reshape(worth.shape)[q], worth[q])[0] for q in range(len(worth))])
            for value in values
        ])  # fmt: skip
    ours, raw, others, harvested = np.mean(taus, axis=0)
    assert ours > raw > 0.5
    assert ours > others
    assert harvested > ours


def test_ratios_that_are_drawn_from_the_prior_are_as_far_off_as_is_said():
    rng = np.random.default_rng(3)
    true = rng.gamma(1.5, 1 / 1.5, 4000)
    expected = rng.exponential(4.0, 4000)
    made = shrunk(rng.poisson(true * expected).astype(float), expected)
    assert made.prior == pytest.approx(1.5, abs=0.15)
    assert np.mean((made.value - true) ** 2) < np.mean((rng.poisson(true * expected) / expected - true) ** 2)
    assert np.mean(((made.value - true) / made.sd) ** 2) == pytest.approx(1, abs=0.1)


def test_intervals_are_those_of_jeffreys_where_expected_clicks_are_certain():
    clicks, shown = np.array([0.0, 1.0, 7.0, 20.0]), np.array([30.0, 9.0, 40.0, 20.0])
    made = ratios_of(clicks, shown / 5, shown, np.zeros(4), 0.9)
    ends = beta(clicks + 0.5, shown - clicks + 0.5).ppf([[0.05], [0.95]]) * 5
    ends[0][0] = 0  # without clicks
    np.testing.assert_allclose([made.low, made.high], ends, rtol=1e-9)
    assert (made.se > 0).all()
    assert made.se[2] == pytest.approx(5 * np.sqrt(7 * 33 / 40) / 40, rel=0.01)  # binomial
    wider = ratios_of(clicks, shown / 5, shown, np.full(4, 0.04), 0.9)
    assert wider.se[2] ** 2 == pytest.approx(made.se[2] ** 2 + 0.04 * made.value[2] ** 2)
    assert (wider.high - wider.low > made.high - made.low).all()


def test_the_error_of_expected_clicks_is_that_of_simulated_logs():
    """Of two pairs that share two ranks with a third: the variance of log ratios over logs."""
    shown = np.array([[300, 0], [200, 200], [0, 400]])
    rate, rng = np.array([[0.4, 0], [0.3, 0.15], [0, 0.2]]), np.random.default_rng(5)
    pair, rank = np.nonzero(shown)
    none, logs, said = np.zeros(4, dtype=np.int64), [], []
    for _ in range(1500):
        counts = rng.binomial(shown, rate)
        cells = Cells(planted_clicks.ids(1, 3), pair, rank + 1, none, none, ("",), shown[pair, rank],
                      counts[pair, rank], "query")  # fmt: skip
        clicks, expected, error = expected_clicks(cells)
        made = ratios_of(clicks, expected, shown.sum(axis=1) * 1.0, error)
        logs.append(np.log(made.value))
        said.append((made.se / made.value) ** 2)
    np.testing.assert_allclose(np.mean(said, axis=0), np.var(logs, axis=0), rtol=0.1)


@pytest.mark.parametrize("situation", ["equal queries", "rare clicks", "few pairs", "estimated propensities"])
def test_intervals_hold_the_true_ratio(situation):
    rng = np.random.default_rng(11)
    held, pairs = np.sum([clicks_over_expected.simulate(situation, 50, rng) for _ in range(25)], axis=0)
    assert 0.93 <= held / pairs <= 0.97


def test_propensities_of_the_same_log_widen_intervals():
    pages = [
        {"query": f"q{at % 3}", "shown": ["b", "a"] if at % 4 else ["a", "b"], "user": at // 2,
         "clicks": ["b" if at % 4 else "a"] * (at % 7 < 3) + ["a" if at % 4 else "b"] * (at % 5 == 0)}
        for at in range(240)
    ]  # fmt: skip
    log = log_of(pages, has=HAS)
    own = propensities(log)
    same, known = coec(log, propensities=own), coec(log, propensities=own.of() * [1, 1.0001])
    assert (same.ratios.high - same.ratios.low > 1.01 * (known.ratios.high - known.ratios.low)).all()
    np.testing.assert_allclose(same.ratios.value, known.ratios.value, rtol=1e-3)


def test_satisfied_clicks_and_purchases_count_in_the_place_of_clicks():
    pages = [{"query": "q", "shown": ["a", "b"], "clicks": [("a", 40.0), ("b", 5.0)], "user": 1}]
    log = log_of(pages, has=HAS)
    assert coec(log, counting="satisfied").clicks.tolist() == [1, 0]
    assert coec(log, counting="satisfied", dwell=5).clicks.tolist() == [1, 1]
    assert coec(log, counting="purchases").clicks.tolist() == [0, 0]
    with pytest.raises(InputError, match="counted as"):
        coec(log, counting="views")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="propensities of 1 rank"):
        coec(log, propensities=[1.0])
    assert coec_of(cells_of(log)).shown.tolist() == [1, 1]
