"""Click models: probabilities by enumeration, and samples that agree with them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from judged.online.simulation.clicks import Browsing, Cascade, Dbn, PositionBased, browse, expect

MODELS: tuple[Browsing, ...] = (PositionBased((0.9, 0.6, 0.25)), Cascade(), Dbn(0.7))
ALPHA, SIGMA, OUTCOME = (0.3, 0.8, 0.5), (0.4, 0.1, 0.9), (0.6, 0.2)


def enumerated(model: Browsing) -> dict[str, list[float]]:
    """Sum the probabilities of all behaviors on a page of three results, by the definitions in the papers."""
    clicked, examined, first, any_outcome = [0.0] * 3, [0.0] * 3, [0.0] * 3, 0.0
    # by result: examined (or continued), attracted, satisfied, with the outcome
    for bits in itertools.product((0, 1), repeat=12):
        probability, continues, clicked_above, has_outcome = 1.0, True, False, False
        results = [bits[4 * rank : 4 * rank + 4] for rank in range(3)]
        for rank, (examines, attracted, satisfied, outcome) in enumerate(results):
            gamma = _examination(model, rank)
            probability *= gamma if examines else 1 - gamma
            probability *= ALPHA[rank] if attracted else 1 - ALPHA[rank]
            probability *= SIGMA[rank] if satisfied else 1 - SIGMA[rank]
            outcome_probability = OUTCOME[0] if satisfied else OUTCOME[1]
            probability *= outcome_probability if outcome else 1 - outcome_probability
        interactions: list[tuple[bool, bool]] = []
        for examines, attracted, satisfied, outcome in results:
            is_examined = bool(examines) if isinstance(model, PositionBased) else continues
            click = is_examined and bool(attracted)
            interactions.append((is_examined, click))
            has_outcome = has_outcome or (click and bool(outcome))
            stop = click and (isinstance(model, Cascade) or bool(satisfied))
            continues = continues and bool(examines) and not stop
        for rank, (is_examined, click) in enumerate(interactions):
            examined[rank] += probability * is_examined
            clicked[rank] += probability * click
            first[rank] += probability * (click and not clicked_above)
            clicked_above = clicked_above or click
        any_outcome += probability * has_outcome
    return {"examined": examined, "clicked": clicked, "first": first, "outcome": [any_outcome]}


def _examination(model: Browsing, rank: int) -> float:
    if isinstance(model, PositionBased):
        return model.examination[rank]
    return model.continuation if isinstance(model, Dbn) else 1.0


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_probabilities_equal_the_enumeration(model: Browsing) -> None:
    expected = enumerated(model)
    probabilities = expect(model, np.array([ALPHA]), np.array([SIGMA]), {"outcome": OUTCOME, "satisfied": (1.0, 0.0)})
    for name in ("examined", "clicked", "first"):
        assert getattr(probabilities, name)[0] == pytest.approx(expected[name], abs=1e-12)
    assert probabilities.outcomes["outcome"] == pytest.approx(expected["outcome"], abs=1e-12)
    assert (probabilities.outcomes["satisfied"] <= probabilities.first.sum(axis=1)).all()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_samples_agree_with_the_probabilities(model: Browsing) -> None:
    pages = 40_000
    sample = browse(model, np.tile(ALPHA, (pages, 1)), np.tile(SIGMA, (pages, 1)), 1, np.random.default_rng(5))
    expected = expect(model, np.array([ALPHA]), np.array([SIGMA]), {"satisfied": (1.0, 0.0)})
    for name in ("examined", "clicked"):
        probability = getattr(expected, name)[0]
        error = np.sqrt(probability * (1 - probability) / pages)
        assert (abs(getattr(sample, name).mean(axis=0) - probability) <= 4 * error).all(), name
    assert sample.satisfied.any(axis=1).mean() == pytest.approx(
        expected.outcomes["satisfied"][0], abs=4 * 0.5 / math.sqrt(pages)
    )
    assert not (sample.clicked & ~sample.examined).any()
    assert not (sample.satisfied & ~sample.clicked).any()


def test_certain_pages_by_hand() -> None:
    """The second and third result are attractive, only the third satisfies, and there is no fourth."""
    alpha, sigma = np.array([[0.0, 1.0, 1.0, -1.0]]), np.array([[1.0, 0.0, 1.0, 1.0]])
    rng = np.random.default_rng(0)
    expected = {
        PositionBased((1.0, 0.0, 1.0, 1.0)): ([1, 0, 1, 0], [0, 0, 1, 0]),
        Cascade(): ([1, 1, 0, 0], [0, 1, 0, 0]),
        Dbn(1.0): ([1, 1, 1, 0], [0, 1, 1, 0]),
        Dbn(0.0): ([1, 0, 0, 0], [0, 0, 0, 0]),
    }
    for model, (examined, clicked) in expected.items():
        sample, probabilities = browse(model, alpha, sigma, 1, rng), expect(model, alpha, sigma, {})
        assert sample.examined.astype(int).tolist() == [examined] == probabilities.examined.astype(int).tolist()
        assert sample.clicked.astype(int).tolist() == [clicked] == probabilities.clicked.astype(int).tolist()


def test_examination_of_later_pages_depends_on_the_rank_in_the_list() -> None:
    model = PositionBased((1.0, 1.0, 0.0, 0.0, 1.0))
    sample = browse(model, np.ones((1, 2)), np.ones((1, 2)), 3, np.random.default_rng(0))
    assert not sample.examined.any()
    deeper = browse(model, np.ones((1, 2)), np.ones((1, 2)), 5, np.random.default_rng(0))
    assert deeper.examined.all()  # deeper ranks have the last value
