"""The waterfall: sums as fractions, chains by hand, what is unjudged, planted losses, and what it names by chance."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judged.comparison.slicing.topic_slices import slice_topics
from judged.errors import InputError
from judged.pipelines.rag import Responses, evaluate, waterfall
from judged.pipelines.rag.responses import middle_verdicts
from judged.pipelines.traces import Document, Span, Traces
from pipelines.rag.planted_losses import CHAIN, planted

BY_HAND: dict[str, Any] = {
    "answers": [{"query_id": topic, "text": "x", "abstained": topic == "q3"} for topic in ("q1", "q2", "q3")],
    "context": [{"query_id": "q1", "doc_id": doc} for doc in "abx"] + [{"query_id": "q2", "doc_id": "a"}],
    "sentences": [{"query_id": "q1", "sentence": at} for at in (1, 2, 3)] + [{"query_id": "q3", "sentence": 1}],
    "citations": [{"query_id": "q1", "sentence": 1, "doc_id": "a"}, {"query_id": "q1", "sentence": 1, "doc_id": "x"},
                  {"query_id": "q1", "sentence": 2, "doc_id": "d"}],
    "support": [{"query_id": "q1", "sentence": 1, "doc_id": "a", "verdict": "partial"},
                {"query_id": "q1", "sentence": 1, "doc_id": "x", "verdict": "support"},
                {"query_id": "q1", "sentence": 2, "doc_id": "d", "verdict": "failed"}],
    "correctness": [{"query_id": "q1", "verdict": "support"}, {"query_id": "q2", "verdict": "failed"}],
    "feedback": [{"query_id": "q1", "user_id": "u", "satisfied": True},
                 {"query_id": "q1", "user_id": "v", "satisfied": False}],
}  # fmt: skip
QRELS = {"q1": {"a": 1, "b": 1, "c": 1, "d": 1, "x": 0}, "q2": {"a": 2, "b": 1}, "q3": {"a": 0}, "q4": {"a": 1}}


def counts(made: Any, unit: str, run: str | None = None) -> list[tuple[str, int, int, int, int]]:
    """Give step, given, n, unjudged and around of a chain."""
    return [
        (one.step, one.given, one.n, one.unjudged, one.around)
        for one in made.steps
        if one.unit == unit and run in {None, one.run}
    ]


def test_documents_by_hand() -> None:
    """Q1: a, b of a, b, c, d are in the context; a is cited, and only partly supports; d is cited from elsewhere."""
    made = waterfall(BY_HAND, QRELS)
    assert counts(made, "document") == [("context", 6, 3, 0, 0), ("cited", 3, 1, 0, 1), ("supported", 1, 0, 0, 0)]
    assert counts(waterfall(BY_HAND, QRELS, strict=False), "document")[-1] == ("supported", 1, 1, 0, 0)
    assert made.lead == "answer"
    assert ("run", "document", "q1", "d", "context", False) in made.lost


def test_units_change_unless_a_table_links_them() -> None:
    """Sentences begin anew; users go on from the answers that they were given; abstentions have no sentences."""
    made = waterfall(BY_HAND, QRELS)
    # sentence 3 cites nothing; 2 cites d, which was not in the context: what supports it is d, and has no verdict
    assert counts(made, "sentence") == [("cited", 3, 2, 0, 0), ("context", 2, 1, 0, 0), ("supported", 1, 1, 0, 0)]
    # q3 has no relevant document; q2 has one in the context, and cites nothing
    assert counts(made, "answer") == [("context", 2, 2, 0, 0), ("cited", 2, 1, 0, 0), ("supported", 1, 0, 0, 0),
                                      ("answered", 0, 0, 0, 2), ("correct", 0, 0, 0, 1)]  # fmt: skip
    assert counts(made, "user") == [("answered", 2, 2, 0, 0), ("correct", 2, 2, 0, 0), ("satisfied", 2, 1, 0, 0)]
    assert {note.rule for note in made.notes} >= {"topics-not-answered", "topics-not-judged", "steps-not-recorded"}


def test_nuggets_are_linked_by_evidence_only() -> None:
    """Without evidence nuggets begin anew; with it they come through if one of their documents does."""
    tables = {**BY_HAND, "nuggets": [{"query_id": "q1", "nugget_id": name} for name in "mno"],
              "assignments": [{"query_id": "q1", "nugget_id": name, "verdict": verdict}
                              for name, verdict in (("m", "support"), ("n", "failed"))]}  # fmt: skip
    assert counts(waterfall(tables, QRELS), "nugget") == [("covered", 3, 1, 2, 0)]
    evidence = [
        {"query_id": "q1", "nugget_id": name, "doc_id": doc} for name, doc in (("m", "c"), ("n", "x"), ("n", "d"))
    ]
    linked = waterfall({**tables, "evidence": evidence}, QRELS)
    # m stands in c, which is not in the context, and yet is said; n in x, which is cited and supports
    assert counts(linked, "nugget") == [("context", 2, 1, 0, 0), ("cited", 1, 1, 0, 0), ("supported", 1, 1, 0, 0),
                                        ("covered", 1, 0, 1, 1)]  # fmt: skip
    assert linked.lead == "nugget"
    covered = linked.steps[3]
    assert (np.isnan(covered.overall.value), covered.lowest, covered.highest) == (True, 0.0, 0.5)
    assert "nuggets-without-evidence" in {note.rule for note in linked.notes}


def test_who_abstains_says_and_cites_nothing_here_as_in_scores() -> None:
    """Both answers cite a, and nobody judged what the second one says, for it abstains: that is lost, not unknown."""
    tables = {
        "answers": [{"query_id": name, "abstained": name == "p"} for name in "op"],
        "citations": [{"query_id": name, "sentence": 1, "doc_id": "a"} for name in "op"],
        "nuggets": [{"query_id": name, "nugget_id": "n"} for name in "op"],
        "assignments": [{"query_id": "o", "nugget_id": "n", "verdict": "support"}],
    }
    qrels = {"o": {"a": 1}, "p": {"a": 1}}
    made, scores = waterfall(tables, qrels), evaluate(tables, ["NuggetRecall", "CitationRecall"], qrels=qrels)
    assert counts(made, "nugget") == [("covered", 2, 1, 0, 0)]
    assert counts(made, "document") == [("cited", 2, 1, 0, 0)]
    assert (made.steps[0].share.value, 0.5) == (scores.value("NuggetRecall"), scores.value("CitationRecall"))
    silent = {**tables, "answers": [{"query_id": name, "abstained": True} for name in "op"]}
    assert counts(waterfall(silent, qrels), "document") == [("cited", 2, 0, 0, 0)]  # recorded, and none that counts


def test_what_a_step_that_passes_nothing_on_would_gain_is_unknown() -> None:
    """What nothing came to has no share that could be kept: there is no number to name."""
    verdict = {"query_id": "q", "sentence": 1, "doc_id": "d", "verdict": "not"}
    tables = {
        "answers": [{"query_id": "q"}],
        "context": [{"query_id": "q", "doc_id": "d"}],
        "support": [verdict],
        "citations": [verdict],
        "correctness": [{"query_id": "q", "verdict": "support"}],
    }
    made = waterfall(tables, {"q": {"d": 1}})
    (weakest,) = made.weakest.values()
    assert (weakest.step.step, np.isnan(weakest.step.perfect.value)) == ("supported", True)
    worst = next(iter(made.weakest.values()))
    assert math.isnan(worst.step.perfect.value)
    assert worst.lacking is not None  # one topic: which step loses most is not tested
    assert " - of " not in made.sentences[0]


def test_failed_and_absent_verdicts_are_unjudged_and_bounded() -> None:
    """Of four citations two support, one verdict failed, one is absent: 2 of 2, and 50 % to 100 %."""
    tables = {
        "answers": [{"query_id": "q", "text": "x"}],
        "citations": [{"query_id": "q", "sentence": at, "doc_id": "d"} for at in range(4)],
        "support": [{"query_id": "q", "sentence": at, "doc_id": "d", "verdict": verdict}
                    for at, verdict in enumerate(("support", "support", "failed"))],
    }  # fmt: skip
    made = waterfall(tables)
    supported = made.steps[-1]
    assert (supported.given, supported.n, supported.unjudged) == (4, 2, 2)
    assert (supported.share.value, supported.lowest, supported.highest) == (1.0, 0.5, 1.0)
    assert {one[-1] for one in made.lost} == {True}


ONE = {"query_id": "q", "nugget_id": "n"}


@pytest.mark.parametrize(
    ("said", "word", "score", "passes"),
    [
        ("a:support b:support c:not d:failed", "support", 2 / 3, 1),
        ("a:support b:not", "not", 0.5, 0),  # of two the one that supports less
        ("a:support b:partial", "partial", 0.75, 0),
        ("a:not b:support b:support", "not", 0.5, 0),  # who is asked twice does not gain weight
        ("a:support b:support b:not", "support", 0.75, 1),
        ("a:failed", "failed", None, None),
    ],
)
def test_one_rule_makes_scores_and_steps_of_several_verdicts(
    said: str, word: str, score: float | None, passes: int | None
) -> None:
    rows: list[dict[str, Any]] = []
    for judge, _, verdict in (one.partition(":") for one in said.split()):
        repeat = sum(row["judge"] == judge for row in rows)
        rows.append({**ONE, "judge": judge, "repeat": repeat, "verdict": verdict})
    given = Responses.of({"answers": [{"query_id": "q", "text": "x"}], "nuggets": [ONE], "assignments": rows})
    assert middle_verdicts(given["assignments"], "query_id") == {("q",): word}
    if score is not None:
        assert evaluate(given, "NuggetRecall(partial=0.5)").value("NuggetRecall(partial=0.5)") == pytest.approx(score)
    (step,) = waterfall(given).steps
    assert (step.n, step.unjudged) == ((passes, 0) if passes is not None else (0, 1))


def test_stages_come_from_traces_and_queries_that_were_not_traced_are_unknown() -> None:
    """The second of two first stages finds b; the last one keeps a; q2 was not traced."""
    spans = [Span("t", "q1", "bm25", "candidates", (), (Document("a", 1),)),
             Span("t", "q1", "dense", "candidates", (), (Document("b", 1), Document("c", 101))),
             Span("t", "q1", "rerank", "rerank", ("bm25", "dense"), (Document("a", 1), Document("b", 11)))]  # fmt: skip
    made = waterfall(BY_HAND, QRELS, traces=Traces(tuple(spans)), corpus="abd")
    assert counts(made, "document")[:3] == [("corpus", 6, 5, 0, 0), ("retrieved", 5, 2, 2, 0), ("ranked", 2, 1, 0, 0)]
    runs = {"bm25": {"q1": {"a": 1.0}}}
    assert counts(waterfall(BY_HAND, QRELS, runs=runs), "document")[0] == ("retrieved", 6, 1, 0, 0)


def test_what_cannot_be_followed_is_refused() -> None:
    with pytest.raises(InputError, match="followed"):
        waterfall({"answers": [{"query_id": "q", "text": "x"}]})
    with pytest.raises(InputError, match="both"):
        waterfall(BY_HAND, QRELS, runs={}, traces=Traces(()))


LOSSES = st.dictionaries(st.sampled_from((*CHAIN, "correct", "satisfied")), st.floats(0, 1))


@settings(max_examples=40, deadline=None)
@given(LOSSES, LOSSES, st.integers(0, 1000))
def test_shares_multiply_exactly(first: dict[str, float], second: dict[str, float], seed: int) -> None:
    """Over all topics together, in each slice and within each topic, as fractions of counts."""
    made = planted({"a": first, "b": second}, topics=6, relevant=3, seed=seed)
    slicing = slice_topics({topic: {"half": str(at % 2)} for at, topic in enumerate(made.qrels)}, "half")
    found = waterfall(*made[:2], runs=made.runs, corpus=made.corpus, slicing=slicing)
    chains: dict[Any, list[Any]] = {}
    for step in (*found.steps, *found.by_slice):
        chains.setdefault((step.run, step.slice, step.unit), []).append(step)
    for steps in chains.values():
        for at, step in enumerate(steps):
            passed = [Fraction(one.n, one.given) if one.given else Fraction(0) for one in steps[: at + 1]]
            share = Fraction(step.n, steps[0].given)
            assert prod(passed) == share
            assert step.overall.value == pytest.approx(float(share), abs=1e-12)
            assert step.lowest == step.highest
    for _, _, behind in found.topics:
        assert prod(Fraction(n, max(given, 1)) for given, n in pairwise(behind)) == Fraction(behind[-1], behind[0])


def test_the_error_of_a_product_is_that_of_the_ratio_that_it_is() -> None:
    """Where all is judged: the delta method on what is there at the end, by what was there at the begin."""
    made = planted({"a": {"context": 0.3, "cited": 0.2}}, seed=4)
    last = [one for one in waterfall(*made[:2], runs=made.runs).steps if one.unit == "document"][-1]
    begin, end = np.full(40, 4.0), np.array(last.share.passed)
    error = np.sqrt(((end - last.overall.value * begin) ** 2).sum() / (40 * 39)) / 4
    assert last.overall.sums.error == pytest.approx(error, rel=1e-9)


@pytest.mark.parametrize("step", [*CHAIN, "correct", "satisfied"])
@pytest.mark.parametrize("severity", [0.35, 0.7])
def test_planted_losses_are_found(step: str, severity: float) -> None:
    """One step loses much more than the others: it is the one to work on, and its share is found again."""
    losses = dict.fromkeys((*CHAIN, "correct", "satisfied"), 0.05) | {step: severity}
    made = planted({"a": losses}, topics=150, seed=7)
    found = waterfall(*made[:2], runs=made.runs, corpus=made.corpus)
    if step in CHAIN:
        worst = found.weakest["a"]
        assert (worst.step.step, worst.p <= 0.05) == (step, True)
        others = 0.95 ** (len(CHAIN) - 1)
        assert worst.step.perfect.value == pytest.approx(others, abs=0.1)
    unit = {"correct": "answer", "satisfied": "user"}.get(step, "nugget")
    share = next(one.share for one in found.steps if (one.unit, one.step) == (unit, step))
    assert share.value == pytest.approx(1 - severity, abs=0.12)


def test_a_system_that_loses_more_is_found_at_that_step_alone() -> None:
    made = planted({"a": {"context": 0.1, "cited": 0.1}, "b": {"context": 0.1, "cited": 0.5}}, topics=100, seed=2)
    shown = [one for one in waterfall(*made[:2], runs=made.runs).differences if one.p <= 0.05]
    assert {(one.run, one.step) for one in shown} == {("b", "cited")}
    assert all(one.share.value < 0 for one in shown)


@pytest.mark.slow
@pytest.mark.parametrize("more", [0.0, 0.2])
def test_undamaged_chains_show_nothing_at_the_declared_rate(more: float) -> None:
    """40 pairs of equal systems: no step is named where all, or two of them, lose alike, and none differs."""
    same = {step: 0.05 + more * (step in {"context", "cited"}) for step in CHAIN[3:]}
    named = differ = 0
    for seed in range(40):
        made = planted({"a": same, "b": same}, topics=40, seed=seed)
        found = waterfall(*made[:2])
        named += "a" in found.weakest and found.weakest["a"].p <= 0.05
        differ += any(one.p <= 0.05 for one in found.differences)
    assert named <= 6  # P(more | 0.05) < 0.01
    assert differ <= 6


@pytest.mark.slow
def test_intervals_hold_the_planted_shares() -> None:
    """The share of a step and that of the whole chain, 120 times: at least 90 % where 95 % are said."""
    losses = {"context": 0.2, "cited": 0.3, "supported": 0.1}
    held = np.zeros(2)
    for seed in range(120):
        made = planted({"a": losses}, topics=40, seed=seed)
        tables = {name: made.responses[name] for name in ("answers", "context", "citations", "support")}
        last = [one for one in waterfall(tables, made.qrels).steps if one.unit == "document"]
        truths = (0.7, 0.8 * 0.7 * 0.9)
        for at, (share, truth) in enumerate(zip((last[1].share, last[2].overall), truths, strict=True)):
            low, high = share.ci or (np.nan, np.nan)
            held[at] += low <= truth <= high
    assert (held >= 0.90 * 120).all(), held
