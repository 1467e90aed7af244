"""Logs for the clickmodels library: tab-separated columns with JSON lists or objects."""

from __future__ import annotations

import pytest

from judged.online.log import RAW_EVENT, RAW_QUERY
from judged.online.storage import read_raw
from online.readers.raw_logs import check_columns, rows, shared_engine
from shared_data import SHARED, needs_shared

LISTS = 's\tq one\t50\t0.25\t["a", "b", "c"]\t[false, true, false]\t[0, 2, 1, 0]\n'
OBJECTS = 's\tq one\t50\t0.25\t{"1": "b", "0": "a", "2": "c"}\t{"1": true}\t{"2": 1, "1": 2}\n'


@pytest.mark.parametrize("line", [LISTS, OBJECTS])
def test_both_ways_of_writing_give_the_same(tmp_path, line):
    path = tmp_path / "log.tsv"
    path.write_text("\n" + line, encoding="utf-8")
    log = read_raw([path], shared_engine(), layout="clickmodels")
    keys = {"file": 0, "row": 2, "query_id": "0:2", "session_id": "s"}
    assert rows(log.queries) == [
        keys | {"time_ms": 10000, "query": "q one", "hit_ids": ["a", "b", "c"], "region": "50"}
    ]
    assert rows(log.events) == [
        keys | {"time_ms": 10000 + order, "action": "click", "object_id": url, "position": position}
        for order, url, position in [(1, "b", 1), (2, "b", 1), (3, "c", 2)]
    ]
    check_columns(log.queries, RAW_QUERY)
    check_columns(log.events, RAW_EVENT)
    assert (log.has_time, log.rank_base, log.lines, log.findings) == (False, 0, 1, ())


def test_results_stay_at_their_positions(tmp_path):
    path = tmp_path / "log.tsv"
    path.write_text('s\tq\t1\t1\t{"4": "e", "0": "a"}\t{}\t{"4": 1}\n', encoding="utf-8")
    log = read_raw([path], shared_engine(), layout="clickmodels")
    assert [(row["hit_ids"], row["ranks"]) for row in rows(log.queries)] == [(["a", "e"], [1, 5])]
    assert [(row["object_id"], row["position"]) for row in rows(log.events)] == [("e", 4)]


@pytest.mark.parametrize(
    "line",
    [
        "s\tq\t1\t1\t[]\t[]",
        "s\tq\t1\t1\t[\t[]\t[]",
        "s\tq\t1\t1\t3\t[]\t[]",
        's\tq\t1\t1\t{"-1": "a"}\t[]\t[]',
        's\tq\t1\t1\t["a"]\t[]\t{"-1": 1}',
        's\tq\t1\t1\t["a"]\t[]\t[-1]',
        's\tq\t1\t1\t["a"]\t[]\t["x"]',
        's\tq\t1\t1\t["a"]\t[]\t[1e400]',
        's\tq\t1\t1\t["a"]\t[]\t[NaN]',
        's\tq\t1\t1\t["a"]\t[]\t[10001]',
        's\tq\t1\t1\t["a"]\t[]\t{"10000": 1}',
        "s\tq\t1\t1\t" + "[" * 100_000 + "\t[]\t[]",
    ],
)
def test_what_is_no_page_is_counted(tmp_path, line):
    path = tmp_path / "log.tsv"
    path.write_text(LISTS + line + "\n", encoding="utf-8")
    log = read_raw([path], shared_engine(), layout="clickmodels")
    (finding,) = log.findings
    assert (finding.rows, finding.places, log.lines) == (1, (f"{path}:2",), 2)
    assert len(rows(log.queries)) == 1


@needs_shared
@pytest.mark.parametrize("name", ["click_log_sample.tsv", "click_log_sample_extended_format.tsv"])
def test_the_published_samples(name):
    log = read_raw([SHARED / "logs/clickmodels_sample" / name], shared_engine(), layout="clickmodels")
    assert [(row["query"], len(row["hit_ids"])) for row in rows(log.queries)] == [(f"QUERY{n}", 10) for n in (1, 2, 3)]
    assert [row["object_id"] for row in rows(log.events)] == [f"http://{n}" for n in (3, 4, 12, 13)]
    assert log.findings == ()
