"""What users read: the gain and the cost of each rank, and what their continuations note while they compute."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged._types import Floats
    from judged.judging.working import Part


class Note(NamedTuple):
    """One column of a working: the arguments of `Sheet.column`."""

    name: str
    values: Floats
    how: str
    parts: Mapping[str, Part]


@dataclass(frozen=True, eq=False)
class Reading:
    """What users read on some topics: one row a topic, one column a rank; one row for all where they are alike."""

    # gain, cost: (B, n) float64, (B, n): what each document gives, from 0 to 1, and what it takes
    gain: Floats
    cost: Floats
    relevant: Floats  # (B, 1): how many documents of the topic gain something, returned or not
    # what continuations write down, where someone asked for it; there is one topic then
    notes: list[Note] | None = None

    def note(self, name: str, values: Floats, how: str, **parts: Part) -> Floats:
        """Write down one number a rank, and give it back: (B, n). Parts that the formula does not name are left."""
        if self.notes is not None:
            named = set(re.findall(r"\w+", how))
            self.notes.append(Note(name, values, how, {key: part for key, part in parts.items() if key in named}))
        return values

    @cached_property
    def spent_word(self) -> str:
        """What a formula calls the cost so far: the rank, where each document costs 1."""
        return "rank" if self.notes is None or bool((self.cost == 1).all()) else "spent"

    @cached_property
    def rank(self) -> Floats:
        """The ranks, from 1: (n,)."""
        return np.arange(1, self.gain.shape[1] + 1, dtype=np.float64)

    @cached_property
    def gained(self) -> Floats:
        """What was gained down to and including each rank."""
        return np.cumsum(self.gain, axis=1)

    @cached_property
    def spent(self) -> Floats:
        """What was spent down to and including each rank."""
        return np.cumsum(self.cost, axis=1)
