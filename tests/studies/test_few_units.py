"""Studies with too little data: descriptive values and reasons, without intervals, p-values, or verdicts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from calibration import studies

from judged.studies.crossed import TrialArrays
from judged.studies.effects import learning_effects, system_effects
from judged.studies.outcomes import Outcome, TrialValue, measure_agreement
from judged.studies.preference import (
    bradley_terry,
    bradley_terry_errors,
    pair_preferences,
    preference_strengths,
    side_bias,
)
from judged.studies.records import StudyRecords
from judged.studies.study_report import effect_verdict, report
from studies_made import crossed, records, sample_values


def outcome_from(values: Any, design: Any) -> Outcome:
    """Make an outcome of the trials of a design."""
    rows = zip(*(design[name].tolist() for name in ("person", "position", "topic", "system")), values, strict=True)
    return Outcome("made", "more", tuple(
        TrialValue(f"p{person:02}", position + 1, f"t{topic:02}", "abc"[system], "", float(value))
        for person, position, topic, system, value in rows
    ))  # fmt: skip


def whole_system_scores(*scores: tuple[float, float]) -> Outcome:
    """Make an outcome that each person gave once for each of the systems a and b, without a topic."""
    return Outcome("sus", "more", tuple(
        TrialValue(f"p{person}", 0, "", system, "", score)
        for person, pair in enumerate(scores) for system, score in zip("ab", pair, strict=True)
    ))  # fmt: skip


def has_interval(ci: tuple[float, float] | None) -> bool:
    return ci is not None and not math.isnan(ci[0]) and not math.isnan(ci[1])


def test_two_people_with_the_same_difference_show_the_mean_and_nothing_else() -> None:
    (effect,) = system_effects(whole_system_scores((50.0, 58.33), (70.0, 78.33)))
    assert effect.difference == pytest.approx(8.33)
    assert effect.means == pytest.approx((60.0, 68.33))
    assert effect.counts == (2, 2)
    assert not has_interval(effect.ci)
    assert not has_interval(effect.people_ci)
    assert math.isnan(effect.p)
    assert math.isnan(effect.adjusted)
    assert effect_verdict(effect, 0.95) == "no verdict"
    assert "2 participants, at least 3" in effect.reason


@pytest.mark.parametrize("people", [6, 12])
def test_no_variance_means_no_interval_however_many_people(people: int) -> None:
    (effect,) = system_effects(whole_system_scores(*[(50.0 + i, 58.33 + i) for i in range(people)]))
    assert effect.difference == pytest.approx(8.33)
    assert not has_interval(effect.ci)
    assert math.isnan(effect.p)
    assert effect_verdict(effect, 0.95) == "no verdict"
    assert "same value" in effect.reason


@pytest.mark.parametrize(("people", "interval", "verdict"), [(2, False, False), (3, True, False), (5, True, False),
                                                             (6, True, True)])  # fmt: skip
def test_three_people_have_an_interval_and_six_a_verdict(people: int, interval: bool, verdict: bool) -> None:
    scores = [(50.0, 60.0 + i % 3) for i in range(people)]  # the difference is large against its spread
    (effect,) = system_effects(whole_system_scores(*scores))
    assert has_interval(effect.ci) is interval
    assert math.isnan(effect.p) is not interval
    assert effect_verdict(effect, 0.95) == ("better" if verdict else "no verdict")
    assert bool(effect.reason) is not verdict


@pytest.mark.parametrize(("topics", "interval", "verdict"), [(2, False, False), (4, True, False), (6, True, True)])
def test_topics_are_counted_as_people_are(topics: int, interval: bool, verdict: bool) -> None:
    design = crossed(12, topics)
    (effect,) = system_effects(outcome_from(sample_values(np.random.default_rng(1), design, 9.0), design))
    assert has_interval(effect.people_ci)
    assert has_interval(effect.ci) is interval
    assert effect_verdict(effect, 0.95) == ("better" if verdict else "no verdict")
    assert effect.n == topics
    if not verdict:
        assert f"{topics} topics" in effect.reason


@pytest.mark.parametrize(("people", "interval", "verdict"), [(4, False, False), (6, True, False), (12, True, True)])
def test_where_people_are_compared_the_smaller_group_counts(people: int, interval: bool, verdict: bool) -> None:
    design = crossed(people, 8, between=True)
    values = sample_values(np.random.default_rng(2), design, 9.0)
    trials = TrialArrays(values, *(design[name] for name in ("system", "person", "topic", "position")))
    effects = trials.differences()[0, 1]
    assert (effects.design, effects.people, effects.fewest_people) == ("between", people, people // 2)
    assert has_interval(effects.over_people.ci) is interval
    assert (effects.over_people.no_verdict is None) is verdict


def test_one_person_with_most_of_the_trials_is_too_little() -> None:
    """Person 0 tried 40 topics with both systems, five others tried one: they have 5 of 45 parts of the weight."""
    person = np.repeat([0, 1, 2, 3, 4, 5], [80, 2, 2, 2, 2, 2])
    system = np.tile([0, 1], 45)
    topic = np.concatenate([np.repeat(np.arange(40), 2), np.repeat(np.arange(5), 2)])
    values = system + np.random.default_rng(0).normal(size=90)
    effects = TrialArrays(values, system, person, topic, np.zeros(90, int)).differences()[0, 1]
    assert effects.people == 6
    assert effects.over_people.insufficient is not None
    assert effects.over_people.insufficient.code == "dominated"
    assert not has_interval(effects.over_people.ci)


def test_the_primary_outcome_always_has_its_row() -> None:
    """Each topic was tried with one system: 12 ratings that cannot tell systems from topics."""
    ratings = [3.0, 5.0, 1.0, 2.0, 4.0, 4.0, 2.0, 5.0, 3.0, 1.0, 5.0, 4.0]
    rows = [{"participant": f"p{i // 2}", "position": i % 2 + 1, "query_id": f"t{i % 2}", "system": "ab"[i % 2],
             "value": value} for i, value in enumerate(ratings)]  # fmt: skip
    study_records = StudyRecords.of({
        "participants": [{"participant": f"p{i}"} for i in range(6)],
        "trials": rows,
        "answers": [{**row, "questionnaire": "satisfaction", "item": "1"} for row in rows],
    })  # fmt: skip
    answer = report(study_records, outcome="satisfaction")
    (row,) = [record for record in answer.table("effects").records() if record["outcome"] == "satisfaction"]
    assert (row["first_mean"], row["second_mean"]) == pytest.approx((3.0, 3.5))  # 18/6 and 21/6
    assert (row["first_trials"], row["second_trials"]) == (6, 6)
    assert row["verdict"] == "no verdict"
    (effect,) = answer.primary_effects
    assert math.isnan(effect.difference)
    assert "different topics" in effect.reason


@pytest.mark.parametrize(
    ("topic", "position", "expected"),
    [
        ([0, 1, 0, 1], [0, 0, 0, 0], ("topics",)),
        ([0, 0, 0, 0], [0, 1, 0, 1], ("positions",)),
        ([0, 1, 0, 1], [0, 1, 0, 1], ("topics", "positions")),
        ([0, 1, 1, 0], [0, 1, 1, 0], ()),
    ],
)
def test_what_systems_cannot_be_told_apart_from_is_named(topic: Any, position: Any, expected: Any) -> None:
    trials = TrialArrays(
        np.arange(4.0), np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]), np.array(topic), np.array(position)
    )
    assert trials.confounders(0, 1) == expected
    assert (0, 1) in trials.differences() or expected


def test_an_outcome_without_values_for_a_system_or_with_one_system_has_its_row() -> None:
    scores = whole_system_scores((1.0, 2.0), (3.0, 5.0), (2.0, 3.0))
    rows = system_effects(scores, names=("a", "b", "c"))
    assert [(record.first, record.second, record.counts) for record in rows] == [
        ("a", "b", (3, 3)), ("a", "c", (3, 0)), ("b", "c", (3, 0)),
    ]  # fmt: skip
    assert math.isnan(rows[1].means[1])
    assert "No trial of c" in rows[1].reason
    alone = Outcome("sus", "more", tuple(record for record in scores.values if record.system == "a"))
    (row,) = system_effects(alone)
    assert (row.first, row.second, row.means[0], row.counts) == ("a", "", 2.0, (3, 0))
    assert effect_verdict(row, 0.95) == "no verdict"


def test_values_that_are_all_the_same_have_means_and_no_test() -> None:
    design = crossed(8, 8)
    (effect,) = system_effects(outcome_from(np.full(64, 4.0), design))
    assert (effect.means, effect.difference) == ((4.0, 4.0), pytest.approx(0.0, abs=1e-12))
    assert not has_interval(effect.ci)
    assert effect_verdict(effect, 0.95) == "no verdict"


def test_learning_of_two_people_has_no_interval() -> None:
    design = crossed(4, 8)
    four = outcome_from(sample_values(np.random.default_rng(3), design), design)
    two = Outcome("made", "more", tuple(trial for trial in four.values if trial.participant in {"p00", "p02"}))
    for outcome, interval in ((two, False), (four, True)):
        row = learning_effects(outcome)[0]
        assert row.system == ""
        assert not math.isnan(row.change)
        assert has_interval(row.ci) is interval


@pytest.mark.parametrize(("people", "interval"), [(1, False), (2, False), (3, True)])
def test_a_correlation_has_an_interval_from_three_people_on(people: int, interval: bool) -> None:
    design = crossed(people, 6)
    outcome = outcome_from(sample_values(np.random.default_rng(4), design), design)
    lists = {(row.participant, row.position): row.value + i % 5 for i, row in enumerate(outcome.values)}
    agreement = measure_agreement(outcome, lists, "made")
    assert -1 <= agreement.pooled <= 1
    assert has_interval(agreement.ci) is interval
    assert has_interval(agreement.within_ci) is interval
    assert bool(agreement.reason) is not interval


def test_a_perfect_correlation_has_no_interval() -> None:
    design = crossed(8, 6)
    outcome = outcome_from(sample_values(np.random.default_rng(5), design), design)
    agreement = measure_agreement(
        outcome, {(trial.participant, trial.position): trial.value for trial in outcome.values}, "same"
    )
    assert agreement.pooled == pytest.approx(1.0)
    assert agreement.ci is None
    assert "same value" in agreement.reason


def preferences(*preferred: str, sides_shown: tuple[str, str] = ("a", "b")) -> StudyRecords:
    """Record one comparison of a person each."""
    people = [f"p{i}" for i in range(len(preferred))]
    rows = [{"participant": name, "query_id": "t", "left": sides_shown[0], "right": sides_shown[1], "preferred": row}
            for name, row in zip(people, preferred, strict=True)]  # fmt: skip
    return StudyRecords.of({"participants": [{"participant": name} for name in people], "trials": [],
                            "preferences": rows})  # fmt: skip


def test_preference_is_tested_from_three_people_on() -> None:
    (two,) = pair_preferences(preferences("b", "b"))
    assert (two.value, math.isnan(two.p)) == (1.0, True)
    assert "2 participants" in two.reason
    (six,) = pair_preferences(preferences(*"bbbbbb"))
    assert six.p == pytest.approx(2 / 2**6)  # all six signs are the same: exact
    assert six.reason == ""


def test_a_preferred_side_needs_six_people_and_counts_each_once() -> None:
    five, six = (side_bias(preferences(*"a" * count)) for count in (5, 6))
    assert five is not None
    assert six is not None
    assert (five.left, five.preferred) == (1.0, False)
    assert (six.left, six.p, six.preferred) == (1.0, 2 / 64, True)
    # one person with twenty comparisons is still one person
    rows = [{"participant": "p", "query_id": f"t{i}", "left": "a", "right": "b", "preferred": "a"} for i in range(20)]
    bias = side_bias(StudyRecords.of({"participants": [{"participant": "p"}], "trials": [], "preferences": rows}))
    assert bias is not None
    assert (bias.comparisons, bias.people, bias.preferred) == (20, 1, False)
    assert math.isnan(bias.p)


def test_strengths_have_intervals_from_three_people_on() -> None:
    """Three people prefer a > b > c, b > c > a, and c > a > b: all strengths are 0.

    By hand: a person's scores are 1, 0, -1; of three games a pair the information is 3/4 each, 9/4 for contrasts; so
    the variance is (1 + 0 + 1) / (9/4)^2 * 3/2, and Student's quantile with 2 degrees of freedom is 4.302653.
    """
    pairs = (("a", "b"), ("b", "c"), ("c", "a"))
    rows = [
        {"participant": f"p{person}", "query_id": f"{left}{right}", "left": left, "right": right,
         "preferred": min(left, right, key=order.index)}
        for person, order in enumerate(("abc", "bca", "cab")) for left, right in pairs
    ]  # fmt: skip
    of = {"participants": [{"participant": f"p{person}"} for person in range(3)], "trials": []}
    strengths = preference_strengths(StudyRecords.of({**of, "preferences": rows}))
    half = 4.302653 * math.sqrt(2 / (9 / 4) ** 2 * 3 / 2)
    for strength in strengths:
        assert strength.strength == pytest.approx(0.0, abs=1e-9)
        assert strength.ci == pytest.approx((-half, half), rel=1e-6)
    assert [strength.ci for strength in preference_strengths(StudyRecords.of({**of, "preferences": rows[:6]}))] == [
        None
    ] * 3


def test_strengths_count_effective_people() -> None:
    """Of five people one compares 8 pairs and four compare 3: Kish's number is 20^2 / (8^2 + 4 * 3^2) = 4."""
    pairs = (("a", "b"), ("b", "c"), ("c", "a"))
    rng = np.random.default_rng(2)
    rows = [
        {"participant": f"p{person}", "query_id": f"{i}", "left": left, "right": right,
         "preferred": str(rng.choice([left, right]))}
        for person, count in enumerate((8, 3, 3, 3, 3)) for i in range(count) for left, right in [pairs[i % 3]]
    ]  # fmt: skip
    wins = np.zeros((5, 3, 3))
    for row in rows:
        loser = row["right"] if row["preferred"] == row["left"] else row["left"]
        wins[int(row["participant"][1:]), "abc".index(row["preferred"]), "abc".index(loser)] += 1
    errors = bradley_terry_errors(wins, bradley_terry(wins.sum(axis=0)))
    of = {"participants": [{"participant": f"p{person}"} for person in range(5)], "trials": []}
    strengths = preference_strengths(StudyRecords.of({**of, "preferences": rows}))
    t = 3.182446  # Student's quantile with 3 degrees of freedom
    for strength, error in zip(strengths, errors.tolist(), strict=True):
        assert strength.ci is not None
        assert (strength.ci[1] - strength.ci[0]) / 2 == pytest.approx(
            t * error * math.sqrt((4 / 5) / (3 / 4)), rel=1e-6
        )


def test_six_people_whose_positions_are_not_balanced_have_a_verdict_that_errs_rarely() -> None:
    """They count as some 5.8 effective people. 200 studies without a difference: 5 %, and 3 errors of that."""
    rates = studies.effects(studies.WORLDS["topics favor systems"], 6, 200)
    assert rates["none"] == 0
    assert rates["verdict"] <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)


def test_a_full_study_has_verdicts_and_no_reasons() -> None:
    answer = report(records(effect=5.0))
    assert {effect.reason for effect in answer.primary_effects} == {""}
    assert answer.table("effects").records()[0]["verdict"] == "better"
