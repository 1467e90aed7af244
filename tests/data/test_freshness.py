"""Age of documents: dates, reference days, and bands with the same labels in slices, logs, and failures."""

from __future__ import annotations

import warnings
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged.comparison.slicing.topic_slices import sort_slice_values
from judged.data import Documents, Qrels
from judged.data.column_names import use_columns
from judged.data.freshness import AFTER, NO_DATE, dated_documents, find_date_column, parse_day
from judged.errors import InputError

DAY = 86_400


def aged(*ages: int | None, **options: Any) -> list[str]:
    """Return the bands of documents with ages relative to 2024-03-01, the day after a leap day."""
    reference = date(2024, 3, 1)
    dates = {
        f"d{i}": {"date": None if age is None else (reference - timedelta(age)).isoformat()}
        for i, age in enumerate(ages)
    }
    documents = dated_documents(dates, **options)
    return [documents.band(documents.ages.get(doc_id)) for doc_id in documents.ids]


@pytest.mark.parametrize(
    ("value", "day"),
    [
        ("2024-05-31", "2024-05-31"),
        (" 2024-05-31 10:00 ", "2024-05-31"),
        ("2024-05-31 10:00:00 UTC", "2024-05-31"),
        ("20240531T101010", "2024-05-31"),
        ("20240531", "2024-05-31"),
        (20240531.0, "2024-05-31"),
        ("2024-05-31T23:59:59-00:01", "2024-06-01"),  # times with a zone are converted
        ("2024-06-01T00:30:00+14:00", "2024-05-31"),
        ("2024-05-31T23:59:59.999999999Z", "2024-05-31"),
        (datetime(2024, 6, 1, 1, tzinfo=timezone(timedelta(hours=2))), "2024-05-31"),
        (datetime(2024, 5, 31, 23, 59), "2024-05-31"),  # noqa: DTZ001 -- a time without a zone
        (date(2024, 2, 29), "2024-02-29"),
        ("2024-02-29", "2024-02-29"),
        ("2023-02-29", None),
        (1_717_199_999, "2024-05-31"),
        (1_717_200_000, "2024-06-01"),  # midnight
        (1_717_199_999.9, "2024-05-31"),
        ("1717200000000", "2024-06-01"),
        (1_717_199_999_999.0, "2024-05-31"),
        (100_000_000, "1973-03-03"),  # the first number that is read as seconds
        (99_999_999, None),
        (-86_400_000_001.0, None),
        ("2024", "2024-01-01"),
        (1999.0, "1999-01-01"),
        (1999.5, None),
        (3000, None),
        (12, None),
        (0, None),
        ("2024-05", "2024-05-01"),
        ("2024-13", None),
        ("31.05.2024", None),
        ("yesterday", None),
        ("", None),
        (True, None),
        (1.7e15, None),  # a year with five digits
        ("0001-01-01T00:00:00+14:00", None),
    ],
)
def test_days(value: Any, day: str | None) -> None:
    assert parse_day(value) == (None if day is None else date.fromisoformat(day))


@given(st.datetimes(datetime(1973, 4, 1), datetime(2900, 1, 1)), st.integers(-14 * 60, 14 * 60))  # noqa: DTZ001
def test_all_notations_of_a_time_are_one_day(time: datetime, minutes: int) -> None:
    instant = time.replace(microsecond=0, tzinfo=UTC)
    local = instant.astimezone(timezone(timedelta(minutes=minutes)))
    seconds = int(instant.timestamp())
    for value in (instant, local, local.isoformat(), seconds, float(seconds * 1000), str(seconds), f"{instant:%Y%m%d}"):
        assert parse_day(value) == instant.date()


def test_bands_at_their_limits() -> None:
    """A limit is the last day of its band."""
    bands = aged(0, 7, 8, 30, 31, 365, 366, -1, None, bands=(7, 30, 365), as_of="2024-03-01")
    assert bands == ["0 to 7 days", "0 to 7 days", "8 to 30 days", "8 to 30 days", "31 to 365 days", "31 to 365 days",
                     "over 365 days", AFTER, NO_DATE]  # fmt: skip
    assert aged(0, 1, 2, bands="0,1") == ["0 days", "1 day", "over 1 days"]


def test_leap_days_count() -> None:
    table = {"a": {"date": "2024-02-28"}, "b": {"date": "2024-03-01"}, "c": {"date": "2023-03-01"}}
    assert dated_documents(table).ages == {"a": 2, "b": 0, "c": 366}


def test_thirds_with_ties() -> None:
    assert aged(0, 1, 2, 3, 4, 5) == ["0 to 1 days"] * 2 + ["2 to 3 days"] * 2 + ["over 3 days"] * 2
    # the third of seven documents is 7/3: the first band has three
    assert aged(*range(7)) == ["0 to 2 days"] * 3 + ["3 to 4 days"] * 2 + ["over 4 days"] * 2
    assert aged(0, 5, 5, 5, 9, 9) == ["0 to 5 days"] * 4 + ["over 5 days"] * 2  # both limits are 5
    assert aged(3, 3, None, as_of="2024-03-01") == ["0 to 3 days", "0 to 3 days", NO_DATE]
    assert aged(3) == ["0 days"]  # one date only: it is the newest
    assert aged(-1, -2, as_of="2024-03-01") == [AFTER, AFTER]
    # documents after the reference day do not shift the thirds
    assert aged(0, 1, 2, -5, -6, -7, as_of="2024-03-01")[:3] == ["0 days", "1 day", "over 1 days"]


@given(
    st.lists(st.one_of(st.none(), st.integers(-50, 900)), min_size=1, max_size=40),
    st.one_of(st.none(), st.sets(st.integers(0, 800), min_size=1, max_size=5).map(sorted)),
)
def test_bands_partition_the_documents(ages: list[int | None], limits: list[int] | None) -> None:
    """Every document is in one band; bands are ordered by age, and documents of equal age share a band."""
    if all(age is None for age in ages):
        return
    names = aged(*ages, bands=limits, as_of="2024-03-01")
    reference = dated_documents({"d": {"date": "2024-03-01"}}, bands=limits or (1,))
    assert len(set(reference.band_names)) == len(reference.band_names)
    for age, name in zip(ages, names, strict=True):
        assert (name == NO_DATE) == (age is None)
        assert (name == AFTER) == (age is not None and age < 0)
        if age is not None and age >= 0:
            numbers = [int(word) for word in name.split() if word.isdigit()]
            if name.startswith("over"):
                assert age > numbers[0]
            else:
                assert numbers[0] <= age <= numbers[-1]
    known = sorted((age, name) for age, name in zip(ages, names, strict=True) if age is not None)
    in_order = list(dict.fromkeys(name for _, name in known))
    assert in_order == sort_slice_values("freshness", sorted(set(names) - {NO_DATE}))


def test_date_columns() -> None:
    for name in ("date", "Published At", "last-modified", "createdAt", "timestamp", "year"):
        assert dated_documents([{"doc_id": "a", name: "2024"}]).ages == {"a": 0}
    both = {"a": {"created": "2020-01-01", "updated": "2024-01-01", "when": "2022-01-01"}}
    assert dated_documents(both).date_column == "updated"
    with use_columns({"date": "When"}):
        assert dated_documents(both).dates == {"a": date(2022, 1, 1)}
    with use_columns({"documents.date": "created"}):
        assert dated_documents(both).dates == {"a": date(2020, 1, 1)}
    # a usual name without dates is not a column of dates, unless it is selected
    flags = {"a": {"updated": True, "created": "2020-01-01"}}
    assert dated_documents(flags).date_column == "created"
    with use_columns({"date": "updated"}), pytest.raises(InputError, match="the column updated has no valid date"):
        dated_documents(flags)
    assert find_date_column(Documents.of({"a": {"length": 3}})) is None
    with pytest.raises(InputError, match="no column of dates: the columns are length"):
        dated_documents({"a": {"length": 3}})
    frame = pa.table({"id": ["a", "b"], "date": pa.array([datetime(2024, 1, 2), None], pa.timestamp("ns", "UTC"))})  # noqa: DTZ001
    assert dated_documents(frame).dates == {"a": date(2024, 1, 2)}


def test_unusable_dates_are_counted() -> None:
    values = ["2024-01-01", "soon", None, "2023", "2022-06", "later", "2024-01-01"]
    documents = dated_documents({f"d{i}": {"updated": value} for i, value in enumerate(values)})
    text = documents.note().text
    assert "from the column updated to 2024-01-01, the newest date" in text
    assert "3 of 7 documents have no date (2 invalid, such as 'soon')" in text
    assert "2 dates have no day" in text
    complete = dated_documents({"a": {"date": "2024-01-01"}}, as_of="2024-02-01", bands=[30]).note("some day").text
    assert "to some day; bands: given limits" in complete
    assert "documents" not in complete


@pytest.mark.parametrize("bands", ["", "7,", "30,7", "7,7", "-1,7", "1.5", "a", (), (-1,)])
def test_invalid_limits(bands: Any) -> None:
    with pytest.raises(InputError, match="ascending whole numbers of days"):
        dated_documents({"a": {"date": "2024"}}, bands=bands)


def test_an_invalid_reference_day() -> None:
    with pytest.raises(InputError, match=r"`as_of` must be a date, got 'soon'\. Fix: use a date such as 2024-05-31"):
        dated_documents({"a": {"date": "2024"}}, as_of="soon")


def test_reference_day_and_bands_are_kept() -> None:
    dated = dated_documents({"a": {"date": "2024-01-01"}}, as_of="2024-01-31", bands=[30])
    assert dated_documents(dated) is dated
    assert Documents.of(dated) is dated
    assert (dated.band(31), dated.band(30), dated.band(None)) == ("over 30 days", "0 to 30 days", NO_DATE)
    again = dated_documents(dated, bands=[7])  # new options replace all
    assert (again.bands.names[1], again.as_of) == ("0 to 7 days", date(2024, 1, 1))


def test_a_selected_column_that_exists_is_not_reported_as_missing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with use_columns({"documents.date": "When"}):
            Qrels.of([{"query_id": "q", "doc_id": "a", "relevance": 1}])
            dated_documents({"a": {"when": "2022-01-01"}})
