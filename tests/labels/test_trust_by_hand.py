"""Each number of the quality of labels and of a calibration, by hand and by SciPy and statsmodels."""

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
    ScoresByBoth,
    corrected_means,
    family_biases,
    of_slices,
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
        {"query_id": topic, "doc_id": doc, "judge": judge, "grade": grade} for judge, own in judges
        for (topic, doc), grade in own.items()
    ]  # fmt: skip
    return table_of([*rows, *more])


def table_of(rows: list[dict[str, Any]]) -> Labels:
    usual = {"kind": "human", "repeat": 0, "valid": True, "note": "", "seconds": None, "at": "", "prompt": ""}
    return Labels.of(pa.Table.from_pylist([usual | row for row in rows]))


PAIRS = [(f"t{topic}", f"d{doc}") for topic in range(8) for doc in range(3)]


def test_shares_shifts_and_distances_of_three_judges() -> None:
    """Grades of seed 1; each number from all pairs of labels of a document, counted one at a time."""
    rng = np.random.default_rng(1)
    grades = rng.integers(0, 3, size=(len(PAIRS), 3)).astype(float)
    grades[rng.random(grades.shape) < 0.2] = NAN
    grades[0] = 0, 1, 2
    judges = [
        (name, {pair: grade for pair, grade in zip(PAIRS, grades[:, column], strict=True) if not math.isnan(grade)})
        for column, name in enumerate(("ann", "bob", "cy"))
    ]
    slicing = slice_topics({f"t{at}": {"k": "xy"[at % 2]} for at in range(8)}, "k")
    found = quality(labels(*judges), slicing=slicing, level=0.9)
    topic = np.repeat(np.arange(8), 3)
    for column, one in enumerate(found.judges):
        meetings, shifts = [], {}
        for row, own in enumerate(grades):
            others = [grade for at, grade in enumerate(own) if at != column and not math.isnan(grade)]
            if others and not math.isnan(own[column]):
                meetings += [own[column] == grade for grade in others]
                shifts.setdefault(topic[row], []).append(own[column] - np.mean(others))
        means = [np.mean(values) for values in shifts.values()]
        assert one.labels == np.isfinite(grades[:, column]).sum()
        assert one.shared == sum(map(len, shifts.values()))
        assert one.same == pytest.approx(np.mean(meetings))
        assert one.shift == pytest.approx(np.mean(means))
        interval = stats.t.interval(0.9, len(means) - 1, np.mean(means), stats.sem(means))
        assert one.shift_ci == pytest.approx(interval)
        assert (one.invalid, one.repeats, one.gold) == (0, 0, 0)
        assert all(map(math.isnan, (one.repeated, one.right, one.drift, one.drift_p, one.seconds, one.hasty)))
        assert (one.repeated_ci, one.right_ci) == (None, None)
        assert not math.isnan(one.without)

    def pairs_of(rows: Any) -> list[tuple[float, float]]:
        return [
            (own[first], own[second]) for own in rows for first, second in ((0, 1), (0, 2), (1, 2))
            if not math.isnan(own[first] + own[second])
        ]  # fmt: skip

    for spread, rows in [
        *((one, grades[topic == int(one.name[1:])]) for one in found.topics),
        *((one, grades[topic % 2 == "xy".index(one.name[-1])]) for one in found.slices),
    ]:
        met = pairs_of(rows)
        assert spread.pairs == sum((~np.isnan(own)).sum() > 1 for own in rows)
        assert spread.same == pytest.approx(np.mean([first == second for first, second in met]))
        assert spread.distance == pytest.approx(np.mean([abs(first - second) for first, second in met]))
    assert len(found.slices) == 2
    assert [one.same for one in found.topics] == sorted(one.same for one in found.topics)
    for one in found.grades:
        grade = float(one.name)
        other = [b for pair in pairs_of(grades) for a, b in (pair, pair[::-1]) if a == grade]
        assert one.pairs == len(other)
        assert one.same == pytest.approx(np.mean([value == grade for value in other]))
        assert one.distance == pytest.approx(np.mean([abs(value - grade) for value in other]))


def test_repeats_known_grades_and_hasty_labels() -> None:
    """Of bob: d0 again the same, d1 again another, d2 and d3 right of the 5 that are known; 0.9, 1 and 5 seconds."""
    topics = [("t", f"d{at}") for at in range(5)]
    ann = dict.fromkeys(topics, 1.0)
    rows = tuple(
        {"query_id": "t", "doc_id": doc, "judge": "bob", "grade": grade, "repeat": repeat, "seconds": seconds}
        for doc, grade, repeat, seconds in (
            ("d0", 0, 0, 0.9), ("d1", 1, 0, 1.0), ("d2", 2, 0, 5.0), ("d3", 1, 0, None), ("d4", 0, 0, None),
            ("d0", 0, 1, None), ("d1", 2, 1, None), ("d2", 2, 1, None),
        )
    )  # fmt: skip
    gold = {"t": {"d0": 2, "d1": 2, "d2": 2, "d3": 1, "d4": 1}}
    found = quality(labels(("ann", ann), more=rows), gold=gold, level=0.9)
    one = next(one for one in found.judges if one.judge == "bob")
    assert (one.labels, one.shared, one.repeats, one.repeated) == (5, 5, 3, pytest.approx(2 / 3))
    expected = stats.binomtest(2, 3).proportion_ci(0.9, "exact")
    assert one.repeated_ci == pytest.approx((expected.low, expected.high))
    assert (one.gold, one.right) == (5, 2 / 5)
    expected = stats.binomtest(2, 5).proportion_ci(0.9, "exact")
    assert one.right_ci == pytest.approx((expected.low, expected.high))
    assert (one.seconds, one.hasty) == (1.0, pytest.approx(1 / 3))
    assert one.same == 2 / 5
    assert one.shift == pytest.approx(-1 / 5)
    assert math.isnan(one.without)
    assert found.facts()["pairs"] == 5


@pytest.mark.parametrize("topics", [12, 11])
def test_drift_is_the_test_of_welch_over_topics(topics: int) -> None:
    """A topic has one document; bob's later half is that of the later topics, and of an odd number one more."""
    rng = np.random.default_rng(2)
    grades = rng.integers(0, 4, size=(topics, 2)).astype(float)
    rows = tuple(
        {"query_id": f"t{at:02}", "doc_id": "d", "judge": judge, "grade": grades[at, column],
         "at": f"2026-01-{at + 1:02}T00:00:00Z" if column else ""}
        for at in range(topics) for column, judge in enumerate(("ann", "bob"))
    )  # fmt: skip
    found = quality(table_of(list(rows)))
    ann, bob = found.judges
    shift = grades[:, 1] - grades[:, 0]
    half = topics // 2
    assert bob.drift == pytest.approx(shift[half:].mean() - shift[:half].mean())
    if half >= 6:
        assert bob.drift_p == pytest.approx(stats.ttest_ind(shift[half:], shift[:half], equal_var=False).pvalue)
    else:
        assert math.isnan(bob.drift_p)
    assert math.isnan(ann.drift)


def test_sentences_name_drift_and_whoever_knows_less() -> None:
    base = quality({"ann": {"q": {"a": 1, "b": 0, "c": 2}}, "bob": {"q": {"a": 1, "b": 1, "c": 2}}})
    ann, bob = base.judges
    later = replace(ann, drift=-0.5, drift_p=0.0499)
    assert sum("later labels are 0.50 lower" in text for text in replace(base, judges=(later, bob)).sentences) == 1
    assert len(replace(base, judges=(replace(later, drift_p=0.05), bob)).sentences) == 1
    assert "higher" in replace(base, judges=(replace(later, drift=0.5), bob)).sentences[1]
    good = replace(bob, gold=9, right=0.9, right_ci=(0.6, 1.0))
    for gold, high, said in ((6, 0.89, True), (5, 0.89, False), (6, 0.9, False)):
        bad = replace(ann, gold=gold, right=0.2, right_ci=(0.0, high))
        assert len(replace(base, judges=(bad, good)).sentences) == 1 + said


def test_slices_of_topics_mark_their_pairs() -> None:
    slicing = slice_topics({"a": {"k": "x"}, "b": {"k": "y"}, "c": {"k": "z"}, "d": {"k": "x"}}, "k")
    found = {name: rows.tolist() for name, rows in of_slices(slicing, ["b", "a", "d"], np.array([0, 0, 1, 2]))}
    assert list(found.values()) == [[False, False, True, True], [True, True, False, False]]
    assert topic_means(np.array([1.0, 3.0, 4.0]), np.array([2, 2, 0])).tolist() == [4.0, 2.0]
    low, high = topic_interval(np.array([1.0, 2.0, 6.0]), 0.9) or (NAN, NAN)
    assert (low, high) == pytest.approx(stats.t.interval(0.9, 2, 3, math.sqrt(7 / 3)))


def by_both(people: Any, model: Any, rest: Any) -> ScoresByBoth:
    people, model, rest = (np.array(table, dtype=float) for table in (people, model, rest))
    names = tuple("abc"[: len(people)])
    return ScoresByBoth(names, people, model, rest, (0.0, 1.0), tuple(f"t{at}" for at in range(people.shape[1])))


def test_whom_a_model_favors() -> None:
    """Errors of a: .1 .2 .3, of b: 0 .1 .5, of c: .1 0 0; the family of a and b less c: -.05 .15 .4."""
    people = np.full((3, 3), 0.2)
    seen = by_both(people, people + np.array([[0.1, 0.2, 0.3], [0, 0.1, 0.5], [0.1, 0, 0]]), np.zeros((3, 2)))
    first, second = family_biases("m", seen, {"a": "f", "b": "f", "c": "g"}, 0.9)
    apart = [-0.05, 0.15, 0.4]
    assert (first.family, first.runs, second.family, second.runs) == ("f", 2, "g", 1)
    assert first.bias == pytest.approx(0.5 / 3)
    assert first.ci == pytest.approx(stats.t.interval(0.9, 2, np.mean(apart), stats.sem(apart)))
    assert second.bias == pytest.approx(-first.bias)
    assert list(family_biases("m", seen, dict.fromkeys("abc", "f"), 0.9)) == []
    assert [one.runs for one in family_biases("m", seen, {"a": "f"}, 0.9)] == [1]


def test_scores_within_topics_correlate_as_scipy_says() -> None:
    rng = np.random.default_rng(4)
    people, model = rng.random((3, 5)), rng.random((3, 5))
    seen = by_both(people, model, rng.random((3, 4)))
    centered = [(table - table.mean(axis=0)).ravel() for table in (people, model)]
    assert seen.within_topics == pytest.approx(stats.pearsonr(*centered).statistic)
    assert math.isnan(by_both(np.ones((3, 5)), model, model).within_topics)
    for n, others, known in ((3, 2, True), (2, 2, False), (3, 1, False)):
        part = by_both(people[:, :n], model[:, :n], np.full((3, others), 0.5))
        assert bool(part.corrected(0.95, 100, 0)) == known


def test_corrected_means_of_a_perfect_model_are_its_means() -> None:
    """A model that says what people say is believed nearly fully."""
    rng = np.random.default_rng(5)
    people, rest = rng.random((2, 40)), rng.random((2, 4000))
    seen = by_both(people, people, rest)
    first, second = corrected_means("m", seen, seen.corrected(0.95, 100, 0), 0.95)
    for at, one in enumerate((first, second)):
        assert one.known == pytest.approx(people[at].mean())
        assert one.model == pytest.approx(np.concatenate([people[at], rest[at]]).mean())
        # Angelopoulos, Duchi, and Zrnic (2023): what the model says of the other topics, less what of these
        expected = people[at].mean() + one.weight * (rest[at].mean() - people[at].mean())
        assert one.value == pytest.approx(expected)
        assert 0.85 < one.weight <= 1
    assert (first.difference, first.difference_ci) == (0.0, None)
    assert second.difference == pytest.approx(second.model - first.model, abs=0.02)
    assert second.difference_ci is not None


def test_grades_of_a_model_against_people() -> None:
    rng = np.random.default_rng(6)
    people = {f"t{topic}": {f"d{doc}": int(rng.integers(0, 3)) for doc in range(4 + topic)} for topic in range(6)}
    model = {
        topic: {doc: int(np.clip(grade + rng.integers(-1, 2), 0, 2)) for doc, grade in own.items()}
        for topic, own in people.items()
    }
    model["t5"]["d0"] = 3
    slicing = slice_topics({topic: {"k": "xy"[topic > "t2"]} for topic in people}, "k")
    found = calibrate(people, {"m": model}, rel=2, slicing=slicing, level=0.9)
    rows = [
        (topic, people[topic][doc], grade) for topic, own in model.items() for doc, grade in own.items() if grade < 3
    ]
    one = found.judges[0]
    x, y = (np.array(side) for side in zip(*(row[1:] for row in rows), strict=True))
    assert (one.shared, one.absent, one.invalid) == (len(rows), 1, 1)
    assert one.same == pytest.approx((x == y).mean())
    assert one.kappa == pytest.approx(kappa_of(x, y))
    assert one.quadratic == pytest.approx(kappa_of(x, y, weights="quadratic"))
    assert one.binary == pytest.approx(kappa_of(x >= 2, y >= 2))
    assert one.shift == pytest.approx((y - x).mean())
    means = [np.mean([b - a for topic, a, b in rows if topic == name]) for name in people]
    assert one.shift_ci == pytest.approx(stats.t.interval(0.9, 5, np.mean(means), stats.sem(means)))
    for part, names in zip(found.slices, (("t0", "t1", "t2"), ("t3", "t4", "t5")), strict=True):
        x, y = (np.array(side) for side in zip(*(row[1:] for row in rows if row[0] in names), strict=True))
        assert (part.n, part.shared) == (3, len(x))
        assert part.same == pytest.approx((x == y).mean())
        assert part.kappa == pytest.approx(kappa_of(x, y))
        assert part.quadratic == pytest.approx(kappa_of(x, y, weights="quadratic"))
        assert part.shift == pytest.approx((y - x).mean())
    apart = [abs(one.human - one.model) for one in found.contested]
    assert apart == sorted(apart, reverse=True)
    assert len(apart) == sum(a != b for _, a, b in rows)
    assert {one.runs for one in found.contested} == {0}
    text = found.sentences
    assert text[0].startswith(f"m gives {np.mean([a == b for _, a, b in rows]):.0%} of {len(rows)} documents")
    assert text[1] == "1 grade of m are not on the scale, and count as not judged."
    assert len(text) == 2


def test_tables_of_quality_and_calibration() -> None:
    people = {f"t{topic}": {"a": topic % 3, "b": 1} for topic in range(4)}
    model = {f"t{topic}": {"a": 1, "b": topic % 2} for topic in range(8)}
    slicing = slice_topics({topic: {"k": "xy"[topic > "t1"]} for topic in people}, "k")
    runs = {"one": {topic: ["a", "b"] for topic in model}, "two": {topic: ["b", "a"] for topic in model}}
    trusted = quality({"ann": people, "m": model}, slicing=slicing)
    shown = {block.name: block.labels for block in trusted.blocks() if hasattr(block, "labels")}
    assert {name: shown[name] for name in ("judges", "slices")} == {"judges": 2, "slices": 1}
    assert [*shown] == ["judges", "slices", "grades", "topics"]
    found = calibrate(people, {"m": model}, runs, "nDCG@2", slicing=slicing)
    tables = {block.name: block for block in found.blocks() if hasattr(block, "labels")}
    labels = {name: tables[name].labels for name in ("judges", "slices", "systems", "families", "contested")}
    assert labels == {"judges": 1, "slices": 2, "systems": 2, "families": 2, "contested": 3}
    assert tables["contested"].folded
    assert not tables["families"].folded
    assert {row["runs"] for row in tables["contested"].records()} == {2}
    assert (found.labeled, found.others, found.level) == (4, 4, 0.95)
    assert "worth" in tables["judges"].text()
    notes = {note.rule: note.text for note in found.notes}
    # 1 - 0.05^(1/4): an error on more topics is in the sample in 95 of 100 samples
    assert f"fewer than {1 - 0.05**0.25:.0%} of all topics" in notes["rare-errors"]
    alone = calibrate(people, {"m": {topic: own for topic, own in model.items() if topic in people}}, runs, "nDCG@2")
    assert "nothing-to-correct" in {note.rule for note in alone.notes}
    assert not alone.means
