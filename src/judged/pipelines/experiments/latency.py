"""How long queries take: what is measured, and what may be said of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from judged.stats.student import student_quantile
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from judged.results.types import Floats

Clock: TypeAlias = Callable[[], float]
"""Gives seconds, from any beginning."""
QUANTILES = {"p50_ms": 0.5, "p95_ms": 0.95}


def rounds_of(
    search: Callable[[str], Any],
    queries: Iterable[str],
    *,
    rounds: int,
    warm_up: int,
    seed: int,
    clock: Clock = time.perf_counter,
) -> Floats:
    """Ask every query once a round, in random order, one at a time: milliseconds, (R, Q)."""
    rng, asked = np.random.default_rng(seed), list(queries)
    for at in rng.permutation(len(asked))[:warm_up].tolist():
        search(asked[at])
    taken = np.empty((rounds, len(asked)))
    for row in taken:
        for at in rng.permutation(len(asked)).tolist():
            begun = clock()
            search(asked[at])
            row[at] = 1000 * (clock() - begun)
    return taken


def throughput(
    search: Callable[[str], Any], queries: Iterable[str], *, concurrency: int, clock: Clock = time.perf_counter
) -> float:
    """Ask all queries with so many threads: queries a second."""
    asked = list(queries)
    with ThreadPoolExecutor(concurrency) as pool:
        begun = clock()
        list(pool.map(search, asked))
        return len(asked) / (clock() - begun)


class Quantile(NamedTuple):
    """A quantile of the latency over queries, in milliseconds."""

    value: float
    ci: tuple[float, float] | None  # over queries; None where there are too few of them to have one
    # how much rounds vary: from the least to the most that it was in one round, and at least Student's interval of its
    # logarithm over rounds; None where fewer than three rounds cannot tell
    noise: tuple[float, float] | None


def quantile(taken: Floats, share: float, level: float = 0.95) -> Quantile:
    """Give the median, over rounds, of a quantile over queries: what a round is like, within the noise of rounds.

    In a round, the interval stands between two order statistics (David and Nagaraja 2003, 7.1); both of its ends are
    medians over rounds too. It assumes nothing of how latencies are distributed, and a few queries have none: fewer
    than 72 say too little of the slowest twentieth.

    Parameters
    ----------
    taken
        Milliseconds, (R, Q).
    share
        Between 0 and 1.
    level
        Of the interval, over queries.

    Examples
    --------
    >>> quantile(np.array([[4.0, 1.0, 2.0, 8.0, 3.0, 5.0], [6.0, 1.0, 2.0, 8.0, 3.0, 5.0]]), 0.5)
    Quantile(value=3.75, ci=(1.0, 8.0), noise=None)
    """
    from scipy.special import bdtr

    n = taken.shape[1]
    below = bdtr(np.arange(n, dtype=np.float64), n, share)  # the chance that at most so many lie below the quantile
    first = int(np.searchsorted(below, (1 - level) / 2, side="right")) - 1
    last = int(np.searchsorted(below, (1 + level) / 2))
    ci = None
    if first >= 0 and last < n:
        low, high = np.median(np.sort(taken, axis=1)[:, [first, last]], axis=0).tolist()
        ci = (low, high)
    by_round = np.quantile(taken, share, axis=1)
    return Quantile(float(np.median(by_round)), ci, _noise(by_round, level))


def _noise(by_round: Floats, level: float) -> tuple[float, float] | None:
    if insufficiency(len(by_round)):
        return None
    low, high = float(by_round.min()), float(by_round.max())
    if low > 0:
        logs = np.log(by_round)
        far = student_quantile((1 + level) / 2, len(logs) - 1) * float(logs.std(ddof=1)) / len(logs) ** 0.5
        low, high = min(low, float(np.exp(logs.mean() - far))), max(high, float(np.exp(logs.mean() + far)))
    return low, high
