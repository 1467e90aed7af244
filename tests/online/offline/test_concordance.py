"""Pair counts of pages against enumeration and against SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import judged
from judged.online.offline.concordance import concordance_probability, count_pairs, tau_b

small_integers = st.integers(0, 3)
pages = st.lists(st.tuples(small_integers, st.integers(0, 6), st.integers(0, 2)), min_size=1, max_size=16)


@settings(max_examples=60)
@given(pages, st.booleans())
def test_counts_equal_an_enumeration(rows: list[tuple[int, ...]], strata: bool) -> None:
    first, second, stratum = (np.array(column) for column in zip(*rows, strict=True))
    counts = count_pairs(first * 0.1, second * 1.0, stratum if strata else None)
    same_stratum = (stratum[:, None] == stratum) | (not strata)
    signs = [np.sign(column[:, None] - column) * same_stratum for column in (first, second)]
    assert counts.net.tolist() == (signs[0] * signs[1]).sum(axis=1).tolist()
    assert counts.untied_first.tolist() == (signs[0] != 0).sum(axis=1).tolist()
    assert counts.untied_second.tolist() == (signs[1] != 0).sum(axis=1).tolist()
    assert counts.untied_both.tolist() == ((signs[0] != 0) & (signs[1] != 0)).sum(axis=1).tolist()
    assert counts.n_untied == int(((signs[0] != 0) & (signs[1] != 0)).sum()) / 2


@pytest.mark.parametrize("seed", range(4))
def test_binary_outcome_is_the_area_under_the_curve(seed: int) -> None:
    rng = np.random.default_rng(seed)
    score, clicked = rng.integers(8, size=60) / 8, rng.random(60) < 0.4
    counts = count_pairs(score, clicked * 1.0)
    area = stats.mannwhitneyu(score[clicked], score[~clicked]).statistic / clicked.sum() / (~clicked).sum()
    assert concordance_probability(counts) == pytest.approx(area, abs=1e-14)
    assert tau_b(counts) == pytest.approx(judged.stats.kendall_tau(score, clicked * 1.0).value, abs=1e-14)
    assert tau_b(counts) == pytest.approx(stats.kendalltau(score, clicked).statistic, abs=1e-12)


def test_tau_b_without_ties() -> None:
    rng = np.random.default_rng(9)
    score, value = rng.integers(9, size=3000) / 9, rng.random(3000)
    assert tau_b(count_pairs(score, value)) == pytest.approx(stats.kendalltau(score, value).statistic, abs=1e-12)


def test_no_pairs_is_nan() -> None:
    tied = count_pairs(np.array([0.1, 0.2]), np.ones(2))
    assert math.isnan(concordance_probability(tied))
    assert math.isnan(tau_b(tied))
    unrelated = count_pairs(np.array([0.1, 0.2]), np.array([0.0, 1.0]), np.arange(2))
    assert math.isnan(concordance_probability(unrelated))  # two topics with one page each
    assert math.isnan(concordance_probability(count_pairs(np.zeros(0), np.zeros(0))))


def test_ties_in_one_quantity_are_nan() -> None:
    """One list per topic: pages differ in clicks but not in scores. The result is NaN, not a certain 0.5."""
    score, clicked, topic = np.array([0.2, 0.2, 0.9, 0.9]), np.array([0.0, 1.0, 1.0, 1.0]), np.array([0, 0, 1, 1])
    tied = count_pairs(score, clicked, topic)
    assert (tied.untied_second.tolist(), tied.untied_both.tolist(), tied.n_untied) == ([1, 1, 0, 0], [0, 0, 0, 0], 0)
    assert math.isnan(concordance_probability(tied))
    crossed = count_pairs(np.array([0.1, 0.2, 0.5, 0.5]), np.array([1.0, 1.0, 0.0, 1.0]), topic)
    assert (int(crossed.untied_first.sum()), int(crossed.untied_second.sum()), crossed.n_untied) == (
        2,
        2,
        0,
    )  # but not of the same pair
    assert math.isnan(concordance_probability(crossed))
    single_pair = count_pairs(np.append(score, 0.4), np.append(clicked, 1.0), np.append(topic, 0))
    assert (single_pair.n_untied, concordance_probability(single_pair)) == (1, 0.75)  # one concordant, one tied
