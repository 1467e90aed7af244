"""Qrels and runs written to files: TREC, CSV, JSON Lines, Parquet, by the file's name."""

from __future__ import annotations

import gzip
import io
import json
import re
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.objects import with_scores
from judged.data.qrels import write_origin
from judged.errors import InputError
from judged.results.escaping import csv_row
from judged.results.files import atomic_write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from judged.data.layout import Kind
    from judged.data.qrels import Qrels
    from judged.data.run import Run
    from judged.results.types import Floats, Ints, Strings, Table


_SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
FORMATS = ("trec", "csv", "tsv", "jsonl", "parquet")
"""The names that `format` can have when writing."""

_SLICE = 1 << 16  # rows turned into Python objects at a time
_BLANK = r"[ \t\r\n\v\f]"
_INNER = r"[\t\r\n]|^[ \v\f]|[ \v\f]$"
_NO_FIELD = {"query_id": f"{_BLANK}|^#|^$", "doc_id": f"{_BLANK}|^$", "iteration": _BLANK}
_NO_CELL = {"query_id": "[\r\n]|^#|^$", "doc_id": "[\r\n]|^$", "iteration": "[\r\n]", "run_id": "[\r\n]"}
_NO_PART = {"query_id": f"{_INNER}|^#|^$", "doc_id": f"{_INNER}|^$", "iteration": _INNER, "run_id": _INNER}


def write_qrels(qrels: Qrels, path: str | Path, format: str | None = None) -> None:
    """Write judgments; the format is the file's ending, TREC for an ending that says none.

    The file is written beside its place and renamed, so that a failure never leaves half of it. The origin of the
    judgments, where it is known, is written into ``<path>.origin.json``.

    Raises
    ------
    InputError
        If an id cannot be written in the format, or the file cannot be written.
    """
    _write(qrels.table, "qrels", Path(path), format)
    write_origin(qrels.origin, path)


def write_run(run: Run, path: str | Path, format: str | None = None) -> None:
    """Write a run, best document first; ranks start at 1, equal scores stand in falling order of id.

    Scores are written so that reading gives the same numbers. A run without scores is written
    as pairs.

    Raises
    ------
    InputError
        If an id cannot be written in the format, or the file cannot be written.
    """
    table = _scored(run.table, run.where)
    if "score" in table.column_names:
        table = _ranked(table)
        if "run_id" not in table.column_names or _chosen(Path(path), format) == "trec":
            name = re.sub(r"\s+", "_", run.name.strip()) or "run"
            kept = table.drop_columns("run_id") if "run_id" in table.column_names else table
            table = kept.append_column("run_id", pa.array([name] * table.num_rows, pa.string()))
    _write(table, "run", Path(path), format)


def _scored(table: Table, where: str) -> Table:
    if not table.num_rows:
        raise InputError("there are no rows", fix="write a run that has some", path=where)
    return with_scores(table, "run", where)


def _ranked(table: Table) -> Table:
    """Order each topic by falling score and id, and number its rows; topics keep their order."""
    scores = table["score"].to_numpy()
    topics = pc.index_in(table["query_id"], value_set=pc.unique(table["query_id"])).to_numpy()
    order = np.lexsort((-_order_of_tied(table["doc_id"], topics, scores), -scores, topics))
    sorted_topics = topics[order]
    starts = np.flatnonzero(np.r_[True, sorted_topics[1:] != sorted_topics[:-1]])
    ranks = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)])) + 1
    kept = table.select([name for name in table.column_names if name != "rank"]).take(order)
    return kept.append_column("rank", pa.array(ranks, pa.int64()))


def _order_of_tied(docs: Strings, topics: Ints, scores: Floats) -> Ints:
    """Give rows with equal scores a number in the order of their ids' bytes, 0 to other rows."""
    order = np.lexsort((scores, topics))
    alike = (topics[order][1:] == topics[order][:-1]) & (scores[order][1:] == scores[order][:-1])
    tied = order[np.r_[alike, False] | np.r_[False, alike]]
    keys = np.zeros(len(topics), dtype=np.int64)
    if len(tied):
        keys[tied] = pc.rank(docs.take(tied).combine_chunks(), tiebreaker="dense").to_numpy()
    return keys


def _chosen(path: Path, format: str | None) -> str:
    if format is not None:
        if format not in FORMATS:
            fix = f"use one of {', '.join(FORMATS)}"
            raise InputError(f"{format!r} cannot be written", fix=fix, path=str(path))
        return format
    if path.suffix in {".zst", ".bz2", ".xz"}:
        raise InputError(f"{path.suffix} is not written", fix="write .gz, or no compression", path=str(path))
    named = path.with_suffix("") if path.suffix == ".gz" else path
    return _SUFFIXES.get(named.suffix.lower(), "trec")


def _write(table: Table, kind: Kind, path: Path, format: str | None) -> None:
    chosen = _chosen(path, format)
    with atomic_write(path) as part:
        if chosen == "parquet":
            from pyarrow import parquet

            parquet.write_table(table, part)
            return
        with (
            part.open("wb") as raw,
            _packed(raw, path) as packed,
            io.TextIOWrapper(packed, encoding="utf-8", newline="") as file,
        ):
            if chosen == "trec":
                write_trec(table, kind, file, str(path))
            elif chosen == "jsonl":
                _write_jsonl(table, file)
            elif chosen == "csv":
                _write_delimited(table, csv_row, file, _NO_CELL, str(path))
            else:
                _write_delimited(table, lambda row: "\t".join(map(str, row)), file, _NO_PART, str(path))


def _packed(raw: IO[bytes], path: Path) -> IO[bytes]:
    """Compress where the name says so, storing neither name nor time: equal rows give equal bytes."""
    return gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) if path.suffix == ".gz" else raw  # type: ignore[return-value]


def _rows(table: Table, names: list[str]) -> Iterator[tuple[object, ...]]:
    """Give rows as Python values; a column that the table lacks gives None."""
    for start in range(0, table.num_rows, _SLICE):
        part = table.slice(start, _SLICE)
        columns = [part[name].to_pylist() if name in part.column_names else [None] * part.num_rows for name in names]
        yield from zip(*columns, strict=True)


def write_trec(table: Table, kind: Kind, file: IO[str], where: str) -> None:
    """Write rows as lines of TREC; `where` is what messages call them."""
    _refuse_ids(table, _NO_FIELD, where)
    if kind == "qrels":
        names = ["query_id", "iteration", "doc_id", "relevance"]
        for query, iteration, doc, grade in _rows(table, names):
            file.write(f"{query} {iteration or 0} {doc} {_number(grade)}\n")
    elif "score" in table.column_names:
        for query, doc, rank, score, tag in _rows(table, ["query_id", "doc_id", "rank", "score", "run_id"]):
            file.write(f"{query} Q0 {doc} {rank} {score!r} {tag}\n")
    else:
        for query, doc in _rows(table, ["query_id", "doc_id"]):
            file.write(f"{query} {doc}\n")


def _write_delimited(
    table: Table, line: Callable[[Sequence[object]], str], file: IO[str], odd: dict[str, str], where: str
) -> None:
    names = list(table.column_names)
    _refuse_ids(table, odd, where)
    file.write(f"{line(names)}\n")
    at = names.index("relevance") if "relevance" in names else None
    for row in _rows(table, names):
        cells = row if at is None else [*row[:at], _number(row[at]), *row[at + 1 :]]
        file.write(f"{line(cells)}\n")


def _refuse_ids(table: Table, patterns: dict[str, str], where: str) -> None:
    """Refuse ids that lines of fields cannot hold, or that reading would give back otherwise."""
    for name, pattern in patterns.items():
        if name in table.column_names:
            ids = pc.unique(table[name])
            odd = ids.filter(pc.match_substring_regex(ids, pattern))
            if len(odd):
                raise InputError(
                    f"the {name} {odd[0].as_py()!r} cannot be written so that it is read back",
                    fix="write .jsonl or .parquet",
                    path=where,
                )


def _write_jsonl(table: Table, file: IO[str]) -> None:
    names = list(table.column_names)
    for row in _rows(table, names):
        file.write(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n")


def _number(value: object) -> str:
    """Write a grade: whole numbers without a fraction, others so that reading gives them back.

    >>> _number(2.0), _number(0.1)
    ('2', '0.1')
    """
    number = float(value)  # type: ignore[arg-type]
    return str(int(number)) if number.is_integer() else repr(number)
