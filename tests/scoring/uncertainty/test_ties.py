"""Tied documents: means and ranges over all orders, against every order as a run of its own."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from judged import AP, ERR, RR, Bpref, InputError, Success, judge
from judged.scoring.measures import parse
from judged.scoring.uncertainty import orders as variant_scores
from judged.scoring.uncertainty.groups import tied_lists
from judged.scoring.uncertainty.orders import all_orders
from judged.scoring.uncertainty.ties import tie_expected, tie_range
from scoring.uncertainty.enumeration import Case, enumerated, seeded, some_case, tied
from variants import ALL

if TYPE_CHECKING:
    from judged import Judged
    from judged.scoring.measures import Measure

MORE = [
    parse(name)
    for name in (
        "AP(norm=returned)@3",
        "AP(norm=returned)@1",
        "AP(norm=cutoff)@2",
        "AP(judged_only=true,norm=returned)@2",
        "AP(rel=0,norm=returned)@3",
        "AP(judged_only=true,rel=0)@4",
        "RR(which=last)@2",
        "RR(rel=0,which=last)@2",
        "RR(undefined=skip)@2",
        "ERR(max=4,judged_only=true)@3",
        "nDCG(judged_only=true,gain={0:0.25,1:-1,4:2})@3",
        "nDCG(undefined=skip,judged_only=true)",
        "DCG(gain={0:3,1:-2,2:1})@4",
        "DCG(gain={-2:2,0:1},discount=original,base=3)",
        "CG(gain={-1:-2,1:-3})@3",
        "P(rel=0)@3",
        "Success(judged_only=true)@2",
        "F(judged_only=true,beta=2)@2",
        "RBP(p=0.5,judged_only=true)@3",
        "Accuracy(n=18)@3",
        "Accuracy(n=18,rel=0)",
        "Fallout(n=18)@3",
        "Fallout(n=18)",
        "Utility(a=-1,b=2,c=3)",
        "PairAccuracy(rel=0)@3",
        "Q(judged_only=true)@2",
        "INSQ(max=4,residual=true,depth=3)",
        "SDCG(max=4,residual=true,of=ETU)@3",
        "SDCG(max=4,costs=column,of=EC)@3",
        "BPM(max=4,costs=column)@5",
        "StRecall(judged_only=true)@2",
    )
]
"""Parameters together that the variants of all measures have one by one."""


def check(case: Case, judged: Judged, orders: dict[str, Judged], one: Measure, limit: int, kinds: Counter[Any]) -> None:
    """Hold the mean and the range of each topic to what all orders give."""
    mean = tie_expected(judged, one, depth=case.depth, max_orders=limit, samples=200)
    ends = tie_range(judged, one, depth=case.depth, max_orders=limit, samples=200)
    for at, topic in enumerate(judged.query_ids):
        true, low, high = enumerated(orders[topic], one)
        where = (str(one), limit, case.depth, case.groups.get(topic), case.labels[topic])
        if math.isnan(true):
            assert np.isnan([mean.values[at], ends.low[at], ends.high[at]]).all(), where
            continue
        close = 1e-9 * max(1.0, abs(low), abs(high))
        if mean.kind[at] == "exact":
            assert mean.values[at] == pytest.approx(true, rel=0, abs=close), where
            assert mean.standard_error[at] == 0.0
        else:
            off = abs(mean.values[at] - true)
            assert off <= 6 * mean.standard_error[at] + 0.05 * (high - low) + close, where
        if ends.kind[at] == "exact":
            assert (ends.low[at], ends.high[at]) == pytest.approx((low, high), rel=0, abs=close), where
        else:
            assert low - close <= ends.low[at] <= ends.high[at] <= high + close, where
        if high - low > close:
            kinds[one.entry.name, "mean", str(mean.kind[at])] += 1
            kinds[one.entry.name, "range", str(ends.kind[at])] += 1


@pytest.mark.parametrize("seed", range(8))
def test_means_and_ranges_are_those_of_all_orders(seed: int) -> None:
    chance = seeded(seed)
    measures, kinds = [*ALL, *MORE], Counter[Any]()
    chance.shuffle(measures)
    for share in range(4):  # each list with some of the measures: 190 cases
        case = some_case(chance, most=120)
        judged = case.judged()
        orders = {topic: case.orders(topic) for topic in judged.query_ids}
        for one in measures[share :: 4 * 5]:
            check(case, judged, orders, one, chance.choice([0, 6, 20_000]), kinds)
    assert {kind for _, _, kind in kinds} == {"exact", "sampled"}


SHORT = (
    "P@2 P@5 R@3 F@2 SetP SetF RBP(p=0.8)@4 CG@3 DCG nDCG nDCG@3 nDCG(gain={0:0.25,4:100})@3 NCG@2 RelP@2 Rprec "
    "RnDCG Judged@3 Unjudged@2 PIA@2 Pjg@3 RprecMultJg@1 INSQ(max=4) SDCG(max=4)@3 CwlTBG(max=4) CwlU(max=4) "
    "NumRelRet@2 AP AP@3 AP(norm=returned)@3 AP(norm=cutoff)@2 AP(judged_only=true) GMAP RR RR@2 RR(which=last) "
    "RR(which=last)@3 ERR(max=4) ERR(max=4)@2 Success@1 Success@3 Accuracy(n=50)@2 Fallout(n=50)@2 Bpref GMBpref"
)
"""Measures whose mean is exact without trying orders one by one."""
SHORT_RANGES = (
    "P@2 R@3 F@2 RBP(p=0.8)@4 CG@3 DCG nDCG@3 nDCG(gain={0:0.25,4:100})@3 NCG@2 Rprec RnDCG Judged@3 Unjudged@2 "
    "INSQ(max=4) SDCG(max=4)@3 CwlTBG(max=4) AP AP@3 AP(rel=0) AP(norm=returned) AP(judged_only=true) GMAP RR "
    "RR@2 RR(which=last) ERR(max=4)@2 Success@2 Fallout(n=50)@2 Bpref AP11 IPrec@0.5 Yaap BinG GAP Compat "
    "PairAccuracy"
)
"""Measures whose range is exact without that."""


@pytest.mark.parametrize("seed", range(6))
def test_short_ways_need_no_list_of_orders(seed: int) -> None:
    chance = seeded(1000 + seed)
    case = some_case(chance, most=120)
    judged = Case(case.labels, case.groups, None).judged()
    orders = {topic: Case(case.labels, case.groups, None).orders(topic) for topic in judged.query_ids}
    for name in SHORT.split():
        found = tie_expected(judged, parse(name), max_orders=0)
        assert found.kind.tolist() == ["exact"] * len(judged), name
        true = [enumerated(orders[topic], parse(name))[0] for topic in judged.query_ids]
        assert found.values.tolist() == pytest.approx(true, rel=0, abs=1e-12), name
    for name in SHORT_RANGES.split():
        ends = tie_range(judged, parse(name), max_orders=0)
        assert ends.kind.tolist() == ["exact"] * len(judged), name
        true = [enumerated(orders[topic], parse(name))[1:] for topic in judged.query_ids]
        assert np.stack([ends.low, ends.high], axis=1) == pytest.approx(np.array(true), rel=0, abs=1e-12), name


# --- by hand ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "grades", "mean", "low", "high"),
    [
        ("RR", (1, None), 3 / 4, 1 / 2, 1),
        ("AP", (1, None), 3 / 4, 1 / 2, 1),
        ("RR", (1, None, 0), (1 + 1 / 2 + 1 / 3) / 3, 1 / 3, 1),
        ("RR(which=last)", (1, 1, None), (1 / 2 + 1 / 3 + 1 / 3) / 3, 1 / 3, 1 / 2),
        ("RR(which=last)@2", (1, 1, None), (1 + 1 / 2 + 1 / 2) / 3, 1 / 2, 1),
        ("AP", (1, 1, 0), (1 + (1 + 2 / 3) / 2 + (1 / 2 + 2 / 3) / 2) / 3, (1 / 2 + 2 / 3) / 2, 1),
        ("AP(norm=returned)@2", (1, 1, 0), (1 + 1 + 1 / 2) / 3, 1 / 2, 1),
        ("AP(norm=cutoff)@1", (1, 1, 0), 2 / 3, 0, 1),
        ("P@1", (1, None, 0), 1 / 3, 0, 1),
        ("Success@2", (1, None, 0), 2 / 3, 0, 1),
        ("F@1", (1, 1, 0), 2 / 3 * 2 * (1 * 1 / 2) / (1 + 1 / 2), 0, 2 * (1 * 1 / 2) / (1 + 1 / 2)),
        ("nDCG", (1, None), (1 + 1 / math.log2(3)) / 2, 1 / math.log2(3), 1),
        ("DCG@1", (3, 1, -1), 4 / 3, 0, 3),
        ("ERR(max=1)", (1, None), (1 / 2 + 1 / 4) / 2, 1 / 4, 1 / 2),
        ("Bpref", (1, 0, None), 1 / 2, 0, 1),
        ("Fallout(n=4)@1", (1, 1, 0, None), 1 / 4, 0, 1 / 2),
    ],
)
def test_by_hand(name: str, grades: tuple[float | None, ...], mean: float, low: float, high: float) -> None:
    judged, one = tied(*grades), parse(name)
    for limit in (0, 1000):
        assert tie_expected(judged, one, max_orders=limit).values[0] == pytest.approx(mean, rel=1e-14)
    ends = tie_range(judged, one)
    assert (ends.low[0], ends.high[0]) == pytest.approx((low, high), rel=1e-14)
    assert ends.high[0] - ends.low[0] == pytest.approx(high - low, rel=1e-14)


def test_one_relevant_document_of_a_thousand_tied_ones() -> None:
    """Every rank is as likely: the mean of 1/r is the harmonic number divided by n."""
    judged = tied(1, *[None] * 999)
    harmonic = sum(1 / rank for rank in range(1, 1001)) / 1000
    assert tie_expected(judged, parse("RR")).values[0] == pytest.approx(harmonic, rel=1e-12)
    assert tie_expected(judged, parse("AP")).values[0] == pytest.approx(harmonic, rel=1e-12)
    found = tie_expected(judged, parse("Q"))
    assert found.kind[0] == "exact"  # a thousand orders
    discounts = sum(1 / math.log2(rank + 1) for rank in range(1, 1001)) / 1000
    assert tie_expected(judged, parse("nDCG")).values[0] == pytest.approx(discounts, rel=1e-12)


class Mine(AP):
    """A measure that is not of the catalog: nothing is known of its formula."""


class MyRR(RR):
    """The same for RR."""


class MyERR(ERR):
    """The same for ERR."""


class MyBpref(Bpref):
    """The same for Bpref."""


class MySuccess(Success):
    """The same for Success."""


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("AP", Mine),
        ("AP@7", Mine),
        ("AP(norm=returned)@7", Mine),
        ("AP(norm=cutoff)@3", Mine),
        ("RR", MyRR),
        ("RR@5", MyRR),
        ("RR(which=last)", MyRR),
        ("RR(which=last)@7", MyRR),
        ("ERR(max=4)", MyERR),
        ("ERR(max=4)@7", MyERR),
        ("Bpref", MyBpref),
        ("Success@7", MySuccess),
    ],
)
def test_closed_forms_are_the_mean_of_all_orders_of_longer_lists(name: str, own: type[Measure]) -> None:
    """Groups of 2, 9 and 3 with one document between: up to 2 x 1,260 x 6 distinct orders of 10^7."""
    run = {"a": 9.0, "b": 9.0, "x": 8.0} | {f"c{at}": 7.0 for at in range(9)} | {f"e{at}": 6.0 for at in range(3)}
    grades = {"a": 1.0, "c0": 3.0, "c1": 3.0, "c2": 0.0, "c3": 0.0, "c4": 0.0, "c5": 0.0, "e0": 4.0, "m": 2.0}
    judged = judge({"q": grades}, {"q": run})
    one = parse(name)
    listed = tie_expected(judged, own(**vars(one)), max_orders=30_000)
    assert listed.kind[0] == "exact"
    assert tie_expected(judged, one, max_orders=0).values[0] == pytest.approx(listed.values[0], rel=1e-12)


# --- what orders there are ------------------------------------------------------------------------------


def test_distinct_orders_are_counted_and_weighed() -> None:
    judged = tied(2, 2, 1, None, None)
    (every,) = tied_lists(judged, parse("Q"), None)[1]
    assert all_orders(every, 0, 29) is None
    orders = all_orders(every, 0, 30)
    assert orders is not None
    assert orders.count == 30 == math.factorial(5) // (2 * 1 * 2)
    assert orders.weight.tolist() == pytest.approx([1 / 30] * 30)
    assert len({tuple(row) for row in orders.ranks(every, 0, 30).tolist()}) == 30


def test_below_a_cutoff_orders_are_one() -> None:
    """Only who stands in the first two places counts, and how likely that is."""
    judged = tied(2, 2, 1, None, None)
    (first,) = tied_lists(judged, parse("Q@2"), None)[1]
    orders = all_orders(first, 0, 30)
    assert orders is not None
    grades = (2.0, 2.0, 1.0, None, None)
    likely = Counter(order[:2] for order in itertools.permutations(grades))
    found = dict[Any, float]()
    for ranks, weight in zip(orders.ranks(first, 0, orders.count).tolist(), orders.weight.tolist(), strict=True):
        at = dict(zip(ranks, judged.grade.tolist(), strict=True))
        found[at.get(1), at.get(2)] = weight
    assert orders.count == len(likely) == 8
    assert found == pytest.approx({key: count / 120 for key, count in likely.items()})


def test_a_sample_says_so_and_comes_near() -> None:
    judged = tied(3, 3, 2, 2, 1, 1, 0, 0, None, None)
    one = parse("Q")
    exact = tie_expected(judged, one, max_orders=200_000)
    found = tie_expected(judged, one, max_orders=10, samples=400, seed=3)
    assert (exact.kind[0], found.kind[0]) == ("exact", "sampled")
    assert 0 < found.standard_error[0] < 0.02
    assert abs(found.values[0] - exact.values[0]) < 4 * found.standard_error[0]
    again, other = (tie_expected(judged, one, max_orders=10, samples=400, seed=seed) for seed in (3, 4))
    assert again.values[0] == found.values[0] != other.values[0]
    ends, true = tie_range(judged, one, max_orders=10, samples=0), tie_range(judged, one, max_orders=200_000)
    assert ends.kind[0] == "sampled"
    assert (ends.low[0], ends.high[0]) == (true.low[0], true.high[0])  # the kinds in some order


def test_one_order_is_no_sample() -> None:
    with pytest.raises(InputError, match=r"`samples` must be at least 2, got 1\. Fix: use samples=2"):
        tie_expected(tied(1, None), parse("Q"), samples=1)


def test_nothing_is_presumed_of_a_measure_that_is_not_ours() -> None:
    """It declares what AP does, that only relevant or not counts; and does not keep to it."""

    class Graded(AP):
        def score(self, judged: Judged) -> Any:
            return judged.sum(judged.grade / judged.rank)

    judged = tied(2, 1)
    assert tie_expected(judged, Graded()).values.tolist() == [((2 + 1 / 2) + (1 + 2 / 2)) / 2]
    assert tie_expected(tied(0, -2), Graded()).values.tolist() == [(-2 - 1) / 2]


def test_a_sample_of_a_topic_is_its_own() -> None:
    qrels = {topic: {"a": 1, "b": 2, "c": 3} for topic in "xyz"}
    run = {topic: dict.fromkeys("abcdefgh", 1.0) for topic in "xyz"}
    whole = tie_expected(judge(qrels, run), parse("Q"), max_orders=5)
    alone = tie_expected(judge({"y": qrels["y"]}, run), parse("Q"), max_orders=5)
    assert whole.values[1] == alone.values[0]
    assert len(set(whole.values.tolist())) == 3


@pytest.mark.parametrize("rows", [1, 40, 300])
def test_blocks_change_nothing(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = some_case(seeded(77), most=24)
    judged = case.judged()
    names = ("nDCG@3", "Q@3", "AlphaDCG@5", "TBG", "Success@2", "Hole@2", "DCG(gain={0:3,1:-2})")
    before = [(tie_expected(judged, parse(name)), tie_range(judged, parse(name))) for name in names]
    monkeypatch.setattr(variant_scores, "_ROWS", rows)
    for name, (mean, ends) in zip(names, before, strict=True):
        assert np.array_equal(tie_expected(judged, parse(name)).values, mean.values), name
        after = tie_range(judged, parse(name))
        assert np.array_equal([after.low, after.high], [ends.low, ends.high]), name
