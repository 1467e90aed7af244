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
    """Draw how many lists users click on."""
    return np.minimum(np.ceil(2 * rng.random(users) ** (-1 / tail)), most).astype(np.int64)


@cache
def _balance() -> float:
    """Return how far the other users lean, for each unit that active ones do, so that the preference is 0."""
    many = many_lists(np.random.default_rng(99), 2_000_000, 1.5, 200)
    return float(many[many > 10].sum() / many[many <= 10].sum())


def draw(situation: str, users: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Return lists by user, by how much each leans to the other ranker, and the share of lists that are decided."""
    even = np.zeros(users)
    if situation == "few ties broken":
        return np.full(users, 2), even, 0.03
    if situation == "one user":
        many = np.full(users, 3)
        many[0], even[0] = 3000, rng.choice([-0.1, 0.1])
        return many, even, 0.7
    if situation == "active against the rest":
        many = many_lists(rng, users, 1.5, 200)
        return many, np.where(many > 10, 0.2, -0.2 * _balance()), 0.7
    heavy = situation.startswith("heavy")
    many = many_lists(rng, users, 1.2, 3000) if heavy else many_lists(rng, users, 1.8, 60)
    if situation == "heavy tail, skewed":
        return many, np.where(rng.random(users) < _SKEWED, 0.4, -0.4 * _SKEWED / (1 - _SKEWED)), 0.7
    shift = 0.1 if situation == "a preference" else 0.0
    return many, np.clip(shift + rng.normal(0, 0.25 if heavy else 0.15, users), shift - 0.4, shift + 0.4), 0.7


def outcomes(situation: str, users: int, rng: np.random.Generator) -> Outcomes:
    """Simulate clicked lists."""
    many, leaning, decided = draw(situation, users, rng)
    unit = np.repeat(np.arange(users), many)
    tied, win = rng.random(len(unit)) >= decided, rng.random(len(unit)) < 0.5 + leaning[unit]
    wins, losses = (win & ~tied).astype(np.float64), (~win & ~tied).astype(np.float64)
    return Outcomes(unit, np.zeros(len(unit), dtype=np.int64), wins, losses, wins - losses, ("",))


def measure(trials: int) -> Iterator[CoverageCell]:
    """Measure both intervals; a situation in which fewer than a twentieth of the tests have one shows that alone."""
    for situation in SITUATIONS:
        truth = 0.7 * 0.1 if situation == "a preference" else 0.0
        for users in SIZES:
            rng, held, given = np.random.default_rng([users, SITUATIONS.index(situation)]), [0, 0], 0
            for _ in range(trials):
                made = outcomes(situation, users, rng)
                rows = [estimate_preference(made, None, looks) for looks in (ONCE, ANY_DAY)]
                if rows[0].reason is None:
                    given += 1
                    for at, row in enumerate(rows):
                        held[at] += row.low <= truth <= row.high
            if given >= trials / 20:
                yield CoverageCell("one day", situation, users, held[0] / given, trials)
                yield CoverageCell("any day", situation, users, held[1] / given, trials)
            yield CoverageCell("none", situation, users, 1 - given / trials, trials)
