"""Permutations within topics: against full enumeration with whole numbers, and as uniform as they should be."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from scipy import stats as scipy_stats

from judged import InputError
from judged.stats import multiple as permutations
from judged.stats.multiple import (
    NullDistribution,
    _RandomOrders,
    null_distribution,
    randomized_dunnett,
    randomized_tukey,
)


def enumerated(tenths: np.ndarray, baseline: int) -> tuple[np.ndarray, np.ndarray]:
    """Count, in whole numbers, the arrangements whose largest difference is at least as large: all pairs, baseline."""
    systems, topics = tenths.shape
    orders = list(itertools.permutations(range(systems)))
    ranges, largest = [], []
    for chosen in itertools.product(orders, repeat=topics):
        sums = sum(tenths[list(order), topic] for topic, order in enumerate(chosen))
        ranges.append(int(sums.max() - sums.min()))
        largest.append(int(np.abs(sums - sums[baseline]).max()))
    total = tenths.sum(axis=1)
    gaps = np.abs(total - total[:, None])
    share = np.array([[np.mean(np.array(ranges) >= gap) for gap in row] for row in gaps])
    return share, np.array([np.mean(np.array(largest) >= gap) for gap in gaps[baseline]])


@pytest.mark.parametrize(
    ("systems", "topics", "seed"), [(2, 9, 0), (3, 4, 1), (3, 5, 2), (4, 2, 3), (4, 3, 4), (6, 1, 5)]
)
def test_all_arrangements_give_the_p_values_of_whole_numbers(systems: int, topics: int, seed: int) -> None:
    """P@10 is a multiple of 0.1, whose sums differ in the last bits: what ties in whole numbers must tie here."""
    tenths = np.random.default_rng(seed).integers(0, 6, size=(systems, topics))
    scores = np.where(np.arange(topics) % 2, tenths * 0.1, tenths / 10)
    pairs, against = enumerated(tenths, systems - 1)
    if topics == 1:  # a constant topic beside it changes nothing but the number of topics
        scores = np.hstack([scores, np.full((systems, 1), 0.3)])
    result = randomized_tukey(scores)
    assert result.exact
    assert result.seed is None
    assert result.p == pytest.approx(pairs, rel=1e-12)
    one = randomized_dunnett(scores, systems - 1)
    assert one.exact
    assert one.p == pytest.approx(against, rel=1e-12)


def test_drawn_arrangements_come_near_to_all_of_them() -> None:
    tenths = np.random.default_rng(8).integers(0, 5, size=(3, 5))
    pairs, against = enumerated(tenths, 0)
    result, one = randomized_tukey(tenths / 10, resamples=1000, seed=3), randomized_dunnett(tenths / 10, resamples=5000)
    for drawn, expected, resamples in ((result, pairs, 1000), (one, against, 5000)):
        assert not drawn.exact
        assert drawn.resamples == resamples
        error = np.sqrt(expected * (1 - expected) / resamples) + 1 / resamples
        assert (np.abs(drawn.p - expected) <= 4 * error).all()
        steps = drawn.p * (resamples + 1)  # (b + 1) / (B + 1)
        assert steps == pytest.approx(np.round(steps), abs=1e-9)
        assert (drawn.p >= 1 / (resamples + 1)).all()


@pytest.mark.parametrize("few", [6, 0])
def test_orders_from_the_list_and_from_sorted_keys_are_as_good(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both against all arrangements: 3 systems, 5 topics, of which 4 are permuted."""
    monkeypatch.setattr(permutations, "_MAX_LISTED_SYSTEMS", few)
    tenths = np.random.default_rng(12).integers(0, 5, size=(3, 5))
    expected, _ = enumerated(tenths, 0)
    result = randomized_tukey(tenths / 10, resamples=1200, seed=5)
    error = np.sqrt(expected * (1 - expected) / 1200) + 1 / 1200
    assert not result.exact
    assert (np.abs(result.p - expected) <= 4 * error).all()


def test_every_order_is_as_likely() -> None:
    orders = _RandomOrders(4, np.random.default_rng(1)).orders(24_000)
    counted = Counter(map(tuple, orders.tolist()))
    assert len(counted) == 24
    assert scipy_stats.chisquare(list(counted.values())).pvalue > 0.001


@pytest.mark.parametrize("systems", [2, 5, 37, 64, 65, 300])
def test_orders_are_permutations(systems: int) -> None:
    orders = _RandomOrders(systems, np.random.default_rng(1)).orders(50)
    assert (np.sort(orders, axis=1) == np.arange(systems)).all()
    assert len(np.unique(orders[:, 0])) > 1


def test_sums_of_permuted_topics_have_the_variance_that_theory_gives() -> None:
    """Over random orders, the mean of one system has variance sum over topics of (their variance, ddof 0) / n^2."""
    scores = np.random.default_rng(5).beta(0.6, 1.4, size=(6, 20))
    null = null_distribution(scores, lambda sums: sums[:, 2], 20_000, 7, relabeling=False)
    variance = scores.var(axis=0).sum() / 20**2
    assert null.sorted.mean() == pytest.approx(scores.mean(), abs=4 * np.sqrt(variance / 20_000))
    assert null.sorted.var() == pytest.approx(variance, rel=0.05)


def test_leaving_one_topic_as_it_is_makes_no_difference_to_the_range() -> None:
    scores = np.random.default_rng(5).integers(0, 4, size=(3, 4)) / 4
    one = null_distribution(scores, lambda s: s.max(axis=1) - s.min(axis=1), 10_000, 0, relabeling=True)
    other = null_distribution(scores, lambda s: s.max(axis=1) - s.min(axis=1), 10_000, 0, relabeling=False)
    assert (len(one.sorted), len(other.sorted)) == (6**3, 6**4)
    assert np.repeat(one.sorted, 6) == pytest.approx(other.sorted, abs=1e-12)


def test_the_number_of_threads_and_of_calls_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = np.random.default_rng(2).random((40, 12))
    first = randomized_tukey(scores, resamples=5000, seed=4)
    assert (randomized_tukey(scores, resamples=5000, seed=4).p == first.p).all()
    for threads in (1, 5):
        monkeypatch.setattr(permutations, "_THREADS", threads)
        again = randomized_tukey(scores, resamples=5000, seed=4)
        assert (again.p == first.p).all()
        assert again.critical == first.critical
    assert (randomized_tukey(scores, resamples=5000, seed=5).p != first.p).any()


def test_what_must_be_exceeded_is_where_p_falls_to_alpha() -> None:
    null = NullDistribution(np.arange(1.0, 100.0), exact=False)  # 99 drawn: p = (b + 1) / 100
    assert null.critical(0.05) == 95.0  # 96, 97, 98, 99 lie above: p(95.5) = 0.05, p(95) = 0.06
    assert null.p(np.array([95.5, 95.0]), 0.0).tolist() == [0.05, 0.06]
    assert null.critical(0.01) == 99.0
    assert null.critical(0.005) == np.inf
    everything = NullDistribution(np.arange(1.0, 21.0), exact=True)
    assert everything.critical(0.05) == 19.0
    assert everything.p(np.array([20.0, 19.0]), 0.0).tolist() == [0.05, 0.1]
    assert everything.critical(0.04) == np.inf


def test_one_drawing_serves_systems_of_any_number() -> None:
    """More systems than a block holds scores of."""
    scores = np.random.default_rng(0).random((300, 3))
    result = randomized_tukey(scores, resamples=200)
    assert result.p.min() >= 1 / 201
    assert result.p.shape == (300, 300)


@pytest.mark.parametrize(
    ("resamples", "seed", "problem"), [(99, 0, "100 resamples are required, got 99"), (1000, -1, "seed.*-1")]
)
def test_numbers_that_make_no_sense_are_refused(resamples: int, seed: int, problem: str) -> None:
    for test in (randomized_tukey, randomized_dunnett):
        with pytest.raises(InputError, match=problem):
            test([[0.1, 0.2], [0.3, 0.1]], resamples=resamples, seed=seed)
