"""Runs in a database (DuckDB or Spark): SQL queries fetch only the rows that are needed."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import pyarrow as pa

from judged.data.column_names import canonical_names
from judged.data.compute import pc
from judged.data.objects import canonical_table
from judged.data.rows import TableRows, UnnumberedRows
from judged.errors import InputError, MissingExtraError
from judged.results.types import cached_property

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.data.column_names import Kind
    from judged.data.rows import Part, Progress, Rows
    from judged.results.types import Table


class NotFetchedError(InputError):
    """Error if an operation needs all rows of a run that is stored on a cluster."""


class SqlEngine(Protocol):
    """Interface of a table in a database."""

    where: str  # name of the table in error messages
    fetches: bool  # whether all rows may be fetched

    def schema(self) -> Any:
        """Return the columns of the table as an Arrow schema."""
        ...

    def query(self, sql: str, **tables: Table) -> Table:
        """Run a query on the table, which is named ``judged_rows`` in `sql`, and on small tables that are uploaded."""
        ...


class DuckdbTable:
    """A relation of DuckDB: a table, a view, a query, or files."""

    fetches = True  # DuckDB runs in this process
    where = "<duckdb>"

    def __init__(self, relation: Any) -> None:
        self.relation = relation

    def schema(self) -> Any:
        """Return the columns of the relation as an Arrow schema."""
        return self.query("SELECT * FROM judged_rows LIMIT 0").schema

    def query(self, sql: str, **tables: Table) -> Table:
        """Run a query in the connection of the relation; DuckDB reads the uploaded tables from local variables."""
        import duckdb

        judged_input = tables.get("judged_input")  # this name is used in `sql`
        view = f"judged_rows_{uuid4().hex}"
        try:
            return self.relation.query(view, sql.replace("judged_rows", view)).to_arrow_table()
        except duckdb.Error as error:
            summary = str(error).split("\n", 1)[0].rstrip(".!")
            raise InputError(f"DuckDB: {summary}", fix="check the relation", path=self.where) from None
        finally:
            del judged_input
            with suppress(duckdb.Error):  # before DuckDB 2.0 the view would remain in the user's database
                self.relation.query(view, f"DROP VIEW IF EXISTS {view}")


class EngineTable:
    """A database table of one or more runs.

    Parameters
    ----------
    engine
        The database.

    Raises
    ------
    InputError
        If a column is missing or has an unsupported type.
    """

    def __init__(self, engine: SqlEngine) -> None:
        self.engine = engine
        schema = engine.schema()
        canonical_table(schema.empty_table(), "run", engine.where)
        names = canonical_names(schema.names, "run")
        self.columns = {name: column for name, column in zip(names, schema.names, strict=True) if name}
        for name in {"score", "rank"} & self.columns.keys():
            kind = schema.field(self.columns[name]).type
            if pa.types.is_decimal(kind) or (name == "rank" and not pa.types.is_integer(kind)):
                # Databases differ in how they order and round such values.
                required = "BIGINT" if name == "rank" else "DOUBLE"
                problem = f"the column {self.columns[name]} must be {required}, got {kind}"
                raise InputError(problem, fix=f"use a view that casts the column to {required}", path=engine.where)
        self.hits: tuple[Any, ...] = ()  # the last query for hits and its result, as all runs are joined at once

    def id_bytes_sql(self, name: str) -> str:
        """Return SQL for the bytes of an id column, so that comparisons do not depend on the collation."""
        return (
            f"encode(CAST({quote_identifier(self.columns[name])} AS VARCHAR))" if name in self.columns else "encode('')"
        )

    @cached_property
    def counts(self) -> Table:
        """Number of documents of each run and topic, with a duplicate id if any: ``run, query, returned, twice``."""
        unfit = " OR ".join(
            f"{column} IS NULL" + (f" OR isnan(CAST({column} AS DOUBLE))" if name == "score" else "")
            for name in ("score", "rank")
            if name in self.columns and (column := quote_identifier(self.columns[name]))
        )
        counts = self.engine.query(f"""
            SELECT run, query, CAST(sum(n) AS BIGINT) AS returned, max(CASE WHEN n > 1 THEN doc END) AS twice,
                CAST(sum(CASE WHEN doc IS NULL THEN n ELSE 0 END) AS BIGINT) AS nameless,
                max(CASE WHEN unfit > 0 THEN doc END) AS unfit
            FROM (
                SELECT run, query, doc, count(*) AS n, count(CASE WHEN unfit THEN 1 END) AS unfit
                FROM (SELECT {self.id_bytes_sql("run_id")} AS run, {self.id_bytes_sql("query_id")} AS query,
                    {self.id_bytes_sql("doc_id")} AS doc, {unfit or "1 = 0"} AS unfit FROM judged_rows) AS named
                GROUP BY run, query, doc
            ) AS distinct_rows
            GROUP BY run, query
        """)
        where = self.engine.where
        if not counts.num_rows:
            raise InputError("there are no rows", fix="use a table with rows", path=where, rule="empty-file")
        null_counts = [counts["run"].null_count, counts["query"].null_count, pc.sum(counts["nameless"]).as_py()]
        for name, null_count in zip(("run_id", "query_id", "doc_id"), null_counts, strict=True):
            if null_count:
                problem = f"a row has no {self.columns[name]}"
                raise InputError(problem, fix="remove the row, or fill in the id", path=where)
        try:
            texts = {name: to_utf8_text(counts[name]) for name in ("run", "query", "twice", "unfit")}
        except pa.ArrowInvalid:
            raise InputError("an id is not UTF-8", fix="decode the ids with the right encoding", path=where) from None
        counts = pa.table(texts | {"returned": counts["returned"]})
        row = pc.index(pc.is_valid(counts["unfit"]), value=True).as_py()
        if row >= 0:
            pair = f"topic {counts['query'][row]}, document {counts['unfit'][row]}"
            problem = f"the score or rank of {pair} is missing or NaN"
            raise InputError(problem, fix="write a number, or leave the document out", path=where, rule="nan-score")
        return counts

    @property
    def runs(self) -> list[str]:
        """Names of the runs in byte order; ``[""]`` if the table has no column of run ids."""
        return sorted(pc.unique(self.counts["run"]).to_pylist())


def to_utf8_text(column: Any) -> Any:
    """Convert bytes, or text that was not validated, to valid UTF-8 text."""
    return column.cast(pa.binary()).cast(pa.string()).combine_chunks()


def quote_identifier(name: str) -> str:
    """Quote an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class EngineRows(UnnumberedRows):
    """Rows of one run in a database table."""

    table: EngineTable = field(repr=False)
    run: str | None = None  # run id; None if the table has only one run

    @property
    def where(self) -> str:
        """Name of the table in error messages."""
        return self.table.engine.where

    @property
    def name(self) -> str:
        """Run id; ``""`` if the table has no column of run ids."""
        return self.table.runs[0] if self.run is None else self.run

    @property
    def has_scores(self) -> bool:
        """Whether there is a column of scores or ranks."""
        return bool({"score", "rank"} & self.table.columns.keys())

    @property
    def has_ranks(self) -> bool:
        """Whether there is a rank column."""
        return "rank" in self.table.columns

    def parts(self, columns: tuple[str, ...], progress: Progress | None = None) -> Iterator[Part]:
        """Yield all rows of the run, if the database runs in this process.

        Raises
        ------
        NotFetchedError
            If it runs elsewhere.
        """
        del progress
        if not self.table.engine.fetches:
            raise NotFetchedError(
                "the calculation requires all returned documents, but only judged documents are fetched from a cluster",
                fix="omit this calculation, or load all rows of the run and pass the rows as a data frame",
                path=self.where,
            )
        columns_sql = ", ".join(
            f"r.{quote_identifier(column)}" for name, column in self.table.columns.items() if name != "run_id"
        )
        condition = f"{self.table.id_bytes_sql('run_id')} = encode(g.run)"
        sql = f"SELECT {columns_sql} FROM judged_rows AS r JOIN judged_input AS g ON {condition}"
        rows = self.table.engine.query(sql, judged_input=pa.table({"run": [self.name]}))
        yield from TableRows(canonical_table(rows, "run", self.where)).parts(columns)


def rows_in_database(data: Any, kind: Kind) -> Rows:
    """Open a DuckDB relation, a Spark data frame, or a table address. Runs stay in the database, qrels are fetched."""
    if type(data).__name__ == "DuckDBPyRelation":
        engine: SqlEngine = DuckdbTable(data)
    else:
        from judged.data.spark import SparkTable  # slow to import and rarely needed

        engine = SparkTable.open(data) if isinstance(data, str) else SparkTable(data)
    if kind == "run":
        return EngineRows(EngineTable(engine))
    return TableRows(canonical_table(engine.query("SELECT * FROM judged_rows"), kind, engine.where), engine.where)


_MEMORY_LIMIT = "600MB"  # above it DuckDB spills to temporary files
_OPTIONS: dict[str, Any] = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}


class TableInFile(DuckdbTable):
    """A table or view in a DuckDB file.

    Parameters
    ----------
    path
        The file.
    name
        Name of the table, with its schema if it is not ``main``: ``bm25``, ``search.runs``.

    Raises
    ------
    InputError
        If the file cannot be opened, or has no such table.
    MissingExtraError
        If DuckDB is not installed.
    """

    def __init__(self, path: Path, name: str) -> None:
        try:
            import duckdb
        except ImportError:
            raise MissingExtraError("duckdb", "logs") from None
        self.where = f"{path}/{name}"
        try:
            self.connection = duckdb.connect(path, read_only=True, config=_OPTIONS)
            tables = self.connection.sql("SELECT table_schema, table_name FROM information_schema.tables").fetchall()
        except duckdb.Error as error:
            summary = str(error).split("\n", 1)[0]
            fix = "close the file in the program that writes it, or check the file"
            raise InputError(f"DuckDB: {summary}", fix=fix, path=str(path)) from None
        schema, _, table = name.rpartition(".")
        qualified_name = (schema or "main", table)
        if qualified_name not in tables:
            names = [f"{path}/{table if schema == 'main' else f'{schema}.{table}'}" for schema, table in tables]
            fix = f"use the name of a table: {', '.join(sorted(names)[:20])}" if names else "create a table in the file"
            problem = f"the database has no table {name!r}" if name else "this is a DuckDB database, not a table"
            raise InputError(problem, fix=fix, path=str(path))
        self._restrict()
        try:
            relation = self.connection.table(".".join(map(quote_identifier, qualified_name)))
        except duckdb.Error as error:
            summary = str(error).split("\n", 1)[0]
            raise InputError(
                f"DuckDB: {summary}", fix="use a table, or a view that reads no files", path=self.where
            ) from None
        super().__init__(relation)

    def query(self, sql: str, **tables: Table) -> Table:
        """Register the tables and run a query; without external access DuckDB does not read local variables."""
        for name, table in tables.items():
            self.connection.register(name, table)
        return super().query(sql, **tables)

    def _restrict(self) -> None:
        """Limit memory, and forbid views to read other files. Connections of a process to one file share settings."""
        ((has_external_access,),) = self.connection.sql("SELECT current_setting('enable_external_access')").fetchall()
        if not has_external_access:  # restricted by an earlier connection
            return
        # The folder of the database may be read-only. DuckDB creates and removes the temporary folder itself.
        spill_folder = str(Path(tempfile.gettempdir(), f"judged-{uuid4().hex}")).replace("'", "''")
        for setting in (
            f"memory_limit = '{_MEMORY_LIMIT}'",
            f"temp_directory = '{spill_folder}'",
            "enable_progress_bar = false",
            "enable_external_access = false",
        ):
            self.connection.execute(f"SET {setting}")
