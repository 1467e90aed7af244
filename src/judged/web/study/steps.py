"""Which pages a participant goes through, and which comes next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.studies.assignment import side_by_side
from judged.studies.storage import SEARCH, TASK

if TYPE_CHECKING:
    from judged.studies.assignment import SideBySide
    from judged.studies.design import Design
    from judged.studies.questionnaires import Questionnaire

CONSENT, INSTRUCTION, QUESTIONS, PREFERENCE, THANKS = "consent", "instruction", "questions", "preference", "thanks"


@dataclass(frozen=True)
class Step:
    """A page that is passed once."""

    name: str  # in addresses and in the store; it says nothing of systems
    kind: str
    position: int = 0  # of the trial; 0: of none
    trial: Mapping[str, Any] | None = None
    system: str = ""  # that is asked about
    questionnaire: Questionnaire | None = None
    pair: SideBySide | None = None


def steps(design: Design, number: int, trials: Sequence[Mapping[str, Any]]) -> tuple[Step, ...]:
    """Give the pages of a participant in their order; the last one has no end.

    `number` is the participant's within the group, from 0. A questionnaire about a system comes after the last task
    with it, practice aside.
    """
    made = [Step(CONSENT, CONSENT)] if design.consent or design.personal else []
    made += [Step(INSTRUCTION, INSTRUCTION)]
    last = {trial["system"]: trial["position"] for trial in trials if not trial["practice"]}
    asked = {when: [one for one in design.questionnaires if one.after == when] for when in ("task", "system", "end")}
    for trial in trials:
        position, system = trial["position"], trial["system"]
        made += [Step(f"{kind}-{position}", kind, position, trial) for kind in (TASK, SEARCH)]
        if not trial["practice"]:
            made += [
                Step(f"{QUESTIONS}-{position}-{one.name}", QUESTIONS, position, trial, system, one)
                for one in asked["task"]
            ]
        if last.get(system) == position:
            made += [
                Step(f"{QUESTIONS}-{position}-{one.name}", QUESTIONS, 0, None, system, one) for one in asked["system"]
            ]
    for at, pair in enumerate(side_by_side(design, number), 1):
        made.append(Step(f"{PREFERENCE}-{at}", PREFERENCE, pair=pair))
    made += [Step(f"{QUESTIONS}-{one.name}", QUESTIONS, questionnaire=one) for one in asked["end"]]
    return (*made, Step(THANKS, THANKS))
