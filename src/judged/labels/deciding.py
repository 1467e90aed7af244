"""`decide`: which labels would most likely decide which of two runs is better, whatever the others would be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.errors import InputError, MeasureError
from judged.results import COUNT, TEXT, Answer, Sentences, Table, columns_of, significant
from judged.results.decimals import counted
from judged.results.spelling import with_parameter_hints
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


_DRAWS = 20  # of grades for all open documents


@dataclass(frozen=True)
class NextLabel:
    """One label that would help to decide."""

    query_id: str
    doc_id: str
    priority: float  # by how much it is expected to move the end of the range that decides
    first_rank: int | None  # None: not among the first of this run
    second_rank: int | None


@dataclass(frozen=True, eq=False, repr=False)
class Decision(Answer):
    """What labels have decided between two runs, and which to give next."""

    kind: ClassVar[str] = "deciding"

    first: str
    second: str
    measure: str
    n: int  # topics
    low: float  # the least and the greatest difference of the means, first minus second
    high: float
    decided: bool
    # whether it stays decided if further documents, outside both runs' first, are of the highest grade
    decided_outside: bool
    known: int  # labels among the first documents of both, and those that are open
    open: int
    # how many labels are left in half of the draws, and in nine of ten; None where it is decided or they do not decide
    expected: int | None
    most_expected: int | None
    labels: tuple[NextLabel, ...]

    def blocks(self) -> tuple[Block, ...]:
        """Give what is known, and the list to label."""
        show, ranks = significant(4), (("first_rank", COUNT, "rank first"), ("second_rank", COUNT, "rank second"))
        columns = columns_of(self.labels, ("query_id", TEXT), ("doc_id", TEXT), ("priority", show), *ranks)
        return Sentences(self.sentences), Table("labels", columns, labels=2)

    def facts(self) -> dict[str, Any]:
        """Give the range, and how many labels are left."""
        return {name: value for name, value in vars(self).items() if name != "labels"}

    @property
    def sentences(self) -> tuple[str, ...]:
        """How far the difference can still go, and how many labels are left."""
        said = (
            f"{self.measure}, {self.first} minus {self.second}, over {counted(self.n, 'topic')}:"
            f" between {self.low:+.4f} and {self.high:+.4f}, whatever the {counted(self.open, 'open document')} of"
            " their first would be graded."
        )
        if self.low == self.high == 0:
            return said, "Equal: both have the same mean on these topics, whatever is labeled among their first."
        if self.decided:
            better = self.first if self.low > 0 else self.second
            beyond = "also" if self.decided_outside else "but not"
            sure = (
                f"Decided: {better} has the higher mean on these topics, {beyond} if documents that neither has among"
                " its first are given the highest grade. That says nothing of other topics."
            )
            return said, sure
        left = f"Not decided: at most {counted(self.open, 'label')} would tell."
        if self.expected is not None:
            left += (
                f" Of {_DRAWS} draws of their grades, from ranks and the labels so far, half are decided by the first"
                f" {self.expected} of the list and nine of ten by {self.most_expected}, if the list is labeled in"
                " this order; made again after some labels, it takes fewer."
            )
        return said, left


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
    """Say whether labels decide which run is better, whatever the others would be, and which to give next.

    The difference of the means has a range over all grades that unjudged documents among the first of either run
    could get. As long as 0 is in it, nothing is decided. The labels to give next are those that are expected to move
    most the end of the range that decides for the run that is expected to be better. What is expected of a document
    follows from its ranks, and from the labels of other documents of such ranks and of the same topic.

    The ideal of nDCG and NCG is made of the labels too: of those that there are, and of all that the open documents
    could get. Documents that neither run has among its first count with the label that they have, if any.

    Parameters
    ----------
    qrels
        The labels so far: a `Qrels`, or anything that `Qrels.of` takes.
    first, second
        Two runs.
    measure
        P, CG, DCG, RBP, nDCG or NCG, with a cutoff.
    limit
        List at most so many labels; all for None.
    highest
        The highest grade of the scale; None: as in `unjudged_range`.
    topics
        Which topics count: of the ``qrels``, of a ``run``, or ``both``.
    ties, precision
        As in `judge`.
    seed
        Of the draws by which it is told how many labels are left.

    Returns
    -------
    Decision

    Raises
    ------
    InputError
        If no topic is left, or a grade is above the highest.
    MeasureError
        If the measure is another one, or has no cutoff.

    Examples
    --------
    >>> found = decide({"q": {"a": 1, "b": 0}}, {"q": ["a", "b"]}, {"q": ["b", "c"]}, "P@2")
    >>> found.low, found.high, found.decided, [(label.doc_id, label.priority) for label in found.labels]
    (0.0, 0.5, False, [('c', 0.25)])
    """
    if limit is not None:
        check_count("limit", limit, 0)
    if seed < 0:
        raise InputError(f"the seed {seed} is below 0", fix="give a whole number from 0")
    qrels, runs = Qrels.of(qrels), (Run.of(first, name="first"), Run.of(second, name="second"))
    policies: dict[str, Any] = {"ties": ties, "precision": precision}
    made = contest(qrels, *runs, measure, highest=highest, topics=topics, policies=policies)
    every, level = np.arange(len(made.topics)), made.level
    ends = made.bounds(every, level)
    decided = winner(ends) is not None
    outside, expected, most = decided, None, None
    if decided:
        wider = contest(
            qrels,
            *runs,
            measure,
            highest=highest,
            topics=topics,
            policies=policies,
            outside=made.measure.cutoff,  # type: ignore[attr-defined]
        )
        outside = winner(wider.bounds(every, wider.level)) is not None
    priority = made.priority(level, made.steps(every, level))
    at, doc = np.nonzero(made.open)
    order = np.argsort(-priority[at, doc], kind="stable")
    at, doc = at[order], doc[order]
    if not decided and len(at):
        expected, most = _expected(made, at, doc, seed)
    low, high = ends.mean(axis=1).tolist()
    ranks = [[rank or None for rank in made.ranks[run, at, doc].tolist()] for run in (0, 1)]
    labels = tuple(
        NextLabel(made.topics[topic], made.docs[topic][place], float(priority[topic, place]), *where)
        for topic, place, *where in zip(at[:limit].tolist(), doc[:limit].tolist(), *ranks, strict=False)
    )
    known = int(((made.ranks > 0).any(axis=0) & (level >= 0)).sum())
    about = runs[0].name, runs[1].name, str(made.measure), len(every), low, high, decided, outside
    return Decision(*about, known, len(at), expected, most, labels)


def needed(made: Contest, at: Ints, doc: Ints, level: Ints) -> int | None:
    """Count the labels, given in this order, (U,) each, after which it is decided if these are all labels: (T, W)."""
    few, many = 0, len(at) + 1
    while few < many:
        tried = (few + many) // 2
        seen = level.copy()
        seen[at[tried:], doc[tried:]] = -1
        if tried > len(at) or winner(made.bounds(np.arange(len(made.topics)), seen)) is not None:
            many = tried
        else:
            few = tried + 1
    return few if few <= len(at) else None


def _expected(made: Contest, at: Ints, doc: Ints, seed: int) -> tuple[int, int] | tuple[None, None]:
    """Draw grades of all open documents, and give the median of the labels needed, and nine tenths."""
    random, chances = np.random.default_rng(seed), made.chances(made.level)[at, doc]
    left: Floats = np.full(_DRAWS, np.inf)
    for draw in range(_DRAWS):
        level = made.level.copy()
        level[at, doc] = (random.random((len(at), 1)) > np.cumsum(chances, axis=1)[:, :-1]).sum(axis=1)
        left[draw] = needed(made, at, doc, level) or np.inf
    half, most = np.quantile(left, (0.5, 0.9), method="higher").tolist()
    return (int(half), int(most)) if np.isfinite(most) else (None, None)


_SUMS, _RATIOS = (P, CG, DCG, RBP), {nDCG: DCG, NCG: CG}
_ROUNDING = 1e-12
_STRENGTH = 5.0  # how many labels outweigh what is believed of a document without them


@dataclass(frozen=True, eq=False)
class Contest:
    """The documents that either run has up to the cutoff, and what a label of each could do."""

    measure: Measure
    topics: tuple[str, ...]  # T
    docs: tuple[tuple[str, ...], ...]  # of each topic, at most W
    # (T, W) each; beyond W there may be columns of documents outside both, which nobody labels and which weigh nothing
    exists: Bools
    weight: Floats  # in the first run minus in the second
    ranks: Ints  # (2, T, W): in each run; 0 where it is not among the first
    level: Ints  # the place of its grade in `levels`; -1 without one
    levels: Floats  # (S,): the grades that there may be, rising from 0
    worth: Floats  # (S,): what each gains, from 0 to 1
    reach: Ints  # (T, S - 1): labels outside both with at least each grade above 0
    ideal: Floats  # (K + 1,): the weights of the first 0, 1, ... ranks, added up; empty for a sum

    def bounds(self, topic: Ints, level: Ints) -> Floats:
        """Give the least and the greatest difference of topics, (V,), with labels, (V, W): (2, V)."""
        # The greatest difference gives better grades to documents with more weight, as the ideal does not see which
        # has which; so the search for the greatest ratio finds it, with weights below 0 as well.
        exists, weight = self.exists[topic], self.weight[topic]
        known = exists & (level >= 0)
        is_open = exists & (level < 0)
        count, steps = is_open.sum(axis=1), np.diff(self.worth)
        above = self.reach[topic] + (known[:, :, np.newaxis] & (level[:, :, np.newaxis] >= self._places)).sum(axis=1)
        if len(self.ideal):
            places = above.T[:, :, np.newaxis] + np.arange(level.shape[1] + 1)
            ideal = steps[:, np.newaxis, np.newaxis] * self.ideal[np.minimum(places, len(self.ideal) - 1)]
        else:
            ideal = np.zeros((len(steps), len(topic), level.shape[1] + 1))
        gained = (np.where(known, self.worth[level], 0.0) * weight).sum(axis=1)
        fixed = np.full(len(topic), 0.0 if len(self.ideal) else 1.0)
        ends = np.empty((2, len(topic)))
        for end, sign in ((0, -1.0), (1, 1.0)):
            ordered = -np.sort(np.where(is_open, -sign * weight, np.inf), axis=1)
            summed = np.zeros((len(topic), level.shape[1] + 1))
            np.cumsum(np.where(np.isfinite(ordered), ordered, 0.0), axis=1, out=summed[:, 1:])
            parts = RatioTerms(count, count, steps, summed, ideal, (sign * gained, fixed))
            rows, nothing = np.arange(len(topic)), np.zeros((len(topic), len(steps)), dtype=np.int64)
            reached = np.maximum(parts.ratio(rows, parts.greatest()), parts.ratio(rows, nothing))
            ends[end] = sign * reached
        return ends

    @property
    def _places(self) -> Ints:
        return np.arange(1, len(self.levels))

    @property
    def open(self) -> Bools:
        """Mark what may be labeled and is not: (T, W)."""
        return (self.ranks > 0).any(axis=0) & (self.level < 0)

    def steps(self, topics: Ints, level: Ints) -> Floats:
        """Give what each grade of each open document adds to the least, and takes from the greatest: (2, T, W, S)."""
        # Of these topics, (T,); `level`: (T, W), what is known of them.
        at, doc = np.nonzero((self.ranks[:, topics] > 0).any(axis=0) & (level < 0))
        size = len(self.levels)
        tried = np.repeat(level[at], size, axis=0)
        tried[np.arange(len(tried)), np.repeat(doc, size)] = np.tile(np.arange(size), len(at))
        moved = np.zeros((2, *level.shape, size))
        now = self.bounds(topics, level)
        then = self.bounds(np.repeat(topics[at], size), tried).reshape(2, len(at), size)
        moved[0, at, doc] = then[0] - now[0, at, np.newaxis]
        moved[1, at, doc] = now[1, at, np.newaxis] - then[1]
        return moved

    def chances(self, level: Ints) -> Floats:
        """Give the probability of each grade of each document, from ranks and from what is known: (T, W, S)."""
        # Half of all documents are believed to have grade 0 as long as nothing is known. Grades are counted by how
        # early the document stands, and in how many of the two runs; then by topic.
        listed = (self.ranks > 0).any(axis=0)
        best = np.where(self.ranks > 0, self.ranks, np.iinfo(np.int64).max).min(axis=0)
        stratum = np.searchsorted((1, 3, 6, 11), best) * 2 + (self.ranks > 0).all(axis=0)
        known, size = listed & (level >= 0), len(self.levels)
        at, doc = np.nonzero(known)
        usual = np.append(0.5, np.full(size - 1, 0.5 / (size - 1)))
        counts = np.zeros((stratum.max() + 1, size))
        np.add.at(counts, (stratum[at, doc], level[at, doc]), 1.0)
        usual = _shrunk(counts.sum(axis=0), usual)
        of_stratum = _shrunk(counts, usual)
        counts = np.zeros((len(level), size))
        np.add.at(counts, (at, level[at, doc]), 1.0)
        return _shrunk(counts[:, np.newaxis, :], of_stratum[stratum])

    def leader(self, level: Ints, chances: Floats) -> int:
        """Tell which run is expected to be better: 0 the first, 1 the second."""
        size, listed = len(self.worth), (self.ranks > 0).any(axis=0)
        known = np.eye(size)[level][..., :] * (level >= 0)[..., np.newaxis] + chances * (level < 0)[..., np.newaxis]
        gain = (known @ self.worth) * listed
        top = -np.sort(-gain, axis=1)[:, : len(self.ideal) - 1] if len(self.ideal) else gain[:, :0]
        best = (top * np.diff(self.ideal)[: top.shape[1]]).sum(axis=1) if len(self.ideal) else np.ones(len(gain))
        return int(((gain * self.weight).sum(axis=1) / np.maximum(best, _ROUNDING)).sum() < 0)

    def priority(self, level: Ints, moved: Floats) -> Floats:
        """Give by how much a label is expected to move the end that decides, in the mean: (T, W)."""
        chances = self.chances(level)
        return (chances * moved[self.leader(level, chances)]).sum(axis=2) / len(self.topics)


def _shrunk(counts: Floats, believed: Floats) -> Floats:
    return (counts + _STRENGTH * believed) / (counts.sum(axis=-1, keepdims=True) + _STRENGTH)


def winner(ends: Floats) -> int | None:
    """Say who is better whatever the open labels are: 0 the first, 1 the second; None as long as it is open."""
    low, high = ends.mean(axis=1)
    return 0 if low > _ROUNDING else 1 if high < -_ROUNDING else None


def contest(
    qrels: Qrels,
    first: Any,
    second: Any,
    measure: str | Measure,
    *,
    highest: float | None = None,
    topics: TopicPolicy = "qrels",
    outside: int = 0,
    policies: Mapping[str, Any] | None = None,
) -> Contest:
    """Lay two runs next to each other, with `outside` further documents of each topic that nobody labels."""
    measure, cutoff = _summed(measure)
    how: dict[str, Any] = {"depth": cutoff, **(policies or {})}
    lists = [judge(qrels, run, **how) for run in (first, second)]
    names = _topics(qrels, lists, topics)
    levels = grade_levels(lists[0], measure, highest)
    if (most := float(qrels.grades.max())) > levels[-1]:
        raise InputError(f"the grade {most:g} is above the highest, {levels[-1]:g}", fix="give a higher one")
    everything = (
        judge({name: {"": 0} for name in names}, first, **how),
        judge({name: {"": 0} for name in names}, second, **how),
    )
    docs: list[dict[str, None]] = [{} for _ in names]
    for one in everything:
        for topic, doc in zip(one.returned_docs.topic.tolist(), one.returned_docs.doc.to_pylist(), strict=True):
            docs[topic].setdefault(doc)
    width = max(1, *map(len, docs)) + outside
    weights, worth = _weights(measure, cutoff, levels)
    ranks = np.zeros((2, len(names), width), dtype=np.int64)
    places = [{doc: at for at, doc in enumerate(found)} for found in docs]
    for run, one in enumerate(everything):
        rows = one.returned_docs
        for topic, rank, doc in zip(rows.topic.tolist(), rows.rank.tolist(), rows.doc.to_pylist(), strict=True):
            ranks[run, topic, places[topic][doc]] = rank
    level, reach = np.full((len(names), width), -1), np.zeros((len(names), len(levels) - 1), dtype=np.int64)
    codes = {name: at for at, name in enumerate(names)}
    index = qrels.index
    grade = np.searchsorted(levels, np.maximum(index.grade, 0.0))
    for topic, doc, place in zip(index.topic.tolist(), index.row_names, grade.tolist(), strict=True):
        if (row := codes.get(index.topics[topic])) is None:
            continue
        if (column := places[row].get(doc)) is None:
            reach[row, :place] += 1
        else:
            level[row, column] = place
    exists: Bools = np.any(ranks > 0, axis=0)
    exists[:, width - outside :] = True
    ideal = np.cumsum(weights) if type(measure) in _RATIOS else np.zeros(0)
    weight = weights[ranks[0]] - weights[ranks[1]]
    return Contest(
        measure, tuple(names), tuple(map(tuple, docs)), exists, weight, ranks, level, levels, worth, reach, ideal
    )


def _topics(qrels: Qrels, lists: list[Judged], topics: TopicPolicy) -> list[str]:
    """Name the topics that count."""
    names = list(qrels.topics)
    if topics != "qrels":
        runs = set(lists[0].extra).union(lists[1].extra, *(np.array(names)[one.present].tolist() for one in lists))
        names = sorted(runs if topics == "run" else runs & set(names))
    if not names:
        raise InputError("no topic is left", fix="use other topics, or runs of these")
    return names


def _summed(measure: str | Measure) -> tuple[Measure, int]:
    """Refuse measures that are no sums over documents up to a cutoff, nor such sums as a share of the ideal's."""
    measure = parse(measure)
    cutoff: int | None = getattr(measure, "cutoff", None)
    refused = type(measure) not in (*_SUMS, *_RATIOS) or measure.judged_only  # type: ignore[attr-defined]
    if refused or getattr(measure, "undefined", 0.0) != 0.0 or not isinstance(getattr(measure, "gain", ""), str):
        raise MeasureError(f"nothing is known of what labels decide by {measure}. Fix: use one such as nDCG@10, P@10")
    if cutoff is None:
        raise MeasureError(f"{measure} looks at every rank. Fix: give it a cutoff, such as nDCG@10")
    return measure, cutoff


def _weights(measure: Measure, cutoff: int, levels: Floats) -> tuple[Floats, Floats]:
    """Ask the measure what each rank weighs, (K + 1,) with 0 for none, and what each grade gains, (S,)."""
    if kind := _RATIOS.get(type(measure)):  # type: ignore[arg-type]
        shared = ("cutoff", "gain", *(("discount", "base") if kind is DCG else ()))
        measure = kind(**{name: getattr(measure, name) for name in shared})
    cells = [(rank, levels[-1]) for rank in range(1, cutoff + 1)] + [(1, float(grade)) for grade in levels]
    qrels = {f"{at:09d}": {"d": grade} for at, (_, grade) in enumerate(cells)}
    run = {f"{at:09d}": [*map(str, range(1, rank)), "d"] for at, (rank, _) in enumerate(cells)}
    scores = measure(judge(qrels, run))
    return np.append(0.0, scores[:cutoff]), scores[cutoff:] / (scores[0] or 1.0)
