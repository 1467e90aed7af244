"""Estimators of a target policy's rewards: exact expectations over all pages, for each kind of propensities."""

from __future__ import annotations

from itertools import pairwise, permutations, product

import numpy as np
import pytest

from judged.online.clicks.importance_weighting import (
    ESTIMATORS,
    ShrunkRates,
    cascade,
    direct_method_residuals,
    effective_sample_size,
    item_position,
    mean_and_error,
    pseudo_inverse,
    self_normalized,
    skewness_sample_size,
    whole_list,
)

SIZES = [(docs, ranks) for docs in range(1, 6) for ranks in range(1, 4)]
ESTIMATE = {
    "item-position": item_position,
    "cascade": cascade,
    "pseudo-inverse": pseudo_inverse,
    "whole list": whole_list,
}


class PolicyPair:
    """A logging and a target policy over all pages of `docs` documents and `ranks` ranks, and rewards.

    ``kind`` of the logging policy: *lists* (any probability of each list) or *independent* (ranks are independent).
    """

    def __init__(self, docs: int, ranks: int, *, repeated: bool, kind: str, seed: int) -> None:
        rng = np.random.default_rng([seed, docs, ranks])
        pages = product(range(docs), repeat=ranks) if repeated else permutations(range(docs), ranks)
        self.pages, self.docs, self.ranks = np.array(list(pages)), docs, ranks
        if kind == "lists":
            self.logging = rng.dirichlet(np.ones(len(self.pages)))
        else:
            rank_probabilities = rng.dirichlet(np.ones(docs), ranks)
            self.logging = np.prod(rank_probabilities[np.arange(ranks), self.pages], axis=1)
        self.target = rng.dirichlet(np.ones(len(self.pages)))
        self.rng = rng

    def marginal(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the probability of each page's document at each rank: (pages, ranks)."""
        columns = [np.bincount(column, probabilities, self.docs)[column] for column in self.pages.T]
        return np.stack(columns, axis=1)

    def conditional(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the probability of each document given the documents at higher ranks: (pages, ranks)."""
        prefixes = [np.ones(len(probabilities))]
        for rank in range(1, self.ranks + 1):
            prefix_codes = np.unique(self.pages[:, :rank], axis=0, return_inverse=True)[1].ravel()
            prefixes.append(np.bincount(prefix_codes, probabilities)[prefix_codes])
        return np.stack([lower / upper for upper, lower in pairwise(prefixes)], axis=1)

    def rewards(self, model: str) -> np.ndarray:
        """Return expected rewards of each page: (pages, ranks)."""
        attraction = self.rng.random((self.ranks, self.docs))
        rates = attraction[np.arange(self.ranks), self.pages]
        if model == "item-position":
            return rates
        if model == "cascade":  # clicks above make a click less likely
            no_click_above = np.cumprod(1 - rates, axis=1)
            return rates * np.concatenate([np.ones((len(rates), 1)), no_click_above[:, :-1]], axis=1)
        if model == "sum":  # the total is a sum over ranks, but the first rank gets all of it
            return np.concatenate(
                [rates.sum(axis=1, keepdims=True), np.zeros((len(rates), self.ranks - 1))],
                axis=1,
            )
        return self.rng.random(self.pages.shape)  # anything

    def weights(self, convention: str) -> np.ndarray:
        if convention == "conditional":
            return self.conditional(self.target) / self.conditional(self.logging)
        return self.marginal(self.target) / self.marginal(self.logging)


UNBIASED_FOR = {  # reward models for which each estimator is unbiased
    "item-position": {"item-position"},
    "cascade": {"item-position", "cascade"},
    "pseudo-inverse": {"item-position", "sum"},
    "whole list": {"item-position", "cascade", "sum", "any"},
}
MODELS = ("item-position", "cascade", "sum", "any")


@pytest.mark.parametrize("repeated", [True, False])
@pytest.mark.parametrize("convention", ["marginal", "conditional", "independent"])
def test_estimators_are_unbiased_for_their_conventions(convention, repeated):
    """All pages of up to 5 documents and 3 ranks; the target policy is any distribution over lists."""
    if convention == "independent" and not repeated:
        pytest.skip("ranks that are filled independently repeat documents")
    kind = "independent" if convention == "independent" else "lists"
    for docs, ranks in SIZES:
        if not repeated and docs < ranks:
            continue
        for seed in range(3):
            policies = PolicyPair(docs, ranks, repeated=repeated, kind=kind, seed=seed)
            for model, (name, function) in product(MODELS, ESTIMATE.items()):
                if convention not in ESTIMATORS[name].conventions or model not in UNBIASED_FOR[name]:
                    continue
                rewards = policies.rewards(model)
                kind = "conditional" if convention != "marginal" and ESTIMATORS[name].list_probability else "marginal"
                bias = policies.logging @ function(policies.weights(kind), rewards) - policies.target @ rewards.sum(
                    axis=1
                )
                assert abs(bias) < 1e-12 * max(1.0, policies.weights(kind).max() ** ranks), (
                    name,
                    model,
                    docs,
                    ranks,
                )


@pytest.mark.parametrize("name", ESTIMATE)
def test_estimators_are_biased_for_other_conventions_and_violated_assumptions(name):
    policies = PolicyPair(4, 3, repeated=False, kind="lists", seed=7)
    for convention in {"marginal", "conditional"} - set(ESTIMATORS[name].conventions):
        rewards = policies.rewards("item-position")
        bias = policies.logging @ ESTIMATE[name](policies.weights(convention), rewards) - policies.target @ rewards.sum(
            axis=1
        )
        assert abs(bias) > 1e-3, convention
    policies = PolicyPair(4, 3, repeated=True, kind="independent", seed=7)
    for model in set(MODELS) - UNBIASED_FOR[name]:
        rewards = policies.rewards(model)
        kind = "conditional" if ESTIMATORS[name].list_probability else "marginal"
        bias = policies.logging @ ESTIMATE[name](policies.weights(kind), rewards) - policies.target @ rewards.sum(
            axis=1
        )
        assert abs(bias) > 1e-3, model


def test_permutations_with_marginal_propensities_by_hand():
    """Uniform permutations of 2 documents, marginal propensities of 1/2; the target policy shows (0, 1).

    The product of the marginal weights of that list is 4, but 1 / P(list) is 2.
    """
    weights, rewards = np.array([[2.0, 2.0], [0.0, 0.0]]), np.ones((2, 2))
    assert np.array([0.5, 0.5]) @ item_position(weights, rewards) == 2.0
    assert np.array([0.5, 0.5]) @ whole_list(weights, rewards) == 4.0
    conditional = np.array([[2.0, 1.0], [0.0, 1.0]])
    assert np.array([0.5, 0.5]) @ whole_list(conditional, rewards) == 2.0
    assert np.array([0.5, 0.5]) @ cascade(conditional, rewards) == 2.0


def test_conventions_of_estimators():
    marginal, conditional = {"marginal", "independent"}, {"conditional", "independent"}
    assert {name: set(estimator.conventions) for name, estimator in ESTIMATORS.items()} == {
        **dict.fromkeys(("item-position", "self-normalized", "clipped", "doubly robust"), marginal),
        **dict.fromkeys(("cascade", "whole list"), conditional),
        "pseudo-inverse": {"independent"},
        "direct": set(),
    }
    assert {name for name, estimator in ESTIMATORS.items() if estimator.list_probability} == {"cascade", "whole list"}


def test_clipping_bias_is_at_most_the_clipped_weight():
    policies = PolicyPair(5, 3, repeated=False, kind="lists", seed=1)
    weights, rewards = policies.weights("marginal"), policies.rewards("item-position")
    truth = policies.target @ rewards.sum(axis=1)
    for clip in (1.0, 2.0, weights.max()):
        clipped = np.minimum(weights, clip)
        lower_limit = policies.logging @ item_position(clipped, rewards)
        assert lower_limit <= truth + 1e-12
        assert truth <= lower_limit + policies.logging @ (weights - clipped).sum(axis=1) + 1e-12


def test_self_normalized_by_hand():
    weights, rewards = np.array([[2.0], [1.0], [0.0], [1.0]]), np.array([[1.0], [0.0], [1.0], [1.0]])
    value, influence = self_normalized(weights, rewards, np.ones(1))
    assert value == pytest.approx(3 / 4)
    np.testing.assert_allclose(influence, np.array([2 * 0.25, -0.75, 0.0, 0.25]))
    value, influence = self_normalized(weights, rewards, np.array([0.8]))  # 0.2 has no support, and counts 0
    assert value == pytest.approx(0.8 * 3 / 4)
    np.testing.assert_allclose(influence, 0.8 * np.array([2 * 0.25, -0.75, 0.0, 0.25]))
    assert self_normalized(np.zeros((2, 1)), np.ones((2, 1)), np.ones(1))[0] == 0.0


def test_self_normalized_influence_is_the_derivative():
    """Influence is N times the derivative of the value by the weight of a page."""
    rng = np.random.default_rng(2)
    weights, rewards = rng.exponential(size=(30, 2)), (rng.random((30, 2)) < 0.3).astype(float)
    value, influence = self_normalized(weights, rewards, np.array([1.0, 0.9]))

    def value_with_step(page, step):
        page_weights = np.ones(30)
        page_weights[page] += step
        sums = (page_weights[:, None] * weights).sum(axis=0), (page_weights[:, None] * weights * rewards).sum(axis=0)
        return float((np.array([1.0, 0.9]) * sums[1] / sums[0]).sum())

    derivative = [30 * (value_with_step(page, 1e-6) - value_with_step(page, -1e-6)) / 2e-6 for page in range(30)]
    np.testing.assert_allclose(influence, derivative, rtol=1e-6, atol=1e-8)
    assert value == pytest.approx(value_with_step(0, 0.0))


def test_effective_sample_size_and_mean_by_hand():
    assert effective_sample_size(np.array([3.0, 1.0])) == 16 / 10
    assert effective_sample_size(np.zeros(3)) == 0.0
    mean, error = mean_and_error(np.array([2.0, 0.0, 1.0, 1.0]), np.array([0, 0, 1, 2]))
    # residuals by user: 0, 0, 0
    assert (mean, error) == (1.0, 0.0)
    mean, error = mean_and_error(np.array([2.0, 1.0, 0.0]), np.array([0, 1, 2]))
    assert (mean, error) == pytest.approx((1.0, np.sqrt(2 * 3 / 2) / 3))
    assert np.isnan(mean_and_error(np.ones(3), np.zeros(3, dtype=int))[1])


def test_rates_by_hand():
    cells, ranks, rewards = np.array([0, 0, 1]), np.array([0, 0, 1]), np.array([1.0, 0.0, 1.0])
    shrunk = ShrunkRates(cells, ranks, rewards, 3, 2, prior=2.0)
    # (1 + 2 * 0.5) / (2 + 2); (1 + 2 * 1) / (1 + 2); an empty cell and an unknown cell: the mean of the rank
    lookups = np.array([0, 1, 2, -1]), np.array([0, 1, 0, 1])
    np.testing.assert_allclose(shrunk.expected_reward(*lookups), [0.5, 1.0, 0.5, 1.0])
    unshrunk = ShrunkRates(cells, ranks, rewards, 3, 2, prior=0.0)
    np.testing.assert_allclose(unshrunk.expected_reward(*lookups), [0.5, 1.0, 0.0, 0.0])
    assert unshrunk.rank_means.tolist() == [0.5, 1.0]


def test_direct_residuals_by_hand():
    cells, units = np.array([0, 0, 0, 1, 1]), np.array([0, 1, 1, 2, 2])
    rewards, weights, center = np.array([1.0, 0.0, 0.0, 1.0, 0.0]), np.full(5, 2.0), np.full(5, 0.4)
    # cell 0: mean 1/3, two users, factor 2; cell 1: one user, residuals from the center
    expected = 2 * np.array([4 / 3, -2 / 3, -2 / 3, 0.6, -0.4])
    np.testing.assert_allclose(direct_method_residuals(cells, rewards, units, weights, center), expected)


def test_skewness_sample_size_by_hand():
    assert skewness_sample_size(np.array([1.0, 1.0, 1.0, 0.0])) == pytest.approx(3.0)
    assert skewness_sample_size(np.array([1.0, -1.0])) == np.inf
    assert skewness_sample_size(np.zeros(3)) == 0.0
    residuals = (np.arange(1000) < 20) - 0.02  # 20 of 1,000 users click: skewness 0.98 * 0.02 * 0.96 / (0.0196)**1.5
    assert skewness_sample_size(residuals) == pytest.approx(1000 * 0.0196**3 / (0.0196 * 0.96) ** 2)
