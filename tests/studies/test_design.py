"""Designs: what is read of a file, what is refused, and what a check finds."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from judged.errors import InputError
from judged.studies.design import Condition, Group, Task, first_design, parse_design, read_design
from judged.studies.design_check import check_design
from judged.studies.questionnaires import Item
from studies.study_designs import make_design

if TYPE_CHECKING:
    from pathlib import Path

FIRST = first_design()


def test_the_first_design_can_be_read_and_run() -> None:
    design = parse_design(FIRST)
    assert [system.name for system in design.systems] == ["bm25", "tfidf"]
    assert design.conditions == (Condition("bm25", "default"), Condition("tfidf", "default"))
    assert [task.topic for task in design.practice] == ["t07", "t08"]
    query, instruction = (
        "most common elements of a list",
        "You need a function for this task. Save up to three results that help.",
    )
    assert design.tasks[0] == Task("t01", query, instruction, 4.0, 3)
    assert design.groups == (Group("novice", 12), Group("expert", 12))
    assert [(questionnaire.name, questionnaire.after) for questionnaire in design.questionnaires] == [
        ("ease", "task"), ("satisfaction", "task"), ("umux-lite", "system"), ("remarks", "end"),
    ]  # fmt: skip
    words = ("never", "a few days a year", "a few days a month", "most days")
    assert design.questionnaires[3].items[0] == Item("often", "How often do you use Python?", (1.0, 4.0), words=words)
    assert design.questionnaires[3].items[1].open


def test_a_task_of_its_own_changes_what_it_names() -> None:
    design = parse_design(f'{FIRST}\n[[task]]\ntopic = "t02"\nminutes = 9\n')
    assert [task.minutes for task in design.tasks] == [4, 9, 4, 4, 4, 4]
    assert design.task("t02").save == 3


def test_without_names_all_topics_are_used_but_those_of_practice() -> None:
    design = parse_design(re.sub(r"use = .*", "", FIRST))
    assert len(design.tasks) == 46
    assert not {"t07", "t08"} & {task.topic for task in design.tasks}


@pytest.mark.parametrize(
    ("old", "new", "line", "fix"),
    [
        ("seed = 1 ", "sede = 1 ", "sede", "write seed"),
        ("seed = 1 ", "seed = '1' ", "seed", "an integer"),
        ("[[system]]  ", "[[sytem]]  ", "", "write system"),
        ('order = "mixed"', 'order = "mixd"', "order =", "write mixed"),
        ('"t01", "t02"', '"t1", "t02"', "use =", "write t"),
        ('practice = ["t07"', 'practice = ["t01"', "practice =", "remove one of the two"),
        ('of = "ease"', 'of = "esae"', "of =", "write ease"),
        ("scale = [1, 4]", "scale = [4, 1]", "scale =", "lowest, highest"),
        ("open = true", "opne = true", "opne", "write open"),
        ("participants = 12", "participants = 0", "participants", "from 1 to 100,000"),
        ("minutes = 4", "minutes = -1", "minutes", "from 0 to 100,000"),
        ("snippets = 160", "snippets = -1", "snippets", "from 0"),
        ('name = "tfidf"', 'name = "bm25"', "", "rename one of the systems"),
        ('"t01", "t02", "t03", "t04", "t05", "t06"', '"t01"', "[topics]", "2 topics or more"),
    ],
)  # fmt: skip
def test_what_is_refused_says_where_and_what_to_do(old: str, new: str, line: str, fix: str) -> None:
    text = FIRST.replace(old, new, 1)
    with pytest.raises(InputError, match=re.escape(fix)) as refused:
        parse_design(text, "study.toml")
    assert refused.value.path == "study.toml"
    if line:
        assert refused.value.line is not None
        assert line in text.splitlines()[refused.value.line - 1]


def test_systems_need_a_run_or_an_endpoint() -> None:
    for keys in ("", 'run = "a.run"\nendpoint = "a.toml"\n'):
        text = f'{FIRST}\n[[system]]\nname = "third"\ntexts = "docs.jsonl"\n{keys}'
        with pytest.raises(InputError, match=r"\[\[system\]\] 3: the system third must have"):
            parse_design(text, "study.toml")


def test_a_check_finds_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "queries.tsv").write_text("q1\tone\nq2\ttwo\nq3\tthree\n")
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 2 a\nq1 Q0 d2 2 1 a\nq2 Q0 d1 1 1 a\nq3 Q0 d1 1 1 a\n")
    (tmp_path / "b.run").write_text("q1 Q0 d1 1 1 b\n")
    (tmp_path / "docs.jsonl").write_text('{"doc_id": "d1", "text": "a text"}\n')
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\nq2 0 d1 1\n")
    systems = "".join(
        f'[[system]]\nname = "{name}"\ntexts = "docs.jsonl"\n{source}\n'
        for name, source in {"a": 'run = "a.run"', "b": 'run = "b.run"', "c": 'endpoint = "c.toml"'}.items()
    )
    text = f'[study]\ntitle = "x"\nqrels = "qrels.txt"\n[topics]\nfile = "queries.tsv"\n{systems}'
    (tmp_path / "study.toml").write_text(text)
    check = check_design(read_design(tmp_path / "study.toml"))
    assert not check.ready
    assert [(note.rule, note.subject) for note in check.notes] == [
        ("uneven-participants", ""), ("missing-texts", "a"), ("missing-topics", "b"), ("unreadable", "c"),
        ("missing-judgments", ""),
    ]  # fmt: skip
    (tmp_path / "c.toml").write_text('url = "http://localhost:1/?q={query}"\nhits = "hits"\nid = "id"\n')
    ready = (tmp_path / "study.toml").read_text().replace("b.run", "a.run")
    (tmp_path / "study.toml").write_text(ready)
    (tmp_path / "docs.jsonl").write_text('{"doc_id": "d1", "text": "a"}\n{"doc_id": "d2", "text": "b"}\n')
    assert check_design(read_design(tmp_path / "study.toml")).ready


def test_minutes_and_balance_of_a_check() -> None:
    design = parse_design(FIRST)
    check = check_design(design)
    # 8 tasks of 4 minutes; 8 x 2 items after tasks, 2 x 2 after systems, 1 at the end, 8 a minute; one in own words;
    # two topics side by side
    assert check.minutes == 32 + 21 / 8 + 1 + 2
    assert check.ready
    assert check.notes == ()
    fewer = check_design(replace(design, tasks=design.tasks[:5], groups=(Group("", 7),)))
    assert [note.rule for note in fewer.notes] == ["uneven-topics", "uneven-participants"]
    assert "use 4 or 6" in fewer.notes[0].text
    assert fewer.notes[1].text.endswith("use 6 or 8 participants")
    almost = check_design(replace(design, groups=(Group("", 8),)))
    assert almost.notes[0].text.endswith("use 12 participants")
    assert {balance.kind for balance in almost.balances[""] if balance.min_count != balance.max_count} == {"positions"}


def test_what_a_design_cannot_be() -> None:
    with pytest.raises(InputError, match="3 topics or more"):
        make_design(3, 2)
    with pytest.raises(InputError, match='variants = "between"'):
        make_design(2, 3, interfaces=2)
    with pytest.raises(InputError, match="at least two systems or variants"):
        make_design(1, 3)
    assert make_design(2, 3, interfaces=2, variants="between").conditions == (Condition("s0"), Condition("s1"))
