"""Labels: grades of documents for topics, with judge, kind, and time, as one Arrow table."""

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
        "repeat": pa.int64(),  # 0, or the number of the repetition for the same judge and pair
        "grade": pa.float64(),  # null: no grade
        "valid": pa.bool_(),  # false: undone, postponed, or an answer that is not a grade
        "note": pa.string(),
        "seconds": pa.float64(),  # time for the label; null if not measured
        "time": pa.string(),  # time as ISO 8601 in UTC; empty if unknown
        "prompt": pa.string(),  # ID of the prompt of a model
        "model": pa.string(),
        "seed": pa.int64(),
        "logprobs": pa.string(),  # JSON: {grade: log probability} of a model's first token
    }
)
ADJUDICATOR = "adjudicator"
"""Name of the judge whose label settles disagreements."""
KEY = ("query_id", "doc_id", "judge", "repeat")
"""Key of a label. Of several labels, the latest by `time` counts, or the last one if a time is missing."""


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels in the order of arrival. Immutable.

    Parameters
    ----------
    table
        Arrow table with the columns of `SCHEMA`.
    name, where
        Name in messages and results, and path of the source.

    Raises
    ------
    InputError
        If there are no labels, a judge has no name, a kind is unknown, or a grade is not finite.

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
            raise InputError("there are no labels", fix="judge documents first", path=self.where)
        for column in ("query_id", "doc_id", "judge"):
            if pc.any(pc.equal(pc.fill_null(table[column], ""), "")).as_py():
                raise InputError(f"each label must have a {column}", fix=f"add the missing {column}", path=self.where)
        if unknown := sorted(set(table["kind"].unique().to_pylist()) - set(KINDS)):
            fix = f"use {', '.join(KINDS)}"
            raise InputError(f"unknown type of judge {unknown[0]!r}", fix=fix, path=self.where)
        grades = table["grade"].drop_null().to_numpy()
        if not np.isfinite(grades).all():
            raise InputError("grades must be finite", fix="leave missing grades empty", path=self.where)

    @classmethod
    def of(cls, data: Any, *, kind: Kind = "human", name: str = "labels") -> Labels:
        """Build labels from a store, a table, ``{judge: qrels}``, or the path of a store or a table.

        A table has the columns ``query_id``, ``doc_id``, ``judge`` and ``grade``, and optionally others of `SCHEMA`. By
        default labels are human, valid, and not repeated.
        """
        if isinstance(data, cls):
            return data
        if hasattr(data, "labels"):
            return data.labels()
        # Imported here, because exchange imports this module.
        if isinstance(data, (str, Path)):
            from judged.labels.exchange import read_labels

            return read_labels(data)
        if isinstance(data, Mapping):
            return cls._of_qrels(data, kind, name)
        return cls(complete_columns(pa.table(data), kind, "<table>"), name, "<table>")

    @classmethod
    def _of_qrels(cls, judges: Mapping[Any, Any], kind: Kind, name: str) -> Labels:
        tables: list[Table] = []
        for judge, judgments in judges.items():
            qrels = Qrels.of(judgments, name=str(judge))
            table = qrels.table.select(["query_id", "doc_id", "relevance"]).rename_columns(
                ["query_id", "doc_id", "grade"]
            )
            tables.append(table.append_column("judge", pa.array([str(judge)] * table.num_rows, pa.string())))
        if not tables:
            raise InputError("there are no judges", fix="use {judge: qrels}")
        return cls(complete_columns(pa.concat_tables(tables), kind, "<dict>"), name, "<dict>")

    @cached_property
    def last(self) -> Table:
        """The label of each topic, document, judge and repeat that counts, in the order of arrival."""
        rows = self.table.select([*KEY, "time"]).append_column("row", pa.array(np.arange(self.table.num_rows)))
        # Times are optional: by time if all labels of a key have one, else by position.
        by_time = pc.sort_indices(rows, sort_keys=[("time", "ascending"), ("row", "ascending")])
        timed = rows.append_column("timed", pc.not_equal(rows["time"], "")).take(by_time)
        timed = timed.append_column("time_order", pa.array(np.arange(len(timed))))
        groups = timed.group_by(list(KEY)).aggregate([("row", "max"), ("time_order", "max"), ("timed", "all")])
        latest = by_time.to_numpy().astype(np.int64)[groups["time_order_max"].to_numpy()]
        last_rows = np.where(groups["timed_all"].to_numpy(), latest, groups["row_max"].to_numpy())
        return self.table.take(pa.array(np.sort(last_rows)))

    @cached_property
    def graded(self) -> Table:
        """Labels of `last` that are valid and have a grade."""
        return self.last.filter(pc.and_(self.last["valid"], pc.is_valid(self.last["grade"])))

    @property
    def judges(self) -> tuple[str, ...]:
        """All judges, in the order of their first label."""
        return tuple(self.table["judge"].unique().to_pylist())

    @cached_property
    def pairs(self) -> Table:
        """Pairs of topic and document with a grade, ordered by ID."""
        distinct = self.graded.group_by(["query_id", "doc_id"]).aggregate([])
        return distinct.sort_by([("query_id", "ascending"), ("doc_id", "ascending")])

    @cached_property
    def grades(self) -> Floats:
        """Grade of each pair by each judge, (pairs, judges): NaN without one, the first of repeats."""
        # Repeats are excluded: they measure self-consistency.
        first = self.graded.filter(pc.equal(self.graded["repeat"], 0))
        grades = np.full((self.pairs.num_rows, len(self.judges)), np.nan)
        judges = pc.index_in(first["judge"], value_set=pa.array(self.judges, pa.string())).to_numpy()
        grades[self.row_of(first), judges] = first["grade"].to_numpy()
        return grades

    def counts(self) -> dict[str, Any]:
        """Count topics, pairs, judges, and judgments, and equal grades of the two judges with most pairs in common.

        >>> labels = Labels.of({"ann": {"q": {"a": 2, "b": 0}}, "bob": {"q": {"a": 1}}})
        >>> list(labels.counts().values())
        [1, 2, 2, 3, ('ann', 'bob'), 1, 0.0]
        """
        grades, judges = self.grades, self.judges
        is_graded = (~np.isnan(grades)).astype(np.int64)
        counts = {"topics": len(set(self.topic.tolist())), "pairs": len(grades), "judges": len(judges)}
        counts["judgments"] = int(is_graded.sum())
        if len(judges) < 2:
            return counts
        shared = np.triu(is_graded.T @ is_graded, 1)
        first, second = divmod(int(shared.argmax()), len(judges)) if shared.any() else (0, 1)
        number, equal = int(shared.max()), int((grades[:, first] == grades[:, second]).sum())
        both = {"both": (judges[first], judges[second]), "judged_by_both": number}
        return counts | both | {"agreement_of_both": equal / number if number else None}

    @cached_property
    def topic(self) -> Ints:
        """Topic of each pair, as codes from 0 in the order of IDs: (pairs,)."""
        ids = self.pairs["query_id"]
        return pc.index_in(ids, value_set=pc.unique(ids)).to_numpy().astype(np.int64)

    def row_of(self, table: Table) -> Ints:
        """Return the row in `pairs` of each row of a table, which must contain only pairs."""
        rows = self.pairs.append_column("pair", pa.array(np.arange(self.pairs.num_rows)))
        requested = table.select(["query_id", "doc_id"]).append_column("row", pa.array(np.arange(table.num_rows)))
        # Arrow joins do not keep the order of rows.
        joined = requested.join(rows, ["query_id", "doc_id"], join_type="inner").sort_by("row")
        return joined["pair"].to_numpy().astype(np.int64)

    def of_judges(self, judges: Collection[str]) -> Labels:
        """Select the labels of some judges."""
        if unknown := sorted(set(judges) - set(self.judges)):
            fix = f"use {', '.join(self.judges)}"
            raise InputError(f"there are no labels of judge {unknown[0]!r}", fix=fix, path=self.where)
        return replace(self, table=self._filter("judge", judges))

    def of_kind(self, *kinds: Kind) -> Labels:
        """Select the labels of people, models or clicks."""
        return replace(self, table=self._filter("kind", kinds))

    def _filter(self, column: str, values: Collection[str]) -> Table:
        return self.table.filter(pc.is_in(self.table[column], value_set=pa.array(sorted(values), pa.string())))

    def __len__(self) -> int:
        return self.table.num_rows

    def __repr__(self) -> str:
        pairs, judges = self.pairs.num_rows, len(self.judges)
        return f"Labels({self.name!r}: {len(self)} labels, {pairs} pairs, {judges} judges)"

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the table to libraries that read Arrow."""
        return pa.table(self.table).__arrow_c_stream__(requested_schema)


def format_utc(value: str, where: str, line: int | None = None) -> str:
    """Convert a time to ISO 8601 in UTC with milliseconds, so that times sort as text; an empty text stays empty.

    >>> format_utc("2026-01-05T10:00:00+02:00", "labels.csv"), format_utc("2026-01-05", "labels.csv")
    ('2026-01-05T08:00:00.000+00:00', '2026-01-05T00:00:00.000+00:00')

    Raises
    ------
    InputError
        If it is not a time in ISO 8601.
    """
    if not value:
        return ""
    try:
        time = datetime.fromisoformat(value)
        # A time without a zone is taken as UTC, so that results do not depend on the machine.
        utc = time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        problem = f"times must be in ISO 8601, got {value!r:.60}"
        raise InputError(problem, fix="use 2026-01-05T10:00:00Z, for example", path=where, line=line) from None
    return utc.isoformat(timespec="milliseconds")


_TEXT_COLUMNS = ("note", "time", "prompt", "model", "logprobs")
_DEFAULTS: dict[str, Any] = {"repeat": 0, "valid": True, **dict.fromkeys(_TEXT_COLUMNS, "")}


def complete_columns(table: Table, kind: Kind, where: str) -> Table:
    """Add missing columns with defaults, cast to the types of `SCHEMA`, and drop unknown columns."""
    columns: dict[str, Strings] = {}
    for field_ in SCHEMA:
        name, default = field_.name, {**_DEFAULTS, "kind": kind}.get(field_.name)
        if name in table.column_names:
            try:
                column = table[name].cast(field_.type)
            except pa.ArrowException as error:
                raise InputError(
                    f"the column {name} must be {field_.type}: {error}", fix="correct the column", path=where
                ) from None
            columns[name] = column if default is None else pc.fill_null(column, default)
            if name == "time":
                columns[name] = pa.array([format_utc(value, where) for value in columns[name].to_pylist()], pa.string())
        elif name in {"query_id", "doc_id", "judge", "grade"}:
            raise InputError(f"the column {name} is missing", fix="add query_id, doc_id, judge and grade", path=where)
        else:
            columns[name] = pa.array([default] * table.num_rows, field_.type)
    return pa.table(columns, schema=SCHEMA)


class Grade(NamedTuple):
    """One grade of a scale."""

    grade: float
    word: str
    definition: str


SCALES: dict[str, tuple[Grade, ...]] = {
    "binary": (
        Grade(0, "Not relevant", "It does not help to answer the query."),
        Grade(1, "Relevant", "It contains information that helps to answer the query."),
    ),
    "0-3": (
        Grade(0, "Not relevant", "It has nothing to do with the query."),
        Grade(1, "Related", "It is about the topic of the query, but does not answer it."),
        Grade(2, "Relevant", "It answers part of the query, or the answer is hard to find."),
        Grade(3, "Highly relevant", "It is dedicated to the query, and answers it."),
    ),
    "0-4": (
        Grade(0, "Bad", "It has nothing to do with the query, or it is misleading."),
        Grade(1, "Fair", "It mentions the topic of the query, but would satisfy few users."),
        Grade(2, "Good", "It is useful, but much of the answer is missing or hard to find."),
        Grade(3, "Excellent", "It contains what most users hope to find."),
        Grade(4, "Perfect", "It is the best possible result, and must not be missing."),
    ),
}
"""Built-in scales, by name."""


def resolve_scale(scale: str | tuple[Grade, ...] | list[tuple[float, str, str]]) -> tuple[Grade, ...]:
    """Return a built-in scale by name, or check a custom one.

    >>> [grade.word for grade in resolve_scale("binary")]
    ['Not relevant', 'Relevant']
    """
    if isinstance(scale, str):
        if scale not in SCALES:
            raise InputError(f"unknown scale {scale!r}", fix=f"use {', '.join(SCALES)}, or custom grades")
        return SCALES[scale]
    grades = tuple(sorted(Grade(float(grade), word, definition) for grade, word, definition in scale))
    if len(grades) < 2 or len({grade.grade for grade in grades}) < len(grades) or grades[0].grade < 0:
        raise InputError("a scale must have two or more different grades >= 0", fix="use (grade, word, definition)")
    return grades
