"""Hold runs that stay in a database against the same runs read here, to the last bit; see docs/any-size.md.

python tools/engines.py duckdb                  every shared run, in DuckDB
python tools/engines.py sail                    the same behind Sail
SPARK_HOME=... python tools/engines.py spark    behind Spark Connect, local[2]; SPARK_HOME is where its jars are
SPARK_HOME=... python tools/engines.py logs     metrics of the sample's log and of every shared one, behind Spark
SPARK_HOME=... python tools/engines.py lost     behind two workers, one of which is killed on the way
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
"""Logs, and what each is sliced by."""
RANKINGS: tuple[dict[str, Any], ...] = (
    {}, {"ties": "docid-rising", "precision": "single", "depth": 10}, {"ties": "rank"},
)  # fmt: skip
FIELDS = ("returned", "present", "topic", "rank", "grade", "row", "score", "tie_first", "tie_last", "extra_returned")
QUICKLY = ("--driver-java-options", "-XX:TieredStopAtLevel=1")
"""For a server that lives for a minute: half of its time goes into compiling otherwise."""
_WAIT = 300  # seconds for a server to come up, on a machine that has much else to do


def collection(name: str, limit: int | None = None) -> tuple[Qrels, Table]:
    """Read the judgments of a shared collection, and its runs, all in one table."""
    qrels, runs = COLLECTIONS[name]
    tables: list[Table] = []
    for path in sorted((DATA / name).glob(f"{runs}/**/*.gz"))[:limit]:
        table = Run.read(path).table
        names = pa.array([str(path.relative_to(DATA))] * table.num_rows, pa.string())
        tables.append(table.select(["query_id", "doc_id", "score", "rank"]).append_column("run_id", names))
    return Qrels.read(next(iter(sorted((DATA / name / "qrels").glob(qrels))))), pa.concat_tables(tables)


def differences(qrels: Any, here: Any, there: Any, rankings: tuple[dict[str, Any], ...] = RANKINGS) -> list[str]:
    """Name every column of hits that is not the same, byte for byte, in two homes of the same runs."""
    qrels = Qrels.of(qrels)
    found: list[str] = []
    local, remote = ({run.name: run for run in runs_of(runs)} for runs in (here, there))
    for ranking in rankings:
        for name, run in local.items():
            one, other = judge(qrels, run, **ranking), judge(qrels, remote[name], **ranking)
            alike = {field: np.array_equal(getattr(one, field), getattr(other, field)) for field in FIELDS}
            alike |= {"query_ids": one.query_ids == other.query_ids, "extra": one.extra == other.extra}
            found += [f"{name} {ranking}: {field}" for field, same in alike.items() if not same]
    return found


def published(name: str) -> InteractionLog:
    """Read one of the logs."""
    return read_log(sample.LOG if name == "sample" else DATA / "logs" / name, now_ms=1_798_761_600_000)


def stored_there(log: InteractionLog, opened: Any, folder: Path) -> InteractionLog:
    """Store a log, make tables of its files behind a session of Spark, and open it there."""
    store_log(log, folder)
    opened.sql("CREATE SCHEMA IF NOT EXISTS logs")
    for name in TABLES:
        opened.read.parquet(str(folder / f"{name}.parquet")).write.mode("overwrite").saveAsTable(f"logs.{name}")
    return open_on_spark(folder, opened, "logs")


def log_differences(here: InteractionLog, there: InteractionLog, by: str | None = None) -> tuple[list[str], int]:
    """Name what is not the same, to the last digit, in the metrics of two homes of a log; count the estimates."""
    one, other = (online_metrics(log, by=by) for log in (here, there))
    fields = ("estimates", "ranks", "counts", "slices", "refused")
    found = [field for field in fields if repr(getattr(one, field)) != repr(getattr(other, field))]
    return found, len(one.estimates) + len(one.ranks)


@contextmanager
def sail() -> Generator[str]:
    """Give the address of a Sail that runs inside this process."""
    from pysail.spark import SparkConnectServer

    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    listening: Any = server.listening_address
    try:
        yield f"sc://127.0.0.1:{listening[1]}"
    finally:
        server.stop()


def spark_home() -> Path | None:
    """Find a Spark with its jars, and Java: where SPARK_HOME says, or in the environment that .ci/run makes."""
    places = [Path(os.environ.get("SPARK_HOME", "")), *ROOT.glob(".venv-spark/lib/python*/site-packages/pyspark")]
    found = [place for place in places if (place / "jars").is_dir()]
    return found[0] if found and shutil.which("java") else None


@contextmanager
def spark(master: str = "local[2]", *options: str, log: Path | None = None) -> Generator[str]:
    """Start a Spark Connect server, with more options of spark-submit, and give its address."""
    home = spark_home()
    if home is None:
        raise FileNotFoundError("a Spark with its jars, and Java")
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
    with tempfile.TemporaryDirectory() as folder, (log or Path(folder) / "log").open("w+") as written:
        environment = os.environ | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
        server = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=written, stderr=written, start_new_session=True
        )
        try:
            for _ in range(_WAIT * 10):
                with socket.socket() as tried:
                    if not tried.connect_ex(("127.0.0.1", port)):
                        break
                time.sleep(0.1)
            else:
                written.seek(0)
                raise TimeoutError(written.read()[-2000:])
            yield f"sc://127.0.0.1:{port}"
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


@contextmanager
def session(address: str) -> Generator[Any]:
    """Open a session of Spark Connect as any program would."""
    before = os.environ.setdefault("SPARK_HOME", ".")  # its client looks for one, and does not use it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's, of versions of pandas
        from pyspark.sql.connect.session import SparkSession

        if before == ".":
            del os.environ["SPARK_HOME"]
        opened = SparkSession.builder.remote(address).create()
        try:
            yield opened
        finally:
            opened.stop()


def _scores(judged: Any) -> dict[str, Any]:
    """Give the scores of every measure that asks for nothing but judgments and the judged documents."""
    entries = [one for one in REGISTRY.values() if not any(parameter.required for parameter in one.all_parameters)]
    scores: dict[str, Any] = {}
    for entry in entries:
        with suppress(MeasureError):
            scores[entry.name] = entry.cls()(judged).tobytes()
    return scores


def _all_shared(frame_of: Callable[[Table], Any]) -> None:
    for name in COLLECTIONS:
        qrels, table = collection(name)
        begun = time.perf_counter()
        frame = frame_of(table)
        found = differences(qrels, table, frame)
        compared: set[str] = set()
        for here, there in zip(
            *(sorted(runs_of(runs), key=lambda run: run.name) for runs in (table, frame)), strict=True
        ):
            one, other = (_scores(judge(qrels, run)) for run in (here, there))
            compared |= one.keys() & other.keys()
            found += [f"{here.name}: {measure}" for measure in other if one[measure] != other[measure]]
        runs, took = table["run_id"].combine_chunks().unique(), time.perf_counter() - begun
        print(f"{name}: {len(runs)} runs, {table.num_rows} rows, {len(compared)} measures, {took:.0f} s:", flush=True)
        print(found or "the same", flush=True)


def _in_a_file(opened: Any, table: Table) -> Any:
    """Give a table that the server reads itself: a session does not take as many rows as one likes."""
    import pyarrow.parquet as pq

    path = Path(tempfile.mkdtemp()) / "runs.parquet"
    pq.write_table(table, path)
    return opened.read.parquet(str(path))


def _all_logs(opened: Any) -> None:
    for name, by in LOGS.items():
        log, begun = published(name), time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            found, count = log_differences(log, stored_there(log, opened, Path(folder) / "log"), by)
        said = found or ("the same" if count else "nothing to compare")
        print(f"{name}: {count} estimates, {time.perf_counter() - begun:.0f} s: {said}", flush=True)


def _executors() -> dict[str, int]:
    """Find the workers' processes that this script's server has started, by their numbers."""
    listed = subprocess.run(["/bin/ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    processes = [line.split(maxsplit=2) for line in listed.splitlines()[1:]]
    servers = {pid for pid, parent, _ in processes if int(parent) == os.getpid()}
    workers = [(pid, args) for pid, parent, args in processes if parent in servers]
    return {found[1]: int(pid) for pid, args in workers if (found := re.search(r"--executor-id (\d+)", args))}


def _one_lost(rows: int = 200_000) -> None:
    """Judge a run while the first of two workers to begin with it is killed, and compare."""
    rng = np.random.default_rng(1)
    numbers = {
        "query_id": rng.integers(0, rows // 1000, rows),
        "doc_id": np.arange(rows),
        "score": rng.integers(0, 50, rows) / 8,
    }
    table = pa.table(numbers)
    picked = table.take(rng.choice(rows, rows // 10, replace=False))
    grades = pa.array(rng.integers(-1, 4, picked.num_rows))
    qrels = Qrels.of(picked.select(["query_id", "doc_id"]).append_column("relevance", grades))
    options = (*QUICKLY, "--conf", f"spark.executor.extraJavaOptions={QUICKLY[1]}")
    with (
        tempfile.TemporaryDirectory() as folder,
        spark("local-cluster[2,1,1024]", *options, log=Path(folder) / "log") as address,
        session(address) as opened,
    ):
        import pyarrow.parquet as pq

        for part in range(16):
            pq.write_table(table.slice(part * rows // 16, rows // 16), Path(folder) / f"{part}.parquet")
        frame = opened.read.parquet(f"{folder}/*.parquet")
        (run,) = runs_of(frame)  # which counts its rows, so that the worker is lost within the join
        before, killed, log = _executors(), list[str](), Path(folder) / "log"
        already = len(log.read_text())

        def kill() -> None:
            while not (begins := re.search(r"Starting task .*executor (\d+)", log.read_text()[already:])):
                time.sleep(0.1)
            os.kill(before[begins[1]], signal.SIGKILL)
            killed.append(begins[1])

        threading.Thread(target=kill, daemon=True).start()
        begun = time.perf_counter()
        found = differences(qrels, table, run, ({},))
        print(f"{rows} rows, joined in {time.perf_counter() - begun:.0f} s;", end=" ")
        print(f"of {before} there were killed on the way {killed}; then {_executors()}")
        said = [line for line in log.read_text().splitlines() if " Lost " in line or "esubmi" in line]
        print(*said[:20], found or "the same", sep="\n")


if __name__ == "__main__":
    (engine,) = sys.argv[1:]
    if engine == "duckdb":
        import duckdb

        _all_shared(duckdb.connect().from_arrow)
    elif engine == "lost":
        _one_lost()
    elif engine == "sail":
        with sail() as address, session(address) as opened:
            _all_shared(lambda table: _in_a_file(opened, table))
    else:
        with spark() as address, session(address) as opened:
            if engine == "logs":
                _all_logs(opened)
            else:
                _all_shared(lambda table: _in_a_file(opened, table))
