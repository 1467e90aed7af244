"""What the page of the matrix shows, as plain values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MatrixAxis:
    """One measure of a slice."""

    value: float  # the mean
    ci: tuple[float, float] | None  # the interval by which the slice is classed
    side: str  # `below` or `above` the cut, `not told apart` from it; empty where it is not classed


@dataclass(frozen=True)
class MatrixSlice:
    """A run over a slice, or over all topics."""

    run: str
    slice: str
    expression: str  # which topics; together with the expression of the page. Empty for all.
    topics: int  # that have both scores
    small: bool  # whether there are too few to be classed
    quadrant: str  # what the intervals show; empty where it is not classed
    x: MatrixAxis
    y: MatrixAxis
    judged: float  # the share of the first 10 documents that is judged


@dataclass(frozen=True)
class MatrixChange:
    """How much a measure changed against the other run, over a slice or all topics."""

    slice: str
    measure: str
    topics: int
    difference: float
    ci: tuple[float, float] | None
    p: float  # corrected by Holm; NaN where it was not tested
    significant: bool
    small: bool


@dataclass(frozen=True)
class MatrixTopic:
    """One topic of the selection."""

    query_id: str
    query: str
    x: float
    y: float
    quadrant: str  # by the cuts alone: one topic proves nothing
    # x_change, y_change: against the other run, where there is one
    x_change: float | None
    y_change: float | None
    lost: tuple[str, ...]  # the measures by which it is said to have lost, at a declared rate of false findings


@dataclass(frozen=True)
class Selection:
    """The topics that are selected; all of them, where nothing is."""

    asked: bool  # whether anything was asked for
    # x0, x1, y0, y1: the rectangle, its borders included; None for no border
    x0: float | None
    x1: float | None
    y0: float | None
    y1: float | None
    quadrant: str
    count: int  # topics that are selected
    # x_mean, y_mean: of the run over them; NaN where there are none
    x_mean: float
    y_mean: float
    x_mean_against: float | None  # of the other run over the same topics
    y_mean_against: float | None  # of the other run over the same topics
    page: int
    pages: int
    topics: tuple[MatrixTopic, ...]  # of this page


@dataclass(frozen=True)
class MatrixData:
    """Topics and slices of a run against two measures."""

    # run, against: `against` is empty where there is no other run
    run: str
    against: str
    x: str  # the measures
    y: str  # the measures
    cuts: tuple[float, float]  # the means of the other run, or its own
    by: tuple[str, ...]
    where: str
    minimum: int
    topics: int  # that have both scores
    slices: tuple[MatrixSlice, ...]  # all topics, then each slice; of the run, then of the other one
    changes: tuple[MatrixChange, ...]  # where there is another run
    counts: dict[str, int]  # topics of the run by quadrant
    selection: Selection
    caption: str  # where the cuts come from, and how slices are classed
    changes_caption: str  # how changes were tested, and by how many resamples
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]
