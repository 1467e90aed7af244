"""Runs that stay where they are: rows of a table in DuckDB or on Spark, of which SQL brings back a few."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import pyarrow as pa

from judged.data.compute import pc
from judged.data.layout import canonical
from judged.data.objects import named_table
from judged.data.rows import TableRows, WithoutLines
from judged.errors import InputError, MissingExtraError
from judged.results.types import cached_property

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.data.layout import Kind
    from judged.data.rows import Part, Progress, Rows
    from judged.results.types import Table


class NotFetchedError(InputError):
    """Every row of a run was asked for, and it lies on a cluster."""


class Engine(Protocol):
    """What a database must do for us."""

    where: str  # what messages call the table
    fetches: bool  # whether all of its rows may be fetched

    def schema(self) -> Any:
        """Give the columns of the table."""
        ...

    def ask(self, sql: str, **given: Table) -> Table:
        """Run a query over ``judged_rows``, which is the table, and over small tables that are sent there."""
        ...


class DuckdbTable:
    """A relation of DuckDB: a table, a view, a query, files that it reads."""

    fetches = True  # it is a database of this process
    where = "<duckdb>"

    def __init__(self, relation: Any) -> None:
        self.relation = relation

    def schema(self) -> Any:
        """Give the columns, their types as Arrow has them."""
        return self.ask("SELECT * FROM judged_rows LIMIT 0").schema

    def ask(self, sql: str, **given: Table) -> Table:
        """Run a query in the connection that the relation belongs to, which finds what is given by its name."""
        import duckdb

        judged_given = given.get("judged_given")  # found by DuckDB among the names of this function
        view = f"judged_rows_{uuid4().hex}"
        try:
            return self.relation.query(view, sql.replace("judged_rows", view)).to_arrow_table()
        except duckdb.Error as error:
            first = str(error).split("\n", 1)[0]
            raise InputError(
                f"DuckDB says: {first.rstrip('.!')}", fix="look at the relation that was given", path=self.where
            ) from None
        finally:
            del judged_given
            with suppress(duckdb.Error):  # before 2.0 it is a view of the user's database, and stays there
                self.relation.query(view, f"DROP VIEW IF EXISTS {view}")


class EngineTable:
    """A table of one run or several, asked where it lies.

    Parameters
    ----------
    engine
        What answers for it.

    Raises
    ------
    InputError
        If it lacks a column, or one has a type that does not fit.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        schema = engine.schema()
        named_table(schema.empty_table(), "run", engine.where)
        names = canonical(schema.names, "run")
        self.columns = {name: given for name, given in zip(names, schema.names, strict=True) if name}
        for name in {"score", "rank"} & self.columns.keys():
            kind = schema.field(self.columns[name]).type
            if pa.types.is_decimal(kind) or (name == "rank" and not pa.types.is_integer(kind)):
                needed = "BIGINT" if name == "rank" else "DOUBLE"
                problem = f"the column {self.columns[name]} is {kind}, which databases do not read alike"
                raise InputError(problem, fix=f"give a view that casts it to {needed}", path=engine.where)
        self.hits: tuple[Any, ...] = ()  # what was asked last and its answer: all runs are joined at once

    def text(self, name: str) -> str:
        """Write a column of ids in SQL so that its bytes are compared, whatever the collation."""
        return f"encode(CAST({quoted(self.columns[name])} AS VARCHAR))" if name in self.columns else "encode('')"

    @cached_property
    def counts(self) -> Table:
        """How many documents each run and topic has, and one that stands twice: ``run, query, returned, twice``."""
        unfit = " OR ".join(
            f"{column} IS NULL" + (f" OR isnan(CAST({column} AS DOUBLE))" if name == "score" else "")
            for name in ("score", "rank")
            if name in self.columns and (column := quoted(self.columns[name]))
        )
        counts = self.engine.ask(f"""
            SELECT run, query, CAST(sum(n) AS BIGINT) AS returned, max(CASE WHEN n > 1 THEN doc END) AS twice,
                CAST(sum(CASE WHEN doc IS NULL THEN n ELSE 0 END) AS BIGINT) AS nameless,
                max(CASE WHEN unfit > 0 THEN doc END) AS unfit
            FROM (
                SELECT run, query, doc, count(*) AS n, count(CASE WHEN unfit THEN 1 END) AS unfit
                FROM (SELECT {self.text("run_id")} AS run, {self.text("query_id")} AS query,
                    {self.text("doc_id")} AS doc, {unfit or "1 = 0"} AS unfit FROM judged_rows) AS named
                GROUP BY run, query, doc
            ) AS distinct_rows
            GROUP BY run, query
        """)
        where = self.engine.where
        if not counts.num_rows:
            raise InputError("there are no rows", fix="give a table with at least one", path=where, rule="empty-file")
        lacking = [counts["run"].null_count, counts["query"].null_count, pc.sum(counts["nameless"]).as_py()]
        for name, rows in zip(("run_id", "query_id", "doc_id"), lacking, strict=True):
            if rows:
                problem = f"a row has no {self.columns[name]}"
                raise InputError(problem, fix="remove the row, or fill in the id", path=where)
        try:
            texts = {name: as_text(counts[name]) for name in ("run", "query", "twice", "unfit")}
        except pa.ArrowInvalid:
            raise InputError("an id is not UTF-8", fix="decode the ids with the right encoding", path=where) from None
        counts = pa.table(texts | {"returned": counts["returned"]})
        at = pc.index(pc.is_valid(counts["unfit"]), value=True).as_py()
        if at >= 0:
            pair = f"topic {counts['query'][at]}, document {counts['unfit'][at]}"
            problem = f"the score or rank of {pair} is missing or NaN"
            raise InputError(problem, fix="write a number, or leave the document out", path=where, rule="nan-score")
        return counts

    @property
    def runs(self) -> list[str]:
        """The names of its runs, in byte order; ``""`` alone where no column tells."""
        return sorted(pc.unique(self.counts["run"]).to_pylist())


def as_text(column: Any) -> Any:
    """Give ids that come back as bytes, or as text that nobody has looked at, as text that is UTF-8."""
    return column.cast(pa.binary()).cast(pa.string()).combine_chunks()


def quoted(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class EngineRows(WithoutLines):
    """The rows of one run of a table that stays where it is."""

    table: EngineTable = field(repr=False)
    run: str | None = None  # as the column `run_id` has it; None where the table holds no other

    @property
    def where(self) -> str:
        """What messages call it."""
        return self.table.engine.where

    @property
    def name(self) -> str:
        """What the column `run_id` holds; ``""`` where there is none."""
        return self.table.runs[0] if self.run is None else self.run

    @property
    def has_scores(self) -> bool:
        """Whether something ranks its documents."""
        return bool({"score", "rank"} & self.table.columns.keys())

    @property
    def has_ranks(self) -> bool:
        """Whether there is a rank column."""
        return "rank" in self.table.columns

    def parts(self, columns: tuple[str, ...], progress: Progress | None = None) -> Iterator[Part]:
        """Fetch all rows from a database of this process.

        Raises
        ------
        InputError
            If they lie elsewhere.
        """
        del progress
        if not self.table.engine.fetches:
            raise NotFetchedError(
                "this needs every returned document, and a table on a cluster gives the judged ones only",
                fix="leave it out; or fetch the rows that it needs and give them as a data frame",
                path=self.where,
            )
        chosen = ", ".join(f"r.{quoted(given)}" for name, given in self.table.columns.items() if name != "run_id")
        own = f"{self.table.text('run_id')} = encode(g.run)"
        sql = f"SELECT {chosen} FROM judged_rows AS r JOIN judged_given AS g ON {own}"
        rows = self.table.engine.ask(sql, judged_given=pa.table({"run": [self.name]}))
        yield from TableRows(named_table(rows, "run", self.where)).parts(columns)


def rows_in_database(data: Any, kind: Kind) -> Rows:
    """Take a relation of DuckDB, a data frame of Spark, or a table's address: runs stay there, qrels are fetched."""
    if type(data).__name__ == "DuckDBPyRelation":
        engine: Engine = DuckdbTable(data)
    else:
        from judged.data.spark import SparkTable  # few calls need it

        engine = SparkTable.at(data) if isinstance(data, str) else SparkTable(data)
    if kind == "run":
        return EngineRows(EngineTable(engine))
    return TableRows(named_table(engine.ask("SELECT * FROM judged_rows"), kind, engine.where), engine.where)


_MEMORY = "600MB"  # beyond it DuckDB writes files
_OPTIONS: dict[str, Any] = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}


class TableInFile(DuckdbTable):
    """A table or view of a database file.

    Parameters
    ----------
    path
        The file.
    name
        The table, with its schema where that is not ``main``: ``bm25``, ``search.runs``.

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
            known = self.connection.sql("SELECT table_schema, table_name FROM information_schema.tables").fetchall()
        except duckdb.Error as error:
            first = str(error).split("\n", 1)[0]
            fix = "close it where it is open for writing, or look at the file"
            raise InputError(f"DuckDB says: {first}", fix=fix, path=str(path)) from None
        schema, _, table = name.rpartition(".")
        chosen = (schema or "main", table)
        if chosen not in known:
            names = [f"{path}/{found if where == 'main' else f'{where}.{found}'}" for where, found in known]
            fix = f"name a table: {', '.join(sorted(names)[:20])}" if names else "make a table in it"
            problem = f"the database has no table {name!r}" if name else "this is a database of DuckDB"
            raise InputError(problem, fix=fix, path=str(path))
        self._restrict()
        try:
            relation = self.connection.table(".".join(map(quoted, chosen)))
        except duckdb.Error as error:
            first = str(error).split("\n", 1)[0]
            raise InputError(
                f"DuckDB says: {first}", fix="name a table, or a view of tables", path=self.where
            ) from None
        super().__init__(relation)

    def ask(self, sql: str, **given: Table) -> Table:
        """Run a query; given tables are registered, as DuckDB looks for no names of Python without external access."""
        for name, table in given.items():
            self.connection.register(name, table)
        return super().ask(sql, **given)

    def _restrict(self) -> None:
        """Limit memory, and let no view read another file; connections of a process to one file share settings."""
        ((open_to_files,),) = self.connection.sql("SELECT current_setting('enable_external_access')").fetchall()
        if not open_to_files:
            return
        # Not beside the database, which may be read-only; DuckDB makes it and removes it, and it stays open to views.
        spills_to = str(Path(tempfile.gettempdir(), f"judged-{uuid4().hex}")).replace("'", "''")
        for setting in (
            f"memory_limit = '{_MEMORY}'",
            f"temp_directory = '{spills_to}'",
            "enable_progress_bar = false",
            "enable_external_access = false",
        ):
            self.connection.execute(f"SET {setting}")
