"""Damaged and unusual files raise an error with their name; none is misread or crashes the process."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from judged import InputError, JudgedWarning, Qrels, Run, Texts
from judged.data import check_qrels
from judged.data.arrow_files import arrow_table
from judged.data.attributes import Attributes
from judged.data.records import read_records
from judged.data.topics import Topics
from judged.diagnosis.tradeoff.tradeoff import Costs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TABLE = pa.table({"query_id": ["q1", "q2"], "doc_id": ["first", "second"], "relevance": [1, 2]})


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def arrow_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    "read", [Qrels.read, lambda path: arrow_table(path, str(path)), lambda path: [*read_records(path)]]
)
def test_an_arrow_file_with_bytes_that_are_not_text_is_refused(tmp_path: Path, read: Callable[[Path], object]) -> None:
    path = written(tmp_path / "a.arrow", arrow_bytes(TABLE).replace(b"second", b"sec\xffnd"))
    with pytest.raises(InputError, match=r"a\.arrow: the Arrow data is damaged"):
        read(path)


def test_an_arrow_file_may_be_cut_short_after_it_was_read(tmp_path: Path) -> None:
    """A map into memory would end the process with SIGBUS."""
    many = pa.table(
        {"query_id": ["q"] * 100_000, "doc_id": [str(number) for number in range(100_000)], "score": [0.5] * 100_000}
    )
    path = written(tmp_path / "a.arrow", arrow_bytes(many))
    run = Run.scan(path)
    path.write_bytes(b"")
    assert run.table.num_rows == 100_000


def test_arrow_files_are_read_where_parquet_files_are(tmp_path: Path) -> None:
    path = written(tmp_path / "a.arrow", arrow_bytes(TABLE))
    assert [row["doc_id"] for _, row in read_records(path)] == ["first", "second"]
    texts = pa.table({"doc_id": ["d1"], "text": ["what it says"]})
    assert Texts.read(written(tmp_path / "b.arrow", arrow_bytes(texts))).text("d1") == "what it says"


@pytest.mark.parametrize(
    "read", [Qrels.read, Topics.read, Texts.read, Attributes.read, lambda path: [*read_records(path)]]
)
def test_json_nested_too_deeply_is_refused(tmp_path: Path, read: Callable[[Path], object]) -> None:
    path = written(
        tmp_path / "a.jsonl",
        b'{"query_id": "q", "doc_id": "d", "relevance": 1, "text": ""}\n{"doc_id": ' + b"[" * 50_000 + b"\n",
    )
    with pytest.raises(InputError, match=r"a\.jsonl:2: "):
        read(path)


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_whole_number_that_no_double_holds_is_refused(tmp_path: Path, digits: int) -> None:
    path = written(tmp_path / "a.json", b'{"q": {"d": ' + b"9" * digits + b"}}")
    with pytest.raises(InputError, match=r"a\.json.*write a smaller number"):
        Qrels.read(path)


def test_a_header_below_comments_is_found_whatever_the_line_ends(tmp_path: Path) -> None:
    text = "# c\nquery_id,doc_id,score\nt01,a,2\n"
    for name, ends in (("n", "\n"), ("r", "\r"), ("rn", "\r\n")):
        assert Run.read(written(tmp_path / name, text.replace("\n", ends).encode())).table["score"].to_pylist() == [2.0]
    assert Run.read(written(tmp_path / "mixed", b"# c\nquery_id,doc_id,score\rt01,a,2\r")).table.num_rows == 1
    long = b"# a comment\n" * 300_000 + b"query_id,doc_id,score\nt01,a,2\n"  # more than one block
    assert Run.read(written(tmp_path / "long", long), format="csv").table.num_rows == 1


@pytest.mark.parametrize("format", ["prefs", "trec", "csv", "tsv", "msmarco", "beir"])
def test_a_format_of_text_is_not_taken_for_a_table(tmp_path: Path, format: str) -> None:
    path = written(tmp_path / "a.arrow", arrow_bytes(TABLE))
    with pytest.raises(InputError, match=f"this is arrow, not {format}"):
        Qrels.read(path, format=format)


def test_two_lines_in_one_are_refused(tmp_path: Path) -> None:
    """The second judgment would be lost, and half of a name with a blank read as the grade."""
    path = written(tmp_path / "qrels.txt", b"q1 0 d1 1\nq1 0 d2 1q1 0 d3 2\nq1 0 d 4 0\n")
    with pytest.raises(InputError, match=r"qrels\.txt:2: 7 fields, expected 4"):
        Qrels.read(path)
    assert [(finding.rule, finding.count) for finding in check_qrels(path) if finding.severity == "error"] == [
        ("too-many-fields", 2)
    ]
    run = written(tmp_path / "a.run", b"q1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 0.4 tq1 Q0 d3 3 0.3 t\nq1 Q0 d4 4 0.2 t\n")
    with pytest.raises(InputError, match=r"a\.run:2: 11 fields, expected 6"):
        Run.read(run)


def test_half_a_character_in_json_is_refused(tmp_path: Path) -> None:
    for name, text in (("a.jsonl", r'{"query_id": "q", "k\ud800": 1}'), ("a.json", r'{"q": {"x": "\ud800"}}')):
        with pytest.raises(InputError, match="unpaired surrogate"):
            Attributes.read(written(tmp_path / name, text.encode()))
    surrogate_pair = written(tmp_path / "b.jsonl", rb'{"query_id": "q", "text": "\ud83d\ude00"}')
    assert Topics.read(surrogate_pair).text("q") == "\U0001f600"


@pytest.mark.parametrize("read", [Qrels.read, Run.read, check_qrels, Topics.read, Attributes.read])
@pytest.mark.parametrize(
    "line", [b"\t" * 100_000, b"a" + b"\t" * 100_000 + b"b", b"query_id,doc_id,score" + b"," * 100_000]
)
def test_a_line_of_many_fields_is_soon_refused(tmp_path: Path, read: Callable[[Path], object], line: bytes) -> None:
    path = written(tmp_path / "a.txt", line + b"\nq1 0 d1 1\n")
    before = time.process_time()
    with contextlib.suppress(InputError):
        read(path)
    assert time.process_time() - before < 2


def test_a_line_without_an_end_is_refused_before_it_is_read_to_its_end(tmp_path: Path) -> None:
    """In memory it would take eighty times its size."""
    path = written(tmp_path / "a.txt", b"q1 0 d1 1\n" * 9 + b"word " * 2_000_000)
    with pytest.raises(InputError, match=r"a\.txt:10: this line has more than 2,097,152 bytes"):
        Qrels.read(path)
    returns = written(
        tmp_path / "b.txt", b"".join(b"q%d 0 d1 1\r" % number for number in range(300_000))
    )  # no such line
    assert Qrels.read(returns).table.num_rows == 300_000


def test_costs_of_many_names_are_soon_refused(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.json", b'{"bm25": {' + b",".join(b'"c%d": 1' % number for number in range(20_000)) + b"}}"
    )
    with pytest.raises(InputError, match=r"a\.json: there are more than 500 columns"):
        Costs.of(path)


def test_a_number_with_a_line_separator_in_it_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.run", "q1 Q0 d1 1 3. t\nq1 Q0 d2 2 2.\u2028 t\n".encode())
    with pytest.raises(InputError, match=r"a\.run:2: the score"):
        Run.read(path)


def test_a_column_of_odd_numbers_is_soon_text(tmp_path: Path) -> None:
    """Digits without end took time by their square; numbers with zeros before them ended in an IndexError."""
    path = written(tmp_path / "a.csv", b"query_id,x\nq1," + b"9" * 100_000 + b"a\nq2,3\n")
    before = time.process_time()
    assert Attributes.read(path).column("x").type == "string"
    assert time.process_time() - before < 2
    with pytest.warns(JudgedWarning, match="x is read as text: 1 of 2 values are not numbers, such as '01.5'"):
        Attributes.read(written(tmp_path / "b.csv", b"query_id,x\nq1,01.5\nq2,2.5\n"))
