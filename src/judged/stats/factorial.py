"""Effects of factors from configurations that all saw the same topics: which contrasts of configurations they are.

The model is the blocked linear one: score ~ topic + factors + interactions of two factors. As every configuration
meets every topic, its least-squares estimates do not depend on the topics' own effects: each is a contrast of
configurations, the same on every topic. So an effect has a value topic by topic, and is tested over topics, which is
what was drawn, and not over residuals: the interval is the one with errors clustered by topic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from judged._types import ReadOnly
from judged.errors import InputError
from judged.stats.inputs import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import ArrayLike

    from judged._types import Floats, Ints

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
