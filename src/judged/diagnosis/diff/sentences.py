"""A diff in plain words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from judged.decimals import decimal
from judged.stats.pairing import topics_text

if TYPE_CHECKING:
    from judged.diagnosis.diff.rows import DiffRow, DiffTable, MeanPair, TopicRows

_FOR, _AGAINST = 3, 2  # documents that are named


def sentences(found: DiffTable) -> tuple[str, ...]:
    """Say how the runs differ over all topics, and what is shown of it."""
    made = [_over_all(found, one) for one in found.means]
    made[-1] += " Whether that could be luck, 'judged compare' tells."
    if not found.named and found.topics:
        counts = [sum(one.outcome == side for one in found.topics) for side in ("won", "lost")]
        made.append(
            f"Shown are the topics that differ most by {found.measures[0]}: {counts[0]} for {found.runs[1]},"
            f" {counts[1]} against it. They are the extremes, not the typical case."
            if len(found.topics) > 1
            else f"Shown is the only topic that differs by {found.measures[0]}."
        )
    elif not found.topics:
        made.append(f"No topic differs by {found.measures[0]}: there is nothing to show.")
    return tuple(made)


def _over_all(found: DiffTable, one: MeanPair) -> str:
    first, second = found.runs
    n = one.better + one.worse + one.same
    return (
        f"{one.measure}: {second} is better than {first} on {one.better} of {topics_text(n)}, worse on {one.worse},"
        f" the same on {one.same}; {one.aggregate} {_number(one.first)} to {_number(one.second)}"
        f" ({decimal(one.second - one.first, 4, '+')})."
    )


def topic_sentence(one: TopicRows) -> str:
    """Say what changed on a topic, and which documents made the difference."""
    pair = one.scores[0]
    second = one.runs[1]
    if not any(one.returned):
        return "Neither run returned a document."
    if math.isnan(pair.difference):
        return f"The topic has no score by {pair.measure}. {_moves(one)}"
    if not pair.side:
        head = f"Both have the same {pair.measure}, {decimal(pair.first)}."
        return f"{head} {_moves(one)}".strip()
    verb = "gains" if pair.difference > 0 else "loses"
    head = f"{second} {verb} {decimal(abs(pair.difference))} in {pair.measure}"
    return f"{head}{_why(one)}. {_moves(one)}".strip()


def _why(one: TopicRows) -> str:
    """Name the documents that add most to the difference, and those that take most from it."""
    sign = 1 if one.scores[0].difference > 0 else -1
    known = [(row.changes[0], row) for row in one.rows if row.changes and row.changes[0]]
    ordered = sorted(known, key=lambda pair: -abs(pair[0]))
    along = [pair for pair in ordered if pair[0] * sign > 0][:_FOR]
    against = [pair for pair in ordered if pair[0] * sign < 0][:_AGAINST]
    parts = ["; ".join(_named(change, row) for change, row in part) for part in (along, against) if part]
    if one.below and one.below[0]:
        parts.append(f"documents below rank {one.depth}, {decimal(one.below[0], 4, '+')}")
    return f": {'; '.join(parts)}" if parts else ""


def _named(change: float, row: DiffRow) -> str:
    ranks = {
        "new": f"new at {row.second_rank}",
        "gone": f"gone from {row.first_rank}",
        "same": f"at {row.second_rank}",
    }.get(row.moved, f"{row.first_rank} to {row.second_rank}")
    return f"{row.doc_id} (grade {row.shown_grade}) {ranks}, {decimal(change, 4, '+')}"


def _moves(one: TopicRows) -> str:
    """Count what moved, and what is unjudged."""
    known = one.counts
    moved = [f"{known[way]} {way}" for way in ("up", "down", "new", "gone") if known[way]]
    made = [
        f"Documents shown: {', '.join(moved)}." if moved else "Every document shown stands at the same rank in both."
    ]
    first, second = one.unjudged
    if first or second:
        made.append(f"Unjudged: {first} of {one.runs[0]}, {second} of {one.runs[1]}.")
    return " ".join(made)


def _number(value: float) -> str:
    return "-" if math.isnan(value) else decimal(value)
