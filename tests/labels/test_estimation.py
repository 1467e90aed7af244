"""Estimates from samples: unbiased against full judgments, coverage of intervals, and errors."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from calibration import labels

from judged import evaluate, judge
from judged.errors import InputError, MeasureError
from judged.labels import Pool, estimate, pool
from judged.labels.estimation import (
    Estimates,
    RunEstimate,
    StratifiedSample,
    estimate_mean,
    estimator_of,
    match_sample,
    mean_estimate,
    score_contributions,
)
from judged.labels.pooling import allocate, assign_strata, candidates, draw
from judged.scoring.judging.unjudged import select_labels
from judged.scoring.measures import parse
from judged.scoring.measures.registry import REGISTRY
from judged.stats.ratio import ratio_interval

SUMS = ("P@10", "DCG@10", "RBP(p=0.8)", "NumRelRet", "NumRel", "SetP", "CG@20", "SDCG(max=2)@10", "INSQ(max=2,T=1)")


def collection(topics: int, seed: int) -> tuple[dict[str, Any], dict[str, dict[str, int]]]:
    """Build runs that rank relevant documents early, and judgments of all returned documents."""
    random = np.random.default_rng(seed)
    runs: dict[str, dict[str, list[str]]] = {name: {} for name in ("first", "second", "third")}
    qrels: dict[str, dict[str, int]] = {}
    for topic in (f"q{i}" for i in range(topics)):
        utility = random.gamma(0.5, size=120)
        qrels[topic] = {f"d{i}": int(gain > 0.6) + int(gain > 1.5) for i, gain in enumerate(utility)}
        for run in runs.values():
            order = np.argsort(-(utility + random.normal(0, 0.7, 120)))
            run[topic] = [f"d{i}" for i in order[:60]]
    returned = {topic: {doc for run in runs.values() for doc in run[topic]} for topic in qrels}
    return runs, {topic: {doc: grades[doc] for doc in sorted(returned[topic])} for topic, grades in qrels.items()}


def select_pairs(qrels: dict[str, dict[str, int]], sampled: Pool) -> dict[str, dict[str, int]]:
    pairs = set(zip(sampled.pairs["query_id"].to_pylist(), sampled.pairs["doc_id"].to_pylist(), strict=True))
    return {topic: {doc: docs[doc] for doc in docs if (topic, doc) in pairs} for topic, docs in qrels.items()}


def summable_measures() -> list[str]:
    """List the measures that are estimated as a sum, with parameters if they need them."""
    names = []
    for name, entry in REGISTRY.items():
        try:
            measure = parse(
                {"RBP": "RBP(p=0.8)"}.get(
                    name, name + ("@10" if entry.cutoff_name == "cutoff" and entry.cutoff else "")
                )
            )
            if estimator_of(measure) == "sum":
                names.append(str(measure))
        except Exception:  # noqa: BLE001, S112  needs parameters that only some measures have
            continue
    return names


def test_estimates_from_a_fully_judged_pool_equal_the_scores() -> None:
    runs, qrels = collection(12, 1)
    names = sorted({*summable_measures(), *SUMS, "R@20", "SetR", "AP", "AP(rel=2)"})
    assert len(names) > 10
    estimates = estimate(pool(runs), qrels, runs, names)
    scores = {(row.run, row.measure): row.value for row in evaluate(qrels, runs, names).estimates(ci="none")}
    assert len(estimates.rows) == 3 * len(names)
    for row in estimates.rows:
        assert row.value == pytest.approx(scores[row.run, row.measure], abs=1e-12), row.measure
        assert row.error == 0


def test_sums_are_unbiased_over_all_samples_of_a_small_pool() -> None:
    """All six equally likely samples: two of four documents in one stratum, one of one in the other."""
    runs = {"run": {"q": ["a", "b", "c", "d", "e"]}}
    grades = {"a": 1, "b": 0, "c": 2, "d": 1, "e": 0}
    full = judge({"q": grades}, runs["run"])
    for name in ("P@3", "DCG@4", "RBP(p=0.5)", "NumRel"):
        measure, values, squares = parse(name), [], []
        for rows in itertools.combinations(range(1, 5), 2):
            is_sampled = np.isin(np.arange(5), (0, *rows))
            seen = select_labels(full, is_sampled)
            sample = StratifiedSample(np.array([0, 1, 1]), np.array([1, 4]), np.array([0, 0]), 1)
            mean = estimate_mean(measure, seen, sample)
            values.append(mean.value)
            squares.append(mean.error**2)
        assert np.mean(values) == pytest.approx(measure(full)[0])
        assert np.mean(squares) == pytest.approx(np.var(values))  # the estimated variance is unbiased, too


def test_the_numerator_of_ap_is_unbiased() -> None:
    """The numerator of AP over all samples of three of five: the sum of precisions at relevant documents."""
    from judged.labels.estimation import _sum_of_precisions  # pyright: ignore[reportPrivateUsage]

    relevant, rank, topic = np.array([1, 0, 1, 1, 1]), np.array([1, 2, 3, 4, 6]), np.zeros(5, dtype=np.int64)
    sums = []
    for rows in itertools.combinations(range(5), 3):
        units = np.array(rows)
        sample = StratifiedSample(np.zeros(3, dtype=np.int64), np.array([5]), np.array([0]), 1)
        sums.append(_sum_of_precisions(sample, np.flatnonzero(relevant[units]), rank[units], topic[units])[0][0])
    assert np.mean(sums) == pytest.approx(1 / 1 + 2 / 3 + 3 / 4 + 4 / 6)


def simulate_estimates(topics: int, size: int, names: tuple[str, ...], times: int) -> dict[str, np.ndarray]:
    """Return errors of estimates, and whether intervals cover the truth, over samples of `size` documents a topic."""
    runs, qrels = collection(topics, 7)
    documents = candidates(runs, 60)
    bands, stratum, sizes = assign_strata(documents, (10, 30, 60))
    topic = documents.topic[np.unique(stratum, return_index=True)[1]]
    sample_sizes = allocate(size * topics, sizes, np.array([4.0, 2.0, 1.0])[bands])
    full = judge(qrels, runs["first"])
    row_of_pair = {
        (documents.query_ids[code], doc): i
        for i, (code, doc) in enumerate(zip(documents.topic, documents.doc, strict=True))
    }
    docs = [full.qrels.index.row_names[i] for i in full.label_row]
    pool_row = np.array(
        [row_of_pair[full.query_ids[code], doc] for code, doc in zip(full.label_topic, docs, strict=True)]
    )
    random, outcomes = np.random.default_rng(11), {name: np.zeros((2, times)) for name in names}
    true_values = {}
    for name in names:
        scores = parse(name)(full)
        true_values[name] = scores.sum() if parse(name).entry.aggregate == "sum" else scores.mean()
    for trial in range(times):
        is_sampled = np.zeros(len(stratum), dtype=np.bool_)
        is_sampled[draw(stratum, sample_sizes, random)] = True
        is_labeled = is_sampled[pool_row]
        sample = StratifiedSample(stratum[pool_row[is_labeled]], sizes, topic, topics)
        partial = select_labels(full, is_labeled)
        for name in names:
            mean = estimate_mean(parse(name), partial, sample)
            low, high = mean.limits
            outcomes[name][:, trial] = mean.value - true_values[name], low <= true_values[name] <= high
    return outcomes


def test_sums_are_unbiased_and_their_intervals_cover_on_simulated_data() -> None:
    """40 topics, 25 of about 100 documents each: bias below 3 standard errors, coverage of 93 to 97%."""
    times = 1500
    outcomes = simulate_estimates(40, 25, ("P@10", "DCG@10", "RBP(p=0.8)", "NumRel"), times)
    for name, (errors, covered) in outcomes.items():
        assert abs(errors.mean()) < 3 * errors.std() / np.sqrt(times), name
        assert 0.93 <= covered.mean() <= 0.97, name


def test_contributions_of_documents_add_up_to_the_score() -> None:
    runs, qrels = collection(5, 3)
    judged = judge(qrels, runs["second"])
    for name in SUMS:
        measure = parse(name)
        base_scores, contributions = score_contributions(measure, judged)
        totals = base_scores + np.bincount(judged.label_topic, contributions, minlength=len(judged))
        assert totals == pytest.approx(measure(judged)), name


def test_a_sample_read_back_gives_the_same_estimates(tmp_path: Any) -> None:
    runs, qrels = collection(6, 2)
    original = pool(runs, sample=120, seed=4)
    original.save(tmp_path / "pool.csv")
    estimates, reloaded = (
        estimate(sample, qrels, runs, "P@10, AP") for sample in (original, Pool.read(tmp_path / "pool.csv"))
    )
    assert estimates.json() == reloaded.json()
    assert [row.ci is None for row in estimates.rows] == [row.estimator == "ratio" for row in estimates.rows]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nDCG@10", "ideal ranking"),
        ("RR", "relevance of other documents"),
        ("ERR(max=4)@10", "relevance of other documents"),
        ("Judged@10", "can compute the score"),
        ("P(judged_only=true)@10", "relevance of other documents"),
        ("Rprec", "ideal ranking"),
        ("P@10 where kind == 'law'", "condition on topics"),
        ("AP@10", "ideal ranking"),
    ],
)
def test_other_measures_are_refused_with_the_reason(name: str, reason: str) -> None:
    with pytest.raises(MeasureError, match=reason):
        estimate(pool({"run": {"q": ["a", "b"]}}), {"q": {"a": 1, "b": 0}}, {"run": {"q": ["a", "b"]}}, name)


def test_pools_without_probabilities_or_judgments_are_refused() -> None:
    runs = {"run": {"q": ["a", "b", "c"]}}
    with pytest.raises(InputError, match="must be a random sample"):
        estimate(pool(runs, budget=2), {"q": {"a": 1}}, runs, "P@2")
    with pytest.raises(InputError, match="3 pairs and 1 judgment"):
        estimate(pool(runs), {"q": {"a": 1}}, runs, "P@2")


def test_the_variance_is_that_of_the_textbook() -> None:
    """Cochran 1977, (5.6): the sum over strata of N (N - n) s^2 / n; by hand 6 * 3 * 1 / 3 + 10 * 8 * 2 / 2 = 86."""
    sample = StratifiedSample(np.array([0, 0, 0, 1, 1]), np.array([6, 10]), np.array([0, 0]), 1)
    values = np.array([1.0, 2.0, 3.0, 4.0, 6.0])
    mean = mean_estimate(sample, sample.totals(values), values)
    assert mean.value == pytest.approx(6 * 2 + 10 * 5)
    assert mean.error**2 == pytest.approx(86)


def test_one_sampled_unit_of_several_raises() -> None:
    with pytest.raises(InputError, match="at least two sampled units"):
        StratifiedSample(np.array([0]), np.array([5]), np.array([0]), 1)


def test_a_matched_sample_has_the_sizes_of_the_pool() -> None:
    runs, qrels = collection(4, 9)
    sampled = pool(runs, sample=80)
    sample_qrels = select_pairs(qrels, sampled)
    sample = match_sample(sampled, judge(sample_qrels, runs["first"]))
    assert (sample.sample_sizes.sum(), sample.sizes.sum()) == (80, len(pool(runs)))


def test_a_sample_without_variation_says_so() -> None:
    run = {"q": {name: -float(rank) for rank, name in enumerate("abcdef")}}
    sampled = pool(run, sample=4, strata=(), seed=1)
    docs = sampled.pairs["doc_id"].to_pylist()
    assert len(docs) < 6
    estimates = estimate(sampled, {"q": dict.fromkeys(docs, 0)}, run, ["P@6"])
    assert [note.rule for note in estimates.notes] == ["no-variation"]


@pytest.mark.parametrize("topics", [6, 12])
def test_intervals_cover_if_relevant_documents_are_rare(topics: int) -> None:
    """300 samples; the coverage of Student's symmetric interval was 88 and 91%."""
    rng, covered = np.random.default_rng(topics), list[bool]()
    for _ in range(300):
        covered += labels.sampled(rng, "a rare grade", topics)["sampled NumRel"]
    assert np.mean(covered) >= 0.92


def test_fully_judged_strata_do_not_widen_an_interval() -> None:
    """One topic: a stratum of 10 relevant documents, all judged, and 4 of 40 others, 2 of them relevant: 10 + 20."""
    values = np.array([1.0] * 10 + [1.0, 1.0, 0.0, 0.0])
    sample = StratifiedSample(np.repeat([0, 1], [10, 4]), np.array([10, 40]), np.array([0, 0]), 1)
    mean = mean_estimate(sample, sample.totals(values), values)
    variance = 40**2 * (1 - 4 / 40) / 4 / 3
    assert (mean.value, mean.error) == (30.0, pytest.approx(math.sqrt(variance)))
    limits = ratio_interval(20.0, math.sqrt(variance), 4, 0.95, share=False, counted=True)
    assert mean.limits == pytest.approx([10 + limit for limit in limits])


def sampled_list(grades: dict[str, int], rows: tuple[int, ...]) -> tuple[Any, StratifiedSample]:
    """Return a judged list of one topic of which `rows` are in a simple random sample, and the sample."""
    full = judge({"q": grades}, {"q": list("abcdef")})
    is_sampled = np.isin(np.arange(len(grades)), rows)
    return select_labels(full, is_sampled), StratifiedSample(
        np.zeros(len(rows), dtype=int), np.array([len(grades)]), np.array([0]), 1
    )


@pytest.mark.parametrize(
    ("name", "hits", "relevant"),
    [
        ("R@3", [1, 0, 0, 0], [1, 1, 1, 0]),  # a is at rank 1, d and f below the third
        ("R@4", [1, 1, 0, 0], [1, 1, 1, 0]), ("SetR", [1, 1, 1, 0], [1, 1, 1, 0]),
        ("R(rel=2)@6", [0, 1, 0, 0], [0, 1, 0, 0]),
    ],
)  # fmt: skip
def test_recall_of_a_sample_by_hand(name: str, hits: list[int], relevant: list[int]) -> None:
    """Documents a, d, f, and e of six are sampled. Tin's correction adds the covariance over the squared total.

    The variance of a total from 4 of 6 units is 6 * 2 / 4 = 3 times the sample variance.
    """
    judged, sample = sampled_list({"a": 1, "b": 1, "c": 0, "d": 2, "f": 1, "e": 0}, (0, 3, 4, 5))
    mean = estimate_mean(parse(name), judged, sample)
    numerator, denominator = 1.5 * sum(hits), 1.5 * sum(relevant)
    residuals = np.array(hits) - numerator / denominator * np.array(relevant)
    bias = -3 * np.cov(residuals, relevant)[0, 1] / denominator**2
    assert mean.value == pytest.approx(numerator / denominator - bias)
    assert mean.error == pytest.approx(math.sqrt(3 * np.var(residuals / denominator, ddof=1)))
    assert mean.topics == pytest.approx([mean.value])


def test_topics_without_a_relevant_document_in_the_sample_do_not_count() -> None:
    judged = judge({"p": {"a": 1, "b": 0, "c": 1}, "q": {"a": 0, "b": 0}}, {"p": list("abc"), "q": list("ab")})
    sample = StratifiedSample(np.repeat([0, 1], [3, 2]), np.array([3, 2]), np.array([0, 1]), 2)
    for name, value in (("R@1", 0.5), ("AP", (1 + 2 / 3) / 2)):
        mean = estimate_mean(parse(name), judged, sample)
        assert mean.topics.tolist() == pytest.approx([value, math.nan], nan_ok=True)
        assert (mean.value, mean.error) == (pytest.approx(value), 0.0)


def test_derivatives_of_the_sum_of_precisions() -> None:
    """Numerical derivatives by the weight of each unit, times its inclusion probability."""
    from judged.labels.estimation import _sum_of_precisions  # pyright: ignore[reportPrivateUsage]

    rank, topic = np.array([4, 0, 1, 2, 7, 3]), np.array([0, 0, 0, 1, 0, 1])
    sample = StratifiedSample(np.array([0, 0, 0, 1, 2, 1]), np.array([6, 4, 1]), np.array([0, 1, 0]), 2)
    hits = np.array([0, 2, 3, 4])
    joint, marginal = sample.joint_probability(np.arange(6)), sample.inclusion_probability

    def total(weights: Any, topic_code: int) -> float:
        topic_hits = [unit for unit in hits if topic[unit] == topic_code]
        single_terms = sum(weights[i] / marginal[i] / rank[i] for i in topic_hits)
        return single_terms + sum(
            weights[i] * weights[j] / joint[i, j] / rank[i] for i in topic_hits for j in topic_hits if rank[j] < rank[i]
        )

    sums, slopes = _sum_of_precisions(sample, hits, rank, topic)
    assert sums == pytest.approx([total(np.ones(6), 0), total(np.ones(6), 1)])
    for unit in range(6):
        more, less = (np.ones(6) + sign * 0.001 * (np.arange(6) == unit) for sign in (1, -1))
        derivative = (total(more, topic[unit]) - total(less, topic[unit])) / 0.002
        assert slopes[unit] == pytest.approx(marginal[unit] * derivative)
    no_sums, no_slopes = _sum_of_precisions(sample, hits[:0], rank, topic)
    assert (no_sums.tolist(), no_slopes.tolist()) == ([0.0, 0.0], [0.0] * 6)


def test_totals_over_topics_are_means_times_the_number_of_topics() -> None:
    runs, qrels = collection(4, 9)
    sampled = pool(runs, sample=120)
    sample_qrels = select_pairs(qrels, sampled)
    judged = judge(sample_qrels, runs["first"])
    sample = match_sample(sampled, judged)
    for level in (0.8, 0.95):
        base_scores, contributions = score_contributions(parse("NumRel"), judged)
        mean = mean_estimate(sample, base_scores + sample.totals(contributions), contributions, level)
        total = estimate_mean(parse("NumRel"), judged, sample, level)
        assert (total.value, total.error) == pytest.approx((4 * mean.value, 4 * mean.error))
        assert mean.limits is not None
        assert total.limits == pytest.approx((4 * mean.limits[0], 4 * mean.limits[1]))
        assert estimate(sampled, qrels, {"first": runs["first"]}, "NumRel", level=level).rows[0].ci == pytest.approx(
            total.limits
        )
    assert estimate(sampled, qrels, {"first": runs["first"]}, "NumRel").level == 0.95
    for level in (0.0, 1.0):
        with pytest.raises(InputError, match="level"):
            estimate(sampled, qrels, runs, "P@2", level=level)


def test_tables_and_sentences_of_estimates() -> None:
    rows = (
        RunEstimate("a", "P@2", 0.5, (0.25, 0.75), 0.125, "sum"),
        RunEstimate("a", "AP", 0.25, None, 0.0625, "ratio"),
    )
    by_topic = {
        ("a", "P@2"): (np.array([1.0, 0.0]), np.array([0.5, 0.25])),
        ("a", "AP"): (np.zeros(2), np.full(2, math.nan)),
    }
    estimates = Estimates(rows, ("q1", "q2"), by_topic, 0.9)
    table, sentences, topics = estimates.blocks()
    grid = table.grid()  # type: ignore[attr-defined]
    assert (grid.header, grid.labels) == (("run", "measure", "value", "std. error", "estimator"), 2)
    assert [tuple(map(str, row)) for row in grid.rows] == [
        ("a", "P@2", "0.5000 [0.250, 0.750]", "0.1250", "sum"), ("a", "AP", "0.2500", "0.0625", "ratio"),
    ]  # fmt: skip
    assert (topics.labels, topics.folded) == (3, True)  # type: ignore[attr-defined]
    assert [tuple(row.values()) for row in topics.records()] == [  # type: ignore[attr-defined]
        ("a", "P@2", "q1", 1.0, 0.5), ("a", "P@2", "q2", 0.0, 0.25), ("a", "AP", "q1", 0.0, None),
        ("a", "AP", "q2", 0.0, None),
    ]  # fmt: skip
    assert topics.grid().header == ("run", "measure", "topic", "value", "std. error")  # type: ignore[attr-defined]
    assert sentences.texts == estimates.sentences  # type: ignore[attr-defined]
    assert "90% CI" in estimates.sentences[0]
    assert (len(estimates.sentences), estimates.facts()) == (2, {"level": 0.9})
    assert len(Estimates(rows[:1], ("q1", "q2"), by_topic, 0.9).sentences) == 1
    assert estimates.title == "Scores estimated from a sample of the pool, 2 topics"


def test_notes_of_samples_without_an_interval() -> None:
    """The sample has one relevant document, or none (no variation), or contains the full pool."""
    docs = [f"d{i:02}" for i in range(30)]
    run = {"q": docs}
    sampled = pool(run, sample=10, strata=(), seed=1)
    sampled_docs = sampled.pairs["doc_id"].to_pylist()
    grades = dict.fromkeys(docs, 0)
    rules = {}
    for name, relevant in (("none", {}), ("one", {sampled_docs[0]: 1}), ("many", dict.fromkeys(sampled_docs[:5], 1))):
        estimates = estimate(sampled, {"q": {**grades, **relevant}}, run, ["P@30", "R@5"])
        rules[name] = [(note.rule, note.subject) for note in estimates.notes]
        assert (estimates.rows[0].ci is None) == (name != "many")
    assert rules == {
        "none": [("no-variation", "P@30")], "many": [],
        "one": [("too-few-relevant", "P@30"), ("no-variation", "R@5")],  # recall of one document does not vary
    }  # fmt: skip
    assert estimate(pool(run), {"q": grades}, run, ["P@30"]).notes == ()


def test_sizes_of_strata_are_whole_numbers() -> None:
    runs, qrels = collection(4, 9)
    sampled = pool(runs, sample=80)
    sizes = sampled.sizes
    sample_qrels = select_pairs(qrels, sampled)
    judged = judge(sample_qrels, runs["first"])
    import pyarrow as pa

    column = sizes.column_names.index("size")
    for error, is_valid in ((1e-5, True), (1e-3, False), (-1e-3, False)):
        changed_pool: Any = SimpleNamespace(
            pairs=sampled.pairs,
            sizes=sizes.set_column(column, "size", pa.array(np.asarray(sizes["size"], dtype=float) + error)),
        )
        if is_valid:
            assert match_sample(changed_pool, judged).sizes.tolist() == match_sample(sampled, judged).sizes.tolist()
        else:
            with pytest.raises(InputError, match="sampled share of the document's stratum"):
                match_sample(changed_pool, judged)
