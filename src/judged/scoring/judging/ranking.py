"""Rank the rows of complete topics: by descending score, ties by descending document id (bytes), as trec_eval does.

Sorting is avoided where possible. Scores that already descend keep their order, and ties are resolved only where they
contain a document that may be judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from judged.data.compute import distinct, int_array, pc
from judged.data.index import hash_ids
from judged.errors import InputError
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.data.index import QrelsIndex
    from judged.data.run import Run
    from judged.results.types import Batch, Bools, Floats, Hashes, Ints, Strings


def segment_starts(segment: Ints, count: int) -> Ints:
    """Return the start of each of ``count`` segments in a sorted column, and the end of the last.

    >>> segment_starts(np.array([0, 0, 2]), 3).tolist()
    [0, 2, 2, 3]
    """
    return np.searchsorted(segment, np.arange(count + 1)).astype(np.int64)


def segment_sum(values: Floats | Bools, segment: Ints, count: int) -> Floats:
    """Sum the values of each segment, in order.

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
    """Sum the values of the segment up to and including each entry, one addition after the other.

    >>> running_sum(np.array([1.0, 2.0, 4.0]), np.array([0, 2, 3])).tolist()
    [1.0, 3.0, 4.0]
    """
    total = np.array(values, dtype=np.float64)
    length = np.diff(starts)
    # The sums must not depend on the other segments, so a global cumsum minus an offset would be wrong (rounding).
    # Long segments, at most sqrt(n) of them, are summed one by one; short ones in parallel, position by position.
    is_long = length * length > len(total)
    for segment in np.flatnonzero(is_long).tolist():
        part = total[starts[segment] : starts[segment + 1]]
        np.cumsum(part, out=part)
    short = np.flatnonzero(~is_long)
    by_length = short[np.argsort(-length[short], kind="stable")]
    begin, length = starts[:-1][by_length], length[by_length]
    for offset in range(1, int(length.max(initial=0))):
        position = begin[: np.searchsorted(-length, -offset)] + offset  # in the segments longer than the offset
        total[position] += total[position - 1]
    return total


def equal_range(values: Floats, low: Ints, high: Ints, target: Floats) -> tuple[Ints, Ints]:
    """Find the range of positions equal to each target in ``values[low:high]``, which descends and contains it.

    >>> first, stop = equal_range(np.array([3.0, 2.0, 2.0, 1.0]), np.array([0]), np.array([4]), np.array([2.0]))
    >>> first.tolist(), stop.tolist()
    ([1], [3])
    """
    first = _partition_point(values, low, high, target, np.greater)
    stop = first + 1  # most targets occur once
    tied = np.flatnonzero((stop < high) & (values.take(stop, mode="clip") == target))
    stop[tied] = _partition_point(values, stop[tied], high[tied], target[tied], np.equal)
    return first, stop


def _partition_point(values: Floats, low: Ints, high: Ints, target: Floats, is_before: np.ufunc) -> Ints:
    """Find the end of the part of ``values[low:high]`` where ``is_before`` holds, by binary search."""
    end = low.copy()
    step = 1 << int((high - low).max(initial=0)).bit_length() >> 1
    while step:
        last = end + (step - 1)
        end += step * ((last < high) & is_before(values.take(last, mode="clip"), target))
        step >>= 1
    return end


_ARRAY_COLUMNS = ("returned", "topic", "rank", "tie_first", "tie_last", "score")


@dataclass(frozen=True, eq=False)
class RunHits:
    """Rows that may be judged, with their ranks, and the topics of the run or of a part of it."""

    # names, returned: all topics: query id and number of returned documents
    names: tuple[str, ...]
    returned: Ints
    topic: Ints  # for each row: code of its topic in the qrels
    doc: Strings  # for each row: document id; None if `row` is set
    # rank, tie_first, tie_last: for each row: 1-based rank, and first and last rank of the documents with its score
    rank: Ints
    tie_first: Ints
    tie_last: Ints
    score: Floats
    row: Ints | None = None  # for each row: its position among the judged pairs, if it was looked up already
    n_self_top: int = 0  # topics in which no document has a higher score than the one with the id of the topic


def no_hits() -> RunHits:
    """Return the hits of a run without rows."""
    empty = np.zeros(0, dtype=np.int64)
    return RunHits((), empty, empty, pa.array([], pa.string()), empty, empty, empty, np.zeros(0))


def concatenate_hits(pieces: Sequence[RunHits]) -> RunHits:
    """Concatenate the hits of several parts of a run."""
    if not pieces:
        return no_hits()
    return RunHits(
        names=tuple(name for piece in pieces for name in piece.names),
        doc=pa.concat_arrays([piece.doc for piece in pieces]),
        n_self_top=sum(piece.n_self_top for piece in pieces),
        **{name: np.concatenate([getattr(piece, name) for piece in pieces]) for name in _ARRAY_COLUMNS},
    )


TopicPolicy: TypeAlias = Literal["qrels", "run", "both"]
TiePolicy: TypeAlias = Literal["docid", "docid-rising", "stable", "rank"]
Precision: TypeAlias = Literal["double", "single"]
_MAX_DEPTH = 2**62


@dataclass(frozen=True)
class RankingRules:
    """Policies by which documents are ranked.

    Parameters
    ----------
    ties
        ``docid`` (default): documents with the same score are in descending byte order of their ids (trec_eval's
        rule); ``docid-rising``: in ascending order; ``stable``: in the order of the run. ``rank``: the rank column
        orders the documents, and scores are ignored.
    depth
        Number of documents per topic that count; None (default) for all.
    precision
        Precision in which scores are compared: ``double`` (default), or ``single``, 32 bits (trec_eval before 10).
    """

    ties: TiePolicy = "docid"
    depth: int | None = None
    precision: Precision = "double"

    def __post_init__(self) -> None:
        if self.ties not in get_args(TiePolicy):
            raise InputError(f"unknown value of `ties`: {self.ties!r}", fix=use_one_of(get_args(TiePolicy)))
        if self.precision not in get_args(Precision):
            raise InputError(f"unknown precision {self.precision!r}", fix=use_one_of(get_args(Precision)))
        is_integer = isinstance(self.depth, (int, np.integer)) and not isinstance(self.depth, bool)
        fix = "use a number such as 10, or None for all documents"
        if self.depth is not None and is_integer and self.depth > _MAX_DEPTH:  # too long to be printed, perhaps
            raise InputError("`depth` must be at most 2^62", fix=fix)
        if self.depth is not None and not (is_integer and self.depth >= 1):
            raise InputError(f"`depth` must be a positive integer, got {self.depth}", fix=fix)

    def check_run(self, run: Run) -> None:
        """Raise InputError if the run lacks the columns by which this policy ranks."""
        if self.ties == "rank" and not run.has_ranks:
            raise InputError("ties=rank requires a rank column", fix="use another value of ties", path=run.where)
        if self.depth is not None and not run.has_scores and self.ties != "rank":
            problem = f"depth={self.depth} requires scores, but this run has no scores"
            raise InputError(problem, fix="leave out depth", path=run.where)


_LOW_HALF = np.uint64(0xFFFFFFFF)
_HALF_BITS = np.uint64(32)


TopicSegments: TypeAlias = "tuple[Strings, Ints, Ints]"  # query ids, and start and end row of each segment


class DuplicateDocumentError(InputError):
    """A document occurs twice in the ranking of one topic."""

    def __init__(self, query_id: str, doc_id: str, where: str = "", line: int | None = None) -> None:
        self.query_id, self.doc_id = query_id, doc_id
        super().__init__(
            f"document {doc_id} is returned twice for topic {query_id}",
            fix="keep one row per document; a file that holds several runs must be split by its run tag",
            path=where,
            line=line,
        )


def ranking_columns(ranking: RankingRules) -> tuple[str, ...]:
    """Return the names of the columns that determine the order of documents."""
    return ("query_id", "doc_id", "rank" if ranking.ties == "rank" else "score")


def rank_topics(
    index: QrelsIndex, batch: Batch, ranking: RankingRules, segments: TopicSegments | None = None
) -> RunHits:
    """Rank a batch of complete topics, each in consecutive rows, and select the rows that may be judged."""
    # `batch`: `query_id, doc_id` and, unless the run has no scores, `score` (or `rank` if that is the order).
    names, starts, ends = segments or topic_segments(batch.column("query_id"))
    docs = batch.column("doc_id")
    scores = _scores(batch, ranking)
    lengths = ends - starts
    hashes = hash_ids(docs)
    _check_duplicates(lengths, hashes, names, docs)
    queries = names.to_pylist()
    code = np.array([index.codes.get(query, -1) for query in queries], dtype=np.int64)
    rows = index.maybe_judged(code, lengths, hashes)
    topic = np.searchsorted(ends, rows, side="right")
    order = _order(scores, lengths, starts, stable=ranking.ties == "stable")
    if order is None:
        descending, position = scores, rows
    else:
        descending = scores[order]
        position = np.empty(len(order), dtype=np.int64)
        position[order] = np.arange(len(order))
        position = position[rows]
    start = starts[topic]
    self_rows = np.flatnonzero(np.repeat(hash_ids(names), lengths) == hashes)  # documents with the id of their topic
    best = descending[starts[np.searchsorted(ends, self_rows, side="right")]]
    first, stop = _tie_bounds(descending, position, start, ends[topic])
    if ranking.ties != "stable":
        direction = "ascending" if ranking.ties == "docid-rising" else "descending"
        docs_at = lambda rows: pc.take(docs, int_array(rows if order is None else order[rows]))  # noqa: E731
        position = _break_ties(position, first, stop, docs_at, direction)
    return RunHits(
        names=tuple(queries),
        returned=lengths,
        topic=code[topic],
        doc=pc.take(docs, int_array(rows)),
        rank=position - start + 1,
        tie_first=first - start + 1,
        tie_last=stop - start,
        score=scores[rows],
        n_self_top=int(np.count_nonzero(scores[self_rows] == best)),
    )


def _tie_bounds(descending: Floats, position: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Return the range of positions with the score of each row."""
    # Most rows are not tied, so the neighbors are compared before the search.
    score = descending[position]
    tied = (position > start) & (descending[position - 1] == score)
    tied |= (position + 1 < end) & (descending[np.minimum(position + 1, len(descending) - 1)] == score)
    first, stop = position.copy(), position + 1
    if tied.any():
        first[tied], stop[tied] = equal_range(descending, start[tied], end[tied], score[tied])
    return first, stop


def topic_segments(queries: Strings) -> TopicSegments:
    """Split a column of query ids into segments of equal ids."""
    encoded = pc.run_end_encode(queries)
    ends = np.asarray(encoded.run_ends, dtype=np.int64)
    return encoded.values, np.concatenate(([0], ends[:-1])).astype(np.int64), ends


def _scores(batch: Batch, ranking: RankingRules) -> Floats:
    if ranking.ties == "rank":
        return -batch.column("rank").to_numpy(zero_copy_only=False).astype(np.float64)
    if "score" not in batch.schema.names:
        return np.zeros(batch.num_rows)
    scores = batch.column("score").to_numpy(zero_copy_only=False)
    if np.isnan(scores).any():
        row = int(np.flatnonzero(np.isnan(scores))[0])
        topic, doc = batch.column("query_id")[row], batch.column("doc_id")[row]
        problem = f"a score must be a number, got NaN for topic {topic}, document {doc}"
        raise InputError(problem, fix="write a number, or leave the document out")
    return round_scores(scores, ranking)


def round_scores(scores: Floats, ranking: RankingRules) -> Floats:
    """Round scores to the precision in which they are compared."""
    if ranking.precision == "double":
        return scores
    with np.errstate(over="ignore"):
        return scores.astype(np.float32).astype(np.float64)


def _check_duplicates(lengths: Ints, hashes: Hashes, names: Strings, docs: Strings) -> None:
    # Half a hash per document finds candidates by one sort of integers; only their ids are compared.
    keys = np.repeat(np.arange(len(lengths), dtype=np.uint64) << _HALF_BITS, lengths)
    keys |= hashes & _LOW_HALF
    ordered = np.sort(keys)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(repeated):
        return
    suspects = np.flatnonzero(np.isin(keys, repeated))
    seen_pairs: set[tuple[int, str]] = set()
    topics = (keys[suspects] >> _HALF_BITS).tolist()
    for topic, doc in zip(topics, docs.take(suspects).to_pylist(), strict=True):
        if (topic, doc) in seen_pairs:
            raise DuplicateDocumentError(names[topic].as_py(), doc)
        seen_pairs.add((topic, doc))


def _order(scores: Floats, lengths: Ints, starts: Ints, *, stable: bool) -> Ints | None:
    """Return the order in which scores descend within each topic, or None if they already do."""
    rises = scores[1:] > scores[:-1]
    rises[starts[1:] - 1] = False
    if not rises.any():
        return None
    descending = np.argsort(-scores, kind="stable" if stable else None)  # unless stable, ties are broken later
    topic = np.repeat(np.arange(len(lengths), dtype=np.min_scalar_type(len(lengths))), lengths)  # few bytes sort fast
    return descending[np.argsort(topic[descending], kind="stable")]


def _break_ties(position: Ints, first: Ints, stop: Ints, docs_at: Callable[[Ints], Strings], direction: str) -> Ints:
    """Return the positions after tied rows are sorted by document id."""
    tied = stop - first > 1
    if not tied.any():
        return position
    groups = distinct(first[tied])
    sizes = distinct(stop[tied]) - groups
    group = np.repeat(np.arange(len(groups)), sizes)
    offsets = np.cumsum(sizes) - sizes
    members = np.arange(len(group)) - np.repeat(offsets, sizes) + np.repeat(groups, sizes)
    table = pa.table({"group": int_array(group), "doc": docs_at(members)})
    order = pc.sort_indices(table, sort_keys=[("group", "ascending"), ("doc", direction)]).to_numpy()
    new_position = np.empty(len(members), dtype=np.int64)
    new_position[order] = members
    positions = position.copy()
    positions[tied] = new_position[np.searchsorted(members, position[tied])]
    return positions
