"""Kinds of reformulation: distances against their definitions, and rules against examples and each other."""

from __future__ import annotations

import math
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged.data.query_text import normalize_query
from judged.online.facts.reformulation import (
    KINDS,
    MAX_CHARACTERS,
    REFORMULATIONS,
    levenshtein,
    reformulation_kind,
    reformulation_kinds,
    trigram_cosine,
    words_of,
)

SHORT = st.text("abc", max_size=9)  # few letters: much is equal
TEXTS = st.one_of(SHORT, st.text("ab 1é猫犬ก", max_size=12), st.text(max_size=12))


def distance(before: str, after: str) -> int:
    """Compute the distance by its definition, row by row (Wagner and Fischer 1974)."""
    row = list(range(len(after) + 1))
    for i, old_character in enumerate(before, 1):
        corner, row[0] = row[0], i
        for column, new_character in enumerate(after, 1):
            corner, row[column] = (
                row[column],
                min(row[column] + 1, row[column - 1] + 1, corner + (old_character != new_character)),
            )
    return row[-1]


def cosine(before: str, after: str) -> float:
    """Compute the cosine by its definition, over all trigrams that occur."""
    old_counts, new_counts = (Counter(text[i : i + 3] for i in range(len(text) - 2)) for text in (before, after))
    if not old_counts or not new_counts:
        return 0.0
    dot_product = sum(old_counts[trigram] * new_counts[trigram] for trigram in old_counts | new_counts)
    return dot_product / (
        math.sqrt(sum(count * count for count in old_counts.values()))
        * math.sqrt(sum(count * count for count in new_counts.values()))
    )


@pytest.mark.parametrize(
    ("before", "after", "edits"),
    [
        ("kitten", "sitting", 3), ("saturday", "sunday", 3), ("flaw", "lawn", 2), ("", "abc", 3), ("abc", "", 3),
        ("", "", 0), ("intention", "execution", 5), ("ab", "ba", 2), ("gumbo", "gambol", 2), ("cat", "dog", 3),
        ("Straße", "Strasse", 2), ("猫", "犬", 1), ("a" * 300, "a" * 290, 10),
    ],
)  # fmt: skip
def test_levenshtein_of_known_pairs(before, after, edits):
    assert levenshtein(before, after) == levenshtein(after, before) == edits


@given(SHORT, SHORT, st.integers(0, 5))
def test_levenshtein_is_its_definition_and_gives_up_beyond_the_limit(before, after, limit):
    edits = distance(before, after)
    assert levenshtein(before, after) == edits
    assert levenshtein(before, after, limit) == min(edits, limit + 1)


@given(TEXTS, TEXTS, TEXTS)
def test_levenshtein_is_a_metric(first, second, third):
    assert levenshtein(first, second) == levenshtein(second, first)
    assert (levenshtein(first, second) == 0) == (first == second)
    assert levenshtein(first, third) <= levenshtein(first, second) + levenshtein(second, third)


@given(SHORT, SHORT)
def test_the_cosine_is_its_definition(before, after):
    assert trigram_cosine(before, after) == pytest.approx(cosine(before, after), abs=1e-12)
    assert trigram_cosine(before, after) == trigram_cosine(after, before)
    assert trigram_cosine(before, before) == pytest.approx(float(len(before) >= 3), abs=1e-12)


def test_the_cosine_counts_repetitions():
    # twice aaa, against once aaa and once aab
    assert trigram_cosine("aaaa", "aaab") == pytest.approx(2 / math.sqrt(4 * 2))


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("shoes", "shoes", "same"),
        ("  Red   SHOES", "red shoes ", "same"),
        ("STRASSE", "straße", "same"),
        ("ｉｐｈｏｎｅ", "iphone", "same"),  # noqa: RUF001
        ("", "", "same"),
        ("recieve", "receive", "spelling"),
        ("shoe", "shoes", "spelling"),
        ("red shoos", "red shoes", "spelling"),
        ("foot ball", "football", "spelling"),
        ("t-shirt", "t shirt", "spelling"),
        ("shoes!", "shoes", "spelling"),  # the words are the same, and the text is not
        ("cafe paris", "café paris", "spelling"),
        ("vitamin", "vitamin c", "specialize"),  # two edits, but a word
        ("shoes", "red shoes", "specialize"),
        ("red shoes", "shoes, red, size 42", "specialize"),
        ("red shoes", "shoes", "generalize"),
        ("hotels in paris", "paris hotels", "generalize"),
        ("red shoes", "red boots", "substitute"),
        ("red shoes", "shoes red", "substitute"),
        ("my tv", "my pc", "substitute"),  # two edits, of a word of two letters
        ("iphone 12", "iphone 13", "substitute"),  # one edit, of a digit
        ("rtx3080", "rtx3090", "substitute"),
        ("photographer", "photography", "spelling"),
        ("swimming", "swimmer", "substitute"),  # three edits of eight letters; the cosine is 0.73
        ("hydropower", "hydroelectric", "new-topic"),  # a synonym: the cosine is 0.32
        ("schwarzeneger", "shwartzenegger", "substitute"),  # three edits of fourteen letters
        ("abcdefghijkl", "abxdexghxjkl", "substitute"),  # three edits that leave one trigram of ten
        ("aaax", "aaaaaaaay", "substitute"),  # one trigram in common, which is there six times: the cosine is 0.70
        ("cat", "dog", "new-topic"),  # three edits, of three letters
        ("tv", "pc", "new-topic"),
        ("red shoes", "weather tomorrow", "new-topic"),
        ("", "shoes", "new-topic"),
        ("shoes", "", "new-topic"),
        ("???", "what???", "new-topic"),
        ("東京", "東京天気", "specialize"),  # two edits, but of whole words
        ("東京天気", "天気", "generalize"),
        ("東京天気", "京都天気", "substitute"),
        ("東京", "京都", "new-topic"),  # a shared character is no shared word
        ("猫", "猫の餌", "specialize"),
        ("iphone", "iphone价格", "specialize"),
        ("โรงแรม", "โรงแรมกรุงเทพ", "specialize"),
        ("โรงแรมกรุงเทพ", "กรุงเทพ", "generalize"),
        ("погода москва", "погода", "generalize"),
        ("किताब", "किताबें", "spelling"),
    ],
)
def test_kinds_of_known_pairs(before, after, kind):
    assert reformulation_kind(before, after) == kind


def test_words_lose_punctuation_at_their_ends_alone():
    assert words_of("what's “new” (c++), t-shirt?") == {"what's", "new", "c", "t-shirt"}
    assert words_of("iphone価格12") == {"iphone", "価格", "12"}
    assert words_of("-- !") == set()


@given(TEXTS, TEXTS)
def test_rules_hold_against_a_plain_reading_of_them(before, after):
    assert reformulation_kind(before, after) == plain_kind(normalize_query(before), normalize_query(after))


def plain_kind(before: str, after: str) -> str:
    """Return the kind by the rules of the module, with each distance computed in full."""
    had, has = words_of(before), words_of(after)
    undivided = [any(char in "猫犬ก" or "\u0e00" <= char <= "\u9fff" for char in text) for text in (before, after)]
    if before == after:
        return "same"
    if not had or not has:
        return "new-topic"
    if had < has or (undivided[0] and before in after):
        return "specialize"
    if has < had or (undivided[1] and after in before):
        return "generalize"
    letters = [sum(len(word) for word in words - (had & has)) for words in (had, has)]
    third = (max(letters) or max(len(before), len(after))) // 3
    edits = distance(before, after)
    digits = ["".join(char for char in text if char.isdecimal()) for text in (before, after)]
    if edits <= min(2, third) and digits[0] == digits[1]:
        return "spelling"
    similar = had & has or edits <= min(3, third) or cosine(before, after) >= 0.5 - 1e-12
    return "substitute" if similar else "new-topic"


@given(TEXTS, TEXTS)
def test_the_way_back_is_of_the_opposite_kind(before, after):
    opposite = {"specialize": "generalize", "generalize": "specialize"}
    kind = reformulation_kind(before, after)
    assert kind in KINDS
    assert reformulation_kind(after, before) == opposite.get(kind, kind)


def test_long_texts_are_told_by_their_beginning():
    base = "word " * (MAX_CHARACTERS // 5)
    assert reformulation_kind(base * 100, base * 100) == "same"
    assert reformulation_kind(base * 100 + "a", base * 100 + "b") == "substitute"  # all that is looked at is equal
    assert reformulation_kind("a" * 100_000, "b" * 100_000) == "new-topic"
    assert reformulation_kind("ab" * 50_000, "ba" * 50_000) == "spelling"  # two edits, at either end
    assert reformulation_kind("x", "猫" * 100_000) == "new-topic"


def test_columns_are_told_pair_by_pair():
    before, after = ["a b", None, "a", "a b c"], ["a", "a", None, "a b"]
    assert reformulation_kinds(pa.array(before), pa.chunked_array([after[:1], after[1:]])).to_pylist() == [
        "generalize", None, None, "generalize",
    ]  # fmt: skip
    assert reformulation_kinds(pa.array([], pa.string()), pa.array([], pa.string())).type == pa.string()
    with pytest.raises(ValueError, match="longer"):
        reformulation_kinds(pa.array(["a"]), pa.array(["a", "b"]))


def test_reformulations_are_all_but_the_same_text_and_new_topics():
    assert set(KINDS) - set(REFORMULATIONS) == {"same", "new-topic"}
