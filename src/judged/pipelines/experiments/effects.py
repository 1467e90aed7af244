"""What each factor of an experiment does: effects and interactions over all topics, by slice, and topic by topic."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from judged.comparison.pair import TIMES
from judged.comparison.slicing.parts import ValuePair, compare_subsets, topic_subsets
from judged.errors import InputError
from judged.pipelines.experiments.configurations import level_text
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


_MOST_DRAWS = 10_000  # permutations between slices


class OnSlice(NamedTuple):
    """An effect on the topics of a slice; without a p-value where they are too few."""

    slice: str
    found: Difference


@dataclass(frozen=True, eq=False)
class Effect(ReadOnly):
    """What changing one factor does, or by how much changing two together does more than both apart.

    Parameters
    ----------
    factors
        One, or the two of an interaction.
    changes
        For each of them: the baseline's level, and the one it is changed to.
    values
        (T,): the effect on each topic; NaN where a configuration has no score.
    reach
        How far from 0 it can be, of scores within the measure's bounds; infinite where these have none.
    held
        The levels at which factors are that do not apply to both of what is changed.
    found
        Its mean over topics, with test and interval; None where the configurations do not show it.
    wins
        On how many topics it is above 0, 0, and below.
    detectable
        A true effect of this size is found four times out of five, if other topics differ as these do; NaN where none
        could be.
    sensitivity
        How far a significant effect rests on a few topics; None where there is none.
    aliased
        Where they do not: the factors, or pairs of them, that it cannot be told apart from. Empty where
        combinations were not run that would show it.
    slices
        The same on each slice that has topics; corrected over effects and slices.
    between
        Whether it varies between slices; None where that was not tested.
    between_p
        The p-value of that, corrected over effects.
    """

    factors: tuple[str, ...]
    changes: tuple[tuple[str, str], ...]
    values: Floats
    reach: float = math.inf
    held: tuple[str, ...] = ()
    found: Difference | None = None
    wins: Wins | None = None
    detectable: float = math.nan
    sensitivity: Sensitivity | None = None
    aliased: tuple[str, ...] = ()
    slices: tuple[OnSlice, ...] = ()
    between: Heterogeneity | None = None
    between_p: float = math.nan

    @property
    def sensitive(self) -> bool:
        """Whether a significant effect is sensitive to a few topics."""
        return self.sensitivity is not None and self.sensitivity.sensitive

    @property
    def factor(self) -> str:
        """The factors as one text."""
        return together(self.factors)

    @property
    def change(self) -> str:
        """What is changed, as one text."""
        return together(["{} to {}".format(*change) for change in self.changes])

    def topics(self, limit: int) -> list[int]:
        """Give the places of the topics that it raises most, and of those that it lowers most, so many of each."""
        order = np.argsort(-self.values, kind="stable")
        raised, lowered = (order[side * self.values[order] > 0] for side in (1, -1))
        return [*raised[:limit].tolist(), *lowered[::-1][:limit].tolist()]


@dataclass(frozen=True, eq=False)
class FactorEffects(ReadOnly):
    """All effects of an experiment's factors.

    Parameters
    ----------
    main
        Of each factor, each level against the baseline's, averaged over the levels of the others.
    interactions
        Of each two factors.
    assumed
        The pairs of factors that `main` takes not to interact, since not all that would show it was run.
    full
        Whether all combinations of levels were run.
    """

    main: tuple[Effect, ...]
    interactions: tuple[Effect, ...]
    assumed: tuple[str, ...]
    full: bool

    @property
    def unseen(self) -> tuple[str, ...]:
        """What of `assumed` no configurations show: whole pairs, or some changes of a pair."""
        seen = {effect.factor for effect in self.interactions if effect.found}
        partly = [
            f"{effect.factor} ({effect.change})"
            for effect in self.interactions
            if effect.factor in seen and effect.factor in self.assumed and not effect.found
        ]
        return (*(pair for pair in self.assumed if pair not in seen), *partly)


def together(names: Sequence[str]) -> str:
    """Write the names of what changes together.

    >>> together(["stemmer", "stop"]) == "stemmer \N{MULTIPLICATION SIGN} stop"
    True
    """
    return f" {TIMES} ".join(names)


def factor_effects(
    values: Floats,  # (C, T): scores of configurations
    levels: Sequence[Mapping[str, Any]],  # of each: its level of each factor
    baseline: int,  # which configuration the others are compared with
    choices: Choices,
    slicing: Slicing | None = None,
    reach: float = math.inf,  # how far apart two scores can be
) -> FactorEffects:
    """Estimate and test all effects; main effects, interactions, and what is seen on slices are a family each."""
    names = list(dict.fromkeys(name for given in (levels[baseline], *levels) for name in given))
    parents = {name: _parent(name, names, levels) for name in names}
    known = {name: _levels(name, levels, baseline, nested=bool(parents[name])) for name in names}
    shown = [list(known[name].values()) for name in names]
    places = {name: {key: at for at, key in enumerate(known[name])} for name in names}
    codes = [[places[name].get(_key(given.get(name)), 0) for name in names] for given in levels]
    lacking: dict[tuple[int, int], set[int]] = {}
    for at, name in enumerate(names):
        for given, code in zip(levels, codes, strict=True):
            if (parent := parents[name]) is not None and given.get(name) is None:
                lacking.setdefault((names.index(parent), code[names.index(parent)]), set()).add(at)
    design = effects_of(np.array(codes, dtype=np.int64).reshape(len(levels), len(names)), lacking)
    if not design.main:
        raise InputError("no factor has two levels", fix="give configurations that differ")

    def named(contrast: Contrast) -> Effect:
        changes = [
            (shown[factor][0], shown[factor][level])
            for factor, level in zip(contrast.factors, contrast.levels, strict=True)
        ]
        aliased = [together([names[factor] for factor in term]) for term in contrast.aliased]
        effect = contrast.of(values) if contrast.estimable else np.full(values.shape[1], np.nan)
        far = reach * float(np.abs(contrast.weights).sum()) / 2 if contrast.estimable else math.inf
        both = [(factor, to) for factor, level in zip(contrast.factors, contrast.levels, strict=True)
                for to in (0, level)]  # fmt: skip
        lacked = sorted({other for at in both for other in lacking.get(at, ())})
        held = tuple(f"{names[other]} {shown[other][0]}" for other in lacked)
        own = tuple(names[at] for at in contrast.factors)
        return Effect(own, tuple(changes), effect, far, held, aliased=tuple(aliased))

    return FactorEffects(
        main=_tested([named(effect) for effect in design.main], choices, slicing),
        interactions=_tested([named(effect) for effect in design.interactions], choices, None),
        assumed=tuple(together([names[factor] for factor in pair]) for pair in design.assumed),
        full=design.full,
    )


def _key(level: Any) -> str:
    return repr(level)  # the number 1 is another level than True and the text "1"


def _parent(name: str, names: Sequence[str], levels: Sequence[Mapping[str, Any]]) -> str | None:
    """Find the factor, such as the engine, whose level says whether another one applies; None where it always does."""
    lacks = [one.get(name) is None for one in levels]
    if not any(lacks) or all(lacks):
        return None

    def tells(other: str) -> bool:
        kinds = {(_key(one[other]), absent) for one, absent in zip(levels, lacks, strict=True)}
        return len({kind for kind, _ in kinds}) == len(kinds)

    whole = [other for other in names if all(one.get(other) is not None for one in levels)]
    return next((other for other in whole if tells(other)), None)


def _levels(name: str, levels: Sequence[Mapping[str, Any]], baseline: int, *, nested: bool) -> dict[str, str]:
    """Give the levels of a factor as they are told apart and as they are shown, that of the baseline first."""
    given = [levels[baseline].get(name), *(one.get(name) for one in levels)]
    given = [level for level in given if not (nested and level is None)]
    return {_key(level): "-" if level is None else ANY.write(level) if isinstance(level, bool) else level_text(level)
            for level in given}  # fmt: skip


def _tested(effects: Sequence[Effect], choices: Choices, slicing: Slicing | None) -> tuple[Effect, ...]:
    """Test the effects of a family over all topics, and on slices."""
    shown = [effect for effect in effects if not np.isnan(effect.values).all()]
    if not shown:
        return tuple(effects)
    where = topic_subsets(len(shown[0].values), slicing)
    quantities = [ValuePair(np.zeros(len(effect.values)), effect.values, reach=effect.reach) for effect in shown]
    small = {(at, place) for at, part in enumerate(where) if part.small for place in range(len(shown))}
    tests = compare_subsets(quantities, where, choices, small)
    between: list[Heterogeneity | None] = [None] * len(shown)
    if slicing is not None and (~slicing.small).sum() > 1:
        groups = encode_groups(slicing.members[~slicing.small])
        how = {"resamples": min(choices.resamples, _MOST_DRAWS), "seed": choices.seed}
        if groups is not None:
            between = [heterogeneity(effect.values, groups, **how) for effect in shown]
    tested = [found is not None and found.insufficiency is None for found in between]
    adjusted = adjust(
        [found.p if found and of else math.nan for found, of in zip(between, tested, strict=True)]
    ).tolist()
    made = iter(
        replace(
            effect,
            found=tests[0, place],
            wins=wins(quantities[place].first, effect.values),
            detectable=_detectable(effect.values, tests[0, place], choices, len(shown)),
            sensitivity=_sensitivity(effect, tests[0, place], choices),
            slices=tuple(
                OnSlice(part.name, tests[at, place]) for at, part in enumerate(where[1:], 1) if tests[at, place].n
            ),
            between=between[place],
            between_p=adjusted[place],
        )
        for place, effect in enumerate(shown)
    )
    return tuple(next(made) if effect in shown else effect for effect in effects)


def _sensitivity(effect: Effect, found: Difference, choices: Choices) -> Sensitivity | None:
    """Return how far an effect that is significant rests on a few topics."""
    if not found.significant or not found.difference:
        return None
    none = np.zeros(len(effect.values))
    return sensitivity(none, effect.values, alpha=choices.alpha, max_difference=effect.reach, seed=choices.seed)


def _detectable(values: Floats, found: Difference, choices: Choices, family: int) -> float:
    """Give the true effect that would be found four times out of five."""
    known, alpha = values[~np.isnan(values)], choices.alpha_per_comparison(family)
    few = insufficiency(len(known), "verdict") is not None
    if few or cannot_be_significant(alpha, len(known), found.test, resamples=choices.resamples):
        return math.nan
    return detectable(known, alpha, flips=found.test == "randomization", seed=choices.seed)


_NOTHING = 1e-8  # coefficients are whole numbers: what is smaller is rounding
_DIGITS = 13  # of weights: the last bits of an inverse are another machine's

Term = tuple[int, ...]  # a factor, or two of them
Lacking: TypeAlias = "Mapping[tuple[int, int], Collection[int]]"  # (factor, level): the factors that do not apply there


@dataclass(frozen=True, eq=False)
class Contrast(ReadOnly):
    """An effect as a contrast of configurations.

    Parameters
    ----------
    factors
        One for a main effect, two for an interaction.
    levels
        What each of them is changed to, from its level 0.
    weights
        (C,): what each configuration counts; they add up to 0. All 0 where the effect cannot be estimated.
    aliased
        Where it cannot: the other terms that it cannot be told apart from; empty where combinations are missing that
        would show it.
    """

    factors: Term
    levels: tuple[int, ...]
    weights: Floats
    aliased: tuple[Term, ...] = ()

    @property
    def estimable(self) -> bool:
        """Whether the configurations show it."""
        return bool(self.weights.any())

    def of(self, values: Floats) -> Floats:
        """Give the effect on each topic, (T,), of scores (C, T); NaN where a configuration that counts has none."""
        counted = np.flatnonzero(self.weights)
        parts = self.weights[counted, None] * values[counted]
        effects: Floats = parts.sum(axis=0)
        effects[np.abs(effects) <= ROUNDING * np.abs(parts).sum(axis=0)] = 0.0
        return effects


@dataclass(frozen=True, eq=False)
class Design(ReadOnly):
    """What configurations can show of their factors.

    Parameters
    ----------
    main
        Of each factor, each level against level 0, averaged over all levels of the other factors alike.
    interactions
        Of each two factors, by how much two changes together do more than the sum of both, averaged likewise.
    assumed
        The pairs of factors that are taken not to interact, because the configurations cannot tell.
    full
        Whether every combination of levels is there, equally often: main effects are then differences of marginal
        means, and interactions of any number of factors average out.
    """

    main: tuple[Contrast, ...]
    interactions: tuple[Contrast, ...]
    assumed: tuple[Term, ...]
    full: bool


def effects_of(codes: ArrayLike, lacking: Lacking | None = None) -> Design:
    """Find which effects configurations show, and as which contrasts.

    An interaction of two factors belongs to the model where all of it can be estimated beside all others, and else to
    `assumed`: its main effects are then those of the least-squares fit without it.

    Parameters
    ----------
    codes
        (C, F): the level of each factor in each configuration, from 0; 0 is what others are compared with.
    lacking
        ``{(factor, level): other factors}`` that do not apply there, such as a stemmer to an engine without one; their
        code is then 0. Two levels of which one lacks a factor are compared at level 0 of that, and changes are averaged
        over the levels that they apply to.

    Raises
    ------
    InputError
        If they are not a table of whole numbers from 0.

    Examples
    --------
    >>> full = effects_of([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> [(effect.factors, effect.weights.tolist()) for effect in full.main]
    [((0,), [-0.5, -0.5, 0.5, 0.5]), ((1,), [-0.5, 0.5, -0.5, 0.5])]
    >>> full.interactions[0].weights.tolist(), full.full
    ([1.0, -1.0, -1.0, 1.0], True)
    >>> one_at_a_time = effects_of([[0, 0], [0, 1], [1, 0]])
    >>> one_at_a_time.main[0].weights.tolist(), one_at_a_time.assumed
    ([-1.0, 0.0, 1.0], ((0, 1),))
    >>> nested = effects_of([[0, 0], [0, 1], [1, 0]], {(0, 1): {1}})
    >>> nested.main[0].weights.tolist(), nested.assumed
    ([-1.0, 0.0, 1.0], ())
    """
    table = np.asarray(codes)
    if table.ndim != 2 or table.dtype.kind not in "iu" or (table.size and table.min() < 0):
        raise InputError("levels are not a table of whole numbers from 0", fix="give one row a configuration")
    levels = [sorted(set(column.tolist()) | {0}) for column in table.T]
    varying = [(factor,) for factor, kinds in enumerate(levels) if len(kinds) > 1]
    held = lacking or {}
    pairs = [(*one, *two) for one, two in combinations(varying, 2)]
    known = _Model(table, levels, [*varying, *pairs], held)
    interactions = [known.contrast(pair, changed) for pair, changed in known.changes if len(pair) > 1]
    assumed = tuple(pair for pair in pairs if any(one.factors == pair and not one.estimable for one in interactions))
    terms = [*varying, *(pair for pair in pairs if pair not in assumed)]
    model = _Model(table, levels, terms, held)
    main = [model.contrast(factor, (level,)) for factor in varying for level in levels[factor[0]][1:]]
    for place, one in enumerate(main):  # what stands in the way is a term without which the effect would be seen
        without = {
            other: _Model(table, levels, [term for term in terms if term != other], held) for other in one.aliased
        }
        apart = [other for other, rest in without.items() if rest.contrast(one.factors, one.levels).estimable]
        main[place] = replace(one, aliased=tuple(apart) or one.aliased)
    shown = [one if one.factors in assumed else model.contrast(one.factors, one.levels) for one in interactions]
    cells, times = np.unique(table, axis=0, return_counts=True)
    full = len(cells) == np.prod([len(kinds) for kinds in levels]) and bool((times == times[:1]).all())
    return Design(tuple(main), tuple(shown), assumed, full)


class _Model:
    """A linear model with effect coding: a constant, and columns for each term that add up to 0 over its levels."""

    def __init__(self, table: Ints, levels: list[list[int]], terms: list[Term], lacking: Lacking) -> None:
        self._lacking = lacking

        def alone(factor: int, other: int) -> bool:
            """Whether one level alone has the other factor, so that nothing is there to interact."""
            having = [level for level in levels[factor] if other not in self._lacked(factor, level)]
            return len(having) == 1

        self.changes = [
            (term, changed)
            for term in terms
            for changed in product(*(levels[factor][1:] for factor in term))
            if not any(other in self._lacked(*at) for at in zip(term, changed, strict=True) for other in term)
            and not any(alone(factor, other) for factor in term for other in term)
        ]
        columns = [np.ones(len(table))]
        for term, changed in self.changes:
            columns.append(((table[:, term] == changed) * 1.0 - (table[:, term] == 0)).prod(axis=1))
        self._design = np.column_stack(columns)
        self._inverse: Any = np.linalg.pinv(self._design)  # (P, C)

    def _lacked(self, factor: int, level: int) -> Collection[int]:
        return self._lacking.get((factor, level), ())

    def contrast(self, factors: Term, changed: tuple[int, ...]) -> Contrast:
        """Give an effect: by how much cells of the model differ, averaged over the levels of the other factors."""
        wanted = np.zeros(len(self.changes) + 1)
        to = dict(zip(factors, changed, strict=True))
        held = {other for f, level in to.items() for other in (*self._lacked(f, level), *self._lacked(f, 0))}
        for at, (term, levels) in enumerate(self.changes, 1):
            if set(factors) <= set(term) <= {*factors, *held}:
                own = zip(term, levels, strict=True)  # what is held is at level 0, whose code is -1
                wanted[at] = np.prod([1.0 + (level == to[f]) if f in to else -1.0 for f, level in own])
        lost = wanted - wanted @ self._inverse @ self._design
        terms = [term for (term, _), part in zip(self.changes, lost[1:], strict=True) if abs(part) > _NOTHING]
        if terms:
            aliased = tuple(term for term in dict.fromkeys(terms) if term != factors)
            lacking = any(len(term) < len(factors) for term in aliased)  # combinations that would show an interaction
            return Contrast(factors, changed, np.zeros(len(self._design)), () if lacking else aliased)
        return Contrast(factors, changed, np.round(wanted @ self._inverse, _DIGITS) + 0.0)
