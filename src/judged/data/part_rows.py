"""Tables in several files, as written by Spark and DuckDB, with one or more runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from judged.data.arrow_files import ParquetRows
from judged.data.column_names import canonical_names
from judged.data.compute import pc
from judged.data.rows import TableRows, UnnumberedRows, to_record_batch
from judged.data.text_rows import TextRows
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from judged.data.rows import Part, Progress, Rows
    from judged.results.types import Batch

_PART_FILE = re.compile(r"part-.*|data_\d+\.\w+")  # names of the files that Spark and DuckDB write
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class PartRows(UnnumberedRows):
    """Rows of several files, optionally of a single run."""

    files: tuple[Rows, ...]
    runs: tuple[str | None, ...]  # run id of each file from its folder ``run_id=...``; None: there is no such folder
    where: str
    only: str | None = None  # id of the selected run; None: all runs

    @property
    def has_scores(self) -> bool:
        """Whether there is a column of scores, or of ranks, which are converted to scores."""
        return self.files[0].has_scores

    @property
    def has_ranks(self) -> bool:
        """Whether there is a column of ranks."""
        return self.files[0].has_ranks

    @property
    def paths(self) -> tuple[Path, ...]:
        """Paths of the files that are read."""
        return tuple(path for rows, _ in self.selected_files for path in rows.paths)

    @property
    def selected_files(self) -> list[tuple[Rows, str | None]]:
        """Files that may have rows of the selected run, with the run ids of their folders."""
        files = zip(self.files, self.runs, strict=True)
        return [(rows, run) for rows, run in files if self.only is None or run in (None, self.only)]

    def parts(self, columns: tuple[str, ...], progress: Progress | None = None) -> Iterator[Part]:
        """Yield the parts of all files."""
        for rows, run in self.selected_files:
            selected_run = self.only if run is None else None
            columns_to_read = columns if selected_run is None else tuple(dict.fromkeys((*columns, "run_id")))
            for part in rows.parts(columns_to_read, progress):
                if selected_run is not None:
                    yield partial(_select_run, part, selected_run, columns)
                elif run is not None and "run_id" in columns:
                    yield partial(_add_run_id, part, run)
                else:
                    yield part

    def run_ids(self) -> list[str]:
        """Return the distinct run ids in order of appearance; empty if the files have no run ids."""
        if self.only is not None:
            return [self.only]
        run_ids: dict[str | None, None] = {}
        for rows, run in self.selected_files:
            if run is not None:
                run_ids[run] = None
            elif isinstance(rows, ParquetRows) and "run_id" in rows.names:
                run_ids |= dict.fromkeys(rows.run_ids())
            elif "run_id" in column_names(rows) and not (isinstance(rows, TextRows) and not rows.layout.header):
                for part in rows.parts(("run_id",)):
                    run_ids |= dict.fromkeys(pc.unique(part().column("run_id")).to_pylist())
        return [str(run_id) for run_id in run_ids]


def column_names(rows: Rows) -> set[str]:
    """Return the canonical column names of a source."""
    if isinstance(rows, TextRows):
        return set(filter(None, rows.layout.names))
    if isinstance(rows, ParquetRows):
        return set(filter(None, rows.names))
    return set(rows.table.column_names) if isinstance(rows, TableRows) else set()


def part_files(folder: Path) -> list[Path]:
    """Return the files of a folder that contains a single table; empty for a folder with several runs."""
    # Such a folder has a file `_SUCCESS`, written by Spark, or only part files and folders `column=value`.
    visible = [path for path in folder.iterdir() if not path.name.startswith(("_", "."))]
    if not (folder / "_SUCCESS").exists() and not all(
        "=" in path.name if path.is_dir() else _PART_FILE.fullmatch(path.name) for path in visible
    ):
        return []
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [path for path in paths if not any(name.startswith(("_", ".")) for name in path.relative_to(folder).parts)]


def run_in_path(folder: Path, path: Path) -> str | None:
    """Return the run id of a parent folder ``run_id=...``; None if there is no such folder."""
    for part in path.relative_to(folder).parts[:-1]:
        name, _, value = part.partition("=")
        if canonical_names([name], "run") != ("run_id",):
            continue
        if value == _HIVE_NULL:
            raise InputError(
                "the rows of this file have no run_id", fix="remove these rows, or fill in the run_id", path=str(path)
            )
        return unquote(value)
    return None


def _select_run(part: Part, run: str, columns: tuple[str, ...]) -> Batch:
    batch = part()
    batch = batch.filter(pc.equal(batch.column("run_id"), run))
    return batch.select([name for name in columns if name in batch.schema.names])


def _add_run_id(part: Part, run: str) -> Batch:
    table = pa.Table.from_batches([part()])
    return to_record_batch(table.append_column("run_id", pa.array([run] * table.num_rows, pa.string())))
