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


def build_patterns(pair: Ints, clicked: Bools, *, pairs: int | None = None) -> PagePatterns:
    """Build patterns of pages from arrays of shape (N, K). Each page has its own user."""
    count = int(pair.max()) + 1 if pairs is None else pairs
    table = pa.table({"query": ["q"] * count, "doc_id": [f"d{index:06}" for index in range(count)]})
    distinct, pattern = np.unique(np.where(clicked, pair + count + 1, pair), axis=0, return_inverse=True)
    pair_index = np.where(distinct > count, distinct - count - 1, distinct)
    return PagePatterns(
        table, pair_index, distinct > count, pattern.ravel(), np.arange(len(pair)), len(pair), "query_norm"
    )


def sample_parameters(name: str, pairs: int, depth: int, rng: np.random.Generator) -> Parameters:
    """Sample parameters of a model."""
    model = MODELS[name]
    parameters: Parameters = {"attractiveness": rng.beta(1.5, 3.0, pairs)} if model.attractive else {}
    if model.examined == "rank":
        parameters["examination"] = np.array([1.0, 0.7, 0.5, 0.35, 0.25, 0.2, 0.16, 0.13, 0.1, 0.08])[:depth]
        parameters["examination"] *= 1.0 if model.attractive else 0.6
    if model.examined == "rank and last click":
        table = np.ones((depth, depth + 1))
        for rank in range(1, depth):
            table[rank, 0] = 0.75**rank
            table[rank, 1 : rank + 1] = 0.9 * 0.7 ** (rank - np.arange(1, rank + 1))
        parameters["examination"] = table.ravel()
    if model.satisfied in {"pair", "rank"}:
        parameters["satisfaction"] = rng.beta(3.0, 3.0, pairs if model.satisfied == "pair" else depth)
    if model.continuation_names:
        parameters["continuation"] = np.array({1: [0.85], 3: [0.9, 0.7, 0.3]}[len(model.continuation_names)])
    return parameters


def sample_pages(
    pages: int, queries: int, docs: int, depth: int, rng: np.random.Generator, exponent: float = 1.0
) -> Ints:
    """Sample pages: queries by Zipf's law, with results in the order of one of six rankers."""
    weight = 1 / np.arange(1, queries + 1) ** exponent
    query = rng.choice(queries, pages, p=weight / weight.sum())
    rankings = np.stack([[rng.permutation(docs)[:depth] for _ in range(queries)] for _ in range(RANKERS)])
    return query[:, None] * docs + rankings[rng.integers(RANKERS, size=pages), query]


def sample_clicks(name: str, pair: Ints, truth: Parameters, rng: np.random.Generator) -> Bools:
    """Sample clicks on pages by users of a model, of shape (N, K)."""
    model, (pages, depth) = MODELS[name], pair.shape
    alpha = truth["attractiveness"][pair] if model.attractive else np.ones(pair.shape)
    attracted = rng.random(pair.shape) < alpha
    clicked = np.zeros(pair.shape, dtype=np.bool_)
    last, is_examining = np.zeros(pages, dtype=np.int64), np.ones(pages, dtype=np.bool_)
    continuation = [
        truth["continuation"][model.continuation_names.index(step)] if isinstance(step, str) else step
        for step in model.continuation_probabilities
    ]  # fmt: skip
    for rank in range(depth):
        if not model.continuation_probabilities:
            node = {"": 0 * last, "rank": 0 * last + rank, "rank and last click": rank * (depth + 1) + last}[
                model.examined
            ]
            is_examining = rng.random(pages) < (truth["examination"][node] if model.examined else 1.0)
        clicked[:, rank] = is_examining & attracted[:, rank]
        last = np.where(clicked[:, rank], rank + 1, last)
        if model.continuation_probabilities:
            if model.satisfied in {"always", "attractiveness"}:
                sigma = alpha[:, rank] if model.satisfied == "attractiveness" else np.ones(pages)
            else:
                sigma = truth["satisfaction"][pair[:, rank] if model.satisfied == "pair" else rank]
            is_satisfied = rng.random(pages) < sigma
            continues = np.where(
                clicked[:, rank], np.where(is_satisfied, continuation[2], continuation[1]), continuation[0]
            )
            is_examining = is_examining & (rng.random(pages) < continues)
    return clicked


def covered_parameters(
    name: str, situation: str, pages: int, shrink: Shrink, rng: np.random.Generator
) -> dict[str, Bools]:
    """Return whether the intervals of one log contain the true values, by kind of parameter."""
    truth = sample_parameters(name, QUERIES * DOCS, DEPTH, rng)
    if situation == "two kinds" and "attractiveness" in truth:
        truth["attractiveness"] = np.where(rng.random(QUERIES * DOCS) < 0.3, 0.6, 0.1)
    pair = sample_pages(pages, QUERIES, DOCS, DEPTH, rng, 1.2 if situation == "heavy-tailed queries" else 0.0)
    page_patterns = build_patterns(pair, sample_clicks(name, pair, truth, rng), pairs=QUERIES * DOCS)
    data = build_data(MODELS[name], page_patterns, page_patterns.counts())
    fitted = fit(data, shrink=shrink)
    posteriors = pair_posteriors(data, fitted, 0.95)
    errors = data.information(fitted.parameters).standard_errors(fitted.parameters, fitted.priors)
    is_covered: dict[str, Bools] = {}
    for kind, values in fitted.parameters.items():
        posterior = posteriors.get(kind)
        low, high = (posterior.low, posterior.high) if posterior else logit_interval(values, errors[kind], 0.95)
        has_interval = np.isfinite(low) & np.isfinite(high) & (fitted.expected_counts[kind][1] > 0)
        has_interval &= np.arange(len(values)) != data.fixed_indices().get(kind, -1)
        true_values: Floats = truth[kind][: len(values)]
        is_covered[kind] = ((low <= true_values) & (true_values <= high))[has_interval]
    return is_covered


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield the coverage of each kind of parameter of each model."""
    kinds: tuple[tuple[Shrink, str], ...] = (("empirical", "shrunk"), ("none", "not shrunk"))
    for shrink, shrinkage_name in kinds:
        for name in MODELS:
            for index, (situation, pages) in enumerate(SITUATIONS.items()):
                rng, coverage = np.random.default_rng([pages, index]), dict[str, list[Any]]()
                for _ in range(trials):
                    for kind, is_covered in covered_parameters(name, situation, pages, shrink, rng).items():
                        coverage.setdefault(kind, []).append(is_covered)
                for kind, arrays in coverage.items():
                    rate = float(np.mean(np.concatenate(arrays)))
                    yield CoverageCell(f"{name} {kind}, {shrinkage_name}", situation, pages, rate, trials)
