"""What is drawn: the leading measure of every run, and one measure by cutoff."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.answer.drawing import drawn
from judged.charting import specification
from judged.curves import Curves, curve_of_scores
from judged.errors import MissingExtraError
from judged.evaluation.facts import order_of
from judged.evaluation.summary import best_first
from judged.web.filters import count

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged._types import Floats
    from judged.evaluation import Estimate
    from judged.web.leaderboard.board import Board

LINES = 8
"""Runs of a curve: as many colours are told apart."""
"""Runs of the chart of the leading measure."""
_LONGEST = 160  # pixels of a name at the end of a line


@dataclass(frozen=True)
class Line:
    """One run of a curve."""

    run: str
    # mean, low, high: K: the measure at each cutoff, and its interval; NaN where there is none
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class Curve:
    """A measure by cutoff."""

    name: str  # the measure, with `k` for the cutoff
    cutoffs: tuple[int, ...]  # K
    lines: tuple[Line, ...]  # the baseline and the best runs by the leading measure
    sentence: str  # what is drawn, and how
    header: tuple[str, ...]  # the same as a table of text
    rows: tuple[tuple[str, ...], ...]  # the same as a table of text


@dataclass(frozen=True)
class Drawing:
    """A chart for the page: title, sentence, and Vega-Lite; None where charts cannot be made."""

    title: str
    sentence: str
    spec: dict[str, Any] | None


def curves_of(board: Board) -> Curves | None:
    """Score the best runs at every cutoff; None where no curve was asked for."""
    if not board.series or board.mask is None:
        return None
    names = _drawn_runs(board)
    return board.kept("curves", board.series, names, make=lambda: _curves(board, names))


def _curves(board: Board, names: tuple[str, ...]) -> Curves:
    scores = board.workspace.scores(board.series, names)
    mask = board.mask
    return curve_of_scores(scores if mask is None or mask.all() else scores.over_topics(mask))


def curve_of(board: Board) -> Curve | None:
    """Give the curve as data."""
    made = curves_of(board)
    if made is None:
        return None
    table = made.by_run().grid()
    lines = tuple(
        Line(run, _row(made.mean, at), _row(made.low, at), _row(made.high, at)) for at, run in enumerate(made.run_names)
    )
    cutoffs = tuple(int(k) for k in made.at.tolist())
    return Curve(made.name, cutoffs, lines, _curve_sentence(board, made), table.header, table.rows)


def curve_drawing(board: Board) -> Drawing | None:
    """Draw the curve; None where none was asked for."""
    made = curves_of(board)
    if made is None:
        return None
    spec = board.kept("curve chart", made.run_names, board.series, make=lambda: _untitled(made.chart))
    return Drawing(made.title, _curve_sentence(board, made), spec)


def dots(board: Board) -> Drawing | None:
    """Draw the leading measure of every run with its interval, best first; None for a single run."""
    chart = best_first(board.lead, _lead_estimates(board), [board.baseline])
    if len(chart.table) < 2:
        return None
    spec = board.kept("dots", str(board.lead), make=lambda: _untitled(lambda: drawn(chart)))
    return Drawing(chart.title, chart.sentence, spec)


def _lead_estimates(board: Board) -> list[Estimate]:
    """Give the runs by the leading measure, best first."""
    if not board.workspace.lists or board.mask is None:
        return []
    lead = board.lead
    comparison = board.comparison()
    found = (
        tuple(one for one in board.estimates() if one.measure == str(lead))
        if comparison is None
        else comparison.measure(str(lead)).estimates
    )
    less = lead.properties.higher_is_better is False
    return [found[at] for at in order_of([one.value for one in found], lower_is_better=less)]


def _drawn_runs(board: Board) -> tuple[str, ...]:
    """Choose the best runs and the baseline, in the order of the leading measure."""
    best = [one.run for one in _lead_estimates(board)]
    if len(best) <= LINES:
        return tuple(best)
    chosen = {board.baseline, *[name for name in best if name != board.baseline][: LINES - 1]}
    return tuple(name for name in best if name in chosen)


def _curve_sentence(board: Board, made: Curves) -> str:
    total = len(board.workspace.lists)
    which = (
        f" {LINES} of {count(total, 'run')} are drawn: the baseline, and the best by {board.lead}."
        if len(made.run_names) < total
        else ""
    )
    return made.charts()["curves"].sentence + which


def _row(table: Floats, at: int) -> tuple[float, ...]:
    return tuple(table[at].tolist())


def _untitled(draw: Callable[[], Any]) -> dict[str, Any] | None:
    """Give a chart as Vega-Lite without its title, which the page has itself; None where altair is missing."""
    try:
        made = specification(draw())
    except MissingExtraError:
        return None
    made.pop("title", None)
    made["config"] = {**made.get("config", {}), "text": {"limit": _LONGEST}}
    return made
