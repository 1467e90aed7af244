"""Scores expressed in standard deviations from a mean that a file gives for each topic and line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from judged.peers.cnumbers import atof
from judged.peers.errors import ZSCORES, TrecEvalError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Floats

MISSING = -1000000.0
"""What stands where the file has no mean, or no deviation for a score that differs from the mean."""

Means: TypeAlias = dict[tuple[str, str], tuple[float, float]]


def read_means(path: str) -> Means:
    """Read lines of ``topic line mean deviation``."""
    try:
        lines = Path(path).read_bytes().decode(errors="replace").removesuffix("\n").split("\n")
    except OSError as error:
        raise TrecEvalError(f"{path}: it cannot be read ({error.strerror})", ZSCORES) from None
    found: Means = {}
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if len(fields) != 4:
            problem = f"{len(fields)} fields. Fix: write 'topic measure mean deviation'"
            raise TrecEvalError(f"{path}:{number}: {problem}", ZSCORES)
        found.setdefault((fields[0], fields[1]), (atof(fields[2]), atof(fields[3])))
    return found


def as_zscores(scores: Floats, name: str, topics: Sequence[str], means: Means) -> Floats:
    """Express the scores of one line, a topic each, in deviations from the mean.

    >>> import numpy as np
    >>> as_zscores(np.array([0.5, 0.5]), "map", ["1", "2"], {("1", "map"): (0.3, 0.1)}).round(9).tolist()
    [2.0, -1000000.0]
    """
    made = scores.copy()
    for at, (topic, score) in enumerate(zip(topics, scores.tolist(), strict=True)):
        mean, deviation = means.get((topic, name), (None, 0.0))
        if mean is not None and deviation:
            made[at] = (score - mean) / deviation
        else:
            made[at] = 0.0 if score == mean else MISSING
    return made
