"""UBI in Parquet and CSV: views over Parquet that read no more than is asked for, and CSV brought into the database."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged.data import files
from judged.errors import InputError
from judged.online.reading.loading import identifier, literal, new_name, run
from judged.online.reading.opening import UBI_NAMES, Part, opened, plain_path
from judged.online.reading.records import LINE_LIMIT, Count
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
        found = engine.backend.con.sql(f"SELECT * FROM {_scan([path])}")  # noqa: S608 -- quoted
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
    not_utf8: Count


def csv_records(number: int, part: Part, engine: Engine) -> Csv:
    """Bring a CSV file into the database, each cell as text.

    Raises
    ------
    InputError
        If it has no header that names columns of UBI.
    """
    import pyarrow as pa

    not_utf8, wrong_width, too_long = Count(), Count(), Count()
    with opened(part) as file:
        lines = _lines(file, part, not_utf8, too_long)
        first = next(lines, "")
        delimiter = max(",;\t", key=first.count)
        header = next(_rows(iter([first]), delimiter, part, too_long), (0, []))[1]
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
            engine.backend.con.register(given, pa.table(columns))
            run(engine, f"INSERT INTO {table} SELECT * FROM {given}")  # noqa: S608 -- names made here
            engine.backend.con.unregister(given)
            lot.clear()

        for line, row in _rows(lines, delimiter, part, too_long):
            count += 1
            if len(row) > len(header):
                wrong_width.add(f"{part.name}:{line + 1}")
                continue
            lot.append((line + 1, [*row, *[""] * (len(header) - len(row))]))
            if len(lot) >= _ROWS:
                flush()
        flush()
    places = {name: Place(column, "varchar", parsed=False) for column, name in reversed(names.items()) if name}
    return Csv(
        Records(table, holds, places, str(number), "row"), table, count + too_long.rows, wrong_width, too_long, not_utf8
    )


def _lines(file: Any, part: Part, not_utf8: Count, too_long: Count) -> Iterator[str]:
    """Yield lines as text, without what the CSV reader cannot stand: zero bytes."""
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


def _rows(lines: Iterator[str], delimiter: str, part: Part, too_long: Count) -> Iterator[tuple[int, list[str]]]:
    """Yield rows and the line that each ends at, those of nothing but blanks left out."""
    reader = csv.reader(lines, delimiter=delimiter)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:  # a cell of more than 131,072 characters: mostly a quotation mark that is never closed
            too_long.add(f"{part.name}:{reader.line_num + 1}")
            continue
        if any(cell.strip() for cell in row):
            yield reader.line_num, row
