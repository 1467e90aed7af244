"""Scores of RAG tables: values, topics left out, bounds, and all methods of `Scores`."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import judged
from judged.comparison.slicing import slice_topics
from judged.errors import InputError
from judged.pipelines.rag import Responses, evaluate, explain
from judged.pipelines.rag.scoring import answered_of, default_measures
from judged.scoring.evaluation import Scores

VERDICTS = ("support", "partial", "not")


def tables(**more_tables: list[dict[str, Any]]) -> dict[str, Any]:
    """Return an answer of one system to topic q, two vital nuggets and an okay one, and `more_tables`."""
    base = {
        "answers": [{"query_id": "q", "text": "It is 7. It may be 8."}],
        "nuggets": [{"query_id": "q", "nugget_id": str(number), "importance": "okay" if number == 3 else "vital"}
                    for number in (1, 2, 3)],
    }  # fmt: skip
    return {**base, **{name: [{"query_id": "q", **row} for row in rows] for name, rows in more_tables.items()}}


def assigned(*verdicts: str, **columns: Any) -> list[dict[str, Any]]:
    return [{"nugget_id": str(number), "verdict": verdict, **columns} for number, verdict in enumerate(verdicts, 1)]


def score(responses: Any, measure: str, **options: Any) -> float:
    return evaluate(responses, measure, **options).value(measure)


def rules(scores: Scores) -> set[str]:
    return {note.rule for note in scores.notes}


# --- errors of other tools that are avoided -------------------------------------------------


def test_a_failed_assignment_is_unjudged_and_not_zero() -> None:
    scores = evaluate(tables(assignments=assigned("support", "failed", "not")), "NuggetRecall")
    (span,) = scores.ranges
    assert scores.value("NuggetRecall") == 0.5
    assert (span.low.item(), span.high.item()) == pytest.approx((1 / 3, 2 / 3))
    assert span.judged.item() == pytest.approx(2 / 3)
    assert "unjudged" in rules(scores)


def test_an_absent_assignment_is_unjudged_too() -> None:
    assert score(tables(assignments=assigned("support")), "NuggetRecall") == 1.0
    assert evaluate(tables(assignments=assigned("support")), "NuggetRecall").ranges[0].low.item() == pytest.approx(
        1 / 3
    )


def test_a_topic_without_vital_nuggets_is_left_out_and_reported() -> None:
    all_tables = tables(assignments=assigned("support", "not", "not"))
    all_tables["answers"].append({"query_id": "r", "text": "9"})
    all_tables["nuggets"].append({"query_id": "r", "nugget_id": "1", "importance": "okay"})
    all_tables["assignments"].append({"query_id": "r", "nugget_id": "1", "verdict": "support"})
    scores = evaluate(all_tables, "strict_vital_score")
    assert scores.aggregate() == {"run": {"NuggetRecall(vital=true,partial=0)": 0.5}}
    assert [math.isnan(value) for value in scores.values[0, 0]] == [False, True]
    assert "topics-left-out" in rules(scores)


def test_nothing_is_grounded_in_an_empty_context() -> None:
    """Other tools have scored 1; the judge's verdict of support is overruled."""
    sentences = [{"sentence": 1}, {"sentence": 2}]
    supported = [{"sentence": number, "doc_id": "", "verdict": "support"} for number in (1, 2)]
    all_tables = tables(sentences=sentences, support=supported)
    all_tables["answers"].append({"query_id": "r", "text": "9"})
    all_tables["context"] = [{"query_id": "r", "doc_id": "d"}]
    scores = evaluate(all_tables, "Groundedness")
    assert scores.per_topic()["run"]["Groundedness"]["q"] == 0.0
    assert "empty-context" in rules(scores)
    del all_tables["context"]  # without a table of contexts, only the judge's verdicts remain
    assert score(all_tables, "Groundedness") == 1.0


def test_support_by_uncited_documents_is_ignored() -> None:
    """Another tool judged reference contexts instead of retrieved ones."""
    cites = {"sentence": 1, "doc_id": "mine"}
    all_tables = tables(
        citations=[cites],
        context=[{"doc_id": "mine"}],
        support=[{**cites, "verdict": "not"}, {"sentence": 1, "doc_id": "reference", "verdict": "support"}],
    )
    scores = evaluate(all_tables, ["SupportP", "SupportR", "SentencePrecision"])
    assert set(scores.aggregate()["run"].values()) == {0.0}
    assert "ignored-support" in rules(scores)
    assert evaluate(all_tables, "R@10", qrels={"q": {"reference": 1}}).value("R@10") == 0.0  # of its own context


# --- scores without verdicts -------------------------------------------------------------------


def test_abstentions_and_missing_answers_cover_no_nugget() -> None:
    all_tables = tables(assignments=assigned("support", "support", "support"))
    all_tables["answers"] = [
        {"query_id": "q", "run_id": "full", "text": "It is 7."},
        {"query_id": "q", "run_id": "silent", "text": "I cannot say.", "abstained": True},
        {"query_id": "r", "run_id": "other", "text": "9"},
    ]
    all_tables["assignments"] = [{**row, "run_id": "full"} for row in all_tables["assignments"]]
    all_tables["sentences"] = [{"query_id": "q", "run_id": "silent", "sentence": 1, "text": "I cannot say."}]
    scores = evaluate(all_tables, ["NuggetRecall", "SupportR"])
    recall = {run: score_of["NuggetRecall"]["q"] for run, score_of in scores.per_topic().items()}
    assert recall == {"full": 1.0, "silent": 0.0, "other": 0.0}
    assert math.isnan(scores.per_topic()["silent"]["SupportR"]["q"])  # no claims
    assert [run.missing_topics for run in scores.runs] == [("r",), ("r",), ("q",)]
    assert "missing-topics" in rules(scores)


def test_right_and_wrong_abstention() -> None:
    all_tables = {
        "answers": [{"query_id": topic, "text": "?", "abstained": abstained} for topic, abstained in
                    (("a", True), ("b", False), ("c", True), ("d", False), ("e", True))],
        "references": [{"query_id": topic, "answerable": answerable} for topic, answerable in
                       (("a", False), ("b", False), ("c", True), ("d", True))],
    }  # fmt: skip
    assert evaluate(all_tables, ["RightAbstention", "WrongAbstention"]).aggregate()["run"] == {
        "RightAbstention": 0.5,
        "WrongAbstention": 0.5,
    }


def test_correctness_of_abstentions() -> None:
    rows = [("a", "7", True, True), ("b", None, False, True), ("c", "8", True, False)]
    all_tables = {
        "answers": [{"query_id": topic, "text": "?", "abstained": abstained} for topic, _, _, abstained in rows],
        "references": [
            {"query_id": topic, "text": text, "answerable": answerable} for topic, text, answerable, _ in rows
        ],
        "correctness": [{"query_id": "c", "verdict": "partial"}],
    }
    correctness = evaluate(all_tables, "Correctness").per_topic()["run"]["Correctness"]
    assert (correctness["a"], correctness["c"], math.isnan(correctness["b"])) == (0.0, 0.5, True)


def test_repeats_of_a_judge_weigh_like_one_verdict() -> None:
    """Judge x: support, support, failed; judge y: not. The score is 1/2, not 2/3 or 2/4."""
    rows = [
        {"nugget_id": "1", "judge": "x", "repeat": repeat, "verdict": verdict}
        for repeat, verdict in enumerate(("support", "support", "failed"))
    ]
    rows.append({"nugget_id": "1", "judge": "y", "verdict": "not"})
    assert score(tables(assignments=rows), "NuggetRecall") == 0.5


def test_measures_of_the_first_citation_of_each_sentence() -> None:
    rows = [(1, "a", 2, "support"), (1, "b", 1, "not"), (2, "a", 5, "partial")]
    all_tables = tables(
        citations=[{"sentence": number, "doc_id": doc, "place": place} for number, doc, place, _ in rows],
        support=[{"sentence": number, "doc_id": doc, "verdict": verdict} for number, doc, _, verdict in rows],
    )
    assert score(all_tables, "SupportP") == 0.5
    assert score(all_tables, "SupportP(first=true)") == 0.25
    assert score(all_tables, "SupportR(first=true)") == 0.25
    assert score(all_tables, "SupportR") == 0.75


# --- documents ------------------------------------------------------------------------------------------


def with_context() -> dict[str, Any]:
    return tables(
        context=[{"doc_id": doc} for doc in ("a", "b", "c")],
        citations=[{"sentence": 1, "doc_id": "b"}, {"sentence": 1, "doc_id": "out"}],
        evidence=[{"nugget_id": "1", "doc_id": "b"}, {"nugget_id": "2", "doc_id": "z"}],
    )


def test_measures_of_rankings_score_the_context() -> None:
    qrels = {"q": {"a": 0, "b": 2, "z": 1}, "elsewhere": {"a": 1}}
    run = {"q": ["a", "b", "c"]}
    names = ["nDCG@10", "R@1", "R@10", "SetR", "AP"]
    scores = evaluate(with_context(), names, qrels=qrels)
    assert scores.aggregate()["run"] == judged.evaluate({"q": qrels["q"]}, run, names).aggregate()["run"]
    low, high = (bound[0, :, 0] for bound in (scores.ranges[0].low, scores.ranges[0].high))
    assert low[2] == pytest.approx(0.5)
    assert high[2] == pytest.approx(2 / 3)  # c may be relevant


def test_measures_of_documents_use_qrels_or_evidence() -> None:
    qrels = {"q": {"a": 0, "b": 2, "z": 1}}
    scores = evaluate(with_context(), ["CitationRecall", "ContextUtility", "EvidencePosition"], qrels=qrels)
    assert scores.values[0, :, 0].tolist() == pytest.approx([1 / 2, (1 - 0.5) / 2, 0.5])
    assert scores.ranges[0].high[0, :2, 0].tolist() == pytest.approx([2 / 3, (1 - 0.5 + 1) / 3])  # out, c
    by_evidence = evaluate(with_context(), ["CitationRecall", "ContextUtility"])
    assert by_evidence.values[0, :, 0].tolist() == [0.5, 1.0]
    assert "evidence-as-qrels" in rules(by_evidence)
    for name in ("NuggetRecall", "SupportP", "ContextRedundancy"):  # measures without judgments of documents
        assert "evidence-as-qrels" not in rules(evaluate(with_context(), name))
    assert "cited-outside-context" in rules(by_evidence)


def test_a_measure_of_rankings_needs_a_context_and_judgments() -> None:
    with pytest.raises(InputError, match="requires a table `context`"):
        evaluate(tables(), "R@10", qrels={"q": {"d": 1}})
    with pytest.raises(InputError, match="requires judgments of documents"):
        evaluate(tables(context=[{"doc_id": "d"}]), "R@10")


def test_a_distractor_has_a_negative_gain_in_measures_of_rankings_too() -> None:
    assert score(with_context(), "CG(gain={0:-0.5})", qrels={"q": {"a": 0, "b": 1, "c": 0}}) == 0.0


# --- many topics: methods of `Scores` --------------------------------------------------------


def sample_tables(topics: int = 12) -> dict[str, Any]:
    """Return answers of two systems, the second of which is worse; 10% of the verdicts failed."""
    rng = random.Random(3)  # noqa: S311 - nothing secret
    names = [f"q{i:02d}" for i in range(topics)]
    pairs = [(topic, run) for topic in names for run in ("old", "new")]

    def verdict(run: str) -> str:
        if rng.random() < 0.1:
            return "failed"
        return rng.choices(VERDICTS, (6, 2, 2) if run == "old" else (2, 2, 6))[0]

    return {
        "answers": [{"query_id": topic, "run_id": run, "text": "It is 7."} for topic, run in pairs],
        "nuggets": [{"query_id": topic, "nugget_id": n, "importance": "vital"} for topic in names for n in "1234"],
        "assignments": [
            {"query_id": topic, "run_id": run, "nugget_id": n, "verdict": verdict(run)}
            for topic, run in pairs for n in "1234"
        ],
        "context": [{"query_id": topic, "run_id": run, "doc_id": doc} for topic, run in pairs for doc in "abc"],
        "citations": [{"query_id": topic, "run_id": run, "sentence": 1, "doc_id": "a"} for topic, run in pairs],
        "support": [
            {"query_id": topic, "run_id": run, "sentence": 1, "doc_id": doc, "verdict": verdict(run)}
            for topic, run in pairs for doc in ("a", "")
        ],
        "evidence": [{"query_id": topic, "nugget_id": "1", "doc_id": "b"} for topic in names],
    }  # fmt: skip


MEASURES = ["NuggetRecall", "SupportP", "Groundedness", "nDCG@10"]
SLICES = slice_topics({f"q{i:02d}": {"kind": "xy"[i % 2]} for i in range(12)}, "kind", min_topics=3)


def test_all_methods_of_scores_work(tmp_path: Path) -> None:
    scores = evaluate(sample_tables(), MEASURES)
    comparison = scores.compare(baseline="old")
    assert [str(pair.measure) for pair in comparison.pairs] == MEASURES
    assert comparison.pairs[0].side == -1
    assert scores.power().table().column("measure").values == MEASURES
    assert scores.by_slice(SLICES).text()
    assert scores.compare_slices(SLICES, baseline="old").text()
    assert scores.matrix(x="nDCG@10", y="NuggetRecall").text()
    assert evaluate(sample_tables(), ["NuggetRecall", "SupportP"]).disagree().text()
    assert evaluate(sample_tables(), ["R@1", "R@2", "R@3"], unjudged=False).curve().text()
    assert scores.gate("old", "new", measures="NuggetRecall", margin=0.05).exit_code == 1
    path = tmp_path / "scores.parquet"
    scores.save(path)
    loaded = Scores.load(path)
    assert np.array_equal(loaded.values, scores.values, equal_nan=True)
    assert np.array_equal(loaded.ranges[0].high, scores.ranges[0].high, equal_nan=True)
    assert loaded.text() == scores.text()
    assert loaded.gate("old", "new", measures="NuggetRecall", margin=0.05).exit_code == 1
    for format_name in ("html", "latex", "csv", "markdown"):
        assert getattr(scores.summary(per_topic=True), format_name)()


def test_scores_of_separate_systems_equal_combined_scores() -> None:
    responses = Responses.of(sample_tables())
    by_run = [responses.of_run(run) for run in responses.run_names]
    combined, joined = evaluate(responses, MEASURES), evaluate(by_run[0], MEASURES).join(evaluate(by_run[1], MEASURES))
    of_list = evaluate(by_run, MEASURES)
    for scores in (joined, of_list):
        assert np.array_equal(scores.values, combined.values, equal_nan=True)
        assert scores.run_names == ("old", "new")
    assert combined.qrels.sha256 == of_list.qrels.sha256 == joined.qrels.sha256


def test_the_order_of_rows_does_not_matter() -> None:
    all_tables = sample_tables()
    rng = random.Random(5)  # noqa: S311 - nothing secret
    shuffled = {
        name: rows if name in {"context", "answers"} else rng.sample(rows, len(rows))
        for name, rows in all_tables.items()
    }
    assert np.array_equal(evaluate(shuffled, MEASURES).values, evaluate(all_tables, MEASURES).values, equal_nan=True)


def test_topics_scored_separately_have_equal_scores() -> None:
    responses = Responses.of(sample_tables())
    names = ["NuggetRecall", "SupportP", "SupportR", "ContradictionRate", "ContextRedundancy", "CitationRecall", "R@2"]
    all_scores = evaluate(responses, names)
    for i, topic in enumerate(all_scores.query_ids[:4]):
        topic_scores = evaluate(responses.of_topics([topic]), names)
        assert np.array_equal(topic_scores.values[:, :, 0], all_scores.values[:, :, i], equal_nan=True)


def test_where_selects_topics_of_scores_and_of_measures() -> None:
    attributes = {f"q{i:02d}": {"kind": "xy"[i % 2]} for i in range(12)}
    scores = evaluate(sample_tables(), ["NuggetRecall", "NuggetRecall where kind == 'x'"], attributes=attributes)
    assert [estimate.n for estimate in scores.estimates()] == [12, 6, 12, 6]
    selected = evaluate(sample_tables(), "NuggetRecall", attributes=attributes, where="kind == 'x'")
    assert selected.query_ids == tuple(f"q{i:02d}" for i in range(0, 12, 2))
    assert selected.aggregate()["old"]["NuggetRecall"] == scores.aggregate()["old"]["NuggetRecall where kind == 'x'"]


def test_default_measures_depend_on_the_tables() -> None:
    responses = Responses.of(sample_tables())
    assert default_measures(responses, None)[-1] == "AnswerLength"
    assert {"NuggetRecall", "SupportP", "Groundedness", "SetR", "CitationRecall"} <= set(
        evaluate(responses).measure_names
    )
    assert not {"Correctness", "RightAbstention"} & set(evaluate(responses).measure_names)


def test_a_system_without_any_verdict_is_an_error() -> None:
    all_tables = tables()
    assert {note.severity for note in evaluate(all_tables, "AnswerLength").notes if note.rule == "nothing-judged"} == {
        "error"
    }


# --- explanations --------------------------------------------------------------------------


def test_the_pieces_add_up_to_the_score() -> None:
    responses = Responses.of(sample_tables())
    answered = answered_of(responses, "old")
    for name in ("NuggetRecall", "SupportP", "SupportR", "ContradictionRate", "AnswerLength", "ContextRedundancy"):
        for topic in responses.query_ids[:4]:
            explanation: Any = explain(responses, name, topic=topic, run="old")
            rows = explanation.table().records()
            judged_rows = [row for row in rows if row["value"] is not None]
            total = sum(row["value"] * row["weight"] for row in judged_rows)
            expected = judged.measures.parse(name)(answered)[answered.query_ids.index(topic)]  # type: ignore[arg-type]
            assert explanation.score == pytest.approx(expected, nan_ok=True)
            if judged_rows:
                assert total / sum(row["weight"] for row in judged_rows) == pytest.approx(explanation.score)


def test_explain_raises_for_ambiguous_systems_and_unknown_topics() -> None:
    with pytest.raises(
        InputError,
        match=r"one system must be selected\. Fix: select one of old, new; for example, pass old=",
    ):
        explain(sample_tables(), "NuggetRecall", topic="q00")
    with pytest.raises(InputError, match="unknown topic 'zz'"):
        explain(sample_tables(), "NuggetRecall", topic="zz", run="old")


def test_combined_responses_must_be_consistent() -> None:
    responses = Responses.of(tables(assignments=assigned("support")))
    assert responses.with_run_name("mine").run_names == ("mine",)
    with pytest.raises(InputError, match="two systems have the name 'run'"):
        Responses.of([responses, responses])
    assert Responses.of([responses, responses.with_run_name("other")]).run_names == ("run", "other")
    contradicting = tables(assignments=assigned("support"))
    contradicting["nuggets"][0]["importance"] = "okay"
    with pytest.raises(InputError, match="the table nuggets has several rows"):
        Responses.of([responses, Responses.of(contradicting).with_run_name("other")])
