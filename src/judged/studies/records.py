"""Records of a study as tables: participants, trials, actions, and answers."""

from __future__ import annotations

import json
import weakref
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from judged.data.records import TableSet
from judged.data.run import Run
from judged.data.texts import Text, Texts
from judged.errors import InputError
from judged.pipelines.experiments.engines import find_engine
from judged.pipelines.experiments.engines.base import QueryRefusedError
from judged.pipelines.experiments.engines.databases import SqliteFts5
from judged.results.files import atomic_write
from judged.results.types import cached_property
from judged.scoring.judging.align import rank_all_with_scores
from judged.scoring.judging.ranking import RankingRules
from judged.studies.columns import columns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from judged.pipelines.experiments.engines.base import Engine
    from judged.results.blocks import Note
    from judged.results.types import Table
    from judged.studies.design import Design


_TRIAL = ("participant", "position")
TABLES: Mapping[str, pa.Schema] = {
    "participants": columns("participant", "group"),
    "trials": columns(*_TRIAL, "query_id", "system", "variant", "practice", "started", "ended"),
    "answers": columns(*_TRIAL, "system", "questionnaire", "item", "value", "text"),
    "saved": columns(*_TRIAL, "doc_id", "grade", "time"),
    "preferences": columns("participant", "query_id", "left", "right", "preferred", "reason"),
    "notes": columns(*_TRIAL, "time", "text"),
    "events": columns(*_TRIAL, "time", "action", "page", "query", "doc_id", "rank", "value", "shown"),
    "weights": columns(*_TRIAL, "page", "term", "weight"),
}
"""The tables and their columns; times are milliseconds since 1970.

``participants``: with their groups (novice, expert). ``trials``: one row per participant and task, with the position
from 1, topic, system, and interface variant; ``ended`` is empty if the trial was not finished. ``answers``: one row per
item of a questionnaire; at position 0, the answer concerns ``system``, or (empty) the study. ``saved``: documents, with
a grade if the participant assigned one. ``preferences``: two systems side by side; ``preferred`` is one of them,
or empty. ``notes``: texts of the observer. ``events``: actions in their order: ``query`` (a result page ``shown``: its
documents from ``rank`` on; ``page`` numbers the pages of a trial), ``click``, ``back`` (``value``: seconds in the
document), ``save``, ``unsave``, ``end``. ``weights``: of the terms of the query, by result page, if the participant
could set them; each change of weights is a new result page.
"""
KEYS: Mapping[str, tuple[str, ...]] = {
    "participants": ("participant",),
    "trials": _TRIAL,
    "answers": (*_TRIAL, "system", "questionnaire", "item"),
    "saved": (*_TRIAL, "doc_id"),
    "preferences": ("participant", "query_id", "left", "right"),
    "weights": (*_TRIAL, "page", "term"),
}
"""Unique key of each table."""
_TABLE_SET = TableSet(
    TABLES, KEYS, defaults={"group": "", "variant": "", "practice": False, "position": 0, "system": "", "preferred": "",
                         "reason": "", "left": "", "right": ""}
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class StudyRecords:
    """Records of a study. Immutable.

    Parameters
    ----------
    tables
        Arrow tables by name, with the columns of `TABLES`; a missing table is empty.
    where, notes
        Path of the records, and notes on data that was not read.

    Raises
    ------
    InputError
        If a table is unknown, a key is missing or duplicate, or a table refers to a missing participant or trial.

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
        _TABLE_SET.check(self.tables, self.where, [(name, ("participant",), "participants") for name in TABLES])
        for row in self["trials"].to_pylist():
            if row["position"] < 1 or not (row["query_id"] and row["system"]):
                problem = "trials: each trial must have a position of at least 1, a query_id, and a system"
                raise InputError(problem, fix="add the missing value", path=self.where)
        trials = set(zip(*(self["trials"][name].to_pylist() for name in _TRIAL), strict=True))
        for name in (name for name in TABLES if "position" in TABLES[name].names and name != "trials"):
            for row in self[name].select(list(_TRIAL)).to_pylist():
                if row["position"] and (row["participant"], row["position"]) not in trials:
                    problem = f"{name}: {row['participant']} has no trial at position {row['position']}"
                    raise InputError(problem, fix="add the trial to the table trials", path=self.where)
        # A preference for a system that was not displayed would bias strengths without notice.
        for row in self["preferences"].to_pylist():
            if row["left"] == row["right"] or not (row["left"] and row["right"]):
                pair = f"{row['participant']} and {row['query_id']}"
                problem = f"preferences: left and right must be two different systems, for {pair}"
                raise InputError(problem, fix="correct left and right", path=self.where)
            if row["preferred"] not in {"", row["left"], row["right"]}:
                problem = (
                    f"table preferences: preferred must be {row['left']} (left), {row['right']} (right), or empty, got"
                    f" {row['preferred']!r}"
                )
                raise InputError(problem, fix=f"write {row['left']}, {row['right']}, or nothing", path=self.where)

    @classmethod
    def of(cls, tables: Mapping[str, Any]) -> StudyRecords:
        """Create records from tables by name: Arrow tables or data frames, lists of dicts, or paths."""
        return cls({name: _TABLE_SET.table(name, table) for name, table in tables.items()})

    @classmethod
    def read(cls, folder: str | Path) -> StudyRecords:
        """Read a folder with a file for each table: ``trials.jsonl``, ``answers.csv``...

        Raises
        ------
        InputError
            If the folder or the table of trials is missing, or a table cannot be read (with the line).
        """
        tables, notes = _TABLE_SET.read(Path(folder)) if Path(folder).is_dir() else ({}, ())
        if "trials" not in tables:
            problem = "the folder must have a table of trials"
            raise InputError(problem, fix="use a folder with trials.jsonl", path=str(folder))
        return cls(tables, str(folder), notes)

    def write(self, folder: str | Path) -> None:
        """Write each table that is not missing as JSON Lines; equal records give identical files."""
        by_time: dict[str, Sequence[str]] = dict.fromkeys(("notes", "events"), (*_TRIAL, "time"))
        _TABLE_SET.write(self.tables, folder, tuple(TABLES), by_time)

    def __getitem__(self, name: str) -> Table:
        """Return a table; empty if it is missing."""
        return _TABLE_SET.of(self.tables, name, self.where)

    def by_trial(self, name: str) -> defaultdict[tuple[str, int], list[dict[str, Any]]]:
        """Return the rows of a table by participant and position, in their order."""
        rows = defaultdict[tuple[str, int], list[dict[str, Any]]](list)
        for row in self[name].to_pylist():
            rows[row["participant"], row["position"]].append(row)
        return rows

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """Names of the systems, sorted."""
        return tuple(sorted(set(self["trials"]["system"].to_pylist())))


def weights_by_page(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int, int], dict[str, float]]:
    """Return the weights of terms by participant, position, and result page, from rows of the table ``weights``."""
    weights = defaultdict[tuple[str, int, int], dict[str, float]](dict)
    for row in rows:
        weights[row["participant"], row["position"], row["page"]][row["term"]] = row["weight"]
    return dict(weights)


DEPTH = 100
"""Maximum number of documents in a list."""
Hits = tuple[tuple[str, float], ...]
"""Documents and their scores, sorted by decreasing score."""


class SearchBackend(NamedTuple):
    """Search function of a system, and the texts of its documents."""

    hits: Callable[[str, str], Hits]  # of a topic and a query
    texts: Texts
    free: bool  # whether participants write their queries
    text_index: SqliteFts5 | None = None  # ranks documents by weights of terms

    def text(self, doc_id: str) -> Text:
        """Return the title and text of a document; empty if it has no text."""
        return self.texts.documents.get(doc_id, Text("", ""))


@dataclass(frozen=True, eq=False)
class StudyLists:
    """Lists of all systems. Files are read once."""

    systems: Mapping[str, SearchBackend] = field(repr=False)

    @classmethod
    def of(cls, design: Design) -> Self:
        """Read the runs and texts of a design.

        Raises
        ------
        InputError
            If a file cannot be read.
        """
        topics = tuple(dict.fromkeys(task.topic for task in (*design.practice, *design.tasks, *design.preference)))
        systems: dict[str, SearchBackend] = {}
        for system in design.systems:
            texts = str(design.file(system.texts))
            # With an engine, participants write queries; with a run, its lists for the topics are fixed.
            if not system.run:
                documents = Texts.of(texts)
                index = _build_index(documents) if system.engine else None
                search = _engine_search(index or _http_engine(str(design.file(system.endpoint))))
                systems[system.name] = SearchBackend(search, documents, free=True, text_index=index)
                continue
            run_hits = _hits_by_topic(Run.read(design.file(system.run)), topics)
            doc_ids = {doc_id for hits in run_hits.values() for doc_id, _ in hits}
            systems[system.name] = SearchBackend(_frozen_search(run_hits), Texts.of(texts, doc_ids), free=False)
        return cls(systems)


def _hits_by_topic(run: Run, topics: tuple[str, ...]) -> dict[str, Hits]:
    returned, scores = rank_all_with_scores(run, topics, RankingRules(depth=DEPTH))
    docs, ends = returned.doc.to_pylist(), np.searchsorted(returned.topic, np.arange(len(topics) + 1))
    return {
        topic: tuple(zip(docs[first:last], scores[first:last].tolist(), strict=True))
        for topic, first, last in zip(topics, ends[:-1], ends[1:], strict=True)
    }


def _frozen_search(hits: dict[str, Hits]) -> Callable[[str, str], Hits]:
    return lambda topic, _: hits[topic]


def _build_index(documents: Texts) -> SqliteFts5:
    index, folder = SqliteFts5(), TemporaryDirectory()
    index.build(
        documents.documents, {name: setting.default for name, setting in index.settings.items()}, Path(folder.name)
    )
    weakref.finalize(index, folder.cleanup)
    return index


def _http_engine(path: str) -> Engine:
    engine = find_engine("http")()
    engine.build({}, {"file": path}, Path())
    return engine


def _engine_search(engine: Engine) -> Callable[[str, str], Hits]:
    """Return a search function; a cache keeps reloaded pages unchanged."""

    @lru_cache(10_000)
    def search(query: str) -> Hits:
        try:
            return tuple(engine.search(query, DEPTH))
        except QueryRefusedError:
            return ()

    return lambda _, query: search(query)


def ubi_records(records: StudyRecords) -> Iterator[dict[str, Any]]:
    """Yield a UBI record for each result page and each action, in the layout of docs/log-formats.md.

    A participant is a client and a trial a session. The attribute ``ranker`` of a page is the system; topic, variant,
    position, group, practice, and weights of terms are further attributes. A click has the time in the document; the
    grade of a saved document is a rating.

    >>> from judged.studies import StudyRecords
    >>> trial = {"participant": "p1", "position": 1}
    >>> records = StudyRecords.of({
    ...     "participants": [{"participant": "p1"}], "trials": [{**trial, "query_id": "q", "system": "bm25"}],
    ...     "events": [
    ...         {**trial, "time": 0, "action": "query", "page": 1, "query": "faust", "rank": 1, "shown": ["a", "b"]},
    ...         {**trial, "time": 900, "action": "click", "page": 1, "doc_id": "b", "rank": 2},
    ...         {**trial, "time": 5900, "action": "back", "page": 1, "doc_id": "b", "rank": 2, "value": 5}]})
    >>> page, click = ubi_records(records)
    >>> page["query_response_hit_ids"], page["query_attributes"]["ranker"], click["event_attributes"]["dwell_ms"]
    (['a', 'b'], 'bm25', 5000)
    """
    groups = {row["participant"]: row["group"] for row in records["participants"].to_pylist()}
    trials = {(row["participant"], row["position"]): row for row in records["trials"].to_pylist()}
    weights = weights_by_page(records["weights"].to_pylist())
    for (participant, position), rows in records.by_trial("events").items():
        trial, session = trials[participant, position], f"{participant}-{position}"
        ids = {"client_id": participant, "session_id": session}
        facts = {"topic": trial["query_id"], "position": position, "group": groups[participant]}
        facts |= {"variant": trial["variant"], "practice": trial["practice"]}
        sizes: dict[str, int] = {}  # number of results on the first page of each query
        for i, row in enumerate(rows):
            common = {**ids, "query_id": f"{session}-{row['page']}", "timestamp": row["time"]}
            # The first page of a query defines its page size, from which later page numbers follow.
            if row["action"] == "query":
                size, first = sizes.setdefault(row["query"], len(row["shown"] or ())), row["rank"] or 1
                page = {"rank_base": 1, "first_rank": first, "page": 1 + (first - 1) // max(size, 1)}
                attributes = {"ranker": trial["system"], **page, **facts}
                if page_weights := weights.get((participant, position, row["page"])):
                    attributes["weights"] = page_weights
                yield {
                    **common, "user_query": row["query"], "query_response_hit_ids": row["shown"] or [],
                    "query_attributes": attributes,
                }  # fmt: skip
            elif row["action"] not in {"back", "end"}:
                event: dict[str, Any] = {"object": {"object_id": row["doc_id"]}, "position": {"ordinal": row["rank"]}}
                if row["action"] == "click" and (seconds := _dwell_seconds(rows[i + 1 :], row)) is not None:
                    event["dwell_ms"] = round(1000 * seconds)
                yield {**common, "action_name": row["action"], "event_attributes": event}
                if row["action"] == "save" and row["value"] is not None:
                    yield {**common, "action_name": "rating", "event_attributes": event | {"value": row["value"]}}


def _dwell_seconds(later: list[dict[str, Any]], click: dict[str, Any]) -> float | None:
    visits = (row for row in later if row["doc_id"] == click["doc_id"] and row["action"] in {"click", "back"})
    following = next(visits, None)
    # A second click without "back" in between leaves the dwell time of the first one unknown.
    return following["value"] if following is not None and following["action"] == "back" else None


def write_log(records: StudyRecords, path: str | Path) -> None:
    """Write the log as JSON Lines, which ``judged online`` and `judged.online.read_log` read.

    Raises
    ------
    JudgedError
        If the file cannot be written.
    """
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in ubi_records(records))
