"""What systems answered, sentence by sentence, and what is known of it, as a few tables that everything else reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from judged.data.compute import pc
from judged.data.records import records_of
from judged.data.run import Run
from judged.errors import InputError
from judged.judging.answered import CONTRADICTS, FAILED, NOT, PARTIAL, SUPPORT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from judged._types import Table
    from judged.data.records import Record
    from judged.notes import Note

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
_USUAL: Mapping[str, Any] = {"run_id": "run", "judge": "judge", "repeat": 0, "importance": VITAL, "user_id": "",
                             "text": None}  # fmt: skip
_LARGEST = 2**53  # what any reader of JSON holds exactly
_COUNTED = {"context": ("rank", ("query_id", "run_id")), "citations": ("place", ("query_id", "run_id", "sentence"))}


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

    tables: Mapping[str, Table] = field(repr=False)
    name: str = "responses"
    where: str = "<responses>"
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        for name in self.tables:
            _check_name(name, self.where)
        if not self["answers"].num_rows:
            fix = "give a table `answers` with query_id, run_id and text"
            raise InputError("there are no answers", fix=fix, path=self.where)
        for name, key in KEYS.items():
            self._check_once(name, key)
        for name, verdicts in VERDICTS.items():
            self._check_words(name, "verdict", verdicts)
        self._check_words("nuggets", "importance", (VITAL, OKAY))
        for name, key, known in (
            *((name, ("query_id", "run_id"), "answers") for name in TABLES if "run_id" in TABLES[name].names),
            ("citations", ("query_id", "run_id", "sentence"), "sentences"),
            ("support", ("query_id", "run_id", "sentence"), "sentences"),
            ("evidence", ("query_id", "nugget_id"), "nuggets"),
            ("assignments", ("query_id", "nugget_id"), "nuggets"),
        ):
            self._check_known(name, key, known)

    @classmethod
    def of(cls, data: Any, *, name: str = "responses") -> Responses:
        """Make them of tables by name, a path that `judged.rag.readers.read_responses` can read, or several of these.

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
            from judged.rag.readers import read_responses

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
        return cls.of_tables({str(key): _table(str(key), given) for key, given in data.items()}, name, "<tables>")

    @classmethod
    def of_tables(cls, tables: Mapping[str, Table], name: str, where: str) -> Responses:
        """Make them of tables that have all their columns; sentences that nobody lists are those that others name."""
        named = [tables[key].select(KEYS["sentences"]) for key in ("citations", "support") if key in tables]
        if named and "sentences" not in tables:
            known = pa.concat_tables(named).group_by(KEYS["sentences"]).aggregate([])
            tables = {**tables, "sentences": _typed("sentences", known, where)}
        return cls(tables, name, where)

    def __getitem__(self, name: str) -> Table:
        """Give a table, with no rows where nobody made it."""
        _check_name(name, self.where)
        return self.tables[name] if name in self.tables else TABLES[name].empty_table()

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
        return replace(self, tables={**self.tables, **{name: _table(name, given) for name, given in tables.items()}})

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

    def _check_once(self, name: str, key: tuple[str, ...]) -> None:
        counts = self[name].group_by(list(key)).aggregate([([], "count_all")])
        if (again := counts.filter(pc.greater(counts["count_all"], 1))).num_rows:
            what = ", ".join(f"{column} {value!r}" for column, value in again.select(key).to_pylist()[0].items())
            raise InputError(f"{name}: there are two rows of {what}", fix="leave one", path=self.where)

    def _check_words(self, name: str, column: str, words: tuple[str, ...]) -> None:
        if strange := set(self[name][column].unique().to_pylist()) - set(words):
            fix = f"use one of {', '.join(words)}"
            raise InputError(f"{name}: no {column} {strange.pop()!r}", fix=fix, path=self.where)

    def _check_known(self, name: str, key: tuple[str, ...], known: str) -> None:
        strange = self[name].join(self[known].select(key), list(key), join_type="left anti")
        if strange.num_rows:
            what = ", ".join(f"{column} {value!r}" for column, value in strange.select(key).to_pylist()[0].items())
            raise InputError(f"{name}: {known} has no row of {what}", fix=f"give it, or leave this out of {name}",
                             path=self.where)  # fmt: skip

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


def _check_name(name: str, where: str) -> None:
    if name not in TABLES:
        raise InputError(f"there is no table {name!r}", fix=f"use one of {', '.join(TABLES)}", path=where)


def _table(name: str, given: Any) -> Table:
    """Read one table, of anything that holds one."""
    _check_name(name, "<tables>")
    if not isinstance(given, (str, Path, list, tuple)):
        return _typed(name, pa.table(given), f"<{name}>")
    where = str(given) if isinstance(given, (str, Path)) else f"<{name}>"
    return table_of_records(name, records_of(given, where, f"the table {name}", "give rows"), where)


def table_of_records(name: str, records: Iterable[Record] | Iterator[Record], where: str) -> Table:
    """Make one of the tables of records, each with its line or None.

    Raises
    ------
    InputError
        If a record lacks what its table needs; it names the line.
    """
    schema, rows, counts = TABLES[name], [], Counter[tuple[Any, ...]]()
    for line, record in records:
        row = {column: _cell(name, column, record.get(column), where, line) for column in schema.names}
        if name in _COUNTED:
            column, within = _COUNTED[name]
            place = tuple(row[part] for part in within)
            counts[place] += 1
            row[column] = counts[place] if row[column] is None else row[column]
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=schema)


def _cell(name: str, column: str, value: Any, where: str, line: int | None) -> Any:
    """Read one cell as its column's type."""
    if value is None or (isinstance(value, str) and not value.strip()):
        if (name, column) == ("support", "doc_id"):
            return ""  # all of the context
        if column == "verdict" or (column in KEYS[name] and column not in _USUAL):
            raise InputError(f"{name}: a row has no {column}", fix=f"give its {column}", path=where, line=line)
        return _USUAL.get(column)
    type_ = TABLES[name].field(column).type
    try:
        if pa.types.is_boolean(type_):
            return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[str(value).lower()]
        if pa.types.is_integer(type_):
            number = int(value)
            if abs(number) > _LARGEST or (isinstance(value, float) and not value.is_integer()):
                raise ValueError
            return number
        if isinstance(value, (list, tuple, Mapping)):
            raise TypeError
        return str(value)
    except (KeyError, ValueError, TypeError, OverflowError):
        kind = "a whole number" if pa.types.is_integer(type_) else "one text or number"
        kind = "true or false" if pa.types.is_boolean(type_) else kind
        raise InputError(f"{name}: {column} is {value!r:.40}", fix=f"write {kind}", path=where, line=line) from None


def _typed(name: str, table: Table, where: str) -> Table:
    """Give a table all its columns, of their types."""
    return table_of_records(name, ((None, row) for row in table.to_pylist()), where)
