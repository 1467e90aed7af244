"""Runs, slices and topics by two measures, as numbers: what the forms of a performance matrix stand on."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from judged.diagnosis.matrix.points import NOTHING, QUADRANTS, MatrixChoices, Point, topic_quadrants
from judged.errors import InputError

if TYPE_CHECKING:
    from judged._types import Bools, Floats
    from judged.diagnosis.changes import Change
    from judged.evaluation import Scores
    from judged.measures import Measure
    from judged.slicing.slices import Slicing
    from judged.stats.discoveries import Discoveries

FEW_RUNS = 4
"""Of more, a summary is shown."""


@dataclass(frozen=True, eq=False)
class TwoMeasures:
    """Runs, slices and topics by two measures: the part of a performance matrix that its forms stand on."""

    scores: Scores  # what it is made of
    # x, y: the axes: of the candidates, and of the final ranking
    x: Measure
    y: Measure
    baseline: str  # the run whose means over all topics are the cuts, and that the others are compared with
    cuts: tuple[float, float]
    given_cuts: bool  # whether the caller gave the cuts
    points: tuple[Point, ...]  # run by run: all topics, then each slice
    # of every other run against the baseline: all topics, then each slice; x, then y; corrected by Holm
    changes: tuple[Change, ...]
    # by run, then axis: the topics that lost against the baseline, with a declared rate of false findings
    lost: dict[str, dict[str, Discoveries]] = field(repr=False)
    slicing: Slicing | None = field(repr=False)
    choices: MatrixChoices
    # (T,): topics without a document that is relevant to both axes, as far as that is known
    barren: Bools = field(repr=False)
    warnings: tuple[str, ...] = ()

    def values(self, run: str) -> Floats:
        """Give x and y of every topic: (2, T); NaN where a topic does not count.

        Raises
        ------
        InputError
            If there is no such run.
        """
        if run not in self.scores.run_names:
            raise InputError(f"no run {run!r} here", fix=f"one of {', '.join(self.scores.run_names)}")
        at = self.scores.run_names.index(run)
        return self.scores.values[at][[self.scores.measure_names.index(str(one)) for one in (self.x, self.y)]]

    def topics(self, run: str) -> tuple[str, ...]:
        """Class every topic of a run by the cuts alone: T names; empty where a topic has no score.

        Raises
        ------
        InputError
            If there is no such run.
        """
        return topic_quadrants(self.values(run), self.cuts, self.barren)

    def counts(self, run: str) -> dict[str, int]:
        """Count the topics of a run in each quadrant; and those with nothing relevant, where there are any."""
        found = Counter(self.topics(run))
        return {name: found[name] for name in (*QUADRANTS, *([NOTHING] if found[NOTHING] else []))}

    @property
    def many(self) -> bool:
        """Whether there are so many runs that a summary is shown."""
        return len(self.scores.runs) > FEW_RUNS
