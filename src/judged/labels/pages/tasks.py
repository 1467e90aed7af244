"""Data of the judging page: tasks, labels, the grade scale, and a store to try it."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from judged.interface.pages.filters import split_at_matches
from judged.interface.pages.problems import Text, text_field
from judged.labels.pooling import pool
from judged.labels.store import JudgingTask, LabelStore, NewTask

if TYPE_CHECKING:
    from pathlib import Path

    from judged.interface.pages.workspace import Workspace


class NewLabel(BaseModel):
    """A label for a task."""

    task: int = Field(ge=0, le=2**53, description="Id of the task.")
    grade: float | None = Field(
        None,
        allow_inf_nan=False,
        description="Grade on the scale of the store, or null if the judge skipped the document.",
    )
    valid: bool = Field(
        default=True,
        description="Whether the label counts. If false, the judge postponed or undid the label, and the task is open"
        " again.",
    )
    note: Text = text_field("Note of the judge.", limit=10_000)
    seconds: float | None = Field(
        None, ge=0, le=1e6, allow_inf_nan=False, description="Time that the judge took for the label, in seconds."
    )


class NewLabels(BaseModel):
    """Labels of a judge in their order."""

    judge: Text = Field(max_length=200, description="Name of the judge.")
    labels: list[NewLabel] = Field(
        max_length=100, description="Labels, in the order of judging. The store saves either all labels or no label."
    )


def save_labels(store: LabelStore, judge: str, new_labels: list[NewLabel]) -> int:
    """Store labels, which are durable when this returns, and return their number."""
    rows: list[dict[str, Any]] = []
    for label in new_labels:
        task = store.task(judge, label.task)
        pair = {"query_id": task.query_id, "doc_id": task.doc_id, "repeat": task.repeat, "judge": judge}
        rows.append(pair | label.model_dump(exclude={"task"}))
    return store.add_many(rows)


def next_tasks(store: LabelStore, judge: str, limit: int, first: int | None = None) -> dict[str, Any]:
    """Return the next tasks of a judge and their progress; `first` is the ID of the task to show first."""
    open_tasks = {(task.query_id, task.doc_id, task.repeat): task for task in store.tasks(judge)}
    # Stable sort: the requested task first, the others in their order.
    ordered = sorted(open_tasks.values(), key=lambda task: task.task != first)
    assigned = store.count_tasks(judge)
    return {
        "judge": judge,
        "store": sha256(store.where.encode()).hexdigest()[:16],  # key of the store in the browser
        "done": assigned - len(ordered),
        "assigned": assigned,
        "tasks": [task_data(store, task) for task in ordered[:limit]],
    }


def task_data(store: LabelStore, task: JudgingTask) -> dict[str, Any]:
    """Return the data of a task for its judge, without gold grade and repeat."""
    topic, document = store.topic(task.query_id), store.document(task.doc_id)
    return {
        "task": task.task,
        "query": topic["text"] or task.query_id,
        "description": topic["description"],
        "narrative": topic["narrative"],
        "doc_id": task.doc_id,
        "title": split_at_matches(document["title"], topic["text"]),
        "text": split_at_matches(document["text"], topic["text"]),
    }


def scale_data(store: LabelStore) -> list[dict[str, Any]]:
    """Return the grades with a key for each: its digit, or its position if it is not a digit."""
    grades = store.scale
    digits = all(grade.grade in range(10) for grade in grades)
    keys = [f"{grade.grade:g}" if digits else str(position) for position, grade in enumerate(grades, 1)]
    return [{**grade._asdict(), "key": key if len(key) == 1 else ""} for grade, key in zip(grades, keys, strict=True)]


def undo_label(store: LabelStore, judge: str) -> dict[str, Any] | None:
    """Undo the last label of a judge, and return its task with grade and note; None without labels."""
    last = store.last_task(judge)
    if last is None:
        return None
    task, grade, note = last
    store.add(judge, task.query_id, task.doc_id, None, repeat=task.repeat, valid=False, note=note)
    return {"task": task_data(store, task), "grade": grade, "note": note}


TRIAL_TOPICS, TRIAL_DEPTH, TRIAL_GROUP = 5, 5, 5
"""Number of topics, of documents of each run and topic, and of the tasks that all judges do first, in a trial store."""


def trial_store(workspace: Workspace, path: Path) -> LabelStore:
    """Create a store with the topics of the workspace and the top documents of the runs as tasks."""
    topics = set(workspace.query_ids[:TRIAL_TOPICS])
    pairs = pool([judged_list.run for judged_list in workspace.lists.values()], depth=TRIAL_DEPTH).pairs.to_pylist()
    pairs = sorted((row["query_id"], row["doc_id"]) for row in pairs if row["query_id"] in topics)
    # judges who stop early have graded the same documents, so that their agreement can be shown
    tasks = [NewTask(*pair, priority=number // TRIAL_GROUP) for number, pair in enumerate(pairs)]
    store = LabelStore.open(path)
    store.add_topics([{"query_id": topic, "text": workspace.query(topic) or topic} for topic in workspace.query_ids])
    if texts := workspace.texts:
        documents = {task.doc_id for task in tasks if task.doc_id in texts}
        store.add_documents({doc: {"title": texts.title(doc), "text": texts.text(doc)} for doc in sorted(documents)})
    store.add_tasks(tasks)
    return store
