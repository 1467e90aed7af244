"""`interleaving`: which of two rankers users prefer, by the clicks on interleaved lists."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from judged.online.ab_tests.differences import Inference
from judged.online.interleaving_analysis.credit import (
    MixedLists,
    Outcomes,
    RankShare,
    invalid_reasons,
    rank_shares,
    read_mixed_lists,
    read_outcomes,
)
from judged.online.layout import AMOUNT, clip, percent, unit_show
from judged.online.log import LogAnswer, answer_fields, validate
from judged.online.slicing import pages_where, slice_pages
from judged.results import COUNT, P_VALUE, SHARE, TEXT, Column, Headline, Sentences, Table, columns_of, counted, listed
from judged.stats.ratio import UnitRatio
from judged.stats.student import student_cdf, student_quantile
from judged.stats.sufficiency import Insufficiency, insufficiency

if TYPE_CHECKING:
    from judged.online.estimation.online_metrics import Unit
    from judged.online.log import InteractionLog
    from judged.results import Block
    from judged.results.headline import Status
    from judged.results.types import Ints

Decision: TypeAlias = Literal["preferred", "not preferred", "keep running", "invalid"]
_POINTS = unit_show("share", 1, "+")
MIN_EFFECTIVE_USERS = 50
"""Minimum effective number of users, by their lists, for an interval. With fewer, 95% intervals cover the true value in
85 to 91% of samples if activity and preference are correlated (tools/calibration/interleaving.py)."""


class Preference(NamedTuple):
    """Preference for the other ranker over the baseline, on all pages (`slice_name` is "") or in a slice.

    ``value``: share of wins, with ties as half a win, minus 0.5, by clicked list; 0: no preference. ``credit``: clicks
    of the other ranker minus those of the baseline, by clicked list. Both with intervals over users. ``error``:
    standard error of `value`. ``effective_users``: effective number of users (Kish), by their lists. ``reason``: why
    there is no interval and no p-value, which are NaN then.
    """

    slice_name: str
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
    effective_users: float
    reason: Insufficiency | None


@dataclass(frozen=True, eq=False, repr=False)
class Interleaving(LogAnswer):
    """Preference of users between two rankers, and the validity of the interleaved lists.

    Parameters
    ----------
    baseline, other
        The two rankers.
    method, lists, users
        Interleaving method, number of lists, number of users who saw them.
    decision, reasons, status
        Decision on the other ranker, its reasons, and whether users prefer the other ranker significantly.
    overall
        Preference on all lists.
    by, sliced
        Slicing attribute, and preferences by slice.
    ranks
        Share of the other ranker at each rank.
    """

    kind: ClassVar[str] = "interleaving"
    title_format: ClassVar[str] = "Interleaving of {other} and {baseline}: {log}"
    fact_fields: ClassVar[tuple[str, ...]] = (
        "baseline",
        "other",
        "method",
        "lists",
        "users",
        "by",
        "decision",
        "reasons",
    )

    baseline: str
    other: str
    method: str
    lists: int
    users: int
    decision: Decision
    reasons: tuple[str, ...]
    overall: Preference
    ranks: tuple[RankShare, ...]
    by: str | None = None
    sliced: tuple[Preference, ...] = ()
    status: Status = "unknown"

    @property
    def headline(self) -> Headline:
        """Decision, and the preference for the other ranker."""
        other, baseline, row = clip(self.other), clip(self.baseline), self.overall
        sentence = {
            "better": f"{other} won significantly more lists than {baseline}.",
            "worse": f"{other} won significantly fewer lists than {baseline}.",
            "same": f"No significant preference between {other} and {baseline} yet.",
        }.get(self.status, f"Not enough data for a decision: {counted(row.users, self.unit)} with a click.")
        if self.decision == "invalid":
            sentence = f"The test is not valid, so there is no decision on {other}."
        ci = (row.low, row.high) if math.isfinite(row.low + row.high) else None
        label = f"preference for {other} over {baseline}"
        return Headline(self.status, self.decision, sentence, label, row.value, _POINTS, ci, self.level, reference=0.0)

    def blocks(self) -> tuple[Block, ...]:
        """Return the verdict, the preferences, and the test for fair coin flips."""
        columns = ("rank", COUNT), ("lists", COUNT), ("share", SHARE, f"share of {self.other}"), ("p", P_VALUE)
        ranks = Table(
            "ranks",
            columns_of(self.ranks, *columns),
            f"Share of results from {self.other} by rank",
            note="With fair coin flips, each ranker fills each rank in half of the lists. p-values are for a fixed"
            " sample.",
            folded=True,
        )
        note = (
            f"{percent(self.level)} CIs over {self.unit}s. Preference: share of wins, with ties as half a win, minus"
            " 50%."
        )
        slices_note = (
            f"{percent(self.level)} CIs. Slices are exploratory: CIs and p-values are not corrected for the number of"
            " slices."
            f" Slices with an effective number of {self.unit}s below {MIN_EFFECTIVE_USERS} have no CI."
        )
        decision = self.decision.replace("running", "running the test")
        return (
            Sentences((f"{self.other}: {decision}. {' '.join(self.reasons)}",)),
            _preferences("preferences", "Preference", (self.overall,), note, self.unit),
            *(
                (_preferences("slices", f"By {self.by}", self.sliced, slices_note, self.unit),)
                if self.by is not None
                else ()
            ),
            ranks,
            self.method_block(),
        )


def _preferences(name: str, title: str, rows: tuple[Preference, ...], note: str, unit: str) -> Table:
    value_ci = [_finite_interval(row.low, row.high) for row in rows]
    credit_ci = [_finite_interval(row.credit_low, row.credit_high) for row in rows]
    return Table(
        name,
        (
            *((Column("slice", [row.slice_name for row in rows], TEXT),) if name == "slices" else ()),
            *columns_of(rows, ("users", COUNT, f"{unit}s"), ("lists", COUNT, "clicked lists")),
            *columns_of(rows, ("wins", AMOUNT), ("losses", AMOUNT)),
            Column("value", [row.value for row in rows], _POINTS, "preference", ci=value_ci),
            Column("p", [row.p for row in rows], P_VALUE),
            Column("credit", [row.credit for row in rows], unit_show("count", 3, "+"), "click difference per list",
                   ci=credit_ci),
            *columns_of(rows, "error"),
            Column("effective_users", [row.effective_users for row in rows], COUNT, only="data"),
            Column("reason", [row.reason.sentence(unit) if row.reason else "" for row in rows], TEXT, only="data"),
        ),
        title,
        labels=1 if name == "slices" else 0,
        note=note,
    )  # fmt: skip


def _finite_interval(low: float, high: float) -> tuple[float, float]:
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
    """Estimate which of two rankers users prefer, from the clicks on lists that interleave both.

    Each clicked list is a win, a loss, or a tie. The value is that of Chapelle, Joachims, Radlinski, and Yue (TOIS
    2012): the share of wins, with ties as half a win, minus 0.5. Its interval uses the delta method over users.

    Parameters
    ----------
    log
        Log of lists made by `judged.online.mixed_lists.interleave`, or of team drafts that name the team of each
        result.
    baseline
        Ranker that the other one is compared with; None: the first.
    by
        Slicing attribute; see `judged.online.slicing.slice_pages`.
    where
        Condition on the lists; see `judged.online.slicing.pages_where`.
    count_shared
        Whether clicks in team drafts count above the first rank where the two rankings differ. They carry no
        information.
    count_repeated
        Whether several clicks on the same result of a list count separately.
    any_day
        Whether intervals are valid on any day; False: only on one day that was set before the test.
    expected
        Number of users for which always-valid intervals are narrowest.
    min_users
        Minimum number of users with a click for a verdict.
    unit, level
        As for `judged.online.abtest`.

    Raises
    ------
    InputError
        If the log has no interleaved lists, lists of several tests, or lists without the attributes that credit needs.
    """
    validate(
        log=log, unit=unit, level=level, baseline=baseline, min_users=min_users, by=by, expected=expected, where=where
    )
    inference = Inference(level, any_day, expected)
    with log.engine.scratch():
        matching_pages, where_text = (None, "") if where is None else pages_where(log, where)
        mixed = read_mixed_lists(log, baseline, unit, matching_pages, count_shared=count_shared)
        ranks = rank_shares(mixed)
        invalid = invalid_reasons(mixed, ranks)
        overall = estimate_preference(read_outcomes(log, mixed, count_repeated=count_repeated), None, inference)
        sliced: list[Preference] = []
        if by is not None:
            by_slice = slice_pages(log, by)
            outcomes = read_outcomes(log, mixed, by_slice.table, count_repeated=count_repeated)
            names = [name for name in by_slice.values if name in outcomes.slices]
            sliced = [estimate_preference(outcomes, name, inference) for name in names]
    length = (
        "followed by the remaining results of the longer ranking, on which clicks give no credit"
        if mixed.longer
        else "with the length of the shorter ranking"
    )
    policies = {
        "lists": f"{mixed.method}, {length}",
        "where": where_text,
        "intervals": f"anytime-valid, narrowest at {expected:,} users" if any_day else "fixed-sample",
        "clicks above the first difference": "count" if count_shared else "do not count in team drafts",
        "repeated clicks on a result": "count separately" if count_repeated else "count once",
    }
    fields = answer_fields(log, unit, level, policies)
    decision, reasons, status = _verdict(mixed, overall, invalid, min_users, level=level, unit=fields["unit"])
    return Interleaving(
        baseline=mixed.rankers[0], other=mixed.rankers[1], method=mixed.method, lists=mixed.lists, users=mixed.users,
        decision=decision, reasons=tuple(reasons), overall=overall, ranks=tuple(ranks), by=by, sliced=tuple(sliced),
        status=status,
        **fields,
    )  # fmt: skip


def estimate_preference(outcomes: Outcomes, slice_name: str | None, inference: Inference) -> Preference:
    """Estimate the preference on all clicked lists, or in a slice."""
    selected = np.full(len(outcomes.unit), fill_value=True)
    if slice_name is not None:
        selected = outcomes.slice_code == outcomes.slices.index(slice_name)
    win, loss, unit = outcomes.win[selected], outcomes.loss[selected], outcomes.unit[selected]
    # Delta of Chapelle et al. (TOIS 2012): (wins + ties / 2) / (wins + ties + losses) - 1 / 2, which equals the mean
    # over clicked lists of (win - loss) / 2.
    value, credit = UnitRatio.of_rows(unit, (win - loss) / 2.0), UnitRatio.of_rows(unit, outcomes.credit[selected])
    reason = interval_insufficiency(unit, value)
    interval, credit_interval, p = (math.nan, math.nan), (math.nan, math.nan), math.nan
    if reason is None:
        critical, p = _critical_and_p_value(value, inference)
        interval = value.interval(critical)
        credit_interval = credit.interval(critical) if credit.error > 0 else credit_interval
    wins, losses = float(win.sum()), float(loss.sum())
    return Preference(
        slice_name or "", value.units, len(win), wins, losses, value.value, value.error, *interval, p,
        credit.value, *credit_interval, value.effective, reason,
    )  # fmt: skip


def interval_insufficiency(unit: Ints, value: UnitRatio) -> Insufficiency | None:
    """Return why clicked lists, each with the code of its user, do not support an interval; None if they do."""
    # A few users with most lists would determine the result: their effective number counts (Kish).
    lists = np.unique(unit, return_counts=True)[1]
    return insufficiency(value.units, variance=value.error, weights=lists, min_effective_units=MIN_EFFECTIVE_USERS)


def _critical_and_p_value(value: UnitRatio, inference: Inference) -> tuple[float, float]:
    """Return half the width of intervals in standard errors, and the p-value of no preference."""
    # Fixed sample: Student's t, with one degree of freedom less than users.
    t = value.t(0.0)
    if inference.any_day:
        return inference.critical(value.units), inference.p_value(t, value.units)
    df = value.units - 1
    return student_quantile((1.0 + inference.level) / 2.0, df), 2.0 * student_cdf(-abs(t), df)


def _verdict(
    mixed: MixedLists,
    overall: Preference,
    invalid: tuple[str, ...],
    min_users: int,
    *,
    level: float = 0.95,
    unit: str = "user",
) -> tuple[Decision, tuple[str, ...], Status]:
    other, baseline = mixed.rankers[1], mixed.rankers[0]
    # As for A/B tests, invalid lists have no verdict.
    if invalid:
        return "invalid", (f"The test is not valid: {listed(invalid)}.",), "unknown"
    if overall.users < min_users:
        too_few = f"Not enough data: {counted(overall.users, unit)} with a click, at least {min_users:,} are required."
        return "keep running", (too_few,), "unknown"
    if overall.reason is not None:
        return "keep running", (overall.reason.sentence(unit),), "unknown"
    if math.isnan(overall.low):
        reason = f"The anytime-valid CI has no finite limits yet, n = {overall.users:,} {unit}s."
        return "keep running", (reason,), "unknown"
    low, high = map(_POINTS.limit or _POINTS.write, (overall.low, overall.high))
    sample = f"p = {P_VALUE.write(overall.p)}, n = {overall.users:,} {unit}s with {overall.lists:,} clicked lists"
    result = f"{_POINTS.write(overall.value)}, {percent(level)} CI [{low}, {high}], {sample}"
    if overall.low > 0:
        return "preferred", (f"{other} won significantly more lists than {baseline}: {result}.",), "better"
    if overall.high < 0:
        return "not preferred", (f"{other} won significantly fewer lists than {baseline}: {result}.",), "worse"
    reason = f"No significant preference between {other} and {baseline}: preference for {other} {result}."
    return "keep running", (reason,), "same"
