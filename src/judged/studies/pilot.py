"""How much an outcome varies from person to person and from topic to topic, from the records of a pilot."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from judged.data.qrels import Qrels
from judged.errors import InputError
from judged.results.notes import Note
from judged.studies.effects import parts
from judged.studies.outcomes import outcome_of, outcomes
from judged.studies.planning import Spreads

if TYPE_CHECKING:
    from judged.studies.design import Design
    from judged.studies.records import StudyRecords

_NONE = 0.01  # of the spread of single trials: what is smaller is no more than chance
_FEW = 8  # people or topics: with fewer a pilot says little of how much they vary


def pilot_spreads(records: StudyRecords, design: Design, outcome: str) -> tuple[Spreads, tuple[Note, ...]]:
    """Estimate how much an outcome varies, by a mixed model, and say what the estimate is worth.

    Parameters
    ----------
    records, design
        Of the pilot; practice does not count.
    outcome
        An outcome of single trials, such as ``minutes``, ``saved``, or a questionnaire that is asked after each task.

    Raises
    ------
    InputError
        If there is no such outcome, or too few trials have one.
    """
    qrels = Qrels.of(design.file(design.qrels)) if design.qrels else None
    chosen = outcome_of(outcomes(records, design, qrels=qrels), outcome)
    if (found := parts(chosen, by="system" if len(design.systems) > 1 else "variant")) is None:
        problem = f"the pilot has too few trials to part {outcome}, or people and topics explain all of it"
        raise InputError(problem, fix="take more people and topics, or state what you expect", path=records.where)
    people, topics = (len({getattr(one, name) for one in chosen.values}) for name in ("participant", "query_id"))
    notes: list[Note] = []
    if min(people, topics) < _FEW:
        text = f"a pilot of {people} people and {topics} topics says little of how much they vary"
        notes.append(Note("small-pilot", f"{text}: plan with larger spreads too"))
    sds = {
        "people": found.by_person, "people_by_system": found.people_by_system,
        "topics_by_system": found.topics_by_system, "trials": found.trials,
    }  # fmt: skip
    for name, sd in sds.items():
        if sd < _NONE * found.trials:
            sds[name] = 0.0
            notes.append(Note("no-spread", f"{name.replace('_', ' ')}: no more than chance, taken as 0"))
    # where each has one system only, what it is to people is part of what they are
    return Spreads(**{name: 0.0 if math.isnan(sd) else sd for name, sd in sds.items()}), tuple(notes)
