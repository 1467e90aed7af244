"""Result of the command and the page."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from judged.results import COUNT, TEXT, Answer, Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged import Run


@dataclass(frozen=True)
class Longest(Answer):
    """Length of the longest ranking of each run. An `Answer` supports all output formats without further code."""

    kind: ClassVar[str] = "longest"
    lengths: dict[str, int]

    def blocks(self) -> tuple[Table, ...]:
        """Return one table."""
        runs = Column("run", [*self.lengths], TEXT, "Run")
        return (Table("runs", (runs, Column("n", [*self.lengths.values()], COUNT, "Documents"))),)


def longest(runs: Iterable[Run]) -> Longest:
    """Count the documents of the longest ranking of each run."""
    return Longest({run.name: max(Counter(run.table["query_id"].to_pylist()).values()) for run in runs})
