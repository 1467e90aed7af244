"""Small tables as records: costs, latencies and reviewed lists."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyarrow import parquet

from judged import InputError
from judged.data.records import read_records
from judged.diagnosis.review import apply_review
from judged.diagnosis.tradeoff.tradeoff import Costs

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [{"run": "a", "ms": "1"}, {"run": "b, c", "ms": ""}]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", 'run,ms\na,1\n\n"b, c"\n'),
        ("t.csv", '\ufeffrun;ms\r\na;1\r\n"b, c";\r\n'),
        ("t.tsv", "run\tms\na\t1\nb, c\t\n"),
        ("t.json", '[{"run": "a", "ms": "1"}, {"run": "b, c", "ms": ""}]'),
        ("t.json", '{"a": {"ms": "1"}, "b, c": {"ms": ""}}'),
        ("t.jsonl", '{"run": "a", "ms": "1"}\n{"run": "b, c", "ms": ""}\n'),
    ],
)
def test_every_form_gives_the_same_records(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    assert [record for _, record in read_records(tmp_path / name, key="run")] == ROWS
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    assert [record for _, record in read_records(tmp_path / f"{name}.gz", key="run")] == ROWS


def test_parquet_and_the_lines_of_text(tmp_path: Path) -> None:
    parquet.write_table(pa.Table.from_pylist(ROWS), tmp_path / "t.parquet")
    assert list(read_records(tmp_path / "t.parquet")) == [(None, ROWS[0]), (None, ROWS[1])]
    (tmp_path / "t.csv").write_text('run,ms\n"a\nb",1\nc,2\n')
    assert [line for line, _ in read_records(tmp_path / "t.csv")] == [3, 4]  # where each row ends
    (tmp_path / "one.jsonl").write_text('{"run": "a"}\n')
    assert list(read_records(tmp_path / "one.jsonl")) == [(1, {"run": "a"})]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"run,ms\na,1,2\n", r"t\.txt:2: 3 fields, expected 2"),
        (b"run,ms\na,\xff\n", r"t\.txt:2: this file is not UTF-8"),
        (b"[1]", "record 1 must be an object, got 1"),
        (b'{"a": 1, "b": [', "JSON"),
        (b'{"a": {"ms": 1}}', "contains no list of records"),
        (b"PAR1....PAR1", "the Parquet data is damaged"),
    ],
)
def test_what_is_no_table_is_said(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "t.txt").write_bytes(content)
    with pytest.raises(InputError, match=said):
        list(read_records(tmp_path / "t.txt"))


def test_a_column_that_stands_twice_is_refused(tmp_path: Path) -> None:
    """The last one of them would count, and a grade be lost."""
    (tmp_path / "a.tsv").write_text("query_id\tdoc_id\tnew_grade\tnew_grade\nq\td\t3\t\n")
    with pytest.raises(InputError, match=r"a\.tsv:1: two columns are called 'new_grade'"):
        list(read_records(tmp_path / "a.tsv"))
    table = pa.table([["q"], [3], [None]], names=["run", "ms", "ms"])
    for read in (apply_review, Costs.of):
        with pytest.raises(InputError, match="two columns are called 'ms'"):
            read({"q": {"d": 1}}, table) if read is apply_review else read(table)
