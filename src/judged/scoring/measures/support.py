"""Measures of support: whether the citations or the context of an answer support its sentences."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.judging.answers import Pieces
from judged.scoring.measures.aggregates import divide
from judged.scoring.measures.answers import OF_ANSWERS, PARTIAL_SUPPORT, STRICT, NuggetRecall
from judged.scoring.measures.base import AnswerMeasure, param
from judged.scoring.measures.parameters import Parameter, boolean
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged.scoring.judging.answers import JudgedAnswers

FIRST = Parameter("Whether only the first citation of each sentence counts.", False, boolean)
UNCITED = Parameter("Whether sentences without a citation count as not supported.", False, boolean)


@measure(
    category="answers",
    cite="Thakur et al. 2025 (support evaluation of TREC RAG 2024, arXiv 2504.15205)",
    use="You want to know whether the documents that an answer cites support the sentences that cite them.",
    misleads="An answer whose only citation is correct scores 1, even if its other sentences have no support.",
    properties=OF_ANSWERS,
)
class SupportP(AnswerMeasure):
    r"""Support precision: the mean support of a sentence by the documents that it cites, over all citations.

    .. math:: \mathrm{SupportP} = \frac{\sum_{(s, d)\ \mathrm{cited}} v_{sd}}{|\{(s, d)\ \mathrm{cited}\}|}

    v is 1 for full support, `partial` for partial support, and 0 for no support or a contradiction. An answer without
    citations is excluded.

    Examples
    --------
    >>> SupportP().of_answer(sentences=[["support", "not"], ["partial"], []])
    0.5
    >>> SupportP(first=True).of_answer(sentences=[["support", "not"], ["partial"], []])
    0.75
    """

    partial: float = param(PARTIAL_SUPPORT)
    first: bool = param(FIRST)

    def pieces(self, answered: JudgedAnswers) -> Pieces:
        """Return one piece per citation."""
        is_counted = (answered.citation_position == 1) | (not self.first)
        return Pieces("citations", answered.citations.topic, answered.citations.value(self.partial), is_counted)


@measure(
    category="answers",
    cite="Thakur et al. 2025 (support evaluation of TREC RAG 2024, arXiv 2504.15205)",
    use="You want to know the share of an answer that a reader can verify by its citations.",
    misleads="A sentence that needs no citation, such as a heading, counts as unsupported.",
    properties=OF_ANSWERS,
)
class SupportR(AnswerMeasure):
    r"""Support recall: the mean support of a sentence by the documents that it cites, over all sentences.

    .. math:: \mathrm{SupportR} = \frac{1}{|S|} \sum_{s \in S} \max_{d\ \mathrm{cited\ by}\ s} v_{sd}

    A sentence without a citation scores 0. If a sentence has several citations, the best support counts; TREC RAG 2024
    judged only the first, which is `first`. Answers that abstain are excluded.

    Examples
    --------
    >>> SupportR().of_answer(sentences=[["not", "support"], ["partial"], []])
    0.5
    >>> SupportR(first=True).of_answer(sentences=[["support", "not"], ["partial"], [], []])
    0.375
    """

    partial: float = param(PARTIAL_SUPPORT)
    first: bool = param(FIRST)

    def pieces(self, answered: JudgedAnswers) -> Pieces:
        """Return one piece per sentence: its best support."""
        support = answered.citations.value(self.partial)
        if self.first:  # a verdict on another citation must not replace a missing one on the first
            support = np.where(answered.citation_position == 1, support, np.nan)
        best = answered.by_sentence(support, least=False, uncited=0.0)
        return Pieces("sentences", answered.grounded.topic, best, np.ones(len(best)))


@measure(
    category="answers",
    cite="Mayfield et al. 2024 (ARGUE); Walden et al. 2025 (Auto-ARGUE, arXiv 2509.26184)",
    use="One citation without support makes a sentence unacceptable, as in reports.",
    misleads="Fewer citations can raise the score: each additional citation can lower the score of its sentence.",
    properties=OF_ANSWERS,
)
class SentencePrecision(AnswerMeasure):
    r"""Sentence precision: the share of sentences with citations for which every citation supports the sentence.

    .. math:: \mathrm{SentencePrecision} = \frac{1}{|S_c|} \sum_{s \in S_c} \min_{d\ \mathrm{cited\ by}\ s} v_{sd}

    :math:`S_c` are the sentences with a citation. With `uncited`, sentences without a citation count as 0. ARGUE
    checks whether a sentence needs a citation, which is not recorded in the tables.

    Examples
    --------
    >>> SentencePrecision().of_answer(sentences=[["support", "support"], ["support", "not"], []])
    0.5
    >>> SentencePrecision(uncited=True).of_answer(sentences=[["support"], ["not"], [], []])
    0.25
    """

    partial: float = param(STRICT)
    uncited: bool = param(UNCITED)

    def pieces(self, answered: JudgedAnswers) -> Pieces:
        """Return one piece per sentence: its least support."""
        least = answered.by_sentence(answered.citations.value(self.partial), least=True, uncited=0.0)
        has_citation = np.bincount(answered.sentence, minlength=len(least)) > 0
        return Pieces("sentences", answered.grounded.topic, least, has_citation | self.uncited)


@measure(
    category="answers",
    cite="Walden et al. 2025 (Auto-ARGUE, arXiv 2509.26184)",
    use="Reports should contain the important facts and cite evidence for these facts, and you need a single score.",
    misleads="The score does not show whether facts or evidence are missing. Report SentencePrecision and NuggetRecall"
    " too.",
    properties=OF_ANSWERS,
    aliases={"ArgueF1": {}},
)
class ArgueF(AnswerMeasure):
    r"""F1 of ARGUE: the harmonic mean of sentence precision and nugget recall, both strict by default.

    .. math:: \mathrm{ArgueF} = \frac{2 P R}{P + R}

    P is SentencePrecision and R is NuggetRecall with `partial`. A nugget counts anywhere in the answer. ARGUE itself
    also checks negative assertions and statements that need a citation, which are not recorded in the tables.

    Examples
    --------
    >>> ArgueF().of_answer(sentences=[["support"], ["not"]], vital=["support", "support"], okay=["not", "support"])
    0.6
    """

    partial: float = param(STRICT)
    uncited: bool = param(UNCITED)

    def pieces(self, answered: JudgedAnswers) -> Pieces:
        """Return one piece per topic: the harmonic mean."""
        precision = SentencePrecision(partial=self.partial, uncited=self.uncited)(answered)
        recall = NuggetRecall(partial=self.partial)(answered)
        f1 = divide(2 * precision * recall, precision + recall)
        sentence_topics = answered.grounded.topic if self.uncited else answered.citations.topic
        has_nuggets, has_sentences = (
            np.bincount(topics, minlength=len(answered)) > 0 for topics in (answered.nuggets.topic, sentence_topics)
        )
        return Pieces("answers", np.arange(len(answered)), f1, has_nuggets & has_sentences)


@measure(
    category="answers",
    cite="Es et al. 2024 (ragas, faithfulness)",
    use="You want to know whether the generator uses only its context, with or without citations.",
    misleads="Sentences copied from a useless context are grounded. The score does not show whether the answer is"
    " useful.",
    properties=OF_ANSWERS,
    aliases={"Faithfulness": {}},
)
class Groundedness(AnswerMeasure):
    r"""Groundedness: the share of the sentences that the entire context supports.

    .. math:: \mathrm{Groundedness} = \frac{1}{|S|} \sum_{s \in S} v_s

    v is 1 for a sentence that the entire context supports, and `partial` for partial support. With an empty context,
    no sentence is grounded. Answers that abstain are excluded.

    Examples
    --------
    >>> Groundedness().of_answer(sentences=[[], [], []], grounded=["support", "partial", "contradicts"])
    0.5
    """

    partial: float = param(PARTIAL_SUPPORT)

    def pieces(self, answered: JudgedAnswers) -> Pieces:
        """Return one piece per sentence: its support by the context."""
        support = answered.grounded.value(self.partial)
        return Pieces("sentences", answered.grounded.topic, support, np.ones(len(support)))


@measure(
    category="answers",
    cite="Thakur et al. 2025, for the verdicts",
    use="You want to know whether citations or the context contradict the answer, which is the worst kind of error.",
    misleads="A low score does not show that the sentences are supported: a sentence without any support is not a"
    " contradiction. Report Groundedness too.",
    properties=replace(OF_ANSWERS, higher_is_better=False, monotone=False),
)
class ContradictionRate(AnswerMeasure):
    r"""Contradiction rate: the share of the sentences that a cited document or the context contradicts.

    .. math:: \mathrm{ContradictionRate} = \frac{|\{s \in S : \mathrm{something\ contradicts}\ s\}|}{|S|}

    A sentence without any verdict is excluded.

    Examples
    --------
    >>> ContradictionRate().of_answer(sentences=[["support"], ["contradicts", "support"]], grounded=["support", None])
    0.5
    """

    def pieces(self, answered: JudgedAnswers) -> Pieces:
        """Return one piece per sentence: 1 if a citation or the context contradicts it."""
        cited = answered.by_sentence(answered.citations.against, least=False, uncited=np.nan)
        # fmax ignores NaN: a missing verdict on the context does not hide one on a citation.
        worst = np.fmax(cited, answered.grounded.against)
        return Pieces("sentences", answered.grounded.topic, worst, np.ones(len(worst)))
