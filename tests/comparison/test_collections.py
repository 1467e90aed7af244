"""Comparison on several collections: one table, separate tests, and macro means."""

from __future__ import annotations

import json

import pytest

from comparison_made import lists, scores
from judged import InputError, compare_collections
from judged.comparison import collections_of_scores

GOOD, FAIR, POOR = [1] * 9, [2] * 9, [4] * 9
NEWS = scores(["RR", "P@2"], bm25=FAIR, dense=GOOD, rrf=POOR)
WEB = scores(["P@2", "RR"], rrf=[1] * 12, dense=[2] * 12, bm25=[2] * 12)


@pytest.fixture(scope="module")
def result():
    return collections_of_scores({"news": NEWS, "web": WEB})


def test_numbers_and_marks_are_those_of_each_collection(result) -> None:
    assert result.systems == ("bm25", "dense", "rrf")
    assert result.order() == ("dense", "rrf", "bm25")
    table = result.leaderboard("RR").grid()
    assert table.header == ("", "RR", "news", "web", "mean")
    assert [tuple(map(str, row)) for row in table.rows] == [
        ("a", "dense", "1.0000 bc", "0.5000", "0.7500"),
        ("b", "rrf", "0.2500", "1.0000 ac", "0.6250"),
        ("c", "bm25", "0.5000 b", "0.5000", "0.5000"),
    ]
    assert [[getattr(cell, "best", False) for cell in row[2:]] for row in table.rows] == [
        [True, False, True], [False, True, False], [False, False, False],
    ]  # fmt: skip
    for name, source in (("news", NEWS), ("web", WEB)):
        alone = {
            frozenset((pair.first, pair.second)): pair for pair in source.compare(measures=["RR", "P@2"]).pairs[:3]
        }
        for pair in result.comparisons[name].measure("RR").pairs:
            same = alone[frozenset((pair.first, pair.second))]
            assert (same.result.difference, same.result.p, same.result.adjusted, same.better, same.wins) == (
                pair.result.difference, pair.result.p, pair.result.adjusted, pair.better, pair.wins,
            )  # fmt: skip


def test_a_baseline(result) -> None:
    output = collections_of_scores({"news": NEWS, "web": WEB}, "RR", baseline="bm25")
    assert [tuple(map(str, row)) for row in output.leaderboard().grid().rows] == [
        ("dense", "1.0000 †", "0.5000", "0.7500"),
        ("rrf", "0.2500 ‡", "1.0000 †", "0.6250"),
        ("bm25 (baseline)", "0.5000", "0.5000", "0.5000"),
    ]
    assert "topics: news 9, web 12; paired randomization test, exact, separately on each collection" in output.caption
    assert (
        "Holm for 2 comparisons; alpha = 0.05; † significantly better, ‡ worse than the baseline bm25" in output.caption
    )
    assert r"dense & \textbf{1.0000}$^{\dagger}$ & 0.5000 & \textbf{0.7500} \\" in output.latex()
    assert result.caption != output.caption


def test_the_mean_is_a_macro_mean(result) -> None:
    assert result.mean("rrf", "RR") == pytest.approx((1 / 4 + 1) / 2)  # not over all 9 + 12 topics
    assert [(row["run"], row["mean"]) for row in result.to_dict()["means"] if row["measure"] == "RR"] == [
        ("dense", 0.75), ("rrf", 0.625), ("bm25", 0.5),
    ]  # fmt: skip


def test_a_system_that_lacks_a_collection_has_no_mean() -> None:
    output = collections_of_scores({"news": NEWS, "web": scores("RR", bm25=FAIR, dense=GOOD)}, test="t")
    assert output.measures == ("RR",)
    assert output.order() == ("dense", "bm25", "rrf")
    assert [tuple(map(str, row))[2:] for row in output.leaderboard().grid().rows][2] == ("0.2500", "-", "-")
    assert "rrf has no macro average: no run on web" in output.warnings
    assert json.dumps(output.to_dict(), allow_nan=False)


def test_forms(result) -> None:
    assert result.csv().splitlines()[:3] == [
        "collection,run,measure,aggregate,value,ci_low,ci_high,n",
        "news,bm25,RR,mean,0.5,,,9",
        "news,dense,RR,mean,1.0,,,9",
    ]
    assert result.latex().count(r"\begin{table}") == 2
    assert result.markdown().splitlines()[2] == "| a | dense | **1.0000**<sup>bc</sup> | 0.5000 | **0.7500** |"
    assert repr(result).startswith("   RR")
    web = lists(rrf=[1] * 12, dense=[2] * 12, bm25=[2] * 12)
    again = compare_collections({"news": lists(bm25=FAIR, dense=GOOD, rrf=POOR), "web": web}, ["RR", "P@2"])
    assert again.text() == result.text()


@pytest.mark.parametrize(
    ("collections", "options", "message"),
    [
        ({"news": NEWS}, {}, "at least two collections are required"),
        ({"news": NEWS, "web": scores("AP", bm25=GOOD, dense=FAIR)}, {}, "no measure in common"),
        ({"news": NEWS, "web": scores("RR", other=GOOD, fourth=FAIR)}, {}, "no run name occurs in all collections"),
        ({"news": NEWS, "web": scores("RR", bm25=GOOD)}, {}, "web: at least two runs are required, got bm25"),
        ({"news": NEWS, "web": WEB}, {"baseline": "old"}, "news: no run 'old' to use as the baseline"),
        ({"news": NEWS, "web": WEB}, {"test": "guess"}, "unknown test: 'guess'"),
        ({"news": NEWS, "web": WEB}, {"measures": "AP"}, "AP was not evaluated"),
    ],
)
def test_errors(collections: dict, options: dict, message: str) -> None:
    with pytest.raises(InputError) as caught:
        collections_of_scores(collections, **options)
    assert message in str(caught.value)


def test_unknown_systems_and_measures(result) -> None:
    with pytest.raises(InputError, match="no system 'x'"):
        result.mean("x")
    with pytest.raises(InputError, match="AP was not evaluated on all collections"):
        result.leaderboard("AP")
