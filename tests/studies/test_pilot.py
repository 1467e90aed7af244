"""Spreads from a pilot: on average those that were put in, and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from judged.errors import InputError
from judged.studies.assignment import assignments
from judged.studies.design import Group
from judged.studies.pilot import pilot_spreads, spreads_of
from judged.studies.questionnaires import Questionnaire
from judged.studies.records import StudyRecords
from studies.study_designs import made


@pytest.mark.parametrize("interfaces", [1, 2])
def test_components_are_right_on_average(interfaces: int) -> None:
    """Sixty pilots of twelve people and six topics, in which people and topics vary much."""
    more = {"interfaces": 2, "variants": "between"} if interfaces == 2 else {}
    rows = assignments(made(3 - interfaces, 6, groups=(Group("", 12),), **more)).to_pylist()
    people, topics = [row["participant"] for row in rows], [row["query_id"] for row in rows]
    used = [(row["system"], row["variant"]) for row in rows]
    random = np.random.default_rng(5)
    found: list[list[float]] = []
    for _ in range(60):
        drawn = [
            {one: random.normal(0, sd) for one in sorted(set(codes), key=repr)}
            for codes, sd in (
                (people, 2.0), (topics, 3.0), (list(zip(people, used, strict=True)), 1.0),
                (list(zip(topics, used, strict=True)), 1.5),
            )
        ]  # fmt: skip
        values = [
            drawn[0][person] + drawn[1][topic] + drawn[2][person, its] + drawn[3][topic, its] + random.normal(0, 1)
            for person, topic, its in zip(people, topics, used, strict=True)
        ]
        spreads, _ = spreads_of(values, people, topics, used)
        found.append([one**2 for one in vars(spreads).values()])
    # where each person has one variant, what people differ in with it is part of their level
    expected = [4.0, 1.0, 2.25, 1.0] if interfaces == 1 else [5.0, 0.0, 2.25, 1.0]
    assert np.mean(found, axis=0) == pytest.approx(expected, abs=0.6)


def records() -> tuple[StudyRecords, object]:
    """Record four people, who save as many documents as their number."""
    design = made(2, 4, practice=1, groups=(Group("", 4),), questionnaires=(Questionnaire("ease"),))
    rows = assignments(design).to_pylist()
    trials = [{**row, "started": 0, "ended": 60_000 * row["position"]} for row in rows]
    saved = [
        {"participant": row["participant"], "position": row["position"], "doc_id": f"d{at}"}
        for row in rows
        for at in range(int(row["participant"][1:]))
    ]
    people = [{"participant": f"p{at}"} for at in range(1, 5)]
    return StudyRecords.of({"participants": people, "trials": trials, "saved": saved}), design


def test_outcomes_of_a_pilot() -> None:
    pilot, design = records()
    spreads, notes = pilot_spreads(pilot, design, "saved")  # type: ignore[arg-type]
    # people save 1, 2, 3 and 4 with each system: the variance of these is 5 / 3, and nothing else varies
    assert spreads.people == pytest.approx((5 / 3) ** 0.5, abs=0.3)
    assert (spreads.people_by_system, spreads.topics_by_system, spreads.trials) == pytest.approx((0, 0, 0), abs=1e-6)
    assert notes[0].rule == "small-pilot"
    assert pilot_spreads(pilot, design, "minutes")[0].trials > 0  # type: ignore[arg-type]
    with pytest.raises(InputError, match="minutes, saved, ease"):
        pilot_spreads(pilot, design, "ease")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="too few trials"):
        spreads_of([1.0, 2.0], ["a", "b"], ["t", "t"], ["x", "y"])
