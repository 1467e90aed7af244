"""Parsing of replies: a malformed reply never becomes a grade."""

from __future__ import annotations

import math

import pytest

from judged.labels import Labels
from judged.labels.asking import expected_grade, expected_grades
from judged.labels.asking.client import Reply
from judged.labels.asking.prompts import INVALID, encode_logprobs, parse_reply

SCALE = ("0", "1", "2", "3")
GOOD = [
    ("2", "2"), (" 3\n", "3"), ("```\n1\n```", "1"), ("```text\n 0 \n```", "0"), ("\t2 ", "2"), ("\u00a02", "2"),
]  # fmt: skip
BAD = [
    ("The passage refers to 3 aspects of the query.\n##final score: 1", "several answers"),
    ("I cannot judge this; the text mentions 2019.", "refusal"),
    ("##final score: -1", "other format"),
    ("##final score: 10", "other format"),
    ("##final score: 2", "other format"),
    ("-1", "not on the scale"), ("-0", "other format"), ("10", "not on the scale"), ("4", "not on the scale"),
    ("02", "other format"), ("+2", "other format"), ("2.", "other format"), ("2/3", "several answers"),
    ("2.0", "not an integer"), ("1,5", "not an integer"), (".5", "not an integer"), ("2e0", "several answers"),
    ("2\n2", "other format"), ("2\n3", "several answers"), ("2 or 3", "several answers"), ("2-3", "several answers"),
    ("**2**", "other format"), ('{"score": 2}', "other format"), ('```json\n{"score": 2}\n```', "other format"),
    ("```2```", "other format"), ("```\n```\n2\n```\n```", "other format"), ("`2`", "other format"),
    ("<think>3?</think>\n2", "several answers"), ("<think></think>2", "other format"), ("Grade: 2", "other format"),
    ("two", "no answer"), ("zwei", "no answer"), ("relevant", "no answer"), ("...", "no answer"),
    ("\uff12", "other format"), ("\u0662", "other format"), ("\u00b2", "no answer"), ("\u2461", "no answer"),
    ("\u4e8c", "no answer"), ("Die Note ist 2.", "other format"), ("La nota es 2", "other format"),
    ("\u8bc4\u5206\uff1a2", "other format"),
    ("I'm sorry, but I can't help with that.", "refusal"), ("As an AI, I do not judge.", "refusal"),
    ("Das kann ich nicht bewerten.", "refusal"), ("\u62b1\u6b49\uff0c\u65e0\u6cd5\u56de\u7b54", "refusal"),
    ("Lo siento, no puedo.", "refusal"), ("", "empty"), (" \n ", "empty"), ("```\n\n```", "no answer"),
    ("True", "no answer"), ("null", "no answer"), ("nan", "no answer"), ("1_0", "several answers"),
    ("0x2", "several answers"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "answer"), GOOD)
def test_valid_replies_are_grades(text: str, answer: str) -> None:
    assert parse_reply(Reply(text), SCALE) == (answer, None)


@pytest.mark.parametrize(("text", "reason"), BAD)
def test_malformed_replies_are_invalid(text: str, reason: str) -> None:
    assert parse_reply(Reply(text), SCALE) == (None, reason)
    assert reason in INVALID


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply("2", finish="length"), "truncated"),
        (Reply("", finish="length"), "truncated"),
        (Reply("1", finish="MAX_TOKENS"), "truncated"),
        (Reply("1", finish="model_length"), "truncated"),
        (Reply("2", finish="content_filter"), "refusal"),
        (Reply("2", refused=True), "refusal"),
    ],
)
def test_finish_reasons_and_refusals_come_before_the_text(reply: Reply, reason: str) -> None:
    assert parse_reply(reply, SCALE) == (None, reason)


def test_a_scale_without_zero_and_with_two_digits() -> None:
    answers = ("1", "10")
    assert [parse_reply(Reply(text), answers).answer for text in ("1", "10", "0", "01")] == ["1", "10", None, None]


@pytest.mark.parametrize(
    ("text", "answer"), [("A", "A"), ("b", "B"), ("A and B", None), ("Document A", None), ("D", None), ("\u0410", None)]
)  # the last is Cyrillic
def test_letters_are_parsed_strictly(text: str, answer: str | None) -> None:
    assert parse_reply(Reply(text), ("A", "B", "C")).answer == answer


def test_expected_grades() -> None:
    half = math.log(0.5)
    assert expected_grade(encode_logprobs({"1": half, "3": half}, SCALE)) == pytest.approx(2)
    # Tokens that differ in blanks are merged.
    assert expected_grade(encode_logprobs({" 2": math.log(0.3), "2": math.log(0.3), "The": -1.0}, SCALE)) == 2
    assert math.isnan(expected_grade(encode_logprobs({"2": math.log(0.4), "The": math.log(0.6)}, SCALE)))
    assert encode_logprobs({"The": -0.1}, SCALE) == ""
    assert encode_logprobs({"1": -0.1}, ("1", "10")) == ""  # the first token is the same for 1 and 10
    table = Labels.of({"m": {"q": {"a": 2, "b": 0}}}).table
    rows = table.to_pylist()
    rows[1]["logprobs"] = encode_logprobs({"0": math.log(0.75), "1": math.log(0.25)}, SCALE)
    labels = Labels.of(table.from_pylist(rows, schema=table.schema))
    assert expected_grades(labels).tolist() == pytest.approx([math.nan, 0.25], nan_ok=True)
