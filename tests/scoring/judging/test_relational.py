"""Runs that stay in a database: the same hits as from the same rows here, and a sentence for what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest
from engines import RANKINGS, collection, differences, sail, session

import judged
from clusters import NEED_ALL, REFUSED, ROW, assert_errors, assert_same_results, check_cluster, generate_runs
from judged import InputError
from judged.scoring.evaluation import runs_of
from shared_data import needs_shared

duckdb = pytest.importorskip("duckdb")


def test_duckdb() -> None:
    con = duckdb.connect()
    assert_same_results(con.from_arrow)
    assert_errors(con.sql, REFUSED)
    assert con.sql("SELECT * FROM duckdb_views() WHERE NOT internal").fetchall() == []  # nothing of ours stays


def test_a_collation_of_duckdb_means_nothing() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE run (query_id VARCHAR COLLATE NOCASE, doc_id VARCHAR COLLATE NOCASE, score DOUBLE)")
    con.execute("INSERT INTO run VALUES ('q', 'a', 1), ('q', 'A', 1), ('q', 'B', 1), ('Q', 'a', 1)")
    found = judged.judge({"q": {"A": 1, "a": 2}}, con.table("run"))
    assert (found.rank.tolist(), found.grade.tolist(), found.extra) == ([1, 3], [2.0, 1.0], ("Q",))


def test_a_database_of_this_process_gives_all_documents_too() -> None:
    qrels, table = generate_runs()
    con = duckdb.connect()
    one, other = (judged.judge(qrels, runs[0]) for runs in map(runs_of, (table, con.from_arrow(table))))
    assert one.returned_docs.doc.to_pylist() == other.returned_docs.doc.to_pylist()


def test_a_table_that_changes_between_the_passes() -> None:
    con = duckdb.connect()
    con.execute(f"CREATE TABLE run AS {ROW}")
    (run,) = runs_of(con.table("run"))
    assert judged.judge({"q1": {"a": 1}}, run).returned.tolist() == [1]
    con.execute("INSERT INTO run VALUES ('q1', 'b', 2)")
    with pytest.raises(InputError, match="the table changed while it was read"):
        judged.judge({"q1": {"a": 2}}, run)


@needs_shared
def test_shared_runs_in_duckdb() -> None:
    for name in ("codec", "dl19_passage", "web_ndeval", "cisi"):
        qrels, table = collection(name)
        con = duckdb.connect()
        assert differences(qrels, table, con.from_arrow(table), RANKINGS[:1]) == []


def test_sail() -> None:
    pytest.importorskip("pysail.spark")
    with sail() as address, session(address) as opened:
        check_cluster(opened, address)


def test_the_page_names_what_needs_every_document() -> None:
    page = (Path(__file__).parents[3] / "docs" / "any-size.md").read_text(encoding="utf-8")
    assert {name for name in (*NEED_ALL, "costs=column") if f"`{name}`" not in page} == set()


@pytest.mark.parametrize(
    ("address", "problem"),
    {
        "spark://host:7077/runs": "standalone master, which accepts programs",
        "sc://host:15002": "the address has no table name",
        "sc://:1/x": "the address has no table name",
        "sc://host:port/x": "the address has no table name",
        "sc://127.0.0.1:1/x": r"no server answers at 127\.0\.0\.1:1",
    }.items(),
)
def test_addresses(address: str, problem: str) -> None:
    pytest.importorskip("pyspark")
    with pytest.raises(InputError, match=problem):
        judged.evaluate({"q1": {"a": 1}}, address)
