"""Tables and warnings of a study's report: each number from the rows that it was made of."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

from judged.studies.crossed import TrialArrays
from judged.studies.design import first_design, parse_design
from judged.studies.effects import SystemEffect
from judged.studies.planning import Contrast, Spreads, plan_study
from judged.studies.preference import SideBias
from judged.studies.records import StudyRecords
from judged.studies.study_report import StudyReport, report
from studies_made import crossed, records, sample_values


@cache
def small() -> StudyReport:
    return report(records(people=6, topics=4))


def make_report(**changed: Any) -> StudyReport:
    return replace(small(), **changed)


def last_texts(answer: StudyReport) -> tuple[str, ...]:
    return answer.blocks()[-1].texts  # type: ignore[attr-defined]


def effect(**changed: Any) -> SystemEffect:
    base = SystemEffect(
        outcome="o", better="more", first="a", second="b", means=(1.0, 2.0), counts=(30, 29), difference=1.0,
        design="within", people=9, n=8, people_ci=(0.4, 1.6), ci=(0.2, 1.8), p=0.01, adjusted=0.02, people_p=0.03,
        topics_p=0.04, mixed=1.1, mixed_error=0.5,
    )  # fmt: skip
    return base._replace(**changed)


def sentence_of(result: str, change: str = "+1.00", p: str = "0.02", topics: int = 8) -> str:
    population, units = (
        ("participants and topics", f"9 participants, {topics} topics")
        if topics > 1
        else ("participants", "9 participants")
    )
    numbers = f"{change}, 95% CI [+0.20, +1.80], p = {p}, n = {units}."
    return f"{result}, generalized to other {population}: b minus a is {numbers}"


@pytest.mark.parametrize(
    ("row_effect", "sentence"),
    [
        (effect(), sentence_of("b is significantly better than a in o")),
        (effect(n=1), sentence_of("b is significantly better than a in o", topics=1)),
        (effect(n=2, difference=-1.0), sentence_of("b is significantly worse than a in o", change="-1.00", topics=2)),
        (effect(better=""), sentence_of("b differs significantly from a in o")),
        (effect(adjusted=0.2), sentence_of("No significant difference in o", p="0.2")),
        (effect(reason="Few."), sentence_of("o") + " No verdict. Few."),
        (effect(ci=(math.nan, math.nan), reason="Few."),
         "o: the mean is 1.00 for a (30 trials) and 2.00 for b (29 trials); the difference is +1.00. Not tested. Few."),
        (effect(ci=(math.nan, math.nan), difference=math.nan, second="", counts=(1, 0), reason="One."),
         "o: the mean is 1.00 for a (1 trial). Not tested. One."),
    ],
)  # fmt: skip
def test_sentences_of_an_effect(row_effect: SystemEffect, sentence: str) -> None:
    answer = make_report(outcome="o", effects=(effect(outcome="other"), row_effect), preferences=())
    assert answer.sentences == (sentence,)
    rows = answer.table("effects").records()
    assert [row["outcome"] for row in rows] == ["o", "other"]
    row = rows[0]
    assert (row["first_mean"], row["second_mean"]) == row_effect.means
    assert (row["first_trials"], row["second_trials"]) == row_effect.counts
    names = ("p", "people", "n", "people_p", "topics_p", "mixed", "mixed_error", "design")
    numbers = {name: row[name] for name in names}
    assert numbers == {name: getattr(row_effect, name) for name in numbers}
    assert row["people_difference_ci"] == pytest.approx(row_effect.people_ci)
    assert row["adjusted_p"] == row_effect.adjusted


@pytest.mark.parametrize(
    ("changed", "warnings"),
    [
        ({"effects": (effect(),)}, []),
        ({"effects": (effect(adjusted=0.2),)}, ["The lack of a significant difference"]),
        ({"effects": (effect(reason="Few."),)}, ["A difference without a verdict"]),
        ({"effects": (effect(),), "n": 5}, ["With 5 topics"]),
        ({"effects": (effect(),), "people": 5}, ["With 5 participants"]),
        ({"effects": (effect(), effect(second="c"))}, ["Each interval is for one pair"]),
        ({"effects": (effect(design="between"),)}, ["Each participant used one system"]),
        ({"effects": (effect(outcome="x", adjusted=0.2, design="between", reason="r"), effect())}, []),
    ],
)
def test_what_may_not_be_concluded(changed: dict[str, Any], warnings: list[str]) -> None:
    texts = last_texts(make_report(**{"outcome": "o", "people": 6, "n": 6, **changed}))
    assert texts[0] == "Limits of the conclusions:"
    assert (
        texts[-1] == "All outcomes except o are exploratory. With many outcomes, some differ significantly by chance."
    )
    assert len(texts) == 2 + len(warnings)
    assert all(text.startswith(start) for text, start in zip(texts[1:-1], warnings, strict=True))


def test_counts_of_a_study() -> None:
    answer = report(records(people=9, topics=6))
    assert (answer.people, answer.n, answer.trials, answer.title) == (9, 6, 54, "Study")
    facts = dict(answer.facts())
    assert facts == {"name": "Study", "outcome": "satisfaction", "people": 9, "n": 6, "trials": 54, "level": 0.95}
    (row,) = answer.table("preferences").records()
    assert (row["first"], row["second"], row["people"], row["wins"], row["losses"]) == ("a", "b", 9, 6, 0)
    assert row["value"] == pytest.approx((6 + 3 / 2) / 9)
    assert any(
        text.startswith("Side by side, b was preferred 6 times and a 0 times in 9 comparisons by 9 participants.")
        for text in answer.sentences
    )
    learned = [(row["outcome"] == "satisfaction", row["system"]) for row in answer.table("learning").records()]
    assert set(learned) == {(True, ""), (True, "a"), (True, "b"), (False, ""), (False, "a"), (False, "b")}
    for row, behavior in zip(answer.table("search_behavior").records(), answer.behaviors, strict=True):
        assert (row["system"], row["strategies"]) == (behavior.system, behavior.strategies)
        assert (row["effective_strategies"], row["strategies_per_person"]) == (
            behavior.effective_strategies,
            behavior.strategies_per_person,
        )
        assert row["short_query"] == behavior.shares["short query"]


def test_notes_of_trials_and_sides() -> None:
    people = [{"participant": f"p{i}"} for i in range(6)]
    trials = [
        {"participant": f"p{i}", "position": 1, "query_id": "q", "system": "ab"[i % 2], "started": 0,
         "ended": None if i == 2 else 60_000 * (1 + i)}
        for i in range(6)
    ]  # fmt: skip
    sides = [{"participant": f"p{i}", "query_id": "q", "left": "a", "right": "b", "preferred": "a"} for i in range(6)]
    answer = report(
        StudyRecords.of({"participants": people, "trials": trials, "preferences": sides}), outcome="minutes"
    )
    assert answer.side_bias == SideBias(6, 6, 1.0, 2 / 64, preferred=True)
    texts = {note.rule: note.text for note in answer.notes}
    assert texts["unfinished-trials"] == "1 trial of 6 not finished; their answers are included"
    assert texts["side-preferred"] == (
        "position bias: participants preferred the left list in 100% of their choices (p = 0.031)"
    )
    tables = {"participants": people, "trials": trials[3:], "preferences": sides[:5]}
    few = report(StudyRecords.of(tables), outcome="minutes")
    assert "side-preferred" not in {note.rule for note in few.notes}
    assert "unfinished-trials" not in {note.rule for note in few.notes}


def test_measures_beside_what_people_say() -> None:
    base = records(people=9, topics=6)
    trials = [(row["participant"], row["position"]) for row in base["trials"].to_pylist()]
    measured = {trial: float(i % 5) for i, trial in enumerate(trials)}
    answer = report(base, measured=measured)
    rows = {row["outcome"]: row for row in answer.table("agreements").records()}
    assert rows["minutes"]["pooled"] == pytest.approx(1.0)  # the minutes are 1 + at % 5
    assert rows["minutes"]["positive"] == 1.0
    assert rows["satisfaction"]["trials"] == 54
    shares = next(agreement for agreement in answer.agreements if agreement.outcome == "satisfaction").persons
    assert rows["satisfaction"]["positive"] == sum(value > 0 for value in shares) / 9
    assert not report(base, measured=dict(list(measured.items())[:2])).agreements
    assert report(base, measured=dict(list(measured.items())[:3])).agreements


def simulated(contrast: Contrast, spreads: Spreads, people: int, topics: int, difference: float) -> float:
    """Return the share of 40,000 draws that find the difference, from the distributions that the docstring states."""
    rng, times = np.random.default_rng(1), 40_000
    n = contrast.conditions
    of_people, of_topics, of_trials = contrast.variances(spreads, people, topics)
    df = people - (n if contrast.between else 1), topics - 1
    over = [(part + of_trials) * rng.chisquare(free, times) / free
            for part, free in zip((of_people, of_topics), df, strict=True)]  # fmt: skip
    left = people * topics - (people if contrast.between else n * people) - n * (topics - 1)
    squares = over[0] ** 2 / df[0] + over[1] ** 2 / df[1] + (of_trials**2 / left if left > 0 else 0.0)
    variance = np.maximum(over[0] + over[1] - (of_trials if left > 0 else 0), np.maximum(*over))
    estimate = rng.normal(difference, math.sqrt(of_people + of_topics + of_trials), times)
    p = 2 * stats.t.sf(np.abs(estimate) / np.sqrt(variance), variance**2 / squares)
    return float((p < 0.05).mean())


@pytest.mark.parametrize(
    ("contrast", "people", "topics"),
    [
        (Contrast(2), 8, 8),  # 64 - 16 - 14: 34 left
        (Contrast(3), 6, 6),  # 36 - 18 - 15: 3 left
        (Contrast(4), 8, 6),  # 48 - 32 - 20: none left
        (Contrast(2, between=True), 12, 6),
        (Contrast(3, between=True), 18, 6),
    ],
)
def test_power_is_that_of_draws(contrast: Contrast, people: int, topics: int) -> None:
    spreads = Spreads(0.3, 0.2, 0.2, 0.8)
    power = contrast.power(0.9, spreads, people, topics)
    assert power == pytest.approx(simulated(contrast, spreads, people, topics, 0.9), abs=0.012)
    assert 0.03 < power < 0.95


@pytest.mark.parametrize(
    ("contrast", "people", "topics", "enough"),
    [
        (Contrast(2), 6, 6, True), (Contrast(2), 5, 6, False), (Contrast(2), 6, 5, False), (Contrast(7), 7, 6, False),
        (Contrast(2, between=True), 12, 6, True), (Contrast(2, between=True), 11, 6, False),
        (Contrast(7, between=True), 42, 6, True),
    ],
)  # fmt: skip
def test_power_needs_six_people_and_topics(contrast: Contrast, people: int, topics: int, enough: bool) -> None:
    assert (contrast.power(9.0, Spreads(trials=0.1), people, topics) > 0) == enough
    assert contrast.power(9.0, Spreads(), people, topics) == float(enough)


def test_tables_name_their_rows_by_outcome_and_systems() -> None:
    labels = {block.name: block.labels for block in small().blocks() if hasattr(block, "labels")}
    assert {name: labels[name] for name in ("effects", "learning", "search_behavior")} == {
        "effects": 3, "learning": 3, "search_behavior": 2,
    }  # fmt: skip
    folded = {block.name for block in small().blocks() if getattr(block, "folded", False)}
    assert folded >= {"learning", "search_behavior"}
    assert "effects" not in folded


def test_intervals_are_of_95_percent_if_no_level_is_given() -> None:
    where = crossed(8, 6)
    values = sample_values(np.random.default_rng(1), where)
    trials = TrialArrays(values, *(where[name] for name in ("system", "person", "topic", "position")))
    default, usual, narrow = (trials.learning(*level) for level in ((), (0.95,), (0.9,)))
    assert default is not None
    assert usual is not None
    assert narrow is not None
    assert default.over_people.ci == usual.over_people.ci != narrow.over_people.ci
    assert trials.differences()[0, 1].over_both.ci == trials.differences(0.95)[0, 1].over_both.ci
    for level in (0.9, 0.95):
        spread = trials.differences(level)[0, 1].over_people
        half = stats.t.ppf((1 + level) / 2, spread.df) * spread.error
        estimate = trials.differences(level)[0, 1].estimate
        assert spread.ci == pytest.approx((estimate - half, estimate + half))
        assert spread.p == pytest.approx(2 * stats.t.sf(abs(estimate) / spread.error, spread.df))


def test_a_plan_says_what_it_takes() -> None:
    spreads = Spreads(0.0, 0.3, 0.3, 1.0)
    plan = plan_study(parse_design(first_design()), 0.5, spreads)
    shares = Contrast(2).variances(spreads, 24, 6)
    assert shares == pytest.approx((2 * 0.09 / 24, 2 * 0.09 / 6, 4 / 144))
    first, *_, last = plan.sentences
    power = Contrast(2).power(0.5, spreads, 24, 6)
    assert f"difference of 0.5 is {100 * power:.0f}%" in first
    people, topics, trials = (f"{100 * share / sum(shares):.0f}%" for share in shares)
    assert f"participants ({people}), topics ({topics}), and single trials ({trials})." in last
    sure = plan_study(parse_design(first_design()), 50.0, spreads)
    assert "is > 99%" in sure.sentences[0]
    assert "The maximum" not in sure.sentences[1]
    rows = plan.table("people_needed").records()
    assert [row["n"] for row in rows] == [4, 6, 8, 12, 18, 24]
    for row in rows:
        assert row["max_power"] == pytest.approx(Contrast.max_power(0.5, spreads, row["n"]))
        if row["people"] is not None:
            assert row["people"] % 4 == 0
            assert row["trials"] == row["people"] * row["n"]
            assert Contrast(2).power(0.5, spreads, row["people"], row["n"]) >= 0.8
