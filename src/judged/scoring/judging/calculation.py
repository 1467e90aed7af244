"""Record of a calculation: the intermediate results of a measure, for `judged.explain`.

Measures record nothing, and do no extra work, if the list has no `Calculation`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging.judged import JudgedHits

Operand: TypeAlias = "Floats | Ints | Bools | float | str"
"""Operand of a formula: one number for each hit or topic, or one for all; or a text."""


@dataclass(frozen=True, eq=False)
class CalculationStep:
    """One number per topic, and its formula."""

    name: str
    values: Floats  # (T,): one per topic of `judged`
    how: str  # formula in the names of its operands: `"dcg / ideal"`
    parts: Mapping[str, Operand]  # operands by name: (T,) or a number
    judged: JudgedHits  # the list from which it was computed
    summed: str = ""  # name of the column whose sum it is, if it is such a sum


@dataclass(frozen=True, eq=False)
class CalculationColumn:
    """One number per rank of a list, and its formula."""

    # how, parts, judged: as in `CalculationStep`; the operands are (N,) or a number
    name: str
    values: np.ndarray[Any, Any]  # (N,)
    how: str
    parts: Mapping[str, Operand]
    judged: JudgedHits
    # topic, rank: (N,): topic and rank of each value
    topic: Ints
    rank: Ints


@dataclass(frozen=True, eq=False)
class CalculationTable:
    """A table of intermediate results other than ranks: recall points, subtopics, pairs of documents."""

    title: str
    columns: Mapping[str, Sequence[object] | np.ndarray]
    how: Mapping[str, str]  # formulas of columns that are computed from others, by name of the column
    judged: JudgedHits


Entry: TypeAlias = CalculationStep | CalculationColumn | CalculationTable


@dataclass(frozen=True)
class Calculation:
    """Intermediate results in the order in which measures compute them."""

    entries: list[Entry] = field(default_factory=list["Entry"])

    def column(
        self,
        judged: JudgedHits,
        name: str,
        values: Floats | Ints | Bools,
        how: str,
        parts: Mapping[str, Operand],
        where: Bools | None = None,
        rank: Ints | None = None,
    ) -> None:
        """Record a column, preceded by those of its operands that are columns not recorded yet."""
        # Without `rank`, there is one value per hit, and `where` selects the hits to show. With `rank`, there is one
        # value for each of these ranks of the only topic.
        hits = np.flatnonzero(where) if where is not None else slice(None)
        ranks = judged.rank[hits] if rank is None else rank
        topic = judged.topic[hits] if rank is None else np.zeros(len(ranks), dtype=np.int64)
        operands = {key: np.asarray(part)[hits] if np.ndim(part) else part for key, part in parts.items()}
        for key, operand in operands.items():
            if isinstance(operand, np.ndarray) and not self._has_column(judged, key):
                self.entries.append(CalculationColumn(key, operand, "", {}, judged, topic, ranks))
        self.entries.append(CalculationColumn(name, np.asarray(values)[hits], how, operands, judged, topic, ranks))

    def step(self, judged: JudgedHits, name: str, values: Floats, how: str, parts: Mapping[str, Operand]) -> None:
        """Record one number per topic."""
        self.entries.append(CalculationStep(name, values, how, parts, judged))

    def rows(
        self,
        judged: JudgedHits,
        title: str,
        columns: Mapping[str, Sequence[object] | np.ndarray],
        how: Mapping[str, str],
    ) -> None:
        """Record a table."""
        self.entries.append(CalculationTable(title, columns, how, judged))

    def _has_column(self, judged: JudgedHits, name: str) -> bool:
        columns = (entry for entry in self.entries if isinstance(entry, CalculationColumn))
        return any(column.judged is judged and column.name == name for column in columns)

    def total(
        self,
        judged: JudgedHits,
        name: str,
        values: Floats | Bools,
        total: Floats,
        how: str,
        parts: Mapping[str, Operand],
        where: Bools | None,
    ) -> None:
        """Record a sum over the hits of each topic: the summands, the running sum, and the total."""
        summand = how or name
        self.column(judged, summand, values, how, parts, where)
        running = judged.sum_so_far(values if where is None else values * where)
        title = f"{name} so far" if self._has_column(judged, "so far") else "so far"
        self.column(judged, title, running, "", {}, where)
        self.summed(judged, name, total, summand)

    def summed(self, judged: JudgedHits, name: str, total: Floats, column: str, how: str = "") -> None:
        """Record one number per topic that is the sum of a recorded column."""
        self.entries.append(CalculationStep(name, total, how or f"sum of {column}", {}, judged, column))
