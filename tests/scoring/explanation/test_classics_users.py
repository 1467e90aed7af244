"""User models, TBG, U-measure and AWRF written down as one would by hand: the whole text, number by number."""

from __future__ import annotations

from inspect import cleandoc
from math import log
from typing import Any

import pytest

from judged import judge
from judged.scoring.explanation import Explanation, explain_list
from judged.scoring.judging import judge_list
from scoring.explanation.formulas import page


def explained(measure: str, grades: list[float | None], **facts: list[Any]) -> Explanation:
    return explain_list(judge_list(grades, facts=facts or None), measure)


def test_insq_reads_on_below_the_end() -> None:
    """C = (2/3)^2, (3/4)^2: reached are 1, 4/9 and, below the end, 4/9 9/16 = 1/4; ED = 61/36 and W(1) = 36/61."""
    explanation = explained("INSQ(max=1,depth=3)", [1, None])
    assert explanation.score == pytest.approx(36 / 61, rel=1e-15)
    assert f"{explanation.title}\n\n{page(explanation)}" == cleandoc(
        """
        INSQ(max=1,depth=3)

        ranking
        rank  document  grade  x       C  reached  so far
        1     d1            1  3  0.4444        1       1
        2     d2            -  4  0.5625   0.4444  1.4444
        x = rank + 2 * 1
        C = ((x - 1) / x)^2
        reached = product of C over all ranks above
        to rank 2 = sum of reached = 1.4444
        below rank 2 = rank 3 = 0.2500
        ED = to rank 2 + below rank 2 = 1.4444 + 0.2500 = 1.6944

        ranking
        rank  document  grade  reached       W  gain  W * gain  so far
        1     d1            1        1  0.5902     1    0.5902  0.5902
        W = reached / ED
        gain = grade
        INSQ(max=1,depth=3) = sum of W * gain = 0.5902
        """
    )


def test_inst_is_less_patient_the_more_it_found() -> None:
    """x = 1 + 2 - 1 = 2 and C(1) = 1/4; ED = 5/4, W = 4/5 and 1/5, EU = 4/5 + 1/5 1/2."""
    explanation = explained("INST(max=2,depth=2)", [2, 1])
    assert explanation.score == pytest.approx(0.9, rel=1e-15)
    assert f"{explanation.title}\n\n{page(explanation)}" == cleandoc(
        """
        INST(max=2,depth=2)

        ranking
        rank  document  grade    gain  gained       x       C  reached  so far
        1     d1            2       1       1       2  0.2500        1       1
        2     d2            1  0.5000  1.5000  2.5000  0.3600   0.2500  1.2500
        gain = grade / 2
        gained = gain so far
        x = rank + 2 * 1 - gained
        C = ((x - 1) / x)^2
        reached = product of C over all ranks above
        ED = sum of reached = 1.2500

        ranking
        rank  document  grade  reached       W    gain  W * gain  so far
        1     d1            2        1  0.8000       1    0.8000  0.8000
        2     d2            1   0.2500  0.2000  0.5000    0.1000  0.9000
        W = reached / ED
        gain = grade / 2
        INST(max=2,depth=2) = sum of W * gain = 0.9000
        """
    )


def test_nerr8_stops_half_of_the_users_at_the_second_document() -> None:
    """Weights as 1 to 1 to 1/2 to 1/2: 1/2 and 1/2 out of 3. A document without a judgment stops nobody."""
    explanation = explained("NERR8(max=2)@4", [0, 1, None, 2])
    assert explanation.score == pytest.approx((1 / 2 + 1 / 2) / 3, rel=1e-15)
    assert f"{explanation.title}\n\n{page(explanation)}" == cleandoc(
        """
        NERR8(max=2)@4

        ranking
        rank  document  grade    gain       C  reached  so far
        1     d1            0       0       1        1       1
        2     d2            1  0.5000  0.5000        1       2
        3     d3            -               1   0.5000  2.5000
        4     d4            2       1       0   0.5000       3
        gain = grade / 2
        C = 1 - gain, 0 at rank 4
        reached = product of C over all ranks above
        ED = sum of reached = 3

        ranking
        rank  document  grade  reached       W    gain  W * gain  so far
        1     d1            0        1  0.3333       0         0       0
        2     d2            1        1  0.3333  0.5000    0.1667  0.1667
        3     d3            -
        4     d4            2   0.5000  0.1667       1    0.1667  0.3333
        W = reached / ED
        gain = grade / 2
        NERR8(max=2)@4 = sum of W * gain = 0.3333
        """
    )


def test_bpm_ends_where_enough_is_gained() -> None:
    """1/2 and 1 make 3/2, more than T = 1, at a cost of 1 + 2 + 3, less than 10: rank 3 is the last for everyone."""
    explanation = explained("BPM(max=2,of=ETU,costs=column)@10", [0, 1, 2], cost=[1, 2, 3])
    assert explanation.score == 1.5
    assert f"{explanation.title}\n\n{page(explanation)}" == cleandoc(
        """
        BPM(max=2,of=ETU,costs=column)@10

        ranking
        rank  document  grade    gain  gained  cost  spent  C  reached  L  L * gained  so far
        1     d1            0       0       0     1      1  1        1  0           0       0
        2     d2            1  0.5000  0.5000     2      3  1        1  0           0       0
        3     d3            2       1  1.5000     3      6  0        1  1      1.5000  1.5000
        gain = grade / 2
        gained = gain so far
        spent = cost so far
        C = 1 while gained < 1 and spent < 10, then 0
        reached = product of C over all ranks above
        L = reached * (1 - C)
        BPM(max=2,of=ETU,costs=column)@10 = sum of L * gained = 1.5000
        """
    )


def test_ift1_at_its_goal() -> None:
    """C(1) = 1 - 1/(1 + 1) = 1/2: weights 2/3 and 1/3."""
    explanation = explained("IFT1(T=1,b1=1,max=1,depth=2)", [1, 0])
    assert explanation.score == pytest.approx(2 / 3, rel=1e-15)
    assert f"{explanation.title}\n\n{page(explanation)}" == cleandoc(
        """
        IFT1(T=1,b1=1,max=1,depth=2)

        ranking
        rank  document  grade  gain  gained       C  reached  so far
        1     d1            1     1       1  0.5000        1       1
        2     d2            0     0       1  0.5000   0.5000  1.5000
        gain = grade
        gained = gain so far
        C = 1 - 1 / (1 + 1 * exp((1 - gained) * 10))
        reached = product of C over all ranks above
        ED = sum of reached = 1.5000

        ranking
        rank  document  grade  reached       W  gain  W * gain  so far
        1     d1            1        1  0.6667     1    0.6667  0.6667
        2     d2            0   0.5000  0.3333     0         0  0.6667
        W = reached / ED
        gain = grade
        IFT1(T=1,b1=1,max=1,depth=2) = sum of W * gain = 0.6667
        """
    )


def test_time_biased_gain_counts_the_seconds() -> None:
    """4.4 + 0.64 (18 + 7.8) = 20.912 and 4.4 + 0.39 (9 + 7.8) = 10.952 seconds; 0.64 0.77 (1 + 2^(-31.864/224))."""
    explanation = explained("TBG", [1, None, 1], length=[1000, 500, 200])
    assert explanation.score == pytest.approx(0.4928 * (1 + 2 ** (-31.864 / 224)), rel=1e-13)
    assert f"{explanation.title}\n\n{page(explanation)}" == cleandoc(
        """
        TBG

        gain = click * save = 0.6400 * 0.7700 = 0.4928

        ranking
        rank  document  grade  clicked  length  seconds     time   decay  gain * decay  so far
        1     d1            1   0.6400    1000  20.9120        0       1        0.4928  0.4928
        2     d2            -   0.3900     500  10.9520
        3     d3            1   0.6400     200  11.6960  31.8640  0.9061        0.4465  0.9393
        clicked = 0.64 if relevant, else 0.39
        seconds = 4.4 + clicked * (0.018 * length + 7.8)
        time = sum of seconds over all ranks above
        decay = 2^(-time / 224)
        TBG = sum of gain * decay = 0.9393
        """
    )


def test_u_measure_counts_the_text() -> None:
    """The judged documents end at 200 and 200 + 300 + 100 of 1000: 3 (0.8) + 1 (0.4)."""
    explanation = explained("UMeasure(L=1000)", [3, None, 1], length=[200, 300, 100])
    assert explanation.score == pytest.approx(2.8, rel=1e-15)
    assert f"{explanation.title}\n\n{page(explanation)}" == cleandoc(
        """
        UMeasure(L=1000)

        ranking
        rank  document  grade  gain  length  end   decay  gain * decay  so far
        1     d1            3     3     200  200  0.8000        2.4000  2.4000
        2     d2            -           300
        3     d3            1     1     100  600  0.4000        0.4000  2.8000
        gain = grade
        end = sum of length down to this rank
        decay = max(0, 1 - end / 1000)
        UMeasure(L=1000) = sum of gain * decay = 2.8000
        """
    )


def test_awrf_sets_attention_beside_what_is_due() -> None:
    """Of a, 2/3 of the attention and half of what is due: 2/3 ln 8/7 - 1/3 ln 5/4, and 1/2 ln 6/7 + 1/2 ln 6/5."""
    explanation = explained("AWRF(p=0.5,target={a:0.5,b:0.5})", [1, 0], group=["a", "b"])
    attention, target = 2 / 3 * log(8 / 7) - log(5 / 4) / 3, (log(6 / 7) + log(6 / 5)) / 2
    assert explanation.score == pytest.approx(1 - (attention + target) / 2, rel=1e-15)
    assert f"{explanation.title}\n\n{page(explanation)}" == cleandoc(
        """
        AWRF(p=0.5,target={a:0.5,b:0.5})

        ranking
        rank  document  grade  group  attention
        1     d1            1      a          1
        2     d2            0      b     0.5000
        attention = 0.5^(rank - 1)
        total attention = sum of attention = 1.5000

        groups
        group  attention  target       e       t   e part   t part
        a              1  0.5000  0.6667  0.5000   0.0890  -0.0771
        b         0.5000  0.5000  0.3333  0.5000  -0.0744   0.0912
        e = attention / total attention
        t = target / total target
        e part = e * ln(2 * e / (e + t))
        t part = t * ln(2 * t / (e + t))
        total target = sum of target over all groups = 1
        e parts = sum of e part over all groups = 0.0146
        t parts = sum of t part over all groups = 0.0141
        AWRF(p=0.5,target={a:0.5,b:0.5}) = 1 - (e parts + t parts) / 2 = 1 - (0.0146 + 0.0141) / 2 = 0.9856
        """
    )


def test_a_group_without_attention_stands_last_and_adds_ln_2() -> None:
    """All attention to a: ln 4/3, and 1/2 ln 2/3 + 1/2 ln 2."""
    explanation = explained("AWRF(p=0.5,target={a:0.5,b:0.5})", [1, 0], group=["a", "a"])
    assert explanation.score == pytest.approx(1 - (log(4 / 3) + log(2 / 3) / 2 + log(2) / 2) / 2, rel=1e-15)
    groups = explanation.sheets[1]
    assert groups.rows[1] == ("b", 0.0, 0.5, 0.0, 0.5, None, None)
    assert [(line.name, line.value) for line in groups.lines[1:4]] == [
        ("e parts", pytest.approx(log(4 / 3), rel=1e-15)),
        ("t parts", pytest.approx(log(2 / 3) / 2, rel=1e-15)),
        ("unmet", 0.5),
    ]
    assert groups.lines[4].formula == "1 - (e_parts + t_parts + unmet * ln(2)) / 2"


def test_a_topic_of_which_nothing_was_returned() -> None:
    judged = judge({"q": {"a": 1}, "r": {"a": 1}}, {"r": {"a": 1.0}}, documents={"a": {"group": "x", "length": 5}})
    assert [explain_list(judged, name, "q").score for name in ("AWRF", "TBG", "UMeasure(L=9)", "NERR8(max=1)@3")] == [
        0.0
    ] * 4
    assert explain_list(judged, "AWRF", "q").sheets[-1].lines[-1].formula == "no documents returned"
    read = explain_list(judged, "NERR8(max=1)@3", "q").sheets[0]
    assert [(line.name, line.formula, line.value) for line in read.lines] == [
        ("to rank 1", "sum of reached", 1.0),
        ("below rank 1", "ranks 2 to 3", 2.0),
        ("ED", "to_rank_1 + below_rank_1", 3.0),
    ]


# --- what is not shown one by one ---------------------------------------------------------------------


def test_no_more_ranks_than_one_reads() -> None:
    """Two hundred documents are read, of which the last one gains: a hundred ranks are shown, and all that gain."""
    explanation = explained("BPM(max=1,T=9)@200", [0.0] * 199 + [1])
    read, gained = explanation.sheets
    assert sum(row[-1] is not None for row in read.rows) == 100
    assert [(line.name, line.formula, line.value) for line in read.lines] == [
        ("to rank 100", "sum of reached", 100.0),
        ("below rank 100", "ranks 101 to 1000", 100.0),
        ("ED", "to_rank_100 + below_rank_100", 200.0),
    ]
    assert gained.rows[-1][0] == 200
    assert (gained.lines[-1].formula, explanation.score) == ("sum of W * gain", 1 / 200)


def test_gain_that_hardly_anyone_reaches_is_one_number() -> None:
    """With T = 1, 4/(i+1)^2 of all users reach rank i: 4/64^2, at rank 63, is the first below 1/1000."""
    explanation = explained("INSQ(max=1)", [1.0] + [0.0] * 62 + [1.0, 1.0])
    weights = [4 / (rank + 1) ** 2 for rank in range(1, 1001)]
    gained = explanation.sheets[1]
    assert [(line.name, line.formula) for line in gained.lines] == [
        ("to rank 62", "sum of W * gain"),
        ("below rank 62", "ranks 63 to 1000"),
        ("INSQ(max=1)", "to_rank_62 + below_rank_62"),
    ]
    below = (weights[63] + weights[64]) / sum(weights)
    assert [line.value for line in gained.lines[:2]] == pytest.approx([1 / sum(weights), below], rel=1e-12)
    assert explanation.score == pytest.approx(1 / sum(weights) + below, rel=1e-13)


# --- other expectations and residuals -----------------------------------------------------------------


def test_a_residual_is_the_difference_of_two_workings() -> None:
    """Weights 9/13 and 4/13, of which the second is open."""
    explanation = explained("INSQ(max=1,depth=2,residual=true)", [1, None])
    assert explanation.score == pytest.approx(4 / 13, rel=1e-15)
    best = "ranking, with the highest gain for documents without a judgment"
    assert [sheet.title for sheet in explanation.sheets] == ["ranking", "ranking", best, best]
    assert explanation.sheets[1].lines[-1].name == "EU with gain 0"
    assert explanation.sheets[3].formulas["gain"] == "grade, 1 for documents without a judgment"
    assert explanation.text().splitlines()[-1] == (
        "INSQ(max=1,depth=2,residual=true) = EU with highest gain - EU with gain 0 = 1 - 0.6923 = 0.3077"
    )


def test_trap_writes_the_weights_of_average_precision() -> None:
    """R = 3: precisions 1/2 and 2/4, divided by 3."""
    explanation = explain_list(judge_list([0, 1, None, 1], missing=[1]), "TrAP(max=1)")
    assert page(explanation) == cleandoc(
        """
        R = documents with a positive gain, returned or not; at least 1 = 3

        ranking
        rank  document  grade  gain  gained  G       W  W * gain  so far
        1     d1            0     0       0  1  0.3333         0       0
        2     d2            1     1       1  1  0.1667    0.1667  0.1667
        3     d3            -             1  1  0.1111         0  0.1667
        4     d4            1     1       2  2  0.1667    0.1667  0.3333
        gain = grade
        gained = gain so far
        G = gained; 1 while gained is 0
        W = G / rank / R
        TrAP(max=1) = sum of W * gain = 0.3333
        """
    )


@pytest.mark.parametrize(
    ("measure", "how", "values"),
    [
        ("NERR9(max=2)@3", "rank / (rank + 1) * (1 - gain), 0 at rank 3", [1 / 2, 1 / 3, 0]),
        ("NERR10(p=0.5,max=2)", "0.5 * (1 - gain)", [0.5, 0.25, 0]),
        ("NERR11(max=2)", "((x - 1) / x)^2 * (1 - gain)", [4 / 9, 9 / 32, 0]),
        ("SDCG(max=2)@3", "log2(rank + 1) / log2(rank + 2), 0 at rank 3", [log(2) / log(3), log(3) / log(4), 0]),
        ("CwlTBG(halflife=2,max=2,depth=3)", "2^(-1 / 2), 0 at the last rank", [0.5**0.5, 0.5**0.5, 0]),
        ("CwlTBG(halflife=2,max=2,costs=column,depth=3)", "2^(-cost / 2), 0 at the last rank", [0.5, 0.25, 0]),
        ("CwlU(L=4,max=2,depth=3)", "weight of the next rank / weight", [3 / 4, 0]),
        ("BPMD(max=2,T=9)@2", "1 while gained < gain_limit and rank < cost_limit, then 0", [1, 0]),
        ("IFT2(A=1,b2=1,R2=0,max=2,depth=3)", "1 / (1 + 1 * exp((1 - rate) * 0))", [0.5, 0.5, 0.5]),
        ("IFT12(T=1,A=1,b1=1,b2=1,R1=0,R2=0,max=2,depth=3)", "C1 * C2", [0.25, 0.25, 0.25]),
    ],
)
def test_why_users_go_on(measure: str, how: str, values: list[float]) -> None:
    """Grades 0, 1, 2 on a scale of 2: what is gained is 0, 1/2, 3/2. Costs 2, 4, 1."""
    sheet = explained(measure, [0, 1, 2], cost=[2, 4, 1]).sheets[0]
    assert sheet.formulas["C"] == how
    column = [row[sheet.header.index("C")] for row in sheet.rows]
    assert [value for value in column if value is not None] == pytest.approx(values, rel=1e-15)
