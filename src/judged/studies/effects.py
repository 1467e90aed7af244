"""Differences of systems in an outcome for other people and topics, learning effects, and variance components."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from judged.stats.correction import adjust
from judged.stats.paired import paired_test
from judged.studies.crossed import MAX_LEVELS, TrialArrays, dummies, mixed_model

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judged.results.types import Bools, Ints
    from judged.studies.crossed import CrossedEffect, EffectInference, MixedFit
    from judged.studies.outcomes import Outcome

_MIN_PERMUTED_UNITS = 6  # with 5 people (or topics), the smallest p of a sign-flip test is 2 / 2**5 = 0.0625
_PERMUTATIONS = 9_999
_ROUNDING = 1e-9
# Share of the variance. If the residual of a mixed model is smaller, its likelihood has no finite maximum.
_MIN_RESIDUAL_SHARE = 1e-5


class SystemEffect(NamedTuple):
    """The difference of two systems (or interface variants) in one outcome, the second less the first.

    Parameters
    ----------
    means, counts
        Raw mean of the values, and number of trials, of each system.
    difference
        Least-squares estimate with people, topics, and positions in the model; NaN if the trials cannot separate the
        two systems.
    people_ci
        For other people with these topics.
    ci, p
        For other people and other topics; if the outcome has at most one topic (a questionnaire about a system), for
        other people.
    adjusted
        `p` corrected for all pairs of the outcome (Holm).
    people_p, topics_p
        Permutation tests that flip the signs of the shares of people, or topics. `people_p` is for other people with
        these topics, `topics_p` for other topics with these people. Neither is a p-value for other people and other
        topics: if topics favor systems, `people_p` rejects in a third to two thirds of studies without a difference.
    mixed, mixed_error
        Estimate and standard error by a mixed model.
    reason
        Reason for a missing estimate, interval, or verdict (NaN); empty if none is missing.
    """

    outcome: str
    better: str
    first: str
    second: str
    means: tuple[float, float]
    counts: tuple[int, int]
    difference: float
    design: str
    people: int
    n: int
    people_ci: tuple[float, float]
    ci: tuple[float, float]
    p: float
    adjusted: float
    people_p: float
    topics_p: float
    mixed: float
    mixed_error: float
    reason: str = ""

    @property
    def has_verdict(self) -> bool:
        """Whether the data suffice for a verdict: better, worse, or undecided."""
        return not math.isnan(self.adjusted) and not self.reason


class LearningEffect(NamedTuple):
    """Change of an outcome from one task to the next, with one system or (empty `system`) with all of them.

    Parameters
    ----------
    system, minus
        System (or variant), and the one whose change is subtracted; empty: none is.
    ci, p
        For other people with these topics. `p` is not corrected, and NaN if there are too few people for a verdict.
    first, last
        Mean of the values at the first, and at the last position; NaN for a difference of two systems.
    """

    outcome: str
    system: str
    change: float
    ci: tuple[float, float]
    people: int
    first: float
    last: float
    minus: str = ""
    p: float = math.nan


class GroupEffect(NamedTuple):
    """The difference of two groups of people in one outcome, the second less the first, or an interaction.

    Parameters
    ----------
    system, minus
        Empty for the difference of the groups. For an interaction, the difference is that of `system` less `minus` in
        the second group, less the same in the first.
    ci
        For other people and other topics, or for other people if the outcome has at most one topic.
    p
        Holm-corrected over all rows of the outcome; NaN if there are too few people or topics for a verdict.
    reason
        Reason for a missing interval or p-value; empty if none is missing.
    """

    outcome: str
    first: str
    second: str
    system: str
    minus: str
    difference: float
    ci: tuple[float, float]
    p: float
    people: int
    reason: str


class VarianceComponents(NamedTuple):
    """Standard deviations of an outcome, by a mixed model.

    ``people_by_system`` is NaN if each person used one system: then ``by_person`` includes it.
    """

    outcome: str
    by_person: float
    by_topic: float
    people_by_system: float
    topics_by_system: float
    trials: float


def system_effects(
    outcome: Outcome,
    *,
    by: Literal["system", "variant"] = "system",
    names: Sequence[str] = (),
    level: float = 0.95,
    seed: int = 0,
) -> tuple[SystemEffect, ...]:
    """Compare all pairs of systems (or variants).

    Each pair has a row with means and counts. `SystemEffect.reason` explains a missing estimate, interval, or verdict.

    Parameters
    ----------
    names
        All systems (or variants) of the study, including those without values. Default: those with values.
    """
    trials, coded_names = outcome.trials(by)
    codes = {name: code for code, name in enumerate(coded_names)}
    all_names = sorted({*coded_names, *names})
    pairs = list(combinations(all_names, 2)) if len(all_names) > 1 else [(all_names[0], "")]
    differences = trials.differences(level)
    estimates = {(coded_names[first], coded_names[second]): difference
                 for (first, second), difference in differences.items()}  # fmt: skip
    p_values = [_primary_p(estimates.get(pair)) for pair in pairs]
    # All pairs of an outcome are one family; pairs without a p-value are not counted.
    adjusted = dict(zip(pairs, adjust(p_values, "holm").tolist(), strict=True))
    fit = _fit_mixed_model(trials)
    rows = list[SystemEffect]()
    for pair in pairs:
        values = [trials.values[trials.system == codes.get(name)] for name in pair]
        means = tuple(float(array.mean()) if len(array) else math.nan for array in values)
        counts = tuple(len(array) for array in values)
        raw_columns = (outcome.name, outcome.better, *pair, (means[0], means[1]), (counts[0], counts[1]))
        if (estimate := estimates.get(pair)) is None:
            pair_codes = [codes.get(name) for name in pair]
            rows.append(SystemEffect(*raw_columns, *_without_estimate(trials, pair_codes, pair, counts)))
            continue
        first, second = codes[pair[0]], codes[pair[1]]
        inference, is_tested = _primary_inference(estimate), estimate.over_people.insufficient is None
        people_p = _permutation_p(estimate, trials, (first, second), seed) if is_tested else math.nan
        topics_p = _sign_flip_p(estimate, trials.topic, seed) if estimate.over_both.insufficient is None else math.nan
        mixed = _mixed_contrast(fit, first, second) if is_tested else (math.nan, math.nan)
        rows.append(SystemEffect(
            *raw_columns, estimate.estimate, estimate.design, estimate.people, estimate.topics,
            estimate.over_people.ci, inference.ci, inference.p, adjusted[pair], people_p, topics_p, *mixed,
            reason=_missing_reason(inference),
        ))  # fmt: skip
    return tuple(rows)


def _primary_p(effect: CrossedEffect | None) -> float:
    return math.nan if effect is None else _primary_inference(effect).p


def _missing_reason(inference: EffectInference) -> str:
    missing = inference.insufficient or inference.no_verdict
    unit = {"person": "participant"}.get(inference.unit, inference.unit)
    return missing.sentence(unit) if missing else ""


def _without_estimate(
    trials: TrialArrays, codes: Sequence[int | None], pair: tuple[str, str], counts: Sequence[int]
) -> tuple[Any, ...]:
    """Return the last columns of the row of a pair that the trials cannot compare."""
    empty = [name for name, count in zip(pair, counts, strict=True) if not count]
    used_codes = [code for code in codes if code is not None]
    if not pair[1]:
        reason = "Only one system has trials, so systems cannot be compared."
    elif empty:
        reason = f"No trial of {' and '.join(empty)} has a value of this outcome."
    elif confounders := trials.confounders(*used_codes):
        reason = (
            f"The systems were used with different {' and '.join(confounders)}, so the effects of systems and of"
            f" {' and '.join(confounders)} cannot be separated."
        )
    else:
        reason = "The effects of systems cannot be separated from those of participants, topics, and positions."
    is_used = np.isin(trials.system, used_codes)
    people, topics = (len(np.unique(levels[is_used])) for levels in (trials.person, trials.topic))
    no_interval, nan = (math.nan, math.nan), math.nan
    return nan, "", people, topics, no_interval, no_interval, nan, nan, nan, nan, nan, nan, reason


def learning_effects(
    outcome: Outcome, *, by: Literal["system", "variant"] = "system", level: float = 0.95
) -> tuple[LearningEffect, ...]:
    """Estimate the change from task to task: with all systems (or variants), with each, and differences of pairs."""
    trials, names = outcome.trials(by)
    if not np.ptp(trials.values):
        return ()
    rows = list[LearningEffect]()
    masks = {"": np.full(len(trials.values), True)}
    if len(names) > 1:
        masks |= {name: trials.system == code for code, name in enumerate(names)}
    for system, mask in masks.items():
        subset = _select_trials(trials, mask)
        if (effect := subset.learning(level)) is None:
            continue
        end_masks = (subset.position == subset.position.min(), subset.position == subset.position.max())
        ends = [float(subset.values[end_mask].mean()) for end_mask in end_masks]
        rows.append(_learning_row(outcome.name, system, "", effect, ends))
    for first, second in combinations(range(len(names)), 2):
        if (effect := trials.learning(level, (first, second))) is not None:
            rows.append(_learning_row(outcome.name, names[second], names[first], effect, [math.nan, math.nan]))
    return tuple(rows)


def _learning_row(name: str, system: str, minus: str, effect: CrossedEffect, ends: list[float]) -> LearningEffect:
    inference = effect.over_people
    p = math.nan if inference.no_verdict else inference.p
    return LearningEffect(name, system, effect.estimate, inference.ci, effect.people, ends[0], ends[1], minus, p)


def group_effects(
    outcome: Outcome,
    groups: Mapping[str, str],
    *,
    by: Literal["system", "variant"] = "system",
    level: float = 0.95,
) -> tuple[GroupEffect, ...]:
    """Compare groups of people, such as novices and experts, and estimate interactions with systems (or variants).

    Parameters
    ----------
    groups
        Group of each participant.
    """
    trials, names = outcome.trials(by)
    group_names, codes = np.unique([groups[trial.participant] for trial in outcome.values], return_inverse=True)
    rows = list[GroupEffect]()
    for group_pair in combinations(range(len(group_names)), 2):
        for pair in (None, *combinations(range(len(names)), 2)):
            if (effect := trials.group_effect(codes, group_pair, pair, level)) is None:
                continue
            inference = _primary_inference(effect)
            first, second = (str(group_names[code]) for code in group_pair)
            minus, system = ("", "") if pair is None else (names[pair[0]], names[pair[1]])
            p = math.nan if inference.no_verdict else inference.p
            rows.append(GroupEffect(
                outcome.name, first, second, system, minus, effect.estimate, inference.ci, p, effect.people,
                _missing_reason(inference),
            ))  # fmt: skip
    adjusted = adjust([row.p for row in rows], "holm").tolist()
    return tuple(row._replace(p=p) for row, p in zip(rows, adjusted, strict=True))


def variance_components(outcome: Outcome, *, by: Literal["system", "variant"] = "system") -> VarianceComponents | None:
    """Estimate the standard deviations of an outcome; None if no mixed model can be fitted."""
    trials, _ = outcome.trials(by)
    # The variances are in the order of the factors in `_fit_mixed_model`.
    if (fit := _fit_mixed_model(trials)) is None:
        return None
    people, topics, topics_by_system, *optional = np.sqrt(fit.variances).tolist()
    people_by_system = optional[0] if optional else math.nan
    return VarianceComponents(outcome.name, people, topics, people_by_system, topics_by_system, math.sqrt(fit.residual))


def _select_trials(trials: TrialArrays, mask: Bools) -> TrialArrays:
    """Select trials, and renumber codes so that none is unused."""
    arrays = trials.system, trials.person, trials.topic
    system, person, topic = (np.unique(codes[mask], return_inverse=True)[1] for codes in arrays)
    return TrialArrays(trials.values[mask], system, person, topic, trials.position[mask])


def _primary_inference(effect: CrossedEffect) -> EffectInference:
    """Return the inference for other people and topics; for other people if there is at most one topic."""
    return effect.over_people if effect.topics < 2 else effect.over_both


def _sign_flip_p(effect: CrossedEffect, codes: Ints, seed: int) -> float:
    """Compute the p-value of flipping the signs of what each person, or topic, adds to the difference."""
    # Under the null hypothesis, the sign of a share is random. A share of 0 has no sign.
    shares = (effect.weights * effect.residuals) @ dummies(codes)
    nonzero = shares[np.abs(shares) > _ROUNDING]
    is_enough = len(nonzero) >= _MIN_PERMUTED_UNITS
    return paired_test(np.zeros(len(nonzero)), nonzero, seed=seed).p if is_enough else math.nan


def _permutation_p(effect: CrossedEffect, trials: TrialArrays, pair: tuple[int, int], seed: int) -> float:
    """Compute the p-value of exchanging systems within people or, in a between-subjects study, between people."""
    if effect.design == "within":
        return _sign_flip_p(effect, trials.person, seed)
    _, first_trials = np.unique(trials.person, return_index=True)
    systems = trials.system[first_trials]  # of each person
    # Each person counts once, however many trials the person did.
    means = np.bincount(trials.person, effect.residuals) / np.bincount(trials.person)
    means, is_second = means[np.isin(systems, pair)], systems[np.isin(systems, pair)] == pair[1]
    if len(means) < _MIN_PERMUTED_UNITS:
        return math.nan
    permuted = np.random.default_rng(seed).permuted(np.tile(is_second, (_PERMUTATIONS, 1)), axis=1)
    expected = is_second.sum() * means.mean()
    observed = abs(float(is_second @ means - expected))
    extreme = np.abs(permuted @ means - expected) >= observed * (1 - _ROUNDING)
    # The observed assignment counts as one of the permutations, so p is never 0.
    return float(extreme.sum() + 1) / (_PERMUTATIONS + 1)


def _fit_mixed_model(trials: TrialArrays) -> MixedFit | None:
    """Fit random effects of people, topics, and their interactions with systems; None if they are not identified."""
    systems, people, topics = (int(codes.max()) + 1 for codes in (trials.system, trials.person, trials.topic))
    if not np.ptp(trials.values) or systems < 2 or topics < 3 or (systems + 1) * (people + topics) > MAX_LEVELS:
        return None
    by_person, by_topic = (codes * systems + trials.system for codes in (trials.person, trials.topic))
    pairs = [len(np.unique(codes)) for codes in (by_person, by_topic)]
    if len(trials.values) <= sum(pairs) - systems:  # no degrees of freedom for the residual
        return None
    fixed = np.hstack([dummies(trials.system), trials.position[:, None] - trials.position.mean()])
    # If all trials have one position, its column is 0 and is dropped.
    fixed = fixed[:, : np.linalg.matrix_rank(fixed)]
    # If each person used one system, the person-by-system factor equals the person factor.
    optional = (by_person,) * (pairs[0] > people)
    fit = mixed_model(trials.values, fixed, (trials.person, trials.topic, by_topic, *optional))
    return fit if fit.residual > _MIN_RESIDUAL_SHARE * float(trials.values.var()) else None


def _mixed_contrast(fit: MixedFit | None, first: int, second: int) -> tuple[float, float]:
    if fit is None:
        return math.nan, math.nan
    contrast = np.zeros(len(fit.effects))
    # Second less first, as in `SystemEffect.difference`.
    contrast[[first, second]] = -1.0, 1.0
    return float(contrast @ fit.effects), float(np.sqrt(contrast @ fit.covariance @ contrast))
