"""Labels: who gave which document which grade for which topic, as one table that everything else reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.qrels import Qrels
from judged.errors import InputError
from judged.results.types import cached_property

if TYPE_CHECKING:
    from collections.abc import Collection

    from judged.results.types import Floats, Ints, Strings, Table


Kind: TypeAlias = Literal["human", "model", "click"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SCHEMA = pa.schema(
    {
        "query_id": pa.string(),
        "doc_id": pa.string(),
        "judge": pa.string(),  # a person's name or a model's; never empty
        "kind": pa.string(),  # one of `KINDS`
        "repeat": pa.int64(),  # 0, or the how-manieth time the same judge was asked for the same pair
        "grade": pa.float64(),  # null: no grade was given
        "valid": pa.bool_(),  # false: not a label: taken back, put off, or an answer that is no grade
        "note": pa.string(),
        "seconds": pa.float64(),  # that it took; null where nobody measured
        "at": pa.string(),  # when, as ISO 8601 in UTC; empty where nobody knows
        "prompt": pa.string(),  # hash of what a model was asked
        "model": pa.string(),
        "seed": pa.int64(),
        "logprobs": pa.string(),  # JSON: {grade: log probability} of a model's first token
    }
)
ADJUDICATOR = "adjudicator"
"""The judge whose label settles what others disagree about."""
KEY = ("query_id", "doc_id", "judge", "repeat")
"""What there is one label of at a time: of several the latest by `at` counts, or the last where one has no time."""


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels in the order in which they were given. Immutable.

    Parameters
    ----------
    table
        Arrow table with the columns of `SCHEMA`.
    name, where
        How messages and results call it, and the path it came from.

    Raises
    ------
    InputError
        If there are none, a judge has no name, a kind is unknown, or a grade is not a finite number.

    Examples
    --------
    >>> labels = Labels.of({"ann": {"q": {"a": 2, "b": 0}}, "bob": {"q": {"a": 1}}})
    >>> labels, labels.judges, labels.grades[0].tolist()
    (Labels('labels': 3 labels, 2 pairs, 2 judges), ('ann', 'bob'), [2.0, 1.0])
    """

    table: Table
    name: str = "labels"
    where: str = "<labels>"

    def __post_init__(self) -> None:
        table = self.table
        if not table.num_rows:
            raise InputError("there are no labels", fix="judge something first", path=self.where)
        for column in ("query_id", "doc_id", "judge"):
            if pc.any(pc.equal(pc.fill_null(table[column], ""), "")).as_py():
                raise InputError(f"a label has no {column}", fix=f"give each a {column}", path=self.where)
        if strange := sorted(set(table["kind"].unique().to_pylist()) - set(KINDS)):
            fix = f"use one of {', '.join(KINDS)}"
            raise InputError(f"no kind of label {strange[0]!r}", fix=fix, path=self.where)
        given = table["grade"].drop_null().to_numpy()
        if not np.isfinite(given).all():
            raise InputError("a grade is not finite", fix="leave it empty where there is none", path=self.where)

    @classmethod
    def of(cls, data: Any, *, kind: Kind = "human", name: str = "labels") -> Labels:
        """Make labels of a store, a table, ``{judge: qrels}``, or the path of a store or a table.

        A table has the columns ``query_id``, ``doc_id``, ``judge`` and ``grade``, and as many others of `SCHEMA` as are
        known; what it does not say is human, valid, and given once.
        """
        if isinstance(data, cls):
            return data
        if hasattr(data, "labels"):
            return data.labels()
        if isinstance(data, (str, Path)):
            from judged.labels.exchange import read_labels

            return read_labels(data)
        if isinstance(data, Mapping):
            return cls._of_qrels(data, kind, name)
        return cls(completed(pa.table(data), kind, "<table>"), name, "<table>")

    @classmethod
    def _of_qrels(cls, judges: Mapping[Any, Any], kind: Kind, name: str) -> Labels:
        parts: list[Table] = []
        for judge, given in judges.items():
            qrels = Qrels.of(given, name=str(judge))
            table = qrels.table.select(["query_id", "doc_id", "relevance"]).rename_columns(
                ["query_id", "doc_id", "grade"]
            )
            parts.append(table.append_column("judge", pa.array([str(judge)] * table.num_rows, pa.string())))
        if not parts:
            raise InputError("there are no judges", fix="give {judge: qrels}")
        return cls(completed(pa.concat_tables(parts), kind, "<dict>"), name, "<dict>")

    @cached_property
    def last(self) -> Table:
        """The label that counts of each topic, document, judge and repeat, in the order in which they were given."""
        rows = self.table.select([*KEY, "at"]).append_column("row", pa.array(np.arange(self.table.num_rows)))
        by_time = pc.sort_indices(rows, sort_keys=[("at", "ascending"), ("row", "ascending")])
        timed = rows.append_column("timed", pc.not_equal(rows["at"], "")).take(by_time)
        timed = timed.append_column("place", pa.array(np.arange(len(timed))))
        groups = timed.group_by(list(KEY)).aggregate([("row", "max"), ("place", "max"), ("timed", "all")])
        latest = by_time.to_numpy().astype(np.int64)[groups["place_max"].to_numpy()]
        kept = np.where(groups["timed_all"].to_numpy(), latest, groups["row_max"].to_numpy())
        return self.table.take(pa.array(np.sort(kept)))

    @cached_property
    def graded(self) -> Table:
        """Those of `last` that are valid and have a grade."""
        return self.last.filter(pc.and_(self.last["valid"], pc.is_valid(self.last["grade"])))

    @property
    def judges(self) -> tuple[str, ...]:
        """All who gave a label, in the order in which they came."""
        return tuple(self.table["judge"].unique().to_pylist())

    @cached_property
    def pairs(self) -> Table:
        """The pairs of topic and document that have a grade, in the order of their ids."""
        distinct = self.graded.group_by(["query_id", "doc_id"]).aggregate([])
        return distinct.sort_by([("query_id", "ascending"), ("doc_id", "ascending")])

    @cached_property
    def grades(self) -> Floats:
        """The grade of each pair by each judge: (pairs, judges), NaN where there is none. Of repeats the first."""
        first = self.graded.filter(pc.equal(self.graded["repeat"], 0))
        grades = np.full((self.pairs.num_rows, len(self.judges)), np.nan)
        judges = pc.index_in(first["judge"], value_set=pa.array(self.judges, pa.string())).to_numpy()
        grades[self.row_of(first), judges] = first["grade"].to_numpy()
        return grades

    @cached_property
    def topic(self) -> Ints:
        """The topic of each pair, as codes from 0 in the order of their ids: (pairs,)."""
        ids = self.pairs["query_id"]
        return pc.index_in(ids, value_set=pc.unique(ids)).to_numpy().astype(np.int64)

    def row_of(self, table: Table) -> Ints:
        """Give the row in `pairs` of each row of a table; all of them must be pairs."""
        rows = self.pairs.append_column("pair", pa.array(np.arange(self.pairs.num_rows)))
        asked = table.select(["query_id", "doc_id"]).append_column("row", pa.array(np.arange(table.num_rows)))
        joined = asked.join(rows, ["query_id", "doc_id"], join_type="inner").sort_by("row")
        return joined["pair"].to_numpy().astype(np.int64)

    def of_judges(self, judges: Collection[str]) -> Labels:
        """Leave the labels of some judges."""
        if strange := sorted(set(judges) - set(self.judges)):
            fix = f"use one of {', '.join(self.judges)}"
            raise InputError(f"no judge {strange[0]!r} gave a label", fix=fix, path=self.where)
        return replace(self, table=self._where("judge", judges))

    def of_kind(self, *kinds: Kind) -> Labels:
        """Leave the labels of people, models or clicks."""
        return replace(self, table=self._where("kind", kinds))

    def _where(self, column: str, values: Collection[str]) -> Table:
        return self.table.filter(pc.is_in(self.table[column], value_set=pa.array(sorted(values), pa.string())))

    def __len__(self) -> int:
        return self.table.num_rows

    def __repr__(self) -> str:
        pairs, judges = self.pairs.num_rows, len(self.judges)
        return f"Labels({self.name!r}: {len(self)} labels, {pairs} pairs, {judges} judges)"

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand the table to any library that reads Arrow."""
        return pa.table(self.table).__arrow_c_stream__(requested_schema)


def utc_text(value: str, where: str, line: int | None = None) -> str:
    """Write a time in one form, so that texts are ordered as times are; an empty text stays empty.

    >>> utc_text("2026-01-05T10:00:00+02:00", "labels.csv"), utc_text("2026-01-05", "labels.csv")
    ('2026-01-05T08:00:00.000+00:00', '2026-01-05T00:00:00.000+00:00')

    Raises
    ------
    InputError
        If it is no time in ISO 8601.
    """
    if not value:
        return ""
    try:
        time = datetime.fromisoformat(value)
        utc = time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        problem = f"the time {value!r:.60} is not in ISO 8601"
        raise InputError(problem, fix="write 2026-01-05T10:00:00Z", path=where, line=line) from None
    return utc.isoformat(timespec="milliseconds")


_USUAL: dict[str, Any] = {"repeat": 0, "valid": True, "note": "", "at": "", "prompt": "", "model": "", "logprobs": ""}


def completed(table: Table, kind: Kind, where: str) -> Table:
    """Give a table of labels all columns, of the types of `SCHEMA`; unknown columns are left out."""
    columns: dict[str, Strings] = {}
    for field_ in SCHEMA:
        name, usual = field_.name, {**_USUAL, "kind": kind}.get(field_.name)
        if name in table.column_names:
            try:
                column = table[name].cast(field_.type)
            except pa.ArrowException as error:
                raise InputError(
                    f"the column {name} cannot be read: {error}", fix=f"give {field_.type}", path=where
                ) from None
            columns[name] = column if usual is None else pc.fill_null(column, usual)
            if name == "at":
                columns[name] = pa.array([utc_text(value, where) for value in columns[name].to_pylist()], pa.string())
        elif name in {"query_id", "doc_id", "judge", "grade"}:
            raise InputError(f"there is no column {name}", fix="give query_id, doc_id, judge and grade", path=where)
        else:
            columns[name] = pa.array([usual] * table.num_rows, field_.type)
    return pa.table(columns, schema=SCHEMA)


class Grade(NamedTuple):
    """One grade of a scale."""

    grade: float
    word: str
    definition: str


SCALES: dict[str, tuple[Grade, ...]] = {
    "binary": (
        Grade(0, "Not relevant", "Nothing in it helps with what was asked."),
        Grade(1, "Relevant", "It holds something that whoever asked would want to read."),
    ),
    "0-3": (
        Grade(0, "Not relevant", "It has nothing to do with what was asked."),
        Grade(1, "Related", "It is about the subject, but does not answer."),
        Grade(2, "Relevant", "It answers in part, or the answer has to be looked for in it."),
        Grade(3, "Highly relevant", "It is about what was asked, and answers it."),
    ),
    "0-4": (
        Grade(0, "Bad", "It has nothing to do with what was asked, or misleads."),
        Grade(1, "Fair", "It touches the subject; few would be content with it."),
        Grade(2, "Good", "It helps, though much is lacking or hard to find."),
        Grade(3, "Excellent", "It gives what most would hope to find."),
        Grade(4, "Perfect", "It is the one result that must not be missing."),
    ),
}
"""The scales that come with judged, by name."""


def scale_of(given: str | tuple[Grade, ...] | list[tuple[float, str, str]]) -> tuple[Grade, ...]:
    """Give a scale by its name, or check one of somebody's own.

    >>> [one.word for one in scale_of("binary")]
    ['Not relevant', 'Relevant']
    """
    if isinstance(given, str):
        if given not in SCALES:
            raise InputError(f"no scale {given!r}", fix=f"use one of {', '.join(SCALES)}, or give grades of your own")
        return SCALES[given]
    grades = tuple(sorted(Grade(float(grade), word, definition) for grade, word, definition in given))
    if len(grades) < 2 or len({one.grade for one in grades}) < len(grades) or grades[0].grade < 0:
        raise InputError("a scale has at least two different grades from 0 on", fix="give (grade, word, definition)")
    return grades
