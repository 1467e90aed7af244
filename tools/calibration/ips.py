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
PROPENSITIES = np.array([1.0, 0.7, 0.5, 0.35, 0.25])
MEASURES = measures_of(["DCG@5", "P@3"])
NAMES = ("IPS", "self-normalized", "difference")


def simulate(situation: str, users: int, rng: np.random.Generator) -> Iterator[tuple[str, bool]]:
    """Yield whether each interval of one log contains the true value. Yield nothing if ranks cannot be compared."""
    relevance = rng.beta(1.0, 2.0, (QUERIES, DOCS))
    rankers = np.argsort(-(relevance + SITUATIONS[situation] * rng.standard_normal((3, QUERIES, DOCS))), axis=2)
    page_counts = np.full(users, 10)
    if situation == "heavy-tailed users":
        page_counts = np.minimum(np.ceil(2 * rng.random(users) ** (-1 / 1.2)), 200).astype(np.int64)
    user = np.repeat(np.arange(users), page_counts)
    query, pages = rng.integers(QUERIES, size=len(user)), np.arange(len(user))
    lists = rankers[rng.integers(3, size=len(user)), query]
    clicked = rng.random(lists.shape) < relevance[query[:, None], lists] * PROPENSITIES
    names = [f"q{index:02}" for index in range(QUERIES)], [f"d{index:02}" for index in range(DOCS)]
    pairs = pa.table({"query": np.repeat(names[0], DOCS).tolist(), "doc_id": names[1] * QUERIES})
    patterns = PagePatterns(pairs, query[:, None] * DOCS + lists, clicked, pages, user, users, "query")
    replicates = jackknife_propensities(patterns)
    curve = np.exp(replicates.full.log_propensity)
    if not np.isfinite(curve).all():
        return
    orders = {
        "good": np.argsort(-(relevance + 0.4 * rng.standard_normal(relevance.shape))),
        "bad": np.argsort(relevance),
    }
    runs = [
        Run.of({q: [names[1][d] for d in row] for q, row in zip(names[0], order.tolist(), strict=True)}, name=name)
        for name, order in orders.items()
    ]
    stratum = IpsStratum(patterns, curve, np.exp(replicates.leave_one_out), replicates.group)
    discount, first_values = {"DCG@5": 1 / np.log2(np.arange(5) + 2), "P@3": np.full(3, 1 / 3)}, dict[str, float]()
    for row in compute_ips([stratum], runs, MEASURES).rows:
        weight = discount[row.measure]
        true_value = float((np.take_along_axis(relevance, orders[row.run], 1)[:, : len(weight)] @ weight).mean())
        share = true_value / weight[0] / relevance.sum(axis=1).mean()
        difference = true_value - first_values.setdefault(row.measure, true_value)
        limits = (row.ci, row.normalized_ci, row.difference_ci if row.run == "bad" else None)
        for name, value, ci in zip(NAMES, (true_value, share, difference), limits, strict=True):
            if ci is not None:
                yield name, ci[0] <= value <= ci[1]


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield coverage of intervals that use propensities estimated from the log."""
    for index, situation in enumerate(SITUATIONS):
        for users in SIZES:
            rng, coverage = np.random.default_rng([users, index]), dict[str, list[bool]]()
            for _ in range(trials):
                for name, is_covered in simulate(situation, users, rng):
                    coverage.setdefault(name, []).append(is_covered)
            for name, is_covered in coverage.items():
                yield CoverageCell(name, situation, users, float(np.mean(is_covered)), trials)
