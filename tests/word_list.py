"""Names of shared parameters, with their types and the names that are not used instead."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

TYPES = {"int": int, "float": (int, float), "str": str, "bool": bool, "tuple": tuple}


class Word(NamedTuple):
    types: tuple[type, ...]
    kinds: tuple[str, ...]


def listed() -> tuple[dict[str, Word], dict[str, str]]:
    """Read the list: words with their types, and with names that are not allowed."""
    words, never = dict[str, Word](), dict[str, str]()
    rows = (Path(__file__).parent / "words" / "parameters.md").read_text().split("| name |")[1].splitlines()[2:]
    for row in rows:
        if not row.startswith("|"):
            break
        names, _, types, other = (cell.strip() for cell in row.strip("|").split("|"))
        python = tuple(kind for name in types.split() for kind in _several(TYPES[name]))
        for name in re.findall(r"`(\w+)`", names):
            words[name] = Word(python, tuple(types.split()))
        first = re.findall(r"`(\w+)`", names)[0]
        never |= dict.fromkeys(re.findall(r"`(\w+)`", other), first)
    return words, never


def _several(kind: Any) -> tuple[type, ...]:
    return kind if isinstance(kind, tuple) else (kind,)
