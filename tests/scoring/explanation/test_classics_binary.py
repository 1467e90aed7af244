"""The worked examples of textbooks, as the explanation of a score writes them: the whole page, as a student reads it.

Every number on a page is the arithmetic of its formula, rounded to four decimals.
"""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged import judge
from judged.scoring.explanation import explain_list
from judged.scoring.judging import judge_list
from scoring.explanation.formulas import page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.scoring.explanation import Explanation


def at_ranks(*ranks: int, length: int = 0) -> list[float | None]:
    """Make a list that is relevant at these ranks, and not relevant at all others."""
    return [float(rank in ranks) for rank in range(1, max([*ranks, length]) + 1)]


def explained(measure: str, grades: Sequence[float | None], missing: Sequence[float] = ()) -> Explanation:
    return explain_list(judge_list(grades, missing=missing), measure)


def text(expected: str) -> str:
    return dedent(expected).strip("\n")


def test_average_precision_of_relevant_at_1_2_5_9_of_4() -> None:
    explanation = explained("AP", at_ranks(1, 2, 5, 9))
    assert page(explanation) == text("""
        ranking
        rank  document  grade  relevant so far  precision  so far
        1     d1            1                1          1       1
        2     d2            1                2          1       2
        3     d3            0
        4     d4            0
        5     d5            1                3     0.6000  2.6000
        6     d6            0
        7     d7            0
        8     d8            0
        9     d9            1                4     0.4444  3.0444
        precision = relevant so far / rank
        sum of precision = 3.0444
        R = relevant documents in the qrels = 4
        AP = sum of precision / R = 3.0444 / 4 = 0.7611
    """)
    assert explanation.score == pytest.approx((1 / 1 + 2 / 2 + 3 / 5 + 4 / 9) / 4, rel=1e-15)


def test_average_precision_of_relevant_at_3_7_of_3() -> None:
    """Printed as 0.207 in places, because the two precisions were rounded first."""
    explanation = explained("AP", at_ranks(3, 7), missing=[1])
    assert page(explanation) == text("""
        ranking
        rank  document  grade  relevant so far  precision  so far
        1     d1            0
        2     d2            0
        3     d3            1                1     0.3333  0.3333
        4     d4            0
        5     d5            0
        6     d6            0
        7     d7            1                2     0.2857  0.6190
        precision = relevant so far / rank
        sum of precision = 0.6190
        R = relevant documents in the qrels = 3
        AP = sum of precision / R = 0.6190 / 3 = 0.2063
    """)
    assert explanation.score == pytest.approx((1 / 3 + 2 / 7) / 3, rel=1e-15)


def test_average_precision_of_relevant_at_2_5_8_of_7() -> None:
    explanation = explained("AP", at_ranks(2, 5, 8), missing=[1] * 4)
    assert page(explanation) == text("""
        ranking
        rank  document  grade  relevant so far  precision  so far
        1     d1            0
        2     d2            1                1     0.5000  0.5000
        3     d3            0
        4     d4            0
        5     d5            1                2     0.4000  0.9000
        6     d6            0
        7     d7            0
        8     d8            1                3     0.3750  1.2750
        precision = relevant so far / rank
        sum of precision = 1.2750
        R = relevant documents in the qrels = 7
        AP = sum of precision / R = 1.2750 / 7 = 0.1821
    """)
    assert explanation.score == pytest.approx((1 / 2 + 2 / 5 + 3 / 8) / 7, rel=1e-15)


def test_average_precision_divides_by_all_relevant_documents() -> None:
    """[1,0,1,0,1] with four relevant is 0.567; dividing by the three that were found gives 0.756."""
    grades, missing = [1.0, 0.0, 1.0, 0.0, 1.0], [1.0]
    table = """
        ranking
        rank  document  grade  relevant so far  precision  so far
        1     d1            1                1          1       1
        2     d2            0
        3     d3            1                2     0.6667  1.6667
        4     d4            0
        5     d5            1                3     0.6000  2.2667
        precision = relevant so far / rank
        sum of precision = 2.2667
    """
    by_qrels = (
        "        R = relevant documents in the qrels = 4\n        AP = sum of precision / R = 2.2667 / 4 = 0.5667"
    )
    by_returned = "        AP(norm=returned) = sum of precision / relevant returned = 2.2667 / 3 = 0.7556"
    assert page(explained("AP", grades, missing)) == text(table.rstrip() + "\n" + by_qrels)
    assert page(explained("AP(norm=returned)", grades, missing)) == text(table.rstrip() + "\n" + by_returned)


def test_f_of_precision_nine_tenths_and_recall_one_tenth() -> None:
    """Nine of ten returned are relevant, of 90: the harmonic mean stays near the smaller of the two."""
    explanation = explained("SetF", [1.0] * 9 + [0.0], missing=[1] * 81)
    assert page(explanation) == text("""
        ranking
        rank  document  grade  relevant
        1     d1            1         1
        2     d2            1         1
        3     d3            1         1
        4     d4            1         1
        5     d5            1         1
        6     d6            1         1
        7     d7            1         1
        8     d8            1         1
        9     d9            1         1
        10    d10           0         0
        relevant returned = sum of the column 'relevant' = 9
        R = relevant documents in the qrels = 90
        precision = relevant returned / returned = 9 / 10 = 0.9000
        recall = relevant returned / R = 9 / 90 = 0.1000
        SetF = 2 * precision * recall / (precision + recall) = 2 * 0.9000 * 0.1000 / (0.9000 + 0.1000) = 0.1800
    """)


def test_f_with_a_weight() -> None:
    """P = .5, R = .625: F5 is 0.619; the formula with beta stands there only where beta is not 1."""
    *_, precision, recall, last = page(explained("SetF(beta=5)", [1.0] * 5 + [0.0] * 5, missing=[1] * 3)).splitlines()
    assert precision == "precision = relevant returned / returned = 5 / 10 = 0.5000"
    assert recall == "recall = relevant returned / R = 5 / 8 = 0.6250"
    assert last == (
        "SetF(beta=5) = (1 + beta^2) * precision * recall / (beta^2 * precision + recall)"
        " = (1 + 5^2) * 0.5000 * 0.6250 / (5^2 * 0.5000 + 0.6250) = 0.6190"
    )


def test_reciprocal_rank() -> None:
    """The reader goes down to the first relevant document, and no further."""
    assert page(explained("RR", [0, None, 0, 1, 0, 1])) == text("""
        ranking
        rank  document  grade  relevant
        1     d1            0         0
        2     d2            -
        3     d3            0         0
        4     d4            1         1
        rank = rank of the first relevant document = 4
        RR = 1 / rank = 1 / 4 = 0.2500
    """)
    assert page(explained("RR@2", [0, None, 0, 1])) == text("""
        ranking
        rank  document  grade  relevant
        1     d1            0         0
        2     d2            -
        RR@2 = no relevant document in the first 2 = 0
    """)


def test_precision_and_recall() -> None:
    """The same three documents of five, divided by the places and by what there is to find; an empty place counts."""
    grades, missing = [1.0, None, 1.0, 0.0, 1.0], [1.0, 1.0, 1.0]
    counted = """
        ranking
        rank  document  grade  relevant
        1     d1            1         1
        2     d2            -
        3     d3            1         1
        4     d4            0         0
        5     d5            1         1
        relevant returned = sum of the column 'relevant' = 3
    """.rstrip()
    last = "\n        P@10 = relevant returned / k = 3 / 10 = 0.3000"
    assert page(explained("P@10", grades, missing)) == text(counted + last)
    last = "\n        R = relevant documents in the qrels = 6\n        R@10 = relevant returned / R = 3 / 6 = 0.5000"
    assert page(explained("R@10", grades, missing)) == text(counted + last)


def test_eleven_points() -> None:
    """Relevant at 1 and 4 of two: eight recalls for which one document is enough, three that need both."""
    assert page(explained("AP11", at_ranks(1, 4))) == text("""
        R = relevant documents in the qrels = 2

        ranking
        rank  document  grade  relevant so far  precision
        1     d1            1                1          1
        2     d2            0
        3     d3            0
        4     d4            1                2     0.5000
        precision = relevant so far / rank

        recall points
        recall  n  highest precision
             0  0                  1
        0.1000  0                  1
        0.2000  0                  1
        0.3000  1                  1
        0.4000  1                  1
        0.5000  1                  1
        0.6000  1                  1
        0.7000  1                  1
        0.8000  2             0.5000
        0.9000  2             0.5000
             1  2             0.5000
        n = recall * R, rounded half up
        highest precision = maximum over the ranks with at least n relevant documents so far
        sum = sum of the highest precisions = 9.5000
        AP11 = sum / 11 = 9.5000 / 11 = 0.8636
    """)


def test_binary_preference_passes_over_what_is_unjudged() -> None:
    assert page(explained("Bpref", [1, 0, None, None, None, 1], missing=[0])) == text("""
        R = relevant documents in the qrels = 2
        N = documents judged not relevant in the qrels = 2

        ranking
        rank  document                grade  n  preference  so far
        1     d1                          1  0           1       1
        2     d2                          0
        3-5   (3 unjudged documents)
        6     d6                          1  1      0.5000  1.5000
        n = higher-ranked documents that are judged not relevant
        preference = 1 - min(n, R) / min(N, R)
        sum of preference = 1.5000
        Bpref = sum of preference / R = 1.5000 / 2 = 0.7500
    """)


def test_compatibility_shows_both_rankings_and_where_they_meet() -> None:
    """One of two relevant returned: 2 ln 2 = 1.3863 over 1 + 2 x 0.3863, each divided by 1 + 1/2 + ... = 2."""
    assert page(explained("Compat(p=0.5)", [1.0], missing=[1.0])) == text("""
        nearest ideal ranking
        rank  document  grade  rank in the run  shared from depth
        1     d1            1                1                  1
        shared from depth = max(rank, rank in the run)

        ranking
        rank  document  grade  weight  shared  weight * shared / rank
        1     d1            1       1       1                       1
        weight = 0.5^(rank - 1)
        shared = documents in both rankings down to this rank
        sum to depth 1 = sum of weight * shared / rank = 1
        sum = the same sum to depth 1000 = 1.3863
        weights = sum of all weights to depth 1000 = 2
        RBO = sum / weights = 1.3863 / 2 = 0.6931

        nearest ideal ranking
        rank  document  grade  weight  shared  weight * shared / rank
        1     d1            1       1       1                       1
        2     m1            1  0.5000       2                  0.5000
        weight = 0.5^(rank - 1)
        shared = documents in both rankings down to this rank
        sum to depth 2 = sum of weight * shared / rank = 1.5000
        sum = the same sum to depth 1000 = 1.7726
        weights = sum of all weights to depth 1000 = 2
        ideal RBO = sum / weights = 1.7726 / 2 = 0.8863
        Compat(p=0.5) = RBO / ideal RBO = 0.6931 / 0.8863 = 0.7821
    """)


# --- what a page leaves out -----------------------------------------------------------------------------


def test_the_grade_from_which_a_document_is_relevant_is_named_where_it_is_not_1() -> None:
    lines = page(explained("AP(rel=2)", [1, 2, 3], missing=[2, 1])).splitlines()
    assert lines[-2] == "R = relevant documents in the qrels, of grade 2 or more = 3"
    assert lines[-1] == "AP(rel=2) = sum of precision / R = 1.1667 / 3 = 0.3889"  # (1/2 + 2/3) / 3


def test_utility_names_only_the_kinds_of_documents_that_count() -> None:
    grades, missing = [1.0, 0.0, None, 1.0, 1.0], [1.0]
    lines = page(explained("Utility", grades, missing)).splitlines()[-3:]
    assert lines == [
        "TP = relevant returned = 3",
        "FP = returned - TP = 5 - 3 = 2",
        "Utility = a * TP + b * FP = 1 * 3 + (-1) * 2 = 1",
    ]
    *_, missed, not_returned, last = page(explained("Utility(c=-2,d=0.01,n=100)", grades, missing)).splitlines()
    assert missed == "FN = R - TP = 4 - 3 = 1"
    assert not_returned == "TN = N - returned - R + TP = 100 - 5 - 4 + 3 = 94"
    assert last == (
        "Utility(c=-2,d=0.01,n=100) = a * TP + b * FP + c * FN + d * TN"
        " = 1 * 3 + (-1) * 2 + (-2) * 1 + 0.0100 * 94 = -0.0600"
    )


def test_nothing_is_divided_where_nothing_is_relevant() -> None:
    assert page(explained("PairAccuracy", [0, None])).splitlines()[-1] == "PairAccuracy = no relevant document = 0"
    assert page(explained("RR", [0, None])).splitlines()[-1] == "RR = no relevant document returned = 0"


@pytest.mark.parametrize(("cutoff", "rows"), [(3, 3), (50, 50), (60, 50), (1000, 50)])
def test_holes_of_a_long_page_are_shown_where_it_begins(cutoff: int, rows: int) -> None:
    """Every other one of 70 documents is judged, for this topic or, every fourth, for another."""
    qrels = {"q": {f"d{rank}": 1 for rank in range(1, 71, 4)}, "other": {f"d{rank}": 0 for rank in range(3, 71, 4)}}
    run = {"q": {f"d{rank}": -float(rank) for rank in range(1, 71)}}
    explanation = explain_list(judge(qrels, run), f"Hole@{cutoff}", "q")
    (sheet,) = explanation.sheets
    assert [row[-1] for row in sheet.rows if row[-1] is not None] == [
        float(rank % 2 == 0) for rank in range(1, rows + 1)
    ]
    holes = min(cutoff, 70) // 2
    assert [line.value for line in sheet.lines] == ([25.0] if cutoff > rows else []) + [holes, holes / cutoff]


@given(
    st.lists(st.sampled_from([1.0, 0.0, None]), min_size=1, max_size=12),
    st.integers(0, 3),
    st.sampled_from([0.0, 0.2, 0.5, 1.0]),
)
def test_interpolated_precision_is_the_highest_that_is_shown(
    grades: list[float | None], missed: int, recall: float
) -> None:
    explanation = explained(f"IPrec@{recall}", grades, [1.0] * missed + [0.0])
    ((n,), (*_, table)) = [line.value for line in explanation.sheets[0].lines[1:]], explanation.sheets
    precisions = [row[-1] for row in table.rows if row[-1] is not None]
    counts = [row[-2] for row in table.rows if row[-2] is not None]
    assert len(precisions) == sum(count >= n for count in counts)
    assert counts == list(range(1, grades.count(1.0) + 1))
    assert explanation.score == max(precisions, default=0.0)
