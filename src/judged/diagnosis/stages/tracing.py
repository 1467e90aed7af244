"""One system followed through its stages: what could still be attained behind each, and which documents were lost."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from judged.errors import InputError, MeasureError
from judged.evaluation import measures_of
from judged.judging.align import align
from judged.judging.variants import cut, placed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Floats, Ints
    from judged.judging import Judged
    from judged.measures import Measure

POSITIVE = float(np.nextafter(0, 1))
"""The relevance level of measures that have none: any grade above 0."""


class Through(NamedTuple):
    """What one stage of a system left: its name, the documents it passed on, and how many of each topic count."""

    name: str  # what the stage is called
    judged: Judged  # the ranking that it left, whole
    depth: int | None  # how many of its documents the next stage gets; None for all


@dataclass(frozen=True, eq=False)
class Stage:
    """What a stage left to be attained."""

    name: str
    depth: int | None  # how many documents of each topic it passed on; None for all that it had
    attainable: Floats = field(repr=False)  # (T,): the score of the best order of these documents


@dataclass(frozen=True, eq=False)
class RelevantDocuments:
    """The relevant documents of all topics, and where a system has them. Ordered by topic, then grade, falling."""

    topic: Ints  # (N,): the position of the topic
    doc: tuple[str, ...] = field(repr=False)  # N
    grade: Floats  # (N,)
    # candidate, final: (N,): the rank in the whole run that the candidates were taken from, and in the final ranking;
    # 0: not returned
    candidate: Ints
    final: Ints


@dataclass(frozen=True, eq=False)
class Trace:
    """One system: its score on each topic, and the stages at which it lost what could be attained."""

    # name, candidates: of the final ranking, by which the system is called, and of the run that its candidates are
    # taken from
    name: str
    candidates: str
    stages: tuple[Stage, ...]  # in the order of the pipeline. What they left is ranked in the end.
    # best, score: (T,): the measure's score of the ideal ranking, and of the final one
    best: Floats = field(repr=False)
    score: Floats = field(repr=False)
    recall: Floats = field(repr=False)  # (T,): of the candidates, by the recall measure
    # relevant, found: (T,): relevant documents that the qrels know, and those among the candidates
    relevant: Ints = field(repr=False)
    found: Ints = field(repr=False)
    judged: Floats = field(repr=False)  # (T,): the share of the first 10 of the final ranking that is judged
    # foreign, returned: (T,): documents of the final ranking that are not among the candidates, and all of its
    # documents
    foreign: Ints = field(repr=False)
    returned: Ints = field(repr=False)
    documents: RelevantDocuments = field(repr=False)

    @property
    def foreign_share(self) -> float:
        """The share of the final ranking's documents that are not among the candidates."""
        return float(self.foreign.sum() / max(int(self.returned.sum()), 1))

    @cached_property
    def parts(self) -> Floats:
        """The loss, best - score, split: one row a stage, and the last for the final ranking; (P, T)."""
        levels = np.stack([self.best, *(stage.attainable for stage in self.stages), self.score])
        parts = levels[:-1] - levels[1:]
        parts[np.abs(parts) <= 1e-12 * np.maximum(np.abs(levels[:-1]), np.abs(levels[1:]))] = 0.0
        return parts


def one_measure(given: Any) -> Measure:
    """Take a measure, its class or its name."""
    measures = measures_of(given)
    if len(measures) != 1:
        raise InputError(f"{given} are {len(measures)} measures", fix="name one, such as nDCG@10")
    return measures[0]


def check_measure(measure: Measure) -> None:
    """Refuse measures for which "relevant documents first, best grade first" need not be the best order."""
    unrestricted = measure.replace(judged_only=False) if getattr(measure, "judged_only", False) else measure
    known = unrestricted.properties
    ordered = known.better_first or known.judged_better_first
    usable = known.needs_ranking and known.sees_relevance and known.higher_is_better and known.ignores_unjudged_tail
    mean = measure.entry.aggregate == "mean"
    if ordered and usable and mean and not known.every_label and known.topics_apart:
        return
    why = "need not be highest for the best grades first"
    if not known.needs_ranking:
        why = "does not look at the order"
    elif not mean:
        why = f"is a {measure.entry.aggregate}, which parts do not add up to"
    raise MeasureError(
        f"{measure} {why}: its loss cannot be split into stages. Fix: take one such as nDCG@10, AP, RR@10, P@10"
    )


def traced(stages: Sequence[Through], final: Judged, measure: Measure, recall: Measure, shares: Measure) -> Trace:
    """Follow a system through its stages."""
    left = [stage.judged if stage.depth is None else cut(stage.judged, stage.depth) for stage in stages]
    level = float(getattr(measure, "rel", POSITIVE))
    candidates, last = stages[-1].judged, left[-1]
    labels = np.flatnonzero(final.relevant_labels(level))
    labels = labels[np.lexsort((-final.label_grade[labels], final.label_topic[labels]))]
    ranks: list[Ints] = []  # of every judged pair, 0 where it was not returned
    for judged in (candidates, final):
        ranks.append(np.zeros(len(judged.label_topic), dtype=np.int64))
        ranks[-1][judged.row] = judged.rank
    names = final.qrels.index.row_names
    return Trace(
        name=final.run.name,
        candidates=candidates.run.name,
        stages=tuple(
            Stage(stage.name, stage.depth, measure(best_order(judged)))
            for stage, judged in zip(stages, left, strict=True)
        ),
        best=measure(final.ideal),
        score=measure(final),
        recall=recall(candidates),
        relevant=final.num_relevant(level).astype(np.int64),
        found=last.sum(last.relevant(level)).astype(np.int64),
        judged=shares(final),
        foreign=_foreign(stages[-1], final),
        returned=final.returned.astype(np.int64),
        documents=RelevantDocuments(
            topic=final.label_topic[labels],
            doc=tuple(names[row] for row in final.label_row[labels].tolist()),
            grade=final.label_grade[labels],
            candidate=ranks[0][labels],
            final=ranks[1][labels],
        ),
    )


def best_order(judged: Judged) -> Judged:
    """Put the documents of each topic into the best order: grades falling, then unjudged ones, then negative grades.

    >>> from judged import judge_list
    >>> best = best_order(judge_list([None, -1, 1, 3], missing=[2]))
    >>> best.rank.tolist(), best.grade.tolist()
    ([1, 2, 4], [3.0, 1.0, -1.0])
    """
    hit = np.lexsort((-judged.grade, judged.topic))
    topic = judged.topic[hit]
    rank = np.arange(len(hit)) - judged.starts[topic] + 1
    unjudged = judged.returned - np.diff(judged.starts)
    rank = np.where(judged.grade[hit] < 0, rank + unjudged[topic], rank)
    ordered = placed(judged, np.arange(len(judged)), topic, hit, rank)
    return replace(ordered, reordered=True, title="best order of the candidates")


def _foreign(stage: Through, final: Judged) -> Ints:
    """Count the documents of the final ranking that the stage did not pass on."""
    if final.run is stage.judged.run:
        return np.zeros(len(final), dtype=np.int64)
    both = align(stage.judged.run, final.run, ties=final.ranking.ties, precision=final.ranking.precision)
    limit = stage.depth or np.iinfo(np.int64).max
    outside = (both.second > 0) & ((both.first == 0) | (both.first > limit))
    counts = np.bincount(both.topic[outside], minlength=len(both))
    known = dict(zip(both.query_ids, counts.tolist(), strict=True))
    return np.array([known.get(query, 0) for query in final.query_ids], dtype=np.int64)
