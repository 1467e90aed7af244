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
    first = {} if Path(path).is_dir() else next((row for _, row in islice(records(Path(path)), 1)), None) or {}
    has_steps = "retrieved_docids" in first or isinstance(first.get("steps"), list)
    if not (has_steps or is_message(first) or messages_of(first) is not None):
        return None
    try:
        read = read_trajectories(path)
    except InputError:
        return None
    if {"search", "open", "other"}.isdisjoint(read["steps"]["kind"].unique().to_pylist()):
        return None  # no tool was called: a chat log, or answers without searches
    counts = {"trial": read["trials"].num_rows, "question": len(read.query_ids), "system": len(read.run_names)}
    command = "judged trajectories"
    commands = (f"{command} evaluate {path} --qrels QRELS", f"{command} where {path} --qrels QRELS",
                f"{command} check {path}")  # fmt: skip
    return FileContent(path, "trajectories", counts, commands)
