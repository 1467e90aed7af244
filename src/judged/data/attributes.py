"""Facts about topics besides their text: typed columns, by which results are sliced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa

from judged.data.documents import Facts
from judged.data.fact_files import typed_facts
from judged.data.topic_files import plain_name
from judged.data.topics import Topics
from judged.errors import InputError
from judged.results.types import cached_property

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.results.types import Table

_SHOWN = 8


class Attributes(Facts):
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
        If it has no column of ids, an id appears in it twice, or a column is of another type.

    Examples
    --------
    >>> known = Attributes.of({"q1": {"kind": "news", "words": 3}, "q2": {"kind": "law"}})
    >>> known
    Attributes(2 topics: kind, words)
    >>> known.column("words").to_pylist(), known.over(["q2", "q9"]).column("kind").to_pylist()
    ([3.0, None], ['law', None])
    """

    id_name: ClassVar[str] = "query_id"

    @classmethod
    def of(cls, data: Any) -> Self:
        """Take ``{query_id: {"kind": "news"}}``, `Topics`, a data frame, a list of dicts, or a path.

        Raises
        ------
        InputError
            If the object cannot be read so.
        """
        if isinstance(data, Topics):
            return cls(typed_facts(data.table.drop_columns(["text"]), "query_id", data.where), data.where)
        return super().of(data)

    @property
    def query_ids(self) -> tuple[str, ...]:
        """The topics, in the order of the rows."""
        return self.ids

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
            known = ", ".join((*self.names[:_SHOWN], *(["..."] if len(self.names) > _SHOWN else []), self.id_name))
            raise InputError(f"no attribute {name!r}", fix=f"use one of {known}")
        return self.table[name].combine_chunks()

    def numbers(self, name: str) -> dict[str, float]:
        """Give an attribute that is a number, by query id, of the topics that have it.

        Raises
        ------
        InputError
            If there is no such attribute, or it is not a number.
        """
        column = self.column(name)
        if str(column.type) != "double":
            raise InputError(f"the attribute {name} is not a number", fix="name one that is")
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


def _nothing(table: Table, rows: int) -> Table:
    return pa.table({field.name: pa.nulls(rows, field.type) for field in table.schema})
