"""How often a run's first documents are wrong, and how many relevant ones they lack: by run and slice."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.answer import Column, Table
from judged.answer.table import COUNT, TEXT, Show, columns_of
from judged.decimals import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Bools, Ints
    from judged.diagnosis.review.relabelling import Opened
    from judged.slicing.slices import Slicing

_RUNS = 4  # that are spoken of one by one


@dataclass(frozen=True)
class ReviewRates:
    """What stands among the first k documents of some topics, and what does not."""

    # run, slice: `""`: all topics
    run: str
    slice: str
    topics: int
    # whether the slice has fewer topics than it is judged by: its rates are shown, and nothing is said of them
    small: bool
    returned: int  # how many documents stand among the first k of these topics
    # false_positives, unjudged: how many of them are judged below the level, and how many are not judged
    false_positives: int
    unjudged: int
    relevant: int  # how many relevant documents the qrels know
    # low, missed: how many of them the run returned below rank k, and how many not at all
    low: int
    missed: int
    without_place: int  # how many must be lacking, whatever the run does, as their topics have more than k

    @property
    def false_positive_rate(self) -> float:
        """The share of the first k documents that are judged and not relevant; NaN if there are none."""
        return self.false_positives / self.returned if self.returned else math.nan

    @property
    def unjudged_rate(self) -> float:
        """The share of the first k documents that are not judged."""
        return self.unjudged / self.returned if self.returned else math.nan

    @property
    def false_negatives(self) -> int:
        """How many relevant documents are not among the first k."""
        return self.low + self.missed

    @property
    def miss_rate(self) -> float:
        """The share of the relevant documents that are not among the first k; NaN if there are none."""
        return self.false_negatives / self.relevant if self.relevant else math.nan


def rates_of(opened: Opened, relevant: Bools, k: int, slicing: Slicing | None) -> tuple[ReviewRates, ...]:
    """Count by run over all topics, and then over those of each slice."""
    index = opened.qrels.index
    topics = len(index.topics)
    groups = [("", False, np.ones(topics, dtype=np.bool_))]
    if slicing is not None:
        columns = zip(slicing.names, slicing.small.tolist(), slicing.members, strict=True)
        groups += [(name, small, mask) for name, small, mask in columns]
    known = _by_topic(index.topic, relevant, topics)
    rates: list[ReviewRates] = []
    for judged, ranks in zip(opened.lists, opened.ranks, strict=True):
        first = (ranks > 0) & (ranks <= k)
        counts = (
            np.minimum(judged.returned, k),
            _by_topic(index.topic, first & ~relevant & ~opened.unjudged, topics),
            _by_topic(index.topic, first & opened.unjudged, topics),
            known,
            _by_topic(index.topic, relevant & (ranks > k), topics),
            _by_topic(index.topic, relevant & (ranks == 0), topics),
            np.maximum(known - k, 0),
        )
        rates += [
            ReviewRates(judged.run.name, name, int(mask.sum()), small, *(int(count[mask].sum()) for count in counts))
            for name, small, mask in groups
        ]
    return tuple(rates)


def _by_topic(topic: Ints, marks: Bools, count: int) -> Ints:
    return np.bincount(topic[marks], minlength=count).astype(np.int64)


def rates_table(rates: Sequence[ReviewRates], k: int) -> Table:
    """Lay out counts and rates, one row a run and slice."""
    named = Show(lambda name: name or "all", "string")
    few = ["(few topics)" if row.small else "" for row in rates]
    sliced = any(row.slice for row in rates)
    columns = [
        *columns_of(rates, ("run", TEXT)),
        Column("slice", [row.slice for row in rates], named, beside=few, only="" if sliced else "data"),
        *columns_of(rates, "small", ("topics", COUNT), ("returned", COUNT, f"first {k}")),
    ]
    for name, rate, title in (
        ("false_positives", "false_positive_rate", "false positive"),
        ("unjudged", "unjudged_rate", None),
        ("relevant", "", None),
        ("false_negatives", "miss_rate", f"not in first {k}"),
    ):
        shares = [_percent(getattr(row, rate)) for row in rates] if rate else ()
        columns.append(Column(name, [getattr(row, name) for row in rates], COUNT, title, beside=shares))
        columns += columns_of(rates, rate) if rate else ()
    columns += columns_of(rates, ("low", COUNT), ("missed", COUNT), "without_place")
    return Table("rates", tuple(columns), labels=1 + sliced)


def _percent(rate: float) -> str:
    return "" if math.isnan(rate) else f"({rate:.1%})"


def rates_sentences(rates: Sequence[ReviewRates], k: int) -> list[str]:
    """Say what was counted of each run; and in which slice each rate is highest, among those with enough topics."""
    said: list[str] = []
    whole = [row for row in rates if not row.slice]
    for row in whole if len(whole) <= _RUNS else whole[:2]:
        wrong, unknown, lacking = (
            f"{count} {_percent(rate)}".rstrip() + (" is" if count == 1 else " are")
            for count, rate in (
                (row.false_positives, row.false_positive_rate),
                (row.unjudged, row.unjudged_rate),
                (row.false_negatives, row.miss_rate),
            )
        )
        no_place = f" ({row.without_place} of them can have no place there, as their topics have more than {k})"
        said.append(
            f"{row.run}: of the {counted(row.returned, 'document')} among the first {k} of"
            f" {counted(row.topics, 'topic')}, {wrong} judged not relevant and {unknown} not judged. Of"
            f" {counted(row.relevant, 'relevant document')} {lacking} not among them: {row.low}"
            f" {'stands' if row.low == 1 else 'stand'} lower, {row.missed} {'was' if row.missed == 1 else 'were'} not"
            f" returned{no_place if row.without_place else ''}."
        )
        sliced = [part for part in rates if part.run == row.run and part.slice and not part.small]
        if len(sliced) > 1 and (worst := _worst(sliced, k)):
            look = "That is where to look first; it was not tested"
            said.append(f"{row.run}, slices with enough topics: {worst}. {look}.")
    if len(whole) > _RUNS:
        said.append(f"The {counted(len(whole) - 2, 'other run is', 'other runs are')} in the table of rates.")
    return said


def _worst(sliced: Sequence[ReviewRates], k: int) -> str:
    """Name the slices with the highest rates; they were not tested, so this is where to look and no finding."""
    parts: list[str] = []
    for what, count, total, rate in (
        ("documents judged not relevant", "false_positives", "returned", "false_positive_rate"),
        ("documents that are not judged", "unjudged", "returned", "unjudged_rate"),
        (f"relevant documents not among the first {k}", "false_negatives", "relevant", "miss_rate"),
    ):
        worst = max(sliced, key=lambda row: np.nan_to_num(getattr(row, rate), nan=-1.0))
        if getattr(worst, count):
            counts = f"{getattr(worst, count)} of {getattr(worst, total)}, {counted(worst.topics, 'topic')}"
            parts.append(f"of {what} in {worst.slice} ({counts})")
    return f"the highest share {', '.join(parts)}" if parts else ""
