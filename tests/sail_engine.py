"""The facts of logs in another database: a log moved to Spark, or to Sail behind its interface."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from judged.online.spark import SparkEngine, open_on_spark
from judged.online.storage import store_log

if TYPE_CHECKING:
    from pathlib import Path

    from judged.online.log import InteractionLog


def stored_there(log: InteractionLog, session: Any, folder: Path) -> InteractionLog:
    """Store a log, make tables of its files there, and open it."""
    store_log(log, folder)
    session.sql("CREATE SCHEMA IF NOT EXISTS logs")
    for name in ("serp", "shown", "event", "session"):
        session.read.parquet(str(folder / f"{name}.parquet")).write.mode("overwrite").saveAsTable(f"logs.{name}")
    return open_on_spark(folder, session, "logs")


def moved(log: InteractionLog, session: Any) -> InteractionLog:
    """Give the same log there."""
    engine = SparkEngine(session)
    tables = {}
    for name in ("serp", "shown", "event", "session"):
        rows = getattr(log, name).to_arrow()
        for at, field in enumerate(rows.schema):
            if pa.types.is_dictionary(field.type):
                rows = rows.set_column(at, field.name, rows.column(at).cast(pa.string()))
        tables[name] = engine.register(rows, name)
    return replace(log, **tables)
