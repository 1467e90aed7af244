"""All formats return the same rows, the same ids byte for byte, and the hash of the file."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import judged
from judged.data.arrow_files import ParquetRows
from judged.data.files import FileHash
from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.data.sources import FileTable, open_source, source_name
from judged.errors import InputError, JudgedWarning
from shared_data import SHARED, needs_shared

COLUMNS = ("query_id", "doc_id", "score", "relevance", "iteration", "run_id")
RUN = {"query_id": ["q1", "q1", "007"], "doc_id": ["NA", "null", '"'], "score": [3.5, 2.5, 1e-05]}
ROWS = list(zip(*RUN.values(), strict=True))
LINE = '{"query_id": "q", "doc_id": "d", "score": 1}'
MAPPING = {"q1": {"NA": 3.5, "null": 2.5}, "007": {'"': 1e-05}}
RECORDS = [dict(zip(RUN, row, strict=True)) for row in ROWS]


def write(folder: Path, name: str) -> Path:
    path = folder / name
    trec = "".join(f"{query} Q0 {doc} {rank} {score!r} tag\n" for rank, (query, doc, score) in enumerate(ROWS, 1))
    writers = {
        "a.run": lambda: path.write_text(trec),
        "a.run.gz": lambda: path.write_bytes(gzip.compress(trec.encode())),
        "a.run.bz2": lambda: path.write_bytes(bz2.compress(trec.encode())),
        "a.run.xz": lambda: path.write_bytes(lzma.compress(trec.encode())),
        "a.run.zst": lambda: path.write_bytes(pa.compress(trec.encode(), codec="zstd", asbytes=True)),
        "a.json": lambda: path.write_text(json.dumps(MAPPING)),
        "a.json.gz": lambda: path.write_bytes(gzip.compress(json.dumps(MAPPING).encode())),
        "a.records.json": lambda: path.write_text(json.dumps(RECORDS, indent=1)),
        "a.jsonl": lambda: path.write_text("\n".join(map(json.dumps, RECORDS))),
        "a.jsonl.gz": lambda: path.write_bytes(gzip.compress("\n".join(map(json.dumps, RECORDS)).encode())),
        "a.parquet": lambda: parquet.write_table(pa.table(RUN), path),
        "a.arrow": lambda: feather.write_feather(pa.table(RUN), str(path)),
    }
    writers[name]()
    return path


NAMES = ["a.run", "a.run.gz", "a.run.bz2", "a.run.xz", "a.run.zst", "a.json", "a.json.gz", "a.records.json",
         "a.jsonl", "a.jsonl.gz", "a.parquet", "a.arrow"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_format_gives_the_same_rows_and_the_hash_of_the_file(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, name)
    source = open_source(path, "run")
    table, digest = source.table(COLUMNS[:3])
    assert table.to_pydict() == RUN
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert source.name in {"a", "a.records"}
    assert source.rows.where == str(path)


@pytest.mark.parametrize("name", ["a.run", "a.run.gz"])
def test_parts_count_the_bytes_of_the_file(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, name)
    counts: list[int] = []
    for part in open_source(path, "run").rows.parts(("query_id",), counts.append):
        part()
    assert sum(counts) == path.stat().st_size


def test_the_hash_is_of_the_bytes_that_were_read_or_none(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"a" * 3_000_000)
    second.write_bytes(b"b")
    unchanged, changed, removed = (FileHash.of([first, second]) for _ in range(3))
    assert unchanged.hexdigest == hashlib.sha256(b"a" * 3_000_000 + b"b").hexdigest()
    second.write_bytes(b"cc")
    assert changed.hexdigest is None
    assert unchanged.hexdigest is not None
    first.unlink()
    assert removed.hexdigest is None
    assert FileHash.of([]).hexdigest is FileHash.of([first]).hexdigest is None


def test_the_hash_is_none_if_a_file_of_the_same_size_and_time_replaced_it(tmp_path: Path) -> None:
    path, replacement = tmp_path / "run", tmp_path / "new"
    path.write_bytes(b"a")
    replacement.write_bytes(b"b")
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    os.utime(replacement, ns=times)
    file_hash = FileHash.of([path])
    replacement.replace(path)
    assert path.stat().st_mtime_ns == times[1]
    assert file_hash.hexdigest is None


def test_json_numbers_as_ids_become_their_decimal_text(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"query_id": 7, "doc_id": "007", "score": 1}\n{"query_id": 12345678901234567890, "doc_id": 7, "score": 2}\n'
    )
    table, _ = open_source(path, "run").table(COLUMNS)
    assert table["query_id"].to_pylist() == ["7", "12345678901234567890"]
    assert table["doc_id"].to_pylist() == ["007", "7"]


@pytest.mark.parametrize(
    ("name", "content", "line", "reason"),
    [
        ("a.json", '{"q": {"d": 1.5, "d": 2}}', None, "'d' appears twice"),
        ("a.json", '{"q": {"d": 1.5}, "q": {}}', None, "'q' appears twice"),
        ("a.json", '{"q": {"d": NaN}}', None, "NaN"),
        ("a.json", '{"q": {"d": "high"}}', None, "not a number"),
        ("a.json", '{"q": {"d": true}}', None, "not a number"),
        ("a.json", '{"q": {"d": null}}', None, "not a number"),
        ("a.json", '{"q": [["d"]]}', None, "must be a dict"),
        ("a.json", '{"q": {}}', None, "no rows"),
        ("a.json", "{}", None, "no rows"),
        ("a.json", "[]", None, "no rows"),
        ("a.json", "[1, 2]", None, "record 1"),
        ("a.json", '{\n"q": {"d": 1,\n}}', 3, "invalid JSON"),
        ("a.json", '{\n"q": {"d": 1', 2, "invalid JSON"),
        ("a.json", b'{\n"q": {"\xff": 1}}', 2, "not UTF-8"),
        ("a.json", "[" * 100_000, None, "."),
        ("a.json", '{"": {"d": 1}}', None, "empty"),
        ("a.json", f'[{LINE}, {{"query_id": "q", "doc_id": "e"}}]', None, "record 2"),
        ("a.json", '[{"query_id": "q", "doc_id": 1.5, "score": 1}]', None, "1.5 is a float"),
        ("a.jsonl", f'{LINE}\n\n{{"query_id": "q", "doc_id": "e", "score": "x"}}', 3, "not a"),
        ("a.jsonl", f"{LINE}\n[1]\n", 2, "not a JSON object"),
        ("a.jsonl", LINE + '\n{"query', 2, "invalid JSON"),
        ("a.jsonl", '{"query_id": "q", "score": 1}\n{"query', 1, "no doc_id"),
        ("a.jsonl", '{"query_id": "q", "doc_id": "", "score": 1}\n', 1, "empty"),
        ("a.jsonl", '{"query_id": "q", "doc_id": "d", "rank": 1.5}\n', 1, "integer"),
        ("a.jsonl", '{"query_id": "q", "doc_id": "d", "relevance": 1}\n', None, "looks like qrels"),
        ("a.json", '{"q": {"d": 1, "e": 1, "f": 0}}', None, "looks like qrels"),
        ("a.json", '{"q": {"\\ud800": 1.5}}', None, "unpaired surrogate"),
        ("a.parquet", b"PAR1 and nothing else", None, "damaged or truncated"),
        ("a.arrow", b"ARROW1 and nothing else", None, "damaged or truncated"),
    ],
)  # fmt: skip
def test_broken_files_name_the_place(
    name: str, content: str | bytes, line: int | None, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=reason) as caught:
        open_source(path, "run").table(COLUMNS)
    assert caught.value.path == str(path)
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"query_id": ["q"], "doc_id": ["d"], "score": [float("nan")]}, "NaN"),
        ({"query_id": ["q"], "doc_id": ["d"], "score": [None]}, "score"),
        ({"query_id": ["q"], "doc_id": ["d"], "score": ["high"]}, "must contain numbers, got string"),
        (
            {"query_id": [1.5], "doc_id": ["d"], "score": [1.0]},
            "query_id must contain texts or integers, got the data type double",
        ),
        ({"query_id": ["q"], "doc_id": [None], "score": [1.0]}, "doc_id"),
        ({"query_id": ["q"], "score": [1.0]}, "no column doc_id"),
        ({"query_id": ["q"], "doc_id": ["d"], "rank": [1.5]}, "."),
        ({"query_id": pa.array([], pa.string()), "doc_id": pa.array([], pa.string())}, "no rows"),
        ({"x": [1]}, "no column"),
    ],
)
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_bad_columns_are_refused(columns: dict[str, object], reason: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    table = pa.table(columns)
    if name == "a.parquet":
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, str(path))
    with pytest.raises(InputError, match=reason) as caught:
        open_source(path, "run").table(COLUMNS)
    assert caught.value.path == str(path)


@pytest.mark.parametrize("name", ["a.run.gz", "a.run.bz2", "a.run.xz", "a.run.zst"])
@pytest.mark.parametrize("cut", [0.5, 0.95])
def test_cut_compressed_data_is_refused(name: str, cut: float, tmp_path: Path) -> None:
    path = write(tmp_path, name)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * cut)])
    with pytest.raises(InputError) as caught:
        open_source(path, "run").table(COLUMNS)
    assert caught.value.path == str(path)


def test_damage_in_the_middle_of_a_long_gz_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.run.gz"
    lines = "".join(
        f"q{row // 1000} Q0 d{row * 7919 % 99991} {row % 1000 + 1} {1000 - row % 1000} t\n" for row in range(50_000)
    )
    content = bytearray(gzip.compress(lines.encode()))
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(InputError):
        open_source(path, "run").table(COLUMNS)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        open_source(tmp_path / "none", "run")
    with pytest.raises(InputError, match="this is a folder"):
        open_source(tmp_path, "run")
    with pytest.raises(InputError, match="this is a folder"):
        open_source(tmp_path, "qrels")


def test_beir_folder(tmp_path: Path) -> None:
    (tmp_path / "scifact" / "qrels").mkdir(parents=True)
    test = tmp_path / "scifact" / "qrels" / "test.tsv"
    train = tmp_path / "scifact" / "qrels" / "train.tsv"
    for file in (test, train):
        file.write_text("query-id\tcorpus-id\tscore\n1\td1\t1\n")
    source = open_source(tmp_path / "scifact", "qrels")
    assert (source.name, source.rows.where) == ("scifact", str(test))
    test.rename(test.with_name("dev.tsv"))
    with pytest.raises(InputError, match=r"there are several files in qrels/: dev\.tsv, train\.tsv"):
        open_source(tmp_path / "scifact", "qrels")
    train.unlink()
    assert open_source(tmp_path / "scifact", "qrels").rows.where.endswith("dev.tsv")


@pytest.mark.parametrize("name", ["a.run", "a.run.gz", "a.jsonl", "a.parquet"])
def test_standard_input(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = write(tmp_path, name).read_bytes()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    source = open_source("-", "run")
    table, digest = source.table(COLUMNS[:3])
    assert table.to_pydict() == RUN
    assert digest == hashlib.sha256(content).hexdigest()
    assert (source.name, source.rows.where) == ("stdin", "<stdin>")


def test_standard_input_that_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO()))
    with pytest.raises(InputError, match="<stdin>: there are no rows"):
        open_source("-", "run")


def test_a_pipe_is_read_once_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    content = write(tmp_path, "a.run").read_bytes()
    writer = threading.Thread(target=path.write_bytes, args=(content,))
    writer.start()
    source = open_source(path, "run")
    writer.join()
    assert source.table(COLUMNS[:3])[0].to_pydict() == RUN
    assert source.rows.where == str(path)


def test_ranks_stand_in_for_scores(tmp_path: Path) -> None:
    text, records, table = tmp_path / "a.tsv", tmp_path / "a.jsonl", tmp_path / "a.parquet"
    text.write_text("1\t77\t1\n1\t78\t2\n")
    records.write_text('{"qid": "1", "docid": "77", "rank": 1}\n{"qid": "1", "docid": "78", "rank": 2}\n')
    parquet.write_table(pa.table({"qid": ["1", "1"], "docid": ["77", "78"], "rank": [1, 2]}), table)
    for path in (text, records, table):
        source = open_source(path, "run")
        assert source.rows.has_scores
        assert source.table(("doc_id", "score"))[0].to_pydict() == {
            "doc_id": ["77", "78"],
            "score": [-1.0, -2.0],
        }


def test_a_set_has_no_scores(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("q d1\nq d2\n")
    source = open_source(path, "run")
    assert not source.rows.has_scores
    assert source.table(COLUMNS)[0].column_names == ["query_id", "doc_id"]


def test_a_long_parquet_file_gives_the_same_runs_and_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    rows = {
        "qid": ["q1", "q2"] * 6,
        "docno": [f"d{row}" for row in range(12)],
        "rank": [row // 2 + 1 for row in range(12)],
    }
    parquet.write_table(pa.table({**rows, "run_id": ["a"] * 4 + ["b"] * 4 + ["a"] * 4, "text": ["x"] * 12}), path)
    with pytest.warns(JudgedWarning, match="not used: text"):
        held = judged.evaluate({"q1": {"d0": 1}, "q2": {"d7": 1}}, path, "RR")
    monkeypatch.setattr("judged.data.sources._MAX_ROWS_IN_MEMORY", 3)
    with pytest.warns(JudgedWarning, match="not used: text"):
        assert isinstance(open_source(path, "run").rows, ParquetRows)
    with pytest.warns(JudgedWarning, match="not used: text"):
        read = judged.evaluate({"q1": {"d0": 1}, "q2": {"d7": 1}}, path, "RR")
    assert [run.name for run in read.runs] == [run.name for run in held.runs] == ["a", "b"]
    assert read.values.tolist() == held.values.tolist()
    assert read.runs[0].sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_extra_columns_of_a_parquet_file_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({**RUN, "text": ["x"] * 3}), path)
    with pytest.warns(JudgedWarning, match="not used: text"):
        source = open_source(path, "run")
    assert isinstance(source.rows, FileTable)
    assert source.rows.table.column_names == list(RUN)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("bm25.run.gz", "bm25"),
        ("runs/BM25+RM3(1.5).trec", "BM25+RM3(1.5)"),
        ("qrels.dl19-passage.txt", "qrels.dl19-passage"),
        (".run", ".run"),
        ("a.jsonl.zst", "a"),
        ("dir.gz/x", "x"),
        ("v1.2", "v1.2"),
    ],
)
def test_names(path: str, name: str) -> None:
    assert source_name(path) == name


def test_qrels_and_run_read_through_sources(tmp_path: Path) -> None:
    path = tmp_path / "web.qrels"
    path.write_text("1 0 d1 1\n1 0 d2 0\n")
    qrels = Qrels.read(path)
    assert (qrels.name, qrels.where, qrels.topics) == ("web", str(path), ("1",))
    assert Qrels.of({"1": {"d1": 1, "d2": 0}}).table.to_pydict() == {
        "query_id": ["1", "1"],
        "doc_id": ["d1", "d2"],
        "relevance": [1.0, 0.0],
    }
    assert Run.read(write(tmp_path, "a.json")).table.to_pydict() == RUN


@needs_shared
def test_real_files_have_as_many_rows_as_lines() -> None:
    for path in sorted(SHARED.glob("*/runs*/*.run.gz"))[::7]:
        table, _ = open_source(path, "run").table(("query_id",))
        assert table.num_rows == gzip.decompress(path.read_bytes()).count(b"\n")


def test_ranks_of_a_frame_that_are_no_whole_numbers_are_refused() -> None:
    with pytest.raises(InputError, match=r"<table>: row 0 has the rank 1\.5"):
        Run.of(pa.table({"query_id": ["q"], "doc_id": ["d"], "rank": [1.5]}))


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt", "a.jsonl", "a.json", "dict.json", "a.parquet"])
def test_true_and_false_are_grades_of_every_format(name: str, tmp_path: Path) -> None:
    """They are no scores of runs."""
    rows = [{"query_id": "q1", "doc_id": doc, "relevance": grade} for doc, grade in (("a", True), ("b", False))]
    path = tmp_path / name
    match name:
        case "a.parquet":
            parquet.write_table(pa.Table.from_pylist(rows), path)
        case "dict.json":
            path.write_text('{"q1": {"a": true, "b": false}}')
        case "a.json":
            path.write_text(json.dumps(rows))
        case "a.jsonl":
            path.write_text("\n".join(map(json.dumps, rows)))
        case "a.txt":
            path.write_text("q1 0 a true\nq1 0 b false\n")
        case _:
            mark = "," if name == "a.csv" else "\t"
            lines = [list(rows[0]), *([row["query_id"], row["doc_id"], str(row["relevance"])] for row in rows)]
            path.write_text("\n".join(map(mark.join, lines)))
    assert Qrels.read(path).table["relevance"].to_pylist() == [1.0, 0.0]
    if name != "a.parquet":
        path.write_text(path.read_text().replace("relevance", "score"))
        with pytest.raises(InputError):
            Run.read(path, format=None)
