"""Tables in a Spark session (classic or Connect): translation of SQL and of error messages."""

from __future__ import annotations

import re
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from judged.data.column_names import canonical_names
from judged.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from judged.results.types import Table

_SCHEME = "sc://"
_PORT = 15002
_CONNECT_TIMEOUT = 10.0  # seconds
_MAX_RETRIES = 7  # with pauses of at most 5 seconds, 20 in total; the default of the client is ten minutes
_CONNECTION_LOST = re.compile(r'StatusCode\.UNAVAILABLE\s+details = "(.*)"')  # format of the gRPC client
_BINARY_COLLATION = "UTF8_BINARY"


def to_spark_sql(sql: str) -> str:
    """Translate SQL from the DuckDB dialect to Spark.

    >>> to_spark_sql("SELECT encode(CAST(a AS VARCHAR)) AS a FROM t")
    'SELECT CAST(a AS STRING) AS a FROM t'

    Raises
    ------
    MissingExtraError
        If sqlglot is not installed.
    """
    try:
        import sqlglot
        from sqlglot import exp
    except ImportError:
        raise MissingExtraError("sqlglot", "spark") from None
    tree: Any = sqlglot.parse_one(sql, read="duckdb")
    for kind in tree.find_all(exp.DataType):
        if kind.this == exp.DataType.Type.INT128:
            kind.replace(exp.DataType.build("decimal(38, 0)"))
    for encode in list(tree.find_all(exp.Encode)):  # Spark compares texts by bytes anyway: see `SparkTable`
        encode.replace(encode.this)
    for quantile in list(tree.find_all(exp.PercentileDisc)):  # sqlglot would write an approximate function, or none
        exact = exp.Anonymous(this="percentile_disc", expressions=[quantile.expression])
        order = exp.Order(expressions=[exp.Ordered(this=quantile.this)])
        quantile.replace(exp.WithinGroup(this=exact, expression=order))
    for cte in tree.find_all(exp.CTE):
        cte.set("materialized", None)  # Spark has no such keyword
    return tree.sql(dialect="spark")


@contextmanager
def translate_errors(where: str) -> Generator[None]:
    """Convert errors of Spark to an InputError of one sentence.

    Raises
    ------
    InputError
        In place of exceptions of pyspark, gRPC, and py4j (classic Spark).
    """
    try:
        with _quiet():
            yield
    except Exception as error:
        packages = {base.__module__.partition(".")[0] for base in type(error).__mro__}
        if not packages & {"pyspark", "grpc", "py4j"}:
            raise
        details = getattr(error, "details", None)  # of gRPC errors, whose str() fills a page
        message = str(details() or "" if callable(details) else error)
        if lost := _CONNECTION_LOST.search(message):
            problem = f"the connection to Spark was lost: {lost[1]:.300}".rstrip(".")
            raise InputError(problem, fix="check that Spark Connect is running, and try again", path=where) from None
        summary = next((line.strip() for line in message.splitlines() if line.strip()), "the connection was lost")
        fix = "write the name of the table with its catalog and schema, or check the log of the server"
        raise InputError(f"Spark says: {summary:.300}".rstrip("."), fix=fix, path=where) from None


def connect(address: str) -> tuple[Any, str]:
    """Open a session at sc://HOST[:PORT]/NAME[;PARAMETERS]; return the session and the name.

    Raises
    ------
    InputError
        If it is not an address of Spark Connect, or no server answers.
    MissingExtraError
        If the client is not installed.
    """
    if not address.startswith(_SCHEME):
        problem = "spark:// is the address of a standalone master, which accepts programs but no queries"
        fix = "start Spark Connect and use its address: sc://HOST:15002/TABLE"
        raise InputError(problem, fix=fix, path=address)
    import socket  # imported here to keep start-up fast
    from urllib.parse import urlsplit

    try:
        parts, path, parameters = urlsplit(address), *urlsplit(address).path.partition(";")[::2]
        host, port = parts.hostname, parts.port or _PORT
    except ValueError:
        parts, host, path, parameters, port = None, None, "", "", 0
    name = path.strip("/")
    if parts is None or not host or not name:
        raise InputError("the address has no table name", fix="write sc://HOST:PORT/TABLE", path=address)
    session_class = _client()
    try:
        socket.create_connection((host, port), _CONNECT_TIMEOUT).close()
    except OSError as error:
        fix = "start Spark Connect, or use the host and port on which it listens"
        raise InputError(
            f"no server answers at {host}:{port} ({error.strerror or error})", fix=fix, path=address
        ) from None
    remote = f"{_SCHEME}{parts.netloc}/" + (f";{parameters}" if parameters else "")
    with translate_errors(address):
        session = session_class.builder.remote(remote).create()
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")  # repeats our error message
    for policy in session.client.get_retry_policies():
        policy.max_retries, policy.max_backoff = _MAX_RETRIES, 5000
    return session, name


def _client() -> Any:
    """Import the Spark Connect client, which would exit the process if it finds no local Spark installation."""
    import os

    is_home_unset = "SPARK_HOME" not in os.environ
    if is_home_unset:
        os.environ["SPARK_HOME"] = os.curdir
    try:
        with _quiet():
            from pyspark.sql.connect.session import SparkSession
    except ImportError:
        raise MissingExtraError("pyspark-client", "spark") from None
    finally:
        if is_home_unset:
            del os.environ["SPARK_HOME"]
    return SparkSession


@contextmanager
def _quiet() -> Generator[None]:
    """Suppress warnings of pyspark about versions of pandas, which is not used here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class SparkTable:
    """A Spark data frame.

    Texts must be compared by bytes, as in the rest of the library. Columns with another collation, or of type CHAR,
    which pads texts with blanks, raise InputError.
    """

    fetches = False  # all rows may not fit into memory

    def __init__(self, frame: Any, where: str = "<spark>") -> None:
        self.frame, self.where = frame, where

    @classmethod
    def open(cls, address: str) -> SparkTable:
        """Open the table at sc://HOST:PORT/TABLE."""
        session, name = connect(address)
        with translate_errors(address):
            return cls(session.table(name), address.partition(";")[0])

    def schema(self) -> Any:
        """Return the columns of the data frame as an Arrow schema."""
        with translate_errors(self.where):
            fields = self.frame.schema.fields
        return pa.schema([(field.name, _arrow_type(field, self.where)) for field in fields])

    def query(self, sql: str, **tables: Table) -> Table:
        """Run a query on the data frame, which is named ``judged_rows``, and on small tables that are uploaded."""
        from uuid import uuid4

        session, suffix = self.frame.sparkSession, uuid4().hex
        view_names = {name: f"{name}_{suffix}" for name in ("judged_rows", *tables)}
        with translate_errors(self.where):
            self.frame.createOrReplaceTempView(view_names["judged_rows"])
            for name, table in tables.items():
                session.createDataFrame(table).hint("broadcast").createOrReplaceTempView(view_names[name])
            is_connected = True
            try:
                return session.sql(to_spark_sql(_replace_names(sql, view_names))).toArrow()
            except Exception as error:
                is_connected = _CONNECTION_LOST.search(str(error)) is None
                raise
            finally:
                for view_name in view_names.values() if is_connected else ():
                    session.catalog.dropTempView(view_name)


def _replace_names(sql: str, replacements: Mapping[str, str]) -> str:
    for name, replacement in replacements.items():
        sql = sql.replace(name, replacement)
    return sql


_KINDS = {
    "byte": pa.int8(), "short": pa.int16(), "integer": pa.int32(), "long": pa.int64(), "float": pa.float32(),
    "double": pa.float64(), "boolean": pa.bool_(), "binary": pa.binary(), "void": pa.null(),
}  # fmt: skip


def _arrow_type(field: Any, where: str) -> Any:
    kind: Any = field.dataType
    name = str(kind.typeName())
    if name.startswith(("string", "char", "varchar")):
        declared = str((field.metadata or {}).get("__CHAR_VARCHAR_TYPE_STRING", name))
        if declared.startswith("char"):
            problem = f"the column {field.name} is {declared}: its texts are padded with spaces to this width"
            raise InputError(problem, fix="store the column as STRING", path=where)
        if (collation := getattr(kind, "collation", _BINARY_COLLATION)) != _BINARY_COLLATION:
            problem = f"the column {field.name} has the collation {collation}: its texts are not compared byte by byte"
            fix = f"use a view that casts the column to STRING COLLATE {_BINARY_COLLATION}"
            raise InputError(problem, fix=fix, path=where)
        return pa.string()
    if name.startswith("decimal"):
        return pa.decimal128(kind.precision, kind.scale)
    if name not in _KINDS and any(canonical_names([field.name], "run")):
        problem = f"the column {field.name} is {kind.simpleString()}"
        raise InputError(problem, fix="store ids as STRING or BIGINT, scores as DOUBLE", path=where)
    return _KINDS.get(name, pa.null())
