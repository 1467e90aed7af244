"""Storage of labels in an SQLite file or a PostgreSQL database. Labels are appended, never changed."""

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
from judged.labels.database import ROWS, add_new, open_database, to_storable, without_password
from judged.labels.labels import KINDS, SCHEMA, Grade, Kind, Labels, resolve_scale
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Executable
    from sqlalchemy import Table as SqlTable


class JudgingTask(NamedTuple):
    """A document to grade for a topic."""

    task: int
    query_id: str
    doc_id: str
    repeat: int
    gold: float | None
    touched: bool  # postponed or undone: the judge has seen it


class NewTask(NamedTuple):
    """A task that is not yet in a store."""

    query_id: str
    doc_id: str
    judge: str = ""  # empty: any judge
    repeat: int = 0
    gold: float | None = None
    priority: int = 0


@dataclass(frozen=True, eq=False)
class LabelStore:
    """A store of topics, documents, a grade scale, judges, tasks, and labels.

    Open a store with `LabelStore.open`. Several processes can write to it concurrently. A label is durable when `add`
    returns. The last label of a judge for a pair counts; earlier ones are kept.

    Examples
    --------
    >>> store = LabelStore.open("sqlite://", scale="0-3")  # in memory
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
        """Open a store, and create it if it does not exist.

        Parameters
        ----------
        where
            Path of an SQLite file, or URL of a PostgreSQL database: ``postgresql://user@host/name``.
        scale
            ``binary``, ``0-3``, ``0-4``, or custom grades as (grade, word, definition). The scale of an existing store
            cannot be changed. Default of a new store: ``0-3``.
        new
            Whether to create a store that does not exist.

        Raises
        ------
        InputError
            If the store cannot be opened, is not a label store, does not exist, or has another scale.
        MissingExtraError
            If SQLAlchemy is not installed.
        """
        try:
            from judged.labels import schema
        except ImportError:
            raise MissingExtraError("SQLAlchemy", "labels") from None

        # The scale is inserted when the store is created, so that no other process sees a store without a scale.
        def begin(connection: Connection) -> None:
            connection.execute(schema.scale.insert(), [grade._asdict() for grade in resolve_scale(scale or "0-3")])

        store = cls(open_database(where, schema.LAYOUT, begin, new=new), without_password(where))
        # The definitions of built-in scales may differ, because they are those of the version that created the store.
        fields = 2 if isinstance(scale, str) else 3
        expected = store.scale if scale is None else resolve_scale(scale)
        if [grade[:fields] for grade in store.scale] != [grade[:fields] for grade in expected]:
            raise InputError("the scale of a store cannot be changed", fix="omit --scale", path=store.where)
        return store

    @property
    def scale(self) -> tuple[Grade, ...]:
        """Allowed grades, lowest first."""
        from judged.labels import schema

        return tuple(Grade(*row) for row in self.rows(schema.scale.select().order_by("grade")))

    def add_topics(self, topics: Any, *, synthetic: bool = False) -> None:
        """Add the texts of topics; existing topics do not change.

        Parameters
        ----------
        topics
            As `Topics.of` accepts them; the columns ``description`` and ``narrative`` are shown to judges.
        synthetic
            Whether the queries were generated from documents.
        """
        from judged.labels import schema

        table = Topics.of(topics).table
        text_columns = [name for name in ("description", "narrative") if name in table.column_names]
        records = table.select(["query_id", "text", *text_columns]).to_pylist()
        rows = ({name: value or "" for name, value in row.items()} | {"synthetic": synthetic} for row in records)
        self._insert_new(schema.topics, rows)

    def add_documents(self, texts: Any) -> None:
        """Add titles and texts of documents, as `Texts.of` accepts them; existing documents do not change."""
        from judged.labels import schema

        documents = Texts.of(texts).documents
        self._insert_new(
            schema.documents, ({"doc_id": doc_id} | document._asdict() for doc_id, document in documents.items())
        )

    def add_judge(self, judge: str, *, kind: Kind = "human") -> str:
        """Add a judge and return a new login token; a token from before becomes invalid."""
        from judged.labels import schema

        _check_judge(judge, kind)
        token = token_urlsafe(18)
        with self.engine.begin() as connection:
            # Only the hash of the token is stored: a copy of the database does not let anyone in.
            connection.execute(schema.judges.delete().where(schema.judges.c.judge == judge))
            row = {"judge": judge, "kind": kind, "token": sha256(token.encode()).hexdigest()}
            connection.execute(schema.judges.insert(), row)
        return token

    def judge_with_token(self, token: str) -> str | None:
        """Return the judge with this token, or None."""
        from judged.labels import schema

        hashed = sha256(token.encode()).hexdigest()
        rows = self.rows(schema.judges.select().where(schema.judges.c.token == hashed))
        return rows[0].judge if rows else None

    def add_tasks(self, tasks: Iterable[NewTask]) -> int:
        """Add tasks that do not exist yet, and return their number."""
        from judged.labels import schema

        return self._insert_new(schema.tasks, (task._asdict() for task in tasks))

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
        """Add one label, which is durable when this returns.

        Parameters
        ----------
        judge, topic, doc_id
            The judge, and the pair.
        grade
            A grade of the scale; None: skipped (or, if not `valid`, to be judged later).
        kind, repeat, valid, note, seconds, model
            As in `Labels`; for a model also ``prompt``, ``model``, ``seed`` and ``logprobs``.

        Raises
        ------
        InputError
            If the grade is not on the scale, or the judge has no name.
        """
        row = {"query_id": topic, "doc_id": doc_id, "judge": judge, "kind": kind, "repeat": repeat, "grade": grade}
        self.add_many([{**row, "valid": valid, "note": note, "seconds": seconds, **model}])

    def add_many(self, rows: Iterable[Mapping[str, Any]]) -> int:
        """Add labels with columns of `SCHEMA`, all or none, and return their number."""
        from judged.labels import schema

        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        defaults: dict[str, Any] = {
            "kind": "human", "repeat": 0, "valid": True, "note": "", "seconds": None, "prompt": "", "model": "",
            "seed": None, "logprobs": "",
        }  # fmt: skip
        allowed, new_rows = {grade.grade for grade in self.scale}, list[dict[str, Any]]()
        for label in rows:
            row = {**defaults, **label}
            row.setdefault("time", now)  # stays empty for imported labels without a time
            if unknown := set(row) - set(SCHEMA.names):
                raise InputError(f"unknown column {min(unknown)!r} of a label", fix=f"use {', '.join(SCHEMA.names)}")
            _check_judge(row["judge"], row["kind"])
            if row["grade"] is not None and row["valid"] and row["kind"] != "click" and row["grade"] not in allowed:
                grades = ", ".join(f"{grade:g}" for grade in sorted(allowed))
                raise InputError(f"the grade {row['grade']:g} is not on the scale", fix=f"use one of {grades}")
            new_rows.append({name: to_storable(name, value) for name, value in row.items()})
        with self.engine.begin() as connection:
            for start in range(0, len(new_rows), ROWS):
                connection.execute(schema.labels.insert(), new_rows[start : start + ROWS])
        return len(new_rows)

    def tasks(self, judge: str) -> tuple[JudgingTask, ...]:
        """Return the open tasks of a judge, in the order in which to do them.

        Order: lower priority numbers first, then by topic in a random order for each judge; repeats come last within a
        priority, and postponed tasks at the end.
        """
        from sqlalchemy import and_, func, or_, select

        from judged.labels import schema

        labels, tasks = schema.labels, schema.tasks
        # The last label of the judge for each pair and repeat; labels have increasing numbers.
        last = (
            select(labels.c.query_id, labels.c.doc_id, labels.c.repeat, func.max(labels.c.label).label("label"))
            .where(labels.c.judge == judge)
            .group_by(labels.c.query_id, labels.c.doc_id, labels.c.repeat)
            .subquery()
        )
        is_same_task = and_(*(tasks.c[name] == last.c[name] for name in ("query_id", "doc_id", "repeat")))
        columns = (tasks.c.task, tasks.c.query_id, tasks.c.doc_id, tasks.c.repeat, tasks.c.gold)
        query = (
            select(*columns, labels.c.label.is_not(None).label("touched"), tasks.c.priority)
            .select_from(tasks.outerjoin(last, is_same_task).outerjoin(labels, labels.c.label == last.c.label))
            .where(tasks.c.judge.in_(("", judge)), or_(labels.c.label.is_(None), labels.c.valid.is_(False)))
        )
        rows = [(row.priority, JudgingTask(*row[:6])) for row in self.rows(query)]

        def sort_key(row: tuple[int, JudgingTask]) -> tuple[Any, ...]:
            priority, task = row
            topic, pair = (_shuffle_key(judge, *key) for key in ((task.query_id,), (task.query_id, task.doc_id)))
            return task.touched, priority, task.repeat > 0, topic, task.repeat, pair

        # A pair can be assigned to the judge and to all judges: keep one task.
        return tuple(dict.fromkeys(task for _, task in sorted(rows, key=sort_key)))

    def judges(self) -> dict[str, str]:
        """Return the kind of each added judge, by name."""
        from judged.labels import schema

        return {row.judge: row.kind for row in self.rows(schema.judges.select().order_by("judge"))}

    def judge_names(self) -> tuple[str, ...]:
        """Return the names of all judges: added, assigned to tasks, or with labels."""
        from sqlalchemy import select, union

        from judged.labels import schema

        tables = (schema.judges, schema.tasks, schema.labels)
        names = (row.judge for row in self.rows(union(*(select(table.c.judge) for table in tables))))
        return tuple(sorted(filter(None, names)))  # the judge of a task for everyone is empty

    def all_tasks(self) -> tuple[NewTask, ...]:
        """Return all tasks, done or not, in the order in which they were added."""
        from judged.labels import schema

        return tuple(NewTask(*row[1:]) for row in self.rows(schema.tasks.select().order_by("task")))

    def topics(self) -> list[dict[str, Any]]:
        """Return the topics with their texts, ordered by ID."""
        from judged.labels import schema

        return [row._asdict() for row in self.rows(schema.topics.select().order_by("query_id"))]

    def task(self, judge: str, task: int) -> JudgingTask:
        """Return a task of a judge, done or not.

        Raises
        ------
        InputError
            If the task does not exist, or belongs to another judge.
        """
        from judged.labels import schema

        columns = schema.tasks.c
        rows = self.rows(schema.tasks.select().where(columns.task == task, columns.judge.in_(("", judge))))
        if not rows:
            raise InputError(f"{judge} has no task {task}", fix="reload the tasks")
        return _task_from_row(rows[0])

    def count_tasks(self, judge: str) -> int:
        """Count the tasks of a judge, done or not; a pair and repeat counts once."""
        from sqlalchemy import func, select

        from judged.labels import schema

        table = schema.tasks.c
        pairs = select(table.query_id, table.doc_id, table.repeat).where(table.judge.in_(("", judge))).distinct()
        with self.engine.connect() as connection:
            return connection.scalar(select(func.count()).select_from(pairs.subquery())) or 0

    def last_task(self, judge: str) -> tuple[JudgingTask, float | None, str] | None:
        """Return the task that a judge did last, with its grade and note; None without labels."""
        from sqlalchemy import and_, func, select

        from judged.labels import schema

        labels, tasks = schema.labels, schema.tasks
        key = ("query_id", "doc_id", "repeat")
        last_labels = (
            select(func.max(labels.c.label)).where(labels.c.judge == judge).group_by(*(labels.c[name] for name in key))
        )
        query = (
            select(tasks.c.task, *(tasks.c[name] for name in key), tasks.c.gold, labels.c.grade, labels.c.note)
            .join(tasks, and_(*(tasks.c[name] == labels.c[name] for name in key)))
            .where(labels.c.label.in_(last_labels), labels.c.valid, tasks.c.judge.in_(("", judge)))
            .order_by(labels.c.label.desc())
            .limit(1)
        )
        rows = self.rows(query)
        return (_task_from_row(rows[0]), rows[0].grade, rows[0].note) if rows else None

    def topic(self, topic: str) -> dict[str, Any]:
        """Return the texts of a topic; empty texts if it is unknown."""
        from judged.labels import schema

        rows = self.rows(schema.topics.select().where(schema.topics.c.query_id == topic))
        empty = {"query_id": topic, "text": "", "description": "", "narrative": "", "synthetic": False}
        return rows[0]._asdict() if rows else empty

    def grades(self, topic: str) -> dict[str, float]:
        """Return the last human grade of each document of a topic."""
        from judged.labels import schema

        columns = schema.labels.c
        query = schema.labels.select().where(columns.query_id == topic, columns.kind == "human")
        last = {row.doc_id: row for row in self.rows(query.order_by(columns.label))}
        return {doc: row.grade for doc, row in last.items() if row.valid and row.grade is not None}

    def document(self, doc_id: str) -> dict[str, Any]:
        """Return title and text of a document; empty if it is unknown."""
        from judged.labels import schema

        rows = self.rows(schema.documents.select().where(schema.documents.c.doc_id == doc_id))
        return rows[0]._asdict() if rows else {"doc_id": doc_id, "title": "", "text": ""}

    def labels(self) -> Labels:
        """Return all labels, oldest first.

        Raises
        ------
        InputError
            If there are none.
        """
        from judged.labels import schema

        query = schema.labels.select().with_only_columns(*(schema.labels.c[name] for name in SCHEMA.names))
        rows = self.rows(query.order_by(schema.labels.c.label))
        columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
        try:
            table = pa.table({field.name: pa.array(columns[i], field.type) for i, field in enumerate(SCHEMA)})
            if missing := [
                name for name in SCHEMA.names if not schema.labels.c[name].nullable and table[name].null_count
            ]:
                raise ValueError(f"{missing[0]} is empty")
        except (TypeError, ValueError, OverflowError) as error:  # SQLite allows any type in any column
            fix = "restore the database from a copy"
            raise InputError(f"the database is damaged ({error})", fix=fix, path=self.where) from None
        # A URL has no file name that is fit for display.
        name = "labels" if "://" in self.where else Path(self.where).stem
        return Labels(table, name, self.where)

    def __len__(self) -> int:
        from judged.labels import schema

        with self.engine.connect() as connection:
            return _count(connection, schema.labels)

    def __bool__(self) -> bool:
        return True  # a store without labels is a store

    def document_count(self) -> int:
        """Count the documents."""
        from judged.labels import schema

        with self.engine.connect() as connection:
            return _count(connection, schema.documents)

    def missing_ids(self) -> dict[str, list[str]]:
        """Return the IDs in tasks without an entry in the store, for `topic` and `document`."""
        from sqlalchemy import select

        from judged.labels import schema

        missing: dict[str, list[str]] = {}
        for word, table, name in (("topic", schema.topics, "query_id"), ("document", schema.documents, "doc_id")):
            task_ids = schema.tasks.c[name]
            query = select(task_ids).where(task_ids.not_in(select(table.c[name]))).distinct().order_by(task_ids)
            missing[word] = [row[0] for row in self.rows(query)]
        return missing

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()

    def _insert_new(self, table: SqlTable, rows: Iterable[Mapping[str, Any]]) -> int:
        """Insert rows with new keys, and return their number."""
        with self.engine.begin() as connection:
            # Statements with many rows have no reliable row count, so count before and after.
            before = _count(connection, table)
            add_new(connection, table, rows)
            return _count(connection, table) - before

    def rows(self, statement: Executable) -> list[Any]:
        """Return the rows that a statement selects."""
        with self.engine.connect() as connection:
            return list(connection.execute(statement))


def _task_from_row(row: Any) -> JudgingTask:
    return JudgingTask(row.task, row.query_id, row.doc_id, row.repeat, row.gold, touched=True)


def _count(connection: Connection, table: SqlTable) -> int:
    from sqlalchemy import func, select

    return connection.scalar(select(func.count()).select_from(table)) or 0


def _check_judge(judge: str, kind: str) -> None:
    if not judge.strip():
        raise InputError("each judge must have a name", fix="use a name that is not empty")
    if kind not in KINDS:
        raise InputError(f"unknown type of judge {kind!r}", fix=use_one_of(KINDS))


def _shuffle_key(*parts: str) -> bytes:
    """Return a reproducible sort key, different for each judge."""
    return sha256("\0".join(parts).encode()).digest()
