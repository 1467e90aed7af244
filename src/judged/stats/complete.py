"""The topics that have a score for every system, and what comparisons over them share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.stats.inputs import ROUNDING, complete_topics, score_matrix

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from judged._types import Floats

NO_VARIATION = "no p-value: with fewer than two topics nothing tells a difference from luck"
NO_RESIDUAL = (
    "every topic shows the same differences: with no residual variance p is 0 for any difference, "
    "which only the randomised test puts into proportion"
)
UNEVEN = 1.2
"""From here on tests that take all differences to vary alike err too often, by simulation (docs/calibration.md)."""


@dataclass(frozen=True, eq=False)
class Complete:
    """The topics that have a score for every system."""

    scores: Floats  # (S, n)
    left_out: int  # topics that lack a score for some system

    @property
    def n(self) -> int:
        """How many topics there are."""
        return self.scores.shape[1]

    @property
    def means(self) -> Floats:
        """The mean score of each system: (S,); NaN without a topic."""
        return self.scores.mean(axis=1) if self.n else np.full(len(self.scores), np.nan)

    @property
    def differences(self) -> Floats:
        """Mean of the second system minus that of the first, [first, second]: (S, S); 0 if it is only rounding."""
        found = self.means - self.means[:, np.newaxis]
        return np.where(np.abs(found) <= self.tolerance, 0.0, found)

    @property
    def tolerance(self) -> float:
        """Scores, or means of scores, that differ by no more than this are equal but for rounding."""
        return ROUNDING * float(np.abs(self.scores).max(initial=0.0))

    @property
    def counted(self) -> dict[str, Any]:
        """The means and numbers of topics that every result of these tells, by the names of its fields."""
        return {"means": self.means, "n": self.n, "left_out": self.left_out}

    @property
    def note(self) -> str:
        """What a reader must know about the number of topics."""
        return "" if self.n > 1 else NO_VARIATION

    @property
    def unevenness(self) -> float:
        """How many times as widely as all on average the differences of the most uneven system from others spread."""
        if self.n < 2:
            return 1.0
        covariance = np.cov(self.scores)
        own = np.diagonal(covariance)
        variances = np.maximum(own + own[:, np.newaxis] - 2 * covariance, 0.0)
        spread = float(variances.mean())
        return float(np.sqrt(variances.mean(axis=1).max() / spread)) if spread > self.tolerance**2 else 1.0

    @property
    def uneven(self) -> str:
        """What a reader must know of a test that takes all differences to vary alike."""
        if self.unevenness <= UNEVEN:
            return ""
        return (
            f"the differences of one system vary {self.unevenness:.1f} times as much as those of all; the test"
            " assumes that they vary equally, and where they do not it finds differences that are not there in 10 to"
            " 25 % of families, not in 5 %; the randomisation test corrected by Holm does not"
        )


def complete(values: ArrayLike) -> Complete:
    """Keep the topics that have a score for every system.

    >>> complete([[0.1, 0.2, float("nan")], [0.3, 0.4, 0.5]])
    Complete(scores=array([[0.1, 0.2], [0.3, 0.4]]), left_out=1)
    """
    # `values`: (S, T): S systems over T topics. NaN: the topic has no score for that system.
    scores, left_out = complete_topics(score_matrix(values))
    return Complete(scores, left_out)


def significance(level: float) -> float:
    """Give ``1 - level`` without the last bits of the subtraction."""
    return round(1 - level, 12)


def in_errors(differences: Floats, error: float) -> Floats:
    """Divide differences by their standard error; 0 stays 0, anything else over an error of 0 is infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(differences == 0.0, 0.0, differences / error)
