"""The figures of the page: which topics are drawn, and the sentences that say what is seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.decimals import decimal
from judged.errors import MissingExtraError
from judged.web.comparing import charts

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.web.comparing.two import Two
    from judged.web.workspace import Workspace

BARS, POINTS, APART = 400, 1000, 20
"""Bars and points that can still be told apart, and points that stand out where there are more."""
_WIDE, _APART, _OVER = 100, 0.06, 0.25  # of a bar: wide ones stand apart, narrow ones must not let light through
_QUERY = 120  # characters of a query in a tooltip


@dataclass(frozen=True)
class Figure:
    """A chart and what it shows; ``spec`` is None where no library is there to draw it."""

    title: str
    sentence: str
    spec: dict[str, Any] | None


def figures(workspace: Workspace, two: Two) -> tuple[Figure, Figure] | None:
    """Draw the differences and the scores; None where there is nothing to see, as no topic differs."""
    found: tuple[Figure, Figure] | None = workspace.remember((*two.key, "figures"), lambda: _figures(workspace, two))
    return found


def _figures(workspace: Workspace, two: Two) -> tuple[Figure, Figure] | None:
    if not np.nan_to_num(two.differences).any():
        return None
    known = np.flatnonzero(~np.isnan(two.differences))
    order = known[np.argsort(-two.side * two.differences[known], kind="stable")]
    return _profile(workspace, two, order), _scatter(workspace, two, order)


def _profile(workspace: Workspace, two: Two, order: np.ndarray[Any, Any]) -> Figure:
    n, bars = len(order), min(len(order), BARS)
    places = np.linspace(0, n - 1, bars).round().astype(np.int64)
    edges = np.linspace(0, n, bars + 1)
    over = _APART if n <= _WIDE else -_OVER * n / bars
    rows = [
        {
            "left": round(max(0.0, edges[at] + over), 3),
            "right": round(min(float(n), edges[at + 1] - over), 3),
            **_datum(workspace, two, int(order[place])),
        }
        for at, place in enumerate(places.tolist())
    ]
    cut = "" if bars == n else f" Of {n:,} topics, sorted, every {n / bars:.0f}th is drawn, and the first and last."
    named = [
        f"topic {two.query_ids[at]} ({decimal(float(two.differences[at]), 3, '+')})" for at in (order[0], order[-1])
    ]
    ends = "from " + " to ".join(named) if n > 1 else named[0]
    said = (
        f"{two.second} minus {two.first} on each topic, {ends}. Blue: {two.second} is {two.words[0]};"
        f" orange: {two.first} is.{cut}{_lower(two)}"
    )
    names = (two.first, two.second)
    spec = _drawn(lambda: charts.profile(rows, str(two.measure), names, n))
    return Figure("Differences by topic", said, spec)


def _scatter(workspace: Workspace, two: Two, order: np.ndarray[Any, Any]) -> Figure:
    many = len(order) > POINTS
    largest = np.argsort(-np.abs(two.differences[order]), kind="stable")[:APART]
    shown = order[np.sort(largest)] if many else order
    rows = [_datum(workspace, two, at) for at in shown.tolist()]
    first, second = two.values
    cells = charts.cells_of(first[order], second[order]) if many else []
    above = "below" if two.side < 0 else "above"
    drawn = f"One point a topic; {above} the dashed line {two.second} is {two.words[0]}."
    if many:
        drawn = (
            f"{len(order):,} topics counted by cells, darker where there are more; points are the {APART} largest"
            f" differences. {above.capitalize()} the dashed line {two.second} is {two.words[0]}."
        )
    names = (two.first, two.second)
    spec = _drawn(lambda: charts.scatter(rows, str(two.measure), names, cells))
    return Figure("One run against the other", drawn, spec)


def _datum(workspace: Workspace, two: Two, at: int) -> dict[str, Any]:
    first, second = two.values
    query, difference = workspace.query(two.query_ids[at]), float(two.differences[at])
    gain = two.side * difference
    return {
        "topic": two.query_ids[at],
        "query": query if len(query) <= _QUERY else f"{query[: _QUERY - 1]}…",
        "first": round(float(first[at]), 6),
        "second": round(float(second[at]), 6),
        "difference": round(difference, 6),
        "ahead": "neither" if gain == 0 else "second" if gain > 0 else "first",
    }


def _lower(two: Two) -> str:
    return " Lower is better here: a bar downwards is good." if two.side < 0 else ""


def _drawn(make: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    try:
        return make()
    except MissingExtraError:
        return None
