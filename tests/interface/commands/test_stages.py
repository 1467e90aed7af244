"""`judged stages` and `judged matrix`: what they print is what the functions found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import judged
from judged.comparison.slicing.topic_slices import slice_topics
from judged.data.write import write_qrels, write_run
from judged.diagnosis.matrix import matrix
from judged.diagnosis.stages import stages

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended

TOPICS = [f"q{at:02}" for at in range(24)]
QRELS = {topic: {"rel": 1, "other": 1} for topic in TOPICS}
FILL = [f"x{at}" for at in range(30)]
GOOD = {topic: ["rel", "other", *FILL] for topic in TOPICS}
BAD = {topic: [*FILL[:12], "rel", *FILL[12:]] if at % 2 else GOOD[topic] for at, topic in enumerate(TOPICS)}
KNOWN = {topic: {"side": "odd" if at % 2 else "even"} for at, topic in enumerate(TOPICS)}
HOW = ("--resamples", "500")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_qrels(judged.Qrels.of(QRELS), tmp_path / "qrels.txt")
    for name, run in (("good", GOOD), ("bad", BAD)):
        scored = {topic: {doc: -float(at) for at, doc in enumerate(docs)} for topic, docs in run.items()}
        write_run(judged.Run.of(scored), tmp_path / f"{name}.run")
    rows = "\n".join(f"{topic},{known['side']}" for topic, known in KNOWN.items())
    (tmp_path / "known.csv").write_text(f"query_id,side\n{rows}\n")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_stages(run: Callable[..., Ended]) -> None:
    done = run("stages", "qrels.txt", "bad.run", "--cutoff", "20")
    assert done.code == 0
    assert done.out == stages("qrels.txt", "bad.run", cutoff=20).text() + "\n"
    done = run("stages", "qrels.txt", "bad.run", "good.run", "--cutoff", "10", "--per-topic", "-m", "AP")
    wanted = stages("qrels.txt", "bad.run", "good.run", "AP", cutoff=10)
    assert done.out == wanted.text(unfold=["topics"]) + "\n"
    assert [line.removeprefix("warning: ") for line in done.err.splitlines()] == list(wanted.warnings)
    assert "are not in the top 10 of bad" in done.err


@pytest.mark.usefixtures("folder")
def test_stages_of_two_systems_by_slice(run: Callable[..., Ended]) -> None:
    options = ("--baseline", "good.run", "--cutoff", "20", "--attributes", "known.csv", "--by", "side", *HOW)
    wanted = stages(
        "qrels.txt", "bad.run", cutoff=20, baseline="good.run", resamples=500, slicing=slice_topics(KNOWN, "side")
    )
    done = run("stages", "qrels.txt", "bad.run", *options, "--format", "json")
    assert json.loads(done.out) == json.loads(json.dumps(wanted.to_dict()))
    assert run("stages", "qrels.txt", "bad.run", *options).out == wanted.text() + "\n"
    assert run("stages", "qrels.txt", "bad.run", *options, "--format", "csv").out == wanted.csv() + "\n"
    pair = run(
        "stages", "qrels.txt", "good.run", "bad.run", *options, "--baseline-final", "bad.run", "--format", "json"
    )
    assert {change["difference"] for change in json.loads(pair.out)["changes"]} == {0.0}
    alone = run("stages", "qrels.txt", "good.run", "--baseline-final", "bad.run")
    assert (alone.code, "--baseline-final requires --baseline" in alone.err) == (2, True)


def test_documents_of_one_topic(run: Callable[..., Ended], folder: Path) -> None:
    done = run("stages", "qrels.txt", "bad.run", "-t", "q01")
    assert done.out == stages("qrels.txt", "bad.run").topic("q01").text() + "\n"
    assert [line.split() for line in done.lines[-2:]] == [
        ["q01", "rel", "1", "ranked", "low", "13", "13"],
        ["q01", "other", "1", "not", "returned", "-", "-"],
    ]
    assert run("stages", "qrels.txt", "bad.run", "-t", "z").code == 2
    texts = [{"query_id": topic, "text": text} for topic, text in (("q01", "cats"), ("q02", "dogs"))]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, texts)))
    named = run("stages", "qrels.txt", "bad.run", "-t", "q01", "--queries", "queries.jsonl", "--format", "markdown")
    assert named.lines[0] == "### q01: cats"
    assert named.lines[-1].startswith("| q01 | other |")
    both = run("stages", "qrels.txt", "bad.run", "-t", "q01", "--per-topic")
    assert (both.code, "--per-topic" in both.err) == (2, True)


@pytest.mark.usefixtures("folder")
def test_a_part_counts_from_a_share_of_the_loss_on(run: Callable[..., Ended]) -> None:
    """In nDCG, half of the topics lose 0.613 of 1 by candidates (1 of 2 documents) and 0.387 by ranking, say."""
    for share, verdict in (("0.1", "both"), ("0.45", None)):
        found = json.loads(run("stages", "qrels.txt", "bad.run", "--min-share", share, "--format", "json").out)
        told = {topic["verdict"] for topic in found["topics"] if topic["query_id"] == "q01"}
        wanted = stages("qrels.txt", "bad.run", min_share=float(share)).verdicts[1]
        assert told == {verdict or wanted}
    assert wanted != "both"


@pytest.mark.usefixtures("folder")
def test_csv_of_slices_and_topics(run: Callable[..., Ended]) -> None:
    options = ("--attributes", "known.csv", "--by", "side", "--format", "csv")
    for command in ("stages", "matrix"):
        by_slice = run(command, "qrels.txt", "bad.run", *options).lines
        assert [line.split(",")[0 if command == "stages" else 1] for line in by_slice] == [
            "slice", "all topics", "side=even", "side=odd",
        ]  # fmt: skip
        assert len(run(command, "qrels.txt", "bad.run", *options, "--per-topic").lines) == 25


@pytest.mark.usefixtures("folder")
def test_slices_by_an_outcome_say_so(run: Callable[..., Ended]) -> None:
    for done in (
        run("stages", "qrels.txt", "bad.run", "--baseline", "good.run", "--by", "first_relevant", *HOW),
        run("matrix", "qrels.txt", "bad.run", "good.run", "--baseline", "good", "--by", "first_relevant", *HOW),
    ):
        assert done.code == 0
        assert "first_relevant=1" in done.out
        assert "first_relevant is computed from good. On topics where good scores low" in done.err


@pytest.mark.usefixtures("folder")
def test_matrix(run: Callable[..., Ended]) -> None:
    options = ("-x", "R@20", "--attributes", "known.csv", "--by", "side", *HOW)
    wanted = matrix("qrels.txt", ["good.run", "bad.run"], x="R@20", slicing=slice_topics(KNOWN, "side"), resamples=500)
    done = run("matrix", "qrels.txt", "good.run", "bad.run", *options)
    assert done.out == wanted.text() + "\n"
    assert "bad, side=odd: both problems" in done.out
    assert json.loads(
        run("matrix", "qrels.txt", "good.run", "bad.run", *options, "--format", "json").out
    ) == json.loads(json.dumps(wanted.to_dict()))
    given = run("matrix", "qrels.txt", "bad.run", "--cuts", "0.8,0.3", "--baseline", "bad", "--format", "json")
    assert json.loads(given.out)["cuts"] == [0.8, 0.3]
    wrong = run("matrix", "qrels.txt", "bad.run", "--cuts", "0.8")
    assert (wrong.code, "the thresholds must be two numbers, got '0.8'" in wrong.err) == (2, True)


@pytest.mark.parametrize("command", ["stages", "matrix"])
def test_files(run: Callable[..., Ended], folder: Path, command: str) -> None:
    pytest.importorskip("vl_convert")
    for name, start in (("a.svg", b"<svg"), ("a.md", b"| "), ("a.csv", b""), ("a.json", b"{")):
        done = run(command, "qrels.txt", "bad.run", *HOW, "-o", name)
        assert (done.code, done.out) == (0, "")
        assert (folder / name).read_bytes().startswith(start)
    assert "the format of a result is unknown for .xyz" in run(command, "qrels.txt", "bad.run", "-o", "a.xyz").err
    assert "is also an input" in run(command, "qrels.txt", "bad.run", "-o", "bad.run", "--format", "csv").err
