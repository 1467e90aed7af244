"""Recognize files with labels of several judges for `judged check FILE`."""

from __future__ import annotations

from judged.data.identify import FileContent
from judged.labels.exchange import describe_labels


def recognize(path: str) -> FileContent | None:
    """Return the content of a file with labels of at least two judges; else None."""
    counts = describe_labels(path)
    if counts is None or counts["judges"] < 2:
        return None
    # Agreement requires pairs with grades from two judges.
    quality = [f"judged labels quality {path}"] if counts["judged_by_both"] else []
    commands = (*quality, f"judged labels qrels {path} -o qrels.jsonl")
    nouns = {noun: counts.pop(f"{noun}s") for noun in ("topic", "pair", "judge", "judgment")}
    return FileContent(path, "labels", nouns, commands, details=counts)
