"""Relevance judgments."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from judged.data import files
from judged.data.compute import distinct, pc
from judged.data.index import Aspects, QrelsIndex, build_aspects, build_index
from judged.data.objects import rows_of_object
from judged.data.own_tables import read_agreed_judgments
from judged.data.sources import Source, open_source
from judged.errors import InputError
from judged.results.files import atomic_write
from judged.results.types import cached_property

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from judged.data.qrels import Origin
    from judged.results.types import Table

QRELS_COLUMNS = ("query_id", "doc_id", "relevance", "iteration")
_PREFERENCES = ("query_id", "doc_id", "relevance", "user", "subgroup")


@dataclass(frozen=True, eq=False)
class Qrels:
    """Relevance judgments: grades of documents for topics. Immutable.

    Parameters
    ----------
    table
        Arrow table with the columns ``query_id`` (string), ``doc_id`` (string), ``relevance`` (float64),
        and optionally ``iteration`` (string: a subtopic or an assessor).
    name, where, sha256
        Name in results, source in error messages, and hash of the file.
    left_out
        Topics of the source that were not selected.
    selected_by
        Expression that selected the topics; empty if topics were selected by id, or all topics are included.
    origin
        Labels from which the judgments were computed, if known.

    Raises
    ------
    InputError
        If the table is empty, a pair appears twice in one iteration, or a grade is not a finite number.

    Examples
    --------
    >>> qrels = Qrels.of({"q1": {"d1": 2, "d2": 0}, "q2": {"d3": 1}})
    >>> qrels
    Qrels('qrels': 3 judgments, 2 topics, grades 0 to 2)
    >>> qrels.table.column_names
    ['query_id', 'doc_id', 'relevance']
    """

    table: Table
    name: str = "qrels"
    where: str = "<table>"
    sha256: str | None = None
    left_out: frozenset[str] = frozenset()
    selected_by: str = ""
    origin: Origin | None = None

    def __post_init__(self) -> None:
        if not self.table.num_rows:
            raise InputError(
                "there are no judgments", fix="use a file with at least one line", path=self.where, rule="empty-file"
            )
        grades = self.grades
        if not np.isfinite(grades).all():
            row = int(np.flatnonzero(~np.isfinite(grades))[0])
            pair = f"topic {self.table['query_id'][row]}, document {self.table['doc_id'][row]}"
            raise InputError(f"the grade of {pair} is {grades[row]}", fix="write a finite number", path=self.where)

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        format: str | None = None,
        name: str | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> Self:
        """Read judgments from a file; without `format` it is detected from content and name.

        `columns` names the columns of a table: ``{"doc_id": "sku"}`` reads ``doc_id`` from the column ``sku``.
        If there is a file ``<path>.origin.json`` with the hash of this file, the origin is read from it. The format
        ``prefs`` is not detected: preferences with five fields per line, ``query_id user subgroup doc_id level``. User
        and subgroup together become the iteration.

        Raises
        ------
        InputError
            If the file cannot be read as judgments; the message names the line.
        """
        source = open_source(path, "qrels", format, columns)
        table, digest = source.table(_PREFERENCES if format == "prefs" else QRELS_COLUMNS)
        if format == "prefs":
            table = preferences_to_judgments(table, "subgroup")

        where = source.rows.where
        qrels = cls(table, name or source.name, where, digest, origin=read_origin(where, digest))
        try:
            qrels._check_duplicates(source)
        except InputError:
            agreed = read_agreed_judgments(source.rows.paths[0], where) if len(source.rows.paths) == 1 else None
            if agreed is None:
                raise
            return replace(qrels, table=agreed)
        return qrels

    @classmethod
    def of(cls, data: Any, *, name: str = "qrels") -> Self:
        """Create judgments from a dict of dicts, a data frame, named tuples, lists of relevant ids, or a path.

        A dataset of ir_datasets, or its address such as ``irds:beir/scifact/test``, is also accepted.

        Raises
        ------
        InputError
            If the object cannot be read as judgments.
        """
        if isinstance(data, cls):
            return data
        if isinstance(data, (str, Path)):
            return cls.read(data)
        source = Source(rows_of_object(data, "qrels"), name)
        table, _ = source.table(QRELS_COLUMNS)
        if "relevance" not in table.column_names:
            raise InputError("the column of grades is missing", fix="add a column 'relevance'", path=source.rows.where)
        qrels = cls(table, name, source.rows.where)
        qrels._check_duplicates(source)
        return qrels

    @property
    def grades(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """All grades, in the order of the table."""
        return self.table["relevance"].to_numpy()

    @cached_property
    def distinct_grades(self) -> tuple[float, ...]:
        """Distinct grades in ascending order."""
        return tuple(distinct(self.grades).tolist())

    @property
    def topics(self) -> tuple[str, ...]:
        """Query ids in byte order."""
        return self.index.topics

    @cached_property
    def index(self) -> QrelsIndex:
        """Index for joins with runs (cached)."""
        return build_index(self.table)

    @cached_property
    def aspects(self) -> Aspects:
        """Judgments grouped by pair, for pairs with several subtopics or assessors (cached)."""
        return build_aspects(self.table, self.index)

    def over(self, query_ids: Collection[str]) -> Qrels:
        """Select the judgments of some topics.

        Raises
        ------
        InputError
            If none of them has a judgment.

        Examples
        --------
        >>> Qrels.of({"q1": {"d1": 2, "d2": 0}, "q2": {"d3": 1}}).over({"q2"})
        Qrels('qrels': 1 judgments, 1 topics, grades 1 to 1)
        """
        is_selected = pc.is_in(self.table["query_id"], value_set=pa.array(sorted(query_ids), pa.string()))
        table = self.table.filter(is_selected)
        if not table.num_rows:
            raise InputError("none of the selected topics has a judgment", fix="check the query ids", path=self.where)
        return replace(self, table=table, left_out=self.left_out | (set(self.topics) - set(query_ids)))

    def regraded(self, grades: Any) -> Qrels:
        """Replace all grades, in the order of the table."""
        position = self.table.column_names.index("relevance")
        return replace(self, table=self.table.set_column(position, "relevance", pa.array(grades, pa.float64())))

    def _check_duplicates(self, source: Source) -> None:
        if self.table.num_rows == len(self.index.topic):
            return
        keys = [name for name in ("query_id", "doc_id", "iteration") if name in self.table.column_names]
        counts = self.table.group_by(keys).aggregate([([], "count_all")])
        duplicates = counts.filter(pc.greater(counts["count_all"], 1))
        if not duplicates.num_rows:
            return
        first = duplicates.slice(0, 1).to_pylist()[0]
        query, doc = first["query_id"], first["doc_id"]
        raise InputError(
            f"document {doc} is judged {first['count_all']} times for topic {query}"
            f" (pairs of topic and document with several judgments: {duplicates.num_rows})",
            fix="keep one judgment per pair, or use different iterations (subtopics, assessors)",
            path=self.where,
            line=source.rows.line(query, doc, 2),
        )

    def __len__(self) -> int:
        return self.table.num_rows

    def __repr__(self) -> str:
        grades = self.grades
        return (
            f"Qrels({self.name!r}: {len(self)} judgments, {len(self.topics)} topics, "
            f"grades {grades.min():g} to {grades.max():g})"
        )

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the table through the Arrow C stream interface."""
        return pa.table(self.table).__arrow_c_stream__(requested_schema)


def preferences_to_judgments(table: Table, subgroup: str | None) -> Table:
    """Convert preferences to judgments with ``user subgroup`` as the iteration; without subgroups, ``user 0``."""
    group = "0" if subgroup is None else table[subgroup]
    users = pc.binary_join_element_wise(table["user"], group, " ")
    return table.select(["query_id", "doc_id", "relevance"]).append_column("iteration", users)


_SCHEMA = "judged.origin/1"


@dataclass(frozen=True)
class Origin:
    """How judgments were computed from labels, for all topics of the source, even if only some were selected."""

    how: str  # aggregation rule: `majority`, `mean`, `dawid-skene`..., or `judge` with its rule for several labels
    # human, model, click: number of labels of each kind
    human: int = 0
    model: int = 0
    click: int = 0
    judges: tuple[str, ...] = ()  # names of the judges
    synthetic: int = 0  # number of topics that were generated from documents
    tied: int = 0  # number of pairs without a majority grade
    converged: bool = True  # whether the estimation converged
    last: str = ""  # time of the last label, ISO 8601 in UTC; empty if unknown
    sha256: str = ""  # of the labels

    @classmethod
    def of(cls, data: dict[str, Any]) -> Self:
        """Create an origin from parsed JSON; unknown keys are ignored.

        Raises
        ------
        TypeError
            If a required key is missing.
        """
        values = {field.name: data[field.name] for field in fields(cls) if field.name in data}
        return replace(cls(**values), judges=tuple(data.get("judges", ())))


def read_origin(path: str, sha256: str | None) -> Origin | None:
    """Read ``<path>.origin.json``; None if it does not exist, or was written for a file with another hash."""
    origin_path = Path(f"{path}.origin.json")
    if sha256 is None or not files.exists(origin_path):
        return None
    try:
        document = json.loads(origin_path.read_bytes())
        return Origin.of(document["origin"]) if document["file_sha256"] == sha256 else None
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        problem = f"the origin of the judgments cannot be read ({type(error).__name__}: {error})"
        fix = "create the judgments again, or delete this file"
        raise InputError(problem, fix=fix, path=str(origin_path)) from None


def write_origin(origin: Origin | None, path: str | Path) -> None:
    """Write the origin and the hash of a judgments file to ``<path>.origin.json``; without an origin, delete it."""
    origin_path = Path(f"{path}.origin.json")
    if origin is None and files.exists(origin_path):
        origin_path.unlink()
    if origin is None or not Path(path).is_file():  # a pipe or a device
        return
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    document = {"schema": _SCHEMA, "file_sha256": digest, "origin": asdict(origin)}
    with atomic_write(origin_path) as temporary:
        temporary.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
