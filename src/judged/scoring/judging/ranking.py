"""Rank the rows of whole topics: score falling, ties by document id falling (bytes), as trec_eval does.

Nothing is sorted that need not be. Scores that already fall keep their order, and ties are resolved
only where a document that may be judged is among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from judged.data.compute import distinct, int_array, pc
from judged.data.index import hash_ids
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.data.index import QrelsIndex
    from judged.data.run import Run
    from judged.results.types import Batch, Bools, Floats, Hashes, Ints, Strings


def segment_starts(segment: Ints, count: int) -> Ints:
    """Give where each of ``count`` segments begins in a sorted column; one entry more at the end.

    >>> segment_starts(np.array([0, 0, 2]), 3).tolist()
    [0, 2, 2, 3]
    """
    return np.searchsorted(segment, np.arange(count + 1)).astype(np.int64)


def segment_sum(values: Floats | Bools, segment: Ints, count: int) -> Floats:
    """Add up the values of each segment, in the order in which they stand.

    >>> segment_sum(np.array([1.0, 2.0, 4.0]), np.array([0, 0, 2]), 3).tolist()
    [3.0, 0.0, 4.0]
    """
    return np.bincount(segment, weights=values, minlength=count).astype(np.float64, copy=False)


def running_count(mask: Bools, segment: Ints, starts: Ints) -> Ints:
    """Count the marked entries of the segment up to and including each entry.

    >>> running_count(np.array([True, True, False, True]), np.array([0, 0, 0, 1]), np.array([0, 3, 4])).tolist()
    [1, 2, 2, 1]
    """
    counts = np.concatenate(([0], np.cumsum(mask)))
    return counts[1:] - counts[starts[segment]]


def running_sum(values: Floats | Bools, starts: Ints) -> Floats:
    """Add up the values of the segment up to and including each entry, one addition after the other.

    >>> running_sum(np.array([1.0, 2.0, 4.0]), np.array([0, 2, 3])).tolist()
    [1.0, 3.0, 4.0]
    """
    total = np.array(values, dtype=np.float64)
    length = np.diff(starts)
    long = length * length > len(total)  # at most the root of all values: each by itself, the short ones together
    for at in np.flatnonzero(long).tolist():
        part = total[starts[at] : starts[at + 1]]
        np.cumsum(part, out=part)
    short = np.flatnonzero(~long)
    longest = short[np.argsort(-length[short], kind="stable")]
    begin, length = starts[:-1][longest], length[longest]
    for place in range(1, int(length.max(initial=0))):
        at = begin[: np.searchsorted(-length, -place)] + place  # the segments that are longer than this
        total[at] += total[at - 1]
    return total


def falling_bounds(values: Floats, low: Ints, high: Ints, target: Floats) -> tuple[Ints, Ints]:
    """Find where each target's equals stand in ``values[low:high]``, which falls and holds it.

    >>> first, behind = falling_bounds(np.array([3.0, 2.0, 2.0, 1.0]), np.array([0]), np.array([4]), np.array([2.0]))
    >>> first.tolist(), behind.tolist()
    ([1], [3])
    """
    # Gives the first position of the equals and the position behind the last, one of each a target. Most have none.
    first = _count(values, low, high, target, np.greater)
    behind = first + 1
    tied = np.flatnonzero((behind < high) & (values.take(behind, mode="clip") == target))
    behind[tied] = _count(values, behind[tied], high[tied], target[tied], np.equal)
    return first, behind


def _count(values: Floats, low: Ints, high: Ints, target: Floats, is_before: np.ufunc) -> Ints:
    """Find the end of the part of ``values[low:high]`` that comes before, by steps of falling powers of two."""
    end = low.copy()
    step = 1 << int((high - low).max(initial=0)).bit_length() >> 1
    while step:
        last = end + (step - 1)
        end += step * ((last < high) & is_before(values.take(last, mode="clip"), target))
        step >>= 1
    return end


_COLUMNS = ("returned", "topic", "rank", "tie_first", "tie_last", "score")


@dataclass(frozen=True, eq=False)
class RunHits:
    """Rows that may be judged, with their place in the ranking, and the topics they come from."""

    # names, returned: every topic met: its query id and how many documents were returned for it
    names: tuple[str, ...]
    returned: Ints
    topic: Ints  # for each row: its topic's code in the qrels
    doc: Strings  # for each row: its document id; None where `row` says all
    # rank, tie_first, tie_last: for each row: its 1-based rank, and the first and last rank of those with the same
    # score
    rank: Ints
    tie_first: Ints
    tie_last: Ints
    score: Floats  # for each row
    row: Ints | None = None  # for each row: its position among the judged pairs, where that is known already
    self_first: int = 0  # topics in which no document has a higher score than the one with the id of the topic


def nothing() -> RunHits:
    """Give what is found in a run without rows."""
    none = np.zeros(0, dtype=np.int64)
    return RunHits((), none, none, pa.array([], pa.string()), none, none, none, np.zeros(0))


def together(pieces: Sequence[RunHits]) -> RunHits:
    """Put the findings of several pieces of a run into one."""
    if not pieces:
        return nothing()
    return RunHits(
        names=tuple(name for piece in pieces for name in piece.names),
        doc=pa.concat_arrays([piece.doc for piece in pieces]),
        self_first=sum(piece.self_first for piece in pieces),
        **{name: np.concatenate([getattr(piece, name) for piece in pieces]) for name in _COLUMNS},
    )


TopicPolicy: TypeAlias = Literal["qrels", "run", "both"]
TiePolicy: TypeAlias = Literal["docid", "docid-rising", "stable", "rank"]
Precision: TypeAlias = Literal["double", "single"]
_DEEPEST = 2**62


@dataclass(frozen=True)
class Ranking:
    """How a run's documents were ranked.

    Parameters
    ----------
    ties
        ``docid``: documents with the same score stand in falling byte order of their ids (trec_eval's rule);
        ``docid-rising``: in rising order; ``stable``: in the order in which the run lists them. ``rank``: the
        rank column orders the documents, and the scores are not looked at.
    depth
        How many documents of each topic count; None for all.
    precision
        What of the scores is compared: ``double`` all of it, ``single`` what fits 32 bits (trec_eval before 10).
    """

    ties: TiePolicy = "docid"
    depth: int | None = None
    precision: Precision = "double"

    def __post_init__(self) -> None:
        if self.ties not in get_args(TiePolicy):
            raise InputError(f"no tie policy {self.ties!r}", fix=f"use one of {', '.join(get_args(TiePolicy))}")
        if self.precision not in get_args(Precision):
            raise InputError(f"no precision {self.precision!r}", fix=f"use one of {', '.join(get_args(Precision))}")
        whole = isinstance(self.depth, (int, np.integer)) and not isinstance(self.depth, bool)
        if self.depth is not None and whole and self.depth > _DEEPEST:
            raise InputError("the depth is more than any ranking has", fix="give None for all")
        if self.depth is not None and not (whole and self.depth >= 1):
            raise InputError(
                f"the depth {self.depth} makes no sense", fix="give a whole number from 1, or None for all"
            )

    def refuse(self, run: Run) -> None:
        """Refuse a run that has nothing to be ranked by so."""
        if self.ties == "rank" and not run.has_ranks:
            raise InputError("it has no rank column", fix="choose another order for ties", path=run.where)
        if self.depth is not None and not run.has_scores and self.ties != "rank":
            raise InputError("a run without scores has no first documents", fix="leave out the depth", path=run.where)


_LOW_HALF = np.uint64(0xFFFFFFFF)
_HIGH_HALF = np.uint64(32)


TopicRuns: TypeAlias = "tuple[Strings, Ints, Ints]"


class DuplicateDocumentError(InputError):
    """A document stands twice in one topic's ranking."""

    def __init__(self, query_id: str, doc_id: str, where: str = "", line: int | None = None) -> None:
        self.query_id, self.doc_id = query_id, doc_id
        super().__init__(
            f"document {doc_id} is returned twice for topic {query_id}",
            fix="keep one row per document; a file that holds several runs must be split by its run tag",
            path=where,
            line=line,
        )


def columns_of(ranking: Ranking) -> tuple[str, ...]:
    """Name the columns that put documents in order."""
    return ("query_id", "doc_id", "rank" if ranking.ties == "rank" else "score")


def rank_topics(index: QrelsIndex, batch: Batch, ranking: Ranking, runs: TopicRuns | None = None) -> RunHits:
    """Rank a batch of whole topics, each in one piece, and pick out the rows that may be judged."""
    # `batch`: `query_id, doc_id` and, unless the run is a set, `score` (or `rank`, where that is the order).
    names, starts, ends = runs or topic_runs(batch.column("query_id"))
    docs = batch.column("doc_id")
    scores = _scores(batch, ranking)
    lengths = ends - starts
    hashes = hash_ids(docs)
    _refuse_duplicates(lengths, hashes, names, docs)
    queries = names.to_pylist()
    code = np.array([index.codes.get(query, -1) for query in queries], dtype=np.int64)
    rows = index.maybe_judged(code, lengths, hashes)
    topic = np.searchsorted(ends, rows, side="right")
    order = _order(scores, lengths, starts, stable=ranking.ties == "stable")
    if order is None:
        falling, place = scores, rows
    else:
        falling = scores[order]
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        place = place[rows]
    start = starts[topic]
    own = np.flatnonzero(np.repeat(hash_ids(names), lengths) == hashes)
    best = falling[starts[np.searchsorted(ends, own, side="right")]]
    first, behind = _equals(falling, place, start, ends[topic])
    if ranking.ties != "stable":
        direction = "ascending" if ranking.ties == "docid-rising" else "descending"
        taken = lambda at: pc.take(docs, int_array(at if order is None else order[at]))  # noqa: E731
        place = _break_ties(place, first, behind, taken, direction)
    return RunHits(
        names=tuple(queries),
        returned=lengths,
        topic=code[topic],
        doc=pc.take(docs, int_array(rows)),
        rank=place - start + 1,
        tie_first=first - start + 1,
        tie_last=behind - start,
        score=scores[rows],
        self_first=int(np.count_nonzero(scores[own] == best)),
    )


def _equals(falling: Floats, place: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Give the first place with the score of each row, and the place behind the last; most rows are alone."""
    score = falling[place]
    tied = (place > start) & (falling[place - 1] == score)
    tied |= (place + 1 < end) & (falling[np.minimum(place + 1, len(falling) - 1)] == score)
    first, behind = place.copy(), place + 1
    if tied.any():
        first[tied], behind[tied] = falling_bounds(falling, start[tied], end[tied], score[tied])
    return first, behind


def topic_runs(queries: Strings) -> TopicRuns:
    """Cut a column of query ids where it changes: the ids, and where each piece starts and ends."""
    encoded = pc.run_end_encode(queries)
    ends = np.asarray(encoded.run_ends, dtype=np.int64)
    return encoded.values, np.concatenate(([0], ends[:-1])).astype(np.int64), ends


def _scores(batch: Batch, ranking: Ranking) -> Floats:
    if ranking.ties == "rank":
        return -batch.column("rank").to_numpy(zero_copy_only=False).astype(np.float64)
    if "score" not in batch.schema.names:
        return np.zeros(batch.num_rows)
    scores = batch.column("score").to_numpy(zero_copy_only=False)
    if np.isnan(scores).any():
        row = int(np.flatnonzero(np.isnan(scores))[0])
        pair = f"topic {batch.column('query_id')[row]}, document {batch.column('doc_id')[row]}"
        raise InputError(f"the score of {pair} is NaN", fix="write a number, or leave the document out")
    return as_compared(scores, ranking)


def as_compared(scores: Floats, ranking: Ranking) -> Floats:
    """Give the scores as they are compared: whole, or what 32 bits hold of them."""
    if ranking.precision == "double":
        return scores
    with np.errstate(over="ignore"):
        return scores.astype(np.float32).astype(np.float64)


def _refuse_duplicates(lengths: Ints, hashes: Hashes, names: Strings, docs: Strings) -> None:
    keys = np.repeat(np.arange(len(lengths), dtype=np.uint64) << _HIGH_HALF, lengths)
    keys |= hashes & _LOW_HALF
    ordered = np.sort(keys)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(repeated):
        return
    suspects = np.flatnonzero(np.isin(keys, repeated))
    seen: set[tuple[int, str]] = set()
    topics = (keys[suspects] >> _HIGH_HALF).tolist()
    for topic, doc in zip(topics, docs.take(suspects).to_pylist(), strict=True):
        if (topic, doc) in seen:
            raise DuplicateDocumentError(names[topic].as_py(), doc)
        seen.add((topic, doc))


def _order(scores: Floats, lengths: Ints, starts: Ints, *, stable: bool) -> Ints | None:
    """Give the order in which scores fall within each topic, or None where they do already."""
    rises = scores[1:] > scores[:-1]
    rises[starts[1:] - 1] = False
    if not rises.any():
        return None
    falling = np.argsort(-scores, kind="stable" if stable else None)  # where ties are broken later any order will do
    topic = np.repeat(np.arange(len(lengths), dtype=np.min_scalar_type(len(lengths))), lengths)  # few bytes sort fast
    return falling[np.argsort(topic[falling], kind="stable")]


def _break_ties(place: Ints, first: Ints, behind: Ints, docs_at: Callable[[Ints], Strings], direction: str) -> Ints:
    """Move each row that is tied to its place among its equals, document ids falling or rising."""
    tied = behind - first > 1
    if not tied.any():
        return place
    groups = distinct(first[tied])
    sizes = distinct(behind[tied]) - groups
    group = np.repeat(np.arange(len(groups)), sizes)
    offsets = np.cumsum(sizes) - sizes
    members = np.arange(len(group)) - np.repeat(offsets, sizes) + np.repeat(groups, sizes)
    table = pa.table({"group": int_array(group), "doc": docs_at(members)})
    order = pc.sort_indices(table, sort_keys=[("group", "ascending"), ("doc", direction)]).to_numpy()
    new_place = np.empty(len(members), dtype=np.int64)
    new_place[order] = members
    moved = place.copy()
    moved[tied] = new_place[np.searchsorted(members, place[tied])]
    return moved
