"""Slices by what was shown and clicked: how many results, the rank of the first click, the age of results."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from judged.comparison.slicing.bands import AGE, Bands
from judged.comparison.slicing.documents import days_by_doc
from judged.data.documents import Documents
from judged.errors import InputError
from judged.online.engine import Engine, Relation, literal
from judged.online.slicing.columns import Cut, banded

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
    days = days_by_doc(table["doc_id"].to_pylist(), table["date"].to_pylist(), "date", documents.where)
    since = date(1970, 1, 1)
    times = pa.array([(day - since).days * _DAY for day in days.values()], pa.int64())
    return pa.table({"object_id": pa.array(list(days), pa.string()), "time_ms": times})
