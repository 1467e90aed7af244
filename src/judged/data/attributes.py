"""Attributes of topics: typed columns by which results are sliced, and bands of numbers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import pyarrow as pa

from judged.data.attribute_files import typed_attributes
from judged.data.documents import AttributeTable
from judged.data.topic_files import normalize_name
from judged.data.topics import Topics
from judged.errors import InputError
from judged.results.types import cached_property

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.results.blocks import Note
    from judged.results.types import Table

_MAX_NAMES = 8  # attributes in an error message


@dataclass(frozen=True, eq=False, repr=False)
class Attributes(AttributeTable):
    """Attributes of topics by query id: texts, numbers, or booleans. Immutable.

    Parameters
    ----------
    table
        Arrow table with the column ``query_id`` and one column for each attribute: string, float64 or bool; null if
        a topic has no value.
    where
        Source of the table in error messages.
    notes
        Notes on attributes, by name, which are shown with results that use the attribute.

    Raises
    ------
    InputError
        If it has no column of ids, or an id appears twice.

    Examples
    --------
    >>> attributes = Attributes.of({"q1": {"kind": "news", "words": 3}, "q2": {"kind": "law"}})
    >>> attributes
    Attributes(2 topics: kind, words)
    >>> attributes.column("words").to_pylist(), attributes.over(["q2", "q9"]).column("kind").to_pylist()
    ([3.0, None], ['law', None])
    """

    id_name: ClassVar[str] = "query_id"

    notes: Mapping[str, Note] = field(default_factory=dict[str, "Note"])

    @classmethod
    def of(cls, data: Any) -> Self:
        """Create a table from ``{query_id: {"kind": "news"}}``, `Topics`, a data frame, a list of dicts, or a path.

        Raises
        ------
        InputError
            If the object is none of these, or a record has no query id.
        """
        if isinstance(data, Topics):
            return cls(typed_attributes(data.table.drop_columns(["text"]), "query_id", data.where), data.where)
        return super().of(data)

    @property
    def query_ids(self) -> tuple[str, ...]:
        """Ids of the topics, in row order."""
        return self.ids

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {query_id: row for row, query_id in enumerate(self.query_ids)}

    def spelled(self, name: str) -> str:
        """Return the attribute's name as in the table: lower case with underscores, unless `name` is in it as is."""
        normalized = normalize_name(name)
        return normalized if name not in self.names and normalized in self.names else name

    def column(self, name: str) -> Any:
        """Return one attribute of all topics as an Arrow array of string, double or bool; null if it is missing.

        ``query_id`` is an attribute as well.

        Raises
        ------
        InputError
            If there is no such attribute.
        """
        name = self.spelled(name)
        if name not in self.table.column_names:
            ellipsis = ["..."] if len(self.names) > _MAX_NAMES else []
            names = ", ".join((*self.names[:_MAX_NAMES], *ellipsis, self.id_name))
            raise InputError(f"no attribute {name!r}", fix=f"use one of {names}")
        return self.table[name].combine_chunks()

    def numbers(self, name: str) -> dict[str, float]:
        """Return a numeric attribute by query id, without the topics that lack it.

        Raises
        ------
        InputError
            If there is no such attribute, or it is not a number.
        """
        column = self.column(name)
        if str(column.type) != "double":
            raise InputError(f"the attribute {name} is not a number", fix="use a numeric attribute")
        pairs = zip(self.query_ids, column.to_pylist(), strict=True)
        return {query_id: value for query_id, value in pairs if value is not None}

    def over(self, query_ids: Sequence[str]) -> Attributes:
        """Select topics, in the order of `query_ids`; a topic that is not in the table gets nulls."""
        rows = pa.array([self._rows.get(query_id) for query_id in query_ids], pa.int64())
        selected = self.table.take(rows) if self.table.num_rows else _null_rows(self.table, len(query_ids))
        id_position = self.table.column_names.index("query_id")
        selected = selected.set_column(id_position, "query_id", pa.array(query_ids, pa.string()))
        return Attributes(selected, self.where, self.notes)

    def joined(self, other: Attributes) -> Attributes:
        """Merge with another table over the topics of both; if both have an attribute, this table's values are used.

        >>> kinds, lengths = Attributes.of({"q1": {"kind": "news"}}), Attributes.of({"q2": {"words": 2}})
        >>> kinds.joined(lengths).table.to_pydict()
        {'query_id': ['q1', 'q2'], 'kind': ['news', None], 'words': [None, 2.0]}
        """
        query_ids = self.query_ids + tuple(query_id for query_id in other.query_ids if query_id not in self._rows)
        merged, other = self.over(query_ids).table, other.over(query_ids)
        notes = {**self.notes, **{name: note for name, note in other.notes.items() if name not in self.names}}
        for name in other.names:
            if name not in merged.column_names:
                merged = merged.append_column(name, other.column(name))
        return Attributes(merged, self.where, notes)


def _null_rows(table: Table, rows: int) -> Table:
    return pa.table({field.name: pa.nulls(rows, field.type) for field in table.schema})


class Bands(NamedTuple):
    """Named ranges of a number.

    >>> Bands((2, 4), ("1", "2-3", "4+")).labels([1, 2, 3, 4, None])
    ['1', '2-3', '2-3', '4+', None]
    """

    starts: tuple[float, ...]  # inclusive lower limits of all ranges but the first, ascending
    names: tuple[str, ...]  # one more than `starts`

    def label(self, value: float | None) -> str | None:
        """Return the name of the range that contains a value; None for None."""
        return None if value is None else self.names[bisect_right(self.starts, value)]

    def labels(self, values: Iterable[float | None]) -> list[str | None]:
        """Return the name of the range of each value."""
        return [self.label(value) for value in values]
