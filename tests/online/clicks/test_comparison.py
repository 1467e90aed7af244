"""Comparisons of models: users of each model are predicted best by it, and the numbers are what they are said to be."""

from __future__ import annotations

import numpy as np
import pytest
from calibration.click_models import clicks_of, pages_of, truth_of

from judged.errors import InputError
from judged.online.clicks import compare_models, fit_model
from judged.online.clicks.looked_at import MODELS
from online.clicks.test_cells import log_of

QUERIES, DOCS, DEPTH = 15, 8, 5


def log_by(name, pages, seed):
    """Make a log of users of a model: ten pages a user."""
    rng = np.random.default_rng(seed)
    truth = truth_of(name, QUERIES * DOCS, DEPTH, rng)
    pair = pages_of(pages, QUERIES, DOCS, DEPTH, rng)
    clicked = clicks_of(name, pair, truth, rng)
    rows = [
        {"query": f"q{shown[0] // DOCS:02}", "shown": [f"d{doc:04}" for doc in shown], "user": at // 10,
         "clicks": [f"d{doc:04}" for doc, click in zip(shown, clicks, strict=True) if click]}
        for at, (shown, clicks) in enumerate(zip(pair.tolist(), clicked.tolist(), strict=True))
    ]  # fmt: skip
    return truth, log_of(rows)


@pytest.mark.parametrize("name", ["RCTR", "DCTR", "PBM", "DCM", "CCM", "UBM", "DBN", "SDBN"])
def test_users_of_a_model_are_predicted_best_by_it(name):
    _, log = log_by(name, 6_000 if name == "UBM" else 3_000, 1)
    found = compare_models(log, folds=2)
    own = next(row for row in found.rows if row.model == name)
    assert own.chosen or own.model == found.rows[0].model


def test_likelihood_and_perplexities_are_those_of_the_definition():
    """Without anything to learn by document, the mean of log p is that of two shares by rank, each of the others."""
    pages = [{"query": "q", "shown": ["a", "b"], "clicks": clicks, "user": user}
             for user, clicks in enumerate([["a"], ["a", "b"], [], ["a"], ["b"], ["a"]])]  # fmt: skip
    found = compare_models(log_of(pages), ["RCTR"], folds=6)
    clicked = np.array([[1, 0], [1, 1], [0, 0], [1, 0], [0, 1], [1, 0]])
    logs = []
    for user in range(6):
        rest = np.delete(clicked, user, axis=0)
        rate = (rest.sum(axis=0) + rest.mean()) / 6  # one more page, with the mean of all
        logs.append(np.log(np.where(clicked[user], rate, 1 - rate)))
    row = found.rows[0]
    assert row.loglik == pytest.approx(np.sum(logs, axis=1).mean(), abs=1e-12)
    assert row.perplexity == row.conditional == pytest.approx(np.exp(-np.mean(logs)), abs=1e-12)
    by_rank = [one.perplexity for one in found.ranks]
    np.testing.assert_allclose(by_rank, np.exp(-np.mean(logs, axis=0)), atol=1e-12)
    assert sum(one.results for one in found.calibration) == 12


def test_conditional_perplexity_is_the_likelihood_of_a_result():
    _, log = log_by("UBM", 1_000, 2)
    found = compare_models(log, ["UBM", "DBN", "PBM", "CM"], folds=2)
    for row in found.rows:
        if row.impossible:
            assert row.model == "CM"
            assert np.isnan([row.loglik, row.conditional]).all()
            assert not row.chosen
        else:
            assert np.log(row.conditional) == pytest.approx(-row.loglik / DEPTH, rel=1e-9)
    assert sum(row.chosen for row in found.rows) == 1


def test_the_plainer_model_is_chosen_where_it_predicts_as_well():
    """Last clicks tell nothing of such users, and UBM has a parameter for each that may be."""
    _, log = log_by("PBM", 3_000, 3)
    found = compare_models(log, ["PBM", "UBM"], folds=3)
    assert found.chosen == "PBM"


def test_parts_are_of_users_and_follow_the_seed():
    _, log = log_by("PBM", 600, 4)
    one, same, other = (compare_models(log, ["DCTR"], folds=2, seed=seed).rows[0].loglik for seed in (0, 0, 1))
    assert one == same != other
    with pytest.raises(InputError, match="users"):
        compare_models(log, ["DCTR"], folds=61)
    with pytest.raises(InputError, match="1 user for 2 parts") as caught:
        compare_models(log_of([{"query": "q", "shown": ["a"], "clicks": ["a"], "user": 1}]), ["DCTR"], folds=2)
    assert "fewer folds" not in str(caught.value)


def test_a_model_that_cannot_be_told_is_refused_and_the_others_compared():
    pages = [{"query": "q", "shown": ["a", "b"], "clicks": ["a"] if user % 2 else ["b"], "user": user}
             for user in range(12)]  # fmt: skip
    found = compare_models(log_of(pages), ["PBM", "DCTR", "RCTR"], folds=2)
    assert [name for name, _ in found.refused] == ["PBM"]
    with pytest.raises(InputError, match="rank 2"):
        fit_model(log_of(pages), "PBM")
    with pytest.raises(InputError):
        compare_models(log_of(pages), ["PBM"], folds=2)


def test_a_fit_has_every_pair_with_what_was_counted_and_its_error():
    truth, log = log_by("PBM", 4_000, 5)
    found = fit_model(log, "PBM")
    table = found.to_arrow("attractiveness").to_pydict()
    assert sum(table["shown"]) == found.results == 4_000 * DEPTH
    assert sum(table["clicks"]) == found.clicks
    true = np.array([truth["attractiveness"][int(doc[1:])] for doc in table["doc_id"]])
    inside = (np.array(table["ci_low"]) < true) & (true < np.array(table["ci_high"]))
    assert inside.mean() > 0.88
    assert (np.array(table["se"]) > 0).all()
    looks = np.array(found.to_arrow("examination")["looked_at"].to_pylist())
    assert looks[0] == 1
    assert (np.abs(looks - truth["examination"])[1:] < 3 * found.errors["examination"][1:]).all()


def test_errors_by_bootstrap_are_near_those_by_information():
    _, log = log_by("PBM", 3_000, 6)
    information = fit_model(log, "PBM", shrink="none")
    bootstrap = fit_model(log, "PBM", shrink="none", resamples=100, seed=1)
    often = information.shown > 200
    ratio = (bootstrap.errors["attractiveness"] / information.errors["attractiveness"])[often]
    assert 0.85 < np.median(ratio) < 1.15


def test_relevance_of_a_chain_has_satisfaction_beside_it():
    _, log = log_by("DBN", 2_000, 7)
    columns = fit_model(log, "DBN").to_arrow("attractiveness").column_names
    assert {"value", "se", "satisfaction", "satisfaction_se", "satisfaction_low"} <= set(columns)


def test_a_fit_that_does_not_settle_has_a_note_and_one_that_does_has_none():
    _, log = log_by("UBM", 600, 8)
    assert [note.rule for note in fit_model(log, "UBM", iterations=2).notes] == ["not-converged"]
    assert not fit_model(log, "UBM", iterations=5000).notes


@pytest.mark.parametrize("options", [{"model": "XYZ"}, {"shrink": "much"}, {"iterations": 0}, {"resamples": 3}])
def test_options_that_make_no_sense_are_refused(options):
    _, log = log_by("DCTR", 50, 9)
    with pytest.raises(InputError):
        fit_model(log, **options)


def test_progress_is_told():
    told = []
    _, log = log_by("UBM", 300, 10)
    fit_model(log, "UBM", progress=lambda step, share: told.append((step, share)))
    compare_models(log, ["DCTR", "UBM"], folds=2, progress=lambda step, share: told.append((step, share)))
    assert {step for step, _ in told} == {"fitting UBM", "fitting DCTR"}
    assert all(0 <= share <= 1 for _, share in told)


def test_every_model_is_fitted_to_a_log():
    _, log = log_by("UBM", 500, 11)
    for name in MODELS:
        found = fit_model(log, name)
        assert found.text()
        assert found.iterations >= 1
