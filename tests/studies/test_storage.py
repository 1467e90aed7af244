"""The store of a study: SQLite and PostgreSQL alike, what counts once, several tabs, and whose link it is."""

from __future__ import annotations

import sqlite3
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from judged.errors import InputError
from judged.labels import LabelStore
from judged.studies import StudyRecords
from judged.studies.assignment import assignments
from judged.studies.storage import OBSERVER, Action, StudyStore, new_actions
from pipelines.experiments.server import can_start_postgresql, postgresql
from study_made import design_in, hashed, store_of

SHOWN = Action("query", query="faust", rank=1, shown=("a", "b", "c"))


def done(store: StudyStore) -> StudyStore:
    """Let somebody do a task, and answer."""
    store.complete_step("p1", "consent", [{"questionnaire": "person", "item": "1", "text": "Ann", "personal": True}])
    for step in ("task-1", "task-2"):
        store.complete_step("p1", step)
    for action in (SHOWN, Action("click", 1, doc_id="b", rank=2), SHOWN, Action("save", 1, doc_id="b", rank=2)):
        store.record_action("p1", 1, action)
    store.complete_step("p1", "search-1", [{"position": 1, "questionnaire": "ease", "item": "1", "value": 5.0}])
    preference = {"query_id": "q1", "left": "alpha", "right": "beta", "preferred": "beta", "reason": "naïve ☃\0"}
    store.complete_step("p1", "preference-1", preferences=[preference])
    store.add_note("p1", 1, "hm")
    return store


def test_sqlite_and_postgresql_give_the_same_records(tmp_path: Path) -> None:
    if not can_start_postgresql():
        pytest.skip("no PostgreSQL server can be started here")
    design, tables = design_in(tmp_path), list[dict[str, object]]()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # the server runs as another user
        with postgresql(Path(folder) / "pg") as how:
            parts = dict(part.split("=", 1) for part in how.split())
            for where in (tmp_path / "store.db", f"postgresql://judged@/{parts['dbname']}?host={parts['host']}"):
                store = done(store_of(design, where, 3))
                assert list(store.participants()) == ["p1", "p2", "p3"]
                assert not store.complete_step("p1", "task-1")
                records = store.records()
                tables.append(
                    {name: [without_times(row) for row in records[name].to_pylist()] for name in records.tables}
                )
                store.close()
    assert tables[0] == tables[1]


def without_times(row: dict[str, object]) -> dict[str, object]:
    return {
        name: value is None if name in {"time", "started", "ended", "value"} else value for name, value in row.items()
    }


def test_what_is_recorded(tmp_path: Path) -> None:
    store = done(store_of(design_in(tmp_path), tmp_path / "store.db", 2))
    records = store.records()
    assert records["participants"]["participant"].to_pylist() == ["p1"]  # the other one never began
    first, second = records["trials"].to_pylist()
    assert first["ended"] >= first["started"]
    assert second["ended"] is None
    assert [row["action"] for row in records["events"].to_pylist()] == ["query", "click", "back", "save", "end"]
    (end,) = (row for row in records["events"].to_pylist() if row["action"] == "end")  # of the trial that has ended
    assert (end["participant"], end["position"], end["time"]) == ("p1", 1, first["ended"])
    assert [row["doc_id"] for row in records["saved"].to_pylist()] == ["b"]
    assert records["answers"]["questionnaire"].to_pylist() == ["ease"]
    assert store.records(personal=True)["answers"]["text"].to_pylist() == ["Ann", None]
    assert records["preferences"]["reason"].to_pylist() == ["naïve ☃\ufffd"]
    records.write(tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {f"{name}.jsonl" for name in records.tables}
    assert "Ann" not in "".join(path.read_text() for path in (tmp_path / "out").iterdir())
    again = StudyRecords.read(tmp_path / "out")
    assert all(again[name].num_rows == records[name].num_rows for name in records.tables)


def test_an_answer_stays_as_it_was_first_given(tmp_path: Path) -> None:
    store = store_of(design_in(tmp_path), tmp_path / "store.db", 1)
    answers = [[{"position": 0, "questionnaire": "ease", "item": "1", "value": value}] for value in (5.0, 1.0)]
    assert store.complete_step("p1", "questions-1-ease", answers[0])
    assert not store.complete_step("p1", "questions-1-ease", answers[1])
    assert store.records()["answers"]["value"].to_pylist() == [5.0]


@pytest.mark.parametrize(
    ("before", "new", "adds"),
    [
        ((), SHOWN, ["query"]),
        ((SHOWN,), SHOWN, []),
        ((SHOWN,), SHOWN._replace(rank=11), ["query"]),
        ((SHOWN,), SHOWN._replace(query="margarete"), ["query"]),
        ((SHOWN, "click a"), "click a", []),
        ((SHOWN, "click a"), "click b", ["click"]),
        ((SHOWN, "click a"), SHOWN, ["back"]),
        ((SHOWN, "click a"), SHOWN._replace(rank=11), ["back", "query"]),
        ((SHOWN, "click a", "back a"), "back a", []),
        ((SHOWN, "click a", "back a"), "click a", ["click"]),
        ((SHOWN, "click a"), "back b", []),
        ((SHOWN, "save a"), "save a", []),
        ((SHOWN, "save a"), "unsave a", ["unsave"]),
        ((SHOWN,), "unsave a", []),
        ((SHOWN, "save a", "unsave a"), "save a", ["save"]),
    ],
)
def test_what_an_action_adds(before: tuple[Action | str, ...], new: Action | str, adds: list[str]) -> None:
    actions: tuple[Action, ...] = ()
    for i, row in enumerate(map(action, before)):
        actions += new_actions(actions, row._replace(time=1000 * i))
    more = new_actions(actions, action(new)._replace(time=500))  # the clock was set back
    assert [row.action for row in more] == adds
    times = [row.time for row in actions + more]
    assert times == sorted(set(times))


def action(address: Action | str) -> Action:
    name, _, doc_id = address.partition(" ") if isinstance(address, str) else ("", "", "")
    return address if isinstance(address, Action) else Action(name, 1, doc_id=doc_id)


def test_pages_of_results_and_actions_are_numbered_from_1(tmp_path: Path) -> None:
    store = store_of(design_in(tmp_path), tmp_path / "store.db", 1)
    store.complete_step("p1", "task-1")
    for action in (
        SHOWN,
        Action("click", 1, doc_id="b", rank=2),
        SHOWN._replace(rank=11),
        Action("save", 2, doc_id="d"),
    ):
        actions = store.record_action("p1", 1, action)
    assert [(row.action, row.page) for row in actions] == [
        ("query", 1), ("click", 1), ("back", 1), ("query", 2), ("save", 2),
    ]  # fmt: skip
    assert store.actions("p1", 1) == actions
    assert store.actions("p1", 2) == ()
    with sqlite3.connect(tmp_path / "store.db") as connection:
        assert [number for (number,) in connection.execute("select number from actions order by number")] == [
            1, 2, 3, 4, 5,
        ]  # fmt: skip


def test_one_item_may_be_in_two_questionnaires(tmp_path: Path) -> None:
    store = store_of(design_in(tmp_path), tmp_path / "store.db", 1)
    both = [{"questionnaire": name, "item": "1", "value": value} for name, value in (("ease", 5.0), ("trust", 2.0))]
    assert store.complete_step("p1", "questions-1", both)
    rows = store.records()["answers"].to_pylist()
    assert {row["questionnaire"]: row["value"] for row in rows} == {"ease": 5.0, "trust": 2.0}


def test_tabs_at_once_lose_and_double_nothing(tmp_path: Path) -> None:
    store = store_of(design_in(tmp_path), tmp_path / "store.db", 1)
    store.record_action("p1", 1, SHOWN)
    with ThreadPoolExecutor(8) as tabs:
        list(tabs.map(lambda doc: store.record_action("p1", 1, Action("save", 1, doc_id=doc)), "abcdefgh" * 3))
    assert sorted(str(row.doc_id) for row in store.actions("p1", 1) if row.action == "save") == list("abcdefgh")
    with ThreadPoolExecutor(8) as tabs:
        assert sum(tabs.map(lambda _: store.complete_step("p1", "task-1"), range(8))) == 1


def test_a_link_is_one_persons_and_stays_the_same(tmp_path: Path) -> None:
    design = design_in(tmp_path)
    store, other = store_of(design, tmp_path / "store.db", 2), store_of(design, tmp_path / "other.db", 2)
    for participant in ("p1", "p2", OBSERVER):
        assert store.find_participant(store.token(participant)) == participant
        assert store.find_participant(other.token(participant)) is None
        assert StudyStore.open(store.where).token(participant) == store.token(participant)
    for token in (
        "",
        "p1",
        "p1-",
        "-",
        store.token("p3"),
        store.token("p1") + "0",
        "p2" + store.token("p1")[2:],
        "é-\ud800",
    ):
        assert store.find_participant(token) is None


def test_more_participants_change_nothing_for_those_before(tmp_path: Path) -> None:
    design = design_in(tmp_path)
    store = store_of(design, tmp_path / "store.db", 3)
    before, trials = store.participants(), store.trials("p2")
    store.enroll(assignments(design, {f"p{i}": "" for i in range(1, 6)}).to_pylist())
    assert list(store.participants().items())[:3] == list(before.items())
    assert store.trials("p2") == trials
    assert [participant.number for participant in store.participants().values()] == [0, 1, 2, 3, 4]


def test_stores_that_are_refused(tmp_path: Path) -> None:
    design = design_in(tmp_path)
    store_of(design, tmp_path / "store.db", 1).close()
    with pytest.raises(InputError, match="another version of the design"):
        StudyStore.open(tmp_path / "store.db", "of another")
    assert StudyStore.open(tmp_path / "store.db", hashed(design)).participants()
    with pytest.raises(InputError, match="this store does not exist"):
        StudyStore.open(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()
    LabelStore.open(tmp_path / "labels.db").close()
    with pytest.raises(InputError, match="not a store of answers"):
        StudyStore.open(tmp_path / "labels.db", "design", new=True)
    with pytest.raises(InputError, match="not a store of labels"):
        LabelStore.open(tmp_path / "store.db")
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("UPDATE study SET value = '99' WHERE name = 'version'")
    with pytest.raises(InputError, match="store format 99"):
        StudyStore.open(tmp_path / "store.db")
