"""Kinds of failure, found in pipelines that were damaged: the damage is planted, never its symptom."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest

from judged.comparison.slicing.topic_slices import slice_topics
from judged.pipelines.traces import Document, Failures, Span, Traces, failures
from judged.results import Answer
from pipelines.traces.damaged_pipeline import DAMAGES, TODAY, World, world

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
WORLDS = 10


def sorted_out(made: World, seed: int = 0, **options: Any) -> Failures:
    corpus = [doc for doc in made.documents if doc not in made.gone]
    given = {"documents": made.documents, "today": TODAY, "clicks": made.clicks, "corpus": corpus}
    given["slicing"] = slice_topics(made.attributes, "class")
    return failures(made.qrels, made.traces, "nDCG@10", **{**given, **options}, seed=seed)


def found(answer: Failures) -> set[str]:
    return {test.failure for test in answer.tests if test.found}


@pytest.mark.parametrize("damage", BY_DEFINITION)
def test_what_follows_from_definitions_is_told_of_every_document(damage: str) -> None:
    """Each relevant document that the damage hides is of its kind, whatever else happened to it."""
    made = world(damage, 1)
    kinds = {(topic, doc): kind for topic, doc, kind, *_ in sorted_out(made).found}
    relevant = {(topic, doc) for topic, known in made.qrels.items() for doc, grade in known.items() if grade}
    shown = {
        (topic, one.doc_id) for topic in made.qrels for one in made.traces.spans_of(topic)["shown"].documents or ()
    }
    if damage == "cut candidates":  # what a source passed on and people did not see
        sources = [made.traces.spans_of(topic)[name] for topic, name in product(made.qrels, ("sparse", "dense"))]
        hidden = {(span.query_id, one.doc_id) for span in sources for one in span.documents or ()} & relevant - shown
    elif damage == "unrecorded":
        hidden = {pair for pair in relevant - shown if pair[0] in made.unrecorded}
    else:
        hidden = {pair for pair in relevant if pair[1] in made.gone | made.unindexed}
    assert len(hidden) > 40
    assert {kinds[pair] for pair in hidden} == {BY_DEFINITION[damage]}
    others = {pair for pair, kind in kinds.items() if kind == BY_DEFINITION[damage]} - hidden
    assert damage in {"lost shard", "cut candidates"} or not others


@pytest.mark.parametrize("damage", BY_TEST)
def test_the_damage_is_found_and_named(damage: str) -> None:
    answer = sorted_out(world(damage, 1))
    assert BY_TEST[damage] in found(answer)
    assert BY_TEST[damage] in answer.sentences[1]


def test_merging_by_ranks_would_recover_what_shifted_scores_lost() -> None:
    shifted, sound = (
        next(test for test in sorted_out(world(damage, 1)).tests if test.failure == "calibration")
        for damage in ("shifted scores", "nothing")
    )
    assert shifted.difference > 0.05  # what the other source alone puts at a place is relevant more often
    assert shifted.recoverable > sound.recoverable + 0.02


def test_curves_say_what_a_score_of_each_source_is_worth() -> None:
    """Scores are 0.8 a grade and noise, and one source adds 1.5: where both score alike, its documents are worse."""
    curves = sorted_out(world("shifted scores", 1)).curves
    by_source = {name: [band for band in curves if band.where == f"{name} at merge"] for name in ("sparse", "dense")}
    for bands in by_source.values():
        assert len(bands) == 5
        assert [band.high for band in bands[:-1]] <= [band.low for band in bands[1:]]
        assert bands[-1].relevant > 3 * bands[0].relevant
    for plain, shifted in zip(by_source["sparse"][:-1], by_source["dense"], strict=False):
        assert shifted.high - plain.high == pytest.approx(1.5, abs=0.2)
        assert shifted.relevant == pytest.approx(plain.relevant, abs=0.1)


def test_few_topics_are_not_tested_and_later_documents_are_left_out() -> None:
    made = world("nothing", 2)
    few = Traces(tuple(span for span in made.traces.spans if span.query_id in {"t1", "t2"}))
    qrels = {topic: made.qrels[topic] for topic in ("t1", "t2")}
    assert failures(qrels, few, "nDCG@10", documents=made.documents, clicks=made.clicks).tests == ()
    early = sorted_out(made, today="2020-01-01")
    assert not [test for test in early.tests if test.failure == "freshness"]


def test_subtopics_that_are_left_out_by_hand() -> None:
    """Of three documents of a and one of b, one is shown: b is left out with a chance of 3/4 by lot."""
    rows = [(f"t{topic}", doc, 1, part) for topic in range(12) for doc, part in zip("wxyz", "aaab", strict=True)]
    names = ("query_id", "doc_id", "relevance", "iteration")
    qrels = [dict(zip(names, row, strict=True)) for row in rows]
    spans = [Span(f"t{at}", f"t{at}", "list", "shown", (), (Document("w", 1),)) for at in range(12)]
    (test,) = failures(qrels, Traces(tuple(spans)), "nDCG@10").tests
    assert (test.failure, test.where, test.n) == ("intent", "subtopics", 12)
    assert test.difference == pytest.approx((1 - (0.75 + 0.25)) / 2)


def test_clicks_recorded_with_the_list_count_as_those_of_a_table() -> None:
    made = world("clicks by position", 3)
    by_topic: dict[str, dict[str, Any]] = {}
    for row in made.clicks:
        by_topic.setdefault(str(row["query_id"]), {})[str(row["doc_id"])] = row["clicks"]
    spans = [
        span if span.stage != "shown" else Span(*list(vars(span).values())[:-1], {"clicks": by_topic[span.query_id]})
        for span in made.traces.spans
    ]
    traced = sorted_out(made._replace(traces=Traces(tuple(spans))), clicks=None)
    table = sorted_out(made)
    assert [test for test in traced.tests if test.failure == "feedback"] == [
        test for test in table.tests if test.failure == "feedback"
    ]
    assert isinstance(traced, Answer)


@pytest.mark.parametrize("damage", ["nothing", "position", "popularity"])
def test_clicks_beyond_those_expected_tell_position_and_popularity(damage: str) -> None:
    """Ten documents of two grades are shown in a random order; popular ones are shown for all topics."""
    rng = np.random.default_rng(4)
    looks = 1 / np.arange(1, 11)
    spans, clicks, qrels = [], list[dict[str, Any]](), dict[str, dict[str, int]]()
    for topic in (f"t{at:02}" for at in range(40)):
        docs = [f"star{at}" if at % 2 else f"{topic}-{at}" for at in rng.permutation(10)]
        qrels[topic] = {doc: int(rng.integers(0, 2)) for doc in docs}
        spans.append(
            Span(topic, topic, "list", "shown", (), tuple(Document(doc, at) for at, doc in enumerate(docs, 1)))
        )
        for place, doc in enumerate(docs):
            rate = 20 * looks[place] * (0.5 + qrels[topic][doc])
            rate *= (2.0 if place < 4 else 0.7) if damage == "position" else 1
            rate *= (2.0 if "star" in doc else 0.7) if damage == "popularity" else 1
            row = {"query": topic, "doc_id": doc, "clicks": int(rng.poisson(rate)), "expected": 20 * looks[place]}
            clicks.append(row)
    tests = failures(qrels, Traces(tuple(spans)), "nDCG@10", clicks=clicks).tests
    assert [test.where for test in tests] == ["all topics", "position", "popularity"]
    assert {test.where for test in tests if test.found} - {"all topics"} == {damage} - {"nothing"}
    plain = [{**row, "expected": None} for row in clicks]
    (alone,) = failures(qrels, Traces(tuple(spans)), "nDCG@10", clicks=plain).tests
    assert alone.difference > tests[0].difference  # without them clicks of the better are hidden by its place


@pytest.mark.slow
def test_confusion_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    """Planted against found, over worlds that no rule was made on: the declared rate, and four of five at least.

    What is found in a pipeline with nothing wrong is a false discovery; with 5 % declared, ten worlds have more than
    two discoveries in about one run of a hundred. Lost shards and removed content damage no kind that is tested: what
    is found there is false too.
    """
    harmless = ("nothing", "lost shard", "content removed")
    matrix = {damage: Counter[str]() for damage in DAMAGES if damage in {*harmless, *BY_TEST}}
    for damage, seed in product(matrix, range(100, 100 + WORLDS)):
        matrix[damage].update(found(sorted_out(world(damage, seed))))
    with capsys.disabled():
        print("\n" + "\n".join(f"{damage:20}{dict(kinds)}" for damage, kinds in matrix.items()))  # noqa: T201
    for damage, kind in BY_TEST.items():
        assert matrix[damage][kind] >= 0.8 * WORLDS, damage
    for damage in harmless:
        assert sum(matrix[damage].values()) <= 2, damage


def labeled(made: World, seed: int, *, careful: float, planted: int) -> dict[str, dict[str, dict[str, int]]]:
    """Let three judges grade everything, each right with a chance; on the first topics they guess."""
    rng, guessed = np.random.default_rng(seed), list(made.qrels)[:planted]

    def grade_of(topic: str, grade: int) -> int:
        if topic in guessed:
            return int(rng.integers(0, 2))
        return grade if rng.random() < careful else 1 - (grade > 0)

    return {
        f"j{judge}": {
            topic: {doc: grade_of(topic, grade) for doc, grade in known.items()} for topic, known in made.qrels.items()
        }
        for judge in range(3)
    }


def test_topics_whose_labels_disagree_are_feedback() -> None:
    """They are found where judges guess; where judges agree none is, and by chance no more than was declared."""

    def named(seed: int, careful: float, planted: int) -> list[str]:
        made = world("nothing", seed % 3)
        labels = labeled(made, seed, careful=careful, planted=planted)
        tests = failures(made.qrels, made.traces, "nDCG@10", labels=labels).tests
        return [test.where.removeprefix("labels of ") for test in tests if test.found and "labels" in test.where]

    assert named(1, 1.0, 0) == []
    first = list(world("nothing", 1).qrels)[:5]
    assert len({*named(1, 0.98, 5)} & {*first}) >= 4
    times = 20
    assert sum(bool(named(seed, 0.9, 0)) for seed in range(times)) <= 0.05 * times + 3 * (0.05 * 0.95 * times) ** 0.5
