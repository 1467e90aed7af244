"""Systems under people and under a model: their means corrected by what people said, and whom the model favors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.results.types import ReadOnly
from judged.stats.inputs import complete_topics, spread
from judged.stats.interval import IntervalMethod, mean_intervals
from judged.stats.prediction_powered import prediction_powered
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from judged.comparison.slicing.topic_slices import Slicing
    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.evaluation import Scores
    from judged.stats.prediction_powered import PredictionPoweredMean


@dataclass(frozen=True)
class CorrectedMean:
    """One system's mean by people, by a model, and by both."""

    judge: str
    run: str
    known: float  # by people, on the topics that they judged
    known_ci: tuple[float, float] | None
    model: float  # by the model, on all topics
    value: float  # corrected
    ci: tuple[float, float] | None
    weight: float  # how far the model is believed
    difference: float  # corrected, from the first run
    difference_ci: tuple[float, float] | None


@dataclass(frozen=True)
class FamilyBias:
    """What a model's labels do to the systems of one family, and not to the others."""

    judge: str
    family: str
    runs: int
    bias: float  # the model's error on these systems less that on all others, over topics
    ci: tuple[float, float] | None


@dataclass(frozen=True, eq=False)
class ScoresByBoth(ReadOnly):
    """Scores of R systems: on n topics by people and by the model, on N others by the model alone."""

    runs: tuple[str, ...]
    people: Floats  # (R, n)
    model: Floats  # (R, n)
    rest: Floats  # (R, N)
    bounds: tuple[float, float]  # lowest and highest score of a topic; NaN: none
    query_ids: tuple[str, ...]  # the n topics

    @classmethod
    def of(cls, scores: Scores, model: Scores) -> ScoresByBoth:
        """Put scores by people and by a model side by side, by topic."""
        names = set(scores.query_ids)
        place = {name: at for at, name in enumerate(model.query_ids)}
        both = [at for at, name in enumerate(scores.query_ids) if name in place]
        rest = [at for name, at in place.items() if name not in names]
        same = [place[scores.query_ids[at]] for at in both]
        values, others = scores.values[:, 0][:, both], model.values[:, 0]
        # A topic without a score for some run, as nDCG(undefined=skip) has, is left out for all.
        known = ~np.isnan([values, others[:, same]]).any(axis=(0, 1))
        more, _ = complete_topics(others[:, rest])
        bounds = scores.measures[0].properties.bounds
        ids = tuple(scores.query_ids[both[at]] for at in np.flatnonzero(known))
        return cls(scores.run_names, values[:, known], others[:, same][:, known], more, bounds, ids)

    @property
    def within_topics(self) -> float:
        """Correlate the systems' scores by people and by the model, each less the topic's mean."""
        one, other = (table - table.mean(axis=0) for table in (self.people, self.model))
        norm = math.sqrt(float((one**2).sum() * (other**2).sum()))
        return float((one * other).sum() / norm) if norm else math.nan

    def corrected(self, level: float, resamples: int, seed: int) -> list[PredictionPoweredMean]:
        """Correct the mean of each system; none where nothing is known by the model alone."""
        if self.people.shape[1] < 3 or self.rest.shape[1] < 2:
            return []
        how: dict[str, Any] = {"level": level, "bounds": self.bounds, "resamples": resamples, "seed": seed}
        return [prediction_powered(*each, **how) for each in zip(self.people, self.model, self.rest, strict=True)]


def corrected_means(
    judge: str, seen: ScoresByBoth, found: Sequence[PredictionPoweredMean], level: float
) -> Iterator[CorrectedMean]:
    """Give each system's means, and its corrected difference from the first one."""
    for at, one in enumerate(found):
        away = (table[at] - table[0] for table in (seen.people, seen.model, seen.rest))
        apart = prediction_powered(*away, level=level, resamples=100)
        whole = float(np.concatenate([seen.model[at], seen.rest[at]]).mean())
        ends = apart.interval if at else None
        people = one.known_mean, one.known_interval
        yield CorrectedMean(
            judge, seen.runs[at], *people, whole, one.value, one.interval, one.weight, apart.value, ends
        )


def family_biases(judge: str, seen: ScoresByBoth, families: Mapping[str, str], level: float) -> Iterator[FamilyBias]:
    """Compare the model's errors on the systems of a family with those on all others, topic by topic."""
    error = seen.model - seen.people
    for family in dict.fromkeys(families.values()):
        mine = np.array([families.get(run) == family for run in seen.runs])
        if 0 < mine.sum() < len(mine):
            apart = error[mine].mean(axis=0) - error[~mine].mean(axis=0)
            yield FamilyBias(judge, family, int(mine.sum()), float(apart.mean()), topic_interval(apart, level))


def topic_means(values: Floats, topic: Ints) -> Floats:
    """Average over each topic that has some: (P,) and the topics' codes, (P,), to (T,).

    >>> topic_means(np.array([1.0, 2.0, 5.0]), np.array([0, 0, 3])).tolist()
    [1.5, 5.0]
    """
    counts = np.bincount(topic)
    return np.bincount(topic, weights=values)[counts > 0] / counts[counts > 0]


def topic_interval(means: Floats, level: float) -> tuple[float, float] | None:
    """Return Student's interval of the mean over topics; None where topics are too few or do not vary."""
    if insufficiency(len(means), variance=spread(means)):
        return None
    low, high = mean_intervals(means[None], IntervalMethod("t", level))[0].tolist()
    return low, high


def of_slices(slicing: Slicing, query_ids: Sequence[str], topic: Ints) -> Iterator[tuple[str, Bools]]:
    """Mark the pairs of each slice that has some, by its name: the topics' codes are places in `query_ids`; (P,)."""
    for name, members in zip(slicing.names, slicing.members, strict=True):
        inside = {query_id for query_id, chosen in zip(slicing.query_ids, members.tolist(), strict=True) if chosen}
        rows = np.array([query_id in inside for query_id in query_ids], dtype=np.bool_)[topic]
        if rows.any():
            yield name, rows
