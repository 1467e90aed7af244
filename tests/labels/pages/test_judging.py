"""The judging page without a browser: what is asked and kept, who is let in, and what nobody may see."""

from __future__ import annotations

import re
from dataclasses import replace
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from judged.interface.pages.filters import split_at_matches
from judged.interface.pages.guard import Rules
from judged.labels.labels import Labels
from judged.labels.store import LabelStore, NewTask
from judged.web.app import make_app
from label_stores import HOSTILE, counted, store_of, workspace_of

if TYPE_CHECKING:
    from pathlib import Path

    from judged.labels.store import Task

API = "/api/v1/judging"
PATIENT = settings(deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
SECRET = "the-owner's-secret"  # noqa: S105


@pytest.fixture
def store(tmp_path: Path) -> LabelStore:
    return store_of(tmp_path / "labels.db")


@pytest.fixture
def tried(store: LabelStore) -> TestClient:
    return TestClient(make_app(workspace_of(store)), follow_redirects=False)


def label(tried: TestClient, judge: str, task: int, grade: float | None, **more: Any) -> Any:
    return tried.post(API, json={"judge": judge, "labels": [{"task": task, "grade": grade, **more}]})


def form(tried: TestClient, judge: str, task: int, answer: str, **more: str) -> Any:
    return tried.post("/judging", data={"judge": judge, "task": task, "answer": answer, **more})


def tasks(tried: TestClient, judge: str) -> list[dict[str, Any]]:
    return tried.get(API, params={"judge": judge}).json()["tasks"]


def test_tasks_come_in_the_order_of_the_judge_and_tell_nothing_of_systems(store: LabelStore, tried: TestClient) -> None:
    store.add_tasks([NewTask("q1", "d0", repeat=1), NewTask("q1", "d9", gold=3.0)])
    answer = tried.get(API, params={"judge": "ann"}).json()
    assert [one["task"] for one in answer["tasks"]] == [task.task for task in store.tasks("ann")]
    assert (answer["done"], answer["assigned"]) == (0, 8)
    shown = {"task", "query", "description", "narrative", "doc_id", "title", "text"}
    assert all(set(one) == shown for one in answer["tasks"])
    assert [(one["grade"], one["key"]) for one in answer["scale"]] == [(0, "0"), (1, "1"), (2, "2"), (3, "3")]


def test_a_label_that_is_sent_twice_counts_once(store: LabelStore, tried: TestClient) -> None:
    first = tasks(tried, "ann")[0]
    for _ in range(2):
        assert label(tried, "ann", first["task"], 2, note="so\0", seconds=1.5).json() == {"kept": 1}
    assert counted(store, "ann") == {first["doc_id"]: 2.0}
    assert Labels.of(store).last.to_pylist()[0]["note"] == "so"
    assert tried.get(API, params={"judge": "ann"}).json()["done"] == 1


def test_of_several_labels_all_or_none_are_kept(store: LabelStore, tried: TestClient) -> None:
    one, two, *_ = tasks(tried, "ann")
    labels = [{"task": one["task"], "grade": 1}, {"task": two["task"], "grade": 7}]
    assert tried.post(API, json={"judge": "ann", "labels": labels}).status_code == 400
    assert label(tried, "ann", 999, 1).status_code == 400
    assert len(store.tasks("ann")) == 6


def test_the_form_grades_skips_puts_off_and_takes_back(store: LabelStore, tried: TestClient) -> None:
    one, two, three, *_ = tasks(tried, "ann")
    assert form(tried, "ann", one["task"], "3.0", note="it does").headers["location"] == "/judging"
    form(tried, "ann", two["task"], "skip")
    form(tried, "ann", three["task"], "later")
    assert counted(store, "ann") == {one["doc_id"]: 3.0, two["doc_id"]: None}
    assert tasks(tried, "ann")[-1]["task"] == three["task"]
    assert form(tried, "ann", 0, "undo").headers["location"] == f"/judging?task={two['task']}"
    assert form(tried, "ann", 0, "undo").headers["location"] == f"/judging?task={one['task']}"
    assert form(tried, "ann", 0, "undo").headers["location"] == "/judging"
    assert counted(store, "ann") == {}
    page = tried.get(f"/judging?task={one['task']}", headers={"cookie": "judged_name=ann"}).text
    assert f'name="task" value="{one["task"]}"' in page
    for wrong in ("7", "nan", "x", ""):
        assert form(tried, "ann", one["task"], wrong).status_code in {400, 422}


def test_undo_gives_what_was_said(tried: TestClient) -> None:
    first = tasks(tried, "ann")[0]
    label(tried, "ann", first["task"], 2, note="why")
    assert tried.post(f"{API}/undo", json={"judge": "ann"}).json()["taken_back"] == {
        "task": first,
        "grade": 2,
        "note": "why",
    }
    assert tried.post(f"{API}/undo", json={"judge": "ann"}).json() == {"taken_back": None}


def test_a_pair_that_is_two_tasks_is_asked_once(store: LabelStore, tried: TestClient) -> None:
    store.add_tasks([NewTask("q1", "d0", judge="ann"), NewTask("q1", "d1", judge="bob")])
    assert len(tasks(tried, "ann")) == 6
    assert tried.get(API, params={"judge": "ann"}).json()["assigned"] == 6


def test_texts_are_never_markup(tried: TestClient) -> None:
    page = tried.get("/judging", headers={"cookie": "judged_name=ann"}).text
    assert HOSTILE not in page
    assert "<mark>Fausts</mark>, &lt;img" in page
    assert "<h1" in page
    assert "<mark>Number" not in page


@pytest.mark.parametrize("text", ["", "Faust", "a Faust wrote; WRITES Faust", "\N{LATIN SMALL LETTER SHARP S} Faust's"])
def test_pieces_are_the_text(text: str) -> None:
    assert "".join(split_at_matches(text, "who wrote Faust")) == text
    assert split_at_matches(text, "")[1::2] == []


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("file", "files of a file; filed", ["files", "file", "filed"]),
        ("recipes", "a recipe", ["recipe"]),
        ("typed", "typ type types", ["type", "types"]),
        ("queries", "one query, two boxes", ["query"]),
    ],
)
def test_words_are_marked_whatever_their_endings(query: str, text: str, expected: list[str]) -> None:
    assert split_at_matches(text, query)[1::2] == expected


@pytest.fixture
def beyond(store: LabelStore) -> TestClient:
    """A workbench on another machine, whose owner has a token."""
    return TestClient(make_app(workspace_of(store), Rules(token=SECRET)), follow_redirects=False)


def test_a_judge_sees_the_judging_page_alone(store: LabelStore, beyond: TestClient) -> None:
    assert beyond.get("/judging").status_code == 401
    assert beyond.get("/judging?as=nobodys").status_code == 401
    answer = beyond.get(f"/judging?as={store.add_judge('ann')}")
    assert answer.headers["location"] == "/judging"
    assert "HttpOnly" in answer.headers["set-cookie"]
    page = beyond.get("/judging").text
    assert "who wrote Faust" in page
    assert 'href="/topics' not in page
    assert "2 runs" not in page
    assert beyond.get("/static/judging.css").status_code == 200
    others = (
        "/",
        "/topics",
        "/topic?topic=q1",
        "/leaderboard",
        "/api/v1/open",
        "/api",
        "/judgingx",
        "/api/v1/judgingx",
        "/open",
    )
    for path in others:
        assert beyond.get(path).status_code == 401, path
    assert beyond.post("/api/v1/open/sample").status_code == 401
    assert beyond.get("/judging/nothing").status_code == 404
    assert "2 runs" not in beyond.get("/judging/nothing").text


def test_a_judge_judges_under_their_own_name_and_does_not_see_others(store: LabelStore, beyond: TestClient) -> None:
    beyond.get(f"/judging?as={store.add_judge('ann')}")
    first = store.tasks("ann")[0]
    assert label(beyond, "ann", first.task, 1).json() == {"kept": 1}
    assert label(beyond, "bob", first.task, 1).status_code == 400
    assert form(beyond, "bob", first.task, "1").status_code == 400
    assert beyond.post(f"{API}/undo", json={"judge": "bob"}).status_code == 400
    assert beyond.post("/judging/name", data={"judge": "bob"}).status_code == 400
    pair = {"topic": "q1", "doc_id": "d1", "grade": 1}
    assert beyond.get("/judging/disagreements").status_code == 400
    assert beyond.post(f"{API}/disagreements", json=pair).status_code == 400
    assert beyond.post("/judging/label", data={**pair, "judge": "ann"}).status_code == 400
    assert Labels.of(store).judges == ("ann",)
    store.add_judge("ann")  # the old token is nobody's now
    assert beyond.get("/judging").status_code == 401


def test_the_owner_and_the_adjudicator_see_what_others_said(store: LabelStore, beyond: TestClient) -> None:
    owner = {"authorization": f"Bearer {SECRET}"}
    assert beyond.get("/judging/disagreements", headers=owner).status_code == 200
    assert label(beyond, "ann", 1, 1).status_code == 401
    token = store.add_judge("adjudicator")
    assert beyond.get(f"{API}/disagreements", headers={"authorization": f"Bearer {token}"}).status_code == 200


def test_other_sites_cannot_label(tried: TestClient) -> None:
    body = {"judge": "ann", "labels": []}
    assert tried.post(API, json=body, headers={"sec-fetch-site": "cross-site"}).status_code == 403


@pytest.mark.parametrize(
    ("grades", "shared", "state"),
    [
        ({"ann": range(5), "bob": range(5, 10)}, 0, "no-shared-pair"),  # ten labels, no pair in common
        ({"ann": range(5), "bob": range(5)}, 5, "too-few-pairs"),
        ({"ann": range(6), "bob": range(6)}, 6, "no-disagreement"),
        ({"ann": range(6), "adjudicator": range(6)}, 0, "no-shared-pair"),
    ],
)
def test_judges_agree_only_on_pairs_that_two_of_them_graded(
    store: LabelStore, tried: TestClient, grades: dict[str, range], shared: int, state: str
) -> None:
    for judge, documents in grades.items():
        for at in documents:
            store.add(judge, "q1", f"d{at}", 1.0)
    found = tried.get(f"{API}/disagreements").json()
    assert (found["shared"], found["state"], found["open"]) == (shared, state, 0)
    assert tried.get("/judging/disagreements").status_code == 200


def test_disagreements_come_most_telling_first_and_are_settled(store: LabelStore, tried: TestClient) -> None:
    empty = tried.get(f"{API}/disagreements").json()
    assert (empty["n"], empty["open"]) == (0, 0)
    for judge, grades in {"ann": (0, 1, 2, 3), "bob": (3, 2, 2, 1), "eve": (0, 1, 2, 1)}.items():
        for at, grade in enumerate(grades):
            store.add(judge, "q1", f"d{at}", grade, note=f"{judge}'s")
    found = tried.get(f"{API}/disagreements").json()
    # spreads 3, 2 and 1; of d2 all say 2
    assert [(row["doc_id"], row["spread"], row["final"]) for row in found["pairs"]] == [
        ("d0", 3, None),
        ("d3", 2, None),
        ("d1", 1, None),
    ]
    assert [one["judge"] for one in found["pairs"][0]["labels"]] == ["bob", "ann", "eve"]
    pair = {"topic": "q1", "doc_id": "d0", "grade": "2", "note": "bob misread"}
    assert tried.post("/judging/disagreements", data=pair).headers["location"] == "/judging/disagreements"
    found = tried.get(f"{API}/disagreements").json()
    assert [(row["doc_id"], row["final"]) for row in found["pairs"]] == [("d3", None), ("d1", None), ("d0", 2)]
    assert (found["open"], counted(store, "adjudicator")) == (2, {"d0": 2.0})
    page = tried.get("/judging/disagreements").text
    assert len(re.findall(r'class="pair"', page)) == 3
    assert HOSTILE not in page


def test_labels_stay_open_when_other_files_are_opened(store: LabelStore) -> None:
    app = make_app(workspace_of(store))
    assert TestClient(app).post("/api/v1/open/sample").status_code == 200
    assert app.state.holder.workspace.labels is store


def test_without_a_store_the_page_says_how_to_open_one(sample: Any) -> None:
    tried = TestClient(make_app(replace(sample, labels=None)))
    assert "judged serve --labels" in tried.get("/judging").text
    assert label(tried, "ann", 1, 1).status_code == 400


def test_two_judges_in_many_threads_lose_nothing(tmp_path: Path) -> None:
    store = store_of(tmp_path / "labels.db", 60)
    tried = TestClient(make_app(workspace_of(store)))

    parts = [(judge, store.tasks(judge)[part::2]) for judge in ("ann", "bob") for part in (0, 1)]

    def judging(judge: str, part: tuple[Task, ...]) -> None:
        for one in part:
            assert label(tried, judge, one.task, one.task % 4).status_code == 200

    threads = [Thread(target=judging, args=part) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for judge in ("ann", "bob"):
        given_ = {one.doc_id: one.task % 4 for who, part in parts for one in part if who == judge}
        assert counted(store, judge) == given_


def test_judging_is_tried_without_a_store() -> None:
    with TestClient(make_app(workspace_of(None)), follow_redirects=False) as tried:
        assert tasks(tried, "ann") == []
        for _ in range(2):  # the second one finds the labels of the first
            assert tried.post("/judging/trial").headers["location"] == "/judging"
        found = {(one["query"], one["doc_id"]) for one in tasks(tried, "ann")}
        assert found == {("q1", "d1"), ("q1", "d2"), ("q2", "d3"), ("q2", "d4")}
        label(tried, "ann", tasks(tried, "ann")[0]["task"], 2)
        assert len(tasks(tried, "ann")) == 3
        assert "change grade" in tried.get("/topic?topic=q1").text


@pytest.mark.parametrize("path", [API, f"{API}/undo", f"{API}/disagreements"])
@pytest.mark.parametrize("mode", [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE], ids=str)
def test_the_api_over_a_store_is_as_it_is_described(store: LabelStore, path: str, mode: Any) -> None:
    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", make_app(workspace_of(store)))
    operation = schema[path]["POST"]

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(PATIENT, max_examples=15)
    def ask(case: Any) -> None:
        case.call_and_validate(checks=[not_a_server_error, status_code_conformance, response_schema_conformance])

    ask()
    assert len(store.tasks("ann")) == 6
