"""Differences between slices and periods, the decomposition of changes, and the funnel."""

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


def _two_weeks(
    seed: int = 1, users: int = 80, decrease: float = 0.0
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Sample two weeks of users who come in one or both weeks and click with individual probabilities."""
    rng = np.random.default_rng(seed)
    texts = [f"query {i}" for i in range(6)]
    pages, events = [], []
    for user in range(users):
        click_probability = rng.beta(3, 3)
        for week in (0, 1):
            for _ in range(int(rng.geometric(0.2)) * int(rng.random() < 0.7)):
                serp, time_ms = len(pages), int(week * 7 * DAY + rng.integers(7 * DAY))
                text = str(rng.choice(texts, p=[0.4, 0.2, 0.1, 0.1, 0.1, 0.1]))
                pages.append({"serp": serp, "session": serp, "user": user, "time_ms": time_ms, "query": text,
                              "device": str(rng.choice(["desktop", "mobile"])), "n_shown": 10})  # fmt: skip
                if rng.random() < click_probability - decrease * week:
                    events.append({"serp": serp, "session": serp, "user": user, "time_ms": time_ms + 1000,
                                   "action": "click", "rank": 1})  # fmt: skip
    first, last = {"serp": -1, "session": -1, "time_ms": 0}, {"serp": -2, "session": -2, "time_ms": 14 * DAY - 1}
    ends = [row | {"user": -1, "query": "end", "device": "desktop", "n_shown": 10} for row in (first, last)]
    return [*pages, *ends], events


def test_note_states_the_correction() -> None:
    log = typed_log(*_two_weeks(users=20))
    texts = [difference(log, "PageCTR", by="device", correction=name).text() for name in ("holm", "none")]
    notes = [" ".join(text.split()) for text in texts]
    assert "p adjusted for 1 difference (correction: holm)" in notes[0]
    assert "p not adjusted for 1 difference;" in notes[1]


def _sums(pages: list[dict[str, Any]], events: list[dict[str, Any]], is_on_side: Any) -> dict[int, list[int]]:
    """Count clicked pages and pages of each user on one side."""
    clicked = {event["serp"] for event in events}
    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for page in pages:
        if is_on_side(page):
            sums[page["user"]][0] += page["serp"] in clicked
            sums[page["user"]][1] += 1
    return sums


@pytest.mark.parametrize("by", ["device", None])
def test_differences_equal_an_independent_computation(by: str | None) -> None:
    pages, events = _two_weeks()
    sides = [lambda page: page["device"] == "desktop", lambda page: page["device"] == "mobile"]
    if by is None:
        sides = [lambda page: page["time_ms"] < 7 * DAY, lambda page: page["time_ms"] >= 7 * DAY]
    first, second = (_sums(pages, events, side) for side in sides)

    def ratio_sums(sums: dict[int, list[int]]) -> RatioSums:
        n, d = np.array(list(sums.values()), dtype=float).T
        return RatioSums(len(n), n.sum(), d.sum(), n @ n, d @ d, n @ d)

    pairs = [(first[user], second[user]) for user in set(first) & set(second)]
    products = [sum(a[x] * b[y] for a, b in pairs) for x in (0, 1) for y in (0, 1)]
    a, b = ratio_sums(first), ratio_sums(second)
    expected = ratio_difference(a, b, 0.95, rho=correlation(a, b, *map(float, products)), share=True)
    [row] = difference(typed_log(pages, events), "PageCTR", by=by).differences
    assert (row.baseline.value, row.other.value) == pytest.approx((a.value, b.value))
    actual = row.difference
    assert (actual.value, actual.low, actual.high, actual.p) == pytest.approx(
        (expected.value, expected.low, expected.high, expected.p)
    )
    scores = online_metrics(typed_log(pages, events), "PageCTR", by="device")
    if by is not None:
        assert row.other.value == scores.of("PageCTR", "mobile").value


def test_p_values_and_intervals_are_consistent() -> None:
    a, b = RatioSums(100, 20, 100, 20, 100, 20), RatioSums(100, 33, 100, 33, 100, 33)
    p = ratio_difference(a, b, 0.95, share=True).p
    for level, excludes_zero in ((1 - p * 1.001, True), (1 - p * 0.999, False)):
        result = ratio_difference(a, b, level, share=True)
        assert (result.low > 0) is excludes_zero


@pytest.mark.parametrize(("users", "rate", "overlap"), [(40, 0.3, 0.7), (100, 0.05, 0.0), (100, 0.3, 0.7)])
def test_type_1_error_of_differences(users: int, rate: float, overlap: float) -> None:
    """With users of very different activity, some in both slices, at most 5% of tests are significant."""
    rng = np.random.default_rng(5)

    def sums(n: Any, d: Any) -> RatioSums:
        return RatioSums(float((d > 0).sum()), n.sum(), d.sum(), float(n @ n), float(d @ d), float(n @ d))

    is_significant = []
    for _ in range(300):
        click_probability = rng.beta(5 * rate, 5 * (1 - rate), users)
        in_first = rng.random(users) < 0.5 + overlap / 2
        in_second = np.where(in_first, rng.random(users) < overlap, True)
        d1, d2 = (np.where(mask, rng.geometric(0.25, users), 0) for mask in (in_first, in_second))
        n1, n2 = (rng.binomial(d, click_probability).astype(float) for d in (d1, d2))
        a, b = sums(n1, d1), sums(n2, d2)
        rho = correlation(a, b, float(n1 @ n2), float(n1 @ d2), float(d1 @ n2), float(d1 @ d2))
        is_significant.append(ratio_difference(a, b, 0.95, rho=rho, share=True).p <= 0.05)
    assert np.mean(is_significant) < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 300)


def test_weights_are_the_derivatives_of_the_parts() -> None:
    rng = np.random.default_rng(1)
    n = rng.integers(1, 20, (2, 4)).astype(float)
    d = n + rng.integers(1, 20, (2, 4)).astype(float)
    parts = decomposition(n, d)
    change = n[1].sum() / d[1].sum() - n[0].sum() / d[0].sum()
    assert parts.mix + parts.within == pytest.approx(change)
    for period, stratum, side in np.ndindex(2, 4, 2):
        shifted = np.stack([n, d])
        shifted[side, period, stratum] += 1e-6
        after = decomposition(shifted[0], shifted[1])
        derivatives = (after.mix - parts.mix) / 1e-6, (after.within - parts.within) / 1e-6
        weights = parts.mix_weights[period, side, stratum], parts.within_weights[period, side, stratum]
        assert derivatives == pytest.approx(weights, abs=1e-5)


def test_coverage_of_the_intervals_of_mix_and_within() -> None:
    """Coverage for six queries over two weeks, where both the mix and the CTR of each query change."""
    rng = np.random.default_rng(2)
    shares = np.array([[0.4, 0.2, 0.1, 0.1, 0.1, 0.1], [0.2, 0.3, 0.2, 0.1, 0.1, 0.1]])
    ratios = np.linspace(0.2, 0.6, 6)
    truth = decomposition(shares * (ratios + np.array([[0.0], [0.03]])), shares)
    covered = []
    for _ in range(300):
        user_effect = rng.normal(0.0, 0.1, 150)
        d = np.stack([rng.multinomial(rng.geometric(0.15, 150), weights) for weights in shares]).astype(float)
        click_probability = np.clip(ratios + user_effect[:, None] + np.array([0.0, 0.03])[:, None, None], 0, 1)
        n = rng.binomial(d.astype(int), click_probability).astype(float)
        parts = decomposition(n.sum(axis=1), d.sum(axis=1))
        effective = min(sizes.sum() ** 2 / (sizes**2).sum() for sizes in d.sum(axis=2))
        for estimate, weights, true in (
            (parts.mix, parts.mix_weights, truth.mix),
            (parts.within, parts.within_weights, truth.within),
        ):
            influence = (n * weights[:, 0, None] + d * weights[:, 1, None]).sum(axis=(0, 2))
            low, high = part_interval(estimate, float(influence @ influence), 150, effective, 0.95)
            covered.append(low <= true <= high)
    assert np.mean(covered) > 0.92


def test_the_decomposition_equals_an_independent_computation() -> None:
    pages, events = _two_weeks(decrease=0.3)
    clicked = {event["serp"] for event in events}
    n, d = (np.zeros((2, 7)) for _ in range(2))
    for page in pages:
        period, text = int(page["time_ms"] >= 7 * DAY), 6 if page["query"] == "end" else int(page["query"][-1])
        n[period, text] += page["serp"] in clicked
        d[period, text] += 1
    rare = d.min(axis=0) < 20  # these share one stratum
    n, d = (np.concatenate([sums[:, ~rare], sums[:, rare].sum(axis=1, keepdims=True)], axis=1) for sums in (n, d))
    names = [*(f"query {i}" for i in np.flatnonzero(~rare)), "all others"]
    expected = decomposition(n, d)
    answer = overview(typed_log(pages, events), ["PageCTR", "SessionCTR"])
    ctr, session_ctr = answer.changes
    assert ctr.mix is not None
    assert ctr.within is not None
    assert (ctr.mix.value, ctr.within.value) == pytest.approx((expected.mix, expected.within))
    assert ctr.mix.value + ctr.within.value == pytest.approx(ctr.change.difference.value)
    assert ctr.within.high < 0 < ctr.mix.high
    largest = np.argsort(-np.abs(expected.by_stratum), kind="stable")[:3]
    assert dict(ctr.queries) == pytest.approx({names[i]: expected.by_stratum[i] for i in largest})
    assert (session_ctr.mix, session_ctr.queries) == (None, ())
    assert ctr.change.p < 0.001
    periods = [_sums(pages, events, lambda page, since=since: (page["time_ms"] >= 7 * DAY) == since)
               for since in (False, True)]  # fmt: skip
    page_counts = (sum(pages for _, pages in users.values()) for users in periods)
    assert answer.counts == (("pages", *page_counts), ("users", *map(len, periods)))


@pytest.mark.slow
def test_type_1_error_of_the_overview() -> None:
    metrics = ["PageCTR", "FirstClickRR"]
    p_values = [
        min(row.change.p for row in overview(typed_log(*_two_weeks(seed, users=50)), metrics).changes)
        for seed in range(60)
    ]
    assert sum(p <= 0.05 for p in p_values) <= 8  # 3 expected; P(9 or more) < 0.004


def test_the_funnel_of_a_dozen_sessions() -> None:
    """By hand: A1, B1, B2, C, D, E2, F, G, H1 click; B1 and D have a cart or purchase; that of G is too late."""
    log = typed_log(*pages_and_events())
    result = funnel(log)
    assert [(step.step, step.reached) for step in result.steps] == [
        ("search", 12),
        ("click", 9),
        ("cart", 2),
        ("purchase", 2),
    ]
    assert result.steps[2].of_last.value == pytest.approx(2 / 9)
    by_page = funnel(log, row="page", by="device")
    reached = {(step.slice, step.step): step.reached for step in by_page.steps}
    # Page 10 of D has a cart but no click. It counts as a click, because it reached a later step.
    assert reached[None, "search"] == 22
    assert reached[None, "click"] == 13
    assert reached[None, "cart"] == 3
    assert reached[None, "purchase"] == 2
    assert reached["desktop", "search"] + reached["mobile", "search"] == 22


def test_invalid_options() -> None:
    log = typed_log(*pages_and_events())
    with pytest.raises(InputError, match="cannot be combined"):
        difference(log, by="device", since="2023-11-20")
    with pytest.raises(InputError, match="unknown slice"):
        difference(log, by="device", baseline="tablet")
    with pytest.raises(InputError, match="no pages before or no pages after"):
        overview(log, since="1999-01-01")
    with pytest.raises(InputError, match="only searches"):
        funnel(typed_log(*pages_and_events(), has=frozenset({"shown"})))
    result = difference(log, ["PageCTR", "Latency(q=0.5)"], by="device")
    assert {str(metric): reason for metric, reason in result.refused} == {
        "Latency(q=0.5)": "this metric is not a ratio of two sums"
    }
