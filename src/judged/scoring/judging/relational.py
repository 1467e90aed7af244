"""The join of `judge` as SQL, for runs that stay in a database: hits come back, and counts, and nothing else.

The rank of a hit is the number of rows of its run and topic that are not below it, itself among them. That is a join
and a group-by, and no window: windows sort every topic and not all engines can do that beyond memory. All numbers
that come back are whole, but for the scores themselves; whatever is summed is summed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from judged.data.compute import int_array, pc
from judged.data.engine_rows import as_text, quoted
from judged.errors import InputError
from judged.scoring.judging.ranking import DuplicateDocumentError, RunHits

if TYPE_CHECKING:
    from judged.data.engine_rows import EngineRows, EngineTable
    from judged.data.index import QrelsIndex
    from judged.results.types import Table
    from judged.scoring.judging.ranking import Ranking

_TOO_LARGE = "3.4028235677973366e38"  # what single precision rounds to infinity, from here on


def find_hits(index: QrelsIndex, rows: EngineRows, ranking: Ranking) -> RunHits:
    """Find the judged rows of a run and their ranks where the run is."""
    if ranking.ties == "stable":
        raise InputError(
            "the rows of a table have no order that ties=stable could keep",
            fix="choose docid, docid-rising or rank; or fetch the run and give it as a data frame",
            path=rows.where,
        )
    table = rows.table
    own = table.counts.filter(pc.equal(table.counts["run"], rows.name))
    twice = pc.index(pc.is_valid(own["twice"]), value=True).as_py()
    if twice >= 0:
        raise DuplicateDocumentError(own["query"][twice].as_py(), own["twice"][twice].as_py(), rows.where)
    known = table.hits
    if not (known and known[0] is index and known[1:3] == (ranking.ties, ranking.precision)):
        table.hits = known = (index, ranking.ties, ranking.precision, _joined(index, table, ranking))
    hits = known[3].filter(pc.equal(known[3]["run"], rows.name))
    row, above, before, last = (hits[name].to_numpy().astype(np.int64) for name in ("row", "above", "before", "last"))
    names, returned = own["query"].to_pylist(), own["returned"].to_numpy().astype(np.int64)
    topic = index.topic[row]
    most = np.zeros(len(index.topics), dtype=np.int64)
    for name, count in zip(names, returned.tolist(), strict=True):
        if (code := index.codes.get(name, -1)) >= 0:
            most[code] = count
    if (last > most[topic]).any():
        raise InputError("the table changed while it was read", fix="read a snapshot of it", path=rows.where)
    return RunHits(
        names=tuple(names),
        returned=returned,
        topic=topic,
        doc=pa.array([], pa.string()),
        rank=above + before + 1,
        tie_first=above + 1,
        tie_last=last,
        score=hits["score"].to_numpy().astype(np.float64),
        row=row,
    )


def _joined(index: QrelsIndex, table: EngineTable, ranking: Ranking) -> Table:
    """Ask for the hits of all runs: ``run, row, score, above, before, last``."""
    qrels = pa.table(
        {
            "query": index.topic_ids.take(int_array(index.topic)),
            "doc": index.docs.take(int_array(index.doc)),
            "row": index.row,
        }
    )
    hits = table.engine.ask(hits_sql(table, ranking), judged_given=qrels)
    return hits.set_column(hits.schema.get_field_index("run"), "run", as_text(hits["run"]))


def hits_sql(table: EngineTable, ranking: Ranking) -> str:
    """Write the join, in DuckDB's words."""
    # Each hit is not below itself, so that an inner join loses none. An outer one that keeps all hits could not send
    # the few hits to the many rows, as an engine does only with the side that need not be kept.
    earlier = "<" if ranking.ties == "docid-rising" else ">"
    return f"""
        WITH returned AS (
            SELECT {table.text("run_id")} AS run, {table.text("query_id")} AS query, {table.text("doc_id")} AS doc,
                {_score(table, ranking)} AS score
            FROM judged_rows
            WHERE {table.text("query_id")} IN (SELECT encode(query) FROM judged_given)
        ), hits AS MATERIALIZED (
            SELECT r.run, r.query, r.doc, r.score, q.row
            FROM returned AS r JOIN judged_given AS q ON r.query = encode(q.query) AND r.doc = encode(q.doc)
        )
        SELECT h.run, h.row, any_value(h.score) AS score,
            count(CASE WHEN b.score > h.score THEN 1 END) AS above,
            count(CASE WHEN b.score = h.score AND b.doc {earlier} h.doc THEN 1 END) AS before,
            count(*) AS last
        FROM hits AS h JOIN returned AS b ON b.run = h.run AND b.query = h.query AND b.score >= h.score
        GROUP BY h.run, h.row
    """


def _score(table: EngineTable, ranking: Ranking) -> str:
    """Write what documents are ranked by: the higher the better."""
    ranked_by = "rank" if ranking.ties == "rank" or "score" not in table.columns else "score"
    if ranked_by not in table.columns:
        return "CAST(0 AS DOUBLE)"
    score = f"CAST({quoted(table.columns[ranked_by])} AS DOUBLE)"
    if ranked_by == "rank":
        return f"-{score}"
    if ranking.precision == "double":
        return score
    return f"""CASE WHEN {score} >= {_TOO_LARGE} THEN CAST('Infinity' AS DOUBLE)
        WHEN {score} <= -{_TOO_LARGE} THEN -CAST('Infinity' AS DOUBLE)
        ELSE CAST(CAST({score} AS FLOAT) AS DOUBLE) END"""
