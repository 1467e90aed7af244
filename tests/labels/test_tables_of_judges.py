"""Sentences and tables of calibrations and of the quality of labels, from fixed numbers."""

from __future__ import annotations

import inspect
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from judged.errors import InputError
from judged.labels.calibration import (
    Calibration,
    ContestedDocument,
    JudgeCalibration,
    SliceCalibration,
    _notes,
    calibrate,
)
from judged.labels.corrected_systems import CorrectedMean, FamilyBias, PairedScores, corrected_means, topic_interval
from judged.labels.trust import AgreementSummary, JudgeQuality, LabelQuality, quality
from judged.results import Column, Table
from judged.stats.prediction_powered import prediction_powered

NAN = math.nan
JUDGE = JudgeCalibration(
    judge="m", shared=1, missing=3, invalid=2, same=0.755, kappa=0.5, kappa_ci=(0.25, 0.75), quadratic=0.625,
    binary=0.375, shift=0.25, shift_ci=(0.0625, 0.1875), tau=0.6667, tau_ap=0.3333, within_topics=0.875,
    largest_error=0.01234, added_topics=12.4, added_topics_ci=(3.6, 20.4),
)  # fmt: skip
BARE = replace(JUDGE, invalid=0, kappa=NAN, kappa_ci=None, shift=-0.5, tau=NAN, tau_ap=NAN, within_topics=NAN,
               largest_error=NAN, added_topics=NAN, added_topics_ci=None, shared=1234)  # fmt: skip
MEAN = CorrectedMean("m", "a", 0.5, (0.25, 0.75), 0.625, 0.5625, (0.4, 0.7), 0.75, -0.03125, (-0.0625, 0.125))
SLICE = SliceCalibration("m", "kind=x", 3, 9, 0.5, 0.25, 0.375, -0.25, (-0.5, 0.0))
BIAS = FamilyBias("m", "f", 2, 0.015625, (-0.125, 0.25))


def calibration(*judges: JudgeCalibration, **more: Any) -> Calibration:
    defaults: dict[str, Any] = {"means": (), "slices": (), "families": (), "contested": (), "grades": {}}
    return Calibration("nDCG@10", 40, 60, 0.9, judges, **{**defaults, **more})


def cells(table: Any) -> list[tuple[str, ...]]:
    grid = table.grid()
    return [tuple(grid.header), *(tuple(map(str, row)) for row in grid.rows)]


def test_sentences_of_a_calibration() -> None:
    assert calibration(JUDGE, BARE).sentences == (
        (
            "m gives 76% of 1 document the same grade as people (kappa 0.500; quadratic kappa 0.625)."
            " The grades of m are 0.25 higher on average than the grades of people."
        ),
        "m gave 2 grades outside the scale, treated as unjudged.",
        (
            "Between the rankings of systems by m and by people, Kendall's tau is 0.667. The correlation of the scores"
            " within topics is 0.875, and the largest error of the mean of a system is 0.012."
        ),
        (
            "For nDCG@10, the labels of m add as much information as 12 more topics judged by people (90% CI [4, 20])."
            " People judged 40 topics."
        ),
        (
            "m gives 76% of 1,234 documents the same grade as people (no kappa, because grades are not integers;"
            " quadratic kappa 0.625). The grades of m are 0.50 lower on average than the grades of people."
        ),
    )
    for low in (0.0, -0.1):
        sentence = calibration(replace(JUDGE, added_topics_ci=(low, 7.4))).sentences[-1]
        assert f"12 more topics judged by people (90% CI [{low:.0f}, 7])" in sentence
        assert sentence.endswith("The added information is not significant.")
    significant = calibration(replace(JUDGE, added_topics_ci=(0.01, 7.4))).sentences[-1]
    assert "12 more topics judged by people (90% CI [0, 7])" in significant
    assert "not significant" not in significant
    assert (
        calibration(replace(BARE, shift=0.0)).sentences[-1].endswith("0.00 lower on average than the grades of people.")
    )


def test_tables_of_a_calibration() -> None:
    confusion = Table("grades m", (Column("people", [1]),))
    contested = (ContestedDocument("q", "d", "m", 1.0, 2.5, 3),)
    full = calibration(JUDGE, means=(MEAN,), slices=(SLICE,), families=(BIAS,) * 12, contested=contested,
                       grades={"m": confusion})  # fmt: skip
    _, judges, slices, systems, families, grades, contested_table = full.blocks()
    assert grades is confusion
    assert cells(judges) == [
        ("judge", "shared pairs", "invalid", "same grade", "kappa", "quadratic kappa", "binary kappa",
         "mean difference", "tau", "tau_AP", "within topics", "largest error", "added topics"),
        ("m", "1", "2", "76%", "0.500", "0.625", "0.375", "+0.250", "0.667", "0.333", "0.875", "0.0123", "12"),
    ]  # fmt: skip
    row = judges.records()[0]  # type: ignore[attr-defined]
    assert (row["missing"], row["kappa_ci"], row["shift_ci"], row["added_topics_ci"]) == (
        3, [0.25, 0.75], [0.0625, 0.1875], [3.6, 20.4],
    )  # fmt: skip
    assert cells(slices) == [
        ("judge", "slice", "topics", "shared pairs", "same grade", "kappa", "quadratic kappa", "mean difference"),
        ("m", "kind=x", "3", "9", "50%", "0.250", "0.375", "-0.250"),
    ]
    assert slices.records()[0]["shift_ci"] == [-0.5, 0.0]  # type: ignore[attr-defined]
    assert cells(systems) == [
        ("judge", "run", "people", "model", "corrected", "weight", "difference"),
        ("m", "a", "0.5000", "0.6250", "0.5625 [0.400, 0.700]", "0.75", "-0.0312"),
    ]
    row = systems.records()[0]  # type: ignore[attr-defined]
    assert (row["human_ci"], row["difference_ci"]) == ([0.25, 0.75], [-0.0625, 0.125])
    assert cells(families)[:2] == [("judge", "family", "runs", "bias"), ("m", "f", "2", "+0.0156")]
    assert families.records()[0]["ci"] == [-0.125, 0.25]  # type: ignore[attr-defined]
    assert cells(contested_table) == [
        ("topic", "document", "judge", "people", "model", "runs"), ("q", "d", "m", "1", "2.5", "3"),
    ]  # fmt: skip
    tables: list[Any] = [judges, slices, systems, families, contested_table]
    assert [(table.name, table.labels, table.folded) for table in tables] == [
        ("judges", 1, False), ("slices", 2, False), ("systems", 2, False), ("families", 2, False),
        ("contested", 3, True),
    ]  # fmt: skip
    folded = calibration(JUDGE, families=(BIAS,) * 13).table("families")
    assert folded.folded
    assert full.facts() == {"measure": "nDCG@10", "labeled": 40, "model_only": 60, "level": 0.9}
    without_systems = calibration(BARE)
    assert [block.name for block in without_systems.blocks()] == ["sentences", "judges", "contested"]
    assert cells(without_systems.table("judges"))[0][-1] == "mean difference"
    assert "tau" in cells(calibration(BARE, means=(MEAN,)).table("judges"))[0]
    assert "tau" in cells(calibration(BARE, JUDGE).table("judges"))[0]
    assert "tau" in cells(calibration(replace(BARE, tau=0.0)).table("judges"))[0]


@pytest.mark.parametrize(
    ("means", "fewest", "labeled", "rules"),
    [
        ((MEAN,), 25, 0, []), ((), 25, 0, ["no-correction"]), ((MEAN,), 24, 0, ["few-topics"]),
        ((MEAN,), 25, 1, ["rare-errors"]), ((), 3, 30, ["no-correction", "few-topics", "rare-errors"]),
    ],
)  # fmt: skip
def test_warnings_of_a_calibration(means: Any, fewest: int, labeled: int, rules: list[str]) -> None:
    notes = {note.rule: note.text for note in _notes(means, fewest, labeled)}
    assert list(notes) == rules
    if fewest < 25:
        assert notes["few-topics"].startswith(f"people judged {fewest} topics, fewer than 25")
    if labeled:  # the share that a sample lacks in 5 of 100 cases
        assert f"up to {1 - 0.05 ** (1 / labeled):.0%} of all topics" in notes["rare-errors"]


TOPICS = [f"q{i:02}" for i in range(12)]


def test_corrected_means_and_contested_documents() -> None:
    """P@2 of two systems on 8 topics by people and 12 by the model; contested documents by decreasing difference."""
    rng = np.random.default_rng(7)
    people = {topic: {doc: int(rng.integers(0, 3)) for doc in "abcd"} for topic in TOPICS[:8]}
    model = {topic: {doc: int(rng.integers(0, 3)) for doc in "abcd"} for topic in TOPICS}
    runs = {"one": {topic: list("abcd") for topic in TOPICS}, "two": {topic: list("cadb") for topic in TOPICS}}
    result = calibrate(people, {"m": model, "n": people}, runs, "P@2", highest=2, resamples=100, level=0.9)
    first, second = result.judges
    scores = {
        (judge, run, topic): np.mean([grades[topic][doc] >= 1 for doc in ranked[topic][:2]])
        for judge, grades in (("people", people), ("m", model)) for run, ranked in runs.items() for topic in grades
    }  # fmt: skip
    means = {
        (judge, run): np.array([scores[judge, run, topic] for topic in topic_ids])
        for run in runs for judge, topic_ids in (("people", TOPICS[:8]), ("m", TOPICS))
    }  # fmt: skip
    errors = [abs(means["m", run][:8].mean() - means["people", run].mean()) for run in runs]
    assert first.largest_error == pytest.approx(max(errors))
    assert (second.largest_error, second.same, second.tau) == (0.0, 1.0, 1.0)
    assert (result.labeled, result.model_only, result.level, result.measure) == (8, 4, 0.9, "P@2")
    assert result.grades == {}  # only for a single model
    corrected = {
        run: prediction_powered(
            means["people", run], *np.split(means["m", run], [8]), level=0.9, bounds=(0, 1), resamples=100
        ) for run in runs
    }  # fmt: skip
    for mean in result.means:
        assert mean.judge == "m"
        assert (mean.human, mean.value) == pytest.approx((corrected[mean.run].known_mean, corrected[mean.run].value))
        assert mean.ci == pytest.approx(corrected[mean.run].interval)
        assert mean.model == pytest.approx(means["m", mean.run].mean())
    by_worth = sorted((mean.worth, mean.worth_interval) for mean in corrected.values())
    assert (first.added_topics, first.added_topics_ci) == by_worth[1]  # upper median
    assert [(bias.judge, bias.family, bias.runs) for bias in result.families] == [
        (judge, run, 1) for judge in "mn" for run in runs
    ]  # fmt: skip
    differences = (means["m", "one"][:8] - means["people", "one"]) - (means["m", "two"][:8] - means["people", "two"])
    assert result.families[0].bias == pytest.approx(differences.mean())
    assert result.families[0].ci == pytest.approx(topic_interval(differences, 0.9))
    differs = [
        (-abs(people[topic][doc] - model[topic][doc]), -((doc in "ab") + (doc in "ca")), topic, doc)
        for topic in TOPICS[:8] for doc in "abcd" if people[topic][doc] != model[topic][doc]
    ]  # fmt: skip
    keys = [(-abs(row.human - row.model), -row.runs, row.query_id, row.doc_id) for row in result.contested]
    assert keys == sorted(differs)
    assert {row.judge for row in result.contested} == {"m"}
    labeled_only = calibrate(
        people, {"m": model}, runs, "P@2", labeled=TOPICS[2:6], families={"one": "f"}, resamples=100
    )
    assert (labeled_only.labeled, labeled_only.model_only) == (4, 8)
    assert list(labeled_only.grades) == ["m"]
    assert [bias.family for bias in labeled_only.families] == ["f"]
    assert labeled_only.judges[0].shared == 16
    with_defaults = calibrate(people, {"m": model}, runs, "P@2", labeled=TOPICS[2:6], families={"one": "f"}, level=0.95,
                      rel=1, highest=2, resamples=100, seed=0)  # fmt: skip
    assert with_defaults.json() == labeled_only.json()
    for options in ({"resamples": 0}, {"seed": -1}, {"level": 0.0}):
        with pytest.raises(InputError):
            calibrate(people, {"m": model}, **options)
    defaults = {name: parameter.default for name, parameter in inspect.signature(calibrate).parameters.items()}
    assert [defaults[name] for name in ("level", "rel", "resamples", "seed")] == [0.95, 1, 1000, 0]


def test_contested_documents_have_limits() -> None:
    docs = [f"d{i:03}" for i in range(104)]
    human, model = {"q": dict.fromkeys(docs, 1)}, {"q": dict.fromkeys(docs, 0)}
    result = calibrate(human, {"m": model}, {"one": {"q": docs}}, "AP")  # a measure without a cutoff
    assert len(result.contested) == 100
    assert [document.doc_id for document in result.contested] == docs[:100]
    assert [document.runs for document in result.contested] == [1] * 10 + [0] * 90
    assert [document.human - document.model for document in result.contested] == [1.0] * 100
    for grade, invalid in ((1, 0), (1.5, 104), (-0.5, 104)):
        models = {"m": {"q": {**dict.fromkeys(docs, grade), "x": 0}}}
        assert calibrate({"q": {**dict.fromkeys(docs, 1), "x": 0}}, models).judges[0].invalid == invalid
    with pytest.raises(InputError, match="all grades of m are outside the range from 0 to 1"):
        calibrate(human, {"m": {"q": dict.fromkeys(docs, 2)}})


def test_fractional_grades_have_no_kappa() -> None:
    human = {"q1": {"a": 1, "b": 0, "c": 2}, "q2": {"a": 1, "b": 0}}
    model = {"q1": {"a": 0.5, "b": 0, "c": 2}, "q2": {"a": 1, "b": 1}}
    first, second = calibrate(human, {"m": model}, slicing={"q1": {"k": "x"}, "q2": {"k": "y"}}).slices
    assert (math.isnan(first.kappa), second.kappa) == (True, 0.0)
    assert (first.shift, second.shift) == (pytest.approx(-1 / 6), 0.5)
    assert (first.same, second.same) == (pytest.approx(2 / 3), 0.5)


def test_differences_from_the_first_system() -> None:
    rng = np.random.default_rng(8)
    people, model, model_only = rng.random((2, 9)), rng.random((2, 9)), rng.random((2, 20))
    scores = PairedScores(("a", "b"), people, model, model_only, (0.0, 1.0), tuple("abcdefghi"))
    first, second = corrected_means("m", scores, scores.prediction_powered_means(0.9, 100, 0), 0.9)
    paired = (scores_by[1] - scores_by[0] for scores_by in (people, model, model_only))
    difference = prediction_powered(*paired, level=0.9, resamples=100)
    assert (second.difference, second.difference_ci) == (difference.value, difference.interval)
    assert (first.difference, first.difference_ci) == (0.0, None)
    mean = prediction_powered(people[1], model[1], model_only[1], level=0.9, bounds=(0, 1), resamples=100)
    assert (second.human_ci, second.ci, second.weight) == (mean.known_interval, mean.interval, mean.weight)


ANN = JudgeQuality(
    judge="ann", kind="human", labels=10, invalid=1, shared=8, same=0.75, shift=0.125, shift_ci=(0.0, 0.25),
    alpha_without=0.5, repeats=4, consistency=0.5, consistency_ci=(0.1, 0.9), gold=6, accuracy=0.8333,
    accuracy_ci=(0.4, 0.9), drift=-0.25, drift_p=0.0123, seconds=4.25, fast=0.25,
)  # fmt: skip
BARE_JUDGE = replace(ANN, judge="bob", repeats=0, consistency=NAN, consistency_ci=None, gold=0, accuracy=NAN,
                     accuracy_ci=None, drift=NAN, drift_p=NAN, seconds=NAN, fast=NAN)  # fmt: skip
SUMMARY = AgreementSummary("1", 7, 0.5, 0.75)


def label_quality(
    *judges: JudgeQuality, slices: Any = (), systems: Any = None, threshold: float = 0.05
) -> LabelQuality:
    alpha: Any = SimpleNamespace(sentence="Alpha.", name="alpha", value=0.5, interval=(0.25, 0.75))
    return LabelQuality(alpha, 12, judges, (SUMMARY,), slices, (SUMMARY,), systems, threshold)


def test_tables_of_the_quality_of_labels() -> None:
    sliced = (replace(SUMMARY, name="k=x", alpha=0.625, alpha_ci=(0.5, 0.7)),)
    result = label_quality(ANN, BARE_JUDGE, slices=sliced)
    _, judges, slices, grades, topics = result.blocks()
    assert cells(judges) == [
        ("judge", "kind", "labels", "invalid", "shared pairs", "same grade", "mean difference", "alpha without judge",
         "self-consistency", "accuracy", "drift", "p (drift)", "median seconds"),
        ("ann", "human", "10", "1", "8", "75%", "+0.125", "0.500", "50%", "83%", "-0.250", "0.012", "4.2"),
        ("bob", "human", "10", "1", "8", "75%", "+0.125", "0.500", "-", "-", "-", "-", "-"),
    ]  # fmt: skip
    row = judges.records()[0]  # type: ignore[attr-defined]
    keys = ("shift_ci", "repeats", "consistency_ci", "gold", "accuracy_ci", "fast")
    assert [row[key] for key in keys] == [[0.0, 0.25], 4, [0.1, 0.9], 6, [0.4, 0.9], 0.25]
    assert cells(slices) == [
        ("slice", "pairs", "same grade", "mean abs. difference", "alpha"),
        ("k=x", "7", "50%", "0.750", "0.625"),
    ]
    assert slices.records()[0]["alpha_ci"] == [0.5, 0.7]  # type: ignore[attr-defined]
    assert cells(grades) == [("grade", "pairs", "same grade", "mean abs. difference"), ("1", "7", "50%", "0.750")]
    assert cells(topics) == [("topic", "pairs", "same grade", "mean abs. difference"), ("1", "7", "50%", "0.750")]
    assert [key for key in topics.records()[0]] == ["query_id", "pairs", "same", "distance"]  # type: ignore[attr-defined]  # noqa: C416
    tables: list[Any] = [judges, slices, grades, topics]
    assert [(table.name, table.labels, table.folded, table.title) for table in tables] == [
        ("judges", 2, False, ""), ("slices", 1, False, "By slice"), ("grades", 1, False, "By grade"),
        ("topics", 1, True, "By topic"),
    ]  # fmt: skip
    bare = label_quality(BARE_JUDGE)
    assert cells(bare.table("judges"))[0][-1] == "alpha without judge"
    assert "seconds" in bare.table("judges").records()[0]
    assert [block.name for block in bare.blocks()] == ["sentences", "judges", "grades", "topics"]
    alpha = {"name": "alpha", "value": 0.5, "interval": (0.25, 0.75)}
    assert bare.facts() == {"pairs": 12, "alpha": alpha, "counts": {}}
    assert label_quality(ANN).threshold == LabelQuality.__dataclass_fields__["threshold"].default == 0.05


def test_sentences_of_the_quality_of_labels() -> None:
    table = Table("systems", (Column("x", [1]),))
    changes = [SimpleNamespace(largest_change=size, sentence=f"Changes by {size}.") for size in (0.1, 0.3, 0.2)]
    systems: Any = SimpleNamespace(systems=changes, table=lambda name: replace(table, name=name))
    good = replace(ANN, judge="eve", accuracy=0.95, accuracy_ci=(0.9, 1.0), drift_p=0.05, gold=1)
    result = label_quality(ANN, good, BARE_JUDGE, systems=systems)
    assert result.sentences == (
        "Alpha.",
        (
            "Relative to other judges, the later labels of ann are 0.25 lower than the earlier labels (p = 0.012,"
            " Holm-corrected)."
        ),
        "ann graded 83% of 6 gold documents correctly.",
        "Changes by 0.3.",
    )  # fmt: skip
    assert (result.blocks()[-1].name, result.blocks()[-1].title) == (
        "systems",
        "Agreement of each pair of judges on the order of systems",
    )
    strict = label_quality(replace(ANN, drift_p=0.06), good, threshold=0.061)
    assert sum("later labels" in text for text in strict.sentences) == 2
    no_systems = SimpleNamespace(systems=[], table=systems.table)
    assert label_quality(replace(ANN, drift_p=NAN), systems=no_systems).sentences == ("Alpha.",)
    # a judge without known documents is not the best one
    assert len(label_quality(replace(ANN, drift_p=1.0), replace(good, gold=0)).sentences) == 1


def test_systems_under_judges_and_few_topics() -> None:
    """Systems are scored if there are runs, and few topics give a note."""
    rng = np.random.default_rng(9)
    simulated = [{topic: {doc: int(rng.integers(0, 3)) for doc in "abc"} for topic in TOPICS} for _ in range(2)]
    runs = {"one": {topic: list("abc") for topic in TOPICS}, "two": {topic: list("cba") for topic in TOPICS}}
    judgments = {"ann": simulated[0], "bob": simulated[1]}
    result = quality(judgments, runs, "P@1")
    assert result.systems is not None
    scores = {
        name: [np.mean([grades[topic][ranked[topic][0]] >= 1 for topic in TOPICS]) for ranked in runs.values()]
        for name, grades in judgments.items()
    }
    (systems,) = result.systems.systems
    change = np.abs(np.subtract(scores["ann"], scores["bob"])).max()
    assert systems.largest_change == pytest.approx(change)
    assert systems.sentence in result.sentences
    for no_runs in ((), [], {}, None):
        assert not quality(judgments, no_runs).systems.systems
    assert [note.rule for note in result.notes] == ["few-topics"]
    assert result.notes[0].text.startswith("there are only 12 topics")
    two_topics = {name: {topic: grades[topic] for topic in TOPICS[:2]} for name, grades in judgments.items()}
    assert quality(two_topics).notes == ()
