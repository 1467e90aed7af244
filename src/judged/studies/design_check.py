"""Whether a design can be run: its files, what its order balances, and how long it takes a participant."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.data.texts import Texts
from judged.errors import InputError
from judged.pipelines.experiments.engines.external import Http
from judged.results import COUNT, TEXT, YES_NO, Answer, Column, Sentences, Table, columns_of, counted, listed
from judged.results.blocks import Note
from judged.studies.assignment import Balance, assignments, balance, blocks
from judged.studies.design import Design

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.results import Block
    from judged.studies.design import System

ITEMS_A_MINUTE = 8
"""Of questionnaires, as people answer items with values: an assumption; an item in one's own words, and two lists side
by side, are taken as a minute each."""
_WORDS = {
    "systems": "each system at each position",
    "topics": "each topic with each system",
    "positions": "each topic at each position",
    "followers": "each system right after each other one",
    "persons": "each system with each person",
}


@dataclass(frozen=True, eq=False, repr=False)
class DesignCheck(Answer):
    """What `check_design` returns.

    Attributes
    ----------
    design : Design
    balances : dict of str to tuple of Balance
        What comes equally often over the participants of each group.
    minutes : float
        That one participant takes, for tasks with a limit, questionnaires and preferences.
    notes : tuple of Note
        What is missing (errors), and what is not balanced or cannot be told (warnings).
    """

    kind: ClassVar[str] = "study-check"

    design: Design
    balances: dict[str, tuple[Balance, ...]]
    minutes: float
    notes: tuple[Note, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether nothing is missing."""
        return all(note.severity != "error" for note in self.notes)

    @property
    def title(self) -> str:
        """What is checked."""
        return f"Design: {self.design.title}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a participant does, how long it takes, and how many participants it takes to be balanced."""
        design, (systems, everything) = self.design, blocks(self.design)
        unlimited = sum(not task.minutes for task in (*design.practice, *design.tasks))
        people = sum(group.participants for group in design.groups)
        several = " of each group" if len(design.groups) > 1 else ""
        practice = f", after {counted(len(design.practice), 'task')} for practice" if design.practice else ""
        besides = f", and {counted(unlimited, 'task')} without a limit" if unlimited else ""
        thing = ("system",) if len(design.conditions) == len(design.systems) else ("variant", "variants of systems")
        work = f"{counted(len(design.tasks), 'task')} with {counted(len(design.conditions), *thing)}{practice}"
        return (
            f"Each of {counted(people, 'participant')} does {work}: at most {self.minutes:.0f} minutes{besides}.",
            f"Systems are balanced with every {systems} people{several}, the places of topics with every {everything}.",
            "It can be run." if self.ready else "It cannot be run yet: something is missing.",
        )

    def blocks(self) -> tuple[Block, ...]:
        """Give what a participant does, and what is balanced."""
        rows = [(group, one) for group, balances in self.balances.items() for one in balances]
        columns = [
            Column("what", [_WORDS[one.what] for _, one in rows], TEXT, title="comes equally often"),
            *columns_of([one for _, one in rows], ("least", COUNT, "at least"), ("most", COUNT, "at most")),
            Column("balanced", [one.least == one.most for _, one in rows], YES_NO),
        ]
        if len(self.balances) > 1:
            columns.insert(0, Column("group", [group for group, _ in rows], TEXT))
        return (Sentences(self.sentences), Table("balance", tuple(columns), labels=len(columns) - 3))

    def facts(self) -> dict[str, Any]:
        """Give how many participants it takes, and how long."""
        systems, everything = blocks(self.design)
        return {"ready": self.ready, "minutes": self.minutes, "block_systems": systems, "block": everything}


def check_design(design: Design) -> DesignCheck:
    """Check that files are there and hold what the design needs, what is balanced, and how long it takes.

    Examples
    --------
    >>> from judged.studies.design import first_design, parse_design
    >>> found = check_design(parse_design(first_design()))
    >>> found.ready, found.minutes
    (True, 37.625)
    """
    table = assignments(design)
    groups = table["group"].to_pylist()
    balances = {
        group.name: balance(design, table.filter([name == group.name for name in groups])) for group in design.groups
    }
    notes = [*_uneven(design, balances), *_missing(design)]
    return DesignCheck(design, balances, _minutes(design), tuple(notes))


def _minutes(design: Design) -> float:
    """Add up the limits of tasks, and what questions are taken to take."""
    tasks = (*design.practice, *design.tasks)
    times = {"task": len(tasks), "system": len(design.conditions), "end": 1}
    asked = sum(
        times[str(one.after)] * (1.0 if item.open else 1.0 / ITEMS_A_MINUTE)
        for one in design.questionnaires
        for item in one.items
    )
    return math.fsum(task.minutes for task in tasks) + asked + len(design.preference)


def _uneven(design: Design, balances: dict[str, tuple[Balance, ...]]) -> Iterator[Note]:
    """Say what is not balanced with these numbers, and what would be."""
    conditions, topics = len(design.conditions), len(design.tasks)
    if rest := topics % conditions:
        fix = f"use {topics - rest} or {topics + conditions - rest}"
        text = f"{topics} topics are no multiple of {conditions} systems, so no person has all equally often: {fix}"
        yield Note("uneven-topics", text)
    systems, everything = blocks(design)
    for group, found in balances.items():
        planned = next(one.participants for one in design.groups if one.name == group)
        uneven = {one.what for one in found if one.least != one.most} - {"persons"}
        if planned % everything and uneven:
            step = everything if uneven == {"positions"} else systems
            less, more = planned - planned % step, planned - planned % step + step
            fix = f"take {less} or {more}" if less else f"take {more}"
            what = listed([_WORDS[what] for what in sorted(uneven)])
            yield Note(
                "uneven-participants", f"{planned} participants do not balance {what}: {fix}", group, of="groups"
            )


def _missing(design: Design) -> Iterator[Note]:
    """Say what is not there: files, results for topics, texts of documents, judgments."""
    topics = {task.topic for task in (*design.practice, *design.tasks, *design.preference)}
    for system in design.systems:
        try:
            yield from _missing_of(design, system, topics)
        except InputError as error:
            yield Note("unreadable", str(error), system.name, severity="error", of="systems")
    if design.qrels:
        try:
            judged = set(Qrels.read(design.file(design.qrels)).topics)
        except InputError as error:
            yield Note("unreadable", str(error), severity="error")
        else:
            if lacking := sorted(topics - judged):
                yield Note(
                    "missing-judgments", f"no judgments for {listed(lacking[:5])}: effectiveness is not told there"
                )


def _missing_of(design: Design, system: System, topics: set[str]) -> Iterator[Note]:
    if system.endpoint:
        Http().build({}, {"file": str(design.file(system.endpoint))}, Path())
        Texts.read(design.file(system.texts), ())
        return
    table = Run.read(design.file(system.run)).table
    shown = [
        (topic, doc)
        for topic, doc in zip(table["query_id"].to_pylist(), table["doc_id"].to_pylist(), strict=True)
        if topic in topics
    ]
    if lacking := sorted(topics - {topic for topic, _ in shown}):
        text = f"{system.run} has no result for {listed(lacking[:5])}: leave these topics out, or search them"
        yield Note("missing-topics", text, system.name, len(lacking), severity="error", of="systems")
    wanted = {doc for _, doc in shown}
    texts = Texts.read(design.file(system.texts), wanted)
    if without := [doc for doc in sorted(wanted) if doc not in texts]:
        text = f"{system.texts} lacks {len(without)} of {len(wanted)} documents, such as {without[0]}: add their texts"
        yield Note("missing-texts", text, system.name, len(without), severity="error", of="systems")
