"""Error rates of conclusions from experiments over n topics.

Experiments have all 8 combinations of three factors with two levels. *Effects*, *interactions*: any is significant
(Holm), although all configurations are equal. *Interval*: coverage for effects, if one factor adds 0.3 standard
deviations. *Not the best*: the best configuration is not among those that may be best. *Dominated*: any configuration
is called dominated, although scores and costs are equal. 5% is the maximum of each error.

Scores are a topic effect and noise: normal, or t with 3 degrees of freedom (*heavy tails*). *Many ties*: RR of a
relevant document at a random rank that one configuration in five changes. *Skewed*: exponential with stemming.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np

from calibration import CoverageCell
from judged.comparison import Choices
from judged.pipelines.experiments import effects as factors
from judged.scoring.evaluation import evaluate
from judged.stats.selection import may_be_best

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.pipelines.experiments.effects import FactorEffects

SIZES = (6, 12, 50)
LEVELS = [
    {"stemmer": stemmer, "stop": stop, "k1": k1}
    for stemmer, stop, k1 in product(("none", "porter"), (False, True), (0.9, 1.2))
]
WORLDS = ("normal", "heavy tails", "many ties", "skewed")
CHOICES = Choices("randomization", resamples=999)
EFFECT = 0.3
_STEMMED = np.array([level["stemmer"] == "porter" for level in LEVELS])


def scores(rng: np.random.Generator, world: str, topics: int) -> np.ndarray:
    """Sample scores of shape (configurations, topics) with equal means and noise of standard deviation 1."""
    size = len(LEVELS), topics
    if world == "heavy tails":
        return rng.normal(size=topics) + rng.standard_t(3, size) / np.sqrt(3)
    if world == "many ties":
        ranks, other = rng.integers(1, 11, topics), rng.integers(1, 11, size)
        return 5.0 / np.where(rng.random(size) < 0.2, other, ranks)
    noise = rng.normal(size=size)
    if world == "skewed":
        noise[_STEMMED] = rng.exponential(size=(_STEMMED.sum(), topics)) - 1.0
    return rng.normal(size=topics) + noise


def effects(world: str, topics: int, trials: int) -> dict[str, float]:
    """Return the error rate of families of effects, and the coverage of their intervals."""
    rng, num_significant, covered = np.random.default_rng([51, topics]), np.zeros(2), list[bool]()
    for _ in range(trials):
        values = scores(rng, world, topics)
        null = _effects(values)
        num_significant += [
            any(_is_significant(effect) for effect in family) for family in (null.main, null.interactions)
        ]
        shifted = _effects(values + EFFECT * _STEMMED[:, None])
        for effect in (*shifted.main, *shifted.interactions):
            if effect.estimate and effect.estimate.interval:
                truth = EFFECT * (effect.factors == ("stemmer",))
                low, high = effect.estimate.interval
                covered.append(low <= truth + 1e-9 and high >= truth - 1e-9)
    rates = dict(zip(("effects", "interactions"), (num_significant / trials).tolist(), strict=True))
    return rates | {"interval": float(np.mean(covered)) if covered else np.nan}


def _is_significant(effect: factors.Effect) -> bool:
    return bool(effect.estimate and effect.estimate.significant)


def _effects(values: np.ndarray) -> FactorEffects:
    # The smallest detectable effect takes most of the time and is not needed here.
    with patch.object(factors, "detectable", lambda *_, **__: np.nan):
        return factors.factor_effects(values, LEVELS, 0, CHOICES)


def best(world: str, topics: int, trials: int) -> dict[str, float]:
    """Return how often the first configuration may not be the best, if all are equal and if it is better."""
    rng, num_missed = np.random.default_rng([52, topics]), np.zeros(2)
    for _ in range(trials):
        values = scores(rng, world, topics)
        num_missed[0] += not may_be_best(values, resamples=999)[0]
        values[0] += EFFECT
        num_missed[1] += not may_be_best(values, resamples=999)[0]
    return dict(
        zip(("not the best, all equal", "not the best, one better"), (num_missed / trials).tolist(), strict=True)
    )


def dominated(world: str, topics: int, trials: int) -> float:
    """Return how often any configuration is called dominated, although scores and costs are equal."""
    rng, num_dominated = np.random.default_rng([53, topics]), 0
    names = [f"c{index:02}" for index in range(len(LEVELS))]
    queries = [f"q{index:03}" for index in range(topics)]
    runs = {name: {query: ["d"] for query in queries} for name in names}
    evaluation = evaluate({query: {"d": 1} for query in queries}, runs, "DCG@10")
    for _ in range(trials):
        table = replace(evaluation, values=10.0 + scores(rng, world, topics)[:, None])
        tradeoff = table.tradeoff({name: {"ms": 1.0} for name in names}, resamples=999)
        num_dominated += len(tradeoff.front) < len(names)
    return num_dominated / trials


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield error rates of effects, of the set of best configurations, and of dominance."""
    for topics in SIZES:
        for world in WORLDS:
            rates = effects(world, topics, trials) | best(world, topics, trials)
            for method, rate in (rates | {"dominated": dominated(world, topics, trials)}).items():
                yield CoverageCell(method, world, topics, rate, trials)
