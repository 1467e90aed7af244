"""Runs that stay in a database: the same hits as from the same rows here, and a sentence for what cannot be."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from engines import RANKINGS, collection, differences, sail, session, spark, spark_home

import judged
from judged import InputError, MeasureError
from judged.evaluation import runs_of
from shared_data import needs_shared
from strategies import facts
from variants import OF_RANKINGS, default

duckdb = pytest.importorskip("duckdb")

IDS = ["a", "A", "a ", " a", "a\0", "a\0b", "", "ä", "é", "e\u0301", "\uffff", "\U0001d538", "z" * 40,
       "z" * 41, "007", "7", "\t", "'", '"', "\\", "\\n", "{x}", "%s"]  # fmt: skip
TOPICS = ["q1", "q1 ", "Q1", "q\0", "é"]
SCORES = [1.0, 1 + 1e-12, 0.5, 0.0, -0.0, 1e300, -1e300, float("inf"), float("-inf")]
ROW = "SELECT 'q1' AS query_id, 'a' AS doc_id, CAST(1 AS DOUBLE) AS score"


def made(seed: int = 1) -> tuple[dict[str, dict[str, int]], pa.Table]:
    """Make runs of odd ids with many ties, and judgments of them; some topics are in one of the two alone."""
    rng = random.Random(seed)  # noqa: S311
    rows = [
        {"run_id": run, "query_id": topic, "doc_id": doc, "score": rng.choice(SCORES), "rank": rng.randint(1, 9)}
        for run in ("r1", "r2\0", "ü ")
        for topic in (*TOPICS, "not judged")
        for doc in rng.sample(IDS, 15)
    ]
    rng.shuffle(rows)
    qrels = {topic: {doc: rng.randint(-2, 3) for doc in rng.sample(IDS, 14)} for topic in (*TOPICS, "not returned")}
    return qrels, pa.Table.from_pylist(rows)


def same(frame_of: Any) -> None:
    """Hold everything against rows that are read here: hits, scores, and what is refused."""
    qrels, table = made()
    frame = frame_of(table)
    assert differences(qrels, table, frame) == []
    known = facts({"": dict.fromkeys(IDS)})
    run, stays = (next(run for run in runs_of(given) if run.name == "r1") for given in (table, frame))
    one, other = (judged.judge(qrels, given, documents=known) for given in (run, stays))
    needs_all = []
    for measure in map(default, OF_RANKINGS):
        expected = measure(one)
        try:
            assert np.array_equal(expected, measure(other), equal_nan=True), measure
        except MeasureError as error:
            assert str(error).startswith(f"{measure}: <spark>: this needs every returned document")  # noqa: PT017
            needs_all.append(measure.entry.name)
    assert needs_all == ([] if stays.where == "<duckdb>" else ["Hole", "AWRF", "TBG", "UMeasure"])
    for dropped in (["score"], ["score", "rank"]):  # ranks in the place of scores; a set
        some = table.drop_columns(dropped)
        assert differences(qrels, some, frame_of(some), ({},)) == []
    numbers = pa.table({"query_id": [1, 1, 1], "doc_id": [7, 10, 9], "score": pa.array([2, 2, 1], pa.int32())})
    assert differences({"1": {"7": 1, "10": 0}}, numbers, frame_of(numbers), ({},)) == []
    with pytest.raises(judged.InputError, match=r"document a.* is returned twice for topic q1"):
        judged.evaluate(
            {"q1": {"b": 1}}, frame_of(pa.table({"query_id": ["q1"] * 2, "doc_id": ["a"] * 2, "score": [1.0] * 2}))
        )
    with pytest.raises(InputError, match="no order that ties=stable could keep"):
        judged.judge(qrels, frame_of(numbers), ties="stable")


REFUSED = {
    ROW.replace("'q1'", "1.5"): "the column query_id holds",
    ROW.replace("'a'", "CAST('a' AS BINARY)"): "the column doc_id holds",
    ROW.replace("DOUBLE", "DECIMAL(9, 2)"): "the column score is decimal128",
    ROW.replace("CAST(1 AS DOUBLE)", "'1'"): "the column score holds string, not numbers",
    ROW.replace("CAST(1 AS DOUBLE)", "CAST('NaN' AS DOUBLE)"): "of topic q1, document a is missing or NaN",
    ROW.replace("CAST(1 AS DOUBLE)", "CAST(NULL AS DOUBLE)"): "of topic q1, document a is missing or NaN",
    ROW.replace("'a'", "CAST(NULL AS STRING)"): "a row has no doc_id",
    ROW.replace("'q1'", "CAST(NULL AS STRING)"): "a row has no query_id",
    ROW.replace(" AS score", " AS points"): "no column score or rank among query_id, doc_id, points",
    ROW.replace(" AS doc_id", " AS page"): "no column doc_id among query_id, page, score",
    f"SELECT * FROM ({ROW}) WHERE score > 1": "there are no rows",
}


def refused(query: Any, words: dict[str, str]) -> None:
    for sql, problem in words.items():
        with pytest.raises(InputError, match=problem):
            judged.evaluate({"q1": {"a": 1}}, query(sql))


def test_duckdb() -> None:
    con = duckdb.connect()
    same(con.from_arrow)
    refused(con.sql, REFUSED)
    assert con.sql("SELECT * FROM duckdb_views() WHERE NOT internal").fetchall() == []  # nothing of ours stays


def test_a_collation_of_duckdb_means_nothing() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE run (query_id VARCHAR COLLATE NOCASE, doc_id VARCHAR COLLATE NOCASE, score DOUBLE)")
    con.execute("INSERT INTO run VALUES ('q', 'a', 1), ('q', 'A', 1), ('q', 'B', 1), ('Q', 'a', 1)")
    found = judged.judge({"q": {"A": 1, "a": 2}}, con.table("run"))
    assert (found.rank.tolist(), found.grade.tolist(), found.extra) == ([1, 3], [2.0, 1.0], ("Q",))


def test_a_database_of_this_process_gives_all_documents_too() -> None:
    qrels, table = made()
    relation = duckdb.connect().from_arrow(table)
    one, other = (judged.judge(qrels, runs[0]) for runs in map(runs_of, (table, relation)))
    assert one.everything.doc.to_pylist() == other.everything.doc.to_pylist()


@needs_shared
def test_shared_runs_in_duckdb() -> None:
    for name in ("codec", "dl19_passage", "web_ndeval", "cisi"):
        qrels, table = collection(name)
        assert differences(qrels, table, duckdb.connect().from_arrow(table), RANKINGS[:1]) == []


def on_a_cluster(opened: Any, address: str) -> None:
    """Hold what a session of Spark Connect gives against what is read here."""
    same(opened.createDataFrame)
    refused(opened.sql, REFUSED)
    frame = opened.sql(ROW)
    with pytest.raises(MeasureError, match="TBG: <spark>: this needs every returned document"):
        judged.evaluate({"q1": {"a": 1}}, frame, "TBG", documents=facts({"": {"a": 1}}))
    with pytest.raises(InputError, match="this needs every returned document"):
        runs_of(frame)[0].table  # noqa: B018
    with pytest.raises(InputError, match=rf"{address}/nowhere: Spark says: .*nowhere"):
        judged.evaluate({"q1": {"a": 1}}, f"{address}/nowhere")


def test_sail() -> None:
    pytest.importorskip("pysail.spark")
    with sail() as address, session(address) as opened:
        on_a_cluster(opened, address)


@pytest.mark.skipif(spark_home() is None, reason="there is no Java, or no Spark with its jars (SPARK_HOME)")
def test_spark() -> None:
    with spark() as address, session(address) as opened:
        on_a_cluster(opened, address)
        for column in ("CAST('a' AS STRING COLLATE UTF8_LCASE)", "'a' COLLATE UNICODE"):
            with pytest.raises(InputError, match="has the collation"):
                judged.judge({"q1": {"a": 1}}, opened.sql(ROW.replace("'a'", column)))
        opened.sql("CREATE TABLE padded (query_id STRING, doc_id CHAR(5), score DOUBLE) USING parquet")
        with pytest.raises(InputError, match=r"doc_id is char\(5\): blanks are added"):
            judged.judge({"q1": {"a": 1}}, f"{address}/padded")
        opened.createDataFrame(made()[1]).write.saveAsTable("runs")
        run = runs_of(f"{address}/runs")[0]
        assert (run.name, run.where) == ("r1", f"{address}/runs")
        assert judged.Qrels.of(opened.sql(f"{ROW.replace('score', 'relevance')}")).topics == ("q1",)


@pytest.mark.parametrize(
    ("address", "problem"),
    {
        "spark://host:7077/runs": "standalone master, which takes programs",
        "sc://host:15002": "this names no table",
        "sc://:1/x": "this names no table",
        "sc://host:port/x": "this names no table",
        "sc://127.0.0.1:1/x": r"nobody answers at 127\.0\.0\.1:1",
    }.items(),
)
def test_addresses(address: str, problem: str) -> None:
    pytest.importorskip("pyspark")
    with pytest.raises(InputError, match=problem):
        judged.evaluate({"q1": {"a": 1}}, address)
