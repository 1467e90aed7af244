"""Lines as trec_eval prints them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.peers.trec_eval import Kind

ALL = "all"
"""What stands in place of a topic in the summary."""


def start(name: str, *, zscores: bool = False) -> str:
    """Begin a line: the name, filled up with blanks.

    >>> start("P_5", zscores=True)
    'ZP_5                   '
    """
    return f"{'Z' if zscores else ''}{name:<22}"


def number(value: float, kind: Kind) -> str:
    """Write a number as C does, where 0/0 is a negative NaN.

    >>> number(0.25, "float"), number(3.0, "integer"), number(math.nan, "float"), number(-1e6, "float")
    ('0.2500', '3', '  -nan', '-1000000.0000')
    """
    if kind == "integer":
        return str(int(value))
    return "  -nan" if math.isnan(value) else f"{value:6.4f}"


def by_topic(topics: Sequence[str], columns: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Write all lines of the first topic, then those of the second, and so on.

    >>> print(by_topic(["1", "2"], [("map", ["0.5000", "0.2500"]), ("P_5", ["0.2000", "0.4000"])]), end="")
    map 1       0.5000
    P_5 1       0.2000
    map 2       0.2500
    P_5 2       0.4000
    """
    columns = list(columns)
    written = [f"{name}\t{topic}\t{values[at]}\n" for at, topic in enumerate(topics) for name, values in columns]
    return "".join(written)
