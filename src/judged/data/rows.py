"""Where the rows of a run come from, and how they are handed on: in parts, each a record batch.

A part is a function without arguments that makes its batch when called. Whoever reads the parts may
call them in several threads; parsing happens there. Every source can be read again from its start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.index import column_of, decoded, id_array, id_column, id_text, shown
from judged.data.layout import WHOLE_TO, refuse_same_names
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.results.types import Batch, Table

Part: TypeAlias = Callable[[], "Batch"]

Progress: TypeAlias = Callable[[int], None]
"""Called while files are read, with the number of bytes read since the last call."""

SLICE = 1 << 16  # rows in one part of a table: large enough for NumPy, small enough for the cache


class Rows(Protocol):
    """A source of rows that can be read any number of times."""

    @property
    def where(self) -> str:
        """What messages call this source: a path, ``<dict>``, ``<table>``."""
        ...

    @property
    def has_scores(self) -> bool:
        """Whether the rows carry scores; without them the run is a set."""
        ...

    @property
    def has_ranks(self) -> bool:
        """Whether the rows carry ranks."""
        ...

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that the rows are read from; none where they stand in memory or in a database."""
        ...

    def parts(self, columns: tuple[str, ...], progress: Progress | None = None) -> Iterator[Part]:
        """Give the rows in order; each part holds the columns asked for that the source has."""
        ...

    def line(self, query_id: str, doc_id: str, nth: int) -> int | None:
        """Give the file line of the nth row (from 1) of this pair, where there are lines."""
        ...


class WithoutLines:
    """Rows that stand in no line of a file."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """No file, unless a subclass names some."""
        return ()

    def line(self, query_id: str, doc_id: str, nth: int) -> int | None:
        """Give None."""
        del query_id, doc_id, nth
        return None


@dataclass(frozen=True)
class TableRows(WithoutLines):
    """Rows of an Arrow table that is already in memory, its columns named and typed as ours."""

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
        """Give slices of the table."""
        del progress  # it counts bytes of files
        table = self.table.select([name for name in columns if name in self.table.column_names])
        for start in range(0, table.num_rows, SLICE):
            yield lambda start=start: one_batch(table.slice(start, SLICE))


@dataclass(frozen=True)
class MappingRows(WithoutLines):
    """Rows of ``{query_id: {doc_id: score}}``, read where they stand and never changed."""

    mapping: Mapping[Any, Mapping[Any, Any]] = field(repr=False)
    where: str = "<dict>"
    has_scores: bool = True
    has_ranks: bool = False

    def parts(self, columns: tuple[str, ...], progress: Progress | None = None) -> Iterator[Part]:
        """Give some topics at a time."""
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
        made: dict[str, Any] = {}
        if "query_id" in columns:
            names = [id_text(topic, "query id") for topic in topics for _ in self.mapping[topic]]
            made["query_id"] = id_array(names, "query id")
        if "doc_id" in columns:
            names = [id_text(doc, "document id") for topic in topics for doc in self.mapping[topic]]
            made["doc_id"] = id_array(names, "document id")
        if "score" in columns:
            values = [value for topic in topics for value in self.mapping[topic].values()]
            made["score"] = pa.array(score_array(values))
        return pa.record_batch(made)


def score_array(scores: Any, what: str = "score") -> np.ndarray[Any, np.dtype[np.float64]]:
    """Make float64 of Python numbers, refusing text, and whole numbers that no double holds."""
    try:
        array = np.asarray(scores)
        if array.dtype.kind in "fiub":
            if array.dtype.kind == "f" and not isinstance(scores, np.ndarray):
                refuse_equal_wholes(scores, what)
            return as_doubles(array, what)
    except (TypeError, ValueError):  # sequences among them
        pass
    numbers = list(scores)
    refuse_equal_wholes(numbers, what)
    for at, score in enumerate(numbers):
        if not isinstance(score, (int, float, np.number)):
            raise InputError(
                f"the {what} {shown(score)} is not a number", fix=f"{what}s are int or float", rule="bad-score"
            )
        try:
            numbers[at] = float(score)
        except (OverflowError, TypeError):
            raise InputError(f"the {what} {shown(score)} does not fit in a double", fix="give another") from None
    return np.array(numbers, dtype=np.float64)


_LARGEST_DOUBLE = 2**1023


def as_doubles(values: np.ndarray[Any, Any], name: str, where: str = "") -> np.ndarray[Any, np.dtype[np.float64]]:
    """Convert numbers to float64, and refuse whole numbers that differ and would be equal as doubles.

    >>> as_doubles(np.array([2**60, 2**60 + 4096]), "score").tolist() == [2.0**60, 2.0**60 + 4096]
    True
    """
    doubles = values.astype(np.float64)
    if values.dtype.kind not in "iu" or not len(values) or np.abs(doubles).max() < WHOLE_TO:
        return doubles
    rising = np.argsort(values, kind="stable")
    equal = (np.diff(doubles[rising]) == 0) & (values[rising][1:] != values[rising][:-1])
    if equal.any():
        first = int(np.flatnonzero(equal)[0])
        low, high = values[rising][first : first + 2].tolist()
        raise _equal_as_doubles(low, high, name, where)
    return doubles


def refuse_equal_wholes(values: Iterable[Any], name: str, where: str = "") -> None:
    """Refuse integers that differ and would be equal as doubles."""
    seen: dict[float, int] = {}
    for value in values:
        if isinstance(value, (int, np.integer)) and WHOLE_TO <= abs(int(value)) < _LARGEST_DOUBLE:
            known = seen.setdefault(float(value), int(value))
            if known != value:
                raise _equal_as_doubles(known, int(value), name, where)


def _equal_as_doubles(one: int, other: int, name: str, where: str) -> InputError:
    return InputError(
        f"the {name}s {one} and {other} are equal as 64-bit floating point numbers, in which {name}s are compared",
        fix=f"subtract a constant from all {name}s, or give ranks in a column named rank",
        path=where,
        rule="bad-score",
    )


def table_of(data: Any, used: Callable[[list[str]], Iterable[Any]] | None = None) -> Table:
    """Take any object with the Arrow C stream interface as a table, without importing its library."""
    # `used`: says of each column's name whether it is used: others may hold what Arrow cannot. None: all are.
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        return data if isinstance(data, pa.Table) else pa.Table.from_batches([data])
    try:
        return pa.RecordBatchReader.from_stream(data).read_all()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # what the library, or Arrow, cannot hand on
        return _by_column(data, used)


def _by_column(data: Any, used: Callable[[list[str]], Iterable[Any]] | None) -> Table:
    if getattr(data, "columns", None) is None:
        problem = f"a {type(data).__name__} is not a table"
        raise InputError(problem, fix="give a data frame with named columns: query_id, doc_id...")
    names = [str(name) for name in data.columns]
    refuse_same_names(names, "<table>")
    wanted = names if used is None else used(names)
    columns = {name: data[key] for name, key, kept in zip(names, data.columns, wanted, strict=True) if kept}
    return pa.table({name: column_of(list(column), name) for name, column in columns.items()})


def typed_table(data: Any, names: tuple[str, ...], where: str) -> Table:
    """Rename and cast a table's columns to ours; columns named ``""`` are left out."""
    made: dict[str, Any] = {}
    for name, column in zip(names, data.columns, strict=True):
        if name in {"query_id", "doc_id", "iteration", "run_id"}:
            made[name] = id_column(column, name)
        elif name in {"relevance", "score"}:
            made[name] = _number_column(column, name, where)
        elif name == "rank":
            made[name] = _rank_column(column, where)
    return pa.table(made)


def _rank_column(column: Any, where: str) -> Any:
    numbers = _number_column(column, "rank", where).to_numpy()
    with np.errstate(invalid="ignore"):
        odd = np.flatnonzero(~((numbers == np.rint(numbers)) & (np.abs(numbers) <= WHOLE_TO)))
    if len(odd):
        problem = f"row {odd[0]} has the rank {numbers[odd[0]]:g}"
        raise InputError(problem, fix="give ranks as whole numbers: 1, 2, 3...", path=where)
    return pa.array(numbers.astype(np.int64))


def _number_column(column: Any, name: str, where: str) -> Any:
    column = decoded(column)
    kind = column.type
    if not (
        pa.types.is_floating(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    ):
        raise InputError(
            f"the column {name} holds {kind}, not numbers", fix=f"cast {name} to float", path=where, rule="bad-score"
        )
    if column.null_count:
        row = pc.index(pc.is_null(column), value=True).as_py()
        raise InputError(f"row {row} has no {name}", fix="fill it in, or remove the row", path=where)
    if pa.types.is_integer(kind) and kind.bit_width == 64:
        return pa.array(as_doubles(column.to_numpy(), name, where))
    return column.cast(pa.float64(), safe=False) if kind != pa.float64() else column


def one_batch(table: Table) -> Batch:
    """Give a table as one record batch."""
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
