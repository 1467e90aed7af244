"""Slices by a column of the log, and pages chosen by a condition on its columns."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from judged.comparison.slicing.topic_slices import Bands
from judged.data.expression import Expression
from judged.errors import InputError
from judged.online.engine import Relation, identifier, literal
from judged.online.log import SERP
from judged.online.metrics import written

if TYPE_CHECKING:
    from judged.online.log import InteractionLog
    from judged.results.types import Floats, Ints


@dataclass(frozen=True)
class Cut:
    """Pages and their slices, not run yet.

    Parameters
    ----------
    sql
        Gives ``serp`` and ``slice``; null where it is not known. Each page once.
    order
        Names in the order that they are shown in; empty: that of numbers or of the alphabet.
    note
        What a reader should know.
    all_kept
        There may be any number of slices: points of a series.
    """

    sql: str
    order: tuple[str, ...] = ()
    note: str = ""
    all_kept: bool = False


def banded(number: str, bands: Bands) -> str:
    """Write the SQL of the name of the range that each number lies in; null for null."""
    below = zip(bands.starts, bands.names[:-1], strict=True)
    cases = [f"WHEN {number} < {start!r} THEN {literal(name)}" for start, name in below]
    return f"CASE WHEN {number} IS NULL THEN NULL {' '.join(cases)} ELSE {literal(bands.names[-1])} END"


_KINDS = {"VARCHAR": "O", "BOOLEAN": "b", **dict.fromkeys(("BIGINT", "INTEGER", "SMALLINT", "DOUBLE"), "f")}
_KEYS = ("serp", "session", "user")


def pages_where(log: InteractionLog, where: str) -> tuple[Relation, str]:
    """Choose the pages that meet a condition; what comes of them, and what follows them, is that of the whole log.

    Parameters
    ----------
    log
        The log.
    where
        An expression (`judged.data.expression.Expression`) over columns of `serp`, attributes of the log's own too.

    Returns
    -------
    chosen : Relation
        ``serp`` of each.
    said : str
        The condition, and how many pages meet it.

    Raises
    ------
    InputError
        If it is no such expression, or no page meets it.
    """
    own = {*(column.name for column in SERP), *log.attributes}
    types = {name: kind for name, kind in log.serp.types.items() if name in own and name not in _KEYS}
    kinds = {name: _KINDS.get(kind, "O" if kind.startswith("ENUM") else "") for name, kind in types.items()}
    condition = Expression(where).sql({name: kind for name, kind in kinds.items() if kind})
    chosen = log.engine.keep(f"SELECT serp FROM {log.serp} WHERE {condition}", "chosen")
    pages = f"SELECT (SELECT count(*) FROM {chosen}) AS chosen, (SELECT count(*) FROM {log.serp}) AS pages"
    found = log.engine.rows(pages)[0]
    if not found["chosen"]:
        raise InputError(f"no page meets {where!r:.80}", fix="write another condition", path=", ".join(log.files))
    return chosen, f"{where}: {found['chosen']:,} of {found['pages']:,} pages"


MANY = 30
"""So many values make a slice each."""

_NUMBERS = ("BIGINT", "DECIMAL", "DOUBLE", "FLOAT", "HUGEINT", "INTEGER", "SMALLINT", "TINYINT", "U")  # types

_PARTS = 4  # that more numbers than MANY are cut into, where nothing is said


def by_column(serp: Relation, name: str, how: str = "") -> Cut:
    """Cut pages by a column.

    Texts and truth values make a slice each; blank texts are not known. Numbers do so up to `MANY` different ones, and
    are cut into four equal parts beyond.

    Parameters
    ----------
    serp
        Pages.
    name
        The column.
    how
        For numbers: ``:10,100`` cuts at these, each where a range begins; ``/4`` into so many parts of equally many
        pages, as far as pages with the same number can be parted. Texts that are numbers count as such then.

    Raises
    ------
    InputError
        If the cuts make no sense, or the column holds neither texts nor numbers nor truth values.
    """
    column, kind = identifier(name), serp.types[name]
    text = kind == "VARCHAR" or kind.startswith("ENUM")
    if text and not how:
        return Cut(f"SELECT serp, nullif(trim({column}), '') AS slice FROM {serp}")
    if kind == "BOOLEAN" and not how:
        named = f"CASE WHEN {column} THEN 'true' WHEN NOT {column} THEN 'false' END"
        return Cut(f"SELECT serp, {named} AS slice FROM {serp}", ("false", "true"))
    if not text and not kind.startswith(_NUMBERS):
        raise InputError(f"{name} is {kind}: no text, no number", fix="slice by another column")
    # JSON and CSV may write a number as a text; what is none is not known
    number = f"TRY_CAST({column} AS DOUBLE)"
    numbers = serp.engine.query(
        f"SELECT serp, CASE WHEN isnan({number}) THEN NULL ELSE {number} END AS number FROM {serp}"
    )
    if how.startswith(":"):
        return _ranges(numbers, _bounds(name, how[1:]))
    values, counts = _distribution(numbers)
    if not how and len(values) <= MANY:
        return _values(numbers, values)
    parts = _parts(name, how[1:]) if how else _PARTS
    cuts = equal_parts(values, counts, parts)
    notes = [f"{name} has {len(values):,} different numbers: cut into equal parts"] if not how else []
    if len(cuts) + 1 < parts and len(values):
        found = f"{len(cuts) + 1} parts" if cuts else "one part"
        notes.append(f"many pages have the same {name}: {found}, not {parts}")
    return replace(_ranges(numbers, cuts, short=True), note="; ".join(notes))


def equal_parts(values: Floats, counts: Ints, parts: int) -> tuple[float, ...]:
    """Give where to cut so that as many lie in each part, as far as equal numbers allow.

    Parameters
    ----------
    values, counts
        (N,): different numbers, rising, and how often each occurs.
    parts
        2 or more.

    Returns
    -------
    cuts
        At most ``parts - 1``: the number at which each part but the first begins.

    Examples
    --------
    >>> import numpy as np
    >>> equal_parts(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1, 1, 1, 1]), 2)
    (3.0,)
    >>> equal_parts(np.array([0.0, 5.0]), np.array([9, 1]), 4)  # nine of ten are 0: nothing is below
    ()
    """
    if not len(values):
        return ()
    ends = np.cumsum(counts)
    total = int(ends[-1])
    places = [-(-at * total // parts) for at in range(1, parts)]
    found = {float(values[np.searchsorted(ends, place, side="right")]) for place in places if place < total}
    return tuple(sorted(found - {float(values[0])}))


def _bounds(name: str, text: str) -> tuple[float, ...]:
    try:
        bounds = tuple(float(part) for part in text.split(","))
    except ValueError:
        bounds = ()
    if not bounds or not all(map(math.isfinite, bounds)) or list(bounds) != sorted(set(bounds)) or len(bounds) >= MANY:
        fix = f"give fewer than {MANY} numbers that rise: {name}:10,100"
        raise InputError(f"{text!r} is not where numbers can be cut", fix=fix)
    return bounds


def _parts(name: str, text: str) -> int:
    if not text.strip().isdecimal() or not 2 <= int(text) <= MANY:
        raise InputError(f"{name} cannot be cut into {text!r} parts", fix=f"a number from 2 to {MANY}: {name}/4")
    return int(text)


def _ranges(numbers: Relation, cuts: tuple[float, ...], *, short: bool = False) -> Cut:
    wrote = [written(cut) for cut in cuts]
    if short:  # what is no round number anyway is named by six digits, where these tell the cuts apart
        brief = [exact if cut.is_integer() else f"{cut:g}" for cut, exact in zip(cuts, wrote, strict=True)]
        wrote = brief if len(set(brief)) == len(brief) else wrote
    between = [f"{low} to <{high}" for low, high in pairwise(wrote)]
    names = (f"<{wrote[0]}", *between, f">={wrote[-1]}") if wrote else ("all",)
    return Cut(f"SELECT serp, {banded('number', Bands(cuts, names))} AS slice FROM {numbers}", names)


def _distribution(numbers: Relation) -> tuple[Floats, Ints]:
    """Give the different numbers, rising, and how many pages have each."""
    found = numbers.engine.arrow(
        f"SELECT number, count(*) AS pages FROM {numbers} WHERE number IS NOT NULL GROUP BY number ORDER BY number"
    )
    return found["number"].to_numpy(), found["pages"].to_numpy()


def _values(numbers: Relation, values: Floats) -> Cut:
    names = [written(value) if math.isfinite(value) else str(value) for value in values.tolist()]
    known = pa.table({"number": pa.array(values, pa.float64()), "slice": pa.array(names, pa.string())})
    named = numbers.engine.register(known)
    return Cut(
        f"SELECT n.serp, k.slice FROM {numbers} AS n LEFT JOIN {named} AS k ON k.number = n.number", tuple(names)
    )


WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

HOURS = tuple(f"{at:02}" for at in range(24))
_HOUR = 3_600_000  # milliseconds
_DAY = 24 * _HOUR
_WEEK = 7 * _DAY
_TO_MONDAY = 3  # days from Monday to Thursday, on which 1970 began
_NAME = re.compile(r"-?\d{4,}-\d\d-\d\d(?:T\d\d)?")


class _Clock(NamedTuple):
    """How time is cut: buckets of so many milliseconds, moved by so many; and what bucket number n is called."""

    size: int
    moved: int
    named: Callable[[Ints], list[str]]
    order: tuple[str, ...] = ()


def _dates(days: Ints) -> list[str]:
    return np.datetime_as_string(days.astype("datetime64[D]")).tolist()


_CLOCKS = {
    "hour": _Clock(_HOUR, 0, lambda hours: np.datetime_as_string(hours.astype("datetime64[h]")).tolist()),
    "day": _Clock(_DAY, 0, _dates),
    "week": _Clock(_WEEK, _TO_MONDAY * _DAY, lambda weeks: _dates(weeks * 7 - _TO_MONDAY)),
    "weekday": _Clock(_DAY, 0, lambda days: [WEEKDAYS[at] for at in ((days + _TO_MONDAY) % 7).tolist()], WEEKDAYS),
    "hour of week": _Clock(
        _HOUR,
        _TO_MONDAY * _DAY,
        lambda hours: [f"{WEEKDAYS[at // 24]} {at % 24:02}" for at in (hours % 168).tolist()],
        tuple(f"{day} {hour}" for day in WEEKDAYS for hour in HOURS),
    ),
    "hour of day": _Clock(_HOUR, 0, lambda hours: [f"{at:02}" for at in (hours % 24).tolist()], HOURS),
}
BY_TIME = tuple(_CLOCKS)
"""Names of slices by time."""


def by_time(serp: Relation, name: str) -> Cut:
    """Cut by when the page was asked for.

    ``hour`` is named as 2024-05-31T09, ``day`` as 2024-05-31, ``week`` as its Monday: in the order of time if sorted.

    Parameters
    ----------
    serp
        Pages.
    name
        One of `BY_TIME`.
    """
    clock = _CLOCKS[name]
    bucket = f"CAST(floor((time_ms + {clock.moved}) / {clock.size}.0) AS BIGINT)"
    found = serp.engine.arrow(f"SELECT DISTINCT {bucket} AS bucket FROM {serp} ORDER BY bucket")
    names = clock.named(found["bucket"].to_numpy())
    known = serp.engine.register(pa.table({"bucket": found["bucket"], "slice": pa.array(names, pa.string())}))
    sql = f"SELECT p.serp, k.slice FROM {serp} AS p LEFT JOIN {known} AS k ON k.bucket = {bucket}"
    return Cut(sql, clock.order or tuple(names), "UTC", all_kept=True)


def bucket_starts(names: Iterable[str]) -> tuple[int, ...]:
    """Give when hours, days or weeks begin that are slices: milliseconds since 1970.

    Raises
    ------
    InputError
        If one is no date or hour.

    Examples
    --------
    >>> bucket_starts(["1970-01-02", "1970-01-02T01"])
    (86400000, 90000000)
    """
    return tuple(_start(name) for name in names)


def _start(name: str) -> int:
    try:
        if _NAME.fullmatch(name):
            return int(np.datetime64(name, "ms").astype(np.int64))
    except ValueError:
        pass
    raise InputError(f"{name!r} is no hour, day or week", fix="slice by hour, day or week: 2024-05-31T09")
