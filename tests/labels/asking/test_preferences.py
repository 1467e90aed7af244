"""Preferences in both orders: consistent preferences, and effects of position."""

from __future__ import annotations

import re

from judged.labels.asking import ask_preferences, prepare_preferences
from labels.asking.fake_endpoint import made_store, serving, truth

PAIRS = [("q0", f"d{a}", f"d{b}") for a in range(4) for b in range(4, 8)]


def true_grades(text: str) -> tuple[int, int]:
    first, second = re.findall(r"number (\w+)", text)
    return truth(first), truth(second)


def by_truth(text: str, _: int) -> str:
    first, second = true_grades(text)
    return "C" if first == second else "A" if first > second else "B"


def test_a_judge_without_position_bias_is_consistent() -> None:
    store = made_store(n=8)
    with serving(by_truth) as fake:
        result = ask_preferences(prepare_preferences(store, fake.endpoint(), PAIRS))
        assert fake.calls == 32
        cached_result = ask_preferences(prepare_preferences(store, fake.endpoint(), PAIRS))
        assert fake.calls == 32
    for _, doc, other_doc, answer, reversed_answer in result.pairs:
        expected = 0 if truth(doc) == truth(other_doc) else 1 if truth(doc) > truth(other_doc) else 2
        assert (answer, reversed_answer) == (expected, expected)
    assert result.by_position == (0, 0)
    assert cached_result.pairs == result.pairs
    assert result.table().column("preferred").values == [row[3] for row in result.pairs]


def test_position_bias_is_detected() -> None:
    store = made_store(n=8)
    with serving(lambda *_: "A") as fake:
        result = ask_preferences(prepare_preferences(store, fake.endpoint(), PAIRS))
    assert result.by_position == (16, 0)
    assert set(result.table().column("preferred").values) == {None}


def test_an_invalid_reply_in_one_order_gives_no_preference() -> None:
    store = made_store(n=8)
    with serving(lambda text, _: "I prefer A" if true_grades(text) == (0, 1) else by_truth(text, 0)) as fake:
        result = ask_preferences(prepare_preferences(store, fake.endpoint(), [("q0", "d0", "d5"), ("q0", "d1", "d4")]))
    assert [row[3:] for row in result.pairs] == [(None, 2), (1, None)]
    assert result.table().column("preferred").values == [None, None]
    assert result.tally.invalid == {"other format": 2}
