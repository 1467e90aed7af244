"""What systems did to each outcome, with people and topics as samples of others; and what practice did."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from judged.stats.correction import adjust
from judged.stats.crossed import Trials, dummies
from judged.stats.mixed_model import MOST, mixed_model
from judged.stats.paired import paired_test

if TYPE_CHECKING:
    from judged._types import Bools, Ints
    from judged.stats.crossed import CrossedEffect, Spread
    from judged.stats.mixed_model import MixedFit
    from judged.studies.outcomes import Outcome

_LEAST = 6  # people, or topics, from which permutations can say anything at 5 %
_PERMUTATIONS = 9_999
_NONE = 1e-9
_REST = 1e-5  # of the variance: where a mixed model leaves less, the variances that it finds are no maximum


class Effect(NamedTuple):
    """The difference of two systems (or interface variants) in one outcome, the second less the first.

    ``means``: of the values as they are. ``people_ci``: for other people with these topics; ``ci`` and ``p``: for other
    people and other topics; ``adjusted``: p corrected for all pairs of the outcome (Holm). ``people_p``, ``topics_p``:
    of permutations, the signs of what people, or topics, add. ``mixed``, ``mixed_error``: by a mixed model. NaN where
    something cannot be told.
    """

    outcome: str
    better: str
    first: str
    second: str
    means: tuple[float, float]
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
    outcome: Outcome, *, by: Literal["system", "variant"] = "system", level: float = 0.95, seed: int = 0
) -> tuple[Effect, ...]:
    """Compare all pairs of systems (or variants); pairs that the trials cannot compare are left out.

    Of an outcome that is the same in all trials nothing is said.
    """
    trials, names = outcome.trials(by)
    if not np.ptp(trials.values):
        return ()
    found = trials.differences(level)
    fit = _mixed(trials)
    corrected = adjust([_decisive(one).p for one in found.values()], "holm") if found else ()
    return tuple(
        Effect(
            outcome.name,
            outcome.better,
            names[first],
            names[second],
            tuple(float(trials.values[trials.system == code].mean()) for code in (first, second)),  # type: ignore[arg-type]
            one.estimate,
            one.design,
            one.people,
            one.topics,
            one.over_people.ci,
            one.over_both.ci,
            _decisive(one).p,
            float(adjusted),
            _permuted(one, trials, (first, second), seed),
            _flipped(one, trials.topic, seed),
            *_contrast(fit, first, second),
        )
        for ((first, second), one), adjusted in zip(found.items(), corrected, strict=True)
    )


def practice(outcome: Outcome, *, level: float = 0.95) -> tuple[Practice, ...]:
    """Say how the outcome changes from task to task: with all systems together, and with each of them."""
    trials, names = outcome.trials()
    if not np.ptp(trials.values):
        return ()
    found = list[Practice]()
    for system, kept in (
        ("", np.full(len(trials.values), True)),
        *((n, trials.system == c) for c, n in enumerate(names)),
    ):
        if len(np.unique(trials.position[kept])) < 2 or (system and len(names) == 1):
            continue
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
    """Give what counts: other people and other topics; where there are no topics to speak of, other people."""
    return one.over_people if math.isnan(one.over_both.p) else one.over_both


def _flipped(one: CrossedEffect, codes: Ints, seed: int) -> float:
    """Test by the signs of what each person, or topic, adds to the difference if there is none."""
    shares = (one.weights * one.residuals) @ dummies(codes)
    used = shares[np.abs(shares) > _NONE]
    return paired_test(np.zeros(len(used)), used * len(used), seed=seed).p if len(used) >= _LEAST else math.nan


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
