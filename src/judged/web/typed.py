"""What people type into the fields of pages: names of measures and of runs, and which field is to blame."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import StringConstraints

from judged.errors import JudgedError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

LONGEST = 8192
"""Characters of the name of a run."""
Trimmed: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True)]
"""A text, without blanks around it."""

_PART = re.compile(r"(?:[^,;({]|\([^)]*\)|\{[^}]*\}|[({])+")  # up to a comma that is in no brackets
_CUTOFFS = re.compile(r"[0-9][0-9.]*")


def names_in(texts: Iterable[str]) -> list[str]:
    """Part names of measures from one another: by commas, but not by those inside a name.

    >>> names_in(["nDCG@10, AP", "P@5,10;RBP(p=0.5,rel=2)@10", " "])
    ['nDCG@10', 'AP', 'P@5,10', 'RBP(p=0.5,rel=2)@10']
    """
    names: list[str] = []
    for text in texts:
        parts: list[str] = []
        for part in map(str.strip, _PART.findall(text)):
            if parts and _CUTOFFS.fullmatch(part):
                parts[-1] += f",{part}"
            elif part:
                parts.append(part)
        names += parts
    return names


class RefusedError(JudgedError):
    """What stands in a field makes no sense."""

    field = ""


@contextmanager
def concerning(field: str) -> Generator[None]:
    """Say of what is refused inside which field is to blame."""
    try:
        yield
    except JudgedError as error:
        refused = RefusedError(str(error))
        refused.field = field
        raise refused from None
