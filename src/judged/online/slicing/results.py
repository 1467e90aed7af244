"""Slices by what was shown and clicked: how many results, the rank of the first click, the age of results."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from judged.data.documents import Documents
from judged.errors import InputError
from judged.online.engine import ibis_library
from judged.online.slicing.cut import Cut, banded
from judged.slicing.bands import AGE, Bands
from judged.slicing.documents import days_by_doc

if TYPE_CHECKING:
    import ibis.expr.types as ir

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


def by_page(serp: ir.Table) -> Cut:
    """Cut by the number of the page."""
    return Cut(serp.select("serp", slice=banded(serp.page, PAGE)), PAGE.names)


def by_filter(serp: ir.Table) -> Cut:
    """Cut by whether a filter or facet was set."""
    names = ("not filtered", "filtered")
    filtered: Any = serp.filtered
    some = serp.filter(filtered).limit(1).count().to_pyarrow().as_py()
    note = "" if some else "no page has a filter: a log that does not record filters looks the same"
    return Cut(serp.select("serp", slice=filtered.ifelse(names[1], names[0])), names, note)


def by_results(serp: ir.Table) -> Cut:
    """Cut by the number of results that the engine found or, where it does not say, sent for this page."""
    found = ibis_library().coalesce(serp.n_total, serp.n_returned.cast("int64"))
    return Cut(serp.select("serp", slice=banded(found, RESULTS)), RESULTS.names)


def by_first_click(log: InteractionLog) -> Cut:
    """Cut by the rank of the first click on the page: the best rank of several at that time; not known without one."""
    serp, ibis = log.serp, ibis_library()
    first = _first_clicks(log).group_by("serp").aggregate(first=ibis._["rank"].min(), clicks=ibis._.count())
    pages: Any = serp.select("serp").left_join(first, "serp")
    named = pages.clicks.isnull().ifelse(NONE, banded(pages["first"], FIRST_CLICK))
    return Cut(pages.select("serp", slice=named), (*FIRST_CLICK.names, NONE), _OUTCOME)


def _first_clicks(log: InteractionLog) -> ir.Table:
    """Give the clicks of each page that come first: ``serp``, ``rank``, ``object_id``."""
    if "clicks" not in log.has:
        raise InputError("this log has no clicks", fix="slice by something else", path=log.name)
    event = log.event
    clicks = event.filter((event.action == "click") & event.serp.notnull()).select(
        "serp", "time_ms", "rank", "object_id"
    )
    first = clicks.group_by("serp").aggregate(first_ms=clicks.time_ms.min())
    joined = clicks.inner_join(first, "serp")
    return joined.filter(joined.time_ms == joined.first_ms).select("serp", "rank", "object_id")


def by_freshness(log: InteractionLog, objects: Any, *, clicked: bool = False) -> Cut:
    """Cut by the age of the newest result of each page, in whole days from its day to that of the page, in UTC.

    Parameters
    ----------
    log
        The log.
    objects
        When results were made: documents with a column ``date`` (a `Documents`, or the path of one), or a table of Ibis
        or Arrow with ``object_id`` and ``time_ms`` (milliseconds since 1970).
    clicked
        Of what was clicked first, not of all that was shown. Pages without a click are ``none``.

    Raises
    ------
    InputError
        If there are no such times, or the log tells not what was shown or clicked.
    """
    if not clicked and "shown" not in log.has:
        raise InputError("this log has no shown results", fix="slice by freshness:clicked", path=log.name)
    made = _made(objects, log.serp)
    which = _first_clicks(log) if clicked else log.shown
    dated = which.left_join(made, "object_id").group_by("serp").aggregate(newest=ibis_library()._.made_ms.max())
    dated = dated.mutate(had=ibis_library().literal(True))
    pages: Any = log.serp.select("serp", "time_ms").left_join(dated, "serp")
    days = (pages.time_ms // _DAY).cast("int64") - (pages.newest // _DAY).cast("int64")
    named = banded(days, AGE)
    if not clicked:
        return Cut(pages.select("serp", slice=named), AGE.names, "age of the newest result shown, in days")
    named = pages.had.isnull().ifelse(NONE, named)
    return Cut(pages.select("serp", slice=named), (*AGE.names, NONE), f"age of the first click, in days; {_OUTCOME}")


def _made(objects: Any, serp: ir.Table) -> ir.Table:
    """Give when each object was made; the latest, where one is there twice."""
    ibis: Any = ibis_library()
    fix = "give objects=: documents with a column date, or a table with object_id and time_ms (milliseconds since 1970)"
    if objects is None:
        raise InputError("the age of results is not in a log", fix=fix)
    if isinstance(objects, (str, Path, Documents)):
        objects = _dated(Documents.of(objects))
    if not isinstance(objects, ibis.Table):
        try:
            objects = ibis.memtable(pa.table(objects))
        except (TypeError, ValueError, pa.ArrowInvalid):
            raise InputError(f"a {type(objects).__name__} holds no times of objects", fix=fix) from None
    elif objects.get_backend() is not serp.get_backend():
        objects = ibis.memtable(objects.to_pyarrow())
    if missing := {"object_id", "time_ms"} - set(objects.columns):
        raise InputError(f"the objects have no {min(missing)}", fix=fix)
    if not objects.time_ms.type().is_integer():
        raise InputError(f"time_ms of the objects is {objects.time_ms.type()}", fix=fix)
    texts = objects.select(object_id=objects.object_id.cast("string"), time_ms=objects.time_ms.cast("int64"))
    return texts.group_by("object_id").aggregate(made_ms=texts.time_ms.max())


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
