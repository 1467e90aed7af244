"""One test for each row of docs/same-name.md: what each tool prints, and our name for its number.

Unless something else is said, the numbers are what these programs gave for the list of the test: pytrec_eval-terrier
0.5.11 (trec_eval 9.0.8), ir_measures 0.4.3, ranx 0.3.21 with make_comparable, trectools 0.0.50, cwl-eval 1.0.12,
scikit-learn 1.9.1. Programs that print few digits are compared to those.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import judged
from judged.scoring.measures import parse

PAGE = Path(__file__).resolve().parents[3] / "docs" / "same-name.md"

Grades = list[Any]
ALL_FOUND: Grades = []


def same(value: float, grades: Grades, *names: str, missing: Grades = ALL_FOUND, digits: int | None = None) -> None:
    """Hold the name to the number; the page must show the name."""
    for name in names:
        score = parse(name).of_list(grades, missing=missing)
        assert (round(score, digits) if digits else score) == pytest.approx(value, rel=1e-15), name
        assert name in PAGE.read_text(), name


def test_rbp_without_a_persistence() -> None:
    same(0.32799999999999996, [1, 0, 1], "RBP(p=0.8)")  # trectools; ranx rbp.80; ir_measures RBP(rel=1) in 15 digits
    same(0.3280, [1, 0, 1], "RBP(p=0.8)", digits=4)  # cwl-eval RBP@0.8
    same(0.18099999999999997, [1, 0, 1], "RBP(p=0.9)")  # ranx rbp.90; trectools p=.9; cwl-eval's class default
    same(0.15 * (1 + 0.85**2), [1, 0, 1], "RBP(p=0.85)")  # LensKit's default, by hand


def test_rbp_with_grades() -> None:
    same(0.32799999999999996, [3, 0, 1], "RBP(p=0.8)")  # trectools: binary
    same(0.7279999999999999 / 3, [3, 0, 1], "RBP(p=0.8,gain=graded,max=3)")  # ranx rbp.80 adds up the grades
    same(0.2 * (1 + 0.8**2 / 3), [3, 0, 1], "RBP(p=0.8,gain=graded,max=topic)")  # by hand: gains 3/3, 0, 1/3
    same(0.2 * (3 / 4 + 0.8**2 / 4), [3, 0, 1], "RBP(p=0.8,gain=graded,max=4)")  # by hand


def test_err() -> None:
    same(0.20443, [2, 0, 1], "ERR(max=4)@10", digits=5)  # gdeval, through ir_measures ERR@10
    same(3 / 8 + (5 / 8) * (1 / 8) / 3, [2, 0, 1], "ERR(max=3)@10")  # by hand, as session_eval.pl of 2011


def test_the_gain_of_ndcg() -> None:
    same(0.9602471757862604, [3, 2, 0, 1, 2], "nDCG@5")  # pytrec_eval ndcg_cut_5, ranx ndcg@5, trectools
    same(0.9686383655679718, [3, 2, 0, 1, 2], "nDCG(gain=exp2)@5")  # ranx ndcg_burges@5, trectools trec_eval=False
    same(0.96864, [3, 2, 0, 1, 2], "nDCG(gain=exp2)@5", digits=5)  # gdeval, through ir_measures nDCG(dcg='exp-log2')


def test_the_ideal_of_ndcg() -> None:
    same(0.38685280723454163, [0, 4], "nDCG", missing=[4])  # pytrec_eval
    same(0.6309297535714573, [0, 4], "nDCG")  # scikit-learn ndcg_score, which is given the returned documents only
    assert round(parse("SDCG(max=1)@10").of_list([1, 0, 1]), 4) == 0.3301  # cwl-eval NDCG-k@10
    most = sum(1 / math.log2(rank + 1) for rank in range(1, 11))
    same((1 / math.log2(3)) / most, [0, 4], "SDCG(max=4)@10", missing=[4])  # by hand: gain 4/4 at rank 2


def test_ndcg_and_the_relevance_level() -> None:
    same(0.6012610260559063, [1, 2], "nDCG", missing=[2])  # pytrec_eval with relevance_level=2, and ranx ndcg
    same(0.38685280723454163, [1, 2], "nDCG(gain={1:0})", missing=[2])  # ranx ndcg-l2


def test_ndcg_and_ndcg_cut() -> None:
    same(0.7039180890341347, [1, 0, 1], "nDCG", missing=[1])  # pytrec_eval ndcg
    same(0.6131471927654584, [1, 0, 1], "nDCG@2", missing=[1])  # pytrec_eval ndcg_cut_2


def test_recall_at_k() -> None:
    same(0.2, [1, 0, 1], "R@2", missing=[1, 1, 1])  # pytrec_eval recall_2, ir_measures R@2
    same(0.5, [1, 0, 1], "RelP@2", missing=[1, 1, 1])  # pytrec_eval relative_P_2; R_cap@2 by hand: 1 / min(2, 5)
    same(1.0, [1, 0, 1], "Success@2", missing=[1, 1, 1])  # pytrec_eval success_2


def test_judged_at_k() -> None:
    same(0.6666666666666666, [1, None, 0], "Judged@10")  # ir_measures
    same(0.1, [1, None, 0], "Unjudged@10")  # by hand, as trec_eval 10's unj_10: one of ten places
    judged_list = judged.judge({"1": {"a": 1}, "2": {"b": 0}}, {"1": {"a": 3.0, "b": 2.0, "c": 1.0}})
    assert parse("Hole@10")(judged_list).tolist() == [0.1, 0.0]  # by hand: b is judged, for another topic; c is not


def test_precision_of_short_lists() -> None:
    same(0.2, [1, 0, 1], "P@10")  # pytrec_eval P_10, ir_measures P@10
    same(0.6666666666666666, [1, 0, 1], "SetP")  # pytrec_eval set_P, ir_measures SetP; torchmetrics adaptive_k by hand


def test_f() -> None:
    same(
        5 * (1 / 4 * 1 / 2) / (4 * 1 / 4 + 1 / 2), [1, 0, 0, 0], "SetF(beta=2)", missing=[1]
    )  # van Rijsbergen, by hand
    # pytrec_eval set_F.2.0 and ir_measures SetF(beta=2.0)
    same(0.375, [1, 0, 0, 0], "SetF(beta=1.4142135623730951)", missing=[1], digits=15)
    same(0.4, [1, 0, 0, 0], "F@3", missing=[1])  # by hand, as ranx f1@3: P 1/3, R 1/2


def test_mrr() -> None:
    same(0.09090909090909091, [0] * 10 + [1], "RR")  # pytrec_eval recip_rank, ir_measures RR, ranx mrr
    same(0.0, [0] * 10 + [1], "RR@10")  # ir_measures RR@10 (the MS MARCO script), ranx mrr@10


def test_bpref() -> None:
    same(0.25, [0, 1, 0, 1], "Bpref", missing=[0])  # pytrec_eval, ranx
    same(1.0, [1, None, 1], "Bpref")  # pytrec_eval; ranx gives nan


def test_topics_without_relevant_documents() -> None:
    names = ["AP", "nDCG", "nDCG(undefined=skip)", "nDCG(undefined=1)"]
    scores = judged.evaluate({"1": {"a": 1}, "2": {"a": 0}}, {"1": {"a": 1.0}, "2": {"a": 1.0}}, names)
    # pytrec_eval's topics 1 and 0; ir_measures AP, ranx map and ndcg, trectools get_map and get_ndcg: 0.5
    assert [scores.value(name) for name in names] == [0.5, 0.5, 1.0, 1.0]


@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")
def test_missing_topics() -> None:
    qrels, run = {"1": {"a": 1}, "2": {"a": 1}}, {"1": {"a": 1.0}}
    assert judged.evaluate(qrels, run, "AP").value("AP") == 0.5  # ir_measures, ranx
    assert judged.evaluate(qrels, run, "AP", topics="both").value("AP") == 1.0  # pytrec_eval, trectools


def test_average_precision_where_documents_are_missing() -> None:
    same(0.41666666666666663, [1, 0, 1], "AP", missing=[1, 1])  # pytrec_eval map, ir_measures, ranx
    same(1 / 2, [1, 0, 1], "AP(norm=cutoff)@2", missing=[1, 1])  # by hand: 1/1 over min(2, 4)
    same((1 + 2 / 3) / 2, [1, 0, 1], "AP(norm=returned)", missing=[1, 1])  # by hand, as torchmetrics


def test_bpm_where_the_gains_add_up_to_its_goal() -> None:
    same(2 / 3, [2, 3, 1, 0, 0], "BPM(max=3,T=2)@10")  # by hand; cwl-eval reads ten documents: 0.2


def test_accuracy() -> None:
    grades = [1, 0, None, 1, 0]
    same(0.6666666666666667, grades, "PairAccuracy", missing=[1])  # ir_measures Accuracy
    same((2 + 994) / 1000, grades, "Accuracy(n=1000)", missing=[1])  # by hand: TP 2, FP 3, FN 1
    same(1.0, grades, "Success@3", missing=[1])  # by hand, as BEIR's accuracy@3


def test_compatibility() -> None:
    tail = sum(0.95 ** (depth - 1) / depth for depth in range(1, 1001))
    same(tail / (2 * tail - 1), [1], "Compat", missing=[1], digits=None)  # the authors' formula, by hand
    assert round((1 + 0.95 / 2) / (1 + 0.95), 4) == 0.7564  # ir_measures, score 9; with score -1 it prints 0.2436
