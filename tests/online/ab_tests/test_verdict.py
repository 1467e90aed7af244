"""Verdicts on differences made by hand: signs, margins, too little data, and remaining days."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from judged.online.ab_tests.differences import EQUAL_USERS, Inference, loss, verdict
from judged.online.statistics.allocation import SampleRatio
from online.ab_tests.arms import difference, users


def decided(*rows: Any, margin: float = 0.02, min_users: int = 200, **user_counts: Any) -> str:
    return verdict("b", rows, users(**user_counts), margin, min_users).decision


@pytest.mark.parametrize(
    ("base", "other", "decision"),
    [(-9.89, -4.69, "ship"), (-4.69, -9.89, "do not ship"), (9.89, 4.69, "do not ship"), (4.69, 9.89, "ship")],
)
def test_a_gain_is_a_gain_whatever_the_sign_of_the_baseline(base: float, other: float, decision: str) -> None:
    row = difference(base, other, 0.5)
    assert decided(row) == decision
    assert (row.relative.value > 0) == (other > base)
    assert (row.benefit[0] > 0) == (decision == "ship")
    assert row.chance_better == pytest.approx(1.0 if other > base else 0.0, abs=1e-9)


@pytest.mark.parametrize(("base", "other", "decision"), [(-1.0, -0.5, "do not ship"), (-0.5, -1.0, "ship")])
def test_less_is_better_below_0_too(base: float, other: float, decision: str) -> None:
    assert decided(difference(base, other, 0.05, metric="DissatisfiedClicks", base_error=0.01)) == decision


@pytest.mark.parametrize(
    ("base", "other", "state"),
    [
        (-10.0, -15.0, "harmed"),  # -50% +- 10%
        (-10.0, -5.0, "safe"),
        (10.0, 5.0, "harmed"),
        (10.0, 9.9, "open"),
        (10.0, 12.0, "safe"),
        (-10.0, -10.1, "open"),
    ],
)
def test_what_a_guardrail_lost_is_a_share_of_the_baselines_size(base: float, other: float, state: str) -> None:
    row = difference(base, other, 0.5, role="guardrail")
    assert loss(row, 0.02) == state
    better = {"harmed": "do not ship", "safe": "ship", "open": "keep running"}
    assert decided(difference(10.0, 20.0, 0.5), row) == better[state]


def test_a_guardrail_is_safe_from_the_margin_on() -> None:
    """Baseline 10 without error, difference -0.1 with a standard error of 0.04: -1% +- 0.784%."""
    row = difference(10.0, 9.9, 0.04, base_error=0.0, role="guardrail")
    assert [loss(row, margin) for margin in (0.0, 0.002, 0.0022, 0.0178, 0.018)] == [
        "harmed", "harmed", "open", "open", "safe"]  # fmt: skip


@pytest.mark.parametrize(
    ("other", "error", "margin", "state"),
    [
        # the baseline is 0.1 +- 1.96: 2% of at most 2.06 (2.0617 by Student's t) is 0.0412
        (-5.0, 1.0, 0.02, "harmed"),
        (0.1, 0.01, 0.02, "open"),
        (5.0, 1.0, 0.02, "safe"),
        (0.1 - 0.062, 0.01, 0.02, "harmed"),
        (0.1 - 0.06, 0.01, 0.02, "open"),
        (0.1 - 0.06, 0.01, 0.0, "harmed"),
    ],
)
def test_of_a_baseline_that_may_be_0_a_loss_is_compared_with_the_margin_of_its_largest_value(
    other: float, error: float, margin: float, state: str
) -> None:
    row = difference(0.1, other, error, base_error=1.0, role="guardrail")
    assert math.isnan(row.relative.value)
    assert math.isnan(row.relative_benefit[0])
    assert loss(row, margin) == state


def test_of_a_primary_metric_whose_baseline_may_be_0_only_the_sign_is_decided() -> None:
    options = {"base_error": 1.0}
    assert decided(difference(0.1, 5.0, **options)) == "ship"
    assert decided(difference(0.1, -5.0, **options)) == "do not ship"
    undecided = verdict("b", [difference(0.1, 0.1, 0.001, **options)], users(), 0.9, 200)
    assert (undecided.decision, math.isnan(undecided.days)) == ("keep running", True)


def test_a_metric_without_a_direction_has_no_gain() -> None:
    row = difference(1.0, 2.0, 0.01, metric="Abandonment", role="other")
    assert all(map(math.isnan, (row.chance_better, *row.benefit, *row.relative_benefit)))
    assert row.relative.value == pytest.approx(1.0)
    assert loss(row, 0.02) == "open"


def test_a_difference_inside_of_the_margin_is_small() -> None:
    """0.5% +- 0.98% of a baseline of 10."""
    row = difference(10.0, 10.05, 0.05, base_error=0.0)
    assert [decided(row, margin=margin) for margin in (0.0148, 0.0149)] == ["keep running", "do not ship"]
    worse = difference(10.0, 9.95, 0.05, base_error=0.0)
    assert [decided(worse, margin=margin) for margin in (0.0148, 0.0149)] == ["keep running", "do not ship"]


@pytest.mark.parametrize(
    ("user_counts", "options", "decision"),
    [
        ({"a": 199}, {}, "keep running"),
        ({"b": 199}, {}, "keep running"),
        ({"a": 200, "b": 200}, {}, "ship"),
        ({}, {"effective": EQUAL_USERS - 0.01}, "keep running"),
        ({}, {"effective": EQUAL_USERS}, "ship"),
        ({}, {"error": 0.0}, "keep running"),
        ({}, {"units": 5}, "keep running"),
    ],
)
def test_too_little_data_gives_no_verdict(user_counts: dict[str, Any], options: dict[str, Any], decision: str) -> None:
    assert decided(difference(10.0, 20.0, **{"error": 0.5, **options}), **user_counts) == decision
    assert decided(difference(10.0, 5.0, **{"error": 0.5, **options}), **user_counts) == decision.replace(
        "ship", "do not ship"
    )


def test_no_minimum_of_users_is_below_six() -> None:
    assert decided(difference(10.0, 20.0, 0.5), a=5, b=5, min_users=1) == "keep running"


def test_without_a_primary_metric_the_test_keeps_running() -> None:
    assert decided(difference(10.0, 20.0, 0.5, role="other")) == "keep running"
    assert decided(difference(10.0, 5.0, 0.5, role="guardrail")) == "keep running"


def test_where_nothing_can_be_concluded_the_test_is_broken() -> None:
    better = difference(10.0, 20.0, 0.5)
    for fields in (
        {"uneven_fields": ("device",)},
        {"crossed": 21},
        {"sample_ratio": SampleRatio(0.0, 1, 0.0, 0.0009)},
    ):
        assignment = replace(users(), **fields)
        assert verdict("b", [better], assignment, 0.02, 200).decision == "invalid"
    for fields in ({"crossed": 20}, {"sample_ratio": SampleRatio(0.0, 1, 0.0, 0.001)}):
        assignment = replace(users(a=980, b=1000), **fields)
        assert verdict("b", [better], assignment, 0.02, 200).decision == "ship"


def test_declared_metrics_that_differed_before_break_a_test_together_once_in_a_thousand() -> None:
    rows = [difference(10.0, 20.0, 0.5, p_before=p, role=role) for role, p in (("primary", 0.0006), ("guardrail", 0.5))]
    assert decided(*rows) == "ship"
    assert decided(rows[0]) == "invalid"
    assert decided(replace(rows[0], p_before=0.0004), rows[1]) == "invalid"
    assert decided(replace(rows[0], p_before=math.nan), rows[1]) == "ship"


def test_how_long_it_takes_grows_with_the_square_of_the_interval() -> None:
    """Half of the interval is 4 margins: 16 times the users; 2,000 came in 10 days, so 15 * 10 days more."""
    row = difference(10.0, 10.0, 0.1, base_error=0.0)
    margin = row.critical * 0.1 / 10.0 / 4.0
    undecided = verdict("b", [row], users(), margin, 200)
    assert undecided.decision == "keep running"
    assert undecided.days == pytest.approx(150.0)
    guarded = verdict("b", [difference(10.0, 12.0, 0.01), replace(row, role="guardrail")], users(), margin, 200)
    assert (guarded.decision, guarded.days) == ("keep running", pytest.approx(150.0))
    too_few = verdict("b", [row], users(100, 150, days=5.0), margin, 200)
    assert too_few.days == pytest.approx(2 * 100 / 50)
    assert math.isnan(verdict("b", [row], users(), 0.0, 200).days)


def test_intervals_for_any_day_are_wider_and_fixed_ones_are_students() -> None:
    any_day, fixed = Inference(), Inference(any_day=False)
    assert any_day.critical(2000) > fixed.critical(2000)
    assert fixed.critical(20, 10.0) == pytest.approx(2.228139, rel=1e-6)  # t table, 10 degrees of freedom
    assert fixed.p_value(2.228139, 20, 10.0) == pytest.approx(0.05, rel=1e-5)
    assert fixed.p_value(-2.228139, 20, 10.0) == pytest.approx(0.05, rel=1e-5)
    assert replace(fixed, arms=3).p_value(2.228139, 20, 10.0) == pytest.approx(0.15, rel=1e-5)
    assert replace(fixed, arms=3).p_value(0.1, 20, 10.0) == 1.0
    assert any_day.p_value(any_day.critical(2000), 2000) == pytest.approx(0.05, rel=1e-6)
    two_users = difference(10.0, 20.0, 0.5, units=2)
    assert all(map(math.isnan, (two_users.p, two_users.difference.low, two_users.relative.value)))
    assert two_users.difference.value == 10.0
    three_users = difference(10.0, 20.0, 0.5, units=3)
    assert three_users.difference.high == pytest.approx(10 + 2.776445 * 0.5, rel=1e-6)  # 4 degrees of freedom


def test_reasons_name_the_metrics_that_they_are_about() -> None:
    """Clicks per page are undecided, revenue has a baseline that may be 0, and dissatisfied clicks are safe."""
    primary = difference(10.0, 10.0, 0.2, metric="SatisfiedPageCTR", base_error=0.0)
    guardrail = difference(0.1, 0.1, 0.01, role="guardrail", base_error=1.0)
    safe = difference(10.0, 5.0, 0.5, metric="DissatisfiedClicks", role="guardrail")
    undecided = verdict("b", [primary, guardrail, safe], users(), 0.02, 200)
    assert undecided.decision == "keep running"
    first, second, third, *_ = undecided.reasons
    assert "SatisfiedPageCTR" in first
    assert "RevenuePerUser" in second
    assert "2%" in second
    assert "RevenuePerUser" in third
    assert "SatisfiedPageCTR" not in third
    assert not any("DissatisfiedClicks" in reason for reason in undecided.reasons)
    scaled = verdict("b", [primary], users(), 0.001, 200)
    assert not any("relative difference is undefined" in reason for reason in scaled.reasons)
    days = scaled.reasons[-1]
    assert f"{math.ceil(scaled.days):,} more days" in days
    assert "200 users per day" in days
    better = verdict("b", [difference(10.0, 20.0, 0.5), guardrail], users(), 0.02, 200)
    assert len(better.reasons) == 2  # both about the guardrail
    harmed = verdict("b", [primary, difference(10.0, 5.0, 0.5, role="guardrail")], users(), 0.02, 200)
    assert (harmed.decision, len(harmed.reasons)) == ("do not ship", 1)
    assert "RevenuePerUser" in harmed.reasons[0]
