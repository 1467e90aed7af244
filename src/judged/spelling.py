"""Names of choices and options as people spell them: one table for Python and the command line."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

_OTHER = {
    "t": "ttest pairedt pairedttest student students studentst studentsttest",
    "randomisation": "permutation permutationtest randomisationtest fisher fisherrandomisation",
    "wilcoxon": "signedrank wilcoxonsignedrank",
    "sign": "signtest",
    "tukey": "tukeyhsd hsd",
    "bh": "benjaminihochberg fdr fdrbh",
    "by": "benjaminiyekutieli fdrby",
    "bonferroni": "bonf",
}
"""What choices are called elsewhere, without hyphens and the like."""


def _key(name: str) -> str:
    """Drop what makes no difference: case, hyphens, spaces, and z for s."""
    return re.sub(r"[\W_]", "", name.casefold()).replace("iz", "is")


_MEANT = {other: name for name, others in _OTHER.items() for other in others.split()}


def spelled(given: str, known: Iterable[str]) -> str:
    """Spell a choice as it is known, or leave it.

    >>> [spelled(name, ["t", "holm", "randomised-tukey", "bh"]) for name in ("t-test", "Holm", "Randomized Tukey", "x")]
    ['t', 'holm', 'randomised-tukey', 'x']
    """
    names = list(known)
    if given in names:
        return given
    keys = {_key(name): name for name in names}
    own = _key(given)
    other = _MEANT.get(own, "")
    return keys.get(own, other if other in names else given)


def one_of(what: str, given: str, known: Iterable[str]) -> str:
    """Give the choice that is meant.

    >>> one_of("correction", "Benjamini-Hochberg", ["holm", "bh"])
    'bh'

    Raises
    ------
    InputError
        If it is none of them.
    """
    names = list(known)
    name = spelled(given, names) if isinstance(given, str) else given  # pyright: ignore[reportUnnecessaryIsInstance]
    if name not in names:
        close = get_close_matches(str(given).casefold(), names, 1)
        fix = f"did you mean {close[0]}? One of {', '.join(names)}" if close else f"use one of {', '.join(names)}"
        raise InputError(f"no {what} {given!r}", fix=fix)
    return name
