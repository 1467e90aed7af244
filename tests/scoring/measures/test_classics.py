"""The worked examples of textbooks, lectures and papers: the right ones, and the right numbers for the wrong ones.

Each number is the arithmetic in its comment, to the decimals that the text prints.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from judged import AP, DCG, RR, F, P, R, SetF, SetP, SetR, evaluate, nDCG
from judged.scoring.measures import CG
from judged.scoring.measures.precision import f_measure

LOG3, LOG5, LOG6 = math.log2(3), math.log2(5), math.log2(6)


def at_ranks(ranks: list[int], length: int = 0) -> list[float | None]:
    """Return a list of grades that is relevant at these ranks."""
    return [float(rank in ranks) for rank in range(1, max([*ranks, length]) + 1)]


# --- printed wrongly in common material ---------------------------------------------------------------


def test_ndcg_is_not_one_where_the_order_is_not_ideal() -> None:
    """[3,2,0,1,2], exponential: DCG = 7 + 3/log2(3) + 0 + 1/log2(5) + 3/log2(6), printed as nDCG 1.00."""
    grades = [3, 2, 0, 1, 2]
    dcg = 7 + 3 / LOG3 + 1 / LOG5 + 3 / LOG6  # 10.484
    ideal = 7 + 3 / LOG3 + 3 / 2 + 1 / LOG5  # 2,3,1 ordered: 3,2,2,1,0
    assert DCG(gain="exp2", cutoff=5).of_list(grades) == pytest.approx(dcg, rel=1e-15)
    assert round(DCG(gain="exp2", cutoff=5).of_list([3, 2, 2, 1, 0]), 3) == 10.823 == round(ideal, 3)
    assert round(nDCG(gain="exp2", cutoff=5).of_list(grades), 3) == 0.969 == round(dcg / ideal, 3)


def test_average_precision_divides_by_all_relevant_documents() -> None:
    """[1,0,1,0,1] with four relevant: (1/1 + 2/3 + 3/5) / 4 = .567; dividing by the 3 found gives .756."""
    assert round(AP().of_list([1, 0, 1, 0, 1], missing=[1]), 3) == 0.567 == round((1 + 2 / 3 + 3 / 5) / 4, 3)
    assert round(AP(norm="returned").of_list([1, 0, 1, 0, 1], missing=[1]), 3) == 0.756
    assert AP(norm="cutoff", cutoff=2).of_list([1, 0, 1, 0, 1], missing=[1]) == (1 / 1) / 2  # min(R, k) = 2
    assert AP(cutoff=2).of_list([1, 0, 1, 0, 1], missing=[1]) == (1 / 1) / 4


def test_recall_divides_by_the_relevant_and_ndcg_by_the_ideal() -> None:
    """Two of five relevant in the first four: 2/5, not 5/2; and 0.5 of the ideal, not 2."""
    assert R(cutoff=4).of_list([1, 0, 1, 0], missing=[1, 1, 1]) == 2 / 5
    assert nDCG(cutoff=1).of_list([1, 2]) == 1 / 2


def test_the_original_discount_begins_at_the_third_rank() -> None:
    """Gains 3, 2: undiscounted 3 + 2 / max(1, log2 2) = 5; with log2(rank + 1) 3 + 2/log2(3) = 4.262."""
    assert DCG(discount="original").of_list([3, 2]) == 5.0
    assert round(DCG().of_list([3, 2]), 3) == 4.262 == round(3 + 2 / LOG3, 3)
    assert DCG(discount="original", base=10).of_list([1] * 10) == 10.0  # b = 10: nothing before rank 10 is discounted
    assert DCG(discount="original", base=10).of_list([0] * 99 + [1]) == pytest.approx(1 / 2, rel=1e-15)
    assert DCG(discount="ln").of_list([0, 1]) == 1 / math.log(3)


# --- correct classics -----------------------------------------------------------------------------------


def test_exponential_gain() -> None:
    """[3,0,2,1,0]: 7/1 + 3/2 + 1/log2(5) = 8.931; ideal 7 + 3/log2(3) + 1/2 = 9.393; ratio .951."""
    grades = [3, 0, 2, 1, 0]
    assert round(DCG(gain="exp2", cutoff=5).of_list(grades), 3) == 8.931 == round(7 + 3 / 2 + 1 / LOG5, 3)
    assert round(DCG(gain="exp2", cutoff=5).of_list([3, 2, 1, 0, 0]), 3) == 9.393 == round(7 + 3 / LOG3 + 1 / 2, 3)
    assert round(nDCG(gain="exp2", cutoff=5).of_list(grades), 3) == 0.951


@pytest.mark.parametrize(
    ("ranks", "relevant", "decimals", "value", "exact"),
    [
        ([1, 2, 5, 9], 4, 2, 0.76, (1 / 1 + 2 / 2 + 3 / 5 + 4 / 9) / 4),
        # printed as 0.207, which is (.33 + .29) / 3: the terms were rounded first; the value is 0.20635
        ([3, 7], 3, 3, 0.206, (1 / 3 + 2 / 7 + 0) / 3),
        ([2, 5, 8], 7, 3, 0.182, (1 / 2 + 2 / 5 + 3 / 8) / 7),
    ],
)
def test_average_precision_of_three_topics(
    ranks: list[int], relevant: int, decimals: int, value: float, exact: float
) -> None:
    score = AP().of_list(at_ranks(ranks), missing=[1] * (relevant - len(ranks)))
    assert round(score, decimals) == value
    assert score == pytest.approx(exact, rel=1e-15)


def test_mean_average_precision() -> None:
    """(0.7611 + 0.2063 + 0.1821) / 3 = 0.383."""
    topics = {"1": ([1, 2, 5, 9], 4), "2": ([3, 7], 3), "3": ([2, 5, 8], 7)}
    qrels = {q: {f"d{number}": 1 for number in ranks} | {f"m{number}": 1 for number in range(n - len(ranks))}
             for q, (ranks, n) in topics.items()}  # fmt: skip
    run = {q: {f"d{number}": -float(number) for number in range(1, 11)} for q in topics}
    assert round(evaluate(qrels, run, "MAP").value("AP"), 3) == 0.383


CAT_IN_A_BOX = {"first": [2, 4, 5, 7], "second": [1, 4, 5, 7], "third": [5, 8]}


def test_cat_in_a_box() -> None:
    """Eight results; four, four and two relevant documents, all returned."""
    first = at_ranks(CAT_IN_A_BOX["first"], 8)
    assert [R(cutoff=k).of_list(first) for k in range(1, 9)] == [0, 0.25, 0.25, 0.5, 0.75, 0.75, 1, 1]
    assert [P(cutoff=k).of_list(first) for k in range(1, 9)] == [0, 1 / 2, 1 / 3, 2 / 4, 3 / 5, 3 / 6, 4 / 7, 4 / 8]
    scores = [AP(cutoff=8).of_list(at_ranks(ranks, 8)) for ranks in CAT_IN_A_BOX.values()]
    assert [round(score, 4) for score in scores] == [0.5429, 0.6679, 0.225]
    assert scores == pytest.approx(
        [(1 / 2 + 2 / 4 + 3 / 5 + 4 / 7) / 4, (1 + 2 / 4 + 3 / 5 + 4 / 7) / 4, (1 / 5 + 2 / 8) / 2], rel=1e-15
    )
    qrels = {q: {f"d{rank}": 1 for rank in ranks} for q, ranks in CAT_IN_A_BOX.items()}
    run = {q: {f"d{rank}": -float(rank) for rank in range(1, 9)} for q in CAT_IN_A_BOX}
    means = evaluate(qrels, run, ["MAP@8", "MRR"]).aggregate()["run"]
    assert round(means["AP@8"], 4) == 0.4786
    assert round(means["RR"], 4) == 0.5667 == round((1 / 2 + 1 / 1 + 1 / 5) / 3, 4)


def test_the_first_paper_on_cumulated_gain() -> None:
    """Gains 3,2,3,0,0,1,2,2,3,0, base 2: 3 + 2 + 3/log2(3) + 1/log2(6) + 2/log2(7) + 2/3 + 3/log2(9) = 9.61."""
    gains = [3, 2, 3, 0, 0, 1, 2, 2, 3, 0]
    exact = 3 + 2 + 3 / LOG3 + 1 / LOG6 + 2 / math.log2(7) + 2 / 3 + 3 / math.log2(9)
    assert round(DCG(discount="original", cutoff=10).of_list(gains), 2) == 9.61 == round(exact, 2)
    assert [CG(cutoff=k).of_list(gains) for k in range(1, 11)] == [3, 5, 8, 8, 8, 9, 11, 13, 16, 16]
    cumulated = [DCG(discount="original", cutoff=k).of_list(gains) for k in range(1, 11)]
    assert [round(value, 2) for value in cumulated] == [3.0, 5.0, 6.89, 6.89, 6.89, 7.28, 7.99, 8.66, 9.61, 9.61]
    # the ideal 3,3,3,2,2,2,1: one relevant document (grade 3 short of the gains above) was not returned
    ideal = [3, 3, 3, 2, 2, 2, 1]
    best = DCG(discount="original", cutoff=10).of_list(ideal)
    assert best == pytest.approx(3 + 3 + 3 / LOG3 + 2 / 2 + 2 / LOG5 + 2 / LOG6 + 1 / math.log2(7), rel=1e-15)
    assert round(exact / best, 2) == 0.88


def test_linear_gain_with_grades_up_to_seven() -> None:
    """[0,7,2,...]: 7/log2(3) over 7 + 6/log2(3) = .409."""
    assert round(nDCG(cutoff=2).of_list([0, 7, 2, 4, 6, 1, 4, 3]), 3) == 0.409
    assert nDCG(cutoff=2).of_list([0, 7, 2, 4, 6, 1, 4, 3]) == pytest.approx((7 / LOG3) / (7 + 6 / LOG3), rel=1e-15)


def test_a_document_that_was_not_retrieved_counts_in_the_ideal() -> None:
    """0, 4 returned and another 4 missed: 4/log2(3) over 4 + 4/log2(3) = .387; over the returned alone .631."""
    assert round(nDCG().of_list([0, 4], missing=[4]), 3) == 0.387
    assert nDCG().of_list([0, 4], missing=[4]) == pytest.approx((4 / LOG3) / (4 + 4 / LOG3), rel=1e-15)
    assert round(nDCG().of_list([0, 4]), 3) == 0.631


def test_f_with_beta_zero_is_precision() -> None:
    grades = [1, 0, 1, 1]  # P 3/4, R 3/4 of 4
    assert SetF(beta=0).of_list(grades, missing=[1]) == SetP().of_list(grades, missing=[1]) == 0.75
    assert F(beta=0, cutoff=3).of_list(grades, missing=[1]) == pytest.approx(2 / 3, rel=1e-15)


def test_f_is_near_the_smaller_of_the_two() -> None:
    """2 * .9 * .1 / (.9 + .1) = .18: nine of ten returned are relevant, of ninety."""
    assert f_measure(np.array([0.9]), np.array([0.1]), 1.0)[0] == pytest.approx(0.18, rel=1e-15)
    nine = [1] * 9 + [0]
    assert SetF().of_list(nine, missing=[1] * 81) == pytest.approx(0.18, rel=1e-15)


def test_one_of_seven_systems() -> None:
    """Ten returned, five of eight relevant: P .5, R .625; F5 = 26*.5*.625/(25*.5+.625) = .619, F0.5 = .521."""
    ten, missing = [1] * 5 + [0] * 5, [1, 1, 1]
    assert SetP().of_list(ten, missing=missing) == 0.5
    assert SetR().of_list(ten, missing=missing) == 0.625
    assert round(SetF(beta=5).of_list(ten, missing=missing), 3) == 0.619 == round(26 * 0.3125 / 13.125, 3)
    assert round(SetF(beta=0.5).of_list(ten, missing=missing), 3) == 0.521 == round(1.25 * 0.3125 / 0.75, 3)


def test_reciprocal_rank() -> None:
    assert [RR().of_list(at_ranks([rank])) for rank in (1, 2, 3, 10)] == [1, 1 / 2, 1 / 3, 1 / 10]
    assert RR(cutoff=9).of_list(at_ranks([10])) == 0.0
