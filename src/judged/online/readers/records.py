"""Records of files: JSON lines, CSV, and Parquet as tables of the database."""

from __future__ import annotations

import csv
import re
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from judged.data import files
from judged.data.text_rows import is_utf8
from judged.errors import InputError
from judged.online.engine import identifier, literal
from judged.online.log import LogColumn
from judged.online.readers import raw
from judged.online.readers.files import LogFile, opened, unpacked_path
from judged.online.readers.mapping_file import MappingFile
from judged.online.readers.paths import Location, parse_object_sql, path_tree, shape_of_type, struct_fields
from judged.online.readers.raw import ReadFindings, unique_name
from judged.online.readers.sections import RecordTable

if TYPE_CHECKING:
    from judged.online.engine import Database
    from judged.results.types import Batch


LINE_LIMIT = 1 << 24  # bytes: 16 MiB, a thousand times the size of a record with a hundred results


def line_blocks(
    file: IO[bytes], too_long: Callable[[int], None], complete_length: Callable[[bytes], int] = len
) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of complete lines, with the number of the first line of each.

    Parameters
    ----------
    file
        File to read.
    too_long
        Called with the number of each line that has more than `LINE_LIMIT` bytes. The line is skipped.
    complete_length
        Function of a block that returns how many bytes to yield. The remaining bytes are yielded with the next block.
    """
    # `pending` holds the bytes after the last line end, `row` is the number of its first line.
    pending, row, is_first, skipping = b"", 1, True, False
    while chunk := file.read(files.BLOCK):
        if is_first:
            chunk, is_first = chunk.removeprefix(files.BOM), False
        if skipping:
            _, newline, chunk = chunk.partition(b"\n")
            skipping, row = not newline, row + len(newline)
        end = chunk.rfind(b"\n") + 1
        if not end:
            pending += chunk
            if len(pending) > LINE_LIMIT:
                row += pending.count(b"\n")  # complete lines that `complete_length` kept back
                too_long(row)
                pending, skipping = b"", True
            continue
        block = pending + chunk[:end]
        length = complete_length(block)
        block, pending = block[:length], block[length:] + chunk[end:]
        if block:
            yield row, block
            row += block.count(b"\n")
    if pending:
        yield row, pending


T = TypeVar("T")
_SURROGATE = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_ACTION = r'^\s*\{\s*"(index|create)"\s*:\s*\{[^{}]*\}\s*\}\s*$'
_ACTION_BYTES = (b'"index"', b'"create"')
_ACTION_WORDS = (b"index", b"create")  # a search for these is several times faster than with quotation marks
_BLANK = ord(" ")  # a line whose first byte is greater is not blank


@dataclass
class LineReader:
    """Reader of the lines of several files, in one pass.

    Parameters
    ----------
    log_files
        The files.
    numbers
        Number of each file in the log.
    findings
        Findings to which unusable lines are added.
    encoding
        Text encoding.
    progress
        Called with a description and the fraction of the files that were read.
    """

    log_files: Sequence[LogFile]
    numbers: Sequence[int]
    findings: ReadFindings
    encoding: str = "utf-8"
    progress: Callable[[str, float | None], None] | None = None

    def batches(self) -> Iterator[Batch]:
        """Yield batches of ``file``, ``row``, ``line`` and ``lead``: the bulk action in the previous line, or null.

        Raises
        ------
        InputError
            If a file cannot be read to its end.
        """
        for index, (log_file, number) in enumerate(zip(self.log_files, self.numbers, strict=True)):
            with opened(log_file) as file:
                for first, block in self._blocks(file, log_file):
                    if batch := self._batch(block, first, number, log_file):
                        yield batch
                    if self.progress:
                        self.progress(f"reading {log_file.name}", index / len(self.log_files))

    def _blocks(self, file: IO[bytes], log_file: LogFile) -> Iterator[tuple[int, bytes]]:
        too_long = partial(self.findings.add_line, log_file.name, "too-long")
        for row, block in line_blocks(file, too_long, _complete_length):
            yield row, block if block.endswith(b"\n") else block + b"\n"

    def _batch(self, block: bytes, first_row: int, number: int, log_file: LogFile) -> Batch | None:
        import numpy as np
        import pyarrow as pa

        from judged.data.compute import pc

        if self.encoding != "utf-8":
            # DuckDB and Arrow require UTF-8.
            block = block.decode(self.encoding, errors="replace").encode()
        elif not is_utf8(block):
            block = self._replace_invalid(block, first_row, log_file)
        if b"\\" in block and (b"\\ud" in block or b"\\uD" in block):
            block = _SURROGATE.sub(_replace_unpaired, block)
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == 10).astype(np.int64)
        offsets = np.concatenate([np.zeros(1, np.int64), ends + 1])
        size = len(ends)
        # Arrow reads the block in place: a line is a slice of it, and is not copied.
        lines: Any = pa.Array.from_buffers(pa.large_string(), size, [None, pa.py_buffer(offsets), pa.py_buffer(block)])
        is_record: Any = np.frombuffer(block, np.uint8)[offsets[:-1]] > _BLANK
        if not is_record.all():
            is_record = pc.match_substring_regex(lines, r"\S").to_numpy(zero_copy_only=False)
        lead: Any = pa.nulls(size, pa.large_string())
        if any(name in block for name in _ACTION_WORDS) and any(name in block for name in _ACTION_BYTES):
            is_action = pc.match_substring_regex(lines, _ACTION).to_numpy(zero_copy_only=False)
            follows_action = np.concatenate([np.zeros(1, bool), is_action[:-1]])
            previous_lines = pa.concat_arrays([pa.nulls(1, pa.large_string()), lines.slice(0, size - 1)])
            lead = pc.if_else(pa.array(follows_action), previous_lines, lead)
            is_record = is_record & ~is_action
        rows = np.arange(first_row, first_row + size, dtype=np.int64)
        table = pa.record_batch(
            {"file": pa.array(np.full(size, number, np.int32)), "row": pa.array(rows), "line": lines, "lead": lead}
        )
        table = table if is_record.all() else table.filter(pa.array(is_record))
        return table if table.num_rows else None

    def _replace_invalid(self, block: bytes, first_row: int, log_file: LogFile) -> bytes:
        """Replace invalid UTF-8 by U+FFFD, and add a finding for each line that had some."""
        lines = block.split(b"\n")
        for i, line in enumerate(lines):
            if not is_utf8(line):
                self.findings.add_line(log_file.name, "not-utf8", first_row + i)
                lines[i] = line.decode("utf-8", errors="replace").encode()
        return b"\n".join(lines)

    def use_as_table(self, engine: Database, function: Callable[[str], T]) -> T:
        """Call a function with the name of a table of the lines. The table can be read only once.

        Raises
        ------
        InputError
            If a file cannot be read to its end.
        """
        import pyarrow as pa

        errors: list[InputError] = []

        def batches() -> Iterator[Batch]:
            try:
                yield from self.batches()
            except InputError as error:  # else the database would wrap it in its own error
                errors.append(error)

        text, name = pa.large_string(), unique_name("lines")
        columns = pa.schema([("file", pa.int32()), ("row", pa.int64()), ("line", text), ("lead", text)])
        engine.con.register(name, pa.RecordBatchReader.from_batches(columns, batches()))
        try:
            result = function(name)
        finally:
            engine.con.unregister(name)
        if errors:
            raise errors[0]
        return result


def _complete_length(block: bytes) -> int:
    # A bulk action applies to the next line, so both must be in the same block.
    start = block.rfind(b"\n", 0, len(block) - 1) + 1
    last_line = block[start : start + 200]
    return start if any(name in last_line for name in _ACTION_BYTES) else len(block)


def _replace_unpaired(match: re.Match[bytes]) -> bytes:
    # Pairs and escaped backslashes also match, and stay. A single surrogate is 6 bytes, and makes the JSON invalid.
    escape = match[0]
    return escape if len(escape) != 6 else rb"\ufffd"


def json_records(table: str, paths: Iterable[str], numbers: Sequence[int], *, has_source: bool) -> RecordTable:
    """Return the records of a table of lines, with their search index and id if there are any.

    Parameters
    ----------
    table
        Table of lines.
    paths
        All paths that are needed.
    numbers
        Numbers of the files.
    has_source
        Whether records may be in a member ``_source``.
    """
    # Most lines are the record. In others the name of the index precedes it.
    json = "CASE WHEN prefix(line, '{') THEN line ELSE line[strpos(line, '{'):] END"
    before = "trim(left(line, strpos(line, '{') - 1), ' ' || chr(9))"
    prefix = f"CASE WHEN prefix(line, '{{') THEN '' WHEN strpos(line, '{{') > 0 THEN {before} ELSE '-' END"
    table = f"(SELECT file, row, lead, line, {json} AS json, {prefix} AS prefix FROM {table})"
    record, index = "json", 'regexp_extract(lead, \'"_index"\\s*:\\s*"([^"]*)"\', 1)'
    record_id = 'nullif(regexp_extract(lead, \'"_id"\\s*:\\s*"([^"]*)"\', 1), \'\')'
    if has_source:
        if_source = "CASE WHEN contains(json, '\"_source\"') AND json_valid(json) THEN"
        record = f"coalesce({if_source} json_extract(json, '$._source')::VARCHAR END, json)"
        index = f"coalesce({if_source} json_extract_string(json, '$._index') END, {index}, '')"
        record_id = f"coalesce({if_source} json_extract_string(json, '$._id') END, {record_id})"
    shape = struct_fields(path_tree(path for path in paths if not path.startswith(("@", "#")))) or {"a": "varchar"}
    table = (
        f"(SELECT file, row, line, lower(coalesce(nullif(prefix, ''), {index}, '')) AS hint, {record_id} AS name, "
        f"{record} AS record, CASE WHEN prefix = '' THEN true ELSE regexp_full_match(prefix, '[A-Za-z0-9_.:-]*') END "
        f"AS prefix_ok FROM {table})"
    )
    table = f"(SELECT *, CASE WHEN prefix_ok THEN {parse_object_sql('record', shape)} END AS r FROM {table})"
    # A record that was parsed is valid. Only other lines are validated again, to tell broken JSON from no record.
    valid = "CASE WHEN r IS NOT NULL THEN true ELSE (prefix_ok AND json_valid(record)) OR json_valid(line) END"
    table = f"(SELECT file, row, hint, name, r, record, {valid} AS ok, hash(record) >> 1 AS record_hash FROM {table})"
    problem = "CASE WHEN NOT ok THEN 'broken-json' WHEN r IS NULL THEN 'no-record' END"
    columns = {name: Location(f"r.{identifier(name)}", inner, is_parsed=True) for name, inner in shape.items()}
    # Members that no struct field can have are extracted from the record itself.
    columns |= {"#record": Location("record", "varchar", is_parsed=True), "#id": Location("name", "varchar")}
    return RecordTable(table, columns, "file", "row", tuple(numbers), "hint", problem, "record_hash", is_json=True)


_GLOB = frozenset("*?[")


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file: its path, uncompressed, its number in the log, and its columns."""

    path: Path
    number: int
    columns: dict[str, Any]


def parquet_records(log_files: Sequence[tuple[int, LogFile]], engine: Database) -> list[RecordTable]:
    """Return the tables of Parquet files. Files with the same columns are one table.

    Raises
    ------
    InputError
        If a file is damaged.
    """
    groups: dict[str, list[ParquetFile]] = {}
    for number, log_file in log_files:
        file = _open_parquet(log_file, number, engine)
        groups.setdefault(str([(name, str(kind)) for name, kind in file.columns.items()]), []).append(file)
    return [_merge_parquet(group) for group in groups.values()]


def _open_parquet(log_file: LogFile, number: int, engine: Database) -> ParquetFile:
    import duckdb

    path = unpacked_path(log_file, engine)
    if _GLOB & set(str(path)):  # DuckDB would read it as a pattern of file names
        link = engine.folder / f"named-{sum(1 for _ in engine.folder.glob('named-*'))}"
        try:
            link.symlink_to(path.resolve())
        except OSError:
            shutil.copyfile(path, link)
        path = link
    try:
        table = engine.con.sql(f"SELECT * FROM {_scan([path])}")
        columns = dict(zip(table.columns, table.types, strict=True))
    except duckdb.Error as error:
        reason = str(error).split("\n", 1)[0]
        problem = f"the Parquet data is damaged or truncated ({reason})"
        raise InputError(problem, fix="export or download the file again", path=log_file.name) from None
    return ParquetFile(path, number, columns)


def _scan(paths: Sequence[Path], options: str = "") -> str:
    names = ", ".join(literal(str(path)) for path in paths)
    return f"read_parquet([{names}], hive_partitioning = false, binary_as_string = true{options})"


def _merge_parquet(group: Sequence[ParquetFile]) -> RecordTable:
    columns = {name: Location(identifier(name), shape_of_type(kind)) for name, kind in group[0].columns.items()}
    names = {name.lower() for name in columns}
    options, file, row = "", str(group[0].number), "row_number() OVER ()"
    # DuckDB adds these columns only on request, and refuses to if the file has a column of that name.
    if "file_row_number" not in names:
        options, row = ", file_row_number = true", "file_row_number + 1"
    if len(group) > 1 and "filename" not in names:
        options += ", filename = true"
        paths = ", ".join(literal(str(parquet.path)) for parquet in group)
        numbers = ", ".join(str(parquet.number) for parquet in group)
        file = f"([{numbers}])[list_position([{paths}], filename)]"
    table = _scan([parquet.path for parquet in group], options)
    return RecordTable(table, columns, file, row, tuple(parquet.number for parquet in group))


def csv_records(
    number: int, log_file: LogFile, mapping: MappingFile, engine: Database, findings: ReadFindings
) -> RecordTable:
    """Read a CSV file into the database, all cells as text.

    Raises
    ------
    InputError
        If columns have no names, or two have the same name.
    """
    report = partial(findings.add_line, log_file.name)
    with opened(log_file) as file:
        lines = _text_lines(file, mapping.encoding, report)
        first = next(lines, "")
        is_tsv = re.search(r"\.tsv\b", log_file.name, re.IGNORECASE) or mapping.format == "tsv"
        delimiter = mapping.separator or ("\t" if is_tsv else max(",;\t", key=first.count) if mapping.header else ",")
        # Quoting 0 and 3 are csv.QUOTE_MINIMAL and csv.QUOTE_NONE.
        dialect = {"delimiter": delimiter, "quotechar": mapping.quote or None, "quoting": 0 if mapping.quote else 3}
        rows = CsvRows(chain([first], lines), dialect, report)
        header = _header(rows, mapping, log_file)
        names = [f"c{i}" for i in range(len(header))]
        table_columns = [LogColumn("row", "int64", False, ""), *(LogColumn(name, "string", True, "") for name in names)]
        table = raw.TableWriter(engine, "csv", table_columns)
        for line, row in rows:
            if len(row) > len(names) or (len(row) < len(names) and not mapping.ragged):
                report("wrong-width", line)
            else:
                padding = [None] * (len(names) - len(row))
                table.add_values([line, *(cell or None for cell in row), *padding])
        table.finish()
    columns: dict[str, Location] = {}
    for name, column in zip(header, names, strict=True):
        if name:
            columns.setdefault(name, Location(column, "varchar"))
    release = partial(raw.run_sql, engine, f"DROP TABLE {table.name}")
    return RecordTable(table.name, columns, str(number), "row", (number,), release=release)


def _header(rows: CsvRows, mapping: MappingFile, log_file: LogFile) -> Sequence[str]:
    if not mapping.header and not mapping.names:
        raise InputError("the columns have no names", fix="write columns = [...] under [file]", path=mapping.path)
    header: Sequence[str] = []
    if mapping.header:
        _, cells = next(iter(rows), (1, list[str]()))
        header = [name.strip() for name in cells]
    header = mapping.names or header
    if not mapping.ragged and len(set(header)) < len(header):
        raise InputError(
            "the header has a duplicate column name", fix="rename one of the columns", path=log_file.name, line=1
        )
    return header


def _text_lines(file: Any, encoding: str, report: Callable[[str, int], None]) -> Iterator[str]:
    """Yield lines as text, without zero bytes and carriage returns in cells, which the CSV reader rejects."""
    number = 0
    for row, block in line_blocks(file, partial(report, "too-long")):
        yield from ["\n"] * (row - number - 1)  # in place of lines that are too long
        for number, line in enumerate(BytesIO(block), row):
            try:
                text = line.decode(encoding)
            except UnicodeDecodeError:
                report("not-utf8", number)
                text = line.decode(encoding, errors="replace")
            if "\r" in text:
                text = text.replace("\r\n", "\n").replace("\r", " ")
            yield text.replace("\0", "\ufffd")


@dataclass
class CsvRows:
    """Rows of CSV text, with the line number at which each begins. Blank rows are skipped.

    An unclosed quotation mark would read the rest of the file into one cell. Here only its line is lost: the lines
    after it are read again.

    Parameters
    ----------
    lines, dialect
        Lines of the text, and options of `csv`.
    report
        Called with the rule and number of a line that is lost.
    lines_read
        Number of lines read.
    pending
        Lines of the current row.
    reread
        Lines to read again.
    """

    lines: Iterator[str]
    dialect: Mapping[str, Any]
    report: Callable[[str, int], None]
    lines_read: int = 0
    pending: list[str] = field(default_factory=list[str])
    reread: deque[str] = field(default_factory=deque[str])

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        reader = csv.reader(self._next_lines(), **self.dialect, strict=True)
        while True:
            try:
                row = next(reader, None)
            except csv.Error as error:
                row = self._read_leniently(at_end="end of data" in str(error))
                reader = csv.reader(self._next_lines(), **self.dialect, strict=True)
            if row is None:
                return
            line = self._first_line
            self.pending.clear()
            if any(cell.strip() for cell in row):
                yield line, row

    @property
    def _first_line(self) -> int:
        return self.lines_read - len(self.reread) - len(self.pending) + 1

    def _next_lines(self) -> Iterator[str]:
        while True:
            if self.reread:
                line = self.reread.popleft()
            elif line := next(self.lines, ""):
                self.lines_read += 1
            else:
                return
            self.pending.append(line)
            yield line

    def _read_leniently(self, *, at_end: bool) -> list[str]:
        """Parse a line with quotation marks in a cell. Return an empty row if a quotation mark is unclosed."""
        if len(self.pending) > 1 or at_end:
            self._report("open-quote")
            self.reread.extendleft(reversed(self.pending[1:]))
            return []
        try:
            return next(csv.reader(self.pending, **self.dialect), [])
        except csv.Error:  # a cell of more than 131,072 characters, the limit of csv
            self._report("too-long")
            return []

    def _report(self, rule: str) -> None:
        self.report(rule, self._first_line)
