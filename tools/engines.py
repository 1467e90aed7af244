"""Compare runs in a database with the same runs read locally, bit by bit; see docs/any-size.md.

python tools/engines.py duckdb                  every shared run, in DuckDB
python tools/engines.py sail                    the same behind Sail
SPARK_HOME=... python tools/engines.py spark    behind Spark Connect, local[2]; SPARK_HOME has its jars
SPARK_HOME=... python tools/engines.py logs     metrics of the sample's log and of every shared log, behind Spark
SPARK_HOME=... python tools/engines.py lost     behind two Spark workers, one of which is killed during the join
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.data import sample
from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.errors import MeasureError
from judged.online import online_metrics, read_log
from judged.online.log import InteractionLog
from judged.online.storage import TABLES, open_on_spark, store_log
from judged.scoring.evaluation.inputs import runs_of
from judged.scoring.judging import judge
from judged.scoring.measures.registry import REGISTRY

if TYPE_CHECKING:
    from judged.results.types import Table

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
COLLECTIONS = {
    "cacm": ("cacm.qrels", "runs"), "cisi": ("cisi.qrels", "runs"), "codec": ("document_ndcg.qrels", "runs_d100"),
    "cranfield": ("cranfield.graded.qrels", "runs"), "dl19_passage": ("qrels.dl19-passage.txt", "runs*"),
    "robust03": ("robust03_qrels.txt", "runs*"), "web2012": ("*qrels*", "runs"), "web_ndeval": ("*", "runs*"),
}  # fmt: skip
LOGS = {
    "sample": "variant", "ubi_esci/ubi_queries_events.ndjson.gz": "application",
    "ubi_chorus/log_events.zip": "first click", "trec_session/sessiontrack2012.xml.gz": "query class",
    "open_bandit/random.men.csv.gz": None,
}  # fmt: skip
"""Logs, and the attribute to slice each by."""
RANKINGS: tuple[dict[str, Any], ...] = (
    {}, {"ties": "docid-rising", "precision": "single", "depth": 10}, {"ties": "rank"},
)  # fmt: skip
FIELDS = ("returned", "present", "topic", "rank", "grade", "row", "score", "tie_first", "tie_last", "extra_returned")
FAST_START = ("--driver-java-options", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
"""Options of short-lived servers: less time for the compiler, and less memory for the garbage collector."""
_WAIT = 300  # seconds until a server has started, on a busy machine


def collection(name: str, limit: int | None = None) -> tuple[Qrels, Table]:
    """Read the judgments of a shared collection, and its runs as one table."""
    qrels, runs = COLLECTIONS[name]
    tables: list[Table] = []
    for path in sorted((DATA / name).glob(f"{runs}/**/*.gz"))[:limit]:
        table = Run.read(path).table
        names = pa.array([str(path.relative_to(DATA))] * table.num_rows, pa.string())
        tables.append(table.select(["query_id", "doc_id", "score", "rank"]).append_column("run_id", names))
    return Qrels.read(next(iter(sorted((DATA / name / "qrels").glob(qrels))))), pa.concat_tables(tables)


def differences(
    qrels: Any, local_runs: Any, remote_runs: Any, rankings: tuple[dict[str, Any], ...] = RANKINGS
) -> list[str]:
    """Return the columns of hits whose bytes differ between local and remote runs."""
    qrels = Qrels.of(qrels)
    different: list[str] = []
    local, remote = ({run.name: run for run in runs_of(runs)} for runs in (local_runs, remote_runs))
    for ranking in rankings:
        for name, run in local.items():
            local_hits, remote_hits = judge(qrels, run, **ranking), judge(qrels, remote[name], **ranking)
            equal = {field: np.array_equal(getattr(local_hits, field), getattr(remote_hits, field)) for field in FIELDS}
            equal |= {
                "query_ids": local_hits.query_ids == remote_hits.query_ids,
                "extra": local_hits.extra == remote_hits.extra,
            }
            different += [f"{name} {ranking}: {field}" for field, is_equal in equal.items() if not is_equal]
    return different


def read_published_log(name: str) -> InteractionLog:
    """Read one of the published logs."""
    return read_log(sample.LOG if name == "sample" else DATA / "logs" / name, now_ms=1_798_761_600_000)


def store_in_spark(log: InteractionLog, spark_session: Any, folder: Path) -> InteractionLog:
    """Store a log, create tables of its files in a Spark session, and open it there."""
    store_log(log, folder)
    spark_session.sql("CREATE SCHEMA IF NOT EXISTS logs")
    for name in TABLES:
        spark_session.read.parquet(str(folder / f"{name}.parquet")).write.mode("overwrite").saveAsTable(f"logs.{name}")
    return open_on_spark(folder, spark_session, "logs")


def log_differences(
    local_log: InteractionLog, remote_log: InteractionLog, attribute: str | None = None
) -> tuple[list[str], int]:
    """Return the fields with different metrics between local and remote log, and the number of estimates."""
    local_metrics, remote_metrics = (online_metrics(log, by=attribute) for log in (local_log, remote_log))
    fields = ("estimates", "ranks", "counts", "slices", "refused")
    different = [
        field for field in fields if repr(getattr(local_metrics, field)) != repr(getattr(remote_metrics, field))
    ]
    return different, len(local_metrics.estimates) + len(local_metrics.ranks)


@contextmanager
def sail() -> Generator[str]:
    """Start Sail inside this process, and yield its URL."""
    from pysail.spark import SparkConnectServer

    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    listening: Any = server.listening_address
    try:
        yield f"sc://127.0.0.1:{listening[1]}"
    finally:
        server.stop()


def spark_home() -> Path | None:
    """Find Spark with its jars, and Java: in SPARK_HOME, or in the environment of .ci/run."""
    candidates = [Path(os.environ.get("SPARK_HOME", "")), *ROOT.glob(".venv-spark/lib/python*/site-packages/pyspark")]
    existing = [candidate for candidate in candidates if (candidate / "jars").is_dir()]
    return existing[0] if existing and shutil.which("java") else None


@contextmanager
def spark(master: str = "local[2]", *options: str, log: Path | None = None) -> Generator[str]:
    """Start a Spark Connect server, with more options of spark-submit, and yield its URL."""
    home = spark_home()
    if home is None:
        raise FileNotFoundError("Spark with its jars, or Java, is missing. Fix: set SPARK_HOME, and install Java.")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4", "spark.driver.memory": "1g",
    }  # fmt: skip
    command = [str(home / "bin" / "spark-submit"), "--master", master, *options]
    command += [part for pair in settings.items() for part in ("--conf", "=".join(pair))]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    with tempfile.TemporaryDirectory() as folder, (log or Path(folder) / "log").open("w+") as log_file:
        environment = os.environ | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
        server = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log_file, stderr=log_file, start_new_session=True
        )
        try:
            for _ in range(_WAIT * 10):
                with socket.socket() as probe:
                    if not probe.connect_ex(("127.0.0.1", port)):
                        break
                time.sleep(0.1)
            else:
                log_file.seek(0)
                raise TimeoutError(log_file.read()[-2000:])
            yield f"sc://127.0.0.1:{port}"
        finally:
            if (exit_code := server.poll()) is not None:
                log_file.seek(0)
                print(f"Spark stopped with exit code {exit_code}:\n{log_file.read()[-2000:]}")
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()


@contextmanager
def session(address: str) -> Generator[Any]:
    """Open a Spark Connect session."""
    earlier_home = os.environ.setdefault("SPARK_HOME", ".")  # the client requires the variable, but does not use it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of pyspark about pandas
        from pyspark.sql.connect.session import SparkSession

        if earlier_home == ".":
            del os.environ["SPARK_HOME"]
        spark_session = SparkSession.builder.remote(address).create()
        try:
            yield spark_session
        finally:
            spark_session.stop()


def _scores(judged: Any) -> dict[str, Any]:
    """Return the scores of each measure without required parameters that the judged run supports."""
    entries = [
        entry for entry in REGISTRY.values() if not any(parameter.required for parameter in entry.all_parameters)
    ]
    scores: dict[str, Any] = {}
    for entry in entries:
        with suppress(MeasureError):
            scores[entry.name] = entry.cls()(judged).tobytes()
    return scores


def _compare_shared_runs(frame_of: Callable[[Table], Any]) -> None:
    for name in COLLECTIONS:
        qrels, table = collection(name)
        start = time.perf_counter()
        frame = frame_of(table)
        different = differences(qrels, table, frame)
        compared: set[str] = set()
        for local_run, remote_run in zip(
            *(sorted(runs_of(runs), key=lambda run: run.name) for runs in (table, frame)), strict=True
        ):
            local_scores, remote_scores = (_scores(judge(qrels, run)) for run in (local_run, remote_run))
            compared |= local_scores.keys() & remote_scores.keys()
            different += [
                f"{local_run.name}: {measure}"
                for measure in remote_scores
                if local_scores[measure] != remote_scores[measure]
            ]
        runs, seconds = table["run_id"].combine_chunks().unique(), time.perf_counter() - start
        print(
            f"{name}: {len(runs)} runs, {table.num_rows} rows, {len(compared)} measures, {seconds:.0f} s:", flush=True
        )
        print(different or "the same", flush=True)


def _read_from_file(spark_session: Any, table: Table) -> Any:
    """Return a table that the server reads itself, because sessions limit the number of transferred rows."""
    import pyarrow.parquet as pq

    path = Path(tempfile.mkdtemp()) / "runs.parquet"
    pq.write_table(table, path)
    return spark_session.read.parquet(str(path))


def _compare_logs(spark_session: Any) -> None:
    for name, attribute in LOGS.items():
        log, start = read_published_log(name), time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            different, count = log_differences(log, store_in_spark(log, spark_session, Path(folder) / "log"), attribute)
        result = different or ("the same" if count else "no estimates to compare")
        print(f"{name}: {count} estimates, {time.perf_counter() - start:.0f} s: {result}", flush=True)


def _executors() -> dict[str, int]:
    """Return the processes of workers that this script's server has started, by executor ID."""
    process_list = subprocess.run(
        ["/bin/ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True
    ).stdout
    processes = [line.split(maxsplit=2) for line in process_list.splitlines()[1:]]
    servers = {pid for pid, parent, _ in processes if int(parent) == os.getpid()}
    workers = [(pid, args) for pid, parent, args in processes if parent in servers]
    return {match[1]: int(pid) for pid, args in workers if (match := re.search(r"--executor-id (\d+)", args))}


def _compare_with_lost_worker(rows: int = 200_000) -> None:
    """Judge a run while the first active of two workers is killed, and compare."""
    rng = np.random.default_rng(1)
    numbers = {
        "query_id": rng.integers(0, rows // 1000, rows),
        "doc_id": np.arange(rows),
        "score": rng.integers(0, 50, rows) / 8,
    }
    table = pa.table(numbers)
    judged_rows = table.take(rng.choice(rows, rows // 10, replace=False))
    grades = pa.array(rng.integers(-1, 4, judged_rows.num_rows))
    qrels = Qrels.of(judged_rows.select(["query_id", "doc_id"]).append_column("relevance", grades))
    options = (*FAST_START, "--conf", f"spark.executor.extraJavaOptions={FAST_START[1]}")
    with (
        tempfile.TemporaryDirectory() as folder,
        spark("local-cluster[2,1,1024]", *options, log=Path(folder) / "log") as address,
        session(address) as spark_session,
    ):
        import pyarrow.parquet as pq

        for part in range(16):
            pq.write_table(table.slice(part * rows // 16, rows // 16), Path(folder) / f"{part}.parquet")
        frame = spark_session.read.parquet(f"{folder}/*.parquet")
        (run,) = runs_of(frame)  # this counts the rows, so that the worker is lost during the join
        executors, killed, log = _executors(), list[str](), Path(folder) / "log"
        log_start = len(log.read_text())

        def kill() -> None:
            while not (task_start := re.search(r"Starting task .*executor (\d+)", log.read_text()[log_start:])):
                time.sleep(0.1)
            os.kill(executors[task_start[1]], signal.SIGKILL)
            killed.append(task_start[1])

        threading.Thread(target=kill, daemon=True).start()
        start = time.perf_counter()
        different = differences(qrels, table, run, ({},))
        print(f"{rows} rows, joined in {time.perf_counter() - start:.0f} s;", end=" ")
        print(f"executors {executors}, killed {killed}, afterwards {_executors()}")
        log_lines = [line for line in log.read_text().splitlines() if " Lost " in line or "esubmi" in line]
        print(*log_lines[:20], different or "the same", sep="\n")


if __name__ == "__main__":
    (engine,) = sys.argv[1:]
    if engine == "duckdb":
        import duckdb

        _compare_shared_runs(duckdb.connect().from_arrow)
    elif engine == "lost":
        _compare_with_lost_worker()
    elif engine == "sail":
        with sail() as address, session(address) as opened:
            _compare_shared_runs(lambda table: _read_from_file(opened, table))
    else:
        with spark() as address, session(address) as opened:
            if engine == "logs":
                _compare_logs(opened)
            else:
                _compare_shared_runs(lambda table: _read_from_file(opened, table))
