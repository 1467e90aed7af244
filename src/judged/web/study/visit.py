"""Which pages a participant goes through; and who asks for one, and how far they are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from judged.errors import InputError
from judged.studies.assignment import SideBySide, side_by_side
from judged.studies.design import Design, Task, Variant
from judged.studies.lists import StudyLists, SystemLists
from judged.studies.questionnaires import Questionnaire
from judged.studies.storage import OBSERVER, SEARCH, TASK, Action, StudyStore, now_ms, open_document
from judged.web.answers import HOME, page

CONSENT, INSTRUCTION, QUESTIONS, PREFERENCE, THANKS = "consent", "instruction", "questions", "preference", "thanks"
SEE_OTHER = 303


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


@dataclass(frozen=True)
class Study:
    """What is running."""

    design: Design
    store: StudyStore
    lists: StudyLists


@dataclass(frozen=True)
class Visit:
    """A request of somebody who takes part: who it is, and how far they are."""

    request: Request
    study: Study
    participant: str
    home: str
    step: Step  # the one that they are at
    done: int
    of: int
    begun: int | None  # when the trial began, of a step that is one

    @property
    def trial(self) -> Mapping[str, Any]:
        """What is to be done in it."""
        return self.step.trial or {}

    @property
    def task(self) -> Task:
        """The task of the trial."""
        return self.study.design.task(self.trial["query_id"])

    @property
    def variant(self) -> Variant:
        """How its results are shown."""
        return self.study.design.interface(self.trial["variant"])

    @property
    def lists(self) -> SystemLists:
        """What its system finds."""
        return self.study.lists.systems[self.trial["system"]]

    @property
    def left(self) -> int | None:
        """How many seconds are left of it, 0 where it is over; None where it may take as long as it takes."""
        if self.begun is None or not self.task.minutes:
            return None
        return max(0, math.ceil(self.task.minutes * 60 - (now_ms() - self.begun) / 1000))

    @property
    def actions(self) -> tuple[Action, ...]:
        """What was done in it."""
        return self.study.store.actions(self.participant, self.step.position)

    def act(self, action: str, **facts: Any) -> tuple[Action, ...]:
        """Keep what is done in it."""
        return self.study.store.act(self.participant, self.step.position, Action(action, **facts))

    def finish(self, answers: Iterable[Mapping[str, Any]] = (), preferences: Iterable[Mapping[str, Any]] = ()) -> None:
        """Keep that the page was passed, and what was said there; a document that is open is left."""
        if self.step.kind == SEARCH and (reading := open_document(self.actions)) is not None:
            self.act("back", page=reading.page, doc_id=reading.doc_id)
        self.study.store.finish(self.participant, self.step.name, answers, preferences)

    def page(self, template: str, **values: Any) -> HTMLResponse:
        """Lay out a page."""
        design = self.study.design
        return page(self.request, template, visit=self, step=self.step, design=design, title=design.title, **values)

    def on(self) -> Response:
        """Go to the page that is next."""
        return RedirectResponse(visit(self.request, self.request.path_params["token"]).address(), SEE_OTHER)

    def address(self, more: str = "") -> str:
        """Give the address of the page, or of one below it."""
        return f"{self.home}/{self.step.name}{more}"


def visit(request: Request, token: str) -> Visit:
    """Find out who asks, and where they are."""
    study: Study = request.app.state.study
    participant = study.store.participant_of(token)
    known = study.store.participants().get(participant or "")
    if participant is None or known is None:
        raise InputError("this link leads to nobody's pages", fix="ask whoever sent it for a new one")
    home = request.scope[HOME] = f"/s/{token}"
    every = steps(study.design, known.number, study.store.trials(participant))
    passed = study.store.steps(participant)
    done, step = next((at, step) for at, step in enumerate(every) if step.name not in passed or step.kind == THANKS)
    return Visit(request, study, participant, home, step, done, len(every) - 1, passed.get(f"{TASK}-{step.position}"))


def observer(request: Request, token: str) -> StudyStore:
    """Let an observer in, and nobody else."""
    store: StudyStore = request.app.state.study.store
    if store.participant_of(token) != OBSERVER:
        raise InputError("this link is no observer's", fix="ask whoever sent it for a new one")
    if (who := request.path_params.get("participant")) is not None and who not in store.participants():
        raise InputError(f"no participant {who!r}", fix="choose one of the list")
    request.scope[HOME] = f"/observe/{token}"
    return store


Visited = Annotated[Visit, Depends(visit)]
"""Somebody who takes part: what routes take as an argument."""
Observed = Annotated[StudyStore, Depends(observer)]
"""The store, for an observer."""
