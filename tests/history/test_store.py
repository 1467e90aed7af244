"""The store of evaluations: SQLite and PostgreSQL, concurrent writers, killed processes, references, and errors."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from history.writers import QRELS, run
from judged import Qrels, Run, evaluate
from judged.errors import InputError
from judged.history import HistoryStore, bisect, compare, show
from judged.history.detection import alarm_threshold
from judged.history.store import read_folder
from pipelines.experiments.server import can_start_postgresql, postgresql

WRITERS = [sys.executable, str(Path(__file__).with_name("writers.py"))]


@pytest.fixture
def addresses(tmp_path: Path) -> Iterator[list[str]]:
    """Return addresses of new stores in SQLite and PostgreSQL."""
    if not can_start_postgresql():
        pytest.skip("no PostgreSQL server can be started here")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # the server runs as another user
        with postgresql(Path(folder) / "pg") as dsn:
            parts = dict(part.split("=", 1) for part in dsn.split())
            yield [str(tmp_path / "history.db"), f"postgresql://judged@/{parts['dbname']}?host={parts['host']}"]


def store_of(path: str | Path = "sqlite://", nights: int = 3) -> HistoryStore:
    store = HistoryStore.open(path, new=True)
    for night in range(nights):
        runs = {"a": run(night), "b": run(night + 100)}
        store.add(
            QRELS,
            runs,
            ["RR", "P@1"],
            time=f"2026-03-{night + 1:02d}",
            commit=f"c00{night}",
            tag="release" * (night == 1),
        )
    return store


def test_sqlite_and_postgresql_give_the_same_results_and_lose_nothing_of_two_writers(addresses: list[str]) -> None:
    for address in addresses:
        store = store_of(address)
        assert [(row.time, row.system, row.commit, row.tag) for row in store.evaluations("b")] == [
            ("2026-03-01T00:00:00", "b", "c000", ""),
            ("2026-03-02T00:00:00", "b", "c001", "release"),
            ("2026-03-03T00:00:00", "b", "c002", ""),
        ]
        assert (
            store.scores(store.find("last-release", "b")).aggregate()
            == evaluate(QRELS, {"b": run(101)}, ["RR", "P@1"]).aggregate()
        )
        processes = [
            subprocess.Popen([*WRITERS, address, "write", system, "40"], stderr=subprocess.PIPE) for system in "xy"
        ]
        assert [process.communicate(timeout=120)[1] for process in processes] == [b"", b""]
        tags = [row.tag for row in store.evaluations() if row.system in "xy"]
        assert sorted(tags) == sorted(f"{system}-{i}" for system in "xy" for i in range(40))
        store.close()


def test_killed_writers_lose_no_acknowledged_evaluation(tmp_path: Path) -> None:
    path = str(tmp_path / "history.db")
    ended = subprocess.run([*WRITERS, path, "kill", "100"], capture_output=True, check=True, text=True, timeout=300)
    acknowledged = ended.stdout.split()
    assert len(acknowledged) > 20
    store = HistoryStore.open(path)
    rows = store.evaluations()
    stored = [row.tag for row in rows]
    assert set(acknowledged) <= set(stored)
    assert len(stored) - len(acknowledged) <= 100  # at most one per process that was not acknowledged
    assert len(set(stored)) == len(stored)
    for row in rows:
        expected = evaluate(QRELS, {row.system: run(int(row.tag.rpartition("-")[2]))}, "RR").per_topic()
        assert store.scores(row).per_topic() == expected
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_data_that_do_not_change_are_stored_once(tmp_path: Path) -> None:
    store = store_of(tmp_path / "history.db", 2)
    sizes = []
    for _ in range(2):
        store.add(QRELS, {"a": run(0)}, ["RR", "P@1"])
        with sqlite3.connect(tmp_path / "history.db") as connection:
            sizes.append(connection.execute("SELECT count(*) FROM data").fetchone()[0])
    assert sizes == [1 + 4 + 4] * 2  # judgments, runs, and scores


def test_runs_and_judgments_are_read_back() -> None:
    store = HistoryStore.open("sqlite://", new=True)
    qrels = [("q", "d", 1.0, "i"), ("q", "d", 0.0, "j"), ("r", "e", 2.5, "i")]
    table = {
        name: list(values)
        for name, values in zip(("query_id", "doc_id", "relevance", "iteration"), zip(*qrels, strict=True), strict=True)
    }
    judgments = Qrels.of(pa.table(table))
    ranked = Run.of({"q": {"d": 0.25, "e": 1e-300}, "r": {"ü": -1.0}}, name="s")
    (row,) = store.add(judgments, [ranked], "alpha_nDCG@5")
    assert store.qrels(row).table.equals(judgments.table)
    assert store.run(row).table.equals(ranked.table)
    assert store.run(row).name == "s"


def test_references() -> None:
    store = store_of()
    assert [store.find(name, "a").number for name in ("last", "last-release", "release", "3", "#3", "c002")] == [
        5,
        3,
        3,
        3,
        3,
        5,
    ]
    for name in ("last-nothing", "7", "", "d"):
        with pytest.raises(InputError, match="release"):
            store.find(name, "a")
    with pytest.raises(InputError, match="last/a"):
        store.find("last")
    assert store.find("last/b").number == 6
    store.add(QRELS, {"a": run(1)}, "RR", commit="4f2a91c", tag="v1/x", time="2026-05-01")
    store.add(QRELS, {"a": run(2)}, "RR", commit="4f2a000", time="2026-05-02")
    assert store.find("4").system == "b"  # the number, not the commit
    assert store.find("v1/x").tag == "v1/x"
    assert store.find("4f2a9").number == 7
    with pytest.raises(InputError, match="2 commits"):
        store.find("4f2a")
    with pytest.raises(InputError, match="#8"):
        compare(store, "last", "8")
    with pytest.raises(InputError, match="a, b"):
        store.evaluations("c")


def test_scores_by_other_judgments_are_computed_and_stored(tmp_path: Path) -> None:
    store = store_of(tmp_path / "history.db", 1)
    reversed_qrels = {query: {"d0": 0, "d1": 1} for query in QRELS}
    store.add(reversed_qrels, {"a": run(5)}, "P@1", depth=1, time="2026-04-01")
    first, last = store.find("1"), store.find("last")
    expected = evaluate(reversed_qrels, {"a": run(0)}, "P@1", depth=1)
    for _ in range(2):
        assert store.scores(first, last).per_topic() == expected.per_topic()
    assert store.scores(first).measure_names == ("RR", "P@1")
    assert store.scores(first, last).policies.depth == 1


def test_history_separates_changes_of_judgments_and_of_the_system() -> None:
    topics = [f"q{i:02d}" for i in range(30)]
    better, worse = (dict.fromkeys(topics, docs) for docs in (["r", "x", "y"], ["x", "r", "y"]))
    old = {query: {"r": 1, "y": 0} for query in topics}
    new = old | {query: {"r": 1, "x": 1, "y": 0} for query in topics[:6]} | {"q99": {"r": 1}}
    store = HistoryStore.open("sqlite://", new=True)
    for night in range(30):
        qrels, ranked = (old if night < 10 else new), dict(better if night < 20 else worse)
        ranked["q99"] = ["r"]
        store.add(qrels, {"s": ranked}, ["RR", "P@1"], time=f"2026-03-{night + 1:02d}")
    history = show(store)
    # Without noise. By the last judgments the mean of RR is 1, then 0.5 on 24 of 30 topics.
    (change,) = [change for change in history.changes if str(change.measure) == "RR"]
    assert (change.shift.start, change.shift.detected) == (20, 20)
    assert change.difference.difference == pytest.approx(-0.5 * 24 / 30)
    assert change.verdict == "worse"
    (judgments,) = history.judgments
    assert (judgments.evaluation.number, judgments.added, judgments.removed, judgments.changed, judgments.n_change) == (
        11,
        7,
        0,
        0,
        1,
    )
    assert judgments.effect == 0.0
    assert len(history.series.query_ids) == 30  # q99 is not in all
    assert len(history.notes) == 1
    location = bisect(store, measure="RR")
    assert location.change.shift.start == 20
    assert location.table("topics").records()[0]["difference"] == -0.5
    with pytest.raises(InputError):
        bisect(store, measure="RR", evaluation="3")
    assert bisect(store, measure="RR", evaluation="21").change.shift.start == 20


def test_measures_share_the_false_alarms_and_evaluations_are_in_order_of_time() -> None:
    store = store_of(nights=12)
    history = show(store, "a")
    assert [detection.threshold for detection in history.detections] == [alarm_threshold(2 * 365)] * 2
    store.add(QRELS, {"a": run(50)}, ["RR", "P@1"], time="2026-02-01")
    assert store.evaluations("a")[0].number == 25
    assert store.find("last", "a").number == 23


def test_few_topics_have_no_verdict_and_sums_have_no_history() -> None:
    qrels, store = {f"q{i}": {"r": 1} for i in range(4)}, HistoryStore.open("sqlite://", new=True)
    for night in range(20):
        ranked = ["r"] if night < 12 else ["x", "r"]
        store.add(qrels, {"s": dict.fromkeys(qrels, ranked)}, "RR", time=f"2026-03-{night + 1:02d}")
    (change,) = show(store).changes
    assert (change.shift.start, change.verdict) == (12, "too few topics")
    history = show(store, measures="P@1")  # a measure that was not stored
    assert [change.mean_after for change in history.changes] == [0.0]
    with pytest.raises(InputError, match="means over topics"):
        show(store, measures=["RR", "NumRet"])


def test_comparison_is_over_the_topics_of_both_evaluations() -> None:
    store = HistoryStore.open("sqlite://", new=True)
    old = {f"q{i}": {"r": 1} for i in range(8)}
    store.add(old, {"s": {topic: ["r"] for topic in sorted(old)}}, "RR", time="2026-03-01")
    new = old | {"q9": {"r": 1}}
    store.add(new, {"s": {topic: ["x", "r"] for topic in sorted(new)}}, "RR", time="2026-03-02")
    comparison = compare(store, 1, "last")
    assert comparison.scores.aggregate() == {"s #1": {"RR": 1.0}, "s #2": {"RR": 0.5}}


@pytest.mark.parametrize("tag", ["last", "last-release", "3", "#3"])
def test_tags_that_are_references_are_refused(tag: str) -> None:
    with pytest.raises(InputError, match="tag"):
        HistoryStore.open("sqlite://", new=True).add(QRELS, {"a": run(1)}, tag=tag)


def test_order_of_judgments_is_no_change_and_settings_have_no_effect() -> None:
    store = HistoryStore.open("sqlite://", new=True)
    qrels, ranked = {f"q{i}": {"r": 1, "x": 0} for i in range(8)}, {f"q{i}": ["x", "r"] for i in range(8)}
    more = {topic: {"x": 1, "r": 1} for topic in qrels}
    store.add(qrels, {"s": ranked}, ["RR", "P@2"], time="2026-03-01")
    store.add(dict(reversed(qrels.items())), {"s": ranked}, ["RR", "P@2"], time="2026-03-02")
    assert show(store).judgments == ()
    store.add(more, {"s": ranked}, ["RR", "P@2"], depth=1, time="2026-03-03")
    (judgments,) = show(store).judgments
    assert (judgments.changed, judgments.effect) == (8, 0.5)
    # A measure that was not evaluated then: P@1 rises from 0 to 1 by the new judgments.
    (judgments,) = show(store, measures="P@1").judgments
    assert judgments.effect == 1.0


def test_change_is_found_by_its_commit_and_first_evaluations_are_not_tested() -> None:
    qrels, store = {f"q{i}": {"r": 1} for i in range(8)}, HistoryStore.open("sqlite://", new=True)
    for night in range(8):
        ranked = ["r"] if night < 7 else ["x", "r"]
        store.add(qrels, {"s": dict.fromkeys(qrels, ranked)}, "RR", time=f"2026-03-{night + 1:02d}", commit="aaaa")
    assert show(store).headline.status == "unknown"
    for night in range(8, 24):
        ranked = ["x", "r"] if night < 12 else ["x", *map(str, range(40)), "r"]
        commit = "bbbb" if night >= 12 else "aaaa"
        store.add(qrels, {"s": dict.fromkeys(qrels, ranked)}, "RR", time=f"2026-03-{night + 1:02d}", commit=commit)
    located = bisect(store, evaluation="bbbb", margin_relative=0.0)
    assert located.change.shift.start == 12


def test_history_of_few_evaluations_has_no_verdict() -> None:
    history = show(store_of())
    assert history.series.system == "b"
    assert history.headline.status == "unknown"
    assert history.changes == ()
    assert history.others == ("a",)
    assert np.isnan(history.facts()["deviation"]["RR"])


def test_invalid_stores_and_options(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        HistoryStore.open(tmp_path / "none.db")
    (tmp_path / "text.db").write_text("no database")
    with pytest.raises(InputError):
        HistoryStore.open(tmp_path / "text.db")
    store = store_of()
    for options in ({"false_alarms": 0.5}, {"margin_relative": -0.1}, {"margin_relative": 1.0}, {"measures": "NumRet"}):
        with pytest.raises(InputError):
            show(store, **options)
    with pytest.raises(InputError, match="ISO 8601"):
        store.add(QRELS, {"a": run(1)}, time="yesterday")
    with pytest.raises(InputError, match="no evaluations"):
        show(HistoryStore.open("sqlite://", new=True))
    store.add({"other": {"d": 1}}, {"b": {"other": ["d"]}}, ["RR", "P@1"])
    with pytest.raises(InputError, match="no topic in common"):
        show(store, "b")


def test_folder_of_judgments_and_runs(tmp_path: Path) -> None:
    for name, line in {
        "judgments.txt": "q 0 d 1",
        "one.run": "q Q0 d 1 0.5 one",
        "two.run": "q Q0 d 1 2.5 two",
    }.items():
        (tmp_path / name).write_text(line + "\n")
    (tmp_path / "README.md").write_text("# Notes\n")
    qrels, runs = read_folder(tmp_path)
    assert (Path(qrels).name, [Path(name).name for name in runs]) == ("judgments.txt", ["one.run", "two.run"])
    (tmp_path / "judgments.txt").unlink()
    with pytest.raises(InputError, match="got 0 and 2"):
        read_folder(tmp_path)
