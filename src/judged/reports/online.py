"""The section of a report that says what users did."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from judged.online.layout import format_estimate, format_interval, percent
from judged.reports.material import ReportPart, quoted
from judged.results import Chart, Section, Table, counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.online.scores import OnlineScores
    from judged.results import Block

_LEAD = ("SatisfiedPageCTR", "PageCTR", "ImpressionCTR", "ZeroResults")
"""The metric that the summary names: the first of these that is known, or else the first of all."""


def users(scores: OnlineScores, more: Sequence[Block] = ()) -> ReportPart:
    """Write the section: metrics with intervals, CTR by rank, how long visits last, and what is wrong with the log."""
    parts = tuple(_own(block) for block in (*scores.blocks(), *more))
    doubts = [str(note) for note in scores.notes if note.rule == "unfit-log"]
    section = Section("users", "What users did", parts)
    return ReportPart(section, {"online": scores}, " ".join([*doubts, headline(scores)]).strip(), scores.warnings)


def _own(block: Block) -> Block:
    """Give a block a name that no other section has; data are in the result."""
    match block:
        case Chart():
            return quoted(block, f"users{block.name.title()}")
        case Table():
            return quoted(block, f"users_{block.name}", title=block.title, folded=block.folded)
        case _:
            return replace(block, name=f"users_{block.name}", folded=False)


def headline(scores: OnlineScores) -> str:
    """Say the one number that sums a log up, with its interval; nothing where there is none."""
    known = [one for one in scores.estimates if one.slice is None and not math.isnan(one.value)]
    if not known:
        return ""
    first = next((one for name in _LEAD for one in known if one.metric.name == name), known[0])
    title = first.metric.title[:1].lower() + first.metric.title[1:]
    counts = dict(scores.counts)
    where = " of ".join(counted(counts.get(f"{unit}s", 0), unit) for unit in ("page", scores.over))
    interval = format_interval(first).strip("[]").replace(", ", " to ")
    limits = "" if math.isnan(first.low) else f" ({percent(scores.level)} interval {interval})"
    return f"In {where}, {title} ({first.metric}): {format_estimate(first)}{limits}."


def measured(log: Any) -> tuple[OnlineScores, tuple[Block, ...]]:
    """Give the metrics of a log, as they are or computed from a log or its files, and curves of visits."""
    from judged.online import online_metrics
    from judged.online.dwell import dwell_times
    from judged.online.log import InteractionLog, check_has_records
    from judged.online.scores import OnlineScores, check_has_estimates
    from judged.online.storage import read_log

    if isinstance(log, OnlineScores):
        return check_has_estimates(log), ()
    read = log if isinstance(log, InteractionLog) else read_log(log)
    check_has_records(read)
    scores = check_has_estimates(online_metrics(read))
    return scores, dwell_times(read).curves() if "dwell" in read.has else ()
