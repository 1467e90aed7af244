"""The pages of an experiment: a query tried live as a person does it, and what may be concluded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect

from judged import evaluate
from judged.data import sample
from judged.interface.pages.workspace import open_workspace
from judged.pipelines.commands.serve import of_plan
from judged.pipelines.experiments import Plan, conclude
from judged.web.app import make_app

if TYPE_CHECKING:
    from judged import Run
    from judged.scoring.evaluation import Scores

PLAN: dict[str, Any] = {
    "documents": str(sample.FOLDER / "docs.jsonl.gz"),
    "queries": str(sample.FOLDER / "queries.jsonl"),
    "qrels": str(sample.FOLDER / "qrels.txt"),
    "control": {"engine": "sqlite", "stemmer": "none"},
    "factors": {"engine": ["sqlite", "trigrams"], "stemmer": ["none", "english"]},
    "pipelines": {"trigrams": {"engine": "sqlite", "tokens": "trigrams", "stemmer": "none"}},
}


@dataclass
class Results:
    """Two runs of the sample as if they were configurations."""

    scores: Scores
    levels: dict[str, dict[str, Any]]
    costs: dict[str, dict[str, Any]]
    control: str = "control"

    def run(self, configuration: str) -> Run:
        return RUNS[configuration]


RUNS = {
    name: type(run)(run.rows, name)
    for name, run in zip(("control", "stemmer=english"), (sample.runs()[1], sample.runs()[0]), strict=True)
}


def results() -> Results:
    scores = evaluate(sample.qrels(), list(RUNS.values()), ["nDCG@10", "R@100"])
    levels = {"control": {"stemmer": "none"}, "stemmer=english": {"stemmer": "english"}}
    costs = {
        "control": {"p50_ms": 2.0, "p50_ms_ci": (1.9, 2.1)},
        "stemmer=english": {"p50_ms": 3.0, "p50_ms_ci": (2.8, 3.2)},
    }
    return Results(scores, levels, costs)


@pytest.fixture(scope="module")
def opened() -> Any:
    made: Any = open_workspace(**of_plan(PLAN, results()))
    yield made
    made.parts["trials"].close()


def test_a_person_tries_a_query_and_finds_a_configuration(serve: Any, tab: Any, opened: Any) -> None:
    shown = tab(serve(opened) + "/")
    page = shown.page
    page.get_by_label("Workbench").get_by_role("link", name="Experiment").click()
    page.get_by_role("link", name="Try a query").click()
    expect(page.locator("h1")).to_have_text("Try a query")
    page.get_by_label("Topic", exact=True).fill("t05")
    with page.expect_navigation():
        page.get_by_label("stemmer").select_option("english")
    page.get_by_label("title_weight").fill("3")
    page.get_by_label("Query", exact=True).fill("greatest divisors in common")
    page.get_by_role("button", name="Try").click()
    lists = page.locator("main ol")
    expect(lists).to_have_count(2)
    expect(lists.nth(1)).to_contain_text("math.gcd")
    expect(page.locator("main pre")).to_contain_text("title_weight = [1.0, 3.0]")
    expect(page.get_by_label("stemmer")).to_have_value("english")
    shown.accessible()
    shown.fits()
    with page.expect_navigation():
        page.get_by_label("Engine").select_option("trigrams")
    expect(page.get_by_label("stemmer")).to_have_count(0)  # the pipeline says what it is
    expect(page.locator("main ol")).to_have_count(2)
    page.get_by_role("link", name="As the control").click()
    expect(page.get_by_label("title_weight")).to_have_value("1")
    shown.clean()


@pytest.mark.parametrize("width", [375, 1280])
def test_conclusions_lead_to_the_comparison_with_the_control(serve: Any, tab: Any, opened: Any, width: int) -> None:
    shown = tab(serve(opened) + "/experiment?by=query_class", width=width)
    page = shown.page
    expect(page.locator("h1")).to_have_text("Experiment")
    page.wait_for_selector("html[data-drawn]", timeout=60_000)
    shown.accessible()
    shown.fits()
    topics = page.get_by_role("region", name="Topics that show it most").get_by_role("link")
    assert "first=control&second=stemmer%3Denglish" in topics.first.get_attribute("href")
    page.get_by_role("link", name="stemmer=english", exact=True).first.click()
    expect(page.locator("main")).to_contain_text("stemmer=english")
    assert "/compare?first=control&second=stemmer%3Denglish" in page.url
    shown.clean()


def test_twins_are_the_answers_of_python(opened: Any) -> None:
    client = TestClient(make_app(opened), base_url="http://127.0.0.1")
    told = client.get("/api/v1/experiment").json()
    queries = {topic: opened.query(topic) for topic in opened.query_ids}
    answer = conclude(results(), queries=queries).to_dict()
    assert told["sentences"] == answer["sentences"]
    assert told["leaderboard"] == answer["leaderboard"]
    asked = {"topic": "t05", "setting": ["stemmer", "title_weight"], "value": ["english", "3"]}
    tried = client.get("/api/v1/experiment/try", params=asked).json()
    direct = opened.parts["trials"].attempt("t05", {"stemmer": "english", "title_weight": "3"})
    assert tried["documents"] == direct.to_dict()["documents"]
    assert tried["toml"] == direct.toml


@pytest.mark.parametrize(
    "path",
    [
        "/experiment?measure=nDGC",
        "/experiment?by=nothing",
        "/experiment/try?setting=k1",
        "/experiment/try?setting=rewrite&value=os:system",
        "/experiment/try?setting=title_weight&value=high",
        "/experiment/try?topic=none",
        "/experiment/try?engine=http",
    ],
)
def test_what_makes_no_sense_is_a_problem_and_no_fault(opened: Any, path: str) -> None:
    client = TestClient(make_app(opened), base_url="http://127.0.0.1")
    page, twin = client.get(path), client.get(f"/api/v1{path}")
    assert (page.status_code, twin.status_code) == (400, 400)
    assert 'role="alert"' in page.text
    assert twin.json()["fix"]


def test_without_a_plan_or_results_pages_say_what_to_do() -> None:
    nothing = TestClient(make_app(open_workspace({"q": {"d": 1}}, {})), base_url="http://127.0.0.1")
    for path in ("/experiment", "/experiment/try"):
        assert "judged serve --experiment" in nothing.get(path).text
        assert nothing.get(f"/api/v1{path}").status_code == 400
    planned = TestClient(make_app(open_workspace(**of_plan(PLAN))), base_url="http://127.0.0.1")
    assert "judged experiment run" in planned.get("/experiment").text
    names = [row["configuration"] for row in planned.get("/api/v1/experiment").json()["configurations"]]
    assert names == [one.name for one in Plan.of(PLAN).configurations]
