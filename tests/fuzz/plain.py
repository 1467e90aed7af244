"""The rows of a text in TREC's form, by a few lines that know nothing of judged."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    Row = tuple[str, str, float]

_COLUMNS = {  # where topic, document and number stand, and the numbers of fields with which they may stand there
    "qrels": (((0, 2, 3), {4}), ((0, 1, 2), {3, 5})),
    "run": (((0, 2, 4), {5, 6}), ((0, 1, 3), {4, 5}), ((0, 1, 2), {3})),
}


def rows(data: bytes, kind: str) -> Iterator[list[Row]]:
    """Give the rows as each layout reads them; a layout that cannot read some line gives nothing."""
    text = data.removeprefix(b"\xef\xbb\xbf")
    lines = [
        line.split() for line in re.split(rb"\r\n|\n|\r", text) if line.strip() and not line.strip().startswith(b"#")
    ]
    for (topic, doc, number), counts in _COLUMNS[kind]:
        for sign in (1, -1):  # ranks stand for scores where there are none
            try:
                made = [(line[topic].decode(), line[doc].decode(), sign * float(line[number])) for line in lines]
            except (ValueError, IndexError):
                continue
            if max(counts) >= 6 or all(len(line) in counts for line in lines):
                yield made
