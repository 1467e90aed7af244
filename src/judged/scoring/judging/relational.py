"""The join of `judge` in SQL, for runs in a database: only hits and counts are fetched.

The rank of a hit is the number of rows of its run and topic that are not below it, including itself. That needs a join
and a group-by, but no window functions: windows sort every topic, and not all engines can sort more rows than fit into
memory. The fetched numbers are integers, except the scores; all sums of floats are computed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from judged.data.compute import int_array, pc
from judged.data.engine_rows import quote_identifier, to_utf8_text
from judged.errors import InputError
from judged.scoring.judging.ranking import DuplicateDocumentError, RunHits

if TYPE_CHECKING:
    from judged.data.engine_rows import EngineRows, EngineTable
    from judged.data.index import QrelsIndex
    from judged.results.types import Table
    from judged.scoring.judging.ranking import RankingRules

_FLOAT32_OVERFLOW = "3.4028235677973366e38"  # the smallest number that rounds to infinity in single precision


def find_hits(index: QrelsIndex, rows: EngineRows, ranking: RankingRules) -> RunHits:
    """Find the judged rows of a run and their ranks, in the database of the run."""
    if ranking.ties == "stable":
        raise InputError(
            "ties=stable requires an order of rows, but a table has none",
            fix="use ties=docid, ties=docid-rising or ties=rank; or fetch the run and pass it as a data frame",
            path=rows.where,
        )
    table = rows.table
    run_topics = table.counts.filter(pc.equal(table.counts["run"], rows.name))
    duplicate = pc.index(pc.is_valid(run_topics["twice"]), value=True).as_py()
    if duplicate >= 0:
        query, doc = run_topics["query"][duplicate].as_py(), run_topics["twice"][duplicate].as_py()
        raise DuplicateDocumentError(query, doc, rows.where)
    # One query finds the hits of all runs of the table, so the table caches them for its next run.
    cached = table.hits
    if not (cached and cached[0] is index and cached[1:3] == (ranking.ties, ranking.precision)):
        table.hits = cached = (index, ranking.ties, ranking.precision, _query_hits(index, table, ranking))
    hits = cached[3].filter(pc.equal(cached[3]["run"], rows.name))
    row, above, before, last = (hits[name].to_numpy().astype(np.int64) for name in ("row", "above", "before", "last"))
    names, returned = run_topics["query"].to_pylist(), run_topics["returned"].to_numpy().astype(np.int64)
    topic = index.topic[row]
    row_counts = np.zeros(len(index.topics), dtype=np.int64)
    for name, count in zip(names, returned.tolist(), strict=True):
        if (code := index.codes.get(name, -1)) >= 0:
            row_counts[code] = count
    if (last > row_counts[topic]).any():
        raise InputError("the table changed while it was read", fix="read a snapshot of the table", path=rows.where)
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


def _query_hits(index: QrelsIndex, table: EngineTable, ranking: RankingRules) -> Table:
    """Query the hits of all runs: ``run, row, score, above, before, last``."""
    qrels = pa.table(
        {
            "query": index.topic_ids.take(int_array(index.topic)),
            "doc": index.docs.take(int_array(index.doc)),
            "row": index.row,
        }
    )
    hits = table.engine.query(hits_sql(table, ranking), judged_input=qrels)
    return hits.set_column(hits.schema.get_field_index("run"), "run", to_utf8_text(hits["run"]))


def hits_sql(table: EngineTable, ranking: RankingRules) -> str:
    """Return the query of the join in DuckDB's SQL."""
    # Each hit is not below itself, so an inner join loses no hit. With an outer join, an engine could not broadcast the
    # few hits to the many rows, because it broadcasts only the side that may lose rows.
    earlier = "<" if ranking.ties == "docid-rising" else ">"
    return f"""
        WITH returned AS (
            SELECT {table.id_bytes_sql("run_id")} AS run, {table.id_bytes_sql("query_id")} AS query,
                {table.id_bytes_sql("doc_id")} AS doc,
                {_score(table, ranking)} AS score
            FROM judged_rows
            WHERE {table.id_bytes_sql("query_id")} IN (SELECT encode(query) FROM judged_input)
        ), hits AS MATERIALIZED (
            SELECT r.run, r.query, r.doc, r.score, q.row
            FROM returned AS r JOIN judged_input AS q ON r.query = encode(q.query) AND r.doc = encode(q.doc)
        )
        SELECT h.run, h.row, any_value(h.score) AS score,
            count(CASE WHEN b.score > h.score THEN 1 END) AS above,
            count(CASE WHEN b.score = h.score AND b.doc {earlier} h.doc THEN 1 END) AS before,
            count(*) AS last
        FROM hits AS h JOIN returned AS b ON b.run = h.run AND b.query = h.query AND b.score >= h.score
        GROUP BY h.run, h.row
    """


def _score(table: EngineTable, ranking: RankingRules) -> str:
    """Return the expression by which documents are ranked, the highest first."""
    ranked_by = "rank" if ranking.ties == "rank" or "score" not in table.columns else "score"
    if ranked_by not in table.columns:
        return "CAST(0 AS DOUBLE)"
    score = f"CAST({quote_identifier(table.columns[ranked_by])} AS DOUBLE)"
    if ranked_by == "rank":
        return f"-{score}"
    if ranking.precision == "double":
        return score
    return f"""CASE WHEN {score} >= {_FLOAT32_OVERFLOW} THEN CAST('Infinity' AS DOUBLE)
        WHEN {score} <= -{_FLOAT32_OVERFLOW} THEN -CAST('Infinity' AS DOUBLE)
        ELSE CAST(CAST({score} AS FLOAT) AS DOUBLE) END"""
