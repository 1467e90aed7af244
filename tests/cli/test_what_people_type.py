"""What people type: measures, levels, decimals and classes of queries on the command line."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended

QRELS = "".join(f"q{i} 0 a 2\nq{i} 0 b 1\n" for i in range(8))
ONE = "".join(f"q{i} Q0 b 1 2 x\nq{i} Q0 a 2 1 x\n" for i in range(8))
OTHER = "".join(f"q{i} Q0 a 1 2 y\n" for i in range(8))
FILES = ("qrels.txt", "one.run", "other.run")


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in zip(FILES, (QRELS, ONE, OTHER), strict=True):
        (tmp_path / name).write_text(text)
    kinds = [f"q{i},{'law' if i < 3 else 'news'}" for i in range(8)]
    (tmp_path / "classes.csv").write_text("\n".join(["query_id,kind", *kinds]) + "\n")
    (tmp_path / "more.txt").write_text(QRELS + "q9 0 a 1\n")


def test_measures_with_commas_and_a_level_for_all(run: Callable[..., Ended]) -> None:
    done = run("evaluate", *FILES, "-m", "nDCG@10,MRR@10", "-m", "P@1(rel=1)", "--rel", "2", "--format", "json")
    values = {(row["run"], row["measure"]): row["value"] for row in json.loads(done.out)["results"]}
    assert {measure for _, measure in values} == {"nDCG@10", "RR(rel=2)@10", "P@1"}
    assert values["one", "RR(rel=2)@10"] == 0.5
    assert "rel-without-effect" in {note["rule"] for note in json.loads(done.out)["notes"]}


@pytest.mark.parametrize("command", ["evaluate", "compare", "slices", "report"])
def test_a_measure_for_a_class_of_queries(run: Callable[..., Ended], command: str) -> None:
    more = ["--by", "kind", "--min-topics", "2"] if command == "slices" else []
    measures = ["-m", "RR where kind == 'law'", "-m", "R@100 where kind == 'news'"]
    done = run(command, *FILES, *measures, "--rel", "2", "--attributes", "classes.csv", *more, "--format", "json")
    assert done.code == 0
    assert "RR(rel=2) where kind == 'law'" in done.out
    if command == "evaluate":
        assert {row["measure"]: row["n"] for row in json.loads(done.out)["results"]} == {
            "RR(rel=2) where kind == 'law'": 3,
            "R(rel=2)@100 where kind == 'news'": 5,
        }


def test_a_class_that_is_not_known(run: Callable[..., Ended]) -> None:
    done = run("evaluate", *FILES, "-m", "RR where knd == 'law'", "--attributes", "classes.csv")
    assert (done.code, done.out) == (2, "")
    assert "no attribute 'knd'" in done.err
    assert "query_id" in done.err


@pytest.mark.parametrize("form", ["table", "markdown", "latex"])
def test_decimals(run: Callable[..., Ended], form: str) -> None:
    done = run("compare", *FILES, "-m", "RR", "--rel", "2", "--format", form, "--digits", "2")
    row = next(line for line in done.out.splitlines() if re.match(r"\W*other\W+(textbf\{)?[01]\.", line))
    assert len(re.findall(r"[01]\.([0-9]+)", row)[0]) == 2


def test_measures_in_the_place_of_files(run: Callable[..., Ended]) -> None:
    done = run("evaluate", "-m", "nDCG@10", "RR@10", *FILES)
    assert (done.code, done.out) == (2, "")
    assert "repeat -m" in done.err


def test_every_note_by_itself(run: Callable[..., Ended]) -> None:
    runs = [f"r{i}=one.run" for i in range(5)]
    short, long = (run("evaluate", "more.txt", *runs, "-m", "RR(rel=1)", *v).err.splitlines() for v in ([], ["-v"]))
    assert sum("no documents returned" in line for line in short) == 1
    assert sum("no documents returned" in line for line in long) == 5


def test_the_level_of_relevance_is_no_confidence(run: Callable[..., Ended]) -> None:
    assert "--rel" in run("evaluate", *FILES, "--level", "2").err


def test_scores_that_cannot_be_read_again_say_how_they_can(run: Callable[..., Ended]) -> None:
    assert run("evaluate", *FILES, "-o", "scores.json").code == 0
    assert ".parquet" in run("compare", "--scores", "scores.json").err


@pytest.mark.parametrize(
    ("written", "fix"),
    [
        (("--by", "classes.csv"), "use --attributes classes.csv --by NAME."),
        (("--attributes", "classes.csv"), "use --by with one of kind, "),
    ],
)
def test_slices_without_a_name(run: Callable[..., Ended], written: tuple[str, str], fix: str) -> None:
    done = run("slices", *FILES, *written)
    assert (done.code, f"Fix: {fix}" in done.err) == (2, True)


def test_a_baseline_goes_by_its_name_and_by_its_path(run: Callable[..., Ended]) -> None:
    by_name, by_path = (run("compare", *FILES, "--baseline", baseline, "-m", "RR") for baseline in ("one", "./one.run"))
    assert (by_path.code, by_path.out) == (0, by_name.out)
