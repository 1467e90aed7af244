"""Sums of gains or costs that reach a limit, compared with exact fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import judged
from judged.scoring.measures import parse
from judged.scoring.measures.cwl import LIMIT_TOLERANCE, is_below

HIGHEST = 3
LISTS = list(product(range(HIGHEST + 1), repeat=5))
"""Every list of five grades from 0 to 3."""

DEPTH = 12


@pytest.fixture(scope="module")
def every_list() -> Any:
    """Judge every list as a topic of its own; the five documents cost 1/10, 3/10, 1/10, 2/10 and 3/10."""
    qrels = {
        f"q{index:04}": {f"d{rank}": value for rank, value in enumerate(grades)} for index, grades in enumerate(LISTS)
    }
    run = {topic: {f"d{rank}": -float(rank) for rank in range(5)} for topic in qrels}
    costs = {f"d{rank}": {"cost": cost / 10} for rank, cost in enumerate((1, 3, 1, 2, 3))}
    return judged.judge(qrels, run, documents=costs)


def read_documents(
    grades: tuple[int, ...],
    goal: Fraction,
    budget: Fraction,
    costs: tuple[Fraction, ...] = (),
    benefit_step: Fraction = Fraction(0),
    cost_step: Fraction = Fraction(0),
) -> tuple[Fraction, int]:
    """Read as Zhang et al. 2017 define it: gain for each document read, and the number read."""
    gained = spent = Fraction(0)
    for rank in range(1, DEPTH + 1):
        gain = Fraction(grades[rank - 1], HIGHEST) if rank <= len(grades) else Fraction(0)
        gained += gain
        spent += costs[rank - 1] if rank <= len(costs) else 1
        if gained >= goal or spent >= budget:
            return gained / rank, rank
        goal += benefit_step * (gain - Fraction(1, 2))
        budget += cost_step * (gain - Fraction(1, 2))
    return gained / DEPTH, DEPTH


def check(name: str, judged_lists: Any, expected: list[tuple[Fraction, int]]) -> None:
    measure = parse(name)
    gains = np.array([float(gain) for gain, _ in expected])
    np.testing.assert_allclose(measure(judged_lists), gains, rtol=0, atol=1e-12)
    read = [float(count) for _, count in expected]
    np.testing.assert_allclose(measure.replace(of="ED")(judged_lists), read, rtol=0, atol=1e-9)


GOALS = ["1/3", "0.1", "2/3", "0.7", "1", "4/3", "2", "7/3", "3", "10/3", "4"]


@pytest.mark.parametrize("goal", GOALS)
def test_bpm_stops_where_exact_fractions_stop(every_list: Any, goal: str) -> None:
    """Doubles alone stop elsewhere for 112 of the 1,024 lists with T = 2, and for 51 with T = 3."""
    limit = Fraction(goal)
    expected = [read_documents(grades, limit, Fraction(10)) for grades in LISTS]
    check(f"BPM(max=3,T={float(limit)!r},depth={DEPTH})@10", every_list, expected)


def test_one_list_by_hand(every_list: Any) -> None:
    """Gains of 2/3, 1 and 1/3 add up to T = 2: the third document is the last, and 2/3 is gained for each."""
    assert parse("BPM(max=3,T=2)@10").of_list([2, 3, 1, 0, 0]) == pytest.approx(2 / 3, rel=1e-14)
    assert parse("BPMD(max=5)@10").of_list([3, 0, 0, 0]) == pytest.approx(0.2, rel=1e-14)
    assert parse("BPM(max=3,T=2,of=ED)@10")(every_list)[LISTS.index((2, 3, 1, 0, 0))] == 3.0


@pytest.mark.parametrize("budget", [1, 2])
@pytest.mark.parametrize("goal", ["2", "9"])
def test_a_budget_of_tenths_ends_where_exact_fractions_end(every_list: Any, goal: str, budget: int) -> None:
    """The five documents cost 1, and every place below them 1 more."""
    costs = tuple(Fraction(tenths, 10) for tenths in (1, 3, 1, 2, 3))
    expected = [read_documents(grades, Fraction(goal), Fraction(budget), costs) for grades in LISTS]
    check(f"BPM(max=3,T={goal},costs=column,depth={DEPTH})@{budget}", every_list, expected)


def test_ten_documents_of_a_tenth_spend_a_budget_of_one() -> None:
    """Ten doubles 0.1 add up to 0.9999999999999999."""
    tenth = {"cost": [0.1] * 12}
    assert parse("BPM(max=1,T=99,costs=column,of=ED)@1").of_list([0] * 12, facts=tenth) == 10.0
    assert parse("BPMD(max=1,T=99,hb=0,hc=0,costs=column,of=ED)@1").of_list([0] * 12, facts=tenth) == 10.0


@pytest.mark.parametrize(
    ("goal", "benefit_step", "cost_step", "budget"),
    [("1", "1", "1", 10), ("2", "1", "0", 10), ("2/3", "1/3", "1", 3), ("1", "0.1", "0.3", 2), ("3", "0", "1/3", 4)],
)
def test_bpmd_stops_where_exact_fractions_stop(
    every_list: Any, goal: str, benefit_step: str, cost_step: str, budget: int
) -> None:
    limit, benefit, cost = Fraction(goal), Fraction(benefit_step), Fraction(cost_step)
    expected = [
        read_documents(grades, limit, Fraction(budget), benefit_step=benefit, cost_step=cost) for grades in LISTS
    ]
    parameters = f"T={float(limit)!r},hb={float(benefit)!r},hc={float(cost)!r}"
    check(f"BPMD(max=3,{parameters},depth={DEPTH})@{budget}", every_list, expected)


def test_the_tolerance_grows_with_the_limit_and_not_below_one() -> None:
    """A sum of 10^6 costs of 0.1 is off by more than 1e-9; a sum that is short by 1e-8 has not reached a limit of 1."""
    total = np.cumsum(np.full((1, 1_000_000), 0.1), axis=1)
    assert abs(total[0, -1] - 100_000) > LIMIT_TOLERANCE
    assert int(is_below(total, 100_000.0).sum()) == 999_999
    short = np.array([[1 - 1e-8, 1 - 1e-10]])
    assert is_below(short, 1.0).tolist() == [[1.0, 0.0]]
    assert is_below(short / 1e8, 1e-8).tolist() == [[0.0, 0.0]]
    falling = np.array([[1e6, 1e6, 1.0]])  # what is left of a large limit has the error of the large one
    assert is_below(np.array([[0.0, 0.0, 1.0 - 1e-5]]), falling).tolist() == [[1.0, 1.0, 0.0]]


# --- the greedy ideal of the diversity measures ---------------------------------------------------------


def greedy_order(documents: list[set[int]], alpha: Fraction) -> list[int]:
    """Order documents as the greedy ideal does, in exact fractions; the last document has the greatest id."""
    remaining, weights, order = list(range(len(documents)))[::-1], dict[int, Fraction](), list[int]()
    while remaining:
        best = max(remaining, key=lambda doc: sum(weights.get(topic, Fraction(1)) for topic in documents[doc]))
        remaining.remove(best)
        order.append(best)
        for topic in documents[best]:
            weights[topic] = weights.get(topic, Fraction(1)) * (1 - alpha)
    return order


EQUAL_GAINS = [
    ("0.1", [{0, 1, 2, 4}, {0, 1, 3, 4}, {0, 1, 2, 3, 5}, {0, 3, 4, 5}, {1, 3}]),
    ("0.4", [{0, 2, 3}, {0, 1, 2, 3, 4}, {0, 1, 2, 4}, {1, 2}, {1, 3}, {0, 2, 4}, {0, 1, 2}]),
    ("0.1", [{1, 2, 4, 5}, {1, 3, 4}, {1, 3, 4, 5}, {0, 3, 4, 5}, {0, 1, 3, 5}, {0, 1, 2, 4}, {2}, {0, 3, 4, 5}]),
]


@pytest.mark.parametrize(("alpha", "documents"), EQUAL_GAINS)
def test_of_equal_gains_the_greedy_ideal_takes_the_greatest_id(alpha: str, documents: list[set[int]]) -> None:
    """A ranking in the order of the exact greedy ideal scores 1; doubles alone make another ideal."""
    order = greedy_order(documents, Fraction(alpha))
    names = ("query_id", "iteration", "doc_id", "relevance")
    rows = [("q", str(topic), f"d{doc}", 1.0) for doc in order for topic in sorted(documents[doc])]
    qrels = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    run = {"q": {f"d{doc}": -float(rank) for rank, doc in enumerate(order)}}
    score = parse(f"AlphanDCG(alpha={alpha})@{len(order)}")(judged.judge(qrels, run))
    assert score.tolist() == pytest.approx([1.0], abs=1e-12)


# --- recall points: doubles, because trec_eval is their definition ----------------------------------------


def precision_at_relevant(share: float, relevant: int, rounding: str) -> float:
    """Score a ranking in which the n-th of R relevant documents is at rank 2n - 1."""
    grades = [1] + [0, 1] * (relevant - 1)
    return float(parse(f"IPrec(rounding={rounding})@{share}").of_list(grades))


CASES = [  # (recall, R, n by trec_eval's doubles, n by exact arithmetic)
    ("nearest", 0.7, 45, 31, 32),
    ("nearest", 0.7, 85, 59, 60),
    ("nearest", 0.7, 165, 115, 116),
    ("nearest", 0.7, 175, 122, 123),
    ("up", 0.3, 57, 17, 18),
    ("up", 0.7, 3, 2, 3),
    ("up", 0.7, 63, 44, 45),
]


@pytest.mark.parametrize(("rounding", "share", "relevant", "doubles", "exact"), CASES)
def test_recall_points_are_rounded_in_doubles_as_trec_eval_does(
    rounding: str, share: float, relevant: int, doubles: int, exact: int
) -> None:
    """The n-th relevant document is at rank 2n - 1, so the precision there is n / (2n - 1), which falls with n."""
    tenths = Fraction(round(share * 10), 10)
    added = Fraction(1, 2) if rounding == "nearest" else Fraction(9, 10)
    assert (tenths * relevant + added).__floor__() == exact
    score = precision_at_relevant(share, relevant, rounding)
    assert score == pytest.approx(doubles / (2 * doubles - 1), rel=1e-14)


def test_a_multiple_of_r_is_rounded_in_doubles_as_trec_eval_does() -> None:
    """0.7 * 3 + 0.9 is 2.9999999999999996: two places, of which one is relevant."""
    assert parse("RprecMult@0.7").of_list([1, 0, 1, 1]) == 0.5
