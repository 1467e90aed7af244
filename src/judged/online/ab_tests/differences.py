"""Differences between the arms of an A/B test, adjusted for pre-exposure behavior (CUPED), and verdicts on arms."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from judged.online.ab_tests.assignment import BROKEN_P, Assignment, slice_of
from judged.online.differences import difference_format
from judged.online.estimation.online_metrics import moments, ratio_sums, ratios, shared_products
from judged.online.estimation.sums import UnitSums, quantiles, unit_sums
from judged.online.layout import percent
from judged.online.metrics import OnlineMetric
from judged.online.statistics.allocation import critical_value, e_value, prior_size
from judged.online.statistics.users import NO_RELATIVE, AdjustedDifference, Arm, RelativeDifference, adjusted_difference
from judged.results import P_VALUE, listed
from judged.results.decimals import counted
from judged.stats.correction import adjust
from judged.stats.ratio import RatioDifference, correlation, student_quantiles
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from judged.online.estimation.online_metrics import Unit
    from judged.online.facts.pages import PageFacts
    from judged.online.layout import OnlineEstimate
    from judged.results.headline import Status
    from judged.stats.sufficiency import Insufficiency


Role: TypeAlias = Literal["primary", "guardrail", "other"]
EQUAL_USERS = 50
"""Minimum effective number of users in each arm: on a published log where 215 users have an effective number of 44,
10% of random splits differ significantly at the 5% level."""
_NORMAL = NormalDist()
_WINSORIZED_SUFFIX, _WINSORIZATION_QUANTILE = " (winsorized)", 0.99


@dataclass(frozen=True)
class ArmDifference:
    """Difference of one metric between an arm and the baseline.

    Parameters
    ----------
    metric, role, arm, slice_name
        Metric (with its declared direction), its role, the arm, and the slice; "" for all pages.
    baseline, other
        Estimates of the baseline and of the arm, with fixed-sample intervals.
    difference
        Arm minus baseline, adjusted for the time before exposure, with an interval and a p-value that are valid on any
        day or for a fixed sample (see `Inference`). NaN if there is not enough data.
    adjusted
        The same with its standard error and the ratio that it is relative to.
    critical
        Half the width of the interval in standard errors.
    chance_better
        Probability that the arm is better, under a flat prior and for a fixed sample: a summary, not a test. NaN for a
        metric without a direction.
    p
        p-value, adjusted for the number of metrics that were not declared; NaN without an interval.
    p_before
        p-value of the difference before exposure; NaN without data from before.
    effective_users
        Effective number of users (Kish) in the smaller arm. If it is small, intervals are too narrow and p-values too
        small.
    level
        Confidence level of the intervals.
    """

    metric: OnlineMetric
    role: Role
    arm: str
    slice_name: str
    baseline: OnlineEstimate
    other: OnlineEstimate
    difference: RatioDifference
    adjusted: AdjustedDifference
    critical: float
    chance_better: float
    p: float
    p_before: float
    effective_users: float = math.inf
    level: float = 0.95

    @property
    def relative(self) -> RelativeDifference:
        """Difference as a share of the absolute value of the baseline."""
        return NO_RELATIVE if math.isnan(self.difference.low) else self.adjusted.relative(self.critical)

    @property
    def insufficiency(self) -> Insufficiency | None:
        """Reason why there is not enough data for a verdict; None if there is enough."""
        return insufficiency(
            min(self.baseline.units, self.other.units),
            "verdict",
            variance=self.adjusted.error,
            effective_units=self.effective_users,
            min_effective_units=EQUAL_USERS,
        )

    @property
    def status(self) -> Status:
        """Whether the arm is significantly better or worse; ``info``: different, without a preferred direction."""
        if self.insufficiency is not None or math.isnan(self.p):
            return "unknown"
        if self.p > 1.0 - self.level:
            return "same"
        if not self.metric.better:
            return "info"
        return "better" if self.metric.better * self.difference.value > 0 else "worse"

    @property
    def benefit(self) -> tuple[float, float]:
        """Interval of the difference, with a sign such that more is better; NaN for a metric without a direction."""
        return _benefit_interval(self.metric, self.difference.low, self.difference.high)

    @property
    def relative_benefit(self) -> tuple[float, float]:
        """Interval of the relative difference, with a sign such that more is better."""
        return _benefit_interval(self.metric, *self.relative[1:])


def _benefit_interval(metric: OnlineMetric, low: float, high: float) -> tuple[float, float]:
    if not metric.better:
        return math.nan, math.nan
    return (low, high) if metric.better > 0 else (-high, -low)


@dataclass(frozen=True)
class Inference:
    """How intervals and p-values are computed: always valid (on any day), or for a fixed sample.

    Parameters
    ----------
    level
        Level of the intervals.
    any_day
        Whether they are valid on all days together.
    expected
        Number of users for which always-valid intervals are narrowest.
    arms
        Number of arms compared with the baseline. Intervals and p-values hold for all of them together (Bonferroni).
    """

    level: float = 0.95
    any_day: bool = True
    expected: int = 5000
    arms: int = 1

    def critical(self, users: float, df: float = math.inf) -> float:
        """Return half the width of an interval in standard errors.

        `df`: degrees of freedom of Student's t, for a fixed sample.
        """
        # Two estimated means leave users - 2 degrees of freedom.
        if self.any_day:
            return critical_value(users, max(users - 2.0, 1.0), self._g, self._alpha)
        if math.isfinite(df):
            return float(student_quantiles(1.0 - self._alpha / 2.0, np.array(df)))
        return _NORMAL.inv_cdf(1.0 - self._alpha / 2.0)

    def p_value(self, t: float, users: float, df: float = math.inf) -> float:
        """Return the p-value of a difference of `t` standard errors."""
        if self.any_day:
            # By Ville's inequality, the inverse of an e-value is a p-value at any time.
            p = 1.0 / e_value(t, users, max(users - 2.0, 1.0), self._g)
        elif math.isfinite(df):
            from scipy.special import stdtr

            p = 2.0 * float(stdtr(max(df, 1.0), -abs(t)))
        else:
            p = 2.0 * _NORMAL.cdf(-abs(t))
        # Bonferroni over the arms, like `_alpha`.
        return min(1.0, self.arms * p)

    @property
    def _alpha(self) -> float:
        return (1.0 - self.level) / self.arms

    @property
    def _g(self) -> float:
        return prior_size(self.expected, self._alpha)


class Interaction(NamedTuple):
    """Cochran's Q, over slices, of the differences of one metric in one arm; its p-value; the number of slices."""

    metric: OnlineMetric
    arm: str
    q: float
    p: float
    slices: int


class ABDesign(NamedTuple):
    """Arms of the users, type of inference, and unit of independence."""

    assignment: Assignment
    inference: Inference
    unit: Unit


def arm_differences(
    pages: PageFacts, roles: Mapping[OnlineMetric, Role], design: ABDesign, slices: Sequence[str] = ("",)
) -> list[ArmDifference]:
    """Compare every arm with the baseline, by slice, arm, and metric; `Exposure.pages` names the slices of pages.

    Sums of money are compared twice: as logged, and with each user's spend winsorized, because a few very large sums
    determine the width of the interval. Quantiles are not adjusted for the time before exposure.
    """
    differences: list[ArmDifference] = []
    ratio_metrics = [metric for metric in roles if metric.kind == "ratio"]
    for sums, metrics in unit_sums(pages, ratio_metrics, design.unit, sliced=True):
        differences += _differences(sums, {metric: roles[metric] for metric in metrics}, design, slices)
        for metric in metrics:
            if metric.unit == "money":
                winsorized = replace(metric, name=metric.name + _WINSORIZED_SUFFIX)
                differences += _differences(_winsorized(sums, metric), {winsorized: "other"}, design, slices)
    differences += _quantiles(pages, roles, design, slices)
    order = {str(metric): i for i, metric in enumerate(roles)}

    def sort_key(row: ArmDifference) -> tuple[int, int, int]:
        metric = str(row.metric).replace(_WINSORIZED_SUFFIX, "")
        return slices.index(row.slice_name), design.assignment.arms.index(row.arm), order[metric]

    return sorted(differences, key=sort_key)


def _differences(
    sums: UnitSums, roles: Mapping[OnlineMetric, Role], design: ABDesign, slices: Sequence[str]
) -> Iterator[ArmDifference]:
    (assignment, inference, unit), metrics = design, list(roles)
    rows = moments(sums, metrics)
    estimates = {(estimate.slice, estimate.metric): estimate for estimate in ratios(sums, metrics, inference.level)}
    sums_by_slice = {metric: ratio_sums(rows, metric) for metric in metrics}
    baseline = assignment.arms[0]
    for slice_name in slices:
        sums_of_arms: dict[str, dict[OnlineMetric, Arm]] = {}
        for arm in assignment.arms:
            key, key_before = slice_of(arm, slice_name), slice_of(arm, slice_name, before=True)
            has_before = any(key_before in sums_by_slice[metric] for metric in metrics)
            # The covariance of a user's behavior before and after needs the products over the users that have both.
            products = shared_products(sums, metrics, unit, key_before, key) if has_before else {}
            sums_of_arms[arm] = {}
            for metric in metrics:
                after, before = sums_by_slice[metric].get(key), sums_by_slice[metric].get(key_before)
                if after is None or not after.d:
                    continue
                if before and (before.units < 2 or not before.d):
                    before = None  # one user has no variance, and 0 as denominator no ratio
                rho = correlation(before, after, *products[metric]) if before else 0.0
                sums_of_arms[arm][metric] = Arm(after, before, rho)
        for arm in assignment.arms[1:]:
            for metric in metrics:
                if metric not in sums_of_arms[baseline] or metric not in sums_of_arms[arm]:
                    continue
                pair = sums_of_arms[baseline][metric], sums_of_arms[arm][metric]
                keys = slice_of(baseline, slice_name), slice_of(arm, slice_name)
                identity = metric, roles[metric], arm, slice_name
                arm_estimates = estimates[keys[0], metric], estimates[keys[1], metric]
                adjusted, p_before = adjusted_difference(*pair), _p_before(*pair)
                yield arm_difference(identity, arm_estimates, adjusted, assignment, inference, p_before)


def arm_difference(
    identity: tuple[OnlineMetric, Role, str, str],
    estimates: tuple[OnlineEstimate, OnlineEstimate],
    adjusted: AdjustedDifference,
    assignment: Assignment,
    inference: Inference,
    p_before: float,
    effective_users: float | None = None,
) -> ArmDifference:
    """Build an `ArmDifference`. Its interval and p-value are NaN if there is not enough data.

    `identity`: metric, role, arm, slice. `effective_users`: in the smaller arm; None: those of the two estimates.
    """
    metric, _, arm, slice_name = identity
    units, effective = zip(*((estimate.units, estimate.effective_units) for estimate in estimates), strict=True)
    if effective_users is not None:
        effective = effective_users, effective_users
    effective_users, df = min(effective), sum(effective) - 2.0
    # Without slices, all users of both arms count, also those on whom the metric has no value.
    users = sum(units) if slice_name else assignment.users[assignment.arms[0]] + assignment.users[arm]
    critical = inference.critical(users, df)
    low = high = p = chance_better = math.nan
    if not insufficiency(min(units), variance=adjusted.error) and math.isfinite(critical):
        t, half_width = adjusted.value / adjusted.error, critical * adjusted.error
        low, high, p = adjusted.value - half_width, adjusted.value + half_width, inference.p_value(t, users, df)
        chance_better = _NORMAL.cdf(metric.better * t) if metric.better else math.nan
    difference = RatioDifference(adjusted.value, low, high, p)
    statistics = critical, chance_better, p, p_before, effective_users
    return ArmDifference(*identity, *estimates, difference, adjusted, *statistics, inference.level)


def _winsorized(sums: UnitSums, metric: OnlineMetric) -> UnitSums:
    """Winsorize each unit's spend at the 99th percentile of positive spend, pooled over arms and over time."""
    name = metric.columns()[0]
    spend = sums.column(name)
    # One limit for both arms and both times: separate limits would bias the difference.
    quantile = f"quantile_disc({spend}, {_WINSORIZATION_QUANTILE}) AS cap"
    cap = sums.table.engine.rows(f"SELECT {quantile} FROM {sums.table} WHERE {spend} > 0")[0]["cap"]
    return replace(sums, limits={name: int(cap or 0)})


def _quantiles(
    pages: PageFacts, roles: Mapping[OnlineMetric, Role], design: ABDesign, slices: Sequence[str]
) -> Iterator[ArmDifference]:
    assignment, inference, unit = design
    metrics = [metric for metric in roles if metric.kind == "quantile"]
    rows = pages.select({column for metric in metrics for column in metric.columns()}) if metrics else pages.joined
    rows_by_slice = quantiles(rows, metrics, unit, inference.level, sliced=True)
    estimates = {(estimate.slice, estimate.metric): estimate for estimate in rows_by_slice}
    for slice_name in slices:
        for arm in assignment.arms[1:]:
            keys = slice_of(assignment.arms[0], slice_name), slice_of(arm, slice_name)
            for metric in metrics:
                baseline, other = (estimates.get((key, metric)) for key in keys)
                if baseline is None or other is None or math.isnan(baseline.error + other.error):
                    continue
                # Arms have no user in common, so the variances of their quantiles add up.
                error, variance = math.hypot(baseline.error, other.error), baseline.error**2
                value = other.value - baseline.value
                adjusted = AdjustedDifference(value, error, 0.0, 0.0, baseline.value, baseline.error, -variance)
                identity = metric, roles[metric], arm, slice_name
                yield arm_difference(identity, (baseline, other), adjusted, assignment, inference, math.nan)


def _p_before(first: Arm, second: Arm) -> float:
    """Return the p-value of the difference before exposure; NaN if an arm has no data from before."""
    if first.before is None or second.before is None:
        return math.nan
    error = math.hypot(first.before.error, second.before.error)
    return 2.0 * _NORMAL.cdf(-abs(second.before.value - first.before.value) / error) if error > 0 else math.nan


def with_correction(differences: Sequence[ArmDifference], correction: str) -> list[ArmDifference]:
    """Adjust the p-values of all metrics that were not declared for their number."""
    others = [row.difference.p for row in differences if row.role == "other"]
    adjusted = iter(adjust(others, correction).tolist() if others else [])
    return [replace(row, p=next(adjusted)) if row.role == "other" else row for row in differences]


def slice_interactions(differences: Sequence[ArmDifference]) -> list[Interaction]:
    """Test, by metric and arm, whether the differences vary between slices; at least two slices are required."""
    from scipy.special import gammaincc

    groups: dict[tuple[OnlineMetric, str], list[AdjustedDifference]] = {}
    for row in differences:
        if row.adjusted.error > 0:
            groups.setdefault((row.metric, row.arm), []).append(row.adjusted)
    interactions: list[Interaction] = []
    for (metric, arm), group in groups.items():
        if len(group) < 2:
            continue
        # Q of Cochran (Biometrics 1954) = sum w (d - mean)**2 with w = 1 / SE**2: chi-squared with k - 1 degrees of
        # freedom if the k differences d are equal.
        weights, values = np.array([[1.0 / adjusted.error**2, adjusted.value] for adjusted in group]).T
        q = float(weights @ (values - np.average(values, weights=weights)) ** 2)
        p = float(gammaincc((len(group) - 1) / 2.0, q / 2.0))
        interactions.append(Interaction(metric, arm, q, p, len(group)))
    return interactions


Decision: TypeAlias = Literal["ship", "do not ship", "keep running", "invalid"]
Loss: TypeAlias = Literal["harmed", "safe", "open"]


@dataclass(frozen=True)
class Verdict:
    """Decision on one arm.

    Parameters
    ----------
    arm
        The arm.
    decision
        The decision.
    reasons
        Sentences with its reasons.
    days
        Estimated number of days until an open decision; NaN if unknown.
    status
        ``better`` and ``worse``: of the metric that decides; ``same``: no significant difference in the primary metric;
        ``unknown``: not tested, not enough data, or a guardrail may be harmed.
    metric
        Name of the metric that the decision is based on; empty: none, for example if the test is not valid.
    """

    arm: str
    decision: Decision
    reasons: tuple[str, ...]
    days: float = math.nan
    status: Status = "unknown"
    metric: str = ""

    def __str__(self) -> str:
        decision = self.decision.replace("running", "running the test")
        return f"{self.arm}: {decision}. {' '.join(self.reasons)}"


def verdict(
    arm: str, differences: Sequence[ArmDifference], assignment: Assignment, margin: float, min_users: int
) -> Verdict:
    """Decide on one arm.

    The difference decides whether a metric is better or worse; the relative difference, whether it lost more than
    `margin`, a share of the baseline.
    """
    primary = [row for row in differences if row.role == "primary"]
    guardrails = [row for row in differences if row.role == "guardrail"]
    declared = [*primary, *guardrails]
    # The order of these checks matters: an invalid test has no verdict, however large its differences are.
    if invalid := (*assignment.invalid_reasons, *_invalid_before(declared)):
        return Verdict(arm, "invalid", (f"The test is not valid: {listed(invalid)}.",))
    smaller_arm = min(assignment.users[assignment.arms[0]], assignment.users[arm])
    if too_few := insufficiency(smaller_arm, "verdict", min_units=min_users):
        missing, per_day = len(assignment.arms) * (min_users - smaller_arm), assignment.users_per_day
        days_left = missing / per_day if per_day else math.nan
        users = counted(smaller_arm, assignment.unit)
        reason = f"Not enough data: the smaller arm has {users}, at least {int(too_few.required):,} are required."
        return Verdict(arm, "keep running", (reason,), days_left)
    if not primary:
        return Verdict(arm, "keep running", ("The log does not support any metric that can be the primary metric.",))
    for row in declared:
        if insufficient := row.insufficiency:
            reason = f"{row.metric}: {insufficient.sentence(assignment.unit)}"
            return Verdict(arm, "keep running", (reason,), metric=str(row.metric))
    if math.isnan(primary[0].difference.low):
        reason = f"{primary[0].metric} has no confidence interval yet."
        return Verdict(arm, "keep running", (reason,), metric=str(primary[0].metric))
    # Guardrails come before the primary metric: a gain does not make up for a harmed guardrail.
    losses = {row.metric: loss(row, margin) for row in guardrails}
    if harmed := [str(metric) for metric, state in losses.items() if state == "harmed"]:
        reason = f"{listed(harmed)} got worse by more than {percent(margin)} of the baseline."
        return Verdict(arm, "do not ship", (reason,), status="worse", metric=harmed[0])
    undecided = [row for row in guardrails if losses[row.metric] == "open"]
    return _verdict_by_primary(primary[0], undecided, assignment, margin)


def loss(row: ArmDifference, margin: float) -> Loss:
    """Return whether the loss of a metric exceeds a share of its baseline: surely, surely not, or undecided.

    Without a relative difference, the loss is compared with the margin of the largest baseline that the data allow: a
    larger loss also exceeds the margin of every smaller baseline.
    """
    low, high = row.benefit
    relative_low, relative_high = row.relative_benefit
    if math.isnan(relative_low):
        harmed = high < -margin * _largest_baseline(row)
        return "harmed" if harmed else "safe" if low >= 0 else "open"
    return "harmed" if relative_high < -margin else "safe" if relative_low > -margin else "open"


def _largest_baseline(row: ArmDifference) -> float:
    """Return the largest absolute value inside the two intervals of the baseline."""
    limit = abs(row.adjusted.base) + row.critical * row.adjusted.base_error
    sizes = limit, abs(row.baseline.low), abs(row.baseline.high)
    return max((size for size in sizes if not math.isnan(size)), default=math.nan)


def _invalid_before(declared: Sequence[ArmDifference]) -> list[str]:
    tested = [row for row in declared if not math.isnan(row.p_before)]
    different = [str(row.metric) for row in tested if row.p_before < BROKEN_P / len(tested)]
    return [f"{listed(different)} differed between the arms before exposure"] if different else []


def _verdict_by_primary(
    primary: ArmDifference, undecided: Sequence[ArmDifference], assignment: Assignment, margin: float
) -> Verdict:
    """Decide on an arm of which no guardrail is harmed; `undecided`: guardrails that may be."""
    arm, metric, result = primary.arm, primary.metric, _result_text(primary, assignment.unit)
    low, high = primary.benefit
    relative_low, relative_high = primary.relative_benefit
    name = str(metric)
    if high < 0:
        reason = f"{metric} is significantly worse: {result}."
        return Verdict(arm, "do not ship", (reason,), status="worse", metric=name)
    # Not significant, and too small to matter even at the end of the interval: more data would not change that.
    if low <= 0 and max(-relative_low, relative_high) < margin:
        reason = f"The difference in {metric} is smaller than {percent(margin)} of the baseline: {result}."
        return Verdict(arm, "do not ship", (reason,), status="same", metric=name)
    if low > 0 and not undecided:
        reason = f"{metric} is significantly better: {result}."
        return Verdict(arm, "ship", (reason,), status="better", metric=name)
    reasons = [f"No significant difference in {metric}: {result}."] if low <= 0 else []
    if undecided:
        names = listed([str(row.metric) for row in undecided])
        reasons.append(f"{names} may be worse by more than {percent(margin)} of the baseline.")
    open_rows = [*([primary] if low <= 0 else []), *undecided]
    has_ci = [row for row in open_rows if not math.isnan(row.difference.low)]
    if unscaled := [str(row.metric) for row in has_ci if math.isnan(row.relative.value)]:
        reasons.append(
            f"{listed(unscaled)}: the relative difference is undefined, because the CI of the baseline includes 0."
        )
    days = _days_left(open_rows, assignment, margin)
    if math.isfinite(days) and days > 0:
        # At this width, a true difference of the margin has a power of only about 50%.
        rate = f"{assignment.users_per_day:,.0f} {assignment.unit}s per day"
        width = f"The CI of the relative difference narrows to +-{percent(margin)}"
        reasons.append(f"{width} in about {math.ceil(days):,} more days at {rate}.")
    # A better primary metric has no status while a guardrail may be harmed.
    status, name = ("same", name) if low <= 0 else ("unknown", str(undecided[0].metric))
    return Verdict(arm, "keep running", tuple(reasons), days, status, name)


def _days_left(open_rows: Sequence[ArmDifference], assignment: Assignment, margin: float) -> float:
    """Estimate the days until half the width of each relative interval is at most `margin`."""
    scaled = [row for row in open_rows if not math.isnan(row.relative.value)]
    half_widths = [row.critical * row.adjusted.relative_error for row in scaled]
    if not (assignment.users_per_day and half_widths and margin):
        return math.nan
    growth = (max(half_widths) / margin) ** 2  # the width shrinks with the square root of the number of users
    return max(assignment.total_users * (growth - 1.0), 0.0) / assignment.users_per_day


def _result_text(row: ArmDifference, unit: str) -> str:
    show, estimate = difference_format(row.other), row.difference
    low, high = map(show.limit or show.write, (estimate.low, estimate.high))
    interval = f"{percent(row.level)} CI [{low}, {high}]"
    n = row.baseline.units + row.other.units
    return f"{show.write(estimate.value)}, {interval}, p = {P_VALUE.write(estimate.p)}, n = {n:,} {unit}s"
