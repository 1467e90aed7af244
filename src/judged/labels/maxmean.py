"""MaxMean: which document to judge next, as a bandit whose arms are runs (Losada, Parapar and Barreiro 2016, 2017)."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from judged._types import Ints

Arms: TypeAlias = Generator[int, bool | None, None]
"""Gives the row to be judged next, and is sent whether it was relevant."""


def arms_of(lists: Sequence[Sequence[Ints]], retention: float, seed: int) -> list[Arms]:
    """Give one bandit a topic: it gives the row to be judged next, and is sent whether it was relevant."""
    return [_maxmean(own, retention, np.random.default_rng([seed, at])) for at, own in enumerate(lists)]


def _maxmean(lists: Sequence[Ints], retention: float, random: np.random.Generator) -> Arms:
    """Judge next the first document left of the run with the highest mean: each has a Beta(1, 1) before anything."""
    rows = np.unique(np.concatenate(lists))
    has = np.zeros((len(lists), len(rows)), dtype=np.bool_)
    own = [np.searchsorted(rows, one) for one in lists]
    for run, one in enumerate(own):
        has[run, one] = True
    relevant, seen, at = np.zeros(len(lists)), np.zeros(len(lists)), [0] * len(lists)
    done = np.zeros(len(rows), dtype=np.bool_)
    for _ in range(len(rows)):
        for run, one in enumerate(own):
            while at[run] < len(one) and done[one[at[run]]]:
                at[run] += 1
        ended = np.array([place == len(one) for place, one in zip(at, own, strict=True)])
        means = np.where(ended, -1.0, (1 + relevant) / (2 + seen))
        run = int(random.choice(np.flatnonzero(means == means.max())))
        chosen = own[run][at[run]]
        answer = yield int(rows[chosen])
        done[chosen] = True
        if answer is not None:
            those = has[:, chosen]
            relevant[those] = retention * relevant[those] + answer
            seen[those] = retention * seen[those] + 1


def after(arms: Arms, answer: bool | None) -> int | None:
    """Tell what came of the row that was judged, and give the next one; None if there is none."""
    try:
        return arms.send(answer)
    except StopIteration:
        return None


def asked(arms: Arms, labels: Mapping[int, bool], most: int) -> Generator[int, None, None]:
    """Give the rows that a topic asks for: at most so many of which the answer is not known."""
    row, waiting = next(arms, None), 0
    while row is not None and waiting < most:
        if (answer := labels.get(row)) is None:
            waiting += 1
            yield row
        row = after(arms, answer)
