"""A run format with one line per topic, such as ``q1: d7=2.5 d3=1``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def read_colon(path: Path) -> dict[str, dict[str, float]]:
    """Read scores by topic and document. Any type that `judged.Run.of` accepts may be returned.

    Raises
    ------
    InputError
        If a line is not of this format.
    """
    scores: dict[str, dict[str, float]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        topic, _, documents = line.partition(": ")
        try:
            scores[topic] = {doc: float(score) for doc, score in (pair.split("=") for pair in documents.split())}
        except ValueError:
            raise InputError("a line must be 'topic: document=score ...'", path=str(path), line=number) from None
    return scores
