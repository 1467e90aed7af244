"""Pairs of pages, counted by cells, against pairs enumerated one by one and against SciPy."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import judged
from judged.online.offline.concordance import Pairs, probability, tau_b
from judged.online.offline.relating import _rhos
from judged.stats.rankings import spearman

few = st.integers(0, 3)
pages = st.lists(st.tuples(few, few, st.integers(0, 4), st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=14)


def enumerated(rows: list[tuple[int, int, int, int]], *, strata: bool) -> list[float]:
    """Count pairs of pages (first, second, stratum, weight): concordant, discordant, unlike second, unlike first."""
    found = [0.0] * 4
    for (x, y, one, w), (u, v, other, t) in combinations(rows, 2):
        if strata and one != other:
            continue
        found[0] += w * t * ((x - u) * (y - v) > 0)
        found[1] += w * t * ((x - u) * (y - v) < 0)
        found[2] += w * t * (y != v)
        found[3] += w * t * (x != u)
    return found


@given(pages, st.booleans())
def test_pairs_are_those_of_an_enumeration_for_any_weights(rows: list[tuple[int, ...]], strata: bool) -> None:
    first, second, unit, stratum, _ = (np.array(column) for column in zip(*rows, strict=True))
    weights = np.array([[rows[at % len(rows)][4] for at in range(5)], [1] * 5], dtype=np.float64)
    found = Pairs.of(first * 0.1, second * 1.0, unit, stratum if strata else None).counted(weights)
    for at, row in enumerate(weights):
        listed = [(x, y, g, row[u]) for x, y, u, g, _ in rows]
        assert found[at].tolist() == enumerated(listed, strata=strata)


def test_a_page_drawn_twice_is_as_good_as_two_pages() -> None:
    rng = np.random.default_rng(3)
    first, second, times = rng.integers(5, size=40) / 4, rng.integers(2, size=40) * 1.0, rng.integers(4, size=40)
    weighted = Pairs.of(first, second, np.arange(40)).counted(times[None, :].astype(float))
    written = [np.repeat(column, times) for column in (first, second)]
    plain = Pairs.of(*written, np.zeros(times.sum(), dtype=np.int64)).counted(np.ones((1, 1)))
    assert weighted.tolist() == plain.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_an_outcome_of_0_and_1_gives_the_area_under_the_curve(seed: int) -> None:
    rng = np.random.default_rng(seed)
    score, clicked = rng.integers(8, size=60) / 8, rng.random(60) < 0.4
    found = Pairs.of(score, clicked * 1.0, np.zeros(60, dtype=np.int64)).counted(np.ones((1, 1)))
    area = stats.mannwhitneyu(score[clicked], score[~clicked]).statistic / clicked.sum() / (~clicked).sum()
    assert probability(found)[0] == pytest.approx(area, abs=1e-14)
    assert tau_b(found)[0] == pytest.approx(judged.kendall_tau(score, clicked * 1.0).value, abs=1e-14)
    assert tau_b(found)[0] == pytest.approx(stats.kendalltau(score, clicked).statistic, abs=1e-12)


def test_the_outcome_may_have_many_values() -> None:
    rng = np.random.default_rng(9)
    score, value = rng.integers(9, size=300) / 9, 1.0 / rng.integers(1, 40, size=300)
    found = Pairs.of(score, value, np.zeros(300, dtype=np.int64)).counted(np.ones((1, 1)))
    assert tau_b(found)[0] == pytest.approx(judged.kendall_tau(score, value).value, abs=1e-13)


def test_nothing_to_compare_is_not_a_number() -> None:
    same = Pairs.of(np.array([0.1, 0.2]), np.ones(2), np.arange(2)).counted(np.ones((1, 2)))
    assert math.isnan(probability(same)[0])
    assert math.isnan(tau_b(same)[0])
    apart = Pairs.of(np.array([0.1, 0.2]), np.array([0.0, 1.0]), np.arange(2), np.arange(2)).counted(np.ones((1, 2)))
    assert math.isnan(probability(apart)[0])  # two topics: no pair of one


def test_blocks_of_many_resamples_do_not_change_the_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    pairs = Pairs.of(rng.random(30), rng.integers(3, size=30) * 1.0, rng.integers(6, size=30))
    weights = rng.integers(3, size=(50, 6)).astype(float)
    whole = pairs.counted(weights)
    monkeypatch.setattr("judged.online.offline.concordance._HELD", 200)
    assert pairs.counted(weights).tolist() == whole.tolist()


def test_means_of_topics_are_ranked_as_spearman_does() -> None:
    rng = np.random.default_rng(6)
    count = rng.integers(4, size=(30, 12)).astype(float)  # some topics are not drawn
    score, value = (rng.integers(5, size=(30, 12)) * count for _ in range(2))
    found = _rhos(count, score, value)
    for at, row in enumerate(count):
        drawn = row > 0
        wanted = spearman(score[at, drawn] / row[drawn], value[at, drawn] / row[drawn]).value
        assert found[at] == pytest.approx(wanted, abs=1e-12)
