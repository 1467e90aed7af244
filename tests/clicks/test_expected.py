"""Clicks over expected clicks: by hand, by known truth, and against the formula that others use."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kendalltau

import planted_clicks
from judged.clicks import cells_of, coec
from judged.clicks.expected import coec_of, expected_clicks, shrunk
from judged.errors import InputError
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
    for propensities in (None, planted_clicks.EXAMINED):
        clicks, expected = expected_clicks(cells, propensities)
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


def test_intervals_hold_ratios_that_are_drawn_from_the_prior():
    rng = np.random.default_rng(3)
    true = rng.gamma(1.5, 1 / 1.5, 4000)
    expected = rng.exponential(4.0, 4000)
    made = shrunk(rng.poisson(true * expected).astype(float), expected, 0.9)
    assert made.prior == pytest.approx(1.5, abs=0.15)
    assert np.mean((made.low <= true) & (true <= made.high)) == pytest.approx(0.9, abs=0.015)
    assert np.mean((made.value - true) ** 2) < np.mean((rng.poisson(true * expected) / expected - true) ** 2)
    assert np.mean(((made.value - true) / made.sd) ** 2) == pytest.approx(1, abs=0.1)


def test_intervals_hold_what_users_of_a_log_find_attractive():
    worth, cells = reshuffled(7)
    made = coec_of(cells, propensities=planted_clicks.EXAMINED)
    true = worth.ravel() * (cells.shown * planted_clicks.EXAMINED[cells.rank - 1]).sum() / made.clicks.sum()
    assert 0.93 <= np.mean((made.shrunk.low <= true) & (true <= made.shrunk.high)) <= 0.985


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
