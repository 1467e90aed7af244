"""What a study shows: outcomes, preference, ways of searching, measures against people, and the report of all."""

import math

import numpy as np
import pytest

from judged.studies.outcomes import Outcome, find_outcome, measure_agreement, outcomes
from judged.studies.preference import bradley_terry, pair_preferences, preference_strengths, search_behavior, side_bias
from judged.studies.records import StudyRecords
from judged.studies.study_report import report
from studies_made import records


def _study(**tables):
    return StudyRecords.of({"participants": [{"participant": "p"}, {"participant": "q"}], **tables})


def test_outcomes_by_hand():
    trial = {"participant": "p", "position": 1}
    study_records = _study(
        trials=[
            {**trial, "query_id": "t", "system": "a", "started": 0, "ended": 90_000},
            {"participant": "q", "position": 1, "query_id": "t", "system": "b", "started": 0},
            {
                "participant": "q",
                "position": 2,
                "query_id": "t",
                "system": "b",
                "started": 0,
                "ended": 1,
                "practice": True,
            },
        ],
        saved=[{**trial, "doc_id": "good"}, {**trial, "doc_id": "bad"}, {**trial, "doc_id": "unjudged"}],
        events=[
            {**trial, "time": 1, "action": "query", "query": "x"},
            {**trial, "time": 2, "action": "click", "query": "x", "doc_id": "good", "rank": 3},
        ],
    )
    from judged import Qrels

    qrels = Qrels.of({"t": {"good": 1, "bad": 0, "missed": 1}})
    values = {outcome.name: [row.value for row in outcome.values] for outcome in outcomes(study_records, qrels=qrels)}
    assert values == {
        "relevant saved": [1, 0],
        "precision of saved": [0.5],  # of the judged ones; nothing of who saved none
        "saved": [3, 0],
        "finished": [1, 0],
        "minutes": [1.5],  # of who finished
        "queries": [1, 0],
        "clicks": [1, 0],
        "deepest click": [3],
        "strategies": [1],
    }


def test_preference_counts_each_person_once():
    rows = [("p", "a", "b", "b"), ("p", "b", "a", "b"), ("p", "a", "b", ""), ("q", "a", "b", "a")]
    study_records = _study(trials=[], preferences=[
        {"participant": participant, "query_id": str(i), "left": left, "right": right, "preferred": preferred}
        for i, (participant, left, right, preferred) in enumerate(rows)
    ])  # fmt: skip
    (preference,) = pair_preferences(study_records)
    assert (
        preference.first,
        preference.second,
        preference.people,
        preference.comparisons,
        preference.wins,
        preference.losses,
    ) == ("a", "b", 2, 4, 2, 1)
    assert preference.value == pytest.approx(0.5 + (2 / 3 - 1) / 2 / 2)
    side = side_bias(study_records)
    assert (side.comparisons, side.people, side.left) == (3, 2, pytest.approx((1 / 2 + 1) / 2))  # of p, and of q


def test_strengths_solve_the_equations_of_bradley_and_terry():
    """At the maximum each system wins as often as its strength says."""
    wins = np.array([[0, 7, 4], [2, 0, 6], [3, 1, 0.0]])
    power = np.exp(bradley_terry(wins))
    expected = (wins + wins.T) * power[:, None] / (power[:, None] + power)
    assert expected.sum(axis=1) == pytest.approx(wins.sum(axis=1))
    assert np.isnan(bradley_terry(np.array([[0, 3, 1], [0, 0, 1], [0, 1, 0.0]]))).all()  # the first never lost


def test_strengths_of_a_study_order_three_systems():
    pairs = ("abb", "bcc", "acc", "aba", "bcb", "acc", "aca")  # left, right, preferred
    study_records = _study(trials=[], preferences=[
        {"participant": "pq"[i % 2], "query_id": str(i), "left": left, "right": right, "preferred": preferred}
        for i, (left, right, preferred) in enumerate(pairs)
    ])  # fmt: skip
    strengths = {strength.system: strength.strength for strength in preference_strengths(study_records)}
    assert strengths["a"] < strengths["b"] < strengths["c"]
    assert sum(strengths.values()) == pytest.approx(0)


def test_ways_of_searching_count_kinds_of_trials():
    rows = search_behavior(records())
    assert {(row.system, row.group) for row in rows} == {(s, g) for s in "ab" for g in ("novice", "expert")}
    for row in rows:
        assert row.strategies == 2  # something was opened, or nothing
        p = row.shares["abandoned"]
        assert row.effective_strategies == pytest.approx(math.exp(-p * math.log(p) - (1 - p) * math.log(1 - p)))


def test_a_measure_within_people_is_free_of_how_they_use_the_scale():
    rng = np.random.default_rng(0)
    study_records = records()
    outcome = find_outcome(outcomes(study_records), "satisfaction")
    level = {f"p{i:02}": 50 * rng.normal() for i in range(12)}
    values = (trial._replace(value=trial.value + level[trial.participant]) for trial in outcome.values)
    moved = Outcome("moved", "more", tuple(values))
    lists = {(trial.participant, trial.position): trial.value + rng.normal() for trial in outcome.values}
    before, after = measure_agreement(outcome, lists, "made"), measure_agreement(moved, lists, "made")
    assert after.within == pytest.approx(before.within)
    assert after.tau == before.tau
    assert abs(after.pooled) < before.pooled


def test_intervals_of_a_correlation_cover_it_though_people_differ():
    """0.5 within people; who is satisfied with everything is no reason to be sure."""
    rng, count, covered = np.random.default_rng(7), 60, 0
    for _ in range(count):
        x = rng.normal(size=(30, 6))
        y = x + math.sqrt(3) * rng.normal(size=x.shape) + 2 * rng.normal(size=(30, 1))
        outcome = find_outcome(outcomes(_rated(y)), "satisfaction")
        lists = {(f"p{p}", k + 1): float(x[p, k]) for p in range(30) for k in range(6)}
        ci = measure_agreement(outcome, lists, "x").within_ci
        covered += ci[0] <= 0.5 <= ci[1]
    assert covered / count >= 0.85


def _rated(values):
    return _of_ratings([(f"p{p}", k + 1, float(values[p, k])) for p, k in np.ndindex(values.shape)])


def _of_ratings(ratings):
    rows = [{"participant": p, "position": k, "query_id": f"t{k}", "system": "a", "value": v} for p, k, v in ratings]
    return StudyRecords.of({
        "participants": [{"participant": name} for name in dict.fromkeys(p for p, _, _ in ratings)],
        "trials": rows,
        "answers": [{**row, "questionnaire": "satisfaction", "item": "1"} for row in rows],
    })  # fmt: skip


def test_a_report_says_what_decides_and_corrects_for_pairs():
    answer = report(records())
    (record,) = answer.primary_effects
    assert record.adjusted == record.p
    row = answer.table("effects").records()[0]
    assert (row["outcome"], row["verdict"]) == ("satisfaction", "better")
    assert report(records(effect=0.0)).table("effects").records()[0]["verdict"] == "undecided"
