"""How old documents are, against a day that is named and never the clock's."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from judged.errors import InputError


def day_of(value: Any, what: str, where: str = "") -> date:
    """Read a day: a date, or text or a number such as ``2024-05-31``, ``2024-05-31T12:00:00Z`` and ``20240531``.

    >>> day_of("2024-05-31T23:59:00+02:00", "today"), day_of(20240531.0, "today")
    (datetime.date(2024, 5, 31), datetime.date(2024, 5, 31))
    """
    # The time of day and its zone are not looked at.
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    text = f"{value:.0f}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value).strip()
    digits = text[:8].isdigit() and text[8:9] in {"", "T", " "}
    try:
        return date.fromisoformat(text[:8] if digits else text[:10])
    except ValueError:
        raise InputError(f"{what} is {text[:40]!r}, no date", fix="write 2024-05-31", path=where) from None


def days_by_doc(docs: list[str], values: list[Any], column: str, where: str) -> dict[str, date]:
    """Give the day of each document that has one."""
    known = zip(docs, values, strict=True)
    return {doc: day_of(value, f"the {column} of document {doc}", where) for doc, value in known if value is not None}


def today_of(today: Any, days: dict[str, date]) -> date:
    """Give the day that ages are counted from: the one that is named, else the newest of the table."""
    if today is not None:
        return day_of(today, "today")
    if not days:
        raise InputError("no document has a date", fix="name today, or leave out the column of dates")
    return max(days.values())
