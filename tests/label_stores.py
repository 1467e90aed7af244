"""A store of labels with tasks, for tests of the judging page."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from judged.interface.pages.workspace import open_workspace
from judged.labels.labels import Labels
from judged.labels.store import LabelStore, NewTask

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "<img src=x onerror=alert(1)>"
QRELS = {"q1": {"d1": 2.0, "d2": 0.0}, "q2": {"d3": 1.0}}
RUNS = {"mine": {"q1": {"d2": 2.0, "d1": 1.0}, "q2": {"d3": 1.0}}, "other": {"q1": {"d1": 1.0}, "q2": {"d4": 1.0}}}


def store_of(path: Path, n: int = 6, scale: str = "0-3") -> LabelStore:
    """Create a store with one topic and n documents, each of which is a task of all judges."""
    store = LabelStore.open(path, scale=scale)
    narrative = "A relevant document says who wrote it."
    store.add_topics(
        [{"query_id": "q1", "text": "who wrote Faust", "description": "The author.", "narrative": narrative}]
    )
    store.add_documents({f"d{i}": {"title": f"Number {i}", "text": f"Fausts, {HOSTILE} & more"} for i in range(n)})
    store.add_tasks([NewTask("q1", f"d{i}") for i in range(n)])
    return store


def workspace_of(store: LabelStore | None) -> Any:
    """Open the store with judgments and runs."""
    return replace(open_workspace(QRELS, RUNS), labels=store)


def counted(store: LabelStore, judge: str) -> dict[str, float | None]:
    """Return the grade of each document from valid labels, without repetitions."""
    last = Labels.of(store).last.to_pylist()
    return {row["doc_id"]: row["grade"] for row in last if row["judge"] == judge and row["valid"] and not row["repeat"]}
