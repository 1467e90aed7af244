"""Credit of clicks on interleaved lists: by hand, by enumeration, and from logs without a preference."""

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
from judged.online.interleaving_analysis.credit import win_probabilities
from judged.online.mixed_lists import METHODS, Interleaved, interleave
from judged.online.simulation import (
    PositionBased,
    SimulatedArm,
    SimulatedCollection,
    SimulatedInterleaving,
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
    """Write and read a log of pages: (user, list or its attributes, clicked ranks in order)."""
    records: list[dict[str, Any]] = []
    for minute, (user, mixed, clicks) in enumerate(pages):
        attributes = mixed.attributes() if isinstance(mixed, Interleaved) else mixed
        documents = mixed.documents if isinstance(mixed, Interleaved) else [f"d{rank}" for rank in range(1, 5)]
        user_fields = {"query_id": f"q{minute}", "client_id": user, "session_id": f"{user}-1"}
        time_fields = {"timestamp": datetime.fromtimestamp(NOW + 60 * minute, UTC).isoformat()}
        page = {"user_query": "sofa", "query_response_hit_ids": list(documents), "query_attributes": attributes}
        records.append({**user_fields, **time_fields, **page})
        for seconds, rank in enumerate(clicks, 1):
            time_fields = {"timestamp": datetime.fromtimestamp(NOW + 60 * minute + seconds, UTC).isoformat()}
            click_fields = {"position": {"ordinal": rank}, "object": {"object_id": documents[rank - 1]}}
            records.append({"action_name": "click", **user_fields, **time_fields, "event_attributes": click_fields})
    path = folder / "log.ndjson"
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return read_log(path, bots="keep")


def draft(teams: Sequence[str | None], **attributes: object) -> dict[str, Any]:
    return {"interleaving": {"teams": list(teams)}, **attributes}


def test_win_probabilities_is_the_sum_over_all_assignments() -> None:
    rng = np.random.default_rng(3)
    clicks = np.array([0, 1, 2, 5, 9, 9])
    share = rng.random(clicks.sum())
    share[[4, 11]] = math.nan
    win, loss = win_probabilities(share, clicks)
    for i, start in enumerate(np.cumsum(clicks) - clicks):
        chances = share[start : start + clicks[i]]
        chances = chances[~np.isnan(chances)]
        expected = [0.0, 0.0]
        for teams in product((0, 1), repeat=len(chances)):
            chance = math.prod(p if team else 1 - p for p, team in zip(chances, teams, strict=True))
            difference = 2 * sum(teams) - len(teams)
            expected[0] += chance * (difference > 0)
            expected[1] += chance * (difference < 0)
        assert [win[i], loss[i]] == pytest.approx(expected, abs=1e-12)


def test_a_draft_by_hand(tmp_path: Path) -> None:
    """u1: 2 clicks of B against 1 of A, a win; u1: a tie; u2: a loss; u3 did not click. (1 + 1/2) / 3 - 1/2 = 0."""
    a_first, b_first = draft("ABAB"), draft("BAAB")
    pages = [("u1", a_first, [1, 2, 4, 2]), ("u1", b_first, [1, 2]), ("u2", a_first, [3]), ("u3", b_first, [])]
    preference = interleaving(logged(tmp_path, pages), baseline="A", min_users=1).overall
    assert (preference.users, preference.lists, preference.wins, preference.losses, preference.value) == (
        2,
        3,
        1.0,
        1.0,
        0.0,
    )
    # user sums n = (1/2, -1/2), d = (2, 1), R = 0: sqrt(2 / (2 - 1) * (1/4 + 1/4)) / 3
    assert preference.error == pytest.approx(1 / 3)
    assert preference.credit == pytest.approx((1 + 0 - 1) / 3)
    repeated = interleaving(logged(tmp_path, pages), baseline="A", min_users=1, count_repeated=True).overall
    assert repeated.credit == pytest.approx((2 + 0 - 1) / 3)
    swapped = interleaving(logged(tmp_path, pages[2:]), baseline="B", min_users=1).overall
    assert (swapped.wins, swapped.losses, swapped.value) == (1.0, 0.0, 0.5)


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
        ({}, "clicks above the first difference", "do not count in team drafts"),
        ({"count_shared": True}, "clicks above the first difference", "count"),
        ({}, "repeated clicks on a result", "count once"),
        ({"count_repeated": True}, "repeated clicks on a result", "count separately"),
        ({}, "intervals", "anytime-valid, narrowest at 5,000 users"),
        ({"any_day": False}, "intervals", "fixed-sample"),
    ],
)
def test_the_options_are_shown_with_the_result(options: Any, policy: str, text: str, tmp_path: Path) -> None:
    log = logged(tmp_path, [("u1", draft("ABAB"), [1])])
    assert dict(interleaving(log, **options).policies)[policy] == text


def test_probabilistic_credit_by_hand(tmp_path: Path) -> None:
    """A = a, b and B = b, a; shown b, a. With 1 and 1/8 as weights b is B's with 8/9; then a is all that is left."""
    mixed = next(
        candidate
        for candidate in (interleave("ab", "ba", key=(str(seed),), method="probabilistic") for seed in range(100))
        if candidate.documents == ("b", "a")
    )
    preference = interleaving(logged(tmp_path, [("u1", mixed, [1]), ("u2", mixed, [2]), ("u3", mixed, [1, 2])])).overall
    win, loss = 8 / 9 + 1 / 2 + 8 / 9 / 2, 1 / 9 + 1 / 2 + 1 / 9 / 2
    assert (preference.wins, preference.losses) == pytest.approx((win, loss), abs=1e-12)
    assert preference.credit == pytest.approx((7 / 9 + 0 + 7 / 9) / 3, abs=1e-12)


def test_below_the_shorter_list_no_click_counts(tmp_path: Path) -> None:
    attributes = draft("ABAA", interleaving_method="team-draft", interleaving_first="A", interleaving_length="longer")
    with pytest.raises(InputError, match="interleaving_cut"):
        interleaving(logged(tmp_path, [("u1", attributes, [3])]))
    preference = interleaving(logged(tmp_path, [("u1", {**attributes, "interleaving_cut": 2}, [2, 3, 4])])).overall
    assert (preference.wins, preference.losses) == (1.0, 0.0)


def test_alternation_that_begins_with_the_same_ranker_is_broken(tmp_path: Path) -> None:
    result = interleaving(logged(tmp_path, [(f"u{user}", draft("ABAB"), [1]) for user in range(30)]), min_users=10)
    assert result.decision == "invalid"
    assert result.ranks[0].share == 0.0


def test_a_ranker_that_picks_twice_in_a_round_is_broken(tmp_path: Path) -> None:
    """By index: where B is A moved up by one, A keeps one of ten places; here one of four, whoever begins."""
    pages = [(f"u{user}", draft(["ABBB", "BABB"][user % 2]), [2]) for user in range(30)]
    result = interleaving(logged(tmp_path, pages), min_users=10)
    assert result.decision == "invalid"
    assert any("picked both results" in reason for reason in result.reasons)


@pytest.mark.parametrize("teams", ["ABCA", "AAAA"])
def test_two_rankers_are_needed(teams: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ranker"):
        interleaving(logged(tmp_path, [("u1", draft(teams), [1])]))


def plan(method: str, users: int, *, noises: tuple[float, float], position_only: bool) -> SimulationPlan:
    """Plan a simulation of two interleaved rankers; one in four lists is short.

    `position_only`: whether attractiveness does not depend on the document, so that only the rank matters.
    """
    collection = SimulatedCollection(
        short=0.25, attractiveness=(0.4,) * 4 if position_only else SimulatedCollection().attractiveness
    )
    arms = tuple(SimulatedArm(name, name, noise, 0.5) for name, noise in zip(("old", "new"), noises, strict=True))
    return SimulationPlan(
        collection=collection, arms=arms, browsing=PositionBased(), users=Users(number=users),
        interleaving=SimulatedInterleaving(method, "longer"),
    )  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_who_looks_at_position_only_prefers_nobody(method: str) -> None:
    """The worse ranker is far worse, and a log of it is read as any other: value and credit are 0 within 3.5 errors."""
    result = interleaving(simulate(plan(method, 1500, noises=(4.0, 0.0), position_only=True), seed=5).log())
    assert abs(result.overall.value) < 3.5 * result.overall.error < 0.03
    assert result.overall.credit_low < 0 < result.overall.credit_high
    assert result.decision == "keep running"


@pytest.mark.parametrize("method", METHODS)
def test_the_better_ranker_is_found(method: str) -> None:
    log = simulate(plan(method, 300, noises=(2.0, 0.5), position_only=False), seed=6).log()
    result = interleaving(log, by="device")
    assert result.decision == "preferred"
    assert sum(preference.lists for preference in result.sliced) == result.overall.lists
    swapped = interleaving(log, baseline="new")
    assert swapped.decision == "not preferred"
    assert swapped.overall.value == pytest.approx(-result.overall.value, abs=1e-12)


def drafts(users: int, lists: int, heavy: int, rng: np.random.Generator) -> list[tuple[str, dict[str, Any], list[int]]]:
    """Return pages of team drafts: users who click at random, and one with more lists who prefers A in 60%."""
    pages: list[tuple[str, dict[str, Any], list[int]]] = []
    for user, count, p_a in (*((f"u{number}", lists, 0.5) for number in range(users)), ("heavy", heavy, 0.6)):
        for _ in range(count):
            teams = "ABBA" if rng.random() < 0.5 else "BAAB"
            clicked = teams.index("A" if rng.random() < p_a else "B") + 1
            pages.append((user, draft(teams), [clicked]))
    return pages


@pytest.mark.parametrize("any_day", [True, False])
def test_one_user_with_most_lists_decides_nothing(any_day: bool, tmp_path: Path) -> None:
    """Of 1,097 clicked lists one user has 800: no interval, no p-value, no verdict, and the value as it is."""
    log = logged(tmp_path, drafts(99, 3, 800, np.random.default_rng(1)))
    result = interleaving(log, baseline="A", any_day=any_day, min_users=50)
    preference = result.overall
    assert (preference.users, preference.lists, preference.wins + preference.losses) == (100, 1097, 1097.0)
    assert preference.value == pytest.approx((preference.wins - preference.losses) / 2 / 1097)
    assert preference.value < -0.05
    assert result.decision == "keep running"
    assert preference.reason is not None
    assert (preference.reason.code, preference.reason.observed) == ("dominated", pytest.approx(800 / 1097))
    assert all(map(math.isnan, (preference.p, preference.low, preference.credit_high)))


def test_few_effective_users_have_no_interval(tmp_path: Path) -> None:
    """60 users with a list each and one with 40: 100**2 / (60 + 1600) = 6.0 effective users of the 50 required."""
    result = interleaving(logged(tmp_path, drafts(60, 1, 40, np.random.default_rng(2))), baseline="A", min_users=10)
    assert result.overall.effective_users == pytest.approx(100**2 / 1660)
    assert result.overall.reason is not None
    assert result.overall.reason.code == "few-effective-units"
    balanced = interleaving(logged(tmp_path, drafts(59, 2, 2, np.random.default_rng(2))), baseline="A", min_users=10)
    assert balanced.overall.reason is None
    assert balanced.overall.effective_users == pytest.approx(60.0)
    with pytest.raises(InputError, match="variance between users"):
        plan_interleaving(logged(tmp_path, drafts(60, 1, 40, np.random.default_rng(2))))


def test_the_interval_for_one_day_is_that_of_a_t_test(tmp_path: Path) -> None:
    """60 users with a list each: Student's t with 59 degrees of freedom, 2.000995."""
    preference = interleaving(
        logged(tmp_path, drafts(59, 1, 1, np.random.default_rng(4))), baseline="A", any_day=False, min_users=10
    ).overall
    half_width = 2.000995378 * preference.error
    assert (preference.low, preference.high) == pytest.approx(
        (preference.value - half_width, preference.value + half_width), abs=1e-9
    )
    assert preference.p == pytest.approx(float(stats.t.sf(abs(preference.value) / preference.error, 59) * 2), rel=1e-6)


def clicking(rng: np.random.Generator, users: int, mean_preference: float) -> tuple[Any, Any]:
    """Simulate users with unequal numbers of lists and different preferences: user and outcome of each list."""
    lists = np.minimum(2.0 * rng.random(users) ** (-1 / 1.8), 60).astype(np.int64)
    preference = np.clip(mean_preference + rng.normal(0, 0.15, users), -0.45, 0.45)
    unit = np.repeat(np.arange(users), lists)
    is_tied, is_win = rng.random(len(unit)) < 0.3, rng.random(len(unit)) < 0.5 + preference[unit]
    return unit, np.where(is_tied, 0.0, is_win - 0.5)


def test_intervals_over_users_hold_the_truth_and_peeking_every_day_does_not_hurt() -> None:
    """Without a preference: 1,000 tests of 1,200 users, looked at on each of 20 days, from 240 users on."""
    from judged.online.ab_tests.differences import Inference

    fixed_sample, any_day = Inference(0.95, any_day=False), Inference(0.95, any_day=True, expected=1200)
    rng, covered, alarms, naive_alarms = np.random.default_rng(8), 0, 0, 0
    for _ in range(1000):
        unit, outcome = clicking(rng, 1200, 0.0)
        ts = []
        for users in range(240, 1201, 60):
            observed = UnitRatio.of_rows(unit[unit < users], outcome[unit < users])
            ts.append((abs(observed.t(0.0)), observed.units))
        covered += ts[-1][0] < fixed_sample.critical(1200)
        alarms += any(t > any_day.critical(observed) for t, observed in ts)
        naive_alarms += any(t > fixed_sample.critical(observed) for t, observed in ts)
    assert 0.93 <= covered / 1000 <= 0.97
    assert alarms <= 50 + 3 * 7
    assert naive_alarms > 120  # looking every day at intervals for one day


def test_a_plan_keeps_its_word() -> None:
    """With the users that it asks for, the preference that the log has is found in some 80 % of tests."""
    rng = np.random.default_rng(9)
    unit, outcome = clicking(rng, 200_000, 0.04)
    population = UnitRatio.of_rows(unit, outcome)
    users = round((2.801585 * population.error * population.units**0.5 / population.value) ** 2)
    detections = 0
    for _ in range(400):
        sample_unit, sample_outcome = clicking(rng, users, 0.04)
        detections += UnitRatio.of_rows(sample_unit, sample_outcome).t(0.0) > 1.959964
    assert abs(detections / 400 - 0.8) < 0.06
    log = simulate(plan("team-draft", 200, noises=(2.0, 0.5), position_only=False), seed=6).log()
    result = interleaving(log)
    planned = plan_interleaving(log, differences=result.overall.value)
    spread = result.overall.error * result.users**0.5
    assert planned.plans[0].users == pytest.approx((2.801585 * spread / result.overall.value) ** 2, rel=1e-5)
    assert planned.plans[0].users_any_day > planned.plans[0].users
