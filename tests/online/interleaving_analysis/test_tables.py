"""Tables of interleaving and of its plans, of team drafts whose clicks are counted by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from scipy.stats import norm, t

from judged.errors import InputError
from judged.online import interleaving, plan_interleaving
from judged.online.interleaving_analysis.planning import _pair
from online.interleaving_analysis.test_credit import draft, logged

if TYPE_CHECKING:
    from pathlib import Path


def drafts(users: int = 60, **attributes: Any) -> list[tuple[str, dict[str, Any], list[int]]]:
    """Log a list a user: of each ten users six prefer B, two prefer A, and two click both or the same often.

    Which ranker begins, alternates in each group of users.
    """
    pages: list[tuple[str, dict[str, Any], list[int]]] = []
    for at in range(users):
        group, begin = at % 10, at // 10 % 2
        teams = ("ABAB", "BABA")[begin]
        first_b = 2 - begin  # rank of B's first result
        clicks = [first_b] if group < 6 else [3 - first_b] if group < 8 else [1, 2]
        device = {"device": "desk" if group % 2 else "phone"}
        pages.append((f"u{at}", draft(teams, **device, **attributes), clicks))
    return pages


def table(answer: Any, name: str) -> Any:
    return next(block for block in answer.blocks() if block.name == name)


def lines(block: Any) -> list[list[str]]:
    return [line.split() for line in block.text(300).split("\n")[1:] if line.strip()]


def test_what_clicks_prefer(tmp_path: Path) -> None:
    """Of 60 lists 36 are won and 12 lost: outcomes 1/2, -1/2 and 0, of mean 0.2."""
    found = interleaving(logged(tmp_path, drafts()), baseline="A", any_day=False, min_users=60)
    row = found.overall
    outcomes = [0.5] * 36 + [-0.5] * 12 + [0.0] * 12
    error = math.sqrt(sum((value - 0.2) ** 2 for value in outcomes) / 59 / 60)
    assert (row.users, row.lists, row.wins, row.losses) == (60, 60, 36, 12)
    assert (row.value, row.error, row.credit) == pytest.approx((0.2, error, 24 / 60))
    assert (row.low, row.high) == pytest.approx((0.2 - t.ppf(0.975, 59) * error, 0.2 + t.ppf(0.975, 59) * error))
    assert found.decision == "preferred"
    shown = table(found, "preferences")
    assert lines(shown)[0][:5] == ["60", "60", "36", "12", "+20.0"]
    assert shown.column("value").ci == [(row.low, row.high)]
    assert shown.column("credit").ci == [(row.credit_low, row.credit_high)]
    assert [column.name for column in shown.columns if column.only == "data"] == ["error", "effective", "reason"]
    ranks = table(found, "ranks")
    assert ranks.column("rank").values == [1, 2, 3, 4]
    assert ranks.column("lists").values == [60] * 4
    assert ranks.column("share").values == [0.5] * 4
    assert ranks.column("p").values == [1.0] * 4
    assert not any(block.name == "slices" for block in found.blocks())
    facts = found.facts()
    assert (facts["baseline"], facts["other"], facts["lists"], facts["users"], facts["mixing"]) == (
        "A", "B", 60, 60, "team-draft")  # fmt: skip
    assert (
        interleaving(logged(tmp_path, drafts()), baseline="A", any_day=False, min_users=61).decision == "keep running"
    )
    assert interleaving(logged(tmp_path, drafts()), baseline="A", any_day=False).decision == "keep running"


def test_the_usual_minimum_is_200_users(tmp_path: Path) -> None:
    enough = interleaving(logged(tmp_path, drafts(200)), baseline="A")
    assert (enough.decision, enough.level) == ("preferred", 0.95)
    same = interleaving(logged(tmp_path, drafts(200)), baseline="A", expected=5000, any_day=True, level=0.95)
    assert same.overall == enough.overall
    few = interleaving(logged(tmp_path, drafts(199)), baseline="A")
    assert few.decision == "keep running"
    assert "199 users" in few.reasons[0]
    assert "200" in few.reasons[0]


def test_slices_are_shown_each_for_itself(tmp_path: Path) -> None:
    """Of ten users five are at a desk: three prefer B, one prefers A, one neither."""
    found = interleaving(logged(tmp_path, drafts()), baseline="A", by="device", min_users=10)
    shown = table(found, "slices")
    assert shown.column("slice").values == ["desk", "phone"]
    assert shown.column("users").values == shown.column("lists").values == [30, 30]
    assert (shown.column("wins").values, shown.column("losses").values) == ([18, 18], [6, 6])
    assert shown.column("value").values == pytest.approx([0.2, 0.2])
    assert shown.labels == 1
    # 30 effective users, of the 50 that an interval takes
    assert all(math.isnan(low) for low, _ in shown.column("value").ci)
    assert all("50" in reason for reason in shown.column("reason").values)
    assert found.decision in {"preferred", "keep running"}


def test_unfair_coins_are_told_from_fair_ones(tmp_path: Path) -> None:
    """B begins in 20 of 30 lists, a user each: by the error of a half, sqrt(30) / 2 / 30, z is 1.83."""
    pages = [(f"u{at}", draft("BABA" if at % 3 else "ABAB"), [1]) for at in range(30)]
    found = interleaving(logged(tmp_path, pages), baseline="A", min_users=10)
    assert [rank.share for rank in found.ranks] == pytest.approx([2 / 3, 1 / 3, 2 / 3, 1 / 3])
    z = (20 / 30 - 0.5) / (math.sqrt(30 / 4) / 30)
    assert [rank.p for rank in found.ranks] == pytest.approx([2 * norm.sf(z)] * 4)
    assert found.decision != "broken"


def test_a_plan_of_a_log_without_mixed_lists(tmp_path: Path) -> None:
    """30 lists of 30 users, 20 of them clicked; 7 of 10 are decided: a user's spread is sqrt(0.7 * 30 / (4 * 20))."""
    pages = [(f"u{at}", {"device": "x"}, [1] if at % 3 else []) for at in range(30)]
    log = logged(tmp_path, pages)
    plan = plan_interleaving(log, differences=[0.02, 0.1])
    spread = math.sqrt(0.7 * 30 / 80)
    assert (plan.spread, plan.assumed, plan.power) == (pytest.approx(spread), True, 0.8)
    z = norm.ppf(0.975) + norm.ppf(0.8)
    assert [one.users for one in plan.plans] == pytest.approx([(z * spread / 0.02) ** 2, (z * spread / 0.1) ** 2])
    assert [one.days for one in plan.plans] == pytest.approx([one.users_any_day / plan.a_day for one in plan.plans])
    assert plan.a_day == pytest.approx(30)  # all within half an hour: a day at least
    shown = table(plan, "plans")
    assert [row[0] for row in lines(shown)] == ["+2.0", "+10.0"]
    assert shown.labels == 1
    assert "assumed, not seen" in shown.note
    assert "0.51" in shown.note
    assert [one.value for one in plan_interleaving(log).plans] == [0.01, 0.02, 0.05, 0.1]
    assert plan_interleaving(log, decided=1.0).spread == pytest.approx(spread / math.sqrt(0.7))
    assert [one.value for one in plan_interleaving(log, differences=0.5).plans] == [0.5]
    for wrong in ({"differences": 0.51}, {"differences": 0.0}, {"differences": []}, {"decided": 0.0}, {"decided": 1.1}):
        with pytest.raises(InputError, match="differences are"):
            plan_interleaving(log, **wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="decide nothing"):
        plan_interleaving(logged(tmp_path, [(user, page, []) for user, page, _ in pages]))


def test_a_plan_of_mixed_lists_takes_their_spread(tmp_path: Path) -> None:
    log = logged(tmp_path, drafts())
    plan = plan_interleaving(log, differences=0.1)
    outcomes = [0.5] * 36 + [-0.5] * 12 + [0.0] * 12
    assert plan.spread == pytest.approx(math.sqrt(sum((value - 0.2) ** 2 for value in outcomes) / 59))
    assert not plan.assumed
    assert "as on the mixed lists" in table(plan, "plans").note


def pair(low: float, high: float, *, gain: float, ends: tuple[float, float], better: int = 1, arm: str = "new") -> Any:
    """Set a preference of 0.1 with an error of 0.02 over 900 users beside an A/B test of 3,600 users."""
    seen = SimpleNamespace(value=0.1, error=0.02, low=low, high=high, reason=None)
    mixed: Any = SimpleNamespace(baseline="old", other="new", overall=seen, users=900, level=0.95)
    goal = SimpleNamespace(
        role="primary", arm=arm, metric=SimpleNamespace(better=better), adjusted=SimpleNamespace(error=0.01),
        difference=SimpleNamespace(low=ends[0], high=ends[1], value=gain / 5), relative=SimpleNamespace(value=gain),
    )  # fmt: skip
    other = SimpleNamespace(role="guardrail", arm="new")
    test: Any = SimpleNamespace(differences=[other, goal], assignment=SimpleNamespace(number=3600), level=0.95)
    return _pair(mixed, test, 0.8)


def test_a_change_that_was_tested_both_ways() -> None:
    z = norm.ppf(0.975) + norm.ppf(0.8)
    made = pair(0.06, 0.14, gain=0.2, ends=(0.02, 0.06))
    assert (made.other, made.preference, made.gain, made.agree) == ("new", 0.1, 0.2, "yes")
    assert made.users_interleaving == pytest.approx((z * 0.02 * 30 / 0.1) ** 2)
    assert made.users_abtest == pytest.approx((z * 0.01 * 60 / 0.04) ** 2)
    assert pair(0.06, 0.14, gain=-0.2, ends=(-0.06, -0.02)).agree == "no"
    less = pair(0.06, 0.14, gain=-0.2, ends=(-0.06, -0.02), better=-1)
    assert (less.agree, less.gain) == ("yes", 0.2)
    turned = pair(0.06, 0.14, gain=-0.2, ends=(-0.06, -0.02), arm="old")
    assert (turned.agree, turned.gain) == ("yes", 0.2)
    assert pair(-0.01, 0.2, gain=0.2, ends=(0.02, 0.06)).agree == "interleaving does not tell"
    assert pair(0.0, 0.2, gain=0.2, ends=(0.02, 0.06)).agree == "interleaving does not tell"
    assert pair(0.06, 0.14, gain=0.2, ends=(-0.01, 0.06)).agree == "A/B does not tell"
    assert math.isinf(pair(0.06, 0.14, gain=0.0, ends=(0.02, 0.06)).users_abtest)


def test_past_changes_are_set_side_by_side(tmp_path: Path) -> None:
    log = logged(tmp_path, drafts(200))
    mixed = interleaving(log, baseline="A")
    goal = SimpleNamespace(
        role="primary", arm="B", metric=SimpleNamespace(better=1), adjusted=SimpleNamespace(error=0.01),
        difference=SimpleNamespace(low=-0.05, high=-0.01, value=-0.03), relative=SimpleNamespace(value=-0.1),
    )  # fmt: skip
    test: Any = SimpleNamespace(differences=[goal], assignment=SimpleNamespace(number=400), level=0.95)
    plan = plan_interleaving(log, past=[(mixed, test)])
    pairs = table(plan, "pairs")
    (one,) = plan.pairs
    assert pairs.column("ratio").values == [one.users_abtest / one.users_interleaving]
    assert (pairs.labels, pairs.column("agree").values, pairs.column("other").values) == (1, ["no"], ["B"])
    sentence = plan.blocks()[2].texts[0]
    assert "in 1 of 1, and agreed in 0" in sentence


def test_lists_that_nobody_clicked_say_nothing(tmp_path: Path) -> None:
    found = interleaving(logged(tmp_path, [(f"u{at}", draft("ABAB"), []) for at in range(4)]), baseline="A")
    assert (found.lists, found.users, found.overall.lists, found.overall.wins) == (4, 4, 0, 0.0)
    assert found.decision == "keep running"
