"""Answers about agents: timelines, headlines, notes, effects of parts, and effort."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from judged.errors import InputError
from judged.pipelines.trajectories import Trajectories, confidence, conversations, evaluate, explain, plan, where
from judged.pipelines.trajectories.evaluation import compare_effort, factor_effects
from pipelines.trajectories import second
from pipelines.trajectories.agents import random_trials, simulated


def test_timelines_equal_the_second_implementation() -> None:
    rng = np.random.default_rng(11)
    for _ in range(20):
        records, qrels = random_trials(rng, 2)
        if not any(qrels.values()):
            continue
        timeline = explain(records, "q0", qrels, ["SeenR", "NumSearches"])
        trials = [record for record in records if record["query_id"] == "q0"]
        for number, trial in enumerate(trials, 1):
            steps = [step for step in timeline.steps if step.trial == number]
            assert [step.kind for step in steps] == [step["kind"] for step in trial["steps"]]
            searches = [step for step in steps if step.kind == "search"]
            uses = any(r["citations"] or any(s["kind"] == "open" for s in r["steps"]) for r in trials)
            kinds = second.flags(trial, qrels["q0"], 1)
            for t, (step, record, flags) in enumerate(zip(searches, second.searches(trial), kinds, strict=True), 1):
                expected = flags | ({"failed"} if record.get("failed") else set())
                assert set(step.flags) == (expected if uses else expected - {"unused"})
                wanted = second.relevant(qrels["q0"], 1)
                if "documents" in record:
                    assert step.relevant == len(wanted & set(record["documents"]))
                    new = set(second.seen(trial, t)) - set(second.seen(trial, t - 1))
                    assert step.new == len(wanted & new)
                else:
                    assert step.relevant is None
                recall = second.seen_recall(trial, qrels["q0"], t)
                assert step.recall == pytest.approx(recall, nan_ok=True)
            outcome = timeline.outcomes[number - 1]
            assert outcome.right == trial["correct"]
            assert set(outcome.citations) == set(trial["citations"])
        scores = {(score.measure, score.trial): score.score for score in timeline.scores}
        assert scores["NumSearches", 1] == len(second.searches(trials[0]))


def test_default_measures_are_those_with_data() -> None:
    trial: dict[str, Any] = {"query_id": "q", "steps": [{"kind": "search", "documents": ["a"]}]}

    def names(qrels: Any = None, **facts: Any) -> tuple[str, ...]:
        return evaluate([trial | facts], qrels=qrels).measure_names

    of_searches = ("NumSearches", "RepeatedSearches")
    assert names() == of_searches
    assert names(steps=[]) == ("NumSearches",)
    assert names({"q": {"a": 1}}) == ("SeenR", "SeenP", *of_searches)
    assert names({"q": {"a": 1}}, citations=["a"])[2:4] == ("CitationPrecision", "CitationRecall")
    assert names(citations=["a"], confidence=0.5, tokens=7, cost=0.1) == (*of_searches, "Effort", "Effort(of=cost)")
    assert names(correct=True, confidence=0.5) == ("AnswerAccuracy", *of_searches, "ConfidenceBrier")


def test_ranges_are_samples_if_relevant_documents_can_lower_the_score() -> None:
    records, qrels = random_trials(np.random.default_rng(12))
    scores = evaluate(records, ["SeenR", "SeenR@2", "SeennDCG", "LateSearches", "AP", "NumSearches"], qrels=qrels)
    assert scores.ranges[0].kind[0, :, 0].tolist() == ["outer", "sampled", "sampled", "sampled", "outer", "outer"]


@pytest.mark.parametrize("n", [5, 6])
def test_effects_and_differences_require_six_questions(n: int) -> None:
    trials = [
        {"query_id": f"{i}_1", "run_id": run, "answer": "7", "correct": run == "b"} for i in range(n) for run in "ab"
    ]
    effect = factor_effects(evaluate(trials, "AnswerAccuracy"), {run: {"agent": run} for run in "ab"}).effects[0]
    qrels = {f"{i}_1": {"a": 1} for i in range(n)}
    runs = {"first": {query_id: ["x", "a"] for query_id in qrels}, "second": {query_id: ["a"] for query_id in qrels}}
    first, second_mean = conversations(qrels, runs, "RR").means
    assert (effect.change, second_mean.difference, math.isnan(first.difference)) == (1.0, 0.5, True)
    for p, ci in ((effect.p, effect.change_ci), (second_mean.p, second_mean.difference_ci)):
        assert (ci is None, math.isnan(p)) == (n < 6, n < 6)


def test_timeline_of_answers_without_a_verdict() -> None:
    trial = {"query_id": "q", "answer": "7", "question": "Which number?", "steps": []}
    timeline = explain([trial], "q", {"q": {"a": 1}})
    assert (timeline.question, timeline.outcomes[0].right, timeline.headline.status) == (
        "Which number?",
        None,
        "unknown",
    )
    assert explain([{**trial, "correct": True}], "q", {"q": {"a": 1}}).headline.value == 1
    with pytest.raises(InputError, match="no question"):
        explain([trial], "p")
    with pytest.raises(InputError, match="not a measure of trajectories"):
        explain([trial], "q", {"q": {"a": 1}}, "AP")


def test_headlines_have_a_status_a_number_and_few_words() -> None:
    records, qrels, _ = simulated("looped", questions=20)
    for i, record in enumerate(records):
        record["confidence"] = (0.5, 0.7, 0.9)[i % 3]
    result = where(records, qrels)
    headline = result.headline
    largest = result.largest("agent")
    assert largest is not None
    assert (headline.status, headline.value, headline.ci) == ("info", largest.share, largest.ci)
    few = where(records[:6], qrels).headline  # two questions
    assert few.status == "unknown"
    right = where([{**records[0], "correct": True}], qrels).headline
    assert right.word == "no wrong answer"
    stated = confidence(records)
    assert (stated.headline.value, stated.headline.status) == (stated.systems[0].error, "info")
    assert confidence(records[:3]).headline.status == "unknown"
    one = {"query_id": "q", "answer": "7", "confidence": 0.5}
    relations = [confidence([{**one, "correct": right}]).headline.sentence for right in (True, False)]
    assert ["less" in relations[0], "more" in relations[1]] == [True, True]
    pair = [*records, *({**record, "run_id": "b"} for record in records)]
    planned = plan(pair)
    assert planned.headline is not None
    assert planned.headline.value == planned.best["b - agent"].detectable
    assert plan(records).headline is None
    turns = {f"{c}_{t}": {"a": 1} for c in range(12) for t in (1, 2)}
    talk = conversations(turns, {q: ["a"] if q[-1] == "1" and q[0] != "3" else ["x"] for q in turns}, "RR")
    assert (talk.headline.status, talk.headline.value) == ("info", talk.means[0].over_conversations)
    for line in (headline, few, right, stated.headline, planned.headline, talk.headline):
        assert len(line.sentence.split()) <= 20


def test_notes_of_scores() -> None:
    base: dict[str, Any] = {"answer": "7", "steps": [{"kind": "search", "query": "a", "documents": ["d"]}]}
    records = [
        {**base, "query_id": "q1", "run_id": "a", "correct": True},
        {**base, "query_id": "q2", "run_id": "a", "steps": [{"kind": "search", "query": "a"}]},
        {**base, "query_id": "q2", "run_id": "b", "correct": False},
    ]
    scores = evaluate(records, ["AnswerAccuracy", "Effort"], qrels={"q1": {"d": 1}})
    rules = {(note.rule, note.subject) for note in scores.notes}
    assert {("missing-topics", "b"), ("unrecorded-searches", "a"), ("unjudged", "a")} <= rules
    assert ("topics-left-out", "a") in rules  # no tokens are recorded
    assert np.isnan(scores.values[1, 0, 0])
    assert not scores.counted[1, 0]
    assert "unjudged" not in {rule for rule, subject in rules if subject == "b"}


def test_effects_by_hand_and_invalid_factors() -> None:
    trials = [
        {"query_id": f"q{i}", "run_id": run, "answer": "7", "correct": (i % 4 < 2) or (run[1] == "2" and i % 4 == 2)}
        for i in range(24) for run in ("a1", "a2", "b1", "b2")
    ]  # fmt: skip
    scores = evaluate(trials, "AnswerAccuracy")
    factors = {run: {"agent": run[0], "retriever": run[1]} for run in scores.run_names}
    agent, retriever = factor_effects(scores, factors).effects
    assert (agent.change, agent.pairs, retriever.change, retriever.pairs) == (0.0, 2, 0.25, 2)
    assert (retriever.level, retriever.other, retriever.questions) == ("1", "2", 24)
    assert retriever.p == pytest.approx(2 * 2 / 2**6, rel=0.05)  # six equal differences, two effects (Holm)
    assert factor_effects(scores, factors, alpha=0.1).blocks()[0].texts != ("No effect is significant.",)  # type: ignore[union-attr]
    assert factor_effects(scores, factors).blocks()[0].texts == ("No effect is significant.",)  # type: ignore[union-attr]
    with pytest.raises(InputError, match="no levels"):
        factor_effects(scores, {"a1": factors["a1"]})
    with pytest.raises(InputError, match="one factor only"):
        factor_effects(scores, {run: {"agent": run, "retriever": run} for run in scores.run_names})


def test_effort_has_the_intervals_of_the_scores() -> None:
    records = [record for run in "ab" for record in simulated("stopped", run=run, questions=12, seed=ord(run))[0]]
    scores = evaluate(records, ["AnswerAccuracy", "NumSearches"])
    tradeoff = compare_effort(scores)
    assert {row.run: row.costs["NumSearches"] for row in tradeoff.rows} == {
        run: scores.value("NumSearches", run) for run in "ab"
    }


def test_answers_decide_by_verdicts_references_or_a_chosen_measure() -> None:
    base: dict[str, Any] = {"query_id": "q", "references": ["The cat"], "steps": []}
    texts = evaluate(
        [{**base, "answer": "cat"}, {**base, "answer": "a big cat"}, {**base, "answer": ""}], "AnswerAccuracy"
    )
    assert texts.values[0, 0, 0] == pytest.approx(1 / 3)
    loose = evaluate([{**base, "answer": "a big cat"}], "AnswerAccuracy", accuracy="TokenF1")
    assert loose.values[0, 0, 0] == 1  # F1 2/3
    with pytest.raises(InputError, match="measure of answers"):
        evaluate([{**base, "answer": "cat"}], "AnswerAccuracy", accuracy="AP")
    tables = {
        "trials": [{"query_id": "q", "abstained": True}, {"query_id": "p", "abstained": True}],
        "references": [{"query_id": "q", "answerable": False}, {"query_id": "p", "text": "7"}],
    }
    scores = evaluate(tables, "AnswerAccuracy")
    assert scores.per_topic()["agent"]["AnswerAccuracy"] == {"p": 0.0, "q": 1.0}
    judges = [{"query_id": "q", "verdict": verdict, "judge": judge} for judge, verdict in
              (("a", "support"), ("b", "partial"), ("c", "support"))]  # fmt: skip
    majority = Trajectories.of({"trials": [{"query_id": "q", "answer": "7"}], "correctness": judges})
    assert evaluate(majority, "AnswerAccuracy").values[0, 0, 0] == 1
    tie = Trajectories.of({"trials": [{"query_id": "q", "answer": "7"}], "correctness": judges[:2]})
    assert evaluate(tie, "AnswerAccuracy").values[0, 0, 0] == 0


def test_effort_of_steps_is_summed() -> None:
    steps = [{"kind": "search", "query": "a", "documents": [], "tokens": tokens} for tokens in (10, 20, None)]
    scores = evaluate([{"query_id": "q", "steps": steps}, {"query_id": "p", "steps": steps, "tokens": 7}], "Effort")
    assert scores.per_topic()["agent"]["Effort"] == {"p": 7.0, "q": 30.0}


def test_hops_of_questions_without_trials_are_ignored() -> None:
    hops = [{"query_id": query_id, "hop": "1", "doc_id": f"d{query_id}"} for query_id in "abcd"]
    search = {"kind": "search", "query": "1"}
    tables = {
        "trials": [{"query_id": "b"}, {"query_id": "c"}],
        "steps": [{**search, "query_id": "b", "documents": ["db"]}, {**search, "query_id": "c", "documents": ["da"]}],
        "hops": hops,
    }
    assert evaluate(tables, "HopRecall").per_topic()["agent"]["HopRecall"] == {"b": 1.0, "c": 0.0}


@pytest.mark.parametrize("number", [-1, 0, 2**53])
def test_trials_can_have_any_number(number: int) -> None:
    found = {"kind": "search", "query": "1", "documents": ["d"]}
    records = [
        {"query_id": query_id, "trial": trial, "steps": [found] if trial == number else []}
        for query_id in ("a", "b", "c") for trial in (number, 1)
    ]  # fmt: skip
    scores = evaluate(records, "NumSearches")
    assert scores.values.tolist() == [[[0.5, 0.5, 0.5]]]
    assert [step.trial for step in explain(records, "b").steps] == [number]


@pytest.mark.parametrize("parts", [{"steps": ["x"]}, {"steps": {}}, {"citations": "d1"}, {"references": 7}])
def test_records_with_wrong_types_are_refused(parts: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="element 2"):
        Trajectories.of([{"query_id": "p"}, {"query_id": "q", **parts}])
    with pytest.raises(InputError, match="element 1"):
        Trajectories.of([7])


def test_a_list_of_paths_is_read(tmp_path: Any) -> None:
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text(f'{{"query_id": "q", "run_id": "{name}", "steps": []}}\n')
    assert Trajectories.of([str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")]).run_names == ("a", "b")


def test_hops_by_search() -> None:
    tables = {
        "trials": [{"query_id": "q"}, {"query_id": "q", "trial": 2}, {"query_id": "p"}],
        "steps": [
            {"query_id": "q", "trial": trial, "kind": "search", "query": str(i), "documents": docs}
            for trial, lists in ((1, (["a"], ["x"], ["c"])), (2, (["x"], ["b", "c"]))) for i, docs in enumerate(lists)
        ],
        "hops": [{"query_id": "q", "hop": hop, "doc_id": doc} for hop, doc in (("1", "a"), ("1", "b"), ("2", "c"))],
    }  # fmt: skip
    scores = evaluate(tables, ["HopRecall", "HopRecall@1", "HopRecall(complete=true)@2"])
    row = scores.values[0, :, scores.query_ids.index("q")].tolist()
    assert row == [1.0, 0.25, 0.5]
    assert math.isnan(scores.values[0, 0, scores.query_ids.index("p")])
