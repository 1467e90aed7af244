"""Write qrels and runs to files: TREC, CSV, TSV, JSON Lines, Parquet."""

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
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from judged.data.column_names import Kind
    from judged.data.qrels import Qrels
    from judged.data.run import Run
    from judged.results.types import Floats, Ints, Strings, Table


_SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
FORMATS = ("trec", "csv", "tsv", "jsonl", "parquet")
"""Valid values of `format` for writing."""

_BEIR_NAMES = {"query-id": "query_id", "corpus-id": "doc_id"}
_GRADES = frozenset({"relevance", "score"})  # `score` in qrels of BEIR; whole scores of runs need no fraction either
_CHUNK_ROWS = 1 << 16  # rows converted to Python objects at a time
_WHITE_SPACE = r"[ \t\r\n\v\f\x00]"  # files with zero bytes are not read as text
_FIRST = "^[#\ufeff]|^$"  # a comment, or a byte order mark at the start of a file
_UNSAFE_IN_TSV = r"[\t\r\n\x00]|^[ \v\f]|[ \v\f]$"
_INVALID_IN_TREC = {"query_id": f"{_WHITE_SPACE}|{_FIRST}", "doc_id": f"{_WHITE_SPACE}|^$", "iteration": _WHITE_SPACE}
_UNSAFE_IN_CSV = r"[\r\n\x00]"
_INVALID_IN_CSV = {
    "query_id": f"{_UNSAFE_IN_CSV}|^#|^$",
    "doc_id": f"{_UNSAFE_IN_CSV}|^$",
    "iteration": _UNSAFE_IN_CSV,
    "run_id": _UNSAFE_IN_CSV,
}
_INVALID_IN_TSV = {
    "query_id": f"{_UNSAFE_IN_TSV}|^#|^$",
    "doc_id": f"{_UNSAFE_IN_TSV}|^$",
    "iteration": _UNSAFE_IN_TSV,
    "run_id": _UNSAFE_IN_TSV,
}


def write_qrels(qrels: Qrels, path: str | Path, format: str | None = None) -> None:
    """Write judgments; without `format` it is determined by the file extension, and is TREC for other extensions.

    The file is written under a temporary name and renamed, so that a failure leaves no incomplete file. The origin of
    the judgments, if known, is written to ``<path>.origin.json``.

    Parameters
    ----------
    qrels
        Judgments to write.
    path
        File to write; its folder must exist.
    format
        File format; None: that of the file extension, or TREC.

    Raises
    ------
    InputError
        If an id cannot be written in the format, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from judged.data import Qrels
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_qrels(Qrels.of({"q1": {"d1": 1}}), f"{folder}/qrels.txt")
    ...     print(Path(folder, "qrels.txt").read_text(), end="")
    q1 0 d1 1
    """
    write_table(qrels.table, "qrels", Path(path), format)
    write_origin(qrels.origin, path)


def write_run(run: Run, path: str | Path, format: str | None = None) -> None:
    """Write a run by descending score; ties are in descending order of document id, and ranks start at 1.

    Scores are written with full precision. A run without scores is written as pairs of query id and document id.

    Parameters
    ----------
    run
        Run to write.
    path
        File to write; its folder must exist.
    format
        File format; None: that of the file extension, or TREC.

    Raises
    ------
    InputError
        If an id cannot be written in the format, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from judged.data import Run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_run(Run.of({"q1": {"d1": 0.5}}, name="bm25"), f"{folder}/bm25.run")
    ...     print(Path(folder, "bm25.run").read_text(), end="")
    q1 Q0 d1 1 0.5 bm25
    """
    table = _with_checked_scores(run.table, run.where)
    if "score" in table.column_names:
        table = _with_ranks(table)
        if "run_id" not in table.column_names or _choose_format(Path(path), format) == "trec":
            name = re.sub(r"\s+", "_", run.name.strip()) or "run"
            table = table.drop_columns("run_id") if "run_id" in table.column_names else table
            table = table.append_column("run_id", pa.array([name] * table.num_rows, pa.string()))
    write_table(table, "run", Path(path), format)


def _with_checked_scores(table: Table, where: str) -> Table:
    if not table.num_rows:
        raise InputError("the run has no rows", fix="use a run with at least one row", path=where)
    return with_scores(table, "run", where)


def _with_ranks(table: Table) -> Table:
    """Sort each topic by descending score and id, and add ranks; the order of topics does not change."""
    scores = table["score"].to_numpy()
    topics = pc.index_in(table["query_id"], value_set=pc.unique(table["query_id"])).to_numpy()
    order = np.lexsort((-_tie_order(table["doc_id"], topics, scores), -scores, topics))
    sorted_topics = topics[order]
    starts = np.flatnonzero(np.r_[True, sorted_topics[1:] != sorted_topics[:-1]])
    ranks = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)])) + 1
    table = table.select([name for name in table.column_names if name != "rank"]).take(order)
    return table.append_column("rank", pa.array(ranks, pa.int64()))


def _tie_order(docs: Strings, topics: Ints, scores: Floats) -> Ints:
    """Return numbers that sort rows with tied scores by the bytes of their ids; 0 for rows without ties."""
    order = np.lexsort((scores, topics))
    equals_next = (topics[order][1:] == topics[order][:-1]) & (scores[order][1:] == scores[order][:-1])
    tied = order[np.r_[equals_next, False] | np.r_[False, equals_next]]
    keys = np.zeros(len(topics), dtype=np.int64)
    if len(tied):
        keys[tied] = pc.rank(docs.take(tied).combine_chunks(), tiebreaker="dense").to_numpy()
    return keys


def _choose_format(path: Path, format: str | None) -> str:
    if format is not None:
        if format not in FORMATS:
            fix = use_one_of(FORMATS)
            raise InputError(f"the format {format!r} cannot be written", fix=fix, path=str(path))
        return format
    if path.suffix in {".zst", ".bz2", ".xz"}:
        raise InputError(
            f"compression {path.suffix} is not supported", fix="use .gz, or no compression", path=str(path)
        )
    uncompressed = path.with_suffix("") if path.suffix == ".gz" else path
    return _SUFFIXES.get(uncompressed.suffix.lower(), "trec")


def write_table(table: Table, kind: Kind, path: Path, format: str | None) -> None:
    """Write a table of qrels or of a run with these names of columns."""
    output_format = _choose_format(path, format)
    with atomic_write(path) as temporary:
        if output_format == "parquet":
            from pyarrow import parquet

            parquet.write_table(table, temporary)
            return
        with (
            temporary.open("wb") as raw,
            _compress(raw, path) as stream,
            io.TextIOWrapper(stream, encoding="utf-8", newline="") as file,
        ):
            if output_format == "trec":
                write_trec(table, kind, file, str(path))
            elif output_format == "jsonl":
                _write_jsonl(table, file)
            elif output_format == "csv":
                _write_delimited(table, csv_row, file, _INVALID_IN_CSV, str(path))
            else:
                _write_delimited(table, lambda row: "\t".join(map(str, row)), file, _INVALID_IN_TSV, str(path))


def _compress(raw: IO[bytes], path: Path) -> IO[bytes]:
    """Compress if the path ends with .gz, without name and time in the header, so that equal rows give equal bytes."""
    return gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) if path.suffix == ".gz" else raw  # type: ignore[return-value]


def _rows(table: Table, names: list[str]) -> Iterator[tuple[object, ...]]:
    """Yield rows as Python values; None for columns that the table lacks."""
    for start in range(0, table.num_rows, _CHUNK_ROWS):
        chunk = table.slice(start, _CHUNK_ROWS)
        columns = [chunk[name].to_pylist() if name in chunk.column_names else [None] * chunk.num_rows for name in names]
        yield from zip(*columns, strict=True)


def write_trec(table: Table, kind: Kind, file: IO[str], where: str) -> None:
    """Write rows in the TREC format; `where` is used in error messages."""
    _check_ids(table, _INVALID_IN_TREC, where)
    if kind == "qrels":
        names = ["query_id", "iteration", "doc_id", "relevance"]
        for query, iteration, doc, grade in _rows(table, names):
            file.write(f"{query} {iteration or 0} {doc} {_format_grade(grade)}\n")
    elif "score" in table.column_names:
        for query, doc, rank, score, tag in _rows(table, ["query_id", "doc_id", "rank", "score", "run_id"]):
            file.write(f"{query} Q0 {doc} {rank} {score!r} {tag}\n")
    else:
        for query, doc in _rows(table, ["query_id", "doc_id"]):
            file.write(f"{query} {doc}\n")


def _write_delimited(
    table: Table, format_row: Callable[[Sequence[object]], str], file: IO[str], invalid: dict[str, str], where: str
) -> None:
    names = list(table.column_names)
    _check_ids(table, invalid, where)
    file.write(f"{format_row(names)}\n")
    grade = next((position for position, name in enumerate(names) if name in _GRADES), None)
    for row in _rows(table, names):
        cells = row if grade is None else [*row[:grade], _format_grade(row[grade]), *row[grade + 1 :]]
        file.write(f"{format_row(cells)}\n")


def _check_ids(table: Table, patterns: dict[str, str], where: str) -> None:
    """Raise InputError for ids that would be different after writing and reading."""
    for column in map(str, table.column_names):
        name = _BEIR_NAMES.get(column, column)
        if pattern := patterns.get(name):
            ids = pc.unique(table[column])
            invalid = ids.filter(pc.match_substring_regex(ids, pattern))
            if len(invalid):
                raise InputError(
                    f"this format cannot store {name} {invalid[0].as_py()!r} (a space or another special character)",
                    fix="write a .csv, .jsonl, or .parquet file",
                    path=where,
                )


def _write_jsonl(table: Table, file: IO[str]) -> None:
    names = list(table.column_names)
    for row in _rows(table, names):
        file.write(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n")


def _format_grade(value: object) -> str:
    """Format a grade with full precision; integers have no decimal point.

    >>> _format_grade(2.0), _format_grade(0.1)
    ('2', '0.1')
    """
    number = float(value)  # type: ignore[arg-type]
    return str(int(number)) if number.is_integer() else repr(number)
