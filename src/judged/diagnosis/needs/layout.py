"""Needs in plain words, as text and as tables."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

import numpy as np

from judged.comparison.claims import shown
from judged.decimals import counted, decimal, percent
from judged.stats.results import p_text
from judged.tables import Table, markdown_prose

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.comparison import Pair
    from judged.diagnosis.needs.rows import NeedsSummary, NeedsTable

_PROSE = 100
_QUERY = 50
_PAIRS = 5  # that are told


def sentences(found: NeedsTable) -> tuple[str, ...]:
    """Say how good, how bad at worst and how consistent each run is, and which differ over needs."""
    many = sum(len(group) for group in found.query_ids)
    size = f"{counted(len(found.needs), 'need')}, worded by {counted(many, 'query', 'queries')}"
    rule = "each need counts once, and intervals and tests are over needs, as wordings of one need are not independent."
    made = [f"{size}: {rule}"]
    first = found.scores.measure_names[0]
    ordered = sorted((one for one in found.summaries if one.measure == first), key=_by_mean(found))
    made += [_of_run(found, one) for one in ordered[:_PAIRS]]
    if found.comparison is not None:
        pairs = found.comparison.measure(first).pairs
        made += [_of_pair(pair) for pair in pairs[:_PAIRS]]
        if len(pairs) > _PAIRS:
            rest = len(pairs) - _PAIRS
            made.append(f"{counted(rest, 'more pair was', 'more pairs were')} compared.")
    return tuple(made)


def _by_mean(found: NeedsTable) -> Callable[[NeedsSummary], tuple[bool, float]]:
    less = found.scores.measures[0].properties.higher_is_better is False

    def key(one: NeedsSummary) -> tuple[bool, float]:
        return math.isnan(one.mean), one.mean if less else -one.mean

    return key


def _of_run(found: NeedsTable, one: NeedsSummary) -> str:
    levels = (
        f"{one.run} has {one.measure} {_with_ci(one.mean, one.mean_ci)} on average, and"
        f" {_with_ci(one.worst, one.worst_ci)} with the worst wording of each need."
    )
    parts = [levels]
    share = one.consistency.value
    if math.isnan(share):
        parts.append("How consistent it is over wordings cannot be told: too few needs have two, or nothing varies.")
    else:
        limits = one.consistency.interval
        ci = "" if limits is None else f" [{percent(limits[0])}, {percent(limits[1])}]"
        parts.append(
            f"{percent(share)}{ci} of the variance of its scores lies between needs, {percent(1 - share)} between"
            " wordings of the same need."
        )
    if not math.isnan(one.overlap):
        parts.append(
            f"Two wordings share {percent(one.overlap)} of their first {found.depth} documents"
            f" (RBO {decimal(one.rbo, 2)})."
        )
    return " ".join(parts)


def _of_pair(pair: Pair) -> str:
    test = pair.found
    if test.n < 2:
        return f"{pair.second} and {pair.first} have {counted(test.n, 'need')} in common: nothing can be concluded."
    limits = pair.shown_interval
    ci = "" if limits is None else f" [{decimal(limits[0], 3)}, {decimal(limits[1], 3)}]"
    gap = f"{pair.second} - {pair.first} {decimal(pair.shown_difference, 4, '+')}{ci} over {test.n} needs"
    after = f" after {test.correction}" if test.correction not in {"", "none"} else ""
    how = f"p {p_text(test.decisive_p, pair.alpha)}{after}"
    if pair.better is not None:
        return f"{shown(test.method, pair.better, pair.other(pair.better), pair.measure)}: {gap}, {how}."
    return f"No difference between {pair.second} and {pair.first} is shown in {pair.measure}: {gap}, {how}."


def summary_table(found: NeedsTable, measure: str | None) -> Table:
    """Lay out a row a run: mean and worst with intervals, best, deviation, consistency, likeness of rankings."""
    _, column = found.place(None, measure)
    name = found.scores.measure_names[column]
    header = (name, "mean", "worst wording", "best", "sd", "consistency", "overlap", "RBO")
    rows = tuple(
        (
            one.run,
            _with_ci(one.mean, one.mean_ci),
            _with_ci(one.worst, one.worst_ci),
            _number(one.best),
            _number(one.deviation),
            _with_ci(one.consistency.value, one.consistency.interval, 2),
            _number(one.overlap, 2),
            _number(one.rbo, 2),
        )
        for one in found.summaries
        if one.measure == name
    )
    return Table(header, rows)


def needs_table(
    found: NeedsTable, run: str | None, measure: str | None, worst: int | None, *, texts: bool = True
) -> Table:
    """Lay out a row a need, those with the widest range first, with their worst and best wording."""
    r, m = found.place(run, measure)
    header = ["need", "worst wording", "best wording", "variants", "mean", "worst", "best", "sd"]
    alike = not np.isnan(found.overlap[r]).all()
    rows: list[tuple[str, ...]] = []
    for at in _widest(found, r, m)[:worst]:
        cells = [float(part[r, m, at]) for part in (found.mean, found.worst, found.best, found.deviation)]
        wordings = [_wording(found, r, m, at, value) for value in cells[1:3]]
        if texts:
            wordings = [f"{query} {_short(found.queries.get(query, ''))}".rstrip() for query in wordings]
        row = [found.needs[at], *wordings, str(found.variants[r, m, at]), *map(_number, cells)]
        rows.append((*row, *([_number(float(found.overlap[r, at]), 2)] if alike else [])))
    return Table((*header, *(["overlap"] if alike else [])), tuple(rows), labels=3)


def _widest(found: NeedsTable, run: int, measure: int) -> list[int]:
    """Order the needs by the range of their scores, the widest first."""
    ranges = np.nan_to_num(np.abs(found.best[run, measure] - found.worst[run, measure]), nan=-1.0)
    return sorted(range(len(found.needs)), key=lambda at: (-ranges[at], found.needs[at]))


def _wording(found: NeedsTable, run: int, measure: int, at: int, value: float) -> str:
    """Name the first wording with a score."""
    place = {query: row for row, query in enumerate(found.scores.query_ids)}
    scores = {query: found.scores.values[run, measure, place[query]] for query in found.query_ids[at]}
    return next((query for query, score in scores.items() if score == value), "-")


def _read_aloud(found: NeedsTable, run: str, worst: int) -> list[str]:
    """Give the texts of the worst and the best wording of the needs that vary most."""
    r, m = found.place(run, None)
    made: list[str] = []
    for at in _widest(found, r, m)[:worst]:
        parts = [
            f"{name} {_number(float(value))} {found.queries.get(_wording(found, r, m, at, float(value))) or '-'}"
            for name, value in (("worst", found.worst[r, m, at]), ("best", found.best[r, m, at]))
        ]
        made.append(f"{found.needs[at]}: {'; '.join(parts)}")
    return made


def long_table(found: NeedsTable) -> Table:
    """Lay out every run, measure and need in full precision."""
    header = ("run", "measure", "need", "variants", "mean", "worst", "best", "deviation", "overlap", "rbo")
    rows: list[tuple[str, ...]] = []
    for r, run in enumerate(found.scores.run_names):
        for m, measure in enumerate(found.scores.measure_names):
            for at, need in enumerate(found.needs):
                cells = [float(part[r, m, at]) for part in (found.mean, found.worst, found.best, found.deviation)]
                cells += [float(found.overlap[r, at]), float(found.rbo[r, at])]
                full = ["" if math.isnan(cell) else repr(cell) for cell in cells]
                rows.append((run, measure, need, str(found.variants[r, m, at]), *full))
    return Table(header, tuple(rows), labels=3)


def text(found: NeedsTable, *, width: int | None, worst: int) -> str:
    """Write what was found, a table a measure, and the needs whose wordings differ most."""
    blocks = ["\n".join(_wrapped(one, width) for one in sentences(found))]
    blocks += [summary_table(found, name).text(width=width) for name in found.scores.measure_names]
    blocks.append(_wrapped(_legend(found), width))
    if worst and any(len(group) > 1 for group in found.query_ids):
        run = _best_run(found)
        table = needs_table(found, run, None, worst, texts=False)
        blocks.append(f"{_heading(found, run)}\n{table.text(width=width)}")
        if found.queries:
            blocks.append("\n".join(_wrapped(line, width) for line in _read_aloud(found, run, worst)))
    return "\n\n".join(blocks)


def _best_run(found: NeedsTable) -> str:
    first = found.scores.measure_names[0]
    return min((one for one in found.summaries if one.measure == first), key=_by_mean(found)).run


def _heading(found: NeedsTable, run: str) -> str:
    return f"Needs whose wordings differ most, {run}, {found.scores.measure_names[0]}:"


def _legend(found: NeedsTable) -> str:
    alike = f"; overlap, RBO: how alike the first {found.depth} documents of two wordings are"
    return (
        "mean: of the means over wordings; worst wording, best: of the worst and best score of each need; sd: standard"
        " deviation between wordings; consistency: share of the variance that lies between needs (1: wording does not"
        f" matter){'' if np.isnan(found.overlap).all() else alike}"
    )


def markdown(found: NeedsTable, *, worst: int) -> str:
    """Write the same as Markdown."""
    blocks = [f"## {counted(len(found.needs), 'need')} in several wordings", *map(markdown_prose, sentences(found))]
    blocks += [summary_table(found, name).markdown() for name in found.scores.measure_names]
    blocks.append(markdown_prose(f"{_legend(found)}."))
    if worst:
        run = _best_run(found)
        blocks += [markdown_prose(_heading(found, run)), needs_table(found, run, None, worst).markdown()]
    return "\n\n".join(blocks)


def _wrapped(sentence: str, width: int | None) -> str:
    return textwrap.fill(sentence, min(width or _PROSE, _PROSE), break_long_words=False, break_on_hyphens=False)


def _number(value: float, digits: int = 3) -> str:
    return decimal(value, digits)


def _with_ci(value: float, limits: tuple[float, float] | None, digits: int = 3) -> str:
    ci = "" if limits is None else f" [{decimal(limits[0], digits)}, {decimal(limits[1], digits)}]"
    return _number(value, digits) + ci


def _short(query: str) -> str:
    return query if len(query) <= _QUERY else query[: _QUERY - 1] + "…"
