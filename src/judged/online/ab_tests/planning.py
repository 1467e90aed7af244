"""Before a test: how long it would take on the users of a past log, and whether error rates hold there (A/A)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from judged.errors import InputError
from judged.online.ab_tests.differences import Looks
from judged.online.differences import comparable, headlines
from judged.online.estimation.online_metrics import sums_of_units
from judged.online.estimation.sums import pages_of, unit_sums
from judged.online.facts.pages import FactSettings
from judged.online.layout import in_unit, percent
from judged.online.log import LogAnswer, about, need
from judged.online.metrics import OnlineMetric
from judged.results import COUNT, SHARE, TEXT, Column, Sentences, Table, columns_of, number
from judged.stats.ratio import ratio_error, ratio_errors

if TYPE_CHECKING:
    from judged.online.estimation.online_metrics import Unit
    from judged.online.log import InteractionLog
    from judged.results import Block
    from judged.results.types import Floats

_NORMAL = NormalDist()
_DAY = 86_400_000


class MetricPlan(NamedTuple):
    """What a metric would need.

    ``value``, ``spread``: of the log, and the standard deviation of a user's influence, relative to the value.
    ``false_alarms``: the share of random splits of the log's users that differ at ``1 - level`` on one day, which
    should be that. ``users``, ``days``: for each difference asked for, relative to the value: on one day, and at the
    latest, with the power asked for, where every day is looked at.
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
    """How long tests would take on users like those of a log.

    Parameters
    ----------
    plans
        By metric.
    differences
        Relative differences that are to be found.
    power, splits
        As asked for.
    a_day
        New users in a day.
    """

    kind: ClassVar[str] = "abtest-plan"
    answers: ClassVar[str] = "Before an A/B test: {log}"
    asked: ClassVar[tuple[str, ...]] = ("differences", "power", "splits", "a_day")

    plans: tuple[MetricPlan, ...]
    differences: tuple[float, ...]
    power: float
    splits: int
    a_day: float
    refused: tuple[tuple[OnlineMetric, str], ...] = ()

    def blocks(self) -> tuple[Block, ...]:
        """Give how many users and days, and the error rate of splits of the same users."""
        alpha = 1.0 - self.level
        rows = [(one, at) for one in self.plans for at in range(len(self.differences))]
        plans = Table(
            "plans",
            (
                Column("metric", [str(one.metric) for one, _ in rows], TEXT),
                Column("relative", [self.differences[at] for _, at in rows], in_unit("share", 1), "difference"),
                Column("users", [one.users[at] for one, at in rows], COUNT, "users, one day"),
                Column("users_any_day", [one.users_any_day[at] for one, at in rows], COUNT, "users, any day"),
                Column("days", [one.days[at] for one, at in rows], number(0), "days, any day"),
            ),
            "How long",
            labels=2,
            note=f"two equal arms together, found with a probability of {percent(self.power)}; "
            f"{self.a_day:,.0f} new users a day; not adjusted for the time before, which makes it shorter",
        )
        error = math.sqrt(alpha * (1.0 - alpha) / self.splits)
        aa = Table(
            "aa",
            (
                Column("metric", [str(one.metric) for one in self.plans], TEXT),
                Column(
                    "value", [one.value for one in self.plans], each=[in_unit(one.metric.unit) for one in self.plans]
                ),
                *columns_of(self.plans, ("spread", number(2)), ("false_alarms", SHARE, "false alarms")),
            ),
            "The same users against themselves (A/A)",
            note=f"{self.splits:,} random splits; {percent(alpha)} should differ, +- {200 * error:.1f} points; "
            "spread: of a user's share in the value",
        )
        wrong = [str(one.metric) for one in self.plans if abs(one.false_alarms - alpha) > 4 * error]
        said = (f"Splits of the same users differ too often or too seldom by {', '.join(wrong)}.",) if wrong else ()
        return (
            *((Sentences(said),) if said else ()),
            plans,
            aa,
            self.made(*(f"{metric}: {why}" for metric, why in self.refused)),
        )

    def facts(self) -> Mapping[str, Any]:
        """Give what was asked for."""
        return {**super().facts(), "refused": {str(metric): why for metric, why in self.refused}}


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
    """Say how many users, and days, a test would take to find differences, and try error rates on the log itself.

    Parameters
    ----------
    log
        A log of the past, as long as the test might be.
    metrics
        Ratios; None: `judged.online.difference.HEADLINES`.
    differences
        Relative differences that are to be found; None: 1, 2, 5 and 10 %.
    power
        With which probability.
    splits, seed
        How often the log's users are split at random into two arms that differ in nothing.
    unit, level, settings
        As for `judged.online.ab_tests.abtest.abtest`.

    Raises
    ------
    InputError
        If no metric can be told, there are fewer than two users, or an option makes no sense.
    """
    need(log=log, unit=unit, level=level, seed=seed, power=power, splits=splits)
    wanted = differences_of(differences)
    if not wanted or not all(0 < float(one) < math.inf for one in wanted):
        raise InputError(f"differences are {wanted}", fix="give numbers above 0, such as 0.02")
    settings = settings or FactSettings()
    told, refused = comparable(headlines(log, unit) if metrics is None else metrics, log, unit)
    if not told:
        raise InputError("none of these metrics can be told", fix="ask 'judged online metrics'", path=log.name)
    with log.engine.scratch():
        pages = pages_of(log, told, settings)
        arrays = {
            metric: (numerators[:, at], denominators[:, at])
            for sums, of in unit_sums(pages, told, unit, sliced=False)
            for numerators, denominators in [sums_of_units(sums, of)]
            for at, metric in enumerate(of)
        }
    a_day = users_a_day(log, max(len(n) for n, _ in arrays.values()))
    rng, looks = np.random.default_rng(seed), Looks(level)
    plans = [_plan(metric, *arrays[metric], wanted, power, splits, a_day, looks, rng) for metric in told]
    return ABTestPlan(
        plans=tuple(plans),
        differences=wanted,
        power=power,
        splits=splits,
        a_day=a_day,
        refused=tuple(refused.items()),
        **about(log, unit, level, {}, settings),
    )


def differences_of(given: Sequence[float] | float | None) -> tuple[float, ...]:
    """Return the differences that a plan is made for; None: the usual ones."""
    if given is None:
        return 0.01, 0.02, 0.05, 0.1
    return (given,) if isinstance(given, float | int) else tuple(given)


def users_a_day(log: InteractionLog, users: int) -> float:
    """Divide a number of users by the days of a log; NaN where it has no dates."""
    span = log.engine.rows(f"SELECT max(time_ms) - min(time_ms) AS span FROM {log.serp}")[0]["span"] or 0
    return users / max(span / _DAY, 1.0) if log.has_time and log.dated else math.nan


def _plan(
    metric: OnlineMetric,
    n: Floats,
    d: Floats,
    differences: Sequence[float],
    power: float,
    splits: int,
    a_day: float,
    looks: Looks,
    rng: np.random.Generator,
) -> MetricPlan:
    value = n.sum() / d.sum() if d.sum() else math.nan
    error = ratio_error(len(n), n.sum(), d.sum(), (n * n).sum(), (d * d).sum(), (n * d).sum())
    spread = error * math.sqrt(len(n)) / value if value > 0 else math.nan
    z = _NORMAL.inv_cdf(0.5 + looks.level / 2.0) + _NORMAL.inv_cdf(power)
    once = [(2.0 * z * spread / difference) ** 2 for difference in differences]
    any_day = [users_any_day(spread, difference, power, looks) for difference in differences]
    alarms = _false_alarms(n, d, splits, 1.0 - looks.level, rng)
    return MetricPlan(
        metric, value, spread, alarms, tuple(once), tuple(any_day), tuple(users / a_day for users in any_day)
    )


def users_any_day(spread: float, difference: float, power: float, looks: Looks) -> float:
    """Give the number of users at which an interval for any day leaves out 0 with the power asked for."""
    if not spread > 0:
        return math.nan
    low, high = 4.0, 1e15

    def found(users: float) -> bool:
        critical = looks.critical(users)
        return math.isfinite(critical) and difference * math.sqrt(users) / (2.0 * spread) - critical >= _NORMAL.inv_cdf(
            power
        )

    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if found(middle) else (middle, high)
    return high


def _false_alarms(n: Floats, d: Floats, splits: int, alpha: float, rng: np.random.Generator) -> float:
    """Split the same units at random, again and again, and count how often the two halves differ."""
    columns = np.stack([np.ones_like(n), n, d, n * n, d * d, n * d], axis=1)
    total, differ = columns.sum(axis=0), 0
    for _ in range(splits):
        first = columns[rng.random(len(n)) < 0.5].sum(axis=0)
        second = total - first
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = ratio_errors(*np.stack([first, second], axis=1))
            t = (second[1] / second[2] - first[1] / first[2]) / math.hypot(*errors)
        differ += bool(abs(t) > _NORMAL.inv_cdf(1.0 - alpha / 2.0))
    return differ / splits
