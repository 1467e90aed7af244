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
from judged.data.sources import Source, open_source
from judged.errors import InputError
from judged.results.files import atomic_write
from judged.results.types import cached_property

if TYPE_CHECKING:
    from collections.abc import Collection

    from judged.data.qrels import Origin
    from judged.results.types import Table

QRELS_COLUMNS = ("query_id", "doc_id", "relevance", "iteration")
_PREFERENCES = ("query_id", "doc_id", "relevance", "user", "subgroup")


@dataclass(frozen=True, eq=False)
class Qrels:
    """Judgments: which document is how relevant to which topic. Immutable.

    Parameters
    ----------
    table
        Arrow table with the columns ``query_id`` (string), ``doc_id`` (string), ``relevance`` (float64)
        and, where the source has one, ``iteration`` (string: a subtopic or an assessor).
    name, where, sha256
        How messages and results call it, the path it came from, and the hash of that file.
    left_out
        The topics of the source that are not here because others were chosen.
    chosen_by
        The expression by which they were chosen; empty where they were named, or all are here.
    origin
        Of whose labels they were made, and how, where that is known.

    Raises
    ------
    InputError
        If it is empty, holds a pair twice (in one iteration), or a grade is not a finite number.

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
    chosen_by: str = ""
    origin: Origin | None = None

    def __post_init__(self) -> None:
        if not self.table.num_rows:
            raise InputError(
                "there are no judgments", fix="give a file with at least one line", path=self.where, rule="empty-file"
            )
        grades = self.grades
        if not np.isfinite(grades).all():
            row = int(np.flatnonzero(~np.isfinite(grades))[0])
            pair = f"topic {self.table['query_id'][row]}, document {self.table['doc_id'][row]}"
            raise InputError(f"the grade of {pair} is {grades[row]}", fix="write a finite number", path=self.where)

    @classmethod
    def read(cls, path: str | Path, *, format: str | None = None, name: str | None = None) -> Self:
        """Read judgments from a file; its format is found by content and name.

        What a file ``<path>.origin.json`` beside it says of their origin holds if it is of this very file. The format
        ``prefs`` must be named: preferences with five fields a line,
        ``query_id user subgroup doc_id level``. User and subgroup together become the iteration.

        Raises
        ------
        InputError
            If the file cannot be read as judgments; the message names the line.
        """
        source = open_source(path, "qrels", format)
        qrels, digest = source.table(_PREFERENCES if format == "prefs" else QRELS_COLUMNS)
        if format == "prefs":
            qrels = by_user(qrels, "subgroup")

        where = source.rows.where
        made = cls(qrels, name or source.name, where, digest, origin=origin_of_file(where, digest))
        made._refuse_duplicates(source)
        return made

    @classmethod
    def of(cls, data: Any, *, name: str = "qrels") -> Self:
        """Make judgments of a dict of dicts, a data frame, named tuples, lists of relevant ids, or a path.

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
            raise InputError("there is no column of grades", fix="add a column 'relevance'", path=source.rows.where)
        made = cls(table, name, source.rows.where)
        made._refuse_duplicates(source)
        return made

    @property
    def grades(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """All grades, in the order of the table."""
        return self.table["relevance"].to_numpy()

    @cached_property
    def distinct_grades(self) -> tuple[float, ...]:
        """The different grades, rising."""
        return tuple(distinct(self.grades).tolist())

    @property
    def topics(self) -> tuple[str, ...]:
        """The query ids, in byte order."""
        return self.index.topics

    @cached_property
    def index(self) -> QrelsIndex:
        """The judgments made ready for joining; made once and kept."""
        return build_index(self.table)

    @cached_property
    def aspects(self) -> Aspects:
        """Every judgment by its pair, where pairs have several (subtopics, assessors); made once and kept."""
        return build_aspects(self.table, self.index)

    def over(self, query_ids: Collection[str]) -> Qrels:
        """Leave the judgments of some topics.

        Raises
        ------
        InputError
            If none of them has a judgment.

        Examples
        --------
        >>> Qrels.of({"q1": {"d1": 2, "d2": 0}, "q2": {"d3": 1}}).over({"q2"})
        Qrels('qrels': 1 judgments, 1 topics, grades 1 to 1)
        """
        kept = pc.is_in(self.table["query_id"], value_set=pa.array(sorted(query_ids), pa.string()))
        table = self.table.filter(kept)
        if not table.num_rows:
            raise InputError("none of the chosen topics has a judgment", fix="check the query ids", path=self.where)
        return replace(self, table=table, left_out=self.left_out | (set(self.topics) - set(query_ids)))

    def regraded(self, grades: Any) -> Qrels:
        """Give every judgment another grade, in the order of the table."""
        place = self.table.column_names.index("relevance")
        return replace(self, table=self.table.set_column(place, "relevance", pa.array(grades, pa.float64())))

    def _refuse_duplicates(self, source: Source) -> None:
        if self.table.num_rows == len(self.index.topic):
            return
        keys = [name for name in ("query_id", "doc_id", "iteration") if name in self.table.column_names]
        counts = self.table.group_by(keys).aggregate([([], "count_all")])
        twice = counts.filter(pc.greater(counts["count_all"], 1))
        if not twice.num_rows:
            return
        first = twice.slice(0, 1).to_pylist()[0]
        query, doc = first["query_id"], first["doc_id"]
        raise InputError(
            f"document {doc} is judged {first['count_all']} times for topic {query}"
            f" ({twice.num_rows} such pairs in all)",
            fix="keep one judgment a pair, or give each its own iteration (subtopic, assessor)",
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
        """Hand the table to any library that reads Arrow."""
        return pa.table(self.table).__arrow_c_stream__(requested_schema)


def by_user(table: Table, subgroup: str | None) -> Table:
    """Give preferences as judgments whose iteration is the user and, where there is one, the user's subgroup."""
    # Without subgroups everything that a user said is one: `0`.
    group = "0" if subgroup is None else table[subgroup]
    users = pc.binary_join_element_wise(table["user"], group, " ")
    return table.select(["query_id", "doc_id", "relevance"]).append_column("iteration", users)


_SCHEMA = "judged.origin/1"


@dataclass(frozen=True)
class Origin:
    """How judgments were made of labels; it is of all of them, also where some topics were chosen afterwards."""

    how: str  # `majority`, `mean`, `dawid-skene`..., or `judge`, and which of several labels of a pair that takes
    # human, model, click: how many labels of each kind count
    human: int = 0
    model: int = 0
    click: int = 0
    judges: tuple[str, ...] = ()  # who gave them
    synthetic: int = 0  # topics that were made from documents, and asked by nobody
    tied: int = 0  # pairs with no grade that most judges gave
    converged: bool = True  # whether the estimate had settled
    last: str = ""  # when the last label was given, ISO 8601 in UTC; empty where nobody knows
    sha256: str = ""  # of the labels

    @classmethod
    def of(cls, known: dict[str, Any]) -> Self:
        """Read it from plain values; what is not known here is left out.

        Raises
        ------
        TypeError
            If it lacks something.
        """
        values = {field.name: known[field.name] for field in fields(cls) if field.name in known}
        return replace(cls(**values), judges=tuple(known.get("judges", ())))


def origin_of_file(path: str, sha256: str | None) -> Origin | None:
    """Read what stands beside a file of judgments with this hash; None where nothing does, or it is of another file."""
    beside = Path(f"{path}.origin.json")
    if sha256 is None or not files.exists(beside):
        return None
    try:
        known = json.loads(beside.read_bytes())
        return Origin.of(known["origin"]) if known["file_sha256"] == sha256 else None
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        problem = f"it does not say where judgments came from ({type(error).__name__}: {error})"
        raise InputError(problem, fix="make the judgments again, or delete it", path=str(beside)) from None


def write_origin(origin: Origin | None, path: str | Path) -> None:
    """Write beside a file of judgments where they came from, with the file's hash; what stood there before goes."""
    beside = Path(f"{path}.origin.json")
    if origin is None and files.exists(beside):
        beside.unlink()
    if origin is None or not Path(path).is_file():  # a pipe or a device has nothing beside it
        return
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    document = {"schema": _SCHEMA, "file_sha256": digest, "origin": asdict(origin)}
    with atomic_write(beside) as part:
        part.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
