"""`matrix`: runs, slices and topics by two measures, to tell bad candidates from bad ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison import Choices
from judged.comparison.choices import default_resamples
from judged.comparison.slicing.parts import ValuePair, topic_subsets
from judged.comparison.slicing.topic_slices import as_slicing
from judged.data.qrels import Qrels
from judged.data.run import run_named
from judged.diagnosis.changes import compared
from judged.diagnosis.matrix.answer import Matrix
from judged.diagnosis.matrix.points import MatrixChoices, points_of
from judged.diagnosis.stages.trace import POSITIVE, one_measure
from judged.errors import InputError, MeasureError
from judged.results.decimals import read_number
from judged.scoring.evaluation import dialect_of
from judged.scoring.evaluation.evaluate import of_runs
from judged.scoring.evaluation.inputs import place_of
from judged.scoring.measures.grammar import parse
from judged.stats.correction import losers

if TYPE_CHECKING:
    from judged.comparison.slicing.topic_slices import Slicing
    from judged.results.types import Bools, Floats
    from judged.scoring.evaluation import Scores
    from judged.scoring.measures.base import Measure
    from judged.stats.correction import Discoveries

_JUDGED = "Judged@10"
_FIX = "Fix: take one such as R@100, nDCG@10, AP, RR@10"


def cuts_of(text: str) -> tuple[float, float] | None:
    """Read two cuts; None where nothing is written.

    >>> cuts_of("0.8, 0.5"), cuts_of(" ")
    ((0.8, 0.5), None)
    """
    if not text.strip():
        return None
    try:
        x, y = map(read_number, text.split(","))
    except ValueError:
        raise InputError(f"{text!r} does not give two cuts", fix="write two numbers, such as 0.8,0.4") from None
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
    """Set runs, slices and topics against two measures: one of the candidates, one of the final ranking.

    High on both: healthy. High on x and low on y: what is relevant is found and ranked badly. Low on x: it is not
    found; where y is high all the same, a page may be good by luck, or judgments too few.

    Parameters
    ----------
    scores
        What `evaluate` returned.
    x, y
        The axes. Any two measures of which higher is better.
    slicing
        Slices of topics.
    baseline
        The run whose means over all topics are the cuts, and that the others are compared with; None: the first.
    cuts
        Other cuts: (x, y).
    level
        Of the intervals (Student's t, by the spread of the slice or of all topics, whichever is wider). A slice is
        low or high only where its whole interval is, at a level corrected for the number of slices and axes
        (Bonferroni); p-values are corrected over runs, slices and axes (Holm).
    fdr
        The false discovery rate of the topics that are said to have lost.
    resamples, seed
        Of the paired randomisation tests; None: as many as `compare` takes, 100,000 for up to 300 topics.
    qrels
        What the scores are of, to know topics without a relevant document for what they are.

    Returns
    -------
    Matrix

    Raises
    ------
    InputError
        If there is no such run or measure, or something cannot be read.
    MeasureError
        If of a measure higher is not better, or it has no mean over topics.

    Examples
    --------
    >>> from judged import evaluate
    >>> qrels = {f"q{at}": {"a": 1} for at in range(20)}
    >>> run = {f"q{at}": ["a"] if at < 10 else ["x", "y", "a"] for at in range(20)}
    >>> scores = evaluate(qrels, run, ["R@3", "RR@10"])
    >>> found = scores.matrix(x="R@3", y="RR@10", cuts=(0.5, 0.5))
    >>> found.counts("run")
    {'healthy': 10, 'ranking problem': 10, 'coverage problem': 0, 'both problems': 0}
    """
    places = place_of(one_measure(x), scores.measures), place_of(one_measure(y), scores.measures)
    axes = scores.measures[places[0]], scores.measures[places[1]]
    for axis in axes:
        if axis.entry.aggregate != "mean":
            raise MeasureError(f"{axis} has no mean over topics. {_FIX}")
        if not axis.properties.higher_is_better:
            raise MeasureError(f"of {axis} higher is not better. {_FIX}")
    if axes[0] == axes[1]:
        raise InputError(f"both axes are {axes[0]}", fix="name two measures")
    resamples = resamples or default_resamples(len(scores.query_ids))
    choices = MatrixChoices(level, fdr, resamples, seed)
    names = scores.run_names
    chosen = names[0] if baseline is None else run_named(baseline, names, "to use as the baseline")
    sliced = None if slicing is None else as_slicing(slicing).over(scores.query_ids)
    where = topic_subsets(len(scores.query_ids), sliced)
    values = _values(scores, axes)
    limits = _means(values[chosen]) if cuts is None else (float(cuts[0]), float(cuts[1]))
    if not all(map(np.isfinite, limits)):
        raise InputError(f"the cuts {limits} are not numbers", fix="give cuts=(x, y), or a baseline with scores")
    ends = [(axis.properties.low, axis.properties.high) for axis in axes]
    ranges = [(-np.inf if low is None else low, np.inf if high is None else high) for low, high in ends]
    for cut, (low, high), axis in zip(limits, ranges, axes, strict=True):
        if not low <= cut <= high:
            raise InputError(f"{axis} is never on both sides of {cut:g}", fix=f"give a cut from {low:g} to {high:g}")
    wholes = [name for name in names if name != chosen or cuts is not None]
    others = [name for name in names if name != chosen]
    pairs = {
        (name, str(axis)): ValuePair(values[chosen][at], values[name][at], reach=axis.properties.reach)
        for name in others
        for at, axis in enumerate(axes)
    }
    lost: dict[str, dict[str, Discoveries]] = {name: {} for name in others}
    for (name, axis), pair in pairs.items():
        lost[name][axis] = losers(pair.differences, fdr, scale=float(np.nanmax(np.abs(pair.first), initial=1.0)))
    rel = max(float(getattr(axis, "rel", POSITIVE)) for axis in axes)
    return Matrix(
        scores=scores,
        x=axes[0],
        y=axes[1],
        baseline=chosen,
        cuts=limits,
        given_cuts=cuts is not None,
        points=tuple(
            point
            for name in names
            for point in points_of(
                name, values[name], where, limits, ranges, choices, wholes=len(wholes) if name in wholes else 0
            )
        ),
        changes=compared(pairs, where, Choices(alpha=1 - level, resamples=resamples, seed=seed)),
        lost=lost,
        slicing=sliced,
        choices=choices,
        notes=scores.notes,
        barren=_barren(None if qrels is None else Qrels.of(qrels), scores, rel),
    )


matrix = of_runs(
    matrix_of_scores,
    "matrix",
    measures=lambda asked: list(dict.fromkeys([one_measure(asked["x"]), one_measure(asked["y"]), parse(_JUDGED)])),
    examples="""
    >>> from judged import matrix
    >>> qrels = {f"q{at}": {"a": 1} for at in range(20)}
    >>> run = {f"q{at}": ["a"] if at < 10 else ["x", "y", "a"] for at in range(20)}
    >>> matrix(qrels, run, x="R@3", y="RR@10", cuts=(0.5, 0.5)).counts("run")
    {'healthy': 10, 'ranking problem': 10, 'coverage problem': 0, 'both problems': 0}
    """,
)


def _values(scores: Scores, axes: tuple[Measure, Measure]) -> dict[str, Floats]:
    """Give x, y and the judged share of each run: (3, T)."""
    known = scores.measure_names
    places = [known.index(str(axis)) for axis in axes]
    unknown = np.full(len(scores.query_ids), np.nan)
    shares = [run[known.index(_JUDGED)] if _JUDGED in known else unknown for run in scores.values]
    return {
        name: np.stack([*run[places], share])
        for name, run, share in zip(scores.run_names, scores.values, shares, strict=True)
    }


def _means(values: Floats) -> tuple[float, float]:
    both = values[:2, ~np.isnan(values[:2]).any(axis=0)]
    x, y = both.mean(axis=1).tolist() if both.shape[1] else (np.nan, np.nan)
    return x, y


def _barren(qrels: Qrels | None, scores: Scores, rel: float) -> Bools:
    """Mark the topics without a document of a grade: (T,); none, where the judgments are not known."""
    if qrels is None:
        return np.zeros(len(scores.query_ids), dtype=np.bool_)
    index = dialect_of(scores.policies.dialect).prepare_qrels(qrels).index
    kept = {index.topics[code] for code in set(index.topic[index.grade >= rel].tolist())}
    return np.array([query not in kept for query in scores.query_ids], dtype=np.bool_)
