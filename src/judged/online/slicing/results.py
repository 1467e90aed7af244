"""Slices by results, clicks, query text, and traffic; and `slice_pages`, which finds the slicing of a name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.comparison.slicing.topic_slices import FREQUENCY, LENGTH, frequency_bands, sort_slice_values
from judged.data.attributes import Bands
from judged.data.freshness import NO_DATE, dated_documents
from judged.data.query_text import query_kind, query_script, word_count
from judged.errors import InputError
from judged.online.engine import Relation, literal, sql_list
from judged.online.slicing.columns import BY_TIME, MAX_VALUES, SliceQuery, band_sql, by_column, by_time
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from judged.online.log import InteractionLog
    from judged.results.blocks import Note


PAGE = Bands((2, 3, 4), ("1", "2", "3", "4+"))
"""Number of the result page."""

RESULTS = Bands((1, 10, 100, 1000), ("zero", "1-9", "10-99", "100-999", "1000+"))
"""Number of results."""

FIRST_CLICK = Bands((2, 4, 11), ("1", "2-3", "4-10", "11+"))
"""Rank of the first click."""

NONE = "none"
"""Slice of pages without a click."""

_OUTCOME = "these slices depend on clicks, so they cannot explain click metrics or compare variants"
_DAY = 86_400_000  # milliseconds
_EPOCH = date(1970, 1, 1).toordinal()


def by_page(serp: Relation) -> SliceQuery:
    """Slice by the number of the result page."""
    return SliceQuery(f"SELECT serp, {band_sql('page', PAGE)} AS slice FROM {serp}", PAGE.names)


def by_filter(serp: Relation) -> SliceQuery:
    """Slice by whether a filter or facet was set."""
    has_filter = serp.engine.rows(f"SELECT count(*) AS n FROM (SELECT 1 FROM {serp} WHERE filtered LIMIT 1)")[0]["n"]
    note = "" if has_filter else "no page has a filter, or the log does not record filters"
    name_sql = "CASE WHEN filtered THEN 'filtered' ELSE 'not filtered' END"
    return SliceQuery(f"SELECT serp, {name_sql} AS slice FROM {serp}", ("not filtered", "filtered"), note)


def by_results(serp: Relation) -> SliceQuery:
    """Slice by the number of results that the engine found or, if that is not logged, returned for this page."""
    name_sql = band_sql("coalesce(n_total, n_returned)", RESULTS)
    return SliceQuery(f"SELECT serp, {name_sql} AS slice FROM {serp}", RESULTS.names)


def by_first_click(log: InteractionLog) -> SliceQuery:
    """Slice by the rank of the first click on the page; of simultaneous clicks, by the best rank."""
    name_sql = f"CASE WHEN f.serp IS NULL THEN {literal(NONE)} ELSE {band_sql('f.rank', FIRST_CLICK)} END"
    sql = f"""
        SELECT p.serp, {name_sql} AS slice FROM {log.serp} AS p
        LEFT JOIN (SELECT serp, min(rank) AS rank FROM {_first_clicks(log)} GROUP BY serp) AS f ON f.serp = p.serp"""
    return SliceQuery(sql, (*FIRST_CLICK.names, NONE), _OUTCOME)


def _first_clicks(log: InteractionLog) -> Relation:
    """Select the earliest clicks of each page: ``serp``, ``rank``, ``object_id``."""
    if "clicks" not in log.has:
        raise InputError("this log has no clicks", fix="slice by another attribute", path=log.name)
    return log.engine.query(f"""
        SELECT serp, rank, object_id FROM (
            SELECT serp, rank, object_id, time_ms, min(time_ms) OVER (PARTITION BY serp) AS first_ms FROM {log.event}
            WHERE action = 'click' AND serp IS NOT NULL)
        WHERE time_ms = first_ms""")


def by_freshness(log: InteractionLog, documents: Any, *, clicked: bool = False) -> SliceQuery:
    """Slice by the age of the newest result of each page, in whole UTC days.

    Parameters
    ----------
    log
        The log.
    documents
        Input of `judged.data.dated_documents`. The reference day is the day of the page, unless `as_of` is set.
    clicked
        Whether only the first click counts, and not all shown results. Pages without a click are ``none``.

    Raises
    ------
    InputError
        If there are no dates, or the log has no shown results or clicks.
    """
    if not clicked and "shown" not in log.has:
        raise InputError("this log has no shown results", fix="slice by freshness:clicked", path=log.name)
    if documents is None:
        problem = "slicing by freshness requires the dates of results, which a log does not have"
        raise InputError(problem, fix="pass documents= with a column of dates")
    dated = dated_documents(documents)
    days = [day.toordinal() - _EPOCH for day in dated.dates.values()]
    dates = log.engine.register(
        pa.table({"object_id": pa.array(dated.dates, pa.string()), "day": pa.array(days, pa.int64())})
    )
    results = _first_clicks(log) if clicked else log.shown
    page_day = f"CAST(floor(p.time_ms / {_DAY}.0) AS BIGINT)"
    reference = page_day if dated.is_newest else str(dated.as_of.toordinal() - _EPOCH)
    sql = f"""
        SELECT p.serp, CASE WHEN d.serp IS NULL THEN {literal(NONE) if clicked else "NULL"}
            WHEN d.newest IS NULL THEN {literal(NO_DATE)}
            ELSE {band_sql(f"({reference} - d.newest)", dated.bands)} END AS slice FROM {log.serp} AS p
        LEFT JOIN (
            SELECT w.serp, max(m.day) AS newest FROM {results} AS w
            LEFT JOIN {dates} AS m ON m.object_id = w.object_id GROUP BY w.serp) AS d ON d.serp = p.serp"""
    warnings = (dated.note("the day of the page" if dated.is_newest else ""),)
    if not clicked:
        return SliceQuery(sql, dated.band_names, "age of the newest shown result", warnings=warnings)
    note = f"age of the first clicked result; {_OUTCOME}"
    return SliceQuery(sql, (*dated.band_names, NONE), note, warnings=warnings)


WORDS = Bands((2, 3, 5), ("1", "2", "3-4", "5+"))
"""Number of words of a query; the bands are finer than those of topics, because queries of logs are shorter."""

TRAFFIC = (50.0, 90.0)
"""Cumulative percentages of pages at which head and torso end."""

_BATCH_TEXTS = 100_000
_CACHED_SHAPES = 100_000
_LETTERS, _DIGITS = re.compile("[A-Za-z]+"), re.compile("[0-9]+")


def by_script(serp: Relation) -> SliceQuery:
    """Slice by the script of most letters, like ``script`` of topics."""
    # Few distinct shapes occur in a log, so the cache avoids most of the work.
    script_of_shape = lru_cache(_CACHED_SHAPES)(query_script)
    return SliceQuery(_text_slices_sql(serp, lambda text: script_of_shape(_shape(text))))


def _by_word_count(serp: Relation, bands: Bands) -> SliceQuery:
    count_of_shape = lru_cache(_CACHED_SHAPES)(word_count)
    sql = _text_slices_sql(serp, lambda text: bands.label(count_of_shape(_shape(text)) or None))
    return SliceQuery(sql, bands.names)


def _shape(text: str) -> str:
    """Map ASCII words to a canonical form with the same word count and script, so that few texts are analyzed."""
    return _DIGITS.sub("1", _LETTERS.sub("a", text)) if text.isascii() else text


def _text_slices_sql(serp: Relation, label: Callable[[str], str | None]) -> str:
    """Return the SQL of the slice of each page's query."""
    # The empty table gives the types if there are no queries.
    tables = [pa.table({"query_norm": pa.array([], pa.string()), "slice": pa.array([], pa.string())})]
    texts = serp.engine.arrow(f"SELECT DISTINCT query_norm FROM {serp} WHERE query_norm IS NOT NULL")
    for batch in texts.to_batches(max_chunksize=_BATCH_TEXTS):
        labels = [label(text) for text in batch["query_norm"].to_pylist()]
        columns = {"query_norm": batch["query_norm"].cast(pa.string()), "slice": pa.array(labels, pa.string())}
        tables.append(pa.table(columns))
    slice_table = serp.engine.register(pa.concat_tables(tables))
    return f"SELECT p.serp, k.slice FROM {serp} AS p LEFT JOIN {slice_table} AS k ON k.query_norm = p.query_norm"


def by_traffic(serp: Relation, percentages: tuple[float, float] = TRAFFIC) -> SliceQuery:
    """Slice into head, torso, and tail queries, by the number of pages with the same query.

    The rule is that of `judged.comparison.slicing.topic_slices.frequency_bands`; equally frequent queries are in the
    same band. Pages without a query do not count.

    Parameters
    ----------
    serp
        Pages.
    percentages
        Cumulative percentages of pages, between 0 and 100, at which head and torso end.
    """
    counts = serp.engine.keep(
        f"SELECT query_norm, count(*) AS pages FROM {serp} WHERE query_norm IS NOT NULL GROUP BY query_norm", "texts"
    )
    frequencies = serp.engine.arrow(f"SELECT pages, count(*) AS texts FROM {counts} GROUP BY pages")
    if not frequencies.num_rows:
        return SliceQuery(f"SELECT serp, NULL AS slice FROM {serp}", FREQUENCY)
    pages_by_text = np.repeat(frequencies["pages"].to_numpy(), frequencies["texts"].to_numpy()).tolist()
    bands = frequency_bands(pages_by_text, (percentages[0] / 100, percentages[1] / 100))
    # Bands increase with the number of pages, so two thresholds define them.
    min_pages = {band: pages for pages, band in sorted(set(zip(pages_by_text, bands, strict=True)), reverse=True)}
    min_head = min_pages["head"]
    name_sql = f"""CASE WHEN k.pages >= {min_head} THEN 'head'
        WHEN k.pages >= {min_pages.get("torso", min_head)} THEN 'torso' WHEN k.pages IS NOT NULL THEN 'tail' END"""
    join = f"LEFT JOIN {counts} AS k ON k.query_norm = p.query_norm"
    return SliceQuery(f"SELECT p.serp, {name_sql} AS slice FROM {serp} AS p {join}", FREQUENCY)


def traffic_cuts(text: str) -> tuple[float, float]:
    """Parse the percentages of `by_traffic`, such as ``50,90``.

    Raises
    ------
    InputError
        If the text is not two increasing percentages.
    """
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        low, high = 0.0, 0.0
    if not 0 < low < high < 100:
        problem = f"traffic bands must be two increasing percentages between 0 and 100, got {text!r}"
        raise InputError(problem, fix="use traffic:50,90, for example")
    return low, high


def by_novelty(serp: Relation) -> SliceQuery:
    """Slice into pages whose query another session had issued before in this log (``seen``), and others (``new``).

    Paging and returning to a page within a session do not count. Queries before the start of the log are unknown, so
    its first days have too many new queries.
    """
    # `issued`: start of each query in each session; `first_sessions`: the session that issued it first; `second`: its
    # first start in any other session. For the first session, only `second` counts as earlier.
    sql = f"""
        WITH issued AS (
            SELECT query_norm, session, min(time_ms) AS start FROM {serp} WHERE query_norm IS NOT NULL
            GROUP BY query_norm, session),
        first AS (SELECT query_norm, min(start) AS first_ms FROM issued GROUP BY query_norm),
        first_sessions AS (
            SELECT a.query_norm, min(a.session) AS first_session, min(f.first_ms) AS first_ms
            FROM issued AS a JOIN first AS f ON f.query_norm = a.query_norm AND f.first_ms = a.start
            GROUP BY a.query_norm),
        second AS (
            SELECT a.query_norm, min(a.start) AS second_ms
            FROM issued AS a JOIN first_sessions AS o ON o.query_norm = a.query_norm AND o.first_session <> a.session
            GROUP BY a.query_norm)
        SELECT p.serp, CASE WHEN o.first_session IS NULL THEN NULL
            WHEN CASE WHEN p.session = o.first_session THEN s.second_ms ELSE o.first_ms END < p.time_ms THEN 'seen'
            ELSE 'new' END AS slice
        FROM {serp} AS p LEFT JOIN first_sessions AS o ON o.query_norm = p.query_norm
        LEFT JOIN second AS s ON s.query_norm = p.query_norm"""
    note = "new: queries that do not occur earlier in this log, so the first days of the log have too many new queries"
    return SliceQuery(sql, ("new", "seen"), note)


UNKNOWN = "unknown"
"""Slice of pages without a value."""

OTHER = "other"
"""Slice of all values but the most frequent ones, if there are more than `MAX_VALUES`."""

_COLUMNS = (
    "application", "language", "device", "experiment", "variant", "ranker", "query_norm", "rescued", "zero_results",
    "latency_ms", "n_shown",
)  # fmt: skip
_BY_NAME = {
    "words": partial(_by_word_count, bands=WORDS),
    "length": partial(_by_word_count, bands=LENGTH),
    "query class": lambda serp: SliceQuery(_text_slices_sql(serp, query_kind)),
    "script": by_script,
    "seen": by_novelty,
    "filtered": by_filter,
    "page": by_page,
    "results": by_results,
}
_WITH_PARAMETERS = ("traffic", "first click", "freshness", "freshness:clicked")
_SYNONYMS = {
    "source": "application", "source type": "application", "kind": "query class", "frequency": "traffic",
    "novelty": "seen", "query": "query_norm",
}  # fmt: skip
_PERIODS = {"minute", "month", "quarter", "year", "date", "time"}
_ALTERNATIVES = {"language": "; slice by script, which is detected from the query text"}


@dataclass(frozen=True)
class SlicedPages:
    """Pages by slice.

    Parameters
    ----------
    table
        ``serp`` and ``slice`` (a text), one row per page of the log.
    values
        Slices that have pages, in display order: ``other`` and ``unknown`` at the end.
    note
        Note for the reader of the results; may be empty.
    warnings
        Notes of the result.
    """

    table: Relation
    values: tuple[str, ...]
    note: str = ""
    warnings: tuple[Note, ...] = ()


def slice_names(log: InteractionLog) -> tuple[str, ...]:
    """Return the names by which pages of a log can be sliced, its own attributes first."""
    attributes = [name for name in log.attributes if name in log.serp.columns]
    columns = [name for name in _COLUMNS if name in log.serp.columns]
    return tuple(dict.fromkeys((*attributes, *_WITH_PARAMETERS, *_BY_NAME, *BY_TIME, *columns)))


def slice_pages(log: InteractionLog, by: str, *, documents: Any = None) -> SlicedPages:
    """Assign every page to one slice.

    =======================================  =========================================================================
    by                                       slices
    =======================================  =========================================================================
    a text column                            its values: ``application``, ``language``, ``device``, ``experiment``,
                                             ``variant``, ``ranker``, ``query_norm``, or another attribute of the log
    ``price``, ``price:10,100``, ``price/4``  a numeric attribute, or ``latency_ms``, ``n_shown``: its values, up to 30;
                                             ranges that start at these numbers; that many equal parts
    ``traffic``, ``traffic:50,90``           head, torso, and tail, which end at these percentages of pages
    ``words``, ``length``                    1, 2, 3-4, 5+ words; or 1, 2-3, 4-6, 7+, as for topics
    ``query class``, ``script``              address, quoted, question, identifier, keywords; Latin, Han...
    ``seen``                                 new, seen: issued by another session before
    ``filtered``, ``page``, ``results``      whether a filter was set; 1, 2, 3, 4+; zero, 1-9, 10-99, 100-999, 1000+
    ``first click``                          its rank: 1, 2-3, 4-10, 11+, none
    ``hour``, ``day``, ``week``              points of a series, in UTC; a week is named by its Monday
    ``weekday``, ``hour of day``             Monday to Sunday; 00 to 23; in UTC
    ``hour of week``                         Monday 00 to Sunday 23, plotted as one line per weekday
    ``freshness``, ``freshness:clicked``     bands of the age of the newest result shown, or of the first result clicked
    =======================================  =========================================================================

    An attribute of the log has priority over a derived one of the same name. Names of derived ones are
    case-insensitive, and ``_``, ``-``, and blanks are equivalent. Languages, for which the same holds, are those of the
    log; they are not detected, because queries are too short for that.

    Parameters
    ----------
    log
        The log.
    by
        A name of the table above.
    documents
        Documents with dates, for freshness: input of `judged.data.dated_documents`, which sets the bands.

    Returns
    -------
    sliced : SlicedPages
        Pages without a value are in the slice ``unknown``. If there are more than 30 values (except points in time),
        the 29 with most pages are kept, ties in alphabetical order, and all others are ``other``.

    Raises
    ------
    InputError
        If the name is unknown, or the log does not have the data.
    """
    column, cuts_text = _split_column(log, by)
    if column:
        return _run(log, _query_by_column(log, column, cuts_text), column)
    base, _, parameters = _normalize_name(by).partition(":")
    base = _SYNONYMS.get(base, base)
    if base in _COLUMNS:
        return _run(log, _query_by_column(log, base, f":{parameters}" if parameters else ""), base)
    return _run(log, _query_by_derived(log, base, parameters, by, documents), base)


def _split_column(log: InteractionLog, by: str) -> tuple[str, str]:
    """Split a name into a column and the text of its cuts; both are empty if it does not start with a column."""
    # Longest first: an attribute `size:eu` must not be read as `size` with cuts.
    candidates = sorted({*log.attributes, *_COLUMNS} & set(log.serp.columns), key=len, reverse=True)
    # Drafted mappings name attributes with a prefix.
    for text in (by, f"attribute_{by}"):
        for name in candidates:
            if text == name or (text.startswith(name) and text[len(name)] in ":/"):
                return name, text[len(name) :]
    return "", ""


def _query_by_column(log: InteractionLog, column: str, cuts_text: str) -> SliceQuery:
    """Slice by a column; language tags are case-insensitive and use hyphens (RFC 5646, section 2.1.1)."""
    serp = log.serp
    if column == "language" and not cuts_text:
        serp = log.engine.query(f"SELECT serp, replace(lower(language), '_', '-') AS language FROM {serp}")
    return by_column(serp, column, cuts_text)


def _normalize_name(by: str) -> str:
    return re.sub(r"[\s_-]+", " ", by).strip().casefold()


def _query_by_derived(log: InteractionLog, base: str, parameters: str, by: str, documents: Any) -> SliceQuery:
    if base == "traffic":
        return by_traffic(log.serp, traffic_cuts(parameters) if parameters else TRAFFIC)
    if base == "freshness" and parameters in {"", "clicked", "shown"}:
        _check_time(log, by, dated=True)
        return by_freshness(log, documents, clicked=parameters == "clicked")
    if base == "first click" and not parameters:
        return by_first_click(log)
    if base in BY_TIME and not parameters:
        _check_time(log, by, dated=base != "hour of day")
        return by_time(log.serp, base)
    if base in _BY_NAME and not parameters:
        return _BY_NAME[base](log.serp)
    raise _unknown_name_error(log, by)


def _check_time(log: InteractionLog, by: str, *, dated: bool) -> None:
    if log.has_time and (log.dated or not dated):
        return
    missing = "dates" if log.has_time else "timestamps"
    raise InputError(f"this log has no {missing} to slice by {by}", fix="slice by another attribute", path=log.name)


def _unknown_name_error(log: InteractionLog, by: str) -> InputError:
    names = slice_names(log)
    if _normalize_name(by) in _PERIODS:
        return InputError(f"pages cannot be sliced by {by!r}", fix=use_one_of(BY_TIME))
    matches = get_close_matches(_normalize_name(by), names, 3, 0.5)
    suggestion = f"did you mean {' or '.join(matches)}? " if matches else ""
    return InputError(f"pages cannot be sliced by {by!r}", fix=f"{suggestion}{use_one_of(names)}")


def _run(log: InteractionLog, query: SliceQuery, name: str) -> SlicedPages:
    """Run the query, name unknown slices, merge rare slices, and order them."""
    engine, notes = log.engine, [query.note] if query.note else []
    table = engine.keep(f"SELECT serp, coalesce(slice, {literal(UNKNOWN)}) AS slice FROM ({query.sql})", "sliced")
    counts = engine.rows(f"SELECT slice, count(*) AS pages FROM {table} GROUP BY slice ORDER BY pages DESC, slice")
    values = [row["slice"] for row in counts if row["slice"] != UNKNOWN]
    slices = {row["slice"] for row in counts}
    if len(values) > MAX_VALUES and not query.keeps_all:
        frequent = sql_list([*values[: MAX_VALUES - 1], UNKNOWN])
        name_sql = f"CASE WHEN slice IN {frequent} THEN slice ELSE {literal(OTHER)} END"
        table = engine.keep(f"SELECT serp, {name_sql} AS slice FROM {table}", "sliced")
        notes.append(
            f"{name} has {len(values):,} values: the {MAX_VALUES - 1} most frequent have a slice each,"
            f" and the slice {OTHER} has the rest"
        )
        slices = {*values[: MAX_VALUES - 1], OTHER} | (slices & {UNKNOWN})
    if slices == {UNKNOWN}:
        notes.append(f"no page has a value of {name}{_ALTERNATIVES.get(name, '')}")
    return SlicedPages(table, _display_order(slices, query.order), "; ".join(notes), query.warnings)


def _display_order(slices: set[str], order: tuple[str, ...]) -> tuple[str, ...]:
    last = [name for name in (OTHER, UNKNOWN) if name in slices]
    names = slices - set(last)
    position = {name: i for i, name in enumerate(order)}
    is_ordered = names <= set(position)
    ordered = sorted(names, key=position.__getitem__) if is_ordered else sort_slice_values("", sorted(names))
    return (*ordered, *last)
