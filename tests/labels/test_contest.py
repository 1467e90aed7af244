"""Bounds of the difference of two runs, against all possible grades of the open documents."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from judged.data import Qrels
from judged.errors import InputError, MeasureError
from judged.labels import decide
from judged.labels.deciding import build_comparison, winner
from judged.scoring.judging import judge
from judged.scoring.measures.grammar import parse

MEASURES = ("nDCG@3", "P@3", "DCG@3", "RBP(p=0.8)@3", "NCG@3", "nDCG(gain=exp2)@3")


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("outside", [0, 1])
def test_bounds_equal_those_of_all_possible_grades(measure: str, outside: int) -> None:
    random = np.random.default_rng(7)
    docs = [f"d{i}" for i in range(6)]
    for _ in range(8):
        first, second = ([str(doc) for doc in random.permutation(docs)[:4]] for _ in range(2))
        grades = {str(doc): int(random.integers(3)) for doc in random.permutation(docs)[:3]}
        some_qrels = Qrels.of({"q": grades})
        comparison = build_comparison(some_qrels, {"q": first}, {"q": second}, measure, highest=2, outside=outside)
        open_docs = [doc for doc in docs if doc in {*first[:3], *second[:3]} - set(grades)] + ["other"] * outside
        combinations = itertools.product(range(3), repeat=len(open_docs))
        all_grades = [grades | dict(zip(open_docs, combination, strict=True)) for combination in combinations]
        qrels = {f"{i:04d}": combination for i, combination in enumerate(all_grades)}
        lists = [judge(qrels, dict.fromkeys(qrels, run)) for run in (first, second)]
        differences = parse(measure)(lists[0]) - parse(measure)(lists[1])
        bounds = comparison.bounds(np.array([0]), comparison.level)[:, 0]
        assert bounds == pytest.approx([differences.min(), differences.max()], abs=1e-12)


def test_a_comparison_is_decided_if_open_documents_cannot_change_the_winner() -> None:
    qrels = Qrels.of({"q": {"a": 1, "b": 0}})
    comparison = build_comparison(qrels, {"q": ["a", "b"]}, {"q": ["b", "c"]}, "P@2")
    assert winner(comparison.bounds(np.array([0]), comparison.level)) is None
    assert winner(comparison.bounds(np.array([0]), np.where(comparison.is_open, 0, comparison.level))) == 0


def test_equal_runs_need_no_labels() -> None:
    decision = decide({"q": {"a": 1}}, {"q": ["a", "b"]}, {"q": ["a", "b"]}, "P@2")
    assert (decision.decided, decision.low, decision.high) == (False, 0.0, 0.0)
    assert decision.sentences[1].startswith("Equal")


@pytest.mark.parametrize("measure", ["AP", "nDCG", "RR@10", "nDCG(undefined=1)@5"])
def test_unsupported_measures_raise(measure: str) -> None:
    with pytest.raises(MeasureError):
        build_comparison(Qrels.of({"q": {"a": 1}}), {"q": ["a"]}, {"q": ["b"]}, measure)


def test_grades_without_gain_give_an_empty_range() -> None:
    decision = decide({"q": {"a": 1}}, {"q": ["a", "b"]}, {"q": ["b", "c"]}, "P(rel=2)@2")  # 1 is the highest grade
    assert (decision.low, decision.high) == (0, 0)


def test_negative_seeds_raise() -> None:
    with pytest.raises(InputError, match="seed"):
        decide({"q": {"a": 1}}, {"q": ["a", "b"]}, {"q": ["b", "c"]}, "P@2", seed=-1)
