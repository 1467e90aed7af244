"""Browsing models: expectations by enumeration, and draws that agree with them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from judged.online.simulation.clicks import Browsing, Cascade, Dbn, PositionBased, browse, expect

MODELS: tuple[Browsing, ...] = (PositionBased((0.9, 0.6, 0.25)), Cascade(), Dbn(0.7))
ALPHA, SIGMA, MARK = (0.3, 0.8, 0.5), (0.4, 0.1, 0.9), (0.6, 0.2)


def enumerated(model: Browsing) -> dict[str, list[float]]:
    """Add up the probability of every course of a page of three results, by the words of the models' papers."""
    clicked, examined, first, some = [0.0] * 3, [0.0] * 3, [0.0] * 3, 0.0
    for course in itertools.product((0, 1), repeat=12):  # by result: looks (or goes on), attracted, satisfied, marked
        chance, on, seen_click, marked = 1.0, True, False, False
        courses = [course[4 * at : 4 * at + 4] for at in range(3)]
        for at, (look, attracted, satisfied, mark) in enumerate(courses):
            go = _chance(model, at)
            chance *= go if look else 1 - go
            chance *= ALPHA[at] if attracted else 1 - ALPHA[at]
            chance *= SIGMA[at] if satisfied else 1 - SIGMA[at]
            likely = MARK[0] if satisfied else MARK[1]
            chance *= likely if mark else 1 - likely
        courses_seen: list[tuple[bool, bool]] = []
        for look, attracted, satisfied, mark in courses:
            here = bool(look) if isinstance(model, PositionBased) else on
            click = here and bool(attracted)
            courses_seen.append((here, click))
            marked = marked or (click and bool(mark))
            stop = click and (isinstance(model, Cascade) or bool(satisfied))
            on = on and bool(look) and not stop
        for at, (here, click) in enumerate(courses_seen):
            examined[at] += chance * here
            clicked[at] += chance * click
            first[at] += chance * (click and not seen_click)
            seen_click = seen_click or click
        some += chance * marked
    return {"examined": examined, "clicked": clicked, "first": first, "some": [some]}


def _chance(model: Browsing, at: int) -> float:
    if isinstance(model, PositionBased):
        return model.examination[at]
    return model.go_on if isinstance(model, Dbn) else 1.0


@pytest.mark.parametrize("model", MODELS, ids=lambda one: type(one).__name__)
def test_expectations_are_those_of_all_courses(model: Browsing) -> None:
    wanted = enumerated(model)
    found = expect(model, np.array([ALPHA]), np.array([SIGMA]), {"mark": MARK, "satisfied": (1.0, 0.0)})
    for name in ("examined", "clicked", "first"):
        assert getattr(found, name)[0] == pytest.approx(wanted[name], abs=1e-12)
    assert found.some["mark"] == pytest.approx(wanted["some"], abs=1e-12)
    assert (found.some["satisfied"] <= found.first.sum(axis=1)).all()


@pytest.mark.parametrize("model", MODELS, ids=lambda one: type(one).__name__)
def test_draws_agree_with_expectations(model: Browsing) -> None:
    pages = 40_000
    drawn = browse(model, np.tile(ALPHA, (pages, 1)), np.tile(SIGMA, (pages, 1)), 1, np.random.default_rng(5))
    wanted = expect(model, np.array([ALPHA]), np.array([SIGMA]), {"satisfied": (1.0, 0.0)})
    for name in ("examined", "clicked"):
        chance = getattr(wanted, name)[0]
        error = np.sqrt(chance * (1 - chance) / pages)
        assert (abs(getattr(drawn, name).mean(axis=0) - chance) <= 4 * error).all(), name
    assert drawn.satisfied.any(axis=1).mean() == pytest.approx(
        wanted.some["satisfied"][0], abs=4 * 0.5 / math.sqrt(pages)
    )
    assert not (drawn.clicked & ~drawn.examined).any()
    assert not (drawn.satisfied & ~drawn.clicked).any()


def test_certain_pages_by_hand() -> None:
    """Attractive: the 2nd and the 3rd result; only the 3rd satisfies; there is no 4th."""
    alpha, sigma = np.array([[0.0, 1.0, 1.0, -1.0]]), np.array([[1.0, 0.0, 1.0, 1.0]])
    rng = np.random.default_rng(0)
    wanted = {
        PositionBased((1.0, 0.0, 1.0, 1.0)): ([1, 0, 1, 0], [0, 0, 1, 0]),
        Cascade(): ([1, 1, 0, 0], [0, 1, 0, 0]),
        Dbn(1.0): ([1, 1, 1, 0], [0, 1, 1, 0]),
        Dbn(0.0): ([1, 0, 0, 0], [0, 0, 0, 0]),
    }
    for model, (examined, clicked) in wanted.items():
        drawn, sure = browse(model, alpha, sigma, 1, rng), expect(model, alpha, sigma, {})
        assert drawn.examined.astype(int).tolist() == [examined] == sure.examined.astype(int).tolist()
        assert drawn.clicked.astype(int).tolist() == [clicked] == sure.clicked.astype(int).tolist()


def test_a_later_page_is_looked_at_by_its_own_ranks() -> None:
    model = PositionBased((1.0, 1.0, 0.0, 0.0, 1.0))
    drawn = browse(model, np.ones((1, 2)), np.ones((1, 2)), 3, np.random.default_rng(0))
    assert not drawn.examined.any()
    beyond = browse(model, np.ones((1, 2)), np.ones((1, 2)), 5, np.random.default_rng(0))
    assert beyond.examined.all()  # ranks beyond the last have its value
