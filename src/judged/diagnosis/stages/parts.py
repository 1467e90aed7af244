"""Means of the parts of a loss, with intervals and verdicts: over all topics and by slice."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from judged.diagnosis.changes import Quantity, compared, everywhere
from judged.errors import InputError
from judged.stats import IntervalMethod, mean_intervals
from judged.stats.discoveries import losers
from judged.stats.pairing import check_share

if TYPE_CHECKING:
    from judged._types import Bools, Floats
    from judged.diagnosis.changes import Change, Where
    from judged.diagnosis.stages.tracing import Trace
    from judged.measures import Measure
    from judged.slicing.slices import Slicing
    from judged.stats.discoveries import Discoveries

HEALTHY, NOT_FOUND, BADLY_RANKED, BOTH, NOTHING = (
    "little lost", "not found", "found but ranked badly", "both", "nothing relevant",
)  # fmt: skip
VERDICTS = (HEALTHY, NOT_FOUND, BADLY_RANKED, BOTH, NOTHING)
"""What is said of a topic: which parts of its loss count."""
SCORE = "score"


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


class Mean(NamedTuple):
    """A mean over topics with its interval; NaN limits where there is none."""

    value: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class Parts:
    """One system over some topics."""

    slice: str  # the name of the slice, or `all topics`
    topics: int  # how many count: those that the measure leaves out do not
    small: bool  # whether there are fewer than the slice is judged by: then there are no intervals
    score: Mean  # means
    best: Mean  # means
    recall: Mean  # means
    losses: tuple[Mean, ...]  # the mean of each part of the loss; together best - score
    verdicts: dict[str, int]  # how many topics have which verdict


def parts_by_slice(trace: Trace, measure: Measure, slicing: Slicing | None, choices: Cut) -> tuple[Parts, ...]:
    """Average the parts over all topics, and over the topics of each slice."""
    verdicts = verdict_names(trace, choices)
    return tuple(_parts(trace, measure, one, verdicts, choices) for one in everywhere(len(trace.score), slicing))


def _parts(trace: Trace, measure: Measure, where: Where, verdicts: tuple[str, ...], choices: Cut) -> Parts:
    rows = np.stack([trace.score, trace.best, trace.recall, *trace.parts])[:, where.mask]
    counted = int(np.count_nonzero(~np.isnan(rows[0])))
    method = IntervalMethod("none") if where.small else choices.interval
    low, high = measure.properties.bounds
    bounds = [(low, high), (low, high), (0, 1), *[(0, high - low)] * len(trace.parts)]
    limits = mean_intervals(rows, method, bounds)
    means = [Mean(_mean(row), float(low), float(high)) for row, (low, high) in zip(rows, limits, strict=True)]
    counts = Counter(np.array(verdicts, dtype=object)[where.mask].tolist())
    return Parts(
        slice=where.name,
        topics=counted,
        small=where.small,
        score=means[0],
        best=means[1],
        recall=means[2],
        losses=tuple(means[3:]),
        verdicts={verdict: counts[verdict] for verdict in (*VERDICTS, *sorted(set(counts) - set(VERDICTS)))},
    )


def _mean(row: Floats) -> float:
    known = row[~np.isnan(row)]
    return float(known.mean()) if len(known) else math.nan


def verdict_names(trace: Trace, choices: Cut) -> tuple[str, ...]:
    """Say of each topic which parts of its loss count."""
    counts = _counted(trace.parts, trace.best, choices)
    nothing = (trace.relevant == 0) | np.isnan(trace.score) | (trace.best == 0)
    return tuple(
        NOTHING if empty else _verdict(tuple(np.flatnonzero(row).tolist()), len(trace.parts))
        for row, empty in zip(counts.T, nothing.tolist(), strict=True)
    )


def _counted(parts: Floats, best: Floats, choices: Cut) -> Bools:
    """Mark the parts that count: a large enough share of the best score, and of what was lost in all parts."""
    slack = 1 - 1e-12
    lost = np.maximum(parts, 0.0)
    return (parts >= choices.least * best * slack) & (parts >= choices.share * lost.sum(axis=0) * slack) & (parts > 0)


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


def kinds_of(trace: Trace, against: Trace, names: tuple[str, ...], mask: Bools, choices: Cut) -> tuple[str, ...]:
    """Say of each topic that lost, (T,), the parts that hold a large enough share of what it lost; empty for others."""
    worse = np.maximum(trace.parts - against.parts, 0.0)
    counts = (worse >= choices.share * worse.sum(axis=0) * (1 - 1e-12)) & (worse > 0)
    return tuple(
        " and ".join(name for name, one in zip(names, row, strict=True) if one) if lost else ""
        for row, lost in zip(counts.T.tolist(), mask.tolist(), strict=True)
    )


def changes_of(
    trace: Trace, against: Trace, names: tuple[str, ...], slicing: Slicing | None, choices: Cut
) -> tuple[Change, ...]:
    """Test score and parts over all topics and in each slice; the parts are a family, and the score is another."""
    quantities = [Quantity(trace.name, SCORE, against.score, trace.score, SCORE)]
    quantities += [
        Quantity(trace.name, name, -before, -now, "parts")
        for name, before, now in zip(names, against.parts, trace.parts, strict=True)
    ]
    where = everywhere(len(trace.score), slicing)
    return compared(quantities, where, alpha=choices.alpha, resamples=choices.resamples, seed=choices.seed)


def lost_topics(trace: Trace, against: Trace, names: tuple[str, ...], choices: Cut) -> dict[str, Discoveries]:
    """Find the topics that lost in the score, and in each part."""
    changed = np.concatenate([(trace.score - against.score)[None], against.parts - trace.parts])
    scale = float(np.nanmax(np.abs(np.stack([trace.best, against.best])), initial=1.0))
    return {name: losers(row, choices.rate, scale=scale) for name, row in zip((SCORE, *names), changed, strict=True)}
