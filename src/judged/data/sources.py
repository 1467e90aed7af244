"""Files as sources of rows: the one place that knows how each format is opened."""

from __future__ import annotations

from dataclasses import dataclass
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
from judged.data.engine_rows import EngineRows, EngineTable, TableInFile, rows_in_database
from judged.data.json_rows import saved_result
from judged.data.layout import Layout, canonical, looks_like_qrels
from judged.data.objects import named_table, rows_of_object
from judged.data.part_rows import PartRows, names_of, part_files, run_in_path
from judged.data.rows import Rows, TableRows
from judged.data.sniff import FORMATS, sniff
from judged.data.text_rows import TextRows, in_order
from judged.errors import NO_CONTENT, InputError

if TYPE_CHECKING:
    from judged.data.layout import Kind
    from judged.data.sniff import Format
    from judged.results.types import Table

_SUFFIXES = frozenset({
    ".gz", ".zst", ".bz2", ".xz", ".run", ".res", ".qrels", ".qrel", ".txt", ".trec", ".tsv", ".csv", ".json", ".jsonl",
    ".ndjson", ".parquet", ".arrow", ".feather", ".xml",
})  # fmt: skip
_SAMPLE = 200  # rows looked at
_LONG = 100_000  # rows of a run in Parquet: a longer one is not held, as there may be many such files


@dataclass(frozen=True)
class FileTable(TableRows):
    """Rows of a file that is read whole: JSON, Parquet, Arrow."""

    path: Path = Path()

    @property
    def paths(self) -> tuple[Path, ...]:
        """The file."""
        return (self.path,)


@dataclass(frozen=True)
class Source:
    """Rows and what they go by."""

    rows: Rows  # where the rows come from
    name: str = ""  # what results call them: the file's name without its endings

    def table(self, columns: tuple[str, ...]) -> tuple[Table, str | None]:
        """Read all rows into one table."""
        # Returns the rows, with those of the columns that the source has; and the hash of the file's bytes as they lie
        # on disk, None where there is no file.
        read = files.FileHash.of(self.rows.paths)
        batches = list(in_order(self.rows.parts(columns), lambda batch: batch))
        if not batches:
            raise InputError("there are no rows", fix="give at least one", path=self.rows.where, rule="empty-file")
        return pa.Table.from_batches(batches), read.hexdigest


def open_source(path: str | Path, kind: Kind, format: str | None = None) -> Source:
    """Open a file, or standard input for ``-``, as rows of qrels or of a run."""
    # Text is read in blocks when the rows are asked for; the other formats are read here.
    if is_address(path):
        return Source(rows_in_database(str(path), kind), source_name(str(path).partition(";")[0]))
    if in_file := table_in_file(path):
        engine = TableInFile(*in_file)
        if kind == "run":
            return Source(EngineRows(EngineTable(engine)), source_name(path))
        return Source(TableRows(named_table(engine.ask("SELECT * FROM judged_rows"), kind, engine.where), engine.where))
    name = "stdin" if str(path) == "-" else source_name(path)
    where = files.STDIN if str(path) == "-" else str(path)
    file = files.local(path)
    if files.exists(file) and file.is_dir():
        if kind == "run" and (parts := part_files(file)):
            return Source(_in_parts(file, parts, format), name)
        file = _judgments_in(file, kind)
        where = str(file)
    if format is not None and format not in FORMATS and (read := find("readers", format)):
        return Source(rows_of_object(read(file), kind), name)
    return Source(_rows_in(file, where, sniff(file, where, kind, format), kind, _LONG, told=format is not None), name)


def _rows_in(file: Path, where: str, found: Layout | Format, kind: Kind, longest: int, *, told: bool) -> Rows:
    """Open a file whose form is known, or told; a run in Parquet that is not longer is read, and held."""
    if isinstance(found, Layout):
        return TextRows(file, found, where)
    count, names = parquet_shape(file, where) if found == "parquet" and kind == "run" else (0, [])
    long = count > longest
    table = _parquet(file, kind, where, _SAMPLE) if long else _READERS[found](file, kind, where)
    if not table.num_rows:
        raise InputError("there are no rows", fix="give a file with at least one", path=where, rule="empty-file")
    if kind == "run" and not told and not _names_scores(file, where, found):
        _refuse_grades(table, where)
    return ParquetRows(file, where, canonical(names, kind), count) if long else FileTable(table, where, file)


def _in_parts(folder: Path, parts: list[Path], format: str | None) -> PartRows:
    """Open the files of a run that lies in several; the first says of what form they are."""
    layout: Layout | None = None
    opened: list[tuple[Rows, str | None]] = []
    for file in parts:
        where = str(file)
        try:
            found = layout or sniff(file, where, "run", format)
            rows = _rows_in(file, where, found, "run", 0, told=format is not None or bool(opened))
        except InputError as error:
            if error.rule != "empty-file":
                raise
            continue
        layout = found if isinstance(found, Layout) else None
        if opened and names_of(rows) != names_of(opened[0][0]):
            columns = [", ".join(sorted(names_of(of))) for of in (rows, opened[0][0])]
            problem = f"its columns are {columns[0]}, and those of {opened[0][0].where} are {columns[1]}"
            raise InputError(problem, fix="write all parts with the same columns", path=where)
        opened.append((rows, run_in_path(folder, file)))
    if not opened:
        raise InputError("there are no rows", fix="write the table again", path=str(folder), rule="empty-file")
    files, runs = zip(*opened, strict=True)
    return PartRows(files, runs, str(folder))


def is_address(path: str | Path) -> bool:
    """Whether this names a table on Spark, and no file."""
    return str(path).startswith(("sc://", "spark://"))


def files_of(path: str | Path) -> list[str]:
    """Give the files that a pattern or a folder means, each of them a run; a file, and what there is not, is itself.

    A folder that holds one run in parts is such a file.

    >>> files_of("runs/bm25.run")
    ['runs/bm25.run']
    """
    text = str(path)
    folder = files.exists(text) and Path(text).is_dir()
    if not folder and (text == "-" or files.exists(text) or not has_magic(text)):
        return [text]
    if folder and part_files(Path(text)):
        return [text]
    found = sorted(glob(str(Path(escape(text)) / "*") if folder else text, recursive=True))  # noqa: PTH207  any root
    named = [name for name in found if not Path(name).name.startswith(("_", "."))]
    named = [name for name in named if Path(name).is_file() or (Path(name).is_dir() and part_files(Path(name)))]
    if not named:
        problem = "there is no file in this folder" if folder else "no file fits this pattern"
        raise InputError(problem, fix="check the path", path=text, rule=NO_CONTENT)
    if len(named) > 1 and all(Path(name).name.startswith("part-") for name in named):
        problem = "these are the parts of one table, and each would be a run"
        raise InputError(problem, fix="name the folder that holds them", path=text)
    return named


def source_name(path: str | Path) -> str:
    """Give a file's name without the endings that say its format; this file is not UTF-8 are shown as escapes.

    >>> source_name("runs/bm25.v2.run.gz"), source_name("beir/scifact/")
    ('bm25.v2', 'scifact')
    """
    name = Path(path)
    while name.suffix.lower() in _SUFFIXES and name.stem:
        name = name.with_suffix("")
    return name.name.encode(errors="backslashreplace").decode()


def _judgments_in(folder: Path, kind: Kind) -> Path:
    """Find the qrels in a folder of the BEIR layout."""
    if kind == "qrels":
        if (test := folder / "qrels" / "test.tsv").is_file():
            return test
        found = [file for file in sorted((folder / "qrels").glob("*")) if file.is_file()]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(file.name for file in found[:8])
            raise InputError(
                f"several files in qrels/: {names}", fix="name one of them", path=str(folder), rule=NO_CONTENT
            )
    raise InputError("this is a folder", fix="name a file in it", path=str(folder), rule=NO_CONTENT)


def _parquet(path: Path, kind: Kind, where: str, first: int | None = None) -> Table:
    """Read a Parquet file, or some first rows of one."""

    def used(names: list[str]) -> list[str]:
        return [name for name, ours in zip(names, canonical(names, kind), strict=True) if ours]

    if first is None:
        table = parquet_table(path, where, used)
    else:
        table = pa.Table.from_batches([next(parquet_batches(path, where, used, first))])
    if b"judged" in (table.schema.metadata or {}):
        raise saved_result(where)
    return named_table(table, kind, where)


def _arrow(path: Path, kind: Kind, where: str) -> Table:
    return named_table(arrow_table(path, where), kind, where)


def _names_scores(path: Path, where: str, format: Format) -> bool:
    """Whether the schema says that a column holds scores: in floating point, and not by the names of BEIR's qrels."""
    if format not in ("parquet", "arrow"):
        return False
    schema = arrow_schema(path, where, format)
    floating = any(
        ours == "score" and pa.types.is_floating(schema.field(at).type)
        for at, ours in enumerate(canonical(schema.names, "run"))
    )
    return floating and not any(name.strip().lower().replace("_", "-") == "corpus-id" for name in schema.names)


def _refuse_grades(table: Table, where: str) -> None:
    """Refuse scores that are small whole numbers with many ties, beside neither rank nor run: they are grades."""
    if "score" not in table.column_names or {"rank", "run_id"} & set(table.column_names):
        return
    columns = (table[name].slice(0, _SAMPLE).to_pylist() for name in ("query_id", "doc_id", "score"))
    rows = [[query, doc, f"{score:g}"] for query, doc, score in zip(*columns, strict=True)]
    if reason := looks_like_qrels(rows):
        raise InputError(
            f"this looks like qrels, not like a run ({reason})",
            fix="swap the two files, or name the format (json, jsonl, parquet, arrow)",
            path=where,
            rule="looks-like-qrels",
        )


_READERS = {"json": json_rows.read_json, "jsonl": json_rows.read_jsonl, "parquet": _parquet, "arrow": _arrow}


def table_in_file(path: str | Path) -> tuple[Path, str] | None:
    """Give database and table where a path names them; None where it is any other."""
    path = Path(path)
    for file, name in ((path, ""), (path.parent, path.name)):
        if files.exists(file) and file.is_file() and _is_database(file):
            return file, name
    return None


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(12)[8:] == b"DUCK"
