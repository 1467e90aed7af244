"""Mappings drafted from data: reading a log by its draft gives the values in the data."""

from __future__ import annotations

import gzip
import json
import tomllib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judged.errors import InputError
from judged.online import draft_mapping
from judged.online.storage import read_raw
from online.readers.raw_logs import rows, shared_engine
from shared_data import SHARED, needs_shared


def drafted(tmp_path, path):
    """Return the draft as TOML and text, and the raw log that is read by it."""
    text = draft_mapping(path)
    (tmp_path / "draft.toml").write_text(text, encoding="utf-8")
    return tomllib.loads(text), text, read_raw([path], shared_engine(), mapping=tmp_path / "draft.toml")


def write_log(tmp_path, name, content):
    lines = content if isinstance(content, str) else "".join(json.dumps(record) + "\n" for record in content)
    (tmp_path / name).write_text(lines, encoding="utf-8")
    return tmp_path / name


def select(rows_of, *names):
    return [tuple(row.get(name) for name in names) for row in rows_of]


PAGES = [
    ("7", "red shoes", ["d7", "d9", "d3"], 1, "d9"),
    ("7", "boots", ["d2", "d9"], None, None),
    ("8", "socks", ["d1"], 0, "d1"),
]


@pytest.mark.parametrize("separator", ["|", ",", ";"])
@pytest.mark.parametrize(("sign", "name"), [("\t", "log.tsv"), (";", "log.csv")])
def test_a_page_a_row_with_lists_in_texts(tmp_path, separator, sign, name):
    if separator == sign:
        return
    lines = ["sid searchTerm ts resultUrls clickedUrls".replace(" ", sign)]
    for number, (session, query, hits, _, clicked) in enumerate(PAGES):
        lines.append(sign.join([session, query, str(1767607200 + number), separator.join(hits), clicked or "NULL"]))
    _, _, log = drafted(tmp_path, write_log(tmp_path, name, "\n".join(lines) + "\n"))
    assert select(rows(log.queries), "session_id", "query", "time_ms", "hit_ids") == [
        (session, query, 1767607200000 + 1000 * number, hits)
        for number, (session, query, hits, _, _) in enumerate(PAGES)
    ]
    assert select(rows(log.events), "row", "object_id", "action") == [(2, "d9", "click"), (4, "d1", "click")]
    assert log.findings == ()


@pytest.mark.parametrize("name", ["clicked", "clicked_document", "click_sku", "clicked product id", "chosen"])
@pytest.mark.parametrize("separator", [";", ", ", " ", "json"])
def test_a_column_with_the_clicked_result(tmp_path, name, separator):
    lines = [f"query\ttime\tshown\t{name}\tposition"]
    for number, (_, query, hits, _, clicked) in enumerate(PAGES):
        shown = json.dumps(hits) if separator == "json" else separator.join(hits)
        lines.append(f"{query}\t{1767607200 + number}\t{shown}\t{clicked or ''}\t{1 if clicked else ''}")
    _, text, log = drafted(tmp_path, write_log(tmp_path, "log.tsv", "\n".join(lines) + "\n"))
    assert select(rows(log.queries), "hit_ids") == [(hits,) for _, _, hits, _, _ in PAGES]
    assert select(rows(log.events), "row", "object_id", "action") == [(2, "d9", "click"), (4, "d1", "click")]
    assert "no column has clicks" not in text


@pytest.mark.parametrize("key", ["search_id", "user"])
def test_a_row_per_click_is_no_page_of_its_own(tmp_path, key):
    """The first page has two rows, with a click each; the second one has no click."""
    lines = [f"{key},time,query,shown,clicked"]
    lines += [f"{page},176760720{page},red,d1|d2|d3,{doc}" for page, doc in ((1, "d1"), (1, "d3"), (2, ""))]
    _, text, log = drafted(tmp_path, write_log(tmp_path, "log.csv", "\n".join(lines) + "\n"))
    assert "CHECK: several rows have the same page" in text
    assert select(rows(log.queries), "row", "hit_ids") == [(row, ["d1", "d2", "d3"]) for row in (2, 4)]
    (first, second) = rows(log.events)
    assert [first["object_id"], second["object_id"]] == ["d1", "d3"]
    assert first["query_id"] == second["query_id"] == rows(log.queries)[0]["query_id"]
    assert log.logs_unclicked_pages


@pytest.mark.parametrize("queries", [["red shoes, size 43", "socks, size 39"], ["type 2 diabetes", "covid 19"]])
def test_texts_with_numbers_are_no_lists(tmp_path, queries):
    records = [{"q": query, "results": ["d1", "d2"], "clicks": ["d1"]} for query in queries]
    _, _, log = drafted(tmp_path, write_log(tmp_path, "log.jsonl", records))
    assert select(rows(log.queries), "query", "hit_ids") == [(query, ["d1", "d2"]) for query in queries]


@pytest.mark.parametrize(
    ("clicks", "position"),
    [
        ([[0, 1, 0], [0, 0], [1]], [1, 0]),  # flags
        ([[2], [], [1]], [2, 1]),  # ranks from 1
        ([[1], [], [0]], [1, 0]),  # ranks from 0
        ([["d9"], [], ["d1"]], [None, None]),  # ids
        ([[{"doc": "d9", "rank": 2}], [], [{"doc": "d1", "rank": 1}]], [2, 1]),
    ],
)
def test_clicks_in_a_list(tmp_path, clicks, position):
    records = [
        {"session": session, "query": query, "results": hits, "clicks": clicked}
        for (session, query, hits, _, _), clicked in zip(PAGES, clicks, strict=True)
    ]
    _, text, log = drafted(tmp_path, write_log(tmp_path, "log.jsonl", records))
    assert select(rows(log.events), "object_id", "position") == [("d9", position[0]), ("d1", position[1])]
    assert select(rows(log.queries), "hit_ids") == [(hits,) for _, _, hits, _, _ in PAGES]
    assert log.rank_base == {1: 1, 2: 1, None: None, 0: 0}[position[1]] or log.rank_base == 0
    assert "CHECK: no column has valid times" in text
    assert not log.has_time


@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("parquet", [False, True])
def test_a_result_a_row_with_a_flag(tmp_path, base, parquet):
    table = [
        {"search_id": page, "user": "u", "event_time": f"2026-01-05 10:0{page}:00+00:00", "query": "red car",
         "item_id": f"d{place}", "rank": base + place, "is_clicked": place == 1, "device": "phone"}
        for page in (1, 2) for place in range(3)
    ]  # fmt: skip
    if parquet:
        path = tmp_path / "log.parquet"
        pq.write_table(pa.Table.from_pylist(table), path)
    else:
        head = ",".join(table[0])
        path = write_log(
            tmp_path, "log.csv", head + "\n" + "".join(",".join(map(str, row.values())) + "\n" for row in table)
        )
    _, _, log = drafted(tmp_path, path)
    assert log.rank_base == base
    assert select(rows(log.queries), "query_id", "query", "device", "hit_ids") == [
        (str(page), "red car", "phone", ["d0", "d1", "d2"]) for page in (1, 2)
    ]
    assert select(rows(log.events), "query_id", "object_id", "position", "action") == [
        (str(page), "d1", base + 1, "click") for page in (1, 2)
    ]
    assert [finding.rule for finding in log.findings] == []


def test_events_told_apart_by_their_action(tmp_path):
    keys = {"visitorId": "u", "sessionId": "s", "searchId": "q"}
    records = [
        {**keys, "eventType": "search", "timestamp": 1767607200123, "searchTerm": "red car", "totalHits": 12},
        {**keys, "eventType": "resultTap", "timestamp": 1767607201123, "productId": "d1", "position": 1},
        {**keys, "eventType": "add-to-cart", "timestamp": 1767607202123, "productId": "d1", "price": 9.5},
        {**keys, "eventType": "wiggle", "timestamp": 1767607203123},
    ]
    mapping, text, log = drafted(tmp_path, write_log(tmp_path, "log.jsonl", records))
    assert select(rows(log.queries), "query_id", "user_id", "time_ms", "query", "n_total") == [
        ("q", "u", 1767607200123, "red car", 12)
    ]
    assert select(rows(log.events), "action", "object_id", "position", "value") == [
        ("resultTap", "d1", 1, None), ("add-to-cart", "d1", None, 9.5), ("wiggle", None, None, None),
    ]  # fmt: skip
    assert mapping["actions"] == {"resultTap": "click", "add-to-cart": "add_to_cart"}
    assert "# CHECK: the action 'wiggle' is unknown" in text


def test_pages_and_events_in_one_file(tmp_path):
    pages = [{"qid": f"q{n}", "hits": ["a", "b"][:n], "query": "red car", "kind": None} for n in range(3)]
    records = [*pages, {"qid": "q2", "kind": "click", "doc": "b", "rank": 2}]
    _, _, log = drafted(tmp_path, write_log(tmp_path, "log.jsonl", records))
    assert select(rows(log.queries), "query_id", "hit_ids") == [("q0", []), ("q1", ["a"]), ("q2", ["a", "b"])]
    assert select(rows(log.events), "query_id", "object_id", "position") == [("q2", "b", 2)]


def test_clicks_alone(tmp_path):
    lines = (
        "anon_id,query,query_time,item_rank,click_url\n"
        "1,red car,2006-03-01 07:17:12,1,a.com\n"
        "1,blue,2006-03-01 07:18:00,2,b.com\n"
    )
    _, text, log = drafted(tmp_path, write_log(tmp_path, "log.csv", lines))
    assert select(rows(log.events), "object_id", "position", "action") == [("a.com", 1, "click"), ("b.com", 2, "click")]
    assert select(rows(log.queries), "query", "user_id") == [("red car", "1"), ("blue", "1")]
    assert not log.logs_unclicked_pages
    assert "CHECK: no shown results" in text
    assert "CHECK: no column identifies the page" in text


@pytest.mark.parametrize(
    ("values", "formats"),
    [
        (["2026-01-05T10:00:00Z", "2026-01-05T10:00:01+02:00"], "auto"),
        (["1767607200", "1767607201.5"], "seconds"),
        (["1767607200000", "1767607201000"], "milliseconds"),
        (["1767607200000000", "1767607200000001"], "microseconds"),
        (["20260105100000", "20260105100001"], "%Y%m%d%H%M%S"),
        (["05.01.2026 10:00", "06.01.2026 10:00"], "%d.%m.%Y %H:%M"),
        (["13/01/2026 10:00:00", "14/01/2026 10:00:00"], "%d/%m/%Y %H:%M:%S"),
    ],
)
def test_formats_of_times(tmp_path, values, formats):
    path = write_log(tmp_path, "log.csv", "time,query,urls\n" + "".join(f"{value},red,a|b\n" for value in values))
    mapping, _, log = drafted(tmp_path, path)
    time = mapping["queries"]["columns"]["time"]
    assert (time if formats == "auto" else time["format"]) == ("time" if formats == "auto" else formats)
    assert all(row["time_ms"] > 1.7e12 for row in rows(log.queries))


def test_times_that_may_be_read_in_two_ways(tmp_path):
    path = write_log(tmp_path, "log.csv", "time,query,urls\n01/02/2026 10:00:00,red,a|b\n")
    assert "# CHECK: the time format could also be %d/%m/%Y %H:%M:%S" in draft_mapping(path)


def test_what_is_no_log_is_no_mapping(tmp_path):
    text = draft_mapping(write_log(tmp_path, "prices.csv", "name,size\nshoe,4\nboot,5\n"))
    assert "the mapping is incomplete" in text
    assert set(tomllib.loads(text)) == {"note", "file"}
    with pytest.raises(InputError, match="no records to draft"):
        draft_mapping(write_log(tmp_path, "empty.csv", "\n"))


@needs_shared
@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("session2014_graphcm/normalized.jsonl.gz", {"mapping": "graphcm"}),
        ("usql_searchlog/SearchLog.tsv", {"mapping": "usql"}),
        ("open_bandit/random.men.csv.gz", {"layout": "open-bandit"}),
    ],
)
def test_drafts_of_public_logs_read_what_their_mappings_read(tmp_path, path, options):
    _, _, log = drafted(tmp_path, SHARED / "logs" / path)
    expected = read_raw([SHARED / "logs" / path], shared_engine(), **options)
    for table, names in (
        ("queries", ("row", "query", "time_ms", "hit_ids", "propensities")),
        ("events", ("row", "object_id", "position")),
    ):
        assert select(rows(getattr(log, table)), *names) == select(rows(getattr(expected, table)), *names)


@pytest.mark.parametrize(
    "damage", [lambda data: data[:2000], lambda data: data.replace(b"clicked_on", b"cli\x80ked_on")]
)
@pytest.mark.parametrize("name", ["log.parquet", "log.parquet.gz"])
def test_damaged_parquet_is_named(name, damage, tmp_path):
    path = tmp_path / "complete.parquet"
    pq.write_table(pa.table({"query": ["a"] * 900, "clicked_on": [str(i) for i in range(900)]}), path)
    data = path.read_bytes()
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert "clicked_on" in draft_mapping(path)
    path.write_bytes(gzip.compress(damage(data)) if name.endswith(".gz") else damage(data))
    with pytest.raises(InputError, match="Parquet data is damaged") as caught:
        draft_mapping(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("first_row", "header"),
    [("用户,查询,时间", True), ("пользователь,запрос,время", True), ("7,red shoes,2026-01-05T10:00:00Z", False)],
)
def test_headers_may_be_in_any_script(tmp_path, first_row, header):
    content = f"{first_row}\n8,blue hat,2026-01-05T10:05:00Z\n9,green coat,2026-01-05T10:06:00Z\n"
    text = draft_mapping(write_log(tmp_path, "log.csv", content))
    assert tomllib.loads(text)["file"].get("header", True) is header
    assert f"# Drafted from {2 if header else 3} records" in text
    assert f"# {first_row.split(',')[2] if header else 'column_3'}: " in text
