"""Trajectories: the searches, opened documents, and answer of an agent, for each trial of each question."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import pyarrow as pa

from judged.data.compute import pc
from judged.data.json_rows import check_shape
from judged.data.records import TableSet
from judged.errors import InputError
from judged.results.decimals import counted
from judged.results.files import atomic_write
from judged.results.spelling import use_one_of
from judged.results.types import cached_property
from judged.scoring.judging.answers import FAILED, NOT, PARTIAL, SUPPORT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from judged.results.blocks import Note
    from judged.results.types import Table


StepKind: TypeAlias = Literal["search", "open", "reason", "answer", "other"]
STEP_KINDS: tuple[StepKind, ...] = get_args(StepKind)
"""Kinds of steps. ``search`` returns a ranking; ``open`` gives the text of documents to the agent."""
COMPLETED = "completed"
"""Status of a trial that ended with an answer or an abstention; any other status is a failure."""

_TRIAL = {"query_id": pa.string(), "run_id": pa.string(), "trial": pa.int64()}
_EFFORT = {"tokens": pa.int64(), "cost": pa.float64(), "latency_ms": pa.float64()}
TABLES: Mapping[str, pa.Schema] = {
    "trials": pa.schema(
        {
            **_TRIAL,
            "question": pa.string(),
            "status": pa.string(),
            "answer": pa.string(),
            "abstained": pa.bool_(),
            "confidence": pa.float64(),
            **_EFFORT,
        }
    ),
    "steps": pa.schema(
        {
            **_TRIAL,
            "step": pa.int64(),
            "kind": pa.string(),
            "tool": pa.string(),
            "query": pa.string(),
            "documents": pa.list_(pa.string()),
            "failed": pa.bool_(),
            **_EFFORT,
        }
    ),
    "citations": pa.schema({**_TRIAL, "doc_id": pa.string()}),
    "references": pa.schema({"query_id": pa.string(), "text": pa.string(), "answerable": pa.bool_()}),
    "correctness": pa.schema({**_TRIAL, "verdict": pa.string(), "judge": pa.string(), "repeat": pa.int64()}),
    "hops": pa.schema({"query_id": pa.string(), "hop": pa.string(), "doc_id": pa.string()}),
}
"""The tables and their columns.

``trials``: one row for each question, system, and trial; ``confidence``: stated probability that the answer is right,
from 0 to 1; effort of the whole trial: tokens, cost in dollars, and milliseconds. ``steps``: steps of trials, numbered
from 1, with the query of a search, and the documents that it returned, by rank, or that the agent opened; no list: not
recorded; ``failed``: whether the tool failed. ``citations``: documents that the answer cites. ``references``: right
answers, and whether the corpus can answer the question. ``correctness``: verdicts on answers. ``hops``: documents that
contain each piece of evidence that a question requires.
"""
KEYS: Mapping[str, tuple[str, ...]] = {
    "trials": tuple(_TRIAL),
    "steps": (*_TRIAL, "step"),
    "citations": (*_TRIAL, "doc_id"),
    "references": ("query_id", "text"),
    "correctness": (*_TRIAL, "judge", "repeat"),
    "hops": ("query_id", "hop", "doc_id"),
}
"""Columns that identify a row, by table."""
OF_TRIALS = tuple(name for name in TABLES if "trial" in TABLES[name].names)
"""Tables with rows of trials."""
TABLE_SET = TableSet(
    TABLES,
    KEYS,
    defaults={
        "run_id": "agent",
        "trial": 1,
        "status": COMPLETED,
        "failed": False,
        "judge": "judge",
        "repeat": 0,
        ("references", "text"): None,
        ("steps", "step"): None,
    },
    enums={("steps", "kind"): STEP_KINDS, ("correctness", "verdict"): (SUPPORT, PARTIAL, NOT, FAILED)},
    numbered={"steps": ("step", tuple(_TRIAL))},
)
RECORD_SHAPE: Mapping[str, Any] = {"steps?": [dict], "citations?": [(str, int)], "references?": (str, list)}
"""Types of parts of a record of a trial."""
_TRIALS_PER_BATCH = 500  # trials that are held as Python objects at a time


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Trajectories of agents: for each question, trials; for each trial, steps in order. Immutable.

    Parameters
    ----------
    tables
        Arrow tables by name, with the columns of `TABLES`; missing tables are empty.
    name, where
        Name in messages and results, and path of the source.
    notes
        Records that were skipped or completed when reading.

    Raises
    ------
    InputError
        If a table, a kind of step, or a verdict is unknown, a row is repeated, or a row belongs to no trial.

    Examples
    --------
    >>> trajectories = Trajectories.of([{
    ...     "query_id": "q", "run_id": "a", "answer": "7", "citations": ["d1"],
    ...     "steps": [{"kind": "search", "query": "seven", "documents": ["d2", "d1"]},
    ...               {"kind": "open", "documents": ["d1"]}]}])
    >>> trajectories, trajectories["steps"].select(["step", "documents"]).to_pylist()[0]
    (Trajectories('trajectories': 1 trial of 1 question; a), {'step': 1, 'documents': ['d2', 'd1']})
    """

    tables: Mapping[str, Table]
    name: str = "trajectories"
    where: str = "<trajectories>"
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        if not self["trials"].num_rows:
            fix = 'write one line for each trial: {"query_id": ..., "steps": [...], "answer": ...}'
            raise InputError("there are no trials", fix=fix, path=self.where)
        TABLE_SET.check(
            self.tables, self.where, [(name, tuple(_TRIAL), "trials") for name in OF_TRIALS if name != "trials"]
        )
        confidences = self["trials"]["confidence"].drop_null()
        if len(confidences) and not 0 <= pc.min(confidences).as_py() <= pc.max(confidences).as_py() <= 1:
            fix = "write a stated confidence of 80% as 0.8"
            raise InputError("a confidence is outside of 0 to 1", fix=fix, path=self.where)

    @classmethod
    def of(cls, data: Any, *, name: str = "trajectories") -> Trajectories:
        """Build trajectories from records of trials, tables by name, a path, or a list of paths.

        A record has the columns of ``trials``, and the lists ``steps`` (with ``documents``), ``citations``, and
        ``references``; ``correct`` is a verdict, true, or false.

        Raises
        ------
        InputError
            If an input is invalid or inconsistent.
        """
        if isinstance(data, cls):
            return data
        if isinstance(data, (str, Path)) or (
            isinstance(data, (list, tuple)) and data and isinstance(data[0], (str, Path))
        ):
            from judged.pipelines.trajectories.reading import read_trajectories

            return read_trajectories(data)
        if isinstance(data, Mapping):
            return cls({str(key): TABLE_SET.table(str(key), table) for key, table in data.items()}, name, "<tables>")
        records = ((None, checked_record(record, number)) for number, record in enumerate(data, 1))
        return from_records(records, name, "<records>")

    def __getitem__(self, name: str) -> Table:
        """Return a table; an empty one if it is missing."""
        return TABLE_SET.of(self.tables, name, self.where)

    @cached_property
    def run_names(self) -> tuple[str, ...]:
        """Names of the systems, in the order of their first trial."""
        return tuple(self["trials"]["run_id"].unique().to_pylist())

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        """Questions with a trial of any system, in sorted order."""
        return tuple(sorted(self["trials"]["query_id"].unique().to_pylist()))

    def of_run(self, run: str) -> Trajectories:
        """Select one system; references and hops are unchanged."""
        if run not in self.run_names:
            raise InputError(f"no trials of system {run!r}", fix=use_one_of(self.run_names), path=self.where)
        if self.run_names == (run,):
            return self
        return self._select("run_id", [run], OF_TRIALS)

    def of_questions(self, query_ids: Iterable[str]) -> Trajectories:
        """Select questions."""
        return self._select("query_id", query_ids, tuple(TABLES))

    def _select(self, column: str, values: Iterable[str], names: Sequence[str]) -> Trajectories:
        selected = pa.array(sorted(values), pa.string())
        tables = {
            name: table.filter(pc.is_in(table[column], value_set=selected)) if name in names else table
            for name, table in self.tables.items()
        }
        return replace(self, tables=tables)

    def with_tables(self, **tables: Any) -> Trajectories:
        """Return a copy with some tables replaced."""
        return replace(self, tables={**self.tables, **{name: TABLE_SET.table(name, tables[name]) for name in tables}})

    def __repr__(self) -> str:
        trials, questions = counted(self["trials"].num_rows, "trial"), counted(len(self.query_ids), "question")
        return f"Trajectories({self.name!r}: {trials} of {questions}; {', '.join(self.run_names)})"


def checked_record(record: Any, number: int) -> Mapping[str, Any]:
    """Return a record of a trial, or raise InputError if a part of it has a wrong type; `number` counts from 1."""
    try:
        check_shape(record, RECORD_SHAPE, "a trial")
    except ValueError as error:
        raise InputError(f"record {number}: {error}", fix="use the layout of Trajectories.of") from None
    return record


def join(parts: Sequence[Trajectories]) -> Trajectories:
    """Combine the systems of several trajectories; references and hops are not repeated.

    Raises
    ------
    InputError
        If two of them have trials of the same name.
    """
    names = [name for part in parts for name in part.run_names]
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        fix = "rename one of them: OTHER=PATH"
        raise InputError(f"two files have trials of system {repeated[0]!r}", fix=fix, path=parts[-1].where)
    tables = {name: pa.concat_tables([part[name] for part in parts]) for name in TABLES}
    for name in set(TABLES) - set(OF_TRIALS):
        tables[name] = tables[name].group_by(tables[name].column_names).aggregate([])
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    where = ", ".join(part.where for part in parts)
    return parts[0] if len(parts) == 1 else Trajectories(tables, "trajectories", where, notes)


def from_records(
    records: Iterable[tuple[int | None, Mapping[str, Any]]], name: str, where: str, notes: Sequence[Note] = ()
) -> Trajectories:
    """Build trajectories from records in our own layout, each with its line or None.

    A record without a trial number is the next trial of its question and system.

    Raises
    ------
    InputError
        If a record has no query id, a value has a wrong type, or a step has an unknown kind; with the line.
    """
    batches: dict[str, list[Table]] = {table: [] for table in TABLES}
    rows: dict[str, list[tuple[int | None, dict[str, Any]]]] = {table: [] for table in TABLES}
    counts, references = Counter[tuple[Any, Any]](), set[tuple[str, str]]()
    for number, (line, record) in enumerate(records, 1):
        key = record.get("query_id"), record.get("run_id")
        counts[key] += 1
        trial = dict(record) | ({} if record.get("trial") is not None else {"trial": counts[key]})
        for table, row in _rows_of(trial):
            if table == "references":
                pair = str(row["query_id"]), str(row["text"])
                if pair in references:
                    continue
                references.add(pair)
            rows[table].append((line, row))
        if number % _TRIALS_PER_BATCH == 0:
            _flush(rows, batches, where)
    _flush(rows, batches, where)
    tables = {table: pa.concat_tables(parts) for table, parts in batches.items() if parts}
    return Trajectories(tables, name, where, tuple(notes))


def _flush(rows: dict[str, list[Any]], batches: dict[str, list[Table]], where: str) -> None:
    for table, table_rows in rows.items():
        if table_rows:
            batches[table].append(TABLE_SET.of_records(table, table_rows, where))
            table_rows.clear()


def _rows_of(trial: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of one trial with their tables."""
    key = {name: trial.get(name) for name in _TRIAL}
    yield "trials", dict(trial)
    for number, step in enumerate(trial.get("steps") or (), 1):
        yield "steps", {**step, **key, "step": number}
    for document in dict.fromkeys(map(str, trial.get("citations") or ())):
        yield "citations", {**key, "doc_id": document}
    references = trial.get("references") or ()
    for text in [references] if isinstance(references, str) else references:
        yield "references", {"query_id": key["query_id"], "text": text}
    if (verdict := trial.get("correct")) is not None:
        verdict = {True: SUPPORT, False: NOT}.get(verdict, verdict) if isinstance(verdict, bool) else verdict
        yield "correctness", {**key, "verdict": verdict}


def write_trajectories(trajectories: Trajectories, path: str | Path) -> None:
    """Write one line of JSON for each trial, in the layout that `Trajectories.of` accepts.

    Raises
    ------
    JudgedError
        If the file cannot be written.
    """
    groups: dict[str, dict[tuple[Any, ...], list[dict[str, Any]]]] = {"steps": {}, "citations": {}, "correctness": {}}
    for name, rows in groups.items():
        for row in trajectories[name].sort_by([(column, "ascending") for column in KEYS[name]]).to_pylist():
            rows.setdefault(tuple(row[column] for column in _TRIAL), []).append(row)
    references: dict[str, list[str]] = {}
    for row in trajectories["references"].to_pylist():
        if row["text"] is not None:
            references.setdefault(row["query_id"], []).append(row["text"])
    with atomic_write(Path(path)) as temporary, temporary.open("w", encoding="utf-8") as file:
        for row in trajectories["trials"].to_pylist():
            key = tuple(row[column] for column in _TRIAL)
            row["references"] = references.pop(row["query_id"], None)  # once for each question
            row["steps"] = [_without_defaults(step, *_TRIAL, "step") for step in groups["steps"].get(key, ())]
            row["citations"] = [citation["doc_id"] for citation in groups["citations"].get(key, ())]
            if verdicts := groups["correctness"].get(key):
                row["correct"] = verdicts[0]["verdict"]
            file.write(json.dumps(_without_defaults(row), ensure_ascii=False) + "\n")


def _without_defaults(row: Mapping[str, Any], *left_out: str) -> dict[str, Any]:
    defaults = {"status": COMPLETED, "failed": False}
    return {
        name: value
        for name, value in row.items()
        if value is not None and name not in left_out and defaults.get(name) != value
    }
