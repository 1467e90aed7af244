"""Derive a reader and a damaged file from the number of a case, and read the file."""

from __future__ import annotations

import warnings
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from fuzz.mutations import changed, mutated, soup
from judged.errors import JudgedError

if TYPE_CHECKING:
    from pathlib import Path

    from fuzz.readers import Reader

LONGEST = 1500  # characters of the description of a failure


class Outcome(NamedTuple):
    """Outcome of a case: ``result``, ``refused``, or ``wrong`` with a `reason`."""

    kind: str
    reason: str = ""


def damaged(seed: int, readers: list[Reader]) -> tuple[Reader, str, bytes]:
    """Select a reader, and return it with the ending and the bytes of a damaged file."""
    random = Random(seed)
    reader = readers[seed % len(readers)]
    if reader.make is not None:
        return reader, reader.originals[0].ending, reader.make(random)
    original = random.choice(reader.originals)
    ending = original.ending if random.random() < 0.9 else ""
    if random.random() < 0.05:
        return reader, ending, soup(random)
    if reader.name == "scores" and random.random() < 0.5:
        return reader, ending, _other_facts(original.data, random)
    return reader, ending, mutated(original.data, random)


def run(reader: Reader, path: Path) -> Outcome:
    """Read a file. Errors must be of class `JudgedError`, and name the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader.read(path)
    except JudgedError as error:
        if str(path) not in str(error):
            return Outcome("wrong", f"the message does not name the file: {error}"[-LONGEST:])
        if len(str(error).splitlines()) > 1:
            return Outcome("wrong", f"a message of several lines: {str(error)!r}"[-LONGEST:])
        return Outcome("refused")
    except BaseException as error:  # noqa: BLE001 - the tests search for any other error
        return Outcome("wrong", f"{type(error).__name__}: {error}"[-LONGEST:])
    return Outcome("result")


def _other_facts(data: bytes, random: Random) -> bytes:
    """Change the metadata of a file of scores, and write a valid file, so that checksums and lengths agree."""
    import io
    import json

    from pyarrow import parquet

    table = parquet.read_table(pa.BufferReader(data))
    facts = json.loads(table.schema.metadata[b"judged"])
    for _ in range(random.choice((1, 1, 2, 5))):
        facts = changed(facts, random, depth_chance=0.95)
    share = random.random()
    if share < 0.3 and table.num_columns:
        i = random.randrange(table.num_columns)
        odd = random.choice(
            (pa.nulls(table.num_rows), pa.array([i] * table.num_rows), pa.array(["x"] * table.num_rows))
        )
        table = table.set_column(i, table.column_names[i], odd)
    elif share < 0.4:
        table = table.drop_columns([random.choice(table.column_names)])
    elif share < 0.5:
        table = pa.concat_tables([table, table.slice(0, 1)])
    text = json.dumps(facts) if random.random() < 0.95 else "[" * 100_000
    parquet.write_table(table.replace_schema_metadata({b"judged": text}), sink := io.BytesIO())
    return sink.getvalue()
