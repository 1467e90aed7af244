"""Slices by time, and by shown and clicked results."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged.data.documents import Documents
from judged.data.freshness import AFTER, dated_documents
from judged.errors import InputError
from judged.online import online_metrics
from judged.online.slicing import bucket_starts, slice_pages
from judged.online.slicing.columns import _TIME_BUCKETS
from online.slicing.sliced_logs import logs, refused, sliced

HOUR, DAY = 3_600_000, 86_400_000


def ms(text):
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


WHEN = [
    "2024-02-29T23:59:59.999",
    "2024-03-01T00:00:00",
    "2024-03-03T12:30:00",
    "2024-03-04T00:00:00",
    "1969-12-31T23:00",
]


@pytest.mark.parametrize(
    ("by", "slices"),
    [
        ("hour", ["2024-02-29T23", "2024-03-01T00", "2024-03-03T12", "2024-03-04T00", "1969-12-31T23"]),
        ("day", ["2024-02-29", "2024-03-01", "2024-03-03", "2024-03-04", "1969-12-31"]),
        ("week", ["2024-02-26", "2024-02-26", "2024-02-26", "2024-03-04", "1969-12-29"]),
        ("weekday", ["Thursday", "Friday", "Sunday", "Monday", "Wednesday"]),
        ("hour of day", ["23", "00", "12", "00", "23"]),
        ("hour of week", ["Thursday 23", "Friday 00", "Sunday 12", "Monday 00", "Wednesday 23"]),
    ],
)
def test_times_by_hand(by, slices):
    names, values, note = sliced(logs([{"time_ms": ms(time)} for time in WHEN]), by)
    assert names == slices
    assert note == "UTC"
    if by == "weekday":
        assert values == ("Monday", "Wednesday", "Thursday", "Friday", "Sunday")
    elif by == "hour of week":
        assert values == ("Monday 00", "Wednesday 23", "Thursday 23", "Friday 00", "Sunday 12")
    else:
        assert values == tuple(sorted(set(slices)))


@pytest.mark.parametrize("by", ["month", "Year"])
def test_other_lengths_of_time_name_those_there_are(by):
    with pytest.raises(InputError) as error:
        sliced(logs([{"time_ms": 0}]), by)
    message = f"pages cannot be sliced by {by!r}. Fix: use one of hour, day, week, weekday, hour of week, hour of day."
    assert str(error.value) == message


def test_points_of_a_series_are_never_merged_and_say_when_they_begin():
    first_ms = ms("2024-12-30T22:00")
    log = logs([{"time_ms": first_ms + hour * HOUR + 5} for hour in range(50)])
    for by, size in (("hour", HOUR), ("day", DAY), ("week", 7 * DAY)):
        slices, values, _ = sliced(log, by)
        starts = dict(zip(values, bucket_starts(values), strict=True))
        assert list(starts.values()) == sorted(starts.values())
        assert all(
            0 <= first_ms + hour * HOUR + 5 - starts[slice_name] < size for hour, slice_name in enumerate(slices)
        )
    assert len(sliced(log, "hour")[1]) == 50


@given(st.integers(-(10**12), 10**13))
def test_buckets_hold_their_times(time):
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time)
    for by, size in (("hour", HOUR), ("day", DAY), ("week", 7 * DAY)):
        buckets = _TIME_BUCKETS[by]
        bucket = pa.array([(time + buckets.offset) // buckets.size]).to_numpy()
        (start,) = bucket_starts(buckets.format_names(bucket))
        assert 0 <= time - start < size
    assert datetime.fromtimestamp(start // 1000, UTC).weekday() == 0
    day = pa.array([time // DAY]).to_numpy()
    assert _TIME_BUCKETS["weekday"].format_names(day) == [f"{moment:%A}"]


@pytest.mark.parametrize("name", ["Monday", "today", "unknown", "2024", "2024-13-01", "09", "2024-05-31T99", ""])
def test_what_is_no_point_in_time(name):
    with pytest.raises(InputError, match="not an hour, day, or week"):
        bucket_starts([name])


def test_a_log_without_a_clock_is_not_sliced_by_time():
    log = logs([{}], has_time=False)
    assert "no timestamps to slice by week" in refused(log, "week")
    assert "no timestamps" in refused(log, "freshness", documents={"a": {"date": "2024"}})


def test_a_log_of_times_without_dates_has_hours_of_the_day_alone():
    log = logs([{"time_ms": ms("2000-01-01T09:30")}], dated=False)
    assert "no dates to slice by week" in refused(log, "week")
    assert "no dates to slice by weekday" in refused(log, "weekday")
    assert sliced(log, "hour of day")[0] == ["09"]


def test_a_log_without_filters_says_that_it_may_record_none():
    assert "does not record filters" in sliced(logs([{}]), "filtered")[2]
    assert sliced(logs([{}, {"filtered": True}]), "filtered")[2] == ""


def test_pages_filters_and_results():
    counts = [(0, 0), (9, 9), (10, 10), (99, 10), (100, 10), (1000, 10), (None, 0), (None, 7), (None, None)]
    pages = [
        {"n_total": total, "n_returned": returned, "page": i + 1, "filtered": i == 2}
        for i, (total, returned) in enumerate(counts)
    ]
    log = logs(pages)
    assert sliced(log, "results")[:2] == (
        ["zero", "1-9", "10-99", "10-99", "100-999", "1000+", "zero", "1-9", "unknown"],
        ("zero", "1-9", "10-99", "100-999", "1000+", "unknown"),
    )
    assert sliced(log, "Page")[:2] == (["1", "2", "3"] + ["4+"] * 6, ("1", "2", "3", "4+"))
    assert sliced(log, "filtered")[0] == ["not filtered"] * 2 + ["filtered"] + ["not filtered"] * 6


CLICKS = [
    {"serp": 0, "time_ms": 9, "rank": 1, "object_id": "new"},
    {"serp": 0, "time_ms": 5, "rank": 4, "object_id": "old"},  # the first, though of a worse rank
    {"serp": 1, "time_ms": 5, "rank": 3, "object_id": "new"},
    {"serp": 1, "time_ms": 5, "rank": 2, "object_id": "old"},  # two at once: the best rank
    {"serp": 2, "time_ms": 5, "rank": None, "object_id": "gone"},
    {"serp": 2, "time_ms": 6, "rank": 1, "object_id": "new"},
    {"serp": 3, "time_ms": 5, "rank": 1, "action": "hover", "object_id": "new"},
    {"serp": None, "time_ms": 5, "rank": 1, "object_id": "new"},
    {"serp": 4, "time_ms": 5, "rank": 11, "object_id": "old"},
    {"serp": 5, "time_ms": 5, "rank": 1, "object_id": "new"},
]


def test_first_click():
    slices, values, note = sliced(logs([{}] * 6, events=CLICKS), "first_click")
    assert slices == ["4-10", "2-3", "unknown", "none", "11+", "1"]
    assert values == ("1", "2-3", "4-10", "11+", "none", "unknown")
    assert "slices depend on clicks" in note
    assert "has no clicks" in refused(logs([{}], has=()), "first click")


def test_freshness():
    now = ms("2024-03-10T01:00")
    objects = {"object_id": ["old", "new", "next"], "time_ms": [now - 40 * DAY, now - 2 * HOUR, now + DAY]}
    objects_by_page = [["old", "new"], ["old"], ["gone"], [], ["old", "gone"], ["new", "next"]]
    shown = [
        {"serp": serp, "rank": rank, "object_id": object_id}
        for serp, object_ids in enumerate(objects_by_page)
        for rank, object_id in enumerate(object_ids, 1)
    ]
    log = logs([{"time_ms": now}] * 6, events=CLICKS, shown=shown)
    documents = dated_documents(pa.table(objects), bands=(1, 40))
    slices, values, _ = sliced(log, "freshness", documents=documents)
    # made two hours before one o'clock is made the day before; 40 days are within the band
    assert slices == ["0 to 1 days", "2 to 40 days", "no date", "unknown", "2 to 40 days", AFTER]
    assert values == (AFTER, "0 to 1 days", "2 to 40 days", "no date", "unknown")
    (note,) = slice_pages(log, "freshness", documents=documents).warnings
    assert (note.rule, "to the day of the page" in note.text) == ("freshness", True)
    clicked = sliced(log, "freshness:clicked", documents=documents)
    assert clicked[0] == ["2 to 40 days", "0 to 1 days", "no date", "none", "2 to 40 days", "0 to 1 days"]
    assert clicked[1] == ("0 to 1 days", "2 to 40 days", "no date", "none")
    fixed = dated_documents(pa.table(objects), bands=(1, 40), as_of="2024-03-11")  # one day later for all pages
    slices, _, _ = sliced(log, "freshness", documents=fixed)
    assert slices == ["2 to 40 days", "over 40 days", "no date", "unknown", "over 40 days", "0 to 1 days"]
    assert "to 2024-03-11;" in slice_pages(log, "freshness", documents=fixed).warnings[0].text


def test_freshness_by_dates_of_documents(tmp_path):
    now = ms("2024-03-10T01:00")
    shown = [
        {"serp": serp, "rank": 1, "object_id": object_id}
        for serp, object_id in enumerate(["old", "new", "bare", "gone"])
    ]
    log = logs([{"time_ms": now}] * 4, shown=shown)
    path = tmp_path / "documents.csv"
    path.write_text("doc_id,date,length\nold,2024-02-01,3\nnew,2024-03-10T00:30:00Z,4\nbare,,5\n", encoding="utf-8")
    for documents in (path, str(path), Documents.read(path)):
        # thirds of 0 and 38 days on the newest date: each document is a band
        assert sliced(log, "freshness", documents=documents)[0] == ["1 to 38 days", "0 days", "no date", "no date"]
    path.write_text("doc_id,length\nold,3\n", encoding="utf-8")
    assert "the columns are length" in refused(log, "freshness", documents=path)


def test_metrics_by_freshness_are_given_the_objects():
    page = {"time_ms": ms("2024-03-10T01:00")}
    log = logs([page] * 2, shown=[{"serp": 0, "rank": 1, "object_id": "a"}], events=CLICKS[:1],
               has=("clicks", "shown", "unclicked"))  # fmt: skip
    documents = dated_documents({"a": {"date": "2024-03-09"}}, bands=[7])
    scores = online_metrics(log, "Abandonment", by="freshness", documents=documents)
    assert [(estimate.slice, estimate.numerator, estimate.denominator) for estimate in scores.estimates] == [
        (None, 1, 2), ("0 to 7 days", 0, 1), ("unknown", 1, 1),
    ]  # fmt: skip
    with pytest.raises(InputError, match="pass documents="):
        online_metrics(log, "Abandonment", by="freshness")


def test_freshness_without_dates():
    assert "pass documents=" in refused(logs([{}]), "freshness")
    assert "no column of dates" in refused(logs([{}]), "freshness", documents={"a": {"length": 3}})
    assert "no shown results" in refused(logs([{}], has=["clicks"]), "freshness", documents={})
