"""Features of query texts: number of words, script, and kind by fixed rules; language by a library."""

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

_UNDIVIDED = frozenset({"Han", "Japanese", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan"})  # no spaces between words
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
_ASKING = frozenset(["who", "what", "when", "where", "why", "how", "which", "whose", "whom"])
_AUXILIARY = re.compile(
    r"(?:is|are|was|were|am|do|does|did|can|could|should|would|will|shall|has|have|had|may|might|must|won't|can't"
    r"|(?:is|are|was|were|do|does|did|could|should|would)n't)"
)
_CONTRACTED = re.compile(r"(?:'s|'re|'d|'ll)$")
_CODE = re.compile(r"[\w./:#+-]+")
_NAME_ENDS = re.compile(
    r" (?:LETTER|SYLLABLE|SYLLABLES|VOWEL|CONSONANT|CAPITAL|SMALL|CHARACTER|LIGATURE|IDEOGRAPH|SIGN|MARK|NUMBER)\b"
)
_SHORTEST_QUESTION = 4  # words: "will smith" and "can opener" ask nothing
_SHORTEST_CODE = 3  # letters and digits
_LEAST = 0.5  # probability of a language that is known


def normalised(text: str) -> str:
    """Write a query so that spellings of the same query are the same text: NFKC, case folded, single spaces.

    >>> normalised("  Income   TAX "), normalised("Straße") == normalised("STRASSE")
    ('income tax', True)
    """
    if text.isascii():  # NFKC changes nothing there
        return " ".join(text.lower().split())
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).split())


def word_count(text: str) -> int | None:
    """Count the words: what stands between white space and has a letter or digit.

    >>> word_count("who is the UK's prime minister ?"), word_count("日本語の検索"), word_count("--")
    (6, None, 0)
    """
    # None for a text in a script that writes no spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese,
    # Tibetan): any number would count something else.
    if script_of(text) in _UNDIVIDED:
        return None
    return sum(_WORD.search(part) is not None for part in text.split())


def kind_of(text: str) -> str | None:
    """Say what kind of query it is, by the first rule that fits; None for a text without letters and digits.

    - ``address``: the whole text is a URL, a mail address, or a domain with a common ending.
    - ``quoted``: it has words in double quotation marks, of whatever shape.
    - ``question``: it ends with a question mark; or its first word is an English question word (who, what, when,
      where, why, how, which, whose, whom) and more follows; or an English auxiliary (is, are, do, can...) and at
      least three words follow. Without its mark, a question in another language is not recognised.
    - ``identifier``: every word has a digit, at least three letters and digits in all, and nothing else but
      ``. / : # + - _``: part numbers, codes, years, dates.
    - ``keywords``: all others.

    >>> [kind_of(text) for text in ("irs.gov", 'the "who" band', "how tall is it", "SKU-4711", "can opener")]
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
    if plain.endswith(_QUESTION_MARKS) or text.strip().endswith(_QUESTION_MARKS) or _asks(words):
        return "question"
    if all(_CODE.fullmatch(word) and re.search(r"\d", word) for word in words):
        return "identifier" if len(_WORD.findall(plain)) >= _SHORTEST_CODE else "keywords"
    return "keywords"


def _asks(words: list[str]) -> bool:
    first = _CONTRACTED.sub("", words[0])
    return (first in _ASKING and len(words) > 1) or (
        len(words) >= _SHORTEST_QUESTION and _AUXILIARY.fullmatch(first) is not None
    )


def script_of(text: str) -> str | None:
    """Name the script of most letters, that of the first where two have as many; None for a text without letters.

    >>> [script_of(text) for text in ("income tax", "налог", "日本語の検索", "北京", "ضريبة", "한국", "2024")]
    ['Latin', 'Cyrillic', 'Japanese', 'Han', 'Arabic', 'Hangul', None]
    """
    # Japanese is Chinese characters with kana among them; without kana they are `Han`.
    found = Counter(filter(None, map(_script, unicodedata.normalize("NFKC", text))))
    if found["Hiragana"] + found["Katakana"]:
        kana = {name: found.pop(name) for name in ("Han", "Hiragana", "Katakana") if name in found}
        found["Japanese"] = sum(kana.values())
    return max(found, key=found.__getitem__) if sum(found.values()) else None


@lru_cache(4096)
def _script(char: str) -> str:
    """Read the script off a letter's Unicode name, of which it is the first part; ``""`` for what all scripts have."""
    if not unicodedata.category(char).startswith("L"):
        return ""
    name = unicodedata.name(char, "")
    if name.startswith(("CJK", "IDEOGRAPHIC", "KANGXI")):
        return "Han"
    if name.startswith(("KATAKANA", "HIRAGANA")):
        return name[:8].title()
    return "" if name.startswith("MODIFIER") else _NAME_ENDS.split(name, maxsplit=1)[0].title()


def can_guess() -> bool:
    """Whether the library is installed."""
    return importlib.util.find_spec("py3langid") is not None


def languages_of(texts: Sequence[str], among: Sequence[str] | None = None) -> list[str | None]:
    """Guess the language of each text, as a code of two or three letters; None where it is not sure."""
    # Queries are short, and a guess on two or three words is worth little: where all languages are possible, it is None
    # for most of them. Naming the few languages that occur helps much, but then no other can be found: a French query
    # is called German or English by `("de", "en")`. `among`: their codes; None for all that the library knows.
    model = _model()
    if among is not None:
        unknown = [code for code in among if code not in model.labels]
        if unknown or len(set(among)) < 2:
            problem = f"no language {unknown[0]!r}" if unknown else "one language leaves nothing to guess"
            raise InputError(problem, fix="give two or more codes such as 'en' and 'de'")
        model = copy(model)  # of its tables it replaces those that are restricted, and changes none
        model.set_languages(list(among))
    guesses = [model.classify(text) if text.strip() else ("", 0.0) for text in texts]
    return [str(code) if probability >= _LEAST else None for code, probability in guesses]


@cache
def _model() -> Any:
    """Load a model of our own: the library's is shared by the whole process, and can be restricted by others."""
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ImportError:
        raise MissingExtraError("py3langid", "language") from None
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
