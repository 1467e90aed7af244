"""Attributes of documents: input formats, and lookup by id."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judged import Documents, InputError, MeasureError, evaluate, judge

FACTS = {"007": {"length": 120, "group": "a"}, "7": {"length": 80, "group": "b"}}


def written(folder: Path, name: str) -> Path:
    path = folder / name
    text = {
        "docs.csv": "docno,length,group\n007,120,a\n7,80,b\n",
        "docs.tsv": "doc_id\tlength\tgroup\n007\t120\ta\n7\t80\tb\n",
        "docs.jsonl": '{"doc_id": "007", "length": 120, "group": "a"}\n{"doc_id": "7", "length": 80, "group": "b"}\n',
    }
    if name.endswith(".parquet"):
        pq.write_table(pa.table({"doc_id": ["007", "7"], "length": [120, 80], "group": ["a", "b"]}), path)
    else:
        path.write_text(text[name])
    return path


@pytest.mark.parametrize("name", ["docs.csv", "docs.tsv", "docs.jsonl", "docs.parquet"])
def test_every_format_keeps_ids_as_they_are(tmp_path: Path, name: str) -> None:
    documents = Documents.read(written(tmp_path, name))
    assert documents.names == ("length", "group")
    assert documents.column("length", pa.array(["7", "007", "7"])).to_pylist() == [80, 120, 80]
    assert documents.column("group", pa.array(["007"])).to_pylist() == ["a"]


def test_dicts_frames_and_records_are_understood() -> None:
    records = [{"doc_id": doc, **fields} for doc, fields in FACTS.items()]
    for data in (FACTS, records, pa.Table.from_pylist(records), Documents.of(FACTS)):
        assert Documents.of(data).column("length", pa.array(["7"])).to_pylist() == [80]
    assert repr(Documents.of(FACTS)) == "Documents(2 documents: length, group)"


def test_what_is_wrong_is_said() -> None:
    documents = Documents.of(FACTS)
    with pytest.raises(InputError, match=r"no column 'cost': the columns are length, group. Fix: add a column cost"):
        documents.column("cost", pa.array(["7"]))
    with pytest.raises(InputError, match="2 returned documents have no length: x, y"):
        documents.column("length", pa.array(["x", "7", "y"]))
    with pytest.raises(InputError, match="document 7 appears twice"):
        Documents.of([{"doc_id": "7", "length": 1}, {"doc_id": "7", "length": 2}])
    with pytest.raises(InputError, match="no doc_id among the columns length"):
        Documents.of(pa.table({"length": [1]}))
    with pytest.raises(InputError, match="an object of type int cannot be read as attributes of documents"):
        Documents.of(3)


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "docs.parquet"
    path.write_text("no parquet")
    with pytest.raises(InputError, match="the Parquet data is damaged"):
        Documents.read(path)
    with pytest.raises(InputError, match="there is no such file"):
        Documents.read(tmp_path / "none.csv")


def test_a_fact_stands_in_the_order_of_the_ranking() -> None:
    judged = judge({"q": {"7": 1}}, {"q": {"7": 1.0, "007": 2.0}}, documents=FACTS)
    assert judged.fact("length", "TBG").to_pylist() == [120, 80]
    with pytest.raises(MeasureError, match=r"TBG requires the length of every returned document\. Fix: pass"):
        judge({"q": {"7": 1}}, {"q": {"7": 1.0}}).fact("length", "TBG")


def test_evaluate_hands_documents_on() -> None:
    assert evaluate({"q": {"7": 1}}, {"q": {"7": 1.0}}, "RR", documents=FACTS).value("RR") == 1.0
