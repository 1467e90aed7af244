"""From tables of answers to scores: what counts, what is left out and bounded, and that all of Scores works on it."""

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


def tables(**given: list[dict[str, Any]]) -> dict[str, Any]:
    """Give an answer of one system to topic q, with two vital nuggets and an okay one, and what else is given."""
    made = {
        "answers": [{"query_id": "q", "text": "It is 7. It may be 8."}],
        "nuggets": [{"query_id": "q", "nugget_id": str(at), "importance": "okay" if at == 3 else "vital"}
                    for at in (1, 2, 3)],
    }  # fmt: skip
    return {**made, **{name: [{"query_id": "q", **row} for row in rows] for name, rows in given.items()}}


def assigned(*verdicts: str, **more: Any) -> list[dict[str, Any]]:
    return [{"nugget_id": str(at), "verdict": verdict, **more} for at, verdict in enumerate(verdicts, 1)]


def score(made: Any, measure: str, **options: Any) -> float:
    return evaluate(made, measure, **options).value(measure)


def rules(scores: Scores) -> set[str]:
    return {note.rule for note in scores.notes}


# --- the errors of other tools, and what we do instead -------------------------------------------------


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
    made = tables(assignments=assigned("support", "not", "not"))
    made["answers"].append({"query_id": "r", "text": "9"})
    made["nuggets"].append({"query_id": "r", "nugget_id": "1", "importance": "okay"})
    made["assignments"].append({"query_id": "r", "nugget_id": "1", "verdict": "support"})
    scores = evaluate(made, "strict_vital_score")
    assert scores.aggregate() == {"run": {"NuggetRecall(vital=true,partial=0)": 0.5}}
    assert [math.isnan(value) for value in scores.values[0, 0]] == [False, True]
    assert "topics-left-out" in rules(scores)


def test_nothing_is_grounded_in_an_empty_context() -> None:
    """Other tools have scored it 1; a judge that says so is not believed."""
    sentences = [{"sentence": 1}, {"sentence": 2}]
    supported = [{"sentence": at, "doc_id": "", "verdict": "support"} for at in (1, 2)]
    made = tables(sentences=sentences, support=supported)
    made["answers"].append({"query_id": "r", "text": "9"})
    made["context"] = [{"query_id": "r", "doc_id": "d"}]
    scores = evaluate(made, "Groundedness")
    assert scores.per_topic()["run"]["Groundedness"]["q"] == 0.0
    assert "empty-context" in rules(scores)
    del made["context"]  # nobody says what the context was: then the judge is all there is
    assert score(made, "Groundedness") == 1.0


def test_support_by_other_documents_than_those_cited_counts_nowhere() -> None:
    """Reference contexts were judged in the place of what the system retrieved."""
    cites = {"sentence": 1, "doc_id": "mine"}
    made = tables(
        citations=[cites],
        context=[{"doc_id": "mine"}],
        support=[{**cites, "verdict": "not"}, {"sentence": 1, "doc_id": "reference", "verdict": "support"}],
    )
    scores = evaluate(made, ["SupportP", "SupportR", "SentencePrecision"])
    assert set(scores.aggregate()["run"].values()) == {0.0}
    assert "foreign-support" in rules(scores)
    assert evaluate(made, "R@10", qrels={"q": {"reference": 1}}).value("R@10") == 0.0  # of its own context


# --- what is known without a verdict -------------------------------------------------------------------


def test_who_abstains_or_does_not_answer_says_no_nugget() -> None:
    made = tables(assignments=assigned("support", "support", "support"))
    made["answers"] = [
        {"query_id": "q", "run_id": "full", "text": "It is 7."},
        {"query_id": "q", "run_id": "silent", "text": "I cannot say.", "abstained": True},
        {"query_id": "r", "run_id": "other", "text": "9"},
    ]
    made["assignments"] = [{**row, "run_id": "full"} for row in made["assignments"]]
    made["sentences"] = [{"query_id": "q", "run_id": "silent", "sentence": 1, "text": "I cannot say."}]
    scores = evaluate(made, ["NuggetRecall", "SupportR"])
    recall = {run: by["NuggetRecall"]["q"] for run, by in scores.per_topic().items()}
    assert recall == {"full": 1.0, "silent": 0.0, "other": 0.0}
    assert math.isnan(scores.per_topic()["silent"]["SupportR"]["q"])  # it claims nothing
    assert [run.missing_topics for run in scores.runs] == [("r",), ("r",), ("q",)]
    assert "missing-topics" in rules(scores)


def test_abstention_right_and_wrong() -> None:
    made = {
        "answers": [{"query_id": topic, "text": "?", "abstained": said} for topic, said in
                    (("a", True), ("b", False), ("c", True), ("d", False), ("e", True))],
        "references": [{"query_id": topic, "answerable": known} for topic, known in
                       (("a", False), ("b", False), ("c", True), ("d", True))],
    }  # fmt: skip
    assert evaluate(made, ["RightAbstention", "WrongAbstention"]).aggregate()["run"] == {
        "RightAbstention": 0.5,
        "WrongAbstention": 0.5,
    }


def test_correctness_of_who_abstains() -> None:
    rows = [("a", "7", True, True), ("b", None, False, True), ("c", "8", True, False)]
    made = {
        "answers": [{"query_id": topic, "text": "?", "abstained": said} for topic, _, _, said in rows],
        "references": [{"query_id": topic, "text": text, "answerable": known} for topic, text, known, _ in rows],
        "correctness": [{"query_id": "c", "verdict": "partial"}],
    }
    found = evaluate(made, "Correctness").per_topic()["run"]["Correctness"]
    assert (found["a"], found["c"], math.isnan(found["b"])) == (0.0, 0.5, True)


def test_a_judges_repeats_are_one_voice() -> None:
    """Judge x said support twice and failed once, judge y said not: 1/2, and not 2/3 or 2/4."""
    rows = [
        {"nugget_id": "1", "judge": "x", "repeat": at, "verdict": verdict}
        for at, verdict in enumerate(("support", "support", "failed"))
    ]
    rows.append({"nugget_id": "1", "judge": "y", "verdict": "not"})
    assert score(tables(assignments=rows), "NuggetRecall") == 0.5


def test_the_first_citation_of_each_sentence() -> None:
    rows = [(1, "a", 2, "support"), (1, "b", 1, "not"), (2, "a", 5, "partial")]
    made = tables(
        citations=[{"sentence": at, "doc_id": doc, "place": place} for at, doc, place, _ in rows],
        support=[{"sentence": at, "doc_id": doc, "verdict": verdict} for at, doc, _, verdict in rows],
    )
    assert score(made, "SupportP") == 0.5
    assert score(made, "SupportP(first=true)") == 0.25
    assert score(made, "SupportR(first=true)") == 0.25
    assert score(made, "SupportR") == 0.75


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
    low, high = (end[0, :, 0] for end in (scores.ranges[0].low, scores.ranges[0].high))
    assert low[2] == pytest.approx(0.5)
    assert high[2] == pytest.approx(2 / 3)  # c may be relevant


def test_documents_against_qrels_or_evidence() -> None:
    qrels = {"q": {"a": 0, "b": 2, "z": 1}}
    scores = evaluate(with_context(), ["CitationRecall", "ContextUtility", "EvidencePosition"], qrels=qrels)
    assert scores.values[0, :, 0].tolist() == pytest.approx([1 / 2, (1 - 0.5) / 2, 0.5])
    assert scores.ranges[0].high[0, :2, 0].tolist() == pytest.approx([2 / 3, (1 - 0.5 + 1) / 3])  # out, c
    by_evidence = evaluate(with_context(), ["CitationRecall", "ContextUtility"])
    assert by_evidence.values[0, :, 0].tolist() == [0.5, 1.0]
    assert "evidence-as-qrels" in rules(by_evidence)
    for other in ("NuggetRecall", "SupportP", "ContextRedundancy"):  # these read no judgments of documents
        assert "evidence-as-qrels" not in rules(evaluate(with_context(), other))
    assert "cited-outside-context" in rules(by_evidence)


def test_a_measure_of_rankings_needs_a_context_and_judgments() -> None:
    with pytest.raises(InputError, match="needs a table `context`"):
        evaluate(tables(), "R@10", qrels={"q": {"d": 1}})
    with pytest.raises(InputError, match="needs judgments of documents"):
        evaluate(tables(context=[{"doc_id": "d"}]), "R@10")


def test_a_distractor_has_a_negative_gain_in_measures_of_rankings_too() -> None:
    assert score(with_context(), "CG(gain={0:-0.5})", qrels={"q": {"a": 0, "b": 1, "c": 0}}) == 0.0


# --- many topics: all that can be done with scores --------------------------------------------------------


def made_up(topics: int = 12) -> dict[str, Any]:
    """Answers of two systems, of which the second is worse; one verdict in ten failed."""
    chance = random.Random(3)  # noqa: S311 - nothing secret
    names = [f"q{at:02d}" for at in range(topics)]
    pairs = [(topic, run) for topic in names for run in ("old", "new")]

    def verdict(run: str) -> str:
        if chance.random() < 0.1:
            return "failed"
        return chance.choices(VERDICTS, (6, 2, 2) if run == "old" else (2, 2, 6))[0]

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
SLICES = slice_topics({f"q{at:02d}": {"kind": "xy"[at % 2]} for at in range(12)}, "kind", min_topics=3)


def test_everything_that_is_done_with_scores(tmp_path: Path) -> None:
    scores = evaluate(made_up(), MEASURES)
    compared = scores.compare(baseline="old")
    assert [str(one.measure) for one in compared.pairs] == MEASURES
    assert compared.pairs[0].side == -1
    assert scores.power().table().column("measure").values == MEASURES
    assert scores.by_slice(SLICES).text()
    assert scores.compare_slices(SLICES, baseline="old").text()
    assert scores.matrix(x="nDCG@10", y="NuggetRecall").text()
    assert evaluate(made_up(), ["NuggetRecall", "SupportP"]).disagree().text()
    assert evaluate(made_up(), ["R@1", "R@2", "R@3"], unjudged=False).curve().text()
    assert scores.gate("old", "new", measures="NuggetRecall", margin=0.05).exit_code == 1
    path = tmp_path / "scores.parquet"
    scores.save(path)
    again = Scores.load(path)
    assert np.array_equal(again.values, scores.values, equal_nan=True)
    assert np.array_equal(again.ranges[0].high, scores.ranges[0].high, equal_nan=True)
    assert again.text() == scores.text()
    assert again.gate("old", "new", measures="NuggetRecall", margin=0.05).exit_code == 1
    for form in ("html", "latex", "csv", "markdown"):
        assert getattr(scores.summary(per_topic=True), form)()


def test_systems_together_and_apart_are_the_same() -> None:
    together = Responses.of(made_up())
    apart = [together.of_run(run) for run in together.run_names]
    whole, joined = evaluate(together, MEASURES), evaluate(apart[0], MEASURES).join(evaluate(apart[1], MEASURES))
    listed = evaluate(apart, MEASURES)
    for other in (joined, listed):
        assert np.array_equal(other.values, whole.values, equal_nan=True)
        assert other.run_names == ("old", "new")
    assert whole.qrels.sha256 == listed.qrels.sha256 == joined.qrels.sha256


def test_the_order_of_rows_does_not_matter() -> None:
    made = made_up()
    chance = random.Random(5)  # noqa: S311 - nothing secret
    mixed = {
        name: rows if name in {"context", "answers"} else chance.sample(rows, len(rows)) for name, rows in made.items()
    }
    assert np.array_equal(evaluate(mixed, MEASURES).values, evaluate(made, MEASURES).values, equal_nan=True)


def test_topics_may_be_scored_in_parts() -> None:
    made = Responses.of(made_up())
    names = ["NuggetRecall", "SupportP", "SupportR", "ContradictionRate", "ContextRedundancy", "CitationRecall", "R@2"]
    whole = evaluate(made, names)
    for at, topic in enumerate(whole.query_ids[:4]):
        alone = evaluate(made.of_topics([topic]), names)
        assert np.array_equal(alone.values[:, :, 0], whole.values[:, :, at], equal_nan=True)


def test_some_topics_and_measures_over_some() -> None:
    attributes = {f"q{at:02d}": {"kind": "xy"[at % 2]} for at in range(12)}
    scores = evaluate(made_up(), ["NuggetRecall", "NuggetRecall where kind == 'x'"], attributes=attributes)
    assert [estimate.n for estimate in scores.estimates()] == [12, 6, 12, 6]
    chosen = evaluate(made_up(), "NuggetRecall", attributes=attributes, where="kind == 'x'")
    assert chosen.query_ids == tuple(f"q{at:02d}" for at in range(0, 12, 2))
    assert chosen.aggregate()["old"]["NuggetRecall"] == scores.aggregate()["old"]["NuggetRecall where kind == 'x'"]


def test_the_measures_that_the_tables_allow() -> None:
    made = Responses.of(made_up())
    assert default_measures(made, None)[-1] == "AnswerLength"
    assert {"NuggetRecall", "SupportP", "Groundedness", "SetR", "CitationRecall"} <= set(evaluate(made).measure_names)
    assert not {"Correctness", "RightAbstention"} & set(evaluate(made).measure_names)


def test_a_system_without_any_verdict_is_an_error() -> None:
    made = tables()
    assert {note.severity for note in evaluate(made, "AnswerLength").notes if note.rule == "nothing-judged"} == {
        "error"
    }


# --- one answer, piece by piece --------------------------------------------------------------------------


def test_the_pieces_add_up_to_the_score() -> None:
    made = Responses.of(made_up())
    answered = answered_of(made, "old")
    for name in ("NuggetRecall", "SupportP", "SupportR", "ContradictionRate", "AnswerLength", "ContextRedundancy"):
        for topic in made.query_ids[:4]:
            shown: Any = explain(made, name, topic=topic, run="old")
            rows = shown.table().records()
            known = [row for row in rows if row["value"] is not None]
            total = sum(row["value"] * row["weight"] for row in known)
            expected = judged.measures.parse(name)(answered)[answered.query_ids.index(topic)]  # type: ignore[arg-type]
            assert shown.score == pytest.approx(expected, nan_ok=True)
            if known:
                assert total / sum(row["weight"] for row in known) == pytest.approx(shown.score)


def test_what_cannot_be_explained() -> None:
    with pytest.raises(InputError, match=r"there are several systems\. Fix: name one of old, new: old=RESPONSES"):
        explain(made_up(), "NuggetRecall", topic="q00")
    with pytest.raises(InputError, match="there is no topic 'zz'"):
        explain(made_up(), "NuggetRecall", topic="zz", run="old")


def test_what_is_put_together_goes_together() -> None:
    one = Responses.of(tables(assignments=assigned("support")))
    assert one.called("mine").run_names == ("mine",)
    with pytest.raises(InputError, match="two systems are called 'run'"):
        Responses.of([one, one])
    assert Responses.of([one, one.called("other")]).run_names == ("run", "other")
    other = tables(assignments=assigned("support"))
    other["nuggets"][0]["importance"] = "okay"
    with pytest.raises(InputError, match="nuggets: there are two rows"):
        Responses.of([one, Responses.of(other).called("other")])
