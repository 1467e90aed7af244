"""`decide`: which labels would most likely decide which of two runs is better, whatever the others would be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.errors import InputError
from judged.labels.contest import contest, winner
from judged.results import COUNT, TEXT, Answer, Sentences, Table, columns_of, significant
from judged.results.decimals import counted
from judged.results.spelling import hinting
from judged.stats.inputs import check_count

if TYPE_CHECKING:
    from judged._types import Floats, Ints
    from judged.labels.contest import Contest
    from judged.results import Block
    from judged.scoring.judging import Precision, TiePolicy, TopicPolicy
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
            return said, "Equal: both have the same mean on these topics, whatever is labelled among their first."
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
                f" {self.expected} of the list and nine of ten by {self.most_expected}, if the list is labelled in"
                " this order; made again after some labels, it takes fewer."
            )
        return said, left


@hinting
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
