"""Tables as records: views over Parquet that read no more than is asked for, and CSV brought into the database."""

from __future__ import annotations

import csv
import re
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged.data import files
from judged.errors import InputError
from judged.online.engine import identifier, literal
from judged.online.readers import raw
from judged.online.readers.files import Part, opened, plain_path
from judged.online.readers.mapping_file import MappingFile
from judged.online.readers.paths import Place, shape_of
from judged.online.readers.raw import Troubles
from judged.online.readers.records import LINE_LIMIT
from judged.online.readers.sections import Records
from judged.online.tables import Column

if TYPE_CHECKING:
    from judged.online.engine import Engine

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
