"""The language of a query, as the library py3langid guesses it."""

from __future__ import annotations

import importlib.util
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Any

from judged.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST = 0.5
"""The probability below which a language is not known."""


def can_guess() -> bool:
    """Whether the library is installed."""
    return importlib.util.find_spec("py3langid") is not None


def languages_of(texts: Sequence[str], among: Sequence[str] | None = None, least: float = LEAST) -> list[str | None]:
    """Guess the language of each text, as a code of two or three letters; None where it is not sure."""
    # Queries are short, and a guess on two or three words is worth little: below the probability `least` it is None, as
    # it is for most short queries where all languages are possible. Naming the few languages that occur helps much, but
    # then no other can be found: a French query is called German or English by `("de", "en")`. `among`: the codes of
    # the languages that can occur; None for all that the library knows.
    guesser = _guesser(among)
    guesses = [guesser.classify(text) if text.strip() else ("", 0.0) for text in texts]
    return [str(code) if probability >= least else None for code, probability in guesses]


def _guesser(among: Sequence[str] | None) -> Any:
    whole = _model()
    if among is None:
        return whole
    unknown = [code for code in among if code not in whole.labels]
    if unknown or len(set(among)) < 2:
        problem = f"no language {unknown[0]!r}" if unknown else "one language leaves nothing to guess"
        raise InputError(problem, fix="give two or more codes such as 'en' and 'de'")
    restricted = copy(whole)  # of its tables it replaces those that are restricted, and changes none
    restricted.set_languages(list(among))
    return restricted


@cache
def _model() -> Any:
    """Load a model of our own: the library's is shared by the whole process, and can be restricted by others."""
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ImportError:
        raise MissingExtraError("py3langid", "language") from None
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
