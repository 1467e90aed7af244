"""Hold runs that stay in a database against the same runs read here, to the last bit; see docs/any-size.md.

python tools/engines.py duckdb                  every shared run, in DuckDB
python tools/engines.py sail                    the same behind Sail
SPARK_HOME=... python tools/engines.py spark    behind Spark Connect, local[2]; SPARK_HOME is where its jars are
SPARK_HOME=... python tools/engines.py lost     behind two workers, one of which is killed on the way
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.evaluation.inputs import runs_of
from judged.judging import judge

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
COLLECTIONS = {
    "cacm": ("cacm.qrels", "runs"), "cisi": ("cisi.qrels", "runs"), "codec": ("document_ndcg.qrels", "runs_d100"),
    "cranfield": ("cranfield.graded.qrels", "runs"), "dl19_passage": ("qrels.dl19-passage.txt", "runs*"),
    "robust03": ("robust03_qrels.txt", "runs*"), "web2012": ("*qrels*", "runs"), "web_ndeval": ("*", "runs*"),
}  # fmt: skip
RANKINGS: tuple[dict[str, Any], ...] = (
    {}, {"ties": "docid-rising", "precision": "single", "depth": 10}, {"ties": "rank"},
)  # fmt: skip
FIELDS = ("returned", "present", "topic", "rank", "grade", "row", "score", "tie_first", "tie_last", "extra_returned")
_WAIT = 90  # seconds for a server to come up


def collection(name: str, limit: int | None = None) -> tuple[Qrels, pa.Table]:
    """Read the judgments of a shared collection, and its runs, all in one table."""
    qrels, runs = COLLECTIONS[name]
    tables: list[pa.Table] = []
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


@contextmanager
def sail() -> Iterator[str]:
    """Give the address of a Sail that runs inside this process."""
    from pysail.spark import SparkConnectServer

    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    try:
        yield f"sc://127.0.0.1:{server.listening_address[1]}"
    finally:
        server.stop()


def spark_home() -> Path | None:
    """Find a Spark with its jars, and Java: where SPARK_HOME says, or in the environment that .ci/run makes."""
    places = [Path(os.environ.get("SPARK_HOME", "")), *ROOT.glob(".venv-spark/lib/python*/site-packages/pyspark")]
    found = [place for place in places if (place / "jars").is_dir()]
    return found[0] if found and shutil.which("java") else None


@contextmanager
def spark(master: str = "local[2]") -> Iterator[str]:
    """Start a Spark Connect server and give its address."""
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
    command = [str(home / "bin" / "spark-submit"), "--master", master]
    command += [part for pair in settings.items() for part in ("--conf", "=".join(pair))]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("w") as log:
        environment = os.environ | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True)
        try:
            for _ in range(_WAIT * 10):
                with socket.socket() as tried:
                    if not tried.connect_ex(("127.0.0.1", port)):
                        break
                time.sleep(0.1)
            else:
                raise TimeoutError((Path(folder) / "log").read_text()[-2000:])
            yield f"sc://127.0.0.1:{port}"
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


@contextmanager
def session(address: str) -> Iterator[Any]:
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


def _all_shared(frame_of: Callable[[pa.Table], Any]) -> None:
    for name in COLLECTIONS:
        qrels, table = collection(name)
        begun = time.perf_counter()
        found = differences(qrels, table, frame_of(table))
        runs = len(set(table["run_id"].unique().to_pylist()))
        print(f"{name}: {runs} runs, {table.num_rows} rows, {time.perf_counter() - begun:.0f} s: {found or 'the same'}")


def _in_a_file(opened: Any, table: pa.Table) -> Any:
    """Give a table that the server reads itself: a session does not take as many rows as one likes."""
    import pyarrow.parquet as pq

    path = Path(tempfile.mkdtemp()) / "runs.parquet"
    pq.write_table(table, path)
    return opened.read.parquet(str(path))


def _executors() -> list[int]:
    """Find the workers' processes that this script's server has started."""
    listed = subprocess.run(["/bin/ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if "CoarseGrainedExecutorBackend" in line]


def _one_lost() -> None:
    rng, rows = np.random.default_rng(1), 4_000_000
    numbers = {
        "query_id": rng.integers(0, 2000, rows),
        "doc_id": np.arange(rows),
        "score": rng.integers(0, 50, rows) / 8,
    }
    table = pa.table(numbers)
    picked = table.take(rng.choice(rows, 40_000, replace=False))
    grades = pa.array(rng.integers(-1, 4, picked.num_rows))
    qrels = Qrels.of(picked.select(["query_id", "doc_id"]).append_column("relevance", grades))
    with (
        tempfile.TemporaryDirectory() as folder,
        spark("local-cluster[2,1,1024]") as address,
        session(address) as opened,
    ):
        import pyarrow.parquet as pq

        for part in range(16):
            pq.write_table(table.slice(part * rows // 16, rows // 16), Path(folder) / f"{part}.parquet")
        frame = opened.read.parquet(folder)
        before = set(_executors())
        gone: list[int] = []

        def kill() -> None:
            gone.append(min(_executors()))
            os.kill(gone[0], signal.SIGKILL)

        timer = threading.Timer(float(os.environ.get("AFTER", "6")), kill)
        timer.start()
        begun = time.perf_counter()
        found = differences(qrels, table, frame, ({},))
        took = time.perf_counter() - begun
        timer.join()
        print(f"{rows} rows, {took:.0f} s; executors {sorted(before)}, killed {gone}, then {sorted(_executors())}")
        print(found or "the same")


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
            _all_shared(lambda table: _in_a_file(opened, table))
