"""Answers as a whole: whether they are right, whether they should have been given, and how long they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from judged.errors import MeasureError
from judged.scoring.judging.answered import Pieces
from judged.scoring.measures.base import AnswerMeasure, Properties, param
from judged.scoring.measures.parameters import REL, Parameter, real, yes_no
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged.results.types import Floats
    from judged.scoring.judging.answered import Answered


PARTIAL_WORTH = Parameter("What partial support is worth; 0 is strict.", 0.5, real(0, 1))
OF_ANSWERS = Properties(reads_answers=True, needs_ranking=False, missing_matter=False, sees_relevance=False)


@measure(
    category="answers",
    cite="Pradeep et al. 2025 (AutoNuggetizer, TREC RAG 2024)",
    use="Whether answers say what they should, where somebody wrote down what that is.",
    misleads="It does not see what else an answer says: wrong and needless sentences cost nothing.",
    aliases={
        "strict_vital_score": {"vital": True, "partial": 0},
        "strict_all_score": {"partial": 0},
        "vital_score": {"vital": True},
        "all_score": {},
        "weighted_score": {"okay": 0.5},
    },
    properties=OF_ANSWERS,
    tools={"nuggetizer": "all_score, vital_score, strict_vital_score (by parameters)"},
)
class NuggetRecall(AnswerMeasure):
    r"""Nugget recall: the share of the nuggets that the answer says, each by its weight.

    .. math:: \mathrm{NuggetRecall} = \frac{\sum_i w_i v_i}{\sum_i w_i}

    A nugget that is supported has v = 1, partly supported v = `partial`, else 0; a vital one weighs 1, an okay one
    `okay`. An answer that abstains says nothing. A nugget whose assignment failed is left out, where AutoNuggetizer
    counts 0; so is a topic without a nugget that counts.

    Examples
    --------
    >>> NuggetRecall().of_answer(vital=["support", "partial"], okay=["not"])
    0.5
    >>> NuggetRecall(vital=True, partial=0).of_answer(vital=["support", "partial"], okay=["not"])
    0.5
    >>> NuggetRecall(okay=0.5).of_answer(vital=["support", "partial"], okay=["not"])  # 1.5 / 2.5
    0.6
    """

    vital: bool = param(Parameter("Whether only vital nuggets count.", False, yes_no))
    partial: float = param(PARTIAL_WORTH)
    okay: float = param(Parameter("What an okay nugget weighs, where a vital one weighs 1.", 1.0, real(0, 1)))

    def verify(self) -> None:
        """Refuse a weight for nuggets that do not count."""
        if self.vital and self.okay != 1:
            raise MeasureError(f"{self}: with vital=true no okay nugget counts. Fix: leave out okay={self.okay:g}")

    def pieces(self, answered: Answered) -> Pieces:
        """Weigh each nugget."""
        weight = np.where(answered.vital, 1.0, 0.0 if self.vital else self.okay)
        return Pieces("nuggets", answered.nuggets.topic, answered.nuggets.worth(self.partial), weight)


@measure(
    category="answers",
    cite="Pradeep et al. 2025, for the nuggets",
    use="Whether somebody who reads the answer need look no further.",
    misleads="One vital nugget too many in the list, and no answer is complete.",
    properties=OF_ANSWERS,
)
class Completeness(AnswerMeasure):
    r"""Completeness: whether the answer says every vital nugget.

    .. math:: \mathrm{Completeness} = \min_{i \in \mathrm{vital}} v_i

    Over topics it is the share of complete answers. It is 0 as soon as one vital nugget is known to be missing.

    Examples
    --------
    >>> Completeness().of_answer(vital=["support", "support"], okay=["not"])
    1.0
    >>> Completeness().of_answer(vital=["support", "partial"])
    0.0
    """

    partial: float = param(Parameter("What partial support is worth; 0 is strict.", 0.0, real(0, 1)))

    def pieces(self, answered: Answered) -> Pieces:
        """Take the least of each topic."""
        worth = answered.nuggets.worth(self.partial)
        counts = answered.vital & ~np.isnan(worth)
        least = np.full(len(answered), np.inf)
        np.minimum.at(least, answered.nuggets.topic[counts], worth[counts])
        asked = np.bincount(answered.nuggets.topic, answered.vital, minlength=len(answered)) > 0
        return Pieces("answers", np.arange(len(answered)), np.where(np.isinf(least), np.nan, least), asked)


@measure(
    category="answers",
    cite="Voorhees and Tice 2000 (TREC question answering)",
    use="Questions with one right answer that is known.",
    misleads="It does not see whether the answer could have been known from the context.",
    properties=OF_ANSWERS,
)
class Correctness(AnswerMeasure):
    r"""Correctness: whether the answer agrees with its reference.

    .. math:: \mathrm{Correctness} = v

    An answer that agrees has v = 1, one that agrees in part `partial`, else 0. One that abstains from a question that
    has an answer has 0; from one that has none, it is left out, as are topics without a reference.

    Examples
    --------
    >>> Correctness().of_answer(correct="support"), Correctness().of_answer(correct="partial")
    (1.0, 0.5)
    """

    partial: float = param(PARTIAL_WORTH)

    def pieces(self, answered: Answered) -> Pieces:
        """Take the verdict of each answer."""
        worth = answered.correctness.worth(self.partial)
        return Pieces("answers", answered.correctness.topic, worth, answered.referenced)


@measure(
    category="answers",
    cite="Rajpurkar, Jia and Liang 2018 (SQuAD 2.0, for questions without an answer)",
    use="Whether a system knows what it cannot know.",
    misleads="A system that always abstains scores 1: look at WrongAbstention beside it.",
    properties=OF_ANSWERS,
)
class RightAbstention(AnswerMeasure):
    r"""Right abstention: whether the system abstains from a question that the corpus cannot answer.

    .. math:: \mathrm{RightAbstention} = [\mathrm{abstained}]

    Over topics it is the share of the unanswerable questions that were not answered; others are left out.

    Examples
    --------
    >>> RightAbstention().of_answer(abstained=True, answerable=False)
    1.0
    """

    def pieces(self, answered: Answered) -> Pieces:
        """Take the questions without an answer."""
        return Pieces("answers", np.arange(len(answered)), answered.abstained, answered.answerable == 0)


@measure(
    category="answers",
    cite="Rajpurkar, Jia and Liang 2018 (SQuAD 2.0, for questions without an answer)",
    use="What caution costs: questions that could have been answered.",
    misleads="A system that never abstains scores 0, the best: look at RightAbstention beside it.",
    properties=replace(OF_ANSWERS, higher_is_better=False, monotone=False),
)
class WrongAbstention(AnswerMeasure):
    r"""Wrong abstention: whether the system abstains from a question that the corpus can answer.

    .. math:: \mathrm{WrongAbstention} = [\mathrm{abstained}]

    Over topics it is the share of the answerable questions that were not answered; others are left out.

    Examples
    --------
    >>> WrongAbstention().of_answer(abstained=True, answerable=True)
    1.0
    """

    def pieces(self, answered: Answered) -> Pieces:
        """Take the questions with an answer."""
        return Pieces("answers", np.arange(len(answered)), answered.abstained, answered.answerable == 1)


@measure(
    category="answers",
    cite="Dubois et al. 2024 (length-controlled AlpacaEval, for why to look at it)",
    use="Beside every other measure of answers: longer ones say more, and judges like them.",
    misleads="Words are what stands between blanks: it is no number of tokens, and some languages have no blanks.",
    properties=replace(OF_ANSWERS, high=None, higher_is_better=None, monotone=False),
)
class AnswerLength(AnswerMeasure):
    r"""Answer length: how many words the answer has.

    .. math:: \mathrm{AnswerLength} = |\mathrm{words}|

    Examples
    --------
    >>> AnswerLength().of_answer(words=42)
    42.0
    """

    def pieces(self, answered: Answered) -> Pieces:
        """Take each answer."""
        return Pieces("answers", np.arange(len(answered)), answered.words, answered.given)


class _OfDocuments(AnswerMeasure):
    """Base of the measures that need something relevant."""

    rel: float = param(REL)

    def verify(self) -> None:
        """Refuse a level at which every document is relevant: then none without a judgment could be otherwise."""
        if not self.rel > 0:
            raise MeasureError(f"{self}: every grade is relevant. Fix: give rel above 0")


@measure(
    category="answers",
    cite="Gao et al. 2023 (ALCE, for citation recall), here against judged documents",
    use="Whether an answer leads its readers to the documents that matter.",
    misleads="One good document may be all that an answer needs: few answers can cite every relevant one.",
    properties=OF_ANSWERS,
)
class CitationRecall(_OfDocuments):
    r"""Citation recall: the share of the relevant documents that the answer cites.

    .. math:: \mathrm{CitationRecall} = \frac{|\{\text{relevant and cited}\}|}{|\{\text{relevant}\}|}

    A topic without a relevant document is left out. A cited document without a judgment counts as not relevant, and is
    bounded.

    Examples
    --------
    >>> CitationRecall().of_answer(context=[1, 0, 1], cited=[1, 2], missing=[2, 0])
    0.3333333333333333
    """

    def pieces(self, answered: Answered) -> Pieces:
        """Take the relevant documents."""
        relevant = (answered.grade >= self.rel) & (answered.cited | answered.known)
        return Pieces("documents", answered.document_topic, answered.cited.astype(np.float64), relevant)


@measure(
    category="answers",
    cite="Trappolini et al. 2025 (UDCG, arXiv 2510.21440), for negative utility",
    use="Contexts of a model that reads every passage, and is misled by those that only look relevant.",
    misleads="How much a distractor harms depends on the model: `distractor` is a guess unless you measured it.",
    properties=replace(OF_ANSWERS, low=-0.5),
)
class ContextUtility(_OfDocuments):
    r"""Context utility: the mean worth of the passages in the context, where a distractor is worth less than nothing.

    .. math:: \mathrm{ContextUtility} = \frac{1}{n} \sum_{r=1}^{n} u_r

    A relevant passage has u = 1, a judged one that is not relevant u = `distractor`. One without a judgment is left
    out, and bounded; so is an empty context. No place counts more than another; UDCG fits weights to a model. For
    gains by grade and a discount, `DCG(gain={0:-0.5})` of the context takes negative gains too.

    Examples
    --------
    >>> ContextUtility().of_answer(context=[1, 0, 2, None])
    0.5
    """

    distractor: float = param(Parameter("What a passage is worth that is judged not relevant.", -0.5, real(-1, 1)))

    @property
    def properties(self) -> Properties:
        """No mean lies below what a distractor is worth."""
        return replace(super().properties, low=self.distractor)

    def pieces(self, answered: Answered) -> Pieces:
        """Take every passage of the context."""
        worth = np.where(answered.grade >= self.rel, 1.0, self.distractor)
        worth = np.where(np.isnan(answered.grade), np.nan, worth)
        return Pieces("documents", answered.document_topic, worth, answered.rank > 0)


@measure(
    category="answers",
    cite="Liu et al. 2024 (Lost in the middle)",
    use="Where in a long context the evidence stands, for models that overlook its middle.",
    misleads="A mean of 0.5 may be evidence in the middle, or at both ends.",
    properties=replace(OF_ANSWERS, higher_is_better=None, monotone=False),
)
class EvidencePosition(_OfDocuments):
    r"""Evidence position: where in the context the relevant passages stand, on average; 0 is first and 1 is last.

    .. math:: \mathrm{EvidencePosition} = \frac{1}{|\mathrm{rel}|} \sum_{r\ \mathrm{relevant}} \frac{r - 1}{n - 1}

    A context without a relevant passage, or of one passage, is left out.

    Examples
    --------
    >>> EvidencePosition().of_answer(context=[0, 1, 0, 0, 1])  # 1/4 and 4/4
    0.625
    """

    exact: ClassVar[bool] = False

    def pieces(self, answered: Answered) -> Pieces:
        """Take the relevant passages of the context."""
        return Pieces("documents", answered.document_topic, self._place(answered), self._relevant(answered))

    def reach(self, answered: Answered) -> tuple[Floats, Floats]:
        """Give the first and the last place that a passage has which may be relevant: the mean is between them."""
        open_ = np.isnan(answered.grade) & (answered.rank > 0)
        place = self._place(answered)
        possible = (open_ | self._relevant(answered)) & ~np.isnan(place)
        topics, exact = answered.document_topic, self(answered)
        moved = np.bincount(topics, open_, minlength=len(answered)) > 0
        ends: list[Floats] = []
        for end, extreme in ((np.inf, np.minimum), (-np.inf, np.maximum)):
            found = np.full(len(answered), end)
            extreme.at(found, topics[possible], place[possible])
            ends.append(np.where(moved & np.isfinite(found), found, exact))
        return ends[0], ends[1]

    def _relevant(self, answered: Answered) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return (answered.grade >= self.rel) & (answered.rank > 0)

    @staticmethod
    def _place(answered: Answered) -> Floats:
        last = np.zeros(len(answered), dtype=np.int64)
        np.maximum.at(last, answered.document_topic, answered.rank)
        below = last[answered.document_topic] - 1
        return np.divide(answered.rank - 1, below, out=np.full(len(below), np.nan), where=below > 0)


@measure(
    category="answers",
    cite="Clarke et al. 2008 (alpha-nDCG, for novelty by nuggets)",
    use="How much of the context is spent on saying the same again.",
    misleads="It knows only nuggets whose evidence is listed, and passages may well confirm each other.",
    properties=replace(OF_ANSWERS, higher_is_better=False, monotone=False),
)
class ContextRedundancy(AnswerMeasure):
    r"""Context redundancy: the share of the passages with evidence all of which stands further up already.

    .. math:: \mathrm{ContextRedundancy} =
        \frac{|\{d : N_d \subseteq \bigcup_{e\ \mathrm{above}\ d} N_e\}|}{|\{d : N_d \ne \emptyset\}|}

    :math:`N_d` are the nuggets that passage d holds. A context without evidence is left out.

    Examples
    --------
    >>> ContextRedundancy().of_answer(vital=[None, None], context=[1, 1, 1, 0], holds=[[0], [0], [0, 1], []])
    0.3333333333333333
    """

    def pieces(self, answered: Answered) -> Pieces:
        """Take the passages with evidence."""
        rank = answered.rank[answered.evidence_document]
        inside = rank > 0
        nugget, document, rank = (part[inside] for part in (answered.evidence_nugget, answered.evidence_document, rank))
        first = np.full(max(len(answered.nuggets.topic), 1), np.iinfo(np.int64).max)
        np.minimum.at(first, nugget, rank)
        size = len(answered.rank)
        holds = np.bincount(document, minlength=size) > 0
        new = np.bincount(document, rank == first[nugget], minlength=size) > 0
        return Pieces("documents", answered.document_topic, np.where(new, 0.0, 1.0), holds)
