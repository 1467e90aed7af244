"""Tables behind a session of Spark, classic or Connect: our SQL in its words, and its complaints in ours."""

from __future__ import annotations

import re
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from judged.data.layout import canonical
from judged.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from judged.results.types import Table

_SCHEME = "sc://"
_PORT = 15002
_PATIENCE = 10.0  # seconds for a server to answer at all
_RETRIES = 7  # with pauses of at most five seconds, 20 in all; its client would go on for ten minutes
_BROKEN = re.compile(r'StatusCode\.UNAVAILABLE\s+details = "(.*)"')  # how its client writes it
_BINARY = "UTF8_BINARY"


def in_spark(sql: str) -> str:
    """Translate what is written for DuckDB.

    >>> in_spark("SELECT encode(CAST(a AS VARCHAR)) AS a FROM t")
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
    for encoded in list(tree.find_all(exp.Encode)):  # Spark's texts are bytes already: see `SparkTable`
        encoded.replace(encoded.this)
    for one in list(tree.find_all(exp.PercentileDisc)):  # of which it would make an approximate one, or none
        whole = exp.Anonymous(this="percentile_disc", expressions=[one.expression])
        one.replace(exp.WithinGroup(this=whole, expression=exp.Order(expressions=[exp.Ordered(this=one.this)])))
    for named in tree.find_all(exp.CTE):
        named.set("materialized", None)  # Spark joins in the order that is written
    return tree.sql(dialect="spark")


@contextmanager
def complaints(where: str) -> Generator[None]:
    """Say in a sentence what Spark says in a page.

    Raises
    ------
    InputError
        In the place of the errors of pyspark, of its connection, and of classic Spark's Java.
    """
    try:
        with _quiet():
            yield
    except Exception as error:
        kinds = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
        if not kinds & {"pyspark", "grpc", "py4j"}:
            raise
        details = getattr(error, "details", None)  # those of a connection; what it writes of itself is a page
        said = str(details() or "" if callable(details) else error)
        if broken := _BROKEN.search(said):
            problem = f"the connection to Spark broke: {broken[1]:.300}".rstrip(".")
            raise InputError(problem, fix="see whether Spark Connect runs there, and ask again", path=where) from None
        first = next((line.strip() for line in said.splitlines() if line.strip()), "the connection broke")
        fix = "name the table with its catalog and schema, or look at what the server has logged"
        raise InputError(f"Spark says: {first:.300}".rstrip("."), fix=fix, path=where) from None


def connected(address: str) -> tuple[Any, str]:
    """Open a session at sc://HOST[:PORT]/NAME[;PARAMETERS] and give it with the name.

    Raises
    ------
    InputError
        If it is no address of Spark Connect, or nobody answers there.
    MissingExtraError
        If the client is not installed.
    """
    if not address.startswith(_SCHEME):
        problem = "spark:// is the address of a standalone master, which takes programs and no queries"
        fix = "start Spark Connect beside it and give its address: sc://HOST:15002/TABLE"
        raise InputError(problem, fix=fix, path=address)
    import socket  # start-up time is a feature
    from urllib.parse import urlsplit

    try:
        parts, path, parameters = urlsplit(address), *urlsplit(address).path.partition(";")[::2]
        host, port = parts.hostname, parts.port or _PORT
    except ValueError:
        parts, host, path, parameters, port = None, None, "", "", 0
    name = path.strip("/")
    if parts is None or not host or not name:
        raise InputError("this names no table", fix="write sc://HOST:PORT/TABLE", path=address)
    session_class = _client()
    try:
        socket.create_connection((host, port), _PATIENCE).close()
    except OSError as error:
        fix = "start Spark Connect there, or name the host and port at which it listens"
        raise InputError(
            f"nobody answers at {host}:{port} ({error.strerror or error})", fix=fix, path=address
        ) from None
    remote = f"{_SCHEME}{parts.netloc}/" + (f";{parameters}" if parameters else "")
    with complaints(address):
        session = session_class.builder.remote(remote).create()
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")  # its threads say so behind our sentence
    for policy in session.client.get_retry_policies():
        policy.max_retries, policy.max_backoff = _RETRIES, 5000
    return session, name


def _client() -> Any:
    """Import the client of Spark Connect; it looks for a Spark on this machine, and would end where it finds none."""
    import os

    looked_for = "SPARK_HOME" not in os.environ
    if looked_for:
        os.environ["SPARK_HOME"] = os.curdir
    try:
        with _quiet():
            from pyspark.sql.connect.session import SparkSession
    except ImportError:
        raise MissingExtraError("pyspark-client", "spark") from None
    finally:
        if looked_for:
            del os.environ["SPARK_HOME"]
    return SparkSession


@contextmanager
def _quiet() -> Generator[None]:
    """Leave out what pyspark warns of: versions of pandas, which nothing here uses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class SparkTable:
    """A data frame of Spark.

    Its texts are compared by their bytes, as ours are, unless a column has another collation, or pads to a width:
    such columns are refused.
    """

    fetches = False  # all of its rows may be more than this machine holds

    def __init__(self, frame: Any, where: str = "<spark>") -> None:
        self.frame, self.where = frame, where

    @classmethod
    def at(cls, address: str) -> SparkTable:
        """Open the table of an address, sc://HOST:PORT/TABLE."""
        session, name = connected(address)
        with complaints(address):
            return cls(session.table(name), address.partition(";")[0])

    def schema(self) -> Any:
        """Give the columns, their types as Arrow has them."""
        with complaints(self.where):
            fields = self.frame.schema.fields
        return pa.schema([(field.name, _arrow_type(field, self.where)) for field in fields])

    def ask(self, sql: str, **given: Table) -> Table:
        """Run a query over ``judged_rows``, which is the table, and over small tables that are sent there."""
        from uuid import uuid4

        session, mark = self.frame.sparkSession, uuid4().hex
        names = {"judged_rows": f"judged_rows_{mark}"} | {name: f"{name}_{mark}" for name in given}
        with complaints(self.where):
            self.frame.createOrReplaceTempView(names["judged_rows"])
            for name, rows in given.items():
                session.createDataFrame(rows).hint("broadcast").createOrReplaceTempView(names[name])
            connected = True
            try:
                return session.sql(in_spark(_renamed(sql, names))).toArrow()
            except Exception as error:
                connected = _BROKEN.search(str(error)) is None
                raise
            finally:
                for name in names.values() if connected else ():
                    session.catalog.dropTempView(name)


def _renamed(sql: str, names: Mapping[str, str]) -> str:
    for name, own in names.items():
        sql = sql.replace(name, own)
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
            problem = f"the column {field.name} is {declared}: blanks are added to its texts, up to that width"
            raise InputError(problem, fix="store it as STRING", path=where)
        if (collation := getattr(kind, "collation", _BINARY)) != _BINARY:
            problem = f"the column {field.name} has the collation {collation}: its texts are not compared byte by byte"
            raise InputError(problem, fix=f"give a view that casts it to STRING COLLATE {_BINARY}", path=where)
        return pa.string()
    if name.startswith("decimal"):
        return pa.decimal128(kind.precision, kind.scale)
    if name not in _KINDS and any(canonical([field.name], "run")):
        problem = f"the column {field.name} is {kind.simpleString()}"
        raise InputError(problem, fix="give ids as STRING or BIGINT, scores as DOUBLE", path=where)
    return _KINDS.get(name, pa.null())
