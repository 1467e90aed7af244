"""The graded classics of the literature, written down as one would by hand: the whole text, number by number."""

from __future__ import annotations

from inspect import cleandoc
from math import log2

import pytest

from judged.scoring.explanation import explain_list
from judged.scoring.judging import judge_list
from scoring.explanation.formulas import page


def test_the_list_that_is_not_perfect() -> None:
    """The ideal is 3, 2, 2, 1: IDCG is 10.823 and nDCG 0.969, where some teaching material says 1.00."""
    explanation = explain_list(judge_list([3, 2, 0, 1, 2]), "nDCG(gain=exp2)@5")
    assert explanation.score == pytest.approx(
        (7 + 3 / log2(3) + 1 / log2(5) + 3 / log2(6)) / (7 + 3 / log2(3) + 3 / 2 + 1 / log2(5)), rel=1e-12
    )
    assert f"{explanation.title}\n\n{page(explanation)}" == cleandoc(
        """
        nDCG(gain=exp2)@5

        ranking
        rank  document  grade  gain  discount  gain / discount   so far
        1     d1            3     7         1                7        7
        2     d2            2     3    1.5850           1.8928   8.8928
        3     d3            0     0         2                0   8.8928
        4     d4            1     1    2.3219           0.4307   9.3235
        5     d5            2     3    2.5850           1.1606  10.4840
        gain = 2^grade - 1
        discount = log2(rank + 1)
        DCG(gain=exp2)@5 = sum of gain / discount = 10.4840

        ideal ranking
        rank  document  grade  gain  discount  gain / discount   so far
        1     d1            3     7         1                7        7
        2     d2            2     3    1.5850           1.8928   8.8928
        3     d5            2     3         2           1.5000  10.3928
        4     d4            1     1    2.3219           0.4307  10.8235
        5     d3            0     0    2.5850                0  10.8235
        gain = 2^grade - 1
        discount = log2(rank + 1)
        IdealDCG(gain=exp2)@5 = sum of gain / discount = 10.8235
        nDCG(gain=exp2)@5 = DCG / IdealDCG = 10.4840 / 10.8235 = 0.9686
        """
    )


def test_one_zero_at_the_wrong_place() -> None:
    """DCG 8.931, IDCG 9.393, nDCG 0.951."""
    explanation = explain_list(judge_list([3, 0, 2, 1, 0]), "nDCG(gain=exp2)@5")
    assert explanation.score == pytest.approx((7 + 3 / 2 + 1 / log2(5)) / (7 + 3 / log2(3) + 1 / 2), rel=1e-12)
    assert f"{explanation.title}\n\n{page(explanation)}" == cleandoc(
        """
        nDCG(gain=exp2)@5

        ranking
        rank  document  grade  gain  discount  gain / discount  so far
        1     d1            3     7         1                7       7
        2     d2            0     0    1.5850                0       7
        3     d3            2     3         2           1.5000  8.5000
        4     d4            1     1    2.3219           0.4307  8.9307
        5     d5            0     0    2.5850                0  8.9307
        gain = 2^grade - 1
        discount = log2(rank + 1)
        DCG(gain=exp2)@5 = sum of gain / discount = 8.9307

        ideal ranking
        rank  document  grade  gain  discount  gain / discount  so far
        1     d1            3     7         1                7       7
        2     d3            2     3    1.5850           1.8928  8.8928
        3     d4            1     1         2           0.5000  9.3928
        4     d2            0     0    2.3219                0  9.3928
        5     d5            0     0    2.5850                0  9.3928
        gain = 2^grade - 1
        discount = log2(rank + 1)
        IdealDCG(gain=exp2)@5 = sum of gain / discount = 9.3928
        nDCG(gain=exp2)@5 = DCG / IdealDCG = 8.9307 / 9.3928 = 0.9508
        """
    )


def test_discount_of_the_first_paper() -> None:
    """Järvelin and Kekäläinen 2002, where ranks 1 and 2 are not discounted: DCG 9.61, nDCG 0.88."""
    explanation = explain_list(judge_list([3, 2, 3, 0, 0, 1, 2, 2, 3, 0]), "nDCG(discount=original)@10")
    assert explanation.score == pytest.approx(
        (5 + 3 / log2(3) + 1 / log2(6) + 2 / log2(7) + 2 / 3 + 3 / log2(9))
        / (6 + 3 / log2(3) + 1 + 2 / log2(5) + 2 / log2(6) + 1 / log2(7)),
        rel=1e-12,
    )
    assert f"{explanation.title}\n\n{page(explanation)}" == cleandoc(
        """
        nDCG(discount=original)@10

        ranking
        rank  document  grade  gain  discount  gain / discount  so far
        1     d1            3     3         1                3       3
        2     d2            2     2         1                2       5
        3     d3            3     3    1.5850           1.8928  6.8928
        4     d4            0     0         2                0  6.8928
        5     d5            0     0    2.3219                0  6.8928
        6     d6            1     1    2.5850           0.3869  7.2796
        7     d7            2     2    2.8074           0.7124  7.9921
        8     d8            2     2         3           0.6667  8.6587
        9     d9            3     3    3.1699           0.9464  9.6051
        10    d10           0     0    3.3219                0  9.6051
        gain = grade
        discount = max(1, log2(rank))
        DCG(discount=original)@10 = sum of gain / discount = 9.6051

        ideal ranking
        rank  document  grade  gain  discount  gain / discount   so far
        1     d1            3     3         1                3        3
        2     d3            3     3         1                3        6
        3     d9            3     3    1.5850           1.8928   7.8928
        4     d2            2     2         2                1   8.8928
        5     d7            2     2    2.3219           0.8614   9.7541
        6     d8            2     2    2.5850           0.7737  10.5278
        7     d6            1     1    2.8074           0.3562  10.8841
        8     d4            0     0         3                0  10.8841
        9     d5            0     0    3.1699                0  10.8841
        10    d10           0     0    3.3219                0  10.8841
        gain = grade
        discount = max(1, log2(rank))
        IdealDCG(discount=original)@10 = sum of gain / discount = 10.8841
        nDCG(discount=original)@10 = DCG / IdealDCG = 9.6051 / 10.8841 = 0.8825
        """
    )


def test_linear_gain_and_an_ideal_cut_at_two() -> None:
    """Linear gain, and an ideal that is cut at the same rank: (7 / log2 3) / (7 + 6 / log2 3) is 0.409."""
    explanation = explain_list(judge_list([0, 7, 2, 4, 6, 1, 4, 3]), "nDCG@2")
    assert explanation.score == pytest.approx((7 / log2(3)) / (7 + 6 / log2(3)), rel=1e-12)
    assert f"{explanation.title}\n\n{page(explanation)}" == cleandoc(
        """
        nDCG@2

        ranking
        rank  document  grade  gain  discount  gain / discount  so far
        1     d1            0     0         1                0       0
        2     d2            7     7    1.5850           4.4165  4.4165
        gain = grade
        discount = log2(rank + 1)
        DCG@2 = sum of gain / discount = 4.4165

        ideal ranking
        rank  document  grade  gain  discount  gain / discount   so far
        1     d2            7     7         1                7        7
        2     d5            6     6    1.5850           3.7856  10.7856
        gain = grade
        discount = log2(rank + 1)
        IdealDCG@2 = sum of gain / discount = 10.7856
        nDCG@2 = DCG / IdealDCG = 4.4165 / 10.7856 = 0.4095
        """
    )


def test_one_relevant_document_missing() -> None:
    """The ideal holds what was not returned: (4 / log2 3) / (4 + 4 / log2 3) is 0.387."""
    explanation = explain_list(judge_list([0, 4], missing=[4]), "nDCG")
    assert explanation.score == pytest.approx((4 / log2(3)) / (4 + 4 / log2(3)), rel=1e-12)
    assert f"{explanation.title}\n\n{page(explanation)}" == cleandoc(
        """
        nDCG

        ranking
        rank  document  grade  gain  discount  gain / discount  so far
        1     d1            0     0         1                0       0
        2     d2            4     4    1.5850           2.5237  2.5237
        gain = grade
        discount = log2(rank + 1)
        DCG = sum of gain / discount = 2.5237

        ideal ranking
        rank  document  grade  gain  discount  gain / discount  so far
        1     d2            4     4         1                4       4
        2     m1            4     4    1.5850           2.5237  6.5237
        3     d1            0     0         2                0  6.5237
        gain = grade
        discount = log2(rank + 1)
        IdealDCG = sum of gain / discount = 6.5237
        nDCG = DCG / IdealDCG = 2.5237 / 6.5237 = 0.3869
        """
    )


def test_expected_reciprocal_rank() -> None:
    """A user whom d1 satisfies with 1/8 and d4 with 7/8: 1/8 + 1/4 (7/8) (7/8) + 1/5 (3/8) (7/8) (1/8)."""
    explanation = explain_list(judge_list([1, 0, None, 3, 2], missing=[3]), "ERR(max=3)")
    assert explanation.score == pytest.approx(
        1 / 8 + (7 / 8) * (7 / 8) / 4 + (3 / 8) * (7 / 8) * (1 / 8) / 5, rel=1e-12
    )
    assert f"{explanation.title}\n\n{page(explanation)}" == cleandoc(
        """
        ERR(max=3)

        ranking
        rank  document  grade  gain       R  reached  R * reached / rank  so far
        1     d1            1     1  0.1250        1              0.1250  0.1250
        2     d2            0     0       0   0.8750                   0  0.1250
        3     d3            -
        4     d4            3     7  0.8750   0.8750              0.1914  0.3164
        5     d5            2     3  0.3750   0.1094              0.0082  0.3246
        gain = 2^grade - 1
        R = gain / 2^3
        reached = product of (1 - R) over the ranks above
        ERR(max=3) = sum of R * reached / rank = 0.3246
        """
    )


def test_rank_biased_precision() -> None:
    """(1 - 0.8) (1 + 0.8^3 + 0.8^4)."""
    explanation = explain_list(judge_list([1, 0, None, 1, 1], missing=[1]), "RBP(p=0.8)")
    assert explanation.score == pytest.approx((1 - 0.8) * (1 + 0.8**3 + 0.8**4), rel=1e-12)
    assert f"{explanation.title}\n\n{page(explanation)}" == cleandoc(
        """
        RBP(p=0.8)

        ranking
        rank  document  grade  weight  so far
        1     d1            1       1       1
        2     d2            0
        3     d3            -
        4     d4            1  0.5120  1.5120
        5     d5            1  0.4096  1.9216
        weight = 0.8^(rank - 1)
        weights = sum of weight = 1.9216
        RBP(p=0.8) = (1 - p) * weights = (1 - 0.8000) * 1.9216 = 0.3843
        """
    )


def test_alpha_ndcg_of_two_subtopics() -> None:
    """Two subtopics: (1 + 0.5 / log2 3 + 1 / log2 5) / (2 + 0.5 / log2 3 + 0.5 / log2 4 + 0.25 / log2 5)."""
    explanation = explain_list(judge_list([(1, 0), (1, 0), None, (0, 1)], missing=[(1, 1)]), "AlphanDCG@4")
    assert explanation.score == pytest.approx(
        (1 + 0.5 / log2(3) + 1 / log2(5)) / (2 + 0.5 / log2(3) + 0.5 / 2 + 0.25 / log2(5)), rel=1e-12
    )
    assert f"{explanation.title}\n\n{page(explanation)}" == cleandoc(
        """
        AlphanDCG@4

        ranking
        rank  document  grade  subtopic 1  subtopic 2       G  G / log2(rank + 1)  so far
        1     d1            1           1           0       1                   1       1
        2     d2            1      0.5000           0  0.5000              0.3155  1.3155
        3     d3            -
        4     d4            1           0           1       1              0.4307  1.7461
        G = sum over its subtopics of 0.5^(documents above that cover the subtopic)
        gains = sum of G / log2(rank + 1) = 1.7461
        possible = gains down to rank 4 if all documents cover every subtopic = 2.9886
        AlphaDCG@4 = gains / possible = 1.7461 / 2.9886 = 0.5843

        greedy ideal ranking
        rank  document  grade  subtopic 1  subtopic 2       G  G / log2(rank + 1)  so far
        1     m1            1           1           1       2                   2       2
        2     d4            1           0      0.5000  0.5000              0.3155  2.3155
        3     d2            1      0.5000           0  0.5000              0.2500  2.5655
        4     d1            1      0.2500           0  0.2500              0.1077  2.6731
        G = sum over its subtopics of 0.5^(documents above that cover the subtopic)
        gains = sum of G / log2(rank + 1) = 2.6731
        possible = gains down to rank 4 if all documents cover every subtopic = 2.9886
        AlphaDCG@4 = gains / possible = 2.6731 / 2.9886 = 0.8944
        AlphanDCG@4 = AlphaDCG / ideal AlphaDCG = 0.5843 / 0.8944 = 0.6532
        """
    )


def test_q_measure() -> None:
    """The example of NTCIREVAL, which prints 0.0967: (1 + 3) / (2 + 6) and (2 + 5) / (4 + 11), over 10."""
    explanation = explain_list(judge_list([0, 3, None, 2], missing=[3, 3, 2, 2, 1, 1, 1, 1]), "Q")
    assert explanation.score == pytest.approx((4 / 8 + 7 / 15) / 10, rel=1e-12)
    assert f"{explanation.title}\n\n{page(explanation)}" == cleandoc(
        """
        Q

        ideal ranking
        rank  document  grade  gain  CG
        1     d2            3     3   3
        2     m1            3     3   6
        3     m2            3     3   9
        4     d4            2     2  11
        5     m3            2     2  13
        6     m4            2     2  15
        7     m5            1     1  16
        8     m6            1     1  17
        9     m7            1     1  18
        10    m8            1     1  19
        gain = grade
        CG = sum of gain so far

        ranking
        rank  document  grade  gain  CG  relevant  ideal CG   ratio  so far
        1     d1            0     0   0
        2     d2            3     3   3         1         6  0.5000  0.5000
        3     d3            -
        4     d4            2     2   5         2        11  0.4667  0.9667
        gain = grade
        CG = sum of gain so far
        ratio = (relevant + CG) / (rank + ideal CG)
        ratios = sum of ratio = 0.9667
        R = judged documents with a positive gain = 10
        Q = ratios / R = 0.9667 / 10 = 0.0967
        """
    )
