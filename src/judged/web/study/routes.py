"""The pages of a study. Whoever has a participant's token sees their pages, in their order, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, FastAPI, Form, Query, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, Field

import judged
from judged.data.texts import shortened
from judged.errors import InputError
from judged.studies.design import Variant
from judged.studies.lists import Hits, SystemLists
from judged.studies.storage import SEARCH, TASK, page_of, saved
from judged.web.answers import page
from judged.web.guard import Rules, framed
from judged.web.judging.tasks import Text, marked
from judged.web.problems import Parameters
from judged.web.study.visit import CONSENT, SEE_OTHER, THANKS, Observed, Step, Study, Visit, Visited

router = APIRouter(include_in_schema=False)
participants = APIRouter(prefix="/s/{token}", include_in_schema=False)
observers = APIRouter(prefix="/observe/{token}", include_in_schema=False)
_Id = Annotated[str, Field(max_length=8192)]


def make_study_app(study: Study, rules: Rules | None = None) -> FastAPI:
    """Make the pages of a study; who has no token sees none of them."""
    app = FastAPI(title=study.design.title, version=judged.__version__, openapi_url=None, docs_url=None, redoc_url=None)
    app.state.study = study
    return framed(app, (router, participants, observers), rules or Rules())


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
                "title": pieces(title or shortened(text, 80) or doc_id, query, variant),
                "snippet": pieces(_about(repeated, query, variant.snippets), query, variant),
            }
        )
    return rows


def pieces(text: str, query: str, variant: Variant) -> list[str]:
    """Split a text at the words of the query, if they are to be marked."""
    return marked(text, query) if variant.marks else [text]


def _about(text: str, query: str, length: int) -> str:
    """Give a part of a text: its beginning, or, if that has no word of the query, a part with the first of them."""
    if not length or len(text) <= length:
        return text[:length]
    head, *rest = marked(text, query)
    start = 0 if not rest or len(head) < length // 2 else text.rfind(" ", 0, len(head) - length // 4) + 1
    return ("... " if start else "") + shortened(text[start:], length)
