"""False positive rate of paired tests if few topics cause the difference, and notes in the results.

*randomization* is the default test at alpha = 0.05; *bounded* is `--test bounded`. *Labeled*: share of the false
positives with a rare topic in the sample that are labeled as sensitive to few topics. *States possible misses*: share
of the other false positives that state the share of topics that the sample can miss, and the mean difference there that
would reverse the result; only below 100 topics. Cells with fewer than 20 cases are empty.

If topics tie, the topics that gain are rare: 10% and 17% of all. The last rows are the power, and the label rate, for
true differences without rare topics.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from calibration import CoverageCell
from judged.stats.bounded import bounded_p
from judged.stats.paired import paired_tests
from judged.stats.sensitivity import sensitivity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
    Bools: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

SIZES = (6, 10, 25, 50, 100)
LARGEST = 1.0  # difference that the measure allows
_ALPHA = 0.05
_NOISE = 0.02
_RESAMPLES = 1999
_FEWEST = 20  # verdicts per share
_POWER = 2.8  # standard errors: the t-test has a power of 80% in large samples


class Sample(NamedTuple):
    """Differences, and whether topics are of the rare kind; both of shape (trials, n)."""

    gaps: Floats
    rare: Bools


Shape: TypeAlias = "Callable[[np.random.Generator, tuple[int, int]], Sample]"


def _two_kinds(share: float, size: float) -> Shape:
    """Return a shape with mean 0 in which a share of topics differs by `size`, and others have the opposite sign."""

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Sample:
        rare = rng.random(shape) < share
        noise = _NOISE * rng.normal(size=shape)
        return Sample(np.where(rare, size, -size * share / (1 - share)) + noise, rare)

    return draw


def _ties(share: float, sigma: float) -> Shape:
    """Return a shape in which a share of topics ties, and the others are log-normal with mean 0 and at most 1."""
    largest = 10.0
    inside = math.erfc((sigma - math.log(largest) / sigma) / math.sqrt(2)) / 2
    beyond = math.erfc(math.log(largest) / sigma / math.sqrt(2)) / 2
    mean = math.exp(sigma**2 / 2) * inside + largest * beyond

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Sample:
        values = 0.1 * (np.minimum(rng.lognormal(0.0, sigma, shape), largest) - mean)
        gaps = np.where(rng.random(shape) < share, 0.0, values)
        return Sample(gaps, gaps > 0)

    return draw


RARE: dict[str, Shape] = {
    "5% lose 0.6": _two_kinds(0.05, -0.6),
    "10% gain 0.45": _two_kinds(0.1, 0.45),
    "70% tie, others lognormal": _ties(0.7, 1.0),
    "8% lose 0.5": _two_kinds(0.08, -0.5),
    "3% lose 0.9": _two_kinds(0.03, -0.9),
    "6% gain 0.3": _two_kinds(0.06, 0.3),
    "15% lose 0.25": _two_kinds(0.15, -0.25),
    "50% tie, others lognormal": _ties(0.5, 0.8),
}

ORDINARY: dict[str, Callable[[np.random.Generator, tuple[int, int]], Floats]] = {
    "normal": lambda rng, shape: 0.15 * rng.normal(size=shape),
    "bimodal": lambda rng, shape: rng.choice([-0.2, 0.2], shape) + 0.05 * rng.normal(size=shape),
    "P@5": lambda rng, shape: rng.choice([-0.4, -0.2, 0.0, 0.2, 0.4], shape, p=[0.1, 0.2, 0.4, 0.2, 0.1]),
    "exponential": lambda rng, shape: 0.1 * (rng.exponential(size=shape) - 1),
}


class Verdicts(NamedTuple):
    """Verdicts of tests of samples, each of shape (trials,)."""

    significant: Bools  # by the randomization test, at 5%
    bounded: Bools  # significant by the bounded test
    right: Bools  # whether the mean is above 0
    labeled: Bools  # whether the result is labeled as sensitive to few topics
    stated: Bools  # whether the result states the topics that the sample may miss


def verdicts(gaps: Floats) -> Verdicts:
    """Test each row, and check whether a significant difference depends on few topics."""
    values = np.vstack([np.zeros(gaps.shape[1]), gaps])
    pairs = [(0, row + 1) for row in range(len(gaps))]
    significant = np.array([test.p <= _ALPHA for test in paired_tests(values, pairs, resamples=_RESAMPLES)])
    bounded = np.array([bounded_p(differences, LARGEST) <= _ALPHA for differences in gaps])
    labeled, stated = np.zeros((2, len(gaps)), dtype=np.bool_)
    for row in np.flatnonzero(significant).tolist():
        answer = sensitivity(values[0], gaps[row], max_difference=LARGEST)
        labeled[row], stated[row] = answer.sensitive, answer.may_miss
    return Verdicts(significant, bounded, gaps.mean(axis=1) > 0, labeled, stated)


def false_verdicts(name: str, n: int, trials: int) -> tuple[Verdicts, Bools]:
    """Return verdicts on systems with the same true mean, and whether samples contain a topic of the rare kind."""
    sample = RARE[name](np.random.default_rng([n, 23]), (trials, n))
    return verdicts(sample.gaps), np.asarray(sample.rare.any(axis=1))


def true_verdicts(name: str, n: int, trials: int) -> Verdicts:
    """Return verdicts on a true difference that the t-test detects four times out of five."""
    differences = ORDINARY[name](np.random.default_rng([n, 24]), (trials, n))
    return verdicts(np.clip(differences + _POWER * float(differences.std()) / math.sqrt(n), -LARGEST, LARGEST))


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield the rates by shape and number of topics."""
    for name in RARE:
        for n in SIZES:
            tested, rare = false_verdicts(name, n, trials)
            yield CoverageCell("randomization", f"{name}: false verdict", n, float(tested.significant.mean()), trials)
            yield CoverageCell("bounded", f"{name}: false verdict", n, float(tested.bounded.mean()), trials)
            for label, is_labeled, condition in (
                ("labeled", tested.labeled, tested.significant & rare),
                ("states possible misses", tested.stated, tested.significant & ~rare),
            ):
                if condition.sum() >= _FEWEST:
                    yield CoverageCell(label, f"{name}: false verdict", n, float(is_labeled[condition].mean()), trials)
    for name in ORDINARY:
        for n in SIZES:
            tested = true_verdicts(name, n, trials)
            yield CoverageCell(
                "randomization", f"{name}: true difference found", n, _rate(tested.significant & tested.right), trials
            )
            yield CoverageCell(
                "bounded", f"{name}: true difference found", n, _rate(tested.bounded & tested.right), trials
            )
            if tested.significant.sum() >= _FEWEST:
                yield CoverageCell(
                    "labeled", f"{name}: true difference found", n, _rate(tested.labeled[tested.significant]), trials
                )


def _rate(flags: Bools) -> float:
    return float(flags.mean())
