"""Time paired randomization tests of judged, scipy, and ranx, and print a table.

All times are from one run, so that ratios are valid on any machine. scipy tests one pair at a time: a few pairs are
timed, and the median is multiplied by the number of pairs. Tools that disagree are not timed.
"""

from __future__ import annotations

import itertools
import math
import statistics
import sys
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import permutation_test

from judged.stats.multiple import randomized_tukey
from judged.stats.paired import paired_test, paired_tests

if TYPE_CHECKING:
    from collections.abc import Callable

SYSTEMS, TOPICS, RESAMPLES = 37, 43, 100_000
PAIRS = list(itertools.combinations(range(SYSTEMS), 2))
ROUNDS = 3


class _Row(NamedTuple):
    """A row of the table."""

    tool: str
    work: str
    seconds: float


def main() -> None:
    """Time all tools, and print the table."""
    scores = _scores()
    our_seconds = _median(lambda: paired_tests(scores, PAIRS, resamples=RESAMPLES), ROUNDS)
    timed_pairs = PAIRS[:: len(PAIRS) // ROUNDS][:ROUNDS]
    scipy_seconds = statistics.median(_seconds(lambda pair=pair: _scipy(*scores[list(pair)])) for pair in timed_pairs)
    first, second = scores[list(timed_pairs[0])]
    single_pair = _median(lambda: paired_test(first, second, resamples=RESAMPLES), ROUNDS)
    _check_agreement("scipy", paired_test(first, second).p, float(_scipy(first, second).pvalue))
    rows = [
        _Row("judged, with intervals", f"{len(PAIRS)} pairs", our_seconds),
        _Row("scipy, extrapolated", f"{len(PAIRS)} pairs", scipy_seconds * len(PAIRS)),
        _Row("judged, with interval", "1 pair", single_pair),
        _Row("scipy", "1 pair", scipy_seconds),
    ]
    tukey = _median(lambda: randomized_tukey(scores, resamples=RESAMPLES), ROUNDS)
    rows.append(_Row("judged, randomized Tukey", f"{len(PAIRS)} pairs", tukey))
    if find_spec("ranx"):
        rows.append(_Row("ranx, after compiling", "1 pair", _ranx(first, second)))
    print(_table(rows))


def _scores() -> np.ndarray[Any, np.dtype[np.float64]]:
    """Simulate scores of systems on topics of varying difficulty, rounded to four decimals as in text files."""
    rng = np.random.default_rng(0)
    quality, difficulty = rng.normal(0, 0.3, (SYSTEMS, 1)), rng.normal(-0.5, 1, TOPICS)
    return np.round(1 / (1 + np.exp(-(quality + difficulty + rng.normal(0, 0.5, (SYSTEMS, TOPICS))))), 4)


def _scipy(first: Any, second: Any) -> Any:
    return permutation_test(
        (second, first),
        lambda a, b, axis: (a - b).mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(0),
    )


def _ranx(first: Any, second: Any) -> float:
    """Time ranx's test, without the first call, which compiles it."""
    from ranx.statistical_tests import fisher_randomization_test

    fisher_randomization_test(first, second, n_permutations=10)
    _check_agreement(
        "ranx", paired_test(first, second).p, float(fisher_randomization_test(first, second, RESAMPLES)[0])
    )
    return _median(lambda: fisher_randomization_test(first, second, n_permutations=RESAMPLES), ROUNDS)


def _check_agreement(tool: str, judged_p: float, peer_p: float) -> None:
    """Exit if two p-values differ by more than their Monte Carlo error."""
    error = math.sqrt(2 * max(judged_p * (1 - judged_p), 1 / RESAMPLES) / RESAMPLES)
    if abs(judged_p - peer_p) > 5 * error:
        sys.exit(f"{tool}: p = {peer_p}, but judged has p = {judged_p}")


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _median(call: Callable[[], object], rounds: int) -> float:
    return statistics.median(_seconds(call) for _ in range(rounds))


def _table(rows: list[_Row]) -> str:
    """Format as Markdown; ratios are to judged for the same work."""
    lines = [
        f"Randomization test, {TOPICS} topics, {RESAMPLES:,} resamples:",
        "",
        "| tool | work | seconds | times judged |",
        "|---|---|---:|---:|",
    ]
    judged_seconds = {row.work: row.seconds for row in reversed(rows) if row.tool.startswith("judged")}
    lines += [
        f"| {row.tool} | {row.work} | {row.seconds:.2f} | {row.seconds / judged_seconds[row.work]:.1f} |"
        for row in rows
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
