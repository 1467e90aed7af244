"""On which slices of the topics the two runs differ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from judged.data.compute import pc
from judged.slicing import compare_slices, slice_topics
from judged.web.comparing.asked import concerning
from judged.web.workspace import RESAMPLES

if TYPE_CHECKING:
    from judged.comparison import Pair
    from judged.slicing import SliceComparison
    from judged.web.comparing.two import Two
    from judged.web.workspace import Workspace

_MANY = 12  # values: a text with more makes no slices
_OF_JUDGMENTS, _OF_TEXTS = ("relevant_band", "relevant"), ("kind", "length", "words")


@dataclass(frozen=True)
class SliceRow:
    """Both runs on one slice."""

    name: str
    expression: str  # which topics are in it
    n: int  # topics with a score for both
    difference: float  # second minus first; for geometric means second / first
    interval: tuple[float, float] | None
    p: float  # corrected for the slices; NaN where nothing is tested
    # wins, ties, losses: topics on which the second run is better, equal, worse; None where nothing is tested
    wins: int | None
    ties: int | None
    losses: int | None
    detectable: float  # the mean difference that such topics would show four times out of five
    better: str  # the run that is shown to be better; empty where neither is
    small: bool  # whether it has too few topics to be tested


@dataclass(frozen=True)
class BySlice:
    """Both runs on every slice."""

    by: str  # the attribute
    rows: tuple[SliceRow, ...]  # all topics, then the slices as they come; small ones last
    sentences: tuple[str, ...]  # what may be concluded
    caption: str  # by which test, with which correction
    notes: tuple[str, ...]  # what should be known before the numbers are used


def attributes(workspace: Workspace) -> tuple[str, ...]:
    """Name the attributes that make slices: those that were given, then some that follow from the data."""
    found: tuple[str, ...] = workspace.remember(("attributes that make slices",), lambda: _attributes(workspace))
    return found


def _attributes(workspace: Workspace) -> tuple[str, ...]:
    known = workspace.known()
    columns = {name: known.column(name) for name in known.names}
    given = [
        name
        for name, column in columns.items()
        if (values := pc.count_distinct(column).as_py()) and (str(column.type) != "string" or values <= _MANY)
    ]
    made = (*_OF_JUDGMENTS, *(_OF_TEXTS if workspace.topics is not None else ()))
    return tuple(dict.fromkeys((*given, *(name for name in made if name not in columns))))


def by_slice(workspace: Workspace, two: Two, by: str) -> BySlice:
    """Compare the two on each slice of an attribute."""
    made: BySlice = workspace.remember((*two.key, "by", by), lambda: _made(workspace, two, by))
    return made


def _made(workspace: Workspace, two: Two, by: str) -> BySlice:
    with concerning("by"):
        slicing = slice_topics(workspace.known((by,), two.first), by, query_ids=two.query_ids)
        found = compare_slices(
            two.scores, slicing, two.first, measures=(two.measure,), correction="holm", resamples=RESAMPLES
        )
    return BySlice(by, _rows(found, two), found.sentences, found.caption, _own(found, two))


def _rows(found: SliceComparison, two: Two) -> tuple[SliceRow, ...]:
    expressions = {one.name: one.expression for one in found.slicing.slices}
    overall = found.overall.pair(two.first, two.second, str(two.measure))
    made = [_row("all topics", "", overall.found.n, overall.shown_difference, overall, two)]
    made += [
        _row(row.slice, expressions[row.slice], row.n, row.difference, row.pair, two)
        for row in found.of(str(two.measure), two.second)
    ]
    return tuple(made)


def _row(name: str, expression: str, n: int, difference: float, pair: Pair | None, two: Two) -> SliceRow:
    if pair is None:
        return SliceRow(name, expression, n, difference, None, math.nan, None, None, None, math.nan, "", small=True)
    wins, losses = pair.wins.wins, pair.wins.losses
    return SliceRow(
        name=name,
        expression=expression,
        n=n,
        difference=difference,
        interval=pair.shown_interval,
        p=pair.found.decisive_p,
        wins=wins if two.side > 0 else losses,
        ties=pair.wins.ties,
        losses=losses if two.side > 0 else wins,
        detectable=pair.detectable,
        better=pair.better or "",
        small=False,
    )


def _own(found: SliceComparison, two: Two) -> tuple[str, ...]:
    """Give the warnings that the comparison over all topics does not have already."""
    return tuple(text for text in found.warnings if text not in two.comparison.warnings)
