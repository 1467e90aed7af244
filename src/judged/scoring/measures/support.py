"""Support: whether what an answer says stands in what it cites, or in what it was given."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.judging.answered import Pieces
from judged.scoring.measures.aggregates import divide
from judged.scoring.measures.answers import OF_ANSWERS, PARTIAL_WORTH, NuggetRecall
from judged.scoring.measures.base import AnswerMeasure, param
from judged.scoring.measures.parameters import Parameter, real, yes_no
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged.scoring.judging.answered import Answered

FIRST = Parameter("Whether only the first citation of each sentence counts.", False, yes_no)
STRICT = Parameter("What partial support is worth; 0 is strict.", 0.0, real(0, 1))


@measure(
    category="answers",
    cite="Thakur et al. 2025 (support evaluation of TREC RAG 2024, arXiv 2504.15205)",
    use="Whether readers who follow a citation find there what the sentence says.",
    misleads="An answer that cites once, and well, scores 1, whatever its other sentences say.",
    properties=OF_ANSWERS,
)
class SupportP(AnswerMeasure):
    r"""Support precision: how far the cited documents support the sentences that cite them.

    .. math:: \mathrm{SupportP} = \frac{\sum_{(s, d)\ \mathrm{cited}} v_{sd}}{|\{(s, d)\ \mathrm{cited}\}|}

    Full support has v = 1, partial support v = `partial`, no support and contradiction 0. An answer without citations
    is left out.

    Examples
    --------
    >>> SupportP().of_answer(sentences=[["support", "not"], ["partial"], []])
    0.5
    >>> SupportP(first=True).of_answer(sentences=[["support", "not"], ["partial"], []])
    0.75
    """

    partial: float = param(PARTIAL_WORTH)
    first: bool = param(FIRST)

    def pieces(self, answered: Answered) -> Pieces:
        """Take every cited pair."""
        counts = (answered.place == 1) | (not self.first)
        return Pieces("citations", answered.citations.topic, answered.citations.worth(self.partial), counts)


@measure(
    category="answers",
    cite="Thakur et al. 2025 (support evaluation of TREC RAG 2024, arXiv 2504.15205)",
    use="How much of an answer a reader can verify by its citations.",
    misleads="A sentence that needs no citation, such as a heading, counts as unsupported.",
    properties=OF_ANSWERS,
)
class SupportR(AnswerMeasure):
    r"""Support recall: how far the sentences of the answer are supported by what they cite.

    .. math:: \mathrm{SupportR} = \frac{1}{|S|} \sum_{s \in S} \max_{d\ \mathrm{cited\ by}\ s} v_{sd}

    A sentence that cites nothing has 0. Where it cites several documents, the best support counts; TREC RAG 2024 judged
    the first citation only, which is `first`. Answers that abstain are left out.

    Examples
    --------
    >>> SupportR().of_answer(sentences=[["not", "support"], ["partial"], []])
    0.5
    >>> SupportR(first=True).of_answer(sentences=[["support", "not"], ["partial"], [], []])
    0.375
    """

    partial: float = param(PARTIAL_WORTH)
    first: bool = param(FIRST)

    def pieces(self, answered: Answered) -> Pieces:
        """Take the best support of every sentence."""
        worth = answered.citations.worth(self.partial)
        if self.first:  # what is said of the others may not stand in for a verdict that is missing
            worth = np.where(answered.place == 1, worth, np.nan)
        best = answered.of_sentences(worth, least=False, uncited=0.0)
        return Pieces("sentences", answered.grounded.topic, best, np.ones(len(best)))


@measure(
    category="answers",
    cite="Mayfield et al. 2024 (ARGUE); Walden et al. 2025 (Auto-ARGUE, arXiv 2509.26184)",
    use="Where one citation that does not support its sentence spoils it, as for reports.",
    misleads="Fewer citations make it higher: each more is another chance to spoil the sentence.",
    properties=OF_ANSWERS,
)
class SentencePrecision(AnswerMeasure):
    r"""Sentence precision: the share of the citing sentences that every cited document supports.

    .. math:: \mathrm{SentencePrecision} = \frac{1}{|S_c|} \sum_{s \in S_c} \min_{d\ \mathrm{cited\ by}\ s} v_{sd}

    :math:`S_c` are the sentences that cite something. With `uncited`, those that cite nothing count too, with 0: ARGUE
    looks whether a sentence needs a citation, which the tables do not say.

    Examples
    --------
    >>> SentencePrecision().of_answer(sentences=[["support", "support"], ["support", "not"], []])
    0.5
    >>> SentencePrecision(uncited=True).of_answer(sentences=[["support"], ["not"], [], []])
    0.25
    """

    partial: float = param(STRICT)
    uncited: bool = param(Parameter("Whether sentences that cite nothing count, as not supported.", False, yes_no))

    def pieces(self, answered: Answered) -> Pieces:
        """Take the least support of every sentence."""
        least = answered.of_sentences(answered.citations.worth(self.partial), least=True, uncited=0.0)
        cites = np.bincount(answered.sentence, minlength=len(least)) > 0
        return Pieces("sentences", answered.grounded.topic, least, cites | self.uncited)


@measure(
    category="answers",
    cite="Walden et al. 2025 (Auto-ARGUE, arXiv 2509.26184)",
    use="One number for reports that should say what matters and cite what shows it.",
    misleads="It hides which of the two is low: look at SentencePrecision and NuggetRecall beside it.",
    properties=OF_ANSWERS,
    aliases={"ArgueF1": {}},
)
class ArgueF(AnswerMeasure):
    r"""ARGUE's F1: the harmonic mean of sentence precision and nugget recall, both strict.

    .. math:: \mathrm{ArgueF} = \frac{2 P R}{P + R}

    P is SentencePrecision and R is NuggetRecall with `partial`. A nugget counts wherever the answer says it; ARGUE's
    own flow, which also looks for negative assertions and for statements that need a citation, needs more than is in
    the tables.

    Examples
    --------
    >>> ArgueF().of_answer(sentences=[["support"], ["not"]], vital=["support", "support"], okay=["not", "support"])
    0.6
    """

    partial: float = param(STRICT)
    uncited: bool = param(Parameter("Whether sentences that cite nothing count, as not supported.", False, yes_no))

    def pieces(self, answered: Answered) -> Pieces:
        """Combine the two of each topic."""
        precision = SentencePrecision(partial=self.partial, uncited=self.uncited)(answered)
        recall = NuggetRecall(partial=self.partial)(answered)
        both = divide(2 * precision * recall, precision + recall)
        topics = answered.grounded.topic if self.uncited else answered.citations.topic
        asked = [np.bincount(of, minlength=len(answered)) > 0 for of in (answered.nuggets.topic, topics)]
        return Pieces("answers", np.arange(len(answered)), both, np.logical_and(*asked))


@measure(
    category="answers",
    cite="Es et al. 2024 (ragas, faithfulness)",
    use="Whether the generator keeps to what it was given, cited or not.",
    misleads="Sentences copied from a useless context are grounded: it says nothing of the answer's worth.",
    properties=OF_ANSWERS,
    aliases={"Faithfulness": {}},
)
class Groundedness(AnswerMeasure):
    r"""Groundedness: the share of the sentences that the context as a whole supports.

    .. math:: \mathrm{Groundedness} = \frac{1}{|S|} \sum_{s \in S} v_s

    A sentence has v = 1 where all of the context together supports it, and `partial` where it does so in part. With
    an empty context nothing is grounded. Answers that abstain are left out.

    Examples
    --------
    >>> Groundedness().of_answer(sentences=[[], [], []], grounded=["support", "partial", "contradicts"])
    0.5
    """

    partial: float = param(PARTIAL_WORTH)

    def pieces(self, answered: Answered) -> Pieces:
        """Take every sentence."""
        worth = answered.grounded.worth(self.partial)
        return Pieces("sentences", answered.grounded.topic, worth, np.ones(len(worth)))


@measure(
    category="answers",
    cite="Thakur et al. 2025, for the verdicts",
    use="The worst kind of error: what is cited, or was given, says the opposite.",
    misleads="It is low where nothing is supported either: look at Groundedness beside it.",
    properties=replace(OF_ANSWERS, higher_is_better=False, monotone=False),
)
class ContradictionRate(AnswerMeasure):
    r"""Contradiction rate: the share of the sentences that a cited document or the context contradicts.

    .. math:: \mathrm{ContradictionRate} = \frac{|\{s \in S : \mathrm{something\ contradicts}\ s\}|}{|S|}

    A sentence of which nothing was judged is left out.

    Examples
    --------
    >>> ContradictionRate().of_answer(sentences=[["support"], ["contradicts", "support"]], grounded=["support", None])
    0.5
    """

    def pieces(self, answered: Answered) -> Pieces:
        """Take the worst verdict on every sentence."""
        cited = answered.of_sentences(answered.citations.against, least=False, uncited=np.nan)
        worst = np.fmax(cited, answered.grounded.against)
        return Pieces("sentences", answered.grounded.topic, worst, np.ones(len(worst)))
