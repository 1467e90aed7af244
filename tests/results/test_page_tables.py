"""Tables of answers on pages: heads that sort, links, kinds of rows, numbers as they are printed."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from markupsafe import Markup

from judged.interface.pages.filters import blocks, table
from judged.results import CHANGE, COUNT, NUMBER, TEXT, Axis, Column, Show, Table

TABLE = Table(
    "runs",
    (
        Column("run", ["a<b", "-1"], TEXT, "Run"),
        Column("topics", [6980, 3], COUNT, "Topics"),
        Column("change", [-0.25, math.nan], CHANGE, "Change", ci=[(-0.5, 0.125), None]),
        Column("ways", [Markup('<a href="/x">x</a>'), Markup("")], Show(str), only="people"),
    ),
    kinds=["selected", ""],
)


def test_numbers_are_printed_and_names_are_not_touched() -> None:
    shown = table(TABLE)
    assert '<th scope="row" class="label"><bdi>a&lt;b</bdi></th><td>6,980</td>' in shown
    assert '<td>\N{MINUS SIGN}0.2500 <span class="secondary">[\N{MINUS SIGN}0.500, +0.125]</span></td>' in shown
    assert '<th scope="row" class="label"><bdi>-1</bdi></th><td>3</td><td>\N{EN DASH}</td>' in shown
    assert '<td><a href="/x">x</a></td></tr>' in shown


def test_rows_and_cells_are_set_off_and_lead_somewhere() -> None:
    shown = table(TABLE.changed("run", links=['/run?name="a"', ""]).showing("run", "topics"))
    assert (
        '<tr class="selected"><th scope="row" class="label"><a href="/run?name=&quot;a&quot;" aria-current="true">'
        in shown
    )
    assert shown.count("<th ") == 4
    assert TABLE.take([1]).kinds == [""]


def test_heads_sort() -> None:
    keys = {"run": "name", "topics": "topics", "change": "change"}
    shown = table(TABLE, address={"q": "x", "page": 3}, sort="-topics", keys=keys, rising=["name"])
    assert '<a href="?q=x&amp;sort=name"><bdi>Run' in shown
    assert 'aria-sort="descending"><a href="?q=x&amp;sort=topics"><bdi>Topics' in shown
    assert '<a href="?q=x&amp;sort=-change"><bdi>Change' in shown
    assert '<th scope="col"><bdi>ways</bdi></th>' in shown


def test_intervals_of_one_unit_are_drawn_on_an_axis() -> None:
    scores = Column("score", [0.2, None], ci=[(0.1, 0.3), None])
    drawn = Table("scores", (scores, Column("difference", [0.2, 0.3], ci=[(0.1, 0.3)] * 2))).with_drawn_intervals()
    assert drawn.column("score").axis == Axis(0.09, 0.31, "CI")
    assert drawn.column("difference").axis == Axis(-0.015, 0.315, "CI", 0.0)  # contains no difference
    assert Column("change", [0.2], ci=[(-0.1, 0.3)]).drawn().axis == Axis(-0.12, 0.32, "CI", 0.0)
    assert Column("score", [0.2], ci=[None]).drawn().axis is None
    assert Column("score", [0.2], ci=[(0.1, 0.3)], only="data").drawn().axis is None
    assert "[" not in blocks([Table("scores", (scores,))])
    assert "[0.100, 0.300]" in blocks([Table("scores", (replace(scores, show=NUMBER),), folded=True)])


def test_intervals_of_several_units_are_written_only_without_a_drawing() -> None:
    mixed = Column("value", [0.5, 20.0], ci=[(0.4, 0.6), (18.0, 22.0)], each=[NUMBER, COUNT])
    relative = Column("relative", [0.1, 0.2], ci=[(0.0, 0.2), (0.1, 0.3)])
    assert Table("metrics", (mixed,)).with_drawn_intervals().column("value").ci == mixed.ci
    both = Table("metrics", (mixed, relative)).with_drawn_intervals()
    assert (both.column("value").ci, both.column("relative").ci) == (None, relative.ci)


@pytest.mark.parametrize(("width", "is_wide"), [(30, False), (31, True)])
def test_wide_tables_span_the_page(width: int, is_wide: bool) -> None:
    names = ("a", "b", "c", "d", "e")  # of two characters and a gap of two: 20 of 80 characters
    columns = [Column(name * 2, ["x"], TEXT) for name in names]
    table = Table("t", (*columns, Column("long", ["x" * 28], TEXT), Column("f", ["x" * (width - 2)], TEXT)))
    assert ("wide-block" in blocks([table])) == is_wide
