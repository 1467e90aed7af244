"""The section that says what users did, in a report and as a page of its own."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from judged import __version__
from judged.answer import Chart, Code, Section, Sentences, Table
from judged.answer.html import page
from judged.online.curves import charts as curves
from judged.online.showing import charts, layout, trouble, words
from judged.online.showing.numbers import counted, number, shown, slice_of, span_of, value_of
from judged.reports.material import Found
from judged.tables import Table as Grid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.answer import Block
    from judged.online.curves.dwell import DwellTimes
    from judged.online.estimating.measuring import Unit
    from judged.online.log import InteractionLog
    from judged.online.metrics.metric import OnlineMetric
    from judged.online.result import OnlineEstimate, OnlineScores

_INDENT = "\u2003"  # what begins with blanks would lose them in a page
_TITLES = {"share": "Shares", "count": "Counts", "seconds": "Durations", "rank": "Ranks", "money": "Money"}
_REASONS = 40  # lines of why numbers are missing
_LEAD = ("SatisfiedPageCTR", "PageCTR", "ImpressionCTR", "ZeroResults")
"""The metric that the summary names: the first of these that is known, or else the first of all."""


def users(scores: OnlineScores, more: Sequence[Block] = ()) -> Found:
    """Write the section: metrics with intervals, CTR by rank, what else is known, and what is wrong with the log."""
    parts: list[Block] = [*_pictures(scores), _table(scores)]
    if scores.ranks:
        parts.append(_ranks(scores))
    parts += more
    parts += _notes(scores)
    section = Section("users", "What users did", (Sentences(_sentences(scores)), *parts))
    doubts = trouble.doubtful(scores)
    lead = " ".join(one for one in (*doubts, headline(scores)) if one)
    return Found(section, {"online": scores}, lead, (*doubts, *_warnings(scores)))


def online_page(scores: OnlineScores, more: Sequence[Block] = (), *, command: str = "") -> str:
    """Write metrics of a log as one page that needs no network: a summary, and the section of the report."""
    # Without altair or vl-convert the page has every number and no chart, and says so.
    found = users(scores, more)
    doubts = trouble.doubtful(scores)
    parts: list[Block] = [Sentences(_rules(scores), "rules", "Rules")]
    if command:
        parts.append(Code((command,), "command", "To make this page again"))
    method = Section("method", "How this was computed", tuple(parts))
    said = (*doubts, headline(scores), words.steepness(scores.ranks))
    sections = (Section("summary", "Summary", (Sentences(tuple(filter(None, said))),)), found.section, method)
    title = f"What users did: {shown(scores.log, 80)}"
    return page(title, (*words.counts(scores.counts), f"judged {__version__}"), sections)


def dwell_parts(found: DwellTimes) -> tuple[Chart, ...]:
    """Draw how long opened results are looked at, and satisfied clicks by threshold; nothing without visits."""
    if found.median is None:
        return ()
    said = found.sentences
    visits = Chart(
        "usersDwell",
        "How long opened results are looked at",
        Table.of_grid("users_dwell", found.curve_table()),
        " ".join(said[:2]),
        draw=partial(curves.survival_chart, found.curve),
    )
    if len(said) < 3:
        return (visits,)
    drawn = partial(curves.thresholds_chart, found.scores)
    thresholds = Table.of_grid("users_thresholds", found.thresholds_table())
    return visits, Chart("usersThresholds", "Satisfied clicks by threshold", thresholds, said[2], draw=drawn)


def headline(scores: OnlineScores) -> str:
    """Say the one number that sums a log up, with its interval; nothing where there is none."""
    known = [one for one in scores.estimates if one.slice is None and not math.isnan(one.value)]
    if not known:
        return ""
    first = next((one for name in _LEAD for one in known if one.metric.name == name), known[0])
    title = first.metric.title[:1].lower() + first.metric.title[1:]
    counts = dict(scores.counts)
    where = f"{counted(counts.get('pages', 0), 'page')} of {counted(counts.get('users', 0), 'user')}"
    return f"In {where}, {title} ({first.metric}): {_worded(first, scores.level)}."


def _worded(one: OnlineEstimate, level: float) -> str:
    known = span_of(one).strip("[]")
    if math.isnan(one.low):
        return value_of(one)
    low, _, high = known.partition(", ")
    return f"{value_of(one)} ({layout.percent(level)} interval {low} to {high})"


def _sentences(scores: OnlineScores) -> tuple[str, ...]:
    said = (*trouble.doubtful(scores), f"{words.about(scores)}.", words.bias(scores))
    return tuple(one for one in said if one)


def _pictures(scores: OnlineScores) -> list[Chart]:
    """Draw what shares an axis: each group with more than one number."""
    made: list[Chart] = []
    seen: list[str] = []
    for group in charts.groups(scores):
        unit = group[0].unit
        seen.append(unit)
        drawn = [one for one in scores.estimates if one.metric in group and not math.isnan(one.value)]
        if len(drawn) < 2:
            continue
        nth = seen.count(unit)
        name = "users" + "".join(part.title() for part in unit.split()) + (str(nth) if nth > 1 else "")
        title = _TITLES.get(unit, "Reciprocal ranks") + (", the small ones" if nth > 1 else "")
        slices = charts.drawn_slices(scores)
        by = f", over all pages and by {shown(scores.by)}" if scores.by is not None else ""
        left = len(scores.slices) - len(slices)
        few = f"; the {len(slices)} values with the most pages, {counted(left, 'other')} in the table" if left else ""
        said = f"Each metric with its {layout.percent(scores.level)} interval over {scores.unit}s{by}{few}."
        draw = partial(charts.group_chart, scores, group)
        made.append(Chart(name, title, Table.of_grid(name, _drawn(drawn, scores)), said, draw=draw))
    return made


def _drawn(known: Sequence[OnlineEstimate], scores: OnlineScores) -> Grid:
    labels = ("metric", *((shown(scores.by),) if scores.by is not None else ()))
    rows = tuple(
        (
            str(one.metric),
            *((slice_of(scores, one.slice),) if scores.by is not None else ()),
            value_of(one),
            span_of(one),
            f"{one.units:,}",
        )
        for one in known
    )
    header = (*labels, "value", f"{layout.percent(scores.level)} interval", f"{scores.unit}s")
    return Grid(header, rows, labels=len(labels))


def _table(scores: OnlineScores) -> Table:
    made = layout.metrics_table(scores) if scores.by is None else layout.slices_table(scores)
    rows = tuple((_indented(row[0]), *row[1:]) for row in made.rows)
    return Table.of_grid("metrics", Grid(made.header, rows, made.labels), "Every metric", words.intervals(scores))


def _indented(text: str) -> str:
    bare = text.lstrip(" ")
    return _INDENT * ((len(text) - len(bare)) // 2) + bare


def _ranks(scores: OnlineScores) -> Chart:
    first = next((one for one in scores.ranks if one.slice is None and not math.isnan(one.value)), None)
    top = (
        "" if first is None else f"At rank {first.rank}, {number(first.value, 'share')} of what was shown was clicked. "
    )
    said = f"{top}{words.steepness(scores.ranks)} {words.WHAT_FALLS}"
    draw = partial(charts.ranks_chart, scores)
    return Chart("usersRanks", "CTR by rank", Table.of_grid("users_ranks", layout.ranks_table(scores)), said, draw=draw)


def _notes(scores: OnlineScores) -> list[Block]:
    parts: list[Block] = []
    if missing := words.reasons(scores):
        shortened = tuple(words.first(missing, _REASONS))
        parts.append(Sentences(shortened, "missing", "Numbers that are missing", folded=len(missing) > 5))
    if scores.refused:
        parts.append(Table.of_grid("refused", layout.refused_table(scores), "What this log cannot tell"))
    if scores.findings:
        note = "rows left out count in no metric" if any(one.done == "excluded" for one in scores.findings) else ""
        parts.append(
            Table.of_grid("findings", layout.findings_table(scores.findings), "What was found in the log", note)
        )
        parts.append(Sentences(tuple(map(trouble.finding, scores.findings)), "meaning", "What that means"))
    asked = [*scores.metrics, *(metric for metric, _ in scores.refused)]
    parts.append(Table.of_grid("definitions", definitions(asked), "What each metric is", folded=True))
    return parts


def definitions(metrics: Sequence[OnlineMetric]) -> Grid:
    """Lay out what metrics are and when they mislead: one row each."""
    rows = tuple((str(one), one.title, one.formula, one.window, one.misleads) for one in dict.fromkeys(metrics))
    return Grid(("metric", "what", "formula", "window", "misleads when"), rows, labels=5)


def _rules(scores: OnlineScores) -> tuple[str, ...]:
    return (words.intervals(scores), *words.rules(scores), *words.policies(scores))


def _warnings(scores: OnlineScores) -> tuple[str, ...]:
    """Give what must be known before clicks are read as quality."""
    return (words.BIAS.replace(" marked *", " of clicks"),) if words.is_biased(scores) else ()


def measured(log: Any) -> tuple[OnlineScores, tuple[Block, ...]]:
    """Give the metrics of a log, as they are or computed from a log or its files, and curves of visits."""
    from judged.online import online_metrics
    from judged.online.checking import need_records
    from judged.online.log import InteractionLog
    from judged.online.opening import read_log
    from judged.online.result import OnlineScores

    if isinstance(log, OnlineScores):
        trouble.need_metrics(log)
        return log, ()
    read = log if isinstance(log, InteractionLog) else read_log(log)
    need_records(read)
    scores = online_metrics(read)
    trouble.need_metrics(scores)
    return scores, visits(read)


def visits(log: InteractionLog, *, unit: Unit = "user", level: float = 0.95) -> tuple[Chart, ...]:
    """Give the curves of dwell times of a log; nothing where it cannot tell."""
    from judged.online.curves.dwell import dwell_times

    return dwell_parts(dwell_times(log, unit=unit, level=level)) if "dwell" in log.has else ()
