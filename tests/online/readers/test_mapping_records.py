"""Mappings of records: sections, members as columns, JSON in texts, other attributes, conditions."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judged.online.storage import read_raw
from online.readers.raw_logs import read_mapped, rows, shared_engine, write_mapping

WHOSE = """
[queries]
index = "*asked*"
has = ["shown"]
or_has = ["id"]
[queries.columns]
query_id = { any = ["id", "#id"] }
query = { path = "q", optional = true }
hit_ids = { path = "shown", optional = true, separator = [",", "|", " "] }
[events]
index = "*done*"
has = ["act"]
[events.columns]
event_id = "#id"
query_id = "id"
action = "act"
"""


def test_records_tell_whose_they_are(tmp_path):
    log = read_mapped(
        tmp_path,
        WHOSE,
        {
            "a.jsonl": [
                {"shown": ["a"], "act": "click", "id": "1"},  # an event, for events come first
                {"shown": ["a", "b"], "id": "2"},
                {"id": "3"},
                {"q": "nobody's"},
                {"_index": "was-done", "_id": "e5", "_source": {"id": "5"}},
                {"_index": "asked-2026", "_id": "q6", "_source": {"act": "x"}},
                {"index": {"_index": "DONE", "_id": "e8"}},
                {"id": "8", "shown": []},
            ]
        },
    )
    assert [(row["row"], row["query_id"]) for row in rows(log.queries)] == [(2, "2"), (3, "3"), (6, "q6")]
    events = [(row["row"], row.get("event_id"), row.get("action")) for row in rows(log.events)]
    assert events == [(1, None, "click"), (5, "e5", None), (8, "e8", None)]
    assert [(finding.rule, finding.rows, finding.places[0][-1]) for finding in log.findings if finding.places] == [
        ("unknown-record", 1, "4")
    ]
    assert log.lines == 7


def test_tables_tell_by_their_columns_whose_their_rows_are(tmp_path):
    files = {
        "a.csv": "id,q,act\n1,red,click\n",
        "b.csv": "id,q\n2,blue\n",
        "c.csv": "id,shown,act\n3,a|b c,\n4,,click\n",
    }
    log = read_mapped(tmp_path, WHOSE, files)
    assert [(row["file"], row["query_id"], row.get("hit_ids")) for row in rows(log.queries)] == [
        (1, "2", None), (2, "3", ["a", "b", "c"]),
    ]  # fmt: skip
    assert [(row["file"], row["query_id"]) for row in rows(log.events)] == [(0, "1"), (2, "4")]


def test_an_index_alone_chooses_among_records(tmp_path):
    text = '[queries]\nindex = "asked*"\n[queries.columns]\nquery_id = "id"\n'
    lines = [{"_index": "Asked-1", "_source": {"id": "1"}}, {"_index": "other", "_source": {"id": "2"}}]
    assert [row["query_id"] for row in rows(read_mapped(tmp_path, text, {"a.jsonl": lines}).queries)] == ["1"]


VALUES = """
rank_base = { any = ["meta.base", "base"] }
[file]
must = { id = { filled = true }, n = { above = 0, most = 9 } }
json = ["asked"]
flat = ["meta"]
null = ["", "-"]
[queries.columns]
query_id = "id"
size = "asked.size"
offset = "asked.from"
experiment = "meta.arm.name"
variant = { any = [{ path = "meta.arm.name", when = { n = 1 }, note = "only of the first" }, OTHER] }
[queries.attributes]
"*" = "meta"
[[events]]
where = { n = { least = 2 } }
[events.columns]
query_id = "id"
action = { value = "search" }
n_total = "n"
""".replace("OTHER", '{ path = "N", optional = true }')


def test_values_with_conditions_and_json_in_texts(tmp_path):
    def record(name, n, **members):
        return {"id": name, "n": n, "meta": {"base": 0, "arm": {"name": "x"}, "shop": f"s{n}", "list": [1]}, **members}

    lines = [
        record("a", 1, asked='{"size": 10, "from": 20}'),
        record("a", 3, asked={"size": 5}),
        record("a", 2, N="upper"),
        record("-", 1),
        record("b", 0),
        record("b", 9.5),
        record("b", "NaN"),
    ]
    log = read_mapped(tmp_path, VALUES, {"a.jsonl": lines})
    pages = [
        {name: row.get(name) for name in ("size", "page", "first_rank", "n_total", "variant", "shop")}
        for row in rows(log.queries)
    ]
    assert pages == [
        {"size": 10, "page": 3, "first_rank": 21, "n_total": 3, "variant": "x", "shop": "s1"},
        {"size": 5, "page": None, "first_rank": None, "n_total": 3, "variant": None, "shop": "s3"},
        {"size": None, "page": None, "first_rank": None, "n_total": 3, "variant": "upper", "shop": "s2"},
    ]
    assert log.rank_base == 0
    assert {finding.rule: (finding.rows, finding.lost) for finding in log.findings} == {
        "broken-record": (4, True),
        "unused-value": (2, False),
    }
    assert [finding.problem for finding in log.findings if finding.rule == "unused-value"] == ["only of the first"]
    assert set(log.queries.columns) >= {"shop"}
    assert not set(log.queries.columns) & {"list", "arm", "attribute_base"}


def test_an_attribute_that_is_named_keeps_its_name(tmp_path):
    text = '[queries.columns]\nquery_id = "id"\n[queries.attributes]\nshop = "id"\n"*" = "own"\n'
    (page,) = rows(read_mapped(tmp_path, text, {"a.jsonl": [{"id": "1", "own": {"shop": "x", "day": 2}}]}).queries)
    assert (page["shop"], page["attribute_shop"], page["day"]) == ("1", "x", "2")


def test_parts_of_objects_as_columns_and_objects_as_texts(tmp_path):
    text = VALUES.replace("must = { id = { filled = true }, n = { above = 0, most = 9 } }", "").replace(
        'N", optional', 'n", optional'
    )
    log = read_mapped(
        tmp_path, text, {"a.csv": 'id,n,asked,arm_name,Meta.Base,meta_shop\n1,1,"{""size"": 3, ""from"": 0}",x,1,s\n'}
    )
    (page,) = rows(log.queries)
    assert (page["size"], page["page"], page["experiment"], page["shop"], log.rank_base) == (3, 1, "x", "s", 1)


@pytest.mark.parametrize(
    ("separator", "text", "items"),
    [
        ('"|"', "a|b|c", ["a", "b", "c"]),
        ('","', "a,b", ["a", "b"]),
        ('"|"', "a,b", ["a,b"]),
        ('"; "', "a; b", ["a", "b"]),
        ('[",", "|"]', "[a,b|c]", ["a", "b", "c"]),
        ('[",", " "]', "(a, b  c)", ["a", "b", "c"]),
        ('[","]', "[]", []),
        ('"|"', '["a|b", "c"]', ["a|b", "c"]),
        ('"|"', "", None),
    ],
)
def test_fields_that_hold_several_values(tmp_path, separator, text, items):
    mapping = f'rank_base = 1\n[queries.columns]\nhit_ids = {{ path = "ids", separator = {separator} }}\n'
    mapping += 'ranks = { path = "ranks", separator = "," }\n'
    (page,) = rows(read_mapped(tmp_path, mapping, {"a.jsonl": [{"ids": text, "ranks": "1,2,5"}]}).queries)
    assert (page.get("hit_ids"), page["ranks"]) == (items, [1, 2, 5])


def test_names_that_differ_in_case_alone_or_are_odd(tmp_path):
    text = '[queries.columns]\nquery_id = "Id"\nquery = "id"\nlanguage = "deep.A"\ndevice = "deep.a"\n'
    record = {"id": "lower", "Id": "upper", "deep": {"a": "small", "A": "large"}, "": 1}
    (page,) = rows(read_mapped(tmp_path, text, {"a.jsonl": [record]}).queries)
    assert [page[name] for name in ("query_id", "query", "language", "device")] == ["upper", "lower", "large", "small"]


def test_files_of_several_forms_and_pages_that_span_them(tmp_path):
    text = (
        'rank_base = 1\n[queries]\nrows = "results"\n'
        '[queries.columns]\nquery_id = "id"\nobject_id = "d"\nposition = "p"\n'
        '[queries.attributes]\nsource = "#file"\n'
    )
    pq.write_table(pa.table({"id": ["x"], "d": [7], "p": [3]}), tmp_path / "c.parquet")
    (tmp_path / "a.csv").write_text("id,d,p\nx,5,1\n")
    (tmp_path / "b.jsonl").write_text(json.dumps({"id": "x", "d": 6, "p": 2}))
    paths = [tmp_path / name for name in ("a.csv", "b.jsonl", "c.parquet")]
    log = read_raw(paths, shared_engine(), mapping=write_mapping(tmp_path, text))
    (page,) = rows(log.queries)
    assert (page["hit_ids"], page["file"], page["source"]) == (["5", "6", "7"], 0, str(paths[0]))
    assert "source" not in read_raw(paths[:1], shared_engine(), mapping=write_mapping(tmp_path, text)).queries.columns


def test_typed_parquet_is_not_copied_for_any_mapping(tmp_path):
    pq.write_table(pa.table({"a": ["click"], "q": ["x"], "n": [1767607200000]}), tmp_path / "e.parquet")
    text = '[events.columns]\naction = "a"\nquery_id = "q"\ntime = "n"\n'
    engine = shared_engine()
    before = engine.con.execute("SELECT count(*) FROM duckdb_tables()").fetchall()
    log = read_raw([tmp_path / "e.parquet"], engine, mapping=write_mapping(tmp_path, text))
    assert engine.con.execute("SELECT count(*) FROM duckdb_tables()").fetchall() == before
    assert rows(log.events)[0]["time_ms"] == 1767607200000


@pytest.mark.parametrize(("format", "rules"), [("auto", ["no-offset"]), ("utc", [])])
def test_times_that_are_known_to_be_utc(tmp_path, format, rules):
    text = f'[queries.columns]\nquery_id = "i"\ntime = {{ path = "t", format = "{format}" }}\n'
    log = read_mapped(tmp_path, text, {"a.csv": "i,t\n1,2024-05-01 10:00:00\n"})
    assert ([finding.rule for finding in log.findings], rows(log.queries)[0]["time_ms"]) == (rules, 1714557600000)


def test_an_open_quotation_mark_takes_its_own_line_alone(tmp_path):
    log = read_mapped(tmp_path, '[queries.columns]\nquery_id = "id"\n', {"a.csv": 'id,x\n1,a\n"open,b\n3,c\n'})
    assert [row["query_id"] for row in rows(log.queries)] == ["1", "3"]
    assert [(finding.rule, finding.rows) for finding in log.findings] == [("open-quote", 1), ("unused-columns", 1)]
