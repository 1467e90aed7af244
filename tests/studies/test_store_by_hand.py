"""Records of a store in memory: pages, numbers of actions, ended trials, and seconds, by hand."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from judged.studies import schema
from judged.studies.storage import Action, StudyStore, new_actions

SHOWN = Action("query", query="faust", rank=1, shown=("a", "b"))
OTHER = SHOWN._replace(query="goethe")


def store() -> StudyStore:
    study_store = StudyStore.open("sqlite://", "design", new=True)
    study_store.enroll(
        {"participant": f"p{person}", "group": group, "position": position, "query_id": f"q{position}", "system": "s",
         "variant": "", "practice": position == 1}
        for person, group in ((1, "x"), (2, "y"), (3, "x")) for position in (1, 2)
    )  # fmt: skip
    return study_store


def test_pages_and_numbers_of_actions_are_consecutive() -> None:
    study_store = store()
    for i, action in enumerate((SHOWN, Action("click", 1, doc_id="b", rank=2), OTHER, SHOWN), 1):
        actions = study_store.record_action("p1", 2, action._replace(time=1000 * i))
    assert [(row.action, row.page, row.time) for row in actions] == [
        ("query", 1, 1000), ("click", 1, 2000), ("back", 1, 3000), ("query", 2, 3001), ("query", 3, 4000),
    ]  # fmt: skip
    with study_store.engine.connect() as connection:
        assert sorted(connection.execute(select(schema.actions.c.number)).scalars()) == [1, 2, 3, 4, 5]
    assert [row.value for row in actions] == [None, None, 1.0, None, None]
    assert study_store.record_action("p1", 2, SHOWN._replace(time=9000)) == actions  # the same page again


def test_trials_that_were_begun_and_ended() -> None:
    study_store = store()
    study_store.complete_step("p1", "task-1")
    study_store.complete_step("p1", "search-1")
    study_store.complete_step("p1", "task-2")
    study_store.record_action("p1", 1, SHOWN._replace(time=5))
    study_store.record_action("p1", 1, Action("save", 1, doc_id="b", rank=2, value=1.0, time=6))
    study_store.record_action("p1", 1, Action("save", 1, doc_id="a", rank=1, value=2.0, time=7))
    study_store.record_action("p1", 1, Action("unsave", 1, doc_id="b", time=8))
    records = study_store.records()
    trials = {row["position"]: row for row in records["trials"].to_pylist()}
    assert set(trials) == {1, 2}
    assert trials[2]["ended"] is None
    assert trials[1]["ended"] >= trials[1]["started"]
    events = records["events"].to_pylist()
    assert [(row["action"], row["position"]) for row in events if row["action"] == "end"] == [("end", 1)]
    assert [(row["doc_id"], row["grade"]) for row in records["saved"].to_pylist()] == [("a", 2.0)]
    assert records["participants"]["participant"].to_pylist() == ["p1"]  # the others have not begun


def test_answers_belong_to_their_questionnaires() -> None:
    study_store = store()
    row = {"position": 1, "questionnaire": "ease", "item": "1", "value": 5.0}
    answers: list[dict[str, Any]] = [
        row, {**row, "questionnaire": "trust", "value": 2.0}, {**row, "item": "2", "value": 3.0},
        {**row, "position": 2, "value": 4.0}, {**row, "item": "name", "text": "Ann", "value": None, "personal": True},
    ]  # fmt: skip
    study_store.complete_step("p1", "task-1")
    study_store.complete_step("p1", "task-2")
    study_store.complete_step("p1", "search-1", answers)
    values = {
        (record["position"], record["questionnaire"], record["item"]): record["value"]
        for record in study_store.records()["answers"].to_pylist()
    }
    assert values == {(1, "ease", "1"): 5, (1, "trust", "1"): 2, (1, "ease", "2"): 3, (2, "ease", "1"): 4}
    assert study_store.records(personal=True)["answers"].num_rows == 5


@pytest.mark.parametrize(("before", "value"), [(2.5, 2.5), (9.0, 4.0), (None, 4.0)])
def test_seconds_in_a_document_are_at_most_those_since_the_click(before: float | None, value: float) -> None:
    actions = (SHOWN._replace(page=1, time=1000), Action("click", 1, doc_id="b", rank=2, time=2000))
    (action,) = new_actions(actions, Action("back", 1, doc_id="b", value=before, time=6000))
    assert (action.value, action.rank) == (value, 2)
    assert new_actions(actions, Action("back", 1, doc_id="a", time=6000)) == ()
    assert new_actions(actions, Action("back", 2, doc_id="b", time=6000)) == ()
    assert new_actions(actions, Action("click", 1, doc_id="b", time=6000)) == ()
    (late,) = new_actions(actions, Action("save", 1, doc_id="b", time=5))
    assert late.time == 2001
