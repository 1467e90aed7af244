"""Whether groups of topics differ: all of them, and one against the rest. Sees only numbers by topic.

Which topic is in which group is permuted. The statistics divide by the groups' own variances, as Welch's do: with
the plain F statistic, small groups that vary more than large ones would be found to differ though their means are
the same (nominal 0.05: 0.29 in a simulation with standard deviations 3, 2, 1, 1 and 10, 20, 40, 80 topics). As
permutations take the groups to vary alike, and Welch's distributions take their means to be normal, the larger of the
two p-values counts: each holds where the other may fail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import InputError
from judged.stats.inputs import ROUNDING, check_resampling
from judged.stats.student import student_quantile
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from numpy.typing import ArrayLike

    from judged.results.types import Bools, Floats, Ints
    from judged.stats.sufficiency import Insufficiency

_HELD = 1 << 18  # permuted labels held at a time
_LARGE = 200  # topics: where every group has more, Welch's distributions stand in for permutations
_PERMUTED = 1 << 25  # labels permuted at most, but for the least number of permutations
_LEAST = 1000


@dataclass(frozen=True)
class Heterogeneity:
    """Whether a number by topic, such as a difference of two systems, has the same mean in all groups."""

    # Welch's: squared distances of the groups' means from their common mean, each over its squared error, by group less
    # one. NaN where there is no test.
    statistic: float
    p: float  # of a statistic at least as large, were the groups drawn by lot, or by Welch's F, whichever is larger
    groups: tuple[int, ...]  # the groups, rising
    n: tuple[int, ...]  # topics of each
    means: tuple[float, ...]
    between: float  # the share of the variation between topics that lies between the groups (eta squared), from 0 to 1
    resamples: int | None  # how many permutations were drawn; None: p is Welch's F, as all groups are large
    seed: int  # of the permutations
    note: str = ""  # why there is no test

    @property
    def insufficiency(self) -> Insufficiency | None:
        """Why the smallest group has too few topics for a verdict; None if all have enough."""
        return insufficiency(min(self.n, default=0), "verdict")


@dataclass(frozen=True)
class AgainstRest:
    """The mean of one group of topics against that of all others."""

    difference: float  # mean of the group minus mean of the others; NaN where either is empty
    interval: tuple[float, float] | None  # Welch's, of this one difference
    # statistic, p: Welch's t, and the share of permutations with one at least as far from 0, or the p of Welch's
    # distribution if that is larger; NaN where there is no test
    statistic: float
    p: float
    n: int
    n_rest: int
    resamples: int | None  # how many permutations were drawn; None: p is Welch's t, as both sides are large
    seed: int  # of the permutations

    @property
    def insufficiency(self) -> Insufficiency | None:
        """Why the smaller side has too few topics for a verdict; None if both have enough."""
        return insufficiency(min(self.n, self.n_rest), "verdict")


def heterogeneity(
    differences: ArrayLike, groups: ArrayLike, *, resamples: int = 10_000, seed: int = 0
) -> Heterogeneity:
    """Test whether groups of topics have the same mean, by permuting which topic is in which group.

    Parameters
    ----------
    differences
        (T,): one number per topic. NaN: the topic has none, and is left out.
    groups
        (T,) whole numbers; a negative one: the topic is in no group, and is left out. Groups do not overlap.
    resamples, seed
        Of the permutations, of which p is (b + 1) / (B + 1). Fewer are drawn for many thousand topics, and none where
        all groups have more than 200: p is then that of Welch's F.

    Returns
    -------
    Heterogeneity
        Without a test where fewer than two groups have two topics; groups with one topic are left out.

    Raises
    ------
    InputError
        If the shapes do not fit, a number is infinite, or an option makes no sense.

    Notes
    -----
    The test holds its level where topics of all groups vary alike, whatever their distribution, and where they vary
    differently and their means are nearly normal. Where small groups are both skewed and vary far more than large ones
    it does not: 11 % in place of 5 for groups of 10, 40 and 80 topics with exponential numbers, of which the smallest
    varies ten times as much (docs/calibration.md). The variance of each group is pooled with that of all topics as if
    one more topic had it, so that a small group whose numbers happen to be the same is not taken for one that is known
    exactly.

    Examples
    --------
    >>> found = heterogeneity([0.0, 0.1, 0.2, 0.1, 0.9, 1.0, 0.8, 0.9], [0, 0, 0, 0, 1, 1, 1, 1])
    >>> round(found.between, 3), found.p < 0.05  # 2 of the 70 ways to deal the topics out are as extreme
    (0.97, True)
    """
    values, codes = _numbers(differences, groups, resamples, seed)
    kept = ~np.isnan(values) & (codes >= 0)
    kinds, counts = np.unique(codes[kept], return_counts=True)
    kinds = kinds[counts > 1]
    kept &= np.isin(codes, kinds)
    values, labels = values[kept], np.searchsorted(kinds, codes[kept])
    sizes = np.bincount(labels, minlength=len(kinds))
    means = [float(values[labels == at].mean()) for at in range(len(kinds))]
    if len(kinds) < 2:
        note = "fewer than two groups have two topics"
        return Heterogeneity(math.nan, math.nan, *_listed(kinds, sizes, means), math.nan, resamples, seed, note)
    apart = _centred(values)
    total = float((apart**2).sum())
    if total == 0:
        return Heterogeneity(0.0, 1.0, *_listed(kinds, sizes, means), 0.0, resamples, seed, "all topics are the same")
    between = float((np.bincount(labels, apart) ** 2 / sizes).sum()) / total
    observed = float(_welch(labels[None, :], apart, sizes)[0])
    if sizes.min() > _LARGE:
        p, drawn = _chance_of_f(observed, labels, apart, sizes), None
    else:
        drawn = min(resamples, max(_PERMUTED // len(values), _LEAST))
        least = observed - ROUNDING * max(observed, 1.0)
        blocks = _permuted(labels, drawn, seed)
        reached = sum(int((_welch(block, apart, sizes) >= least).sum()) for block in blocks)
        p = max((reached + 1) / (drawn + 1), _chance_of_f(observed, labels, apart, sizes))
    return Heterogeneity(observed, p, *_listed(kinds, sizes, means), between, drawn, seed)


def against_rest(
    values: ArrayLike, members: ArrayLike, *, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> tuple[AgainstRest, ...]:
    """Compare each group of topics with all topics outside it; groups may overlap.

    >>> found, = against_rest([0.0, 0.1, 0.2, 0.1, 0.9, 1.0, 0.8, 0.9], [[0, 0, 0, 0, 1, 1, 1, 1]])
    >>> round(found.difference, 3), [round(limit, 3) for limit in found.interval]
    (0.8, [0.659, 0.941])
    """
    # `values`: (T,): one number per topic. NaN: the topic is left out. `members`: (G, T) bool: the topics of each
    # group. `resamples`, `seed`: of the permutations, which all groups share, and of which p is (b + 1) / (B + 1). For
    # groups that have more than 200 topics and leave as many, p is that of Welch's t.
    masks = np.asarray(members, dtype=np.bool_)
    if masks.ndim != 2:
        raise InputError(
            f"groups of shape {masks.shape} are not a table", fix="give one row per group, one column per topic"
        )
    numbers, _ = _numbers(values, np.zeros(masks.shape[1]), resamples, seed)
    kept = ~np.isnan(numbers)
    numbers, masks = numbers[kept], masks[:, kept]
    apart = _centred(numbers)
    sizes = masks.sum(axis=1)
    tested = (sizes > 1) & (len(numbers) - sizes > 1)
    smaller = np.minimum(sizes, len(numbers) - sizes)
    observed = np.full(len(masks), np.nan)
    if tested.any():
        inside = masks[tested].astype(np.float64)
        observed[tested] = _t_of(inside @ apart, inside @ apart**2, sizes[tested], apart)
    permuted = tested & (smaller <= _LARGE)
    p = np.full(len(masks), np.nan)
    p[permuted] = _chances(np.abs(observed[permuted]), smaller[permuted], apart, resamples, seed)
    for at in np.flatnonzero(tested).tolist():
        p[at] = np.fmax(p[at], _chance_of_t(float(observed[at]), _freedom(numbers[masks[at]], numbers[~masks[at]])))
    drawn = [resamples if few else None for few in permuted.tolist()]
    return tuple(
        _against(numbers, mask, float(t), float(chance), level, times, seed)
        for mask, t, chance, times in zip(masks, observed, p, drawn, strict=True)
    )


def _numbers(values: ArrayLike, groups: ArrayLike, resamples: int, seed: int) -> tuple[Floats, Ints]:
    numbers, codes = np.asarray(values, dtype=np.float64), np.asarray(groups).astype(np.int64)
    if numbers.ndim != 1 or numbers.shape != codes.shape:
        raise InputError(
            f"numbers of shape {numbers.shape} and groups of shape {codes.shape} do not fit",
            fix="give one number and one group a topic",
        )
    if np.isinf(numbers).any():
        raise InputError("a number is infinite", fix="give finite numbers, NaN where a topic has none")
    check_resampling(resamples, seed)
    return numbers, codes


def _listed(kinds: Ints, sizes: Ints, means: list[float]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[float, ...]]:
    return tuple(kinds.tolist()), tuple(sizes.tolist()), tuple(means)


def _centred(values: Floats) -> Floats:
    """Subtract the mean; what is left of rounding alone is 0."""
    if not len(values):
        return values
    apart = values - values.mean()
    return np.where(np.abs(apart) <= ROUNDING * np.abs(values).max(), 0.0, apart)


def _permuted(labels: Ints, resamples: int, seed: int) -> Iterator[Ints]:
    """Give the labels in random orders, (b, T) at a time."""
    rng = np.random.default_rng(seed)
    step = max(1, _HELD // max(len(labels), 1))
    for start in range(0, resamples, step):
        yield rng.permuted(np.tile(labels, (min(step, resamples - start), 1)), axis=1)


def _welch(labels: Ints, apart: Floats, sizes: Ints) -> Floats:
    """Give the statistic of each way to deal the topics out to groups: (b, T) to (b,)."""
    squared = apart**2
    overall = squared.sum() / (len(apart) - 1)
    weights, means = (np.empty((len(sizes), len(labels))) for _ in range(2))
    for at, size in enumerate(sizes.tolist()):
        inside = (labels == at).astype(np.float64)
        sums = inside @ apart
        means[at] = sums / size
        spread = np.maximum(inside @ squared - sums * means[at], 0.0)
        weights[at] = size * size / (spread + overall)
    common = (weights * means).sum(axis=0) / weights.sum(axis=0)
    found: Floats = (weights * (means - common) ** 2).sum(axis=0) / (len(sizes) - 1)
    return found


def _chance_of_f(observed: float, labels: Ints, apart: Floats, sizes: Ints) -> float:
    """Give Welch's approximation for large groups (Welch 1951)."""
    from scipy.special import fdtrc

    squares = np.bincount(labels, apart**2) - np.bincount(labels, apart) ** 2 / sizes
    if not (squares > 0).all():
        squares = squares + (apart**2).sum() / (len(apart) - 1)
    weights = sizes * (sizes - 1) / squares
    loose = float(((1 - weights / weights.sum()) ** 2 / (sizes - 1)).sum())
    groups = len(sizes)
    scale = 1 + 2 * (groups - 2) / (groups**2 - 1) * loose
    return float(fdtrc(groups - 1, (groups**2 - 1) / (3 * loose), observed / scale))


def _chances(observed: Floats, sizes: Ints, apart: Floats, resamples: int, seed: int) -> Floats:
    """Give the share of groups of each size, drawn by lot, whose t is at least as far from 0: (G,)."""
    # The first topics of one random order serve for groups of all sizes; no more of it is drawn than the largest needs.
    reached = np.zeros(len(sizes))
    if not len(sizes):
        return reached
    most, squared = int(sizes.max()), apart**2
    slack = ROUNDING * np.maximum(observed, 1.0)
    orders, step = _orders(len(apart), most, resamples, seed), max(1, _HELD // len(apart))
    for start in range(0, resamples, step):
        drawn = orders[start : start + step]
        sums = np.cumsum(apart[drawn], axis=1)[:, sizes - 1]
        squares = np.cumsum(squared[drawn], axis=1)[:, sizes - 1]
        reached += (np.abs(_t_of(sums, squares, sizes, apart)) >= observed - slack).sum(axis=0)
    found: Floats = (reached + 1) / (resamples + 1)
    return found


@lru_cache(maxsize=2)
def _orders(topics: int, most: int, resamples: int, seed: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Give all draws at once, (resamples, most): one call asks for many runs and measures over the same topics."""
    return np.concatenate([block.astype(np.int32) for block in _drawn(topics, most, resamples, seed)])


def _drawn(topics: int, most: int, resamples: int, seed: int) -> Iterator[Ints]:
    """Draw topics without replacement, (b, most) at a time, by the first steps of a shuffle of each row."""
    # The first topics do not depend on how many more are drawn: a group's p-value is the same whatever else is asked.
    step = max(1, _HELD // topics)
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        rng = np.random.default_rng([seed, start])
        order, row = np.tile(np.arange(topics), (size, 1)), np.arange(size)
        for at in range(most):
            other = rng.integers(at, topics, size=size)
            kept = order[:, at].copy()
            order[:, at] = order[row, other]
            order[row, other] = kept
        yield order[:, :most]


def _t_of(sums: Floats, squares: Floats, sizes: Ints, apart: Floats) -> Floats:
    """Give Welch's t of groups against the rest, by their sums and sums of squares."""
    # Numbers are centred. Variances are pooled with that of all topics as in `_welch`.
    whole, rest = float((apart**2).sum()), len(apart) - sizes
    overall = whole / max(len(apart) - 1, 1)
    inside = np.maximum(squares - sums**2 / sizes, 0.0) + overall
    outside = np.maximum(whole - squares - sums**2 / rest, 0.0) + overall
    errors = inside / sizes**2 + outside / rest**2
    gaps = sums / sizes + sums / rest  # the rest adds up to the opposite
    return gaps / np.sqrt(np.where(errors > 0, errors, 1.0))


def _chance_of_t(t: float, freedom: float) -> float:
    from scipy.special import stdtr

    return float(2 * stdtr(freedom, -abs(t)))


def _against(
    numbers: Floats, mask: Bools, t: float, p: float, level: float, resamples: int | None, seed: int
) -> AgainstRest:
    one, rest = numbers[mask], numbers[~mask]
    difference = float(one.mean() - rest.mean()) if len(one) and len(rest) else math.nan
    interval = None if math.isnan(p) else _interval(one, rest, difference, level)
    return AgainstRest(difference, interval, t, p, len(one), len(rest), resamples, seed)


def _interval(one: Floats, rest: Floats, difference: float, level: float) -> tuple[float, float]:
    """Give Welch's interval, with Satterthwaite's degrees of freedom, rounded down."""
    error = math.sqrt(float(one.var(ddof=1) / len(one) + rest.var(ddof=1) / len(rest)))
    if not error > 0:
        return difference, difference
    half = student_quantile((1 + level) / 2, max(math.floor(_freedom(one, rest) + 1e-9), 1)) * error
    return difference - half, difference + half


def _freedom(one: Floats, rest: Floats) -> float:
    """Give Satterthwaite's degrees of freedom; as for equal variances, where there are none."""
    parts = np.array([one.var(ddof=1) / len(one), rest.var(ddof=1) / len(rest)])
    total = float(parts.sum())
    if not total > 0:
        return len(one) + len(rest) - 2
    return total**2 / float((parts**2 / np.array([len(one) - 1, len(rest) - 1])).sum())
