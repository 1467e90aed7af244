"""The facts of logs in another database: our SQL in Spark's words, run by Sail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp

from judged.online.engine import Engine, Relation
from judged.online.log import InteractionLog

if TYPE_CHECKING:
    import pyarrow as pa


_TYPES = {"string": "VARCHAR", "large_string": "VARCHAR", "bool": "BOOLEAN", "int32": "INTEGER", "int64": "BIGINT",
          "double": "DOUBLE"}  # fmt: skip


def in_spark(sql: str) -> str:
    """Translate what is written for DuckDB."""
    (tree,) = sqlglot.parse(sql, read="duckdb")
    assert tree is not None
    for kind in tree.find_all(exp.DataType):
        if kind.this == exp.DataType.Type.INT128:
            kind.replace(exp.DataType.build("decimal(38, 0)"))
    return tree.sql(dialect="spark")


def _spark(kind: pa.DataType) -> str:
    name = str(kind)
    if name.startswith("list"):
        return f"ARRAY<{_spark(kind.value_type)}>"
    return {"int64": "BIGINT", "int32": "INT", "double": "DOUBLE", "bool": "BOOLEAN"}.get(name, "STRING")


class SailEngine(Engine):
    """Sail in the place of DuckDB, behind a session of Spark."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self._made = 0
        self._given_up = []

    def keep(self, sql: str, name: str = "kept") -> Relation:
        """Run a query and keep its rows."""
        return self.register(self.arrow(sql), name)

    def register(self, rows: pa.Table, name: str = "given") -> Relation:
        """Give a table of Arrow as one of the database."""
        self._made += 1
        made = f"{name}_{self._made}"
        nothing = ", ".join(f"CAST(NULL AS {_spark(field.type)}) AS `{field.name}`" for field in rows.schema)
        frame = self.session.createDataFrame(rows) if len(rows) else self.session.sql(f"SELECT {nothing} WHERE false")
        frame.createOrReplaceTempView(made)
        return self.table(made)

    def types(self, table: str) -> dict[str, str]:
        """Name the columns of what stands behind FROM, and their types."""
        fields = self.arrow(f"SELECT * FROM {table} LIMIT 0").schema
        return {field.name: _TYPES.get(str(field.type), str(field.type)) for field in fields}

    def arrow(self, sql: str) -> pa.Table:
        """Run a query and give its rows."""
        return self.session.sql(in_spark(sql)).toArrow()


def moved(log: InteractionLog, session: Any) -> InteractionLog:
    """Give the same log in Sail."""
    import pyarrow as pa

    engine = SailEngine(session)
    tables = {}
    for name in ("serp", "shown", "event", "session"):
        rows = getattr(log, name).to_arrow()
        for at, field in enumerate(rows.schema):
            if pa.types.is_dictionary(field.type):
                rows = rows.set_column(at, field.name, rows.column(at).cast(pa.string()))
        tables[name] = engine.register(rows, name)
    more = {name: getattr(log, name) for name in ("name", "layout", "files", "has_time", "dated", "has", "findings",
                                                  "accounts", "attributes", "policies")}  # fmt: skip
    return InteractionLog(**tables, **more)
