"""Classes of topics by a measure of the candidates and by their own measure, with thresholds for each class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

from judged.comparison.answer import AnswerOfScores
from judged.comparison.slicing.class_measures import NO_AVERAGE, measures_of_classes
from judged.comparison.slicing.parts import TopicSubset
from judged.comparison.slicing.scores import describe_small_slices
from judged.comparison.slicing.topic_slices import as_slicing
from judged.data.run import find_run_name
from judged.diagnosis.matrix.answer import SIGNS, describe_point, points_table
from judged.diagnosis.matrix.matrix import axis_ranges, axis_values, check_axis, means
from judged.diagnosis.matrix.points import BOTH, COVERAGE, UNDECIDED, MatrixChoices, MatrixPoint, run_points
from judged.diagnosis.stages.trace import single_measure
from judged.errors import InputError
from judged.results import Sentences
from judged.scoring.evaluation.inputs import index_of_measure

if TYPE_CHECKING:
    from judged.comparison.slicing.topic_slices import Slicing
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.scoring.evaluation import Scores
    from judged.scoring.measures.base import Measure


@dataclass(frozen=True, eq=False, repr=False)
class ClassMatrix(AnswerOfScores):
    """Quadrants of runs on classes of topics, each by its own measure.

    Attributes
    ----------
    scores : Scores
    x : Measure
        Measure of the candidates, the same for all classes.
    baseline : str
        Run whose means on each class are the thresholds of this class.
    level : float
        Simultaneous confidence level of the intervals that classify.
    points : tuple of MatrixPoint
        By run and class, first those of the baseline.
    slicing : Slicing
        The classes.
    notes : tuple of Note
    """

    kind: ClassVar[str] = "class-matrix"

    scores: Scores
    x: Measure
    baseline: str
    level: float
    points: tuple[MatrixPoint, ...]
    slicing: Slicing
    notes: tuple[Note, ...] = ()

    def facts(self) -> dict[str, Any]:
        """Return the measure of the candidates, the baseline, and the level."""
        return {"x": self.x, "baseline": self.baseline, "level": self.level}

    def blocks(self) -> tuple[Block, ...]:
        """Return the table of points, the sentences, and the classes."""
        note = (
            f"thresholds: the means of {self.baseline} on each class; their uncertainty is ignored; [CI: Student's t,"
            f" {self.level:.0%} for all CIs together (Bonferroni)]; {SIGNS}"
        )
        table = points_table(self.points, {"x": str(self.x), "y": "own measure"}, runs=True)
        return replace(table, note=note, labels=4), Sentences(self.sentences), self.slicing.table()

    @property
    def sentences(self) -> tuple[str, ...]:
        """Classified classes of each run, and small classes."""
        points = (
            f"{point.run}, {describe_point(point, (str(self.x), point.measure), point.cuts, self.baseline)}"
            for point in self.points
            if point.quadrant not in {"", UNDECIDED}
        )
        return (*points, NO_AVERAGE, *describe_small_slices(self.slicing))


def class_matrix(
    scores: Scores,
    slicing: Slicing,
    *,
    x: str | Measure = "R@100",
    baseline: str | None = None,
    level: float = 0.95,
) -> ClassMatrix:
    """Classify runs on each class of topics by a measure of the candidates and by the measure of the class.

    Parameters
    ----------
    scores
        Result of `evaluate`, by `x` and the measures of all classes.
    slicing
        Slices with their own measures: `class_measures` of `slice_topics`.
    x
        Measure of the candidates. A class that has the same measure is healthy or has a coverage problem.
    baseline
        Run whose means on a class are the thresholds of this class. None: the first run.
    level
        Simultaneous confidence level of the intervals that classify (Bonferroni).

    Returns
    -------
    ClassMatrix

    Raises
    ------
    InputError
        If no class has a measure, or a run or measure was not evaluated.
    MeasureError
        If higher is not better for a measure, or it has no mean over topics.

    Examples
    --------
    >>> from judged import evaluate, slice_topics
    >>> ids = [f"q{i}" for i in range(24)]
    >>> runs = {"old": {query: ["a", "b"] for query in ids}, "new": {query: ["x", "a"] for query in ids}}
    >>> scores = evaluate({query: {"a": 1, "b": 1} for query in ids}, runs, ["R@2", "RR", "P@1"])
    >>> kinds = {query: {"kind": "law" if i < 12 else "news"} for i, query in enumerate(ids)}
    >>> slicing = slice_topics(kinds, "kind", class_measures={"law": "RR", "news": "P@1"})
    >>> [(row.slice, row.cuts) for row in class_matrix(scores, slicing, x="R@2").points[:2]]
    [('kind=law', (1.0, 1.0)), ('kind=news', (1.0, 1.0))]
    """
    slicing = as_slicing(slicing).over(scores.query_ids)
    classes = measures_of_classes(scores, slicing)
    if not classes:
        raise InputError("no class has its own measure", fix="use `class_measures` of slice_topics (--class-measures)")
    candidates = scores.measures[index_of_measure(single_measure(x), scores.measures)]
    for axis in (candidates, *classes.values()):
        check_axis(axis)
    names = scores.run_names
    baseline = names[0] if baseline is None else find_run_name(baseline, names, "to use as the baseline")
    intervals = 2 * (len(names) - 1) * sum(not slicing.small[i] for i in classes)
    points: list[MatrixPoint] = []
    for name, (i, measure) in product([baseline, *(name for name in names if name != baseline)], classes.items()):
        axes, topics = (candidates, measure), slicing.members[i]
        values, subset = axis_values(scores, axes), TopicSubset(slicing.names[i], topics, bool(slicing.small[i]))
        cuts, options = means(values[baseline][:, topics]), MatrixChoices(level)
        (point,) = run_points(name, values[name], [subset], cuts, axis_ranges(axes), options, slice_intervals=intervals)
        if name == baseline:  # its own means are the thresholds
            point = replace(point, quadrant="", x=replace(point.x, side=""), y=replace(point.y, side=""))
        elif measure == candidates and point.quadrant == BOTH:
            point = replace(point, quadrant=COVERAGE)
        points.append(replace(point, measure=str(measure), cuts=cuts))
    return ClassMatrix(scores, candidates, baseline, level, tuple(points), slicing, (*scores.notes, *slicing.notes()))
