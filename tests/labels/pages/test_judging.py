"""The judging page without a browser: tasks, labels, access, and secrets."""

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
from judged.interface.pages.workspace import open_workspace
from judged.labels.labels import Labels
from judged.labels.store import LabelStore, NewTask
from judged.web.app import make_app
from label_stores import HOSTILE, counted, store_of, workspace_of

if TYPE_CHECKING:
    from pathlib import Path

    from judged.labels.store import JudgingTask

API = "/api/v1/judging"
NO_DEADLINE = settings(deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
SECRET = "the-owner's-secret"  # noqa: S105


@pytest.fixture
def store(tmp_path: Path) -> LabelStore:
    return store_of(tmp_path / "labels.db")


@pytest.fixture
def client(store: LabelStore) -> TestClient:
    return TestClient(make_app(workspace_of(store)), follow_redirects=False)


def post_label(client: TestClient, judge: str, task: int, grade: float | None, **more: Any) -> Any:
    return client.post(API, json={"judge": judge, "labels": [{"task": task, "grade": grade, **more}]})


def post_form(client: TestClient, judge: str, task: int, answer: str, **more: str) -> Any:
    return client.post("/judging", data={"judge": judge, "task": task, "answer": answer, **more})


def get_tasks(client: TestClient, judge: str) -> list[dict[str, Any]]:
    return client.get(API, params={"judge": judge}).json()["tasks"]


def test_agreement_is_in_the_navigation_with_and_without_labels(store: LabelStore, client: TestClient) -> None:
    entry = re.compile(r'<a href="/labels/quality"([^>]*)>Agreement</a>')
    closed = TestClient(make_app(open_workspace({"q1": {"d": 1}}, [])))
    assert "no-data" in entry.findall(closed.get("/labels/quality").text)[0]
    assert "a store of labels" in closed.get("/labels/calibration").text
    assert "no-data" not in entry.findall(client.get("/judging").text)[0]
    store.add("ann", "q1", "d0", 1.0)
    models = client.get("/labels/calibration")  # without labels of a model
    assert models.status_code == 200
    assert 'aria-current="page"' in entry.findall(models.text)[0]
    assert "judged labels ask" in models.text


def test_tasks_have_the_order_of_the_judge_and_no_data_of_systems(store: LabelStore, client: TestClient) -> None:
    store.add_tasks([NewTask("q1", "d0", repeat=1), NewTask("q1", "d9", gold=3.0)])
    answer = client.get(API, params={"judge": "ann"}).json()
    assert [row["task"] for row in answer["tasks"]] == [task.task for task in store.tasks("ann")]
    assert (answer["done"], answer["assigned"]) == (0, 8)
    fields = {"task", "query", "description", "narrative", "doc_id", "title", "text"}
    assert all(set(row) == fields for row in answer["tasks"])
    assert [(row["grade"], row["key"]) for row in answer["scale"]] == [(0, "0"), (1, "1"), (2, "2"), (3, "3")]


def test_a_label_that_is_sent_twice_counts_once(store: LabelStore, client: TestClient) -> None:
    first = get_tasks(client, "ann")[0]
    for _ in range(2):
        assert post_label(client, "ann", first["task"], 2, note="so\0", seconds=1.5).json() == {"saved": 1}
    assert counted(store, "ann") == {first["doc_id"]: 2.0}
    assert Labels.of(store).last.to_pylist()[0]["note"] == "so"
    assert client.get(API, params={"judge": "ann"}).json()["done"] == 1


def test_labels_are_stored_all_or_none(store: LabelStore, client: TestClient) -> None:
    first, second, *_ = get_tasks(client, "ann")
    labels = [{"task": first["task"], "grade": 1}, {"task": second["task"], "grade": 7}]
    assert client.post(API, json={"judge": "ann", "labels": labels}).status_code == 400
    assert post_label(client, "ann", 999, 1).status_code == 400
    assert len(store.tasks("ann")) == 6


def test_the_form_grades_skips_postpones_and_undoes(store: LabelStore, client: TestClient) -> None:
    graded, skipped, postponed, *_ = get_tasks(client, "ann")
    assert post_form(client, "ann", graded["task"], "3.0", note="it does").headers["location"] == "/judging"
    post_form(client, "ann", skipped["task"], "skip")
    post_form(client, "ann", postponed["task"], "later")
    assert counted(store, "ann") == {graded["doc_id"]: 3.0, skipped["doc_id"]: None}
    assert get_tasks(client, "ann")[-1]["task"] == postponed["task"]
    assert post_form(client, "ann", 0, "undo").headers["location"] == f"/judging?task={skipped['task']}"
    assert post_form(client, "ann", 0, "undo").headers["location"] == f"/judging?task={graded['task']}"
    assert post_form(client, "ann", 0, "undo").headers["location"] == "/judging"
    assert counted(store, "ann") == {}
    page = client.get(f"/judging?task={graded['task']}", headers={"cookie": "judged_name=ann"}).text
    assert f'name="task" value="{graded["task"]}"' in page
    for invalid in ("7", "nan", "x", ""):
        assert post_form(client, "ann", graded["task"], invalid).status_code in {400, 422}


def test_undo_returns_grade_and_note(client: TestClient) -> None:
    first = get_tasks(client, "ann")[0]
    post_label(client, "ann", first["task"], 2, note="why")
    assert client.post(f"{API}/undo", json={"judge": "ann"}).json()["undone"] == {
        "task": first,
        "grade": 2,
        "note": "why",
    }
    assert client.post(f"{API}/undo", json={"judge": "ann"}).json() == {"undone": None}


def test_a_pair_with_two_tasks_is_shown_once(store: LabelStore, client: TestClient) -> None:
    store.add_tasks([NewTask("q1", "d0", judge="ann"), NewTask("q1", "d1", judge="bob")])
    assert len(get_tasks(client, "ann")) == 6
    assert client.get(API, params={"judge": "ann"}).json()["assigned"] == 6


def test_texts_are_escaped(client: TestClient) -> None:
    page = client.get("/judging", headers={"cookie": "judged_name=ann"}).text
    assert HOSTILE not in page
    assert "<mark>Fausts</mark>, &lt;img" in page
    assert "<h1" in page
    assert "<mark>Number" not in page


@pytest.mark.parametrize("text", ["", "Faust", "a Faust wrote; WRITES Faust", "\N{LATIN SMALL LETTER SHARP S} Faust's"])
def test_parts_join_to_the_text(text: str) -> None:
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
def test_inflected_words_are_marked(query: str, text: str, expected: list[str]) -> None:
    assert split_at_matches(text, query)[1::2] == expected


@pytest.fixture
def remote(store: LabelStore) -> TestClient:
    """Return a client of a workbench on another machine, whose owner has a token."""
    return TestClient(make_app(workspace_of(store), Rules(token=SECRET)), follow_redirects=False)


def test_a_judge_can_open_only_the_judging_page(store: LabelStore, remote: TestClient) -> None:
    assert remote.get("/judging").status_code == 401
    assert remote.get("/judging?as=nobodys").status_code == 401
    answer = remote.get(f"/judging?as={store.add_judge('ann')}")
    assert answer.headers["location"] == "/judging"
    assert "HttpOnly" in answer.headers["set-cookie"]
    page = remote.get("/judging").text
    assert "who wrote Faust" in page
    assert 'href="/topics' not in page
    assert "2 runs" not in page
    assert remote.get("/static/judging.css").status_code == 200
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
        assert remote.get(path).status_code == 401, path
    assert remote.post("/api/v1/open/sample").status_code == 401
    assert remote.get("/judging/nothing").status_code == 404
    assert "2 runs" not in remote.get("/judging/nothing").text


def test_a_judge_cannot_use_other_names_or_see_other_labels(store: LabelStore, remote: TestClient) -> None:
    remote.get(f"/judging?as={store.add_judge('ann')}")
    first = store.tasks("ann")[0]
    assert post_label(remote, "ann", first.task, 1).json() == {"saved": 1}
    assert post_label(remote, "bob", first.task, 1).status_code == 400
    assert post_form(remote, "bob", first.task, "1").status_code == 400
    assert remote.post(f"{API}/undo", json={"judge": "bob"}).status_code == 400
    assert remote.post("/judging/name", data={"judge": "bob"}).status_code == 400
    pair = {"topic": "q1", "doc_id": "d1", "grade": 1}
    assert remote.get("/judging/disagreements").status_code == 400
    assert remote.post(f"{API}/disagreements", json=pair).status_code == 400
    assert remote.post("/judging/label", data={**pair, "judge": "ann"}).status_code == 400
    assert Labels.of(store).judges == ("ann",)
    store.add_judge("ann")  # the old token is invalid now
    assert remote.get("/judging").status_code == 401


def test_the_owner_and_the_adjudicator_see_all_labels(store: LabelStore, remote: TestClient) -> None:
    owner = {"authorization": f"Bearer {SECRET}"}
    assert remote.get("/judging/disagreements", headers=owner).status_code == 200
    assert post_label(remote, "ann", 1, 1).status_code == 401
    token = store.add_judge("adjudicator")
    assert remote.get(f"{API}/disagreements", headers={"authorization": f"Bearer {token}"}).status_code == 200


def test_other_sites_cannot_label(client: TestClient) -> None:
    body = {"judge": "ann", "labels": []}
    assert client.post(API, json=body, headers={"sec-fetch-site": "cross-site"}).status_code == 403


@pytest.mark.parametrize(
    ("grades", "shared", "state"),
    [
        ({"ann": range(5), "bob": range(5, 10)}, 0, "no-shared-pair"),  # ten labels, no pair in common
        ({"ann": range(5), "bob": range(5)}, 5, "too-few-pairs"),
        ({"ann": range(6), "bob": range(6)}, 6, "no-disagreement"),
        ({"ann": range(6), "adjudicator": range(6)}, 0, "no-shared-pair"),
    ],
)
def test_states_of_agreement(
    store: LabelStore, client: TestClient, grades: dict[str, range], shared: int, state: str
) -> None:
    for judge, doc_numbers in grades.items():
        for i in doc_numbers:
            store.add(judge, "q1", f"d{i}", 1.0)
    result = client.get(f"{API}/disagreements").json()
    assert (result["shared"], result["state"], result["open"]) == (shared, state, 0)
    assert client.get("/judging/disagreements").status_code == 200


def test_disagreements_are_sorted_and_settled(store: LabelStore, client: TestClient) -> None:
    empty = client.get(f"{API}/disagreements").json()
    assert (empty["n"], empty["open"]) == (0, 0)
    for judge, grades in {"ann": (0, 1, 2, 3), "bob": (3, 2, 2, 1), "eve": (0, 1, 2, 1)}.items():
        for i, grade in enumerate(grades):
            store.add(judge, "q1", f"d{i}", grade, note=f"{judge}'s")
    result = client.get(f"{API}/disagreements").json()
    # spreads 3, 2 and 1; all grades of d2 are 2
    assert [(row["doc_id"], row["spread"], row["final"]) for row in result["pairs"]] == [
        ("d0", 3, None),
        ("d3", 2, None),
        ("d1", 1, None),
    ]
    assert [label["judge"] for label in result["pairs"][0]["labels"]] == ["bob", "ann", "eve"]
    pair = {"topic": "q1", "doc_id": "d0", "grade": "2", "note": "bob misread"}
    assert client.post("/judging/disagreements", data=pair).headers["location"] == "/judging/disagreements"
    result = client.get(f"{API}/disagreements").json()
    assert [(row["doc_id"], row["final"]) for row in result["pairs"]] == [("d3", None), ("d1", None), ("d0", 2)]
    assert (result["open"], counted(store, "adjudicator")) == (2, {"d0": 2.0})
    page = client.get("/judging/disagreements").text
    assert len(re.findall(r'class="pair"', page)) == 3
    assert HOSTILE not in page


def test_labels_stay_open_after_opening_other_files(store: LabelStore) -> None:
    app = make_app(workspace_of(store))
    assert TestClient(app).post("/api/v1/open/sample").status_code == 200
    assert app.state.holder.workspace.labels is store


def test_without_a_store_the_page_explains_how_to_open_one(sample: Any) -> None:
    client = TestClient(make_app(replace(sample, labels=None)))
    assert "judged serve --labels" in client.get("/judging").text
    assert post_label(client, "ann", 1, 1).status_code == 400


def test_concurrent_judges_lose_no_labels(tmp_path: Path) -> None:
    store = store_of(tmp_path / "labels.db", 60)
    client = TestClient(make_app(workspace_of(store)))

    shares = [(judge, store.tasks(judge)[start::2]) for judge in ("ann", "bob") for start in (0, 1)]

    def send_labels(judge: str, judge_tasks: tuple[JudgingTask, ...]) -> None:
        for task in judge_tasks:
            assert post_label(client, judge, task.task, task.task % 4).status_code == 200

    threads = [Thread(target=send_labels, args=share) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for judge in ("ann", "bob"):
        expected = {task.doc_id: task.task % 4 for name, judge_tasks in shares for task in judge_tasks if name == judge}
        assert counted(store, judge) == expected


def test_a_trial_without_a_store() -> None:
    with TestClient(make_app(workspace_of(None)), follow_redirects=False) as client:
        assert get_tasks(client, "ann") == []
        for _ in range(2):  # the second request finds the store of the first
            assert client.post("/judging/trial").headers["location"] == "/judging"
        pairs = {(task["query"], task["doc_id"]) for task in get_tasks(client, "ann")}
        assert pairs == {("q1", "d1"), ("q1", "d2"), ("q2", "d3"), ("q2", "d4")}
        post_label(client, "ann", get_tasks(client, "ann")[0]["task"], 2)
        assert len(get_tasks(client, "ann")) == 3
        assert "change grade" in client.get("/topic?topic=q1").text


@pytest.mark.parametrize("path", [API, f"{API}/undo", f"{API}/disagreements"])
@pytest.mark.parametrize("mode", [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE], ids=str)
def test_the_api_conforms_to_its_schema(store: LabelStore, path: str, mode: Any) -> None:
    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", make_app(workspace_of(store)))
    operation = schema[path]["POST"]

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(NO_DEADLINE, max_examples=15)
    def call_api(case: Any) -> None:
        case.call_and_validate(checks=[not_a_server_error, status_code_conformance, response_schema_conformance])

    call_api()
    assert len(store.tasks("ann")) == 6


def test_a_store_alone_leads_from_judging_to_qrels(store: LabelStore) -> None:
    """Without qrels, neither the sample nor its runs are open."""
    workspace = open_workspace(None, None, labels=store, title="labels")
    client = TestClient(make_app(workspace))
    assert client.get("/").url.path == "/judging"
    for judge, grade in (("ann", 2), ("bob", 2)):
        for task in get_tasks(client, judge):
            assert post_label(client, judge, task["task"], grade).json() == {"saved": 1}
    quality = client.get("/api/v1/labels/quality").json()
    assert {row["judge"] for row in quality["judges"]} == {"ann", "bob"}
    assert "systems" not in quality or quality["systems"] == []
    rows = [line.split() for line in client.get("/judging/qrels.txt").text.splitlines()]
    assert len(rows) == 6
    assert {row[3] for row in rows} == {"2"}
    assert [client.get(path).status_code for path in ("/leaderboard", "/topics", "/api", "/open")] == [200] * 4
    remote = TestClient(make_app(workspace, Rules(token=SECRET)))
    judge = {"Authorization": f"Bearer {store.add_judge('cy')}"}
    assert remote.get("/judging/qrels.txt", headers=judge).status_code == 400


def test_qrels_whose_ids_trec_cannot_store_are_sent_as_csv(store: LabelStore) -> None:
    client = TestClient(make_app(open_workspace(None, None, labels=store, title="labels")))
    store.add("ann", "query chair", "P-1", 2)
    response = client.get("/judging/qrels.txt")
    assert response.headers["content-disposition"] == "attachment; filename=qrels.csv"
    assert response.text.splitlines() == ["query_id,doc_id,relevance", "query chair,P-1,2"]
