"""Slices by what was shown and clicked: how many results, the rank of the first click, the age of results."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.comparison.slicing.by_document import dates_by_doc
from judged.comparison.slicing.topic_slices import AGE, FREQUENCY, LENGTH, Bands, frequency_bands, sort_slice_values
from judged.data.documents import Documents
from judged.data.query_text import query_kind, query_script, word_count
from judged.errors import InputError
from judged.online.engine import Engine, Relation, listed, literal
from judged.online.slicing.columns import BY_TIME, MANY, Cut, banded, by_column, by_time

if TYPE_CHECKING:
    from judged.online.log import InteractionLog


PAGE = Bands((2, 3, 4), ("1", "2", "3", "4+"))
"""Number of the page in its list of results."""

RESULTS = Bands((1, 10, 100, 1000), ("zero", "1-9", "10-99", "100-999", "1000+"))
"""Results found."""

FIRST_CLICK = Bands((2, 4, 11), ("1", "2-3", "4-10", "11+"))
"""Rank of the first click."""

NONE = "none"
"""The slice of pages on which nothing was clicked."""

_OUTCOME = "pages are cut by what users did on them: it explains no metric of clicks, and compares no variants"
_DAY = 86_400_000  # milliseconds


def by_page(serp: Relation) -> Cut:
    """Cut by the number of the page."""
    return Cut(f"SELECT serp, {banded('page', PAGE)} AS slice FROM {serp}", PAGE.names)


def by_filter(serp: Relation) -> Cut:
    """Cut by whether a filter or facet was set."""
    some = serp.engine.rows(f"SELECT count(*) AS n FROM (SELECT 1 FROM {serp} WHERE filtered LIMIT 1)")[0]["n"]
    note = "" if some else "no page has a filter: a log that does not record filters looks the same"
    named = "CASE WHEN filtered THEN 'filtered' ELSE 'not filtered' END"
    return Cut(f"SELECT serp, {named} AS slice FROM {serp}", ("not filtered", "filtered"), note)


def by_results(serp: Relation) -> Cut:
    """Cut by the number of results that the engine found or, where it does not say, sent for this page."""
    return Cut(f"SELECT serp, {banded('coalesce(n_total, n_returned)', RESULTS)} AS slice FROM {serp}", RESULTS.names)


def by_first_click(log: InteractionLog) -> Cut:
    """Cut by the rank of the first click on the page: the best rank of several at that time; not known without one."""
    named = f"CASE WHEN f.serp IS NULL THEN {literal(NONE)} ELSE {banded('f.rank', FIRST_CLICK)} END"
    sql = f"""
        SELECT p.serp, {named} AS slice FROM {log.serp} AS p
        LEFT JOIN (SELECT serp, min(rank) AS rank FROM {_first_clicks(log)} GROUP BY serp) AS f ON f.serp = p.serp"""
    return Cut(sql, (*FIRST_CLICK.names, NONE), _OUTCOME)


def _first_clicks(log: InteractionLog) -> Relation:
    """Give the clicks of each page that come first: ``serp``, ``rank``, ``object_id``."""
    if "clicks" not in log.has:
        raise InputError("this log has no clicks", fix="slice by something else", path=log.name)
    return log.engine.query(f"""
        SELECT serp, rank, object_id FROM (
            SELECT serp, rank, object_id, time_ms, min(time_ms) OVER (PARTITION BY serp) AS first_ms FROM {log.event}
            WHERE action = 'click' AND serp IS NOT NULL)
        WHERE time_ms = first_ms""")


def by_freshness(log: InteractionLog, objects: Any, *, clicked: bool = False) -> Cut:
    """Cut by the age of the newest result of each page, in whole days from its day to that of the page, in UTC.

    Parameters
    ----------
    log
        The log.
    objects
        When results were made: documents with a column ``date`` (a `Documents`, or the path of one), or a table of
        Arrow, or what makes one, with ``object_id`` and ``time_ms`` (milliseconds since 1970).
    clicked
        Of what was clicked first, not of all that was shown. Pages without a click are ``none``.

    Raises
    ------
    InputError
        If there are no such times, or the log tells not what was shown or clicked.
    """
    if not clicked and "shown" not in log.has:
        raise InputError("this log has no shown results", fix="slice by freshness:clicked", path=log.name)
    made = _made(objects, log.engine)
    which = _first_clicks(log) if clicked else log.shown
    days = f"CAST(floor(p.time_ms / {_DAY}.0) - floor(d.newest / {_DAY}.0) AS BIGINT)"
    named = f"CASE WHEN d.serp IS NULL THEN {literal(NONE)} ELSE {banded(days, AGE)} END"
    sql = f"""
        SELECT p.serp, {named if clicked else banded(days, AGE)} AS slice FROM {log.serp} AS p
        LEFT JOIN (
            SELECT w.serp, max(m.made_ms) AS newest FROM {which} AS w
            LEFT JOIN {made} AS m ON m.object_id = w.object_id GROUP BY w.serp) AS d ON d.serp = p.serp"""
    if not clicked:
        return Cut(sql, AGE.names, "age of the newest result shown, in days")
    return Cut(sql, (*AGE.names, NONE), f"age of the first click, in days; {_OUTCOME}")


def _made(objects: Any, engine: Engine) -> Relation:
    """Give when each object was made; the latest, where one is there twice."""
    fix = "give objects=: documents with a column date, or a table with object_id and time_ms (milliseconds since 1970)"
    if objects is None:
        raise InputError("the age of results is not in a log", fix=fix)
    if isinstance(objects, (str, Path, Documents)):
        objects = _dated(Documents.of(objects))
    try:
        table = objects.to_arrow() if isinstance(objects, Relation) else pa.table(objects)
    except (TypeError, ValueError, pa.ArrowInvalid):
        raise InputError(f"a {type(objects).__name__} holds no times of objects", fix=fix) from None
    if missing := {"object_id", "time_ms"} - set(table.column_names):
        raise InputError(f"the objects have no {min(missing)}", fix=fix)
    if not pa.types.is_integer(kind := table.schema.field("time_ms").type):
        raise InputError(f"time_ms of the objects is {kind}", fix=fix)
    return engine.query(f"""
        SELECT CAST(object_id AS VARCHAR) AS object_id, max(CAST(time_ms AS BIGINT)) AS made_ms
        FROM {engine.register(table)} GROUP BY CAST(object_id AS VARCHAR)""")


def _dated(documents: Documents) -> Any:
    """Give the days of documents as the beginning of each, in UTC."""
    table = documents.table
    if "date" not in documents.names:
        known = ", ".join(documents.names) or "nothing"
        raise InputError(f"no column date (there is {known})", fix="add a column date", path=documents.where)
    days = dates_by_doc(table["doc_id"].to_pylist(), table["date"].to_pylist(), "date", documents.where)
    since = date(1970, 1, 1)
    times = pa.array([(day - since).days * _DAY for day in days.values()], pa.int64())
    return pa.table({"object_id": pa.array(list(days), pa.string()), "time_ms": times})


WORDS = Bands((2, 3, 5), ("1", "2", "3-4", "5+"))
"""Words of a query: finer where queries of logs are, which are shorter than topics."""

TRAFFIC = (50.0, 90.0)
"""Per cent of pages at which head and torso end."""

_TEXTS_AT_ONCE = 100_000
_SHAPES = 100_000  # that are remembered
_LETTERS, _DIGITS = re.compile("[A-Za-z]+"), re.compile("[0-9]+")


def by_script(serp: Relation) -> Cut:
    """Cut by the script of most letters, as ``script`` of topics is."""
    remembered = lru_cache(_SHAPES)(query_script)
    return Cut(_by_text(serp, lambda text: remembered(_shape(text))))


def _by_count(serp: Relation, bands: Bands) -> Cut:
    remembered = lru_cache(_SHAPES)(word_count)
    return Cut(_by_text(serp, lambda text: bands.label(remembered(_shape(text)) or None)), bands.names)


def _shape(text: str) -> str:
    """Write all words of ASCII alike: how many there are, and in which script, stays the same and is told once."""
    return _DIGITS.sub("1", _LETTERS.sub("a", text)) if text.isascii() else text


def _by_text(serp: Relation, told: Callable[[str], str | None]) -> str:
    """Write the SQL of the slice of each page's text."""
    pieces = [pa.table({"query_norm": pa.array([], pa.string()), "slice": pa.array([], pa.string())})]
    texts = serp.engine.arrow(f"SELECT DISTINCT query_norm FROM {serp} WHERE query_norm IS NOT NULL")
    for batch in texts.to_batches(max_chunksize=_TEXTS_AT_ONCE):
        named = [told(text) for text in batch["query_norm"].to_pylist()]
        columns = {"query_norm": batch["query_norm"].cast(pa.string()), "slice": pa.array(named, pa.string())}
        pieces.append(pa.table(columns))
    known = serp.engine.register(pa.concat_tables(pieces))
    return f"SELECT p.serp, k.slice FROM {serp} AS p LEFT JOIN {known} AS k ON k.query_norm = p.query_norm"


def by_traffic(serp: Relation, cuts: tuple[float, float] = TRAFFIC) -> Cut:
    """Cut into head, torso and tail: how many pages of this log have the same text.

    Shares are of pages that have a text; the rule, and that equal counts stay together, are those of
    `judged.slicing.bands.frequency_bands`. Bands rise with counts, so that two counts tell all.

    Parameters
    ----------
    serp
        Pages.
    cuts
        Per cent of pages, between 0 and 100.
    """
    counts = serp.engine.keep(
        f"SELECT query_norm, count(*) AS pages FROM {serp} WHERE query_norm IS NOT NULL GROUP BY query_norm", "texts"
    )
    levels = serp.engine.arrow(f"SELECT pages, count(*) AS texts FROM {counts} GROUP BY pages")
    if not levels.num_rows:
        return Cut(f"SELECT serp, NULL AS slice FROM {serp}", FREQUENCY)
    repeated = np.repeat(levels["pages"].to_numpy(), levels["texts"].to_numpy()).tolist()
    bands = frequency_bands(repeated, (cuts[0] / 100, cuts[1] / 100))
    least = {band: pages for pages, band in sorted(set(zip(repeated, bands, strict=True)), reverse=True)}
    named = f"""CASE WHEN k.pages >= {least["head"]} THEN 'head'
        WHEN k.pages >= {least.get("torso", least["head"])} THEN 'torso' WHEN k.pages IS NOT NULL THEN 'tail' END"""
    return Cut(
        f"SELECT p.serp, {named} AS slice FROM {serp} AS p LEFT JOIN {counts} AS k ON k.query_norm = p.query_norm",
        FREQUENCY,
    )


def traffic_cuts(text: str) -> tuple[float, float]:
    """Read where to cut traffic, such as ``50,90``.

    Raises
    ------
    InputError
        If it is no two percentages that rise.
    """
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        low, high = 0.0, 0.0
    if not 0 < low < high < 100:
        fix = "give two percentages that rise, such as traffic:50,90"
        raise InputError(f"{text!r} is not where traffic can be cut", fix=fix)
    return low, high


def by_novelty(serp: Relation) -> Cut:
    """Cut into pages whose text somebody had asked for before in this log (``seen``), and others (``new``).

    Somebody is another session: to turn a page, or to come back to it, makes nothing seen. What was asked before the
    log begins is not known, so that its first days look newer than they are.
    """
    sql = f"""
        WITH asked AS (
            SELECT query_norm, session, min(time_ms) AS start FROM {serp} WHERE query_norm IS NOT NULL
            GROUP BY query_norm, session),
        first AS (SELECT query_norm, min(start) AS first_ms FROM asked GROUP BY query_norm),
        opened AS (
            SELECT a.query_norm, min(a.session) AS opener, min(f.first_ms) AS first_ms
            FROM asked AS a JOIN first AS f ON f.query_norm = a.query_norm AND f.first_ms = a.start
            GROUP BY a.query_norm),
        second AS (
            SELECT a.query_norm, min(a.start) AS second_ms
            FROM asked AS a JOIN opened AS o ON o.query_norm = a.query_norm AND o.opener <> a.session
            GROUP BY a.query_norm)
        SELECT p.serp, CASE WHEN o.opener IS NULL THEN NULL
            WHEN CASE WHEN p.session = o.opener THEN s.second_ms ELSE o.first_ms END < p.time_ms THEN 'seen'
            ELSE 'new' END AS slice
        FROM {serp} AS p LEFT JOIN opened AS o ON o.query_norm = p.query_norm
        LEFT JOIN second AS s ON s.query_norm = p.query_norm"""
    note = "new: not asked before in this log, whose beginning therefore looks newer"
    return Cut(sql, ("new", "seen"), note)


UNKNOWN = "unknown"
"""The slice of pages for which it is not known."""

OTHER = "other"
"""The slice of all values but the most frequent, where there are many."""

_COLUMNS = (
    "application", "language", "device", "experiment", "variant", "ranker", "query_norm", "rescued", "zero_results",
    "latency_ms", "n_shown",
)  # fmt: skip
_BY_TEXT = {
    "words": partial(_by_count, bands=WORDS),
    "length": partial(_by_count, bands=LENGTH),
    "query class": lambda serp: Cut(_by_text(serp, query_kind)),
    "script": by_script,
    "seen": by_novelty,
    "filtered": by_filter,
    "page": by_page,
    "results": by_results,
}
_WITH_MORE = ("traffic", "first click", "freshness", "freshness:clicked")
_ALSO_CALLED = {
    "source": "application", "source type": "application", "kind": "query class", "frequency": "traffic",
    "novelty": "seen", "query": "query_norm",
}  # fmt: skip
_PERIODS = {"minute", "month", "quarter", "year", "date", "time"}
_INSTEAD = {"language": ": script is told by the text of the query"}


@dataclass(frozen=True)
class SlicedPages:
    """Pages by slice.

    Parameters
    ----------
    table
        ``serp`` and ``slice``, a text: every page of the log once.
    values
        The slices that have pages, in the order to show them in: ``other`` and ``unknown`` at the end.
    note
        What a reader should know; may be empty.
    """

    table: Relation
    values: tuple[str, ...]
    note: str = ""


def slice_names(log: InteractionLog) -> tuple[str, ...]:
    """Name all that pages of a log can be sliced by: its own attributes first."""
    own = [name for name in log.attributes if name in log.serp.columns]
    columns = [name for name in _COLUMNS if name in log.serp.columns]
    return tuple(dict.fromkeys((*own, *_WITH_MORE, *_BY_TEXT, *BY_TIME, *columns)))


def slice_pages(log: InteractionLog, by: str, *, objects: Any = None) -> SlicedPages:
    """Put every page into one slice.

    =======================================  =========================================================================
    by                                       slices
    =======================================  =========================================================================
    a text column                            its values: ``application``, ``language``, ``device``, ``experiment``,
                                             ``variant``, ``ranker``, ``query_norm``, an attribute of the log's own
    ``price``, ``price:10,100``, ``price/4``  an attribute of numbers, or ``latency_ms``, ``n_shown``: its values up to
                                             30; ranges that begin there; so many equal parts
    ``traffic``, ``traffic:50,90``           head, torso, tail, cut at these percentages of pages
    ``words``, ``length``                    1, 2, 3-4, 5+ words; or 1, 2-3, 4-6, 7+, as topics are cut
    ``query class``, ``script``              address, quoted, question, identifier, keywords; Latin, Han...
    ``seen``                                 new, seen: asked by another session before
    ``filtered``, ``page``, ``results``      whether a filter was set; 1, 2, 3, 4+; zero, 1-9, 10-99, 100-999, 1000+
    ``first click``                          its rank: 1, 2-3, 4-10, 11+, none
    ``hour``, ``day``, ``week``              points of a series, in UTC; a week is named by its Monday
    ``weekday``, ``hour of day``             Monday to Sunday; 00 to 23; in UTC
    ``hour of week``                         Monday 00 to Sunday 23, drawn as a line a weekday
    ``freshness``, ``freshness:clicked``     age in days of the newest result shown, or of what was clicked first
    =======================================  =========================================================================

    An attribute of the log goes before what would be derived under its name. Case does not matter in the names above,
    nor whether ``_`` or ``-`` stands for a blank. Nor does it in languages: ``en_US`` is ``en-us``. They are those that
    were logged, and never guessed: a query is too short for that. ``script`` is told by the text.

    Parameters
    ----------
    log
        The log.
    by
        One of these.
    objects
        For freshness: when results were made: documents with a column ``date`` (a `Documents`, or a path), or a table
        with ``object_id`` and ``time_ms``.

    Returns
    -------
    sliced : SlicedPages
        Where a value is not known the slice is ``unknown``. Of more than 30 values (unless they are points in time)
        the 29 with most pages are kept, in doubt those first in the alphabet, and the rest is ``other``.

    Raises
    ------
    InputError
        If pages cannot be sliced so, or this log does not tell it.
    """
    column, how = _column(log, by)
    if column:
        return _counted(log, _logged(log, column, how), column)
    base, _, parameters = _plain(by).partition(":")
    base = _ALSO_CALLED.get(base, base)
    if base in _COLUMNS:
        return _counted(log, _logged(log, base, f":{parameters}" if parameters else ""), base)
    return _counted(log, _derived(log, base, parameters, by, objects), base)


def _column(log: InteractionLog, by: str) -> tuple[str, str]:
    """Split a name into an attribute or column and how it is cut; nothing where it begins with none."""
    known = sorted({*log.attributes, *_COLUMNS} & set(log.serp.columns), key=len, reverse=True)
    for name in known:
        if by == name or (by.startswith(name) and by[len(name)] in ":/"):
            return name, by[len(name) :]
    return "", ""


def _logged(log: InteractionLog, column: str, how: str) -> Cut:
    """Cut by a column, language tags in one case and with hyphens: they mean the same so (RFC 5646, 2.1.1)."""
    serp = log.serp
    if column == "language" and not how:
        serp = log.engine.query(f"SELECT serp, replace(lower(language), '_', '-') AS language FROM {serp}")
    return by_column(serp, column, how)


def _plain(by: str) -> str:
    return re.sub(r"[\s_-]+", " ", by).strip().casefold()


def _derived(log: InteractionLog, base: str, parameters: str, by: str, objects: Any) -> Cut:
    if base == "traffic":
        return by_traffic(log.serp, traffic_cuts(parameters) if parameters else TRAFFIC)
    if base == "freshness" and parameters in {"", "clicked", "shown"}:
        _needs_time(log, by, dated=True)
        return by_freshness(log, objects, clicked=parameters == "clicked")
    if base == "first click" and not parameters:
        return by_first_click(log)
    if base in BY_TIME and not parameters:
        _needs_time(log, by, dated=base != "hour of day")
        return by_time(log.serp, base)
    if base in _BY_TEXT and not parameters:
        return _BY_TEXT[base](log.serp)
    raise _unknown(log, by)


def _needs_time(log: InteractionLog, by: str, *, dated: bool) -> None:
    if log.has_time and (log.dated or not dated):
        return
    lacks = "dates" if log.has_time else "clock"
    raise InputError(f"this log has no {lacks} to slice by {by}", fix="slice by something else", path=log.name)


def _unknown(log: InteractionLog, by: str) -> InputError:
    names = slice_names(log)
    if _plain(by) in _PERIODS:
        return InputError(f"pages cannot be sliced by {by!r}", fix=f"time is cut into {', '.join(BY_TIME)}")
    near = get_close_matches(_plain(by), names, 3, 0.5)
    guess = f"did you mean {' or '.join(near)}? " if near else ""
    return InputError(f"pages cannot be sliced by {by!r}", fix=f"{guess}there are {', '.join(names)}")


def _counted(log: InteractionLog, cut: Cut, name: str) -> SlicedPages:
    """Run it; name what is not known, merge what is rare, and put the slices in order."""
    engine, notes = log.engine, [cut.note] if cut.note else []
    table = engine.keep(f"SELECT serp, coalesce(slice, {literal(UNKNOWN)}) AS slice FROM ({cut.sql})", "sliced")
    counts = engine.rows(f"SELECT slice, count(*) AS pages FROM {table} GROUP BY slice ORDER BY pages DESC, slice")
    known = [row["slice"] for row in counts if row["slice"] != UNKNOWN]
    found = {row["slice"] for row in counts}
    if len(known) > MANY and not cut.all_kept:
        stay = listed([*known[: MANY - 1], UNKNOWN])
        table = engine.keep(
            f"SELECT serp, CASE WHEN slice IN {stay} THEN slice ELSE {literal(OTHER)} END AS slice FROM {table}",
            "sliced",
        )
        notes.append(f"{name} has {len(known):,} values: the {MANY - 1} with most pages, and {OTHER}")
        found = {*known[: MANY - 1], OTHER} | (found & {UNKNOWN})
    if found == {UNKNOWN}:
        notes.append(f"no page tells its {name}{_INSTEAD.get(name, '')}")
    return SlicedPages(table, _ordered(found, cut.order), "; ".join(notes))


def _ordered(found: set[str], order: tuple[str, ...]) -> tuple[str, ...]:
    last = [name for name in (OTHER, UNKNOWN) if name in found]
    names = found - set(last)
    places = {name: at for at, name in enumerate(order)}
    first = sorted(names, key=places.__getitem__) if names <= set(places) else sort_slice_values("", sorted(names))
    return (*first, *last)
