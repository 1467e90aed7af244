"""Lists of queries: counted by hand, compared with an independent computation, and tested for false discoveries."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from scipy import stats as reference

from judged.errors import InputError
from judged.online import queries
from judged.stats.correction import (
    clopper_pearson_intervals,
    hypergeometric_p_values,
    poisson_rate_intervals,
    select_discoveries,
)
from typed_logs import typed_log

HOUR = 3_600_000
DAY = 24 * HOUR


def page(serp: int, user: int, time_ms: int, text: str, **fields: Any) -> dict[str, Any]:
    return {"serp": serp, "session": serp, "user": user, "time_ms": time_ms, "query": text, "query_norm": text,
            "n_shown": 10, "zero_results": False} | fields  # fmt: skip


def click(serp: int, user: int, time_ms: int, rank: int = 1) -> dict[str, Any]:
    return {"serp": serp, "session": serp, "user": user, "time_ms": time_ms, "action": "click", "rank": rank}


def rows(result: Any, name: str, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in result.table(name).records()]


def test_zero_results_are_counted_in_first_sessions() -> None:
    """Two of three users of "hta" get zero results in their first session. Later repetitions do not count."""
    pages = [page(1, 1, 0, "hta", zero_results=True), page(2, 2, 0, "hta", zero_results=True), page(3, 3, 0, "hta")]
    pages += [page(10 + i, 1, DAY + i, "hta", zero_results=True) for i in range(100)]
    pages += [page(200, 3, DAY, "hta", zero_results=True), page(201, 4, 0, "rare", zero_results=True)]
    result = queries(typed_log(pages, []), "zero")
    assert rows(result, "zero", "query", "users", "zero", "share") == [("hta", 3, 2, 2 / 3)]
    low, high = reference.binomtest(2, 3).proportion_ci(0.95)
    assert result.table("zero").records()[0]["share_ci"] == pytest.approx([low, high])
    assert len(queries(typed_log(pages, []), "zero", min_users=1).table("zero")) == 2


def test_reformulations_within_a_session() -> None:
    pages = [page(user, user, 0, "shoes", session=user) for user in range(1, 5)]
    pages += [page(10 + user, user, 9_000, "red shoes", session=user) for user in (1, 2)]
    pages += [page(20 + user, user, 9_000, "lamp", session=user) for user in (3,)]  # not a reformulation
    result = queries(typed_log(pages, []), "reformulated")
    assert rows(result, "reformulated", "query", "next_query", "type", "users", "reformulated", "share") == [
        ("shoes", "red shoes", "specialize", 4, 2, 0.5)
    ]


Records = list[dict[str, Any]]


def _random_log(
    seed: int, users: int = 300, slow: str = "", abandonment_rates: dict[str, float] | None = None
) -> tuple[Records, Records]:
    """Sample four weeks in which all queries have equal rates, except the abandonment rates in `abandonment_rates`."""
    rng = np.random.default_rng(seed)
    texts = [f"query {i}" for i in range(60)]
    weights = 1.0 / np.arange(1, 61)
    pages, events = [], []
    for user in range(users):
        patience = rng.beta(2, 2)
        for _ in range(int(rng.integers(1, 9))):
            serp, text = len(pages), str(rng.choice(texts, p=weights / weights.sum()))
            time_ms = int(rng.integers(28 * DAY))
            shown = int(rng.integers(3, 11))
            latency = float(rng.gamma(2.0, 50.0)) * (3.0 if text == slow else 1.0)
            pages.append(page(serp, user, time_ms, text, n_shown=shown, latency_ms=latency))
            if rng.random() > (abandonment_rates or {}).get(text, patience):
                ranks = {int(min(rng.geometric(0.4), shown)) for _ in range(int(rng.integers(1, 3)))}
                events += [click(serp, user, time_ms + 1000 * rank, rank) for rank in ranks]
    return pages, events


def _first_pages(pages: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the first page of each user by query; here each session has one page."""
    first_pages: dict[tuple[str, int], dict[str, Any]] = {}
    for page in sorted(pages, key=lambda page: (page["time_ms"], page["session"])):
        first_pages.setdefault((page["query"], page["user"]), page)
    by_text: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for (text, _), page in first_pages.items():
        by_text[text].append(page)
    return by_text


def test_counts_and_p_values_equal_an_independent_computation() -> None:
    pages, events = _random_log(3, slow="query 5", abandonment_rates={"query 4": 0.99, "query 7": 0.99})
    clicked: dict[int, set[int]] = defaultdict(set)
    for event in events:
        clicked[event["serp"]].add(event["rank"])
    first_pages = _first_pages(pages)
    answer = queries(typed_log(pages, events), ["abandoned", "low-ctr", "slow"], limit=None, fdr=0.99)
    all_users = sum(map(len, first_pages.values()))
    all_left = sum(not clicked[page["serp"]] for group in first_pages.values() for page in group)
    records = answer.table("abandoned").records()
    assert {"query 4", "query 7"} <= {row["query"] for row in records}
    for row in records:
        group = first_pages[row["query"]]
        assert (row["users"], row["abandoned"]) == (len(group), sum(not clicked[page["serp"]] for page in group))
        exact = reference.hypergeom(all_users, all_left, row["users"]).sf(row["abandoned"] - 1)
        assert exact <= row["p"]  # adjusted for the number of tests

    is_shown = [[page["n_shown"] >= rank for page in pages] for rank in range(1, 11)]
    ctr = [sum(rank in clicked[page["serp"]] for page in pages) / sum(is_shown[rank - 1]) for rank in range(1, 11)]
    for row in answer.table("low_ctr").records():
        group = first_pages[row["query"]]
        expected = sum(sum(ctr[: page["n_shown"]]) for page in group)
        assert row["clicks"] == sum(len(clicked[page["serp"]]) for page in group)
        assert row["expected"] == pytest.approx(expected, rel=1e-7)
        assert row["ratio"] == pytest.approx(row["clicks"] / expected, rel=1e-7)

    times = sorted(page["latency_ms"] for group in first_pages.values() for page in group)
    slowest = times[math.ceil(0.9 * len(times)) - 1]
    assert answer.table("slow").records()[0]["query"] == "query 5"
    for row in answer.table("slow").records():
        group = first_pages[row["query"]]
        assert row["slow"] == sum(page["latency_ms"] > slowest for page in group)
        assert row["seconds"] == pytest.approx(np.median([page["latency_ms"] for page in group]) / 1000, abs=1e-6)


def test_changes_are_compared_over_two_weeks() -> None:
    """Thirty users of a query in the last week only, thirty of another in the week before only, and a stable query."""
    pages = [page(i, i, 22 * DAY + i * HOUR, "new") for i in range(30)]
    pages += [page(100 + i, i, 14 * DAY + i * HOUR, "gone") for i in range(30)]
    pages += [page(200 + i, i, 14 * DAY + i * HOUR, "stays") for i in range(330)]
    pages += [page(900, 1, 0, "first"), page(901, 1, 28 * DAY - 1, "last")]
    result = queries(typed_log(pages, []), ["new", "rising", "falling"])
    assert result.periods is not None
    assert (result.periods.begin, result.periods.since, result.periods.end) == (14 * DAY, 21 * DAY, 28 * DAY)
    assert result.periods.whole_weeks
    assert rows(result, "new", "query", "before", "after") == [("new", 0, 30)]
    assert rows(result, "falling", "query", "before", "after", "ratio") == [("gone", 30, 0, 0.0)]
    [p] = [row["p"] for row in result.table("rising").records()]
    distribution = reference.hypergeom(30 + 30 + 330 + 1, 30 + 162 + 1, 30)  # 168 hours of "stays" are before
    assert p == pytest.approx(3 * distribution.sf(29))  # three queries were tested


@pytest.mark.parametrize(("users", "listed"), [(2, []), (5, []), (6, ["rare"])])
def test_a_query_of_fewer_than_six_users_is_not_tested(users: int, listed: list[str]) -> None:
    """Only its users abandon. The probability of six abandoning users among 306 is about 1e-12."""
    pages = [page(i, i, i * HOUR, "rare" if i < users else "usual") for i in range(300 + users)]
    clicks = [click(i, i, i * HOUR) for i in range(users, 300 + users)]
    assert rows(queries(typed_log(pages, clicks), "abandoned"), "abandoned", "query") == [(name,) for name in listed]


def test_p_values_and_limits_equal_those_of_scipy() -> None:
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 60, 200)
    counts = rng.binomial(sizes, 0.3)
    p_values, min_p_values = hypergeometric_p_values(counts, sizes, int(counts.sum()), int(sizes.sum()))
    distribution = reference.hypergeom(int(sizes.sum()), int(counts.sum()), sizes)
    assert p_values == pytest.approx(distribution.sf(counts - 1), rel=1e-7)
    assert min_p_values == pytest.approx(distribution.sf(sizes - 1), rel=1e-7)
    low, high = clopper_pearson_intervals(counts, sizes, 0.9)
    for i in range(0, 200, 17):
        limits = reference.binomtest(int(counts[i]), int(sizes[i])).proportion_ci(0.9)
        assert (low[i], high[i]) == pytest.approx((limits.low, limits.high))
    low, high = poisson_rate_intervals(counts.astype(float), np.ones(200), 0.95)
    assert high == pytest.approx(reference.chi2.ppf(0.975, 2 * counts + 2) / 2)
    assert low[counts > 0] == pytest.approx(reference.chi2.ppf(0.025, 2 * counts[counts > 0]) / 2)


def test_false_discovery_rate_without_differences() -> None:
    """With groups of very different sizes and random hits, at most 10% of logs have a discovery."""
    rng = np.random.default_rng(11)
    has_discovery = []
    for _ in range(1000):
        sizes = 1 + rng.zipf(1.5, 300) % 400
        hits = rng.permutation(np.arange(sizes.sum()) < 0.35 * sizes.sum())
        counts = np.add.reduceat(hits, np.concatenate([[0], np.cumsum(sizes)[:-1]])).astype(np.int64)
        mask, _ = select_discoveries(*hypergeometric_p_values(counts, sizes, int(counts.sum()), int(sizes.sum())), 0.1)
        has_discovery.append(mask.any())
    assert 0.01 < np.mean(has_discovery) < 0.12


@pytest.mark.slow
def test_logs_without_a_difference_have_empty_lists() -> None:
    """Users differ in patience, queries do not differ: few of 60 logs have a discovery in a list."""
    counts = dict.fromkeys(("abandoned", "low_ctr", "slow", "rising", "falling"), 0)
    for seed in range(60):
        answer = queries(
            typed_log(*_random_log(seed, users=200)), ["abandoned", "low-ctr", "slow", "rising", "falling"]
        )
        for name in counts:
            counts[name] += len(answer.table(name)) > 0
    assert max(counts.values()) <= 12, counts  # at most 6 expected of each; P(13 or more) < 0.005


def test_unsupported_lists_and_invalid_options() -> None:
    pages = [page(1, 1, 0, "hat"), page(2, 2, 1, "hat")]
    result = queries(typed_log(pages, [], has=frozenset({"queries"}), dated=False))
    assert {"zero", "abandoned", "low-ctr", "slow", "rising"} <= set(dict(result.refused))
    with pytest.raises(InputError, match="unknown list of queries"):
        queries(typed_log(pages, []), "popular")
    with pytest.raises(InputError, match="no column"):
        queries(typed_log(pages, []), by="color")
    with pytest.raises(InputError, match="must be a date"):
        queries(typed_log(pages, []), "rising", since="last week")
