"""How often a run's first documents are wrong, and how many relevant ones they lack: by run and slice."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.decimals import counted, percent
from judged.stats.pairing import topics_text
from judged.tables import Table

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
    sliced = any(one.slice for one in rates)
    header = ("run", *(("slice",) if sliced else ()))
    rows = tuple(
        (
            one.run,
            *((_slice(one),) if sliced else ()),
            str(one.topics),
            str(one.returned),
            _share(one.false_positives, one.false_positive_rate),
            _share(one.unjudged, one.unjudged_rate),
            str(one.relevant),
            _share(one.false_negatives, one.miss_rate),
            str(one.low),
            str(one.missed),
        )
        for one in rates
    )
    names = ("topics", f"first {k}", "false positive", "unjudged", "relevant", f"not in first {k}", "low", "missed")
    return Table((*header, *names), rows, labels=len(header))


def short_rates_table(rates: Sequence[ReviewRates], k: int) -> Table:
    """Lay out the shares alone, for a narrow terminal."""
    sliced = any(one.slice for one in rates)
    rows = tuple(
        (
            one.run,
            *((_slice(one),) if sliced else ()),
            str(one.topics),
            *(
                "-" if math.isnan(rate) else percent(rate)
                for rate in (one.false_positive_rate, one.unjudged_rate, one.miss_rate)
            ),
        )
        for one in rates
    )
    header = ("run", *(("slice",) if sliced else ()), "topics", "wrong", "unjudged", f"not in {k}")
    return Table(header, rows, labels=2 if sliced else 1)


def _slice(one: ReviewRates) -> str:
    return f"{one.slice} (few topics)" if one.small else one.slice or "all"


def rates_sentences(rates: Sequence[ReviewRates], k: int) -> list[str]:
    """Say what was counted of each run; and in which slice each rate is highest, among those with enough topics."""
    said: list[str] = []
    whole = [one for one in rates if not one.slice]
    for one in whole if len(whole) <= _RUNS else whole[:2]:
        said.append(
            f"{one.run}: of the {counted(one.returned, 'document')} among the first {k} of {topics_text(one.topics)},"
            f" {_share(one.false_positives, one.false_positive_rate)} {_is(one.false_positives)} judged not relevant"
            f" and {_share(one.unjudged, one.unjudged_rate)} {_is(one.unjudged)} not judged."
            f" Of {counted(one.relevant, 'relevant document')} {_share(one.false_negatives, one.miss_rate)}"
            f" {_is(one.false_negatives)} not among them: {one.low} {'stands' if one.low == 1 else 'stand'} lower,"
            f" {one.missed} {'was' if one.missed == 1 else 'were'} not returned{_no_place(one, k)}."
        )
        sliced = [other for other in rates if other.run == one.run and other.slice and not other.small]
        if len(sliced) > 1 and (worst := _worst(sliced, k)):
            said.append(
                f"{one.run}, slices with enough topics: {worst}. That is where to look first; it was not tested."
            )
    if len(whole) > _RUNS:
        said.append(f"The {counted(len(whole) - 2, 'other run is', 'other runs are')} in the table of rates.")
    return said


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _no_place(one: ReviewRates, k: int) -> str:
    if not one.without_place:
        return ""
    return f" ({one.without_place} of them can have no place there, as their topics have more than {k})"


def _worst(sliced: Sequence[ReviewRates], k: int) -> str:
    """Name the slices with the highest rates; they were not tested, so this is where to look and no finding."""
    parts: list[str] = []
    for what, count, total, rate in (
        ("documents judged not relevant", "false_positives", "returned", "false_positive_rate"),
        ("documents that are not judged", "unjudged", "returned", "unjudged_rate"),
        (f"relevant documents not among the first {k}", "false_negatives", "relevant", "miss_rate"),
    ):
        worst = max(sliced, key=lambda one: _or_nothing(getattr(one, rate)))
        if getattr(worst, count):
            counts = f"{getattr(worst, count)} of {getattr(worst, total)}, {topics_text(worst.topics)}"
            parts.append(f"of {what} in {worst.slice} ({counts})")
    return f"the highest share {', '.join(parts)}" if parts else ""


def _or_nothing(rate: float) -> float:
    return -1.0 if math.isnan(rate) else rate


def _share(count: int, rate: float) -> str:
    return f"{count} ({rate:.1%})" if not math.isnan(rate) else str(count)
