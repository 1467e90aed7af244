"""What is known of topics besides their text: typed columns, by which results are sliced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import pyarrow as pa

from judged.data import files
from judged.data.compute import pc
from judged.data.fact_files import id_place, read_facts, typed_column, under_id
from judged.data.ids import id_column, id_text
from judged.data.rows import table_of
from judged.data.topic_records import plain_name
from judged.data.topics import Topics
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Table

_SHOWN = 8


@dataclass(frozen=True, eq=False)
class Attributes:
    """Attributes of topics, by query id: texts, numbers, or true and false. Immutable.

    Parameters
    ----------
    table
        Arrow table with the column ``query_id`` and one for each attribute: string, float64 or bool; null where a
        topic has no value.
    where
        The path it came from.

    Raises
    ------
    InputError
        If it has no column of ids, an id stands in it twice, or a column is of another type.

    Examples
    --------
    >>> known = Attributes.of({"q1": {"kind": "news", "words": 3}, "q2": {"kind": "law"}})
    >>> known
    Attributes(2 topics: kind, words)
    >>> known.column("words").to_pylist(), known.over(["q2", "q9"]).column("kind").to_pylist()
    ([3.0, None], ['law', None])
    """

    table: Table = field(repr=False)
    where: str = "<table>"

    def __post_init__(self) -> None:
        if "query_id" not in self.table.column_names:
            found = ", ".join(self.table.column_names)
            raise InputError(f"no query_id among its columns {found}", fix="name a column query_id", path=self.where)
        if len(self._rows) < self.table.num_rows:
            counts = pc.value_counts(self.table["query_id"]).to_pylist()
            twice = next(entry["values"] for entry in counts if entry["counts"] > 1)
            raise InputError(f"topic {twice} stands in it twice", fix="keep one row a topic", path=self.where)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read attributes from a file with named columns: CSV, TSV, JSON, JSONL, Parquet or Arrow.

        Raises
        ------
        InputError
            If the file cannot be read so.
        """
        where = files.STDIN if str(path) == "-" else str(path)
        return cls(_renamed(read_facts(path), where), where)

    @classmethod
    def of(cls, data: Any) -> Self:
        """Take ``{query_id: {"kind": "news"}}``, `Topics`, a data frame, a list of dicts, or a path.

        Raises
        ------
        InputError
            If the object cannot be read so.
        """
        if isinstance(data, cls):
            return data
        if isinstance(data, (str, Path)):
            return cls.read(data)
        if isinstance(data, Topics):
            return cls(_typed(data.table.drop_columns(["text"]), data.where), data.where)
        if isinstance(data, Mapping):
            known = cast("Mapping[Any, Any]", data)
            rows = [
                under_id("query_id", id_text(query, "query id"), _record(one), "<dict>") for query, one in known.items()
            ]
            return cls(_typed(_table(rows), "<dict>"), "<dict>")
        if hasattr(data, "__arrow_c_stream__") or isinstance(data, (pa.Table, pa.RecordBatch)):
            return cls(_typed(table_of(data), "<table>"))
        if isinstance(data, Iterable):
            rows = [dict(_record(one)) for one in cast("Iterable[Any]", data)]
            return cls(_typed(_table(rows), "<records>"), "<records>")
        raise InputError(f"a {type(data).__name__} tells nothing of topics", fix='give {"q1": {"kind": "news"}}')

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return tuple(name for name in self.table.column_names if name != "query_id")

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        """The topics, in the order of the rows."""
        return tuple(self.table["query_id"].to_pylist())

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {query_id: row for row, query_id in enumerate(self.query_ids)}

    def spelled(self, name: str) -> str:
        """Spell a name as tables are read, in lower case with underscores, where it is not known as it stands."""
        plain = plain_name(name)
        return plain if name not in self.names and plain in self.names else name

    def column(self, name: str) -> Any:
        """Give one attribute of all topics as an Arrow array: string, double or bool, null where it is not known.

        ``query_id`` is one as well.

        Raises
        ------
        InputError
            If there is no such attribute.
        """
        name = self.spelled(name)
        if name not in self.table.column_names:
            known = ", ".join(self.names[:_SHOWN]) + (", ..." if len(self.names) > _SHOWN else "")
            raise InputError(f"no attribute {name!r}", fix=f"one of {known or 'none: there are no attributes'}")
        return self.table[name].combine_chunks()

    def numbers(self, name: str) -> dict[str, float]:
        """Give an attribute that is a number, by query id, of the topics that have it.

        Raises
        ------
        InputError
            If there is no such attribute, or it is no number.
        """
        column = self.column(name)
        if str(column.type) != "double":
            raise InputError(f"the attribute {name} is no number", fix="name one that is")
        pairs = zip(self.query_ids, column.to_pylist(), strict=True)
        return {query: value for query, value in pairs if value is not None}

    def over(self, query_ids: Sequence[str]) -> Attributes:
        """Give these topics, in this order; one that is not here has no values."""
        rows = pa.array([self._rows.get(query_id) for query_id in query_ids], pa.int64())
        taken = self.table.take(rows) if self.table.num_rows else _nothing(self.table, len(query_ids))
        at = self.table.column_names.index("query_id")
        return Attributes(taken.set_column(at, "query_id", pa.array(query_ids, pa.string())), self.where)

    def joined(self, other: Attributes) -> Attributes:
        """Add the attributes of another table, over the topics of both; an attribute of this one goes before.

        >>> one, two = Attributes.of({"q1": {"kind": "news"}}), Attributes.of({"q2": {"words": 2}})
        >>> one.joined(two).table.to_pydict()
        {'query_id': ['q1', 'q2'], 'kind': ['news', None], 'words': [None, 2.0]}
        """
        query_ids = self.query_ids + tuple(query for query in other.query_ids if query not in self._rows)
        made, more = self.over(query_ids).table, other.over(query_ids)
        for name in more.names:
            if name not in made.column_names:
                made = made.append_column(name, more.column(name))
        return Attributes(made, self.where)

    def __len__(self) -> int:
        return self.table.num_rows

    def __repr__(self) -> str:
        return f"Attributes({len(self)} topics: {', '.join(self.names) or 'nothing known'})"

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand the table to any library that reads Arrow."""
        return pa.table(self.table).__arrow_c_stream__(requested_schema)


def _record(known: Any) -> Mapping[str, Any]:
    if not isinstance(known, Mapping):
        raise InputError(f"{known!r:.40} tells nothing of a topic", fix='give {"q1": {"kind": "news"}}')
    return cast("Mapping[str, Any]", known)


def _table(rows: list[dict[str, Any]]) -> Table:
    """Make a table of records that may lack fields; a field of several types becomes text."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [row.get(name) for row in rows] for name in names}
    made = dict[str, Any]()
    for name, values in columns.items():
        try:
            made[name] = pa.array(values)
        except (pa.ArrowException, TypeError, OverflowError):
            made[name] = pa.array([None if value is None else str(value) for value in values], pa.string())
    return pa.table(made)


def _typed(table: Table, where: str) -> Table:
    """Name the column of ids, and give every other one of the three types."""
    table = _renamed(table, where)
    try:
        made = {
            name: id_column(column, name) if name == "query_id" else typed_column(column, name)
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
    except InputError as error:
        raise InputError(error.problem, fix=error.fix, path=where) from None
    return pa.table(made)


def _renamed(table: Table, where: str) -> Table:
    """Name the column of ids, and write the other names plainly."""
    names = [plain_name(name) for name in table.column_names]
    of_id = id_place(names, "query_id")
    if of_id is None:
        found = ", ".join(table.column_names)[:80]
        raise InputError(f"no query_id among its columns {found}", fix="name a column query_id", path=where)
    names[of_id] = "query_id"
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise InputError(f"two columns are called {twice}", fix="name each once", path=where)
    return table.rename_columns(names)


def _nothing(table: Table, rows: int) -> Table:
    return pa.table({field.name: pa.nulls(rows, field.type) for field in table.schema})
