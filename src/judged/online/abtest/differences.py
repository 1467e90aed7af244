"""What differs between the arms of a test, adjusted for the time before, with intervals that hold at every look."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from judged.online.abtest.assignment import Assignment, slice_of
from judged.online.estimation.moments import moments, ratio_sums, ratios, shared_products
from judged.online.estimation.quantiles import quantiles
from judged.online.estimation.sums import UnitSums, unit_sums
from judged.online.metrics import OnlineMetric
from judged.stats.adjusted_difference import (
    NO_RELATIVE,
    AdjustedDifference,
    Arm,
    RelativeDifference,
    adjusted_difference,
)
from judged.stats.always_valid import critical_value, e_value, prior_size
from judged.stats.correction import adjust
from judged.stats.ratio import student_quantiles
from judged.stats.ratio_difference import RatioDifference, correlation
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from judged.online.estimation.online_metrics import Unit
    from judged.online.facts.pages import PageFacts
    from judged.online.numbers import OnlineEstimate

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


def arm_differences(
    pages: PageFacts,
    roles: Mapping[OnlineMetric, Role],
    unit: Unit,
    users: Assignment,
    looks: Looks,
    parts: Sequence[str] = ("",),
) -> list[ArmDifference]:
    """Compare every arm with the baseline, by part, arm, and metric; pages are sliced by `Assignment.pages`.

    Sums of money are compared a second time with each user's spend winsorized: the few largest sums decide how wide an
    interval is. Quantiles are compared without adjustment.
    """
    made: list[ArmDifference] = []
    for sums, of in unit_sums(pages, [one for one in roles if one.kind == "ratio"], unit, sliced=True):
        made += _differences(sums, of, unit, users, roles, looks, parts)
        for metric in (one for one in of if one.unit == "money"):
            cut = replace(metric, name=metric.name + _WINSORIZED)
            made += _differences(_winsorized(sums, metric), [cut], unit, users, {cut: "other"}, looks, parts)
    made += _quantiles(pages, [one for one in roles if one.kind == "quantile"], unit, users, roles, looks, parts)
    order = {str(metric): at for at, metric in enumerate(roles)}
    return sorted(
        made,
        key=lambda one: (
            parts.index(one.part),
            users.arms.index(one.arm),
            order[str(one.metric).replace(_WINSORIZED, "")],
        ),
    )


def _differences(
    sums: UnitSums,
    metrics: Sequence[OnlineMetric],
    unit: Unit,
    users: Assignment,
    roles: Mapping[OnlineMetric, Role],
    looks: Looks,
    parts: Sequence[str],
) -> Iterator[ArmDifference]:
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
    pages: PageFacts,
    metrics: Sequence[OnlineMetric],
    unit: Unit,
    users: Assignment,
    roles: Mapping[OnlineMetric, Role],
    looks: Looks,
    parts: Sequence[str],
) -> Iterator[ArmDifference]:
    """Compare quantiles of the time after exposure: arms have no user in common, so their errors add up."""
    timed = pages.select({name for one in metrics for name in one.columns()}) if metrics else pages.joined
    found = {(one.slice, one.metric): one for one in quantiles(timed, metrics, unit, looks.level, sliced=True)}
    for part in parts:
        for name in users.arms[1:]:
            for metric in metrics:
                both = (found.get((slice_of(users.arms[0], part), metric)), found.get((slice_of(name, part), metric)))
                if both[0] is None or both[1] is None or math.isnan(both[0].error + both[1].error):
                    continue
                base, other = both[0], both[1]
                value, error = other.value - base.value, math.hypot(base.error, other.error)
                made = AdjustedDifference(value, error, 0.0, 0.0, base.value, base.error, -(base.error**2))
                yield arm_difference((metric, roles[metric], name, part), (base, other), made, users, looks, math.nan)


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
