"""Lines of text as Arrow batches: each with its file and number, whatever bytes stand in it, in bounded memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from judged.data.bulk import is_utf8
from judged.online.reading.blocks import line_blocks
from judged.online.reading.loading import PLACES
from judged.online.reading.opening import Part, opened

if TYPE_CHECKING:
    from judged._types import Batch

_SURROGATE = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_ACTION = r'^\s*\{\s*"(index|create)"\s*:\s*\{[^{}]*\}\s*\}\s*$'
_ACTION_BYTES = (b'"index"', b'"create"')
_ACTION_NAMES = (b"index", b"create")  # found several times faster: quotation marks stand everywhere
_BLANK = ord(" ")
"""A line whose first byte is above it is not blank: most lines need no closer look."""


@dataclass
class Count:
    """How often something happened, and where first."""

    rows: int = 0
    places: list[str] = field(default_factory=list[str])

    def add(self, place: str, rows: int = 1) -> None:
        """Count rows of one place."""
        self.rows += rows
        if len(self.places) < PLACES:
            self.places.append(place)


@dataclass
class Lines:
    """The lines of several files, read once from front to back.

    Parameters
    ----------
    parts
        The files.
    numbers
        The number of each file in the log.
    progress
        Told the file, and the share of it that was read where that is known.

    Attributes
    ----------
    too_long, not_utf8
        Lines that were refused, and lines in which bytes were replaced; known when all were read.
    """

    parts: Sequence[Part]
    numbers: Sequence[int]
    progress: Callable[[str, float | None], None] | None = None
    too_long: Count = field(default_factory=Count)
    not_utf8: Count = field(default_factory=Count)

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
        for row, block in line_blocks(file, lambda row: self.too_long.add(f"{part.name}:{row}"), _held):
            yield row, block if block.endswith(b"\n") else block + b"\n"

    def _batch(self, block: bytes, first: int, number: int, part: Part) -> Batch | None:
        import numpy as np
        import pyarrow as pa

        from judged.data.compute import pc

        if not is_utf8(block):
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
                self.not_utf8.add(f"{part.name}:{first + at}")
                lines[at] = line.decode("utf-8", errors="replace").encode()
        return b"\n".join(lines)


def schema() -> Any:
    """Give the columns of the batches."""
    import pyarrow as pa

    text = pa.large_string()
    return pa.schema([("file", pa.int32()), ("row", pa.int64()), ("line", text), ("lead", text)])


def _held(block: bytes) -> int:
    """Give where the last line begins if it is a bulk action, else the end of the block."""
    start = block.rfind(b"\n", 0, len(block) - 1) + 1
    last = block[start : start + 200]
    return start if any(name in last for name in _ACTION_BYTES) else len(block)


def _paired(match: re.Match[bytes]) -> bytes:
    """Keep pairs of surrogates and doubled backslashes; half a pair is no character, and no JSON reader takes it."""
    text = match[0]
    return text if len(text) != 6 else rb"\ufffd"
