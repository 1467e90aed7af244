"""Check of a study design: files, balance, and duration for a participant."""

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
from judged.results.blocks import Note, first_few
from judged.studies.assignment import Balance, assignments, balance, block_sizes
from judged.studies.design import Design

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.results import Block
    from judged.studies.design import StudySystem

ITEMS_A_MINUTE = 8
"""Assumed number of questionnaire items with values that a participant answers per minute. A text answer, and a
comparison of two lists, are assumed to take a minute each."""
_DESCRIPTIONS = {
    "systems": "each system at each position",
    "topics": "each topic with each system",
    "positions": "each topic at each position",
    "followers": "each system directly after each other system",
    "persons": "each system with each participant",
}


@dataclass(frozen=True, eq=False, repr=False)
class DesignCheck(Answer):
    """Result of `check_design`.

    Attributes
    ----------
    design : Design
    balances : dict of str to tuple of Balance
        Frequencies of combinations over the participants of each group.
    minutes : float
        Maximum duration for one participant: tasks with a limit, questionnaires, and preferences.
    notes : tuple of Note
        Errors for missing data; warnings for unbalanced assignments and missing judgments.
    """

    kind: ClassVar[str] = "study-check"

    design: Design
    balances: dict[str, tuple[Balance, ...]]
    minutes: float
    notes: tuple[Note, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether the study can be run: no note is an error."""
        return all(note.severity != "error" for note in self.notes)

    @property
    def title(self) -> str:
        """Name of the design."""
        return f"Design: {self.design.title}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Tasks and duration for a participant, and the number of participants for a balanced study."""
        design, (for_systems, for_topics) = self.design, block_sizes(self.design)
        unlimited = sum(not task.minutes for task in (*design.practice, *design.tasks))
        people = sum(group.participants for group in design.groups)
        several = " in each group" if len(design.groups) > 1 else ""
        practice = f", after {counted(len(design.practice), 'practice task')}" if design.practice else ""
        no_limit = f", plus {counted(unlimited, 'task')} without a time limit" if unlimited else ""
        nouns = ("system",) if len(design.conditions) == len(design.systems) else ("variant", "variants of systems")
        work = f"{counted(len(design.tasks), 'task')} with {counted(len(design.conditions), *nouns)}{practice}"
        systems = (
            f"The order of systems is balanced if the number of participants{several} is a multiple of {for_systems}"
        )
        return (
            f"Each of {counted(people, 'participant')} does {work}: at most {self.minutes:.0f} minutes{no_limit}.",
            (
                f"{systems}. The positions of topics are balanced if the number of participants{several} is a"
                f" multiple of {for_topics}."
            ),
            "The study can run." if self.ready else "The study cannot run yet, because data is missing.",
        )

    def blocks(self) -> tuple[Block, ...]:
        """Return the sentences and the table of balances."""
        rows = [(group, row) for group, balances in self.balances.items() for row in balances]
        columns = [
            Column("combination", [_DESCRIPTIONS[row.kind] for _, row in rows], TEXT),
            *columns_of(
                [row for _, row in rows], ("min_count", COUNT, "minimum count"), ("max_count", COUNT, "maximum count")
            ),
            Column("balanced", [row.min_count == row.max_count for _, row in rows], YES_NO),
        ]
        if len(self.balances) > 1:
            columns.insert(0, Column("group", [group for group, _ in rows], TEXT))
        return (Sentences(self.sentences), Table("balance", tuple(columns), labels=len(columns) - 3))

    def facts(self) -> dict[str, Any]:
        """Return the metadata: duration, and numbers of participants for a balanced study."""
        for_systems, for_topics = block_sizes(self.design)
        return {"ready": self.ready, "minutes": self.minutes, "block_systems": for_systems, "block": for_topics}


def check_design(design: Design) -> DesignCheck:
    """Check the files of a design, the balance of its assignments, and the duration for a participant.

    Examples
    --------
    >>> from judged.studies.design import first_design, parse_design
    >>> check = check_design(parse_design(first_design()))
    >>> check.ready, check.minutes
    (True, 37.625)
    """
    table = assignments(design)
    groups = table["group"].to_pylist()
    balances = {
        group.name: balance(design, table.filter([name == group.name for name in groups])) for group in design.groups
    }
    notes = [*_balance_notes(design, balances), *_missing_data_notes(design)]
    return DesignCheck(design, balances, _minutes(design), tuple(notes))


def _minutes(design: Design) -> float:
    tasks = (*design.practice, *design.tasks)
    repetitions = {"task": len(tasks), "system": len(design.conditions), "end": 1}
    questionnaires = sum(
        repetitions[str(form.after)] * (1.0 if item.open else 1.0 / ITEMS_A_MINUTE)
        for form in design.questionnaires
        for item in form.items
    )
    return math.fsum(task.minutes for task in tasks) + questionnaires + len(design.preference)


def _balance_notes(design: Design, balances: dict[str, tuple[Balance, ...]]) -> Iterator[Note]:
    conditions, topics = len(design.conditions), len(design.tasks)
    if remainder := topics % conditions:
        fix = f"use {topics - remainder} or {topics + conditions - remainder}"
        noun = "systems" if conditions == len(design.systems) else "combinations of system and variant"
        text = f"{topics} topics cannot be divided equally among {conditions} {noun}. Fix: {fix} topics"
        yield Note("uneven-topics", text)
    for_systems, for_topics = block_sizes(design)
    for group, rows in balances.items():
        planned = next(row.participants for row in design.groups if row.name == group)
        # Persons are unbalanced if topics are no multiple of systems, which has its own note.
        unbalanced = {row.kind for row in rows if row.min_count != row.max_count} - {"persons"}
        if planned % for_topics and unbalanced:
            step = for_topics if unbalanced == {"positions"} else for_systems
            less, more = planned - planned % step, planned - planned % step + step
            fix = f"use {less} or {more} participants" if less else f"use {more} participants"
            combinations = listed([_DESCRIPTIONS[kind] for kind in sorted(unbalanced)])
            text = (
                f"with {counted(planned, 'participant')}, these combinations do not occur equally often:"
                f" {combinations}. Fix: {fix}"
            )
            yield Note("uneven-participants", text, group, of="groups")


def _missing_data_notes(design: Design) -> Iterator[Note]:
    """Yield a note for each missing file, and for missing results, texts, and judgments of topics."""
    topics = {task.topic for task in (*design.practice, *design.tasks, *design.preference)}
    for system in design.systems:
        try:
            yield from _missing_system_data(design, system, topics)
        except InputError as error:
            yield Note("unreadable", str(error), system.name, severity="error", of="systems")
    if design.qrels:
        try:
            judged = set(Qrels.read(design.file(design.qrels)).topics)
        except InputError as error:
            yield Note("unreadable", str(error), severity="error")
        else:
            if unjudged := sorted(topics - judged):
                count = counted(len(unjudged), "topic has", "topics have")
                text = f"{count} no judgments, so their effectiveness is unknown: {first_few(unjudged)}"
                yield Note("missing-judgments", text)


def _missing_system_data(design: Design, system: StudySystem, topics: set[str]) -> Iterator[Note]:
    if not system.run:
        # Results of an engine are unknown before the study: check that its files can be read.
        if system.endpoint:
            Http().build({}, {"file": str(design.file(system.endpoint))}, Path())
        Texts.read(design.file(system.texts), ())
        return
    table = Run.read(design.file(system.run)).table
    results = [
        (topic, doc)
        for topic, doc in zip(table["query_id"].to_pylist(), table["doc_id"].to_pylist(), strict=True)
        if topic in topics
    ]
    if missing := sorted(topics - {topic for topic, _ in results}):
        text = f"{system.run} has no results for {listed(missing[:5])}. Fix: remove these topics, or add results"
        yield Note("missing-topics", text, system.name, len(missing), severity="error", of="systems")
    doc_ids = {doc for _, doc in results}
    texts = Texts.read(design.file(system.texts), doc_ids)
    if textless := [doc for doc in sorted(doc_ids) if doc not in texts]:
        count = f"{len(textless)} of {len(doc_ids)} documents"
        text = f"{system.texts} has no text for {count}, such as {textless[0]}. Fix: add their texts"
        yield Note("missing-texts", text, system.name, len(textless), severity="error", of="systems")
