"""The performance matrix: cuts, quadrants and changes by hand, and the level of its intervals."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

from judged import evaluate
from judged.comparison.slicing.class_measures import NO_AVERAGE
from judged.comparison.slicing.parts import topic_subsets
from judged.comparison.slicing.topic_slices import slice_topics
from judged.diagnosis.matrix import ClassMatrix, Matrix, class_matrix, matrix
from judged.diagnosis.matrix.points import MatrixChoices, run_points, topic_quadrants
from judged.errors import InputError, MeasureError
from judged.results import Table
from judged.results.headline import MAX_WORDS

TOPICS = [f"q{i:02}" for i in range(60)]
QRELS = {topic: {"r1": 1, "r2": 1, "n": 0} for topic in TOPICS}
ATTRIBUTES = {topic: {"kind": ("good", "low", "gone")[i % 3], "few": i < 4} for i, topic in enumerate(TOPICS)}
FILLERS = [f"x{i}" for i in range(20)]


def ranked(i: int, *, damage: bool) -> list[str]:
    """Return both relevant documents first. Every seventh topic has them one rank lower, so that scores vary."""
    docs = ["r1", "r2", *FILLERS] if i % 7 else ["x0", "r1", "r2", *FILLERS[1:]]
    kind = ("good", "low", "gone")[i % 3] if damage else "good"
    if kind == "low":
        return [*FILLERS[:12], "r1", "r2", *FILLERS[12:]]
    return FILLERS if kind == "gone" else docs


OLD = {topic: ranked(i, damage=False) for i, topic in enumerate(TOPICS)}
NEW = {topic: ranked(i, damage=True) for i, topic in enumerate(TOPICS)}


def sample_matrix(**options: object) -> Matrix:
    slicing = slice_topics(ATTRIBUTES, ["kind", "few"], min_topics=10)
    arguments = {"x": "R@20", "slicing": slicing, "resamples": 1000, **options}
    return matrix(QRELS, {"old": OLD, "new": NEW}, **arguments)


def test_quadrants_of_slices() -> None:
    result = sample_matrix()
    points = {(point.run, point.slice): point for point in result.points}
    assert result.baseline == "old"
    scores = evaluate(QRELS, {"old": OLD}, ["R@20", "nDCG@10"])
    assert result.cuts == pytest.approx((scores.value("R@20"), scores.value("nDCG@10")))
    assert points["new", "kind=low"].quadrant == "ranking problem"
    assert (points["new", "kind=low"].x.side, points["new", "kind=low"].y.side) == ("undecided", "below")
    assert points["new", "kind=gone"].quadrant == "both problems"
    assert points["new", "kind=good"].quadrant == "undecided"
    assert points["old", "all topics"].quadrant == ""  # its means are the cuts
    assert points["new", "all topics"].quadrant == "both problems"
    small = next(point for point in result.points if point.small)
    assert (small.slice, small.n, small.quadrant) == ("few=true", 4, "")
    assert math.isnan(small.y.low)
    text = " ".join(result.sentences)
    meaning = "relevant documents are ranked low; it is undecided whether fewer are retrieved"
    assert f"new, kind=low: ranking problem ({meaning}): R@20 1.000" in text
    assert "nDCG@10 0.000 [0.000, " in text
    assert "below the baseline's 0.9" in text
    assert "Slices of run old with too few topics for a classification: few=true" in text


def test_intervals_are_those_of_the_wider_spread_at_the_corrected_level() -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    values = np.array([[0.0, 0.2, 0.4, 0.6, 0.8, 1.0] * 4, [0.5, 0.5, 0.5, 0.5, 0.9, 0.1] * 4, [1.0] * 24])
    attributes = {str(i): {"same": i % 6 < 4} for i in range(24)}
    topic_sets = topic_subsets(
        24, slice_topics(attributes, "same", min_topics=2, query_ids=[str(i) for i in range(24)])
    )
    points = {
        point.slice: point
        for point in run_points("r", values, topic_sets, (0.5, 0.5), [(0, 1), (0, 1)], MatrixChoices())
    }
    same = points["same=true"]
    t = scipy_stats.t.ppf(1 - 0.05 / 4 / 2, 15)  # two slices, two axes; 16 topics
    slice_sd, overall_sd = values[0, topic_sets[-1].mask].std(ddof=1), values[0].std(ddof=1)
    assert slice_sd < overall_sd
    assert same.x.value == pytest.approx(0.3)
    assert same.x.high == pytest.approx(0.3 + t * overall_sd / 4)
    assert same.y.low == pytest.approx(0.5 - t * values[1].std(ddof=1) / 4)  # its own spread is 0
    all_topics = points["all topics"]
    assert all_topics.x.high == pytest.approx(0.5 + scipy_stats.t.ppf(0.975, 23) * overall_sd / math.sqrt(24))


def test_slices_that_happen_to_be_alike_are_not_told_apart() -> None:
    """Ten topics of a perfect score among ninety, of which a tenth fail, are not a finding."""
    values = np.ones((3, 100))
    values[:2, ::10] = 0.0
    attributes = {f"{i:03}": {"lucky": 1 <= i % 10 <= 2 and i < 55} for i in range(100)}
    topic_sets = topic_subsets(100, slice_topics(attributes, "lucky", min_topics=10))
    points = run_points("r", values, topic_sets, (0.9, 0.9), [(0, 1), (0, 1)], MatrixChoices())
    lucky = next(point for point in points if point.slice == "lucky=true")
    assert (lucky.n, lucky.x.value) == (12, 1.0)
    assert lucky.quadrant == "undecided"


def test_the_level_holds_over_all_slices() -> None:
    """Slices that say nothing are told apart from the baseline's own mean in at most one of twenty repetitions."""
    rng = np.random.default_rng(5)
    errors = 0
    for _ in range(300):
        x = np.where(rng.random(160) < 0.7, 1.0, rng.random(160))  # skewed, as recall is
        y = rng.beta(2, 1, size=160)
        values = np.stack([x, y, np.ones(160)])
        attributes = {f"{i:03}": {"luck": f"g{rng.integers(8)}"} for i in range(160)}
        topic_sets = topic_subsets(160, slice_topics(attributes, "luck", min_topics=10))
        cuts = (float(x.mean()), float(y.mean()))
        points = run_points("r", values, topic_sets, cuts, [(0, 1), (0, 1)], MatrixChoices())
        errors += any({point.x.side, point.y.side} & {"below", "above"} for point in points)
    assert errors <= 0.05 * 300


def test_topics_by_the_cuts_alone() -> None:
    values = np.array([[0.5, 0.5, 0.4, 0.4, math.nan], [0.3, 0.2, 0.3, 0.2, 1.0]])
    assert topic_quadrants(values, (0.5, 0.3)) == (
        "healthy", "ranking problem", "coverage problem", "both problems", "",
    )  # fmt: skip
    assert topic_quadrants(values, (0.1 + 0.4 + 1e-16, 0.1 * 3))[0] == "healthy"  # rounding is not a difference
    result = sample_matrix(cuts=(0.5, 0.5))
    assert result.counts("new") == {
        "healthy": sum(name == "healthy" for name in result.topics("new")),
        "ranking problem": 20, "coverage problem": 0, "both problems": 20,
    }  # fmt: skip
    assert sum(result.counts("new").values()) == 60
    assert (
        result.describe_counts("new")
        == "20 healthy, 20 with a ranking problem, 20 with a ranking and a coverage problem"
    )


@pytest.mark.parametrize(
    ("found", "value", "word"),
    [
        ("hhhh", 0, "no problem"),
        ("hrrc", 3, "most frequent: ranking problem"),
        ("cbbb", 4, "most frequent: both problems"),
        ("hncc", 2, "most frequent: coverage problem"),  # n: no relevant document
    ],
)
def test_the_headline_counts_topics_with_a_problem(found: str, value: int, word: str) -> None:
    lists = {"h": ["a", "b"], "r": ["x", "y", "a", "b"], "c": ["a"], "b": ["x", "a"], "n": ["x"]}
    qrels = {f"q{i}": {"a": 1, "b": 1} if kind != "n" else {"x": 0} for i, kind in enumerate(found)}
    run = {f"q{i}": lists[kind] for i, kind in enumerate(found)}
    result = matrix(qrels, run, x="R@4", y="RR@10", cuts=(0.75, 0.75))
    headline = result.headline_of("run")
    assert (headline.status, headline.value, headline.word) == ("info", value, word)
    counts = result.counts("run")
    assert headline.value == sum(n for name, n in counts.items() if name.endswith(("problem", "problems")))
    assert len(headline.sentence.split()) <= MAX_WORDS


@pytest.mark.parametrize("x", ["R@4", "R(undefined=skip)@4"])
def test_the_headline_without_classified_topics(x: str) -> None:
    result = matrix({"q": {"a": 0}}, {"q": ["a"]}, x=x, y="RR@10", cuts=(0.5, 0.5))
    assert (result.headline_of("run").status, result.headline_of("run").value) == ("unknown", None)


def test_changes_and_lost_topics() -> None:
    result = sample_matrix()
    changes = {(change.slice, change.part): change for change in result.changes}
    assert changes["kind=low", "R@20"].result.difference == 0
    assert changes["kind=low", "nDCG@10"].significant
    assert changes["kind=gone", "R@20"].significant
    assert not changes["kind=good", "nDCG@10"].significant
    slice_changes = [change for change in result.changes if not change.is_overall and not change.small]
    assert len(slice_changes) == 8  # kind has three values, few one that is large enough: times two axes
    losses = result.lost["new"]
    assert losses["R@20"].mask.sum() == 20
    assert losses["nDCG@10"].mask.sum() == 40
    assert "40 of 60 topics" in " ".join(result.sentences)


def test_given_scores_baseline_and_cuts() -> None:
    scores = evaluate(QRELS, {"old": OLD, "new": NEW}, ["R@20", "nDCG@10"])
    result = scores.matrix(x="R@20", baseline="new", resamples=100)
    assert result.cuts[1] == pytest.approx(scores.value("nDCG@10", "new"))
    assert {change.system for change in result.changes} == {"old"}
    assert math.isnan(result.points[0].judged)
    with_cuts = scores.matrix(x="R@20", cuts=(0.5, 0.25), resamples=100)
    assert (with_cuts.cuts, with_cuts.custom_cuts) == ((0.5, 0.25), True)
    single_run = evaluate(QRELS, {"old": OLD}, ["R@20", "nDCG@10"]).matrix(x="R@20")
    assert (single_run.changes, single_run.lost) == ((), {})
    with pytest.raises(InputError, match="no table 'changes'"):
        single_run.table("changes")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"x": "R@500", "from_scores": True}, "R@500 was not evaluated"),
        ({"baseline": "none"}, "no run 'none' to use as the baseline"),
        ({"cuts": (math.nan, 0.5)}, "are not numbers"),
        ({"cuts": (2.0, 0.3)}, r"the cut 2 is outside the range of R@20. Fix: use a cut from 0 to 1"),
        ({"slicing": "kind"}, "must be slices or a table, got 'kind'"),
        ({"level": 1.0}, "confidence level"),
        ({"fdr": 0.0}, "false discovery rate"),
        ({"y": "R@20"}, "both axes are R@20"),
        ({"y": "NumRelRet"}, "has no mean over topics"),
        ({"y": "GMAP"}, "has no mean over topics"),
        ({"y": "Unjudged@10"}, "higher values of .* are not better"),
    ],
)
def test_invalid_input(options: dict[str, object], reason: str) -> None:
    scores = evaluate(QRELS, {"old": OLD}, ["R@20", "nDCG@10"]) if options.pop("from_scores", False) else None
    call = sample_matrix if scores is None else scores.matrix
    with pytest.raises((InputError, MeasureError), match=reason):
        call(**options)


def test_forms() -> None:
    result = sample_matrix()
    document = result.to_dict()
    assert document["points"][0]["quadrant"] is None
    topics = {(topic["run"], topic["query_id"]): topic for topic in document["topics"]}
    assert topics["new", "q01"]["quadrant"] == "ranking problem"
    assert document["lost"][0]["topics"][:2] == ["q02", "q05"]
    assert {row["quadrant"]: row["n"] for row in document["counts"] if row["run"] == "new"} == result.counts("new")
    rows = list(csv.DictReader(io.StringIO(result.csv("topics"))))
    assert (len(rows), rows[60]["run"], float(rows[60]["y"])) == (120, "new", 0.0)
    assert "ranking problem" in result.text(unfold=["topics"])
    assert "Bonferroni: 4 slices, two measures" in result.table("points").note
    assert result.topics_table("new").grid().rows[0][1] == "both problems"
    with pytest.raises(InputError, match="no run 'z'"):
        result.topics("z")


def test_the_picture_holds_every_topic_and_slice() -> None:
    pytest.importorskip("altair")
    result = sample_matrix()
    all_runs = json.dumps(result.chart().to_dict())
    single_run = json.dumps(result.chart("new").to_dict())
    for name in ("kind=low", "healthy", "coverage problem", "q59"):
        assert name in all_runs
        assert name in single_run
    assert all_runs.count('"label": "q59"') == 2
    assert single_run.count('"label": "q59"') == 1
    with pytest.raises(InputError, match="no chart 'z'"):
        result.chart("z")


def test_a_run_is_classed_as_a_whole_at_a_level_corrected_for_the_runs() -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    result = matrix(QRELS, {"old": OLD, "new": NEW, "again": OLD}, x="R@20", resamples=200)
    old, new, same = result.points
    assert (old.quadrant, new.quadrant, same.quadrant) == ("", "both problems", "undecided")
    t = scipy_stats.t.ppf(1 - 0.05 / 4 / 2, 59)  # two runs beside the baseline, two axes
    y = result.values("new")[1]
    assert new.y.high == pytest.approx(y.mean() + t * y.std(ddof=1) / math.sqrt(60))
    plain = scipy_stats.t.ppf(0.975, 59)
    y = result.values("old")[1]
    assert old.y.low == pytest.approx(y.mean() - plain * y.std(ddof=1) / math.sqrt(60))
    assert "by 98.75% CIs (Bonferroni: 2 runs besides the baseline, two measures)" in (result.table("points").note)
    assert result.sentences[1].startswith("new, all topics: both problems: R@20 0.")
    with_cuts = matrix(QRELS, {"new": NEW}, x="R@20", cuts=(0.9, 0.99), resamples=200)
    assert with_cuts.points[0].quadrant == "both problems"


def test_topics_with_nothing_relevant_are_a_class_of_their_own() -> None:
    qrels = {**QRELS, "q98": {"n": 0}, "q99": {"n": 0}}
    result = matrix(qrels, {"old": OLD}, x="R@20", resamples=200)
    assert result.topics("old")[-2:] == ("no relevant documents",) * 2
    assert result.counts("old")["no relevant documents"] == 2
    assert sum(result.counts("old").values()) == 62
    assert "2 with no relevant documents" in result.sentences[-1]
    assert "no relevant documents" not in sample_matrix().counts("new")
    unjudgeable = matrix({topic: {"n": 0} for topic in TOPICS}, {"old": OLD}, x="R@20", resamples=200)
    assert unjudgeable.counts("old")["healthy"] == 0
    assert unjudgeable.sentences == ("No topic has a relevant document, so no topic can be classified.",)
    strict = matrix(QRELS, {"old": OLD}, x="R@20", y="AP(rel=5)", resamples=200)
    assert set(strict.topics("old")) == {"no relevant documents"}


def test_full_judgment_is_claimed_only_where_it_is() -> None:
    result = sample_matrix()
    (gone_point,) = [point for point in result.points if (point.run, point.slice) == ("new", "kind=gone")]
    for judged, is_low in ((0.996, False), (0.94, True)):
        points = (replace(gone_point, quadrant="coverage problem", judged=judged),)
        text = " ".join(replace(result, points=(*result.points[:-1], *points)).sentences)
        assert ("because judgments are missing" in text) == is_low
        assert "100% of the top 10 documents" not in text


def test_many_runs_are_summed_up() -> None:
    runs = {"old": OLD, "new": NEW, **{f"run{i}": OLD for i in range(4)}}
    result = matrix(
        QRELS, runs, x="R@20", slicing=slice_topics(ATTRIBUTES, ["kind", "few"], min_topics=10), resamples=200
    )
    text = " ".join(result.text(100).split())
    assert len(result.text(100).splitlines()) < 25
    summary = next(block for block in result.blocks() if isinstance(block, Table) and block.name == "summary")
    rows = {row[0]: row for row in summary.grid().rows}
    assert rows["new"][1] == "both"
    assert rows["new"][4].mark == "*"
    assert (rows["old"][4], rows["run1"][6]) == ("-", "+0.0000")
    assert rows["new"][-4:] == ("0", "1", "0", "2")  # healthy, ranking (low), coverage, both (gone, few=false)
    assert "summary of 6 runs; for CIs, use --per-run" in text
    assert (
        "nDCG@10: of the other 5 runs, 1 are significantly lower than old, and 0 significantly"
        " higher (p corrected by Holm for 10 tests)."
    ) in text
    full = result.text(unfold=["points", "changes", "sentences"])
    assert "new, kind=gone: both problems" in full
    assert full.count("kind=good") > 6
    assert result.to_dict()["sentences"][0] not in text
    assert "in short" not in sample_matrix().text()


def test_tables_fit_a_hundred_columns() -> None:
    attributes = {topic: {"query_class": "known-item" if i % 2 else "how-to"} for i, topic in enumerate(TOPICS)}
    result = matrix(
        QRELS, {"bm25": OLD, "tfidf": NEW}, x="R@50", slicing=slice_topics(attributes, "query_class"), resamples=200
    )
    for table in (result.table(), result.table("changes"), result.topics_table()):
        assert max(map(len, table.text().splitlines())) <= 100
    grid = result.table("changes").grid()
    assert grid.header == ("run", "slice", "of", "topics", "run - bm25", "p")
    assert grid.rows[1][:3] == ("tfidf", "all topics", "nDCG@10")
    assert grid.rows[1][4].startswith("-")


def test_csv_has_slices_where_there_are_any() -> None:
    result = sample_matrix()
    rows = list(csv.DictReader(io.StringIO(result.csv())))
    assert [(row["run"], row["slice"]) for row in rows] == [(point.run, point.slice) for point in result.points]
    assert rows[0]["quadrant"] == ""
    i = next(i for i, point in enumerate(result.points) if (point.run, point.slice) == ("new", "kind=gone"))
    assert (rows[i]["y_side"], float(rows[i]["y_high"])) == ("below", result.points[i].y.high)
    single_run = matrix(QRELS, {"old": OLD}, x="R@20")
    assert len(single_run.csv("topics").splitlines()) == 61


def test_the_document_has_the_head_of_evaluate() -> None:
    document = sample_matrix().to_dict()
    scores = evaluate(QRELS, {"old": OLD, "new": NEW}, "R@20").to_dict()
    for name in ("judged", "versions", "qrels", "runs"):
        assert document[name] == scores[name]
    assert document["policies"]["ties"] == "docid"


def by_class(baseline: str = "old", min_topics: int = 10, **own: str) -> ClassMatrix:
    slicing = slice_topics(ATTRIBUTES, "kind", min_topics=min_topics).with_measures(own or OWN)
    measures = [*(own or OWN).values(), "R@10", "Judged@10"]
    return class_matrix(evaluate(QRELS, {"old": OLD, "new": NEW}, measures), slicing, x="R@10", baseline=baseline)


OWN = {"good": "P@5", "low": "RR", "gone": "nDCG@5"}


def test_each_class_has_the_means_of_the_baseline_by_its_own_measure_as_thresholds() -> None:
    result = by_class()
    scores = evaluate(QRELS, {"old": OLD, "new": NEW}, [*OWN.values(), "R@10"])
    assert [(point.run, point.slice) for point in result.points] == [
        (run, f"kind={kind}") for run in ("old", "new") for kind in ("gone", "good", "low")
    ]
    for point in result.points:
        kind = point.slice.removeprefix("kind=")
        on_class = scores.over_topics([ATTRIBUTES[topic]["kind"] == kind for topic in TOPICS])
        assert point.measure == OWN[kind]
        assert point.cuts == pytest.approx([on_class.value(name, "old") for name in ("R@10", OWN[kind])])
        assert (point.x.value, point.y.value) == pytest.approx(
            [on_class.value(name, point.run) for name in ("R@10", OWN[kind])]
        )
        assert (point.n, point.small) == (20, False)
    quadrants = {(point.run, point.slice): point.quadrant for point in result.points}
    assert {name for (run, _), name in quadrants.items() if run == "old"} == {""}
    assert quadrants["new", "kind=gone"] == "both problems"
    assert quadrants["new", "kind=low"] == "both problems"  # rank 13 is not in the top 10
    assert quadrants["new", "kind=good"] == "undecided"
    assert NO_AVERAGE in result.sentences
    records = {row["slice"]: row for row in result.table("points").records() if row["run"] == "new"}
    assert records["kind=low"]["y_cut"] == pytest.approx(by_class().points[2].y.value)
    assert not [text for text in (result.text(), result.csv(), result.json()) if "all topics" in text]


def test_thresholds_differ_between_classes() -> None:
    points = by_class(baseline="new").points
    assert [(point.run, point.slice, point.x.value) for point in points[:3]] == [
        ("new", "kind=gone", 0.0),
        ("new", "kind=good", 1.0),
        ("new", "kind=low", 0.0),
    ]
    assert points[0].cuts == (0.0, 0.0)
    assert points[1].cuts == (1.0, pytest.approx(0.4))  # P@5
    assert points[2].cuts == (0.0, pytest.approx(1 / 13))  # RR
    assert [(point.cuts, point.quadrant) for point in points[3:]] == [
        (points[0].cuts, "healthy"),
        (points[1].cuts, "undecided"),
        (points[2].cuts, "healthy"),
    ]


def test_intervals_of_classes_are_corrected_for_all_of_them() -> None:
    scores = evaluate(QRELS, {"old": OLD, "new": NEW, "third": NEW}, ["P@5", "RR", "nDCG@5", "R@10", "Judged@10"])
    slicing = slice_topics(ATTRIBUTES, "kind", min_topics=10).with_measures(OWN)
    point = class_matrix(scores, slicing, x="R@10").points[-1]
    assert (point.run, point.slice) == ("third", "kind=low")
    rows = [scores.values[2, scores.measure_names.index(name)] for name in ("R@10", "RR")]
    mask = slicing.mask("kind=low")
    for axis, row in zip((point.x, point.y), rows, strict=True):
        spread = max(row.std(ddof=1), row[mask].std(ddof=1))
        half = t.ppf(1 - 0.05 / 2 / (3 * 2 * 2), 19) * spread / math.sqrt(20)
        assert (axis.low, axis.high) == pytest.approx([max(axis.value - half, 0), min(axis.value + half, 1)])


def test_a_class_with_the_measure_of_the_candidates_has_a_coverage_problem_only() -> None:
    quadrants = {point.slice: point.quadrant for point in by_class(gone="R@10").points if point.run == "new"}
    assert quadrants == {"kind=gone": "coverage problem"}


def test_small_classes_are_shown_and_not_classified() -> None:
    points = by_class(min_topics=21).points
    assert [(point.small, point.quadrant, math.isnan(point.x.low)) for point in points] == [(True, "", True)] * 6


def test_wrong_classes_of_a_matrix() -> None:
    with pytest.raises(MeasureError, match="higher values of Judged@10"):
        by_class(good="Judged@10")
    plain = slice_topics(ATTRIBUTES, "kind")
    with pytest.raises(InputError, match="no class has its own measure"):
        class_matrix(evaluate(QRELS, {"old": OLD, "new": NEW}, ["R@100", "RR"]), plain)
