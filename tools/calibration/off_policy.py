"""Coverage of 95% off-policy intervals of another ranker's clicks per page, for n users.

Pages have two ranks filled independently from five documents, or three ranks with a permutation of four. Click rates
differ between users. *Equal users* have three pages each; *heavy-tailed* users have 1 to 100 (Pareto 1.5), and active
users click more. *Rare clicks* are 1 in 25 of the usual ones. *Large weights*: the other ranker prefers documents that
are shown on 4% of the pages. *Never shown*: a document with 15% of the other ranker's first rank is never shown.
*None*: share of logs without an interval, over all methods.
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from calibration import CoverageCell
from judged.online.clicks.importance_weighting import ESTIMATORS, LoggedPages, TargetPolicy, importance_weights
from judged.online.clicks.off_policy_estimates import PageEstimates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.online.clicks.off_policy_estimates import OffPolicy

SIZES = (60, 200, 600)
DOCS = 5
RATES = np.array([[0.5, 0.4, 0.3, 0.2, 0.1], [0.3, 0.25, 0.2, 0.1, 0.05], [0.2, 0.15, 0.1, 0.05, 0.02]])
UNIFORM, RISING, FALLING = np.full(5, 0.2), np.array([0.1, 0.1, 0.15, 0.25, 0.4]), np.array([0.4, 0.25, 0.15, 0.1, 0.1])
RARE_FIRST = np.array([0.04, 0.1, 0.16, 0.3, 0.4])
LISTS = np.array(list(permutations(range(4), 3)))
INDEPENDENT = {  # logged and other probabilities of documents at both ranks, and a factor for click rates
    "equal users": (UNIFORM, RISING, 1.0),
    "heavy-tailed users": (UNIFORM, RISING, 1.0),
    "rare clicks": (UNIFORM, RISING, 0.04),
    "large weights": (RARE_FIRST, FALLING, 1.0),
    "never shown": (np.array([0.0, 0.25, 0.25, 0.25, 0.25]), np.array([0.15, 0.25, 0.3, 0.2, 0.1]), 1.0),
}
SITUATIONS = (*INDEPENDENT, "permutations")


def simulate(situation: str, users: int, rng: np.random.Generator) -> tuple[list[OffPolicy], float]:
    """Return the estimates of one log, and the true value."""
    num_pages = np.minimum(np.ceil(rng.random(users) ** (-1 / 1.5)), 100).astype(np.int64)
    num_pages = num_pages if situation == "heavy-tailed users" else np.full(users, 3)
    user = np.repeat(np.arange(users), num_pages)
    pages, click_tendency = len(user), rng.beta(8, 2, users)
    if situation == "heavy-tailed users":
        click_tendency = np.minimum(click_tendency, 1 - 0.6 / num_pages**0.5)
    mean = float((click_tendency * num_pages).sum() / num_pages.sum()) if situation == "heavy-tailed users" else 0.8
    if situation == "heavy-tailed users":
        mean = _heavy_liking()
    convention, target, click_factor = "independent", None, 1.0
    if situation == "permutations":
        convention, documents = "conditional", LISTS[rng.integers(0, len(LISTS), pages)]
        propensity = np.tile(1 / (4 - np.arange(3.0)), (pages, 1))
        top = np.arange(3)
        target = TargetPolicy("run", top * (DOCS + 1) + top, np.ones(3), DOCS + 1, is_run=True)
        truth = float(RATES[top, top].sum())
    else:
        logged, target_shares, click_factor = INDEPENDENT[situation]
        documents = rng.choice(DOCS, (pages, 2), p=logged)
        propensity = logged[documents]
        cells = (np.arange(2)[:, None] * (DOCS + 1) + np.arange(DOCS)).ravel()
        target = TargetPolicy("policy", cells, np.tile(target_shares, 2), DOCS + 1, is_run=False)
        truth = float((RATES[:2] @ target_shares).sum())
    ranks = documents.shape[1]
    click_probability = click_factor * RATES[np.arange(ranks), documents] * click_tendency[user][:, None]
    clicked = (rng.random(documents.shape) < click_probability).astype(np.float64)
    page, rank = np.divmod(np.arange(pages * ranks), ranks)
    logged_pages = LoggedPages(
        np.zeros(len(page), dtype=np.int64),
        page,
        user,
        rank,
        documents.ravel(),
        clicked.ravel(),
        propensity.ravel(),
        0,
        0,
    )
    estimates = PageEstimates(logged_pages, target, importance_weights(logged_pages, target, ranks), 10.0, 0.95)
    rows = [
        estimates.estimate(name, estimates.refusal_reason(name, convention, has_list_probabilities=True))
        for name in ESTIMATORS
    ]
    return rows, truth * mean * click_factor


def _heavy_liking(size: int = 2_000_000) -> float:
    """Return the mean click tendency over the pages of heavy-tailed users."""
    if "heavy" not in _MEANS:
        rng = np.random.default_rng(99)
        num_pages = np.minimum(np.ceil(rng.random(size) ** (-1 / 1.5)), 100)
        click_tendency = np.minimum(rng.beta(8, 2, size), 1 - 0.6 / num_pages**0.5)
        _MEANS["heavy"] = float((click_tendency * num_pages).sum() / num_pages.sum())
    return _MEANS["heavy"]


_MEANS: dict[str, float] = {}


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield coverage of each estimator that has an interval in at least a quarter of the logs."""
    for situation in SITUATIONS:
        for users in SIZES:
            rng = np.random.default_rng([users, SITUATIONS.index(situation)])
            num_covered, num_intervals = dict.fromkeys(ESTIMATORS, 0), dict.fromkeys(ESTIMATORS, 0)
            for _ in range(trials):
                rows, truth = simulate(situation, users, rng)
                for row in rows:
                    if row.ci is not None:
                        num_intervals[row.estimator] += 1
                        num_covered[row.estimator] += row.ci[0] <= truth <= row.ci[1]
            for name, number in num_intervals.items():
                if number >= trials / 4:
                    yield CoverageCell(name, situation, users, num_covered[name] / number, trials)
            yield CoverageCell(
                "none", situation, users, 1 - sum(num_intervals.values()) / trials / len(ESTIMATORS), trials
            )
