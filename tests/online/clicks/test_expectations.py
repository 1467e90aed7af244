"""Expected counts of each model against the enumeration of all hidden states of a page."""

from __future__ import annotations

import numpy as np
import pytest
from calibration.click_models import build_patterns

from judged.online.clicks.fitting import build_data, predict
from judged.online.clicks.rank_models import MODELS

K = 4
SESSIONS = 40  # per model, with random parameters
STATES = np.array(np.meshgrid(*[[0, 1]] * (3 * K), indexing="ij")).reshape(3 * K, -1).T.astype(bool)


def sample_parameters(model, rng):
    """Sample parameters, with one pair per rank."""
    n_examinations = {"": 1, "rank": K, "rank and last click": K * (K + 1)}[model.examined]
    parameters = {"attractiveness": rng.uniform(0.05, 0.95, K)} if model.attractive else {}
    parameters |= {"examination": rng.uniform(0.05, 0.95, n_examinations)} if model.examined else {}
    parameters |= {"satisfaction": rng.uniform(0.05, 0.95, K)} if model.satisfied in {"pair", "rank"} else {}
    return parameters | (
        {"continuation": rng.uniform(0.05, 0.95, len(model.continuation_names))} if model.continuation_names else {}
    )


def enumerate_states(model, truth, has_result):
    """Return probability, examination, clicks, satisfaction, and continuation of all 4,096 states of a page.

    A state has three bits per rank: attractive, satisfied after a click, and continues. For rank-based models, the last
    bit is examination.
    """
    is_attractive, is_satisfied, continues = STATES[:, :K], STATES[:, K : 2 * K], STATES[:, 2 * K :]
    alpha = truth["attractiveness"] if model.attractive else np.ones(K)
    p = np.ones(len(STATES))
    examined, clicks = np.zeros((2, K, len(STATES)), bool)
    is_examining, last_click = np.ones(len(STATES), bool), np.zeros(len(STATES), int)
    taus = [truth["continuation"][model.continuation_names.index(tau)] if isinstance(tau, str) else tau
             for tau in model.continuation_probabilities]  # fmt: skip
    for row in range(K):
        if not has_result[row]:  # an empty rank has a single state
            p *= ~is_attractive[:, row] & ~is_satisfied[:, row] & ~continues[:, row]
            continue
        p *= np.where(is_attractive[:, row], alpha[row], 1 - alpha[row])
        if not model.continuation_probabilities:
            node = {
                "": 0 * last_click,
                "rank": row + 0 * last_click,
                "rank and last click": row * (K + 1) + last_click,
            }[model.examined]
            gamma = truth["examination"][node] if model.examined else np.ones(len(STATES))
            p *= np.where(continues[:, row], gamma, 1 - gamma) * ~is_satisfied[:, row]
            examined[row] = continues[:, row]
        else:
            examined[row] = is_examining
        clicks[row] = examined[row] & is_attractive[:, row]
        last_click = np.where(clicks[row], row + 1, last_click)
        if model.continuation_probabilities:
            sigma = {"always": 1.0, "attractiveness": alpha[row]}.get(model.satisfied)
            sigma = truth["satisfaction"][row] if sigma is None else sigma
            p *= np.where(is_satisfied[:, row], sigma, 1 - sigma)
            p_continue = np.where(clicks[row], np.where(is_satisfied[:, row], taus[2], taus[1]), taus[0])
            p *= np.where(continues[:, row], p_continue, 1 - p_continue)
            is_examining = is_examining & continues[:, row]
    return p, examined, clicks, is_satisfied.T, continues.T


def expected_counts(model, truth, has_result, clicked):
    """Return expected successes and trials of each parameter over the states with these clicks."""
    p, examined, clicks, is_satisfied, continues = enumerate_states(model, truth, has_result)
    p = p * (clicks == clicked[:, None]).all(axis=0)
    total, p = p.sum(), p / p.sum()
    counts = {name: np.zeros((2, len(values))) for name, values in truth.items()}
    last_click = 0
    for row in np.flatnonzero(has_result):
        has_result_below = has_result[row + 1 :].any()
        if model.attractive:
            counts["attractiveness"][:, row] += p @ (clicks[row] & examined[row]), p @ examined[row]
        if model.examined:
            node = row if model.examined == "rank" else row * (K + 1) + last_click
            counts["examination"][:, node] += p @ examined[row], 1.0
        last_click = row + 1 if clicked[row] else last_click
        if not model.continuation_probabilities or not has_result_below:
            continue
        if model.satisfied == "attractiveness":
            counts["attractiveness"][:, row] += p @ (clicks[row] & is_satisfied[row]), p @ clicks[row]
        if model.satisfied in {"pair", "rank"}:
            counts["satisfaction"][:, row] += p @ (clicks[row] & is_satisfied[row]), p @ clicks[row]
        continuation_events = (
            examined[row] & ~clicks[row],
            clicks[row] & ~is_satisfied[row],
            clicks[row] & is_satisfied[row],
        )
        for name, events in zip(model.continuation_probabilities, continuation_events, strict=True):
            if isinstance(name, str):
                counts["continuation"][:, model.continuation_names.index(name)] += (
                    p @ (events & continues[row]),
                    p @ events,
                )
    return counts, np.log(total)


@pytest.mark.parametrize("name", MODELS)
def test_expected_counts_and_likelihoods_by_enumeration(name):
    model, rng = MODELS[name], np.random.default_rng(7)
    n_sessions = 0
    for session in range(SESSIONS):
        truth = sample_parameters(model, rng)
        has_result = rng.random(K) < (0.75 if session % 2 else 1.0)
        has_result[rng.integers(K)] = True
        clicked = (rng.random(K) < 0.35) & has_result
        if name == "CM":
            clicked &= np.cumsum(clicked) <= 1  # CM has no states with several clicks
        pages = build_patterns(np.where(has_result, np.arange(K), -1)[None], clicked[None], pairs=K)
        data = build_data(model, pages, np.ones(1))
        counts = data.expected_counts(truth, {key: 1 - values for key, values in truth.items()})
        expected, log_likelihood = expected_counts(model, truth, has_result, clicked)
        for key, count in counts.items():
            np.testing.assert_allclose(count, expected[key], atol=1e-12, err_msg=f"{key} {clicked} {has_result}")
        assert data.log_likelihood(truth) == pytest.approx(log_likelihood, abs=1e-12)
        n_sessions += 1
    assert n_sessions == SESSIONS


@pytest.mark.parametrize("name", MODELS)
def test_predictions_by_enumeration(name):
    model, rng = MODELS[name], np.random.default_rng(11)
    for session in range(SESSIONS):
        truth = sample_parameters(model, rng)
        has_result = rng.random(K) < (0.75 if session % 2 else 1.0)
        has_result[rng.integers(K)] = True
        clicked = (rng.random(K) < 0.35) & has_result
        if name == "CM":
            clicked &= np.cumsum(clicked) <= 1
        conditional, marginal = predict(
            model, build_patterns(np.where(has_result, np.arange(K), -1)[None], clicked[None], pairs=K), truth
        )
        p, _, clicks, _, _ = enumerate_states(model, truth, has_result)
        np.testing.assert_allclose(marginal[0], clicks @ p, atol=1e-12)
        for row in range(K):
            consistent = p * (clicks[:row] == clicked[:row, None]).all(axis=0)
            assert conditional[0, row] == pytest.approx((consistent @ clicks[row]) / consistent.sum(), abs=1e-12)


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.continuation_probabilities])
def test_page_likelihoods_by_enumeration(name):
    """Likelihoods of all click patterns of one to four results; their sum is 1."""
    model, rng = MODELS[name], np.random.default_rng(13)
    for n_results in range(1, K + 1):
        has_result, truth = np.arange(K) < n_results, sample_parameters(model, rng)
        p, _, clicks, _, _ = enumerate_states(model, truth, has_result)
        likelihoods = []
        for clicked in STATES[: 2**K, -K:]:
            if not (clicked & ~has_result).any():
                pages = build_patterns(np.where(has_result, np.arange(K), -1)[None], clicked[None], pairs=K)
                likelihoods.append(np.exp(build_data(model, pages, np.ones(1)).log_likelihood(truth)))
                assert likelihoods[-1] == pytest.approx(p[(clicks == clicked[:, None]).all(axis=0)].sum(), abs=1e-13)
        assert len(likelihoods) == 2**n_results
        assert sum(likelihoods) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_batches_do_not_change_expected_counts(name, monkeypatch):
    model, rng = MODELS[name], np.random.default_rng(3)
    pair = rng.permuted(np.tile(np.arange(8), (1000, 1)), axis=1)[:, :5]
    pair[::7, 3:] = -1
    clicked = (rng.random(pair.shape) < 0.3) & (pair >= 0)
    pages = build_patterns(pair, clicked)
    counts = rng.integers(0, 4, len(pages.pair)) * 1.0
    data = build_data(model, pages, counts)
    success = {key: rng.uniform(0.1, 0.9, len(values)) for key, values in data.initial_parameters().items()}
    failure = {key: 1 - values for key, values in success.items()}
    all_at_once = data.expected_counts(success, failure)
    monkeypatch.setattr("judged.online.clicks.cascade_models._BATCH_SIZE", 64)
    in_batches = build_data(model, pages, counts).expected_counts(success, failure)
    for key in all_at_once:
        np.testing.assert_allclose(all_at_once[key], in_batches[key], rtol=1e-12, atol=1e-12)
