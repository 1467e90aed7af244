"""Tables of numbers by run, such as latencies: CSV, TSV, JSON, JSONL or Parquet."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

from judged.errors import InputError
from judged.gating.config import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_OF_RUN = ("run", "run_id", "system", "name")
_FORMATS = "give CSV, TSV, JSON (a list of records), JSONL or Parquet, with a column run and a column of numbers"


def numbers_by_run(path: Path, column: str) -> dict[str, list[float]]:
    """Read one column of numbers, by the run that each row names; empty cells are left out.

    Raises
    ------
    InputError
        If the file cannot be read, lacks a column, or a value is no finite number.
    """
    rows = list(_rows(path))
    if not rows:
        raise InputError("no rows in it", fix=_FORMATS, path=str(path))
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    run = next((name for name in _OF_RUN if name in names), None)
    if run is None:
        raise InputError(f"no column run among {', '.join(names)}", fix="name the runs in a column run", path=str(path))
    if column not in names:
        raise InputError(
            f"no column {column!r}", fix=nearest(column, [name for name in names if name != run]), path=str(path)
        )
    found: dict[str, list[float]] = {}
    for line, row in rows:
        value = row.get(column)
        if value is not None and value != "":
            found.setdefault(str(row.get(run)).strip(), []).append(_number(value, column, str(path), line))
    return found


def _number(value: Any, column: str, path: str, line: int) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if isinstance(value, bool) or number - number != 0:
        raise InputError(f"{column} is {value!r}, which is no number", fix="give a number", path=path, line=line)
    return number


def _rows(path: Path) -> Iterable[tuple[int, dict[str, Any]]]:
    """Give each row with its line, counted from 1."""
    suffix = path.suffix.lower()
    try:
        if suffix == ".parquet":
            from pyarrow import parquet

            return list(enumerate(parquet.read_table(path).to_pylist(), 1))
        text = path.read_text(encoding="utf-8-sig")
        if suffix == ".json":
            return list(enumerate(_records(json.loads(text)), 1))
        if suffix in {".jsonl", ".ndjson"}:
            lines = [(at, line) for at, line in enumerate(text.splitlines(), 1) if line.strip()]
            return [(at, record) for at, line in lines for record in _records([json.loads(line)])]
        return _delimited(text, "\t" if "\t" in text.partition("\n")[0] else ",")
    except OSError as error:
        raise InputError(f"it cannot be read ({error.strerror or error})", fix=_FORMATS, path=str(path)) from None
    except ValueError as error:  # of JSON, of UTF-8, of Parquet
        raise InputError(f"no table can be read from it ({error})", fix=_FORMATS, path=str(path)) from None


def _records(given: Any) -> list[dict[str, Any]]:
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise ValueError("it holds no records")
    return given


def _delimited(text: str, separator: str) -> list[tuple[int, dict[str, Any]]]:
    reader = csv.reader(text.splitlines(), delimiter=separator)
    header = [name.strip() for name in next(reader, [])]
    return [(reader.line_num, dict(zip(header, row, strict=False))) for row in reader if row]
