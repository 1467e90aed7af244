"""Tests by slice: equal to testing the topics alone; corrections, error rates, and power."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import Any

import numpy as np
import pytest
from calibration import slices

from comparison_made import scores as ranked
from judged import InputError, JudgedWarning, slice_topics
from judged.comparison.pair import TIMES
from judged.comparison.slicing import by_slice, compare_slices
from judged.results.headline import MAX_WORDS
from judged.stats.classical import with_hall_tests
from judged.stats.correction import adjust
from judged.stats.paired import paired_test
from judged.stats.slice_differences import against_rest, heterogeneity
from slices_made import scores_of, slicing_of

GROUPS = ["news"] * 20 + ["law"] * 15 + ["chat"] * 12 + ["rare"] * 4
NAN = math.nan


def runs_with_effects(
    effect: dict[str, float] | None = None, seed: int = 0, groups: list[str] | None = None
) -> dict[str, Any]:
    """Return two runs whose mean difference in each group is given by `effect`."""
    rng, names = np.random.default_rng(seed), groups or GROUPS
    base = rng.uniform(0.3, 0.7, len(names))
    gaps = np.array([(effect or {}).get(name, 0.0) for name in names])
    return {"old": base, "new": base + gaps + rng.normal(0, 0.05, len(names))}


@pytest.mark.parametrize(
    ("effect", "min_topics", "status", "slice_name"),
    [
        ({"law": -0.2, "chat": -0.1, "news": 0.2}, 10, "worse", "group=law"),
        ({"law": 0.1, "chat": 0.2}, 10, "better", "group=chat"),
        ({}, 10, "same", None),
        ({"law": 0.2}, 30, "unknown", None),
    ],
)
def test_the_headline_is_the_test_of_the_largest_loss(
    effect: dict[str, float], min_topics: int, status: str, slice_name: str | None
) -> None:
    result = scores_of(runs_with_effects(effect)).compare_slices(slicing_of(GROUPS, min_topics))
    headline = result.headline
    assert headline is not None
    assert headline.status == status
    assert len(headline.sentence.split()) <= MAX_WORDS
    assert {row.better for row in result.rows} <= {None, "new", *["old"] * (status == "worse")}
    if slice_name is not None:
        row = result.row(slice_name)
        assert (headline.value, headline.ci) == (row.difference, row.interval)
        assert row.better == {"worse": "old", "better": "new"}[status]


def test_one_table_per_measure_has_every_run() -> None:
    runs = {**runs_with_effects({"law": 0.2}), "other": runs_with_effects({"chat": -0.2}, seed=1)["new"]}
    result = scores_of(runs).compare_slices(slicing_of(GROUPS), baseline="old")
    table = result.by_measure(result.measures[0])
    for second, name in (("new", "difference"), ("other", "other")):
        rows = result.with_all(second=second)
        assert table.column(name).values == [row.difference for row in rows]
    assert list(table.column("result").values)[-1] == "too few topics"
    kinds = {None: "", "other": "good", "old": "bad"}
    assert table.column("other").kinds == [kinds[row.better] for row in result.with_all(second="other")]


def test_each_slice_has_the_test_of_its_topics() -> None:
    runs = runs_with_effects({"law": 0.1})
    result = scores_of(runs).compare_slices(slicing_of(GROUPS))
    assert [row.slice for row in result.rows] == ["group=chat", "group=law", "group=news", "group=rare"]
    tests = []
    for row in result.rows[:3]:
        mask = result.slicing.mask(row.slice)
        assert row.pair is not None
        test = paired_test(runs["old"][mask], runs["new"][mask], resamples=100_000, level=row.pair.result.level)
        gaps = (runs["new"] - runs["old"])[mask]
        (test,) = with_hall_tests(gaps[None, :], [test])
        assert row.pair.interval_agrees
        assert (row.pair.result.p, row.pair.result.interval) == (test.p, test.interval)
        assert (row.n, row.difference, row.pair.wins.wins) == (mask.sum(), test.difference, row.pair.wins.wins)
        contrast = against_rest(runs["new"] - runs["old"], [mask])[0]
        assert row.contrast is not None
        assert (row.contrast.p, row.contrast.interval, row.contrast.n_rest) == (
            contrast.p,
            contrast.interval,
            51 - row.n,
        )
        tests.append(test.p)
    adjusted = [row.pair.result.adjusted for row in result.rows[:3]]
    assert adjusted == adjust(tests, "holm").tolist()
    assert result.families == {"nDCG@10": 3}
    assert result.row("group=law").better == "new"
    assert [row.better for row in result.rows] == [None, "new", None, None]


def test_a_small_slice_is_shown_and_not_tested() -> None:
    runs = runs_with_effects()
    result = scores_of(runs).compare_slices(slicing_of(GROUPS))
    row = result.row("group=rare")
    assert (row.n, row.min_topics, row.small, row.pair, row.contrast) == (4, 10, True, None, None)
    assert row.difference == pytest.approx((runs["new"] - runs["old"])[-4:].mean())
    assert result.overview().grid().rows[-1][0] == "group=rare (few)"
    assert result.overview().grid().rows[-1][3] == "too few"
    assert result.sentences[-1] == ("1 slice has too few topics (`group=rare` 4 of 10) and was not tested.")


def test_topics_without_a_score_may_make_a_slice_small() -> None:
    runs = runs_with_effects()
    runs["new"][35:39] = NAN  # 8 of 12 remain
    result = scores_of(runs).compare_slices(slicing_of(GROUPS))
    assert [(row.slice, row.n) for row in result.rows if row.small] == [("group=chat", 8), ("group=rare", 4)]


@pytest.mark.parametrize(("family", "sizes"), [("all", [12, 12]), ("measure", [6, 6])])
def test_families(family: Any, sizes: list[int]) -> None:
    """3 slices, 2 pairs and 2 measures."""
    rng = np.random.default_rng(3)
    runs = {name: rng.random((2, len(GROUPS))) for name in ("a", "b", "c")}
    result = scores_of(runs, "nDCG@10", "AP").compare_slices(slicing_of(GROUPS), "b", family=family, resamples=999)
    assert list(result.families.values()) == sizes
    assert result.pairs == (("b", "a"), ("b", "c"))
    parts = (
        [result.rows] if family == "all" else [result.rows_of("nDCG@10", "a") + result.rows_of("nDCG@10", "c"), None]
    )
    tested = [row.pair.result for row in parts[0] if row.pair is not None]
    assert len(tested) == sizes[0]
    assert [estimate.adjusted for estimate in tested] == adjust([estimate.p for estimate in tested]).tolist()
    assert f"Holm for {sizes[0]} comparisons" in result.caption


def test_the_difference_varies_between_slices() -> None:
    runs = runs_with_effects({"law": 0.15})
    result = scores_of(runs).compare_slices(slicing_of(GROUPS))
    between = result.heterogeneity()
    assert between is not None
    codes = [{"chat": 0, "law": 1, "news": 2, "rare": -1}[name] for name in GROUPS]
    assert between.result == heterogeneity(runs["new"] - runs["old"], codes)
    assert between.slices == ("group=chat", "group=law", "group=news")
    assert between.significant
    (varies,) = [text for text in result.sentences if "varies" in text]
    assert "on `group=law`" in varies
    assert varies.startswith("The difference new - old in nDCG@10 varies between slices (p = 0.0001): from ")


def test_between_slices_is_corrected_for_pairs_and_measures() -> None:
    rng = np.random.default_rng(4)
    runs = {name: rng.random((2, len(GROUPS))) for name in ("a", "b", "c")}
    result = scores_of(runs, "nDCG@10", "AP").compare_slices(slicing_of(GROUPS), "a", resamples=999)
    assert [test.adjusted for test in result.between] == adjust([test.result.p for test in result.between]).tolist()
    assert len(result.between) == 4


def test_slices_that_overlap() -> None:
    attributes = {f"q{i:04}": {"words": i} for i in range(len(GROUPS))}
    slices = [{"name": "short", "expression": "words < 30"}, {"name": "middle", "expression": "20 <= words < 40"}]
    result = scores_of(runs_with_effects()).compare_slices(slice_topics(attributes, slices=slices))
    assert result.between == ()
    assert result.heterogeneity() is None
    assert "slices overlap, so their tests share topics" in result.warnings[-1]
    assert [row.n for row in result.rows] == [30, 20]


def test_opposite_findings_are_warned_of() -> None:
    result = scores_of(runs_with_effects({"law": 0.15, "news": -0.15})).compare_slices(slicing_of(GROUPS))
    assert result.row("group=law").better == "new"
    assert result.row("group=news").better == "old"
    assert result.warnings[-1] == (
        "nDCG@10 of old and new: the overall difference hides opposite differences: old is better on group=news,"
        " and new is better on group=law"
    )


def test_the_caption_tells_of_every_row_how_it_was_tested() -> None:
    """Slices of 12 topics have 4096 arrangements, all 24 topics have too many."""
    groups = ["x"] * 12 + ["y"] * 12
    result = scores_of(runs_with_effects(groups=groups)).compare_slices(slicing_of(groups))
    assert all(row.pair.result.exact for row in result.rows if row.pair)
    assert not result.overall.pairs[0].result.exact
    test = (
        "paired randomization test, 100000 resamples, seed 0,"
        " or exact on slices with fewer permutations than resamples; "
    )
    assert result.caption.startswith(test)
    small = scores_of(runs_with_effects(groups=groups[6:18])).compare_slices(slicing_of(groups[6:18], min_topics=5))
    assert small.caption.startswith("paired randomization test, exact; ")


def test_one_comparison_is_not_headed_as_corrected() -> None:
    groups = ["x"] * 12 + ["y"] * 2
    result = scores_of(runs_with_effects(groups=groups)).compare_slices(slicing_of(groups))
    assert result.overview().grid().header[3] == "p"
    assert "p not corrected" in result.caption


def test_where_nothing_can_be_tested_nothing_is_said_of_the_difference() -> None:
    groups = ["x"] * 12 + ["y"]
    result = scores_of(runs_with_effects({"x": 0.3}, groups=groups)).compare_slices(
        slicing_of(groups, min_topics=1), test="t"
    )
    assert math.isnan(result.row("group=y").pair.result.p)
    text = " ".join(result.sentences)
    assert "On `group=y`, nDCG@10 cannot be tested: too few topics" in text
    assert "is shown on `group=y`" not in text


def test_the_head_of_differences_says_what_is_subtracted() -> None:
    result = scores_of(runs_with_effects({"law": 0.1})).compare_slices(slicing_of(GROUPS), "new")
    assert result.overview().grid().header[2] == "old - new"
    assert float(result.overview().grid().rows[0][2].number) < 0
    long = {f"a run with quite a long name {name}": values for name, values in runs_with_effects().items()}
    assert scores_of(long).compare_slices(slicing_of(GROUPS)).overview().grid().header[2] == "difference"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"slicing": "query_class"},
            "must be slices or a table, got 'query_class'",
        ),
    ],
)
def test_slicing_must_be_slices_or_a_table(options: dict[str, Any], problem: str) -> None:
    arguments = {"scores": scores_of(runs_with_effects()), "slicing": slicing_of(GROUPS)} | options
    for call in (compare_slices, by_slice):
        with pytest.raises(InputError, match=problem):
            call(**arguments)


def test_simpsons_paradox() -> None:
    """Each run has topics of its own: `new` is better on every shared topic, and has more of the hard ones."""
    old: list[int | None] = [1] * 10 + [1] * 10 + [5] * 10 + [None] * 10
    new: list[int | None] = [None] * 10 + [1] * 10 + [4] * 10 + [4] * 10
    new[12:14], old[12:14] = [1, 1], [2, 2]
    with pytest.warns(JudgedWarning, match="no documents returned"):
        scores = ranked(topics="run", old=old, new=new)
    kinds = {f"q{i:02}": {"kind": "easy" if i < 20 else "hard"} for i in range(40)}
    result = scores.compare_slices(slice_topics(kinds, "kind"))
    assert all(row.difference > 0 and row.n == 10 for row in result.rows)
    means = [estimate.value for estimate in result.overall.measures[0].estimates]
    assert means[0] > means[1]
    (warned,) = [text for text in result.warnings if "Simpson" in text]
    assert warned.startswith(
        "RR of old and new: Simpson's paradox: old has the higher mean over all topics, but new has the higher mean on"
        " every slice"
    )


def test_no_paradox_where_every_topic_counts_for_both() -> None:
    for seed in range(20):
        result = scores_of(runs_with_effects(seed=seed)).compare_slices(slicing_of(GROUPS), test="t")
        assert not any("Simpson" in text for text in result.warnings)


def test_geometric_means_are_compared_by_ratios() -> None:
    runs = {"old": [0.2, 0.4] * 12, "new": [0.3, 0.6] * 12}
    result = scores_of(runs, "GMAP").compare_slices(slicing_of((["x"] * 10 + ["y"] * 2) * 2, min_topics=5))
    assert [row.difference for row in result.rows] == pytest.approx([1.5, 1.5])
    assert result.rows[1].small
    assert result.overview().grid().rows[2][2] == f"{TIMES}1.500"


def test_other_tests() -> None:
    scores, slicing = scores_of(runs_with_effects({"law": 0.1})), slicing_of(GROUPS)
    bayes = scores.compare_slices(slicing, test="bayes", margin=0.02)
    assert bayes.row("group=law").better == "new"
    assert "probability 0.999999" in bayes.sentences[0]
    assert "probabilities are not corrected" in bayes.caption
    plain = scores.compare_slices(slicing, correction="none", test="t")
    assert all(row.pair.result.decisive_p == row.pair.result.p for row in plain.rows if row.pair)
    assert "after" not in plain.sentences[0]
    close = scores.compare_slices(slicing, margin=0.2)
    assert any("the difference is significantly smaller than 0.2" in text for text in close.sentences)


def test_sentences_of_two_runs() -> None:
    result = scores_of(runs_with_effects({"law": 0.1, "news": 0.1})).compare_slices(slicing_of(GROUPS))
    law, news = result.row("group=law").pair, result.row("group=news").pair
    assert law is not None
    assert news is not None
    assert result.sentences[0] == (
        f"new is better than old in nDCG@10 on `group=law` (new - old = +{law.result.difference:.3f}, 15 topics, p ="
        f" {law.result.adjusted:.2g}) and `group=news` (+{news.result.difference:.3f}, 20 topics, p ="
        f" {news.result.adjusted:.2g}), after Holm correction for 3 comparisons."
    )
    assert "on `group=law`, if such topics are 18% of the slice" in result.sentences[1]  # 1 - 0.05^(1/15)
    assert f"a mean difference below {news.sensitivity.reversing_difference:+.2f}." in result.sentences[1]
    assert result.sentences[2].startswith("No significant difference in nDCG@10 between new and old on `group=chat`.")


def test_sentences_of_many_runs_tell_what_is_not_shown_once() -> None:
    rng = np.random.default_rng(8)
    base = rng.uniform(0.3, 0.6, len(GROUPS))
    runs = {name: base + rng.normal(0, 0.05, len(GROUPS)) for name in "abcde"}
    runs["e"] = base + 0.2
    result = scores_of(runs).compare_slices(slicing_of(GROUPS), "a")
    assert sum("on any slice: b, c and d" in text for text in result.sentences) == 1
    assert result.sentences[0].startswith("e is better than a in nDCG@10 on `group=chat`")


def _one_loses(size: float) -> Any:
    """New is 0.04 better on all topics of the news but one, where it loses `size`; half a point better on the rest."""
    base = np.full(len(GROUPS), 0.5)
    new = base + 0.04 + 0.01 * (np.arange(len(GROUPS)) % 2)
    new[0] = 0.5 - size
    return {"old": base, "new": new}


def test_a_finding_on_a_slice_that_one_topic_could_undo_is_labeled() -> None:
    # Hall's test already keeps t and the randomization test from a finding here; posteriors are not combined with it
    result = scores_of(_one_loses(0.2)).compare_slices(slicing_of(GROUPS), test="bayes")
    row = result.row("group=news")
    assert row.better == "new"
    assert row.pair.sensitive
    assert row.pair.few_topics == (result.slicing.query_ids[0],)
    assert not result.row("group=law").pair.sensitive
    assert "sensitive to 1 topic)" in result.sentences[0]
    assert result.overview().grid().rows[1][0] != ""
    rows = {load["slice"]: load for load in json.loads(result.json())["results"]}
    assert [rows[f"group={name}"]["sensitive"] for name in ("news", "law", "rare")] == [True, False, None]
    assert "(*)" in result.caption


def test_the_bounded_test_by_slice_is_that_of_its_topics() -> None:
    runs = runs_with_effects({"law": 0.6})
    result = scores_of(runs).compare_slices(slicing_of(GROUPS), test="bounded")
    for row in result.rows[:3]:
        mask = result.slicing.mask(row.slice)
        alone = paired_test(runs["old"][mask], runs["new"][mask], "bounded", max_difference=1.0)
        assert row.pair.result.p == pytest.approx(alone.p)
        assert row.pair.interval_agrees
    assert result.row("group=law").better == "new"
    unbounded = ranked("DCG@5", old=[2] * 24, new=[1] * 24)
    with pytest.raises(InputError, match="no upper bound"):
        unbounded.compare_slices(slicing_of(["a", "b"] * 12), test="bounded")


@pytest.mark.parametrize("test", ["randomization", "t", "bayes"])
def test_slices_of_fewer_than_six_topics_have_no_verdict(test: str) -> None:
    runs = runs_with_effects({"rare": 0.4})
    result = scores_of(runs).compare_slices(slicing_of(GROUPS, min_topics=2), test=test, correction="none")
    pair = result.row("group=rare").pair
    assert (pair.result.n, pair.significant, pair.better) == (4, False, None)
    assert pair.insufficiency.required == 6


def test_errors() -> None:
    scores, slicing = scores_of(runs_with_effects()), slicing_of(GROUPS)
    three = scores_of({name: [0.1] * 51 for name in "abc"})
    for call, problem in (
        (
            lambda: three.compare_slices(slicing),
            "a baseline is required with more than two runs, got 3 runs. Fix: set a baseline, such as a",
        ),
        (lambda: scores.compare_slices(slicing, "odd"), "no run 'odd' to use as the baseline"),
        (lambda: scores.compare_slices(slicing, test="tukey"), "`test` must compare two systems, got tukey"),
        (lambda: scores.compare_slices(slicing, measures="AP"), "AP was not evaluated"),
        (lambda: scores.compare_slices(slicing).row("odd"), "no slice 'odd'"),
        (lambda: scores.compare_slices(slicing).rows_of(second="odd"), "'odd' was not compared"),
    ):
        with pytest.raises(InputError, match=problem):
            call()


def test_all_slices_small() -> None:
    result = scores_of(runs_with_effects()).compare_slices(slicing_of(GROUPS, min_topics=50))
    assert result.caption == "no slice was tested, because all slices have too few topics"
    assert result.between == ()
    assert result.sentences[0] == (
        "No conclusion about single slices is possible, because all slices have too few topics."
    )
    assert len(result.overview().grid().rows) == 5


def test_forms() -> None:
    result = scores_of(runs_with_effects({"law": 0.1})).compare_slices(slicing_of(GROUPS))
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert [row["slice"] for row in document["results"]] == ["all topics", *(row.slice for row in result.rows)]
    assert document["results"][2]["adjusted"] == result.rows[1].pair.result.adjusted
    assert document["results"][4]["p"] is None
    assert document["between"][0]["p"] == result.between[0].result.p
    assert document["results"][0]["difference"] == result.overall.pairs[0].result.difference
    rows = list(csv.DictReader(io.StringIO(result.csv())))
    whole = result.overall.pairs[0]
    assert (rows[0]["slice"], float(rows[0]["p"]), int(rows[0]["wins"])) == (
        "all topics",
        whole.result.p,
        whole.wins.wins,
    )
    assert [float(row["difference"]) for row in rows] == [
        whole.result.difference,
        *(row.difference for row in result.rows),
    ]
    assert (rows[2]["better"], rows[4]["adjusted"]) == ("new", "")
    assert "| slice | topics | new - old | adjusted p | won-tied-lost | detectable |" in result.markdown()
    assert result.text().startswith("== nDCG@10: new minus old ==\n\nslice")
    assert document["versions"] == result.overall.scores.versions
    assert document["runs"]["old"] == {**document["runs"]["old"], "path": result.overall.scores.runs[0].path}
    assert "returned_topics" in document["runs"]["old"]
    assert "min_topics" not in document["choices"]


def test_the_chart_shows_what_is_significant() -> None:
    result = scores_of(runs_with_effects({"law": 0.1})).compare_slices(slicing_of(GROUPS))
    points = result.charts()["nDCG@10"].table.records()
    assert {point["slice"]: point["open"] for point in points} == {
        "all topics (51)": False,
        "group=chat (12)": True,
        "group=law (15)": False,
        "group=news (20)": True,
        "group=rare (4)": True,
    }
    result.chart().to_dict()


def test_false_findings_are_as_rare_as_promised() -> None:
    """Under a true null with 8 slices, at most 5% of data sets may have any finding: 60 of them, 3.3 errors."""
    groups = [f"s{i}" for i in range(8) for _ in range(12)]
    slicing, times = slicing_of(groups), 60
    rng = np.random.default_rng(13)
    hits = varies = 0
    for i in range(times):
        base = rng.beta(0.8, 1.2, len(groups))
        noise = rng.normal(0, rng.uniform(0.02, 0.3, 8).repeat(12))  # slices differ in spread
        scores = scores_of({"old": base, "new": base + noise})
        result = scores.compare_slices(slicing, resamples=999, seed=i)
        hits += any(row.better is not None for row in result.rows)
        varies += any(test.significant for test in result.between)
    assert hits / times <= 0.05 + 3.3 * math.sqrt(0.05 * 0.95 / times)
    assert varies / times <= 0.08 + 3.3 * math.sqrt(0.08 * 0.92 / times)  # near 5%, as spreads differ


def test_slices_that_lie_far_to_one_side_are_seldom_taken_for_different() -> None:
    """Five slices of 12 skewed topics with true means of 0: 16% of samples have a finding without Hall's test."""
    skewed = slices.claim_rates(12, "exponential", 300)
    assert skewed["compare_slices"] < 0.1 + 3.3 * math.sqrt(0.1 * 0.9 / 300)
    assert skewed["compare_slices"] < 0.7 * skewed["the randomization test alone"]
    assert slices.claim_rates(24, "normal", 60, shift=0.8)["compare_slices"] > 0.6


def test_compare_slices_claims_what_the_simulation_does() -> None:
    rng, groups = np.random.default_rng(3), [f"s{i}" for i in range(5) for _ in range(12)]
    gaps = 0.05 * (rng.exponential(size=60) - 1)
    runs = {"old": np.full(60, 0.4), "new": 0.4 + gaps}
    result = scores_of(runs).compare_slices(slicing_of(groups), resamples=1999)
    for row in result.rows:
        part = gaps[result.slicing.mask(row.slice)]
        alone = paired_test(np.zeros(12), part, resamples=1999)
        assert row.pair is not None
        assert row.pair.result.p == pytest.approx(with_hall_tests(part[None], [alone])[0].p)
        assert row.pair.result.p >= alone.p


def test_a_planted_effect_is_found_where_it_is() -> None:
    groups = [f"s{i}" for i in range(8) for _ in range(20)]
    slicing = slicing_of(groups)
    comparisons = [
        scores_of(runs_with_effects({"s3": 0.08}, seed, groups)).compare_slices(slicing, resamples=4999)
        for seed in range(10)
    ]
    assert all(comparison.row("group=s3").better == "new" for comparison in comparisons)
    elsewhere = sum(
        row.better is not None for comparison in comparisons for row in comparison.rows if row.slice != "group=s3"
    )
    assert elsewhere <= 2
    assert all(row.heterogeneity().significant for row in comparisons)


def test_a_slice_without_topics_is_small() -> None:
    scores = scores_of(runs_with_effects())
    slicing = slice_topics(
        {query: {"size": float(i)} for i, query in enumerate(scores.query_ids)},
        slices=[{"name": "all", "expression": "size >= 0"}, {"name": "none", "expression": "size < 0"}],
    )
    result = scores.compare_slices(slicing)
    row = result.row("none")
    assert (row.n, row.small, row.pair) == (0, True, None)
    assert math.isnan(row.difference)
    assert result.families == {"nDCG@10": 1}


def test_slices_too_small_for_their_test_are_named_and_nothing_is_called_detectable() -> None:
    """Nine topics have a least p of 2^-8, five one of 2^-4 and six one of 2^-5, which Holm doubles at first."""
    for few, words in (
        (5, "p cannot be below 0.062: no difference"),
        (6, "below 0.031, or below 0.062 after Holm correction for 2"),
    ):
        old = np.full(9 + few, 0.2)
        new = np.concatenate([np.linspace(0.1, 0.3, 9), np.linspace(0.8, 0.9, few)])
        groups = ["many"] * 9 + ["few"] * few
        result = scores_of({"old": old, "new": new}).compare_slices(slicing_of(groups, min_topics=2))
        large, small = result.row("group=many"), result.row("group=few")
        assert large.pair.detectable > 0
        assert np.isnan(small.pair.detectable)
        assert small.pair.result.p == 2.0 ** (1 - few)
        (message,) = [text for text in result.warnings if "cannot be below" in text]
        assert message.startswith(f"group=few: with {few} topics, ")
        assert words in message
        assert message.endswith("unless other comparisons are significant") == (
            few == 6
        )  # Holm asks the second of two for 0.05


def test_many_small_slices_and_pairs_have_one_line_of_each_kind() -> None:
    groups = [f"g{i:02}" for i in range(10) for _ in range(2 + i % 3)]
    draw = np.random.default_rng(1)
    systems = {f"s{i}": draw.random(len(groups)) for i in range(6)}
    result = scores_of(systems).compare_slices(slicing_of(groups, min_topics=2), "s0")
    message = [text for text in result.warnings if "cannot be below" in text]
    assert (
        sum(
            text.startswith("10 slices, worst group=g00, group=g03, group=g06; for group=g00: with 2")
            for text in message
        )
        == 1
    )
    assert len(result.warnings) < 8
