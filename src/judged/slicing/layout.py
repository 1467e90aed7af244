"""Tables and texts of scores and comparisons by slice."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from judged.comparison.captions import tested
from judged.comparison.forms import wrapped
from judged.comparison.layout import decisive, p_cell
from judged.comparison.marks import BETTER, TIMES, WORSE, fixed
from judged.comparison.sentences import name_of_correction
from judged.evaluation.table import plain
from judged.slicing.sliced import ALL, TOPIC_MEAN
from judged.tables import Cell, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.comparison import Pair
    from judged.evaluation import Estimate
    from judged.slicing.compared import SliceComparison, SlicePair
    from judged.slicing.sliced import SlicedScores

FEW = "(few)"
_INTERVALS = 3  # columns: more of them show no intervals
_SIGNIFICANT = "*"


def score_table(found: SlicedScores, columns: Sequence[tuple[str, str, str]], title: str) -> Table:
    """Lay out one row a slice and way to average.

    Parameters
    ----------
    found
        What to lay out.
    columns
        Run, measure and heading of each.
    title
        The heading of the slices.
    """
    by = {(one.slice, one.estimate.run, one.estimate.measure): one for one in found.estimates}
    marks = {(one.slice, one.run, one.measure): _mark(one.better) for one in found.findings}
    weight = found.weights[:1]
    rows: list[tuple[str, ...]] = []
    for name in found.names:
        first = by[name, columns[0][0], columns[0][1]]
        label = f"{name} {FEW}" if first.small else name
        shares = [f"{first.share:.0%}"] + [f"{first.weight:.0%}" for _ in weight]
        cells = [
            _cell(by[name, run, measure].estimate, marks.get((name, run, measure), ""), interval=_shown(columns))
            for run, measure, _ in columns
        ]
        rows.append((label, str(first.n), *shares, *cells))
    rows += _average_rows(found, columns, [""] * (1 + len(weight)))
    header = (title, "topics", "share", *(f"of {name}" for name in weight), *(name for _, _, name in columns))
    return Table(header, tuple(rows))


def _average_rows(
    found: SlicedScores, columns: Sequence[tuple[str, str, str]], gap: Sequence[str]
) -> list[tuple[str, ...]]:
    by = {(one.name, one.run, one.measure): one for one in found.averages}
    names = [name for name in dict.fromkeys(one.name for one in found.averages) if name != TOPIC_MEAN]
    made: list[tuple[str, ...]] = []
    for name in names:
        cells: list[str] = []
        for run, measure, _ in columns:
            one = by.get((name, run, measure))
            cells.append("-" if one is None else Cell(plain(one.value), rest=_limits(one.ci, show=_shown(columns))))
        first = by.get((name, columns[0][0], columns[0][1]))
        made.append((name, "" if first is None else str(first.topics), *gap, *cells))
    return made


def _shown(columns: Sequence[object]) -> bool:
    return len(columns) <= _INTERVALS


def _mark(better: bool | None) -> str:
    return "" if better is None else BETTER if better else WORSE


def _cell(one: Estimate, mark: str, *, interval: bool) -> Cell:
    if one.aggregate in {"sum", "count"} and not math.isnan(one.value):
        return Cell(f"{one.value:.0f}")
    return Cell(plain(one.value), rest=_limits(one.ci, show=interval), mark=mark)


def _limits(ci: tuple[float, float] | None, *, show: bool = True) -> str:
    return "" if ci is None or not show else f"[{fixed(ci[0], 3)}, {fixed(ci[1], 3)}]"


def average_table(found: SlicedScores) -> Table:
    """Lay out one row a way to average and run, one column a measure."""
    by = {(one.name, one.run, one.measure): one for one in found.averages}
    several = len(found.scores.runs) > 1
    rows: list[tuple[str, ...]] = []
    for name, run in dict.fromkeys((one.name, one.run) for one in found.averages):
        ones = [by.get((name, run, measure)) for measure in found.scores.measure_names]
        cells = ["-" if one is None else Cell(plain(one.value), rest=_limits(one.ci)) for one in ones]
        rows.append((name, *([run] if several else []), *cells))
    labels = ("average", *(["run"] if several else []))
    return Table((*labels, *found.scores.measure_names), tuple(rows), labels=len(labels))


def _score_tables(found: SlicedScores) -> list[Table]:
    if len(found.scores.runs) == 1:
        return [found.table()]
    return [found.table(name) for name in found.scores.measure_names]


def score_caption(found: SlicedScores) -> str:
    """Say what the marks and the intervals mean."""
    method, parts = found.method, list[str]()
    if found.tests:
        drawn = any(one.rest.resamples for one in found.findings)
        corrected = f", p corrected by Holm for {found.tests} tests" if found.tests > 1 else ""
        parts.append(
            f"{BETTER} the slice scores significantly better than the other topics, {WORSE} worse"
            f" ({'permutation' if drawn else 'Welch'} test{corrected}, alpha = {1 - method.level:g})"
        )
    if found.slicing.small.any():
        parts.append(f"{FEW}: fewer topics than the slice is judged by, not tested")
    intervals = {
        "bootstrap": f"[{method.level:.0%} interval: bootstrap, {method.resamples} resamples, seed {method.seed}]",
        "t": f"[{method.level:.0%} interval: Student's t]",
        "none": "",
    }
    runs, measures = len(found.scores.runs), len(found.scores.measures)
    parts.append(intervals[method.method] if (measures if runs == 1 else runs) <= _INTERVALS else "")
    return "; ".join(part for part in parts if part)


def score_text(found: SlicedScores, width: int | None) -> str:
    """Write the tables and what may be concluded."""
    blocks = [table.text(width=width) for table in _score_tables(found)]
    blocks += [wrapped(score_caption(found), width), "\n".join(wrapped(one, width) for one in found.sentences)]
    return "\n\n".join(block for block in blocks if block)


def score_markdown(found: SlicedScores) -> str:
    """Write the same in Markdown."""
    blocks = [table.markdown() for table in _score_tables(found)]
    blocks += [f"{caption}." if (caption := score_caption(found)) else "", _listed(found.sentences)]
    return "\n\n".join(block for block in blocks if block)


def _listed(sentences: Sequence[str]) -> str:
    return "\n".join(f"- {one}" for one in sentences)


def comparison_table(found: SliceComparison, rows: Sequence[SlicePair]) -> Table:
    """Lay out one row a slice, of one measure and pair, under the one of all topics."""
    overall = found.overall.pair(rows[0].first, rows[0].second, rows[0].measure)
    bayes = found.choices.test == "bayes"
    p_name = "P(higher)" if bayes else "p" if found.choices.correction == "none" else "adjusted p"
    header = ("slice", "topics", "difference", p_name, "won-tied-lost", "detectable")
    made = [_pair_row(ALL, overall)]
    for row in rows:
        if row.pair is not None:
            made.append(_pair_row(row.slice, row.pair))
        else:
            shown = _size(row.difference, ratio=overall.is_ratio)
            made.append((f"{row.slice} {FEW}", str(row.n), Cell(shown), "too few", "-", "-"))
    return Table(header, tuple(made))


def _pair_row(name: str, pair: Pair) -> tuple[str, ...]:
    return (
        name,
        str(pair.found.n),
        Cell(
            _size(pair.shown_difference, ratio=pair.is_ratio),
            rest=_limits(pair.shown_interval),
            mark=_SIGNIFICANT if pair.significant else "",
        ),
        p_cell(decisive(pair)),
        f"{pair.wins.wins}-{pair.wins.ties}-{pair.wins.losses}",
        fixed(pair.detectable, 3),
    )


def _size(difference: float, *, ratio: bool) -> str:
    return f"{TIMES}{difference:.3f}" if ratio and not math.isnan(difference) else fixed(difference, 4, "+")


def comparison_caption(found: SliceComparison) -> str:
    """Say by which test, with which correction and alpha, and what a row is."""
    choices = found.choices
    pairs = [row.pair for row in found.rows if row.pair is not None]
    if not pairs:
        return "no slice is tested: all have too few topics"
    sizes = sorted(set(found.families.values()))
    count = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    several = f", of {'all measures together' if choices.family == 'all' else 'each measure'}"
    of = several if len(found.measures) > 1 else ""
    if choices.test == "bayes":
        corrected = "beliefs are not corrected for the number of slices"
    elif choices.correction == "none" or sizes[-1] < 2:
        corrected = "p not corrected for the number of slices"
    else:
        corrected = f"p corrected by {name_of_correction(choices.correction)} for {count} comparisons{of}"
    few = f"{FEW}: fewer topics than the slice is judged by, not tested"
    parts = [
        tested(choices, pairs),
        corrected,
        f"{ALL}: the comparison without slices, corrected by itself",
        f"alpha = {choices.alpha:g}",
        f"{_SIGNIFICANT} significant; detectable: a true difference of this size is found four times out of five",
        few if any(row.small for row in found.rows) else "",
    ]
    return "; ".join(part for part in parts if part)


def _headed(found: SliceComparison) -> list[tuple[str, Table]]:
    return [
        (f"{measure}: {second} against {first}", found.table(measure, second=second))
        for measure in found.measures
        for first, second in found.pairs
    ]


def comparison_text(found: SliceComparison, width: int | None) -> str:
    """Write the tables and what may be concluded."""
    blocks = [f"== {title} ==\n{table.text(width=width)}" for title, table in _headed(found)]
    blocks += [wrapped(found.caption, width), "\n".join(wrapped(one, width) for one in found.sentences)]
    return "\n\n".join(block for block in blocks if block)


def comparison_markdown(found: SliceComparison) -> str:
    """Write the same in Markdown."""
    blocks = [part for title, table in _headed(found) for part in (f"**{title}**", table.markdown())]
    return "\n\n".join(block for block in (*blocks, f"{found.caption}.", _listed(found.sentences)) if block)
