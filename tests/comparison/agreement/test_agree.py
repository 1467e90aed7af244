"""`agree`: hand calculations, and comparison with `evaluate` on restricted qrels."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judged import InputError, MeasureError, Qrels, evaluate
from judged.comparison.agreement import agree
from shared_data import SHARED, needs_shared
from strategies import docs, scores, topics

if TYPE_CHECKING:
    from pathlib import Path

ONE = {"q1": {"a": 2, "b": 0, "c": 1, "d": 0}, "q2": {"a": 0, "x": 1}, "q3": {"a": 1}}
OTHER = {"q1": {"a": 2, "b": 1, "c": 1, "e": 2}, "q2": {"a": 1, "x": 1}}
RUNS = {
    "good": {"q1": {"a": 3.0, "c": 2.0, "b": 1.0}, "q2": {"x": 2.0, "a": 1.0}, "q3": {"a": 1.0}},
    "bad": {"q1": {"b": 3.0, "e": 2.5, "a": 2.0}, "q2": {"a": 2.0, "x": 1.0}, "q3": {"z": 1.0}},
}

qrels = st.dictionaries(
    topics, st.dictionaries(docs, st.sampled_from([0.0, 1.0, 2.0]), min_size=1, max_size=6), min_size=1, max_size=4
)
one_run = st.dictionaries(topics, st.dictionaries(docs, scores, max_size=6), max_size=4)


def test_one_pair_by_hand() -> None:
    (pair,) = agree(ONE, OTHER).pairs
    assert (pair.first, pair.second) == ("judge1", "judge2")
    assert (pair.shared, pair.only_first, pair.only_second) == (5, 2, 1)
    assert pair.same == pytest.approx(3 / 5)
    assert pair.confusion.grades.tolist() == [0, 1, 2]
    assert pair.confusion.counts.tolist() == [[0, 2, 0], [0, 2, 0], [0, 0, 1]]
    assert pair.kappa.value == pytest.approx(1 - (2 / 5) / (1 - (2 / 5 * 4 / 5 + 1 / 5 * 1 / 5)))
    assert [(topic.query_id, topic.shared, topic.same, topic.distance, topic.bias) for topic in pair.topics] == [
        ("q1", 3, pytest.approx(2 / 3), pytest.approx(1 / 3), pytest.approx(1 / 3)), ("q2", 2, 0.5, 0.5, 0.5),
    ]  # fmt: skip
    assert pair.kappa.groups == 2
    assert pair.sentence.startswith("judge1 and judge2 gave the same grade to 60% of 5 documents in 2 topics. Cohen's")
    assert pair.sentence.endswith("judge2 grades 0.40 higher on average.")


def cut(judgments: dict, keep: dict) -> dict:
    """Restrict judgments to the pairs that `keep` contains."""
    shared = {
        query: {doc: g for doc, g in docs.items() if doc in keep.get(query, {})} for query, docs in judgments.items()
    }
    return {query: docs for query, docs in shared.items() if docs}


@pytest.mark.parametrize("own", [False, True])
def test_systems_by_hand(own: bool) -> None:
    result = agree(ONE, OTHER, runs=RUNS, measures=["nDCG@10", "P@2", "AP"], own=own)
    common = {query: ONE[query] for query in ("q1", "q2")}  # q3 has only one judge
    first, second = (common, OTHER) if own else (cut(ONE, OTHER), cut(OTHER, ONE))
    for i, measure in enumerate(["nDCG@10", "P@2", "AP"]):
        effect = result.systems[i]
        assert (effect.measure, effect.n, effect.runs) == (measure, 2, ("good", "bad"))
        for judgments, values in ((first, effect.scores), (second, effect.other_scores)):
            table = evaluate(judgments, RUNS, measure)
            assert values.tolist() == [table.value(measure, run) for run in ("good", "bad")]


@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")  # topics that the run does not have
@settings(max_examples=60)
@given(qrels, qrels, one_run, st.booleans())
def test_scores_are_those_of_evaluate(one: dict, other: dict, run: dict, own: bool) -> None:
    result = agree(one, other, runs={"r": run, "s": {}}, measures=["nDCG@3", "AP", "Bpref", "NumRet"], own=own)
    common = set(one) & set(other) if own else set(cut(one, other))
    if not common:
        assert result.systems == ()
        return
    sides = (one, other) if own else (cut(one, other), cut(other, one))
    sides = [{query: side[query] for query in common} for side in sides]
    for effect in result.systems:
        for side, values in zip(sides, (effect.scores, effect.other_scores), strict=True):
            if not common & set(run):
                continue  # evaluate refuses a run without a common topic
            assert values[0] == evaluate(side, run, effect.measure).value(effect.measure)


def test_rankings_of_systems() -> None:
    first, second = ({"q": {"first": int(top), "last": int(not top), "x": 0}} for top in (True, False))
    runs = {}
    for i in range(6):  # documents `first` at rank i + 1 and `last` equally far from the end
        order = ["x"] + [f"x{more}" for more in range(5)]
        order[i], order[5 - i] = "first", "last"
        runs[f"r{i}"] = {"q": {doc: -float(rank) for rank, doc in enumerate(order)}}
    (effect,) = agree(first, second, runs=runs, measures="RR").systems
    assert effect.tau.value == effect.tau_ap.value == -1
    assert effect.spearman.value == pytest.approx(-1)
    assert effect.tau.discordant == 15
    assert effect.largest_change == pytest.approx(5 / 6)
    assert effect.sentence == (
        "RR by judge2 instead of judge1, n = 1 topic: 15 of 15 pairs of systems are swapped (tau"
        " = -1.000, tau_AP = -1.000);"
        " scores change by up to 0.833."
    )


def test_three_judges_and_what_no_one_shares() -> None:
    third = {"q9": {"a": 1}}
    result = agree(ONE, OTHER, third, runs=RUNS)
    assert [(pair.first, pair.second) for pair in result.pairs] == [
        ("judge1", "judge2"), ("judge1", "judge3"), ("judge2", "judge3"),
    ]  # fmt: skip
    assert len(result.systems) == 1  # no other two have a topic in common
    nothing = result.pairs[1]
    assert nothing.sentence == "judge1 and judge3 share no judged document."
    assert (nothing.topics, math.isnan(nothing.same), math.isnan(nothing.alpha.value)) == ((), True, True)
    assert "2 of 3 pairs of judges share no judged document: judge1 and judge3; judge2 and judge3." in result.warnings
    expected = "Fleiss' kappa is undefined: no unit (such as a document) was judged by two judges."
    assert result.fleiss.sentence == expected
    assert result.alpha.units == 5
    assert "-" in result.table().grid().rows[1]
    assert [row[2:] for row in result.blocks()[1].grid().rows] == [("3", "2", "5"), ("3", "0", "0")]
    json.dumps(result.to_dict(), allow_nan=False)


def test_all_the_same_grade() -> None:
    result = agree({"q": {"a": 1, "b": 1}}, {"q": {"a": 1, "b": 1}}, runs=RUNS["good"] | {"q": {"a": 1.0}})
    (pair,) = result.pairs
    assert pair.same == 1
    for row in (pair.kappa, pair.linear, pair.quadratic, pair.alpha):
        assert math.isnan(row.value)
        assert row.note == "all grades are the same, so the disagreement expected by chance is 0"
    assert result.systems[0].sentence.endswith("tau_b is undefined: the rankings have fewer than two items in common.")


def test_fractional_grades_are_no_categories() -> None:
    result = agree({"q": {"a": 1.5, "b": 0, "c": 2.25}}, {"q": {"a": 1, "b": 0, "c": 2}})
    (pair,) = result.pairs
    assert math.isnan(pair.kappa.value)
    assert "not integers" in pair.kappa.note
    assert math.isnan(result.fleiss.value)
    assert pair.alpha.value > 0.7
    assert "Krippendorff's alpha (ordinal) is" in pair.sentence
    interval = agree({"q": {"a": 1.5, "b": 0, "c": 2.25}}, {"q": {"a": 1, "b": 0, "c": 2}}, scale="interval")
    assert interval.table().grid().header[-1] == "alpha (interval)"
    # squared differences 0.25, 0, 0.0625 of three pairs, each counted twice; and of all 30 ordered pairs of six grades
    grades = [1.5, 0, 2.25, 1, 0, 2]
    by_chance = sum((a - b) ** 2 for a in grades for b in grades) / 30
    assert interval.pairs[0].alpha.value == pytest.approx(1 - 0.3125 / 3 / by_chance)


def test_binarized_scales() -> None:
    graded, binary = {"q": {"a": 3, "b": 2, "c": 1, "d": 0, "e": -1}}, {"q": {"a": 1, "b": 1, "c": 0, "d": 0, "e": 0}}
    result = agree(graded, binary, runs={"r": {"q": {"c": 2.0, "a": 1.0}}}, measures="RR")
    assert "The highest grade differs between judges (judge1 up to 3; judge2 up to 1)" in result.warnings[0]
    assert result.systems[0].scores.tolist() == [1.0]
    result = agree(graded, binary, rel={"judge1": 2}, runs={"r": {"q": {"c": 2.0, "a": 1.0}}}, measures="RR")
    assert (result.levels, result.notes) == ((2, None), ())
    assert result.pairs[0].kappa.value == 1
    assert result.systems[0].scores.tolist() == [0.5]  # measures see the same grades
    assert agree(graded, binary, rel=1).pairs[0].same == 4 / 5
    assert agree(graded, binary, rel=-5).pairs[0].confusion.counts.tolist() == [[0, 1], [0, 4]]  # below 0: never


def test_less_shared_than_not() -> None:
    first = {"q": {f"d{i}": i % 2 for i in range(10)}}
    second = {"q": {f"d{i}": i % 2 for i in range(7, 17)}}
    assert "both judged 3 documents, but each judged more documents" in agree(first, second).warnings[0]


def test_names_of_judges(tmp_path: Path) -> None:
    for folder in ("ann", "bob"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "qrels.txt").write_text("q 0 a 1\nq 0 b 0\n")
    paths = [tmp_path / folder / "qrels.txt" for folder in ("ann", "bob", "bob")]
    assert agree(*paths).judges == ("ann/qrels", "bob/qrels", "bob/qrels#2")
    judges = [Qrels.of(ONE, name="ann"), Qrels.read(paths[0], name="ann#2"), Qrels.read(paths[0], name="nist")]
    assert agree(*judges).judges == ("ann", "ann#2", "nist")


def test_topics_and_tables() -> None:
    result = agree(ONE, OTHER, runs=RUNS)
    assert result.table("topics").text() == (
        "query_id  shared   same  distance    bias\nq2             2  0.500     0.500  +0.500\n"
        "q1             3  0.667     0.333  +0.333"
    )
    assert result.confusion().grid().rows[-1] == ("all", "0", "4", "1", "5")
    assert result.table("systems").grid().header[:3] == ("judge", "other judge", "measure")
    assert result.table("systems").text() in result.text()
    assert result.alpha.interval is None
    assert result.notes == (), "an interval that is not there needs no warning"


def test_nothing_given_is_changed() -> None:
    first, second = Qrels.of(ONE), Qrels.of(OTHER)
    before = first.table.to_pydict(), second.index.grade.copy()
    agree(first, second, runs=RUNS, rel=1)
    assert first.table.to_pydict() == before[0]
    assert np.array_equal(second.index.grade, before[1])


def test_errors() -> None:
    with pytest.raises(InputError, match=r"at least two judges are required, got 1. Fix: add another judge"):
        agree(ONE)
    with pytest.raises(InputError, match=r"no judge 'nist'. Fix: use one of judge1, judge2"):
        agree(ONE, OTHER, rel={"nist": 2})
    with pytest.raises(MeasureError, match="requires subtopic labels"):
        agree(ONE, OTHER, runs=RUNS, measures="alpha_nDCG@10")
    with pytest.raises(InputError, match="between 0 and 1, got 3"):
        agree(ONE, OTHER, level=3)


@needs_shared
def test_real_assessors_against_nist() -> None:
    folder = SHARED / "dl19_passage"
    nist = Qrels.read(next((folder / "qrels").iterdir()), name="nist")
    model = Qrels.read(folder / "alt_qrels" / "llm" / "umbrella_gpt-4_zeroshot_dl19.txt.gz", name="model")
    result = agree(nist, model)
    assert result.pairs[0].shared == 9260
    assert result.pairs[0].confusion.counts[0].tolist() == [3344, 1289, 460, 65]
    assert round(result.pairs[0].kappa.value, 3) == 0.338
