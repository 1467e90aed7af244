"""Rows of a text file whose lines are fields between delimiters: TREC files, CSV, TSV.

Each block goes through Arrow's CSV parser. A block that the parser refuses, or that holds what it
would misread (quotes, comments in odd places, bytes that are not UTF-8), is taken line by line in
Python: slower, and able to say which line is wrong. Both ways give the same rows; a property test
holds them together.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from judged.data import files
from judged.data.compute import pc
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from judged._types import Batch, Floats
    from judged.data.rows import Digest, Part

_NUMBERS = frozenset({"score", "relevance", "rank"})
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.ASCII | re.IGNORECASE)
_BLANKS = re.compile(rb"[ \t\v\f]+")
_IGNORED = re.compile(rb"^[ \t\v\f]*(#[^\n]*)?|[ \t\v\f]+$", re.MULTILINE)  # leading, trailing, comments
_HEADER = re.compile(rb"(?:[ \t\v\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))*[^\r\n]*(?:\r\n|\r|\n)?")
_SPACE, _TAB, _NEWLINE = 32, 9, 10
_LOOK = 1 << 17
_WHOLE_TO = 2.0**53  # beyond it not every whole number is a double


class Record(NamedTuple):
    """One line of a text file: its 1-based number and its fields by column name."""

    line: int
    fields: dict[str, str]


class LineError(ValueError):
    """What is wrong with one line, and the code that `judged check` gives it."""

    def __init__(self, code: str, problem: str) -> None:
        self.code = code
        super().__init__(problem)


@dataclass(frozen=True)
class Layout:
    r"""How the lines of a text file are made.

    Parameters
    ----------
    names
        Our column name for each field, ``""`` for a field that is not used.
    delimiter
        ``" "`` or ``"\t"`` stand for any white space unless ``strict``; a comma is always strict.
    strict
        A delimiter is exactly one character, so fields may be empty or hold blanks.
    header
        The first line that is neither blank nor a comment names the columns.
    optional
        How many fields at the end may be missing (a run's tag, say).
    fields
        How many fields the lines have, where that is more than there are names.

    Examples
    --------
    >>> print(Layout(("query_id", "", "doc_id", "relevance"), " "))
    query_id _ doc_id relevance
    """

    names: tuple[str, ...]
    delimiter: str
    strict: bool = False
    header: bool = False
    optional: int = 0
    fields: int = 0

    @property
    def width(self) -> int:
        """How many fields the parser is told to expect."""
        return max(self.fields, len(self.names))

    def __str__(self) -> str:
        between = {",": ", ", "\t": " <tab> " if self.strict else " "}.get(self.delimiter, " ")
        return between.join(name or "_" for name in self.names)


@dataclass(frozen=True)
class TextRows:
    """The rows of a text file, read block by block."""

    path: Path
    layout: Layout
    where: str
    block: int = field(default=files.BLOCK, repr=False)

    @property
    def has_scores(self) -> bool:
        """Whether a field is a score, or a rank that stands in for one."""
        return bool({"score", "rank"} & set(self.layout.names))

    @property
    def has_ranks(self) -> bool:
        """Whether a field is a rank."""
        return "rank" in self.layout.names

    def parts(self, columns: tuple[str, ...], digest: Digest | None = None) -> Iterator[Part]:
        """Give each block as a part; parsing happens when the part is called."""
        skip = self.layout.header
        for block in files.blocks(self.path, digest, self.block):
            body = without_header(block) if skip else block
            skip = False
            if body:
                yield lambda body=body: self._parse(body, columns)

    def _parse(self, block: bytes, columns: tuple[str, ...]) -> Batch:
        wanted = [name for name in columns if name in self.layout.names]
        if "score" in columns and "score" not in wanted and "rank" in self.layout.names:
            batch = self._parse(block, tuple(dict.fromkeys([*wanted, "rank"])))
            scores = pc.negate(pc.cast(batch.column("rank"), pa.float64()))
            return pa.record_batch({**_columns(batch), "score": scores}).select([*wanted, "score"])
        batch = self._fast(block, wanted)
        return self._slow(block, wanted) if batch is None else batch

    def _fast(self, block: bytes, wanted: list[str]) -> Batch | None:
        """Parse with Arrow, or give None where that could misread the block."""
        if not _is_utf8(block):
            return None
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if self.layout.strict:
            quoted = self.layout.delimiter == "," and b'"' in block
            return None if quoted else _arrow_parse(block, self.layout, wanted)
        batch = None
        if _single_spaced(block, self.layout.delimiter):
            batch = _arrow_parse(block, self.layout, wanted)
        if batch is None:
            tidy = _BLANKS.sub(b" ", _IGNORED.sub(b"", block))
            batch = _arrow_parse(tidy, replace(self.layout, delimiter=" "), wanted)
        return batch

    def _slow(self, block: bytes, wanted: list[str]) -> Batch:
        made: dict[str, list[Any]] = {name: [] for name in wanted}
        try:
            for raw in block.splitlines():
                if fields := split_line(raw, self.layout):
                    for name in wanted:
                        made[name].append(value(name, fields.get(name, "")))
        except ValueError:
            self._raise_at_line(wanted)
            raise
        return pa.record_batch({name: pa.array(column, _final_type(name)) for name, column in made.items()})

    def _raise_at_line(self, wanted: list[str]) -> None:
        """Read the file from its start and raise at its first bad line: only then are lines counted."""
        for record in self.lines():
            for name in wanted:
                try:
                    value(name, record.fields.get(name, ""))
                except ValueError as error:
                    raise self.error(str(error), f"write a number as the {name}", record.line) from None

    def numbered(self) -> Iterator[tuple[int, bytes]]:
        """Give every line but the header and empty ones, undecoded, with its 1-based number."""
        number, header = 0, self.layout.header
        for block in files.blocks(self.path):
            for raw in block.splitlines():
                number += 1
                if header and is_data(raw):
                    header = False
                elif raw and not header:
                    yield number, raw

    def lines(self) -> Iterator[Record]:
        """Give every row as text with its line number, raising at the first that cannot be split.

        Raises
        ------
        InputError
            With the file and line of a row that has too few fields, or bytes that are not UTF-8.
        """
        for number, raw in self.numbered():
            try:
                fields = split_line(raw, self.layout)
            except UnicodeDecodeError:
                raise self.error("bytes that are not UTF-8", "save the file as UTF-8", number) from None
            except ValueError as error:
                raise self.error(str(error), f"complete or remove the line: {self.layout}", number) from None
            if fields:
                yield Record(number, fields)

    def error(self, problem: str, fix: str, line: int) -> InputError:
        """Make the error for one line of this file."""
        return InputError(problem, fix=fix, path=self.where, line=line)

    def line(self, query_id: str, doc_id: str, nth: int) -> int | None:
        """Find the line of the nth row of this pair by reading the file again."""
        seen = 0
        for number, fields in self.lines():
            if fields["query_id"] == query_id and fields["doc_id"] == doc_id:
                seen += 1
                if seen == nth:
                    return number
        return None


def is_data(raw: bytes) -> bool:
    """Whether a line is neither blank nor a ``#`` comment."""
    text = raw.strip()
    return bool(text) and not text.startswith(b"#")


def without_header(block: bytes) -> bytes:
    """Leave out the first line that holds data, and the blank lines and comments above it."""
    match = _HEADER.match(block)
    return block[match.end() :] if match else block


def split_line(raw: bytes, layout: Layout) -> dict[str, str] | None:
    """Split one line into its fields by column name; None for a blank line or a ``#`` comment.

    Where fields are strictly delimited, a line that starts with ``#`` and is complete is a row.

    >>> split_line(b"q1 Q0  d7 1 0.5 tag", Layout(("query_id", "", "doc_id", "rank", "score", ""), " "))
    {'query_id': 'q1', 'doc_id': 'd7', 'rank': '1', 'score': '0.5'}

    Raises
    ------
    LineError
        If the line has too few fields, too many, or an empty id.
    UnicodeDecodeError
        If the line is not UTF-8.
    """
    text = raw.decode().strip(" \t\v\f\r\n")
    comment = text.startswith("#")
    if not text or (comment and not layout.strict):
        return None
    found = split_fields(raw, layout.delimiter, strict=layout.strict)
    needed = len(layout.names) - layout.optional
    if len(found) < needed:
        if comment:
            return None
        raise LineError("too-few-fields", f"{len(found)} fields where {needed} are needed: {text[:80]!r}")
    if layout.strict and any(found[layout.width :]):
        problem = f"{len(found)} fields where {layout.width} are expected: {text[:80]!r}"
        raise LineError("too-many-fields", problem)
    fields = {name: part.decode() for name, part in zip(layout.names, found, strict=False) if name}
    for name in ("query_id", "doc_id"):
        if not fields[name]:
            raise LineError("empty-id", f"the {name} is empty: {text[:80]!r}")
    return fields


def split_fields(raw: bytes, delimiter: str, *, strict: bool) -> list[bytes]:
    r"""Cut one line at its delimiters; a comma obeys double quotes, a tab does not.

    >>> split_fields(b"q1\t d 1", " ", strict=False), split_fields(b'1, "a, b" ,5', ",", strict=True)
    ([b'q1', b'd', b'1'], [b'1', b'a, b', b'5'])

    Raises
    ------
    LineError
        If a quoted field has no end.
    UnicodeDecodeError
        If a line with quotes is not UTF-8.
    """
    if not strict:
        return raw.split()
    if delimiter != ",":
        return [part.strip() for part in raw.rstrip(b"\r\n").split(delimiter.encode())]
    if b'"' not in raw:
        return [part.strip() for part in raw.split(b",")]
    if raw.count(b'"') % 2:
        text = raw.strip()[:80].decode(errors="replace")
        raise LineError("bad-quote", f"a double quote that is not closed: {text!r}")
    try:
        parts = next(csv.reader([raw.decode()], skipinitialspace=True))
    except csv.Error as error:
        raise LineError("bad-quote", f"broken CSV ({error})") from None
    return [part.encode().strip() for part in parts]


def value(name: str, text: str) -> str | float | int:
    """Read one field: ids stay text, numbers must be numbers (no hex, no NaN, no decimal comma).

    >>> value("score", "1e-05"), value("doc_id", "007"), value("rank", "3")
    (1e-05, '007', 3)

    Raises
    ------
    LineError
        If a number is expected and the text is none.
    """
    if name not in _NUMBERS:
        return text
    if not _NUMBER.fullmatch(text):
        code = "nan-score" if text.lower().lstrip("+-") == "nan" else f"bad-{name}"
        raise LineError(code, f"the {name} {text!r} is not a number")
    number = float(text)
    if name != "rank":
        return number
    if not (abs(number) <= _WHOLE_TO and number.is_integer()):
        raise LineError("bad-rank", f"the rank {text!r} is not a whole number")
    return int(number)


def _is_utf8(block: bytes) -> bool:
    if block.isascii():
        return True
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _single_spaced(block: bytes, delimiter: str) -> bool:
    """Whether the delimiter is the only blank, and no two stand together or at a line's start."""
    other = b"\t" if delimiter == " " else b" "
    if other in block or b"\v" in block or b"\f" in block:
        return False
    mark = _SPACE if delimiter == " " else _TAB
    data = np.frombuffer(block, dtype=np.uint8)
    for start in range(0, len(data), _LOOK):  # in slices that stay in the cache, each one byte into the next
        look = data[start : start + _LOOK + 1]
        blank = look == mark
        ends = look == _NEWLINE
        ends |= blank
        if (ends[:-1] & blank[1:]).any():
            return False
    return len(data) == 0 or data[0] != mark


def _arrow_parse(block: bytes, layout: Layout, wanted: list[str]) -> Batch | None:
    """Parse a block in bulk; None where its lines are not all alike, or hold what Arrow would misread."""
    if block.startswith(files.BOM):
        return None  # Arrow drops the mark; inside a file it belongs to the id
    names = [name or f"_{at}" for at, name in enumerate(layout.names)]
    names += [f"_{at}" for at in range(len(names), layout.width)]
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(block),
            arrow_csv.ReadOptions(column_names=names, use_threads=False, block_size=len(block) + 1),
            arrow_csv.ParseOptions(delimiter=layout.delimiter, quote_char=False),
            arrow_csv.ConvertOptions(
                include_columns=wanted,
                column_types={name: pa.float64() if name in _NUMBERS else pa.string() for name in wanted},
                null_values=[],
                strings_can_be_null=False,
                check_utf8=False,  # the whole block was looked at
            ),
            memory_pool=_pool(),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    batches = table.combine_chunks().to_batches()
    batch = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
    if layout.strict:
        trimmed = {
            name: pc.ascii_trim_whitespace(column) if pa.types.is_string(column.type) else column
            for name, column in _columns(batch).items()
        }
        batch = pa.record_batch(trimmed)
    return _with_whole_ranks(batch) if _plausible(batch, wanted) else None


@cache
def _pool() -> Any:
    """Choose jemalloc for what is parsed, where Arrow was built with it: a third less memory at the peak."""
    try:
        return pa.jemalloc_memory_pool()
    except NotImplementedError:
        return None


def _plausible(batch: Batch, wanted: list[str]) -> bool:
    """Whether a parsed block is free of what the line-by-line reader would see differently."""
    for name in wanted:
        column = batch.column(name)
        if name in _NUMBERS:
            numbers = column.to_numpy(zero_copy_only=False)
            if np.isnan(numbers).any() or (name == "rank" and not _whole(numbers)):
                return False
        elif name == "query_id":
            topics = pc.run_end_encode(column).values
            if pc.any(pc.or_(pc.equal(pc.binary_length(topics), 0), pc.starts_with(topics, "#"))).as_py():
                return False
        elif name == "doc_id" and pc.min(pc.binary_length(column)).as_py() == 0:
            return False
    return True


def _whole(numbers: Floats) -> bool:
    return bool(((numbers == np.rint(numbers)) & (np.abs(numbers) <= _WHOLE_TO)).all())


def _with_whole_ranks(batch: Batch) -> Batch:
    """Cast ranks to whole numbers; they are parsed as floats because Arrow reads ``0x1F`` as an integer."""
    columns = _columns(batch)
    if "rank" not in columns:
        return batch
    return pa.record_batch({**columns, "rank": columns["rank"].cast(pa.int64())})


def _columns(batch: Batch) -> dict[str, Any]:
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def _final_type(name: str) -> Any:
    if name == "rank":
        return pa.int64()
    return pa.float64() if name in _NUMBERS else pa.string()
