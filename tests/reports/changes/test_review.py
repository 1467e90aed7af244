"""The sheet of a change: every question from what fills it, what is blank without it, and what follows."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import numpy as np
import pytest

from command_line import process
from judged.data import sample
from judged.errors import InputError
from judged.online import abtest, interleaving, read_log
from judged.online.watch.config import Event
from judged.online.watch.watched import Rollback
from judged.pipelines.traces import failures
from judged.pipelines.traces.recorder import sample_traces
from judged.reports.changes import review
from judged.reports.changes.failure_changes import answer_fixed, failure_changes
from judged.reports.changes.questions import answer_costs, answer_false_positives
from judged.stats.paired import paired_test

TOPICS = [f"q{i:02}" for i in range(24)]
QRELS = {topic: {"a": 1, "b": 1} for topic in TOPICS}
GOOD = {topic: {"a": 2.0, "b": 1.0} for topic in TOPICS}
BAD = {topic: {"x": 3.0, "a": 2.0, "b": 1.0} for topic in TOPICS}
KINDS = {topic: {"kind": "law" if i < 12 else "news"} for i, topic in enumerate(TOPICS)}
GATE = {"check": [{"measure": "nDCG@10", "margin": 0.01}]}


def states(change):
    return {question.question: question.state for question in change.questions}


def test_without_anything_else_the_rest_is_blank_and_nothing_follows():
    change = review(QRELS, {"old": GOOD}, {"new": BAD})
    assert change.decision == "undecided"
    assert states(change)["Is the candidate better?"] == "bad"
    assert sum(state == "no data" for state in states(change).values()) == 11
    assert all("--" in question.finding for question in change.questions if question.state == "no data")


@pytest.mark.parametrize(("new", "decision", "better"), [(BAD, "do not ship", "bad"), (GOOD, "ship", "undecided")])
def test_the_gate_decides(new, decision, better):
    change = review(QRELS, {"old": GOOD}, {"new": new}, config=GATE)
    assert (change.decision, states(change)["Is the candidate better?"]) == (decision, better)


def test_slices_that_paid_are_named_though_the_mean_does_not_fall():
    mixed = {topic: (BAD if i < 12 else GOOD)[topic] for i, topic in enumerate(TOPICS)}
    other = {topic: (GOOD if i < 12 else BAD)[topic] for i, topic in enumerate(TOPICS)}
    change = review(QRELS, {"old": other}, {"new": mixed}, "nDCG@10", attributes=KINDS, by="kind")
    slice_question = next(question for question in change.questions if question.question.startswith("Which slice"))
    assert states(change)["Is the candidate better?"] == "undecided"
    assert slice_question.state == "bad"
    assert "kind=law" in slice_question.finding.split("Worse")[1]
    assert "kind=news" in slice_question.finding.split("Worse")[0]


def test_of_a_kind_of_failure_it_is_said_whether_it_was_mended():
    traces = sample_traces()
    before = failures(sample.qrels(), traces)
    gained = np.array(before.recoverable["scoring"]) * 0.2
    after = replace(before, recoverable={**before.recoverable, "scoring": gained})

    def state(first, second, target):
        return answer_fixed(failure_changes(first, second), first, second, target).state

    assert state(before, after, "scoring") == "good"
    expected = paired_test(np.array(before.recoverable["scoring"]), gained)
    rows = {row.failure: row for row in failure_changes(before, after)}
    assert rows["scoring"].difference == pytest.approx(expected.difference)
    assert state(before, before, "scoring") == "undecided"
    assert state(after, before, "scoring") == "bad"
    assert state(before, before, "candidate") == "undecided"


def test_costs_and_reviewed_results_by_the_names_of_runs_or_by_their_roles(tmp_path):
    (tmp_path / "costs.csv").write_text("run,ms,mb\nold,2,10\nold,4,10\ncandidate,6,5\n")
    cost_question = answer_costs(tmp_path / "costs.csv", ("old", "new"), ("ms", "mb"))
    assert cost_question.state == "bad"
    assert [row["relative"] for row in cost_question.blocks[0].records()] == [1.0, -0.5]
    (tmp_path / "reviewed.csv").write_text("run,wrong,reviewed\nold,30,100\nnew,5,50\nnew,3,50\n")
    assert answer_false_positives(tmp_path / "reviewed.csv", ("old", "new")).state == "good"
    assert answer_false_positives(tmp_path / "reviewed.csv", ("new", "old")).state == "bad"
    (tmp_path / "reviewed.csv").write_text("run,wrong,reviewed\nold,30,100\nnew,28,100\n")
    assert answer_false_positives(tmp_path / "reviewed.csv", ("old", "new")).state == "undecided"


def test_a_deployment_that_should_be_taken_back_outweighs_a_gate():
    event = Event(date(2026, 3, 1), "new", deploy=True)
    watched = SimpleNamespace(
        rollbacks=(Rollback(event, "roll back", (), 0.05),),
        table=lambda name: SimpleNamespace(name=name) and review(QRELS, {"o": GOOD}, {"n": GOOD}).table("questions"),
    )
    change = review(QRELS, {"old": GOOD}, {"new": GOOD}, config=GATE, watch=watched)
    assert states(change)["Does the gate pass?"] == "good"
    assert change.decision == "do not ship"


def test_the_sample_s_users_and_judgments_beside_each_other():
    logs = read_log(sample.LOG), read_log(sample.INTERLEAVED)
    runs = {run.name: run for run in sample.runs()}
    test, mixed = abtest(logs[0], baseline="tfidf"), interleaving(logs[1], baseline="tfidf")
    change = review(sample.qrels(), runs["tfidf"], runs["bm25"], test=test, mixed=mixed)
    rows = {row["method"]: row for row in change.table("evidence").records()}
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "A/B test": "undecided", "interleaving": "undecided", "offline": "better",
    }  # fmt: skip
    assert (rows["A/B test"]["n"], rows["interleaving"]["n"]) == (300, 300)
    assert states(change)["Do the offline and the online evaluation agree?"] == "undecided"


def test_what_is_no_run_and_no_kind_is_refused():
    with pytest.raises(InputError, match="target failure"):
        review(QRELS, {"old": GOOD}, {"new": BAD}, target_failure="scorring")
    with pytest.raises(InputError, match="`candidate` must be one run, got 2"):
        review(QRELS, {"old": GOOD}, {"new": GOOD, "newer": BAD})


def test_the_command_over_the_sample(tmp_path):
    sample.copy(tmp_path / "sample")
    (tmp_path / "gate.toml").write_text('[[check]]\nmeasure = "nDCG@10"\nmargin = 0.02\n')
    runs = [str(tmp_path / "sample" / "runs" / f"{name}.run.gz") for name in ("bm25", "tfidf")]
    arguments = (
        "change",
        "review",
        str(tmp_path / "sample" / "qrels.txt"),
        *runs,
        "--gate",
        str(tmp_path / "gate.toml"),
    )
    done = process(*arguments, "--log", str(sample.LOG), "--format", "json")
    document = json.loads(done.out)
    assert (done.code, document["decision"]) == (1, "do not ship")
    assert {row["question"]: row["state"] for row in document["questions"]}[
        "Is the candidate better in the A/B test?"
    ] == "undecided"
    assert process(*arguments, "--cost", "ms").code == 2


def test_of_users_the_candidate_is_judged_though_its_arm_stands_first(tmp_path):
    sample.copy(tmp_path / "sample")
    folder = tmp_path / "sample"
    names = ("tfidf", "bm25")
    logs = ("--log", str(folder / "simulated_log.ndjson.gz"), "--interleaved")
    logs = (*logs, str(folder / "simulated_interleaved.ndjson.gz"))
    runs = [str(folder / "runs" / f"{name}.run.gz") for name in names]
    done = process("change", "review", str(folder / "qrels.txt"), *runs, *logs, "--format", "json")
    findings = {row["question"]: row["finding"] for row in json.loads(done.out)["questions"]}
    assert findings["Is the candidate better in the A/B test?"].startswith(f"{names[1]}: ")
    assert findings["Do users prefer the candidate in interleaved lists?"].startswith(f"{names[1]}: ")


def test_tests_of_the_baseline_against_the_candidate_and_unknown_arms_are_refused():
    runs = {run.name: run for run in sample.runs()}
    pair = sample.qrels(), runs["bm25"], runs["tfidf"]
    test = abtest(read_log(sample.LOG), baseline="tfidf")
    with pytest.raises(InputError, match="must be the baseline, got tfidf"):
        review(*pair, test=test)
    with pytest.raises(InputError, match="unknown arm: 'tf'"):
        review(sample.qrels(), runs["tfidf"], runs["bm25"], test=test, arm="tf")
    with pytest.raises(InputError, match="must be bm25, got tfidf"):
        review(*pair, mixed=interleaving(read_log(sample.INTERLEAVED), baseline="tfidf"))


@pytest.mark.parametrize(
    "alone",
    [
        ("--target-failure", "scoring"),
        ("--arm", "x"),
        ("--guardrail", "x"),
        ("--cost", "ms"),
        ("--costs", "x"),
        ("--topics", "x"),
    ],
)
def test_options_that_need_another_one_are_refused_alone(alone):
    done = process("change", "review", "qrels.txt", "one.run", "two.run", *alone)
    assert (done.code, f"{alone[0]} requires" in done.err) == (2, True)


@pytest.mark.parametrize("rows", ["old,2,3", "old,5,3\nnew,1,3", "old,0,0\nnew,0,0", "older,1,3\nnew,1,3"])
def test_tables_that_do_not_tell_of_both_runs_are_refused(tmp_path, rows):
    (tmp_path / "table.csv").write_text(f"run,wrong,reviewed\n{rows}\n")
    with pytest.raises(InputError, match="reviewed"):
        answer_false_positives(tmp_path / "table.csv", ("old", "new"))
    if rows.startswith("older") or "new" not in rows:
        with pytest.raises(InputError, match="each of the two runs must have"):
            answer_costs(tmp_path / "table.csv", ("old", "new"), ("wrong",))
