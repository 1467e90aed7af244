"""Curves: values compared with `evaluate` and with hand calculations, and the plots."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import judged
from judged import InputError, JudgedWarning, MeasureError, curve, evaluate, precision_recall
from judged.results.charts import cutoff_scale, even_scale, round_positions, spread_out
from judged.scoring.curves import Curves

CAT = {"cat in a box": {f"d{rank}": int(rank in {2, 4, 5, 7}) for rank in range(1, 9)}}
PLAIN = {"cat in a box": {f"d{rank}": 9.0 - rank for rank in range(1, 9)}}
BEST = {"cat in a box": {f"d{rank}": -float(position) for position, rank in enumerate((2, 4, 5, 7, 1, 3, 6, 8))}}
TWO_RUNS = {"plain": PLAIN, "best": BEST}

_RANDOM = np.random.default_rng(7)
QRELS = {f"q{t}": {f"d{d}": int(_RANDOM.integers(0, 4)) for d in range(30)} for t in range(12)}
RUNS = {
    name: {topic: {f"d{d}": float(_RANDOM.random()) for d in range(45)} for topic in QRELS} for name in ("one", "two")
}


# --- numbers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["nDCG", "DCG(gain=exp2)", "R", "P(rel=2)", "Success", "RBP(p=0.8)", "NumRelRet"])
def test_the_points_are_those_of_evaluate(measure: str) -> None:
    curves = curve(QRELS, RUNS, measure, cutoffs=[1, 2, 5, 10, 40], resamples=200, seed=3)
    scores = evaluate(QRELS, RUNS, f"{measure}@1,2,5,10,40")
    assert curves.points.tolist() == [1, 2, 5, 10, 40]
    assert curves.name == f"{measure}@k"
    estimates = scores.estimates(resamples=200, seed=3)
    assert curves.mean.ravel().tolist() == [estimate.value for estimate in estimates]
    bounds = np.array([estimate.ci or (np.nan, np.nan) for estimate in estimates])
    np.testing.assert_array_equal(np.stack([curves.low.ravel(), curves.high.ravel()], axis=1), bounds)
    assert np.isnan(curves.low).all() == (measure == "NumRelRet")  # a sum has no interval
    assert np.array_equal(curves.per_topic, scores.values)
    assert curves.n.tolist() == [[12] * 5] * 2
    assert curves.run_names == ("one", "two")
    assert curves.query_ids == scores.query_ids


def test_a_cat_in_a_box() -> None:
    curves = curve(CAT, PLAIN, "R")
    assert curves.points.tolist() == curves.x[0].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert curves.mean.tolist() == [[0, 0.25, 0.25, 0.5, 0.75, 0.75, 1, 1]]
    assert curve(CAT, PLAIN, "P").mean[0].tolist() == [0, 1 / 2, 1 / 3, 2 / 4, 3 / 5, 3 / 6, 4 / 7, 4 / 8]
    assert curve(CAT, PLAIN, "Success").mean[0].tolist() == [0, 1, 1, 1, 1, 1, 1, 1]
    assert np.isnan(curves.low).all()  # one topic has no interval


def test_interpolated_precision_by_hand() -> None:
    curves = precision_recall(CAT, TWO_RUNS)
    # one relevant document is enough up to a recall of 0.3, all four are needed from 0.9 on (4c, halves up)
    assert curves.points.tolist() == [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]
    assert curves.mean[0].tolist() == [3 / 5] * 9 + [4 / 7] * 2
    assert curves.mean[1].tolist() == [1] * 11
    levels = precision_recall(QRELS, RUNS, rel=2, recalls=(0.25, 0.75), ci="none")
    scores = evaluate(QRELS, RUNS, ["IPrec(rel=2)@0.25", "IPrec(rel=2)@0.75"])
    assert np.array_equal(levels.per_topic, scores.values)
    assert levels.mean.ravel().tolist() == [estimate.value for estimate in scores.estimates(ci="none")]


def test_precision_and_recall_at_the_same_cutoffs() -> None:
    curves = precision_recall(QRELS, RUNS, "raw", rel=2, cutoffs=45)
    scores = evaluate(QRELS, RUNS, ["P(rel=2)@1..45", "R(rel=2)@1..45"]).aggregate()
    for run in ("one", "two"):
        row = curves.run_names.index(run)
        assert curves.mean[row].tolist() == [scores[run][f"P(rel=2)@{k}"] for k in range(1, 46)]
        assert curves.x[row].tolist() == [scores[run][f"R(rel=2)@{k}"] for k in range(1, 46)]
    assert len(precision_recall(QRELS, RUNS, "raw").points) == 45  # to the end of the longest ranking


def test_one_topic_has_a_point_at_each_relevant_document() -> None:
    curves = precision_recall(CAT | QRELS, {"a": PLAIN | RUNS["one"]}, "raw").topic("cat in a box")
    has_point = ~np.isnan(curves.mean[0])
    assert curves.points[has_point].tolist() == [2, 4, 5, 7]
    assert curves.x[0][has_point].tolist() == [0.25, 0.5, 0.75, 1]
    assert curves.mean[0][has_point].tolist() == [1 / 2, 2 / 4, 3 / 5, 4 / 7]
    assert curves.basis() == "topic cat in a box"
    two_runs = curve(QRELS, RUNS, "nDCG", cutoffs=5)
    assert np.array_equal(two_runs.topic("q3").mean, two_runs.per_topic[:, :, two_runs.query_ids.index("q3")])
    with pytest.raises(InputError, match="no topic 'q99'"):
        two_runs.topic("q99")


def test_cutoffs() -> None:
    def cutoffs_of(measure: object, **options: object) -> list[float]:
        return curve(QRELS, RUNS, measure, ci="none", **options).points.tolist()

    assert cutoffs_of("nDCG@7") == cutoffs_of(judged.nDCG @ 7) == cutoffs_of("nDCG", cutoffs=7) == [1, 2, 3, 4, 5, 6, 7]
    assert cutoffs_of("P@10,5") == cutoffs_of("P", cutoffs=(10, 5, 5)) == [5, 10]
    assert cutoffs_of("P@20", cutoffs=3) == [1, 2, 3]
    assert cutoffs_of(judged.P) == cutoffs_of("nDCG") == list(range(1, 46))  # the longest ranking
    assert cutoffs_of("nDCG", depth=4) == [1, 2, 3, 4]
    assert cutoffs_of("nDCG", cutoffs=np.arange(2, 5)) == [2, 3, 4]
    deep = {"q0": {f"d{d}": -float(d) for d in range(200)}}
    with pytest.warns(JudgedWarning):
        assert curve(QRELS, deep, "P", ci="none").points[-1] == 100


@pytest.mark.parametrize("cutoffs", [0, -3, [], [0, 1], [1.5], "5", 100_001])
def test_wrong_cutoffs(cutoffs: object) -> None:
    with pytest.raises(InputError, match="cutoffs"):
        curve(CAT, PLAIN, "P", cutoffs=cutoffs)


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("Rprec", "Rprec takes no cutoff"),
        ("SetF", "SetF takes no cutoff"),
        ("IPrec", "use precision_recall"),
        (judged.Bpref, "Bpref takes no cutoff"),
        (["nDCG", "P"], "must be one measure"),
        ("nDGC", "did you mean"),
        ("P@@5", "there is no measure"),
        ("RBP", "RBP requires `p`"),
    ],
)
def test_measures_without_a_curve(measure: object, message: str) -> None:
    with pytest.raises(MeasureError, match=message):
        curve(CAT, PLAIN, measure)


def test_wrong_precision_by_recall() -> None:
    with pytest.raises(InputError, match="'cooked'"):
        precision_recall(CAT, PLAIN, "cooked")
    with pytest.raises(InputError, match="`cutoffs` is not valid"):
        precision_recall(CAT, PLAIN, cutoffs=5)
    with pytest.raises(InputError, match="`recalls` must not be empty"):
        precision_recall(CAT, PLAIN, recalls=())
    with pytest.raises(MeasureError, match=r"recall=1\.5"):
        precision_recall(CAT, PLAIN, recalls=(1.5,))


def test_policies_are_those_of_evaluate() -> None:
    partial = {topic: docs for topic, docs in RUNS["one"].items() if topic != "q0"}
    with pytest.warns(JudgedWarning, match="no documents returned for 1 of 12"):
        all_topics = curve(QRELS, partial, "P", cutoffs=2)
    with pytest.warns(JudgedWarning):
        common = curve(QRELS, partial, "P", cutoffs=2, topics="both")
    assert all_topics.n.tolist() == [[12, 12]]
    assert common.n.tolist() == [[11, 11]]
    assert common.scores.policies.topics == "both"
    assert any("no documents returned for 1 of 12 topics" in text for text in all_topics.warnings)
    old = precision_recall(QRELS, RUNS, dialect="trec_eval-9", ci="none")
    assert old.name == "IPrec(rounding=up)@c"
    names = [f"IPrec(rounding=up)@{level / 10}" for level in range(11)]
    assert np.array_equal(old.per_topic, evaluate(QRELS, RUNS, names, dialect="trec_eval-9").values)
    with pytest.raises(InputError, match="cannot show ranges"):
        curve(QRELS, RUNS, ties="bounds")


def test_warnings_name_a_series_once() -> None:
    curves = curve(QRELS, RUNS, "P", cutoffs=30)
    assert curves.notes[0].text.startswith(
        "P@k: grades 1, 2, 3 all count as relevant; to change this, set the lowest relevant grade"
    )
    raw = precision_recall(QRELS, RUNS, "raw")
    assert raw.notes[0].text.startswith("P@k, R@k: grades 1, 2, 3 all count as relevant")


def test_curves_are_frozen() -> None:
    curves = curve(CAT, PLAIN, "R")
    with pytest.raises(ValueError, match="read-only"):
        curves.mean[0, 0] = 1
    with pytest.raises(AttributeError):
        curves.name = "other"


# --- axes -------------------------------------------------------------------------------------------


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.integers(1, 12))
def test_an_even_axis_holds_every_value(values: list[float], max_steps: int) -> None:
    axis = even_scale(np.array(values), max_steps)
    spread = axis.high - axis.low
    assert axis.low <= min(values) + 1e-6 * spread
    assert axis.high >= max(values) - 1e-6 * spread
    assert 2 <= len(axis.ticks) <= max_steps + 2
    assert np.allclose(np.diff(axis.ticks), axis.ticks[1] - axis.ticks[0])


@given(st.integers(1, 300), st.integers(0, 5000), st.booleans())
def test_an_axis_of_cutoffs_has_whole_numbers_within(first: int, more: int, logarithmic: bool) -> None:
    axis = cutoff_scale([first, first + more], logarithmic=logarithmic)
    assert all(tick.is_integer() and first <= tick <= first + more for tick in axis.ticks)
    assert list(axis.ticks) == sorted(set(axis.ticks))


def test_round_points() -> None:
    assert [round_positions(range(1, 101), 12)[i] + 1 for i in range(7)] == [1, 2, 5, 10, 20, 50, 100]
    assert round_positions([3, 7, 9], 2) == [2]


@given(st.lists(st.floats(0, 1), max_size=12), st.floats(0.01, 0.2))
def test_names_are_moved_apart(values: list[float], min_distance: float) -> None:
    given_values = np.array(values, dtype=np.float64)
    moved = spread_out(given_values, min_distance)
    assert (np.diff(np.sort(moved)) >= min_distance - 1e-9).all()
    assert np.isclose(moved.sum(), given_values.sum())  # as much up as down
    if len(values) > 1 and np.diff(np.sort(given_values)).min() >= min_distance:
        np.testing.assert_allclose(moved, given_values, atol=1e-9)


# --- text -------------------------------------------------------------------------------------------

BRAILLE = """\
R@k
1.0 ┤              ⢀⣀⠤⠒⠒⠒⠒⠒⠒⠒⠒b⠒⠒⠒⠒⢒⣒a⠒⠒⠒⠒⠒⠒
    │         ⢀⣀b⠒⠊⠁     ⣀⡠⠔⠒⠒⠒⠒⠒⠒⠉⠁
0.5 ┤    ⣀⡠⠔⠒⠉⠁    ⢀⣀⠤⠒a⠉
    │ ⠐⠊⠉a⡠⠔⠒⠒⠒⠒⠒⠒⠊⠁
0.0 ┤ ⠐⠊⠉
    └─┬────┬─────┬────┬────┬────┬─────┬────┬ k
      1    2     3    4    5    6     7    8

   run       k=1     k=5     k=8
a  plain  0.0000  0.7500  1.0000
b  best   0.2500  1.0000  1.0000"""

LETTERS = """\
R@k
1.0 +              bbbbbbbbbbbbbbbbaaaaaaaaa
    |         bbbbb      aaaaaaaaaa
0.5 +    bbbbb     aaaaaa
    | bbbaaaaaaaaaa
0.0 + aaa
    +-+----+-----+----+----+----+-----+----+ k
      1    2     3    4    5    6     7    8

   run       k=1     k=5     k=8
a  plain  0.0000  0.7500  1.0000
b  best   0.2500  1.0000  1.0000"""


def plot_text(curves: Curves, **options: Any) -> str:
    """Return the plot without its caption."""
    return curves.plot(**options).rpartition("\n\n")[0]


def test_the_drawing() -> None:
    curves = curve(CAT, TWO_RUNS, "R")
    assert plot_text(curves, width=46, height=9) == BRAILLE
    assert plot_text(curves, width=46, height=9, ascii_only=True) == LETTERS
    colored = plot_text(curves, width=46, height=9, color=True)
    assert colored != BRAILLE
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == BRAILLE


def test_marks_stand_at_the_points_where_there_is_room() -> None:
    rows = plot_text(curve(CAT, TWO_RUNS, "R"), width=100, height=20).splitlines()
    plot_rows = [row[6:] for row in rows[1:] if row[4:5] in {"│", "┤"}]
    marks = {
        (letter, column) for row in plot_rows for column, letter in enumerate(row) if letter.isalpha() or letter == "*"
    }
    assert len(marks) == 8 + 8 - 2  # both are 1 at k = 7 and 8
    assert sum(letter == "*" for letter, _ in marks) == 2
    assert rows[-1] == "*  several runs"


@pytest.mark.parametrize("width", [30, 60, 100])
def test_the_drawing_keeps_its_width(width: int) -> None:
    for curves in (curve(QRELS, RUNS, "nDCG"), precision_recall(QRELS, RUNS), precision_recall(QRELS, RUNS, "raw")):
        for ascii_only in (False, True):
            text = plot_text(curves, width=width, height=15, ascii_only=ascii_only)
            assert max(map(len, text.splitlines())) <= width
            assert text.isascii() == ascii_only


def test_many_cutoffs_have_a_logarithmic_axis() -> None:
    deep = {"q": {f"d{d}": -float(d) for d in range(1000)}}
    text = curve({"q": {"d0": 1, "d500": 1}}, deep, "R", cutoffs=1000).plot(width=80)
    labels = next(line for line in text.splitlines() if line.split()[:2] == ["1", "2"])
    assert labels.split() == ["1", "2", "5", "10", "20", "50", "100", "200", "500", "1000"]


# --- tables -----------------------------------------------------------------------------------------


def test_tables() -> None:
    curves = curve(CAT, TWO_RUNS, "R")
    assert curves.to_arrow().to_pylist()[:2] == [
        {"run": "plain", "cutoff": 1, "value": 0.0, "ci_low": None, "ci_high": None, "n": 1},
        {"run": "plain", "cutoff": 2, "value": 0.25, "ci_low": None, "ci_high": None, "n": 1},
    ]
    assert curves.to_arrow("topics").to_pylist()[1] == {
        "run": "plain", "cutoff": 2, "query_id": "cat in a box", "value": 0.25,
    }  # fmt: skip
    assert curves.by_run().grid().rows[3] == ("4", "0.5000", "1.0000")
    wide = curve(QRELS, RUNS, "nDCG", cutoffs=40, resamples=200).by_run().grid()
    assert [row[0] for row in wide.rows] == ["1", "2", "5", "10", "20", "40"]
    assert re.fullmatch(r"0\.\d{4} \[0\.\d{3}, 0\.\d{3}\]", wide.rows[0][1])


def test_tables_of_precision_and_recall() -> None:
    raw = precision_recall(CAT, TWO_RUNS, "raw")
    assert raw.to_arrow().to_pylist()[1] == {
        "run": "plain", "cutoff": 4, "recall": 0.5, "value": 0.5, "ci_low": None, "ci_high": None, "n": 1,
    }  # fmt: skip
    assert raw.by_run().grid().header == ("k", "plain recall", "plain precision", "best recall", "best precision")
    assert raw.by_run().grid().rows[1] == ("2", "0.2500", "0.5000", "0.5000", "1.0000")
    assert raw.to_arrow("topics").to_pylist()[1] == {
        "run": "plain", "cutoff": 2, "query_id": "cat in a box", "recall": 0.25, "value": 0.5,
    }  # fmt: skip
    levels = precision_recall(CAT, PLAIN)
    assert levels.to_arrow().column_names == ["run", "recall", "value", "ci_low", "ci_high", "n"]
    assert levels.to_arrow()["recall"].to_pylist() == levels.points.tolist()


def test_the_document() -> None:
    curves = curve(QRELS, RUNS, "nDCG", cutoffs=3, ci="t", level=0.9)
    document = curves.to_dict()
    scores = evaluate(QRELS, RUNS, "nDCG@1..3")
    assert document["cutoffs"] == [1, 2, 3]
    assert document["measure"] == "nDCG@k"
    assert document["policies"]["ci"] == {"name": "t", "level": 0.9, "resamples": 2000, "seed": 0}
    assert document["runs"].keys() == {"one", "two"}
    assert [row["value"] for row in document["points"][3:]] == list(scores.aggregate()["two"].values())
    by_topic = scores.per_topic()["two"]
    rows = [row for row in curves.table("topics").records() if (row["run"], row["query_id"]) == ("two", "q4")]
    assert [row["value"] for row in rows] == [by_topic[f"nDCG@{k}"]["q4"] for k in (1, 2, 3)]
    raw = precision_recall(CAT, PLAIN, "raw").to_dict()["points"]
    assert [row["recall"] for row in raw[:2]] == [0.25, 0.5]
    assert [row["value"] for row in raw[:2]] == [0.5, 0.5]
