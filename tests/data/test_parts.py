"""A run in several files has the same rows and scores as the run in one file."""

from __future__ import annotations

import gzip
import hashlib
from itertools import pairwise
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from judged import InputError, Run, evaluate
from judged.data.arrow_files import ParquetRows
from judged.scoring.evaluation.inputs import runs_of

if TYPE_CHECKING:
    from pathlib import Path

    from judged.results.types import Table
    from judged.scoring.evaluation import Scores

QRELS = {"q1": {"d2": 1, "d4": 2}, "q2": {"d1": 1}}
MEASURES = ["nDCG@10", "AP", "RR", "P@5", "Judged@5"]


def rows(first: int, last: int) -> Table:
    """Rows of two topics that alternate, so that both stand in every part."""
    tuples = [(f"q{1 + number % 2}", f"d{number}", number * 7 % 5 / 8) for number in range(first, last)]
    schema = pa.schema({"query_id": pa.string(), "doc_id": pa.string(), "score": pa.float64()})
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in tuples], schema)


def write_spark(folder: Path, *bounds: int) -> Path:
    """Write a table as Spark does, an empty part among them."""
    folder.mkdir(parents=True)
    for index, (first, last) in enumerate(pairwise(bounds)):
        parquet.write_table(rows(first, last), folder / f"part-{index:05}-1b-c000.snappy.parquet")
        (folder / f".part-{index:05}-1b-c000.snappy.parquet.crc").write_bytes(b"crc")
    (folder / "_SUCCESS").touch()
    return folder


def same(scores: Scores, expected: Scores) -> None:
    assert scores.query_ids == expected.query_ids
    assert scores.values.tobytes() == expected.values.tobytes()


def test_a_folder_of_parts_is_one_run_that_is_read_part_by_part(tmp_path: Path) -> None:
    folder = write_spark(tmp_path / "bm25.parquet", 0, 7, 7, 20)
    (run,) = runs_of(folder)
    assert (run.name, run.where, len(run.table)) == ("bm25", str(folder), 20)
    assert all(isinstance(part, ParquetRows) for part in run.rows.files)  # type: ignore[attr-defined]
    progress_counts: list[int] = []
    scores = evaluate(QRELS, run, MEASURES, progress=lambda _, more: progress_counts.append(more))
    same(scores, evaluate(QRELS, rows(0, 20), MEASURES))
    read = [path for path in sorted(folder.glob("part-*")) if len(parquet.read_table(path))]
    assert scores.runs[0].sha256 == hashlib.sha256(b"".join(path.read_bytes() for path in read)).hexdigest()
    assert sum(progress_counts) == sum(path.stat().st_size for path in read)


def test_what_is_one_run_and_what_are_several(tmp_path: Path) -> None:
    write_spark(tmp_path / "runs" / "a.parquet", 0, 5, 9)
    parquet.write_table(rows(0, 3), tmp_path / "runs" / "b.parquet")
    for given_path in (tmp_path / "runs", tmp_path / "runs" / "*.parquet"):
        assert [(run.name, len(run.table)) for run in runs_of(given_path)] == [("a", 9), ("b", 3)]
    (tmp_path / "runs" / "_SUCCESS").touch()  # a table then, whatever its files are called
    assert [len(run.table) for run in runs_of(tmp_path / "runs")] == [12]


def test_parts_of_text_have_a_header_each_and_may_be_packed(tmp_path: Path) -> None:
    (tmp_path / "part-00000.csv").write_text("qid,docno,score\nq1,d2,2\nq2,d1,1\n")
    (tmp_path / "part-00001.csv").write_text("")
    (tmp_path / "part-00002.csv.gz").write_bytes(gzip.compress(b"qid,docno,score\nq1,d4,1\n"))
    scores = evaluate(QRELS, tmp_path, MEASURES)
    same(scores, evaluate(QRELS, {"q1": {"d2": 2.0, "d4": 1.0}, "q2": {"d1": 1.0}}, MEASURES))


def test_folders_that_name_runs_and_a_column_that_does(tmp_path: Path) -> None:
    con = duckdb.connect()
    con.register("rows", pa.concat_tables([rows(0, 8)] * 2).append_column("run_id", pa.array(["a b"] * 8 + ["c"] * 8)))
    con.sql(f"COPY rows TO '{tmp_path / 'hive'}' (FORMAT parquet, PARTITION_BY (run_id))")
    con.sql(f"COPY rows TO '{tmp_path / 'flat'}' (FORMAT parquet, PER_THREAD_OUTPUT)")
    for folder in ("hive", "flat"):
        runs = runs_of(tmp_path / folder)
        assert [(run.name, len(run.table), run.table["run_id"][0].as_py()) for run in runs] == [
            ("a b", 8, "a b"), ("c", 8, "c"),
        ]  # fmt: skip
        for run in runs:
            same(evaluate(QRELS, run, MEASURES), evaluate(QRELS, rows(0, 8), MEASURES))


def test_what_is_wrong_with_parts_is_said_of_the_file(tmp_path: Path) -> None:
    folder = write_spark(tmp_path / "a", 0, 4, 8)
    second = sorted(folder.glob("part-*"))[1]
    parquet.write_table(rows(4, 8).drop_columns(["score"]), second)
    with pytest.raises(InputError, match="the columns are") as caught:
        runs_of(folder)
    assert str(second) in str(caught.value)
    parquet.write_table(rows(3, 8), second)
    with pytest.raises(InputError, match=r"document d3 is returned twice for topic q2"):
        evaluate(QRELS, folder, "AP")
    with pytest.raises(InputError, match="no rows"):
        runs_of(write_spark(tmp_path / "b", 0, 0))
    part = tmp_path / "c" / "run_id=__HIVE_DEFAULT_PARTITION__" / "data_0.parquet"
    part.parent.mkdir(parents=True)
    parquet.write_table(rows(0, 2), part)
    with pytest.raises(InputError, match="no run_id"):
        runs_of(tmp_path / "c")


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.booleans())
def test_the_scores_of_a_run_have_the_same_bits_however_it_lies(
    tmp_path_factory: pytest.TempPathFactory, seed: int, pieces: int, ties: bool
) -> None:
    folder, rng = tmp_path_factory.mktemp("lies"), np.random.default_rng(seed)
    n = int(rng.integers(5, 60))
    table = pa.table(
        {
            "query_id": [f"q{topic}" for topic in rng.integers(0, 4, n)],
            "doc_id": [f"d{doc}" for doc in rng.permutation(n)],
            "score": rng.integers(0, 4, n) / 4 if ties else rng.normal(size=n),
        }
    )
    qrels = {f"q{topic}": {f"d{doc}": int(rng.integers(0, 3)) for doc in rng.choice(n, 5)} for topic in range(4)}
    text = "".join(f"{q} Q0 {d} 0 {s!r} t\n" for q, d, s in zip(*map(pa.ChunkedArray.to_pylist, table), strict=True))
    (folder / "run.txt").write_text(text)
    (folder / "run.gz").write_bytes(gzip.compress(text.encode()))
    cuts = [0, *sorted(rng.integers(0, n, pieces - 1).tolist()), n]
    (folder / "text").mkdir()
    (folder / "parquet").mkdir()
    for index, (first, last) in enumerate(pairwise(cuts)):
        lines = text.splitlines(keepends=True)[first:last]
        (folder / "text" / f"part-{index}").write_text("".join(lines))
        parquet.write_table(
            table.slice(first, last - first), folder / "parquet" / f"part-{index}.parquet", row_group_size=7
        )
    with duckdb.connect(folder / "runs.duckdb") as con:
        con.register("given", table)
        con.sql("CREATE TABLE run AS FROM given")
    expected = evaluate(qrels, Run.of(table), MEASURES)
    for place in ("run.txt", "run.gz", "text", "parquet", "runs.duckdb/run"):
        same(evaluate(qrels, folder / place, MEASURES), expected)


def test_a_table_of_a_database_file_is_named_or_named_wrongly(tmp_path: Path) -> None:
    path = tmp_path / "my runs.db"
    with pytest.raises(InputError, match="no such file"):
        runs_of(path / "bm25")
    with duckdb.connect(path) as con:
        con.register("given", rows(0, 8))
        con.sql('CREATE SCHEMA s; CREATE VIEW s."odd "" name" AS SELECT 1; CREATE TABLE bm25 AS FROM given')
        con.sql("CREATE TABLE s.qrels AS SELECT query_id, doc_id, 1 AS relevance FROM given")
    for given_path in (path, path / "bm26", path / "s.bm25"):
        with pytest.raises(InputError, match=r"use the name of a table: .*/bm25, .*/s\.odd"):
            runs_of(given_path)
    (run,) = runs_of(path / "bm25")
    assert (run.name, run.where) == ("bm25", f"{path}/bm25")
    assert evaluate(path / "s.qrels", {"mine": path / "main.bm25"}, "P@4").aggregate() == {"mine": {"P@4": 1.0}}
    with pytest.raises(InputError, match=r"odd \" name: no column"):
        runs_of(path / 's.odd " name')
    setting = "SELECT current_setting('enable_progress_bar')"
    assert run.rows.table.engine.query(setting).to_pylist()[0].popitem()[1] is False  # type: ignore[attr-defined]
