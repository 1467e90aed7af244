"""Open files of all formats as sources of rows."""

from __future__ import annotations

import warnings
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from glob import escape, glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from judged.components import find
from judged.data import files, json_rows
from judged.data.arrow_files import (
    ParquetRows,
    arrow_schema,
    arrow_table,
    parquet_batches,
    parquet_shape,
    parquet_table,
)
from judged.data.column_names import canonical_names, reading_options, unused_columns, use_columns, warn_unused
from judged.data.datasets import dataset_name, dataset_rows, is_dataset
from judged.data.engine_rows import EngineRows, EngineTable, TableInFile, rows_in_database
from judged.data.index import normalize_ids
from judged.data.json_rows import saved_result_error
from judged.data.layout import Layout, looks_like_qrels
from judged.data.objects import canonical_table, rows_of_object
from judged.data.own_tables import read_own_table
from judged.data.part_rows import PartRows, column_names, part_files, run_in_path
from judged.data.rows import Rows, TableRows
from judged.data.sniff import FORMATS, fits_sample, sniff
from judged.data.text_rows import TextRows, map_in_order
from judged.errors import NO_CONTENT, InputError, JudgedWarning

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from judged.data.column_names import Kind
    from judged.data.sniff import Format
    from judged.results.types import Table

_SUFFIXES = frozenset({
    ".gz", ".zst", ".bz2", ".xz", ".run", ".res", ".rank", ".qrels", ".qrel", ".txt", ".trec", ".tsv", ".csv", ".json",
    ".jsonl", ".ndjson", ".dat", ".parquet", ".arrow", ".feather", ".xml",
})  # fmt: skip
_FINAL_ERRORS = frozenset([
    NO_CONTENT, "looks-like-qrels", "looks-like-run", "looks-like-ratings", "rank-or-score", "truncated", "empty-file",
    "saved-result", "same-columns", "means-only",
])  # fmt: skip
_SAMPLE_ROWS = 200  # rows that are checked for signs of qrels
_MAX_ROWS_IN_MEMORY = 100_000  # of a run in Parquet: larger runs are read in parts, as there may be many of them


@dataclass(frozen=True)
class FileTable(TableRows):
    """Rows of a file that is read at once: JSON, Parquet, Arrow."""

    path: Path = Path()

    @property
    def paths(self) -> tuple[Path, ...]:
        """Path of the file."""
        return (self.path,)


@dataclass(frozen=True)
class Source:
    """Rows and their name."""

    rows: Rows
    name: str = ""  # name in results: the file name without extensions

    def table(self, columns: tuple[str, ...]) -> tuple[Table, str | None]:
        """Read all rows to a table with those of `columns` that exist; also return the hash of the files, if any."""
        file_hash = files.FileHash.of(self.rows.paths)
        batches = list(map_in_order(self.rows.parts(columns), lambda batch: batch))
        if not batches:
            raise InputError("there are no rows", fix="add rows", path=self.rows.where, rule="empty-file")
        return pa.Table.from_batches(batches), file_hash.hexdigest


def open_source(
    path: str | Path, kind: Kind, format: str | None = None, columns: Mapping[str, str] | None = None
) -> Source:
    """Open FILE or NAME=FILE, or standard input for ``-``, as rows of qrels or of a run; see `use_columns`."""
    name, file = split_name(path)
    with use_columns(columns) if columns else nullcontext():
        source = _open_path(file, kind, format)
    return replace(source, name=name) if name else source


def _open_path(path: str, kind: Kind, format: str | None) -> Source:
    # Text and long Parquet files are read later, in blocks; files of other formats are read here.
    if is_dataset(path):
        return Source(dataset_rows(path, kind), dataset_name(path))
    if is_spark_address(path):
        return Source(rows_in_database(path, kind), source_name(path.partition(";")[0]))
    prefix, _, address = path.partition(":")
    if address and len(prefix) > 1 and not Path(path).exists() and (reader := find("readers", prefix)):
        data = reader(address)
        return Source(rows_of_object(data, kind), getattr(data, "name", source_name(address)))
    if database_and_table := split_database_path(path):
        engine = TableInFile(*database_and_table)
        if kind == "run":
            return Source(EngineRows(EngineTable(engine)), source_name(path))
        return Source(
            TableRows(canonical_table(engine.query("SELECT * FROM judged_rows"), kind, engine.where), engine.where)
        )
    name = "stdin" if path == "-" else source_name(path)
    where = files.STDIN if path == "-" else path
    file = files.local(path)
    if files.exists(file) and file.is_dir():
        if kind == "run" and (parts := part_files(file)):
            return Source(_open_parts(file, parts, format), name)
        file = _find_qrels(file, kind)
        where = str(file)
    if format is not None and format not in FORMATS and (reader := find("readers", format)):
        return Source(rows_of_object(reader(file), kind), name)
    if format is not None:
        return Source(
            _file_rows(file, where, sniff(file, where, kind, format), kind, _MAX_ROWS_IN_MEMORY, is_trusted=True), name
        )
    rows = _detected_rows(file, where, kind)
    return Source(_with_normalized_ids(rows, file) if reading_options().normalize_ids else rows, name)


def _with_normalized_ids(rows: Rows, file: Path) -> Rows:
    table, _ = Source(rows).table(("query_id", "doc_id", "score", "rank", "run_id", "relevance", "iteration"))
    for name in ("query_id", "doc_id"):
        table = table.set_column(table.column_names.index(name), name, normalize_ids(table[name]))
    return FileTable(table, rows.where, file)


def _detected_rows(file: Path, where: str, kind: Kind) -> Rows:
    """Open a file with a detected layout: a plain one, or else that of another tool or of a spreadsheet."""
    try:
        layout = sniff(file, where, kind)
        rows = _file_rows(file, where, layout, kind, _MAX_ROWS_IN_MEMORY, is_trusted=False)
    except InputError as error:
        own = None if error.rule in _FINAL_ERRORS else read_own_table(file, kind, where)
        if own is None:
            raise
        return _own_rows(file, where, *own)
    if isinstance(layout, Layout) and not fits_sample(file, layout):
        with suppress(InputError):  # reading the plain layout reports the first line with an error
            if own := read_own_table(file, kind, where):
                return _own_rows(file, where, *own)
    if isinstance(layout, Layout):
        warn_unused(layout.unused, where)
    return rows


def _own_rows(file: Path, where: str, table: Table, notes: Iterable[str]) -> Rows:
    for note in notes:
        warnings.warn(f"{where}: {note}", JudgedWarning, stacklevel=4)
    return FileTable(table, where, file)


def _file_rows(file: Path, where: str, layout: Layout | Format, kind: Kind, max_rows: int, *, is_trusted: bool) -> Rows:
    """Open a file with a known layout; unless `is_trusted`, check that the scores of a run are not grades."""
    if isinstance(layout, Layout):
        return TextRows(file, layout, where)
    count, names = parquet_shape(file, where) if layout == "parquet" and kind == "run" else (0, [])
    is_long = count > max_rows and "distance" not in canonical_names(names, kind)
    table = _parquet(file, kind, where, _SAMPLE_ROWS) if is_long else _READERS[layout](file, kind, where)
    if not table.num_rows:
        raise InputError("there are no rows", fix="use a file with rows", path=where, rule="empty-file")
    if kind == "run" and not is_trusted and not _declares_scores(file, where, layout):
        _check_scores_are_no_grades(table, where)
    return ParquetRows(file, where, canonical_names(names, kind), count) if is_long else FileTable(table, where, file)


def _open_parts(folder: Path, parts: list[Path], format: str | None) -> PartRows:
    """Open the files of a run that is split into several files, all with the layout of the first file."""
    layout: Layout | None = None
    sources: list[Rows] = []
    runs: list[str | None] = []
    for file in parts:
        where = str(file)
        try:
            detected = layout or sniff(file, where, "run", format)
            rows = _file_rows(file, where, detected, "run", 0, is_trusted=format is not None or bool(sources))
        except InputError as error:
            if error.rule != "empty-file":
                raise
            continue
        layout = detected if isinstance(detected, Layout) else None
        if sources and column_names(rows) != column_names(sources[0]):
            columns, first_columns = (", ".join(sorted(column_names(source))) for source in (rows, sources[0]))
            problem = f"the columns are {columns}, but the columns of {sources[0].where} are {first_columns}"
            raise InputError(problem, fix="write all files of the table with the same columns", path=where)
        sources.append(rows)
        runs.append(run_in_path(folder, file))
    if not sources:
        raise InputError("there are no rows", fix="write the table again", path=str(folder), rule="empty-file")
    return PartRows(tuple(sources), tuple(runs), str(folder))


def split_name(path: str | Path) -> tuple[str, str]:
    """Split NAME=FILE into name and path; the name of FILE is empty.

    >>> split_name("mine=runs/bm25.run"), split_name("runs/bm25.run")
    (('mine', 'runs/bm25.run'), ('', 'runs/bm25.run'))
    """
    text = str(path)
    name, equals, file = text.partition("=")
    if not equals or files.exists(text) or is_spark_address(text):
        return "", text
    if not file:
        raise InputError(f"{text!r} has no file after '='", fix="write NAME=FILE")
    return name.encode(errors="backslashreplace").decode(), file


def is_spark_address(path: str | Path) -> bool:
    """Whether this is the address of a table on Spark."""
    return str(path).startswith(("sc://", "spark://"))


def expand_path(path: str | Path) -> list[str]:
    """Return the files of a glob pattern or folder; other paths, and folders with one run in parts, are returned as is.

    >>> expand_path("runs/bm25.run")
    ['runs/bm25.run']
    """
    text = str(path)
    is_folder = files.exists(text) and Path(text).is_dir()
    if not is_folder and (text == "-" or files.exists(text) or not has_magic(text)):
        return [text]
    if is_folder and part_files(Path(text)):
        return [text]
    pattern = str(Path(escape(text)) / "*") if is_folder else text
    matches = [Path(match) for match in sorted(glob(pattern, recursive=True))]  # noqa: PTH207  absolute patterns
    visible = [match for match in matches if not match.name.startswith(("_", "."))]
    runs = [match for match in visible if match.is_file() or (match.is_dir() and part_files(match))]
    if not runs:
        problem = "there is no file in this folder" if is_folder else "no file matches this pattern"
        raise InputError(problem, fix="check the path", path=text, rule=NO_CONTENT)
    if len(runs) > 1 and all(run.name.startswith("part-") for run in runs):
        problem = "these files are parts of one table, but each would be read as a run"
        raise InputError(problem, fix="use the folder that contains these files", path=text)
    return list(map(str, runs))


def source_name(path: str | Path) -> str:
    """Return the name of a file without known extensions; bytes that are not UTF-8 are escaped.

    >>> source_name("runs/bm25.v2.run.gz"), source_name("beir/scifact/")
    ('bm25.v2', 'scifact')
    """
    name = Path(path)
    while name.suffix.lower() in _SUFFIXES and name.stem:
        name = name.with_suffix("")
    return name.name.encode(errors="backslashreplace").decode()


def _find_qrels(folder: Path, kind: Kind) -> Path:
    """Return the path of the qrels in a folder with the BEIR layout."""
    if kind == "qrels":
        if (test := folder / "qrels" / "test.tsv").is_file():
            return test
        candidates = [file for file in sorted((folder / "qrels").glob("*")) if file.is_file()]
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            names = ", ".join(file.name for file in candidates[:8])
            raise InputError(
                f"there are several files in qrels/: {names}",
                fix="use one of these files",
                path=str(folder),
                rule=NO_CONTENT,
            )
    raise InputError("this is a folder", fix="use a file in this folder", path=str(folder), rule=NO_CONTENT)


def _parquet(path: Path, kind: Kind, where: str, max_rows: int | None = None) -> Table:
    """Read a Parquet file, or its first rows."""
    unused: list[str] = []

    def select_known(names: list[str]) -> list[str]:
        roles = canonical_names(names, kind)
        unused.extend(unused_columns(roles, names, kind))
        return [name for name, role in zip(names, roles, strict=True) if role]

    if max_rows is None:
        table = parquet_table(path, where, select_known)
    else:
        table = pa.Table.from_batches([next(parquet_batches(path, where, select_known, max_rows))])
    if b"judged" in (table.schema.metadata or {}):
        raise saved_result_error(where)
    canonical = canonical_table(table, kind, where)
    warn_unused(unused, where)
    return canonical


def _arrow(path: Path, kind: Kind, where: str) -> Table:
    return canonical_table(arrow_table(path, where), kind, where)


def _declares_scores(path: Path, where: str, format: Format) -> bool:
    """Whether a column of scores has a floating-point type, and the column names are not those of BEIR qrels."""
    if format not in ("parquet", "arrow"):
        return False
    schema = arrow_schema(path, where, format)
    has_float_scores = any(
        name == "score" and pa.types.is_floating(schema.field(position).type)
        for position, name in enumerate(canonical_names(schema.names, "run"))
    )
    return has_float_scores and not any(name.strip().lower().replace("_", "-") == "corpus-id" for name in schema.names)


def _check_scores_are_no_grades(table: Table, where: str) -> None:
    """Raise InputError if the scores look like grades and there are neither ranks nor run ids."""
    if "score" not in table.column_names or {"rank", "run_id"} & set(table.column_names):
        return
    columns = (table[name].slice(0, _SAMPLE_ROWS).to_pylist() for name in ("query_id", "doc_id", "score"))
    rows = [[query, doc, f"{score:g}"] for query, doc, score in zip(*columns, strict=True)]
    if reason := looks_like_qrels(rows):
        raise InputError(
            f"this looks like qrels, not like a run ({reason})",
            fix="swap the two files, or name the format (json, jsonl, parquet, arrow)",
            path=where,
            rule="looks-like-qrels",
        )


_READERS = {"json": json_rows.read_json, "jsonl": json_rows.read_jsonl, "parquet": _parquet, "arrow": _arrow}


def split_database_path(path: str | Path) -> tuple[Path, str] | None:
    """Split ``DATABASE/TABLE`` if it is a path of a table in a DuckDB file; else None."""
    path = Path(path)
    for file, name in ((path, ""), (path.parent, path.name)):
        if files.exists(file) and file.is_file() and _is_database(file):
            return file, name
    return None


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(12)[8:] == b"DUCK"
