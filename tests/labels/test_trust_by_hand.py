"""Quality of labels and calibration of models against results by hand and by SciPy and statsmodels."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from statsmodels.stats.inter_rater import cohens_kappa

from judged.comparison.slicing.topic_slices import slice_topics
from judged.labels.calibration import calibrate
from judged.labels.corrected_systems import (
    PairedScores,
    corrected_means,
    family_biases,
    rows_by_slice,
    topic_interval,
    topic_means,
)
from judged.labels.labels import Labels
from judged.labels.trust import quality

NAN = math.nan


def kappa_of(x: Any, y: Any, weights: str | None = None) -> float:
    """Return kappa by statsmodels."""
    values = np.union1d(x, y)
    table = np.array([[np.sum((x == a) & (y == b)) for b in values] for a in values])
    return float(cohens_kappa(table, wt=weights).kappa)


def labels(*judges: tuple[str, dict[tuple[str, str], float]], more: tuple[dict[str, Any], ...] = ()) -> Labels:
    rows = [
        {"query_id": topic, "doc_id": doc, "judge": judge, "grade": grade} for judge, grades in judges
        for (topic, doc), grade in grades.items()
    ]  # fmt: skip
    return table_of([*rows, *more])


def table_of(rows: list[dict[str, Any]]) -> Labels:
    defaults = {"kind": "human", "repeat": 0, "valid": True, "note": "", "seconds": None, "time": "", "prompt": ""}
    return Labels.of(pa.Table.from_pylist([defaults | row for row in rows]))


PAIRS = [(f"t{topic}", f"d{doc}") for topic in range(8) for doc in range(3)]


def test_shares_shifts_and_distances_of_three_judges() -> None:
    """Random grades; each number computed with loops over all pairs of labels of a document."""
    rng = np.random.default_rng(1)
    grades = rng.integers(0, 3, size=(len(PAIRS), 3)).astype(float)
    grades[rng.random(grades.shape) < 0.2] = NAN
    grades[0] = 0, 1, 2
    judges = [
        (name, {pair: grade for pair, grade in zip(PAIRS, grades[:, column], strict=True) if not math.isnan(grade)})
        for column, name in enumerate(("ann", "bob", "cy"))
    ]
    slicing = slice_topics({f"t{i}": {"k": "xy"[i % 2]} for i in range(8)}, "k")
    result = quality(labels(*judges), slicing=slicing, level=0.9)
    topic = np.repeat(np.arange(8), 3)
    for column, judge in enumerate(result.judges):
        equal_grades, shifts = [], {}
        for row, values in enumerate(grades):
            others = [grade for i, grade in enumerate(values) if i != column and not math.isnan(grade)]
            if others and not math.isnan(values[column]):
                equal_grades += [values[column] == grade for grade in others]
                shifts.setdefault(topic[row], []).append(values[column] - np.mean(others))
        means = [np.mean(values) for values in shifts.values()]
        assert judge.labels == np.isfinite(grades[:, column]).sum()
        assert judge.shared == sum(map(len, shifts.values()))
        assert judge.same == pytest.approx(np.mean(equal_grades))
        assert judge.shift == pytest.approx(np.mean(means))
        interval = stats.t.interval(0.9, len(means) - 1, np.mean(means), stats.sem(means))
        assert judge.shift_ci == pytest.approx(interval)
        assert (judge.invalid, judge.repeats, judge.gold) == (0, 0, 0)
        assert all(
            map(math.isnan, (judge.consistency, judge.accuracy, judge.drift, judge.drift_p, judge.seconds, judge.fast))
        )
        assert (judge.consistency_ci, judge.accuracy_ci) == (None, None)
        assert not math.isnan(judge.alpha_without)

    def pairs_of(group_grades: Any) -> list[tuple[float, float]]:
        return [
            (values[first], values[second]) for values in group_grades for first, second in ((0, 1), (0, 2), (1, 2))
            if not math.isnan(values[first] + values[second])
        ]  # fmt: skip

    for summary, group_grades in [
        *((summary, grades[topic == int(summary.name[1:])]) for summary in result.topics),
        *((summary, grades[topic % 2 == "xy".index(summary.name[-1])]) for summary in result.slices),
    ]:
        grade_pairs = pairs_of(group_grades)
        assert summary.pairs == sum((~np.isnan(values)).sum() > 1 for values in group_grades)
        assert summary.same == pytest.approx(np.mean([first == second for first, second in grade_pairs]))
        assert summary.distance == pytest.approx(np.mean([abs(first - second) for first, second in grade_pairs]))
    assert len(result.slices) == 2
    assert [summary.same for summary in result.topics] == sorted(summary.same for summary in result.topics)
    for summary in result.grades:
        grade = float(summary.name)
        other_grades = [b for grade_pair in pairs_of(grades) for a, b in (grade_pair, grade_pair[::-1]) if a == grade]
        assert summary.pairs == len(other_grades)
        assert summary.same == pytest.approx(np.mean([other == grade for other in other_grades]))
        assert summary.distance == pytest.approx(np.mean([abs(other - grade) for other in other_grades]))


def test_repeats_known_grades_and_hasty_labels() -> None:
    """Labels of bob: d0 repeated with the same grade, d1 with another; d2 and d3 of 5 correct; 0.9, 1 and 5 seconds."""
    topics = [("t", f"d{i}") for i in range(5)]
    ann = dict.fromkeys(topics, 1.0)
    rows = tuple(
        {"query_id": "t", "doc_id": doc, "judge": "bob", "grade": grade, "repeat": repeat, "seconds": seconds}
        for doc, grade, repeat, seconds in (
            ("d0", 0, 0, 0.9), ("d1", 1, 0, 1.0), ("d2", 2, 0, 5.0), ("d3", 1, 0, None), ("d4", 0, 0, None),
            ("d0", 0, 1, None), ("d1", 2, 1, None), ("d2", 2, 1, None),
        )
    )  # fmt: skip
    gold = {"t": {"d0": 2, "d1": 2, "d2": 2, "d3": 1, "d4": 1}}
    result = quality(labels(("ann", ann), more=rows), gold=gold, level=0.9)
    bob = next(bob for bob in result.judges if bob.judge == "bob")
    assert (bob.labels, bob.shared, bob.repeats, bob.consistency) == (5, 5, 3, pytest.approx(2 / 3))
    expected = stats.binomtest(2, 3).proportion_ci(0.9, "exact")
    assert bob.consistency_ci == pytest.approx((expected.low, expected.high))
    assert (bob.gold, bob.accuracy) == (5, 2 / 5)
    expected = stats.binomtest(2, 5).proportion_ci(0.9, "exact")
    assert bob.accuracy_ci == pytest.approx((expected.low, expected.high))
    assert (bob.seconds, bob.fast) == (1.0, pytest.approx(1 / 3))
    assert bob.same == 2 / 5
    assert bob.shift == pytest.approx(-1 / 5)
    assert math.isnan(bob.alpha_without)
    assert result.facts()["pairs"] == 5


@pytest.mark.parametrize("topics", [12, 11])
def test_drift_is_welchs_test_over_topics(topics: int) -> None:
    """One document per topic: bob's later half has the later topics, and one more of an odd number."""
    rng = np.random.default_rng(2)
    grades = rng.integers(0, 4, size=(topics, 2)).astype(float)
    rows = tuple(
        {"query_id": f"t{i:02}", "doc_id": "d", "judge": judge, "grade": grades[i, column],
         "time": f"2026-01-{i + 1:02}T00:00:00Z" if column else ""}
        for i in range(topics) for column, judge in enumerate(("ann", "bob"))
    )  # fmt: skip
    result = quality(table_of(list(rows)))
    ann, bob = result.judges
    shift = grades[:, 1] - grades[:, 0]
    half = topics // 2
    assert bob.drift == pytest.approx(shift[half:].mean() - shift[:half].mean())
    if half >= 6:
        assert bob.drift_p == pytest.approx(stats.ttest_ind(shift[half:], shift[:half], equal_var=False).pvalue)
    else:
        assert math.isnan(bob.drift_p)
    assert math.isnan(ann.drift)


def test_sentences_report_drift_and_low_accuracy() -> None:
    base = quality({"ann": {"q": {"a": 1, "b": 0, "c": 2}}, "bob": {"q": {"a": 1, "b": 1, "c": 2}}})
    ann, bob = base.judges
    later = replace(ann, drift=-0.5, drift_p=0.0499)
    assert sum("of ann are 0.50 lower" in text for text in replace(base, judges=(later, bob)).sentences) == 1
    assert len(replace(base, judges=(replace(later, drift_p=0.05), bob)).sentences) == 2
    assert "higher" in replace(base, judges=(replace(later, drift=0.5), bob)).sentences[1]
    good = replace(bob, gold=9, accuracy=0.9, accuracy_ci=(0.6, 1.0))
    for gold, high, is_reported in ((6, 0.89, True), (5, 0.89, False), (6, 0.9, False)):
        bad = replace(ann, gold=gold, accuracy=0.2, accuracy_ci=(0.0, high))
        assert len(replace(base, judges=(bad, good)).sentences) == 2 + is_reported


def test_rows_by_slice_selects_the_pairs_of_each_slice() -> None:
    slicing = slice_topics({"a": {"k": "x"}, "b": {"k": "y"}, "c": {"k": "z"}, "d": {"k": "x"}}, "k")
    selected = [rows.tolist() for _, rows in rows_by_slice(slicing, ["b", "a", "d"], np.array([0, 0, 1, 2]))]
    assert selected == [[False, False, True, True], [True, True, False, False]]
    assert topic_means(np.array([1.0, 3.0, 4.0]), np.array([2, 2, 0])).tolist() == [4.0, 2.0]
    low, high = topic_interval(np.array([1.0, 2.0, 6.0]), 0.9) or (NAN, NAN)
    assert (low, high) == pytest.approx(stats.t.interval(0.9, 2, 3, math.sqrt(7 / 3)))


def paired_scores(people: Any, model: Any, model_only: Any) -> PairedScores:
    people, model, model_only = (np.array(table, dtype=float) for table in (people, model, model_only))
    names = tuple("abc"[: len(people)])
    return PairedScores(names, people, model, model_only, (0.0, 1.0), tuple(f"t{i}" for i in range(people.shape[1])))


def test_family_biases_by_hand() -> None:
    """Errors of a: .1 .2 .3, of b: 0 .1 .5, of c: .1 0 0; mean of a and b minus c: -.05 .15 .4."""
    people = np.full((3, 3), 0.2)
    scores = paired_scores(people, people + np.array([[0.1, 0.2, 0.3], [0, 0.1, 0.5], [0.1, 0, 0]]), np.zeros((3, 2)))
    first, second = family_biases("m", scores, {"a": "f", "b": "f", "c": "g"}, 0.9)
    differences = [-0.05, 0.15, 0.4]
    assert (first.family, first.runs, second.family, second.runs) == ("f", 2, "g", 1)
    assert first.bias == pytest.approx(0.5 / 3)
    assert first.ci == pytest.approx(stats.t.interval(0.9, 2, np.mean(differences), stats.sem(differences)))
    assert second.bias == pytest.approx(-first.bias)
    assert list(family_biases("m", scores, dict.fromkeys("abc", "f"), 0.9)) == []
    assert [bias.runs for bias in family_biases("m", scores, {"a": "f"}, 0.9)] == [1]


def test_correlation_within_topics_matches_scipy() -> None:
    rng = np.random.default_rng(4)
    people, model = rng.random((3, 5)), rng.random((3, 5))
    scores = paired_scores(people, model, rng.random((3, 4)))
    centered = [(table - table.mean(axis=0)).ravel() for table in (people, model)]
    assert scores.within_topics == pytest.approx(stats.pearsonr(*centered).statistic)
    assert math.isnan(paired_scores(np.ones((3, 5)), model, model).within_topics)
    for n, others, is_enough in ((3, 2, True), (2, 2, False), (3, 1, False)):
        subset = paired_scores(people[:, :n], model[:, :n], np.full((3, others), 0.5))
        assert bool(subset.prediction_powered_means(0.95, 100, 0)) == is_enough


def test_corrected_means_of_a_perfect_model() -> None:
    """A model with the same scores as people has a weight near 1."""
    rng = np.random.default_rng(5)
    people, model_only = rng.random((2, 40)), rng.random((2, 4000))
    scores = paired_scores(people, people, model_only)
    first, second = corrected_means("m", scores, scores.prediction_powered_means(0.95, 100, 0), 0.95)
    for i, mean in enumerate((first, second)):
        assert mean.human == pytest.approx(people[i].mean())
        assert mean.model == pytest.approx(np.concatenate([people[i], model_only[i]]).mean())
        # PPI++ (Angelopoulos, Duchi, and Zrnic 2023): add the model's mean on other topics minus that on these topics
        expected = people[i].mean() + mean.weight * (model_only[i].mean() - people[i].mean())
        assert mean.value == pytest.approx(expected)
        assert 0.85 < mean.weight <= 1
    assert (first.difference, first.difference_ci) == (0.0, None)
    assert second.difference == pytest.approx(second.model - first.model, abs=0.02)
    assert second.difference_ci is not None


def test_grades_of_a_model_against_people() -> None:
    rng = np.random.default_rng(6)
    people = {f"t{topic}": {f"d{doc}": int(rng.integers(0, 3)) for doc in range(4 + topic)} for topic in range(6)}
    model = {
        topic: {doc: int(np.clip(grade + rng.integers(-1, 2), 0, 2)) for doc, grade in topic_grades.items()}
        for topic, topic_grades in people.items()
    }
    model["t5"]["d0"] = 3
    slicing = slice_topics({topic: {"k": "xy"[topic > "t2"]} for topic in people}, "k")
    result = calibrate(people, {"m": model}, rel=2, slicing=slicing, level=0.9)
    rows = [
        (topic, people[topic][doc], grade)
        for topic, topic_grades in model.items()
        for doc, grade in topic_grades.items()
        if grade < 3
    ]
    judge = result.judges[0]
    x, y = (np.array(column) for column in zip(*(row[1:] for row in rows), strict=True))
    assert (judge.shared, judge.missing, judge.invalid) == (len(rows), 1, 1)
    assert judge.same == pytest.approx((x == y).mean())
    assert judge.kappa == pytest.approx(kappa_of(x, y))
    assert judge.quadratic == pytest.approx(kappa_of(x, y, weights="quadratic"))
    assert judge.binary == pytest.approx(kappa_of(x >= 2, y >= 2))
    assert judge.shift == pytest.approx((y - x).mean())
    means = [np.mean([b - a for topic, a, b in rows if topic == name]) for name in people]
    assert judge.shift_ci == pytest.approx(stats.t.interval(0.9, 5, np.mean(means), stats.sem(means)))
    for slice_result, names in zip(result.slices, (("t0", "t1", "t2"), ("t3", "t4", "t5")), strict=True):
        x, y = (np.array(column) for column in zip(*(row[1:] for row in rows if row[0] in names), strict=True))
        assert (slice_result.n, slice_result.shared) == (3, len(x))
        assert slice_result.same == pytest.approx((x == y).mean())
        assert slice_result.kappa == pytest.approx(kappa_of(x, y))
        assert slice_result.quadratic == pytest.approx(kappa_of(x, y, weights="quadratic"))
        assert slice_result.shift == pytest.approx((y - x).mean())
    differences = [abs(judge.human - judge.model) for judge in result.contested]
    assert differences == sorted(differences, reverse=True)
    assert len(differences) == sum(a != b for _, a, b in rows)
    assert {judge.runs for judge in result.contested} == {0}
    text = result.sentences
    assert text[0].startswith(f"m gives {np.mean([a == b for _, a, b in rows]):.0%} of {len(rows)} documents")
    assert text[1] == "m gave 1 grade outside the scale, treated as unjudged."
    assert len(text) == 2


def test_tables_of_quality_and_calibration() -> None:
    people = {f"t{topic}": {"a": topic % 3, "b": 1} for topic in range(4)}
    model = {f"t{topic}": {"a": 1, "b": topic % 2} for topic in range(8)}
    slicing = slice_topics({topic: {"k": "xy"[topic > "t1"]} for topic in people}, "k")
    runs = {"one": {topic: ["a", "b"] for topic in model}, "two": {topic: ["b", "a"] for topic in model}}
    label_quality = quality({"ann": people, "m": model}, slicing=slicing)
    label_counts = {block.name: block.labels for block in label_quality.blocks() if hasattr(block, "labels")}
    assert {name: label_counts[name] for name in ("judges", "slices")} == {"judges": 2, "slices": 1}
    assert [*label_counts] == ["judges", "slices", "grades", "topics", "judge_pairs", "systems"]
    result = calibrate(people, {"m": model}, runs, "nDCG@2", slicing=slicing)
    tables = {block.name: block for block in result.blocks() if hasattr(block, "labels")}
    labels = {name: tables[name].labels for name in ("judges", "slices", "systems", "families", "contested")}
    assert labels == {"judges": 1, "slices": 2, "systems": 2, "families": 2, "contested": 3}
    assert tables["contested"].folded
    assert not tables["families"].folded
    assert {row["runs"] for row in tables["contested"].records()} == {2}
    assert (result.labeled, result.model_only, result.level) == (4, 4, 0.95)
    assert "added topics" in tables["judges"].text()
    notes = {note.rule: note.text for note in result.notes}
    # 1 - 0.05^(1/4): an error on more topics is in the sample in 95 of 100 samples
    assert f"up to {1 - 0.05**0.25:.0%} of all topics" in notes["rare-errors"]
    without_others = calibrate(
        people, {"m": {topic: grades for topic, grades in model.items() if topic in people}}, runs, "nDCG@2"
    )
    assert "no-correction" in {note.rule for note in without_others.notes}
    assert not without_others.means
