"""Query texts: types of reformulations, and disjoint vocabularies of departments."""

from __future__ import annotations

import itertools

import pytest

from judged.online.simulation.world import DEPARTMENTS, EXTRAS, MODIFIERS, query_text


def distance(first: str, second: str) -> int:
    """Compute the Levenshtein distance by rows."""
    row = list(range(len(second) + 1))
    for i, first_letter in enumerate(first, 1):
        above, row = row, [i]
        for j, second_letter in enumerate(second, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (first_letter != second_letter)))
    return row[-1]


TOPICS = range(0, 90, 7)


@pytest.mark.parametrize("topic", TOPICS)
def test_types_of_reformulations(topic: int) -> None:
    for extras, modifier in itertools.product(range(EXTRAS), range(MODIFIERS)):
        text = query_text(topic, extras, modifier, misspelt=0)
        assert distance(text, query_text(topic, extras, modifier, misspelt=1)) == 1
        if extras + 1 < EXTRAS:
            longer = query_text(topic, extras + 1, modifier, misspelt=0)
            assert set(text.split()) < set(longer.split())
            assert distance(text, longer) > 3
        for other in range(MODIFIERS):
            if other != modifier:
                changed = query_text(topic, extras, other, misspelt=0)
                assert len(set(changed.split()) & set(text.split())) == len(text.split()) - 1
                assert distance(text, changed) > 3


def test_departments_share_no_words_and_texts_are_unique() -> None:
    words: dict[int, set[str]] = {}
    texts = list[str]()
    for topic, extras, modifier, misspelt in itertools.product(range(300), range(EXTRAS), range(MODIFIERS), (0, 1)):
        text = query_text(topic, extras, modifier, misspelt)
        texts.append(text)
        words.setdefault(topic % DEPARTMENTS, set()).update(text.split())
    assert len(set(texts)) == len(texts)
    for first, second in itertools.combinations(words.values(), 2):
        assert not first & second
    assert len(words) == DEPARTMENTS == 6
