"""Tables of RAG responses: answers, sentences, contexts, citations, nuggets, and verdicts of people and models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.records import TableSet
from judged.data.run import Run
from judged.errors import InputError
from judged.pipelines.system_tables import SystemTables
from judged.results.decimals import counted
from judged.results.types import cached_property
from judged.scoring.judging.answers import CONTRADICTS, FAILED, NOT, PARTIAL, SUPPORT, Verdicts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from judged.data.records import Record
    from judged.results.types import Table

    Key = tuple[Any, ...]


VITAL, OKAY = "vital", "okay"

_ANSWER = {"query_id": pa.string(), "run_id": pa.string()}
_JUDGE = {"judge": pa.string(), "repeat": pa.int64()}
TABLES: Mapping[str, pa.Schema] = {
    "answers": pa.schema({**_ANSWER, "text": pa.string(), "abstained": pa.bool_()}),
    "sentences": pa.schema({**_ANSWER, "sentence": pa.int64(), "text": pa.string()}),
    "context": pa.schema({**_ANSWER, "doc_id": pa.string(), "rank": pa.int64(), "text": pa.string()}),
    "citations": pa.schema({**_ANSWER, "sentence": pa.int64(), "doc_id": pa.string(), "place": pa.int64()}),
    "nuggets": pa.schema(
        {"query_id": pa.string(), "nugget_id": pa.string(), "text": pa.string(), "importance": pa.string()}
    ),
    "evidence": pa.schema({"query_id": pa.string(), "nugget_id": pa.string(), "doc_id": pa.string()}),
    "assignments": pa.schema(
        {**_ANSWER, "nugget_id": pa.string(), "verdict": pa.string(), "sentence": pa.int64(), **_JUDGE}
    ),
    "support": pa.schema({**_ANSWER, "sentence": pa.int64(), "doc_id": pa.string(), "verdict": pa.string(), **_JUDGE}),
    "references": pa.schema({"query_id": pa.string(), "text": pa.string(), "answerable": pa.bool_()}),
    "correctness": pa.schema({**_ANSWER, "verdict": pa.string(), **_JUDGE}),
    "feedback": pa.schema({**_ANSWER, "user_id": pa.string(), "satisfied": pa.bool_()}),
    "reference_context": pa.schema({"query_id": pa.string(), "doc_id": pa.string()}),
    "tool_scores": pa.schema({**_ANSWER, "name": pa.string(), "score": pa.float64()}),
}
"""The tables and their columns.

``answers``: one row for each topic and system; ``abstained``: whether the system declined to answer. ``sentences``: the
sentences of answers, numbered from 1. ``context``: passages in the generator's input, from rank 1. ``citations``:
documents that a sentence cites, in order, from place 1. ``nuggets``: facts that an answer should contain, ``vital`` or
``okay``. ``evidence``: documents that contain a nugget. ``assignments``: how well an answer covers a nugget, and the
sentence that does, if known. ``support``: how well a document supports a sentence; without a document: the complete
context. ``references``: right answers, and whether the corpus can answer the question. ``correctness``: how well an
answer agrees with the reference. ``feedback``: whether a user was satisfied. ``reference_context``: documents that the
generator needs. ``tool_scores``: scores of other tools, by the name of the score.
"""
_OF_ANSWERS = [name for name in TABLES if "run_id" in TABLES[name].names and name != "tool_scores"]
KEYS: Mapping[str, tuple[str, ...]] = {
    "answers": ("query_id", "run_id"),
    "sentences": ("query_id", "run_id", "sentence"),
    "context": ("query_id", "run_id", "doc_id"),
    "citations": ("query_id", "run_id", "sentence", "doc_id"),
    "nuggets": ("query_id", "nugget_id"),
    "evidence": ("query_id", "nugget_id", "doc_id"),
    "assignments": ("query_id", "run_id", "nugget_id", "judge", "repeat"),
    "support": ("query_id", "run_id", "sentence", "doc_id", "judge", "repeat"),
    "references": ("query_id", "text"),
    "correctness": ("query_id", "run_id", "judge", "repeat"),
    "feedback": ("query_id", "run_id", "user_id"),
    "reference_context": ("query_id", "doc_id"),
    "tool_scores": ("query_id", "run_id", "name"),
}
"""Columns that identify a row, by table."""
VERDICTS: Mapping[str, tuple[str, ...]] = {
    "assignments": (SUPPORT, PARTIAL, NOT, FAILED),
    "support": (SUPPORT, PARTIAL, NOT, CONTRADICTS, FAILED),
    "correctness": (SUPPORT, PARTIAL, NOT, FAILED),
}
"""Valid verdicts, by table."""
_SET = TableSet(
    TABLES,
    KEYS,
    defaults={"run_id": "run", "judge": "judge", "repeat": 0, "importance": VITAL, "user_id": "", "text": None,
           ("support", "doc_id"): ""},
    enums={**{(name, "verdict"): words for name, words in VERDICTS.items()}, ("nuggets", "importance"): (VITAL, OKAY)},
    numbered={"context": ("rank", ("query_id", "run_id")), "citations": ("place", ("query_id", "run_id", "sentence"))},
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Responses(SystemTables):
    """Responses of RAG systems, with verdicts of people, models, or other tools. Immutable.

    Parameters
    ----------
    tables
        Arrow tables by name, with the columns of `TABLES`; missing tables are empty.
    name, where
        Name in messages and results, and path of the source.
    notes
        Rows and files that were skipped or completed when reading.

    Raises
    ------
    InputError
        If a table or a verdict is unknown, a row is repeated, or a table refers to an answer, a sentence, or a nugget
        that does not exist.

    Examples
    --------
    >>> responses = Responses.of({
    ...     "answers": [{"query_id": "q", "run_id": "a", "text": "It is 7."}],
    ...     "nuggets": [{"query_id": "q", "nugget_id": "1", "text": "it is 7", "importance": "vital"}],
    ...     "assignments": [{"query_id": "q", "run_id": "a", "nugget_id": "1", "verdict": "support"}]})
    >>> responses, responses.run_names, responses["assignments"]["verdict"].to_pylist()
    (Responses('responses': 1 answer of 1 system), ('a',), ['support'])
    """

    table_set: ClassVar[TableSet] = _SET
    main: ClassVar[str] = "answers"

    name: str = "responses"
    where: str = "<responses>"

    def __post_init__(self) -> None:
        if not self["answers"].num_rows:
            fix = "add a table `answers` with query_id, run_id, and text"
            raise InputError("the table of answers is empty", fix=fix, path=self.where)
        references = (
            *((name, ("query_id", "run_id"), "answers") for name in _OF_ANSWERS),
            ("citations", ("query_id", "run_id", "sentence"), "sentences"),
            ("support", ("query_id", "run_id", "sentence"), "sentences"),
            ("evidence", ("query_id", "nugget_id"), "nuggets"),
            ("assignments", ("query_id", "nugget_id"), "nuggets"),
        )
        _SET.check(self.tables, self.where, references)

    @classmethod
    def of(cls, data: Any, *, name: str = "responses") -> Responses:
        """Build responses from tables by name, a path for `read_responses`, or a list of these.

        A table is anything that Arrow accepts, a list of dicts, or a path. Defaults of missing columns: one system
        ``run``, one judge, vital nuggets, ranks and places in the order of the rows. Without a table of sentences, the
        sentences of citations and support are used.

        Raises
        ------
        InputError
            If an input is invalid or inconsistent.
        """
        if isinstance(data, cls):
            return data
        if isinstance(data, (str, Path)):
            from judged.pipelines.rag.readers import read_responses

            return read_responses(data)
        if isinstance(data, (list, tuple)) and data:
            joined = Responses.join([Responses.of(responses) for responses in data])
            return joined if len(data) == 1 else replace(joined, name=name)
        if not isinstance(data, Mapping):
            problem = f"responses must be a mapping of tables, a path, or a list of these, got {type(data).__name__}"
            raise InputError(problem, fix="pass the path of a folder with answers.jsonl")
        return cls.of_tables({str(key): _SET.table(str(key), table) for key, table in data.items()}, name, "<tables>")

    @classmethod
    def of_tables(cls, tables: Mapping[str, Table], name: str, where: str) -> Responses:
        """Build responses from tables with all their columns; missing sentences are those that other tables name."""
        sentence_keys = [tables[key].select(KEYS["sentences"]) for key in ("citations", "support") if key in tables]
        if sentence_keys and "sentences" not in tables:
            sentences = pa.concat_tables(sentence_keys).group_by(KEYS["sentences"]).aggregate([])
            tables = {**tables, "sentences": _SET.typed("sentences", sentences, where)}
        return cls(tables, name, where)

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        """Topics with an answer of any system, a nugget, or a reference, in sorted order."""
        topic_lists = (self[name]["query_id"].unique().to_pylist() for name in ("answers", "nuggets", "references"))
        return tuple(sorted({topic for topics in topic_lists for topic in topics}))

    def run(self, table: str, run: str) -> Run:
        """Convert the documents of ``context`` or ``citations`` of a system to a run.

        A document that is cited several times has the rank of its first citation.
        """
        rows = self[table].filter(pc.equal(self[table]["run_id"], run))
        order = ["rank"] if table == "context" else ["sentence", "place"]
        rows = rows.sort_by([("query_id", "ascending"), *((name, "ascending") for name in order)])
        topics = self.of_run(run)["answers"]["query_id"].to_pylist()
        scores: dict[str, dict[str, float]] = {topic: {} for topic in topics}
        for topic, document in zip(rows["query_id"].to_pylist(), rows["doc_id"].to_pylist(), strict=True):
            scores[topic].setdefault(document, float(-len(scores[topic])))
        return Run.of(scores, name=run)

    def keys(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """Return the sorted distinct values of some columns of a table."""
        rows = self[table]
        return sorted(set(zip(*(rows[name].to_pylist() for name in columns), strict=True)))

    def __repr__(self) -> str:
        answers, systems = counted(len(self), "answer"), counted(len(self.run_names), "system")
        return f"Responses({self.name!r}: {answers} of {systems})"


def table_of_records(name: str, records: Iterable[Record], where: str) -> Table:
    """Build a table from records with their line numbers, or None; errors name the line."""
    return _SET.of_records(name, records, where)


def read_folder(folder: Path) -> Responses:
    """Read a folder with one file for each table."""
    tables, notes = _SET.read(folder)
    responses = Responses.of_tables(tables, folder.name, str(folder))
    return replace(responses, notes=(*responses.notes, *notes))


def write_responses(responses: Responses, folder: str | Path, names: Collection[str] = tuple(TABLES)) -> None:
    """Write each table as JSON Lines, ``answers.jsonl`` and so on, sorted by key.

    Equal tables give equal bytes. Empty cells are left out; other tables in the folder are unchanged.

    Raises
    ------
    JudgedError
        If the folder cannot be written.
    """
    order = {
        "context": ("query_id", "run_id", "rank", "doc_id"),
        "citations": ("query_id", "run_id", "sentence", "place", "doc_id"),
    }
    _SET.write(responses.tables, folder, names, order)


SHARES = (SUPPORT, PARTIAL, CONTRADICTS)
"""Verdicts whose shares are stored; the remaining share is that of ``not``."""
_HALF = 0.5 + 1e-9  # tolerance for rounding of sums of shares


def verdict_shares(table: Table, *key: str) -> dict[Key, tuple[float, ...]]:
    """Compute the shares of the verdicts `SHARES` by key, without failed verdicts.

    Repeats are averaged within judges first, so that each judge has the same weight.
    """
    valid = table.filter(pc.not_equal(table["verdict"], FAILED))
    names = [f"is_{verdict}" for verdict in SHARES]
    for name, verdict in zip(names, SHARES, strict=True):
        valid = valid.append_column(name, pc.cast(pc.equal(valid["verdict"], verdict), pa.float64()))
    for columns in ([*key, "judge"], list(key)):
        means = valid.group_by(columns, use_threads=False).aggregate([(name, "mean") for name in names])
        valid = means.select([*columns, *(f"{name}_mean" for name in names)]).rename_columns([*columns, *names])
    values = [valid[name].to_pylist() for name in (*key, *names)]
    return {row[: len(key)]: row[len(key) :] for row in zip(*values, strict=True)}


def verdicts_of(shares_of: Mapping[Key, tuple[float, ...]], topic: Iterable[int], keys: Iterable[Key]) -> Verdicts:
    """Return the verdicts on elements with these topics and keys; missing without shares."""
    shares = [shares_of.get(key, (np.nan,) * len(SHARES)) for key in keys]
    return Verdicts(np.array(list(topic), np.int64), *np.array(shares, np.float64).reshape(-1, len(SHARES)).T)


def middle_verdicts(table: Table, *key: str) -> dict[Key, str]:
    """Return one verdict by key: the best one that more than half of the judges reach; ``failed`` if all failed.

    >>> from judged.pipelines.rag.responses import Responses
    >>> rows = [{"query_id": "q", "judge": judge, "verdict": verdict} for judge, verdict in
    ...         (("a", "support"), ("b", "failed"), ("c", "not"))]
    >>> middle_verdicts(Responses.of({"answers": [{"query_id": "q"}], "correctness": rows})["correctness"], "query_id")
    {('q',): 'not'}
    """
    distinct = table.group_by(list(key), use_threads=False).aggregate([])
    shares = verdict_shares(table, *key)
    keys = zip(*(distinct[name].to_pylist() for name in key), strict=True)
    return {row_key: _middle(*shares[row_key]) if row_key in shares else FAILED for row_key in keys}


def _middle(support: float, partial: float, contradicts: float) -> str:
    if support > _HALF:
        return SUPPORT
    if support + partial > _HALF:
        return PARTIAL
    return NOT if 1 - contradicts > _HALF else CONTRADICTS
