"""AWRF compared with hand calculations and with the arithmetic of TREC Fair Ranking."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import judged
from judged import InputError, MeasureError
from judged.scoring.measures import AWRF, parse

GROUPS = list("abacbbaccaabc")
TABLE = {"a": 0.5, "b": 0.3, "c": 0.2}
PRINTED = {
    # 1 - jensenshannon(exposure, target)**2 with scipy 1.17.1, the groups in the order above: the first k of them,
    # attention 1/log2(max(r, 2)) as in the script of TREC Fair Ranking 2022 (in doubles), then 0.5^(r-1)
    1: (0.7842384456611643, 0.7842384456611643),
    2: (0.9180517049832202, 0.924273688485262),
    5: (0.9932165125419934, 0.977147646118246),
    13: (0.9970110961452074, 0.9791899638035141),
}


@pytest.mark.parametrize("cutoff", PRINTED)
def test_the_arithmetic_of_trec_fair_ranking(cutoff: int) -> None:
    logarithmic, geometric = PRINTED[cutoff]
    grades = [1.0] * 13
    facts = {"group": GROUPS}
    for measure, value in ((AWRF(target=TABLE), logarithmic), (AWRF(p=0.5, target=TABLE), geometric)):
        assert measure.replace(cutoff=cutoff).of_list(grades, facts=facts) == pytest.approx(value, rel=1e-14)
        groups = GROUPS[:cutoff]
        assert measure.of_list(grades[:cutoff], facts={"group": groups}) == pytest.approx(value, rel=1e-14)


def test_the_target_may_be_the_share_among_relevant_documents() -> None:
    """Two relevant documents of a, one of c: the target is 2/3, 0, 1/3 (scipy 1.17.1 as above, target {a: 2, c: 1})."""
    qrels = {"q": {"d1": 1, "d3": 2, "d4": 1, "d2": 0}}
    run = {"q": {f"d{number}": -float(number) for number in range(1, 14)}}
    documents = {f"d{number}": {"group": group} for number, group in enumerate(GROUPS, 1)}
    names = ["AWRF@1", "AWRF@2", "AWRF@5", "AWRF"]
    scores = judged.evaluate(qrels, run, names, documents=documents)
    expected = [0.8676958752811017, 0.7052158805153298, 0.8308101994234509, 0.8625320064711266]
    assert [scores.value(name) for name in names] == pytest.approx(expected, rel=1e-14)
    only = judged.evaluate(qrels, run, "AWRF(rel=2)@1", documents=documents)  # d3 alone: all attention is due to a
    assert only.value("AWRF(rel=2)@1") == 1.0


def test_the_target_may_be_the_share_in_the_collection() -> None:
    """Of four known documents three are of b: exposure (1, 0) against (1/4, 3/4), by hand."""
    documents = {"d1": {"group": "a"}, **{f"d{number}": {"group": "b"} for number in (2, 3, 4)}}
    scores = judged.evaluate({"q": {"d1": 1}}, {"q": {"d1": 1.0}}, "AWRF(target=collection)", documents=documents)
    divergence = (math.log(1 / (5 / 8)) + 1 / 4 * math.log((1 / 4) / (5 / 8)) + 3 / 4 * math.log((3 / 4) / (3 / 8))) / 2
    assert scores.value("AWRF(target=collection)") == pytest.approx(1 - divergence, rel=1e-14)


def test_groups_with_nothing_in_common_are_the_least() -> None:
    least = AWRF(target={"b": 1.0}).of_list([1, 1], facts={"group": ["a", "a"]})
    assert least == pytest.approx(1 - math.log(2), rel=1e-15)
    assert AWRF(target={"a": 1.0}).of_list([1, 1], facts={"group": ["a", "a"]}) == 1.0


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=8), st.sampled_from([None, 0.5, 0.9, 1.0]))
def test_a_target_that_is_the_exposure_itself_is_met(groups: list[str], p: float | None) -> None:
    attention = [1 / math.log2(max(r, 2)) if p is None else p ** (r - 1) for r in range(1, len(groups) + 1)]
    share = {
        target_group: sum(weight for weight, group in zip(attention, groups, strict=True) if group == target_group)
        / sum(attention)
        for target_group in "abc"
    }
    measure = AWRF(p=p, target=share)
    assert measure.of_list([0] * len(groups), facts={"group": groups}) == pytest.approx(1.0, abs=1e-12)


def test_topics_are_apart() -> None:
    qrels = {"1": {"x": 1, "y": 1}, "2": {"y": 1}, "3": {"x": 0}, "4": {"x": 1}}
    run = {"1": {"x": 2.0, "y": 1.0}, "2": {"x": 2.0, "y": 1.0}, "3": {"x": 1.0}}
    documents = {"x": {"group": 1}, "y": {"group": 2}}
    judged_list = judged.judge(qrels, run, documents=documents)
    # topic 2: exposure (1/2, 1/2) against (0, 1); nothing relevant in 3; nothing returned in 4
    second = 1 - (math.log(2) / 2 + math.log((1 / 2) / (3 / 4)) / 2 + math.log(1 / (3 / 4))) / 2
    assert AWRF()(judged_list).tolist() == pytest.approx([1.0, second, 0.0, 0.0], rel=1e-14)
    skipped = AWRF(undefined="skip")(judged_list)  # type: ignore[arg-type]
    assert np.isnan(skipped).tolist() == [False, False, True, False]
    # with a target of its own every topic is defined, also the third, which shows one of two groups
    third = 1 - (math.log(1 / (3 / 4)) + math.log((1 / 2) / (3 / 4)) / 2 + math.log(2) / 2) / 2
    due = {"1": 0.5, "2": 0.5}
    assert AWRF(target=due)(judged_list).tolist() == pytest.approx([1.0, 1.0, third, 0.0], rel=1e-14)


@pytest.mark.parametrize("target", ["collection", {"1": 0.5, "2": 0.5}])
@pytest.mark.parametrize("undefined", ["skip", 1.0])
def test_a_score_of_undefined_topics_is_refused_where_every_topic_is_defined(target: Any, undefined: Any) -> None:
    with pytest.raises(MeasureError):
        AWRF(target=target, undefined=undefined)
    assert AWRF(target=target, undefined=0.0) == AWRF(target=target)


def test_groups_that_get_nothing_and_groups_that_are_due_nothing() -> None:
    """Attention: a and b 1/2 each. Target: a 1/2, c and d 1/4 each. Half of each distribution is disjoint."""
    measure = AWRF(target={"a": 0.5, "c": 0.25, "d": 0.25})
    assert measure.of_list([1, 1], facts={"group": ["a", "b"]}) == pytest.approx(1 - math.log(2) / 2, rel=1e-15)
    relevant = {"q": {"x": 1, "v": 1, "w": 1, "z": 1, "y": 0}}
    documents = {doc: {"group": group} for doc, group in zip("xvwzy", "aacdb", strict=True)}
    judged_list = judged.judge(relevant, {"q": {"x": 2.0, "y": 1.0}}, documents=documents)
    assert AWRF()(judged_list)[0] == pytest.approx(1 - math.log(2) / 2, rel=1e-15)


def test_names_are_read_back() -> None:
    measure = AWRF(target={"news": 0.25, "blogs": 0.75}, p=0.8, cutoff=20)
    assert str(measure) == "AWRF(p=0.8,target={blogs:0.75,news:0.25})@20"
    assert parse(str(measure)) == measure == parse("awrf(target={ news:0.25, blogs : 0.75 }, p=.8)@20")
    assert AWRF(target={1: 0.5, 2.0: 0.5}) == AWRF(target={"1": 0.5, "2": 0.5})


@pytest.mark.parametrize("wrong", [{"a": 0.5}, {"a": 2.0}, {}, {"a:b": 1.0}, {" ": 1.0}, "even", {"a,b": 1.0}])
def test_a_target_is_a_share_for_each_group(wrong: object) -> None:
    with pytest.raises(
        MeasureError,
        match=r"Fix: use the word relevant or collection, or a table of groups with shares that sum to 1, such as",
    ):
        AWRF(target=wrong)  # type: ignore[arg-type]


def test_what_is_not_known_of_documents_is_asked_for() -> None:
    with pytest.raises(MeasureError, match=r"AWRF requires the group of every returned document\. Fix: pass"):
        AWRF().of_list([1, 0])
    with pytest.raises(InputError, match="1 returned documents have no group: m1"):
        AWRF().of_list([0], missing=[1], facts={"group": ["a"]})
