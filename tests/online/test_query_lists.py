"""Lists of queries: counted by hand, by a program that shares nothing with ours, and where there is nothing to find."""

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


def page(serp: int, user: int, time_ms: int, text: str, **more: Any) -> dict[str, Any]:
    return {"serp": serp, "session": serp, "user": user, "time_ms": time_ms, "query": text, "query_norm": text,
            "n_shown": 10, "zero_results": False} | more  # fmt: skip


def click(serp: int, user: int, time_ms: int, rank: int = 1) -> dict[str, Any]:
    return {"serp": serp, "session": serp, "user": user, "time_ms": time_ms, "action": "click", "rank": rank}


def rows(answer: Any, name: str, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in answer.table(name).records()]


def test_what_finds_nothing_is_counted_by_first_sessions() -> None:
    """Of three users of *hta* two meet nothing at first; that one of them comes back a hundred times counts no more."""
    pages = [page(1, 1, 0, "hta", zero_results=True), page(2, 2, 0, "hta", zero_results=True), page(3, 3, 0, "hta")]
    pages += [page(10 + at, 1, DAY + at, "hta", zero_results=True) for at in range(100)]
    pages += [page(200, 3, DAY, "hta", zero_results=True), page(201, 4, 0, "rare", zero_results=True)]
    found = queries(typed_log(pages, []), "zero")
    assert rows(found, "zero", "query", "users", "zero", "share") == [("hta", 3, 2, 2 / 3)]
    low, high = reference.binomtest(2, 3).proportion_ci(0.95)
    assert found.table("zero").records()[0]["share_ci"] == pytest.approx([low, high])
    assert len(queries(typed_log(pages, []), "zero", min_users=1).table("zero")) == 2


def test_pairs_are_asked_again_within_a_session() -> None:
    pages = [page(at, at, 0, "shoes", session=at) for at in range(1, 5)]
    pages += [page(10 + at, at, 9_000, "red shoes", session=at) for at in (1, 2)]
    pages += [page(20 + at, at, 9_000, "lamp", session=at) for at in (3,)]  # another matter
    found = queries(typed_log(pages, []), "again")
    assert rows(found, "again", "query", "changed_to", "change", "users", "again", "share") == [
        ("shoes", "red shoes", "specialize", 4, 2, 0.5)
    ]


Rows = list[dict[str, Any]]


def _random_log(seed: int, users: int = 300, slow: str = "", odd: dict[str, float] | None = None) -> tuple[Rows, Rows]:
    """Make a log of four weeks in which all queries fare alike, but for those of `odd`: their share left."""
    rng = np.random.default_rng(seed)
    texts = [f"query {at}" for at in range(60)]
    popular = 1.0 / np.arange(1, 61)
    pages, events = [], []
    for user in range(users):
        patience = rng.beta(2, 2)
        for _ in range(int(rng.integers(1, 9))):
            serp, text = len(pages), str(rng.choice(texts, p=popular / popular.sum()))
            time_ms = int(rng.integers(28 * DAY))
            shown = int(rng.integers(3, 11))
            latency = float(rng.gamma(2.0, 50.0)) * (3.0 if text == slow else 1.0)
            pages.append(page(serp, user, time_ms, text, n_shown=shown, latency_ms=latency))
            if rng.random() > (odd or {}).get(text, patience):
                ranks = {int(min(rng.geometric(0.4), shown)) for _ in range(int(rng.integers(1, 3)))}
                events += [click(serp, user, time_ms + 1000 * rank, rank) for rank in ranks]
    return pages, events


def _firsts(pages: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Give, by query, each user's first page: here every session has one page."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for one in sorted(pages, key=lambda one: (one["time_ms"], one["session"])):
        found.setdefault((one["query"], one["user"]), one)
    by_text: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for (text, _), one in found.items():
        by_text[text].append(one)
    return by_text


def test_counts_and_chances_are_those_of_a_plain_program() -> None:
    pages, events = _random_log(3, slow="query 5", odd={"query 4": 0.99, "query 7": 0.99})
    clicked: dict[int, set[int]] = defaultdict(set)
    for one in events:
        clicked[one["serp"]].add(one["rank"])
    firsts = _firsts(pages)
    answer = queries(typed_log(pages, events), ["left", "low-ctr", "slow"], limit=None, fdr=0.99)
    all_users = sum(map(len, firsts.values()))
    all_left = sum(not clicked[one["serp"]] for group in firsts.values() for one in group)
    records = answer.table("left").records()
    assert {"query 4", "query 7"} <= {row["query"] for row in records}
    for row in records:
        group = firsts[row["query"]]
        assert (row["users"], row["left"]) == (len(group), sum(not clicked[one["serp"]] for one in group))
        exact = reference.hypergeom(all_users, all_left, row["users"]).sf(row["left"] - 1)
        assert exact <= row["p"]  # adjusted for how many could be

    at_rank = [[one["n_shown"] >= rank for one in pages] for rank in range(1, 11)]
    ctr = [sum(rank in clicked[one["serp"]] for one in pages) / sum(at_rank[rank - 1]) for rank in range(1, 11)]
    for row in answer.table("low_ctr").records():
        group = firsts[row["query"]]
        expected = sum(sum(ctr[: one["n_shown"]]) for one in group)
        assert row["clicks"] == sum(len(clicked[one["serp"]]) for one in group)
        assert row["expected"] == pytest.approx(expected, rel=1e-7)
        assert row["ratio"] == pytest.approx(row["clicks"] / expected, rel=1e-7)

    times = sorted(one["latency_ms"] for group in firsts.values() for one in group)
    slowest = times[math.ceil(0.9 * len(times)) - 1]
    assert answer.table("slow").records()[0]["query"] == "query 5"
    for row in answer.table("slow").records():
        group = firsts[row["query"]]
        assert row["slow"] == sum(one["latency_ms"] > slowest for one in group)
        assert row["seconds"] == pytest.approx(np.median([one["latency_ms"] for one in group]) / 1000, abs=1e-6)


def test_what_changed_is_compared_over_two_weeks() -> None:
    """Thirty users ask one query in the last week alone, and another in the week before alone; a third stays."""
    pages = [page(at, at, 22 * DAY + at * HOUR, "new") for at in range(30)]
    pages += [page(100 + at, at, 14 * DAY + at * HOUR, "gone") for at in range(30)]
    pages += [page(200 + at, at, 14 * DAY + at * HOUR, "stays") for at in range(330)]
    pages += [page(900, 1, 0, "first"), page(901, 1, 28 * DAY - 1, "last")]
    found = queries(typed_log(pages, []), ["new", "rising", "falling"])
    assert found.periods is not None
    assert (found.periods.begin, found.periods.since, found.periods.end) == (14 * DAY, 21 * DAY, 28 * DAY)
    assert found.periods.whole_weeks
    assert rows(found, "new", "query", "before", "after") == [("new", 0, 30)]
    assert rows(found, "falling", "query", "before", "after", "ratio") == [("gone", 30, 0, 0.0)]
    [p] = [row["p"] for row in found.table("rising").records()]
    asked = reference.hypergeom(30 + 30 + 330 + 1, 30 + 162 + 1, 30)  # of "stays" 168 hours are before
    assert p == pytest.approx(3 * asked.sf(29))  # of three queries that could be told


@pytest.mark.parametrize(("users", "listed"), [(2, []), (5, []), (6, ["rare"])])
def test_a_query_of_fewer_than_six_users_is_not_tested(users: int, listed: list[str]) -> None:
    """Only its users leave; the chance of six such among 306 of which six leave is about 1e-12."""
    pages = [page(at, at, at * HOUR, "rare" if at < users else "usual") for at in range(300 + users)]
    clicks = [click(at, at, at * HOUR) for at in range(users, 300 + users)]
    assert rows(queries(typed_log(pages, clicks), "left"), "left", "query") == [(name,) for name in listed]


def test_p_values_and_limits_are_those_of_scipy() -> None:
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 60, 200)
    counts = rng.binomial(sizes, 0.3)
    chance, least = hypergeometric_p_values(counts, sizes, int(counts.sum()), int(sizes.sum()))
    of = reference.hypergeom(int(sizes.sum()), int(counts.sum()), sizes)
    assert chance == pytest.approx(of.sf(counts - 1), rel=1e-7)
    assert least == pytest.approx(of.sf(sizes - 1), rel=1e-7)
    low, high = clopper_pearson_intervals(counts, sizes, 0.9)
    for at in range(0, 200, 17):
        limits = reference.binomtest(int(counts[at]), int(sizes[at])).proportion_ci(0.9)
        assert (low[at], high[at]) == pytest.approx((limits.low, limits.high))
    low, high = poisson_rate_intervals(counts.astype(float), np.ones(200), 0.95)
    assert high == pytest.approx(reference.chi2.ppf(0.975, 2 * counts + 2) / 2)
    assert low[counts > 0] == pytest.approx(reference.chi2.ppf(0.025, 2 * counts[counts > 0]) / 2)


def test_where_nothing_differs_few_logs_have_a_finding() -> None:
    """Groups of very different sizes, members that are hits by chance: at most a tenth of logs have any finding."""
    rng = np.random.default_rng(11)
    any_found = []
    for _ in range(1000):
        sizes = 1 + rng.zipf(1.5, 300) % 400
        hits = rng.permutation(np.arange(sizes.sum()) < 0.35 * sizes.sum())
        counts = np.add.reduceat(hits, np.concatenate([[0], np.cumsum(sizes)[:-1]])).astype(np.int64)
        mask, _ = select_discoveries(*hypergeometric_p_values(counts, sizes, int(counts.sum()), int(sizes.sum())), 0.1)
        any_found.append(mask.any())
    assert 0.01 < np.mean(any_found) < 0.12


@pytest.mark.slow
def test_logs_without_a_difference_have_empty_lists() -> None:
    """Users differ in patience, queries do not differ: of 60 logs, seldom one has a finding in any of the lists."""
    found = dict.fromkeys(("left", "low_ctr", "slow", "rising", "falling"), 0)
    for seed in range(60):
        answer = queries(typed_log(*_random_log(seed, users=200)), ["left", "low-ctr", "slow", "rising", "falling"])
        for name in found:
            found[name] += len(answer.table(name)) > 0
    assert max(found.values()) <= 12, found  # 6 expected of each at most: 13 have a chance below 0.005


def test_what_cannot_be_told_is_said() -> None:
    pages = [page(1, 1, 0, "hat"), page(2, 2, 1, "hat")]
    found = queries(typed_log(pages, [], has=frozenset({"queries"}), dated=False))
    assert {"zero", "left", "low-ctr", "slow", "rising"} <= set(dict(found.refused))
    with pytest.raises(InputError, match="no list of queries"):
        queries(typed_log(pages, []), "popular")
    with pytest.raises(InputError, match="no column"):
        queries(typed_log(pages, []), by="color")
    with pytest.raises(InputError, match="is no date"):
        queries(typed_log(pages, []), "rising", since="last week")
