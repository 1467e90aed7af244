"""What is an answer and what is none: no malformed answer becomes a grade."""

from __future__ import annotations

import math

import pytest

from judged.labels import Labels
from judged.labels.asking import expected_grade, expected_grades
from judged.labels.asking.client import Reply
from judged.labels.asking.prompts import INVALID, first_token, read

SCALE = ("0", "1", "2", "3")
GOOD = [
    ("2", "2"), (" 3\n", "3"), ("```\n1\n```", "1"), ("```text\n 0 \n```", "0"), ("\t2 ", "2"), ("\u00a02", "2"),
]  # fmt: skip
BAD = [
    ("The passage refers to 3 aspects of the query.\n##final score: 1", "several answers"),
    ("I cannot judge this; the text mentions 2019.", "refusal"),
    ("##final score: -1", "another form"),
    ("##final score: 10", "another form"),
    ("##final score: 2", "another form"),
    ("-1", "out of scale"), ("-0", "another form"), ("10", "out of scale"), ("4", "out of scale"),
    ("02", "another form"), ("+2", "another form"), ("2.", "another form"), ("2/3", "several answers"),
    ("2.0", "not an integer"), ("1,5", "not an integer"), (".5", "not an integer"), ("2e0", "several answers"),
    ("2\n2", "another form"), ("2\n3", "several answers"), ("2 or 3", "several answers"), ("2-3", "several answers"),
    ("**2**", "another form"), ('{"score": 2}', "another form"), ('```json\n{"score": 2}\n```', "another form"),
    ("```2```", "another form"), ("```\n```\n2\n```\n```", "another form"), ("`2`", "another form"),
    ("<think>3?</think>\n2", "several answers"), ("<think></think>2", "another form"), ("Grade: 2", "another form"),
    ("two", "no answer"), ("zwei", "no answer"), ("relevant", "no answer"), ("...", "no answer"),
    ("\uff12", "another form"), ("\u0662", "another form"), ("\u00b2", "no answer"), ("\u2461", "no answer"),
    ("\u4e8c", "no answer"), ("Die Note ist 2.", "another form"), ("La nota es 2", "another form"),
    ("\u8bc4\u5206\uff1a2", "another form"),
    ("I'm sorry, but I can't help with that.", "refusal"), ("As an AI, I do not judge.", "refusal"),
    ("Das kann ich nicht bewerten.", "refusal"), ("\u62b1\u6b49\uff0c\u65e0\u6cd5\u56de\u7b54", "refusal"),
    ("Lo siento, no puedo.", "refusal"), ("", "empty"), (" \n ", "empty"), ("```\n\n```", "no answer"),
    ("True", "no answer"), ("null", "no answer"), ("nan", "no answer"), ("1_0", "several answers"),
    ("0x2", "several answers"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "form"), GOOD)
def test_the_one_form_is_a_grade(text: str, form: str) -> None:
    assert read(Reply(text), SCALE) == (form, None)


@pytest.mark.parametrize(("text", "why"), BAD)
def test_what_is_malformed_is_no_grade(text: str, why: str) -> None:
    assert read(Reply(text), SCALE) == (None, why)
    assert why in INVALID


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply("2", finish="length"), "cut"),
        (Reply("", finish="length"), "cut"),
        (Reply("1", finish="MAX_TOKENS"), "cut"),
        (Reply("1", finish="model_length"), "cut"),
        (Reply("2", finish="content_filter"), "refusal"),
        (Reply("2", refused=True), "refusal"),
    ],
)
def test_what_the_protocol_says_goes_before_the_text(reply: Reply, why: str) -> None:
    assert read(reply, SCALE) == (None, why)


def test_a_scale_without_zero_and_with_two_digits() -> None:
    forms = ("1", "10")
    assert [read(Reply(text), forms).form for text in ("1", "10", "0", "01")] == ["1", "10", None, None]


@pytest.mark.parametrize(
    ("text", "form"), [("A", "A"), ("b", "B"), ("A and B", None), ("Document A", None), ("D", None), ("\u0410", None)]
)  # the last is Cyrillic
def test_letters_are_read_as_strictly(text: str, form: str | None) -> None:
    assert read(Reply(text), ("A", "B", "C")).form == form


def test_expected_grades() -> None:
    half = math.log(0.5)
    assert expected_grade(first_token({"1": half, "3": half}, SCALE)) == pytest.approx(2)
    assert expected_grade(first_token({" 2": math.log(0.3), "2": math.log(0.3), "The": -1.0}, SCALE)) == 2  # joined
    assert math.isnan(expected_grade(first_token({"2": math.log(0.4), "The": math.log(0.6)}, SCALE)))
    assert first_token({"The": -0.1}, SCALE) == ""
    assert first_token({"1": -0.1}, ("1", "10")) == ""  # a first token does not tell 1 from 10
    table = Labels.of({"m": {"q": {"a": 2, "b": 0}}}).table
    rows = table.to_pylist()
    rows[1]["logprobs"] = first_token({"0": math.log(0.75), "1": math.log(0.25)}, SCALE)
    labels = Labels.of(table.from_pylist(rows, schema=table.schema))
    assert expected_grades(labels).tolist() == pytest.approx([math.nan, 0.25], nan_ok=True)
