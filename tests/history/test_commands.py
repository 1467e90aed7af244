"""`judged history` on the command line, `history:` as the path of a run, and the pages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import Ended
from judged.data import sample
from judged.history import HistoryStore, bisect, show
from judged.history.sample import sample_history, write_sample_history

Run = Callable[..., Ended]
QRELS, BM25, TFIDF = (str(sample.FOLDER / name) for name in ("qrels.txt", "runs/bm25.run.gz", "runs/tfidf.run.gz"))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("history") / "history.db"
    write_sample_history(path)
    return str(path)


def test_folder_is_added_and_compared(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGED_HISTORY", str(tmp_path / "own.db"))
    (tmp_path / "nightly").mkdir()
    for path in (QRELS, BM25, TFIDF):
        (tmp_path / "nightly" / Path(path).name).write_bytes(Path(path).read_bytes())
    first = run(
        "history", "add", str(tmp_path / "nightly"), "--tag", "release", "--time", "2026-03-01", "--commit", "abc"
    )
    assert (first.code, len(first.lines)) == (0, 2)
    assert run("history", "add", QRELS, f"bm25={TFIDF}", "-m", "nDCG@10", "--time", "2026-03-02").code == 0
    rows = HistoryStore.open().evaluations()
    assert [(row.system, row.tag, row.commit == "abc") for row in rows] == [
        ("bm25", "release", True), ("tfidf", "release", True), ("bm25", "", False),
    ]  # fmt: skip
    compared = run(
        "history", "compare", "last-release/bm25", "last", "-m", "nDCG@10", "--format", "json", "--test", "t"
    )
    direct = run(
        "compare", QRELS, BM25, TFIDF, "-m", "nDCG@10", "--format", "json", "--test", "t", "--baseline", "bm25"
    )
    tables = [json.loads(done.out)["pairs"][0] for done in (compared, direct)]
    same = ("difference", "p", "difference_ci", "wins")
    assert [tables[0][name] for name in same] == [tables[1][name] for name in same]
    assert run("history", "add", BM25).code == 2
    assert run("history", "add", str(tmp_path)).code == 2


@pytest.mark.parametrize(("candidate", "code"), [(BM25, 0), (TFIDF, 1)])
def test_gate_against_the_last_release(
    run: Run, store: str, candidate: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGED_HISTORY", store)
    assert run("gate", QRELS, "history:last-release", candidate, "--margin", "0.03").code == code
    assert run("evaluate", QRELS, "history:5", "-m", "AP").code == 0
    assert run("evaluate", QRELS, "release=history:last-release/bm25", "-m", "AP").code == 0
    for name in ("history:none", "history:last/other", "history:"):
        assert run("evaluate", QRELS, name).code == 2


def test_commands_write_the_answers_of_python(run: Run, store: str, tmp_path: Path) -> None:
    opened = HistoryStore.open(store)
    assert json.loads(run("history", "show", "--history", store, "--format", "json").out) == json.loads(
        show(opened).json()
    )
    located = bisect(opened, measure="AP")
    written = run("history", "bisect", "--history", store, "-m", "AP", "--format", "json")
    assert json.loads(written.out) == json.loads(located.json())
    assert "<svg" in run("history", "plot", "--history", store).out
    assert run("history", "plot", "--history", store, "-o", str(tmp_path / "curve.png")).code == 0
    attributes = str(sample.FOLDER / "queries.jsonl")
    slices = run("history", "bisect", "--history", store, "--attributes", attributes, "--by", "query_class")
    assert (slices.code, "== Slices ==" in slices.lines) == (0, True)
    assert run("history", "bisect", "--history", store, "--by", "query_class").code == 2
    assert run("history", "show", "--history", str(tmp_path / "none.db")).code == 2


def test_sample_separates_the_worse_version_from_the_added_judgments() -> None:
    history = show(sample_history(), measures="nDCG@10")
    assert [(change.shift.start + 1, change.verdict) for change in history.changes] == [(21, "worse")]
    assert [change.evaluation.number for change in history.judgments] == [12]
    assert history.judgments[0].added == 81


def test_pages_show_the_answers_of_python() -> None:
    from fastapi.testclient import TestClient

    from judged.interface.pages.workspace import open_sample, open_workspace
    from judged.web.app import make_app

    client = TestClient(make_app(open_sample()), base_url="http://127.0.0.1")
    assert client.get("/api/v1/history").json() == json.loads(show(sample_history()).json())
    assert client.get("/history").status_code == 200
    arguments = {"measure": "AP", "evaluation": "#21"}
    change = client.get("/api/v1/history/change", params=arguments)
    assert change.json() == json.loads(bisect(sample_history(), **arguments).json())
    assert client.get("/history/change", params={"evaluation": "3"}).status_code == 400
    closed = TestClient(make_app(open_workspace({"q": {"d": 1}}, {"r": {"q": ["d"]}})), base_url="http://127.0.0.1")
    assert "judged serve QRELS RUN --history STORE" in closed.get("/history").text
