"""Labels that most likely decide which of two runs is better, for all possible grades of unjudged documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.data.qrels import Qrels
from judged.errors import InputError, MeasureError
from judged.results import COUNT, TEXT, Answer, Sentences, Table, columns_of, significant
from judged.results.decimals import counted
from judged.results.spelling import with_parameter_hints
from judged.scoring.evaluation.inputs import run_pair
from judged.scoring.judging import judge
from judged.scoring.measures.dcg import CG, DCG, NCG, nDCG
from judged.scoring.measures.grammar import parse
from judged.scoring.measures.precision import P
from judged.scoring.measures.rbp import RBP
from judged.scoring.uncertainty.ratio import RatioTerms
from judged.scoring.uncertainty.unjudged import grade_levels
from judged.stats.inputs import check_count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.results import Block
    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging import Judged, Precision, TiePolicy, TopicPolicy
    from judged.scoring.measures.base import Measure


_DRAWS = 20  # random grades of all unlabeled documents


@dataclass(frozen=True)
class NextLabel:
    """A label that would help to decide."""

    query_id: str
    doc_id: str
    priority: float  # expected change of the bound that decides
    first_rank: int | None  # None: below the cutoff, or not returned by this run
    second_rank: int | None


@dataclass(frozen=True, eq=False, repr=False)
class Decision(Answer):
    """Whether labels decide between two runs, and which labels to give next."""

    kind: ClassVar[str] = "decision"

    first: str
    second: str
    measure: str
    n: int  # number of topics
    low: float  # bounds of the difference of means, first minus second
    high: float
    decided: bool
    # whether this holds if documents outside both top-k lists have the highest grade
    decided_outside: bool
    labeled: int  # number of labeled documents in the top-k lists, and of unlabeled ones
    unlabeled: int
    # labels that decide in half of the random draws, and in nine of ten; None if decided, or if they do not decide
    labels_median: int | None
    labels_q90: int | None
    labels: tuple[NextLabel, ...]

    def blocks(self) -> tuple[Block, ...]:
        """Return the sentences and the labels to give next."""
        ranks = (("first_rank", COUNT, "rank in first run"), ("second_rank", COUNT, "rank in second run"))
        head = (("query_id", TEXT), ("doc_id", TEXT), ("priority", significant(4)))
        columns = columns_of(self.labels, *head, *ranks)
        return Sentences(self.sentences), Table("labels", columns, labels=2)

    def facts(self) -> dict[str, Any]:
        """Return the bounds and the number of labels that remain."""
        return {name: value for name, value in vars(self).items() if name != "labels"}

    @property
    def sentences(self) -> tuple[str, ...]:
        """Bounds of the difference, and number of labels that remain."""
        bounds = (
            f"{self.measure}, {self.first} minus {self.second}, {counted(self.n, 'topic')}: the difference is between"
            f" {self.low:+.4f} and {self.high:+.4f} for all possible grades of"
            f" {counted(self.unlabeled, 'unjudged top document')}."
        )
        if self.low == self.high == 0:
            return bounds, "Equal: both runs have the same mean on these topics, for all possible grades."
        if self.decided:
            better = self.first if self.low > 0 else self.second
            outside = "also holds" if self.decided_outside else "may not hold"
            decision = (
                f"Decided: {better} has the higher mean on these topics. This decision {outside} if documents outside"
                " the top lists of both runs have the highest grade. The decision does not apply to other topics."
            )
            return bounds, decision
        remaining = f"Not decided: at most {counted(self.unlabeled, 'more label')} will decide the comparison."
        if self.labels_median is not None:
            remaining += (
                f" The missing grades were simulated {_DRAWS} times, from ranks and existing labels. In half of the"
                f" simulations, labels of the first {self.labels_median} documents in the list decided the comparison;"
                f" in 90%, labels of the first {self.labels_q90} documents. If you compute the list again after some"
                " labels, you usually need fewer labels."
            )
        return bounds, remaining


@with_parameter_hints
def decide(
    qrels: Any,
    first: Any,
    second: Any,
    measure: str | Measure = "nDCG@10",
    *,
    limit: int | None = None,
    highest: float | None = None,
    topics: TopicPolicy = "qrels",
    ties: TiePolicy = "docid",
    precision: Precision = "double",
    seed: int = 0,
) -> Decision:
    """Check whether the labels decide which run is better, and list the labels to give next.

    The difference of means has bounds over all grades that unjudged documents in the top-k lists of both runs can get.
    If 0 is between the bounds, the comparison is open. The next labels are those with the largest expected change of
    the bound that decides for the run with the higher expected mean. The expected grade of a document depends on its
    ranks, and on the labels of other documents at similar ranks and of the same topic.

    The ideal ranking of nDCG and NCG also depends on existing and possible labels. Documents outside both top-k lists
    count with their label, if any.

    Parameters
    ----------
    qrels
        The labels so far, as `Qrels.of` accepts them.
    first, second
        Two runs.
    measure
        P, CG, DCG, RBP, nDCG or NCG, with a cutoff.
    limit
        Maximum number of labels in the list; None for all.
    highest
        Highest grade of the scale; None: as in `unjudged_range`.
    topics
        The topics that count: those of the ``qrels``, of a ``run``, or ``both``.
    ties, precision
        As in `judge`.
    seed
        Seed of the random draws that estimate the number of labels that remain.

    Returns
    -------
    Decision

    Raises
    ------
    InputError
        If no topic remains, or a grade is above `highest`.
    MeasureError
        If the measure is not supported, or has no cutoff.

    Examples
    --------
    >>> decision = decide({"q": {"a": 1, "b": 0}}, {"q": ["a", "b"]}, {"q": ["b", "c"]}, "P@2")
    >>> decision.low, decision.high, decision.decided, [(label.doc_id, label.priority) for label in decision.labels]
    (0.0, 0.5, False, [('c', 0.25)])
    """
    if limit is not None:
        check_count("limit", limit, 0)
    if seed < 0:
        raise InputError(f"`seed` must be 0 or a positive integer, got {seed}", fix="use seed=0")
    qrels, runs = Qrels.of(qrels), run_pair(first, second, ("first", "second"))
    policies = {"ties": ties, "precision": precision}
    options: dict[str, Any] = {"highest": highest, "topics": topics, "policies": policies}
    comparison = build_comparison(qrels, *runs, measure, **options)
    all_topics, level = np.arange(len(comparison.topics)), comparison.level
    bounds = comparison.bounds(all_topics, level)
    is_decided = winner(bounds) is not None
    is_decided_outside, expected, most_expected = is_decided, None, None
    if is_decided:
        cutoff: int = comparison.measure.cutoff  # type: ignore[attr-defined]
        with_outside = build_comparison(qrels, *runs, measure, outside=cutoff, **options)
        is_decided_outside = winner(with_outside.bounds(all_topics, with_outside.level)) is not None
    # Stable sort: equal priorities keep the order of topics and ranks.
    priority = comparison.priority(level, comparison.label_effects(all_topics, level))
    row, column = np.nonzero(comparison.is_open)
    order = np.argsort(-priority[row, column], kind="stable")
    row, column = row[order], column[order]
    if not is_decided and len(row):
        expected, most_expected = _expected_labels(comparison, row, column, seed)
    low, high = bounds.mean(axis=1).tolist()
    # Rank 0 means that the run does not return the document in its top k.
    ranks = [[rank or None for rank in comparison.ranks[run, row, column].tolist()] for run in (0, 1)]
    labels = tuple(
        NextLabel(comparison.topics[i], comparison.docs[i][j], float(priority[i, j]), *label_ranks)
        for i, j, *label_ranks in zip(row[:limit].tolist(), column[:limit].tolist(), *ranks, strict=False)
    )
    labeled = int(((comparison.ranks > 0).any(axis=0) & (level >= 0)).sum())
    summary = runs[0].name, runs[1].name, str(comparison.measure), len(all_topics), low, high
    counts = labeled, len(row), expected, most_expected
    return Decision(*summary, is_decided, is_decided_outside, *counts, labels)


def labels_needed(comparison: OpenComparison, row: Ints, column: Ints, level: Ints) -> int | None:
    """Count how many of the labels in `level`, (T, W), decide if given in the order of the indices, (U,) each."""
    # Bisection: more labels never widen the bounds, so the decision is monotone in their number.
    low, high = 0, len(row) + 1
    while low < high:
        count = (low + high) // 2
        partial_level = level.copy()
        partial_level[row[count:], column[count:]] = -1
        if count > len(row) or winner(comparison.bounds(np.arange(len(comparison.topics)), partial_level)) is not None:
            high = count
        else:
            low = count + 1
    return low if low <= len(row) else None


def _expected_labels(
    comparison: OpenComparison, row: Ints, column: Ints, seed: int
) -> tuple[int, int] | tuple[None, None]:
    """Draw grades of all unlabeled documents; return the median and the 0.9 quantile of the labels needed."""
    random, probabilities = np.random.default_rng(seed), comparison.chances(comparison.level)[row, column]
    # Grades are drawn by inversion of the cumulative probabilities; infinite if a draw stays undecided.
    needed: Floats = np.full(_DRAWS, np.inf)
    for i in range(_DRAWS):
        level = comparison.level.copy()
        level[row, column] = (random.random((len(row), 1)) > np.cumsum(probabilities, axis=1)[:, :-1]).sum(axis=1)
        needed[i] = labels_needed(comparison, row, column, level) or np.inf
    median, high_quantile = np.quantile(needed, (0.5, 0.9), method="higher").tolist()
    return (int(median), int(high_quantile)) if np.isfinite(high_quantile) else (None, None)


_SUMS, _RATIOS = (P, CG, DCG, RBP), {nDCG: DCG, NCG: CG}
_ROUNDING = 1e-12
_PRIOR_LABELS = 5.0  # weight of the prior, as a number of labels


@dataclass(frozen=True, eq=False)
class OpenComparison:
    """Two runs up to the cutoff, with the effect of a label on each document."""

    measure: Measure
    topics: tuple[str, ...]  # T
    docs: tuple[tuple[str, ...], ...]  # of each topic, at most W
    # (T, W) each; the last columns can stand for documents outside both lists: they have weight 0 and get no label
    is_present: Bools
    weight: Floats  # rank weight in the first run minus in the second
    ranks: Ints  # (2, T, W): rank in each run; 0 if not in its top k
    level: Ints  # index of the grade in `levels`; -1 if unlabeled
    levels: Floats  # (S,): possible grades, from 0 in increasing order
    gains: Floats  # (S,): gain of each grade, scaled to 0 to 1
    outside_counts: Ints  # (T, S - 1): labels outside both lists with at least each grade above 0
    ideal: Floats  # (K + 1,): cumulative rank weights; empty for a measure without an ideal

    def bounds(self, row: Ints, level: Ints) -> Floats:
        """Return the lowest and highest difference of some topics, (V,), with the labels, (V, W): (2, V)."""
        # The maximum gives higher grades to documents with larger weights, because the ideal does not depend on which
        # document has which grade. So the search for the largest ratio finds it, for negative weights too.
        is_present, weight = self.is_present[row], self.weight[row]
        is_labeled = is_present & (level >= 0)
        is_open = is_present & (level < 0)
        count, steps = is_open.sum(axis=1), np.diff(self.gains)
        at_least = is_labeled[:, :, np.newaxis] & (level[:, :, np.newaxis] >= np.arange(1, len(self.levels)))
        at_least = self.outside_counts[row] + at_least.sum(axis=1)
        if len(self.ideal):
            ideal_ranks = at_least.T[:, :, np.newaxis] + np.arange(level.shape[1] + 1)
            ideal = steps[:, np.newaxis, np.newaxis] * self.ideal[np.minimum(ideal_ranks, len(self.ideal) - 1)]
        else:
            ideal = np.zeros((len(steps), len(row), level.shape[1] + 1))
        gain_sum = (np.where(is_labeled, self.gains[level], 0.0) * weight).sum(axis=1)
        # A plain sum is a ratio with the constant denominator 1.
        fixed = np.full(len(row), 0.0 if len(self.ideal) else 1.0)
        bounds = np.empty((2, len(row)))
        for i, sign in ((0, -1.0), (1, 1.0)):
            # Open documents by decreasing weight for the maximum, increasing for the minimum.
            ordered = -np.sort(np.where(is_open, -sign * weight, np.inf), axis=1)
            summed = np.zeros((len(row), level.shape[1] + 1))
            np.cumsum(np.where(np.isfinite(ordered), ordered, 0.0), axis=1, out=summed[:, 1:])
            terms = RatioTerms(count, count, steps, summed, ideal, (sign * gain_sum, fixed))
            all_rows, zero_counts = np.arange(len(row)), np.zeros((len(row), len(steps)), dtype=np.int64)
            largest = np.maximum(terms.ratio(all_rows, terms.greatest()), terms.ratio(all_rows, zero_counts))
            bounds[i] = sign * largest
        return bounds

    @property
    def is_open(self) -> Bools:
        """Whether each document can be labeled and has no label: (T, W)."""
        return (self.ranks > 0).any(axis=0) & (self.level < 0)

    def label_effects(self, topic_indices: Ints, level: Ints) -> Floats:
        """Return how much each grade of each open document raises the minimum and lowers the maximum: (2, T, W, S)."""
        # `topic_indices`: (T,); `level`: (T, W), the labels of these topics.
        row, column = np.nonzero((self.ranks[:, topic_indices] > 0).any(axis=0) & (level < 0))
        size = len(self.levels)
        # One row for each open document and grade, so that `bounds` runs once for all of them.
        trial_levels = np.repeat(level[row], size, axis=0)
        trial_levels[np.arange(len(trial_levels)), np.repeat(column, size)] = np.tile(np.arange(size), len(row))
        effects = np.zeros((2, *level.shape, size))
        bounds = self.bounds(topic_indices, level)
        new_bounds = self.bounds(np.repeat(topic_indices[row], size), trial_levels).reshape(2, len(row), size)
        effects[0, row, column] = new_bounds[0] - bounds[0, row, np.newaxis]
        effects[1, row, column] = bounds[1, row, np.newaxis] - new_bounds[1]
        return effects

    def chances(self, level: Ints) -> Floats:
        """Estimate the probability of each grade of each document from ranks and labels: (T, W, S)."""
        # The prior has grade 0 for half of the documents. It is updated with the labels of all documents, then of those
        # with similar best ranks in as many runs, then of the topic.
        is_returned = (self.ranks > 0).any(axis=0)
        best_rank = np.where(self.ranks > 0, self.ranks, np.iinfo(np.int64).max).min(axis=0)
        # Documents with similar best ranks, returned by one run or both, have similar probabilities of relevance.
        stratum = np.searchsorted((1, 3, 6, 11), best_rank) * 2 + (self.ranks > 0).all(axis=0)
        is_labeled, size = is_returned & (level >= 0), len(self.levels)
        row, column = np.nonzero(is_labeled)
        # Without labels: half of the probability for grade 0, the rest equal.
        prior = np.append(0.5, np.full(size - 1, 0.5 / (size - 1)))
        counts = np.zeros((stratum.max() + 1, size))
        np.add.at(counts, (stratum[row, column], level[row, column]), 1.0)
        prior = _shrink(counts.sum(axis=0), prior)
        stratum_prior = _shrink(counts, prior)
        counts = np.zeros((len(level), size))
        np.add.at(counts, (row, level[row, column]), 1.0)
        return _shrink(counts[:, np.newaxis, :], stratum_prior[stratum])

    def leader(self, level: Ints, chances: Floats) -> int:
        """Return the run with the higher expected mean: 0 for the first, 1 for the second."""
        size, is_returned = len(self.gains), (self.ranks > 0).any(axis=0)
        is_open = (level < 0)[..., np.newaxis]
        probabilities = np.where(is_open, chances, np.eye(size)[level])
        gains = (probabilities @ self.gains) * is_returned
        ideal = np.ones(len(gains))
        if len(self.ideal):
            # The expected ideal is approximated by the ideal of expected gains.
            ideal_gains = -np.sort(-gains, axis=1)[:, : len(self.ideal) - 1]
            ideal = (ideal_gains * np.diff(self.ideal)[: ideal_gains.shape[1]]).sum(axis=1)
        return int(((gains * self.weight).sum(axis=1) / np.maximum(ideal, _ROUNDING)).sum() < 0)

    def priority(self, level: Ints, effects: Floats) -> Floats:
        """Return the expected change of the deciding bound by a label of each document, in the mean: (T, W)."""
        probabilities = self.chances(level)
        return (probabilities * effects[self.leader(level, probabilities)]).sum(axis=2) / len(self.topics)


def _shrink(counts: Floats, prior: Floats) -> Floats:
    return (counts + _PRIOR_LABELS * prior) / (counts.sum(axis=-1, keepdims=True) + _PRIOR_LABELS)


def winner(bounds: Floats) -> int | None:
    """Return which run is better for all grades of open documents: 0 the first, 1 the second; None if undecided."""
    low, high = bounds.mean(axis=1)
    return 0 if low > _ROUNDING else 1 if high < -_ROUNDING else None


def build_comparison(
    qrels: Qrels,
    first: Any,
    second: Any,
    measure: str | Measure,
    *,
    highest: float | None = None,
    topics: TopicPolicy = "qrels",
    outside: int = 0,
    policies: Mapping[str, Any] | None = None,
) -> OpenComparison:
    """Align two runs by document, with `outside` more documents of each topic that get no label."""
    measure, cutoff = _check_measure(measure)
    options: dict[str, Any] = {"depth": cutoff, **(policies or {})}
    judged_lists = [judge(qrels, run, **options) for run in (first, second)]
    topic_ids = _counted_topics(qrels, judged_lists, topics)
    levels = grade_levels(judged_lists[0], measure, highest)
    if (max_grade := float(qrels.grades.max())) > levels[-1]:
        problem = f"grades must be at most `highest`, {levels[-1]:g}, got {max_grade:g}"
        raise InputError(problem, fix="use a larger `highest`")
    # Qrels with an ID that no document has: all returned documents are unjudged, and all topics count.
    no_judgments = {topic_id: {"": 0} for topic_id in topic_ids}
    full_lists = [judge(no_judgments, run, **options) for run in (first, second)]
    docs: list[dict[str, None]] = [{} for _ in topic_ids]
    for judged_list in full_lists:
        rows = judged_list.returned_docs
        for topic, doc in zip(rows.topic.tolist(), rows.doc.to_pylist(), strict=True):
            docs[topic].setdefault(doc)
    # Topics are padded to the same width; padding has rank 0 in both runs.
    width = max(1, *map(len, docs)) + outside
    weights, gains = _rank_weights_and_gains(measure, cutoff, levels)
    ranks = np.zeros((2, len(topic_ids), width), dtype=np.int64)
    columns = [{doc: i for i, doc in enumerate(topic_docs)} for topic_docs in docs]
    for run, judged_list in enumerate(full_lists):
        rows = judged_list.returned_docs
        for topic, rank, doc in zip(rows.topic.tolist(), rows.rank.tolist(), rows.doc.to_pylist(), strict=True):
            ranks[run, topic, columns[topic][doc]] = rank
    level = np.full((len(topic_ids), width), -1)
    outside_counts = np.zeros((len(topic_ids), len(levels) - 1), dtype=np.int64)
    codes = {name: i for i, name in enumerate(topic_ids)}
    index = qrels.index
    grade = np.searchsorted(levels, np.maximum(index.grade, 0.0))
    for topic, doc, grade_index in zip(index.topic.tolist(), index.row_names, grade.tolist(), strict=True):
        if (row := codes.get(index.topics[topic])) is None:
            continue
        if (column := columns[row].get(doc)) is None:
            outside_counts[row, :grade_index] += 1
        else:
            level[row, column] = grade_index
    is_present: Bools = np.any(ranks > 0, axis=0)
    # Extra columns for documents outside both lists, which could raise the ideal.
    is_present[:, width - outside :] = True
    ideal = np.cumsum(weights) if type(measure) in _RATIOS else np.zeros(0)
    weight = weights[ranks[0]] - weights[ranks[1]]
    arrays = is_present, weight, ranks, level, levels, gains, outside_counts, ideal
    return OpenComparison(measure, tuple(topic_ids), tuple(map(tuple, docs)), *arrays)


def _counted_topics(qrels: Qrels, judged_lists: list[Judged], topics: TopicPolicy) -> list[str]:
    topic_ids = list(qrels.topics)
    if topics != "qrels":
        present = (np.array(topic_ids)[judged_list.present].tolist() for judged_list in judged_lists)
        run_topics = set(judged_lists[0].extra).union(judged_lists[1].extra, *present)
        topic_ids = sorted(run_topics if topics == "run" else run_topics & set(topic_ids))
    if not topic_ids:
        raise InputError("the runs and qrels share no topic", fix="use runs of the topics in the qrels")
    return topic_ids


def _check_measure(measure: str | Measure) -> tuple[Measure, int]:
    """Return the parsed measure and its cutoff; raise MeasureError if it is neither a sum nor a share of the ideal."""
    measure = parse(measure)
    cutoff: int | None = getattr(measure, "cutoff", None)
    is_unsupported = type(measure) not in (*_SUMS, *_RATIOS) or measure.judged_only  # type: ignore[attr-defined]
    if is_unsupported or getattr(measure, "undefined", 0.0) != 0.0 or not isinstance(getattr(measure, "gain", ""), str):
        raise MeasureError(
            f"`decide` does not support the measure {measure}. Fix: use a measure such as nDCG@10 or P@10"
        )
    if cutoff is None:
        raise MeasureError(f"{measure} must have a cutoff. Fix: use nDCG@10, for example")
    return measure, cutoff


def _rank_weights_and_gains(measure: Measure, cutoff: int, levels: Floats) -> tuple[Floats, Floats]:
    """Return the weight of each rank, (K + 1,) with 0 first, and the gain of each grade, (S,), from measured scores."""
    if sum_measure := _RATIOS.get(type(measure)):  # type: ignore[arg-type]
        parameters = ("cutoff", "gain", *(("discount", "base") if sum_measure is DCG else ()))
        measure = sum_measure(**{name: getattr(measure, name) for name in parameters})
    # Scores of single-document topics give weights and gains without knowing the formula of the measure.
    cases = [(rank, levels[-1]) for rank in range(1, cutoff + 1)] + [(1, float(grade)) for grade in levels]
    qrels = {f"{i:09d}": {"d": grade} for i, (_, grade) in enumerate(cases)}
    run = {f"{i:09d}": [*map(str, range(1, rank)), "d"] for i, (rank, _) in enumerate(cases)}
    scores = measure(judge(qrels, run))
    return np.append(0.0, scores[:cutoff]), scores[cutoff:] / (scores[0] or 1.0)
