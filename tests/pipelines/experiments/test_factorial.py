"""Effects of factors: against statsmodels, marginal means, and designs that cannot estimate them."""

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
from judged.pipelines.experiments.effects import estimable_effects
from judged.stats.paired import paired_test

FULL = list(product(range(3), range(2), range(2)))
FORBIDDEN = [cell for cell in FULL if cell[0] != 2 or cell[1] != 1]  # the third level of a never with the second of b
TERMS = ["C(a)", "C(b)", "C(c)", "C(a):C(c)", "C(b):C(c)"]


def fit_model(cells: list[tuple[int, ...]], values: np.ndarray, terms: list[str]) -> Any:
    """Fit the blocked model by ordinary least squares, with standard errors clustered by topic."""
    rows = [
        {**dict(zip("abc", cell, strict=True)), "topic": topic, "score": values[i, topic]}
        for i, cell in enumerate(cells)
        for topic in range(values.shape[1])
    ]
    table = pd.DataFrame(rows)
    clusters = {"groups": table["topic"], "use_correction": False, "df_correction": True}
    model = formula.ols("score ~ C(topic) + " + " + ".join(terms), table)
    return model.fit(cov_type="cluster", cov_kwds=clusters, use_t=True)


def estimate(fit: Any, coefficients: dict[str, float]) -> tuple[float, float, float]:
    """Return a sum of coefficients with its interval. Its variance has n - 1 topics; statsmodels divides by n."""
    contrast = np.array([coefficients.get(name, 0.0) for name in fit.params.index])
    result = fit.t_test(contrast)
    n_topics = int(fit.df_resid_inference) + 1
    low, high = np.ravel(result.conf_int())
    center, half_width = float(result.effect[0]), (high - low) / 2 * np.sqrt(n_topics / (n_topics - 1))
    return center, center - half_width, center + half_width


@pytest.mark.parametrize(("cells", "terms"), [(FULL, [*TERMS, "C(a):C(b)"]), (FORBIDDEN, TERMS)])
def test_effects_and_intervals_agree_with_statsmodels(cells: list[tuple[int, ...]], terms: list[str]) -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(len(cells), 17)) + rng.normal(size=17)
    fit, design = fit_model(cells, values, terms), estimable_effects(cells)
    assert design.omitted_interactions == (() if len(terms) == 6 else ((0, 1),))
    names, checked = ("a", "b", "c"), 0
    for contrast in (*design.main, *design.interactions):
        if contrast.factors in design.omitted_interactions:
            continue  # only some of its contrasts can be estimated
        coefficients = {
            ":".join(
                f"C({names[f]})[T.{level}]" for f, level in zip(contrast.factors, contrast.levels, strict=True)
            ): 1.0
        }
        if len(contrast.factors) == 1:  # averaged over the levels of the other factors
            (term,) = coefficients
            for name in fit.params.index:
                other_factors = [name_part for name_part in name.split(":") if name_part != term]
                if name.count(":") == 1 and term in name.split(":"):
                    coefficients[name] = 1 / 3 if other_factors[0].startswith("C(a)") else 1 / 2
        center, low, high = estimate(fit, coefficients)
        result = paired_test(np.zeros(17), contrast.of(values), "t")
        assert result.difference == pytest.approx(center, rel=1e-9)
        assert result.interval == pytest.approx((low, high), rel=1e-9)
        checked += 1
    assert checked == (9 if len(terms) == 6 else 7)


@given(sizes=st.lists(st.integers(1, 3), min_size=1, max_size=4), seed=st.integers(0, 99))
def test_effects_of_a_full_design_are_differences_of_marginal_means(sizes: list[int], seed: int) -> None:
    cells = np.array(list(product(*map(range, sizes))))
    values = np.random.default_rng(seed).normal(size=(len(cells), 4))
    design = estimable_effects(cells)
    assert design.is_full_factorial
    assert design.omitted_interactions == ()

    def mean(**levels: int) -> np.ndarray:
        rows = np.all([cells[:, int(factor[1:])] == level for factor, level in levels.items()], axis=0)
        return values[rows].mean(axis=0)

    for effect in design.main:
        (factor,), (level,) = effect.factors, effect.levels
        assert effect.of(values) == pytest.approx(mean(**{f"f{factor}": level}) - mean(**{f"f{factor}": 0}))
    for effect in design.interactions:
        cell_means = {
            cell: mean(**{f"f{factor}": level for factor, level in zip(effect.factors, cell, strict=True)})
            for cell in product(*((0, level) for level in effect.levels))
        }
        (first, second) = effect.levels
        expected = cell_means[first, second] - cell_means[first, 0] - cell_means[0, second] + cell_means[0, 0]
        assert effect.of(values) == pytest.approx(expected)
    changes = [size - 1 for size in sizes]
    assert len(design.main) == sum(changes)
    assert len(design.interactions) == (sum(changes) ** 2 - sum(change**2 for change in changes)) // 2


def test_a_factor_that_does_not_apply_to_a_level_is_nested_in_the_others() -> None:
    """Engines 0, 1, 2 and stemmers 0, 1. Engine 2 has no stemmer and is compared at stemmer 0; by hand."""
    design = estimable_effects([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0]], {(0, 2): {1}})
    weights = {(effect.factors, effect.levels): effect.weights.tolist() for effect in design.main}
    assert weights == {
        ((0,), (1,)): pytest.approx([-0.5, -0.5, 0.5, 0.5, 0]),  # averaged over stemmers
        ((0,), (2,)): pytest.approx([-1, 0, 0, 0, 1]),  # with the control, at its stemmer
        ((1,), (1,)): pytest.approx([-0.5, 0.5, -0.5, 0.5, 0]),  # averaged over the engines that have one
    }
    (interaction,) = design.interactions
    assert (interaction.factors, interaction.levels, interaction.weights.tolist()) == (
        (0, 1),
        (1, 1),
        pytest.approx([1, -1, -1, 1, 0]),
    )
    assert design.omitted_interactions == ()


def test_one_at_a_time_each_effect_is_the_difference_to_the_first() -> None:
    design = estimable_effects([[0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert [effect.weights.tolist() for effect in design.main] == pytest.approx(np.eye(5)[1:] - np.eye(5)[0])
    assert design.omitted_interactions == ((0, 1), (0, 2), (1, 2))
    assert not any(effect.estimable for effect in design.interactions)
    assert not design.is_full_factorial


def test_a_fractional_design_aliases_interactions() -> None:
    """Half of 2^4 with d = a + b + c: a with b is c with d (Box, Hunter and Hunter 1978, resolution IV)."""
    design = estimable_effects([[a, b, c, (a + b + c) % 2] for a, b, c in product((0, 1), repeat=3)])
    assert all(effect.estimable for effect in design.main)
    aliases = {effect.factors: effect.aliased for effect in design.interactions}
    assert aliases == {(0, 1): ((2, 3),), (0, 2): ((1, 3),), (0, 3): ((1, 2),), (1, 2): ((0, 3),), (1, 3): ((0, 2),),
                       (2, 3): ((0, 1),)}  # fmt: skip


def test_factors_that_change_together_are_aliased_and_others_are_not() -> None:
    design = estimable_effects([[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]])
    assert [(effect.estimable, effect.aliased) for effect in design.main] == [
        (False, ((1,),)), (False, ((0,),)), (True, ()),
    ]  # fmt: skip
    assert estimable_effects([[0, 0], [0, 0]]).main == ()
    assert estimable_effects(np.zeros((3, 0), dtype=int)).is_full_factorial


def test_a_missing_score_excludes_the_topic_from_effects_that_need_it() -> None:
    design = estimable_effects([[0, 0], [1, 0], [0, 1]])
    values = np.array([[0.1, 0.2], [0.3, 0.4], [np.nan, 0.2]])
    assert design.main[0].of(values) == pytest.approx([0.2, 0.2])
    assert design.main[1].of(values) == pytest.approx([np.nan, 0.0], nan_ok=True)
    assert design.main[1].of(values)[1] == 0.0


@pytest.mark.parametrize("codes", [[0, 1], [[0.5]], [[-1]], [["a"]]])
def test_invalid_level_codes_are_rejected(codes: Any) -> None:
    with pytest.raises(InputError):
        estimable_effects(codes)
