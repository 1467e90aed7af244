"""Pages of agents: where evidence is lost, scores, effort, confidence, and one question."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect

from judged.interface.pages.workspace import open_workspace
from judged.pipelines.commands.serve import workspace_arguments
from judged.pipelines.rag.overview import SystemScores
from judged.pipelines.trajectories import Trajectories, confidence, evaluate, explain, where
from judged.pipelines.trajectories.evaluation import compare_effort
from judged.web.app import make_app
from pipelines.trajectories.agents import simulated

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended

HOSTILE = "<img src=x onerror=alert(1)>"


def records() -> tuple[list[dict[str, Any]], dict[str, dict[str, int]]]:
    """Return trials of a sound agent and of one that repeats queries, with stated confidence, and judgments."""
    sound, qrels, _ = simulated("none", run="sound", questions=24)
    looped, _, _ = simulated("looped", run="looped", questions=24, rate=0.4, seed=1)
    for i, record in enumerate([*sound, *looped]):
        record["confidence"] = (0.6, 0.8, 0.95)[i % 3]
    looped[0] |= {"question": HOSTILE, "correct": False}
    return [*sound, *looped], qrels


RECORDS, QRELS = records()
TRAJECTORIES = Trajectories.of(RECORDS)


@pytest.fixture(scope="module")
def workspace() -> Any:
    kinds = {topic: {"kind": "ab"[i % 2]} for i, topic in enumerate(sorted(QRELS))}
    return open_workspace(QRELS, {}, attributes=kinds, title="simulated", parts={"trajectories": lambda: TRAJECTORIES})


@pytest.fixture(scope="module")
def client(workspace: Any) -> TestClient:
    return TestClient(make_app(workspace), base_url="http://127.0.0.1")


def in_json(answer: Any) -> Any:
    return json.loads(json.dumps(answer.to_dict()).replace("NaN", "null"))


def test_json_agrees_with_python(client: TestClient) -> None:
    def effort(**options: Any) -> Any:
        names = ["AnswerAccuracy", "NumSearches"]
        return compare_effort(evaluate(TRAJECTORIES, names, qrels=QRELS, unjudged=False, **options))

    scores = evaluate(TRAJECTORIES, qrels=QRELS)
    for address, answer in (
        ("/agents", where(TRAJECTORIES, QRELS)),
        ("/agents?required=all&page=2", where(TRAJECTORIES, QRELS, required="all")),
        ("/agents?where=kind=='a'", where(TRAJECTORIES.of_topics(sorted(QRELS)[::2]), QRELS)),
        ("/agents/scores", SystemScores(scores, scores.notes)),
        ("/agents/effort", effort()),
        ("/agents/confidence", confidence(TRAJECTORIES)),
        ("/agents/question?topic=q3", explain(TRAJECTORIES, "q3", QRELS)),
        ("/agents/question?topic=q3&system=looped", explain(TRAJECTORIES, "q3", QRELS, runs=["looped"])),
        ("/agents/question", explain(TRAJECTORIES, "q0", QRELS)),
    ):
        found = client.get(f"/api/v1{address}").json()
        expected = in_json(answer)
        assert {**found, "qrels": None} == {**expected, "qrels": None}, address
        assert client.get(address).status_code == 200


def test_relevance_and_accuracy_change_all_parts(client: TestClient) -> None:
    graded = client.get("/api/v1/agents?rel=2").json()
    assert graded["parts"] == in_json(where(TRAJECTORIES, QRELS, rel=2))["parts"]
    assert graded["parts"] != in_json(where(TRAJECTORIES, QRELS))["parts"]
    assert client.get("/api/v1/agents/scores?measures=SeenR,NumSearches&rel=2").json()["results"][0]["measure"] == (
        "SeenR(rel=2)"
    )
    # no trial has a reference, so that no answer can be an exact match
    assert client.get("/agents?accuracy=ExactMatch").status_code == 400


def test_the_overview_has_scores_charts_and_links_to_wrong_trials(client: TestClient) -> None:
    page = client.get("/agents").text
    for name in ("lost", "NumSearches", "reliability"):
        assert f'data-spec="{name}"' in page
    assert "AnswerAccuracy" in page
    assert "SeenR(rel=2)" in client.get("/agents?rel=2").text  # the same options hold for all parts
    assert "SeenR(rel=2)" not in page
    assert "never retrieved: looped" in page
    assert page.count('href="/agents/question?topic=') == min(
        100, sum(bool(loss.part) for loss in where(TRAJECTORIES, QRELS).losses)
    )
    rows = client.get("/agents.trials.csv").text.splitlines()[1:]
    assert len(rows) == sum(not record["correct"] for record in RECORDS)


def test_the_overview_works_without_confidence(workspace: Any) -> None:
    stated = [{name: value for name, value in record.items() if name != "confidence"} for record in RECORDS]
    other = replace(workspace, parts={"trajectories": lambda: Trajectories.of(stated)})
    without = TestClient(make_app(other), base_url="http://127.0.0.1")
    page = without.get("/agents")
    assert page.status_code == 200
    assert 'data-spec="reliability"' not in page.text
    assert without.get("/agents/confidence").status_code == 400


def test_a_question_has_labels_of_new_and_wasted_searches(client: TestClient) -> None:
    page = client.get("/agents/question?topic=q1&system=looped").text
    timeline = explain(TRAJECTORIES, "q1", QRELS, runs=["looped"])
    wasted = sum(bool(step.flags) for step in timeline.steps)
    assert page.count('class="chip worse"') == wasted > 0
    assert page.count('class="chip better"') == sum(bool(step.new) for step in timeline.steps) > 0
    assert "e1*" in page
    hostile = client.get("/agents/question?topic=q0&system=looped").text
    assert HOSTILE not in hostile
    assert "&lt;img" in hostile


@pytest.mark.parametrize(
    "path",
    ["/agents?where=nothing", "/agents?accuracy=None", "/agents/question?topic=none", "/agents/question?system=none",
     "/agents/scores?measures=nDGC", "/agents/effort?effort=AP@", "/agents?by=none"],
)  # fmt: skip
def test_unknown_names_are_rejected(client: TestClient, path: str) -> None:
    page, answer = client.get(path), client.get(f"/api/v1{path}")
    assert (page.status_code, answer.status_code) == (400, 400)
    assert 'role="alert"' in page.text


def test_trajectories_of_other_questions_are_judged_by_their_hops() -> None:
    hops = [{"query_id": "q0", "hop": "1", "doc_id": "d1"}]
    trial = {"query_id": "q0", "correct": False, "answer": "x", "steps": [{"kind": "search", "documents": ["d1"]}]}
    trajectories = Trajectories.of([trial]).with_tables(hops=hops)
    other = open_workspace({"t": {"d": 1}}, {}, parts={"trajectories": lambda: trajectories})
    found = TestClient(make_app(other), base_url="http://127.0.0.1").get("/api/v1/agents/question").json()
    assert found["relevant"] == ["d1"]


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


def test_serve_opens_trajectories(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", RECORDS)
    single = write(tmp_path / "one.jsonl", [row for row in RECORDS if row["run_id"] == "sound"])
    options: dict[str, Any] = dict.fromkeys(
        ("experiment", "results", "qrels", "queries", "texts", "entities", "documents", "rag")
    )
    options |= {"traces": (), "trajectories": (path, f"other={single}")}
    opened = workspace_arguments(options)["parts"]["trajectories"]()
    assert opened.run_names == ("sound", "looped", "other")


def test_trajectories_are_opened_by_upload(workspace: Any) -> None:
    client = TestClient(make_app(replace(workspace, parts={})), base_url="http://127.0.0.1", follow_redirects=False)
    closed = client.get("/agents")
    assert closed.status_code == 200
    assert "judged serve QRELS --trajectories FILE" in closed.text
    assert 'action="/open/data"' in closed.text
    assert client.get("/api/v1/agents").status_code == 400
    body = "".join(f"{json.dumps(row)}\n" for row in RECORDS).encode()
    form = {"option": "trajectories", "page_path": "/agents"}
    headers = {"Origin": "http://127.0.0.1"}
    answer = client.post("/open/data", data=form, files={"file": ("t.jsonl", body)}, headers=headers)
    assert (answer.status_code, answer.headers["location"]) == (303, "/agents")
    assert client.get("/api/v1/agents").json()["parts"] == in_json(where(TRAJECTORIES, QRELS))["parts"]


@pytest.mark.parametrize("width", [390, 1440])
def test_lost_evidence_links_to_one_question(serve: Any, tab: Any, workspace: Any, width: int) -> None:
    browser_tab = tab(serve(workspace) + "/agents", width)
    page = browser_tab.page
    page.wait_for_selector("html[data-charts-rendered]", timeout=60_000)
    browser_tab.accessible()
    browser_tab.fits()
    page.get_by_role("region", name="Wrong trials").get_by_role("link").first.click()
    expect(page.locator("h1")).to_contain_text("Question q")
    expect(page.get_by_role("region", name="Steps")).to_contain_text("redundant")
    browser_tab.accessible()
    browser_tab.fits()
    browser_tab.clean()


def test_check_recognizes_trajectories(tmp_path: Path, run: Callable[..., Ended]) -> None:
    call = {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "search", "arguments": "{}"}}]}
    chat = {"messages": [{"role": "user", "content": "Who?"}, call]}
    answer = {"query_id": "q", "answer": "x", "context": [{"doc_id": "d", "text": "x"}]}
    browsecomp = {"query_id": "q", "retrieved_docids": ["d"], "tool_call_counts": {}, "result": []}
    for row, word in (
        (RECORDS[0], "trajectories"), (chat, "trajectories"), (browsecomp, "trajectories"), (answer, "answers"),
        ({"query_id": "q", "stage": "s", "documents": ["d"]}, "traces"),
    ):  # fmt: skip
        path = write(tmp_path / "file.jsonl", [row])
        result = run("check", path, "--format", "json")
        assert f'"{word}"' in result.out, (word, result)
