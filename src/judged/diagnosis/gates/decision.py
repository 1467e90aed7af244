"""Decide the checks of a gate from paired scores, and correct the failures for the number of checks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.diagnosis.gates.check_result import CheckResult, TopicLoss
from judged.results.types import cached_property
from judged.scoring.measures.aggregates import aggregate, logarithms
from judged.stats.bounded import BoundedMean, bounded_mean
from judged.stats.correction import adjust
from judged.stats.effect import unsampled_loss
from judged.stats.inputs import ROUNDING, paired_differences, spread, topics_text
from judged.stats.paired import paired_test
from judged.stats.sample_size import detectable, smallest_p
from judged.stats.sensitivity import reversing_difference, sensitivity
from judged.stats.sufficiency import MIN_UNITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.diagnosis.gates.config import Check, GateConfig
    from judged.results.types import Floats
    from judged.scoring.measures.base import Measure
    from judged.stats.results import Alternative, Difference

_MAX_LISTED = 3


@dataclass(frozen=True, eq=False)
class CheckScores:
    """Scores of both runs that a check compares."""

    check: Check
    measure: Measure
    query_ids: tuple[str, ...]  # (T,): topics of the slice
    # baseline, candidate: (T,); NaN if a topic has no score
    baseline: Floats
    candidate: Floats
    min_topics: int
    owner: str = ""

    @property
    def is_geometric(self) -> bool:
        """Whether the runs are compared by the ratio of their geometric means."""
        return self.measure.entry.aggregate == "geometric mean"

    @property
    def sign(self) -> float:
        """-1 if lower is better, else 1."""
        return -1.0 if self.measure.properties.higher_is_better is False else 1.0

    @property
    def is_identical(self) -> bool:
        """Whether every topic has the same score in both runs."""
        return np.array_equal(self.baseline, self.candidate, equal_nan=True)

    @property
    def is_zero_baseline(self) -> bool:
        """Whether no loss is possible: higher is better, and each score of the baseline is 0 or undefined."""
        return self.sign > 0 and not np.nan_to_num(self.baseline).any()

    @cached_property
    def is_paired(self) -> Any:
        """Mask of the topics with a score for both runs, shape (T,)."""
        return ~(np.isnan(self.baseline) | np.isnan(self.candidate))

    @cached_property
    def oriented_scores(self) -> tuple[Floats, Floats]:
        """Both rows over the paired topics, so that higher is better; logarithms for a geometric mean."""
        first, second = self.baseline[self.is_paired], self.candidate[self.is_paired]
        if self.is_geometric:
            first, second = logarithms(first), logarithms(second)
        return self.sign * first, self.sign * second

    @cached_property
    def differences(self) -> Floats:
        """Differences of `oriented_scores`, candidate minus baseline."""
        return paired_differences(*self.oriented_scores)[0]

    def margin(self, baseline: float) -> float:
        """Return the margin in the unit of the difference."""
        if self.check.margin is not None:
            return self.check.margin
        return (self.check.margin_relative or 0.0) * (1.0 if self.is_geometric else abs(baseline))

    def to_test_scale(self, margin: float) -> float:
        """Convert a margin to the scale of the test: logarithms for a ratio."""
        return -math.log1p(-margin) if self.is_geometric else margin

    def from_test_scale(self, value: float) -> float:
        """Convert a difference of logarithms to a relative change."""
        return math.expm1(min(value, 700.0)) if self.is_geometric else value


def decide_checks(all_scores: Sequence[CheckScores], config: GateConfig) -> tuple[CheckResult, ...]:
    """Decide all checks of a gate."""
    # Each check has two one-sided tests of the same differences. The first, for a loss of more than the margin, makes
    # the gate fail. Its p-values are corrected for the number of checks, so that the gate fails with a probability of
    # at most alpha if no true loss exceeds its margin. The second, for a loss of less than the margin, makes a check
    # pass. It needs no correction, because the gate passes only if every check does: an intersection-union test
    # (Berger 1982, Technometrics 24, 295-300).
    unchanged = all(scores.is_identical for scores in all_scores)
    results = [_test_check(scores, config, unchanged=unchanged) for scores in all_scores]
    adjusted = adjust([result.p for result in results], config.correction) if results else np.zeros(0)
    family = sum(not math.isnan(result.p) for result in results)
    family = 1 if config.correction == "none" else max(family, 1)
    rows = zip(results, all_scores, adjusted, strict=True)
    return tuple(_finish_check(result, scores, float(p), config, family) for result, scores, p in rows)


def _test_check(scores: CheckScores, config: GateConfig, *, unchanged: bool) -> CheckResult:
    """Test a check. Without a test, the status is inconclusive or, for identical runs, pass."""
    result = _describe_check(scores, config)
    n = result.n
    min_topics = max(scores.min_topics, MIN_UNITS["verdict"])
    if not n:
        return replace(result, note="no topic has a score for both runs")
    # Before the minimum number of topics: identical runs pass with any number of topics.
    if unchanged:
        return replace(result, status="pass", note="both runs have the same score on every topic")
    if scores.is_zero_baseline:
        topics = "the only topic" if n == 1 else f"each of {topics_text(n)}"
        return replace(result, note=f"the baseline scores 0 on {topics}, so no loss is possible")
    if n < min_topics:
        return replace(result, note=f"too few topics: {n}, at least {min_topics} are required")
    return _with_tests(result, scores, config)


def _describe_check(scores: CheckScores, config: GateConfig) -> CheckResult:
    """Return the result without tests: the aggregates, and the topics with large losses."""
    is_paired, check, kind = scores.is_paired, scores.check, scores.measure.entry.aggregate
    n = int(np.count_nonzero(is_paired))
    rows = scores.baseline, scores.candidate
    baseline, candidate = (aggregate(kind, row[is_paired]) if n else math.nan for row in rows)
    margin = scores.margin(baseline)
    lower, upper = scores.measure.properties.low, scores.measure.properties.high
    max_loss = abs(baseline) if lower is None or upper is None else upper - lower
    large_loss = _first_set(check.large_loss, config.large_loss) * max_loss
    losses = scores.sign * (scores.baseline - scores.candidate)[is_paired]
    unseen = unsampled_loss(margin, n, 1 - config.alpha) if n and not scores.is_geometric else math.nan
    return CheckResult(
        check=check,
        measure=str(scores.measure),
        owner=scores.owner,
        n=n,
        left_out=len(is_paired) - n,
        min_topics=scores.min_topics,
        baseline=baseline,
        candidate=candidate,
        difference=scores.from_test_scale(scores.sign * float(scores.differences.mean()) if n else math.nan),
        level=1 - 2 * config.alpha,
        margin=margin,
        kind="ratio" if scores.is_geometric else "difference",
        lower_is_better=scores.sign < 0,
        power=config.power,
        correction=config.correction,
        test="ratio" if scores.is_geometric else config.test,
        strict=_first_set(check.strict, config.strict),
        max_share_of_large_losses=_first_set(check.max_share_of_large_losses, config.max_share_of_large_losses),
        largest_losses=_largest_losses(scores),
        large_loss=large_loss,
        large_losses=int(np.count_nonzero(losses > large_loss * (1 + ROUNDING))),
        unsampled_loss=unseen if upper is None or lower is None or unseen <= max_loss else math.nan,
    )


def _first_set(check_setting: Any, gate_setting: Any) -> Any:
    return gate_setting if check_setting is None else check_setting


def _largest_losses(scores: CheckScores) -> tuple[TopicLoss, ...]:
    # Sorted by difference, ties by topic id.
    rows = zip(scores.differences.tolist(), np.flatnonzero(scores.is_paired).tolist(), strict=True)
    losses = sorted((difference, scores.query_ids[i], i) for difference, i in rows if difference < 0)
    baseline, candidate = scores.baseline.tolist(), scores.candidate.tolist()
    return tuple(TopicLoss(topic, baseline[i], candidate[i]) for _, topic, i in losses[:_MAX_LISTED])


def _with_tests(result: CheckResult, scores: CheckScores, config: GateConfig) -> CheckResult:
    """Add the two one-sided tests against the margin."""
    test, note = config.test, ""
    if test == "t" and spread(scores.differences) == 0:
        test, note = (
            "randomization",
            "all topics have the same difference, so the randomization test replaced the t-test",
        )
    margin = scores.to_test_scale(result.margin)
    harm, safe = (_one_sided(scores, margin, test, side, config) for side in ("less", "greater"))
    # Each one-sided interval of level 1 - alpha has one finite limit; together they are the interval of 1 - 2 alpha.
    low, high = (safe.interval or (-math.inf,))[0] - margin, (harm.interval or (math.inf,) * 2)[1] - margin
    low, high = sorted(scores.from_test_scale(scores.sign * limit) for limit in (low, high))
    least = smallest_p(len(scores.differences), test, "less", config.resamples)
    test = "ratio" if scores.is_geometric else test
    return replace(result, interval=(low, high), p=harm.p, p_safe=safe.p, smallest_p=least, test=test, note=note)


def _one_sided(
    scores: CheckScores, margin: float, test: str, alternative: Alternative, config: GateConfig
) -> Difference | BoundedMean:
    """Test the differences, plus the margin, against 0 on one side."""
    if test != "bounded":
        first, second = scores.oriented_scores
        options: dict[str, Any] = {"level": 1 - config.alpha, "resamples": config.resamples, "seed": config.seed}
        return paired_test(first - margin, second, test, alternative=alternative, **options)
    max_difference = scores.measure.properties.score_range
    low, high = min(margin - max_difference, 0.0), margin + max_difference
    options: dict[str, Any] = {"alternative": alternative, "level": 1 - config.alpha, "seed": config.seed}
    return bounded_mean(scores.differences + margin, low, high, **options)


def _finish_check(
    result: CheckResult, scores: CheckScores, adjusted: float, config: GateConfig, family: int
) -> CheckResult:
    """Set the status by the corrected p-value, and add the detectable loss and the sensitivity."""
    if math.isnan(result.p):
        return result
    alpha, identical = config.alpha * (1 + ROUNDING), not scores.differences.any()
    result = replace(result, adjusted=adjusted, family=family, identical=identical)
    if result.smallest_p * family <= alpha:
        result = replace(result, detectable=_detectable(result, scores, config))
    if adjusted <= alpha or result.too_many_large_losses:
        return _with_sensitivity(replace(result, status="fail"), scores, config)
    if identical:
        note = f"both runs have the same score on {topics_text(result.n)} of the slice"
        return replace(result, status="pass", note=note)
    return _with_sensitivity(replace(result, status="pass"), scores, config) if result.p_safe <= alpha else result


def _with_sensitivity(result: CheckResult, scores: CheckScores, config: GateConfig) -> CheckResult:
    """Add how sensitive a tested failure or pass is to a few topics."""
    if result.status == "fail" and not result.loss_exceeds_margin:
        return result
    limit = -scores.to_test_scale(result.margin)
    max_difference = math.inf if scores.is_geometric else scores.measure.properties.score_range
    options: dict[str, Any] = {"alpha": 2 * config.alpha, "limit": limit, "seed": config.seed}
    outcome = sensitivity(*scores.oriented_scores, max_difference=max_difference, **options)
    query_ids = np.array(scores.query_ids, dtype=object)[scores.is_paired]
    few_topics = tuple(query_ids[list(outcome.few_topics)].tolist())
    gain = math.nan
    if result.status == "fail" and outcome.may_miss and not scores.is_geometric:
        gain = reversing_difference(float(scores.differences.mean()), result.n, limit, 1 - config.alpha)
        gain = scores.sign * gain if abs(gain) <= max_difference else math.nan
    one_sided = replace(outcome, bounded_p=outcome.bounded_p / 2)
    return replace(result, sensitivity=one_sided, few_topics=few_topics, unsampled_gain=gain)


def _detectable(result: CheckResult, scores: CheckScores, config: GateConfig) -> float:
    """Return the true loss that fails with the configured power if this check has the smallest p-value."""
    if config.test == "bounded" and not scores.is_geometric:
        return math.nan  # `detectable` assumes a t-test, which detects smaller losses than the bounded test
    # `detectable` is for a two-sided test. A one-sided test at alpha has the power of a two-sided test at 2 alpha,
    # apart from the other side, whose probability is negligible here. Holm's correction divides alpha by the number of
    # checks for the smallest p-value.
    flips = config.test == "randomization"
    alpha = 2 * config.alpha / result.family
    excess = detectable(scores.differences, alpha, config.power, flips=flips, seed=config.seed)
    loss = scores.to_test_scale(result.margin) + excess
    return math.nan if math.isnan(excess) else abs(scores.from_test_scale(-loss))
