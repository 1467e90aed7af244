"""Spark with Java, in one test, since a server takes as long to start as most test files."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from engines import FAST_START, session, spark, spark_home, store_in_spark

import judged
from clusters import ROW, assert_equal_metrics, check_cluster, generate_runs
from dozen_sessions import pages_and_events
from judged import InputError
from judged.online import read_log
from judged.scoring.evaluation import runs_of
from typed_logs import typed_log

pytestmark = pytest.mark.skipif(spark_home() is None, reason="there is no Java, or no Spark with its jars")

SLOW = f"SELECT * FROM ({ROW}) WHERE reflect('java.lang.Thread', 'sleep', 60000L) IS NULL"
UNFIT = {
    "CAST('a' AS STRING COLLATE UTF8_LCASE)": "has the collation",
    "'a' COLLATE UNICODE": "has the collation",
    "array('a')": "the column doc_id is array<string>",
    "raise_error('no permission')": "Spark says: .*no permission",
}


def test_spark(tmp_path: Path) -> None:
    qrels, table = generate_runs()
    with ExitStack() as server, ExitStack() as client:
        address = server.enter_context(spark("local[2]", *FAST_START))
        spark_session = client.enter_context(session(address))
        check_cluster(spark_session, address)
        for column, problem in UNFIT.items():
            with pytest.raises(InputError, match=problem):
                judged.judge({"q1": {"a": 1}}, spark_session.sql(ROW.replace("'a'", column)))
        spark_session.sql("CREATE TABLE padded (query_id STRING, doc_id CHAR(5), score DOUBLE) USING parquet")
        with pytest.raises(InputError, match=r"doc_id is char\(5\): its texts are padded with spaces"):
            judged.judge({"q1": {"a": 1}}, f"{address}/padded")
        spark_session.createDataFrame(table).write.saveAsTable("runs")
        run = runs_of(f"{address}/runs")[0]
        assert (run.name, run.where) == ("r1", f"{address}/runs")
        assert judged.Qrels.of(spark_session.sql(f"{ROW.replace('score', 'relevance')}")).topics == ("q1",)

        log = typed_log(*pages_and_events())
        store_in_spark(log, spark_session, tmp_path / "log")
        assert assert_equal_metrics(log, read_log(tmp_path / "log", tables=f"{address}/logs")) > 60

        threading.Timer(2, server.close).start()
        for policy in spark_session.client.get_retry_policies():
            policy.max_retries = 1
        with pytest.raises(InputError, match="the connection to Spark was lost: "):
            judged.evaluate(qrels, spark_session.sql(SLOW))
