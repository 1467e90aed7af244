"""Coverage of 95% intervals of the parameters of click models, over logs of n pages.

Users of each model click on six of eight documents of 20 queries, ordered by six rankers. *Equal queries* have the same
number of pages; *heavy-tailed queries* follow Zipf's law (exponent 1.2). For each log, attractiveness is drawn from
Beta(1.5, 3) and satisfaction from Beta(3, 3), so coverage is averaged over the prior that shrinkage (*shrunk*, the
default) assumes. *Not shrunk* is maximum likelihood. With *two kinds* of documents (attractiveness 0.1 or 0.6), the
prior is wrong. All parameters with an interval count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from calibration import CoverageCell
from judged.online.clicks.fitting import build_data, fit, pair_posteriors
from judged.online.clicks.impression_counts import PagePatterns
from judged.online.clicks.model_fit import logit_interval
from judged.online.clicks.rank_models import MODELS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.online.clicks.fitting import Shrink
    from judged.online.clicks.posteriors import Parameters
    from judged.results.types import Bools, Floats, Ints

SITUATIONS = {"equal queries": 300, "heavy-tailed queries": 1500, "two kinds": 1500}  # with the pages of a log
QUERIES, DOCS, DEPTH, RANKERS = 20, 8, 6, 6


def patterns(pair: Ints, clicked: Bools, *, pairs: int | None = None) -> PagePatterns:
    """Make patterns of pages, (N, K), of which each is by a user of its own; they are told apart in order."""
    count = int(pair.max()) + 1 if pairs is None else pairs
    table = pa.table({"query": ["q"] * count, "doc_id": [f"d{at:06}" for at in range(count)]})
    different, pattern = np.unique(np.where(clicked, pair + count + 1, pair), axis=0, return_inverse=True)
    shown = np.where(different > count, different - count - 1, different)
    return PagePatterns(table, shown, different > count, pattern.ravel(), np.arange(len(pair)), len(pair), "query_norm")


def truth_of(name: str, pairs: int, depth: int, rng: np.random.Generator) -> Parameters:
    """Draw parameters of a model."""
    model = MODELS[name]
    made: Parameters = {"attractiveness": rng.beta(1.5, 3.0, pairs)} if model.attractive else {}
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
    if model.continuation_names:
        made["continuation"] = np.array({1: [0.85], 3: [0.9, 0.7, 0.3]}[len(model.continuation_names)])
    return made


def pages_of(pages: int, queries: int, docs: int, depth: int, rng: np.random.Generator, exponent: float = 1.0) -> Ints:
    """Draw what pages show: queries by Zipf, and of each the results in an order of one of six rankers."""
    weight = 1 / np.arange(1, queries + 1) ** exponent
    query = rng.choice(queries, pages, p=weight / weight.sum())
    rankings = np.stack([[rng.permutation(docs)[:depth] for _ in range(queries)] for _ in range(RANKERS)])
    return query[:, None] * docs + rankings[rng.integers(RANKERS, size=pages), query]


def clicks_of(name: str, pair: Ints, truth: Parameters, rng: np.random.Generator) -> Bools:
    """Draw what users of a model click on pages, (N, K)."""
    model, (pages, depth) = MODELS[name], pair.shape
    alpha = truth["attractiveness"][pair] if model.attractive else np.ones(pair.shape)
    attracted = rng.random(pair.shape) < alpha
    clicked = np.zeros(pair.shape, dtype=np.bool_)
    last, looking = np.zeros(pages, dtype=np.int64), np.ones(pages, dtype=np.bool_)
    go_on = [
        truth["continuation"][model.continuation_names.index(step)] if isinstance(step, str) else step
        for step in model.continuation_probabilities
    ]  # fmt: skip
    for at in range(depth):
        if not model.continuation_probabilities:
            node = {"": 0 * last, "rank": 0 * last + at, "rank and last click": at * (depth + 1) + last}[model.examined]
            looking = rng.random(pages) < (truth["examination"][node] if model.examined else 1.0)
        clicked[:, at] = looking & attracted[:, at]
        last = np.where(clicked[:, at], at + 1, last)
        if model.continuation_probabilities:
            if model.satisfied in {"always", "attractiveness"}:
                sigma = alpha[:, at] if model.satisfied == "attractiveness" else np.ones(pages)
            else:
                sigma = truth["satisfaction"][pair[:, at] if model.satisfied == "pair" else at]
            content = rng.random(pages) < sigma
            go = np.where(clicked[:, at], np.where(content, go_on[2], go_on[1]), go_on[0])
            looking = looking & (rng.random(pages) < go)
    return clicked


def covered(name: str, situation: str, pages: int, shrink: Shrink, rng: np.random.Generator) -> dict[str, Bools]:
    """Return which intervals of one log hold the truth, by the name of what they are of."""
    truth = truth_of(name, QUERIES * DOCS, DEPTH, rng)
    if situation == "two kinds" and "attractiveness" in truth:
        truth["attractiveness"] = np.where(rng.random(QUERIES * DOCS) < 0.3, 0.6, 0.1)
    pair = pages_of(pages, QUERIES, DOCS, DEPTH, rng, 1.2 if situation == "heavy-tailed queries" else 0.0)
    made = patterns(pair, clicks_of(name, pair, truth, rng), pairs=QUERIES * DOCS)
    data = build_data(MODELS[name], made, made.counts())
    found = fit(data, shrink=shrink)
    known = pair_posteriors(data, found, 0.95)
    errors = data.information(found.parameters).standard_errors(found.parameters, found.priors)
    held: dict[str, Bools] = {}
    for kind, values in found.parameters.items():
        own = known.get(kind)
        low, high = (own.low, own.high) if own else logit_interval(values, errors[kind], 0.95)
        there = np.isfinite(low) & np.isfinite(high) & (found.expected_counts[kind][1] > 0)
        there &= np.arange(len(values)) != data.fixed_indices().get(kind, -1)
        true: Floats = truth[kind][: len(values)]
        held[kind] = ((low <= true) & (true <= high))[there]
    return held


def measure(trials: int) -> Iterator[CoverageCell]:
    """Measure every kind of parameter of every model."""
    kinds: tuple[tuple[Shrink, str], ...] = (("empirical", "shrunk"), ("none", "not shrunk"))
    for shrink, how in kinds:
        for name in MODELS:
            for at, (situation, pages) in enumerate(SITUATIONS.items()):
                rng, sums = np.random.default_rng([pages, at]), dict[str, list[Any]]()
                for _ in range(trials):
                    for kind, held in covered(name, situation, pages, shrink, rng).items():
                        sums.setdefault(kind, []).append(held)
                for kind, each in sums.items():
                    rate = float(np.mean(np.concatenate(each)))
                    yield CoverageCell(f"{name} {kind}, {how}", situation, pages, rate, trials)
