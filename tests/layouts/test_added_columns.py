"""A column or field with an unknown name never changes the table that is read, and is reported."""

from __future__ import annotations

import csv
import io
import json
import string
import tomllib
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet

from judged.data.column_names import canonical_names
from judged.data.delimited import decode
from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.errors import InputError, JudgedWarning

FOLDER = Path(__file__).parent
BINARY = {".parquet", ".feather"}
QUIET = settings(
    max_examples=12, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

names = st.text(string.ascii_lowercase, min_size=2, max_size=6).map("zz".__add__)
columns = st.sampled_from([[1, 2, 3], [0.5, 0.25, 1.5], ["red", "blue", "green"], ["2024-01-31", "2024-02-01"]])


def read(layout: dict[str, Any], path: Path) -> tuple[list[dict[str, Any]], str]:
    """Return the rows of a file and the text of all warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", JudgedWarning)
        table = (Qrels if layout["kind"] == "qrels" else Run).read(path).table
    return table.to_pylist(), "\n".join(str(warning.message) for warning in caught)


def with_column(path: Path, delimiter: str, name: str, values: list[Any], position: int) -> bytes:
    """Return a delimited table with another column at this position."""
    text, encoding = decode(path.read_bytes())
    codec = {"UTF-8": "utf-8", "UTF-16": "utf-16", "Shift JIS": "cp932", "Windows-1252": "cp1252"}[encoding]
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    width = max(map(len, rows))
    header = next(i for i, row in enumerate(rows) if len(row) == width and sum(map(bool, row)) > 1)
    at = max(1, position % width) if delimiter == "|" else position % (width + 1)
    for i, row in enumerate(rows):
        if len(row) == width:
            is_border = i != header and set("".join(row)) <= set("-: ")
            cell = name if i == header else "---" if is_border else str(values[i % len(values)])
            row.insert(at, "" if i < header else cell)
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return out.getvalue().encode(codec)


def objects(node: Any, depth: int = 0) -> list[tuple[int, dict[str, Any]]]:
    """Return the objects in lists, each with its depth."""
    inside = list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else []
    found = [(depth, item) for item in inside if isinstance(node, list) and isinstance(item, dict)]
    return found + [pair for item in inside for pair in objects(item, depth + isinstance(node, list))]


def with_field(path: Path, name: str, values: list[Any], where: str) -> str:
    """Return JSON with another field in the outer or inner objects of lists, or in the last of them."""
    text = path.read_text(encoding="utf-8")
    data = [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)
    found = objects(data)
    depth = (min if where == "outer" else max)((depth for depth, _ in found), default=0)
    chosen = [item for level, item in found if level == depth]
    for i, item in enumerate(chosen[-1:] if where == "last" else chosen):
        item[name] = values[i % len(values)]
    return "".join(json.dumps(line) + "\n" for line in data) if path.suffix == ".jsonl" else json.dumps(data)


def has_columns(layout: dict[str, Any]) -> bool:
    path = FOLDER / layout["file"]
    if layout["kind"] == "labels" or path.suffix not in {".json", ".jsonl"}:
        return "delimiter" in layout or path.suffix in BINARY
    return "zz" in with_field(path, "zz", [1], "inner")


LAYOUTS: list[dict[str, Any]] = list(
    filter(has_columns, tomllib.loads((FOLDER / "layouts.toml").read_text(encoding="utf-8"))["layout"])
)


@pytest.mark.parametrize("layout", LAYOUTS, ids=[layout["id"] for layout in LAYOUTS])
@QUIET
@given(name=names, values=columns, position=st.integers(0, 9), where=st.sampled_from(["outer", "inner", "last"]))
def test_an_unknown_column_is_reported(
    layout: dict[str, Any], name: str, values: list[Any], position: int, where: str, tmp_path: Path
) -> None:
    if any(canonical_names([name], layout["kind"])):
        return
    original = FOLDER / layout["file"]
    path = tmp_path / layout["file"]
    if "delimiter" in layout:
        path.write_bytes(with_column(original, layout["delimiter"], name, values, position))
    elif original.suffix in BINARY:
        table = (parquet.read_table if original.suffix == ".parquet" else feather.read_table)(original)
        column = pa.array([values[i % len(values)] for i in range(table.num_rows)])
        table = table.add_column(position % (table.num_columns + 1), name, column)
        (parquet.write_table if original.suffix == ".parquet" else feather.write_feather)(table, path)
    else:
        # Other lists of these layouts are not read: snippets, and texts of queries.
        has_other_lists = layout["tool"] == "BioASQ" or layout["id"] == "quepid_snapshot_json"
        text = with_field(original, name, values, "outer" if has_other_lists else where)
        path.write_text(text, encoding="utf-8")
    try:
        rows, messages = read(layout, path)
    except InputError:
        return
    assert rows == read(layout, original)[0]
    assert name in messages or "in all)" in messages
