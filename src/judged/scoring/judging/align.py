"""`align`: the documents of two runs side by side, for whatever compares two rankings as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from judged.data.compute import int_array, pc
from judged.data.run import Run
from judged.errors import InputError
from judged.results.types import ReadOnly, cached_property
from judged.scoring.judging.ranking import DuplicateDocumentError, Ranking, as_compared, columns_of, segment_starts

if TYPE_CHECKING:
    from judged.results.types import Floats, Ints, Strings
    from judged.scoring.judging.ranking import Precision, TiePolicy


@dataclass(frozen=True, eq=False)
class Aligned(ReadOnly):
    """Every document that either of two runs returned, with its rank in both.

    All columns are flat: with T topics and D documents (one that is returned for two topics is two),

    Attributes
    ----------
    query_ids : tuple of T str
        The topics of either run, in byte order. A topic code is a position here.
    topic : (D,) int64
        Rising; within a topic, the documents of the first run by rank, then those of the second alone by rank.
    doc : Arrow array of D strings
    first, second : (D,) int64
        The 1-based rank in each run; 0: not returned.
    first_tie, second_tie : (D,) int64
        The first rank of the documents that have this one's score; 0: not returned.
    runs : (str, str)
        The names of the runs.
    ranking : Ranking
        The policy that made the ranks of both.

    Examples
    --------
    >>> both = align({"q": {"a": 2.0, "b": 1.0}}, {"q": {"b": 5.0, "c": 4.0}})
    >>> both.doc.to_pylist(), both.first.tolist(), both.second.tolist()
    (['a', 'b', 'c'], [1, 2, 0], [0, 1, 2])
    """

    query_ids: tuple[str, ...]
    topic: Ints
    doc: Strings = field(repr=False)
    first: Ints
    second: Ints
    first_tie: Ints = field(repr=False)
    second_tie: Ints = field(repr=False)
    runs: tuple[str, str]
    ranking: Ranking

    def __len__(self) -> int:
        return len(self.query_ids)

    @cached_property
    def starts(self) -> Ints:
        """Where each topic's documents begin; (T + 1,)."""
        return segment_starts(self.topic, len(self))

    def rows(self, query_id: str) -> slice:
        """Give the place of one topic's documents in the columns.

        Raises
        ------
        InputError
            If neither run has the topic.
        """
        if query_id not in self._codes:
            some = ", ".join(self.query_ids[:5]) + (", ..." if len(self) > 5 else "")
            raise InputError(f"neither run has a topic {query_id!r}", fix=f"use one of {some}")
        code = self._codes[query_id]
        return slice(int(self.starts[code]), int(self.starts[code + 1]))

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {name: code for code, name in enumerate(self.query_ids)}


class _Side(NamedTuple):
    """One run's documents: topic, document, rank, first rank of its tie."""

    topic: Ints
    doc: Strings
    rank: Ints
    tie: Ints


def align(
    first: Any,
    second: Any,
    *,
    ties: TiePolicy = "docid",
    depth: int | None = None,
    precision: Precision = "double",
) -> Aligned:
    """Put the documents of two runs side by side, ranked by the rules of `judge`.

    Memory grows with the rows of both runs, and with nothing else.

    Parameters
    ----------
    first, second
        Each a `Run`, or anything that `Run.of` takes. A run without scores is one tie.
    ties, depth, precision
        As for `judge`. Of a tie that the depth cuts through, the documents above it are left.

    Returns
    -------
    Aligned

    Raises
    ------
    InputError
        If a run cannot be read, a score is NaN, or a document is returned twice for a topic.
    """
    ranking = Ranking(ties, depth, precision)
    runs = (Run.of(first), Run.of(second))
    for run in runs:
        ranking.refuse(run)
    topics = [_topics(run) for run in runs]
    query_ids = tuple(sorted({name for names in topics for name in names}))
    sides = [_side(run, query_ids, ranking) for run in runs]
    return _joined(query_ids, sides[0], sides[1], (runs[0].name, runs[1].name), ranking)


def _topics(run: Run) -> set[str]:
    """Give the topics of a run, and refuse scores that cannot be ranked."""
    names: set[str] = set()
    for part in run.rows.parts(("query_id", "score")):
        batch = part()
        names.update(pc.unique(batch.column("query_id")).to_pylist())
        if "score" in batch.schema.names and pc.any(pc.is_nan(batch.column("score"))).as_py():
            bad = pc.index(pc.is_nan(batch.column("score")), value=True).as_py()
            problem = f"a score of topic {batch.column('query_id')[bad]} is NaN"
            raise InputError(problem, fix="write a number, or leave the document out", path=run.where)
    return names


def _side(run: Run, query_ids: tuple[str, ...], ranking: Ranking) -> _Side:
    whole, tie, _ = all_tied(run, query_ids, ranking)
    kept = np.flatnonzero(whole.rank <= (ranking.depth or np.iinfo(np.int64).max))
    side = _Side(whole.topic, whole.doc, whole.rank, tie)
    _refuse_duplicates(run, query_ids, side)
    return _Side(side.topic[kept], side.doc.take(int_array(kept)), side.rank[kept], side.tie[kept])


def _refuse_duplicates(run: Run, query_ids: tuple[str, ...], side: _Side) -> None:
    encoded = side.doc.dictionary_encode()
    keys = side.topic * max(len(encoded.dictionary), 1) + encoded.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(keys, kind="stable")
    again = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    if len(again):
        row = int(order[again[0]])
        query, doc = query_ids[int(side.topic[row])], side.doc[row].as_py()
        raise DuplicateDocumentError(query, doc, run.where, run.rows.line(query, doc, 2))


def _joined(
    query_ids: tuple[str, ...], first: _Side, second: _Side, names: tuple[str, str], ranking: Ranking
) -> Aligned:
    """Join on topic and document; a document of one run alone has rank 0 in the other."""
    docs = pa.concat_arrays([first.doc, second.doc])
    encoded = docs.dictionary_encode()
    topics = np.concatenate((first.topic, second.topic))
    keys = topics * max(len(encoded.dictionary), 1) + encoded.indices.to_numpy(zero_copy_only=False)
    count = len(first.topic)
    _, row, place = np.unique(keys, return_index=True, return_inverse=True)
    place = place.ravel()
    ranks, ties = np.zeros((2, len(row)), dtype=np.int64), np.zeros((2, len(row)), dtype=np.int64)
    for at, (side, where) in enumerate(((first, place[:count]), (second, place[count:]))):
        ranks[at, where], ties[at, where] = side.rank, side.tie
    order = np.lexsort((ranks[1], np.where(ranks[0] > 0, ranks[0], np.iinfo(np.int64).max), topics[row]))
    return Aligned(
        query_ids=query_ids,
        topic=topics[row][order],
        doc=docs.take(int_array(row[order])),
        first=ranks[0][order],
        second=ranks[1][order],
        first_tie=ties[0][order],
        second_tie=ties[1][order],
        runs=names,
        ranking=ranking,
    )


class Returned(NamedTuple):
    """Every returned document of the topics that count, ordered by topic and rank; D of them."""

    # topic, rank: (D,): the topic's code and the 1-based rank
    topic: Ints
    rank: Ints
    doc: Strings


def all_returned(run: Run, query_ids: tuple[str, ...], ranking: Ranking) -> Returned:
    """Rank a whole run by the rules of `judge`, and keep every document."""
    return all_scored(run, query_ids, ranking)[0]


def all_scored(run: Run, query_ids: tuple[str, ...], ranking: Ranking) -> tuple[Returned, Floats]:
    """Give the scores by which they were ranked, too."""
    whole, score = _ranked(run, query_ids, ranking)
    kept = np.flatnonzero(whole.rank <= (ranking.depth or len(whole.rank)))
    return Returned(whole.topic[kept], whole.rank[kept], whole.doc.take(int_array(kept))), score[kept]


def all_tied(run: Run, query_ids: tuple[str, ...], ranking: Ranking) -> tuple[Returned, Ints, Ints]:
    """Rank a whole run, whatever the depth; with the first and last rank of the documents that share a score."""
    whole, score = _ranked(run, query_ids, ranking)
    begins = np.ones(len(score), dtype=np.bool_)
    begins[1:] = (score[1:] != score[:-1]) | (whole.topic[1:] != whole.topic[:-1])
    first = np.flatnonzero(begins)
    group = np.cumsum(begins) - 1
    last = np.append(first[1:], len(score)) - 1
    return whole, whole.rank[first[group]], whole.rank[last[group]]


def _ranked(run: Run, query_ids: tuple[str, ...], ranking: Ranking) -> tuple[Returned, Floats]:
    """Rank a whole run: every document, and the score by which it was ranked."""
    batches = [part() for part in run.rows.parts(columns_of(ranking))]
    if not any(batch.num_rows for batch in batches):
        none = np.zeros(0, dtype=np.int64)
        return Returned(none, none, pa.array([], pa.string())), np.zeros(0)
    table = pa.Table.from_batches(batches)
    codes = pc.index_in(table["query_id"], value_set=pa.array(query_ids, pa.string()))
    table, topic = table.filter(pc.is_valid(codes)), pc.drop_null(codes).to_numpy().astype(np.int64)
    docs, score = table["doc_id"].combine_chunks(), _scores(table, ranking)
    order = _order(score, topic, docs, ranking)
    topic = topic[order]
    rank = np.arange(len(topic)) - segment_starts(topic, len(query_ids))[topic] + 1
    return Returned(topic, rank, docs.take(int_array(order))), score[order]


def _scores(table: Any, ranking: Ranking) -> Floats:
    if ranking.ties == "rank":
        return -table["rank"].to_numpy().astype(np.float64)
    if "score" in table.column_names:
        return as_compared(table["score"].to_numpy(), ranking)
    return np.zeros(table.num_rows)


def _order(score: Floats, topic: Ints, docs: Strings, ranking: Ranking) -> Ints:
    if ranking.ties == "stable":
        return np.lexsort((-score, topic))
    direction = "ascending" if ranking.ties == "docid-rising" else "descending"
    columns = pa.table({"topic": int_array(topic), "score": pa.array(score), "doc": docs})
    keys = [("topic", "ascending"), ("score", "descending"), ("doc", direction)]
    return np.asarray(pc.sort_indices(columns, sort_keys=keys).to_numpy(), dtype=np.int64)
