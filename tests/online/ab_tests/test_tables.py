"""Tables of A/B tests and of their plans, for logs whose users and clicks are counted by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student_t

from judged.errors import InputError
from judged.online.ab_tests.abtest import abtest
from judged.online.ab_tests.differences import Inference
from judged.online.ab_tests.planning import plan_abtest, users_any_day
from online.ab_tests.arms import log_of_users
from typed_logs import typed_log

METRIC: dict[str, Any] = {"metrics": (), "any_day": False}


def log_of_arms(users: int = 400, arms: str = "ab", step: int = 1) -> Any:
    """Return a log of ten days in which 2 of 5 users of the first arm click, and `step` more in each following arm.

    A quarter of the users of each arm uses a desktop ("desk"), the others a phone.
    """
    number_of_arms = len(arms)
    users_and_arms = [(user // number_of_arms, user % number_of_arms) for user in range(users)]
    return log_of_users(
        [arms[arm] for _, arm in users_and_arms],
        [user_of_arm % 5 < 2 + step * arm for user_of_arm, arm in users_and_arms],
        [user * 10 / users for user in range(users)],
        device=["phone" if user_of_arm % 4 else "desk" for user_of_arm, _ in users_and_arms],
    )  # fmt: skip


def table(answer: Any, name: str) -> Any:
    return next(block for block in answer.blocks() if block.name == name)


def column(answer: Any, name: str, column_name: str) -> list[Any]:
    return list(table(answer, name).column(column_name).values)


def lines(block: Any) -> list[list[str]]:
    return [line.split() for line in block.text(300).split("\n")[1:] if line.strip()]


def test_a_difference_of_two_shares() -> None:
    """0.4 and 0.6 of 200 users each: variances p (1 - p) / 199, Student's t with 398 degrees of freedom."""
    test = abtest(log_of_arms(), "SatisfiedPageCTR", by="device", **METRIC)
    rows = table(test, "differences")
    error = math.sqrt(2 * 0.24 / 199)
    (row,) = test.differences
    assert (row.difference.value, row.adjusted.error) == pytest.approx((0.2, error))
    half_width = student_t.ppf(0.975, 398) * error
    assert (row.difference.low, row.difference.high) == pytest.approx((0.2 - half_width, 0.2 + half_width))
    assert row.p == pytest.approx(2 * student_t.sf(0.2 / error, 398))
    assert row.chance_better == pytest.approx(norm.cdf(0.2 / error))
    assert lines(rows)[0][:4] == ["SatisfiedPageCTR", "b", "primary", "40.0%"]
    assert [column(test, "differences", name) for name in ("relative", "reduction", "effective_users", "units")] == [
        [pytest.approx(0.5)], [0.0], [pytest.approx(200)], [200]
    ]  # fmt: skip
    assert (rows.labels, table(test, "slices").labels, table(test, "interactions").labels) == (2, 3, 2)
    assert (column(test, "arms", "arm"), column(test, "arms", "users")) == (["a", "b"], [200, 200])
    assert "First exposures span 10.0 days" in table(test, "arms").note
    assignment = test.assignment
    assert (assignment.days, assignment.log_days, assignment.total_users) == (9.975, 9.975, 400)
    assert (assignment.crossed, assignment.unfinished) == (0, 0)
    assert assignment.users_per_day == pytest.approx(400 / 9.975)
    assert {"units", "interval", "arm_interval"}.isdisjoint(column.name for column in rows.shown)
    assert column(test, "slices", "slice") == ["desk", "phone"]
    assert column(test, "slices", "units") == [50, 150]
    tests = table(test, "interactions")
    assert [tests.column(name).values for name in ("metric", "arm", "slices")] == [["SatisfiedPageCTR"], ["b"], [2]]
    assert tests.column("p").values[0] > 0.9
    assert test.verdicts[0].decision == "ship"
    assert test.ships
    facts = test.facts()
    assert facts["verdicts"][0]["decision"] == "ship"
    assert (facts["by"], facts["any_day"], facts["margin_relative"], facts["level"]) == ("device", False, 0.02, 0.95)
    assert dict(test.policies)["CUPED covariate"] == "the same metric in the 14 days before exposure"


def test_usual_options_are_those_of_the_documentation() -> None:
    log = log_of_arms(step=3)
    default = abtest(log, "SatisfiedPageCTR", metrics=())
    explicit = abtest(log, "SatisfiedPageCTR", metrics=(), variant="variant", before_days=14.0, margin_relative=0.02,
                  any_day=True, expected=5000, min_users=200, unit="user", level=0.95, correction="holm")  # fmt: skip
    assert default.json() == explicit.json()
    assert default.any_day
    assert default.verdicts[0].decision == "ship"  # of exactly 200 users in each arm
    fewer = abtest(log_of_arms(398, step=3), "SatisfiedPageCTR", metrics=())
    assert fewer.verdicts[0].decision == "keep running"
    # one more user in each arm, at 39.8 users a day and a little more
    begin_to_end = 397 * 10 / 398
    assert fewer.verdicts[0].days == pytest.approx(2 * 1 / (398 / begin_to_end), rel=0.01)


def test_other_metrics_are_corrected_together_and_follow_the_declared_ones() -> None:
    log = log_of_arms()
    test = abtest(
        log, "SatisfiedPageCTR", guardrails="ZeroResults", metrics=["PageCTR", "ClicksPerPage"], any_day=False
    )
    assert column(test, "differences", "metric")[:2] == ["SatisfiedPageCTR", "ZeroResults"]
    assert column(test, "differences", "role")[:2] == ["primary", "guardrail"]
    others = [row for row in test.differences if row.role == "other"]
    assert len(others) >= 1
    uncorrected = [row.difference.p for row in others]
    assert [row.p for row in others] == pytest.approx([min(1.0, len(uncorrected) * p) for p in uncorrected])
    assert [row.p for row in test.differences if row.role == "primary"] == [test.differences[0].difference.p]


def test_three_arms_share_one_error_rate() -> None:
    """Two arms against the baseline: t at 1 - 0.05 / 4, and p-values twice as large."""
    test = abtest(log_of_arms(600, "abc"), "SatisfiedPageCTR", **METRIC)
    first, second = test.differences
    assert [row.arm for row in test.differences] == ["b", "c"]
    assert (first.difference.value, second.difference.value) == pytest.approx((0.2, 0.4))
    error = math.sqrt((0.24 + 0.16) / 199)
    assert second.difference.high == pytest.approx(0.4 + student_t.ppf(1 - 0.0125, 398) * error)
    assert first.p == pytest.approx(4 * student_t.sf(0.2 / math.sqrt(0.48 / 199), 398))
    assert "jointly for 2 comparisons" in table(test, "differences").note
    assert "together" not in table(abtest(log_of_arms(), "SatisfiedPageCTR", **METRIC), "differences").note


def test_days_after_exposure_are_compared_one_by_one() -> None:
    """Each user comes again on the day after: then both arms click alike."""
    users = 400
    arms, clicked = ["ab"[i % 2] for i in range(users)], [i // 2 % 5 < 2 + i % 2 for i in range(users)]
    log = log_of_users(arms, clicked, [i * 5 / users for i in range(users)])
    pages, events = log.serp.to_arrow().to_pylist(), log.event.to_arrow().to_pylist()
    second_day = [{**row, "serp": users + i, "session": users + i, "time_ms": row["time_ms"] + 86_400_000 + 3_600_000}
             for i, row in enumerate(pages)]  # fmt: skip
    second_clicks = [{**events[0], "serp": row["serp"], "session": row["session"], "user": row["user"],
             "time_ms": row["time_ms"] + 1000} for row in second_day if row["user"] // 2 % 2]  # fmt: skip
    test = abtest(typed_log([*pages, *second_day], [*events, *second_clicks]), "SatisfiedPageCTR", **METRIC)
    days = table(test, "days")
    assert (days.column("day").values, days.column("arm").values) == ([1, 2], ["b", "b"])
    assert [row.difference.value for row in test.days] == pytest.approx([0.2, 0.0])
    assert (days.labels, days.folded) == (2, True)
    chart = table(test, "novelty")
    assert (chart.x, chart.y, chart.color, [line.value for line in chart.lines]) == ("day", "difference", "arm", [0.0])
    assert all(row.critical < 2 for row in test.days)  # fixed-sample, also where the test is valid on any day
    assert all(
        row.critical < 2
        for row in abtest(
            typed_log([*pages, *second_day], [*events, *second_clicks]), "SatisfiedPageCTR", metrics=()
        ).days
    )


def test_a_plan_of_a_share() -> None:
    """Half of 400 users click: sd / mean of a user is sqrt(0.25 * 400 / 399) / 0.5, z is 1.96 + 0.84."""
    plan = plan_abtest(log_of_arms(), ["SatisfiedPageCTR"], differences=[0.1, 0.2], splits=200)
    (metric_plan,) = plan.plans
    spread = math.sqrt(0.25 * 400 / 399) / 0.5
    z = norm.ppf(0.975) + norm.ppf(0.8)
    assert (metric_plan.value, metric_plan.spread) == pytest.approx((0.5, spread))
    assert metric_plan.users == pytest.approx([(2 * z * spread / 0.1) ** 2, (2 * z * spread / 0.2) ** 2])
    span = 399 * 10 / 400
    assert plan.users_per_day == pytest.approx(400 / span)
    assert metric_plan.days == pytest.approx([users / plan.users_per_day for users in metric_plan.users_any_day])
    for users, difference in zip(metric_plan.users_any_day, (0.1, 0.2), strict=True):
        margin = difference * math.sqrt(users) / (2 * spread) - Inference().critical(users)
        assert margin == pytest.approx(norm.ppf(0.8), abs=1e-6)
    plans, aa = table(plan, "plans"), table(plan, "aa")
    assert column(plan, "plans", "relative") == [0.1, 0.2]
    assert [row[1:3] for row in lines(plans)] == [["10.0%", "3147"], ["20.0%", "787"]]
    assert (plans.labels, aa.labels, plan.splits, plan.power) == (2, 1, 200, 0.8)
    # standard error of 200 splits: sqrt(0.05 * 0.95 / 200) = 1.54%
    assert "5% +- 3.1 percentage points" in aa.note
    assert lines(aa)[0][:3] == ["SatisfiedPageCTR", "50.0%", "1.001"]
    assert 0.0 < metric_plan.false_alarms < 0.12
    assert plan.refused == ()
    assert plan.facts()["differences"] == (0.1, 0.2)
    default = plan_abtest(log_of_arms(), ["SatisfiedPageCTR"])
    assert (default.differences, default.power) == ((0.01, 0.02, 0.05, 0.1), 0.8)
    assert (default.splits, default.level) == (1000, 0.95)
    assert default.plans[0].users[3] == pytest.approx(metric_plan.users[0])


def test_splits_that_differ_too_often_or_too_seldom_are_named() -> None:
    """Of four users, halves have one or two most of the time, and no error: they never differ."""
    users = [page % 4 for page in range(40)]
    log = log_of_users(["a"] * 40, [page % 3 == 0 for page in range(40)], [page / 10 for page in range(40)])
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


@pytest.mark.parametrize("differences", [0.0, -0.1, math.inf, math.nan, [], [0.1, 0.0]])
def test_differences_that_are_none_cannot_be_planned_for(differences: Any) -> None:
    with pytest.raises(InputError, match="`differences` must be"):
        plan_abtest(log_of_arms(20), ["SatisfiedPageCTR"], differences=differences)


def test_without_spread_no_number_of_users_is_planned() -> None:
    assert math.isnan(users_any_day(0.0, 0.1, 0.8, Inference()))
    assert math.isnan(users_any_day(math.nan, 0.1, 0.8, Inference()))
    users = users_any_day(1.0, 0.1, 0.8, Inference())
    assert users_any_day(2.0, 0.2, 0.8, Inference()) == pytest.approx(users)
    assert users_any_day(1.0, 0.1, 0.9, Inference()) > users
    assert np.isfinite(users)
