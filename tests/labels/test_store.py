"""The store: SQLite and PostgreSQL alike, several writers at once, processes that are killed, and wrong addresses."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from judged.errors import InputError
from judged.labels import LabelStore, NewTask, assigned, qrels_of, read_labels, status
from judged.labels.consensus import RULES
from judged.labels.labels import SCHEMA
from pipelines.experiments.server import postgresql, there

WRITERS = [sys.executable, str(Path(__file__).with_name("writers.py"))]
PAIRS = [(f"q{at % 5}", f"Ä{at}") for at in range(40)]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    if not there():
        pytest.skip("no PostgreSQL server can be started here")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # the server runs as another user
        with postgresql(Path(folder) / "pg") as how:
            yield how


@pytest.fixture
def places(tmp_path: Path, server: str, request: pytest.FixtureRequest) -> list[str]:
    """Give a new place of each kind."""
    import psycopg

    name = f"labels_{abs(hash(request.node.name))}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    parts = dict(part.split("=", 1) for part in server.split())
    return [str(tmp_path / "labels.db"), f"postgresql://judged@/{name}?host={parts['host']}"]


@pytest.fixture
def keep() -> Iterator[ExitStack]:
    """Close the stores of a test."""
    with ExitStack() as kept:
        yield kept


def filled(store: LabelStore) -> LabelStore:
    store.add_topics({f"q{at}": f"about {at}" for at in range(5)})
    store.add_topics({"q5": "made up"}, synthetic=True)
    store.add_documents({"Ä1": "a text", "d": {"title": "a title", "text": "naïve ☃"}})
    for judge in ("ann", "bob", "cy"):
        store.add_judge(judge)
    store.add_tasks(assigned(PAIRS, ["ann", "bob", "cy"], each=2, overlap=0.2, repeats=0.1, gold={("q5", "d"): 3.0}))
    for judge in ("ann", "bob", "cy"):
        for at, task in enumerate(store.tasks(judge)[:-3]):
            store.add(
                judge, task.query_id, task.doc_id, float((at * len(judge)) % 5), repeat=task.repeat, seconds=at / 8
            )
    store.add("ann", "q0", "Ä0", None, valid=False)
    store.add_many([{"judge": "llm", "kind": "model", "query_id": "q0", "doc_id": "Ä0", "grade": 2.0, "seed": 2**40}])
    return store


def test_both_kinds_give_the_same_qrels_tasks_and_answers(places: list[str], keep: ExitStack) -> None:
    small, team = (filled(keep.enter_context(LabelStore.open(where, scale="0-4"))) for where in places)
    names = [name for name in small.labels().table.column_names if name != "at"]
    assert small.labels().table.select(names).equals(team.labels().table.select(names))
    for rule in (*RULES, "bob"):
        made = [qrels_of(store, by=rule) for store in (small, team)]
        assert made[0].table.equals(made[1].table)
        origins = [qrels.origin for qrels in made]
        assert origins[0] is not None
        assert origins[1] is not None
        assert origins[0].sha256 == origins[1].sha256
        assert (origins[0].synthetic, origins[0].model) == (origins[1].synthetic, origins[1].model)
    for judge in ("ann", "bob", "cy", "new"):
        assert [task[1:] for task in small.tasks(judge)] == [task[1:] for task in team.tasks(judge)]
    assert small.every_task() == team.every_task()
    assert (small.topics(), small.document("d"), small.scale) == (team.topics(), team.document("d"), team.scale)
    assert status(small).topics == status(team).topics
    assert len(read_labels(places[1])) == len(team) == len(small)


def test_writers_at_once_lose_nothing(places: list[str]) -> None:
    for where in places:
        started = [
            subprocess.Popen([*WRITERS, where, "write", judge, "60"], stderr=subprocess.PIPE)
            for judge in ("ann", "bob")
        ]
        for process in started:
            _, said = process.communicate(timeout=120)
            assert process.returncode == 0, said.decode()
        kept = read_labels(where).table
        wanted = {(judge, f"{judge}-{at}") for judge in ("ann", "bob") for at in range(60)}
        assert set(zip(kept["judge"].to_pylist(), kept["doc_id"].to_pylist(), strict=True)) == wanted


def test_two_hundred_kills_lose_no_label_that_was_acknowledged(tmp_path: Path) -> None:
    where = str(tmp_path / "labels.db")
    LabelStore.open(where).close()
    done = subprocess.run([*WRITERS, where, "kill", "200"], capture_output=True, check=True, text=True, timeout=300)
    acknowledged = done.stdout.split()
    assert len(acknowledged) > 20
    kept = read_labels(where).table["doc_id"].to_pylist()
    assert set(acknowledged) <= set(kept)
    assert len(kept) - len(acknowledged) <= 200  # at most the one that was being written
    assert len(set(kept)) == len(kept)
    with sqlite3.connect(where) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_the_order_of_tasks() -> None:
    store = LabelStore.open("sqlite://")
    store.add_tasks(NewTask(topic, doc) for topic in "qrs" for doc in "abcd")
    store.add_tasks([NewTask("q", "a", repeat=1), NewTask("z", "first", priority=-1), NewTask("q", "b", "bob")])
    tasks = store.tasks("ann")
    assert (tasks[0].doc_id, tasks[-1].repeat) == ("first", 1)
    topics = [task.query_id for task in tasks[1:-1]]
    assert len(topics) == 12
    assert sum(one != other for one, other in pairwise(topics)) == 2  # topic by topic
    assert len({tuple(task[1:3] for task in store.tasks(judge)) for judge in ("ann", "bob", "cy", "dan")}) == 4
    one, other = tasks[1], tasks[2]
    store.add("ann", one.query_id, one.doc_id, None, valid=False)  # put off: last
    store.add("ann", other.query_id, other.doc_id, None)  # skipped: done
    left = store.tasks("ann")
    assert left[-1] == one._replace(touched=True)
    assert left[:-1] == (tasks[0], *tasks[3:])
    store.add("bob", "q", "b", 1.0)
    assert ("q", "b") not in [task[1:3] for task in store.tasks("bob")]
    assert ("q", "b") in [task[1:3] for task in store.tasks("ann")]


def test_a_token_opens_for_its_judge_alone_and_is_not_kept(tmp_path: Path) -> None:
    store = LabelStore.open(tmp_path / "labels.db")
    old, other = store.add_judge("ann"), store.add_judge("bob")
    new = store.add_judge("ann")
    assert [store.judge_of(token) for token in (old, other, new, "")] == [None, "bob", "ann", None]
    assert store.judges() == {"ann": "human", "bob": "human"}
    store.close()
    assert new.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_grades_that_are_not_on_the_scale_are_refused_and_nothing_of_a_batch_is_kept() -> None:
    store = LabelStore.open("sqlite://", scale="binary")
    with pytest.raises(InputError):
        store.add("ann", "q", "a", 2.0)
    with pytest.raises(InputError):
        store.add_many(
            {"judge": "ann", "query_id": "q", "doc_id": doc, "grade": grade} for doc, grade in (("a", 1.0), ("b", 0.5))
        )
    with pytest.raises(InputError):
        store.add("", "q", "a", 1.0)
    assert len(store) == 0
    store.add("log", "q", "a", 0.37, kind="click")


def test_what_is_no_store_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    text, other, newer, scale = (tmp_path / name for name in ("text", "other.db", "newer.db", "scale.db"))
    text.write_text("q 0 d 1\n" * 99)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE pupils (name)")
    LabelStore.open(newer).close()
    with sqlite3.connect(newer) as connection:
        connection.execute("UPDATE about SET value = '99'")
    LabelStore.open(scale, scale="binary").close()
    before = {path: path.read_bytes() for path in (text, other)}
    for path, options in (
        (text, {}),
        (other, {}),
        (newer, {}),
        (scale, {"scale": "0-4"}),
        (tmp_path / "no", {"new": False}),
    ):
        with pytest.raises(InputError) as raised:
            LabelStore.open(path, **options)
        assert raised.value.fix
        assert raised.value.path == str(path)
    assert before == {path: path.read_bytes() for path in before}
    assert not (tmp_path / "no").exists()
    assert LabelStore.open(scale).scale == LabelStore.open(scale, scale="binary").scale


@pytest.mark.parametrize(
    "where",
    [
        "postgresql://ann:se:cr@et@localhost:1/labels", "postgresql://ann:se:cr@et@localhost:port/labels",
        "postgresql://ann@localhost:1/labels?password=se:cr@et", "oracle+nothing://ann:se:cr@et@localhost/labels",
    ],
)  # fmt: skip
def test_a_password_is_never_shown(where: str) -> None:
    with pytest.raises(InputError) as raised:
        LabelStore.open(where)
    assert "se:cr" not in str(raised.value)
    assert "@et" not in str(raised.value)
    assert raised.value.path.endswith("/labels")


def test_a_store_of_a_team_does_not_show_its_password(places: list[str], keep: ExitStack) -> None:
    where = places[1].replace("judged@", "judged:secret@")
    store = keep.enter_context(LabelStore.open(where))
    store.add("ann", "q", "a", 1.0)
    for shown in (repr(store), store.labels().where, status(store).json(), qrels_of(store).where):
        assert "secret" not in shown


def test_what_no_text_can_hold_is_replaced_in_texts_and_refused_in_ids(tmp_path: Path) -> None:
    with LabelStore.open(tmp_path / "labels.db") as store:
        store.add_documents({"a": "half \ud800 and nul \0, \u00fc"})
        assert store.document("a")["text"] == "half ? and nul \ufffd, \u00fc"
        with pytest.raises(InputError, match="doc_id"):
            store.add_tasks([NewTask("q", "a\0")])


def test_a_damaged_store_whose_labels_lack_a_value_is_named(tmp_path: Path) -> None:
    with LabelStore.open(tmp_path / "x.db") as store:
        store.add_many([{**dict.fromkeys(SCHEMA.names, ""), "grade": 1, "seconds": None, "seed": None, "repeat": 0,
                         "valid": True, "query_id": "q", "doc_id": "d", "judge": "ann", "kind": "human"}])  # fmt: skip
        assert len(store.labels().table) == 1
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute("UPDATE sqlite_master SET sql = replace(sql, 'valid BOOLEAN NOT NULL', 'valid BOOLEAN')")
    with sqlite3.connect(tmp_path / "x.db") as connection:
        assert connection.execute("UPDATE labels SET valid = NULL").rowcount == 1
    connection.close()
    with LabelStore.open(tmp_path / "x.db", new=False) as store, pytest.raises(InputError, match=r"damaged \(valid is"):
        store.labels()
