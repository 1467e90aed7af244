"""Tables of a diagnosis by stages."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from judged.decimals import decimal, percent
from judged.diagnosis.stages.parts import BADLY_RANKED, NOTHING, SCORE, VERDICTS
from judged.slicing.layout import direction
from judged.stats.results import p_text
from judged.tables import Cell, Table

if TYPE_CHECKING:
    from judged.diagnosis.changes import Change
    from judged.diagnosis.stages.parts import Mean
    from judged.diagnosis.stages.split import SplitLoss
    from judged.diagnosis.stages.tracing import RelevantDocuments

SMALL = "few"
"""The mark of a slice that is too small to be judged by."""
_SIGNIFICANT = "*"
_SHORT = {BADLY_RANKED: "ranked badly", NOTHING: "no relevant"}  # in tables


def parts_table(found: SplitLoss) -> Table:
    """Lay out one row a slice and system: scores, and what is lost by which part."""
    several = found.against is not None
    header = ("slice", *(("system",) if several else ()), "n", str(found.measure), _recall_head(found))
    header += tuple(f"lost: {name}" for name in found.names)
    known = found.systems
    rows = [
        (
            parts[at].slice,
            *((name,) if several else ()),
            f"{parts[at].topics} {SMALL}" if parts[at].small else str(parts[at].topics),
            decimal(parts[at].score.value),
            decimal(parts[at].recall.value),
            *(mean_cell(one) for one in parts[at].losses),
        )
        for at in range(len(found.parts))
        for name, _, parts in known
    ]
    return Table(header, tuple(rows), labels=2 if several else 1)


def verdicts_table(found: SplitLoss) -> Table:
    """Lay out one row a slice and system: how many topics have which verdict."""
    several = found.against is not None
    header = ("slice", *(("system",) if several else ()), *map(_in_short, VERDICTS))
    rows = [
        (
            parts[at].slice,
            *((name,) if several else ()),
            *(str(parts[at].verdicts.get(verdict, 0)) for verdict in VERDICTS),
        )
        for at in range(len(found.parts))
        for name, _, parts in found.systems
    ]
    return Table(header, tuple(rows), labels=2 if several else 1)


def _in_short(verdict: str) -> str:
    return _SHORT.get(verdict, verdict)


def _recall_head(found: SplitLoss) -> str:
    """Name the measure of the candidates, also where it is the one of the ranking."""
    return f"{found.recall} of candidates" if str(found.recall) == str(found.measure) else str(found.recall)


def mean_cell(one: Mean) -> Cell:
    """Write a mean with its interval."""
    rest = "" if math.isnan(one.low) else f"[{decimal(one.low, 3)}, {decimal(one.high, 3)}]"
    return Cell(decimal(one.value), rest=rest)


def changes_table(found: SplitLoss) -> Table:
    """Lay out one row a slice and part: the change of the score, and of each part."""
    (first, _, _), (second, _, _) = found.systems
    header = ("slice", "of", "topics", direction(first, second), "p")
    names = {SCORE: str(found.measure)}
    rows = [(one.slice, names.get(one.part, one.part), change_size(one), *change_cells(one)) for one in found.changes]
    return Table(header, tuple(rows), labels=2)


def change_size(one: Change) -> str:
    """Write over how many topics something changed, and whether these are few."""
    return f"{one.found.n} {SMALL}" if one.small else str(one.found.n)


def change_cells(one: Change) -> tuple[str, str]:
    """Write a change with its interval, and its corrected p-value, starred where it is significant."""
    found = one.found
    rest = (
        ""
        if found.interval is None
        else f"[{decimal(found.interval[0], 3, '+')}, {decimal(found.interval[1], 3, '+')}]"
    )
    p = "-" if math.isnan(found.decisive_p) else p_text(found.decisive_p, 1 - found.level).removeprefix("= ")
    return Cell(decimal(found.difference, 4, "+"), rest=rest), Cell(p, mark=_SIGNIFICANT if one.significant else "")


def topics_table(found: SplitLoss, limit: int | None) -> Table:
    """Lay out one row a topic: the largest loss first, with the other system the largest loss against it."""
    trace, verdicts = found.trace, found.verdicts
    change = np.full(len(trace.score), np.nan) if found.against is None else trace.score - found.against.score
    order = np.lexsort((trace.score - trace.best, np.nan_to_num(change, nan=0.0)))[:limit]
    alone = found.against is None
    header = ("query_id", "verdict", str(found.measure), "best", _recall_head(found), "found")
    header += tuple(f"lost: {name}" for name in found.names) if alone else ()
    header += ("judged",) + (() if alone else ("change", *(f"by {name}" for name in found.names)))
    rows = [
        (
            found.query_ids[at],
            _in_short(verdicts[at]),
            decimal(float(trace.score[at])),
            decimal(float(trace.best[at])),
            decimal(float(trace.recall[at])),
            f"{trace.found[at]}/{trace.relevant[at]}",
            *(decimal(float(part[at])) for part in trace.parts if alone),
            percent(float(trace.judged[at])),
            *_topic_changes(found, at, float(change[at])),
        )
        for at in order.tolist()
    ]
    return Table(header, tuple(rows), labels=2)


def _topic_changes(found: SplitLoss, at: int, change: float) -> tuple[str, ...]:
    if found.against is None:
        return ()
    cells = [decimal(change, 4, "+") + _star(found, "score", at)]
    for name, mine, other in zip(found.names, found.trace.parts, found.against.parts, strict=True):
        cells.append(decimal(float(other[at] - mine[at]), 4, "+") + _star(found, name, at))
    return tuple(cells)


def _star(found: SplitLoss, part: str, at: int) -> str:
    return _SIGNIFICANT if found.lost[part].mask[at] else ""


def documents_table(found: SplitLoss, query_id: str | None) -> Table:
    """Lay out the relevant documents that the page does not show."""
    at = lost_documents(found, found.trace.documents)
    documents = found.trace.documents
    rows = [
        (
            found.query_ids[int(documents.topic[row])],
            documents.doc[row],
            f"{documents.grade[row]:g}",
            where_lost(int(documents.candidate[row]), int(documents.final[row]), found.choices.depth),
            str(documents.candidate[row] or "-"),
            str(documents.final[row] or "-"),
        )
        for row in at
        if query_id is None or found.query_ids[int(documents.topic[row])] == query_id
    ]
    return Table(("query_id", "doc_id", "grade", "lost", "candidate rank", "final rank"), tuple(rows), labels=2)


def lost_documents(found: SplitLoss, documents: RelevantDocuments) -> list[int]:
    """Give the relevant documents that do not stand above the measure's cutoff in the final ranking."""
    cutoff = getattr(found.measure, "cutoff", None)
    page = documents.final > 0
    if isinstance(cutoff, int):
        page &= documents.final <= cutoff
    return np.flatnonzero(~page).tolist()


def where_lost(candidate: int, final: int, depth: int) -> str:
    """Say where a relevant document that is not shown was lost, by its ranks; 0: it is not there."""
    if not candidate:
        return "not returned"
    if candidate > depth:
        return "below the depth"
    return "ranked low" if final else "dropped"
