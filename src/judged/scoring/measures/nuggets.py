"""Nuggets: how much of what an answer should say it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.errors import MeasureError
from judged.scoring.judging.answered import Pieces
from judged.scoring.measures.base import AnswerMeasure, Properties, param
from judged.scoring.measures.parameters import Parameter, real, yes_no
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
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
