"""Spreads from a pilot: on average those that were put in, and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from judged.errors import InputError
from judged.studies import planning as pilot
from judged.studies.assignment import assignments
from judged.studies.design import Group
from judged.studies.effects import VarianceComponents, variance_components
from judged.studies.outcomes import Outcome, TrialValue
from judged.studies.planning import pilot_spreads
from judged.studies.questionnaires import Questionnaire
from judged.studies.records import StudyRecords
from studies.study_designs import make_design


@pytest.mark.parametrize("interfaces", [1, 2])
def test_components_are_right_on_average(interfaces: int) -> None:
    """Sixty pilots of twelve people and six topics, in which people and topics vary much."""
    more = {"interfaces": 2, "variants": "between"} if interfaces == 2 else {}
    rows = assignments(make_design(3 - interfaces, 6, groups=(Group("", 12),), **more)).to_pylist()
    names = ("participant", "position", "query_id", "system", "variant")
    trials = [TrialValue(**{name: row[name] for name in names}, value=0.0) for row in rows]
    people, topics = [record.participant for record in trials], [record.query_id for record in trials]
    used = [(record.system, record.variant) for record in trials]
    random = np.random.default_rng(5)
    variances: list[list[float]] = []
    for _ in range(60):
        effects = [
            {record: random.normal(0, sd) for record in sorted(set(codes), key=repr)}
            for codes, sd in (
                (people, 2.0), (topics, 3.0), (list(zip(people, used, strict=True)), 1.0),
                (list(zip(topics, used, strict=True)), 1.5),
            )
        ]  # fmt: skip
        values = [
            effects[0][person]
            + effects[1][topic]
            + effects[2][person, its]
            + effects[3][topic, its]
            + random.normal(0, 1)
            for person, topic, its in zip(people, topics, used, strict=True)
        ]
        made_of = tuple(record._replace(value=value) for record, value in zip(trials, values, strict=True))
        estimate = variance_components(Outcome("made", "more", made_of), by="system" if interfaces == 1 else "variant")
        assert estimate is not None
        deviations = (estimate.by_person, estimate.people_by_system, estimate.topics_by_system, estimate.trials)
        variances.append([record**2 for record in deviations])
    # where each person has one variant, what people differ in with it is part of their level
    expected = [4.0, 1.0, 2.25, 1.0] if interfaces == 1 else [5.0, np.nan, 2.25, 1.0]
    assert np.mean(variances, axis=0) == pytest.approx(expected, abs=0.6, nan_ok=True)


def records() -> tuple[StudyRecords, object]:
    """Record four people, who save five times their number of documents, or a few more."""
    design = make_design(2, 4, practice=1, groups=(Group("", 4),), questionnaires=(Questionnaire("ease"),))
    rows = assignments(design).to_pylist()
    trials = [{**row, "started": 0, "ended": 60_000 * row["position"]} for row in rows]
    saved = [
        {"participant": row["participant"], "position": row["position"], "doc_id": f"d{i}"}
        for number, row in enumerate(rows)
        for i in range(5 * int(row["participant"][1:]) + row["position"] ** 2 % 3 + number % 3 // 2)
    ]
    people = [{"participant": f"p{i}"} for i in range(1, 5)]
    return StudyRecords.of({"participants": people, "trials": trials, "saved": saved}), design


def test_outcomes_of_a_pilot() -> None:
    few_people, design = records()
    spreads, notes = pilot_spreads(few_people, design, "saved")  # type: ignore[arg-type]
    # the variance of 5, 10, 15 and 20 is 125 / 3
    assert spreads.people == pytest.approx((125 / 3) ** 0.5, abs=0.5)
    assert max(spreads.people_by_system, spreads.topics_by_system, spreads.trials) < 1
    assert notes[0].rule == "small-pilot"
    with pytest.raises(InputError, match="residual"):  # the minutes are the position, which is in the model
        pilot_spreads(few_people, design, "minutes")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="saved, minutes"):
        pilot_spreads(few_people, design, "ease")  # type: ignore[arg-type]


def test_a_pilot_that_leaves_nothing_to_tell_single_trials_by() -> None:
    """Two people and four topics: as many trials as people and topics with each system."""
    few_people, design = records()
    few = {name: [row for row in few_people[name].to_pylist() if row["participant"] in {"p1", "p2"}]
           for name in ("participants", "trials", "saved")}  # fmt: skip
    with pytest.raises(InputError, match="too few trials"):
        pilot_spreads(StudyRecords.of(few), design, "saved")  # type: ignore[arg-type]


@pytest.mark.parametrize("systems", [1, 2])
def test_spreads_below_a_hundredth_of_that_of_trials_are_0(systems: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of people 0.08 of 4, of people with systems 0.04, of topics 0.0396: only the last is below 0.04."""
    factors: list[str] = []

    def known(outcome: Outcome, *, by: str) -> VarianceComponents:
        factors.append(by)
        return VarianceComponents(outcome.name, 0.08, 9.0, 0.04 if systems == 2 else np.nan, 0.0396, 4.0)

    monkeypatch.setattr(pilot, "variance_components", known)
    many, design = records()
    if systems == 1:
        design = make_design(1, 4, practice=1, groups=(Group("", 4),), interfaces=2)
    spreads, notes = pilot_spreads(many, design, "saved")  # type: ignore[arg-type]
    assert factors == ["system" if systems == 2 else "variant"]
    assert vars(spreads) == {
        "people": 0.08, "people_by_system": 0.04 if systems == 2 else 0.0, "topics_by_system": 0.0, "trials": 4.0,
    }  # fmt: skip
    assert [note.rule for note in notes] == ["small-pilot", "no-spread"]
    assert notes[1].text.startswith("the standard deviation of topics by system is estimated near 0")
