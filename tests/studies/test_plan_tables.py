"""A study's plan: each number of its tables, which sentence it says, and how many people it takes at most."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from scipy import stats

from judged.errors import InputError
from judged.studies import planning
from judged.studies.design import Design, Group
from judged.studies.planning import Contrast, Spreads, StudyPlan, plan_study
from studies.study_designs import make_design

SPREADS = Spreads(people_by_system=0.3, topics_by_system=0.3, trials=1.0)


def planned(design: Design, difference: float = 0.5, spreads: Spreads = SPREADS, **more: Any) -> StudyPlan:
    return plan_study(design, difference, spreads, **more)


def test_tables_of_a_plan_for_three_systems_and_seven_topics() -> None:
    """Topics: halves of 7 to 4 times 7 in multiples of 3, and 7; people: halves of 5 to 20, but 6 at least."""
    plan = planned(make_design(3, 7, groups=(Group("", 5),)), 0.9)
    sentences, table, chart = plan.blocks()
    topics = [3, 6, 7, 12, 15, 21, 27]
    contrast = Contrast(3)
    needed = [contrast.people_needed(0.9, SPREADS, n, step=6) for n in topics]
    assert needed[0] is None  # three topics are never enough
    assert all(people is not None and people % 6 == 0 for people in needed[2:])
    assert (table.name, table.labels, len(table.columns)) == ("people_needed", 1, 4)
    assert table.title == "Participants for a power of 80%"
    assert table.note == (
        "Numbers of participants are multiples of 6. A dash means that even 10,000 participants are too few."
    )
    rows = table.records()
    assert [row["n"] for row in rows] == topics
    assert [row["people"] for row in rows] == needed
    assert [row["trials"] for row in rows] == [people and people * n for people, n in zip(needed, topics, strict=True)]
    assert [row["max_power"] for row in rows] == [Contrast.max_power(0.9, SPREADS, n) for n in topics]
    assert rows[0]["max_power"] == 0.0
    assert [column.heading for column in table.columns] == ["topics", "participants", "trials", "maximum power"]
    assert table.columns[3].cells()[0] == "0%"
    assert table.columns[3].cells()[-1] == "> 99%"
    powers = chart.table.records()
    people = [5, 6, 8, 10, 15, 20]
    assert [(row["topics"], row["people"]) for row in powers] == [
        (f"{n} topics", count) for n in topics for count in people
    ]
    assert [row["power"] for row in powers] == [
        contrast.power(0.9, SPREADS, count, n) for n in topics for count in people
    ]
    assert (chart.kind, chart.x, chart.y, chart.color, chart.percent, chart.spread) == (
        "lines", "people", "power", "topics", "y", "amount",
    )  # fmt: skip
    assert "With 5 participants, the power is 0% for 3 topics and 0% for 27 topics." in chart.sentence
    assert sentences.texts == plan.sentences


@pytest.mark.parametrize(
    ("design", "topics", "people"),
    [
        # two groups: balanced with every 2 x 6; fewer are not shown, but those of the design
        (make_design(3, 6, groups=(Group("a", 2), Group("b", 3))), [3, 6, 9, 12, 18, 24], [5, 12, 15, 20]),
        # three variants and two topics: topics in threes, and 2; people 6 at least
        (make_design(1, 2, interfaces=3, variants="between", groups=(Group("", 9),)), [2, 3, 6, 9],
         [6, 9, 14, 18, 27, 36]),
    ],
)  # fmt: skip
def test_topics_and_people_of_the_tables(design: Design, topics: list[int], people: list[int]) -> None:
    _, table, chart = planned(design).blocks()
    assert table.column("n").values == topics
    assert sorted(set(chart.table.column("people").values)) == people
    assert len(chart.table) == len(topics) * len(people)


def test_facts_and_defaults_of_a_plan() -> None:
    plan = planned(make_design(2, 6, groups=(Group("a", 7), Group("b", 5))), -0.5, outcome="minutes")
    assert plan.facts() == {
        "difference": 0.5, "alpha": 0.05, "power": 0.8, "outcome": "minutes",
        "sd": {"people": 0.0, "people_by_system": 0.3, "topics_by_system": 0.3, "trials": 1.0},
        "participants": 12, "n": 6, "topics_needed": 8,
    }  # fmt: skip
    assert plan.step == 2 * 2
    assert plan.contrast == Contrast(2, between=False) == Contrast()
    assert plan.title == "Sample size for a difference of 0.5"
    assert vars(Spreads()) == dict.fromkeys(("people", "people_by_system", "topics_by_system", "trials"), 0.0)


@pytest.mark.parametrize(
    ("design", "contrast"),
    [
        (make_design(2, 4), Contrast(2)),
        (make_design(1, 4, interfaces=3), Contrast(3)),  # everybody has each variant
        (make_design(1, 4, interfaces=3, variants="between"), Contrast(3, between=True)),
        (make_design(2, 4, interfaces=3, variants="between"), Contrast(2)),  # systems are compared within people
        (make_design(2, 4, interfaces=2), Contrast(4)),
    ],
)
def test_what_a_design_compares(design: Design, contrast: Contrast) -> None:
    assert planned(design).contrast == contrast


def test_sentences_where_people_are_enough_and_where_they_are_not() -> None:
    design = make_design(2, 12, groups=(Group("", 24),))
    plan = planned(design, 0.8)
    power_sentence, takes, shares = plan.sentences
    power, most = Contrast(2).power(0.8, SPREADS, 24, 12), Contrast.max_power(0.8, SPREADS, 12)
    assert power_sentence == (
        f"With 24 participants and 12 topics, the power to detect a true difference of 0.8 is {power:.0%}"
        " (alpha = 0.05, for conclusions about other participants and topics)."
    )
    assert most > 0.99
    needed = Contrast(2).people_needed(0.8, SPREADS, 12, step=2)
    assert takes == f"With these topics, a power of 80% requires {needed} participants."
    # 2 x 0.09 / 24, 2 x 0.09 / 12, 4 / 288: of 0.0363889 in all
    assert "participants (21%), topics (41%), and single trials (38%)." in shares

    fewest, most_topics = (Contrast(2).power(0.8, SPREADS, 24, topics) for topics in (6, 48))
    assert fewest < 0.9 < most_topics
    end = f"the power is {fewest:.0%} for 6 topics and > 99% for 48 topics."
    assert plan.blocks()[2].sentence == f"With 24 participants, {end}"

    limited = planned(design, 0.5, power=0.6, alpha=0.1)
    most = Contrast.max_power(0.5, SPREADS, 12, 0.1)
    assert 0.9 < most < 0.99
    needed = Contrast(2).people_needed(0.5, SPREADS, 12, step=2, alpha=0.1, power=0.6)
    assert limited.sentences[1] == (
        f"With these topics, a power of 60% requires {needed} participants. The maximum power for any number of"
        f" participants is {most:.0%}."
    )
    assert "(alpha = 0.1, " in limited.sentences[0]
    assert f"difference of 0.5 is {Contrast(2).power(0.5, SPREADS, 24, 12, 0.1):.0%}" in limited.sentences[0]

    few = planned(make_design(2, 6, groups=(Group("", 24),)), 0.5)
    most = Contrast.max_power(0.5, SPREADS, 6)
    assert few.sentences[1] == (
        f"With 6 topics, the power is at most {most:.0%} for any number of participants. A power of 80% requires at"
        " least 8 topics."
    )
    certain = planned(design, 0.5, Spreads())
    assert len(certain.sentences) == 2  # there is no variance that could be divided
    assert certain.sentences[1] == "With these topics, a power of 80% requires 6 participants."


@pytest.mark.parametrize(
    ("spread", "difference", "needed"),
    [(0.0, 0.5, 6), (0.01, 0.5, 6), (0.3, 0.5, 8)],
)
def test_topics_needed_are_six_or_more(spread: float, difference: float, needed: int) -> None:
    """A t-test over topics, whose deviation is 0.3 x sqrt(2), finds 0.5 with 80% from 8 topics on."""
    spreads = Spreads(topics_by_system=spread, trials=1.0)
    assert planned(make_design(2, 6), difference, spreads).topics_needed == needed


@pytest.mark.parametrize(("share", "text"), [(0.98, "98%"), (0.99, "99%"), (0.9901, "> 99%"), (1.0, "> 99%")])
def test_powers_above_99_percent_are_not_told_apart(share: float, text: str) -> None:
    plan = planned(make_design(2, 6))
    column = plan.blocks()[1].column("max_power")
    assert replace(column, values=[share]).cells() == [text]


def test_people_needed_are_searched_up_to_a_limit_and_from_two_for_each_condition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sure = Spreads(trials=0.01)
    assert Contrast(3).people_needed(9.0, sure, 6) == 6
    assert Contrast(4).people_needed(9.0, sure, 8) == 8
    assert Contrast(3).people_needed(9.0, sure, 6, step=4) == 8
    assert Contrast(3).people_needed(9.0, sure, 6, step=6) == 6
    assert Contrast(2).people_needed(9.0, sure, 6, step=7) == 7
    needed = Contrast(2).people_needed(0.5, SPREADS, 12)
    assert needed is not None
    powers = [Contrast(2).power(0.5, SPREADS, people, 12) for people in (needed - 1, needed)]
    assert powers[0] < 0.8 <= powers[1]
    monkeypatch.setattr(planning, "_MAX_PEOPLE", needed)
    assert Contrast(2).people_needed(0.5, SPREADS, 12) == needed
    assert Contrast(2).people_needed(0.5, SPREADS, 12, power=powers[1]) == needed
    monkeypatch.setattr(planning, "_MAX_PEOPLE", needed - 1)
    assert Contrast(2).people_needed(0.5, SPREADS, 12) is None


def test_what_more_people_leave_to_topics() -> None:
    spreads = Spreads(topics_by_system=0.1)
    assert Contrast.max_power(0.5, spreads, 5) == 0.0
    # 0.2 / (0.1 x sqrt(2)) x sqrt(6): a noncentrality of 3.46 with 5 degrees of freedom; the other tail has 1e-8
    for alpha in (0.05, 0.01):
        expected = stats.nct.sf(stats.t.ppf(1 - alpha / 2, 5), 5, 3.464102)
        assert Contrast.max_power(0.2, spreads, 6, alpha) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("difference", [0.0, math.nan, math.inf, -math.inf])
def test_a_difference_is_a_number_other_than_0(difference: float) -> None:
    with pytest.raises(InputError, match="difference"):
        planned(make_design(2, 6), difference)


@pytest.mark.parametrize("name", ["people", "people_by_system", "topics_by_system", "trials"])
def test_spreads_are_finite(name: str) -> None:
    for sd in (math.inf, math.nan, -0.1):
        with pytest.raises(InputError, match="standard deviation"):
            Spreads(**{name: sd})
    assert getattr(Spreads(**{name: 0.5}), name) == 0.5


@pytest.mark.parametrize("between", [False, True])
def test_each_part_of_the_variance_by_hand(between: bool) -> None:
    parts = Contrast(2, between=between).variances(Spreads(0.5, 0.4, 0.3, 0.2), 10, 8)
    people = 2 * 2 * (0.25 + 0.16) / 10 if between else 2 * 0.16 / 10
    assert parts == pytest.approx((people, 2 * 0.09 / 8, 2 * 2 * 0.04 / 80))
    assert Contrast(3, between=between).variances(Spreads(0.5, 0.4, 0.3, 0.2), 10, 8)[2] == pytest.approx(6 * 0.04 / 80)
