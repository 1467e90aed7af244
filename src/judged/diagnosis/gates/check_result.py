"""What a gate found by one check: the numbers, the decision, and what may be concluded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from judged.results.decimals import decimal, p_text
from judged.stats.effect import share_bound
from judged.stats.inputs import ROUNDING, topics_text
from judged.stats.sample_size import amount
from judged.stats.sensitivity import sensitive_sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.diagnosis.gates.config import Check
    from judged.stats.sensitivity import Sensitivity

_AFTER = {"holm": " after Holm's correction", "bonferroni": " after Bonferroni's correction", "none": ""}

Status: TypeAlias = Literal["pass", "inconclusive", "fail"]


@dataclass(frozen=True)
class TopicLoss:
    """One topic on which the candidate is worse: both scores, in the measure's unit."""

    query_id: str
    baseline: float
    candidate: float


@dataclass(frozen=True)
class CheckResult:
    """What was found by one check: the numbers and the decision."""

    table: ClassVar[str] = "check"  # of the configuration

    check: Check  # what was asked
    measure: str  # the canonical name
    owner: str  # of the slice
    # n, left_out: topics of the slice with a score for both runs; topics of it that lack one
    n: int
    left_out: int
    min_topics: int  # with fewer topics nothing is decided
    baseline: float  # aggregates over the n topics
    candidate: float  # aggregates over the n topics
    # mean of candidate minus baseline. Where `kind` is `ratio` (geometric means), the relative change.
    difference: float
    level: float  # of the interval
    margin: float  # the largest loss that is allowed, in the unit of `difference`, from 0
    kind: Literal["difference", "ratio"]
    lower_is_better: bool  # then a loss is a positive difference
    power: float
    correction: str
    test: str  # `randomisation`, `ratio`, `t` or `bounded`
    strict: bool  # whether the gate fails where this check is inconclusive
    max_share_of_large_losses: float | None = None  # a larger share of them fails
    # `fail`: more than the margin was lost. `pass`: that is ruled out. `inconclusive`: neither is shown.
    status: Status = "inconclusive"
    # of the difference, two-sided at level 1 - 2 alpha: its limits decide as the one-sided tests do, before any
    # correction. A limit is infinite where so few topics can rule out nothing.
    interval: tuple[float, float] | None = None
    # p, adjusted: of the test for a loss of more than the margin, before and after the correction. NaN where nothing is
    # tested.
    p: float = math.nan
    adjusted: float = math.nan
    # of the test for a loss of less than the margin, which needs no correction: the gate passes only if all do
    p_safe: float = math.nan
    # a true loss of this size would have been noticed with the configured power. NaN where that is not known, or where
    # no loss could fail by itself.
    detectable: float = math.nan
    note: str = ""  # why nothing was tested, or what else must be known
    largest_losses: tuple[TopicLoss, ...] = ()  # the topics that lost most, at most three
    family: int = 1  # how many checks share alpha
    least_p: float = math.nan  # below this p cannot be with so many topics, or resamples. NaN where nothing is tested.
    large_loss: float = math.nan  # what counts as a large loss of a topic, in the measure's unit
    large_losses: int = 0  # how many of the n topics lost more
    identical: bool = False  # whether both runs have the same score on each of the n topics
    # a loss of this size on a topic, on so few of all topics that these may have none, outweighs the margin: that is
    # not ruled out by any test of these topics. NaN where no topic can lose as much.
    unseen_loss: float = math.nan
    # the counterpart of a failure: above this mean difference (below, where lower is better) on as few topics, the loss
    # over all is no more than the margin. NaN where no topic can gain as much, with 100 topics or more, and where the
    # bounded test shows the failure.
    unseen_gain: float = math.nan
    # how far a failure, or a pass, that a test shows rests on a few topics; its p-value is one-sided
    sensitivity: Sensitivity | None = None
    few_topics: tuple[str, ...] = ()  # the topics whose uncertain share of all topics could undo it

    @property
    def name(self) -> str:
        """Measure and slice."""
        return self.check.name

    @property
    def line(self) -> int | None:
        """Where it stands in the file of the configuration."""
        return self.check.line

    @property
    def blocks(self) -> bool:
        """Whether the gate fails because of it."""
        return self.status == "fail" or (self.strict and self.status == "inconclusive")

    @property
    def alpha(self) -> float:
        """Of each of the two one-sided tests, before any correction."""
        return (1 - self.level) / 2

    @property
    def proved(self) -> bool:
        """Whether it is shown that more than the margin was lost."""
        return self.adjusted <= self.alpha * (1 + ROUNDING)

    @property
    def too_many_large_losses(self) -> bool:
        """Whether more topics had a large loss than the configured limit allows."""
        most = self.max_share_of_large_losses
        return most is not None and self.large_losses > most * self.n * (1 + ROUNDING)

    @property
    def sensitive(self) -> bool:
        """Whether the failure, or the pass, is sensitive to a few topics."""
        return self.sensitivity is not None and self.sensitivity.sensitive

    @property
    def bounded_p(self) -> float:
        """One-sided p-value of the bounded test, at most 0.5; NaN where no test decided, or there are no bounds."""
        return math.nan if self.sensitivity is None else self.sensitivity.bounded_p

    @property
    def loss(self) -> float:
        """What was lost: positive where the candidate is worse."""
        return self.difference if self.lower_is_better else 0.0 - self.difference

    @property
    def largest_loss(self) -> float:
        """The largest loss that is not ruled out; infinite where none is."""
        low, high = self.interval or (-math.inf, math.inf)
        return high if self.lower_is_better else 0.0 - low

    @property
    def least_loss(self) -> float:
        """The least loss that is not ruled out; below 0 it is a gain."""
        low, high = self.interval or (-math.inf, math.inf)
        return low if self.lower_is_better else 0.0 - high

    @property
    def sentence(self) -> str:
        """What may be concluded, and what not."""
        owner = f" (owner: {self.owner})" if self.owner else ""
        text = f"{self.name}{owner}: {_verdict(self)}{_few_topics(self)}{_large_losses(self)}"
        if self.left_out:
            text += f" {topics_text(self.left_out)} without a score for both runs did not count."
        return text

    def size(self, value: float) -> str:
        """Write a size; one of a ratio in per cent."""
        return f"{100 * value:.3g}%" if self.kind == "ratio" else digits(value)

    def signed(self, value: float, places: int = 4) -> str:
        """Write a difference with its sign; one of a ratio in per cent."""
        if not math.isfinite(value):
            return "-" if math.isnan(value) else f"{value:+}"
        return f"{100 * value:+.1f}%" if self.kind == "ratio" else decimal(value, places, "+")


def _few_topics(check: CheckResult) -> str:
    """Say which few topics a failure or a pass rests on, and what a failure may have missed."""
    text = ""
    if check.sensitivity is not None and check.sensitive:
        text += f" {sensitive_sentence(check.sensitivity, check.few_topics)}"
    if not math.isnan(check.unseen_gain):
        share, side = share_bound(0, check.n, 1 - check.alpha), "below" if check.lower_is_better else "above"
        text += (
            f" Up to {share:.1%} of all topics may be of a kind that is not among these {check.n}: with a mean"
            f" difference {side} {decimal(check.unseen_gain, 2, '+')} there, no more than the margin is lost."
        )
    return text


def _large_losses(check: CheckResult) -> str:
    """Say how many topics lost much, how many of all topics may, and which of these lost most."""
    if not check.largest_losses:
        return ""
    which = f"{check.large_losses or 'None'} of {topics_text(check.n)}"
    bound = share_bound(check.large_losses, check.n, 1 - check.alpha)
    listed = ", ".join(
        f"{one.query_id} {_score(one.baseline)} to {_score(one.candidate)}" for one in check.largest_losses
    )
    return (
        f" {which} lost more than {digits(check.large_loss)}; of all topics up to {bound:.1%} may"
        f" ({100 * (1 - check.alpha):g}% bound). Most was lost on {listed}."
    )


def _verdict(check: CheckResult) -> str:
    """Say how it was decided, and by which numbers."""
    margin, note = check.size(check.margin), f" Note: {check.note}." if check.note else ""
    interval = _interval(check)
    tested = f"{interval}p {p_text(check.adjusted, check.alpha)}{_corrected(check)}"
    if check.status == "fail" and check.proved:
        return f"failed: {_lost(check)}, more than the margin of {margin} ({tested}, {topics_text(check.n)}).{note}"
    if check.status == "fail":
        return (
            f"failed: more than {100 * (check.max_share_of_large_losses or 0):g}% of the topics had a large loss; that"
            f" the mean lost more than its margin of {margin} is not shown ({tested})."
        )
    if check.status == "pass" and (math.isnan(check.p) or check.identical):
        return f"passed: {check.note}."
    if check.status == "pass":
        safe = f"{interval}p {p_text(check.p_safe, check.alpha)}, {topics_text(check.n)}"
        ruled_out = f"a mean loss of more than {margin} is ruled out{_gain(check)}"
        return f"passed: {ruled_out} ({safe}){_unseen(check)}.{note}"
    strict = " In strict mode, that fails." if check.strict else ""
    if math.isnan(check.p):
        seen = f" ({_lost(check)})" if check.n and (check.baseline or check.candidate) else ""
        return f"inconclusive: {check.note}{seen}.{strict}"
    return f"inconclusive: {'; '.join(_unclear(check))}.{note}{strict}"


def _gain(check: CheckResult) -> str:
    """Say whether the candidate is surely worse, or better."""
    if check.least_loss > 0:
        return f"; the candidate is worse, by at least {check.size(check.least_loss)}"
    if check.largest_loss < 0:
        return f"; the candidate is better, by at least {check.size(-check.largest_loss)}"
    return ""


def _unseen(check: CheckResult) -> str:
    """Say which losses are so rare that these topics may have none, and yet outweigh the margin."""
    if math.isnan(check.unseen_loss):
        return ""
    share = share_bound(0, check.n, 1 - check.alpha)
    return (
        f", but for losses of {digits(check.unseen_loss)} and more on up to {share:.1%} of all topics, which may show"
        " in none of these"
    )


def _unclear(check: CheckResult) -> Iterator[str]:
    """Say what cannot be ruled out, and what would have been noticed."""
    least, largest = check.least_loss, check.largest_loss
    what = f"a loss of up to {check.size(largest)} cannot"
    what = "no loss, however large, can" if math.isinf(largest) else what
    yield f"{what} be ruled out, and the margin is {check.size(check.margin)}"
    if check.p <= check.alpha * (1 + 1e-9):
        yield f"by itself it would have failed (p {p_text(check.p, check.alpha)}), but not{_corrected(check)}"
    elif least > 0:
        yield f"the candidate is worse (by at least {check.size(least)}), but perhaps by less than that"
    if never := _never(check):
        yield never
    elif not math.isnan(check.detectable):
        seen = f"with {topics_text(check.n)} a loss of {check.size(check.detectable)} would have been noticed"
        yield f"{seen} {often(check.power)}, less often where few topics bear it"


def _never(check: CheckResult) -> str:
    """Say where no loss, however large, could fail: with so few topics, or resamples."""
    asked, shared = check.alpha * (1 + ROUNDING), check.least_p * check.family
    if not shared > asked:
        return ""
    few = topics_text(check.n) if math.isclose(check.least_p, 2.0**-check.n) else "so few resamples"
    said, never = f"with {few} p cannot be below {check.least_p:.2g}", "this check can never fail"
    if check.least_p > asked:
        return f"{said}: {never}"
    said += f", nor below {min(shared, 1.0):.2g}{_AFTER[check.correction]} for {check.family} checks"
    return f"{said}: {never}{' unless others do' if check.correction == 'holm' else ''}"


def often(power: float) -> str:
    """Write a chance.

    >>> often(0.8), often(0.9)
    ('four times in five', 'with a chance of 90%')
    """
    return "four times in five" if math.isclose(power, 0.8) else f"with a chance of {power:.0%}"


def _lost(check: CheckResult) -> str:
    """Say what was seen."""
    if not check.loss:
        return f"no difference ({_score(check.baseline)})"
    change = f"{'lost' if check.loss > 0 else 'gained'} {check.size(abs(check.loss))}"
    return f"the candidate {change} ({_score(check.baseline)} to {_score(check.candidate)})"


def _interval(check: CheckResult) -> str:
    if check.interval is None or any(map(math.isinf, check.interval)):
        return ""
    low, high = map(check.signed, check.interval)
    return f"{check.level:.0%} interval of the difference {low} to {high}, "


def _corrected(check: CheckResult) -> str:
    return _AFTER[check.correction] if check.adjusted != check.p else ""


def _score(value: float) -> str:
    return amount(value) if 0 < abs(value) < 0.01 else decimal(value)


def digits(value: float) -> str:
    """Write a loss without zeros at its end: a margin of 0.01 is one of 0.01.

    >>> digits(0.01), digits(0.0345678), digits(0.0), digits(0.00012)
    ('0.01', '0.0346', '0', '0.00012')
    """
    return _short(value) if abs(value) >= 0.001 or value == 0 else f"{value:.2g}"


def number(value: float) -> str:
    """Write a number as it stands.

    >>> number(0.93333333), number(180.0), number(math.nan)
    ('0.9333', '180', '-')
    """
    return "-" if math.isnan(value) else _short(value) if abs(value) < 1e6 else f"{value:g}"


def _short(value: float) -> str:
    """Write a number without zeros at its end."""
    text = decimal(value)
    return text if "e" in text else text.rstrip("0").rstrip(".")
