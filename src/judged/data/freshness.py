"""Freshness of documents: their dates, their ages in days on a reference day, and bands of ages.

Slices of topics, slices of logs, and kinds of failure use this rule, so a document has the same label in all of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from judged.data.attributes import Bands
from judged.data.column_names import known_names, name_key, reading_options
from judged.data.documents import Documents
from judged.errors import InputError
from judged.results.blocks import Note
from judged.results.decimals import is_number
from judged.results.types import cached_property

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_DATE = "no date"
"""Band of documents without a date."""

AFTER = "after the reference day"
"""Band of documents with a negative age."""

_PARTS = 3  # bands with about equally many documents, if there are no limits
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MIN_SECONDS, _MIN_MILLISECONDS = 1e8, 1e11  # since 1970: both are days of March 1973
_FIRST_YEAR, _LAST_YEAR = 1000, 2999
_PARTIAL = re.compile(r"(\d{4})(?:-\d{2}|\.0)?")  # a year, or a year and a month


def parse_day(value: Any) -> date | None:
    """Return the day (UTC) of a date, or None if it is invalid.

    Dates are ISO 8601 dates or times, years, year and month, ``20240531``, and seconds or milliseconds since 1970.
    Times without a zone are in UTC. Years and months are their first day.

    >>> [str(parse_day(value)) for value in ("2024-05-31T23:00-05:00", 1717200000, 1717200000000.0, "2024", "soon")]
    ['2024-06-01', '2024-06-01', '2024-06-01', '2024-01-01', 'None']
    """
    text = str(value).strip()
    try:
        if isinstance(value, datetime):
            return (value.astimezone(UTC) if value.tzinfo else value).date()
        if isinstance(value, date):
            return value
        if is_number(text):
            return _day_of_number(float(text))
        is_month = _PARTIAL.fullmatch(text)
        return parse_day(datetime.fromisoformat(f"{text}-01" if is_month else text.removesuffix(" UTC")))
    except (ValueError, OverflowError):  # the day does not exist, or is not between the years 1 and 9999
        return None


def _day_of_number(number: float) -> date | None:
    if _FIRST_YEAR <= number <= _LAST_YEAR and number.is_integer():
        return date(int(number), 1, 1)
    if abs(number) < _MIN_SECONDS:
        return date.fromisoformat(f"{number:.0f}") if number >= _FIRST_YEAR * 10_000 else None
    seconds = number / 1000 if abs(number) >= _MIN_MILLISECONDS else number
    return (_EPOCH + timedelta(seconds=math.floor(seconds))).date()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DatedDocuments(Documents):
    """Documents with dates, a reference day, and bands of ages. Immutable; see `dated_documents`.

    Attributes
    ----------
    date_column : str
        Column of dates.
    dates : dict
        Day of each document with a valid date.
    as_of : date
        Reference day of ages.
    is_newest : bool
        Whether the reference day is the newest date.
    bands : Bands
        Bands of ages in days; the first one is `AFTER`.
    remarks : str
        Limits of the bands, and numbers of missing, invalid, and incomplete dates.
    """

    date_column: str
    dates: Mapping[str, date]
    as_of: date
    is_newest: bool
    bands: Bands
    remarks: str

    @cached_property
    def ages(self) -> dict[str, int]:
        """Age of each document in days; documents without a valid date are missing."""
        return {doc_id: (self.as_of - day).days for doc_id, day in self.dates.items()}

    def band(self, age: float | None) -> str:
        """Return the band of an age, which is None for a document without a date."""
        return self.bands.label(age) or NO_DATE

    @property
    def band_names(self) -> tuple[str, ...]:
        """Names of all bands in order of age; `NO_DATE` is last."""
        return (*self.bands.names, NO_DATE)

    def note(self, reference_day: str = "") -> Note:
        """Return a note on the reference day, unit, bands, and unusable dates."""
        day = reference_day or f"{self.as_of}{', the newest date' if self.is_newest else ''}"
        text = f"freshness: age in days (UTC), from the column {self.date_column} to {day}; {self.remarks}"
        return Note("freshness", text)


def dated_documents(documents: Any, *, as_of: Any = None, bands: str | Iterable[int] | None = None) -> DatedDocuments:
    """Read the dates of documents, and set the reference day and the bands of their ages.

    Parameters
    ----------
    documents
        Input of `Documents.of` with a column of dates: ``date``, ``published``, ``updated``, ``last_modified``,
        ``created``, or another usual name. `judged.data.column_names.use_columns` selects another column.
    as_of
        Reference day of ages, such as ``"2024-05-31"``. None: the newest date of the documents; in logs, the day of
        each result page.
    bands
        Limits of bands in days, ascending: ``(7, 30)`` are 0 to 7, 8 to 30, and over 30 days. None: bands with about
        a third of the documents each. Documents with the same age are in the same band.

    Returns
    -------
    DatedDocuments
        Functions that accept documents use its reference day and bands.

    Raises
    ------
    InputError
        If there is no column of dates, no document has a valid date, or `as_of` or `bands` is invalid.

    Examples
    --------
    >>> table = {"a": {"published": "2024-05-31"}, "b": {"published": "2024-05-01"}, "c": {"published": None}}
    >>> documents = dated_documents(table, bands=(7, 30))
    >>> documents.ages, [documents.band(documents.ages.get(doc_id)) for doc_id in documents.ids]
    ({'a': 0, 'b': 30}, ['0 to 7 days', '8 to 30 days', 'no date'])
    """
    if isinstance(documents, DatedDocuments) and as_of is None and bands is None:
        return documents
    table = Documents.of(documents)
    name = find_date_column(table)
    if name is None:
        problem = f"no column of dates: the columns are {', '.join(table.names) or 'none'}"
        fix = "use --columns documents.date=COLUMN, with dates such as 2024-05-31"
        raise InputError(problem, fix=fix, path=table.where)
    values = table.table[name].to_pylist()
    days = {value: parse_day(value) for value in dict.fromkeys(values) if value is not None}
    dates = {doc_id: day for doc_id, value in zip(table.ids, values, strict=True) if (day := days.get(value))}
    if not dates:
        raise InputError(f"the column {name} has no valid date", fix="use dates such as 2024-05-31", path=table.where)
    reference = max(dates.values()) if as_of is None else parse_day(as_of)
    if reference is None:
        raise InputError(f"`as_of` must be a date, got {str(as_of)!r:.60}", fix="use a date such as 2024-05-31")
    ages = sorted((reference - day).days for day in dates.values() if day <= reference)
    # Rank of the last document of each part, rounded up: equal ages are in one band, the one that ends with this age.
    thirds = {ages[-(-part * len(ages) // _PARTS) - 1] for part in range(1, _PARTS) if ages}
    limits = sorted(thirds or {0}) if bands is None else _parse_limits(bands)
    remarks = [f"bands: {'thirds of the dated documents' if bands is None else 'given limits'}"]
    if missing := len(values) - len(dates):
        invalid = [str(value) for value in values if value is not None and days[value] is None]
        invalid_text = f" ({len(invalid)} invalid, such as {invalid[0][:30]!r})" if invalid else ""
        remarks.append(f"{missing} of {len(values)} documents have no date{invalid_text}")
    if partial := sum(bool(_PARTIAL.fullmatch(str(value).strip())) for value in values if days.get(value)):
        remarks.append(f"{partial} dates have no day, the first day of the year or month is assumed")
    return DatedDocuments(
        table.table,
        table.where,
        date_column=name,
        dates=dates,
        as_of=reference,
        is_newest=as_of is None,
        bands=Bands(
            (0, *(limit + 1 for limit in limits)),
            (AFTER, *(_band_name(low + 1, high) for low, high in pairwise((-1, *limits))), f"over {limits[-1]} days"),
        ),
        remarks="; ".join(remarks),
    )


def find_date_column(documents: Documents) -> str | None:
    """Return the column of dates: that of ``--columns``, or the first usual name with a valid date; None without it."""
    options, names = reading_options(), {name_key(name): name for name in documents.names}
    selected = options.columns.get("documents.date", options.columns.get("date"))
    if selected is not None:
        options.present.update({"", selected} if name_key(selected) in names else ())
        return names.get(name_key(selected))
    candidates = (names[key] for key in map(name_key, known_names("documents")["date"]) if key in names)
    return next((name for name in candidates if any(map(parse_day, documents.table[name].unique().to_pylist()))), None)


def _parse_limits(bands: str | Iterable[int]) -> list[int]:
    parts = bands.split(",") if isinstance(bands, str) else [*bands]
    limits = [int(part) if re.fullmatch(r"\s*\d{1,6}\s*", str(part)) else -1 for part in parts]
    if not limits or limits[0] < 0 or any(low >= high for low, high in pairwise(limits)):
        problem = f"limits of freshness bands must be ascending whole numbers of days, got {bands!r:.60}"
        raise InputError(problem, fix="use 7,30,365, for example")
    return limits


def _band_name(low: int, high: int) -> str:
    return f"{low} to {high} days" if low < high else "1 day" if high == 1 else f"{high} days"
