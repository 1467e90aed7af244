"""Coverage of 95% intervals of the value of a ranking by inverse propensities, for n users.

Three rankers order the five documents of each of 30 queries. Good and bad rankings are scored by DCG@5 and P@3 (*IPS*),
by the share of clicks (*self-normalized*), and by their *difference*. Propensities come from the same log; intervals
are a jackknife over users through both steps. *Equal users* have ten pages; *heavy-tailed users* have 2 to 200 (Pareto
1.2). *Few shared documents*: the rankers largely agree, so ranks are hard to compare.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from calibration import CoverageCell
from judged.data.run import Run
from judged.online.clicks.counterfactual import IpsStratum, compute_ips
from judged.online.clicks.examination import jackknife_propensities
from judged.online.clicks.impression_counts import PagePatterns
from judged.scoring.evaluation.inputs import measures_of

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES = (30, 100, 300)
SITUATIONS = {"equal users": 0.15, "heavy-tailed users": 0.15, "few shared documents": 0.05}  # errors of rankers
QUERIES, DOCS = 30, 5
LOOKS = np.array([1.0, 0.7, 0.5, 0.35, 0.25])
MEASURES = measures_of(["DCG@5", "P@3"])
NAMES = ("IPS", "self-normalized", "difference")


def simulate(situation: str, users: int, rng: np.random.Generator) -> Iterator[tuple[str, bool]]:
    """Yield which intervals of one log hold the truth; none if ranks cannot be compared."""
    worth = rng.beta(1.0, 2.0, (QUERIES, DOCS))
    rankers = np.argsort(-(worth + SITUATIONS[situation] * rng.standard_normal((3, QUERIES, DOCS))), axis=2)
    many = np.full(users, 10)
    if situation == "heavy-tailed users":
        many = np.minimum(np.ceil(2 * rng.random(users) ** (-1 / 1.2)), 200).astype(np.int64)
    unit = np.repeat(np.arange(users), many)
    query, pages = rng.integers(QUERIES, size=len(unit)), np.arange(len(unit))
    lists = rankers[rng.integers(3, size=len(unit)), query]
    clicked = rng.random(lists.shape) < worth[query[:, None], lists] * LOOKS
    names = [f"q{at:02}" for at in range(QUERIES)], [f"d{at:02}" for at in range(DOCS)]
    pairs = pa.table({"query": np.repeat(names[0], DOCS).tolist(), "doc_id": names[1] * QUERIES})
    patterns = PagePatterns(pairs, query[:, None] * DOCS + lists, clicked, pages, unit, users, "query")
    replicates = jackknife_propensities(patterns)
    curve = np.exp(replicates.full.log_propensity)
    if not np.isfinite(curve).all():
        return
    orders = {"good": np.argsort(-(worth + 0.4 * rng.standard_normal(worth.shape))), "bad": np.argsort(worth)}
    runs = [
        Run.of({q: [names[1][d] for d in row] for q, row in zip(names[0], order.tolist(), strict=True)}, name=name)
        for name, order in orders.items()
    ]
    part = IpsStratum(patterns, curve, np.exp(replicates.leave_one_out), replicates.group)
    discount, first = {"DCG@5": 1 / np.log2(np.arange(5) + 2), "P@3": np.full(3, 1 / 3)}, dict[str, float]()
    for row in compute_ips([part], runs, MEASURES).rows:
        weight = discount[row.measure]
        true = float((np.take_along_axis(worth, orders[row.run], 1)[:, : len(weight)] @ weight).mean())
        share = true / weight[0] / worth.sum(axis=1).mean()
        gap = true - first.setdefault(row.measure, true)
        limits = (row.ci, row.normalized_ci, row.difference_ci if row.run == "bad" else None)
        for name, value, ci in zip(NAMES, (true, share, gap), limits, strict=True):
            if ci is not None:
                yield name, ci[0] <= value <= ci[1]


def measure(trials: int) -> Iterator[CoverageCell]:
    """Measure how often intervals hold, of propensities estimated from the log."""
    for at, situation in enumerate(SITUATIONS):
        for users in SIZES:
            rng, sums = np.random.default_rng([users, at]), dict[str, list[bool]]()
            for _ in range(trials):
                for name, held in simulate(situation, users, rng):
                    sums.setdefault(name, []).append(held)
            for name, held in sums.items():
                yield CoverageCell(name, situation, users, float(np.mean(held)), trials)
