"""A/B tests on logs with known arms: what is broken, what differs, what follows."""

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
from judged.online.ab_tests.differences import Looks
from judged.online.ab_tests.planning import plan_abtest
from judged.online.statistics.allocation import critical_value, prior_size
from typed_logs import typed_log

DAY = 86_400_000
METRIC = {"primary": "SatisfiedPageCTR", "metrics": ()}


def _log(
    users: int = 600, better: float = 0.0, *, seed: int = 1, arms: tuple[str, ...] = ("a", "b"), keep: float = 1.0,
    crossed: float = 0.0, before: float | None = None, zero: float = 0.0,
) -> Any:  # fmt: skip
    """Make a log of users with a liking of their own: a week before, exposure on a day of the second week, and after.

    `better`: how much the last arm adds to each page's chance; `keep`: the share of its users that came into the log;
    `before`: what the last arm's users liked more already before; `zero`: how much more often nothing is found there.
    """
    rng = np.random.default_rng(seed)
    pages, events = [], []
    for user in range(users):
        arm = str(rng.choice(arms))
        last = arm == arms[-1]
        liking = rng.beta(3, 3)
        exposed = int(7 * DAY + rng.integers(7 * DAY))
        if last and rng.random() > keep:
            continue
        times = [*(exposed - rng.integers(7 * DAY, size=rng.poisson(3))), exposed,
                 *(exposed + rng.integers(7 * DAY, size=rng.poisson(3)))]  # fmt: skip
        for time_ms in map(int, times):
            page, after = len(pages), time_ms >= exposed
            variant = str(rng.choice(arms)) if after and rng.random() < crossed else arm
            empty = after and last and rng.random() < zero
            pages.append({"serp": page, "session": page, "user": user, "time_ms": time_ms, "query": "q", "n_shown": 10,
                          "variant": variant if after else None, "zero_results": bool(empty),
                          "device": "desktop" if user % 2 else "mobile"})  # fmt: skip
            chance = liking + last * ((better if after else 0.0) + (before or 0.0))
            if rng.random() < chance:
                events.append({"serp": page, "session": page, "user": user, "time_ms": time_ms + 1000, "rank": 1,
                               "action": "click", "object_id": "d", "dwell_ms": 60_000})  # fmt: skip
    return typed_log(pages, events)


def _decision(log: Any, **options: Any) -> str:
    return abtest(log, **{**METRIC, **options}).verdicts[0].decision


@pytest.mark.parametrize(
    ("made", "options", "decision"),
    [
        ({"users": 1500, "better": 0.2}, {}, "ship"),
        ({"users": 1500, "better": -0.2}, {}, "do not ship"),
        ({"users": 1500, "better": 0.2, "zero": 0.3}, {"guardrails": ["ZeroResults"]}, "do not ship"),
        ({"users": 1500, "better": 0.2}, {"margin_relative": 0.9}, "ship"),  # by less than the margin, but surely
        ({"users": 600, "better": 0.01}, {"margin_relative": 0.9}, "do not ship"),
        ({"users": 600, "better": 0.01}, {}, "keep running"),
        ({"users": 600, "better": 0.01}, {"margin_relative": 0}, "keep running"),
        ({"users": 1500, "better": 0.2}, {"min_users": 5000}, "keep running"),
        ({"users": 2000, "better": 0.2, "keep": 0.6}, {}, "broken"),
        ({"users": 600, "better": 0.2, "crossed": 0.1}, {}, "broken"),
        ({"users": 1500, "before": 0.15}, {}, "broken"),
    ],
)
def test_what_follows(made: dict[str, Any], options: dict[str, Any], decision: str) -> None:
    assert _decision(_log(**made), **options) == decision


def test_sound_tests_are_neither_broken_nor_shipped_more_often_than_declared() -> None:
    decisions = [_decision(_log(300, seed=seed)) for seed in range(12)]
    assert decisions.count("broken") == 0
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
        at = 2 * int(row["time_ms"] >= exposed[row["user"]][0])
        sums[row["user"]][at : at + 2] += row["serp"] in clicked, 1
    value, error, cov = {}, {}, {}
    for arm in "ab":
        of = np.stack([sums[user] for user, (_, name) in exposed.items() if name == arm])
        z, size = [], len(of)
        for at in (0, 2):
            ratio = of[:, at].sum() / of[:, at + 1].sum()
            z.append((of[:, at] - ratio * of[:, at + 1]) / of[:, at + 1].mean())
            value[arm, at] = ratio
            there = (of[:, at : at + 2] != 0).any(axis=1).sum()
            error[arm, at] = math.sqrt((z[-1] ** 2).sum() * there / (there - 1)) / size
        cov[arm] = (
            (z[0] * z[1]).sum() / math.sqrt((z[0] ** 2).sum() * (z[1] ** 2).sum()) * error[arm, 0] * error[arm, 2]
        )
    theta = (cov["a"] + cov["b"]) / (error["a", 0] ** 2 + error["b", 0] ** 2)
    expected = value["b", 2] - value["a", 2] - theta * (value["b", 0] - value["a", 0])
    variance = sum(error[arm, 2] ** 2 - 2 * theta * cov[arm] + theta**2 * error[arm, 0] ** 2 for arm in "ab")
    found = abtest(log, **METRIC)
    one, number = found.differences[0], sum(found.assignment.users.values())
    assert (one.adjusted.theta, one.adjusted.value) == pytest.approx((theta, expected), rel=1e-9)
    assert one.adjusted.error == pytest.approx(math.sqrt(variance), rel=1e-9)
    half = critical_value(number, number - 2, prior_size(5000, 0.05), 0.05) * math.sqrt(variance)
    assert one.difference.high == pytest.approx(expected + half, rel=1e-9)
    assert 0.05 < one.adjusted.reduction < 0.9
    fixed = abtest(log, any_day=False, **METRIC).differences[0]
    pages = {arm: np.array([sums[user][3] for user, (_, name) in exposed.items() if name == arm]) for arm in "ab"}
    kish = [of.sum() ** 2 / (of**2).sum() for of in pages.values()]
    assert one.effective_users == pytest.approx(min(kish))
    half = student_t.ppf(0.975, sum(kish) - 2) * math.sqrt(variance)
    assert fixed.difference.high == pytest.approx(expected + half, rel=1e-6)
    assert fixed.p < one.p


def test_only_complete_windows_count() -> None:
    log = _log(300)
    found = abtest(log, window_days=9, **METRIC)
    last = max(log.serp.to_arrow()["time_ms"].to_pylist())
    exposed = {}
    for row in log.serp.to_arrow().to_pylist():
        if row["variant"] is not None:
            exposed[row["user"]] = min(exposed.get(row["user"], last), row["time_ms"])
    complete = [user for user, time_ms in exposed.items() if time_ms + 9 * DAY <= last]
    assert sum(found.assignment.users.values()) == len(complete)
    assert found.assignment.unfinished == len(exposed) - len(complete) > 0


def test_three_arms_are_compared_with_the_first_or_the_named_one() -> None:
    log = _log(300, arms=("a", "b", "c"))
    assert [one.arm for one in abtest(log, **METRIC).verdicts] == ["b", "c"]
    assert [one.arm for one in abtest(log, baseline="c", **METRIC).verdicts] == ["a", "b"]


def test_of_three_arms_alike_none_ships_more_often_than_declared_though_two_are_watched_daily() -> None:
    """Arms share the baseline; 600 tests from 400 to 6,000 users, watched 60 times, of users who like clicking."""
    rng, looks = np.random.default_rng(3), Looks(arms=2)
    n = np.linspace(130, 2000, 60).astype(int)
    wrong = 0
    for _ in range(600):
        means = np.cumsum(rng.gamma(0.2, 5.0, (3, n[-1])), axis=1)[:, n - 1] / n  # mean 1, variance 5
        t = (means[1:] - means[0]) / np.sqrt(10.0 / n)
        limits = np.array([looks.critical(float(2 * one)) for one in n])
        wrong += bool((np.abs(t) > limits).any())
    assert wrong <= 600 * 0.05
    assert looks.critical(4000.0) > Looks().critical(4000.0)
    assert looks.p(3.0, 4000.0) > Looks().p(3.0, 4000.0)
    fixed = Looks(any_day=False, arms=2)
    assert (fixed.critical(9.0), fixed.p(2.5, 9.0)) == pytest.approx((2.241403, 2 * 0.0124193), rel=1e-5)


def test_quantiles_are_compared_with_intervals_over_users() -> None:
    """The baseline takes 100 to 199 ms, the other arm 40 ms more; half of the users are in each."""
    rng = np.random.default_rng(5)
    pages = [{"serp": at, "session": at, "user": at // 3, "time_ms": at * 60_000, "query": "q", "n_shown": 1,
              "latency_ms": float(rng.integers(100, 200) + 40 * (at // 3 % 2)), "variant": "ab"[at // 3 % 2]}
             for at in range(3000)]  # fmt: skip
    found = abtest(typed_log(pages, []), "Latency(q=0.5)", metrics=["Latency(q=0.9)"])
    middle, high = found.differences
    of = [np.array([page["latency_ms"] for page in pages if page["variant"] == arm]) for arm in "ab"]
    expected = [np.quantile(one, 0.5, method="inverted_cdf") for one in of]
    assert middle.difference.value == pytest.approx((expected[1] - expected[0]) / 1000)
    assert middle.difference.low < 0.040 < middle.difference.high
    assert middle.adjusted.error == pytest.approx(math.hypot(middle.baseline.error, middle.other.error))
    base, error = middle.baseline, math.hypot(middle.baseline.error, middle.other.error)
    ratio = middle.other.value / base.value  # var(b / a) = (var(b) + (b / a)**2 var(a)) / a**2
    relative = math.hypot(middle.other.error, ratio * base.error) / base.value
    assert middle.adjusted.relative_error == pytest.approx(relative)
    assert middle.adjusted.error == pytest.approx(error)
    assert high.difference.low < 0.040 < high.difference.high
    assert found.verdicts[0].decision == "do not ship"  # slower


def test_money_is_compared_as_it_is_and_winsorized() -> None:
    rng = np.random.default_rng(6)
    users = 600
    pages = [{"serp": at, "session": at, "user": at, "time_ms": at * 60_000, "query": "q", "n_shown": 1,
              "variant": "ab"[at % 2]} for at in range(users)]  # fmt: skip
    spent = {at: float(round(10 * rng.pareto(1.2) + 1, 2)) for at in range(users) if rng.random() < 0.3}
    events = [{"serp": at, "session": at, "user": at, "time_ms": at * 60_000 + 500, "rank": 1, "action": "purchase",
               "object_id": "d", "value": value} for at, value in spent.items()]  # fmt: skip
    plain, cut = abtest(typed_log(pages, events), "RevenuePerUser", metrics=()).differences
    most = np.quantile(list(spent.values()), 0.99, method="inverted_cdf")
    for one, limit in ((plain, math.inf), (cut, most)):
        sums = [np.array([min(spent.get(at, 0.0), limit) for at in range(users) if at % 2 == side]) for side in (0, 1)]
        assert one.difference.value == pytest.approx(sums[1].mean() - sums[0].mean())
        assert one.adjusted.error == pytest.approx(math.sqrt(sum(side.var(ddof=1) / len(side) for side in sums)))
    assert (str(cut.metric), cut.role) == ("RevenuePerUser (winsorized)", "other")
    assert cut.adjusted.error < plain.adjusted.error


def test_telemetry_that_broke_in_one_arm_breaks_the_test() -> None:
    log = _log(400)
    rows = log.serp.to_arrow().to_pylist()
    events = log.event.to_arrow().to_pylist()
    rng = np.random.default_rng(8)
    for lost, decision in ((0.0, False), (0.1, True)):
        pages = [
            {**row, "zero_results": None if row["variant"] == "b" and rng.random() < lost else False} for row in rows
        ]
        assert ("zero_results" in abtest(typed_log(pages, events), **METRIC).assignment.logged) is decision
        assert (_decision(typed_log(pages, events)) == "broken") is decision


def test_slices_differ_in_their_differences_only_where_they_do() -> None:
    log = _log(1200, 0.15)
    found = abtest(log, by="device", **METRIC)
    assert {one.part for one in found.sliced} == {"desktop", "mobile"}
    assert found.interactions[0].p > 0.01
    parts = [one.adjusted for one in found.sliced]
    weights = [1 / part.error**2 for part in parts]
    mean = np.average([part.value for part in parts], weights=weights)
    q = sum(w * (part.value - mean) ** 2 for w, part in zip(weights, parts, strict=True))
    assert found.interactions[0].q == pytest.approx(q)
    assert found.days[0].part == "1"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"variant": "color"}, "no column 'color'"),
        ({"variant": "query_norm"}, "1 arm"),
        ({"baseline": "z"}, "take one of a, b"),
        ({"shares": {"a": 1.0}}, "do not fit"),
        ({"primary": "PageCTR"}, "without a direction"),
        ({"guardrails": ["PageCTR"]}, "without a direction"),
        ({"better": {"SatisfiedPageCTR": "less"}}, "the opposite is better"),
        ({"better": {"PageCTR": "up"}}, "direction of PageCTR"),
        ({"primary": "AddToCart"}, "cannot be declared"),
        ({"expected": 0}, "expected is 0"),
        ({"before_days": math.nan}, "before_days is nan"),
        ({"before_days": -1}, "before_days is -1"),
        ({"window_days": 0}, "window_days is 0"),
        ({"window_days": math.inf}, "window_days is inf"),
        ({"margin_relative": -0.1}, "margin_relative is -0.1"),
        ({"margin_relative": math.nan}, "margin_relative is nan"),
        ({"correction": "none at all"}, "correction"),
        ({"shares": {"a": math.inf, "b": 1.0}}, "do not fit"),
    ],
)
def test_what_is_no_test_is_refused(options: dict[str, Any], words: str) -> None:
    log = replace(_log(30), has=frozenset({"clicks", "unclicked", "dwell", "ranks", "sessions"}))
    with pytest.raises(InputError, match=words):
        abtest(log, **{**METRIC, **options})


@pytest.mark.parametrize("arms", [("", "a"), ("a", "before a"), ("SELECT 1;--", "x'y"), ("a\x1fb", "日本"), ("1", "2")])
def test_arms_may_be_called_anything(arms: tuple[str, str]) -> None:
    log = _log(500, 0.2, arms=arms)
    first = abtest(log, baseline=arms[0], by="device", **METRIC)
    assert [one.decision for one in first.verdicts] == ["ship"]
    assert {one.part for one in first.sliced} == {"desktop", "mobile"}


def test_a_guardrail_may_be_a_name() -> None:
    log = _log(100)
    assert [one.role for one in abtest(log, guardrails="ZeroResults", **METRIC).differences] == ["primary", "guardrail"]


def test_one_click_in_all_is_no_difference() -> None:
    pages = [{"serp": i, "session": i, "user": i, "time_ms": i * DAY // 100, "query": "q", "n_shown": 10,
              "variant": "ab"[i % 2], "zero_results": False} for i in range(1000)]  # fmt: skip
    click = {"serp": 0, "session": 0, "user": 0, "time_ms": 1, "rank": 1, "action": "click", "object_id": "d"}
    for side in (0, 1):
        log = typed_log(pages, [{**click, "serp": side, "session": side, "user": side, "dwell_ms": 60_000}])
        assert _decision(log) == "keep running"


def test_where_a_few_users_make_most_pages_nothing_is_said() -> None:
    log = _log(600, 0.3)
    rows, events = log.serp.to_arrow().to_pylist(), log.event.to_arrow().to_pylist()
    assert _decision(typed_log(rows, events)) == "ship"
    busy = next(row for row in rows if row["variant"] == "b")
    more = [{**busy, "serp": len(rows) + at, "session": len(rows) + at} for at in range(2000)]
    (verdict,) = abtest(typed_log([*rows, *more], events), **METRIC).verdicts
    assert verdict.decision == "keep running"
    assert "effective users, at least 50 are required" in verdict.reasons[0]


def test_splits_of_the_same_users_differ_as_often_as_declared_and_plans_are_kept() -> None:
    log = _log(800)
    plan = plan_abtest(log, ["SatisfiedPageCTR"], differences=0.1, splits=1000).plans[0]
    assert plan.false_alarms == pytest.approx(0.05, abs=0.025)
    # with as many users as planned, a test of one day finds the difference as often as asked for
    number, spread = plan.users[0], plan.spread
    rng = np.random.default_rng(2)
    t = rng.normal(0.1 / (2 * spread / math.sqrt(number)), 1, 20_000)
    assert (t > 1.96).mean() == pytest.approx(0.8, abs=0.015)
    assert plan.users_any_day[0] > number


def _clicks_only(seed: int = 3) -> Any:
    """Make a log that supports clicks, and neither dwell times, ranks, nor empty pages: no usual metric decides."""
    log = _log(300, 0.2, seed=seed)
    return replace(log, has=log.has & {"clicks", "unclicked", "users"})


def test_a_metric_without_a_direction_is_never_chosen_to_decide() -> None:
    found = abtest(_clicks_only())
    assert "PageCTR" in {str(one.metric) for one in found.differences}
    assert {one.role for one in found.differences} == {"other"}
    assert all(math.isnan(one.chance_better) for one in found.differences if not one.metric.better)
    assert [one.decision for one in found.verdicts] == ["keep running"]
    assert not found.ships


@pytest.mark.parametrize(("way", "decision"), [("more", "ship"), ("less", "do not ship")])
def test_a_declared_direction_decides_with_a_warning(way: Any, decision: str) -> None:
    log = _log(1500, 0.2)
    found = abtest(log, "PageCTR", metrics=(), better={"CTR": way})
    assert found.verdicts[0].decision == decision
    assert [(note.rule, note.subject) for note in found.notes] == [("declared-direction", "PageCTR")]
    chance = found.differences[0].chance_better
    assert chance > 0.99 if way == "more" else chance < 0.01
    guarded = abtest(log, "SatisfiedPageCTR", guardrails=["PageCTR"], metrics=(), better={"PageCTR": way})
    assert guarded.verdicts[0].decision == decision
    assert abtest(log, "SatisfiedPageCTR", metrics=["PageCTR"], better={}).notes == ()


def test_fixed_sample_tests_over_unequally_active_users_are_noted() -> None:
    """Every tenth user has 20 more pages: half of the users' number is left."""
    log = _log(300)
    rows, events = log.serp.to_arrow().to_pylist(), log.event.to_arrow().to_pylist()
    last = {row["user"]: row for row in rows if row["variant"] and row["user"] % 10 == 0}
    more = [{**row, "serp": len(rows) + 20 * at + page, "session": len(rows) + 20 * at + page}
            for at, row in enumerate(last.values()) for page in range(20)]  # fmt: skip
    unequal = typed_log([*rows, *more], events)
    (note,) = abtest(unequal, any_day=False, **METRIC).notes
    assert (note.rule, note.subject) == ("unequal-users", "SatisfiedPageCTR")
    assert abtest(unequal, **METRIC).notes == abtest(log, any_day=False, **METRIC).notes == ()


def test_each_interval_is_labeled_with_its_kind() -> None:
    log = _log(300)
    for any_day, kind in ((True, "valid on any day"), (False, "fixed-sample")):
        found = abtest(log, any_day=any_day, **METRIC)
        (row,) = json.loads(found.json())["differences"]
        assert (row["interval"], row["arm_interval"]) == (kind, "fixed-sample")
        assert json.loads(found.json())["any_day"] is any_day


def test_money_lost_before_is_gained_where_less_is_lost() -> None:
    """Users give back more than they spend: -10 on average, and -5 in the other arm."""
    rng = np.random.default_rng(9)
    number = 800
    pages = [{"serp": at, "session": at, "user": at, "time_ms": at * 60_000, "query": "q", "n_shown": 1,
              "variant": "ab"[at % 2]} for at in range(number)]  # fmt: skip
    events = [{"serp": at, "session": at, "user": at, "time_ms": at * 60_000 + 500, "rank": 1, "action": "purchase",
               "object_id": "d", "value": round(float(rng.normal(-10 + 5 * (at % 2), 3)), 2)}
              for at in range(number)]  # fmt: skip
    log = typed_log(pages, events)
    found = abtest(log, "RevenuePerUser", metrics=())
    assert found.differences[0].relative.value == pytest.approx(0.5, abs=0.05)
    assert found.verdicts[0].decision == "ship"
    assert abtest(log, "RevenuePerUser", metrics=(), baseline="b").verdicts[0].decision == "do not ship"
