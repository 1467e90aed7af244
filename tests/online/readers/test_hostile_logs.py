"""Hostile logs: all are read, and lost rows are reported with rule, count, and place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from judged.errors import InputError
from judged.online.log import ATTRIBUTE_LIMIT, RAW_QUERY
from judged.online.readers.records import LINE_LIMIT
from judged.online.readers.values import TEXT_LIMIT
from judged.online.storage import read_raw
from online.readers.ubi_logs import QUERIES, engine, read, rows, write_lines

GOOD = '{"query_id": "q", "user_query": "x", "client_id": "u", "timestamp": "2026-01-05T10:00:00Z"}'


def read_text(folder: Path, text: str | bytes) -> Any:
    path = folder / "log.ndjson"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return read(path)


def findings_by_rule(raw: Any) -> dict[str, tuple[int, bool]]:
    return {finding.rule: (finding.rows, finding.lost) for finding in raw.findings}


def event(**values: Any) -> str:
    return json.dumps({"action_name": "click", "client_id": "u", "query_id": "q", "timestamp": 1767607200000} | values)


BROKEN = [
    ('{"query_id": "cut off', "broken-json"),
    ("not json at all", "broken-json"),
    ('{"query_id": "a"} {"query_id": "b"}', "broken-json"),
    ('{"query_id": "a\x00b"}', "broken-json"),
    ('["user_query"]', "no-record"),
    ('[{"user_query": "x"}]', "no-record"),
    ("42", "no-record"),
    ('{"product": "a car"}', "unknown-record"),
    ("{}", "unknown-record"),
    ("\x00\x00\x00", "broken-json"),
    ('{"query_id": "tail", "x": "\\', "broken-json"),
]


@pytest.mark.parametrize(("line", "rule"), BROKEN)
def test_broken_lines_are_named_and_the_others_kept(tmp_path: Path, line: str, rule: str) -> None:
    raw = read_text(tmp_path, f"{GOOD}\n{line}\n\n{GOOD}\n")
    assert [row["row"] for row in rows(raw.queries)] == [1, 4]
    (finding,) = raw.findings
    assert (finding.rule, finding.rows, finding.lost, finding.table) == (rule, 1, True, "file")
    assert finding.places == (f"{tmp_path / 'log.ndjson'}:2",)
    assert raw.lines == 3


def test_last_line_without_its_end_and_cut(tmp_path: Path) -> None:
    assert len(rows(read_text(tmp_path, GOOD).queries)) == 1
    raw = read_text(tmp_path, f"{GOOD}\n{GOOD[:40]}")
    assert (len(rows(raw.queries)), findings_by_rule(raw)) == (1, {"broken-json": (1, True)})


@pytest.mark.parametrize("text", ["", "\n\n  \n", "\ufeff"])
def test_empty_files(tmp_path: Path, text: str) -> None:
    raw = read_text(tmp_path, text)
    assert (rows(raw.queries), rows(raw.events), raw.lines, raw.findings) == ([], [], 0, ())


def test_values_of_other_types(tmp_path: Path) -> None:
    attributes = [
        {"position": {"ordinal": "3"}, "object": {"object_id": 17}, "dwell_ms": "1500.4"},
        {"position": 4, "object": {"object_id": 1.5}},
        {"position": {"ordinal": 2.0}, "object": {"object_id": True}},
        {"position": {"ordinal": 2.5}, "object": {"object_id": {"a": 1}}},
        {"position": {"ordinal": "second"}, "object": {"object_id": [1]}},
        {"position": {"ordinal": 1e300}, "object": "b", "value": "NaN"},
        {"position": {"x": 1, "y": 2}, "object": None},
        {"position": None},
        [],
        "none",
    ]
    raw = read_text(tmp_path, "\n".join(event(event_attributes=attribute) for attribute in attributes))
    events = rows(raw.events)
    assert [row["position"] for row in events] == [3, 4, 2, None, None, None, None, None, None, None]
    assert [row["object_id"] for row in events][:6] == ["17", "1.5", "true", None, None, None]
    assert events[0]["dwell_ms"] == 1500
    findings = {finding.problem.split()[3]: finding for finding in raw.findings}
    assert {name: finding.rows for name, finding in findings.items()} == {
        "event_attributes.position.ordinal": 3,
        "event_attributes.object.object_id": 2,
        "event_attributes.value": 1,
    }
    assert all(not finding.lost for finding in raw.findings)
    assert [place.rsplit(":", 1)[1] for place in findings["event_attributes.position.ordinal"].places] == [
        "4",
        "5",
        "6",
    ]


def test_times_that_are_none(tmp_path: Path) -> None:
    times = ["2026-01-05T10:00:00", "2026-01-05 12:00:00+0200", 1767607200, "1767607200000", 12, "soon", None, {}, True]
    raw = read_text(tmp_path, "\n".join(event(timestamp=time) for time in times))
    assert [row["time_ms"] for row in rows(raw.events)] == [1767607200000] * 4 + [None] * 5
    assert findings_by_rule(raw) == {"odd-time": (4, False), "no-offset": (1, False)}


def test_duplicate_keys_and_deep_nesting(tmp_path: Path) -> None:
    deep = '{"query_id": "q", "user_query": "x", "more": ' + "[" * 100_000 + "]" * 100_000 + "}"
    deeper = '{"query_id": "q", "user_query": ' + '{"a": ' * 50_000 + "1" + "}" * 50_000 + "}"
    duplicate = '{"query_id": "first", "query_id": "second", "user_query": "x"}'
    raw = read_text(tmp_path, f"{deep}\n{deeper}\n{duplicate}")
    assert [row["query_id"] for row in rows(raw.queries)] == ["q", "q", "first"]
    assert not any(finding.lost for finding in raw.findings)


def test_attributes_that_are_too_deep_to_look_at(tmp_path: Path) -> None:
    deep = '{"query_id": "q", "user_query": "x", "query_attributes": {"x": ' + '{"a": ' * 20_000 + "1" + "}" * 20_002
    flat = '{"query_id": "r", "user_query": "x", "query_attributes": {"shop": "b"}}'
    raw = read_text(tmp_path, f"{deep}\n{flat}")
    assert [(row["query_id"], row["shop"]) for row in rows(raw.queries)] == [("q", None), ("r", "b")]


def test_long_texts_are_cut_and_huge_lines_refused(tmp_path: Path) -> None:
    long = json.dumps({"query_id": "q", "user_query": "x" * 3_000_000})
    huge = json.dumps({"query_id": "q", "user_query": "x" * (LINE_LIMIT + 5_000_000)})
    raw = read_text(tmp_path, f"{GOOD}\n{long}\n{huge}\n{GOOD}\n{huge}")
    assert [len(row["query"]) for row in rows(raw.queries)] == [1, TEXT_LIMIT, 1]
    assert [row["row"] for row in rows(raw.queries)] == [1, 2, 4]
    assert {rule: counts for rule, counts in findings_by_rule(raw).items() if rule != "absent-column"} == {
        "too-long": (2, True),
        "long-text": (1, False),
    }
    (finding,) = [finding for finding in raw.findings if finding.rule == "too-long"]
    assert [place.rsplit(":", 1)[1] for place in finding.places] == ["3", "5"]
    assert raw.lines == 5


@pytest.mark.parametrize("layout", ["wscd", "clickmodels", "open-bandit", "mapping"])
def test_huge_lines_are_refused_in_every_layout(tmp_path: Path, layout: str) -> None:
    good = {
        "wscd": "0\t0\tQ\t0\t0\t7\t8",
        "clickmodels": '0\tcar\t1\t0\t["a"]\t[false]\t[0]',
        "open-bandit": "2019-11-24 00:00:01+00:00,3,1,0,0.5",
        "mapping": '{"id": "q"}',
    }[layout]
    header = ["timestamp,item_id,position,click,propensity_score"] if layout == "open-bandit" else []
    path = tmp_path / "log.ndjson"
    path.write_text("\n".join([*header, good, "x" * (LINE_LIMIT + 5_000_000), good, "y" * (LINE_LIMIT + 5_000_000)]))
    (tmp_path / "mapping.toml").write_text('[queries.columns]\nquery_id = "id"\n')
    options = {"mapping": tmp_path / "mapping.toml"} if layout == "mapping" else {"layout": layout}
    raw = read_raw([path], engine(), **options)
    (finding,) = [finding for finding in raw.findings if finding.lost]
    assert (finding.rule, finding.rows, raw.lines) == ("too-long", 2, 4)
    first_row = len(header) + 1
    assert [int(place.rsplit(":", 1)[1]) - first_row for place in finding.places] == [1, 3]
    assert [row["row"] - first_row for row in rows(raw.queries)] == [0, 2]


def test_bytes_that_are_no_utf8(tmp_path: Path) -> None:
    raw = read_text(tmp_path, GOOD.replace('"x"', '"caf\xe9"').encode("latin-1") + b"\n" + GOOD.encode())
    assert [row["query"] for row in rows(raw.queries)] == ["caf�", "x"]
    assert findings_by_rule(raw) == {"not-utf8": (1, False)}


def test_half_characters(tmp_path: Path) -> None:
    texts = [r"cut \ud83d", r"whole \ud83d\ude00", r"back \\ud83d", r"\ude00 low"]
    raw = read_text(tmp_path, "\n".join(GOOD.replace('"x"', f'"{text}"') for text in texts))
    assert [row["query"] for row in rows(raw.queries)] == ["cut �", "whole 😀", r"back \ud83d", "� low"]
    assert raw.findings == ()


def test_bulk_actions_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judged.data.files.BLOCK", 37)
    lines = [
        text for i in range(20) for text in (json.dumps({"index": {"_index": "ubi_events", "_id": f"e{i}"}}), event())
    ]
    raw = read_text(tmp_path, "\n".join(lines))
    assert [(row["event_id"], row["row"]) for row in rows(raw.events)] == [(f"e{i}", 2 * i + 2) for i in range(20)]


def test_fields_that_no_record_has(tmp_path: Path) -> None:
    raw = read_text(tmp_path, '{"user_query": "x"}\n{"action_name": "click", "user_query": "x"}')
    absent = [(finding.table, finding.problem) for finding in raw.findings]
    assert ("query", "no record has timestamp") in absent
    assert ("query", "no record has query_id") in absent
    assert ("event", "no record has client_id") in absent
    assert {finding.rule for finding in raw.findings} == {"absent-column"}


def test_attributes_without_end(tmp_path: Path) -> None:
    attributes: dict[str, Any] = {f"a{i:03}": i for i in range(200)}
    attributes |= {
        "query": "clash",
        "A000": "case",
        "": "none",
        "x" * 500: 1,
        'say "hi"': "y",
        "nested": {"a": 1},
        "zero": None,
    }
    first = json.dumps({"query_id": "q", "user_query": "x", "query_attributes": {"query": "clash", 'say "hi"': "y"}})
    raw = read_text(
        tmp_path, json.dumps({"query_id": "q", "user_query": "x", "query_attributes": attributes}) + "\n" + first
    )
    names = raw.queries.columns[len(RAW_QUERY) :]
    assert len(names) == ATTRIBUTE_LIMIT
    assert rows(raw.queries)[0]["attribute_query"] == "clash"
    assert rows(raw.queries)[1]['say "hi"'] == "y"
    assert "nested" not in names
    omitted = {finding.rule: finding.rows for finding in raw.findings}["attributes-left-out"]
    assert omitted == 205 - ATTRIBUTE_LIMIT


def test_rank_base(tmp_path: Path) -> None:
    def based(*bases: Any) -> Any:
        return read_text(
            tmp_path, "\n".join(event(event_attributes={"position": {"ordinal": 1, "base": base}}) for base in bases)
        )

    assert based(0, 0).rank_base == 0
    assert based(1, "1", None).rank_base == 1
    assert based(None).rank_base is None
    mixed = based(0, 1)
    assert (mixed.rank_base, findings_by_rule(mixed)) == (None, {"mixed-base": (2, False)})
    assert based(7).rank_base is None


def test_csv_of_uneven_rows(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_bytes(
        b'query_id,user_query,timestamp,client_id,,user_query\n1,"a, b",2026-01-05T10:00:00Z,u,,\n2,c\n3,d,x,u,,,,,\n'
        b'4,"e\nf",2026-01-05T10:00:00Z,u\n5,\xff\x00,2026-01-05T10:00:00Z,u\n'
    )
    raw = read(path)
    assert [(row["row"], row["query_id"], row["query"]) for row in rows(raw.queries)] == [
        (2, "1", "a, b"), (3, "2", "c"), (5, "4", "e\nf"), (7, "5", "��"),
    ]  # fmt: skip
    assert findings_by_rule(raw) == {"wrong-width": (1, True), "not-utf8": (1, False)}


def test_a_quotation_mark_that_is_never_closed_takes_its_own_line_alone(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    lines = [
        "query_id,user_query,client_id",
        '1,"to the end',
        "2,b,u",
        '3,"within" it,u',
        '4,"ended,u',
        '5,"e",u',
        '6,"f',
    ]
    path.write_text(
        "\n".join([*lines, "7,g,u"] + [f"{number},x,u" for number in range(8, 30_000)] + ['x,"open,u', "", "y,z,u"])
    )
    raw = read(path)
    (finding,) = [finding for finding in raw.findings if finding.rule == "open-quote"]
    assert (finding.rows, finding.lost, raw.lines) == (4, True, 30_001)
    assert [place.rsplit(":", 1)[1] for place in finding.places] == ["2", "5", "7", "30001"]
    values = {row["query_id"]: (row["row"], row["query"], row["user_id"]) for row in rows(raw.queries)}
    assert (len(values), values["3"], values["5"]) == (30_001 - 4, (4, "within it", "u"), (6, "e", "u"))
    assert (values["29999"], values["y"]) == ((30_000, "x", "u"), (30_003, "z", "u"))


def test_parquet_that_is_damaged_or_something_else(tmp_path: Path) -> None:
    complete = tmp_path / "e.parquet"
    parquet.write_table(pa.table({"action_name": ["click"] * 1000, "query_id": ["q"] * 1000}), complete)
    truncated = tmp_path / "cut.parquet"
    truncated.write_bytes(complete.read_bytes()[:-20])
    other = tmp_path / "other.parquet"
    parquet.write_table(pa.table({"product": ["a"]}), other)
    with pytest.raises(InputError, match="damaged"):
        read(truncated)
    with pytest.raises(InputError, match="no column identifies queries or events: the columns are product"):
        read(other)
    raw = read(complete)
    assert {finding.problem for finding in raw.findings} == {"no record has client_id", "no record has timestamp"}
    assert {row["action"] for row in rows(raw.events)} == {"click"}


def test_hostile_names_of_files_and_columns(tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s [a] "folder" *?'
    folder.mkdir()
    names = {
        "query_id": ["q"],
        "user_query": ["x"],
        'o"dd; DROP': ["v"],
        "file": ["f"],
        "_judged_0": ["j"],
        "filename": ["n"],
    }
    parquet.write_table(pa.table(names | {"file_row_number": [9]}), folder / "a'b[0-9].parquet")
    parquet.write_table(pa.table({"Query_ID": ["r"], "user_query": ["y"]}), folder / "c*.parquet")
    queries = rows(read(folder).queries)
    assert [(row["query_id"], row["query"]) for row in queries] == [("q", "x"), ("r", "y")]
    assert queries[0]['o"dd; DROP'] == "v"
    assert queries[0]["attribute_file"] == "f"
    assert queries[0]["row"] == 1


def test_parquet_of_maps_and_of_mixed_rows(tmp_path: Path) -> None:
    texts = pa.map_(pa.string(), pa.string())
    table = pa.table(
        {
            "action_name": ["click", None],
            "query_id": ["q", "q"],
            "timestamp": pa.array([1767607200, 1767607201], pa.int64()),
            "query_response_hit_ids": [None, "a|b;c"],
            "event_attributes": pa.array([[("dwell_ms", "70"), ("position", '{"ordinal": 3}')], None], texts),
            "query_attributes": pa.array([None, [("page", "2"), ("country", "AT")]], texts),
        }
    )
    path = tmp_path / "mixed.parquet"
    parquet.write_table(table, path)
    raw = read(path)
    (click,), (query,) = rows(raw.events), rows(raw.queries)
    assert (click["dwell_ms"], click["position"], click["time_ms"], click["row"]) == (70, 3, 1767607200000, 1)
    assert (query["hit_ids"], query["page"], query["country"], query["row"]) == (["a", "b", "c"], 2, "AT", 2)


def test_typed_parquet_is_a_view_and_costs_no_copy(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    parquet.write_table(
        pa.table({"action_name": ["click"], "query_id": ["q"], "client_id": ["u"], "timestamp": [1767607200000]}), path
    )
    con = engine().con
    tables = con.execute("SELECT count(*) FROM duckdb_tables()").fetchall()
    raw = read(path)
    assert con.execute("SELECT count(*) FROM duckdb_tables()").fetchall() == tables
    plan = con.execute(f"EXPLAIN SELECT count(action) FROM {raw.events}").fetchall()[0][1]
    assert "file_row_number" not in plan
    assert "timestamp" not in plan


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["ordinal", "object_id", "name", "a"]) | st.text(max_size=3), inner, max_size=3
        )
    ),
    max_leaves=6,
)
FIELDS = (
    "action_name", "query_id", "client_id", "session_id", "user_query", "timestamp", "query_response_hit_ids",
    "query_attributes", "event_attributes", "query", "event_id", "index", "_source", "application",
)  # fmt: skip
INSIDE = st.dictionaries(
    st.sampled_from(["position", "object", "dwell_ms", "dwell_time", "experiment", "filters", "interleaving", "own"]),
    JSON,
    max_size=5,
)
RECORD = st.dictionaries(st.sampled_from(FIELDS), JSON | INSIDE, max_size=8)
LINE = RECORD.map(json.dumps) | JSON.map(json.dumps) | st.text(max_size=30).map(lambda text: text.replace("\n", " "))


@given(lines=st.lists(LINE, min_size=40, max_size=80))
@settings(max_examples=6)
def test_any_json_can_be_read(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    folder = tmp_path_factory.mktemp("any")
    raw = read_text(folder, "\n".join([GOOD, *lines]))
    queries, events = raw.queries.to_arrow(), raw.events.to_arrow()
    lost_rows = sum(finding.rows for finding in raw.findings if finding.lost)
    assert queries.num_rows + events.num_rows + lost_rows == raw.lines
    for line in lines:  # a line that Python reads as an event is an event here, too
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if (
            isinstance(record, dict)
            and isinstance(record.get("action_name"), str)
            and "index" not in record
            and "_source" not in record
        ):
            break
    else:
        return
    assert events.num_rows > 0


def test_a_gzip_that_breaks_off_is_an_error(tmp_path: Path) -> None:
    import gzip

    path = write_lines(tmp_path / "log.ndjson", QUERIES * 100)
    packed = tmp_path / "log.ndjson.gz"
    packed.write_bytes(gzip.compress(path.read_bytes())[:-300])
    with pytest.raises(InputError, match="truncated or damaged"):
        read_raw([packed], engine())
