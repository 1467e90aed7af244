"""Survival analysis of clustered, right-censored durations: Kaplan-Meier curves with standard errors over users.

Greenwood's variance assumes independent durations, but those of one user are not. The *influence* of a duration is its
contribution to the curve. The variance of the influences, summed by user, is valid for users and equals Greenwood's if
every user has one duration (Williams, Biometrics 1995; Ying and Wei, J. Multivariate Analysis 1994).
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
    """Kaplan-Meier curve: a step function that drops at each duration with an observed end."""

    times: Ints  # (J,) distinct durations, increasing
    ended: Ints  # (J,) number that ended at this time
    censored: Ints  # (J,) number censored at this time, after those that ended
    at_risk: Ints  # (J,) number that lasted at least this long
    survival: Floats  # (J,) share that lasts longer
    # (J,) Greenwood's sum of `ended / (at_risk * (at_risk - ended))` up to this time. A time at which all remaining
    # durations end adds nothing: the curve is 0 from there on.
    greenwood_sums: Floats

    @property
    def rows(self) -> int:
        """Number of durations."""
        return int(self.at_risk[0]) if len(self.times) else 0

    def survival_at(self, time: float) -> float:
        """Return the share that lasts longer than a time; NaN after the longest duration, unless the curve is 0 there.

        >>> kaplan_meier([1, 2, 4], [1, 0, 1], [0, 1, 0]).survival_at(2)
        0.6666666666666666
        """
        step = self._step(time)
        if step < 0:
            return 1.0 if len(self.times) else math.nan
        value = float(self.survival[step])
        return math.nan if time > self.times[-1] and value > 0 else value

    def quantile(self, probability: float) -> float:
        """Return the shortest time by which at least this share has ended; infinite if the curve stays above.

        >>> kaplan_meier([1, 2, 4], [1, 0, 1], [0, 1, 0]).quantile(0.5)
        4.0
        """
        reached = np.flatnonzero(self.survival <= 1.0 - probability + 1e-12)
        return float(self.times[reached[0]]) if len(reached) else math.inf

    def mean(self, time: float) -> float:
        """Return the mean duration, restricted to a time: the area below the curve; NaN where the curve is unknown.

        >>> kaplan_meier([1, 2, 4], [1, 0, 1], [0, 1, 0]).mean(3)  # 1 + 2/3 + 2/3
        2.333333333333333
        """
        return math.nan if math.isnan(self.survival_at(time)) else float(self._areas(time)[0])

    def mean_influence(self, time: float) -> tuple[Floats, Floats]:
        """Return the influences of ended and of censored durations, by length, on ``mean(time)``."""
        # As `influence`, integrated up to `time`: each step has the area to its right as its weight.
        areas = self._areas(time)[1:]
        survivors = np.maximum(self.at_risk - self.ended, 1)
        censored_influence = np.cumsum(np.diff(self.greenwood_sums, prepend=0.0) * areas)
        return censored_influence - areas / survivors, censored_influence

    def _areas(self, time: float) -> Floats:
        """Return the area below the curve up to a time, from 0 and from each duration on; shape (J + 1,)."""
        ends = np.minimum(np.concatenate([[0.0], self.times, [np.inf]]), time)
        rectangles = np.diff(ends) * np.concatenate([[1.0], self.survival])
        return np.cumsum(rectangles[::-1])[::-1].astype(np.float64)

    def greenwood(self, time: float) -> float:
        """Return Greenwood's standard error of `survival_at`, for independent durations."""
        step = self._step(time)
        return self.survival_at(time) * math.sqrt(self.greenwood_sums[step]) if step >= 0 else 0.0

    def influence(self, time: float) -> tuple[Floats, Floats]:
        """Return the influences of ended and of censored durations, by length, on ``log(survival_at(time))``."""
        # Over all durations, influences sum to 0, and their squares to Greenwood's sum.
        step = self._step(time)
        if step < 0 or not self.survival[step] > 0:
            return np.zeros(len(self.times)), np.zeros(len(self.times))
        censored_influence = self.greenwood_sums[np.minimum(np.arange(len(self.times)), step)]
        survivors = np.maximum(self.at_risk - self.ended, 1)  # 0 only where the curve is 0, after `time`
        at_end = np.where(np.arange(len(self.times)) <= step, 1.0 / survivors, 0.0)
        return censored_influence - at_end, censored_influence

    def interval(
        self, time: float, error: float, units: float, level: float, *, effective: float | None = None
    ) -> tuple[float, float]:
        """Compute the interval of `survival_at` on the logit scale."""
        # If the curve is still 1, the interval is exact, from the units observed that long. If it is already 0, the
        # upper limit is that before its last step, or exact if nothing was censored until then.
        value = self.survival_at(time)
        step = self._step(time)
        if math.isnan(value) or insufficiency(units, effective_units=effective):
            return math.nan, math.nan
        if value >= 1:
            share_at_risk = int(self.at_risk[np.searchsorted(self.times, time)]) / self.rows
            return exact_share_interval(math.floor(units * share_at_risk), level, 1)
        if value > 0:
            return ratio_interval(value, error, units, level, share=True, effective=effective)
        zero_step = int(np.flatnonzero(self.survival[: step + 1] <= 0)[0])
        if not self.censored[:zero_step].any():
            return exact_share_interval(units, level, 0)
        if self.survival[zero_step - 1] >= 1:
            return 0.0, 1.0
        time = float(self.times[zero_step - 1])
        value, error = self.survival_at(time), self.greenwood(time)
        return 0.0, ratio_interval(value, error, units, level, share=True, effective=effective)[1]

    def _step(self, time: float) -> int:
        """Return the index of the last duration up to a time; -1: none."""
        return int(np.searchsorted(self.times, time, side="right")) - 1


def kaplan_meier(times: Ints | list[int], ended: Ints | list[int], censored: Ints | list[int]) -> SurvivalCurve:
    """Compute the survival curve of counted durations (Kaplan and Meier, JASA 1958).

    Four visits: one ended after 10 s, one after 20 s, one was censored at 20 s, one ended after 30 s:

    >>> kaplan_meier([10, 20, 30], [1, 1, 1], [0, 1, 0]).survival.round(3).tolist()
    [0.75, 0.5, 0.0]
    """
    # `times`: (J,) distinct durations, increasing. `ended`, `censored`: (J,) counts of ended and censored durations.
    t, d, c = (np.asarray(counts, dtype=np.int64) for counts in (times, ended, censored))
    at_risk = np.cumsum((d + c)[::-1])[::-1]
    survivors = at_risk - d
    shares = np.divide(survivors, at_risk, out=np.zeros(len(t)), where=at_risk > 0)
    steps = np.divide(d, at_risk * survivors, out=np.zeros(len(t)), where=survivors > 0)
    survival, greenwood_sums = np.cumprod(shares).astype(np.float64), np.cumsum(steps).astype(np.float64)
    return SurvivalCurve(t, d, c, at_risk, survival, greenwood_sums)


def clustered_error(value: float, squares: float, units: float) -> float:
    """Compute the standard error of a point of a curve from the sum of squared influences over units.

    >>> round(clustered_error(0.5, 0.25, 5), 4)
    0.2795
    """
    # The factor units / (units - 1) corrects for the estimated mean. NaN for fewer than two units.
    return value * math.sqrt(max(squares, 0.0) * units / (units - 1.0)) if units >= 2 else math.nan
