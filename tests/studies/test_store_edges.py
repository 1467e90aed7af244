"""What an action adds, which page is shown and which document is open; the tables of a store and what they hold."""

from __future__ import annotations

import time
from typing import Any

import pytest

from judged.errors import InputError
from judged.studies import schema
from judged.studies.records import KEYS, TABLES, StudyRecords
from judged.studies.storage import (
    OBSERVER,
    Action,
    Participant,
    StudyStore,
    find_open_document,
    find_results_page,
    new_actions,
    now_ms,
    saved_documents,
)

SHOWN = Action("query", 1, "faust", rank=1, shown=("a", "b"), time=10)
NEXT = Action("query", 2, "faust", rank=3, shown=("c",), time=20)
OPEN = Action("click", 1, doc_id="b", rank=2, time=30)


def test_usual_values_of_an_action() -> None:
    assert Action("save") == Action("save", 0, None, None, None, None, None, 0)


def test_pages_by_number_and_the_last_one() -> None:
    assert find_results_page(()) is None
    assert find_results_page((OPEN,)) is None
    assert find_results_page((SHOWN, NEXT, OPEN)) == NEXT
    assert find_results_page((SHOWN, NEXT, OPEN), 1) == SHOWN
    assert find_results_page((SHOWN, NEXT), 3) is None
    again = SHOWN._replace(time=40)
    assert find_results_page((SHOWN, NEXT, again), 1) == again
    assert find_results_page((SHOWN, NEXT, OPEN._replace(page=4)), 4) is None


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ((), None),
        ((SHOWN,), None),
        ((SHOWN, OPEN), OPEN),
        ((SHOWN, OPEN, Action("save", 1, doc_id="b")), OPEN),
        ((SHOWN, OPEN, Action("unsave", 1, doc_id="b")), OPEN),
        ((SHOWN, OPEN, Action("back", 1, doc_id="b")), None),
        ((SHOWN, OPEN, NEXT), None),
        ((SHOWN, OPEN, OPEN._replace(doc_id="a")), OPEN._replace(doc_id="a")),
    ],
)
def test_which_document_is_open(actions: tuple[Action, ...], expected: Action | None) -> None:
    assert find_open_document(actions) == expected


def test_documents_that_are_kept() -> None:
    row, other = (Action("save", 1, doc_id="b", value=value) for value in (1.0, 2.0))
    assert saved_documents((row, Action("save", 1, doc_id="a"), other)) == {
        "b": other,
        "a": Action("save", 1, doc_id="a"),
    }
    assert saved_documents((Action("unsave", 1, doc_id="b"), row, OPEN)) == {"b": row}


@pytest.mark.parametrize(
    ("before", "new", "adds"),
    [
        ((), SHOWN._replace(page=7, time=0), [SHOWN._replace(page=1, time=0)]),
        ((SHOWN,), NEXT._replace(page=0, time=5), [NEXT._replace(page=2, time=11)]),  # 1 after what was last
        ((SHOWN,), NEXT._replace(page=0, time=11), [NEXT._replace(page=2, time=11)]),
        ((SHOWN,), NEXT._replace(page=0, time=12), [NEXT._replace(page=2, time=12)]),
        ((SHOWN,), SHOWN._replace(shown=("b", "a"), time=12), [SHOWN._replace(page=2, shown=("b", "a"), time=12)]),
        ((SHOWN, NEXT), SHOWN._replace(time=50), [SHOWN._replace(page=3, time=50)]),  # page 2 was the last one
        ((SHOWN, OPEN), NEXT._replace(time=1030),
         [Action("back", 1, doc_id="b", rank=2, value=1.0, time=1030), NEXT._replace(page=2, time=1031)]),
        ((SHOWN, OPEN), SHOWN._replace(time=2530), [Action("back", 1, doc_id="b", rank=2, value=2.5, time=2530)]),
        ((SHOWN, OPEN), OPEN._replace(time=40), []),
        ((SHOWN, OPEN), OPEN._replace(page=2, time=40), [OPEN._replace(page=2, time=40)]),
        ((SHOWN, OPEN), OPEN._replace(doc_id="a", time=40), [OPEN._replace(doc_id="a", time=40)]),
        ((SHOWN,), Action("back", 1, doc_id="b", time=40), []),
        ((SHOWN, OPEN), Action("back", 1, doc_id="b", value=0.0, time=5030),
         [Action("back", 1, doc_id="b", rank=2, value=0.0, time=5030)]),
        ((SHOWN,), Action("save", 1, doc_id="b", value=1.0, time=40),
         [Action("save", 1, doc_id="b", value=1.0, time=40)]),
        ((Action("save", 1, doc_id="b", value=1.0),), Action("save", 1, doc_id="b", value=2.0, time=40),
         [Action("save", 1, doc_id="b", value=2.0, time=40)]),
        ((Action("save", 1, doc_id="b", value=1.0),), Action("save", 1, doc_id="b", value=1.0, time=40), []),
        ((Action("save", 1, doc_id="b", value=1.0),), Action("unsave", 1, doc_id="b", time=40),
         [Action("unsave", 1, doc_id="b", time=40)]),
        ((Action("save", 1, doc_id="b"),), Action("unsave", 1, doc_id="a", time=40), []),
    ],
)  # fmt: skip
def test_each_action_that_is_added(before: tuple[Action, ...], new: Action, adds: list[Action]) -> None:
    assert new_actions(before, new) == tuple(adds)


def test_the_tables_of_a_store() -> None:
    tables = schema.metadata.tables
    keys = {name: [column.name for column in table.primary_key] for name, table in tables.items()}
    trial = ["participant", "position"]
    assert keys == {
        "study": ["name"], "participants": ["participant"], "assignments": trial, "steps": ["participant", "step"],
        "answers": [*trial, "system", "questionnaire", "item"],
        "preferences": ["participant", "query_id", "left", "right"], "actions": [*trial, "number"], "notes": ["note"],
        "weights": [*trial, "page", "term"],
    }  # fmt: skip
    optional = {(name, column.name) for name, table in tables.items() for column in table.c if column.nullable}
    assert optional == {("answers", "value"), *(("actions", name) for name in ("query", "doc_id", "rank", "value",
                                                                              "shown"))}  # fmt: skip
    counted = {(name, column.name): column.autoincrement for name, table in tables.items() for column in table.c}
    assert [place for place, is_autoincrement in counted.items() if is_autoincrement is True] == [("notes", "note")]
    nullable = {"note", "query", "doc_id", "rank", "value", "shown"}
    assert {autoincrement for (_, column), autoincrement in counted.items() if column not in nullable} == {False}
    assert schema.LAYOUT[:2] == (schema.about, 1)


def store() -> StudyStore:
    study_store = StudyStore.open("sqlite://", "design", new=True)
    study_store.enroll(
        {"participant": name, "group": group, "position": position, "query_id": f"q{position}", "system": "s",
         "variant": "v", "practice": position == 1}
        for name, group in (("p3", "y"), ("p1", "x"), ("p2", "y"), ("p4", "x"), ("p5", "y")) for position in (1, 2)
    )  # fmt: skip
    return study_store


def test_participants_by_group_and_number() -> None:
    study_store = store()
    assert list(study_store.participants().items()) == [
        ("p1", Participant("x", 0)), ("p4", Participant("x", 1)), ("p3", Participant("y", 0)),
        ("p2", Participant("y", 1)), ("p5", Participant("y", 2)),
    ]  # fmt: skip
    assert [row["position"] for row in study_store.trials("p2")] == [1, 2]
    assert study_store.trials("p2")[0] == {"participant": "p2", "position": 1, "query_id": "q1", "system": "s",
                                    "variant": "v", "practice": True}  # fmt: skip
    assert study_store.trials("nobody") == []
    participant, _, signed = study_store.token("p1").partition("-")
    assert (participant, len(signed), int(signed, 16) > 0) == ("p1", 24, True)
    assert study_store.find_participant(study_store.token("p1")) == "p1"
    assert study_store.find_participant(study_store.token(OBSERVER)) == OBSERVER
    assert study_store.find_participant(study_store.token("p9")) is None  # signed, and of nobody
    assert study_store.find_participant(study_store.token("p1")[:-1]) is None
    with pytest.raises(InputError, match="study links"):
        StudyStore.open("sqlite://")


def test_secrets_and_connections_of_a_store() -> None:
    study_store = store()
    assert len(study_store.secret) == 24 * 8 / 6  # 24 random bytes in an alphabet of 64 characters
    assert study_store.secret != store().secret
    representation = repr(study_store)
    assert study_store.secret not in representation
    assert "engine" not in representation
    assert study_store.where in representation
    pool = study_store.engine.pool
    study_store.close()
    assert study_store.engine.pool is not pool
    assert abs(now_ms() - 1000 * time.time()) < 10_000
    records = StudyRecords.of({"participants": [{"participant": "p"}], "trials": []})
    assert repr(records) == "StudyRecords(where='<study>', notes=())"


def test_everything_that_is_recorded() -> None:
    study_store, before = store(), now_ms()
    answer = {"questionnaire": "ease", "item": "1"}
    answers = [{**answer, "value": 4.0}, {**answer, "item": "name", "text": "Ann", "personal": True}]
    assert study_store.complete_step("p1", "consent", answers)
    for step in ("task-1", "search-1", "task-2"):
        assert study_store.complete_step("p1", step) is True
        assert study_store.complete_step("p1", step) is False
    for action in (SHOWN._replace(page=0), OPEN, Action("save", 1, doc_id="b", rank=2, value=2.0, time=40)):
        study_store.record_action("p1", 1, action)
    study_store.record_action("p1", 2, SHOWN._replace(time=0))
    study_store.record_action("p2", 1, SHOWN)  # has not begun
    study_store.add_note("p1", 1, "first")
    study_store.add_note("p1", 2, "second\0")
    study_store.add_note("p2", 1, "of another")
    assert [(row["position"], row["text"]) for row in study_store.notes("p1")] == [(1, "first"), (2, "second\ufffd")]
    steps = study_store.steps("p1")
    assert list(steps) == sorted(steps) == ["consent", "search-1", "task-1", "task-2"]
    assert all(before <= i <= now_ms() for i in steps.values())
    assert study_store.steps("p2") == {}
    records = study_store.records()
    tables: dict[str, list[dict[str, Any]]] = {name: records[name].to_pylist() for name in TABLES}
    assert tables["participants"] == [{"participant": "p1", "group": "x"}]
    trial = {"participant": "p1", "system": "s", "variant": "v"}
    assert tables["trials"] == [
        {**trial, "position": 1, "query_id": "q1", "practice": True, "started": steps["task-1"],
         "ended": steps["search-1"]},
        {**trial, "position": 2, "query_id": "q2", "practice": False, "started": steps["task-2"], "ended": None},
    ]  # fmt: skip
    assert tables["answers"] == [{"participant": "p1", "position": 0, "system": "", "questionnaire": "ease",
                                  "item": "1", "value": 4.0, "text": None}]  # fmt: skip
    both = study_store.records(personal=True)["answers"].to_pylist()
    assert [(row["item"], row["value"], row["text"]) for row in both] == [("1", 4.0, None), ("name", None, "Ann")]
    assert tables["saved"] == [{"participant": "p1", "position": 1, "doc_id": "b", "grade": 2.0, "time": 40}]
    assert [(row["position"], row["action"], row["page"], row["time"]) for row in tables["events"][:3]] == [
        (1, "query", 1, 10), (1, "click", 1, 30), (1, "save", 1, 40),
    ]  # fmt: skip
    assert tables["events"][0]["shown"] == ["a", "b"]
    assert before <= tables["events"][3]["time"] <= now_ms()  # without a time of its own it has that of the clock
    ends = [(row["position"], row["time"]) for row in tables["events"] if row["action"] == "end"]
    assert ends == [(1, steps["search-1"])]
    assert [row["text"] for row in tables["notes"]] == ["first", "second\ufffd"]
    assert study_store.actions("p1", 1)[0] == SHOWN
    assert study_store.actions("p1", 3) == ()


def test_tables_and_keys_of_records() -> None:
    assert {name: schema_.names for name, schema_ in TABLES.items()}["trials"] == [
        "participant", "position", "query_id", "system", "variant", "practice", "started", "ended",
    ]  # fmt: skip
    assert set(KEYS) == set(TABLES) - {"notes", "events"}
    tables = {"participants": [{"participant": "p"}],
             "trials": [{"participant": "p", "position": i, "query_id": "t", "system": name}
                        for i, name in ((1, "b"), (2, "a"), (3, "b"))]}  # fmt: skip
    study_records = StudyRecords.of(tables)
    assert study_records.systems == ("a", "b")
    assert study_records["answers"].num_rows == 0
    assert study_records.by_trial("answers") == {}
    row = study_records["trials"].to_pylist()[0]
    assert (row["variant"], row["practice"], row["started"], row["ended"]) == ("", False, None, None)
    rows = study_records.by_trial("trials")
    assert list(rows) == [("p", 1), ("p", 2), ("p", 3)]
    answer = {"participant": "p", "questionnaire": "q", "item": "1", "value": 1.0}
    of = StudyRecords.of({**tables, "answers": [{**answer, "position": 0}, {**answer, "position": 3}]})
    assert of["answers"]["position"].to_pylist() == [0, 3]
    for position in (4, -1):
        with pytest.raises(InputError, match=f"answers: p has no trial at position {position}"):
            StudyRecords.of({**tables, "answers": [{**answer, "position": position}]})
    pair = {"participant": "p", "query_id": "t", "left": "a", "right": "b"}
    for preferred in ("a", "b", "", None):
        StudyRecords.of({**tables, "preferences": [{**pair, "preferred": preferred}]})
    for wrong in ({"right": ""}, {"left": ""}, {"left": "b"}):
        with pytest.raises(InputError, match="two different systems"):
            StudyRecords.of({**tables, "preferences": [{**pair, **wrong}]})
