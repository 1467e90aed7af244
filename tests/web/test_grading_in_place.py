"""A grade that is tried on the page of a topic: the measures move, and it becomes a label when it is saved."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient

from judged import evaluate
from judged.errors import InputError
from judged.web.app import make_app
from judged.web.desk import Desk
from web.judged_store import QRELS, RUNS, counted, store_of, workspace_of

if TYPE_CHECKING:
    from pathlib import Path

    from judged.labels.store import LabelStore


@pytest.fixture
def store(tmp_path: Path) -> LabelStore:
    return store_of(tmp_path / "labels.db")


@pytest.fixture
def tried(store: LabelStore) -> TestClient:
    return TestClient(make_app(workspace_of(store)), follow_redirects=False)


def test_another_grade_moves_the_topic_and_saves_nothing(store: LabelStore, tried: TestClient) -> None:
    moved = tried.get("/api/v1/topic?topic=q1&doc_id=d2&grade=3&measure=nDCG@10").json()["regraded"]
    before, after = (
        evaluate({**QRELS, "q1": qrels}, RUNS, "nDCG@10") for qrels in (QRELS["q1"], {"d1": 2.0, "d2": 3.0})
    )
    assert {row["run"] for row in moved} == {"mine", "other"}
    for row in moved:
        if row["measure"] == "nDCG@10":  # d2 stands first in mine, and other lacks it
            assert (row["before"], row["after"]) == pytest.approx((score(before, row["run"]), score(after, row["run"])))
    with pytest.raises(InputError, match="no labels"):
        store.labels()


def score(scores: Any, run: str) -> float:
    return float(scores.per_topic()[run]["nDCG@10"]["q1"])


def test_a_grade_in_place_becomes_a_label(store: LabelStore, tried: TestClient) -> None:
    page = tried.get("/topic?topic=q1&doc_id=d2&grade=3").text
    assert 'data-grade="3"' in page
    back = re.search(r'name="back" value="([^"]*)"', page)
    assert back is not None
    sent = {"topic": "q1", "doc_id": "d2", "grade": "3", "judge": "ann", "back": back[1].replace("&amp;", "&")}
    location = tried.post("/judging/label", data=sent).headers["location"]
    assert location.startswith("/topic?")
    assert "Saved as a label" in tried.get(location).text
    assert counted(store, "ann") == {"d2": 3.0}
    assert "data-grade" not in tried.get("/topic?topic=q2").text  # the store does not know this topic


def test_nothing_is_graded_into_labels_of_other_topics(store: LabelStore, sample: Any) -> None:
    store.add_topics({"t01": "another question of the same id"})
    desk = Desk(workspace_of(store))
    desk.replace(sample)
    assert desk.workspace.labels is store
    assert "data-grade" not in TestClient(make_app(desk.workspace)).get("/topic?topic=t01").text
