"""What the page that compares two runs shows, and how it is put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from judged.comparison.comparison import intervals
from judged.comparison.pair import level_text
from judged.web.comparing.by_slice import BySlice, attributes, by_slice
from judged.web.comparing.deciding import Deciding, deciding
from judged.web.comparing.topics import TopicTable, topic_table
from judged.web.comparing.two import two_runs
from judged.web.workspace import OF_ALL_TOPICS

if TYPE_CHECKING:
    from judged.comparison import MeasureComparison
    from judged.web.comparing.asked import Asked
    from judged.web.comparing.two import Two
    from judged.web.workspace import Workspace


@dataclass(frozen=True)
class MeasureRow:
    """Both runs by one measure; numbers of a test are NaN where it is not tested."""

    measure: str
    # first, second: what the measure makes of the scores of all topics; a mean, as a rule
    first: float
    second: float
    difference: float  # second minus first; for geometric means second / first
    interval: tuple[float, float] | None  # of the difference, as wide as the correction asks
    level: str  # of the interval
    # p, p_alone: corrected for all measures of the table, and not corrected
    p: float
    p_alone: float
    dz: float  # the mean of the differences over their standard deviation
    # wins, ties, losses: topics on which the second run is better, equal, worse
    wins: int | None
    ties: int | None
    losses: int | None
    n: int | None  # topics with a score for both
    detectable: float  # the mean difference that such topics would show four times out of five
    better: str  # the run that is shown to be better; empty where neither is
    is_ratio: bool  # whether `difference` is a ratio
    lower_is_better: bool
    sentence: str  # what may be concluded, and what not


@dataclass(frozen=True)
class Compared:
    """Two runs over the same topics."""

    # first, second, measure, where: what was chosen: the runs, the measure whose topics are listed, and the expression
    # that chose the topics
    first: str
    second: str
    measure: str
    where: str
    verdict: MeasureRow  # by this measure
    measures: tuple[MeasureRow, ...]  # by all measures that are tested together
    caption: str  # by which test, with which correction
    intervals: str  # what the intervals of the measures hold together; empty for one measure
    # ahead, behind: how the second run is called where it wins and loses: better and worse, or higher and lower for a
    # measure that has no good side
    ahead: str
    behind: str
    deciding: Deciding  # what rests on single topics
    topics: TopicTable  # every topic, a page at a time
    slices: BySlice | None  # the same by slice, where that was asked for
    attributes: tuple[str, ...]  # by which it could be asked for
    notes: tuple[str, ...]  # what should be known before the numbers are used


def compared(workspace: Workspace, asked: Asked) -> Compared:
    """Compare two runs."""
    two = two_runs(workspace, asked)
    rows = tuple(_row(one, two) for one in two.comparison.measures)
    name = str(two.measure)
    by = asked.by.strip()
    return Compared(
        first=two.first,
        second=two.second,
        measure=name,
        where=two.where,
        verdict=next(row for row in rows if row.measure == name),
        measures=rows,
        caption=two.comparison.pair_caption if two.comparison.pairs else two.comparison.caption,
        intervals=intervals(two.comparison.pairs, two.comparison.choices, two.compared.family),
        ahead=two.words[0],
        behind=two.words[1],
        deciding=deciding(workspace, two),
        topics=topic_table(workspace, two, asked),
        slices=by_slice(workspace, two, by) if by else None,
        attributes=attributes(workspace),
        notes=_notes(workspace, two),
    )


def _notes(workspace: Workspace, two: Two) -> tuple[str, ...]:
    """Say what should be known; where topics are left out, that it is said of all of them."""
    known = two.comparison.warnings
    return (OF_ALL_TOPICS, *known) if known and len(two.query_ids) < len(workspace.query_ids) else known


def _row(one: MeasureComparison, two: Two) -> MeasureRow:
    means = {estimate.run: estimate.value for estimate in one.estimates}
    pair, none = one.by_runs.get((two.first, two.second)), float("nan")
    wins, losses = (None, None) if pair is None else (pair.wins.wins, pair.wins.losses)
    return MeasureRow(
        measure=one.name,
        first=means[two.first],
        second=means[two.second],
        difference=none if pair is None else pair.shown_difference,
        interval=None if pair is None else pair.shown_interval,
        level=level_text(two.comparison.choices.level if pair is None else pair.found.level),
        p=none if pair is None else pair.found.decisive_p,
        p_alone=none if pair is None else pair.found.p,
        dz=none if pair is None else pair.effects.dz,
        wins=losses if one.lower_is_better else wins,
        ties=None if pair is None else pair.wins.ties,
        losses=wins if one.lower_is_better else losses,
        n=None if pair is None else pair.found.n,
        detectable=none if pair is None else pair.detectable,
        better="" if pair is None else pair.better or "",
        is_ratio=pair is not None and pair.is_ratio,
        lower_is_better=one.lower_is_better,
        sentence=f"{one.untested}." if pair is None else pair.sentence,
    )
