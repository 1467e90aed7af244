"""The same numbers from another database: what is computed of a log is SQL over whole numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engines import LOGS, read_published_log, sail, store_in_spark
from engines import session as opened_session

from clusters import assert_equal_metrics, move_to_spark
from dozen_sessions import pages_and_events
from judged import InputError
from judged.online import read_log
from shared_data import needs_shared
from typed_logs import typed_log


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    pytest.importorskip("pysail.spark")
    with sail() as address, opened_session(address) as opened:
        yield opened


def test_a_dozen_sessions(session: Any) -> None:
    log = typed_log(*pages_and_events())
    assert assert_equal_metrics(log, move_to_spark(log, session), "device") > 150


def test_tables_of_a_stored_log(session: Any, tmp_path: Path) -> None:
    log = typed_log(*pages_and_events())
    assert assert_equal_metrics(log, store_in_spark(log, session, tmp_path / "log")) > 60


def test_tables_at_an_address(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = typed_log(*pages_and_events())
    store_in_spark(log, session, tmp_path / "log")  # Sail shows them to this session alone
    monkeypatch.setattr("judged.data.spark.connect", lambda address: (session, address.rpartition("/")[2]))
    assert assert_equal_metrics(log, read_log(tmp_path / "log", tables="sc://host/logs")) > 60
    with pytest.raises(InputError, match="convert the original log again"):
        read_log(tmp_path / "log", tables="sc://host/logs", bots="keep")


@needs_shared
@pytest.mark.parametrize("name", LOGS)
def test_published_logs(session: Any, name: str) -> None:
    log = read_published_log(name)
    assert assert_equal_metrics(log, move_to_spark(log, session), LOGS[name]) > 10
