"""Coverage of 95% intervals of the true mean of the selected best system, and bias.

A score is a system mean, a topic effect, and normal noise. *Equal*: all system means are the same; *close*: they vary
by a seventh of the noise. The topic effect is 0, varies as much as the noise (*medium*), or six times as much
(*large*). *choose* uses 20 repetitions of 10 folds and nested cross-validation for the error. *select* uses one
repetition and Student's interval. *Remaining bias*: bias of `choose` relative to that of the naive mean, known to 5
points. *May be best*: share of samples in which the best system is among those that may be best, at alpha = 0.05.
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
TOPICS = {"no topic effect": 0.0, "medium topic effect": 1.0, "large topic effect": 6.0}
_PAIRED = 12  # systems
SPREADS = {"equal": 0.0, "close": 1 / 7}


class SelectionRates(NamedTuple):
    """Bias and coverage of the estimated mean of the selected system."""

    naive_bias: float  # of the naive mean
    bias: float  # of `choose`
    select_bias: float
    coverage: float  # of the interval of `choose`
    select_coverage: float  # of Student's interval of `select`
    best_included: float  # how often the truly best system may be the best; NaN if this would take long


def selection_rates(systems: int, spread: float, topic_effect: float, n: int, trials: int) -> SelectionRates:
    """Select the best system in each trial. Errors exclude the topic effect, which all systems share."""
    rng = np.random.default_rng([21, systems, n])
    trial_rows: list[tuple[float, ...]] = []
    for seed in range(trials):
        truth = spread * rng.normal(size=systems)
        values = truth[:, None] + topic_effect * rng.normal(size=n) + rng.normal(size=(systems, n))
        chosen_system, selected_system = choose(values, seed=seed), select(values, seed=seed)
        true_mean = float(truth[chosen_system.best])
        low, high = chosen_system.interval or (-math.inf, math.inf)
        select_low, select_high = mean_intervals(selected_system.values[None], IntervalMethod("t"))[0]
        expected = true_mean + float(values.mean() - truth.mean())
        errors = (chosen_system.naive - expected, chosen_system.honest - expected, selected_system.honest - expected)
        is_included = may_be_best(values, 0.05, "t")[int(truth.argmax())] if systems <= _PAIRED else math.nan
        trial_rows.append((*errors, low <= true_mean <= high, select_low <= true_mean <= select_high, is_included))
    return SelectionRates(*np.mean(trial_rows, axis=0).tolist())


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield coverage, remaining bias, and how often the truly best system may be the best."""
    for n in SIZES:
        for systems in SYSTEMS:
            for spread_name, spread in SPREADS.items():
                for topic_name, topic_effect in TOPICS.items():
                    rates, situation = (
                        selection_rates(systems, spread, topic_effect, n, trials),
                        f"{systems} {spread_name}",
                    )
                    yield CoverageCell("choose", f"{situation}, {topic_name}", n, rates.coverage, trials)
                    yield CoverageCell("select", f"{situation}, {topic_name}", n, rates.select_coverage, trials)
                yield CoverageCell("remaining bias", situation, n, abs(rates.bias) / rates.naive_bias, trials)
                if not math.isnan(rates.best_included):
                    yield CoverageCell("may be best", situation, n, rates.best_included, trials)
