"""A system's rankings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from mmap import ACCESS_READ, mmap
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from judged.data.arrow_files import ParquetRows
from judged.data.compute import int_array, pc
from judged.data.engine_rows import EngineRows
from judged.data.objects import rows_of_object
from judged.data.part_rows import PartRows
from judged.data.rows import MappingRows, Rows, TableRows
from judged.data.sources import Source, open_source, source_name
from judged.data.text_rows import TextRows
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.results.types import Ints, Table

RUN_COLUMNS = ("query_id", "doc_id", "score", "rank", "run_id")


@dataclass(frozen=True, eq=False)
class Run:
    """The documents that a system returned, with their scores. Immutable.

    A run either stands in memory or is a promise to read a file (`Run.scan`): judging reads such a
    file in blocks, so that its size does not matter.

    Parameters
    ----------
    rows
        Where its rows come from.
    name
        How results call it.

    Examples
    --------
    >>> run = Run.of({"q1": {"d1": 0.9, "d2": 0.5}}, name="mine")
    >>> run
    Run('mine' from <dict>)
    >>> run.table.to_pydict()
    {'query_id': ['q1', 'q1'], 'doc_id': ['d1', 'd2'], 'score': [0.9, 0.5]}
    """

    rows: Rows
    name: str = "run"

    @classmethod
    def scan(cls, path: str | Path, *, format: str | None = None, name: str | None = None) -> Self:
        """Name a file as a run; its rows are read, in blocks, whenever the run is judged.

        Raises
        ------
        InputError
            If the file is missing, empty, or its first lines are not those of a run.
        """
        source = open_source(path, "run", format)
        return cls(source.rows, name or source.name)

    @classmethod
    def read(cls, path: str | Path, *, format: str | None = None, name: str | None = None) -> Self:
        """Read a whole run into memory.

        Raises
        ------
        InputError
            If the file cannot be read as a run; the message names the line.
        """
        scanned = cls.scan(path, format=format, name=name)
        return cls(TableRows(scanned.table, scanned.where), scanned.name)

    @classmethod
    def of(cls, data: Any, *, name: str = "run") -> Self:
        """Make a run of a dict of dicts, a data frame, named tuples, ranked lists of ids, or a path.

        A dict is read where it stands; it is not copied, and never changed.

        Raises
        ------
        InputError
            If the object cannot be read as one run.
        """
        if isinstance(data, cls):
            return data
        if isinstance(data, (str, Path)):
            return cls.scan(data)
        run = cls(rows_of_object(data, "run"), name)
        if len(names := run_ids(run.rows)) > 1:
            raise InputError(
                f"{len(names)} runs in one table: {', '.join(names[:5])}", fix="use judged.scoring.evaluation.runs_of"
            )
        return run

    def emptied(self) -> Self:
        """Give a run of the same name and place without rows: for whoever should not hold them."""
        return type(self)(MappingRows({}, self.where), self.name)

    @property
    def where(self) -> str:
        """The path it comes from, or ``<dict>``, ``<table>``."""
        return self.rows.where

    @property
    def has_scores(self) -> bool:
        """Whether its documents are ranked; if not it is a set."""
        return self.rows.has_scores

    @property
    def has_ranks(self) -> bool:
        """Whether each document comes with a rank of its own."""
        return self.rows.has_ranks

    @property
    def table(self) -> Table:
        """All rows as an Arrow table: ``query_id, doc_id`` and, where there are any, ``score, rank, run_id``."""
        table, _ = Source(self.rows, self.name).table(RUN_COLUMNS)
        return table

    def __repr__(self) -> str:
        return f"Run({self.name!r} from {self.where})"

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand the rows to any library that reads Arrow."""
        return pa.table(self.table).__arrow_c_stream__(requested_schema)


def run_ids(rows: Rows) -> list[str]:
    """Give the distinct run ids of a table, in order of appearance; none where it has no such column."""
    if isinstance(rows, EngineRows):
        return rows.table.runs if rows.run is None else [rows.run]
    if isinstance(rows, ParquetRows):
        return run_ids(PartRows((rows,), (None,), rows.where))
    if isinstance(rows, PartRows):
        return rows.run_ids()
    if isinstance(rows, TableRows) and "run_id" in rows.table.column_names:
        return pc.unique(rows.table["run_id"]).to_pylist()
    return []


def run_named(name: str, names: Iterable[str], role: str = "") -> str:
    """Say which of these runs is meant: one goes by its name, or by the path of its file.

    >>> run_named("runs/bm25.run.gz", ["bm25", "rrf"])
    'bm25'

    Raises
    ------
    InputError
        If it is none of them.
    """
    known = list(names)
    if name in known:
        return name
    if (called := source_name(str(name))) in known:
        return called
    raise InputError(f"no run {name!r} {role}".rstrip(), fix=f"use one of {', '.join(known)}")


def split_runs(rows: Rows, name: str) -> list[Run]:
    """Make one run of some rows, or several where a column ``run_id`` tells them apart."""
    # The tag at the end of TREC lines tells nothing apart: systems share tags, and one system may use several.
    if isinstance(rows, TextRows) and rows.layout.header and "run_id" in rows.layout.names:
        rows = TableRows(Run(rows, name).table, rows.where)
    names = run_ids(rows)
    if isinstance(rows, EngineRows) and len(names) > 1:
        return [Run(EngineRows(rows.table, run_id), run_id) for run_id in names]
    if isinstance(rows, ParquetRows):
        rows = PartRows((rows,), (None,), rows.where)
    if isinstance(rows, PartRows) and len(names) > 1:
        return [Run(replace(rows, only=run_id), str(run_id)) for run_id in names]
    if not isinstance(rows, TableRows) or len(names) < 2:
        return [Run(rows, name)]
    table = rows.table
    codes = pc.index_in(table["run_id"], pc.unique(table["run_id"])).to_numpy()
    if (codes[1:] >= codes[:-1]).all():  # each run's rows stand together: no need to look through all for each
        ends = np.flatnonzero(np.diff(codes, append=len(names))) + 1
        parts = [table.slice(start, end - start) for start, end in pairwise((0, *ends.tolist()))]
    else:
        parts = [table.filter(pc.equal(table["run_id"], run_id)) for run_id in names]
    return [Run(TableRows(part, rows.where), str(run_id)) for run_id, part in zip(names, parts, strict=True)]


@dataclass(frozen=True, eq=False)
class TopicRows:
    """The rows of a run by topic. Query ids are kept once a topic and not once a row.

    >>> rows = TopicRows.of(Run.of({"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d3": 1.0}}, name="mine"))
    >>> rows.run("q1").table.to_pydict()
    {'query_id': ['q1', 'q1'], 'doc_id': ['d1', 'd2'], 'score': [2.0, 1.0]}
    >>> list(rows.run("q9").rows.parts(("query_id",)))
    []
    """

    name: str  # of the run
    where: str  # of the run
    # `doc_id` and, where the run has them, `score` and `rank`; the rows of a topic stand together, in the order of the
    # run
    table: Table = field(repr=False)
    topics: pa.Array[Any] = field(repr=False)  # in the order of the run
    edges: Ints = field(repr=False)  # where the rows of each of them begin, and in the end their number

    @classmethod
    def of(cls, run: Run) -> Self:
        """Read a run into memory."""
        table = run.table
        query = table["query_id"].combine_chunks()
        query = query.dictionary_encode() if not isinstance(query, pa.DictionaryArray) else query
        codes = np.asarray(query.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
        rest = table.drop_columns(["query_id"])
        if np.any(np.diff(codes) < 0):  # a topic comes back after others
            order = np.argsort(codes, kind="stable")
            codes, rest = codes[order], rest.take(int_array(order))
        edges = np.searchsorted(codes, np.arange(len(query.dictionary) + 1))
        kept = [name for name in ("doc_id", "score", "rank") if name in rest.column_names]
        return cls(run.name, run.where, rest.select(kept), query.dictionary, edges)

    def mapped(self) -> Self:
        """Give the same rows from a file without a name, of which only what is looked at comes into memory."""
        table = self.table.unify_dictionaries().combine_chunks()
        try:
            with TemporaryFile() as file:
                with pa.ipc.new_file(file, table.schema) as writer:
                    writer.write_table(table)
                file.flush()
                pages = mmap(file.fileno(), 0, access=ACCESS_READ)
        except OSError:  # the disk is full
            return self
        return replace(self, table=pa.ipc.open_file(pa.py_buffer(pages)).read_all())

    def run(self, query_id: str) -> Run:
        """Give one topic as a run of its own; an empty one where the run has not answered it."""
        at = self.topics.index(query_id).as_py()
        first, last = (0, 0) if at < 0 else self.edges[at : at + 2].tolist()
        part = self.table.slice(first, last - first)
        query = pa.array([query_id] * part.num_rows, pa.string())
        return Run(TableRows(part.add_column(0, "query_id", query).combine_chunks(), self.where), self.name)
