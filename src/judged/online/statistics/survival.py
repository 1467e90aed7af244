"""How long something lasts where not every end was seen: the Kaplan-Meier curve from counts, over clusters.

Greenwood's variance takes every duration for an observation of its own. Those of one user are not. What one duration
adds to the curve is its *influence*; summed by user, influences give a variance that is right for users, and that is
exactly Greenwood's where every user has one duration (Williams, Biometrics 1995; Ying and Wei, J. Multivariate Analysis
1994).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.stats.ratio import exact_share_interval, ratio_interval
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from judged.results.types import Floats, Ints


@dataclass(frozen=True, eq=False)
class SurvivalCurve:
    """A Kaplan-Meier curve: a step down at each duration at which something ended."""

    times: Ints  # (J,) durations, rising
    # ended, censored: (J,) how many ended at that time, and how many were watched no longer. What ended comes first.
    ended: Ints
    censored: Ints
    at_risk: Ints  # (J,) how many lasted at least so long
    survival: Floats  # (J,) the share that lasts longer than that time
    # (J,) Greenwood's sum up to that time: of `ended / (at_risk * (at_risk - ended))`. Times at which all that were
    # left ended add nothing: the curve is 0 from there on.
    spread: Floats

    @property
    def rows(self) -> int:
        """How many durations there are."""
        return int(self.at_risk[0]) if len(self.times) else 0

    def at(self, time: float) -> float:
        """Give the share that lasts longer than a time; NaN where nothing was watched so long.

        >>> kaplan_meier([1, 2, 4], [1, 0, 1], [0, 1, 0]).at(2)
        0.6666666666666666
        """
        step = self._step(time)
        if step < 0:
            return 1.0 if len(self.times) else math.nan
        value = float(self.survival[step])
        return math.nan if time > self.times[-1] and value > 0 else value

    def quantile(self, probability: float) -> float:
        """Give the shortest time at which at least this share has ended; infinite where the curve stays above.

        >>> kaplan_meier([1, 2, 4], [1, 0, 1], [0, 1, 0]).quantile(0.5)
        4.0
        """
        reached = np.flatnonzero(self.survival <= 1.0 - probability + 1e-12)
        return float(self.times[reached[0]]) if len(reached) else math.inf

    def mean(self, time: float) -> float:
        """Give the mean of durations cut at a time, the area below the curve; NaN where it ends above 0 before it.

        >>> kaplan_meier([1, 2, 4], [1, 0, 1], [0, 1, 0]).mean(3)  # 1 + 2/3 + 2/3
        2.333333333333333
        """
        return math.nan if math.isnan(self.at(time)) else float(self._areas(time)[0])

    def mean_influence(self, time: float) -> tuple[Floats, Floats]:
        """Give what one duration adds to ``mean(time)``, by its length."""
        # As `influence`, integrated up to `time`: each step counts by the area that lies behind it.
        beyond = self._areas(time)[1:]
        left = np.maximum(self.at_risk - self.ended, 1)
        lasted = np.cumsum(np.diff(self.spread, prepend=0.0) * beyond)
        return lasted - beyond / left, lasted

    def _areas(self, time: float) -> Floats:
        """Give the area below the curve up to a time: (J + 1,) from 0, and from each of the durations on."""
        ends = np.minimum(np.concatenate([[0.0], self.times, [np.inf]]), time)
        pieces = np.diff(ends) * np.concatenate([[1.0], self.survival])
        return np.cumsum(pieces[::-1])[::-1].astype(np.float64)

    def greenwood(self, time: float) -> float:
        """Give Greenwood's standard error of `at`: right where all durations are independent."""
        step = self._step(time)
        return self.at(time) * math.sqrt(self.spread[step]) if step >= 0 else 0.0

    def influence(self, time: float) -> tuple[Floats, Floats]:
        """Give what one duration adds to ``log(at(time))``, by its length."""
        # Of durations that ended, and of those that were watched no longer. Over all durations they sum to 0, and their
        # squares to Greenwood's sum.
        step = self._step(time)
        if step < 0 or not self.survival[step] > 0:
            return np.zeros(len(self.times)), np.zeros(len(self.times))
        lasted = self.spread[np.minimum(np.arange(len(self.times)), step)]
        left = np.maximum(self.at_risk - self.ended, 1)  # it is 0 only where the curve is 0, behind `time`
        return lasted - np.where(np.arange(len(self.times)) <= step, 1.0 / left, 0.0), lasted

    def interval(
        self, time: float, error: float, units: float, level: float, *, effective: float | None = None
    ) -> tuple[float, float]:
        """Give the interval of `at`, on the logit scale."""
        # Of a curve that is still 1, from the units that were watched so long; of one that is 0 already, up to the
        # limit just before its last step, unless nothing was lost sight of until then.
        value = self.at(time)
        step = self._step(time)
        if math.isnan(value) or insufficiency(units, effective_units=effective):
            return math.nan, math.nan
        if value >= 1:
            watched = int(self.at_risk[np.searchsorted(self.times, time)]) / self.rows
            return exact_share_interval(math.floor(units * watched), level, 1)
        if value > 0:
            return ratio_interval(value, error, units, level, share=True, effective=effective)
        last = int(np.flatnonzero(self.survival[: step + 1] <= 0)[0])
        if not self.censored[:last].any():
            return exact_share_interval(units, level, 0)
        if self.survival[last - 1] >= 1:
            return 0.0, 1.0
        before = float(self.times[last - 1])
        independent = self.greenwood(before)
        return 0.0, ratio_interval(self.at(before), independent, units, level, share=True, effective=effective)[1]

    def _step(self, time: float) -> int:
        """Find the last duration that is no longer than a time; -1: none."""
        return int(np.searchsorted(self.times, time, side="right")) - 1


def kaplan_meier(times: Ints | list[int], ended: Ints | list[int], censored: Ints | list[int]) -> SurvivalCurve:
    """Give the curve of counted durations (Kaplan and Meier, JASA 1958).

    Four visits: one ended after 10 s, one after 20 s, one was watched for 20 s, one ended after 30 s:

    >>> kaplan_meier([10, 20, 30], [1, 1, 1], [0, 1, 0]).survival.round(3).tolist()
    [0.75, 0.5, 0.0]
    """
    # `times`: (J,) distinct durations, rising. `ended`, `censored`: (J,) how many ended then, and how many were watched
    # until then.
    time, end, lost = (np.asarray(given, dtype=np.int64) for given in (times, ended, censored))
    gone = end + lost
    at_risk = np.cumsum(gone[::-1])[::-1]
    left = at_risk - end
    shares = np.divide(left, at_risk, out=np.zeros(len(time)), where=at_risk > 0)
    steps = np.divide(end, at_risk * left, out=np.zeros(len(time)), where=left > 0)
    survival, spread = (sums.astype(np.float64) for sums in (np.cumprod(shares), np.cumsum(steps)))
    return SurvivalCurve(time, end, lost, at_risk, survival, spread)


def clustered_error(value: float, squares: float, units: float) -> float:
    """Give the standard error of a point of a curve.

    >>> round(clustered_error(0.5, 0.25, 5), 4)
    0.2795
    """
    # `units`: how many units: the sum is multiplied by `units / (units - 1)`. Returns NaN for fewer than two units.
    return value * math.sqrt(max(squares, 0.0) * units / (units - 1.0)) if units >= 2 else math.nan
