"""Clicks of users who look at ranks as a position-based model says, as the counts that a log would give."""

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
    names = [f"q{at:04}" for at in range(queries)], [f"d{at:02}" for at in range(documents)]
    return pa.table({"query": np.repeat(names[0], documents).tolist(), "doc_id": names[1] * queries})


def planted(
    rng: np.random.Generator, queries: int, *, rankers: int = 3, noise: float = 0.15, attractive: Floats | None = None
) -> Planted:
    """Rank the ten documents of each query by what they are worth, each ranker with its own errors."""
    worth = rng.beta(1.0, 2.0, (queries, len(EXAMINED))) if attractive is None else attractive
    seen = worth + noise * rng.standard_normal((rankers, *worth.shape))
    lists = np.argsort(-seen, axis=2, kind="stable")
    return Planted(worth, lists.reshape(-1, worth.shape[1]), np.tile(np.arange(queries), rankers))


def cells(made: Planted, pages: Ints, rng: np.random.Generator, examined: Floats = EXAMINED) -> Cells:
    """Draw the clicks of so many pages of each list: (L,)."""
    queries, documents = made.attractive.shape
    chance = made.attractive[made.query[:, None], made.lists] * examined
    clicked = rng.binomial(pages[:, None], chance)
    pair = made.query[:, None] * documents + made.lists
    key = pair * documents + np.arange(documents)
    codes, place = np.unique(key, return_inverse=True)
    shown = np.bincount(place.ravel(), np.repeat(pages, documents)).astype(np.int64)
    clicks = np.bincount(place.ravel(), clicked.ravel()).astype(np.int64)
    none = np.zeros(len(codes), dtype=np.int64)
    return Cells(
        pairs=ids(queries, documents), pair=codes // documents, rank=codes % documents + 1, last=none, stratum=none,
        strata=("",), shown=shown, clicked=clicks, by="query_norm",
    )  # fmt: skip


def patterns(made: Planted, pages: int, users: int, rng: np.random.Generator, examined: Floats = EXAMINED) -> Patterns:
    """Draw so many pages, each of a list and a user drawn by lot, every page as a pattern of its own."""
    queries, documents = made.attractive.shape
    chosen = rng.integers(len(made.lists), size=pages)
    lists, query = made.lists[chosen], made.query[chosen]
    clicked = rng.random(lists.shape) < made.attractive[query[:, None], lists] * examined
    pair = query[:, None] * documents + lists
    unit = rng.integers(users, size=pages)
    return Patterns(ids(queries, documents), pair, clicked, np.arange(pages), unit, users, "query_norm")
