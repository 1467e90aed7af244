"""`where=`: every function that takes runs gives the numbers of the chosen topics, and says which they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import judged
from judged import InputError, slice_topics

if TYPE_CHECKING:
    from collections.abc import Callable

TOPICS = [f"q{i}" for i in range(12)]
QRELS = {query: {"a": 2, "b": 1} for query in TOPICS}
OLD = {query: ["x", "a"] if i % 2 else ["b", "a"] for i, query in enumerate(TOPICS)}
NEW = {query: ["a", "b"] if i % 3 else ["x", "b"] for i, query in enumerate(TOPICS)}
KINDS = {query: {"kind": "law" if i < 8 else "news", "class": i} for i, query in enumerate(TOPICS)}
RUNS = {"old": OLD, "new": NEW}
SCORED = {name: {query: {run[query][0]: 2.0, run[query][1]: 1.0} for query in TOPICS} for name, run in RUNS.items()}
COSTS = {"old": {"ms": 1}, "new": {"ms": 2}}
KIND = slice_topics(KINDS, "kind", min_topics=2)
NEEDS = {query: query[-1] for query in TOPICS}

CALLS: dict[str, Callable[..., Any]] = {
    "evaluate": lambda q, **how: judged.evaluate(q, RUNS, "RR", **how),
    "compare": lambda q, **how: judged.compare(q, RUNS, "RR", **how),
    "power": lambda q, **how: judged.power(q, RUNS, "RR", **how),
    "slices": lambda q, **how: judged.slices(q, RUNS, KIND, "RR", **how),
    "matrix": lambda q, **how: judged.matrix(q, RUNS, **how),
    "disagree": lambda q, **how: judged.disagree(q, RUNS, ("RR", "R@1"), **how),
    "needs": lambda q, **how: judged.needs(q, RUNS, NEEDS, "RR", **how),
    "tradeoff": lambda q, **how: judged.tradeoff(q, RUNS, COSTS, "RR", **how),
    "curve": lambda q, **how: judged.curve(q, RUNS, "R", cutoffs=2, **how),
    "precision_recall": lambda q, **how: judged.precision_recall(q, RUNS, **how),
    "stages": lambda q, **how: judged.stages(q, OLD, **how),
    "diff": lambda q, **how: judged.diff(q, *(judged.Run.of(SCORED[name], name=name) for name in RUNS), **how),
    "review": lambda q, **how: judged.review(q, RUNS, **how),
    "report": lambda q, **how: judged.report(q, RUNS, measures="RR", **how).scores,
}


@pytest.mark.parametrize("name", CALLS)
def test_the_numbers_are_those_of_the_chosen_topics(name: str) -> None:
    filtered = CALLS[name](QRELS, attributes=KINDS, where="kind == 'law'")
    alone = CALLS[name](judged.Qrels.of({query: QRELS[query] for query in TOPICS[:8]}))
    document, facts = filtered.to_dict(), alone.to_dict()
    for part in (document, facts):
        for words in ("qrels", "runs", "notes", "sentences", "policies"):
            part.pop(words, None)
    assert document == facts
    if name == "power":  # plans rest on no judgments
        return
    assert filtered.provenance.where == "kind == 'law'"
    assert "Only topics where kind == 'law' are included." in filtered.text()
    assert "where kind == 'law'" in filtered.latex() + filtered.markdown()


@pytest.mark.parametrize(
    ("where", "how", "message"),
    [
        ("kind == 'law'", {}, r"no attribute 'kind'\. Fix: use one of query_id; or pass attributes="),
        ("kind == 'odd'", {"attributes": KINDS}, "no topic satisfies"),
        (" ", {}, "`where` is empty"),
        ("kind == 'law'", {"attributes": KINDS, "topics": "run"}, "cannot be combined with topics=run"),
    ],
)
def test_what_makes_no_sense_is_said(where: str, how: dict[str, Any], message: str) -> None:
    for call in (judged.evaluate, judged.compare):
        with pytest.raises(InputError, match=message):
            call(QRELS, RUNS, "RR", where=where, **how)


def test_ids_are_always_there_and_what_is_not_known_is_noted() -> None:
    scores = judged.evaluate(QRELS, RUNS, "RR", where="query_id in ('q1', 'q3')")
    assert scores.query_ids == ("q1", "q3")
    assert scores.aggregate() == {"old": {"RR": 0.5}, "new": {"RR": (1 + 0.5) / 2}}
    partly = judged.compare(
        QRELS, RUNS, "RR", where="kind == 'law'", attributes={"q1": {"kind": "law"}, "q2": {"kind": "law"}}
    )
    assert [note.text for note in partly.notes if note.rule == "topics-without-attribute"] == [
        "10 of 12 topics have no kind, so every comparison with kind is false for these topics"
    ]


def test_a_report_knows_derived_attributes_too() -> None:
    queries = {query: "one two three" if query in {"q1", "q2", "q3"} else "one" for query in TOPICS}
    answer = judged.report(QRELS, RUNS, measures="RR", queries=queries, where="words > 2")
    assert answer.scores.query_ids == ("q1", "q2", "q3")
    assert answer.title == "Evaluation on qrels where words > 2"


def test_scores_that_were_chosen_in_two_ways_are_not_joined() -> None:
    old = judged.evaluate(QRELS, {"old": OLD}, "RR", where="query_id < 'q4'")
    new = judged.evaluate(QRELS, {"new": NEW}, "RR", where="query_id < 'q3'")
    with pytest.raises(InputError, match="must have the same judgments"):
        old.join(new)
