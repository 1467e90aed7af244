"""What differs between the arms of a test, adjusted for the time before, with intervals that hold at every look."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from judged.online.abtest.assignment import Assignment, slice_of
from judged.online.estimation.moments import moments, ratio_sums, ratios, shared_products
from judged.online.estimation.quantiles import quantiles
from judged.online.estimation.sums import UnitSums, unit_sums
from judged.online.metrics import OnlineMetric
from judged.stats.adjusted_difference import AdjustedDifference, Arm, adjusted_difference
from judged.stats.always_valid import critical_value, e_value, prior_size
from judged.stats.correction import adjust
from judged.stats.ratio_difference import RatioDifference, correlation

if TYPE_CHECKING:
    from judged.online.estimation.online_metrics import Unit
    from judged.online.facts.pages import PageFacts
    from judged.online.numbers import OnlineEstimate

Role: TypeAlias = Literal["primary", "guardrail", "other"]
_NORMAL = NormalDist()
_CUT, _SPENDERS = " (winsorised)", 0.99


@dataclass(frozen=True)
class ArmDifference:
    """One metric of one arm against the baseline.

    Parameters
    ----------
    metric, role, arm, part
        Which, what it counts for, of which arm, and of which slice; empty for all pages.
    baseline, other
        Its estimates in both arms.
    difference
        The arm less the baseline, adjusted for the time before, with its interval and p-value; where looks are allowed
        on any day, they hold on all of them.
    adjusted
        The same with its standard error, and relative to the baseline.
    critical
        Half the interval's width in standard errors.
    better
        The chance that the arm's metric is better, by a flat prior: a summary, no test.
    p
        Adjusted for the metrics that were not declared; NaN where there is none.
    earlier
        The p-value of a difference before exposure; NaN where nothing is known of it.
    equal
        As many users with an equal part in the denominator would tell as much, in the arm that has fewer: intervals and
        p-values are too sure where they are few.
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
    better: float
    p: float
    earlier: float
    equal: float = math.inf

    @property
    def gain(self) -> tuple[float, float]:
        """The interval of the relative difference, turned so that more is better."""
        ends = self.adjusted.relative_interval(self.critical)
        return ends if self.metric.better >= 0 else (-ends[1], -ends[0])


@dataclass(frozen=True)
class Looks:
    """When one may look: on any day, or on one that was set before; and what follows for intervals.

    Parameters
    ----------
    level
        Of the intervals.
    any_day
        Whether they hold on all days together.
    expected
        The number of users at which those that do are narrowest.
    arms
        So many are compared with the baseline: intervals hold for all of them together (Bonferroni), and so p-values.
    """

    level: float = 0.95
    any_day: bool = True
    expected: int = 5000
    arms: int = 1

    def critical(self, users: float) -> float:
        """Give half the width of an interval, in standard errors."""
        if self.any_day:
            return critical_value(users, max(users - 2.0, 1.0), self._g, self._alpha)
        return _NORMAL.inv_cdf(1.0 - self._alpha / 2.0)

    def p(self, t: float, users: float) -> float:
        """Give the p-value of a difference of t standard errors."""
        p = 1.0 / e_value(t, users, max(users - 2.0, 1.0), self._g) if self.any_day else 2.0 * _NORMAL.cdf(-abs(t))
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

    Sums of money are compared a second time with what a user spends at most as one of a hundred spenders does: the few
    largest sums decide how wide an interval is, and less what it says. Quantiles are compared as they stand.
    """
    made: list[ArmDifference] = []
    for sums, of in unit_sums(pages, [one for one in roles if one.kind == "ratio"], unit, sliced=True):
        made += _differences(sums, of, unit, users, roles, looks, parts)
        for metric in (one for one in of if one.unit == "money"):
            cut = replace(metric, name=metric.name + _CUT)
            made += _differences(_winsorised(sums, metric), [cut], unit, users, {cut: "other"}, looks, parts)
    made += _quantiles(pages, [one for one in roles if one.kind == "quantile"], unit, users, roles, looks, parts)
    order = {str(metric): at for at, metric in enumerate(roles)}
    return sorted(
        made,
        key=lambda one: (parts.index(one.part), users.arms.index(one.arm), order[str(one.metric).replace(_CUT, "")]),
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
                sides_ = arms[first][metric], arms[name][metric]
                both = estimates[slice_of(first, part), metric], estimates[slice_of(name, part), metric]
                made = adjusted_difference(*sides_)
                told = _told(metric, roles[metric], name, part, both, made, users, looks, _earlier(*sides_))
                yield replace(told, equal=min(one.after.d**2 / one.after.dd for one in sides_))


def _told(
    metric: OnlineMetric,
    role: Role,
    arm: str,
    part: str,
    both: tuple[OnlineEstimate, OnlineEstimate],
    made: AdjustedDifference,
    users: Assignment,
    looks: Looks,
    earlier: float,
) -> ArmDifference:
    """Give a difference its interval and p-value."""
    number = sum(one.units for one in both) if part else users.users[users.arms[0]] + users.users[arm]
    critical = looks.critical(number)
    told = made.error > 0 and math.isfinite(critical)
    t, half = (made.value / made.error, critical * made.error) if told else (0.0, math.nan)
    p = looks.p(t, number) if told else math.nan
    better = _NORMAL.cdf(-t if metric.better < 0 else t)
    difference = RatioDifference(made.value, made.value - half, made.value + half, p)
    return ArmDifference(metric, role, arm, part, *both, difference, made, critical, better, p, earlier)


def _winsorised(sums: UnitSums, metric: OnlineMetric) -> UnitSums:
    """Cut each unit's money at what one of a hundred spenders spends more than, before and after, in all arms."""
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
                relative = value / base.value if base.value > 0 else math.nan
                told = math.hypot(other.error, other.value / base.value * base.error) / base.value
                made = AdjustedDifference(
                    value, error, 0.0, 0.0, relative, told, base.value, base.error, -(base.error**2)
                )
                yield _told(metric, roles[metric], name, part, (base, other), made, users, looks, math.nan)


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
