"""Coverage of 95% intervals of the true mean of the selected best system, and bias.

A score is a system mean, a topic effect, and normal noise. *Equal*: all system means are the same; *close*: they vary
by a seventh of the noise. *Topics alike*: no topic effect; *as noisy*: it varies as much as the noise; *far apart*: six
times as much. *choose* uses 20 repetitions of 10 folds and nested cross-validation for the error. *select* uses one
repetition and Student's interval. *Bias left*: bias of `choose` relative to that of the naive mean, known to 5 points.
*May be best*: share of samples in which the best system is among those that may be best, at alpha = 0.05.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calibration import CoverageCell
from judged.stats.interval import IntervalMethod, mean_intervals
from judged.stats.selection import choose, may_be_best, select

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES = (12, 25, 50, 225)
SYSTEMS = (3, 12, 40)
TOPICS = {"topics alike": 0.0, "topics as noisy": 1.0, "topics far apart": 6.0}
_PAIRED = 12  # systems
SPREADS = {"equal": 0.0, "close": 1 / 7}


class Picked(NamedTuple):
    """The best of many systems in many samples of topics."""

    naive: float  # mean error of the naive mean
    honest: float  # mean error of `choose`
    one_deal: float  # and of `select`
    held: float  # how often the interval of `choose` holds the true mean
    student: float  # how often Student's of `select` does
    best: float  # how often the truly best is among those that may be; NaN where that would take long


def picked(systems: int, spread: float, topic: float, n: int, trials: int) -> Picked:
    """Pick the best of so many systems, again and again; errors are less the luck of the topics, which all share."""
    rng = np.random.default_rng([21, systems, n])
    found: list[tuple[float, ...]] = []
    for seed in range(trials):
        truth = spread * rng.normal(size=systems)
        values = truth[:, None] + topic * rng.normal(size=n) + rng.normal(size=(systems, n))
        one, other = choose(values, seed=seed), select(values, seed=seed)
        worth = float(truth[one.best])
        low, high = one.interval or (-math.inf, math.inf)
        least, most = mean_intervals(other.values[None], IntervalMethod("t"))[0]
        luck = worth + float(values.mean() - truth.mean())
        errors = (one.naive - luck, one.honest - luck, other.honest - luck)
        possible = may_be_best(values, 0.05, "t")[int(truth.argmax())] if systems <= _PAIRED else math.nan
        found.append((*errors, low <= worth <= high, least <= worth <= most, possible))
    return Picked(*np.mean(found, axis=0).tolist())


def measure(trials: int) -> Iterator[CoverageCell]:
    """Give coverage, the bias that is left, and how often the truly best may be the best."""
    for n in SIZES:
        for systems in SYSTEMS:
            for alike, spread in SPREADS.items():
                for apart, topic in TOPICS.items():
                    done, situation = picked(systems, spread, topic, n, trials), f"{systems} {alike}"
                    yield CoverageCell("choose", f"{situation}, {apart}", n, done.held, trials)
                    yield CoverageCell("select", f"{situation}, {apart}", n, done.student, trials)
                yield CoverageCell("bias left", situation, n, abs(done.honest) / done.naive, trials)
                if not math.isnan(done.best):
                    yield CoverageCell("may be best", situation, n, done.best, trials)
