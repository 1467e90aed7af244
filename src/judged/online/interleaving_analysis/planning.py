"""Planning of an interleaving test: required users, and a comparison with past A/B tests of the same changes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from judged.errors import InputError
from judged.online.ab_tests.differences import Inference
from judged.online.ab_tests.planning import differences_of, users_any_day, users_per_day
from judged.online.engine import identifier
from judged.online.interleaving_analysis.analysis import interval_insufficiency
from judged.online.interleaving_analysis.credit import read_mixed_lists, read_outcomes
from judged.online.layout import percent, unit_show
from judged.online.log import LogAnswer, answer_fields, validate
from judged.results import COUNT, TEXT, Column, Sentences, Table, columns_of, counted, number
from judged.stats.ratio import UnitRatio

if TYPE_CHECKING:
    from judged.online.ab_tests.abtest import ABTest
    from judged.online.estimation.online_metrics import Unit
    from judged.online.interleaving_analysis.analysis import Interleaving
    from judged.online.log import InteractionLog
    from judged.results import Block

_NORMAL = NormalDist()
_GAIN, _POINTS = unit_show("share", 1), unit_show("share", 1, "+")


class PreferencePlan(NamedTuple):
    """Preference to detect, the users required for a fixed sample and for intervals valid on any day, and the days."""

    value: float
    users: float
    users_any_day: float
    days: float


class MethodComparison(NamedTuple):
    """One change that was tested with interleaving and with an A/B test.

    ``preference``, ``gain``: for the other ranker; of the primary metric, relative, with a sign such that more is
    better. ``users_interleaving``, ``users_abtest``: users that each method needs to detect its own estimate with a
    fixed sample. ``agree``: "yes" or "no" if both are significant; otherwise which method is not significant.
    """

    other: str
    metric: str
    preference: float
    gain: float
    users_interleaving: float
    users_abtest: float
    agree: str


@dataclass(frozen=True, eq=False, repr=False)
class InterleavingPlan(LogAnswer):
    """Duration of interleaving tests with users like those of a log.

    Parameters
    ----------
    plans
        By preference.
    pairs
        Past changes that were tested with both methods.
    power, users_per_day
        Probability of detecting the preference; new users per day.
    spread, assumed
        Standard deviation of the influence of one user on the preference; whether it is assumed and not estimated.
    """

    kind: ClassVar[str] = "interleaving-plan"
    title_format: ClassVar[str] = "Plan of an interleaving test: {log}"
    fact_fields: ClassVar[tuple[str, ...]] = ("power", "users_per_day", "spread", "assumed")

    plans: tuple[PreferencePlan, ...]
    pairs: tuple[MethodComparison, ...]
    power: float
    users_per_day: float
    spread: float
    assumed: bool

    def blocks(self) -> tuple[Block, ...]:
        """Return users and days by preference, and the comparison with past A/B tests."""
        user_columns = (
            ("users", COUNT, f"{self.unit}s, fixed sample"),
            ("users_any_day", COUNT, f"{self.unit}s, anytime-valid"),
        )
        plans = Table(
            "plans",
            columns_of(
                self.plans, ("value", _POINTS, "preference"), *user_columns, ("days", number(0), "days, anytime-valid")
            ),
            "Required sample size",
            labels=1,
            note=f"Sample sizes are for a power of {percent(self.power)}. The numbers of days assume"
            f" {self.users_per_day:,.0f} new {self.unit}s per day. Preference: share of wins, with"
            f" ties as half a win, minus 50%. Standard deviation over {self.unit}s: {self.spread:.2f}, "
            + ("assumed." if self.assumed else "estimated from the interleaved lists of this log."),
        )
        if not self.pairs:
            return plans, self.method_block()
        ratios = [pair.users_abtest / pair.users_interleaving for pair in self.pairs]
        pairs = Table(
            "pairs",
            (
                *columns_of(self.pairs, ("other", TEXT, "ranker"), ("preference", _POINTS)),
                *columns_of(self.pairs, ("users_interleaving", COUNT, f"{self.unit}s, interleaving"), ("metric", TEXT)),
                *columns_of(
                    self.pairs,
                    ("gain", unit_show("share", 1), "A/B gain"),
                    ("users_abtest", COUNT, f"{self.unit}s, A/B"),
                ),
                Column("ratio", ratios, number(1), "A/B / interleaving"),
                *columns_of(self.pairs, ("agree", TEXT)),
            ),
            "Comparison with A/B tests of the same changes",
            labels=1,
            note=f"For each method, the column {self.unit}s is the sample size with which the method detects the"
            " difference that it estimated. The estimated difference is uncertain.",
        )
        agreements = [pair.agree for pair in self.pairs if pair.agree in {"yes", "no"}]
        significant = (
            f"Interleaving and A/B tests both found a significant difference for {len(agreements)} of"
            f" {counted(len(self.pairs), 'change')}"
        )
        n_same = agreements.count("yes")
        summary = f"{significant}, and for {n_same} of them in the same direction."
        return plans, pairs, Sentences((summary,)), self.method_block()


def plan_interleaving(
    log: InteractionLog,
    *,
    differences: Sequence[float] | float | None = None,
    decided: float = 0.7,
    past: Sequence[tuple[Interleaving, ABTest]] = (),
    power: float = 0.8,
    unit: Unit = "user",
    level: float = 0.95,
) -> InterleavingPlan:
    """Estimate the users and days that an interleaving test needs to detect preferences.

    Parameters
    ----------
    log
        Past log: of interleaved lists, to estimate the spread over users; or any other, for which it is assumed.
    differences
        Preferences to detect: share of wins, with ties as half a win, minus 0.5. None: 1, 2, 5, and 10 points.
    decided
        For a log without interleaved lists: share of clicked lists that are not tied. The lists of a user are assumed
        to be independent.
    past
        Results of both methods for past changes.
    power
        Probability of detecting the preference.
    unit, level
        As for `judged.online.interleaving`.

    Raises
    ------
    InputError
        If the log has no clicks, or an option is out of range.
    """
    validate(log=log, unit=unit, level=level, power=power)
    preferences = differences_of(differences)
    if not preferences or not all(0 < float(preference) <= 0.5 for preference in preferences) or not 0 < decided <= 1:
        problem = "`differences` must be above 0 and at most 0.5, and `decided` above 0 and at most 1, got"
        raise InputError(f"{problem} {preferences} and {decided!r}", fix="use differences=0.02 and decided=0.7")
    with log.engine.scratch():
        assumed = not log.engine.rows(f"SELECT 1 FROM {log.shown} WHERE team IS NOT NULL LIMIT 1")
        if assumed:
            lists, users = _count_clicked(log, unit)
            spread = math.sqrt(decided * users / (4.0 * lists)) if lists else math.nan
        else:
            mixed = read_mixed_lists(log, None, unit, None, count_shared=False)
            outcomes = read_outcomes(log, mixed, count_repeated=False)
            users = mixed.users
            observed = UnitRatio.of_rows(outcomes.unit, (outcomes.win - outcomes.loss) / 2.0)
            if observed.units and (reason := interval_insufficiency(outcomes.unit, observed)):
                problem = f"the variance between {unit}s cannot be estimated. {reason.sentence(unit).rstrip('.')}"
                raise InputError(problem, fix=f"use a log with more {unit}s", path=log.name)
            spread = observed.error * math.sqrt(users)
    if not spread > 0:
        problem = f"the log has no clicked lists, so the variance between {unit}s cannot be estimated"
        raise InputError(problem, fix="use a log with more clicks", path=log.name)
    daily_users = users_per_day(log, users)
    plans: list[PreferencePlan] = []
    for value in map(float, preferences):
        # Half the spread: every user sees both rankers, while two arms have half of the users each.
        any_day = users_any_day(spread / 2.0, value, power, Inference(level))
        plans.append(
            PreferencePlan(value, _required_users(spread, value, power, level), any_day, any_day / daily_users)
        )
    policies = {"clicked lists without a tie": f"{percent(decided)}, assumed"} if assumed else {}
    return InterleavingPlan(
        plans=tuple(plans), pairs=tuple(_compare_methods(*pair, power) for pair in past), power=power,
        users_per_day=daily_users,
        spread=spread, assumed=assumed, **answer_fields(log, unit, level, policies),
    )  # fmt: skip


def _count_clicked(log: InteractionLog, unit: str) -> tuple[int, int]:
    """Count first pages with a click, and users with a first page."""
    row = log.engine.rows(
        f"SELECT count(*) FILTER (serp IN (SELECT serp FROM {log.event} WHERE action = 'click')) AS lists,"
        f" count(DISTINCT {identifier(unit)}) AS users FROM {log.serp} WHERE page = 1"
    )[0]
    return int(row["lists"]), int(row["users"])


def _required_users(spread: float, value: float, power: float, level: float) -> float:
    z = _NORMAL.inv_cdf(0.5 + level / 2.0) + _NORMAL.inv_cdf(power)
    return (z * spread / value) ** 2 if value else math.inf


def _compare_methods(interleaving: Interleaving, abtest: ABTest, power: float) -> MethodComparison:
    primary_rows = [row for row in abtest.differences if row.role == "primary"]
    primary = next((row for row in primary_rows if row.arm == interleaving.other), primary_rows[0])
    sign = -1.0 if primary.metric.better < 0 else 1.0
    if primary.arm == interleaving.baseline:  # the A/B test has the two rankers in the opposite roles
        sign = -sign
    preference = interleaving.overall
    interval = sorted((sign * primary.difference.low, sign * primary.difference.high))
    signs = _sign(preference.low, preference.high), _sign(*interval)
    insignificant = (
        "interleaving not significant" if not signs[0] else "A/B test not significant" if not signs[1] else ""
    )
    spread = primary.adjusted.error * math.sqrt(abtest.assignment.total_users)
    error = preference.error if preference.reason is None else math.nan
    return MethodComparison(
        other=interleaving.other,
        metric=str(primary.metric),
        preference=preference.value,
        gain=sign * primary.relative.value,
        users_interleaving=_required_users(
            error * math.sqrt(interleaving.users), preference.value, power, interleaving.level
        ),
        users_abtest=_required_users(spread, primary.difference.value, power, abtest.level),
        agree=insignificant or ("yes" if signs[0] == signs[1] else "no"),
    )


def _sign(low: float, high: float) -> int:
    return (low > 0) - (high < 0)
