"""GAP, Q, and NCG compared with plain implementations and with the output of other programs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import judged
from judged import AP, MeasureError, R
from judged.scoring.measures import CG, GAP, NCG, Q, parse
from strategies import Qrels, Run, collections, ranked

TABLES: list[dict[float, float]] = [{1: 1.0}, {2: 1.0}, {1: 0.5, 2: 0.25, 4: 0.25}, {0.5: 0.25, 1.5: 0.75}]


def worths(qrels: Qrels, run: Run, topic: str) -> tuple[list[float], list[float]]:
    """Return the grades in rank order, 0 without a judgment, and all grades."""
    grades = [max(qrels[topic].get(doc, 0.0), 0.0) for doc in ranked(run.get(topic, {}))]
    return grades, [max(grade, 0.0) for grade in qrels[topic].values()]


# --- graded average precision -------------------------------------------------------------------------


@given(collections(), st.sampled_from(["equal", *TABLES]))
def test_gap_is_the_double_sum_of_the_paper(pair: tuple[Qrels, Run], g: Any) -> None:
    """Equation 8 of the paper: over all pairs of ranks m <= n, the probability that both are relevant, over n."""
    qrels, run = pair
    judged_list = judged.judge(qrels, run)

    def relevant(grade: float) -> float:
        return grade if g == "equal" else sum(share for level, share in g.items() if level <= grade)

    for topic_index, topic in enumerate(judged_list.query_ids):
        grades, label_grades = worths(qrels, run, topic)
        total = sum(relevant(min(grades[n], grades[m])) / (n + 1) for n in range(len(grades)) for m in range(n + 1))
        expected = sum(map(relevant, label_grades))
        assert GAP(g=g)(judged_list)[topic_index] == pytest.approx(total / expected if expected else 0.0, rel=1e-13)


@pytest.mark.parametrize("rel", [1, 2, 1.5])
@given(pair=collections())
def test_gap_with_one_threshold_is_average_precision(rel: float, pair: tuple[Qrels, Run]) -> None:
    judged_list = judged.judge(*pair)
    assert GAP(g={rel: 1.0})(judged_list).tolist() == AP(rel=rel)(judged_list).tolist()


def test_gap_as_another_program_has_it() -> None:
    """Infer.NET's unit test of its graded average precision, which takes all steps of a grade as equally probable."""
    expected = (3 / 1 + (1 + 1) / 2 + (2 + 1 + 2) / 3 + (2 + 1 + 2 + 2) / 4) / (3 + 1 + 2 + 2)
    assert GAP().of_list([3, 1, 2, 2]) == pytest.approx(expected, rel=1e-15)


@given(collections(grade=st.floats(0, 4)))
def test_gap_with_as_many_grades_as_documents(pair: tuple[Qrels, Run]) -> None:
    qrels, run = pair
    judged_list = judged.judge(qrels, run)
    for topic_index, topic in enumerate(judged_list.query_ids):
        grades, label_grades = worths(qrels, run, topic)
        total = sum(min(grades[n], grades[m]) / (n + 1) for n in range(len(grades)) for m in range(n + 1))
        expected = total / sum(label_grades) if sum(label_grades) else 0.0
        assert GAP()(judged_list)[topic_index] == pytest.approx(expected, rel=1e-13, abs=1e-300)


def test_gap_by_hand() -> None:
    """g = (0.5, 0.3, 0.2): grades 1, 2, 3 are relevant to 0.5, 0.8 and 1 of the users.

    Grades 2, 0, 3 and a 1 that was not returned. Rank 1: 0.8. Rank 3: (0.8 + 1) / 3. Over 0.8 + 1 + 0.5.
    """
    gap = GAP(g={1: 0.5, 2: 0.3, 3: 0.2})
    assert gap.of_list([2, 0, 3], missing=[1]) == pytest.approx((0.8 + 1.8 / 3) / 2.3, rel=1e-15)
    assert str(gap) == "GAP(g={1:0.5,2:0.3,3:0.2})"


def test_only_the_ratios_of_the_thresholds_count() -> None:
    thirds = parse("GAP(g={1:0.333,2:0.333,3:0.333})")
    assert thirds.of_list([2, 0, 3, 1], missing=[1]) == pytest.approx(
        GAP().of_list([2, 0, 3, 1], missing=[1]), rel=1e-14
    )


def test_a_topic_in_which_nobody_finds_anything_relevant_is_undefined() -> None:
    assert parse("GAP(g={2:1},undefined=-1)").of_list([1, 1]) == -1.0
    assert parse("GAP(undefined=-1)").of_list([1, 1]) == 1.0
    assert parse("GAP(undefined=-1)").of_list([0, -1]) == -1.0


@pytest.mark.parametrize("wrong", ["{1:0.5}", "{1:0.9,2:0.9}", "{0:1}", "{1:-1,2:2}", "{1:x}", "flat", "{-1:1}"])
def test_thresholds_are_probabilities_of_grades(wrong: str) -> None:
    with pytest.raises(
        MeasureError,
        match=r"Fix: use the word equal, or a table of grades above 0 with shares that sum to 1, such as \{1:0.4",
    ):
        parse(f"GAP(g={wrong})")


# --- Q-measure -----------------------------------------------------------------------------------------


@given(
    collections(),
    st.sampled_from([0.0, 0.5, 1.0, 10.0]),
    st.sampled_from(["linear", "exp2"]),
    st.none() | st.integers(1, 6),
)
def test_q_is_the_blended_ratio_of_the_paper(
    pair: tuple[Qrels, Run], beta: float, gain: str, cutoff: int | None
) -> None:
    qrels, run = pair
    judged_list = judged.judge(qrels, run)
    scores = Q(beta=beta, gain=gain, cutoff=cutoff)(judged_list)
    for topic_index, topic in enumerate(judged_list.query_ids):
        grades, label_grades = worths(qrels, run, topic)
        gains, ideal = (
            [2**grade - 1 if gain == "exp2" else grade for grade in values] for values in (grades, label_grades)
        )
        ideal.sort(reverse=True)
        total = sum(
            (sum(g > 0 for g in gains[:r]) + beta * sum(gains[:r])) / (r + beta * sum(ideal[:r]))
            for r in range(1, min(len(gains), cutoff or len(gains)) + 1)
            if gains[r - 1] > 0
        )
        relevant = min(sum(g > 0 for g in ideal), cutoff or len(ideal))
        assert scores[topic_index] == pytest.approx(total / relevant if relevant else 0.0, rel=1e-13)


NTCIREVAL = {
    # printed by NTCIREVAL 141207 for its own sample.res and sample.rel with -g 1:2:3 (its README; the cutoff 2 by
    # pyNTCIREVAL's test data): L0, L3, unjudged, L2 of 3 L3, 3 L2, 4 L1 and one L0
    "RR": ("RR", 0.5000),
    "AP": ("AP", 0.1000),
    "Q-measure": ("Q", 0.0967),
    "AP@0002": ("AP(norm=cutoff)@2", 0.2500),
    "Q@0002": ("Q@2", 0.2500),
    "nDCG@0002": ("nDCG(discount=original)@2", 0.5000),
    "nDCG@1000": ("nDCG(discount=original)@1000", 0.3380),
    "MSnDCG@0002": ("nDCG@2", 0.3869),
    "MSnDCG@1000": ("nDCG@1000", 0.2760),
    "P@1000": ("P@1000", 0.0020),
    "Hit@0002": ("Success@2", 1.0000),
}


@pytest.mark.parametrize("theirs", NTCIREVAL)
def test_the_example_of_ntcireval(theirs: str) -> None:
    ours, printed = NTCIREVAL[theirs]
    assert f"{parse(ours).of_list([0, 3, None, 2], missing=[3, 3, 2, 2, 1, 1, 1, 1]):.4f}" == f"{printed:.4f}"


@given(collections(), st.none() | st.integers(1, 6))
def test_q_without_gains_is_average_precision(pair: tuple[Qrels, Run], cutoff: int | None) -> None:
    judged_list = judged.judge(*pair)
    assert (
        Q(beta=0, cutoff=cutoff)(judged_list).tolist()
        == AP(rel=5e-324, norm="cutoff", cutoff=cutoff)(judged_list).tolist()
    )


def test_q_with_a_table_of_gains() -> None:
    """Gains 1, 0, 5 for grades 1, 2, 3: grade 2 is not relevant. Rank 1: (1+1)/(1+5); rank 3: (2+6)/(3+6); over 2."""
    q = parse("Q(gain={2:0,3:5})")
    assert q.of_list([1, 2, 3]) == pytest.approx((2 / 6 + 8 / 9) / 2, rel=1e-15)
    assert parse("Q(gain={1:0},undefined=-1)").of_list([1]) == -1.0


# --- normalized cumulated gain ---------------------------------------------------------------------------


@given(collections(), st.integers(1, 12))
def test_ncg_is_the_share_of_the_gain_that_k_documents_can_have(pair: tuple[Qrels, Run], cutoff: int) -> None:
    judged_list = judged.judge(*pair)
    ours, gains, ideal_gains = (
        NCG(cutoff=cutoff)(judged_list),
        CG(cutoff=cutoff)(judged_list),
        CG(cutoff=cutoff)(judged_list.ideal),
    )
    assert ours.tolist() == [gain / best if best else 0.0 for gain, best in zip(gains, ideal_gains, strict=True)]


@given(collections(grade=st.sampled_from([0.0, 1.0])))
def test_ncg_of_one_grade_is_capped_recall(pair: tuple[Qrels, Run]) -> None:
    """Relevant in the first 3 over min(3, R): recall where R is small."""
    judged_list = judged.judge(*pair)
    relevant = CG(cutoff=1000)(judged_list.ideal)
    expected = R(cutoff=3)(judged_list) * relevant / [min(3.0, max(r, 1.0)) for r in relevant]
    assert NCG(cutoff=3)(judged_list).tolist() == pytest.approx(expected.tolist(), rel=1e-14)


def test_ncg_by_hand() -> None:
    """exp2: gains 3 + 1 of the possible 7 + 3."""
    assert NCG(cutoff=2, gain="exp2").of_list([2, 1], missing=[3]) == 0.4
    assert parse("NCG(undefined=1)@5").of_list([0]) == 1.0
    with pytest.raises(MeasureError, match="NCG requires `cutoff`"):
        parse("NCG")
