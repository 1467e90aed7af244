"""Files of lines as records: whole lines by the block, and JSON taken apart in the database."""

from __future__ import annotations

import csv
import re
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from judged.data import files
from judged.data.text_rows import is_utf8
from judged.errors import InputError
from judged.online.engine import identifier, literal
from judged.online.log import Column
from judged.online.readers import raw
from judged.online.readers.files import Part, opened, plain_path
from judged.online.readers.mapping_file import MappingFile
from judged.online.readers.paths import Place, object_of, shape_of, structure, tree
from judged.online.readers.raw import Troubles, new_name
from judged.online.readers.sections import Records

if TYPE_CHECKING:
    from judged.online.engine import Engine
    from judged.results.types import Batch


LINE_LIMIT = 1 << 24
"""A line of more bytes is refused: 16 MiB, a thousand times what a record with a hundred results takes."""


def line_blocks(
    file: IO[bytes], too_long: Callable[[int], None], whole: Callable[[bytes], int] = len
) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines, and the number of the first line of each.

    Parameters
    ----------
    file
        What is read.
    too_long
        Told the number of each line that is left out since it has more than `LINE_LIMIT` bytes.
    whole
        Gives how many bytes of a block may be yielded: what is behind them goes with the next lines.
    """
    rest, row, start, skipping = b"", 1, True, False
    while chunk := file.read(files.BLOCK):
        if start:
            chunk, start = chunk.removeprefix(files.BOM), False
        if skipping:
            _, newline, chunk = chunk.partition(b"\n")
            skipping, row = not newline, row + len(newline)
        cut = chunk.rfind(b"\n") + 1
        if not cut:
            rest += chunk
            if len(rest) > LINE_LIMIT:
                row += rest.count(b"\n")  # of lines that were held
                too_long(row)
                rest, skipping = b"", True
            continue
        block = rest + chunk[:cut]
        until = whole(block)
        block, rest = block[:until], block[until:] + chunk[cut:]
        if block:
            yield row, block
            row += block.count(b"\n")
    if rest:
        yield row, rest


T = TypeVar("T")
_SURROGATE = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_ACTION = r'^\s*\{\s*"(index|create)"\s*:\s*\{[^{}]*\}\s*\}\s*$'
_ACTION_BYTES = (b'"index"', b'"create"')
_ACTION_NAMES = (b"index", b"create")  # found several times faster: quotation marks stand everywhere
_BLANK = ord(" ")
"""A line whose first byte is above it is not blank: most lines need no closer look."""


@dataclass
class Lines:
    """The lines of several files, read once from front to back.

    Parameters
    ----------
    parts
        The files.
    numbers
        The number of each file in the log.
    troubles
        Where lines that cannot be used are counted.
    encoding
        Of the texts.
    progress
        Told the file, and the share of it that was read where that is known.
    """

    parts: Sequence[Part]
    numbers: Sequence[int]
    troubles: Troubles
    encoding: str = "utf-8"
    progress: Callable[[str, float | None], None] | None = None

    def batches(self) -> Iterator[Batch]:
        """Yield batches of ``file``, ``row``, ``line`` and ``lead``: the bulk action in the line before, or null.

        Raises
        ------
        InputError
            If a file cannot be read to its end.
        """
        for at, (part, number) in enumerate(zip(self.parts, self.numbers, strict=True)):
            with opened(part) as file:
                for first, block in self._blocks(file, part):
                    if batch := self._batch(block, first, number, part):
                        yield batch
                    if self.progress:
                        self.progress(f"reading {part.name}", at / len(self.parts))

    def _blocks(self, file: IO[bytes], part: Part) -> Iterator[tuple[int, bytes]]:
        """Yield whole lines and the number of the first; a bulk action goes with the line behind it."""
        for row, block in line_blocks(file, lambda row: self.troubles.tell(part.name, "too-long", row), _held):
            yield row, block if block.endswith(b"\n") else block + b"\n"

    def _batch(self, block: bytes, first: int, number: int, part: Part) -> Batch | None:
        import numpy as np
        import pyarrow as pa

        from judged.data.compute import pc

        if self.encoding != "utf-8":
            block = block.decode(self.encoding, errors="replace").encode()
        elif not is_utf8(block):
            block = self._replaced(block, first, part)
        if b"\\" in block and (b"\\ud" in block or b"\\uD" in block):
            block = _SURROGATE.sub(_paired, block)
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == 10).astype(np.int64)
        offsets = np.concatenate([np.zeros(1, np.int64), ends + 1])
        size = len(ends)
        lines: Any = pa.Array.from_buffers(pa.large_string(), size, [None, pa.py_buffer(offsets), pa.py_buffer(block)])
        kept: Any = np.frombuffer(block, np.uint8)[offsets[:-1]] > _BLANK
        if not kept.all():
            kept = pc.match_substring_regex(lines, r"\S").to_numpy(zero_copy_only=False)
        lead: Any = pa.nulls(size, pa.large_string())
        if any(name in block for name in _ACTION_NAMES) and any(name in block for name in _ACTION_BYTES):
            is_action = pc.match_substring_regex(lines, _ACTION).to_numpy(zero_copy_only=False)
            before = np.concatenate([np.zeros(1, bool), is_action[:-1]])
            shifted = pa.concat_arrays([pa.nulls(1, pa.large_string()), lines.slice(0, size - 1)])
            lead = pc.if_else(pa.array(before), shifted, lead)
            kept = kept & ~is_action
        rows = np.arange(first, first + size, dtype=np.int64)
        table = pa.record_batch(
            {
                "file": pa.array(np.full(size, number, np.int32)),
                "row": pa.array(rows),
                "line": lines,
                "lead": lead,
            }
        )
        table = table if kept.all() else table.filter(pa.array(kept))
        return table if table.num_rows else None

    def _replaced(self, block: bytes, first: int, part: Part) -> bytes:
        """Put U+FFFD in the place of bytes that are no UTF-8, and count the lines that had them."""
        lines = block.split(b"\n")
        for at, line in enumerate(lines):
            if not is_utf8(line):
                self.troubles.tell(part.name, "not-utf8", first + at)
                lines[at] = line.decode("utf-8", errors="replace").encode()
        return b"\n".join(lines)

    def into(self, engine: Engine, use: Callable[[str], T]) -> T:
        """Do something with the lines as a table of the database: it is read once.

        Raises
        ------
        InputError
            If a file cannot be read to its end.
        """
        import pyarrow as pa

        failed: list[InputError] = []

        def batches() -> Iterator[Batch]:
            try:
                yield from self.batches()
            except InputError as error:  # the database would wrap it in an error of its own
                failed.append(error)

        text, name = pa.large_string(), new_name("lines")
        columns = pa.schema([("file", pa.int32()), ("row", pa.int64()), ("line", text), ("lead", text)])
        engine.con.register(name, pa.RecordBatchReader.from_batches(columns, batches()))
        try:
            made = use(name)
        finally:
            engine.con.unregister(name)
        if failed:
            raise failed[0]
        return made


def _held(block: bytes) -> int:
    """Give where the last line begins if it is a bulk action, else the end of the block."""
    start = block.rfind(b"\n", 0, len(block) - 1) + 1
    last = block[start : start + 200]
    return start if any(name in last for name in _ACTION_BYTES) else len(block)


def _paired(match: re.Match[bytes]) -> bytes:
    """Keep pairs of surrogates and doubled backslashes; half a pair is no character, and no JSON reader takes it."""
    text = match[0]
    return text if len(text) != 6 else rb"\ufffd"


def records_of_lines(source: str, wanted: Iterable[str], numbers: Sequence[int], *, wrapped: bool) -> Records:
    """Take the record out of each line, with the name of its index and its id there, where it has them.

    Parameters
    ----------
    source
        The table of lines.
    wanted
        All paths that will be asked for.
    numbers
        Of the files.
    wrapped
        Records may stand in ``_source``.
    """
    text = "CASE WHEN prefix(line, '{') THEN line ELSE line[strpos(line, '{'):] END"  # most lines are the record
    before = "trim(left(line, strpos(line, '{') - 1), ' ' || chr(9))"
    front = f"CASE WHEN prefix(line, '{{') THEN '' WHEN strpos(line, '{{') > 0 THEN {before} ELSE '-' END"
    table = f"(SELECT file, row, lead, line, {text} AS whole, {front} AS front FROM {source})"
    record, index = "whole", 'regexp_extract(lead, \'"_index"\\s*:\\s*"([^"]*)"\', 1)'
    name = 'nullif(regexp_extract(lead, \'"_id"\\s*:\\s*"([^"]*)"\', 1), \'\')'
    if wrapped:
        whole_if = "CASE WHEN contains(whole, '\"_source\"') AND json_valid(whole) THEN"
        record = f"coalesce({whole_if} json_extract(whole, '$._source')::VARCHAR END, whole)"
        index = f"coalesce({whole_if} json_extract_string(whole, '$._index') END, {index}, '')"
        name = f"coalesce({whole_if} json_extract_string(whole, '$._id') END, {name})"
    shape = structure(tree(path for path in wanted if not path.startswith(("@", "#")))) or {"a": "varchar"}
    table = (
        f"(SELECT file, row, line, lower(coalesce(nullif(front, ''), {index}, '')) AS hint, {name} AS name, "
        f"{record} AS record, CASE WHEN front = '' THEN true ELSE regexp_full_match(front, '[A-Za-z0-9_.:-]*') END "
        f"AS front_ok FROM {table})"
    )
    table = f"(SELECT *, CASE WHEN front_ok THEN {object_of('record', shape)} END AS r FROM {table})"
    # What was taken apart is valid: nothing is looked through twice but what is broken.
    valid = "CASE WHEN r IS NOT NULL THEN true ELSE (front_ok AND json_valid(record)) OR json_valid(line) END"
    table = f"(SELECT file, row, hint, name, r, record, {valid} AS ok, hash(record) >> 1 AS whole_hash FROM {table})"
    lost = "CASE WHEN NOT ok THEN 'broken-json' WHEN r IS NULL THEN 'no-record' END"
    columns = {one: Place(f"r.{identifier(one)}", inner, parsed=True) for one, inner in shape.items()}
    columns |= {"#record": Place("record", "varchar", parsed=True), "#id": Place("name", "varchar")}
    return Records(table, columns, "file", "row", tuple(numbers), "hint", lost, "whole_hash", lines=True)


_GLOB = frozenset("*?[")


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file: its part, where it lies unpacked, its number in the log, and its columns."""

    part: Part
    path: Path
    number: int
    columns: dict[str, Any]


def parquet_records(parts: Sequence[tuple[int, Part]], engine: Engine) -> list[Records]:
    """Give the tables of Parquet files; files with the same columns are one table.

    Raises
    ------
    InputError
        If a file is damaged.
    """
    opened_files = [_parquet(part, number, engine) for number, part in parts]
    groups: dict[str, list[ParquetFile]] = {}
    for one in opened_files:
        groups.setdefault(str([(name, str(kind)) for name, kind in one.columns.items()]), []).append(one)
    return [_group(group) for group in groups.values()]


def _parquet(part: Part, number: int, engine: Engine) -> ParquetFile:
    import duckdb

    path = plain_path(part, engine)
    if _GLOB & set(str(path)):  # the database would take it for a pattern
        link = engine.folder / f"named-{sum(1 for _ in engine.folder.glob('named-*'))}"
        try:
            link.symlink_to(path.resolve())
        except OSError:
            shutil.copyfile(path, link)
        path = link
    try:
        found = engine.con.sql(f"SELECT * FROM {_scan([path])}")
        columns = dict(zip(found.columns, found.types, strict=True))
    except duckdb.Error as error:
        first = str(error).split("\n", 1)[0]
        problem = f"the Parquet data is damaged or cut short ({first})"
        raise InputError(problem, fix="make or fetch the file again", path=part.name) from None
    return ParquetFile(part, path, number, columns)


def _scan(paths: Sequence[Path], options: str = "") -> str:
    listed = ", ".join(literal(str(path)) for path in paths)
    return f"read_parquet([{listed}], hive_partitioning = false, binary_as_string = true{options})"


def _group(group: Sequence[ParquetFile]) -> Records:
    """Make one table of files; names and numbers of rows are worked out only where they are asked for."""
    columns = {name: Place(identifier(name), shape_of(kind)) for name, kind in group[0].columns.items()}
    taken = {name.lower() for name in columns}
    options, file, row = "", str(group[0].number), "row_number() OVER ()"
    if "file_row_number" not in taken:
        options, row = ", file_row_number = true", "file_row_number + 1"
    if len(group) > 1 and "filename" not in taken:
        options += ", filename = true"
        paths = ", ".join(literal(str(one.path)) for one in group)
        numbers = ", ".join(str(one.number) for one in group)
        file = f"([{numbers}])[list_position([{paths}], filename)]"
    return Records(_scan([one.path for one in group], options), columns, file, row, tuple(one.number for one in group))


def csv_records(number: int, part: Part, mapping: MappingFile, engine: Engine, troubles: Troubles) -> Records:
    """Bring a CSV file into the database, each cell as text.

    Raises
    ------
    InputError
        If its columns have no names, or one has the name of another.
    """
    told = partial(troubles.tell, part.name)
    with opened(part) as file:
        lines = _lines(file, mapping.encoding, told)
        first = next(lines, "")
        named = re.search(r"\.tsv\b", part.name, re.IGNORECASE) or mapping.format == "tsv"
        delimiter = mapping.separator or ("\t" if named else max(",;\t", key=first.count) if mapping.header else ",")
        dialect = {"delimiter": delimiter, "quotechar": mapping.quote or None, "quoting": 0 if mapping.quote else 3}
        rows = Rows(chain([first], lines), dialect, told)
        header = _header(rows, mapping, part)
        cells = [f"c{at}" for at in range(len(header))]
        columns = [Column("row", "int64", False, ""), *(Column(one, "string", True, "") for one in cells)]
        table = raw.Rows(engine, "csv", columns)
        for line, row in rows:
            if len(row) > len(cells) or (len(row) < len(cells) and not mapping.ragged):
                told("wrong-width", line)
            else:
                table.put([line, *(cell or None for cell in row), *[None] * (len(cells) - len(row))])
        table.done()
    places: dict[str, Place] = {}
    for name, column in zip(header, cells, strict=True):
        if name:
            places.setdefault(name, Place(column, "varchar"))
    done = partial(raw.run, engine, f"DROP TABLE {table.name}")
    return Records(table.name, places, str(number), "row", (number,), done=done)


def _header(rows: Rows, mapping: MappingFile, part: Part) -> Sequence[str]:
    if not mapping.header and not mapping.names:
        raise InputError("the columns have no names", fix="write columns = [...] under [file]", path=mapping.path)
    header: Sequence[str] = []
    if mapping.header:
        _, cells = next(iter(rows), (1, list[str]()))
        header = [name.strip() for name in cells]
    header = mapping.names or header
    if not mapping.ragged and len(set(header)) < len(header):
        raise InputError("the header names a column twice", fix="give each its own name", path=part.name, line=1)
    return header


def _lines(file: Any, encoding: str, told: Callable[[str, int], None]) -> Iterator[str]:
    """Yield lines as text, without what the CSV reader cannot stand: zero bytes, and carriage returns in a cell."""
    for number, line in enumerate(_raw_lines(file), 1):
        if len(line) > LINE_LIMIT:
            told("too-long", number)
            yield "\n"
            continue
        try:
            text = line.decode(encoding)
        except UnicodeDecodeError:
            told("not-utf8", number)
            text = line.decode(encoding, errors="replace")
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", " ")
        yield text.replace("\0", "\ufffd")


def _raw_lines(file: Any) -> Iterator[bytes]:
    """Yield lines; of one that is longer than is read, a piece that is too long itself."""
    rest, start = b"", True
    while chunk := file.read(files.BLOCK):
        if start:
            chunk, start = chunk.removeprefix(files.BOM), False
        first, *lines = chunk.split(b"\n")
        rest = rest + first if len(rest) <= LINE_LIMIT else rest
        for line in lines:
            yield rest + b"\n"
            rest = line
    if rest:
        yield rest


@dataclass
class Rows:
    """The rows of CSV, each with the line that it begins at; those of nothing but blanks are left out.

    A quotation mark that is never closed would take the rest of the file into its cell. Only its line is lost: those
    behind it are read anew.

    Parameters
    ----------
    lines, dialect
        The text, and how `csv` reads it.
    told
        Called with what was wrong with a line that was lost.
    taken
        So many lines were taken.
    """

    lines: Iterator[str]
    dialect: Mapping[str, Any]
    told: Callable[[str, int], None]
    taken: int = 0
    held: list[str] = field(default_factory=list[str])
    again: deque[str] = field(default_factory=deque[str])

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        """Read row by row."""
        reader = csv.reader(self._fed(), **self.dialect, strict=True)
        while True:
            try:
                row = next(reader, None)
            except csv.Error as error:
                row = self._sloppy(ended="end of data" in str(error))
                reader = csv.reader(self._fed(), **self.dialect, strict=True)
            if row is None:
                return
            line = self._line
            self.held.clear()
            if any(cell.strip() for cell in row):
                yield line, row

    @property
    def _line(self) -> int:
        return self.taken - len(self.again) - len(self.held) + 1

    def _fed(self) -> Iterator[str]:
        while True:
            if self.again:
                line = self.again.popleft()
            elif line := next(self.lines, ""):
                self.taken += 1
            else:
                return
            self.held.append(line)
            yield line

    def _sloppy(self, *, ended: bool) -> list[str]:
        """Read a line with quotation marks within a cell; where one took in more lines than its own, give nothing."""
        if len(self.held) > 1 or ended:
            self._lose("open-quote")
            self.again.extendleft(reversed(self.held[1:]))
            return []
        try:
            return next(csv.reader(self.held, **self.dialect), [])
        except csv.Error:  # a cell of more than 131,072 characters
            self._lose("too-long")
            return []

    def _lose(self, rule: str) -> None:
        self.told(rule, self._line)
