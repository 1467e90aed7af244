"""Where labels are kept: one file of SQLite, or a database of PostgreSQL for a team. Rows are added, never changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pyarrow as pa

from judged.data.texts import Texts
from judged.data.topics import Topics
from judged.errors import InputError, MissingExtraError
from judged.labels.database import ROWS, add_new, open_database, storable, without_password
from judged.labels.labels import KINDS, SCHEMA, Grade, Kind, Labels, scale_of

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Executable
    from sqlalchemy import Table as SqlTable


class Task(NamedTuple):
    """A document that a judge is asked to grade for a topic."""

    task: int
    query_id: str
    doc_id: str
    repeat: int
    gold: float | None
    touched: bool  # put off, or taken back: the judge has seen it


class NewTask(NamedTuple):
    """A task before it is in a store."""

    query_id: str
    doc_id: str
    judge: str = ""  # empty: everybody's
    repeat: int = 0
    gold: float | None = None
    priority: int = 0


@dataclass(frozen=True, eq=False)
class LabelStore:
    """Topics, documents, a scale, judges, tasks, and the labels that were given.

    Open one with `LabelStore.open`; several processes may write into one at once. A label is there for good when `add`
    returns. The last label of a judge for a pair counts; what went before stays.

    Examples
    --------
    >>> store = LabelStore.open("sqlite://", scale="0-3")  # in memory; a path in earnest
    >>> store.add_topics({"q": "who wrote Faust"})
    >>> store.add_documents({"a": "Goethe wrote Faust.", "b": "Faust means fist."})
    >>> store.add_tasks([NewTask("q", "a"), NewTask("q", "b")])
    2
    >>> for task in store.tasks("ann"):
    ...     store.add("ann", task.query_id, task.doc_id, 3.0 if task.doc_id == "a" else 0.0, seconds=2.5)
    >>> store.tasks("ann"), store.labels()
    ((), Labels('labels': 2 labels, 2 pairs, 1 judges))
    """

    engine: Engine = field(repr=False)
    where: str

    @classmethod
    def open(cls, where: str | Path, *, scale: Any = None, new: bool = True) -> Self:
        """Open a store, and make it where there is none.

        Parameters
        ----------
        where
            The path of a file of SQLite, or the address of a PostgreSQL database: ``postgresql://user@host/name``.
        scale
            ``binary``, ``0-3``, ``0-4``, or grades of one's own as (grade, word, definition). It is needed only for a
            new store, ``0-3`` where it is not given; that of an old one cannot be changed.
        new
            Whether a store is made where there is none.

        Raises
        ------
        InputError
            If it cannot be opened, is no store of labels, is not there, or has another scale.
        MissingExtraError
            If SQLAlchemy is not installed.
        """
        try:
            from judged.labels import schema
        except ImportError:
            raise MissingExtraError("SQLAlchemy", "labels") from None

        def begin(connection: Connection) -> None:
            connection.execute(schema.scale.insert(), [one._asdict() for one in scale_of(scale or "0-3")])

        store = cls(open_database(where, schema.LAYOUT, begin, new=new), without_password(where))
        if scale is not None and store.scale != scale_of(scale):
            raise InputError("this store has another scale", fix="leave the scale out", path=store.where)
        return store

    @property
    def scale(self) -> tuple[Grade, ...]:
        """The grades that may be given, lowest first."""
        from judged.labels import schema

        return tuple(Grade(*row) for row in self.rows(schema.scale.select().order_by("grade")))

    def add_topics(self, topics: Any, *, synthetic: bool = False) -> None:
        """Add the texts of topics; one that is there is left as it is.

        Parameters
        ----------
        topics
            A `Topics`, or anything that `Topics.of` takes; the columns ``description`` and ``narrative`` are shown to
            judges.
        synthetic
            Whether the questions were made from documents: nobody asked them.
        """
        from judged.labels import schema

        table = Topics.of(topics).table
        shown = [name for name in ("description", "narrative") if name in table.column_names]
        records = table.select(["query_id", "text", *shown]).to_pylist()
        rows = ({name: value or "" for name, value in row.items()} | {"synthetic": synthetic} for row in records)
        self._new(schema.topics, rows)

    def add_documents(self, texts: Any) -> None:
        """Add titles and texts of documents, as `Texts.of` takes them; one that is there is left as it is."""
        from judged.labels import schema

        documents = Texts.of(texts).documents
        self._new(
            schema.documents,
            ({"doc_id": name, "title": one.title, "text": one.text} for name, one in documents.items()),
        )

    def add_judge(self, judge: str, *, kind: Kind = "human") -> str:
        """Add a judge, and give the token that lets them in; whoever is there already gets a new one."""
        from judged.labels import schema

        _named(judge, kind)
        token = token_urlsafe(18)
        with self.engine.begin() as connection:
            connection.execute(schema.judges.delete().where(schema.judges.c.judge == judge))
            row = {"judge": judge, "kind": kind, "token": sha256(token.encode()).hexdigest()}
            connection.execute(schema.judges.insert(), row)
        return token

    def judge_of(self, token: str) -> str | None:
        """Tell whose token this is; None if nobody's."""
        from judged.labels import schema

        hashed = sha256(token.encode()).hexdigest()
        rows = self.rows(schema.judges.select().where(schema.judges.c.token == hashed))
        return rows[0].judge if rows else None

    def add_tasks(self, tasks: Iterable[NewTask]) -> int:
        """Add tasks that are not there yet, and tell how many these are."""
        from judged.labels import schema

        return self._new(schema.tasks, (task._asdict() for task in tasks))

    def add(
        self,
        judge: str,
        topic: str,
        doc_id: str,
        grade: float | None,
        *,
        kind: Kind = "human",
        repeat: int = 0,
        valid: bool = True,
        note: str = "",
        seconds: float | None = None,
        **model: Any,
    ) -> None:
        """Add one label; when this returns, it is kept.

        Parameters
        ----------
        judge, topic, doc_id
            Who, and of what.
        grade
            One of the scale; None: seen, and not graded (or, if it is not `valid`, to be judged again).
        kind, repeat, valid, note, seconds, model
            As in `Labels`; of a model also ``prompt``, ``model``, ``seed`` and ``logprobs``.

        Raises
        ------
        InputError
            If the grade is not on the scale, or the judge has no name.
        """
        row = {"query_id": topic, "doc_id": doc_id, "judge": judge, "kind": kind, "repeat": repeat, "grade": grade}
        self.add_many([{**row, "valid": valid, "note": note, "seconds": seconds, **model}])

    def add_many(self, rows: Iterable[Mapping[str, Any]]) -> int:
        """Add labels, all or none of them, with the names of `SCHEMA`; tell how many."""
        from judged.labels import schema

        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        usual: dict[str, Any] = {
            "kind": "human", "repeat": 0, "valid": True, "note": "", "seconds": None, "prompt": "", "model": "",
            "seed": None, "logprobs": "",
        }  # fmt: skip
        allowed, made = {one.grade for one in self.scale}, list[dict[str, Any]]()
        for given in rows:
            row = {**usual, **given}
            row.setdefault("at", now)  # empty where nobody knows: of what was imported
            if strange := set(row) - set(SCHEMA.names):
                raise InputError(f"a label has no {min(strange)!r}", fix=f"use {', '.join(SCHEMA.names)}")
            _named(row["judge"], row["kind"])
            if row["grade"] is not None and row["valid"] and row["kind"] != "click" and row["grade"] not in allowed:
                grades = ", ".join(f"{grade:g}" for grade in sorted(allowed))
                raise InputError(f"the grade {row['grade']:g} is not on the scale", fix=f"use one of {grades}")
            made.append({name: storable(name, value) for name, value in row.items()})
        with self.engine.begin() as connection:
            for start in range(0, len(made), ROWS):
                connection.execute(schema.labels.insert(), made[start : start + ROWS])
        return len(made)

    def tasks(self, judge: str) -> tuple[Task, ...]:
        """Give what a judge has still to do, in the order in which it should be done.

        Lower priorities come first; within one, topic by topic in an order of the judge's own, repeats at the end, and
        what was put off last.
        """
        from sqlalchemy import and_, func, or_, select

        from judged.labels import schema

        given, wanted = schema.labels, schema.tasks
        last = (
            select(given.c.query_id, given.c.doc_id, given.c.repeat, func.max(given.c.label).label("label"))
            .where(given.c.judge == judge)
            .group_by(given.c.query_id, given.c.doc_id, given.c.repeat)
            .subquery()
        )
        same = and_(*(wanted.c[name] == last.c[name] for name in ("query_id", "doc_id", "repeat")))
        columns = (wanted.c.task, wanted.c.query_id, wanted.c.doc_id, wanted.c.repeat, wanted.c.gold)
        open_ = (
            select(*columns, given.c.label.is_not(None).label("touched"), wanted.c.priority)
            .select_from(wanted.outerjoin(last, same).outerjoin(given, given.c.label == last.c.label))
            .where(wanted.c.judge.in_(("", judge)), or_(given.c.label.is_(None), given.c.valid.is_(False)))
        )
        found = [(row.priority, Task(*row[:6])) for row in self.rows(open_)]

        def order(one: tuple[int, Task]) -> tuple[Any, ...]:
            priority, task = one
            topic, pair = (_shuffled(judge, *part) for part in ((task.query_id,), (task.query_id, task.doc_id)))
            return task.touched, priority, task.repeat > 0, topic, task.repeat, pair

        return tuple(dict.fromkeys(task for _, task in sorted(found, key=order)))

    def judges(self) -> dict[str, str]:
        """Give the kind of each judge who was added."""
        from judged.labels import schema

        return {row.judge: row.kind for row in self.rows(schema.judges.select().order_by("judge"))}

    def every_task(self) -> tuple[NewTask, ...]:
        """Give all tasks, done or not, in the order in which they were added."""
        from judged.labels import schema

        return tuple(NewTask(*row[1:]) for row in self.rows(schema.tasks.select().order_by("task")))

    def topics(self) -> list[dict[str, Any]]:
        """Give the topics with their texts, by id."""
        from judged.labels import schema

        return [row._asdict() for row in self.rows(schema.topics.select().order_by("query_id"))]

    def task(self, judge: str, task: int) -> Task:
        """Give a task of a judge, done or not.

        Raises
        ------
        InputError
            If there is none, or it is somebody else's.
        """
        from judged.labels import schema

        wanted = schema.tasks.c
        rows = self.rows(schema.tasks.select().where(wanted.task == task, wanted.judge.in_(("", judge))))
        if not rows:
            raise InputError(f"{judge} has no task {task}", fix="ask for the tasks again")
        return _done(rows[0])

    def assigned(self, judge: str) -> int:
        """Tell how many tasks a judge has, done or not; a pair and repeat counts once."""
        from sqlalchemy import func, select

        from judged.labels import schema

        table = schema.tasks.c
        pairs = select(table.query_id, table.doc_id, table.repeat).where(table.judge.in_(("", judge))).distinct()
        with self.engine.connect() as connection:
            return connection.scalar(select(func.count()).select_from(pairs.subquery())) or 0

    def last(self, judge: str) -> tuple[Task, float | None, str] | None:
        """Give the task that a judge did last, with its grade and note; None if none is done."""
        from sqlalchemy import and_, func, select

        from judged.labels import schema

        given, wanted = schema.labels, schema.tasks
        key = ("query_id", "doc_id", "repeat")
        counting = (
            select(func.max(given.c.label)).where(given.c.judge == judge).group_by(*(given.c[name] for name in key))
        )
        done = (
            select(wanted.c.task, *(wanted.c[name] for name in key), wanted.c.gold, given.c.grade, given.c.note)
            .join(wanted, and_(*(wanted.c[name] == given.c[name] for name in key)))
            .where(given.c.label.in_(counting), given.c.valid, wanted.c.judge.in_(("", judge)))
            .order_by(given.c.label.desc())
            .limit(1)
        )
        rows = self.rows(done)
        return (_done(rows[0]), rows[0].grade, rows[0].note) if rows else None

    def topic(self, topic: str) -> dict[str, Any]:
        """Give a topic's texts; empty ones where none are known."""
        from judged.labels import schema

        rows = self.rows(schema.topics.select().where(schema.topics.c.query_id == topic))
        empty = {"query_id": topic, "text": "", "description": "", "narrative": "", "synthetic": False}
        return rows[0]._asdict() if rows else empty

    def grades(self, topic: str) -> dict[str, float]:
        """Give the grade of each document of a topic as a person last gave it."""
        from judged.labels import schema

        given = schema.labels.c
        chosen = schema.labels.select().where(given.query_id == topic, given.kind == "human")
        last = {row.doc_id: row for row in self.rows(chosen.order_by(given.label))}
        return {doc: row.grade for doc, row in last.items() if row.valid and row.grade is not None}

    def document(self, doc_id: str) -> dict[str, Any]:
        """Give a document's title and text; empty ones where none are known."""
        from judged.labels import schema

        rows = self.rows(schema.documents.select().where(schema.documents.c.doc_id == doc_id))
        return rows[0]._asdict() if rows else {"doc_id": doc_id, "title": "", "text": ""}

    def labels(self) -> Labels:
        """Give all labels that were given, oldest first.

        Raises
        ------
        InputError
            If there are none.
        """
        from judged.labels import schema

        chosen = schema.labels.select().with_only_columns(*(schema.labels.c[name] for name in SCHEMA.names))
        rows = self.rows(chosen.order_by(schema.labels.c.label))
        columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
        try:
            table = pa.table({field.name: pa.array(columns[at], field.type) for at, field in enumerate(SCHEMA)})
            if empty := [
                name for name in SCHEMA.names if not schema.labels.c[name].nullable and table[name].null_count
            ]:
                raise ValueError(f"{empty[0]} is empty")
        except (TypeError, ValueError, OverflowError) as error:  # SQLite holds any type in any column
            fix = "restore it from a copy"
            raise InputError(f"the database is damaged ({error})", fix=fix, path=self.where) from None
        name = "labels" if "://" in self.where else Path(self.where).stem
        return Labels(table, name, self.where)

    def __len__(self) -> int:
        from judged.labels import schema

        with self.engine.connect() as connection:
            return _count(connection, schema.labels)

    def __bool__(self) -> bool:
        return True  # a store without labels is a store

    def size(self) -> int:
        """Tell how many documents there are."""
        from judged.labels import schema

        with self.engine.connect() as connection:
            return _count(connection, schema.documents)

    def lacking(self) -> dict[str, list[str]]:
        """Give the ids that tasks name and that have no entry here, by `topic` and `document`."""
        from sqlalchemy import select

        from judged.labels import schema

        missing: dict[str, list[str]] = {}
        for word, table, name in (("topic", schema.topics, "query_id"), ("document", schema.documents, "doc_id")):
            wanted = schema.tasks.c[name]
            chosen = select(wanted).where(wanted.not_in(select(table.c[name]))).distinct().order_by(wanted)
            missing[word] = [row[0] for row in self.rows(chosen)]
        return missing

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up the connections."""
        self.engine.dispose()

    def _new(self, table: SqlTable, rows: Iterable[Mapping[str, Any]]) -> int:
        """Add rows whose key is not there yet; tell how many these are."""
        with self.engine.begin() as connection:
            before = _count(connection, table)
            add_new(connection, table, rows)
            return _count(connection, table) - before

    def rows(self, statement: Executable) -> list[Any]:
        """Return the rows that a statement selects."""
        with self.engine.connect() as connection:
            return list(connection.execute(statement))


def _done(row: Any) -> Task:
    return Task(row.task, row.query_id, row.doc_id, row.repeat, row.gold, touched=True)


def _count(connection: Connection, table: SqlTable) -> int:
    from sqlalchemy import func, select

    return connection.scalar(select(func.count()).select_from(table)) or 0


def _named(judge: str, kind: str) -> None:
    if not judge.strip():
        raise InputError("a judge has no name", fix="give a name")
    if kind not in KINDS:
        raise InputError(f"no kind of judge {kind!r}", fix=f"use one of {', '.join(KINDS)}")


def _shuffled(*parts: str) -> bytes:
    """Give each judge an order of their own that is the same each time."""
    return sha256("\0".join(parts).encode()).digest()
