"""Attributes of topics, and the formats of attribute tables."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged import Documents, InputError, JudgedWarning, Topics
from judged.data.attribute_files import read_attributes, typed_column
from judged.data.attributes import Attributes

RECORDS = [
    {"query_id": "007", "kind": "news, old", "words": 3.0, "flag": True, "code": "01"},
    {"query_id": "7", "kind": None, "words": None, "flag": None, "code": "2"},
    {"query_id": "q\u00fc", "kind": 'a "law"', "words": -0.5, "flag": False, "code": None},
]
TSV = 'qid\tkind\twords\tflag\tcode\n007\tnews, old\t3\tTrue\t01\n7\t\t\t\t2\nq\u00fc\ta "law"\t-.5\tfalse\t\n'
CSV = 'qid,kind,words,flag,code\n007,"news, old",3,TRUE,01\n7,,,,2\nq\u00fc,"a ""law""",-5e-1,false,\n'


def written(folder: Path, name: str) -> Path:
    path = folder / name
    table = pa.Table.from_pylist(RECORDS)
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    forms: dict[str, Any] = {
        ".tsv": TSV.encode(),
        ".csv": CSV.encode(),
        "dos.csv": b"\xef\xbb\xbf" + CSV.replace("\n", "\r\n").encode(),
        "excel.csv": CSV.replace('"news, old"', "news, old")
        .replace(",", ";")
        .replace("news; old", "news, old")
        .encode(),
        ".csv.gz": gzip.compress(CSV.encode()),
        "no_ending": TSV.encode(),
        "list.json": json.dumps(RECORDS).encode(),
        "dict.json": json.dumps(
            {
                record["query_id"]: {name: value for name, value in record.items() if name != "query_id"}
                for record in RECORDS
            }
        ).encode(),
        ".jsonl": "\n\n".join(map(json.dumps, RECORDS)).encode(),
        ".jsonl.gz": gzip.compress("\n".join(map(json.dumps, RECORDS)).encode()),
        "stream.arrow": stream.getvalue().to_pybytes(),
    }
    if name == "facts.parquet":
        pq.write_table(table, path)
    elif name == "facts.feather":
        pf.write_feather(table, path)
    else:
        path.write_bytes(forms[name.removeprefix("facts")])
    return path


@pytest.mark.parametrize(
    "name",
    ["facts.tsv", "facts.csv", "dos.csv", "excel.csv", "facts.csv.gz", "no_ending", "list.json", "dict.json",
     "facts.jsonl", "facts.jsonl.gz", "facts.parquet", "facts.feather", "stream.arrow"],
)  # fmt: skip
def test_every_format_gives_the_same_typed_columns(tmp_path: Path, name: str) -> None:
    attributes = Attributes.read(written(tmp_path, name))
    assert attributes.table.to_pylist() == RECORDS
    types = {name: str(attributes.table[name].type) for name in attributes.table.column_names}
    assert types == {"query_id": "string", "kind": "string", "words": "double", "flag": "bool", "code": "string"}
    assert attributes.where == str(tmp_path / name)


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1", "-2.5", "+3", ".5", "4.", "1e3", " 7 "], [1.0, -2.5, 3.0, 0.5, 4.0, 1000.0, 7.0]),
        (["1", ""], [1.0, None]),
        (["007", "1"], ["007", "1"]),  # a code: as a number it would lose its form
        (["0", "0.50"], [0.0, 0.5]),
        (["nan", "1"], ["nan", "1"]),  # the code of a language
        (["0x10", "1"], ["0x10", "1"]),
        (["true", "FALSE", ""], [True, False, None]),
        (["true", "yes"], ["true", "yes"]),
        (["true", "1"], ["true", "1"]),
        (["", " "], [None, None]),
        (["2024-05-31", "x"], ["2024-05-31", "x"]),
    ],
)
def test_text_becomes_numbers_or_truth_where_every_value_is_one(texts: list[str], values: list[Any]) -> None:
    column = typed_column(pa.array(texts), "x").to_pylist()
    assert column == values
    assert [type(value) for value in column] == [type(value) for value in values]


@pytest.mark.parametrize(
    ("texts", "odd"),
    [
        (["1,5", "2,5"], "2 of 2"),
        (["1e999", "1"], "1 of 2"),
        (["1e-999", "1"], "1 of 2"),
        (["1_000", "1", ""], "1 of 2"),
        (["1", "2", "n/a", "n/a", "3"], "2 of 5"),
    ],
)
def test_a_column_that_looks_like_numbers_and_stays_text_is_said(texts: list[str], odd: str) -> None:
    with pytest.warns(JudgedWarning, match=f"column x is read as text: {odd}"):
        assert typed_column(pa.array(texts), "x").to_pylist() == [text or None for text in texts]


def test_an_id_in_a_record_that_stands_under_another_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"1": {"query_id": "2", "kind": "news"}}')
    with pytest.raises(InputError, match="topic 1"):
        Attributes.read(tmp_path / "a.json")
    for kind in (Attributes, Documents):
        with pytest.raises(InputError, match="'9'"):
            kind.of({"1": {"query_id": "9", "doc_id": "9", "kind": "news"}})


def test_typed_arrays_keep_their_meaning() -> None:
    cases: list[tuple[Any, list[Any]]] = [
        (pa.array([1, None]), [1.0, None]),
        (pa.array([1.5, float("nan")]), [1.5, None]),
        (pa.array(["a", "", "a"]).dictionary_encode(), ["a", None, "a"]),
        (pa.array([pd.Timestamp("2024-05-31").date()]), ["2024-05-31"]),
        (pa.array([None, None]), [None, None]),
        (pa.array([True, None]), [True, None]),
        (pa.chunked_array([["1"], ["2"]]), [1.0, 2.0]),
    ]
    for array, values in cases:
        assert typed_column(array, "x").to_pylist() == values
    for nested in (pa.array([[1]]), pa.array([{"a": 1}]), pa.array([b"a"]), pa.array([1.0, float("-inf")])):
        with pytest.raises(InputError, match="the column x must contain"):
            typed_column(nested, "x")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "qid,x\n1,2\n3\n", "a.csv:3: 1 fields, but the header has 2 (qid, x). Fix: correct the line."),
        ("a.csv", 'qid,x\n1,"a\nb"\n2,3,4\n', "a.csv:4: 3 fields, but the header has 2"),
        ("a.tsv", "qid\tx\n\n1\t2\t3\n", "a.tsv:3: 3 fields, but the header has 2"),
        ("a.csv", "qid,x\n1,2\n\n1,3\n", "a.csv:4: topic 1 appears twice. Fix: keep one row per topic."),
        ("a.csv", 'qid,x\n1,"a\nb"\n1,3\n', "a.csv:4: topic 1 appears twice"),
        ("a.csv", 'qid,x\n1,a\n1,"a\nb"\n', "a.csv:3: topic 1 appears twice"),
        ("a.tsv", "qid\tx\n\t3\n", "a.tsv:2: the query_id is empty. Fix: fill in the id."),
        (
            "a.csv",
            "x,y\n1,2\n",
            "a.csv: no query_id among the columns x, y. Fix: name the columns in the first line, including query_id.",
        ),
        ("a.csv", "qid,x,x\n1,2,3\n", "a.csv: two columns are called 'x'. Fix: use a different name for each column."),
        ("a.csv", "qid,,x\n1,2,3\n", "a.csv:1: a column has no name"),
        ("a.csv", "\nqid,x\n1,2\n", "a.csv:1: a column has no name"),
        ("a.csv", "qid;x\n1;2\n1;3\n", "a.csv:3: topic 1 appears twice"),
        ("a.csv", "", "a.csv: this file is empty. Fix: use a file with a column query_id."),
        ("a.jsonl", '{"qid": "1", "x": 1}\n{"x": 2}\n', "a.jsonl:2: no query_id among the fields x"),
        ("a.jsonl", '{"qid": "1", "x": 1}\n{"qid": "1"}\n', "a.jsonl:2: topic 1 appears twice"),
        (
            "a.jsonl",
            '{"qid": "1", "x": [1]}\n',
            "a.jsonl:1: x must be one value, or a list of texts, got [1]. Fix: use one text,",
        ),
        ("a.jsonl", '{"qid": 1.5}\n', "a.jsonl:1: the query_id 1.5 is a float"),
        ("a.jsonl", '{"qid": "1"}\n{"qid": \n', "a.jsonl:2: invalid JSON"),
        ("a.jsonl", '{"qid": "1"}\n[]\n', "a.jsonl:2: this line is not a JSON object"),
        ("a.json", '{"1": {"x": 1},\n "1": {"x": 2}}', "a.json: the key '1' appears twice in one object"),
        ("a.json", '{"1": 3}', "a.json: the value of topic 1 must be an object, got 3. Fix: write"),
        ("a.json", '[{"qid": "1"}, 5]', "a.json: record 2 must be an object, got 5"),
        (
            "a.json",
            '[{"qid": "1", "x": {"y": 1}}]',
            'a.json: record 1: x must be one value, or a list of texts, got {"y": 1}',
        ),
        ("a.json", '"text"', "a.json: this JSON contains no records of topics"),
        ("a.json", "[]", "a.json: this file is empty"),
        ("a.json", '[{"qid": "1", "x": "\\ud800"}]', "a.json: a text has an unpaired surrogate"),
        ("a.json", '[{"qid": "1", "x": 1' + "0" * 400 + "}]", "a.json: the column x has a number that is too large"),
        ("a.parquet", "no parquet", "a.parquet: the Parquet data is damaged"),
        ("a.arrow", "no arrow", "a.arrow: the Arrow data is damaged"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as raised:
        Attributes.read(tmp_path / name)
    assert message in str(raised.value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for data, message in {
        b"qid,x\n1,\xff\n": "a.csv:2: this file is not UTF-8",
        "qid,x\n".encode("utf-16"): "this is UTF-16",
        gzip.compress(CSV.encode() * 9)[:-12]: "the compressed data is truncated or damaged",
    }.items():
        path.write_bytes(data)
        with pytest.raises(InputError, match=message):
            Attributes.read(path)
    with pytest.raises(InputError, match="there is no such file"):
        Attributes.read(tmp_path / "none.csv")


@given(st.binary(max_size=60), st.sampled_from(["a.csv", "a.tsv", "a.jsonl", "a.json", "a.parquet", "a.feather"]))
def test_no_file_ends_in_a_traceback(tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str) -> None:
    path = tmp_path_factory.mktemp("fuzz") / name
    for content in (data, b"qid,x\n" + data, b'{"qid": "1"}\n' + data, b"ARROW1" + data):
        path.write_bytes(content)
        try:
            read_attributes(path)
        except InputError as error:
            assert name in str(error)  # noqa: PT017 - reading it would be right too


def test_the_usual_names_of_ids_are_understood_and_the_plainest_wins(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("query,Query-ID,topic\nincome tax,1,law\n")
    assert Attributes.read(path).table.to_pylist() == [{"query_id": "1", "query": "income tax", "topic": "law"}]
    path.write_text("doc,_id,source\ntext,d1,web\n")
    documents = Documents.read(path)
    assert documents.table.to_pylist() == [{"doc_id": "d1", "doc": "text", "source": "web"}]


def test_documents_are_read_from_the_same_formats(tmp_path: Path) -> None:
    rows = {"d1": {"length": 3, "group": "a"}, "d2": {"length": 5, "group": "b"}}
    (tmp_path / "docs.json").write_text(json.dumps(rows))
    pf.write_feather(pa.table({"docno": ["d1", "d2"], "length": [3, 5], "group": ["a", "b"]}), tmp_path / "docs.arrow")
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "length": 3, "group": "a", "metadata": {}}\n')
    for name, docs in {"docs.json": ["d1", "d2"], "docs.arrow": ["d1", "d2"], "corpus.jsonl": ["d1"]}.items():
        documents = Documents.read(tmp_path / name)
        assert documents.column("length", pa.array(docs)).to_pylist() == [rows[doc]["length"] for doc in docs]
    (tmp_path / "twice.tsv").write_text("docno\tlength\nd1\t3\nd2\t4\nd1\t5\n")
    with pytest.raises(InputError, match=r"twice\.tsv:4: document d1 appears twice\. Fix: keep one row per document"):
        Documents.read(tmp_path / "twice.tsv")


def test_objects_of_many_kinds_are_understood() -> None:
    plain = {"q1": {"kind": "news", "words": 3}, "q2": {"kind": None, "words": 4}}
    records = [{"qid": query, **fields} for query, fields in plain.items()]
    expected = [{"query_id": "q1", "kind": "news", "words": 3.0}, {"query_id": "q2", "kind": None, "words": 4.0}]
    for data in (plain, records, pa.Table.from_pylist(records), pd.DataFrame(records), pl.DataFrame(records)):
        assert Attributes.of(data).table.to_pylist() == expected
    assert Attributes.of(fields := Attributes.of(plain)) is fields
    topics = Topics.of({"q1": {"text": "income tax", "Turn": "3", "kind": "law"}, "q2": "peace"})
    assert Attributes.of(topics).table.to_pylist() == [
        {"query_id": "q1", "turn": 3.0, "kind": "law"},
        {"query_id": "q2", "turn": None, "kind": None},
    ]
    assert Attributes.of({"q": {"x": 1}, "r": {"x": "n/a"}}).column("x").to_pylist() == ["1", "n/a"]
    assert Attributes.of({7: {"x": 1}}).query_ids == ("7",)


def test_objects_that_tell_nothing_are_refused() -> None:
    for data, message in {
        3: "an object of type int cannot be read as attributes of topics",
        ("q1",): "the attributes of a topic must be a dict, got 'q1'",
    }.items():
        with pytest.raises(InputError, match=message):
            Attributes.of(data)
    with pytest.raises(InputError, match="topic q appears twice"):
        Attributes.of([{"qid": "q"}, {"qid": "q"}])
    with pytest.raises(InputError, match="two columns are called 'a_b'"):
        Attributes.of([{"qid": "q", "a b": 1, "a-b": 2}])
    with pytest.raises(InputError, match=r"no attribute 'nope'\. Fix: use one of kind"):
        Attributes.of({"q": {"kind": "x"}}).column("nope")
    with pytest.raises(InputError, match="got list"):
        Attributes.of({"q": {"x": [1, 2]}})


def test_other_topics_have_no_values_and_the_first_table_goes_before() -> None:
    first = Attributes.of({"a": {"kind": "x", "n": 1}, "b": {"kind": "y"}})
    assert first.over(["c", "b"]).table.to_pylist() == [
        {"query_id": "c", "kind": None, "n": None},
        {"query_id": "b", "kind": "y", "n": None},
    ]
    two = Attributes.of({"b": {"kind": "z", "flag": True}, "d": {"kind": "z", "flag": False}})
    assert first.joined(two).table.to_pylist() == [
        {"query_id": "a", "kind": "x", "n": 1.0, "flag": None},
        {"query_id": "b", "kind": "y", "n": None, "flag": True},
        {"query_id": "d", "kind": None, "n": None, "flag": False},
    ]
    assert first.table.num_rows == 2  # neither was changed


def test_an_arrow_file_that_points_outside_of_itself_is_refused(tmp_path: Path) -> None:
    stream = pa.BufferOutputStream()
    table = pa.table({"query_id": ["1", "2", "3"], "x": ["a", "b", "c"]})
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    data = stream.getvalue().to_pybytes()
    offsets, broken = (np.array([0, 1, 2, last], dtype=np.int32).tobytes() for last in (3, 2**30))
    offset = data.rindex(offsets)
    (tmp_path / "a.arrow").write_bytes(data[:offset] + broken + data[offset + len(offsets) :])  # to read it is a crash
    with pytest.raises(InputError, match=r"a\.arrow: the Arrow data is damaged"):
        Attributes.read(tmp_path / "a.arrow")


@pytest.mark.parametrize(("name", "data", "line"), [
    ("a.jsonl", "\n".join(f'{{"id": "{number}", "k{number}": 1}}' for number in range(600)), 500),
    ("a.json", json.dumps([{"id": "1"} | dict.fromkeys(map(str, range(600)), 1)]), None),
    ("a.csv", ",".join(["id", *map(str, range(500))]) + "\n", 1),
    ("a.tsv", "\t".join(["id", *map(str, range(500))]) + "\n", 1),
])  # fmt: skip
def test_a_table_that_is_too_wide_is_refused(tmp_path, name, data, line):
    path = tmp_path / name
    path.write_text(data)
    with pytest.raises(InputError, match="more than 500 columns") as caught:
        read_attributes(path)
    assert caught.value.line == line


def test_a_wide_table_is_read(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(",".join(["id", *map(str, range(499))]) + "\n" + "1" + ",2" * 499)
    assert read_attributes(path).num_columns == 500
