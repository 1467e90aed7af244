"""Read tables from Parquet and Arrow files safely: a damaged file must not crash the process.

Files are not memory-mapped, as access to a map of a truncated file would kill the process (SIGBUS). Tables are fully
validated, as Arrow does not check lengths and offsets in files.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from judged.data import files
from judged.data.column_names import ReadingOptions, canonical_names, reading_options, use_options
from judged.data.compute import pc
from judged.data.index import id_column
from judged.data.objects import canonical_table
from judged.data.rows import SLICE, UnnumberedRows, to_record_batch
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

    from judged.data.rows import Part, Progress
    from judged.results.types import Batch, Table

    SelectColumns = Callable[[list[str]], list[str]]


def parquet_table(path: Path | bytes, where: str, select: SelectColumns = list) -> Table:
    """Read the columns that `select` returns of a Parquet file, or of its bytes."""
    with _reporting_damage("Parquet", where):
        file = _open_parquet(path)
        names = file.schema_arrow.names
    selected = select(names)
    with _reporting_damage("Parquet", where):
        if not selected:
            empty = pa.table({name: pa.nulls(0) for name in names})
            return empty.replace_schema_metadata(file.schema_arrow.metadata)
        return _validate(file.read(columns=selected))


def parquet_shape(path: Path, where: str) -> tuple[int, list[str]]:
    """Return the number of rows and the column names of a Parquet file."""
    with _reporting_damage("Parquet", where):
        file = _open_parquet(path)
        return file.metadata.num_rows, file.schema_arrow.names


def arrow_schema(path: Path, where: str, format: str) -> Any:
    """Read the schema of a Parquet or Arrow file."""
    if format == "arrow":
        return arrow_table(path, where).schema
    with _reporting_damage("Parquet", where):
        return _open_parquet(path).schema_arrow


def parquet_batches(path: Path, where: str, select: SelectColumns, rows: int = SLICE) -> Iterator[Batch]:
    """Yield batches of at most `rows` rows with selected columns of a Parquet file."""
    with _reporting_damage("Parquet", where):
        file = _open_parquet(path)
        names = file.schema_arrow.names
    selected = select(names)
    for row_group in range(file.num_row_groups):  # a reader of several groups keeps all their bytes
        with _reporting_damage("Parquet", where):
            batches = file.iter_batches(rows, row_groups=[row_group], columns=selected)
        while True:
            with _reporting_damage("Parquet", where):
                batch = next(batches, None)
                if batch is None:
                    break
                _validate(batch)
            yield batch


def arrow_table(path: Path, where: str) -> Table:
    """Read an Arrow file (Feather), or a file in the Arrow stream format."""
    is_file = files.head(path, 6) == b"ARROW1"
    with _reporting_damage("Arrow", where):
        source = _random_access(path)
        return _validate((pa.ipc.open_file if is_file else pa.ipc.open_stream)(source).read_all())


def _open_parquet(path: Path | bytes) -> Any:
    from pyarrow import parquet  # slow to import and rarely needed

    return parquet.ParquetFile(_random_access(path))


def _random_access(path: Path | bytes) -> Any:
    """Open a file for random access; a compressed file is decompressed to memory."""
    if isinstance(path, bytes):
        return pa.BufferReader(path)
    if not files.compression(path):
        return pa.OSFile(str(path))
    with files.opened(path) as file:
        return pa.BufferReader(file.read())


def _validate(table: Any) -> Any:
    table.validate(full=True)
    return table


@contextmanager
def _reporting_damage(format_name: str, where: str) -> Generator[None]:
    try:
        yield
    except InputError:
        raise
    except (pa.ArrowException, OSError, EOFError, ValueError, KeyError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(
            f"the {format_name} data is damaged or truncated ({reason[:200]})",
            fix="create or download the file again",
            path=where,
            rule="truncated",
        ) from None


@dataclass(frozen=True)
class ParquetRows(UnnumberedRows):
    """Rows of a long Parquet file, which are read in batches."""

    path: Path
    where: str
    names: tuple[str, ...]  # canonical column names
    count: int  # number of rows
    options: ReadingOptions = field(default_factory=reading_options)  # in use when the file was opened

    @property
    def paths(self) -> tuple[Path, ...]:
        """Path of the file."""
        return (self.path,)

    @property
    def has_scores(self) -> bool:
        """Whether there is a column of scores, or of ranks, which are converted to scores."""
        return bool({"score", "rank"} & set(self.names))

    @property
    def has_ranks(self) -> bool:
        """Whether there is a column of ranks."""
        return "rank" in self.names

    def parts(self, columns: tuple[str, ...], progress: Progress | None = None) -> Iterator[Part]:
        """Yield batches of rows; progress in bytes is estimated from the number of rows."""
        selected = {*columns, "query_id", "doc_id"}
        selected |= {"rank"} if "score" in columns and "score" not in self.names else set()
        first_row, size = 0, self.path.stat().st_size
        for batch in parquet_batches(self.path, self.where, self._select(selected)):
            yield partial(self._to_canonical, batch, first_row, columns)
            end_row = first_row + batch.num_rows
            if progress:
                progress(size * end_row // self.count - size * first_row // self.count)
            first_row = end_row

    def _to_canonical(self, batch: Batch, first_row: int, columns: tuple[str, ...]) -> Batch:
        try:
            with use_options(self.options):
                table = canonical_table(pa.Table.from_batches([batch]), "run", self.where)
        except InputError as error:
            problem = f"in the block that starts at row {first_row:,}: {error.problem}" if first_row else error.problem
            raise InputError(problem, fix=error.fix, path=self.where, rule=error.rule) from None
        return to_record_batch(table.select([name for name in columns if name in table.column_names]))

    def run_ids(self) -> Iterator[str | None]:
        """Yield the distinct run ids of each batch; an id may be repeated in other batches."""
        for batch in parquet_batches(self.path, self.where, self._select({"run_id"})):
            yield from pc.unique(id_column(batch.column(0), "run_id")).to_pylist()

    def _select(self, selected: set[str]) -> SelectColumns:
        """Return a function that selects the columns with these canonical names."""

        def select(columns: list[str]) -> list[str]:
            with use_options(self.options):
                roles = canonical_names(columns, "run")
            return [column for column, role in zip(columns, roles, strict=True) if role in selected]

        return select
