"""Scores by slice: equal to evaluating the topics alone, averages by hand, and significant slices."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

import judged
from judged import InputError, derive, evaluate, slice_topics
from judged.comparison.pair import TIMES
from judged.results.headline import MAX_WORDS
from judged.scoring.measures.aggregates import aggregate
from slices_made import scores_of, slicing_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from judged.scoring.evaluation import Estimate

NAN = math.nan
HARD = ["easy"] * 30 + ["hard"] * 15 + ["rare"] * 3


def values(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.clip(rng.normal(np.where(np.array(HARD) == "hard", 0.3, 0.6), 0.1), 0, 1)


def numbers(estimates: Iterable[Estimate]) -> list[tuple[object, ...]]:
    return [
        (estimate.run, estimate.measure, estimate.aggregate, estimate.value, estimate.ci, estimate.n)
        for estimate in estimates
    ]


def test_a_slice_is_an_evaluation_of_its_topics() -> None:
    scores = scores_of({"a": values(1), "b": values(2)})
    result = scores.by_slice(slicing_of(HARD))
    assert result.names == ("all topics", "group=easy", "group=hard", "group=rare")
    for name, mask in zip(result.names[1:], result.slicing.members, strict=True):
        alone = scores.over_topics(mask).estimates()
        assert numbers(row for row in result.estimates if row.part == name) == numbers(alone)
    assert numbers(result.estimates[:2]) == numbers(scores.estimates())
    assert result.value("group=hard", "b") == pytest.approx(values(2)[30:45].mean())
    assert [(estimate.size, estimate.share, estimate.small) for estimate in result.estimates[2::2]] == [
        (30, 30 / 48, False), (15, 15 / 48, False), (3, 3 / 48, True),
    ]  # fmt: skip


FEW = [f"few{i // 5}" for i in range(18)]  # too few topics each to be tested


@pytest.mark.parametrize(
    ("numbers", "groups", "status", "slice_name"),
    [
        (values(), HARD, "worse", "group=hard"),
        (values(), ["easy"] * 30 + FEW, "better", "group=easy"),
        (np.linspace(0, 1, 48), ["x", "y"] * 24, "same", "group=x"),
        (values(), [f"few{i // 5}" for i in range(48)], "unknown", None),
    ],
)
def test_the_headline_is_the_test_of_the_weakest_slice(
    numbers: np.ndarray, groups: list[str], status: str, slice_name: str | None
) -> None:
    result = scores_of({"a": numbers, "b": numbers[::-1]}).by_slice(slicing_of(groups))
    headline = result.headline
    assert headline is not None
    assert headline.status == status
    assert len(headline.sentence.split()) <= MAX_WORDS
    assert result.to_dict()["headline"]["value"] == headline.value
    if slice_name is None:
        assert (headline.value, headline.ci) == (None, None)
        return
    row = result.estimate(slice_name, "a")
    assert row.contrast is not None
    assert (headline.value, headline.ci) == (row.contrast.difference, row.contrast.interval)
    assert {"worse": False, "better": True, "same": None}[status] is row.better


def test_the_headline_where_lower_or_neither_is_better() -> None:
    lower = scores_of({"a": values()}, "Fallout(n=9)@10").by_slice(slicing_of(HARD)).headline
    neutral = scores_of({"a": values()}, "Judged@10").by_slice(slicing_of(HARD)).headline
    assert lower is not None
    assert neutral is not None
    assert (lower.status, neutral.status) == ("worse", "info")
    assert "group=easy" in lower.sentence
    assert "group=hard" in neutral.sentence


def test_small_slices_stand_last_and_are_not_judged() -> None:
    result = scores_of({"a": values()}).by_slice(slicing_of(["a few"] * 4 + HARD[4:]))
    assert result.names == ("all topics", "group=easy", "group=hard", "group=a few", "group=rare")
    assert {estimate.part for estimate in result.tested} == {"group=easy", "group=hard"}
    assert [row[0] for row in result.overview().grid().rows[3:5]] == ["group=a few (few)", "group=rare (few)"]
    assert result.sentences[-1] == (
        "2 slices have too few topics (`group=a few` 4 of 10, `group=rare` 3 of 10) and were not tested."
    )


def test_ways_to_average_by_hand() -> None:
    scores = scores_of({"a": [1.0, 0.8, 0.6, 0.0, 0.2, 0.5]})
    slicing = slicing_of(["x", "x", "x", "y", "y", "z"], min_topics=2)
    weights = [10, 10, 10, 60, 0, 10]
    result = scores.by_slice(slicing, weights={"traffic": weights}, ci="t")
    assert result.average().value == pytest.approx(3.1 / 6)
    assert result.average("mean of slices").value == pytest.approx((0.8 + 0.1) / 2)  # z has one topic
    traffic = result.average("traffic-weighted mean")
    assert traffic.value == pytest.approx((10 + 8 + 6 + 0 + 5) / 100)
    assert (traffic.n, traffic.effective) == (5, pytest.approx(100**2 / (4 * 100 + 3600)))
    assert traffic.ci is not None
    assert traffic.ci[0] < traffic.value < traffic.ci[1]
    shares = [estimate.weight for estimate in result.estimates]
    assert shares == pytest.approx([1.0, 0.3, 0.6, 0.1])
    assert scores.by_slice(slicing, weights=weights, ci="t").averages == result.averages
    assert any("effective sample size is 2 topics" in text for text in result.warnings)


def test_recall_weighted_by_relevant_documents_is_that_of_all_of_them() -> None:
    """Found: 1 of 1, 2 of 4, 0 of 3: 3 of 8 in all; the topic mean is (1 + 0.5 + 0) / 3."""
    qrels = {"q1": {"a": 1}, "q2": dict.fromkeys("abcd", 1), "q3": dict.fromkeys("abc", 1)}
    scores = evaluate(qrels, {"q1": ["a"], "q2": ["a", "x", "b"], "q3": ["y"]}, "R@10")
    attributes = {query: {"kind": "any", "relevant": len(docs)} for query, docs in qrels.items()}
    result = scores.by_slice(slice_topics(attributes, "kind"), weights="relevant", ci="none")
    assert result.average().value == pytest.approx(0.5)
    pooled = result.average("weighted by relevant documents")
    assert pooled.value == pytest.approx(3 / 8)
    assert pooled.ci is None


def test_geometric_means_are_averaged_by_their_logarithms() -> None:
    scores = scores_of({"a": [0.1, 0.4, 0.9, 0.0, 0.2, 0.5]}, "GMAP")
    slicing = slicing_of(["x", "x", "x", "y", "y", "y"], min_topics=2)
    result = scores.by_slice(slicing, weights=[1, 1, 1, 0, 0, 2])
    x, y = (aggregate("geometric mean", scores.values[0, 0, mask]) for mask in slicing.members)
    assert result.value("group=x") == pytest.approx(x)
    assert result.average("mean of slices").value == pytest.approx(math.sqrt(x * y))
    assert result.average("traffic-weighted mean").value == pytest.approx((0.1 * 0.4 * 0.9 * 0.25) ** 0.2)


def test_sums_are_shown_and_not_averaged() -> None:
    scores = scores_of({"a": np.ones((2, 24))}, "num_ret", "P@5")
    result = scores.by_slice(slicing_of(["x", "y"] * 12), ci="none")
    assert result.value("group=x", measure="num_ret") == 12
    assert (
        {average.measure for average in result.averages} == {estimate.measure for estimate in result.tested} == {"P@5"}
    )
    assert [row[3] for row in result.overview().grid().rows] == ["24", "12", "12", "-"]


def test_slices_that_overlap_have_no_mean() -> None:
    attributes = {f"q{i:04}": {"words": i, "kind": "a" if i % 2 else "b"} for i in range(40)}
    slicing = slice_topics(attributes, slices=[{"name": "short", "expression": "words < 20"},
                                               {"name": "a", "expression": "kind == 'a'"}])  # fmt: skip
    result = scores_of({"a": np.linspace(0, 1, 40)}).by_slice(slicing)
    assert {average.part for average in result.averages} == {"topic mean"}
    with pytest.raises(InputError, match="no average 'mean of slices'"):
        result.average("mean of slices")
    assert "The slices overlap, so the mean of slices is not computed, only the topic mean." in result.sentences
    assert result.to_dict()["overlap"] is True
    assert result.warnings[-1] == "10 of 40 topics are in no slice"


def test_complementary_slices_are_described_once() -> None:
    result = scores_of({"a": values()}).by_slice(slicing_of(["easy"] * 30 + ["hard"] * 15 + ["easy"] * 3))
    assert result.tests == 1  # hard versus rest is the same test as easy versus rest
    assert [(estimate.part, estimate.better) for estimate in result.tested] == [
        ("group=easy", True),
        ("group=hard", False),
    ]
    (hard, averages) = result.sentences
    assert hard.startswith(
        "a: `group=hard` is significantly worse than the other topics in nDCG@10: 0.326 over 15 topics, -0.273"
    )
    assert hard.endswith("p = 0.0001.")
    assert averages.startswith("Averages of the ")
    assert [row[-1].split()[-1] for row in result.overview().grid().rows[1:3]] == ["†", "‡"]


def test_no_claims_without_differences() -> None:
    rng = np.random.default_rng(5)
    scores = scores_of({"a": rng.random(60), "b": rng.random(60)})
    result = scores.by_slice(slicing_of(["x", "y", "z"] * 20))
    assert result.tests == 6
    assert not any(estimate.significant for estimate in result.tested)
    assert result.sentences[0].startswith(
        "No slice differs significantly from the other topics (6 tests, p corrected by Holm)."
    )


def test_p_values_are_corrected_for_slices_runs_and_measures() -> None:
    rng = np.random.default_rng(6)
    scores = scores_of({"a": rng.random((2, 60)), "b": rng.random((2, 60))}, "nDCG@10", "AP")
    result = scores.by_slice(slicing_of(["x", "y", "z"] * 20))
    assert result.tests == len(result.tested) == 12
    by_p = sorted(result.tested, key=lambda row: row.contrast.p)
    assert by_p[0].adjusted == pytest.approx(min(1.0, 12 * by_p[0].contrast.p))


def test_a_slice_whose_topics_have_no_score_is_not_tested() -> None:
    scores = values()
    scores[30:40] = NAN  # 5 of 15 remain
    result = scores_of({"a": scores}).by_slice(slicing_of(HARD))
    assert [estimate.part for estimate in result.tested] == ["group=easy"]
    assert result.estimate("group=hard").n == 5


def test_a_slice_without_topics() -> None:
    attributes = {f"q{i:04}": {"words": i} for i in range(20)}
    slices = [{"name": "none", "expression": "words > 99"}, {"name": "all", "expression": ""}]
    result = scores_of({"a": np.linspace(0, 1, 20)}).by_slice(slice_topics(attributes, slices=slices))
    assert math.isnan(result.value("none"))
    assert result.estimate("none").size == 0
    assert "no topic is in the slice none" in result.warnings
    assert result.overview().grid().rows[-1][-1] == "-"


def test_topics_of_another_collection_do_not_count() -> None:
    attributes = {f"q{i:04}": {"group": "x"} for i in range(100)}
    result = scores_of({"a": np.linspace(0, 1, 20)}).by_slice(slice_topics(attributes, "group"))
    assert result.estimate("group=x").size == 20


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        ("group", "not a number"),
        ("traffic", "no attribute"),
        ([1, 2], "shape"),
        ([-1] * 48, "must be finite and >= 0, got -1"),
        ([NAN] * 48, "no positive weight"),
        (3, "must be names or numbers, got int"),
    ],
)
def test_weights_that_are_none(weights: object, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        scores_of({"a": values()}).by_slice(slicing_of(HARD), weights=weights)


def test_unknown_names() -> None:
    result = scores_of({"a": values()}).by_slice(slicing_of(HARD))
    for call in (lambda: result.value("group=odd"), lambda: result.value(run="z"), lambda: result.overview("AP")):
        with pytest.raises(InputError, match="Fix: use"):
            call()


def test_forms() -> None:
    result = scores_of({"a": values(1), "b": values(2)}, "nDCG@10").by_slice(slicing_of(HARD), weights=[1] * 48)
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert [row["slice"] for row in document["results"][::2]] == list(result.names)
    assert document["results"][4]["value"] == result.value("group=hard", "a")
    assert document["results"][2]["n"] == 30
    rows = list(csv.DictReader(io.StringIO(result.csv())))
    assert [float(row["value"]) for row in rows] == [estimate.value for estimate in result.estimates]
    assert rows[-1]["small"] == "true"
    (test,) = [estimate for estimate in result.tested if (estimate.part, estimate.run) == ("group=hard", "a")]
    (row,) = [row for row in rows if (row["slice"], row["run"]) == ("group=hard", "a")]
    assert (float(row["rest_p"]), float(row["adjusted"])) == (test.contrast.p, test.adjusted)
    assert (row["significant"], row["better"]) == ("true", "false")
    assert rows[0]["rest_p"] == rows[-1]["adjusted"] == ""  # all topics, and a slice that is too small
    assert document["versions"] == result.scores.versions
    assert document["runs"]["a"]["sha256"] == result.scores.runs[0].sha256
    assert result.markdown().splitlines()[0] == "| nDCG@10 | topics | share | of traffic | a | b |"
    assert repr(result).startswith(result.text())
    averages = result.table("averages").column("name").values
    assert averages == ["topic mean"] * 2 + ["mean of slices"] * 2 + ["traffic-weighted mean"] * 2
    assert result.overview(run="b").grid().header == ("slice", "topics", "share", "of traffic", "nDCG@10")
    assert all(len(line) <= 60 for line in result.text(60).splitlines())


def test_the_caption_tells_of_what_is_there() -> None:
    rng = np.random.default_rng(5)
    none = scores_of({"a": rng.random(60)}).by_slice(slicing_of(["x", "y", "z"] * 20))
    assert "no slice is significantly better or worse than the other topics (permutation test" in none.text()
    assert not set("†‡") & set(none.text())
    both = scores_of({"a": values()}).by_slice(slicing_of(HARD)).text().replace("\n", " ")
    assert "† significantly better, ‡ significantly worse than the other topics (" in both
    many = scores_of({name: rng.random(60) for name in "abcd"}).by_slice(slicing_of(["x", "y", "z"] * 20))
    assert "tables with more than 3 columns of numbers omit CIs; CSV and JSON include them" in many.text().replace(
        "\n", " "
    )


def test_the_chart_has_every_number() -> None:
    result = scores_of({"a": values(1), "b": values(2)}).by_slice(slicing_of(HARD))
    points = result.charts()["nDCG@10"].table.records()
    assert {(point["slice"], point["run"]): point["value"] for point in points} == {
        (f"{estimate.part} ({estimate.size})", estimate.run): estimate.value for estimate in result.estimates
    }
    assert {point["slice"] for point in points if point["small"]} == {"group=rare (3)"}


def test_a_sentence_of_geometric_means_names_their_ratio() -> None:
    qrels = {f"q{i:02}": {"d": 1, "e": 1} for i in range(40)}
    ranked = {query: ["d", "e"] if i < 20 else ["x", "d"] for i, query in enumerate(qrels)}
    groups = {query: {"group": "easy" if i < 20 else "hard"} for i, query in enumerate(qrels)}
    result = evaluate(qrels, ranked, "GMAP").by_slice(slice_topics(groups, "group"))
    text = result.sentences[0]
    assert f"in GMAP: 0.250 over 20 topics, {TIMES}0.250 compared with the other 20 topics" in text
    assert f"CI [{TIMES}0.250, {TIMES}0.250]" in text


def test_relevant_documents_of_another_level_are_not_pooled() -> None:
    qrels = {"a": {"d": 2, "e": 2, "f": 1}, "b": {"d": 2, "e": 1, "f": 1, "g": 1}}
    scores = evaluate(qrels, {"a": ["d"], "b": ["d"]}, ["R(rel=2)@5", "R@5"])
    result = scores.by_slice(slice_topics(derive(qrels), "relevant"), weights="relevant", ci="none")
    assert result.average("weighted by relevant documents", measure="R@5").value == pytest.approx(2 / 7)
    other = result.average("weighted by relevant documents", measure="R(rel=2)@5").value
    assert other == pytest.approx((3 * 1 / 2 + 4 * 1) / 7)  # 2 of 3 are found
    text = next(warning for warning in result.warnings if "micro" in warning)
    assert text.startswith("the attribute `relevant`, used as weights, counts documents of grade 1 or higher")
    assert text.endswith(
        "The relevance threshold of R(rel=2)@5 is different, so the weighted mean is not the micro-average"
    )
    assert not any("micro" in warning for warning in scores.by_slice(result.slicing, ci="none").warnings)


def test_slices_of_sizes_that_add_up_are_not_taken_for_two_halves() -> None:
    """`low` and `high` overlap: 10 and 30 of 40 topics, and they are not complements."""
    scores = scores_of({"a": np.r_[np.linspace(0.0, 0.2, 10), np.linspace(0.7, 0.9, 30)]})
    attributes = {query: {"at": float(i)} for i, query in enumerate(scores.query_ids)}
    slices = [{"name": "low", "expression": "at < 10"}, {"name": "high", "expression": "8 <= at < 38"}]
    result = scores.by_slice(slice_topics(attributes, slices=slices))
    assert [(estimate.part, estimate.better) for estimate in result.tested] == [("low", False), ("high", True)]
    assert [text.split(" is ")[0] for text in result.sentences[:2]] == ["a: `low`", "a: `high`"]


def test_an_average_that_does_not_exist_is_not_told() -> None:
    scores = values()
    scores[30:45] = NAN  # no scores in a slice that has enough topics
    result = scores_of({"a": scores}).by_slice(slicing_of(HARD), weights=np.arange(48.0))
    assert math.isnan(result.average("mean of slices").value)
    text = next(sentence for sentence in result.sentences if sentence.startswith("Averages of the"))
    assert "nan" not in text
    assert "mean of the" not in text


def test_slices_of_very_few_topics_come_with_what_their_means_are_worth() -> None:
    groups = ["many"] * 12 + ["pair"] * 2 + ["four"] * 4
    result = scores_of({"run": np.linspace(0.1, 0.9, 18)}).by_slice(slicing_of(groups))
    assert [warning for warning in result.warnings if warning.startswith("group=four, group=pair: 4 topics are weak")]


def test_a_table_of_one_attribute_is_sliced_by_it(tmp_path: Path) -> None:
    qrels, run = {"q1": {"d": 1}, "q2": {"d": 1}}, {"q1": ["d"], "q2": ["x", "d"]}
    (tmp_path / "one.csv").write_text("query_id,kind\nq1,law\nq2,news\n")
    (tmp_path / "two.csv").write_text("query_id,text,kind\nq1,a question,law\nq2,another,law\n")
    for table in (str(tmp_path / "one.csv"), tmp_path / "one.csv", {"q1": {"kind": "law"}, "q2": {"kind": "news"}}):
        assert judged.slices(qrels, run, table, "RR").value("kind=news") == 0.5
    with pytest.raises(InputError, match=r"choose one of text, kind: slice_topics\('.*two\.csv', 'kind'\)"):
        judged.slices(qrels, run, str(tmp_path / "two.csv"), "RR")
    with pytest.raises(InputError, match="there is no such file"):
        judged.slices(qrels, run, "three.csv", "RR")
