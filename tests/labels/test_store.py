"""The store: SQLite and PostgreSQL, concurrent writers, killed processes, and invalid addresses."""

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
from judged.labels import LabelStore, NewTask, assign_tasks, qrels_of, read_labels, status
from judged.labels.consensus import RULES
from judged.labels.labels import SCALES, SCHEMA
from pipelines.experiments.server import can_start_postgresql, postgresql

WRITERS = [sys.executable, str(Path(__file__).with_name("writers.py"))]
PAIRS = [(f"q{i % 5}", f"Ä{i}") for i in range(40)]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    if not can_start_postgresql():
        pytest.skip("no PostgreSQL server can be started here")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # the server runs as another user
        with postgresql(Path(folder) / "pg") as dsn:
            yield dsn


@pytest.fixture
def addresses(tmp_path: Path, server: str, request: pytest.FixtureRequest) -> list[str]:
    """Return addresses of new stores in SQLite and PostgreSQL."""
    import psycopg

    name = f"labels_{abs(hash(request.node.name))}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    parts = dict(part.split("=", 1) for part in server.split())
    return [str(tmp_path / "labels.db"), f"postgresql://judged@/{name}?host={parts['host']}"]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Close the stores of a test."""
    with ExitStack() as stack:
        yield stack


def fill_store(store: LabelStore) -> LabelStore:
    store.add_topics({f"q{i}": f"about {i}" for i in range(5)})
    store.add_topics({"q5": "made up"}, synthetic=True)
    store.add_documents({"Ä1": "a text", "d": {"title": "a title", "text": "naïve ☃"}})
    for judge in ("ann", "bob", "cy"):
        store.add_judge(judge)
    store.add_tasks(
        assign_tasks(PAIRS, ["ann", "bob", "cy"], each=2, overlap=0.2, repeats=0.1, gold={("q5", "d"): 3.0})
    )
    for judge in ("ann", "bob", "cy"):
        for i, task in enumerate(store.tasks(judge)[:-3]):
            store.add(judge, task.query_id, task.doc_id, float((i * len(judge)) % 5), repeat=task.repeat, seconds=i / 8)
    store.add("ann", "q0", "Ä0", None, valid=False)
    store.add_many([{"judge": "llm", "kind": "model", "query_id": "q0", "doc_id": "Ä0", "grade": 2.0, "seed": 2**40}])
    return store


def test_sqlite_and_postgresql_give_the_same_results(addresses: list[str], stack: ExitStack) -> None:
    small, large = (fill_store(stack.enter_context(LabelStore.open(address, scale="0-4"))) for address in addresses)
    names = [name for name in small.labels().table.column_names if name != "time"]
    assert small.labels().table.select(names).equals(large.labels().table.select(names))
    for rule in (*RULES, "bob"):
        results = [qrels_of(store, by=rule) for store in (small, large)]
        assert results[0].table.equals(results[1].table)
        origins = [qrels.origin for qrels in results]
        assert origins[0] is not None
        assert origins[1] is not None
        assert origins[0].sha256 == origins[1].sha256
        assert (origins[0].synthetic, origins[0].model) == (origins[1].synthetic, origins[1].model)
    for judge in ("ann", "bob", "cy", "new"):
        assert [task[1:] for task in small.tasks(judge)] == [task[1:] for task in large.tasks(judge)]
    assert small.all_tasks() == large.all_tasks()
    assert (small.topics(), small.document("d"), small.scale) == (large.topics(), large.document("d"), large.scale)
    assert status(small).topics == status(large).topics
    assert len(read_labels(addresses[1])) == len(large) == len(small)


def test_concurrent_writers_lose_no_labels(addresses: list[str]) -> None:
    for address in addresses:
        processes = [
            subprocess.Popen([*WRITERS, address, "write", judge, "60"], stderr=subprocess.PIPE)
            for judge in ("ann", "bob")
        ]
        for process in processes:
            _, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors.decode()
        stored = read_labels(address).table
        expected = {(judge, f"{judge}-{i}") for judge in ("ann", "bob") for i in range(60)}
        assert set(zip(stored["judge"].to_pylist(), stored["doc_id"].to_pylist(), strict=True)) == expected


def test_killed_writers_lose_no_acknowledged_label(tmp_path: Path) -> None:
    path = str(tmp_path / "labels.db")
    LabelStore.open(path).close()
    ended = subprocess.run([*WRITERS, path, "kill", "200"], capture_output=True, check=True, text=True, timeout=300)
    acknowledged = ended.stdout.split()
    assert len(acknowledged) > 20
    stored = read_labels(path).table["doc_id"].to_pylist()
    assert set(acknowledged) <= set(stored)
    assert len(stored) - len(acknowledged) <= 200  # at most one unacknowledged label per process
    assert len(set(stored)) == len(stored)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_the_order_of_tasks() -> None:
    store = LabelStore.open("sqlite://")
    store.add_tasks(NewTask(topic, doc) for topic in "qrs" for doc in "abcd")
    store.add_tasks([NewTask("q", "a", repeat=1), NewTask("z", "first", priority=-1), NewTask("q", "b", "bob")])
    tasks = store.tasks("ann")
    assert (tasks[0].doc_id, tasks[-1].repeat) == ("first", 1)
    topics = [task.query_id for task in tasks[1:-1]]
    assert len(topics) == 12
    assert sum(postponed != skipped for postponed, skipped in pairwise(topics)) == 2  # topic by topic
    assert len({tuple(task[1:3] for task in store.tasks(judge)) for judge in ("ann", "bob", "cy", "dan")}) == 4
    postponed, skipped = tasks[1], tasks[2]
    store.add("ann", postponed.query_id, postponed.doc_id, None, valid=False)  # postponed: last
    store.add("ann", skipped.query_id, skipped.doc_id, None)  # skipped: done
    remaining = store.tasks("ann")
    assert remaining[-1] == postponed._replace(touched=True)
    assert remaining[:-1] == (tasks[0], *tasks[3:])
    store.add("bob", "q", "b", 1.0)
    assert ("q", "b") not in [task[1:3] for task in store.tasks("bob")]
    assert ("q", "b") in [task[1:3] for task in store.tasks("ann")]


def test_tokens_identify_judges_and_are_stored_as_hashes(tmp_path: Path) -> None:
    store = LabelStore.open(tmp_path / "labels.db")
    old, other = store.add_judge("ann"), store.add_judge("bob")
    new = store.add_judge("ann")
    assert [store.judge_with_token(token) for token in (old, other, new, "")] == [None, "bob", "ann", None]
    assert store.judges() == {"ann": "human", "bob": "human"}
    store.close()
    assert new.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_grades_outside_the_scale_raise_and_store_nothing() -> None:
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


def test_other_files_raise_and_do_not_change(tmp_path: Path) -> None:
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
def test_messages_contain_no_password(where: str) -> None:
    with pytest.raises(InputError) as raised:
        LabelStore.open(where)
    assert "se:cr" not in str(raised.value)
    assert "@et" not in str(raised.value)
    assert raised.value.path.endswith("/labels")


def test_results_contain_no_password(addresses: list[str], stack: ExitStack) -> None:
    address = addresses[1].replace("judged@", "judged:secret@")
    store = stack.enter_context(LabelStore.open(address))
    store.add("ann", "q", "a", 1.0)
    for text in (repr(store), store.labels().where, status(store).json(), qrels_of(store).where):
        assert "secret" not in text


def test_nul_and_surrogates_are_replaced_in_texts_and_raise_in_ids(tmp_path: Path) -> None:
    with LabelStore.open(tmp_path / "labels.db") as store:
        store.add_documents({"a": "half \ud800 and nul \0, \u00fc"})
        assert store.document("a")["text"] == "half ? and nul \ufffd, \u00fc"
        with pytest.raises(InputError, match="doc_id"):
            store.add_tasks([NewTask("q", "a\0")])


def test_a_damaged_store_raises(tmp_path: Path) -> None:
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


def test_a_store_with_earlier_definitions_of_a_scale_opens(tmp_path: Path) -> None:
    earlier = [(grade.grade, grade.word, "earlier wording") for grade in SCALES["0-3"]]
    LabelStore.open(tmp_path / "labels.db", scale=earlier).close()
    with LabelStore.open(tmp_path / "labels.db", scale="0-3") as store:
        assert store.scale[0].definition == "earlier wording"
    with pytest.raises(InputError, match="cannot be changed"):
        LabelStore.open(tmp_path / "labels.db", scale=[(*grade[:2], "other") for grade in earlier])
