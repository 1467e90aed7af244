"""The bulk parser and the line-by-line parser return the same rows; broken files raise InputError."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judged import Qrels
from judged.data.layout import Layout, parse_field, split_fields
from judged.data.sources import open_source
from judged.data.text_rows import TextRows
from judged.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

TREC = Layout(("query_id", "", "doc_id", "rank", "score", "run_id"), " ", optional=1)
TSV = Layout(("query_id", "doc_id", "score"), "\t", strict=True)
CSV = Layout(("query_id", "doc_id", "score"), ",", strict=True)
QRELS = Layout(("query_id", "iteration", "doc_id", "relevance"), "\t")
COLUMNS = ("query_id", "iteration", "doc_id", "score", "rank", "relevance", "run_id")

QUIET = settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    database=None,
)

ids = st.one_of(
    st.sampled_from(["q1", "007", "7", "NA", "null", "nan", "TRUE", "1e5", '"', 'a"b', "'", "a,b", "d#1", "Q0", "é",
                     "\u00a0", "文書", "a\u2028b", "\ufeffx", "-", "1.0", "0x1F", "\\N", ""]),
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=6),
)  # fmt: skip
numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-1000, 1000).map(str),
    st.sampled_from(["1e-05", "+3", ".5", "5.", "-0", "1E3", "inf", "-inf", "0.1000000000000000055511151231257827"]),
)
odd = st.sampled_from(["nan", "", "abc", "1,5", "0x10", "1_0", "--", "NaN", "1e", "\uff11"])
ranks = st.one_of(st.integers(0, 10**6).map(str), st.sampled_from(["1.0", "-1", "007"]))
ends = st.sampled_from(["\n", "\r\n", "\n\n", " \n", "\t\r\n", "\n# a comment\n", "\r"])


def field(name: str, broken: bool) -> st.SearchStrategy[str]:
    if name in {"score", "relevance"}:
        return st.one_of(numbers, odd) if broken else numbers
    if name == "rank":
        return st.one_of(ranks, odd) if broken else ranks
    return ids if broken else ids.filter(lambda text: bool(text) and not text.startswith("#"))


@st.composite
def texts(draw: st.DrawFn, layout: Layout, broken: bool = False) -> bytes:
    """A file of this layout: any blanks, line ends, comments, missing tags; broken ones break anything."""
    blank = st.just(layout.delimiter)
    if not layout.strict and not draw(st.booleans()):
        blank = st.sampled_from([" ", "\t", "  ", " \t", "\v", "\f"])
    end = ends if draw(st.booleans()) else st.just(draw(ends))
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 6))):
        fields = [draw(field(name, broken)) for name in layout.names]
        if layout.optional and draw(st.integers(0, 3)) == 0:
            fields.pop()
        if broken and draw(st.integers(0, 3)) == 0:
            fields = fields[: draw(st.integers(0, len(fields)))]
        lines.append(
            "".join(part for field_text in fields for part in (field_text, draw(blank)))[: None if broken else -1]
        )
    text = "".join(line + draw(end) for line in lines)
    if draw(st.booleans()):
        text = text.rstrip("\r\n")
    data = text.encode()
    if broken and draw(st.integers(0, 4)) == 0:
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.sampled_from([b"\xff", b"\xc3", b"\0", b"\xed\xa0\x80"])) + data[at:]
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + data


def outcome(call: object) -> object:
    try:
        return call()  # type: ignore[operator]
    except InputError as error:
        return str(error)


def plain(path: Path, layout: Layout) -> list[dict[str, object]] | str:
    """Read line by line, without the bulk parser."""

    def read() -> list[dict[str, object]]:
        names = [name for name in COLUMNS if name in layout.names]
        rows = TextRows(path, layout, "file")
        return [{name: parse_field(name, record.fields.get(name, "")) for name in names} for record in rows.lines()]

    try:
        return outcome(read)  # type: ignore[return-value]
    except ValueError:
        return "refused"


def parsed(path: Path, layout: Layout, block: int) -> list[dict[str, object]] | str:
    rows = TextRows(path, layout, "file", block=block)
    return outcome(lambda: [row for part in rows.parts(COLUMNS) for row in part().to_pylist()])  # type: ignore[return-value]


@pytest.mark.parametrize("layout", [TREC, TSV, CSV, QRELS], ids=["trec", "tsv", "csv", "qrels"])
@QUIET
@given(data=st.data())
def test_bulk_equals_line_by_line(layout: Layout, data: st.DataObject, tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    broken = data.draw(st.booleans())
    path.write_bytes(data.draw(texts(layout, broken)))
    block = data.draw(st.sampled_from([3, 16, 64, 1 << 20]))
    expected, batch = plain(path, layout), parsed(path, layout, block)
    if isinstance(expected, str):
        assert isinstance(batch, str)
        assert batch.startswith("file:")
    else:
        assert batch == expected


@QUIET
@given(data=st.data())
def test_any_blanks_read_as_the_fields_written(data: st.DataObject, tmp_path: Path) -> None:
    word = ids.filter(lambda text: bool(text) and not text.startswith("#"))
    rows = data.draw(st.lists(st.tuples(word, word, ranks, numbers, word), min_size=1, max_size=5))
    blank = st.sampled_from([" ", "\t", "  ", "\t \t"])
    lines = [
        "".join(f"{data.draw(blank)}{part}" for part in (query, "Q0", doc, rank, score, tag))
        for query, doc, rank, score, tag in rows
    ]
    path = tmp_path / "some.run"
    path.write_text("\n".join(lines), encoding="utf-8", newline="")
    batch = parsed(path, TREC, 1 << 20)
    assert isinstance(batch, list)
    assert [(row["query_id"], row["doc_id"], row["score"], row["run_id"]) for row in batch] == [
        (query, doc, float(score), tag) for query, doc, _, score, tag in rows
    ]


GOOD = b"q1 Q0 d1 1 3.5 t\nq1 Q0 d2 2 2.5 t\nq2 Q0 d1 1 1.5 t\n"
BREAKS = {
    "text score": (GOOD + b"q2 Q0 d2 2 abc t\n", 4),
    "nan score": (GOOD + b"q2 Q0 d2 2 nan t\n", 4),
    "NaN score": (GOOD + b"\n# c\nq2 Q0 d2 2 NaN t\n", 6),
    "decimal comma": (GOOD + b"q2 Q0 d2 2 1,5 t\n", 4),
    "hex score": (GOOD + b"q2 Q0 d2 2 0x10 t\n", 4),
    "empty score": (b"q\td\t1.5\nq\te\t\n", 2),
    "too few fields": (GOOD + b"q2 Q0 d2\n", 4),
    "cut in the middle": (GOOD[:-10], 3),
    "not utf-8 id": (GOOD + b"q2 Q0 d\xe9 2 1 t\n", 4),
    "not utf-8 tag": (GOOD + b"q2 Q0 d 2 1 t\xe9\n", 4),
    "crlf": (GOOD.replace(b"\n", b"\r\n") + b"q2 Q0 d2 2 abc t\r\n", 4),
    "empty": (b"", None),
    "only blanks": (b" \n\n\t\n", None),
    "only comments": (b"# nothing\n# here\n", None),
    "only a mark": (b"\xef\xbb\xbf", None),
}


@pytest.mark.parametrize("name", BREAKS)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
def test_broken_run_names_file_and_line(name: str, pack: object, tmp_path: Path) -> None:
    content, line = BREAKS[name]
    path = tmp_path / "bad.run"
    path.write_bytes(pack(content))  # type: ignore[operator]
    with pytest.raises(InputError) as caught:
        open_source(path, "run").table(COLUMNS)
    assert caught.value.path == str(path)
    assert caught.value.line == line
    assert caught.value.fix


@QUIET
@given(data=st.data())
def test_generated_broken_files_never_pass(data: st.DataObject, tmp_path: Path) -> None:
    kind = data.draw(st.sampled_from(["run", "qrels"]))
    lines = [b"q%d Q0 doc%d %d %d.5 tag" % (number // 5, number, number % 5, 50 - number) for number in range(20)]
    if kind == "qrels":
        lines = [b"q%d 0 doc%d %d" % (number // 5, number, number % 3) for number in range(20)]
    number = data.draw(st.integers(0, len(lines) - 1))
    fields = lines[number].split()
    how = data.draw(st.sampled_from(["text", "nan", "few", "bytes"]))
    number = 4 if kind == "run" else 3
    if how == "few":
        fields = fields[: data.draw(st.integers(1, number))]
    elif how == "bytes":
        fields[2] += data.draw(st.sampled_from([b"\xff", b"\xc3\x28", b"\x80", b"\xed\xa0\x80"]))
    else:
        fields[number] = data.draw(st.sampled_from([b"nan", b"NaN", b"-nan"] if how == "nan" else [b"x", b"1,0", b"-"]))
    lines[number] = b" ".join(fields)
    path = tmp_path / "broken.txt"
    path.write_bytes(data.draw(st.sampled_from([b"\n", b"\r\n"])).join(lines))
    with pytest.raises(InputError) as caught:
        open_source(path, kind).table(COLUMNS)
    assert caught.value.path == str(path)
    assert caught.value.line == number + 1


def test_tags_may_be_missing_on_some_lines(tmp_path: Path) -> None:
    path = tmp_path / "some.run"
    path.write_bytes(b"q Q0 a 1 2 t\nq Q0 b 2 1\n")
    table, _ = open_source(path, "run").table(COLUMNS)
    assert table["run_id"].to_pylist() == ["t", ""]


def test_tags_may_hold_blanks(tmp_path: Path) -> None:
    path = tmp_path / "some.run"
    path.write_bytes(b"q Q0 a 1 2 my run\nq Q0 b 2 1 my run\n")
    table, _ = open_source(path, "run").table(COLUMNS)
    assert table["doc_id"].to_pylist() == ["a", "b"]


def test_line_finds_the_nth_row_of_a_pair(tmp_path: Path) -> None:
    path = tmp_path / "some.run"
    path.write_bytes(b"# c\nq Q0 a 1 2 t\n\nq Q0 b 2 1 t\nq Q0 a 3 0 t\n")
    rows = TextRows(path, TREC, "some.run")
    assert [rows.line("q", "a", 1), rows.line("q", "a", 2), rows.line("q", "a", 3)] == [2, 5, None]


def test_csv_quotes(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_text('query_id,doc_id,score\n1,"a, b",2.5\n1, "say ""x""" ,1.5\n')
    table, _ = open_source(path, "run").table(COLUMNS)
    assert table["doc_id"].to_pylist() == ["a, b", 'say "x"']


def test_csv_quote_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_text('query_id,doc_id,score\n1,"a,2.5\n1,b,1.5\n')
    with pytest.raises(InputError, match=r"some\.csv:2: a double quote is not closed"):
        open_source(path, "run").table(COLUMNS)


def test_more_fields_than_the_header_names_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_text("query_id,doc_id,score\n1,a,2.5\n1,b,c,1.5\n")
    with pytest.raises(InputError, match=r"some\.csv:3: 4 fields, expected 3"):
        open_source(path, "run").table(COLUMNS)


def test_hash_at_the_start_of_a_complete_tsv_row_is_an_id(tmp_path: Path) -> None:
    path = tmp_path / "some.tsv"
    path.write_text("# made by hand\nquery_id\tdoc_id\tscore\n#python\ta\t2.5\nq\tb\t1\n# a comment\n")
    table, _ = open_source(path, "run").table(COLUMNS)
    assert table["query_id"].to_pylist() == ["#python", "q"]


def test_split_fields_of_a_comma_line() -> None:
    assert split_fields(b"1, 710, 5.6573\r\n", ",", strict=True) == [b"1", b"710", b"5.6573"]


@pytest.mark.parametrize(
    "text", ["nan", "", "1,5", "0x1", "1_0", "1e999", "-1e400", "1e-999", "\uff11", "1e", "infinite"]
)
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a number|is too (large|close to 0)"):
        parse_field("score", text)


@pytest.mark.parametrize("text", ["1.5", "inf", "1e20", "9007199254740994"])
def test_what_is_no_rank(text: str) -> None:
    with pytest.raises(ValueError, match="is not an integer"):
        parse_field("rank", text)


def test_batches_have_the_declared_types(tmp_path: Path) -> None:
    path = tmp_path / "some.run"
    path.write_bytes(GOOD)
    table, digest = open_source(path, "run").table(("query_id", "doc_id", "score", "rank", "run_id"))
    assert table.schema.types == [pa.string(), pa.string(), pa.float64(), pa.int64(), pa.string()]
    assert digest is not None


def test_a_long_run_of_blanks_is_one_blank(tmp_path):
    path = tmp_path / "qrels"  # looked for from each blank anew, their end would not be found in an hour
    blanks = b" " * 500_000
    path.write_bytes(b"q1 0 d0 2\nq1 0 d1" + blanks + b"1\nq1 0 d2 0" + blanks + b"\n")
    assert Qrels.read(path).grades.tolist() == [2.0, 1.0, 0.0]
