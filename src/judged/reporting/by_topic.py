"""The sections about single topics: differences between two runs, and the topics with the lowest scores."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from judged.decimals import counted, decimal
from judged.reporting import charts
from judged.reporting.content import Chart, Numbers, Section
from judged.reporting.material import worst_topics
from judged.tables import Table

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
        return Section("topics", "Topic by topic", (same,))
    rows = _rows(material, shown.tolist(), gains)
    chart = Chart(
        "topics",
        f"{measure} by topic: {candidate} against {reference}",
        _drawn(material, order, shown, gains),
        _table(material, shown.tolist(), gains),
        partial(charts.differences, rows, measure, (reference, candidate)),
    )
    return Section("topics", "Topic by topic", (said,), (chart,))


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


def _rows(material: Material, shown: Sequence[int], gains: Floats) -> list[tuple[str, str, float, float, float]]:
    first, second = material.of(material.reference or ""), material.of(material.candidate)
    ids = material.scores.query_ids
    return [(ids[at], _label(material, at), float(gains[at]), float(first[at]), float(second[at])) for at in shown]


def _label(material: Material, at: int) -> str:
    query_id = material.scores.query_ids[at]
    text = material.query(query_id, _LABEL)
    return f"{query_id} {text}".rstrip()


def _table(material: Material, shown: Sequence[int], gains: Floats) -> Table:
    first, second = material.of(material.reference or ""), material.of(material.candidate)
    texts = material.topics is not None
    header = ("topic", *(("query",) if texts else ()), material.reference or "", material.candidate, "gain")
    ids = material.scores.query_ids
    rows = tuple(
        (
            ids[at],
            *((material.query(ids[at]),) if texts else ()),
            decimal(float(first[at])),
            decimal(float(second[at])),
            decimal(float(gains[at]), 4, "+"),
        )
        for at in shown
    )
    return Table(header, rows, labels=2 if texts else 1)


def lowest(material: Material) -> Section | None:
    """List the topics with the lowest scores of the candidate, beside what the other runs have there."""
    order = worst_topics(material, _LOWEST)
    if not order:
        return None
    scores, several = material.scores, len(material.scores.runs) > 2
    texts = material.topics is not None
    header = ["topic", *(["query"] if texts else []), material.candidate]
    header += [material.reference] if material.reference else []
    header += ["median run", "best run"] if several else []
    rows: list[tuple[str, ...]] = []
    for at in order:
        query_id = scores.query_ids[at]
        row = [
            query_id,
            *([material.query(query_id)] if texts else []),
            decimal(float(material.of(material.candidate)[at])),
        ]
        row += [decimal(float(material.of(material.reference)[at]))] if material.reference else []
        if several:
            column = scores.values[:, 0, at]
            known = column[np.isfinite(column)]
            best = known.max() if material.better > 0 else known.min()
            row += [decimal(float(np.median(known))), decimal(float(best))]
        rows.append(tuple(row))
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
    table = Table(tuple(header), tuple(rows), labels=2 if texts else 1)
    return Section("lowest", "Worst topics", (said + more,), (Numbers("Lowest scores", table),))
