"""Strengths of systems by enumeration of likelihoods, and mixed models of balanced data in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import optimize

from judged.studies.crossed import MAX_LEVELS, mixed_model
from judged.studies.preference import bradley_terry, bradley_terry_errors

WINS = np.array([[0, 7, 4, 1.5], [2, 0, 6, 3], [3, 1, 0, 2], [0.5, 2, 2, 0]])


def test_strengths_have_the_largest_likelihood() -> None:
    def loss(free: np.ndarray) -> float:
        strength_values = np.append(free, -free.sum())
        return float((WINS * np.log1p(np.exp(strength_values - strength_values[:, None]))).sum())

    best = optimize.minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-9}).x
    strengths = bradley_terry(WINS)
    assert strengths[:3] == pytest.approx(best, abs=1e-6)
    assert strengths.sum() == pytest.approx(0.0, abs=1e-12)
    assert bradley_terry(10.0 * WINS) == pytest.approx(strengths, abs=1e-9)
    assert bradley_terry(WINS.T) == pytest.approx(-strengths, abs=1e-9)
    # two systems: half the logarithm of the odds
    for wins, losses in ((3, 1), (99, 1), (1, 9)):
        half = math.log(wins / losses) / 2
        assert bradley_terry(np.array([[0, wins], [losses, 0.0]])) == pytest.approx([half, -half], abs=1e-10)
    # far apart it takes many steps: 999 to 1 between neighbors of four systems
    chain = np.zeros((4, 4))
    for i in range(3):
        chain[i, i + 1], chain[i + 1, i] = 999.0, 1.0
    assert -np.diff(bradley_terry(chain)) == pytest.approx([math.log(999)] * 3, rel=1e-4)


@pytest.mark.parametrize(
    ("wins", "finite"),
    [
        ([[0, 1, 0], [0, 0, 1], [1, 0, 0]], True),  # each lost to one and won against one
        ([[0, 1, 1], [1, 0, 1], [0, 0, 0]], False),  # the third never won
        ([[0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1], [0, 0, 1, 0]], False),  # nor did the last two together
        ([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]], False),  # two pairs that never met
        ([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]], True),
    ],
)
def test_strengths_are_finite_where_every_system_leads_to_every_other(wins: list[list[int]], finite: bool) -> None:
    strengths = bradley_terry(np.array(wins, float))
    assert np.isfinite(strengths).all() == finite
    assert np.isnan(strengths).all() != finite


def test_errors_of_strengths_are_those_of_a_clustered_logistic_regression() -> None:
    """Four systems: the last strength is less the sum of the others; statsmodels without its factor for few rows."""
    rng, people = np.random.default_rng(2), 9
    wins, rows, groups = np.zeros((people, 4, 4)), [], []
    for person in range(people):
        for first in range(4):
            for second in range(first):
                for _ in range(1 + person % 2):
                    won = bool(rng.integers(2))
                    wins[person, first if won else second, second if won else first] += 1
                    row = np.zeros(4)
                    row[[first, second]] = 1, -1
                    rows.append([*(row[:3] - row[3]), won])
                    groups.append(person)
    table = np.array(rows, float)
    options = {"groups": np.array(groups), "use_correction": False}
    fit = sm.Logit(table[:, 3], table[:, :3]).fit(disp=False, cov_type="cluster", cov_kwds=options)
    strengths = bradley_terry(wins.sum(axis=0))
    assert strengths[:3] == pytest.approx(fit.params, abs=1e-6)
    covariance = fit.cov_params()
    variances = np.array([*np.diag(covariance), covariance.sum()]) * people / (people - 1)
    assert bradley_terry_errors(wins, strengths) == pytest.approx(np.sqrt(variances), rel=1e-5)


def test_a_mixed_model_of_one_factor_in_closed_form() -> None:
    """Six groups of four: the analysis of variance; and the mean with the variance of the groups' means."""
    rng = np.random.default_rng(3)
    table = 2 * rng.normal(size=(6, 1)) + rng.normal(size=(6, 4)) + 5
    group = np.repeat([5, 7, 9, 11, 30, 2], 4)  # codes may have gaps
    fit = mixed_model(table.ravel(), np.ones((24, 1)), (group,))
    within = table.var(axis=1, ddof=1).mean()
    assert fit.residual == pytest.approx(within, rel=1e-4)
    assert fit.variances == pytest.approx([table.mean(1).var(ddof=1) - within / 4], rel=1e-4)
    assert fit.effects == pytest.approx([table.mean()])
    assert fit.covariance == pytest.approx(np.array([[table.mean(1).var(ddof=1) / 6]]), rel=1e-4)
    assert MAX_LEVELS == 1500


def test_a_mixed_model_without_spread_of_its_factor_is_least_squares() -> None:
    """Groups differ less than single values make them: the variance of groups is 0."""
    rng = np.random.default_rng(4)
    values = rng.normal(size=(8, 5))
    values -= values.mean(1, keepdims=True)
    x = rng.normal(size=40)
    x -= np.repeat(x.reshape(8, 5).mean(1), 5)
    fit = mixed_model(values.ravel() + 0.5 * x, np.column_stack([np.ones(40), x]), (np.repeat(np.arange(8), 5),))
    plain = sm.OLS(values.ravel() + 0.5 * x, np.column_stack([np.ones(40), x])).fit()
    assert fit.variances == pytest.approx([0.0], abs=1e-5)
    assert fit.residual == pytest.approx(plain.scale, rel=1e-4)
    assert fit.effects == pytest.approx(plain.params, abs=1e-6)
    assert fit.covariance == pytest.approx(plain.cov_params(), rel=1e-4, abs=1e-9)


def test_a_mixed_model_of_factors_that_explain_all() -> None:
    """Nothing is left of single values, and the spread of the groups is that of their means."""
    group = np.repeat(np.arange(6), 3)
    level = np.array([1.0, 4.0, 2.0, 8.0, 5.0, 7.0])
    fit = mixed_model(level[group], np.ones((18, 1)), (group,))
    assert fit.residual < 1e-4 * level.var()
    assert fit.effects == pytest.approx([level.mean()])
    # a spread of a hundred thousand times that of single values
    noise = np.tile([-1.0, 0.0, 1.0], 6) * 1e-2
    far = mixed_model(level[group] + noise, np.ones((18, 1)), (group,))
    assert far.residual == pytest.approx(1e-4, rel=1e-2)
    assert far.variances == pytest.approx([level.var(ddof=1) - 1e-4 / 3], rel=2e-2)
