"""The pages of a study. Whoever has a participant's token sees their pages, in their order, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, FastAPI, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, Field

import judged
from judged.data.texts import shorten
from judged.errors import InputError
from judged.interface.pages.answers import HOME_PATH, page
from judged.interface.pages.filters import split_at_matches
from judged.interface.pages.guard import Rules, configure_app
from judged.interface.pages.problems import Parameters, Text
from judged.studies.assignment import SideBySide, side_by_side
from judged.studies.design import Design, Task, Variant
from judged.studies.questionnaires import Questionnaire
from judged.studies.records import Hits, StudyLists, SystemLists
from judged.studies.storage import OBSERVER, SEARCH, TASK, Action, StudyStore, now_ms, open_document, page_of, saved

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
    home = request.scope[HOME_PATH] = f"/s/{token}"
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
    request.scope[HOME_PATH] = f"/observe/{token}"
    return store


Visited = Annotated[Visit, Depends(visit)]
"""Somebody who takes part: what routes take as an argument."""
Observed = Annotated[StudyStore, Depends(observer)]
"""The store, for an observer."""


router = APIRouter(include_in_schema=False)
participants = APIRouter(prefix="/s/{token}", include_in_schema=False)
observers = APIRouter(prefix="/observe/{token}", include_in_schema=False)
_Id = Annotated[str, Field(max_length=8192)]


def make_study_app(study: Study, rules: Rules | None = None) -> FastAPI:
    """Make the pages of a study; who has no token sees none of them."""
    app = FastAPI(title=study.design.title, version=judged.__version__, openapi_url=None, docs_url=None, redoc_url=None)
    app.state.study = study
    return configure_app(app, (router, participants, observers), rules or Rules())


async def sent(request: Request) -> dict[str, str]:
    """Read the fields of a form that each design has its own of."""
    return {key: value for key, value in (await request.form()).items() if isinstance(value, str)}


Sent = Annotated[dict[str, str], Depends(sent)]


class AskedResults(Parameters):
    """Which results."""

    q: Text | None = Field(None, max_length=1000)
    first: int | None = Field(None, ge=1, le=10_000)


class AskedDocument(Parameters):
    """Which document of which page."""

    page: int = Field(ge=1, le=100_000)
    id: _Id


class Acted(AskedDocument):
    """What is done with a document."""

    action: Literal["save", "unsave", "back"]
    seconds: float | None = Field(None, ge=0, le=1e6, allow_inf_nan=False)
    then: Literal["results", "document"] = "results"


class Noted(BaseModel):
    """What an observer writes."""

    text: Text = Field(min_length=1, max_length=10_000, pattern=r"\S")


@router.get("/")
def nobody() -> Response:
    """Show nothing to whoever has no link."""
    raise InputError("the pages of this study open by a link of one's own", fix="open the link that you were sent")


@participants.get("")
def begin(here: Visited) -> Response:
    """Go on where somebody stopped."""
    return RedirectResponse(here.address(), SEE_OTHER)


@participants.get("/{name}")
def show(here: Visited, name: str, asked: Annotated[AskedResults, Query()]) -> Response:
    """Show the page that is next, whichever was asked for."""
    step, design, sides = here.step, here.study.design, dict[str, Any]()
    if name != step.name:
        return here.on()
    if step.kind == SEARCH:
        return _results(here, asked)
    if step.pair is not None:
        query = design.task(step.pair.query_id).query
        for side, system in (("Left", step.pair.left), ("Right", step.pair.right)):
            lists = here.study.lists.systems[system]
            sides[side] = results(lists, lists.hits(step.pair.query_id, query), query, design.interfaces[0])
    return here.page("study.html", sides=sides)


@participants.post("/{name}")
def pass_on(here: Visited, name: str, form: Sent) -> Response:
    """Keep what was said on a page, and go on; a page that was passed already stays as it was answered."""
    if name == here.step.name and here.step.kind != THANKS:
        here.finish(_answers(here, form), _preferences(here.step, form))
    return here.on()


@participants.get("/{name}/document")
def document(here: Visited, name: str, asked: Annotated[AskedDocument, Query()]) -> Response:
    """Show a document of a page of results."""
    if name != here.step.name or here.step.kind != SEARCH or here.left == 0:
        return here.on()
    actions = here.act("click", **_known(here, asked.page, asked.id))
    shown, (title, text) = page_of(actions, asked.page), here.lists.text(asked.id)
    heading, body = (pieces(part, str(shown and shown.query), here.variant) for part in (title or asked.id, text))
    document = {"heading": heading, "text": body}
    return here.page("study-search.html", document=document, asked=asked, kept=saved(actions))


@participants.post("/{name}/act")
def act(here: Visited, name: str, given: Annotated[Acted, Form()]) -> Response:
    """Keep what is done with a document."""
    if name != here.step.name or here.step.kind != SEARCH:
        return here.on()
    known = _known(here, given.page, given.id)
    here.act(given.action, value=given.seconds if given.action == "back" else None, **known)
    document = f"/document?{urlencode({'page': given.page, 'id': given.id})}"
    below = document if given.then == "document" else f"#rank-{known['rank']}"
    return RedirectResponse(here.address(below), SEE_OTHER)


@observers.get("")
def observed(request: Request, store: Observed) -> Response:
    """List the participants, with where they are."""
    rows = [(who, known.group, len(store.steps(who))) for who, known in store.participants().items()]
    return page(request, "study-observer.html", title="Observer", rows=rows, who="", notes=[])


@observers.get("/{participant}")
def notes(request: Request, store: Observed, participant: str) -> Response:
    """Show what was noted of a participant, and take more."""
    steps = store.steps(participant)
    values: dict[str, Any] = {"notes": store.notes(participant), "now": max(steps, key=steps.__getitem__, default="")}
    return page(request, "study-observer.html", title=participant, rows=[], who=participant, **values)


@observers.post("/{participant}")
def note(request: Request, store: Observed, participant: str, given: Annotated[Noted, Form()]) -> Response:
    """Keep a note on the task that a participant is at."""
    begun = [int(step.removeprefix(f"{TASK}-")) for step in store.steps(participant) if step.startswith(f"{TASK}-")]
    store.note(participant, max(begun, default=0), given.text)
    return RedirectResponse(request.url.path, SEE_OTHER)


def _results(here: Visit, asked: AskedResults) -> Response:
    """Show results, for a query of the participant's own or for that of the topic."""
    if here.left == 0:
        here.finish()
        return here.on()
    lists, actions = here.lists, here.actions
    before = page_of(actions) if asked.q is None else None  # back by the link, or from a document
    query = (asked.q if lists.free else here.task.query) or (before and before.query) or ""
    first = asked.first or (before and before.rank) or 1
    hits = lists.hits(here.task.topic, query) if query.strip() else ()
    rows = results(lists, hits, query, here.variant, first)
    if query.strip():
        actions = here.act("query", query=query, rank=first, shown=tuple(row["doc_id"] for row in rows))
    shown = page_of(actions)
    values = {"free": lists.free, "query": query, "rows": rows, "first": first, "total": len(hits)}
    return here.page("study-search.html", **values, page=shown and shown.page, kept=saved(actions))


def _known(here: Visit, number: int, doc_id: str) -> dict[str, Any]:
    """Give page, document and rank of what is done; refuse a document that was not shown there."""
    shown = page_of(here.actions, number)
    if shown is None or shown.shown is None or doc_id not in shown.shown:
        raise InputError("this document was not among the results", fix="go back, and choose one of them")
    return {"page": number, "doc_id": doc_id, "rank": (shown.rank or 1) + shown.shown.index(doc_id)}


def _answers(here: Visit, form: Mapping[str, str]) -> list[dict[str, Any]]:
    """Read the answers to a questionnaire, and who somebody is where the design asks for it."""
    step = here.step
    if step.kind == CONSENT and here.study.design.personal and (name := form.get("person", "").strip()):
        return [{"questionnaire": "person", "item": "1", "text": name[:10_000], "personal": True}]
    if step.questionnaire is None:
        return []
    rows: list[dict[str, Any]] = []
    for item in step.questionnaire.items:
        said = form.get(item.name, "").strip()
        if not item.open and said not in {f"{value:g}" for value in item.values}:
            raise InputError(f"there is no answer to: {item.text}", fix="go back, and choose one")
        rows.append({"item": item.name, **({"text": said[:10_000]} if item.open else {"value": float(said)})})
    about = {"position": step.position, "system": "" if step.position else step.system}
    return [{**about, "questionnaire": step.questionnaire.name, **row} for row in rows]


def _preferences(step: Step, form: Mapping[str, str]) -> list[dict[str, Any]]:
    """Read which of two lists somebody prefers."""
    if step.pair is None:
        return []
    topic, left, right = step.pair
    systems = {"left": left, "right": right, "neither": ""}
    if form.get("preferred") not in systems:
        raise InputError("it was not said which list is better", fix="go back, and choose one, or neither")
    row = {"query_id": topic, "left": left, "right": right, "preferred": systems[form["preferred"]]}
    return [{**row, "why": form.get("why", "")[:10_000]}]


def results(lists: SystemLists, hits: Hits, query: str, variant: Variant, first: int = 1) -> list[dict[str, Any]]:
    """Give a page of results, from a rank on; of the pieces of titles and snippets those at odd places are marked."""
    rows: list[dict[str, Any]] = []
    for rank, (doc_id, score) in enumerate(hits[first - 1 : first - 1 + variant.results], first):
        title, text = (" ".join(part.split()) for part in lists.text(doc_id))
        repeated = text.removeprefix(title).strip() or text
        rows.append(
            {
                "rank": rank,
                "doc_id": doc_id,
                "score": score,
                "title": pieces(title or shorten(text, 80) or doc_id, query, variant),
                "snippet": pieces(_about(repeated, query, variant.snippets), query, variant),
            }
        )
    return rows


def pieces(text: str, query: str, variant: Variant) -> list[str]:
    """Split a text at the words of the query, if they are to be marked."""
    return split_at_matches(text, query) if variant.marks else [text]


def _about(text: str, query: str, length: int) -> str:
    """Give a part of a text: its beginning, or, if that has no word of the query, a part with the first of them."""
    if not length or len(text) <= length:
        return text[:length]
    head, *rest = split_at_matches(text, query)
    start = 0 if not rest or len(head) < length // 2 else text.rfind(" ", 0, len(head) - length // 4) + 1
    return ("... " if start else "") + shorten(text[start:], length)
