"""Attributes of documents such as length, cost, or group, which a few measures need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import pyarrow as pa

from judged.data import files
from judged.data.attribute_files import ENTITIES, read_attributes, record_with_id, typed_attributes
from judged.data.compute import pc
from judged.data.index import id_text
from judged.data.rows import table_of
from judged.errors import InputError
from judged.results.types import cached_property

if TYPE_CHECKING:
    from judged.results.types import Strings, Table


@dataclass(frozen=True, eq=False)
class AttributeTable:
    """Table of attributes by id: texts, numbers, or booleans; null if a value is missing."""

    id_name: ClassVar[str]

    table: Table
    where: str = "<table>"

    def __post_init__(self) -> None:
        if self.id_name not in self.table.column_names:
            problem = f"no {self.id_name} among the columns {', '.join(self.table.column_names)}"
            raise InputError(problem, fix=f"use a column named {self.id_name}", path=self.where)
        check_unique_ids(self.table, self.id_name, self.where)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a file with named columns: CSV, TSV, JSON, JSONL, Parquet or Arrow, compressed or not.

        Raises
        ------
        InputError
            If the file cannot be read as a table with a column of ids.
        """
        return cls(read_attributes(path, cls.id_name), files.STDIN if str(path) == "-" else str(path))

    @classmethod
    def of(cls, data: Any) -> Self:
        """Create a table from ``{id: {"name": value}}``, a data frame, a list of dicts, or a path.

        Raises
        ------
        InputError
            If the object is none of these, or a record has no id.
        """
        if isinstance(data, cls):
            return data
        if isinstance(data, (str, Path)):
            return cls.read(data)
        if hasattr(data, "__arrow_c_stream__") or isinstance(data, (pa.Table, pa.RecordBatch)):
            return cls(typed_attributes(table_of(data), cls.id_name, "<table>"))
        if isinstance(data, Mapping):
            rows = [
                record_with_id(cls.id_name, id_text(key, cls.id_name), cls._record(fields), "<dict>")
                for key, fields in cast("Mapping[Any, Any]", data).items()
            ]
        elif isinstance(data, Iterable):
            rows = [dict(cls._record(record)) for record in cast("Iterable[Any]", data)]
        else:
            problem = (
                f"an object of type {type(data).__name__} cannot be read as attributes of {ENTITIES[cls.id_name]}s"
            )
            raise InputError(problem, fix='use {"id": {"name": "value"}}, a data frame, or a path')
        where = "<dict>" if isinstance(data, Mapping) else "<records>"
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {str(name): _array([row.get(name) for row in rows], where) for name in names}
        return cls(typed_attributes(pa.table(columns), cls.id_name, where), where)

    @classmethod
    def _record(cls, record: Any) -> Mapping[str, Any]:
        if isinstance(record, Mapping):
            return cast("Mapping[str, Any]", record)
        problem = f"the attributes of a {ENTITIES[cls.id_name]} must be a dict, got {record!r:.40}"
        raise InputError(problem, fix='use {"id": {"name": "value"}}')

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the attributes."""
        return tuple(name for name in self.table.column_names if name != self.id_name)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Ids of the topics or documents, in row order."""
        return tuple(self.table[self.id_name].to_pylist())

    def __len__(self) -> int:
        return self.table.num_rows

    def __repr__(self) -> str:
        names = ", ".join(self.names) or "nothing known"
        return f"{type(self).__name__}({len(self)} {ENTITIES[self.id_name]}s: {names})"

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the table through the Arrow C stream interface."""
        return pa.table(self.table).__arrow_c_stream__(requested_schema)


def check_unique_ids(table: Table, id_name: str, where: str) -> None:
    """Raise InputError if an id appears twice."""
    if len(pc.unique(table[id_name])) < table.num_rows:
        counts = pc.value_counts(table[id_name]).to_pylist()
        duplicate = next(count["values"] for count in counts if count["counts"] > 1)
        entity = ENTITIES[id_name]
        raise InputError(f"{entity} {duplicate} appears twice", fix=f"keep one row per {entity}", path=where)


def _array(values: list[Any], where: str) -> Any:
    """Convert values to an Arrow array; values of mixed types become text."""
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, OverflowError):
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    except UnicodeEncodeError:
        problem = "a text has an unpaired surrogate (invalid Unicode)"
        raise InputError(problem, fix="correct the text", path=where) from None


_MAX_EXAMPLES = 3  # ids in an error message


class Documents(AttributeTable):
    """Attributes of documents by document id. Immutable.

    Parameters
    ----------
    table
        Arrow table with the column ``doc_id`` and one column for each attribute that a measure needs, such as
        ``length``, ``cost`` or ``group``.
    where
        Source of the table in error messages.

    Raises
    ------
    InputError
        If it has no column ``doc_id``, or a document appears twice.

    Examples
    --------
    >>> Documents.of({"d1": {"length": 120, "group": "a"}, "d2": {"length": 80, "group": "b"}})
    Documents(2 documents: length, group)
    """

    id_name: ClassVar[str] = "doc_id"

    def column(self, name: str, docs: Strings) -> Any:
        """Return the values of one attribute for many documents, in the order of `docs`.

        Raises
        ------
        InputError
            If there is no such column, or a document has no value in it.
        """
        if name not in self.names:
            names = ", ".join(self.names) or "none"
            raise InputError(
                f"no column {name!r}: the columns are {names}", fix=f"add a column {name}", path=self.where
            )
        values = self.table[name].take(pc.index_in(docs, value_set=self.table["doc_id"].combine_chunks()))
        if values.null_count:
            missing = docs.filter(pc.is_null(values).combine_chunks())
            examples = ", ".join(missing.slice(0, _MAX_EXAMPLES).to_pylist())
            problem = f"{len(missing)} returned documents have no {name}: {examples}"
            raise InputError(problem, fix="add these values to the table of documents", path=self.where)
        return values.combine_chunks()
