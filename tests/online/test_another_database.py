"""The same numbers from another database: what is computed of a log is SQL over whole numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engines import sail
from engines import session as opened_session

from clusters import LOGS, equal, moved, published, stored_there
from dozen_sessions import pages_and_events
from shared_data import needs_shared
from typed_logs import typed_log


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    pytest.importorskip("pysail.spark")
    with sail() as address, opened_session(address) as opened:
        yield opened


def test_a_dozen_sessions(session: Any) -> None:
    log = typed_log(*pages_and_events())
    assert equal(log, moved(log, session), "device") > 150


def test_tables_of_a_stored_log(session: Any, tmp_path: Path) -> None:
    log = typed_log(*pages_and_events())
    assert equal(log, stored_there(log, session, tmp_path / "log")) > 100


@needs_shared
@pytest.mark.parametrize("name", LOGS)
def test_published_logs(session: Any, name: str) -> None:
    log = published(name)
    assert equal(log, moved(log, session), LOGS[name]) > 10
