"""One system followed through its stages: what could be attained behind each, what it lost where, and how much."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from judged.comparison.slicing.parts import topic_subsets
from judged.diagnosis.changes import Mean, mean_of
from judged.errors import InputError, MeasureError
from judged.results import Answer, Sentences, Table
from judged.results.decimals import decimal
from judged.scoring.evaluation import measures_of
from judged.scoring.judging.align import align
from judged.scoring.judging.judged import placed
from judged.scoring.judging.unjudged import cut
from judged.scoring.measures.grammar import parse
from judged.stats.inputs import ROUNDING, check_share
from judged.stats.interval import IntervalMethod, mean_intervals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.comparison.slicing.topic_slices import Slicing
    from judged.diagnosis.stages.answer import Stages
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.evaluation.facts import Provenance
    from judged.scoring.judging import Judged
    from judged.scoring.measures.base import Measure


POSITIVE = float(np.nextafter(0, 1))
"""The `rel` of measures that have none: any grade above 0."""
ORDER = "order"
"""The last part of a loss: by the order of the list that people see."""


class Split(NamedTuple):
    """What each topic lost, (T,) each: ``parts`` add up to ``best - score``."""

    best: Floats  # of the best order of all judged documents
    attainable: Mapping[str, Floats]  # of the best order of what is still there behind each step
    score: Floats
    parts: Mapping[str, Floats]  # by step, and by `ORDER`


def split(measure: Measure, sets: Mapping[str, Judged], final: Judged) -> Split:
    """Split what was lost: with U(S) the measure of the best order of S, a step's part is U before it less U behind it.

    A part is negative where a step adds documents. What rounding alone leaves is 0.
    """
    best, score = measure(final.ideal), measure(final)
    attainable = {name: measure(best_order(documents)) for name, documents in sets.items()}
    parts: dict[str, Floats] = {}
    before = best
    for name, after in {**attainable, ORDER: score}.items():
        part = before - after
        part[np.abs(part) <= ROUNDING * np.maximum(np.abs(before), np.abs(after))] = 0.0
        parts[name], before = part, after
    return Split(best, attainable, score, parts)


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


def best_order(judged: Judged) -> Judged:
    """Put the documents of each topic into the best order: grades falling, then unjudged ones, then negative grades.

    >>> from judged.scoring.judging import judge_list
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
    for where in topic_subsets(len(trace.score), slicing):
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


@dataclass(frozen=True, eq=False, repr=False)
class TopicLoss(Answer):
    """What was lost on one topic, by which part, and where each relevant document was lost."""

    kind: ClassVar[str] = "topic"

    stages: Stages
    query_id: str
    query: str  # its text; empty where it is not known
    provenance: Provenance
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """The topic."""
        return f"{self.query_id}: {self.query}" if self.query else self.query_id

    def facts(self) -> dict[str, Any]:
        """Give the topic, its text and the measures."""
        return {"query_id": self.query_id, "query": self.query, **self.stages.facts()}

    def blocks(self) -> tuple[Block, ...]:
        """Give what was lost by which part, and the documents that the system lost."""
        documents, numbers = self._documents(), self.stages.topics_table()
        place = numbers.column("query_id").values.index(self.query_id)
        said = Sentences(self.sentences, title=self.title)
        return said, documents, replace(numbers.take([place]), only="data", folded=False)

    def _documents(self) -> Table:
        table = self.stages.documents_table()
        places = [at for at, query in enumerate(table.column("query_id").values) if query == self.query_id]
        return replace(table.take(places), only="" if places else "data")

    @property
    def sentences(self) -> tuple[str, ...]:
        """What each system scored, and what it lost by which part."""
        stages, at = self.stages, self.stages.query_ids.index(self.query_id)
        said: list[str] = []
        for trace in stages.traces:
            parts = " and ".join(
                f"{decimal(float(part[at]))} by {name}" for name, part in zip(PARTS, trace.parts, strict=True)
            )
            said.append(
                f"{trace.name}: {trace.verdicts(stages.choices)[at]}: {stages.measure}"
                f" {decimal(float(trace.score[at]))} of {decimal(float(trace.best[at]))}, lost {parts}; relevant"
                f" documents among the first {stages.choices.cutoff}: {trace.found[at]} of {trace.relevant[at]}."
            )
        if not len(self._documents()):
            barren = not stages.trace.relevant[at]
            said.append("No relevant document is known." if barren else "No relevant document was lost.")
        return tuple(said)
