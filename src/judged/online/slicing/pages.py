"""`slice_pages`: every page of a log in exactly one slice."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from judged.comparison.slicing.topic_slices import in_order
from judged.errors import InputError
from judged.online.engine import Relation, listed, literal
from judged.online.slicing import results
from judged.online.slicing import results as texts
from judged.online.slicing.columns import BY_TIME, MANY, by_column, by_time

if TYPE_CHECKING:
    from judged.online.log import InteractionLog
    from judged.online.slicing.columns import Cut

UNKNOWN = "unknown"
"""The slice of pages for which it is not known."""

OTHER = "other"
"""The slice of all values but the most frequent, where there are many."""

_COLUMNS = (
    "application", "language", "device", "experiment", "variant", "ranker", "query_norm", "rescued", "zero_results",
    "latency_ms", "n_shown",
)  # fmt: skip
_BY_TEXT = {
    "words": texts.by_words,
    "length": texts.by_length,
    "query class": texts.by_class,
    "script": texts.by_script,
    "seen": texts.by_novelty,
    "filtered": results.by_filter,
    "page": results.by_page,
    "results": results.by_results,
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
        return texts.by_traffic(log.serp, texts.traffic_cuts(parameters) if parameters else texts.TRAFFIC)
    if base == "freshness" and parameters in {"", "clicked", "shown"}:
        _needs_time(log, by, dated=True)
        return results.by_freshness(log, objects, clicked=parameters == "clicked")
    if base == "first click" and not parameters:
        return results.by_first_click(log)
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
    first = sorted(names, key=places.__getitem__) if names <= set(places) else in_order("", sorted(names))
    return (*first, *last)
