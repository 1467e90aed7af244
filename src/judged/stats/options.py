"""What the paired tests are asked, and what each of them answers about one pair."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from judged.errors import InputError
from judged.stats.inputs import ROUNDING, check_resampling
from judged.stats.results import Alternative

if TYPE_CHECKING:
    from judged.stats.results import Posterior


@dataclass(frozen=True)
class Options:
    """What a paired test is asked; see `judged.stats.paired.paired_test`."""

    alternative: Alternative = "two-sided"
    level: float = 0.95
    resamples: int = 100_000
    seed: int = 0
    rope: float = 0.01
    floor: float = 1e-5
    max_difference: float | None = None

    def __post_init__(self) -> None:
        if self.alternative not in get_args(Alternative):
            raise InputError(
                f"no alternative {self.alternative!r}", fix=f"use one of {', '.join(get_args(Alternative))}"
            )
        least = 0.0 if self.alternative == "two-sided" else 0.5
        if not least < self.level < 1:
            raise InputError(f"the level {self.level} is not between {least:g} and 1", fix="use 0.95, for example")
        check_resampling(self.resamples, self.seed)
        if not 0 <= self.rope < math.inf:
            raise InputError(
                f"the region of practical equivalence {self.rope} is not usable", fix="use 0.01, for example"
            )
        if not 0 < self.floor < math.inf:
            raise InputError(
                f"the floor {self.floor} is not above 0", fix="use 1e-5, for example: its logarithm is taken"
            )
        if self.max_difference is not None and not 0 < self.max_difference < math.inf:
            raise InputError(
                f"`max_difference` must be a finite number above 0, got {self.max_difference}",
                fix="give the range of the measure: 1 for one from 0 to 1",
            )

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
class PairedResult:
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
