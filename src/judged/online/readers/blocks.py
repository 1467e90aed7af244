"""Files of lines by the block: whole lines, and no line that is too long to be a record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO

from judged.data import files

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
