"""Fits against PyClick, another optimizer, and simulated users with known parameters."""

from __future__ import annotations

import json

import numpy as np
import pytest
from calibration.click_models import build_patterns, covered_parameters, sample_clicks, sample_pages, sample_parameters
from scipy.stats import beta

from judged.errors import InputError
from judged.online.clicks.fitting import build_data, fit, fit_beta, pair_posteriors, predict
from judged.online.clicks.model_fit import logit_interval
from judged.online.clicks.posteriors import Likelihood, Prior, bin_scores
from judged.online.clicks.rank_models import MODELS
from shared_data import SHARED

QUERIES, DOCS, DEPTH = 40, 12, 6


@pytest.fixture(scope="module")
def pyclick():
    """400 pages of 6 queries, and the fits of PyClick 0.2: 50 steps from 1/2, with pseudo-counts (1, 2)."""
    if not SHARED.is_dir():
        pytest.skip("the shared test data is not beside this checkout")
    fixture = json.loads((SHARED / "logs" / "pyclick_fixture.json").read_text())
    pair = np.array([[8 * query + doc for doc in docs] for query, docs, _ in fixture["sessions"]])
    return build_patterns(pair, np.array([clicks for *_, clicks in fixture["sessions"]], dtype=bool)), fixture["models"]


PYCLICK_PRIORS = dict.fromkeys(
    ("attractiveness", "examination", "satisfaction"), (1.0, 1.0)
)  # PyClick's pseudo-counts: 1 success, 2 trials


def test_cm_equals_pyclick(pyclick):
    pages, values = pyclick
    fitted = fit(build_data(MODELS["CM"], pages, pages.counts()), priors=PYCLICK_PRIORS)
    expected = [values["CM"]["params"]["attr"][f"q{i // 8}|d{i % 8}"] for i in range(48)]
    np.testing.assert_allclose(fitted.parameters["attractiveness"], expected, atol=1e-12)
    _, marginal = predict(MODELS["CM"], pages, fitted.parameters)
    log_p = np.log(np.where(pages.clicked, marginal, 1 - marginal))[pages.pattern]
    np.testing.assert_allclose(np.exp(-log_p.mean(axis=0)), values["CM"]["perplexity_at_rank"], atol=1e-9)


@pytest.mark.parametrize("name", ["DCM", "SDBN"])
def test_likelihood_is_higher_than_with_pyclicks_last_click_assumption(pyclick, name):
    """PyClick assumes that the last click satisfied: our likelihood equals its at its values, and is higher at ours."""
    pages, values = pyclick
    pyclick_parameters = values[name]["params"]
    parameters = {"attractiveness": np.array([pyclick_parameters["attr"][f"q{i // 8}|d{i % 8}"] for i in range(48)])}
    if name == "DCM":
        parameters["satisfaction"] = 1 - np.array(pyclick_parameters["cont"])
    else:
        parameters["satisfaction"] = np.array([pyclick_parameters["sat"][f"q{i // 8}|d{i % 8}"] for i in range(48)])
    data = build_data(MODELS[name], pages, pages.counts())
    n_results = len(pages.pattern) * pages.pair.shape[1]
    assert data.log_likelihood(parameters) / n_results == pytest.approx(values[name]["ll_per_result_mean"], abs=1e-9)
    assert (
        data.log_likelihood(fit(data, shrink="none").parameters) / n_results > values[name]["ll_per_result_mean"] + 1e-3
    )


@pytest.mark.parametrize("name", ["DCM", "SDBN"])
def test_maximum_likelihood_equals_l_bfgs(name):
    """L-BFGS minimizes the negative log-likelihood, a sum over stopping ranks, from several starting points."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(21)
    orders = np.array([[0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]])[rng.integers(3, size=150)]
    truth = {"attractiveness": np.array([0.5, 0.3, 0.6, 0.4]), "satisfaction": np.array([0.4, 0.6, 0.3, 0.5])}
    clicked = sample_clicks(name, orders, truth, rng)
    pages = build_patterns(orders, clicked)

    def negative_log_likelihood(logits):
        alpha, sigma = np.split(1 / (1 + np.exp(-logits)), 2)
        total = 0.0
        for order, clicks in zip(orders.tolist(), clicked.tolist(), strict=True):
            not_alpha = [1 - alpha[doc] for doc in order]
            last_click = max((row + 1 for row in range(4) if clicks[row]), default=0)
            p = np.prod([alpha[order[row]] if clicks[row] else not_alpha[row] for row in range(last_click)])
            if last_click:
                sigmas = [sigma[order[row]] if name == "SDBN" else sigma[row] for row in range(4)]
                p *= np.prod([1 - sigmas[row] for row in range(last_click - 1) if clicks[row]])
                p *= sigmas[last_click - 1] + (1 - sigmas[last_click - 1]) * np.prod(not_alpha[last_click:])
            else:
                p = np.prod(not_alpha)
            total -= np.log(p)
        return total

    starts = np.zeros(8), rng.normal(size=8)
    optima = [minimize(negative_log_likelihood, start, method="L-BFGS-B") for start in starts]
    optimum = min(optima, key=lambda result: result.fun)
    data = build_data(MODELS[name], pages, pages.counts())
    fitted = fit(data, shrink="none", iterations=20_000)
    assert data.log_likelihood(fitted.parameters) == pytest.approx(-optimum.fun, abs=1e-4)
    alpha, sigma = np.split(1 / (1 + np.exp(-optimum.x)), 2)
    np.testing.assert_allclose(fitted.parameters["attractiveness"], alpha, atol=2e-3)
    with_result_below = slice(3 if name == "DCM" else 4)  # satisfaction at the last rank is not identified
    np.testing.assert_allclose(
        fitted.parameters["satisfaction"][with_result_below], sigma[with_result_below], atol=5e-3
    )


@pytest.mark.parametrize("name", ["PBM", "UBM"])
def test_textbook_em_has_pyclicks_values_after_50_steps_and_our_maximum(pyclick, name):
    """Textbook EM treats attractiveness of unexamined results as hidden: the same maximum with smaller steps.

    After 50 steps, as many as PyClick makes, PBM has PyClick's values. UBM is not compared, because PyClick uses a
    wrong index for results without a click above.
    """
    pages, values = pyclick
    model = MODELS[name]
    data = build_data(model, pages, pages.counts())
    fitted = fit(data, priors=PYCLICK_PRIORS, fixed_indices={}, iterations=5000)
    impressions, skips = data.impressions, data.impressions - data.clicks
    alpha, gamma = np.full(48, 0.5), np.full(data.n_nodes, 0.5)
    for step in range(5000):
        if step == 50 and name == "PBM":
            expected = [values[name]["params"]["attr"][f"q{i // 8}|d{i % 8}"] for i in range(48)]
            np.testing.assert_allclose(alpha, expected, atol=1e-9)
            np.testing.assert_allclose(gamma, values[name]["params"]["exam"], atol=1e-9)
            conditional, _ = predict(model, pages, {"attractiveness": alpha, "examination": gamma})
            mean_log_p = np.log(np.where(pages.clicked, conditional, 1 - conditional))[pages.pattern].mean()
            assert mean_log_p == pytest.approx(values[name]["ll_per_result_mean"], abs=1e-9)
        alpha_cells, gamma_cells = alpha[data.pair], gamma[data.node]
        attractive = data.clicks + skips * alpha_cells * (1 - gamma_cells) / (1 - alpha_cells * gamma_cells)
        examined = data.clicks + skips * gamma_cells * (1 - alpha_cells) / (1 - alpha_cells * gamma_cells)
        alpha = (np.bincount(data.pair, attractive) + 1) / (np.bincount(data.pair, impressions) + 2)
        gamma = (np.bincount(data.node, examined, data.n_nodes) + 1) / (
            np.bincount(data.node, impressions, data.n_nodes) + 2
        )
    np.testing.assert_allclose(fitted.parameters["attractiveness"], alpha, atol=2e-4)
    np.testing.assert_allclose(fitted.parameters["examination"], gamma, atol=2e-4)


def test_likelihood_of_ubm_is_close_to_pyclick(pyclick):
    """PyClick's UBM stores "no click above" in the slot of the last rank."""
    pages, values = pyclick
    expected = values["UBM"]
    fitted = fit(build_data(MODELS["UBM"], pages, pages.counts()), priors=PYCLICK_PRIORS, fixed_indices={})
    conditional, _ = predict(MODELS["UBM"], pages, fitted.parameters)
    mean_log_p = np.log(np.where(pages.clicked, conditional, 1 - conditional))[pages.pattern].mean()
    assert mean_log_p == pytest.approx(expected["ll_per_result_mean"], abs=2e-4)
    assert mean_log_p > expected["ll_per_result_mean"]


def simulate(name, pages, seed):
    """Simulate pages of users of a model."""
    rng = np.random.default_rng(seed)
    truth = sample_parameters(name, QUERIES * DOCS, DEPTH, rng)
    pair = sample_pages(pages, QUERIES, DOCS, DEPTH, rng)
    page_patterns = build_patterns(pair, sample_clicks(name, pair, truth, rng), pairs=QUERIES * DOCS)
    return truth, build_data(MODELS[name], page_patterns, page_patterns.counts())


@pytest.mark.parametrize("shrink", ["empirical", "none"])
@pytest.mark.parametrize("name", MODELS)
def test_coverage_of_intervals(name, shrink):
    """Coverage over a few logs, by parameter name."""
    rng, is_covered = np.random.default_rng(8), {}
    for situation, pages in (("equal queries", 300), ("heavy-tailed queries", 1500)) * 2:
        for kind, covered_intervals in covered_parameters(name, situation, pages, shrink, rng).items():
            is_covered.setdefault(kind, []).extend(covered_intervals.tolist())
    for kind, covered_intervals in is_covered.items():
        noise = 3 * np.sqrt(0.95 * 0.05 / len(covered_intervals)) + (
            0.04 if kind == "satisfaction" else 0
        )  # its prior varies between logs
        assert 0.95 - noise - 0.02 <= np.mean(covered_intervals) <= 0.95 + noise + 0.035, (
            kind,
            np.mean(covered_intervals),
            len(covered_intervals),
        )


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.attractive])
def test_pair_likelihood_on_the_grid_equals_the_page_likelihood(name):
    """Likelihood of all pages for other values of the parameter of one pair, against the grid."""
    rng = np.random.default_rng(31)
    truth = sample_parameters(name, 12, 4, rng)
    page_pairs = sample_pages(80, 2, 6, 4, rng)
    page_patterns = build_patterns(page_pairs, sample_clicks(name, page_pairs, truth, rng), pairs=12)
    data = build_data(MODELS[name], page_patterns, page_patterns.counts())
    fitted = fit(data, priors=dict.fromkeys(("attractiveness", "satisfaction"), (1.0, 2.0)))
    for parameter, scores in data.parameter_scores(fitted.parameters).items():
        likelihood = Likelihood.of(scores, fitted.parameters[parameter], (1.0, 2.0))
        for pair_index in (0, 3, 7):
            for j in (8, 24, 40, 56):
                values = {key: column.copy() for key, column in fitted.parameters.items()}
                values[parameter][pair_index] = 1 / (1 + np.exp(-likelihood.log_odds[pair_index, j]))
                difference = data.log_likelihood(values) - data.log_likelihood(fitted.parameters)
                log_likelihood_at_fit = np.interp(
                    _logit(fitted.parameters[parameter][pair_index]),
                    likelihood.log_odds[pair_index],
                    likelihood.log_likelihood[pair_index],
                )
                assert likelihood.log_likelihood[pair_index, j] - log_likelihood_at_fit == pytest.approx(
                    difference, abs=0.03, rel=0.01
                )


def _logit(p):
    return np.log(p / (1 - p))


def test_posterior_of_proportions_is_a_beta_distribution():
    clicks, trials = np.array([0.0, 3.0, 40.0, 9.0]), np.array([5.0, 10.0, 1000.0, 9.0])
    values = (clicks + 2) / (trials + 5)
    columns = np.repeat([1.0, 0.0], 4), np.ones(8), np.concatenate([clicks, trials - clicks])
    scores = bin_scores(np.tile(np.arange(4), 2), *columns, values)
    prior = Prior(np.array([2.0]), np.array([3.0]), np.ones(1))
    posterior = Likelihood.of(scores, values, (2.0, 3.0)).posterior(prior, 0.9)
    expected = beta(clicks + 2, trials - clicks + 3)
    np.testing.assert_allclose(posterior.mean, expected.mean(), rtol=3e-3)
    np.testing.assert_allclose(posterior.sd, expected.std(), rtol=5e-3)
    np.testing.assert_allclose(expected.cdf(posterior.low), 0.05, atol=0.006)
    np.testing.assert_allclose(expected.cdf(posterior.high), 0.95, atol=0.006)


@pytest.mark.parametrize(("a", "b", "max_trials"), [(2.0, 6.0, 30), (0.6, 3.0, 60), (10.0, 10.0, 8)])
def test_prior_of_proportions_is_recovered(a, b, max_trials):
    rng = np.random.default_rng(6)
    trials = rng.integers(1, max_trials, 3_000) * 1.0
    clicks = rng.binomial(trials.astype(int), rng.beta(a, b, 3_000)) * 1.0
    values = (clicks + 0.5) / (trials + 1)
    columns = np.repeat([1.0, 0.0], 3_000), np.ones(6_000), np.concatenate([clicks, trials - clicks])
    scores = bin_scores(np.tile(np.arange(3_000), 2), *columns, values)
    fitted = Likelihood.of(scores, values, (0.5, 0.5)).prior(np.ones(3_000, dtype=bool))
    assert fitted.weight.sum() == pytest.approx(1)
    np.testing.assert_allclose(fitted.mean, (a, b), rtol=0.15)


@pytest.mark.parametrize("name", MODELS)
def test_no_warnings_with_constant_clicks(name):
    """Results that are always or never clicked have parameters at 0 or 1. Warnings are errors in tests."""
    pair = np.tile(np.arange(4), (40, 1))
    pair[::2] = pair[::2, ::-1]
    for clicked in (pair < 2, pair == 0, pair >= 0):
        page_patterns = build_patterns(pair, clicked)
        data = build_data(MODELS[name], page_patterns, page_patterns.counts())
        for shrink in ("empirical", "none"):
            fitted = fit(data, shrink=shrink)
            posteriors = pair_posteriors(data, fitted, 0.95)
            errors = data.information(fitted.parameters).standard_errors(fitted.parameters, fitted.priors)
            for parameter, values in fitted.parameters.items():
                assert ((values >= 0) & (values <= 1)).all()
                assert (parameter in errors) != (parameter in posteriors)
                logit_interval(values, errors.get(parameter, values), 0.95)
            assert all(
                ((posterior.low >= 0) & (posterior.high <= 1) | np.isnan(posterior.low)).all()
                for posterior in posteriors.values()
            )
            predict(MODELS[name], page_patterns, fitted.parameters)


@pytest.mark.parametrize("name", ["PBM", "UBM", "DBN", "CCM"])
def test_shrinkage_reduces_the_error_of_rare_pairs(name):
    truth, data = simulate(name, 3_000, 5)
    rmse = {}
    for shrink in ("empirical", "none"):
        values = fit(data, shrink=shrink).parameters["attractiveness"]
        trials = fit(data, shrink=shrink).expected_counts["attractiveness"][1]
        is_rare = (trials > 0) & (trials < 10)
        rmse[shrink] = np.sqrt(np.mean((values - truth["attractiveness"])[is_rare] ** 2))
    assert rmse["empirical"] < 0.8 * rmse["none"]


def test_dbn_recovers_the_continuation_probability():
    """The truth is 0.85; another tool estimates 0.9999 from such pages."""
    truth, data = simulate("DBN", 20_000, 1)
    fitted = fit(data, shrink="none", iterations=3000)
    error = data.information(fitted.parameters).standard_errors(fitted.parameters, {})["continuation"][0]
    assert truth["continuation"][0] == 0.85
    assert abs(fitted.parameters["continuation"][0] - 0.85) < 3 * error
    assert error < 0.01


def test_each_em_step_increases_the_likelihood():
    for name in MODELS:
        if name in {"RCTR", "DCTR", "CM"}:  # converge in one step
            continue
        _, data = simulate(name, 1_000, 2)
        log_likelihoods = [
            data.log_likelihood(fit(data, shrink="none", iterations=steps).parameters) for steps in range(1, 12)
        ]
        assert (np.diff(log_likelihoods) > -1e-9).all(), name


def test_unconnected_ranks_are_refused():
    pair = np.array([[0, 1], [0, 1], [2, 3], [2, 3]])
    clicked = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], dtype=bool)
    pages = build_patterns(pair, clicked)
    data = build_data(MODELS["PBM"], pages, pages.counts())
    with pytest.raises(InputError, match=r"rank 2.*rank 1"):
        data.check_connected()
    pages = build_patterns(np.vstack([pair, [[1, 0]]]), np.vstack([clicked, [[0, 0]]]).astype(bool))
    data = build_data(MODELS["PBM"], pages, pages.counts())
    data.check_connected()  # result 1 was clicked at rank 2, and is also shown at rank 1
    unclicked = np.zeros_like(clicked)
    unclicked[0, 0] = True
    pages = build_patterns(np.array([[0, 1], [0, 1], [1, 2], [2, 3]]), unclicked)
    with pytest.raises(InputError):
        build_data(MODELS["PBM"], pages, pages.counts()).check_connected()  # results without clicks connect no ranks


def test_converged_is_false_for_too_few_iterations():
    _, data = simulate("UBM", 2_000, 3)
    assert not fit(data, iterations=3).converged
    assert fit(data, iterations=3000).converged


def test_examination_of_the_first_rank_is_1():
    truth, data = simulate("PBM", 20_000, 4)
    del truth
    assert fit(data).parameters["examination"][0] == 1.0


@pytest.mark.parametrize(("a", "b", "max_trials"), [(2.0, 6.0, 30), (0.5, 4.0, 100), (10.0, 10.0, 8)])
def test_fit_beta_recovers_the_distribution(a, b, max_trials):
    rng = np.random.default_rng(6)
    trials = rng.integers(1, max_trials, 50_000)
    fitted = fit_beta(rng.binomial(trials, rng.beta(a, b, 50_000)), trials)
    np.testing.assert_allclose(fitted, (a, b), rtol=0.1)
