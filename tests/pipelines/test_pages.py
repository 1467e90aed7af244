"""Pages of an experiment in a browser: trying a query, and conclusions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect

from judged import evaluate
from judged.data import sample
from judged.interface.pages.workspace import open_workspace
from judged.pipelines.commands.serve import plan_arguments
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
    """Two runs of the sample as results of an experiment."""

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
def open_experiment() -> Any:
    workspace: Any = open_workspace(**plan_arguments(PLAN, results()))
    yield workspace
    workspace.parts["trials"].close()


def test_trying_a_query_in_the_browser(serve: Any, tab: Any, open_experiment: Any) -> None:
    browser_tab = tab(serve(open_experiment) + "/")
    page = browser_tab.page
    page.get_by_label("Workbench").get_by_role("link", name="Experiment").click()
    page.get_by_role("link", name="Try a query", exact=True).click()
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
    browser_tab.accessible()
    browser_tab.fits()
    with page.expect_navigation():
        page.get_by_label("Engine").select_option("trigrams")
    expect(page.get_by_label("stemmer")).to_have_count(0)  # the pipeline fixes the stemmer
    expect(page.locator("main ol")).to_have_count(2)
    page.get_by_role("link", name="Reset to the control").click()
    expect(page.get_by_label("title_weight")).to_have_value("1")
    browser_tab.clean()


@pytest.mark.parametrize("width", [375, 1280])
def test_conclusions_link_to_the_comparison_with_the_control(
    serve: Any, tab: Any, open_experiment: Any, width: int
) -> None:
    browser_tab = tab(serve(open_experiment) + "/experiment?by=query_class", width=width)
    page = browser_tab.page
    expect(page.locator("h1")).to_have_text("Experiment")
    page.wait_for_selector("html[data-charts-rendered]", timeout=60_000)
    browser_tab.accessible()
    browser_tab.fits()
    topics = page.get_by_role("region", name="Topics with the largest effects").get_by_role("link")
    assert "first=control&second=stemmer%3Denglish" in topics.first.get_attribute("href")
    page.get_by_role("link", name="stemmer=english", exact=True).first.click()
    expect(page.locator("main")).to_contain_text("stemmer=english")
    assert "/compare?first=control&second=stemmer%3Denglish" in page.url
    browser_tab.clean()


def test_json_agrees_with_python(open_experiment: Any) -> None:
    client = TestClient(make_app(open_experiment), base_url="http://127.0.0.1")
    experiment_json = client.get("/api/v1/experiment").json()
    queries = {topic: open_experiment.query(topic) for topic in open_experiment.query_ids}
    answer = conclude(results(), queries=queries).to_dict()
    assert experiment_json["sentences"] == answer["sentences"]
    assert experiment_json["leaderboard"] == answer["leaderboard"]
    params = {"topic": "t05", "setting": ["stemmer", "title_weight"], "value": ["english", "3"]}
    trial_json = client.get("/api/v1/experiment/try", params=params).json()
    trial = open_experiment.parts["trials"].attempt("t05", {"stemmer": "english", "title_weight": "3"})
    assert trial_json["documents"] == trial.to_dict()["documents"]
    assert trial_json["toml"] == trial.toml


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
def test_invalid_parameters_are_reported(open_experiment: Any, path: str) -> None:
    client = TestClient(make_app(open_experiment), base_url="http://127.0.0.1")
    page, json_response = client.get(path), client.get(f"/api/v1{path}")
    assert (page.status_code, json_response.status_code) == (400, 400)
    assert 'role="alert"' in page.text
    assert json_response.json()["fix"]


def test_pages_without_a_plan_explain_how_to_open_one() -> None:
    closed_client = TestClient(make_app(open_workspace({"q": {"d": 1}}, {})), base_url="http://127.0.0.1")
    for path in ("/experiment", "/experiment/try"):
        assert "judged serve --experiment" in closed_client.get(path).text
        assert closed_client.get(f"/api/v1{path}").status_code == 400
    plan_client = TestClient(make_app(open_workspace(**plan_arguments(PLAN))), base_url="http://127.0.0.1")
    assert "judged experiment run" in plan_client.get("/experiment").text
    names = [row["configuration"] for row in plan_client.get("/api/v1/experiment").json()["configurations"]]
    assert names == [configuration.name for configuration in Plan.of(PLAN).configurations]
