"""`judged curve`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import judged
from judged.interface.commands.scoring import curve_command as command

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

CAT = {"cat in a box": {f"d{rank}": int(rank in {2, 4, 5, 7}) for rank in range(1, 9)}}
PLAIN = {"cat in a box": {f"d{rank}": 9.0 - rank for rank in range(1, 9)}}
BEST = {"cat in a box": {f"d{rank}": -float(position) for position, rank in enumerate((2, 4, 5, 7, 1, 3, 6, 8))}}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qrels.json").write_text(json.dumps(CAT))
    (tmp_path / "plain.json").write_text(json.dumps(PLAIN))
    (tmp_path / "other.json").write_text(json.dumps(BEST))
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, ["qrels.json", "plain.json", "best=other.json", *arguments])


def refused(*arguments: str) -> str:
    done = run(*arguments)
    assert isinstance(done.exception, judged.JudgedError)
    return str(done.exception)


@pytest.mark.usefixtures("files")
def test_the_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "46")
    curves = judged.curve(CAT, {"plain": PLAIN, "best": BEST}, "R")
    assert run("-m", "R", "--ci", "none").stdout == f"{curves.plot(width=46)}\n"
    letters = run("-m", "R", "--ci", "none", "--ascii").stdout
    assert letters == f"{curves.plot(width=46, ascii_only=True)}\n"


@pytest.mark.usefixtures("files")
def test_forms_to_standard_output() -> None:
    curves = judged.curve(
        "qrels.json", ["plain.json", judged.Run.read("other.json", name="best")], "R", cutoffs=[1, 4, 5]
    )
    options = ("-m", "R", "--cutoffs", "1,4..5")
    assert json.loads(run(*options, "--format", "json").stdout) == curves.to_dict()
    for form in ("csv", "markdown", "latex", "table"):
        assert run(*options, "--format", form).stdout == f"{curves.written(form)}\n"
    assert run("-m", "R", "--to", "2", "--format", "csv").stdout.splitlines() == [
        "run,cutoff,value,ci_low,ci_high,n", "plain,1,0.0,,,1", "plain,2,0.25,,,1", "best,1,0.25,,,1",
        "best,2,0.5,,,1",
    ]  # fmt: skip


def test_files(files: Path) -> None:
    for end in ("svg", "csv", "parquet", "txt"):
        done = run("-m", "nDCG@3", "-o", f"a.{end}")
        assert (done.exit_code, done.stdout) == (0, ""), done.exception
        assert (files / f"a.{end}").stat().st_size > 100
    assert (files / "a.svg").read_text().startswith("<svg")
    run("-m", "R", "-o", "a.svg", "--format", "csv")
    assert (files / "a.svg").read_text().startswith("run,cutoff")


@pytest.mark.usefixtures("files")
def test_precision_by_recall() -> None:
    levels = run("--precision-recall", "interpolated", "--format", "csv").stdout.splitlines()
    assert levels[0] == "run,recall,value,ci_low,ci_high,n"
    assert levels[1] == "plain,0.0,0.6,,,1"
    assert len(levels) == 1 + 2 * 11
    raw = run("--precision-recall", "raw", "--topic", "cat in a box", "--format", "csv").stdout.splitlines()
    raw_header = "run,cutoff,recall,value,ci_low,ci_high,n"
    assert raw[0] == raw_header
    assert raw[1:5] == [
        "plain,2,0.25,0.5,,,1", "plain,4,0.5,0.5,,,1", "plain,5,0.75,0.6,,,1", f"plain,7,1.0,{4 / 7},,,1",
    ]  # fmt: skip
    none = run("--precision-recall", "raw", "--rel", "2", "--format", "csv")
    assert none.stdout.splitlines() == [raw_header]
    assert "no grade reaches 2" in none.stderr


@pytest.mark.usefixtures("files")
def test_one_topic_is_named_below() -> None:
    done = run("-t", "cat in a box", "-m", "P", "--ties", "stable")
    assert done.stdout.splitlines()[-1] == "Over topic cat in a box; ties in the order of the run"


@pytest.mark.usefixtures("files")
def test_refusals() -> None:
    assert "takes no cutoff" in refused("-m", "Rprec")
    assert "unknown for .gif" in refused("-o", "a.gif")
    assert "cannot be printed" in refused("--format", "png")
    assert "cannot be combined" in refused("--to", "5", "--cutoffs", "1,2")
    assert "--cutoffs must be a list of cutoffs, got '1,x'" in refused("--cutoffs", "1,x")
    assert "omit -m" in refused("--precision-recall", "raw", "-m", "P")
    assert "no topic 'dog'" in refused("--topic", "dog")
    assert "cannot show ranges" in refused("--ties", "bounds")
    assert "the output file is also an input" in refused("-o", "other.json")
