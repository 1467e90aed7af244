"""Each item of each questionnaire as published, what an item and a questionnaire may be, and scores at their ends."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from judged.data.toml_files import SettingError
from judged.errors import InputError
from judged.studies.questionnaires import (
    FORMS,
    SCORES,
    Item,
    Questionnaire,
    agreement,
    item_agreement,
    scores,
    sus_from_umux_lite,
)
from judged.studies.records import StudyRecords
from studies.study_designs import make_design

AGREE = ("Strongly disagree", "Strongly agree")
NAN = math.nan


def test_scales_of_all_items() -> None:
    rows = {
        name: [(item.name, item.scale, item.step, len(item.words), item.open, item.reversed) for item in form.items]
        for name, form in FORMS.items()
    }
    assert rows == {
        "sus": [(f"{i}", (1.0, 5.0), 1.0, 2, False, i % 2 == 0) for i in range(1, 11)],
        "umux-lite": [(f"{i}", (1.0, 7.0), 1.0, 2, False, False) for i in (1, 2)],
        "tlx": [(name, (0.0, 100.0), 5.0, 2, False, False)
                for name in ("mental", "physical", "temporal", "performance", "effort", "frustration")],
        "ease": [("1", (1.0, 7.0), 1.0, 2, False, False)],
        "satisfaction": [("1", (1.0, 5.0), 1.0, 2, False, False)],
    }  # fmt: skip
    assert {name: (form.scores, form.after, form.higher_is_better) for name, form in FORMS.items()} == {
        "sus": ((0.0, 100.0), "system", True), "umux-lite": ((0.0, 100.0), "system", True),
        "tlx": ((0.0, 100.0), "task", False), "ease": ((1.0, 7.0), "task", True),
        "satisfaction": ((1.0, 5.0), "task", True),
    }  # fmt: skip
    assert FORMS["sus"].items[0].words == FORMS["umux-lite"].items[1].words == AGREE
    assert FORMS["tlx"].items[3].words == ("Perfect", "Failure")
    assert FORMS["tlx"].items[0].words == FORMS["tlx"].items[5].words == ("Very low", "Very high")
    for name in FORMS:  # a questionnaire of a form has its items
        used = Questionnaire(name)
        assert used.items == FORMS[name].items
        assert (used.name, used.title, used.after) == (name, FORMS[name].title, FORMS[name].after)
        assert (used.scores, used.higher_is_better) == (FORMS[name].scores, FORMS[name].higher_is_better)
        assert used.scored == used.items


def test_what_an_item_may_be() -> None:
    item = Item("1", "?")
    assert (item.scale, item.step, item.words, item.open, item.reversed) == ((1.0, 5.0), 1.0, (), False, False)
    assert (item.steps, item.values) == (4.0, (1.0, 2.0, 3.0, 4.0, 5.0))
    assert Item("1", "?", (-1.0, 1.0), 0.5).values == (-1.0, -0.5, 0.0, 0.5, 1.0)
    assert Item("1", "?", (0.0, 1.0), 0.1).values == pytest.approx(np.arange(11) / 10)
    assert Item("1", "?", (0.0, 1.0)).values == (0.0, 1.0)
    assert Item("1", "?", open=True).values == ()
    for words in (("low", "high"), ("a", "b", "c", "d", "e")):
        assert Item("1", "?", words=words).words == words


@pytest.mark.parametrize(
    ("fields", "key", "message"),
    [
        ({"scale": (1.0,)}, "scale", "got [1.0]"),
        ({"scale": (1.0, 2.0, 3.0)}, "scale", "got [1.0, 2.0, 3.0]"),
        ({"scale": (2.0, 2.0)}, "scale", "got [2.0, 2.0]"),
        ({"step": 0.0}, "step", "got 0."),
        ({"step": -1.0}, "step", "got -1."),
        ({"step": 0.3}, "step", "got 0.3."),
        ({"step": 3.0}, "step", "got 3."),
        ({"step": 100.0}, "step", "got 100."),
        ({"step": 1.001}, "step", "got 1.001."),
        ({"words": ("a",)}, "words", "all 5 values or the two ends, got 1 labels"),
        ({"words": ("a", "b", "c", "d")}, "words", "all 5 values or the two ends, got 4 labels"),
        ({"words": ("a", "b", "c"), "scale": (1.0, 2.0)}, "words", "all 2 values or the two ends, got 3 labels"),
    ],
)
def test_what_an_item_may_not_be(fields: dict[str, Any], key: str, message: str) -> None:
    with pytest.raises(SettingError) as refused:
        Item("1", "?", **fields)
    assert refused.value.key == key
    assert message in str(refused.value)


def test_an_own_questionnaire_needs_a_name_a_time_and_items() -> None:
    keywords: dict[str, Any] = {"name": "mine", "after": "end", "items": (Item("1", "?"),)}
    custom = Questionnaire("custom", **keywords)
    assert (custom.title, custom.after, custom.higher_is_better, custom.scores) == ("mine", "end", True, (1.0, 5.0))
    for key in keywords:
        with pytest.raises(SettingError, match="a custom questionnaire must have"):
            Questionnaire("custom", **{name: value for name, value in keywords.items() if name != key})
    with pytest.raises(SettingError, match="unknown questionnaire 'mine'"):
        Questionnaire("mine", **keywords)
    texts = {"items": (Item("1", "?"), Item("2", "?")), "name": "mine", "after": "task"}
    Questionnaire("custom", **texts, wording=("a", "b"))
    with pytest.raises(SettingError, match="got 1"):
        Questionnaire("custom", **texts, wording=("a",))
    with pytest.raises(SettingError, match="got 3"):
        Questionnaire("umux-lite", wording=("a", "b", "c"))
    for ends in (("a",), ("a", "b", "c")):
        with pytest.raises(SettingError, match=f"two labels, got {len(ends)}"):
            Questionnaire("ease", ends=ends)
    with pytest.raises(InputError, match="item names must be unique"):
        Questionnaire("custom", **{**texts, "items": (Item("1", "?"), Item("2", "?"), Item("1", "?"))})


def test_what_is_given_goes_before_the_form() -> None:
    load = Questionnaire("tlx", "load", "end", ends=("0", "1"), higher_is_better=True)
    assert (load.name, load.after, load.higher_is_better) == ("load", "end", True)
    assert {item.words for item in load.items} == {("0", "1")}
    assert [item.text for item in load.items] == [item.text for item in FORMS["tlx"].items]
    assert {(item.scale, item.step) for item in load.items} == {((0.0, 100.0), 5.0)}
    worse = Questionnaire("ease", higher_is_better=False)
    assert worse.higher_is_better is False
    sus = Questionnaire("sus", wording=tuple("abcdefghij"))
    assert "".join(item.text for item in sus.items) == "abcdefghij"
    assert [item.reversed for item in sus.items] == [False, True] * 5
    custom = Questionnaire("custom", "mine", "end", items=(Item("1", "?"),), higher_is_better=False)
    assert custom.higher_is_better is False


def test_shares_scores_and_bounds_by_hand() -> None:
    """Items from 2 to 10, the second one reversed: 4 and 8 are a quarter each, of 2 to 10 that is 4."""
    items = (Item("1", "?", (2.0, 10.0)), Item("2", "?", (2.0, 10.0), reversed=True), Item("3", "?", open=True))
    custom = Questionnaire("custom", "mine", "end", items=items)
    assert [item.name for item in custom.scored] == ["1", "2"]
    assert custom.shares(np.array([4.0, 8.0])).tolist() == [0.25, 0.25]
    assert custom.shares(np.array([[2.0, 2.0], [10.0, 4.0]])).tolist() == [[0.0, 1.0], [1.0, 0.75]]
    assert custom.score(np.array([4.0, 8.0])) == 4.0
    assert math.isnan(custom.score(np.array([4.0, NAN])))
    # a quarter and 0 or 1: 1/8 and 5/8 of the way from 2 to 10
    assert custom.bounds(np.array([4.0, NAN])) == (3.0, 7.0)
    assert custom.bounds(np.array([4.0, 8.0])) == (4.0, 4.0)
    assert custom.bounds(np.array([NAN, NAN])) == (2.0, 10.0)
    mixed = Questionnaire("custom", "mine", "end", items=(Item("1", "?"), Item("2", "?", (1.0, 4.0))))
    assert mixed.scored == ()
    assert all(math.isnan(end) for end in mixed.scores)
    assert math.isnan(mixed.score(np.array([])))
    texts = Questionnaire("custom", "mine", "end", items=(Item("1", "?", open=True),))
    assert texts.scored == ()
    assert math.isnan(texts.scores[1])
    assert sus_from_umux_lite(100.0) == pytest.approx(87.9)
    assert sus_from_umux_lite(0.0) == 22.9


def test_every_column_of_scores() -> None:
    design = make_design(questionnaires=(
        Questionnaire("umux-lite"), Questionnaire("sus", "usability"), Questionnaire("tlx"),
        Questionnaire("custom", "words", "end", items=(Item("1", "?", open=True),)),
    ))  # fmt: skip
    trial = {"participant": "a", "position": 1}
    rows = [(0, "s0", "umux-lite", "1", 7.0), (0, "s0", "umux-lite", "2", 4.0), (1, "", "tlx", "mental", 50.0),
            (1, "", "tlx", "effort", 52.0), (0, "", "words", "1", 3.0), (0, "s1", "usability", "11", 3.0),
            (0, "s1", "other", "1", 3.0)]  # fmt: skip
    names = ("position", "system", "questionnaire", "item", "value")
    made_of = StudyRecords.of({
        "participants": [{"participant": "a"}], "trials": [{**trial, "query_id": "t", "system": "s1"}],
        "answers": [{"participant": "a", **dict(zip(names, row, strict=True))} for row in rows],
    })  # fmt: skip
    table = scores(made_of, design)
    assert table.schema == SCORES
    umux, tlx, sus = table.to_pylist()
    # (6 + 3) of 12; as SUS 0.65 x 75 + 22.9
    assert umux == {"participant": "a", "position": 0, "system": "s0", "questionnaire": "umux-lite", "score": 75.0,
                    "low": 75.0, "high": 75.0, "items": 2, "sus": pytest.approx(71.65)}  # fmt: skip
    # one of six answers is a value of the scale: 50 / 6 and (50 + 500) / 6
    assert tlx == {"participant": "a", "position": 1, "system": "s1", "questionnaire": "tlx", "score": None,
                   "low": pytest.approx(50 / 6), "high": pytest.approx(550 / 6), "items": 1, "sus": None}  # fmt: skip
    assert sus == {"participant": "a", "position": 0, "system": "s1", "questionnaire": "usability", "score": None,
                   "low": 0.0, "high": 100.0, "items": 0, "sus": None}  # fmt: skip


def test_agreement_of_items_that_are_reversed_and_of_few() -> None:
    values = np.array([[1.0, 5.0], [2.0, 4.0], [4.0, 1.0], [5.0, 2.0]])
    items = (Item("1", "?"), Item("2", "?", reversed=True))
    design = make_design(questionnaires=(Questionnaire("custom", "mine", "end", items=items), Questionnaire("ease"),
                                  Questionnaire("umux-lite")))  # fmt: skip
    answers = [{"participant": f"p{i}", "position": 0, "questionnaire": "mine", "item": f"{item + 1}", "value": value}
               for i, row in enumerate(values) for item, value in enumerate(row)]  # fmt: skip
    answers.append({"participant": "p9", "position": 0, "questionnaire": "mine", "item": "1", "value": 3.0})
    people = [{"participant": f"p{i}"} for i in (0, 1, 2, 3, 9)]
    made_of = StudyRecords.of({"participants": people, "trials": [], "answers": answers})
    custom, umux = agreement(made_of, design)
    turned = np.column_stack([values[:, 0], 6 - values[:, 1]])
    alpha = 2 * (1 - turned.var(axis=0, ddof=1).sum() / turned.sum(axis=1).var(ddof=1))
    assert (custom.questionnaire, custom.complete, custom.incomplete) == ("mine", 4, 1)
    assert custom.alpha == pytest.approx(alpha)
    assert custom.ci == pytest.approx(item_agreement(turned)[1])
    wide, narrow = custom.ci, agreement(made_of, design, level=0.5)[0].ci
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    assert (umux.questionnaire, umux.complete, umux.incomplete) == ("umux-lite", 0, 0)
    assert math.isnan(umux.alpha)
    assert all(math.isnan(end) for end in umux.ci)
