"""What the workings of graded measures, of subtopics and of preferences show, and what they leave out."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import judged
from judged import Qrels
from judged.scoring.explanation import explain_list
from judged.scoring.judging import judge_list
from judged.scoring.judging.calculation import Calculation, CalculationStep
from judged.scoring.measures.registry import REGISTRY
from scoring.explanation.formulas import check
from variants import listed, variants

if TYPE_CHECKING:
    from judged import Judged
    from judged.scoring.explanation import Sheet
    from judged.scoring.measures import Measure


def tables(grades: Any, name: str, missing: Any = ()) -> dict[str, Sheet]:
    return {sheet.title: sheet for sheet in explain_list(judge_list(grades, missing=missing), name).sheets}


def column(sheet: Sheet, name: str) -> list[Any]:
    return [row[sheet.header.index(name)] for row in sheet.rows]


def lines(sheet: Sheet) -> dict[str, float]:
    return {line.name: line.value for line in sheet.lines}


# --- gains and discounts ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "grades", "rules"),
    [
        ("DCG", [1], {"gain": "grade", "discount": "log2(rank + 1)"}),
        ("DCG(gain=exp2,discount=ln)", [1], {"gain": "2^grade - 1", "discount": "ln(rank + 1)"}),
        ("DCG(gain=exp2)", [1, -1], {"gain": "2^max(grade, 0) - 1", "discount": "log2(rank + 1)"}),
        ("DCG@1", [1, -1], {"gain": "grade", "discount": "log2(rank + 1)"}),
        ("DCG(discount=original)", [1], {"gain": "grade", "discount": "max(1, log2(rank))"}),
        ("DCG(discount=original,base=10)", [1], {"gain": "grade", "discount": "max(1, log2(rank) / log2(10))"}),
        (
            "DCG(gain={1:1,2:5})",
            [2, 1],
            {"gain": "1 for grade 1, 5 for grade 2, else grade", "discount": "log2(rank + 1)"},
        ),
    ],
)
def test_the_rules_of_gain_and_discount_stand_below_the_table(name: str, grades: Any, rules: Any) -> None:
    assert tables(grades, name)["ranking"].formulas == rules


@pytest.mark.parametrize(
    ("zeros_above", "num_rows"),
    [(0, 10), (5, 10), (8, 10), (9, 10), (10, 11), (20, 21)],
)
def test_a_tail_that_gains_nothing_is_shown_as_far_as_rank_10(zeros_above: int, num_rows: int) -> None:
    grades = [0] * zeros_above + [1] + [0] * 30
    assert column(tables(grades, "nDCG")["ranking"], "rank") == list(range(1, num_rows + 1))
    assert column(tables(grades, "nDCG")["ideal ranking"], "rank") == list(range(1, 11))
    assert column(tables(grades, "nDCG@5")["ranking"], "rank") == list(range(1, 6))
    assert column(tables(grades, "nDCG@25")["ranking"], "so far")[-1] is not None


def test_a_tail_of_losses_is_shown() -> None:
    sheet = tables([1] + [0] * 12 + [3], "DCG(gain={3:-1})")["ranking"]
    assert (len(sheet.rows), column(sheet, "gain")[-1]) == (14, -1.0)


# --- the residual of RBP ------------------------------------------------------------------------------


def test_weights_too_small_to_see_are_left_out_and_added_up() -> None:
    sheet = tables([1] + [None] * 20, "RBPResidual(p=0.5)")["ranking"]
    assert [rank for rank, weight in zip(column(sheet, "rank"), column(sheet, "weight"), strict=True) if weight] == [
        *range(2, 16)
    ]
    remaining_weight = sum(0.5**rank for rank in range(15, 21))
    assert lines(sheet) == {
        "unjudged": 20.0,
        "weights not shown": remaining_weight,
        "weights": 1.0 - 0.5**20,
        "RBPResidual(p=0.5)": 0.5**21 + 0.5 * (1 - 0.5**20),
    }


def test_a_ranking_that_is_all_judged_has_no_residual_and_says_why() -> None:
    (sheet,) = explain_list(judge_list([1, 0]), "RBPResidual(p=0.5)").sheets
    assert (sheet.header, lines(sheet)["unjudged"], sheet.lines[-1].value) == ((), 0.0, 0.0)
    assert sheet.lines[-1].numbers == "0 * (0.5000^2 + (1 - 0.5000) * 0)"


# --- graded average precision -------------------------------------------------------------------------


def test_gap_shows_all_judged_documents_by_grade() -> None:
    sheet = tables([1, 2, 2, 0], "GAP", missing=[2, 4, 0])["judged documents by grade"]
    assert sheet.rows == ((4.0, 4.0, 1.0), (2.0, 2.0, 3.0), (1.0, 1.0, 1.0))
    assert lines(sheet)["expected relevant"] == 4 + 2 * 3 + 1


# --- subtopics and assessors --------------------------------------------------------------------------


def test_subtopics_stand_side_by_side_unless_they_are_many() -> None:
    few, many = (
        [tuple(int(subtopic == document) for subtopic in range(count)) for document in range(count)] for count in (8, 9)
    )
    assert tables(few, "AlphaDCG@3")["ranking"].header[3:] == (
        *(f"subtopic {subtopic}" for subtopic in range(1, 9)),
        *("G", "G / log2(rank + 1)", "so far"),
    )
    assert tables(many, "AlphaDCG@3")["ranking"].header[3:] == ("G", "G / log2(rank + 1)", "so far")


def test_the_most_that_is_possible_is_shown_for_20_ranks() -> None:
    sheets = tables([(1, 0), (0, 1)], "ERRIA@30")
    assert len(sheets["documents that all cover every subtopic, the first 20"].rows) == 20
    exact = tables([(1, 0), (0, 1)], "ERRIA@2")["documents that all cover every subtopic"]
    assert exact.rows == ((1.0, 2.0, 2.0, 2.0), (2.0, 1.0, 0.5, 2.5))
    assert lines(exact) == {"possible": 2.5, "ERRIA@2": 1.5 / 2.5}


def test_a_mean_over_subtopics_lists_those_that_count() -> None:
    sheets = tables([(1, 0, 0), (1, 1, 0)], "APIA")
    assert list(sheets) == [
        *(f"ranking for subtopic: list {subtopic}" for subtopic in (1, 2, 3)),
        "AP of each subtopic",
    ]
    assert sheets["AP of each subtopic"].rows == (("1", 1.0), ("2", 0.5))
    assert sheets["AP of each subtopic"].lines[-1].numbers == "1.5000 / 2"
    assert tables([(1, 0, 0), (1, 1, 0)], "APjg")["AP of each assessor"].rows == (("1", 1.0), ("2", 0.5), ("3", 0.0))


def test_coverage_counts_documents_of_each_subtopic() -> None:
    sheets = tables([(1, 0), (1, 1), (0, 1)], "StRecall@1", missing=[(0, 1)])
    assert sheets["ranking"].rows == ((1.0, "d1", 1.0, 1.0),)
    assert sheets["subtopics"].rows == (("1", 1.0), ("2", 0.0))
    assert tables([(1, 0), (1, 1)], "PIA@2")["subtopics"].rows == (("1", 2.0), ("2", 1.0))


# --- preferences --------------------------------------------------------------------------------------


def test_preferences_are_shown_one_by_one() -> None:
    sheet = tables([1, 3, None], "PrefShare", missing=[0])["preferences"]
    assert sheet.header == ("better", "rank of better", "worse", "rank of worse", "satisfied")
    assert sheet.rows == (("d1", 1.0, "m1", None, 1.0), ("d2", 2.0, "d1", 1.0, 0.0), ("d2", 2.0, "m1", None, 1.0))
    assert sheet.lines[-1].numbers == "2 / 3"


def test_preferences_between_missing_documents_are_not_kept() -> None:
    assert tables([0], "NumPrefs", missing=[1, 0])["preferences"].rows == (
        ("m1", None, "d1", 1.0, 0.0),
        ("m1", None, "m2", None, 0.0),
    )
    assert tables([2, 1], "PrefShare(over=retrieved)", missing=[0])["preferences"].rows == (
        ("d1", 1.0, "d2", 2.0, 1.0),
    )


def test_more_than_20_preferences_are_only_counted() -> None:
    assert list(tables(range(6), "PrefShare")) == ["preferences"]  # 15 of them
    assert list(tables(range(7), "PrefShare")) == [""]  # 21


def test_users_stand_by_name() -> None:
    sheets = tables([(1, 1), (0, 2), (0, 3)], "PrefShare(mean=users)")
    assert sheets["preferences of each user"].rows == (("1", 2.0, 2.0, 1.0), ("2", 0.0, 3.0, 0.0))
    assert sheets["preferences of each user"].lines[-1].numbers == "1 / 2"
    pairs = tables([(1, 1), (0, 2), (0, 3)], "PrefShare(mean=pairs)")["pairs of documents"]
    assert pairs.rows == (("d1", "d2", 2.0, 0.5), ("d1", "d3", 2.0, 0.5), ("d2", "d3", 1.0, 0.0))
    assert pairs.lines[-1].numbers == "1 / 3"


def test_the_table_of_balanced_preferences_adds_up() -> None:
    table = pa.table(
        {
            "query_id": ["q"] * 7,
            "doc_id": ["a", "b", "c", "a", "b", "c", "d"],
            "iteration": ["ann", "ann", "ann", "bob", "bob", "bob", "bob"],
            "relevance": [1.0, 0.0, 2.0, 0.0, 1.0, 0.0, 0.0],
        }
    )
    hits = judged.judge(Qrels(table), {"q": {"a": 3.0, "b": 2.0, "c": 1.0}})
    explanation = explain_list(hits, "BalancedPrefShare")
    (sheet,) = explanation.sheets
    assert column(sheet, "user") == ["ann", "bob"]
    assert column(sheet, "R") == [2.0, 1.0]
    assert column(sheet, "N") == [1.0, 3.0]
    for row in sheet.rows:
        of = dict(zip(sheet.header, row, strict=True))
        assert of["satisfied"] == of["stated_satisfied"] + of["r"] * of["added"] + of["among_zeros_satisfied"]
        assert of["possible"] == of["stated"] + of["R"] * of["added"] + of["among_zeros"]
        assert of["share"] == of["satisfied"] / of["possible"]
    assert explanation.score == sum(column(sheet, "share")) / 2


# --- several labels a document ------------------------------------------------------------------------

LISTS = [
    ([(1, 0), (0, 2), None, (1, 1)], [(2, 1), (0, 0)]),
    ([(1, 0, 0), (1, 1, 0), (-1, 0, 0)], [(0, 0, 3)]),
    ([(0, 0), (0, 0)], []),
    ([None], [(1, 1)]),
]


@pytest.mark.parametrize("name", [name for name in REGISTRY if REGISTRY[name].properties.uses_all_labels])
@pytest.mark.parametrize(("grades", "missing"), LISTS)
def test_the_score_follows_where_documents_have_several_labels(name: str, grades: Any, missing: Any) -> None:
    hits = listed(grades, missing)
    for measure in variants(name):
        sheet = Calculation()
        score = measure(replace(hits, calculation=sheet))[0]
        last = sheet.entries[-1]
        assert (last.name, score) == (str(measure), pytest.approx(measure(hits)[0], rel=0, abs=0, nan_ok=True))
        assert isinstance(last, CalculationStep)
        assert last.values[0] == pytest.approx(score, rel=0, abs=0, nan_ok=True)
        assert [check(sheet.entries, position) for position in range(len(sheet.entries))][-1] or not defined(
            measure, hits
        )


def defined(measure: Measure, hits: Judged) -> bool:
    return getattr(measure, "undefined", 0.0) == 0.0 or bool(measure.is_defined(hits)[0])


def test_a_table_of_two_columns_is_shown_in_full() -> None:
    text = str(explain_list(judge_list([(1, 1, 1, 1)]), "StRecall@5"))
    assert re.findall(r"^ *(\d) +1$", text, re.MULTILINE) == ["1", "2", "3", "4"]
