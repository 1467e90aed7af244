"""Logs read by a mapping: all formats, and all kinds of values and rows."""

from __future__ import annotations

import datetime as dt
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judged.errors import InputError
from judged.online.preparation.make import make_log
from judged.online.storage import read_raw
from online.readers.raw_logs import read_mapped, rows, shared_engine, write_mapping

PAGES = """
rank_base = 0
[queries.columns]
query_id = "id"
session_id = "s.id"
time = "t"
query = "q"
page = "p"
hit_ids = "hits[].doc"
teams = "hits[].team"
propensities = "hits[].p"
filtered = { path = "f", filled = true }
rescued = { path = "how", equals = ["spell", "relax"] }
latency = { path = "took", unit = "seconds" }
[queries.attributes]
"odd name" = "s.x"
position = { value = "top" }
"""


def test_json_lines_every_kind_of_value(tmp_path):
    log = read_mapped(
        tmp_path,
        PAGES,
        {
            "a.jsonl": [
                {
                    "id": 7,
                    "s": {"id": "s1", "x": 1.5},
                    "t": "2024-05-01T10:00:00.250Z",
                    "q": 'it"s',
                    "p": 2,
                    "how": "spell",
                    "hits": [{"doc": "d1", "team": "A", "p": 0.5}, {"doc": 2, "p": 1}],
                    "f": {"color": "red"},
                    "took": 0.25,
                },
                {"id": "b", "s": {}, "t": 1714557600, "q": "", "p": "x", "hits": [], "f": {}, "how": None, "took": -1},
                {"id": "c", "hits": [{"team": "A"}, {"doc": "d3", "team": "B"}], "p": "3.0", "t": "soon"},
            ]
        },
    )
    assert rows(log.queries) == [
        {
            "file": 0,
            "row": 1,
            "query_id": "7",
            "session_id": "s1",
            "time_ms": 1714557600250,
            "query": 'it"s',
            "page": 2,
            "hit_ids": ["d1", "2"],
            "teams": ["A", None],
            "propensities": [0.5, 1.0],
            "filtered": True,
            "rescued": True,
            "latency_ms": 250.0,
            "odd name": "1.5",
            "position": "top",
        },
        {
            "file": 0,
            "row": 2,
            "query_id": "b",
            "time_ms": 1714557600000,
            "hit_ids": [],
            "teams": [],
            "propensities": [],
            "filtered": False,
            "rescued": False,
            "position": "top",
        },
        {
            "file": 0,
            "row": 3,
            "query_id": "c",
            "page": 3,
            "hit_ids": [None, "d3"],
            "teams": ["A", "B"],
            "propensities": [None, None],
            "rescued": False,
            "position": "top",
        },
    ]
    assert rows(log.events) == []
    findings = {
        (finding.rule, finding.problem.split()[-1] if finding.rule == "wrong-type" else ""): finding
        for finding in log.findings
    }
    assert {key: (finding.rows, finding.places) for key, finding in findings.items()} == {
        ("wrong-type", "page"): (1, (f"{tmp_path / 'a.jsonl'}:2",)),
        ("wrong-type", "latency_ms"): (1, (f"{tmp_path / 'a.jsonl'}:2",)),
        ("odd-time", ""): (1, (f"{tmp_path / 'a.jsonl'}:3",)),
    }
    assert (log.layout, log.rank_base, log.lines, log.has_time) == ("mapping", 0, 3, True)


@pytest.mark.parametrize(
    ("path", "record", "expected"),
    [
        ("h[].d", {"h": [{"d": "a"}]}, ["a"]),
        ("h[].d", {"h": []}, []),
        ("h[].d", {"h": None}, None),
        ("h[].d", {"x": 1}, None),
        ("h[].d", {"h": {"d": "a"}}, None),
        ("h[].d[1]", {"h": [{"d": ["a", "b"]}]}, ["b"]),
        ("h", {"h": ["a", None, 1]}, ["a", None, "1"]),
        ("h", {"h": []}, []),
        ("h", {"h": None}, None),
        ("h", {"h": ""}, None),
        ("h", {"h": "a"}, ["a"]),
        ("h", {"h": '["a", "b"]'}, ["a", "b"]),
        ("h", {"h": "[a"}, ["[a"]),
        ("h[0]", {"h": [["a"], ["b"]]}, ["a"]),
        ("h[k=v].w", {"h": [{"k": "u", "w": ["a"]}, {"k": "v", "w": ["b"]}]}, ["b"]),
    ],
)
def test_what_is_absent_is_not_an_empty_list(tmp_path, path, record, expected):
    text = f'[queries.columns]\nhit_ids = {{ path = "{path}", optional = true }}'
    assert rows(read_mapped(tmp_path, text, {"a.jsonl": [record]}).queries, full=True)[0]["hit_ids"] == expected


def test_broken_lines_are_counted_and_blank_ones_passed_over(tmp_path):
    text = '{"id": "a"}\n\n{"id": \n[1]\n"x"\n{"id": "b"} trailing\n\xff\n{"id": "c"}\n'
    log = read_mapped(tmp_path, '[queries.columns]\nquery_id = "id"', {"a.jsonl": text})
    lost = {
        finding.rule: [int(place.rsplit(":", 1)[1]) for place in finding.places]
        for finding in log.findings
        if finding.lost
    }
    assert lost == {"broken-json": [3, 6, 7], "no-record": [4, 5]}
    assert [(row["row"], row["query_id"]) for row in rows(log.queries)] == [(1, "a"), (8, "c")]
    assert (log.lines, log.has_time) == (7, False)


CLICKS = """
rank_base = 1
[actions]
opened = "click"
[queries]
files = "pages*"
[queries.columns]
query_id = "page.id"
query = "text"
hit_ids = { path = "shown", separator = "|" }
time = { path = "at", format = "%d.%m.%Y %H:%M" }
[events]
files = "events*"
where = { kind = { not = ["noise", "2"] }, "page.id" = { filled = true } }
[events.columns]
query_id = "page.id"
action = "kind"
object_id = { any = ["doc", "url"] }
event_id = { join = ["page.id", "n"], between = "-" }
time = { path = "at", format = "%d.%m.%Y %H:%M" }
"""


@pytest.mark.parametrize("separator", [",", "\t"])
def test_tables_with_a_header_and_columns_with_dots(tmp_path, separator):
    suffix = "csv" if separator == "," else "tsv"
    pages = 'page.id,text,shown,at\np1,"two, with ""quotes""\nand a line",a|b,01.05.2024 10:00\np2,,,01.05.2024 10:01\n'
    events = (
        "page.id,kind,doc,url,n,at\np1,opened,,u,1,01.05.2024 10:00\np1,noise,d,u,2,x\n,opened,d,u,3,x\np2,opened,d\n"
    )
    files = {f"{name}.{suffix}": text.replace(",", separator) for name, text in (("pages", pages), ("events", events))}
    log = read_mapped(tmp_path, CLICKS, files)
    assert rows(log.queries) == [
        {
            "file": 0,
            "row": 2,
            "query_id": "p1",
            "query": f'two{separator} with "quotes"\nand a line',
            "hit_ids": ["a", "b"],
            "time_ms": 1714557600000,
        },
        {"file": 0, "row": 4, "query_id": "p2", "time_ms": 1714557660000},
    ]
    assert rows(log.events) == [
        {
            "file": 1,
            "row": 2,
            "query_id": "p1",
            "action": "opened",
            "object_id": "u",
            "event_id": "p1-1",
            "time_ms": 1714557600000,
        }
    ]
    (narrow,) = log.findings
    assert (narrow.rule, narrow.places, narrow.lost) == ("wrong-width", (f"{tmp_path / f'events.{suffix}'}:5",), True)
    assert (log.actions, log.lines) == ({"opened": "click"}, 6)


RESULTS = """
rank_base = 0
[queries]
rows = "results"
where = { kind = "shown" }
[queries.columns]
query_id = "page"
session_id = "s"
time = "t"
object_id = "doc"
position = "pos"
propensity = "p"
[queries.attributes]
arm = "arm"
[[events]]
where = { clicked = true }
[events.columns]
query_id = "page"
action = { value = "click" }
object_id = "doc"
position = "pos"
time = "t"
"""


def test_one_row_per_result_is_grouped_into_pages(tmp_path):
    def row(page, pos, doc, clicked=False, **columns):
        return {
            "kind": "shown",
            "page": page,
            "pos": pos,
            "doc": doc,
            "clicked": clicked,
            "p": 0.5,
            "t": 1714557600,
            "s": "s",
            **columns,
        }

    log = read_mapped(
        tmp_path,
        RESULTS,
        {
            "log.jsonl": [
                row("a", 1, "a1", arm="B"),
                row("b", 10, "b10", clicked=True, t=1714557605),
                row("a", 0, "a0", t=1714557599, p=0.25, arm="A"),
                row("b", 12, "b12"),
                row(None, 0, "x"),
                row("c", None, "x"),
                {**row("a", 2, "a2"), "kind": "hidden"},
            ]
        },
    )
    assert rows(log.queries) == [
        {
            "file": 0,
            "row": 1,
            "query_id": "a",
            "session_id": "s",
            "time_ms": 1714557599000,
            "hit_ids": ["a0", "a1"],
            "propensities": [0.25, 0.5],
            "arm": "B",
        },
        {
            "file": 0,
            "row": 2,
            "query_id": "b",
            "session_id": "s",
            "time_ms": 1714557600000,
            "first_rank": 11,
            "hit_ids": ["b10", "b12"],
            "ranks": [11, 13],
            "propensities": [0.5, 0.5],
        },
    ]
    assert [(row["query_id"], row["object_id"], row["position"]) for row in rows(log.events)] == [("b", "b10", 10)]
    assert {finding.rule: (finding.rows, finding.lost) for finding in log.findings} == {"no-page": (2, True)}


@pytest.mark.parametrize(
    ("more_rows", "logs_empty_pages"), [([], False), ([{"kind": "shown", "page": "e", "t": 1714557600}], True)]
)
def test_a_log_of_results_tells_of_pages_without_any_where_it_has_one(tmp_path, more_rows, logs_empty_pages):
    result = {
        "kind": "shown",
        "page": "a",
        "pos": 1,
        "doc": "a1",
        "clicked": False,
        "p": 0.5,
        "t": 1714557600,
        "s": "s",
    }
    log = read_mapped(
        tmp_path, RESULTS.replace('"arm"', '"kind"'), {"log.jsonl": [result, {**result, "clicked": True}, *more_rows]}
    )
    assert log.logs_empty_pages is logs_empty_pages
    assert [row["hit_ids"] for row in rows(log.queries)][1:] == [[] for _ in more_rows]


def test_each_item_of_a_list_is_an_event_and_a_record_that_stands_twice_is_one(tmp_path):
    text = """
[[events]]
each = "clicks"
[events.columns]
query_id = "id"
action = { value = "click" }
object_id = "@"
"""
    record = {"id": "q", "clicks": ["a", "a"], "not mapped": 1}
    log = read_mapped(tmp_path, text, {"log.jsonl": [record, record, {**record, "not mapped": 2}]})
    hashes = [event["record"] for event in log.events.to_arrow().sort_by("row").to_pylist()]
    assert len(set(hashes)) == 4
    assert sorted(hashes[:2]) == sorted(hashes[2:4])


@pytest.mark.parametrize(
    ("name", "line"), [("a.csv", "id,q\n1,caf\xe9 \x80\n"), ("a.jsonl", '{"id": 1, "q": "caf\xe9 \x80"}\n')]
)
def test_other_encodings(tmp_path, name, line):
    path = tmp_path / name
    path.write_bytes(line.encode("latin-1"))
    text = '[file]\nencoding = "cp1252"\n[queries.columns]\nquery_id = "id"\nquery = "q"\n'
    log = read_raw([path], shared_engine(), mapping=write_mapping(tmp_path, text))
    assert [row["query"] for row in rows(log.queries)] == ["caf\xe9 \u20ac"]


@pytest.mark.parametrize("encoding", ["utf-16", "cp037", "no such", "base64", "a\0"])
def test_encodings_that_lines_cannot_be_cut_in(tmp_path, encoding):
    text = f'[file]\nencoding = {json.dumps(encoding)}\n[queries.columns]\nquery_id = "id"\n'
    with pytest.raises(InputError, match="encoding is"):
        read_mapped(tmp_path, text, {"a.jsonl": [{"id": 1}]})


def test_parquet_with_typed_columns_and_lists(tmp_path):
    path = tmp_path / "log.parquet"
    table = pa.table(
        {
            "id": pa.array([1, 2]),
            "at": pa.array(
                [
                    dt.datetime(2024, 5, 1, 10),  # noqa: DTZ001 -- without an offset on purpose
                    None,
                ],
                pa.timestamp("us"),
            ),
            "hits": pa.array([[{"doc": "a"}, {"doc": "b"}], None]),
            'a "name"': pa.array(["x", "y"]),
        }
    )
    pq.write_table(table, path)
    text = '[queries.columns]\nquery_id = "id"\ntime = "at"\nhit_ids = "hits[].doc"\n'
    log = read_raw([path], shared_engine(), mapping=write_mapping(tmp_path, text))
    assert rows(log.queries) == [
        {"file": 0, "row": 1, "query_id": "1", "time_ms": 1714557600000, "hit_ids": ["a", "b"]},
        {"file": 0, "row": 2, "query_id": "2"},
    ]
    assert log.lines == 2
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(InputError, match="damaged or truncated"):
        read_raw([tmp_path / "bad.parquet"], shared_engine(), mapping=write_mapping(tmp_path, text))


@pytest.mark.parametrize(
    ("format", "value", "expected"),
    [
        ("auto", "2024-05-01 10:00:00", 1714557600000),
        ("auto", 1714557600000000, 1714557600000),
        ("seconds", "1714557600.25", 1714557600250),
        ("milliseconds", 1714557600001, 1714557600001),
        ("microseconds", "1714557600000999", 1714557600000),
        ("nanoseconds", 1714557600000999999, 1714557600000),
        ("%Y%m%d%H%M%S", "20240501100000", 1714557600000),
        ("%Y-%m-%dT%H:%M:%S%z", "2024-05-01T12:00:00+0200", 1714557600000),
        ("order", 5, 5),
        ("seconds", "inf", None),
        ("seconds", "1e300", None),
        ("milliseconds", "99999999999999999999999999", None),
        ("%Y%m%d%H%M%S", "20241301100000", None),
        ("order", "x", None),
    ],
)
def test_times(tmp_path, format, value, expected):
    text = f'[queries.columns]\nquery_id = "#row"\ntime = {{ path = "t", format = "{format}" }}\n'
    log = read_mapped(tmp_path, text, {"a.jsonl": [{"t": value}]})
    assert rows(log.queries, full=True)[0]["time_ms"] == expected
    rules = [finding.rule for finding in log.findings]
    assert rules == (["odd-time"] if expected is None else ["no-offset"] if value == "2024-05-01 10:00:00" else [])
    assert log.has_time == (format != "order")


def test_without_times_events_follow_their_page_in_order(tmp_path):
    text = (
        'rank_base = 0\n[queries.columns]\nquery_id = "#row"\nhit_ids = "r"\n[events]\neach = "c"\nwhere = {"@" = 1}\n'
        '[events.columns]\nquery_id = "#row"\naction = {value = "click"}\nposition = "@index"\n'
        'object_id = {path = "r", at = "@index"}\n'
    )
    log = read_mapped(
        tmp_path, text, {"a.jsonl": [{"r": ["a", "b", "c"], "c": [0, 1, 1, 1]}], "b.jsonl": [{"r": ["d"], "c": [1]}]}
    )
    events = rows(log.events)
    assert [(event["query_id"], event["position"], event.get("object_id")) for event in events] == [
        ("0:1", 1, "b"),
        ("0:1", 2, "c"),
        ("0:1", 3, None),
        ("1:1", 0, "d"),
    ]
    pages = [row["time_ms"] for row in rows(log.queries)]
    times = [event["time_ms"] for event in events]
    assert pages[0] < times[0] < times[1] < times[2] < pages[1] < times[3]
    assert not log.has_time


def test_events_without_a_time_have_that_of_their_page(tmp_path):
    """The page of the third click is unknown, and so is its time."""
    mapping = """
    [queries]
    where = { kind = "page" }
    [queries.columns]
    query_id = "id"
    time = "t"
    [events]
    where = { kind = "click" }
    [events.columns]
    query_id = "id"
    action = { value = "click" }
    """
    pages = [{"kind": "page", "id": name, "t": f"2024-05-01T10:00:0{i}Z"} for i, name in enumerate("ab")]
    log = read_mapped(tmp_path, mapping, {"a.jsonl": [*pages, *({"kind": "click", "id": name} for name in "bax")]})
    assert [(row["query_id"], row.get("time_ms")) for row in rows(log.events)] == [
        ("b", 1714557601000), ("a", 1714557600000), ("x", None),
    ]  # fmt: skip


def test_names_and_texts_cannot_break_out_of_the_sql(tmp_path):
    text = (
        '[queries]\nwhere = { "k\'); DROP TABLE x; --" = "v\'; --" }\n[queries.columns]\nquery_id = "i\'d"\n'
        'application = { value = "\'; SELECT 1; --" }\nhit_ids = { path = "h", separator = "\'" }\n'
        '[queries.attributes]\n"a\\"; --" = "x[k\'=v\'].y"\n'
    )
    record = {"k'); DROP TABLE x; --": "v'; --", "i'd": "1", "h": "a'b", "x": [{"k'": "v'", "y": 5}]}
    (only,) = rows(
        read_mapped(tmp_path, text, {"a.jsonl": [record, {**record, "k'); DROP TABLE x; --": "other"}]}).queries
    )
    assert only["application"] == "'; SELECT 1; --"
    assert (only["query_id"], only["hit_ids"], only['a"; --']) == ("1", ["a", "b"], "5")


def test_a_log_of_clicks_alone_has_the_pages_that_were_clicked_and_tells_nothing_of_the_others(tmp_path):
    text = """
rank_base = 1
[queries]
rows = "clicks"
[queries.columns]
query_id = "id"
session_id = "s"
time = "t"
query = "q"
[events.columns]
query_id = "id"
session_id = "s"
time = "t"
action = { value = "click" }
object_id = "doc"
position = "pos"
"""
    clicks = [
        {"id": page, "s": "s", "t": 1714557600 + i, "q": "red", "doc": doc, "pos": i + 1}
        for i, (page, doc) in enumerate([("a", "x"), ("a", "y"), ("b", "x"), (None, "z")])
    ]
    log = read_mapped(tmp_path, text, {"a.jsonl": clicks})
    assert [(row["query_id"], row["row"], row["time_ms"]) for row in rows(log.queries)] == [
        ("a", 1, 1714557600000), ("b", 3, 1714557602000),
    ]  # fmt: skip
    assert len(rows(log.events)) == 4
    assert (log.logs_empty_pages, log.logs_unclicked_pages) == (False, False)
    has = make_log(log, shared_engine(), now_ms=1714557700000).has
    assert not has & {"unclicked", "shown", "zero_results"}
    assert {"clicks", "ranks", "next_pages"} <= has
