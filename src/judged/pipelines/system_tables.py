"""Base of the tables of systems: responses of RAG systems, and trajectories of agents."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from judged.data.compute import pc
from judged.errors import InputError
from judged.results.spelling import use_one_of
from judged.results.types import cached_property

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Self

    from judged.data.records import TableSet
    from judged.results.blocks import Note
    from judged.results.types import Table


@dataclass(frozen=True, eq=False, repr=False)
class SystemTables:
    """Related tables of one or several systems. Immutable.

    Rows of a system have its name in the column ``run_id``; tables without this column belong to all systems.
    """

    table_set: ClassVar[TableSet]
    main: ClassVar[str]  # table with a row for each answer or trial

    tables: Mapping[str, Table]
    name: str = ""
    where: str = ""
    notes: tuple[Note, ...] = ()

    def __getitem__(self, name: str) -> Table:
        """Return a table; an empty one if it is missing."""
        return self.table_set.of(self.tables, name, self.where)

    def __len__(self) -> int:
        return self[self.main].num_rows

    @cached_property
    def run_names(self) -> tuple[str, ...]:
        """Names of the systems, in the order of their first row."""
        return tuple(self[self.main]["run_id"].unique().to_pylist())

    def of_run(self, run: str) -> Self:
        """Select one system; tables without systems are unchanged."""
        if run not in self.run_names:
            raise InputError(f"no {self.main} of system {run!r}", fix=use_one_of(self.run_names), path=self.where)
        return self if self.run_names == (run,) else self._select("run_id", [run])

    def of_topics(self, topics: Iterable[str]) -> Self:
        """Select topics."""
        return self._select("query_id", topics)

    def _select(self, column: str, values: Iterable[str]) -> Self:
        selected = pa.array(sorted(values), pa.string())
        tables = {
            name: table.filter(pc.is_in(table[column], value_set=selected)) if column in table.column_names else table
            for name, table in self.tables.items()
        }
        return replace(self, tables=tables)

    def with_run_name(self, name: str) -> Self:
        """Select the system of this name; a single system with another name is renamed."""
        if name in self.run_names or len(self.run_names) > 1:
            return self.of_run(name)
        tables = dict(self.tables)
        for key, table in self.tables.items():
            if "run_id" in table.column_names:
                run_ids = pa.repeat(pa.scalar(name, pa.string()), table.num_rows)
                tables[key] = table.set_column(table.column_names.index("run_id"), "run_id", run_ids)
        return replace(self, tables=tables)

    def with_tables(self, **tables: Any) -> Self:
        """Return a copy with some tables replaced."""
        new = {name: self.table_set.table(name, table) for name, table in tables.items()}
        return replace(self, tables={**self.tables, **new})

    def grouped(self, table: str, by: Sequence[str], order: str = "") -> dict[tuple[Any, ...], list[dict[str, Any]]]:
        """Group the rows of a table by some columns; within groups, sort by `order`."""
        rows = self[table].sort_by(order) if order else self[table]
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in rows.to_pylist():
            groups.setdefault(tuple(row[name] for name in by), []).append(row)
        return groups

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Combine the systems of several objects; rows that belong to no system are not repeated.

        Raises
        ------
        InputError
            If two of them have a system of the same name.
        """
        names = Counter(name for part in parts for name in part.run_names)
        if repeated := [name for name, count in names.items() if count > 1]:
            fix = "rename one of them: OTHER=PATH"
            raise InputError(f"two systems have the name {repeated[0]!r}", fix=fix, path=parts[-1].where)
        joined = {name: pa.concat_tables([part[name] for part in parts]) for name in cls.table_set.schemas}
        tables = {
            name: table if "run_id" in table.column_names else distinct_rows(table)
            for name, table in joined.items()
            if table.num_rows
        }
        where = ", ".join(part.where for part in parts)
        notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
        return parts[0] if len(parts) == 1 else cls(tables, where=where, notes=notes)


def distinct_rows(table: Table) -> Table:
    """Remove repeated rows; the others keep their order."""
    return table.group_by(table.column_names, use_threads=False).aggregate([])
