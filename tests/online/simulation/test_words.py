"""Texts of queries: a reformulation is what it is called, and departments share nothing."""

from __future__ import annotations

import itertools

import pytest

from judged.online.simulation.world import DEPARTMENTS, EXTRAS, MODIFIERS, text


def distance(one: str, other: str) -> int:
    """Levenshtein's distance, by rows."""
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        above, row = row, [at]
        for to, facing in enumerate(other, 1):
            row.append(min(above[to] + 1, row[-1] + 1, above[to - 1] + (letter != facing)))
    return row[-1]


TOPICS = range(0, 90, 7)


@pytest.mark.parametrize("topic", TOPICS)
def test_reformulations_are_what_they_are_called(topic: int) -> None:
    for extras, modifier in itertools.product(range(EXTRAS), range(MODIFIERS)):
        typed = text(topic, extras, modifier, misspelt=0)
        assert distance(typed, text(topic, extras, modifier, misspelt=1)) == 1
        if extras + 1 < EXTRAS:
            longer = text(topic, extras + 1, modifier, misspelt=0)
            assert set(typed.split()) < set(longer.split())
            assert distance(typed, longer) > 3
        for other in range(MODIFIERS):
            if other != modifier:
                changed = text(topic, extras, other, misspelt=0)
                assert len(set(changed.split()) & set(typed.split())) == len(typed.split()) - 1
                assert distance(typed, changed) > 3


def test_departments_share_no_word_and_no_two_texts_are_the_same() -> None:
    words: dict[int, set[str]] = {}
    every = list[str]()
    for topic, extras, modifier, misspelt in itertools.product(range(300), range(EXTRAS), range(MODIFIERS), (0, 1)):
        typed = text(topic, extras, modifier, misspelt)
        every.append(typed)
        words.setdefault(topic % DEPARTMENTS, set()).update(typed.split())
    assert len(set(every)) == len(every)
    for one, other in itertools.combinations(words.values(), 2):
        assert not one & other
    assert len(words) == DEPARTMENTS == 6
