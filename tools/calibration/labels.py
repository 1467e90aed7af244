"""How often statistics of labels hold, or err at 5 %; n topics.

*Sampled* are intervals of P@10 of a run, and of relevant documents by topic, from a pool of two strata, of which 10 of
20 and a fifth of 40 documents of each topic are labeled: they are for these topics. *Drift* is how often one of three
judges who do not change is said to drift (Holm), *shift* the interval of a judge's mean difference from the others, and
*known* that of the share of 20 known documents graded right. *Family* is the interval of a model's bias for some
systems, and *difference* that of a corrected difference of two systems, of which people judged n of 6 n topics.
*Decided wrong*: share of decisions between two runs, while labels come in, that all labels do not confirm. *None*:
share of samples without an interval or a test, which count in no other row.

Grades are 0 to 3, and judges copy the true one with probability 0.7. *Heavy tails*: topics have 1 to 40 labels
(Pareto 1.2), or 11 to 1,010 documents in the second stratum, and models' errors are Student's t with 3 degrees of
freedom; *a rare grade*: 5 % of documents are relevant, and a model errs on 5 % of the topics only, by 0.8; *an order*:
judges grade relevant documents first, as lists are sorted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from calibration import Measured
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
    """Return whether intervals of P@10 and NumRel hold what labels of the whole pool say, where there are some."""
    chance = np.full(topics, 0.05) if kind == "a rare grade" else rng.beta(0.8, 1.2, topics)
    sizes = np.tile([20, 40], topics)
    if kind == "heavy tails":
        sizes[1::2] = 10 + np.minimum(np.ceil(30 * rng.pareto(1.2, topics)), 1000)
    drawn = sizes // 2
    drawn[1::2] = np.maximum(np.ceil(sizes[1::2] / 5), 2)  # the same share of all topics, as `pool` draws
    stratum = np.repeat(np.arange(2 * topics), sizes)
    place = np.arange(len(stratum)) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # within the stratum, at random
    relevant = rng.random(len(stratum)) < (chance[:, None] * (1.0, 0.25)).ravel()[stratum]
    random = rng.random(len(stratum))
    listed = np.zeros(len(stratum), dtype=bool)  # a run's first ten are of the first stratum
    for topic in range(topics):
        rows = np.flatnonzero(stratum == 2 * topic)
        listed[rows[np.argsort(random[rows])[:10]]] = True
    known = place < drawn[stratum]
    design = StratifiedSample(stratum[known], sizes, np.repeat(np.arange(topics), 2), topics)
    made = dict[str, list[bool]]()
    for name, made_of in (("sampled P@10", relevant & listed), ("sampled NumRel", relevant)):
        values = made_of.astype(np.float64)
        found = mean_estimate(design, design.totals(values[known]), values[known])
        truth = values.sum() / topics
        ends = found.limits
        made[name] = [] if ends is None else [ends[0] - 1e-9 <= truth <= ends[1] + 1e-9]
    return made


def trusted(rng: np.random.Generator, kind: str, topics: int) -> dict[str, list[bool]]:
    """Return which judges are said to drift, and which intervals hold the truth, of three judges who do not change."""
    counts = np.full(topics, 5)
    if kind == "heavy tails":
        counts = np.minimum(np.ceil(2 * rng.pareto(1.2, topics) + 1e-9), 40).astype(np.int64)
    topic = np.repeat(np.arange(topics), counts)
    shares = (0.95, 0.03, 0.02) if kind == "a rare grade" else SHARES
    true = rng.choice(len(shares), len(topic), p=shares)
    own = rng.choice(len(shares), (3, len(topic)), p=shares)
    lenient = 0.3 * rng.normal(size=(3, topics))[:, topic] + np.array([0.3, 0.0, 0.0])[:, None]  # more on some topics
    grades = np.where(rng.random(own.shape) < 0.7, true, own) + lenient
    made = np.concatenate([(-true if kind == "an order" else 0) + rng.random(len(topic)) for _ in range(3)])
    time = np.argsort(np.argsort(made.reshape(3, -1), axis=1), axis=1).ravel()
    names = [f"q{at:03}" for at in topic.tolist()]
    docs = [f"d{at}" for at in range(len(topic))]
    table = {
        "query_id": names * 3, "doc_id": docs * 3, "judge": np.repeat(["a", "b", "c"], len(topic)).tolist(),
        "grade": grades.ravel(), "at": [f"{at:06}" for at in time.tolist()],
    }  # fmt: skip
    known = rng.permutation(len(topic))[:20].tolist()
    right = {f"{names[at]}": {} for at in known}
    for at in known:  # a grade of its own is right by chance; the judge's truth is the share that would be right
        right[names[at]][docs[at]] = float(grades[0, at] if rng.random() < 0.8 else 9.0)
    found = quality(Labels.of(pa.table(table)), gold=right)
    first, tested = found.judges[0], [one.drift_p for one in found.judges if one.drift_p >= 0]
    return {
        "drift": [min(tested) < 0.05] if tested else [],
        "shift": [] if first.shift_ci is None else [first.shift_ci[0] <= 0.3 <= first.shift_ci[1]],
        "known": [] if first.right_ci is None else [first.right_ci[0] <= 0.8 <= first.right_ci[1]],
    }


def corrected(rng: np.random.Generator, kind: str, topics: int) -> dict[str, list[bool]]:
    """Return which intervals of a model's bias for two of four systems, and of a difference, hold 0.1 and 0."""
    size = 4, 6 * topics
    errors = 0.1 * rng.standard_t(3, size) if kind == "heavy tails" else 0.1 * rng.normal(size=size)
    if kind == "a rare grade":  # the model is wrong on one topic in twenty only
        errors = errors / 20 + 0.8 * ((rng.random(6 * topics) < 0.05) - 0.05) * np.array([[1.0], [1.0], [0.0], [0.0]])
    people = rng.beta(2, 2, 6 * topics) + 0.1 * rng.normal(size=size)
    model = people + errors + np.array([[0.1], [0.1], [0.0], [0.0]])
    runs, ids = ("a", "b", "c", "d"), tuple(map(str, range(topics)))
    seen = PairedScores(runs, people[:, :topics], model[:, :topics], model[:, topics:], (np.nan, np.nan), ids)
    (bias, _) = family_biases("m", seen, {"a": "x", "b": "x", "c": "y", "d": "y"}, 0.95)
    second = list(corrected_means("m", seen, seen.prediction_powered_means(0.95, 100, 0), 0.95))[2]
    ends = {"family": (bias.ci, 0.1), "difference": (second.difference_ci, 0.0)}
    return {name: [] if ci is None else [ci[0] <= truth <= ci[1]] for name, (ci, truth) in ends.items()}


def decided(rng: np.random.Generator, topics: int) -> list[bool]:
    """Return, as labels come in, whether each decision between two runs is the one that all labels give."""
    names = [f"q{at}" for at in range(topics)]
    docs = [f"d{at}" for at in range(8)]
    first, second = ({name: rng.permutation(docs).tolist() for name in names} for _ in range(2))
    pairs = [(name, doc) for name in names for doc in docs]
    grades = dict(zip(pairs, rng.choice(4, len(pairs), p=SHARES).tolist(), strict=True))
    every = Qrels.of({name: {doc: grades[name, doc] for doc in docs} for name in names})
    made = build_comparison(every, first, second, "nDCG@5", highest=3)
    level, places = made.level, np.arange(topics)
    final, wrong = winner(made.bounds(places, level)), list[bool]()
    order = rng.permutation(level.size)
    for share in np.linspace(0.1, 0.9, _ORDERS):
        some = level.copy()
        some.ravel()[order[int(share * level.size) :]] = -1
        now = winner(made.bounds(places, some))
        wrong += [] if now is None else [now != final]
    return wrong


def measure(trials: int) -> Iterator[Measured]:
    """Measure samples of pools, judges, models, and decisions."""
    for topics in SIZES:
        for at, kind in enumerate(("usual", "heavy tails", "a rare grade", "an order")):
            rng = np.random.default_rng([71, topics, at])
            made: dict[str, list[bool]] = {}
            for _ in range(trials):
                found = trusted(rng, kind, topics)
                if kind != "an order":
                    found |= corrected(rng, kind, topics) | sampled(rng, kind, topics)
                for name, values in found.items():
                    made.setdefault(name, []).extend(values)
            for method, values in made.items():
                if len(values) > trials / 10:
                    yield Measured(method, kind, topics, float(np.mean(values)), trials)
                if len(values) < trials:
                    yield Measured(f"{method}, none", kind, topics, 1 - len(values) / trials, trials)
        rng = np.random.default_rng([72, topics])
        wrong = [one for _ in range(max(trials // 5, 1)) for one in decided(rng, topics)]
        if wrong:
            yield Measured("decided wrong", "usual", topics, float(np.mean(wrong)), trials)
