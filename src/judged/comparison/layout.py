"""Tables of a comparison: the leaderboard, the matrix of pairs, the list of pairs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from judged.comparison.marks import BETTER, TIMES, WORSE, letters, together
from judged.decimals import beside, decimal, p_text
from judged.tables import Cell, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.comparison.compared import ComparedSystems
    from judged.comparison.pair import MeasureComparison, Pair
    from judged.evaluation import Estimate

_SIGNIFICANT = "*"


def leaderboard(comparison: ComparedSystems) -> Table:
    """Lay out one row a system, best first, one column a measure: number, interval, and which systems are worse."""
    runs, order, baseline = comparison.scores.run_names, comparison.order, comparison.choices.baseline
    names = letters(len(runs))
    columns = [_column(one, runs, order, names, baseline) for one in comparison.measures]
    measures = [one.name for one in comparison.measures]
    if baseline is not None:
        labels = [(f"{runs[at]} (baseline)" if runs[at] == baseline else runs[at],) for at in order]
        return Table(("run", *measures), _rows(labels, columns))
    labels = [(name, runs[at]) for name, at in zip(names, order, strict=True)]
    return Table(("", "run", *measures), _rows(labels, columns), labels=2)


def _rows(labels: Sequence[tuple[str, ...]], columns: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple((*label, *cells) for label, cells in zip(labels, zip(*columns, strict=True), strict=True))


def _column(
    one: MeasureComparison, runs: tuple[str, ...], order: Sequence[int], names: tuple[str, ...], baseline: str | None
) -> list[str]:
    best = one.best()
    ordered = [runs[at] for at in order]
    return [
        cell_of(one.estimates[at], mark_of(one, runs[at], ordered, names, baseline), best=at in best) for at in order
    ]


def cell_of(one: Estimate, mark: str = "", *, best: bool = False, interval: bool = True) -> Cell:
    """Write one aggregate with its interval and its mark."""
    if one.aggregate in {"sum", "count"} and not math.isnan(one.value):
        return Cell(f"{one.value:.0f}")
    rest = "" if one.ci is None or not interval else f"[{decimal(one.ci[0], 3)}, {decimal(one.ci[1], 3)}]"
    return Cell(decimal(one.value), rest=rest, mark=mark, best=best)


def mark_of(
    one: MeasureComparison, run: str, order: Sequence[str], names: tuple[str, ...], baseline: str | None
) -> str:
    """Mark the systems that this one is significantly better than, or whether it differs from the baseline."""
    if baseline is None:
        better = one.better_than.get(run, set())
        return together(names, {place for place, other in enumerate(order) if other in better})
    pair = one.by_runs.get((baseline, run))
    return "" if pair is None or pair.better is None else BETTER if pair.better == run else WORSE


def matrix(comparison: ComparedSystems, one: MeasureComparison) -> Table:
    """Lay out every pair: above the diagonal row minus column, below it the p-value that decides."""
    # A geometric mean has the ratio of row to column.
    runs, order = comparison.scores.run_names, comparison.order
    names = letters(len(runs))
    rows: list[tuple[str, ...]] = []
    for place, at in enumerate(order):
        cells = [_matrix_cell(one, runs[at], runs[other], place - column) for column, other in enumerate(order)]
        rows.append((names[place], runs[at], *cells))
    return Table(("", "run", *names), tuple(rows), labels=2)


def _matrix_cell(one: MeasureComparison, row: str, column: str, side: int) -> Cell:
    if side == 0:
        return Cell("")
    straight = one.by_runs.get((column, row))
    pair = straight or one.by_runs[row, column]
    mark = _SIGNIFICANT if pair.significant else ""
    if side > 0:
        return Cell(_short_p(pair), mark=mark)
    if pair.is_ratio:
        return Cell(f"{TIMES}{decimal(math.exp(pair.found.difference * (1 if straight else -1)), 3)}", mark=mark)
    return Cell(decimal(pair.found.difference * (1 if straight else -1), 3, "+"), mark=mark)


def pair_table(comparison: ComparedSystems, pairs: Sequence[Pair]) -> Table:
    """Lay out one row a pair: difference, interval, p-values, effect, topics won, and what could have been seen."""
    bayes = any(pair.found.posterior is not None for pair in pairs)
    adjusts = not comparison.choices.many and any(pair.found.correction not in {"", "none"} for pair in pairs)
    p_name = "P(higher)" if bayes else "adjusted p" if adjusts else "p"
    header = ("run", "against", "difference", p_name, "dz", "won-tied-lost", "detectable")
    rows = tuple(
        (
            pair.second,
            pair.first,
            _difference_cell(pair),
            p_cell(pair),
            "-" if math.isnan(pair.effects.dz) else f"{pair.effects.dz:+.2f}",
            f"{pair.wins.wins}-{pair.wins.ties}-{pair.wins.losses}",
            decimal(pair.detectable, 3),
        )
        for pair in pairs
    )
    return Table(header, rows, labels=2)


def _difference_cell(pair: Pair) -> Cell:
    text = f"{TIMES}{decimal(pair.shown_difference, 3)}" if pair.is_ratio else decimal(pair.shown_difference, 4, "+")
    limits = pair.shown_interval
    rest = "" if limits is None else f"[{decimal(limits[0], 3)}, {decimal(limits[1], 3)}]"
    return Cell(text, rest=rest, mark=_SIGNIFICANT if pair.significant else "")


def decisive(pair: Pair) -> float:
    """Give the p-value that decides; for ``bayes`` the probability that the second is higher."""
    return pair.found.decisive_p if pair.found.posterior is None else pair.found.posterior.higher


def p_cell(pair: Pair) -> str:
    """Write the p-value that decides, for a table."""
    p = decisive(pair)
    return _decimal(pair) if p >= 0.0095 or math.isnan(p) else p_text(p, pair.alpha).removeprefix("= ").replace(" ", "")


def _short_p(pair: Pair) -> str:
    return "<0.001" if decisive(pair) < 0.001 <= pair.alpha else _decimal(pair)


def _decimal(pair: Pair) -> str:
    """Write what decides with three decimals, or as many as show the verdict."""
    p, alpha = decisive(pair), pair.alpha
    limits = (0.0, alpha) if pair.found.posterior is None else (alpha / 2, 1 - alpha / 2)
    return "-" if math.isnan(p) else beside(p, limits, "f", 3)
