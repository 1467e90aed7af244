"""Trajectories: the searches, opened documents, and answer of an agent, for each trial of each question."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

import pyarrow as pa

from judged.data.compute import pc
from judged.data.json_rows import check_shape
from judged.data.records import TableSet
from judged.errors import InputError
from judged.pipelines.system_tables import SystemTables, distinct_rows
from judged.results.decimals import counted
from judged.results.types import cached_property
from judged.scoring.judging.answers import FAILED, NOT, PARTIAL, SUPPORT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.results.types import Table


StepKind: TypeAlias = Literal["search", "open", "reason", "answer", "other"]
STEP_KINDS: tuple[StepKind, ...] = get_args(StepKind)
"""Kinds of steps. ``search`` returns a ranking; ``open`` gives the text of documents to the agent."""
COMPLETED = "completed"
"""Status of a trial that ended with an answer or an abstention; any other status is a failure."""

_TRIAL = {"query_id": pa.string(), "run_id": pa.string(), "trial": pa.int64()}
_EFFORT = {"tokens": pa.int64(), "cost": pa.float64(), "latency_ms": pa.float64()}
TABLES: Mapping[str, pa.Schema] = {
    "trials": pa.schema({
        **_TRIAL, "question": pa.string(), "status": pa.string(), "answer": pa.string(), "abstained": pa.bool_(),
        "confidence": pa.float64(), **_EFFORT,
    }),
    "steps": pa.schema({
        **_TRIAL, "step": pa.int64(), "kind": pa.string(), "tool": pa.string(), "query": pa.string(),
        "documents": pa.list_(pa.string()), "failed": pa.bool_(), **_EFFORT,
    }),
    "citations": pa.schema({**_TRIAL, "doc_id": pa.string()}),
    "references": pa.schema({"query_id": pa.string(), "text": pa.string(), "answerable": pa.bool_()}),
    "correctness": pa.schema({**_TRIAL, "verdict": pa.string(), "judge": pa.string(), "repeat": pa.int64()}),
    "hops": pa.schema({"query_id": pa.string(), "hop": pa.string(), "doc_id": pa.string()}),
}  # fmt: skip
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
TABLE_SET = TableSet(
    TABLES,
    KEYS,
    defaults={"run_id": "agent", "trial": 1, "status": COMPLETED, "failed": False, "judge": "judge", "repeat": 0,
              "text": None},
    enums={("steps", "kind"): STEP_KINDS, ("correctness", "verdict"): (SUPPORT, PARTIAL, NOT, FAILED)},
    numbered={"steps": ("step", tuple(_TRIAL))},
)  # fmt: skip
RECORD_SHAPE: Mapping[str, Any] = {"steps?": [dict], "citations?": [(str, int)], "references?": (str, list)}
"""Types of parts of a record of a trial."""
_TRIALS_PER_BATCH = 500  # trials that are held as Python objects at a time


@dataclass(frozen=True, eq=False, repr=False)
class Trajectories(SystemTables):
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

    table_set: ClassVar[TableSet] = TABLE_SET
    main: ClassVar[str] = "trials"

    name: str = "trajectories"
    where: str = "<trajectories>"

    def __post_init__(self) -> None:
        if not self["trials"].num_rows:
            fix = 'write one line for each trial: {"query_id": ..., "steps": [...], "answer": ...}'
            raise InputError("there are no trials", fix=fix, path=self.where)
        references = [(name, tuple(_TRIAL), "trials") for name in ("steps", "citations", "correctness")]
        TABLE_SET.check(self.tables, self.where, references)
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
        if isinstance(data, Mapping):
            return cls({str(key): TABLE_SET.table(str(key), table) for key, table in data.items()}, name, "<tables>")
        elements: list[Any] = [data] if isinstance(data, (str, Path)) else list(data)
        if any(isinstance(element, (str, Path)) for element in elements[:1]):
            from judged.pipelines.trajectories.reading import read_trajectories

            return read_trajectories(elements)
        try:
            check_shape(elements, [RECORD_SHAPE], "the trials")
        except ValueError as error:
            raise InputError(str(error), fix="use the layout of Trajectories.of") from None
        return from_records(((None, record) for record in elements), name, "<records>")

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        """Questions with a trial of any system, in sorted order."""
        return tuple(sorted(self["trials"]["query_id"].unique().to_pylist()))

    def __repr__(self) -> str:
        trials, questions = counted(len(self), "trial"), counted(len(self.query_ids), "question")
        return f"Trajectories({self.name!r}: {trials} of {questions}; {', '.join(self.run_names)})"


def from_records(records: Iterator[tuple[int | None, Mapping[str, Any]]], name: str, where: str) -> Trajectories:
    """Build trajectories from records in our own layout, each with its line or None.

    A record without a trial number is the next trial of its question and system.

    Raises
    ------
    InputError
        If a record has no query id, a value has a wrong type, or a step has an unknown kind; with the line.
    """
    parts: defaultdict[str, list[Table]] = defaultdict(list)
    counts: Counter[tuple[Any, Any]] = Counter()
    while batch := list(islice(records, _TRIALS_PER_BATCH)):
        rows: defaultdict[str, list[tuple[int | None, dict[str, Any]]]] = defaultdict(list)
        for line, record in batch:
            question_and_run = record.get("query_id"), record.get("run_id")
            counts[question_and_run] += 1
            number = counts[question_and_run] if record.get("trial") is None else record["trial"]
            for table, row in _rows_of({**record, "trial": number}):
                rows[table].append((line, row))
        for table, table_rows in rows.items():
            parts[table].append(TABLE_SET.of_records(table, table_rows, where))
    tables = {table: pa.concat_tables(table_parts) for table, table_parts in parts.items()}
    if "references" in tables:  # trials of a question repeat them
        tables["references"] = distinct_rows(tables["references"])
    return Trajectories(tables, name, where)


def _rows_of(trial: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of one trial with their tables."""
    key = {name: trial.get(name) for name in _TRIAL}
    yield "trials", trial
    for number, step in enumerate(trial.get("steps") or (), 1):
        yield "steps", {**step, **key, "step": number}
    for document in dict.fromkeys(map(str, trial.get("citations") or ())):
        yield "citations", {**key, "doc_id": document}
    references = trial.get("references") or ()
    for text in [references] if isinstance(references, str) else references:
        yield "references", {"query_id": key["query_id"], "text": text}
    if (verdict := trial.get("correct")) is not None:
        yield "correctness", {**key, "verdict": (SUPPORT if verdict else NOT) if isinstance(verdict, bool) else verdict}


def write_trajectories(trajectories: Trajectories, folder: str | Path) -> None:
    """Write each table as JSON Lines, ``trials.jsonl`` and so on, sorted by key; `read_trajectories` reads the folder.

    Raises
    ------
    JudgedError
        If the folder cannot be written.
    """
    TABLE_SET.write(trajectories.tables, folder, tuple(TABLES), {})
