"""Tables of numbers by run, such as latencies: CSV, TSV, JSON, JSONL or Parquet."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from judged.data.records import read_records
from judged.decimals import read_number
from judged.errors import InputError
from judged.gating.config import nearest

if TYPE_CHECKING:
    from pathlib import Path

_OF_RUN = ("run", "run_id", "system", "name")
_FORMATS = "give CSV, TSV, JSON (a list of records), JSONL or Parquet, with a column run and a column of numbers"


def numbers_by_run(path: Path, column: str) -> dict[str, list[float]]:
    """Read one column of numbers, by the run that each row names; empty cells are left out."""
    rows = list(read_records(path))
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
        if value is not None and str(value).strip():
            found.setdefault(str(row.get(run)).strip(), []).append(_number(value, column, str(path), line))
    return found


def _number(value: Any, column: str, path: str, line: int | None) -> float:
    try:
        number = read_number(value)
    except ValueError as error:
        raise InputError(f"{column}: {value!r:.60} {error}", fix="give a number", path=path, line=line) from None
    if math.isinf(number):
        raise InputError(f"{column} is {value!r}", fix="give a finite number", path=path, line=line)
    return number
