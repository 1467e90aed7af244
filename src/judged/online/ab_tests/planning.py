"""Planning of an A/B test: its duration with the users of a past log, and error rates in A/A splits of the same log."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from judged.errors import InputError
from judged.online.ab_tests.differences import Inference
from judged.online.differences import comparable_metrics, headline_metrics
from judged.online.estimation.online_metrics import sums_of_units
from judged.online.estimation.sums import metric_pages, unit_sums
from judged.online.facts.pages import FactSettings
from judged.online.layout import percent, unit_show
from judged.online.log import LogAnswer, answer_fields, validate
from judged.online.metrics import OnlineMetric
from judged.results import COUNT, SHARE, TEXT, Column, Sentences, Table, columns_of, listed, number
from judged.stats.ratio import ratio_error, ratio_errors

if TYPE_CHECKING:
    from judged.online.estimation.online_metrics import Unit
    from judged.online.log import InteractionLog
    from judged.results import Block
    from judged.results.types import Floats

_NORMAL = NormalDist()
_DAY = 86_400_000


class MetricPlan(NamedTuple):
    """Number of users and duration that one metric needs.

    ``value``, ``spread``: its value in the log, and the standard deviation of a user's influence divided by it (the
    coefficient of variation, for a mean over users).
    ``false_alarms``: share of random splits of the users that are significant in a fixed-sample test, ideally
    ``1 - level``.
    ``users``, ``users_any_day``, ``days``: for each relative difference, the required users for a fixed sample and for
    intervals that are valid on any day, and the days of the latter.
    """

    metric: OnlineMetric
    value: float
    spread: float
    false_alarms: float
    users: tuple[float, ...]
    users_any_day: tuple[float, ...]
    days: tuple[float, ...]


@dataclass(frozen=True, eq=False, repr=False)
class ABTestPlan(LogAnswer):
    """Duration of A/B tests with users like those of a log.

    Parameters
    ----------
    plans
        By metric.
    differences
        Relative differences to detect.
    power, splits
        Probability of detecting them; number of random A/A splits.
    users_per_day
        New users per day.
    """

    kind: ClassVar[str] = "abtest-plan"
    title_format: ClassVar[str] = "Plan of an A/B test: {log}"
    fact_fields: ClassVar[tuple[str, ...]] = ("differences", "power", "splits", "users_per_day")

    plans: tuple[MetricPlan, ...]
    differences: tuple[float, ...]
    power: float
    splits: int
    users_per_day: float
    refused: tuple[tuple[OnlineMetric, str], ...] = ()

    def blocks(self) -> tuple[Block, ...]:
        """Return the required users and days, and the error rates of A/A splits."""
        alpha = 1.0 - self.level
        cells = [(plan, i) for plan in self.plans for i in range(len(self.differences))]
        plans = Table(
            "plans",
            (
                Column("metric", [str(plan.metric) for plan, _ in cells], TEXT),
                Column("relative", [self.differences[i] for _, i in cells], unit_show("share", 1), "difference"),
                Column("users", [plan.users[i] for plan, i in cells], COUNT, f"{self.unit}s, fixed sample"),
                Column(
                    "users_any_day", [plan.users_any_day[i] for plan, i in cells], COUNT, f"{self.unit}s, anytime-valid"
                ),
                Column("days", [plan.days[i] for plan, i in cells], number(0), "days, anytime-valid"),
            ),
            "Required sample size",
            labels=2,
            note=f"Sample sizes are totals over two arms of equal size, for a power of {percent(self.power)}. The"
            f" numbers of days assume {self.users_per_day:,.0f} new {self.unit}s per day. The plan assumes a test"
            " without CUPED. CUPED can shorten the test.",
        )
        error = math.sqrt(alpha * (1.0 - alpha) / self.splits)
        shows = [unit_show(plan.metric.unit) for plan in self.plans]
        aa = Table(
            "aa",
            (
                Column("metric", [str(plan.metric) for plan in self.plans], TEXT),
                Column("value", [plan.value for plan in self.plans], each=shows),
                *columns_of(
                    self.plans, ("spread", number(2), "relative SD"), ("false_alarms", SHARE, "false positives")
                ),
            ),
            "A/A tests",
            note=f"{self.splits:,} random splits of the same {self.unit}s. The expected rate of false positives is"
            f" {percent(alpha)} +- {200 * error:.1f} percentage points. Relative SD: standard deviation over"
            f" {self.unit}s of the influence of each {self.unit} on the metric, divided by the value of the metric.",
        )
        miscalibrated = [str(plan.metric) for plan in self.plans if abs(plan.false_alarms - alpha) > 4 * error]
        names = listed(miscalibrated)
        warning = (
            f"The rate of false positives in A/A tests of {names} is too high or too low, so p-values of these"
            f" metrics are not reliable."
        )
        rules = self.method_block(*(f"{metric}: {reason}" for metric, reason in self.refused))
        return (*((Sentences((warning,)),) if miscalibrated else ()), plans, aa, rules)

    def facts(self) -> Mapping[str, Any]:
        """Return the metadata shown with the results."""
        return {**super().facts(), "refused": {str(metric): reason for metric, reason in self.refused}}


def plan_abtest(
    log: InteractionLog,
    metrics: Iterable[str | OnlineMetric] | None = None,
    *,
    differences: Sequence[float] | float | None = None,
    power: float = 0.8,
    splits: int = 1000,
    seed: int = 0,
    unit: Unit = "user",
    level: float = 0.95,
    settings: FactSettings | None = None,
) -> ABTestPlan:
    """Estimate the users and days that an A/B test needs to detect differences, and its error rate in A/A splits.

    Parameters
    ----------
    log
        Past log, about as long as the test.
    metrics
        Ratios; None: `judged.online.differences.HEADLINES`.
    differences
        Relative differences to detect; None: 1, 2, 5, and 10%.
    power
        Probability of detecting each difference.
    splits, seed
        Number of random splits of the log's users into two equal arms, and the seed of the splits.
    unit, level, settings
        As for `judged.online.ab_tests.abtest.abtest`.

    Raises
    ------
    InputError
        If the log supports no metric or has fewer than two users, or an option is out of range.
    """
    validate(log=log, unit=unit, level=level, seed=seed, power=power, splits=splits)
    targets = differences_of(differences)
    if not targets or not all(0 < float(target) < math.inf for target in targets):
        raise InputError(f"`differences` must be positive numbers, got {targets}", fix="use 0.02 for 2%")
    settings = settings or FactSettings()
    supported, refused = comparable_metrics(headline_metrics(log, unit) if metrics is None else metrics, log, unit)
    if not supported:
        problem = "the log supports none of the requested metrics"
        raise InputError(problem, fix="list the supported metrics with 'judged logs check'", path=log.name)
    with log.engine.scratch():
        pages = metric_pages(log, supported, settings)
        arrays = {
            metric: (numerators[:, i], denominators[:, i])
            for sums, group in unit_sums(pages, supported, unit, sliced=False)
            for numerators, denominators in [sums_of_units(sums, group)]
            for i, metric in enumerate(group)
        }
    daily_users = users_per_day(log, max(len(n) for n, _ in arrays.values()))
    rng, inference = np.random.default_rng(seed), Inference(level)
    plans = [_plan(metric, arrays[metric], targets, power, splits, daily_users, inference, rng) for metric in supported]
    return ABTestPlan(
        plans=tuple(plans), differences=targets, power=power, splits=splits, users_per_day=daily_users,
        refused=tuple(refused.items()), **answer_fields(log, unit, level, {}, settings),
    )  # fmt: skip


def differences_of(differences: Sequence[float] | float | None) -> tuple[float, ...]:
    """Return the differences to detect as a tuple; by default the usual ones."""
    if differences is None:
        return 0.01, 0.02, 0.05, 0.1
    return (differences,) if isinstance(differences, float | int) else tuple(differences)


def users_per_day(log: InteractionLog, users: int) -> float:
    """Return the number of users per day of a log; NaN if it has no dates."""
    span = log.engine.rows(f"SELECT max(time_ms) - min(time_ms) AS span FROM {log.serp}")[0]["span"] or 0
    return users / max(span / _DAY, 1.0) if log.has_time and log.dated else math.nan


def _plan(
    metric: OnlineMetric,
    sums: tuple[Floats, Floats],
    differences: Sequence[float],
    power: float,
    splits: int,
    daily_users: float,
    inference: Inference,
    rng: np.random.Generator,
) -> MetricPlan:
    n, d = sums  # numerator and denominator of each unit
    value = n.sum() / d.sum() if d.sum() else math.nan
    error = ratio_error(len(n), n.sum(), d.sum(), (n * n).sum(), (d * d).sum(), (n * d).sum())
    spread = error * math.sqrt(len(n)) / value if value > 0 else math.nan
    z = _NORMAL.inv_cdf(0.5 + inference.level / 2.0) + _NORMAL.inv_cdf(power)
    # Sample size of a two-sided z-test, (z_(1 - alpha / 2) + z_power)**2 (SE sqrt(n) / delta)**2. With two arms of
    # n / 2 users, the SE of the difference is twice that of the value over all n users.
    fixed_sample = [(2.0 * z * spread / difference) ** 2 for difference in differences]
    any_day = [users_any_day(spread, difference, power, inference) for difference in differences]
    false_alarms = _false_alarms(n, d, splits, 1.0 - inference.level, rng)
    days = tuple(users / daily_users for users in any_day)
    return MetricPlan(metric, value, spread, false_alarms, tuple(fixed_sample), tuple(any_day), days)


def users_any_day(spread: float, difference: float, power: float, inference: Inference) -> float:
    """Find the number of users for which an always-valid interval excludes 0 with probability `power`."""
    if not spread > 0:
        return math.nan
    low, high = 4.0, 1e15  # bisection on a logarithmic scale: the margin above the critical value grows with users

    def is_detected(users: float) -> bool:
        critical, standard_errors = inference.critical(users), difference * math.sqrt(users) / (2.0 * spread)
        return math.isfinite(critical) and standard_errors - critical >= _NORMAL.inv_cdf(power)

    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_detected(middle) else (middle, high)
    return high


def _false_alarms(n: Floats, d: Floats, splits: int, alpha: float, rng: np.random.Generator) -> float:
    """Return the share of random splits of the same units whose halves differ significantly."""
    # Sums of these columns over the users of an arm are all that the error of its ratio needs.
    columns = np.stack([np.ones_like(n), n, d, n * n, d * d, n * d], axis=1)
    total, rejections = columns.sum(axis=0), 0
    for _ in range(splits):
        first_sums = columns[rng.random(len(n)) < 0.5].sum(axis=0)
        second_sums = total - first_sums
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = ratio_errors(*np.stack([first_sums, second_sums], axis=1))
            t = (second_sums[1] / second_sums[2] - first_sums[1] / first_sums[2]) / math.hypot(*errors)
        rejections += bool(abs(t) > _NORMAL.inv_cdf(1.0 - alpha / 2.0))
    return rejections / splits
