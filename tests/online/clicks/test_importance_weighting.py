"""Estimators of another policy's rewards: exact expectations over all pages, under every convention of propensities."""

from __future__ import annotations

from itertools import pairwise, permutations, product

import numpy as np
import pytest

from judged.online.clicks.importance_weighting import (
    ESTIMATORS,
    Rates,
    cascade,
    direct_residuals,
    effective,
    equally_skewed,
    item_position,
    mean_and_error,
    pseudo_inverse,
    self_normalized,
    whole_list,
)

SIZES = [(docs, ranks) for docs in range(1, 6) for ranks in range(1, 4)]
FUNCTIONS = {
    "item-position": item_position,
    "cascade": cascade,
    "pseudo-inverse": pseudo_inverse,
    "whole list": whole_list,
}


class World:
    """All pages of so many documents and ranks, a logged and another policy over them, and rewards.

    ``logged``: *lists*, any probability of each list; or *independent*, each rank is filled on its own.
    """

    def __init__(self, docs: int, ranks: int, *, repeated: bool, logged: str, seed: int) -> None:
        rng = np.random.default_rng([seed, docs, ranks])
        pages = product(range(docs), repeat=ranks) if repeated else permutations(range(docs), ranks)
        self.pages, self.docs, self.ranks = np.array(list(pages)), docs, ranks
        if logged == "lists":
            self.logged = rng.dirichlet(np.ones(len(self.pages)))
        else:
            filled = rng.dirichlet(np.ones(docs), ranks)
            self.logged = np.prod(filled[np.arange(ranks), self.pages], axis=1)
        self.other = rng.dirichlet(np.ones(len(self.pages)))
        self.rng = rng

    def marginal(self, chance: np.ndarray) -> np.ndarray:
        """Return the probability of each page's document at each rank: (pages, ranks)."""
        columns = [np.bincount(column, chance, self.docs)[column] for column in self.pages.T]
        return np.stack(columns, axis=1)

    def conditional(self, chance: np.ndarray) -> np.ndarray:
        """Return the same given the documents at higher ranks."""
        prefixes = [np.ones(len(chance))]
        for rank in range(1, self.ranks + 1):
            code = np.unique(self.pages[:, :rank], axis=0, return_inverse=True)[1].ravel()
            prefixes.append(np.bincount(code, chance)[code])
        return np.stack([below / above for above, below in pairwise(prefixes)], axis=1)

    def rewards(self, model: str) -> np.ndarray:
        """Return expected rewards of each page: (pages, ranks)."""
        worth = self.rng.random((self.ranks, self.docs))
        own = worth[np.arange(self.ranks), self.pages]
        if model == "item-position":
            return own
        if model == "cascade":  # a result is clicked less below good ones
            above = np.cumprod(1 - own, axis=1)
            return own * np.concatenate([np.ones((len(own), 1)), above[:, :-1]], axis=1)
        if model == "sum":  # the page's sum is one over its ranks, told of the first rank alone
            return np.concatenate([own.sum(axis=1, keepdims=True), np.zeros((len(own), self.ranks - 1))], axis=1)
        return self.rng.random(self.pages.shape)  # anything

    def weights(self, convention: str) -> np.ndarray:
        if convention == "conditional":
            return self.conditional(self.other) / self.conditional(self.logged)
        return self.marginal(self.other) / self.marginal(self.logged)


HOLDS = {  # rewards for which each estimator is unbiased
    "item-position": {"item-position"},
    "cascade": {"item-position", "cascade"},
    "pseudo-inverse": {"item-position", "sum"},
    "whole list": {"item-position", "cascade", "sum", "any"},
}
MODELS = ("item-position", "cascade", "sum", "any")


@pytest.mark.parametrize("repeated", [True, False])
@pytest.mark.parametrize("convention", ["marginal", "conditional", "independent"])
def test_each_is_unbiased_under_the_conventions_that_it_accepts(convention, repeated):
    """Over all pages of up to 5 documents and 3 ranks; the other policy has any probability of each list."""
    if convention == "independent" and not repeated:
        pytest.skip("ranks that are filled independently repeat documents")
    logged = "independent" if convention == "independent" else "lists"
    for docs, ranks in SIZES:
        if not repeated and docs < ranks:
            continue
        for seed in range(3):
            world = World(docs, ranks, repeated=repeated, logged=logged, seed=seed)
            for model, (name, function) in product(MODELS, FUNCTIONS.items()):
                if convention not in ESTIMATORS[name].conventions or model not in HOLDS[name]:
                    continue
                rewards = world.rewards(model)
                own = "conditional" if convention != "marginal" and ESTIMATORS[name].list_probability else "marginal"
                bias = world.logged @ function(world.weights(own), rewards) - world.other @ rewards.sum(axis=1)
                assert abs(bias) < 1e-12 * max(1.0, world.weights(own).max() ** ranks), (name, model, docs, ranks)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_is_biased_under_the_convention_that_it_refuses_and_where_its_assumption_fails(name):
    world = World(4, 3, repeated=False, logged="lists", seed=7)
    for convention in {"marginal", "conditional"} - set(ESTIMATORS[name].conventions):
        rewards = world.rewards("item-position")
        bias = world.logged @ FUNCTIONS[name](world.weights(convention), rewards) - world.other @ rewards.sum(axis=1)
        assert abs(bias) > 1e-3, convention
    world = World(4, 3, repeated=True, logged="independent", seed=7)
    for model in set(MODELS) - HOLDS[name]:
        rewards = world.rewards(model)
        own = "conditional" if ESTIMATORS[name].list_probability else "marginal"
        bias = world.logged @ FUNCTIONS[name](world.weights(own), rewards) - world.other @ rewards.sum(axis=1)
        assert abs(bias) > 1e-3, model


def test_permutations_with_marginal_propensities_by_hand():
    """Uniform lists of 2 of 2 documents, 1/2 each at each rank; the other policy shows (0, 1).

    The product of marginal weights of that list is 4, where 1 / P(list) is 2.
    """
    weights, rewards = np.array([[2.0, 2.0], [0.0, 0.0]]), np.ones((2, 2))
    assert np.array([0.5, 0.5]) @ item_position(weights, rewards) == 2.0
    assert np.array([0.5, 0.5]) @ whole_list(weights, rewards) == 4.0
    conditional = np.array([[2.0, 1.0], [0.0, 1.0]])
    assert np.array([0.5, 0.5]) @ whole_list(conditional, rewards) == 2.0
    assert np.array([0.5, 0.5]) @ cascade(conditional, rewards) == 2.0


def test_the_conventions_of_each():
    marginal, conditional = {"marginal", "independent"}, {"conditional", "independent"}
    assert {name: set(one.conventions) for name, one in ESTIMATORS.items()} == {
        **dict.fromkeys(("item-position", "self-normalized", "clipped", "doubly robust"), marginal),
        **dict.fromkeys(("cascade", "whole list"), conditional),
        "pseudo-inverse": {"independent"},
        "direct": set(),
    }
    assert {name for name, one in ESTIMATORS.items() if one.list_probability} == {"cascade", "whole list"}


def test_clipping_lowers_by_at_most_what_is_cut():
    world = World(5, 3, repeated=False, logged="lists", seed=1)
    weights, rewards = world.weights("marginal"), world.rewards("item-position")
    truth = world.other @ rewards.sum(axis=1)
    for clip in (1.0, 2.0, weights.max()):
        cut = np.minimum(weights, clip)
        low = world.logged @ item_position(cut, rewards)
        assert low <= truth + 1e-12
        assert truth <= low + world.logged @ (weights - cut).sum(axis=1) + 1e-12


def test_self_normalized_by_hand():
    weights, rewards = np.array([[2.0], [1.0], [0.0], [1.0]]), np.array([[1.0], [0.0], [1.0], [1.0]])
    value, influence = self_normalized(weights, rewards, np.ones(1))
    assert value == pytest.approx(3 / 4)
    np.testing.assert_allclose(influence, np.array([2 * 0.25, -0.75, 0.0, 0.25]))
    value, influence = self_normalized(weights, rewards, np.array([0.8]))  # 0.2 is never shown, and counts 0
    assert value == pytest.approx(0.8 * 3 / 4)
    np.testing.assert_allclose(influence, 0.8 * np.array([2 * 0.25, -0.75, 0.0, 0.25]))
    assert self_normalized(np.zeros((2, 1)), np.ones((2, 1)), np.ones(1))[0] == 0.0


def test_self_normalized_influence_is_the_derivative():
    """Of the weighted mean of pages, by the weight of each page: N * d value / d weight."""
    rng = np.random.default_rng(2)
    weights, rewards = rng.exponential(size=(30, 2)), (rng.random((30, 2)) < 0.3).astype(float)
    value, influence = self_normalized(weights, rewards, np.array([1.0, 0.9]))

    def at(page, step):
        mass = np.ones(30)
        mass[page] += step
        means = (mass[:, None] * weights).sum(axis=0), (mass[:, None] * weights * rewards).sum(axis=0)
        return float((np.array([1.0, 0.9]) * means[1] / means[0]).sum())

    derivative = [30 * (at(page, 1e-6) - at(page, -1e-6)) / 2e-6 for page in range(30)]
    np.testing.assert_allclose(influence, derivative, rtol=1e-6, atol=1e-8)
    assert value == pytest.approx(at(0, 0.0))


def test_effective_and_mean_by_hand():
    assert effective(np.array([3.0, 1.0])) == 16 / 10
    assert effective(np.zeros(3)) == 0.0
    mean, error = mean_and_error(np.array([2.0, 0.0, 1.0, 1.0]), np.array([0, 0, 1, 2]))
    # residuals by user: 0, 0, 0
    assert (mean, error) == (1.0, 0.0)
    mean, error = mean_and_error(np.array([2.0, 1.0, 0.0]), np.array([0, 1, 2]))
    assert (mean, error) == pytest.approx((1.0, np.sqrt(2 * 3 / 2) / 3))
    assert np.isnan(mean_and_error(np.ones(3), np.zeros(3, dtype=int))[1])


def test_rates_by_hand():
    cells, ranks, rewards = np.array([0, 0, 1]), np.array([0, 0, 1]), np.array([1.0, 0.0, 1.0])
    shrunk = Rates(cells, ranks, rewards, 3, 2, prior=2.0)
    # (1 + 2 * 0.5) / (2 + 2); (1 + 2 * 1) / (1 + 2); no row: the mean of its rank; unknown: the same
    asked = np.array([0, 1, 2, -1]), np.array([0, 1, 0, 1])
    np.testing.assert_allclose(shrunk.of(*asked), [0.5, 1.0, 0.5, 1.0])
    plain = Rates(cells, ranks, rewards, 3, 2, prior=0.0)
    np.testing.assert_allclose(plain.of(*asked), [0.5, 1.0, 0.0, 0.0])
    assert plain.ranks.tolist() == [0.5, 1.0]


def test_direct_residuals_by_hand():
    cells, units = np.array([0, 0, 0, 1, 1]), np.array([0, 1, 1, 2, 2])
    rewards, weights, center = np.array([1.0, 0.0, 0.0, 1.0, 0.0]), np.full(5, 2.0), np.full(5, 0.4)
    # cell 0: mean 1/3, two users: times 2; cell 1: one user: off the center
    expected = 2 * np.array([4 / 3, -2 / 3, -2 / 3, 0.6, -0.4])
    np.testing.assert_allclose(direct_residuals(cells, rewards, units, weights, center), expected)


def test_equally_skewed_by_hand():
    assert equally_skewed(np.array([1.0, 1.0, 1.0, 0.0])) == pytest.approx(3.0)
    assert equally_skewed(np.array([1.0, -1.0])) == np.inf
    assert equally_skewed(np.zeros(3)) == 0.0
    rare = (np.arange(1000) < 20) - 0.02  # 20 of 1,000 users click once: skewness 0.98 * 0.02 * 0.96 / (0.0196)**1.5
    assert equally_skewed(rare) == pytest.approx(1000 * 0.0196**3 / (0.0196 * 0.96) ** 2)
