"""Records of a store in memory: pages, numbers of actions, ended trials, and seconds, by hand."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from judged.studies import schema
from judged.studies.storage import Action, StudyStore, added

SHOWN = Action("query", query="faust", rank=1, shown=("a", "b"))
OTHER = SHOWN._replace(query="goethe")


def store() -> StudyStore:
    made = StudyStore.open("sqlite://", "design", new=True)
    made.enroll(
        {"participant": f"p{person}", "group": group, "position": position, "query_id": f"q{position}", "system": "s",
         "variant": "", "practice": position == 1}
        for person, group in ((1, "x"), (2, "y"), (3, "x")) for position in (1, 2)
    )  # fmt: skip
    return made


def test_pages_and_numbers_of_actions_are_consecutive() -> None:
    made = store()
    for at, action in enumerate((SHOWN, Action("click", 1, doc_id="b", rank=2), OTHER, SHOWN), 1):
        found = made.act("p1", 2, action._replace(at=1000 * at))
    assert [(one.action, one.page, one.at) for one in found] == [
        ("query", 1, 1000), ("click", 1, 2000), ("back", 1, 3000), ("query", 2, 3001), ("query", 3, 4000),
    ]  # fmt: skip
    with made.engine.connect() as connection:
        assert sorted(connection.execute(select(schema.actions.c.number)).scalars()) == [1, 2, 3, 4, 5]
    assert [one.value for one in found] == [None, None, 1.0, None, None]
    assert made.act("p1", 2, SHOWN._replace(at=9000)) == found  # the same page again


def test_trials_that_were_begun_and_ended() -> None:
    made = store()
    made.finish("p1", "task-1")
    made.finish("p1", "search-1")
    made.finish("p1", "task-2")
    made.act("p1", 1, SHOWN._replace(at=5))
    made.act("p1", 1, Action("save", 1, doc_id="b", rank=2, value=1.0, at=6))
    made.act("p1", 1, Action("save", 1, doc_id="a", rank=1, value=2.0, at=7))
    made.act("p1", 1, Action("unsave", 1, doc_id="b", at=8))
    records = made.records()
    trials = {row["position"]: row for row in records["trials"].to_pylist()}
    assert set(trials) == {1, 2}
    assert trials[2]["ended"] is None
    assert trials[1]["ended"] >= trials[1]["started"]
    events = records["events"].to_pylist()
    assert [(row["action"], row["position"]) for row in events if row["action"] == "end"] == [("end", 1)]
    assert [(row["doc_id"], row["grade"]) for row in records["saved"].to_pylist()] == [("a", 2.0)]
    assert records["participants"]["participant"].to_pylist() == ["p1"]  # the others have not begun


def test_answers_belong_to_their_questionnaires() -> None:
    made = store()
    row = {"position": 1, "questionnaire": "ease", "item": "1", "value": 5.0}
    answers: list[dict[str, Any]] = [
        row, {**row, "questionnaire": "trust", "value": 2.0}, {**row, "item": "2", "value": 3.0},
        {**row, "position": 2, "value": 4.0}, {**row, "item": "name", "text": "Ann", "value": None, "personal": True},
    ]  # fmt: skip
    made.finish("p1", "task-1")
    made.finish("p1", "task-2")
    made.finish("p1", "search-1", answers)
    found = {
        (one["position"], one["questionnaire"], one["item"]): one["value"]
        for one in made.records()["answers"].to_pylist()
    }
    assert found == {(1, "ease", "1"): 5, (1, "trust", "1"): 2, (1, "ease", "2"): 3, (2, "ease", "1"): 4}
    assert made.records(personal=True)["answers"].num_rows == 5


@pytest.mark.parametrize(("before", "value"), [(2.5, 2.5), (9.0, 4.0), (None, 4.0)])
def test_seconds_in_a_document_are_at_most_those_since_the_click(before: float | None, value: float) -> None:
    actions = (SHOWN._replace(page=1, at=1000), Action("click", 1, doc_id="b", rank=2, at=2000))
    (found,) = added(actions, Action("back", 1, doc_id="b", value=before, at=6000))
    assert (found.value, found.rank) == (value, 2)
    assert added(actions, Action("back", 1, doc_id="a", at=6000)) == ()
    assert added(actions, Action("back", 2, doc_id="b", at=6000)) == ()
    assert added(actions, Action("click", 1, doc_id="b", at=6000)) == ()
    (late,) = added(actions, Action("save", 1, doc_id="b", at=5))
    assert late.at == 2001
