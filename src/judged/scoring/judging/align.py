"""Join the documents of two runs with their ranks, to compare complete rankings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from judged.data.compute import int_array, pc
from judged.data.run import Run
from judged.errors import InputError
from judged.results.types import ReadOnly, cached_property
from judged.scoring.judging.ranking import (
    DuplicateDocumentError,
    RankingRules,
    ranking_columns,
    round_scores,
    segment_starts,
)

if TYPE_CHECKING:
    from judged.results.types import Floats, Ints, Strings
    from judged.scoring.judging.ranking import Precision, TiePolicy


@dataclass(frozen=True, eq=False)
class Aligned(ReadOnly):
    """All documents that either of two runs returned, with their ranks in both runs.

    The columns are flat. With T topics and D pairs of a topic and a document:

    Attributes
    ----------
    query_ids : tuple of T str
        The topics of either run, in byte order. A topic code is a position in this tuple.
    topic : (D,) int64
        Ascending. Within a topic: the documents of the first run by rank, then those only in the second by rank.
    doc : Arrow array of D strings
    first, second : (D,) int64
        1-based rank in each run; 0: not returned.
    first_tie, second_tie : (D,) int64
        First rank of the documents with the same score; 0: not returned.
    runs : (str, str)
        Names of the runs.
    ranking : RankingRules
        Policies of both rankings.

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
    ranking: RankingRules

    def __len__(self) -> int:
        return len(self.query_ids)

    @cached_property
    def starts(self) -> Ints:
        """Position of each topic's first document, and the number of documents at the end; (T + 1,)."""
        return segment_starts(self.topic, len(self))

    def rows(self, query_id: str) -> slice:
        """Return the slice of the columns that has one topic.

        Raises
        ------
        InputError
            If neither run has the topic.
        """
        if query_id not in self._codes:
            examples = ", ".join(self.query_ids[:5]) + (", ..." if len(self) > 5 else "")
            raise InputError(f"neither run has a topic {query_id!r}", fix=f"use one of {examples}")
        code = self._codes[query_id]
        return slice(int(self.starts[code]), int(self.starts[code + 1]))

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {query_id: code for code, query_id in enumerate(self.query_ids)}


class _RankedRun(NamedTuple):
    """Documents of one run: topic, document id, rank, first rank of its tie."""

    topic: Ints
    doc: Strings
    rank: Ints
    tie_first: Ints


def align(
    first: Any,
    second: Any,
    *,
    ties: TiePolicy = "docid",
    depth: int | None = None,
    precision: Precision = "double",
) -> Aligned:
    """Join the documents of two runs with their ranks, by the rules of `judge`.

    Memory is proportional to the number of rows of both runs.

    Parameters
    ----------
    first, second
        `Run` or any input of `Run.of`. A run without scores is one tie.
    ties, depth, precision
        As for `judge`. If `depth` falls within a tie, the documents of the tie above it are included.

    Returns
    -------
    Aligned

    Raises
    ------
    InputError
        If a run cannot be read, a score is NaN, or a document is returned twice for a topic.
    """
    ranking = RankingRules(ties, depth, precision)
    runs = (Run.of(first), Run.of(second))
    for run in runs:
        ranking.check_run(run)
    topics = [_topics(run) for run in runs]
    query_ids = tuple(sorted({query_id for run_topics in topics for query_id in run_topics}))
    first_ranked, second_ranked = (_rank_run(run, query_ids, ranking) for run in runs)
    return _join(query_ids, first_ranked, second_ranked, (runs[0].name, runs[1].name), ranking)


def _topics(run: Run) -> set[str]:
    """Return the topics of a run. Raise InputError if a score is NaN."""
    names: set[str] = set()
    for part in run.rows.parts(("query_id", "score")):
        batch = part()
        names.update(pc.unique(batch.column("query_id")).to_pylist())
        if "score" in batch.schema.names and pc.any(pc.is_nan(batch.column("score"))).as_py():
            row = pc.index(pc.is_nan(batch.column("score")), value=True).as_py()
            problem = f"a score must be a number, got NaN for topic {batch.column('query_id')[row]}"
            raise InputError(problem, fix="write a number, or leave the document out", path=run.where)
    return names


def _rank_run(run: Run, query_ids: tuple[str, ...], ranking: RankingRules) -> _RankedRun:
    docs, tie_first, _ = rank_all_with_ties(run, query_ids, ranking)
    _check_duplicates(run, query_ids, docs)
    rows = np.flatnonzero(docs.rank <= (ranking.depth or np.iinfo(np.int64).max))
    return _RankedRun(docs.topic[rows], docs.doc.take(int_array(rows)), docs.rank[rows], tie_first[rows])


def _check_duplicates(run: Run, query_ids: tuple[str, ...], docs: ReturnedDocs) -> None:
    encoded = docs.doc.dictionary_encode()
    keys = docs.topic * max(len(encoded.dictionary), 1) + encoded.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(keys, kind="stable")
    repeated = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    if len(repeated):
        row = int(order[repeated[0]])
        query, doc = query_ids[int(docs.topic[row])], docs.doc[row].as_py()
        raise DuplicateDocumentError(query, doc, run.where, run.rows.line(query, doc, 2))


def _join(
    query_ids: tuple[str, ...], first: _RankedRun, second: _RankedRun, names: tuple[str, str], ranking: RankingRules
) -> Aligned:
    """Join on topic and document; a document that a run did not return has rank 0 in it."""
    docs = pa.concat_arrays([first.doc, second.doc])
    encoded = docs.dictionary_encode()
    topics = np.concatenate((first.topic, second.topic))
    keys = topics * max(len(encoded.dictionary), 1) + encoded.indices.to_numpy(zero_copy_only=False)
    count = len(first.topic)
    _, row, position = np.unique(keys, return_index=True, return_inverse=True)
    position = position.ravel()
    ranks, ties = np.zeros((2, len(row)), dtype=np.int64), np.zeros((2, len(row)), dtype=np.int64)
    for i, (ranked, positions) in enumerate(((first, position[:count]), (second, position[count:]))):
        ranks[i, positions], ties[i, positions] = ranked.rank, ranked.tie_first
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


class ReturnedDocs(NamedTuple):
    """All returned documents of the selected topics, ordered by topic and rank; D of them."""

    # topic, rank: (D,): topic code and 1-based rank
    topic: Ints
    rank: Ints
    doc: Strings


def rank_all(run: Run, query_ids: tuple[str, ...], ranking: RankingRules) -> ReturnedDocs:
    """Rank all documents of a run by the rules of `judge`, and select those within the depth."""
    return rank_all_with_scores(run, query_ids, ranking)[0]


def rank_all_with_scores(run: Run, query_ids: tuple[str, ...], ranking: RankingRules) -> tuple[ReturnedDocs, Floats]:
    """Rank all documents of a run, as `rank_all` does, and return the scores by which they are ranked, too."""
    docs, score = _rank(run, query_ids, ranking)
    rows = np.flatnonzero(docs.rank <= (ranking.depth or len(docs.rank)))
    return ReturnedDocs(docs.topic[rows], docs.rank[rows], docs.doc.take(int_array(rows))), score[rows]


def rank_all_with_ties(run: Run, query_ids: tuple[str, ...], ranking: RankingRules) -> tuple[ReturnedDocs, Ints, Ints]:
    """Rank all documents of a run, ignoring the depth; also return the first and last rank of each document's tie."""
    docs, score = _rank(run, query_ids, ranking)
    begins = np.ones(len(score), dtype=np.bool_)
    begins[1:] = (score[1:] != score[:-1]) | (docs.topic[1:] != docs.topic[:-1])
    first = np.flatnonzero(begins)
    group = np.cumsum(begins) - 1
    last = np.append(first[1:], len(score)) - 1
    return docs, docs.rank[first[group]], docs.rank[last[group]]


def _rank(run: Run, query_ids: tuple[str, ...], ranking: RankingRules) -> tuple[ReturnedDocs, Floats]:
    """Rank all documents of a run, ignoring the depth; also return their scores."""
    batches = [part() for part in run.rows.parts(ranking_columns(ranking))]
    if not any(batch.num_rows for batch in batches):
        empty = np.zeros(0, dtype=np.int64)
        return ReturnedDocs(empty, empty, pa.array([], pa.string())), np.zeros(0)
    table = pa.Table.from_batches(batches)
    codes = pc.index_in(table["query_id"], value_set=pa.array(query_ids, pa.string()))
    table, topic = table.filter(pc.is_valid(codes)), pc.drop_null(codes).to_numpy().astype(np.int64)
    docs, score = table["doc_id"].combine_chunks(), _scores(table, ranking)
    order = _order(score, topic, docs, ranking)
    topic = topic[order]
    rank = np.arange(len(topic)) - segment_starts(topic, len(query_ids))[topic] + 1
    return ReturnedDocs(topic, rank, docs.take(int_array(order))), score[order]


def _scores(table: Any, ranking: RankingRules) -> Floats:
    if ranking.ties == "rank":
        return -table["rank"].to_numpy().astype(np.float64)
    if "score" in table.column_names:
        return round_scores(table["score"].to_numpy(), ranking)
    return np.zeros(table.num_rows)


def _order(score: Floats, topic: Ints, docs: Strings, ranking: RankingRules) -> Ints:
    if ranking.ties == "stable":
        return np.lexsort((-score, topic))
    direction = "ascending" if ranking.ties == "docid-rising" else "descending"
    columns = pa.table({"topic": int_array(topic), "score": pa.array(score), "doc": docs})
    keys = [("topic", "ascending"), ("score", "descending"), ("doc", direction)]
    return np.asarray(pc.sort_indices(columns, sort_keys=keys).to_numpy(), dtype=np.int64)
