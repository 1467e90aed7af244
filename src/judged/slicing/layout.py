"""Tables and texts of scores and comparisons by slice."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from judged.comparison.captions import detectable, intervals, tested
from judged.comparison.forms import wrapped
from judged.comparison.layout import p_cell
from judged.comparison.marks import BETTER, TIMES, WORSE
from judged.comparison.sentences import name_of_correction
from judged.decimals import decimal, percent
from judged.slicing.sentences import sentences_of_comparison, sentences_of_scores
from judged.slicing.slice_scores import ALL, TOPIC_MEAN
from judged.stats.skewness import SECOND
from judged.tables import Cell, Table, markdown_list, markdown_prose, markdown_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.comparison import Pair
    from judged.evaluation import Estimate
    from judged.slicing.compared_slices import ComparedSlices, SlicePair
    from judged.slicing.slice_scores import SliceTable

FEW = "(few)"
_INTERVALS = 3  # columns: more of them show no intervals
_HEAD = 26  # characters: a column of differences with their intervals is as wide
_SIGNIFICANT = "*"


def score_table(found: SliceTable, measure: str | None = None, run: str | None = None) -> Table:
    """Lay out one row a slice. With one run, or one that is named: a column a measure; else a column a run."""
    name, which = found.chosen(run, measure)
    if len(found.scores.runs) == 1 or run is not None:
        return _scores(found, [(name, one, one) for one in found.scores.measure_names], "slice")
    return _scores(found, [(one, which, one) for one in found.scores.run_names], which)


def _scores(found: SliceTable, columns: Sequence[tuple[str, str, str]], title: str) -> Table:
    """Lay out columns of a run, a measure and a heading each, under the heading of the slices."""
    by = {(one.slice, one.estimate.run, one.estimate.measure): one for one in found.estimates}
    marks = {(one.slice, one.run, one.measure): _mark(one.better) for one in found.findings}
    weight = found.weights[:1]
    rows: list[tuple[str, ...]] = []
    for name in found.names:
        first = by[name, columns[0][0], columns[0][1]]
        label = f"{name} {FEW}" if first.small else name
        shares = [percent(first.share)] + [percent(first.weight) for _ in weight]
        cells = [
            _cell(by[name, run, measure].estimate, marks.get((name, run, measure), ""), interval=_shown(columns))
            for run, measure, _ in columns
        ]
        rows.append((label, str(first.n), *shares, *cells))
    rows += _average_rows(found, columns, [""] * (1 + len(weight)))
    header = (title, "topics", "share", *(f"of {name}" for name in weight), *(name for _, _, name in columns))
    return Table(header, tuple(rows))


def _average_rows(
    found: SliceTable, columns: Sequence[tuple[str, str, str]], gap: Sequence[str]
) -> list[tuple[str, ...]]:
    by = {(one.name, one.run, one.measure): one for one in found.averages}
    names = [name for name in dict.fromkeys(one.name for one in found.averages) if name != TOPIC_MEAN]
    made: list[tuple[str, ...]] = []
    for name in names:
        cells: list[str] = []
        for run, measure, _ in columns:
            one = by.get((name, run, measure))
            cells.append("-" if one is None else Cell(decimal(one.value), rest=_limits(one.ci, show=_shown(columns))))
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
    return Cell(decimal(one.value), rest=_limits(one.ci, show=interval), mark=mark)


def _limits(ci: tuple[float, float] | None, *, show: bool = True) -> str:
    return "" if ci is None or not show else f"[{decimal(ci[0], 3)}, {decimal(ci[1], 3)}]"


def average_table(found: SliceTable) -> Table:
    """Lay out one row a way to average and run, one column a measure."""
    by = {(one.name, one.run, one.measure): one for one in found.averages}
    several = len(found.scores.runs) > 1
    rows: list[tuple[str, ...]] = []
    for name, run in dict.fromkeys((one.name, one.run) for one in found.averages):
        ones = [by.get((name, run, measure)) for measure in found.scores.measure_names]
        cells = ["-" if one is None else Cell(decimal(one.value), rest=_limits(one.ci)) for one in ones]
        rows.append((name, *([run] if several else []), *cells))
    labels = ("average", *(["run"] if several else []))
    return Table((*labels, *found.scores.measure_names), tuple(rows), labels=len(labels))


def _score_tables(found: SliceTable) -> list[Table]:
    if len(found.scores.runs) == 1:
        return [score_table(found)]
    return [score_table(found, name) for name in found.scores.measure_names]


def score_caption(found: SliceTable) -> str:
    """Say what the marks and the intervals mean."""
    method, parts = found.method, [chosen_topics(found.where)]
    if found.tests:
        drawn = any(one.rest.resamples for one in found.findings)
        corrected = f", p corrected by Holm for {found.tests} tests" if found.tests > 1 else ""
        parts.append(
            f"{_marks_of(found)} ({'permutation' if drawn else 'Welch'} test{corrected}, alpha = {1 - method.level:g})"
        )
    if found.slicing.small.any():
        parts.append(f"{FEW}: fewer topics than the slice is judged by, not tested")
    words = found.scores.interval_words(method)
    runs, measures = len(found.scores.runs), len(found.scores.measures)
    shown = (measures if runs == 1 else runs) <= _INTERVALS
    left_out = f"no intervals beside more than {_INTERVALS} columns of numbers: CSV and JSON have them"
    parts.append(words and (f"[{words}]" if shown else left_out))
    return "; ".join(part for part in parts if part)


def chosen_topics(where: str) -> str:
    """Say by which expression topics were chosen; nothing where all of them count."""
    return f"topics where {where}" if where else ""


def _marks_of(found: SliceTable) -> str:
    """Say what the marks mean that are there."""
    better = [f"{BETTER} the slice scores significantly better than the other topics"] if any(
        one.better is True for one in found.findings
    ) else []  # fmt: skip
    worse = any(one.better is False for one in found.findings)
    if worse:
        better.append(f"{WORSE} worse" if better else f"{WORSE} the slice scores significantly worse than the others")
    return ", ".join(better) or "no slice is marked as better or worse than the other topics"


def score_text(found: SliceTable, width: int | None) -> str:
    """Write the tables and what may be concluded."""
    blocks = [table.text(width=width) for table in _score_tables(found)]
    said = sentences_of_scores(found)
    blocks += [wrapped(score_caption(found), width), "\n".join(wrapped(one, width) for one in said)]
    return "\n\n".join(block for block in blocks if block)


def score_markdown(found: SliceTable) -> str:
    """Write the same in Markdown."""
    blocks = [table.markdown() for table in _score_tables(found)]
    blocks += [
        markdown_prose(f"{caption}.") if (caption := score_caption(found)) else "",
        markdown_list(sentences_of_scores(found)),
    ]
    return "\n\n".join(block for block in blocks if block)


def comparison_table(found: ComparedSlices, rows: Sequence[SlicePair]) -> Table:
    """Lay out one row a slice, of one measure and pair, under the one of all topics."""
    overall = found.overall.pair(rows[0].first, rows[0].second, rows[0].measure)
    bayes = found.choices.test == "bayes"
    alone = found.choices.correction == "none" or found.families[rows[0].measure] < 2
    p_name = "P(higher)" if bayes else "p" if alone else "adjusted p"
    difference = direction(rows[0].second, rows[0].first, ratio=overall.is_ratio)
    header = ("slice", "topics", difference, p_name, "won-tied-lost", "detectable")
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
        p_cell(pair),
        f"{pair.wins.wins}-{pair.wins.ties}-{pair.wins.losses}",
        decimal(pair.detectable, 3),
    )


def _size(difference: float, *, ratio: bool) -> str:
    return f"{TIMES}{decimal(difference, 3)}" if ratio and not math.isnan(difference) else decimal(difference, 4, "+")


def direction(second: str, first: str, *, ratio: bool = False) -> str:
    """Head a column of differences by what is subtracted from what, where the names are not too long for it.

    >>> direction("new", "old"), direction("a run with a long name", "another run"), direction("a", "b", ratio=True)
    ('new - old', 'difference', 'a / b')
    """
    name = f"{second} {'/' if ratio else '-'} {first}"
    return name if len(name) <= _HEAD else "ratio" if ratio else "difference"


def comparison_caption(found: ComparedSlices) -> str:
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
        chosen_topics(found.where),
        _tested(found, pairs),
        corrected,
        f"{ALL}: the comparison without slices, corrected by itself",
        f"alpha = {choices.alpha:g}",
        f"{_SIGNIFICANT} significant",
        intervals(pairs, choices, sizes[-1]),
        detectable(pairs),
        few if any(row.small for row in found.rows) else "",
    ]
    return "; ".join(part for part in parts if part)


def _tested(found: ComparedSlices, pairs: Sequence[Pair]) -> str:
    """Name the test; of one by resampling, where all arrangements were taken instead."""
    every = [*pairs, *found.overall.pairs]
    drawn = [pair for pair in every if pair.found.resamples and not pair.found.exact]
    exact = any(pair.found.resamples and pair.found.exact for pair in every)
    some = ", or all arrangements where there are fewer" if drawn and exact else ""
    named = tested(found.choices, drawn or every) + some
    skewed = any(pair.found.method in {"randomisation", "t", "ratio"} for pair in pairs)
    return named + (SECOND if skewed else "")


def _against(found: ComparedSlices, measure: str) -> str:
    return "over" if any(pair.is_ratio for pair in found.overall.measure(measure).pairs) else "minus"


def _headed(found: ComparedSlices) -> list[tuple[str, Table]]:
    return [
        (f"{measure}: {second} {_against(found, measure)} {first}", comparison_table(found, found.of(measure, second)))
        for measure in found.measures
        for first, second in found.pairs
    ]


def comparison_text(found: ComparedSlices, width: int | None) -> str:
    """Write the tables and what may be concluded."""
    blocks = [f"== {title} ==\n{table.text(width=width)}" for title, table in _headed(found)]
    said = sentences_of_comparison(found)
    blocks += [wrapped(comparison_caption(found), width), "\n".join(wrapped(one, width) for one in said)]
    return "\n\n".join(block for block in blocks if block)


def comparison_markdown(found: ComparedSlices) -> str:
    """Write the same in Markdown."""
    blocks = [part for title, table in _headed(found) for part in (f"**{markdown_text(title)}**", table.markdown())]
    blocks += [markdown_prose(f"{comparison_caption(found)}."), markdown_list(sentences_of_comparison(found))]
    return "\n\n".join(block for block in blocks if block)
