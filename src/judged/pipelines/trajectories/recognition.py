"""Recognize trajectories of agents for `judged check FILE`."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from judged.data.identify import FileContent
from judged.errors import InputError
from judged.pipelines.traces.reading import records
from judged.pipelines.trajectories.messages import is_message, messages_of
from judged.pipelines.trajectories.reading import read_trajectories


def recognize(path: str) -> FileContent | None:
    """Return the content of a file with trials that call tools; spans count as traces."""
    if Path(path).is_dir():
        return None
    first = next((row for _, row in islice(records(Path(path)), 1)), None) or {}
    is_log = is_message(first) or messages_of(first) is not None
    if not (is_log or "retrieved_docids" in first or isinstance(first.get("steps"), list)):
        return None
    try:
        trajectories = read_trajectories(path)
    except InputError:
        return None
    if {"search", "open", "other"}.isdisjoint(trajectories["steps"]["kind"].unique().to_pylist()):
        return None  # no tool was called: a chat log, or answers without searches
    counts = {
        "trial": trajectories["trials"].num_rows,
        "question": len(trajectories.query_ids),
        "system": len(trajectories.run_names),
    }
    commands = (
        f"judged trajectories evaluate {path} --qrels QRELS",
        f"judged trajectories where {path} --qrels QRELS",
        f"judged trajectories check {path}",
    )
    return FileContent(path, "trajectories", counts, commands)
