"""What follows from a test for each arm: ship, do not ship, keep running, or broken, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from judged.online.abtest.assignment import BROKEN_P, Assignment
from judged.online.abtest.differences import ArmDifference
from judged.online.difference import in_metric
from judged.online.numbers import percent
from judged.results import listed
from judged.stats.sufficiency import insufficiency

EQUAL_USERS = 50
"""Minimum effective number of users in each arm: on a published log where 215 users have an effective number of 44,
10% of random splits differ at 5%."""
Decision: TypeAlias = Literal["ship", "do not ship", "keep running", "broken"]
Loss: TypeAlias = Literal["harmed", "safe", "open"]


@dataclass(frozen=True)
class Verdict:
    """What follows for one arm: the decision, its reasons, and how many more days it may take if it is open."""

    arm: str
    decision: Decision
    reasons: tuple[str, ...]
    days: float = math.nan

    def __str__(self) -> str:
        return f"{self.arm}: {self.decision}. {' '.join(self.reasons)}"


def verdict(
    arm: str, differences: Sequence[ArmDifference], users: Assignment, margin: float, min_users: int
) -> Verdict:
    """Decide for one arm.

    Whether a metric is better or worse is decided by its difference, and whether it lost more than the margin by its
    relative difference.
    """
    primary = [row for row in differences if row.role == "primary"]
    guardrails = [row for row in differences if row.role == "guardrail"]
    declared = [*primary, *guardrails]
    if broken := (*users.broken, *_earlier(declared)):
        return Verdict(arm, "broken", (f"No conclusion is possible: {listed(broken)}.",))
    fewest = min(users.users[users.arms[0]], users.users[arm])
    if few := insufficiency(fewest, "verdict", min_units=min_users):
        wait = len(users.arms) * (min_users - fewest) / users.a_day if users.a_day else math.nan
        return Verdict(arm, "keep running", (f"{few.sentence('user')[:-1]} in each arm.",), wait)
    if not primary:
        return Verdict(arm, "keep running", ("No primary metric can be compared.",))
    for row in declared:
        units = min(row.baseline.units, row.other.units)
        lacking = insufficiency(
            units, "verdict", variance=row.adjusted.error, effective_units=row.effective_users,
            min_effective_units=EQUAL_USERS,
        )  # fmt: skip
        if lacking:
            return Verdict(arm, "keep running", (f"{row.metric}: {lacking.sentence('user')}",))
    if math.isnan(primary[0].difference.low):
        return Verdict(arm, "keep running", (f"{primary[0].metric} has no interval yet.",))
    losses = {row.metric: loss(row, margin) for row in guardrails}
    if harmed := [str(metric) for metric, state in losses.items() if state == "harmed"]:
        return Verdict(arm, "do not ship", (f"{listed(harmed)} lost more than {percent(margin)} of the baseline.",))
    return _by_primary(primary[0], [row for row in guardrails if losses[row.metric] == "open"], users, margin)


def loss(row: ArmDifference, margin: float) -> Loss:
    """Return whether a metric lost more than a share of its baseline, surely did not, or may have.

    Where there is no relative difference, the loss is compared with the margin of the largest baseline that the data
    allow: a larger loss than that exceeds the margin of every smaller baseline too.
    """
    low, high = row.gain
    relative_low, relative_high = row.relative_gain
    if math.isnan(relative_low):
        harmed = high < -margin * _largest_baseline(row)
        return "harmed" if harmed else "safe" if low >= 0 else "open"
    return "harmed" if relative_high < -margin else "safe" if relative_low > -margin else "open"


def _largest_baseline(row: ArmDifference) -> float:
    """Return the largest absolute value of the baseline in its intervals."""
    ends = [
        abs(row.adjusted.base) + row.critical * row.adjusted.base_error,
        abs(row.baseline.low),
        abs(row.baseline.high),
    ]
    return max((end for end in ends if not math.isnan(end)), default=math.nan)


def _earlier(declared: Sequence[ArmDifference]) -> list[str]:
    """List the metrics that differed before anybody was exposed."""
    known = [row for row in declared if not math.isnan(row.earlier)]
    different = [str(row.metric) for row in known if row.earlier < BROKEN_P / len(known)]
    return [f"{listed(different)} differed before anybody was exposed"] if different else []


def _by_primary(goal: ArmDifference, unsure: Sequence[ArmDifference], users: Assignment, margin: float) -> Verdict:
    """Decide where no guardrail surely lost."""
    low, high = goal.gain
    relative_low, relative_high = goal.relative_gain
    if high < 0:
        return Verdict(goal.arm, "do not ship", (f"{goal.metric} is worse: {_span(goal)}.",))
    if low <= 0 and max(-relative_low, relative_high) < margin:
        small = f"{goal.metric} differs by less than {percent(margin)}: {_span(goal)}."
        return Verdict(goal.arm, "do not ship", (small,))
    if low > 0 and not unsure:
        return Verdict(goal.arm, "ship", (f"{goal.metric} is better: {_span(goal)}.",))
    why = [f"{goal.metric} shows no significant difference: {_span(goal)}."] if low <= 0 else []
    if unsure:
        named = listed([str(row.metric) for row in unsure])
        why.append(f"{named} may have lost more than {percent(margin)} of the baseline.")
    waiting = [*([goal] if low <= 0 else []), *unsure]
    if unknown := [str(row.metric) for row in waiting if math.isnan(row.relative.value)]:
        why.append(f"Losses of {listed(unknown)} have no relative size: the baseline's interval includes 0.")
    days = _days(waiting, users, margin)
    if math.isfinite(days) and days > 0:
        size = f"differences of {percent(margin)}"
        why.append(f"Detecting {size} takes about {math.ceil(days):,} more days at {users.a_day:,.0f} users a day.")
    return Verdict(goal.arm, "keep running", tuple(why), days)


def _days(waiting: Sequence[ArmDifference], users: Assignment, margin: float) -> float:
    """Return in how many days half of every interval is the margin: it shrinks with the root of the number of users."""
    halves = [row.critical * row.adjusted.relative_error for row in waiting if not math.isnan(row.relative.value)]
    if not (users.a_day and halves and margin):
        return math.nan
    return max(users.number * ((max(halves) / margin) ** 2 - 1.0), 0.0) / users.a_day


def _span(row: ArmDifference) -> str:
    show = in_metric(row.other)
    return f"{show.write(row.difference.low)} to {show.write(row.difference.high)}"
