"""Format tables of generated pages; cells are Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a table with left-aligned columns."""
    lines = (header, [":--" for _ in header], *([cell.replace("|", r"\|") for cell in row] for row in rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
