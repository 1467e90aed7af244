"""A table that lies in several files, as Spark and DuckDB write it, and the runs that a column `run_id` tells apart."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from judged.data.arrow_files import ParquetRows
from judged.data.compute import pc
from judged.data.layout import canonical
from judged.data.rows import TableRows, WithoutLines, one_batch
from judged.data.text_rows import TextRows
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from judged.data.rows import Part, Progress, Rows
    from judged.results.types import Batch

_PART = re.compile(r"part-.*|data_\d+\.\w+")  # what Spark and DuckDB call the files of a table
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class PartRows(WithoutLines):
    """The rows of several files, or those of one of the runs in them."""

    files: tuple[Rows, ...]
    runs: tuple[str | None, ...]  # of each file, as its folder ``run_id=...`` says; None: it may have such a column
    where: str
    only: str | None = None  # the run whose rows count; None: all

    @property
    def has_scores(self) -> bool:
        """Whether a column is a score, or a rank that stands in for one."""
        return self.files[0].has_scores

    @property
    def has_ranks(self) -> bool:
        """Whether a column is a rank."""
        return self.files[0].has_ranks

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are read."""
        return tuple(path for rows, _ in self.read for path in rows.paths)

    @property
    def read(self) -> list[tuple[Rows, str | None]]:
        """The files that may hold a row that counts, and the runs that their folders name."""
        both = zip(self.files, self.runs, strict=True)
        return [(rows, run) for rows, run in both if self.only is None or run in (None, self.only)]

    def parts(self, columns: tuple[str, ...], progress: Progress | None = None) -> Iterator[Part]:
        """Give the parts of each file, one after the other."""
        for rows, run in self.read:
            only = self.only if run is None else None
            wanted = columns if only is None else tuple(dict.fromkeys((*columns, "run_id")))
            for part in rows.parts(wanted, progress):
                if only is not None:
                    yield partial(_of_run, part, only, columns)
                elif run is not None and "run_id" in columns:
                    yield partial(_with_run, part, run)
                else:
                    yield part

    def run_ids(self) -> list[str]:
        """Give the distinct run ids, in order of appearance; none where nothing tells runs apart."""
        if self.only is not None:
            return [self.only]
        found: dict[str | None, None] = {}
        for rows, run in self.read:
            if run is not None:
                found[run] = None
            elif isinstance(rows, ParquetRows) and "run_id" in rows.names:
                found |= dict.fromkeys(rows.run_ids())
            elif "run_id" in names_of(rows) and not (isinstance(rows, TextRows) and not rows.layout.header):
                for part in rows.parts(("run_id",)):
                    found |= dict.fromkeys(pc.unique(part().column("run_id")).to_pylist())
        return [str(run) for run in found]


def names_of(rows: Rows) -> set[str]:
    """Give the columns of a file, by our names."""
    if isinstance(rows, TextRows):
        return set(filter(None, rows.layout.names))
    if isinstance(rows, ParquetRows):
        return set(filter(None, rows.names))
    return set(rows.table.column_names) if isinstance(rows, TableRows) else set()


def part_files(folder: Path) -> list[Path]:
    """Give the files of a folder that is one table; none for a folder of runs."""
    # One is a folder that holds `_SUCCESS`, as Spark leaves there, or nothing but parts and folders `column=value`.
    shown = [path for path in folder.iterdir() if not path.name.startswith(("_", "."))]
    if not (folder / "_SUCCESS").exists() and not all(
        "=" in path.name if path.is_dir() else _PART.fullmatch(path.name) for path in shown
    ):
        return []
    below = sorted(path for path in folder.rglob("*") if path.is_file())
    return [path for path in below if not any(p.startswith(("_", ".")) for p in path.relative_to(folder).parts)]


def run_in_path(folder: Path, path: Path) -> str | None:
    """Give the run that a folder ``run_id=...`` on the way to a file names; None where there is none."""
    for part in path.relative_to(folder).parts[:-1]:
        name, _, value = part.partition("=")
        if canonical([name], "run") != ("run_id",):
            continue
        if value == _NO_VALUE:
            raise InputError("its rows have no run_id", fix="remove them, or fill in the id", path=str(path))
        return unquote(value)
    return None


def _of_run(part: Part, run: str, columns: tuple[str, ...]) -> Batch:
    batch = part()
    batch = batch.filter(pc.equal(batch.column("run_id"), run))
    return batch.select([name for name in columns if name in batch.schema.names])


def _with_run(part: Part, run: str) -> Batch:
    table = pa.Table.from_batches([part()])
    return one_batch(table.append_column("run_id", pa.array([run] * table.num_rows, pa.string())))
