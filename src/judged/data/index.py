"""Index of qrels for joins with runs: topics and documents as integer codes, one row per judged pair.

It is built once for each `Qrels` and used for all runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.data.compute import encode_column, pc
from judged.errors import InputError
from judged.results.types import cached_property

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Hashes, Ints, Strings, Table


_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio (Fibonacci hashing, Knuth, TAOCP 3, 6.4)
_FOLD = np.uint64(29)
_LOW_BYTES = np.array([(1 << (8 * n)) - 1 for n in range(9)], dtype=np.uint64)
_CHUNK_ROWS = 1 << 13
_MAX_VALUE_LENGTH = 60  # characters of a value in an error message
_ID_TYPES = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_integer,
    pa.types.is_null,  # a column without values, so that the error names its first row
)


def id_text(value: Any, name: str, *, path: str = "", line: int | None = None) -> str:
    """Convert an identifier to text; `name`, `path` and `line` are used in error messages.

    >>> id_text(7, "query id"), id_text("007", "query id")
    ('7', '007')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        try:
            return str(int(value))
        except ValueError:  # int() and str() are limited to 4,300 digits
            raise InputError(f"the {name} is a number with too many digits", fix="write the id as text") from None
    problem = f"the {name} {value!r:.80} is a {type(value).__name__}"
    raise InputError(problem, fix="use texts or integers as ids", path=path, line=line)


def format_value(value: Any) -> str:
    """Format a value for an error message, shortened to 60 characters.

    >>> format_value("a" * 99)[-5:], format_value(10**5000)
    ('aa...', 'a number with thousands of digits')
    """
    try:
        text = repr(value)
    except ValueError:
        return "a number with thousands of digits"
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[:_MAX_VALUE_LENGTH]}..."


def id_array(ids: list[str], name: str) -> Strings:
    """Convert identifiers to an Arrow array."""
    try:
        return pa.array(ids, pa.string())
    except UnicodeEncodeError as error:
        problem = f"the {name} {error.object!r} has an unpaired surrogate (invalid Unicode)"
        raise InputError(problem, fix="decode the ids with the right encoding") from None


def id_column(column: Any, name: str) -> Any:
    """Convert a column of identifiers to Arrow strings; integers are written in decimal."""
    column = decode_dictionary(column)
    kind = column.type
    if not any(is_type(kind) for is_type in _ID_TYPES):
        raise InputError(
            f"the column {name} must contain texts or integers, got the data type {kind}",
            fix=f"use texts or integers as ids: cast {name} to text before ids such as 007 are converted to numbers",
        )
    if column.null_count:
        row = pc.index(pc.is_null(column), value=True).as_py()
        raise InputError(f"row {row} has no {name}", fix="remove the row, or fill in the id")
    return column if pa.types.is_string(kind) else column.cast(pa.string())


def decode_dictionary(column: Any) -> Any:
    """Replace the codes of a dictionary column (Categorical, Enum) with their values."""
    if not pa.types.is_dictionary(column.type):
        return column
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    kind = column.type.value_type
    kind = pa.string() if pa.types.is_string_view(kind) or pa.types.is_large_string(kind) else kind
    return pa.chunked_array([chunk.dictionary.cast(kind).take(chunk.indices) for chunk in chunks], kind)


def array_of_values(values: Any, name: str) -> Any:
    """Convert Python values to an Arrow array; a mix of texts and integers is assumed to be ids and becomes text."""
    try:
        return pa.array(values)
    except UnicodeEncodeError as error:
        problem = f"{error.object!r} has an unpaired surrogate (invalid Unicode)"
        raise InputError(problem, fix="decode the ids with the right encoding") from None
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    try:
        return id_array([id_text(value, name) for value in values], name)
    except InputError:
        kinds = ", ".join(sorted({type(value).__name__ for value in values})[:5])
        problem = f"the column {name} has values of type {kinds}"
        raise InputError(problem, fix="write ids as text, numbers as float") from None


def normalize_ids(ids: Strings) -> Strings:
    """Remove accidental differences between ids: leading zeros of numbers, a final ``.0``, case, Unicode form.

    >>> normalize_ids(pa.array(["007", "Doc-1", "0", "CACM-0046", "v1.05", "12.0"])).to_pylist()
    ['7', 'doc-1', '0', 'cacm-46', 'v1.05', '12']
    """
    stripped = pc.replace_substring_regex(pc.utf8_lower(pc.utf8_normalize(ids, form="NFC")), r"^0+(.)", r"\1")
    whole = pc.replace_substring_regex(stripped, r"^([0-9]+)\.0+$", r"\1")
    return pc.replace_substring_regex(whole, r"([^0-9.])0+([0-9])", r"\1\2")


def hash_ids(ids: Strings) -> Hashes:
    """Hash each string of an Arrow array to 64 bits with vectorized NumPy operations.

    >>> first, second, first_again = hash_ids(pa.array(["d1", "a much longer identifier", "d1"]))
    >>> bool(first == first_again), bool(first == second)
    (True, False)
    """
    # Different strings may have the same hash, so that callers must compare the strings of a match.
    _, offset_buffer, data_buffer = ids.buffers()
    if len(ids) == 0 or data_buffer is None:
        return np.zeros(len(ids), dtype=np.uint64)
    offsets = np.frombuffer(offset_buffer, dtype=np.int32)[ids.offset : ids.offset + len(ids) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.zeros(last - first + 8, dtype=np.uint8)  # with padding, as strings are read in words of 8 bytes
    data[: last - first] = np.frombuffer(data_buffer, dtype=np.uint8)[first:last]
    words = np.lib.stride_tricks.as_strided(
        data[:8].view(np.uint64), shape=(len(data) - 7,), strides=(1,), writeable=False
    )
    hashes = np.empty(len(ids), dtype=np.uint64)
    for start in range(0, len(ids), _CHUNK_ROWS):  # chunks that fit into the CPU cache
        bounds = offsets[start : start + _CHUNK_ROWS + 1].astype(np.int64) - first
        hashes[start : start + _CHUNK_ROWS] = _hash(words, bounds[:-1], np.diff(bounds))
    return hashes


def _hash(words: Hashes, starts: Ints, lengths: Ints) -> Hashes:
    hashes = lengths.astype(np.uint64)
    shortest, longest = int(lengths.min()), int(lengths.max())
    for offset in range(0, longest, 8):  # shorter strings drop out, so that a hash does not depend on other strings
        remaining = slice(None) if offset < shortest else np.flatnonzero(lengths > offset)
        word = words[starts[remaining] + offset]
        if offset + 8 > shortest:
            word &= _LOW_BYTES[np.minimum(lengths[remaining] - offset, 8)]
        word ^= hashes[remaining]
        word *= _MULTIPLIER
        word ^= word >> _FOLD
        hashes[remaining] = word
    return hashes


@dataclass(frozen=True, eq=False)
class Aspects:
    """The A judgments grouped by the P judged pairs of `QrelsIndex`."""

    # Distinct iterations (subtopics, assessors, or `user subgroup`) in byte order; an aspect code is a position in this
    # tuple. A single empty name if the qrels have no column of iterations.
    names: tuple[str, ...]
    starts: Ints  # (P + 1,): first judgment of each pair
    # aspect, grade: (A,): aspect code and grade of each judgment; aspects ascend within a pair
    aspect: Ints
    grade: Floats

    @cached_property
    def user(self) -> Ints:
        """Code of the user of each name; in ``user subgroup`` the user is the text before the blank."""
        users = [name.partition(" ")[0] for name in self.names]
        codes = {name: code for code, name in enumerate(sorted(set(users)))}
        return np.array([codes[name] for name in users], dtype=np.int64)

    def of(self, pairs: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the judgments of some pairs: position in `pairs`, aspect code, and grade of each judgment."""
        counts = self.starts[pairs + 1] - self.starts[pairs]
        pair_position = np.repeat(np.arange(len(pairs)), counts)
        offset = np.arange(len(pair_position)) - np.repeat(np.cumsum(counts) - counts, counts)
        judgment = np.repeat(self.starts[pairs], counts) + offset
        return pair_position, self.aspect[judgment], self.grade[judgment]


def build_aspects(table: Table, index: QrelsIndex) -> Aspects:
    """Sort the judgments of a qrels table by pair and aspect."""
    pair = index.rows_of(encode_column(table["query_id"], index.topic_ids), table["doc_id"].combine_chunks())
    names: tuple[str, ...] = ("",)
    aspect = np.zeros(len(pair), dtype=np.int64)
    if "iteration" in table.column_names:
        column = table["iteration"]
        distinct = pc.unique(column)
        distinct = distinct.take(pc.sort_indices(distinct))
        names = tuple(distinct.to_pylist())
        aspect = encode_column(column, distinct)
    order = np.lexsort((aspect, pair))
    return Aspects(
        names=names,
        starts=np.searchsorted(pair[order], np.arange(len(index.topic) + 1)).astype(np.int64),
        aspect=aspect[order],
        grade=table["relevance"].to_numpy()[order],
    )


_PAIR_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SMALLEST_FILTER, _LARGEST_FILTER = 16, 24  # powers of two: 64 kB to 16 MB


@dataclass(frozen=True, eq=False)
class QrelsIndex:
    """Judged pairs of a `Qrels`, sorted by topic code and document code."""

    topics: tuple[str, ...]  # query ids in byte order; a topic code is a position in this tuple
    docs: Strings = field(repr=False)  # distinct document ids; a document code is a position in this array
    # topic, doc, grade: topic code, document code and highest grade of each judged pair
    topic: Ints
    doc: Ints
    grade: Floats
    topic_hash: Hashes = field(repr=False)
    doc_hash: Hashes = field(repr=False)

    @cached_property
    def topic_ids(self) -> Strings:
        """Query ids as an Arrow array."""
        return pa.array(self.topics, pa.string())

    @cached_property
    def pair(self) -> Ints:
        """Sorted keys ``topic * len(docs) + doc``."""
        return self.topic * len(self.docs) + self.doc

    @cached_property
    def starts(self) -> Ints:
        """First pair of each topic, and the number of pairs as the last value."""
        return np.searchsorted(self.topic, np.arange(len(self.topics) + 1)).astype(np.int64)

    @cached_property
    def doc_names(self) -> list[str]:
        """Document ids as Python strings, by document code."""
        return self.docs.to_pylist()

    @cached_property
    def doc_position(self) -> Ints:
        """Position of each document in the byte order of ids, by document code."""
        position = np.empty(len(self.docs), dtype=np.int64)
        position[pc.sort_indices(self.docs).to_numpy()] = np.arange(len(self.docs))
        return position

    @cached_property
    def row_names(self) -> list[str]:
        """Document id of each judged pair."""
        names = self.doc_names
        return [names[doc] for doc in self.doc.tolist()]

    @cached_property
    def codes(self) -> dict[str, int]:
        """Topic code of each query id."""
        return {name: code for code, name in enumerate(self.topics)}

    @cached_property
    def by_topic(self) -> dict[str, tuple[int, list[str]]]:
        """First pair and document ids of each topic."""
        bounds = self.starts.tolist()
        return {
            topic: (start, self.row_names[start:end])
            for topic, start, end in zip(self.topics, bounds[:-1], bounds[1:], strict=True)
        }

    @cached_property
    def cache(self) -> dict[Any, np.ndarray[Any, Any]]:
        """Cache of arrays that measures compute from the judged pairs only, for reuse with other runs."""
        return {}

    @cached_property
    def row(self) -> Ints:
        """Positions of all pairs: 0, 1, 2..."""
        return np.arange(len(self.topic))

    @cached_property
    def _pair_hashes(self) -> Hashes:
        """Hashes of the judged pairs, sorted."""
        return np.sort(_mix(self.topic_hash[self.topic], self.doc_hash[self.doc]))

    @cached_property
    def _filter(self) -> Bools:
        bits = int(np.clip(np.ceil(np.log2(len(self.topic) + 1)) + 4, _SMALLEST_FILTER, _LARGEST_FILTER))
        table = np.zeros(1 << bits, dtype=np.bool_)
        table[_slots(self._pair_hashes, bits)] = True
        return table

    def maybe_judged(self, topic: Ints, lengths: Ints, doc_hash: Hashes) -> Ints:
        """Return the rows whose pair may be judged, with almost no false positives and no false negatives."""
        # Consecutive rows of the same topic form a group. `topic` holds the topic code of each group, -1 for a topic
        # without judgments; `lengths` the number of rows of each group; `doc_hash` the document hash of each row.
        if not self.topics:
            return np.zeros(0, dtype=np.int64)
        pair_hashes = _mix(np.repeat(self.topic_hash[topic], lengths), doc_hash)
        rows = np.flatnonzero(self._filter[_slots(pair_hashes, len(self._filter).bit_length() - 1)])
        pair_hashes = pair_hashes[rows]
        is_match = (
            self._pair_hashes[np.minimum(np.searchsorted(self._pair_hashes, pair_hashes), len(self._pair_hashes) - 1)]
            == pair_hashes
        )
        return rows[is_match & (np.repeat(topic, lengths)[rows] >= 0)]

    def rows_of(self, topic: Ints, docs: Strings) -> Ints:
        """Return the position of each pair among the judged pairs, -1 if it is not judged."""
        codes = pc.index_in(docs, value_set=self.docs).to_numpy(zero_copy_only=False)
        is_judged_doc = ~np.isnan(codes)  # to_numpy converts nulls to NaN
        if not len(self.pair):
            return np.full(len(codes), -1, dtype=np.int64)
        keys = topic * len(self.docs) + np.where(is_judged_doc, codes, -1).astype(np.int64)
        position = np.minimum(np.searchsorted(self.pair, keys), len(self.pair) - 1)
        return np.where(is_judged_doc & (self.pair[position] == keys), position, -1)


def build_index(table: Table) -> QrelsIndex:
    """Build the index of a qrels table with the columns ``query_id, doc_id, relevance``."""
    topics = sorted(pc.unique(table["query_id"]).to_pylist())  # code point order is UTF-8 byte order
    topic_ids = pa.array(topics, pa.string())
    docs = pc.unique(table["doc_id"])
    topic = encode_column(table["query_id"], topic_ids)
    doc = encode_column(table["doc_id"], docs)
    grade = table["relevance"].to_numpy()
    order = np.lexsort((-grade, doc, topic))
    is_first = np.ones(len(order), dtype=np.bool_)  # the highest grade of each pair
    is_first[1:] = (topic[order][1:] != topic[order][:-1]) | (doc[order][1:] != doc[order][:-1])
    rows = order[is_first]
    return QrelsIndex(
        topics=tuple(topics),
        docs=docs,
        topic=topic[rows],
        doc=doc[rows],
        grade=grade[rows],
        topic_hash=hash_ids(topic_ids),
        doc_hash=hash_ids(docs),
    )


def _mix(topic_hash: Hashes, doc_hash: Hashes) -> Hashes:
    mixed = topic_hash ^ doc_hash
    mixed *= _PAIR_MULTIPLIER
    return mixed


def _slots(mixed: Hashes, bits: int) -> Ints:
    """Return the slot of each hash in a table of size ``2**bits``; signed, as NumPy indexing is fastest with int64."""
    return (mixed >> np.uint64(64 - bits)).view(np.int64)
