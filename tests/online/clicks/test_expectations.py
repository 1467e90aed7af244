"""Expectations of every model against the enumeration of all that may have happened behind the clicks of a page."""

from __future__ import annotations

import numpy as np
import pytest
from calibration.click_models import patterns

from judged.online.clicks.fitting import data_of, predict
from judged.online.clicks.looked_at import MODELS

K = 4
SESSIONS = 40  # of each model, with random parameters: 360 in all
STATES = np.array(np.meshgrid(*[[0, 1]] * (3 * K), indexing="ij")).reshape(3 * K, -1).T.astype(bool)


def drawn(model, rng):
    """Draw parameters, with one pair a rank."""
    size = {"": 1, "rank": K, "rank and last click": K * (K + 1)}[model.examined]
    made = {"attractiveness": rng.uniform(0.05, 0.95, K)} if model.attractive else {}
    made |= {"examination": rng.uniform(0.05, 0.95, size)} if model.examined else {}
    made |= {"satisfaction": rng.uniform(0.05, 0.95, K)} if model.satisfied in {"pair", "rank"} else {}
    return made | ({"continuation": rng.uniform(0.05, 0.95, len(model.continuation))} if model.continuation else {})


def enumerated(model, truth, there):
    """Give probability, looks, clicks, satisfaction and going on of all 4,096 states of a page.

    A state says at every rank whether the result attracts, whether a click on it satisfies, and whether the user goes
    on; in models of ranks the last is whether he looks at it.
    """
    attracts, pleases, goes = STATES[:, :K], STATES[:, K : 2 * K], STATES[:, 2 * K :]
    alpha = truth["attractiveness"] if model.attractive else np.ones(K)
    p = np.ones(len(STATES))
    looks, clicks = np.zeros((2, K, len(STATES)), bool)
    looking, last = np.ones(len(STATES), bool), np.zeros(len(STATES), int)
    go_on = [truth["continuation"][model.continuation.index(one)] if isinstance(one, str) else one
             for one in model.go_on]  # fmt: skip
    for at in range(K):
        if not there[at]:  # nothing stands there, and nothing happens: one state of each kind
            p *= ~attracts[:, at] & ~pleases[:, at] & ~goes[:, at]
            continue
        p *= np.where(attracts[:, at], alpha[at], 1 - alpha[at])
        if not model.go_on:
            node = {"": 0 * last, "rank": at + 0 * last, "rank and last click": at * (K + 1) + last}[model.examined]
            gamma = truth["examination"][node] if model.examined else np.ones(len(STATES))
            p *= np.where(goes[:, at], gamma, 1 - gamma) * ~pleases[:, at]
            looks[at] = goes[:, at]
        else:
            looks[at] = looking
        clicks[at] = looks[at] & attracts[:, at]
        last = np.where(clicks[at], at + 1, last)
        if model.go_on:
            sigma = {"always": 1.0, "attractiveness": alpha[at]}.get(model.satisfied)
            sigma = truth["satisfaction"][at] if sigma is None else sigma
            p *= np.where(pleases[:, at], sigma, 1 - sigma)
            on = np.where(clicks[at], np.where(pleases[:, at], go_on[2], go_on[1]), go_on[0])
            p *= np.where(goes[:, at], on, 1 - on)
            looking = looking & goes[:, at]
    return p, looks, clicks, pleases.T, goes.T


def expected(model, truth, there, clicked):
    """Add up expected successes and trials of every parameter over the states that show these clicks."""
    p, looks, clicks, pleases, goes = enumerated(model, truth, there)
    p = p * (clicks == clicked[:, None]).all(axis=0)
    total, p = p.sum(), p / p.sum()
    made = {name: np.zeros((2, len(values))) for name, values in truth.items()}
    last = 0
    for at in np.flatnonzero(there):
        followed = there[at + 1 :].any()
        if model.attractive:
            made["attractiveness"][:, at] += p @ (clicks[at] & looks[at]), p @ looks[at]
        if model.examined:
            node = at if model.examined == "rank" else at * (K + 1) + last
            made["examination"][:, node] += p @ looks[at], 1.0
        last = at + 1 if clicked[at] else last
        if not model.go_on or not followed:
            continue
        if model.satisfied == "attractiveness":
            made["attractiveness"][:, at] += p @ (clicks[at] & pleases[at]), p @ clicks[at]
        if model.satisfied in {"pair", "rank"}:
            made["satisfaction"][:, at] += p @ (clicks[at] & pleases[at]), p @ clicks[at]
        kinds = (looks[at] & ~clicks[at], clicks[at] & ~pleases[at], clicks[at] & pleases[at])
        for name, kind in zip(model.go_on, kinds, strict=True):
            if isinstance(name, str):
                made["continuation"][:, model.continuation.index(name)] += p @ (kind & goes[at]), p @ kind
    return made, np.log(total)


@pytest.mark.parametrize("name", MODELS)
def test_expectations_and_likelihoods_are_those_of_all_states(name):
    model, rng = MODELS[name], np.random.default_rng(7)
    tried = 0
    for session in range(SESSIONS):
        truth = drawn(model, rng)
        there = rng.random(K) < (0.75 if session % 2 else 1.0)
        there[rng.integers(K)] = True
        clicked = (rng.random(K) < 0.35) & there
        if name == "CM":
            clicked &= np.cumsum(clicked) <= 1  # of more clicks the cascade has no states
        page = patterns(np.where(there, np.arange(K), -1)[None], clicked[None], pairs=K)
        data = data_of(model, page, np.ones(1))
        found = data.sums(truth, {key: 1 - values for key, values in truth.items()})
        wanted, likely = expected(model, truth, there, clicked)
        for key, sums in found.items():
            np.testing.assert_allclose(sums, wanted[key], atol=1e-12, err_msg=f"{key} {clicked} {there}")
        assert data.loglik(truth) == pytest.approx(likely, abs=1e-12)
        tried += 1
    assert tried == SESSIONS


@pytest.mark.parametrize("name", MODELS)
def test_predictions_are_shares_of_all_states(name):
    model, rng = MODELS[name], np.random.default_rng(11)
    for session in range(SESSIONS):
        truth = drawn(model, rng)
        there = rng.random(K) < (0.75 if session % 2 else 1.0)
        there[rng.integers(K)] = True
        clicked = (rng.random(K) < 0.35) & there
        if name == "CM":
            clicked &= np.cumsum(clicked) <= 1
        given, before = predict(model, patterns(np.where(there, np.arange(K), -1)[None], clicked[None], pairs=K), truth)
        p, _, clicks, _, _ = enumerated(model, truth, there)
        np.testing.assert_allclose(before[0], clicks @ p, atol=1e-12)
        for at in range(K):
            same = p * (clicks[:at] == clicked[:at, None]).all(axis=0)
            assert given[0, at] == pytest.approx((same @ clicks[at]) / same.sum(), abs=1e-12)


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.go_on])
def test_probabilities_of_all_clicks_of_a_page_are_those_of_all_states(name):
    """Of one to four results, every set of clicks: as enumerated, and 1 in all."""
    model, rng = MODELS[name], np.random.default_rng(13)
    for size in range(1, K + 1):
        there, truth = np.arange(K) < size, drawn(model, rng)
        p, _, clicks, _, _ = enumerated(model, truth, there)
        likely = []
        for clicked in STATES[: 2**K, -K:]:
            if not (clicked & ~there).any():
                page = patterns(np.where(there, np.arange(K), -1)[None], clicked[None], pairs=K)
                likely.append(np.exp(data_of(model, page, np.ones(1)).loglik(truth)))
                assert likely[-1] == pytest.approx(p[(clicks == clicked[:, None]).all(axis=0)].sum(), abs=1e-13)
        assert len(likely) == 2**size
        assert sum(likely) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_a_thousand_pages_at_once_are_a_thousand_pages(name, monkeypatch):
    """Pages are worked on in parts; their sums do not hang on how."""
    model, rng = MODELS[name], np.random.default_rng(3)
    pair = rng.permuted(np.tile(np.arange(8), (1000, 1)), axis=1)[:, :5]
    pair[::7, 3:] = -1
    clicked = (rng.random(pair.shape) < 0.3) & (pair >= 0)
    page = patterns(pair, clicked)
    counts = rng.integers(0, 4, len(page.pair)) * 1.0
    data = data_of(model, page, counts)
    truth = {key: rng.uniform(0.1, 0.9, len(values)) for key, values in data.start().items()}
    no = {key: 1 - values for key, values in truth.items()}
    whole = data.sums(truth, no)
    monkeypatch.setattr("judged.online.clicks.chains._AT_ONCE", 64)
    parted = data_of(model, page, counts).sums(truth, no)
    for key in whole:
        np.testing.assert_allclose(whole[key], parted[key], rtol=1e-12, atol=1e-12)
