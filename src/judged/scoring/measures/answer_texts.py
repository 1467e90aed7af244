"""Measures of the texts of answers, references, and contexts, which need no judgments."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from string import punctuation
from typing import TYPE_CHECKING

import numpy as np

from judged.errors import MeasureError
from judged.scoring.judging.answers import Pieces
from judged.scoring.measures.answers import OF_ANSWERS
from judged.scoring.measures.base import AnswerMeasure
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.results.types import Floats
    from judged.scoring.judging.answers import JudgedAnswers


_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", punctuation)
_FUNCTION_WORD = re.compile(
    r"about|after|all|also|am|and|any|are|as|at|be|because|been|before|both|but|by|can|could|did|do|does|during|each"
    r"|for|from|had|has|have|he|her|his|how|i|if|in|into|is|it|its|may|more|most|must|my|of|on|or|other|our|out|over"
    r"|she|should|so|some|such|than|that|their|them|then|there|these|they|this|those|through|to|under|up|was|we|were"
    r"|what|when|where|which|while|who|will|with|would|you|your"
)
_OF_TEXTS = replace(OF_ANSWERS, monotone=False)


def squad_tokens(text: str) -> list[str]:
    """Split a text into tokens as the evaluation script of SQuAD: lower case, no ASCII punctuation, no articles.

    >>> squad_tokens("The U.S. Army's  answer: an “A”")
    ['us', 'armys', 'answer', '“', '”']
    """
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def _share_in(text: str | None, tokens: list[str]) -> float:
    """Return the share of tokens that occur in a text; NaN without a text or tokens."""
    known = set(squad_tokens(text or ""))
    return np.nan if text is None or not tokens else sum(token in known for token in tokens) / len(tokens)


class _ReferenceMeasure(AnswerMeasure):
    """Base of the measures that compare a text with references; the best one counts."""

    def compare(self, text: str, reference: str) -> float:
        """Return the score of a text for one reference."""
        raise MeasureError(f"{type(self).__name__} has no formula for {text!r:.20} and {reference!r:.20}")

    def pieces(self, answered: JudgedAnswers) -> Pieces:
        """Return one piece per answer with a reference. A missing answer scores 0."""
        best = self._best(answered.texts, answered.references)
        has_reference = np.array(list(map(bool, answered.references)))
        return Pieces("answers", np.arange(len(best)), np.where(answered.has_answer, best, 0.0), has_reference)

    def _best(self, texts: Sequence[str | None], references: Sequence[Sequence[str]]) -> Floats:
        """Return the best score of each text over its references; NaN if one of them is unknown."""
        scores = (
            [] if text is None else [self.compare(text, reference) for reference in expected]
            for text, expected in zip(texts, references, strict=True)
        )
        return np.array([np.fmax.reduce(of_text, initial=np.nan) for of_text in scores])


@measure(
    category="answers",
    cite="Rajpurkar et al. 2016 (SQuAD); 2018 (SQuAD 2.0) for questions without an answer",
    use="Short answers, such as names, dates, and numbers.",
    misleads="A correct answer in other words, or with one more word, scores 0.",
    properties=_OF_TEXTS,
)
class ExactMatch(_ReferenceMeasure):
    r"""Exact match: 1 if the answer and a reference have the same tokens in the same order, otherwise 0.

    .. math:: \mathrm{ExactMatch} = \max_{r} [\mathrm{tokens}(\mathrm{answer}) = \mathrm{tokens}(r)]

    Tokens are words in lower case, without ASCII punctuation and without the articles a, an, and the. A missing answer
    scores 0. Abstaining scores 1 if the question cannot be answered, otherwise 0. A topic without a reference is
    excluded.

    Examples
    --------
    >>> ExactMatch().of_answer(answer="the Denver Broncos.", references=["Broncos", "Denver Broncos"])
    1.0
    """

    def compare(self, text: str, reference: str) -> float:
        """Return 1 if the tokens are equal."""
        return float(squad_tokens(text) == squad_tokens(reference))


@measure(
    category="answers",
    cite="Rajpurkar et al. 2016 (SQuAD); 2018 (SQuAD 2.0) for questions without an answer",
    use="Short answers for which a partial match of words should get partial credit.",
    misleads="The measure counts words, not meaning: a missing “not” costs little, and long answers have a low"
    " precision.",
    properties=_OF_TEXTS,
)
class TokenF1(_ReferenceMeasure):
    r"""Token F1: the harmonic mean of precision and recall of the answer's tokens, for the best reference.

    .. math:: \mathrm{TokenF1} = \max_{r} \frac{2\,|A \cap R_r|}{|A| + |R_r|}

    A and R are the tokens of the answer and of the reference, as in ExactMatch. A repeated token counts as often as it
    occurs in both. If one of them has no tokens, the score is 1 if both have none, otherwise 0.

    Examples
    --------
    >>> TokenF1().of_answer(answer="It was founded in 1871.", references=["1871"])  # 2 * 1 / (5 + 1)
    0.3333333333333333
    """

    def compare(self, text: str, reference: str) -> float:
        """Return the F1 of the tokens."""
        tokens, expected = squad_tokens(text), squad_tokens(reference)
        shared = sum((Counter(tokens) & Counter(expected)).values())
        return 2 * shared / (len(tokens) + len(expected)) if tokens and expected else float(tokens == expected)


@measure(
    category="answers",
    cite="Chen et al. 2017 (DrQA: passages that contain the answer), here as a share of tokens",
    use="Whether the passages that the generator reads contain the reference answer.",
    misleads="The tokens can be anywhere in the context. Frequent words occur in most contexts, so a context without"
    " the answer can also score above 0.",
    properties=_OF_TEXTS,
)
class AnswerRecall(_ReferenceMeasure):
    r"""Answer recall: the share of the tokens of a reference answer that the context contains, for the best reference.

    .. math:: \mathrm{AnswerRecall} = \max_{r} \frac{|\{t \in R_r : t \in C\}|}{|R_r|}

    R are the tokens of the reference, as in ExactMatch, and C those of all passages of the context. It depends on
    retrieval only, not on the answer. A topic without the texts of its context is excluded.

    Examples
    --------
    >>> AnswerRecall().of_answer(references=["two years"], passages=["A warranty of two months."])
    0.5
    """

    def compare(self, text: str, reference: str) -> float:
        """Return the share of the tokens of the reference in a context."""
        return _share_in(text, squad_tokens(reference))

    def pieces(self, answered: JudgedAnswers) -> Pieces:
        """Return one piece per topic with a reference."""
        best = self._best(answered.contexts, answered.references)
        return Pieces("answers", np.arange(len(best)), best, np.ones(len(best)))


@measure(
    category="answers",
    cite="judged; Lin 2004 (ROUGE) for recall of words",
    use="A first look for answers that use words from outside their context, if nobody judged their support.",
    misleads="The measure compares words only: a negated copy scores 1, and a correct paraphrase scores 0. Use"
    " Groundedness for support. In languages without spaces between words, words cannot be counted.",
    properties=_OF_TEXTS,
)
class LexicalSupport(AnswerMeasure):
    r"""Lexical support: the share of the content words that occur in the context, as a mean over sentences.

    .. math:: \mathrm{LexicalSupport} = \frac{1}{|S|} \sum_{s \in S} \frac{|\{t \in s : t \in C\}|}{|s|}

    Content words are tokens as in ExactMatch, except English function words; C are the tokens of all passages of the
    context. Sentences without content words and answers that abstain are excluded.

    Examples
    --------
    >>> passages = ["The grinder has conical burrs made of steel."]
    >>> LexicalSupport().of_answer(sentence_texts=["It has steel burrs.", "It weighs 3 kg."], passages=passages)
    0.5
    """

    def pieces(self, answered: JudgedAnswers) -> Pieces:
        """Return one piece per sentence."""
        topics = answered.grounded.topic
        words = [
            [token for token in squad_tokens(text or "") if not _FUNCTION_WORD.fullmatch(token)]
            for text in answered.sentence_texts
        ]
        contexts = [answered.contexts[topic] for topic in topics]
        return Pieces(
            "sentences", topics, np.array(list(map(_share_in, contexts, words))), np.array(list(map(bool, words)))
        )
