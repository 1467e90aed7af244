"""Headlines of traces, answers, and experiments: each status with data by hand, and numbers equal to the tables."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from judged import evaluate
from judged.data import sample
from judged.pipelines import rag
from judged.pipelines.experiments import Plan, conclude
from judged.pipelines.rag.overview import SystemScores
from judged.pipelines.traces import (
    Document,
    Span,
    Traces,
    explain_document,
    failures,
    funnel,
    gaps,
    traces_of_runs,
)
from judged.results import Answer, Headline, Section, Table
from judged.results.headline import MAX_WORDS
from pipelines.rag.planted_losses import planted

TOPICS = [f"q{n:02}" for n in range(24)]


def headline_of(answer: Answer) -> Headline:
    headline = answer.headline
    assert headline is not None
    assert 0 < len(headline.sentence.split()) <= MAX_WORDS
    assert answer.to_dict()["headline"]["status"] == headline.status
    return headline


def pipeline(first: list[str] | None, final: list[str] | None, topics: list[str]) -> Traces:
    """Two stages with the same lists for all topics; None is not recorded."""

    def documents(docs: list[str] | None) -> tuple[Document, ...] | None:
        return None if docs is None else tuple(Document(doc, rank) for rank, doc in enumerate(docs, 1))

    spans = [
        (
            Span(topic, topic, "bm25", "candidates", (), documents(first)),
            Span(topic, topic, "rerank", "rerank", ("bm25",), documents(final)),
        )
        for topic in topics
    ]
    return Traces(tuple(span for pair in spans for span in pair))


@pytest.mark.parametrize(
    ("first", "final", "status", "value"),
    [
        (["x", "a"], ["x", "a"], "info", 0.5),  # RR 0.5 of 1.0: lost in the final order
        (["a", "x"], ["a", "x"], "info", None),
        (["x", "a"], None, "unknown", None),
    ],
)
def test_loss_by_stage(first: list[str], final: list[str] | None, status: str, value: float | None) -> None:
    answer = funnel({topic: {"a": 1} for topic in TOPICS}, pipeline(first, final, TOPICS), "RR")
    headline = headline_of(answer)
    assert (headline.status, headline.value) == (status, value)
    if value is not None:
        (row,) = [row for row in answer.table("parts").records() if row["value"] == value]
        assert headline.label.endswith(row["part"])
        assert list(headline.ci or ()) == (row["ci"] or [])


@pytest.mark.parametrize(
    ("first", "final", "status", "word"),
    [
        (["x", "a"], ["x", "a"], "info", "work on scoring"),
        (["x"], ["x"], "info", "work on candidate"),
        (["a"], ["a"], "info", "no loss"),
        (["x", "a"], None, "unknown", "not recorded"),
    ],
)
def test_kinds_of_failure(first: list[str], final: list[str] | None, status: str, word: str) -> None:
    answer = failures({topic: {"a": 1} for topic in TOPICS}, pipeline(first, final, TOPICS), "RR@1")
    headline = headline_of(answer)
    assert (headline.status, headline.word) == (status, word)
    if headline.value is not None:
        kinds = {f"work on {row['failure']}": row["recoverable"] for row in answer.table("kinds").records()}
        assert headline.value == kinds[word] == 1.0


@pytest.mark.parametrize(
    ("n", "found", "documents", "status"),
    [
        (12, "even", None, "same"),
        (12, "others", None, "worse"),
        (5, "others", None, "unknown"),
        (5, "others", [{"doc_id": "z", "entity": "tar"}], "info"),  # zip has no document
    ],
)
def test_content_gaps(n: int, found: str, documents: Any, status: str) -> None:
    """The first `n` topics are about zip; lists of the others, or of even topics, have a relevant document."""
    is_found = {topic: i % 2 == 0 if found == "even" else i >= n for i, topic in enumerate(TOPICS)}
    traces = traces_of_runs({"bm25": {topic: ["a" if is_found[topic] else "x"] for topic in TOPICS}})
    queries = {topic: "zip" if i < n else "tar" for i, topic in enumerate(TOPICS)}
    entities = [{"entity": "zip"}, {"entity": "tar"}]
    qrels = {topic: {"a": 1} for topic in TOPICS}
    answer = gaps(qrels, traces, "R@1", entities=entities, queries=queries, documents=documents)
    headline = headline_of(answer)
    assert headline.status == status
    if status == "worse":
        (row,) = [row for row in answer.rows if row.entity == "zip"]
        assert (headline.value, headline.ci) == (-1.0, row.comparison and row.comparison.interval)
    if status == "info":
        assert headline.value == n  # lost searches


def test_paths_of_documents() -> None:
    traces = traces_of_runs({"bm25": {"q": ["x", "a", "b", "y"]}, "rerank": {"q": ["a", "x"]}})
    grades = {"q": {"a": 1, "b": 1, "c": 1}}
    some = headline_of(explain_document(traces, "q", qrels=grades))
    assert (some.status, some.value, some.word) == ("info", 1, "2 not shown")
    assert headline_of(explain_document(traces, "q", ["a", "x", "y"], qrels=grades)).word == "all shown"
    assert headline_of(explain_document(traces, "q", ["a", "x", "y"])).status == "unknown"
    assert headline_of(explain_document(traces, "q", "b", qrels=grades)).status == "info"
    unrecorded = pipeline(["x", "a"], None, ["q"])
    assert headline_of(explain_document(unrecorded, "q", "a", qrels=grades)).status == "unknown"
    assert headline_of(explain_document(unrecorded, "q", ["a", "x", "b"], qrels=grades)).status == "unknown"


@pytest.mark.parametrize(
    ("losses", "topics", "status"),
    [
        ({"context": 0.1, "cited": 0.6}, 30, "worse"),
        ({"context": 0.4, "cited": 0.4}, 30, "same"),
        ({"context": 0.5, "cited": 0.5}, 3, "unknown"),
        ({}, 10, "info"),
    ],
)
def test_loss_of_evidence(losses: dict[str, float], topics: int, status: str) -> None:
    data = planted({"one": losses}, topics=topics)
    answer = rag.waterfall(data.responses, data.qrels, runs=data.runs and {"last": data.runs["last"]})
    headline = headline_of(answer)
    assert headline.status == status
    if losses:
        worst = answer.weakest["one"].step
        assert (headline.value, headline.ci) == (worst.share.value, worst.share.ci)
        assert (headline.status == "worse") == (answer.weakest["one"].p <= 0.05)


def responses(covered: dict[str, list[bool]], **tables: Any) -> Any:
    """Answers of systems with one nugget each, which each answer covers or not."""
    topics = [f"q{i}" for i in range(len(next(iter(covered.values()))))]
    pairs = {system: zip(topics, verdicts, strict=True) for system, verdicts in covered.items()}
    rows = [(system, topic, is_covered) for system in covered for topic, is_covered in pairs[system]]
    return {
        "answers": [{"query_id": topic, "run_id": system, "text": "It is 7."} for system, topic, _ in rows],
        "nuggets": [{"query_id": topic, "nugget_id": "n", "text": "7"} for topic in topics],
        "assignments": [
            {
                "query_id": topic,
                "run_id": system,
                "nugget_id": "n",
                "verdict": "support" if is_covered else "not",
            }
            for system, topic, is_covered in rows
        ],
        **tables,
    }


@pytest.mark.parametrize(
    ("second", "status"),
    [
        ([True] * 8 + [False] * 2, "better"),
        ([True, False] * 5, "same"),
        ([False] * 10, "same"),  # equal on every topic
    ],
)
def test_scores_of_two_systems(second: list[bool], status: str) -> None:
    for first, last, expected in (
        ([False] * 10, second, status),
        (second, [False] * 10, {"better": "worse"}.get(status, status)),
    ):
        answer = SystemScores(rag.evaluate(responses({"a": first, "b": last}), "NuggetRecall"))
        headline = headline_of(answer)
        (pair,) = answer.scores.compare(baseline="a", family="all").pairs
        assert headline.status == expected
        assert (headline.value, headline.ci) == (pair.shown_difference, pair.shown_interval)


def test_scores_of_few_topics_and_of_one_system() -> None:
    few = SystemScores(rag.evaluate(responses({"a": [False] * 4, "b": [True] * 4}), "NuggetRecall"))
    assert headline_of(few).status == "unknown"
    single = SystemScores(rag.evaluate(responses({"a": [True, False] * 4}), "NuggetRecall"))
    estimate = single.scores.estimates()[0]
    headline = headline_of(single)
    assert (headline.status, headline.value, headline.ci) == ("info", 0.5, estimate.ci)
    three = SystemScores(rag.evaluate(responses({name: [True] * 8 for name in "abc"}), "NuggetRecall"))
    (section,) = [block for block in three.blocks() if isinstance(block, Section)]
    (table,) = section.blocks
    assert isinstance(table, Table)
    assert list(table.column("run").values) == ["b", "c"]


def test_one_answer() -> None:
    tables = responses({"a": [True, False]})
    headline = headline_of(rag.explain(tables, topic="q0"))
    assert (headline.status, headline.value) == ("info", 1)
    bare = {"answers": [{"query_id": "q", "text": "It is 7."}]}
    assert headline_of(rag.explain(bare, topic="q")).status == "unknown"
    score = headline_of(rag.explain(tables, "NuggetRecall", topic="q1"))
    assert (score.status, score.value) == ("info", 0.0)


def experiment(ranks: dict[str, list[int]]) -> Any:
    """Results of configurations by the rank of the relevant document on each topic."""
    n = len(next(iter(ranks.values())))
    qrels = {f"q{i}": {"d": 1} for i in range(n)}
    runs = {
        name: {f"q{i}": [*(f"x{j}" for j in range(rank - 1)), "d"] for i, rank in enumerate(row)}
        for name, row in ranks.items()
    }
    levels, costs = {name: {"stemmer": name} for name in runs}, {name: {"p50_ms": 2.0} for name in runs}
    return SimpleNamespace(scores=evaluate(qrels, runs, "RR"), levels=levels, costs=costs, control=next(iter(runs)))


@pytest.mark.parametrize(
    ("ranks", "status"),
    [
        ({"none": [2] * 12, "porter": [1] * 12}, "better"),
        ({"none": [1, 2] * 6, "porter": [2, 1] * 6}, "same"),
        ({"none": [2] * 5, "porter": [1] * 5}, "unknown"),
    ],
)
def test_best_configuration(ranks: dict[str, list[int]], status: str) -> None:
    answer = conclude(experiment(ranks))
    headline = headline_of(answer)
    facts = answer.facts()
    assert headline.status == status
    assert (headline.value, headline.ci) == (facts["cross_validated_mean"], facts["cross_validated_ci"])
    assert (status == "better") == (len(answer.may_be_best) == 1)


def test_a_plan_has_no_results() -> None:
    names = {"documents": "docs.jsonl.gz", "queries": "queries.jsonl", "qrels": "qrels.txt"}
    files = {key: str(sample.FOLDER / name) for key, name in names.items()}
    plan = Plan.of(files | {"factors": {"engine": ["sqlite"], "stemmer": ["none", "english"]}})
    headline = headline_of(plan)
    assert (headline.status, headline.value) == ("unknown", 2)
    assert plan.searches == 2 * (len(sample.topics()) * (1 + plan.rounds) + plan.warm_up)
