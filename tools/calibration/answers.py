"""Coverage and error rates of statistics of RAG answers.

*Share*: coverage for the share of supported sentences, or of evidence that passes a step. *Weakest step* tests two
steps with equal loss, and *systems* a step of two equal systems: 5% is the maximum. *Bias*: coverage for a judge's
error. *Believed*, *not believed*: rates at which a judge whose bias equals the margin is accepted or rejected; 2.5% is
the maximum of each. *Such a topic seen*: the sample contains a topic on which the judge errs. *Own share*: coverage for
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
Drawn = tuple[np.ndarray, np.ndarray]


def _answers(rng: np.random.Generator, n: int, share: float, spread: float, sizes: np.ndarray) -> Drawn:
    chance = rng.beta(share * spread, (1 - share) * spread, n)
    return rng.binomial(sizes, chance).astype(np.float64), sizes.astype(np.float64)


SHARES: dict[str, tuple[float, Callable[[np.random.Generator, int], Drawn]]] = {
    "sentences alike": (0.7, lambda rng, n: _answers(rng, n, 0.7, 10.0, rng.integers(1, 9, n))),
    "heavy-tailed lengths": (
        0.7, lambda rng, n: _answers(rng, n, 0.7, 10.0, np.ceil(rng.lognormal(1, 1, n)).astype(np.int64))
    ),
    "answers wholly right or wrong": (0.7, lambda rng, n: _answers(rng, n, 0.7, 0.2, rng.integers(1, 9, n))),
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
            some = min(trials, 400)
            steps, systems = told_apart(draw, n, some)
            yield CoverageCell("weakest step", name, n, steps, some)
            yield CoverageCell("systems", name, n, systems, some)
    yield from _verdicts(trials)
    for name, noise in NOISE.items():
        for n in (12, 25, 50, 100):
            yield CoverageCell("own share", name, n, of_repeats(noise, n, trials), trials)


def _verdicts(trials: int) -> Iterator[CoverageCell]:
    for n in LABELED:
        for name, draw in ERRORS.items():
            rates = zip(("bias", "believed", "not believed"), of_errors(draw, n, trials), strict=True)
            yield from (CoverageCell(method, name, n, rate, trials) for method, rate in rates)
        for name, share in COLLAPSES.items():
            methods = ("believed", "believed, such a topic seen", "believed, such a topic seen, no label")
            found = zip(methods, of_collapses(share, n, trials), strict=True)
            yield from (CoverageCell(method, name, n, rate, trials) for method, rate in found)


def share_coverage(share: float, draw: Callable[[np.random.Generator, int], Drawn], n: int, trials: int) -> float:
    """Return how often the interval of a share holds it, of the samples that have one."""
    rng, held = np.random.default_rng([24, n]), list[bool]()
    for _ in range(trials):
        ci = Share(*draw(rng, n), 0.95).ci
        if ci is not None:
            held.append(ci[0] <= share <= ci[1])
    return float(np.mean(held)) if held else math.nan


def told_apart(draw: Callable[[np.random.Generator, int], Drawn], n: int, trials: int) -> tuple[float, float]:
    """Return how often two steps, and two systems with half of their answers in common, are told apart."""
    rng, steps, systems = np.random.default_rng([27, n]), 0, 0
    for _ in range(trials):
        one, two = (Share(*draw(rng, n), 0.95) for _ in range(2))
        steps += two.minus(one).p <= 0.05
        same = rng.random(n) < 0.5
        other = Share(np.where(same, one.passed, two.passed), np.where(same, one.totals, two.totals), 0.95)
        systems += other.minus(one).p <= 0.05
    return steps / trials, systems / trials


def of_errors(
    draw: Callable[[np.random.Generator, tuple[int, int]], np.ndarray], n: int, trials: int
) -> tuple[float, ...]:
    """Return the coverage of the bias, and how often a judge is (not) believed whose bias is exactly the margin."""
    errors, none = MARGIN + draw(np.random.default_rng([25, n]), (trials, n)), np.zeros(0)
    made = [judge_bias(np.zeros(n), row, none, margin=MARGIN) for row in errors]
    held = [bias.ci[0] <= MARGIN <= bias.ci[1] for bias in made if bias.ci is not None]
    said = [bias.within_margin for bias in made]
    return float(np.mean(held)), said.count("yes") / trials, said.count("no") / trials


def of_collapses(share: float, n: int, trials: int) -> tuple[float, float, float]:
    """Return how often a judge that calls a share of the topics 0 instead of 1 is believed.

    That is, of all samples; of those that hold such a topic; and of these without the label "sensitive".
    """
    rng, said = np.random.default_rng([28, n]), list[tuple[bool, bool, bool]]()
    for _ in range(trials):
        rare, people = rng.random(5 * n) < share, rng.beta(2, 2, 5 * n)
        model = np.where(rare, 0.0, np.clip(people + rng.normal(0, 0.02, 5 * n), 0, 1))
        made = judge_bias(np.where(rare, 1.0, people)[:n], model[:n], model[n:], margin=MARGIN)
        yes = made.within_margin == "yes"
        held = bool(rare[:n].any())
        said.append((yes, yes and held, yes and held and not made.few_topics))
    believed, held, unlabeled = np.mean(said, axis=0).tolist()
    return believed, held, unlabeled


def of_repeats(noise: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray], n: int, trials: int) -> float:
    """Return how often the interval of the judge's own share holds it: a variance of 1 of a total of 4, one system."""
    rng, held = np.random.default_rng([26, n]), []
    for _ in range(trials):
        first, again = noise(rng, (1, n)), noise(rng, (1, n))
        scores = rng.normal(size=200) * 2
        made = JudgeVariance.of(first, again, scores)
        if made.share_ci is not None:
            held.append(made.share_ci[0] <= 1 / scores.var(ddof=1) <= made.share_ci[1])
    return float(np.mean(held)) if held else math.nan
