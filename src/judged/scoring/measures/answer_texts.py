"""Measures of the texts of answers, references, and contexts, which need no judgments."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from string import punctuation
from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.judging.answers import Pieces
from judged.scoring.measures.answers import OF_ANSWERS
from judged.scoring.measures.base import AnswerMeasure
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.scoring.judging.answers import JudgedAnswers


_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", punctuation)
_FUNCTION_WORDS = frozenset([
    "about", "after", "all", "also", "am", "and", "any", "are", "as", "at", "be", "because", "been", "before", "both",
    "but", "by", "can", "could", "did", "do", "does", "during", "each", "for", "from", "had", "has", "have", "he",
    "her", "his", "how", "i", "if", "in", "into", "is", "it", "its", "may", "more", "most", "must", "my", "of", "on",
    "or", "other", "our", "out", "over", "she", "should", "so", "some", "such", "than", "that", "their", "them", "then",
    "there", "these", "they", "this", "those", "through", "to", "under", "up", "was", "we", "were", "what", "when",
    "where", "which", "while", "who", "will", "with", "would", "you", "your",
])  # fmt: skip
_OF_TEXTS = replace(OF_ANSWERS, monotone=False)


def squad_tokens(text: str) -> list[str]:
    """Split a text into tokens as the evaluation script of SQuAD: lower case, no ASCII punctuation, no articles.

    >>> squad_tokens("The U.S. Army's  answer: an “A”")
    ['us', 'armys', 'answer', '“', '”']
    """
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def _exact_match(answer: str, reference: str) -> float:
    return float(squad_tokens(answer) == squad_tokens(reference))


def _token_f1(answer: str, reference: str) -> float:
    tokens, expected = squad_tokens(answer), squad_tokens(reference)
    if not tokens or not expected:
        return float(tokens == expected)
    shared = sum((Counter(tokens) & Counter(expected)).values())
    return 2 * shared / (len(tokens) + len(expected))


def _share_in(tokens: list[str], text: str) -> float:
    """Return the share of tokens that occur in a text; NaN without tokens."""
    known = set(squad_tokens(text))
    return sum(token in known for token in tokens) / len(tokens) if tokens else np.nan


def _best_reference(answered: JudgedAnswers, score: Callable[[str, str], float]) -> Pieces:
    """Return one piece per answer to a question with references: its best score over the references."""
    values = [
        max((score(text, reference) for reference in references), default=np.nan) if text is not None else np.nan
        for text, references in zip(answered.texts, answered.references, strict=True)
    ]
    values = np.where(answered.has_answer, np.array(values, dtype=np.float64), 0.0)
    return Pieces("answers", np.arange(len(answered)), values, np.array(list(map(bool, answered.references))))


@measure(
    category="answers",
    cite="Rajpurkar et al. 2016 (SQuAD); 2018 (SQuAD 2.0) for questions without an answer",
    use="Short answers, such as names, dates, and numbers.",
    misleads="A correct answer in other words, or with one more word, scores 0.",
    properties=_OF_TEXTS,
    tools={"SQuAD evaluation script": "exact (a percentage)"},
)
class ExactMatch(AnswerMeasure):
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

    def pieces(self, answered: JudgedAnswers) -> Pieces:
        """Return one piece per answer with a reference."""
        return _best_reference(answered, _exact_match)


@measure(
    category="answers",
    cite="Rajpurkar et al. 2016 (SQuAD); 2018 (SQuAD 2.0) for questions without an answer",
    use="Short answers in which part of the words is worth something.",
    misleads="It counts words, not meaning: a missing “not” costs little, and long answers have a low precision.",
    properties=_OF_TEXTS,
    tools={"SQuAD evaluation script": "f1 (a percentage)"},
)
class TokenF1(AnswerMeasure):
    r"""Token F1: the harmonic mean of precision and recall of the answer's tokens, for the best reference.

    .. math:: \mathrm{TokenF1} = \max_{r} \frac{2\,|A \cap R_r|}{|A| + |R_r|}

    A and R are the tokens of the answer and of the reference, as in ExactMatch. A repeated token counts as often as it
    occurs in both. If one of them has no tokens, the score is 1 if both have none, otherwise 0.

    Examples
    --------
    >>> TokenF1().of_answer(answer="It was founded in 1871.", references=["1871"])  # 2 * 1 / (5 + 1)
    0.3333333333333333
    """

    def pieces(self, answered: JudgedAnswers) -> Pieces:
        """Return one piece per answer with a reference."""
        return _best_reference(answered, _token_f1)


@measure(
    category="answers",
    cite="Chen et al. 2017 (DrQA: passages that contain the answer), here as a share of tokens",
    use="Whether the retrieved passages contain the reference answer, before the generator reads them.",
    misleads="The tokens may be anywhere in the context, and frequent words are in most contexts.",
    properties=_OF_TEXTS,
)
class AnswerRecall(AnswerMeasure):
    r"""Answer recall: the share of the tokens of a reference answer that the context contains, for the best reference.

    .. math:: \mathrm{AnswerRecall} = \max_{r} \frac{|\{t \in R_r : t \in C\}|}{|R_r|}

    R are the tokens of the reference, as in ExactMatch, and C those of all passages of the context. It depends on
    retrieval only, not on the answer. A topic without the texts of its context is excluded.

    Examples
    --------
    >>> AnswerRecall().of_answer(references=["two years"], passages=["A warranty of two months."])
    0.5
    """

    def pieces(self, answered: JudgedAnswers) -> Pieces:
        """Return one piece per topic with a reference."""
        shares = [
            max((_share_in(squad_tokens(text), context) for text in references if squad_tokens(text)), default=np.nan)
            if context is not None
            else np.nan
            for references, context in zip(answered.references, answered.contexts, strict=True)
        ]
        return Pieces("answers", np.arange(len(answered)), np.array(shares, dtype=np.float64), np.ones(len(shares)))


@measure(
    category="answers",
    cite="judged; Lin 2004 (ROUGE) for recall of words",
    use="A first look for answers that use words from outside their context, if nobody judged their support.",
    misleads="It compares words only: a negated copy scores 1, and a correct paraphrase scores 0. Use Groundedness for"
    " support. Languages without spaces have no words.",
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
            [token for token in squad_tokens(text or "") if token not in _FUNCTION_WORDS]
            for text in answered.sentence_texts
        ]
        contexts = [answered.contexts[topic] for topic in topics.tolist()]
        shares = [
            np.nan if context is None else _share_in(tokens, context)
            for tokens, context in zip(words, contexts, strict=True)
        ]
        return Pieces("sentences", topics, np.array(shares, dtype=np.float64), np.array(list(map(bool, words))))
