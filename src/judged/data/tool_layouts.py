"""Read the JSON of other tools as qrels, a run, or answers, by the layouts in ``tool_layouts.toml``."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from operator import contains
from types import NoneType
from typing import TYPE_CHECKING, Any, cast

from judged.data.column_names import reading_options
from judged.data.files import packaged_toml
from judged.data.nested_rows import nested_rows, parse_path, row_keys
from judged.results.blocks import first_few
from judged.results.decimals import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class ToolLayout:
    """Layout of the JSON of a tool: the path of each column, see `judged.data.nested_rows`."""

    name: str
    tool: str
    kind: str  # qrels, run, labels, or answers
    paths: Mapping[str, str]
    # Values at a path of the rows that are read; "" stands for a missing field.
    where: Mapping[str, Sequence[Any]] = field(default_factory=dict[str, "Sequence[Any]"])
    skipped: Mapping[str, str] = field(default_factory=dict[str, str])  # name of what is not read, by its path
    judge: str = ""  # name of the judge of labels without one
    optional: Sequence[str] = ()  # columns that the first row may lack
    known: Sequence[str] = ()  # keys of rows that are not read and not reported
    by_score: bool = False  # whether scores that do not decrease order the results, and not the positions
    note: str = ""  # what the user should know

    def rows(self, data: Any) -> list[dict[str, Any]]:
        """Return the rows in the data; empty if the first row lacks a column or has values of another type."""
        paths = {**self.paths, **{f"where {number}": path for number, path in enumerate(self.where)}}
        rows: list[dict[str, Any]] = []
        for row in nested_rows(data, paths):
            conditions = [row.pop(f"where {number}", "") for number in range(len(self.where))]
            if not all(map(contains, self.where.values(), conditions)):
                continue
            if not rows and not _is_row(row, set(self.paths) - set(self.optional)):
                return []
            rows.append(row)
        return rows

    def notes(self, data: Any) -> list[str]:
        """Return the tool, the keys of rows that are neither read nor known, and the numbers of what was skipped."""
        paths = (*self.paths.values(), *self.where)
        read = {name for path in paths for step in parse_path(path) for name in step.split("|")}.union(self.known)
        keys = row_keys(data, self.paths) - read
        unused = sorted(key for key in keys if not set(key.split(".")) <= read)  # flat keys have dots
        notes = [f"read as {self.name} ({self.tool})"] + [self.note] * bool(self.note)
        notes += [f"fields that are not used: {first_few(unused)}"] * bool(unused)
        counts = {name: self._count_skipped(data, path) for path, name in self.skipped.items()}
        skipped = [counted(count, name) for name, count in counts.items() if count]
        return notes + [f"not read: {', '.join(skipped)}"] * bool(skipped)

    def _count_skipped(self, data: Any, path: str) -> int:
        rows = nested_rows(data, {"value": path})
        return sum(row.get("value", "") not in self.where.get(path, ("",)) for row in rows)


def _is_row(row: Mapping[str, Any], required: set[str]) -> bool:
    if not isinstance(row.get("answer") or "", (str, list)):
        return False
    ids = [row.get(name) for name in ("query_id", "doc_id") if name in required]
    are_ids = all(isinstance(value, (str, int)) and not isinstance(value, bool) and value != "" for value in ids)
    return are_ids and required <= set(row) and isinstance(row.get("score"), (int, float, NoneType))


@cache
def tool_layouts() -> tuple[ToolLayout, ...]:
    """Return all layouts, in the order in which they are tried."""
    return tuple(ToolLayout(**layout) for layout in packaged_toml("data/tool_layouts.toml")["layout"])


def find_layout(data: Any, kind: str) -> tuple[ToolLayout, list[dict[str, Any]]] | None:
    """Return the first layout of this kind that the data has, and its rows; None if there is none.

    >>> layout, rows = find_layout({"q1": ["d7", "d3"]}, "run")
    >>> layout.name, rows[1]
    ('lists of ids by query', {'query_id': 'q1', 'doc_id': 'd3', 'rank': 2})
    """
    for layout in (*_named_layout(data, kind), *tool_layouts()):
        kinds = {layout.kind, "qrels"} if layout.kind == "labels" else {layout.kind}
        if kind in kinds and (rows := layout.rows(data) or layout.rows([data])):
            return layout, rows
    return None


_VALUE_PATHS = {"run": "score|similarity|sim|_score|relevance_score", "qrels": "relevance|grade|rel|label|rating|score"}


def _named_layout(data: Any, kind: str) -> list[ToolLayout]:
    """Return the layout in which the user names nested fields: ``{"doc_id": "docs.sku"}``; empty if there is none."""
    roles = {name.removeprefix(f"{kind}."): column for name, column in reading_options().columns.items()}
    paths = {role: _path_of(data, column) for role, column in roles.items() if "." in column or role == "query_id"}
    if "." not in roles.get("doc_id", "") or kind not in _VALUE_PATHS:
        return []
    reading_options().present.update(roles.values())
    element = paths["doc_id"].rpartition("[]")[0] + "[]"
    record = element[:-2].rpartition("[]")
    paths.setdefault("query_id", f"{record[0]}{record[1]}.query_id|qid|topic_id|topic|query|question|q|id")
    value = "score" if kind == "run" else "relevance"
    paths.setdefault(value, f"{element}.{_VALUE_PATHS[kind]}")
    paths |= {"rank": f"{element}#"} if kind == "run" else {}
    return [ToolLayout("the fields of --columns", "custom scripts", kind, paths, optional=["score"], by_score=True)]


def _path_of(data: Any, column: str) -> str:
    """Return the path of a nested field, with the lists in the first record.

    >>> _path_of([{"q": "red", "docs": [{"sku": 7}]}], "docs.sku")
    '[].docs[].sku'
    """
    path, value = "", data
    for name in ("", *column.split(".")):
        path += f".{name}" * bool(name)
        value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) and name else value
        if isinstance(value, list):
            path, value = f"{path}[]", next(iter(cast("list[Any]", value)), None)
    return path.removeprefix(".")
