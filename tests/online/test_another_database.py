"""The same numbers from another database: what is computed of a log is SQL over whole numbers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dozen_sessions import pages_and_events
from judged.online import online_metrics, read_log
from sail_engine import moved, stored_there
from shared_data import SHARED, needs_shared
from typed_logs import typed_log

NOW = 1_767_225_600_000
LOGS = {
    "ubi_esci/ubi_queries_events.ndjson.gz": "application",
    "ubi_chorus/log_events.zip": "first click",
    "trec_session/sessiontrack2012.xml.gz": "query class",
    "open_bandit/random.men.csv.gz": None,
}


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    server_of = pytest.importorskip("pysail.spark").SparkConnectServer
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patched:
        warnings.simplefilter("ignore")  # pyspark's, of versions of pandas
        patched.setenv("SPARK_HOME", str(Path(__file__).parent))  # looked for, and not used
        from pyspark.sql import SparkSession

        server = server_of("127.0.0.1", 0)
        server.start(background=True)
        opened = SparkSession.builder.remote(f"sc://127.0.0.1:{server.listening_address[1]}").getOrCreate()
        yield opened
        opened.stop()
        server.stop()


def equal(log: Any, session: Any, by: str | None) -> int:
    """Compare each number to the last digit; give how many estimates there are."""
    here, there = (online_metrics(one, by=by) for one in (log, moved(log, session)))
    assert repr((here.estimates, here.ranks)) == repr((there.estimates, there.ranks))
    assert (here.counts, here.slices, here.refused) == (there.counts, there.slices, there.refused)
    return len(here.estimates) + len(here.ranks)


def test_a_dozen_sessions(session: Any) -> None:
    assert equal(typed_log(*pages_and_events()), session, "device") > 150


def test_tables_of_a_stored_log(session: Any, tmp_path: Path) -> None:
    log = typed_log(*pages_and_events())
    there = stored_there(log, session, tmp_path / "log")
    assert repr(online_metrics(log).estimates) == repr(online_metrics(there).estimates)


@needs_shared
@pytest.mark.parametrize("name", LOGS)
def test_published_logs(session: Any, name: str) -> None:
    assert equal(read_log(SHARED / "logs" / name, now_ms=NOW), session, LOGS[name]) > 10
