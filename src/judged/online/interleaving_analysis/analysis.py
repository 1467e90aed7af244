"""`interleaving`: which of two rankers users prefer on lists that mix both, with intervals that hold on any day."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from judged.online.ab_tests.differences import Looks
from judged.online.interleaving_analysis.credit import (
    AtRank,
    MixedLists,
    Outcomes,
    by_rank,
    mixed_lists,
    outcomes_of,
    unsound,
)
from judged.online.layout import AMOUNT, in_unit, percent
from judged.online.log import LogAnswer, about, need
from judged.online.slicing import pages_where, slice_pages
from judged.results import COUNT, P_VALUE, SHARE, TEXT, Column, Sentences, Table, columns_of, counted, listed
from judged.stats.ratio import UnitRatio
from judged.stats.student import student_cdf, student_quantile
from judged.stats.sufficiency import Insufficiency, insufficiency

if TYPE_CHECKING:
    from judged.online.estimation.online_metrics import Unit
    from judged.online.log import InteractionLog
    from judged.results import Block
    from judged.results.types import Ints

Decision: TypeAlias = Literal["preferred", "not preferred", "keep running", "broken"]
_POINTS = in_unit("share", 1, "+")
MIN_EFFECTIVE_USERS = 50
"""Minimum effective number of users, by their lists, for an interval. With fewer, 95% intervals of users whose activity
goes with their preference hold the truth in 85 to 91% of samples (tools/calibration/interleaving.py)."""


class Preference(NamedTuple):
    """What clicked lists say of the other ranker against the baseline, of all pages (an empty `part`) or of a slice.

    ``value``: wins and half of the ties, by clicked lists, less a half: 0 says that neither is preferred. ``credit``:
    clicks of the other ranker less those of the baseline, by clicked list. Both with their intervals over users.
    ``error``: standard error of `value`. ``effective``: number of users with equally many lists that tell as much.
    ``reason``: why there is no interval and no p-value; then they are NaN.
    """

    part: str
    users: int
    lists: int
    wins: float
    losses: float
    value: float
    error: float
    low: float
    high: float
    p: float
    credit: float
    credit_low: float
    credit_high: float
    effective: float
    reason: Insufficiency | None


@dataclass(frozen=True, eq=False, repr=False)
class Interleaving(LogAnswer):
    """What users prefer, and whether the lists that say so are sound.

    Parameters
    ----------
    baseline, other
        The two rankers.
    mixing, lists, users
        How lists were mixed, how many there are, and how many users saw them.
    decision, reasons
        What follows for the other ranker, and why.
    overall
        Of all lists.
    by, sliced
        The same by slice.
    ranks
        How often each rank counted for the other ranker.
    """

    kind: ClassVar[str] = "interleaving"
    answers: ClassVar[str] = "{other} or {baseline}, interleaved: {log}"
    asked: ClassVar[tuple[str, ...]] = ("baseline", "other", "mixing", "lists", "users", "by", "decision", "reasons")

    baseline: str
    other: str
    mixing: str
    lists: int
    users: int
    decision: Decision
    reasons: tuple[str, ...]
    overall: Preference
    ranks: tuple[AtRank, ...]
    by: str | None = None
    sliced: tuple[Preference, ...] = ()

    def blocks(self) -> tuple[Block, ...]:
        """Give the verdict, what clicks say, and whether the coins were fair."""
        columns = ("rank", COUNT), ("lists", COUNT), ("share", SHARE, f"{self.other}'s"), ("p", P_VALUE)
        ranks = Table(
            "ranks",
            columns_of(self.ranks, *columns),
            "Were the coins fair?",
            note="each rank counts for either ranker half of the time, whoever is better; p over all users, on one day",
            folded=True,
        )
        note = f"{percent(self.level)} intervals over {self.unit}s; value: wins and half of the ties, less a half"
        sliced = (
            f"{percent(self.level)} intervals, each for itself: slices were not declared, so they are exploratory;"
            f" none for fewer than {MIN_EFFECTIVE_USERS} effective {self.unit}s"
        )
        return (
            Sentences((f"{self.other}: {self.decision}. {' '.join(self.reasons)}",)),
            _preferences("preferences", "What clicks prefer", (self.overall,), note),
            *((_preferences("slices", f"By {self.by}", self.sliced, sliced),) if self.by is not None else ()),
            ranks,
            self.made(),
        )


def _preferences(name: str, title: str, rows: tuple[Preference, ...], note: str) -> Table:
    ends = [(row.credit_low, row.credit_high) for row in rows]
    return Table(
        name,
        (
            *((Column("slice", [one.part for one in rows], TEXT),) if name == "slices" else ()),
            *columns_of(rows, ("users", COUNT), ("lists", COUNT, "clicked lists")),
            *columns_of(rows, ("wins", AMOUNT), ("losses", AMOUNT)),
            Column("value", [one.value for one in rows], _POINTS, ci=[_ends(one.low, one.high) for one in rows]),
            Column("p", [one.p for one in rows], P_VALUE),
            Column("credit", [one.credit for one in rows], in_unit("count", 3, "+"), "clicks a list",
                   ci=[_ends(*pair) for pair in ends]),
            *columns_of(rows, "error"),
            Column("effective", [row.effective for row in rows], COUNT, only="data"),
            Column("reason", [row.reason.sentence("user") if row.reason else "" for row in rows], TEXT, only="data"),
        ),
        title,
        labels=1 if name == "slices" else 0,
        note=note,
    )  # fmt: skip


def _ends(low: float, high: float) -> tuple[float, float]:
    return (low, high) if math.isfinite(low + high) else (math.nan, math.nan)


def interleaving(
    log: InteractionLog,
    *,
    baseline: str | None = None,
    by: str | None = None,
    where: str | None = None,
    count_shared: bool = False,
    count_repeated: bool = False,
    any_day: bool = True,
    expected: int = 5000,
    min_users: int = 200,
    unit: Unit = "user",
    level: float = 0.95,
) -> Interleaving:
    """Say which of two rankers users prefer, from lists that mix both.

    Each list with a click is won, lost or tied. The value is Chapelle, Joachims, Radlinski and Yue's (TOIS 2012): wins
    and half of the ties by clicked lists, less a half; its interval is made over users by the delta method.

    Parameters
    ----------
    log
        A log of lists that `judged.online.mixed_lists.interleave` mixed, or of team drafts with a team for each result.
    baseline
        The ranker that the other is compared with; None: the first.
    by
        Slices by which it is shown too; see `judged.online.slicing.slice_pages`.
    where
        Only lists that match; see `judged.online.slicing.pages_where`.
    count_shared
        Whether clicks count in team drafts down to where the two lists part: above, they tell nothing.
    count_repeated
        Whether several clicks on one result of a list count as several.
    any_day
        Whether intervals hold on whichever day one looks; False: on one day that was set before the test.
    expected
        The number of users at which such intervals are narrowest.
    min_users
        No verdict before so many users clicked.
    unit, level
        As for `judged.online.abtest`.

    Raises
    ------
    InputError
        If the log has no such lists, or several tests, or does not tell what they count for.
    """
    need(log=log, unit=unit, level=level, baseline=baseline, min_users=min_users, by=by, expected=expected, where=where)
    looks, said = Looks(level, any_day, expected), ""
    with log.engine.scratch():
        chosen, said = (None, "") if where is None else pages_where(log, where)
        mixed = mixed_lists(log, baseline, unit, chosen, count_shared=count_shared)
        ranks = by_rank(mixed)
        broken = unsound(mixed, ranks)
        overall = preference(outcomes_of(log, mixed, count_repeated=count_repeated), None, looks)
        sliced: list[Preference] = []
        if by is not None:
            cut = slice_pages(log, by)
            outcomes = outcomes_of(log, mixed, cut.table, count_repeated=count_repeated)
            sliced = [preference(outcomes, name, looks) for name in cut.values if name in outcomes.parts]
    decision, why = _verdict(mixed, overall, broken, min_users)
    rest = "the rest of the longer one follows, for neither" if mixed.longer else "cut at the shorter"
    policies = {
        "lists": f"{mixed.method}, {rest}",
        "where": said,
        "intervals hold": f"on any day, narrowest at {expected:,} users" if any_day else "on one day, set before",
        "above where lists part": "clicks count" if count_shared else "clicks of team drafts count for neither",
        "several clicks on one result": "count as several" if count_repeated else "count once",
    }
    return Interleaving(
        baseline=mixed.rankers[0],
        other=mixed.rankers[1],
        mixing=mixed.method,
        lists=mixed.lists,
        users=mixed.users,
        decision=decision,
        reasons=tuple(why),
        overall=overall,
        ranks=tuple(ranks),
        by=by,
        sliced=tuple(sliced),
        **about(log, unit, level, policies),
    )


def preference(made: Outcomes, part: str | None, looks: Looks) -> Preference:
    """Estimate the preference of all clicked lists, or of a slice."""
    here = np.full(len(made.unit), fill_value=True) if part is None else made.part == made.parts.index(part)
    win, loss, unit = made.win[here], made.loss[here], made.unit[here]
    value, credit = UnitRatio.of_rows(unit, (win - loss) / 2.0), UnitRatio.of_rows(unit, made.credit[here])
    reason = insufficient(unit, value)
    ends, credit_ends, p = (math.nan, math.nan), (math.nan, math.nan), math.nan
    if reason is None:
        half, p = _critical_and_p(value, looks)
        ends = value.interval(half)
        credit_ends = credit.interval(half) if credit.error > 0 else credit_ends
    return Preference(
        part or "", value.units, len(win), float(win.sum()), float(loss.sum()), value.value, value.error, *ends, p,
        credit.value, *credit_ends, value.effective, reason,
    )  # fmt: skip


def insufficient(unit: Ints, value: UnitRatio) -> Insufficiency | None:
    """Return why clicked lists, each with the code of its user, do not support an interval."""
    lists = np.unique(unit, return_counts=True)[1]
    return insufficiency(value.units, variance=value.error, weights=lists, min_effective_units=MIN_EFFECTIVE_USERS)


def _critical_and_p(value: UnitRatio, looks: Looks) -> tuple[float, float]:
    """Return half the width of intervals in standard errors, and the p-value of no preference."""
    t = value.t(0.0)
    if looks.any_day:
        return looks.critical(value.units), looks.p(t, value.units)
    df = value.units - 1
    return student_quantile((1.0 + looks.level) / 2.0, df), 2.0 * student_cdf(-abs(t), df)


def _verdict(
    mixed: MixedLists, overall: Preference, broken: tuple[str, ...], min_users: int
) -> tuple[Decision, tuple[str, ...]]:
    if broken:
        return "broken", (f"Nothing follows: {listed(broken)}.",)
    if overall.users < min_users:
        few = f"{counted(overall.users, 'user')} clicked, of the {min_users:,} before which nothing is said."
        return "keep running", (few,)
    if overall.reason is not None:
        return "keep running", (overall.reason.sentence("user"),)
    if math.isnan(overall.low):
        return "keep running", ("These users do not bound the preference yet.",)
    span = f"{_POINTS.write(overall.low)} to {_POINTS.write(overall.high)}"
    if overall.low > 0:
        return "preferred", (f"Its results won more lists than those of {mixed.rankers[0]}: {span}.",)
    if overall.high < 0:
        return "not preferred", (f"Its results won fewer lists than those of {mixed.rankers[0]}: {span}.",)
    return "keep running", (f"It is not told apart from {mixed.rankers[0]}: {span}.",)
