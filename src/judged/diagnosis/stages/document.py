"""A diagnosis by stages as plain values for JSON, and as rows for CSV."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from judged.diagnosis.stages.layout import lost_documents, where_lost
from judged.diagnosis.stages.parts import VERDICTS, verdict_names
from judged.diagnosis.stages.sentences import sentences
from judged.stats.pairing import plain
from judged.tables import Table

if TYPE_CHECKING:
    from judged.diagnosis.changes import Change
    from judged.diagnosis.stages.parts import Mean, Parts
    from judged.diagnosis.stages.split import SplitLoss
    from judged.diagnosis.stages.tracing import Trace
    from judged.stats.results import Difference


def topic_rows(found: SplitLoss) -> Table:
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
        for name, trace, _ in found.systems
        for verdicts in [verdict_names(trace, found.choices)]
        for at, query in enumerate(found.query_ids)
    ]
    return Table(header, tuple(rows), labels=3)


def slice_rows(found: SplitLoss) -> Table:
    """Lay out one row a slice and system, in full precision: for CSV."""
    header = ["slice", "system", "topics", "small"]
    for name in ("score", "best", "recall", *(f"lost_{name}" for name in found.names)):
        header += [name, f"{name}_low", f"{name}_high"]
    header += VERDICTS
    rows = [
        (
            one.slice,
            name,
            str(one.topics),
            str(one.small).lower(),
            *(_full(value) for mean in (one.score, one.best, one.recall, *one.losses) for value in mean),
            *(str(one.verdicts.get(verdict, 0)) for verdict in VERDICTS),
        )
        for at in range(len(found.parts))
        for name, _, parts in found.systems
        for one in [parts[at]]
    ]
    return Table(tuple(header), tuple(rows), labels=2)


def _full(value: Any) -> str:
    return "" if math.isnan(value) else repr(float(value))


def document(found: SplitLoss) -> dict[str, Any]:
    """Lay out everything as plain Python values."""
    made: dict[str, Any] = {
        **found.provenance.to_dict(),
        "measure": str(found.measure),
        "recall": str(found.recall),
        "parts": list(found.names),
        "choices": asdict(found.choices),
        "systems": [_system(found, *one) for one in found.systems],
        "changes": [_change(one) for one in found.changes],
        "lost": {name: _lost(found, one.to_dict()) for name, one in found.lost.items()},
        "sentences": list(sentences(found)),
        "warnings": list(found.warnings),
    }
    return made


def _system(found: SplitLoss, name: str, trace: Trace, parts: tuple[Parts, ...]) -> dict[str, Any]:
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
                "lost": where_lost(int(documents.candidate[at]), int(documents.final[at]), found.choices.depth),
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


def _lost(found: SplitLoss, made: dict[str, Any]) -> dict[str, Any]:
    return {**made, "found": [found.query_ids[at] for at in made["found"]]}
