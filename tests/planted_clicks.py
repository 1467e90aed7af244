"""Simulated clicks of a position-based model, as counts or page patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from judged.online.clicks import ImpressionCounts, PagePatterns

if TYPE_CHECKING:
    from judged.results.types import Floats, Ints

EXAMINED = np.array([1.0, 0.7, 0.5, 0.38, 0.3, 0.25, 0.21, 0.18, 0.16, 0.15])


@dataclass(frozen=True)
class RankedLists:
    attractive: Floats  # (Q, D)
    lists: Ints  # (L, K): documents by rank
    query: Ints  # (L,)


def pair_table(n_queries: int, n_documents: int) -> pa.Table:
    names = [f"q{i:04}" for i in range(n_queries)], [f"d{i:02}" for i in range(n_documents)]
    return pa.table({"query": np.repeat(names[0], n_documents).tolist(), "doc_id": names[1] * n_queries})


def rank_documents(
    rng: np.random.Generator, queries: int, *, rankers: int = 3, noise: float = 0.15, attractive: Floats | None = None
) -> RankedLists:
    """Rank the ten documents of each query by attractiveness plus the noise of each ranker."""
    attractiveness = rng.beta(1.0, 2.0, (queries, len(EXAMINED))) if attractive is None else attractive
    noisy = attractiveness + noise * rng.standard_normal((rankers, *attractiveness.shape))
    lists = np.argsort(-noisy, axis=2, kind="stable")
    return RankedLists(attractiveness, lists.reshape(-1, attractiveness.shape[1]), np.tile(np.arange(queries), rankers))


def sample_counts(
    plan: RankedLists, pages: Ints, rng: np.random.Generator, examined: Floats = EXAMINED
) -> ImpressionCounts:
    """Sample the clicks of this number of pages of each list, (L,)."""
    n_queries, n_documents = plan.attractive.shape
    probability = plan.attractive[plan.query[:, None], plan.lists] * examined
    clicked = rng.binomial(pages[:, None], probability)
    pair = plan.query[:, None] * n_documents + plan.lists
    keys = pair * n_documents + np.arange(n_documents)
    codes, cell_index = np.unique(keys, return_inverse=True)
    impressions = np.bincount(cell_index.ravel(), np.repeat(pages, n_documents)).astype(np.int64)
    clicks = np.bincount(cell_index.ravel(), clicked.ravel()).astype(np.int64)
    zeros = np.zeros(len(codes), dtype=np.int64)
    return ImpressionCounts(
        pairs=pair_table(n_queries, n_documents), pair=codes // n_documents, rank=codes % n_documents + 1,
        last_click=zeros, stratum=zeros, strata=("",), impressions=impressions, clicks=clicks, by="query_norm",
    )  # fmt: skip


def sample_pages(
    plan: RankedLists, pages: int, users: int, rng: np.random.Generator, examined: Floats = EXAMINED
) -> PagePatterns:
    """Sample pages of random lists and users, each as a separate pattern."""
    n_queries, n_documents = plan.attractive.shape
    list_index = rng.integers(len(plan.lists), size=pages)
    lists, query = plan.lists[list_index], plan.query[list_index]
    clicked = rng.random(lists.shape) < plan.attractive[query[:, None], lists] * examined
    pair = query[:, None] * n_documents + lists
    unit = rng.integers(users, size=pages)
    return PagePatterns(pair_table(n_queries, n_documents), pair, clicked, np.arange(pages), unit, users, "query_norm")
