"""Reviews of two traced systems: runs, settings, steps, kinds of failure, and losses by topic."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from command_line import process
from judged.errors import InputError
from judged.pipelines.traces import Document, Span, Traces, write_traces
from judged.reports.changes import review

if TYPE_CHECKING:
    from pathlib import Path

TOPICS = [f"q{i:02}" for i in range(16)]
QRELS = {topic: {"a": 1, "b": 1} for topic in TOPICS}
BETTER = {2, 3}  # topics that lose


def traced(name: str, shown: dict[str, str], settings: dict[str, Any] | None = None) -> Traces:
    """Return traces whose first stage returns all of a, b, and x, and whose second stage returns `shown`."""
    spans: list[Span] = []
    for topic in TOPICS:
        first, last = (tuple(Document(doc, rank) for rank, doc in enumerate(docs, 1)) for docs in ("abx", shown[topic]))
        spans.append(Span(topic, topic, "bm25", "candidates", (), first))
        spans.append(Span(topic, topic, "rerank", "rerank", ("bm25",), last, settings=settings or {}))
    return Traces(tuple(spans), name)


BEFORE = traced("old", {topic: "ab" if i in BETTER else "xa" for i, topic in enumerate(TOPICS)}, {"depth": 2})
AFTER = traced("new", {topic: "xb" if i in BETTER else "ab" for i, topic in enumerate(TOPICS)}, {"depth": 3})


def answers(change: Any) -> dict[str, Any]:
    return {row.question: row for row in change.questions}


def test_without_runs_the_lists_that_users_saw_are_compared() -> None:
    from_traces = review(QRELS, traces=(BEFORE, AFTER), measures="R@2")
    runs = [{side.name: side.run("rerank")} for side in (BEFORE, AFTER)]
    with_runs = review(QRELS, *runs, "R@2", traces=(BEFORE, AFTER))
    assert (from_traces.baseline, from_traces.candidate) == ("old", "new")
    assert [row.finding for row in from_traces.questions] == [row.finding for row in with_runs.questions]
    with pytest.raises(InputError):
        review(QRELS)


def test_steps_and_losses_by_hand() -> None:
    """R@2 rises from 1/2 to 1 on 14 topics and falls on 2: b was removed by the reranker."""
    change = review(QRELS, traces=(BEFORE, AFTER), measures="R@2")
    steps = {row["part"]: row for row in change.table("steps").records()}
    assert steps["rerank"]["difference"] == pytest.approx((14 * 0.5 - 2 * 0.5) / 16)
    assert (steps["bm25"]["difference"], steps["order"]["difference"]) == (0.0, 0.0)
    assert answers(change)["Which steps changed the score?"].state == "good"
    back = answers(review(QRELS, traces=(AFTER, BEFORE), measures="R@2"))
    assert back["Which steps changed the score?"].state == "bad"
    same = answers(review(QRELS, traces=(AFTER, replace(AFTER, name="x")), measures="R@2"))
    assert same["Which steps changed the score?"].state == "undecided"
    kinds = {row["failure"]: row for row in change.table("kinds").records()}
    assert (kinds["scoring"]["before"], kinds["scoring"]["after"]) == pytest.approx((14 / 32, 2 / 32))
    assert kinds["scoring"]["difference"] == pytest.approx(-12 / 32)
    losses = change.table("losses").records()
    assert [row["query_id"] for row in losses] == ["q02", "q03"]
    assert {(row["baseline"], row["candidate"], row["difference"]) for row in losses} == {(1.0, 0.5, -0.5)}
    assert {(row["change_bm25"], row["change_rerank"], row["change_order"]) for row in losses} == {(0.0, -0.5, 0.0)}


def test_a_score_can_change_without_a_significant_step() -> None:
    """Five topics lose b at the first step and five at the second: 2 / 2^5 for a step, 2 / 2^10 for the score."""
    complete = traced("new", dict.fromkeys(TOPICS, "ab"))
    spans = [
        replace(span, documents=(Document("a", 1), Document("x", 2)))
        if span.query_id in TOPICS[: 5 if span.stage == "bm25" else 10]
        else span
        for span in complete.spans
    ]
    change = review(QRELS, traces=(Traces(tuple(spans), "old"), complete), measures="R@2")
    p = {row["part"]: row["p"] for row in change.table("steps").records()}
    assert (p["score"], p["bm25"], p["rerank"]) == pytest.approx((2 / 2**10, 2 / 2**5, 2 / 2**5))
    assert answers(change)["Which steps changed the score?"].state == "undecided"


def test_all_topics_with_a_loss_are_sorted_and_only_five_are_visible() -> None:
    worse = traced("worse", {topic: "xa" if i < 7 else "xx"[:1] for i, topic in enumerate(TOPICS)})
    perfect = traced("perfect", dict.fromkeys(TOPICS, "ab"))
    change = review(QRELS, traces=(perfect, worse), measures="R@2")
    losses = change.table("losses")
    assert losses.folded
    differences = [row["difference"] for row in losses.records()]
    assert differences == sorted(differences) == [-1.0] * 9 + [-0.5] * 7
    (short,) = (block for block in change.blocks() if block.name == "largest_losses")
    assert len(short) == 5  # type: ignore[arg-type]


def test_settings_are_compared_from_traces_and_from_files(tmp_path: Path) -> None:
    question = "Which settings changed?"
    recorded = review(QRELS, traces=(BEFORE, AFTER), measures="R@2")
    assert [tuple(row.values()) for row in recorded.table("settings").records()] == [("rerank.depth", "2", "3")]
    assert answers(recorded)[question].state == "inspect"
    given = review(QRELS, traces=(BEFORE, AFTER), measures="R@2", settings=({"k": 1}, {"k": 2}))
    assert [row["setting"] for row in given.table("settings").records()] == ["rerank.depth", "k"]
    without = [
        replace(side, spans=tuple(replace(span, settings={}) for span in side.spans)) for side in (BEFORE, AFTER)
    ]
    assert answers(review(QRELS, traces=tuple(without), measures="R@2"))[question].state == "no data"
    equal = answers(review(QRELS, traces=(BEFORE, replace(BEFORE, name="x")), measures="R@2"))[question]
    assert (equal.state, equal.blocks) == ("inspect", ())
    runs = [{side.name: side.run("rerank")} for side in (BEFORE, AFTER)]
    (tmp_path / "a.toml").write_text("[index]\nshards = 1\n")
    (tmp_path / "b.json").write_text('{"index": {"shards": 2}}')
    files = review(QRELS, *runs, "R@2", settings=(tmp_path / "a.toml", tmp_path / "b.json"))
    assert [tuple(row.values()) for row in files.table("settings").records()] == [("index.shards", "1", "2")]


def test_topics_with_an_unrecorded_list_are_left_out_of_the_runs_and_counted() -> None:
    spans = [replace(span, documents=None) if (span.query_id, span.stage) == ("q05", "rerank") else span
             for span in AFTER.spans]  # fmt: skip
    change = review(QRELS, traces=(BEFORE, replace(AFTER, spans=tuple(spans))), measures="R@2")
    (note,) = (note for note in change.notes if note.rule == "unrecorded-stages" and not note.subject)
    assert "1 topic" in note.text
    assert "15 topics" in answers(change)["Is the candidate better?"].finding
    assert {row["failure"]: row["n"] for row in change.table("kinds").records()}["debugging"] == 15
    nothing = tuple(replace(span, documents=None) if span.stage == "rerank" else span for span in AFTER.spans)
    with pytest.raises(InputError):
        review(QRELS, traces=(BEFORE, replace(AFTER, spans=nothing)), measures="R@2")


def test_each_system_can_have_its_own_corpus() -> None:
    """The baseline lacks b in its corpus, so its loss is missing content, and not scoring."""
    own = {row["failure"]: row for row in
           review(QRELS, traces=(BEFORE, AFTER), measures="R@2", corpus=(["a", "x"], ["a", "b", "x"]))
           .table("kinds").records()}  # fmt: skip
    shared = {row["failure"]: row for row in
              review(QRELS, traces=(BEFORE, AFTER), measures="R@2", corpus=["a", "b", "x"])
              .table("kinds").records()}  # fmt: skip
    assert (own["missing content"]["before"], own["missing content"]["after"]) == (0.5, 0.0)
    assert own["missing content"]["change"] == "less"
    ids = review(QRELS, traces=(BEFORE, AFTER), measures="R@2", corpus=("a", "b", "x")).table("kinds").records()
    assert list(shared.values()) == ids
    assert (shared["missing content"]["before"], shared["missing content"]["change"]) == (0.0, "not significant")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traced")
    (path / "qrels.txt").write_text("".join(f"{topic} 0 {doc} 1\n" for topic in TOPICS for doc in "ab"))
    for side in (BEFORE, AFTER):
        write_traces(side, path / f"{side.name}.jsonl")
        rows = side.run("rerank").table.to_pylist()
        lines = [f"{row['query_id']} Q0 {row['doc_id']} 1 {row['score']} {side.name}\n" for row in rows]
        (path / f"{side.name}.run").write_text("".join(lines))
    (path / "ids.txt").write_text("a\nb\nx\n")
    (path / "few.txt").write_text("a\nx\n")
    for name, depth in (("a", 1), ("b", 2)):
        (path / f"{name}.toml").write_text(f"depth = {depth}\n")
    return path


def command(folder: Path, *options: str) -> Any:
    names = {name: str(folder / name) for name in ("old.jsonl", "new.jsonl", "ids.txt", "few.txt", "a.toml", "b.toml")}
    arguments = [names.get(option, option) for option in options]
    return process("change", "review", str(folder / "qrels.txt"), *arguments, "-m", "R@2")


def test_the_command_reads_traces_settings_and_corpora(folder: Path) -> None:
    traces = ("--traces", "old.jsonl", "new.jsonl")
    files = ("--settings", "a.toml", "b.toml", "--corpus", "few.txt", "--corpus", "ids.txt")
    done = command(folder, *traces, *files, "--target-failure", "missing content", "--format", "json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    states = {row["question"]: row["state"] for row in document["questions"]}
    assert states["Does the change fix the target failure?"] == "good"
    assert [row["setting"] for row in document["settings"]] == ["rerank.depth", "depth"]
    assert np.isclose({row["part"]: row["difference"] for row in document["steps"]}["score"], 12 / 32)
    rows = command(folder, *traces, "--per-topic", "--format", "csv").out.splitlines()
    assert [row.split(",")[0] for row in rows] == ["query_id", "q02", "q03"]
    none = command(folder, "--traces", "new.jsonl", "new.jsonl", "--per-topic", "--format", "csv")
    assert (none.code, len(none.out.splitlines())) == (0, 1)


@pytest.mark.parametrize(
    "options",
    [
        (), ("old.run",), ("old.run", "--traces", "old.jsonl", "new.jsonl"), ("--settings", "a.toml", "b.toml"),
        ("--traces", "old.jsonl", "new.jsonl", *(3 * ("--corpus", "ids.txt"))),
        ("--corpus", "ids.txt"),
    ],
)  # fmt: skip
def test_runs_or_traces_are_required(folder: Path, options: tuple[str, ...]) -> None:
    done = command(folder, *options)
    assert done.code == 2, done.err
    assert "Fix:" in done.err
