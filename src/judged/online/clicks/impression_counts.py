"""Counts of impressions and clicks for click models, grouped in the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.topics import Topics
from judged.errors import InputError
from judged.online.engine import identifier
from judged.online.log import check_column, validate
from judged.online.metrics import lacking_data, online_metric
from judged.online.offline.page_topics import HASH_RANGE, read_topics, topic_ids_by_text
from judged.online.slicing import pages_where
from judged.results.types import ReadOnly

if TYPE_CHECKING:
    from judged.online.log import InteractionLog
    from judged.results.types import Bools, Floats, Ints, Table


def topic_column_and_texts(log: InteractionLog, topics: Any) -> tuple[str | None, dict[str, str] | None]:
    """Return the query column for `count_impressions`, and the topic by query text if `topics` has texts."""
    if topics is None or (isinstance(topics, str) and topics in log.serp.columns):
        return topics, None
    topic_texts = topics if isinstance(topics, Topics) else read_topics(topics, log.serp.columns)
    return "query_norm", {text: topic for text, topic in topic_ids_by_text(topic_texts).items() if topic is not None}


def replace_queries_by_topics(pairs: Table, topic_by_text: dict[str, str] | None) -> Table:
    """Replace the queries of pairs by topic ids; queries without a topic become empty.

    Raises
    ------
    InputError
        If no query has a topic.
    """
    if topic_by_text is None:
        return pairs
    text_index = pc.index_in(pairs["query"], value_set=pa.array(list(topic_by_text), pa.string()))
    if not len(text_index.drop_null()):
        problem = "no query text in the log is equal to the text of a topic"
        raise InputError(problem, fix="use a column of the log with topic IDs")
    topic_ids = pc.fill_null(pa.array(list(topic_by_text.values()), pa.string()).take(text_index.combine_chunks()), "")
    return pairs.set_column(pairs.column_names.index("query"), "query", topic_ids)


MAX_DEPTH = 50  # clicks of a page are the bits of one 64-bit integer, one bit per rank


@dataclass(frozen=True, eq=False)
class ImpressionCounts(ReadOnly):
    """Impressions and clicks by query, document, and rank: C cells.

    Parameters
    ----------
    pairs
        Table of unique, sorted pairs, with the columns ``query`` and ``doc_id``.
    pair
        (C,), row of `pairs`; cells are sorted by it.
    rank
        (C,), from 1.
    last_click
        (C,), rank of the last click above on the page; 0 if there is none, or if it was not counted.
    stratum
        (C,), index in `strata`.
    strata
        Values of the stratum column; one empty string without strata.
    impressions, clicks
        (C,), numbers of pages. Repeated clicks on a result of a page count once.
    by
        Column of the log that identifies queries.
    """

    pairs: Table
    pair: Ints
    rank: Ints
    last_click: Ints
    stratum: Ints
    strata: tuple[str, ...]
    impressions: Ints
    clicks: Ints
    by: str


@dataclass(frozen=True, eq=False)
class PagePatterns(ReadOnly):
    """Distinct pages of a log: the results at each rank, and which were clicked.

    Parameters
    ----------
    pairs
        As in `ImpressionCounts`.
    pair
        (N, K), row of `pairs` at each rank; -1 if the rank is empty.
    clicked
        (N, K), whether the result was clicked.
    pattern, unit
        (V,), pattern of each page of the log, and code of its user or session.
    n_units
        Number of users or sessions.
    by
        As in `ImpressionCounts`.
    keys
        Ids of units in the order of their codes, to match units between counts of the same log. None if unknown.
    """

    pairs: Table
    pair: Ints
    clicked: Bools
    pattern: Ints
    unit: Ints
    n_units: int
    by: str
    keys: Any = None

    def counts(self, weights: Floats | None = None) -> Floats:
        """Count the pages of each pattern, (N,), weighted by unit with `weights`, (U,)."""
        return np.bincount(self.pattern, None if weights is None else weights[self.unit], len(self.pair)).astype(float)


def count_impressions(
    log: InteractionLog,
    *,
    by: str | None = None,
    by_last_click: bool = False,
    stratum: str | None = None,
    pages: Literal["first", "all"] = "first",
    where: str | None = None,
    depth: int = 10,
) -> ImpressionCounts:
    """Count impressions and clicks by query, document, and rank.

    Parameters
    ----------
    log
        Interaction log.
    by
        Column of `log.serp` that identifies queries. None: ``topic`` if the log has it, as in
        `judged.online.against_qrels`, otherwise the normalized text ``query_norm``. Null counts as an empty query.
    by_last_click
        Whether to count by the rank of the last click above, too.
    stratum
        Another column of `log.serp` to count by, such as the device.
    pages
        ``first``: the first page of each result list; ``all``: later pages, too.
    where
        Condition on pages.
    depth
        Deepest rank, at most 50.

    Raises
    ------
    InputError
        If the log has no ranks, a column is missing, or an option is invalid.

    Examples
    --------
    >>> from judged.online.simulation import SimulationPlan, simulate
    >>> log = simulate(SimulationPlan(), seed=1).log()
    >>> cells = count_impressions(log)
    >>> cells.by, int(cells.rank.max()), int(cells.impressions.sum()) >= int(cells.clicks.sum())
    ('query_norm', 10, True)
    """
    with log.engine.scratch():
        by, page_tables = _page_query(log, by, pages, where, depth, stratum)
        # Bits of clicks above the rank; the highest bit is the last click.
        bits_above = "CAST(bits & ((1::BIGINT << (rank - 1)) - 1) AS BIGINT)"
        last_click = f"CASE WHEN {bits_above} = 0 THEN 0 ELSE CAST(floor(log2({bits_above})) AS BIGINT) + 1 END"
        table = log.engine.arrow(f"""
            WITH {page_tables}
            SELECT text.query, object_id, rank, last_click, stratum, impressions, clicks FROM (
                SELECT page.query, object_id, rank, {last_click if by_last_click else "0::BIGINT"} AS last_click,
                    stratum, count(*) AS impressions, CAST(sum((bits >> (rank - 1)) & 1) AS BIGINT) AS clicks
                FROM {log.shown} AS s JOIN page ON page.serp = s.serp WHERE rank <= {depth} GROUP BY ALL) AS cell
            JOIN text ON text.code = cell.query""")
    pairs, pair = _index_pairs(log, table)
    strata = pc.fill_null(table["stratum"].cast(pa.string()), "").combine_chunks().dictionary_encode()
    strata_values, stratum_index = np.unique(np.array(strata.dictionary.to_pylist(), dtype=object), return_inverse=True)
    names = "rank", "last_click", "impressions", "clicks"
    columns = {name: np.asarray(table[name], dtype=np.int64) for name in names}
    # Codes of strata follow the sorted values, not the dictionary order of the engine.
    columns |= {"pair": pair, "stratum": stratum_index[np.asarray(strata.indices)]}
    order = np.lexsort([columns[name] for name in ("stratum", "last_click", "rank", "pair")])
    columns = {name: column[order] for name, column in columns.items()}
    return ImpressionCounts(pairs, strata=tuple(strata_values.tolist()), by=by, **columns)


def count_page_patterns(
    log: InteractionLog,
    *,
    by: str | None = None,
    unit: Literal["user", "session"] = "user",
    pages: Literal["first", "all"] = "first",
    where: str | None = None,
    depth: int = 10,
) -> PagePatterns:
    """Count pages with the same query, results, and clicks.

    Parameters
    ----------
    log, by, pages, where, depth
        As in `count_impressions`.
    unit
        Cluster of dependent pages.

    Raises
    ------
    InputError
        As in `count_impressions`.
    """
    validate(unit=unit)
    orders = "rank, object_id", "object_id, rank"
    # Two 50-bit hashes per list, so that no lists are fetched; equal hashes of different lists are negligible.
    hashes = [f"CAST(sum(hash({columns}) % {HASH_RANGE}) AS BIGINT)" for columns in orders]
    with log.engine.scratch():
        by, page_tables = _page_query(log, by, pages, where, depth, None, f"p.query_id, p.{identifier(unit)} AS unit")
        page_table = log.engine.keep(f"""
            WITH {page_tables}
            SELECT page.serp, query_id, unit, text.query, bits,
                dense_rank() OVER (ORDER BY page.query, s.one, s.other, bits) - 1 AS pattern
            FROM page JOIN text ON text.code = page.query JOIN (SELECT serp, {hashes[0]} AS one, {hashes[1]} AS other
                FROM {log.shown} WHERE rank <= {depth} GROUP BY serp) AS s ON s.serp = page.serp""")
        page_rows = log.engine.arrow(f"SELECT pattern, unit FROM {page_table} ORDER BY query_id")
        table = log.engine.arrow(f"""
            SELECT pattern, query, bits, object_id, CAST(rank AS BIGINT) AS rank FROM {log.shown} AS s JOIN (
                SELECT pattern, query, bits, min(serp) AS serp FROM {page_table} GROUP BY ALL) AS p ON p.serp = s.serp
            WHERE rank <= {depth}""")
    pairs, pair = _index_pairs(log, table)
    pattern, rank, bits = (np.asarray(table[name], dtype=np.int64) for name in ("pattern", "rank", "bits"))
    # Ranks without a result stay -1.
    matrix = np.full((int(pattern.max()) + 1, int(rank.max())), -1)
    matrix[pattern, rank - 1] = pair
    clicked = np.zeros(matrix.shape, dtype=np.bool_)
    clicked[pattern, rank - 1] = (bits >> (rank - 1)) & 1
    # Units are coded in page order, because their keys differ between loads of the same log.
    units = page_rows["unit"].combine_chunks().dictionary_encode()
    unit_codes, keys = np.asarray(units.indices, dtype=np.int64), units.dictionary
    return PagePatterns(pairs, matrix, clicked, np.asarray(page_rows["pattern"]), unit_codes, len(keys), by, keys)


def _page_query(
    log: InteractionLog,
    by: str | None,
    pages: str,
    where: str | None,
    depth: int,
    stratum: str | None,
    unit_column: str = "NULL",
) -> tuple[str, str]:
    """Return the query column, and SQL for the selected pages with query codes and clicks as bits."""
    validate(log=log, by=by, pages=pages, where=where, depth=depth)
    by = by or ("topic" if "topic" in log.serp.columns else "query_norm")
    for column in (by, *([stratum] if stratum else [])):
        check_column(log, column)
    if depth > MAX_DEPTH:
        raise InputError(f"`depth` must be at most {MAX_DEPTH}, got {depth}", fix=f"use depth={MAX_DEPTH} or less")
    if problem := lacking_data(online_metric("CTRAtRank"), log.has):
        raise InputError(
            f"clicks at ranks cannot be counted: {problem}", path=log.name, fix="use a log with ranks and clicks"
        )
    query = f"coalesce(CAST(p.{identifier(by)} AS VARCHAR), '')"
    condition = "" if where is None else f"AND p.serp IN (SELECT serp FROM {pages_where(log, where)[0]})"
    return (
        by,
        f"""
        click AS (
            SELECT serp, bit_or(1::BIGINT << (rank - 1)) AS bits FROM {log.event}
            WHERE action = 'click' AND serp IS NOT NULL AND rank BETWEEN 1 AND {depth} GROUP BY serp),
        text AS (
            SELECT query, row_number() OVER (ORDER BY query) AS code
            FROM (SELECT DISTINCT {query} AS query FROM {log.serp} AS p)),
        page AS (
            SELECT p.serp, text.code AS query, coalesce(click.bits, 0) AS bits, {unit_column},
                {f"CAST(p.{identifier(stratum)} AS VARCHAR)" if stratum else "NULL"} AS stratum
            FROM {log.serp} AS p JOIN text ON text.query = {query} LEFT JOIN click ON click.serp = p.serp
            WHERE {"p.page = 1" if pages == "first" else "true"} {condition})""",
    )


def _index_pairs(log: InteractionLog, table: Table) -> tuple[Table, Ints]:
    if not len(table):
        raise InputError(
            f"the selected pages of {log.name} have no results", fix="select other pages with where or pages"
        )
    codes, texts = list[Any](), list[Any]()
    for column in ("query", "object_id"):
        encoded = table[column].combine_chunks().dictionary_encode()
        order = pc.sort_indices(encoded.dictionary)
        texts.append(encoded.dictionary.take(order))
        codes.append(np.argsort(order.to_numpy())[np.asarray(encoded.indices)])
    unique_pairs, pair = np.unique(codes[0] * len(texts[1]) + codes[1], return_inverse=True)
    query, document = np.divmod(unique_pairs, len(texts[1]))
    return pa.table({"query": texts[0].take(pa.array(query)), "doc_id": texts[1].take(pa.array(document))}), pair
