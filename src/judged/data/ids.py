"""Identifiers: text, byte for byte. ``007`` stays ``007``; a Python integer 7 becomes ``7``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.results.types import Hashes, Ints, Strings

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: spreads close values apart
_FOLD = np.uint64(29)
_LOW_BYTES = np.array([(1 << (8 * n)) - 1 for n in range(9)], dtype=np.uint64)
_SLICE = 1 << 13
_SHOWN = 60  # characters of a value in a message
_ID_TYPES = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_integer,
    pa.types.is_null,  # a column without values: the rows that miss one are named
)


def id_text(value: Any, what: str, *, path: str = "", line: int | None = None) -> str:
    """Give one identifier as text; `path` and `line` are where it stands, for messages.

    >>> id_text(7, "query id"), id_text("007", "query id")
    ('7', '007')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        try:
            return str(int(value))
        except ValueError:  # Python writes no number of more than 4,300 digits
            raise InputError(f"the {what} is a number of too many digits", fix="write it as text") from None
    problem = f"the {what} {value!r:.80} is a {type(value).__name__}"
    raise InputError(problem, fix="give ids as text or whole numbers", path=path, line=line)


def shown(value: Any) -> str:
    """Write any value for a message: cut short, and without the digits that Python refuses to write.

    >>> shown("a" * 99)[-5:], shown(10**5000)
    ('aa...', 'a number of thousands of digits')
    """
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def id_array(ids: list[str], what: str) -> Strings:
    """Give an Arrow array of identifiers."""
    try:
        return pa.array(ids, pa.string())
    except UnicodeEncodeError as error:
        problem = f"the {what} {error.object!r} holds half of a character"
        raise InputError(problem, fix="decode the ids with the right encoding") from None


def id_column(column: Any, what: str) -> Any:
    """Give a column of identifiers as Arrow strings; whole numbers are written in decimal."""
    column = decoded(column)
    kind = column.type
    if not any(fits(kind) for fits in _ID_TYPES):
        raise InputError(
            f"the column {what} holds {kind}, and give ids as text or whole numbers",
            fix=f"cast {what} to text before the numbers lose their form",
        )
    if column.null_count:
        row = pc.index(pc.is_null(column), value=True).as_py()
        raise InputError(f"row {row} has no {what}", fix="remove the row, or fill in the id")
    return column if pa.types.is_string(kind) else column.cast(pa.string())


def decoded(column: Any) -> Any:
    """Give a column of categories (Categorical, Enum, dictionary) as the values that they stand for."""
    if not pa.types.is_dictionary(column.type):
        return column
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    kind = column.type.value_type
    kind = pa.string() if pa.types.is_string_view(kind) or pa.types.is_large_string(kind) else kind
    return pa.chunked_array([chunk.dictionary.cast(kind).take(chunk.indices) for chunk in chunks], kind)


def column_of(values: Any, name: str) -> Any:
    """Give Python values as an Arrow array; texts and whole numbers among each other are ids, and become text."""
    try:
        return pa.array(values)
    except UnicodeEncodeError as error:
        problem = f"{error.object!r} holds half of a character"
        raise InputError(problem, fix="decode the ids with the right encoding") from None
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    try:
        return id_array([id_text(value, name) for value in values], name)
    except InputError:
        kinds = ", ".join(sorted({type(value).__name__ for value in values})[:5])
        problem = f"the column {name} cannot be read: it holds {kinds}"
        raise InputError(problem, fix="write ids as text, numbers as float") from None


def hash_ids(ids: Strings) -> Hashes:
    """Hash each string of an Arrow array to 64 bits, in a few NumPy passes.

    >>> first, second, again = hash_ids(pa.array(["d1", "a much longer identifier", "d1"]))
    >>> bool(first == again), bool(first == second)
    (True, False)
    """
    # Equal strings have equal hashes. Different strings may share one, so whoever finds a match compares the strings
    # themselves: a hash is a filter here and never an identity.
    _, offset_buffer, data_buffer = ids.buffers()
    if len(ids) == 0 or data_buffer is None:
        return np.zeros(len(ids), dtype=np.uint64)
    offsets = np.frombuffer(offset_buffer, dtype=np.int32)[ids.offset : ids.offset + len(ids) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.zeros(last - first + 8, dtype=np.uint8)  # 8 zero bytes: the last word may be read whole
    data[: last - first] = np.frombuffer(data_buffer, dtype=np.uint8)[first:last]
    words = np.lib.stride_tricks.as_strided(
        data[:8].view(np.uint64), shape=(len(data) - 7,), strides=(1,), writeable=False
    )
    hashes = np.empty(len(ids), dtype=np.uint64)
    for start in range(0, len(ids), _SLICE):  # in slices whose columns stay in the cache
        places = offsets[start : start + _SLICE + 1].astype(np.int64) - first
        hashes[start : start + _SLICE] = _hash(words, places[:-1], np.diff(places))
    return hashes


def _hash(words: Hashes, starts: Ints, lengths: Ints) -> Hashes:
    hashes = lengths.astype(np.uint64)
    shortest, longest = int(lengths.min()), int(lengths.max())
    for at in range(0, longest, 8):  # a string takes part as long as it has bytes: its hash is its own alone
        part = slice(None) if at < shortest else np.flatnonzero(lengths > at)
        word = words[starts[part] + at]
        if at + 8 > shortest:
            word &= _LOW_BYTES[np.minimum(lengths[part] - at, 8)]
        word ^= hashes[part]
        word *= _MULTIPLIER
        word ^= word >> _FOLD
        hashes[part] = word
    return hashes
