"""The calculation that each measure records leads to its score."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings

from judged.scoring.explanation import explain_list
from judged.scoring.explanation.sheets import format_number
from judged.scoring.judging.calculation import Calculation, CalculationStep
from scoring.explanation.formulas import check
from strategies import collections
from variants import ALL, OF_RANKINGS, judge, shares, some, variants

if TYPE_CHECKING:
    from judged import Judged
    from judged.scoring.measures import Measure

INPUT_VALUES = {"NumRet", "NumQ"}
"""Measures whose score is an input value: there is no formula to check."""

BY_ZERO = " (a division by 0 counts as 0)"

COLLECTION = (
    {"q": {"a": 3, "b": 1, "c": 0, "d": 2, "e": -1, "m": 1, "n": 0}, "r": {"a": 1}},
    {"q": {"a": 9.0, "x": 8.0, "c": 7.0, "b": 6.0, "e": 5.0, "d": 4.0, "y": 3.0}, "r": {"b": 1.0}},
)


def working(measure: Measure, judged: Judged, topic: str) -> tuple[Calculation, float]:
    sheet = Calculation()
    return sheet, float(measure(replace(judged.only(topic), calculation=sheet))[0])


def same(first: float, second: float) -> bool:
    return first == second or (math.isnan(first) and math.isnan(second))


@pytest.mark.parametrize("name", OF_RANKINGS)
def test_the_last_number_is_the_score_and_follows_from_what_is_written(name: str) -> None:
    judged = judge(*COLLECTION)
    for measure in variants(name):
        sheet, score = working(measure, judged, "q")
        last = sheet.entries[-1]
        assert isinstance(last, CalculationStep), measure
        assert last.name == str(measure)
        assert same(float(last.values[0]), score), measure
        checked = [check(sheet.entries, position) for position in range(len(sheet.entries))]
        assert checked[-1] or name in INPUT_VALUES, (
            f"{measure}: {last.how!r} cannot be computed from {dict(last.parts)}"
        )


@settings(max_examples=18)
@given(collections(), shares)
def test_explanations_of_any_list(collection: tuple[Any, Any], share: int) -> None:
    judged = judge(*collection)
    for measure in some(ALL, share):
        scores = measure(judged)
        for topic_index, topic in enumerate(judged.query_ids[:2]):
            explanation = explain_list(judged, measure, topic)
            assert same(explanation.score, float(scores[topic_index])), measure
            last = explanation.sheets[-1].lines[-1]
            assert (last.name, same(last.value, explanation.score)) == (str(measure), True)
            assert " ".join(explanation.text().split()).removesuffix(BY_ZERO).endswith(format_number(explanation.score))
            sheet, _ = working(measure, judged, topic)
            for position in range(len(sheet.entries)):
                check(sheet.entries, position)
