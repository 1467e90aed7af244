"""Delimited tables as people export them, and numbers and grades in their notations."""

from __future__ import annotations

from pathlib import Path

import pytest

from judged.data.delimited import decode, numbered_columns, parse_numbers, read_delimited
from judged.data.grade_words import grades_of_words
from judged.data.nested_rows import nested_rows
from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.errors import InputError, JudgedWarning


@pytest.mark.parametrize(
    ("text", "codec", "name"),
    [
        ("naïve café, größe", "cp1252", "Windows-1252"),
        ("検索語,順位,商品コード", "cp932", "Shift JIS"),
        ("查询,文档,相关性", "gb18030", "GB 18030"),
        ("query,größe", "utf-16", "UTF-16"),
        ("query,größe", "utf-8-sig", "UTF-8"),
        ("Bohrmaschine für Beton,Bügeleisen,Ölfilter", "cp1252", "Windows-1252"),
    ],
)
def test_encodings(text: str, codec: str, name: str) -> None:
    assert decode(text.encode(codec)) == (text, name)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1", "2.5"], [1.0, 2.5]),
        (["18,75", "9,4"], [18.75, 9.4]),
        (["1.234,5", "98"], [1234.5, 98.0]),
        (["1,204.50", "98"], [1204.5, 98.0]),
        (["1,234,567"], [1234567.0]),
        (["100%", "9.5 %"], [100.0, 9.5]),
        (["1,204"], None),
        (["1.204,5", "1,204.5"], None),
        (["12a"], None),
        (["-3,5", "+4,25"], [-3.5, 4.25]),
    ],
)
def test_numbers(texts: list[str], expected: list[float] | None) -> None:
    assert parse_numbers(texts) == expected


@pytest.mark.parametrize(
    ("words", "grades"),
    [
        (["Yes", "no"], [1, 0]),
        (["👍", "👎"], [1, 0]),
        (["highly relevant", "relevant", "not relevant"], [2, 1, 0]),
        (["relevant", "partially relevant", "irrelevant"], [2, 1, 0]),
        (["Exact", "Substitute", "Complement", "Irrelevant"], [1, 0.1, 0.01, 0]),
        (["perfect", "excellent", "good", "fair", "bad"], [4, 3, 2, 1, 0]),
        (["L0", "L3"], [0, 3]),
        (["relevant", "blue"], None),
    ],
)
def test_grades_as_words(words: list[str], grades: list[float] | None) -> None:
    found = grades_of_words(words)
    assert (found and [found[word] for word in words]) == grades


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", "::"])
@pytest.mark.parametrize("title", ["", "Judgments of May\nsecond line\n\n"])
def test_delimiters_and_titles(delimiter: str, title: str, tmp_path: Path) -> None:
    rows = [["query", "sku", "grade"], ["red shoes", "A-1", "2"], ["tent", "B-1", "0"]]
    path = tmp_path / "a.txt"
    path.write_text(title + "".join(delimiter.join(row) + "\n" for row in rows))
    table = read_delimited(path, "a.txt", "qrels")
    assert table is not None
    assert ([*table.columns], table.rows) == (rows[0], rows[1:])
    assert table.lines == [len(title.splitlines()) + 2, len(title.splitlines()) + 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("query;sku;grade\nred;A-1;2;9\n", "4 fields, expected 3"),
        ("query;sku;grade\nred;;2\n", "the doc_id is empty"),
        ("query;sku;grade\nred;A-1;blue\n", "not a number or a known word"),
        ("query;sku;grade\nred;A-1;1,204\n", "not a number or a known word"),
        ('query;sku;grade\nred;"A-1;2\n', "unknown layout"),
    ],
)
def test_tables_with_an_error_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        Qrels.read(path)


def test_rows_without_a_grade_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("query;sku;grade\nred;A-1;2\nred;A-2;\nred;A-3;\n")
    with pytest.warns(JudgedWarning, match="2 rows without a grade"):
        assert Qrels.read(path).table.num_rows == 1


def test_columns_of_results_in_rank_order(tmp_path: Path) -> None:
    assert numbered_columns(["q", "doc1", "doc2", "doc3"]) == [1, 2, 3]
    assert numbered_columns(["q", "doc2", "doc1"]) == [2, 1]
    assert numbered_columns(["q", "doc1", "doc3"]) == []
    path = tmp_path / "a.csv"
    path.write_text("query,doc1,doc2\nred,A-1,A-2\ntent,B-1,\n")
    assert Run.read(path).table.to_pydict()["rank"] == [1, 2, 1]


def test_nested_lists_of_one_object_are_combined() -> None:
    data = {"groups": [{"queries": ["a", "b"], "docs": {"d1": 3, "d2": 0}}]}
    paths = {"query_id": "groups[].queries[]", "doc_id": "groups[].docs{}#", "relevance": "groups[].docs{}"}
    rows = [tuple(row.values()) for row in nested_rows(data, paths)]
    assert sorted(rows) == [("a", "d1", 3), ("a", "d2", 0), ("b", "d1", 3), ("b", "d2", 0)]
