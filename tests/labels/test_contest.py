"""What labels can still decide between two runs, against every way to grade the open documents."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from judged.data import Qrels
from judged.errors import InputError, MeasureError
from judged.labels import decide
from judged.labels.deciding import contest, winner
from judged.scoring.judging import judge
from judged.scoring.measures.grammar import parse

MEASURES = ("nDCG@3", "P@3", "DCG@3", "RBP(p=0.8)@3", "NCG@3", "nDCG(gain=exp2)@3")


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("outside", [0, 1])
def test_bounds_are_those_of_all_ways_to_grade(measure: str, outside: int) -> None:
    random = np.random.default_rng(7)
    docs = [f"d{at}" for at in range(6)]
    for _ in range(8):
        first, second = ([str(doc) for doc in random.permutation(docs)[:4]] for _ in range(2))
        known = {str(doc): int(random.integers(3)) for doc in random.permutation(docs)[:3]}
        made = contest(Qrels.of({"q": known}), {"q": first}, {"q": second}, measure, highest=2, outside=outside)
        still = [doc for doc in docs if doc in {*first[:3], *second[:3]} - set(known)] + ["other"] * outside
        ways = [known | dict(zip(still, way, strict=True)) for way in itertools.product(range(3), repeat=len(still))]
        qrels = {f"{at:04d}": way for at, way in enumerate(ways)}
        lists = [judge(qrels, dict.fromkeys(qrels, run)) for run in (first, second)]
        differences = parse(measure)(lists[0]) - parse(measure)(lists[1])
        found = made.bounds(np.array([0]), made.level)[:, 0]
        assert found == pytest.approx([differences.min(), differences.max()], abs=1e-12)


def test_a_contest_is_decided_once_the_rest_cannot_turn_it() -> None:
    qrels = Qrels.of({"q": {"a": 1, "b": 0}})
    made = contest(qrels, {"q": ["a", "b"]}, {"q": ["b", "c"]}, "P@2")
    assert winner(made.bounds(np.array([0]), made.level)) is None
    assert winner(made.bounds(np.array([0]), np.where(made.open, 0, made.level))) == 0


def test_equal_runs_are_equal_and_nothing_is_left_to_label() -> None:
    made = decide({"q": {"a": 1}}, {"q": ["a", "b"]}, {"q": ["a", "b"]}, "P@2")
    assert (made.decided, made.low, made.high) == (False, 0.0, 0.0)
    assert made.sentences[1].startswith("Equal")


@pytest.mark.parametrize("measure", ["AP", "nDCG", "RR@10", "nDCG(undefined=1)@5"])
def test_measures_whose_labels_do_not_add_up_are_refused(measure: str) -> None:
    with pytest.raises(MeasureError):
        contest(Qrels.of({"q": {"a": 1}}), {"q": ["a"]}, {"q": ["b"]}, measure)


def test_grades_that_never_gain_leave_no_range() -> None:
    found = decide({"q": {"a": 1}}, {"q": ["a", "b"]}, {"q": ["b", "c"]}, "P(rel=2)@2")  # 1 is the highest grade
    assert (found.low, found.high) == (0, 0)


def test_seeds_are_from_0() -> None:
    with pytest.raises(InputError, match="seed"):
        decide({"q": {"a": 1}}, {"q": ["a", "b"]}, {"q": ["b", "c"]}, "P@2", seed=-1)
