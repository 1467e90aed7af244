"""Read delimited tables as people export them: any delimiter and encoding, titles above the header, printed borders."""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING

from judged.data import files
from judged.data.column_names import canonical_names
from judged.errors import InputError
from judged.results.decimals import counted, is_number
from judged.results.escaping import csv_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from judged.data.column_names import Kind

_MAX_BYTES = 256 << 20  # larger tables must have a plain layout, which is read in blocks
_MAX_TITLE_ROWS = 30  # rows above the header
_BLANKS = " \t\r\n\v\f"  # those that are removed in other layouts; other characters may be part of an id
_DELIMITERS = ("\t", ";", ",", "|", "::")
_BORDER = re.compile(r"[\s|+:=-]*|\(\d+ rows?\)")  # rows of printed tables of databases
_QUOTES = str.maketrans("“”„‟", '""""')
_PROTECTED = {ord(" "): "\ue000", ord("\t"): "\ue001"}  # characters that no text uses
_UNPROTECTED = {0xE000: " ", 0xE001: "\t"}
_NUMBERED = re.compile(r"(.*?)[ _.#-]*(\d+)")
_WORDS = re.compile("[\u3040-\u30ff\u4e00-\u9fff]+")  # Japanese and Chinese
_ODD = re.compile("[\x80-\x9f\uff61-\uff9f\ufffd]")  # control characters and half-width katakana


@dataclass(frozen=True)
class DelimitedTable:
    """Cells of a table as text, with the line of each row, and notes on how the file was read."""

    columns: tuple[str, ...]
    rows: list[list[str]]
    lines: list[int]
    notes: tuple[str, ...]

    def column(self, position: int) -> list[str]:
        """Return the cells of a column."""
        return [row[position] for row in self.rows]


def read_delimited(path: Path, where: str, kind: Kind) -> DelimitedTable | None:
    """Read a table with a header line; None if the file has no such table."""
    with files.opened(path) as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        return None
    text, encoding = decode(data)
    notes = [] if encoding == "UTF-8" else [f"read as {encoding}, not UTF-8"]
    if "“" in text and '"' not in text:
        text = text.translate(_QUOTES)
        notes.append("typographic quotes were read as quotes")
    tables = [table for delimiter in _DELIMITERS if (table := _split(text, delimiter))]
    # The best table names the most columns of this kind, and has the most rows.
    ranked = sorted(tables, key=lambda table: (-len({*canonical_names(table[0], kind)} - {""}), -len(table[1])))
    if not ranked:
        return None
    header, rows, line_of_header = ranked[0]
    width = len(header)
    for line, cells in rows:
        if len(cells) > width and any(cells[width:]):
            problem = f"{counted(len(cells), 'field')}, expected {width} ({', '.join(header)[:60]})"
            raise InputError(problem, fix="quote fields that contain the delimiter", path=where, line=line)
    if line_of_header > 1:
        notes.append(f"the header is on line {line_of_header}; the lines above it were not read")
    complete = [[*cells, *[""] * (width - len(cells))][:width] for _, cells in rows]
    return DelimitedTable(tuple(header), complete, [line for line, _ in rows], tuple(notes))


def decode(data: bytes) -> tuple[str, str]:
    """Decode text in UTF-8, UTF-16, Shift JIS, GB 18030, or Windows-1252; also return the name of the encoding.

    >>> decode("größe".encode("cp1252")), decode("評価".encode("cp932"))
    (('größe', 'Windows-1252'), ('評価', 'Shift JIS'))
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace"), "UTF-16"
    try:
        return data.decode("utf-8-sig"), "UTF-8"
    except UnicodeDecodeError:
        pass
    for codec, name in (("cp932", "Shift JIS"), ("gb18030", "GB 18030")):
        try:
            text = data.decode(codec)
        except UnicodeDecodeError:
            continue
        # In Western text, two bytes that look like such a character stand alone, and not in words.
        words = _WORDS.findall(text)
        if not _ODD.search(text) and sum(len(word) > 1 for word in words) * 2 > len(words):
            return text, name
    return data.decode("cp1252", errors="replace"), "Windows-1252"


def _split(text: str, delimiter: str) -> tuple[list[str], list[tuple[int, list[str]]], int] | None:
    """Split a text into a header and rows, with the line of each; None if it has no header with this delimiter."""
    try:
        lines = list(_cells(text, delimiter))
    except csv.Error:
        return None
    if delimiter == "|" and sum(line[:1] + line[-1:] == ["", ""] for _, line in lines) * 2 > len(lines):
        lines = [(line, cells[1:-1] if cells[:1] + cells[-1:] == ["", ""] else cells) for line, cells in lines]
    content = [(line, cells) for line, cells in lines if any(cells) and not all(map(_BORDER.fullmatch, cells))]
    widths = Counter(len(cells) for _, cells in content if len(cells) > 1)
    if not widths or delimiter not in text:
        return None
    width = max(widths, key=lambda size: (widths[size], -size))
    for index, (line, row) in enumerate(content[:_MAX_TITLE_ROWS]):
        cells = (_other_header(row[0], delimiter, width) if len(row) == 1 else []) or row
        if len(cells) == width and all(cells) and not any(map(is_number, cells)):
            return cells, content[index + 1 :], line
        if len(cells) == width and sum(map(bool, cells)) > 1 and any(map(is_number, cells)):
            return None  # data above any header
    return None


def _cells(text: str, delimiter: str) -> Iterable[tuple[int, list[str]]]:
    if len(delimiter) > 1:
        for line, row in enumerate(text.splitlines(), 1):
            yield line, [cell.strip(_BLANKS) for cell in row.split(delimiter)]
        return
    protected = _protect_quoted_blanks(text, delimiter) if '"' in text else text
    reader = csv.reader(StringIO(protected, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True)
    start = 1
    for row in reader:
        yield start, [csv_text(cell.strip(_BLANKS).translate(_UNPROTECTED)) for cell in row]
        start = reader.line_num + 1


def _protect_quoted_blanks(text: str, delimiter: str) -> str:
    """Replace blanks at both ends of quoted cells, as they are part of the cell, and those of other cells are not."""
    mark = re.escape(delimiter)
    begins = re.compile(rf'((?:^|{mark})[ ]*")([ \t]+)', re.MULTILINE)
    ends = re.compile(rf'([ \t]+)("[ ]*(?:{mark}|$))', re.MULTILINE)
    text = begins.sub(lambda match: match[1] + match[2].translate(_PROTECTED), text)
    return ends.sub(lambda match: match[1].translate(_PROTECTED) + match[2], text)


def _other_header(line: str, delimiter: str, width: int) -> list[str]:
    """Split a header whose delimiter is not that of the rows; empty if it has another number of columns."""
    headers = ([cell.strip() for cell in line.split(other)] for other in _DELIMITERS if other != delimiter)
    return next((cells for cells in headers if len(cells) == width), [])


def parse_numbers(texts: Sequence[str]) -> list[float] | None:
    """Parse numbers with decimal commas, thousands separators, or percent signs; None if some text is no number.

    >>> parse_numbers(["18,75", "9,4"]), parse_numbers(["1,204.50", "98"]), parse_numbers(["87.5%", "8%"])
    ([18.75, 9.4], [1204.5, 98.0], [87.5, 8.0])
    >>> parse_numbers(["1,204", "2,500"]) is None  # 1.204 or 1204?
    True
    """
    plain = [text.strip().removesuffix("%").replace("\u00a0", "").replace(" ", "") for text in texts]
    if all(map(is_number, plain)):
        return list(map(float, plain))
    for thousands, point in ((",", "."), (".", ",")):
        group = re.compile(rf"[+-]?\d{{1,3}}(\{thousands}\d{{3}})*(\{point}\d+)?|[+-]?\d+(\{point}\d+)?")
        is_certain = any(
            (thousands in text and point in text)
            or text.count(thousands) > 1
            or re.search(rf"\{point}(\d{{1,2}}|\d{{4,}})$", text)
            for text in plain
        )
        numbers = [text.replace(thousands, "").replace(point, ".") for text in plain]
        if is_certain and all(map(group.fullmatch, plain)) and all(map(is_number, numbers)):
            return list(map(float, numbers))
    return None


def numbered_columns(columns: Sequence[str]) -> list[int]:
    """Return the positions of columns with the results of a query, in rank order: ``Result 1``, ``Result 2``...

    >>> numbered_columns(["Query", "Result 1", "Result 2"]), numbered_columns(["query", "doc", "score"])
    ([1, 2], [])
    """
    groups: dict[str, list[tuple[int, int]]] = {}
    for position, column in enumerate(columns):
        if match := _NUMBERED.fullmatch(column.strip()):
            groups.setdefault(match[1].lower(), []).append((int(match[2]), position))
    ranked = max((sorted(group) for group in groups.values()), key=len, default=[])
    ranks = [rank for rank, _ in ranked]
    is_ranking = len(ranks) > 1 and ranks[0] in (0, 1) and ranks == list(range(ranks[0], ranks[0] + len(ranks)))
    return [position for _, position in ranked] if is_ranking else []
