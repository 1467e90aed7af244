"""Pairs of pages, counted page by page, against pairs enumerated one by one and against SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import judged
from judged.online.offline.concordance import pairs_of, probability, tau_b

few = st.integers(0, 3)
pages = st.lists(st.tuples(few, st.integers(0, 6), st.integers(0, 2)), min_size=1, max_size=16)


@settings(max_examples=60)
@given(pages, st.booleans())
def test_pairs_are_those_of_an_enumeration(rows: list[tuple[int, ...]], strata: bool) -> None:
    first, second, stratum = (np.array(column) for column in zip(*rows, strict=True))
    found = pairs_of(first * 0.1, second * 1.0, stratum if strata else None)
    together = (stratum[:, None] == stratum) | (not strata)
    signs = [np.sign(one[:, None] - one) * together for one in (first, second)]
    assert found.net.tolist() == (signs[0] * signs[1]).sum(axis=1).tolist()
    assert found.first.tolist() == (signs[0] != 0).sum(axis=1).tolist()
    assert found.second.tolist() == (signs[1] != 0).sum(axis=1).tolist()
    assert found.both.tolist() == ((signs[0] != 0) & (signs[1] != 0)).sum(axis=1).tolist()
    assert found.count == int(((signs[0] != 0) & (signs[1] != 0)).sum()) / 2


@pytest.mark.parametrize("seed", range(4))
def test_an_outcome_of_0_and_1_gives_the_area_under_the_curve(seed: int) -> None:
    rng = np.random.default_rng(seed)
    score, clicked = rng.integers(8, size=60) / 8, rng.random(60) < 0.4
    found = pairs_of(score, clicked * 1.0)
    area = stats.mannwhitneyu(score[clicked], score[~clicked]).statistic / clicked.sum() / (~clicked).sum()
    assert probability(found) == pytest.approx(area, abs=1e-14)
    assert tau_b(found) == pytest.approx(judged.stats.kendall_tau(score, clicked * 1.0).value, abs=1e-14)
    assert tau_b(found) == pytest.approx(stats.kendalltau(score, clicked).statistic, abs=1e-12)


def test_every_outcome_may_differ() -> None:
    rng = np.random.default_rng(9)
    score, value = rng.integers(9, size=3000) / 9, rng.random(3000)
    assert tau_b(pairs_of(score, value)) == pytest.approx(stats.kendalltau(score, value).statistic, abs=1e-12)


def test_nothing_to_compare_is_not_a_number() -> None:
    same = pairs_of(np.array([0.1, 0.2]), np.ones(2))
    assert math.isnan(probability(same))
    assert math.isnan(tau_b(same))
    apart = pairs_of(np.array([0.1, 0.2]), np.array([0.0, 1.0]), np.arange(2))
    assert math.isnan(probability(apart))  # two topics: no pair of one
    assert math.isnan(probability(pairs_of(np.zeros(0), np.zeros(0))))


def test_pairs_that_all_tie_compare_nothing() -> None:
    """One list a topic: its pages differ in their clicks and never in their score. That is no 0.5, found for sure."""
    score, clicked, topic = np.array([0.2, 0.2, 0.9, 0.9]), np.array([0.0, 1.0, 1.0, 1.0]), np.array([0, 0, 1, 1])
    tied = pairs_of(score, clicked, topic)
    assert (tied.second.tolist(), tied.both.tolist(), tied.count) == ([1, 1, 0, 0], [0, 0, 0, 0], 0)
    assert math.isnan(probability(tied))
    crossed = pairs_of(np.array([0.1, 0.2, 0.5, 0.5]), np.array([1.0, 1.0, 0.0, 1.0]), topic)
    assert (int(crossed.first.sum()), int(crossed.second.sum()), crossed.count) == (2, 2, 0)  # never in the same topic
    assert math.isnan(probability(crossed))
    one = pairs_of(np.append(score, 0.4), np.append(clicked, 1.0), np.append(topic, 0))
    assert (one.count, probability(one)) == (1, 0.75)  # one is right, one tied
