"""Loss of one system by stage: scores that each stage still allows, and where documents are lost."""

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
from judged.scoring.judging.judged import place_hits
from judged.scoring.judging.unjudged import truncate
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
"""Relevance threshold for measures without `rel`: any grade above 0."""
ORDER = "order"
"""Last part of a loss: by the order of the final list."""


class LossSplit(NamedTuple):
    """Loss of each topic; arrays of shape (T,). The ``parts`` sum to ``best - score``."""

    best: Floats  # score of the best order of all judged documents
    attainable: Mapping[str, Floats]  # score of the best order of the documents that remain after each step
    score: Floats
    parts: Mapping[str, Floats]  # loss by step, and by `ORDER`


def split_loss(measure: Measure, documents_by_step: Mapping[str, Judged], final: Judged) -> LossSplit:
    """Split the loss of each topic into parts by step and by order.

    With U(S) the measure of the best order of a document set S, the part of a step is U before it minus U after it.
    A part is negative if a step adds documents. Parts below the rounding error are set to 0.
    """
    best, score = measure(final.ideal), measure(final)
    attainable = {name: measure(best_order(documents)) for name, documents in documents_by_step.items()}
    parts: dict[str, Floats] = {}
    before = best
    for name, after in {**attainable, ORDER: score}.items():
        part = before - after
        part[np.abs(part) <= ROUNDING * np.maximum(np.abs(before), np.abs(after))] = 0.0
        parts[name], before = part, after
    return LossSplit(best, attainable, score, parts)


def single_measure(measure: Any) -> Measure:
    """Return the measure given as an object, a class, or a name."""
    measures = measures_of(measure)
    if len(measures) != 1:
        raise InputError(f"exactly one measure is required, got {measure}", fix="use one measure, such as nDCG@10")
    return measures[0]


def check_measure(measure: Measure) -> None:
    """Raise MeasureError if "relevant documents first, best grade first" need not be the best order."""
    unrestricted = measure.replace(judged_only=False) if getattr(measure, "judged_only", False) else measure
    traits = unrestricted.properties
    best_grade_first = traits.better_first or traits.judged_better_first
    usable = (
        traits.needs_ranking
        and traits.depends_on_relevance
        and traits.higher_is_better
        and traits.ignores_unjudged_tail
    )
    is_mean = measure.entry.aggregate == "mean"
    if best_grade_first and usable and is_mean and not traits.uses_all_labels and traits.topics_independent:
        return
    reason = "is not always highest if documents are sorted by grade"
    if not traits.needs_ranking:
        reason = "does not depend on the order"
    elif not is_mean:
        reason = f"is a {measure.entry.aggregate}, so the losses of the stages do not add up to the total loss"
    raise MeasureError(
        f"the loss of {measure} cannot be split into stages, because {measure} {reason}. Fix: use nDCG@10, AP,"
        " RR@10 or P@10"
    )


def best_order(judged: Judged) -> Judged:
    """Sort the documents of each topic by descending grade, with unjudged documents before negative grades.

    >>> from judged.scoring.judging import judge_list
    >>> best = best_order(judge_list([None, -1, 1, 3], missing=[2]))
    >>> best.rank.tolist(), best.grade.tolist()
    ([1, 2, 4], [3.0, 1.0, -1.0])
    """
    rows = np.lexsort((-judged.grade, judged.topic))
    topics = judged.topic[rows]
    ranks = np.arange(len(rows)) - judged.starts[topics] + 1
    num_unjudged = judged.returned - np.diff(judged.starts)
    ranks = np.where(judged.grade[rows] < 0, ranks + num_unjudged[topics], ranks)
    ordered = place_hits(judged, np.arange(len(judged)), topics, rows, ranks)
    return replace(ordered, reordered=True, title="best order of the candidates")


HEALTHY, NOT_RETRIEVED, RANKED_LOW, BOTH, NO_RELEVANT = VERDICTS = (
    "small loss",
    "not retrieved",
    "ranked low",
    "both",
    "no relevant documents",
)
"""Verdicts of a topic: the parts of its loss that are large."""
SHORT: dict[str, str] = {NO_RELEVANT: "no relevant"}
"""Short forms of verdicts for tables."""
PARTS = CANDIDATES, _ = ("candidates", "ranking")
"""Parts of a loss in two stages: relevant documents that are not candidates, and candidates ranked badly."""
SCORE = "score"
_TOLERANCE = 1 - 1e-12


@dataclass(frozen=True, eq=False)
class RelevantDocuments:
    """Relevant documents of all topics and their ranks in a system, sorted by topic, then descending grade."""

    topic: Ints  # (N,): index of the topic
    doc: tuple[str, ...] = field(repr=False)  # N
    grade: Floats  # (N,)
    # candidate, final: (N,): rank in the full run that the candidates come from, and in the final ranking; 0 if the
    # document was not returned
    candidate: Ints
    final: Ints


@dataclass(frozen=True, eq=False)
class Trace:
    """Scores of one system on each topic, and the loss at each stage."""

    # name, candidates: names of the final ranking, which is that of the system, and of the run with the candidates
    name: str
    candidates: str
    # best, attainable, score: (T,): scores of the ideal ranking, of the best order of the candidates, and of the final
    # ranking
    best: Floats = field(repr=False)
    attainable: Floats = field(repr=False)
    score: Floats = field(repr=False)
    parts: Floats = field(repr=False)  # (2, T): loss by candidates and by ranking; sums to best - score
    recall: Floats = field(repr=False)  # (T,): recall of the candidates
    # relevant, num_retrieved: (T,): number of relevant documents in the qrels, and among the candidates
    relevant: Ints = field(repr=False)
    num_retrieved: Ints = field(repr=False)
    judged: Floats = field(repr=False)  # (T,): share of the top 10 of the final ranking that is judged
    # non_candidates, returned: (T,): number of documents of the final ranking that are no candidates, and of all
    non_candidates: Ints = field(repr=False)
    returned: Ints = field(repr=False)
    documents: RelevantDocuments = field(repr=False)

    @property
    def non_candidate_share(self) -> float:
        """Share of the documents of the final ranking that are not candidates."""
        return float(self.non_candidates.sum() / max(int(self.returned.sum()), 1))

    def verdicts(self, options: StageOptions) -> tuple[str, ...]:
        """Return the large parts of the loss of each topic: large relative to the best score and to the loss."""
        not_found, low = (self.parts >= options.least * self.best * _TOLERANCE) & large_parts(self.parts, options)
        kinds = np.array([[HEALTHY, RANKED_LOW], [NOT_RETRIEVED, BOTH]])[not_found.astype(int), low.astype(int)]
        no_relevant = (self.relevant == 0) | np.isnan(self.score) | (self.best == 0)
        return tuple(np.where(no_relevant, NO_RELEVANT, kinds).tolist())


def trace_system(candidates: Judged, cutoff: int, final: Judged, measure: Measure, recall: Measure) -> Trace:
    """Compute the scores, losses and document ranks of a system from its candidates and its final ranking."""
    rel = float(getattr(measure, "rel", POSITIVE))
    candidates_in_cutoff = truncate(candidates, cutoff)
    labels = np.flatnonzero(final.relevant_labels(rel))
    labels = labels[np.lexsort((-final.label_grade[labels], final.label_topic[labels]))]
    ranks = np.zeros((2, len(final.label_topic)), dtype=np.int64)  # of every judged pair; 0 if not returned
    for row, judged in zip(ranks, (candidates, final), strict=True):
        row[judged.row] = judged.rank
    doc_ids = final.qrels.index.row_names
    best, attainable, score, parts = split_loss(measure, {CANDIDATES: candidates_in_cutoff}, final)
    return Trace(
        name=final.run.name,
        candidates=candidates.run.name,
        best=best,
        attainable=attainable[CANDIDATES],
        score=score,
        parts=np.stack(list(parts.values())),
        recall=recall(candidates),
        relevant=final.num_relevant(rel).astype(np.int64),
        num_retrieved=candidates_in_cutoff.sum(candidates_in_cutoff.relevant(rel)).astype(np.int64),
        judged=parse("Judged@10")(final),
        non_candidates=_count_non_candidates(candidates, cutoff, final),
        returned=final.returned.astype(np.int64),
        documents=RelevantDocuments(
            final.label_topic[labels],
            tuple(doc_ids[row] for row in final.label_row[labels].tolist()),
            final.label_grade[labels],
            *ranks[:, labels],
        ),
    )


def _count_non_candidates(candidates: Judged, cutoff: int, final: Judged) -> Ints:
    """Count the documents of the final ranking that are not among the candidates."""
    if final.run is candidates.run:
        return np.zeros(len(final), dtype=np.int64)
    aligned = align(candidates.run, final.run, ties=final.ranking.ties, precision=final.ranking.precision)
    outside = (aligned.second > 0) & ((aligned.first == 0) | (aligned.first > cutoff))
    counts = np.bincount(aligned.topic[outside], minlength=len(aligned))
    counts_by_topic = dict(zip(aligned.query_ids, counts.tolist(), strict=True))
    return np.array([counts_by_topic.get(topic, 0) for topic in final.query_ids], dtype=np.int64)


@dataclass(frozen=True)
class StageOptions:
    """Options of `stages`."""

    cutoff: int = 100  # number of candidates per topic
    least: float = 0.1  # a part of a loss is large from this share of the best score of the topic
    share: float = 0.15  # and from this share of the loss of the topic
    fdr: float = 0.1  # false discovery rate of the topics reported as lost
    alpha: float = 0.05  # significance level; intervals have the level 1 - alpha
    # resamples, seed: for tests; intervals use 2000 resamples and the same seed
    resamples: int = 100_000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.cutoff < 1:
            raise InputError(f"`cutoff` must be a positive integer, got {self.cutoff}", fix="use --cutoff 100")
        check_share("least share", self.least)
        check_share("share of the loss", self.share, high=0.5)
        check_share("false discovery rate", self.fdr)
        check_share("alpha", self.alpha, high=0.5)

    @property
    def interval(self) -> IntervalMethod:
        """Method of confidence intervals."""
        return IntervalMethod(level=1 - self.alpha)


@dataclass(frozen=True)
class LossByStage:
    """Means of one system over a set of topics, and counts of verdicts."""

    system: str
    slice: str  # the name of the slice, or `all topics`
    n: int  # number of topics with a score
    small: bool  # whether the slice has too few topics; it then has no intervals
    # score, best, recall: means over the topics
    score: Mean
    best: Mean
    recall: Mean
    losses: tuple[Mean, ...]  # mean of each part of the loss; they sum to best - score
    verdicts: dict[str, int]  # number of topics by verdict

    @property
    def means(self) -> tuple[Mean, ...]:
        """Score, best, recall and losses."""
        return self.score, self.best, self.recall, *self.losses

    @property
    def has_no_relevant(self) -> bool:
        """Whether no topic has a relevant document."""
        return self.verdicts[NO_RELEVANT] == sum(self.verdicts.values())


def losses_by_slice(
    trace: Trace, measure: Measure, slicing: Slicing | None, options: StageOptions
) -> list[LossByStage]:
    """Compute the mean losses over all topics, and over the topics of each slice."""
    verdicts = np.array(trace.verdicts(options), dtype=object)
    rows = np.stack([trace.score, trace.best, trace.recall, *trace.parts])
    low, high = measure.properties.bounds
    bounds = [(low, high), (low, high), (0, 1), *[(0, high - low)] * len(trace.parts)]
    results: list[LossByStage] = []
    for topics in topic_subsets(len(trace.score), slicing):
        values = rows[:, topics.mask]
        method = IntervalMethod("none") if topics.small else options.interval
        limits = mean_intervals(values, method, bounds).tolist()
        score, best, recall, *losses = (Mean(mean_of(row), *ci) for row, ci in zip(values, limits, strict=True))
        n, counts = int(np.count_nonzero(~np.isnan(values[0]))), Counter(verdicts[topics.mask].tolist())
        by_verdict = {verdict: counts[verdict] for verdict in VERDICTS}
        means = score, best, recall, tuple(losses)
        results.append(LossByStage(trace.name, topics.name, n, topics.small, *means, by_verdict))
    return results


def large_parts(parts: Floats, options: StageOptions) -> Bools:
    """Return a mask of the parts that are at least the configured share of the loss of their topic."""
    return (parts >= options.share * np.maximum(parts, 0.0).sum(axis=0) * _TOLERANCE) & (parts > 0)


@dataclass(frozen=True, eq=False, repr=False)
class TopicStages(Answer):
    """Loss of one topic by part, and the stage at which each relevant document was lost."""

    kind: ClassVar[str] = "topic"

    stages: Stages
    query_id: str
    query: str  # text of the topic; empty if unknown
    provenance: Provenance
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Id of the topic, and its text if known."""
        return f"{self.query_id}: {self.query}" if self.query else self.query_id

    def facts(self) -> dict[str, Any]:
        """Return the topic, its text and the measures."""
        return {"query_id": self.query_id, "query": self.query, **self.stages.facts()}

    def blocks(self) -> tuple[Block, ...]:
        """Return sentences about the loss, the lost documents, and the numbers of the topic."""
        documents, topics = self._documents(), self.stages.topics_table()
        row = topics.column("query_id").values.index(self.query_id)
        sentences = Sentences(self.sentences, title=self.title)
        return sentences, documents, replace(topics.take([row]), only="data", folded=False)

    def _documents(self) -> Table:
        table = self.stages.documents_table()
        rows = [i for i, topic in enumerate(table.column("query_id").values) if topic == self.query_id]
        return replace(table.take(rows), only="" if rows else "data")

    @property
    def sentences(self) -> tuple[str, ...]:
        """Score of each system, and its loss by part."""
        stages, i = self.stages, self.stages.query_ids.index(self.query_id)
        texts: list[str] = []
        for trace in stages.traces:
            parts = " and ".join(
                f"{decimal(float(part[i]))} due to the {name}" for name, part in zip(PARTS, trace.parts, strict=True)
            )
            verdict = trace.verdicts(stages.choices)[i]
            verdict = f"{NOT_RETRIEVED} and {RANKED_LOW}" if verdict == BOTH else verdict
            texts.append(
                f"{trace.name}: {verdict}: {stages.measure}"
                f" {decimal(float(trace.score[i]))} of at most {decimal(float(trace.best[i]))}, with losses of"
                f" {parts}; relevant"
                f" documents in the top {stages.choices.cutoff}: {trace.num_retrieved[i]} of {trace.relevant[i]}."
            )
        if not len(self._documents()):
            has_no_relevant = not stages.trace.relevant[i]
            texts.append(
                "The qrels have no relevant document for this topic."
                if has_no_relevant
                else "No relevant document was lost."
            )
        return tuple(texts)
