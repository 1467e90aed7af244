"""`abtest`: two rankers or more on their own users, every difference with an interval that may be looked at any day."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from judged.errors import InputError
from judged.online.ab_tests.assignment import Assignment, assignment
from judged.online.ab_tests.differences import (
    ArmDifference,
    Design,
    Interaction,
    Looks,
    Role,
    Verdict,
    arm_difference,
    arm_differences,
    corrected,
    interactions,
    verdict,
)
from judged.online.differences import comparable, difference_columns, headlines
from judged.online.estimation.sums import pages_of
from judged.online.facts.pages import FactSettings
from judged.online.layout import in_unit, percent, values
from judged.online.log import LogAnswer, about, need
from judged.online.metrics import OnlineMetric, online_metric, online_metrics_named
from judged.online.slicing import slice_pages
from judged.online.statistics.users import AdjustedDifference
from judged.results import (
    ANY,
    COUNT,
    P_VALUE,
    SHARE,
    TEXT,
    Chart,
    Column,
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


MIN_USERS = 30
"""A period counts if both arms have as many users: with fewer, errors of ratios are not reliable."""


def stratified(
    whole: Sequence[ArmDifference], by_period: Sequence[ArmDifference], users: Assignment, looks: Looks
) -> Iterator[ArmDifference]:
    """Replace each difference by the stratified one; NaN where no period has enough users in both arms.

    Parameters
    ----------
    whole
        Differences over all users.
    by_period
        The same within periods of constant allocation, named by `part`.
    users, looks
        As for `judged.online.ab_tests.differences.arm_differences`.
    """
    for row in whole:
        identity = (row.metric, row.role, row.arm, row.part)
        both = row.baseline, row.other
        periods = [
            one
            for one in by_period
            if (one.metric, one.arm) == (row.metric, row.arm)
            and min(one.baseline.units, one.other.units) >= MIN_USERS
            and one.adjusted.error > 0
        ]
        if not periods:
            nothing = AdjustedDifference(math.nan, math.nan, 0.0, 0.0)
            yield arm_difference(identity, both, nothing, users, looks, row.earlier, row.effective_users)
            continue
        made, shares = _mean(periods)
        effective = 1.0 / sum(share**2 / one.effective_users for share, one in zip(shares, periods, strict=True))
        earlier = [one.earlier for one in periods if not math.isnan(one.earlier)]
        p = min(1.0, len(earlier) * min(earlier)) if earlier else math.nan
        yield arm_difference(identity, both, made, users, looks, p, effective)


def _mean(periods: Sequence[ArmDifference]) -> tuple[AdjustedDifference, list[float]]:
    """Return the weighted mean of differences, and each period's share of its variance."""
    sizes = [1.0 / (1.0 / one.baseline.denominator + 1.0 / one.other.denominator) for one in periods]
    weights = [size / sum(sizes) for size in sizes]
    parts = [one.adjusted for one in periods]

    def mean(values: Iterator[float]) -> float:
        return sum(w * value for w, value in zip(weights, values, strict=True))

    def total(values: Iterator[float]) -> float:
        return sum(w * w * value for w, value in zip(weights, values, strict=True))

    squares = [w * w * part.error**2 for w, part in zip(weights, parts, strict=True)]
    plain = total(part.error**2 / (1.0 - part.reduction) for part in parts)
    made = AdjustedDifference(
        value=mean(part.value for part in parts),
        error=math.sqrt(sum(squares)),
        theta=mean(part.theta for part in parts),
        reduction=1.0 - sum(squares) / plain,
        base=mean(part.base for part in parts),
        base_error=math.sqrt(total(part.base_error**2 for part in parts)),
        base_covariance=total(part.base_covariance for part in parts),
    )
    return made, [square / sum(squares) for square in squares]


_EQUAL, _MANY = 0.75, 1000.0  # share of the users, and number, from which on effective users are enough
_DAYS = 60  # maximum number of days after exposure in the chart
Direction: TypeAlias = Literal["more", "less"]
ANY_DAY, FIXED_SAMPLE = "valid on any day", "fixed-sample"


@dataclass(frozen=True, eq=False, repr=False)
class ABTest(LogAnswer):
    """What a test says: whether it is sound, what differs, and what follows for each arm.

    Parameters
    ----------
    assignment
        Who was in which arm.
    differences
        By arm, then metric: the primary one, guardrails, all others.
    verdicts
        For each arm but the baseline.
    margin_relative
        How much a guardrail may lose, as a share of the baseline.
    any_day
        Whether intervals and p-values of differences are valid on any day.
    by, sliced, interactions
        The declared metrics by slice, and whether their differences differ between slices.
    days
        The primary metric by days since exposure: what wears off is novelty.
    refused
        Metrics that cannot be compared, with the reason.
    """

    kind: ClassVar[str] = "abtest"
    answers: ClassVar[str] = "A/B test: {log}"
    asked: ClassVar[tuple[str, ...]] = ("margin_relative", "any_day", "by")

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
        """Whether some arm may be shipped."""
        return any(one.decision == "ship" for one in self.verdicts)

    def blocks(self) -> tuple[Block, ...]:
        """Give the verdicts, who was in the test, and all differences."""
        return (
            Sentences(tuple(map(str, self.verdicts))),
            self._differences("differences", "What differs", self.differences),
            self._arms(),
            *self._by_slice(),
            *self._by_day(),
            self.made(*(f"not compared, {metric}: {why}" for metric, why in self.refused)),
        )

    def facts(self) -> Mapping[str, Any]:
        """Give what was asked for, and the verdicts."""
        refused = {str(metric): why for metric, why in self.refused}
        return {**super().facts(), "verdicts": [vars(one) for one in self.verdicts], "refused": refused}

    def _arms(self) -> Table:
        users, ratio = self.assignment.users, self.assignment.ratio
        left = f"{counted(self.assignment.crossed, 'user')} seen in several arms and {self.assignment.unfinished:,}"
        return Table(
            "arms",
            (Column("arm", list(users), TEXT), Column("users", list(users.values()), COUNT)),
            "Who was in it",
            note=f"{left} with an open window do not count; exposed over {self.assignment.days:.1f} days; "
            f"that users divide so by chance: p = {ratio.p_always:.2g} on any day, {ratio.p:.2g} for a fixed sample;"
            f" that the allocation stayed the same: p = {self.assignment.allocation.p:.2g}",
        )

    def _differences(self, name: str, title: str, rows: tuple[ArmDifference, ...], note: str = "") -> Table:
        many = len(self.assignment.arms) - 1
        together = f", for {many} arms together" if many > 1 else ""
        relative = [row.relative for row in rows]
        return Table(
            name,
            (
                Column("metric", [str(one.metric) for one in rows], TEXT),
                *((Column("slice", [one.part for one in rows], TEXT),) if name != "differences" else ()),
                *columns_of(rows, ("arm", TEXT), ("role", TEXT)),
                values([one.baseline for one in rows], "baseline", self.assignment.arms[0]),
                values([one.other for one in rows], "value", "value"),
                *difference_columns([(one.other, one.difference) for one in rows]),
                Column(
                    "relative", [row.value for row in relative], in_unit("share", 1), ci=[row[1:] for row in relative]
                ),
                Column("p", [one.p for one in rows], P_VALUE),
                Column("better", [one.chance_better for one in rows], SHARE, "chance better"),
                Column("reduction", [one.adjusted.reduction for one in rows], SHARE, "variance saved"),
                Column("effective", [one.effective_users for one in rows], COUNT, f"effective {self.unit}s"),
                Column("units", [one.other.units for one in rows], COUNT, only="data"),
                Column("interval", [self.interval_kind] * len(rows), TEXT, only="data"),
                Column("arm_interval", [FIXED_SAMPLE] * len(rows), TEXT, only="data"),
            ),
            title,
            labels=3 if name != "differences" else 2,
            note=f"{note}{self.assignment.arms[0]} and value: {percent(self.level)} {FIXED_SAMPLE} intervals over"
            f" {self.unit}s; difference, relative, and p: {self.interval_kind}{together}; relative: none where the"
            " baseline's interval includes 0; chance better: by a flat prior at a fixed sample, not a test; effective:"
            " equally active users with the same weight, in the smaller arm",
        )

    @property
    def interval_kind(self) -> str:
        """When intervals and p-values of differences are valid."""
        return ANY_DAY if self.any_day else FIXED_SAMPLE

    def _by_slice(self) -> tuple[Block, ...]:
        if not self.sliced:
            return ()
        metric = Column("metric", [str(one.metric) for one in self.interactions], TEXT)
        numbers = ("slices", COUNT), ("q", ANY, "Q"), ("p", P_VALUE)
        tests = Table(
            "interactions",
            (metric, *columns_of(self.interactions, ("arm", TEXT), *numbers)),
            f"Do differences differ by {self.by}?",
            labels=2,
            note="Cochran's test, valid on one day; nothing else says that one slice gains more than another",
        )
        note = "slices were not declared, so they are exploratory, and not corrected for their number; "
        return tests, self._differences("slices", f"By {self.by}", self.sliced, note)

    def _by_day(self) -> tuple[Block, ...]:
        if len({one.part for one in self.days}) < 2:
            return ()
        rows = self.days
        table = Table(
            "days",
            (
                Column("day", [int(one.part) for one in rows], COUNT, "day after exposure"),
                Column("arm", [one.arm for one in rows], TEXT),
                *difference_columns([(one.other, one.difference) for one in rows]),
            ),
            f"{rows[0].metric} by day after exposure",
            labels=2,
            note=f"{percent(self.level)} {FIXED_SAMPLE} intervals, not corrected for the number of days",
            folded=True,
        )
        sentence = f"How {rows[0].metric} differs on each day after a user was exposed: what wears off is novelty."
        return (
            Chart("novelty", table.title, table, sentence, kind="points", x="day", y="difference", color="arm",
                  lines=(ReferenceLine("y", 0.0),)),
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
    """Analyze a test on users: whether it is sound, what differs between its arms, and what follows.

    A user counts from the first page that names an arm. What users did before that makes differences sharper (CUPED):
    it cannot hang on the arm.

    Parameters
    ----------
    log
        The log of the test, best with the weeks before it.
    primary
        The one metric that decides. None: the first of `judged.online.difference.HEADLINES` that this log supports and
        that has a direction; if there is none, no arm can be shipped.
    guardrails
        Metrics that may not lose more than the margin.
    metrics
        Others to look at; their p-values are corrected together. None: the headlines.
    variant
        The column that holds the arm.
    baseline
        The arm that the others are compared with; None: the first by name.
    shares
        How users should divide, by arm; None: equally.
    by
        Slices by which declared metrics are shown too; see `judged.online.slicing.slice_pages`.
    window_days
        How long a user counts after exposure; users with less of it in the log do not count. None: as long as there is
        log, so that early users count longer.
    before_days
        How much of the time before exposure is used.
    margin_relative
        How much a guardrail may lose, as a share of the baseline; and the difference that "how long" is told for.
    any_day
        Whether intervals are valid on any day; False: on one day that was set before the test (fixed-sample).
    better
        Direction of metrics of which neither more nor less is better by itself, by name: ``more`` or ``less``. They can
        then be declared, with a warning.
    expected
        The number of users at which such intervals are narrowest.
    min_users
        No verdict before each arm has as many.
    unit, level, correction, settings
        As for `judged.online.difference.difference`.

    Raises
    ------
    MeasureError
        If there is no metric of that name.
    InputError
        If the log has no arms, the primary metric or a guardrail cannot be told from it, or an option makes no sense.
    """
    need(log=log, unit=unit, level=level, baseline=baseline, min_users=min_users, by=by, expected=expected)
    need(window_days=window_days, before_days=before_days, margin_relative=margin_relative)
    one_of("correction", correction, CORRECTIONS)
    settings = settings or FactSettings()
    roles, refused = _roles(log, primary, guardrails, metrics, unit, better or {})
    declared: dict[OnlineMetric, Role] = {one: role for one, role in roles.items() if role != "other"}
    goal: dict[OnlineMetric, Role] = {one: role for one, role in roles.items() if role == "primary"}
    sliced, days = list[ArmDifference](), list[ArmDifference]()
    with log.engine.scratch():
        users, exposure = assignment(log, variant, baseline, shares, window_days, before_days, unit)
        looks = Looks(level, any_day, expected, len(users.arms) - 1)
        pages = pages_of(log, list(roles), settings, slices=exposure.pages())
        design = Design(users, looks, unit)
        made = arm_differences(pages, roles, design)
        if users.ramped:
            periods = [str(at + 1) for at in range(len(users.periods))]
            by_period = pages.with_slices(exposure.pages(exposure.periods()))
            made = list(stratified(made, arm_differences(by_period, roles, design, periods), users, looks))
        made = corrected(made, correction)
        if by is not None and not users.ramped:
            cut = slice_pages(log, by)
            sliced = arm_differences(pages.with_slices(exposure.pages(cut.table)), declared, design, cut.values)
        if log.has_time and log.dated and not users.ramped:
            last = min(_DAYS, int(users.longest) + 1)
            since = pages.with_slices(exposure.pages(exposure.days_since()))
            once = design._replace(looks=replace(looks, any_day=False))
            days = arm_differences(since, goal, once, [str(day) for day in range(1, last + 1)])
    verdicts = (
        verdict(arm, [one for one in made if one.arm == arm], users, margin_relative, min_users)
        for arm in users.arms[1:]
    )
    window = "to the end of the log" if window_days is None else f"for {window_days:g} days"
    said = {
        "intervals of differences": f"{ANY_DAY}, narrowest at {expected:,} users" if any_day else FIXED_SAMPLE,
        "a user counts": f"from the first page of an arm {window}",
        "adjusted by": f"what users did in the {before_days:g} days before",
    }
    general = about(log, unit, level, said, settings)
    notes = (*general.pop("notes"), *_direction_notes(declared, better or {}), *_ramp_note(users),
             *(() if any_day else _unequal_note(made, unit)))  # fmt: skip
    return ABTest(
        assignment=users,
        differences=tuple(made),
        verdicts=tuple(verdicts),
        margin_relative=margin_relative,
        any_day=any_day,
        by=by,
        sliced=tuple(sliced),
        interactions=tuple(interactions(sliced)),
        days=tuple(one for one in days if one.adjusted.error > 0),
        refused=tuple(refused.items()),
        notes=notes,
        **general,
    )


def _direction_notes(declared: Iterable[OnlineMetric], better: Mapping[str, Direction]) -> Iterator[Note]:
    """Warn of declared metrics whose direction is the user's."""
    ways = {
        str(metric): way
        for metric, way in ((online_metric(name), way) for name, way in better.items())
        if not metric.better
    }
    for metric in declared:
        if way := ways.get(str(metric)):
            text = f"that {way} is better was declared, and does not follow from the metric. {metric.misleads}"
            yield Note("declared-direction", text, str(metric), of="metrics")


def _unequal_note(rows: Iterable[ArmDifference], unit: str) -> Iterator[Note]:
    """Warn of fixed-sample tests over unequally active users; the rate is that of docs/calibration.md, "A/B tests"."""
    declared = [row for row in rows if row.role != "other" and row.effective_users < _MANY]
    few = [row for row in declared if row.effective_users < _EQUAL * min(row.baseline.units, row.other.units)]
    for row in few:
        text = (
            f"a fixed-sample test rejects too often if more active {unit}s have higher values: the smaller arm has"
            f" {row.effective_users:,.0f} effective {unit}s. With 50 or more in each arm, 8% of simulated tests of"
            " equal arms were significant at 5%"
        )
        yield Note("unequal-users", text, str(row.metric), weight=1.0 / row.effective_users, of="metrics")


def _ramp_note(users: Assignment) -> Iterator[Note]:
    """Warn of a changed allocation, and say what was done about it."""
    if users.ramped:
        since = ", ".join(map(str, users.periods[1:]))
        text = (
            f"the allocation of new users to arms changed (p = {users.allocation.p:.1g}; since {since}): differences"
            f" are means over {counted(len(users.periods), 'period')} of first exposure with {MIN_USERS} users in both"
            " arms; slices and days since exposure are not compared"
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
    """Return the role of each metric that this log supports, and why others are refused.

    Declared metrics need a direction: their own, or that in `better`.
    """
    ways = {str(online_metric(name)): _way(name, way) for name, way in better.items()}

    def directed(metric: OnlineMetric) -> OnlineMetric:
        way = ways.get(str(metric), 0)
        if way and metric.better and way != metric.better:
            problem = f"better says {'more' if way > 0 else 'less'} of {metric}, of which the opposite is better"
            raise InputError(problem, fix="leave it out")
        return replace(metric, better=metric.better or way)

    usual = [directed(metric) for metric in headlines(log, unit)]
    first = next((metric for metric in usual if metric.better), None)
    goal = first if primary is None else directed(online_metric(primary))
    roles: dict[OnlineMetric, Role] = {} if goal is None else {goal: "primary"}
    for metric in online_metrics_named([guardrails] if isinstance(guardrails, (str, OnlineMetric)) else guardrails):
        roles.setdefault(directed(metric), "guardrail")
    others = [metrics] if isinstance(metrics, (str, OnlineMetric)) else metrics
    for metric in usual if others is None else map(directed, online_metrics_named(others)):
        roles.setdefault(metric, "other")
    supported, refused = comparable(list(roles), log, unit, kinds=("ratio", "quantile"))
    for metric, role in roles.items():
        if role == "other":
            continue
        if why := refused.get(metric):
            raise InputError(f"{metric} cannot be declared: {why}", fix="declare another metric", path=log.name)
        if not metric.better:
            problem = f"{metric} cannot be declared without a direction: neither more nor less is better by itself"
            fix = f"give one, better={{'{metric}': 'more'}} (--better {metric}=more), or declare another metric"
            raise InputError(problem, fix=fix, path=log.name)
    return {metric: roles[metric] for metric in supported}, refused


def _way(name: str, way: str) -> Literal[-1, 1]:
    one_of(f"direction of {name}", way, ("more", "less"))
    return 1 if way == "more" else -1
