"""Estimates from samples: unbiased sums against full judgments, intervals that cover, and what is refused."""

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
from judged.labels.estimation import Design, Estimate, Estimates, design_of, estimated, form_of, mean_estimate, shares
from judged.labels.pooling import allocated, candidates, draw, strata_of
from judged.scoring.judging.unjudged import select_labels
from judged.scoring.measures import parse
from judged.scoring.measures.registry import REGISTRY
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
                {"RBP": "RBP(p=0.8)"}.get(
                    name, name + ("@10" if entry.cutoff_name == "cutoff" and entry.cutoff else "")
                )
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
            seen = select_labels(whole, kept)
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
        design, seen = Design(stratum[place[kept]], sizes, topic, topics), select_labels(whole, kept)
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
    assert np.mean(held) >= 0.92


def test_what_is_judged_whole_has_no_part_in_an_interval() -> None:
    """Of one topic 10 documents are judged whole, and 4 of 40 others, of which 2 are relevant: 10 and 20 of 0 to 40."""
    values = np.array([1.0] * 10 + [1.0, 1.0, 0.0, 0.0])
    design = Design(np.repeat([0, 1], [10, 4]), np.array([10, 40]), np.array([0, 0]), 1)
    found = mean_estimate(design, design.totals(values), values)
    variance = 40**2 * (1 - 4 / 40) / 4 / 3
    assert (found.value, found.error) == (30.0, pytest.approx(math.sqrt(variance)))
    ends = ratio_interval(20.0, math.sqrt(variance), 4, 0.95, share=False, counted=True)
    assert found.limits == pytest.approx([10 + end for end in ends])


def by_hand(grades: dict[str, int], kept: tuple[int, ...]) -> tuple[Any, Design]:
    """Return a judged list of one topic, of whose documents these are in a sample, drawn of all together."""
    whole = judge({"q": grades}, {"q": list("abcdef")})
    inside = np.isin(np.arange(len(grades)), kept)
    return select_labels(whole, inside), Design(
        np.zeros(len(kept), dtype=int), np.array([len(grades)]), np.array([0]), 1
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
    """Of six documents a, d, f, and e are in the sample; Tin's correction adds the covariance over the squared total.

    The variance of a total of 4 of 6 is 6 * 2 / 4 = 3 times the variance of the sample.
    """
    seen, design = by_hand({"a": 1, "b": 1, "c": 0, "d": 2, "f": 1, "e": 0}, (0, 3, 4, 5))
    found = estimated(parse(name), seen, design)
    above, known = 1.5 * sum(hits), 1.5 * sum(relevant)
    linear = np.array(hits) - above / known * np.array(relevant)
    bias = -3 * np.cov(linear, relevant)[0, 1] / known**2
    assert found.value == pytest.approx(above / known - bias)
    assert found.error == pytest.approx(math.sqrt(3 * np.var(linear / known, ddof=1)))
    assert found.topics == pytest.approx([found.value])


def test_topics_without_a_relevant_document_in_the_sample_do_not_count() -> None:
    whole = judge({"p": {"a": 1, "b": 0, "c": 1}, "q": {"a": 0, "b": 0}}, {"p": list("abc"), "q": list("ab")})
    design = Design(np.repeat([0, 1], [3, 2]), np.array([3, 2]), np.array([0, 1]), 2)
    for name, value in (("R@1", 0.5), ("AP", (1 + 2 / 3) / 2)):
        found = estimated(parse(name), whole, design)
        assert found.topics.tolist() == pytest.approx([value, math.nan], nan_ok=True)
        assert (found.value, found.error) == (pytest.approx(value), 0.0)


def test_how_a_sum_of_precisions_changes_with_each_weight() -> None:
    """Derivatives by the weight of each unit, over its probability, of the sum over single units and pairs."""
    from judged.labels.estimation import _pairs_in_order  # pyright: ignore[reportPrivateUsage]

    rank, topic = np.array([4, 0, 1, 2, 7, 3]), np.array([0, 0, 0, 1, 0, 1])
    design = Design(np.array([0, 0, 0, 1, 2, 1]), np.array([6, 4, 1]), np.array([0, 1, 0]), 2)
    hits = np.array([0, 2, 3, 4])
    joint, own = design.together(np.arange(6)), design.probability

    def total(weights: Any, of: int) -> float:
        mine = [unit for unit in hits if topic[unit] == of]
        single = sum(weights[i] / own[i] / rank[i] for i in mine)
        return single + sum(
            weights[i] * weights[j] / joint[i, j] / rank[i] for i in mine for j in mine if rank[j] < rank[i]
        )

    sums, slopes = _pairs_in_order(design, hits, rank, topic)
    assert sums == pytest.approx([total(np.ones(6), 0), total(np.ones(6), 1)])
    for unit in range(6):
        more, less = (np.ones(6) + sign * 0.001 * (np.arange(6) == unit) for sign in (1, -1))
        derivative = (total(more, topic[unit]) - total(less, topic[unit])) / 0.002
        assert slopes[unit] == pytest.approx(own[unit] * derivative)
    none, flat = _pairs_in_order(design, hits[:0], rank, topic)
    assert (none.tolist(), flat.tolist()) == ([0.0, 0.0], [0.0] * 6)


def test_totals_over_topics_are_means_times_their_number() -> None:
    runs, qrels = collection(4, 9)
    drawn = pool(runs, sample=120)
    kept = set(zip(drawn.pairs["query_id"].to_pylist(), drawn.pairs["doc_id"].to_pylist(), strict=True))
    some = {topic: {doc: grade for doc, grade in docs.items() if (topic, doc) in kept} for topic, docs in qrels.items()}
    seen = judge(some, runs["first"])
    design = design_of(drawn, seen)
    for level in (0.8, 0.95):
        base, values = shares(parse("NumRel"), seen)
        mean = mean_estimate(design, base + design.totals(values), values, level)
        found = estimated(parse("NumRel"), seen, design, level)
        assert (found.value, found.error) == pytest.approx((4 * mean.value, 4 * mean.error))
        assert mean.limits is not None
        assert found.limits == pytest.approx((4 * mean.limits[0], 4 * mean.limits[1]))
        assert estimate(drawn, qrels, {"first": runs["first"]}, "NumRel", level=level).rows[0].ci == pytest.approx(
            found.limits
        )
    assert estimate(drawn, qrels, {"first": runs["first"]}, "NumRel").level == 0.95
    for level in (0.0, 1.0):
        with pytest.raises(InputError, match="level"):
            estimate(drawn, qrels, runs, "P@2", level=level)


def test_tables_and_sentences_of_estimates() -> None:
    rows = (Estimate("a", "P@2", 0.5, (0.25, 0.75), 0.125, "sum"), Estimate("a", "AP", 0.25, None, 0.0625, "ratio"))
    by_topic = {
        ("a", "P@2"): (np.array([1.0, 0.0]), np.array([0.5, 0.25])),
        ("a", "AP"): (np.zeros(2), np.full(2, math.nan)),
    }
    found = Estimates(rows, ("q1", "q2"), by_topic, 0.9)
    table, said, topics = found.blocks()
    grid = table.grid()  # type: ignore[attr-defined]
    assert (grid.header, grid.labels) == (("run", "measure", "value", "error", "estimator"), 2)
    assert [tuple(map(str, row)) for row in grid.rows] == [
        ("a", "P@2", "0.5000 [0.250, 0.750]", "0.1250", "sum"), ("a", "AP", "0.2500", "0.0625", "ratio"),
    ]  # fmt: skip
    assert (topics.labels, topics.folded) == (3, True)  # type: ignore[attr-defined]
    assert [tuple(row.values()) for row in topics.records()] == [  # type: ignore[attr-defined]
        ("a", "P@2", "q1", 1.0, 0.5), ("a", "P@2", "q2", 0.0, 0.25), ("a", "AP", "q1", 0.0, None),
        ("a", "AP", "q2", 0.0, None),
    ]  # fmt: skip
    assert topics.grid().header == ("run", "measure", "topic", "value", "error")  # type: ignore[attr-defined]
    assert said.texts == found.sentences  # type: ignore[attr-defined]
    assert "The 90% intervals" in found.sentences[0]
    assert (len(found.sentences), found.facts()) == (2, {"level": 0.9})
    assert len(Estimates(rows[:1], ("q1", "q2"), by_topic, 0.9).sentences) == 1
    assert found.title == "Estimated from a sample of the pool, 2 topics"


def test_notes_of_samples_that_say_too_little() -> None:
    """No relevant document but one came into the sample; or none, so that all are alike; or all were drawn."""
    docs = [f"d{at:02}" for at in range(30)]
    run = {"q": docs}
    drawn = pool(run, sample=10, strata=(), seed=1)
    kept = drawn.pairs["doc_id"].to_pylist()
    grades = dict.fromkeys(docs, 0)
    rules = {}
    for name, one in (("none", {}), ("one", {kept[0]: 1}), ("many", dict.fromkeys(kept[:5], 1))):
        found = estimate(drawn, {"q": {**grades, **one}}, run, ["P@30", "R@5"])
        rules[name] = [(note.rule, note.subject) for note in found.notes]
        assert (found.rows[0].ci is None) == (name != "many")
    assert rules == {
        "none": [("no-variation", "P@30")], "many": [],
        "one": [("too-few-relevant", "P@30"), ("no-variation", "R@5")],  # recall of one document does not vary
    }  # fmt: skip
    assert estimate(pool(run), {"q": grades}, run, ["P@30"]).notes == ()


def test_sizes_of_strata_are_whole_numbers() -> None:
    runs, qrels = collection(4, 9)
    drawn = pool(runs, sample=80)
    sizes = drawn.sizes
    kept = set(zip(drawn.pairs["query_id"].to_pylist(), drawn.pairs["doc_id"].to_pylist(), strict=True))
    some = {topic: {doc: grade for doc, grade in docs.items() if (topic, doc) in kept} for topic, docs in qrels.items()}
    seen = judge(some, runs["first"])
    import pyarrow as pa

    place = sizes.column_names.index("of")
    for off, known in ((1e-5, True), (1e-3, False), (-1e-3, False)):
        odd: Any = SimpleNamespace(
            pairs=drawn.pairs,
            sizes=sizes.set_column(place, "of", pa.array(np.asarray(sizes["of"], dtype=float) + off)),
        )
        if known:
            assert design_of(odd, seen).sizes.tolist() == design_of(drawn, seen).sizes.tolist()
        else:
            with pytest.raises(InputError, match="probabilities of a stratum"):
                design_of(odd, seen)
