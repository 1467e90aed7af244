"""Comparisons: numbers equal those of the tests and of `evaluate`, for the right pairs."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from comparison_made import lists, scores
from judged import InputError, JudgedWarning, MeasureError, compare, evaluate
from judged.comparison.choices import JOINT_TESTS, all_tests
from judged.data import sample
from judged.results.headline import MAX_WORDS
from judged.scoring.evaluation import Scores
from judged.scoring.measures.aggregates import logarithms
from judged.stats import dunnett, nemenyi, randomized_dunnett
from judged.stats import multiple as tukey
from judged.stats.correction import adjust
from judged.stats.effect import effect_sizes, equivalence, wins
from judged.stats.paired import TESTS, paired_test
from judged.stats.sample_size import detectable

RNG = np.random.default_rng(5)
RANKS = {
    name: RNG.integers(1, top, 15).tolist() for name, top in {"bm25": 6, "dense": 4, "rrf": 3, "random": 19}.items()
}
SCORES = scores(["RR", "P@2"], **RANKS)
PAIRED = sorted(set(TESTS) - {"ratio", "bayes"})


def row(run: str, measure: str = "RR", table=SCORES) -> np.ndarray:
    return table.values[table.run_names.index(run), table.measure_names.index(measure)]


# --- the numbers are those of the statistics ----------------------------------------------------------


@pytest.mark.parametrize("test", PAIRED)
def test_pairs_are_those_of_the_paired_tests(test: str) -> None:
    result = SCORES.compare(test=test, correction="bonferroni", alpha=0.1, resamples=2000, seed=3)
    for measure in ("RR", "P@2"):
        pairs = result.measure(measure).pairs
        assert {frozenset((pair.first, pair.second)) for pair in pairs} == set(map(frozenset, combinations(RANKS, 2)))
        for pair in pairs:
            level = 1 - 0.1 / 6  # of intervals: one of six comparisons
            alone = paired_test(
                row(pair.first, measure),
                row(pair.second, measure),
                test,
                level=level,
                resamples=2000,
                seed=3,
                max_difference=1.0,
            )
            assert pair.result.difference == pytest.approx(alone.difference, abs=1e-15)
            assert pair.result.p == pytest.approx(alone.p, rel=1e-9)
            assert pair.result.adjusted == pytest.approx(min(1.0, 6 * alone.p), rel=1e-9)
            assert pair.significant == (pair.result.adjusted <= 0.1)
            assert pair.result.interval == pytest.approx(alone.interval, abs=1e-12) or alone.interval is None


@pytest.mark.parametrize(("measure", "reason"), [("DCG@5", "no upper bound"), ("GMAP", "geometric mean")])
def test_the_bounded_test_refuses_measures_without_bounds(measure: str, reason: str) -> None:
    table = scores(["RR", measure], **RANKS)
    with pytest.raises(InputError, match=reason):
        table.compare(test="bounded")


def test_the_bounded_test_knows_the_range_of_each_measure() -> None:
    table = scores(["RR", "NumRel"], **RANKS)
    result = table.compare(test="bounded")
    alone = paired_test(row("bm25"), row("random"), "bounded", max_difference=1.0)
    assert result.pair("bm25", "random", "RR").result.p == pytest.approx(alone.p)
    assert "not tested" in result.measure("NumRel").untested
    assert all(np.isnan(pair.detectable) for pair in result.pairs)


def test_estimates_are_those_of_evaluate() -> None:
    result = SCORES.compare(test="t")
    for measure in result.measures:
        assert measure.estimates == tuple(
            estimate for estimate in SCORES.estimates() if estimate.measure == measure.name
        )
    assert [estimate.ci for estimate in SCORES.compare(test="t", ci="none").measures[0].estimates] == [None] * 4
    wide = SCORES.compare(test="t", ci="t", alpha=0.01).measures[0].estimates
    assert wide == tuple(estimate for estimate in SCORES.estimates(ci="t", level=0.99) if estimate.measure == "RR")


def test_effects_wins_equivalence_and_detectable_difference() -> None:
    result = SCORES.compare(test="t", min_difference=0.3, margin=0.2)
    for pair in result.measures[0].pairs:
        first, second = row(pair.first), row(pair.second)
        assert pair.effects == effect_sizes(first, second, reference=SCORES.values[:, 0])
        assert pair.wins == wins(first, second, 0.3)
        assert pair.equivalence == equivalence(first, second, 0.2)
        assert pair.detectable == detectable(second - first, 0.05 / 6)
        assert pair.sharing == 6
    alone = SCORES.compare(test="t", correction="bh").measures[0].pairs[0]
    assert alone.detectable == detectable(row(alone.second) - row(alone.first), 0.05)


@pytest.mark.parametrize(
    ("test", "call"),
    [
        ("tukey", tukey.tukey_hsd),
        ("randomized-tukey", tukey.randomized_tukey),
        ("nemenyi", nemenyi),
    ],
)
def test_all_pairs_at_once(test: str, call: Callable[..., Any]) -> None:
    resampled = {"resamples": 3000, "seed": 1}
    result = SCORES.compare(test=test, **resampled).measure("RR")
    matrices = call(SCORES.values[:, 0], **(resampled if test.startswith("randomized") else {}))
    assert result.overall == matrices.sentence
    assert len(result.pairs) == 6
    for pair in result.pairs:
        rows = SCORES.run_names.index(pair.first), SCORES.run_names.index(pair.second)
        assert pair.result.difference == matrices.differences[rows]
        assert pair.result.p == pair.result.adjusted == matrices.p[rows]
        assert pair.significant == matrices.significant[rows]
        assert pair.result.interval == (None if matrices.low is None else (matrices.low[rows], matrices.high[rows]))
        assert pair.result.n == 15


@pytest.mark.parametrize(("test", "call"), [("dunnett", dunnett), ("randomized-dunnett", randomized_dunnett)])
def test_all_against_one_at_once(test: str, call: Callable[..., Any]) -> None:
    resampled = {"resamples": 3000, "seed": 1}
    result = SCORES.compare(test=test, baseline="dense", **resampled).measure("RR")
    alone = call(SCORES.values[:, 0], 1, **(resampled if test.startswith("randomized") else {}))
    assert [(pair.first, pair.second) for pair in result.pairs] == [("dense", row) for row in ("bm25", "rrf", "random")]
    assert [pair.result.p for pair in result.pairs] == alone.p[[0, 2, 3]].tolist()
    assert [pair.result.difference for pair in result.pairs] == alone.differences[[0, 2, 3]].tolist()


def test_joint_tests_correct_for_all_pairs_even_with_a_baseline() -> None:
    for test, family in (("tukey", 6), ("dunnett", 3)):
        result = SCORES.compare(test=test, baseline="rrf")
        assert [measure.family for measure in result.measures] == [family] * 2
        assert f"corrected for {family} comparisons within each measure; alpha" in result.caption
        pair = result.pairs[0]
        margin = (pair.result.interval[1] - pair.result.interval[0]) / 2
        assert pair.detectable == pytest.approx(detectable(row(pair.second) - row("rrf"), 0.05, critical=margin))


@pytest.mark.parametrize("measure", ["nDCG@10", "AP", "RR"])
def test_the_sample_against_scipy(measure: str, tmp_path) -> None:
    sample.copy(tmp_path / "sample")
    result = compare(
        tmp_path / "sample/qrels.txt", sorted((tmp_path / "sample/runs").iterdir()), measure, test="t", correction="bh"
    )
    scored = result.scores.per_topic()
    assert len(result.pairs) == 28
    p = []
    for pair in result.pairs:
        first, second = (list(scored[name][measure].values()) for name in (pair.first, pair.second))
        theirs = stats.ttest_rel(second, first)
        assert (pair.result.statistic, pair.result.p) == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-9)
        assert pair.result.interval == pytest.approx(tuple(theirs.confidence_interval(pair.result.level)), rel=1e-9)
        p.append(theirs.pvalue)
    found_false = 0.05 * max(1, sum(pair.significant for pair in result.pairs)) / 28
    assert [pair.result.level for pair in result.pairs] == pytest.approx([1 - found_false] * 28)
    assert [pair.result.adjusted for pair in result.pairs] == pytest.approx(stats.false_discovery_control(p), rel=1e-9)


def test_all_tests_run() -> None:
    assert set(all_tests()) == {*TESTS, *JOINT_TESTS}
    for test in all_tests():
        baseline = "bm25" if "dunnett" in test else None
        result = SCORES.compare(test=test, resamples=500, baseline=baseline)
        assert result.measures[0].pairs
        assert json.dumps(result.to_dict(), allow_nan=False)
        assert (f"{result.measures[0].family} comparisons" in result.caption) == (test != "bayes")
        assert all(pair.sentence.endswith(".") for pair in result.pairs)


def test_other_spellings() -> None:
    assert SCORES.compare(test="randomization").choices.test == "randomization"
    assert SCORES.compare(test="studentized", resamples=500).choices.test == "studentized"
    assert SCORES.compare(test="randomized-tukey", resamples=500).choices.test == "randomized-tukey"


# --- families -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("correction", ["none", "bonferroni", "holm", "hochberg", "bh", "by"])
@pytest.mark.parametrize("baseline", [None, "bm25"])
def test_families(correction: str, baseline: str | None) -> None:
    by_measure = SCORES.compare(test="t", correction=correction, baseline=baseline)
    size = 6 if baseline is None else 3
    for measure in by_measure.measures:
        assert measure.family == size
        assert [pair.result.adjusted for pair in measure.pairs] == adjust(
            [p.result.p for p in measure.pairs], correction
        ).tolist()
    overall = SCORES.compare(test="t", correction=correction, baseline=baseline, family="all")
    assert [pair.result.p for pair in overall.pairs] == [pair.result.p for pair in by_measure.pairs]
    assert [pair.result.adjusted for pair in overall.pairs] == adjust(
        [p.result.p for p in by_measure.pairs], correction
    ).tolist()
    assert {measure.family for measure in overall.measures} == {2 * size}
    assert "within each measure" in by_measure.caption
    assert "over all measures" in overall.caption


def test_order_of_pairs() -> None:
    two = scores(old=[1, 1, 1], new=[2, 2, 1]).compare(test="t")
    assert [(pair.first, pair.second) for pair in two.pairs] == [("old", "new")]  # in the given order
    many = SCORES.compare(test="t")
    for pair in many.pairs:
        assert pair.result.difference >= 0  # the better one second
    against = SCORES.compare(test="t", baseline="rrf")
    assert {pair.first for pair in against.pairs} == {"rrf"}
    assert against.pair("bm25", "rrf") is against.pair("rrf", "bm25")


# --- other aggregates, and measures where lower is better ------------------------------------------------------


def test_geometric_means_are_compared_by_their_ratio() -> None:
    table = scores(["GMAP", "AP"], first=[1, 2, 3, 4, 2, 1], second=[2, 4, 6, 4, 4, 1])
    result = table.compare(test="t")
    pair = result.pair("first", "second", "GMAP")
    assert pair.result == paired_test(*table.values[:, 0], "ratio").corrected(pair.result.p, "none")
    values = result.measure("GMAP").estimates
    assert pair.shown_difference == pytest.approx(values[1].value / values[0].value)
    assert pair.effects == effect_sizes(*(logarithms(scored) for scored in table.values[:, 0]))
    assert np.isnan(pair.detectable)
    assert "second / first = 0.63" in pair.sentence
    assert result.pair("first", "second", "AP").result.test == "randomization"  # 4 of 6 topics differ: not t
    assert "(geometric means are compared by their ratio)" in result.caption
    tukey = table.compare(test="tukey")
    assert not tukey.measure("GMAP").pairs
    assert "GMAP requires a comparison by ratios, which tukey does not support, and was not tested" in tukey.warnings


def test_sums_are_shown_and_not_tested() -> None:
    result = scores(["NumRel", "RR"], first=[1, 2, 3], second=[1, 1, 1]).compare(test="t", ci="none")
    assert result.measure("NumRel").pairs == ()
    assert "NumRel is a sum over topics, and was not tested" in result.warnings
    assert result.leaderboard().text().splitlines()[1].split() == ["first", "3", "0.6111"]
    assert result.measure("RR").family == 1
    alone = scores("NumRel", first=[1, 2], second=[1, 1]).compare()
    assert alone.pairs == ()
    assert alone.caption.startswith("no significance test")
    assert "==" not in alone.text()


def test_where_lower_is_better() -> None:
    qrels = {f"q{i}": {"rel": 1, "bad": 0} for i in range(10)}
    runs = {name: dict.fromkeys(qrels, docs) for name, docs in {"clean": ["rel"], "dirty": ["rel", "bad"]}.items()}
    result = compare(qrels, runs, "Fallout(n=100)@2")
    pair = result.pair("clean", "dirty")
    assert pair.result.difference > 0
    assert pair.better == "clean"
    assert [result.scores.run_names[i] for i in result.order] == ["clean", "dirty"]
    assert result.leaderboard().grid().rows[0][1].best
    assert pair.sentence.startswith("clean is better than dirty")


def test_a_test_of_signs_that_disagrees_with_the_mean_does_not_speak_of_the_mean() -> None:
    many_small, one_large = [9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 1], [8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 0]
    for test in ("sign", "wilcoxon"):
        pair = scores(first=many_small, second=one_large).compare(test=test, alpha=0.1).pair("first", "second")
        if test == "sign":
            assert pair.significant  # 10 wins, 1 loss
            assert pair.result.difference < 0
            assert pair.better is None
            assert pair.favored == "second"
            assert ", so the mean favors first." in pair.sentence
            assert "better" not in pair.sentence
        assert pair.side == 1


def test_ranks_within_topics_say_which_is_better() -> None:
    table = scores(good=[1] * 12, fair=[2] * 12, poor=[3] * 12)
    result = table.compare(test="nemenyi")
    assert result.pair("good", "poor").better == "good"
    assert (result.pair("good", "poor").second, result.pair("good", "poor").side) == ("good", 1)
    assert table.compare(test="nemenyi", baseline="good").pair("good", "poor").side == -1
    higher_mean = scores(often=[2] * 11 + [20], rarely=[4] * 11 + [1], other=[5] * 12)
    pair = higher_mean.compare(test="nemenyi").pair("often", "rarely")
    assert (pair.second, pair.side) == ("often", 1)  # 11 topics of 12, and the mean as well
    upset = scores(often=[5] * 11 + [20], rarely=[6] * 11 + [1], other=[9] * 12)
    pair = upset.compare(test="nemenyi", alpha=0.4).pair("often", "rarely")
    assert (pair.second, pair.side, pair.significant, pair.better) == ("rarely", -1, True, None)


# --- topics -------------------------------------------------------------------------------------------


def test_topics_with_the_largest_differences() -> None:
    pair = scores(first=[1, 1, 2, 4, 0, 1], second=[1, 2, 1, 1, 1, 0]).compare(test="t").pair("first", "second")
    assert [(topic.query_id, topic.difference) for topic in pair.gains] == [("q04", 1.0), ("q03", 0.75), ("q02", 0.5)]
    assert [(topic.query_id, topic.difference) for topic in pair.losses] == [("q05", -1.0), ("q01", -0.5)]
    assert (pair.gains[1].first, pair.gains[1].second) == (0.25, 1.0)


def test_runs_with_different_topics_are_compared_over_those_they_share() -> None:
    with pytest.warns(JudgedWarning, match="no documents returned"):
        table = scores(topics="both", first=[1, 2, 3, None], second=[2, 2, 1, 1])
    result = table.compare(test="t")
    pair = result.pair("first", "second")
    assert (pair.result.n, pair.result.left_out) == (3, 1)
    assert pair.result.difference == pytest.approx((-1 / 2 + 0 + 2 / 3) / 3)
    assert [estimate.n for estimate in result.measures[0].estimates] == [3, 4]
    assert any(text.startswith("the runs have different topics (first 3, second 4)") for text in result.warnings)
    assert any("largest number of excluded topics in a pair: RR 1" in text for text in result.warnings)


def test_a_test_of_all_systems_uses_the_topics_that_all_have() -> None:
    with pytest.warns(JudgedWarning):
        table = scores(topics="both", a=[1, 2, 3, None, 1], b=[2, 2, 1, 1, 4], c=[5, None, 1, 2, 2])
    result = table.compare(test="tukey")
    for pair in result.pairs:
        assert (pair.result.n, pair.result.left_out) == (3, 2)
        assert pair.wins.wins + pair.wins.ties + pair.wins.losses == 3
        assert pair.effects.difference == pytest.approx(pair.result.difference)


def test_identical_runs() -> None:
    result = scores(old=[1, 2, 3, 4], new=[1, 2, 3, 4]).compare()
    pair = result.pair("old", "new")
    assert (pair.result.p, pair.significant, pair.better) == (1.0, False, None)
    assert pair.sentence == "new and old have the same RR on all 4 topics."
    assert "equal scores on every topic: old = new" in result.warnings
    assert [cell.best for *_, cell in result.leaderboard().grid().rows] == [True, True]
    assert np.isnan(pair.detectable)


def test_one_topic_allows_no_conclusion() -> None:
    pair = scores(old=[1], new=[2]).compare().pair("old", "new")
    assert not pair.significant
    assert pair.sentence == "RR was computed for new and old on only 1 topic: no conclusion is possible."


def test_too_few_topics_or_resamples_to_find_anything() -> None:
    few = scores(old=[1, 2, 3, 4], new=[2, 3, 4, 5]).compare()
    assert few.pairs[0].result.p == 2 / 2**4
    assert "with 4 topics, p cannot be below 0.12: no difference can be significant at alpha = 0.05" in few.warnings
    least = SCORES.compare(resamples=100, alpha=0.01)
    assert any(
        text.startswith("with 100 resamples and 6 comparisons, p cannot be below 0.059") for text in least.warnings
    )
    assert not any("resamples" in text for text in SCORES.compare(resamples=100, alpha=0.1).warnings)
    assert not any("resamples" in text for text in SCORES.compare(resamples=100, alpha=0.01, correction="bh").warnings)


def test_warnings_of_the_scores_are_kept() -> None:
    with pytest.warns(JudgedWarning):
        table = scores(first=[1, 2, 3, None], second=[2, 2, 1, 1])
    assert set(table.warnings) <= set(table.compare(test="t").warnings)
    assert any("no documents returned for 1 of 4 topics" in text for text in table.compare(test="t").warnings)


# --- inputs and errors ----------------------------------------------------------------------------------


def test_scores_qrels_and_files_are_the_same(tmp_path) -> None:
    SCORES.save(tmp_path / "scores.parquet")
    qrels, runs = lists(**RANKS)
    expected = SCORES.compare(resamples=500)
    assert Scores.load(tmp_path / "scores.parquet").compare(resamples=500).to_dict() == expected.to_dict()
    direct = compare(qrels, runs, ["RR", "P@2"], resamples=500)
    assert direct.csv() == expected.csv()
    subset = SCORES.compare(measures="P@2", resamples=500)
    assert subset.table().records() == [row for row in expected.table().records() if row["measure"] == "P@2"]


def test_policies_go_to_evaluate() -> None:
    qrels, runs = lists(**RANKS)
    cut = compare(qrels, runs, "RR", test="t", depth=2)
    table = evaluate(qrels, runs, "RR", depth=2)
    assert cut.scores.values.tolist() == table.values.tolist()
    assert compare(qrels, runs, test="t").scores.measure_names == ("nDCG@10", "AP")
    theirs = compare(qrels, runs, test="t", dialect="gdeval").scores
    assert theirs.measure_names == evaluate(qrels, runs, dialect="gdeval").measure_names
    assert theirs.policies.dialect == "gdeval"
    assert compare(qrels, runs, test="t", dialect="trec_eval-10").scores.measure_names == ("nDCG@10", "AP")  # not all


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"baseline": "bm52"}, "no run 'bm52' to use as the baseline. Fix: use one of bm25, dense, rrf, random"),
        ({"test": "anova"}, "unknown test: 'anova'. Fix: use one of randomization, t,"),
        ({"correction": "sidak"}, "unknown correction: 'sidak'. Fix: use one of none, bonferroni, holm"),
        ({"family": "both"}, "unknown family: 'both'. Fix: use one of measure, all"),
        ({"alpha": 0.0}, "`alpha` must be between 0 and 0.5, got 0.0"),
        ({"alpha": float("nan")}, "`alpha` must be between 0 and 0.5, got nan"),
        ({"resamples": 10}, "at least 100 resamples are required, got 10"),
        ({"seed": -1}, "seed must not be negative, got -1"),
        ({"min_difference": -0.1}, "`min_difference` must be a finite number >= 0, got -0.1"),
        ({"margin": 0.0}, "`margin` must be a positive number, got 0.0"),
        ({"test": "dunnett"}, "dunnett requires a baseline. Fix: set `baseline`"),
        ({"test": "tukey", "family": "all"}, "tukey corrects within one measure"),
        ({"measures": "AP"}, "AP was not evaluated. Fix: evaluate this measure, or use one of RR, P@2"),
        ({"ci": "guess"}, "interval method 'guess'"),
    ],
)
def test_wrong_options(options: dict, message: str) -> None:
    with pytest.raises(InputError) as caught:
        SCORES.compare(**options)
    assert message in str(caught.value)


def test_wrong_input() -> None:
    with pytest.raises(InputError, match="at least two runs are required, got one"):
        scores(one=[1, 2]).compare()
    with pytest.raises(MeasureError):
        compare(*lists(**RANKS), "Precisely@10")
    result = SCORES.compare(test="t", baseline="rrf")
    with pytest.raises(InputError, match="'bm25' and 'dense' were not compared by RR"):
        result.pair("bm25", "dense")
    with pytest.raises(InputError, match="AP was not compared"):
        result.measure("AP")
    with pytest.raises(InputError, match="the matrix requires tests of all pairs of runs by RR"):
        result.matrix()


def test_the_same_seed_gives_the_same_answer_and_another_another() -> None:
    table = scores(a=[1, 2, 3, 4] * 6, b=[2, 2, 2, 5] * 6)  # too many topics to list all flips
    documents = [table.compare(resamples=1000, seed=seed).to_dict() for seed in (1, 1, 2)]
    assert documents[0] == documents[1]
    assert documents[0]["pairs"][0]["p"] != documents[2]["pairs"][0]["p"]


def test_the_correction_may_ask_for_more_than_few_topics_can_give() -> None:
    """With 6 topics p is at least 2^-5 = 0.031, but Holm requires 0.05 / 3 for the smallest of three."""
    runs = {"a": [1, 2, 3, 4, 5, 6], "b": [2, 3, 4, 5, 6, 7], "c": [3, 4, 5, 6, 7, 9]}
    three = scores(**runs).compare()
    assert {pair.result.p for pair in three.pairs} == {2**-5}
    assert not any(pair.significant for pair in three.pairs)
    assert all(np.isnan(pair.detectable) for pair in three.pairs)
    assert "would often be missed" not in three.pairs[0].sentence
    note = (
        "with 6 topics, p cannot be below 0.031, or below 0.094 after Holm correction for 3 comparisons: no difference"
        " can be"
    )
    assert f"{note} significant at alpha = 0.05" in three.warnings
    late = scores(**runs).compare(correction="hochberg")  # rejects all: all p-values are below alpha
    assert all(pair.significant for pair in late.pairs)
    assert any(
        text.endswith("significant at alpha = 0.05, unless other comparisons are significant") for text in late.warnings
    )
    two = scores(a=runs["a"], b=runs["b"]).compare()
    assert two.pairs[0].significant
    assert two.pairs[0].detectable > 0
    assert not any("cannot be below" in text for text in two.warnings)
    assert scores(**runs).compare(test="t").pairs[0].detectable > 0  # the t-test has no such bound


def test_what_four_topics_cannot_show_is_not_called_detectable() -> None:
    few = scores(old=[1, 2, 3, 4], new=[2, 3, 4, 6]).compare().pairs[0]
    assert np.isnan(few.detectable)
    assert few.sentence.partition("This does")[2].startswith(" not mean that the systems are equal. ")


def test_captions_have_no_superfluous_explanations() -> None:
    """Without corrections or marks there is no legend, and one topic is singular."""
    alike = scores(old=[1, 2, 1, 2, 3, 4], new=[2, 1, 1, 2, 3, 4]).compare(baseline="old")
    assert "not corrected: only one comparison" in alike.caption
    assert alike.pair_table().grid().header[3] == "p"
    assert "†" not in alike.text()
    assert "new is higher on 1 topic, equal on 4, lower on 1." in alike.text()
    clear = scores(old=[2] * 6, new=[1] * 6, other=[1] * 6).compare(baseline="old", correction="bonferroni", alpha=0.1)
    assert "† significantly better" in clear.text()
    assert clear.pair_table().grid().header[3] == "adjusted p"
    assert scores(old=[1], new=[2]).compare().caption.startswith("n = 1 topic;")


@pytest.mark.parametrize(
    ("ranks", "options", "status", "word", "value"),
    [
        ({"old": [2] * 8, "new": [1] * 8}, {}, "better", "better", 0.5),  # of two systems: second minus first
        ({"old": [2] * 8, "new": [1] * 8}, {"baseline": "old"}, "better", "1 better", 1.0),
        ({"old": [1] * 8, "new": [2] * 8}, {"baseline": "old"}, "better", "best run", 1.0),
        ({"a": [1] * 8, "b": [2] * 8, "c": [3] * 8}, {}, "better", "best run", 1.0),
        ({"a": [1] * 8, "b": [2] * 8, "c": [1] * 7 + [2]}, {}, "same", "no single best run", 1.0),
        ({"a": [1] * 8, "b": [1] * 7 + [2]}, {"baseline": "b"}, "same", "none better", 1.0),
        ({"a": [1] * 4, "b": [2] * 4, "c": [3] * 4}, {}, "unknown", "not enough data", 1.0),
    ],
)
def test_headline_tells_whether_a_system_is_significantly_best(
    ranks: dict[str, list[int]], options: dict[str, str], status: str, word: str, value: float
) -> None:
    headline = scores(**ranks).compare(correction="none", **options).headline
    assert (headline.status, headline.word, headline.value) == (status, word, value)
    assert len(headline.sentence.split()) <= MAX_WORDS


def test_sentence_of_the_headline_counts_the_tested_pairs_of_the_best_system() -> None:
    ranks = {"a": [1] * 8, "b": [2] * 8, "c": [1] * 7 + [2], "d": [3] * 8}
    assert "2 of 3 other runs are significantly worse" in scores(**ranks).compare(correction="none").headline.sentence
    against = scores(**ranks).compare(baseline="b", correction="none")
    assert "2 of 3 other runs are significantly better than the baseline b" in against.headline.sentence


@pytest.mark.parametrize(
    ("test", "word", "claim"),
    [
        ("t", "better", "new is better than old"),
        ("sign", "ahead", "new wins more topics than old"),
        ("wilcoxon", "ahead", "signed ranks"),
        ("nemenyi", "ahead", "mean rank"),
        ("bayes", "better", "probability"),
    ],
)
def test_headlines_claim_no_more_than_their_test(test: str, word: str, claim: str) -> None:
    # Twenty topics: Nemenyi's critical difference of mean ranks grows with the number of systems.
    ranks = {"old": [2, 3, 2, 4, 2, 3, 2, 2, 3, 2] * 2, "new": [1, 1, 1, 1, 1, 2, 1, 1, 1, 1] * 2}
    headline = scores(**ranks).compare(test=test, correction="none").headline
    assert (headline.status, headline.word) == ("better", word)
    assert claim in headline.sentence
    assert ("(p " in headline.sentence) == (test != "bayes")
    assert len(headline.sentence.split()) <= MAX_WORDS
    of_three = scores(**ranks, last=[5] * 20).compare(test=test, correction="none", baseline="old").headline
    assert of_three.word == f"1 {word}"
