"""Where a study is kept while it runs: one file of SQLite, or PostgreSQL. Rows are added, never changed."""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from judged.errors import InputError, MissingExtraError
from judged.labels.database import add_new, open_database, to_storable, without_password
from judged.studies.records import TABLES, StudyRecords

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

TASK, SEARCH = "task", "search"
"""The steps of a trial: its instruction was read, it was ended. Step ``task-3`` is that of the trial at position 3."""
OBSERVER = "observer"
"""Whose link leads to the notes."""


class Action(NamedTuple):
    """What a participant did in a trial: a row of the table events of `StudyRecords`, whose columns it has."""

    action: str
    page: int = 0
    query: str | None = None
    doc_id: str | None = None
    rank: int | None = None
    value: float | None = None
    shown: tuple[str, ...] | None = None
    at: int = 0


class Participant(NamedTuple):
    """Which place somebody has in the design."""

    group: str
    number: int  # from 0


def page_of(actions: Sequence[Action], page: int | None = None) -> Action | None:
    """Give a result page by its number, or the last one; None if there is none."""
    return next((one for one in reversed(actions) if one.action == "query" and page in {None, one.page}), None)


def open_document(actions: Sequence[Action]) -> Action | None:
    """Give the click that opened the document that is being read; None if none is."""
    last = next((one for one in reversed(actions) if one.action in {"query", "click", "back"}), None)
    return last if last is not None and last.action == "click" else None


def saved(actions: Iterable[Action]) -> dict[str, Action]:
    """Give the documents that are kept, each with how it was.

    >>> list(saved([Action("save", doc_id="a"), Action("save", doc_id="b"), Action("unsave", doc_id="a")]))
    ['b']
    """
    kept: dict[str, Action] = {}
    for one in actions:
        if one.action == "save":
            kept[str(one.doc_id)] = one
        elif one.action == "unsave":
            kept.pop(str(one.doc_id), None)
    return kept


def added(before: Sequence[Action], new: Action) -> tuple[Action, ...]:
    """Tell what an action adds to those before it: nothing where a page was loaded or a form was sent once more.

    A page of results that is shown again is the same page; where a document was being read, that has ended.

    >>> shown = Action("query", query="faust", rank=1, shown=("a", "b"), at=0)
    >>> before = added((), shown)
    >>> before += added(before, Action("click", page=1, doc_id="b", rank=2, at=1000))
    >>> [(one.action, one.page, one.value) for one in added(before, shown._replace(at=5000))]
    [('back', 1, 4.0)]
    >>> added(before, before[-1])
    ()
    """
    # clocks are set back, and ties have no order
    new = new._replace(at=max(new.at, before[-1].at + 1 if before else 0))
    page, reading = page_of(before), open_document(before)
    if new.action == "back":
        if reading is None or (reading.page, reading.doc_id) != (new.page, new.doc_id):
            return ()
        seconds = (new.at - reading.at) / 1000
        return (new._replace(rank=reading.rank, value=seconds if new.value is None else min(new.value, seconds)),)
    if new.action == "query":
        left = () if reading is None else added(before, Action("back", reading.page, doc_id=reading.doc_id, at=new.at))
        if page is not None and (page.query, page.rank, page.shown) == (new.query, new.rank, new.shown):
            return left
        return (*left, new._replace(page=1 if page is None else page.page + 1, at=new.at + len(left)))
    if new.action == "click":
        same = reading is not None and (reading.page, reading.doc_id) == (new.page, new.doc_id)
        return () if same else (new,)
    kept = saved(before).get(str(new.doc_id))
    if new.action == "unsave":
        return () if kept is None else (new,)
    return () if kept is not None and kept.value == new.value else (new,)


@dataclass(frozen=True, eq=False)
class StudyStore:
    """Participants, what each is to do, and what each did. Open one with `StudyStore.open`.

    What was answered or done is there for good when `finish` or `act` returns; the same again changes nothing.

    Examples
    --------
    >>> store = StudyStore.open("sqlite://", "design", new=True)  # in memory; a path in earnest
    >>> trial = {"query_id": "q", "system": "bm25", "variant": "", "practice": False}
    >>> store.enroll([{"participant": "p1", "group": "", "position": 1, **trial}])
    True
    >>> store.participant_of(store.token("p1")), store.participant_of("p1-guessed")
    ('p1', None)
    >>> store.finish("p1", "task-1"), store.finish("p1", "task-1")
    (True, False)
    >>> _ = store.act("p1", 1, Action("query", query="faust", rank=1, shown=("a", "b")))
    >>> _ = store.act("p1", 1, Action("save", page=1, doc_id="b"))
    >>> store.records()["saved"]["doc_id"].to_pylist()
    ['b']
    """

    engine: Engine = field(repr=False)
    where: str
    secret: str = field(repr=False)

    @classmethod
    def open(cls, where: str | Path, design: str = "", *, new: bool = False) -> Self:
        """Open a store.

        Parameters
        ----------
        where
            The path of a file of SQLite, or the address of a PostgreSQL database: ``postgresql://user@host/name``.
        design
            A hash of the design; participants who see the pages of one are not to go on with those of another. Without
            it any will do, which is enough to read.
        new
            Whether a store is made where there is none.

        Raises
        ------
        InputError
            If it cannot be opened, is no store of a study or that of another design, or is not there.
        MissingExtraError
            If SQLAlchemy is not installed.
        """
        try:
            from judged.studies import schema
        except ImportError:
            raise MissingExtraError("SQLAlchemy", "labels") from None

        def begin(connection: Connection) -> None:
            rows = {"design": design, "secret": token_urlsafe(24)}
            connection.execute(schema.about.insert(), [{"name": name, "value": value} for name, value in rows.items()])

        engine, shown = open_database(where, schema.LAYOUT, begin, new=new), without_password(where)
        with engine.connect() as connection:
            known = {row.name: row.value for row in connection.execute(schema.about.select())}
        if design and known["design"] != design:
            fix = "keep each version of a design in a store of its own"
            raise InputError("the design is not the one that these answers were given to", fix=fix, path=shown)
        return cls(engine, shown, known["secret"])

    def enroll(self, assignments: Iterable[Mapping[str, Any]], known: Container[str] | None = None) -> bool:
        """Add participants with their trials, one row a trial, those who came first first; who is there stays.

        `known`: the participants when trials were assigned. If another process has added some of the new ones since,
        add nothing and return False.
        """
        from sqlalchemy.exc import IntegrityError

        from judged.studies import schema

        known = self.participants() if known is None else known
        rows = list(assignments)
        people = {row["participant"]: row["group"] for row in rows}
        groups = list(people.values())
        numbers = (groups[:at].count(group) for at, group in enumerate(groups))
        names = schema.assignments.c.keys()
        new = [
            {"participant": to_storable("participant", who), "group": to_storable("group", group), "number": number}
            for (who, group), number in zip(people.items(), numbers, strict=True)
            if who not in known
        ]
        try:
            with self.engine.begin() as connection:
                if new:
                    connection.execute(schema.participants.insert(), new)
                add_new(connection, schema.assignments, ({name: row[name] for name in names} for row in rows))
        except IntegrityError:
            return False
        return True

    def participants(self) -> dict[str, Participant]:
        """Give the group of each participant and the number within it, by group."""
        rows = {row["participant"]: Participant(row["group"], row["number"]) for row in self._rows("participants")}
        return dict(sorted(rows.items(), key=lambda known: known[1]))

    def token(self, who: str) -> str:
        """Give the token that lets a participant in, or the observer: the same each time."""
        return f"{who}-{hmac.digest(self.secret.encode(), who.encode(), 'sha256').hex()[:24]}"

    def participant_of(self, token: str) -> str | None:
        """Tell whose token this is; None if nobody's."""
        who = token.rpartition("-")[0]
        known = hmac.compare_digest(self.token(who).encode(), token.encode("utf-8", "replace"))
        return who if known and (who == OBSERVER or who in self.participants()) else None

    def trials(self, participant: str) -> list[dict[str, Any]]:
        """Give what a participant is to do, in its order."""
        return self._rows("assignments", participant)

    def steps(self, participant: str) -> dict[str, int]:
        """Give when a participant passed each page that they passed."""
        return {row["step"]: row["at"] for row in self._rows("steps", participant)}

    def finish(
        self,
        participant: str,
        step: str,
        answers: Iterable[Mapping[str, Any]] = (),
        preferences: Iterable[Mapping[str, Any]] = (),
    ) -> bool:
        """Keep that a page was passed, and what was said there; tell whether that is new, or it was passed before."""
        from sqlalchemy.exc import IntegrityError

        from judged.studies import schema

        who, usual = {"participant": participant}, {"position": 0, "system": "", "text": "", "personal": False}
        with self.engine.begin() as connection:
            try:
                connection.execute(schema.steps.insert(), {**who, "step": step, "at": now_ms()})
            except IntegrityError:
                return False
            add_new(connection, schema.answers, ({**usual, **who, "value": None, **row} for row in answers))
            add_new(connection, schema.preferences, ({**who, **row} for row in preferences))
        return True

    def actions(self, participant: str, position: int) -> tuple[Action, ...]:
        """Give what a participant did in a trial."""
        return tuple(_action(row) for row in self._actions(participant) if row["position"] == position)

    def act(self, participant: str, position: int, action: Action) -> tuple[Action, ...]:
        """Keep what a participant does, if it is new; give all that they did in the trial."""
        from sqlalchemy.exc import IntegrityError

        from judged.studies import schema

        while True:
            before = self.actions(participant, position)
            new = added(before, action._replace(at=action.at or now_ms()))
            rows = [
                {name: to_storable(name, value) for name, value in one._asdict().items()}
                | {"participant": participant, "position": position, "number": number}
                | {"shown": None if one.shown is None else json.dumps(one.shown)}
                for number, one in enumerate(new, len(before) + 1)
            ]
            try:
                if rows:
                    with self.engine.begin() as connection:
                        connection.execute(schema.actions.insert(), rows)
            except IntegrityError:  # another tab did something at the same time
                continue
            return before + new

    def note(self, participant: str, position: int, text: str) -> None:
        """Keep what an observer wrote."""
        from judged.studies import schema

        row = {"participant": participant, "position": position, "at": now_ms(), "text": to_storable("text", text)}
        with self.engine.begin() as connection:
            connection.execute(schema.notes.insert(), row)

    def notes(self, participant: str) -> list[dict[str, Any]]:
        """Give what was written about a participant, in its order."""
        return self._rows("notes", participant)

    def records(self, *, personal: bool = False) -> StudyRecords:
        """Give all that was recorded of those who began; answers that say who somebody is only if `personal`."""
        passed = {(row["participant"], row["step"]): row["at"] for row in self._rows("steps")}
        began = {participant for participant, _ in passed}
        tables = {name: self._rows(name) for name in ("participants", "answers", "preferences", "notes")}
        tables["answers"] = [row for row in tables["answers"] if personal or not row["personal"]]
        tables["trials"] = [
            {**row, "started": at, "ended": passed.get((row["participant"], f"{SEARCH}-{row['position']}"))}
            for row in self._rows("assignments")
            if (at := passed.get((row["participant"], f"{TASK}-{row['position']}"))) is not None
        ]
        done = self._actions()
        by_trial: dict[tuple[str, int], list[Action]] = {}
        for row in done:
            by_trial.setdefault((row["participant"], row["position"]), []).append(_action(row))
        tables["saved"] = [
            {"participant": who, "position": position, "doc_id": doc_id, "grade": one.value, "at": one.at}
            for (who, position), actions in by_trial.items()
            for doc_id, one in saved(actions).items()
        ]
        tables["events"] = done + [
            {"participant": row["participant"], "position": row["position"], "action": "end", "at": row["ended"]}
            for row in tables["trials"]
            if row["ended"] is not None
        ]
        return StudyRecords.of(
            {
                name: [
                    {column: row.get(column) for column in TABLES[name].names}
                    for row in rows
                    if row["participant"] in began
                ]
                for name, rows in tables.items()
            }
        )

    def close(self) -> None:
        """Give up the connections."""
        self.engine.dispose()

    def _rows(self, name: str, participant: str | None = None) -> list[dict[str, Any]]:
        """Give the rows of a table by their key."""
        from judged.studies import schema

        table = schema.metadata.tables[name]
        chosen = table.select().order_by(*table.primary_key)
        if participant is not None:
            chosen = chosen.where(table.c.participant == participant)
        with self.engine.connect() as connection:
            return [dict(row) for row in connection.execute(chosen).mappings()]

    def _actions(self, participant: str | None = None) -> list[dict[str, Any]]:
        """Give the rows of actions, with what a result page has shown as a list."""
        rows = self._rows("actions", participant)
        return [row | {"shown": row["shown"] and tuple(json.loads(row["shown"]))} for row in rows]


def now_ms() -> int:
    """Give the time."""
    return time.time_ns() // 1_000_000


def _action(row: Mapping[str, Any]) -> Action:
    return Action(**{name: row[name] for name in Action._fields})
