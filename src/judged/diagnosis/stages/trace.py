"""One system followed through its stages: what could be attained behind each, what it lost where, and how much."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from judged.comparison.slicing.slice_tests import everywhere
from judged.diagnosis.changes import Mean, mean_of
from judged.diagnosis.stages.split import POSITIVE, split
from judged.errors import InputError
from judged.scoring.judging.align import align
from judged.scoring.judging.variants import cut
from judged.scoring.measures.grammar import parse
from judged.stats.inputs import check_share
from judged.stats.interval import IntervalMethod, mean_intervals

if TYPE_CHECKING:
    from judged._types import Bools, Floats, Ints
    from judged.comparison.slicing.topic_slices import Slicing
    from judged.scoring.judging import Judged
    from judged.scoring.measures.base import Measure

HEALTHY, NOT_FOUND, BADLY_RANKED, BOTH, NOTHING = VERDICTS = (
    "little lost",
    "not found",
    "found but ranked badly",
    "both",
    "nothing relevant",
)
"""What is said of a topic: which parts of its loss count."""
SHORT: dict[str, str] = {BADLY_RANKED: "ranked badly", NOTHING: "no relevant"}
"""Verdicts in tables."""
PARTS = CANDIDATES, _ = ("candidates", "ranking")
"""Where two stages lose: what is not among the candidates, and what is ranked badly among them."""
SCORE = "score"
_SLACK = 1 - 1e-12


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
    # best, attainable, score: (T,): the measure's score of the ideal ranking, of the best order of the candidates, and
    # of the final ranking
    best: Floats = field(repr=False)
    attainable: Floats = field(repr=False)
    score: Floats = field(repr=False)
    parts: Floats = field(repr=False)  # (2, T): best - score, split into that of the candidates and that of the ranking
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

    def verdicts(self, choices: Cut) -> tuple[str, ...]:
        """Say of each topic which parts of its loss count: a large enough share of the best, and of what was lost."""
        unfound, ranked = (self.parts >= choices.least * self.best * _SLACK) & large_parts(self.parts, choices)
        kinds = np.array([[HEALTHY, BADLY_RANKED], [NOT_FOUND, BOTH]])[unfound.astype(int), ranked.astype(int)]
        nothing = (self.relevant == 0) | np.isnan(self.score) | (self.best == 0)
        return tuple(np.where(nothing, NOTHING, kinds).tolist())


def traced(candidates: Judged, cutoff: int, final: Judged, measure: Measure, recall: Measure) -> Trace:
    """Follow a system from its first candidates to its final ranking."""
    level = float(getattr(measure, "rel", POSITIVE))
    left = cut(candidates, cutoff)
    labels = np.flatnonzero(final.relevant_labels(level))
    labels = labels[np.lexsort((-final.label_grade[labels], final.label_topic[labels]))]
    ranks = np.zeros((2, len(final.label_topic)), dtype=np.int64)  # of every judged pair, 0 where it was not returned
    for row, judged in zip(ranks, (candidates, final), strict=True):
        row[judged.row] = judged.rank
    names = final.qrels.index.row_names
    best, attainable, score, parts = split(measure, {CANDIDATES: left}, final)
    return Trace(
        name=final.run.name,
        candidates=candidates.run.name,
        best=best,
        attainable=attainable[CANDIDATES],
        score=score,
        parts=np.stack(list(parts.values())),
        recall=recall(candidates),
        relevant=final.num_relevant(level).astype(np.int64),
        found=left.sum(left.relevant(level)).astype(np.int64),
        judged=parse("Judged@10")(final),
        foreign=_foreign(candidates, cutoff, final),
        returned=final.returned.astype(np.int64),
        documents=RelevantDocuments(
            final.label_topic[labels],
            tuple(names[row] for row in final.label_row[labels].tolist()),
            final.label_grade[labels],
            *ranks[:, labels],
        ),
    )


def _foreign(candidates: Judged, cutoff: int, final: Judged) -> Ints:
    """Count the documents of the final ranking that are not among the candidates."""
    if final.run is candidates.run:
        return np.zeros(len(final), dtype=np.int64)
    both = align(candidates.run, final.run, ties=final.ranking.ties, precision=final.ranking.precision)
    outside = (both.second > 0) & ((both.first == 0) | (both.first > cutoff))
    counts = np.bincount(both.topic[outside], minlength=len(both))
    known = dict(zip(both.query_ids, counts.tolist(), strict=True))
    return np.array([known.get(query, 0) for query in final.query_ids], dtype=np.int64)


@dataclass(frozen=True)
class Cut:
    """The choices of a diagnosis by stages."""

    cutoff: int = 100  # how many documents of a topic are candidates
    least: float = 0.1  # a part counts for the verdict on a topic from this share of the best score on
    share: float = 0.15  # and from this share of all that is lost there on
    fdr: float = 0.1  # the false discovery rate of topics that are said to have lost
    alpha: float = 0.05  # up to here p is significant; intervals have the level 1 - alpha
    # resamples, seed: of tests; intervals have 2000 resamples of the same seed
    resamples: int = 100_000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.cutoff < 1:
            raise InputError(f"the cutoff {self.cutoff} makes no sense", fix="give a whole number from 1")
        check_share("least share", self.least)
        check_share("share of the loss", self.share, high=0.5)
        check_share("false discovery rate", self.fdr)
        check_share("alpha", self.alpha, high=0.5)

    @property
    def interval(self) -> IntervalMethod:
        """How intervals are made."""
        return IntervalMethod(level=1 - self.alpha)


@dataclass(frozen=True)
class Parts:
    """One system over some topics."""

    system: str
    slice: str  # the name of the slice, or `all topics`
    n: int  # how many count: those that the measure leaves out do not
    small: bool  # whether there are fewer than the slice is judged by: then there are no intervals
    # score, best, recall: means
    score: Mean
    best: Mean
    recall: Mean
    losses: tuple[Mean, ...]  # the mean of each part of the loss; together best - score
    verdicts: dict[str, int]  # how many topics have which verdict

    @property
    def means(self) -> tuple[Mean, ...]:
        """Score, best, recall and losses."""
        return self.score, self.best, self.recall, *self.losses

    @property
    def barren(self) -> bool:
        """Whether no topic has a relevant document."""
        return self.verdicts[NOTHING] == sum(self.verdicts.values())


def parts_by_slice(trace: Trace, measure: Measure, slicing: Slicing | None, choices: Cut) -> tuple[Parts, ...]:
    """Average the parts over all topics, and over the topics of each slice."""
    verdicts = np.array(trace.verdicts(choices), dtype=object)
    rows = np.stack([trace.score, trace.best, trace.recall, *trace.parts])
    low, high = measure.properties.bounds
    bounds = [(low, high), (low, high), (0, 1), *[(0, high - low)] * len(trace.parts)]
    parts: list[Parts] = []
    for where in everywhere(len(trace.score), slicing):
        values = rows[:, where.mask]
        method = IntervalMethod("none") if where.small else choices.interval
        limits = mean_intervals(values, method, bounds).tolist()
        score, best, recall, *losses = (Mean(mean_of(row), *ends) for row, ends in zip(values, limits, strict=True))
        topics, counts = int(np.count_nonzero(~np.isnan(values[0]))), Counter(verdicts[where.mask].tolist())
        named = {verdict: counts[verdict] for verdict in VERDICTS}
        parts.append(Parts(trace.name, where.name, topics, where.small, score, best, recall, tuple(losses), named))
    return tuple(parts)


def large_parts(lost: Floats, choices: Cut) -> Bools:
    """Mark the parts that hold a large enough share of what was lost in all of them."""
    return (lost >= choices.share * np.maximum(lost, 0.0).sum(axis=0) * _SLACK) & (lost > 0)
