"""Preferences from clicks: by hand, and against judgments with known truth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from judged.errors import InputError
from judged.online.offline import RULES, click_preferences, preference_agreement
from online.offline.page_logs import log_of

PAGE = {"topic": "t", "shown": ["a", "b", "c", "d", "e"], "clicks": ["d", "b"], "user": 7, "session": 70}
"""Page with clicks on d, then b."""

BY_HAND = {
    "above": {("d", "a"), ("d", "c"), ("b", "a")},
    "last-above": {("b", "a")},
    "earlier": {("b", "d")},
    "previous": {("d", "c"), ("b", "a")},
    "next": {("d", "e"), ("b", "c")},
}


def sorted_preferences(log: Any, rule: str, **options: Any) -> list[tuple[str, str]]:
    rows = click_preferences(log, rules=rule, **options).to_arrow().to_pylist()
    return sorted((row["better"], row["worse"]) for row in rows)


def test_the_five_rules_on_one_page() -> None:
    assert set(BY_HAND) == set(RULES)
    log = log_of([PAGE, {"topic": "t", "shown": ["a", "b"], "user": 8}])
    rows = click_preferences(log, rules=list(RULES)).to_arrow().to_pylist()
    preferences_by_rule: dict[str, set[tuple[str, str]]] = {rule: set() for rule in RULES}
    for row in rows:
        preferences_by_rule[row["rule"]].add((row["better"], row["worse"]))
        assert (row["serp"], row["session"], row["user"]) == (0, 70, 7)
        assert (row["better_rank"], row["worse_rank"]) == tuple("abcde".index(row[side]) + 1 for side in
                                                                ("better", "worse"))  # fmt: skip
    assert preferences_by_rule == BY_HAND
    assert len(rows) == sum(map(len, BY_HAND.values()))


def test_repeated_clicks_count_once() -> None:
    repeated_clicks = {**PAGE, "clicks": ["d", "b", "d", "d"]}
    log = log_of([repeated_clicks])
    assert sorted_preferences(log, "above") == sorted(BY_HAND["above"])
    assert sorted_preferences(log, "last-above") == [("d", "a"), ("d", "c")]  # by the last click on the page
    assert sorted_preferences(log, "earlier") == [("b", "d")]  # by the first click on each result


def test_a_repeated_document_counts_at_its_first_rank() -> None:
    log = log_of([{"shown": ["a", "b", "a", "c"], "clicks": ["a"]}])
    assert sorted_preferences(log, "above") == []
    assert sorted_preferences(log, "next") == [("a", "b")]


def test_results_that_were_not_shown_or_seen_have_no_preferences() -> None:
    assert sorted_preferences(log_of([{"shown": ["a", "b"], "clicks": ["z"]}]), "above") == []
    deep_page = log_of([{"shown": ["a", "b", "c", "d"], "clicks": ["d", "b"]}])
    assert sorted_preferences(deep_page, "above", depth=2) == [("b", "a")]
    page = {"shown": ["a", "b", "c"], "clicks": ["c"], "seen": {"a": True, "b": False, "c": True}}
    with_impressions = log_of([page], has=frozenset({"shown", "clicks", "impressions"}))
    assert sorted_preferences(with_impressions, "above") == [("c", "a")]
    assert sorted_preferences(log_of([page]), "above") == [("c", "a")]
    assert sorted_preferences(log_of([{**page, "seen": {}}]), "above") == [("c", "a"), ("c", "b")]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"rules": "below"}, "no rule 'below'"), ({"rules": []}, "`rules` is empty"), ({"depth": 1}, "depth is 1")],
)
def test_invalid_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        click_preferences(log_of([PAGE]), **options)


QRELS = {"t": {"a": 1, "b": 2, "c": 0, "d": 2, "f": 3}}
PAGES = [
    {**PAGE, "kind": "one"},  # d>a agrees, d>c agrees, b>a agrees (above); e is not judged, b>c agrees (next)
    {"topic": "t", "shown": ["b", "d", "a", "c"], "clicks": ["d", "c"], "user": 8, "kind": "two"},
    # above: d>b is tied, c>b and c>a disagree; next: d>a agrees
    {"topic": "t", "shown": ["b", "a"], "clicks": [], "user": 9, "kind": "two"},
]


def test_agreement_by_hand() -> None:
    agreement = preference_agreement(log_of(PAGES), QRELS, rules=["above", "next"], by="kind")  # fmt: skip
    above, next_rule = agreement.of("above"), agreement.of("next")
    assert (above.preferences, above.judged, above.tied, above.decided, above.agreed, above.units) == (6, 6, 1, 5, 3, 2)
    assert above.agreement.value == pytest.approx(3 / 5)
    assert above.by_rank.value == pytest.approx(2 / 5)  # the preferred result is always lower
    assert (next_rule.preferences, next_rule.judged, next_rule.tied, next_rule.decided, next_rule.agreed) == (
        3,
        2,
        0,
        2,
        2,
    )
    assert next_rule.by_rank.value == next_rule.agreement.value == 1.0
    # Ranks of decided pairs: (1,4) (3,4) (1,2) and (1,4) (3,4). Grades on the pages of users 7 and 8: 1 2 0 2 and
    # 2 2 1 0. The upper result wins at (1,4) 1/2 (1<2, 2>0), at (3,4) 1/2 (0<2, 1>0), at (1,2) 0 (1<2, tied).
    assert above.expected.value == pytest.approx((0.5 + 0.5 + 1.0 + 0.5 + 0.5) / 5)
    assert above.gain.value == pytest.approx(0.0, abs=1e-12)
    assert [agreement.of("above", kind).agreed for kind in ("one", "two")] == [3, 0]
    assert agreement.of("above", "two").decided == 2
    # d>a three times, on two pages; c>a once
    assert (agreement.repeated.pairs, agreement.repeated.comparisons, agreement.repeated.agreed) == (2, 2, 1)


def test_repeated_preferences_need_several_pages() -> None:
    pages = [{"topic": "t", "shown": ["a", "b"], "clicks": clicks, "user": i} for i, clicks in
             enumerate((["b"], ["b"], ["b"], ["a"]))]  # fmt: skip
    repeated = preference_agreement(log_of(pages), QRELS, rules=["above", "next", "previous"]).repeated
    assert (repeated.pairs, repeated.comparisons, repeated.agreed) == (1, 6, 3)
    assert repeated.share == 0.5


def test_no_decided_preferences() -> None:
    agreement = preference_agreement(log_of([PAGE]), {"t": {"a": 1}}, rules="above")
    assert (agreement.of("above").preferences, agreement.of("above").decided) == (3, 0)
    assert math.isnan(agreement.of("above").agreement.value)
    assert any("none of 3 preferences" in sentence for sentence in agreement.sentences)
    no_clicks = preference_agreement(log_of([{**PAGE, "clicks": []}]), QRELS)
    assert no_clicks.of("next").preferences == 0


def test_rules_that_need_the_order_of_clicks() -> None:
    log = log_of([PAGE], has_time=False)
    assert preference_agreement(log, QRELS, rules="last-above").of("last-above").agreed == 1
    same_time = log.engine.query(f"SELECT * REPLACE (serp AS time_ms) FROM {log.event}")
    with pytest.raises(InputError, match="order of clicks"):
        preference_agreement(type(log)(log.serp, log.shown, same_time, log.session, has_time=False), QRELS)


def simulate_log(click_model: str, sorted_lists: bool, n_pages: int = 800) -> tuple[Any, Any]:
    """Simulate clicks by grade, at random, or by rank, on lists in random order or sorted by noisy grades."""
    rng = np.random.default_rng(21)
    qrels = {f"t{i}": {f"d{n}": n for n in range(6)} for i in range(5)}
    log_pages = []
    for i in range(n_pages):
        order = rng.permutation(6)
        if sorted_lists:
            order = np.argsort(-(np.arange(6) + rng.normal(size=6) * 2))
        if click_model == "grade":
            clicks = [5, 4]
        elif click_model == "random":
            clicks = rng.choice(6, size=2, replace=False).tolist()
        else:
            clicks = [n for row, n in enumerate(order.tolist()) if rng.random() < 0.7 ** (row + 1)]
        log_pages.append({"topic": f"t{i % 5}", "shown": [f"d{n}" for n in order], "clicks": [f"d{n}" for n in clicks],
                     "user": i // 4})  # fmt: skip
    return log_of(log_pages), qrels


def test_clicks_by_grade_agree() -> None:
    agreement = preference_agreement(*simulate_log("grade", sorted_lists=False), rules=["above", "next"])
    for rule in ("above", "next"):
        assert agreement.of(rule).agreement.value == 1.0
        assert agreement.of(rule).gain.low > 0.4  # ranks alone have 0.5


def test_random_clicks_agree_half_of_the_time() -> None:
    agreement = preference_agreement(*simulate_log("random", sorted_lists=False), rules=["above", "next"])
    for rule in ("above", "next"):
        assert agreement.of(rule).agreement.value == pytest.approx(0.5, abs=0.05)
        assert agreement.of(rule).gain.value == pytest.approx(0.0, abs=0.05)


def test_clicks_by_rank_have_no_gain() -> None:
    agreement = preference_agreement(*simulate_log("rank", sorted_lists=True), rules=["above", "next"])
    for rule in ("above", "next"):
        row = agreement.of(rule)
        assert row.agreement.excludes(0.5)  # on good lists, ranks alone have agreement
        assert row.agreement.value == pytest.approx(row.expected.value, abs=0.05)
    assert agreement.of("above").agreement.value < 0.4
    assert agreement.of("next").agreement.value > 0.6
