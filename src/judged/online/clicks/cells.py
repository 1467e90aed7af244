"""A log as counts: all that a click model needs of it, made by one grouping in the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.topics import Topics
from judged.errors import InputError
from judged.online.engine import identifier
from judged.online.log import need, need_column
from judged.online.metrics import missing, online_metric
from judged.online.offline.joined import BELOW, topics_at, topics_by_text
from judged.online.slicing import pages_where
from judged.results.types import ReadOnly

if TYPE_CHECKING:
    from judged.online.log import InteractionLog
    from judged.results.types import Bools, Floats, Ints, Table


def column_and_texts(log: InteractionLog, topics: Any) -> tuple[str | None, dict[str, str] | None]:
    """Tell the column that tells queries apart, as `cells_of` takes it, and the topic of each text where texts do."""
    if topics is None or (isinstance(topics, str) and topics in log.serp.columns):
        return topics, None
    known = topics if isinstance(topics, Topics) else topics_at(topics, log.serp.columns)
    return "query_norm", {text: topic for text, topic in topics_by_text(known).items() if topic is not None}


def with_topics(pairs: Table, texts: dict[str, str] | None) -> Table:
    """Call the queries of pairs by their topics; those without one keep an empty name.

    Raises
    ------
    InputError
        If no query has a topic.
    """
    if texts is None:
        return pairs
    at = pc.index_in(pairs["query"], value_set=pa.array(list(texts), pa.string()))
    if not len(at.drop_null()):
        raise InputError("no query of the log is the text of a topic", fix="name a column of the log that has topics")
    names = pc.fill_null(pa.array(list(texts.values()), pa.string()).take(at.combine_chunks()), "")
    return pairs.set_column(pairs.column_names.index("query"), "query", names)


DEEPEST = 50  # ranks of a page stand as bits in one number, whose logarithm tells the highest


@dataclass(frozen=True, eq=False)
class Cells(ReadOnly):
    """How often each query showed each document at each rank, and how often it was clicked there.

    Parameters
    ----------
    pairs
        Columns ``query`` and ``doc_id``: all pairs, in order, each once.
    pair
        (C,): row of `pairs`; the cells are in order of it.
    rank
        (C,): from 1.
    last
        (C,): rank of the lowest click above it on the page; 0 where there is none, or where it was not asked for.
    stratum
        (C,): place in `strata`.
    strata
        Values of the column that was asked for; one empty one where none was.
    shown, clicked
        (C,): pages. Repeated clicks on one result of a page count once.
    by
        The column of the log that tells queries apart.
    """

    pairs: Table
    pair: Ints
    rank: Ints
    last: Ints
    stratum: Ints
    strata: tuple[str, ...]
    shown: Ints
    clicked: Ints
    by: str


@dataclass(frozen=True, eq=False)
class Patterns(ReadOnly):
    """The different pages of a log: what was shown in which order, and what of it was clicked.

    Parameters
    ----------
    pairs
        As of `Cells`.
    pair
        (N, K): row of `pairs` at each rank; -1 where nothing is shown.
    clicked
        (N, K).
    pattern, unit
        (V,): of each page of the log its pattern, and the code of its user or session.
    units
        How many units there are.
    by
        As of `Cells`.
    keys
        Of units in order of their codes, by which units of other pages of the log are found; None: they have none.
    """

    pairs: Table
    pair: Ints
    clicked: Bools
    pattern: Ints
    unit: Ints
    units: int
    by: str
    keys: Any = None

    def counts(self, weights: Floats | None = None) -> Floats:
        """Count the pages of each pattern, (N,): those of each unit as often as its weight, (U,), says."""
        return np.bincount(self.pattern, None if weights is None else weights[self.unit], len(self.pair)).astype(float)


def cells_of(
    log: InteractionLog,
    *,
    by: str | None = None,
    last: bool = False,
    stratum: str | None = None,
    pages: Literal["first", "all"] = "first",
    where: str | None = None,
    depth: int = 10,
) -> Cells:
    """Count what a log shows by query, document and rank.

    Parameters
    ----------
    log
        What users did.
    by
        The column of `log.serp` that tells queries apart: results of one are about the same. None: ``topic`` where the
        log has it, as `judged.online.against_qrels` does, or else ``query_norm``, the text. A page without one counts
        under the empty query.
    last
        Count by the rank of the lowest click above, too.
    stratum
        Count by this column of `log.serp`, too: a device, a layout.
    pages
        ``first``: of each result list only its first page; ``all``: later ones too.
    where
        Only pages that meet this condition.
    depth
        Ranks below this are not looked at; at most 50.

    Raises
    ------
    InputError
        If the log has no ranks, a column is missing, or an option makes no sense.

    Examples
    --------
    >>> from judged.online.simulation import SimulationPlan, simulate
    >>> log = simulate(SimulationPlan(), seed=1).log()
    >>> cells = cells_of(log)
    >>> cells.by, int(cells.rank.max()), int(cells.shown.sum()) >= int(cells.clicked.sum())
    ('query_norm', 10, True)
    """
    with log.engine.scratch():
        by, page = _pages(log, by, pages, where, depth, stratum)
        above = "CAST(bits & ((1::BIGINT << (rank - 1)) - 1) AS BIGINT)"
        of_last = f"CASE WHEN {above} = 0 THEN 0 ELSE CAST(floor(log2({above})) AS BIGINT) + 1 END"
        table = log.engine.arrow(f"""
            WITH {page}
            SELECT text.query, object_id, rank, last, stratum, shown, clicked FROM (
                SELECT page.query, object_id, rank, {of_last if last else "0::BIGINT"} AS last,
                    stratum, count(*) AS shown, CAST(sum((bits >> (rank - 1)) & 1) AS BIGINT) AS clicked
                FROM {log.shown} AS s JOIN page ON page.serp = s.serp WHERE rank <= {depth} GROUP BY ALL) AS cell
            JOIN text ON text.code = cell.query""")
    pairs, pair = _pairs(log, table)
    strata = pc.fill_null(table["stratum"].cast(pa.string()), "").combine_chunks().dictionary_encode()
    values, place = np.unique(np.array(strata.dictionary.to_pylist(), dtype=object), return_inverse=True)
    columns = {name: np.asarray(table[name], dtype=np.int64) for name in ("rank", "last", "shown", "clicked")}
    columns |= {"pair": pair, "stratum": place[np.asarray(strata.indices)]}
    order = np.lexsort([columns[name] for name in ("stratum", "last", "rank", "pair")])
    columns = {name: column[order] for name, column in columns.items()}
    return Cells(pairs, strata=tuple(values.tolist()), by=by, **columns)


def patterns_of(
    log: InteractionLog,
    *,
    by: str | None = None,
    unit: Literal["user", "session"] = "user",
    pages: Literal["first", "all"] = "first",
    where: str | None = None,
    depth: int = 10,
) -> Patterns:
    """Count the pages of a log that are alike: with the same query, results and clicks.

    Parameters
    ----------
    log, by, pages, where, depth
        As of `cells_of`.
    unit
        Whose pages are not independent.

    Raises
    ------
    InputError
        As `cells_of` does.
    """
    need(unit=unit)
    hashes = [f"CAST(sum(hash({parts}) % {BELOW}) AS BIGINT)" for parts in ("rank, object_id", "object_id, rank")]
    with log.engine.scratch():
        by, page = _pages(log, by, pages, where, depth, None, f"p.query_id, p.{identifier(unit)} AS unit")
        alike = log.engine.keep(f"""
            WITH {page}
            SELECT page.serp, query_id, unit, text.query, bits,
                dense_rank() OVER (ORDER BY page.query, s.one, s.other, bits) - 1 AS pattern
            FROM page JOIN text ON text.code = page.query JOIN (SELECT serp, {hashes[0]} AS one, {hashes[1]} AS other
                FROM {log.shown} WHERE rank <= {depth} GROUP BY serp) AS s ON s.serp = page.serp""")
        every = log.engine.arrow(f"SELECT pattern, unit FROM {alike} ORDER BY query_id")
        table = log.engine.arrow(f"""
            SELECT pattern, query, bits, object_id, CAST(rank AS BIGINT) AS rank FROM {log.shown} AS s JOIN (
                SELECT pattern, query, bits, min(serp) AS serp FROM {alike} GROUP BY ALL) AS p ON p.serp = s.serp
            WHERE rank <= {depth}""")
    pairs, pair = _pairs(log, table)
    pattern, rank, bits = (np.asarray(table[name], dtype=np.int64) for name in ("pattern", "rank", "bits"))
    matrix = np.full((int(pattern.max()) + 1, int(rank.max())), -1)
    matrix[pattern, rank - 1] = pair
    clicked = np.zeros(matrix.shape, dtype=np.bool_)
    clicked[pattern, rank - 1] = (bits >> (rank - 1)) & 1
    units = every["unit"].combine_chunks().dictionary_encode()  # numbered as they come: keys may be others next time
    codes = np.asarray(units.indices, dtype=np.int64)
    keys = units.dictionary
    return Patterns(pairs, matrix, clicked, np.asarray(every["pattern"]), codes, len(keys), by, keys)


def _pages(
    log: InteractionLog,
    by: str | None,
    pages: str,
    where: str | None,
    depth: int,
    stratum: str | None,
    also: str = "NULL",
) -> tuple[str, str]:
    """Choose what tells queries apart, and write the pages that count: queries as numbers, clicks as bits."""
    need(log=log, by=by, pages=pages, where=where, depth=depth)
    by = by or ("topic" if "topic" in log.serp.columns else "query_norm")
    for name in (by, *([stratum] if stratum else [])):
        need_column(log, name)
    if depth > DEEPEST:
        raise InputError(f"depth is {depth}", fix=f"give at most {DEEPEST}")
    if lacking := missing(online_metric("CTRAtRank"), log.has):
        raise InputError(f"clicks at ranks cannot be counted: {lacking}", path=log.name, fix="take another log")
    query = f"coalesce(CAST(p.{identifier(by)} AS VARCHAR), '')"
    chosen = "" if where is None else f"AND p.serp IN (SELECT serp FROM {pages_where(log, where)[0]})"
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
            SELECT p.serp, text.code AS query, coalesce(click.bits, 0) AS bits, {also},
                {f"CAST(p.{identifier(stratum)} AS VARCHAR)" if stratum else "NULL"} AS stratum
            FROM {log.serp} AS p JOIN text ON text.query = {query} LEFT JOIN click ON click.serp = p.serp
            WHERE {"p.page = 1" if pages == "first" else "true"} {chosen})""",
    )


def _pairs(log: InteractionLog, table: Table) -> tuple[Table, Ints]:
    """Number the pairs of query and document in their order; an empty table is refused."""
    if not len(table):
        raise InputError(f"{log.name} shows no result on the pages that count", fix="count other pages")
    codes, texts = list[Any](), list[Any]()
    for name in ("query", "object_id"):
        coded = table[name].combine_chunks().dictionary_encode()
        order = pc.sort_indices(coded.dictionary)
        texts.append(coded.dictionary.take(order))
        codes.append(np.argsort(order.to_numpy())[np.asarray(coded.indices)])
    different, pair = np.unique(codes[0] * len(texts[1]) + codes[1], return_inverse=True)
    query, document = np.divmod(different, len(texts[1]))
    return pa.table({"query": texts[0].take(pa.array(query)), "doc_id": texts[1].take(pa.array(document))}), pair
