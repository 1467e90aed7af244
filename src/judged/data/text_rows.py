"""Rows of a text file whose lines are fields between delimiters: TREC files, CSV, TSV.

Each block goes through Arrow's CSV parser. A block that the parser refuses, or that holds what it
would misread (quotes, comments in odd places, this file is not UTF-8), is taken line by line in
Python: slower, and able to say which line is wrong. Both ways give the same rows; a property test
holds them together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from judged.data import files
from judged.data.bulk import arrow_parse, columns_of, is_utf8, single_spaced
from judged.data.compute import pc
from judged.data.layout import COMMENT_FIX, NUMBERS, Layout, LineError, is_data, split_line, value, without_header
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from judged._types import Batch
    from judged.data.rows import Digest, Part

_LONGEST = 2 << 20  # bytes of a line: ids, numbers, and perhaps a text beside them
_BLANKS = re.compile(rb"[ \t\v\f]+")
_ESCAPED = re.compile(rb"(?:^|[,\n])[ \t]*'[=+\-@'\t\r]")  # cells that do not stand for themselves
_NUMBER_SIGN = re.compile(rb"^[ \t\v\f]*#[^ \t\v\f\n]", re.MULTILINE)
_IGNORED = re.compile(  # leading, trailing, comments; a run of blanks is looked at once, from its first
    rb"^[ \t\v\f]*(#[^\n]*)?|[ \t\v\f](?<![ \t\v\f]{2})[ \t\v\f]*$", re.MULTILINE
)


class Record(NamedTuple):
    """One line of a text file: its 1-based number and its fields by column name."""

    line: int
    fields: dict[str, str]


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
        for block in files.blocks(self.path, digest, self.block, longest=_LONGEST, returns=True):
            body, ended = without_header(block) if skip else (block, True)
            skip = not ended
            if body:
                yield lambda body=body: self._parse(body, columns)

    def _parse(self, block: bytes, columns: tuple[str, ...]) -> Batch:
        wanted = [name for name in columns if name in self.layout.names]
        if "score" in columns and "score" not in wanted and "rank" in self.layout.names:
            batch = self._parse(block, tuple(dict.fromkeys([*wanted, "rank"])))
            scores = pc.negate(pc.cast(batch.column("rank"), pa.float64()))
            return pa.record_batch({**columns_of(batch), "score": scores}).select([*wanted, "score"])
        batch = self._fast(block, wanted)
        return self._slow(block, wanted) if batch is None else batch

    def _fast(self, block: bytes, wanted: list[str]) -> Batch | None:
        """Parse with Arrow, or give None where that could misread the block."""
        if not is_utf8(block):
            return None
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if self.layout.strict:
            quoted = self.layout.delimiter == "," and (b'"' in block or _ESCAPED.search(block))
            return None if quoted else arrow_parse(block, self.layout, wanted)
        batch = None
        if single_spaced(block, self.layout.delimiter):
            batch = arrow_parse(block, self.layout, wanted)
        if batch is None and not _NUMBER_SIGN.search(block):
            tidy = _BLANKS.sub(b" ", _IGNORED.sub(b"", block))
            batch = arrow_parse(tidy, replace(self.layout, delimiter=" "), wanted)
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
        for block in files.blocks(self.path, longest=_LONGEST, returns=True):
            for raw in block.splitlines():
                number += 1
                if header and is_data(raw):
                    header = False
                elif raw and not header:
                    yield number, raw

    def lines(self) -> Iterator[Record]:
        """Give every row as text with its line number, raising at the first that cannot be split."""
        for number, raw in self.numbered():
            try:
                fields = split_line(raw, self.layout)
            except UnicodeDecodeError:
                raise self.error("this file is not UTF-8", "save the file as UTF-8", number, "not-utf8") from None
            except ValueError as error:
                rule = error.rule if isinstance(error, LineError) else ""
                fix = COMMENT_FIX if rule == "comment-or-row" else f"complete or remove the line: {self.layout}"
                raise self.error(str(error), fix, number, rule) from None
            if fields:
                yield Record(number, fields)

    def error(self, problem: str, fix: str, line: int, rule: str = "") -> InputError:
        """Make the error for one line of this file."""
        return InputError(problem, fix=fix, path=self.where, line=line, rule=rule)

    def line(self, query_id: str, doc_id: str, nth: int) -> int | None:
        """Find the line of the nth row of this pair by reading the file again."""
        seen = 0
        for number, fields in self.lines():
            if fields["query_id"] == query_id and fields["doc_id"] == doc_id:
                seen += 1
                if seen == nth:
                    return number
        return None


def _final_type(name: str) -> Any:
    if name == "rank":
        return pa.int64()
    return pa.float64() if name in NUMBERS else pa.string()
