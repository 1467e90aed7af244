"""All tables of a study's report from made rows, and what a report takes from the design, its runs, and judgments."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from judged import Qrels
from judged.studies.assignment import assignments
from judged.studies.design import Design, Group, StudySystem
from judged.studies.effects import LearningEffect, SystemEffect, VarianceComponents, variance_components
from judged.studies.outcomes import MeasureAgreement, find_outcome, outcomes
from judged.studies.preference import FEATURES, PairPreference, SearchBehavior, Strength, pair_preferences
from judged.studies.questionnaires import Questionnaire
from judged.studies.records import StudyRecords
from judged.studies.study_report import StudyReport, effect_verdict, report
from studies.study_designs import make_design as designed
from studies_made import records

if TYPE_CHECKING:
    from pathlib import Path

    from judged.results import Table

NAN = math.nan


def effect(**changed: Any) -> SystemEffect:
    base = SystemEffect(
        outcome="o", better="more", first="a", second="b", means=(1.0, 2.004), counts=(30, 29), difference=1.004,
        design="within", people=9, n=8, people_ci=(0.4, 1.6), ci=(0.2, 1.8), p=0.01, adjusted=0.02, people_p=0.03,
        topics_p=0.04, mixed=1.1, mixed_error=0.5,
    )  # fmt: skip
    return base._replace(**changed)


def make_report(**fields: Any) -> StudyReport:
    base: dict[str, Any] = {
        "name": "A study", "outcome": "o", "people": 9, "n": 8, "trials": 59, "effects": (), "learning": (),
        "groups": (), "components": (), "behaviors": (), "preferences": (), "strengths": (), "side_bias": None,
        "agreements": (), "offline": (), "level": 0.95,
    }  # fmt: skip
    return StudyReport(**{**base, **fields})


def judged(first: str, second: str, better: str, *, significant: bool = True) -> Any:
    result = SimpleNamespace(difference=0.1, interval=(0.05, 0.15))
    return SimpleNamespace(measure="m", first=first, second=second, better=better, significant=significant,
                           adjusted=0.03, result=result)  # fmt: skip


def visible_headings(table: Table) -> list[str]:
    return [column.heading for column in table.columns if not column.only]


def hidden(table: Table) -> list[str]:
    return [column.name for column in table.columns if column.only == "data"]


def cells(table: Table, row: int) -> list[str]:
    """Write a row as people see it, with intervals."""
    return [str(column.cells()[row]) for column in table.shown]


def test_a_report_without_anything_has_effects_and_warnings() -> None:
    answer = make_report()
    assert [type(block).__name__ for block in answer.blocks()] == ["Sentences", "Table", "Sentences"]
    assert (answer.title, answer.sentences, answer.primary_effects) == ("A study", (), ())
    assert answer.table("effects").records() == []


def test_the_table_of_effects() -> None:
    record, other = effect(), effect(outcome="x", second="c", adjusted=0.2)
    table = make_report(effects=(other, record)).table("effects")
    assert (table.title, table.labels, table.folded) == ("Differences between systems", 3, False)
    assert table.note.startswith(
        "Differences are second system minus first system. The 95% CI in the column 'difference'"
    )
    assert visible_headings(table) == [
        "outcome", "first", "second", "mean of first", "mean of second", "difference", "p",
        "difference for these topics", "verdict",
    ]  # fmt: skip
    assert hidden(table) == ["p", "reason", "first_trials", "second_trials", "design", "people", "n", "people_p",
                             "topics_p", "mixed", "mixed_error"]  # fmt: skip
    assert cells(table, 0) == [
        "o", "a", "b", "1.00", "2.00", "+1.00 [+0.20, +1.80]", "0.0200", "+1.00 [+0.40, +1.60]", "better",
    ]  # fmt: skip
    assert [row["outcome"] for row in table.records()] == ["o", "x"]  # what decides is first
    assert table.records()[1]["verdict"] == "undecided"
    assert table.records()[0]["reason"] == ""
    few = make_report(effects=(record, effect(reason="Few."))).table("effects")
    assert visible_headings(few)[9:] == ["reason"]
    assert [row["reason"] for row in few.records()] == ["", "Few."]
    assert "90% CI" in make_report(effects=(record,), level=0.9).table("effects").note


@pytest.mark.parametrize(
    ("adjusted", "level", "verdict"), [(0.1, 0.9, "better"), (0.1001, 0.9, "undecided"), (0.01, 0.99, "better")]
)
def test_a_p_value_of_just_alpha_is_a_verdict(adjusted: float, level: float, verdict: str) -> None:
    assert effect_verdict(effect(adjusted=adjusted), level) == verdict
    assert (
        make_report(effects=(effect(adjusted=adjusted),), level=level).table("effects").records()[0]["verdict"]
        == verdict
    )
    assert (
        "No significant difference" in make_report(effects=(effect(adjusted=adjusted),), level=level).sentences[0]
    ) == (verdict != "better")


def test_tables_of_preferences_and_strengths() -> None:
    rows = (PairPreference("a", "b", 9, 18, 12, 4, 0.7, 0.04), PairPreference("a", "c", 2, 3, 2, 1, 0.6, NAN, "Few."))
    answer = make_report(preferences=rows, strengths=(Strength("a", -0.25, (-0.5, 0.05)), Strength("b", 0.25, None)))
    table = answer.table("preferences")
    assert visible_headings(table) == [
        "first",
        "second",
        "participants",
        "comparisons",
        "wins",
        "losses",
        "share preferred",
        "p",
    ]
    assert (table.title, cells(table, 0)) == (
        "Side-by-side preferences",
        ["a", "b", "9", "18", "12", "4", "70%", "0.0400"],
    )
    assert cells(table, 1)[-2:] == ["60%", "-"]
    assert answer.sentences == (
        "Side by side, b was preferred 12 times and a 4 times in 18 comparisons by 9 participants. p = 0.04.",
        "Side by side, c was preferred 2 times and a 1 times in 3 comparisons by 2 participants. Not tested. Few.",
    )
    strengths = answer.table("strengths")
    assert strengths.records() == [
        {"system": "a", "strength": -0.25, "strength_ci": [-0.5, 0.05]},
        {"system": "b", "strength": 0.25, "strength_ci": None},
    ]
    assert (strengths.title, strengths.labels, strengths.folded, strengths.note != "") == (
        "Strengths of systems",
        1,
        False,
        True,
    )
    alone = make_report(preferences=(rows[0]._replace(people=1),))
    assert "by 1 participant." in alone.sentences[0]
    assert [block.name for block in alone.blocks() if hasattr(block, "columns")] == ["effects", "preferences"]


def test_the_table_of_judgments_beside_people() -> None:
    """People: b is better than a, worse than c; a and c are undecided; d is not compared by them."""
    effects = (effect(), effect(first="b", second="c", difference=-1.0), effect(second="c", adjusted=0.5),
               effect(outcome="x", first="a", second="d"))  # fmt: skip
    offline = (judged("b", "a", "b"), judged("c", "b", "c"), judged("a", "c", "a"), judged("a", "d", "d"),
               judged("a", "b", "b", significant=False))  # fmt: skip
    answer = make_report(effects=effects, offline=offline)
    table = answer.table("offline")
    assert table.records() == [
        {"measure": "m", "first": first, "second": second, "difference": 0.1, "difference_ci": [0.05, 0.15],
         "p": 0.03, "by_judgments": by, "by_people": people, "agree": agree}
        for first, second, by, people, agree in (
            ("b", "a", "b", "b", "yes"), ("c", "b", "c", "b", "no"), ("a", "c", "a", "", "undecided"),
            ("a", "b", "", "b", "undecided"),
        )
    ]  # fmt: skip
    assert visible_headings(table) == [
        "measure", "first", "second", "difference", "p", "better by judgments", "better by o", "agree",
    ]  # fmt: skip
    assert table.title == "Offline evaluation compared with participants"
    # where neither is better, people do not say which is
    neither = make_report(effects=(effect(better=""),), offline=offline[:1]).table("offline").records()
    assert (neither[0]["by_people"], neither[0]["agree"]) == ("", "undecided")


def test_the_table_of_measures_beside_people() -> None:
    row = MeasureAgreement("nDCG@10", "o", 24, 4, 0.5, (0.1, 0.7), 0.25, (-0.1, 0.5), 0.125, (-0.5, 0.0, 0.3, 0.9))
    table = make_report(agreements=(row,)).table("agreements")
    assert table.records() == [
        {"measure": "nDCG@10", "outcome": "o", "trials": 24, "people": 4, "pooled": 0.5, "pooled_ci": [0.1, 0.7],
         "within": 0.25, "within_ci": [-0.1, 0.5], "tau": 0.125, "reason": "", "positive": 0.5}
    ]  # fmt: skip
    assert hidden(table) == ["reason"]
    assert visible_headings(table)[4:] == [
        "pooled", "within participants", "tau within participants", "participants with r > 0",
    ]  # fmt: skip
    assert cells(table, 0)[4:] == ["0.500 [0.100, 0.700]", "0.250 [-0.100, 0.500]", "0.125", "50%"]
    few = row._replace(ci=None, within_ci=None, persons=(), reason="Few.")
    table = make_report(agreements=(row, few)).table("agreements")
    assert "reason" in visible_headings(table)
    assert table.records()[1]["positive"] is None
    assert table.title == "Correlation of the measure with outcomes"


def test_tables_of_practice_searching_and_parts() -> None:
    rows = [
        LearningEffect(outcome, system, 0.25, (0.1, 0.4), 6, 1.0, 2.5, p=0.03)
        for outcome in "ox"
        for system in ("", "a")
    ]
    shares = {name: i / 10 for i, name in enumerate(FEATURES)}
    answer = make_report(
        learning=tuple(rows), components=(VarianceComponents("o", 0.5, 0.25, NAN, 0.125, 1.0),),
        behaviors=(SearchBehavior("a", "", "novice", 3, 12, 4, 2.5, 1.5, shares),),
    )  # fmt: skip
    table = answer.table("learning")
    rows = [(row["outcome"], row["system"]) for row in table.records()]
    assert rows == [("o", ""), ("o", "a"), ("x", ""), ("x", "a")]
    assert cells(table, 1) == ["o", "a", "+0.25 [+0.10, +0.40]", "0.0300", "1.00", "2.50"]
    assert visible_headings(table) == ["outcome", "system", "change per task", "p", "first task", "last task"]
    searching = answer.table("search_behavior")
    assert searching.records() == [
        {
            "system": "a",
            "variant": "",
            "group": "novice",
            "people": 3,
            "trials": 12,
            "strategies": 4,
            "effective_strategies": 2.5,
            "strategies_per_person": 1.5,
        }
        | {name.replace(" ", "_"): share for name, share in shares.items()}
    ]
    assert visible_headings(searching)[5:] == ["effective strategies", "strategies per participant", *FEATURES]
    assert cells(searching, 0)[5:9] == ["2.50", "1.50", "0%", "10%"]
    spreads = answer.table("components")
    assert spreads.records() == [
        {"outcome": "o", "by_person": 0.5, "by_topic": 0.25, "people_by_system": None, "topics_by_system": 0.125,
         "trials": 1.0}
    ]  # fmt: skip
    assert visible_headings(spreads) == [
        "outcome",
        "participants",
        "topics",
        "participants x systems",
        "topics x systems",
        "trials",
    ]
    assert [(table.labels, table.folded) for table in (table, searching, spreads)] == [(2, True), (2, True), (1, True)]
    names = [block.name for block in answer.blocks() if hasattr(block, "columns")]
    assert names == ["effects", "learning", "search_behavior", "components"]


def test_all_tables_stand_in_one_order() -> None:
    answer = make_report(
        effects=(effect(),), preferences=(PairPreference("a", "b", 9, 18, 12, 4, 0.7, 0.04),),
        strengths=(Strength("a", 0.0, None),), offline=(judged("a", "b", "b"),),
        agreements=(MeasureAgreement("m", "o", 24, 4, 0.5, None, 0.2, None, 0.1, ()),),
        learning=(LearningEffect("o", "", 0.2, (0.1, 0.4), 6, 1.0, 2.5),),
        components=(VarianceComponents("o", 0.5, 0.2, NAN, 0.1, 1.0),),
        behaviors=(SearchBehavior("a", "", "", 3, 12, 4, 2.5, 1.5, dict.fromkeys(FEATURES, 0.0)),),
    )  # fmt: skip
    assert [block.name for block in answer.blocks() if hasattr(block, "columns")] == [
        "effects", "preferences", "strengths", "offline", "agreements", "learning", "search_behavior", "components",
    ]  # fmt: skip
    assert answer.facts() == {"name": "A study", "outcome": "o", "people": 9, "n": 8, "trials": 59, "level": 0.95}


def study(folder: Path, **more: Any) -> tuple[StudyRecords, Design]:
    """Let six people do four topics and one for practice; a relevant document is first in some lists."""
    first = {"s0": "gbgb", "s1": "bggg"}  # the first document of each topic: g is relevant
    for name, docs in first.items():
        other = {"g": "b", "b": "g"}
        lines = [f"t{topic} Q0 {doc} {rank} {2 - rank} {name}" for topic, i in enumerate(f"{docs}g")
                 for rank, doc in enumerate((i, other[i]))]  # fmt: skip
        (folder / f"{name}.run").write_text("\n".join(lines) + "\n")
    (folder / "qrels.txt").write_text("".join(f"t{topic} 0 g 1\n" for topic in range(5)))
    fields: dict[str, Any] = {
        "practice": 1, "groups": (Group("", 6),), "qrels": "qrels.txt", "path": str(folder / "study.toml"),
        "questionnaires": (Questionnaire("ease"), Questionnaire("tlx")),
    }  # fmt: skip
    design = designed(2, 4, **{**fields, **more})
    rows = assignments(design).to_pylist()
    trials = [{**row, "started": 0, "ended": 60_000 * (i % 3 + 1)} for i, row in enumerate(rows)]
    answers = [{"participant": row["participant"], "position": row["position"], "questionnaire": "ease", "item": "1",
                "value": float(i * i % 7 + 1)} for i, row in enumerate(rows)]  # fmt: skip
    people = [{"participant": f"p{i}"} for i in range(1, 7)]
    return StudyRecords.of({"participants": people, "trials": trials, "answers": answers}), design


def test_a_report_takes_measures_from_the_runs_of_the_design(tmp_path: Path) -> None:
    pilot, design = study(tmp_path)
    answer = report(pilot, design, measure="P@1")
    assert (answer.name, answer.outcome, answer.people, answer.n, answer.trials) == ("A study", "ease", 6, 4, 24)
    first = {"s0": "gbgb", "s1": "bggg"}
    by_hand = {
        (row["participant"], row["position"]): float(first[row["system"]][int(row["query_id"][1])] == "g")
        for row in pilot["trials"].to_pylist() if not row["practice"]
    }  # fmt: skip
    expected = report(pilot, measured=by_hand, measure="P@1", outcome="ease")
    assert answer.agreements == expected.agreements != ()
    assert {agreement.measure for agreement in answer.agreements} == {"P@1"}
    assert {agreement.outcome for agreement in answer.agreements} == {"ease", "minutes"}
    assert expected.offline == ()
    # over all five judged topics: 3/5 and 4/5
    (pair,) = answer.offline
    assert (pair.first, pair.second, pair.measure) == ("s0", "s1", "P@1")
    assert pair.result.difference == pytest.approx(0.2)
    assert answer.table("offline").records()[0]["by_judgments"] == ""
    assert report(pilot, design, measure="P@1", measured=by_hand).offline == ()
    usual = report(pilot, design)
    assert {agreement.measure for agreement in usual.agreements} == {"nDCG@10"} == {usual.offline[0].measure}
    assert usual.level == 0.95


def test_judgments_are_given_or_those_of_the_design(tmp_path: Path) -> None:
    pilot, design = study(tmp_path)
    saved = [{"participant": "p1", "position": i, "doc_id": doc} for i in (2, 3, 4) for doc in "gb"]
    pilot = StudyRecords.of({**pilot.tables, "saved": saved})
    custom_qrels = Qrels.of({f"t{i}": {"b": 1, "g": 0} for i in range(5)})
    (tmp_path / "own.txt").write_text("".join(f"t{i} 0 b 1\n" for i in range(5)))
    without = replace(design, qrels="")
    differences = []
    for qrels in (custom_qrels, str(tmp_path / "own.txt"), None):
        answer = report(pilot, design, qrels=qrels, measure="P@1")
        differences.append(answer.offline[0].result.difference)
        assert "relevant saved" in {row.outcome for row in answer.effects}
    assert differences == pytest.approx([-0.2, -0.2, 0.2])
    plain = report(pilot, without, measure="P@1")
    assert (plain.offline, plain.agreements) == ((), ())
    assert "relevant saved" not in {row.outcome for row in plain.effects}
    assert "relevant saved" in {row.outcome for row in report(pilot, qrels=custom_qrels).effects}


def test_systems_without_a_run_have_no_measure(tmp_path: Path) -> None:
    pilot, design = study(tmp_path)
    engine = StudySystem("s1", "docs.jsonl", endpoint="engine.toml")
    answer = report(pilot, replace(design, systems=(design.systems[0], engine)), measure="P@1")
    assert answer.offline == ()
    (ease,) = (agreement for agreement in answer.agreements if agreement.outcome == "ease")
    assert ease.trials == 12  # those with system s0


def test_which_outcomes_are_held_against_a_measure(tmp_path: Path) -> None:
    pilot, _ = study(tmp_path)
    trials = [(row["participant"], row["position"]) for row in pilot["trials"].to_pylist() if not row["practice"]]
    for count, outcomes_of in ((2, set()), (3, {"ease", "minutes"})):
        answer = report(pilot, measured={trial: float(i) for i, trial in enumerate(trials[:count])})
        assert {agreement.outcome for agreement in answer.agreements} == outcomes_of
    same = pilot["trials"].to_pylist()
    same = StudyRecords.of({**pilot.tables, "trials": [{**row, "ended": 60_000} for row in same]})
    answer = report(same, measured={trial: float(i % 4) for i, trial in enumerate(trials)})
    assert {agreement.outcome for agreement in answer.agreements} == {"ease"}  # all minutes are the same


def test_a_report_of_variants_and_systems() -> None:
    """Each of 16 people has both variants with both systems; what is preferred has the seed of the report."""
    design = designed(2, 4, interfaces=2, groups=(Group("", 16),))
    rows = assignments(design).to_pylist()
    trials = [{**row, "started": 0, "ended": 1000 * (i * i % 31 + 1)} for i, row in enumerate(rows)]
    people = [{"participant": f"p{i}"} for i in range(1, 17)]
    study_records = StudyRecords.of({"participants": people, "trials": trials})
    answer = report(study_records, design)
    assert [(record.outcome, record.first, record.second) for record in answer.effects] == [
        ("minutes", "s0", "s1"), ("minutes", "v0", "v1"),
    ]  # fmt: skip
    minutes = find_outcome(outcomes(study_records, design), "minutes")
    assert answer.components == (variance_components(minutes, by="system"),)
    alone = [{**row, "system": "s0"} for row in trials]
    record = report(StudyRecords.of({"participants": people, "trials": alone}))
    assert [(row.first, row.second) for row in record.effects] == [("v0", "v1")]
    answer = outcomes(StudyRecords.of({"participants": people, "trials": alone}))
    assert record.components == (variance_components(find_outcome(answer, "minutes"), by="variant"),)
    neither = [{**row, "variant": ""} for row in alone]
    none = report(StudyRecords.of({"participants": people, "trials": neither}))
    assert [(row.first, row.second) for row in none.effects] == [("s0", "")]
    assert none.components == ()


def test_the_level_and_the_seed_of_a_report_are_those_of_its_parts() -> None:
    base = records(people=18, topics=4)
    usual, narrow, again = report(base), report(base, level=0.8), report(base, seed=3)
    half = [row.effects[0].ci[1] - row.effects[0].ci[0] for row in (usual, narrow, again)]
    assert half[1] < half[0] == half[2]
    assert narrow.learning[0].ci[0] > usual.learning[0].ci[0]
    assert narrow.preferences == usual.preferences == pair_preferences(base)
    assert again.preferences == pair_preferences(base, seed=3)
    assert again.side_bias is not None
    assert again.effects[0].people_p != usual.effects[0].people_p


def test_practice_does_not_count_as_trials() -> None:
    base = records(people=6, topics=4)
    trials = [{**row, "practice": row["position"] == 1 or row["participant"] == "p00"}
              for row in base["trials"].to_pylist()]  # fmt: skip
    answer = report(StudyRecords.of({**base.tables, "trials": trials}))
    assert (answer.people, answer.n, answer.trials) == (5, 4, 15)


def test_trials_that_were_begun_and_not_ended_are_counted() -> None:
    """One was not begun, so far as is known, and one of practice was not ended."""
    trial = {"query_id": "t", "system": "a"}
    times = ((0, 60_000, False), (0, None, False), (None, None, False), (None, 60_000, False), (0, None, True))
    trials = [{**trial, "participant": "p", "position": i, "started": start, "ended": end, "practice": practiced}
              for i, (start, end, practiced) in enumerate(times, 1)]  # fmt: skip
    answer = report(StudyRecords.of({"participants": [{"participant": "p"}], "trials": trials}))
    assert [note.text for note in answer.notes] == ["1 trial of 4 not finished; their answers are included"]
    assert answer.outcome == "finished"
    (effect_row,) = report(StudyRecords.of({"participants": [{"participant": "p"}], "trials": trials[:1]})).effects
    assert (effect_row.outcome, effect_row.counts) == ("minutes", (1, 0))
    assert answer.side_bias is None
