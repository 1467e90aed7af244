"""Amounts for every returned document, lengths and costs, and how they add up down a ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from judged.errors import InputError
from judged.scoring.judging.segments import running_sum, segment_starts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged._types import Floats, Ints
    from judged.scoring.judging import Judged

_CELLS = 1 << 17  # of one dense block: a megabyte, which stays in a processor's cache


def amounts(judged: Judged, fact: str, measure: object, *, zero: bool) -> Floats:
    """Look up a number for every returned document, in the order of ``judged.everything``: (D,)."""
    column = judged.fact(fact, measure)
    where = judged.documents.where if judged.documents else ""
    fix = f"give {fact} as a number {'from' if zero else 'above'} 0 for every document"
    try:
        values = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    except (TypeError, ValueError, pa.ArrowException):
        raise InputError(f"the column {fact} is not made of numbers", fix=fix, path=where) from None
    wrong = np.flatnonzero(~np.isfinite(values) | (values < 0) | ((values == 0) & (not zero)))
    if len(wrong):
        first = int(wrong[0])
        doc = judged.everything.doc[first].as_py()
        raise InputError(f"document {doc} has the {fact} {values[first]:g}", fix=fix, path=where)
    return values


def blocks(topics: int, columns: int) -> Iterator[tuple[int, int]]:
    """Cut the topics into blocks whose dense matrices stay small: first topic, and the one behind the last.

    >>> list(blocks(300, 1000))
    [(0, 131), (131, 262), (262, 300)]
    """
    rows = max(1, _CELLS // max(columns, 1))
    for first in range(0, topics, rows):
        yield first, min(first + rows, topics)


def used_up(judged: Judged, values: Floats) -> tuple[Floats, Floats]:
    """Add up one value a returned document down each ranking, before and with each hit: (D,) to (H,) and (H,)."""
    starts = segment_starts(judged.everything.topic, len(judged))
    place = hit_places(judged)
    total = running_sum(values, starts)
    return np.where(judged.rank > 1, total[place - 1], 0.0), total[place]


def hit_places(judged: Judged) -> Ints:
    """Give each hit's position among all returned documents: (H,)."""
    return segment_starts(judged.everything.topic, len(judged))[judged.topic] + judged.rank - 1
