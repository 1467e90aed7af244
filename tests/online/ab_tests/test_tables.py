"""Tables of A/B tests and of their plans, of logs whose users and clicks are counted by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student_t

from judged.errors import InputError
from judged.online.ab_tests.abtest import abtest
from judged.online.ab_tests.differences import Looks
from judged.online.ab_tests.planning import plan_abtest, users_any_day
from online.ab_tests.arms import log_of_users
from typed_logs import typed_log

METRIC: dict[str, Any] = {"metrics": (), "any_day": False}


def log_of_arms(users: int = 400, arms: str = "ab", more: int = 1) -> Any:
    """Return a log of ten days, in which 2 of 5 users of the first arm click, and `more` in each following one.

    A quarter of the users of each arm is at a desk, the others at a phone.
    """
    number = len(arms)
    rows = [(at // number, at % number) for at in range(users)]
    return log_of_users(
        [arms[arm] for _, arm in rows],
        [nth % 5 < 2 + more * arm for nth, arm in rows],
        [at * 10 / users for at in range(users)],
        device=["phone" if nth % 4 else "desk" for nth, _ in rows],
    )  # fmt: skip


def table(answer: Any, name: str) -> Any:
    return next(block for block in answer.blocks() if block.name == name)


def column(answer: Any, name: str, of: str) -> list[Any]:
    return list(table(answer, name).column(of).values)


def lines(block: Any) -> list[list[str]]:
    return [line.split() for line in block.text(300).split("\n")[1:] if line.strip()]


def test_a_difference_of_two_shares() -> None:
    """0.4 and 0.6 of 200 users each: variances p (1 - p) / 199, Student's t with 398 degrees of freedom."""
    found = abtest(log_of_arms(), "SatisfiedPageCTR", by="device", **METRIC)
    rows = table(found, "differences")
    error = math.sqrt(2 * 0.24 / 199)
    (row,) = found.differences
    assert (row.difference.value, row.adjusted.error) == pytest.approx((0.2, error))
    half = student_t.ppf(0.975, 398) * error
    assert (row.difference.low, row.difference.high) == pytest.approx((0.2 - half, 0.2 + half))
    assert row.p == pytest.approx(2 * student_t.sf(0.2 / error, 398))
    assert row.chance_better == pytest.approx(norm.cdf(0.2 / error))
    assert lines(rows)[0][:4] == ["SatisfiedPageCTR", "b", "primary", "40.0%"]
    assert [column(found, "differences", name) for name in ("relative", "reduction", "effective", "units")] == [
        [pytest.approx(0.5)], [0.0], [pytest.approx(200)], [200]
    ]  # fmt: skip
    assert (rows.labels, table(found, "slices").labels, table(found, "interactions").labels) == (2, 3, 2)
    assert (column(found, "arms", "arm"), column(found, "arms", "users")) == (["a", "b"], [200, 200])
    assert "exposed over 10.0 days" in table(found, "arms").note
    made = found.assignment
    assert (made.days, made.longest, made.number, made.crossed, made.unfinished) == (9.975, 9.975, 400, 0, 0)
    assert made.a_day == pytest.approx(400 / 9.975)
    assert {"units", "interval", "arm_interval"}.isdisjoint(column.name for column in rows.shown)
    assert column(found, "slices", "slice") == ["desk", "phone"]
    assert column(found, "slices", "units") == [50, 150]
    tests = table(found, "interactions")
    assert [tests.column(name).values for name in ("metric", "arm", "slices")] == [["SatisfiedPageCTR"], ["b"], [2]]
    assert tests.column("p").values[0] > 0.9
    assert found.verdicts[0].decision == "ship"
    assert found.ships
    facts = found.facts()
    assert facts["verdicts"][0]["decision"] == "ship"
    assert (facts["by"], facts["any_day"], facts["margin_relative"], facts["level"]) == ("device", False, 0.02, 0.95)
    assert dict(found.policies)["adjusted by"] == "what users did in the 14 days before"


def test_usual_options_are_those_of_the_documentation() -> None:
    log = log_of_arms(more=3)
    usual = abtest(log, "SatisfiedPageCTR", metrics=())
    told = abtest(log, "SatisfiedPageCTR", metrics=(), variant="variant", before_days=14.0, margin_relative=0.02,
                  any_day=True, expected=5000, min_users=200, unit="user", level=0.95, correction="holm")  # fmt: skip
    assert usual.json() == told.json()
    assert usual.any_day
    assert usual.verdicts[0].decision == "ship"  # of exactly 200 users in each arm
    fewer = abtest(log_of_arms(398, more=3), "SatisfiedPageCTR", metrics=())
    assert fewer.verdicts[0].decision == "keep running"
    # one more user in each arm, at 39.8 users a day and a little more
    begin_to_end = 397 * 10 / 398
    assert fewer.verdicts[0].days == pytest.approx(2 * 1 / (398 / begin_to_end), rel=0.01)


def test_other_metrics_are_corrected_together_and_follow_the_declared_ones() -> None:
    log = log_of_arms()
    found = abtest(
        log, "SatisfiedPageCTR", guardrails="ZeroResults", metrics=["PageCTR", "ClicksPerPage"], any_day=False
    )
    assert column(found, "differences", "metric")[:2] == ["SatisfiedPageCTR", "ZeroResults"]
    assert column(found, "differences", "role")[:2] == ["primary", "guardrail"]
    others = [row for row in found.differences if row.role == "other"]
    assert len(others) >= 1
    alone = [row.difference.p for row in others]
    assert [row.p for row in others] == pytest.approx([min(1.0, len(alone) * p) for p in alone])  # all the same
    assert [row.p for row in found.differences if row.role == "primary"] == [found.differences[0].difference.p]


def test_three_arms_share_one_error_rate() -> None:
    """Two arms against the baseline: t at 1 - 0.05 / 4, and p-values twice as large."""
    found = abtest(log_of_arms(600, "abc"), "SatisfiedPageCTR", **METRIC)
    first, second = found.differences
    assert [row.arm for row in found.differences] == ["b", "c"]
    assert (first.difference.value, second.difference.value) == pytest.approx((0.2, 0.4))
    error = math.sqrt((0.24 + 0.16) / 199)
    assert second.difference.high == pytest.approx(0.4 + student_t.ppf(1 - 0.0125, 398) * error)
    assert first.p == pytest.approx(4 * student_t.sf(0.2 / math.sqrt(0.48 / 199), 398))
    assert "for 2 arms together" in table(found, "differences").note
    assert "together" not in table(abtest(log_of_arms(), "SatisfiedPageCTR", **METRIC), "differences").note


def test_days_after_exposure_are_compared_one_by_one() -> None:
    """Each user comes again on the day after: then both arms click alike."""
    number = 400
    arms, first = ["ab"[at % 2] for at in range(number)], [at // 2 % 5 < 2 + at % 2 for at in range(number)]
    log = log_of_users(arms, first, [at * 5 / number for at in range(number)])
    pages, events = log.serp.to_arrow().to_pylist(), log.event.to_arrow().to_pylist()
    later = [{**row, "serp": number + at, "session": number + at, "time_ms": row["time_ms"] + 86_400_000 + 3_600_000}
             for at, row in enumerate(pages)]  # fmt: skip
    more = [{**events[0], "serp": row["serp"], "session": row["session"], "user": row["user"],
             "time_ms": row["time_ms"] + 1000} for row in later if row["user"] // 2 % 2]  # fmt: skip
    found = abtest(typed_log([*pages, *later], [*events, *more]), "SatisfiedPageCTR", **METRIC)
    days = table(found, "days")
    assert (days.column("day").values, days.column("arm").values) == ([1, 2], ["b", "b"])
    assert [row.difference.value for row in found.days] == pytest.approx([0.2, 0.0])
    assert (days.labels, days.folded) == (2, True)
    chart = table(found, "novelty")
    assert (chart.x, chart.y, chart.color, [line.value for line in chart.lines]) == ("day", "difference", "arm", [0.0])
    assert all(row.critical < 2 for row in found.days)  # fixed-sample, also where the test is valid on any day
    assert all(row.critical < 2 for row in abtest(typed_log([*pages, *later], [*events, *more]), "SatisfiedPageCTR",
                                                  metrics=()).days)  # fmt: skip


def test_a_plan_of_a_share() -> None:
    """Half of 400 users click: sd / mean of a user is sqrt(0.25 * 400 / 399) / 0.5, z is 1.96 + 0.84."""
    plan = plan_abtest(log_of_arms(), ["SatisfiedPageCTR"], differences=[0.1, 0.2], splits=200)
    (of,) = plan.plans
    spread = math.sqrt(0.25 * 400 / 399) / 0.5
    z = norm.ppf(0.975) + norm.ppf(0.8)
    assert (of.value, of.spread) == pytest.approx((0.5, spread))
    assert of.users == pytest.approx([(2 * z * spread / 0.1) ** 2, (2 * z * spread / 0.2) ** 2])
    span = 399 * 10 / 400
    assert plan.a_day == pytest.approx(400 / span)
    assert of.days == pytest.approx([users / plan.a_day for users in of.users_any_day])
    for users, difference in zip(of.users_any_day, (0.1, 0.2), strict=True):
        margin = difference * math.sqrt(users) / (2 * spread) - Looks().critical(users)
        assert margin == pytest.approx(norm.ppf(0.8), abs=1e-6)
    plans, aa = table(plan, "plans"), table(plan, "aa")
    assert column(plan, "plans", "relative") == [0.1, 0.2]
    assert [row[1:3] for row in lines(plans)] == [["10.0%", "3147"], ["20.0%", "787"]]
    assert (plans.labels, aa.labels, plan.splits, plan.power) == (2, 1, 200, 0.8)
    # standard error of 200 splits: sqrt(0.05 * 0.95 / 200) = 1.54%
    assert "200 random splits; 5% should differ, +- 3.1 points" in aa.note
    assert lines(aa)[0][:3] == ["SatisfiedPageCTR", "50.0%", "1.001"]
    assert 0.0 < of.false_alarms < 0.12
    assert plan.refused == ()
    assert plan.facts()["differences"] == (0.1, 0.2)
    usual = plan_abtest(log_of_arms(), ["SatisfiedPageCTR"])
    assert (usual.differences, usual.power, usual.splits, usual.level) == ((0.01, 0.02, 0.05, 0.1), 0.8, 1000, 0.95)
    assert usual.plans[0].users[3] == pytest.approx(of.users[0])


def test_splits_that_differ_too_often_or_too_seldom_are_named() -> None:
    """Of four users, halves have one or two most of the time, and no error: they never differ."""
    users = [at % 4 for at in range(40)]
    log = log_of_users(["a"] * 40, [at % 3 == 0 for at in range(40)], [at / 10 for at in range(40)])
    pages, events = log.serp.to_arrow().to_pylist(), log.event.to_arrow().to_pylist()
    rows = [{**row, "user": users[row["serp"]]} for row in pages]
    clicks = [{**row, "user": users[row["serp"]]} for row in events]
    plan = plan_abtest(typed_log(rows, clicks), ["SatisfiedPageCTR"])
    error = math.sqrt(0.05 * 0.95 / 1000)
    assert abs(plan.plans[0].false_alarms - 0.05) > 4 * error
    assert "SatisfiedPageCTR" in plan.blocks()[0].texts[0]
    sound = plan_abtest(log_of_arms(), ["SatisfiedPageCTR"])
    assert abs(sound.plans[0].false_alarms - 0.05) <= 4 * error
    assert sound.blocks()[0].name == "plans"


@pytest.mark.parametrize("wrong", [0.0, -0.1, math.inf, math.nan, [], [0.1, 0.0]])
def test_differences_that_are_none_cannot_be_planned_for(wrong: Any) -> None:
    with pytest.raises(InputError, match="differences are"):
        plan_abtest(log_of_arms(20), ["SatisfiedPageCTR"], differences=wrong)


def test_without_spread_no_number_of_users_is_planned() -> None:
    assert math.isnan(users_any_day(0.0, 0.1, 0.8, Looks()))
    assert math.isnan(users_any_day(math.nan, 0.1, 0.8, Looks()))
    few = users_any_day(1.0, 0.1, 0.8, Looks())
    assert users_any_day(2.0, 0.2, 0.8, Looks()) == pytest.approx(few)
    assert users_any_day(1.0, 0.1, 0.9, Looks()) > few
    assert np.isfinite(few)
