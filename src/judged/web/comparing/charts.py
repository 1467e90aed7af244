"""Two runs topic by topic: differences, sorted, and one score against the other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.answer import Chart, Column
from judged.charting import PALETTE
from judged.decimals import decimal

if TYPE_CHECKING:
    from judged.answer import Table
    from judged.web.comparing.answer import ComparePage

DRAWN = 400
"""Topics that can still be told apart in a chart."""
_COLOURS = {"second": PALETTE[0], "first": PALETTE[1], "neither": PALETTE[7]}


def figures(page: ComparePage) -> tuple[Chart, ...]:
    """Draw both charts; nothing where no topic differs."""
    known = np.flatnonzero(~np.isnan(page.gains))
    if not page.gains[known].any():
        return ()
    order = known[np.argsort(-page.gains[known], kind="stable")]
    places = np.linspace(0, len(order) - 1, min(len(order), DRAWN)).round().astype(np.int64)
    drawn = order[places].tolist()
    cut = "" if len(drawn) == len(order) else f" Of {len(order):,} topics, sorted by difference, {DRAWN} are drawn."
    table = _drawn(page, drawn)
    return _differences(page, table, cut), _scores(page, table, cut)


def _drawn(page: ComparePage, rows: list[int]) -> Table:
    ahead = ["neither" if gain == 0 else "second" if gain > 0 else "first" for gain in page.gains[rows]]
    shown = ("query_id", "query", "first", "second", "difference")
    table = page.topics.take(rows).showing(*shown[: 1 + (page.workspace.topics is not None)], *shown[2:])
    columns = (*table.columns, Column("ahead", ahead, only="data"))
    return replace(table, name="drawn", columns=columns, only="people")


def _differences(page: ComparePage, table: Table, cut: str) -> Chart:
    first, second = page.comparison.scores.run_names
    ids, differences = table.column("query_id").values, table.column("difference").values
    ends = [f"topic {ids[at]} ({decimal(differences[at], 3, '+')})" for at in (0, -1)]
    which = f"from {ends[0]} to {ends[1]}" if len(ids) > 1 else ends[0]
    colours = f"Blue: {second} is {page.words[0]}; orange: {first} is."
    lower = " Lower is better here: a bar downwards is good." if page.lower_is_better else ""
    return Chart(
        name="differences",
        title="Differences by topic",
        table=table,
        sentence=f"{second} minus {first} on each topic, {which}. {colours}{cut}{lower}",
        kind="columns", x="query_id", y="difference", colour="ahead", colours=_COLOURS, legend=False,
        x_title="topics, sorted by difference", y_title=f"difference in {page.measure}",
    )  # fmt: skip


def _scores(page: ComparePage, table: Table, cut: str) -> Chart:
    first, second = page.comparison.scores.run_names
    side = "below" if page.lower_is_better else "above"
    scores: list[Any] = [*table.column("first").values, *table.column("second").values]
    ends = (min(scores), max(scores))
    return Chart(
        name="scores",
        title="One run against the other",
        table=table,
        sentence=f"One point a topic; {side} the dashed line {second} is {page.words[0]}.{cut}",
        kind="points", x="first", y="second", colour="ahead", colours=_COLOURS, legend=False,
        diagonal=True, reach={"x": ends, "y": ends},
        x_title=f"{page.measure} of {first}", y_title=f"{page.measure} of {second}",
    )  # fmt: skip
