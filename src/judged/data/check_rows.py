"""The rows of a file of qrels or of a run, as `judged check` looks at them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from judged.data.compute import codes_of, pc
from judged.data.findings import Finding, Level

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged._types import Floats, Ints, Strings, Table


@dataclass(frozen=True, eq=False)
class Rows:
    """A table with its ids as codes, and the way from a row to its line."""

    table: Table = field(repr=False)
    where: str
    line: Callable[[int], int | None] = field(repr=False)

    @cached_property
    def topics(self) -> Strings:
        """Distinct query ids, in order of appearance."""
        return pc.unique(self.table["query_id"])

    @cached_property
    def docs(self) -> Strings:
        """Distinct document ids, in order of appearance."""
        return pc.unique(self.table["doc_id"])

    @cached_property
    def topic(self) -> Ints:
        """Each row's topic, as its position in `topics`."""
        return codes_of(self.table["query_id"], self.topics)

    @cached_property
    def pair(self) -> Ints:
        """Each row's topic and document as one number."""
        return self.topic * len(self.docs) + codes_of(self.table["doc_id"], self.docs)

    def has(self, name: str) -> bool:
        """Whether there is such a column."""
        return name in self.table.column_names

    def column(self, name: str) -> Floats:
        """Give a column of numbers."""
        return self.table[name].to_numpy().astype(np.float64)

    def finding(
        self, level: Level, code: str, problem: str, fix: str = "", *, count: int = 1, row: int = -1
    ) -> Finding:
        """Make a finding that stands in the line of a row."""
        line = self.line(row) if row >= 0 else None
        return Finding(level, self.where, line, code, problem, fix, count)
