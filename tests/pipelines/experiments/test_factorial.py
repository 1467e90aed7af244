"""Effects of factors: against statsmodels on the same table, marginal means, and designs that cannot show them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.formula import api as formula

from judged.errors import InputError
from judged.pipelines.experiments.effects import effects_of
from judged.stats.paired import paired_test

FULL = list(product(range(3), range(2), range(2)))
FORBIDDEN = [cell for cell in FULL if cell[0] != 2 or cell[1] != 1]  # the third level of a never with the second of b
TERMS = ["C(a)", "C(b)", "C(c)", "C(a):C(c)", "C(b):C(c)"]


def fitted(cells: list[tuple[int, ...]], values: np.ndarray, terms: list[str]) -> Any:
    """Fit the blocked model by ordinary least squares, with standard errors clustered by topic."""
    rows = [
        {**dict(zip("abc", cell, strict=True)), "topic": topic, "score": values[at, topic]}
        for at, cell in enumerate(cells)
        for topic in range(values.shape[1])
    ]
    table = pd.DataFrame(rows)
    clusters = {"groups": table["topic"], "use_correction": False, "df_correction": True}
    model = formula.ols("score ~ C(topic) + " + " + ".join(terms), table)
    return model.fit(cov_type="cluster", cov_kwds=clusters, use_t=True)


def estimate(fit: Any, parts: dict[str, float]) -> tuple[float, float, float]:
    """Give a sum of coefficients with its interval; the variance by topics less one, where clusters take all."""
    contrast = np.array([parts.get(name, 0.0) for name in fit.params.index])
    found = fit.t_test(contrast)
    topics = int(fit.df_resid_inference) + 1
    low, high = np.ravel(found.conf_int())
    middle, half = float(found.effect[0]), (high - low) / 2 * np.sqrt(topics / (topics - 1))
    return middle, middle - half, middle + half


@pytest.mark.parametrize(("cells", "terms"), [(FULL, [*TERMS, "C(a):C(b)"]), (FORBIDDEN, TERMS)])
def test_effects_and_intervals_are_those_of_statsmodels(cells: list[tuple[int, ...]], terms: list[str]) -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(len(cells), 17)) + rng.normal(size=17)
    fit, design = fitted(cells, values, terms), effects_of(cells)
    assert design.assumed == (() if len(terms) == 6 else ((0, 1),))
    names, seen = ("a", "b", "c"), 0
    for contrast in (*design.main, *design.interactions):
        if contrast.factors in design.assumed:
            continue  # what of it is there, is estimated beside all others
        parts = {
            ":".join(f"C({names[f]})[T.{to}]" for f, to in zip(contrast.factors, contrast.levels, strict=True)): 1.0
        }
        if len(contrast.factors) == 1:  # averaged over the other factors' levels
            (own,) = parts
            for name in fit.params.index:
                other = [part for part in name.split(":") if part != own]
                if name.count(":") == 1 and own in name.split(":"):
                    parts[name] = 1 / 3 if other[0].startswith("C(a)") else 1 / 2
        middle, low, high = estimate(fit, parts)
        found = paired_test(np.zeros(17), contrast.of(values), "t")
        assert found.difference == pytest.approx(middle, rel=1e-9)
        assert found.interval == pytest.approx((low, high), rel=1e-9)
        seen += 1
    assert seen == (9 if len(terms) == 6 else 7)


@given(sizes=st.lists(st.integers(1, 3), min_size=1, max_size=4), seed=st.integers(0, 99))
def test_of_a_full_design_effects_are_differences_of_marginal_means(sizes: list[int], seed: int) -> None:
    cells = np.array(list(product(*map(range, sizes))))
    values = np.random.default_rng(seed).normal(size=(len(cells), 4))
    design = effects_of(cells)
    assert design.full
    assert design.assumed == ()

    def mean(**at: int) -> np.ndarray:
        rows = np.all([cells[:, int(factor[1:])] == level for factor, level in at.items()], axis=0)
        return values[rows].mean(axis=0)

    for effect in design.main:
        (factor,), (level,) = effect.factors, effect.levels
        assert effect.of(values) == pytest.approx(mean(**{f"f{factor}": level}) - mean(**{f"f{factor}": 0}))
    for effect in design.interactions:
        corner = {
            ends: mean(**{f"f{factor}": end for factor, end in zip(effect.factors, ends, strict=True)})
            for ends in product(*((0, level) for level in effect.levels))
        }
        (one, two) = effect.levels
        wanted = corner[one, two] - corner[one, 0] - corner[0, two] + corner[0, 0]
        assert effect.of(values) == pytest.approx(wanted)
    changes = [size - 1 for size in sizes]
    assert len(design.main) == sum(changes)
    assert len(design.interactions) == (sum(changes) ** 2 - sum(change**2 for change in changes)) // 2


def test_a_factor_that_does_not_apply_to_a_level_is_nested_in_the_others() -> None:
    """Engines 0, 1, 2 and stemmers 0, 1: engine 2 has none, and is compared at stemmer 0. By hand."""
    design = effects_of([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0]], {(0, 2): {1}})
    weights = {(effect.factors, effect.levels): effect.weights.tolist() for effect in design.main}
    assert weights == {
        ((0,), (1,)): pytest.approx([-0.5, -0.5, 0.5, 0.5, 0]),  # averaged over stemmers
        ((0,), (2,)): pytest.approx([-1, 0, 0, 0, 1]),  # with the control, at its stemmer
        ((1,), (1,)): pytest.approx([-0.5, 0.5, -0.5, 0.5, 0]),  # averaged over the engines that have one
    }
    (both,) = design.interactions
    assert (both.factors, both.levels, both.weights.tolist()) == ((0, 1), (1, 1), pytest.approx([1, -1, -1, 1, 0]))
    assert design.assumed == ()


def test_one_at_a_time_each_effect_is_the_difference_to_the_first() -> None:
    design = effects_of([[0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert [effect.weights.tolist() for effect in design.main] == pytest.approx(np.eye(5)[1:] - np.eye(5)[0])
    assert design.assumed == ((0, 1), (0, 2), (1, 2))
    assert not any(effect.estimable for effect in design.interactions)
    assert not design.full


def test_a_fraction_shows_main_effects_and_no_interaction_apart_from_its_alias() -> None:
    """Half of 2^4 with d = a + b + c: a with b is c with d (Box, Hunter and Hunter 1978, resolution IV)."""
    design = effects_of([[a, b, c, (a + b + c) % 2] for a, b, c in product((0, 1), repeat=3)])
    assert all(effect.estimable for effect in design.main)
    aliases = {effect.factors: effect.aliased for effect in design.interactions}
    assert aliases == {(0, 1): ((2, 3),), (0, 2): ((1, 3),), (0, 3): ((1, 2),), (1, 2): ((0, 3),), (1, 3): ((0, 2),),
                       (2, 3): ((0, 1),)}  # fmt: skip


def test_factors_that_change_together_are_aliased_and_others_are_not() -> None:
    design = effects_of([[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]])
    assert [(effect.estimable, effect.aliased) for effect in design.main] == [
        (False, ((1,),)), (False, ((0,),)), (True, ()),
    ]  # fmt: skip
    assert effects_of([[0, 0], [0, 0]]).main == ()
    assert effects_of(np.zeros((3, 0), dtype=int)).full


def test_a_missing_score_leaves_the_topic_out_of_the_effects_that_need_it() -> None:
    design = effects_of([[0, 0], [1, 0], [0, 1]])
    values = np.array([[0.1, 0.2], [0.3, 0.4], [np.nan, 0.2]])
    assert design.main[0].of(values) == pytest.approx([0.2, 0.2])
    assert design.main[1].of(values) == pytest.approx([np.nan, 0.0], nan_ok=True)
    assert design.main[1].of(values)[1] == 0.0


@pytest.mark.parametrize("codes", [[0, 1], [[0.5]], [[-1]], [["a"]]])
def test_levels_that_are_no_codes_are_refused(codes: Any) -> None:
    with pytest.raises(InputError):
        effects_of(codes)
