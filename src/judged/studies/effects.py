"""What systems did to each outcome, with people and topics as samples of others; and what practice did."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from judged.stats.correction import adjust
from judged.stats.paired import paired_test
from judged.studies.crossed import MOST, Trials, dummies, mixed_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.results.types import Bools, Ints
    from judged.studies.crossed import CrossedEffect, MixedFit, Spread
    from judged.studies.outcomes import Outcome

_LEAST = 6  # people, or topics, from which permutations can say anything at 5 %
_PERMUTATIONS = 9_999
_NONE = 1e-9
_REST = 1e-5  # of the variance: where a mixed model leaves less, the variances that it finds are no maximum


class Effect(NamedTuple):
    """The difference of two systems (or interface variants) in one outcome, the second less the first.

    Parameters
    ----------
    means, counts
        Mean of the values as they are, and number of trials, of each system.
    difference
        Least-squares estimate with people, topics, and positions in the model; NaN where the trials cannot tell the
        two systems apart.
    people_ci
        For other people with these topics.
    ci, p
        For other people and other topics; where the outcome has one topic at most (a questionnaire about a system as
        a whole), for other people.
    adjusted
        `p` corrected for all pairs of the outcome (Holm).
    people_p, topics_p
        Permutation tests that flip the signs of what people, or topics, add. `people_p` is for other people with these
        topics, `topics_p` for other topics with these people. Neither is a p-value for other people and other topics:
        where topics favor systems, `people_p` rejects in a third to two thirds of studies without a difference.
    mixed, mixed_error
        Estimate and standard error by a mixed model.
    reason
        Why there is no estimate, no interval, or no verdict; empty where there are all. NaN for each missing value.
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
        """Whether there is enough data to call one of the two better, or to call the difference undecided."""
        return not math.isnan(self.adjusted) and not self.reason


class Practice(NamedTuple):
    """How an outcome changes from one task to the next, with all systems and with each of them."""

    outcome: str
    system: str
    change: float
    ci: tuple[float, float]
    people: int
    first: float
    last: float


class Parts(NamedTuple):
    """Standard deviations of an outcome's parts, by a mixed model.

    ``people_by_system`` is NaN where each person used one system: then it is in ``people``.
    """

    outcome: str
    by_person: float
    by_topic: float
    people_by_system: float
    topics_by_system: float
    trials: float


def effects(
    outcome: Outcome,
    *,
    by: Literal["system", "variant"] = "system",
    names: Sequence[str] = (),
    level: float = 0.95,
    seed: int = 0,
) -> tuple[Effect, ...]:
    """Compare all pairs of systems (or variants).

    Every pair has a row with its means and counts; where an estimate, interval, or verdict is missing, `Effect.reason`
    says why.

    Parameters
    ----------
    names
        All systems (or variants) of the study, also those without a value; None of them: those with values.
    """
    trials, own = outcome.trials(by)
    codes = {name: code for code, name in enumerate(own)}
    every = sorted({*own, *names})
    pairs = list(combinations(every, 2)) if len(every) > 1 else [(every[0], "")]
    estimates = {(own[one], own[other]): found for (one, other), found in trials.differences(level).items()}
    adjusted = dict(zip(pairs, adjust([_p(estimates.get(pair)) for pair in pairs], "holm").tolist(), strict=True))
    fit = _mixed(trials)
    rows = list[Effect]()
    for pair in pairs:
        values = [trials.values[trials.system == codes.get(name)] for name in pair]
        means, counts = [float(one.mean()) if len(one) else math.nan for one in values], [len(one) for one in values]
        shown = (outcome.name, outcome.better, *pair, (means[0], means[1]), (counts[0], counts[1]))
        if (one := estimates.get(pair)) is None:
            rows.append(Effect(*shown, *_without_estimate(trials, [codes.get(name) for name in pair], pair, counts)))
            continue
        first, second = codes[pair[0]], codes[pair[1]]
        spread, tested = _decisive(one), one.over_people.insufficient is None
        rows.append(
            Effect(
                *shown,
                one.estimate,
                one.design,
                one.people,
                one.topics,
                one.over_people.ci,
                spread.ci,
                spread.p,
                adjusted[pair],
                _permuted(one, trials, (first, second), seed) if tested else math.nan,
                _flipped(one, trials.topic, seed) if one.over_both.insufficient is None else math.nan,
                *(_contrast(fit, first, second) if tested else (math.nan, math.nan)),
                reason=_reason(spread),
            )
        )
    return tuple(rows)


def _p(effect: CrossedEffect | None) -> float:
    return math.nan if effect is None else _decisive(effect).p


def _reason(spread: Spread) -> str:
    """Return why there is no interval, or no verdict; empty where there are both."""
    lacking = spread.insufficient or spread.no_verdict
    unit = {"person": "participant"}.get(spread.unit, spread.unit)
    return lacking.sentence(unit) if lacking else ""


def _without_estimate(
    trials: Trials, codes: Sequence[int | None], pair: tuple[str, str], counts: Sequence[int]
) -> tuple[Any, ...]:
    """Return what a row shows, after means and counts, of a pair that the trials cannot compare."""
    empty = [name for name, count in zip(pair, counts, strict=True) if not count]
    known = [code for code in codes if code is not None]
    if not pair[1]:
        reason = "Only one system has trials: there is nothing to compare it with."
    elif empty:
        reason = f"No trial of {' and '.join(empty)} has a value."
    elif confounders := trials.confounders(*known):
        reason = f"Each system was used with other {' and '.join(confounders)}: the two effects cannot be separated."
    else:
        reason = "The trials cannot separate the systems from people, topics, and positions."
    chosen = np.isin(trials.system, known)
    people, topics = (len(np.unique(own[chosen])) for own in (trials.person, trials.topic))
    no_interval, nan = (math.nan, math.nan), math.nan
    return nan, "", people, topics, no_interval, no_interval, nan, nan, nan, nan, nan, nan, reason


def practice(outcome: Outcome, *, level: float = 0.95) -> tuple[Practice, ...]:
    """Say how the outcome changes from task to task: with all systems together, and with each of them."""
    trials, names = outcome.trials()
    if not np.ptp(trials.values):
        return ()
    found = list[Practice]()
    kinds = {"": np.full(len(trials.values), True)}
    if len(names) > 1:
        kinds |= {name: trials.system == code for code, name in enumerate(names)}
    for system, kept in kinds.items():
        some = _some(trials, kept)
        if (one := some.learning(level)) is None:
            continue
        ends = (some.position == some.position.min(), some.position == some.position.max())
        first, last = (float(some.values[at].mean()) for at in ends)
        found.append(Practice(outcome.name, system, one.estimate, one.over_people.ci, one.people, first, last))
    return tuple(found)


def parts(outcome: Outcome, *, by: Literal["system", "variant"] = "system") -> Parts | None:
    """Part the variance of an outcome; None where a mixed model cannot be fitted."""
    trials, _ = outcome.trials(by)
    if (fit := _mixed(trials)) is None:
        return None
    people, topics, topics_by_system, *people_by_system = np.sqrt(fit.variances).tolist()
    mixed = people_by_system[0] if people_by_system else math.nan
    return Parts(outcome.name, people, topics, mixed, topics_by_system, math.sqrt(fit.residual))


def _some(trials: Trials, kept: Bools) -> Trials:
    """Keep some trials, with codes that leave none out."""
    system, person, topic = (
        np.unique(codes[kept], return_inverse=True)[1] for codes in (trials.system, trials.person, trials.topic)
    )
    return Trials(trials.values[kept], system, person, topic, trials.position[kept])


def _decisive(one: CrossedEffect) -> Spread:
    """Return the inference for other people and other topics; with one topic at most, that for other people."""
    return one.over_people if one.topics < 2 else one.over_both


def _flipped(one: CrossedEffect, codes: Ints, seed: int) -> float:
    """Test by the signs of what each person, or topic, adds to the difference if there is none."""
    shares = (one.weights * one.residuals) @ dummies(codes)
    used = shares[np.abs(shares) > _NONE]
    return paired_test(np.zeros(len(used)), used, seed=seed).p if len(used) >= _LEAST else math.nan


def _permuted(one: CrossedEffect, trials: Trials, pair: tuple[int, int], seed: int) -> float:
    """Give the p-value of people: systems exchanged within each, or, where each had one, between them."""
    if one.design == "within":
        return _flipped(one, trials.person, seed)
    of = np.array([trials.system[np.argmax(trials.person == person)] for person in range(int(trials.person.max()) + 1)])
    means = np.bincount(trials.person, one.residuals) / np.bincount(trials.person)
    means, second = means[np.isin(of, pair)], of[np.isin(of, pair)] == pair[1]
    if len(means) < _LEAST:
        return math.nan
    drawn = np.random.default_rng(seed).permuted(np.tile(second, (_PERMUTATIONS, 1)), axis=1)
    away = np.abs(drawn @ means - second.sum() * means.mean())
    seen = abs(float(second @ means - second.sum() * means.mean()))
    return float((away >= seen * (1 - _NONE)).sum() + 1) / (_PERMUTATIONS + 1)


def _mixed(trials: Trials) -> MixedFit | None:
    """Fit people, topics and what systems are to each of them as random; None where that asks too much."""
    systems, people, topics = (int(codes.max()) + 1 for codes in (trials.system, trials.person, trials.topic))
    if not np.ptp(trials.values) or systems < 2 or topics < 3 or (systems + 1) * (people + topics) > MOST:
        return None
    by_person, by_topic = (codes * systems + trials.system for codes in (trials.person, trials.topic))
    pairs = [len(np.unique(codes)) for codes in (by_person, by_topic)]
    if len(trials.values) <= sum(pairs) - systems:  # nothing is left to tell single trials by
        return None
    fixed = np.hstack([dummies(trials.system), trials.position[:, None] - trials.position.mean()])
    fixed = fixed[:, : np.linalg.matrix_rank(fixed)]
    own = (by_person,) * (pairs[0] > people)  # where each person used one system they are the same
    fit = mixed_model(trials.values, fixed, (trials.person, trials.topic, by_topic, *own))
    return fit if fit.residual > _REST * float(trials.values.var()) else None


def _contrast(fit: MixedFit | None, first: int, second: int) -> tuple[float, float]:
    if fit is None:
        return math.nan, math.nan
    contrast = np.zeros(len(fit.effects))
    contrast[[first, second]] = -1.0, 1.0
    return float(contrast @ fit.effects), float(np.sqrt(contrast @ fit.covariance @ contrast))
