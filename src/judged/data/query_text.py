"""Properties of queries: word count, script, and kind by fixed rules, and language by a library."""

from __future__ import annotations

import importlib.util
import re
import unicodedata
from collections import Counter
from copy import copy
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from judged.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Sequence

_SCRIPTS_WITHOUT_SPACES = frozenset({"Han", "Japanese", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan"})
_WORD = re.compile(r"[^\W_]")
_QUOTED = re.compile(r"\"[^\"]*\w[^\"]*\"|“[^”]*\w[^”]*”|„[^“”]*\w[^“”]*[“”]|«[^»]*\w[^»]*»|「[^」]*\w[^」]*」")
_COMMON_ENDINGS = (
    "com org net edu gov mil int info biz io ai app dev uk de fr nl be at ch it es pt pl se no dk fi cz ru ua jp cn kr"
    " in au nz ca us br mx ar za ie eu tv"
).replace(" ", "|")
_ADDRESS = re.compile(
    r"(?:[a-z][a-z0-9+.-]*://\S+"  # a URL
    r"|www\.\S+"
    rf"|(?:[\w.+-]+@)?(?:[\w-]+\.)+(?:{_COMMON_ENDINGS})(?::\d+)?(?:[/?#]\S*)?)",  # a domain or a mail address
    re.IGNORECASE,
)
_QUESTION_MARKS = ("?", "？", "؟", "\u037e", "⸮")  # noqa: RUF001 - those of other scripts
_QUESTION_WORDS = frozenset(["who", "what", "when", "where", "why", "how", "which", "whose", "whom"])
_AUXILIARY = re.compile(
    r"(?:is|are|was|were|am|do|does|did|can|could|should|would|will|shall|has|have|had|may|might|must|won't|can't"
    r"|(?:is|are|was|were|do|does|did|could|should|would)n't)"
)
_CONTRACTED = re.compile(r"(?:'s|'re|'d|'ll)$")
_CODE = re.compile(r"[\w./:#+-]+")
_NAME_ENDS = re.compile(
    r" (?:LETTER|SYLLABLE|SYLLABLES|VOWEL|CONSONANT|CAPITAL|SMALL|CHARACTER|LIGATURE|IDEOGRAPH|SIGN|MARK|NUMBER)\b"
)
_MIN_QUESTION_WORDS = 4  # "will smith" and "can opener" are not questions
_MIN_CODE_CHARACTERS = 3  # letters and digits
_MIN_PROBABILITY = 0.5  # of a detected language; less probable ones are None


def normalize_query(text: str) -> str:
    """Normalize a query so that equal queries have equal texts: NFKC, case-folded, single spaces.

    >>> normalize_query("  Income   TAX "), normalize_query("Straße") == normalize_query("STRASSE")
    ('income tax', True)
    """
    if text.isascii():  # unchanged by NFKC
        return " ".join(text.lower().split())
    # case folding can undo NFKC, so the text is normalized again afterwards
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).split())


def word_count(text: str) -> int | None:
    """Return the number of words: parts between white space that contain a letter or digit.

    >>> word_count("who is the UK's prime minister ?"), word_count("日本語の検索"), word_count("--")
    (6, None, 0)
    """
    # None for scripts without spaces between words (Chinese, Japanese, Thai, ...), where words cannot be counted.
    if query_script(text) in _SCRIPTS_WITHOUT_SPACES:
        return None
    return sum(_WORD.search(part) is not None for part in text.split())


def query_kind(text: str) -> str | None:
    """Return the kind of a query by the first matching rule; None for a text without letters and digits.

    - ``address``: the entire text is a URL, a mail address, or a domain with a common ending.
    - ``quoted``: contains words in double quotation marks of any shape.
    - ``question``: ends with a question mark; or starts with an English question word (who, what, when, where, why,
      how, which, whose, whom) and has more words; or starts with an English auxiliary (is, are, do, can...) and has
      at least four words. Questions in other languages are recognized by their question mark only.
    - ``identifier``: each word has a digit and only letters, digits, and ``. / : # + - _``, and there are at least
      three letters and digits: part numbers, codes, years, dates.
    - ``keywords``: everything else.

    >>> [query_kind(text) for text in ("irs.gov", 'the "who" band', "how tall is it", "SKU-4711", "can opener")]
    ['address', 'quoted', 'question', 'identifier', 'keywords']
    """
    plain = unicodedata.normalize("NFKC", text).replace("\u2019", "'").strip()
    words = plain.casefold().split()
    if not _WORD.search(plain):
        return None
    if _ADDRESS.fullmatch(plain):
        return "address"
    if _QUOTED.search(plain):
        return "quoted"
    if plain.endswith(_QUESTION_MARKS) or text.strip().endswith(_QUESTION_MARKS) or _is_question(words):
        return "question"
    if all(_CODE.fullmatch(word) and re.search(r"\d", word) for word in words):
        return "identifier" if len(_WORD.findall(plain)) >= _MIN_CODE_CHARACTERS else "keywords"
    return "keywords"


def _is_question(words: list[str]) -> bool:
    first = _CONTRACTED.sub("", words[0])
    return (first in _QUESTION_WORDS and len(words) > 1) or (
        len(words) >= _MIN_QUESTION_WORDS and _AUXILIARY.fullmatch(first) is not None
    )


def query_script(text: str) -> str | None:
    """Return the script of most letters, the first in case of a tie; None for a text without letters.

    >>> [query_script(text) for text in ("income tax", "налог", "日本語の検索", "北京", "ضريبة", "한국", "2024")]
    ['Latin', 'Cyrillic', 'Japanese', 'Han', 'Arabic', 'Hangul', None]
    """
    # Text with kana is Japanese, including its Chinese characters; without kana these are `Han`.
    counts = Counter(filter(None, map(_letter_script, unicodedata.normalize("NFKC", text))))
    if counts["Hiragana"] + counts["Katakana"]:
        japanese = {name: counts.pop(name) for name in ("Han", "Hiragana", "Katakana") if name in counts}
        counts["Japanese"] = sum(japanese.values())
    return max(counts, key=counts.__getitem__) if sum(counts.values()) else None


@lru_cache(4096)
def _letter_script(char: str) -> str:
    """Return the script of a letter, the first part of its Unicode name; empty for characters shared by scripts."""
    if not unicodedata.category(char).startswith("L"):
        return ""
    name = unicodedata.name(char, "")
    if name.startswith(("CJK", "IDEOGRAPHIC", "KANGXI")):
        return "Han"
    if name.startswith(("KATAKANA", "HIRAGANA")):
        return name[:8].title()
    return "" if name.startswith("MODIFIER") else _NAME_ENDS.split(name, maxsplit=1)[0].title()


def has_language_detector() -> bool:
    """Return whether the language detection library is installed."""
    return importlib.util.find_spec("py3langid") is not None


def detect_languages(texts: Sequence[str], among: Sequence[str] | None = None) -> list[str | None]:
    """Detect the languages of texts as codes of two or three letters; None if uncertain."""
    # `among`: codes of possible languages; None for all. Detection on two or three words is unreliable and mostly
    # uncertain among all languages. A short list helps, but excludes all others: with `("de", "en")`, a French query is
    # labeled German or English.
    model = _model()
    if among is not None:
        unknown = [code for code in among if code not in model.labels]
        if unknown or len(set(among)) < 2:
            too_few = f"at least two languages are required, got {len(set(among))}"
            problem = f"no language {unknown[0]!r}" if unknown else too_few
            raise InputError(problem, fix="use two or more codes such as 'en' and 'de'")
        model = copy(model)  # set_languages replaces tables of the copy and leaves those of the original unchanged
        model.set_languages(list(among))
    guesses = [model.classify(text) if text.strip() else ("", 0.0) for text in texts]
    return [str(code) if probability >= _MIN_PROBABILITY else None for code, probability in guesses]


@cache
def _model() -> Any:
    """Load a private model, because other code can restrict the shared model of the library."""
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ImportError:
        raise MissingExtraError("py3langid", "language") from None
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
