"""Storage of a running study in SQLite or PostgreSQL. Rows are added, never changed."""

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
from judged.studies.records import TABLES, StudyRecords, weights_by_page

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

TASK, SEARCH = "task", "search"
"""Pages of a trial. The page ``task-3`` has the instruction of the trial at position 3."""
OBSERVER = "observer"
"""User name of the observer, who writes the notes."""


class Action(NamedTuple):
    """Action of a participant in a trial: a row of the table events of `StudyRecords`."""

    action: str
    page: int = 0
    query: str | None = None
    doc_id: str | None = None
    rank: int | None = None
    value: float | None = None
    shown: tuple[str, ...] | None = None
    time: int = 0
    weights: Mapping[str, float] | None = None  # of the terms of the query; None if they cannot be set


class Participant(NamedTuple):
    """Group of a participant, and index within the group."""

    group: str
    number: int  # from 0


def find_results_page(actions: Sequence[Action], page: int | None = None) -> Action | None:
    """Return the action of a result page by its number, or of the last page; None if it does not exist."""
    queries = (action for action in reversed(actions) if action.action == "query")
    return next((query for query in queries if page in {None, query.page}), None)


def find_open_document(actions: Sequence[Action]) -> Action | None:
    """Return the click that opened the document that is still open; None if no document is open."""
    last = next((action for action in reversed(actions) if action.action in {"query", "click", "back"}), None)
    return last if last is not None and last.action == "click" else None


def saved_documents(actions: Iterable[Action]) -> dict[str, Action]:
    """Return the documents that are saved after these actions, each with the action that saved it.

    >>> list(saved_documents([Action("save", doc_id="a"), Action("save", doc_id="b"), Action("unsave", doc_id="a")]))
    ['b']
    """
    documents: dict[str, Action] = {}
    for action in actions:
        if action.action == "save":
            documents[str(action.doc_id)] = action
        elif action.action == "unsave":
            documents.pop(str(action.doc_id), None)
    return documents


def new_actions(before: Sequence[Action], new: Action) -> tuple[Action, ...]:
    """Return the actions to add to a trial for a new action; empty if a page was reloaded or a form was resubmitted.

    A result page closes the document that is open. If the last result page is displayed again with the same weights,
    it is not added again.

    >>> query = Action("query", query="faust", rank=1, shown=("a", "b"), time=0)
    >>> before = new_actions((), query)
    >>> before += new_actions(before, Action("click", page=1, doc_id="b", rank=2, time=1000))
    >>> [(action.action, action.page, action.value) for action in new_actions(before, query._replace(time=5000))]
    [('back', 1, 4.0)]
    >>> new_actions(before, before[-1])
    ()
    """
    # Clocks can be set back, and equal times would have no order.
    new = new._replace(time=max(new.time, before[-1].time + 1 if before else 0))
    page, click = find_results_page(before), find_open_document(before)
    is_same_document = click is not None and (click.page, click.doc_id) == (new.page, new.doc_id)
    if new.action == "back":
        if click is None or not is_same_document:
            return ()
        # The browser reports the visible time, which cannot exceed the time since the click.
        seconds = (new.time - click.time) / 1000
        return (new._replace(rank=click.rank, value=seconds if new.value is None else min(new.value, seconds)),)
    if new.action == "query":
        back = click and Action("back", click.page, doc_id=click.doc_id, time=new.time)
        closing = new_actions(before, back) if back else ()
        last = page and (page.query, page.rank, page.shown, page.weights)
        if last == (new.query, new.rank, new.shown, new.weights):
            return closing
        return (*closing, new._replace(page=1 if page is None else page.page + 1, time=new.time + len(closing)))
    if new.action == "click":
        return () if is_same_document else (new,)
    saved = saved_documents(before).get(str(new.doc_id))
    if new.action == "unsave":
        return () if saved is None else (new,)
    return () if saved is not None and saved.value == new.value else (new,)


@dataclass(frozen=True, eq=False)
class StudyStore:
    """Participants with their assignments, answers, and actions. Open a store with `StudyStore.open`.

    Data is durable when `complete_step` or `record_action` returns; a repeated call changes nothing.

    Examples
    --------
    >>> store = StudyStore.open("sqlite://", "design", new=True)  # in memory; usually a path
    >>> trial = {"query_id": "q", "system": "bm25", "variant": "", "practice": False}
    >>> store.enroll([{"participant": "p1", "group": "", "position": 1, **trial}])
    True
    >>> store.find_participant(store.token("p1")), store.find_participant("p1-guessed")
    ('p1', None)
    >>> store.complete_step("p1", "task-1"), store.complete_step("p1", "task-1")
    (True, False)
    >>> _ = store.record_action("p1", 1, Action("query", query="faust", rank=1, shown=("a", "b")))
    >>> _ = store.record_action("p1", 1, Action("save", page=1, doc_id="b"))
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
            Path of an SQLite file, or address of a PostgreSQL database: ``postgresql://user@host/name``.
        design
            Hash of the design, because participants must not continue with the pages of another design. Default: any
            design, to read a store.
        new
            Whether to create a missing store.

        Raises
        ------
        InputError
            If the store cannot be opened, is missing, is not a study, or belongs to another design.
        MissingExtraError
            If SQLAlchemy is not installed.
        """
        try:
            from judged.studies import schema
        except ImportError:
            raise MissingExtraError("SQLAlchemy", "labels") from None

        def initialize(connection: Connection) -> None:
            rows = {"design": design, "secret": token_urlsafe(24)}
            connection.execute(schema.about.insert(), [{"name": name, "value": value} for name, value in rows.items()])

        engine, address = open_database(where, schema.LAYOUT, initialize, new=new), without_password(where)
        with engine.connect() as connection:
            facts = {row.name: row.value for row in connection.execute(schema.about.select())}
        if design and facts["design"] != design:
            fix = "use a separate database (--store) for each version of a design"
            raise InputError("the database contains answers for another version of the design", fix=fix, path=address)
        return cls(engine, address, facts["secret"])

    def enroll(self, assignments: Iterable[Mapping[str, Any]], enrolled: Container[str] | None = None) -> bool:
        """Add new participants with their trials, one row per trial, in the order of enrollment.

        `enrolled`: the participants when trials were assigned. If another process has since added one of the new ones,
        add nothing and return False.
        """
        from sqlalchemy.exc import IntegrityError

        from judged.studies import schema

        enrolled = self.participants() if enrolled is None else enrolled
        rows = list(assignments)
        people = {row["participant"]: row["group"] for row in rows}
        groups = list(people.values())
        # The index of a participant counts earlier participants of the same group.
        numbers = (groups[:i].count(group) for i, group in enumerate(groups))
        names = schema.assignments.c.keys()
        new = [
            {
                "participant": to_storable("participant", participant),
                "group": to_storable("group", group),
                "number": number,
            }
            for (participant, group), number in zip(people.items(), numbers, strict=True)
            if participant not in enrolled
        ]
        # The key of participants rejects a name that another process added in the meantime.
        try:
            with self.engine.begin() as connection:
                if new:
                    connection.execute(schema.participants.insert(), new)
                add_new(connection, schema.assignments, ({name: row[name] for name in names} for row in rows))
        except IntegrityError:
            return False
        return True

    def participants(self) -> dict[str, Participant]:
        """Return the group and index of each participant, sorted by group."""
        rows = {row["participant"]: Participant(row["group"], row["number"]) for row in self._rows("participants")}
        return dict(sorted(rows.items(), key=lambda row: row[1]))

    def token(self, user: str) -> str:
        """Return the token in the link of a participant or observer; it never changes."""
        # A keyed hash needs no table of tokens, and stays the same after a restart.
        return f"{user}-{hmac.digest(self.secret.encode(), user.encode(), 'sha256').hex()[:24]}"

    def find_participant(self, token: str) -> str | None:
        """Return the participant (or `OBSERVER`) of a token; None if the token is invalid."""
        user = token.rpartition("-")[0]
        # Constant time, so that a token cannot be guessed byte by byte.
        is_valid = hmac.compare_digest(self.token(user).encode(), token.encode("utf-8", "replace"))
        return user if is_valid and (user == OBSERVER or user in self.participants()) else None

    def trials(self, participant: str) -> list[dict[str, Any]]:
        """Return the assigned trials of a participant in their order."""
        return self._rows("assignments", participant)

    def steps(self, participant: str) -> dict[str, int]:
        """Return the completed pages of a participant, with their times in milliseconds."""
        return {row["step"]: row["time"] for row in self._rows("steps", participant)}

    def complete_step(
        self,
        participant: str,
        step: str,
        answers: Iterable[Mapping[str, Any]] = (),
        preferences: Iterable[Mapping[str, Any]] = (),
    ) -> bool:
        """Save a completed page with its answers; return False, and save nothing, if it was completed before."""
        from sqlalchemy.exc import IntegrityError

        from judged.studies import schema

        key, defaults = {"participant": participant}, {"position": 0, "system": "", "text": "", "personal": False}
        with self.engine.begin() as connection:
            try:
                connection.execute(schema.steps.insert(), {**key, "step": step, "time": now_ms()})
            except IntegrityError:
                return False
            add_new(connection, schema.answers, ({**defaults, **key, "value": None, **row} for row in answers))
            add_new(connection, schema.preferences, ({**key, **row} for row in preferences))
        return True

    def actions(self, participant: str, position: int) -> tuple[Action, ...]:
        """Return the actions of a participant in a trial."""
        return tuple(_action(row) for row in self._actions(participant) if row["position"] == position)

    def record_action(self, participant: str, position: int, action: Action) -> tuple[Action, ...]:
        """Save an action of a participant if it is new; return all actions in the trial."""
        from sqlalchemy.exc import IntegrityError

        from judged.studies import schema

        while True:
            before = self.actions(participant, position)
            new = new_actions(before, action._replace(time=action.time or now_ms()))
            key = {"participant": participant, "position": position}
            rows = [
                {name: to_storable(name, value) for name, value in row._asdict().items() if name != "weights"}
                | {**key, "number": number, "shown": None if row.shown is None else json.dumps(row.shown)}
                for number, row in enumerate(new, len(before) + 1)
            ]
            weights = [
                {**key, "page": row.page, "term": term, "weight": weight}
                for row in new
                for term, weight in (row.weights or {}).items()
            ]
            try:
                if rows:
                    with self.engine.begin() as connection:
                        connection.execute(schema.actions.insert(), rows)
                        add_new(connection, schema.weights, weights)
            except IntegrityError:  # another tab added an action with this number: read again, and retry
                continue
            return before + new

    def add_note(self, participant: str, position: int, text: str) -> None:
        """Save a note of the observer."""
        from judged.studies import schema

        row = {"participant": participant, "position": position, "time": now_ms(), "text": to_storable("text", text)}
        with self.engine.begin() as connection:
            connection.execute(schema.notes.insert(), row)

    def notes(self, participant: str) -> list[dict[str, Any]]:
        """Return the notes about a participant in their order."""
        return self._rows("notes", participant)

    def records(self, *, personal: bool = False) -> StudyRecords:
        """Return the records of all participants who started; personal answers only if `personal`."""
        completed = {(row["participant"], row["step"]): row["time"] for row in self._rows("steps")}
        started = {participant for participant, _ in completed}
        tables = {name: self._rows(name) for name in ("participants", "answers", "preferences", "notes", "weights")}
        tables["answers"] = [row for row in tables["answers"] if personal or not row["personal"]]
        # A trial starts when its task page is completed, and ends when its search page is.
        tables["trials"] = [
            {**row, "started": time_ms, "ended": completed.get((row["participant"], f"{SEARCH}-{row['position']}"))}
            for row in self._rows("assignments")
            if (time_ms := completed.get((row["participant"], f"{TASK}-{row['position']}"))) is not None
        ]
        events = self._actions()
        by_trial: dict[tuple[str, int], list[Action]] = {}
        for row in events:
            by_trial.setdefault((row["participant"], row["position"]), []).append(_action(row))
        tables["saved"] = [
            {"participant": participant, "position": position, "doc_id": doc_id, "grade": save.value, "time": save.time}
            for (participant, position), actions in by_trial.items()
            for doc_id, save in saved_documents(actions).items()
        ]
        tables["events"] = events + [
            {"participant": row["participant"], "position": row["position"], "action": "end", "time": row["ended"]}
            for row in tables["trials"]
            if row["ended"] is not None
        ]
        return StudyRecords.of(
            {
                name: [
                    {column: row.get(column) for column in TABLES[name].names}
                    for row in rows
                    if row["participant"] in started
                ]
                for name, rows in tables.items()
            }
        )

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def _rows(self, name: str, participant: str | None = None) -> list[dict[str, Any]]:
        from judged.studies import schema

        table = schema.metadata.tables[name]
        query = table.select().order_by(*table.primary_key)
        if participant is not None:
            query = query.where(table.c.participant == participant)
        with self.engine.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def _actions(self, participant: str | None = None) -> list[dict[str, Any]]:
        rows = self._rows("actions", participant)
        weights = weights_by_page(self._rows("weights", participant))  # after the actions, so that none is missing
        return [
            row
            | {"shown": row["shown"] and tuple(json.loads(row["shown"]))}
            | {"weights": weights.get((row["participant"], row["position"], row["page"]))}
            for row in rows
        ]


def now_ms() -> int:
    """Return the current time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def _action(row: Mapping[str, Any]) -> Action:
    return Action(**{name: row[name] for name in Action._fields})
