"""Rank correlations of two rankings of systems: tau, tau_AP, Spearman. Knows only scores; higher is better."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from judged.errors import InputError
from judged.results.decimals import decimal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from judged.results.types import Bools, Floats, Ints

    Signs: TypeAlias = NDArray[np.int8]


Ties: TypeAlias = Literal["a", "b"]

_CHUNK = 512  # rows of the matrix of pairs held at a time


@dataclass(frozen=True)
class Correlation:
    """Rank correlation of two rankings of the same items."""

    name: str
    value: float  # from -1 (reversed) to 1 (same order); NaN if it is undefined
    n: int  # items that both rank
    left_out: int  # items without a score in either ranking
    # pairs that both rankings order in the same way (concordant) or in opposite ways (discordant, "swaps")
    concordant: int
    discordant: int
    tied: int  # pairs that are tied in at least one ranking
    note: str = ""  # reason why `value` is NaN

    @property
    def sentence(self) -> str:
        """Result in one sentence."""
        if math.isnan(self.value):
            return f"{self.name} is undefined: {self.note}."
        pairs = self.concordant + self.discordant + self.tied
        ties = f", {self.tied} are tied in at least one ranking" if self.tied else ""
        return (
            f"{self.name} is {decimal(self.value, 3)} over {self.n} ranked items: {self.discordant} of {pairs} pairs"
            f" {'is' if self.discordant == 1 else 'are'} in the opposite order{ties}."
        )


def kendall_tau(first: Floats, second: Floats, ties: Ties = "b") -> Correlation:
    """Compute Kendall's tau of two lists of scores.

    Parameters
    ----------
    first, second : (N,) float64
        Scores. Items with a NaN in either list are left out.
    ties
        ``b``: divide by the numbers of untied pairs (Kendall 1945); for two rankings of equal standing. ``a``: divide
        by the number of all pairs, so that a tie counts as half right; for a ranking against the true one.

    Returns
    -------
    Correlation
        NaN for fewer than two items. With ``b`` also if all items of a ranking are tied.

    Raises
    ------
    InputError
        If the lists differ in length, or `ties` is unknown.

    Examples
    --------
    >>> kendall_tau(np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.4, 0.2, 0.3, 0.1])).sentence
    'tau_b is 0.667 over 4 ranked items: 1 of 6 pairs is in the opposite order.'
    """
    _check_ties(ties)
    x, y, left_out = _common_items(first, second)
    concordant, discordant, tied_x, tied_y = pairs = _count_pairs(x, y)
    n_pairs = len(x) * (len(x) - 1) // 2
    # tau_b of two fully tied rankings is undefined: no pair could be in order
    untied = (n_pairs, n_pairs) if ties == "a" else (n_pairs - tied_x, n_pairs - tied_y)
    value = (concordant - discordant) / math.sqrt(untied[0] * untied[1]) if all(untied) else math.nan
    return _correlation(f"tau_{ties}", value, len(x), left_out, pairs)


def tau_ap(truth: Floats, estimate: Floats, ties: Ties = "a") -> Correlation:
    """Compute the AP correlation of two lists of scores: like tau, but swaps at the top count more.

    Average, over all items but the first, the share of items ranked above that belong above, and scale it to -1 to 1
    (Yilmaz, Aslam and Robertson 2008). Ties are treated as in Urbano and Marrero 2017.

    Parameters
    ----------
    truth, estimate : (N,) float64
        Scores. Items with a NaN in either list are left out.
    ties
        ``a``: `truth` has no ties, and the result is the mean over all ways to break the ties of `estimate`; without
        ties, this is the original tau_AP. ``b``: both may have ties and are of equal standing: each item is compared
        with the items above its tie group, and the result is the mean of both directions.

    Returns
    -------
    Correlation
        NaN for fewer than two items. With ``b`` also if all items of a ranking are tied.

    Raises
    ------
    InputError
        If the lists differ in length, `ties` is unknown, or `truth` has ties with ``a``.

    Examples
    --------
    >>> bottom = tau_ap(np.array([4.0, 3.0, 2.0, 1.0]), np.array([4.0, 3.0, 1.0, 2.0])).value
    >>> top = tau_ap(np.array([4.0, 3.0, 2.0, 1.0]), np.array([3.0, 4.0, 2.0, 1.0])).value
    >>> round(bottom, 4), round(top, 4)  # one swap each: C(i) / (i - 1) is 1, 1, 2/3 and 0, 1, 1
    (0.7778, 0.3333)
    """
    _check_ties(ties)
    x, y, left_out = _common_items(truth, estimate)
    pairs = _count_pairs(x, y)
    if ties == "a" and pairs[2]:
        raise InputError("ties='a' requires a `truth` without ties", fix='use ties="b"')
    value = math.nan
    if len(x) > 1:
        value = _tau_ap_a(x, y) if ties == "a" else (_tau_ap_b(x, y) + _tau_ap_b(y, x)) / 2
    return _correlation(f"tau_AP,{ties}", value, len(x), left_out, pairs)


def spearman(first: Floats, second: Floats) -> Correlation:
    """Compute Spearman's rho: the correlation of ranks, where tied items share the mean of their ranks.

    Parameters
    ----------
    first, second
        (N,): values of the same items.

    Examples
    --------
    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])).value
    0.5
    """
    x, y, left_out = _common_items(first, second)
    pairs = _count_pairs(x, y)
    value = math.nan
    if len(x) > 1:
        # twice the centered ranks: integers, so that the products are exact
        x_ranks, y_ranks = (2 * (ranks := _mean_ranks(scores)) - (len(ranks) + 1) for scores in (x, y))
        norm = math.sqrt(float(x_ranks @ x_ranks) * float(y_ranks @ y_ranks))
        value = float(x_ranks @ y_ranks) / norm if norm else math.nan
    return _correlation("Spearman's rho", value, len(x), left_out, pairs)


def _check_ties(ties: str) -> None:
    if ties not in get_args(Ties):
        choices = ", ".join(get_args(Ties))
        raise InputError(f"`ties` must be one of {choices}, got {ties!r}", fix=f"use one of {choices}")


def _common_items(first: Floats, second: Floats) -> tuple[Floats, Floats, int]:
    """Return the scores of the items in both lists, and the number of the other items."""
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise InputError(
            f"the lists must have the same length, got shapes {x.shape} and {y.shape}", fix="pass equal lengths"
        )
    in_both: Bools = ~(np.isnan(x) | np.isnan(y))
    return x[in_both], y[in_both], int((~in_both).sum())


def _correlation(name: str, value: float, n: int, left_out: int, pairs: tuple[int, int, int, int]) -> Correlation:
    concordant, discordant, _, _ = pairs
    tied = n * (n - 1) // 2 - concordant - discordant
    note = ""
    if math.isnan(value):
        note = (
            "all items are tied in one of the two rankings"
            if n > 1
            else "the rankings have fewer than two items in common"
        )
    return Correlation(name, value, n, left_out, concordant, discordant, tied, note)


def _sign_blocks(x: Floats, y: Floats) -> Iterator[tuple[Signs, Signs]]:
    """Yield (R, N) signs of both lists: 1 where the row's item has the higher score, -1 the lower, 0 for a tie."""
    for start in range(0, len(x), _CHUNK):
        rows = slice(start, start + _CHUNK)
        yield _signs(x, rows), _signs(y, rows)


def _signs(scores: Floats, rows: slice) -> Signs:
    row_scores = scores[rows, None]
    return (row_scores > scores).astype(np.int8) - (row_scores < scores).astype(np.int8)


def _count_pairs(x: Floats, y: Floats) -> tuple[int, int, int, int]:
    """Count the pairs that are concordant, discordant, tied in the first list, and tied in the second."""
    counts = np.zeros(4, dtype=np.int64)
    for x_signs, y_signs in _sign_blocks(x, y):
        agreement = x_signs * y_signs
        counts += [(agreement > 0).sum(), (agreement < 0).sum(), (x_signs == 0).sum(), (y_signs == 0).sum()]
    counts[2:] -= len(x)  # each item ties with itself
    concordant, discordant, tied_first, tied_second = (counts // 2).tolist()
    return concordant, discordant, tied_first, tied_second


def _count_above_in_both(x: Floats, y: Floats) -> Floats:
    """Count for each item the items above it in both lists: (N,)."""
    counts = [((x_signs < 0) & (y_signs < 0)).sum(axis=1) for x_signs, y_signs in _sign_blocks(x, y)]
    return np.concatenate(counts).astype(np.float64)


def _tie_groups(y: Floats) -> tuple[Ints, Ints]:
    """Return the first rank of each item's tie group, and the size of that group."""
    ascending = np.sort(-y)
    first = np.searchsorted(ascending, -y, side="left")
    return first + 1, np.searchsorted(ascending, -y, side="right") - first


def _mean_ranks(scores: Floats) -> Floats:
    first, size = _tie_groups(scores)
    return first + (size - 1) / 2


def _tau_ap_a(x: Floats, y: Floats) -> float:
    """Average over all orders of tied items: items above the tie group, plus half of those above within it."""
    first, size = _tie_groups(y)
    n = len(x)
    rank = np.arange(1, n + 1)
    harmonic = np.cumsum(np.divide(1.0, rank - 1, out=np.zeros(n), where=rank > 1))  # sums of 1 / (rank - 1)
    harmonic_before = np.concatenate(([0.0], harmonic))
    last = first + size - 1
    from_above = _count_above_in_both(x, y) * (harmonic_before[last] - harmonic_before[first - 1]) / size
    # after k items of its tie group, an item has k of them above it, and half of these are correct on average
    from_tied = ((size - 1) - (first - 1) * (harmonic_before[last] - harmonic_before[first])) / 2 / size
    return float(2 * (from_above + from_tied).sum() / (n - 1) - 1)


def _tau_ap_b(x: Floats, y: Floats) -> float:
    """Compare each item with the items above its tie group in `y`; no item is above the first group."""
    first, _ = _tie_groups(y)
    has_above = first > 1
    if not has_above.any():
        return math.nan
    return float(2 * (_count_above_in_both(x, y)[has_above] / (first[has_above] - 1)).mean() - 1)


_ROUNDING = 1e-12  # times the largest score: smaller differences count as 0


def rmse(original: Floats, reproduced: Floats) -> float:
    """Compute the root mean square error of topic scores, (T,) and (T,). Topics with a NaN are left out.

    >>> round(rmse(np.array([0.2, 0.4, 0.6]), np.array([0.2, 0.4, 0.3])), 4)
    0.1732
    """
    first, second = _paired(original, reproduced)
    return math.sqrt(float(((first - second) ** 2).mean())) if len(first) else math.nan


def effect_ratio(baseline: Floats, advanced: Floats, baseline_reproduced: Floats, advanced_reproduced: Floats) -> float:
    """Compute the reproduced mean improvement divided by the original one (Breuer et al. 2020).

    >>> effect_ratio(np.array([0.25]), np.array([0.75]), np.array([0.25]), np.array([0.5]))
    0.5
    """
    # 1: the same effect; 0 to 1: smaller; below 0: opposite. NaN if the original effect is 0. Original scores are (T,),
    # reproduced ones (U,): a replication may use other topics. Topics with a NaN are left out.
    original, reproduced = (
        _improvement(*_paired(*pair)) for pair in ((baseline, advanced), (baseline_reproduced, advanced_reproduced))
    )
    return reproduced / original if original else math.nan


def delta_relative_improvement(
    baseline: Floats, advanced: Floats, baseline_reproduced: Floats, advanced_reproduced: Floats
) -> float:
    """Compute the original relative improvement minus the reproduced one (Breuer et al. 2020).

    >>> delta_relative_improvement(np.array([0.25]), np.array([0.75]), np.array([0.25]), np.array([0.5]))
    1.0
    """
    # 0: the same improvement; above 0: a smaller one was reproduced. NaN if a baseline has a mean of 0.
    relative: list[float] = []
    for base_scores, advanced_scores in ((baseline, advanced), (baseline_reproduced, advanced_reproduced)):
        first, second = _paired(base_scores, advanced_scores)
        mean = float(first.mean()) if len(first) else 0.0
        relative.append(_improvement(first, second) / mean if mean else math.nan)
    return relative[0] - relative[1]


def t_test_p(original: Floats, reproduced: Floats, *, same_topics: bool = True) -> float:
    """Compute the two-sided p-value of Student's t-test of original against reproduced scores.

    >>> round(t_test_p(np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.2, 0.2, 0.5, 0.5])), 4)
    0.0917
    """
    # 1 if all differences are 0; 0 if they are equal but not 0, which leaves no variance; NaN for fewer than two topics
    from scipy.special import stdtr

    if same_topics:
        first, second = _paired(original, reproduced)
        difference = first - second
        n, sum_of_squares = len(difference), _sum_of_squares(difference)
        mean, error, df = difference.mean() if n else math.nan, math.nan, n - 1
        error = math.sqrt(sum_of_squares / df / n) if df > 0 else math.nan
    else:
        first, second = (np.asarray(scores, dtype=np.float64) for scores in (original, reproduced))
        first, second = first[~np.isnan(first)], second[~np.isnan(second)]
        df = len(first) + len(second) - 2
        if min(len(first), len(second)) < 2:
            return math.nan
        mean = first.mean() - second.mean()
        error = math.sqrt((_sum_of_squares(first) + _sum_of_squares(second)) / df * (1 / len(first) + 1 / len(second)))
    if math.isnan(error):
        return math.nan
    scale = _ROUNDING * max(float(np.abs(first).max()), float(np.abs(second).max()))
    if error <= scale:
        return 1.0 if abs(mean) <= scale else 0.0
    return float(2 * stdtr(df, -abs(float(mean)) / error))


def _paired(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise InputError(
            f"both systems must have one score per topic, got shapes {x.shape} and {y.shape}", fix="pass equal lengths"
        )
    in_both = ~(np.isnan(x) | np.isnan(y))
    return x[in_both], y[in_both]


def _improvement(baseline: Floats, advanced: Floats) -> float:
    """Return the mean difference, or 0 if it is only rounding error."""
    if not len(baseline):
        return math.nan
    mean = float((advanced - baseline).mean())
    return mean if abs(mean) > _ROUNDING * float(np.abs([baseline, advanced]).max()) else 0.0


def _sum_of_squares(values: Floats) -> float:
    return float(((values - values.mean()) ** 2).sum()) if len(values) else math.nan
