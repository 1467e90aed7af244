"""User models: identities of C/W/L, residuals, costs, and ERR, TBG, and U-measure compared with plain loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judged
from judged import InputError, MeasureError
from judged.scoring.judging import judge_list
from judged.scoring.measures import parse
from judged.scoring.measures.cwl import RankMatrices, UserExpectations

MODELS = (
    *("INST(max=4)", "INST(T=0.5,max=4)", "INSQ(max=4)", "BPM(max=4)@5", "BPMD(max=4)@5", "SDCG(max=4)@5"),
    *("NERR8(max=4)@5", "NERR9(max=4)@5", "NERR10(max=4)", "NERR11(max=4)", "IFT1(T=2,max=4)", "IFT2(A=0.2,max=4)"),
    *("IFT12(T=2,A=0.2,max=4)", "CwlTBG(halflife=3,max=4)", "CwlU(L=7,max=4)"),
)
BY_RANK = ("BPM(max=4)@5", "BPMD(max=4,hc=0)@5", "SDCG(max=4)@5", "NERR8(max=4)@5", "NERR9(max=4)@5")
"""Those whose users never read below rank 5."""

grades = st.lists(st.sampled_from([None, -1, 0, 1, 2, 3, 4, 0.5]), min_size=1, max_size=12).filter(
    lambda list_grades: any(grade is not None for grade in list_grades)
)
amounts = st.sampled_from([0.5, 1.0, 2.0, 7.5, 30.0])


def of(name: str, list_grades: Any, facts: Any = None, **changes: Any) -> float:
    return parse(name).replace(**changes).of_list(list_grades, facts=facts)


# --- the framework -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=25)
@given(list_grades=grades, data=st.data())
def test_what_ties_the_expectations_together(name: str, list_grades: list[Any], data: st.DataObject) -> None:
    """ETU = EU ED and ETC = EC ED hold up to the probability of reading the last place and going on."""
    costs = {"cost": [data.draw(amounts) for _ in list_grades]}
    eu, ec, ed = (of(name, list_grades, costs, of=expectation, costs="column") for expectation in ("EU", "EC", "ED"))
    assert 0 <= eu <= 1 + 1e-15
    assert 1 <= ed <= 1000
    assert 0.5 <= ec <= 30 + 1e-12
    open_end = 1.0 if name.startswith(("INST", "INSQ", "IFT", "NERR1")) else 0.0  # nobody reads on after the last place
    for total, mean, maximum in (("ETU", eu, 1000.0), ("ETC", ec, 30_000.0)):
        value = of(name, list_grades, costs, of=total, costs="column")
        assert mean * ed - (open_end + 1e-9) * maximum <= value <= mean * ed + 1e-9 * maximum
    assert of(name, list_grades, of="EC") == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("name", BY_RANK)
@settings(max_examples=25)
@given(list_grades=grades)
def test_the_totals_of_users_who_stop_by_a_rank(name: str, list_grades: list[Any]) -> None:
    eu, etu, ec, etc, ed = (of(name, list_grades, of=expectation) for expectation in ("EU", "ETU", "EC", "ETC", "ED"))
    assert (etu, etc) == pytest.approx((eu * ed, ec * ed), rel=1e-12, abs=1e-12)
    assert ed <= 5


def test_weights_and_last_ranks_are_distributions() -> None:
    chance = np.random.default_rng(1)
    matrices = RankMatrices(chance.random((4, 50)), chance.random((4, 50)) + 0.1, np.ones((4, 1)))
    ends = chance.random((4, 50)) * (np.arange(50) < 49)
    user = UserExpectations(matrices, ends)
    assert user.W.sum(axis=1).tolist() == pytest.approx([1.0] * 4, rel=1e-13)
    assert user.L.sum(axis=1).tolist() == pytest.approx([1.0] * 4, rel=1e-13)
    assert user.ED.tolist() == pytest.approx((user.L * matrices.rank).sum(axis=1).tolist(), rel=1e-12)
    assert user.ED.tolist() == pytest.approx((1 / user.W[:, 0]).tolist(), rel=1e-13)


@settings(max_examples=25)
@given(grades, st.sampled_from([0.2, 0.5, 0.8]))
def test_a_constant_continuation_is_rank_biased_precision(list_grades: list[Any], p: float) -> None:
    gain = np.zeros((1, 1000))
    gain[0, : len(list_grades)] = [max(grade or 0, 0) / 4 for grade in list_grades]
    user = UserExpectations(RankMatrices(gain, np.ones((1, 1000)), np.ones((1, 1))), np.full((1, 1000), p))
    expected = parse(f"RBP(p={p},gain=graded,max=4)").of_list(list_grades)
    assert user.total("EU").tolist() == pytest.approx([expected], rel=1e-12, abs=1e-15)
    assert of(f"CwlTBG(halflife={-1 / math.log2(p)!r},max=4)", list_grades) == pytest.approx(
        expected, rel=1e-9, abs=1e-15
    )


def test_a_user_who_reads_k_documents_has_precision() -> None:
    """BPM with a goal that cannot be reached. SDCG is nDCG if k documents have the highest grade."""
    list_grades = [1, None, 1, 0, 1, 1]
    assert of("BPM(T=99,max=1)@4", list_grades) == parse("P@4").of_list(list_grades) == 0.5
    assert of("SDCG(max=1)@4", list_grades) == pytest.approx(parse("nDCG@4").of_list(list_grades), rel=1e-15)
    assert of("NERR10(p=0.5,max=4)", [0, 0]) == 0.0
    assert of("TrAP(max=1)", list_grades) == pytest.approx(parse("AP").of_list(list_grades), rel=1e-15)


@pytest.mark.parametrize("name", MODELS)
def test_many_topics_are_as_each_alone(name: str) -> None:
    """More topics than one block holds, some missing from the run, and some with more documents than the depth."""
    chance = np.random.default_rng(7)
    qrels = {
        f"q{number:03}": {f"d{doc}": int(chance.integers(-1, 5)) for doc in chance.choice(40, 9, False)}
        for number in range(300)
    }
    run = {
        topic: {f"d{doc}": float(-rank) for rank, doc in enumerate(chance.permutation(40)[: chance.integers(1, 40)])}
        for topic in list(qrels)[:290]
    }
    measure = parse(name).replace(depth=700)
    scores = measure(judged.judge(qrels, run)).tolist()
    for topic_index in (0, 1, 186, 187, 188, 289, 290, 299):
        topic = list(qrels)[topic_index]
        single_topic = judged.judge({topic: qrels[topic]}, {topic: run.get(topic, {"other": 1.0})})
        assert measure(single_topic).tolist() == [scores[topic_index]]
        if len(run.get(topic, {})) > 12:
            short = measure.replace(depth=10)
            assert (
                short(single_topic)[0] == short(judged.judge({topic: qrels[topic]}, {topic: run[topic]}, depth=10))[0]
            )
    assert len(set(scores)) > 5


# --- residuals, costs, scales -------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in MODELS if not name.startswith(("BPM", "IFT"))])
@settings(max_examples=25)
@given(list_grades=grades)
def test_the_residual_is_what_unjudged_documents_leave_open(name: str, list_grades: list[Any]) -> None:
    low, residual = of(name, list_grades), of(name, list_grades, residual=True)
    best = [4 if grade is None else grade for grade in list_grades] + [4] * (60 - len(list_grades))
    assert residual >= -1e-12
    assert low + residual <= 1 + 1e-12
    assert of(name, best, depth=60) == pytest.approx(
        of(name, list_grades, depth=60) + of(name, list_grades, depth=60, residual=True), abs=1e-12
    )


@pytest.mark.parametrize("name", MODELS)
def test_nothing_is_open_where_all_is_judged(name: str) -> None:
    for expectation in ("EU", "ETU", "EC", "ETC", "ED"):
        assert of(name, [1, 0, -2, 4], of=expectation, depth=4, residual=True) == 0.0


@pytest.mark.parametrize("name", [*MODELS, "TrAP(max=4)"])
def test_costs_of_one_are_no_costs(name: str) -> None:
    list_grades = [1, None, 4, 0, 2]
    for expectation in ("EU", "ETU", "EC", "ETC", "ED"):
        expected = of(name, list_grades, of=expectation)
        assert of(name, list_grades, {"cost": [1, 1, 1, 1, 1]}, of=expectation, costs="column") == pytest.approx(
            expected, rel=1e-14
        )
        assert of(name, list_grades, {"cost": [9, 1, 1, 1, 1]}, of=expectation) == expected


def test_a_budget_of_costs() -> None:
    """Documents of 4, 3 and 3: the third brings the costs to 10."""
    assert of("BPM(T=9,max=4)@10", [0, 0, 4, 4], {"cost": [4, 3, 3, 1]}, costs="column") == 1 / 3
    assert of("BPM(T=9,max=4)@10", [0, 0, 4, 4], {"cost": [4, 3, 3, 1]}, costs="column", of="ETC") == 10.0
    assert of("BPM(T=9,max=4)@10", [0, 0, 4, 4]) == 0.2


LOWER = {
    # a higher grade at the second list, and a lower gain for each document read: by hand where a fraction is given
    "BPM(max=4)@5": ([0, 1, 2, 4], [1, 1, 2, 4], 7 / 16, 4 / 12),
    "BPMD(max=4)@5": ([0, 1, 4, 0], [0, 2, 4, 0], 5 / 12, 2 / 8),
    "TrAP(max=4)": ([4, 0, 0, 0], [4, 0, 0, 1], 1.0, (1 + 0.25 * 1.25 / 4) / 2),
    "IFT1(T=0.5,max=4,depth=4)": ([0, 0, 1, 4], [0, 2, 1, 4], None, None),
    "IFT2(A=0.5,R2=100,max=4)": ([2, 2, 2, 1, 0, 0], [3, 2, 2, 1, 0, 0], None, None),
    "IFT12(T=2,A=0.2,max=4,depth=6)": ([0, 4, 2, 1, 4, 4], [0, 4, 3, 1, 4, 4], None, None),
}


@pytest.mark.parametrize("name", LOWER)
def test_more_gain_may_be_less_for_each_document_read(name: str) -> None:
    before, after, *values = LOWER[name]
    assert not parse(name).entry.properties.monotone
    scores = [of(name, before), of(name, after)]
    assert scores[0] > scores[1] + 1e-3
    if values[0] is not None:
        assert scores == pytest.approx(values, rel=1e-14)


def test_the_scale_is_part_of_the_name() -> None:
    assert str(judged.measures.INST(max=3)) == "INST(max=3)"
    assert of("SDCG(max=4,min=2)@1", [3]) == 0.5
    assert of("SDCG(max=4,min=2)@1", [2]) == 0.0
    with pytest.raises(MeasureError, match=r"INST requires `max`\. Fix: write INST\(max=\.\.\.\)"):
        judged.measures.INST()  # type: ignore[call-arg]
    with pytest.raises(MeasureError, match=r"min=3 must be below max=3\. Fix: use a lower min"):
        judged.measures.INSQ(max=3, min=3)
    with pytest.raises(MeasureError, match=r"INST: max=0 is not allowed\. Fix: use the highest grade of the scale"):
        judged.measures.INST(max=0)
    with pytest.raises(MeasureError, match=r"INST: T=0\.2 is not allowed\. Fix: use a number of at least 0\.5"):
        judged.measures.INST(max=1, T=0.2)


@pytest.mark.parametrize("name", ["INST(max=2)", "SDCG(max=2)@1", "ERR(max=2)@1"])
def test_a_grade_above_the_scale_is_refused(name: str) -> None:
    """Also where it was not returned: the scale is that of the qrels."""
    with pytest.raises(MeasureError, match=r"max=2\)(@1)?: the qrels have the grade 3, above max=2\. Fix: write max=3"):
        parse(name).of_list([1], missing=[3])


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"length": [1, 2]}, r"no column 'cost': the columns are length"),
        ({"cost": [1, 0]}, r"document d2 has the cost 0.*set cost to a number above 0"),
        ({"cost": [-1, 1]}, r"document d1 has the cost -1"),
        ({"cost": [math.inf, 1]}, r"the column cost must contain finite numbers"),
        ({"cost": ["cheap", "dear"]}, r"the column cost must be numeric"),
    ],
)
def test_costs_must_be_known_and_above_zero(facts: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        of("INST(max=1,costs=column)", [1, 0], facts)


def test_facts_must_be_given() -> None:
    for name, fact in (("INST(max=1,costs=column)", "cost"), ("TBG", "length"), ("UMeasure(L=9)", "length")):
        with pytest.raises(MeasureError, match=rf"requires the {fact} of every returned document\. Fix: pass"):
            parse(name).of_list([1, 0])
    with pytest.raises(InputError, match=r"document d2 has the length -5.*set length to a number of at least 0"):
        parse("TBG").of_list([1, 0], facts={"length": [0, -5]})


# --- ERR ----------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(grades, st.sampled_from([4, 5, 4.5]), st.none() | st.integers(1, 14))
def test_err_is_the_loop_of_its_paper(list_grades: list[Any], highest: float, cutoff: int | None) -> None:
    reached, expected = 1.0, 0.0
    for rank, grade in enumerate(list_grades[:cutoff], 1):
        satisfied = (2.0 ** max(grade or 0, 0) - 1) / 2.0**highest
        expected += reached * satisfied / rank
        reached *= 1 - satisfied
    assert judged.ERR(max=highest, cutoff=cutoff).of_list(list_grades) == pytest.approx(expected, rel=1e-14, abs=0)


def test_err_of_several_topics_at_once() -> None:
    """Topics of different length, one without hits: each as alone."""
    lists = {"a": [4, 4, 4], "b": [None, 1], "c": [None], "d": [0, 3, None, 2, 4, 1]}
    qrels = {
        topic: {f"d{number}": grade for number, grade in enumerate(list_grades) if grade is not None}
        for topic, list_grades in lists.items()
    }
    qrels["c"] = {"gone": 4}
    run = {
        topic: {f"d{number}": -float(number) for number in range(len(list_grades))}
        for topic, list_grades in lists.items()
    }
    scores = judged.ERR(max=4)(judged.judge(qrels, run)).tolist()
    assert scores == [judged.ERR(max=4).of_list(lists[t], missing=[4] if t == "c" else []) for t in "abcd"]
    assert scores[2] == 0.0


def test_the_highest_grade_changes_err() -> None:
    assert judged.ERR(max=1).of_list([1]) == 1 / 2
    assert judged.ERR(max=4).of_list([1]) == 1 / 16
    with pytest.raises(MeasureError, match=r"ERR: 2\^1001 is too large\. Fix: set max to the highest grade"):
        judged.ERR(max=1001)


# --- time and text --------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(grades, st.data())
def test_tbg_is_the_loop_of_its_paper(list_grades: list[Any], data: st.DataObject) -> None:
    """The constants are those of table 1 and section 5 of Smucker and Clarke 2012."""
    lengths = [data.draw(st.integers(0, 3000)) for _ in list_grades]
    seconds, expected = 0.0, 0.0
    for grade, length in zip(list_grades, lengths, strict=True):
        relevant = grade is not None and grade >= 1
        if relevant:
            expected += 0.64 * 0.77 * math.exp(-seconds * math.log(2) / 224)
        seconds += 4.4 + (0.64 if relevant else 0.39) * (0.018 * length + 7.8)
    assert judged.measures.TBG().of_list(list_grades, facts={"length": lengths}) == pytest.approx(
        expected, rel=1e-12, abs=0
    )


def test_a_relevant_document_that_takes_long_can_lower_tbg() -> None:
    slow = judged.measures.TBG(halflife=1000)
    tail = [1] * 20
    facts = {"length": [100_000, *[10] * 20]}
    assert slow.of_list([0, *tail], facts=facts) > slow.of_list([1, *tail], facts=facts) + 0.1
    assert not slow.entry.properties.monotone


@settings(max_examples=25)
@given(
    st.lists(st.sampled_from([0, 1, None]), min_size=1, max_size=8).filter(
        lambda list_grades: set(list_grades) != {None}
    )
)
def test_the_time_of_tbg_as_cost_is_that_of_cwl_eval(list_grades: list[Any]) -> None:
    """CwlTBG(of=ETU) is TBG where each document's cost is its time and a relevant one gains 1."""
    lengths = [150.0 * number for number in range(len(list_grades))]
    times = [
        4.4 + (0.64 if grade else 0.39) * (0.018 * length + 7.8)
        for grade, length in zip(list_grades, lengths, strict=True)
    ]
    theirs = of("CwlTBG(max=1,costs=column,of=ETU)", list_grades, {"cost": times})
    ours = judged.measures.TBG().of_list(list_grades, facts={"length": lengths})
    assert ours == pytest.approx(0.64 * 0.77 * theirs, rel=1e-11, abs=0)


@settings(max_examples=40)
@given(grades, st.data(), st.none() | st.integers(1, 14))
def test_u_measure_is_the_sum_over_the_trailtext(
    list_grades: list[Any], data: st.DataObject, cutoff: int | None
) -> None:
    lengths = [data.draw(st.integers(0, 400)) for _ in list_grades]
    position, expected = 0, 0.0
    for grade, length in list(zip(list_grades, lengths, strict=True))[:cutoff]:
        position += length
        expected += max(grade or 0, 0) * max(0.0, 1 - position / 1000)
    measure = judged.measures.UMeasure(L=1000, cutoff=cutoff)
    assert measure.of_list(list_grades, facts={"length": lengths}) == pytest.approx(expected, rel=1e-13, abs=0)


def test_cwl_eval_weighs_where_a_document_begins_and_the_paper_where_it_ends() -> None:
    facts = {"cost": [100, 300, 50], "length": [100, 300, 50]}
    assert of("CwlU(L=1000,max=1,costs=column,of=ETU)", [0, 1, 0], facts) == pytest.approx(0.9, rel=1e-14)
    assert of("UMeasure(L=1000)", [0, 1, 0], facts) == pytest.approx(0.6, rel=1e-14)


def test_time_and_text_are_each_topics_own() -> None:
    qrels = {"a": {"x": 1, "y": 1}, "b": {"y": 1}}
    run = {"a": {"x": 2.0, "n": 1.5, "y": 1.0}, "b": {"n": 3.0, "y": 2.0}}
    documents = {"x": {"length": 100}, "y": {"length": 200}, "n": {"length": 300}}
    judged_list = judged.judge(qrels, run, documents=documents)
    assert judged.measures.UMeasure(L=1000)(judged_list).tolist() == pytest.approx([0.9 + 0.4, 0.5], rel=1e-14)
    assert judged.measures.TBG(halflife=1e-3, click=1, save=0.5)(judged_list).tolist() == [0.5, 0.0]


def test_a_judged_list_without_ranks_to_read_gives_nothing() -> None:
    judged_list = judge_list([], missing=[2])
    assert judged.measures.INST(max=2)(judged_list).tolist() == [0.0]
    assert judged.ERR(max=2)(judged_list).tolist() == [0.0]
