"""What another ranker would have got: a log in which it is known how likely each result was shown where it was."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from judged.errors import InputError
from judged.online.clicks.importance_weighting import (
    ESTIMATORS,
    LoggedPages,
    Rates,
    Target,
    Weights,
    cascade,
    direct_residuals,
    effective,
    equally_skewed,
    item_position,
    mean_and_error,
    never_logged,
    places,
    pseudo_inverse,
    read_pages,
    self_normalized,
    weigh,
    whole_list,
)
from judged.online.layout import percent
from judged.online.log import LogAnswer, about, need
from judged.online.offline.concordance import by_unit
from judged.results import CHANGE, COUNT, NUMBER, TEXT, Column, Sentences, Table, columns_of, counted, listed
from judged.stats.ratio import UnitRatio, student_quantiles
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.online.log import InteractionLog
    from judged.results import Block
    from judged.results.types import Floats, Ints

MIN_EFFECTIVE_CLICKING = 15
"""Minimum effective number of users, by their weighted clicks, for an interval."""


class Limits(NamedTuple):
    """Minimums for an interval.

    ``effective_users``: effective number of users by their weights. ``even_users``: number of equal users whose sum
    would be as skewed; if a few clicks have large weights, a log without one of them gives a narrow interval far below
    the truth.
    """

    effective_users: int
    even_users: int


LIMITS, LIMITS_OF_LISTS = Limits(50, 10), Limits(100, 25)
"""Products of weights have the heaviest tails: see tools/calibration/off_policy.py."""
_TOLERANCE = 0.005  # by which a mean weight may miss its range, beside 4 standard errors: propensities are rounded
_NOTHING = 1e-12  # standard error of values that differ by rounding alone
_NONE = (math.nan, math.nan)


class OffPolicy(NamedTuple):
    """Estimated clicks a page of the other ranker, and their difference from those that were logged.

    ``unknown``: clicks a page that it may get beyond the value, on what the log never shows or what clipping cuts; the
    upper ends of intervals include them. ``effective``: number of users of equal weight that are as informative.
    ``refused``: why there is no value; then numbers are NaN. ``insufficient``: why there is no interval.
    """

    estimator: str
    value: float
    ci: tuple[float, float] | None
    difference: float
    difference_ci: tuple[float, float] | None
    unknown: float
    effective: float
    refused: str
    insufficient: str


class RankWeights(NamedTuple):
    """The weights of a rank.

    ``mean``: 1 if propensities are right and the log shows all that the other ranker does. ``never``: probability that
    it shows what the log never did. Under conditional propensities both are of the list down to the rank.
    """

    rank: int
    pages: int
    mean: float
    error: float
    most: float
    effective: float
    never: float


@dataclass(frozen=True, eq=False, repr=False)
class OffPolicyEstimates(LogAnswer):
    """What `off_policy` returns.

    Attributes
    ----------
    run : str
        The other ranker's name.
    convention : str
        What the log's propensities are probabilities of; empty: not declared.
    pages, users, logged : int, int, float
        On what it rests, and clicks a page as logged.
    bare, other : int, int
        Pages that do not count: without propensities, and without a topic of the run.
    depth, clip : int, float
        Ranks that count, and the largest weight of the clipped estimate.
    rows : tuple of OffPolicy
    weights : tuple of RankWeights
    """

    kind: ClassVar[str] = "off-policy"
    answers: ClassVar[str] = "{run}: what users of {log} would have clicked"
    asked: ClassVar[tuple[str, ...]] = (
        "run", "convention", "pages", "users", "logged", "bare", "other", "depth", "clip",
    )  # fmt: skip
    main: ClassVar[str] = "estimates"

    run: str
    convention: str
    pages: int
    users: int
    logged: float
    bare: int
    other: int
    depth: int
    clip: float
    rows: tuple[OffPolicy, ...]
    weights: tuple[RankWeights, ...]

    @property
    def overlaps(self) -> bool:
        """Whether an estimator that rests on propensities gives an interval."""
        return any(row.ci is not None for row in self.rows if row.estimator != "direct")

    def blocks(self) -> tuple[Block, ...]:
        """Return the estimates, what each assumes, and the weights by rank."""
        rows = self.rows
        size = f"{counted(self.pages, 'page')} of {counted(self.users, 'user')}"
        left_out = [
            f"{counted(number, 'page')} without {what}"
            for number, what in ((self.bare, "propensities"), (self.other, "a topic of the run"))
            if number
        ]
        sentences = (
            f"{size}, with {self.logged:.4g} clicks a page in the first {self.depth} ranks as logged.",
            *((f"Not counted: {listed(left_out)}.",) if left_out else ()),
            *_reasons(rows, "refused", "No estimate"),
            *_reasons(rows, "insufficient", "No interval"),
        )
        return (
            Sentences(sentences),
            Table(
                "estimates",
                (
                    *columns_of(rows, ("estimator", TEXT), ("value", NUMBER, "clicks a page")),
                    Column(
                        "difference", [row.difference for row in rows], CHANGE, "minus logged",
                        [row.difference_ci for row in rows],
                    ),
                    *columns_of(rows, ("unknown", NUMBER), ("effective", COUNT, f"equal {self.unit}s")),
                    *columns_of(rows, "refused", "insufficient"),
                ),
                "What it would have got",
                note=f"{percent(self.level)} intervals over {self.unit}s; unknown: clicks it may get beyond the value,"
                f" on what was never shown or is clipped, which upper ends include",
            ),
            Table(
                "assumptions",
                (
                    Column("estimator", list(ESTIMATORS), TEXT),
                    Column("propensities", [_needs(name) for name in ESTIMATORS], TEXT),
                    Column("assumes", [one.assumes for one in ESTIMATORS.values()], TEXT),
                    Column("blind", [one.blind for one in ESTIMATORS.values()], TEXT, "is blind to"),
                ),
                "What each needs and assumes",
                folded=True,
            ),
            Table(
                "weights",
                columns_of(
                    self.weights, ("rank", COUNT), ("pages", COUNT), ("mean", NUMBER), ("error", NUMBER),
                    ("most", NUMBER, "largest"), ("effective", COUNT, f"equal {self.unit}s"),
                    ("never", NUMBER, "never shown"),
                ),
                "Weights",
                note=("of the list down to each rank" if self.convention == "conditional" else "of each rank")
                + "; their mean is 1, less at most the probability of what was never shown",
            ),
            self.made(),
        )  # fmt: skip


def _reasons(rows: Sequence[OffPolicy], field: str, what: str) -> Iterator[str]:
    for reason in dict.fromkeys(getattr(row, field) for row in rows if getattr(row, field)):
        names = [row.estimator for row in rows if getattr(row, field) == reason]
        yield f"{what} by {listed(names)}: {reason}"


def _needs(name: str) -> str:
    """Name the propensities that an estimator is right for."""
    return " or ".join(ESTIMATORS[name].conventions) or "none"


def off_policy(
    log: InteractionLog,
    run: Any,
    *,
    topics: Any = None,
    depth: int = 10,
    clip: float = 10.0,
    independent_ranks: bool = False,
    unit: str = "user",
    level: float = 0.95,
) -> OffPolicyEstimates:
    """Estimate the clicks that another ranker would have got, from logged pages and the propensities of their results.

    Parameters
    ----------
    log
        With the probability that each result was shown at its rank (``propensity``), and what that is a probability of
        (`InteractionLog.propensity_convention`).
    run
        The other ranker: a run, as `evaluate` takes it; or, if it does not depend on the query, a table with ``rank``,
        ``doc_id`` and ``probability``, as a list of dicts, a frame or a path.
    topics
        How a page finds its topic in the run, as for `judged.online.against_qrels`.
    depth
        Ranks that count.
    clip
        The largest weight of the clipped estimate.
    independent_ranks
        Whether a table of probabilities fills each rank independently of the others. Without it the probability of its
        lists is not known, and the estimators that need it are refused.
    unit, level
        What intervals are made over, and how wide they are.

    Raises
    ------
    InputError
        If the log has no propensities, no page has a topic of the run, or an option makes no sense.

    Notes
    -----
    An estimator is refused if the log does not declare propensities for which it is right, or if the mean weight shows
    that they are wrong. There is no interval if less than 50 users of equal weight are as informative (100 for cascade
    and whole list), or if a few clicks with large weights make the sum as skewed as that of less than 10 users (25).
    What the other ranker shows and the log never does may get no click or be clicked always: upper ends of intervals
    include that. See `judged.online.clicks.importance_weighting` for what each estimator assumes.
    """
    need(log=log, unit=unit, level=level)
    if not clip >= 1:
        raise InputError(f"clip must be 1 or more, got {clip:g}", fix="give the largest weight of a result")
    pages, target = read_pages(log, run, topics, unit, depth)
    weights, convention = weigh(pages, target, depth), log.propensity_convention
    by_rank = tuple(_by_rank(weights, pages.unit, prefix=convention == "conditional")) if convention else ()
    made = PageEstimates(pages, target, weights, clip, level)
    lists_known = target.is_run or independent_ranks
    rows = tuple(made.row(name, made.refusal(name, convention, lists_known=lists_known)) for name in ESTIMATORS)
    logged, _ = mean_and_error(weights.rewards.sum(axis=1), pages.unit)
    policies = {
        "other ranker": target.name,
        "propensities": convention or "not declared",
        "weights cut at": f"{clip:g}, for the clipped estimate alone",
    }
    return OffPolicyEstimates(
        run=target.name, convention=convention, pages=len(pages.unit), users=int(pages.unit.max()) + 1, logged=logged,
        bare=pages.bare, other=pages.other, depth=depth, clip=clip, rows=rows, weights=by_rank,
        **about(log, unit, level, policies),
    )  # fmt: skip


def _by_rank(weights: Weights, unit: Ints, *, prefix: bool) -> Iterator[RankWeights]:
    """Summarize the weights of each rank that pages have."""
    ratio = weights.prefix if prefix else weights.ratio
    never = weights.missing if prefix else weights.never
    for rank in np.flatnonzero(weights.known.any(axis=0)).tolist():
        own = weights.known[:, rank]
        mean, error = mean_and_error(ratio[own, rank], np.unique(unit[own], return_inverse=True)[1])
        number = _effective_units(ratio[own, rank], unit[own])
        most, missed = float(ratio[own, rank].max()), float(never[own, rank].mean())
        yield RankWeights(rank + 1, int(own.sum()), mean, error, most, number, missed)


def _effective_units(weights: Floats, unit: Ints) -> float:
    return effective(by_unit(unit, weights))


class PageEstimates:
    """Values of all estimators by page, and what follows from them over users."""

    def __init__(self, pages: LoggedPages, target: Target, weights: Weights, clip: float, level: float) -> None:
        self.unit, self.level, self.weights, self.own = pages.unit, level, weights, weights.rewards.sum(axis=1)
        ratio, rewards, known = weights.ratio, weights.rewards, weights.known
        prefix, never = weights.prefix, weights.never.sum(axis=1).astype(np.float64)
        self.pages_per_unit = np.bincount(self.unit).astype(np.float64)
        cut = np.minimum(ratio, clip)
        expected = (weights.mass - weights.never).mean(axis=0)
        normalized, influence = self_normalized(ratio, rewards, expected)
        direct, shares, modeled = _modeled(pages, target, weights)
        unseen = weights.missing[:, -1] + 1.0 - weights.prefix_mass[:, -1]  # no logged list of this length
        self.values: dict[str, Floats] = {
            "item-position": item_position(ratio, rewards),
            "self-normalized": normalized + influence,
            "clipped": item_position(cut, rewards),
            "direct": direct,
            "doubly robust": modeled,
            "pseudo-inverse": pseudo_inverse(ratio, rewards),
            "cascade": cascade(ratio, rewards),
            "whole list": whole_list(ratio, rewards),
        }
        self.unknown: dict[str, Floats] = {
            "item-position": never,
            "self-normalized": never,
            "direct": never,
            "doubly robust": never,
            "clipped": never + (ratio - cut).sum(axis=1),
            "pseudo-inverse": never * (1.0 + self.own),
            "cascade": (weights.missing * known).sum(axis=1),
            "whole list": known.sum(axis=1) * unseen,
        }
        factors: dict[str, Floats] = {
            "direct": shares,
            "pseudo-inverse": (1.0 + (ratio - 1.0).sum(axis=1))[:, None],
            "cascade": prefix,
            "whole list": prefix[:, -1:],
        }
        # A rank without any weight adds nothing to the value: what it may get is unknown.
        each = {name: [column for column in factors.get(name, ratio).T if column.any()] for name in ESTIMATORS}
        self.effective = {
            name: min((_effective_units(column, self.unit) for column in columns), default=0.0)
            for name, columns in each.items()
        }

    def refusal(self, name: str, convention: str, *, lists_known: bool) -> str:
        """Return why an estimator says nothing; empty if it does."""
        needs = ESTIMATORS[name]
        if not needs.conventions:
            return ""
        possible = " or ".join(map(repr, needs.conventions))
        if not convention:
            declared = f"the log does not declare what its propensities are; write propensity_convention = {possible}"
            return f"{declared} in its mapping, if they are (see docs/off-policy.md)."
        if convention not in needs.conventions:
            return f"it needs propensities that are {_needs(name)}, and those of the log are {convention}."
        if needs.list_probability and not lists_known:
            return "the table does not say how likely its lists are: independent_ranks, if each rank is filled alone."
        known = self.weights.known
        if convention != "marginal" and name in {"cascade", "whole list", "pseudo-inverse"}:
            gap = np.diff(known.astype(np.int8), prepend=1, axis=1) > 0
            if gaps := int(gap.any(axis=1).sum()):
                return f"{counted(gaps, 'page')} lack a rank above others, on which the probability of a list depends."
            return self._wrong_mean(prefix=True)
        return self._wrong_mean(prefix=False)

    def _wrong_mean(self, *, prefix: bool) -> str:
        """Return what mean weights say against propensities, or against their convention."""
        mass = self.weights.prefix_mass if prefix else self.weights.mass
        for row in _by_rank(self.weights, self.unit, prefix=prefix):
            high = float(mass[self.weights.known[:, row.rank - 1], row.rank - 1].mean())
            low, most = high - row.never, 4.0 * row.error + _TOLERANCE
            if not low - most <= row.mean <= high + most:
                what = f"the list down to rank {row.rank}" if prefix else f"rank {row.rank}"
                span = f"{high:.2f}" if high - low < _TOLERANCE else f"{low:.2f} to {high:.2f}"
                wrong = "propensities or their kind are wrong"
                return f"the mean weight of {what} is {row.mean:.2f}, expected {span}: {wrong}."
        return ""

    def row(self, name: str, refused: str) -> OffPolicy:
        """Return an estimate with its interval, and its difference from what was logged on the same pages."""
        equal = self.effective[name]
        if refused:
            return OffPolicy(name, math.nan, None, math.nan, None, math.nan, equal, refused, "")
        values, unknown = self.values[name], float(self.unknown[name].mean())
        sums = by_unit(self.unit, values)
        ratio = UnitRatio.of(sums, self.pages_per_unit)
        gap = UnitRatio.of(by_unit(self.unit, values - self.own), self.pages_per_unit)
        clicking = effective(np.abs(sums))
        even = equally_skewed(sums - ratio.value * self.pages_per_unit)
        error = ratio.error if ratio.error > _NOTHING else 0.0
        least = LIMITS_OF_LISTS if ESTIMATORS[name].list_probability else LIMITS
        limits = (
            (equal, least.effective_users), (clicking, MIN_EFFECTIVE_CLICKING), (even, least.even_users),
        )  # fmt: skip
        reasons = [
            insufficiency(ratio.units, variance=error, effective_units=number, min_effective_units=limit)
            for number, limit in limits
        ]
        why = next((reason for reason in reasons if reason), None)
        insufficient = why.sentence("user") if why else ""
        ends = [_NONE, _NONE]
        if why is None:
            df = np.array(min(equal, clicking) - 1.0)
            half = float(student_quantiles((1.0 + self.level) / 2.0, df))
            ends = [one.interval(half) if one.error > _NOTHING else _NONE for one in (ratio, gap)]
        ci, gap_ci = (None if math.isnan(low) else (low, high + unknown) for low, high in ends)
        return OffPolicy(name, ratio.value, ci, gap.value, gap_ci, unknown, equal, "", insufficient)


def _modeled(pages: LoggedPages, target: Target, weights: Weights) -> tuple[Floats, Floats, Floats]:
    """Predict clicks by document and rank: direct values by page, their weights by rank, and doubly robust values.

    What the log never shows is predicted to get no click. The direct estimate uses the mean of all pages; its values by
    page include the error of these means (see `direct_residuals`), and their mean is the estimate. The doubly robust
    one predicts each half of the users by the other.
    """
    shape = weights.ratio.shape
    depth = shape[1]
    slot = pages.topic * depth + pages.rank
    known, code = np.unique(slot * target.number + pages.doc, return_inverse=True)
    slots, slot_of = np.unique(target.cells // target.number, return_inverse=True)
    place = places(slots, slot)  # of each result among the topics and ranks that the other ranker fills
    cells, ranks = places(known, target.cells), target.cells // target.number % depth
    chance = np.where(never_logged(pages, target, depth), 0.0, target.chance)
    unit = pages.unit[pages.page]

    def expected(rates: Rates, own: Any) -> Floats:
        by_slot = np.append(np.bincount(slot_of, chance * rates.of(cells, ranks), len(slots)), 0.0)
        return np.bincount(pages.page[own], by_slot[place[own]], shape[0]).astype(np.float64)

    everyone = np.ones(len(unit), dtype=np.bool_)
    rates = Rates(code, pages.rank, pages.clicked, len(known), depth, prior=0.0)
    visits = np.bincount(place[place >= 0], minlength=len(slots))
    wanted = np.zeros(len(known))
    wanted[cells[cells >= 0]] = (chance * visits[slot_of])[cells >= 0]
    share = (wanted / np.bincount(code))[code]
    off = direct_residuals(code, pages.clicked, unit, share, rates.ranks[pages.rank])
    direct = expected(rates, everyone)
    residual = np.bincount(pages.page, off, shape[0])
    direct = direct + residual - residual.mean()
    shares = np.where(weights.known, 0.0, 1.0)
    shares[pages.page, pages.rank] = share

    robust = np.zeros(shape[0])
    for half in (0, 1):
        other, own = unit % 2 != half, unit % 2 == half
        model = Rates(code[other], pages.rank[other], pages.clicked[other], len(known), depth)
        robust += expected(model, own)
        missed = pages.clicked[own] - model.of(code[own], pages.rank[own])
        robust += np.bincount(pages.page[own], weights.ratio[pages.page, pages.rank][own] * missed, shape[0])
    return direct, shares, robust
