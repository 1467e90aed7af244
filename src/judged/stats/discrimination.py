"""How well a measure tells systems apart: the discriminative power of Sakai (2006)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from judged.errors import InputError
from judged.results.decimals import decimal
from judged.stats.inputs import check_share, paired_differences, score_matrix, spread
from judged.stats.sufficiency import MIN_UNITS

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Discrimination:
    """The p-values of all pairs of systems, and what share of them is significant."""

    test: str  # the test that gave the p-values
    alpha: float
    # rows of the systems, by falling p-value: a curve of p-values over this order is Sakai's ASL curve. Pairs without a
    # p-value stand at the end.
    pairs: tuple[tuple[int, int], ...]
    # p_values, differences: in the same order; difference of the means, second minus first
    p_values: tuple[float, ...]
    differences: tuple[float, ...]
    # pairs with `p <= alpha` and enough topics for a verdict. Nothing here corrects p-values for the number of pairs.
    significant: int
    share: float  # of the pairs that have a p-value. NaN if none has.
    # the difference that would have been significant for every pair: the largest of their critical differences t(1 -
    # alpha / 2) SD / sqrt(n). Sakai reads the same off bootstrap samples. NaN if no pair has two topics.
    required: float
    largest_missed: float  # the largest absolute difference that was not significant; 0 if all were

    @property
    def sentence(self) -> str:
        """The discriminative power in plain words."""
        if math.isnan(self.share):
            return "No two systems could be tested."
        tested = sum(not math.isnan(p) for p in self.p_values)
        enough = f"; for every pair, a difference of {decimal(self.required, 3)} would" if self.required > 0 else ""
        return (
            f"{self.share:.1%} of the pairs of systems ({self.significant} of {tested}) differ significantly "
            f"(alpha {self.alpha:g}, {self.test}){enough}."
        )


def discriminative_power(
    values: ArrayLike,
    *,
    alpha: float = 0.05,
    test: str = "randomisation",
    resamples: int = 100_000,
    seed: int = 0,
    p_values: ArrayLike | None = None,
) -> Discrimination:
    """Test all pairs of systems, and say what share is significant: the more, the better a measure tells them apart.

    Parameters
    ----------
    values
        (S, T): scores of at least two systems by topic; NaN where there is none.
    alpha
        The level of each test.
    test, resamples, seed
        As in `judged.stats.paired.paired_tests`.
    p_values
        (S, S): p-values from elsewhere in place of these tests, such as those of randomised Tukey HSD, which keep the
        number of pairs in account (Sakai 2012). ``test`` then only names them.

    Raises
    ------
    InputError
        If the shapes do not fit, or an option makes no sense.

    Examples
    --------
    >>> scores = [[0.1, 0.2, 0.1, 0.3, 0.2, 0.1], [0.2, 0.4, 0.5, 0.6, 0.3, 0.2], [0.3, 0.5, 0.4, 0.7, 0.4, 0.0]]
    >>> found = discriminative_power(scores, test="t")
    >>> found.pairs, found.significant, round(found.largest_missed, 4)
    (((1, 2), (0, 2), (0, 1)), 2, 0.0167)
    """
    check_share("alpha", alpha)
    scores = score_matrix(values)
    pairs = list(combinations(range(len(scores)), 2))
    if p_values is None:
        from judged.stats.paired import paired_tests

        found = paired_tests(scores, pairs, test, level=1 - alpha, resamples=resamples, seed=seed)
        p = np.array([one.p for one in found])
        test = ", ".join(dict.fromkeys(one.test for one in found))  # where topics tie, it may not be what was asked
    else:
        matrix = np.asarray(p_values, dtype=np.float64)
        if matrix.shape != (len(scores), len(scores)):
            raise InputError(f"p-values of shape {matrix.shape} do not fit", fix="give one for every two systems")
        p = matrix[tuple(np.array(pairs).T)]
    differences, critical, topics = np.array([_critical(scores[one], scores[two], alpha) for one, two in pairs]).T
    order = np.argsort(-p, kind="stable")  # NaN last
    significant = (p <= alpha * (1 + 1e-12)) & (topics >= MIN_UNITS["verdict"])
    tested = ~np.isnan(p)
    return Discrimination(
        test=test,
        alpha=alpha,
        pairs=tuple(pairs[at] for at in order.tolist()),
        p_values=tuple(p[order].tolist()),
        differences=tuple(differences[order].tolist()),
        significant=int(significant.sum()),
        share=float(significant.sum() / tested.sum()) if tested.any() else math.nan,
        required=float(np.nanmax(critical)) if not np.isnan(critical).all() else math.nan,
        largest_missed=float(np.abs(differences[tested & ~significant]).max(initial=0.0)),
    )


def _critical(first: ArrayLike, second: ArrayLike, alpha: float) -> tuple[float, float, int]:
    """Return the mean difference, the least that the t-test would have found significant, and the number of topics."""
    from scipy.special import stdtrit

    differences, _ = paired_differences(first, second)
    n = len(differences)
    mean = float(differences.mean()) if n else math.nan
    if n < 2:
        return mean, math.nan, n
    return mean, float(stdtrit(n - 1, 1 - alpha / 2)) * spread(differences) / math.sqrt(n), n
