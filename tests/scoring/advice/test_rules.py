"""Each rule on a small collection where it applies, with the numbers in its sentence, and on one where it does not."""

from __future__ import annotations

from string import Formatter
from typing import Any, NamedTuple

import pytest

import judged
from judged.scoring.advice import RULES
from judged.scoring.advice.rules import FACTS, SOURCES, TASKS
from judged.scoring.measures import Measure


def topics(*grade_lists: list[float]) -> dict[str, dict[str, float]]:
    """Create qrels from one list of grades per topic; the documents are d0, d1, ..."""
    return {
        f"q{topic}": {f"d{doc}": grade for doc, grade in enumerate(grades)} for topic, grades in enumerate(grade_lists)
    }


def ranking(length: int, num_topics: int = 2, first: int = 0) -> dict[str, dict[str, float]]:
    """Rank d<first>, d<first + 1>, ... for each topic."""
    return {f"q{topic}": {f"d{first + doc}": -float(doc) for doc in range(length)} for topic in range(num_topics)}


def qrels_rows(*rows: tuple[str, str, str, int]) -> list[dict[str, Any]]:
    """Create qrels from tuples of topic, iteration, document, and grade."""
    return [dict(zip(("query_id", "iteration", "doc_id", "relevance"), row, strict=True)) for row in rows]


ONE_RELEVANT = topics([1], [1])  # one relevant document, and nothing else judged
ONE_RELEVANT_OF_TWO = topics([1, 0], [1, 0])
FEW_RELEVANT = topics([1, 1, 1, 0], [1, 1, 0, 0])
MANY_RELEVANT = topics([1] * 20 + [0] * 40, [1] * 12 + [0] * 48)
HUNDREDS_RELEVANT = topics([1] * 150, [1] * 150 + [0] * 10)
THREE_GRADES = topics([2, 1, 0, 0], [2, 1, 1, 0])
FOUR_GRADES = topics([3, 2, 1, 0], [3, 2, 2, 1])
DEEP_GRADED = topics([2] * 20 + [1] * 20 + [0] * 40, [2] * 20 + [1] * 20 + [0] * 40)
SUBTOPICS = qrels_rows(("q0", "1", "d0", 1), ("q0", "2", "d0", 0), ("q0", "2", "d1", 1), ("q1", "1", "d0", 1))
ASSESSORS = qrels_rows(("q0", "ann", "d0", 1), ("q0", "bob", "d0", 0), ("q0", "bob", "d1", 1), ("q1", "ann", "d0", 1))
SET = {"q0": ["d0", "d1"], "q1": ["d0"]}


def set_run() -> judged.Run:
    """A run without scores: two documents of the first topic, one of the second."""
    rows = [("q0", "d0"), ("q0", "d1"), ("q1", "d0")]
    return judged.Run.of([{"query_id": query, "doc_id": doc} for query, doc in rows], name="filter")


class Case(NamedTuple):
    """Data on which a rule applies, a part of its sentence, and data on which it does not apply."""

    task: str
    holds: tuple[Any, ...]
    sentence: str
    does_not_hold: tuple[Any, ...]
    other_task: str | None = None  # task for `does_not_hold`, if it differs
    measures: tuple[str, ...] | None = None


# facts that use a field of the profile
FACTS_OF_FIELD: dict[str, tuple[str, ...]] = {
    "one_relevant": ("single",),
    "relevant": ("relevant",),
    "judged": ("judged",),
    "best_p10": ("under_10",),
    "best_r10": ("over_10",),
    "best_r100": ("over_100",),
    "under_10": ("under_10",),
    "over_10": ("over_10",),
    "over_100": ("over_100",),
    "positive": ("grades",),
    "gain_ratio[linear]": ("grades",),
    "gain_ratio[exp2]": ("grades",),
    "rel": ("rel", "without_relevant"),
    "below_rel": ("below_rel",),
    "without_relevant": ("without_relevant",),
    "lowest_grade_share": ("lowest_grade_share",),
    "without_highest_grade": ("without_highest_grade",),
    "without_nonrelevant": ("not_relevant",),
    "with_relevant": ("not_relevant",),
    "negative": ("negative",),
    "iterations": ("labels",),
    "repeated": ("labels",),
    "labels": ("labels",),
    "set_runs": ("scores",),
    "min_run[judged_10]": ("judged_10",),
    "max_run[judged_10]": ("judged_10",),
    "judged_depth": ("judged_depth",),
    "max_run[tied_10]": ("ties",),
    "max_list_length": ("lengths",),
    "min_run[returned": ("lengths",),
    "max_run[returned": ("lengths",),
    "max_run[missing]": ("missing",),
}

CASES: dict[str, Case] = {
    "single-answer-rank": Case(
        "single-answer", (ONE_RELEVANT,), "2 of 2 topics have exactly one", (ONE_RELEVANT,), "rag", ("RR@10",)
    ),
    "single-answer-pair": Case(
        "single-answer", (ONE_RELEVANT,), "with the answer on the first page", (ONE_RELEVANT,), "rag"
    ),
    "rag-evidence": Case(
        "rag", (ONE_RELEVANT,), "first 5 or 10 passages", (ONE_RELEVANT,), "graded", ("Success@5", "Success@10")
    ),
    "rag-all-evidence": Case("rag", (FEW_RELEVANT,), "median 2.5, from 2 to 3", (MANY_RELEVANT,), None, ("R@10",)),
    "graded-page": Case("graded", (FOUR_GRADES,), "Grades above 0: 1, 2, 3.", (FEW_RELEVANT,), None, ("nDCG@10",)),
    "graded-one-grade": Case("graded", (FEW_RELEVANT,), "all relevant documents have the same grade", (FOUR_GRADES,)),
    "many-average-precision": Case(
        "many-relevant",
        (MANY_RELEVANT,),
        "median 16, from 12 to 20; judged documents per topic: always 60.",
        (FEW_RELEVANT,),
        None,
        ("AP",),
    ),
    "many-page": Case("many-relevant", (FEW_RELEVANT,), "Precision cannot", (FEW_RELEVANT,), "coverage"),
    "precision-with-recall": Case(
        "many-relevant", (MANY_RELEVANT,), "would reach a mean P@10 of 1.00 and a mean R@100 of 1.00", (FEW_RELEVANT,)
    ),
    "page-with-recall": Case(
        "graded",
        (FOUR_GRADES,),
        "may raise one measure and lower the other",
        (HUNDREDS_RELEVANT,),
        None,
        ("nDCG@10", "R(rel=2)@100"),
    ),
    "page-with-capped-recall": Case("graded", (HUNDREDS_RELEVANT,), "2 of 2 topics have more than 100", (FOUR_GRADES,)),
    "candidates": Case("first-stage", (FEW_RELEVANT,), "cannot recover", (HUNDREDS_RELEVANT,), None, ("R@100",)),
    "candidates-capped": Case(
        "first-stage", (HUNDREDS_RELEVANT,), "2 of 2 topics", (FEW_RELEVANT,), None, ("RelP@100",)
    ),
    "candidates-deep": Case(
        "first-stage", (FEW_RELEVANT, ranking(101)), "Inexpensive first stages", (FEW_RELEVANT, ranking(100))
    ),
    "r-precision": Case(
        "coverage", (topics([1] * 20 + [0], [1, 1]),), "from 2 to 20", (FEW_RELEVANT,), None, ("Rprec",)
    ),
    "candidates-graded": Case(
        "first-stage", (FOUR_GRADES,), "Grades above 0: 1, 2, 3.", (FEW_RELEVANT,), None, ("NCG@100",)
    ),
    "coverage-average-precision": Case("coverage", (MANY_RELEVANT,), "always 60", (FEW_RELEVANT,), None, ("AP",)),
    "diversity-page": Case(
        "diversity",
        (SUBTOPICS,),
        "column of the qrels: 2; pairs of topic and document judged under several iterations: 1",
        (FEW_RELEVANT,),
    ),
    "diversity-pair": Case("diversity", (SUBTOPICS,), "share of the meanings", (FEW_RELEVANT,)),
    "diversity-without-subtopics": Case("diversity", (FEW_RELEVANT,), "do not identify subtopics", (SUBTOPICS,)),
    "recommendation-page": Case(
        "recommendation", (FEW_RELEVANT,), "robust to sparsity bias and popularity", (FEW_RELEVANT,), "rag"
    ),
    "recommendation-pair": Case(
        "recommendation",
        (FEW_RELEVANT,),
        "limit the highest possible precision",
        (ONE_RELEVANT,),
        None,
        ("nDCG@10", "P@10"),
    ),
    "recommendation-one": Case("recommendation", (ONE_RELEVANT,), "2 of 2 users have exactly one", (FEW_RELEVANT,)),
    "assessors-separate": Case(
        "assessors",
        (ASSESSORS,),
        "Number of assessors: 2; pairs of topic and document judged by several assessors: 1",
        (FEW_RELEVANT,),
    ),
    "assessors-not-identified": Case("assessors", (FEW_RELEVANT,), "do not identify assessors", (ASSESSORS,)),
    "preferences": Case(
        "preferences", (FEW_RELEVANT,), "only the order", (FEW_RELEVANT,), "graded", ("Compat", "PrefShare")
    ),
    "fine-grades": Case("graded", (topics([0.5, 1.5, 2.5]),), "Grades above 0: 0.5, 1.5, 2.5.", (FOUR_GRADES,)),
    "sets": Case(
        "graded",
        (FEW_RELEVANT, [set_run()]),
        "Runs without scores: filter.",
        (FEW_RELEVANT, ranking(2)),
        None,
        ("SetP", "SetR"),
    ),
    "sets-one-number": Case(
        "set", (FEW_RELEVANT, [set_run()]), "low if precision or recall", (FEW_RELEVANT, ranking(2)), None, ("SetF",)
    ),
    "set-that-is-ranked": Case("set", (FEW_RELEVANT, ranking(2)), "is ignored", (FEW_RELEVANT, [set_run()])),
    "holes-as-range": Case(
        "graded",
        (FEW_RELEVANT, ranking(10)),
        "Lowest share of judged documents in the first 10: 40% (run run)",
        (FEW_RELEVANT, ranking(4)),
    ),
    "holes-left-out": Case(
        "graded",
        (FOUR_GRADES, ranking(10)),
        "in the first 10: 40% (run run)",
        (FOUR_GRADES, ranking(4)),
        None,
        ("nDCG(judged_only=true)@10", "Bpref(rel=2)"),
    ),
    "judged-share": Case(
        "graded",
        (FEW_RELEVANT, {"a": ranking(4), "b": ranking(8)}),
        "Share of judged documents in the first 10: from 50% (b) to 100% (a).",
        (FEW_RELEVANT,),
        None,
        ("Judged@8",),
    ),
    "rr-hides-coverage": Case("graded", (FEW_RELEVANT,), "median 2.5", (ONE_RELEVANT,), None, ("RR", "RR@10")),
    "precision-limited": Case(
        "rag", (FEW_RELEVANT,), "2 of 2 topics have fewer than 10 relevant documents", (MANY_RELEVANT,)
    ),
    "recall-limited-10": Case("graded", (MANY_RELEVANT,), "mean R@10 of 0.667", (FEW_RELEVANT,), None, ("R@10",)),
    "recall-limited-100": Case(
        "graded", (HUNDREDS_RELEVANT,), "mean R@100 of 0.667", (MANY_RELEVANT,), None, ("R@100",)
    ),
    "deep-measures-shallow-pool": Case(
        "graded", (FEW_RELEVANT,), "Judged documents per topic: always 4.", (MANY_RELEVANT,), None, ("AP",)
    ),
    "whole-lists-uneven": Case(
        "graded",
        (FEW_RELEVANT, {"a": ranking(4), "b": ranking(8)}),
        "run a: always 4; run b: always 8.",
        (FEW_RELEVANT, ranking(8)),
    ),
    "condensed-without-negatives": Case("single-answer", (ONE_RELEVANT,), "In 2 of 2 topics", (ONE_RELEVANT_OF_TWO,)),
    "sets-have-no-ranks": Case(
        "graded", (FEW_RELEVANT, [set_run()]), "Runs without scores: filter.", (FEW_RELEVANT, ranking(2))
    ),
    "accuracy": Case("rag", (FEW_RELEVANT,), "Relevant documents per topic: median 2.5", (FEW_RELEVANT,), "graded"),
    "err-stops-early": Case(
        "coverage", (FOUR_GRADES,), "median 2.5, from 2 to 3", (ONE_RELEVANT,), None, ("ERR(max=3)@20",)
    ),
    "same-number-twice": Case("single-answer", (ONE_RELEVANT,), "more than one relevant document", (FEW_RELEVANT,)),
    "ndcg-is-like-rr": Case("single-answer", (ONE_RELEVANT,), "2 of 2 topics have exactly one", (topics([1], [2]),)),
    "level-four-grades": Case("graded", (FOUR_GRADES,), "count grade 2 and above", (THREE_GRADES,)),
    "level-other-scale": Case("graded", (THREE_GRADES,), "count grade 1 and above", (FOUR_GRADES,)),
    "level-excludes-topics": Case(
        "graded", (topics(*[[3, 2]] * 9, [1, 0]),), "1 of 10 topics have documents above grade 0", (FOUR_GRADES,)
    ),
    "weak-grades": Case("graded", (THREE_GRADES,), "60% of the documents with a positive grade", (topics([2, 2, 1]),)),
    "gain": Case(
        "graded",
        (FOUR_GRADES,),
        "3 times the gain of the lowest grade. With exp2 gain, the highest grade has 7 times the gain of the lowest",
        (THREE_GRADES,),
    ),
    "best-grade-missing": Case("graded", (topics([2, 1], [1, 0]),), "1 of 2 topics have documents", (THREE_GRADES,)),
    "rr-scale": Case("single-answer", (ONE_RELEVANT,), "rank 1 dominate the mean", (ONE_RELEVANT,), "rag"),
    "single-label": Case(
        "rag", (ONE_RELEVANT,), "2 of 2 topics have exactly one relevant document", (ONE_RELEVANT_OF_TWO,)
    ),
    "task-one-data-many": Case("single-answer", (FEW_RELEVANT,), "median 2.5, from 2 to 3", (ONE_RELEVANT,)),
    "unlabeled-items": Case("recommendation", (ONE_RELEVANT,), "In 2 of 2 users", (FEW_RELEVANT,)),
    "sampled-candidates": Case(
        "recommendation", (ONE_RELEVANT, ranking(7)), "The longest list has 7 items.", (ONE_RELEVANT,)
    ),
    "rag-order": Case("rag", (FEW_RELEVANT,), "does not read like a person", (FEW_RELEVANT,), "graded"),
    "recall-of-judged": Case("coverage", (FEW_RELEVANT,), "always 4", (MANY_RELEVANT,)),
    "holes": Case(
        "graded",
        (FEW_RELEVANT, ranking(10)),
        "Down to rank 5, at least 80% of the documents of every run are judged.",
        (FEW_RELEVANT, ranking(4)),
    ),
    "judged-without-nonrelevant": Case(
        "graded", (ONE_RELEVANT, ranking(3)), "In 2 of 2 topics", (ONE_RELEVANT_OF_TWO, ranking(3))
    ),
    "uneven-holes": Case(
        "graded",
        (FEW_RELEVANT, {"a": ranking(4), "b": ranking(8)}),
        "100% for a, 50% for b",
        (FEW_RELEVANT, {"a": ranking(4), "b": ranking(4)}),
    ),
    "ties": Case(
        "graded",
        (FEW_RELEVANT, {"q0": {"d0": 1.0, "d1": 1.0, "d2": 0.5}, "q1": {"d0": 0.9}}),
        "50% of the judged documents in the first 10 of run have the same score",
        (FEW_RELEVANT, ranking(4)),
    ),
    "lists-end": Case(
        "graded", (FEW_RELEVANT, ranking(7)), "The longest list has 7 documents.", (FEW_RELEVANT, ranking(1000))
    ),
    "missing-topics": Case(
        "graded",
        (FEW_RELEVANT, ranking(4, num_topics=1)),
        "run has no results for 1 of 2 topics",
        (FEW_RELEVANT, ranking(4)),
    ),
    "topics-without-relevant": Case(
        "graded", (topics([1], [0]),), "1 of 2 topics have no document of grade 1", (ONE_RELEVANT,)
    ),
    "negative-grades": Case("graded", (topics([1, -2]),), "Judgments with a negative grade: 1 pair.", (FEW_RELEVANT,)),
    "several-labels": Case(
        "graded",
        (SUBTOPICS,),
        "judgments: 1. The 2 different values in the iteration column look like subtopics",
        (FEW_RELEVANT,),
    ),
    "few-topics": Case("graded", (FEW_RELEVANT,), "only 2 topics", (topics(*[[1]] * 25),)),
    "mean-hides": Case("graded", (FEW_RELEVANT,), "2 topics, relevant documents per topic: median 2.5", (topics([1]),)),
}


def find_recommendation(rule: str, data: tuple[Any, ...], task: str) -> Any:
    """Return the recommendation of one rule for these data, or None."""
    matches = [
        recommendation
        for recommendation in judged.advise(*data, task=task).recommendations
        if recommendation.rule == rule
    ]
    return matches[0] if matches else None


def test_every_rule_has_a_case():
    assert set(CASES) == {rule.id for rule in RULES}
    assert len({rule.id for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", CASES)
def test_holds_with_the_numbers_of_the_data(rule: str):
    case = CASES[rule]
    recommendation = find_recommendation(rule, case.holds, case.task)
    assert recommendation is not None
    assert case.sentence in recommendation.reason
    if case.measures is not None:
        assert tuple(map(str, recommendation.measures)) == case.measures


@pytest.mark.parametrize("rule", CASES)
def test_is_silent_elsewhere(rule: str):
    case = CASES[rule]
    assert find_recommendation(rule, case.does_not_hold, case.other_task or case.task) is None


@pytest.mark.parametrize("rule", RULES, ids=[rule.id for rule in RULES])
def test_is_well_formed(rule: Any):
    assert rule.sources
    assert set(rule.sources) <= set(SOURCES)
    assert set(rule.tasks) <= set(TASKS)
    assert set(rule.facts) <= set(FACTS)
    for name in rule.measures:
        assert str(judged.measures.parse(name)) == name  # the canonical name, and one that exists
    assert rule.rationale.endswith(".")
    assert rule.evidence == "" or rule.evidence.endswith(".")
    assert rule.disputed == "" or rule.disputed.endswith(".")
    assert "{" not in rule.rationale + rule.disputed
    assert rule.measures or rule.kind in {"caution", "note"}
    assert rule.kind != "pair" or len(rule.measures) > 1


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.evidence], ids=lambda rule: rule.id)
def test_numbers_rest_on_named_facts(rule: Any):
    """Each field in the sentence of a rule belongs to a fact that the rule lists."""
    fields = {text.split(".")[1] for _, text, _, _ in Formatter().parse(rule.evidence) if text}
    assert all(set(FACTS_OF_FIELD[field]) & set(rule.facts) for field in fields if field != "n")


def test_sources_are_cited_and_name_their_year():
    cited = {source for rule in RULES for source in rule.sources}
    disputes = " ".join(rule.disputed for rule in RULES)
    for key, reference in SOURCES.items():
        author, year = key.split()[0].rstrip(","), key[-4:]
        assert year in reference
        assert (author if author != "van" else "van Rijsbergen") in reference
        assert key in cited or f"({year})" in disputes


def test_facts_are_used():
    assert set(FACTS) == {name for rule in RULES for name in rule.facts}


def test_conditions_and_their_opposites_differ():
    from judged.scoring.advice import build_profile

    facts = build_profile(FEW_RELEVANT, [judged.Run.of(ranking(4))])
    for rule in RULES:
        for condition in rule.when:
            assert condition(facts) is not (~condition)(facts)
            assert (~~condition).name == condition.name


def test_measures_are_measures():
    assert all(isinstance(measure, Measure) for measure in judged.advise(FOUR_GRADES, ranking(4)).measures)
