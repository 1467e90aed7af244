"""Answers as a whole: whether they are right, whether they should have been given, and how long they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.judging.answered import Pieces
from judged.scoring.measures.base import AnswerMeasure, param
from judged.scoring.measures.nuggets import OF_ANSWERS, PARTIAL_WORTH
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged.scoring.judging.answered import Answered


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
