"""How alike two rankings of systems are: tau, tau_AP, Spearman. Sees only scores; more is better."""

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
    """How alike two orders of the same things are."""

    name: str
    value: float  # from -1, reversed, to 1, the same; NaN where it is undefined
    n: int  # how many things were ranked by both
    left_out: int  # those without a score in one of the two
    # concordant, discordant: pairs in the same order in both, and in opposite orders: the swaps
    concordant: int
    discordant: int
    tied: int  # pairs that are tied in at least one of the two
    note: str = ""  # why there is no value

    @property
    def sentence(self) -> str:
        """Say in plain words what was found."""
        if math.isnan(self.value):
            return f"{self.name} is undefined: {self.note}."
        pairs = self.concordant + self.discordant + self.tied
        ties = f", {self.tied} are tied in one ranking or both" if self.tied else ""
        return (
            f"{self.name} is {decimal(self.value, 3)} over {self.n} ranked items: {self.discordant} of {pairs} pairs"
            f" {'is' if self.discordant == 1 else 'are'} ordered the other way round{ties}."
        )


def kendall_tau(first: Floats, second: Floats, ties: Ties = "b") -> Correlation:
    """Give Kendall's tau of two lists of scores.

    Parameters
    ----------
    first, second : (N,) float64
        NaN: not ranked, and left out.
    ties
        ``b``: divided by the number of pairs that could be in order (Kendall 1945), for two rankings that are equals.
        ``a``: divided by the number of all pairs, so that a tie counts as half right; for a ranking against the true
        one.

    Returns
    -------
    Correlation
        NaN below two things, and for ``b`` where one ranking is one tie.

    Raises
    ------
    InputError
        If the lists are not of the same length, or there are no such ties.

    Examples
    --------
    >>> kendall_tau(np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.4, 0.2, 0.3, 0.1])).sentence
    'tau_b is 0.667 over 4 ranked items: 1 of 6 pairs is ordered the other way round.'
    """
    _known_ties(ties)
    kept_first, kept_second, left_out = _both(first, second)
    pairs = _count_pairs(kept_first, kept_second)
    all_pairs = len(kept_first) * (len(kept_first) - 1) // 2
    untied = (all_pairs, all_pairs) if ties == "a" else (all_pairs - pairs[2], all_pairs - pairs[3])
    value = (pairs[0] - pairs[1]) / math.sqrt(untied[0] * untied[1]) if all(untied) else math.nan
    return _correlation(f"tau_{ties}", value, len(kept_first), left_out, pairs)


def tau_ap(truth: Floats, estimate: Floats, ties: Ties = "a") -> Correlation:
    """Give the AP correlation of two lists of scores: as tau, but swaps at the top count more.

    It is the mean over all things but the first, of the share of those above it that belong there (Yilmaz, Aslam and
    Robertson 2008), stretched to -1 to 1. Ties are treated as by Urbano and Marrero 2017.

    Parameters
    ----------
    truth, estimate : (N,) float64
        NaN: not ranked, and left out.
    ties
        ``a``: the truth has no ties, and those of the estimate are broken in every way: the mean of all. Without ties
        it is tau_AP as first defined. ``b``: both may have ties and are equals: things are compared with what stands
        above their tie, and the mean of both directions is taken.

    Returns
    -------
    Correlation
        NaN below two things, and for ``b`` where one ranking is one tie.

    Raises
    ------
    InputError
        If the lists are not of the same length, there are no such ties, or for ``a`` the truth has some.

    Examples
    --------
    >>> bottom = tau_ap(np.array([4.0, 3.0, 2.0, 1.0]), np.array([4.0, 3.0, 1.0, 2.0])).value
    >>> top = tau_ap(np.array([4.0, 3.0, 2.0, 1.0]), np.array([3.0, 4.0, 2.0, 1.0])).value
    >>> round(bottom, 4), round(top, 4)  # one swap each: C(i) / (i - 1) is 1, 1, 2/3 and 0, 1, 1
    (0.7778, 0.3333)
    """
    _known_ties(ties)
    x, y, left_out = _both(truth, estimate)
    pairs = _count_pairs(x, y)
    if ties == "a" and pairs[2]:
        raise InputError("the true ranking has ties, which tau_AP,a does not know", fix='use ties="b"')
    value = math.nan
    if len(x) > 1:
        value = _tau_ap_a(x, y) if ties == "a" else (_tau_ap_b(x, y) + _tau_ap_b(y, x)) / 2
    return _correlation(f"tau_AP,{ties}", value, len(x), left_out, pairs)


def spearman(first: Floats, second: Floats) -> Correlation:
    """Give Spearman's rho: the correlation of ranks, where tied things share the mean of their ranks.

    Examples
    --------
    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])).value
    0.5
    """
    x, y, left_out = _both(first, second)
    pairs = _count_pairs(x, y)
    value = math.nan
    if len(x) > 1:
        one, other = (2 * (ranks := _mean_ranks(side)) - (len(ranks) + 1) for side in (x, y))  # whole numbers
        spread = math.sqrt(float(one @ one) * float(other @ other))
        value = float(one @ other) / spread if spread else math.nan
    return _correlation("Spearman's rho", value, len(x), left_out, pairs)


def _known_ties(ties: str) -> None:
    if ties not in get_args(Ties):
        raise InputError(f"no treatment of ties {ties!r}", fix=f"use one of {', '.join(get_args(Ties))}")


def _both(first: Floats, second: Floats) -> tuple[Floats, Floats, int]:
    """Leave what both lists rank, and count what they do not."""
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.ndim != 1 or one.shape != other.shape:
        raise InputError(f"lists of shapes {one.shape} and {other.shape}", fix="give two lists of the same length")
    known: Bools = ~(np.isnan(one) | np.isnan(other))
    return one[known], other[known], int((~known).sum())


def _correlation(name: str, value: float, n: int, left_out: int, pairs: tuple[int, int, int, int]) -> Correlation:
    concordant, discordant, _, _ = pairs
    tied = n * (n - 1) // 2 - concordant - discordant
    note = ""
    if math.isnan(value):
        note = "one of the two rankings is a single tie" if n > 1 else "fewer than two things are ranked by both"
    return Correlation(name, value, n, left_out, concordant, discordant, tied, note)


def _rows(x: Floats, y: Floats) -> Iterator[tuple[Signs, Signs]]:
    """Give, for some things at a time, on which side of each other thing they stand in both lists: (R, N) signs."""
    for start in range(0, len(x), _CHUNK):
        part = slice(start, start + _CHUNK)
        yield _sides(x, part), _sides(y, part)


def _sides(scores: Floats, part: slice) -> Signs:
    these = scores[part, None]
    return (these > scores).astype(np.int8) - (these < scores).astype(np.int8)


def _count_pairs(x: Floats, y: Floats) -> tuple[int, int, int, int]:
    """Count the pairs that are concordant, discordant, tied in the first list, and tied in the second."""
    counts = np.zeros(4, dtype=np.int64)
    for one, other in _rows(x, y):
        counts += [((one * other) > 0).sum(), ((one * other) < 0).sum(), (one == 0).sum(), (other == 0).sum()]
    counts[2:] -= len(x)  # each thing with itself
    concordant, discordant, tied_first, tied_second = (counts // 2).tolist()
    return concordant, discordant, tied_first, tied_second


def _above(x: Floats, y: Floats) -> Floats:
    """Count for each thing those that stand above it in both lists: (N,)."""
    parts = [((one < 0) & (other < 0)).sum(axis=1) for one, other in _rows(x, y)]
    return np.concatenate(parts).astype(np.float64)


def _first_ranks(y: Floats) -> tuple[Ints, Ints]:
    """Give the rank of the first of each thing's equals, and how many these are."""
    falling = np.sort(-y)
    first = np.searchsorted(falling, -y, side="left")
    return first + 1, np.searchsorted(falling, -y, side="right") - first


def _mean_ranks(scores: Floats) -> Floats:
    first, size = _first_ranks(scores)
    return first + (size - 1) / 2


def _tau_ap_a(x: Floats, y: Floats) -> float:
    """Average over all orders of the tied: those above the tie at each place in it, and half of those within it."""
    first, size = _first_ranks(y)
    n = len(x)
    rank = np.arange(1, n + 1)
    inverse = np.cumsum(np.divide(1.0, rank - 1, out=np.zeros(n), where=rank > 1))  # 1 / (rank - 1), summed up
    before = np.concatenate(([0.0], inverse))
    last = first + size - 1
    above = _above(x, y) * (before[last] - before[first - 1]) / size
    # at the k-th place behind the first of the tie, k of its equals stand above, and half of them rightly
    within = ((size - 1) - (first - 1) * (before[last] - before[first])) / 2 / size
    return float(2 * (above + within).sum() / (n - 1) - 1)


def _tau_ap_b(x: Floats, y: Floats) -> float:
    """Compare each thing with what stands above its tie in the second list; the first tie has nothing above."""
    first, _ = _first_ranks(y)
    lower = first > 1
    if not lower.any():
        return math.nan
    return float(2 * (_above(x, y)[lower] / (first[lower] - 1)).mean() - 1)


_ROUNDING = 1e-12  # of the largest score: differences below it are none


def rmse(original: Floats, again: Floats) -> float:
    """Give the root mean square error of the topic scores: (T,) and (T,); topics with a NaN are left out.

    >>> round(rmse(np.array([0.2, 0.4, 0.6]), np.array([0.2, 0.4, 0.3])), 4)
    0.1732
    """
    one, other = _paired(original, again)
    return math.sqrt(float(((one - other) ** 2).mean())) if len(one) else math.nan


def effect_ratio(baseline: Floats, advanced: Floats, baseline_again: Floats, advanced_again: Floats) -> float:
    """Give the mean improvement that was found again, divided by the original one.

    >>> effect_ratio(np.array([0.25]), np.array([0.75]), np.array([0.25]), np.array([0.5]))
    0.5
    """
    # 1: the same effect; between 0 and 1: a smaller one; below 0: the opposite one. NaN where there was none to find.
    # `baseline`, `advanced`: (T,): the original scores; topics with a NaN are left out. `baseline_again`,
    # `advanced_again`: (U,): the reproduced ones, over the same topics or (a replication) others.
    was, now = (_improvement(*_paired(*pair)) for pair in ((baseline, advanced), (baseline_again, advanced_again)))
    return now / was if was else math.nan


def delta_relative_improvement(
    baseline: Floats, advanced: Floats, baseline_again: Floats, advanced_again: Floats
) -> float:
    """Give the original relative improvement minus the reproduced one: 0 if the same, above 0 if less came back.

    >>> delta_relative_improvement(np.array([0.25]), np.array([0.75]), np.array([0.25]), np.array([0.5]))
    1.0
    """
    # NaN where a baseline has the mean 0.
    found: list[float] = []
    for base, other in ((baseline, advanced), (baseline_again, advanced_again)):
        one, two = _paired(base, other)
        mean = float(one.mean()) if len(one) else 0.0
        found.append(_improvement(one, two) / mean if mean else math.nan)
    return found[0] - found[1]


def t_test_p(original: Floats, again: Floats, *, same_topics: bool = True) -> float:
    """Give the p-value of Student's t-test, two-sided: a small one says that the scores are not those of the original.

    >>> round(t_test_p(np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.2, 0.2, 0.5, 0.5])), 4)
    0.0917
    """
    # `original`, `again`: (T,) float64, (U,). Returns 1 where all differences are 0; 0 where all are the same but not
    # 0, so that there is no variance to test against; NaN below two topics.
    from scipy.special import stdtr

    if same_topics:
        one, other = _paired(original, again)
        difference = one - other
        count, spread = len(difference), _squares(difference)
        mean, error, df = difference.mean() if count else math.nan, math.nan, count - 1
        error = math.sqrt(spread / df / count) if df > 0 else math.nan
    else:
        one, other = (np.asarray(side, dtype=np.float64) for side in (original, again))
        one, other = one[~np.isnan(one)], other[~np.isnan(other)]
        df = len(one) + len(other) - 2
        if min(len(one), len(other)) < 2:
            return math.nan
        mean = one.mean() - other.mean()
        error = math.sqrt((_squares(one) + _squares(other)) / df * (1 / len(one) + 1 / len(other)))
    if math.isnan(error):
        return math.nan
    scale = _ROUNDING * max(float(np.abs(one).max()), float(np.abs(other).max()))
    if error <= scale:
        return 1.0 if abs(mean) <= scale else 0.0
    return float(2 * stdtr(df, -abs(float(mean)) / error))


def _paired(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.ndim != 1 or one.shape != other.shape:
        raise InputError(f"scores of shapes {one.shape} and {other.shape}", fix="give one score per topic in both")
    known = ~(np.isnan(one) | np.isnan(other))
    return one[known], other[known]


def _improvement(baseline: Floats, advanced: Floats) -> float:
    """Give the mean difference; what is only rounding is 0."""
    if not len(baseline):
        return math.nan
    mean = float((advanced - baseline).mean())
    return mean if abs(mean) > _ROUNDING * float(np.abs([baseline, advanced]).max()) else 0.0


def _squares(values: Floats) -> float:
    return float(((values - values.mean()) ** 2).sum()) if len(values) else math.nan
