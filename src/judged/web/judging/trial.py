"""Labels to try judging with: a store that goes when the workbench ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.labels.pooling import pool
from judged.labels.store import LabelStore, NewTask

if TYPE_CHECKING:
    from pathlib import Path

    from judged.web.workspace import Workspace

TOPICS, DEPTH = 5, 5
"""Of so many topics the first documents of every run are tasks."""


def trial_store(workspace: Workspace, path: Path) -> LabelStore:
    """Make a store of the topics that are open, with the first documents of the runs as tasks."""
    chosen = set(workspace.query_ids[:TOPICS])
    pairs = pool([one.run for one in workspace.lists.values()], depth=DEPTH).pairs.to_pylist()
    tasks = [NewTask(row["query_id"], row["doc_id"]) for row in pairs if row["query_id"] in chosen]
    store = LabelStore.open(path)
    store.add_topics([{"query_id": topic, "text": workspace.query(topic) or topic} for topic in workspace.query_ids])
    if texts := workspace.texts:
        documents = {task.doc_id for task in tasks if task.doc_id in texts}
        store.add_documents({doc: {"title": texts.title(doc), "text": texts.text(doc)} for doc in sorted(documents)})
    store.add_tasks(tasks)
    return store
