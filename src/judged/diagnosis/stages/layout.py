"""Tables and the JSON document of a diagnosis by stages."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison.marks import fixed
from judged.diagnosis.stages.parts import VERDICTS, verdict_names
from judged.stats.pairing import plain
from judged.stats.results import p_text
from judged.tables import Cell, Table

if TYPE_CHECKING:
    from judged.diagnosis.changes import Change
    from judged.diagnosis.stages.making import Stages
    from judged.diagnosis.stages.parts import Mean, Parts
    from judged.diagnosis.stages.tracing import RelevantDocuments, Trace
    from judged.stats.results import Difference

SMALL = "few"
"""The mark of a slice that is too small to be judged by."""
_SIGNIFICANT = "*"
_HEADS = ("healthy", "not found", "ranked badly", "both", "no relevant")


def systems(found: Stages) -> list[tuple[str, Trace, tuple[Parts, ...]]]:
    """Give each system by the name that tables call it by; two of one name are told apart."""
    made = [(found.trace.name, found.trace, found.parts)]
    if found.against is not None:
        same = found.against.name == found.trace.name
        made.append(
            (f"{found.against.name} (other)" if same else found.against.name, found.against, found.parts_against)
        )
    return made


def parts_table(found: Stages) -> Table:
    """Lay out one row a slice and system."""
    several = found.against is not None
    header = ("slice", *(("system",) if several else ()), "topics", str(found.measure), str(found.recall))
    header += tuple(f"lost: {name}" for name in found.names) + _HEADS
    known = systems(found)
    rows = [
        (
            parts[at].slice,
            *((name,) if several else ()),
            f"{parts[at].topics} {SMALL}" if parts[at].small else str(parts[at].topics),
            fixed(parts[at].score.value, 4),
            fixed(parts[at].recall.value, 4),
            *(mean_cell(one) for one in parts[at].losses),
            *(str(parts[at].verdicts.get(verdict, 0)) for verdict in VERDICTS),
        )
        for at in range(len(found.parts))
        for name, _, parts in known
    ]
    return Table(header, tuple(rows), labels=2 if several else 1)


def mean_cell(one: Mean) -> Cell:
    """Write a mean with its interval."""
    rest = "" if math.isnan(one.low) else f"[{one.low:.3f}, {one.high:.3f}]"
    return Cell(fixed(one.value, 4), rest=rest)


def changes_table(found: Stages) -> Table:
    """Lay out one row a slice: the change of the score and of each part."""
    parts = tuple(dict.fromkeys(one.part for one in found.changes))
    header = ("slice", "topics")
    for name in (str(found.measure), *found.names):
        header += (name, "p")
    rows: list[tuple[str, ...]] = []
    for at in range(0, len(found.changes), len(parts)):
        chunk = found.changes[at : at + len(parts)]
        size = f"{chunk[0].found.n} {SMALL}" if chunk[0].small else str(chunk[0].found.n)
        rows.append((chunk[0].slice, size, *(cell for one in chunk for cell in change_cells(one))))
    return Table(header, tuple(rows))


def change_cells(one: Change) -> tuple[str, str]:
    """Write a change with its interval, and its corrected p-value, starred where it is significant."""
    found = one.found
    rest = "" if found.interval is None else f"[{found.interval[0]:+.3f}, {found.interval[1]:+.3f}]"
    p = "-" if math.isnan(found.decisive_p) else p_text(found.decisive_p).removeprefix("= ")
    return Cell(fixed(found.difference, 4, "+"), rest=rest), Cell(p, mark=_SIGNIFICANT if one.significant else "")


def topics_table(found: Stages, limit: int | None) -> Table:
    """Lay out one row a topic: the largest loss first, with the other system the largest loss against it."""
    trace, verdicts = found.trace, found.verdicts
    change = np.full(len(trace.score), np.nan) if found.against is None else trace.score - found.against.score
    order = np.lexsort((trace.score - trace.best, np.nan_to_num(change, nan=0.0)))[:limit]
    recall = str(found.recall)
    header = ("query_id", "verdict", str(found.measure), "best", recall, "found", *(f"lost: {n}" for n in found.names))
    header += ("judged@10",)
    if found.against is not None:
        header += ("change", *(f"by {name}" for name in found.names))
    rows = [
        (
            found.query_ids[at],
            verdicts[at],
            fixed(float(trace.score[at]), 4),
            fixed(float(trace.best[at]), 4),
            fixed(float(trace.recall[at]), 4),
            f"{trace.found[at]}/{trace.relevant[at]}",
            *(fixed(float(part[at]), 4) for part in trace.parts),
            f"{trace.judged[at]:.0%}",
            *_topic_changes(found, at, float(change[at])),
        )
        for at in order.tolist()
    ]
    return Table(header, tuple(rows), labels=2)


def _topic_changes(found: Stages, at: int, change: float) -> tuple[str, ...]:
    if found.against is None:
        return ()
    cells = [fixed(change, 4, "+") + _star(found, "score", at)]
    for name, mine, other in zip(found.names, found.trace.parts, found.against.parts, strict=True):
        cells.append(fixed(float(other[at] - mine[at]), 4, "+") + _star(found, name, at))
    return tuple(cells)


def _star(found: Stages, part: str, at: int) -> str:
    return _SIGNIFICANT if found.lost[part].mask[at] else ""


def documents_table(found: Stages, query_id: str | None) -> Table:
    """Lay out the relevant documents that the page does not show."""
    at = lost_documents(found, found.trace.documents)
    documents = found.trace.documents
    rows = [
        (
            found.query_ids[int(documents.topic[row])],
            documents.doc[row],
            f"{documents.grade[row]:g}",
            where_lost(int(documents.candidate[row]), found.choices.depth),
            str(documents.candidate[row] or "-"),
            str(documents.final[row] or "-"),
        )
        for row in at
        if query_id is None or found.query_ids[int(documents.topic[row])] == query_id
    ]
    return Table(("query_id", "doc_id", "grade", "lost", "candidate rank", "final rank"), tuple(rows), labels=2)


def lost_documents(found: Stages, documents: RelevantDocuments) -> list[int]:
    """Give the relevant documents that do not stand above the measure's cutoff in the final ranking."""
    cutoff = getattr(found.measure, "cutoff", None)
    page = documents.final > 0
    if isinstance(cutoff, int):
        page &= documents.final <= cutoff
    return np.flatnonzero(~page).tolist()


def where_lost(candidate: int, depth: int) -> str:
    """Say where a relevant document that is not shown was lost."""
    if not candidate:
        return "not returned"
    return "below the depth" if candidate > depth else "ranked low"


def topic_rows(found: Stages) -> Table:
    """Lay out one row a topic and system, in full precision: for CSV."""
    header = ("query_id", "system", "verdict", "score", "best", *(f"lost_{name}" for name in found.names))
    header += ("recall", "relevant", "found", "judged", "foreign")
    rows = [
        (
            query,
            name,
            verdicts[at],
            *map(_full, (trace.score[at], trace.best[at], *trace.parts[:, at], trace.recall[at])),
            str(trace.relevant[at]),
            str(trace.found[at]),
            _full(trace.judged[at]),
            str(trace.foreign[at]),
        )
        for name, trace, _ in systems(found)
        for verdicts in [verdict_names(trace, found.choices)]
        for at, query in enumerate(found.query_ids)
    ]
    return Table(header, tuple(rows), labels=3)


def _full(value: Any) -> str:
    return "" if math.isnan(value) else repr(float(value))


def document(found: Stages) -> dict[str, Any]:
    """Lay out everything as plain Python values."""
    made: dict[str, Any] = {
        "measure": str(found.measure),
        "recall": str(found.recall),
        "parts": list(found.names),
        "choices": asdict(found.choices),
        "systems": [_system(found, *one) for one in systems(found)],
        "changes": [_change(one) for one in found.changes],
        "lost": {name: _lost(found, one.to_dict()) for name, one in found.lost.items()},
        "sentences": list(found.sentences),
        "warnings": list(found.warnings),
    }
    return made


def _system(found: Stages, name: str, trace: Trace, parts: tuple[Parts, ...]) -> dict[str, Any]:
    verdicts = verdict_names(trace, found.choices)
    documents = trace.documents
    return {
        "name": name,
        "slices": [_slice(one, found.names) for one in parts],
        "topics": {
            query: {
                "score": plain(float(trace.score[at])),
                "best": plain(float(trace.best[at])),
                "attainable": [plain(float(stage.attainable[at])) for stage in trace.stages],
                "losses": [plain(float(part[at])) for part in trace.parts],
                "recall": plain(float(trace.recall[at])),
                "relevant": int(trace.relevant[at]),
                "found": int(trace.found[at]),
                "judged": plain(float(trace.judged[at])),
                "foreign": int(trace.foreign[at]),
                "verdict": verdicts[at],
            }
            for at, query in enumerate(found.query_ids)
        },
        "lost_documents": [
            {
                "query_id": found.query_ids[int(documents.topic[at])],
                "doc_id": documents.doc[at],
                "grade": float(documents.grade[at]),
                "lost": where_lost(int(documents.candidate[at]), found.choices.depth),
                "candidate_rank": int(documents.candidate[at]) or None,
                "final_rank": int(documents.final[at]) or None,
            }
            for at in lost_documents(found, documents)
        ],
    }


def _slice(one: Parts, names: tuple[str, ...]) -> dict[str, Any]:
    return {
        "slice": one.slice,
        "topics": one.topics,
        "small": one.small,
        "score": _mean(one.score),
        "best": _mean(one.best),
        "recall": _mean(one.recall),
        "losses": {name: _mean(mean) for name, mean in zip(names, one.losses, strict=True)},
        "verdicts": dict(one.verdicts),
    }


def _mean(one: Mean) -> dict[str, Any]:
    return {"value": plain(one.value), "ci": None if math.isnan(one.low) else [one.low, one.high]}


def _change(one: Change) -> dict[str, Any]:
    found: Difference = one.found
    return {
        "slice": one.slice, "part": one.part, "small": one.small, "significant": one.significant, **found.to_dict(),
    }  # fmt: skip


def _lost(found: Stages, made: dict[str, Any]) -> dict[str, Any]:
    return {**made, "found": [found.query_ids[at] for at in made["found"]]}
