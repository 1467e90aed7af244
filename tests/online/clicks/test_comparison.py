"""Model comparison: the model of simulated users wins, and the statistics follow their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from calibration.click_models import sample_clicks, sample_pages, sample_parameters

from judged.errors import InputError
from judged.online.clicks import compare_models, fit_model
from judged.online.clicks.rank_models import MODELS
from online.clicks.test_cells import log_of

QUERIES, DOCS, DEPTH = 15, 8, 5


def simulate_log(name, pages, seed):
    """Simulate a log of users of a model, with ten pages per user."""
    rng = np.random.default_rng(seed)
    truth = sample_parameters(name, QUERIES * DOCS, DEPTH, rng)
    page_pairs = sample_pages(pages, QUERIES, DOCS, DEPTH, rng)
    clicked = sample_clicks(name, page_pairs, truth, rng)
    rows = [
        {"query": f"q{pair_ids[0] // DOCS:02}", "shown": [f"d{doc:04}" for doc in pair_ids], "user": page_index // 10,
         "clicks": [f"d{doc:04}" for doc, click in zip(pair_ids, clicks, strict=True) if click]}
        for page_index, (pair_ids, clicks) in enumerate(zip(page_pairs.tolist(), clicked.tolist(), strict=True))
    ]  # fmt: skip
    return truth, log_of(rows)


@pytest.mark.parametrize("name", ["RCTR", "DCTR", "PBM", "DCM", "CCM", "UBM", "DBN", "SDBN"])
def test_the_model_of_the_users_wins(name):
    _, log = simulate_log(name, 6_000 if name == "UBM" else 3_000, 1)
    comparison = compare_models(log, folds=2)
    model_row = next(row for row in comparison.rows if row.model == name)
    assert model_row.selected or model_row.model == comparison.rows[0].model


def test_likelihood_and_perplexity_by_hand():
    """RCTR has one click-through rate per rank, from the other users."""
    pages = [{"query": "q", "shown": ["a", "b"], "clicks": clicks, "user": user}
             for user, clicks in enumerate([["a"], ["a", "b"], [], ["a"], ["b"], ["a"]])]  # fmt: skip
    comparison = compare_models(log_of(pages), ["RCTR"], folds=6)
    clicked = np.array([[1, 0], [1, 1], [0, 0], [1, 0], [0, 1], [1, 0]])
    log_p = []
    for user in range(6):
        others = np.delete(clicked, user, axis=0)
        rate = (others.sum(axis=0) + others.mean()) / 6  # one pseudo-page with the overall mean
        log_p.append(np.log(np.where(clicked[user], rate, 1 - rate)))
    row = comparison.rows[0]
    assert row.loglik == pytest.approx(np.sum(log_p, axis=1).mean(), abs=1e-12)
    assert row.perplexity == row.conditional == pytest.approx(np.exp(-np.mean(log_p)), abs=1e-12)
    by_rank = [row.perplexity for row in comparison.ranks]
    np.testing.assert_allclose(by_rank, np.exp(-np.mean(log_p, axis=0)), atol=1e-12)
    assert sum(row.results for row in comparison.calibration) == 12


def test_conditional_perplexity_and_likelihood_agree():
    _, log = simulate_log("UBM", 1_000, 2)
    comparison = compare_models(log, ["UBM", "DBN", "PBM", "CM"], folds=2)
    for row in comparison.rows:
        if row.impossible:
            assert row.model == "CM"
            assert np.isnan([row.loglik, row.conditional]).all()
            assert not row.selected
        else:
            assert np.log(row.conditional) == pytest.approx(-row.loglik / DEPTH, rel=1e-9)
    assert sum(row.selected for row in comparison.rows) == 1


def test_the_simpler_model_is_chosen_without_a_significant_difference():
    """Users of PBM: UBM has more parameters without better predictions."""
    _, log = simulate_log("PBM", 3_000, 3)
    comparison = compare_models(log, ["PBM", "UBM"], folds=3)
    assert comparison.selected == "PBM"


def test_folds_depend_on_the_seed_and_need_enough_users():
    _, log = simulate_log("PBM", 600, 4)
    first, repeated, other_seed = (
        compare_models(log, ["DCTR"], folds=2, seed=seed).rows[0].loglik for seed in (0, 0, 1)
    )
    assert first == repeated != other_seed
    with pytest.raises(InputError, match="users"):
        compare_models(log, ["DCTR"], folds=61)
    with pytest.raises(InputError, match="2 folds require at least 2 users") as caught:
        compare_models(log_of([{"query": "q", "shown": ["a"], "clicks": ["a"], "user": 1}]), ["DCTR"], folds=2)
    assert "fewer folds" not in str(caught.value)


def test_an_unidentified_model_is_refused_and_others_are_compared():
    pages = [{"query": "q", "shown": ["a", "b"], "clicks": ["a"] if user % 2 else ["b"], "user": user}
             for user in range(12)]  # fmt: skip
    comparison = compare_models(log_of(pages), ["PBM", "DCTR", "RCTR"], folds=2)
    assert [name for name, _ in comparison.refused] == ["PBM"]
    with pytest.raises(InputError, match="rank 2"):
        fit_model(log_of(pages), "PBM")
    with pytest.raises(InputError):
        compare_models(log_of(pages), ["PBM"], folds=2)


def test_fit_has_counts_estimates_and_errors_of_all_pairs():
    truth, log = simulate_log("PBM", 4_000, 5)
    fit = fit_model(log, "PBM")
    table = fit.to_arrow("attractiveness").to_pydict()
    assert sum(table["shown"]) == fit.results == 4_000 * DEPTH
    assert sum(table["clicks"]) == fit.clicks
    expected = np.array([truth["attractiveness"][int(doc[1:])] for doc in table["doc_id"]])
    is_covered = (np.array(table["ci_low"]) < expected) & (expected < np.array(table["ci_high"]))
    assert is_covered.mean() > 0.88
    assert (np.array(table["se"]) > 0).all()
    examination = np.array(fit.to_arrow("examination")["examined"].to_pylist())
    assert examination[0] == 1
    assert (np.abs(examination - truth["examination"])[1:] < 3 * fit.errors["examination"][1:]).all()


def test_bootstrap_and_information_errors_agree():
    _, log = simulate_log("PBM", 3_000, 6)
    information = fit_model(log, "PBM", shrink="none")
    bootstrap = fit_model(log, "PBM", shrink="none", resamples=100, seed=1)
    is_frequent = information.impressions > 200
    ratio = (bootstrap.errors["attractiveness"] / information.errors["attractiveness"])[is_frequent]
    assert 0.85 < np.median(ratio) < 1.15


def test_dbn_has_satisfaction():
    _, log = simulate_log("DBN", 2_000, 7)
    columns = fit_model(log, "DBN").to_arrow("attractiveness").column_names
    assert {"value", "se", "satisfaction", "satisfaction_se", "satisfaction_low"} <= set(columns)


def test_only_an_unconverged_fit_has_a_note():
    _, log = simulate_log("UBM", 600, 8)
    assert [note.rule for note in fit_model(log, "UBM", iterations=2).notes] == ["not-converged"]
    assert not fit_model(log, "UBM", iterations=5000).notes


@pytest.mark.parametrize("options", [{"model": "XYZ"}, {"shrink": "much"}, {"iterations": 0}, {"resamples": 3}])
def test_invalid_options_are_refused(options):
    _, log = simulate_log("DCTR", 50, 9)
    with pytest.raises(InputError):
        fit_model(log, **options)


def test_progress_is_reported():
    calls = []
    _, log = simulate_log("UBM", 300, 10)
    fit_model(log, "UBM", progress=lambda step, share: calls.append((step, share)))
    compare_models(log, ["DCTR", "UBM"], folds=2, progress=lambda step, share: calls.append((step, share)))
    assert {step for step, _ in calls} == {"fitting UBM", "fitting DCTR"}
    assert all(0 <= share <= 1 for _, share in calls)


def test_all_models_can_be_fitted():
    _, log = simulate_log("UBM", 500, 11)
    for name in MODELS:
        fit = fit_model(log, name)
        assert fit.text()
        assert fit.iterations >= 1
