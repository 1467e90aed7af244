"""`abtest`: comparison of rankers on separate users, with intervals that are valid on any day."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from judged.errors import InputError
from judged.online.ab_tests.assignment import Assignment, read_assignment
from judged.online.ab_tests.differences import (
    ABDesign,
    ArmDifference,
    Inference,
    Interaction,
    Role,
    Verdict,
    arm_difference,
    arm_differences,
    slice_interactions,
    verdict,
    with_correction,
)
from judged.online.differences import comparable_metrics, difference_columns, difference_format, headline_metrics
from judged.online.estimation.sums import metric_pages
from judged.online.facts.pages import FactSettings
from judged.online.findings import estimated_dwell_notes
from judged.online.layout import clip, estimate_column, percent, unit_show
from judged.online.log import LogAnswer, answer_fields, validate
from judged.online.metrics import OnlineMetric, online_metric, online_metrics_named
from judged.online.slicing import slice_pages
from judged.online.statistics.users import AdjustedDifference
from judged.results import (
    ANY,
    COUNT,
    P_VALUE,
    SHARE,
    TEXT,
    Axis,
    Chart,
    Column,
    Headline,
    ReferenceLine,
    Sentences,
    Table,
    columns_of,
    counted,
)
from judged.results.blocks import Note
from judged.results.spelling import one_of
from judged.stats.correction import CORRECTIONS

if TYPE_CHECKING:
    from judged.online.estimation.online_metrics import Unit
    from judged.online.log import InteractionLog
    from judged.results import Block
    from judged.results.headline import Status
    from judged.results.types import Floats


MIN_USERS = 30
"""Minimum number of users in each arm in a period: with fewer, standard errors of ratios are not reliable."""


def stratified(
    differences: Sequence[ArmDifference],
    by_period: Sequence[ArmDifference],
    assignment: Assignment,
    inference: Inference,
) -> Iterator[ArmDifference]:
    """Yield the differences stratified by period; NaN if no period has `MIN_USERS` users in both arms.

    Parameters
    ----------
    differences
        Differences over all users.
    by_period
        The same within periods of constant allocation, named by `slice_name`.
    assignment, inference
        As for `judged.online.ab_tests.differences.arm_difference`.
    """
    for row in differences:
        identity = (row.metric, row.role, row.arm, row.slice_name)
        estimates = row.baseline, row.other
        periods = [
            period
            for period in by_period
            if (period.metric, period.arm) == (row.metric, row.arm)
            and min(period.baseline.units, period.other.units) >= MIN_USERS
            and period.adjusted.error > 0
        ]
        if not periods:
            no_difference = AdjustedDifference(math.nan, math.nan, 0.0, 0.0)
            p_before, effective = row.p_before, row.effective_users
            yield arm_difference(identity, estimates, no_difference, assignment, inference, p_before, effective)
            continue
        pooled, shares = _mean(periods)
        # Welch-Satterthwaite: (sum v)**2 / sum(v**2 / n) for the variances v of periods with n effective users.
        effective_users = 1.0 / sum(shares**2 / np.array([period.effective_users for period in periods]))
        p_values = [period.p_before for period in periods if not math.isnan(period.p_before)]
        p_before = min(1.0, len(p_values) * min(p_values)) if p_values else math.nan  # Bonferroni
        yield arm_difference(identity, estimates, pooled, assignment, inference, p_before, effective_users)


def _mean(periods: Sequence[ArmDifference]) -> tuple[AdjustedDifference, Floats]:
    """Return the weighted mean of the differences of periods, and the share of each period in its variance.

    Weights are n_0 n_1 / (n_0 + n_1) for the denominators n_0 and n_1 of the arms, as in a Cochran-Mantel-Haenszel
    estimate of a risk difference (Cochran, Biometrics 1954).
    """
    sizes = np.array([1.0 / (1.0 / period.baseline.denominator + 1.0 / period.other.denominator) for period in periods])
    weights = sizes / sizes.sum()
    columns = np.array([period.adjusted for period in periods]).T
    value, error, theta, reduction, base, base_error, base_covariance = columns
    # Periods have no user in common, so the variances of their differences add up.
    variances = (weights * error) ** 2
    unadjusted = (variances / (1.0 - reduction)).sum()
    pooled = AdjustedDifference(
        value=float(weights @ value), error=math.sqrt(variances.sum()), theta=float(weights @ theta),
        reduction=float(1.0 - variances.sum() / unadjusted), base=float(weights @ base),
        base_error=float(np.linalg.norm(weights * base_error)), base_covariance=float(weights**2 @ base_covariance),
    )  # fmt: skip
    return pooled, variances / variances.sum()


# No warning about unequal activity from this share of the users, or this number of effective users, on.
_EFFECTIVE_SHARE, _EFFECTIVE_USERS = 0.75, 1000.0
_DAYS = 60  # maximum number of days after exposure in the chart
Direction: TypeAlias = Literal["more", "less"]
ANY_DAY, FIXED_SAMPLE = "anytime-valid", "fixed-sample"


@dataclass(frozen=True, eq=False, repr=False)
class ABTest(LogAnswer):
    """Result of an A/B test: its validity, the differences between its arms, and a verdict on each arm.

    Parameters
    ----------
    assignment
        Number of users in each arm, and validity checks.
    differences
        By arm, then metric: the primary metric, guardrails, all others.
    verdicts
        For each arm but the baseline.
    margin_relative
        Largest tolerable loss of a guardrail, as a share of the baseline.
    any_day
        Whether intervals and p-values of differences are valid on any day.
    by, sliced, interactions
        Slicing attribute; differences of the declared metrics by slice; tests of whether they vary between slices.
    days
        Differences of the primary metric by days since exposure: a novelty effect wears off.
    refused
        Metrics that cannot be compared, with the reason.
    """

    kind: ClassVar[str] = "abtest"
    title_format: ClassVar[str] = "A/B test: {log}"
    fact_fields: ClassVar[tuple[str, ...]] = ("margin_relative", "any_day", "by")

    assignment: Assignment
    differences: tuple[ArmDifference, ...]
    verdicts: tuple[Verdict, ...]
    margin_relative: float
    any_day: bool = True
    by: str | None = None
    sliced: tuple[ArmDifference, ...] = ()
    interactions: tuple[Interaction, ...] = ()
    days: tuple[ArmDifference, ...] = ()
    refused: tuple[tuple[OnlineMetric, str], ...] = ()

    @property
    def ships(self) -> bool:
        """Whether the verdict on some arm is to ship it."""
        return any(verdict.decision == "ship" for verdict in self.verdicts)

    @property
    def headline(self) -> Headline:
        """Decision on the first arm to ship, or on the first arm."""
        return self.headline_of(next((row for row in self.verdicts if row.decision == "ship"), self.verdicts[0]))

    def headline_of(self, verdict: Verdict) -> Headline:
        """Return the decision on an arm, and the difference in the metric that decides."""
        rows = {str(row.metric): row for row in self.differences if row.arm == verdict.arm}
        primary = next((row for row in rows.values() if row.role == "primary"), None)
        row = rows.get(verdict.metric, primary)
        sentence = self._short_sentence(verdict, primary)
        if row is None:
            return Headline(verdict.status, verdict.decision, sentence)
        has_interval = not math.isnan(row.difference.low)
        return Headline(
            verdict.status,
            verdict.decision,
            sentence,
            f"{row.metric}, {verdict.arm} - {self.assignment.arms[0]}",
            row.difference.value,
            difference_format(row.other),
            (row.difference.low, row.difference.high) if has_interval else None,
            row.level,
            reference=0.0,
        )

    def _short_sentence(self, verdict: Verdict, primary: ArmDifference | None) -> str:
        arm, metric, baseline = clip(verdict.arm), verdict.metric, clip(self.assignment.arms[0])
        limit = f"{percent(self.margin_relative)} of the baseline"
        is_primary = primary is not None and metric == str(primary.metric)
        if verdict.decision == "invalid":
            return f"The test is not valid, so there is no decision on {arm}."
        if verdict.status == "same":
            if verdict.decision == "do not ship":
                return f"The difference in {metric} between {arm} and {baseline} is smaller than {limit}."
            return f"No significant difference in {metric} between {arm} and {baseline} yet."
        if verdict.status == "unknown":
            if metric and not is_primary and primary is not None and primary.status == "better":
                return f"{primary.metric} is better, but {metric} may be worse by more than {limit}."
            users = min(self.assignment.users[name] for name in (self.assignment.arms[0], verdict.arm))
            return f"Not enough data for a decision on {arm}: {counted(users, self.unit)} in the smaller arm."
        if is_primary:
            return f"{metric} is significantly {verdict.status} in {arm} than in {baseline}."
        return f"{metric} is worse in {arm} than in {baseline} by more than {limit}."

    def blocks(self) -> tuple[Block, ...]:
        """Return the verdicts, the numbers of users, and all differences."""
        return (
            Sentences(tuple(map(str, self.verdicts))),
            self._differences("differences", "Differences between arms", self.differences),
            self._arms(),
            *self._by_slice(),
            *self._by_day(),
            self.method_block(*(f"{metric} is not compared: {reason}" for metric, reason in self.refused)),
        )

    def facts(self) -> Mapping[str, Any]:
        """Return the metadata shown with the results."""
        refused = {str(metric): reason for metric, reason in self.refused}
        return {**super().facts(), "verdicts": [vars(verdict) for verdict in self.verdicts], "refused": refused}

    def _arms(self) -> Table:
        assignment = self.assignment
        users, ratio = assignment.users, assignment.sample_ratio
        crossed = counted(assignment.crossed, self.unit)
        unfinished = counted(assignment.unfinished, self.unit)
        return Table(
            "arms",
            (Column("arm", list(users), TEXT), Column("users", list(users.values()), COUNT, f"{self.unit}s")),
            f"{self.unit.capitalize()}s by arm",
            note=f"Excluded: {crossed} with pages in several arms, and {unfinished} whose exposure window ends after"
            f" the last time in the log."
            f" First exposures span {assignment.days:.1f} days. Sample ratio mismatch: p = {ratio.p_always:.2g}"
            f" ({ANY_DAY}),"
            f" p = {ratio.p:.2g} ({FIXED_SAMPLE}). Change of allocation: p = {assignment.allocation.p:.2g}.",
        )

    def _differences(self, name: str, title: str, rows: tuple[ArmDifference, ...], note: str = "") -> Table:
        compared_arms = len(self.assignment.arms) - 1
        all_arms = f", and hold jointly for {compared_arms} comparisons with the baseline" if compared_arms > 1 else ""
        values, intervals = [row.relative.value for row in rows], [row.relative[1:] for row in rows]
        return Table(
            name,
            (
                Column("metric", [str(row.metric) for row in rows], TEXT),
                *((Column("slice", [row.slice_name for row in rows], TEXT),) if name != "differences" else ()),
                *columns_of(rows, ("arm", TEXT), ("role", TEXT)),
                estimate_column([row.baseline for row in rows], "baseline", self.assignment.arms[0]),
                estimate_column([row.other for row in rows], "value", "value"),
                *difference_columns([(row.other, row.difference) for row in rows]),
                Column(
                    "relative",
                    values,
                    unit_show("share", 1),
                    ci=intervals,
                    axis=Axis.over(values, intervals, "CI", 0.0),
                    statuses=[self._status(row) for row in rows] if name == "differences" else (),
                ),
                Column("p", [row.p for row in rows], P_VALUE),
                Column("chance_better", [row.chance_better for row in rows], SHARE, "P(better)"),
                Column("reduction", [row.adjusted.reduction for row in rows], SHARE, "variance reduction"),
                Column("effective_users", [row.effective_users for row in rows], COUNT, f"effective {self.unit}s"),
                Column("units", [row.other.units for row in rows], COUNT, only="data"),
                Column("interval", [self.interval_kind] * len(rows), TEXT, only="data"),
                Column("arm_interval", [FIXED_SAMPLE] * len(rows), TEXT, only="data"),
            ),
            title,
            labels=3 if name != "differences" else 2,
            note=f"{note}Values of arms have {percent(self.level)} {FIXED_SAMPLE} CIs over {self.unit}s. CIs and"
            " p-values of"
            f" differences are {self.interval_kind}{all_arms}. A relative difference is undefined if the CI of the"
            " baseline"
            " includes 0. P(better) is the posterior probability that the arm is better, under a flat prior and for a"
            f" fixed sample; it is not a test. Effective {self.unit}s: effective number of {self.unit}s (Kish) in the"
            " smaller arm.",
        )

    def _status(self, row: ArmDifference) -> Status:
        """Return the status of a difference; all are unknown if nothing is decided on the arm."""
        is_decided = any(verdict.metric for verdict in self.verdicts if verdict.arm == row.arm)
        return row.status if is_decided else "unknown"

    @property
    def interval_kind(self) -> str:
        """Description of when intervals and p-values of differences are valid."""
        return ANY_DAY if self.any_day else FIXED_SAMPLE

    def _by_slice(self) -> tuple[Block, ...]:
        if not self.sliced:
            return ()
        metric = Column("metric", [str(interaction.metric) for interaction in self.interactions], TEXT)
        statistics = ("slices", COUNT), ("q", ANY, "Q"), ("p", P_VALUE)
        tests = Table(
            "interactions",
            (metric, *columns_of(self.interactions, ("arm", TEXT), *statistics)),
            f"Interaction with {self.by}",
            labels=2,
            note="Cochran's Q test of equal differences in all slices, for a fixed sample. Only Cochran's Q test shows"
            " whether differences vary between slices.",
        )
        note = "Slices are exploratory: their p-values are not corrected for the number of slices. "
        return tests, self._differences("slices", f"By {self.by}", self.sliced, note)

    def _by_day(self) -> tuple[Block, ...]:
        if len({row.slice_name for row in self.days}) < 2:
            return ()
        rows = self.days
        table = Table(
            "days",
            (
                Column("day", [int(row.slice_name) for row in rows], COUNT, "day after exposure"),
                Column("arm", [row.arm for row in rows], TEXT),
                *difference_columns([(row.other, row.difference) for row in rows]),
            ),
            f"{rows[0].metric} by day after exposure",
            labels=2,
            note=f"{percent(self.level)} {FIXED_SAMPLE} CIs, not corrected for the number of days.",
            folded=True,
        )
        sentence = (
            f"Difference in {rows[0].metric} by day after exposure. A shrinking difference suggests a novelty effect."
        )
        return (
            Chart("novelty", table.title, table, sentence, kind="points", x="day", y="difference", color="arm",
                  lines=(ReferenceLine("y", 0.0),), percent="y" if rows[0].metric.unit == "share" else ""),
            table,
        )  # fmt: skip


def abtest(
    log: InteractionLog,
    primary: str | OnlineMetric | None = None,
    *,
    guardrails: Iterable[str | OnlineMetric] = (),
    metrics: Iterable[str | OnlineMetric] | None = None,
    variant: str = "variant",
    baseline: str | None = None,
    shares: Mapping[str, float] | None = None,
    by: str | None = None,
    window_days: float | None = None,
    before_days: float = 14.0,
    margin_relative: float = 0.02,
    any_day: bool = True,
    better: Mapping[str, Direction] | None = None,
    expected: int = 5000,
    min_users: int = 200,
    unit: Unit = "user",
    level: float = 0.95,
    correction: str = "holm",
    settings: FactSettings | None = None,
) -> ABTest:
    """Analyze an A/B test: its validity, the differences between arms, and the verdict on each arm.

    A user counts from the first page that names an arm. Behavior before that page is a covariate (CUPED): the arm
    cannot have affected it.

    Parameters
    ----------
    log
        Log of the test, preferably with the weeks before it.
    primary
        Primary metric, which decides. None: the first of `judged.online.differences.HEADLINES` that this log supports
        and that has a direction; without such a metric, no arm can be shipped.
    guardrails
        Metrics that must not lose more than the margin.
    metrics
        Other metrics; their p-values are corrected together. None: the headlines.
    variant
        Column that holds the arm.
    baseline
        Arm that the others are compared with; None: the first by name.
    shares
        Planned share of users by arm; None: equal shares.
    by
        Slicing attribute for the declared metrics; see `judged.online.slicing.slice_pages`.
    window_days
        Days after exposure in which a user counts; users whose window ends after the log are excluded. None: all days,
        so that users who were exposed earlier count longer.
    before_days
        Days before exposure that are used for the adjustment.
    margin_relative
        Largest tolerable loss of a guardrail, as a share of the baseline; also the half-width of the relative interval
        for which the remaining duration is estimated.
    any_day
        Whether intervals are valid on any day; False: only on one day that was set before the test (fixed-sample).
    better
        Direction, ``more`` or ``less``, of metrics without one of their own, by name. They can then be declared, with a
        warning.
    expected
        Number of users for which always-valid intervals are narrowest.
    min_users
        Minimum number of users in each arm for a verdict.
    unit, level, correction, settings
        As for `judged.online.differences.difference`.

    Raises
    ------
    MeasureError
        If there is no metric of that name.
    InputError
        If the log has no arms or does not support a declared metric, or an option is out of range.
    """
    validate(log=log, unit=unit, level=level, baseline=baseline, min_users=min_users, by=by, expected=expected)
    validate(window_days=window_days, before_days=before_days, margin_relative=margin_relative)
    one_of("correction", correction, CORRECTIONS)
    settings = settings or FactSettings()
    roles, refused = _roles(log, primary, guardrails, metrics, unit, better or {})
    declared: dict[OnlineMetric, Role] = {metric: role for metric, role in roles.items() if role != "other"}
    primary_roles: dict[OnlineMetric, Role] = {metric: role for metric, role in roles.items() if role == "primary"}
    sliced, days = list[ArmDifference](), list[ArmDifference]()
    with log.engine.scratch():
        assignment, exposure = read_assignment(log, variant, baseline, shares, window_days, before_days, unit)
        inference = Inference(level, any_day, expected, len(assignment.arms) - 1)
        pages = metric_pages(log, list(roles), settings, slices=exposure.pages())
        design = ABDesign(assignment, inference, unit)
        differences = arm_differences(pages, roles, design)
        # After a ramp-up, the arms differ in when their users came (Simpson's paradox): compare within periods only.
        if assignment.is_ramped:
            periods = [str(i + 1) for i in range(len(assignment.periods))]
            by_period = pages.with_slices(exposure.pages(exposure.periods()))
            of_periods = arm_differences(by_period, roles, design, periods)
            differences = list(stratified(differences, of_periods, assignment, inference))
        differences = with_correction(differences, correction)
        # Slices and days are not stratified by period, so they would compare different times.
        if by is not None and not assignment.is_ramped:
            by_slice = slice_pages(log, by)
            sliced = arm_differences(
                pages.with_slices(exposure.pages(by_slice.table)), declared, design, by_slice.values
            )
        if log.has_time and log.dated and not assignment.is_ramped:
            last_day = min(_DAYS, int(assignment.log_days) + 1)
            by_day = pages.with_slices(exposure.pages(exposure.days_since()))
            # Days are exploratory, so their intervals are those of a fixed sample.
            fixed_design = design._replace(inference=replace(inference, any_day=False))
            days = arm_differences(by_day, primary_roles, fixed_design, [str(day) for day in range(1, last_day + 1)])
    # The correction changes only p-values of metrics that were not declared, which no verdict uses.
    verdicts: list[Verdict] = []
    for arm in assignment.arms[1:]:
        rows = [row for row in differences if row.arm == arm]
        verdicts.append(verdict(arm, rows, assignment, margin_relative, min_users))
    window = "until the end of the log" if window_days is None else f"for {window_days:g} days"
    policies = {
        "intervals": f"{ANY_DAY}, narrowest at {expected:,} users" if any_day else FIXED_SAMPLE,
        "exposure window": f"from the first page of a user in an arm, {window}",
        "CUPED covariate": f"the same metric in the {before_days:g} days before exposure",
    }
    fields = answer_fields(log, unit, level, policies, settings)
    tested = dict.fromkeys(row.metric for row in differences)
    notes = (*fields.pop("notes"), *estimated_dwell_notes(log, tested), *_direction_notes(declared, better or {}),
             *_ramp_note(assignment), *(() if any_day else _unequal_note(differences, unit)))  # fmt: skip
    return ABTest(
        assignment=assignment, differences=tuple(differences), verdicts=tuple(verdicts),
        margin_relative=margin_relative, any_day=any_day, by=by, sliced=tuple(sliced),
        interactions=tuple(slice_interactions(sliced)), days=tuple(row for row in days if row.adjusted.error > 0),
        refused=tuple(refused.items()), notes=notes, **fields,
    )  # fmt: skip


def _direction_notes(declared: Iterable[OnlineMetric], better: Mapping[str, Direction]) -> Iterator[Note]:
    """Yield a warning for each declared metric whose direction was set by the caller."""
    directed = {online_metric(name): direction for name, direction in better.items()}
    directions = {str(metric): direction for metric, direction in directed.items() if not metric.better}
    for metric in declared:
        if direction := directions.get(str(metric)):
            preferred = "higher" if direction == "more" else "lower"
            text = (
                f"the metric has no fixed direction; for this test, {preferred} values were declared as better."
                f" {metric.misleads}"
            )
            yield Note("declared-direction", text, str(metric), of="metrics")


def _unequal_note(rows: Iterable[ArmDifference], unit: str) -> Iterator[Note]:
    # The rate in the text is that of docs/calibration.md, "A/B tests".
    for row in rows:
        units = min(row.baseline.units, row.other.units)
        if row.role == "other" or not row.effective_users < min(_EFFECTIVE_USERS, _EFFECTIVE_SHARE * units):
            continue
        text = (
            f"a fixed-sample test has too many false positives if more active {unit}s have higher values. The"
            f" effective number of"
            f" {unit}s in the smaller arm is {row.effective_users:,.0f}. With an effective number of 50 or more in each"
            " arm, 8% of simulated A/A tests were significant at the 5% level"
        )
        yield Note("unequal-users", text, str(row.metric), weight=1.0 / row.effective_users, of="metrics")


def _ramp_note(assignment: Assignment) -> Iterator[Note]:
    if assignment.is_ramped:
        dates = ", ".join(map(str, assignment.periods[1:]))
        text = (
            f"the allocation of new users to arms changed (p = {assignment.allocation.p:.1g}; new periods start on"
            f" {dates}),"
            " so each difference is a weighted mean over periods. Of"
            f" {counted(len(assignment.periods), 'period')}, only periods with at least {MIN_USERS} users in both arms"
            " are used. Differences by slice and by day after exposure are not computed"
        )
        yield Note("allocation-changed", text)


def _roles(
    log: InteractionLog,
    primary: str | OnlineMetric | None,
    guardrails: Iterable[str | OnlineMetric],
    metrics: Iterable[str | OnlineMetric] | None,
    unit: Unit,
    better: Mapping[str, Direction],
) -> tuple[dict[OnlineMetric, Role], dict[OnlineMetric, str]]:
    """Return the role of each metric that this log supports, and the reasons why others are not.

    A declared metric needs a direction: its own, or the one in `better`.
    """
    directions = {str(online_metric(name)): _sign(name, direction) for name, direction in better.items()}

    def directed(metric: OnlineMetric) -> OnlineMetric:
        direction = directions.get(str(metric), 0)
        if direction and metric.better and direction != metric.better:
            declared, required = ("more", "less") if direction > 0 else ("less", "more")
            problem = f"`better` must be {required!r} for {metric}, the direction of this metric, got {declared!r}"
            raise InputError(problem, fix=f"remove {metric} from better (--better)")
        return replace(metric, better=metric.better or direction)

    candidates = [directed(metric) for metric in headline_metrics(log, unit)]
    first_directed = next((metric for metric in candidates if metric.better), None)
    primary_metric = first_directed if primary is None else directed(online_metric(primary))
    # A metric has one role, the most important of those that it was passed for.
    roles: dict[OnlineMetric, Role] = {} if primary_metric is None else {primary_metric: "primary"}
    for metric in online_metrics_named([guardrails] if isinstance(guardrails, (str, OnlineMetric)) else guardrails):
        roles.setdefault(directed(metric), "guardrail")
    others = [metrics] if isinstance(metrics, (str, OnlineMetric)) else metrics
    for metric in candidates if others is None else map(directed, online_metrics_named(others)):
        roles.setdefault(metric, "other")
    supported, refused = comparable_metrics(list(roles), log, unit, kinds=("ratio", "quantile"))
    for metric, role in roles.items():
        if role == "other":
            continue
        if reason := refused.get(metric):
            problem = f"{metric} cannot be the primary metric or a guardrail: {reason}"
            raise InputError(problem, fix="use another metric", path=log.name)
        if not metric.better:
            problem = (
                "a primary metric or guardrail must have a direction (higher or lower is better), but"
                f" {metric} has none"
            )
            example = f"better={{'{metric}': 'more'}} (--better {metric}=more)"
            fix = f"declare whether more or less {metric} is better, for example {example}, or use another metric"
            raise InputError(problem, fix=fix, path=log.name)
    return {metric: roles[metric] for metric in supported}, refused


def _sign(metric: str, direction: str) -> Literal[-1, 1]:
    one_of(f"direction of {metric}", direction, ("more", "less"))
    return 1 if direction == "more" else -1
