"""What systems answered, sentence by sentence, and what is known of it, as a few tables that everything else reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from judged.data.compute import pc
from judged.data.records import TableSet
from judged.data.run import Run
from judged.errors import InputError
from judged.results.types import cached_property
from judged.scoring.judging.answers import CONTRADICTS, FAILED, NOT, PARTIAL, SUPPORT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from judged.data.records import Record
    from judged.results.blocks import Note
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
}
"""The tables and their columns.

``answers``: one row a topic and system; ``abstained``: whether it said that it cannot answer. ``sentences``: its
sentences, from 1. ``context``: the passages that the generator was given, from rank 1. ``citations``: which documents a
sentence cites, in their order, from 1. ``nuggets``: what an answer should say, ``vital`` or ``okay``; ``evidence``: in
which documents that stands. ``assignments``: how far an answer says a nugget, and in which sentence, where that is
known. ``support``: how far a document supports a sentence; no document: all of the context together.
``references``: an answer that is right, and whether the corpus can answer the question at all. ``correctness``: how far
an answer agrees with its reference. ``feedback``: whether a user was satisfied.
"""
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
}
"""Of what there is one row at a time, in each table."""
VERDICTS: Mapping[str, tuple[str, ...]] = {
    "assignments": (SUPPORT, PARTIAL, NOT, FAILED),
    "support": (SUPPORT, PARTIAL, NOT, CONTRADICTS, FAILED),
    "correctness": (SUPPORT, PARTIAL, NOT, FAILED),
}
"""The verdicts that each table may hold."""
_SET = TableSet(
    TABLES,
    KEYS,
    defaults={"run_id": "run", "judge": "judge", "repeat": 0, "importance": VITAL, "user_id": "", "text": None,
           ("support", "doc_id"): ""},
    enums={**{(name, "verdict"): words for name, words in VERDICTS.items()}, ("nuggets", "importance"): (VITAL, OKAY)},
    numbered={"context": ("rank", ("query_id", "run_id")), "citations": ("place", ("query_id", "run_id", "sentence"))},
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Responses:
    """What systems answered, and what people, models or other tools found out about it. Immutable.

    Parameters
    ----------
    tables
        Arrow tables by name, with the columns of `TABLES`; a table that is not there is one that nobody made.
    name, where
        How messages and results call it, and the path it came from.
    notes
        What was left out or made up when it was read.

    Raises
    ------
    InputError
        If a table or a verdict is unknown, something stands twice, or a table speaks of an answer, a sentence or a
        nugget that there is not.

    Examples
    --------
    >>> made = Responses.of({
    ...     "answers": [{"query_id": "q", "run_id": "a", "text": "It is 7."}],
    ...     "nuggets": [{"query_id": "q", "nugget_id": "1", "text": "it is 7", "importance": "vital"}],
    ...     "assignments": [{"query_id": "q", "run_id": "a", "nugget_id": "1", "verdict": "support"}]})
    >>> made, made.run_names, made["assignments"]["verdict"].to_pylist()
    (Responses('responses': 1 answer of 1 system), ('a',), ['support'])
    """

    tables: Mapping[str, Table]
    name: str = "responses"
    where: str = "<responses>"
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        if not self["answers"].num_rows:
            fix = "give a table `answers` with query_id, run_id and text"
            raise InputError("there are no answers", fix=fix, path=self.where)
        known = (
            *((name, ("query_id", "run_id"), "answers") for name in TABLES if "run_id" in TABLES[name].names),
            ("citations", ("query_id", "run_id", "sentence"), "sentences"),
            ("support", ("query_id", "run_id", "sentence"), "sentences"),
            ("evidence", ("query_id", "nugget_id"), "nuggets"),
            ("assignments", ("query_id", "nugget_id"), "nuggets"),
        )
        _SET.check(self.tables, self.where, known)

    @classmethod
    def of(cls, data: Any, *, name: str = "responses") -> Responses:
        """Make them of tables by name, a path that `judged.pipelines.rag.readers` can read, or several of these.

        A table is anything that Arrow takes, a list of dicts, or the path of one. Columns that are not given hold what
        is usual: one system ``run``, one judge, a vital nugget, ranks and places in the order of the rows; sentences
        that citations or support name need not be listed where no table has their texts.

        Raises
        ------
        InputError
            If something cannot be read, or does not go together.
        """
        if isinstance(data, cls):
            return data
        if isinstance(data, (str, Path)):
            from judged.pipelines.rag.readers import read_responses

            return read_responses(data)
        if isinstance(data, (list, tuple)) and data:
            parts = [cls.of(part) for part in data]
            where, notes = (
                ", ".join(part.where for part in parts),
                tuple(dict.fromkeys(n for p in parts for n in p.notes)),
            )
            return parts[0] if len(parts) == 1 else cls(_together(parts), name, where, notes)
        if not isinstance(data, Mapping):
            raise InputError("no answers can be read from it", fix="give tables by name, a path, or a list of these")
        return cls.of_tables({str(key): _SET.table(str(key), given) for key, given in data.items()}, name, "<tables>")

    @classmethod
    def of_tables(cls, tables: Mapping[str, Table], name: str, where: str) -> Responses:
        """Make them of tables that have all their columns; sentences that nobody lists are those that others name."""
        named = [tables[key].select(KEYS["sentences"]) for key in ("citations", "support") if key in tables]
        if named and "sentences" not in tables:
            known = pa.concat_tables(named).group_by(KEYS["sentences"]).aggregate([])
            tables = {**tables, "sentences": _SET.typed("sentences", known, where)}
        return cls(tables, name, where)

    def __getitem__(self, name: str) -> Table:
        """Give a table, with no rows where nobody made it."""
        return _SET.of(self.tables, name, self.where)

    @cached_property
    def run_names(self) -> tuple[str, ...]:
        """The systems, in the order in which they came."""
        return tuple(self["answers"]["run_id"].unique().to_pylist())

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        """The topics that some system answered, or that have nuggets or a reference, in the order of their ids."""
        named = (self[name]["query_id"].unique().to_pylist() for name in ("answers", "nuggets", "references"))
        return tuple(sorted({topic for topics in named for topic in topics}))

    def of_run(self, run: str) -> Responses:
        """Leave one system; nuggets, evidence and references stay."""
        if run not in self.run_names:
            fix = f"use one of {', '.join(self.run_names)}"
            raise InputError(f"there are no answers of {run!r}", fix=fix, path=self.where)
        return self._kept("run_id", (run,))

    def called(self, name: str) -> Responses:
        """Leave the system of this name; where there is only one, with another name, call it so."""
        if name in self.run_names or len(self.run_names) > 1:
            return self.of_run(name)
        run = pa.scalar(name, pa.string())
        return replace(
            self,
            tables={
                key: table.set_column(at, "run_id", pa.repeat(run, table.num_rows))
                if (at := table.column_names.index("run_id") if "run_id" in table.column_names else -1) >= 0
                else table
                for key, table in self.tables.items()
            },
        )

    def of_topics(self, topics: Collection[str]) -> Responses:
        """Leave some topics."""
        return self._kept("query_id", topics)

    def with_tables(self, **tables: Any) -> Responses:
        """Give the same with other tables in the place of those of their names."""
        return replace(
            self, tables={**self.tables, **{name: _SET.table(name, given) for name, given in tables.items()}}
        )

    def run(self, table: str, run: str) -> Run:
        """Give the documents of ``context`` or ``citations`` of a system as a run, in their order.

        A document that is cited several times stands where it is cited first.
        """
        rows = self[table].filter(pc.equal(self[table]["run_id"], run))
        order = ["rank"] if table == "context" else ["sentence", "place"]
        rows = rows.sort_by([("query_id", "ascending"), *((name, "ascending") for name in order)])
        lists: dict[str, dict[str, float]] = {
            topic: {} for topic in self.of_run(run)["answers"]["query_id"].to_pylist()
        }
        for topic, document in zip(rows["query_id"].to_pylist(), rows["doc_id"].to_pylist(), strict=True):
            lists[topic].setdefault(document, float(-len(lists[topic])))
        return Run.of(lists, name=run)

    def keys(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """Give what stands in these columns of a table, each once, in its order."""
        rows = self[table]
        return sorted(set(zip(*(rows[name].to_pylist() for name in columns), strict=True)))

    def grouped(self, table: str, by: Sequence[str], order: str = "") -> dict[tuple[Any, ...], list[dict[str, Any]]]:
        """Give the rows of a table by some of its columns, in the order of another one."""
        rows = self[table].sort_by(order) if order else self[table]
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in rows.to_pylist():
            groups.setdefault(tuple(row[name] for name in by), []).append(row)
        return groups

    def _kept(self, column: str, values: Collection[str]) -> Responses:
        wanted = pa.array(sorted(values), pa.string())
        return replace(
            self,
            tables={
                name: table.filter(pc.is_in(table[column], value_set=wanted)) if column in table.column_names else table
                for name, table in self.tables.items()
            },
        )

    def __len__(self) -> int:
        return self["answers"].num_rows

    def __repr__(self) -> str:
        answers, systems = len(self), len(self.run_names)
        return (
            f"Responses({self.name!r}: {answers} answer{'s' * (answers != 1)}"
            f" of {systems} system{'s' * (systems != 1)})"
        )


def _together(parts: Sequence[Responses]) -> dict[str, Table]:
    """Put the tables of several below each other; what they share, such as nuggets, stands there once."""
    names = [run for part in parts for run in part.run_names]
    if twice := [run for run in names if names.count(run) > 1]:
        raise InputError(f"two systems are called {twice[0]!r}", fix="name one of them: OTHER=PATH")
    tables = {name: pa.concat_tables([part[name] for part in parts]) for name in TABLES}
    return {
        name: table if "run_id" in table.column_names else table.group_by(table.column_names).aggregate([])
        for name, table in tables.items()
        if table.num_rows
    }


def table_of_records(name: str, records: Iterable[Record], where: str) -> Table:
    """Make one of the tables of records, each with its line or None; an error names the line."""
    return _SET.of_records(name, records, where)


def read_folder(folder: Path) -> Responses:
    """Read a folder with a file for each table."""
    tables, notes = _SET.read(folder)
    made = Responses.of_tables(tables, folder.name, str(folder))
    return replace(made, notes=(*made.notes, *notes))


def write_responses(responses: Responses, folder: str | Path, names: Collection[str] = tuple(TABLES)) -> None:
    """Write each table that is there as JSON Lines, ``answers.jsonl`` and so on, its rows in the order of their keys.

    Equal tables give equal bytes. Cells that are empty are left out; tables that are not named stay as they are.

    Raises
    ------
    JudgedError
        If nothing can be written there.
    """
    order = {
        "context": ("query_id", "run_id", "rank", "doc_id"),
        "citations": ("query_id", "run_id", "sentence", "place", "doc_id"),
    }
    _SET.write(responses.tables, folder, names, order)


SHARES = (SUPPORT, PARTIAL, CONTRADICTS)
"""The words whose shares are kept; what is left is the share of those who said ``not``."""
_HALF = 0.5 + 1e-9  # sums of shares are off by rounding


def verdict_shares(table: Table, *key: str) -> dict[Key, tuple[float, ...]]:
    """Average what was said of each thing: the shares of `SHARES`; what only failed is left out."""
    known = table.filter(pc.not_equal(table["verdict"], FAILED))
    names = [f"is_{word}" for word in SHARES]
    for name, word in zip(names, SHARES, strict=True):
        known = known.append_column(name, pc.cast(pc.equal(known["verdict"], word), pa.float64()))
    for by in ([*key, "judge"], list(key)):
        means = known.group_by(by, use_threads=False).aggregate([(name, "mean") for name in names])
        known = means.select([*by, *(f"{name}_mean" for name in names)]).rename_columns([*by, *names])
    columns = [known[name].to_pylist() for name in (*key, *names)]
    return {row[: len(key)]: row[len(key) :] for row in zip(*columns, strict=True)}


def middle_verdicts(table: Table, *key: str) -> dict[Key, str]:
    """Give one word for each thing: the most that more than half of its judges give it; ``failed`` where all failed.

    >>> from judged.pipelines.rag.responses import Responses
    >>> said = [{"query_id": "q", "judge": judge, "verdict": verdict} for judge, verdict in
    ...         (("a", "support"), ("b", "failed"), ("c", "not"))]
    >>> middle_verdicts(Responses.of({"answers": [{"query_id": "q"}], "correctness": said})["correctness"], "query_id")
    {('q',): 'not'}
    """
    every = table.group_by(list(key), use_threads=False).aggregate([])
    shares = verdict_shares(table, *key)
    keys = zip(*(every[name].to_pylist() for name in key), strict=True)
    return {place: _middle(*shares[place]) if place in shares else FAILED for place in keys}


def _middle(full: float, partial: float, against: float) -> str:
    if full > _HALF:
        return SUPPORT
    if full + partial > _HALF:
        return PARTIAL
    return NOT if 1 - against > _HALF else CONTRADICTS
