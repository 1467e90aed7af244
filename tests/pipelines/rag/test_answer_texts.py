"""Exact match and token F1 against the definition of SQuAD, and measures of texts against hand calculations."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import judged
from judged.pipelines.rag import evaluate
from judged.scoring.judging.answers import judge_answer
from judged.scoring.measures.answer_texts import squad_tokens

MEASURES: Any = judged.measures


def em(answer: str, *references: str) -> float:
    return MEASURES.ExactMatch().of_answer(answer=answer, references=references)


def f1(answer: str, *references: str) -> float:
    return MEASURES.TokenF1().of_answer(answer=answer, references=references)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The Denver  Broncos.", ["denver", "broncos"]),
        ("a an the A AN THE", []),
        ("theater another", ["theater", "another"]),  # articles are words
        ("U.S.A.", ["usa"]),  # so that the last letter is not an article
        ("a-b", ["ab"]),  # punctuation goes first
        ("The-end of\tit\n", ["theend", "of", "it"]),
        ("it's 24-10!", ["its", "2410"]),
        ("$5 & 10%", ["5", "10"]),
        ("“Ärger” – CAFÉ", ["“ärger”", "–", "café"]),  # other punctuation than ASCII stays
        ("«the»", ["«", "»"]),  # an article is replaced by a blank
        ("l»an", ["l»"]),  # an article after a boundary
        ("東京。", ["東京。"]),
        ("", []),
        (string.punctuation, []),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert squad_tokens(text) == tokens == _normalized(text).split()


def _normalized(text: str) -> str:
    """Return a text as ``normalize_answer`` of evaluate-v1.1.py does."""
    text = "".join(character for character in text.lower() if character not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def _squad_f1(answer: str, reference: str) -> float:
    """Return F1 as ``compute_f1`` of evaluate-v2.0.py does."""
    predicted, gold = _normalized(answer).split(), _normalized(reference).split()
    same = sum((Counter(gold) & Counter(predicted)).values())
    if not gold or not predicted:
        return float(gold == predicted)
    if same == 0:
        return 0.0
    precision, recall = same / len(predicted), same / len(gold)
    return 2 * precision * recall / (precision + recall)


words = st.lists(st.sampled_from(["a", "An", "the", "cat", "Cat.", "dog", "é", "»", "(", "x-ray", ""])).map(" ".join)


@given(answer=words | st.text(), references=st.lists(words | st.text(), min_size=1, max_size=3))
def test_scores_are_those_of_the_script_of_squad(answer: str, references: list[str]) -> None:
    assert em(answer, *references) == max(_normalized(answer) == _normalized(text) for text in references)
    assert f1(answer, *references) == pytest.approx(max(_squad_f1(answer, text) for text in references))


@pytest.mark.parametrize(
    ("answer", "references", "exact", "overlap"),
    [
        ("the Denver Broncos.", ["Denver Broncos"], 1, 1),
        ("Broncos Denver", ["Denver Broncos"], 0, 1),  # order counts only for exact match
        ("It was founded in 1871.", ["1871"], 0, 2 / 6),
        ("very very good", ["very good good"], 0, 4 / 6),  # repeated tokens count as often as in both
        ("24-10", ["no", "24–10", "2410"], 1, 1),  # the best reference
        ("wife of Wars", ["his wife", "wife of the fisherman Wars"], 0, 6 / 7),
        ("Yes", ["No"], 0, 0),
        ("", ["No"], 0, 0),
        ("the", ["a"], 1, 1),  # both have no tokens
        ("", [""], 1, 1),  # an abstention from a question without an answer
        ("x", [""], 0, 0),
    ],
)
def test_exact_match_and_f1_by_hand(answer: str, references: list[str], exact: float, overlap: float) -> None:
    assert em(answer, *references) == exact
    assert f1(answer, *references) == pytest.approx(overlap)


def test_missing_and_unknown_answers() -> None:
    for measure in (MEASURES.ExactMatch(), MEASURES.TokenF1()):
        assert math.isnan(measure.of_answer(answer=None, references=["x"]))  # the text is unknown
        assert math.isnan(measure.of_answer(answer="x"))
    tables = {
        "answers": [{"query_id": "q", "text": "x"}, {"query_id": "r", "abstained": True}],
        "references": [
            *({"query_id": query, "text": "x"} for query in "qrs"),
            {"query_id": "t", "answerable": False},  # without an answer, and thus without an abstention
        ],
    }
    scores = evaluate(tables, ["ExactMatch", "TokenF1"])
    assert set(map(str, scores.per_topic()["run"].values())) == {str({"q": 1.0, "r": 0.0, "s": 0.0, "t": 0.0})}


def test_answer_recall_depends_on_the_context_only() -> None:
    recall = MEASURES.AnswerRecall()
    passages = ["The K2 has a warranty of two years.", "Claims need a receipt."]
    assert recall.of_answer(references=["two Years!"], passages=passages) == 1
    assert recall.of_answer(references=["three years", "ten days"], passages=passages) == 0.5
    assert recall.of_answer(references=["two"], passages=[]) == 0
    assert math.isnan(recall.of_answer(references=["two"]))
    assert math.isnan(recall.of_answer(references=["the"], passages=passages))
    assert math.isnan(recall.of_answer(passages=passages))


def test_lexical_support_counts_content_words_of_sentences() -> None:
    support = MEASURES.LexicalSupport()
    passages = ["The grinder has conical burrs.", "Its weight is 3 kg."]
    assert support.of_answer(sentence_texts=["It has conical burrs.", "It is blue."], passages=passages) == 0.5
    assert support.of_answer(sentence_texts=["The weight of burrs is 9 kg."], passages=passages) == 0.75
    assert support.of_answer(sentence_texts=["Not conical."], passages=passages) == 0.5  # a negation is content
    assert support.of_answer(sentence_texts=["It is.", "Burrs."], passages=passages) == 1
    assert math.isnan(support.of_answer(sentence_texts=["It is."], passages=passages))
    assert support.of_answer(sentence_texts=["Burrs."], passages=[]) == 0
    assert math.isnan(support.of_answer(sentence_texts=["Burrs."]))


def test_texts_are_known_so_that_nothing_is_unjudged() -> None:
    answered = judge_answer(answer="x", references=["x"], passages=["x"], sentence_texts=["x"])
    for name in ("ExactMatch", "TokenF1", "AnswerRecall", "LexicalSupport"):
        measure = getattr(MEASURES, name)()
        assert [bound[0] for bound in measure.score_bounds(answered)] == [1, 1]
        assert measure.decided_share(answered) == 1
