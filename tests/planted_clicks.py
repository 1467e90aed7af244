"""Simulated clicks of a position-based model, as the counts that a log would have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from judged.online.clicks import Cells, Patterns

if TYPE_CHECKING:
    from judged.results.types import Floats, Ints

EXAMINED = np.array([1.0, 0.7, 0.5, 0.38, 0.3, 0.25, 0.21, 0.18, 0.16, 0.15])


@dataclass(frozen=True)
class Planted:
    attractive: Floats  # (Q, D)
    lists: Ints  # (L, K): documents by rank, each list of one query
    query: Ints  # (L,)


def ids(queries: int, documents: int) -> pa.Table:
    names = [f"q{number:04}" for number in range(queries)], [f"d{number:02}" for number in range(documents)]
    return pa.table({"query": np.repeat(names[0], documents).tolist(), "doc_id": names[1] * queries})


def planted(
    rng: np.random.Generator, queries: int, *, rankers: int = 3, noise: float = 0.15, attractive: Floats | None = None
) -> Planted:
    """Rank the ten documents of each query by attractiveness, each ranker with errors of its own."""
    attractiveness = rng.beta(1.0, 2.0, (queries, len(EXAMINED))) if attractive is None else attractive
    observed = attractiveness + noise * rng.standard_normal((rankers, *attractiveness.shape))
    lists = np.argsort(-observed, axis=2, kind="stable")
    return Planted(attractiveness, lists.reshape(-1, attractiveness.shape[1]), np.tile(np.arange(queries), rankers))


def cells(rankings: Planted, pages: Ints, rng: np.random.Generator, examined: Floats = EXAMINED) -> Cells:
    """Draw the clicks of a number of pages per list: (L,)."""
    queries, documents = rankings.attractive.shape
    click_probability = rankings.attractive[rankings.query[:, None], rankings.lists] * examined
    clicked = rng.binomial(pages[:, None], click_probability)
    pair = rankings.query[:, None] * documents + rankings.lists
    key = pair * documents + np.arange(documents)
    codes, cell = np.unique(key, return_inverse=True)
    shown = np.bincount(cell.ravel(), np.repeat(pages, documents)).astype(np.int64)
    clicks = np.bincount(cell.ravel(), clicked.ravel()).astype(np.int64)
    zeros = np.zeros(len(codes), dtype=np.int64)
    return Cells(
        pairs=ids(queries, documents), pair=codes // documents, rank=codes % documents + 1, last=zeros, stratum=zeros,
        strata=("",), shown=shown, clicked=clicks, by="query_norm",
    )  # fmt: skip


def patterns(
    rankings: Planted, pages: int, users: int, rng: np.random.Generator, examined: Floats = EXAMINED
) -> Patterns:
    """Draw pages, each of a random list and user, every page as a pattern of its own."""
    queries, documents = rankings.attractive.shape
    list_index = rng.integers(len(rankings.lists), size=pages)
    lists, query = rankings.lists[list_index], rankings.query[list_index]
    clicked = rng.random(lists.shape) < rankings.attractive[query[:, None], lists] * examined
    pair = query[:, None] * documents + lists
    unit = rng.integers(users, size=pages)
    return Patterns(ids(queries, documents), pair, clicked, np.arange(pages), unit, users, "query_norm")
