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
    """How values of trials come about."""

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
    """Draw a study whose systems are equal, and return the difference with its topics."""
    topics, tasks = world.topics, max(world.topics, 2)
    person = np.repeat(np.arange(people), tasks)
    topic = np.argsort(rng.random((people, tasks)), axis=1).ravel() % topics
    position = np.tile(np.arange(tasks), people)
    turned = person % 2 if world.topics == 1 else (topic + person) % 2
    system = person % 2 if world.between else (position + person) % 2 if world.topics == 1 else turned
    favored, liked = world.by_topic * rng.normal(size=topics), world.by_person * rng.normal(size=people)
    values = rng.normal(size=people)[person] + rng.normal(size=topics)[topic]
    values += (favored[topic] + liked[person]) * (system - 0.5)
    values += rng.normal(size=len(person)) if world.kind != "minutes" else np.exp(rng.normal(size=len(person)))
    if world.kind == "ratings":
        values = np.clip(np.round(3.0 + (values + 3.0) / 1.2), 1.0, 5.0)
    return TrialArrays(values, system, person, topic, position), float(favored.mean())


def effects(world: World, people: int, trials: int) -> dict[str, float]:
    """Return coverage and errors of effects and learning."""
    rng, found, learned = np.random.default_rng([61, people]), list[tuple[float, ...]](), list[bool]()
    for _ in range(trials):
        drawn, truth = trials_of(rng, world, people)
        if not np.ptp(drawn.values) or not (effect := drawn.differences().get((0, 1))):
            found.append((np.nan,) * 3)
            continue
        spread = effect.over_people if effect.topics < 2 else effect.over_both
        verdict = np.nan if spread.no_verdict or spread.insufficient else float(spread.p <= 0.05)
        with_topics = np.nan if world.kind == "ratings" else _holds(effect.over_people, truth)
        found.append((_holds(spread, 0.0), with_topics, verdict))
        if world in LEARNING and (one := drawn.learning()) and not one.over_people.insufficient:
            learned.append(one.over_people.ci[0] <= 0 <= one.over_people.ci[1])
    table = np.array(found)
    none = float(np.isnan(table[:, 2]).mean())
    rates = [np.nan if np.isnan(row).mean() > 0.9 else float(np.nanmean(row)) for row in table.T]
    learning = float(np.mean(learned)) if len(learned) > trials / 10 else np.nan
    return dict(zip(("both", "people", "verdict", "learning", "none"), (*rates, learning, none), strict=True))


def _holds(spread: EffectInference, truth: float) -> float:
    return np.nan if spread.insufficient else float(spread.ci[0] <= truth <= spread.ci[1])


def correlation(people: int, trials: int, *, kind: str) -> dict[str, float]:
    """Return coverage of the correlation of a measure with an outcome, over trials and within people."""
    rng, held = np.random.default_rng([62, people]), {"correlation": list[bool](), "within": list[bool]()}
    score, liked = _scored(np.random.default_rng(7), 40_000, kind)
    of_people = [values - values.mean(axis=1, keepdims=True) for values in (score, liked)]
    truths = [float(np.corrcoef(one.ravel(), other.ravel())[0, 1]) for one, other in ((score, liked), of_people)]
    keys = [(str(person), place + 1) for person in range(people) for place in range(8)]
    for _ in range(trials):
        score, liked = _scored(rng, people, kind)
        values = tuple(
            TrialValue(*key, "", "", "", value) for key, value in zip(keys, liked.ravel().tolist(), strict=True)
        )
        known = dict(zip(keys, score.ravel().tolist(), strict=True))
        made = measure_agreement(Outcome("o", "more", values), known, "nDCG")
        ends = made.ci, made.within_ci
        for name, interval, truth in zip(held, ends, truths, strict=True):
            if interval is not None:
                held[name].append(interval[0] <= truth <= interval[1])
    return {name: float(np.mean(of)) if len(of) > trials / 10 else np.nan for name, of in held.items()}


def _scored(rng: np.random.Generator, people: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Draw scores of lists, and what people said of them: (people, 8) each."""
    score = rng.beta(0.6, 0.4, (people, 8)) if kind == "ratings" else rng.beta(2, 2, (people, 8))
    noise = rng.standard_t(3, (people, 8)) if kind == "heavy tails" else rng.normal(size=(people, 8))
    liked = 2.0 * score + rng.normal(size=(people, 1)) + noise
    return score, np.clip(np.round(3.0 + liked), 1.0, 5.0) if kind == "ratings" else liked


def preference(people: int, trials: int, *, leaning: float) -> dict[str, float]:
    """Return how often equal systems, or sides, are found to be preferred, and coverage of three equal strengths."""
    rng = np.random.default_rng([63, people])
    wrong: dict[str, list[float]] = {"preference": [], "sides": [], "strength": []}
    for _ in range(trials):
        pairs = np.minimum(np.ceil(rng.pareto(1.2, people) + 1e-9), 20).astype(np.int64)
        owner = np.repeat(np.arange(people), pairs)
        lean = leaning * rng.normal(size=(people, 3))
        for systems in (2, 3):
            both = np.array([rng.permutation(systems)[:2] for _ in owner])
            gaps = lean[owner, both[:, 0]] - lean[owner, both[:, 1]] + rng.logistic(size=len(owner))
            chosen = np.where(np.abs(gaps) < 0.3, "", np.where(gaps > 0, "l", "r"))
            rows = [
                {"participant": str(who), "left": f"s{left}", "right": f"s{right}",
                 "preferred": {"": "", "l": f"s{left}", "r": f"s{right}"}[side]}
                for who, (left, right), side in zip(owner.tolist(), both.tolist(), chosen.tolist(), strict=True)
            ]  # fmt: skip
            records = cast("Any", {"preferences": pa.Table.from_pylist(rows)})
            if systems == 3:
                wrong["strength"] += [one.ci[0] <= 0 <= one.ci[1] for one in preference_strengths(records) if one.ci]
                continue
            with patch.object(preferences, "paired_test", partial(paired_test, resamples=_RESAMPLES)):
                (one,), side = pair_preferences(records), side_bias(records)
            wrong["preference"] += [one.p <= 0.05] if not np.isnan(one.p) else []
            wrong["sides"] += [side.preferred] if side else []
    return {name: float(np.mean(of)) if len(of) > trials / 10 else np.nan for name, of in wrong.items()}


def measure(trials: int) -> Iterator[CoverageCell]:
    """Measure effects, correlations and preferences."""
    for people in SIZES:
        cells = {name: effects(world, people, trials) for name, world in WORLDS.items()}
        for kind in ("normal", "heavy tails", "ratings"):
            cells[kind] |= correlation(people, trials, kind=kind)
        cells["people lean a little"] = preference(people, trials, leaning=0.3)
        cells["people lean far"] = preference(people, trials, leaning=3.0)
        for name, rates in cells.items():
            for method, rate in rates.items():
                if not np.isnan(rate):
                    yield CoverageCell(method, name, people, rate, trials)
