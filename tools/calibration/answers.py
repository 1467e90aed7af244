"""Coverage and error rates of statistics of RAG answers.

*Share*: coverage for the share of supported sentences, or of evidence that passes a step. *Weakest step* tests two
steps with equal loss, and *systems* a step of two equal systems: 5% is the maximum. *Bias*: coverage for a judge's
error. *Believed*, *not believed*: rates at which a judge whose bias equals the margin is accepted or rejected; 2.5% is
the maximum of each. *Topic in sample*: the sample contains a topic on which the judge errs. *Own share*: coverage for
the variance between repeated answers of a judge. Answers have 1 to 8 sentences with different rates of support.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from calibration import CoverageCell
from judged.pipelines.rag.judge_bias import judge_bias
from judged.pipelines.rag.judge_error import JudgeVariance
from judged.pipelines.rag.steps import Share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SIZES = (3, 6, 10, 25, 50, 100)
LABELED = (25, 50, 100)
MARGIN = 0.05
Sample = tuple[np.ndarray, np.ndarray]


def _answers(rng: np.random.Generator, n: int, share: float, spread: float, sizes: np.ndarray) -> Sample:
    support = rng.beta(share * spread, (1 - share) * spread, n)
    return rng.binomial(sizes, support).astype(np.float64), sizes.astype(np.float64)


SHARES: dict[str, tuple[float, Callable[[np.random.Generator, int], Sample]]] = {
    "similar answers": (0.7, lambda rng, n: _answers(rng, n, 0.7, 10.0, rng.integers(1, 9, n))),
    "heavy-tailed lengths": (
        0.7, lambda rng, n: _answers(rng, n, 0.7, 10.0, np.ceil(rng.lognormal(1, 1, n)).astype(np.int64))
    ),
    "all-or-nothing answers": (0.7, lambda rng, n: _answers(rng, n, 0.7, 0.2, rng.integers(1, 9, n))),
    "nearly all supported": (0.97, lambda rng, n: _answers(rng, n, 0.97, 10.0, rng.integers(1, 9, n))),
}  # fmt: skip
ERRORS: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "normal": lambda rng, size: 0.15 * rng.normal(size=size),
    "heavy tails: t with 3 degrees": lambda rng, size: 0.1 * rng.standard_t(3, size),
    "wrong on a third of the topics": lambda rng, size: 0.3 * ((rng.random(size) < 1 / 3) - 1 / 3),
    "steps of a quarter": lambda rng, size: rng.choice([-0.25, 0.0, 0.25], size),
}
COLLAPSES = {"0 instead of 1 on 8% of the topics": 0.08, "0 instead of 1 on 5% of the topics": 0.05}
NOISE: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "heavy tails: Laplace": lambda rng, size: rng.laplace(size=size) / math.sqrt(2),
    "verdicts: mean of 8": lambda rng, size: (rng.binomial(8, 0.5, size) - 4) / math.sqrt(2),
}


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield coverage and error rates."""
    for name, (share, draw) in SHARES.items():
        for n in SIZES:
            yield CoverageCell("share", name, n, share_coverage(share, draw, n, trials), trials)
        for n in (6, 25):
            num_trials = min(trials, 400)
            steps, systems = difference_rates(draw, n, num_trials)
            yield CoverageCell("weakest step", name, n, steps, num_trials)
            yield CoverageCell("systems", name, n, systems, num_trials)
    yield from _verdicts(trials)
    for name, noise in NOISE.items():
        for n in (12, 25, 50, 100):
            yield CoverageCell("own share", name, n, variance_share_coverage(noise, n, trials), trials)


def _verdicts(trials: int) -> Iterator[CoverageCell]:
    for n in LABELED:
        for name, draw in ERRORS.items():
            rates = zip(("bias", "believed", "not believed"), bias_rates(draw, n, trials), strict=True)
            yield from (CoverageCell(method, name, n, rate, trials) for method, rate in rates)
        for name, share in COLLAPSES.items():
            methods = ("believed", "believed, topic in sample", "believed, topic in sample, no label")
            cells = zip(methods, collapse_rates(share, n, trials), strict=True)
            yield from (CoverageCell(method, name, n, rate, trials) for method, rate in cells)


def share_coverage(share: float, draw: Callable[[np.random.Generator, int], Sample], n: int, trials: int) -> float:
    """Return the coverage of the interval of a share, over samples that have an interval."""
    rng, is_covered = np.random.default_rng([24, n]), list[bool]()
    for _ in range(trials):
        ci = Share(*draw(rng, n), 0.95).ci
        if ci is not None:
            is_covered.append(ci[0] <= share <= ci[1])
    return float(np.mean(is_covered)) if is_covered else math.nan


def difference_rates(draw: Callable[[np.random.Generator, int], Sample], n: int, trials: int) -> tuple[float, float]:
    """Return false positive rates for two equal steps, and for two systems that share half of their answers."""
    rng, steps, systems = np.random.default_rng([27, n]), 0, 0
    for _ in range(trials):
        first, second = (Share(*draw(rng, n), 0.95) for _ in range(2))
        steps += second.minus(first).p <= 0.05
        is_shared = rng.random(n) < 0.5
        other = Share(
            np.where(is_shared, first.passed, second.passed), np.where(is_shared, first.totals, second.totals), 0.95
        )
        systems += other.minus(first).p <= 0.05
    return steps / trials, systems / trials


def bias_rates(
    draw: Callable[[np.random.Generator, tuple[int, int]], np.ndarray], n: int, trials: int
) -> tuple[float, ...]:
    """Return the coverage of the bias, and how often a judge whose bias equals the margin is (not) believed."""
    errors, unlabeled = MARGIN + draw(np.random.default_rng([25, n]), (trials, n)), np.zeros(0)
    biases = [judge_bias(np.zeros(n), row, unlabeled, margin=MARGIN) for row in errors]
    is_covered = [bias.ci[0] <= MARGIN <= bias.ci[1] for bias in biases if bias.ci is not None]
    verdicts = [bias.within_margin for bias in biases]
    return float(np.mean(is_covered)), verdicts.count("yes") / trials, verdicts.count("no") / trials


def collapse_rates(share: float, n: int, trials: int) -> tuple[float, float, float]:
    """Return how often a judge is believed that returns 0 instead of 1 on a share of the topics.

    The rates are shares of all samples: any, those with such a topic, and of these the ones without the label
    "sensitive".
    """
    rng, outcomes = np.random.default_rng([28, n]), list[tuple[bool, bool, bool]]()
    for _ in range(trials):
        is_rare, people = rng.random(5 * n) < share, rng.beta(2, 2, 5 * n)
        model = np.where(is_rare, 0.0, np.clip(people + rng.normal(0, 0.02, 5 * n), 0, 1))
        bias = judge_bias(np.where(is_rare, 1.0, people)[:n], model[:n], model[n:], margin=MARGIN)
        is_believed = bias.within_margin == "yes"
        is_in_sample = bool(is_rare[:n].any())
        outcomes.append(
            (is_believed, is_believed and is_in_sample, is_believed and is_in_sample and not bias.few_topics)
        )
    believed, is_in_sample, unlabeled = np.mean(outcomes, axis=0).tolist()
    return believed, is_in_sample, unlabeled


def variance_share_coverage(
    noise: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray], n: int, trials: int
) -> float:
    """Return the coverage of the share of the judge's own variance: 1 of a total of 4, for one system."""
    rng, is_covered = np.random.default_rng([26, n]), []
    for _ in range(trials):
        first, second = noise(rng, (1, n)), noise(rng, (1, n))
        scores = rng.normal(size=200) * 2
        estimate = JudgeVariance.of(first, second, scores)
        if estimate.share_ci is not None:
            is_covered.append(estimate.share_ci[0] <= 1 / scores.var(ddof=1) <= estimate.share_ci[1])
    return float(np.mean(is_covered)) if is_covered else math.nan
