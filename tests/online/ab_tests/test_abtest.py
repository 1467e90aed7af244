"""A/B tests on logs with known arms: validity, differences, and verdicts."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student_t

from judged.errors import InputError
from judged.online.ab_tests.abtest import abtest
from judged.online.ab_tests.differences import Inference
from judged.online.ab_tests.planning import plan_abtest
from judged.online.statistics.allocation import critical_value, prior_size
from typed_logs import typed_log

DAY = 86_400_000
METRIC = {"primary": "SatisfiedPageCTR", "metrics": ()}


def _log(
    users: int = 600, gain: float = 0.0, *, seed: int = 1, arms: tuple[str, ...] = ("a", "b"), kept_share: float = 1.0,
    crossed: float = 0.0, earlier_gain: float | None = None, zero_share: float = 0.0,
) -> Any:  # fmt: skip
    """Simulate users with their own click rates: a week before exposure, exposure in the second week, and a week after.

    `gain`: increase of the click probability in the last arm; `kept_share`: share of its users that are logged;
    `earlier_gain`: increase already before exposure; `zero_share`: extra share of pages without results.
    """
    rng = np.random.default_rng(seed)
    pages, events = [], []
    for user in range(users):
        arm = str(rng.choice(arms))
        in_last_arm = arm == arms[-1]
        user_ctr = rng.beta(3, 3)
        exposed = int(7 * DAY + rng.integers(7 * DAY))
        if in_last_arm and rng.random() > kept_share:
            continue
        times = [*(exposed - rng.integers(7 * DAY, size=rng.poisson(3))), exposed,
                 *(exposed + rng.integers(7 * DAY, size=rng.poisson(3)))]  # fmt: skip
        for time_ms in map(int, times):
            page, is_exposed = len(pages), time_ms >= exposed
            variant = str(rng.choice(arms)) if is_exposed and rng.random() < crossed else arm
            zero_results = is_exposed and in_last_arm and rng.random() < zero_share
            pages.append({"serp": page, "session": page, "user": user, "time_ms": time_ms, "query": "q", "n_shown": 10,
                          "variant": variant if is_exposed else None, "zero_results": bool(zero_results),
                          "device": "desktop" if user % 2 else "mobile"})  # fmt: skip
            chance = user_ctr + in_last_arm * ((gain if is_exposed else 0.0) + (earlier_gain or 0.0))
            if rng.random() < chance:
                events.append({"serp": page, "session": page, "user": user, "time_ms": time_ms + 1000, "rank": 1,
                               "action": "click", "object_id": "d", "dwell_ms": 60_000})  # fmt: skip
    return typed_log(pages, events)


def _decision(log: Any, **options: Any) -> str:
    return abtest(log, **{**METRIC, **options}).verdicts[0].decision


@pytest.mark.parametrize(
    ("simulated", "options", "decision"),
    [
        ({"users": 1500, "gain": 0.2}, {}, "ship"),
        ({"users": 1500, "gain": -0.2}, {}, "do not ship"),
        ({"users": 1500, "gain": 0.2, "zero_share": 0.3}, {"guardrails": ["ZeroResults"]}, "do not ship"),
        ({"users": 1500, "gain": 0.2}, {"margin_relative": 0.9}, "ship"),  # by less than the margin, but surely
        ({"users": 600, "gain": 0.01}, {"margin_relative": 0.9}, "do not ship"),
        ({"users": 600, "gain": 0.01}, {}, "keep running"),
        ({"users": 600, "gain": 0.01}, {"margin_relative": 0}, "keep running"),
        ({"users": 1500, "gain": 0.2}, {"min_users": 5000}, "keep running"),
        ({"users": 2000, "gain": 0.2, "kept_share": 0.6}, {}, "invalid"),
        ({"users": 600, "gain": 0.2, "crossed": 0.1}, {}, "invalid"),
        ({"users": 1500, "earlier_gain": 0.15}, {}, "invalid"),
    ],
)
def test_what_follows(simulated: dict[str, Any], options: dict[str, Any], decision: str) -> None:
    assert _decision(_log(**simulated), **options) == decision


def test_sound_tests_are_neither_broken_nor_shipped_more_often_than_declared() -> None:
    decisions = [_decision(_log(300, seed=seed)) for seed in range(12)]
    assert decisions.count("invalid") == 0
    assert decisions.count("ship") <= 1


def test_a_difference_is_that_of_a_plain_program() -> None:
    log = _log(300, 0.1)
    rows = log.serp.to_arrow().to_pylist()
    clicked = set(log.event.to_arrow()["serp"].to_pylist())
    exposed: dict[int, tuple[int, str]] = {}
    for row in sorted(rows, key=lambda row: row["time_ms"]):
        if row["variant"] is not None:
            exposed.setdefault(row["user"], (row["time_ms"], row["variant"]))
    sums = {user: np.zeros(4) for user in exposed}  # clicks and pages before, and after
    for row in rows:
        column = 2 * int(row["time_ms"] >= exposed[row["user"]][0])
        sums[row["user"]][column : column + 2] += row["serp"] in clicked, 1
    value, error, covariance = {}, {}, {}
    for arm in "ab":
        arm_sums = np.stack([sums[user] for user, (_, name) in exposed.items() if name == arm])
        z, users = [], len(arm_sums)
        for column in (0, 2):
            ratio = arm_sums[:, column].sum() / arm_sums[:, column + 1].sum()
            z.append((arm_sums[:, column] - ratio * arm_sums[:, column + 1]) / arm_sums[:, column + 1].mean())
            value[arm, column] = ratio
            active = (arm_sums[:, column : column + 2] != 0).any(axis=1).sum()
            error[arm, column] = math.sqrt((z[-1] ** 2).sum() * active / (active - 1)) / users
        covariance[arm] = (
            (z[0] * z[1]).sum() / math.sqrt((z[0] ** 2).sum() * (z[1] ** 2).sum()) * error[arm, 0] * error[arm, 2]
        )
    theta = (covariance["a"] + covariance["b"]) / (error["a", 0] ** 2 + error["b", 0] ** 2)
    expected = value["b", 2] - value["a", 2] - theta * (value["b", 0] - value["a", 0])
    variance = sum(error[arm, 2] ** 2 - 2 * theta * covariance[arm] + theta**2 * error[arm, 0] ** 2 for arm in "ab")
    test = abtest(log, **METRIC)
    row, users = test.differences[0], sum(test.assignment.users.values())
    assert (row.adjusted.theta, row.adjusted.value) == pytest.approx((theta, expected), rel=1e-9)
    assert row.adjusted.error == pytest.approx(math.sqrt(variance), rel=1e-9)
    half_width = critical_value(users, users - 2, prior_size(5000, 0.05), 0.05) * math.sqrt(variance)
    assert row.difference.high == pytest.approx(expected + half_width, rel=1e-9)
    assert 0.05 < row.adjusted.reduction < 0.9
    fixed = abtest(log, any_day=False, **METRIC).differences[0]
    pages = {arm: np.array([sums[user][3] for user, (_, name) in exposed.items() if name == arm]) for arm in "ab"}
    effective = [arm_sums.sum() ** 2 / (arm_sums**2).sum() for arm_sums in pages.values()]
    assert row.effective_users == pytest.approx(min(effective))
    half_width = student_t.ppf(0.975, sum(effective) - 2) * math.sqrt(variance)
    assert fixed.difference.high == pytest.approx(expected + half_width, rel=1e-6)
    assert fixed.p < row.p


def test_only_complete_windows_count() -> None:
    log = _log(300)
    test = abtest(log, window_days=9, **METRIC)
    last_ms = max(log.serp.to_arrow()["time_ms"].to_pylist())
    exposed = {}
    for row in log.serp.to_arrow().to_pylist():
        if row["variant"] is not None:
            exposed[row["user"]] = min(exposed.get(row["user"], last_ms), row["time_ms"])
    complete = [user for user, time_ms in exposed.items() if time_ms + 9 * DAY <= last_ms]
    assert sum(test.assignment.users.values()) == len(complete)
    assert test.assignment.unfinished == len(exposed) - len(complete) > 0


def test_three_arms_are_compared_with_the_first_or_the_named_one() -> None:
    log = _log(300, arms=("a", "b", "c"))
    assert [verdict.arm for verdict in abtest(log, **METRIC).verdicts] == ["b", "c"]
    assert [verdict.arm for verdict in abtest(log, baseline="c", **METRIC).verdicts] == ["a", "b"]


def test_of_three_arms_alike_none_ships_more_often_than_declared_though_two_are_watched_daily() -> None:
    """Arms share the baseline; 600 tests from 400 to 6,000 users, watched 60 times, of users who like clicking."""
    rng, inference = np.random.default_rng(3), Inference(arms=2)
    n = np.linspace(130, 2000, 60).astype(int)
    rejections = 0
    for _ in range(600):
        means = np.cumsum(rng.gamma(0.2, 5.0, (3, n[-1])), axis=1)[:, n - 1] / n  # mean 1, variance 5
        t = (means[1:] - means[0]) / np.sqrt(10.0 / n)
        limits = np.array([inference.critical(float(2 * users)) for users in n])
        rejections += bool((np.abs(t) > limits).any())
    assert rejections <= 600 * 0.05
    assert inference.critical(4000.0) > Inference().critical(4000.0)
    assert inference.p_value(3.0, 4000.0) > Inference().p_value(3.0, 4000.0)
    fixed = Inference(any_day=False, arms=2)
    assert (fixed.critical(9.0), fixed.p_value(2.5, 9.0)) == pytest.approx((2.241403, 2 * 0.0124193), rel=1e-5)


def test_quantiles_are_compared_with_intervals_over_users() -> None:
    """The baseline takes 100 to 199 ms, the other arm 40 ms more; half of the users are in each."""
    rng = np.random.default_rng(5)
    pages = [{"serp": page, "session": page, "user": page // 3, "time_ms": page * 60_000, "query": "q", "n_shown": 1,
              "latency_ms": float(rng.integers(100, 200) + 40 * (page // 3 % 2)), "variant": "ab"[page // 3 % 2]}
             for page in range(3000)]  # fmt: skip
    test = abtest(typed_log(pages, []), "Latency(q=0.5)", metrics=["Latency(q=0.9)"])
    median, upper = test.differences
    latencies = [np.array([page["latency_ms"] for page in pages if page["variant"] == arm]) for arm in "ab"]
    expected = [np.quantile(arm_latencies, 0.5, method="inverted_cdf") for arm_latencies in latencies]
    assert median.difference.value == pytest.approx((expected[1] - expected[0]) / 1000)
    assert median.difference.low < 0.040 < median.difference.high
    assert median.adjusted.error == pytest.approx(math.hypot(median.baseline.error, median.other.error))
    baseline, error = median.baseline, math.hypot(median.baseline.error, median.other.error)
    ratio = median.other.value / baseline.value  # var(b / a) = (var(b) + (b / a)**2 var(a)) / a**2
    relative = math.hypot(median.other.error, ratio * baseline.error) / baseline.value
    assert median.adjusted.relative_error == pytest.approx(relative)
    assert median.adjusted.error == pytest.approx(error)
    assert upper.difference.low < 0.040 < upper.difference.high
    assert test.verdicts[0].decision == "do not ship"  # slower


def test_money_is_compared_as_it_is_and_winsorized() -> None:
    rng = np.random.default_rng(6)
    users = 600
    pages = [{"serp": user, "session": user, "user": user, "time_ms": user * 60_000, "query": "q", "n_shown": 1,
              "variant": "ab"[user % 2]} for user in range(users)]  # fmt: skip
    spent = {user: float(round(10 * rng.pareto(1.2) + 1, 2)) for user in range(users) if rng.random() < 0.3}
    events = [
        {
            "serp": user,
            "session": user,
            "user": user,
            "time_ms": user * 60_000 + 500,
            "rank": 1,
            "action": "purchase",
            "object_id": "d",
            "value": value,
        }
        for user, value in spent.items()
    ]
    logged, winsorized = abtest(typed_log(pages, events), "RevenuePerUser", metrics=()).differences
    largest = np.quantile(list(spent.values()), 0.99, method="inverted_cdf")
    for row, limit in ((logged, math.inf), (winsorized, largest)):
        sums = [
            np.array([min(spent.get(user, 0.0), limit) for user in range(users) if user % 2 == arm]) for arm in (0, 1)
        ]
        assert row.difference.value == pytest.approx(sums[1].mean() - sums[0].mean())
        assert row.adjusted.error == pytest.approx(math.sqrt(sum(arm.var(ddof=1) / len(arm) for arm in sums)))
    assert (str(winsorized.metric), winsorized.role) == ("RevenuePerUser (winsorized)", "other")
    assert winsorized.adjusted.error < logged.adjusted.error


def test_telemetry_that_broke_in_one_arm_breaks_the_test() -> None:
    log = _log(400)
    rows = log.serp.to_arrow().to_pylist()
    events = log.event.to_arrow().to_pylist()
    rng = np.random.default_rng(8)
    for lost_share, is_broken in ((0.0, False), (0.1, True)):
        pages = [
            {**row, "zero_results": None if row["variant"] == "b" and rng.random() < lost_share else False}
            for row in rows
        ]
        assert ("zero_results" in abtest(typed_log(pages, events), **METRIC).assignment.uneven_fields) is is_broken
        assert (_decision(typed_log(pages, events)) == "invalid") is is_broken


def test_slices_differ_in_their_differences_only_where_they_do() -> None:
    log = _log(1200, 0.15)
    test = abtest(log, by="device", **METRIC)
    assert {row.slice_name for row in test.sliced} == {"desktop", "mobile"}
    assert test.interactions[0].p > 0.01
    differences = [row.adjusted for row in test.sliced]
    weights = [1 / difference.error**2 for difference in differences]
    mean = np.average([difference.value for difference in differences], weights=weights)
    q = sum(weight * (difference.value - mean) ** 2 for weight, difference in zip(weights, differences, strict=True))
    assert test.interactions[0].q == pytest.approx(q)
    assert test.days[0].slice_name == "1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "color"}, "no column 'color'"),
        ({"variant": "query_norm"}, "1 arm"),
        ({"baseline": "z"}, "use one of a, b"),
        ({"shares": {"a": 1.0}}, "do not match: b"),
        ({"primary": "PageCTR"}, "but PageCTR has none"),
        ({"guardrails": ["PageCTR"]}, "but PageCTR has none"),
        ({"better": {"SatisfiedPageCTR": "less"}}, "must be 'more' for SatisfiedPageCTR"),
        ({"better": {"PageCTR": "up"}}, "direction of PageCTR"),
        ({"primary": "AddToCart"}, "AddToCart cannot be"),
        ({"expected": 0}, "expected is 0"),
        ({"before_days": math.nan}, "before_days is nan"),
        ({"before_days": -1}, "before_days is -1"),
        ({"window_days": 0}, "window_days is 0"),
        ({"window_days": math.inf}, "window_days is inf"),
        ({"margin_relative": -0.1}, "margin_relative is -0.1"),
        ({"margin_relative": math.nan}, "margin_relative is nan"),
        ({"correction": "none at all"}, "correction"),
        ({"shares": {"a": math.inf, "b": 1.0}}, "must have a finite number"),
    ],
)
def test_what_is_no_test_is_refused(options: dict[str, Any], message: str) -> None:
    log = replace(_log(30), has=frozenset({"clicks", "unclicked", "dwell", "ranks", "sessions"}))
    with pytest.raises(InputError, match=message):
        abtest(log, **{**METRIC, **options})


@pytest.mark.parametrize("arms", [("", "a"), ("a", "before a"), ("SELECT 1;--", "x'y"), ("a\x1fb", "日本"), ("1", "2")])
def test_arms_may_be_called_anything(arms: tuple[str, str]) -> None:
    log = _log(500, 0.2, arms=arms)
    test = abtest(log, baseline=arms[0], by="device", **METRIC)
    assert [verdict.decision for verdict in test.verdicts] == ["ship"]
    assert {verdict.slice_name for verdict in test.sliced} == {"desktop", "mobile"}


def test_a_guardrail_may_be_a_name() -> None:
    log = _log(100)
    assert [row.role for row in abtest(log, guardrails="ZeroResults", **METRIC).differences] == ["primary", "guardrail"]


def test_one_click_in_all_is_no_difference() -> None:
    pages = [{"serp": i, "session": i, "user": i, "time_ms": i * DAY // 100, "query": "q", "n_shown": 10,
              "variant": "ab"[i % 2], "zero_results": False} for i in range(1000)]  # fmt: skip
    click = {"serp": 0, "session": 0, "user": 0, "time_ms": 1, "rank": 1, "action": "click", "object_id": "d"}
    for arm in (0, 1):
        log = typed_log(pages, [{**click, "serp": arm, "session": arm, "user": arm, "dwell_ms": 60_000}])
        assert _decision(log) == "keep running"


def test_where_a_few_users_make_most_pages_nothing_is_said() -> None:
    log = _log(600, 0.3)
    rows, events = log.serp.to_arrow().to_pylist(), log.event.to_arrow().to_pylist()
    assert _decision(typed_log(rows, events)) == "ship"
    page_of_b = next(row for row in rows if row["variant"] == "b")
    extra = [{**page_of_b, "serp": len(rows) + i, "session": len(rows) + i} for i in range(2000)]
    (verdict,) = abtest(typed_log([*rows, *extra], events), **METRIC).verdicts
    assert verdict.decision == "keep running"
    assert "at least 50 is required" in verdict.reasons[0]


def test_splits_of_the_same_users_differ_as_often_as_declared_and_plans_are_kept() -> None:
    log = _log(800)
    plan = plan_abtest(log, ["SatisfiedPageCTR"], differences=0.1, splits=1000).plans[0]
    assert plan.false_alarms == pytest.approx(0.05, abs=0.025)
    # with as many users as planned, a test of one day finds the difference as often as asked for
    users, spread = plan.users[0], plan.spread
    rng = np.random.default_rng(2)
    t = rng.normal(0.1 / (2 * spread / math.sqrt(users)), 1, 20_000)
    assert (t > 1.96).mean() == pytest.approx(0.8, abs=0.015)
    assert plan.users_any_day[0] > users


def _clicks_only(seed: int = 3) -> Any:
    """Return a log without dwell times, ranks, and zero results: no headline metric has a direction."""
    log = _log(300, 0.2, seed=seed)
    return replace(log, has=log.has & {"clicks", "unclicked", "users"})


def test_a_metric_without_a_direction_is_never_chosen_to_decide() -> None:
    test = abtest(_clicks_only())
    assert "PageCTR" in {str(row.metric) for row in test.differences}
    assert {row.role for row in test.differences} == {"other"}
    assert all(math.isnan(row.chance_better) for row in test.differences if not row.metric.better)
    assert [row.decision for row in test.verdicts] == ["keep running"]
    assert not test.ships


@pytest.mark.parametrize(("direction", "decision"), [("more", "ship"), ("less", "do not ship")])
def test_a_declared_direction_decides_with_a_warning(direction: Any, decision: str) -> None:
    log = _log(1500, 0.2)
    test = abtest(log, "PageCTR", metrics=(), better={"CTR": direction})
    assert test.verdicts[0].decision == decision
    assert [(note.rule, note.subject) for note in test.notes] == [("declared-direction", "PageCTR")]
    chance = test.differences[0].chance_better
    assert chance > 0.99 if direction == "more" else chance < 0.01
    guarded = abtest(log, "SatisfiedPageCTR", guardrails=["PageCTR"], metrics=(), better={"PageCTR": direction})
    assert guarded.verdicts[0].decision == decision
    assert abtest(log, "SatisfiedPageCTR", metrics=["PageCTR"], better={}).notes == ()


def test_fixed_sample_tests_over_unequally_active_users_are_noted() -> None:
    """Every tenth user has 20 more pages: half of the users' number is left."""
    log = _log(300)
    rows, events = log.serp.to_arrow().to_pylist(), log.event.to_arrow().to_pylist()
    last_pages = {row["user"]: row for row in rows if row["variant"] and row["user"] % 10 == 0}
    extra = [{**row, "serp": len(rows) + 20 * i + page, "session": len(rows) + 20 * i + page}
            for i, row in enumerate(last_pages.values()) for page in range(20)]  # fmt: skip
    unequal = typed_log([*rows, *extra], events)
    (note,) = abtest(unequal, any_day=False, **METRIC).notes
    assert (note.rule, note.subject) == ("unequal-users", "SatisfiedPageCTR")
    assert abtest(unequal, **METRIC).notes == abtest(log, any_day=False, **METRIC).notes == ()


def test_each_interval_is_labeled_with_its_kind() -> None:
    log = _log(300)
    for any_day, kind in ((True, "anytime-valid"), (False, "fixed-sample")):
        test = abtest(log, any_day=any_day, **METRIC)
        (row,) = json.loads(test.json())["differences"]
        assert (row["interval"], row["arm_interval"]) == (kind, "fixed-sample")
        assert json.loads(test.json())["any_day"] is any_day


def test_money_lost_before_is_gained_where_less_is_lost() -> None:
    """Users give back more than they spend: -10 on average, and -5 in the other arm."""
    rng = np.random.default_rng(9)
    users = 800
    pages = [{"serp": user, "session": user, "user": user, "time_ms": user * 60_000, "query": "q", "n_shown": 1,
              "variant": "ab"[user % 2]} for user in range(users)]  # fmt: skip
    events = [
        {
            "serp": user,
            "session": user,
            "user": user,
            "time_ms": user * 60_000 + 500,
            "rank": 1,
            "action": "purchase",
            "object_id": "d",
            "value": round(float(rng.normal(-10 + 5 * (user % 2), 3)), 2),
        }
        for user in range(users)
    ]
    log = typed_log(pages, events)
    test = abtest(log, "RevenuePerUser", metrics=())
    assert test.differences[0].relative.value == pytest.approx(0.5, abs=0.05)
    assert test.verdicts[0].decision == "ship"
    assert abtest(log, "RevenuePerUser", metrics=(), baseline="b").verdicts[0].decision == "do not ship"
