"""Decide one check after the other from paired scores, and correct the failures for their number."""

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
from judged.stats.effect import unseen_loss
from judged.stats.inputs import ROUNDING, paired_differences, spread, topics_text
from judged.stats.paired import paired_test
from judged.stats.sample_size import detectable, least_p
from judged.stats.sensitivity import reversing_difference, sensitivity
from judged.stats.sufficiency import MIN_UNITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.diagnosis.gates.config import Check, GateConfig
    from judged.results.types import Floats
    from judged.scoring.measures.base import Measure
    from judged.stats.results import Alternative, Difference

_WORST = 3


@dataclass(frozen=True, eq=False)
class Paired:
    """The scores that one check looks at."""

    check: Check
    measure: Measure
    query_ids: tuple[str, ...]  # T: the topics of the slice
    # baseline, candidate: (T,): NaN where a topic has no score
    baseline: Floats
    candidate: Floats
    min_topics: int
    owner: str = ""

    @property
    def geometric(self) -> bool:
        """Whether the runs are compared by the ratio of their geometric means."""
        return self.measure.entry.aggregate == "geometric mean"

    @property
    def side(self) -> float:
        """-1 where lower is better."""
        return -1.0 if self.measure.properties.higher_is_better is False else 1.0

    @property
    def same(self) -> bool:
        """Whether every topic has the same score in both runs."""
        return np.array_equal(self.baseline, self.candidate, equal_nan=True)

    @property
    def blank(self) -> bool:
        """Whether the baseline has nothing to lose: higher is better, and each of its scores is 0 or undefined."""
        return self.side > 0 and not np.nan_to_num(self.baseline).any()

    @cached_property
    def kept(self) -> Any:
        """Which topics have a score for both: (T,)."""
        return ~(np.isnan(self.baseline) | np.isnan(self.candidate))

    @cached_property
    def scaled(self) -> tuple[Floats, Floats]:
        """Both rows over the kept topics so that more is better; a geometric mean's as logarithms."""
        first, second = self.baseline[self.kept], self.candidate[self.kept]
        if self.geometric:
            first, second = logarithms(first), logarithms(second)
        return self.side * first, self.side * second

    @cached_property
    def gaps(self) -> Floats:
        """Their differences."""
        return paired_differences(*self.scaled)[0]

    def margin(self, baseline: float) -> float:
        """Give the margin in the unit of the difference."""
        if self.check.margin is not None:
            return self.check.margin
        return (self.check.margin_relative or 0.0) * (1.0 if self.geometric else abs(baseline))

    def shift(self, margin: float) -> float:
        """Give a margin on the scale that is tested: logarithms for a ratio."""
        return -math.log1p(-margin) if self.geometric else margin

    def unit(self, value: float) -> float:
        """Turn a difference of logarithms into a relative change."""
        return math.expm1(min(value, 700.0)) if self.geometric else value


def decide(given: Sequence[Paired], config: GateConfig) -> tuple[CheckResult, ...]:
    """Decide every check."""
    # For each, two one-sided tests of the same differences: that more than the margin was lost, and that less was. The
    # first make the gate fail, and their p-values are corrected for the number of checks, so that the chance of failing
    # at all is at most alpha where no true loss exceeds its margin. The second let a check pass; they need no
    # correction, as the gate as a whole passes only if every check does (an intersection-union test).
    unchanged = all(one.same for one in given)
    tested = [_tested(one, config, unchanged=unchanged) for one in given]
    adjusted = adjust([one.p for one in tested], config.correction) if tested else np.zeros(0)
    family = sum(not math.isnan(one.p) for one in tested)
    family = 1 if config.correction == "none" else max(family, 1)
    return tuple(
        _decided(one, paired, float(p), config, family) for one, paired, p in zip(tested, given, adjusted, strict=True)
    )


def _tested(paired: Paired, config: GateConfig, *, unchanged: bool) -> CheckResult:
    """Test one check, and leave its status open unless nothing can be tested."""
    result, n = _seen(paired, config), int(np.count_nonzero(paired.kept))
    least = max(paired.min_topics, MIN_UNITS["verdict"])
    if not n:
        return replace(result, note="no topic has a score for both runs")
    if unchanged:
        return replace(result, status="pass", note="both runs have the same score on every topic")
    if paired.blank:
        each = "the only topic" if n == 1 else f"each of {topics_text(n)}"
        return replace(result, note=f"the baseline scores 0 on {each}, so that nothing can be lost")
    if n < least:
        return replace(result, note=f"too few topics: {n} of at least {least}")
    return _with_tests(result, paired, config)


def _seen(paired: Paired, config: GateConfig) -> CheckResult:
    """Give what a check looks at, before any test: the means, and the topics that lost much."""
    kept, check, kind = paired.kept, paired.check, paired.measure.entry.aggregate
    n = int(np.count_nonzero(kept))
    baseline, candidate = (aggregate(kind, row[kept]) if n else math.nan for row in (paired.baseline, paired.candidate))
    margin = paired.margin(baseline)
    low, high = paired.measure.properties.low, paired.measure.properties.high
    most = abs(baseline) if low is None or high is None else high - low
    large = _own(check.large_loss, config.large_loss) * most
    lost = paired.side * (paired.baseline - paired.candidate)[kept]
    hidden = unseen_loss(margin, n, 1 - config.alpha) if n and not paired.geometric else math.nan
    return CheckResult(
        check=check,
        measure=str(paired.measure),
        owner=paired.owner,
        n=n,
        left_out=len(kept) - n,
        min_topics=paired.min_topics,
        baseline=baseline,
        candidate=candidate,
        difference=paired.unit(paired.side * float(paired.gaps.mean()) if n else math.nan),
        level=1 - 2 * config.alpha,
        margin=margin,
        kind="ratio" if paired.geometric else "difference",
        lower_is_better=paired.side < 0,
        power=config.power,
        correction=config.correction,
        test="ratio" if paired.geometric else config.test,
        strict=_own(check.strict, config.strict),
        max_share_of_large_losses=_own(check.max_share_of_large_losses, config.max_share_of_large_losses),
        largest_losses=_worst(paired),
        large_loss=large,
        large_losses=int(np.count_nonzero(lost > large * (1 + ROUNDING))),
        unseen_loss=hidden if high is None or low is None or hidden <= most else math.nan,
    )


def _own(value: Any, default: Any) -> Any:
    """Take what a check says, or else what the gate does."""
    return default if value is None else value


def _worst(paired: Paired) -> tuple[TopicLoss, ...]:
    """Name the topics that lost most, equal ones by id."""
    places = zip(paired.gaps.tolist(), np.flatnonzero(paired.kept).tolist(), strict=True)
    order = sorted((gap, paired.query_ids[at], at) for gap, at in places if gap < 0)
    return tuple(
        TopicLoss(query, float(paired.baseline[at]), float(paired.candidate[at])) for _, query, at in order[:_WORST]
    )


def _with_tests(result: CheckResult, paired: Paired, config: GateConfig) -> CheckResult:
    """Add the two one-sided tests of differences against the margin."""
    test, note = config.test, ""
    if test == "t" and spread(paired.gaps) == 0:
        test, note = "randomisation", "all topics have the same difference, so signs were flipped in place of t"
    shift = paired.shift(result.margin)
    harm, safe = (_one_sided(paired, shift, test, side, config) for side in ("less", "greater"))
    low, high = (safe.interval or (-math.inf,))[0] - shift, (harm.interval or (math.inf,) * 2)[1] - shift
    low, high = sorted(paired.unit(paired.side * end) for end in (low, high))
    least = least_p(len(paired.gaps), test, "less", config.resamples)
    test = "ratio" if paired.geometric else test
    return replace(result, interval=(low, high), p=harm.p, p_safe=safe.p, least_p=least, test=test, note=note)


def _one_sided(
    paired: Paired, shift: float, test: str, alternative: Alternative, config: GateConfig
) -> Difference | BoundedMean:
    """Test the differences, raised by the margin, to one side."""
    if test != "bounded":
        first, second = paired.scaled
        how: dict[str, Any] = {"level": 1 - config.alpha, "resamples": config.resamples, "seed": config.seed}
        return paired_test(first - shift, second, test, alternative=alternative, **how)
    most = paired.measure.properties.reach
    low, high = min(shift - most, 0.0), shift + most
    given: dict[str, Any] = {"alternative": alternative, "level": 1 - config.alpha, "seed": config.seed}
    return bounded_mean(paired.gaps + shift, low, high, **given)


def _decided(result: CheckResult, paired: Paired, adjusted: float, config: GateConfig, family: int) -> CheckResult:
    """Give the status, now that the correction is known, the loss that would be noticed, and what it rests on."""
    if math.isnan(result.p):
        return result
    alpha, identical = config.alpha * (1 + ROUNDING), not paired.gaps.any()
    result = replace(result, adjusted=adjusted, family=family, identical=identical)
    if result.least_p * family <= alpha:
        result = replace(result, detectable=_detectable(result, paired, config))
    if adjusted <= alpha or result.too_many_large_losses:
        return _with_sensitivity(replace(result, status="fail"), paired, config)
    if identical:
        note = f"both runs have the same score on {topics_text(result.n)} of the slice"
        return replace(result, status="pass", note=note)
    return _with_sensitivity(replace(result, status="pass"), paired, config) if result.p_safe <= alpha else result


def _with_sensitivity(result: CheckResult, paired: Paired, config: GateConfig) -> CheckResult:
    """Add how far a failure or a pass that a test shows rests on a few topics."""
    if result.status == "fail" and not result.proved:
        return result
    limit = -paired.shift(result.margin)
    most = math.inf if paired.geometric else paired.measure.properties.reach
    found = sensitivity(*paired.scaled, alpha=2 * config.alpha, limit=limit, max_difference=most, seed=config.seed)
    names = np.array(paired.query_ids, dtype=object)[paired.kept]
    few = tuple(names[list(found.few_topics)].tolist())
    gain = math.nan
    if result.status == "fail" and found.may_miss and not paired.geometric:
        gain = reversing_difference(float(paired.gaps.mean()), result.n, limit, 1 - config.alpha)
        gain = paired.side * gain if abs(gain) <= most else math.nan
    one_sided = replace(found, bounded_p=found.bounded_p / 2)
    return replace(result, sensitivity=one_sided, few_topics=few, unseen_gain=gain)


def _detectable(result: CheckResult, paired: Paired, config: GateConfig) -> float:
    """Give the true loss that fails with the configured power, were this the first check that Holm looks at."""
    if config.test == "bounded" and not paired.geometric:
        return math.nan  # `detectable` is that of t, which finds smaller losses
    # `detectable` is of a two-sided test, whose other side is never reached: a one-sided one at alpha has the power of
    # a two-sided one at twice that.
    flips = config.test == "randomisation"
    least = detectable(paired.gaps, 2 * config.alpha / result.family, config.power, flips=flips, seed=config.seed)
    return math.nan if math.isnan(least) else abs(paired.unit(-(paired.shift(result.margin) + least)))
