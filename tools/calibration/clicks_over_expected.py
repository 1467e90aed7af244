"""Coverage of 95% intervals of the ratio of clicks to expected clicks.

Three rankers show five of ten documents for 40 queries, with a mean of n pages a query. *Equal queries*: n pages each;
*heavy-tailed queries*: Pareto 1.2. *Rare clicks* are a tenth of the usual ones. *Navigational*: one document a query is
clicked in nine of ten examinations. *Few pairs*: two queries, so a pair is a large part of the data of its rank.
Expected clicks use click rates by rank, or *estimated propensities* from the same log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from calibration import CoverageCell
from judged.online.clicks.clicks_over_expected import compute_coec
from judged.online.clicks.examination import estimate_all_pairs
from judged.online.clicks.impression_counts import ImpressionCounts

if TYPE_CHECKING:
    from collections.abc import Iterator


SIZES = (10, 50, 250)
SITUATIONS = (
    "equal queries", "heavy-tailed queries", "rare clicks", "navigational", "few pairs", "estimated propensities"
)  # fmt: skip
PROPENSITIES = np.array([1.0, 0.7, 0.5, 0.35, 0.25])
DOCS, RANKERS, GROUPS = 10, 3, 30


def simulate(situation: str, pages: int, rng: np.random.Generator) -> tuple[int, int]:
    """Return the number of intervals of one log that contain the true ratio, and the number of intervals."""
    queries = 2 if situation == "few pairs" else 40
    relevance = np.minimum(rng.gamma(1.5, 0.12, (queries, DOCS)), 0.95)
    relevance *= 0.1 if situation == "rare clicks" else 1.0
    if situation == "navigational":
        relevance[:, 0] = 0.9
    page_counts = np.full(queries, float(pages))
    if situation == "heavy-tailed queries":
        page_counts = np.minimum(rng.pareto(1.2, queries) * pages / 5 + 1, 50.0 * pages)
    impressions = np.zeros((queries, DOCS, len(PROPENSITIES)), dtype=np.int64)
    for _ in range(RANKERS):
        order = np.argsort(-(relevance + 0.15 * rng.standard_normal(relevance.shape)), axis=1)[:, : len(PROPENSITIES)]
        for rank in range(len(PROPENSITIES)):
            impressions[np.arange(queries), order[:, rank], rank] += rng.poisson(page_counts / RANKERS) + 1
    click_rate = relevance[:, :, None] * PROPENSITIES
    if situation != "estimated propensities":
        clicked = rng.binomial(impressions, click_rate)
        curve = replicates = None
    else:
        group_impressions = rng.multinomial(impressions, np.full(GROUPS, 1 / GROUPS)).transpose(3, 0, 1, 2)
        group_clicks = rng.binomial(group_impressions, click_rate)
        clicked = group_clicks.sum(axis=0)
        flat = [column.reshape(-1, len(PROPENSITIES)).astype(np.float64) for column in (impressions, clicked)]
        curve = np.exp(estimate_all_pairs(*flat).log_propensity)
        replicate_counts = (
            (impressions - g, clicked - c) for g, c in zip(group_impressions, group_clicks, strict=True)
        )
        replicates = np.exp(
            np.stack(
                [
                    estimate_all_pairs(
                        *(x.reshape(-1, len(PROPENSITIES)).astype(np.float64) for x in counts)
                    ).log_propensity
                    for counts in replicate_counts
                ]
            )
        )
        if not np.isfinite(replicates).all():
            return 0, 0
    cell, rank = np.nonzero(impressions.reshape(-1, len(PROPENSITIES)))
    pair_cells, pair = np.unique(cell, return_inverse=True)
    names = [str(index) for index in range(len(pair_cells))]
    zeros = np.zeros(len(pair), dtype=np.int64)
    cells = ImpressionCounts(
        pairs=pa.table({"query": names, "doc_id": names}), pair=pair, rank=rank + 1, last_click=zeros, stratum=zeros,
        strata=("",), impressions=impressions.reshape(-1, len(PROPENSITIES))[cell, rank],
        clicks=clicked.reshape(-1, len(PROPENSITIES))[cell, rank], by="query",
    )  # fmt: skip
    if not clicked.sum():
        return 0, 0
    result = compute_coec(cells, propensities=curve, replicates=replicates)
    mean = impressions * click_rate
    if curve is None:
        rate = mean.sum(axis=(0, 1)) / impressions.sum(axis=(0, 1))
        expected = (impressions * rate).sum(axis=2).ravel()
    else:
        expected = (impressions * PROPENSITIES).sum(axis=2).ravel() * mean.sum() / (impressions * PROPENSITIES).sum()
    true_ratios = mean.sum(axis=2).ravel()[pair_cells] / expected[pair_cells]
    return int(((result.ratios.low <= true_ratios) & (true_ratios <= result.ratios.high)).sum()), len(true_ratios)


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield the coverage of intervals over all pairs of all logs."""
    for index, situation in enumerate(SITUATIONS):
        for pages in SIZES:
            rng, sums = np.random.default_rng([pages, index]), np.zeros(2)
            for _ in range(trials):
                sums += simulate(situation, pages, rng)
            yield CoverageCell("COEC", situation, pages, float(sums[0] / sums[1]), trials)
