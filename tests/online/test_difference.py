"""Differences of slices and periods, what moved a number, and the funnel."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from dozen_sessions import pages_and_events
from judged.errors import InputError
from judged.online import difference, funnel, online_metrics, overview
from judged.online.statistics.changes import decomposition, part_interval
from judged.stats.ratio import RatioSums, correlation, ratio_difference
from typed_logs import typed_log

DAY = 86_400_000


def _two_weeks(seed: int = 1, users: int = 80, worse: float = 0.0) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Make two weeks of users who come in one or both, ask for what is popular, and click as they like to."""
    rng = np.random.default_rng(seed)
    texts = [f"query {at}" for at in range(6)]
    pages, events = [], []
    for user in range(users):
        liking = rng.beta(3, 3)
        for week in (0, 1):
            for _ in range(int(rng.geometric(0.2)) * int(rng.random() < 0.7)):
                serp, time_ms = len(pages), int(week * 7 * DAY + rng.integers(7 * DAY))
                text = str(rng.choice(texts, p=[0.4, 0.2, 0.1, 0.1, 0.1, 0.1]))
                pages.append({"serp": serp, "session": serp, "user": user, "time_ms": time_ms, "query": text,
                              "device": str(rng.choice(["desktop", "mobile"])), "n_shown": 10})  # fmt: skip
                if rng.random() < liking - worse * week:
                    events.append({"serp": serp, "session": serp, "user": user, "time_ms": time_ms + 1000,
                                   "action": "click", "rank": 1})  # fmt: skip
    first, last = {"serp": -1, "session": -1, "time_ms": 0}, {"serp": -2, "session": -2, "time_ms": 14 * DAY - 1}
    ends = [one | {"user": -1, "query": "end", "device": "desktop", "n_shown": 10} for one in (first, last)]
    return [*pages, *ends], events


def _sums(pages: list[dict[str, Any]], events: list[dict[str, Any]], side: Any) -> dict[int, list[int]]:
    """Count, by user, pages with a click and pages on one side."""
    clicked = {one["serp"] for one in events}
    found: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for one in pages:
        if side(one):
            found[one["user"]][0] += one["serp"] in clicked
            found[one["user"]][1] += 1
    return found


@pytest.mark.parametrize("by", ["device", None])
def test_a_difference_is_that_of_a_plain_program(by: str | None) -> None:
    pages, events = _two_weeks()
    sides = [lambda one: one["device"] == "desktop", lambda one: one["device"] == "mobile"]
    if by is None:
        sides = [lambda one: one["time_ms"] < 7 * DAY, lambda one: one["time_ms"] >= 7 * DAY]
    first, second = (_sums(pages, events, side) for side in sides)

    def made(sums: dict[int, list[int]]) -> RatioSums:
        n, d = np.array(list(sums.values()), dtype=float).T
        return RatioSums(len(n), n.sum(), d.sum(), n @ n, d @ d, n @ d)

    both = [(first[user], second[user]) for user in set(first) & set(second)]
    products = [sum(a[x] * b[y] for a, b in both) for x in (0, 1) for y in (0, 1)]
    a, b = made(first), made(second)
    expected = ratio_difference(a, b, 0.95, rho=correlation(a, b, *map(float, products)), share=True)
    [found] = difference(typed_log(pages, events), "PageCTR", by=by).found
    assert (found.baseline.value, found.other.value) == pytest.approx((a.value, b.value))
    between = found.difference
    assert (between.value, between.low, between.high, between.p) == pytest.approx(
        (expected.value, expected.low, expected.high, expected.p)
    )
    whole = online_metrics(typed_log(pages, events), "PageCTR", by="device")
    if by is not None:
        assert found.other.value == whole.of("PageCTR", "mobile").value


def test_p_and_interval_fit_one_another() -> None:
    a, b = RatioSums(100, 20, 100, 20, 100, 20), RatioSums(100, 33, 100, 33, 100, 33)
    p = ratio_difference(a, b, 0.95, share=True).p
    for level, leaves_out in ((1 - p * 1.001, True), (1 - p * 0.999, False)):
        made = ratio_difference(a, b, level, share=True)
        assert (made.low > 0) is leaves_out


@pytest.mark.parametrize(("users", "rate", "both"), [(40, 0.3, 0.7), (100, 0.05, 0.0), (100, 0.3, 0.7)])
def test_equal_ratios_seldom_differ(users: int, rate: float, both: float) -> None:
    """Users of very different size, some of them on both sides: at most 5 in 100 differ at 0.05, within chance."""
    rng = np.random.default_rng(5)

    def sums(n: Any, d: Any) -> RatioSums:
        return RatioSums(float((d > 0).sum()), n.sum(), d.sum(), float(n @ n), float(d @ d), float(n @ d))

    differ = []
    for _ in range(300):
        liking = rng.beta(5 * rate, 5 * (1 - rate), users)
        inside = rng.random(users) < 0.5 + both / 2
        there = np.where(inside, rng.random(users) < both, True)
        d1, d2 = (np.where(on, rng.geometric(0.25, users), 0) for on in (inside, there))
        n1, n2 = (rng.binomial(d, liking).astype(float) for d in (d1, d2))
        a, b = sums(n1, d1), sums(n2, d2)
        rho = correlation(a, b, float(n1 @ n2), float(n1 @ d2), float(d1 @ n2), float(d1 @ d2))
        differ.append(ratio_difference(a, b, 0.95, rho=rho, share=True).p <= 0.05)
    assert np.mean(differ) < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 300)


def test_weights_are_the_derivatives_of_the_parts() -> None:
    rng = np.random.default_rng(1)
    n = rng.integers(1, 20, (2, 4)).astype(float)
    d = n + rng.integers(1, 20, (2, 4)).astype(float)
    made = decomposition(n, d)
    change = n[1].sum() / d[1].sum() - n[0].sum() / d[0].sum()
    assert made.mix + made.within == pytest.approx(change)
    for period, stratum, what in np.ndindex(2, 4, 2):
        moved = np.stack([n, d])
        moved[what, period, stratum] += 1e-6
        after = decomposition(moved[0], moved[1])
        assert (after.mix - made.mix) / 1e-6 == pytest.approx(made.mix_weights[period, what, stratum], abs=1e-5)
        assert (after.within - made.within) / 1e-6 == pytest.approx(
            made.within_weights[period, what, stratum], abs=1e-5
        )


def test_intervals_of_the_parts_hold_the_truth() -> None:
    """Six queries, two weeks: other queries are asked in the second, and each is clicked three in a hundred more."""
    rng = np.random.default_rng(2)
    shares = np.array([[0.4, 0.2, 0.1, 0.1, 0.1, 0.1], [0.2, 0.3, 0.2, 0.1, 0.1, 0.1]])
    ratios = np.linspace(0.2, 0.6, 6)
    truth = decomposition(shares * (ratios + np.array([[0.0], [0.03]])), shares)
    held = []
    for _ in range(300):
        liking = rng.normal(0.0, 0.1, 150)
        d = np.stack([rng.multinomial(rng.geometric(0.15, 150), part) for part in shares]).astype(float)
        chance = np.clip(ratios + liking[:, None] + np.array([0.0, 0.03])[:, None, None], 0, 1)
        n = rng.binomial(d.astype(int), chance).astype(float)
        made = decomposition(n.sum(axis=1), d.sum(axis=1))
        effective = min(part.sum() ** 2 / (part**2).sum() for part in d.sum(axis=2))
        for part, weights, true in (
            (made.mix, made.mix_weights, truth.mix),
            (made.within, made.within_weights, truth.within),
        ):
            moved = (n * weights[:, 0, None] + d * weights[:, 1, None]).sum(axis=(0, 2))
            low, high = part_interval(part, float(moved @ moved), 150, effective, 0.95)
            held.append(low <= true <= high)
    assert np.mean(held) > 0.92


def test_what_moved_a_number_is_that_of_a_plain_program() -> None:
    pages, events = _two_weeks(worse=0.3)
    clicked = {one["serp"] for one in events}
    n, d = (np.zeros((2, 7)) for _ in range(2))
    for one in pages:
        period, text = int(one["time_ms"] >= 7 * DAY), 6 if one["query"] == "end" else int(one["query"][-1])
        n[period, text] += one["serp"] in clicked
        d[period, text] += 1
    few = d.min(axis=0) < 20  # one stratum together
    n, d = (np.concatenate([part[:, ~few], part[:, few].sum(axis=1, keepdims=True)], axis=1) for part in (n, d))
    names = [*(f"query {at}" for at in np.flatnonzero(~few)), "all others"]
    expected = decomposition(n, d)
    answer = overview(typed_log(pages, events), ["PageCTR", "SessionCTR"])
    moved, of_sessions = answer.movements
    assert moved.mix is not None
    assert moved.within is not None
    assert (moved.mix.value, moved.within.value) == pytest.approx((expected.mix, expected.within))
    assert moved.mix.value + moved.within.value == pytest.approx(moved.change.difference.value)
    assert moved.within.high < 0 < moved.mix.high
    largest = np.argsort(-np.abs(expected.by_stratum), kind="stable")[:3]
    assert dict(moved.queries) == pytest.approx({names[at]: expected.by_stratum[at] for at in largest})
    assert (of_sessions.mix, of_sessions.queries) == (None, ())
    assert moved.change.p < 0.001
    sums = [[_sums(pages, events, lambda one, w=w: (one["time_ms"] >= 7 * DAY) == w)] for w in (False, True)]
    assert answer.counts == (("pages", *(sum(x[1] for x in s.values()) for [s] in sums)),
                             ("users", *(len(s) for [s] in sums)))  # fmt: skip


@pytest.mark.slow
def test_logs_without_a_change_seldom_change() -> None:
    asked = ["PageCTR", "FirstClickRR"]
    changed = [
        min(one.change.p for one in overview(typed_log(*_two_weeks(seed, users=50)), asked).movements)
        for seed in range(60)
    ]
    assert sum(p <= 0.05 for p in changed) <= 8  # 3 expected: 9 have a chance below 0.004


def test_the_funnel_of_a_dozen_sessions() -> None:
    """By hand: A1, B1, B2, C, D, E2, F, G, H1 click; B1 and D have a cart or buy; G's comes too late."""
    log = typed_log(*pages_and_events())
    found = funnel(log)
    assert [(one.step, one.reached) for one in found.steps] == [
        ("search", 12),
        ("click", 9),
        ("cart", 2),
        ("purchase", 2),
    ]
    assert found.steps[2].of_last.value == pytest.approx(2 / 9)
    by_page = funnel(log, row="page", by="device")
    reached = {(one.slice, one.step): one.reached for one in by_page.steps}
    # D's page 10 had a cart and no click: it came to the cart, and so counts among the clicks
    assert reached[None, "search"] == 22
    assert reached[None, "click"] == 13
    assert reached[None, "cart"] == 3
    assert reached[None, "purchase"] == 2
    assert reached["desktop", "search"] + reached["mobile", "search"] == 22


def test_what_makes_no_sense_is_refused() -> None:
    log = typed_log(*pages_and_events())
    with pytest.raises(InputError, match="two comparisons"):
        difference(log, by="device", since="2023-11-20")
    with pytest.raises(InputError, match="no slice"):
        difference(log, by="device", baseline="tablet")
    with pytest.raises(InputError, match="no page is on one side"):
        overview(log, since="1999-01-01")
    with pytest.raises(InputError, match="nothing behind the search"):
        funnel(typed_log(*pages_and_events(), has=frozenset({"shown"})))
    found = difference(log, ["PageCTR", "Latency(q=0.5)"], by="device")
    assert {str(metric): why for metric, why in found.refused} == {"Latency(q=0.5)": "it is no ratio of two sums"}
