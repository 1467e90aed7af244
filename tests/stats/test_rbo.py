"""Rank-biased overlap: published values, enumeration of what may stand below, means over tied orders."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from judged.errors import InputError
from judged.stats.rank_biased_overlap import overlap_at, rbo, rbo_weight, union_tau

# rows of the test data of Corsi and Urbano 2024 (their rbo/test.csv): two rankings, p, and ext, min, max for w, a, b
PUBLISHED = [
    (
        "(i5 i9 i13 i15 i16 i19 i20) (i3 i8)", "i6 (i4 i18) i2 i7 i8 i17 i14 (i11 i12) i1", 0.958074765324023,
        (0.0816485573277354, 0.0370062754797617, 0.59493569657566),
        (0.0808189832771587, 0.0354671825076603, 0.593396603603558),
        (0.0813693619867344, 0.0356267307324464, 0.593556151828344),
    ),
    (
        "(i1 i3 i6 i11 i15) i17 (i5 i8)", "(i1 i2 i3 i4 i5 i6 i7 i8 i9 i10 i11 i12)", 0.966485585840186,
        (0.647993254615828, 0.307897712904381, 0.853885398258049),
        (0.56593642947334, 0.250532359019861, 0.795583602856033),
        (0.658581961799868, 0.315458973083789, 0.861496368240528),
    ),
    (
        "i23 (i1 i7 i9 i11 i17 i18) i3 i15", "(i3 i11 i17 i18 i23) i1 (i7 i15 i19) i5 (i9 i14) i21 i2",
        0.937283622416433,
        (0.829709983835696, 0.556794903569998, 0.84967027009363),
        (0.771054717340052, 0.498792987041842, 0.791927771934917),
        (0.843515651496785, 0.571149913548087, 0.864425108769321),
    ),
    (
        "(i3 i17) (i2 i10) i6", "(i5 i8 i12) (i1 i15) (i3 i4 i9 i17) (i7 i13 i14)", 0.910821537247598,
        (0.120675124842583, 0.0989691241859761, 0.495680111976355),
        (0.103731122635625, 0.0820251219790182, 0.486020786926011),
        (0.105546655341171, 0.0838406546845639, 0.491804734670077),
    ),
    (
        "i3 (i1 i5 i7) i9", "(i1 i9) i7 i3 i4", 0.930093081332594,
        (0.697096710334179, 0.35176094170816, 0.836304027811629),
        (0.678580739450433, 0.333244970824414, 0.817788056927883),
        (0.684614956129899, 0.339279187503881, 0.82382227360735),
    ),
]  # fmt: skip


def ranks(*rankings: str) -> list[np.ndarray]:
    """Read rankings in which brackets hold what is tied."""
    placed = []
    for text in rankings:
        place, docs = 1, {}
        for tied, single in re.findall(r"\(([^)]*)\)|(\S+)", text):
            group = (tied or single).split()
            docs |= dict.fromkeys(group, place)
            place += len(group)
        placed.append(docs)
    names = sorted({doc for docs in placed for doc in docs})
    return [np.array([docs.get(doc, 0) for doc in names]) for docs in placed]


@pytest.mark.parametrize("row", PUBLISHED)
def test_published_values_with_ties(row) -> None:
    first, second, p, *expected = row
    for ties, numbers in zip("wab", expected, strict=True):
        for pair in (ranks(first, second), ranks(second, first)):
            found = rbo(*pair, p, ties)
            assert (found.value, found.low, found.high) == pytest.approx(numbers, abs=1e-12)


orders = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5, unique=True)


def infinite(first: list[str], second: list[str], p: float) -> float:
    """Sum the overlap of two long lists."""
    return (1 - p) * sum(
        p ** (depth - 1) * len({*first[:depth]} & {*second[:depth]}) / depth for depth in range(1, len(first) + 1)
    )


@given(orders, orders, st.sampled_from([0.3, 0.5, 0.7]))
def test_bounds_are_reached_and_not_passed(first: list[str], second: list[str], p: float) -> None:
    found = rbo(*ranks(" ".join(first), " ".join(second)), p)
    depth = 120
    apart = [[*side, *(f"{name}{at}" for at in range(depth))][:depth] for name, side in (("x", first), ("y", second))]
    assert found.low == pytest.approx(infinite(*apart, p), abs=1e-9)
    assert found.high == pytest.approx(infinite(*closest(first, second, depth), p), abs=1e-9)
    assert found.low - 1e-12 <= found.value <= found.high + 1e-12
    assert found.residual == found.high - found.low


def closest(first: list[str], second: list[str], depth: int) -> tuple[list[str], list[str]]:
    """Go on below both rankings with what the other one has already, and then with the same."""
    one, other = list(first), list(second)
    short, long = (one, other) if len(one) <= len(other) else (other, one)
    while len(short) < len(long):
        short.append(next(doc for doc in long if doc not in short))
    at = 0
    while len(one) < depth:
        missing = [doc for doc in other if doc not in one], [doc for doc in one if doc not in other]
        at += 1
        one.append(missing[0][0] if missing[0] else f"new{at}")
        other.append(missing[1][0] if missing[1] else f"new{at}")
    return one, other


@settings(max_examples=40)
@given(orders, orders, st.data())
def test_variant_a_is_the_mean_over_all_orders_of_the_tied(
    first: list[str], second: list[str], data: st.DataObject
) -> None:
    """Of rankings of different length only the lower bound is that mean."""
    tied = [cut(side[:4], data.draw(st.integers(0, 2 ** len(side[:4]) - 1))) for side in (first, second)]
    texts = [" ".join(f"({' '.join(group)})" for group in groups) for groups in tied]
    found = rbo(*ranks(*texts), 0.8, "a")
    single = [
        rbo(*ranks(" ".join(one), " ".join(other)), 0.8) for one in all_orders(tied[0]) for other in all_orders(tied[1])
    ]
    for name in ("value", "low", "high") if found.lengths[0] == found.lengths[1] else ("low",):
        assert getattr(found, name) == pytest.approx(np.mean([getattr(one, name) for one in single]), abs=1e-12)


def cut(docs: list[str], bits: int) -> list[list[str]]:
    """Cut a list into ties where the bits say so."""
    groups = [[docs[0]]]
    for at, doc in enumerate(docs[1:]):
        if bits >> at & 1:
            groups.append([doc])
        else:
            groups[-1].append(doc)
    return groups


def all_orders(groups: list[list[str]]) -> list[list[str]]:
    parts = itertools.product(*(itertools.permutations(group) for group in groups))
    return [[doc for group in part for doc in group] for part in parts]


@pytest.mark.parametrize("ties", ["a", "b", "w"])
def test_a_ranking_with_itself(ties: str) -> None:
    one, _ = ranks("(a b) c (d e f) g", "a")
    same = rbo(one, one, 0.9, ties)
    if ties == "a":  # what is tied may stand in another order
        assert same.value < 1
    else:
        assert same.value == pytest.approx(1)
        assert same.high == pytest.approx(1)


def test_only_the_order_of_the_ranks_counts() -> None:
    first, second = np.array([1, 2, 2, 4, 0]), np.array([3, 1, 0, 1, 4])
    assert rbo(first, second) == rbo(first * 10, np.where(second > 0, second + 5, 0))
    assert rbo(first, second).lengths == (4, 4)


def test_weight_of_the_first_ranks() -> None:
    # Webber et al. 2010: for p = 0.9 the first ten ranks have 86 % of the weight
    assert round(rbo_weight(0.9, 10), 2) == 0.86
    for p, depth in ((0.5, 1), (0.5, 4), (0.98, 30)):
        weights = [p ** (at - 1) * (1 - p) / at for at in range(1, 3000)]
        each = [sum(weights[rank - 1 :]) for rank in range(1, depth + 1)]
        assert rbo_weight(p, depth) == pytest.approx(sum(each), abs=1e-9)


def test_no_ranking() -> None:
    found = rbo(np.array([1, 2]), np.array([0, 0]))
    assert math.isnan(found.value)
    assert found.sentence == "RBO is undefined: a ranking is empty."
    assert rbo(np.zeros(0, dtype=int), np.zeros(0, dtype=int)).lengths == (0, 0)


def test_nothing_in_common() -> None:
    found = rbo(np.array([1, 2, 0, 0]), np.array([0, 0, 1, 2]), 0.5)
    assert (found.value, found.low) == (0, 0)
    # at depths 3 and 4 at most 2 of 3 and all 4 are shared
    assert found.high == pytest.approx(0.5**3 * 2 / 3 + 0.5**3)
    assert found.residual == found.high


def test_overlap() -> None:
    first, second = np.array([1, 2, 3, 4, 0, 0]), np.array([2, 0, 1, 0, 3, 4])
    assert overlap_at(first, second, 3) == pytest.approx(2 / 3)
    assert overlap_at(first, second, 100) == pytest.approx(2 / 4)
    assert math.isnan(overlap_at(np.zeros(2), np.zeros(2), 3))
    with pytest.raises(InputError, match="positive integer, got 0"):
        overlap_at(first, second, 0)


def test_tau_of_the_union() -> None:
    # the examples of Breuer et al. 2020
    assert union_tau(*ranks("d1 d2 d3", "d1 d2 d4")) == 1
    assert union_tau(*ranks("d1 d2 d3 d4", "d2 d5 d3 d6")) == pytest.approx(2 / 3)
    places = [0, 4, 1, 5, 2]  # of a e b f c in a b c d e f
    assert union_tau(*ranks("a b c d", "a e b f c"), 4) == pytest.approx(
        scipy.stats.kendalltau(range(4), places[:4]).statistic
    )
    assert math.isnan(union_tau(*ranks("a b", "a")))


def test_wrong_input() -> None:
    good = np.array([1, 2])
    with pytest.raises(InputError, match="between 0 and 1, got 1"):
        rbo(good, good, 1)
    with pytest.raises(InputError, match=r"`ties`.*'c'"):
        rbo(good, good, 0.5, "c")
    with pytest.raises(InputError, match="got 2 and 3 ranks"):
        rbo(good, np.array([1, 2, 3]))
    with pytest.raises(InputError, match="list of integers"):
        rbo(np.array([1.0, 2.0]), good)
