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
    added,
    now_ms,
    open_document,
    page_of,
    saved,
)

SHOWN = Action("query", 1, "faust", rank=1, shown=("a", "b"), at=10)
NEXT = Action("query", 2, "faust", rank=3, shown=("c",), at=20)
OPEN = Action("click", 1, doc_id="b", rank=2, at=30)


def test_usual_values_of_an_action() -> None:
    assert Action("save") == Action("save", 0, None, None, None, None, None, 0)


def test_pages_by_number_and_the_last_one() -> None:
    assert page_of(()) is None
    assert page_of((OPEN,)) is None
    assert page_of((SHOWN, NEXT, OPEN)) == NEXT
    assert page_of((SHOWN, NEXT, OPEN), 1) == SHOWN
    assert page_of((SHOWN, NEXT), 3) is None
    again = SHOWN._replace(at=40)
    assert page_of((SHOWN, NEXT, again), 1) == again
    assert page_of((SHOWN, NEXT, OPEN._replace(page=4)), 4) is None


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
    assert open_document(actions) == expected


def test_documents_that_are_kept() -> None:
    one, other = (Action("save", 1, doc_id="b", value=value) for value in (1.0, 2.0))
    assert saved((one, Action("save", 1, doc_id="a"), other)) == {"b": other, "a": Action("save", 1, doc_id="a")}
    assert saved((Action("unsave", 1, doc_id="b"), one, OPEN)) == {"b": one}


@pytest.mark.parametrize(
    ("before", "new", "adds"),
    [
        ((), SHOWN._replace(page=7, at=0), [SHOWN._replace(page=1, at=0)]),
        ((SHOWN,), NEXT._replace(page=0, at=5), [NEXT._replace(page=2, at=11)]),  # 1 after what was last
        ((SHOWN,), NEXT._replace(page=0, at=11), [NEXT._replace(page=2, at=11)]),
        ((SHOWN,), NEXT._replace(page=0, at=12), [NEXT._replace(page=2, at=12)]),
        ((SHOWN,), SHOWN._replace(shown=("b", "a"), at=12), [SHOWN._replace(page=2, shown=("b", "a"), at=12)]),
        ((SHOWN, NEXT), SHOWN._replace(at=50), [SHOWN._replace(page=3, at=50)]),  # page 2 was the last one
        ((SHOWN, OPEN), NEXT._replace(at=1030),
         [Action("back", 1, doc_id="b", rank=2, value=1.0, at=1030), NEXT._replace(page=2, at=1031)]),
        ((SHOWN, OPEN), SHOWN._replace(at=2530), [Action("back", 1, doc_id="b", rank=2, value=2.5, at=2530)]),
        ((SHOWN, OPEN), OPEN._replace(at=40), []),
        ((SHOWN, OPEN), OPEN._replace(page=2, at=40), [OPEN._replace(page=2, at=40)]),
        ((SHOWN, OPEN), OPEN._replace(doc_id="a", at=40), [OPEN._replace(doc_id="a", at=40)]),
        ((SHOWN,), Action("back", 1, doc_id="b", at=40), []),
        ((SHOWN, OPEN), Action("back", 1, doc_id="b", value=0.0, at=5030),
         [Action("back", 1, doc_id="b", rank=2, value=0.0, at=5030)]),
        ((SHOWN,), Action("save", 1, doc_id="b", value=1.0, at=40), [Action("save", 1, doc_id="b", value=1.0, at=40)]),
        ((Action("save", 1, doc_id="b", value=1.0),), Action("save", 1, doc_id="b", value=2.0, at=40),
         [Action("save", 1, doc_id="b", value=2.0, at=40)]),
        ((Action("save", 1, doc_id="b", value=1.0),), Action("save", 1, doc_id="b", value=1.0, at=40), []),
        ((Action("save", 1, doc_id="b", value=1.0),), Action("unsave", 1, doc_id="b", at=40),
         [Action("unsave", 1, doc_id="b", at=40)]),
        ((Action("save", 1, doc_id="b"),), Action("unsave", 1, doc_id="a", at=40), []),
    ],
)  # fmt: skip
def test_each_action_that_is_added(before: tuple[Action, ...], new: Action, adds: list[Action]) -> None:
    assert added(before, new) == tuple(adds)


def test_the_tables_of_a_store() -> None:
    tables = schema.metadata.tables
    keys = {name: [column.name for column in table.primary_key] for name, table in tables.items()}
    trial = ["participant", "position"]
    assert keys == {
        "study": ["name"], "participants": ["participant"], "assignments": trial, "steps": ["participant", "step"],
        "answers": [*trial, "system", "questionnaire", "item"],
        "preferences": ["participant", "query_id", "left", "right"], "actions": [*trial, "number"], "notes": ["note"],
    }  # fmt: skip
    optional = {(name, column.name) for name, table in tables.items() for column in table.c if column.nullable}
    assert optional == {("answers", "value"), *(("actions", name) for name in ("query", "doc_id", "rank", "value",
                                                                              "shown"))}  # fmt: skip
    counted = {(name, column.name): column.autoincrement for name, table in tables.items() for column in table.c}
    assert [place for place, given in counted.items() if given is True] == [("notes", "note")]
    assert {given for place, given in counted.items() if place[1] not in {"note", "query", "doc_id", "rank", "value",
                                                                         "shown"}} == {False}  # fmt: skip
    assert schema.LAYOUT[:2] == (schema.about, 1)


def store() -> StudyStore:
    made = StudyStore.open("sqlite://", "design", new=True)
    made.enroll(
        {"participant": who, "group": group, "position": position, "query_id": f"q{position}", "system": "s",
         "variant": "v", "practice": position == 1}
        for who, group in (("p3", "y"), ("p1", "x"), ("p2", "y"), ("p4", "x"), ("p5", "y")) for position in (1, 2)
    )  # fmt: skip
    return made


def test_participants_by_group_and_number() -> None:
    made = store()
    assert list(made.participants().items()) == [
        ("p1", Participant("x", 0)), ("p4", Participant("x", 1)), ("p3", Participant("y", 0)),
        ("p2", Participant("y", 1)), ("p5", Participant("y", 2)),
    ]  # fmt: skip
    assert [row["position"] for row in made.trials("p2")] == [1, 2]
    assert made.trials("p2")[0] == {"participant": "p2", "position": 1, "query_id": "q1", "system": "s",
                                    "variant": "v", "practice": True}  # fmt: skip
    assert made.trials("nobody") == []
    who, _, signed = made.token("p1").partition("-")
    assert (who, len(signed), int(signed, 16) > 0) == ("p1", 24, True)
    assert made.participant_of(made.token("p1")) == "p1"
    assert made.participant_of(made.token(OBSERVER)) == OBSERVER
    assert made.participant_of(made.token("p9")) is None  # signed, and of nobody
    assert made.participant_of(made.token("p1")[:-1]) is None
    with pytest.raises(InputError, match="holds no answers"):
        StudyStore.open("sqlite://")


def test_secrets_and_connections_of_a_store() -> None:
    made = store()
    assert len(made.secret) == 24 * 8 / 6  # 24 random bytes in an alphabet of 64 characters
    assert made.secret != store().secret
    shown = repr(made)
    assert made.secret not in shown
    assert "engine" not in shown
    assert made.where in shown
    pool = made.engine.pool
    made.close()
    assert made.engine.pool is not pool
    assert abs(now_ms() - 1000 * time.time()) < 10_000
    records = StudyRecords.of({"participants": [{"participant": "p"}], "trials": []})
    assert repr(records) == "StudyRecords(where='<study>', notes=())"


def test_everything_that_is_recorded() -> None:
    made, before = store(), now_ms()
    answer = {"questionnaire": "ease", "item": "1"}
    assert made.finish("p1", "consent", [{**answer, "value": 4.0}, {**answer, "item": "name", "text": "Ann",
                                                                   "personal": True}])  # fmt: skip
    for step in ("task-1", "search-1", "task-2"):
        assert made.finish("p1", step) is True
        assert made.finish("p1", step) is False
    for action in (SHOWN._replace(page=0), OPEN, Action("save", 1, doc_id="b", rank=2, value=2.0, at=40)):
        made.act("p1", 1, action)
    made.act("p1", 2, SHOWN._replace(at=0))
    made.act("p2", 1, SHOWN)  # has not begun
    made.note("p1", 1, "first")
    made.note("p1", 2, "second\0")
    made.note("p2", 1, "of another")
    assert [(row["position"], row["text"]) for row in made.notes("p1")] == [(1, "first"), (2, "second\ufffd")]
    steps = made.steps("p1")
    assert list(steps) == sorted(steps) == ["consent", "search-1", "task-1", "task-2"]
    assert all(before <= at <= now_ms() for at in steps.values())
    assert made.steps("p2") == {}
    records = made.records()
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
    both = made.records(personal=True)["answers"].to_pylist()
    assert [(row["item"], row["value"], row["text"]) for row in both] == [("1", 4.0, None), ("name", None, "Ann")]
    assert tables["saved"] == [{"participant": "p1", "position": 1, "doc_id": "b", "grade": 2.0, "at": 40}]
    assert [(row["position"], row["action"], row["page"], row["at"]) for row in tables["events"][:3]] == [
        (1, "query", 1, 10), (1, "click", 1, 30), (1, "save", 1, 40),
    ]  # fmt: skip
    assert tables["events"][0]["shown"] == ["a", "b"]
    assert before <= tables["events"][3]["at"] <= now_ms()  # without a time of its own it has that of the clock
    ends = [(row["position"], row["at"]) for row in tables["events"] if row["action"] == "end"]
    assert ends == [(1, steps["search-1"])]
    assert [row["text"] for row in tables["notes"]] == ["first", "second\ufffd"]
    assert made.actions("p1", 1)[0] == SHOWN
    assert made.actions("p1", 3) == ()


def test_tables_and_keys_of_records() -> None:
    assert {name: schema_.names for name, schema_ in TABLES.items()}["trials"] == [
        "participant", "position", "query_id", "system", "variant", "practice", "started", "ended",
    ]  # fmt: skip
    assert set(KEYS) == set(TABLES) - {"notes", "events"}
    whole = {"participants": [{"participant": "p"}],
             "trials": [{"participant": "p", "position": at, "query_id": "t", "system": name}
                        for at, name in ((1, "b"), (2, "a"), (3, "b"))]}  # fmt: skip
    made = StudyRecords.of(whole)
    assert made.systems == ("a", "b")
    assert made["answers"].num_rows == 0
    assert made.by_trial("answers") == {}
    row = made["trials"].to_pylist()[0]
    assert (row["variant"], row["practice"], row["started"], row["ended"]) == ("", False, None, None)
    rows = made.by_trial("trials")
    assert list(rows) == [("p", 1), ("p", 2), ("p", 3)]
    answer = {"participant": "p", "questionnaire": "q", "item": "1", "value": 1.0}
    of = StudyRecords.of({**whole, "answers": [{**answer, "position": 0}, {**answer, "position": 3}]})
    assert of["answers"]["position"].to_pylist() == [0, 3]
    for position in (4, -1):
        with pytest.raises(InputError, match=f"answers: p has no trial at position {position}"):
            StudyRecords.of({**whole, "answers": [{**answer, "position": position}]})
    pair = {"participant": "p", "query_id": "t", "left": "a", "right": "b"}
    for preferred in ("a", "b", "", None):
        StudyRecords.of({**whole, "preferences": [{**pair, "preferred": preferred}]})
    for wrong in ({"right": ""}, {"left": ""}, {"left": "b"}):
        with pytest.raises(InputError, match="was not shown two systems"):
            StudyRecords.of({**whole, "preferences": [{**pair, **wrong}]})
