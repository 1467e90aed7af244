"""Convert grades that are written as words, letters, or emoji to numbers, and parse lists of grades."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from judged.data.files import packaged_toml
from judged.errors import InputError
from judged.results.decimals import is_number, read_grade

if TYPE_CHECKING:
    from collections.abc import Iterable

_TABLES = packaged_toml("data/grade_words.toml")
_GROUPS: dict[str, list[str]] = _TABLES["groups"]

RELEVANT, NOT_RELEVANT, UNJUDGED = (frozenset(_GROUPS[name]) for name in ("relevant", "not_relevant", "unjudged"))
"""Words for a document that is relevant, not relevant, or without a judgment, in lower case."""

WORDS: dict[str, float | None] = {
    word: grade
    for words, grade in ((RELEVANT, 1.0), (NOT_RELEVANT, 0.0), (UNJUDGED, None))
    for word in words
    if not word.isdecimal()
}
"""Grade of each word that is not a number; None for a document without a judgment."""

_MODIFIERS = re.compile("[\ufe0f\U0001f3fb-\U0001f3ff]")  # color and style of emoji
_SYMBOLS = "".join(word for word in WORDS if len(word) == 1 and not word.isascii())
_COMPACT = re.compile(rf"(?=.*[RN{_SYMBOLS}])[RN{_SYMBOLS}?-]{{2,}}")  # RNR
_SCALES: list[dict[str, float]] = [
    {word: float(grade) for name, grade in scale.get("groups", {}).items() for word in _GROUPS[name]}
    | {word: float(grade) for word, grade in scale.get("words", {}).items()}
    for scale in _TABLES["scales"]
]


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


def split_grades(text: str) -> list[str] | None:
    """Split a list of grades, which may be words, at brackets, commas, or blanks; None if the text is not such a list.

    >>> split_grades("[R, not relevant, 2]"), split_grades("RNR"), split_grades("d12 2")
    (['R', 'nonrelevant', '2'], ['R', 'N', 'R'], None)
    """
    text = _MODIFIERS.sub("", text).strip()
    text = text[1:-1] if text[:1] + text[-1:] in {"[]", "()"} else text
    if _COMPACT.fullmatch(text):
        return list(text)
    fields = [re.sub(r"^(['\"])(.*)\1$", r"\2", field) for field in re.split(r"[\s,;]+", join_negations(text)) if field]
    return fields if all(field.lower() in WORDS or is_number(field) for field in fields) else None


def join_negations(text: str) -> str:
    """Replace "not relevant" and "non rel" by one word, so that a text can be split at blanks."""
    return re.sub(r"\b(not|non)[\s-]+(?=rel)", "non", text, flags=re.IGNORECASE)


def as_word(text: str) -> str:
    """Return a text as it is in `WORDS`: in lower case, and an emoji without its color and style."""
    return _MODIFIERS.sub("", text).strip().lower()


def read_grades(grades: Any, name: str = "grades") -> list[Any]:
    """Parse a list of grades: a text as in `split_grades`, or a list of numbers and words; None is unjudged.

    >>> read_grades("3 0 - yes"), read_grades(["R", "N", None, 2])
    ([3.0, 0.0, None, 1.0], [1.0, 0.0, None, 2])

    Raises
    ------
    InputError
        If this is not a list of grades. `name` is its name in the message.
    """
    is_ambiguous = isinstance(grades, str) and re.fullmatch(r"\s*[0-9]{2,}\s*", grades)  # 101 is probably 1 0 1
    fields: Any = split_grades(grades) if isinstance(grades, str) else grades
    if hasattr(fields, "__len__") and not isinstance(fields, (bytes, Mapping)) and not is_ambiguous:
        try:
            return [_read_word(field) if isinstance(field, str) else field for field in fields]
        except ValueError:
            pass
    fix = "write numbers or words such as 3 0 - 1 or R N R, or use a list such as [3, 0]; - is unjudged"
    raise InputError(f"`{name}` must be a list of grades, got {grades!r:.60}", fix=fix)


def _read_word(text: str) -> float | None:
    word = as_word(text)
    return WORDS[word] if word in WORDS else read_grade(word)
