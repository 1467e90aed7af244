"""Qrels made ready for joining: topics and documents as codes, one row a judged pair.

Built once for each `Qrels` and used by every run that is judged against it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.data.compute import codes_of, pc
from judged.errors import InputError
from judged.results.types import cached_property

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Hashes, Ints, Strings, Table


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


@dataclass(frozen=True, eq=False)
class Aspects:
    """Every judgment by its pair, with P judged pairs and A judgments."""

    # the distinct iterations (subtopics, assessors, `user subgroup`) in byte order; an aspect code is a position here.
    # One empty name where the qrels have no such column.
    names: tuple[str, ...]
    starts: Ints  # (P + 1,): where the judgments of each pair of `qrels.index` begin below
    # aspect, grade: (A,): each judgment's aspect code and grade, aspects rising within a pair
    aspect: Ints
    grade: Floats

    @cached_property
    def user(self) -> Ints:
        """The user of each name, as a code: names ``user subgroup`` stand for one user as far as the blank."""
        users = [name.partition(" ")[0] for name in self.names]
        codes = {name: code for code, name in enumerate(sorted(set(users)))}
        return np.array([codes[name] for name in users], dtype=np.int64)

    def of(self, pairs: Ints) -> tuple[Ints, Ints, Floats]:
        """Give the judgments of some pairs: which of the pairs, aspect code, grade; one entry a judgment."""
        counts = self.starts[pairs + 1] - self.starts[pairs]
        which = np.repeat(np.arange(len(pairs)), counts)
        offset = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        at = np.repeat(self.starts[pairs], counts) + offset
        return which, self.aspect[at], self.grade[at]


def build_aspects(table: Table, index: QrelsIndex) -> Aspects:
    """Sort the judgments of a qrels table by pair and aspect."""
    pair = index.rows_of(codes_of(table["query_id"], index.topic_ids), table["doc_id"].combine_chunks())
    names: tuple[str, ...] = ("",)
    aspect = np.zeros(len(pair), dtype=np.int64)
    if "iteration" in table.column_names:
        column = table["iteration"]
        distinct = pc.unique(column)
        distinct = distinct.take(pc.sort_indices(distinct))
        names = tuple(distinct.to_pylist())
        aspect = codes_of(column, distinct)
    order = np.lexsort((aspect, pair))
    return Aspects(
        names=names,
        starts=np.searchsorted(pair[order], np.arange(len(index.topic) + 1)).astype(np.int64),
        aspect=aspect[order],
        grade=table["relevance"].to_numpy()[order],
    )


_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_SMALLEST_FILTER, _LARGEST_FILTER = 16, 24  # powers of two: 64 kB to 16 MB


@dataclass(frozen=True, eq=False)
class QrelsIndex:
    """The judged pairs of a `Qrels`, sorted by topic and document code."""

    topics: tuple[str, ...]  # query ids in byte order; the topic code is the position here
    docs: Strings = field(repr=False)  # distinct document ids; the document code is the position here
    # topic, doc, grade: one entry a judged pair: its codes, and the highest grade it was given
    topic: Ints
    doc: Ints
    grade: Floats
    topic_hash: Hashes = field(repr=False)
    doc_hash: Hashes = field(repr=False)

    @cached_property
    def topic_ids(self) -> Strings:
        """The query ids as an Arrow array."""
        return pa.array(self.topics, pa.string())

    @cached_property
    def pair(self) -> Ints:
        """Sorted keys ``topic * len(docs) + doc``."""
        return self.topic * len(self.docs) + self.doc

    @cached_property
    def starts(self) -> Ints:
        """Where each topic's pairs begin; one entry more than there are topics."""
        return np.searchsorted(self.topic, np.arange(len(self.topics) + 1)).astype(np.int64)

    @cached_property
    def doc_names(self) -> list[str]:
        """The document ids as Python text, by document code."""
        return self.docs.to_pylist()

    @cached_property
    def doc_place(self) -> Ints:
        """The place of each document, by code, in the byte order of ids."""
        place = np.empty(len(self.docs), dtype=np.int64)
        place[pc.sort_indices(self.docs).to_numpy()] = np.arange(len(self.docs))
        return place

    @cached_property
    def row_names(self) -> list[str]:
        """The document id of each judged pair."""
        names = self.doc_names
        return [names[doc] for doc in self.doc.tolist()]

    @cached_property
    def codes(self) -> dict[str, int]:
        """The topic code of each query id."""
        return {name: code for code, name in enumerate(self.topics)}

    @cached_property
    def by_topic(self) -> dict[str, tuple[int, list[str]]]:
        """Of each topic where its pairs begin, and their document ids."""
        bounds = self.starts.tolist()
        return {
            topic: (bounds[at], self.row_names[bounds[at] : bounds[at + 1]]) for at, topic in enumerate(self.topics)
        }

    @cached_property
    def kept(self) -> dict[Any, np.ndarray[Any, Any]]:
        """What measures have made of the judged pairs alone, for the next run."""
        return {}

    @cached_property
    def row(self) -> Ints:
        """Every pair's own position."""
        return np.arange(len(self.topic))

    @cached_property
    def _mixed(self) -> Hashes:
        """One hash a judged pair, sorted."""
        return np.sort(_mix(self.topic_hash[self.topic], self.doc_hash[self.doc]))

    @cached_property
    def _filter(self) -> Bools:
        bits = int(np.clip(np.ceil(np.log2(len(self.topic) + 1)) + 4, _SMALLEST_FILTER, _LARGEST_FILTER))
        marks = np.zeros(1 << bits, dtype=np.bool_)
        marks[_slots(self._mixed, bits)] = True
        return marks

    def maybe_judged(self, topic: Ints, lengths: Ints, doc_hash: Hashes) -> Ints:
        """Give the rows whose pair may be in the qrels: every judged pair, and next to no other."""
        # `topic` holds a topic code for each piece of rows, -1 for a topic that is not in the qrels; `lengths` how many
        # rows the pieces have; `doc_hash` one hash a row.
        if not self.topics:
            return np.zeros(0, dtype=np.int64)
        mixed = _mix(np.repeat(self.topic_hash[topic], lengths), doc_hash)
        rows = np.flatnonzero(self._filter[_slots(mixed, len(self._filter).bit_length() - 1)])
        mixed = mixed[rows]
        found = self._mixed[np.minimum(np.searchsorted(self._mixed, mixed), len(self._mixed) - 1)] == mixed
        return rows[found & (np.repeat(topic, lengths)[rows] >= 0)]

    def rows_of(self, topic: Ints, docs: Strings) -> Ints:
        """Give each pair's position among the judged pairs, -1 where it is not judged."""
        codes = pc.index_in(docs, value_set=self.docs).to_numpy(zero_copy_only=False)
        known = ~np.isnan(codes)  # null is NaN
        if not len(self.pair):
            return np.full(len(codes), -1, dtype=np.int64)
        wanted = topic * len(self.docs) + np.where(known, codes, -1).astype(np.int64)
        at = np.minimum(np.searchsorted(self.pair, wanted), len(self.pair) - 1)
        return np.where(known & (self.pair[at] == wanted), at, -1)


def build_index(table: Table) -> QrelsIndex:
    """Make the index of a qrels table (columns ``query_id, doc_id, relevance``)."""
    topics = sorted(pc.unique(table["query_id"]).to_pylist())  # code point order is UTF-8 byte order
    topic_ids = pa.array(topics, pa.string())
    docs = pc.unique(table["doc_id"])
    topic = codes_of(table["query_id"], topic_ids)
    doc = codes_of(table["doc_id"], docs)
    grade = table["relevance"].to_numpy()
    order = np.lexsort((-grade, doc, topic))
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (topic[order][1:] != topic[order][:-1]) | (doc[order][1:] != doc[order][:-1])
    kept = order[first]
    return QrelsIndex(
        topics=tuple(topics),
        docs=docs,
        topic=topic[kept],
        doc=doc[kept],
        grade=grade[kept],
        topic_hash=hash_ids(topic_ids),
        doc_hash=hash_ids(docs),
    )


def _mix(topic_hash: Hashes, doc_hash: Hashes) -> Hashes:
    mixed = topic_hash ^ doc_hash
    mixed *= _SPREAD
    return mixed


def _slots(mixed: Hashes, bits: int) -> Ints:
    """Give the place of each hash in a table of ``2**bits``; signed, as NumPy indexes fastest."""
    return (mixed >> np.uint64(64 - bits)).view(np.int64)
