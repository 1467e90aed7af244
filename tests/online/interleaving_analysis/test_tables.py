"""Tables of interleaving and of its plans, for team drafts whose clicks are counted by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from scipy.stats import norm, t

from judged.errors import InputError
from judged.online import interleaving, plan_interleaving
from judged.online.interleaving_analysis.planning import _compare_methods
from online.interleaving_analysis.test_credit import draft, logged

if TYPE_CHECKING:
    from pathlib import Path


def drafts(users: int = 60, **attributes: Any) -> list[tuple[str, dict[str, Any], list[int]]]:
    """Return one list per user: of ten users, six prefer B, two prefer A, and two click both equally often.

    The ranker at rank 1 alternates between groups of ten users.
    """
    pages: list[tuple[str, dict[str, Any], list[int]]] = []
    for user in range(users):
        group, starts_with_b = user % 10, user // 10 % 2
        teams = ("ABAB", "BABA")[starts_with_b]
        first_b = 2 - starts_with_b  # rank of B's first result
        clicks = [first_b] if group < 6 else [3 - first_b] if group < 8 else [1, 2]
        device = {"device": "desk" if group % 2 else "phone"}
        pages.append((f"u{user}", draft(teams, **device, **attributes), clicks))
    return pages


def table(answer: Any, name: str) -> Any:
    return next(block for block in answer.blocks() if block.name == name)


def lines(block: Any) -> list[list[str]]:
    return [line.split() for line in block.text(300).split("\n")[1:] if line.strip()]


def test_what_clicks_prefer(tmp_path: Path) -> None:
    """Of 60 lists 36 are won and 12 lost: outcomes 1/2, -1/2 and 0, of mean 0.2."""
    result = interleaving(logged(tmp_path, drafts()), baseline="A", any_day=False, min_users=60)
    preference = result.overall
    outcomes = [0.5] * 36 + [-0.5] * 12 + [0.0] * 12
    error = math.sqrt(sum((value - 0.2) ** 2 for value in outcomes) / 59 / 60)
    assert (preference.users, preference.lists, preference.wins, preference.losses) == (60, 60, 36, 12)
    assert (preference.value, preference.error, preference.credit) == pytest.approx((0.2, error, 24 / 60))
    assert (preference.low, preference.high) == pytest.approx(
        (0.2 - t.ppf(0.975, 59) * error, 0.2 + t.ppf(0.975, 59) * error)
    )
    assert result.decision == "preferred"
    preferences = table(result, "preferences")
    assert lines(preferences)[0][:5] == ["60", "60", "36", "12", "+20.0"]
    assert preferences.column("value").ci == [(preference.low, preference.high)]
    assert preferences.column("credit").ci == [(preference.credit_low, preference.credit_high)]
    assert [column.name for column in preferences.columns if column.only == "data"] == [
        "error",
        "effective_users",
        "reason",
    ]
    ranks = table(result, "ranks")
    assert ranks.column("rank").values == [1, 2, 3, 4]
    assert ranks.column("lists").values == [60] * 4
    assert ranks.column("share").values == [0.5] * 4
    assert ranks.column("p").values == [1.0] * 4
    assert not any(block.name == "slices" for block in result.blocks())
    facts = result.facts()
    assert (facts["baseline"], facts["other"], facts["lists"], facts["users"], facts["method"]) == (
        "A", "B", 60, 60, "team-draft")  # fmt: skip
    assert (
        interleaving(logged(tmp_path, drafts()), baseline="A", any_day=False, min_users=61).decision == "keep running"
    )
    assert interleaving(logged(tmp_path, drafts()), baseline="A", any_day=False).decision == "keep running"


def test_the_usual_minimum_is_200_users(tmp_path: Path) -> None:
    enough = interleaving(logged(tmp_path, drafts(200)), baseline="A")
    assert (enough.decision, enough.level) == ("preferred", 0.95)
    explicit = interleaving(logged(tmp_path, drafts(200)), baseline="A", expected=5000, any_day=True, level=0.95)
    assert explicit.overall == enough.overall
    too_few = interleaving(logged(tmp_path, drafts(199)), baseline="A")
    assert too_few.decision == "keep running"
    assert "199 users" in too_few.reasons[0]
    assert "200" in too_few.reasons[0]


def test_slices_are_shown_each_for_itself(tmp_path: Path) -> None:
    """Of ten users five are at a desk: three prefer B, one prefers A, one neither."""
    result = interleaving(logged(tmp_path, drafts()), baseline="A", by="device", min_users=10)
    slices = table(result, "slices")
    assert slices.column("slice").values == ["desk", "phone"]
    assert slices.column("users").values == slices.column("lists").values == [30, 30]
    assert (slices.column("wins").values, slices.column("losses").values) == ([18, 18], [6, 6])
    assert slices.column("value").values == pytest.approx([0.2, 0.2])
    assert slices.labels == 1
    # 30 effective users, of the 50 that an interval takes
    assert all(math.isnan(low) for low, _ in slices.column("value").ci)
    assert all("50" in reason for reason in slices.column("reason").values)
    assert result.decision in {"preferred", "keep running"}


def test_unfair_coins_are_told_from_fair_ones(tmp_path: Path) -> None:
    """B begins in 20 of 30 lists, a user each: by the error of a half, sqrt(30) / 2 / 30, z is 1.83."""
    pages = [(f"u{user}", draft("BABA" if user % 3 else "ABAB"), [1]) for user in range(30)]
    result = interleaving(logged(tmp_path, pages), baseline="A", min_users=10)
    assert [rank.share for rank in result.ranks] == pytest.approx([2 / 3, 1 / 3, 2 / 3, 1 / 3])
    z = (20 / 30 - 0.5) / (math.sqrt(30 / 4) / 30)
    assert [rank.p for rank in result.ranks] == pytest.approx([2 * norm.sf(z)] * 4)
    assert result.decision != "invalid"


def test_a_plan_of_a_log_without_mixed_lists(tmp_path: Path) -> None:
    """30 lists of 30 users, 20 of them clicked; 7 of 10 are decided: a user's spread is sqrt(0.7 * 30 / (4 * 20))."""
    pages = [(f"u{user}", {"device": "x"}, [1] if user % 3 else []) for user in range(30)]
    log = logged(tmp_path, pages)
    plan = plan_interleaving(log, differences=[0.02, 0.1])
    spread = math.sqrt(0.7 * 30 / 80)
    assert (plan.spread, plan.assumed, plan.power) == (pytest.approx(spread), True, 0.8)
    z = norm.ppf(0.975) + norm.ppf(0.8)
    assert [preference_plan.users for preference_plan in plan.plans] == pytest.approx(
        [(z * spread / 0.02) ** 2, (z * spread / 0.1) ** 2]
    )
    assert [preference_plan.days for preference_plan in plan.plans] == pytest.approx(
        [preference_plan.users_any_day / plan.users_per_day for preference_plan in plan.plans]
    )
    assert plan.users_per_day == pytest.approx(30)  # all within half an hour: a day at least
    plans = table(plan, "plans")
    assert [row[0] for row in lines(plans)] == ["+2.0", "+10.0"]
    assert plans.labels == 1
    assert "assumed" in plans.note
    assert "0.51" in plans.note
    assert [preference_plan.value for preference_plan in plan_interleaving(log).plans] == [0.01, 0.02, 0.05, 0.1]
    assert plan_interleaving(log, decided=1.0).spread == pytest.approx(spread / math.sqrt(0.7))
    assert [preference_plan.value for preference_plan in plan_interleaving(log, differences=0.5).plans] == [0.5]
    for options in (
        {"differences": 0.51},
        {"differences": 0.0},
        {"differences": []},
        {"decided": 0.0},
        {"decided": 1.1},
    ):
        with pytest.raises(InputError, match="`differences` must be"):
            plan_interleaving(log, **options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no clicked lists"):
        plan_interleaving(logged(tmp_path, [(user, page, []) for user, page, _ in pages]))


def test_a_plan_of_mixed_lists_takes_their_spread(tmp_path: Path) -> None:
    log = logged(tmp_path, drafts())
    plan = plan_interleaving(log, differences=0.1)
    outcomes = [0.5] * 36 + [-0.5] * 12 + [0.0] * 12
    assert plan.spread == pytest.approx(math.sqrt(sum((value - 0.2) ** 2 for value in outcomes) / 59))
    assert not plan.assumed
    assert "estimated from the interleaved lists" in table(plan, "plans").note


def pair(
    low: float, high: float, *, gain: float, interval: tuple[float, float], better: int = 1, arm: str = "new"
) -> Any:
    """Compare a preference of 0.1 with error 0.02 (900 users) with an A/B test of 3,600 users."""
    preference = SimpleNamespace(value=0.1, error=0.02, low=low, high=high, reason=None)
    mixed: Any = SimpleNamespace(baseline="old", other="new", overall=preference, users=900, level=0.95)
    primary = SimpleNamespace(
        role="primary",
        arm=arm,
        metric=SimpleNamespace(better=better),
        adjusted=SimpleNamespace(error=0.01),
        difference=SimpleNamespace(low=interval[0], high=interval[1], value=gain / 5),
        relative=SimpleNamespace(value=gain),
    )
    guardrail = SimpleNamespace(role="guardrail", arm="new")
    test: Any = SimpleNamespace(
        differences=[guardrail, primary], assignment=SimpleNamespace(total_users=3600), level=0.95
    )
    return _compare_methods(mixed, test, 0.8)


def test_a_change_that_was_tested_both_ways() -> None:
    z = norm.ppf(0.975) + norm.ppf(0.8)
    comparison = pair(0.06, 0.14, gain=0.2, interval=(0.02, 0.06))
    assert (comparison.other, comparison.preference, comparison.gain, comparison.agree) == ("new", 0.1, 0.2, "yes")
    assert comparison.users_interleaving == pytest.approx((z * 0.02 * 30 / 0.1) ** 2)
    assert comparison.users_abtest == pytest.approx((z * 0.01 * 60 / 0.04) ** 2)
    assert pair(0.06, 0.14, gain=-0.2, interval=(-0.06, -0.02)).agree == "no"
    less_is_better = pair(0.06, 0.14, gain=-0.2, interval=(-0.06, -0.02), better=-1)
    assert (less_is_better.agree, less_is_better.gain) == ("yes", 0.2)
    swapped = pair(0.06, 0.14, gain=-0.2, interval=(-0.06, -0.02), arm="old")
    assert (swapped.agree, swapped.gain) == ("yes", 0.2)
    assert pair(-0.01, 0.2, gain=0.2, interval=(0.02, 0.06)).agree == "interleaving not significant"
    assert pair(0.0, 0.2, gain=0.2, interval=(0.02, 0.06)).agree == "interleaving not significant"
    assert pair(0.06, 0.14, gain=0.2, interval=(-0.01, 0.06)).agree == "A/B test not significant"
    assert math.isinf(pair(0.06, 0.14, gain=0.0, interval=(0.02, 0.06)).users_abtest)


def test_past_changes_are_set_side_by_side(tmp_path: Path) -> None:
    log = logged(tmp_path, drafts(200))
    mixed = interleaving(log, baseline="A")
    primary = SimpleNamespace(
        role="primary", arm="B", metric=SimpleNamespace(better=1), adjusted=SimpleNamespace(error=0.01),
        difference=SimpleNamespace(low=-0.05, high=-0.01, value=-0.03), relative=SimpleNamespace(value=-0.1),
    )  # fmt: skip
    test: Any = SimpleNamespace(differences=[primary], assignment=SimpleNamespace(total_users=400), level=0.95)
    plan = plan_interleaving(log, past=[(mixed, test)])
    pairs = table(plan, "pairs")
    (comparison,) = plan.pairs
    assert pairs.column("ratio").values == [comparison.users_abtest / comparison.users_interleaving]
    assert (pairs.labels, pairs.column("agree").values, pairs.column("other").values) == (1, ["no"], ["B"])
    sentence = plan.blocks()[2].texts[0]
    assert sentence.endswith("for 1 of 1 change, and for 0 of them in the same direction.")


def test_lists_that_nobody_clicked_say_nothing(tmp_path: Path) -> None:
    result = interleaving(logged(tmp_path, [(f"u{user}", draft("ABAB"), []) for user in range(4)]), baseline="A")
    assert (result.lists, result.users, result.overall.lists, result.overall.wins) == (4, 4, 0, 0.0)
    assert result.decision == "keep running"
