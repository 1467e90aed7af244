"""Fits against values of another program, another way to the same maximum, and users whose parameters are known."""

from __future__ import annotations

import json

import numpy as np
import pytest
from calibration.click_models import clicks_of, covered, pages_of, patterns, truth_of
from scipy.stats import beta

from judged.errors import InputError
from judged.online.clicks.fitted import logit_interval
from judged.online.clicks.fitting import beta_of, data_of, fit, pair_posteriors, predict
from judged.online.clicks.looked_at import MODELS
from judged.online.clicks.posteriors import Likelihood, Prior, evidence_of
from shared_data import SHARED

QUERIES, DOCS, DEPTH = 40, 12, 6


@pytest.fixture(scope="module")
def recorded():
    """400 pages of 6 queries, and what PyClick 0.2 makes of them: 50 steps, starting at 1/2, with counts (1, 2)."""
    if not SHARED.is_dir():
        pytest.skip("the shared test data is not beside this checkout")
    known = json.loads((SHARED / "logs" / "pyclick_fixture.json").read_text())
    pair = np.array([[8 * query + doc for doc in docs] for query, docs, _ in known["sessions"]])
    return patterns(pair, np.array([clicks for *_, clicks in known["sessions"]], dtype=bool)), known["models"]


ONE_MORE = dict.fromkeys(("attractiveness", "examination", "satisfaction"), (1.0, 1.0))  # PyClick's counts (1, 2)


def test_the_cascade_has_pyclicks_values(recorded):
    pages, values = recorded
    found = fit(data_of(MODELS["CM"], pages, pages.counts()), priors=ONE_MORE)
    attractive = [values["CM"]["params"]["attr"][f"q{at // 8}|d{at % 8}"] for at in range(48)]
    np.testing.assert_allclose(found.parameters["attractiveness"], attractive, atol=1e-12)
    _, before = predict(MODELS["CM"], pages, found.parameters)
    happened = np.log(np.where(pages.clicked, before, 1 - before))[pages.pattern]
    np.testing.assert_allclose(np.exp(-happened.mean(axis=0)), values["CM"]["perplexity_at_rank"], atol=1e-9)


@pytest.mark.parametrize("name", ["DCM", "SDBN"])
def test_clicks_are_likelier_than_by_taking_the_last_click_for_the_one_that_satisfied(recorded, name):
    """PyClick counts up to the last click: its likelihood is ours at its values, and below that of our values."""
    pages, values = recorded
    wanted = values[name]["params"]
    counted = {"attractiveness": np.array([wanted["attr"][f"q{at // 8}|d{at % 8}"] for at in range(48)])}
    if name == "DCM":
        counted["satisfaction"] = 1 - np.array(wanted["cont"])
    else:
        counted["satisfaction"] = np.array([wanted["sat"][f"q{at // 8}|d{at % 8}"] for at in range(48)])
    data = data_of(MODELS[name], pages, pages.counts())
    results = len(pages.pattern) * pages.pair.shape[1]
    assert data.loglik(counted) / results == pytest.approx(values[name]["ll_per_result_mean"], abs=1e-9)
    assert data.loglik(fit(data, shrink="none").parameters) / results > values[name]["ll_per_result_mean"] + 1e-3


@pytest.mark.parametrize("name", ["DCM", "SDBN"])
def test_the_maximum_is_that_of_another_optimizer(name):
    """Minimize the negative log-likelihood, a sum over where the user stopped, by L-BFGS from several points."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(21)
    orders = np.array([[0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]])[rng.integers(3, size=150)]
    truth = {"attractiveness": np.array([0.5, 0.3, 0.6, 0.4]), "satisfaction": np.array([0.4, 0.6, 0.3, 0.5])}
    clicked = clicks_of(name, orders, truth, rng)
    pages = patterns(orders, clicked)

    def loss(odds):
        alpha, sigma = np.split(1 / (1 + np.exp(-odds)), 2)
        total = 0.0
        for order, clicks in zip(orders.tolist(), clicked.tolist(), strict=True):
            missed = [1 - alpha[doc] for doc in order]
            last = max((at + 1 for at in range(4) if clicks[at]), default=0)
            p = np.prod([alpha[order[at]] if clicks[at] else missed[at] for at in range(last)])
            if last:
                content = [sigma[order[at]] if name == "SDBN" else sigma[at] for at in range(4)]
                p *= np.prod([1 - content[at] for at in range(last - 1) if clicks[at]])
                p *= content[last - 1] + (1 - content[last - 1]) * np.prod(missed[last:])
            else:
                p = np.prod(missed)
            total -= np.log(p)
        return total

    best = min((minimize(loss, start, method="L-BFGS-B") for start in (np.zeros(8), rng.normal(size=8))),
               key=lambda one: one.fun)  # fmt: skip
    data = data_of(MODELS[name], pages, pages.counts())
    found = fit(data, shrink="none", iterations=20_000)
    assert data.loglik(found.parameters) == pytest.approx(-best.fun, abs=1e-4)
    alpha, sigma = np.split(1 / (1 + np.exp(-best.x)), 2)
    np.testing.assert_allclose(found.parameters["attractiveness"], alpha, atol=2e-3)
    rated = slice(3 if name == "DCM" else 4)  # nobody can go on below the last rank
    np.testing.assert_allclose(found.parameters["satisfaction"][rated], sigma[rated], atol=5e-3)


@pytest.mark.parametrize("name", ["PBM", "UBM"])
def test_the_textbooks_steps_pass_pyclicks_values_on_their_way_to_ours(recorded, name):
    """The textbook lets results attract that nobody looked at: the same maximum, in smaller steps.

    After 50 of them, as many as PyClick takes, they have its values, and at last ours. Of UBM only what is clicked
    below a click agrees: what no click stands above, PyClick looks up in the wrong place.
    """
    pages, values = recorded
    model = MODELS[name]
    data = data_of(model, pages, pages.counts())
    found = fit(data, priors=ONE_MORE, fixed={}, iterations=5000)
    shown, missed = data.shown, data.shown - data.clicked
    alpha, gamma = np.full(48, 0.5), np.full(data.nodes, 0.5)
    for step in range(5000):
        if step == 50 and name == "PBM":
            wanted = [values[name]["params"]["attr"][f"q{at // 8}|d{at % 8}"] for at in range(48)]
            np.testing.assert_allclose(alpha, wanted, atol=1e-9)
            np.testing.assert_allclose(gamma, values[name]["params"]["exam"], atol=1e-9)
            given, _ = predict(model, pages, {"attractiveness": alpha, "examination": gamma})
            likely = np.log(np.where(pages.clicked, given, 1 - given))[pages.pattern].mean()
            assert likely == pytest.approx(values[name]["ll_per_result_mean"], abs=1e-9)
        a, g = alpha[data.pair], gamma[data.node]
        attracted = data.clicked + missed * a * (1 - g) / (1 - a * g)
        looked = data.clicked + missed * g * (1 - a) / (1 - a * g)
        alpha = (np.bincount(data.pair, attracted) + 1) / (np.bincount(data.pair, shown) + 2)
        gamma = (np.bincount(data.node, looked, data.nodes) + 1) / (np.bincount(data.node, shown, data.nodes) + 2)
    np.testing.assert_allclose(found.parameters["attractiveness"], alpha, atol=2e-4)
    np.testing.assert_allclose(found.parameters["examination"], gamma, atol=2e-4)


def test_the_likelihood_of_ubm_is_pyclicks(recorded):
    """PyClick's UBM has no place for "no click above" but the one of the last rank, whose value it then has."""
    pages, values = recorded
    wanted = values["UBM"]
    found = fit(data_of(MODELS["UBM"], pages, pages.counts()), priors=ONE_MORE, fixed={})
    given, _ = predict(MODELS["UBM"], pages, found.parameters)
    likely = np.log(np.where(pages.clicked, given, 1 - given))[pages.pattern].mean()
    assert likely == pytest.approx(wanted["ll_per_result_mean"], abs=2e-4)
    assert likely > wanted["ll_per_result_mean"]


def simulated(name, pages, seed):
    """Draw pages of users of a model."""
    rng = np.random.default_rng(seed)
    truth = truth_of(name, QUERIES * DOCS, DEPTH, rng)
    pair = pages_of(pages, QUERIES, DOCS, DEPTH, rng)
    made = patterns(pair, clicks_of(name, pair, truth, rng), pairs=QUERIES * DOCS)
    return truth, data_of(MODELS[name], made, made.counts())


@pytest.mark.parametrize("shrink", ["empirical", "none"])
@pytest.mark.parametrize("name", MODELS)
def test_intervals_hold_the_truth_at_the_declared_rate(name, shrink):
    """Over a few logs, of all parameters of pairs, and of all that pages share; each within bounds."""
    rng, held = np.random.default_rng(8), {}
    for situation, pages in (("equal queries", 300), ("heavy-tailed queries", 1500)) * 2:
        for kind, inside in covered(name, situation, pages, shrink, rng).items():
            held.setdefault(kind, []).extend(inside.tolist())
    for kind, inside in held.items():
        noise = 3 * np.sqrt(0.95 * 0.05 / len(inside)) + (0.04 if kind == "satisfaction" else 0)  # a log has one prior
        assert 0.95 - noise - 0.02 <= np.mean(inside) <= 0.95 + noise + 0.035, (kind, np.mean(inside), len(inside))


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.attractive])
def test_the_posterior_of_a_pair_is_that_of_its_likelihood_by_definition(name):
    """The likelihood of all pages, with the parameter of one pair at other values, against the grid."""
    rng = np.random.default_rng(31)
    truth = truth_of(name, 12, 4, rng)
    pair = pages_of(80, 2, 6, 4, rng)
    made = patterns(pair, clicks_of(name, pair, truth, rng), pairs=12)
    data = data_of(MODELS[name], made, made.counts())
    found = fit(data, priors=dict.fromkeys(("attractiveness", "satisfaction"), (1.0, 2.0)))
    for kind, evidence in data.evidence(found.parameters).items():
        likelihood = Likelihood.of(evidence, found.parameters[kind], (1.0, 2.0))
        for at in (0, 3, 7):
            for point in (8, 24, 40, 56):
                values = {key: column.copy() for key, column in found.parameters.items()}
                values[kind][at] = 1 / (1 + np.exp(-likelihood.odds[at, point]))
                change = data.loglik(values) - data.loglik(found.parameters)
                middle = np.interp(_logit(found.parameters[kind][at]), likelihood.odds[at], likelihood.log[at])
                assert likelihood.log[at, point] - middle == pytest.approx(change, abs=0.03, rel=0.01)


def _logit(p):
    return np.log(p / (1 - p))


def test_of_shares_the_posterior_is_the_beta_distribution():
    clicks, shown = np.array([0.0, 3.0, 40.0, 9.0]), np.array([5.0, 10.0, 1000.0, 9.0])
    values = (clicks + 2) / (shown + 5)
    columns = np.repeat([1.0, 0.0], 4), np.ones(8), np.concatenate([clicks, shown - clicks])
    evidence = evidence_of(np.tile(np.arange(4), 2), *columns, values)
    prior = Prior(np.array([2.0]), np.array([3.0]), np.ones(1))
    known = Likelihood.of(evidence, values, (2.0, 3.0)).posterior(prior, 0.9)
    true = beta(clicks + 2, shown - clicks + 3)
    np.testing.assert_allclose(known.mean, true.mean(), rtol=3e-3)
    np.testing.assert_allclose(known.sd, true.std(), rtol=5e-3)
    np.testing.assert_allclose(true.cdf(known.low), 0.05, atol=0.006)
    np.testing.assert_allclose(true.cdf(known.high), 0.95, atol=0.006)


@pytest.mark.parametrize(("a", "b", "shown"), [(2.0, 6.0, 30), (0.6, 3.0, 60), (10.0, 10.0, 8)])
def test_the_prior_of_shares_is_found(a, b, shown):
    rng = np.random.default_rng(6)
    trials = rng.integers(1, shown, 3_000) * 1.0
    clicks = rng.binomial(trials.astype(int), rng.beta(a, b, 3_000)) * 1.0
    values = (clicks + 0.5) / (trials + 1)
    columns = np.repeat([1.0, 0.0], 3_000), np.ones(6_000), np.concatenate([clicks, trials - clicks])
    evidence = evidence_of(np.tile(np.arange(3_000), 2), *columns, values)
    found = Likelihood.of(evidence, values, (0.5, 0.5)).prior(np.ones(3_000, dtype=bool))
    assert found.weight.sum() == pytest.approx(1)
    np.testing.assert_allclose(found.mean, (a, b), rtol=0.15)


@pytest.mark.parametrize("name", MODELS)
def test_nothing_is_warned_of_where_clicks_are_the_same_on_all_pages(name):
    """Warnings are errors in tests: of results that are clicked always or never, values are at the ends."""
    pair = np.tile(np.arange(4), (40, 1))
    pair[::2] = pair[::2, ::-1]
    for clicked in (pair < 2, pair == 0, pair >= 0):
        made = patterns(pair, clicked)
        data = data_of(MODELS[name], made, made.counts())
        for shrink in ("empirical", "none"):
            found = fit(data, shrink=shrink)
            known = pair_posteriors(data, found, 0.95)
            errors = data.information(found.parameters).errors(found.parameters, found.priors)
            for kind, values in found.parameters.items():
                assert ((values >= 0) & (values <= 1)).all()
                assert (kind in errors) != (kind in known)
                logit_interval(values, errors.get(kind, values), 0.95)
            assert all(((one.low >= 0) & (one.high <= 1) | np.isnan(one.low)).all() for one in known.values())
            predict(MODELS[name], made, found.parameters)


@pytest.mark.parametrize("name", ["PBM", "UBM", "DBN", "CCM"])
def test_shrinkage_brings_rare_pairs_nearer_to_the_truth(name):
    truth, data = simulated(name, 3_000, 5)
    wrong = {}
    for shrink in ("empirical", "none"):
        value = fit(data, shrink=shrink).parameters["attractiveness"]
        shown = fit(data, shrink=shrink).sums["attractiveness"][1]
        rare = (shown > 0) & (shown < 10)
        wrong[shrink] = np.sqrt(np.mean((value - truth["attractiveness"])[rare] ** 2))
    assert wrong["empirical"] < 0.8 * wrong["none"]


def test_dbn_finds_how_often_its_users_go_on():
    """The truth is 0.85; another tool says 0.9999 of such pages."""
    truth, data = simulated("DBN", 20_000, 1)
    found = fit(data, shrink="none", iterations=3000)
    error = data.information(found.parameters).errors(found.parameters, {})["continuation"][0]
    assert truth["continuation"][0] == 0.85
    assert abs(found.parameters["continuation"][0] - 0.85) < 3 * error
    assert error < 0.01


def test_every_step_makes_clicks_likelier():
    for name in MODELS:
        if name in {"RCTR", "DCTR", "CM"}:  # whose first step is the last
            continue
        _, data = simulated(name, 1_000, 2)
        likely = [data.loglik(fit(data, shrink="none", iterations=steps).parameters) for steps in range(1, 12)]
        assert (np.diff(likely) > -1e-9).all(), name


def test_ranks_that_share_no_clicked_result_are_refused():
    pair = np.array([[0, 1], [0, 1], [2, 3], [2, 3]])
    clicked = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], dtype=bool)
    pages = patterns(pair, clicked)
    data = data_of(MODELS["PBM"], pages, pages.counts())
    with pytest.raises(InputError, match=r"rank 2.*rank 1"):
        data.need_connected()
    pages = patterns(np.vstack([pair, [[1, 0]]]), np.vstack([clicked, [[0, 0]]]).astype(bool))
    data = data_of(MODELS["PBM"], pages, pages.counts())
    data.need_connected()  # result 1 was clicked at rank 2, and is shown at rank 1 too
    unclicked = np.zeros_like(clicked)
    unclicked[0, 0] = True
    pages = patterns(np.array([[0, 1], [0, 1], [1, 2], [2, 3]]), unclicked)
    with pytest.raises(InputError):
        data_of(MODELS["PBM"], pages, pages.counts()).need_connected()  # what is never clicked tells nothing of ranks


def test_a_fit_that_is_stopped_early_says_so():
    _, data = simulated("UBM", 2_000, 3)
    assert not fit(data, iterations=3).converged
    assert fit(data, iterations=3000).converged


def test_the_scale_is_that_of_the_topmost_rank():
    truth, data = simulated("PBM", 20_000, 4)
    del truth
    assert fit(data).parameters["examination"][0] == 1.0


@pytest.mark.parametrize(("a", "b", "shown"), [(2.0, 6.0, 30), (0.5, 4.0, 100), (10.0, 10.0, 8)])
def test_the_beta_distribution_of_shares_is_found(a, b, shown):
    rng = np.random.default_rng(6)
    trials = rng.integers(1, shown, 50_000)
    found = beta_of(rng.binomial(trials, rng.beta(a, b, 50_000)), trials)
    np.testing.assert_allclose(found, (a, b), rtol=0.1)
