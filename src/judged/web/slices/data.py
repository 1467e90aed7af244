"""What the page of slices shows: slices and how runs do on each, as plain values."""

from __future__ import annotations

from dataclasses import dataclass

from judged.web.slices.attributes import AttributeRow


@dataclass(frozen=True)
class SliceScore:
    """One number: a measure of a run over a slice, and against the topics outside it.

    Attributes
    ----------
    run, measure : str
    value : float
    ci : (float, float) or None
    topics : int
        Those that have a score.
    difference : float or None
        The mean of the slice minus that of the other topics; None where it was not tested.
    difference_ci : (float, float) or None
    p : float or None
        Of a test against the other topics, corrected by Holm for all tests of the page.
    significant : bool
    better : bool or None
        Whether the slice is the better side; None where it does not differ.
    """

    run: str
    measure: str
    value: float
    ci: tuple[float, float] | None
    topics: int
    difference: float | None
    difference_ci: tuple[float, float] | None
    p: float | None
    significant: bool
    better: bool | None


@dataclass(frozen=True)
class SliceLine:
    """One slice.

    Attributes
    ----------
    slice : str
        Its name, or ``all topics``.
    expression : str
        Which topics of those that count it has; empty for all.
    where : str
        The same together with the expression of the page: it selects just these topics anywhere.
    topics : int
    share : float
        Of all topics that count.
    minimum : int
        With fewer topics it is shown, and never tested.
    small : bool
        Whether it has fewer.
    scores : tuple of SliceScore
        By measure, then run.
    """

    slice: str
    expression: str
    where: str
    topics: int
    share: float
    minimum: int
    small: bool
    scores: tuple[SliceScore, ...]


@dataclass(frozen=True)
class SliceChange:
    """Two runs over one slice: the second minus the first.

    Attributes
    ----------
    slice, measure, first, second : str
    topics : int
        That have a score for both.
    difference : float
    ci : (float, float) or None
    p : float or None
        Corrected by Holm for all comparisons of the page; None where it was not tested.
    significant, small : bool
    wins, ties, losses : int or None
        Of the second run.
    """

    slice: str
    measure: str
    first: str
    second: str
    topics: int
    difference: float
    ci: tuple[float, float] | None
    p: float | None
    significant: bool
    small: bool
    wins: int | None
    ties: int | None
    losses: int | None


@dataclass(frozen=True)
class Compared:
    """Whether runs differ on each slice.

    Attributes
    ----------
    against : str
    rows : tuple of SliceChange
        By measure and run: all topics, then each slice.
    caption : str
        The test, the correction, and how many resamples were drawn.
    sentences, warnings : tuple of str
    """

    against: str
    rows: tuple[SliceChange, ...]
    caption: str
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Slices:
    """Slices of the topics, and how runs do on each.

    Attributes
    ----------
    by : tuple of str
        The attributes that the topics are cut by.
    where : str
    minimum : int
    topics : int
        How many satisfy the expression.
    runs, measures : tuple of str
        That are shown.
    every : bool
        Whether these are all runs that are open.
    lines : tuple of SliceLine
        All topics first, small slices last.
    averages : tuple of (str, str, str, float)
        Way to average, run, measure and value: the topics one by one, and the mean of slices.
    compared : Compared or None
        Where a run is named to compare with.
    caption : str
        How intervals and tests were made.
    sentences, warnings : tuple of str
    attributes : tuple of AttributeRow
        By which topics can be sliced.
    """

    by: tuple[str, ...]
    where: str
    minimum: int
    topics: int
    runs: tuple[str, ...]
    measures: tuple[str, ...]
    every: bool
    lines: tuple[SliceLine, ...]
    averages: tuple[tuple[str, str, str, float], ...]
    compared: Compared | None
    caption: str
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]
    attributes: tuple[AttributeRow, ...]
