"""Convert grades that are written as words, letters, or emoji to numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.results.decimals import read_grade

if TYPE_CHECKING:
    from collections.abc import Iterable

RELEVANT = frozenset(
    [
        "r",
        "rel",
        "relevant",
        "yes",
        "y",
        "true",
        "1",
        "positive",
        "good",
        "ja",
        "oui",
        "si",
        "sí",
        "sim",
        "はい",
        "是",
        "相关",
        "👍",
        "✅",
        "✔",
        "✓",
    ]
)
"""Words for a relevant document, in lower case."""

NOT_RELEVANT = frozenset(
    [
        "n",
        "nr",
        "nonrel",
        "nonrelevant",
        "non-relevant",
        "notrelevant",
        "irrelevant",
        "no",
        "false",
        "0",
        "negative",
        "bad",
        "nein",
        "non",
        "não",
        "いいえ",
        "否",
        "不相关",
        "👎",
        "❌",
        "✘",
        "✗",
    ]
) | {"not relevant", "non relevant"}
"""Words for a document that is not relevant, in lower case."""

_SCALES: tuple[tuple[str, dict[str, float]], ...] = (
    ("R, N", dict.fromkeys(NOT_RELEVANT, 0.0) | dict.fromkeys(RELEVANT, 1.0)),
    (
        "relevant, partially relevant",
        dict.fromkeys(NOT_RELEVANT, 0.0) | {"partially relevant": 1.0, "somewhat relevant": 1.0, "marginally relevant": 1.0}
        | {"relevant": 2.0, "fully relevant": 2.0, "highly relevant": 2.0},
    ),
    ("highly relevant, relevant", dict.fromkeys(NOT_RELEVANT, 0.0) | {"relevant": 1.0, "highly relevant": 2.0}),
    (
        "TREC Deep Learning",
        {"irrelevant": 0.0, "related": 1.0, "highly relevant": 2.0, "perfectly relevant": 3.0, "perfect": 3.0},
    ),
    ("perfect to bad", {"perfect": 4.0, "excellent": 3.0, "good": 2.0, "fair": 1.0, "bad": 0.0}),
    (
        "ESCI",
        {"e": 1.0, "s": 0.1, "c": 0.01, "i": 0.0}
        | {"exact": 1.0, "substitute": 0.1, "complement": 0.01, "irrelevant": 0.0},
    ),
    ("L0 to L9", {f"l{grade}": float(grade) for grade in range(10)}),
)  # fmt: skip


def grades_of_words(texts: Iterable[str]) -> dict[str, float] | None:
    """Return the grade of each text if all are words of the same scale, or numbers; else None.

    >>> grades_of_words(["Relevant", "not relevant"]), grades_of_words(["2", "0"]), grades_of_words(["2", "blue"])
    ({'Relevant': 1.0, 'not relevant': 0.0}, {'2': 2.0, '0': 0.0}, None)
    """
    words = {text: " ".join(text.lower().replace("_", " ").split()) for text in texts}
    try:
        return {text: read_grade(text) for text in words}
    except ValueError:
        scales = (scale for _, scale in _SCALES if set(words.values()) <= set(scale))
        scale = next(scales, None)
    return None if scale is None else {text: scale[word] for text, word in words.items()}
