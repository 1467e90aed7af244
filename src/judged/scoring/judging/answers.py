"""Answers of one system with their verdicts: the input of measures of answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints

SUPPORT, PARTIAL, NOT, CONTRADICTS, FAILED = "support", "partial", "not", "contradicts", "failed"
"""Verdicts on whether a sentence or an answer supports a claim; ``failed``: a judge was asked but gave no verdict."""


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Verdicts on a sequence of elements, as shares of their judges; NaN for an element without a verdict."""

    topic: Ints  # (N,)
    full: Floats  # (N,): share of judges with verdict `support`
    partial: Floats  # (N,)
    against: Floats  # (N,): share of judges with verdict `contradicts`

    @classmethod
    def of(cls, topic: Any, verdicts: Sequence[str | None]) -> Verdicts:
        """Build verdicts from one verdict per element; None and ``failed`` are missing."""
        has_verdict = np.array([verdict not in (None, FAILED) for verdict in verdicts], dtype=np.bool_)
        shares = (
            np.where(has_verdict, [float(verdict == kind) for verdict in verdicts], np.nan)
            for kind in (SUPPORT, PARTIAL, CONTRADICTS)
        )
        return cls(np.asarray(topic, dtype=np.int64), *shares)

    @property
    def is_missing(self) -> Bools:
        """Whether each element has no verdict: (N,)."""
        return np.isnan(self.full)

    def value(self, partial: float) -> Floats:
        """Return the value of each element, where partial support counts `partial`: (N,)."""
        return self.full + partial * self.partial

    def replace_where(self, where: Bools, full: float, against: float = 0.0) -> Verdicts:
        """Return verdicts in which the marked elements have these shares."""
        columns = ((self.full, full), (self.partial, 0.0), (self.against, against))
        return Verdicts(self.topic, *(np.where(where, share, column) for column, share in columns))


class Pieces(NamedTuple):
    """Elements (nuggets, sentences, citations, ...) whose weighted mean is the score of a measure."""

    kind: str  # a key of `JudgedAnswers.names`
    topic: Ints  # (N,)
    value: Floats  # (N,): NaN if unknown
    weight: Floats | Bools  # (N,): 0 for elements that do not count


@dataclass(frozen=True, eq=False)
class JudgedAnswers:
    """Answers of one system to T topics, with verdicts; the counterpart of `Judged`. A missing verdict is NaN.

    Sentences of answers that abstained are left out, because they claim nothing. ``documents`` are those in the context
    or cited, and those that have a judgment.
    """

    query_ids: tuple[str, ...]
    name: str
    has_answer: Bools  # (T,)
    abstained: Floats  # (T,): 1 or 0; NaN: unknown
    answerable: Floats  # (T,): 1 or 0; NaN: unknown
    words: Floats  # (T,): length of the answer; NaN: unknown
    correctness: Verdicts  # (T,)
    has_reference: Bools  # (T,): whether the answer has a reference with which it must agree
    nuggets: Verdicts  # (N,)
    vital: Bools  # (N,)
    grounded: Verdicts  # (S,): whether each sentence is supported by the whole context
    citations: Verdicts  # (C,): whether each sentence is supported by each document that it cites
    sentence: Ints  # (C,): index of its sentence
    citation_position: Ints  # (C,): position among the citations of its sentence, from 1
    # documents: (D,); the rank in the context is 0 for documents outside
    document_topic: Ints
    grade: Floats  # NaN: without a judgment
    is_judged: Bools  # whether it has a judgment; stays the same where grades are filled in
    rank: Ints
    cited: Bools
    # evidence: (E,): indices of nuggets and of the documents that contain them
    evidence_nugget: Ints
    evidence_document: Ints
    # texts; None: unknown
    texts: Sequence[str | None]  # (T,): answers; empty for an abstention
    references: Sequence[Sequence[str]]  # (T,): reference answers; an empty text: the question cannot be answered
    contexts: Sequence[str | None]  # (T,): all passages of the context
    sentence_texts: Sequence[str | None]  # (S,)
    judged_kinds: frozenset[str] = frozenset()  # attributes with at least one verdict, for any system
    highest: float = 1.0  # highest grade that a document can have
    names: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])

    def __len__(self) -> int:
        return len(self.query_ids)

    def fill_unjudged(self, *, best: bool) -> JudgedAnswers:
        """Return answers in which all missing verdicts of the judged kinds are the best, or the worst, possible."""
        full, against = float(best), float(not best)
        unknown = np.isnan(self.abstained) & self.has_answer
        parts: dict[str, Any] = {}
        for name in self.judged_kinds:
            verdicts = self.verdicts_on(name)
            parts[name] = verdicts.replace_where(verdicts.is_missing, full, against)
        returned = np.isnan(self.grade) & ((self.rank > 0) | self.cited)
        return replace(
            self,
            **parts,
            abstained=np.where(unknown, (self.answerable == 0) == best, self.abstained),
            grade=np.where(returned, self.highest if best else 0.0, self.grade),
        )

    def verdicts_on(self, name: str) -> Verdicts:
        """Return an attribute by its name: nuggets, citations, grounded or correctness."""
        return getattr(self, name)

    def mean(self, pieces: Pieces) -> Floats:
        """Average the pieces of each topic with a known value; NaN if there is none: (T,)."""
        has_value = ~np.isnan(pieces.value)
        weight = np.where(has_value, pieces.weight, 0.0)
        total = self._sum(pieces.topic, weight * np.where(has_value, pieces.value, 0.0))
        denominator = self._sum(pieces.topic, weight)
        return np.divide(total, denominator, out=np.full(len(self), np.nan), where=denominator > 0)

    def _sum(self, topic: Ints, values: Floats) -> Floats:
        return np.bincount(topic, values, minlength=len(self)).astype(np.float64)

    def by_sentence(self, values: Floats, *, least: bool, uncited: float) -> Floats:
        """Return the least or greatest value of each sentence's citations: (C,) to (S,); NaN if none is known."""
        sign = 1.0 if least else -1.0
        extremes = np.full(len(self.grounded.topic), np.inf)
        has_value = ~np.isnan(values)
        np.minimum.at(extremes, self.sentence[has_value], sign * values[has_value])
        cites = np.bincount(self.sentence, minlength=len(extremes)) > 0
        return np.where(cites, np.where(np.isinf(extremes), np.nan, sign * extremes), uncited)


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
    answer: str | None = None,
    references: Sequence[str] = (),
    passages: Sequence[str] | None = None,
    sentence_texts: Sequence[str | None] = (),
) -> JudgedAnswers:
    """Build one judged answer from verdicts: ``support``, ``partial``, ``not``, ``contradicts``; None: unjudged.

    Parameters
    ----------
    vital, okay
        Verdict on each nugget.
    sentences
        For each sentence, the verdict on each of its citations.
    grounded
        For each sentence, the verdict whether the whole context supports it.
    correct
        Verdict on the answer.
    abstained, answerable, words
        Whether the system abstained, whether the question can be answered, and the length of the answer.
    context, cited, missing
        Grades of the passages in the context, the cited ranks, and the grades of other documents.
    holds
        For each passage, the indices of the nuggets that it contains, counted from 0.
    answer, references, passages, sentence_texts
        Texts of the answer, the reference answers, the passages in the context, and the sentences.
    """
    verdicts, count = [*vital, *okay], len(sentences) or len(sentence_texts)
    grades = [np.nan if grade is None else float(grade) for grade in (*context, *missing)]
    citations = [
        (sentence, position, verdict)
        for sentence, of_sentence in enumerate(sentences)
        for position, verdict in enumerate(of_sentence, 1)
    ]
    evidence = [(nugget, document) for document, nuggets in enumerate(holds) for nugget in nuggets]
    ranks = np.array([*range(1, len(context) + 1), *(0 for _ in missing)], dtype=np.int64)

    def integers(values: Sequence[int]) -> Ints:
        return np.array(values, dtype=np.int64)

    def number(value: bool | int | None) -> Floats:
        return np.array([np.nan if value is None else float(value)])

    return JudgedAnswers(
        query_ids=("answer",),
        name="answer",
        has_answer=np.ones(1, dtype=np.bool_),
        abstained=number(abstained),
        answerable=number(answerable),
        words=number(words),
        correctness=Verdicts.of([0], [correct]),
        has_reference=np.ones(1, dtype=np.bool_),
        nuggets=Verdicts.of(np.zeros(len(verdicts)), verdicts),
        vital=np.arange(len(verdicts)) < len(vital),
        grounded=Verdicts.of(np.zeros(count), [None] * count if grounded is None else grounded),
        citations=Verdicts.of(np.zeros(len(citations)), [verdict for _, _, verdict in citations]),
        sentence=integers([sentence for sentence, _, _ in citations]),
        citation_position=integers([position for _, position, _ in citations]),
        document_topic=np.zeros(len(grades), dtype=np.int64),
        grade=np.array(grades),
        is_judged=~np.isnan(np.array(grades)),
        rank=ranks,
        cited=np.isin(ranks, cited),
        evidence_nugget=integers([nugget for nugget, _ in evidence]),
        evidence_document=integers([document for _, document in evidence]),
        texts=(answer,),
        references=(references,),
        contexts=(None if passages is None else "\n".join(passages),),
        sentence_texts=sentence_texts or (None,) * count,
        judged_kinds=frozenset(
            {"correctness", "nuggets", "citations"} | ({"grounded"} if grounded is not None else set())
        ),
        highest=max([1.0, *(grade for grade in grades if grade > 0)]),
    )
