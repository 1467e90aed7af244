"""Measures of entire answers and their context: content, correctness, abstention, length, and evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from judged.errors import MeasureError
from judged.scoring.judging.answers import Pieces
from judged.scoring.measures.base import AnswerMeasure, Properties, param
from judged.scoring.measures.parameters import REL, Parameter, boolean, real
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged.results.types import Floats
    from judged.scoring.judging.answers import JudgedAnswers


PARTIAL_SUPPORT = Parameter("The credit for partial support. With 0, only full support counts.", 0.5, real(0, 1))
STRICT = Parameter(PARTIAL_SUPPORT.meaning, 0.0, real(0, 1))
OF_ANSWERS = Properties(reads="answers", needs_ranking=False, depends_on_missing=False, depends_on_relevance=False)


@measure(
    category="answers",
    cite="Pradeep et al. 2025 (AutoNuggetizer, TREC RAG 2024)",
    use="You want to know whether answers contain the required facts, if these are listed as nuggets.",
    misleads="The measure ignores all other content: wrong and unnecessary sentences have no effect.",
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
    r"""Nugget recall: the weighted share of the nuggets that the answer contains.

    .. math:: \mathrm{NuggetRecall} = \frac{\sum_i w_i v_i}{\sum_i w_i}

    v is 1 for a supported nugget, `partial` for a partly supported nugget, else 0. The weight w is 1 for a vital nugget
    and `okay` for an okay nugget. An answer that abstains contains no nugget. A nugget without a verdict is excluded,
    while AutoNuggetizer counts it as 0. A topic without a nugget that counts is excluded too.

    Examples
    --------
    >>> NuggetRecall().of_answer(vital=["support", "partial"], okay=["not"])
    0.5
    >>> NuggetRecall(vital=True, partial=0).of_answer(vital=["support", "partial"], okay=["not"])
    0.5
    >>> NuggetRecall(okay=0.5).of_answer(vital=["support", "partial"], okay=["not"])  # 1.5 / 2.5
    0.6
    """

    vital: bool = param(Parameter("Whether only vital nuggets count.", False, boolean))
    partial: float = param(PARTIAL_SUPPORT)
    okay: float = param(Parameter("The weight of an okay nugget. The weight of a vital nugget is 1.", 1.0, real(0, 1)))

    def verify(self) -> None:
        """Raise if `okay` is set although only vital nuggets count."""
        if self.vital and self.okay != 1:
            raise MeasureError(
                f"{self}: the parameter okay has no effect with vital=true. Fix: omit okay={self.okay:g}"
            )

    def pieces(self, answered: JudgedAnswers) -> Pieces:
        """Return one piece per nugget."""
        weight = np.where(answered.vital, 1.0, 0.0 if self.vital else self.okay)
        return Pieces("nuggets", answered.nuggets.topic, answered.nuggets.value(self.partial), weight)


@measure(
    category="answers",
    cite="Pradeep et al. 2025, for the nuggets",
    use="You want to know whether the answer contains every required fact, so that its readers need no further source.",
    misleads="If an unnecessary nugget is labeled vital, every answer without this nugget counts as incomplete.",
    properties=OF_ANSWERS,
)
class Completeness(AnswerMeasure):
    r"""Completeness: 1 if the answer contains every vital nugget, otherwise 0.

    .. math:: \mathrm{Completeness} = \min_{i \in \mathrm{vital}} v_i

    Its mean over topics is the share of complete answers. The score is 0 if a vital nugget is known to be missing.

    Examples
    --------
    >>> Completeness().of_answer(vital=["support", "support"], okay=["not"])
    1.0
    >>> Completeness().of_answer(vital=["support", "partial"])
    0.0
    """

    partial: float = param(STRICT)

    def pieces(self, answered: JudgedAnswers) -> Pieces:
        """Return one piece per topic: the least support of a vital nugget."""
        support = answered.nuggets.value(self.partial)
        has_verdict = answered.vital & ~np.isnan(support)
        least = np.full(len(answered), np.inf)
        np.minimum.at(least, answered.nuggets.topic[has_verdict], support[has_verdict])
        has_vital = np.bincount(answered.nuggets.topic, answered.vital, minlength=len(answered)) > 0
        return Pieces("answers", np.arange(len(answered)), np.where(np.isinf(least), np.nan, least), has_vital)


@measure(
    category="answers",
    cite="Voorhees and Tice 2000 (TREC question answering)",
    use="Each question has one known correct answer.",
    misleads="The measure does not show whether the context contained the answer.",
    properties=OF_ANSWERS,
)
class Correctness(AnswerMeasure):
    r"""Correctness: whether the answer agrees with its reference answer.

    .. math:: \mathrm{Correctness} = v

    v is 1 for an answer that agrees, `partial` for partial agreement, else 0. Abstaining from an answerable
    question scores 0. Abstaining from an unanswerable question is excluded, as are topics without a reference answer.

    Examples
    --------
    >>> Correctness().of_answer(correct="support"), Correctness().of_answer(correct="partial")
    (1.0, 0.5)
    """

    partial: float = param(PARTIAL_SUPPORT)

    def pieces(self, answered: JudgedAnswers) -> Pieces:
        """Return one piece per answer with a reference."""
        agreement = answered.correctness.value(self.partial)
        return Pieces("answers", answered.correctness.topic, agreement, answered.has_reference)


@measure(
    category="answers",
    cite="Rajpurkar, Jia and Liang 2018 (SQuAD 2.0, for questions without an answer)",
    use="You want to know whether a system recognizes questions that it cannot answer.",
    misleads="A system that always abstains scores 1. Report WrongAbstention too.",
    properties=OF_ANSWERS,
)
class RightAbstention(AnswerMeasure):
    r"""Right abstention: whether the system abstains from a question that the corpus cannot answer.

    .. math:: \mathrm{RightAbstention} = [\mathrm{abstained}]

    Its mean over topics is the share of the unanswerable questions that were not answered. Other topics are excluded.

    Examples
    --------
    >>> RightAbstention().of_answer(abstained=True, answerable=False)
    1.0
    """

    def pieces(self, answered: JudgedAnswers) -> Pieces:
        """Return one piece per unanswerable question."""
        return Pieces("answers", np.arange(len(answered)), answered.abstained, answered.answerable == 0)


@measure(
    category="answers",
    cite="Rajpurkar, Jia and Liang 2018 (SQuAD 2.0, for questions without an answer)",
    use="You want to know whether a system abstains from questions that have an answer.",
    misleads="A system that never abstains scores 0, the best score. Report RightAbstention too.",
    properties=replace(OF_ANSWERS, higher_is_better=False, monotone=False),
)
class WrongAbstention(AnswerMeasure):
    r"""Wrong abstention: whether the system abstains from a question that the corpus can answer.

    .. math:: \mathrm{WrongAbstention} = [\mathrm{abstained}]

    Its mean over topics is the share of the answerable questions that were not answered. Other topics are excluded.

    Examples
    --------
    >>> WrongAbstention().of_answer(abstained=True, answerable=True)
    1.0
    """

    def pieces(self, answered: JudgedAnswers) -> Pieces:
        """Return one piece per answerable question."""
        return Pieces("answers", np.arange(len(answered)), answered.abstained, answered.answerable == 1)


@measure(
    category="answers",
    cite="Dubois et al. 2024 (length-controlled AlpacaEval, on the effect of length)",
    use="Report the length of answers with every other measure of answers: longer answers contain more, and judges"
    " prefer longer answers.",
    misleads="Words are separated by spaces, so the number of words is not the number of tokens. Some languages do"
    " not use spaces.",
    properties=replace(OF_ANSWERS, high=None, higher_is_better=None, monotone=False),
)
class AnswerLength(AnswerMeasure):
    r"""Answer length: the number of words in the answer.

    .. math:: \mathrm{AnswerLength} = |\mathrm{words}|

    Examples
    --------
    >>> AnswerLength().of_answer(words=42)
    42.0
    """

    def pieces(self, answered: JudgedAnswers) -> Pieces:
        """Return one piece per answer."""
        return Pieces("answers", np.arange(len(answered)), answered.words, answered.has_answer)


class _DocumentMeasure(AnswerMeasure):
    """Base of the measures that use relevance of documents."""

    rel: float = param(REL)

    def verify(self) -> None:
        """Raise if every grade is relevant: an unjudged document could then not be nonrelevant."""
        if not self.rel > 0:
            raise MeasureError(f"{self}: rel must be above 0, so that some grade is not relevant. Fix: use rel=1")


@measure(
    category="answers",
    cite="Gao et al. 2023 (ALCE, for citation recall), adapted to judgments of documents",
    use="You want to know whether an answer cites the relevant documents.",
    misleads="One good document may be enough for an answer. Few answers can cite every relevant document.",
    properties=OF_ANSWERS,
)
class CitationRecall(_DocumentMeasure):
    r"""Citation recall: the share of the relevant documents that the answer cites.

    .. math:: \mathrm{CitationRecall} = \frac{|\{\text{relevant and cited}\}|}{|\{\text{relevant}\}|}

    A topic without a relevant document is excluded. A cited document without a judgment counts as not relevant; the
    score bounds include the case that it is relevant.

    Examples
    --------
    >>> CitationRecall().of_answer(context=[1, 0, 1], cited=[1, 2], missing=[2, 0])
    0.3333333333333333
    """

    def pieces(self, answered: JudgedAnswers) -> Pieces:
        """Return one piece per relevant document."""
        relevant = (answered.grade >= self.rel) & (answered.cited | answered.is_judged)
        return Pieces("documents", answered.document_topic, answered.cited.astype(np.float64), relevant)


@measure(
    category="answers",
    cite="Gao et al. 2023 (ALCE, for citation precision), adapted to judgments of documents",
    use="You want to know whether the documents that an answer cites are relevant.",
    misleads="A relevant document may not support the sentence that cites it.",
    properties=OF_ANSWERS,
)
class CitationPrecision(_DocumentMeasure):
    r"""Citation precision: the share of the cited documents that are relevant.

    .. math:: \mathrm{CitationPrecision} = \frac{|\{\text{relevant and cited}\}|}{|\{\text{cited}\}|}

    An answer without citations is excluded. A cited document without a judgment counts as not relevant; the score
    bounds include the case that it is relevant.

    Examples
    --------
    >>> CitationPrecision().of_answer(context=[1, 0, 1], cited=[1, 2], missing=[2, 0])
    0.5
    """

    def pieces(self, answered: JudgedAnswers) -> Pieces:
        """Return one piece per cited document."""
        relevant = (answered.grade >= self.rel).astype(np.float64)
        return Pieces("documents", answered.document_topic, relevant, answered.cited)


@measure(
    category="answers",
    cite="Trappolini et al. 2025 (UDCG, arXiv 2510.21440), for negative utility",
    use="The context is for a model that reads every passage, and passages that only seem relevant mislead this model.",
    misleads="The harm of a distracting passage depends on the model. Unless you measured the harm of distracting"
    " passages, the value of the parameter `distractor` is a guess.",
    properties=replace(OF_ANSWERS, low=-0.5),
)
class ContextUtility(_DocumentMeasure):
    r"""Context utility: the mean utility of the passages in the context. The utility of a distractor is negative.

    .. math:: \mathrm{ContextUtility} = \frac{1}{n} \sum_{r=1}^{n} u_r

    u is 1 for a relevant passage and `distractor` for a judged passage that is not relevant. A passage without a
    judgment is excluded; the score bounds include it. An empty context is excluded. All positions have the same
    weight, while UDCG fits weights to a model. For a discount, `DCG(gain={0:-0.5})` of the context accepts negative
    gains too.

    Examples
    --------
    >>> ContextUtility().of_answer(context=[1, 0, 2, None])
    0.5
    """

    distractor: float = param(Parameter("The utility of a passage that is judged not relevant.", -0.5, real(-1, 1)))

    @property
    def properties(self) -> Properties:
        """Properties with this `distractor`, which is the lowest possible mean."""
        return replace(super().properties, low=self.distractor)

    def pieces(self, answered: JudgedAnswers) -> Pieces:
        """Return one piece per passage of the context."""
        utility = np.where(answered.grade >= self.rel, 1.0, self.distractor)
        utility = np.where(np.isnan(answered.grade), np.nan, utility)
        return Pieces("documents", answered.document_topic, utility, answered.rank > 0)


@measure(
    category="answers",
    cite="Liu et al. 2024 (Lost in the middle)",
    use="You want to know where the evidence is in a long context, because the model may overlook the middle of the"
    " context.",
    misleads="A mean of 0.5 can result from evidence in the middle of the context, or from evidence at both ends of the"
    " context.",
    properties=replace(OF_ANSWERS, higher_is_better=None, monotone=False),
)
class EvidencePosition(_DocumentMeasure):
    r"""Evidence position: the mean position of the relevant passages in the context; 0 is first and 1 is last.

    .. math:: \mathrm{EvidencePosition} = \frac{1}{|\mathrm{rel}|} \sum_{r\ \mathrm{relevant}} \frac{r - 1}{n - 1}

    A context without a relevant passage, or with a single passage, is excluded.

    Examples
    --------
    >>> EvidencePosition().of_answer(context=[0, 1, 0, 0, 1])  # 1/4 and 4/4
    0.625
    """

    exact: ClassVar[bool] = False

    def pieces(self, answered: JudgedAnswers) -> Pieces:
        """Return one piece per relevant passage of the context."""
        return Pieces("documents", answered.document_topic, self._position(answered), self._is_relevant(answered))

    def score_bounds(self, answered: JudgedAnswers) -> tuple[Floats, Floats]:
        """Return the first and the last position of a passage that may be relevant. The mean is between them."""
        is_unjudged = np.isnan(answered.grade) & (answered.rank > 0)
        position = self._position(answered)
        may_be_relevant = (is_unjudged | self._is_relevant(answered)) & ~np.isnan(position)
        topics, scores = answered.document_topic, self(answered)
        has_unjudged = np.bincount(topics, is_unjudged, minlength=len(answered)) > 0
        bounds: list[Floats] = []
        for start, extreme in ((np.inf, np.minimum), (-np.inf, np.maximum)):
            bound = np.full(len(answered), start)
            extreme.at(bound, topics[may_be_relevant], position[may_be_relevant])
            bounds.append(np.where(has_unjudged & np.isfinite(bound), bound, scores))
        return bounds[0], bounds[1]

    def _is_relevant(self, answered: JudgedAnswers) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return (answered.grade >= self.rel) & (answered.rank > 0)

    @staticmethod
    def _position(answered: JudgedAnswers) -> Floats:
        last = np.zeros(len(answered), dtype=np.int64)
        np.maximum.at(last, answered.document_topic, answered.rank)
        steps = last[answered.document_topic] - 1
        return np.divide(answered.rank - 1, steps, out=np.full(len(steps), np.nan), where=steps > 0)


@measure(
    category="answers",
    cite="Clarke et al. 2008 (alpha-nDCG, for novelty by nuggets)",
    use="You want to know the share of the context that repeats earlier evidence.",
    misleads="The measure uses only nuggets with listed evidence. Repetition can also be useful, because passages can"
    " confirm each other.",
    properties=replace(OF_ANSWERS, higher_is_better=False, monotone=False),
)
class ContextRedundancy(AnswerMeasure):
    r"""Context redundancy: the share of the passages with evidence whose evidence is all in passages above them.

    .. math:: \mathrm{ContextRedundancy} =
        \frac{|\{d : N_d \subseteq \bigcup_{e\ \mathrm{above}\ d} N_e\}|}{|\{d : N_d \ne \emptyset\}|}

    :math:`N_d` are the nuggets that passage d contains. A context without evidence is excluded.

    Examples
    --------
    >>> ContextRedundancy().of_answer(vital=[None, None], context=[1, 1, 1, 0], holds=[[0], [0], [0, 1], []])
    0.3333333333333333
    """

    def pieces(self, answered: JudgedAnswers) -> Pieces:
        """Return one piece per passage with evidence: 1 if it has no new nugget."""
        rank = answered.rank[answered.evidence_document]
        in_context = rank > 0
        nugget, document, rank = (
            column[in_context] for column in (answered.evidence_nugget, answered.evidence_document, rank)
        )
        # The first passage with each nugget. A passage is redundant if it is the first one for none of its nuggets.
        first_rank = np.full(max(len(answered.nuggets.topic), 1), np.iinfo(np.int64).max)
        np.minimum.at(first_rank, nugget, rank)
        size = len(answered.rank)
        has_evidence = np.bincount(document, minlength=size) > 0
        has_new = np.bincount(document, rank == first_rank[nugget], minlength=size) > 0
        return Pieces("documents", answered.document_topic, np.where(has_new, 0.0, 1.0), has_evidence)
