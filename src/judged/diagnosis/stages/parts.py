"""Means of the parts of a loss, with intervals and verdicts: over all topics and by slice."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.diagnosis.changes import Mean, everywhere, mean_of
from judged.errors import InputError
from judged.stats import IntervalMethod, mean_intervals
from judged.stats.pairing import check_share

if TYPE_CHECKING:
    from judged._types import Bools, Floats
    from judged.diagnosis.stages.tracing import Trace
    from judged.measures import Measure
    from judged.slicing.slices import Slicing

HEALTHY, NOT_FOUND, BADLY_RANKED, BOTH, NOTHING = VERDICTS = (
    "little lost", "not found", "found but ranked badly", "both", "nothing relevant",
)  # fmt: skip
"""What is said of a topic: which parts of its loss count."""
SCORE = "score"
_SLACK = 1 - 1e-12


@dataclass(frozen=True)
class Cut:
    """The choices of a diagnosis by stages."""

    depth: int = 100  # how many documents of a topic are candidates
    least: float = 0.1  # a part counts for the verdict on a topic from this share of the best score on
    share: float = 0.15  # and from this share of all that is lost there on
    rate: float = 0.1  # the false discovery rate of topics that are said to have lost
    alpha: float = 0.05  # up to here p is significant; intervals have the level 1 - alpha
    # resamples, seed: of tests; intervals have 2000 resamples of the same seed
    resamples: int = 100_000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise InputError(f"the depth {self.depth} makes no sense", fix="give a whole number from 1")
        check_share("least share", self.least)
        check_share("share of the loss", self.share, high=0.5)
        check_share("false discovery rate", self.rate)
        check_share("alpha", self.alpha, high=0.5)

    @property
    def interval(self) -> IntervalMethod:
        """How intervals are made."""
        return IntervalMethod(level=1 - self.alpha)


@dataclass(frozen=True)
class Parts:
    """One system over some topics."""

    system: str
    slice: str  # the name of the slice, or `all topics`
    topics: int  # how many count: those that the measure leaves out do not
    small: bool  # whether there are fewer than the slice is judged by: then there are no intervals
    # score, best, recall: means
    score: Mean
    best: Mean
    recall: Mean
    losses: tuple[Mean, ...]  # the mean of each part of the loss; together best - score
    verdicts: dict[str, int]  # how many topics have which verdict


def parts_by_slice(trace: Trace, measure: Measure, slicing: Slicing | None, choices: Cut) -> tuple[Parts, ...]:
    """Average the parts over all topics, and over the topics of each slice."""
    verdicts = np.array(verdict_names(trace, choices), dtype=object)
    rows = np.stack([trace.score, trace.best, trace.recall, *trace.parts])
    low, high = measure.properties.bounds
    bounds = [(low, high), (low, high), (0, 1), *[(0, high - low)] * len(trace.parts)]
    parts: list[Parts] = []
    for where in everywhere(len(trace.score), slicing):
        values = rows[:, where.mask]
        method = IntervalMethod("none") if where.small else choices.interval
        limits = mean_intervals(values, method, bounds).tolist()
        score, best, recall, *losses = (Mean(mean_of(row), *ends) for row, ends in zip(values, limits, strict=True))
        topics, counts = int(np.count_nonzero(~np.isnan(values[0]))), Counter(verdicts[where.mask].tolist())
        named = {verdict: counts[verdict] for verdict in (*VERDICTS, *sorted(set(counts) - set(VERDICTS)))}
        parts.append(Parts(trace.name, where.name, topics, where.small, score, best, recall, tuple(losses), named))
    return tuple(parts)


def verdict_names(trace: Trace, choices: Cut) -> tuple[str, ...]:
    """Say of each topic which parts of its loss count: a large enough share of the best, and of what was lost."""
    parts = trace.parts
    enough = parts >= choices.least * trace.best * _SLACK
    counts = enough & large_parts(parts, choices)
    nothing = (trace.relevant == 0) | np.isnan(trace.score) | (trace.best == 0)
    return tuple(
        NOTHING if empty else _verdict(tuple(np.flatnonzero(row).tolist()), len(parts))
        for row, empty in zip(counts.T, nothing.tolist(), strict=True)
    )


def large_parts(lost: Floats, choices: Cut) -> Bools:
    """Mark the parts that hold a large enough share of what was lost in all of them."""
    return (lost >= choices.share * np.maximum(lost, 0.0).sum(axis=0) * _SLACK) & (lost > 0)


def _verdict(counted: tuple[int, ...], parts: int) -> str:
    if not counted:
        return HEALTHY
    if counted == (parts - 1,):
        return BADLY_RANKED
    if counted == (0,):
        return NOT_FOUND
    if parts == 2:
        return BOTH
    return "lost at " + " and ".join(f"stage {at + 1}" for at in counted)
