"""Before mixed lists are shown: how many users they take, and how many an A/B test took for the same decision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from judged.errors import InputError
from judged.online.ab_tests.differences import Looks
from judged.online.ab_tests.planning import differences_of, users_a_day, users_any_day
from judged.online.engine import identifier
from judged.online.interleaving_analysis.analysis import insufficient
from judged.online.interleaving_analysis.credit import mixed_lists, outcomes_of
from judged.online.layout import in_unit, percent
from judged.online.log import LogAnswer, about, need
from judged.results import COUNT, TEXT, Column, Sentences, Table, columns_of, number
from judged.stats.ratio import UnitRatio

if TYPE_CHECKING:
    from judged.online.ab_tests.abtest import ABTest
    from judged.online.estimation.online_metrics import Unit
    from judged.online.interleaving_analysis.analysis import Interleaving
    from judged.online.log import InteractionLog
    from judged.results import Block

_NORMAL = NormalDist()
_GAIN, _POINTS = in_unit("share", 1), in_unit("share", 1, "+")


class PreferencePlan(NamedTuple):
    """A preference that is to be found, the users it takes on one day, and at the latest where one looks every day."""

    value: float
    users: float
    users_any_day: float
    days: float


class Pair(NamedTuple):
    """One change that was tested both ways.

    ``preference``, ``gain``: of the other ranker; of the A/B test's primary metric, relative, turned so that more is
    better. ``users_interleaving``, ``users_abtest``: what each would take to find what it found, on one day. ``agree``:
    yes or no where both tell the rankers apart, or else which does not.
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
    """How long it would take to find preferences on users like those of a log.

    Parameters
    ----------
    plans
        By preference.
    pairs
        Past changes that were tested both ways.
    power, a_day
        As asked for; new users in a day.
    spread, assumed
        Standard deviation of what one user says of the preference; whether it was assumed, not seen on mixed lists.
    """

    kind: ClassVar[str] = "interleaving-plan"
    answers: ClassVar[str] = "Before interleaving: {log}"
    asked: ClassVar[tuple[str, ...]] = ("power", "a_day", "spread", "assumed")

    plans: tuple[PreferencePlan, ...]
    pairs: tuple[Pair, ...]
    power: float
    a_day: float
    spread: float
    assumed: bool

    def blocks(self) -> tuple[Block, ...]:
        """Give users and days by preference, and what past changes took both ways."""
        users = ("users", COUNT, "users, one day"), ("users_any_day", COUNT, "users, any day")
        plans = Table(
            "plans",
            columns_of(self.plans, ("value", _POINTS, "preference"), *users, ("days", number(0), "days, any day")),
            "How long",
            labels=1,
            note=f"found with a probability of {percent(self.power)}; {self.a_day:,.0f} new users a day; "
            f"preference: wins and half of the ties, less a half; spread by user {self.spread:.2f}, "
            + ("assumed, not seen" if self.assumed else "as on the mixed lists of this log"),
        )
        if not self.pairs:
            return plans, self.made()
        ratios = [one.users_abtest / one.users_interleaving for one in self.pairs]
        pairs = Table(
            "pairs",
            (
                *columns_of(self.pairs, ("other", TEXT, "ranker"), ("preference", _POINTS)),
                *columns_of(self.pairs, ("users_interleaving", COUNT, "users"), ("metric", TEXT)),
                *columns_of(
                    self.pairs, ("gain", in_unit("share", 1), "A/B gain"), ("users_abtest", COUNT, "A/B users")
                ),
                Column("ratio", ratios, number(1), "times as many"),
                *columns_of(self.pairs, ("agree", TEXT)),
            ),
            "The same change, both ways",
            labels=1,
            note="users that each would take to find what it found; what was found is itself uncertain",
        )
        told = [one.agree for one in self.pairs if one.agree in {"yes", "no"}]
        said = f"Both told the rankers apart in {len(told)} of {len(self.pairs)}, and agreed in {told.count('yes')}."
        return plans, pairs, Sentences((said,)), self.made()


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
    """Say how many users, and days, it takes to find preferences on mixed lists.

    Parameters
    ----------
    log
        A log of the past: of mixed lists, whose spread over users is taken; or any other, of which it is assumed.
    differences
        Preferences that are to be found (wins and half of the ties by clicked lists, less a half); None: 1, 2, 5 and 10
        points.
    decided
        For a log without mixed lists: the share of clicked lists that will not be tied; lists of one user then say
        independent things.
    past
        Changes that were tested both ways: what each found, and the users that each would take.
    power
        With which probability.
    unit, level
        As for `judged.online.interleaving`.

    Raises
    ------
    InputError
        If nobody clicks, or an option makes no sense.
    """
    need(log=log, unit=unit, level=level, power=power)
    wanted = differences_of(differences)
    if not wanted or not all(0 < float(one) <= 0.5 for one in wanted) or not 0 < decided <= 1:
        fix = "give preferences above 0 and at most 0.5, such as 0.02, and a share of decided lists up to 1"
        raise InputError(f"differences are {wanted}, decided is {decided!r}", fix=fix)
    with log.engine.scratch():
        assumed = not log.engine.rows(f"SELECT 1 FROM {log.shown} WHERE team IS NOT NULL LIMIT 1")
        if assumed:
            lists, users = _clicked(log, unit)
            spread = math.sqrt(decided * users / (4.0 * lists)) if lists else math.nan
        else:
            mixed = mixed_lists(log, None, unit, None, count_shared=False)
            made = outcomes_of(log, mixed, count_repeated=False)
            users = mixed.users
            seen = UnitRatio.of_rows(made.unit, (made.win - made.loss) / 2.0)
            if seen.units and (reason := insufficient(made.unit, seen)):
                problem = f"how much users differ cannot be estimated. {reason.sentence('user').rstrip('.')}"
                raise InputError(problem, fix="give a log with more users", path=log.name)
            spread = seen.error * math.sqrt(users)
    if not spread > 0:
        raise InputError("clicks of this log decide nothing", fix="give a log with clicks", path=log.name)
    a_day = users_a_day(log, users)
    plans: list[PreferencePlan] = []
    for value in map(float, wanted):
        any_day = users_any_day(spread / 2.0, value, power, Looks(level))  # everybody sees both
        plans.append(PreferencePlan(value, _users(spread, value, power, level), any_day, any_day / a_day))
    said = {"decided": f"{percent(decided)} of clicked lists, assumed"} if assumed else {}
    return InterleavingPlan(
        plans=tuple(plans),
        pairs=tuple(_pair(*pair, power) for pair in past),
        power=power,
        a_day=a_day,
        spread=spread,
        assumed=assumed,
        **about(log, unit, level, said),
    )


def _clicked(log: InteractionLog, unit: str) -> tuple[int, int]:
    """Count first pages with a click, and all users who saw one."""
    row = log.engine.rows(
        f"SELECT count(*) FILTER (serp IN (SELECT serp FROM {log.event} WHERE action = 'click')) AS lists,"
        f" count(DISTINCT {identifier(unit)}) AS users FROM {log.serp} WHERE page = 1"
    )[0]
    return int(row["lists"]), int(row["users"])


def _users(spread: float, value: float, power: float, level: float) -> float:
    z = _NORMAL.inv_cdf(0.5 + level / 2.0) + _NORMAL.inv_cdf(power)
    return (z * spread / value) ** 2 if value else math.inf


def _pair(mixed: Interleaving, test: ABTest, power: float) -> Pair:
    """Set what both say of one change side by side."""
    goals = [one for one in test.differences if one.role == "primary"]
    goal = next((one for one in goals if one.arm == mixed.other), goals[0])
    sign = -1.0 if goal.metric.better < 0 else 1.0
    if goal.arm == mixed.baseline:  # the test was read the other way round
        sign = -sign
    seen = mixed.overall
    ends = sorted((sign * goal.difference.low, sign * goal.difference.high))
    told = _told(seen.low, seen.high), _told(*ends)
    agree = "interleaving does not tell" if not told[0] else "A/B does not tell" if not told[1] else ""
    error = seen.error if seen.reason is None else math.nan
    return Pair(
        other=mixed.other,
        metric=str(goal.metric),
        preference=seen.value,
        gain=sign * goal.relative.value,
        users_interleaving=_users(error * math.sqrt(mixed.users), seen.value, power, mixed.level),
        users_abtest=_users(
            goal.adjusted.error * math.sqrt(test.assignment.number), goal.difference.value, power, test.level
        ),
        agree=agree or ("yes" if told[0] == told[1] else "no"),
    )


def _told(low: float, high: float) -> int:
    return (low > 0) - (high < 0)
