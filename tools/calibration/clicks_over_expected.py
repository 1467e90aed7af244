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
LOOKS = np.array([1.0, 0.7, 0.5, 0.35, 0.25])
DOCS, RANKERS, GROUPS = 10, 3, 30


def simulate(situation: str, pages: int, rng: np.random.Generator) -> tuple[int, int]:
    """Return how many intervals of one log hold their true ratio, and how many there are."""
    queries = 2 if situation == "few pairs" else 40
    worth = np.minimum(rng.gamma(1.5, 0.12, (queries, DOCS)), 0.95)
    worth *= 0.1 if situation == "rare clicks" else 1.0
    if situation == "navigational":
        worth[:, 0] = 0.9
    many = np.full(queries, float(pages))
    if situation == "heavy-tailed queries":
        many = np.minimum(rng.pareto(1.2, queries) * pages / 5 + 1, 50.0 * pages)
    shown = np.zeros((queries, DOCS, len(LOOKS)), dtype=np.int64)
    for _ in range(RANKERS):
        order = np.argsort(-(worth + 0.15 * rng.standard_normal(worth.shape)), axis=1)[:, : len(LOOKS)]
        for rank in range(len(LOOKS)):
            shown[np.arange(queries), order[:, rank], rank] += rng.poisson(many / RANKERS) + 1
    chance = worth[:, :, None] * LOOKS
    if situation != "estimated propensities":
        clicked = rng.binomial(shown, chance)
        curve = replicates = None
    else:
        group = rng.multinomial(shown, np.full(GROUPS, 1 / GROUPS)).transpose(3, 0, 1, 2)
        clicks = rng.binomial(group, chance)
        clicked = clicks.sum(axis=0)
        flat = [column.reshape(-1, len(LOOKS)).astype(np.float64) for column in (shown, clicked)]
        curve = np.exp(estimate_all_pairs(*flat).log_propensity)
        left = ((shown - g, clicked - c) for g, c in zip(group, clicks, strict=True))
        replicates = np.exp(
            np.stack(
                [
                    estimate_all_pairs(*(x.reshape(-1, len(LOOKS)).astype(np.float64) for x in two)).log_propensity
                    for two in left
                ]
            )
        )
        if not np.isfinite(replicates).all():
            return 0, 0
    cell, rank = np.nonzero(shown.reshape(-1, len(LOOKS)))
    seen, pair = np.unique(cell, return_inverse=True)
    names = [str(at) for at in range(len(seen))]
    none = np.zeros(len(pair), dtype=np.int64)
    cells = ImpressionCounts(
        pairs=pa.table({"query": names, "doc_id": names}), pair=pair, rank=rank + 1, last_click=none, stratum=none,
        strata=("",), impressions=shown.reshape(-1, len(LOOKS))[cell, rank],
        clicks=clicked.reshape(-1, len(LOOKS))[cell, rank], by="query",
    )  # fmt: skip
    if not clicked.sum():
        return 0, 0
    made = compute_coec(cells, propensities=curve, replicates=replicates)
    mean = shown * chance
    if curve is None:
        rate = mean.sum(axis=(0, 1)) / shown.sum(axis=(0, 1))
        expected = (shown * rate).sum(axis=2).ravel()
    else:
        expected = (shown * LOOKS).sum(axis=2).ravel() * mean.sum() / (shown * LOOKS).sum()
    true = mean.sum(axis=2).ravel()[seen] / expected[seen]
    return int(((made.ratios.low <= true) & (true <= made.ratios.high)).sum()), len(true)


def measure(trials: int) -> Iterator[CoverageCell]:
    """Measure how often intervals hold, over all pairs of all logs."""
    for at, situation in enumerate(SITUATIONS):
        for pages in SIZES:
            rng, sums = np.random.default_rng([pages, at]), np.zeros(2)
            for _ in range(trials):
                sums += simulate(situation, pages, rng)
            yield CoverageCell("COEC", situation, pages, float(sums[0] / sums[1]), trials)
