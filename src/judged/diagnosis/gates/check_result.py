"""Result of one check of a gate: numbers, decision, and the sentence about it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from judged.results.decimals import decimal, p_text
from judged.stats.effect import share_bound
from judged.stats.inputs import ROUNDING, topics_text
from judged.stats.sample_size import format_difference
from judged.stats.sensitivity import sensitive_sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.diagnosis.gates.config import Check
    from judged.stats.sensitivity import Sensitivity

_CORRECTION_SUFFIX = {"holm": " after Holm's correction", "bonferroni": " after Bonferroni's correction", "none": ""}

Status: TypeAlias = Literal["pass", "inconclusive", "fail"]


@dataclass(frozen=True)
class TopicLoss:
    """Topic on which the candidate is worse; scores in the unit of the measure."""

    query_id: str
    baseline: float
    candidate: float


@dataclass(frozen=True)
class CheckResult:
    """Result of one check."""

    config_table: ClassVar[str] = "check"

    check: Check  # measure, slice, and margin from the configuration
    measure: str  # canonical name
    owner: str  # owner of the slice
    # n, left_out: number of topics of the slice with, and without, a score for both runs
    n: int
    left_out: int
    min_topics: int  # minimum number of topics for a decision
    baseline: float  # aggregate over the n topics
    candidate: float
    # mean of candidate minus baseline; if `kind` is `ratio` (geometric means), the relative change
    difference: float
    level: float  # of the interval
    margin: float  # largest acceptable loss, in the unit of `difference`, at least 0
    kind: Literal["difference", "ratio"]
    lower_is_better: bool  # if True, a loss is a positive difference
    power: float
    correction: str
    test: str  # `randomization`, `ratio`, `t` or `bounded`
    strict: bool  # whether the gate fails if this check is inconclusive
    max_share_of_large_losses: float | None = None  # the check fails above this share of topics
    # `fail`: the loss exceeds the margin. `pass`: such a loss is ruled out. `inconclusive`: neither.
    status: Status = "inconclusive"
    # Two-sided confidence interval of the difference at level 1 - 2 alpha. The one-sided tests, without correction,
    # decide as its limits do. A limit is infinite if there are too few topics.
    interval: tuple[float, float] | None = None
    # p, adjusted: p-values of the test for a loss above the margin, before and after the correction; NaN without test
    p: float = math.nan
    adjusted: float = math.nan
    # p-value of the test for a loss below the margin; needs no correction, as the gate passes only if all checks pass
    p_safe: float = math.nan
    # true loss that fails with the configured power; NaN if unknown, or if no loss could fail by itself
    detectable: float = math.nan
    note: str = ""  # the reason if nothing was tested, or a caveat
    largest_losses: tuple[TopicLoss, ...] = ()  # at most three
    family: int = 1  # number of checks that share alpha
    smallest_p: float = math.nan  # smallest possible p with this number of topics or resamples; NaN without test
    large_loss: float = math.nan  # threshold for a large loss of a topic, in the unit of the measure
    large_losses: int = 0  # number of topics that lost more
    identical: bool = False  # whether both runs have the same score on each topic
    # Loss per topic that would exceed the margin even on a share of all topics so small that this sample may contain
    # none of them. No test of the sample rules this out. NaN if no topic can lose as much.
    unsampled_loss: float = math.nan
    # Counterpart for a failure: mean difference on such a small share of topics above which (below which, if lower is
    # better) the overall loss is within the margin. NaN if no topic can gain as much, with 100 topics or more, and if
    # the bounded test confirms the failure.
    unsampled_gain: float = math.nan
    # sensitivity of a tested failure or pass to a few topics; its p-value is one-sided
    sensitivity: Sensitivity | None = None
    few_topics: tuple[str, ...] = ()  # topics whose uncertain share of all topics could reverse the decision

    @property
    def name(self) -> str:
        """Measure, and the slice unless it is all topics."""
        return self.check.name

    @property
    def line(self) -> int | None:
        """Line number in the configuration file."""
        return self.check.line

    @property
    def blocks(self) -> bool:
        """Whether the gate fails because of this check."""
        return self.status == "fail" or (self.strict and self.status == "inconclusive")

    @property
    def alpha(self) -> float:
        """Significance level of each one-sided test, before any correction."""
        return (1 - self.level) / 2

    @property
    def loss_exceeds_margin(self) -> bool:
        """Whether the test shows that the loss exceeds the margin."""
        return self.adjusted <= self.alpha * (1 + ROUNDING)

    @property
    def too_many_large_losses(self) -> bool:
        """Whether the share of topics with a large loss exceeds the configured maximum."""
        maximum = self.max_share_of_large_losses
        return maximum is not None and self.large_losses > maximum * self.n * (1 + ROUNDING)

    @property
    def sensitive(self) -> bool:
        """Whether the failure or pass is sensitive to a few topics."""
        return self.sensitivity is not None and self.sensitivity.sensitive

    @property
    def bounded_p(self) -> float:
        """One-sided p-value of the bounded test, at most 0.5; NaN if no test decided, or the measure has no bounds."""
        return math.nan if self.sensitivity is None else self.sensitivity.bounded_p

    @property
    def loss(self) -> float:
        """Loss of the candidate: positive if it is worse."""
        return self.difference if self.lower_is_better else 0.0 - self.difference

    @property
    def largest_loss(self) -> float:
        """Upper confidence limit of the loss; infinite if no loss is ruled out."""
        low, high = self.interval or (-math.inf, math.inf)
        return high if self.lower_is_better else 0.0 - low

    @property
    def least_loss(self) -> float:
        """Lower confidence limit of the loss; negative for a gain."""
        low, high = self.interval or (-math.inf, math.inf)
        return low if self.lower_is_better else 0.0 - high

    @property
    def sentence(self) -> str:
        """Decision, numbers, and limits of the conclusion as text."""
        owner = f" (owner: {self.owner})" if self.owner else ""
        text = f"{self.name}{owner}: {_status_text(self)}{_sensitivity_note(self)}{_large_loss_note(self)}"
        if self.left_out:
            text += f" Excluded: {topics_text(self.left_out)} on which at least one of the two runs has no score."
        return text

    def format_size(self, value: float) -> str:
        """Format a size; a ratio in percent."""
        return f"{100 * value:.3g}%" if self.kind == "ratio" else format_loss(value)

    def format_signed(self, value: float, places: int = 4) -> str:
        """Format a difference with its sign; a ratio in percent."""
        if not math.isfinite(value):
            return "-" if math.isnan(value) else f"{value:+}"
        return f"{100 * value:+.1f}%" if self.kind == "ratio" else decimal(value, places, "+")


def _sensitivity_note(check: CheckResult) -> str:
    text = ""
    if check.sensitivity is not None and check.sensitive:
        text += f" {sensitive_sentence(check.sensitivity, check.few_topics)}"
    if not math.isnan(check.unsampled_gain):
        share, direction = share_bound(0, check.n, 1 - check.alpha), "below" if check.lower_is_better else "above"
        text += (
            f" Up to {share:.1%} of all topics ({100 * (1 - check.alpha):g}% upper bound) may be of a kind that is"
            f" missing from the sample. At this share, if the mean difference on topics of the missing kind is"
            f" {direction} {decimal(check.unsampled_gain, 2, '+')}, the mean loss on all topics is within the margin."
        )
    return text


def _large_loss_note(check: CheckResult) -> str:
    # `share_bound` is a one-sided upper confidence limit of the share of all topics.
    if not check.largest_losses:
        return ""
    lost_text = f"{check.large_losses or 'None'} of {topics_text(check.n)}"
    bound = share_bound(check.large_losses, check.n, 1 - check.alpha)
    losses = check.largest_losses
    listed = ", ".join(f"{loss.query_id} ({_score(loss.baseline)} to {_score(loss.candidate)})" for loss in losses)
    return (
        f" {lost_text} lost more than {format_loss(check.large_loss)}; in the"
        f" population of topics, this share is at most {bound:.1%} ({100 * (1 - check.alpha):g}% upper bound)."
        f" The largest {'loss is' if len(losses) == 1 else 'losses are'} on {listed}."
    )


def _status_text(check: CheckResult) -> str:
    margin, note = check.format_size(check.margin), f" Note: {check.note}." if check.note else ""
    interval = _interval_prefix(check)
    test_numbers = f"{interval}p {p_text(check.adjusted, check.alpha)}{_correction_suffix(check)}"
    if check.status == "fail" and check.loss_exceeds_margin:
        numbers = f"{test_numbers}, {topics_text(check.n)}"
        return f"failed: {_change(check)}, more than the margin of {margin} ({numbers}).{note}"
    if check.status == "fail":
        return (
            f"failed: more than {100 * (check.max_share_of_large_losses or 0):g}% of the topics lost more than"
            f" {format_loss(check.large_loss)}; a mean loss of more than the margin of {margin} is not significant"
            f" ({test_numbers})."
        )
    if check.status == "pass" and (math.isnan(check.p) or check.identical):
        return f"passed: {check.note}."
    if check.status == "pass":
        pass_numbers = f"{interval}p {p_text(check.p_safe, check.alpha)}, {topics_text(check.n)}"
        ruled_out = f"a mean loss of more than {margin} is ruled out{_direction_note(check)}"
        return f"passed: {ruled_out} ({pass_numbers}){_unseen_loss_note(check)}.{note}"
    strict = " In strict mode, an inconclusive check fails." if check.strict else ""
    if math.isnan(check.p):
        change = f" ({_change(check)})" if check.n and (check.baseline or check.candidate) else ""
        return f"inconclusive: {check.note}{change}.{strict}"
    return f"inconclusive: {'; '.join(_open_points(check))}.{note}{strict}"


def _direction_note(check: CheckResult) -> str:
    if check.least_loss > 0:
        return f"; the candidate is worse, by at least {check.format_size(check.least_loss)}"
    if check.largest_loss < 0:
        return f"; the candidate is better, by at least {check.format_size(-check.largest_loss)}"
    return ""


def _unseen_loss_note(check: CheckResult) -> str:
    # With 0 of n topics, the limit is 1 - alpha^(1/n), about 3/n at alpha = 0.05 (the "rule of three").
    if math.isnan(check.unsampled_loss):
        return ""
    share, loss = share_bound(0, check.n, 1 - check.alpha), format_loss(check.unsampled_loss)
    return (
        f", unless a kind of topics that is not in the sample (at most {share:.1%} of all topics,"
        f" {100 * (1 - check.alpha):g}% upper bound) loses {loss} or more"
    )


def _open_points(check: CheckResult) -> Iterator[str]:
    least, largest = check.least_loss, check.largest_loss
    subject = f"a loss of up to {check.format_size(largest)} cannot"
    subject = "no loss, however large, can" if math.isinf(largest) else subject
    yield f"{subject} be ruled out, and the margin is {check.format_size(check.margin)}"
    if check.p <= check.alpha * (1 + 1e-9):
        # the interval is not corrected, so it can lie beyond the margin although the check does not fail
        yield (
            f"the check would fail without correction ({_interval_prefix(check)}p {p_text(check.p, check.alpha)}), but"
            f" the check does not fail{_correction_suffix(check)} for {check.family} checks (p"
            f" {p_text(check.adjusted, check.alpha)})"
        )
    elif least > 0:
        yield f"the candidate is worse (by at least {check.format_size(least)}), but possibly by less than the margin"
    if note := _cannot_fail_note(check):
        yield note
    elif not math.isnan(check.detectable):
        size = f"with {topics_text(check.n)}, a loss of {check.format_size(check.detectable)} is detected with"
        yield f"{size} {check.power:.0%} power, or with less power if the loss occurs on few topics"


def _cannot_fail_note(check: CheckResult) -> str:
    alpha, smallest_adjusted = check.alpha * (1 + ROUNDING), check.smallest_p * check.family
    if not smallest_adjusted > alpha:
        return ""
    # 2^-n is the smallest p-value of n flipped signs; a larger one is due to the number of resamples.
    few = topics_text(check.n) if math.isclose(check.smallest_p, 2.0**-check.n) else "this number of resamples"
    reason, conclusion = f"with {few}, p cannot be below {check.smallest_p:.2g}", "this check can never fail"
    if check.smallest_p > alpha:
        return f"{reason}: {conclusion}"
    suffix = _CORRECTION_SUFFIX[check.correction]
    reason += f", or below {min(smallest_adjusted, 1.0):.2g}{suffix} for {check.family} checks"
    return f"{reason}: {conclusion}{' unless other checks fail' if check.correction == 'holm' else ''}"


def _change(check: CheckResult) -> str:
    if not check.loss:
        return f"no difference ({_score(check.baseline)})"
    change = f"{'lost' if check.loss > 0 else 'gained'} {check.format_size(abs(check.loss))}"
    return f"the candidate {change} ({_score(check.baseline)} to {_score(check.candidate)})"


def _interval_prefix(check: CheckResult) -> str:
    if check.interval is None or any(map(math.isinf, check.interval)):
        return ""
    low, high = map(check.format_signed, check.interval)
    return f"{check.level:.0%} CI of the difference [{low}, {high}], "


def _correction_suffix(check: CheckResult) -> str:
    return _CORRECTION_SUFFIX[check.correction] if check.adjusted != check.p else ""


def _score(value: float) -> str:
    return format_difference(value) if 0 < abs(value) < 0.01 else decimal(value)


def format_loss(value: float) -> str:
    """Format a loss without trailing zeros.

    >>> format_loss(0.01), format_loss(0.0345678), format_loss(0.0), format_loss(0.00012)
    ('0.01', '0.0346', '0', '0.00012')
    """
    return _trim_zeros(value) if abs(value) >= 0.001 or value == 0 else f"{value:.2g}"


def format_number(value: float) -> str:
    """Format a number without trailing zeros.

    >>> format_number(0.93333333), format_number(180.0), format_number(math.nan)
    ('0.9333', '180', '-')
    """
    return "-" if math.isnan(value) else _trim_zeros(value) if abs(value) < 1e6 else f"{value:g}"


def _trim_zeros(value: float) -> str:
    text = decimal(value)
    return text if "e" in text else text.rstrip("0").rstrip(".")
