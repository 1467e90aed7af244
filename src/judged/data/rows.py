"""Sources of rows of qrels and runs, which are read in parts.

A part is a function without arguments that parses and returns a record batch. Parts may be called in several threads.
Each source can be read again from its start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from judged.data.column_names import check_unique_names
from judged.data.compute import pc
from judged.data.index import array_of_values, decode_dictionary, format_value, id_array, id_column, id_text
from judged.data.layout import MAX_EXACT_INTEGER
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.results.types import Batch, Table

Part: TypeAlias = Callable[[], "Batch"]

Progress: TypeAlias = Callable[[int], None]
"""Callback for progress, called with the number of bytes that were read since the last call."""

SLICE = 1 << 16  # rows in a part of a table: many enough for NumPy, few enough for the CPU cache


class Rows(Protocol):
    """A source of rows that can be read any number of times."""

    @property
    def where(self) -> str:
        """Name of the source in error messages: a path, ``<dict>``, ``<table>``."""
        ...

    @property
    def has_scores(self) -> bool:
        """Whether the rows have scores; a run without scores is a set."""
        ...

    @property
    def has_ranks(self) -> bool:
        """Whether the rows have ranks."""
        ...

    @property
    def paths(self) -> tuple[Path, ...]:
        """Files from which the rows are read; empty for memory and databases."""
        ...

    def parts(self, columns: tuple[str, ...], progress: Progress | None = None) -> Iterator[Part]:
        """Yield the rows in order; parts have those of the `columns` that the source has."""
        ...

    def line(self, query_id: str, doc_id: str, nth: int) -> int | None:
        """Return the line of the nth row (from 1) of this pair; None if the source has no lines."""
        ...


class UnnumberedRows:
    """Base class of sources without line numbers."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """Files from which the rows are read; empty unless overridden."""
        return ()

    def line(self, query_id: str, doc_id: str, nth: int) -> int | None:
        """Return None."""
        del query_id, doc_id, nth
        return None


@dataclass(frozen=True)
class TableRows(UnnumberedRows):
    """Rows of an Arrow table in memory, with canonical column names and types."""

    table: Table
    where: str = "<table>"

    @property
    def has_scores(self) -> bool:
        """Whether there is a score column."""
        return "score" in self.table.column_names

    @property
    def has_ranks(self) -> bool:
        """Whether there is a rank column."""
        return "rank" in self.table.column_names

    def parts(self, columns: tuple[str, ...], progress: Progress | None = None) -> Iterator[Part]:
        """Yield slices of the table."""
        del progress  # it counts bytes of files
        table = self.table.select([name for name in columns if name in self.table.column_names])
        for start in range(0, table.num_rows, SLICE):
            yield lambda start=start: to_record_batch(table.slice(start, SLICE))


@dataclass(frozen=True)
class MappingRows(UnnumberedRows):
    """Rows of ``{query_id: {doc_id: score}}``, which is not copied."""

    mapping: Mapping[Any, Mapping[Any, Any]] = field(repr=False)
    where: str = "<dict>"
    has_scores: bool = True
    has_ranks: bool = False

    def parts(self, columns: tuple[str, ...], progress: Progress | None = None) -> Iterator[Part]:
        """Yield the rows of several topics at a time."""
        del progress
        topics: list[Any] = []
        rows = 0
        for topic, docs in self.mapping.items():
            topics.append(topic)
            rows += len(docs)
            if rows >= SLICE:
                yield lambda topics=topics: self._batch(topics, columns)
                topics, rows = [], 0
        if topics:
            yield lambda: self._batch(topics, columns)

    def _batch(self, topics: list[Any], columns: tuple[str, ...]) -> Batch:
        arrays: dict[str, Any] = {}
        if "query_id" in columns:
            names = [id_text(topic, "query id") for topic in topics for _ in self.mapping[topic]]
            arrays["query_id"] = id_array(names, "query id")
        if "doc_id" in columns:
            names = [id_text(doc, "document id") for topic in topics for doc in self.mapping[topic]]
            arrays["doc_id"] = id_array(names, "document id")
        if "score" in columns:
            values = [value for topic in topics for value in self.mapping[topic].values()]
            arrays["score"] = pa.array(score_array(values))
        return pa.record_batch(arrays)


def score_array(scores: Any, name: str = "score") -> np.ndarray[Any, np.dtype[np.float64]]:
    """Convert Python numbers to float64; raise InputError for text, and for integers that are too large."""
    try:
        array = np.asarray(scores)
        if array.dtype.kind in "fiub":
            if array.dtype.kind == "f" and not isinstance(scores, np.ndarray):
                check_distinct_as_doubles(scores, name)
            return as_doubles(array, name)
    except (TypeError, ValueError):  # for example some scores are lists
        pass
    numbers = list(scores)
    check_distinct_as_doubles(numbers, name)
    for row, score in enumerate(numbers):
        if not isinstance(score, (int, float, np.number)):
            raise InputError(
                f"the {name} {format_value(score)} is not a number", fix=f"{name}s are int or float", rule="bad-score"
            )
        try:
            numbers[row] = float(score)
        except (OverflowError, TypeError):
            problem = f"the {name} {format_value(score)} does not fit in a double"
            raise InputError(problem, fix="use a number in the range of float64") from None
    return np.array(numbers, dtype=np.float64)


_LARGEST_DOUBLE = 2**1023


def as_doubles(values: np.ndarray[Any, Any], name: str, where: str = "") -> np.ndarray[Any, np.dtype[np.float64]]:
    """Convert numbers to float64; raise InputError if different integers would become equal.

    >>> as_doubles(np.array([2**60, 2**60 + 4096]), "score").tolist() == [2.0**60, 2.0**60 + 4096]
    True
    """
    doubles = values.astype(np.float64)
    if values.dtype.kind not in "iu" or not len(values) or np.abs(doubles).max() < MAX_EXACT_INTEGER:
        return doubles
    order = np.argsort(values, kind="stable")
    is_rounded_to_equal = (np.diff(doubles[order]) == 0) & (values[order][1:] != values[order][:-1])
    if is_rounded_to_equal.any():
        position = int(np.flatnonzero(is_rounded_to_equal)[0])
        first, second = values[order][position : position + 2].tolist()
        raise _equal_doubles_error(first, second, name, where)
    return doubles


def check_distinct_as_doubles(values: Iterable[Any], name: str, where: str = "") -> None:
    """Raise InputError if different integers are equal as float64."""
    integers: dict[float, int] = {}
    for value in values:
        if isinstance(value, (int, np.integer)) and MAX_EXACT_INTEGER <= abs(int(value)) < _LARGEST_DOUBLE:
            first = integers.setdefault(float(value), int(value))
            if first != value:
                raise _equal_doubles_error(first, int(value), name, where)


def _equal_doubles_error(first: int, second: int, name: str, where: str) -> InputError:
    return InputError(
        f"{name}s are compared as 64-bit floating-point numbers, and the {name}s {first} and {second} are equal in"
        " this format",
        fix=f"subtract a constant from all {name}s, or add ranks in a column named rank",
        path=where,
        rule="bad-score",
    )


def table_of(data: Any, used: Callable[[list[str]], Iterable[Any]] | None = None) -> Table:
    """Convert an object with the Arrow C stream interface to a table, without importing its library."""
    # `used` returns for each column name a true value if the column is needed, as others may have types that Arrow does
    # not support. None: all columns are needed.
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        return data if isinstance(data, pa.Table) else pa.Table.from_batches([data])
    try:
        return pa.RecordBatchReader.from_stream(data).read_all()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # some column has an unsupported type
        return _convert_columns(data, used)


def _convert_columns(data: Any, used: Callable[[list[str]], Iterable[Any]] | None) -> Table:
    if getattr(data, "columns", None) is None:
        problem = f"an object of type {type(data).__name__} is not a table"
        raise InputError(problem, fix="use a data frame with named columns: query_id, doc_id...")
    names = [str(name) for name in data.columns]
    check_unique_names(names, "<table>")
    is_used = names if used is None else used(names)
    columns = {name: data[key] for name, key, selected in zip(names, data.columns, is_used, strict=True) if selected}
    return pa.table({name: array_of_values(list(column), name) for name, column in columns.items()})


def typed_table(data: Any, names: tuple[str, ...], where: str) -> Table:
    """Rename and cast the columns of a table; columns with the name ``""`` are dropped."""
    columns: dict[str, Any] = {}
    for name, column in zip(names, data.columns, strict=True):
        if name in {"query_id", "doc_id", "iteration", "run_id"}:
            columns[name] = id_column(column, name)
        elif name == "time":
            columns[name] = column.cast(pa.string())
        elif name in {"relevance", "score", "distance"}:
            columns[name] = _number_column(column, name, where)
        elif name == "rank":
            columns[name] = _rank_column(column, where)
    return pa.table(columns)


def _rank_column(column: Any, where: str) -> Any:
    numbers = _number_column(column, "rank", where).to_numpy()
    with np.errstate(invalid="ignore"):
        invalid = np.flatnonzero(~((numbers == np.rint(numbers)) & (np.abs(numbers) <= MAX_EXACT_INTEGER)))
    if len(invalid):
        problem = f"row {invalid[0]} has the rank {numbers[invalid[0]]:g}"
        raise InputError(problem, fix="write ranks as integers such as 1, 2, 3", path=where)
    return pa.array(numbers.astype(np.int64))


def _number_column(column: Any, name: str, where: str) -> Any:
    column = decode_dictionary(column)
    kind = column.type
    if not (
        pa.types.is_floating(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    ):
        raise InputError(
            f"the column {name} must contain numbers, got {kind}",
            fix=f"cast {name} to float",
            path=where,
            rule="bad-score",
        )
    if column.null_count:
        row = pc.index(pc.is_null(column), value=True).as_py()
        raise InputError(f"row {row} has no {name}", fix="fill in the value, or remove the row", path=where)
    if pa.types.is_integer(kind) and kind.bit_width == 64:
        return pa.array(as_doubles(column.to_numpy(), name, where))
    return column.cast(pa.float64(), safe=False) if kind != pa.float64() else column


def to_record_batch(table: Table) -> Batch:
    """Combine a table to a single record batch."""
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
