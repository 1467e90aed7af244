"""Detection of kinds of failure in simulated pipelines: the damage is simulated, never its symptom."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from judged.comparison.slicing.topic_slices import slice_topics
from judged.data.freshness import dated_documents
from judged.pipelines.traces import Document, Failures, Span, Traces, failures
from judged.results import Answer
from pipelines.traces.damaged_pipeline import DAMAGES, TODAY, World, simulate

BY_DEFINITION = {
    "content removed": "missing content",
    "lost shard": "candidate",
    "cut candidates": "scoring",
    "unrecorded": "debugging",
}
BY_TEST = {
    "shifted scores": "calibration",
    "stopped index": "freshness",
    "class ranker": "intent",
    "clicks by position": "feedback",
}
N_WORLDS = 10


def run_failures(sample: World, seed: int = 0, **options: Any) -> Failures:
    corpus = [doc for doc in sample.documents if doc not in sample.deleted]
    defaults = {"documents": dated_documents(sample.documents, as_of=TODAY), "clicks": sample.clicks, "corpus": corpus}
    defaults["slicing"] = slice_topics(sample.attributes, "class")
    return failures(sample.qrels, sample.traces, "nDCG@10", **{**defaults, **options}, seed=seed)


def discovered(result: Failures) -> set[str]:
    return {test.failure for test in result.tests if test.significant}


@pytest.mark.parametrize("damage", BY_DEFINITION)
def test_all_hidden_documents_have_the_kind_of_the_damage(damage: str) -> None:
    """All relevant documents hidden by the damage have its kind, whatever else happened to them."""
    sample = simulate(damage, 1)
    kinds = {(topic, doc): kind for topic, doc, kind, *_ in run_failures(sample).documents}
    relevant = {(topic, doc) for topic, grades in sample.qrels.items() for doc, grade in grades.items() if grade}
    listed = {
        (topic, document.doc_id)
        for topic in sample.qrels
        for document in sample.traces.spans_of(topic)["shown"].documents or ()
    }
    if damage == "cut candidates":  # returned by a source and not seen
        sources = [sample.traces.spans_of(topic)[name] for topic, name in product(sample.qrels, ("sparse", "dense"))]
        hidden = {
            (span.query_id, document.doc_id) for span in sources for document in span.documents or ()
        } & relevant - listed
    elif damage == "unrecorded":
        hidden = {pair for pair in relevant - listed if pair[0] in sample.unrecorded}
    else:
        hidden = {pair for pair in relevant if pair[1] in sample.deleted | sample.unindexed}
    assert len(hidden) > 40
    assert {kinds[pair] for pair in hidden} == {BY_DEFINITION[damage]}
    others = {pair for pair, kind in kinds.items() if kind == BY_DEFINITION[damage]} - hidden
    assert damage in {"lost shard", "cut candidates"} or not others


@pytest.mark.parametrize("damage", BY_TEST)
def test_the_damage_is_detected_and_mentioned(damage: str) -> None:
    result = run_failures(simulate(damage, 1))
    assert BY_TEST[damage] in discovered(result)
    assert BY_TEST[damage] in result.sentences[1]


def test_fusion_by_ranks_recovers_the_loss_of_shifted_scores() -> None:
    shifted, sound = (
        next(test for test in run_failures(simulate(damage, 1)).tests if test.failure == "calibration")
        for damage in ("shifted scores", "nothing")
    )
    assert shifted.difference > 0.05  # documents of only the other source are relevant more often at the same rank
    assert shifted.recoverable > sound.recoverable + 0.02


def test_curves_show_the_share_of_relevant_documents_by_score() -> None:
    """Scores are 0.8 per grade plus noise, and one source adds 1.5: at equal scores its documents are worse."""
    curves = run_failures(simulate("shifted scores", 1)).curves
    by_source = {name: [band for band in curves if band.where == f"{name} at merge"] for name in ("sparse", "dense")}
    for bands in by_source.values():
        assert len(bands) == 5
        assert [band.high for band in bands[:-1]] <= [band.low for band in bands[1:]]
        assert bands[-1].relevant > 3 * bands[0].relevant
    for plain, shifted in zip(by_source["sparse"][:-1], by_source["dense"], strict=False):
        assert shifted.high - plain.high == pytest.approx(1.5, abs=0.2)
        assert shifted.relevant == pytest.approx(plain.relevant, abs=0.1)


def test_few_topics_are_not_tested_and_later_documents_are_left_out() -> None:
    sample = simulate("nothing", 2)
    few = Traces(tuple(span for span in sample.traces.spans if span.query_id in {"t1", "t2"}))
    qrels = {topic: sample.qrels[topic] for topic in ("t1", "t2")}
    assert failures(qrels, few, "nDCG@10", documents=sample.documents, clicks=sample.clicks).tests == ()
    early = run_failures(sample, documents=dated_documents(sample.documents, as_of="2020-01-01"))
    assert not [test for test in early.tests if test.failure == "freshness"]


def test_subtopics_that_are_left_out_by_hand() -> None:
    """Three documents of a and one of b, one listed: a random document lacks b with probability 3/4."""
    rows = [
        (f"t{topic}", doc, 1, subtopic) for topic in range(12) for doc, subtopic in zip("wxyz", "aaab", strict=True)
    ]
    names = ("query_id", "doc_id", "relevance", "iteration")
    qrels = [dict(zip(names, row, strict=True)) for row in rows]
    spans = [Span(f"t{i}", f"t{i}", "list", "shown", (), (Document("w", 1),)) for i in range(12)]
    (test,) = failures(qrels, Traces(tuple(spans)), "nDCG@10").tests
    assert (test.failure, test.where, test.n) == ("intent", "subtopics", 12)
    assert test.difference == pytest.approx((1 - (0.75 + 0.25)) / 2)


def test_recorded_clicks_are_used_like_a_table() -> None:
    sample = simulate("clicks by position", 3)
    by_topic: dict[str, dict[str, Any]] = {}
    for row in sample.clicks:
        by_topic.setdefault(str(row["query_id"]), {})[str(row["doc_id"])] = row["clicks"]
    spans = [
        span if span.stage != "shown" else replace(span, facts={"clicks": by_topic[span.query_id]})
        for span in sample.traces.spans
    ]
    traced = run_failures(sample._replace(traces=Traces(tuple(spans))), clicks=None)
    table = run_failures(sample)
    assert [test for test in traced.tests if test.failure == "feedback"] == [
        test for test in table.tests if test.failure == "feedback"
    ]
    assert isinstance(traced, Answer)


@pytest.mark.parametrize("damage", ["nothing", "position", "popularity"])
def test_expected_clicks_separate_position_and_popularity(damage: str) -> None:
    """Ten documents of two grades have a random order; popular ones are listed for all topics."""
    rng = np.random.default_rng(4)
    examination = 1 / np.arange(1, 11)
    spans, clicks, qrels = [], list[dict[str, Any]](), dict[str, dict[str, int]]()
    for topic in (f"t{i:02}" for i in range(40)):
        docs = [f"star{i}" if i % 2 else f"{topic}-{i}" for i in rng.permutation(10)]
        qrels[topic] = {doc: int(rng.integers(0, 2)) for doc in docs}
        spans.append(Span(topic, topic, "list", "shown", (), tuple(Document(doc, i) for i, doc in enumerate(docs, 1))))
        for position, doc in enumerate(docs):
            rate = 20 * examination[position] * (0.5 + qrels[topic][doc])
            rate *= (2.0 if position < 4 else 0.7) if damage == "position" else 1
            rate *= (2.0 if "star" in doc else 0.7) if damage == "popularity" else 1
            row = {
                "query": topic,
                "doc_id": doc,
                "clicks": int(rng.poisson(rate)),
                "expected": 20 * examination[position],
            }
            clicks.append(row)
    tests = failures(qrels, Traces(tuple(spans)), "nDCG@10", clicks=clicks).tests
    assert [test.where for test in tests] == ["all topics", "position", "popularity"]
    assert {test.where for test in tests if test.significant} - {"all topics"} == {damage} - {"nothing"}
    unexpected = [{**row, "expected": None} for row in clicks]
    (without_expected,) = failures(qrels, Traces(tuple(spans)), "nDCG@10", clicks=unexpected).tests
    assert (
        without_expected.difference > tests[0].difference
    )  # without expected clicks, the position hides clicks on better documents


@pytest.mark.slow
def test_confusion_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    """Detect simulated damage in at least four of five simulations, with false discoveries at the declared rate.

    Discoveries in an undamaged pipeline are false; at a rate of 5%, ten simulations have more than
    two discoveries in about 1% of runs. Lost shards and removed content cause no kind that is tested: discoveries
    there are false as well.
    """
    harmless = ("nothing", "lost shard", "content removed")
    matrix = {damage: Counter[str]() for damage in DAMAGES if damage in {*harmless, *BY_TEST}}
    for damage, seed in product(matrix, range(100, 100 + N_WORLDS)):
        matrix[damage].update(discovered(run_failures(simulate(damage, seed))))
    with capsys.disabled():
        print("\n" + "\n".join(f"{damage:20}{dict(kinds)}" for damage, kinds in matrix.items()))  # noqa: T201
    for damage, kind in BY_TEST.items():
        assert matrix[damage][kind] >= 0.8 * N_WORLDS, damage
    for damage in harmless:
        assert sum(matrix[damage].values()) <= 2, damage


def labeled(sample: World, seed: int, *, accuracy: float, n_guessed: int) -> dict[str, dict[str, dict[str, int]]]:
    """Simulate three judges with a probability of right grades; on the first topics they guess."""
    rng, guessed_topics = np.random.default_rng(seed), list(sample.qrels)[:n_guessed]

    def grade_of(topic: str, grade: int) -> int:
        if topic in guessed_topics:
            return int(rng.integers(0, 2))
        return grade if rng.random() < accuracy else 1 - (grade > 0)

    return {
        f"j{judge}": {
            topic: {doc: grade_of(topic, grade) for doc, grade in grades.items()}
            for topic, grades in sample.qrels.items()
        }
        for judge in range(3)
    }


def test_topics_with_disagreement_of_labels_are_feedback() -> None:
    """Guessed topics are detected; without guesses the false discovery rate holds."""

    def detected(seed: int, accuracy: float, n_guessed: int) -> list[str]:
        sample = simulate("nothing", seed % 3)
        labels = labeled(sample, seed, accuracy=accuracy, n_guessed=n_guessed)
        tests = failures(sample.qrels, sample.traces, "nDCG@10", labels=labels).tests
        return [test.where.removeprefix("labels of ") for test in tests if test.significant and "labels" in test.where]

    assert detected(1, 1.0, 0) == []
    first = list(simulate("nothing", 1).qrels)[:5]
    assert len({*detected(1, 0.98, 5)} & {*first}) >= 4
    n_runs = 20
    assert (
        sum(bool(detected(seed, 0.9, 0)) for seed in range(n_runs)) <= 0.05 * n_runs + 3 * (0.05 * 0.95 * n_runs) ** 0.5
    )
