"""Coverage, and error rates at alpha = 0.05, of statistics of labels on n topics.

*Sampled* P@10 and NumRel are estimates from a pool of two strata: 10 of 20 and a fifth of 40 documents of each topic
are labeled. *Drift*: false positive rate for three judges (Holm). *Shift*: a judge's mean difference from the others.
*Known*: accuracy on 20 known documents. *Family*: a model's bias for some systems. *Difference*: corrected difference
of two systems; people judged n of 6n topics. *Decided wrong*: share of early decisions that all labels contradict.
*None*: share of samples without a result.

Grades are 0 to 3, and judges copy the true one with probability 0.7. *Heavy tails*: topics have 1 to 40 labels, or 11
to 1,010 documents in the second stratum, and errors of models follow t with 3 degrees of freedom. *A rare grade*: 5% of
the documents are relevant, and a model errs by 0.8 on 5% of the topics. *An order*: relevant documents come first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from calibration import CoverageCell
from judged.data.qrels import Qrels
from judged.labels.corrected_systems import PairedScores, corrected_means, family_biases
from judged.labels.deciding import build_comparison, winner
from judged.labels.estimation import StratifiedSample, mean_estimate
from judged.labels.labels import Labels
from judged.labels.trust import quality

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES = (6, 12, 30)
SHARES = (0.4, 0.3, 0.2, 0.1)
_ORDERS = 10


def sampled(rng: np.random.Generator, kind: str, topics: int) -> dict[str, list[bool]]:
    """Return whether existing intervals of P@10 and NumRel contain the value of the complete pool."""
    relevance_probability = np.full(topics, 0.05) if kind == "a rare grade" else rng.beta(0.8, 1.2, topics)
    sizes = np.tile([20, 40], topics)
    if kind == "heavy tails":
        sizes[1::2] = 10 + np.minimum(np.ceil(30 * rng.pareto(1.2, topics)), 1000)
    sample_sizes = sizes // 2
    sample_sizes[1::2] = np.maximum(np.ceil(sizes[1::2] / 5), 2)  # the same share of all topics, as `pool` draws
    stratum = np.repeat(np.arange(2 * topics), sizes)
    position = np.arange(len(stratum)) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # within the stratum, at random
    relevant = rng.random(len(stratum)) < (relevance_probability[:, None] * (1.0, 0.25)).ravel()[stratum]
    random = rng.random(len(stratum))
    is_in_run = np.zeros(len(stratum), dtype=bool)  # a run's first ten are of the first stratum
    for topic in range(topics):
        rows = np.flatnonzero(stratum == 2 * topic)
        is_in_run[rows[np.argsort(random[rows])[:10]]] = True
    is_sampled = position < sample_sizes[stratum]
    design = StratifiedSample(stratum[is_sampled], sizes, np.repeat(np.arange(topics), 2), topics)
    coverage = dict[str, list[bool]]()
    for name, is_counted in (("sampled P@10", relevant & is_in_run), ("sampled NumRel", relevant)):
        values = is_counted.astype(np.float64)
        estimate = mean_estimate(design, design.totals(values[is_sampled]), values[is_sampled])
        truth = values.sum() / topics
        limits = estimate.limits
        coverage[name] = [] if limits is None else [limits[0] - 1e-9 <= truth <= limits[1] + 1e-9]
    return coverage


def trusted(rng: np.random.Generator, kind: str, topics: int) -> dict[str, list[bool]]:
    """Return whether any of three constant judges seems to drift, and whether intervals contain the true value."""
    counts = np.full(topics, 5)
    if kind == "heavy tails":
        counts = np.minimum(np.ceil(2 * rng.pareto(1.2, topics) + 1e-9), 40).astype(np.int64)
    topic = np.repeat(np.arange(topics), counts)
    shares = (0.95, 0.03, 0.02) if kind == "a rare grade" else SHARES
    true_grades = rng.choice(len(shares), len(topic), p=shares)
    random_grades = rng.choice(len(shares), (3, len(topic)), p=shares)
    leniency = 0.3 * rng.normal(size=(3, topics))[:, topic] + np.array([0.3, 0.0, 0.0])[:, None]  # more on some topics
    grades = np.where(rng.random(random_grades.shape) < 0.7, true_grades, random_grades) + leniency
    sort_keys = np.concatenate([(-true_grades if kind == "an order" else 0) + rng.random(len(topic)) for _ in range(3)])
    time = np.argsort(np.argsort(sort_keys.reshape(3, -1), axis=1), axis=1).ravel()
    names = [f"q{topic_index:03}" for topic_index in topic.tolist()]
    docs = [f"d{label}" for label in range(len(topic))]
    table = {
        "query_id": names * 3, "doc_id": docs * 3, "judge": np.repeat(["a", "b", "c"], len(topic)).tolist(),
        "grade": grades.ravel(),
        "time": [f"2026-01-01T{s // 3600:02}:{s // 60 % 60:02}:{s % 60:02}Z" for s in time.tolist()],
    }  # fmt: skip
    gold_rows = rng.permutation(len(topic))[:20].tolist()
    gold = {names[row]: {} for row in gold_rows}
    for row in gold_rows:  # a grade of its own is right by chance; the judge's truth is the share that would be right
        gold[names[row]][docs[row]] = float(grades[0, row] if rng.random() < 0.8 else 9.0)
    result = quality(Labels.of(pa.table(table)), gold=gold)
    first, tested = result.judges[0], [judge.drift_p for judge in result.judges if judge.drift_p >= 0]
    return {
        "drift": [min(tested) < 0.05] if tested else [],
        "shift": [] if first.shift_ci is None else [first.shift_ci[0] <= 0.3 <= first.shift_ci[1]],
        "known": [] if first.accuracy_ci is None else [first.accuracy_ci[0] <= 0.8 <= first.accuracy_ci[1]],
    }


def corrected(rng: np.random.Generator, kind: str, topics: int) -> dict[str, list[bool]]:
    """Return whether intervals of a model's bias for two of four systems contain 0.1, and of a difference 0."""
    size = 4, 6 * topics
    errors = 0.1 * rng.standard_t(3, size) if kind == "heavy tails" else 0.1 * rng.normal(size=size)
    if kind == "a rare grade":  # the model is wrong on one topic in twenty only
        errors = errors / 20 + 0.8 * ((rng.random(6 * topics) < 0.05) - 0.05) * np.array([[1.0], [1.0], [0.0], [0.0]])
    people = rng.beta(2, 2, 6 * topics) + 0.1 * rng.normal(size=size)
    model = people + errors + np.array([[0.1], [0.1], [0.0], [0.0]])
    runs, ids = ("a", "b", "c", "d"), tuple(map(str, range(topics)))
    scores = PairedScores(runs, people[:, :topics], model[:, :topics], model[:, topics:], (np.nan, np.nan), ids)
    (bias, _) = family_biases("m", scores, {"a": "x", "b": "x", "c": "y", "d": "y"}, 0.95)
    second = list(corrected_means("m", scores, scores.prediction_powered_means(0.95, 100, 0), 0.95))[2]
    intervals = {"family": (bias.ci, 0.1), "difference": (second.difference_ci, 0.0)}
    return {name: [] if ci is None else [ci[0] <= truth <= ci[1]] for name, (ci, truth) in intervals.items()}


def decided(rng: np.random.Generator, topics: int) -> list[bool]:
    """Return whether each decision between two runs from partial labels contradicts the decision from all labels."""
    names = [f"q{index}" for index in range(topics)]
    docs = [f"d{index}" for index in range(8)]
    first, second = ({name: rng.permutation(docs).tolist() for name in names} for _ in range(2))
    pairs = [(name, doc) for name in names for doc in docs]
    grades = dict(zip(pairs, rng.choice(4, len(pairs), p=SHARES).tolist(), strict=True))
    qrels = Qrels.of({name: {doc: grades[name, doc] for doc in docs} for name in names})
    comparison = build_comparison(qrels, first, second, "nDCG@5", highest=3)
    level, topic_indices = comparison.level, np.arange(topics)
    final, contradictions = winner(comparison.bounds(topic_indices, level)), list[bool]()
    order = rng.permutation(level.size)
    for share in np.linspace(0.1, 0.9, _ORDERS):
        partial_level = level.copy()
        partial_level.ravel()[order[int(share * level.size) :]] = -1
        decision = winner(comparison.bounds(topic_indices, partial_level))
        contradictions += [] if decision is None else [decision != final]
    return contradictions


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield rates of samples of pools, judges, models, and decisions."""
    for topics in SIZES:
        for kind_index, kind in enumerate(("usual", "heavy tails", "a rare grade", "an order")):
            rng = np.random.default_rng([71, topics, kind_index])
            coverage: dict[str, list[bool]] = {}
            for _ in range(trials):
                outcomes = trusted(rng, kind, topics)
                if kind != "an order":
                    outcomes |= corrected(rng, kind, topics) | sampled(rng, kind, topics)
                for name, values in outcomes.items():
                    coverage.setdefault(name, []).extend(values)
            for method, values in coverage.items():
                if len(values) > trials / 10:
                    yield CoverageCell(method, kind, topics, float(np.mean(values)), trials)
                if len(values) < trials:
                    yield CoverageCell(f"{method}, none", kind, topics, 1 - len(values) / trials, trials)
        rng = np.random.default_rng([72, topics])
        contradictions = [is_wrong for _ in range(max(trials // 5, 1)) for is_wrong in decided(rng, topics)]
        if contradictions:
            yield CoverageCell("decided wrong", "usual", topics, float(np.mean(contradictions)), trials)
