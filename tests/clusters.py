"""Checks that runs and logs on another engine have the same numbers, and that unsupported calls raise an error."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from engines import differences, log_differences

import judged
from judged import InputError, MeasureError
from judged.online.storage import SparkEngine
from judged.scoring.evaluation import runs_of
from strategies import facts
from variants import ALL

if TYPE_CHECKING:
    from judged.online.log import InteractionLog
    from judged.scoring.measures import Measure

IDS = ["a", "A", "a ", " a", "a\0", "a\0b", "", "ä", "é", "e\u0301", "\uffff", "\U0001d538", "z" * 40,
       "z" * 41, "007", "7", "\t", "'", '"', "\\", "\\n", "{x}", "%s"]  # fmt: skip
TOPICS = ["q1", "q1 ", "Q1", "q\0", "é"]
SCORES = [1.0, 1 + 1e-12, 0.5, 0.0, -0.0, 1e300, -1e300, float("inf"), float("-inf")]
ROW = "SELECT 'q1' AS query_id, 'a' AS doc_id, CAST(1 AS DOUBLE) AS score"


NEED_ALL = {"Hole", "AWRF", "TBG", "UMeasure"}


def needs_all(measure: Measure) -> bool:
    """Return whether a measure needs documents without a judgment: their costs, groups, or number."""
    return measure.entry.name in NEED_ALL or getattr(measure, "costs", None) == "column"


def generate_runs(seed: int = 1) -> tuple[dict[str, dict[str, int]], pa.Table]:
    """Return runs with odd ids and many ties, and judgments; some topics are in only one of the two."""
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


def assert_same_results(frame_of: Any) -> None:
    """Compare rows on an engine with rows in memory: hits, scores, and errors."""
    qrels, table = generate_runs()
    frame = frame_of(table)
    assert differences(qrels, table, frame) == []
    documents = facts({"": dict.fromkeys(IDS)})
    run, remote_run = (next(run for run in runs_of(source) if run.name == "r1") for source in (table, frame))
    local_judged, remote_judged = (judged.judge(qrels, source, documents=documents) for source in (run, remote_run))
    for measure in ALL:
        if remote_run.where == "<duckdb>" or not needs_all(measure):
            assert np.array_equal(measure(local_judged), measure(remote_judged), equal_nan=True), measure
        else:
            with pytest.raises(
                MeasureError, match=r"<spark>: the calculation requires all returned documents"
            ) as error:
                measure(remote_judged)
            assert str(error.value).startswith(f"{measure}: ")
    for dropped in (["score"], ["score", "rank"]):  # ranks in the place of scores; a set
        partial_table = table.drop_columns(dropped)
        assert differences(qrels, partial_table, frame_of(partial_table), ({},)) == []
    numbers = pa.table({"query_id": [1, 1, 1], "doc_id": [7, 10, 9], "score": pa.array([2, 2, 1], pa.int32())})
    assert differences({"1": {"7": 1, "10": 0}}, numbers, frame_of(numbers), ({},)) == []
    with pytest.raises(judged.InputError, match=r"document a.* is returned twice for topic q1"):
        judged.evaluate(
            {"q1": {"b": 1}}, frame_of(pa.table({"query_id": ["q1"] * 2, "doc_id": ["a"] * 2, "score": [1.0] * 2}))
        )
    with pytest.raises(InputError, match="ties=stable requires an order of rows"):
        judged.judge(qrels, frame_of(numbers), ties="stable")


REFUSED = {
    ROW.replace("'q1'", "1.5"): "the column query_id must contain",
    ROW.replace("'a'", "CAST('a' AS BINARY)"): "the column doc_id must contain",
    ROW.replace("DOUBLE", "DECIMAL(9, 2)"): "the column score must be DOUBLE, got decimal128",
    ROW.replace("CAST(1 AS DOUBLE)", "'1'"): "the column score must contain numbers, got string",
    ROW.replace("CAST(1 AS DOUBLE)", "CAST('NaN' AS DOUBLE)"): "of topic q1, document a is missing or NaN",
    ROW.replace("CAST(1 AS DOUBLE)", "CAST(NULL AS DOUBLE)"): "of topic q1, document a is missing or NaN",
    ROW.replace("'a'", "CAST(NULL AS STRING)"): "a row has no doc_id",
    ROW.replace("'q1'", "CAST(NULL AS STRING)"): "a row has no query_id",
    ROW.replace(" AS score", " AS points"): "no column score or rank among query_id, doc_id, points",
    ROW.replace(" AS doc_id", " AS leaf"): "no column doc_id among query_id, leaf, score",
    f"SELECT * FROM ({ROW}) WHERE score > 1": "there are no rows",
}


def assert_errors(query: Any, words: dict[str, str]) -> None:
    for sql, problem in words.items():
        with pytest.raises(InputError, match=problem):
            judged.evaluate({"q1": {"a": 1}}, query(sql))


def check_cluster(session: Any, address: str) -> None:
    """Compare the results of a Spark Connect session with local ones."""
    assert_same_results(session.createDataFrame)
    assert_errors(session.sql, REFUSED)
    with pytest.raises(InputError, match="requires all returned documents"):
        runs_of(session.sql(ROW))[0].table  # noqa: B018
    with pytest.raises(InputError, match=rf"{address}/nowhere: Spark says: .*nowhere"):
        judged.evaluate({"q1": {"a": 1}}, f"{address}/nowhere")


def move_to_spark(log: InteractionLog, session: Any) -> InteractionLog:
    """Return the log with its tables in Spark."""
    engine = SparkEngine(session)
    tables = {}
    for name in ("serp", "shown", "event", "session"):
        rows = getattr(log, name).to_arrow()
        for column, field in enumerate(rows.schema):
            if pa.types.is_dictionary(field.type):
                rows = rows.set_column(column, field.name, rows.column(column).cast(pa.string()))
        tables[name] = engine.register(rows, name)
    return replace(log, **tables)


def assert_equal_metrics(log: InteractionLog, remote_log: InteractionLog, by: str | None = None) -> int:
    """Compare each number of a log on two engines to the last digit; return the number of estimates."""
    mismatches, count = log_differences(log, remote_log, by)
    assert mismatches == []
    return count
