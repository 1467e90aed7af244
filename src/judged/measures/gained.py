"""Gains and discounts of a ranking, written down as one does by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.measures.gain import BASE, Gain, discounts, gains
from judged.measures.parameters import spell

if TYPE_CHECKING:
    from judged._types import Bools, Floats
    from judged.judging import Judged

_FEW = 10
"""Down to this rank what adds nothing is shown even behind the last document that adds something."""


def gained(judged: Judged, gain: Gain, cutoff: int | None = None) -> tuple[Floats, Bools]:
    """Give each hit its gain, and show how its grade makes it: (H,). And mark the hits that are added up: (H,)."""
    worth = gains(judged.grade, gain)
    shown = down_to_last(judged, worth, cutoff)
    if judged.working is not None:
        judged.column("gain", worth, _gain_rule(gain, judged.grade[shown]), where=shown)
    return worth, shown


def discounted_by(judged: Judged, discount: str, base: float, where: Bools | None = None) -> Floats:
    """Give each hit the discount of its rank, and show how the rank makes it: (H,)."""
    return judged.column(
        "discount", discounts(judged.rank, discount, base), _discount_rule(discount, base), where=where
    )


def down_to_last(judged: Judged, worth: Floats | Bools, cutoff: int | None) -> Bools:
    """Mark the first k hits; without a cutoff, those above the long tail that adds nothing to show: (H,)."""
    # Without a sheet to write on all hits are marked: to find the tail would take time. The sum is the same.
    if judged.working is None or cutoff is not None:
        return judged.within(cutoff)
    last = np.full(len(judged), _FEW)
    adding = np.flatnonzero(worth)
    np.maximum.at(last, judged.topic[adding], judged.rank[adding])
    return judged.rank <= last[judged.topic]


def _gain_rule(gain: Gain, grades: Floats) -> str:
    grade = "max(grade, 0)" if (grades < 0).any() else "grade"
    if isinstance(gain, str):
        return f"2^{grade} - 1" if gain == "exp2" else grade
    return ", ".join(f"{spell(worth)} for grade {spell(one)}" for one, worth in gain) + f", else {grade}"


def _discount_rule(discount: str, base: float) -> str:
    if discount != "original":
        return f"{discount}(rank + 1)"
    return "max(1, log2(rank))" if base == BASE.default else f"max(1, log2(rank) / log2({spell(base)}))"
