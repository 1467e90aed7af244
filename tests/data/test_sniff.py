"""Detection of formats from the content; a file of another kind raises an error with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from judged.data.layout import Layout
from judged.data.sniff import FORMATS, sniff
from judged.data.sources import open_source
from judged.errors import InputError
from shared_data import SHARED, needs_shared

Q, D, R, S, K = "query_id", "doc_id", "relevance", "score", "rank"
TREC = (Q, "", D, K, S, "run_id")

RUNS = {
    "trec": ("1 Q0 d1 1 3.5 t\n1 Q0 d2 2 2.5 t\n", TREC),
    "trec with tabs": ("1\tQ0\td1\t1\t3.5\tt\n", TREC),
    "trec from rank 0": ("1 Q0 d1 0 3.5 t\n1 Q0 d2 1 2.5 t\n", TREC),
    "seven fields": ("1 Q0 d1 1 3.5 t x\n", TREC),
    "no tag": ("1 Q0 d1 1 3.5\n1 Q0 d2 2 2.5\n", TREC[:5]),
    "no tag, numeric ids": ("1 0 8182161 1 12.5\n1 0 8182162 2 11.5\n", TREC[:5]),
    "some tags": ("1 Q0 d1 1 3.5 t\n1 Q0 d2 2 2.5\n1 Q0 d3 3 1.5\n", TREC),
    "odd ranks": ("1 Q0 d1 - 3.5 t\n1 Q0 d2 - 2.5 t\n", (Q, "", D, "", S, "run_id")),
    "five fields": ("1 d1 1 3.5 t\n1 d2 2 2.5 t\n", (Q, D, K, S, "run_id")),
    "five fields, a number as tag": ("1 d1 1 30 7\n1 d2 2 20 7\n", (Q, D, K, S, "run_id")),
    "four fields": ("1 d1 1 3.5\n1 d2 2 2.5\n", (Q, D, K, S)),
    "msmarco": ("1\t77\t1\n1\t78\t2\n2\t77\t1\n", (Q, D, K)),
    "msmarco from 0": ("1 77 0\n1 78 1\n", (Q, D, K)),
    "scores": ("1 d1 3.5\n1 d2 2.5\n", (Q, D, S)),
    "whole scores that fall": ("1 d1 3\n1 d2 2\n1 d3 1\n", (Q, D, S)),
    "a set": ("1 d1\n1 d2\n", (Q, D)),
    "coursework": ("1, 710, 5.6573\n1, 213, 4.9\n", (Q, D, S)),
    "commas, trec": ("1,Q0,d1,1,3.5,t\n", TREC),
    "commas, four": ("1,d1,1,3.5\n", (Q, D, K, S)),
    "commas, set": ("1,d1\n1,d2\n", (Q, D)),
    "ids with commas": ("1 Q0 d,1 1 3.5 t\n1 Q0 d,2 2 2.5 t\n", TREC),
    "coursework with header": (
        "system_number,query_number,doc_number,rank_of_doc,score\n1,1,710,1,5.34\n", ("run_id", Q, D, K, S)),
    "tsv header": ("qid\tdocno\tsim\tcomment\n1\td1\t3.5\tfine\n", (Q, D, S)),
    "header between blanks": ("query_id doc_id score\n1 d1 3.5\n", (Q, D, S)),
    "header, no scores": ("query_id,doc_id\n1,d1\n", (Q, D)),
    "comments first": ("# by hand\n\n1 Q0 d1 1 3.5 t\n", TREC),
    "crlf": ("1 Q0 d1 1 3.5 t\r\n1 Q0 d2 2 2.5 t\r\n", TREC),
    "mark": ("\ufeff1 Q0 d1 1 3.5 t\n", TREC),
}  # fmt: skip
QRELS = {
    "trec": ("1 0 d1 1\n1 0 d2 0\n", (Q, "iteration", D, R)),
    "two blanks": ("1  0  d1   -2\n", (Q, "iteration", D, R)),
    "crlf, tabs": ("2\t0\tD1650436\t1\r\n", (Q, "iteration", D, R)),
    "three fields": ("1 184 2 \n1 29 2 \n", (Q, D, R)),
    "sampled": ("1 d1 0 0 1\n1 d2 1 2 0.25\n", (Q, D, R, "", "")),
    "beir": ("query-id\tcorpus-id\tscore\n1\td1\t1\n", (Q, D, R)),
    "commas": ("1,0,d1,1\n1,0,d2,0\n", (Q, "iteration", D, R)),
    "three commas": ("1, d1, 1\n1, d2, 0\n", (Q, D, R)),
    "float grades": ("1 0 d1 1.7\n1 0 d2 0.0\n", (Q, "iteration", D, R)),
    "labeled list": ("query,doc,rank,relevance\n1,d1,1,2\n", (Q, D, K, R)),
    "one of each topic": ("1 0 d1 1\n2 0 d2 1\n", (Q, "iteration", D, R)),
}
REFUSED = {
    "qrels as a run": ("run", "1 0 d1 1\n1 0 d2 0\n", "looks like qrels"),
    "qrels with a subtopic": ("run", "1 2 d1 1\n1 2 d2 0\n", "looks like qrels"),
    "qrels with a subtopic and whole ids": ("run", "1 1 71 1\n1 1 72 0\n1 2 71 1\n", "looks like qrels"),
    "qrels with float grades as a run": ("run", "1 Q0 d1 1.7\n1 Q0 d2 0.0\n", "looks like qrels"),
    "three-field qrels as a run": ("run", "1 d1 1\n1 d2 0\n1 d3 1\n2 d1 0\n", "looks like qrels"),
    "ones as a run": ("run", "1 d1 1\n2 d2 1\n3 d3 1\n", "looks like qrels"),
    "sampled qrels as a run": ("run", "1 d1 0 0 1\n1 d2 1 2 0.25\n1 d3 0 1 1\n", "looks like qrels"),
    "beir qrels as a run": ("run", "query-id\tcorpus-id\tscore\n1\td1\t1\n1\td2\t1\n", "looks like qrels"),
    "qrels with header as a run": ("run", "query_id,doc_id,relevance\n1,d1,1\n", "looks like qrels"),
    "smart qrels as a run": ("run", "1 28 0 0.0\n1 35 0 0.0\n", "looks like qrels"),
    "smart qrels": ("qrels", "1 28 0 0.0\n1 35 0 0.0\n", "SMART"),
    "run as qrels": ("qrels", "1 Q0 d1 1 3.5 t\n1 Q0 d2 2 2.5 t\n", "looks like a run"),
    "run without tag as qrels": ("qrels", "1 Q0 77 1 0.5\n1 Q0 78 2 0.25\n", "looks like a run"),
    "five-field run as qrels": ("qrels", "1 d1 1 3.5 t\n1 d2 2 2.5 t\n", "looks like a run"),
    "four-field run as qrels": ("qrels", "1 d1 1 3.5\n1 d2 2 2.5\n", "looks like a run"),
    "ranks as qrels": ("qrels", "".join(f"1 d{at} {at}\n" for at in range(1, 20)), "looks like a run"),
    "run with header as qrels": ("qrels", "query_id,doc_id,rank,score\n1,d1,1,2.5\n", "looks like a run"),
    "ranks or scores": ("run", "1 d1 2\n1 d2 3\n1 d3 1\n", "could be a rank"),
    "one field": ("run", "d1\nd2\n", "unknown layout"),
    "two fields as qrels": ("qrels", "1 d1\n", "unknown layout"),
    "prose": ("run", "Dear reader\nthis is a letter\nand no run\n", "unknown layout"),
    "prose as qrels": (
        "qrels",
        "this is a letter that holds many words in each line\n" * 3,
        "unknown layout",
    ),
    "header that is not known": ("run", "user,item,value\n1,d1,2.5\n1,d2,1.5\n", "no column score"),
    "header without relevance": ("qrels", "query_id,doc_id\n1,d1\n", "no column relevance"),
    "header alone": ("run", "query_id,doc_id,score\n", "a header but no rows"),
    "empty": ("run", "", "no rows"),
    "comments": ("qrels", "# one\n# two\n", "no rows"),
}


def found(tmp_path: Path, kind: str, text: str, format_name: str | None = None) -> Layout | str:
    path = tmp_path / "file"
    path.write_bytes(text.encode())
    return sniff(path, "file", kind, format_name)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", RUNS)
def test_runs(name: str, tmp_path: Path) -> None:
    text, names = RUNS[name]
    layout = found(tmp_path, "run", text)
    assert isinstance(layout, Layout)
    assert layout.names == names


@pytest.mark.parametrize("name", QRELS)
def test_qrels(name: str, tmp_path: Path) -> None:
    text, names = QRELS[name]
    layout = found(tmp_path, "qrels", text)
    assert isinstance(layout, Layout)
    assert layout.names == names


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, tmp_path: Path) -> None:
    kind, text, reason = REFUSED[name]
    with pytest.raises(InputError, match=reason) as caught:
        found(tmp_path, kind, text)
    assert caught.value.path == "file"
    assert caught.value.fix


@pytest.mark.parametrize(
    ("content", "name", "expected"),
    [
        (b"PAR1....", "a", "parquet"),
        (b"ARROW1..", "a", "arrow"),
        (b'{"q": {"d": 1}}', "a.json", "json"),
        (b'{"q": {"d": 1}}\n', "a", "json"),
        (b' {\n "q": {"d": 1}}', "a", "json"),
        (b'[{"query_id": "q"}]', "a", "json"),
        (b'{"query_id": "q"}\n{"query_id": "r"}\n', "a", "jsonl"),
        (b'{"query_id": "q"}\n', "a.jsonl", "jsonl"),
        (b'\xef\xbb\xbf{"query_id": "q"}\n', "a.ndjson", "jsonl"),
    ],
)
def test_formats_that_are_no_lines_of_fields(content: bytes, name: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert sniff(path, str(path), "run") == expected


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("1 Q0 d1 1 3.5 t\n".encode("utf-16"), "UTF-16 .*save the file as UTF-8"),
        ("1 Q0 d1 1 3.5 t\n".encode("utf-16-be"), "zero bytes"),
        (b"PK\x03\x04abc", "zip archive or an Excel"),
        (b"SQLite format 3\0", "SQLite"),
        (b"1 Q0 d1 1 \0 t\n", "zero bytes"),
    ],
)
def test_what_is_no_text_is_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(InputError, match=reason):
        sniff(path, "file", "run")


@pytest.mark.parametrize(
    ("format_name", "kind", "text", "names"),
    [
        ("trec", "run", "1 d1 1\n1 d2 0\n1 d3 1\n", (Q, D, S)),
        ("msmarco", "run", "1 d1 3\n1 d2 2\n", (Q, D, K)),
        ("msmarco", "qrels", "1 0 d1 1\n", (Q, "iteration", D, R)),
        ("set", "run", "1 d1 1\n1 d2 2\n", (Q, D)),
        ("tsv", "run", "1\ta doc\t2.5\n", (Q, D, S)),
        ("csv", "qrels", "1,d1,1\n", (Q, D, R)),
        ("beir", "qrels", "query-id\tcorpus-id\tscore\n1\td1\t1\n", (Q, D, R)),
        ("beir", "run", "query-id\tcorpus-id\tscore\n1\td1\t1\n1\td2\t1\n", (Q, D, S)),
    ],
)
def test_a_format_overrules(format_name: str, kind: str, text: str, names: tuple[str, ...], tmp_path: Path) -> None:
    layout = found(tmp_path, kind, text, format_name)
    assert isinstance(layout, Layout)
    assert layout.names == names


def test_a_format_that_is_unknown_lists_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'excel'.*" + ", ".join(FORMATS)):
        found(tmp_path, "run", "1 d1\n", "excel")


def test_rows_after_the_first_64_kb_of_comments_are_found(tmp_path: Path) -> None:
    layout = found(tmp_path, "run", "# comment\n" * 10_000 + "1 Q0 d1 1 3.5 t\n")
    assert isinstance(layout, Layout)


@needs_shared
@pytest.mark.parametrize("kind", ["run", "qrels"])
def test_real_files_are_found_and_never_taken_for_the_other_kind(kind: str) -> None:
    files = {
        "run": [*SHARED.glob("*/runs*/*.run.gz"), *SHARED.glob("tool_fixtures/*/*.run")],
        "qrels": [*SHARED.glob("*/qrels/*qrels*"), *SHARED.glob("tool_fixtures/*/*.qrels")],
    }
    assert files[kind]
    for path in files[kind]:
        if path.suffix == ".diff":
            continue
        assert isinstance(sniff(path, str(path), kind), Layout)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="looks like"):
            open_source(path, "qrels" if kind == "run" else "run")
