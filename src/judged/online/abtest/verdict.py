"""What follows from a test for each arm: ship, do not ship, keep running, or broken, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from judged.answer import counted, listed
from judged.online.abtest.assignment import BROKEN_P, Assignment
from judged.online.abtest.differences import ArmDifference
from judged.online.difference import in_metric
from judged.online.numbers import percent

EQUAL_USERS = 50
"""Nothing is said before as many users with equal parts would tell as much: on a published log where 215 users tell as
much as 44, 10 % of random splits differ at 5 %."""
Decision: TypeAlias = Literal["ship", "do not ship", "keep running", "broken"]


@dataclass(frozen=True)
class Verdict:
    """What follows for one arm: the decision, why, and where it is not yet told how many days it may take."""

    arm: str
    decision: Decision
    reasons: tuple[str, ...]
    days: float = math.nan

    def __str__(self) -> str:
        return f"{self.arm}: {self.decision}. {' '.join(self.reasons)}"


def verdict(
    arm: str, differences: Sequence[ArmDifference], users: Assignment, margin: float, min_users: int
) -> Verdict:
    """Decide for one arm."""
    primary = [one for one in differences if one.role == "primary"]
    guardrails = [one for one in differences if one.role == "guardrail"]
    if broken := (*users.broken, *_earlier([*primary, *guardrails])):
        return Verdict(arm, "broken", (f"Nothing follows: {listed(broken)}.",))
    fewest = min(users.users[users.arms[0]], users.users[arm])
    if fewest < min_users:
        few = f"An arm has {counted(fewest, 'user')} of the {min_users:,} before which nothing is said."
        wait = len(users.arms) * (min_users - fewest) / users.a_day if users.a_day else math.nan
        return Verdict(arm, "keep running", (few,), wait)
    if few_equal := [str(one.metric) for one in (*primary, *guardrails) if one.equal < EQUAL_USERS]:
        why = f"A few users make most of {listed(few_equal)}: in an arm they tell less than {EQUAL_USERS} equal users."
        return Verdict(arm, "keep running", (why,))
    if not primary or math.isnan(primary[0].difference.low):
        return Verdict(arm, "keep running", ("The primary metric cannot be compared yet.",))
    if harmed := [str(one.metric) for one in guardrails if one.gain[1] < -margin]:
        return Verdict(arm, "do not ship", (f"{listed(harmed)} lost more than {percent(margin)} of the baseline.",))
    return _by_the_primary(primary[0], [one for one in guardrails if not one.gain[0] > -margin], users, margin)


def _earlier(declared: Sequence[ArmDifference]) -> list[str]:
    """Say which metrics differed already before anybody was exposed."""
    known = [one for one in declared if not math.isnan(one.earlier)]
    strange = [str(one.metric) for one in known if one.earlier < BROKEN_P / len(known)]
    return [f"{listed(strange)} differed already before anybody was exposed"] if strange else []


def _by_the_primary(goal: ArmDifference, unsure: Sequence[ArmDifference], users: Assignment, margin: float) -> Verdict:
    """Decide where no guardrail was hurt for sure."""
    low, high = goal.gain
    if high < 0:
        return Verdict(goal.arm, "do not ship", (f"{goal.metric} is worse: {_span(goal)}.",))
    if low <= 0 and max(-low, high) < margin:
        small = f"{goal.metric} differs by less than {percent(margin)}: {_span(goal)}."
        return Verdict(goal.arm, "do not ship", (small,))
    if low > 0 and not unsure:
        return Verdict(goal.arm, "ship", (f"{goal.metric} is better: {_span(goal)}.",))
    why = [f"{goal.metric} is not told apart from the baseline: {_span(goal)}."] if low <= 0 else []
    if unsure:
        named = listed([str(one.metric) for one in unsure])
        why.append(f"{named} may have lost more than {percent(margin)} of the baseline.")
    days = _days([*([goal] if low <= 0 else []), *unsure], users, margin)
    if math.isfinite(days) and days > 0:
        what = f"differences of {percent(margin)}"
        why.append(f"To tell {what} takes some {math.ceil(days):,} days more at {users.a_day:,.0f} users a day.")
    return Verdict(goal.arm, "keep running", tuple(why), days)


def _days(waiting: Sequence[ArmDifference], users: Assignment, margin: float) -> float:
    """Say how long until half of every interval is the margin: it shrinks with the root of the number of users."""
    halves = [one.critical * one.adjusted.relative_error for one in waiting]
    if not (users.a_day and halves and margin):
        return math.nan
    return max(users.number * ((max(halves) / margin) ** 2 - 1.0), 0.0) / users.a_day


def _span(one: ArmDifference) -> str:
    show = in_metric(one.other)
    return f"{show.write(one.difference.low)} to {show.write(one.difference.high)}"
