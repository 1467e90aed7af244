"""Outcomes, searching, preferences, measures, the log, and the notes of a pilot: edges that are counted by hand."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from judged import Qrels
from judged.errors import InputError
from judged.studies.design import Group
from judged.studies.outcomes import (
    BEHAVIOR,
    MIN_CORRELATED,
    Outcome,
    TrialValue,
    find_outcome,
    measure_agreement,
    measured_trials,
    outcomes,
)
from judged.studies.planning import pilot_spreads
from judged.studies.preference import (
    pair_preferences,
    preference_strengths,
    search_behavior,
    search_strategy,
    side_bias,
)
from judged.studies.questionnaires import Questionnaire
from judged.studies.records import StudyRecords, ubi_records, write_log
from studies.study_designs import make_design
from studies_made import crossed, sample_values

if TYPE_CHECKING:
    from pathlib import Path

NAN = math.nan
P1 = {"participant": "p", "position": 1}
T1 = {**P1, "query_id": "t", "system": "a", "variant": "v"}


def study(**tables: Any) -> StudyRecords:
    return StudyRecords.of({"participants": [{"participant": name} for name in "pqr"], **tables})


def values_of(made_of: StudyRecords, *more: Any, **options: Any) -> dict[str, list[float]]:
    return {outcome.name: [value.value for value in outcome.values] for outcome in outcomes(made_of, *more, **options)}


def test_what_is_told_where_tables_are_missing() -> None:
    trial = {**T1, "started": 30_000, "ended": 60_000}
    assert values_of(study(trials=[trial])) == {"minutes": [0.5]}
    open_ = {**T1, "participant": "q", "started": 0}
    assert values_of(study(trials=[trial, open_])) == {"finished": [1.0, 0.0], "minutes": [0.5]}
    assert values_of(study(trials=[open_])) == {}  # nobody has finished
    assert values_of(study(trials=[{**T1, "ended": 60_000}])) == {}
    assert values_of(study(trials=[trial], saved=[{**P1, "doc_id": "d"}])) == {"saved": [1.0], "minutes": [0.5]}
    events = [{**P1, "time": i, "action": action, "query": "x", "rank": rank}
              for i, (action, rank) in enumerate([("query", 1), ("save", 9), ("click", None)])]  # fmt: skip
    values = values_of(study(trials=[trial], events=events))
    assert values == {"minutes": [0.5], "queries": [1.0], "clicks": [1.0], "deepest click": [0.0],
                      "strategies": [1.0]}  # fmt: skip
    assert list(BEHAVIOR.values()) == ["more", "more", "", "more", "less", "", "", "", ""]


def test_documents_count_as_relevant_from_the_level_on() -> None:
    saved = [{**P1, "doc_id": doc} for doc in "abcx"]
    made_of = study(trials=[T1, {**T1, "participant": "q"}], saved=saved)
    qrels = Qrels.of({"t": {"a": 0, "b": 1, "c": 2, "d": 2}, "other": {"x": 2}})
    assert values_of(made_of, qrels=qrels) == {
        "relevant saved": [2.0, 0.0], "precision of saved": [pytest.approx(2 / 3)], "saved": [4.0, 0.0],
    }  # fmt: skip
    assert values_of(made_of, qrels=qrels, level=2)["relevant saved"] == [1.0, 0.0]
    assert values_of(made_of, qrels=qrels, level=0)["precision of saved"] == [1.0]
    assert values_of(study(trials=[T1]), qrels=qrels) == {}


def test_answers_without_a_design_are_averaged_where_all_are_numbers() -> None:
    rows = [("p", 1, "", "ease", "1", 4.0, None), ("p", 1, "", "ease", "2", 1.0, None),
            ("q", 1, "", "ease", "1", 4.0, None), ("q", 1, "", "ease", "2", None, None),
            ("r", 1, "", "ease", "1", 3.0, None), ("r", 1, "", "ease", "2", None, "words"),
            ("p", 0, "b", "sus", "1", 2.0, None), ("p", 0, "", "whole", "1", 2.0, None),
            ("p", 2, "", "ease", "1", 5.0, "both")]  # fmt: skip
    names = ("participant", "position", "system", "questionnaire", "item", "value", "text")
    trials = [{**T1, "participant": name} for name in "pqr"] + [{**T1, "position": 2, "practice": True}]
    made_of = study(trials=trials, answers=[dict(zip(names, row, strict=True)) for row in rows])
    by_name = {record.name: record for record in outcomes(made_of)}
    assert set(by_name) == {"ease", "sus"}
    assert by_name["ease"].values == (TrialValue("p", 1, "t", "a", "v", 2.5), TrialValue("r", 1, "t", "a", "v", 3.0))
    assert by_name["sus"].values == (TrialValue("p", 0, "", "b", "", 2.0),)
    assert {record.better for record in by_name.values()} == {"more"}
    design = make_design(questionnaires=(Questionnaire("ease"), Questionnaire("tlx")))
    load = [{**P1, "questionnaire": "tlx", "item": item.name, "value": 50.0} for item in design.questionnaires[1].items]
    rated = study(trials=[T1], answers=[*load, {**P1, "questionnaire": "ease", "item": "1", "value": None}])
    (tlx,) = outcomes(rated, design)  # the other has no score
    assert (tlx.name, tlx.better, tlx.values[0].value) == ("tlx", "less", 50.0)
    with pytest.raises(InputError, match="unknown outcome 'sus'") as refused:
        find_outcome(outcomes(made_of)[:1], "sus")
    assert "use ease" in str(refused.value)


def test_values_as_codes() -> None:
    rows = (
        TrialValue("q", 3, "t2", "b", "v", 1.0),
        TrialValue("p", 0, "", "a", "w", 2.0),
        TrialValue("q", 1, "t1", "a", "v", 3.0),
    )
    trials, names = Outcome("o", "more", rows).trials()
    assert names == ("a", "b")
    assert trials.values.tolist() == [1.0, 2.0, 3.0]
    assert trials.system.tolist() == [1, 0, 0]
    assert trials.person.tolist() == [1, 0, 1]
    assert trials.topic.tolist() == [2, 0, 1]
    assert trials.position.tolist() == [2, 0, 0]
    trials, names = Outcome("o", "more", rows).trials("variant")
    assert (names, trials.system.tolist()) == (("v", "w"), [0, 1, 0])


def event(action: str, query: str | None = "three words now", **more: Any) -> dict[str, Any]:
    return {"action": action, "query": query, "page": 1, "doc_id": None, "rank": None, **more}


CLICK = event("click", doc_id="d", rank=1)


@pytest.mark.parametrize(
    ("events", "way"),
    [
        ([event("query", "  "), CLICK], set()),  # no words are no short query
        ([event("query", None), event("query", None), CLICK], set()),
        ([event("query", "a b c", page=None), CLICK], set()),
        ([event("query", page=0), CLICK], set()),
        ([event("query"), event("save", page=3, doc_id="d"), CLICK], set()),  # pages count where they are asked for
        ([event("query", "are there any"), CLICK], {"question"}),
        ([event("query", "any are there"), CLICK], set()),
        ([event("query", "any of it? no"), CLICK], set()),
        ([event("query", "one OR the other"), CLICK], {"operators"}),
        ([event("query", "ORacle and so on"), CLICK], set()),
        ([event("query", "one + one is"), CLICK], {"operators"}),
        ([event("query"), CLICK, event("click", doc_id="e", rank=12)], {"deep results"}),
        ([event("query"), event("query", "three words then"), CLICK], {"changed query"}),
        ([event("query"), event("save", doc_id="d", rank=99), CLICK], set()),
        ([event("query"), event("unsave", doc_id="d")], {"abandoned"}),
    ],
)
def test_ways_of_searching_at_their_edges(events: list[dict[str, Any]], way: set[str]) -> None:
    assert search_strategy(events) == way


def test_searching_is_told_by_system_and_group_in_their_order() -> None:
    trials, events = [], []
    for person, position, system, query in (
        ("q", 1, "b", "x y z"), ("p", 1, "b", "x y z"), ("p", 2, "b", "x"), ("p", 3, "a", "x"),
        ("q", 2, "b", "what is x"), ("r", 1, "b", None),
    ):  # fmt: skip
        of = {"participant": person, "position": position}
        trials.append({**of, "query_id": "t", "system": system})
        if query:
            events.append({**of, "time": 1, "action": "query", "query": query, "page": 1})
            events.append({**of, "time": 2, "action": "click", "query": query, "page": 1, "doc_id": "d", "rank": 1})
    people = [{"participant": name, "group": "h" if name == "q" else "g"} for name in "pqr"]
    made_of = StudyRecords.of({"participants": people, "trials": trials, "events": events})
    rows = search_behavior(made_of)
    assert [(row.system, row.group, row.people, row.trials, row.strategies) for row in rows] == [
        ("a", "g", 1, 1, 1), ("b", "g", 1, 2, 2), ("b", "h", 1, 2, 2),
    ]  # fmt: skip
    assert [row.effective_strategies for row in rows] == pytest.approx([1.0, 2.0, 2.0])
    assert [row.strategies_per_person for row in rows] == [1.0, 2.0, 2.0]
    assert rows[1].shares["short query"] == rows[2].shares["question"] == 0.5
    assert rows[0].shares["abandoned"] == 0.0


def compared(*rows: tuple[str, str, str, str]) -> StudyRecords:
    people = [{"participant": name} for name in dict.fromkeys(row[0] for row in rows)]
    names = ("participant", "left", "right", "preferred")
    preferences = [{**dict(zip(names, row, strict=True)), "query_id": f"q{i}"} for i, row in enumerate(rows)]
    return StudyRecords.of({"participants": people, "trials": [], "preferences": preferences})


def test_pairs_that_were_compared_and_their_ties() -> None:
    rows = [("p", "a", "b", "b"), ("p", "b", "a", ""), ("q", "b", "a", "a"), ("q", "c", "b", "c"), ("r", "b", "c", "c"),
            ("p", "b", "c", "")]  # fmt: skip
    first, second = pair_preferences(compared(*rows))
    assert (first.first, first.second, first.people, first.comparisons, first.wins, first.losses) == (
        "a", "b", 2, 3, 1, 1,
    )  # fmt: skip
    # p: one win of two comparisons is 0.75, q: 0
    assert first.value == pytest.approx(0.375)
    assert math.isnan(first.p)
    assert (second.first, second.second, second.people, second.wins, second.losses) == ("b", "c", 3, 2, 0)
    assert second.value == pytest.approx((1 + 1 + 0.5) / 3)
    assert second.p == 0.5  # two signs, both alike: 2 of 4
    assert (first.reason != "", second.reason) == (True, "")


def test_strengths_of_three_systems_and_of_two() -> None:
    cycle = [("a", "b", "a"), ("b", "c", "b"), ("c", "a", "c")]
    rows = [(f"p{i}", *row) for i in range(4) for row in cycle]
    assert preference_strengths(compared(*(row for row in rows if "c" not in row[1:3]))) == ()
    even = preference_strengths(compared(*rows))
    assert [(record.system, round(record.strength, 9)) for record in even] == [("a", 0.0), ("b", 0.0), ("c", 0.0)]
    # all people say the same, so that nothing varies over people
    assert [record.ci for record in even] == [None] * 3
    lost = [
        (participant, left, right, "a" if "a" in (left, right) else preferred)
        for participant, left, right, preferred in rows
    ]
    for record in preference_strengths(compared(*lost)):  # a never lost
        assert math.isnan(record.strength)
        assert record.ci is None
    rng = np.random.default_rng(3)
    drawn_rows = [
        (participant, left, right, str(rng.choice([left, right, ""]))) for participant, left, right, _ in rows * 3
    ]
    wide, narrow = (preference_strengths(compared(*drawn_rows), level=level) for level in (0.95, 0.8))
    ratio = stats.t.ppf(0.975, 3) / stats.t.ppf(0.9, 3)  # of four people who compare equally often
    for record, other in zip(wide, narrow, strict=True):
        assert record.ci is not None
        assert other.ci is not None
        assert (record.ci[0] + record.ci[1]) / 2 == pytest.approx(record.strength)
        assert (record.ci[1] - record.ci[0]) / (other.ci[1] - other.ci[0]) == pytest.approx(ratio, rel=1e-4)
    # one person with more than half of all comparisons
    most = [("p0", *row) for row in cycle * 9] + rows
    assert [record.ci for record in preference_strengths(compared(*most))] == [None] * 3


def test_sides_count_people_and_leave_out_who_prefers_neither() -> None:
    rows = [("p", "a", "b", "a"), ("p", "b", "a", "a"), ("p", "b", "a", ""), ("q", "a", "b", "a"), ("r", "b", "a", "")]
    bias = side_bias(compared(*rows))
    assert bias is not None
    assert (bias.comparisons, bias.people, bias.left, bias.preferred) == (3, 2, 0.75, False)
    assert math.isnan(bias.p)
    six = [(f"p{i}", "a", "b", "a") for i in range(6)]
    exact = 2 / 2**6
    for level, is_preferred in ((1 - exact, True), (1 - exact + 1e-6, False)):
        bias = side_bias(compared(*six), level=level)
        assert bias is not None
        assert (bias.p, bias.preferred) == (exact, is_preferred)
    many = [(f"p{i}", "a", "b", "a" if i % 3 else "b") for i in range(30)]
    seeds = [side_bias(compared(*many), seed=seed) for seed in (0, 0, 1)]
    assert seeds[0] == seeds[1] == side_bias(compared(*many))
    assert seeds[0] != seeds[2]


def rated(people: int = 4, trials: int = 4) -> tuple[Outcome, dict[tuple[str, int], float]]:
    where = crossed(people, trials)
    values = sample_values(np.random.default_rng(4), where).round(1)
    rows = tuple(TrialValue(f"p{person}", position + 1, f"t{topic}", "ab"[system], "", float(value))
                 for person, position, topic, system, value in zip(
                     *(where[name].tolist() for name in ("person", "position", "topic", "system")), values,
                     strict=True))  # fmt: skip
    rng = np.random.default_rng(5)
    return Outcome("o", "more", rows), {row[:2]: round(rng.normal(), 1) for row in rows}


def test_trials_that_have_a_measure() -> None:
    outcome, measured = rated()
    two = dict(list(measured.items())[:2])
    with pytest.raises(InputError, match="at least 3 trials must have both m and o, got 2"):
        measure_agreement(outcome, two, "m")
    three = dict(list(measured.items())[:3])
    agreement = measure_agreement(outcome, three, "m")
    assert (agreement.measure, agreement.outcome, agreement.trials, agreement.people, MIN_CORRELATED) == (
        "m",
        "o",
        3,
        1,
        3,
    )
    assert len(agreement.persons) == 1
    # two of three trials of one person, three of another one
    some = {key: value for key, value in measured.items() if key in {("p0", 1), ("p0", 2), ("p1", 1), ("p1", 2),
                                                                     ("p1", 3)}}  # fmt: skip
    assert len(measure_agreement(outcome, some, "m").persons) == 1
    # of who gives the same value each time there is no correlation
    same = tuple(row._replace(value=1.0) if row.participant == "p0" else row for row in outcome.values)
    assert len(measure_agreement(Outcome("o", "more", same), measured, "m").persons) == 3
    flat = measure_agreement(Outcome("o", "more", tuple(row._replace(value=2.0) for row in same)), measured, "m")
    assert math.isnan(flat.pooled)
    assert math.isnan(flat.within)
    assert math.isnan(flat.tau)
    assert flat.reason.startswith("Not enough data: all participants have the same value")
    assert (flat.ci, flat.persons) == (None, ())


@pytest.mark.parametrize(("people", "trials", "level"), [(4, 4, 0.95), (7, 3, 0.5)])
def test_tau_and_intervals_over_people(people: int, trials: int, level: float) -> None:
    """All pairs of trials within people, counted one by one; jackknife and Student's t of Fisher's z."""
    outcome, measured = rated(people, trials)
    agreement = measure_agreement(outcome, measured, "m", level=level)
    x = np.array([measured[row[:2]] for row in outcome.values]).reshape(people, trials)
    y = np.array([row.value for row in outcome.values]).reshape(people, trials)
    pairs = [(np.sign(x[participant, i] - x[participant, j]), np.sign(y[participant, i] - y[participant, j]))
             for participant in range(people) for i in range(trials) for j in range(i)]  # fmt: skip
    differ = [sum(1 for pair in pairs if pair[side]) for side in (0, 1)]
    assert agreement.tau == pytest.approx(sum(a * b for a, b in pairs) / math.sqrt(differ[0] * differ[1]))
    for value, ci, (row, other) in (
        (agreement.pooled, agreement.ci, (x, y)),
        (agreement.within, agreement.within_ci, (x - x.mean(1, keepdims=True), y - y.mean(1, keepdims=True))),
    ):
        assert value == pytest.approx(stats.pearsonr(row.ravel(), other.ravel()).statistic)
        leave_one_out = [
            [np.delete(of, participant, 0).ravel() for of in (row, other)] for participant in range(people)
        ]
        without = [np.arctanh(stats.pearsonr(*two).statistic) for two in leave_one_out]
        error = math.sqrt((people - 1) / people * ((without - np.mean(without)) ** 2).sum())
        assert ci is not None
        ends = stats.t(people - 1, math.atanh(value), error).interval(level)
        assert ci == pytest.approx(np.tanh(ends))


def test_one_person_with_most_trials_leaves_no_interval() -> None:
    outcome, measured = rated(4, 8)
    subset = {key: value for key, value in measured.items() if key[0] == "p0" or key[1] <= 2}
    agreement = measure_agreement(outcome, subset, "m")  # 8 of 14 trials
    assert agreement.ci is None
    assert "57% of the weight" in agreement.reason


def test_scores_of_trials_are_those_of_their_system_and_topic() -> None:
    class Scored:
        @staticmethod
        def per_topic() -> dict[str, dict[str, dict[str, float]]]:
            return {"a": {"m": {"t": 0.5, "u": NAN}, "other": {"u": 0.1}}, "b": {"m": {"t": 0.25}}}

    trials = [("p", 1, "t", "a"), ("p", 2, "u", "a"), ("q", 1, "t", "b"), ("q", 2, "x", "b"), ("r", 1, "t", "c")]
    rows = tuple(TrialValue(*trial, "", 9.0) for trial in trials)
    measured = measured_trials(Outcome("o", "more", rows), Scored(), "m")  # type: ignore[arg-type]
    assert measured == {("p", 1): 0.5, ("q", 1): 0.25}


def test_every_line_of_a_log() -> None:
    rows: list[dict[str, Any]] = [
        {"action": "query", "page": 1, "query": "x", "rank": 1, "shown": ["a", "b", "c"]},
        {"action": "click", "page": 1, "doc_id": "b", "rank": 2},
        {"action": "click", "page": 1, "doc_id": "a", "rank": 1},
        {"action": "back", "page": 1, "doc_id": "a", "rank": 1, "value": 1.25},
        {"action": "click", "page": 1, "doc_id": "b", "rank": 2},
        {"action": "back", "page": 1, "doc_id": "b", "rank": 2},
        {"action": "save", "page": 1, "doc_id": "a", "rank": 1},
        {"action": "save", "page": 1, "doc_id": "b", "rank": 2, "value": 3.0},
        {"action": "unsave", "page": 1, "doc_id": "b", "rank": 2, "value": 3.0},
        {"action": "query", "page": 2, "query": "x", "rank": 4, "shown": ["d"]},
        {"action": "query", "page": 3, "query": "x", "rank": 7, "shown": []},
        {"action": "query", "page": 4, "query": "y", "rank": 3, "shown": ["a", "b"]},
        {"action": "query", "page": 5, "query": "z", "rank": None, "shown": None},
        {"action": "query", "page": 6, "query": "z", "rank": 4, "shown": None},
        {"action": "end"},
    ]
    people = [{"participant": "p", "group": "g"}]
    trial = {**T1, "position": 2, "practice": True}
    made_of = StudyRecords.of({
        "participants": people, "trials": [trial],
        "events": [{"participant": "p", "position": 2, "time": 1000 + i, **row} for i, row in enumerate(rows)],
    })  # fmt: skip
    lines = list(ubi_records(made_of))
    pages = [line for line in lines if "query_attributes" in line]
    about = {"topic": "t", "position": 2, "group": "g", "variant": "v", "practice": True, "ranker": "a", "rank_base": 1}
    assert pages[0] == {
        "client_id": "p", "session_id": "p-2", "query_id": "p-2-1", "timestamp": 1000, "user_query": "x",
        "query_response_hit_ids": ["a", "b", "c"], "query_attributes": {**about, "first_rank": 1, "page": 1},
    }  # fmt: skip
    # pages have as many as the first one of a query: three of x, two of y; of z nothing is known
    assert [(page["query_attributes"]["first_rank"], page["query_attributes"]["page"]) for page in pages] == [
        (1, 1), (4, 2), (7, 3), (3, 2), (1, 1), (4, 4),
    ]  # fmt: skip
    assert [page["query_response_hit_ids"] for page in pages[2:]] == [[], ["a", "b"], [], []]
    acts = [(line["action_name"], line["timestamp"], line["event_attributes"]) for line in lines
            if "action_name" in line]  # fmt: skip
    a, b = ({"object": {"object_id": doc}, "position": {"ordinal": rank}} for doc, rank in (("a", 1), ("b", 2)))
    assert acts == [
        ("click", 1001, b),  # it was opened once more before it was left
        ("click", 1002, {**a, "dwell_ms": 1250}),
        ("click", 1004, b),  # nobody knows for how long
        ("save", 1006, a),
        ("save", 1007, b),
        ("rating", 1007, {**b, "value": 3.0}),
        ("unsave", 1008, b),
    ]
    assert {line["query_id"] for line in lines if "action_name" in line} == {"p-2-1"}


def test_a_log_is_written_as_it_is_spoken(tmp_path: Path) -> None:
    event_of = {**P1, "time": 1, "action": "query", "query": "Bücher ☃", "page": 1, "rank": 1, "shown": ["d"]}
    made_of = study(trials=[T1], events=[event_of])
    write_log(made_of, tmp_path / "log.ndjson")
    (line,) = (tmp_path / "log.ndjson").read_text("utf-8").splitlines()
    assert '"Bücher ☃"' in line
    assert [json.loads(line)] == list(ubi_records(made_of))


@pytest.mark.parametrize(("people", "topics", "small"), [(8, 8, False), (7, 8, True), (8, 7, True)])
def test_a_pilot_of_fewer_than_eight_people_or_topics_is_small(people: int, topics: int, small: bool) -> None:
    design = make_design(2, topics, groups=(Group("", people),))
    where = crossed(people, topics)
    rng = np.random.default_rng(2)
    minutes = 10 + 5 * rng.normal(size=people)[where["person"]] + rng.normal(size=people * topics)
    rows = zip(*(where[name].tolist() for name in ("person", "position", "topic", "system")), minutes, strict=True)
    trials = [{"participant": f"p{person}", "position": position + 1, "query_id": f"t{topic}", "system": f"s{system}",
               "started": 0, "ended": round(60_000 * minute) + 10**7}
              for person, position, topic, system, minute in rows]  # fmt: skip
    people_of = [{"participant": f"p{i}"} for i in range(people)]
    spreads, notes = pilot_spreads(StudyRecords.of({"participants": people_of, "trials": trials}), design, "minutes")
    assert ("small-pilot" in {note.rule for note in notes}) == small
    texts = {note.text for note in notes}
    zero = [name for name, sd in vars(spreads).items() if sd == 0.0]
    assert {
        f"the standard deviation of {name.replace('_', ' ')} is estimated near 0, so 0 is used" for name in zero
    } == {text for text in texts if "chance" in text}
    if small:
        assert f"a pilot with {people} participants and {topics} topics" in notes[0].text
    assert spreads.people > 1.0
    assert spreads.trials == pytest.approx(1.0, abs=0.4)
