"""Dawid and Skene's model against enumeration, the data of the paper with crowd-kit, and simulated errors."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from judged.errors import InputError
from judged.labels.consensus import dawid_skene

NAN = np.nan
# Table 1 of the paper: 45 patients; three ratings of the first of five anaesthetists, one of each other.
PATIENTS = """
    1111111 3334334 1122122 2223121 2223222 2223322 1222111 3333433 2222223 2322223 4444444 2223343 1111111 2223212
    1211111 1112111 1111111 1111111 2222221 2221322 2222222 2222221 2223222 2212222 1111111 1111111 2322222 1111111
    1111111 1121121 1111111 3333233 1111111 2222222 2223232 4334343 2212232 2323233 3333432 1111111 1111111 1212111
    2322222 1211111 2222222"""
ANAESTHETISTS = np.array([[float(digit) for digit in patient] for patient in PATIENTS.split()])
OWNER = np.array([0, 0, 0, 1, 2, 3, 4])


def test_results_on_the_data_of_the_paper_match_crowd_kit() -> None:
    """crowd-kit 1.4.2: DawidSkene(n_iter=500, tol=-1).fit(...), priors_, errors_ and probas_."""
    model = dawid_skene(ANAESTHETISTS, owner=OWNER, tolerance=1e-12, max_iterations=500)
    assert len(ANAESTHETISTS) == 45
    assert model.priors == pytest.approx([0.39955475288268, 0.4219833919144738, 0.111795188536141, 0.06666666666670519])
    first = [[0.889488, 0.110512, 0, 0], [0.070585, 0.876380, 0.053035, 0], [0, 0.338822, 0.661178, 0],
             [0, 0, 0.555556, 0.444444]]  # fmt: skip
    third = [[1, 0, 0, 0], [0.106378, 0.788299, 0.105323, 0], [0, 0.403671, 0.198776, 0.397552],
             [0, 0, 0.666667, 0.333333]]  # fmt: skip
    assert model.confusion[0] == pytest.approx(np.array(first), abs=1e-6)
    assert model.confusion[2] == pytest.approx(np.array(third), abs=1e-6)
    assert model.posterior[6] == pytest.approx([0.981020, 0.018980, 0, 0], abs=1e-6)
    assert model.posterior[29] == pytest.approx([0.999146, 0.000854, 0, 0], abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_posterior_and_likelihood_match_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    grades = rng.integers(0, 3, (5, 3)).astype(float)
    grades[rng.random(grades.shape) < 0.2] = NAN
    grades[:, 0] = [0, 1, 2, 0, 1]
    model = dawid_skene(grades, smoothing=0.5, max_iterations=7)
    total, weight = 0.0, np.zeros((5, 3))
    for truth in product(range(3), repeat=5):
        probability = 1.0
        for item, true_class in enumerate(truth):
            probability *= model.priors[true_class]
            for judge, grade in enumerate(grades[item]):
                probability *= 1 if np.isnan(grade) else model.confusion[judge, true_class, int(grade)]
        total += probability
        weight[np.arange(5), truth] += probability
    assert model.log_likelihoods[-1] == pytest.approx(np.log(total))
    assert model.posterior == pytest.approx(weight / total)


@pytest.mark.parametrize("seed", range(20))
def test_the_likelihood_never_decreases(seed: int) -> None:
    rng = np.random.default_rng(seed)
    grades = rng.integers(0, 4, (30, 4)).astype(float)
    grades[:, 1:][rng.random((30, 3)) < 0.4] = NAN
    model = dawid_skene(grades, max_iterations=300)
    assert (np.diff(model.log_likelihoods) >= -1e-9).all()
    for shares in (model.priors, model.confusion, model.posterior):
        assert shares.sum(axis=-1) == pytest.approx(1)
        assert (shares >= 0).all()


def test_simulated_errors_of_judges_are_estimated() -> None:
    rng = np.random.default_rng(7)
    priors = np.array([0.6, 0.3, 0.1])
    confusion = np.array([
        [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]],
        [[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]],
        [[0.5, 0.4, 0.1], [0.1, 0.5, 0.4], [0.0, 0.2, 0.8]],  # grades too high
        [[0.8, 0.2, 0.0], [0.3, 0.6, 0.1], [0.1, 0.3, 0.6]],
    ])  # fmt: skip
    truth = rng.choice(3, 5_000, p=priors)
    grades = np.stack(
        [(rng.random((len(truth), 1)) > matrix[truth].cumsum(axis=1)).sum(axis=1) for matrix in confusion], 1
    )
    grades = np.where(rng.random(grades.shape) < 0.2, NAN, grades)
    grades[np.isnan(grades).all(axis=1)] = 0
    model = dawid_skene(grades)
    assert model.converged
    assert model.priors == pytest.approx(priors, abs=0.04)
    assert model.confusion == pytest.approx(confusion, abs=0.08)
    votes = np.stack([(grades == grade).sum(axis=1) for grade in range(3)], 1).argmax(axis=1)
    assert (model.mode == truth).mean() > (votes == truth).mean() + 0.01
    assert model.posterior.max(axis=1).mean() == pytest.approx((model.mode == truth).mean(), abs=0.015)  # calibrated


def test_convergence_flag_and_invalid_options() -> None:
    assert not dawid_skene(ANAESTHETISTS, owner=OWNER, max_iterations=2).converged
    for grades, options in (
        (np.array([[1.0], [NAN]]), {}), (ANAESTHETISTS, {"smoothing": -1}), (ANAESTHETISTS, {"max_iterations": 0}),
    ):  # fmt: skip
        with pytest.raises(InputError):
            dawid_skene(grades, **options)


def test_a_judge_without_items_of_a_class_does_not_exclude_it() -> None:
    model = dawid_skene(np.array([[0, 0, NAN], [0, 0, NAN], [1, NAN, 1], [1, NAN, 1]], dtype=float))
    assert model.mode.tolist() == [0, 0, 1, 1]
    assert model.confusion[1, 1].tolist() == [0.5, 0.5]
