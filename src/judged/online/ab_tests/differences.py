"""What differs between the arms of a test, adjusted for the time before, with intervals that hold at every look."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from judged.online.ab_tests.assignment import BROKEN_P, Assignment, slice_of
from judged.online.differences import in_metric
from judged.online.estimation.online_metrics import moments, ratio_sums, ratios, shared_products
from judged.online.estimation.sums import UnitSums, quantiles, unit_sums
from judged.online.layout import percent
from judged.online.metrics import OnlineMetric
from judged.online.statistics.allocation import critical_value, e_value, prior_size
from judged.online.statistics.users import NO_RELATIVE, AdjustedDifference, Arm, RelativeDifference, adjusted_difference
from judged.results import listed
from judged.stats.correction import adjust
from judged.stats.ratio import RatioDifference, correlation, student_quantiles
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from judged.online.estimation.online_metrics import Unit
    from judged.online.facts.pages import PageFacts
    from judged.online.layout import OnlineEstimate


Role: TypeAlias = Literal["primary", "guardrail", "other"]
_NORMAL = NormalDist()
_WINSORIZED, _SPENDERS = " (winsorized)", 0.99


@dataclass(frozen=True)
class ArmDifference:
    """One metric of one arm against the baseline.

    Parameters
    ----------
    metric, role, arm, part
        Metric (with the direction that was declared), its role, the arm, and the slice; empty for all pages.
    baseline, other
        Its estimates in both arms, with fixed-sample intervals.
    difference
        The arm minus the baseline, adjusted for the time before, with its interval and p-value: valid on any day, or
        fixed-sample, as `Looks` says. NaN where there is not enough data.
    adjusted
        The same with its standard error, and what it is relative to.
    critical
        Half the interval's width in standard errors.
    chance_better
        Probability that the arm's metric is better, by a flat prior at a fixed sample: a summary, no test. NaN for a
        metric without a direction.
    p
        Adjusted for the metrics that were not declared; NaN where there is none.
    earlier
        p-value of a difference before exposure; NaN where nothing is known of it.
    effective_users
        Effective number of users (Kish) in the smaller arm. Intervals and p-values are too narrow if it is small.
    """

    metric: OnlineMetric
    role: Role
    arm: str
    part: str
    baseline: OnlineEstimate
    other: OnlineEstimate
    difference: RatioDifference
    adjusted: AdjustedDifference
    critical: float
    chance_better: float
    p: float
    earlier: float
    effective_users: float = math.inf

    @property
    def relative(self) -> RelativeDifference:
        """The difference as a share of the baseline's absolute value."""
        return NO_RELATIVE if math.isnan(self.difference.low) else self.adjusted.relative(self.critical)

    @property
    def gain(self) -> tuple[float, float]:
        """Interval of the difference, turned so that more is better; NaN for a metric without a direction."""
        return _turned(self.metric, self.difference.low, self.difference.high)

    @property
    def relative_gain(self) -> tuple[float, float]:
        """Interval of the relative difference, turned so that more is better."""
        return _turned(self.metric, *self.relative[1:])


def _turned(metric: OnlineMetric, low: float, high: float) -> tuple[float, float]:
    if not metric.better:
        return math.nan, math.nan
    return (low, high) if metric.better > 0 else (-high, -low)


@dataclass(frozen=True)
class Looks:
    """When results are looked at: on any day, or on one that was set before.

    Parameters
    ----------
    level
        Level of the intervals.
    any_day
        Whether they hold on all days together.
    expected
        Number of users at which intervals for any day are narrowest.
    arms
        Number of arms compared with the baseline: intervals and p-values hold for all of them together (Bonferroni).
    """

    level: float = 0.95
    any_day: bool = True
    expected: int = 5000
    arms: int = 1

    def critical(self, users: float, df: float = math.inf) -> float:
        """Return half the width of an interval in standard errors; `df`: of Student's t, for a fixed sample."""
        if self.any_day:
            return critical_value(users, max(users - 2.0, 1.0), self._g, self._alpha)
        if math.isfinite(df):
            return float(student_quantiles(1.0 - self._alpha / 2.0, np.array(df)))
        return _NORMAL.inv_cdf(1.0 - self._alpha / 2.0)

    def p(self, t: float, users: float, df: float = math.inf) -> float:
        """Return the p-value of a difference of `t` standard errors."""
        if self.any_day:
            p = 1.0 / e_value(t, users, max(users - 2.0, 1.0), self._g)
        elif math.isfinite(df):
            from scipy.special import stdtr

            p = 2.0 * float(stdtr(max(df, 1.0), -abs(t)))
        else:
            p = 2.0 * _NORMAL.cdf(-abs(t))
        return min(1.0, self.arms * p)

    @property
    def _alpha(self) -> float:
        return (1.0 - self.level) / self.arms

    @property
    def _g(self) -> float:
        return prior_size(self.expected, self._alpha)


class Interaction(NamedTuple):
    """Whether a metric's differences differ by slice: Cochran's Q, its p-value, and how many slices."""

    metric: OnlineMetric
    arm: str
    q: float
    p: float
    slices: int


class Design(NamedTuple):
    """Which users are in which arm, when results are looked at, and what is independent."""

    users: Assignment
    looks: Looks
    unit: Unit


def arm_differences(
    pages: PageFacts, roles: Mapping[OnlineMetric, Role], design: Design, parts: Sequence[str] = ("",)
) -> list[ArmDifference]:
    """Compare every arm with the baseline, by part, arm, and metric; pages are sliced by `Assignment.pages`.

    Sums of money are compared a second time with each user's spend winsorized: the few largest sums decide how wide an
    interval is. Quantiles are compared without adjustment.
    """
    made: list[ArmDifference] = []
    for sums, of in unit_sums(pages, [one for one in roles if one.kind == "ratio"], design.unit, sliced=True):
        made += _differences(sums, {metric: roles[metric] for metric in of}, design, parts)
        for metric in (one for one in of if one.unit == "money"):
            cut = replace(metric, name=metric.name + _WINSORIZED)
            made += _differences(_winsorized(sums, metric), {cut: "other"}, design, parts)
    made += _quantiles(pages, {one: role for one, role in roles.items() if one.kind == "quantile"}, design, parts)
    order = {str(metric): at for at, metric in enumerate(roles)}

    def place(row: ArmDifference) -> tuple[int, int, int]:
        metric = str(row.metric).replace(_WINSORIZED, "")
        return parts.index(row.part), design.users.arms.index(row.arm), order[metric]

    return sorted(made, key=place)


def _differences(
    sums: UnitSums, roles: Mapping[OnlineMetric, Role], design: Design, parts: Sequence[str]
) -> Iterator[ArmDifference]:
    (users, looks, unit), metrics = design, list(roles)
    found = moments(sums, metrics)
    estimates = {(one.slice, one.metric): one for one in ratios(sums, metrics, looks.level)}
    of = {metric: ratio_sums(found, metric) for metric in metrics}
    first = users.arms[0]
    for part in parts:
        arms: dict[str, dict[OnlineMetric, Arm]] = {}
        for name in users.arms:
            after, earlier = slice_of(name, part), slice_of(name, part, before=True)
            known = any(earlier in of[metric] for metric in metrics)
            together = shared_products(sums, metrics, unit, earlier, after) if known else {}
            arms[name] = {}
            for metric in metrics:
                sides = of[metric].get(after), of[metric].get(earlier)
                if sides[0] is None or not sides[0].d:
                    continue
                usable = sides[1] is not None and sides[1].units > 1 and sides[1].d
                rho = correlation(sides[1], sides[0], *together[metric]) if sides[1] and usable else 0.0
                arms[name][metric] = Arm(sides[0], sides[1] if usable else None, rho)
        for name in users.arms[1:]:
            for metric in metrics:
                if metric not in arms[first] or metric not in arms[name]:
                    continue
                pair = arms[first][metric], arms[name][metric]
                both = estimates[slice_of(first, part), metric], estimates[slice_of(name, part), metric]
                identity = metric, roles[metric], name, part
                yield arm_difference(identity, both, adjusted_difference(*pair), users, looks, _earlier(*pair))


def arm_difference(
    identity: tuple[OnlineMetric, Role, str, str],
    both: tuple[OnlineEstimate, OnlineEstimate],
    made: AdjustedDifference,
    users: Assignment,
    looks: Looks,
    earlier: float,
    effective_users: float | None = None,
) -> ArmDifference:
    """Return a difference with its interval and p-value, where there is enough data for them.

    `identity`: metric, role, arm, part. `effective_users`: in the smaller arm; None: of the two estimates.
    """
    metric, _, arm, part = identity
    effective = [one.effective_units for one in both] if effective_users is None else [effective_users] * 2
    effective_users, df = min(effective), sum(effective) - 2.0
    number = sum(one.units for one in both) if part else users.users[users.arms[0]] + users.users[arm]
    critical = looks.critical(number, df)
    enough = not insufficiency(min(one.units for one in both), variance=made.error) and math.isfinite(critical)
    if not enough:
        difference = RatioDifference(made.value, math.nan, math.nan, math.nan)
        return ArmDifference(*identity, *both, difference, made, critical, math.nan, math.nan, earlier, effective_users)
    t, half = made.value / made.error, critical * made.error
    difference = RatioDifference(made.value, made.value - half, made.value + half, looks.p(t, number, df))
    chance = _NORMAL.cdf(metric.better * t) if metric.better else math.nan
    return ArmDifference(*identity, *both, difference, made, critical, chance, difference.p, earlier, effective_users)


def _winsorized(sums: UnitSums, metric: OnlineMetric) -> UnitSums:
    """Winsorize each unit's spend at the 99th percentile of positive spend, pooled over arms and times."""
    name = metric.columns()[0]
    cut = f"quantile_disc({sums.column(name)}, {_SPENDERS}) AS most"
    most = sums.table.engine.rows(f"SELECT {cut} FROM {sums.table} WHERE {sums.column(name)} > 0")[0]["most"]
    return replace(sums, most={name: int(most or 0)})


def _quantiles(
    pages: PageFacts, roles: Mapping[OnlineMetric, Role], design: Design, parts: Sequence[str]
) -> Iterator[ArmDifference]:
    """Compare quantiles of the time after exposure: arms have no user in common, so their errors add up."""
    users, looks, unit = design
    timed = pages.select({name for one in roles for name in one.columns()}) if roles else pages.joined
    found = {(one.slice, one.metric): one for one in quantiles(timed, list(roles), unit, looks.level, sliced=True)}
    for part in parts:
        for name in users.arms[1:]:
            for metric, role in roles.items():
                base, other = (found.get((slice_of(arm, part), metric)) for arm in (users.arms[0], name))
                if base is None or other is None or math.isnan(base.error + other.error):
                    continue
                value, error = other.value - base.value, math.hypot(base.error, other.error)
                made = AdjustedDifference(value, error, 0.0, 0.0, base.value, base.error, -(base.error**2))
                yield arm_difference((metric, role, name, part), (base, other), made, users, looks, math.nan)


def _earlier(first: Arm, second: Arm) -> float:
    """Give the p-value of a difference that was there before anybody was exposed; NaN where nothing is known of it."""
    if first.before is None or second.before is None:
        return math.nan
    error = math.hypot(first.before.error, second.before.error)
    return 2.0 * _NORMAL.cdf(-abs(second.before.value - first.before.value) / error) if error > 0 else math.nan


def corrected(made: Sequence[ArmDifference], correction: str) -> list[ArmDifference]:
    """Allow for how many metrics were looked at that nobody declared."""
    others = [one.difference.p for one in made if one.role == "other"]
    p = iter(adjust(others, correction).tolist() if others else [])
    return [replace(one, p=next(p)) if one.role == "other" else one for one in made]


def interactions(made: Sequence[ArmDifference]) -> list[Interaction]:
    """Test for each metric and arm whether its differences differ by slice, where two slices or more can be told."""
    from scipy.special import gammaincc

    groups: dict[tuple[OnlineMetric, str], list[AdjustedDifference]] = {}
    for one in made:
        if one.adjusted.error > 0:
            groups.setdefault((one.metric, one.arm), []).append(one.adjusted)
    tests: list[Interaction] = []
    for (metric, arm), group in groups.items():
        if len(group) < 2:
            continue
        weights = [1.0 / one.error**2 for one in group]
        mean = sum(w * one.value for w, one in zip(weights, group, strict=True)) / sum(weights)
        q = sum(w * (one.value - mean) ** 2 for w, one in zip(weights, group, strict=True))
        tests.append(Interaction(metric, arm, q, float(gammaincc((len(group) - 1) / 2.0, q / 2.0)), len(group)))
    return tests


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
    if broken := (*users.broken, *_verdict_earlier(declared)):
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


def _verdict_earlier(declared: Sequence[ArmDifference]) -> list[str]:
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
