"""The sections about single topics: differences between two runs, and the topics with the lowest scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.answer import CHANGE, NUMBER, TEXT, Chart, Column, Line, Section, Sentences, Table
from judged.charting import PALETTE
from judged.decimals import counted, decimal
from judged.reporting.material import worst_topics

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from judged._types import Floats
    from judged.reporting.material import Material

    Positions: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]

_ALL = 60  # topics: as many bars can be read
_SAME = 10  # topics without a difference: more of them are no more than white space
_ENDS = 20  # where there are more: this many losses, and as many gains
_LOWEST = 10
_LABEL = 44  # characters of a query beside a bar


def differences(material: Material) -> Section | None:
    """Draw and list by how much the candidate is better or worse on each topic."""
    gains = material.gains()
    known = np.flatnonzero(np.isfinite(gains))
    if material.reference is None or not len(known):
        return None
    order = known[np.argsort(-gains[known], kind="stable")]
    apart = order[gains[order] != 0]
    shown = _ends(apart if len(order) - len(apart) > _SAME or len(order) > _ALL else order)
    won, lost = int((gains > 0).sum()), int((gains < 0).sum())
    measure, candidate, reference = str(material.lead), material.candidate, material.reference
    lower = " Lower is better here, so a bar to the right is a lower score." if material.better < 0 else ""
    said = (
        f"{candidate} is better than {reference} on {counted(won, 'topic')}, worse on {lost:,}, and equal on"
        f" {len(known) - won - lost:,}, by {measure}.{lower}"
    )
    if not len(apart):
        same = f"{candidate} and {reference} have the same {measure} on {_every(len(known))}."
        return Section("topics", "Topic by topic", (Sentences((same,)),))
    chart = Chart(
        "topics",
        f"{measure} by topic: {candidate} against {reference}",
        _table(material, shown.tolist(), gains),
        _drawn(material, order, shown, gains),
        kind="bars", x="gain", y="label", colour="side", lines=(Line("x", 0.0, dashed=False),),
        x_title=f"{measure}: {candidate} against {reference}",
        colours={"gain": PALETTE[0], "loss": PALETTE[1]}, legend=False,
    )  # fmt: skip
    return Section("topics", "Topic by topic", (Sentences((said,)), chart))


def _drawn(material: Material, order: Positions, shown: Positions, gains: Floats) -> str:
    """Say what the bars are, and which topics have none."""
    best, last = (_named(material, at, gains) for at in (order[0], order[-1]))
    if len(order) == 1:
        return f"One bar: by how much {material.candidate} is better than {material.reference} on {best}."
    cut = ""
    if len(shown) < len(order):
        cut = " Those without a difference are not drawn." if len(shown) == np.count_nonzero(gains[order]) else ""
        cut = cut or f" Of {len(order):,} topics the largest gains and losses are shown."
    return (
        f"One bar a topic, from the largest gain of {material.candidate} over {material.reference} ({best})"
        f" to its largest loss ({last}).{cut}"
    )


def _every(topics: int) -> str:
    return "the only topic" if topics == 1 else f"every one of {counted(topics, 'topic')}"


def _ends(order: Positions) -> Positions:
    """Keep the largest gains and losses where there are too many topics to draw."""
    return order if len(order) <= _ALL else np.concatenate([order[:_ENDS], order[-_ENDS:]])


def _named(material: Material, at: int, gains: Floats) -> str:
    return f"topic {material.scores.query_ids[at]}, {decimal(float(gains[at]), 3, '+')}"


def _table(material: Material, shown: Sequence[int], gains: Floats) -> Table:
    reference = material.reference or ""
    first, second = material.of(reference), material.of(material.candidate)
    ids = [material.scores.query_ids[at] for at in shown]
    labels = [f"{query_id} {material.query(query_id, _LABEL)}".rstrip() for query_id in ids]
    columns = (
        *_topics(material, ids),
        Column("reference", first[shown].tolist(), NUMBER, reference),
        Column("candidate", second[shown].tolist(), NUMBER, material.candidate),
        Column("gain", gains[shown].tolist(), CHANGE),
        Column("label", labels, TEXT, only="data"),
        Column("side", ["gain" if gains[at] > 0 else "loss" for at in shown], TEXT, only="data"),
    )
    return Table("topic_gains", columns, labels=2 if material.topics is not None else 1)


def _topics(material: Material, ids: Sequence[str]) -> list[Column]:
    """Give the columns that name topics."""
    queries = [Column("query", [material.query(query_id) for query_id in ids], TEXT)]
    return [Column("topic", ids, TEXT), *(queries if material.topics is not None else [])]


def lowest(material: Material) -> Section | None:
    """List the topics with the lowest scores of the candidate, beside what the other runs have there."""
    order = worst_topics(material, _LOWEST)
    if not order:
        return None
    scores, several = material.scores, len(material.scores.runs) > 2
    columns = _topics(material, [scores.query_ids[at] for at in order])
    columns.append(Column("candidate", material.of(material.candidate)[order].tolist(), NUMBER, material.candidate))
    if material.reference:
        columns.append(Column("reference", material.of(material.reference)[order].tolist(), NUMBER, material.reference))
    if several:
        by_run = scores.values[:, 0, order]
        best = (np.nanmax if material.better > 0 else np.nanmin)(by_run, axis=0)
        columns.append(Column("median", np.nanmedian(by_run, axis=0).tolist(), NUMBER, "median run"))
        columns.append(Column("best", best.tolist(), NUMBER, "best run"))
    said = (
        f"The {counted(len(order), 'topic')} with the worst {material.lead} of {material.candidate}."
        if len(order) > 1
        else f"The only topic, by {material.lead}."
    )
    more = (
        " Where the best run is low too, the topic is hard for all of them, or its judgments are the reason;"
        " where the best run is high, this run misses what others find."
        if several
        else ""
    )
    table = Table("lowest_topics", tuple(columns), "Lowest scores", labels=2 if material.topics is not None else 1)
    return Section("lowest", "Worst topics", (Sentences((said + more,)), table))
