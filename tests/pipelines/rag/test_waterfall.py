"""The waterfall: sums as fractions, chains by hand, unjudged items, simulated losses, and false positives."""

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
    "sentences": [{"query_id": "q1", "sentence": number} for number in (1, 2, 3)] + [{"query_id": "q3", "sentence": 1}],
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


def counts(result: Any, unit: str, run: str | None = None) -> list[tuple[str, int, int, int, int]]:
    """Return step, n_reached, n, unjudged, and reappeared of a chain."""
    return [
        (step.step, step.n_reached, step.n, step.unjudged, step.reappeared)
        for step in result.steps
        if step.unit == unit and run in {None, step.run}
    ]


def test_documents_by_hand() -> None:
    """In q1 a and b of a, b, c, d are in the context; a is cited with partial support; d is cited without context."""
    result = waterfall(BY_HAND, QRELS)
    assert counts(result, "document") == [("context", 6, 3, 0, 0), ("cited", 3, 1, 0, 1), ("supported", 1, 0, 0, 0)]
    assert counts(waterfall(BY_HAND, QRELS, strict=False), "document")[-1] == ("supported", 1, 1, 0, 0)
    assert result.main_unit == "answer"
    assert ("run", "document", "q1", "d", "context", False) in result.lost


def test_chains_of_other_units_restart_unless_a_table_links_them() -> None:
    """Sentences start a new chain; users continue the answers they rated; abstentions have no sentences."""
    result = waterfall(BY_HAND, QRELS)
    # Sentence 3 cites nothing; sentence 2 cites d, which is not in the context and has no verdict.
    assert counts(result, "sentence") == [("cited", 3, 2, 0, 0), ("context", 2, 1, 0, 0), ("supported", 1, 1, 0, 0)]
    # q3 has no relevant document; q2 has one in the context and cites nothing.
    assert counts(result, "answer") == [("context", 2, 2, 0, 0), ("cited", 2, 1, 0, 0), ("supported", 1, 0, 0, 0),
                                      ("answered", 0, 0, 0, 2), ("correct", 0, 0, 0, 1)]  # fmt: skip
    assert counts(result, "user") == [("answered", 2, 2, 0, 0), ("correct", 2, 2, 0, 0), ("satisfied", 2, 1, 0, 0)]
    assert {note.rule for note in result.notes} >= {"topics-not-answered", "topics-not-judged", "steps-not-recorded"}


def test_nuggets_are_linked_by_evidence_only() -> None:
    """Without evidence, nuggets start a new chain; with evidence, they pass if one of their documents does."""
    tables = {**BY_HAND, "nuggets": [{"query_id": "q1", "nugget_id": name} for name in "mno"],
              "assignments": [{"query_id": "q1", "nugget_id": name, "verdict": verdict}
                              for name, verdict in (("m", "support"), ("n", "failed"))]}  # fmt: skip
    assert counts(waterfall(tables, QRELS), "nugget") == [("covered", 3, 1, 2, 0)]
    evidence = [
        {"query_id": "q1", "nugget_id": name, "doc_id": doc} for name, doc in (("m", "c"), ("n", "x"), ("n", "d"))
    ]
    linked = waterfall({**tables, "evidence": evidence}, QRELS)
    # m is in c, which is not in the context, but the answer covers m; n is in x, which is cited and supports it.
    assert counts(linked, "nugget") == [("context", 2, 1, 0, 0), ("cited", 1, 1, 0, 0), ("supported", 1, 1, 0, 0),
                                        ("covered", 1, 0, 1, 1)]  # fmt: skip
    assert linked.main_unit == "nugget"
    covered = linked.steps[3]
    assert (np.isnan(covered.overall.value), covered.lowest, covered.highest) == (True, 0.0, 0.5)
    assert "nuggets-without-evidence" in {note.rule for note in linked.notes}


def test_abstentions_claim_and_cite_nothing_as_in_scores() -> None:
    """Both answers cite a; the second one abstains and has no verdicts: its items are lost, not unjudged."""
    tables = {
        "answers": [{"query_id": name, "abstained": name == "p"} for name in "op"],
        "citations": [{"query_id": name, "sentence": 1, "doc_id": "a"} for name in "op"],
        "nuggets": [{"query_id": name, "nugget_id": "n"} for name in "op"],
        "assignments": [{"query_id": "o", "nugget_id": "n", "verdict": "support"}],
    }
    qrels = {"o": {"a": 1}, "p": {"a": 1}}
    result, scores = waterfall(tables, qrels), evaluate(tables, ["NuggetRecall", "CitationRecall"], qrels=qrels)
    assert counts(result, "nugget") == [("covered", 2, 1, 0, 0)]
    assert counts(result, "document") == [("cited", 2, 1, 0, 0)]
    assert (result.steps[0].share.value, 0.5) == (scores.value("NuggetRecall"), scores.value("CitationRecall"))
    abstaining = {**tables, "answers": [{"query_id": name, "abstained": True} for name in "op"]}
    assert counts(waterfall(abstaining, qrels), "document") == [
        ("cited", 2, 0, 0, 0)
    ]  # citations are recorded, but none counts


def test_share_if_perfect_is_unknown_if_no_item_reached_a_later_step() -> None:
    """A step that no judged item reached has no share to extrapolate from."""
    verdict = {"query_id": "q", "sentence": 1, "doc_id": "d", "verdict": "not"}
    tables = {
        "answers": [{"query_id": "q"}],
        "context": [{"query_id": "q", "doc_id": "d"}],
        "support": [verdict],
        "citations": [verdict],
        "correctness": [{"query_id": "q", "verdict": "support"}],
    }
    result = waterfall(tables, {"q": {"d": 1}})
    (weakest,) = result.weakest.values()
    assert (weakest.step.step, np.isnan(weakest.step.if_perfect.value)) == ("supported", True)
    worst = next(iter(result.weakest.values()))
    assert math.isnan(worst.step.if_perfect.value)
    assert worst.insufficiency is not None  # no test with one topic
    assert " - of " not in result.sentences[0]


def test_failed_and_absent_verdicts_are_unjudged_and_bounded() -> None:
    """Four citations: two support, one verdict failed, one is missing. The share is 2 of 2, within 50% to 100%."""
    tables = {
        "answers": [{"query_id": "q", "text": "x"}],
        "citations": [{"query_id": "q", "sentence": number, "doc_id": "d"} for number in range(4)],
        "support": [{"query_id": "q", "sentence": number, "doc_id": "d", "verdict": verdict}
                    for number, verdict in enumerate(("support", "support", "failed"))],
    }  # fmt: skip
    result = waterfall(tables)
    supported = result.steps[-1]
    assert (supported.n_reached, supported.n, supported.unjudged) == (4, 2, 2)
    assert (supported.share.value, supported.lowest, supported.highest) == (1.0, 0.5, 1.0)
    assert {item.is_unjudged for item in result.lost} == {True}


NUGGET = {"query_id": "q", "nugget_id": "n"}


@pytest.mark.parametrize(
    ("verdicts", "consensus", "score", "n_passed"),
    [
        ("a:support b:support c:not d:failed", "support", 2 / 3, 1),
        ("a:support b:not", "not", 0.5, 0),  # two verdicts: the lower one
        ("a:support b:partial", "partial", 0.75, 0),
        ("a:not b:support b:support", "not", 0.5, 0),  # two verdicts of one judge weigh like one
        ("a:support b:support b:not", "support", 0.75, 1),
        ("a:failed", "failed", None, None),
    ],
)
def test_scores_and_steps_combine_several_verdicts_by_the_same_rule(
    verdicts: str, consensus: str, score: float | None, n_passed: int | None
) -> None:
    rows: list[dict[str, Any]] = []
    for judge, _, verdict in (judge_verdict.partition(":") for judge_verdict in verdicts.split()):
        repeat = sum(row["judge"] == judge for row in rows)
        rows.append({**NUGGET, "judge": judge, "repeat": repeat, "verdict": verdict})
    responses = Responses.of({"answers": [{"query_id": "q", "text": "x"}], "nuggets": [NUGGET], "assignments": rows})
    assert middle_verdicts(responses["assignments"], "query_id") == {("q",): consensus}
    if score is not None:
        assert evaluate(responses, "NuggetRecall(partial=0.5)").value("NuggetRecall(partial=0.5)") == pytest.approx(
            score
        )
    (step,) = waterfall(responses).steps
    assert (step.n, step.unjudged) == ((n_passed, 0) if n_passed is not None else (0, 1))


def test_stages_come_from_traces_and_untraced_queries_are_unjudged() -> None:
    """The second of two first stages returns b; the last stage returns a; q2 has no trace."""
    spans = [Span("t", "q1", "bm25", "candidates", (), (Document("a", 1),)),
             Span("t", "q1", "dense", "candidates", (), (Document("b", 1), Document("c", 101))),
             Span("t", "q1", "rerank", "rerank", ("bm25", "dense"), (Document("a", 1), Document("b", 11)))]  # fmt: skip
    result = waterfall(BY_HAND, QRELS, traces=Traces(tuple(spans)), corpus="abd")
    assert counts(result, "document")[:3] == [("corpus", 6, 5, 0, 0), ("retrieved", 5, 2, 2, 0), ("ranked", 2, 1, 0, 0)]
    runs = {"bm25": {"q1": {"a": 1.0}}}
    assert counts(waterfall(BY_HAND, QRELS, runs=runs), "document")[0] == ("retrieved", 6, 1, 0, 0)


def test_steps_with_the_largest_number_of_lost_items_are_named() -> None:
    """Of 4 documents, the context has 2 and 1 is cited: 2 of 3 are lost at the first step. With b cited, 1 and 1."""
    tables: dict[str, Any] = {
        "answers": [{"query_id": "q", "text": "x"}],
        "context": [{"query_id": "q", "doc_id": doc} for doc in "ab"],
        "citations": [{"query_id": "q", "sentence": 1, "doc_id": "a"}],
    }
    texts = [waterfall(tables, {"q": dict.fromkeys(docs, 1)}).sentences for docs in ("abcd", "abc", "a")]
    assert "“in the context” loses the most: 2 of the 3 lost" in texts[0][0]
    assert "“in the context” and “cited” each lose the most: 1 of the 2 lost" in texts[1][0]
    assert texts[2] == ("No step loses relevant documents.",)
    assert [len(text) for text in texts] == [1, 1, 1]


def test_the_step_that_loses_most_need_not_have_the_lowest_share() -> None:
    """Of 9 documents, the context has 5, of which 2 are cited: 4 and 3 are lost."""
    topics = [f"q{i}" for i in range(12)]
    tables: dict[str, Any] = {
        "answers": [{"query_id": topic, "text": "x"} for topic in topics],
        "context": [{"query_id": topic, "doc_id": doc} for topic in topics for doc in "abcde"],
        "citations": [{"query_id": topic, "sentence": 1, "doc_id": doc} for topic in topics for doc in "ab"],
    }
    result = waterfall(tables, {topic: dict.fromkeys("abcdefghi", 1) for topic in topics})
    shares = {step.step: step.share.value for step in result.steps if step.unit == "document"}
    assert shares == {"context": 5 / 9, "cited": 2 / 5}
    (weakest,) = result.weakest.values()
    assert (weakest.step.step, weakest.step.lost.value, weakest.second) == ("context", 4 / 9, "cited")


def test_a_terminal_shows_the_first_lost_items() -> None:
    tables = {"answers": [{"query_id": "q", "text": "x"}], "context": [{"query_id": "q", "doc_id": "a"}]}
    result = waterfall(tables, {"q": {f"d{i}": 1 for i in range(31)}, "other": {"a": 0}})
    assert len(result.to_dict()["lost"]) == len(result.lost) == 32
    shown, *_ = (
        result.text(unfold=["lost"]).split("== Lost items ==")[1].split("\n\n12 more rows; all 32 rows: --format csv")
    )
    assert [f"d{i}" in shown.split() for i in (18, 19)] == [True, False]  # the answer, then 19 documents


def test_inputs_without_a_step_raise() -> None:
    with pytest.raises(InputError, match=r"no step.*--qrels FILE, with --run NAME=RUN"):
        waterfall({"answers": [{"query_id": "q", "text": "x"}]})
    with pytest.raises(InputError, match="cannot be combined"):
        waterfall(BY_HAND, QRELS, runs={}, traces=Traces(()))


LOSSES = st.dictionaries(st.sampled_from((*CHAIN, "correct", "satisfied")), st.floats(0, 1))


@settings(max_examples=40, deadline=None)
@given(LOSSES, LOSSES, st.integers(0, 1000))
def test_shares_multiply_exactly(first: dict[str, float], second: dict[str, float], seed: int) -> None:
    """Over all topics, in each slice, and within each topic, as fractions of counts."""
    data = planted({"a": first, "b": second}, topics=6, relevant=3, seed=seed)
    slicing = slice_topics({topic: {"half": str(i % 2)} for i, topic in enumerate(data.qrels)}, "half")
    result = waterfall(*data[:2], runs=data.runs, corpus=data.corpus, slicing=slicing)
    chains: dict[Any, list[Any]] = {}
    for step in (*result.steps, *result.by_slice):
        chains.setdefault((step.run, step.slice, step.unit), []).append(step)
    for steps in chains.values():
        for i, step in enumerate(steps):
            passed = [
                Fraction(earlier.n, earlier.n_reached) if earlier.n_reached else Fraction(0)
                for earlier in steps[: i + 1]
            ]
            share = Fraction(step.n, steps[0].n_reached)
            assert prod(passed) == share
            assert step.overall.value == pytest.approx(float(share), abs=1e-12)
            assert step.lowest == step.highest
    for _, _, remaining in result.topics:
        assert prod(Fraction(after, max(before, 1)) for before, after in pairwise(remaining)) == Fraction(
            remaining[-1], remaining[0]
        )


def test_standard_error_of_a_product_equals_that_of_the_overall_ratio() -> None:
    """If all items are judged: the delta method for the ratio of items at the end to items at the start."""
    data = planted({"a": {"context": 0.3, "cited": 0.2}}, seed=4)
    last = [step for step in waterfall(*data[:2], runs=data.runs).steps if step.unit == "document"][-1]
    initial, final = np.full(40, 4.0), np.array(last.share.passed)
    expected = np.sqrt(((final - last.overall.value * initial) ** 2).sum() / (40 * 39)) / 4
    assert last.overall.sums.error == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("step", [*CHAIN, "correct", "satisfied"])
@pytest.mark.parametrize("severity", [0.35, 0.7])
def test_planted_losses_are_found(step: str, severity: float) -> None:
    """If one step loses much more than the others, it is the weakest, and its share is estimated."""
    losses = dict.fromkeys((*CHAIN, "correct", "satisfied"), 0.05) | {step: severity}
    data = planted({"a": losses}, topics=150, seed=7)
    result = waterfall(*data[:2], runs=data.runs, corpus=data.corpus)
    if step in CHAIN:
        worst = result.weakest["a"]
        assert (worst.step.step, worst.p <= 0.05) == (step, True)
        others = 0.95 ** (len(CHAIN) - 1)
        assert worst.step.if_perfect.value == pytest.approx(others, abs=0.1)
    unit = {"correct": "answer", "satisfied": "user"}.get(step, "nugget")
    share = next(estimate.share for estimate in result.steps if (estimate.unit, estimate.step) == (unit, step))
    assert share.value == pytest.approx(1 - severity, abs=0.12)


def test_only_the_step_with_a_true_difference_differs() -> None:
    data = planted({"a": {"context": 0.1, "cited": 0.1}, "b": {"context": 0.1, "cited": 0.5}}, topics=100, seed=2)
    significant = [
        difference for difference in waterfall(*data[:2], runs=data.runs).differences if difference.p <= 0.05
    ]
    assert {(difference.run, difference.step) for difference in significant} == {("b", "cited")}
    assert all(difference.share.value < 0 for difference in significant)


@pytest.mark.slow
@pytest.mark.parametrize("extra_loss", [0.0, 0.2])
def test_false_positives_of_equal_systems_stay_at_the_significance_level(extra_loss: float) -> None:
    """40 pairs of equal systems: no step is weakest if all steps, or two, lose equally many items; none differs."""
    losses, remaining = dict[str, float](), 1.0
    for step in CHAIN[3:]:
        lost = 0.05 + extra_loss * (step in {"context", "cited"})
        losses[step] = lost / remaining  # a share of the items that reach the step
        remaining -= lost
    n_weakest = n_different = 0
    for seed in range(40):
        data = planted({"a": losses, "b": losses}, topics=40, seed=seed)
        result = waterfall(*data[:2])
        n_weakest += "a" in result.weakest and result.weakest["a"].p <= 0.05
        n_different += any(difference.p <= 0.05 for difference in result.differences)
    assert n_weakest <= 6  # P(more | 0.05) < 0.01
    assert n_different <= 6


@pytest.mark.slow
def test_intervals_cover_the_simulated_shares() -> None:
    """Coverage for a step and for the chain in 120 simulations: at least 90% for 95% intervals."""
    losses = {"context": 0.2, "cited": 0.3, "supported": 0.1}
    n_covered = np.zeros(2)
    for seed in range(120):
        data = planted({"a": losses}, topics=40, seed=seed)
        tables = {name: data.responses[name] for name in ("answers", "context", "citations", "support")}
        steps = [step for step in waterfall(tables, data.qrels).steps if step.unit == "document"]
        truths = (0.7, 0.8 * 0.7 * 0.9)
        for i, (share, truth) in enumerate(zip((steps[1].share, steps[2].overall), truths, strict=True)):
            low, high = share.ci or (np.nan, np.nan)
            n_covered[i] += low <= truth <= high
    assert (n_covered >= 0.90 * 120).all(), n_covered


def test_exact_match_is_the_last_step_without_verdicts() -> None:
    answers = [{"query_id": f"q{i}", "run_id": "a", "text": text, "abstained": i == 3}
               for i, text in enumerate(["The Broncos.", "Panthers", None, "I do not know", "x"])]  # fmt: skip
    tables = {
        "answers": answers,
        "context": [{"query_id": f"q{i}", "run_id": "a", "doc_id": "d", "rank": 1} for i in (0, 1, 2, 3)],
        "references": [{"query_id": f"q{i}", "text": text} for i in range(4) for text in ("broncos", "Denver Broncos")],
    }
    qrels = {f"q{i}": {"d": 1} for i in range(5)}
    result = waterfall(Responses.of(tables), qrels)
    steps = {step.step: step for step in result.steps if step.unit == "answer"}
    assert list(steps) == ["context", "answered", "matched"]
    # q4 lacks its document; q3 abstained; q1 differs from both references; q2 has no text.
    assert [steps[name].n for name in steps] == [4, 3, 1]
    assert steps["matched"].unjudged == 1
    assert result.main_unit == "answer"
    verdicts = [{"query_id": f"q{i}", "run_id": "a", "verdict": "support"} for i in range(5)]
    judged_steps = {step.step for step in waterfall(Responses.of({**tables, "correctness": verdicts}), qrels).steps}
    assert "correct" in judged_steps
    assert "matched" not in judged_steps


def test_contexts_with_other_ids_are_refused() -> None:
    """Passages that are identified by a hash would lose all evidence."""
    tables = {
        "answers": [{"query_id": "q", "run_id": "a", "text": "x"}],
        "context": [{"query_id": "q", "run_id": "a", "doc_id": "5e884898", "rank": 1}],
    }
    with pytest.raises(InputError, match="none of the 1 document in the contexts is in the qrels"):
        waterfall(Responses.of(tables), {"q": {"d": 1, "e": 0}})
    assert waterfall(Responses.of(tables), {"q": {"d": 1}, "other": {"5e884898": 0}}).steps
