"""Scores of systems by people and by a model: corrected means, and bias of the model for families of systems."""

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
    """A system's mean by people, by a model, and corrected with both."""

    judge: str
    run: str
    human: float  # mean by people, on the topics that they judged
    human_ci: tuple[float, float] | None
    model: float  # mean by the model, on all topics
    value: float  # corrected
    ci: tuple[float, float] | None
    weight: float  # weight of the model, 0 to 1
    difference: float  # corrected difference from the first run
    difference_ci: tuple[float, float] | None


@dataclass(frozen=True)
class FamilyBias:
    """Bias of a model for the systems of one family, compared with all other systems."""

    judge: str
    family: str
    runs: int
    bias: float  # mean over topics of the model's error on these systems minus its error on the others
    ci: tuple[float, float] | None


@dataclass(frozen=True, eq=False)
class PairedScores(ReadOnly):
    """Scores of R systems by people and a model on n topics, and by the model alone on N other topics."""

    runs: tuple[str, ...]
    people: Floats  # (R, n)
    model: Floats  # (R, n)
    model_only: Floats  # (R, N)
    bounds: tuple[float, float]  # lowest and highest possible score of a topic; NaN: unbounded
    query_ids: tuple[str, ...]  # the n topics

    @classmethod
    def of(cls, scores: Scores, model: Scores) -> PairedScores:
        """Align scores by people and by a model by topic."""
        topics = set(scores.query_ids)
        column_of = {topic: column for column, topic in enumerate(model.query_ids)}
        shared = [column for column, topic in enumerate(scores.query_ids) if topic in column_of]
        model_only = [column for topic, column in column_of.items() if topic not in topics]
        model_columns = [column_of[scores.query_ids[column]] for column in shared]
        values, others = scores.values[:, 0][:, shared], model.values[:, 0]
        # A topic without a score for one run, as with nDCG(undefined=skip), is left out for all runs.
        is_scored = ~np.isnan([values, others[:, model_columns]]).any(axis=(0, 1))
        # Topics that only the model judged are also dropped if a run has no score.
        complete, _ = complete_topics(others[:, model_only])
        bounds = scores.measures[0].properties.bounds
        ids = tuple(scores.query_ids[shared[column]] for column in np.flatnonzero(is_scored))
        model_scores = others[:, model_columns][:, is_scored]
        return cls(scores.run_names, values[:, is_scored], model_scores, complete, bounds, ids)

    @property
    def within_topics(self) -> float:
        """Correlation of the systems' scores by people and by the model, each minus the mean of the topic."""
        # Without centering, differences in topic difficulty would dominate the correlation.
        people, model = (table - table.mean(axis=0) for table in (self.people, self.model))
        norm = math.sqrt(float((people**2).sum() * (model**2).sum()))
        return float((people * model).sum() / norm) if norm else math.nan

    def prediction_powered_means(self, level: float, resamples: int, seed: int) -> list[PredictionPoweredMean]:
        """Estimate the mean of each system; return an empty list if topics are too few."""
        # Fewer topics have no usable variances of the scores and of their correction.
        if self.people.shape[1] < 3 or self.model_only.shape[1] < 2:
            return []
        options: dict[str, Any] = {"level": level, "bounds": self.bounds, "resamples": resamples, "seed": seed}
        scores = zip(self.people, self.model, self.model_only, strict=True)
        return [prediction_powered(*run_scores, **options) for run_scores in scores]


def corrected_means(
    judge: str, scores: PairedScores, means: Sequence[PredictionPoweredMean], level: float
) -> Iterator[CorrectedMean]:
    """Yield each system's means and its corrected difference from the first system."""
    for i, mean in enumerate(means):
        # The difference is estimated from paired scores: intervals of two means would ignore their correlation.
        paired = (table[i] - table[0] for table in (scores.people, scores.model, scores.model_only))
        difference = prediction_powered(*paired, level=level, resamples=100)
        model_mean = float(np.concatenate([scores.model[i], scores.model_only[i]]).mean())
        by_people, corrected = (mean.known_mean, mean.known_interval), (mean.value, mean.interval, mean.weight)
        from_first = difference.value, difference.interval if i else None
        yield CorrectedMean(judge, scores.runs[i], *by_people, model_mean, *corrected, *from_first)


def family_biases(judge: str, scores: PairedScores, families: Mapping[str, str], level: float) -> Iterator[FamilyBias]:
    """Compare the model's errors on each family of systems with its errors on all others, topic by topic."""
    error = scores.model - scores.people
    for family in dict.fromkeys(families.values()):
        is_member = np.array([families.get(run) == family for run in scores.runs])
        if 0 < is_member.sum() < len(is_member):
            # Comparing errors, not scores, separates bias for the family from real quality.
            differences = error[is_member].mean(axis=0) - error[~is_member].mean(axis=0)
            interval = topic_interval(differences, level)
            yield FamilyBias(judge, family, int(is_member.sum()), float(differences.mean()), interval)


def topic_means(values: Floats, topic: Ints) -> Floats:
    """Average values by topic: (P,) and topic codes, (P,), to one mean for each topic with values, (T,).

    >>> topic_means(np.array([1.0, 2.0, 5.0]), np.array([0, 0, 3])).tolist()
    [1.5, 5.0]
    """
    counts = np.bincount(topic)
    return np.bincount(topic, weights=values)[counts > 0] / counts[counts > 0]


def topic_interval(means: Floats, level: float) -> tuple[float, float] | None:
    """Compute Student's interval of a mean over topics; return None if topics are too few or do not vary."""
    if insufficiency(len(means), variance=spread(means)):
        return None
    low, high = mean_intervals(means[None], IntervalMethod("t", level))[0].tolist()
    return low, high


def rows_by_slice(slicing: Slicing, query_ids: Sequence[str], topic: Ints) -> Iterator[tuple[str, Bools]]:
    """Yield the name and rows, (P,) booleans, of each slice with pairs; `topic`, (P,), indexes `query_ids`."""
    for name, mask in zip(slicing.names, slicing.members, strict=True):
        slice_ids = {query_id for query_id, inside in zip(slicing.query_ids, mask.tolist(), strict=True) if inside}
        rows = np.array([query_id in slice_ids for query_id in query_ids], dtype=np.bool_)[topic]
        if rows.any():
            yield name, rows
