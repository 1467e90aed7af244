"""What clicks prefer, counted by hand, and held against judgments where the truth is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from judged.errors import InputError
from judged.online.offline import RULES, click_preferences, preference_agreement
from online.offline.pages_made import log_of

PAGE = {"topic": "t", "shown": ["a", "b", "c", "d", "e"], "clicks": ["d", "b"], "user": 7, "session": 70}
"""Clicked: d, then b."""

BY_HAND = {
    "above": {("d", "a"), ("d", "c"), ("b", "a")},
    "last-above": {("b", "a")},
    "earlier": {("b", "d")},
    "previous": {("d", "c"), ("b", "a")},
    "next": {("d", "e"), ("b", "c")},
}


def pairs_of(log: Any, rule: str, **options: Any) -> list[tuple[str, str]]:
    rows = click_preferences(log, rules=rule, **options).to_arrow().to_pylist()
    return sorted((row["better"], row["worse"]) for row in rows)


def test_the_five_rules_on_one_page() -> None:
    assert set(BY_HAND) == set(RULES)
    log = log_of([PAGE, {"topic": "t", "shown": ["a", "b"], "user": 8}])
    rows = click_preferences(log, rules=list(RULES)).to_arrow().to_pylist()
    found: dict[str, set[tuple[str, str]]] = {rule: set() for rule in RULES}
    for row in rows:
        found[row["rule"]].add((row["better"], row["worse"]))
        assert (row["serp"], row["session"], row["user"]) == (0, 70, 7)
        assert (row["better_rank"], row["worse_rank"]) == tuple("abcde".index(row[side]) + 1 for side in
                                                                ("better", "worse"))  # fmt: skip
    assert found == BY_HAND
    assert len(rows) == sum(map(len, BY_HAND.values()))


def test_a_pair_counts_once_a_page_however_often_it_is_clicked() -> None:
    again = {**PAGE, "clicks": ["d", "b", "d", "d"]}
    log = log_of([again])
    assert pairs_of(log, "above") == sorted(BY_HAND["above"])
    assert pairs_of(log, "last-above") == [("d", "a"), ("d", "c")]  # the last click of all
    assert pairs_of(log, "earlier") == [("b", "d")]  # by the first click on each


def test_a_result_shown_twice_stands_where_it_is_first() -> None:
    log = log_of([{"shown": ["a", "b", "a", "c"], "clicks": ["a"]}])
    assert pairs_of(log, "above") == []
    assert pairs_of(log, "next") == [("a", "b")]


def test_what_is_not_shown_or_too_deep_or_was_not_seen_says_nothing() -> None:
    assert pairs_of(log_of([{"shown": ["a", "b"], "clicks": ["z"]}]), "above") == []
    deep = log_of([{"shown": ["a", "b", "c", "d"], "clicks": ["d", "b"]}])
    assert pairs_of(deep, "above", depth=2) == [("b", "a")]
    page = {"shown": ["a", "b", "c"], "clicks": ["c"], "seen": {"a": True, "b": False, "c": True}}
    known = log_of([page], has=frozenset({"shown", "clicks", "impressions"}))
    assert pairs_of(known, "above") == [("c", "a")]
    assert pairs_of(log_of([page]), "above") == [("c", "a")]
    assert pairs_of(log_of([{**page, "seen": {}}]), "above") == [("c", "a"), ("c", "b")]


@pytest.mark.parametrize(("options", "said"), [({"rules": "below"}, "no rule 'below'"), ({"rules": []}, "no rule is"),
                                               ({"depth": 1}, "depth is 1")])  # fmt: skip
def test_what_makes_no_sense_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        click_preferences(log_of([PAGE]), **options)


QRELS = {"t": {"a": 1, "b": 2, "c": 0, "d": 2, "f": 3}}
PAGES = [
    {**PAGE, "kind": "one"},  # d>a agrees, d>c agrees, b>a agrees (above); e is not judged, b>c agrees (next)
    {"topic": "t", "shown": ["b", "d", "a", "c"], "clicks": ["d", "c"], "user": 8, "kind": "two"},
    # above: d>b is tied, c>b and c>a disagree; next: d>a agrees
    {"topic": "t", "shown": ["b", "a"], "clicks": [], "user": 9, "kind": "two"},
]


def test_agreement_counted_by_hand() -> None:
    found = preference_agreement(log_of(PAGES), QRELS, rules=["above", "next"], by="kind")  # fmt: skip
    above, below = found.of("above"), found.of("next")
    assert (above.preferences, above.judged, above.tied, above.decided, above.agreed, above.units) == (6, 6, 1, 5, 3, 2)
    assert above.agreement.value == pytest.approx(3 / 5)
    assert above.by_rank.value == pytest.approx(2 / 5)  # the preferred one always stands lower
    assert (below.preferences, below.judged, below.tied, below.decided, below.agreed) == (3, 2, 0, 2, 2)
    assert below.by_rank.value == below.agreement.value == 1.0
    # ranks of decided pairs: (1,4) (3,4) (1,2) and (1,4) (3,4). On the pages of users 7 and 8: grades 1 2 0 2 and
    # 2 2 1 0. (1,4): 1<2, 2>0: the upper wins half; (3,4): 0<2, 1>0: half; (1,2): 1<2, tied: never.
    assert above.expected.value == pytest.approx((0.5 + 0.5 + 1.0 + 0.5 + 0.5) / 5)
    assert above.gain.value == pytest.approx(0.0, abs=1e-12)
    assert [found.of("above", kind).agreed for kind in ("one", "two")] == [3, 0]
    assert found.of("above", "two").decided == 2
    # d>a three times: two pages, by two rules on different pages; c>a once against a>c never
    assert (found.repeated.pairs, found.repeated.comparisons, found.repeated.agreed) == (2, 2, 1)


def test_repeated_pairs_agree_or_not_and_one_page_is_no_repetition() -> None:
    pages = [{"topic": "t", "shown": ["a", "b"], "clicks": clicks, "user": at} for at, clicks in
             enumerate((["b"], ["b"], ["b"], ["a"]))]  # fmt: skip
    found = preference_agreement(log_of(pages), QRELS, rules=["above", "next", "previous"]).repeated
    assert (found.pairs, found.comparisons, found.agreed) == (1, 6, 3)
    assert found.share == 0.5


def test_nothing_decided_is_said() -> None:
    found = preference_agreement(log_of([PAGE]), {"t": {"a": 1}}, rules="above")
    assert (found.of("above").preferences, found.of("above").decided) == (3, 0)
    assert math.isnan(found.of("above").agreement.value)
    assert any("none of 3 preferences" in one for one in found.sentences)
    quiet = preference_agreement(log_of([{**PAGE, "clicks": []}]), QRELS)
    assert quiet.of("next").preferences == 0


def test_a_log_that_does_not_know_the_order_of_clicks() -> None:
    log = log_of([PAGE], has_time=False)
    assert preference_agreement(log, QRELS, rules="last-above").of("last-above").agreed == 1
    together = log.engine.query(f"SELECT * REPLACE (serp AS time_ms) FROM {log.event}")
    with pytest.raises(InputError, match="in which order"):
        preference_agreement(type(log)(log.serp, log.shown, together, log.session, has_time=False), QRELS)


def clicking(way: str, sorted_lists: bool, pages: int = 800) -> tuple[Any, Any]:
    """Users who click the best results, any results, or by rank alone; on lists in any order, or sorted by grade."""
    rng = np.random.default_rng(21)
    qrels = {f"t{at}": {f"d{n}": n for n in range(6)} for at in range(5)}
    made = []
    for at in range(pages):
        order = rng.permutation(6)
        if sorted_lists:
            order = np.argsort(-(np.arange(6) + rng.normal(size=6) * 2))
        if way == "grade":
            clicks = [5, 4]
        elif way == "random":
            clicks = rng.choice(6, size=2, replace=False).tolist()
        else:
            clicks = [n for place, n in enumerate(order.tolist()) if rng.random() < 0.7 ** (place + 1)]
        made.append({"topic": f"t{at % 5}", "shown": [f"d{n}" for n in order], "clicks": [f"d{n}" for n in clicks],
                     "user": at // 4})  # fmt: skip
    return log_of(made), qrels


def test_clicks_on_the_best_always_agree() -> None:
    found = preference_agreement(*clicking("grade", sorted_lists=False), rules=["above", "next"])
    for rule in ("above", "next"):
        assert found.of(rule).agreement.value == 1.0
        assert found.of(rule).gain.low > 0.4  # ranks alone: half


def test_clicks_at_random_agree_half_of_the_time() -> None:
    found = preference_agreement(*clicking("random", sorted_lists=False), rules=["above", "next"])
    for rule in ("above", "next"):
        assert found.of(rule).agreement.value == pytest.approx(0.5, abs=0.05)
        assert found.of(rule).gain.value == pytest.approx(0.0, abs=0.05)


def test_clicks_by_rank_alone_agree_as_the_ranks_do_and_gain_nothing() -> None:
    found = preference_agreement(*clicking("rank", sorted_lists=True), rules=["above", "next"])
    for rule in ("above", "next"):
        one = found.of(rule)
        assert one.agreement.excludes(0.5)  # lists are good, and ranks alone look like knowledge
        assert one.agreement.value == pytest.approx(one.expected.value, abs=0.05)
    assert found.of("above").agreement.value < 0.4
    assert found.of("next").agreement.value > 0.6
