"""What the page of the matrix shows, as plain values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MatrixAxis:
    """One measure of a slice.

    Attributes
    ----------
    value : float
        The mean.
    ci : (float, float) or None
        The interval by which the slice is classed.
    side : str
        ``below`` or ``above`` the cut, ``not told apart`` from it; empty where it is not classed.
    """

    value: float
    ci: tuple[float, float] | None
    side: str


@dataclass(frozen=True)
class MatrixSlice:
    """A run over a slice, or over all topics.

    Attributes
    ----------
    run, slice : str
    expression : str
        Which topics; together with the expression of the page. Empty for all.
    topics : int
        That have both scores.
    small : bool
        Whether there are too few to be classed.
    quadrant : str
        What the intervals show; empty where it is not classed.
    x, y : MatrixAxis
    judged : float
        The share of the first 10 documents that is judged.
    """

    run: str
    slice: str
    expression: str
    topics: int
    small: bool
    quadrant: str
    x: MatrixAxis
    y: MatrixAxis
    judged: float


@dataclass(frozen=True)
class MatrixChange:
    """How much a measure changed against the other run, over a slice or all topics.

    Attributes
    ----------
    slice, measure : str
    topics : int
    difference : float
    ci : (float, float) or None
    p : float
        Corrected by Holm; NaN where it was not tested.
    significant, small : bool
    """

    slice: str
    measure: str
    topics: int
    difference: float
    ci: tuple[float, float] | None
    p: float
    significant: bool
    small: bool


@dataclass(frozen=True)
class MatrixTopic:
    """One topic of the selection.

    Attributes
    ----------
    query_id, query : str
    x, y : float
    quadrant : str
        By the cuts alone: one topic proves nothing.
    x_change, y_change : float or None
        Against the other run, where there is one.
    lost : tuple of str
        The measures by which it is said to have lost, at a declared rate of false findings.
    """

    query_id: str
    query: str
    x: float
    y: float
    quadrant: str
    x_change: float | None
    y_change: float | None
    lost: tuple[str, ...]


@dataclass(frozen=True)
class Selection:
    """The topics that are selected; all of them, where nothing is.

    Attributes
    ----------
    asked : bool
        Whether anything was asked for.
    x0, x1, y0, y1 : float or None
        The rectangle, its borders included; None for no border.
    quadrant : str
    count : int
        Topics that are selected.
    x_mean, y_mean : float
        Of the run over them; NaN where there are none.
    x_mean_against, y_mean_against : float or None
        Of the other run over the same topics.
    page, pages : int
    topics : tuple of MatrixTopic
        Of this page.
    """

    asked: bool
    x0: float | None
    x1: float | None
    y0: float | None
    y1: float | None
    quadrant: str
    count: int
    x_mean: float
    y_mean: float
    x_mean_against: float | None
    y_mean_against: float | None
    page: int
    pages: int
    topics: tuple[MatrixTopic, ...]


@dataclass(frozen=True)
class MatrixData:
    """Topics and slices of a run against two measures.

    Attributes
    ----------
    run, against : str
        ``against`` is empty where there is no other run.
    x, y : str
        The measures.
    cuts : (float, float)
        The means of the other run, or its own.
    by : tuple of str
    where : str
    minimum : int
    topics : int
        That have both scores.
    slices : tuple of MatrixSlice
        All topics, then each slice; of the run, then of the other one.
    changes : tuple of MatrixChange
        Where there is another run.
    counts : dict of int
        Topics of the run by quadrant.
    selection : Selection
    caption : str
        Where the cuts come from, and how slices are classed.
    changes_caption : str
        How changes were tested, and by how many resamples.
    sentences, warnings : tuple of str
    """

    run: str
    against: str
    x: str
    y: str
    cuts: tuple[float, float]
    by: tuple[str, ...]
    where: str
    minimum: int
    topics: int
    slices: tuple[MatrixSlice, ...]
    changes: tuple[MatrixChange, ...]
    counts: dict[str, int]
    selection: Selection
    caption: str
    changes_caption: str
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]
