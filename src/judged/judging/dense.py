"""One value for every returned document, judged or not: for the few measures that ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from judged.data.compute import int_array, pc
from judged.judging.ranking import as_compared, columns_of
from judged.judging.segments import segment_starts

if TYPE_CHECKING:
    from judged._types import Ints, Strings
    from judged.data import Run
    from judged.judging.policies import Ranking


class Returned(NamedTuple):
    """Every returned document of the topics that count, ordered by topic and rank; D of them.

    Attributes
    ----------
    topic, rank : (D,) int64
        The topic's code and the 1-based rank.
    doc : Arrow array of D strings
    """

    topic: Ints
    rank: Ints
    doc: Strings


def all_returned(run: Run, query_ids: tuple[str, ...], ranking: Ranking) -> Returned:
    """Rank a whole run by the rules of `judge`, and keep every document."""
    batches = [part() for part in run.rows.parts(columns_of(ranking))]
    if not any(batch.num_rows for batch in batches):
        none = np.zeros(0, dtype=np.int64)
        return Returned(none, none, pa.array([], pa.string()))
    table = pa.Table.from_batches(batches)
    codes = pc.index_in(table["query_id"], value_set=pa.array(query_ids, pa.string()))
    table, topic = table.filter(pc.is_valid(codes)), pc.drop_null(codes).to_numpy().astype(np.int64)
    docs = table["doc_id"].combine_chunks()
    order = _order(table, topic, docs, ranking)
    topic = topic[order]
    rank = np.arange(len(topic)) - segment_starts(topic, len(query_ids))[topic] + 1
    kept = np.flatnonzero(rank <= (ranking.depth or len(rank)))
    return Returned(topic[kept], rank[kept], docs.take(int_array(order[kept])))


def _order(table: Any, topic: Ints, docs: Strings, ranking: Ranking) -> Ints:
    if ranking.ties == "rank":
        score = -table["rank"].to_numpy().astype(np.float64)
    elif "score" in table.column_names:
        score = as_compared(table["score"].to_numpy(), ranking)
    else:
        score = np.zeros(table.num_rows)
    if ranking.ties == "given":
        return np.lexsort((-score, topic))
    direction = "ascending" if ranking.ties == "docid-rising" else "descending"
    columns = pa.table({"topic": int_array(topic), "score": pa.array(score), "doc": docs})
    keys = [("topic", "ascending"), ("score", "descending"), ("doc", direction)]
    return np.asarray(pc.sort_indices(columns, sort_keys=keys).to_numpy(), dtype=np.int64)
