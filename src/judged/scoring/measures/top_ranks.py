"""Workings of measures that count every rank, judged or not: the first ranks one by one, the others as one number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from judged._types import Bools, Floats
    from judged.scoring.judging import Judged
    from judged.scoring.judging.working import Part

MOST_SHOWN = 100  # more ranks nobody reads one by one


@dataclass(frozen=True, eq=False)
class TopRanks:
    """The ranks of the only topic that are shown one by one."""

    judged: Judged  # a list of one topic, with a working
    count: int  # how many ranks are shown

    @classmethod
    def down_to(cls, judged: Judged, counted: Bools) -> TopRanks:
        """Show every rank down to the last of these hits, if that is not too many: (H,)."""
        return cls(judged, min(int(judged.rank[counted].max(initial=0)), MOST_SHOWN))

    def column(self, name: str, values: Any, how: str = "", **parts: Part) -> None:
        """Show one number for each rank of all: (n,); numbers and columns of the same length are its parts."""
        cut = {key: part if np.ndim(part) == 0 else np.asarray(part)[: self.count] for key, part in parts.items()}
        self.judged.by_rank(name, np.asarray(values)[: self.count], how, **cut)

    def total(self, name: object, values: Floats, total: Floats, summand: str) -> None:
        """Show what a column has come to at each rank, and what it adds up to: (n,) and (1,)."""
        self.column("so far", np.cumsum(values))
        self.add_up(name, values, total, summand)

    def add_up(self, name: object, values: Floats, total: Floats, summand: str) -> None:
        """Show what a column adds up to: what is shown of it, what is not, and the total: (n,) and (1,)."""
        so_far = np.cumsum(values)
        shown = so_far[self.count - 1 : self.count]
        if shown[0] == so_far[-1]:
            self.judged.summed(name, total, summand)
            return
        above, below = f"to rank {self.count}", f"below rank {self.count}"
        self.judged.summed(above, shown, summand)
        last = "" if self.count + 1 == len(values) else f" to {len(values)}"
        rest = self.judged.step(below, so_far[-1:] - shown, f"rank{'s' if last else ''} {self.count + 1}{last}")
        parts = {above.replace(" ", "_"): shown, below.replace(" ", "_"): rest}
        self.judged.step(name, total, " + ".join(parts), **parts)
