"""Rows of a Parquet file that is too long to be held: read a part at a time, whenever they are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from judged.data import files
from judged.data.arrow_files import parquet_batches
from judged.data.columns import canonical
from judged.data.compute import pc
from judged.data.ids import id_column
from judged.data.objects import named_table
from judged.data.rows import WithoutLines, one_batch
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from judged._types import Batch
    from judged.data.rows import Digest, Part


@dataclass(frozen=True)
class ParquetRows(WithoutLines):
    """The rows of a long Parquet file."""

    path: Path
    where: str
    names: tuple[str, ...]  # the columns that it has, by our names
    count: int  # how many rows it has

    @property
    def has_scores(self) -> bool:
        """Whether a column is a score, or a rank that stands in for one."""
        return bool({"score", "rank"} & set(self.names))

    @property
    def has_ranks(self) -> bool:
        """Whether a column is a rank."""
        return "rank" in self.names

    def parts(self, columns: tuple[str, ...], digest: Digest | None = None) -> Iterator[Part]:
        """Give some rows at a time; the digest is told of the file's bytes, as many as the rows are a share of."""
        wanted = {*columns, "query_id", "doc_id"}
        wanted |= {"rank"} if "score" in columns and "score" not in self.names else set()
        first = shown = 0
        with files.opened(self.path, digest) as file:
            size = self.path.stat().st_size if digest else 0
            for batch in parquet_batches(self.path, self.where, partial(_chosen, wanted)):
                yield partial(self._typed, batch, first, columns)
                first += batch.num_rows
                shown += len(file.read(size * first // self.count - shown))

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
