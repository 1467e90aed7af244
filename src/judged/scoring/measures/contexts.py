"""Contexts and citations against judged documents: what the generator was given, and what it made of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from judged.errors import MeasureError
from judged.scoring.judging.answered import Pieces
from judged.scoring.measures.base import AnswerMeasure, Properties, param
from judged.scoring.measures.nuggets import OF_ANSWERS
from judged.scoring.measures.parameters import REL, Parameter, real
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.scoring.judging.answered import Answered


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
