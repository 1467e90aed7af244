"""Convert grades that are written as words, letters, or emoji to numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.results.decimals import read_grade

if TYPE_CHECKING:
    from collections.abc import Iterable

RELEVANT = frozenset([
    "r", "rel", "relevant", "yes", "y", "true", "1", "positive", "good", "ja", "oui", "si", "sí", "sim", "はい", "是",
    "相关", "👍", "✅", "✔", "✓",
])  # fmt: skip
"""Words for a relevant document, in lower case."""

NOT_RELEVANT = frozenset([
    "n", "nr", "nonrel", "nonrelevant", "non-relevant", "non relevant", "not relevant", "notrelevant", "irrelevant",
    "no", "false", "0", "negative", "bad", "nein", "non", "não", "いいえ", "否", "不相关", "👎", "❌", "✘", "✗",
])  # fmt: skip
"""Words for a document that is not relevant, in lower case."""

_NO = dict.fromkeys(NOT_RELEVANT, 0.0)
_PARTLY = dict.fromkeys(("partially relevant", "partly relevant", "somewhat relevant", "marginally relevant"), 1.0)
_SCALES: tuple[dict[str, float], ...] = (
    _NO | dict.fromkeys(RELEVANT, 1.0),
    _NO | _PARTLY | {"relevant": 2.0, "fully relevant": 2.0},
    _NO | {"relevant": 1.0, "highly relevant": 2.0},
    _NO | _PARTLY | {"relevant": 2.0, "highly relevant": 3.0},
    {"irrelevant": 0.0, "related": 1.0, "highly relevant": 2.0, "perfectly relevant": 3.0, "perfect": 3.0},  # TREC DL
    {"perfect": 4.0, "excellent": 3.0, "good": 2.0, "fair": 1.0, "bad": 0.0},
    {"e": 1.0, "s": 0.1, "c": 0.01, "i": 0.0},  # gains of the authors of ESCI
    {"exact": 1.0, "substitute": 0.1, "complement": 0.01, "irrelevant": 0.0},
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
        scale = next((scale for scale in _SCALES if set(words.values()) <= set(scale)), None)
    return None if scale is None else {text: scale[word] for text, word in words.items()}
