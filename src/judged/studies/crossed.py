"""Effects with people and topics as crossed random factors: for other people, and for other people and topics.

Each person and each topic has a level, and may favor a system. An effect is estimated by least squares, with persons,
topics, and the other factors in the model. A person's (or topic's) share of the estimate is the weighted sum of its
residuals. The variance over people is that of the persons' shares. The variance over both adds that of the topics'
shares and subtracts that of single trials, which both include (Cameron, Gelbach and Miller 2011; for balanced designs
this is the quasi-F of Clark 1973). Degrees of freedom: Satterthwaite 1946.
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
    from collections.abc import Iterable, Mapping, Sequence

    from judged.results.types import Floats, Ints
    from judged.stats.sufficiency import Insufficiency


_ROUNDING = 1e-9
# Six people whose positions are not quite balanced count as 5.8 effective people; they are enough for a verdict.
_EFFECTIVE_FOR_VERDICT = MIN_UNITS["verdict"] - 1
SubjectDesign: TypeAlias = Literal["within", "between"]  # within-subjects, between-subjects
Nuisance: TypeAlias = Literal["topics", "positions"]


@dataclass(frozen=True)
class EffectInference:
    """Standard error of an effect with its degrees of freedom, interval, and p-value; NaN if missing.

    ``insufficient`` is the reason for a missing interval and p-value, ``no_verdict`` for a missing verdict; ``unit`` is
    the unit with too little data, ``person`` or ``topic``.
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
        Numbers of people and topics with a nonzero weight.
    fewest_people
        `people`; in a ``between`` design, the people of the system that fewer people used.
    over_people
        Inference for other people with these topics.
    over_both
        Inference for other people and other topics.
    weights, residuals
        (n,): each trial's weight in the estimate, and its residual without the effect in the model. Their product sums
        to the estimate, which permutation tests rely on.
    """

    estimate: float
    design: SubjectDesign
    people: int
    topics: int
    fewest_people: int
    over_people: EffectInference
    over_both: EffectInference
    weights: Floats
    residuals: Floats


@dataclass(frozen=True)
class TrialArrays:
    """Values of trials, (n,), with codes from 0 of their systems, persons, and topics, and their positions."""

    values: Floats
    system: Ints
    person: Ints
    topic: Ints
    position: Ints

    def differences(self, level: float = 0.95) -> dict[tuple[int, int], CrossedEffect]:
        """Estimate the difference of each pair of systems, the second less the first.

        Omits pairs that the trials cannot separate, for example if each topic was tried with one system only.

        Examples
        --------
        >>> values, system, person = np.array([1.0, 2.0, 3.0, 2.0]), np.array([0, 1, 1, 0]), np.array([0, 0, 1, 1])
        >>> trials = TrialArrays(values, system, person, topic=np.array([0, 1, 0, 1]), position=np.array([0, 1, 0, 1]))
        >>> effect = trials.differences()[0, 1]
        >>> round(effect.estimate, 6), effect.design, effect.people
        (1.0, 'within', 2)
        """
        # Positions can have gaps, for example after practice; codes for dummies cannot.
        systems, position = dummies(self.system), np.unique(self.position, return_inverse=True)[1]
        fits = self._fits(systems, np.hstack([dummies(self.topic), dummies(position)]))
        effects = dict[tuple[int, int], CrossedEffect]()
        for pair in combinations(range(systems.shape[1]), 2):
            contrast = _contrast(systems.shape[1], {pair[0]: -1.0, pair[1]: 1.0})
            if (effect := self._effect(fits, systems, contrast, level)) is not None:
                effects[pair] = effect
        return effects

    def confounders(self, first: int, second: int) -> tuple[Nuisance, ...]:
        """Return the smallest set of nuisance factors without which the trials could separate two systems.

        Empty if the trials separate them already, or if a system has no trial.

        Examples
        --------
        Each topic was tried with one system only:

        >>> system, person = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
        >>> TrialArrays(np.arange(4.0), system, person, topic=system, position=np.zeros(4, int)).confounders(0, 1)
        ('topics',)
        """
        if not {first, second} <= set(self.system.tolist()):
            return ()
        systems = dummies(self.system)
        contrast = _contrast(systems.shape[1], {first: -1.0, second: 1.0})
        columns: dict[Nuisance, Floats] = {
            "topics": dummies(self.topic),
            "positions": dummies(np.unique(self.position, return_inverse=True)[1]),
        }
        for count in range(len(columns)):
            for left_out in combinations(columns, count):
                nuisance = np.hstack([block for name, block in columns.items() if name not in left_out])
                if _estimate_weights(_orthonormal_basis(nuisance), systems, contrast) is not None:
                    return left_out
        return tuple(columns)

    def learning(self, level: float = 0.95, pair: tuple[int, int] | None = None) -> CrossedEffect | None:
        """Estimate the change from one task of a person to the next; None if topics never change positions.

        With a pair of systems, estimate the change with the second less the change with the first.
        """
        systems = dummies(self.system)
        tested = self.position[:, None] * (np.ones((len(systems), 1)) if pair is None else systems)
        contrast, person_arm = np.ones(1), None
        if pair is not None:
            contrast = _contrast(systems.shape[1], {pair[0]: -1.0, pair[1]: 1.0})
            used = dummies(self.person).T @ systems > 0
            person_arm = systems if used.sum(axis=1).max() == 1 else None
        fits = self._fits(tested, np.hstack([dummies(self.topic), systems]))
        return self._effect(fits, tested, contrast, level, person_arm)

    def group_effect(
        self, group: Ints, groups: tuple[int, int], pair: tuple[int, int] | None = None, level: float = 0.95
    ) -> CrossedEffect | None:
        """Estimate the difference of two groups of people, the second less the first; None if it is not estimable.

        With a pair of systems, estimate the interaction: the difference of the systems in the second group less that
        in the first.

        Parameters
        ----------
        group
            (n,): code from 0 of the person's group, for each trial.
        """
        arms, systems = dummies(group), dummies(self.system)
        position = dummies(np.unique(self.position, return_inverse=True)[1])
        nuisance = [dummies(self.topic), position]
        if pair is None:
            tested, contrast = arms, _contrast(arms.shape[1], {groups[0]: -1.0, groups[1]: 1.0})
            nuisance.append(systems)
        else:
            n = systems.shape[1]
            cells = {g * n + s: sign * side for g, sign in zip(groups, (-1.0, 1.0), strict=True)
                     for s, side in zip(pair, (-1.0, 1.0), strict=True)}  # fmt: skip
            tested = (arms[:, :, None] * systems[:, None]).reshape(len(arms), -1)
            contrast = _contrast(tested.shape[1], cells)
        fits = self._fits(tested, np.hstack(nuisance))
        return self._effect(fits, tested, contrast, level, arms)

    def _fits(self, tested: Floats, nuisance: Floats) -> tuple[_Fit, _Fit]:
        """Fit the model with and without a level for each person; `tested` are the columns of the effect."""
        members, intercept = (dummies(self.person), dummies(self.topic)), np.ones(len(tested))[:, None]
        # The residual variance of single trials comes from a model in which each person and topic has its own effect.
        saturated = np.hstack([nuisance, members[1], *(members[1] * column[:, None] for column in tested.T)])
        basis = _orthonormal_basis(saturated, self.person, np.hstack([intercept, tested]))
        trial_df = len(self.values) - basis.shape[1]
        trial_variance = float((_residuals_of(basis, self.values) ** 2).sum()) / trial_df if trial_df else 0.0
        full = np.hstack([nuisance, tested])
        with_levels = [_orthonormal_basis(columns, self.person, intercept) for columns in (nuisance, full)]
        without_levels = [_orthonormal_basis(columns) for columns in (nuisance, full)]
        people, topics = members
        within = _Fit("within", people, topics, with_levels[0], with_levels[1], trial_variance, trial_df)
        between = _Fit("between", people, topics, without_levels[0], without_levels[1], trial_variance, trial_df)
        return within, between

    def _effect(
        self,
        fits: tuple[_Fit, _Fit],
        tested: Floats,
        contrast: Floats,
        level: float,
        person_arm: Floats | None = None,
    ) -> CrossedEffect | None:
        """Estimate a contrast of the columns `tested`; `person_arm` has the columns of different people."""
        check_share("level", level)
        # Compare people with themselves if the trials allow it, otherwise with each other.
        for fit in fits:
            if (weights := _estimate_weights(fit.nuisance, tested, contrast)) is not None:
                break
        else:
            return None
        residuals = _residuals_of(fit.basis, self.values)
        of_people = _cluster_variance(residuals, weights, fit.basis, fit.people, correlated=fit.design == "between")
        of_topics = _cluster_variance(residuals, weights, fit.basis, fit.topics, correlated=False)
        of_trials = fit.trial_variance * float(weights @ weights), fit.trial_df
        # Cameron, Gelbach and Miller 2011, eq. 2.11; it can fall below either component, so take the largest.
        total = of_people[0] + of_topics[0] - of_trials[0]
        two_way = total, _satterthwaite_df(total, (of_people, of_topics, of_trials))
        # NaN: too few people or topics for a variance.
        over_both = (math.nan, 0.0) if math.isnan(total) else max(two_way, of_people, of_topics)
        estimate = float(weights @ self.values)
        tolerance = _ROUNDING * float(np.abs(weights) @ np.abs(self.values))  # a smaller estimate is rounding error
        estimate, min_variance = estimate if abs(estimate) > tolerance else 0.0, tolerance**2
        # Units that get weight from rounding errors only do not count.
        sizes = np.where(np.abs(weights) > _ROUNDING * np.abs(weights).max(), np.abs(weights), 0.0)
        people, topics = sizes @ fit.people, sizes @ fit.topics
        arms = [people]
        # Each arm of different people needs enough of them.
        if fit.design == "between":
            person_arm = tested[:, contrast != 0]
        if person_arm is not None:
            arm_weights = ((sizes * column) @ fit.people for column in person_arm.T)
            arms = [arm for arm in arm_weights if arm.any()]
        missing_people = [_missing_units("person", arm, of_people[0], min_variance) for arm in arms]
        missing_topics = _missing_units("topic", topics, of_topics[0], min_variance)
        return CrossedEffect(
            estimate,
            fit.design,
            int((people > 0).sum()),
            int((topics > 0).sum()),
            min(int((arm > 0).sum()) for arm in arms),
            _infer(estimate, *of_people, level, missing_people),
            _infer(estimate, *over_both, level, [*missing_people, missing_topics]),
            weights,
            _residuals_of(fit.nuisance, self.values),
        )


class _Fit(NamedTuple):
    """Bases of a model without and with the effect, and the residual variance of single trials."""

    design: SubjectDesign
    people: Floats
    topics: Floats
    nuisance: Floats
    basis: Floats
    trial_variance: float
    trial_df: int


class _MissingUnits(NamedTuple):
    """Reasons why a kind of unit does not suffice for an interval, and for a verdict."""

    unit: str
    interval: Insufficiency | None
    verdict: Insufficiency | None


def _missing_units(unit: str, weights: Floats, variance: float, min_variance: float) -> _MissingUnits:
    count = int((weights > 0).sum())
    variance *= variance > min_variance
    interval = insufficiency(count, variance=variance, weights=weights)
    minimum = {"min_effective_units": _EFFECTIVE_FOR_VERDICT}
    return _MissingUnits(unit, interval, insufficiency(count, "verdict", variance=variance, weights=weights, **minimum))


def _contrast(size: int, values: Mapping[int, float]) -> Floats:
    contrast = np.zeros(size)
    contrast[list(values)] = list(values.values())
    return contrast


def dummies(codes: Ints) -> Floats:
    """Return a column of zeros and ones for each code."""
    return (codes[:, None] == np.arange(int(codes.max()) + 1)).astype(np.float64)


def _estimate_weights(basis: Floats, tested: Floats, contrast: Floats) -> Floats | None:
    """Return each trial's weight in the least-squares estimate; None if the contrast is not estimable."""
    free = _residuals_of(basis, tested)  # Frisch-Waugh-Lovell: regress on the columns without their nuisance part
    weights = contrast @ np.linalg.pinv(free, rcond=_ROUNDING * max(1.0, float(np.abs(tested).max())))
    return weights if np.allclose(weights @ tested, contrast, atol=1e-6) and weights.any() else None


def _orthonormal_basis(columns: Floats, person: Ints | None = None, by_person: Floats | None = None) -> Floats:
    """Return an orthonormal basis of `columns` and of `by_person`, separately for each person."""
    blocks = [np.zeros((len(columns), 0))]
    if person is not None and by_person is not None:  # a small SVD for each person, never one of all people
        for code in np.unique(person):
            u, singular_values, _ = np.linalg.svd(by_person[person == code], full_matrices=False)
            blocks.append(np.zeros((len(columns), int((singular_values > _ROUNDING * singular_values[0]).sum()))))
            blocks[-1][person == code] = u[:, : blocks[-1].shape[1]]
    spanned = np.hstack(blocks)
    u, singular_values, _ = np.linalg.svd(_residuals_of(spanned, columns), full_matrices=False)
    return np.hstack([spanned, u[:, singular_values > _ROUNDING * np.linalg.norm(columns)]])


def _residuals_of(basis: Floats, values: Floats) -> Floats:
    return values - basis @ (basis.T @ values)


def _cluster_variance(
    residuals: Floats, weights: Floats, basis: Floats, members: Floats, *, correlated: bool
) -> tuple[float, float]:
    """Estimate the variance of the estimate over clusters, and its degrees of freedom (Bell and McCaffrey 2002).

    The bias correction assumes independent trials or, if `correlated`, one common error of the trials of a cluster.
    """
    shares = members.T * weights  # (clusters, n)
    if correlated:
        loadings = shares @ _residuals_of(basis, members)
        covariance, nominal = loadings @ loadings.T, float(((shares @ members).sum(axis=1) ** 2).sum())
    else:
        projected = shares @ basis
        covariance, nominal = np.diag((shares**2).sum(axis=1)) - projected @ projected.T, float(weights @ weights)
    # Satterthwaite: match mean and variance of the quadratic form to a scaled chi-squared distribution.
    trace, squares = float(np.trace(covariance)), float((covariance**2).sum())
    if trace <= _ROUNDING * nominal:
        return math.nan, 0.0
    return float(((shares @ residuals) ** 2).sum()) * nominal / trace, trace**2 / squares


def _satterthwaite_df(variance: float, components: Iterable[tuple[float, float]]) -> float:
    denominator = sum(component**2 / df for component, df in components if df > 0)
    return variance**2 / denominator if variance > 0 and denominator > 0 else 0.0


def _infer(
    estimate: float, variance: float, df: float, level: float, checks: Iterable[_MissingUnits]
) -> EffectInference:
    from scipy.special import stdtr, stdtrit

    # Report the units that lack an interval before those that lack a verdict only.
    first = min(checks, key=lambda check: 0 if check.interval else 1 if check.verdict else 2)
    unit, insufficient, no_verdict = first
    if insufficient is not None:  # a variance of 0 is insufficient too, so `error` below is positive
        return EffectInference(math.nan, df, (math.nan, math.nan), math.nan, insufficient, no_verdict, unit)
    error = math.sqrt(variance)
    half_width = float(stdtrit(df, 0.5 + level / 2)) * error
    p = float(2 * stdtr(df, -abs(estimate) / error))
    return EffectInference(error, df, (estimate - half_width, estimate + half_width), p, None, no_verdict, unit)


MAX_LEVELS = 1500
"""Maximum number of levels of all random factors: each optimizer step solves a system of this size."""


@dataclass(frozen=True)
class MixedFit:
    """Fixed effects with their covariance, variances of the random factors, and residual variance."""

    effects: Floats
    covariance: Floats
    variances: Floats
    residual: float


def mixed_model(values: Floats, fixed: Floats, factors: Sequence[Ints]) -> MixedFit:
    """Fit a linear mixed model with crossed random intercepts by REML.

    Parameters
    ----------
    values
        (n,).
    fixed
        (n, p): columns of fixed effects, of full rank.
    factors
        Codes (n,) of each random factor; at most `MAX_LEVELS` different codes in all.

    Examples
    --------
    >>> group = np.repeat([0, 1, 2], 2)
    >>> fit = mixed_model(np.array([1.0, 3.0, 4.0, 6.0, 7.0, 9.0]), np.ones((6, 1)), [group])
    >>> [round(float(number), 3) for number in (fit.effects[0], fit.variances[0], fit.residual)]
    [5.0, 8.0, 2.0]
    """
    from scipy.optimize import minimize

    n, p = fixed.shape
    levels = [np.unique(codes, return_inverse=True)[1] for codes in factors]
    # X: fixed effects; Z: indicators of the levels; y: values. Notation of Bates et al. 2015 (lme4), sections 2 and 3.
    z = np.hstack([dummies(codes) for codes in levels])
    factor_of_level = np.repeat(np.arange(len(factors)), [int(codes.max()) + 1 for codes in levels])
    xy = np.column_stack([fixed, values])
    zz, zxy, xyxy = z.T @ z, z.T @ xy, xy.T @ xy

    def profile(log_ratios: Floats) -> tuple[float, Floats, Floats, float]:
        theta = np.exp(log_ratios / 2)[factor_of_level]  # standard deviations relative to the residual's
        root = np.linalg.cholesky(np.eye(len(theta)) + theta[:, None] * zz * theta)
        whitened = np.linalg.solve(root, theta[:, None] * zxy)
        products = xyxy - whitened.T @ whitened  # X'WX, X'Wy, y'Wy, with W the inverse of the covariance
        # Generalized least squares, and the REML estimate of the residual variance.
        inverse: Floats = np.linalg.inv(products[:p, :p]).astype(np.float64, copy=False)
        effects = inverse @ products[:p, p]
        residual = max(float(products[p, p] - products[:p, p] @ effects), 0.0) / (n - p)
        log_determinants = np.log(np.diag(root)).sum() - np.linalg.slogdet(inverse)[1] / 2
        deviance = (n - p) / 2 * math.log(max(residual, 1e-300)) + log_determinants  # half the REML deviance
        return float(deviance), effects, inverse, residual

    # Logarithms keep variances positive; exp(-16) is a variance of practically 0.
    start, bounds = np.full(len(factors), -1.0), [(-16, 12)] * len(factors)
    optimum = minimize(lambda log_ratios: profile(log_ratios)[0], start, method="L-BFGS-B", bounds=bounds)
    _, effects, inverse, residual = profile(optimum.x)
    return MixedFit(effects, residual * inverse, np.exp(optimum.x) * residual, residual)
