"""`judged power`: what it prints, and what it refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from judged.stats.sample_size import minimum_detectable, topics_needed_t

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended

# reciprocal ranks of a: 1, 1/2, 1; of b: 1/2, 1/2, 1/2: differences -1/2, 0, -1/2 have deviation sqrt(1/12)
QRELS = "q1 0 a 1\nq2 0 a 1\nq3 0 a 1\n"
TOP, NEXT = "{0} Q0 a 1 2 t\n{0} Q0 x 2 1 t\n", "{0} Q0 x 1 2 t\n{0} Q0 a 2 1 t\n"
SD = (1 / 12) ** 0.5


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = {"a": (TOP, NEXT, TOP), "b": (NEXT, NEXT, NEXT), "c": (NEXT, TOP, TOP)}
    (tmp_path / "qrels.txt").write_text(QRELS)
    for name, parts in runs.items():
        (tmp_path / f"{name}.run").write_text("".join(part.format(f"q{at + 1}") for at, part in enumerate(parts)))
    monkeypatch.chdir(tmp_path)


def test_a_table_and_a_sentence(run: Callable[..., Ended]) -> None:
    done = run("power", "qrels.txt", "a.run", "b.run", "-m", "RR", "--difference", "0.05")
    needed, detectable = topics_needed_t(0.05, SD), f"{minimum_detectable(SD, 3):.3f}"
    said = f"RR: With these 3 topics you can detect a difference of {detectable} (80% power, alpha 0.05)."
    assert [*done.lines[:3], " ".join(done.lines[3:])] == [
        "measure  topics  SD of differences  detectable  topics for 0.05",
        f"RR            3              0.289       {detectable}              {needed}",
        "",
        f"{said} To detect a difference of 0.05, you need {needed} topics.",
    ]


def test_options_of_the_plan(run: Callable[..., Ended]) -> None:
    options = ("--alpha", "0.01", "--power", "0.9", "--n", "50")
    made = json.loads(run("power", "qrels.txt", "a.run", "b.run", "-m", "RR", *options, "--format", "json").out)
    (plan,), pairs = made["plans"], made["pairs"]
    assert plan["detectable"] == pytest.approx(minimum_detectable(SD, 50, 0.01, 0.9))
    assert (plan["measure"], plan["n_observed"], plan["n"], plan["difference"]) == ("RR", 3, 50, None)
    assert [(pair["first"], pair["second"]) for pair in pairs] == [("all", "all"), ("a", "b")]


def test_pairs(run: Callable[..., Ended]) -> None:
    done = run("power", "qrels.txt", "a.run", "b.run", "c.run", "-m", "RR", "--pairs", "--format", "csv")
    assert done.lines[0] == "measure,first,second,n,sd,detectable,n_observed,left_out,observed"
    rows = [line.split(",") for line in done.lines[1:]]
    assert [row[1:3] for row in rows] == [["all", "all"], ["a", "b"], ["a", "c"], ["b", "c"]]
    # differences of a and c: -1/2, 1/2, 0: variance 1/4; of b and c: 0, 1/2, 1/2: 1/12
    assert [float(row[4]) ** 2 for row in rows] == pytest.approx([5 / 36, 1 / 12, 1 / 4, 1 / 12])
    assert float(rows[2][5]) == pytest.approx(minimum_detectable(0.5, 3))


def test_forms(run: Callable[..., Ended]) -> None:
    page = run("power", "qrels.txt", "a.run", "b.run", "-m", "RR", "--format", "markdown")
    assert page.lines[0] == "| measure | topics | SD of differences | detectable |"
    assert run("power", "qrels.txt", "a.run", "b.run", "-m", "RR", "--format", "latex").out.startswith(r"\begin{table}")
    assert run("power", "qrels.txt", "a.run", "b.run", "-o", "plan.txt").out == ""


def test_without_files(run: Callable[..., Ended]) -> None:
    done = run("power", "--sd", "0.1", "--n", "43", "--difference", "0.02")
    assert " ".join(done.lines[-2:]).strip() == (
        "With 43 topics you can detect a difference of 0.044 (80% power, alpha 0.05)."
        " To detect a difference of 0.02, you need 199 topics."
    )
    assert json.loads(run("power", "--sd", "0.1", "--n", "43", "--format", "json").out)["plans"][0]["sd"] == 0.1


def test_sums_have_no_plan(run: Callable[..., Ended]) -> None:
    done = run("power", "qrels.txt", "a.run", "b.run", "-m", "RR", "-m", "NumRet")
    assert [line.split()[0] for line in done.lines[:2]] == ["measure", "RR"]
    assert "NumRet is not a mean over topics, so its power was not computed" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "QRELS and RUNs are required. Fix: add the files, or use --sd and --n."),
        (["qrels.txt"], "QRELS and RUNs are required"),
        (["qrels.txt", "a.run"], "at least two runs are required, got 1"),
        (["--sd", "0.1"], "--sd requires --n, and cannot be combined with QRELS. Fix: use --sd S --n N without files."),
        (["qrels.txt", "a.run", "b.run", "--sd", "0.1", "--n", "9"], "--sd requires --n"),
        (["--sd", "-1", "--n", "9"], "the standard deviation must be finite and not negative, got -1.0"),
        (["--sd", "1", "--n", "9", "--alpha", "0"], "the alpha must be between 0 and 1, got 0.0"),
        (["--sd", "1", "--n", "9", "--difference", "0"], "the difference must be finite and not 0"),
        (["qrels.txt", "a.run", "b.run", "-m", "RR", "-o", "a.run", "--format", "csv"], "is also an input"),
        (["qrels.txt", "a.run", "b.run", "-m", "NumRet"], "no measure is a mean over topics"),
    ],
)
def test_what_is_refused(run: Callable[..., Ended], arguments: list[str], message: str) -> None:
    done = run("power", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
