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


def chosen(**wanted: Any) -> Tables:
    """Keep what is of trials with these values, and preferences of persons who stay."""
    trials = [row for row in tables()["trials"] if all(row[name] == value for name, value in wanted.items())]
    places = {(row["participant"], row["position"]) for row in trials}
    kept = {name: [row for row in rows if (row.get("participant"), row.get("position")) in places]
            for name, rows in tables().items()}  # fmt: skip
    people = {person for person, _ in places}
    return kept | {"participants": [row for row in tables()["participants"] if row["participant"] in people]}


def changed(name: str, **values: Any) -> Tables:
    return tables() | {name: [row | values for row in tables()[name]]}


def commas() -> Tables:
    odd = ("participant", "query_id", "system", "left", "right", "preferred", "group")
    return {name: [{key: f'{value},"<b>\n|' if key in odd and value else value for key, value in row.items()}
                   for row in rows] for name, rows in tables().items()}  # fmt: skip


@pytest.mark.parametrize(
    "given",
    [
        commas(),
        tables() | {"events": [], "saved": [], "preferences": []},
        tables() | {"participants": [*tables()["participants"], {"participant": "nobody"}]},
        chosen(participant="p00"),
        chosen(system="a"),
        chosen(query_id="t1"),
        chosen(participant="p00", position=1),
        changed("answers", value=3.0),
        changed("answers", value=None),
        changed("trials", system="a", variant="v"),
        changed("trials", started=None, ended=None),
        changed("events", action=None, query=None, doc_id=None, rank=None, page=None),
        {
            "participants": [{"participant": "p"}, {"participant": "q"}],
            "trials": [
                {"participant": who, "position": at, "query_id": "q", "system": "ab"[at % 2], "started": 0, "ended": at}
                for who in "pq"
                for at in (1, 2**40)
            ],
        },
    ],
    ids=["commas", "empty tables", "without a trial", "one person", "one system", "one topic", "one trial", "equal",
         "no values", "variant", "no times", "empty events", "a far position"],
)  # fmt: skip
def test_odd_records_are_answered(given: Tables, tmp_path: Path) -> None:
    made = StudyRecords.of(given)
    made.write(tmp_path)
    again = StudyRecords.read(tmp_path)
    assert [again[name].to_pylist() for name in ("participants", "trials")] == [
        made[name].sort_by([(key, "ascending") for key in keys]).to_pylist()
        for name, keys in (("participants", ("participant",)), ("trials", ("participant", "position")))
    ]
    found = report(again)
    assert found.text()
    assert all(one.first != one.second for one in found.effects)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "no trial that counts"),
        (changed("trials", practice=True), "no trial that counts"),
        (changed("trials", query_id=None), "no query_id"),
        (changed("trials", system=None), "no system"),
        (changed("answers", value=float("nan")), "value is nan"),
        (changed("preferences", right="a", left="a"), "two systems"),
        (changed("preferences", preferred="c"), "'c' was not shown"),
        (tables() | {"participants": []}, "participants has no row of participant"),
        (tables() | {"participants": tables()["participants"] * 2}, "two rows"),
        (tables() | {"trials": tables()["trials"][1:]}, "no trial at position 1"),
        (tables() | {"people": []}, "no table 'people'"),
    ],
)
def test_what_is_no_study_is_refused(given: Tables, said: str) -> None:
    with pytest.raises(InputError, match=said):
        report(StudyRecords.of(given))


def test_variants_of_the_interface_are_compared() -> None:
    given = tables()
    given["trials"] = [row | {"variant": "vw"[row["system"] == "b"], "system": "a"} for row in given["trials"]]
    (one,) = report(StudyRecords.of(given | {"preferences": []})).decisive
    assert (one.first, one.second, one.people) == ("v", "w", 6)
