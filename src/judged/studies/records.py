"""What a study recorded, as a few tables: who took part, what each did with which system, and what each said of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from judged.data.table_sets import TableSet
from judged.errors import InputError
from judged.results.cache import cached_property

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Table
    from judged.results.notes import Note

_TRIAL = {"participant": pa.string(), "position": pa.int64()}
TABLES: Mapping[str, pa.Schema] = {
    "participants": pa.schema({"participant": pa.string(), "group": pa.string()}),
    "trials": pa.schema(
        {
            **_TRIAL,
            "query_id": pa.string(),
            "system": pa.string(),
            "variant": pa.string(),
            "practice": pa.bool_(),
            "started": pa.int64(),
            "ended": pa.int64(),
        }
    ),
    "answers": pa.schema(
        {
            **_TRIAL,
            "system": pa.string(),
            "questionnaire": pa.string(),
            "item": pa.string(),
            "value": pa.float64(),
            "text": pa.string(),
        }
    ),
    "saved": pa.schema({**_TRIAL, "doc_id": pa.string(), "grade": pa.float64(), "at": pa.int64()}),
    "preferences": pa.schema(
        {
            "participant": pa.string(),
            "query_id": pa.string(),
            "left": pa.string(),
            "right": pa.string(),
            "preferred": pa.string(),
            "why": pa.string(),
        }
    ),
    "notes": pa.schema({**_TRIAL, "at": pa.int64(), "text": pa.string()}),
    "events": pa.schema(
        {
            **_TRIAL,
            "at": pa.int64(),
            "action": pa.string(),
            "page": pa.int64(),
            "query": pa.string(),
            "doc_id": pa.string(),
            "rank": pa.int64(),
            "value": pa.float64(),
            "shown": pa.list_(pa.string()),
        }
    ),
}
"""The tables and their columns; times are milliseconds since 1970.

``participants``: who took part, and in which group (novice, expert). ``trials``: one row a participant and task, by its
position from 1: which topic, system and interface variant; ``ended`` is empty where it was not finished. ``answers``:
one row an item of a questionnaire; position 0 is not of one task: then ``system`` is of which system it is, empty for
the whole study. ``saved``: documents that a participant kept, with a grade where one was given. ``preferences``: two
systems side by side; ``preferred`` is one of the two, or empty where neither was. ``notes``: what an observer wrote.
``events``: every action, in its order: ``query`` (a result page was ``shown``: its documents from ``rank`` on;
``page`` numbers the pages of a trial), ``click``, ``back`` (``value``: seconds in the document), ``save``, ``unsave``,
``end``.
"""
KEYS: Mapping[str, tuple[str, ...]] = {
    "participants": ("participant",),
    "trials": ("participant", "position"),
    "answers": ("participant", "position", "system", "questionnaire", "item"),
    "saved": ("participant", "position", "doc_id"),
    "preferences": ("participant", "query_id", "left", "right"),
}
"""Of what there is one row at a time, in each table."""
_SET = TableSet(
    TABLES, KEYS, usual={"group": "", "variant": "", "practice": False, "position": 0, "system": "", "preferred": "",
                         "why": "", "left": "", "right": ""}
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class StudyRecords:
    """What a study recorded. Immutable.

    Parameters
    ----------
    tables
        Arrow tables by name, with the columns of `TABLES`; a table that is not there is one without rows.
    where, notes
        The path it came from, and what was not read there.

    Raises
    ------
    InputError
        If a table is unknown, something stands twice or lacks what it is of, or a table names a participant or trial
        that there is not.

    Examples
    --------
    >>> records = StudyRecords.of({
    ...     "participants": [{"participant": "p1"}],
    ...     "trials": [{"participant": "p1", "position": 1, "query_id": "q", "system": "bm25"}],
    ...     "answers": [{"participant": "p1", "position": 1, "questionnaire": "ease", "item": "1", "value": 5}]})
    >>> records["answers"]["value"].to_pylist(), records.systems
    ([5.0], ('bm25',))
    """

    tables: Mapping[str, Table] = field(repr=False)
    where: str = "<study>"
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        _SET.check(self.tables, self.where, [(name, ("participant",), "participants") for name in TABLES])
        for row in self["trials"].to_pylist():
            if row["position"] < 1 or not (row["query_id"] and row["system"]):
                problem = f"trials: one of {row['participant']} has no position from 1, no query_id or no system"
                raise InputError(problem, fix="give all three", path=self.where)
        known = set(zip(*(self["trials"][name].to_pylist() for name in _TRIAL), strict=True))
        for name in (name for name in TABLES if "position" in TABLES[name].names and name != "trials"):
            for row in self[name].select(list(_TRIAL)).to_pylist():
                if row["position"] and (row["participant"], row["position"]) not in known:
                    problem = f"{name}: {row['participant']} has no trial at position {row['position']}"
                    raise InputError(problem, fix="give it in the table trials", path=self.where)
        for row in self["preferences"].to_pylist():
            if row["left"] == row["right"] or not (row["left"] and row["right"]):
                problem = f"preferences: {row['participant']} was not shown two systems for {row['query_id']}"
                raise InputError(problem, fix="give left and right", path=self.where)
            if row["preferred"] not in {"", row["left"], row["right"]}:
                fix = f"write {row['left']}, {row['right']}, or nothing"
                raise InputError(f"preferences: {row['preferred']!r} was not shown", fix=fix, path=self.where)

    @classmethod
    def of(cls, tables: Mapping[str, Any]) -> StudyRecords:
        """Make them of tables by name: anything that Arrow takes, a list of dicts, or the path of one."""
        return cls({name: _SET.table(name, given) for name, given in tables.items()})

    @classmethod
    def read(cls, folder: str | Path) -> StudyRecords:
        """Read a folder with a file for each table: ``trials.jsonl``, ``answers.csv``...

        Raises
        ------
        InputError
            If there is no such folder or no table of trials, or one cannot be read; it names the line.
        """
        tables, notes = _SET.read(Path(folder)) if Path(folder).is_dir() else ({}, ())
        if "trials" not in tables:
            raise InputError("there are no trials of a study", fix="name a folder with trials.jsonl", path=str(folder))
        return cls(tables, str(folder), notes)

    def write(self, folder: str | Path) -> None:
        """Write each table that is there as JSON Lines; equal records give equal bytes."""
        by_time: dict[str, Sequence[str]] = dict.fromkeys(("notes", "events"), (*_TRIAL, "at"))
        _SET.write(self.tables, folder, tuple(TABLES), by_time)

    def __getitem__(self, name: str) -> Table:
        """Give a table, with no rows where there is none."""
        return _SET.of(self.tables, name, self.where)

    def by_trial(self, name: str) -> defaultdict[tuple[str, int], list[dict[str, Any]]]:
        """Give the rows of a table by participant and position, in their order."""
        found = defaultdict[tuple[str, int], list[dict[str, Any]]](list)
        for row in self[name].to_pylist():
            found[row["participant"], row["position"]].append(row)
        return found

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """The systems, in the order of their names."""
        return tuple(sorted(set(self["trials"]["system"].to_pylist())))
