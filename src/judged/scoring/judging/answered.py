"""What one system answered and what is known of it: what measures over answers are computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints

SUPPORT, PARTIAL, NOT, CONTRADICTS, FAILED = "support", "partial", "not", "contradicts", "failed"
"""How far a sentence or an answer carries something; ``failed``: somebody was asked, and there is no verdict."""


@dataclass(frozen=True, eq=False)
class Verdicts:
    """How far each of some pieces is carried: the shares of its judges who said so; NaN where there is no verdict."""

    topic: Ints  # (N,)
    full: Floats  # (N,): those who said `support`
    partial: Floats  # (N,)
    against: Floats  # (N,): those who said `contradicts`

    @classmethod
    def of(cls, topic: Any, verdicts: Sequence[str | None]) -> Verdicts:
        """Take one verdict a piece; None and ``failed`` are none."""
        known = np.array([verdict not in (None, FAILED) for verdict in verdicts], dtype=np.bool_)
        shares = (
            np.where(known, [float(verdict == word) for verdict in verdicts], np.nan)
            for word in (SUPPORT, PARTIAL, CONTRADICTS)
        )
        return cls(np.asarray(topic, dtype=np.int64), *shares)

    @property
    def open(self) -> Bools:
        """Which have no verdict: (N,)."""
        return np.isnan(self.full)

    def worth(self, partial: float) -> Floats:
        """Give each its value, where half support is worth `partial`: (N,)."""
        return self.full + partial * self.partial

    def filled(self, where: Bools, full: float, against: float = 0.0) -> Verdicts:
        """Give those that are marked this verdict."""
        parts = ((self.full, full), (self.partial, 0.0), (self.against, against))
        return Verdicts(self.topic, *(np.where(where, value, known) for known, value in parts))


class Pieces(NamedTuple):
    """What a measure over answers is the weighted mean of."""

    of: str  # what they are: a key of `Answered.names`
    topic: Ints  # (N,)
    worth: Floats  # (N,): NaN where that is not known
    weight: Floats | Bools  # (N,): 0 for those that do not count


@dataclass(frozen=True, eq=False)
class Answered:
    """What one system answered to T topics; the counterpart of `Judged`. A verdict that is missing is NaN.

    Sentences of answers that abstained are left out, for they claim nothing. ``documents`` are those of the context,
    those cited, and those that have a judgment.
    """

    query_ids: tuple[str, ...]
    name: str
    given: Bools  # (T,): whether there is an answer
    abstained: Floats  # (T,): 1 or 0; NaN: not known
    answerable: Floats  # (T,): 1 or 0; NaN: not known
    words: Floats  # (T,): the length of the answer; NaN: not known
    correctness: Verdicts  # (T,)
    referenced: Bools  # (T,): whether there is something that the answer must agree with
    nuggets: Verdicts  # (N,)
    vital: Bools  # (N,)
    grounded: Verdicts  # (S,): each sentence, by all of the context together
    citations: Verdicts  # (C,): each sentence with each document that it cites
    sentence: Ints  # (C,): its place among the sentences
    place: Ints  # (C,): which citation of its sentence it is, from 1
    # documents: (D,); the rank in the context is 0 for those outside
    document_topic: Ints
    grade: Floats  # NaN: without a judgment
    known: Bools  # whether it has a judgment, which stays as it is where grades are filled in
    rank: Ints
    cited: Bools
    # evidence: (E,): the places of nuggets and of the documents in which they stand
    evidence_nugget: Ints
    evidence_document: Ints
    asked: frozenset[str] = frozenset()  # of which somebody gave any verdict at all, to any system
    highest: float = 1.0  # the best grade that a document could have
    names: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])

    def __len__(self) -> int:
        return len(self.query_ids)

    def filled(self, *, best: bool) -> Answered:
        """Give everything that is unjudged its best verdict, or its worst; what nobody was asked stays as it is."""
        full, against = float(best), float(not best)
        unknown = np.isnan(self.abstained) & self.given
        parts: dict[str, Any] = {}
        for name in self.asked:
            verdicts = self.verdicts_on(name)
            parts[name] = verdicts.filled(verdicts.open, full, against)
        returned = np.isnan(self.grade) & ((self.rank > 0) | self.cited)
        return replace(
            self,
            **parts,
            abstained=np.where(unknown, (self.answerable == 0) == best, self.abstained),
            grade=np.where(returned, self.highest if best else 0.0, self.grade),
        )

    def verdicts_on(self, name: str) -> Verdicts:
        """Give the verdicts on nuggets, citations, grounded sentences or correctness, by the name of the attribute."""
        return getattr(self, name)

    def mean(self, pieces: Pieces) -> Floats:
        """Average the pieces of each topic that are known; NaN where none is: (T,)."""
        counts = ~np.isnan(pieces.worth)
        weight = np.where(counts, pieces.weight, 0.0)
        total = self._sum(pieces.topic, weight * np.where(counts, pieces.worth, 0.0))
        below = self._sum(pieces.topic, weight)
        return np.divide(total, below, out=np.full(len(self), np.nan), where=below > 0)

    def _sum(self, topic: Ints, values: Floats) -> Floats:
        return np.bincount(topic, values, minlength=len(self)).astype(np.float64)

    def of_sentences(self, values: Floats, *, least: bool, uncited: float) -> Floats:
        """Give each sentence the least or the greatest value of its citations: (C,) to (S,); NaN: none is known."""
        sign = 1.0 if least else -1.0
        found = np.full(len(self.grounded.topic), np.inf)
        known = ~np.isnan(values)
        np.minimum.at(found, self.sentence[known], sign * values[known])
        cites = np.bincount(self.sentence, minlength=len(found)) > 0
        return np.where(cites, np.where(np.isinf(found), np.nan, sign * found), uncited)


def judge_answer(
    *,
    vital: Sequence[str | None] = (),
    okay: Sequence[str | None] = (),
    sentences: Sequence[Sequence[str | None]] = (),
    grounded: Sequence[str | None] | None = None,
    correct: str | None = None,
    abstained: bool | None = False,
    answerable: bool | None = None,
    words: int | None = None,
    context: Sequence[float | None] = (),
    cited: Sequence[int] = (),
    missing: Sequence[float] = (),
    holds: Sequence[Sequence[int]] = (),
) -> Answered:
    """Make one answer of plain verdicts: ``support``, ``partial``, ``not``, ``contradicts``; None: unjudged.

    Parameters
    ----------
    vital, okay
        The verdict on each nugget.
    sentences
        For each sentence, the verdict on each of its citations.
    grounded
        For each sentence, the verdict on all of the context.
    correct
        The verdict on the answer.
    abstained, answerable, words
        Whether it abstained, whether it need not, and how long it is.
    context, cited, missing
        The grades of the passages in the context, which ranks of them are cited, and the grades of other documents.
    holds
        Which nuggets each passage holds, counted from 0.
    """
    verdicts, count = [*vital, *okay], len(sentences)
    grades = [np.nan if grade is None else float(grade) for grade in (*context, *missing)]
    pairs = [(at, place, verdict) for at, made in enumerate(sentences) for place, verdict in enumerate(made, 1)]
    evidence = [(nugget, at) for at, held in enumerate(holds) for nugget in held]
    ranks = np.array([*range(1, len(context) + 1), *(0 for _ in missing)], dtype=np.int64)

    def whole(values: Sequence[int]) -> Ints:
        return np.array(values, dtype=np.int64)

    def number(value: bool | int | None) -> Floats:
        return np.array([np.nan if value is None else float(value)])

    return Answered(
        query_ids=("answer",),
        name="answer",
        given=np.ones(1, dtype=np.bool_),
        abstained=number(abstained),
        answerable=number(answerable),
        words=number(words),
        correctness=Verdicts.of([0], [correct]),
        referenced=np.ones(1, dtype=np.bool_),
        nuggets=Verdicts.of(np.zeros(len(verdicts)), verdicts),
        vital=np.arange(len(verdicts)) < len(vital),
        grounded=Verdicts.of(np.zeros(count), [None] * count if grounded is None else grounded),
        citations=Verdicts.of(np.zeros(len(pairs)), [verdict for _, _, verdict in pairs]),
        sentence=whole([at for at, _, _ in pairs]),
        place=whole([place for _, place, _ in pairs]),
        document_topic=np.zeros(len(grades), dtype=np.int64),
        grade=np.array(grades),
        known=~np.isnan(np.array(grades)),
        rank=ranks,
        cited=np.isin(ranks, cited),
        evidence_nugget=whole([nugget for nugget, _ in evidence]),
        evidence_document=whole([document for _, document in evidence]),
        asked=frozenset({"correctness", "nuggets", "citations"} | ({"grounded"} if grounded is not None else set())),
        highest=max([1.0, *(grade for grade in grades if grade > 0)]),
    )
