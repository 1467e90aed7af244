"""Times of all types and formats, compared with Python's datetime."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judged.online.readers.values import EARLIEST, sql_time, sql_without_offset

CON = duckdb.connect()
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_all(values: list[Any], type: str) -> list[int | None]:
    """Convert many values in one query, because planning takes longer than conversion."""
    sql = sql_time("v", type)
    texts = [str(value) for value in values]
    times = CON.execute(f"SELECT {sql} FROM (SELECT CAST(unnest(?::VARCHAR[]) AS {type}) AS v)", [texts]).fetchall()
    return [time for (time,) in times]


def read(value: Any, type: str) -> int | None:
    return read_all([value], type)[0]


def expected(moment: datetime) -> int | None:
    milliseconds = (moment - EPOCH) // timedelta(milliseconds=1)
    return milliseconds if milliseconds >= EARLIEST else None


MOMENTS = st.datetimes(datetime(1980, 1, 1), datetime(2100, 1, 1))  # noqa: DTZ001 -- zones are added later
ZONES = st.one_of(st.none(), st.just(0), st.integers(-23 * 60 - 59, 23 * 60 + 59))


def many(values: st.SearchStrategy[Any]) -> Any:
    return st.lists(values, min_size=25, max_size=25)


SPELLINGS = st.tuples(MOMENTS, ZONES, st.sampled_from("T t "), st.integers(0, 2), st.integers(0, 6))


def spelled(moment: datetime, zone: int | None, mark: str, spelling: int, digits: int) -> tuple[str, datetime, bool]:
    moment = moment.replace(microsecond=moment.microsecond // 10 ** (6 - digits) * 10 ** (6 - digits))
    text = f"{moment:%Y-%m-%d}{mark}{moment:%H:%M:%S}" + (f".{moment:%f}"[: digits + 1] if digits else "")
    offset = zone or 0
    sign, hours, minutes = "-" if offset < 0 else "+", abs(offset) // 60, abs(offset) % 60
    if zone is not None:
        ends = (f"{sign}{hours:02}:{minutes:02}", f"{sign}{hours:02}{minutes:02}", f"{sign}{hours:02}")
        end = ends[spelling] if minutes == 0 or spelling < 2 else ends[0]
        text += "Z" if zone == 0 and spelling == 0 else end
    return text, moment.replace(tzinfo=timezone(timedelta(minutes=offset))), zone is None


@given(spellings=many(SPELLINGS))
@settings(max_examples=8)
def test_iso_in_any_spelling(spellings: list[Any]) -> None:
    cases = [spelled(*spelling) for spelling in spellings]
    texts = [text for text, _, _ in cases]
    assert read_all(texts, "varchar") == [expected(moment) for _, moment, _ in cases]
    sql = sql_without_offset("v", "varchar")
    results = CON.execute(f"SELECT {sql} FROM (SELECT unnest(?::VARCHAR[]) AS v)", [texts]).fetchall()
    assert [lacks_offset for (lacks_offset,) in results] == [has_no_offset for _, _, has_no_offset in cases]


@given(numbers=many(st.integers(EARLIEST * 10**6, 4 * 10**18)), unit=st.sampled_from([1, 10**3, 10**6, 10**9]))
@settings(max_examples=8)
def test_epochs_by_size_as_numbers_and_as_text(numbers: list[int], unit: int) -> None:
    epochs = [number // unit for number in numbers]
    expected_times = [number * unit // 10**6 for number in epochs]
    assert read_all(epochs, "bigint") == read_all(epochs, "varchar") == read_all(epochs, "hugeint") == expected_times


@given(milliseconds=many(st.integers(EARLIEST, 4 * 10**12)))
@settings(max_examples=8)
def test_seconds_with_a_fraction(milliseconds: list[int]) -> None:
    seconds = [millisecond / 1000 for millisecond in milliseconds]
    assert read_all(seconds, "double") == read_all(seconds, "varchar") == milliseconds


@given(moments=many(MOMENTS))
@settings(max_examples=5)
def test_typed_columns_and_text_agree(moments: list[datetime]) -> None:
    CON.execute("SET TimeZone = 'America/New_York'")  # it must have no effect
    expected_times = [expected(moment.replace(tzinfo=UTC)) for moment in moments]
    texts = [f"{moment:%Y-%m-%dT%H:%M:%S.%f}" for moment in moments]
    assert (
        read_all(texts, "timestamp") == read_all(texts, "timestamp_ns") == read_all(texts, "varchar") == expected_times
    )
    assert read_all([text + "+00:00" for text in texts], "timestamp with time zone") == expected_times
    seconds = [moment.replace(microsecond=0) for moment in moments]  # the database rounds when it creates these types
    expected_seconds = [expected(moment.replace(tzinfo=UTC)) for moment in seconds]
    assert read_all(seconds, "timestamp_ms") == read_all(seconds, "timestamp_s") == expected_seconds
    days = [datetime(moment.year, moment.month, moment.day, tzinfo=UTC) for moment in moments]
    assert read_all([f"{day:%Y-%m-%d}" for day in days], "date") == [expected(day) for day in days]


@given(texts=many(st.one_of(st.text(max_size=40), st.text("0123456789-+:TZ.e ", max_size=30))))
@settings(max_examples=10)
def test_any_text_is_a_time_or_null(texts: list[str]) -> None:
    for text, milliseconds in zip(texts, read_all(texts, "varchar"), strict=True):
        assert milliseconds is None or (
            milliseconds >= EARLIEST and re.search(r"[0-9]{4}|[0-9.][eE]", text) is not None
        )


@pytest.mark.parametrize(
    "text",
    ["", " ", "yesterday", "true", "-5", "inf", "nan", "1e400", "2026-02-30T00:00:00Z", "2026-01-05T10:00:00+99:99",
     "99999999999999999999", "1994-12-31T23:59:59.999Z", "20260105", "2026-01-05T25:00:00Z", '{"a": 1}', "0", "12:30"],
)  # fmt: skip
def test_what_is_no_time(text: str) -> None:
    assert read(text, "varchar") is None


def test_hand_counted() -> None:
    assert read("1995-01-01T00:00:00Z", "varchar") == EARLIEST == 788918400000
    assert read("2024-12-10T00:01:29.378+0000", "varchar") == 1733788889378
    assert read("2024-12-10T02:01:29.3789999+02:00", "varchar") == 1733788889378
    assert read("2024-12-10T00:01Z", "varchar") == 1733788860000
    assert read("2024-12-10", "varchar") == 1733788800000
    assert read(1717527762, "bigint") == 1717527762000
    assert read(1717527762186, "bigint") == 1717527762186
    assert read(1717527762186999, "bigint") == 1717527762186
    assert read(1717527762186999999, "bigint") == 1717527762186
    assert read(-(2**63), "bigint") is None
    assert read("true", "boolean") is None
