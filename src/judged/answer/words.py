"""Short ways to write lists and numbers of things, and to break lines."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_WIDTH = 100  # of sentences, where no width is given


def listed(parts: Sequence[str], last: str = "and") -> str:
    """Write names one behind the other.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return f" {last} ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def counted(count: int, thing: str, things: str = "") -> str:
    """Write how many things there are.

    >>> counted(1, "topic"), counted(2, "topic"), counted(0, "query", "queries")
    ('1 topic', '2 topics', '0 queries')
    """
    return f"{count} {thing if count == 1 else things or thing + 's'}"


def wrapped(text: str, width: int | None = None) -> str:
    """Break a text into lines."""
    return textwrap.fill(text, min(width or _WIDTH, _WIDTH), break_long_words=False, break_on_hyphens=False)
