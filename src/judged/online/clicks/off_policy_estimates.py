"""Off-policy evaluation: estimate the clicks of a target policy from a log with propensities."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from judged.errors import InputError
from judged.online.clicks.importance_weighting import (
    ESTIMATORS,
    ImportanceWeights,
    LoggedPages,
    ShrunkRates,
    TargetPolicy,
    cascade,
    direct_method_residuals,
    effective_sample_size,
    find_codes,
    importance_weights,
    item_position,
    mean_and_error,
    pseudo_inverse,
    read_pages,
    self_normalized,
    skewness_sample_size,
    unsupported_cells,
    whole_list,
)
from judged.online.layout import percent
from judged.online.log import LogAnswer, answer_fields, validate
from judged.online.offline.concordance import unit_sums
from judged.results import CHANGE, COUNT, NUMBER, TEXT, Column, Sentences, Table, columns_of, counted, listed
from judged.stats.ratio import UnitRatio, student_quantiles
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.online.log import InteractionLog
    from judged.results import Block
    from judged.results.types import Floats, Ints

MIN_EFFECTIVE_CLICKERS = 15
"""Minimum effective number of users (Kish) for an interval, with the weighted clicks of each user as its weight."""


class IntervalMinimums(NamedTuple):
    """Minimum numbers of users for an interval.

    ``effective_users``: effective number of users by their weights. ``skewness_users``: number of equal users whose sum
    has the same skewness. If a few clicks have large weights, a log that misses them has a narrow interval far below
    the true value.
    """

    effective_users: int
    skewness_users: int


MINIMUMS, LIST_MINIMUMS = IntervalMinimums(50, 10), IntervalMinimums(100, 25)
"""Products of weights have heavier tails, so that lists need more users (tools/calibration/off_policy.py)."""
_TOLERANCE = 0.005  # of a mean weight, in addition to 4 standard errors: logged propensities are rounded
_ROUNDING_ERROR = 1e-12  # standard errors up to this are floating-point noise


class OffPolicy(NamedTuple):
    """Estimated clicks per page of the target policy, and their difference from the logged clicks.

    ``unsupported_clicks``: possible clicks per page on unsupported or clipped probability; upper limits of intervals
    include them.
    ``effective_users``: effective number of users. ``refused``: reason for a missing value (then all numbers are NaN).
    ``insufficient``: reason for a missing interval.
    """

    estimator: str
    value: float
    ci: tuple[float, float] | None
    difference: float
    difference_ci: tuple[float, float] | None
    unsupported_clicks: float
    effective_users: float
    refused: str
    insufficient: str


class RankWeights(NamedTuple):
    """Summary of the importance weights of a rank.

    ``mean``: 1 if the propensities are correct and the logging policy has full support. ``unsupported``: probability of
    documents without support. With conditional propensities, both describe the list down to the rank.
    """

    rank: int
    pages: int
    mean: float
    error: float
    largest: float
    effective_users: float
    unsupported: float


@dataclass(frozen=True, eq=False, repr=False)
class OffPolicyEstimates(LogAnswer):
    """Result of `off_policy`.

    Attributes
    ----------
    run : str
        Name of the target policy.
    convention : str
        Kind of the log's propensities; empty if not declared.
    pages, users, logged_clicks : int, int, float
        Numbers of pages and users, and logged clicks per page.
    pages_without_propensity, pages_without_topic : int, int
        Excluded pages: without propensities, and without a topic of the run.
    depth, clip : int, float
        Deepest rank, and the largest weight of the clipped estimate.
    rows : tuple of OffPolicy
    weights : tuple of RankWeights
    """

    kind: ClassVar[str] = "off-policy"
    title_format: ClassVar[str] = "Off-policy estimates of {run}: {log}"
    fact_fields: ClassVar[tuple[str, ...]] = (
        "run", "convention", "pages", "users", "logged_clicks", "pages_without_propensity", "pages_without_topic",
        "depth", "clip",
    )  # fmt: skip
    main: ClassVar[str] = "estimates"

    run: str
    convention: str
    pages: int
    users: int
    logged_clicks: float
    pages_without_propensity: int
    pages_without_topic: int
    depth: int
    clip: float
    rows: tuple[OffPolicy, ...]
    weights: tuple[RankWeights, ...]

    @property
    def overlaps(self) -> bool:
        """Whether any estimator that uses propensities has an interval."""
        return any(row.ci is not None for row in self.rows if row.estimator != "direct")

    def blocks(self) -> tuple[Block, ...]:
        """Return the estimates, their assumptions, and the weights by rank."""
        rows = self.rows
        size = f"{counted(self.pages, 'page')} of {counted(self.users, 'user')}"
        counts = (
            (self.pages_without_propensity, "without propensities"),
            (self.pages_without_topic, "whose topic is missing or not in the run"),
        )
        exclusions = [f"{counted(n_pages, 'page')} {reason}" for n_pages, reason in counts if n_pages]
        sentences = (
            f"The log has {self.logged_clicks:.4g} clicks per page in the top {self.depth}, n = {size}.",
            *((f"Excluded: {listed(exclusions)}.",) if exclusions else ()),
            *_reasons(rows, "refused", "No estimate"),
            *_reasons(rows, "insufficient", "No confidence interval"),
        )
        differences = [row.difference for row in rows]
        return (
            Sentences(sentences),
            Table(
                "estimates",
                (
                    *columns_of(rows, ("estimator", TEXT), ("value", NUMBER, "clicks per page")),
                    Column("difference", differences, CHANGE, "difference from"
                    " log", [row.difference_ci for row in rows]),
                    *columns_of(rows, ("unsupported_clicks", NUMBER, ("unsupported"
                    " clicks")), ("effective_users", COUNT, f"effective {self.unit}s")),
                    *columns_of(rows, "refused", "insufficient"),
                ),
                "Estimated clicks",
                note=f"{percent(self.level)} CIs over {self.unit}s. Unsupported clicks: possible clicks per page on"
                " results that"
                " the log never shows, or whose weights are clipped. The upper limits of CIs include"
                " unsupported clicks.",
            ),
            Table(
                "assumptions",
                (
                    Column("estimator", list(ESTIMATORS), TEXT),
                    Column("propensities", [_required_propensities(name) for name in ESTIMATORS], TEXT),
                    Column("assumption", [estimator.assumption for estimator in ESTIMATORS.values()], TEXT),
                    Column("limitation", [estimator.limitation for estimator in ESTIMATORS.values()], TEXT),
                ),
                "Requirements and assumptions", folded=True,
            ),
            Table(
                "weights",
                columns_of(
                    self.weights, ("rank", COUNT), ("pages", COUNT), ("mean", NUMBER), ("error", NUMBER, "SE"),
                    ("largest", NUMBER), ("effective_users", COUNT, f"effective {self.unit}s"),
                    ("unsupported", NUMBER),
                ),
                "Weights",
                note=("Importance weights of the top-k list for each rank k" if self.convention == "conditional"
                else "Importance weights of the results at each rank")
                + ". The expected value of `mean` is between 1 minus `unsupported` and 1.",
            ),
            self.method_block(),
        )  # fmt: skip


def _reasons(rows: Sequence[OffPolicy], field: str, label: str) -> Iterator[str]:
    for reason in dict.fromkeys(getattr(row, field) for row in rows if getattr(row, field)):
        names = [row.estimator for row in rows if getattr(row, field) == reason]
        yield f"{label} by {listed(names)}: {reason}"


def _required_propensities(name: str) -> str:
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
    """Estimate the clicks of a target policy from logged pages and the propensities of their results.

    Parameters
    ----------
    log
        Log with a ``propensity`` for each result at its rank, and their kind (`InteractionLog.propensity_convention`).
    run
        Target policy: a run, as in `evaluate`; or, if it does not depend on the query, a table with ``rank``,
        ``doc_id``, and ``probability`` (list of dicts, data frame, or path).
    topics
        Mapping of pages to topics of the run, as in `judged.online.against_qrels`.
    depth
        Deepest rank that counts.
    clip
        The largest weight of the clipped estimate.
    independent_ranks
        Whether a policy table fills each rank independently of the others. If not, list probabilities are unknown and
        the estimators that need them are refused.
    unit, level
        Unit of the intervals (``user`` or ``session``), and their confidence level.

    Raises
    ------
    InputError
        If the log has no propensities, no page has a topic of the run, or an option is invalid.

    Notes
    -----
    An estimator is refused if the log does not declare the propensities that it needs, or if the mean weight shows that
    they are wrong. There is no interval if the effective number of users is below 50 (100 for cascade and whole list),
    or if a few large weights make the sum as skewed as that of fewer than 10 equal users (25).
    Unsupported documents may get any number of clicks: upper limits of intervals include them. The module
    `judged.online.clicks.importance_weighting` has the assumptions of each estimator.
    """
    validate(log=log, unit=unit, level=level)
    # `not clip >= 1` also rejects NaN.
    if not clip >= 1:
        raise InputError(f"`clip` must be at least 1, got {clip:g}", fix="use clip=10")
    pages, target = read_pages(log, run, topics, unit, depth)
    weights, convention = importance_weights(pages, target, depth), log.propensity_convention
    by_rank = tuple(_rank_weights(weights, pages.unit, is_prefix=convention == "conditional")) if convention else ()
    estimates = PageEstimates(pages, target, weights, clip, level)
    has_list_probabilities = target.is_run or independent_ranks
    reasons = {name: estimates.refusal_reason(name, convention, has_list_probabilities) for name in ESTIMATORS}
    rows = tuple(estimates.estimate(name, reason) for name, reason in reasons.items())
    logged_clicks, _ = mean_and_error(weights.rewards.sum(axis=1), pages.unit)
    clipping = f"weights above {clip:g} are set to {clip:g}, only in the clipped estimate"
    policies = {
        "target policy": target.name, "propensities": convention or "not declared", "clipping": clipping,
    }  # fmt: skip
    return OffPolicyEstimates(
        run=target.name, convention=convention, pages=len(pages.unit), users=int(pages.unit.max()) + 1,
        logged_clicks=logged_clicks, pages_without_propensity=pages.n_without_propensity,
        pages_without_topic=pages.n_without_topic, depth=depth, clip=clip,
        rows=rows, weights=by_rank, **answer_fields(log, unit, level, policies),
    )  # fmt: skip


def _rank_weights(weights: ImportanceWeights, unit: Ints, *, is_prefix: bool) -> Iterator[RankWeights]:
    weight = weights.prefix_weight if is_prefix else weights.rank_weight
    unsupported = weights.unsupported_prefix if is_prefix else weights.unsupported
    for rank in np.flatnonzero(weights.has_result.any(axis=0)).tolist():
        has_rank = weights.has_result[:, rank]
        mean, error = mean_and_error(weight[has_rank, rank], np.unique(unit[has_rank], return_inverse=True)[1])
        n_effective = _effective_users(weight[has_rank, rank], unit[has_rank])
        largest, unsupported_mean = float(weight[has_rank, rank].max()), float(unsupported[has_rank, rank].mean())
        yield RankWeights(rank + 1, int(has_rank.sum()), mean, error, largest, n_effective, unsupported_mean)


def _effective_users(weights: Floats, unit: Ints) -> float:
    return effective_sample_size(unit_sums(unit, weights))


class PageEstimates:
    """Values of all estimators by page, and their estimates over users."""

    def __init__(
        self, pages: LoggedPages, target: TargetPolicy, weights: ImportanceWeights, clip: float, level: float
    ) -> None:
        self.unit, self.level, self.weights = pages.unit, level, weights
        rank_weight, rewards, has_result = weights.rank_weight, weights.rewards, weights.has_result
        self.logged_clicks = rewards.sum(axis=1)
        prefix_weight, n_unsupported = weights.prefix_weight, weights.unsupported.sum(axis=1).astype(np.float64)
        self.pages_per_unit = np.bincount(self.unit).astype(np.float64)
        clipped_weight = np.minimum(rank_weight, clip)
        expected_weights = (weights.mass - weights.unsupported).mean(axis=0)
        snips_value, influence = self_normalized(rank_weight, rewards, expected_weights)
        # Values by page: their mean is the estimate, and their spread over users its standard error.
        direct_values, direct_weights, doubly_robust_values = _model_based_values(pages, target, weights)
        # A target list that is longer or shorter than the logged page has no support, either.
        unsupported_list = weights.unsupported_prefix[:, -1] + 1.0 - weights.prefix_mass[:, -1]
        self.values: dict[str, Floats] = {
            "item-position": item_position(rank_weight, rewards),
            "self-normalized": snips_value + influence,
            "clipped": item_position(clipped_weight, rewards),
            "direct": direct_values,
            "doubly robust": doubly_robust_values,
            "pseudo-inverse": pseudo_inverse(rank_weight, rewards),
            "cascade": cascade(rank_weight, rewards),
            "whole list": whole_list(rank_weight, rewards),
        }
        self.unsupported_clicks: dict[str, Floats] = {
            # Unsupported documents get between 0 clicks and one click per rank.
            **dict.fromkeys(("item-position", "self-normalized", "direct", "doubly robust"), n_unsupported),
            "clipped": n_unsupported + (rank_weight - clipped_weight).sum(axis=1),
            # The weight multiplies all clicks of the page: each unsupported rank can add the logged clicks.
            "pseudo-inverse": n_unsupported * (1.0 + self.logged_clicks),
            "cascade": (weights.unsupported_prefix * has_result).sum(axis=1),
            "whole list": has_result.sum(axis=1) * unsupported_list,
        }
        estimator_weights: dict[str, Floats] = {
            "direct": direct_weights,
            "pseudo-inverse": (1.0 + (rank_weight - 1.0).sum(axis=1))[:, None],
            "cascade": prefix_weight,
            "whole list": prefix_weight[:, -1:],
        }
        # A rank whose weights are all 0 adds nothing to the value, only to `unknown`.
        self.effective_users = {
            name: min((_effective_users(column, self.unit) for column in columns.T if column.any()), default=0.0)
            for name, columns in ((name, estimator_weights.get(name, rank_weight)) for name in ESTIMATORS)
        }

    def refusal_reason(self, name: str, convention: str, has_list_probabilities: bool) -> str:
        """Return the reason why an estimator has no value; empty if it has."""
        estimator = ESTIMATORS[name]
        if not estimator.conventions:
            return ""
        conventions = " or ".join(map(repr, estimator.conventions))
        if not convention:
            problem = (
                "the log does not declare the convention of its propensities (marginal, conditional, or independent)"
            )
            fix = f"write propensity_convention = {conventions} in the mapping, if that is correct (docs/off-policy.md)"
            return f"{problem}. Fix: {fix}."
        if convention not in estimator.conventions:
            needs = f"the propensities must be {_required_propensities(name)}"
            return f"{needs}, but the log declares {convention} propensities."
        if estimator.list_probability and not has_list_probabilities:
            problem = "the table of probabilities has no probabilities of whole lists"
            fix = (
                "use independent_ranks (--independent-ranks), if the ranker fills each rank independently of the"
                " other ranks"
            )
            return f"{problem}. Fix: {fix}."
        has_result = self.weights.has_result
        if convention != "marginal" and name in {"cascade", "whole list", "pseudo-inverse"}:
            has_gap = np.diff(has_result.astype(np.int8), prepend=1, axis=1) > 0
            if n_gaps := int(has_gap.any(axis=1).sum()):
                return (
                    f"on {counted(n_gaps, 'page')}, a rank without a result is above other results, so the"
                    f" probability of the whole list is unknown."
                )
            return self._mean_weight_problem(is_prefix=True)
        return self._mean_weight_problem(is_prefix=False)

    def _mean_weight_problem(self, *, is_prefix: bool) -> str:
        # The expected importance weight is the target probability with support. A mean that differs by more than 4
        # standard errors shows that the propensities, or their declared kind, are wrong.
        mass = self.weights.prefix_mass if is_prefix else self.weights.mass
        for row in _rank_weights(self.weights, self.unit, is_prefix=is_prefix):
            upper = float(mass[self.weights.has_result[:, row.rank - 1], row.rank - 1].mean())
            lower, margin = upper - row.unsupported, 4.0 * row.error + _TOLERANCE
            if not lower - margin <= row.mean <= upper + margin:
                subject = f"the top-{row.rank} list" if is_prefix else f"rank {row.rank}"
                expected = f"{upper:.2f}" if upper - lower < _TOLERANCE else f"{lower:.2f} to {upper:.2f}"
                conclusion = "The propensities are wrong, or the declared propensity_convention is wrong"
                return f"the mean importance weight of {subject} is {row.mean:.2f}, expected {expected}. {conclusion}."
        return ""

    def estimate(self, name: str, refusal: str) -> OffPolicy:
        """Return an estimate with its interval, and its difference from the logged clicks on the same pages."""
        n_effective = self.effective_users[name]
        if refusal:
            return OffPolicy(name, math.nan, None, math.nan, None, math.nan, n_effective, refusal, "")
        values, unsupported = self.values[name], float(self.unsupported_clicks[name].mean())
        user_sums = unit_sums(self.unit, values)
        # Ratio estimator of clicks per page over users, who have different numbers of pages.
        ratio = UnitRatio.of(user_sums, self.pages_per_unit)
        difference = UnitRatio.of(unit_sums(self.unit, values - self.logged_clicks), self.pages_per_unit)
        # Three checks of tails: users by weights, users by weighted clicks, and skewness of their sums.
        n_clickers = effective_sample_size(np.abs(user_sums))
        n_skewness = skewness_sample_size(user_sums - ratio.value * self.pages_per_unit)
        error = ratio.error if ratio.error > _ROUNDING_ERROR else 0.0
        minimums = LIST_MINIMUMS if ESTIMATORS[name].list_probability else MINIMUMS
        requirements = (
            (n_effective, minimums.effective_users), (n_clickers, MIN_EFFECTIVE_CLICKERS),
            (n_skewness, minimums.skewness_users),
        )  # fmt: skip
        check = partial(insufficiency, ratio.units, variance=error)
        for n_users, minimum in requirements:
            if reason := check(effective_units=n_users, min_effective_units=minimum):
                sentence = reason.sentence("user")
                return OffPolicy(
                    name, ratio.value, None, difference.value, None, unsupported, n_effective, "", sentence
                )
        # Degrees of freedom: the smaller effective number of users, minus 1.
        df = np.array(min(n_effective, n_clickers) - 1.0)
        t = float(student_quantiles((1.0 + self.level) / 2.0, df))
        intervals: list[tuple[float, float] | None] = []
        for estimate in (ratio, difference):
            low, high = estimate.interval(t)
            has_interval = estimate.error > _ROUNDING_ERROR and not math.isnan(low)
            intervals.append((low, high + unsupported) if has_interval else None)
        return OffPolicy(
            name, ratio.value, intervals[0], difference.value, intervals[1], unsupported, n_effective, "", ""
        )


def _model_based_values(
    pages: LoggedPages, target: TargetPolicy, weights: ImportanceWeights
) -> tuple[Floats, Floats, Floats]:
    """Return direct values by page, their weights by page and rank, and doubly robust values by page.

    Rewards are predicted by document and rank; documents without support have reward 0. The direct method uses the
    means of all pages. Its values include the error of these means (`direct_method_residuals`), and average to the
    estimate. The doubly robust estimator uses cross-fitting: each half of the users is predicted from the other.
    """
    shape = weights.rank_weight.shape
    depth = shape[1]
    slot = pages.topic * depth + pages.rank
    logged_cells, cell_codes = np.unique(slot * target.n_docs + pages.doc, return_inverse=True)
    target_slots, slot_index = np.unique(target.cells // target.n_docs, return_inverse=True)
    result_slot = find_codes(target_slots, slot)  # a slot is a topic and rank that the target policy fills
    cell_index, ranks = find_codes(logged_cells, target.cells), target.cells // target.n_docs % depth
    # Unsupported documents have predicted reward 0; `unknown` accounts for them.
    probability = np.where(unsupported_cells(pages, target, depth), 0.0, target.probability)
    unit = pages.unit[pages.page]

    def predict(rates: ShrunkRates, test: Any) -> Floats:
        cell_rewards = probability * rates.expected_reward(cell_index, ranks)
        # The last element, index -1, is the reward of slots that the target policy leaves empty.
        slot_rewards = np.append(np.bincount(slot_index, cell_rewards, len(target_slots)), 0.0)
        return np.bincount(pages.page[test], slot_rewards[result_slot[test]], shape[0]).astype(np.float64)

    all_results = np.ones(len(unit), dtype=np.bool_)
    rates = ShrunkRates(cell_codes, pages.rank, pages.clicked, len(logged_cells), depth, prior=0.0)
    slot_visits = np.bincount(result_slot[result_slot >= 0], minlength=len(target_slots))
    expected_impressions = np.zeros(len(logged_cells))
    expected_impressions[cell_index[cell_index >= 0]] = (probability * slot_visits[slot_index])[cell_index >= 0]
    direct_weight = (expected_impressions / np.bincount(cell_codes))[cell_codes]
    residuals = direct_method_residuals(cell_codes, pages.clicked, unit, direct_weight, rates.rank_means[pages.rank])
    # The residuals have mean 0 after centering: they add the sampling error of the fitted rates to the values.
    direct_values = predict(rates, all_results)
    page_residuals = np.bincount(pages.page, residuals, shape[0])
    direct_values = direct_values + page_residuals - page_residuals.mean()
    direct_weights = np.where(weights.has_result, 0.0, 1.0)
    direct_weights[pages.page, pages.rank] = direct_weight

    robust_values = np.zeros(shape[0])
    # Cross-fitting: rates of a page must not depend on its own clicks, or the correction would be biased.
    for parity in (0, 1):
        train, test = unit % 2 != parity, unit % 2 == parity
        model = ShrunkRates(cell_codes[train], pages.rank[train], pages.clicked[train], len(logged_cells), depth)
        page, rank = pages.page[test], pages.rank[test]
        errors = pages.clicked[test] - model.expected_reward(cell_codes[test], rank)
        # Doubly robust (Dudik, Langford and Li, ICML 2011): predicted reward of the target policy plus
        # w (r - prediction) of the logged documents.
        robust_values += predict(model, test) + np.bincount(page, weights.rank_weight[page, rank] * errors, shape[0])
    return direct_values, direct_weights, robust_values
