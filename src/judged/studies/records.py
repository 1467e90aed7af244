"""What a study recorded, as a few tables: who took part, what each did with which system, and what each said of it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from judged.data.records import TableSet
from judged.data.run import Run
from judged.data.texts import Text, Texts
from judged.errors import InputError
from judged.pipelines.experiments.engines import find_engine
from judged.pipelines.experiments.engines.base import QueryRefusedError
from judged.results.files import atomic_write
from judged.results.types import cached_property
from judged.scoring.judging.align import rank_all_with_scores
from judged.scoring.judging.ranking import RankingRules
from judged.studies.columns import columns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from judged.results.blocks import Note
    from judged.results.types import Table
    from judged.studies.design import Design


_TRIAL = ("participant", "position")
TABLES: Mapping[str, pa.Schema] = {
    "participants": columns("participant", "group"),
    "trials": columns(*_TRIAL, "query_id", "system", "variant", "practice", "started", "ended"),
    "answers": columns(*_TRIAL, "system", "questionnaire", "item", "value", "text"),
    "saved": columns(*_TRIAL, "doc_id", "grade", "at"),
    "preferences": columns("participant", "query_id", "left", "right", "preferred", "why"),
    "notes": columns(*_TRIAL, "at", "text"),
    "events": columns(*_TRIAL, "at", "action", "page", "query", "doc_id", "rank", "value", "shown"),
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
    "trials": _TRIAL,
    "answers": (*_TRIAL, "system", "questionnaire", "item"),
    "saved": (*_TRIAL, "doc_id"),
    "preferences": ("participant", "query_id", "left", "right"),
}
"""Of what there is one row at a time, in each table."""
_SET = TableSet(
    TABLES, KEYS, defaults={"group": "", "variant": "", "practice": False, "position": 0, "system": "", "preferred": "",
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


DEPTH = 100
"""So many documents of a list are shown at most."""
Hits = tuple[tuple[str, float], ...]
"""Documents and their scores, the best first."""


class SystemLists(NamedTuple):
    """What one system returns, and the texts of that."""

    hits: Callable[[str, str], Hits]  # of a topic and a query
    texts: Texts
    free: bool  # whether people write queries of their own

    def text(self, doc_id: str) -> Text:
        """Give title and text of a document; empty ones where none are known."""
        return self.texts.documents.get(doc_id, Text("", ""))


@dataclass(frozen=True, eq=False)
class StudyLists:
    """The lists of every system. Files are read once."""

    systems: Mapping[str, SystemLists] = field(repr=False)

    @classmethod
    def of(cls, design: Design) -> Self:
        """Read the runs and texts that a design names.

        Raises
        ------
        InputError
            If one cannot be read.
        """
        topics = tuple(dict.fromkeys(task.topic for task in (*design.practice, *design.tasks, *design.preference)))
        made: dict[str, SystemLists] = {}
        for system in design.systems:
            texts = str(design.file(system.texts))
            if system.endpoint:
                made[system.name] = SystemLists(_asked(str(design.file(system.endpoint))), Texts.of(texts), free=True)
                continue
            frozen = _frozen(Run.read(design.file(system.run)), topics)
            wanted = {doc_id for hits in frozen.values() for doc_id, _ in hits}
            made[system.name] = SystemLists(lambda topic, _, of=frozen: of[topic], Texts.of(texts, wanted), free=False)
        return cls(made)


def _frozen(run: Run, topics: tuple[str, ...]) -> dict[str, Hits]:
    returned, scores = rank_all_with_scores(run, topics, RankingRules(depth=DEPTH))
    docs, ends = returned.doc.to_pylist(), np.searchsorted(returned.topic, np.arange(len(topics) + 1))
    return {
        topic: tuple(zip(docs[first:last], scores[first:last].tolist(), strict=True))
        for topic, first, last in zip(topics, ends[:-1], ends[1:], strict=True)
    }


def _asked(path: str) -> Callable[[str, str], Hits]:
    """Ask an engine over HTTP; who looks at the same page again sees the same."""
    engine = find_engine("http")()
    engine.build({}, {"file": path}, Path())

    @lru_cache(10_000)
    def search(query: str) -> Hits:
        try:
            return tuple(engine.search(query, DEPTH))
        except QueryRefusedError:
            return ()

    return lambda _, query: search(query)


def log_lines(records: StudyRecords) -> Iterator[dict[str, Any]]:
    """Give a record for each result page and each action, in the layout of docs/ubi.md.

    A participant is a user and a trial a session. A page says as ``ranker`` which system made it; its topic, variant,
    position and group, and whether the trial was practice, are attributes to choose or slice by. A click has the time
    in the document; the grade of a saved document is a rating.

    >>> from judged.studies import StudyRecords
    >>> trial = {"participant": "p1", "position": 1}
    >>> records = StudyRecords.of({
    ...     "participants": [{"participant": "p1"}], "trials": [{**trial, "query_id": "q", "system": "bm25"}],
    ...     "events": [
    ...         {**trial, "at": 0, "action": "query", "page": 1, "query": "faust", "rank": 1, "shown": ["a", "b"]},
    ...         {**trial, "at": 900, "action": "click", "page": 1, "doc_id": "b", "rank": 2},
    ...         {**trial, "at": 5900, "action": "back", "page": 1, "doc_id": "b", "rank": 2, "value": 5}]})
    >>> page, click = log_lines(records)
    >>> page["query_response_hit_ids"], page["query_attributes"]["ranker"], click["event_attributes"]["dwell_ms"]
    (['a', 'b'], 'bm25', 5000)
    """
    groups = {row["participant"]: row["group"] for row in records["participants"].to_pylist()}
    trials = {(row["participant"], row["position"]): row for row in records["trials"].to_pylist()}
    for (participant, position), rows in records.by_trial("events").items():
        trial, session = trials[participant, position], f"{participant}-{position}"
        who = {"client_id": participant, "session_id": session}
        about = {"topic": trial["query_id"], "position": position, "group": groups[participant]}
        about |= {"variant": trial["variant"], "practice": trial["practice"]}
        sizes: dict[str, int] = {}  # of the first page of each query
        for at, row in enumerate(rows):
            same = {**who, "query_id": f"{session}-{row['page']}", "timestamp": row["at"]}
            if row["action"] == "query":
                size, first = sizes.setdefault(row["query"], len(row["shown"] or ())), row["rank"] or 1
                page = {"rank_base": 1, "first_rank": first, "page": 1 + (first - 1) // max(size, 1)}
                attributes = {"ranker": trial["system"], **page, **about}
                yield {
                    **same, "user_query": row["query"], "query_response_hit_ids": row["shown"] or [],
                    "query_attributes": attributes,
                }  # fmt: skip
            elif row["action"] not in {"back", "end"}:
                place: dict[str, Any] = {"object": {"object_id": row["doc_id"]}, "position": {"ordinal": row["rank"]}}
                if row["action"] == "click" and (seconds := _seconds(rows[at + 1 :], row)) is not None:
                    place["dwell_ms"] = round(1000 * seconds)
                yield {**same, "action_name": row["action"], "event_attributes": place}
                if row["action"] == "save" and row["value"] is not None:
                    yield {**same, "action_name": "rating", "event_attributes": place | {"value": row["value"]}}


def _seconds(later: list[dict[str, Any]], click: dict[str, Any]) -> float | None:
    """Tell how long a document was looked at that a click opened; None where nobody knows."""
    of_it = (row for row in later if row["doc_id"] == click["doc_id"] and row["action"] in {"click", "back"})
    next_ = next(of_it, None)
    return next_["value"] if next_ is not None and next_["action"] == "back" else None


def write_log(records: StudyRecords, path: str | Path) -> None:
    """Write the log as JSON Lines, which ``judged online`` and `judged.online.read_log` read.

    Raises
    ------
    JudgedError
        If it cannot be written.
    """
    with atomic_write(path) as part, part.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in log_lines(records))
