"""Section of a report about user behavior."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from judged.online.layout import format_estimate, format_interval, percent
from judged.reports.report_data import ReportPart, embed_block
from judged.results import Chart, Section, Table, counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.online.scores import OnlineScores
    from judged.results import Block

_SUMMARY_METRICS = ("SatisfiedPageCTR", "PageCTR", "ImpressionCTR", "ZeroResults")
"""Metrics for the summary, in order of preference."""


def online_section(scores: OnlineScores, curves: Sequence[Block] = ()) -> ReportPart:
    """Build the section: metrics with intervals, CTR by rank, dwell times, and problems of the log."""
    blocks = tuple(_embed(block) for block in (*scores.blocks(), *curves))
    problems = [str(note) for note in scores.notes if note.rule == "unfit-log"]
    section = Section("users", "User behavior", blocks)
    return ReportPart(section, {"online": scores}, " ".join([*problems, headline(scores)]).strip(), scores.warnings)


def _embed(block: Block) -> Block:
    """Copy a block into the section under a unique name."""
    match block:
        case Chart():
            return embed_block(block, f"users{block.name.title()}")
        case Table():
            return embed_block(block, f"users_{block.name}", title=block.title, folded=block.folded)
        case _:
            return replace(block, name=f"users_{block.name}", folded=False)


def headline(scores: OnlineScores) -> str:
    """Return the sentence about the main metric of a log; empty without a value."""
    estimates = [estimate for estimate in scores.estimates if estimate.slice is None and not math.isnan(estimate.value)]
    if not estimates:
        return ""
    by_name = {estimate.metric.name: estimate for estimate in reversed(estimates)}
    first = next((by_name[name] for name in _SUMMARY_METRICS if name in by_name), estimates[0])
    title = first.metric.title[:1].lower() + first.metric.title[1:]
    counts = dict(scores.counts)
    sample = " of ".join(counted(counts.get(f"{unit}s", 0), unit) for unit in ("page", scores.over))
    limits = "" if math.isnan(first.low) else f" ({percent(scores.level)} CI {format_interval(first)})"
    return f"In {sample}, {title} ({first.metric}) is {format_estimate(first)}{limits}."


def online_metrics_of(log: Any) -> tuple[OnlineScores, tuple[Block, ...]]:
    """Return the metrics of a log, and curves of dwell times if metrics are computed from a log or its files."""
    from judged.online import online_metrics
    from judged.online.dwell import dwell_times
    from judged.online.log import InteractionLog, check_has_records
    from judged.online.scores import OnlineScores, check_has_estimates
    from judged.online.storage import read_log

    if isinstance(log, OnlineScores):
        return check_has_estimates(log), ()
    # A result that was computed before is used as it is, without the curves that need the log.
    log = log if isinstance(log, InteractionLog) else read_log(log)
    check_has_records(log)
    scores = check_has_estimates(online_metrics(log))
    return scores, dwell_times(log).curves() if "dwell" in log.has else ()
