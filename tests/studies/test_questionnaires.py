"""Scores of questionnaires by hand and as published, and how far items agree."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from judged.errors import InputError
from judged.studies.questionnaires import (
    FORMS,
    Item,
    Questionnaire,
    agreement,
    item_agreement,
    scores,
    sus_from_umux_lite,
)
from judged.studies.records import StudyRecords
from studies.study_designs import make_design


@pytest.mark.parametrize(
    ("of", "answers", "score"),
    [
        # Brooke 1996, the sheet that is filled in: 4 + 1 + 1 + 4 + 1 + 2 + 1 + 1 + 4 + 3 = 22, times 2.5
        ("sus", [5, 4, 2, 1, 2, 3, 2, 4, 5, 2], 55.0),
        ("sus", [5, 1] * 5, 100.0),
        ("sus", [1, 5] * 5, 0.0),
        ("umux-lite", [6, 7], (6 + 7 - 2) * 100 / 12),
        ("tlx", [25, 0, 50, 75, 100, 20], (25 + 0 + 50 + 75 + 100 + 20) / 6),
        ("ease", [6], 6.0),
        ("satisfaction", [4], 4.0),
    ],
)
def test_scores(of: str, answers: list[float], score: float) -> None:
    assert Questionnaire(of).score(np.array(answers, float)) == pytest.approx(score)


def test_sus_that_is_expected_of_umux_lite() -> None:
    """Lewis, Utesch and Maher 2013: 0.65 * ((6 + 7 - 2) * 100 / 12) + 22.9."""
    assert sus_from_umux_lite(11 * 100 / 12) == pytest.approx(82.4833, abs=1e-4)


def test_forms() -> None:
    assert {name: (len(form.items), form.scores) for name, form in FORMS.items()} == {
        "sus": (10, (0, 100)),
        "umux-lite": (2, (0, 100)),
        "tlx": (6, (0, 100)),
        "ease": (1, (1, 7)),
        "satisfaction": (1, (1, 5)),
    }
    assert [item.reversed for item in FORMS["sus"].items] == [False, True] * 5
    assert len(FORMS["tlx"].items[0].values) == 21
    assert [name for name, form in FORMS.items() if not form.higher_is_better] == ["tlx"]


def test_own_questionnaires() -> None:
    items = (
        Item("clear", "Was it clear?", (1, 4), words=("no", "hardly", "mostly", "yes")),
        Item("odd", "Was it odd?", (1, 4), reversed=True),
        Item("why", "Why?", open=True),
    )
    custom = Questionnaire("custom", "mine", "end", items=items)
    assert (custom.scores, custom.score(np.array([4.0, 2.0]))) == ((1, 4), 3.5)  # (4 + (5 - 2)) / 2
    mixed = Questionnaire("custom", "mine", "end", items=(items[0], Item("other", "?", (0, 10))))
    assert mixed.scored == ()
    german = Questionnaire("ease", wording=("Wie leicht war das?",), ends=("schwer", "leicht"))
    assert (german.items[0].text, german.items[0].words) == ("Wie leicht war das?", ("schwer", "leicht"))


@pytest.mark.parametrize(
    ("fields", "fix"),
    [
        ({"of": "suss"}, "write sus"),
        ({"of": "custom", "name": "mine"}, r"\[\[questionnaire.item\]\]"),
        ({"of": "sus", "items": (Item("1", "?"),)}, 'of = "custom"'),
        ({"of": "sus", "wording": ("one",)}, "write 10 texts"),
        ({"of": "sus", "ends": ("one",)}, "write two labels"),
        (
            {"of": "custom", "name": "m", "after": "end", "items": (Item("1", "?"), Item("1", "!"))},
            "rename one",
        ),
    ],
)
def test_what_is_no_questionnaire(fields: dict[str, Any], fix: str) -> None:
    with pytest.raises(InputError, match=fix):
        Questionnaire(**fields)


@pytest.mark.parametrize("fields", [{"scale": (5, 1)}, {"step": 0.3}, {"words": ("a", "b", "c")}])
def test_what_is_no_item(fields: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Item("1", "?", **fields)


def records(answers: list[Any]) -> StudyRecords:
    """Make records of answers: participant, position, system, questionnaire, item, value."""
    names = ("participant", "position", "system", "questionnaire", "item", "value")
    trials = [
        {"participant": person, "position": i, "query_id": f"t{i}", "system": f"s{i % 2}"}
        for person in ("a", "b")
        for i in (1, 2)
    ]
    rows = [dict(zip(names, row, strict=True)) for row in answers]
    people = [{"participant": "a"}, {"participant": "b"}]
    return StudyRecords.of({"participants": people, "trials": trials, "answers": rows})


def test_scores_of_records_bound_what_is_missing() -> None:
    design = make_design(
        questionnaires=(Questionnaire("ease"), Questionnaire("sus"), Questionnaire("umux-lite", after="end"))
    )
    sus = [("a", 0, "s1", "sus", f"{i}", 3.0) for i in range(1, 11)]
    part = [("b", 0, "s1", "sus", f"{i}", 5.0) for i in (1, 2, 3)]
    others = [("a", 2, "", "ease", "1", 6.0), ("a", 1, "", "ease", "1", 9.0), ("b", 0, "", "umux-lite", "1", None)]
    score_rows = {
        (row["participant"], row["position"], row["questionnaire"]): row
        for row in scores(records([*sus, *part, *others]), design).to_pylist()
    }
    assert (score_rows["a", 2, "ease"]["score"], score_rows["a", 2, "ease"]["system"]) == (6, "s0")
    assert (
        score_rows["a", 0, "sus"]["score"],
        score_rows["a", 0, "sus"]["sus"],
        score_rows["a", 0, "sus"]["items"],
    ) == (50, 50, 10)
    # 4 + 0 + 4 of three items; the other seven add 0 to 4 each, all times 2.5
    missing = score_rows["b", 0, "sus"]
    assert (missing["score"], missing["low"], missing["high"], missing["items"]) == (None, 20, 90, 3)
    strange = score_rows["a", 1, "ease"]  # 9 is no value of the scale
    assert (strange["score"], strange["low"], strange["high"], strange["items"]) == (None, 1, 7, 0)
    assert score_rows["b", 0, "umux-lite"]["high"] == 100
    assert score_rows["b", 0, "umux-lite"]["sus"] is None


SHROUT_FLEISS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]


def test_cronbach_alpha_of_a_published_table() -> None:
    """Shrout and Fleiss 1979: ICC(3,4), which is alpha, is 0.91: 1 - 1.02 / 11.24 of the mean squares.

    The interval of Feldt by hand: 1 - (1 - alpha) * 3.5764 and 1 - (1 - alpha) / 6.4277, the 97.5 % points of F with 5
    and 15, and with 15 and 5 degrees of freedom.
    """
    alpha, ci = item_agreement(np.array(SHROUT_FLEISS, float))
    assert alpha == pytest.approx(0.9093, abs=1e-4)
    assert ci == pytest.approx((1 - (1 - alpha) * 3.5764, 1 - (1 - alpha) / 6.4277), abs=1e-4)
    # k / (k - 1) * (1 - sum of the items' variances / variance of the sums)
    table = np.array(SHROUT_FLEISS, float)
    by_definition = 4 / 3 * (1 - table.var(axis=0, ddof=1).sum() / table.sum(axis=1).var(ddof=1))
    assert alpha == pytest.approx(by_definition)
    assert math.isnan(item_agreement(table[:1])[0])
    assert math.isnan(item_agreement(table[:, :1])[0])


def test_agreement_leaves_out_what_is_not_whole() -> None:
    design = make_design(questionnaires=(Questionnaire("umux-lite"), Questionnaire("ease")))
    rated = [("a", "s0", "1", 7), ("a", "s0", "2", 7), ("a", "s1", "1", 3), ("a", "s1", "2", 3), ("b", "s0", "1", 3)]
    rows = [(person, 0, system, "umux-lite", item, value) for person, system, item, value in rated]
    (item_agreement_row,) = agreement(records(rows), design)
    assert (item_agreement_row.questionnaire, item_agreement_row.complete, item_agreement_row.incomplete) == (
        "umux-lite",
        2,
        1,
    )
    assert item_agreement_row.alpha == pytest.approx(1.0)
