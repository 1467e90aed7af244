"""A range: how far the score of each topic could move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from judged._types import ReadOnly

if TYPE_CHECKING:
    import numpy as np

    from judged._types import Floats

Exactness: TypeAlias = Literal["exact", "outer", "sampled"]


@dataclass(frozen=True, eq=False)
class Range(ReadOnly):
    """The least and the greatest score that each topic could have."""

    # low, high: (T,): NaN for a topic that the measure leaves out
    low: Floats
    high: Floats
    # (T,): `exact`: some arrangement reaches each end. `outer`: no arrangement lies outside, though the ends may not be
    # reached. `sampled`: found by trying; the true range may be wider.
    kind: np.ndarray[Any, Any]


def weakest(kinds: np.ndarray[Any, Any]) -> Exactness:
    """Say what holds of several ranges together.

    >>> import numpy as np
    >>> weakest(np.array(["exact", "outer"])), weakest(np.array(["outer", "sampled"])), weakest(np.array([], dtype=str))
    ('outer', 'sampled', 'exact')
    """
    found = set(kinds.tolist())
    return "sampled" if "sampled" in found else "outer" if "outer" in found else "exact"
