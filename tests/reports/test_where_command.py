"""`--where`: the numbers are those of the chosen topics, and nothing is said of the others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import judged

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended

QRELS = "".join(f"q{i} 0 d 1\n" for i in range(1, 5))
RUN = "q1 Q0 d 1 2.0 a\nq1 Q0 x 2 1.0 a\nq2 Q0 x 1 2.0 a\nq2 Q0 d 2 1.0 a\nq3 Q0 d 1 2.0 a\nq4 Q0 x 1 2.0 a\n"
OTHER = "q1 Q0 x 1 2.0 b\nq2 Q0 d 1 2.0 b\nq3 Q0 x 1 2.0 b\nq4 Q0 d 1 2.0 b\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qrels.txt").write_text(QRELS)
    (tmp_path / "a.run").write_text(RUN)
    (tmp_path / "b.run").write_text(OTHER)
    (tmp_path / "known.csv").write_text("query_id,kind,size\nq1,law,3\nq2,law,4\nq3,news,5\nq4,,6\n")
    (tmp_path / "costs.csv").write_text("run,ms\na,10\nb,35\n")
    (tmp_path / "needs.csv").write_text("query_id,need\nq1,tax\nq2,tax\nq3,peace\nq4,peace\n")
    return tmp_path


def test_the_mean_is_that_of_the_chosen_topics(run: Callable[..., Ended]) -> None:
    filter_options = ("--attributes", "known.csv", "--where", "kind == 'law'")
    done = run("evaluate", "qrels.txt", "a.run", "-m", "RR", "--format", "json", "--per-topic", *filter_options)
    document = json.loads(done.out)
    assert (document["results"][0]["value"], document["results"][0]["per_topic"]) == (0.75, {"q1": 1.0, "q2": 0.5})
    assert document["qrels"]["where"] == "kind == 'law'"
    assert document["runs"]["a"]["warnings"] == []  # q3 and q4 are not "not in the qrels": they were not chosen
    process = run("evaluate", "qrels.txt", "a.run", "-m", "RR", "--ci", "none", *filter_options)
    assert "Only topics where kind == 'law' are included." in process.out


def test_compare_and_curve_know_it_too(run: Callable[..., Ended]) -> None:
    filter_options = ("--attributes", "known.csv", "--where", "not kind == 'law'")
    comparison = json.loads(
        run("compare", "qrels.txt", "a.run", "b.run", "-m", "RR", "--format", "json", *filter_options).out
    )
    assert comparison["pairs"][0]["n"] == 2
    assert comparison["pairs"][0]["difference"] == 0.0  # q3 1 against 0, q4 0 against 1
    curve = json.loads(run("curve", "qrels.txt", "a.run", "-m", "R@2", "--format", "json", *filter_options).out)
    assert [row["value"] for row in curve["points"]] == [0.5, 0.5]


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (("--where", "size == 'x'"), "the attribute size is a number, but is compared with 'x'"),
        (("--where", "color == 'x'"), "no attribute 'color'"),
        (("--where", "size > 100"), "no topic satisfies 'size > 100'"),
        (("--where", "__import__('os')"), "is not supported in an expression"),
        (("--where", "size > 3", "--topics", "run"), "cannot be combined with topics=run"),
        ((), "--attributes requires --where"),
    ],
)
def test_what_makes_no_sense_is_said(run: Callable[..., Ended], condition: tuple[str, ...], message: str) -> None:
    done = run("evaluate", "qrels.txt", "a.run", "-m", "RR", "--attributes", "known.csv", *condition)
    assert done.code == 2
    assert message in done.err


def test_topics_of_the_source_that_are_left_out_are_remembered() -> None:
    qrels = judged.Qrels.of({"q1": {"d": 1}, "q2": {"d": 1}})
    assert qrels.over(["q2", "q9"]).left_out == {"q1"}
    with pytest.raises(judged.InputError, match="none of the selected topics has a judgment"):
        qrels.over(["q9"])


def test_scores_over_some_topics_are_the_same_scores() -> None:
    qrels = {f"q{i}": {"d": 1, "e": 2} for i in range(6)}
    run = {f"q{i}": {"d": 2.0, "x": 2.0, "e": 1.0} for i in range(6)}
    scores = judged.evaluate(qrels, run, ["nDCG@10", "RR"], ties="bounds")
    part = scores.over_topics([query in {"q2", "q4"} for query in scores.query_ids])
    assert part.query_ids == ("q2", "q4")
    again = judged.evaluate({query: qrels[query] for query in ("q2", "q4")}, run, ["nDCG@10", "RR"], ties="bounds")
    assert part.values.tolist() == again.values.tolist()
    assert part.ranges[0].low.tolist() == again.ranges[0].low.tolist()
    assert part.aggregate() == again.aggregate()
    with pytest.raises(judged.InputError, match="at least one topic must be selected"):
        scores.over_topics([False] * 6)
    with pytest.raises(judged.InputError, match=r"must have shape \(6,\)"):
        scores.over_topics([True])


def test_what_is_not_known_is_said(run: Callable[..., Ended], folder: Path) -> None:
    command = ("evaluate", "qrels.txt", "a.run", "-m", "RR", "--attributes", "known.csv", "--where")
    assert "1 of 4 topics have no kind" in run(*command, "kind != 'law'").err
    assert "have no kind" not in run(*command, "missing(kind)").err
    assert "have no kind" in run(*command, "kind != 'missing'").err
    assert "`where` is empty" in run(*command, " ").err
    assert run(*command, " ").code == 2
    assert "Only topics where size > 4 are included." in run(*command, "size > 4", "--format", "markdown").out
    assert "% Only topics where size > 4 are included" in run(*command, "size > 4", "--format", "latex").out
    process = run(*command, "query_id in ('q1', 'q2')", "--ci", "none")
    assert process.lines[1].split() == ["a", "0.7500"]
    del folder


def test_an_outcome_is_cut_by_the_baseline_and_says_so(run: Callable[..., Ended]) -> None:
    command = (
        "compare",
        "qrels.txt",
        "a.run",
        "b.run",
        "-m",
        "RR",
        "--format",
        "json",
        "--where",
        "first_relevant == '1'",
    )
    by_first, by_second = run(*command), run(*command, "--baseline", "b")
    assert "first_relevant is computed from a. On topics" in by_first.err
    assert json.loads(by_first.out)["results"][0]["value"] == 1.0  # a has q1 and q3 at the first rank
    assert "first_relevant is computed from b. On topics" in by_second.err
    assert json.loads(by_second.out)["results"][1]["value"] == 1.0


@pytest.mark.parametrize(
    "command",
    [
        ("stages", "qrels.txt", "a.run", "-m", "RR@10"),
        ("matrix", "qrels.txt", "a.run", "-x", "R@2", "-y", "RR"),
        ("disagree", "qrels.txt", "a.run", "b.run", "-m", "RR", "-m", "R@2"),
        ("diff", "qrels.txt", "a.run", "b.run", "-m", "RR"),
        ("review", "qrels.txt", "a.run", "-m", "RR@10"),
        ("power", "qrels.txt", "a.run", "b.run", "-m", "RR"),
        ("tradeoff", "qrels.txt", "a.run", "b.run", "-m", "RR", "--costs", "costs.csv"),
        ("needs", "qrels.txt", "a.run", "b.run", "-m", "RR", "--needs", "needs.csv"),
    ],
)
def test_every_diagnosis_knows_it(run: Callable[..., Ended], command: tuple[str, ...]) -> None:
    filter_options = ("--attributes", "known.csv", "--where", "kind == 'law'")
    process = run(*command, *filter_options, "--format", "json")
    assert process.code == 0, process.err
    assert json.loads(process.out)["qrels"]["where"] == "kind == 'law'"
    assert json.loads(process.out)["qrels"]["n"] == 2
    assert "not in the qrels" not in process.err
    assert (
        run(*command, *filter_options, "--format", "markdown")
        .out.rstrip()
        .endswith("Only topics where kind == 'law' are included.")
    )


def test_a_report_says_which_topics_it_is_on(run: Callable[..., Ended], folder: Path) -> None:
    filter_options = ("--attributes", "known.csv", "--where", "kind == 'law'")
    done = run("report", "qrels.txt", "a.run", "b.run", "-m", "RR", *filter_options, "-o", "r.md")
    text = (folder / "r.md").read_text()
    assert done.code == 0, done.err
    assert "Evaluation on qrels where kind == 'law'" in text
    assert "2 topics" in text


def test_needs_tradeoff_and_power_count_the_chosen_topics_alone(run: Callable[..., Ended], folder: Path) -> None:
    filter_options = ("-m", "RR", "--attributes", "known.csv", "--where", "size < 5", "--format", "json")
    needs = json.loads(run("needs", "qrels.txt", "a.run", "--needs", "needs.csv", *filter_options).out)
    assert [(row["need"], row["mean"], row["worst"]) for row in needs["by_need"]] == [("tax", 0.75, 0.5)]
    (folder / "by_need.txt").write_text("tax 0 d 1\npeace 0 d 1\n")
    assert (
        json.loads(run("needs", "by_need.txt", "a.run", "--needs", "needs.csv", *filter_options).out)["by_need"]
        == needs["by_need"]
    )
    weighed = json.loads(run("tradeoff", "qrels.txt", "a.run", "b.run", "--costs", "costs.csv", *filter_options).out)
    assert {row["run"]: (row["value"], row["n"]) for row in weighed["results"]} == {"a": (0.75, 2), "b": (0.5, 2)}
    (plan,) = json.loads(run("power", "qrels.txt", "a.run", "b.run", *filter_options).out)["plans"]
    assert (plan["n"], plan["sd"]) == (2, pytest.approx(0.75 * 2**0.5))  # differences -1 and 0.5


@pytest.mark.parametrize(
    "command", [("power", "--sd", "1", "--n", "9"), ("tradeoff", "--scores", "s.parquet", "--costs", "costs.csv")]
)
def test_a_condition_needs_judgments(run: Callable[..., Ended], command: tuple[str, ...]) -> None:
    done = run(*command, "--where", "size < 5")
    assert (done.code, "--where requires QRELS and RUNs" in done.err) == (2, True)


def test_power_says_its_condition_in_python() -> None:
    qrels, runs = {f"q{i}": {"d": 1} for i in range(4)}, {"a": {f"q{i}": ["d"] for i in range(4)}}
    plans = judged.power(qrels, {**runs, "b": {"q0": ["d"]}}, "RR", where="query_id != 'q3'")
    assert (plans.plans["RR"].n, plans.to_dict()["qrels"]["where"]) == (3, "query_id != 'q3'")
    assert plans.markdown().rstrip().endswith("Only topics where query_id != 'q3' are included.")
