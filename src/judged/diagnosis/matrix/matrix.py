"""Classify runs, slices and topics by two measures, to distinguish poor candidates from poor ranking."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison import Choices
from judged.comparison.choices import default_resamples
from judged.comparison.slicing.class_measures import measures_of_classes
from judged.comparison.slicing.parts import TopicSubset, ValuePair, topic_subsets
from judged.comparison.slicing.topic_slices import as_slicing
from judged.data.qrels import Qrels
from judged.data.run import find_run_name
from judged.diagnosis.changes import changes_of_quantities
from judged.diagnosis.matrix.answer import ClassMatrix, Matrix
from judged.diagnosis.matrix.points import BOTH, COVERAGE, MatrixChoices, MatrixPoint, run_points
from judged.diagnosis.stages.trace import POSITIVE, single_measure
from judged.errors import InputError, MeasureError
from judged.results.decimals import read_number
from judged.scoring.evaluation import dialect_of
from judged.scoring.evaluation.evaluate import build_run_function
from judged.scoring.evaluation.inputs import index_of_measure
from judged.scoring.measures.grammar import parse
from judged.stats.correction import losers

if TYPE_CHECKING:
    from judged.comparison.slicing.topic_slices import Slicing
    from judged.results.types import Bools, Floats
    from judged.scoring.evaluation import Scores
    from judged.scoring.measures.base import Measure
    from judged.stats.correction import Discoveries

_JUDGED = "Judged@10"
_FIX = "Fix: use a measure such as R@100, nDCG@10, AP, RR@10"


def parse_cuts(text: str) -> tuple[float, float] | None:
    """Parse two thresholds. Return None if the text is empty.

    >>> parse_cuts("0.8, 0.5"), parse_cuts(" ")
    ((0.8, 0.5), None)
    """
    if not text.strip():
        return None
    try:
        x, y = map(read_number, text.split(","))
    except ValueError:
        raise InputError(
            f"the thresholds must be two numbers, got {text!r}", fix="use two numbers, such as 0.8,0.4"
        ) from None
    return x, y


def matrix_of_scores(
    scores: Scores,
    *,
    x: str | Measure = "R@100",
    y: str | Measure = "nDCG@10",
    slicing: Slicing | None = None,
    baseline: str | None = None,
    cuts: tuple[float, float] | None = None,
    level: float = 0.95,
    fdr: float = 0.1,
    resamples: int | None = None,
    seed: int = 0,
    qrels: Any = None,
) -> Matrix:
    """Classify runs, slices and topics by two measures: one of the candidates, one of the final ranking.

    High on both axes is healthy. High on x and low on y means that relevant documents are candidates but ranked badly.
    Low on x means that they are not candidates; if y is high, the top may be good by chance, or judgments are sparse.

    Parameters
    ----------
    scores
        Result of `evaluate`.
    x, y
        Measures of the axes, for which higher is better.
    slicing
        Slices of topics.
    baseline
        Run whose means over all topics are the thresholds between low and high, and that the other runs are compared
        with. None: the first run.
    cuts
        Thresholds (x, y) to use instead.
    level
        Confidence level of the intervals (Student's t, with the larger of the spreads of the slice and of all topics).
        A slice is low or high only if its whole interval is, at a level corrected for the number of slices and axes
        (Bonferroni). p-values are corrected over runs, slices and axes (Holm).
    fdr
        False discovery rate of the topics reported as lost.
    resamples, seed
        Settings of the paired randomization tests. None: as for `compare`, 100,000 for up to 300 topics.
    qrels
        Judgments of the scores, to identify topics without a relevant document.

    Returns
    -------
    Matrix

    Raises
    ------
    InputError
        If a run or measure does not exist, or the input cannot be read.
    MeasureError
        If higher is not better for a measure, or it has no mean over topics.

    Examples
    --------
    >>> from judged import evaluate
    >>> qrels = {f"q{i}": {"a": 1} for i in range(20)}
    >>> run = {f"q{i}": ["a"] if i < 10 else ["x", "y", "a"] for i in range(20)}
    >>> scores = evaluate(qrels, run, ["R@3", "RR@10"])
    >>> result = scores.matrix(x="R@3", y="RR@10", cuts=(0.5, 0.5))
    >>> result.counts("run")
    {'healthy': 10, 'ranking problem': 10, 'coverage problem': 0, 'both problems': 0}
    """
    rows = index_of_measure(single_measure(x), scores.measures), index_of_measure(single_measure(y), scores.measures)
    axes = scores.measures[rows[0]], scores.measures[rows[1]]
    for axis in axes:
        _check_axis(axis)
    if axes[0] == axes[1]:
        raise InputError(f"both axes are {axes[0]}", fix="use two different measures")
    resamples = resamples or default_resamples(len(scores.query_ids))
    options = MatrixChoices(level, fdr, resamples, seed)
    run_names = scores.run_names
    baseline_name = run_names[0] if baseline is None else find_run_name(baseline, run_names, "to use as the baseline")
    run_slicing = None if slicing is None else as_slicing(slicing).over(scores.query_ids)
    topic_sets = topic_subsets(len(scores.query_ids), run_slicing)
    values = _values(scores, axes)
    axis_cuts = _means(values[baseline_name]) if cuts is None else (float(cuts[0]), float(cuts[1]))
    if not all(map(np.isfinite, axis_cuts)):
        raise InputError(
            f"the thresholds {axis_cuts} are not numbers", fix="use cuts=(x, y), or a baseline with scores"
        )
    ranges = _axis_ranges(axes)
    for cut, (low, high), axis in zip(axis_cuts, ranges, axes, strict=True):
        if not low <= cut <= high:
            raise InputError(
                f"the cut {cut:g} is outside the range of {axis}", fix=f"use a cut from {low:g} to {high:g}"
            )
    points: list[MatrixPoint] = []
    for name in run_names:
        # The means of the baseline are the default cuts, so it is classified only with cuts from the caller.
        classified = len(run_names) - (cuts is None) if name != baseline_name or cuts is not None else 0
        points += run_points(name, values[name], topic_sets, axis_cuts, ranges, options, classified_runs=classified)
    compared_names = [name for name in run_names if name != baseline_name]
    quantities = {
        (name, str(axis)): ValuePair(
            values[baseline_name][row], values[name][row], max_difference=axis.properties.score_range
        )
        for name in compared_names
        for row, axis in enumerate(axes)
    }
    losses: dict[str, dict[str, Discoveries]] = {name: {} for name in compared_names}
    for (name, axis), quantity in quantities.items():
        losses[name][axis] = losers(
            quantity.differences, fdr, scale=float(np.nanmax(np.abs(quantity.first), initial=1.0))
        )
    rel = max(float(getattr(axis, "rel", POSITIVE)) for axis in axes)
    return Matrix(
        scores=scores,
        x=axes[0],
        y=axes[1],
        baseline=baseline_name,
        cuts=axis_cuts,
        custom_cuts=cuts is not None,
        points=tuple(points),
        changes=changes_of_quantities(quantities, topic_sets, Choices(alpha=1 - level, resamples=resamples, seed=seed)),
        lost=losses,
        slicing=run_slicing,
        choices=options,
        notes=scores.notes,
        no_relevant=_topics_without_relevant(None if qrels is None else Qrels.of(qrels), scores, rel),
    )


matrix = build_run_function(
    matrix_of_scores,
    "matrix",
    measures=lambda call: list(dict.fromkeys([single_measure(call["x"]), single_measure(call["y"]), parse(_JUDGED)])),
    examples="""
    >>> from judged import matrix
    >>> qrels = {f"q{i}": {"a": 1} for i in range(20)}
    >>> run = {f"q{i}": ["a"] if i < 10 else ["x", "y", "a"] for i in range(20)}
    >>> matrix(qrels, run, x="R@3", y="RR@10", cuts=(0.5, 0.5)).counts("run")
    {'healthy': 10, 'ranking problem': 10, 'coverage problem': 0, 'both problems': 0}
    """,
)


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
        Slices with their own measures, from `Slicing.with_measures`.
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
    >>> slicing = slice_topics(kinds, "kind").with_measures({"law": "RR", "news": "P@1"})
    >>> [(row.slice, row.cuts) for row in class_matrix(scores, slicing, x="R@2").points[:2]]
    [('kind=law', (1.0, 1.0)), ('kind=news', (1.0, 1.0))]
    """
    slicing = as_slicing(slicing).over(scores.query_ids)
    classes = measures_of_classes(scores, slicing)
    if not classes:
        raise InputError("no class has its own measure", fix="call `slicing.with_measures`")
    candidates = scores.measures[index_of_measure(single_measure(x), scores.measures)]
    for axis in (candidates, *classes.values()):
        _check_axis(axis)
    names = scores.run_names
    baseline = names[0] if baseline is None else find_run_name(baseline, names, "to use as the baseline")
    intervals = 2 * (len(names) - 1) * sum(not slicing.small[i] for i in classes)
    points: list[MatrixPoint] = []
    for name, (i, measure) in product([baseline, *(name for name in names if name != baseline)], classes.items()):
        axes, topics = (candidates, measure), slicing.members[i]
        values, subset = _values(scores, axes), TopicSubset(slicing.names[i], topics, bool(slicing.small[i]))
        cuts, options = _means(values[baseline][:, topics]), MatrixChoices(level)
        (point,) = run_points(
            name, values[name], [subset], cuts, _axis_ranges(axes), options, slice_intervals=intervals
        )
        if name == baseline:  # its own means are the thresholds
            point = replace(point, quadrant="", x=replace(point.x, side=""), y=replace(point.y, side=""))
        elif measure == candidates and point.quadrant == BOTH:
            point = replace(point, quadrant=COVERAGE)
        points.append(replace(point, measure=str(measure), cuts=cuts))
    return ClassMatrix(scores, candidates, baseline, level, tuple(points), slicing, (*scores.notes, *slicing.notes()))


def _check_axis(axis: Measure) -> None:
    if axis.entry.aggregate != "mean":
        raise MeasureError(f"{axis} has no mean over topics. {_FIX}")
    if not axis.properties.higher_is_better:
        raise MeasureError(f"higher values of {axis} are not better. {_FIX}")


def _axis_ranges(axes: tuple[Measure, Measure]) -> list[tuple[float, float]]:
    bounds = [(axis.properties.low, axis.properties.high) for axis in axes]
    return [(-np.inf if low is None else low, np.inf if high is None else high) for low, high in bounds]


def _values(scores: Scores, axes: tuple[Measure, Measure]) -> dict[str, Floats]:
    """Return x, y and the judged share of each run, shape (3, T)."""
    measure_names = scores.measure_names
    axis_rows = [measure_names.index(str(axis)) for axis in axes]
    no_shares = np.full(len(scores.query_ids), np.nan)
    shares = [run[measure_names.index(_JUDGED)] if _JUDGED in measure_names else no_shares for run in scores.values]
    stacked = [np.stack([*run[axis_rows], share]) for run, share in zip(scores.values, shares, strict=True)]
    return dict(zip(scores.run_names, stacked, strict=True))


def _means(values: Floats) -> tuple[float, float]:
    defined = values[:2, ~np.isnan(values[:2]).any(axis=0)]
    x, y = defined.mean(axis=1).tolist() if defined.shape[1] else (np.nan, np.nan)
    return x, y


def _topics_without_relevant(qrels: Qrels | None, scores: Scores, rel: float) -> Bools:
    """Return a mask (T,) of the topics without a document of grade `rel`; all False without judgments."""
    if qrels is None:
        return np.zeros(len(scores.query_ids), dtype=np.bool_)
    index = dialect_of(scores.policies.dialect).prepare_qrels(qrels).index
    topics_with_relevant = {index.topics[code] for code in set(index.topic[index.grade >= rel].tolist())}
    return np.array([topic not in topics_with_relevant for topic in scores.query_ids], dtype=np.bool_)
