"""Rank correlations against scipy, their definitions and published values."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from judged.errors import InputError
from judged.stats.rankings import kendall_tau, spearman, tau_ap

NAN = math.nan

# the test data of the authors' R package ircor (Urbano and Marrero 2017)
X = [
    [0.897, 0.372, 0.908, 0.898, 0.661, 0.062, 0.177, 0.384, 0.498, 0.992],
    [0.266, 0.573, 0.202, 0.945, 0.629, 0.206, 0.687, 0.77, 0.718, 0.38],
    [0.185, 0.573, 0.944, 0.129, 0.468, 0.553, 0.761, 0.405, 0.976, 0.445],
]
Y = [
    [0.82, 0.406, 0.817, 0.953, 0.673, 0.073, 0.364, 0.547, 0.589, 0.988],
    [0.263, 0.843, 0.728, 0.928, 0.08, 0.114, 0.467, 0.641, 0.973, 0.644],
    [0.845, 0.272, 0.275, 0.924, 0.605, 0.334, 0.162, 0.872, 0.018, 0.25],
]
X_TIES = [
    [0.9, 0.4, 0.9, 0.9, 0.7, 0.1, 0.2, 0.4, 0.5, 1],
    [0.3, 0.6, 0.2, 0.9, 0.6, 0.2, 0.7, 0.8, 0.7, 0.4],
    [0.2, 0.6, 0.9, 0.1, 0.5, 0.6, 0.8, 0.4, 1, 0.4],
]
Y_TIES = [
    [0.8, 0.4, 0.8, 1, 0.7, 0.1, 0.4, 0.5, 0.6, 1],
    [0.3, 0.8, 0.7, 0.9, 0.1, 0.1, 0.5, 0.6, 1, 0.6],
    [0.8, 0.3, 0.3, 0.9, 0.6, 0.3, 0.2, 0.9, 0, 0.2],
]
PUBLISHED = [  # tau_a, tau_b, tau_AP, tau_AP,a, tau_AP,b without ties, tau_AP,b
    (0.8889, 0.9398, 0.8519, 0.7454, 0.8333, 0.7321),
    (0.3333, 0.3765, 0.2504, 0.2692, 0.2880, 0.2970),
    (-0.6222, -0.6510, -0.6971, -0.5558, -0.6680, -0.7047),
]

scores = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=9).map(
    lambda pairs: (np.array([x for x, _ in pairs], dtype=float), np.array([y for _, y in pairs], dtype=float))
)


@pytest.mark.parametrize("at", range(3))
def test_published_values(at: int) -> None:
    x, y, x_ties, y_ties = (np.array(side[at], dtype=float) for side in (X, Y, X_TIES, Y_TIES))
    result = (
        kendall_tau(x, y_ties, "a"), kendall_tau(x_ties, y_ties, "b"), tau_ap(x, y), tau_ap(x, y_ties, "a"),
        tau_ap(x, y, "b"), tau_ap(x_ties, y_ties, "b"),
    )  # fmt: skip
    assert [one.value for one in result] == pytest.approx(PUBLISHED[at], abs=5e-5)


@given(scores)
def test_tau_b_and_rho_are_those_of_scipy(pair: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = pair
    if len(set(x)) == 1 or len(set(y)) == 1:
        for result in (kendall_tau(x, y), spearman(x, y), tau_ap(x, y, "b")):
            assert math.isnan(result.value)
            assert result.sentence.endswith("is undefined: all items are tied in one of the two rankings.")
        return
    assert kendall_tau(x, y).value == pytest.approx(scipy.stats.kendalltau(x, y).statistic, abs=1e-12)
    assert spearman(x, y).value == pytest.approx(scipy.stats.spearmanr(x, y).statistic, abs=1e-12)


@given(scores)
def test_pairs_are_counted(pair: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = pair
    result = kendall_tau(x, y)
    signs = [(x[i] - x[j]) * (y[i] - y[j]) for i, j in itertools.combinations(range(len(x)), 2)]
    assert result.concordant == sum(sign > 0 for sign in signs)
    assert result.discordant == sum(sign < 0 for sign in signs)
    assert result.tied == sum(sign == 0 for sign in signs)


def by_definition(truth: list[int], order: list[int]) -> float:
    """Yilmaz et al. 2008, equation 4: of those above each thing, the share that belongs there."""
    right = 0.0
    for place in range(1, len(order)):
        right += sum(truth[above] > truth[order[place]] for above in order[:place]) / place
    return 2 * right / (len(order) - 1) - 1


@given(st.permutations(range(6)), st.lists(st.integers(0, 3), min_size=6, max_size=6))
def test_tau_ap_a_is_the_mean_over_all_orders_of_the_tied(truth: list[int], estimate: list[int]) -> None:
    falling = [
        list(order)
        for order in itertools.permutations(range(6))
        if all(estimate[a] >= estimate[b] for a, b in itertools.pairwise(order))
    ]
    expected = np.mean([by_definition(truth, order) for order in falling])
    result = tau_ap(np.array(truth, dtype=float), np.array(estimate, dtype=float))
    assert result.value == pytest.approx(expected, abs=1e-12)


@given(scores)
def test_what_is_symmetric(pair: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = pair
    for function in (kendall_tau, spearman, lambda one, other: tau_ap(one, other, "b")):
        assert function(x, y).value == pytest.approx(function(y, x).value, abs=1e-12, nan_ok=True)
    if len(set(x)) > 1:
        assert tau_ap(x, x, "b").value == pytest.approx(1)
        assert tau_ap(x, -x, "b").value == pytest.approx(-1)
        assert kendall_tau(x, -x).value == pytest.approx(-1)


def test_a_swap_at_the_top_counts_more() -> None:
    truth = np.array([5.0, 4, 3, 2, 1])
    top, bottom = np.array([4.0, 5, 3, 2, 1]), np.array([5.0, 4, 3, 1, 2])
    assert kendall_tau(truth, top).value == kendall_tau(truth, bottom).value == pytest.approx(0.8)
    assert tau_ap(truth, top).value == pytest.approx(2 * (0 + 1 + 1 + 1) / 4 - 1)
    assert tau_ap(truth, bottom).value == pytest.approx(2 * (1 + 1 + 1 + 3 / 4) / 4 - 1)


def test_what_is_missing_is_left_out() -> None:
    result = kendall_tau(np.array([3.0, NAN, 2.0, 1.0]), np.array([1.0, 5.0, 2.0, 3.0]))
    assert (result.value, result.n, result.left_out, result.discordant) == (-1.0, 3, 1, 3)
    for function in (kendall_tau, tau_ap, spearman):
        for size in (0, 1):
            nothing = function(np.zeros(size), np.zeros(size))
            assert nothing.sentence.endswith("is undefined: the rankings have fewer than two items in common.")


def test_many_things_are_counted_in_parts() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.integers(0, 300, 1300).astype(float), rng.integers(0, 300, 1300).astype(float)
    assert kendall_tau(x, y).value == pytest.approx(scipy.stats.kendalltau(x, y).statistic, abs=1e-12)
    assert tau_ap(x, x, "b").value == pytest.approx(1)


def test_words_and_wrong_input() -> None:
    result = tau_ap(np.array([2.0, 1.0, 0.0]), np.array([2.0, 0.0, 1.0]))
    assert result.sentence == "tau_AP,a is 0.500 over 3 ranked items: 1 of 3 pairs is in the opposite order."
    with pytest.raises(InputError, match=r'requires a `truth` without ties.*use ties="b"'):
        tau_ap(np.array([1.0, 1.0]), np.array([1.0, 2.0]))
    with pytest.raises(InputError, match="same length"):
        spearman(np.zeros(2), np.zeros(3))
    with pytest.raises(InputError, match=r"`ties`.*'c'"):
        kendall_tau(np.zeros(2), np.zeros(2), "c")
