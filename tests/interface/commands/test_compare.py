"""`judged compare`: what it prints is what `compare` found."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest

import judged
from comparison_made import lists
from judged.comparison import Comparison
from judged.data.write import write_qrels, write_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended

RANKS = {"good": [1, 1, 2, 1, 1, 3, 1, 2], "fair": [2, 2, 3, 1, 4, 3, 2, 2], "poor": [9, 5, 7, 8, 3, 4, 9, 6]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    for place, ranks in (("news", RANKS), ("web", {name: places * 2 for name, places in RANKS.items()})):
        (tmp_path / place).mkdir()
        qrels, runs = lists(**ranks)
        write_qrels(judged.Qrels.of(qrels), tmp_path / place / "qrels.txt")
        for name, run in runs.items():
            scored = {topic: {doc: -at for at, doc in enumerate(docs)} for topic, docs in run.items()}
            write_run(judged.Run.of(scored), tmp_path / place / f"{name}.run")
    return tmp_path


NEWS = ("compare", "news/qrels.txt", "news/good.run", "news/fair.run", "news/poor.run", "-m", "RR")


def made(**options: object) -> Comparison:
    return judged.compare("news/qrels.txt", [f"news/{name}.run" for name in RANKS], "RR", **options)


@pytest.mark.usefixtures("folder")
def test_the_table_and_by_which_rules_it_was_made(run: Callable[..., Ended]) -> None:
    done = run(*NEWS)
    assert done.code == 0
    assert done.out == f"{made().text()}\n"
    assert done.lines[-1] == "Over the 8 topics of the qrels; ties by descending document id"
    assert done.lines[0].split() == ["run", "RR"]
    assert done.lines[1].split()[:3] == ["a", "good", "0.7917"]
    assert done.lines[1].split()[-1] == "c"  # it beats fair on 5 topics and ties on 3: p = 2/2^5


@pytest.mark.usefixtures("folder")
def test_every_pair(run: Callable[..., Ended]) -> None:
    assert run(*NEWS, "--pairs").out == made().text(unfold=["pairs"]) + "\n"


@pytest.mark.usefixtures("folder")
def test_options_reach_the_comparison(run: Callable[..., Ended]) -> None:
    options = (
        "--baseline", "fair", "--test", "bootstrap", "--correction", "bh", "--family", "all", "--alpha", "0.1",
        "--resamples", "700", "--seed", "3", "--min-difference", "0.2", "--margin", "0.4", "--ci", "t", "--depth", "5",
    )  # fmt: skip
    wanted = made(
        baseline="fair", test="bootstrap", correction="bh", family="all", alpha=0.1, resamples=700, seed=3,
        min_difference=0.2,
        margin=0.4, ci="t", depth=5,
    ).to_dict()  # fmt: skip
    assert json.loads(run(*NEWS, *options, "--format", "json").out) == json.loads(json.dumps(wanted))
    assert wanted["policies"]["depth"] == 5
    assert [pair["first"] for pair in wanted["pairs"]] == ["fair", "fair"]


def test_a_file_of_the_form_that_its_name_says(run: Callable[..., Ended], folder: Path) -> None:
    for name, text in {"a.tex": made().latex(), "a.md": made().markdown(), "a.csv": made().csv()}.items():
        assert run(*NEWS, "-o", name).out == ""
        assert (folder / name).read_text() == text + "\n"
    assert "the output file is also an input" in run(*NEWS, "-o", "news/good.run", "--format", "csv").err


@pytest.mark.usefixtures("folder")
def test_saved_scores(run: Callable[..., Ended]) -> None:
    assert run("evaluate", *NEWS[1:], "-o", "news.parquet").code == 0
    from_runs = json.loads(run(*NEWS, "--format", "json").out)
    assert json.loads(run("compare", "--scores", "news.parquet", "--format", "json").out) == from_runs
    late = run("compare", "--scores", "news.parquet", "--depth", "5")
    assert (late.code, late.err.startswith("error: --depth cannot be combined with --scores")) == (2, True)
    other = run("compare", "--scores", "news.parquet", "-m", "AP")
    assert (other.code, "AP was not evaluated. Fix: evaluate this measure, or use RR" in other.err) == (2, True)


@pytest.mark.usefixtures("folder")
def test_several_collections(run: Callable[..., Ended]) -> None:
    given = {name: (f"{name}/qrels.txt", [f"{name}/{one}.run" for one in RANKS]) for name in ("news", "web")}
    wanted = judged.compare_collections(given, "RR", baseline="fair")
    arguments = [f"{name}={','.join([qrels, *runs])}" for name, (qrels, runs) in given.items()]
    options = ("--collection", arguments[0], "--collection", arguments[1], "-m", "RR", "--baseline", "fair")
    done = run("compare", *options)
    assert done.out == wanted.text() + "\n"
    assert done.lines[0].split() == ["RR", "news", "web", "mean"]
    assert [line.split() for line in done.lines[1:4]] == [
        ["good", "0.7917", "0.7917", "†", "0.7917"],
        ["fair", "(baseline)", "0.4896", "0.4896", "0.4896"],
        ["poor", "0.1800", "‡", "0.1800", "‡", "0.1800"],
    ]
    assert run("compare", *options, "--format", "latex").out == wanted.latex() + "\n"
    assert json.loads(run("compare", *options, "--format", "json").out) == json.loads(json.dumps(wanted.to_dict()))
    rows = list(csv.DictReader(io.StringIO(run("compare", *options, "--format", "csv").out)))
    assert [(row["collection"], row["run"]) for row in rows[:4]] == [
        ("news", "good"), ("news", "fair"), ("news", "poor"), ("web", "good"),
    ]  # fmt: skip


@pytest.mark.usefixtures("folder")
def test_several_files_of_scores(run: Callable[..., Ended]) -> None:
    for name in ("news", "web"):
        files = [f"{name}/{file}" for file in ("qrels.txt", "good.run", "fair.run", "poor.run")]
        assert run("evaluate", *files, "-m", "RR", "-o", f"{name}/scores.parquet").code == 0
    twice = run("compare", "--scores", "news/scores.parquet", "--scores", "web/scores.parquet")
    assert (twice.code, "two collections have the name scores" in twice.err) == (2, True)
    done = run("compare", "--scores", "old=news/scores.parquet", "--scores", "new=web/scores.parquet")
    assert done.lines[0].split() == ["RR", "old", "new", "mean"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "exactly one of QRELS with RUNs"),
        (("news/qrels.txt", "news/good.run", "--scores", "x.parquet"), "exactly one of QRELS with RUNs"),
        (("news/qrels.txt",), "at least two runs are required. Fix: add runs after QRELS"),
        (("news/qrels.txt", "news/good.run"), "at least two runs are required, got good"),
        (
            ("news/qrels.txt", "news/good.run", "news/fair.run", "--baseline", "best"),
            "no run 'best' to use as the baseline",
        ),
        (("news/qrels.txt", "news/good.run", "news/fair.run", "--test", "dunnett"), "dunnett requires a baseline"),
        (("--collection", "news"), "--collection must be NAME=QRELS,RUN,..., got 'news'"),
        (("--collection", "n=news/qrels.txt,news/good.run,news/fair.run"), "at least two collections are required"),
        (("--collection", "n=q,a,b", "--collection", "m=q,a,b", "--margin", "0.1"), "--margin cannot be combined with"),
        (("--collection", "n=q,a,b", "--collection", "m=q,a,b", "--pairs"), "--pairs cannot be combined with"),
        (("--scores", "none.parquet"), "none.parquet: there is no such file"),
    ],
)
def test_errors(run: Callable[..., Ended], arguments: tuple[str, ...], message: str) -> None:
    done = run("compare", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert message in done.err


@pytest.mark.usefixtures("folder")
def test_unknown_tests_and_corrections_are_refused_with_the_known_ones(run: Callable[..., Ended]) -> None:
    for option in ("--test", "--correction", "--family"):
        done = run(*NEWS, option, "guess")
        assert done.code == 2
        assert "'guess' is not one of" in done.err


def test_every_known_test_is_offered() -> None:
    from judged.comparison.choices import all_tests
    from judged.interface.commands.comparison import compare_command as command
    from judged.stats.correction import CORRECTIONS

    offered = {option.name: getattr(option.type, "choices", ()) for option in command.params}
    assert set(offered["test"]) == set(all_tests())
    assert set(offered["correction"]) == set(CORRECTIONS)


@pytest.mark.usefixtures("folder")
def test_notes_go_to_standard_error(run: Callable[..., Ended]) -> None:
    done = run("compare", "news/qrels.txt", "old=news/good.run", "new=news/good.run", "-m", "RR", "-m", "NumRel")
    assert "warning: equal scores on every topic: old = new" in done.err
    assert "warning: NumRel is a sum over topics, and was not tested" in done.err
    assert "new and old have the same RR on all 8 topics." in done.out
    assert "warning" not in run(*NEWS, "--format", "json").err


@pytest.mark.parametrize("name", ["randomization", "randomized-tukey"])
def test_other_spellings_of_a_test(run: Callable[..., Ended], name: str, tmp_path: Path) -> None:
    (tmp_path / "q").write_text("q1 0 a 1\nq2 0 a 1\n")
    for system, other in (("x", "b"), ("y", "a")):
        (tmp_path / system).write_text(f"q1 Q0 {other} 1 2 t\nq1 Q0 c 2 1 t\nq2 Q0 a 1 1 t\n")
    files = [str(tmp_path / part) for part in ("q", "x", "y")]
    made = [run("compare", *files, "-m", "AP", "--test", spelt) for spelt in (name, name.replace("z", "s"))]
    assert made[0].code == 0
    assert made[0].out == made[1].out


@pytest.mark.usefixtures("folder")
def test_files_of_scores_by_the_same_qrels_are_one(run: Callable[..., Ended]) -> None:
    for name in ("good", "poor"):
        assert run("evaluate", "news/qrels.txt", f"news/{name}.run", "-m", "RR", "-o", f"{name}.parquet").code == 0
    done = run("compare", "--scores", "good.parquet", "--scores", "poor.parquet", "--format", "json")
    together = run("compare", "news/qrels.txt", "news/good.run", "news/poor.run", "-m", "RR", "--format", "json")
    assert json.loads(done.out)["pairs"] == json.loads(together.out)["pairs"]
