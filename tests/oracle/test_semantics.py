"""The edge cases that every implementation of trec_eval's rules should have as a test.

Numbers are by hand from the rules. Against other programs the same rules are held in test_trec_eval.py and in
tests/scoring/measures/test_pytrec_eval.py.
"""

from __future__ import annotations

import gzip
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import judged
from judged import Qrels, Run, evaluate, judge
from judged.errors import InputError
from judged.scoring.judging import judge_list
from judged.scoring.measures import parse
from judged.scoring.measures.aggregates import FLOOR
from judged.scoring.measures.counts import relstring
from judged.scoring.peers.trec_eval import expand

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LOG3, LOG5 = math.log2(3), math.log2(5)


def score(name: str, grades: Sequence[float | None], missing: Sequence[float] = ()) -> float:
    return parse(name).of_list(grades, missing=missing)


# --- 1 and 2: the order of documents ------------------------------------------------------------------


def test_tied_documents_stand_in_falling_byte_order() -> None:
    grades = {"Z": 0, "a": 1, "é": 2, "doc10": 3, "doc9": 4}
    found = judge({"q": grades}, {"q": dict.fromkeys(grades, 1.0)})
    assert found.doc == ["é", "doc9", "doc10", "a", "Z"]
    assert relstring(found) == ["24310"]
    assert relstring(found, 3) == ["243"]


@pytest.mark.parametrize(
    ("scores", "double", "single"),
    [
        ((0.100000002, 0.100000001), "12", "21"),
        ((16777217, 16777216), "12", "21"),
        ((0.0, -0.0), "21", "21"),
        ((-0.0, 0.0), "21", "21"),
        ((math.inf, 1e300), "12", "21"),  # 1e300 is infinite in 32 bits
        ((math.inf, 1e38), "12", "12"),
        ((-math.inf, -1e38), "21", "21"),
    ],
)
def test_scores_tie_by_the_precision_that_is_asked_for(scores: tuple[float, float], double: str, single: str) -> None:
    """Documents a and z: of a tie, z comes first."""
    qrels, run = {"q": {"a": 1, "z": 2}}, {"q": dict(zip("az", scores, strict=True))}
    assert relstring(judge(qrels, run)) == [double]
    assert relstring(judge(qrels, run, precision="single")) == [single]


# --- 3: nothing relevant, nothing returned, recall points between documents ------------------------------

SCORES_OF_NOTHING = [
    *("AP", "GMAP", "RR", "Rprec", "RprecMult@1", "Bpref", "GMBpref", "InfAP", "Yaap", "IPrec@0", "IPrec@1", "AP11"),
    *("P@5", "R@5", "RelP@5", "Success@5", "AP@5", "nDCG@5", "nDCG", "nDCGrel", "RnDCG", "G", "BinG", "IdealDCG"),
    *("SetP", "SetR", "SetF", "SetAP", "SetRelP", "NumRel", "NumRelRet", "RBP(p=0.8)"),
]


def test_a_topic_without_relevant_documents_scores_0() -> None:
    for name in SCORES_OF_NOTHING:
        assert score(name, [0, None, -1], [0]) == 0.0, name


def test_an_empty_ranking_scores_0_and_a_little_less_on_the_scale_of_logarithms() -> None:
    for name in SCORES_OF_NOTHING:
        if name not in {"Yaap", "IdealDCG", "NumRel"}:
            assert score(name, [], [1, 1, 0]) == 0.0, name
    assert score("Yaap", [], [1, 1, 0]) == math.log(1 / 3)
    assert score("RBPResidual(p=0.9)", [], [1]) == 0.0
    assert score("Utility(c=-2)", [], [1, 1, 0]) == -4.0
    assert relstring(judge_list([], missing=[1])) == [""]


def test_judged_only_can_leave_nothing() -> None:
    for name in ("AP", "IPrec@0", "AP11", "SetP", "G", "nDCGrel", "RnDCG", "RprecMult@2", "BinG"):
        one = parse(name)
        assert one.replace(judged_only=True).of_list([None, -1, None], missing=[1]) == 0.0, name


@pytest.mark.parametrize(
    ("relevant", "recall", "nearest", "up"),
    [(1, 0.4, 0, 1), (1, 0.5, 1, 1), (5, 0.1, 1, 1), (4, 0.1, 0, 1), (4, 0.3, 1, 2), (5, 0.3, 2, 2), (3, 0.9, 3, 3)],
)
def test_recall_becomes_a_number_of_documents(relevant: int, recall: float, nearest: int, up: int) -> None:
    """Version 10 rounds halves up, version 9 takes the whole part of c R + 0.9.

    The n-th relevant document stands at rank 2^n, so the precision from there on is at most n / 2^n; n = 0 gives
    the same number as n = 1.
    """
    grades = [float(rank in {2**n for n in range(1, relevant + 1)}) for rank in range(1, 2**relevant + 1)]
    for rounding, n in (("nearest", nearest), ("up", up)):
        assert score(f"IPrec(rounding={rounding})@{recall}", grades) == max(n, 1) / 2 ** max(n, 1)


def test_a_half_is_rounded_up_and_what_is_less_is_not() -> None:
    """0.49999999999999994 + 0.5 is 1 in floating point, and lround(0.49999999999999994) is 0."""
    from judged.scoring.measures.ap import _documents

    assert _documents(np.array([0.5, 1.5, 2.5, 0.49999999999999994]), "nearest").tolist() == [1, 2, 3, 0]
    assert _documents(np.array([0.5, 0.1, 0.09, 0.7 * 3]), "up").tolist() == [1, 1, 0, 2]  # 0.7 * 3 < 2.1


def test_eleven_points_are_added_from_the_highest_recall_down() -> None:
    grades = [1, 0, 0, 1, 0, 0, 0, 1, 1, 1]
    down = 0.0
    for tenth in range(10, -1, -1):
        down += score(f"IPrec@{tenth / 10}", grades)
    assert score("AP11", grades) == down / 11


# --- 4: short rankings, few relevant documents ----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "grades", "missing", "value"),
    [
        # fewer returned than k
        ("P@5", [1, 0, 1], [1], 2 / 5),
        ("R@5", [1, 0, 1], [1], 2 / 3),
        ("RelP@5", [1, 0, 1], [1], 2 / 3),
        ("AP@5", [1, 0, 1], [1], (1 + 2 / 3) / 3),
        ("nDCG@5", [1, 0, 1], [1], (1 + 1 / 2) / (1 + 1 / LOG3 + 1 / 2)),
        ("RBP(p=0.5)@5", [1, 0, 1], [1], 0.5 * (1 + 0.25)),
        # fewer returned than R
        ("Rprec", [1, 1], [1, 1], 2 / 4),
        ("RprecMult@1", [1, 1], [1, 1], 2 / 4),
        ("RprecMult@0.2", [0, 1], [1, 1], 0.0),  # floor(0.6 + 0.9) = 1
        ("RprecMult@2", [1, 1], [1, 1], 2 / 8),
        ("RprecMult@0", [1, 1], [1], 0.0),
        ("SetRelP", [1, 1, 0], [1, 1], 2 / 3),
        ("nDCG", [1, 1], [1, 1], (1 + 1 / LOG3) / (1 + 1 / LOG3 + 1 / 2 + 1 / LOG5)),
        ("IPrec@1", [1, 1], [1, 1], 0.0),
        ("IPrec@0.5", [0, 1, 1], [1, 1], 2 / 3),
        # fewer relevant than k
        ("P@3", [1, 0, 0, 0], [], 1 / 3),
        ("R@3", [1, 0, 0, 0], [], 1.0),
        ("RelP@3", [1, 0, 0, 0], [], 1.0),
        ("AP@3", [0, 1, 0, 0], [], 1 / 2),
        ("nDCG@3", [0, 1, 0, 0], [], 1 / LOG3),
        # more relevant than k
        ("R@1", [1, 1, 1], [], 1 / 3),
        ("RelP@1", [1, 1, 1], [], 1.0),
        ("AP@1", [1, 1, 1], [], 1 / 3),
        ("nDCG@1", [1, 1, 1], [], 1.0),
        ("Success@1", [0, 1], [], 0.0),
    ],
)
def test_short_rankings_and_few_relevant_documents(
    name: str, grades: list[float], missing: list[float], value: float
) -> None:
    assert score(name, grades, missing) == pytest.approx(value, rel=1e-15, abs=0)


# --- 5: negative grades and documents without a judgment --------------------------------------------------

MIXED = [-1, None, 1, 0, -2, 1, None]  # and one more of each missing
UNSEEN = [1, 0, -1]


def test_negative_grades_beside_documents_without_a_judgment() -> None:
    assert score("Bpref", MIXED, UNSEEN) == pytest.approx((1 + (1 - 1 / 2)) / 3, rel=1e-15)  # R = 3, N = 2
    e = 0.00001
    third = 1 / 3 + 2 / 3 * (1 / 2) * (e / (2 * e))  # above: one of the pool, unjudged
    sixth = 1 / 6 + 5 / 6 * (4 / 5) * ((1 + e) / (2 + 2 * e))  # above: 1, 0, -1 and -2
    assert score("InfAP", MIXED, UNSEEN) == pytest.approx((third + sixth) / 3, rel=1e-15)
    assert relstring(judge_list(MIXED, missing=UNSEEN)) == [".-10.1-"]
    assert score("NumNonrelRet", MIXED, UNSEEN) == 1
    assert score("NumRel", MIXED, UNSEEN) == 3
    assert score("Unjudged@5", MIXED, UNSEEN) == 3 / 5
    assert score("Unjudged@10", MIXED, UNSEEN) == 4 / 10
    unseen = 0.1 * (1 + 0.9 + 0.9**4 + 0.9**6)
    assert score("RBPResidual(p=0.9)", MIXED, UNSEEN) == pytest.approx(0.9**7 + unseen, rel=1e-15)


def test_without_documents_judged_not_relevant() -> None:
    assert score("Bpref", [None, 1, -1, 1], [1]) == pytest.approx(2 / 3, rel=1e-15)
    assert score("Bpref", [0, 1], []) == 0.0
    assert score("RBPResidual(p=0.9)", [1, 0, 1]) == 0.0


def test_grades_of_two_digits_and_fractions_in_the_string() -> None:
    assert relstring(judge_list([9, 10, 1.9, 0.5, -0.5, None, 0, 1, 2, 3, 4])) == ["9>10.-0123"]


# --- 6: levels of relevance --------------------------------------------------------------------------------


def test_levels_above_every_grade_and_level_0() -> None:
    for name in ("AP", "Rprec", "Bpref", "InfAP", "BinG", "RelP@5", "SetAP", "AP11", "IPrec@0", "RnDCG", "NumRelRet"):
        for level in (2, 3):
            inside, _, behind = name.partition("@")
            assert score(f"{inside}(rel={level})" + (behind and f"@{behind}"), [1, 0, 1, None], [1]) == 0.0, name
    assert score("NumNonrelRet(rel=2)", [1, 0, 1, None, -1]) == 3
    assert score("NumRel(rel=0)", [1, 0, None, -1], [0]) == 3  # a negative grade is never relevant
    assert score("AP(rel=0)", [-1, 0, None, 1]) == (1 / 2 + 2 / 4) / 2
    assert score("InfAP(rel=0)", [0, 1]) == pytest.approx(
        (1 + 1 / 2 + 1 / 2 * ((1 + 1e-5) / (1 + 2e-5))) / 2, rel=1e-15
    )
    assert score("NumNonrelRet(rel=0)", [1, 0]) == 0


def test_graded_measures_know_no_level_but_rndcg() -> None:
    """trec_eval's -l leaves them alone; Rndcg scores 0 where nothing reaches the level."""
    names = ("ndcg", "ndcg_cut", "ndcg_rel", "G", "dcg", "ideal_dcg", "Rndcg")
    lines = {line.root: str(line.measure) for line in expand(*names, level=2)}
    assert lines == {
        "ndcg": "nDCG",
        "ndcg_cut": "nDCG@1000",
        "ndcg_rel": "nDCGrel",
        "G": "G",
        "dcg": "DCG",
        "ideal_dcg": "IdealDCG",
        "Rndcg": "RnDCG(rel=2)",
    }
    assert score("RnDCG(rel=2)", [1, 2]) == score("RnDCG", [1, 2]) > 0
    assert score("RnDCG(rel=3)", [1, 2]) == 0.0


# --- 7: topics that one side lacks ----------------------------------------------------------------------------

QRELS = {"10": {"a": 1, "b": 0}, "9": {"a": 1}, "A": {"a": 1, "b": 2}}
RUN = {"9": {"x": 2.0, "a": 1.0}, "10": {"a": 2.0, "b": 1.0}, "other": {"a": 1.0}}  # AP 1/2 and 1


@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")
@pytest.mark.parametrize(
    ("measure", "common", "all_judged"),
    [
        ("NumQ", 2, 3),
        ("NumRet", 4, 4),
        ("NumRel", 2, 4),
        ("NumRelRet", 2, 2),
        ("NumNonrelRet", 1, 1),
        ("AP", 1.5 / 2, 1.5 / 3),
        ("P@2", 1.0 / 2, 1.0 / 3),
        ("GMAP", math.sqrt(1 / 2), (1 / 2 * FLOOR) ** (1 / 3)),
        ("GMBpref", 1.0, FLOOR ** (1 / 3)),
        ("Utility", 0.0, 0.0),
        ("Unjudged@2", (1 / 2) / 2, (1 / 2) / 3),
        ("RBPResidual(p=0.9)", (0.81 + 0.1) / 2, (0.81 + 0.1) / 3),
        # s = 1 and R = 1; s = 1/2 and R = 1; nothing, and R = 2
        ("Yaap", (math.log(2) + 0) / 2, (math.log(2) + 0 + math.log(1 / 3)) / 3),
    ],
)
def test_topics_that_one_side_lacks(measure: str, common: float, all_judged: float) -> None:
    """Without -c the common topics count (trec_eval 9); with it all that are judged, a missing one as empty."""
    assert evaluate(QRELS, RUN, measure, topics="both").value(measure) == pytest.approx(common, rel=1e-14)
    assert evaluate(QRELS, RUN, measure).value(measure) == pytest.approx(all_judged, rel=1e-14)


# --- 8: gains ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "grades", "missing", "value"),
    [
        ("nDCG(gain={1:9,2:3})", [2, 1], [], (3 + 9 / LOG3) / (9 + 3 / LOG3)),  # swapped
        ("nDCG(gain={1:3.5,2:9.25})", [1, 2], [], (3.5 + 9.25 / LOG3) / (9.25 + 3.5 / LOG3)),
        ("nDCG(gain={1:0})", [1, 2], [], (2 / LOG3) / 2),
        ("nDCG(gain={1:-2,2:5})", [1, 2], [], (-2 + 5 / LOG3) / 5),  # the ideal takes gains above 0 only
        ("DCG(gain={1:-2,2:5})", [1, 2], [], -2 + 5 / LOG3),
        ("IdealDCG(gain={1:-2,2:5})", [1, 2], [1], 5.0),
        ("nDCG(gain={0:1})", [0, 1], [0], (1 + 1 / LOG3) / (1 + 1 / LOG3 + 1 / 2)),
        ("nDCG(gain={7:100})", [1, 2], [], (1 + 2 / LOG3) / (2 + 1 / LOG3)),  # no such grade
        ("nDCG(gain={-1:1})", [-1, 2, None], [], (1 + 2 / LOG3) / (2 + 1 / LOG3)),  # counts in the ideal, not so there
        ("nDCG(gain={-1:1})", [None, -2, 2], [], 1 / 2),  # nor are unjudged ones meant, as they are there
        ("G(gain={1:3,2:9})", [1, 2], [1], (3 / math.log2(2 + 9 - 3) + 9 / math.log2(2 + 12 - 12)) / 15),
        ("G(gain={1:0.25})", [1], [], 0.25 / math.log2(2 + 1 - 0.25) / 0.25),  # a rank costs at least 1
        ("nDCGrel(gain={1:-1})", [1, 2], [], (-1 + 2 / LOG3) / 2),
        ("nDCGrel(gain={1:-1})", [1, 1, 2], [], 0.0),  # -1 - 1/log2(3) + 1 is negative
        ("RnDCG(gain={1:2})", [1, 2], [], 1.0),  # one gain: no change before the end
    ],
)
def test_gains_of_ones_own(name: str, grades: list[float | None], missing: list[float], value: float) -> None:
    assert score(name, grades, missing) == pytest.approx(value, rel=1e-15, abs=0)


def test_where_the_ideal_gain_changes() -> None:
    """Ideal 3, 1, 1: ranks 1 and 3, and the end if it lies more than one document behind 3."""
    one, three = 1 / 3, (1 + 3 / LOG3) / (3 + 1 / LOG3 + 1 / 2)
    assert score("RnDCG", [1, 3, 0], [1]) == pytest.approx((one + three) / 2, rel=1e-15)
    assert score("RnDCG", [1, 3, 0, None], [1]) == pytest.approx((one + three) / 2, rel=1e-15)
    assert score("RnDCG", [1, 3, 0, None, None], [1]) == pytest.approx((one + three + three) / 3, rel=1e-15)
    assert score("RnDCG", [1], [1, 3]) == pytest.approx((one + 1 / (3 + 1 / LOG3 + 1 / 2)) / 2, rel=1e-15)


# --- 9 and 10: what stands in files (see tests/scoring/judging/test_judge.py and tests/data for runs) -----------------


def test_ids_that_look_alike_stay_different(tmp_path: Path) -> None:
    """A composed and a decomposed letter, and a blank that C does not take for one."""
    (tmp_path / "a.qrels").write_text("q 0 é 1\nq 0 e\u0301 2\nq 0 d\u00a0 3\nq 0 d 4\n", encoding="utf-8")
    (tmp_path / "a.run").write_text(
        "q Q0 d 1 4 t\nq Q0 d\u00a0 2 3 t\nq Q0 e\u0301 3 2 t\nq Q0 é 4 1 t\n", encoding="utf-8"
    )
    assert relstring(judge(Qrels.read(tmp_path / "a.qrels"), Run.read(tmp_path / "a.run"))) == ["4321"]


@pytest.mark.parametrize("depth", [None, 1, 2])
def test_a_duplicate_is_refused_at_any_depth(depth: int | None) -> None:
    """trec_eval sees one only among the first -M documents."""
    rows = [judged_row("q", "a", 4.0), judged_row("q", "b", 3.0), judged_row("q", "c", 2.0), judged_row("q", "c", 1.0)]
    with pytest.raises(InputError, match="document c is returned twice for topic q"):
        evaluate({"q": {"a": 1}}, rows, "AP", depth=depth)


def judged_row(topic: str, doc: str, value: float) -> dict[str, Any]:
    return {"query_id": topic, "doc_id": doc, "score": value}


def test_a_duplicate_in_qrels_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.qrels"
    path.write_text("q 0 a 1\nq 0 b 1\nq 0 a 0\n")
    with pytest.raises(InputError) as caught:
        evaluate(path, {"q": {"a": 1.0}}, "AP")
    assert str(caught.value).startswith(f"{path}:3: ")


@pytest.mark.parametrize(
    "text",
    [
        "q 0 a 2\nq 0 b 0\nr 0 a -1\nr 0 c 1\n",
        "q 0 a 2\r\nq 0 b 0\r\nr 0 a -1\r\nr 0 c 1\r\n",
        "\ufeffq 0 a 2\nq 0 b 0\nr 0 a -1\nr 0 c 1",
        "q\t0\ta\t2\nq\t0\tb\t0\nr\t0\ta\t-1\nr\t0\tc\t1\n",
        "  q 0  a 2  \n\n\tq 0 b 0\nr 0 a -1\nr 0 c 1\n\n\n",
        "# one\nq 0 a 2\nq 0 b 0\n# two\nr 0 a -1\n#\nr 0 c 1\n# three",
        "q a 2\nq b 0\nr a -1\nr c 1\n",
        "q 0 a 2.0\nq 0 b 0.0\nr 0 a -1.0\nr 0 c 1.0\n",
    ],
    ids=["plain", "crlf", "bom", "tabs", "blanks", "comments", "three columns", "decimals"],
)
@pytest.mark.parametrize("packed", [False, True])
def test_qrels_may_look_many_ways(text: str, packed: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.qrels"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    found = judge(Qrels.read(path), {"q": {"a": 2.0, "b": 1.0}, "r": {"x": 3.0, "a": 2.0, "c": 1.0}})
    assert found.query_ids == ("q", "r")
    assert relstring(found) == ["20", "-.1"]


def test_sampled_qrels_of_five_columns(tmp_path: Path) -> None:
    """Topic, document, grade, method and probability, as in the million query track."""
    path = tmp_path / "a.prels"
    path.write_text("q a 2 1 0.5\nq b 0 0 1\n")
    assert relstring(judge(Qrels.read(path), {"q": {"b": 2.0, "x": 1.5, "a": 1.0}})) == ["0-2"]


# --- 11: the order of addition -----------------------------------------------------------------------------------


def test_topics_are_added_up_in_byte_order() -> None:
    """P@10 of topic 9 is .3, of 10 .2 and of 100 .1: 10, 100, 9 add up to 0.6000000000000001, 9, 10, 100 to 0.6."""
    hits = {"9": 3, "10": 2, "100": 1}
    qrels = {topic: {f"d{at}": 1 for at in range(count)} for topic, count in hits.items()}
    run = {topic: {f"d{at}": float(-at) for at in range(10)} for topic in hits}
    scores = evaluate(qrels, run, ["P@10", "GMAP", "Utility"])
    assert scores.query_ids == ("10", "100", "9")
    assert scores.value("P@10") == (0.2 + 0.1 + 0.3) / 3 != (0.3 + 0.2 + 0.1) / 3
    assert scores.value("Utility") == (-6 - 8 - 4) / 3
    assert scores.value("GMAP") == 1.0


# --- 12: what Python users hand over (see also tests/scoring/judging/test_judge.py) -----------------------------------


def test_numbers_of_numpy_and_whole_numbers_as_ids() -> None:
    scores = evaluate(
        {1: {7: np.int64(1), 8: np.float32(0.5)}}, {1: {8: np.float32(2), 7: np.float64(1)}}, ["RR", "RR(rel=0.5)"]
    )
    assert (scores.value("RR"), scores.value("RR(rel=0.5)")) == (0.5, 1.0)


def test_grades_may_be_fractions() -> None:
    """trec_eval would cut them to whole numbers; here they are what they are."""
    assert score("AP(rel=1.5)", [1.5, 1.25, 2]) == (1 + 2 / 3) / 2
    assert score("nDCG", [0.5, 1.5]) == pytest.approx((0.5 + 1.5 / LOG3) / (1.5 + 0.5 / LOG3), rel=1e-15)


@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")
def test_runs_of_one_document_and_of_none() -> None:
    for run, value in (({"q": {"a": 1.0}}, 1.0), ({"q": {"x": 1.0}}, 0.0)):
        assert evaluate({"q": {"a": 1}}, run, "AP").value("AP") == value
    assert judge({"q": {"a": 1}}, {"q": {}}).returned.tolist() == [0]
    for name in ("AP", "AP11", "RBPResidual(p=0.9)", "G", "nDCGrel", "RnDCG", "InfAP", "Yaap"):
        assert np.isfinite(parse(name)(judge({"q": {"a": 1}}, {}))).all(), name


def test_a_million_topics(tmp_path: Path) -> None:
    """4.14, item 12: every other topic returns its relevant document, and the ids sort as bytes."""
    topics = range(1_000_000)
    (tmp_path / "m.qrels").write_text("".join(f"{at} 0 d{at} 1\n" for at in topics))
    (tmp_path / "m.run").write_text("".join(f"{at} Q0 d{at if at % 2 else 'x'} 1 1.0 t\n" for at in topics))
    scores = judged.evaluate(tmp_path / "m.qrels", tmp_path / "m.run", ["AP", "NumQ"])
    assert scores.aggregate() == {"m": {"AP": 0.5, "NumQ": 1e6}}
    assert scores.query_ids[:3] == ("0", "1", "10")
