"""Measures of trajectories equal a second implementation, and cases that were calculated by hand."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from judged.data.qrels import Qrels
from judged.errors import MeasureError
from judged.pipelines.trajectories import Trajectories, evaluate
from judged.pipelines.trajectories.judging import judge_system, seen_lists
from judged.scoring.judging import judge
from judged.scoring.measures import AP, Pass, PassAll, SessionDCG, nDCG, nSessionDCG, parse
from judged.scoring.measures.registry import REGISTRY
from pipelines.trajectories import second
from pipelines.trajectories.agents import random_trials

Score = Callable[[Any, dict[str, int]], float]


def waste(kind: str, rel: float = 1, *, share: bool = False) -> Score:
    def score(trial: Any, qrels: dict[str, int]) -> float:
        kinds = second.flags(trial, qrels, rel)
        count = sum(kind in of_search for of_search in kinds)
        return count if not share else count / len(kinds) if kinds else math.nan

    return score


def per_search(trial: Any, qrels: dict[str, int]) -> float:
    count = len(second.searches(trial))
    return second.seen_recall(trial, qrels) / count if count else math.nan


def normalized(**options: Any) -> Score:
    def score(trial: Any, qrels: dict[str, int]) -> float:
        ideal = second.ideal_session(trial, qrels, **options)
        if not any(grade > 0 for grade in qrels.values()):
            return math.nan
        return second.session_dcg(trial, qrels, **options) / ideal if ideal else 0.0

    return score


SCORES: dict[str, Score] = {
    "SeenR": second.seen_recall,
    "SeenR(rel=2)@2": lambda trial, qrels: second.seen_recall(trial, qrels, 2, 2),
    "SeenP": second.seen_precision,
    "SeenP@1": lambda trial, qrels: second.seen_precision(trial, qrels, 1),
    "SeennDCG": second.seen_ndcg,
    "SeennDCG@2": lambda trial, qrels: second.seen_ndcg(trial, qrels, 2),
    "RecallPerSearch": per_search,
    "NumSearches": lambda trial, _: len(second.searches(trial)),
    "SearchesToEvidence": lambda trial, qrels: second.to_evidence(trial, qrels, 1, every=False),
    "SearchesToEvidence(all=true,rel=2)": lambda trial, qrels: second.to_evidence(trial, qrels, 2, every=True),
    "RedundantSearches": waste("redundant"),
    "RedundantSearches(share=true,rel=2)": waste("redundant", 2, share=True),
    "RepeatedSearches": waste("repeated"),
    "LateSearches(rel=3)": waste("late", 3),
    "UnusedSearches(share=true)": waste("unused", share=True),
    "SessionDCG": second.session_dcg,
    "SessionDCG(form=trec,b=3,bq=2)@2": lambda t, q: second.session_dcg(t, q, cutoff=2, b=3, bq=2, form="trec"),
    "SessionDCG(repeats=true)": lambda t, q: second.session_dcg(t, q, repeats=True),
    "nSessionDCG": normalized(),
    "nSessionDCG(form=trec)@2": normalized(form="trec", cutoff=2),
    "nSessionDCG(repeats=true)": normalized(repeats=True),
    "AnswerAccuracy": lambda trial, _: float(trial["correct"]),
    "Effort": lambda trial, _: trial.get("tokens", math.nan),
    "EvidenceYield": lambda t, q: (
        1000 * len(second.relevant(q, 1) & set(second.seen(t))) / t["tokens"] if "tokens" in t else math.nan
    ),
    "ConfidenceBrier": lambda t, _: (t["confidence"] - t["correct"]) ** 2 if "confidence" in t else math.nan,
    "ConfidenceLogLoss(clip=0.1)": lambda t, _: (
        -math.log(min(max(t["confidence"] if t["correct"] else 1 - t["confidence"], 0.1), 0.9))
        if "confidence" in t else math.nan
    ),
    "CitationPrecision": lambda t, q: (
        len(second.relevant(q, 1) & set(t["citations"])) / len(set(t["citations"])) if t["citations"] else math.nan
    ),
    "CitationRecall": lambda t, q: (
        len(second.relevant(q, 1) & set(t["citations"])) / len(second.relevant(q, 1))
        if second.relevant(q, 1) else math.nan
    ),
}  # fmt: skip


def mean(values: list[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


@pytest.mark.parametrize("seed", range(12))
def test_measures_equal_a_second_implementation(seed: int) -> None:
    rng = np.random.default_rng([55, seed])
    for _ in range(7):
        records, qrels = random_trials(rng)
        scores = evaluate(records, list(SCORES), qrels=qrels)
        for name, score in SCORES.items():
            for topic, query_id in enumerate(scores.query_ids):
                expected = mean(
                    [score(record, qrels[query_id]) for record in records if record["query_id"] == query_id]
                )
                actual = scores.values[0, scores.measure_names.index(str(parse(name))), topic]
                assert actual == pytest.approx(expected, abs=1e-12, nan_ok=True), (name, query_id)


def test_over_500_trials_are_compared() -> None:
    counts = [
        len(random_trials(rng)[0])
        for rng in (np.random.default_rng([55, seed]) for seed in range(12))
        for _ in range(7)
    ]
    assert sum(counts) > 500


@pytest.mark.parametrize("n", [1, 3, 6])
def test_pass_equals_all_draws(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(20):
        rights = [bool(value) for value in rng.random(n) < 0.4]
        for k in range(1, n + 1):
            assert Pass(cutoff=k).of_trial(right=rights) == pytest.approx(second.drawn(rights, k, every=False))
            assert PassAll(cutoff=k).of_trial(right=rights) == pytest.approx(second.drawn(rights, k, every=True))
    with pytest.raises(MeasureError, match=f"requires {n + 1} trials"):
        Pass(cutoff=n + 1).of_trial(right=[True] * n)


def test_ranking_measures_score_documents_in_order_of_first_sight() -> None:
    rng = np.random.default_rng(3)
    records, qrels = random_trials(rng, 5)
    scores = evaluate(records, ["AP", "nDCG@3"], qrels=qrels)
    for measure in (AP(), nDCG(cutoff=3)):
        for topic, query_id in enumerate(scores.query_ids):
            trials = [record for record in records if record["query_id"] == query_id]
            if not qrels[query_id]:
                continue
            of_trials = [
                float(measure(judge({query_id: qrels[query_id]}, {query_id: second.seen(trial)}))[0])
                for trial in trials
            ]
            row = scores.measure_names.index(str(measure))
            assert scores.values[0, row, topic] == pytest.approx(sum(of_trials) / len(of_trials))


def test_session_dcg_of_the_published_form() -> None:
    """Järvelin et al. 2008: below rank b gains are not discounted, and the second of two searches by 1 + log4(2)."""
    lists = [["a", "b", "c", "d"], ["e", "f"]]
    grades = {"a": 1, "b": 1, "d": 2, "e": 3, "f": 1}
    first, second_list = 1 + 1 + 2 / 2, (3 + 1) / 1.5
    assert SessionDCG().of_trial(lists, grades) == pytest.approx(first + second_list)
    trec = 1 + 1 / math.log2(3) + 2 / math.log2(5) + (3 + 1 / math.log2(3)) / math.log(5, 4)
    assert SessionDCG(form="trec").of_trial(lists, grades) == pytest.approx(trec)


def test_the_ideal_session_has_no_document_with_a_negative_gain() -> None:
    measure = nSessionDCG(gain={0: -1, 1: 1})
    assert measure.of_trial([["a", "x", "b"]], {"a": 1, "b": 0}) == pytest.approx(1 - 1 - 1 / math.log2(3))


def test_bounds_contain_the_scores_of_all_grades() -> None:
    rng = np.random.default_rng(8)
    measures = [measure for measure in map(parse, SCORES) if measure.properties.monotone]
    names = [str(measure) for measure in measures if measure.properties.reads == "trajectories"]
    assert {"SeenR", "SeenP", "SessionDCG"} <= set(names)
    for _ in range(10):
        records, qrels = random_trials(rng, 2)
        partial = {query_id: dict(list(grades.items())[:2]) for query_id, grades in qrels.items()}
        if not any(partial.values()):
            continue
        scores = evaluate(records, names, qrels=partial)
        judged = judge_system(Trajectories.of(records), "agent", Qrels.of(partial)).trajectories
        for _ in range(5):
            grades = rng.integers(0, int(judged.highest) + 1, len(judged.doc.tolist()))
            of_document = grades[judged.doc] if len(grades) else grades  # equal grades of equal documents
            filled = dataclasses.replace(judged, grade=np.where(judged.is_judged, judged.grade, of_document))
            for row, name in enumerate(names):
                measure: Any = parse(name)
                low, high = (bound[0, row] for bound in (scores.ranges[0].low, scores.ranges[0].high))
                values = measure(filled)
                known = ~np.isnan(low)
                assert (low[known] <= values[known] + 1e-12).all(), name
                assert (values[known] <= high[known] + 1e-12).all(), name


def test_seen_lists_belong_to_their_trials() -> None:
    records, qrels = random_trials(np.random.default_rng(4))
    system = judge_system(Trajectories.of(records), "agent", Qrels.of(qrels))
    _, run = seen_lists(system)
    rows = run.table.to_pylist()
    order = sorted(range(len(records)), key=lambda i: (records[i]["query_id"], i))
    for trial, record in enumerate(order):
        docs = [row["doc_id"] for row in rows if row["query_id"] == str(trial)]
        assert docs == second.seen(records[record])


def test_returned_documents_count_once_for_each_list_and_can_be_unjudged() -> None:
    steps = [{"kind": "search", "documents": documents} for documents in (["d1", "d1", "d2"], ["d2", "d3"])]
    record = {"query_id": "q", "run_id": "a", "steps": steps, "citations": ["d3"]}
    system = judge_system(Trajectories.of([record]), "a", Qrels.of({"q": {"d1": 2, "d2": 0, "d4": 1}}))
    judged = system.trajectories
    assert (judged.search.tolist(), judged.rank.tolist()) == ([0, 0, 1, 1], [1, 2, 1, 2])
    np.testing.assert_array_equal(judged.grade, [2, 0, 0, np.nan])
    assert judged.is_judged.tolist() == [True, True, True, False]
    assert system.documents.names.tolist() == ["d1", "d2", "d3", "d4"]
    assert system.answers.is_judged.tolist() == [True, True, False, True]


@pytest.mark.parametrize(("status", "right"), [("completed", 1), ("failed", 0)])
def test_answers_of_failed_trials_are_wrong(status: str, right: float) -> None:
    record = {"query_id": "q", "status": status, "answer": "Ada", "references": ["Ada"], "steps": []}
    assert evaluate([record], "AnswerAccuracy").value("AnswerAccuracy") == right


def test_every_measure_of_trajectories_is_compared() -> None:
    declared = {name for name in REGISTRY if REGISTRY[name].properties.reads == "trajectories"}
    compared = {parse(name).entry.name for name in SCORES}  # type: ignore[union-attr]
    assert declared - compared == {"Pass", "PassAll", "HopRecall"}
