"""Shared code of tests of log preparation: create and query logs in one line, and close databases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import raw_made
from judged.online.preparation.make import make_log
from raw_made import NOW, raw_log

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pytest

    from judged.online.log import InteractionLog


def closed_databases(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close the databases of a test: folders that vanish by chance are warned of."""
    opened: list[Any] = []

    class Kept(raw_made.Database):
        def __init__(self, **options: Any) -> None:
            super().__init__(**{"threads": 1, **options})
            opened.append(self)

    monkeypatch.setattr("judged.online.storage.Database", Kept)
    yield
    for database in opened:
        database.con.close()


_SHARED: list[Any] = []


def shared_database() -> Iterator[None]:
    """Create one database for the tests of a module, since this takes longer than preparing a log."""
    _SHARED.append(raw_made.Database(threads=1))
    yield
    engine = _SHARED.pop()
    engine.con.close()


def prepared_log(
    queries: Sequence[dict[str, Any]], events: Sequence[dict[str, Any]] = (), **options: Any
) -> InteractionLog:
    fields = {
        name: options.pop(name)
        for name in ("has_time", "rank_base", "attributes", "logs_empty_pages")
        if name in options
    }
    base = options.pop("base", None)
    return make_log(*raw_log(queries, events, engine=_SHARED[0], **fields), now_ms=NOW, rank_base=base, **options)


def rows(table: Any, *columns: str) -> list[tuple[Any, ...]]:
    names = columns or tuple(table.columns)
    return sorted((tuple(row[name] for name in names) for row in table.to_arrow().to_pylist()), key=repr)


def findings_by_rule(log: InteractionLog) -> dict[tuple[str, str], tuple[int, int, str]]:
    return {(row.table, row.rule): (row.rows, row.of, row.action) for row in log.findings}


def excluded(log: InteractionLog, table: str) -> dict[str, int]:
    (account,) = [account for account in log.accounts if account.table == table]
    assert account.read == account.kept + sum(count for _, count in account.excluded)
    return dict(account.excluded)
