"""Pages clicked by users of each model, drawn by its own story, with what is true of them known."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from judged.clicks.cells import Patterns
from judged.clicks.models import MODELS


def patterns(pair, clicked, *, pairs=None):
    """Make patterns of pages, (N, K), of which each is by a user of its own; they are told apart in order."""
    count = int(pair.max()) + 1 if pairs is None else pairs
    table = pa.table({"query": ["q"] * count, "doc_id": [f"d{at:06}" for at in range(count)]})
    different, pattern = np.unique(np.where(clicked, pair + count + 1, pair), axis=0, return_inverse=True)
    shown = np.where(different > count, different - count - 1, different)
    return Patterns(table, shown, different > count, pattern.ravel(), np.arange(len(pair)), len(pair), "query_norm")


def truth_of(name, pairs, depth, rng):
    """Draw parameters of a model."""
    model = MODELS[name]
    made = {"attractiveness": rng.beta(1.5, 3.0, pairs)} if model.attractive else {}
    if model.examined == "rank":
        made["examination"] = np.array([1.0, 0.7, 0.5, 0.35, 0.25, 0.2, 0.16, 0.13, 0.1, 0.08])[:depth]
        made["examination"] *= 1.0 if model.attractive else 0.6
    if model.examined == "rank and last click":
        table = np.ones((depth, depth + 1))
        for rank in range(1, depth):
            table[rank, 0] = 0.75**rank
            table[rank, 1 : rank + 1] = 0.9 * 0.7 ** (rank - np.arange(1, rank + 1))
        made["examination"] = table.ravel()
    if model.satisfied in {"pair", "rank"}:
        made["satisfaction"] = rng.beta(3.0, 3.0, pairs if model.satisfied == "pair" else depth)
    if model.continuation:
        made["continuation"] = np.array({1: [0.85], 3: [0.9, 0.7, 0.3]}[len(model.continuation)])
    return made


def pages_of(pages, queries, docs, depth, rng):
    """Draw what pages show: queries by Zipf, and of each the results in an order of one of six rankers."""
    weight = 1 / np.arange(1, queries + 1)
    query = rng.choice(queries, pages, p=weight / weight.sum())
    rankings = np.stack([[rng.permutation(docs)[:depth] for _ in range(queries)] for _ in range(6)])
    return query[:, None] * docs + rankings[rng.integers(6, size=pages), query]


def clicks_of(name, pair, truth, rng):
    """Draw what users of a model click on pages, (N, K)."""
    model, (pages, depth) = MODELS[name], pair.shape
    alpha = truth["attractiveness"][pair] if model.attractive else np.ones(pair.shape)
    attracted = rng.random(pair.shape) < alpha
    clicked = np.zeros(pair.shape, dtype=bool)
    last, looking = np.zeros(pages, dtype=int), np.ones(pages, dtype=bool)
    go_on = [truth["continuation"][model.continuation.index(one)] if isinstance(one, str) else one
             for one in model.go_on]  # fmt: skip
    for at in range(depth):
        if not model.go_on:
            node = {"": 0 * last, "rank": 0 * last + at, "rank and last click": at * (depth + 1) + last}[model.examined]
            looking = rng.random(pages) < (truth["examination"][node] if model.examined else 1.0)
        clicked[:, at] = looking & attracted[:, at]
        last = np.where(clicked[:, at], at + 1, last)
        if model.go_on:
            if model.satisfied in {"always", "attractiveness"}:
                sigma = alpha[:, at] if model.satisfied == "attractiveness" else np.ones(pages)
            else:
                sigma = truth["satisfaction"][pair[:, at] if model.satisfied == "pair" else at]
            content = rng.random(pages) < sigma
            go = np.where(clicked[:, at], np.where(content, go_on[2], go_on[1]), go_on[0])
            looking = looking & (rng.random(pages) < go)
    return clicked
