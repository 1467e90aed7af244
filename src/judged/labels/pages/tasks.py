"""What a judge is shown, and what they answer; and tasks to try judging with."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from judged.interface.pages.filters import split_at_matches
from judged.interface.pages.problems import Text
from judged.labels.pooling import pool
from judged.labels.store import LabelStore, NewTask

if TYPE_CHECKING:
    from pathlib import Path

    from judged.interface.pages.workspace import Workspace
    from judged.labels.store import Task


class NewLabel(BaseModel):
    """What a judge says of a task."""

    task: int = Field(ge=0, le=2**53, description="Which task.")
    grade: float | None = Field(None, allow_inf_nan=False, description="One of the scale; none: skipped.")
    valid: bool = Field(default=True, description="false: judged later, or taken back; the task is open again.")
    note: Text = Field("", max_length=10_000, description="A remark.")
    seconds: float | None = Field(None, ge=0, le=1e6, allow_inf_nan=False, description="How long it took.")


class NewLabels(BaseModel):
    """Labels in the order in which they were given."""

    judge: Text = Field(max_length=200, description="Who gives them.")
    labels: list[NewLabel] = Field(max_length=100, description="All of them are kept, or none.")


def keep(store: LabelStore, judge: str, given: list[NewLabel]) -> int:
    """Keep labels; when this returns, they are there."""
    rows: list[dict[str, Any]] = []
    for label in given:
        task = store.task(judge, label.task)
        pair = {"query_id": task.query_id, "doc_id": task.doc_id, "repeat": task.repeat, "judge": judge}
        rows.append(pair | label.model_dump(exclude={"task"}))
    return store.add_many(rows)


def tasks(store: LabelStore, judge: str, limit: int, first: int | None = None) -> dict[str, Any]:
    """Give the next tasks of a judge, with how far they are; `first` is a task that comes before all others."""
    still = {(task.query_id, task.doc_id, task.repeat): task for task in store.tasks(judge)}
    todo = sorted(still.values(), key=lambda task: task.task != first)
    assigned = store.assigned(judge)
    return {
        "judge": judge,
        "store": sha256(store.where.encode()).hexdigest()[:16],  # so that a browser tells stores apart
        "done": assigned - len(todo),
        "assigned": assigned,
        "tasks": [shown(store, task) for task in todo[:limit]],
    }


def shown(store: LabelStore, task: Task) -> dict[str, Any]:
    """Give what a judge may see of a task: not whether it is gold or a repeat."""
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


def scale(store: LabelStore) -> list[dict[str, Any]]:
    """Give the grades with the key of each: its own digit, or its place where it is no digit."""
    grades = store.scale
    digits = all(one.grade in range(10) for one in grades)
    keys = [f"{one.grade:g}" if digits else str(place) for place, one in enumerate(grades, 1)]
    return [{**one._asdict(), "key": key if len(key) == 1 else ""} for one, key in zip(grades, keys, strict=True)]


def taken_back(store: LabelStore, judge: str) -> dict[str, Any] | None:
    """Take the last label of a judge back, and give its task with what was said; None if there is none."""
    found = store.last(judge)
    if found is None:
        return None
    task, grade, note = found
    store.add(judge, task.query_id, task.doc_id, None, repeat=task.repeat, valid=False, note=note)
    return {"task": shown(store, task), "grade": grade, "note": note}


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
