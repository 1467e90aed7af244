"""Read the JSON of other tools as qrels or a run, by the layouts in ``tool_layouts.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from judged.data.nested_rows import nested_rows, parse_path, row_keys

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class ToolLayout:
    """Layout of the JSON of a tool: the path of each column, see `judged.data.nested_rows`."""

    name: str
    tool: str
    kind: str  # qrels, run, or answers
    paths: Mapping[str, str]
    where: Mapping[str, Any] = field(default_factory=dict[str, Any])  # value at a path, for the rows that are read
    optional: Sequence[str] = ()  # columns that the first row may lack
    known: Sequence[str] = ()  # keys of rows that are not read and not reported
    note: str = ""  # what the user should know

    def rows(self, data: Any) -> list[dict[str, Any]]:
        """Return the rows in the data; empty if the first row lacks a column or has values of another type."""
        paths = {**self.paths, **{f"where {number}": path for number, path in enumerate(self.where)}}
        rows: list[dict[str, Any]] = []
        for row in nested_rows(data, paths):
            conditions = [row.pop(f"where {number}", None) for number in range(len(self.where))]
            if conditions != list(self.where.values()):
                continue
            if not rows and not _is_row(row, set(self.paths) - set(self.optional)):
                return []
            rows.append(row)
        return rows

    def unused(self, data: Any) -> list[str]:
        """Return the keys of rows that are neither read nor known."""
        read = {
            name
            for path in (*self.paths.values(), *self.where)
            for step in parse_path(path)
            for name in step.split("|")
        }.union(self.known)
        keys = row_keys(data, self.paths)
        return sorted(key for key in keys - read if not set(key.split(".")) <= read)  # flat keys have dots


def _is_row(row: Mapping[str, Any], required: set[str]) -> bool:
    ids = [row.get(name) for name in ("query_id", "doc_id")]
    are_ids = all(isinstance(value, (str, int)) and not isinstance(value, bool) and value != "" for value in ids)
    return are_ids and required <= set(row) and isinstance(row.get("score"), (int, float, NoneType))


@cache
def tool_layouts() -> tuple[ToolLayout, ...]:
    """Return all layouts, in the order in which they are tried."""
    content = tomllib.loads((Path(__file__).parent / "tool_layouts.toml").read_text(encoding="utf-8"))
    return tuple(ToolLayout(**layout) for layout in content["layout"])


def find_layout(data: Any, kind: str) -> tuple[ToolLayout, list[dict[str, Any]]] | None:
    """Return the first layout of this kind that the data has, and its rows; None if there is none.

    >>> layout, rows = find_layout({"q1": ["d7", "d3"]}, "run")
    >>> layout.name, rows[1]
    ('lists of ids by query', {'query_id': 'q1', 'doc_id': 'd3', 'rank': 2})
    """
    for layout in tool_layouts():
        if layout.kind == kind and (rows := layout.rows(data) or layout.rows([data])):
            return layout, rows
    return None
