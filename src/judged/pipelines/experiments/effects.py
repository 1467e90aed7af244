"""Effects of the factors of an experiment: main effects and interactions over all topics, by slice, and per topic."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from judged.comparison.pair import TIMES
from judged.comparison.slicing.parts import ValuePair, compare_subsets, topic_subsets
from judged.errors import InputError
from judged.pipelines.experiments.configurations import format_factor_level
from judged.results import ANY
from judged.results.types import ReadOnly
from judged.stats.correction import adjust
from judged.stats.effect import wins
from judged.stats.inputs import ROUNDING
from judged.stats.sample_size import cannot_be_significant, detectable
from judged.stats.sensitivity import sensitivity
from judged.stats.slice_differences import heterogeneity
from judged.stats.sufficiency import insufficiency
from judged.stats.weighted import encode_groups

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import ArrayLike

    from judged.comparison import Choices
    from judged.comparison.slicing import Slicing
    from judged.results.types import Floats, Ints
    from judged.stats.effect import Wins
    from judged.stats.results import Difference
    from judged.stats.sensitivity import Sensitivity
    from judged.stats.slice_differences import Heterogeneity


_MAX_RESAMPLES = 10_000  # permutations between slices


class SliceEffect(NamedTuple):
    """An effect on the topics of a slice; without a p-value if there are too few."""

    slice: str
    estimate: Difference


@dataclass(frozen=True, eq=False)
class Effect(ReadOnly):
    """Effect of a change of one factor, or the interaction of two changes.

    Parameters
    ----------
    factors
        One factor, or the two of an interaction.
    changes
        For each factor: the level of the baseline, and the new level.
    values
        (T,): effect on each topic; NaN if a configuration has no score.
    max_difference
        Largest possible absolute value, from the bounds of the measure; infinite without bounds.
    held_levels
        Levels of factors that do not apply to both sides of the change.
    estimate
        Mean over topics, with test and interval; None if it cannot be estimated.
    wins
        Number of topics with a positive, zero, and negative effect.
    detectable
        True effect that would be significant with a power of 80%, given the variance of these topics; NaN if none
        would.
    sensitivity
        Dependence of a significant effect on a few topics; None otherwise.
    aliased
        Factors or pairs of factors that cannot be distinguished from it, if it cannot be estimated. Empty if
        combinations are missing.
    slices
        Effect on each slice with topics; corrected over effects and slices.
    between
        Test of heterogeneity between slices; None if not tested.
    between_p
        Its p-value, corrected over effects.
    """

    factors: tuple[str, ...]
    changes: tuple[tuple[str, str], ...]
    values: Floats
    max_difference: float = math.inf
    held_levels: tuple[str, ...] = ()
    estimate: Difference | None = None
    wins: Wins | None = None
    detectable: float = math.nan
    sensitivity: Sensitivity | None = None
    aliased: tuple[str, ...] = ()
    slices: tuple[SliceEffect, ...] = ()
    between: Heterogeneity | None = None
    between_p: float = math.nan

    @property
    def sensitive(self) -> bool:
        """Whether a significant effect is sensitive to a few topics."""
        return self.sensitivity is not None and self.sensitivity.sensitive

    @property
    def factor(self) -> str:
        """Factors as text."""
        return join_names(self.factors)

    @property
    def change(self) -> str:
        """Changes as text."""
        return join_names(["{} to {}".format(*change) for change in self.changes])

    def topics(self, limit: int) -> list[int]:
        """Return the indices of the topics with the largest positive and negative effects, `limit` of each."""
        order = np.argsort(-self.values, kind="stable")
        raised, lowered = (order[sign * self.values[order] > 0] for sign in (1, -1))
        return [*raised[:limit].tolist(), *lowered[::-1][:limit].tolist()]


@dataclass(frozen=True, eq=False)
class FactorEffects(ReadOnly):
    """All effects of the factors of an experiment.

    Parameters
    ----------
    main
        Each level of each factor against the baseline's, averaged over the levels of the others.
    interactions
        Of each pair of factors.
    omitted_interactions
        Pairs of factors that `main` assumes not to interact, because combinations are missing.
    is_full_factorial
        Whether all combinations of levels were run.
    """

    main: tuple[Effect, ...]
    interactions: tuple[Effect, ...]
    omitted_interactions: tuple[str, ...]
    is_full_factorial: bool

    @property
    def not_estimated(self) -> tuple[str, ...]:
        """Pairs of `omitted_interactions`, or changes of a pair, that cannot be estimated."""
        estimated = {effect.factor for effect in self.interactions if effect.estimate}
        partially_estimated = [
            f"{effect.factor} ({effect.change})"
            for effect in self.interactions
            if effect.factor in estimated and effect.factor in self.omitted_interactions and not effect.estimate
        ]
        return (*(pair for pair in self.omitted_interactions if pair not in estimated), *partially_estimated)


def join_names(names: Sequence[str]) -> str:
    """Join the names of factors that change together.

    >>> join_names(["stemmer", "stop"]) == "stemmer \N{MULTIPLICATION SIGN} stop"
    True
    """
    return f" {TIMES} ".join(names)


def factor_effects(
    values: Floats,  # (C, T): scores by configuration and topic
    levels: Sequence[Mapping[str, Any]],  # level of each factor, by configuration
    baseline: int,  # index of the configuration that the others are compared with
    choices: Choices,
    slicing: Slicing | None = None,
    max_difference: float = math.inf,  # largest possible difference of two scores
) -> FactorEffects:
    """Estimate and test all effects. Main effects, interactions, and effects on slices are a family each."""
    names = list(dict.fromkeys(name for row in (levels[baseline], *levels) for name in row))
    parents = {name: _parent_factor(name, names, levels) for name in names}
    level_labels = {name: _level_labels(name, levels, baseline, nested=bool(parents[name])) for name in names}
    labels = [list(level_labels[name].values()) for name in names]
    level_codes = {name: {key: i for i, key in enumerate(level_labels[name])} for name in names}
    codes = [[level_codes[name].get(_level_key(row.get(name)), 0) for name in names] for row in levels]
    inapplicable: dict[tuple[int, int], set[int]] = {}
    for i, name in enumerate(names):
        for row, code in zip(levels, codes, strict=True):
            if (parent := parents[name]) is not None and row.get(name) is None:
                inapplicable.setdefault((names.index(parent), code[names.index(parent)]), set()).add(i)
    contrasts = estimable_effects(np.array(codes, dtype=np.int64).reshape(len(levels), len(names)), inapplicable)
    if not contrasts.main:
        raise InputError(
            "at least one factor must have two levels", fix="add configurations with another level of a factor"
        )

    def build_effect(contrast: ConfigurationContrast) -> Effect:
        changes = [
            (labels[factor][0], labels[factor][level])
            for factor, level in zip(contrast.factors, contrast.levels, strict=True)
        ]
        aliased = [join_names([names[factor] for factor in term]) for term in contrast.aliased]
        topic_effects = contrast.of(values) if contrast.estimable else np.full(values.shape[1], np.nan)
        max_effect = max_difference * float(np.abs(contrast.weights).sum()) / 2 if contrast.estimable else math.inf
        compared_levels = [(factor, code) for factor, level in zip(contrast.factors, contrast.levels, strict=True)
                for code in (0, level)]  # fmt: skip
        held_factors = sorted({held for factor_level in compared_levels for held in inapplicable.get(factor_level, ())})
        held_levels = tuple(f"{names[held]} {labels[held][0]}" for held in held_factors)
        factor_names = tuple(names[factor] for factor in contrast.factors)
        return Effect(factor_names, tuple(changes), topic_effects, max_effect, held_levels, aliased=tuple(aliased))

    return FactorEffects(
        main=_test_effects([build_effect(effect) for effect in contrasts.main], choices, slicing),
        interactions=_test_effects([build_effect(effect) for effect in contrasts.interactions], choices, None),
        omitted_interactions=tuple(
            join_names([names[factor] for factor in pair]) for pair in contrasts.omitted_interactions
        ),
        is_full_factorial=contrasts.is_full_factorial,
    )


def _level_key(level: Any) -> str:
    return repr(level)  # distinguishes 1, True, and "1"


def _parent_factor(name: str, names: Sequence[str], levels: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the factor, such as the engine, whose level determines whether another factor applies; else None."""
    is_missing = [row.get(name) is None for row in levels]
    if not any(is_missing) or all(is_missing):
        return None

    def determines(candidate: str) -> bool:
        states = {(_level_key(row[candidate]), missing) for row, missing in zip(levels, is_missing, strict=True)}
        return len({state for state, _ in states}) == len(states)

    complete_factors = [candidate for candidate in names if all(row.get(candidate) is not None for row in levels)]
    return next((candidate for candidate in complete_factors if determines(candidate)), None)


def _level_labels(name: str, levels: Sequence[Mapping[str, Any]], baseline: int, *, nested: bool) -> dict[str, str]:
    """Return the label of each level, by its key, that of the baseline first."""
    factor_levels = [levels[baseline].get(name), *(row.get(name) for row in levels)]
    factor_levels = [level for level in factor_levels if not (nested and level is None)]
    return {_level_key(level): "-" if level is None
            else ANY.write(level) if isinstance(level, bool) else format_factor_level(level)
            for level in factor_levels}  # fmt: skip


def _test_effects(effects: Sequence[Effect], choices: Choices, slicing: Slicing | None) -> tuple[Effect, ...]:
    """Test the effects of a family over all topics, and on slices."""
    estimable = [effect for effect in effects if not np.isnan(effect.values).all()]
    if not estimable:
        return tuple(effects)
    subsets = topic_subsets(len(estimable[0].values), slicing)
    pairs = [
        ValuePair(np.zeros(len(effect.values)), effect.values, max_difference=effect.max_difference)
        for effect in estimable
    ]
    untested = {(row, column) for row, subset in enumerate(subsets) if subset.small for column in range(len(estimable))}
    tests = compare_subsets(pairs, subsets, choices, untested)
    between: list[Heterogeneity | None] = [None] * len(estimable)
    if slicing is not None and (~slicing.small).sum() > 1:
        groups = encode_groups(slicing.members[~slicing.small])
        options = {"resamples": min(choices.resamples, _MAX_RESAMPLES), "seed": choices.seed}
        if groups is not None:
            between = [heterogeneity(effect.values, groups, **options) for effect in estimable]
    is_tested = [result is not None and result.insufficiency is None for result in between]
    adjusted = adjust(
        [result.p if result and is_valid else math.nan for result, is_valid in zip(between, is_tested, strict=True)]
    ).tolist()
    updated = iter(
        replace(
            effect,
            estimate=tests[0, column],
            wins=wins(pairs[column].first, effect.values),
            detectable=_detectable_effect(effect.values, tests[0, column], choices, len(estimable)),
            sensitivity=_sensitivity(effect, tests[0, column], choices),
            slices=tuple(
                SliceEffect(subset.name, tests[row, column])
                for row, subset in enumerate(subsets[1:], 1)
                if tests[row, column].n
            ),
            between=between[column],
            between_p=adjusted[column],
        )
        for column, effect in enumerate(estimable)
    )
    return tuple(next(updated) if effect in estimable else effect for effect in effects)


def _sensitivity(effect: Effect, estimate: Difference, choices: Choices) -> Sensitivity | None:
    """Return the dependence of a significant effect on a few topics."""
    if not estimate.significant or not estimate.difference:
        return None
    zeros = np.zeros(len(effect.values))
    return sensitivity(
        zeros, effect.values, alpha=choices.alpha, max_difference=effect.max_difference, seed=choices.seed
    )


def _detectable_effect(values: Floats, estimate: Difference, choices: Choices, family: int) -> float:
    """Return the true effect that would be significant with a power of 80%."""
    scored, alpha = values[~np.isnan(values)], choices.alpha_per_comparison(family)
    is_small = insufficiency(len(scored), "verdict") is not None
    if is_small or cannot_be_significant(alpha, len(scored), estimate.test, resamples=choices.resamples):
        return math.nan
    return detectable(scored, alpha, flips=estimate.test == "randomization", seed=choices.seed)


_TOLERANCE = 1e-8  # coefficients are whole numbers; a smaller value is a rounding error
_DIGITS = 13  # of weights, because the last bits of an inverse depend on the machine

Term = tuple[int, ...]  # one or two factors, by index
Exclusions: TypeAlias = "Mapping[tuple[int, int], Collection[int]]"  # (factor, level): factors that do not apply to it


@dataclass(frozen=True, eq=False)
class ConfigurationContrast(ReadOnly):
    """An effect as a contrast of configurations.

    Parameters
    ----------
    factors
        One factor for a main effect, two for an interaction.
    levels
        New level of each factor; the old one is 0.
    weights
        (C,): weight of each configuration, with sum 0. All 0 if the effect cannot be estimated.
    aliased
        Other terms that cannot be distinguished from it, if it cannot be estimated; empty if combinations are missing.
    """

    factors: Term
    levels: tuple[int, ...]
    weights: Floats
    aliased: tuple[Term, ...] = ()

    @property
    def estimable(self) -> bool:
        """Whether the effect can be estimated."""
        return bool(self.weights.any())

    def of(self, values: Floats) -> Floats:
        """Return the effect on each topic, (T,), from scores (C, T); NaN if a used configuration has no score."""
        used = np.flatnonzero(self.weights)
        terms = self.weights[used, None] * values[used]
        effects: Floats = terms.sum(axis=0)
        effects[np.abs(effects) <= ROUNDING * np.abs(terms).sum(axis=0)] = 0.0
        return effects


@dataclass(frozen=True, eq=False)
class EstimableEffects(ReadOnly):
    """Effects of factors that the configurations of an experiment can estimate.

    Parameters
    ----------
    main
        Each level of each factor against level 0, averaged with equal weights over all levels of the other factors.
    interactions
        For each pair of factors: the effect of two changes above the sum of both, averaged in the same way.
    omitted_interactions
        Pairs of factors that are assumed not to interact.
    is_full_factorial
        Whether every combination of levels occurs equally often. Main effects are then differences of marginal means,
        and interactions of all orders average out.
    """

    main: tuple[ConfigurationContrast, ...]
    interactions: tuple[ConfigurationContrast, ...]
    omitted_interactions: tuple[Term, ...]
    is_full_factorial: bool


def estimable_effects(codes: ArrayLike, inapplicable: Exclusions | None = None) -> EstimableEffects:
    """Determine which effects configurations can estimate, and their contrasts.

    An interaction of two factors is in the model if all of it can be estimated together with all others,
    else in `omitted_interactions`. The main effects are then those of the least-squares fit without it.

    Parameters
    ----------
    codes
        (C, F): level of each factor in each configuration, as codes from 0; 0 is the reference level.
    inapplicable
        ``{(factor, level): other factors}`` that do not apply to this level, such as a stemmer to an engine without
        one; their code is then 0. Two levels of which one lacks a factor are compared at its level 0, and changes are
        averaged over the levels that they apply to.

    Raises
    ------
    InputError
        If `codes` is not a table of whole numbers from 0.

    Examples
    --------
    >>> full = estimable_effects([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> [(effect.factors, effect.weights.tolist()) for effect in full.main]
    [((0,), [-0.5, -0.5, 0.5, 0.5]), ((1,), [-0.5, 0.5, -0.5, 0.5])]
    >>> full.interactions[0].weights.tolist(), full.is_full_factorial
    ([1.0, -1.0, -1.0, 1.0], True)
    >>> one_at_a_time = estimable_effects([[0, 0], [0, 1], [1, 0]])
    >>> one_at_a_time.main[0].weights.tolist(), one_at_a_time.omitted_interactions
    ([-1.0, 0.0, 1.0], ((0, 1),))
    >>> nested = estimable_effects([[0, 0], [0, 1], [1, 0]], {(0, 1): {1}})
    >>> nested.main[0].weights.tolist(), nested.omitted_interactions
    ([-1.0, 0.0, 1.0], ())
    """
    table = np.asarray(codes)
    if table.ndim != 2 or table.dtype.kind not in "iu" or (table.size and table.min() < 0):
        raise InputError("`codes` must be a table of integers from 0", fix="pass one row per configuration")
    levels = [sorted(set(column.tolist()) | {0}) for column in table.T]
    varying = [(factor,) for factor, factor_levels in enumerate(levels) if len(factor_levels) > 1]
    inapplicable = inapplicable or {}
    pairs = [(*first, *second) for first, second in combinations(varying, 2)]
    full_model = _EffectModel(table, levels, [*varying, *pairs], inapplicable)
    interactions = [full_model.contrast(pair, new_levels) for pair, new_levels in full_model.changes if len(pair) > 1]
    inestimable = {contrast.factors for contrast in interactions if not contrast.estimable}
    omitted_interactions = tuple(pair for pair in pairs if pair in inestimable)
    terms = [*varying, *(pair for pair in pairs if pair not in omitted_interactions)]
    model = _EffectModel(table, levels, terms, inapplicable)
    main = [model.contrast(factor, (level,)) for factor in varying for level in levels[factor[0]][1:]]
    for i, contrast in enumerate(main):  # an alias is a term without which the effect can be estimated
        aliases: list[Term] = []
        for alias in contrast.aliased:
            reduced = _EffectModel(table, levels, [term for term in terms if term != alias], inapplicable)
            aliases += [alias] if reduced.contrast(contrast.factors, contrast.levels).estimable else []
        main[i] = replace(contrast, aliased=tuple(aliases) or contrast.aliased)
    interactions = [
        c if c.factors in omitted_interactions else model.contrast(c.factors, c.levels) for c in interactions
    ]
    cells, counts = np.unique(table, axis=0, return_counts=True)
    is_full = len(cells) == np.prod([len(column) for column in levels]) and bool((counts == counts[:1]).all())
    return EstimableEffects(tuple(main), tuple(interactions), omitted_interactions, is_full)


class _EffectModel:
    """A linear model with effect coding: a constant, and for each term columns that sum to 0 over its levels."""

    def __init__(self, table: Ints, levels: list[list[int]], terms: list[Term], inapplicable: Exclusions) -> None:
        self._inapplicable = inapplicable

        def has_single_level(factor: int, other: int) -> bool:
            """Return whether the other factor applies to a single level, so that there is no interaction."""
            return sum(other not in self._excluded(factor, level) for level in levels[factor]) == 1

        self.changes = [
            (term, new_levels)
            for term in terms
            for new_levels in product(*(levels[factor][1:] for factor in term))
            if not any(other in self._excluded(*new) for new in zip(term, new_levels, strict=True) for other in term)
            and not any(has_single_level(factor, other) for factor in term for other in term)
        ]
        columns = [np.ones(len(table))]
        for term, new_levels in self.changes:
            columns.append(((table[:, term] == new_levels) * 1.0 - (table[:, term] == 0)).prod(axis=1))
        self._design = np.column_stack(columns)
        self._inverse: Any = np.linalg.pinv(self._design)  # (P, C)

    def _excluded(self, factor: int, level: int) -> Collection[int]:
        return self._inapplicable.get((factor, level), ())

    def contrast(self, factors: Term, new_levels: tuple[int, ...]) -> ConfigurationContrast:
        """Return the difference of model cells, averaged over the levels of the other factors."""
        target = np.zeros(len(self.changes) + 1)
        changed = dict(zip(factors, new_levels, strict=True))
        held = {other for f, level in changed.items() for other in (*self._excluded(f, level), *self._excluded(f, 0))}
        for column, (term, levels) in enumerate(self.changes, 1):
            if set(factors) <= set(term) <= {*factors, *held}:
                term_levels = zip(term, levels, strict=True)  # held factors are at level 0, whose code is -1
                target[column] = np.prod(
                    [1.0 + (level == changed[f]) if f in changed else -1.0 for f, level in term_levels]
                )
        residual = target - target @ self._inverse @ self._design
        terms = [term for (term, _), part in zip(self.changes, residual[1:], strict=True) if abs(part) > _TOLERANCE]
        if terms:
            aliased = tuple(term for term in dict.fromkeys(terms) if term != factors)
            # If a lower-order term is aliased, combinations are missing that would identify the interaction.
            aliased = () if any(len(term) < len(factors) for term in aliased) else aliased
            return ConfigurationContrast(factors, new_levels, np.zeros(len(self._design)), aliased)
        return ConfigurationContrast(factors, new_levels, np.round(target @ self._inverse, _DIGITS) + 0.0)
