"""UBI in Parquet and CSV: views over Parquet that read no more than is asked for, and CSV brought into the database."""

from __future__ import annotations

import csv
import shutil
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged.data import files
from judged.errors import InputError
from judged.online.engine import identifier, literal
from judged.online.reading.blocks import LINE_LIMIT
from judged.online.reading.loading import new_name, run
from judged.online.reading.opening import UBI_NAMES, Part, opened, plain_path
from judged.online.reading.records import Count
from judged.online.reading.shapes import Place, plain, shape_of
from judged.online.reading.ubi_sql import Holds, Records

if TYPE_CHECKING:
    from judged.online.engine import Engine

_ROWS = 20_000
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
        If a file is damaged, or has no column of UBI.
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
    holds = holds_of(list(columns), group[0].part.name)
    taken = {name.lower() for name in columns}
    options, file, row = "", str(group[0].number), "row_number() OVER ()"
    if "file_row_number" not in taken:
        options, row = ", file_row_number = true", "file_row_number + 1"
    if len(group) > 1 and "filename" not in taken:
        options += ", filename = true"
        paths = ", ".join(literal(str(one.path)) for one in group)
        numbers = ", ".join(str(one.number) for one in group)
        file = f"([{numbers}])[list_position([{paths}], filename)]"
    return Records(_scan([one.path for one in group], options), holds, columns, file, row)


def holds_of(names: Sequence[str], where: str) -> Holds:
    """Say what the rows of a table are, by its columns.

    Raises
    ------
    InputError
        If no column is UBI's.

    Examples
    --------
    >>> holds_of(["query_id", "user_query"], "q.csv"), holds_of(["action_name"], "e.csv")
    ('query', 'event')
    """
    known = {plain(name) for name in names}
    if "action_name" in known:
        return "mixed" if known & set(UBI_NAMES[2:4]) else "event"
    if known & set(UBI_NAMES):
        return "query"
    listed = ", ".join(name[:40] for name in names[:12])
    raise InputError(
        f"no column of UBI among {listed}",
        fix="name them action_name, user_query, query_id; or say what they are with a mapping file",
        path=where,
    )


@dataclass(frozen=True)
class Csv:
    """A CSV file in the database: its records, the table to be dropped, and lines that were not taken."""

    records: Records
    table: str
    rows: int
    wrong_width: Count
    too_long: Count
    open_quote: Count
    not_utf8: Count


def csv_records(number: int, part: Part, engine: Engine) -> Csv:
    """Bring a CSV file into the database, each cell as text.

    Raises
    ------
    InputError
        If it has no header that names columns of UBI.
    """
    import pyarrow as pa

    not_utf8, wrong_width, too_long, open_quote = Count(), Count(), Count(), Count()
    with opened(part) as file:
        lines = _lines(file, part, not_utf8, too_long)
        first = next(lines, "")
        delimiter = max(",;\t", key=first.count)
        header = next(csv.reader([first], delimiter=delimiter), [])
        names = {f"c{at}": name.strip() for at, name in enumerate(header)}
        holds = holds_of(list(names.values()), part.name)
        table = new_name("csv")
        cells = [identifier(one) for one in names]
        run(engine, f"CREATE TEMP TABLE {table} (row BIGINT, {', '.join(f'{one} VARCHAR' for one in cells)})")
        count, lot = 0, list[tuple[int, list[str]]]()

        def flush() -> None:
            columns: dict[str, Any] = {"row": pa.array([line for line, _ in lot], pa.int64())}
            for at, name in enumerate(names):
                texts = [row[at] or None for _, row in lot]
                columns[name] = pa.array(texts, pa.large_string())
            given = new_name("lot")
            engine.con.register(given, pa.table(columns))
            run(engine, f"INSERT INTO {table} SELECT * FROM {given}")
            engine.con.unregister(given)
            lot.clear()

        for line, row in Rows(lines, delimiter, part.name, too_long, open_quote, taken=1):
            count += 1
            if len(row) > len(header):
                wrong_width.add(f"{part.name}:{line}")
                continue
            lot.append((line, [*row, *[""] * (len(header) - len(row))]))
            if len(lot) >= _ROWS:
                flush()
        flush()
    places = {name: Place(column, "varchar", parsed=False) for column, name in reversed(names.items()) if name}
    records, count = Records(table, holds, places, str(number), "row"), count + too_long.rows + open_quote.rows
    return Csv(records, table, count, wrong_width, too_long, open_quote, not_utf8)


def _lines(file: Any, part: Part, not_utf8: Count, too_long: Count) -> Iterator[str]:
    """Yield lines as text, without what the CSV reader cannot stand: zero bytes, and carriage returns in a cell."""
    for number, line in enumerate(_raw_lines(file), 1):
        if len(line) > LINE_LIMIT:
            too_long.add(f"{part.name}:{number}")
            yield "\n"
            continue
        try:
            text = line.decode()
        except UnicodeDecodeError:
            not_utf8.add(f"{part.name}:{number}")
            text = line.decode(errors="replace")
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
    """The rows of CSV, each with the line that it ends at; those of nothing but blanks are left out.

    A quotation mark that is never closed would take the rest of the file into its cell. Only its line is lost: those
    behind it are read anew.

    Parameters
    ----------
    lines, delimiter
        The text.
    name
        What to call the file in places.
    too_long, open_quote
        Lines that were lost.
    taken
        So many lines stand before these.
    """

    lines: Iterator[str]
    delimiter: str
    name: str
    too_long: Count
    open_quote: Count
    taken: int = 0
    held: list[str] = field(default_factory=list[str])
    again: deque[str] = field(default_factory=deque[str])

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        """Read row by row."""
        reader = csv.reader(self._fed(), delimiter=self.delimiter, strict=True)
        while True:
            try:
                row = next(reader, None)
            except csv.Error as error:
                row = self._sloppy(ended="end of data" in str(error))
                reader = csv.reader(self._fed(), delimiter=self.delimiter, strict=True)
            if row is None:
                return
            self.held.clear()
            if any(cell.strip() for cell in row):
                yield self.taken - len(self.again), row

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
        at = self.taken - len(self.again) - len(self.held) + 1
        if len(self.held) > 1 or ended:
            self.open_quote.add(f"{self.name}:{at}")
            self.again.extendleft(reversed(self.held[1:]))
            return []
        try:
            return next(csv.reader(self.held, delimiter=self.delimiter), [])
        except csv.Error:  # a cell of more than 131,072 characters
            self.too_long.add(f"{self.name}:{at}")
            return []
