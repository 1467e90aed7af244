"""The performance matrix: cuts, sides, quadrants and changes by hand; the level that its intervals hold."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from judged import evaluate
from judged.comparison.slicing.parts import topic_subsets
from judged.comparison.slicing.topic_slices import slice_topics
from judged.diagnosis.matrix import Matrix, matrix
from judged.diagnosis.matrix.points import MatrixChoices, points_of, topic_quadrants
from judged.errors import InputError, MeasureError
from judged.results import Table

TOPICS = [f"q{at:02}" for at in range(60)]
QRELS = {topic: {"r1": 1, "r2": 1, "n": 0} for topic in TOPICS}
KNOWN = {topic: {"kind": ("good", "low", "gone")[at % 3], "few": at < 4} for at, topic in enumerate(TOPICS)}
FILL = [f"x{at}" for at in range(20)]


def ranked(at: int, *, damage: bool) -> list[str]:
    """Rank both relevant documents first; every seventh topic has one of them second, so that topics vary."""
    docs = ["r1", "r2", *FILL] if at % 7 else ["x0", "r1", "r2", *FILL[1:]]
    kind = ("good", "low", "gone")[at % 3] if damage else "good"
    if kind == "low":
        return [*FILL[:12], "r1", "r2", *FILL[12:]]
    return FILL if kind == "gone" else docs


OLD = {topic: ranked(at, damage=False) for at, topic in enumerate(TOPICS)}
NEW = {topic: ranked(at, damage=True) for at, topic in enumerate(TOPICS)}


def made(**options: object) -> Matrix:
    cut = slice_topics(KNOWN, ["kind", "few"], min_topics=10)
    given = {"x": "R@20", "slicing": cut, "resamples": 1000, **options}
    return matrix(QRELS, {"old": OLD, "new": NEW}, **given)


def test_quadrants_of_slices() -> None:
    found = made()
    told = {(point.run, point.slice): point for point in found.points}
    assert found.baseline == "old"
    scores = evaluate(QRELS, {"old": OLD}, ["R@20", "nDCG@10"])
    assert found.cuts == pytest.approx((scores.value("R@20"), scores.value("nDCG@10")))
    assert told["new", "kind=low"].quadrant == "ranking problem"
    assert (told["new", "kind=low"].x.side, told["new", "kind=low"].y.side) == ("not told apart", "below")
    assert told["new", "kind=gone"].quadrant == "both problems"
    assert told["new", "kind=good"].quadrant == "not told apart"
    assert told["old", "all topics"].quadrant == ""  # its means are the cuts
    assert told["new", "all topics"].quadrant == "both problems"
    small = next(point for point in found.points if point.small)
    assert (small.slice, small.n, small.quadrant) == ("few=true", 4, "")
    assert math.isnan(small.y.low)
    text = " ".join(found.sentences)
    meaning = "what is relevant is ranked badly; that less of it is found is not shown"  # R@20 is not told apart
    assert f"new, kind=low: ranking problem ({meaning}): R@20 1.000" in text
    assert "nDCG@10 0.000 [0.000, " in text
    assert "below the baseline's 0.9" in text
    assert "too few topics to be classed: few=true" in text


def test_intervals_are_those_of_the_wider_spread_at_the_corrected_level() -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    values = np.array([[0.0, 0.2, 0.4, 0.6, 0.8, 1.0] * 4, [0.5, 0.5, 0.5, 0.5, 0.9, 0.1] * 4, [1.0] * 24])
    known = {str(at): {"same": at % 6 < 4} for at in range(24)}
    where = topic_subsets(24, slice_topics(known, "same", min_topics=2, query_ids=[str(at) for at in range(24)]))
    points = {one.slice: one for one in points_of("r", values, where, (0.5, 0.5), [(0, 1), (0, 1)], MatrixChoices())}
    same = points["same=true"]
    t = scipy_stats.t.ppf(1 - 0.05 / 4 / 2, 15)  # two slices, two axes; 16 topics
    own, whole = values[0, where[-1].mask].std(ddof=1), values[0].std(ddof=1)
    assert own < whole
    assert same.x.value == pytest.approx(0.3)
    assert same.x.high == pytest.approx(0.3 + t * whole / 4)
    assert same.y.low == pytest.approx(0.5 - t * values[1].std(ddof=1) / 4)  # its own spread is 0
    all_topics = points["all topics"]
    assert all_topics.x.high == pytest.approx(0.5 + scipy_stats.t.ppf(0.975, 23) * whole / math.sqrt(24))


def test_slices_that_happen_to_be_alike_are_not_told_apart() -> None:
    """Ten topics of a perfect score among ninety, of which a tenth fail, are not a finding."""
    values = np.ones((3, 100))
    values[:2, ::10] = 0.0
    known = {f"{at:03}": {"lucky": 1 <= at % 10 <= 2 and at < 55} for at in range(100)}
    where = topic_subsets(100, slice_topics(known, "lucky", min_topics=10))
    points = points_of("r", values, where, (0.9, 0.9), [(0, 1), (0, 1)], MatrixChoices())
    lucky = next(one for one in points if one.slice == "lucky=true")
    assert (lucky.n, lucky.x.value) == (12, 1.0)
    assert lucky.quadrant == "not told apart"


def test_the_level_holds_over_all_slices() -> None:
    """Slices that say nothing are told apart from the baseline's own mean in at most one of twenty repetitions."""
    rng = np.random.default_rng(5)
    false = 0
    for _ in range(300):
        x = np.where(rng.random(160) < 0.7, 1.0, rng.random(160))  # skewed, as recall is
        y = rng.beta(2, 1, size=160)
        values = np.stack([x, y, np.ones(160)])
        known = {f"{at:03}": {"luck": f"g{rng.integers(8)}"} for at in range(160)}
        where = topic_subsets(160, slice_topics(known, "luck", min_topics=10))
        cuts = (float(x.mean()), float(y.mean()))
        points = points_of("r", values, where, cuts, [(0, 1), (0, 1)], MatrixChoices())
        false += any({one.x.side, one.y.side} & {"below", "above"} for one in points)
    assert false <= 0.05 * 300


def test_topics_by_the_cuts_alone() -> None:
    values = np.array([[0.5, 0.5, 0.4, 0.4, math.nan], [0.3, 0.2, 0.3, 0.2, 1.0]])
    assert topic_quadrants(values, (0.5, 0.3)) == (
        "healthy", "ranking problem", "coverage problem", "both problems", "",
    )  # fmt: skip
    assert topic_quadrants(values, (0.1 + 0.4 + 1e-16, 0.1 * 3))[0] == "healthy"  # rounding is not a difference
    found = made(cuts=(0.5, 0.5))
    assert found.counts("new") == {
        "healthy": sum(name == "healthy" for name in found.topics("new")),
        "ranking problem": 20, "coverage problem": 0, "both problems": 20,
    }  # fmt: skip
    assert sum(found.counts("new").values()) == 60
    assert found.said_counts("new") == "20 healthy, 20 with a ranking problem, 20 with both problems"


def test_changes_and_lost_topics() -> None:
    found = made()
    told = {(one.slice, one.part): one for one in found.changes}
    assert told["kind=low", "R@20"].result.difference == 0
    assert told["kind=low", "nDCG@10"].significant
    assert told["kind=gone", "R@20"].significant
    assert not told["kind=good", "nDCG@10"].significant
    tested = [one for one in found.changes if not one.every and not one.small]
    assert len(tested) == 8  # kind has three values, few one that is large enough: times two axes
    lost = found.lost["new"]
    assert lost["R@20"].mask.sum() == 20
    assert lost["nDCG@10"].mask.sum() == 40
    assert "new by nDCG@10: 40 of 60 topics lost" in " ".join(found.sentences)


def test_given_scores_baseline_and_cuts() -> None:
    scores = evaluate(QRELS, {"old": OLD, "new": NEW}, ["R@20", "nDCG@10"])
    found = scores.matrix(x="R@20", baseline="new", resamples=100)
    assert found.cuts[1] == pytest.approx(scores.value("nDCG@10", "new"))
    assert {one.system for one in found.changes} == {"old"}
    assert math.isnan(found.points[0].judged)
    given = scores.matrix(x="R@20", cuts=(0.5, 0.25), resamples=100)
    assert (given.cuts, given.given_cuts) == ((0.5, 0.25), True)
    alone = evaluate(QRELS, {"old": OLD}, ["R@20", "nDCG@10"]).matrix(x="R@20")
    assert (alone.changes, alone.lost) == ((), {})
    with pytest.raises(InputError, match="no table 'changes'"):
        alone.table("changes")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"x": "R@500", "given": True}, "R@500 was not evaluated"),
        ({"baseline": "none"}, "no run 'none' to use as the baseline"),
        ({"cuts": (math.nan, 0.5)}, "are not numbers"),
        ({"cuts": (2.0, 0.3)}, r"R@20 is never on both sides of 2. Fix: give a cut from 0 to 1"),
        ({"slicing": "kind"}, "must be slices or a table, got 'kind'"),
        ({"level": 1.0}, "confidence level"),
        ({"fdr": 0.0}, "false discovery rate"),
        ({"y": "R@20"}, "both axes are R@20"),
        ({"y": "NumRelRet"}, "has no mean over topics"),
        ({"y": "GMAP"}, "has no mean over topics"),
        ({"y": "Unjudged@10"}, "higher is not better"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, object], why: str) -> None:
    scores = evaluate(QRELS, {"old": OLD}, ["R@20", "nDCG@10"]) if options.pop("given", False) else None
    call = made if scores is None else scores.matrix
    with pytest.raises((InputError, MeasureError), match=why):
        call(**options)


def test_forms() -> None:
    found = made()
    document = found.to_dict()
    assert document["points"][0]["quadrant"] is None
    topics = {(topic["run"], topic["query_id"]): topic for topic in document["topics"]}
    assert topics["new", "q01"]["quadrant"] == "ranking problem"
    assert document["lost"][0]["found"][:2] == ["q02", "q05"]
    assert {row["quadrant"]: row["n"] for row in document["counts"] if row["run"] == "new"} == found.counts("new")
    rows = list(csv.DictReader(io.StringIO(found.csv("topics"))))
    assert (len(rows), rows[60]["run"], float(rows[60]["y"])) == (120, "new", 0.0)
    assert "ranking problem" in found.text(unfold=["topics"])
    assert "Bonferroni: 4 slices, two axes" in found.table("points").note
    assert found.topics_table("new").grid().rows[0][1] == "both problems"
    with pytest.raises(InputError, match="no run 'z'"):
        found.topics("z")


def test_the_picture_holds_every_topic_and_slice() -> None:
    pytest.importorskip("altair")
    found = made()
    both = json.dumps(found.chart().to_dict())
    one = json.dumps(found.chart("new").to_dict())
    for name in ("kind=low", "healthy", "coverage problem", "q59"):
        assert name in both
        assert name in one
    assert both.count('"label": "q59"') == 2
    assert one.count('"label": "q59"') == 1
    with pytest.raises(InputError, match="no chart 'z'"):
        found.chart("z")


def test_a_run_is_classed_as_a_whole_at_a_level_corrected_for_the_runs() -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    found = matrix(QRELS, {"old": OLD, "new": NEW, "again": OLD}, x="R@20", resamples=200)
    old, new, again = found.points
    assert (old.quadrant, new.quadrant, again.quadrant) == ("", "both problems", "not told apart")
    t = scipy_stats.t.ppf(1 - 0.05 / 4 / 2, 59)  # two runs beside the baseline, two axes
    y = found.values("new")[1]
    assert new.y.high == pytest.approx(y.mean() + t * y.std(ddof=1) / math.sqrt(60))
    plain = scipy_stats.t.ppf(0.975, 59)
    y = found.values("old")[1]
    assert old.y.low == pytest.approx(y.mean() - plain * y.std(ddof=1) / math.sqrt(60))
    assert "by intervals of 98.75% (Bonferroni: 2 runs beside the baseline, two axes)" in (found.table("points").note)
    assert found.sentences[1].startswith("new, all topics: both problems: R@20 0.")
    given = matrix(QRELS, {"new": NEW}, x="R@20", cuts=(0.9, 0.99), resamples=200)
    assert given.points[0].quadrant == "both problems"


def test_topics_with_nothing_relevant_are_a_class_of_their_own() -> None:
    qrels = {**QRELS, "q98": {"n": 0}, "q99": {"n": 0}}
    found = matrix(qrels, {"old": OLD}, x="R@20", resamples=200)
    assert found.topics("old")[-2:] == ("nothing relevant",) * 2
    assert found.counts("old")["nothing relevant"] == 2
    assert sum(found.counts("old").values()) == 62
    assert "2 with nothing relevant" in found.sentences[-1]
    assert "nothing relevant" not in made().counts("new")
    none = matrix({topic: {"n": 0} for topic in TOPICS}, {"old": OLD}, x="R@20", resamples=200)
    assert none.counts("old")["healthy"] == 0
    assert none.sentences == ("No topic has a relevant document: nothing can be missed, and nothing ranked badly.",)
    strict = matrix(QRELS, {"old": OLD}, x="R@20", y="AP(rel=5)", resamples=200)
    assert set(strict.topics("old")) == {"nothing relevant"}


def test_full_judgment_is_claimed_only_where_it_is() -> None:
    found = made()
    (gone,) = [one for one in found.points if (one.run, one.slice) == ("new", "kind=gone")]
    for judged, said in ((0.996, False), (0.94, True)):
        points = (replace(gone, quadrant="coverage problem", judged=judged),)
        text = " ".join(replace(found, points=(*found.points[:-1], *points)).sentences)
        assert ("for want of judgments" in text) == said
        assert "100% of its first 10" not in text


def test_many_runs_are_summed_up() -> None:
    runs = {"old": OLD, "new": NEW, **{f"run{at}": OLD for at in range(4)}}
    found = matrix(QRELS, runs, x="R@20", slicing=slice_topics(KNOWN, ["kind", "few"], min_topics=10), resamples=200)
    text = " ".join(found.text(100).split())
    assert len(found.text(100).splitlines()) < 25
    summary = next(block for block in found.blocks() if isinstance(block, Table) and block.name == "summary")
    rows = {row[0]: row for row in summary.grid().rows}
    assert rows["new"][1] == "both"
    assert rows["new"][4].mark == "*"
    assert (rows["old"][4], rows["run1"][6]) == ("-", "+0.0000")
    assert rows["new"][-4:] == ("0", "1", "0", "2")  # healthy, ranking (low), coverage, both (gone, few=false)
    assert "6 runs in short, without intervals" in text
    assert "nDCG@10: 1 of the other 5 runs are lower than old, and 0 higher, beyond luck (Holm over 10 tests)." in text
    full = found.text(unfold=["points", "changes", "sentences"])
    assert "new, kind=gone: both problems" in full
    assert full.count("kind=good") > 6
    assert found.to_dict()["sentences"][0] not in text
    assert "in short" not in made().text()


def test_tables_fit_a_hundred_columns() -> None:
    known = {topic: {"query_class": "known-item" if at % 2 else "how-to"} for at, topic in enumerate(TOPICS)}
    found = matrix(
        QRELS, {"bm25": OLD, "tfidf": NEW}, x="R@50", slicing=slice_topics(known, "query_class"), resamples=200
    )
    for table in (found.table(), found.table("changes"), found.topics_table()):
        assert max(map(len, table.text().splitlines())) <= 100
    grid = found.table("changes").grid()
    assert grid.header == ("run", "slice", "of", "topics", "run - bm25", "p")
    assert grid.rows[1][:3] == ("tfidf", "all topics", "nDCG@10")
    assert grid.rows[1][4].startswith("-")


def test_csv_has_slices_where_there_are_any() -> None:
    found = made()
    rows = list(csv.DictReader(io.StringIO(found.csv())))
    assert [(row["run"], row["slice"]) for row in rows] == [(point.run, point.slice) for point in found.points]
    assert rows[0]["quadrant"] == ""
    at = next(at for at, point in enumerate(found.points) if (point.run, point.slice) == ("new", "kind=gone"))
    assert (rows[at]["y_side"], float(rows[at]["y_high"])) == ("below", found.points[at].y.high)
    alone = matrix(QRELS, {"old": OLD}, x="R@20")
    assert len(alone.csv("topics").splitlines()) == 61


def test_the_document_has_the_head_of_evaluate() -> None:
    document = made().to_dict()
    scores = evaluate(QRELS, {"old": OLD, "new": NEW}, "R@20").to_dict()
    for name in ("judged", "versions", "qrels", "runs"):
        assert document[name] == scores[name]
    assert document["policies"]["ties"] == "docid"
