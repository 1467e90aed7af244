"""What systems, or practice, do to people who try topics: for other people, and for other people and topics.

Every person and every topic has a level of its own, and may like one of the systems more than others do. An effect is
estimated by least squares with persons, topics and what else is known in the model. What a person, or a topic, adds to
it is its share of the residuals; the variance over people is that of the persons' shares, that over both is the sum of
the variances of the persons' and of the topics' shares less what both hold, that of single trials (Cameron,
Gelbach and Miller 2011; for balanced designs this is the quasi-F of Clark 1973). Degrees of freedom: Satterthwaite
1946.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from judged.errors import InputError
from judged.stats.inputs import check_share

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged._types import Floats, Ints

_SAME = 1e-9


@dataclass(frozen=True)
class Spread:
    """The standard error of a difference, its degrees of freedom, interval, and p-value; NaN where it is unknown."""

    error: float
    df: float
    ci: tuple[float, float]
    p: float


@dataclass(frozen=True)
class CrossedEffect:
    """An effect: the difference of two systems, the second less the first, or the change from one task to the next.

    Parameters
    ----------
    estimate
        In the unit of the values.
    design
        ``within``: people are compared with themselves; ``between``: each used one system only.
    people, topics
        How many have a part in it.
    over_people
        What it would be for other people with these topics.
    over_both
        What it would be for other people and other topics.
    people_shares, topic_shares
        What each person and each topic adds to the estimate if there is no effect: for permutation tests.
    """

    estimate: float
    design: Literal["within", "between"]
    people: int
    topics: int
    over_people: Spread
    over_both: Spread
    people_shares: Floats
    topic_shares: Floats


@dataclass(frozen=True)
class Trials:
    """Values of trials, (n,), with their systems, persons and topics as codes from 0, and their positions."""

    values: Floats
    system: Ints
    person: Ints
    topic: Ints
    position: Ints

    def difference(self, first: int, second: int, level: float = 0.95) -> CrossedEffect:
        """Estimate the difference between two systems.

        Raises
        ------
        InputError
            If trials cannot tell the systems apart: for example each topic was tried with one system only.

        Examples
        --------
        >>> values, system, person = np.array([1.0, 2.0, 3.0, 2.0]), np.array([0, 1, 1, 0]), np.array([0, 0, 1, 1])
        >>> trials = Trials(values, system, person, topic=np.array([0, 1, 0, 1]), position=np.array([0, 1, 0, 1]))
        >>> found = trials.difference(0, 1)
        >>> round(found.estimate, 6), found.design, found.people
        (1.0, 'within', 2)
        """
        systems = dummies(self.system)
        contrast = np.zeros(systems.shape[1])
        contrast[[first, second]] = -1.0, 1.0
        fixed = np.hstack([dummies(self.topic), dummies(self.position)])
        fix = "let people use several systems on the same topics, in changing order"
        return self._effect(systems, contrast, fixed, level, fix)

    def learning(self, level: float = 0.95) -> CrossedEffect:
        """Estimate the change from one task of a person to the next, whatever the system."""
        fixed = np.hstack([dummies(self.topic), dummies(self.system)])
        return self._effect(self.position[:, None] * 1.0, np.ones(1), fixed, level, "let topics change their places")

    def _effect(self, wanted: Floats, contrast: Floats, fixed: Floats, level: float, fix: str) -> CrossedEffect:
        check_share("level", level)
        people, topics = dummies(self.person), dummies(self.topic)
        design: Literal["within", "between"] = "within"
        nuisance = _basis(np.hstack([fixed, people]))
        weights = _weights(nuisance, wanted, contrast)
        if weights is None:
            design, nuisance = "between", _basis(fixed)
            weights = _weights(nuisance, wanted, contrast)
        if weights is None:
            raise InputError("the trials cannot tell it from what topics, positions or systems do", fix=fix)
        basis = _basis(np.hstack([nuisance, wanted]))
        of_people = _cluster_variance(self.values, weights, basis, people, together=design == "between")
        of_topics = _cluster_variance(self.values, weights, basis, topics, together=False)
        own = [fixed, *(members for level_of in (people, topics) for members in _products(level_of, wanted))]
        alone = _basis(np.hstack(own))
        left = len(self.values) - alone.shape[1]
        squares = float((_beyond(alone, self.values) ** 2).sum())
        of_trials = squares / left * float(weights @ weights) if left else 0.0, left
        both = of_people[0] + of_topics[0] - of_trials[0]
        sums = both, _freedom(both, (of_people, of_topics, of_trials))
        over_both = (math.nan, 0.0) if math.isnan(both) else max(sums, of_people, of_topics)
        estimate = float(weights @ self.values)
        alike = weights * _beyond(nuisance, self.values)
        parts = np.abs(weights) > _SAME * np.abs(weights).max()
        return CrossedEffect(
            estimate,
            design,
            int((parts @ people > 0).sum()),
            int((parts @ topics > 0).sum()),
            _spread(estimate, *of_people, level),
            _spread(estimate, *over_both, level),
            alike @ people,
            alike @ topics,
        )


def dummies(codes: Ints) -> Floats:
    """Give a column of zeros and ones for each code."""
    return (codes[:, None] == np.arange(int(codes.max()) + 1)) * 1.0


def _products(members: Floats, wanted: Floats) -> list[Floats]:
    return [members, *(members * column[:, None] for column in wanted.T)]


def _weights(basis: Floats, wanted: Floats, contrast: Floats) -> Floats | None:
    """Give each trial's weight in the least-squares estimate; None where there is none."""
    free = _beyond(basis, wanted)  # what it says beyond the nuisance
    weights = contrast @ np.linalg.pinv(free, rcond=_SAME * max(1.0, float(np.abs(wanted).max())))
    return weights if np.allclose(weights @ wanted, contrast, atol=1e-6) and weights.any() else None


def _basis(columns: Floats) -> Floats:
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return left[:, sizes > _SAME * sizes[0]]


def _beyond(basis: Floats, values: Floats) -> Floats:
    return values - basis @ (basis.T @ values)


def _cluster_variance(
    values: Floats, weights: Floats, basis: Floats, members: Floats, *, together: bool
) -> tuple[float, float]:
    """Give the variance of the estimate over clusters, and its degrees of freedom (Bell and McCaffrey 2002).

    It is corrected for what the fit takes from residuals, as if trials were independent, or, `together`, as if those of
    a cluster had one common error.
    """
    shares = members.T * weights  # (clusters, n)
    if together:
        errors = shares @ _beyond(basis, members)
        spread, nominal = errors @ errors.T, float(((shares @ members).sum(axis=1) ** 2).sum())
    else:
        taken = shares @ basis
        spread, nominal = np.diag((shares**2).sum(axis=1)) - taken @ taken.T, float(weights @ weights)
    trace, squares = float(np.trace(spread)), float((spread**2).sum())
    if trace <= _SAME * nominal:
        return math.nan, 0.0
    return float(((shares @ _beyond(basis, values)) ** 2).sum()) * nominal / trace, trace**2 / squares


def _freedom(variance: float, parts: Iterable[tuple[float, float]]) -> float:
    """Satterthwaite's degrees of freedom of a sum of variances."""
    below = sum(part**2 / df for part, df in parts if df > 0)
    return variance**2 / below if variance > 0 and below > 0 else 0.0


def _spread(estimate: float, variance: float, df: float, level: float) -> Spread:
    from scipy.special import stdtr, stdtrit

    if not (variance > 0 and df > 0):
        return Spread(math.nan, df, (math.nan, math.nan), math.nan)
    error = math.sqrt(variance)
    far = float(stdtrit(df, 0.5 + level / 2)) * error
    return Spread(error, df, (estimate - far, estimate + far), float(2 * stdtr(df, -abs(estimate) / error)))
