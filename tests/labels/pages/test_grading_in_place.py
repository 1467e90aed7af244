"""Trial grades on the page of a topic: effect on measures, and saving as a label."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient

from judged import evaluate
from judged.errors import InputError
from judged.interface.pages.workspace import WorkspaceHolder, open_workspace
from judged.web.app import make_app
from label_stores import QRELS, RUNS, counted, store_of, workspace_of

if TYPE_CHECKING:
    from pathlib import Path

    from judged.labels.store import LabelStore


@pytest.fixture
def store(tmp_path: Path) -> LabelStore:
    return store_of(tmp_path / "labels.db")


@pytest.fixture
def client(store: LabelStore) -> TestClient:
    return TestClient(make_app(workspace_of(store)), follow_redirects=False)


def test_a_trial_grade_changes_measures_and_saves_nothing(store: LabelStore, client: TestClient) -> None:
    changes = client.get("/api/v1/topic?topic=q1&doc_id=d2&grade=3&measure=nDCG@10").json()["regraded"]
    before, after = (
        evaluate({**QRELS, "q1": qrels}, RUNS, "nDCG@10") for qrels in (QRELS["q1"], {"d1": 2.0, "d2": 3.0})
    )
    assert {row["run"] for row in changes} == {"mine", "other"}
    for row in changes:
        if row["measure"] == "nDCG@10":  # d2 is first in mine, and missing in other
            assert (row["before"], row["after"]) == pytest.approx((score(before, row["run"]), score(after, row["run"])))
    with pytest.raises(InputError, match="no labels"):
        store.labels()


def test_saved_grades_change_all_runs(store: LabelStore, client: TestClient) -> None:
    url = "/api/v1/topic?topic=q1&measure=AP"
    assert "regraded" not in client.get(url).json()
    store.add("ann", "q1", "d2", 1.0)
    store.add("bob", "q1", "d2", 3.0)  # the last one counts
    store.add("ann", "q1", "d1", 2.0)  # equal to the judgment
    store.add("ann", "q1", "d5", None)  # skipped
    result = client.get(url).json()
    assert result["saved_grades"] == {"d2": 3.0}
    after = evaluate({**QRELS, "q1": {"d1": 2.0, "d2": 3.0}}, RUNS, "AP").aggregate()
    assert {row["run"]: row["after"] for row in result["regraded_runs"]} == pytest.approx(
        {run: values["AP"] for run, values in after.items()}
    )
    trial_rows = client.get(f"{url}&doc_id=d1&grade=0").json()["regraded_runs"]
    after = evaluate({**QRELS, "q1": {"d1": 0.0, "d2": 3.0}}, RUNS, "AP").aggregate()
    assert {row["run"]: row["after"] for row in trial_rows} == pytest.approx(
        {run: values["AP"] for run, values in after.items()}
    )
    page = client.get("/topic?topic=q1&measure=AP").text
    assert "Scores with 1 saved grade" in page
    assert "Save as a label" not in page


def test_a_grade_that_changes_the_order_of_the_runs(store: LabelStore) -> None:
    qrels, runs = {"q1": {"d1": 1.0}, "q2": {"d3": 1.0}}, {"a": {"q1": ["d1"]}, "b": {"q1": ["d2"]}, "c": {"q2": ["x"]}}
    client = TestClient(make_app(replace(open_workspace(qrels, runs), labels=store)))
    url = "topic?topic=q1&measure=P@1"
    improved = client.get(f"/api/v1/{url}&doc_id=d2&grade=1").json()["regraded_runs"]
    assert [(row["run"], row["before"], row["after"], row["rank"], row["rank_after"]) for row in improved] == [
        ("b", 0, 0.5, 2, 2)
    ]  # a also has 0.5, and is the first run
    store.add("ann", "q1", "d2", 1.0)
    changed = client.get(f"/api/v1/{url}&doc_id=d1&grade=0").json()["regraded_runs"]
    assert [(row["run"], row["after"], row["rank"], row["rank_after"]) for row in changed] == [
        ("b", 0.5, 2, 1),
        ("a", 0, 1, 2),
    ]
    assert "with 1 saved grade" in client.get(f"/{url}&doc_id=d1&grade=0").text


def score(scores: Any, run: str) -> float:
    return float(scores.per_topic()[run]["nDCG@10"]["q1"])


def test_a_saved_grade_is_a_label(store: LabelStore, client: TestClient) -> None:
    page = client.get("/topic?topic=q1&doc_id=d2&grade=3").text
    assert 'data-grade="3"' in page
    back = re.search(r'name="back" value="([^"]*)"', page)
    assert back is not None
    form = {"topic": "q1", "doc_id": "d2", "grade": "3", "judge": "ann", "back": back[1].replace("&amp;", "&")}
    location = client.post("/judging/label", data=form).headers["location"]
    assert location.startswith("/topic?")
    assert "The grade is saved as a label" in client.get(location).text
    assert counted(store, "ann") == {"d2": 3.0}
    assert "data-grade" not in client.get("/topic?topic=q2").text  # the store does not know this topic


def test_other_topics_with_the_same_id_cannot_be_graded(store: LabelStore, sample: Any) -> None:
    store.add_topics({"t01": "another question of the same id"})
    holder = WorkspaceHolder(workspace_of(store))
    holder.replace(sample)
    assert holder.workspace.labels is store
    assert "data-grade" not in TestClient(make_app(holder.workspace)).get("/topic?topic=t01").text
