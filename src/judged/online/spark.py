"""Typed logs on Spark: the statements of logs, in its words, over tables that stay there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judged.data.spark import complaints, in_spark
from judged.online.engine import Engine, Relation, identifier
from judged.online.storage import TABLES, open_stored

if TYPE_CHECKING:
    from pathlib import Path

    from judged._types import Table
    from judged.online.log import InteractionLog

_TYPES = {"string": "VARCHAR", "large_string": "VARCHAR", "bool": "BOOLEAN", "int32": "INTEGER", "int64": "BIGINT",
          "double": "DOUBLE"}  # fmt: skip
_IN_SPARK = {"int64": "BIGINT", "int32": "INT", "double": "DOUBLE", "bool": "BOOLEAN"}


class SparkEngine(Engine):
    """A session of Spark, classic or Connect, in the place of DuckDB."""

    def __init__(self, session: Any) -> None:  # pyright: ignore[reportMissingSuperCall]
        self.session = session
        self._made = 0
        self._given_up = []

    def keep(self, sql: str, name: str = "kept") -> Relation:
        """Run a query and keep its rows in the cluster."""
        with complaints("<spark>"):
            return self._view(self.session.sql(in_spark(sql)).persist(), name)

    def register(self, rows: Table, name: str = "given") -> Relation:
        """Send a table of Arrow."""
        nothing = ", ".join(f"CAST(NULL AS {_spark(field.type)}) AS `{field.name}`" for field in rows.schema)
        with complaints("<spark>"):
            sent = len(rows) > 0  # of a table without rows it would not know the types
            frame = self.session.createDataFrame(rows) if sent else self.session.sql(f"SELECT {nothing} WHERE false")
            return self._view(frame, name)

    def _view(self, frame: Any, name: str) -> Relation:
        self._made += 1
        made = f"{name}_{id(self)}_{self._made}"
        frame.createOrReplaceTempView(made)
        self._given_up.append(lambda: (self.session.catalog.dropTempView(made), frame.unpersist()))
        return self.table(made)

    def types(self, table: str) -> dict[str, str]:
        """Name the columns of what stands behind FROM, and their types."""
        fields = self.arrow(f"SELECT * FROM {table} LIMIT 0").schema
        return {field.name: _TYPES.get(str(field.type), str(field.type)) for field in fields}

    def arrow(self, sql: str) -> Table:
        """Run a query and give its rows as a table of Arrow."""
        with complaints("<spark>"):
            return self.session.sql(in_spark(sql)).toArrow()


def open_on_spark(folder: Path | str, session: Any, schema: str) -> InteractionLog:
    """Open a typed log whose tables are on Spark; metrics over it are computed there.

    Parameters
    ----------
    folder
        What ``judged logs convert`` wrote; its ``log.json`` alone is read here.
    session
        A session of Spark, classic or Connect.
    schema
        Where its four Parquet files were made into tables: ``serp``, ``shown``, ``event``, ``session``.

    Raises
    ------
    InputError
        If the folder is no log, or Spark lacks a table.
    """
    engine = SparkEngine(session)
    place = ".".join(map(identifier, schema.split(".")))
    tables = {name: engine.query(f"SELECT * FROM {place}.{identifier(name)}") for name in TABLES}
    return open_stored(folder, engine, tables)


def _spark(kind: Any) -> str:
    name = str(kind)
    return f"ARRAY<{_spark(kind.value_type)}>" if name.startswith("list") else _IN_SPARK.get(name, "STRING")
