"""Decide one check after the other from paired scores, and correct the failures for their number."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from judged.gating.check_result import CheckResult, TopicLoss
from judged.measures import aggregate, logarithms
from judged.stats.attainable import least_p
from judged.stats.correction import adjust
from judged.stats.detecting import detectable
from judged.stats.paired import paired_test
from judged.stats.pairing import paired_differences, spread, topics_text
from judged.stats.rare import unseen_loss

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Floats
    from judged.gating.config import Check, GateConfig
    from judged.measures import Measure

_WORST = 3
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Paired:
    """The scores that one check looks at."""

    check: Check
    measure: Measure
    query_ids: tuple[str, ...]  # T: the topics of the slice
    # baseline, candidate: (T,): NaN where a topic has no score
    baseline: Floats
    candidate: Floats
    minimum: int
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

    @property
    def kept(self) -> Any:
        """Which topics have a score for both: (T,)."""
        return ~(np.isnan(self.baseline) | np.isnan(self.candidate))

    def scaled(self) -> tuple[Floats, Floats]:
        """Give both rows over the kept topics so that more is better; a geometric mean's as logarithms."""
        first, second = self.baseline[self.kept], self.candidate[self.kept]
        if self.geometric:
            first, second = logarithms(first), logarithms(second)
        return self.side * first, self.side * second


def decide(given: Sequence[Paired], config: GateConfig) -> tuple[CheckResult, ...]:
    """Decide every check."""
    # For each, two one-sided tests of the same differences: that more than the margin was lost, and that less was. The
    # first make the gate fail, and their p-values are corrected for the number of checks, so that the chance of failing
    # at all is at most alpha where no true loss exceeds its margin. The second let a check pass; they need no
    # correction, as the gate as a whole passes only if every check does (an intersection-union test).
    unchanged = all(one.same for one in given)
    found = [_tested(one, config, unchanged=unchanged) for one in given]
    adjusted = adjust([one.p for one in found], config.correction) if found else np.zeros(0)
    family = sum(not math.isnan(one.p) for one in found)
    family = 1 if config.correction == "none" else max(family, 1)
    return tuple(
        _decided(one, paired, float(p), config, family) for one, paired, p in zip(found, given, adjusted, strict=True)
    )


def _tested(paired: Paired, config: GateConfig, *, unchanged: bool) -> CheckResult:
    """Test one check, and leave its status open unless nothing can be tested."""
    kept, check = paired.kept, paired.check
    n = int(np.count_nonzero(kept))
    kind = paired.measure.entry.aggregate
    means = [aggregate(kind, row[kept]) if n else math.nan for row in (paired.baseline, paired.candidate)]
    margin, shift = _margin(paired, means[0])
    first, second = paired.scaled()
    gaps, _ = paired_differences(first, second)
    open_result = CheckResult(
        check=check,
        measure=str(paired.measure),
        owner=paired.owner,
        n=n,
        left_out=len(kept) - n,
        minimum=paired.minimum,
        baseline=means[0],
        candidate=means[1],
        difference=_unit(paired, paired.side * float(gaps.mean()) if n else math.nan),
        interval=None,
        level=1 - 2 * config.alpha,
        margin=margin,
        kind="ratio" if paired.geometric else "difference",
        lower_is_better=paired.side < 0,
        p=math.nan,
        adjusted=math.nan,
        p_safe=math.nan,
        detectable=math.nan,
        power=config.power,
        correction=config.correction,
        method="ratio" if paired.geometric else config.test,
        status="inconclusive",
        strict=_own(check.strict, config.strict),
        worst=_worst(paired),
        max_share_of_large_losses=_own(check.max_share_of_large_losses, config.max_share_of_large_losses),
        **_large_losses(paired, margin, means[0], config),
    )
    if not n:
        return replace(open_result, note="no topic has a score for both runs")
    if unchanged:
        return replace(open_result, status="pass", note="both runs have the same score on every topic")
    if paired.blank:
        return replace(open_result, note=f"the baseline scores 0 on {_each(n)}, so that nothing can be lost")
    if n < max(paired.minimum, 2):
        return replace(open_result, note=f"too few topics: {n} of at least {max(paired.minimum, 2)}")
    return _with_tests(open_result, paired, first, second, shift, config)


def _each(n: int) -> str:
    return "the only topic" if n == 1 else f"each of {topics_text(n)}"


def _with_tests(
    found: CheckResult, paired: Paired, first: Floats, second: Floats, shift: float, config: GateConfig
) -> CheckResult:
    """Add the two one-sided tests of differences against the margin."""
    gaps, _ = paired_differences(first, second)
    method, note = config.test, ""
    if method == "t" and spread(gaps) == 0:
        method, note = "randomisation", "all topics have the same difference, so signs were flipped in place of t"
    how: dict[str, Any] = {"level": 1 - config.alpha, "resamples": config.resamples, "seed": config.seed}
    limit = first - shift  # what the candidate would have if it had lost exactly the margin
    harm = paired_test(limit, second, method, alternative="less", **how)
    safe = paired_test(limit, second, method, alternative="greater", **how)
    low, high = (safe.interval or (-math.inf,))[0] - shift, (harm.interval or (math.inf,) * 2)[1] - shift
    interval = sorted(_unit(paired, paired.side * one) for one in (low, high))
    return replace(
        found,
        interval=(interval[0], interval[1]),
        p=harm.p,
        p_safe=safe.p,
        least_p=least_p(len(gaps), method, "less", config.resamples),
        method="ratio" if paired.geometric else method,
        note=note,
    )


def _decided(found: CheckResult, paired: Paired, adjusted: float, config: GateConfig, family: int) -> CheckResult:
    """Give the status, now that the correction is known, and the loss that would have been noticed."""
    if math.isnan(found.p):
        return found
    alpha = config.alpha * (1 + _ROUNDING)
    first, second = paired.scaled()
    gaps, _ = paired_differences(first, second)
    identical = not gaps.any()
    status: Literal["pass", "inconclusive", "fail"] = "inconclusive"
    if adjusted <= alpha or found.too_many_large_losses:
        status = "fail"
    elif found.p_safe <= alpha or identical:
        status = "pass"
    note = found.note
    if status == "pass" and identical:
        note = f"both runs have the same score on {topics_text(found.n)} of the slice"
    within = found.least_p * family <= alpha
    noticed = _detectable(paired, gaps, config, family) if within else math.nan
    return replace(
        found, adjusted=adjusted, status=status, note=note, detectable=noticed, family=family, identical=identical
    )


def _detectable(paired: Paired, gaps: Floats, config: GateConfig, family: int) -> float:
    """Give the true loss that fails with the configured power, were this the first check that Holm looks at."""
    # `detectable` is of a two-sided test, whose other side is never reached: a one-sided one at alpha has the power of
    # a two-sided one at twice that.
    _, shift = _margin(paired, aggregate(paired.measure.entry.aggregate, paired.baseline[paired.kept]))
    flips = config.test == "randomisation"
    least = detectable(gaps, 2 * config.alpha / family, config.power, flips=flips, seed=config.seed)
    return math.nan if math.isnan(least) else abs(_unit(paired, -(shift + least)))


def _margin(paired: Paired, baseline: float) -> tuple[float, float]:
    """Give the margin in the unit of the difference, and on the scale that is tested (logarithms for a ratio)."""
    check = paired.check
    if paired.geometric:
        share = check.margin_relative or 0.0
        return share, -math.log1p(-share)
    margin = check.margin if check.margin is not None else (check.margin_relative or 0.0) * abs(baseline)
    return margin, margin


def _unit(paired: Paired, value: float) -> float:
    """Turn a difference of logarithms into a relative change."""
    return math.expm1(min(value, 700.0)) if paired.geometric else value


def _large_losses(paired: Paired, margin: float, baseline: float, config: GateConfig) -> dict[str, Any]:
    """Count the topics that lost much, and say which loss these topics may have missed altogether."""
    low, high = paired.measure.properties.low, paired.measure.properties.high
    most = abs(baseline) if low is None or high is None else high - low
    large = _own(paired.check.large_loss, config.large_loss) * most
    lost = paired.side * (paired.baseline - paired.candidate)[paired.kept]
    hidden = unseen_loss(margin, len(lost), 1 - config.alpha) if len(lost) and not paired.geometric else math.nan
    return {
        "large_loss": large,
        "large_losses": int(np.count_nonzero(lost > large * (1 + _ROUNDING))),
        "unseen_loss": hidden if high is None or low is None or hidden <= most else math.nan,
    }


def _own(value: Any, default: Any) -> Any:
    """Take what a check says, or else what the gate does."""
    return default if value is None else value


def _worst(paired: Paired) -> tuple[TopicLoss, ...]:
    """Name the topics that lost most, equal ones by id."""
    kept = np.flatnonzero(paired.kept)
    first, second = paired.scaled()
    gaps, _ = paired_differences(first, second)
    order = sorted(
        (gap, paired.query_ids[at], at) for gap, at in zip(gaps.tolist(), kept.tolist(), strict=True) if gap < 0
    )
    return tuple(
        TopicLoss(query, float(paired.baseline[at]), float(paired.candidate[at])) for _, query, at in order[:_WORST]
    )
