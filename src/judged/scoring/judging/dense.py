"""One value for every returned document, judged or not: for the few measures that ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from judged.data.compute import int_array, pc
from judged.scoring.judging.ranking import as_compared, columns_of
from judged.scoring.judging.segments import segment_starts

if TYPE_CHECKING:
    from judged._types import Floats, Ints, Strings
    from judged.data.run import Run
    from judged.scoring.judging.ranking import Ranking


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
