"""Every rule: on a small collection where it holds, with the numbers in its sentence, and on one where it does not."""

from __future__ import annotations

from string import Formatter
from typing import Any, NamedTuple

import pytest

import judged
from judged.scoring.advice import RULES
from judged.scoring.advice.rules import FACTS, SOURCES, TASKS
from judged.scoring.measures import Measure


def topics(*grades: list[float]) -> dict[str, dict[str, float]]:
    """Make qrels of one list of grades a topic: documents a topic are d0, d1, ..."""
    return {f"q{at}": {f"d{doc}": grade for doc, grade in enumerate(row)} for at, row in enumerate(grades)}


def ranking(length: int, of: int = 2, first: int = 0) -> dict[str, dict[str, float]]:
    """Rank d<first>, d<first + 1>, ... for each topic."""
    return {f"q{at}": {f"d{first + doc}": -float(doc) for doc in range(length)} for at in range(of)}


def labelled(*rows: tuple[str, str, str, int]) -> list[dict[str, Any]]:
    """Make qrels of topic, iteration, document and grade."""
    return [dict(zip(("query_id", "iteration", "doc_id", "relevance"), row, strict=True)) for row in rows]


ONE = topics([1], [1])  # one relevant document, and nothing else judged
ONE_OF_TWO = topics([1, 0], [1, 0])
FEW = topics([1, 1, 1, 0], [1, 1, 0, 0])
MANY = topics([1] * 20 + [0] * 40, [1] * 12 + [0] * 48)
HUGE = topics([1] * 150, [1] * 150 + [0] * 10)
GRADED = topics([2, 1, 0, 0], [2, 1, 1, 0])
FOUR = topics([3, 2, 1, 0], [3, 2, 2, 1])
DEEP_GRADED = topics([2] * 20 + [1] * 20 + [0] * 40, [2] * 20 + [1] * 20 + [0] * 40)
SUBTOPICS = labelled(("q0", "1", "d0", 1), ("q0", "2", "d0", 0), ("q0", "2", "d1", 1), ("q1", "1", "d0", 1))
ASSESSORS = labelled(("q0", "ann", "d0", 1), ("q0", "bob", "d0", 0), ("q0", "bob", "d1", 1), ("q1", "ann", "d0", 1))
SET = {"q0": ["d0", "d1"], "q1": ["d0"]}


def a_set() -> judged.Run:
    """A run without scores: two documents of the first topic, one of the second."""
    rows = [("q0", "d0"), ("q0", "d1"), ("q1", "d0")]
    return judged.Run.of([{"query_id": query, "doc_id": doc} for query, doc in rows], name="filter")


class Case(NamedTuple):
    """A rule with data where it holds, what its sentence then says, and data where it does not hold."""

    task: str
    holds: tuple[Any, ...]
    says: str
    silent: tuple[Any, ...]
    other_task: str | None = None  # the task of the second, if it is another one
    measures: tuple[str, ...] | None = None


# which facts show a field of the profile
OF_FIELD: dict[str, tuple[str, ...]] = {
    "single": ("single",),
    "relevant": ("relevant",),
    "judged": ("judged",),
    "best_p10": ("under_10",),
    "best_r10": ("over_10",),
    "best_r100": ("over_100",),
    "under_10": ("under_10",),
    "over_10": ("over_10",),
    "over_100": ("over_100",),
    "positive": ("grades",),
    "worth[linear]": ("grades",),
    "worth[exp2]": ("grades",),
    "rel": ("rel", "barren"),
    "lost": ("lost",),
    "barren": ("barren",),
    "weakest": ("weakest",),
    "below_best": ("below_best",),
    "one_sided": ("not_relevant",),
    "with_relevant": ("not_relevant",),
    "negative": ("negative",),
    "iterations": ("labels",),
    "repeated": ("labels",),
    "labels": ("labels",),
    "sets": ("scores",),
    "least[judged_10]": ("judged_10",),
    "most[judged_10]": ("judged_10",),
    "judged_depth": ("judged_depth",),
    "most[tied_10]": ("ties",),
    "longest": ("lengths",),
    "least[returned": ("lengths",),
    "most[returned": ("lengths",),
    "most[missing]": ("missing",),
}

CASES: dict[str, Case] = {
    "single-answer-rank": Case("single-answer", (ONE,), "2 of 2 topics have exactly one", (ONE,), "rag", ("RR@10",)),
    "single-answer-pair": Case("single-answer", (ONE,), "on the first page at all", (ONE,), "rag"),
    "rag-evidence": Case("rag", (ONE,), "among the 5 or 10", (ONE,), "graded", ("Success@5", "Success@10")),
    "rag-all-evidence": Case("rag", (FEW,), "median 2.5, from 2 to 3", (MANY,), None, ("R@10",)),
    "graded-page": Case("graded", (FOUR,), "Grades above 0: 1, 2, 3.", (FEW,), None, ("nDCG@10",)),
    "graded-one-grade": Case("graded", (FEW,), "all relevant documents have one grade", (FOUR,)),
    "many-average-precision": Case(
        "many-relevant", (MANY,), "median 16, from 12 to 20; judged: always 60.", (FEW,), None, ("AP",)
    ),
    "many-page": Case("many-relevant", (FEW,), "which P@10 cannot", (FEW,), "coverage"),
    "precision-with-recall": Case("many-relevant", (MANY,), "would reach 1.00 and 1.00", (FEW,)),
    "page-with-recall": Case("graded", (FOUR,), "a change may help one", (HUGE,), None, ("nDCG@10", "R(rel=2)@100")),
    "page-with-capped-recall": Case("graded", (HUGE,), "2 of 2 topics have more than 100", (FOUR,)),
    "candidates": Case("first-stage", (FEW,), "cannot recover", (HUGE,), None, ("R@100",)),
    "candidates-capped": Case("first-stage", (HUGE,), "2 of 2 topics", (FEW,), None, ("RelP@100",)),
    "candidates-deep": Case("first-stage", (FEW, ranking(101)), "Cheap first stages", (FEW, ranking(100))),
    "own-cutoff": Case("coverage", (topics([1] * 20 + [0], [1, 1]),), "from 2 to 20", (FEW,), None, ("Rprec",)),
    "candidates-graded": Case("first-stage", (FOUR,), "Grades above 0: 1, 2, 3.", (FEW,), None, ("NCG@100",)),
    "coverage-average-precision": Case("coverage", (MANY,), "always 60", (FEW,), None, ("AP",)),
    "diversity-page": Case("diversity", (SUBTOPICS,), "2 different iterations, and 1 pair judged", (FEW,)),
    "diversity-pair": Case("diversity", (SUBTOPICS,), "share of the meanings", (FEW,)),
    "diversity-without-subtopics": Case("diversity", (FEW,), "do not tell subtopics apart", (SUBTOPICS,)),
    "recommendation-page": Case("recommendation", (FEW,), "robust to missing and popular", (FEW,), "rag"),
    "recommendation-pair": Case("recommendation", (FEW,), "held down by users", (ONE,), None, ("nDCG@10", "P@10")),
    "recommendation-one": Case("recommendation", (ONE,), "2 of 2 users have exactly one", (FEW,)),
    "assessors-apart": Case("assessors", (ASSESSORS,), "2 assessors, and 1 pair judged by several", (FEW,)),
    "assessors-not-told-apart": Case("assessors", (FEW,), "do not tell assessors apart", (ASSESSORS,)),
    "preferences": Case("preferences", (FEW,), "only the order", (FEW,), "graded", ("Compat", "PrefShare")),
    "fine-grades": Case("graded", (topics([0.5, 1.5, 2.5]),), "Grades above 0: 0.5, 1.5, 2.5.", (FOUR,)),
    "sets": Case("graded", (FEW, [a_set()]), "Without scores: filter.", (FEW, ranking(2)), None, ("SetP", "SetR")),
    "sets-one-number": Case("set", (FEW, [a_set()]), "low if either", (FEW, ranking(2)), None, ("SetF",)),
    "set-that-is-ranked": Case("set", (FEW, ranking(2)), "is ignored", (FEW, [a_set()])),
    "holes-as-range": Case("graded", (FEW, ranking(10)), "40% of the first 10 of run are judged", (FEW, ranking(4))),
    "holes-left-out": Case(
        "graded",
        (FOUR, ranking(10)),
        "40% of the first 10",
        (FOUR, ranking(4)),
        None,
        ("nDCG(judged_only=true)@10", "Bpref(rel=2)"),
    ),
    "judged-share": Case(
        "graded",
        (FEW, {"a": ranking(4), "b": ranking(8)}),
        "Judged of the first 10: 50% for b, which is the least, and 100% for a, the most.",
        (FEW,),
        None,
        ("Judged@8",),
    ),
    "rr-hides-coverage": Case("graded", (FEW,), "median 2.5", (ONE,), None, ("RR", "RR@10")),
    "precision-held-down": Case("rag", (FEW,), "2 of 2 topics have fewer than 10 relevant documents", (MANY,)),
    "recall-held-down-10": Case("graded", (MANY,), "mean R@10 of 0.667", (FEW,), None, ("R@10",)),
    "recall-held-down-100": Case("graded", (HUGE,), "mean R@100 of 0.667", (MANY,), None, ("R@100",)),
    "deep-measures-shallow-pool": Case(
        "graded", (FEW,), "Judged documents per topic: always 4.", (MANY,), None, ("AP",)
    ),
    "whole-lists-uneven": Case(
        "graded", (FEW, {"a": ranking(4), "b": ranking(8)}), "a always 4; b always 8.", (FEW, ranking(8))
    ),
    "condensed-without-negatives": Case("single-answer", (ONE,), "In 2 of 2 topics", (ONE_OF_TWO,)),
    "sets-have-no-ranks": Case("graded", (FEW, [a_set()]), "Without scores: filter.", (FEW, ranking(2))),
    "accuracy": Case("rag", (FEW,), "out of a whole collection", (FEW,), "graded"),
    "err-stops-early": Case("coverage", (FOUR,), "median 2.5, from 2 to 3", (ONE,), None, ("ERR(max=3)@20",)),
    "same-number-twice": Case("single-answer", (ONE,), "more than one relevant document", (FEW,)),
    "ndcg-is-like-rr": Case("single-answer", (ONE,), "2 of 2 topics have exactly one", (topics([1], [2]),)),
    "level-four-grades": Case("graded", (FOUR,), "count grade 2 and above", (GRADED,)),
    "level-other-scale": Case("graded", (GRADED,), "count grade 1 and above", (FOUR,)),
    "level-loses-topics": Case(
        "graded", (topics(*[[3, 2]] * 9, [1, 0]),), "1 of 10 topics have documents above grade 0", (FOUR,)
    ),
    "weak-grades": Case("graded", (GRADED,), "60% of the documents above grade 0", (topics([2, 2, 1]),)),
    "gain": Case("graded", (FOUR,), "worth 3 of the lowest with linear gain, 7 with exp2", (GRADED,)),
    "best-grade-missing": Case("graded", (topics([2, 1], [1, 0]),), "1 of 2 topics have documents", (GRADED,)),
    "rr-scale": Case("single-answer", (ONE,), "rank 1 dominates its mean", (ONE,), "rag"),
    "single-label": Case("rag", (ONE,), "2 of 2 topics have exactly one relevant document", (ONE_OF_TWO,)),
    "task-one-data-many": Case("single-answer", (FEW,), "median 2.5, from 2 to 3", (ONE,)),
    "unlabelled-is-unknown": Case("recommendation", (ONE,), "In 2 of 2 users", (FEW,)),
    "sampled-candidates": Case("recommendation", (ONE, ranking(7)), "The longest list holds 7 items.", (ONE,)),
    "rag-order": Case("rag", (FEW,), "does not read like a person", (FEW,), "graded"),
    "recall-of-the-known": Case("coverage", (FEW,), "always 4", (MANY,)),
    "holes": Case("graded", (FEW, ranking(10)), "judged to 80% down to rank 5", (FEW, ranking(4))),
    "judged-means-found": Case("graded", (ONE, ranking(3)), "In 2 of 2 topics", (ONE_OF_TWO, ranking(3))),
    "uneven-holes": Case(
        "graded",
        (FEW, {"a": ranking(4), "b": ranking(8)}),
        "100% of a, 50% of b",
        (FEW, {"a": ranking(4), "b": ranking(4)}),
    ),
    "ties": Case(
        "graded",
        (FEW, {"q0": {"d0": 1.0, "d1": 1.0, "d2": 0.5}, "q1": {"d0": 0.9}}),
        "50% of the judged documents in the first 10 of run are tied",
        (FEW, ranking(4)),
    ),
    "lists-end": Case("graded", (FEW, ranking(7)), "The longest list holds 7 documents.", (FEW, ranking(1000))),
    "missing-topics": Case(
        "graded", (FEW, ranking(4, of=1)), "run has no results for 1 of 2 topics", (FEW, ranking(4))
    ),
    "barren-topics": Case("graded", (topics([1], [0]),), "1 of 2 topics have no document of grade 1", (ONE,)),
    "negative-grades": Case("graded", (topics([1, -2]),), "With a negative grade: 1 pair.", (FEW,)),
    "several-labels": Case(
        "graded", (SUBTOPICS,), "1 pair, under 2 different iterations, which look like subtopics", (FEW,)
    ),
    "few-topics": Case("graded", (FEW,), "2 topics only", (topics(*[[1]] * 25),)),
    "mean-hides": Case("graded", (FEW,), "2 topics, relevant documents in each: median 2.5", (topics([1]),)),
}


def entry(rule: str, data: tuple[Any, ...], task: str) -> Any:
    """The advice of one rule on some data, or None."""
    found = [one for one in judged.advise(*data, task=task).entries if one.rule == rule]
    return found[0] if found else None


def test_every_rule_has_a_case():
    assert set(CASES) == {rule.id for rule in RULES}
    assert len({rule.id for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", CASES)
def test_holds_with_the_numbers_of_the_data(rule: str):
    case = CASES[rule]
    said = entry(rule, case.holds, case.task)
    assert said is not None
    assert case.says in said.reason
    if case.measures is not None:
        assert tuple(map(str, said.measures)) == case.measures


@pytest.mark.parametrize("rule", CASES)
def test_is_silent_elsewhere(rule: str):
    case = CASES[rule]
    assert entry(rule, case.silent, case.other_task or case.task) is None


@pytest.mark.parametrize("rule", RULES, ids=[rule.id for rule in RULES])
def test_is_well_formed(rule: Any):
    assert rule.sources
    assert set(rule.sources) <= set(SOURCES)
    assert set(rule.tasks) <= set(TASKS)
    assert set(rule.facts) <= set(FACTS)
    for name in rule.measures:
        assert str(judged.measures.parse(name)) == name  # the canonical name, and one that exists
    assert rule.why.endswith(".")
    assert rule.here == "" or rule.here.endswith(".")
    assert rule.disputed == "" or rule.disputed.endswith(".")
    assert "{" not in rule.why + rule.disputed
    assert rule.measures or rule.kind in {"caution", "note"}
    assert rule.kind != "pair" or len(rule.measures) > 1


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.here], ids=lambda rule: rule.id)
def test_numbers_rest_on_named_facts(rule: Any):
    """What a sentence puts in is among the facts that the rule names."""
    fields = {text.split(".")[1] for _, text, _, _ in Formatter().parse(rule.here) if text}
    assert all(set(OF_FIELD[field]) & set(rule.facts) for field in fields if field != "n")


def test_sources_are_cited_and_name_their_year():
    cited = {source for rule in RULES for source in rule.sources}
    said = " ".join(rule.disputed for rule in RULES)
    for key, full in SOURCES.items():
        first, year = key.split()[0].rstrip(","), key[-4:]
        assert year in full
        assert (first if first != "van" else "van Rijsbergen") in full
        assert key in cited or f"({year})" in said


def test_facts_are_used():
    assert set(FACTS) == {name for rule in RULES for name in rule.facts}


def test_conditions_and_their_opposites_differ():
    from judged.scoring.advice import profile_of

    facts = profile_of(FEW, [judged.Run.of(ranking(4))])
    for rule in RULES:
        for condition in rule.when:
            assert condition(facts) is not (~condition)(facts)
            assert (~~condition).name == condition.name


def test_measures_are_measures():
    assert all(isinstance(one, Measure) for one in judged.advise(FOUR, ranking(4)).measures)
