"""What the paired tests are given, scores by topic and options, and what each of them answers about one pair."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

import numpy as np

from judged.errors import InputError
from judged.stats.results import Alternative

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from judged._types import Floats
    from judged.stats.results import Posterior

ROUNDING = 1e-12  # of the larger number: scores are sums of fractions, and what is equal may differ in the last bits

MOST_RESAMPLES = 1_000_000
"""More would take hours, and change no digit that is printed."""


def paired_differences(first: ArrayLike, second: ArrayLike) -> tuple[Floats, int]:
    """Subtract the first from the second, over the topics that have a score for both.

    >>> paired_differences([0.1, 0.5, float("nan")], [0.1, 0.75, 1.0])
    (array([0.  , 0.25]), 1)
    """
    # `first`, `second`: (T,): scores by topic; NaN where the topic has none. Returns differences: exactly 0 where the
    # two scores are equal but for rounding. Returns left_out: T - n.
    a, b = _numbers(first), _numbers(second)
    if a.ndim != 1 or a.shape != b.shape:
        raise InputError(
            f"scores of shapes {a.shape} and {b.shape} are no pairs", fix="give one score a topic for each"
        )
    counted = ~(np.isnan(a) | np.isnan(b))
    a, b = a[counted], b[counted]
    differences = b - a
    differences[np.abs(differences) <= ROUNDING * np.maximum(np.abs(a), np.abs(b))] = 0.0
    return differences, int(len(counted) - len(a))


def score_matrix(values: ArrayLike, *, least: int = 2) -> Floats:
    """Check scores of systems by topic: (S, T), with at least so many systems."""
    scores = _numbers(values)
    if scores.ndim != 2:
        raise InputError(
            f"scores of shape {scores.shape} are no table", fix="give one row a system, one column a topic"
        )
    if len(scores) < least:
        raise InputError(f"{len(scores)} systems are too few", fix=f"give at least {least}")
    return scores


def complete_topics(values: Floats) -> tuple[Floats, int]:
    """Keep the topics that have a score for every system; say how many do not."""
    kept = values[:, np.flatnonzero(~np.isnan(values).any(axis=0))]
    return kept, values.shape[1] - kept.shape[1]


def spread(differences: Floats) -> float:
    """Give the standard deviation (n - 1): exactly 0 where all are the same but for rounding, NaN for fewer than two.

    >>> spread(np.array([0.1, 0.2, 0.3])).__round__(6), spread(np.array([0.1, 0.3 - 0.2])), spread(np.array([0.1]))
    (0.1, 0.0, nan)
    """
    if len(differences) < 2:
        return math.nan
    if np.ptp(differences) <= ROUNDING * np.abs(differences).max():
        return 0.0
    return float(differences.std(ddof=1))


def check_share(name: str, value: float, low: float = 0.0, high: float = 1.0) -> None:
    """Refuse what is not strictly between two bounds."""
    if not low < value < high:
        raise InputError(f"the {name} {value} is not between {low:g} and {high:g}", fix=f"give a {name} between them")


def check_resampling(resamples: int, seed: int) -> None:
    """Raise InputError for a number of resamples or a seed that makes no sense."""
    if resamples < 100:
        raise InputError(f"{resamples} resamples are too few", fix="at least 100")
    if resamples > MOST_RESAMPLES:
        raise InputError(f"{resamples:,} resamples would never end", fix=f"at most {MOST_RESAMPLES:,}")
    if seed < 0:
        raise InputError(f"the seed {seed} is below 0", fix="give a whole number from 0")


def topics_text(n: int) -> str:
    """Write a number of topics.

    >>> topics_text(1), topics_text(43)
    ('1 topic', '43 topics')
    """
    return f"{n} topic{'' if n == 1 else 's'}"


def _numbers(values: ArrayLike) -> Floats:
    numbers = np.asarray(values, dtype=np.float64)
    if np.isinf(numbers).any():
        raise InputError("a score is infinite", fix="give finite scores, NaN where a topic has none")
    return numbers


@dataclass(frozen=True)
class Options:
    """What a paired test is asked; see `judged.stats.paired.paired_test`."""

    alternative: Alternative = "two-sided"
    level: float = 0.95
    resamples: int = 100_000
    seed: int = 0
    rope: float = 0.01
    floor: float = 1e-5

    def __post_init__(self) -> None:
        if self.alternative not in get_args(Alternative):
            raise InputError(f"no alternative {self.alternative!r}", fix=f"one of {', '.join(get_args(Alternative))}")
        least = 0.0 if self.alternative == "two-sided" else 0.5
        if not least < self.level < 1:
            raise InputError(f"the level {self.level} is not between {least:g} and 1", fix="0.95, say")
        check_resampling(self.resamples, self.seed)
        if not 0 <= self.rope < math.inf:
            raise InputError(f"the region of practical equivalence {self.rope} is no width", fix="0.01, say")
        if not 0 < self.floor < math.inf:
            raise InputError(f"the floor {self.floor} is not above 0", fix="1e-5, say: it has a logarithm")

    @property
    def alpha(self) -> float:
        """The largest p-value that counts as significant."""
        return round(1 - self.level, 15)

    @property
    def two_sided_level(self) -> float:
        """The level whose two-sided interval has the limit of this one-sided one."""
        return self.level if self.alternative == "two-sided" else 2 * self.level - 1

    def interval(self, low: float, high: float) -> tuple[float, float]:
        """Give the interval whose limits these are, without the one that a one-sided test does not have."""
        return (
            -math.inf if self.alternative == "less" else low,
            math.inf if self.alternative == "greater" else high,
        )

    def p_of(self, lower: float, upper: float) -> float:
        """Give the p-value from the chances of a statistic as low, and as high, as the one seen."""
        if self.alternative == "two-sided":
            return min(1.0, 2 * min(lower, upper))
        return min(1.0, upper if self.alternative == "greater" else lower)


@dataclass(frozen=True)
class Found:
    """What a method answers about one pair."""

    statistic: float
    p: float
    interval: tuple[float, float] | None = None
    resamples: int | None = None
    exact: bool = False
    seed: int | None = None
    note: str = ""
    posterior: Posterior | None = None


def share(alpha: float, of: int) -> int:
    """Give how many of ``of`` resamples a share of alpha is, rounded down.

    >>> share(1 - 0.9, 100)
    10
    """
    return math.floor(alpha * of * (1 + ROUNDING))
