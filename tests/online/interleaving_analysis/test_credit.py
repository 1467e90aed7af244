"""What clicks on mixed lists count for: by hand, by enumeration, and from logs in which nobody prefers anything."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from judged.errors import InputError
from judged.online import InteractionLog, interleaving, plan_interleaving, read_log
from judged.online.interleaving_analysis.credit import more_clicks
from judged.online.mixed_lists import METHODS, Interleaved, interleave
from judged.online.simulation import (
    Arm,
    Collection,
    Interleaving,
    PositionBased,
    SimulationPlan,
    Users,
    simulate,
)
from judged.stats.ratio import UnitRatio

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NOW = datetime(2026, 3, 2, tzinfo=UTC).timestamp()


def logged(folder: Path, pages: Sequence[tuple[str, Interleaved | dict[str, Any], Sequence[int]]]) -> InteractionLog:
    """Write a log of lists: who saw it, the list or its attributes, the clicked ranks in order."""
    rows: list[dict[str, Any]] = []
    for at, (user, mixed, clicks) in enumerate(pages):
        attributes = mixed.attributes() if isinstance(mixed, Interleaved) else mixed
        hits = mixed.documents if isinstance(mixed, Interleaved) else [f"d{rank}" for rank in range(1, 5)]
        who = {"query_id": f"q{at}", "client_id": user, "session_id": f"{user}-1"}
        when = {"timestamp": datetime.fromtimestamp(NOW + 60 * at, UTC).isoformat()}
        page = {"user_query": "sofa", "query_response_hit_ids": list(hits), "query_attributes": attributes}
        rows.append({**who, **when, **page})
        for nth, rank in enumerate(clicks, 1):
            when = {"timestamp": datetime.fromtimestamp(NOW + 60 * at + nth, UTC).isoformat()}
            place = {"position": {"ordinal": rank}, "object": {"object_id": hits[rank - 1]}}
            rows.append({"action_name": "click", **who, **when, "event_attributes": place})
    path = folder / "log.ndjson"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return read_log(path, bots="keep")


def draft(teams: Sequence[str | None], **attributes: object) -> dict[str, Any]:
    return {"interleaving": {"teams": list(teams)}, **attributes}


def test_more_clicks_is_the_sum_over_all_assignments() -> None:
    rng = np.random.default_rng(3)
    many = np.array([0, 1, 2, 5, 9, 9])
    share = rng.random(many.sum())
    share[[4, 11]] = math.nan
    win, loss = more_clicks(share, many)
    for at, begin in enumerate(np.cumsum(many) - many):
        chances = share[begin : begin + many[at]]
        chances = chances[~np.isnan(chances)]
        expected = [0.0, 0.0]
        for teams in product((0, 1), repeat=len(chances)):
            chance = math.prod(p if team else 1 - p for p, team in zip(chances, teams, strict=True))
            difference = 2 * sum(teams) - len(teams)
            expected[0] += chance * (difference > 0)
            expected[1] += chance * (difference < 0)
        assert [win[at], loss[at]] == pytest.approx(expected, abs=1e-12)


def test_a_draft_by_hand(tmp_path: Path) -> None:
    """u1: 2 clicks of B against 1 of A, a win; u1: a tie; u2: a loss; u3 did not click. (1 + 1/2) / 3 - 1/2 = 0."""
    a_first, b_first = draft("ABAB"), draft("BAAB")
    pages = [("u1", a_first, [1, 2, 4, 2]), ("u1", b_first, [1, 2]), ("u2", a_first, [3]), ("u3", b_first, [])]
    found = interleaving(logged(tmp_path, pages), baseline="A", min_users=1).overall
    assert (found.users, found.lists, found.wins, found.losses, found.value) == (2, 3, 1.0, 1.0, 0.0)
    # user sums n = (1/2, -1/2), d = (2, 1), R = 0: sqrt(2 / (2 - 1) * (1/4 + 1/4)) / 3
    assert found.error == pytest.approx(1 / 3)
    assert found.credit == pytest.approx((1 + 0 - 1) / 3)
    again = interleaving(logged(tmp_path, pages), baseline="A", min_users=1, count_repeated=True).overall
    assert again.credit == pytest.approx((2 + 0 - 1) / 3)
    turned = interleaving(logged(tmp_path, pages[2:]), baseline="B", min_users=1).overall
    assert (turned.wins, turned.losses, turned.value) == (1.0, 0.0, 0.5)


def test_where_lists_are_alike_clicks_tell_nothing(tmp_path: Path) -> None:
    mixed = draft(
        "ABAB", interleaving_method="team-draft", interleaving_first="A", interleaving_ranks="1/1 2/2 3/4 4/3"
    )
    log = logged(tmp_path, [("u1", mixed, [1]), ("u2", mixed, [2, 4]), ("u3", mixed, [3])])
    assert interleaving(log).overall[3:5] == (1.0, 1.0)
    assert interleaving(log, count_shared=True).overall[3:5] == (1.0, 2.0)


@pytest.mark.parametrize(
    ("options", "policy", "text"),
    [
        ({}, "above where lists part", "clicks of team drafts count for neither"),
        ({"count_shared": True}, "above where lists part", "clicks count"),
        ({}, "several clicks on one result", "count once"),
        ({"count_repeated": True}, "several clicks on one result", "count as several"),
        ({}, "intervals hold", "on any day, narrowest at 5,000 users"),
        ({"any_day": False}, "intervals hold", "on one day, set before"),
    ],
)
def test_the_options_are_shown_with_the_result(options: Any, policy: str, text: str, tmp_path: Path) -> None:
    log = logged(tmp_path, [("u1", draft("ABAB"), [1])])
    assert dict(interleaving(log, **options).policies)[policy] == text


def test_probabilistic_credit_by_hand(tmp_path: Path) -> None:
    """A = a, b and B = b, a; shown b, a. With 1 and 1/8 as weights b is B's with 8/9; then a is all that is left."""
    mixed = next(
        one
        for one in (interleave("ab", "ba", key=(str(at),), method="probabilistic") for at in range(100))
        if one.documents == ("b", "a")
    )
    found = interleaving(logged(tmp_path, [("u1", mixed, [1]), ("u2", mixed, [2]), ("u3", mixed, [1, 2])])).overall
    win, loss = 8 / 9 + 1 / 2 + 8 / 9 / 2, 1 / 9 + 1 / 2 + 1 / 9 / 2
    assert (found.wins, found.losses) == pytest.approx((win, loss), abs=1e-12)
    assert found.credit == pytest.approx((7 / 9 + 0 + 7 / 9) / 3, abs=1e-12)


def test_below_the_shorter_list_no_click_counts(tmp_path: Path) -> None:
    long = draft("ABAA", interleaving_method="team-draft", interleaving_first="A", interleaving_length="longer")
    with pytest.raises(InputError, match="interleaving_cut"):
        interleaving(logged(tmp_path, [("u1", long, [3])]))
    found = interleaving(logged(tmp_path, [("u1", {**long, "interleaving_cut": 2}, [2, 3, 4])])).overall
    assert (found.wins, found.losses) == (1.0, 0.0)


def test_alternation_that_begins_with_the_same_ranker_is_broken(tmp_path: Path) -> None:
    found = interleaving(logged(tmp_path, [(f"u{at}", draft("ABAB"), [1]) for at in range(30)]), min_users=10)
    assert found.decision == "broken"
    assert found.ranks[0].share == 0.0


def test_a_ranker_that_picks_twice_in_a_round_is_broken(tmp_path: Path) -> None:
    """By index: where B is A moved up by one, A keeps one of ten places; here one of four, whoever begins."""
    pages = [(f"u{at}", draft(["ABBB", "BABB"][at % 2]), [2]) for at in range(30)]
    found = interleaving(logged(tmp_path, pages), min_users=10)
    assert found.decision == "broken"
    assert any("twice" in why for why in found.reasons)


@pytest.mark.parametrize("teams", ["ABCA", "AAAA"])
def test_two_rankers_are_needed(teams: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ranker"):
        interleaving(logged(tmp_path, [("u1", draft(teams), [1])]))


def plan(method: str, users: int, *, noises: tuple[float, float], blind: bool) -> SimulationPlan:
    """Let two rankers be mixed; a blind user is attracted by nothing but position, and one in four lists is short."""
    collection = Collection(short=0.25, attractiveness=(0.4,) * 4 if blind else Collection().attractiveness)
    arms = tuple(Arm(name, name, noise, 0.5) for name, noise in zip(("old", "new"), noises, strict=True))
    return SimulationPlan(
        collection=collection, arms=arms, browsing=PositionBased(), users=Users(number=users),
        interleaving=Interleaving(method, "longer"),
    )  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_who_looks_at_position_only_prefers_nobody(method: str) -> None:
    """The worse ranker is far worse, and a log of it is read as any other: value and credit are 0 within 3.5 errors."""
    found = interleaving(simulate(plan(method, 1500, noises=(4.0, 0.0), blind=True), seed=5).log())
    assert abs(found.overall.value) < 3.5 * found.overall.error < 0.03
    assert found.overall.credit_low < 0 < found.overall.credit_high
    assert found.decision == "keep running"


@pytest.mark.parametrize("method", METHODS)
def test_the_better_ranker_is_found(method: str) -> None:
    log = simulate(plan(method, 300, noises=(2.0, 0.5), blind=False), seed=6).log()
    found = interleaving(log, by="device")
    assert found.decision == "preferred"
    assert sum(one.lists for one in found.sliced) == found.overall.lists
    turned = interleaving(log, baseline="new")
    assert turned.decision == "not preferred"
    assert turned.overall.value == pytest.approx(-found.overall.value, abs=1e-12)


def drafts(users: int, lists: int, heavy: int, rng: np.random.Generator) -> list[tuple[str, dict[str, Any], list[int]]]:
    """Log team drafts: users who click at random, and one with more lists who prefers A in 60 %."""
    pages: list[tuple[str, dict[str, Any], list[int]]] = []
    for user, many, chance in (*((f"u{at}", lists, 0.5) for at in range(users)), ("heavy", heavy, 0.6)):
        for _ in range(many):
            teams = "ABBA" if rng.random() < 0.5 else "BAAB"
            clicked = teams.index("A" if rng.random() < chance else "B") + 1
            pages.append((user, draft(teams), [clicked]))
    return pages


@pytest.mark.parametrize("any_day", [True, False])
def test_one_user_with_most_lists_decides_nothing(any_day: bool, tmp_path: Path) -> None:
    """Of 1,097 clicked lists one user has 800: no interval, no p-value, no verdict, and the value as it is."""
    log = logged(tmp_path, drafts(99, 3, 800, np.random.default_rng(1)))
    found = interleaving(log, baseline="A", any_day=any_day, min_users=50)
    row = found.overall
    assert (row.users, row.lists, row.wins + row.losses) == (100, 1097, 1097.0)
    assert row.value == pytest.approx((row.wins - row.losses) / 2 / 1097)
    assert row.value < -0.05
    assert found.decision == "keep running"
    assert row.reason is not None
    assert (row.reason.code, row.reason.observed) == ("dominated", pytest.approx(800 / 1097))
    assert all(map(math.isnan, (row.p, row.low, row.credit_high)))


def test_few_effective_users_have_no_interval(tmp_path: Path) -> None:
    """60 users with a list each and one with 40: 100**2 / (60 + 1600) = 6.0 effective users of the 50 required."""
    found = interleaving(logged(tmp_path, drafts(60, 1, 40, np.random.default_rng(2))), baseline="A", min_users=10)
    assert found.overall.effective == pytest.approx(100**2 / 1660)
    assert found.overall.reason is not None
    assert found.overall.reason.code == "few-effective-units"
    equal = interleaving(logged(tmp_path, drafts(59, 2, 2, np.random.default_rng(2))), baseline="A", min_users=10)
    assert equal.overall.reason is None
    assert equal.overall.effective == pytest.approx(60.0)
    with pytest.raises(InputError, match="differ cannot be estimated"):
        plan_interleaving(logged(tmp_path, drafts(60, 1, 40, np.random.default_rng(2))))


def test_the_interval_for_one_day_is_that_of_a_t_test(tmp_path: Path) -> None:
    """60 users with a list each: Student's t with 59 degrees of freedom, 2.000995."""
    found = interleaving(
        logged(tmp_path, drafts(59, 1, 1, np.random.default_rng(4))), baseline="A", any_day=False, min_users=10
    ).overall
    half = 2.000995378 * found.error
    assert (found.low, found.high) == pytest.approx((found.value - half, found.value + half), abs=1e-9)
    assert found.p == pytest.approx(float(stats.t.sf(abs(found.value) / found.error, 59) * 2), rel=1e-6)


def clicking(rng: np.random.Generator, users: int, true: float) -> tuple[Any, Any]:
    """Draw the lists of users who click on many or few, and who each lean to either side: unit and outcome by list."""
    many = np.minimum(2.0 * rng.random(users) ** (-1 / 1.8), 60).astype(np.int64)
    leaning = np.clip(true + rng.normal(0, 0.15, users), -0.45, 0.45)
    unit = np.repeat(np.arange(users), many)
    tied, side = rng.random(len(unit)) < 0.3, rng.random(len(unit)) < 0.5 + leaning[unit]
    return unit, np.where(tied, 0.0, side - 0.5)


def test_intervals_over_users_hold_the_truth_and_peeking_every_day_does_not_hurt() -> None:
    """Without a preference: 1,000 tests of 1,200 users, looked at on each of 20 days, from 240 users on."""
    from judged.online.ab_tests.differences import Looks

    once, any_day = Looks(0.95, any_day=False), Looks(0.95, any_day=True, expected=1200)
    rng, held, alarms, naive = np.random.default_rng(8), 0, 0, 0
    for _ in range(1000):
        unit, outcome = clicking(rng, 1200, 0.0)
        ts = []
        for users in range(240, 1201, 60):
            seen = UnitRatio.of_rows(unit[unit < users], outcome[unit < users])
            ts.append((abs(seen.t(0.0)), seen.units))
        held += ts[-1][0] < once.critical(1200)
        alarms += any(t > any_day.critical(seen) for t, seen in ts)
        naive += any(t > once.critical(seen) for t, seen in ts)
    assert 0.93 <= held / 1000 <= 0.97
    assert alarms <= 50 + 3 * 7
    assert naive > 120  # looking every day at intervals for one day


def test_a_plan_keeps_its_word() -> None:
    """With the users that it asks for, the preference that the log has is found in some 80 % of tests."""
    rng = np.random.default_rng(9)
    unit, outcome = clicking(rng, 200_000, 0.04)
    whole = UnitRatio.of_rows(unit, outcome)
    asked = round((2.801585 * whole.error * whole.units**0.5 / whole.value) ** 2)
    found = 0
    for _ in range(400):
        drawn, sums = clicking(rng, asked, 0.04)
        found += UnitRatio.of_rows(drawn, sums).t(0.0) > 1.959964
    assert abs(found / 400 - 0.8) < 0.06
    log = simulate(plan("team-draft", 200, noises=(2.0, 0.5), blind=False), seed=6).log()
    seen = interleaving(log)
    planned = plan_interleaving(log, differences=seen.overall.value)
    spread = seen.overall.error * seen.users**0.5
    assert planned.plans[0].users == pytest.approx((2.801585 * spread / seen.overall.value) ** 2, rel=1e-5)
    assert planned.plans[0].users_any_day > planned.plans[0].users
