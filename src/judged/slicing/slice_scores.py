"""Scores of slices, ways to average over them, and which slices differ: what the forms of `by_slice` stand on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.evaluation import Estimate, Scores
    from judged.slicing.slices import Slicing
    from judged.stats import IntervalMethod
    from judged.stats.heterogeneity import AgainstRest

ALL = "all topics"
TOPIC_MEAN, MEAN_OF_SLICES = "topic mean", "mean of slices"


def measure_named(name: str | None, known: Sequence[str]) -> str:
    """Give the canonical name of a measure that is among those known; the first, if none is named."""
    if name is None or name in known:
        return name or known[0]
    from judged.measures import parse

    found = str(parse(name))
    if found not in known:
        raise InputError(f"{found} was not evaluated", fix=f"one of {', '.join(known)}")
    return found


@dataclass(frozen=True)
class SliceEstimate:
    """One number: a measure of a run over the topics of a slice."""

    slice: str  # its name, or `all topics`
    estimate: Estimate  # the aggregate with its interval; its `topics` are those that have a score
    n: int  # topics of the slice
    share: float  # of all topics that are in it
    weight: float  # the share of the first weights that its topics have; NaN without weights
    small: bool  # whether it has fewer topics than it is judged by: it is not ranked


@dataclass(frozen=True)
class Average:
    """All topics of a run as one number, in one of several ways."""

    # `topic mean`: every topic counts the same. `mean of slices`: every slice that is not small does. `traffic-weighted
    # mean` and the like: every topic counts by its weight. `weighted by relevant documents`: every relevant document
    # counts the same.
    name: str
    run: str
    measure: str
    value: float
    ci: tuple[float, float] | None
    topics: int  # that it rests on
    effective: float  # as many topics of equal weight would give a mean as sure


@dataclass(frozen=True)
class SliceFinding:
    """A slice against all other topics, by one run and measure."""

    slice: str
    run: str
    measure: str
    value: float  # the aggregate over the slice
    rest: AgainstRest  # the mean of the slice against that of the other topics; of logarithms, for a geometric mean
    adjusted: float  # its p-value, corrected for all the tests of the call
    significant: bool  # whether the slice differs: `adjusted` is at most alpha, and the interval excludes 0
    # whether the slice is the better side; None where it does not differ, or the measure has no better side
    better: bool | None


@dataclass(frozen=True, eq=False)
class SliceTable:
    """Scores by slice as numbers: the part of a result that its forms stand on."""

    scores: Scores  # of all topics
    slicing: Slicing  # of the same topics
    method: IntervalMethod  # how intervals were made
    # by slice, run and measure; `all topics` first, small slices last
    estimates: tuple[SliceEstimate, ...] = field(repr=False)
    averages: tuple[Average, ...] = field(repr=False)  # by way, run and measure
    findings: tuple[SliceFinding, ...] = field(repr=False)  # every slice that is not small against the other topics
    tests: int  # how many of them share alpha (Holm)
    weights: tuple[str, ...]  # the names of the weights
    warnings: tuple[str, ...] = ()  # what should be known before the numbers are used
    where: str = ""  # the expression by which these topics were chosen; empty for all

    @property
    def names(self) -> tuple[str, ...]:
        """``all topics``, then the slices as they are shown: small ones last."""
        return tuple(dict.fromkeys(one.slice for one in self.estimates))

    def estimate(self, name: str = ALL, run: str | None = None, measure: str | None = None) -> SliceEstimate:
        """Give one number; the first run and measure, if none is named.

        Raises
        ------
        InputError
            If there is no such slice, run or measure.
        """
        wanted = (name, *self.chosen(run, measure))
        found = [one for one in self.estimates if (one.slice, one.estimate.run, one.estimate.measure) == wanted]
        if not found:
            raise InputError(f"no slice {name!r}", fix=f"one of {', '.join(self.names)}")
        return found[0]

    def value(self, name: str = ALL, run: str | None = None, measure: str | None = None) -> float:
        """Give the value of the same."""
        return self.estimate(name, run, measure).estimate.value

    def average(self, name: str = TOPIC_MEAN, run: str | None = None, measure: str | None = None) -> Average:
        """Give one way to average; the first run and measure, if none is named.

        Raises
        ------
        InputError
            If it was not made: there is no mean of slices that overlap.
        """
        wanted = (name, *self.chosen(run, measure))
        found = [one for one in self.averages if (one.name, one.run, one.measure) == wanted]
        if not found:
            known = ", ".join(dict.fromkeys(one.name for one in self.averages))
            raise InputError(f"no {name} was made", fix=f"one of {known}" if known else "take a measure that is a mean")
        return found[0]

    def chosen(self, run: str | None, measure: str | None) -> tuple[str, str]:
        """Fill in the run and the measure that are not named: the first of each.

        Raises
        ------
        InputError
            If there is no such run or measure.
        """
        runs, measures = self.scores.run_names, self.scores.measure_names
        if run is not None and run not in runs:
            raise InputError(f"no run {run!r}", fix=f"one of {', '.join(runs)}")
        return run or runs[0], measure_named(measure, measures)
