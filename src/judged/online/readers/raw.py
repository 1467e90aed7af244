"""Raw tables of a log: its rows as logged, findings about unusable rows, and writing rows into the database."""

from __future__ import annotations

import uuid
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from judged.online.engine import identifier
from judged.online.findings import rule_texts
from judged.online.log import LogColumn, arrow_type

if TYPE_CHECKING:
    from judged.online.engine import Database, Relation

MAX_PLACES = 5  # places that a finding lists


@dataclass(frozen=True)
class ReadFinding:
    """Rows or values that a reader could not use, all for the same reason.

    Parameters
    ----------
    rule
        Stable name: ``broken-json``, ``odd-time``, ``wrong-type``, ``absent-column``.
    table
        ``query``, ``event`` or ``file``; ``folder`` for files that were skipped; ``column`` for unused columns.
    rows
        Number of rows, or of files in a folder.
    lost
        Whether the rows are missing from the raw tables. If false, a value in them is null.
    problem, fix
        Description of the problem, and how to fix it.
    places
        First few places, as ``file:line``.
    total
        Number of rows that the rule applies to; 0: those of the table.
    """

    rule: str
    table: str
    rows: int
    lost: bool
    problem: str
    fix: str
    places: tuple[str, ...] = ()
    total: int = 0

    @classmethod
    def from_rule(
        cls, where: str, rule: str, table: str, *places: str, rows: int = 1, lost: bool = False, **words: str
    ) -> ReadFinding:
        """Create a finding with the texts of a rule in ``rules.toml``."""
        return cls(rule, table, rows, lost, *rule_texts(where, rule, **words), places)


class ReadFindings:
    """Findings, merged by rule and text."""

    def __init__(self, findings: Iterable[ReadFinding] = ()) -> None:
        self._findings: dict[tuple[object, ...], ReadFinding] = {}
        for finding in findings:
            self.add(finding)

    def add(self, finding: ReadFinding) -> None:
        """Add a finding."""
        # The text is part of the key, as it can name a column or value.
        key = (finding.rule, finding.table, finding.lost, finding.problem, finding.fix)
        if (previous := self._findings.get(key)) is not None:
            places = (*previous.places, *finding.places)[:MAX_PLACES]
            finding = replace(previous, rows=previous.rows + finding.rows, places=places)
        self._findings[key] = finding

    def add_line(self, file_name: str, rule: str, line: int) -> None:
        """Add a line that is lost, or in which invalid bytes were replaced."""
        self.add(ReadFinding.from_rule("mapping", rule, "file", f"{file_name}:{line}", lost=rule != "not-utf8"))

    def to_tuple(self) -> tuple[ReadFinding, ...]:
        """Return the merged findings."""
        return tuple(self._findings.values())


@dataclass(frozen=True)
class RawLog:
    """A log as it was written.

    Parameters
    ----------
    queries, events
        Tables of the engine with the columns RAW_QUERY and RAW_EVENT. Attributes follow the columns of the queries.
    layout
        Name of the reader: ``ubi``, ``wscd``, ``trec-session``, ``open-bandit``, ``clickmodels`` or ``mapping``.
    files
        File names as the user wrote them.
    rank_base
        Position of the first result, 0 or 1. None: it is derived from the positions.
    propensity_convention
        Meaning of the propensities, one of PROPENSITY_CONVENTIONS. Empty: the log does not declare it.
    actions
        Meaning of the log's action names that the layout or mapping declares, from name to one of ACTIONS.
    lines
        Number of records read, including lost ones.
    findings
        Rows and values that could not be used.
    has_time
        Whether the log has timestamps. If false, times are ordinals, and no durations are reported.
    dated
        Whether timestamps include the date. If false, the dates are artificial.
    logs_empty_pages
        Whether pages without results are logged. If false, their share is not reported.
    logs_unclicked_pages
        Whether pages without clicks are logged. If false, their share is not reported.
    """

    queries: Relation
    events: Relation
    layout: str
    files: tuple[str, ...]
    rank_base: int | None = None
    propensity_convention: str = ""
    actions: Mapping[str, str] = field(default_factory=dict[str, str])
    lines: int = 0
    findings: tuple[ReadFinding, ...] = ()
    has_time: bool = True
    dated: bool = True
    logs_empty_pages: bool = True
    logs_unclicked_pages: bool = True


_BATCH_ROWS = 20_000  # rows that a writer holds in memory

DUCKDB_TYPES = {
    "int64": "BIGINT", "int32": "INTEGER", "float64": "DOUBLE", "string": "VARCHAR", "boolean": "BOOLEAN",
    "array<string>": "VARCHAR[]", "array<int32>": "INTEGER[]", "array<float64>": "DOUBLE[]",
}  # fmt: skip


def unique_name(prefix: str) -> str:
    """Return an unused name for a table."""
    return f"{prefix}_{uuid.uuid4().hex[:12]}"


def select_list(
    columns: Sequence[LogColumn], sql: Mapping[str, str], attributes: Mapping[str, str] | None = None
) -> str:
    """Return the columns of a SELECT: given expressions, NULL for other columns, then the attributes.

    >>> columns = LogColumn("row", "int64", False, ""), LogColumn("page", "int32", True, "")
    >>> select_list(columns, {"row": "n"}, {"day": "d"})
    'CAST(n AS BIGINT) AS "row", CAST(NULL AS INTEGER) AS "page", CAST(d AS VARCHAR) AS "day"'
    """
    selected = [
        f"CAST({sql.get(column.name, 'NULL')} AS {DUCKDB_TYPES[column.type]}) AS {identifier(column.name)}"
        for column in columns
    ]
    selected += [f"CAST({value} AS VARCHAR) AS {identifier(name)}" for name, value in (attributes or {}).items()]
    return ", ".join(selected)


def run_sql(engine: Database, sql: str) -> list[tuple[Any, ...]]:
    """Run SQL and return its rows."""
    return engine.con.execute(sql).fetchall()


class TableWriter:
    """A new table that is written row by row, in batches."""

    def __init__(
        self, engine: Database, name: str, columns: Sequence[LogColumn], attributes: Sequence[str] = ()
    ) -> None:
        self.name = unique_name(name)
        self._engine = engine
        self._columns = (*columns, *(LogColumn(attribute, "string", True, "") for attribute in attributes))
        self._pending: list[Sequence[Any]] = []
        definitions = ", ".join(f"{identifier(column.name)} {DUCKDB_TYPES[column.type]}" for column in self._columns)
        engine.con.execute(f"CREATE TABLE {self.name} ({definitions})")

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row. Columns that it lacks are null."""
        self.add_values([row.get(column.name) for column in self._columns])

    def add_values(self, values: Sequence[Any]) -> None:
        """Add a row by the values of all columns, in order."""
        self._pending.append(values)
        if len(self._pending) >= _BATCH_ROWS:
            self._flush()

    def finish(self) -> Relation:
        """Write the pending rows and return the table."""
        self._flush()
        return self._engine.table(self.name)

    def _flush(self) -> None:
        import pyarrow as pa

        if not self._pending:
            return
        schema = pa.schema([pa.field(column.name, arrow_type(column.type)) for column in self._columns])
        columns = zip(zip(*self._pending, strict=True), schema.types, strict=True)
        arrays = [pa.array(values, kind) for values, kind in columns]
        self._pending.clear()
        name, con = unique_name("batch"), self._engine.con
        # DuckDB inserts from Arrow by column, which is much faster than by row.
        con.register(name, pa.table(arrays, schema=schema))
        try:
            con.execute(f"INSERT INTO {self.name} SELECT * FROM {name}")
        finally:
            con.unregister(name)


def locate_rows(
    engine: Database, file_names: Sequence[str], table: str, condition: str, finding: ReadFinding
) -> tuple[ReadFinding, ...]:
    """Return the finding with the number and places of the rows that meet an SQL condition; empty if none does.

    The table needs the columns ``file`` and ``row``.
    """
    matches = f"FROM {table} WHERE {condition}"
    count = run_sql(engine, f"SELECT count(*) {matches}")[0][0]
    if not count:
        return ()
    first = run_sql(engine, f"SELECT file, row {matches} ORDER BY file, row LIMIT {MAX_PLACES}")
    return (replace(finding, rows=count, places=tuple(f"{file_names[file]}:{row}" for file, row in first)),)


@contextmanager
def temporary_tables(engine: Database, *names: str) -> Generator[None]:
    """Drop tables at the end of the block."""
    try:
        yield
    finally:
        for name in names:
            engine.con.execute(f"DROP TABLE IF EXISTS {name}")
