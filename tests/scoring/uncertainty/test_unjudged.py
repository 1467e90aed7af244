"""The range over the grades of unjudged documents, against all ways to grade them."""

from __future__ import annotations

import itertools
import math
import random
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judged
from judged import AP, ERR, InputError, Judged, P, nDCG
from judged.scoring.judging import judge_list
from judged.scoring.judging.unjudged import complete_judgments, find_unjudged, repeat_topics
from judged.scoring.measures import Measure, Properties, parse
from judged.scoring.uncertainty import arrangements
from judged.scoring.uncertainty import unjudged as module
from judged.scoring.uncertainty.arrangements import GradeSearch, range_by_counts, range_by_enumeration
from judged.scoring.uncertainty.ratio import range_by_ratio
from judged.scoring.uncertainty.unjudged import grade_levels, unjudged_range
from shared_data import SHARED, needs_shared
from strategies import collections, untied
from variants import ALL, OF_RANKINGS, SCORED, judge, listed, variants

NAMES = [f"d{at:02d}" for at in range(20)]
SCALES = ((0, 1), (0, 1, 2), (-1, 0, 1, 2, 3), (0, 0, 0, 1), (0, 0.5, 1, 2), (1, 2, 3))
_MOST_WAYS = 700


def _topic(chance: random.Random, most: int) -> tuple[dict[str, float], dict[str, float], int]:
    """Make judgments and a ranking of which some documents are unjudged: up to so many; and give how many."""
    returned = chance.sample(NAMES, chance.randint(1, most + 3))
    unknown = set(chance.sample(returned, chance.randint(1, min(len(returned), most))))
    scale = chance.choice(SCALES)
    known = [doc for doc in returned if doc not in unknown]
    known += chance.sample(sorted(set(NAMES) - set(returned)), chance.randint(0 if known else 1, 3))
    return (
        {doc: float(chance.choice(scale)) for doc in known},
        {doc: -float(at) for at, doc in enumerate(returned)},
        len(unknown),
    )


def _every_way(qrels: dict[str, float], run: dict[str, float], levels: list[float]) -> Judged:
    """Judge a topic with every way to grade its unjudged documents, by qrels that hold these grades."""
    unknown = [doc for doc in run if doc not in qrels]
    ways = [dict(zip(unknown, way, strict=True)) for way in itertools.product(levels, repeat=len(unknown))]
    names = [f"{at:05d}" for at in range(len(ways))]
    return judge({name: {**qrels, **way} for name, way in zip(names, ways, strict=True)}, dict.fromkeys(names, run))


def _check(one: Measure, chance: random.Random, most: int, ways: int, **policy: Any) -> str | None:
    """Hold the range of a random topic against enumeration, and give its kind; None where that is too much work."""
    qrels, run, size = _topic(chance, most)
    found = judge({"t": qrels}, {"t": run})
    highest = chance.choice((None, None, 1, 2, 3))
    if (own := getattr(one, "max", None)) is not None and not isinstance(own, str):
        highest = None  # the scale is the measure's
    levels = grade_levels(found, one, highest).tolist()
    if len(levels) ** size > ways:
        return None
    scores = one(_every_way(qrels, run, levels))
    low, high = np.fmin.reduce(scores), np.fmax.reduce(scores)
    got = unjudged_range(found, one, highest=highest, **policy)
    what = (one, qrels, run, highest, got)
    if got.kind[0] == "exact":
        np.testing.assert_allclose((got.low[0], got.high[0]), (low, high), rtol=0, atol=1e-12, err_msg=str(what))
    else:
        assert math.isnan(low) or got.low[0] <= low + 1e-12, what
        assert math.isnan(high) or got.high[0] >= high - 1e-12, what
    return str(got.kind[0])


def _kinds(one: Measure, times: int, most: int, ways: int = _MOST_WAYS, **policy: Any) -> list[str]:
    chance = random.Random(zlib.crc32(f"{one}{sorted(policy)}".encode()))  # noqa: S311 - nothing secret
    kinds: list[str] = []
    while len(kinds) < times:
        if kind := _check(one, chance, most, ways, **policy):
            kinds.append(kind)
    return kinds


@pytest.mark.parametrize("name", OF_RANKINGS)
def test_every_measure_with_every_parameter(name: str) -> None:
    """Few ways to grade are tried, and exact. Without trying, the range is exact or wider."""
    for one in variants(name):
        assert _kinds(one, 1, 4) == ["exact"]
        _kinds(one, 1, 4, max_orders=0)


BINARY = [
    "AP", "AP@3", "AP(norm=returned)", "AP(norm=cutoff)@4", "AP(judged_only=true)", "AP(undefined=skip)",
    "AP(rel=2)@5", "GMAP", "SetAP", "AP11", "R@4", "R(judged_only=true)@3", "R(undefined=1)@2", "SetR", "F@5",
    "SetF", "RelP@4", "SetRelP", "Rprec", "RprecMult@0.5", "IPrec@0.3", "IPrec@0.8", "BinG", "InfAP", "Bpref",
    "GMBpref", "Yaap", "RR", "RR(which=last)", "Success@3", "P@4", "P(undefined=skip)@2", "SetP", "RBP(p=0.8)",
    "NumRelRet@3", "NumNonrelRet", "Utility(c=-1)", "PairAccuracy", "Accuracy(n=99)", "Generality(n=99)",
    "Fallout(n=99)",
]  # fmt: skip
GRADED = [
    "nDCG", "nDCG@3", "nDCG(gain=exp2)@4", "nDCG(discount=original)", "nDCG(discount=original,base=3)@5",
    "nDCG(discount=ln)@2", "nDCG(judged_only=true)@3", "nDCG(undefined=skip)@3",
    "nDCG(gain={0:1,1:5,2:3,3:4})@4", "nDCG(gain={1:0,2:4})", "NCG@3", "NCG@5", "NCG(undefined=1)@1",
    "NCG(gain=exp2,judged_only=true)@4",
]  # fmt: skip
MONOTONE = [
    "CG@3", "DCG", "DCG(gain=exp2)@4", "IdealDCG@3", "ERR(max=3)", "ERR(max=3,undefined=skip)@2", "INST(max=3)",
    "NERR8(max=3)@4", "RBP(p=0.5,gain=graded,max=3)", "SDCG(max=3)@4", "UMeasure(L=500)",
]  # fmt: skip


@pytest.mark.parametrize("name", [*BINARY, *GRADED, *MONOTONE])
def test_known_measures_are_exact_without_trying(name: str) -> None:
    """The shapes of these formulas are known, so that no limit is needed, however many documents are unjudged."""
    one = parse(name)
    assert set(_kinds(one, 8, 9 if name in BINARY else 5, 1100, max_orders=0)) <= {"exact"}


@pytest.mark.parametrize("name", ["Q", "Q@3", "GAP", "RBP(p=0.8,gain=graded,max=topic)"])
def test_a_ranking_against_an_ideal_is_bounded_by_both_apart(name: str) -> None:
    assert set(_kinds(parse(name), 20, 4, max_orders=0)) == {"outer"}


def test_the_outer_range_is_not_all_that_is_declared() -> None:
    """GAP of [2, -, 1]: at worst 0, but 2 more in the ideal: (2 + (1 + 1)/3) / 5; at best (2 + 4/2 + 3/3) / 3, so 1."""
    found = unjudged_range(judge_list([2, None, 1]), parse("GAP"), max_orders=0)
    assert found.low[0] == pytest.approx((2 + 2 / 3) / 5, abs=1e-15)
    assert (found.high[0], found.kind[0]) == (1.0, "outer")
    exact = unjudged_range(judge_list([2, None, 1]), parse("GAP"))
    assert (exact.low[0], exact.kind[0]) == (pytest.approx((2 + 2 / 3) / 3, abs=1e-15), "exact")
    assert (found.low < exact.low).all()


def _long(chance: random.Random, size: int, unknown: int, grades: tuple[int, ...]) -> Judged:
    given: list[float | None] = [chance.choice(grades) for _ in range(size)]
    for at in chance.sample(range(size), unknown):
        given[at] = None
    return judge_list(given, missing=[chance.choice(grades) for _ in range(chance.randint(1, 8))])


@pytest.mark.parametrize(
    "name", ["AP", "AP@15", "R@20", "F@20", "RelP@30", "IPrec@0.5", "AP11", "BinG", "InfAP", "SetAP"]
)
def test_the_search_over_counts_leaves_none_out(name: str) -> None:
    """On lists of eighty, 70 of them unjudged, it finds what trying every count finds."""
    chance, one = random.Random(3), parse(name)  # noqa: S311
    for grades in ((0, 1), (0, 0, 0, 0, 1), (0,), (1,)):
        asked = GradeSearch(complete_judgments(_long(chance, 80, 70, grades)), one, np.array([0.0, 1.0]))
        some, every = range_by_counts(asked, bounded=True), range_by_counts(asked, bounded=False)
        assert (some.low.tolist(), some.high.tolist()) == (every.low.tolist(), every.high.tolist())


@pytest.mark.parametrize("name", ["nDCG", "nDCG@8", "nDCG(gain=exp2)@10", "nDCG(discount=original)@6", "NCG@9"])
def test_the_search_over_ratios_leaves_none_out(name: str) -> None:
    """With twelve unjudged documents and four grades: of 16.8 million ways, grades fall or rise in the extreme ones."""
    chance, one = random.Random(4), parse(name)  # noqa: S311
    for grades in ((0, 1, 2, 3), (0, 0, 0, 1), (0,), (0, 5)):
        asked = GradeSearch(complete_judgments(_long(chance, 20, 12, grades)), one, np.arange(4.0))
        found, every = range_by_ratio(asked), range_by_enumeration(asked, 1000, sorted_only=True)
        assert found is not None
        np.testing.assert_allclose((found.low[0], found.high[0]), (every.low[0], every.high[0]), rtol=0, atol=1e-12)
        assert every.kind.tolist() == ["exact"]


# --- by hand ----------------------------------------------------------------------------------------


def test_the_document_below_may_have_been_better() -> None:
    """[1, 0, 0, 0, u] with nDCG@5: 1, 0.850, 0.674, 0.595 for u from 0 to 3: all at 0 is the greatest score."""
    one, log = nDCG(cutoff=5), math.log2
    by_hand = [
        1.0,
        (1 + 1 / log(6)) / (1 + 1 / log(3)),
        (1 + 2 / log(6)) / (2 + 1 / log(3)),
        (1 + 3 / log(6)) / (3 + 1 / log(3)),
    ]
    assert [round(value, 3) for value in by_hand] == [1.0, 0.850, 0.674, 0.595]
    for highest, value in enumerate(by_hand):
        found = unjudged_range(judge_list([1, 0, 0, 0, None]), one, highest=highest)
        assert found.low[0] == pytest.approx(value, abs=1e-15)
        assert found.high.tolist() == [1.0]


def test_ap_is_least_and_greatest_in_between() -> None:
    """[-, 1, -]: as it is 1/2; the first relevant too 1; the last (1/2 + 2/3)/2; both 1."""
    found = unjudged_range(judge_list([None, 1, None]), AP())
    assert (found.low[0], found.high[0]) == (0.5, 1.0)
    # one more is missing: 1/4, 2/3, (1/2 + 2/3)/3, 3/4
    found = unjudged_range(judge_list([None, 1, None], missing=[1]), AP())
    assert (found.low[0], found.high[0]) == (0.25, 0.75)
    # far above an unjudged one: [1, 0, 0, -] is 1, or (1 + 2/4) / 2
    found = unjudged_range(judge_list([1, 0, 0, None]), AP())
    assert (found.low[0], found.high[0]) == (0.75, 1.0)


def test_only_the_first_ranks_count_where_there_is_no_ideal() -> None:
    found = unjudged_range(judge_list([1, None, None, 0, None]), P(cutoff=3))
    assert (found.low[0], found.high[0]) == (1 / 3, 1.0)


def test_nothing_unjudged_is_certain() -> None:
    found = listed([3, 0, -1, 2], [1])
    for one in SCORED:
        if getattr(one, "max", None) in {None, 3.0, 4.0, "topic"} and "AWRF" not in str(one):
            got, score = unjudged_range(found, one), one(found)
            assert (got.low.tolist(), got.high.tolist(), got.kind[0]) == (score.tolist(), score.tolist(), "exact"), one


def test_judged_documents_do_not_vary() -> None:
    """A negative grade is a judgment, missing documents stay as they are, and so does what lies below the depth."""
    assert find_unjudged(judge_list([None, -1, 0, None]))[1].tolist() == [1, 4]
    cut = judged.judge({"q": {"a": 1}}, {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, depth=2)
    assert find_unjudged(cut)[1].tolist() == [2]
    assert unjudged_range(cut, AP()).low.tolist() == [1.0]
    found = unjudged_range(judge_list([-1, 1], missing=[2]), AP())
    assert found.low.tolist() == found.high.tolist()


def test_a_score_may_lie_outside_where_unjudged_counts_by_itself() -> None:
    """Once all are judged, Judged@2 is 1 and Bpref sees a document that it passed over."""
    found = unjudged_range(judge_list([None, 1]), parse("Judged@2"))
    assert (found.low[0], found.high[0]) == (1.0, 1.0)
    assert parse("Bpref").of_list([None, 1]) == 1.0
    found = unjudged_range(judge_list([None, 1]), parse("Bpref"))
    assert (found.low[0], found.high[0]) == (0.0, 1.0)  # not relevant: 1 - 1/1; relevant: nothing above


def test_a_topic_without_relevant_documents_may_get_one() -> None:
    """Left out at first; with the second relevant, 1/2; with the first, 1."""
    for name in ("AP(undefined=skip)", "RR(undefined=skip)", "nDCG(undefined=skip)"):
        found = unjudged_range(judge_list([None, None, 0]), parse(name), highest=1)
        assert found.low[0] == pytest.approx(1 / math.log2(3) if "nDCG" in name else 0.5, abs=1e-15)
        assert found.high.tolist() == [1.0]
    never = unjudged_range(judge_list([None, 0]), parse("AP(undefined=skip,rel=2)"), highest=1)
    assert np.isnan([never.low[0], never.high[0]]).all()
    spoken = unjudged_range(judge_list([None, 0], missing=[0]), parse("P(undefined=0.7)@2"))
    assert (spoken.low[0], spoken.high[0]) == (0.5, 0.7)  # nothing relevant, or one of two


def test_measures_that_ask_for_names_find_the_new_judgments() -> None:
    found = judge({"q": {"a": 1}, "r": {"c": 1}}, {"q": {"a": 2.0, "new": 1.0}, "r": {"b": 2.0, "c": 1.0}})
    assert parse("Hole@2")(found).tolist() == [0.5, 0.5]
    assert unjudged_range(found, parse("Hole@2")).high.tolist() == [0.0, 0.0]


def test_every_subtopic_of_the_topic_may_be_met() -> None:
    """Two subtopics, of which the first document meets one, and the second none, one or both."""
    found = unjudged_range(judge_list([(1, 0), None], missing=[(0, 1)]), parse("StRecall@2"))
    assert (found.low[0], found.high[0], found.kind[0]) == (0.5, 1.0, "exact")
    many = unjudged_range(judge_list([(1, 0), *[None] * 30]), parse("StRecall@2"))
    assert (many.low[0], many.high[0], many.kind[0]) == (0.0, 1.0, "outer")


LABELED = [one for one in ALL if one.properties.uses_all_labels]


@pytest.mark.parametrize("grades", [[(1, 0), None, (0, 1), None], [None, (2, 0), None], [None, None, (0, 0, 1)]])
def test_each_aspect_of_an_unjudged_document_varies_by_itself(grades: list[Any]) -> None:
    """All grades under all subtopics, typed as a list; of equals, the greatest name comes first in both."""
    aspects = max(len(grade) for grade in grades if grade)
    ways = itertools.product(itertools.product((0, 1), repeat=aspects), repeat=grades.count(None))
    every = []
    for way in ways:
        given = iter(way)
        every.append(judge_list([next(given) if grade is None else grade for grade in grades], missing=[(0, 1)]))
    for one in LABELED:
        scores = np.concatenate([one(found) for found in every])
        got = unjudged_range(judge_list(grades, missing=[(0, 1)]), one, highest=1)
        expected = np.fmin.reduce(scores), np.fmax.reduce(scores)
        np.testing.assert_allclose((got.low[0], got.high[0]), expected, rtol=0, atol=1e-12, err_msg=str(one))
        assert got.kind.tolist() == ["exact"]


def test_a_preference_may_go_either_way() -> None:
    found = unjudged_range(judge_list([1, None]), parse("PrefShare"), highest=2)
    assert (found.low[0], found.high[0], found.kind[0]) == (0.0, 1.0, "exact")


def test_a_set_has_unjudged_documents_too() -> None:
    found = judged.judge({"q": {"a": 1, "z": 1}}, {"q": ["a", "b", "c"]})
    unranked = replace(found, ranked=False)
    for one, low, high in ((parse("SetP"), 1 / 3, 1.0), (parse("SetR"), 0.5, 0.75)):
        got = unjudged_range(unranked, one)
        assert (got.low[0], got.high[0]) == (low, high)


# --- the scale --------------------------------------------------------------------------------------


def test_the_highest_grade() -> None:
    found = judge_list([1, None], missing=[2.5, -1])
    assert grade_levels(found, AP()).tolist() == [0, 1, 2, 2.5]
    assert grade_levels(found, AP(), 1).tolist() == [0, 1]
    assert grade_levels(found, AP(), 4).tolist() == [0, 1, 2, 2.5, 3, 4]
    assert grade_levels(judge_list([0, None]), AP()).tolist() == [0, 1]
    assert grade_levels(judge_list([0, None]), ERR(max=3)).tolist() == [0, 1, 2, 3]
    assert grade_levels(judge_list([5, None]), parse("RBP(p=0.8,gain={1:1,5:9},max=9)")).tolist() == [0, 1, 2, 3, 4, 5]
    assert grade_levels(judge_list([5000, 7, None]), nDCG()).tolist() == [0, 7, 5000]
    assert grade_levels(judge_list([0, None]), AP(), 0).tolist() == [0]


@pytest.mark.parametrize("highest", [-1, math.inf, math.nan])
def test_a_highest_grade_that_makes_no_sense(highest: float) -> None:
    with pytest.raises(InputError, match=r"`highest` must be a finite number"):
        unjudged_range(judge_list([1, None]), AP(), highest=highest)


def test_a_limit_that_makes_no_sense() -> None:
    with pytest.raises(InputError, match="`max_orders` must be 0 or more, got -1"):
        unjudged_range(judge_list([1, None]), AP(), max_orders=-1)


# --- many topics ------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(
    collections(), st.sampled_from(["AP", "nDCG@3", "P@2", "Q", "Bpref", "AP(judged_only=true)", "TBG", "AlphanDCG@3"])
)
def test_topics_do_not_touch_each_other(pair: Any, name: str) -> None:
    """Topics missing, without judgments, empty: each has the range that it has by itself, also in small blocks."""
    one = parse(name)
    whole = judge(*pair).over("run")
    got = unjudged_range(whole, one, max_orders=2000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", 3)
        patch.setattr(arrangements, "_BLOCK", 5)
        again = unjudged_range(whole, one, max_orders=2000)
    np.testing.assert_array_equal(again.low, got.low)
    np.testing.assert_array_equal(again.high, got.high)
    for at, topic in enumerate(whole.query_ids):
        alone = unjudged_range(whole.only(topic), one, max_orders=2000)
        np.testing.assert_allclose((alone.low[0], alone.high[0]), (got.low[at], got.high[at]), rtol=0, atol=1e-14)
        assert alone.kind[0] == got.kind[at]


@settings(max_examples=50)
@given(untied(), st.sampled_from([one for one in SCORED if not one.properties.uses_all_labels]))
def test_variants_score_as_real_judgments_do(pair: Any, one: Measure) -> None:
    """What the variants leave out (names, scores, ties) is nothing that a measure looks at."""
    qrels, run = pair
    topic = min(set(qrels) & set(run))
    found = judge({topic: qrels[topic]}, {topic: run[topic]})
    found = replace(found, stored_docs=found.returned_docs)
    unknown = sorted(set(run[topic]) - set(qrels[topic]), key=run[topic].get, reverse=True)
    grades = [float(at % 4) for at in range(len(unknown))]
    asked = complete_judgments(found)
    variant = asked.with_grades(np.array([0, 0]), np.array(grades + grades))
    real = judge({topic: {**qrels[topic], **dict(zip(unknown, grades, strict=True))}}, {topic: run[topic]})
    if len(unknown) == len({run[topic][doc] for doc in unknown}):
        np.testing.assert_allclose(one(variant), np.repeat(one(real), 2), rtol=1e-13, atol=1e-15)


# --- what measures declare --------------------------------------------------------------------------

PLAIN = [one for one in SCORED if not one.properties.uses_all_labels]
RETURNED_ONLY = [one for one in PLAIN if not one.properties.depends_on_missing]
JUDGED_BETTER_FIRST = [one for one in PLAIN if one.properties.judged_better_first]
AGAINST_IDEAL = [  # a table may give a higher grade less; and something in the judgments is relevant: a grade of 1
    one
    for one in PLAIN
    if one.properties.relative_to_ideal and isinstance(getattr(one, "gain", ""), str) and getattr(one, "rel", 0.0) <= 1
]
chances = st.randoms(use_true_random=False)


@settings(max_examples=30)
@given(chances)
def test_what_is_missing_does_not_matter_where_a_measure_says_so(chance: random.Random) -> None:
    grades = [chance.choice((None, 0, 1, 2, 3, -1)) for _ in range(chance.randint(1, 6))]
    one, other = (listed(grades, [chance.choice((0, 1, 2)) for _ in range(chance.randint(1, 4))]) for _ in range(2))
    for measure in RETURNED_ONLY:
        assert measure(one).tolist() == measure(other).tolist(), measure


@settings(max_examples=60)
@given(chances)
def test_grades_do_not_matter_where_a_measure_says_so(chance: random.Random) -> None:
    size = chance.randint(1, 6)
    one, other = (listed([chance.choice((0, 1, 2, 3)) for _ in range(size)], [1]) for _ in range(2))
    for measure in PLAIN:
        if not measure.properties.depends_on_relevance:
            assert measure(one).tolist() == measure(other).tolist(), measure


def test_a_measure_of_ones_own_may_draw_its_line_anywhere() -> None:
    """Without a parameter rel, which grade is relevant cannot be seen, so all are tried."""

    class Second(Measure):
        """Whether the second document has the grade 2 or more."""

        entry = replace(AP.entry, name="Second", all_parameters=(), properties=Properties())

        def score(self, judged: Judged) -> Any:
            return judged.sum((judged.rank == 2) & (judged.grade >= 2))

    found = unjudged_range(judge_list([3, None]), Second())
    assert (found.low[0], found.high[0], found.kind[0]) == (0.0, 1.0, "exact")
    far = unjudged_range(judge_list([3, *[None] * 40]), Second())
    assert (far.low[0], far.high[0], far.kind[0]) == (0.0, 1.0, "outer")


@settings(max_examples=60)
@given(chances)
def test_the_ranking_is_set_against_its_ideal_where_a_measure_says_so(chance: random.Random) -> None:
    """Better grades for the ranking alone never lower the score, for the judgments alone never raise it."""
    grades = [chance.choice((None, 0, 1, 2, 3, -1)) for _ in range(chance.randint(1, 6))]
    found = complete_judgments(
        repeat_topics(listed(grades, [chance.choice((0, 1, 2)), 1]), np.zeros(1, dtype=np.int64))
    )
    size = len(found.open_hits)
    low = np.array([float(chance.randint(0, 2)) for _ in range(size)])
    high, other = (
        low + [chance.randint(0, 1) for _ in low],
        np.array([float(chance.randint(0, 3)) for _ in range(size)]),
    )
    topic = np.zeros(1, dtype=np.int64)
    raised, lowered = (
        [found.with_grades(topic, *pair) for pair in pairs]
        for pairs in ([(low, other), (high, other)], [(other, low), (other, high)])
    )
    for measure in AGAINST_IDEAL:
        assert measure(raised[1])[0] >= measure(raised[0])[0] - 1e-12, measure
        assert measure(lowered[1])[0] <= measure(lowered[0])[0] + 1e-12, measure


@settings(max_examples=60)
@given(chances)
def test_better_comes_first_among_judged_documents_where_a_measure_says_so(chance: random.Random) -> None:
    grades = [chance.choice((0, 1, 2, 3, -1)) for _ in range(chance.randint(2, 7))]
    upper, lower = sorted(chance.sample(range(len(grades)), 2))
    if min(grades[upper], grades[lower]) < 0:
        return
    best, worst = max(grades[upper], grades[lower]), min(grades[upper], grades[lower])
    better, worse = ([*grades] for _ in range(2))
    better[upper], better[lower] = worse[lower], worse[upper] = best, worst
    upper_one, lower_one = listed(better, [1, 0]), listed(worse, [1, 0])
    for measure in JUDGED_BETTER_FIRST:
        assert measure(upper_one)[0] >= measure(lower_one)[0] - 1e-12, measure


def test_not_all_measures_declare_it() -> None:
    """What nDCG, recall and Rprec divide by comes from the judgments; Rprec's places do too."""
    assert all(
        parse(name).properties.depends_on_missing
        for name in ("nDCG", "R@5", "AP", "Rprec", "RBP(p=0.8,gain=graded,max=topic)")
    )
    assert not parse("Rprec").properties.relative_to_ideal
    assert parse("Rprec").of_list([0, 1], missing=[1]) > parse("Rprec").of_list([0, 1], missing=[0])
    assert not AP(norm="returned").properties.relative_to_ideal


# --- real data --------------------------------------------------------------------------------------


@needs_shared
@pytest.mark.parametrize(
    "name", ["nDCG@10", "nDCG", "AP", "P@20", "RR", "R@100", "RBP(p=0.8)", "Rprec", "NCG@100", "ERR(max=3)"]
)
def test_the_usual_measures_are_exact_on_real_runs(name: str) -> None:
    folder = SHARED / "dl19_passage"
    found = judged.judge(next((folder / "qrels").iterdir()), folder / "runs" / "bm25base_p.run.gz")
    one = parse(name)
    got, now = unjudged_range(found, one), one(found)
    assert set(got.kind) == {"exact"}
    assert (got.low <= now + 1e-12).all()
    assert (got.high >= now - 1e-12).all()
    assert (got.high > got.low).any()
    chance = np.random.default_rng(7)
    for _ in range(5):  # no random grading lies outside
        asked = complete_judgments(found)
        grades = chance.choice([0.0, 1.0, 2.0, 3.0], size=len(asked.open_hits), p=[0.7, 0.1, 0.1, 0.1])
        scores = one(asked.with_grades(np.arange(len(found)), grades))
        assert (scores >= got.low - 1e-12).all()
        assert (scores <= got.high + 1e-12).all()


def test_every_variant_is_there() -> None:
    assert {one.entry.name for one in ALL} == set(OF_RANKINGS)
