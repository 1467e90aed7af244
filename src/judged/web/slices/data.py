"""What the page of slices shows: slices and how runs do on each, as plain values."""

from __future__ import annotations

from dataclasses import dataclass

from judged.web.slices.attributes import AttributeRow


@dataclass(frozen=True)
class SliceScore:
    """One number: a measure of a run over a slice, and against the topics outside it."""

    run: str
    measure: str
    value: float
    ci: tuple[float, float] | None
    topics: int  # those that have a score
    difference: float | None  # the mean of the slice minus that of the other topics; None where it was not tested
    difference_ci: tuple[float, float] | None
    p: float | None  # of a test against the other topics, corrected by Holm for all tests of the page
    significant: bool
    better: bool | None  # whether the slice is the better side; None where it does not differ


@dataclass(frozen=True)
class SliceLine:
    """One slice."""

    slice: str  # its name, or `all topics`
    expression: str  # which topics of those that count it has; empty for all
    where: str  # the same together with the expression of the page: it selects just these topics anywhere
    topics: int
    share: float  # of all topics that count
    minimum: int  # with fewer topics it is shown, and never tested
    small: bool  # whether it has fewer
    scores: tuple[SliceScore, ...]  # by measure, then run


@dataclass(frozen=True)
class SliceChange:
    """Two runs over one slice: the second minus the first."""

    slice: str
    measure: str
    first: str
    second: str
    topics: int  # that have a score for both
    difference: float
    ci: tuple[float, float] | None
    p: float | None  # corrected by Holm for all comparisons of the page; None where it was not tested
    significant: bool
    small: bool
    wins: int | None  # of the second run
    ties: int | None  # of the second run
    losses: int | None  # of the second run


@dataclass(frozen=True)
class Compared:
    """Whether runs differ on each slice."""

    against: str
    rows: tuple[SliceChange, ...]  # by measure and run: all topics, then each slice
    caption: str  # the test, the correction, and how many resamples were drawn
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Slices:
    """Slices of the topics, and how runs do on each."""

    by: tuple[str, ...]  # the attributes that the topics are cut by
    where: str
    minimum: int
    topics: int  # how many satisfy the expression
    runs: tuple[str, ...]  # that are shown
    measures: tuple[str, ...]  # that are shown
    every: bool  # whether these are all runs that are open
    lines: tuple[SliceLine, ...]  # all topics first, small slices last
    # way to average, run, measure and value: the topics one by one, and the mean of slices
    averages: tuple[tuple[str, str, str, float], ...]
    compared: Compared | None  # where a run is named to compare with
    caption: str  # how intervals and tests were made
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]
    attributes: tuple[AttributeRow, ...]  # by which topics can be sliced
