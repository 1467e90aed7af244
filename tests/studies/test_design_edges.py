"""Designs: usual values, what is just allowed and just refused, what is found by name; and what a check says of one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from judged.data.toml_files import SettingError
from judged.errors import InputError
from judged.studies.design import Condition, Design, Group, StudySystem, Task, Variant, first_design, parse_design
from judged.studies.design_check import check_design
from judged.studies.questionnaires import Item, Questionnaire
from studies.study_designs import make_design

if TYPE_CHECKING:
    from pathlib import Path


def test_usual_values() -> None:
    assert Variant() == Variant(name="", marks=True, snippets=160, weights=False, results=10)
    assert Group("x").participants == 12
    assert Condition("s").variant == ""
    row, two = StudySystem("a", "d", "a.run"), StudySystem("b", "d", endpoint="b.toml")
    tasks = (Task("t", "q", "i", 5.0, 2), Task("u", "q", "i", 5.0, 2))
    design = Design("x", (row, two), tasks)
    usual = {
        "practice": (), "language": "en", "seed": 0, "consent": "", "instruction": "", "personal": False,
        "order": "mixed", "variants": "crossed", "interfaces": (Variant(),), "questionnaires": (),
        "groups": (Group("", 12),), "preference": (), "qrels": "", "path": "", "thanks": "Thank you. You are done.",
    }  # fmt: skip
    assert {name: getattr(design, name) for name in usual} == usual


@pytest.mark.parametrize(
    ("kind", "fields", "key", "allowed", "refused"),
    [
        (Variant, {}, "snippets", 0, -1),
        (Variant, {}, "results", 1, 0),
        (Group, {"name": "g"}, "participants", 1, 0),
        (Task, {"topic": "t", "query": "", "instruction": "", "save": 0}, "minutes", 0.0, -0.5),
        (Task, {"topic": "t", "query": "", "instruction": "", "minutes": 0.0}, "save", 0, -1),
    ],
)
def test_the_least_numbers(kind: Any, fields: dict[str, Any], key: str, allowed: float, refused: float) -> None:
    assert getattr(kind(**fields, **{key: allowed}), key) == allowed
    with pytest.raises(SettingError, match=f"{key} is {refused}") as error:
        kind(**fields, **{key: refused})
    assert error.value.key == key


def test_a_system_has_a_run_or_an_endpoint() -> None:
    for keys in ({"run": "s.run", "endpoint": "s.toml"}, {"run": "s.run", "engine": "sqlite"}, {}):
        with pytest.raises(InputError, match="must have one of run, endpoint, and engine"):
            StudySystem("s", "d", **keys)


def test_what_must_be_there_to_compare() -> None:
    assert make_design(2, 2).conditions == (Condition("s0"), Condition("s1"))
    with pytest.raises(InputError, match="at least two systems or variants"):
        make_design(1, 2)
    assert make_design(1, 2, interfaces=2).conditions == (Condition("s0", "v0"), Condition("s0", "v1"))
    assert make_design(1, 1, interfaces=2, variants="between").conditions == (Condition("s0"),)
    with pytest.raises(SettingError, match="at least 2 topics, one for each system, got 1") as plain:
        make_design(2, 1)
    assert "between" not in str(plain.value.fix)
    with pytest.raises(
        SettingError, match="at least 4 topics, one for each combination of system and variant, got 3"
    ) as crossed:
        make_design(2, 3, interfaces=2)
    assert "use 4 topics or more, or write" in str(crossed.value.fix)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"systems": tuple(StudySystem(name, "d", "r") for name in "abcb")}, "names of systems .*'b'"),
        ({"interfaces": tuple(Variant(name) for name in "vwv"), "variants": "between"}, "names of variants .*'v'"),
        ({"questionnaires": (Questionnaire("ease"), Questionnaire("tlx"), Questionnaire("tlx"))},
         "names of questionnaires .*'tlx'"),
        ({"groups": (Group("x"), Group("g"), Group("g"))}, "names of groups .*'g'"),
    ],
)  # fmt: skip
def test_names_are_given_once(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(make_design(2, 8), **more)


def test_parts_are_found_by_their_names() -> None:
    design = make_design(3, 6, practice=1, interfaces=2, preference=(Task("x", "", "", 0, 0),), path="a/b/study.toml",
                  variants="between")  # fmt: skip
    assert [design.system(f"s{i}").run for i in range(3)] == ["s0.run", "s1.run", "s2.run"]
    assert [design.interface(name).name for name in ("v0", "v1")] == ["v0", "v1"]
    assert [design.task(topic).query for topic in ("t0", "t5", "t6", "x")] == ["query 0", "query 5", "query 6", ""]
    assert design.file("c.run").as_posix() == "a/b/c.run"
    for find in (design.system, design.interface, design.task):
        with pytest.raises(StopIteration):
            find("nobody")


TOPICS = "".join(f"q{i}\ttext {i}\n" for i in range(30))
SYSTEMS = '[[system]]\nname = "a"\ntexts = "d"\nrun = "a"\n[[system]]\nname = "b"\ntexts = "d"\nendpoint = "b"\n'


def parsed(folder: Path, topics: str, tables: str = "", study: str = "") -> Design:
    (folder / "topics.tsv").write_text(TOPICS)
    text = f'[study]\ntitle = "x"\n{study}\n[topics]\nfile = "topics.tsv"\n{topics}\n{SYSTEMS}{tables}'
    return parse_design(text, str(folder / "study.toml"))


def test_topics_of_a_file(tmp_path: Path) -> None:
    design = parsed(tmp_path, 'use = ["q3", "q1", "q2"]\npractice = ["q9", "q8"]\npreference = ["q1", "q20"]')
    assert [task.topic for task in design.tasks] == ["q3", "q1", "q2"]
    assert [task.topic for task in design.practice] == ["q9", "q8"]
    assert [task.topic for task in design.preference] == ["q1", "q20"]
    instruction = "Learn about this topic, and save the documents that help you."
    assert design.tasks[0] == Task("q3", "text 3", instruction, 5.0, 0)
    assert (design.interfaces, design.groups, design.questionnaires) == ((Variant(),), (Group(""),), ())
    task_tables = '[[task]]\ntopic = "q2"\nsave = 0\n[[task]]\ntopic = "q3"\ninstruction = "Go."\nminutes = 0\n'
    all_topics = parsed(tmp_path, 'practice = ["q0"]\nminutes = 0\nsave = 4', task_tables)
    assert [task.topic for task in all_topics.tasks] == [f"q{i}" for i in range(1, 30)]
    assert (all_topics.task("q1").minutes, all_topics.task("q1").save) == (0.0, 4)
    assert (all_topics.task("q2").minutes, all_topics.task("q2").save, all_topics.task("q2").instruction) == (
        0.0,
        0,
        instruction,
    )
    assert all_topics.task("q3").instruction == "Go."
    assert all_topics.task("q3").save == 4


@pytest.mark.parametrize(
    ("topics", "tables", "message"),
    [
        ('use = ["q1", "q2", "q1"]', "", "the topic q1 is a duplicate"),
        ('practice = ["q1", "q1"]', "", "the topic q1 is a duplicate"),
        ('preference = ["q1", "q2", "q2"]', "", "the topic q2 is a duplicate"),
        ('use = ["q1", "q2"]\npractice = ["q2"]', "", "the topic q2 is a duplicate"),
        ('preference = ["x"]', "", "topics.tsv has no topic 'x'"),
        ("", '[[task]]\ntopic = "x"\n', "unknown topic 'x'"),
        ("", "[[other]]\n", "unknown table 'other'"),
        ("", '[task]\ntopic = "q1"\n', "task must be a TOML table"),
    ],
)
def test_topics_that_are_refused(tmp_path: Path, topics: str, tables: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parsed(tmp_path, topics, tables)


def test_tables_that_are_no_tables() -> None:
    with pytest.raises(InputError, match=r"study must be a TOML table") as refused:
        parse_design('[[study]]\ntitle = "x"\n')
    assert "write [study]" in str(refused.value)
    with pytest.raises(InputError, match=r"must have a table .topics."):
        parse_design('[study]\ntitle = "x"\n')


def test_a_wrong_item_of_a_second_questionnaire_is_named_by_its_line(tmp_path: Path) -> None:
    header = '[[questionnaire]]\nof = "custom"\nname = "{}"\nafter = "end"\n'
    item = '[[questionnaire.item]]\nname = "{}"\ntext = "?"\n'
    tables = (
        header.format("m") + item.format("1") + item.format("2") + header.format("n") + item.format("1") + "step = 3\n"
    )
    with pytest.raises(InputError) as refused:
        parsed(tmp_path, "", tables)
    text = f'[study]\ntitle = "x"\n\n[topics]\nfile = "topics.tsv"\n\n{SYSTEMS}{tables}'
    assert refused.value.line is not None
    assert text.splitlines()[refused.value.line - 1] == "step = 3"
    right = parsed(tmp_path, "", tables.replace("step = 3\n", ""))
    assert [[item.name for item in questionnaire.items] for questionnaire in right.questionnaires] == [
        ["1", "2"],
        ["1"],
    ]


def test_sentences_of_a_check() -> None:
    design = make_design(2, 4, practice=1, groups=(Group("", 8),), order="blocked")
    tasks = (replace(design.tasks[0], minutes=0.0), *design.tasks[1:])
    check = check_design(replace(design, tasks=tasks))
    # three tasks and one for practice of 5 minutes
    work, balanced, ready = check.sentences
    assert work.startswith("Each of 8 participants does 4 tasks with 2 systems, after 1 practice task:")
    assert work.endswith(": at most 20 minutes, plus 1 task without a time limit.")
    assert balanced == (
        "The order of systems is balanced if the number of participants is a multiple of 2. The positions of topics are"
        " balanced if the number of participants is a multiple of 8."
    )
    assert ready == "The study cannot run yet, because data is missing."
    assert check.facts() == {"ready": False, "minutes": 20.0, "block_systems": 2, "block": 8}
    assert check.title == "Design: A study"
    (_, table) = check.blocks()
    assert (table.labels, [column.heading for column in table.columns]) == (
        1, ["combination", "minimum count", "maximum count", "balanced"],
    )  # fmt: skip
    assert [row["combination"] for row in table.records()] == [
        "each system at each position", "each topic with each system", "each topic at each position",
        "each system directly after each other system", "each system with each participant",
    ]  # fmt: skip
    # of 8 people: 4 have each system at each position, and with each topic; each topic is at each of 4 positions twice;
    # in blocks each has one change; and each person each system twice
    assert [(row["min_count"], row["max_count"], row["balanced"]) for row in table.records()] == [
        (4, 4, True), (4, 4, True), (2, 2, True), (4, 4, True), (2, 2, True),
    ]  # fmt: skip
    assert table.columns[3].cells() == ["yes"] * 5


def test_a_check_of_variants_and_groups() -> None:
    design = make_design(2, 4, interfaces=2, groups=(Group("x", 1), Group("y", 3)))
    check = check_design(design)
    assert check.sentences[0].startswith("Each of 4 participants does 4 tasks with 4 variants of systems: at most 20 ")
    assert check.sentences[0].endswith("20 minutes.")
    balanced = (
        "The order of systems is balanced if the number of participants in each group is a multiple of 4. The"
        " positions of topics are balanced if the number of participants in each group is a multiple of 16."
    )
    assert check.sentences[1] == balanced
    table = check.blocks()[1]
    assert (table.labels, table.columns[0].heading) == (2, "group")
    assert [row["group"] for row in table.records()] == ["x"] * 5 + ["y"] * 5
    assert {
        row["balanced"] for row in table.records() if row["combination"] == "each system with each participant"
    } == {True}
    uneven = [(note.subject, note.text) for note in check.notes if note.rule == "uneven-participants"]
    assert [subject for subject, _ in uneven] == ["x", "y"]
    assert uneven[0][1].startswith("with 1 participant, these combinations do not occur equally often: ")
    assert uneven[0][1].endswith("use 4 participants")
    assert uneven[1][1].endswith("use 4 participants")
    assert {note.of for note in check.notes if note.rule == "uneven-participants"} == {"groups"}


def test_how_long_a_participant_takes() -> None:
    items = (Item("1", "?"), Item("2", "?"), Item("3", "?", open=True))
    questionnaires = tuple(Questionnaire("custom", after, after, items=items) for after in ("task", "system", "end"))
    design = make_design(3, 6, practice=2, preference=(Task("t0", "", "", 9.0, 0),))
    assert check_design(design).minutes == 8 * 5 + 1
    for questionnaire, times in zip(questionnaires, (8, 3, 1), strict=True):
        check = check_design(replace(design, questionnaires=(questionnaire,), preference=()))
        assert check.minutes == pytest.approx(8 * 5 + times * (2 / 8 + 1))
    assert check_design(parse_design(first_design())).blocks()[1].labels == 2


@pytest.mark.parametrize(
    ("people", "order", "combinations", "fix"),
    [
        (24, "mixed", "", ""),
        (12, "mixed", "", ""),
        (6, "mixed", "each topic at each position", "use 12 participants"),
        (14, "mixed", "each topic at each position", "use 12 or 24 participants"),
        (13, "mixed", "each system at each position", "use 12 or 14 participants"),
        (1, "mixed", "each system at each position", "use 2 participants"),
    ],
)
def test_numbers_of_people_that_are_not_balanced(people: int, order: Any, combinations: str, fix: str) -> None:
    """Two systems and six topics: balanced with every 2, all with every 12."""
    notes = [note for note in check_design(make_design(2, 6, groups=(Group("", people),), order=order)).notes
             if note.rule.startswith("uneven")]  # fmt: skip
    assert len(notes) == bool(combinations)
    for note in notes:
        assert combinations in note.text
        assert note.text.endswith(fix)
        subject = "1 participant" if people == 1 else f"{people} participants"
        assert note.text.startswith(f"with {subject}, these combinations do not occur equally often: ")


def test_topics_that_no_person_has_equally_often() -> None:
    """Seven topics with three systems; 42 people balance all that can be balanced."""
    notes = check_design(make_design(3, 7, groups=(Group("", 42),))).notes
    assert [(note.rule, note.text) for note in notes if note.severity != "error"] == [
        ("uneven-topics", "7 topics cannot be divided equally among 3 systems. Fix: use 6 or 9 topics"),
    ]  # fmt: skip


def test_what_is_missing_is_counted_and_named(tmp_path: Path) -> None:
    design = make_design(2, 4, practice=1, preference=(Task("t9", "", "", 0, 0),), qrels="qrels.txt",
                  path=str(tmp_path / "study.toml"))  # fmt: skip
    (tmp_path / "s0.run").write_text("t0 Q0 a 1 2 x\nt0 Q0 b 2 1 x\nt1 Q0 c 1 1 x\nother Q0 z 1 1 x\n")
    (tmp_path / "s1.run").write_text("".join(f"t{i} Q0 a 1 1 x\n" for i in (0, 1, 2, 3, 4, 9)))
    (tmp_path / "docs.jsonl").write_text('{"doc_id": "a", "text": "a"}\n')
    notes = check_design(design).notes
    errors = {(note.rule, note.subject): note for note in notes if note.severity == "error"}
    assert set(errors) == {("missing-topics", "s0"), ("missing-texts", "s0"), ("unreadable", "")}
    topics, texts = errors["missing-topics", "s0"], errors["missing-texts", "s0"]
    assert (topics.weight, topics.of) == (4, "systems")
    assert "s0.run has no results for t2, t3, t4 and t9." in topics.text
    assert (texts.weight, texts.of) == (2, "systems")
    assert "docs.jsonl has no text for 2 of 3 documents, such as b." in texts.text
    (tmp_path / "qrels.txt").write_text("t1 0 a 1\n")
    lacking = [note for note in check_design(design).notes if note.rule == "missing-judgments"]
    assert [note.text.partition(", so ")[0] for note in lacking] == ["5 topics have no judgments"]
    assert lacking[0].text.endswith(": t0, t2, t3, t4, t9")
    (tmp_path / "s0.run").write_text("t0 Q0 a 1 2 x\n")
    (tmp_path / "qrels.txt").write_text("t8 0 a 1\n")
    notes = check_design(design).notes
    assert "s0.run has no results for t1, t2, t3, t4 and t9." in notes[-2].text
    assert ": t0, t1, t2, t3, t4" in notes[-1].text


@pytest.mark.parametrize(("topics", "tables"), [('use = ["x"]', ""), ("", '[[task]]\ntopic = "x"\n')])
def test_twenty_topics_are_named_where_none_is_near(tmp_path: Path, topics: str, tables: str) -> None:
    with pytest.raises(InputError) as refused:
        parsed(tmp_path, topics, tables)
    assert f"use one of {', '.join(f'q{i}' for i in range(20))}." in str(refused.value)
