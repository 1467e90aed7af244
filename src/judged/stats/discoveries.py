"""Topics that lost: which differences are more than luck, with a declared share of false findings among them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from judged._types import ReadOnly
from judged.errors import InputError
from judged.stats.inputs import ROUNDING, check_share, topics_text
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from judged._types import Bools, Floats


@dataclass(frozen=True, eq=False)
class Discoveries(ReadOnly):
    """The topics that lost.

    Parameters
    ----------
    fdr
        The false discovery rate: on average, at most this share of the topics found has no real loss.
    threshold
        The topics found lost at least this much; NaN where none is found.
    mask
        (T,): the topics found.
    estimate
        The estimated share of false findings, (1 + gains as large) / losses as large; NaN where none is found.
    n
        Topics that have a difference, 0 among them.
    losses, gains
        How many of them lost, and gained, by more than rounding.
    left_out
        Topics without a difference (NaN).
    """

    fdr: float
    threshold: float
    mask: Bools = field(repr=False)
    estimate: float
    n: int
    losses: int
    gains: int
    left_out: int = 0

    @property
    def count(self) -> int:
        """How many topics are found."""
        return int(np.count_nonzero(self.mask))

    @property
    def fewest(self) -> int:
        """The fewest losses that can be told from luck at this rate; a verdict requires six in any case."""
        return math.ceil(1 / self.fdr * (1 - ROUNDING))

    @property
    def sentence(self) -> str:
        """What may be concluded, and what not."""
        if self.count:
            as_large = round(self.estimate * self.count) - 1
            return (
                f"{self.count} of {topics_text(self.n)} lost {self.threshold:.3g} or more, where {as_large} gained as"
                f" much: on average at most {self.fdr:.0%} of topics found like this are luck, if chance raises scores"
                " as often and as far as it lowers them. If noise is skewed (many small losses, few large gains), more"
                " of them are."
            )
        if self.losses < self.fewest:
            seen = "no topic lost" if not self.losses else f"only {self.losses} of {topics_text(self.n)} lost"
            return (
                f"No single topic can be said to have lost: {seen}, and at a false discovery rate of {self.fdr:.0%}"
                f" fewer than {self.fewest} losses can never be told from luck."
            )
        if lacking := insufficiency(self.losses, "verdict"):
            return (
                f"No single topic can be said to have lost: only {self.losses} of {topics_text(self.n)} lost, and at"
                f" least {lacking.required:g} losses are required."
            )
        return (
            f"No single topic can be said to have lost at a false discovery rate of {self.fdr:.0%}: {self.losses} of"
            f" {self.n} lost and {self.gains} gained, and gains are too frequent at every size."
        )


def losers(differences: ArrayLike, fdr: float = 0.1, *, scale: float = 1.0) -> Discoveries:
    """Find the topics that really lost.

    If a topic has no real loss, it is as likely to gain as to lose by an amount, whatever the amount, and
    independently of other topics (symmetric noise; this is assumed, and nothing in the data can show it). Then the
    topics that gained by at least c tell how many of those that lost by at least c are luck. The smallest c with
    (1 + gains) / losses of at most ``fdr`` holds the false discovery rate at ``fdr``, in finite samples (Barber and
    Candès 2015: SeqStep+, the threshold of knockoff+).

    Parameters
    ----------
    differences
        (T,): new minus old, by topic. NaN: the topic is left out, and counted.
    fdr
        The false discovery rate, between 0 and 1. Fewer than 1 / `fdr` losses, or than six, are never declared.
    scale
        The size of the scores: differences, and differences of differences, up to 1e-12 of it are rounding.

    Returns
    -------
    Discoveries

    Raises
    ------
    InputError
        If they are not a row of finite numbers, or the rate is not a share.

    Examples
    --------
    >>> found = losers([-0.5] * 9 + [-0.4, -0.1, 0.1, 0.0])
    >>> found.count, found.threshold, round(found.estimate, 3)
    (10, 0.4, 0.1)
    >>> print(losers([-0.5] * 9).sentence)
    No single topic can be said to have lost: only 9 of 9 topics lost, and at a false discovery rate of 10% fewer
    than 10 losses can never be told from luck.
    """
    check_share("false discovery rate", fdr)
    given = np.asarray(differences, dtype=np.float64)
    if given.ndim != 1 or np.isinf(given).any():
        raise InputError(
            "the differences are not a row of finite numbers", fix="give one difference a topic, NaN for none"
        )
    slack = ROUNDING * max(scale, float(np.nanmax(np.abs(given), initial=0.0)))
    known = given[~np.isnan(given)]
    losses, gains = np.sort(-known[known < -slack]), np.sort(known[known > slack])
    threshold, estimate = math.nan, math.nan
    if not insufficiency(len(losses), "verdict"):
        threshold, estimate = _threshold(losses, gains, fdr, slack)
    mask = np.zeros(len(given), dtype=np.bool_) if math.isnan(threshold) else given <= -threshold + slack
    return Discoveries(
        fdr, threshold, mask, estimate, len(known), len(losses), len(gains), left_out=len(given) - len(known)
    )


def _threshold(losses: Floats, gains: Floats, fdr: float, slack: float) -> tuple[float, float]:
    """Give the least loss that the rule admits, and its estimated rate."""
    # Only losses need be tried as thresholds: between one and the next the topics found stay, and the gains that speak
    # against them only become fewer.
    as_low = len(losses) - np.searchsorted(losses, losses - slack)
    as_high = len(gains) - np.searchsorted(gains, losses - slack)
    estimates = (1 + as_high) / np.maximum(as_low, 1)
    admitted = np.flatnonzero(estimates <= fdr * (1 + ROUNDING))
    if not len(admitted):
        return math.nan, math.nan
    return float(losses[admitted[0]]), float(estimates[admitted[0]])
