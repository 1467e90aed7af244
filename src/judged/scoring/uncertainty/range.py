"""A range: how far the score of each topic could move."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from judged._types import ReadOnly
from judged.results.decimals import decimal

if TYPE_CHECKING:
    import numpy as np

    from judged._types import Floats

Exactness: TypeAlias = Literal["exact", "outer", "sampled"]
_HOW = {
    "exact": "both ends can be reached",
    "outer": "no score lies outside, though the ends may not be reached",
    "sampled": "found by trying: the true range may be wider",
}


@dataclass(frozen=True, eq=False)
class Range(ReadOnly):
    """The least and the greatest score that each topic could have."""

    # low, high: (T,): NaN for a topic that the measure leaves out
    low: Floats
    high: Floats
    # (T,): `exact`: some arrangement reaches each end. `outer`: no arrangement lies outside, though the ends may not be
    # reached. `sampled`: found by trying; the true range may be wider.
    kind: np.ndarray[Any, Any]

    def sentence(self, at: int, score: float, by: str) -> str:
        """Say how far the score of one topic could move, by what.

        >>> import numpy as np
        >>> Range(np.array([0.25]), np.array([1.0]), np.array(["exact"])).sentence(0, 0.5, "order of ties")
        'Between 0.2500 and 1.0000, by the order of ties; both ends can be reached.'
        """
        low, high = float(self.low[at]), float(self.high[at])
        if math.isnan(low) or math.isnan(high):
            return "The measure leaves this topic out."
        if low == high == score:
            return f"Whatever the {by}, it stays."
        return f"Between {decimal(low)} and {decimal(high)}, by the {by}; {_HOW[str(self.kind[at])]}."


def weakest(kinds: np.ndarray[Any, Any]) -> Exactness:
    """Say what holds of several ranges together.

    >>> import numpy as np
    >>> weakest(np.array(["exact", "outer"])), weakest(np.array(["outer", "sampled"])), weakest(np.array([], dtype=str))
    ('outer', 'sampled', 'exact')
    """
    found = set(kinds.tolist())
    return "sampled" if "sampled" in found else "outer" if "outer" in found else "exact"
