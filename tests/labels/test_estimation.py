"""Estimates from samples: unbiased sums against full judgments, intervals that cover, and what is refused."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from calibration import labels

from judged import evaluate, judge
from judged.errors import InputError, MeasureError
from judged.judging.unjudged import keeping
from judged.labels import Pool, estimate, pool
from judged.labels.estimation import design_of, estimated, form_of, shares
from judged.labels.pooling import allocated, candidates, draw, strata_of
from judged.measures import parse
from judged.measures.registry import REGISTRY
from judged.stats.horvitz_thompson import Design, mean_estimate
from judged.stats.ratio import ratio_interval

SUMS = ("P@10", "DCG@10", "RBP(p=0.8)", "NumRelRet", "NumRel", "SetP", "CG@20", "SDCG(max=2)@10", "INSQ(max=2,T=1)")


def collection(topics: int, seed: int) -> tuple[dict[str, Any], dict[str, dict[str, int]]]:
    """Make runs that find relevant documents early, and judgments of all that they return."""
    random = np.random.default_rng(seed)
    runs: dict[str, dict[str, list[str]]] = {name: {} for name in ("first", "second", "third")}
    qrels: dict[str, dict[str, int]] = {}
    for topic in (f"q{at}" for at in range(topics)):
        worth = random.gamma(0.5, size=120)
        qrels[topic] = {f"d{at}": int(value > 0.6) + int(value > 1.5) for at, value in enumerate(worth)}
        for run in runs.values():
            order = np.argsort(-(worth + random.normal(0, 0.7, 120)))
            run[topic] = [f"d{at}" for at in order[:60]]
    returned = {topic: {doc for run in runs.values() for doc in run[topic]} for topic in qrels}
    return runs, {topic: {doc: grades[doc] for doc in sorted(returned[topic])} for topic, grades in qrels.items()}


def measures() -> list[str]:
    """Name every measure that is estimated as a sum, with parameters where it needs them."""
    found = []
    for name, entry in REGISTRY.items():
        try:
            measure = parse(
                {"RBP": "RBP(p=0.8)"}.get(name, name + ("@10" if entry.at == "cutoff" and entry.cutoff else ""))
            )
            if form_of(measure) == "sum":
                found.append(str(measure))
        except Exception:  # noqa: BLE001, S112  needs parameters that only some measures have
            continue
    return found


def test_of_a_pool_that_is_judged_whole_estimates_are_the_scores() -> None:
    runs, qrels = collection(12, 1)
    names = sorted({*measures(), *SUMS, "R@20", "SetR", "AP", "AP(rel=2)"})
    assert len(names) > 10
    found = estimate(pool(runs), qrels, runs, names)
    scores = {(row.run, row.measure): row.value for row in evaluate(qrels, runs, names).estimates(ci="none")}
    assert len(found.rows) == 3 * len(names)
    for row in found.rows:
        assert row.value == pytest.approx(scores[row.run, row.measure], abs=1e-12), row.measure
        assert row.error == 0


def test_over_all_samples_of_a_small_pool_sums_are_right_on_average() -> None:
    """Two of four documents in one stratum, one of one in the other: all six samples, each as likely."""
    runs = {"run": {"q": ["a", "b", "c", "d", "e"]}}
    grades = {"a": 1, "b": 0, "c": 2, "d": 1, "e": 0}
    whole = judge({"q": grades}, runs["run"])
    for name in ("P@3", "DCG@4", "RBP(p=0.5)", "NumRel"):
        measure, values, squares = parse(name), [], []
        for two in itertools.combinations(range(1, 5), 2):
            kept = np.isin(np.arange(5), (0, *two))
            seen = keeping(whole, kept)
            design = Design(np.array([0, 1, 1]), np.array([1, 4]), np.array([0, 0]), 1)
            found = estimated(measure, seen, design)
            values.append(found.value)
            squares.append(found.error**2)
        assert np.mean(values) == pytest.approx(measure(whole)[0])
        assert np.mean(squares) == pytest.approx(np.var(values))  # the estimated variance is unbiased, too


def test_pairs_of_documents_are_counted_without_bias() -> None:
    """The numerator of AP over all samples of three of five: the sum of precisions at relevant documents."""
    from judged.labels.estimation import _pairs_in_order  # pyright: ignore[reportPrivateUsage]

    relevant, rank, topic = np.array([1, 0, 1, 1, 1]), np.array([1, 2, 3, 4, 6]), np.zeros(5, dtype=np.int64)
    sums = []
    for three in itertools.combinations(range(5), 3):
        at = np.array(three)
        design = Design(np.zeros(3, dtype=np.int64), np.array([5]), np.array([0]), 1)
        sums.append(_pairs_in_order(design, np.flatnonzero(relevant[at]), rank[at], topic[at])[0][0])
    assert np.mean(sums) == pytest.approx(1 / 1 + 2 / 3 + 3 / 4 + 4 / 6)


def simulated(topics: int, size: int, names: tuple[str, ...], times: int) -> dict[str, np.ndarray]:
    """Give estimates, and whether intervals held the truth, over samples of so many documents a topic."""
    runs, qrels = collection(topics, 7)
    found = candidates(runs, 60)
    bands, stratum, sizes = strata_of(found, (10, 30, 60))
    topic = found.topic[np.unique(stratum, return_index=True)[1]]
    drawn = allocated(size * topics, sizes, np.array([4.0, 2.0, 1.0])[bands])
    whole = judge(qrels, runs["first"])
    row = {(found.query_ids[code], doc): at for at, (code, doc) in enumerate(zip(found.topic, found.doc, strict=True))}
    docs = [whole.qrels.index.row_names[at] for at in whole.label_row]
    place = np.array([row[whole.query_ids[code], doc] for code, doc in zip(whole.label_topic, docs, strict=True)])
    random, made = np.random.default_rng(11), {name: np.zeros((2, times)) for name in names}
    truth = {}
    for name in names:
        scores = parse(name)(whole)
        truth[name] = scores.sum() if parse(name).entry.aggregate == "sum" else scores.mean()
    for time in range(times):
        inside = np.zeros(len(stratum), dtype=np.bool_)
        inside[draw(stratum, drawn, random)] = True
        kept = inside[place]
        design, seen = Design(stratum[place[kept]], sizes, topic, topics), keeping(whole, kept)
        for name in names:
            estimates = estimated(parse(name), seen, design)
            low, high = estimates.limits
            made[name][:, time] = estimates.value - truth[name], low <= truth[name] <= high
    return made


def test_sums_are_unbiased_and_their_intervals_cover_on_made_data() -> None:
    """40 topics, 25 of some 100 documents each: mean within 3 standard errors, 93 to 97 % covered."""
    times = 1500
    for name, (errors, covered) in simulated(40, 25, ("P@10", "DCG@10", "RBP(p=0.8)", "NumRel"), times).items():
        assert abs(errors.mean()) < 3 * errors.std() / np.sqrt(times), name
        assert 0.93 <= covered.mean() <= 0.97, name


def test_what_each_document_adds_sums_to_the_score() -> None:
    runs, qrels = collection(5, 3)
    judged = judge(qrels, runs["second"])
    for name in SUMS:
        measure = parse(name)
        base, values = shares(measure, judged)
        total = base + np.bincount(judged.label_topic, values, minlength=len(judged))
        assert total == pytest.approx(measure(judged)), name


def test_a_sample_read_back_gives_the_same_estimates(tmp_path: Any) -> None:
    runs, qrels = collection(6, 2)
    drawn = pool(runs, sample=120, seed=4)
    drawn.save(tmp_path / "pool.csv")
    one, two = (estimate(given, qrels, runs, "P@10, AP") for given in (drawn, Pool.read(tmp_path / "pool.csv")))
    assert one.json() == two.json()
    assert [row.ci is None for row in one.rows] == [row.estimator == "ratio" for row in one.rows]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nDCG@10", "best ranking"),
        ("RR", "which others"),
        ("ERR(max=4)@10", "which others"),
        ("Judged@10", "evaluate gives it"),
        ("P(judged_only=true)@10", "which others"),
        ("Rprec", "best ranking"),
        ("P@10 where kind == 'law'", "some topics"),
        ("AP@10", "best ranking"),
    ],
)
def test_other_measures_are_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(MeasureError, match=why):
        estimate(pool({"run": {"q": ["a", "b"]}}), {"q": {"a": 1, "b": 0}}, {"run": {"q": ["a", "b"]}}, name)


def test_pools_without_probabilities_or_judgments_are_refused() -> None:
    runs = {"run": {"q": ["a", "b", "c"]}}
    with pytest.raises(InputError, match="no probabilities"):
        estimate(pool(runs, budget=2), {"q": {"a": 1}}, runs, "P@2")
    with pytest.raises(InputError, match="2 of 3 pairs"):
        estimate(pool(runs), {"q": {"a": 1}}, runs, "P@2")


def test_the_variance_is_that_of_the_textbook() -> None:
    """Cochran 1977, (5.6): the sum over strata of N (N - n) s^2 / n; by hand 6 * 3 * 1 / 3 + 10 * 8 * 2 / 2 = 86."""
    design = Design(np.array([0, 0, 0, 1, 1]), np.array([6, 10]), np.array([0, 0]), 1)
    values = np.array([1.0, 2.0, 3.0, 4.0, 6.0])
    found = mean_estimate(design, design.totals(values), values)
    assert found.value == pytest.approx(6 * 2 + 10 * 5)
    assert found.error**2 == pytest.approx(86)


def test_one_of_several_is_refused() -> None:
    with pytest.raises(InputError, match="fewer than two"):
        Design(np.array([0]), np.array([5]), np.array([0]), 1)


def test_the_design_of_a_pool_is_what_was_drawn() -> None:
    runs, qrels = collection(4, 9)
    drawn = pool(runs, sample=80)
    kept = set(zip(drawn.pairs["query_id"].to_pylist(), drawn.pairs["doc_id"].to_pylist(), strict=True))
    some = {topic: {doc: grade for doc, grade in docs.items() if (topic, doc) in kept} for topic, docs in qrels.items()}
    design = design_of(drawn, judge(some, runs["first"]))
    assert (design.drawn.sum(), design.sizes.sum()) == (80, len(pool(runs)))


def test_a_sample_without_variation_says_so() -> None:
    run = {"q": {name: -float(rank) for rank, name in enumerate("abcdef")}}
    drawn = pool(run, sample=4, strata=(), seed=1)
    kept = drawn.pairs["doc_id"].to_pylist()
    assert len(kept) < 6
    found = estimate(drawn, {"q": dict.fromkeys(kept, 0)}, run, ["P@6"])
    assert [note.rule for note in found.notes] == ["no-variation"]


@pytest.mark.parametrize("topics", [6, 12])
def test_intervals_of_rare_relevant_documents_hold_the_truth(topics: int) -> None:
    """300 samples; Student's symmetric interval held it in 88 and 91 %."""
    rng, held = np.random.default_rng(topics), list[bool]()
    for _ in range(300):
        held += labels.sampled(rng, "a rare grade", topics)["sampled NumRel"]
    assert np.mean(held) >= 0.95


def test_what_is_judged_whole_has_no_part_in_an_interval() -> None:
    """Of one topic 10 documents are judged whole, and 4 of 40 others, of which 2 are relevant: 10 and 20 of 0 to 40."""
    values = np.array([1.0] * 10 + [1.0, 1.0, 0.0, 0.0])
    design = Design(np.repeat([0, 1], [10, 4]), np.array([10, 40]), np.array([0, 0]), 1)
    found = mean_estimate(design, design.totals(values), values)
    variance = 40**2 * (1 - 4 / 40) / 4 / 3
    assert (found.value, found.error) == (30.0, pytest.approx(math.sqrt(variance)))
    ends = ratio_interval(20.0, math.sqrt(variance), 4, 0.95, share=False)
    assert found.limits == pytest.approx([10 + end for end in ends])
