"""Totals from a stratified sample without replacement: Horvitz and Thompson's estimator, and how sure it is.

Sees only numbers: what each sampled unit is worth, its stratum, and how many units the stratum has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from judged.errors import InputError
from judged.results.cache import cached_property
from judged.stats.ratio import ratio_interval
from judged.stats.student import student_quantile
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from judged._types import Floats, Ints

_LEAST = math.sqrt(2.0) * (1.0 - 1e-9)  # errors: of two equal units that were drawn of many


@dataclass(frozen=True, eq=False)
class Design:
    """A sample of n units: within each stratum so many were drawn of all, each set of them as likely as any other.

    Parameters
    ----------
    stratum
        (n,): codes from 0; a stratum belongs to one topic.
    sizes
        (H,): how many units each stratum has, drawn or not.
    topic
        (H,): the topic of each stratum, as a code from 0.
    topics
        How many topics there are, with a sample or without.

    Raises
    ------
    InputError
        If more were drawn than there are, or one of several: nothing then says how much they vary.
    """

    stratum: Ints
    sizes: Ints
    topic: Ints
    topics: int

    def __post_init__(self) -> None:
        drawn = self.drawn
        if (drawn > self.sizes).any():
            raise InputError("more were drawn of a stratum than it has", fix="give each the probability it had")
        if ((drawn < 2) & (self.sizes > drawn)).any():
            raise InputError(
                "of a stratum of several fewer than two were drawn, so nothing says how much they vary",
                fix="draw at least two of each stratum, or all",
            )

    @cached_property
    def drawn(self) -> Ints:
        """How many units of each stratum are in the sample; (H,)."""
        return np.bincount(self.stratum, minlength=len(self.sizes)).astype(np.int64)

    @cached_property
    def probability(self) -> Floats:
        """How likely each unit came into the sample; (n,)."""
        return (self.drawn / self.sizes)[self.stratum]

    def together(self, units: Ints) -> Floats:
        """Give how likely each two of some units came into the sample together; (m, m)."""
        own, stratum = self.probability[units], self.stratum[units]
        drawn, size = self.drawn[stratum], self.sizes[stratum]
        with np.errstate(invalid="ignore", divide="ignore"):
            inside = np.where(drawn == size, 1.0, own * (drawn - 1) / (size - 1))
        joint = np.where(stratum[:, None] == stratum, inside[:, None], own[:, None] * own)
        np.fill_diagonal(joint, own)
        return joint

    def totals(self, values: Floats) -> Floats:
        """Estimate the sum of a value over all units of each topic: (n,) to (T,)."""
        made = np.bincount(self.topic[self.stratum], values / self.probability, minlength=self.topics)
        return made.astype(np.float64)

    def variances(self, values: Floats, others: Floats | None = None) -> Floats:
        """Estimate how the total of each stratum varies from sample to sample, or with another total: (n,) to (H,)."""
        drawn, count, others = self.drawn, len(self.sizes), values if others is None else others
        with np.errstate(invalid="ignore", divide="ignore"):
            apart = [
                each - (np.bincount(self.stratum, each, minlength=count) / drawn)[self.stratum]
                for each in (values, others)
            ]
            products = np.bincount(self.stratum, apart[0] * apart[1], minlength=count)
            spread = self.sizes**2 * (1 - drawn / self.sizes) / drawn * products / (drawn - 1)
        return np.where(drawn == self.sizes, 0.0, spread)

    def covariances(self, values: Floats, others: Floats) -> Floats:
        """Estimate how the totals of two values vary together, by topic: (n,) to (T,)."""
        made = np.bincount(self.topic, self.variances(values, others), minlength=self.topics)
        return made.astype(np.float64)


class MeanEstimate(NamedTuple):
    """The mean over topics, estimated from a sample of what they consist of."""

    value: float
    error: float  # its standard error over samples; the topics are taken as they are
    limits: tuple[float, float] | None  # None where the sample cannot tell how much its units vary
    topics: Floats  # (T,): the estimate of each topic
    errors: Floats  # (T,): its standard error


def mean_estimate(design: Design, estimates: Floats, values: Floats, level: float = 0.95) -> MeanEstimate:
    """Give the mean of estimates by topic with its design-based interval.

    Parameters
    ----------
    design
        How units were drawn.
    estimates
        (T,): the estimate of each topic, such as `Design.totals` gives. NaN: the topic does not count.
    values
        (n,): what each unit adds to its topic's estimate; of an estimate that is no sum, how much the estimate changes
        with the weight of the unit (its linearised value).
    level
        Of the interval: Student's t, with Satterthwaite's degrees of freedom over strata. Of values that are never
        negative, what the sampled strata add has its interval on the logarithmic scale: where few documents are
        relevant, a symmetric one covers 88 to 91% instead of 95%, and reaches below 0. None where that is less than the
        square root of 2 errors, which is the error of two equal units.

    Examples
    --------
    Two of four units were drawn, worth 1 and 3: the total is estimated as 8, with variance 16 * (1 - 2/4) / 2 * 2 = 8.

    >>> design = Design(np.array([0, 0]), np.array([4]), np.array([0]), 1)
    >>> values = np.array([1.0, 3.0])
    >>> found = mean_estimate(design, design.totals(values), values)
    >>> found.value, round(found.error**2, 6)
    (8.0, 8.0)
    """
    variances = design.variances(values)
    counted = ~np.isnan(estimates)
    count = int(counted.sum())
    if not count:
        return MeanEstimate(math.nan, math.nan, None, estimates, estimates)
    errors = np.sqrt(np.bincount(design.topic, variances, minlength=design.topics))
    variances = np.where(counted[design.topic], variances, 0.0)
    total = float(variances.sum())
    value, error = float(estimates[counted].mean()), math.sqrt(total) / count
    sampled = (design.drawn < design.sizes) & counted[design.topic]  # of the others everything is known
    if not sampled.any():
        return MeanEstimate(value, 0.0, (value, value), estimates, errors)
    if insufficiency(int(design.drawn[sampled].sum()), variance=total):
        return MeanEstimate(value, error, None, estimates, errors)
    within = np.maximum(design.drawn - 1, 1)
    df = max(math.floor(total**2 / (variances**2 / within).sum()), 1)
    half = student_quantile((1 + level) / 2, df) * error
    limits = value - half, value + half
    if (values >= 0).all():
        part = float((values / design.probability * sampled[design.stratum]).sum()) / count
        low, high = ratio_interval(part, error, df + 1, level, share=False, counted=True)
        enough = part >= _LEAST * error and not math.isnan(low)
        limits = (value - part + low, value - part + high) if enough else None
    return MeanEstimate(value, error, limits, estimates, errors)
