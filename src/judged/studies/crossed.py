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
from itertools import combinations
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from judged.stats.inputs import check_share
from judged.stats.sufficiency import MIN_UNITS, insufficiency

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.results.types import Floats, Ints
    from judged.stats.sufficiency import Insufficiency


_SAME = 1e-9
# Six people whose positions are not wholly balanced count as 5.8 effective ones, and are enough for a verdict.
_EFFECTIVE_FOR_VERDICT = MIN_UNITS["verdict"] - 1
Design: TypeAlias = Literal["within", "between"]
Nuisance: TypeAlias = Literal["topics", "positions"]


@dataclass(frozen=True)
class Spread:
    """Standard error of an effect with its degrees of freedom, interval, and p-value; NaN where there is none.

    ``insufficient`` says why there is no interval and no p-value, ``no_verdict`` why there is no verdict; ``unit`` is
    what there is too little of, ``person`` or ``topic``.
    """

    error: float
    df: float
    ci: tuple[float, float]
    p: float
    insufficient: Insufficiency | None = None
    no_verdict: Insufficiency | None = None
    unit: str = "person"


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
    fewest_people
        `people`; in a ``between`` design those of the system that fewer people used.
    over_people
        What it would be for other people with these topics.
    over_both
        What it would be for other people and other topics.
    weights, residuals
        (n,): each trial's weight in the estimate, and its value beyond all else that is in the model, which with these
        weights makes the estimate: for permutation tests.
    """

    estimate: float
    design: Design
    people: int
    topics: int
    fewest_people: int
    over_people: Spread
    over_both: Spread
    weights: Floats
    residuals: Floats


@dataclass(frozen=True)
class Trials:
    """Values of trials, (n,), with their systems, persons and topics as codes from 0, and their positions."""

    values: Floats
    system: Ints
    person: Ints
    topic: Ints
    position: Ints

    def differences(self, level: float = 0.95) -> dict[tuple[int, int], CrossedEffect]:
        """Estimate the difference of each two systems, the second less the first.

        Pairs are left out that the trials cannot tell apart: for example if each topic was tried with one system only.

        Examples
        --------
        >>> values, system, person = np.array([1.0, 2.0, 3.0, 2.0]), np.array([0, 1, 1, 0]), np.array([0, 0, 1, 1])
        >>> trials = Trials(values, system, person, topic=np.array([0, 1, 0, 1]), position=np.array([0, 1, 0, 1]))
        >>> found = trials.differences()[0, 1]
        >>> round(found.estimate, 6), found.design, found.people
        (1.0, 'within', 2)
        """
        systems, place = dummies(self.system), np.unique(self.position, return_inverse=True)[1]
        fits = self._fits(systems, np.hstack([dummies(self.topic), dummies(place)]))
        found = dict[tuple[int, int], CrossedEffect]()
        for pair in combinations(range(systems.shape[1]), 2):
            contrast = np.zeros(systems.shape[1])
            contrast[list(pair)] = -1.0, 1.0
            if (effect := self._effect(fits, systems, contrast, level)) is not None:
                found[pair] = effect
        return found

    def confounders(self, first: int, second: int) -> tuple[Nuisance, ...]:
        """Return the fewest nuisance factors without which the trials could tell two systems apart.

        Empty if they can tell them apart as it is, or a system has no trial.

        Examples
        --------
        Each topic was tried with one system only:

        >>> system, person = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
        >>> Trials(np.arange(4.0), system, person, topic=system, position=np.zeros(4, int)).confounders(0, 1)
        ('topics',)
        """
        if not {first, second} <= set(self.system.tolist()):
            return ()
        systems = dummies(self.system)
        contrast = np.zeros(systems.shape[1])
        contrast[[first, second]] = -1.0, 1.0
        columns: dict[Nuisance, Floats] = {
            "topics": dummies(self.topic),
            "positions": dummies(np.unique(self.position, return_inverse=True)[1]),
        }
        for count in range(len(columns)):
            for left_out in combinations(columns, count):
                kept = [own for name, own in columns.items() if name not in left_out]
                if _weights(_basis(np.hstack(kept)), systems, contrast) is not None:
                    return left_out
        return tuple(columns)

    def learning(self, level: float = 0.95) -> CrossedEffect | None:
        """Estimate the change from one task of a person to the next; None where topics do not change their places."""
        wanted = self.position[:, None].astype(np.float64)
        fits = self._fits(wanted, np.hstack([dummies(self.topic), dummies(self.system)]))
        return self._effect(fits, wanted, np.ones(1), level)

    def _fits(self, wanted: Floats, fixed: Floats) -> tuple[_Fit, _Fit]:
        """Fit with people in the model, and without."""
        members, one = (dummies(self.person), dummies(self.topic)), np.ones(len(wanted))[:, None]
        own = np.hstack([fixed, members[1], *(members[1] * column[:, None] for column in wanted.T)])
        alone = _basis(own, self.person, np.hstack([one, wanted]))
        left = len(self.values) - alone.shape[1]
        trial = float((_beyond(alone, self.values) ** 2).sum()) / left if left else 0.0
        both = np.hstack([fixed, wanted])
        own_levels = _basis(fixed, self.person, one), _basis(both, self.person, one)
        within = _Fit("within", *members, *own_levels, trial, left)
        between = _Fit("between", *members, _basis(fixed), _basis(both), trial, left)
        return within, between

    def _effect(self, fits: tuple[_Fit, _Fit], wanted: Floats, contrast: Floats, level: float) -> CrossedEffect | None:
        check_share("level", level)
        for fit in fits:
            if (weights := _weights(fit.nuisance, wanted, contrast)) is not None:
                break
        else:
            return None
        residuals = _beyond(fit.basis, self.values)
        of_people = _cluster_variance(residuals, weights, fit.basis, fit.people, together=fit.design == "between")
        of_topics = _cluster_variance(residuals, weights, fit.basis, fit.topics, together=False)
        of_trials = fit.trial * float(weights @ weights), fit.left
        both = of_people[0] + of_topics[0] - of_trials[0]
        sums = both, _freedom(both, (of_people, of_topics, of_trials))
        over_both = (math.nan, 0.0) if math.isnan(both) else max(sums, of_people, of_topics)
        estimate = float(weights @ self.values)
        size = _SAME * float(np.abs(weights) @ np.abs(self.values))  # what is smaller is rounding
        estimate, rounding = estimate if abs(estimate) > size else 0.0, size**2
        parts = np.where(np.abs(weights) > _SAME * np.abs(weights).max(), np.abs(weights), 0.0)
        people, topics = parts @ fit.people, parts @ fit.topics
        arms = [people]
        if fit.design == "between":
            arms = [one for one in ((parts * own) @ fit.people for own in wanted[:, contrast != 0].T) if one.any()]
        lacking_people = [_Lack("person", *_too_few(arm, of_people[0], rounding)) for arm in arms]
        lacking_topics = _Lack("topic", *_too_few(topics, of_topics[0], rounding))
        return CrossedEffect(
            estimate,
            fit.design,
            int((people > 0).sum()),
            int((topics > 0).sum()),
            min(int((arm > 0).sum()) for arm in arms),
            _spread(estimate, *of_people, level, lacking_people),
            _spread(estimate, *over_both, level, [*lacking_people, lacking_topics]),
            weights,
            _beyond(fit.nuisance, self.values),
        )


class _Fit(NamedTuple):
    """A model without and with what is wanted in it, and the variance of single trials beyond it."""

    design: Design
    people: Floats
    topics: Floats
    nuisance: Floats
    basis: Floats
    trial: float
    left: int


class _Lack(NamedTuple):
    """What is missing for an interval, and for a verdict, of a kind of unit."""

    unit: str
    interval: Insufficiency | None
    verdict: Insufficiency | None


def _too_few(weights: Floats, variance: float, rounding: float) -> tuple[Insufficiency | None, Insufficiency | None]:
    """Return what units, with their total absolute weights, lack for an interval and for a verdict."""
    units = int((weights > 0).sum())
    variance *= variance > rounding
    interval = insufficiency(units, variance=variance, weights=weights)
    verdict = insufficiency(
        units, "verdict", variance=variance, weights=weights, min_effective_units=_EFFECTIVE_FOR_VERDICT
    )
    return interval, verdict


def dummies(codes: Ints) -> Floats:
    """Give a column of zeros and ones for each code."""
    return (codes[:, None] == np.arange(int(codes.max()) + 1)).astype(np.float64)


def _weights(basis: Floats, wanted: Floats, contrast: Floats) -> Floats | None:
    """Give each trial's weight in the least-squares estimate; None where there is none."""
    free = _beyond(basis, wanted)  # what it says beyond the nuisance
    weights = contrast @ np.linalg.pinv(free, rcond=_SAME * max(1.0, float(np.abs(wanted).max())))
    return weights if np.allclose(weights @ wanted, contrast, atol=1e-6) and weights.any() else None


def _basis(columns: Floats, person: Ints | None = None, own: Floats | None = None) -> Floats:
    """Give orthonormal columns that span these, and what each person has `own` ones of."""
    found = [np.zeros((len(columns), 0))]
    if person is not None and own is not None:  # one at a time: a thousand people are no large matrix to take apart
        for code in np.unique(person):
            left, sizes, _ = np.linalg.svd(own[person == code], full_matrices=False)
            found.append(np.zeros((len(columns), int((sizes > _SAME * sizes[0]).sum()))))
            found[-1][person == code] = left[:, : found[-1].shape[1]]
    spanned = np.hstack(found)
    left, sizes, _ = np.linalg.svd(_beyond(spanned, columns), full_matrices=False)
    return np.hstack([spanned, left[:, sizes > _SAME * np.linalg.norm(columns)]])


def _beyond(basis: Floats, values: Floats) -> Floats:
    return values - basis @ (basis.T @ values)


def _cluster_variance(
    residuals: Floats, weights: Floats, basis: Floats, members: Floats, *, together: bool
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
    return float(((shares @ residuals) ** 2).sum()) * nominal / trace, trace**2 / squares


def _freedom(variance: float, parts: Iterable[tuple[float, float]]) -> float:
    """Satterthwaite's degrees of freedom of a sum of variances."""
    below = sum(part**2 / df for part, df in parts if df > 0)
    return variance**2 / below if variance > 0 and below > 0 else 0.0


def _spread(estimate: float, variance: float, df: float, level: float, lacking: Iterable[_Lack]) -> Spread:
    from scipy.special import stdtr, stdtrit

    unit, insufficient, no_verdict = next((one for one in lacking if one.interval), None) or next(
        (one for one in lacking if one.verdict), _Lack("person", None, None)
    )
    if insufficient is not None:  # among them what has no variance
        return Spread(math.nan, df, (math.nan, math.nan), math.nan, insufficient, no_verdict, unit)
    error = math.sqrt(variance)
    far = float(stdtrit(df, 0.5 + level / 2)) * error
    p = float(2 * stdtr(df, -abs(estimate) / error))
    return Spread(error, df, (estimate - far, estimate + far), p, None, no_verdict, unit)


MOST = 1500
"""Levels of all random factors together: each step of the search solves so many equations."""


@dataclass(frozen=True)
class MixedFit:
    """Fixed effects with their covariance, and the variances of the factors and of what is left."""

    effects: Floats
    covariance: Floats
    variances: Floats
    residual: float


def mixed_model(values: Floats, fixed: Floats, factors: Sequence[Ints]) -> MixedFit:
    """Fit it.

    Parameters
    ----------
    values
        (n,).
    fixed
        (n, p): columns of fixed effects, of full rank.
    factors
        Codes (n,) of each random factor; at most `MOST` different ones in all.

    Examples
    --------
    >>> group = np.repeat([0, 1, 2], 2)
    >>> found = mixed_model(np.array([1.0, 3.0, 4.0, 6.0, 7.0, 9.0]), np.ones((6, 1)), [group])
    >>> [round(float(number), 3) for number in (found.effects[0], found.variances[0], found.residual)]
    [5.0, 8.0, 2.0]
    """
    from scipy.optimize import minimize

    n, p = fixed.shape
    levels = [np.unique(codes, return_inverse=True)[1] for codes in factors]
    members = np.hstack([dummies(codes) for codes in levels])
    which = np.repeat(np.arange(len(factors)), [int(codes.max()) + 1 for codes in levels])
    known = np.column_stack([fixed, values])
    among, across, outside = members.T @ members, members.T @ known, known.T @ known

    def fitted(logs: Floats) -> tuple[float, Floats, Floats, float]:
        sizes = np.exp(logs / 2)[which]  # standard deviations, by that of what is left
        root = np.linalg.cholesky(np.eye(len(sizes)) + sizes[:, None] * among * sizes)
        inside = np.linalg.solve(root, sizes[:, None] * across)
        products = outside - inside.T @ inside  # X'WX, X'Wy, y'Wy, with W the inverse of the covariance
        inverse: Floats = np.linalg.inv(products[:p, :p]).astype(np.float64, copy=False)
        effects = inverse @ products[:p, p]
        residual = max(float(products[p, p] - products[:p, p] @ effects), 0.0) / (n - p)
        half = np.log(np.diag(root)).sum() - np.linalg.slogdet(inverse)[1] / 2
        return float((n - p) / 2 * math.log(max(residual, 1e-300)) + half), effects, inverse, residual

    found = minimize(
        lambda logs: fitted(logs)[0], np.full(len(factors), -1.0), method="L-BFGS-B", bounds=[(-16, 12)] * len(factors)
    )
    _, effects, inverse, residual = fitted(found.x)
    return MixedFit(effects, residual * inverse, np.exp(found.x) * residual, residual)
