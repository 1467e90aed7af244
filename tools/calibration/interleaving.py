"""Coverage of 95% intervals of the preference in interleaved lists.

Users click on 2 to 60 lists (Pareto 1.8) and slightly prefer either ranker (*mild*), or click on up to 3,000 lists
(Pareto 1.2, *heavy tail*). *Skewed*: 8% of the users strongly prefer one ranker, the others slightly the other.
*Active against the rest*: users with more than 10 of up to 200 lists prefer one ranker, the others the other. *One
user*: one has 3,000 lists, all others 3. *Few ties broken*: 3% of two lists each are decided. The true preference is 0,
except for *a preference*. *None*: share of tests without an interval. *Any day*: always-valid interval, last day.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from calibration import CoverageCell
from judged.online.ab_tests.differences import Inference
from judged.online.interleaving_analysis.analysis import estimate_preference
from judged.online.interleaving_analysis.credit import Outcomes

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES = (60, 200, 1000)
SITUATIONS = (
    "mild", "a preference", "heavy tail", "heavy tail, skewed", "active against the rest", "one user",
    "few ties broken",
)  # fmt: skip
_SKEWED = 0.08
ONCE, ANY_DAY = Inference(0.95, any_day=False), Inference(0.95, any_day=True, expected=1000)


def many_lists(rng: np.random.Generator, users: int, tail: float, most: int) -> np.ndarray:
    """Sample the number of lists that each user clicks on."""
    return np.minimum(np.ceil(2 * rng.random(users) ** (-1 / tail)), most).astype(np.int64)


@cache
def _balance() -> float:
    """Return the ratio of the other users' preference to that of active users so that the mean preference is 0."""
    num_lists = many_lists(np.random.default_rng(99), 2_000_000, 1.5, 200)
    return float(num_lists[num_lists > 10].sum() / num_lists[num_lists <= 10].sum())


def draw(situation: str, users: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Return each user's number of lists and preference for the other ranker, and the share of decided lists."""
    preferences = np.zeros(users)
    if situation == "few ties broken":
        return np.full(users, 2), preferences, 0.03
    if situation == "one user":
        num_lists = np.full(users, 3)
        num_lists[0], preferences[0] = 3000, rng.choice([-0.1, 0.1])
        return num_lists, preferences, 0.7
    if situation == "active against the rest":
        num_lists = many_lists(rng, users, 1.5, 200)
        return num_lists, np.where(num_lists > 10, 0.2, -0.2 * _balance()), 0.7
    heavy = situation.startswith("heavy")
    num_lists = many_lists(rng, users, 1.2, 3000) if heavy else many_lists(rng, users, 1.8, 60)
    if situation == "heavy tail, skewed":
        return num_lists, np.where(rng.random(users) < _SKEWED, 0.4, -0.4 * _SKEWED / (1 - _SKEWED)), 0.7
    shift = 0.1 if situation == "a preference" else 0.0
    return num_lists, np.clip(shift + rng.normal(0, 0.25 if heavy else 0.15, users), shift - 0.4, shift + 0.4), 0.7


def outcomes(situation: str, users: int, rng: np.random.Generator) -> Outcomes:
    """Simulate outcomes of clicked lists."""
    num_lists, preferences, decided_share = draw(situation, users, rng)
    user = np.repeat(np.arange(users), num_lists)
    is_tied, is_win = rng.random(len(user)) >= decided_share, rng.random(len(user)) < 0.5 + preferences[user]
    wins, losses = (is_win & ~is_tied).astype(np.float64), (~is_win & ~is_tied).astype(np.float64)
    return Outcomes(user, np.zeros(len(user), dtype=np.int64), wins, losses, wins - losses, ("",))


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield coverage of both intervals if at least 5% of the tests have one, and the share without an interval."""
    for situation in SITUATIONS:
        truth = 0.7 * 0.1 if situation == "a preference" else 0.0
        for users in SIZES:
            rng, num_covered, num_intervals = np.random.default_rng([users, SITUATIONS.index(situation)]), [0, 0], 0
            for _ in range(trials):
                trial_outcomes = outcomes(situation, users, rng)
                rows = [estimate_preference(trial_outcomes, None, inference) for inference in (ONCE, ANY_DAY)]
                if rows[0].reason is None:
                    num_intervals += 1
                    for i, row in enumerate(rows):
                        num_covered[i] += row.low <= truth <= row.high
            if num_intervals >= trials / 20:
                yield CoverageCell("one day", situation, users, num_covered[0] / num_intervals, trials)
                yield CoverageCell("any day", situation, users, num_covered[1] / num_intervals, trials)
            yield CoverageCell("none", situation, users, 1 - num_intervals / trials, trials)
