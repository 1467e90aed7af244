"""Texts and attributes of topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import pyarrow as pa

from judged.data import files
from judged.data.column_names import check_unique_names
from judged.data.datasets import dataset_name, dataset_topics, is_dataset
from judged.data.documents import check_unique_ids
from judged.data.rows import table_of
from judged.data.sources import source_name
from judged.data.topic_files import TopicRecords, read_topic_records
from judged.errors import InputError
from judged.results.types import cached_property

if TYPE_CHECKING:
    from judged.results.types import Table


@dataclass(frozen=True, eq=False)
class Topics:
    """Query texts by id, with attributes. Immutable.

    Parameters
    ----------
    table
        Arrow table with the columns ``query_id`` and ``text`` and a string column for each attribute; null if a
        topic lacks it.
    name, where
        Name in results, and source in error messages.

    Raises
    ------
    InputError
        If the table is empty, or a query id appears twice.

    Examples
    --------
    >>> topics = Topics.of({"1": "income tax", "2": {"text": "peace", "kind": "news"}})
    >>> topics, topics.text("2"), topics.attributes
    (Topics('topics': 2 topics, attributes kind), 'peace', ('kind',))
    """

    table: Table
    name: str = "topics"
    where: str = "<table>"

    def __post_init__(self) -> None:
        if not self.table.num_rows:
            raise InputError("there are no topics", fix="use a file with at least one topic", path=self.where)
        check_unique_ids(self.table, "query_id", self.where)

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        format: str | None = None,
        name: str | None = None,
    ) -> Self:
        """Read topics from a file: TSV or CSV, JSON or JSONL, TREC topics, XML, or lines ``1 the text``.

        The queries of a dataset of ir_datasets are read from its address, such as ``irds:beir/scifact/test``.

        Raises
        ------
        InputError
            If the file cannot be read as topics; the message names the line if possible.
        """
        if is_dataset(path):
            dataset_id = dataset_name(path)
            return cls(cls.of(dataset_topics(path)).table, name or dataset_id, f"irds:{dataset_id}")
        where = files.STDIN if str(path) == "-" else str(path)
        records = read_topic_records(files.local(path), where, format)
        return cls(records.table(), name or source_name(path), where)

    @classmethod
    def of(cls, data: Any, *, name: str = "topics") -> Self:
        """Create topics from ``{id: text}``, ``{id: {"text": ..., ...}}``, a data frame, a list of dicts, or a path.

        Raises
        ------
        InputError
            If the object cannot be read as topics.
        """
        if isinstance(data, cls):
            return data
        if isinstance(data, (str, Path)) or is_dataset(data):
            return cls.read(data)
        records = TopicRecords("<topics>")
        if isinstance(data, Mapping):
            for query_id, topic in cast("Mapping[Any, Any]", data).items():
                records.add(topic, None, query_id)
        else:
            for row in _rows_of(data):
                records.add(row, None)
        return cls(records.table(), name, "<topics>")

    @property
    def attributes(self) -> tuple[str, ...]:
        """Names of the attributes, without the text."""
        return tuple(name for name in self.table.column_names if name not in {"query_id", "text"})

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {query_id: row for row, query_id in enumerate(self.table["query_id"].to_pylist())}

    def text(self, query_id: str) -> str:
        """Return the text of a topic; ``""`` for an unknown topic."""
        row = self._rows.get(query_id)
        return "" if row is None else self.table["text"][row].as_py()

    def __len__(self) -> int:
        return self.table.num_rows

    def __repr__(self) -> str:
        attributes = f", attributes {', '.join(self.attributes)}" if self.attributes else ""
        return f"Topics({self.name!r}: {len(self)} topics{attributes})"

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the table through the Arrow C stream interface."""
        return pa.table(self.table).__arrow_c_stream__(requested_schema)


def _rows_of(data: Any) -> list[Any]:
    if hasattr(data, "__arrow_c_stream__"):
        table = table_of(data)
        check_unique_names(table.column_names, "<topics>")
        return table.to_pylist()
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes)):
        return list(cast("Iterable[Any]", data))
    raise InputError(
        f"an object of type {type(data).__name__} cannot be read as topics", fix='use {"1": "the text"} or a data frame'
    )
