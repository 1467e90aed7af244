"""Coverage, and error rates at alpha = 0.05, of statistics of user studies with n people.

People use two systems on 8 or 16 topics, each topic with one of them. *Both*: coverage of intervals for other people
and other topics; *people*: for other people with these topics. *Verdict*: false positive rate of the comparison.
*Learning*: coverage for the change from task to task. *Correlation* (and *within* people): coverage for a measure with
an outcome. *Preference*: false positive rate for a preferred system, with 1 to 20 pairs a person (Pareto 1.2); *sides*:
for the left side. *Strength*: coverage for three systems. *None*: share of studies without a verdict.

Standard deviations of people, topics, and trials are 1. *Topics favor systems*, *people favor systems*: the system
difference has a standard deviation of 1 over topics, or people. *Heavy tails*: log-normal minutes. *Ratings*: 1 to 5,
three of four are 5. *Each person one system*: half of the people use each. *One topic*: one questionnaire per system.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from calibration import CoverageCell
from judged.stats.paired import paired_test
from judged.studies import preference as preferences
from judged.studies.crossed import TrialArrays
from judged.studies.outcomes import Outcome, TrialValue, measure_agreement
from judged.studies.preference import pair_preferences, preference_strengths, side_bias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.studies.crossed import EffectInference

SIZES = (6, 12, 24)
_RESAMPLES = 2000


class World(NamedTuple):
    """Distribution of the values of trials."""

    topics: int = 8
    by_topic: float = 0.0  # standard deviation of a difference of the systems over topics
    by_person: float = 0.0
    kind: str = "normal"  # or minutes, ratings
    between: bool = False


WORLDS = {
    "normal": World(),
    "topics favor systems": World(by_topic=1.0),
    "topics favor systems, 16 topics": World(topics=16, by_topic=1.0),
    "people favor systems": World(by_person=1.0),
    "heavy tails": World(kind="minutes"),
    "ratings": World(kind="ratings", by_topic=0.5),
    "each person one system": World(between=True),
    "one topic": World(topics=1),
}
LEARNING = [WORLDS[name] for name in ("normal", "heavy tails", "ratings")]


def trials_of(rng: np.random.Generator, world: World, people: int) -> tuple[TrialArrays, float]:
    """Sample a study with equal systems, and return it with the mean difference over its topics."""
    topics, tasks = world.topics, max(world.topics, 2)
    person = np.repeat(np.arange(people), tasks)
    topic = np.argsort(rng.random((people, tasks)), axis=1).ravel() % topics
    position = np.tile(np.arange(tasks), people)
    alternating = person % 2 if world.topics == 1 else (topic + person) % 2
    system = person % 2 if world.between else (position + person) % 2 if world.topics == 1 else alternating
    topic_effects, person_effects = world.by_topic * rng.normal(size=topics), world.by_person * rng.normal(size=people)
    values = rng.normal(size=people)[person] + rng.normal(size=topics)[topic]
    values += (topic_effects[topic] + person_effects[person]) * (system - 0.5)
    values += rng.normal(size=len(person)) if world.kind != "minutes" else np.exp(rng.normal(size=len(person)))
    if world.kind == "ratings":
        values = np.clip(np.round(3.0 + (values + 3.0) / 1.2), 1.0, 5.0)
    return TrialArrays(values, system, person, topic, position), float(topic_effects.mean())


def effects(world: World, people: int, trials: int) -> dict[str, float]:
    """Return coverage and error rates of effects and learning."""
    rng, trial_rates, learning_covered = np.random.default_rng([61, people]), list[tuple[float, ...]](), list[bool]()
    for _ in range(trials):
        study, truth = trials_of(rng, world, people)
        if not np.ptp(study.values) or not (effect := study.differences().get((0, 1))):
            trial_rates.append((np.nan,) * 3)
            continue
        inference = effect.over_people if effect.topics < 2 else effect.over_both
        verdict = np.nan if inference.no_verdict or inference.insufficient else float(inference.p <= 0.05)
        with_topics = np.nan if world.kind == "ratings" else _holds(effect.over_people, truth)
        trial_rates.append((_holds(inference, 0.0), with_topics, verdict))
        if world in LEARNING and (change := study.learning()) and not change.over_people.insufficient:
            learning_covered.append(change.over_people.ci[0] <= 0 <= change.over_people.ci[1])
    table = np.array(trial_rates)
    no_verdict = float(np.isnan(table[:, 2]).mean())
    rates = [np.nan if np.isnan(row).mean() > 0.9 else float(np.nanmean(row)) for row in table.T]
    learning = float(np.mean(learning_covered)) if len(learning_covered) > trials / 10 else np.nan
    return dict(zip(("both", "people", "verdict", "learning", "none"), (*rates, learning, no_verdict), strict=True))


def _holds(inference: EffectInference, truth: float) -> float:
    return np.nan if inference.insufficient else float(inference.ci[0] <= truth <= inference.ci[1])


def correlation(people: int, trials: int, *, kind: str) -> dict[str, float]:
    """Return coverage of the correlation of a measure with an outcome, over trials and within people."""
    rng, coverage = np.random.default_rng([62, people]), {"correlation": list[bool](), "within": list[bool]()}
    score, outcome = _scored(np.random.default_rng(7), 40_000, kind)
    within_people = [values - values.mean(axis=1, keepdims=True) for values in (score, outcome)]
    true_correlations = [
        float(np.corrcoef(scores.ravel(), outcomes.ravel())[0, 1])
        for scores, outcomes in ((score, outcome), within_people)
    ]
    keys = [(str(person), position + 1) for person in range(people) for position in range(8)]
    for _ in range(trials):
        score, outcome = _scored(rng, people, kind)
        outcome_values = tuple(
            TrialValue(*key, "", "", "", value) for key, value in zip(keys, outcome.ravel().tolist(), strict=True)
        )
        scores = dict(zip(keys, score.ravel().tolist(), strict=True))
        agreement = measure_agreement(Outcome("o", "more", outcome_values), scores, "nDCG")
        intervals = agreement.ci, agreement.within_ci
        for name, interval, truth in zip(coverage, intervals, true_correlations, strict=True):
            if interval is not None:
                coverage[name].append(interval[0] <= truth <= interval[1])
    return {name: float(np.mean(flags)) if len(flags) > trials / 10 else np.nan for name, flags in coverage.items()}


def _scored(rng: np.random.Generator, people: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Draw scores of lists and outcomes of trials, each of shape (people, 8)."""
    score = rng.beta(0.6, 0.4, (people, 8)) if kind == "ratings" else rng.beta(2, 2, (people, 8))
    noise = rng.standard_t(3, (people, 8)) if kind == "heavy tails" else rng.normal(size=(people, 8))
    outcome = 2.0 * score + rng.normal(size=(people, 1)) + noise
    return score, np.clip(np.round(3.0 + outcome), 1.0, 5.0) if kind == "ratings" else outcome


def preference(people: int, trials: int, *, spread: float) -> dict[str, float]:
    """Return false positive rates of preferences for systems and sides, and coverage of three equal strengths."""
    rng = np.random.default_rng([63, people])
    outcomes: dict[str, list[float]] = {"preference": [], "sides": [], "strength": []}
    for _ in range(trials):
        pairs = np.minimum(np.ceil(rng.pareto(1.2, people) + 1e-9), 20).astype(np.int64)
        owner = np.repeat(np.arange(people), pairs)
        utilities = spread * rng.normal(size=(people, 3))
        for systems in (2, 3):
            compared = np.array([rng.permutation(systems)[:2] for _ in owner])
            gaps = utilities[owner, compared[:, 0]] - utilities[owner, compared[:, 1]] + rng.logistic(size=len(owner))
            preferred = np.where(np.abs(gaps) < 0.3, "", np.where(gaps > 0, "l", "r"))
            rows = [
                {"participant": str(participant), "left": f"s{left}", "right": f"s{right}",
                 "preferred": {"": "", "l": f"s{left}", "r": f"s{right}"}[side]}
                for participant, (left, right), side in zip(
                    owner.tolist(), compared.tolist(), preferred.tolist(), strict=True
                )
            ]  # fmt: skip
            records = cast("Any", {"preferences": pa.Table.from_pylist(rows)})
            if systems == 3:
                outcomes["strength"] += [
                    strength.ci[0] <= 0 <= strength.ci[1] for strength in preference_strengths(records) if strength.ci
                ]
                continue
            with patch.object(preferences, "paired_test", partial(paired_test, resamples=_RESAMPLES)):
                (comparison,), side = pair_preferences(records), side_bias(records)
            outcomes["preference"] += [comparison.p <= 0.05] if not np.isnan(comparison.p) else []
            outcomes["sides"] += [side.preferred] if side else []
    return {name: float(np.mean(values)) if len(values) > trials / 10 else np.nan for name, values in outcomes.items()}


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield rates of effects, correlations, and preferences."""
    for people in SIZES:
        cells = {name: effects(world, people, trials) for name, world in WORLDS.items()}
        for kind in ("normal", "heavy tails", "ratings"):
            cells[kind] |= correlation(people, trials, kind=kind)
        cells["weak personal preferences"] = preference(people, trials, spread=0.3)
        cells["strong personal preferences"] = preference(people, trials, spread=3.0)
        for name, rates in cells.items():
            for method, rate in rates.items():
                if not np.isnan(rate):
                    yield CoverageCell(method, name, people, rate, trials)
