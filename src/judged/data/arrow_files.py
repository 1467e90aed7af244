"""Tables of Parquet and Arrow files. No damage to a file kills the process: whoever reads a value may trust it.

Files are never mapped into memory, since a map of a file that somebody cuts short kills whoever touches it; and tables
are validated in full, since Arrow believes what a file says of lengths and offsets.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from judged.data import files
from judged.data.compute import pc
from judged.data.index import id_column
from judged.data.layout import canonical
from judged.data.objects import named_table
from judged.data.rows import SLICE, WithoutLines, one_batch
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

    from judged.data.rows import Part, Progress
    from judged.results.types import Batch, Table

    Choice = Callable[[list[str]], list[str]]


def parquet_table(path: Path, where: str, choose: Choice = list) -> Table:
    """Read a Parquet file; `choose` says which of its columns."""
    with _damage_named("Parquet", where):
        file = _parquet(path)
        names = file.schema_arrow.names
    used = choose(names)
    with _damage_named("Parquet", where):
        if not used:
            empty = pa.table({name: pa.nulls(0) for name in names})
            return empty.replace_schema_metadata(file.schema_arrow.metadata)
        return _valid(file.read(columns=used))


def parquet_shape(path: Path, where: str) -> tuple[int, list[str]]:
    """Give the number of rows of a Parquet file, and the names of its columns."""
    with _damage_named("Parquet", where):
        file = _parquet(path)
        return file.metadata.num_rows, file.schema_arrow.names


def arrow_schema(path: Path, where: str, format: str) -> Any:
    """Read the schema of a Parquet or Arrow file: its names and types."""
    if format == "arrow":
        return arrow_table(path, where).schema
    with _damage_named("Parquet", where):
        return _parquet(path).schema_arrow


def parquet_batches(path: Path, where: str, choose: Choice, rows: int = SLICE) -> Iterator[Batch]:
    """Read some columns of a Parquet file, some of its rows at a time."""
    with _damage_named("Parquet", where):
        file = _parquet(path)
        names = file.schema_arrow.names
    used = choose(names)
    for group in range(file.num_row_groups):  # a reader of several keeps the bytes of all that it has read
        with _damage_named("Parquet", where):
            batches = file.iter_batches(rows, row_groups=[group], columns=used)
        while True:
            with _damage_named("Parquet", where):
                batch = next(batches, None)
                if batch is None:
                    break
                _valid(batch)
            yield batch


def arrow_table(path: Path, where: str) -> Table:
    """Read an Arrow file (Feather), or a stream that somebody kept in a file."""
    is_file = files.head(path, 6) == b"ARROW1"
    with _damage_named("Arrow", where):
        source = _random_access(path)
        return _valid((pa.ipc.open_file if is_file else pa.ipc.open_stream)(source).read_all())


def _parquet(path: Path) -> Any:
    from pyarrow import parquet  # it takes a while, and few files need it

    return parquet.ParquetFile(_random_access(path))


def _random_access(path: Path) -> Any:
    """Open for reading anywhere; a compressed file is unpacked in memory."""
    if not files.compression(path):
        return pa.OSFile(str(path))
    with files.opened(path) as file:
        return pa.BufferReader(file.read())


def _valid(table: Any) -> Any:
    table.validate(full=True)
    return table


@contextmanager
def _damage_named(format_name: str, where: str) -> Generator[None]:
    try:
        yield
    except InputError:
        raise
    except (pa.ArrowException, OSError, EOFError, ValueError, KeyError) as error:
        why = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(
            f"the {format_name} data is damaged or cut short ({why[:200]})",
            fix="make or fetch the file again",
            path=where,
            rule="truncated",
        ) from None


@dataclass(frozen=True)
class ParquetRows(WithoutLines):
    """The rows of a long Parquet file."""

    path: Path
    where: str
    names: tuple[str, ...]  # the columns that it has, by our names
    count: int  # how many rows it has

    @property
    def paths(self) -> tuple[Path, ...]:
        """The file."""
        return (self.path,)

    @property
    def has_scores(self) -> bool:
        """Whether a column is a score, or a rank that stands in for one."""
        return bool({"score", "rank"} & set(self.names))

    @property
    def has_ranks(self) -> bool:
        """Whether a column is a rank."""
        return "rank" in self.names

    def parts(self, columns: tuple[str, ...], progress: Progress | None = None) -> Iterator[Part]:
        """Give some rows at a time; progress is told the share of the file's bytes that they are of its rows."""
        wanted = {*columns, "query_id", "doc_id"}
        wanted |= {"rank"} if "score" in columns and "score" not in self.names else set()
        first, size = 0, self.path.stat().st_size
        for batch in parquet_batches(self.path, self.where, partial(_chosen, wanted)):
            yield partial(self._typed, batch, first, columns)
            before, first = first, first + batch.num_rows
            if progress:
                progress(size * first // self.count - size * before // self.count)

    def _typed(self, batch: Batch, first: int, columns: tuple[str, ...]) -> Batch:
        try:
            table = named_table(pa.Table.from_batches([batch]), "run", self.where)
        except InputError as error:
            problem = f"counted from row {first:,}: {error.problem}" if first else error.problem
            raise InputError(problem, fix=error.fix, path=self.where, rule=error.rule) from None
        return one_batch(table.select([name for name in columns if name in table.column_names]))

    def run_ids(self) -> Iterator[str | None]:
        """Give the distinct run ids of some rows at a time."""
        for batch in parquet_batches(self.path, self.where, partial(_chosen, {"run_id"})):
            yield from pc.unique(id_column(batch.column(0), "run_id")).to_pylist()


def _chosen(wanted: set[str], names: list[str]) -> list[str]:
    return [name for name, ours in zip(names, canonical(names, "run"), strict=True) if ours in wanted]
