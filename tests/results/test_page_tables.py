"""Tables of answers on pages: heads that sort, links, kinds of rows, numbers as they are printed."""

from __future__ import annotations

import math

from markupsafe import Markup

from judged.interface.pages.filters import table
from judged.results import CHANGE, COUNT, TEXT, Column, Show, Table

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
