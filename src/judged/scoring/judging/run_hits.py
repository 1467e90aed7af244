"""What one pass over a run finds: how long each ranking is, and where its judged documents stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Floats, Ints, Strings


_COLUMNS = ("returned", "topic", "rank", "tie_first", "tie_last", "score")


@dataclass(frozen=True, eq=False)
class RunHits:
    """Rows that may be judged, with their place in the ranking, and the topics they come from."""

    # names, returned: every topic met: its query id and how many documents were returned for it
    names: tuple[str, ...]
    returned: Ints
    topic: Ints  # for each row: its topic's code in the qrels
    doc: Strings  # for each row: its document id; None where `row` says all
    # rank, tie_first, tie_last: for each row: its 1-based rank, and the first and last rank of those with the same
    # score
    rank: Ints
    tie_first: Ints
    tie_last: Ints
    score: Floats  # for each row
    row: Ints | None = None  # for each row: its position among the judged pairs, where that is known already
    self_first: int = 0  # topics in which no document has a higher score than the one with the id of the topic


def nothing() -> RunHits:
    """Give what is found in a run without rows."""
    none = np.zeros(0, dtype=np.int64)
    return RunHits((), none, none, pa.array([], pa.string()), none, none, none, np.zeros(0))


def together(pieces: Sequence[RunHits]) -> RunHits:
    """Put the findings of several pieces of a run into one."""
    if not pieces:
        return nothing()
    return RunHits(
        names=tuple(name for piece in pieces for name in piece.names),
        doc=pa.concat_arrays([piece.doc for piece in pieces]),
        self_first=sum(piece.self_first for piece in pieces),
        **{name: np.concatenate([getattr(piece, name) for piece in pieces]) for name in _COLUMNS},
    )
