"""`judged tradeoff`: what it prints is what `tradeoff` found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import judged

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    topics = [f"q{at}" for at in range(6)]
    (tmp_path / "qrels.txt").write_text("".join(f"{topic} 0 r 1\n{topic} 0 n 0\n" for topic in topics))
    for name, docs in (("good", "rn"), ("fair", "nr")):
        lines = [f"{topic} Q0 {doc} {at} {9 - at} t\n" for topic in topics for at, doc in enumerate(docs, 1)]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    (tmp_path / "costs.csv").write_text("run,ms,qps,where\ngood,30,5,here\nfair,10,9,there\nlost,1,1,\n")
    return tmp_path


FILES = ("tradeoff", "qrels.txt", "good.run", "fair.run", "--costs", "costs.csv")
WARNED = "warning: costs of runs that were not scored: lost\nwarning: ignored cost columns without numbers: where\n"


def found(**options: object) -> object:
    return judged.evaluate("qrels.txt", ["good.run", "fair.run"], "RR").tradeoff("costs.csv", **options)


def test_the_table_is_that_of_python(run: Callable[..., Ended]) -> None:
    done = run(*FILES, "-m", "RR", "--cost", "ms", "--baseline", "fair")
    assert (done.code, done.out, done.err) == (0, found(cost="ms", baseline="fair").text() + "\n", WARNED)
    assert done.lines[2].split() == ["good", "1.0000", "[0.650,", "1.000]", "+0.5000", "[+0.500,", "+0.500]",
                                     "30", "(+20)", "+0.025", "yes"]  # fmt: skip


@pytest.mark.parametrize("form", ["markdown", "csv"])
def test_forms(run: Callable[..., Ended], form: str) -> None:
    done = run(*FILES, "-m", "RR", "--higher-is-better", "qps", "--format", form)
    assert done.out == getattr(found(higher_is_better="qps"), form)() + "\n"


def test_json_and_saved_scores(run: Callable[..., Ended]) -> None:
    judged.evaluate("qrels.txt", ["good.run", "fair.run"], ["P@1", "RR"]).save("scores.parquet")
    done = run("tradeoff", "--scores", "scores.parquet", "--costs", "costs.csv", "-m", "RR", "--format", "json")
    assert json.loads(done.out) == found().to_dict()
    assert done.err == ""


@pytest.mark.parametrize("ending", ["png", "svg", "html"])
def test_charts(run: Callable[..., Ended], folder: Path, ending: str) -> None:
    assert run(*FILES, "-o", f"chart.{ending}").code == 0
    starts = {"png": b"\x89PNG", "svg": b"<svg", "html": b"<!DOCTYPE html>"}
    assert (folder / f"chart.{ending}").read_bytes().startswith(starts[ending])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tradeoff", "--costs", "costs.csv"), "either QRELS with RUNs or --scores is required"),
        ((*FILES, "--scores", "s.parquet"), "either QRELS with RUNs or --scores is required"),
        (("tradeoff", "qrels.txt", "--costs", "costs.csv"), "at least two runs are required"),
        ((*FILES, "--format", "png"), "cannot be printed"),
        ((*FILES, "--cost", "euros"), "no cost 'euros'"),
        ((*FILES, "-o", "costs.csv"), "the output file is also an input"),
        ((*FILES, "-o", "good.run", "--format", "csv"), "the output file is also an input"),
    ],
)
def test_refused(run: Callable[..., Ended], arguments: tuple[str, ...], said: str) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
