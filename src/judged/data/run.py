"""Runs: ranked results of a system."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
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
from judged.data.sources import Source, expand_path, open_source, source_name, split_name
from judged.data.text_rows import TextRows
from judged.errors import InputError
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from judged.results.types import Ints, Table

RUN_COLUMNS = ("query_id", "doc_id", "score", "rank", "run_id")


@dataclass(frozen=True, eq=False)
class Run:
    """The documents that a system returned, with their scores. Immutable.

    The rows of a run are in memory, or are read from a file in blocks when they are needed (`Run.scan`), so that a file
    may be larger than memory.

    Parameters
    ----------
    rows
        Source of the rows.
    name
        Name in results.

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
    def scan(
        cls,
        path: str | Path,
        *,
        format: str | None = None,
        name: str | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> Self:
        """Open a file as a run; its rows are read in blocks each time the run is judged.

        `columns` names the columns of a table: ``{"doc_id": "sku"}`` reads ``doc_id`` from the column ``sku``.

        Raises
        ------
        InputError
            If the file is missing, empty, or its first lines are not those of a run.
        """
        source = open_source(path, "run", format, columns)
        return cls(source.rows, name or source.name)

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        format: str | None = None,
        name: str | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> Self:
        """Read a run into memory, see `scan`.

        Raises
        ------
        InputError
            If the file cannot be read as a run; the message names the line.
        """
        scanned = cls.scan(path, format=format, name=name, columns=columns)
        return cls(TableRows(scanned.table, scanned.where), scanned.name)

    @classmethod
    def of(cls, data: Any, *, name: str = "run") -> Self:
        """Create a run from a dict of dicts, a data frame, named tuples, ranked lists of ids, or a path.

        A dict is neither copied nor changed.

        Raises
        ------
        InputError
            If the object cannot be read as one run.
        """
        if isinstance(data, cls):
            return data
        if isinstance(data, (str, Path)):
            run = single_run(read_runs(data), str(data))
            return cls(run.rows, run.name)
        run = cls(rows_of_object(data, "run"), name)
        if len(names := run_ids(run.rows)) > 1:
            raise InputError(
                f"{len(names)} runs in one table: {', '.join(names[:5])}", fix="use judged.scoring.evaluation.runs_of"
            )
        return run

    def emptied(self) -> Self:
        """Return a run with the same name and source but without rows, which needs no memory."""
        return type(self)(MappingRows({}, self.where), self.name)

    @property
    def where(self) -> str:
        """Source in error messages: a path, ``<dict>``, or ``<table>``."""
        return self.rows.where

    @property
    def has_scores(self) -> bool:
        """Whether the documents have scores; a run without scores is a set."""
        return self.rows.has_scores

    @property
    def has_ranks(self) -> bool:
        """Whether the documents have ranks."""
        return self.rows.has_ranks

    @property
    def table(self) -> Table:
        """All rows as an Arrow table: ``query_id, doc_id``, and if present ``score, rank, run_id``."""
        table, _ = Source(self.rows, self.name).table(RUN_COLUMNS)
        return table

    def __repr__(self) -> str:
        return f"Run({self.name!r} from {self.where})"

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows through the Arrow C stream interface."""
        return pa.table(self.table).__arrow_c_stream__(requested_schema)


def run_ids(rows: Rows) -> list[str]:
    """Return the distinct run ids in order of appearance; empty if there is no column of run ids."""
    if isinstance(rows, EngineRows):
        return rows.table.runs if rows.run is None else [rows.run]
    if isinstance(rows, ParquetRows):
        return run_ids(PartRows((rows,), (None,), rows.where))
    if isinstance(rows, PartRows):
        return rows.run_ids()
    if isinstance(rows, TableRows) and "run_id" in rows.table.column_names:
        return pc.unique(rows.table["run_id"]).to_pylist()
    return []


def read_runs(path: str | Path, format: str | None = None) -> list[Run]:
    """Open the runs of a file, a folder, a pattern, or ``-`` for standard input; NAME=FILE names them."""
    name, file = split_name(path)
    scanned_runs = [Run.scan(run_file, format=format) for run_file in expand_path(file)]
    return name_runs([run for scanned in scanned_runs for run in split_runs(scanned.rows, scanned.name)], name)


def name_runs(runs: list[Run], name: str) -> list[Run]:
    """Name a run; several runs get the name as a prefix. Without a name, return the runs as they are."""
    if not name:
        return runs
    return [Run(run.rows, name if len(runs) == 1 else f"{name}/{run.name}") for run in rename_duplicates(runs)]


def rename_duplicates(runs: list[Run]) -> list[Run]:
    """Make names unique. Names from the caller have precedence over names of files."""
    if len(runs) == 1:
        return runs
    explicit = {run.name for run in runs if run.name != source_name(run.where)}
    names = [run.name for run in runs]
    counts = Counter(names)
    names = [
        f"{Path(run.where).parent.name}/{run.name}"
        if counts[run.name] > 1 and run.name not in explicit and "/" in run.where
        else run.name
        for run in runs
    ]
    used, renamed = {*names, *explicit}, dict[str, Run]()
    numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(2))
    for run, name in zip(runs, names, strict=True):
        candidates = (f"{name}#{number}" for number in numbers[name])
        is_taken = name in renamed or (name in explicit and run.name == source_name(run.where))
        new_name = next(text for text in candidates if text not in used and text not in renamed) if is_taken else name
        renamed[new_name] = Run(run.rows, new_name)
    return list(renamed.values())


def single_run(runs: Sequence[Run], role: str) -> Run:
    """Return the only run, or raise an InputError; `role` is its name in the message."""
    if len(runs) != 1:
        names = ", ".join(run.name for run in runs[:5])
        raise InputError(f"{role} must be one run, got {len(runs)}: {names}", fix="select one run")
    return runs[0]


def find_run_name(name: str, names: Iterable[str], role: str = "") -> str:
    """Return the run name for a name, or for a path whose end is the name of only one run.

    >>> find_run_name("runs/bm25.run.gz", ["bm25", "rrf"]), find_run_name("old", ["a/old", "a/new"])
    ('bm25', 'a/old')

    Raises
    ------
    InputError
        If there is no such run, or there are several.
    """
    run_names = list(names)
    path = _path_parts(str(name))
    matches = [exact for exact in (name, "/".join(path)) if exact in run_names][:1] or [
        run for run in run_names if (parts := _path_parts(run))[-len(path) :] == path[-len(parts) :]
    ]
    if len(matches) == 1:
        return matches[0]
    problem = f"{len(matches)} runs match" if matches else "no run"
    raise InputError(f"{problem} {name!r} {role}".rstrip(), fix=use_one_of(matches or run_names))


def find_run(name: str, runs: Sequence[Run], role: str = "") -> Run:
    """Return the run with a name, the path of its file, or an unambiguous stem; see `find_run_name`."""
    files = [run for run in runs if Path(run.where) == Path(split_name(name)[1])]
    names = {run.name: run for run in runs}
    return files[0] if name not in names and len(files) == 1 else names[find_run_name(name, names, role)]


def _path_parts(path: str) -> tuple[str, ...]:
    return Path(path).with_name(source_name(path)).parts if Path(path).name else (path,)


def split_runs(rows: Rows, name: str) -> list[Run]:
    """Split rows into runs by a column ``run_id``; a single run if there is no such column."""
    # The tag in TREC files is not used: systems share tags, and a system may use several tags.
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
    if (codes[1:] >= codes[:-1]).all():  # the rows of each run are contiguous: slices are faster than filters
        ends = np.flatnonzero(np.diff(codes, append=len(names))) + 1
        tables = [table.slice(start, end - start) for start, end in pairwise((0, *ends.tolist()))]
    else:
        tables = [table.filter(pc.equal(table["run_id"], run_id)) for run_id in names]
    return [Run(TableRows(table, rows.where), str(run_id)) for run_id, table in zip(names, tables, strict=True)]


@dataclass(frozen=True, eq=False)
class TopicRows:
    """Rows of a run grouped by topic, with each query id stored once.

    >>> rows = TopicRows.of(Run.of({"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d3": 1.0}}, name="mine"))
    >>> rows.run("q1").table.to_pydict()
    {'query_id': ['q1', 'q1'], 'doc_id': ['d1', 'd2'], 'score': [2.0, 1.0]}
    >>> list(rows.run("q9").rows.parts(("query_id",)))
    []
    """

    name: str  # of the run
    where: str  # source of the run
    # Columns `doc_id`, and if present `score` and `rank`; rows of a topic are contiguous and in the order of the run.
    table: Table = field(repr=False)
    topics: pa.Array[Any] = field(repr=False)  # query ids in the order of the run
    offsets: Ints = field(repr=False)  # first row of each topic, and the number of rows as the last value

    @classmethod
    def of(cls, run: Run) -> Self:
        """Read a run into memory."""
        table = run.table
        query = table["query_id"].combine_chunks()
        query = query.dictionary_encode() if not isinstance(query, pa.DictionaryArray) else query
        codes = np.asarray(query.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
        table = table.select([name for name in ("doc_id", "score", "rank") if name in table.column_names])
        if np.any(np.diff(codes) < 0):  # the rows of a topic are not contiguous
            order = np.argsort(codes, kind="stable")
            codes, table = codes[order], table.take(int_array(order))
        offsets = np.searchsorted(codes, np.arange(len(query.dictionary) + 1))
        return cls(run.name, run.where, table, query.dictionary, offsets)

    def memory_mapped(self) -> Self:
        """Return the same rows in a memory-mapped temporary file, of which only the pages in use need memory."""
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
        """Return the rows of one topic as a run; an empty run if the run has no such topic."""
        topic = self.topics.index(query_id).as_py()
        start, end = (0, 0) if topic < 0 else self.offsets[topic : topic + 2].tolist()
        table = self.table.slice(start, end - start)
        query = pa.array([query_id] * table.num_rows, pa.string())
        return Run(TableRows(table.add_column(0, "query_id", query).combine_chunks(), self.where), self.name)
