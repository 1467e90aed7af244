"""Web pages of a study. A token in the link gives access to the pages of one participant, in their order."""

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
from judged.studies.records import DEPTH, Hits, SearchBackend, StudyLists
from judged.studies.storage import (
    OBSERVER,
    SEARCH,
    TASK,
    Action,
    StudyStore,
    find_open_document,
    find_results_page,
    now_ms,
    saved_documents,
)

CONSENT, INSTRUCTION, QUESTIONS, PREFERENCE, THANKS = "consent", "instruction", "questions", "preference", "thanks"
MAX_WEIGHT = 5.0
"""Maximum weight of a term; the default weight is 1."""
# After a POST, 303 makes the browser GET the next page, so that reloading does not send the form again.
SEE_OTHER = 303


@dataclass(frozen=True)
class StudyStep:
    """Page that a participant completes once."""

    name: str  # in addresses and in the store; it must not reveal the system
    kind: str
    position: int = 0  # of the trial; 0 without a trial
    trial: Mapping[str, Any] | None = None
    system: str = ""  # that the questionnaire concerns
    questionnaire: Questionnaire | None = None
    pair: SideBySide | None = None


def steps(design: Design, number: int, trials: Sequence[Mapping[str, Any]]) -> tuple[StudyStep, ...]:
    """Return the pages of a participant in their order; the last page cannot be completed.

    `number` is the index of the participant within the group. A questionnaire about a system follows the last task with
    it, practice excluded.
    """
    pages = [StudyStep(CONSENT, CONSENT)] if design.consent or design.personal else []
    pages += [StudyStep(INSTRUCTION, INSTRUCTION)]
    last_positions = {trial["system"]: trial["position"] for trial in trials if not trial["practice"]}
    forms: dict[str, list[Questionnaire]] = {after: [] for after in ("task", "system", "end")}
    for form in design.questionnaires:
        forms[str(form.after)].append(form)
    for trial in trials:
        position, system = trial["position"], trial["system"]
        pages += [StudyStep(f"{kind}-{position}", kind, position, trial) for kind in (TASK, SEARCH)]
        prefix = f"{QUESTIONS}-{position}"
        if not trial["practice"]:
            facts = QUESTIONS, position, trial, system
            pages += [StudyStep(f"{prefix}-{form.name}", *facts, form) for form in forms["task"]]
        if last_positions.get(system) == position:
            pages += [StudyStep(f"{prefix}-{form.name}", QUESTIONS, 0, None, system, form) for form in forms["system"]]
    for i, pair in enumerate(side_by_side(design, number), 1):
        pages.append(StudyStep(f"{PREFERENCE}-{i}", PREFERENCE, pair=pair))
    pages += [StudyStep(f"{QUESTIONS}-{form.name}", QUESTIONS, questionnaire=form) for form in forms["end"]]
    return (*pages, StudyStep(THANKS, THANKS))


@dataclass(frozen=True)
class Study:
    """Running study."""

    design: Design
    store: StudyStore
    lists: StudyLists


@dataclass(frozen=True)
class Visit:
    """Request of a participant, with the next page of this participant."""

    request: Request
    study: Study
    participant: str
    home: str
    step: StudyStep  # the first page that is not completed
    completed_count: int
    step_count: int
    started_ms: int | None  # start of the trial; None if the page has no trial

    @property
    def trial(self) -> Mapping[str, Any]:
        """Current trial; empty if the page has none."""
        return self.step.trial or {}

    @property
    def task(self) -> Task:
        """Task of the trial."""
        return self.study.design.task(self.trial["query_id"])

    @property
    def variant(self) -> Variant:
        """Interface variant of the trial."""
        return self.study.design.interface(self.trial["variant"])

    @property
    def lists(self) -> SearchBackend:
        """Search function and texts of the trial's system."""
        return self.study.lists.systems[self.trial["system"]]

    @property
    def seconds_left(self) -> int | None:
        """Seconds until the end of the trial, at least 0; None without a time limit."""
        if self.started_ms is None or not self.task.minutes:
            return None
        return max(0, math.ceil(self.task.minutes * 60 - (now_ms() - self.started_ms) / 1000))

    @property
    def actions(self) -> tuple[Action, ...]:
        """Actions in the trial so far."""
        return self.study.store.actions(self.participant, self.step.position)

    def record_action(self, action: str, **facts: Any) -> tuple[Action, ...]:
        """Save an action in the trial; return all actions in it."""
        return self.study.store.record_action(self.participant, self.step.position, Action(action, **facts))

    def complete(self, answers: Iterable[dict[str, Any]] = (), preferences: Iterable[dict[str, Any]] = ()) -> None:
        """Save that the page was completed, with its answers; close an open document."""
        # The dwell time of the open document ends with the task.
        if self.step.kind == SEARCH and (click := find_open_document(self.actions)) is not None:
            self.record_action("back", page=click.page, doc_id=click.doc_id)
        self.study.store.complete_step(self.participant, self.step.name, answers, preferences)

    def page(self, template: str, **values: Any) -> HTMLResponse:
        """Render a page."""
        design = self.study.design
        return page(self.request, template, visit=self, step=self.step, design=design, title=design.title, **values)

    def redirect_to_next(self) -> Response:
        """Redirect to the next page, which may be another one than at the start of the request."""
        return RedirectResponse(find_visit(self.request, self.request.path_params["token"]).address(), SEE_OTHER)

    def address(self, suffix: str = "") -> str:
        """Return the address of the page, with a suffix."""
        return f"{self.home}/{self.step.name}{suffix}"


def find_visit(request: Request, token: str) -> Visit:
    """Find the participant of a token, and the next page of this participant."""
    study: Study = request.app.state.study
    name = study.store.find_participant(token)
    participant = study.store.participants().get(name or "")
    if name is None or participant is None:
        raise InputError("the token in this link is not valid", fix="ask the sender for a new link")
    home = request.scope[HOME_PATH] = f"/s/{token}"
    pages = steps(study.design, participant.number, study.store.trials(name))
    completed = study.store.steps(name)
    i, step = next((i, step) for i, step in enumerate(pages) if step.name not in completed or step.kind == THANKS)
    return Visit(request, study, name, home, step, i, len(pages) - 1, completed.get(f"{TASK}-{step.position}"))


def observer_store(request: Request, token: str) -> StudyStore:
    """Return the store if the token belongs to the observer.

    Raises
    ------
    InputError
        If it does not, or the participant of the address does not exist.
    """
    store: StudyStore = request.app.state.study.store
    if store.find_participant(token) != OBSERVER:
        raise InputError("the token in this link does not belong to the observer", fix="ask the sender for a new link")
    if (name := request.path_params.get("participant")) is not None and name not in store.participants():
        raise InputError(f"unknown participant {name!r}", fix="select a participant from the list")
    request.scope[HOME_PATH] = f"/observe/{token}"
    return store


CurrentVisit = Annotated[Visit, Depends(find_visit)]
"""Parameter type of routes for participants."""
ObserverStore = Annotated[StudyStore, Depends(observer_store)]
"""Parameter type of routes for the observer."""


router = APIRouter(include_in_schema=False)
participants = APIRouter(prefix="/s/{token}", include_in_schema=False)
observers = APIRouter(prefix="/observe/{token}", include_in_schema=False)
_Id = Annotated[str, Field(max_length=8192)]


def make_study_app(study: Study, rules: Rules | None = None) -> FastAPI:
    """Create the web application of a study; without a token, no page is accessible."""
    app = FastAPI(title=study.design.title, version=judged.__version__, openapi_url=None, docs_url=None, redoc_url=None)
    app.state.study = study
    return configure_app(app, (router, participants, observers), rules or Rules())


async def read_form_fields(request: Request) -> dict[str, str]:
    """Read all text fields of a form, whose names depend on the design."""
    return {key: value for key, value in (await request.form()).items() if isinstance(value, str)}


FormFields = Annotated[dict[str, str], Depends(read_form_fields)]


class ResultsQuery(Parameters):
    """Query parameters of a result page."""

    q: Text | None = Field(None, max_length=1000)
    first: int | None = Field(None, ge=1, le=10_000)
    w: list[Annotated[float, Field(ge=0, le=MAX_WEIGHT, allow_inf_nan=False)]] = Field([], max_length=500)
    """Weights of the terms of the query, in their order."""


class DocumentQuery(Parameters):
    """Query parameters of a document on a result page."""

    page: int = Field(ge=1, le=100_000)
    id: _Id


class DocumentAction(DocumentQuery):
    """Form fields of an action on a document."""

    action: Literal["save", "unsave", "back"]
    seconds: float | None = Field(None, ge=0, le=1e6, allow_inf_nan=False)
    then: Literal["results", "document"] = "results"


class NoteForm(BaseModel):
    """Form fields of an observer's note."""

    text: Text = Field(min_length=1, max_length=10_000, pattern=r"\S")


@router.get("/")
def reject_without_token() -> Response:
    """Raise an error for an address without a token."""
    raise InputError("this study requires a personal link", fix="open the link that you received")


@participants.get("")
def resume(visit: CurrentVisit) -> Response:
    """Redirect to the next page of a participant."""
    return RedirectResponse(visit.address(), SEE_OTHER)


@participants.get("/{name}")
def show_step(visit: CurrentVisit, name: str, parameters: Annotated[ResultsQuery, Query()]) -> Response:
    """Show the next page; redirect if another page is requested."""
    step, design, sides = visit.step, visit.study.design, dict[str, Any]()
    # The address of another page, for example from the history, never goes back or forward.
    if name != step.name:
        return visit.redirect_to_next()
    if step.kind == SEARCH:
        return _results_response(visit, parameters)
    if step.pair is not None:
        query = design.task(step.pair.query_id).query
        for side, system in (("Left", step.pair.left), ("Right", step.pair.right)):
            lists = visit.study.lists.systems[system]
            sides[side] = results(lists, lists.hits(step.pair.query_id, query), query, design.interfaces[0])
    return visit.page("study.html", sides=sides)


@participants.post("/{name}")
def complete_step(visit: CurrentVisit, name: str, form: FormFields) -> Response:
    """Save the answers of a page, and redirect to the next; answers of a completed page do not change."""
    if name == visit.step.name and visit.step.kind != THANKS:
        visit.complete(_answers(visit, form), _preferences(visit.step, form))
    return visit.redirect_to_next()


@participants.get("/{name}/document")
def show_document(visit: CurrentVisit, name: str, parameters: Annotated[DocumentQuery, Query()]) -> Response:
    """Show a document of a result page."""
    if name != visit.step.name or visit.step.kind != SEARCH or visit.seconds_left == 0:
        return visit.redirect_to_next()
    actions = visit.record_action("click", **_locate_document(visit, parameters.page, parameters.id))
    results_page, (title, text) = find_results_page(actions, parameters.page), visit.lists.text(parameters.id)
    query = str(results_page and results_page.query)
    texts = {"heading": title or parameters.id, "text": text}
    document = {name: mark_query(text, query, visit.variant) for name, text in texts.items()}
    return visit.page("study-search.html", document=document, document_query=parameters, saved=saved_documents(actions))


@participants.post("/{name}/act")
def act_on_document(visit: CurrentVisit, name: str, form: Annotated[DocumentAction, Form()]) -> Response:
    """Save an action on a document."""
    if name != visit.step.name or visit.step.kind != SEARCH:
        return visit.redirect_to_next()
    facts = _locate_document(visit, form.page, form.id)
    visit.record_action(form.action, value=form.seconds if form.action == "back" else None, **facts)
    document = f"/document?{urlencode({'page': form.page, 'id': form.id})}"
    return RedirectResponse(visit.address(document if form.then == "document" else f"#rank-{facts['rank']}"), SEE_OTHER)


@observers.get("")
def list_participants(request: Request, store: ObserverStore) -> Response:
    """List the participants with the number of completed pages."""
    participants = store.participants().items()
    rows = [(name, participant.group, len(store.steps(name))) for name, participant in participants]
    return page(request, "study-observer.html", title="Observer", rows=rows, participant="", notes=[])


@observers.get("/{participant}")
def list_notes(request: Request, store: ObserverStore, participant: str) -> Response:
    """Show the notes about a participant, and a form for more."""
    completed = store.steps(participant)
    last = max(completed, key=completed.__getitem__, default="")
    values: dict[str, Any] = {"notes": store.notes(participant), "last_step": last}
    return page(request, "study-observer.html", title=participant, rows=[], participant=participant, **values)


@observers.post("/{participant}")
def add_note(request: Request, store: ObserverStore, participant: str, form: Annotated[NoteForm, Form()]) -> Response:
    """Save a note on the current task of a participant."""
    prefix = f"{TASK}-"
    positions = [int(step.removeprefix(prefix)) for step in store.steps(participant) if step.startswith(prefix)]
    store.add_note(participant, max(positions, default=0), form.text)
    return RedirectResponse(request.url.path, SEE_OTHER)


def _results_response(visit: Visit, parameters: ResultsQuery) -> Response:
    """Show results for the query of the participant, or for that of the topic."""
    if visit.seconds_left == 0:
        visit.complete()
        return visit.redirect_to_next()
    lists, actions = visit.lists, visit.actions
    # Without a query in the address, the participant came from a document or reopened the link: show the last page.
    last_page = find_results_page(actions) if parameters.q is None else None
    query = (parameters.q if lists.free else visit.task.query) or (last_page and last_page.query) or ""
    first = parameters.first or (last_page and last_page.rank) or 1
    weights = _term_weights(visit, query, parameters.w, last_page.weights if last_page is not None else None)
    hits = () if not query.strip() else lists.hits(visit.task.topic, query)
    if weights and lists.text_index is not None:
        hits = tuple(lists.text_index.search_weighted(weights, DEPTH))
    rows = results(lists, hits, query, visit.variant, first)
    if query.strip():
        shown = tuple(row["doc_id"] for row in rows)
        actions = visit.record_action("query", query=query, rank=first, shown=shown, weights=weights)
    current = find_results_page(actions)
    values = {"free": lists.free, "query": query, "rows": rows, "first": first, "total": len(hits)}
    values |= {"weights": weights, "max_weight": MAX_WEIGHT}
    return visit.page("study-search.html", **values, page=current and current.page, saved=saved_documents(actions))


def _term_weights(
    visit: Visit, query: str, values: Sequence[float], last_weights: Mapping[str, float] | None
) -> dict[str, float] | None:
    """Return the weights of a query's terms in their order; None if the participant cannot set weights.

    They are `values`, otherwise those of the last page, otherwise 1.
    """
    if not visit.variant.term_weights or visit.lists.text_index is None:
        return None
    terms = visit.lists.text_index.terms(query)
    if values and len(values) != len(terms):
        problem = f"there must be one weight for each of the {len(terms)} terms, got {len(values)}"
        raise InputError(problem, fix="go back, and search again")
    # Stored weights are not in the order of the query.
    values = values or [(last_weights or {}).get(term, 1.0) for term in terms]
    return dict(zip(terms, values, strict=True)) or None


def _locate_document(visit: Visit, number: int, doc_id: str) -> dict[str, Any]:
    """Return page, document, and rank of an action; raise InputError if the page did not have the document."""
    # An address with another id must not show documents that the system did not return.
    results_page = find_results_page(visit.actions, number)
    doc_ids = (results_page and results_page.shown) or ()
    if results_page is None or doc_id not in doc_ids:
        raise InputError("this document is not in the results", fix="go back, and select a document from the list")
    return {"page": number, "doc_id": doc_id, "rank": (results_page.rank or 1) + doc_ids.index(doc_id)}


def _answers(visit: Visit, form: Mapping[str, str]) -> list[dict[str, Any]]:
    step = visit.step
    if step.kind == CONSENT and visit.study.design.personal and (name := form.get("person", "").strip()):
        return [{"questionnaire": "person", "item": "1", "text": name[:10_000], "personal": True}]
    if step.questionnaire is None:
        return []
    rows: list[dict[str, Any]] = []
    for item in step.questionnaire.items:
        answer = form.get(item.name, "").strip()
        if not item.open and answer not in {f"{value:g}" for value in item.values}:
            raise InputError(f"an answer is required: {item.text}", fix="go back, and select an answer")
        rows.append({"item": item.name, **({"text": answer[:10_000]} if item.open else {"value": float(answer)})})
    subject = {"position": step.position, "system": "" if step.position else step.system}
    return [{**subject, "questionnaire": step.questionnaire.name, **row} for row in rows]


def _preferences(step: StudyStep, form: Mapping[str, str]) -> list[dict[str, Any]]:
    if step.pair is None:
        return []
    topic, left, right = step.pair
    systems = {"left": left, "right": right, "neither": ""}
    if form.get("preferred") not in systems:
        problem = "an answer is required: which list is better?"
        raise InputError(problem, fix="go back, and select one of the lists or “Neither”")
    row = {"query_id": topic, "left": left, "right": right, "preferred": systems[form["preferred"]]}
    return [{**row, "reason": form.get("reason", "")[:10_000]}]


def results(lists: SearchBackend, hits: Hits, query: str, variant: Variant, first: int = 1) -> list[dict[str, Any]]:
    """Return the rows of a result page, starting with rank `first`, with query words marked (see `mark_query`)."""
    rows: list[dict[str, Any]] = []
    for rank, (doc_id, score) in enumerate(hits[first - 1 : first - 1 + variant.results], first):
        title, text = (" ".join(part.split()) for part in lists.text(doc_id))
        body = text.removeprefix(title).strip() or text
        snippet = mark_query(_extract_snippet(body, query, variant.snippets), query, variant)
        heading = mark_query(title or shorten(text, 80) or doc_id, query, variant)
        rows.append({"rank": rank, "doc_id": doc_id, "score": score, "title": heading, "snippet": snippet})
    return rows


def mark_query(text: str, query: str, variant: Variant) -> list[str]:
    """Split a text at query words if the variant marks them; pieces with an odd index are query words."""
    return split_at_matches(text, query) if variant.marks else [text]


def _extract_snippet(text: str, query: str, length: int) -> str:
    """Return the start of a text or, if it has no query word, a passage around the first query word."""
    if not length or len(text) <= length:
        return text[:length]
    head, *matches = split_at_matches(text, query)
    start = 0 if not matches or len(head) < length // 2 else text.rfind(" ", 0, len(head) - length // 4) + 1
    return ("... " if start else "") + shorten(text[start:], length)
