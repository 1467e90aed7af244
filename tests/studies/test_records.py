"""Records of a study: what is refused, and that anything else is answered without a traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judged.errors import InputError
from judged.studies.records import StudyRecords
from judged.studies.study_report import report
from studies_made import records

Tables = dict[str, list[dict[str, Any]]]
MADE = records(people=6, topics=4)
NAMES = ("participants", "trials", "answers", "saved", "preferences", "events")


def tables() -> Tables:
    return {name: MADE[name].to_pylist() for name in NAMES}


def select_trials(**values: Any) -> Tables:
    """Keep what is of trials with these values, and preferences of persons who stay."""
    trials = [row for row in tables()["trials"] if all(row[name] == value for name, value in values.items())]
    places = {(row["participant"], row["position"]) for row in trials}
    selected_tables = {name: [row for row in rows if (row.get("participant"), row.get("position")) in places]
            for name, rows in tables().items()}  # fmt: skip
    people = {person for person, _ in places}
    return selected_tables | {"participants": [row for row in tables()["participants"] if row["participant"] in people]}


def changed(name: str, **values: Any) -> Tables:
    return tables() | {name: [row | values for row in tables()[name]]}


def commas() -> Tables:
    odd = ("participant", "query_id", "system", "left", "right", "preferred", "group")
    return {name: [{key: f'{value},"<b>\n|' if key in odd and value else value for key, value in row.items()}
                   for row in rows] for name, rows in tables().items()}  # fmt: skip


@pytest.mark.parametrize(
    "tables_given",
    [
        commas(),
        tables() | {"events": [], "saved": [], "preferences": []},
        tables() | {"participants": [*tables()["participants"], {"participant": "nobody"}]},
        select_trials(participant="p00"),
        select_trials(system="a"),
        select_trials(query_id="t1"),
        select_trials(participant="p00", position=1),
        changed("answers", value=3.0),
        changed("answers", value=None),
        changed("trials", system="a", variant="v"),
        changed("trials", started=None, ended=None),
        changed("events", action=None, query=None, doc_id=None, rank=None, page=None),
        {
            "participants": [{"participant": "p"}, {"participant": "q"}],
            "trials": [
                {"participant": name, "position": i, "query_id": "q", "system": "ab"[i % 2], "started": 0, "ended": i}
                for name in "pq"
                for i in (1, 2**40)
            ],
        },
    ],
    ids=["commas", "empty tables", "without a trial", "one person", "one system", "one topic", "one trial", "equal",
         "no values", "variant", "no times", "empty events", "a far position"],
)  # fmt: skip
def test_odd_records_are_answered(tables_given: Tables, tmp_path: Path) -> None:
    study_records = StudyRecords.of(tables_given)
    study_records.write(tmp_path)
    again = StudyRecords.read(tmp_path)
    assert [again[name].to_pylist() for name in ("participants", "trials")] == [
        study_records[name].sort_by([(key, "ascending") for key in keys]).to_pylist()
        for name, keys in (("participants", ("participant",)), ("trials", ("participant", "position")))
    ]
    answer = report(again)
    assert answer.text()
    assert all(effect.first != effect.second for effect in answer.effects)


@pytest.mark.parametrize(
    ("tables_given", "message"),
    [
        ({}, "at least one trial other than practice"),
        (changed("trials", practice=True), "at least one trial other than practice"),
        (changed("trials", query_id=None), "a query_id, and a system"),
        (changed("trials", system=None), "a query_id, and a system"),
        (changed("answers", value=float("nan")), "value is nan"),
        (changed("preferences", right="a", left="a"), "two different systems"),
        (changed("preferences", preferred="c"), "got 'c'"),
        (tables() | {"participants": []}, "participants has no row of participant"),
        (tables() | {"participants": tables()["participants"] * 2}, "several rows"),
        (tables() | {"trials": tables()["trials"][1:]}, "no trial at position 1"),
        (tables() | {"people": []}, "no table 'people'"),
    ],
)
def test_what_is_no_study_is_refused(tables_given: Tables, message: str) -> None:
    with pytest.raises(InputError, match=message):
        report(StudyRecords.of(tables_given))


def test_variants_of_the_interface_are_compared() -> None:
    variant_tables = tables()
    variant_tables["trials"] = [
        row | {"variant": "vw"[row["system"] == "b"], "system": "a"} for row in variant_tables["trials"]
    ]
    (answer,) = report(StudyRecords.of(variant_tables | {"preferences": []})).primary_effects
    assert (answer.first, answer.second, answer.people) == ("v", "w", 6)
