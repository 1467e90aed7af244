"""The working: what a measure writes down while it computes, as one does in a calculation by hand.

Nothing is written, and nothing costs time, unless someone asked for it: `judged.explain` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging.judged import JudgedHits

Part: TypeAlias = "Floats | Ints | Bools | float | str"
"""What a formula is made of: a number for each hit or topic, or one for all."""


@dataclass(frozen=True, eq=False)
class Step:
    """One number per topic, and how it came about."""

    name: str  # what the number is called
    values: Floats  # (T,): one a topic of `on`
    how: str  # the formula, in the names of its parts: `"dcg / ideal"`
    parts: Mapping[str, Part]  # what stands for each name: (T,) or a number
    on: JudgedHits  # the list that it was computed from
    summed: str = ""  # the column whose values it adds up, if it does no more than that


@dataclass(frozen=True, eq=False)
class Column:
    """One number per rank of a list, and how it came about."""

    # name, how, parts, on: as in `Step`; the parts are (N,) or a number
    name: str
    values: np.ndarray[Any, Any]  # (N,)
    how: str
    parts: Mapping[str, Part]
    on: JudgedHits
    # topic, rank: (N,): where each value stands
    topic: Ints
    rank: Ints


@dataclass(frozen=True, eq=False)
class Rows:
    """A table of its own: recall points, subtopics, pairs of documents."""

    title: str
    columns: Mapping[str, Sequence[object] | np.ndarray]
    how: Mapping[str, str]  # how a column comes from the others, by its name
    on: JudgedHits


@dataclass(frozen=True)
class Working:
    """A sheet that measures write on, in the order in which they compute."""

    entries: list[Step | Column | Rows] = field(default_factory=list["Step | Column | Rows"])

    def column(
        self,
        on: JudgedHits,
        name: str,
        values: Floats | Ints | Bools,
        how: str,
        parts: Mapping[str, Part],
        where: Bools | None = None,
        rank: Ints | None = None,
    ) -> None:
        """Write a column down, and before it those of its parts that are columns too."""
        # Without `rank`, there is one value a hit, of which those `where` says count; with it, one for each of these
        # ranks of the only topic.
        kept = np.flatnonzero(where) if where is not None else slice(None)
        at = on.rank[kept] if rank is None else rank
        topic = on.topic[kept] if rank is None else np.zeros(len(at), dtype=np.int64)
        cut = {key: np.asarray(part)[kept] if np.ndim(part) else part for key, part in parts.items()}
        for key, part in cut.items():
            if isinstance(part, np.ndarray) and not self._has(on, key):
                self.entries.append(Column(key, part, "", {}, on, topic, at))
        self.entries.append(Column(name, np.asarray(values)[kept], how, cut, on, topic, at))

    def step(self, on: JudgedHits, name: str, values: Floats, how: str, parts: Mapping[str, Part]) -> None:
        """Write a number per topic down."""
        self.entries.append(Step(name, values, how, parts, on))

    def rows(
        self, on: JudgedHits, title: str, columns: Mapping[str, Sequence[object] | np.ndarray], how: Mapping[str, str]
    ) -> None:
        """Write a table down."""
        self.entries.append(Rows(title, columns, how, on))

    def _has(self, on: JudgedHits, name: str) -> bool:
        return any(isinstance(entry, Column) and entry.on is on and entry.name == name for entry in self.entries)

    def total(
        self,
        on: JudgedHits,
        name: str,
        values: Floats | Bools,
        total: Floats,
        how: str,
        parts: Mapping[str, Part],
        where: Bools | None,
    ) -> None:
        """Write down what each hit adds, what it has come to at each, and the total."""
        summand = how or name
        self.column(on, summand, values, how, parts, where)
        so_far = on.sum_so_far(values if where is None else values * where)
        self.column(on, f"{name} so far" if self._has(on, "so far") else "so far", so_far, "", {}, where)
        self.summed(on, name, total, summand)

    def summed(self, on: JudgedHits, name: str, total: Floats, column: str) -> None:
        """Write down that a number is the sum of a column."""
        self.entries.append(Step(name, total, f"sum of {column}", {}, on, column))
