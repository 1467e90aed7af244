"""`performance_matrix`: runs, slices and topics by two measures, to tell bad candidates from bad ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.data import Qrels
from judged.diagnosis.changes import Quantity, compared, everywhere
from judged.diagnosis.matrix.points import MatrixChoices, points_of
from judged.diagnosis.matrix.result import Matrix
from judged.diagnosis.stages.tracing import POSITIVE, one_measure
from judged.errors import InputError, MeasureError
from judged.evaluation import dialect_of
from judged.evaluation.given import scores_of
from judged.measures import parse
from judged.slicing.slices import slicing_given
from judged.stats.discoveries import losers

if TYPE_CHECKING:
    from judged._types import Bools, Floats
    from judged.evaluation import Scores
    from judged.measures import Measure
    from judged.slicing.slices import Slicing
    from judged.stats.discoveries import Discoveries

__all__ = ["Matrix", "performance_matrix"]

_JUDGED = "Judged@10"


def performance_matrix(
    scores: Any,
    runs: Any = None,
    *,
    x: str | Measure = "R@100",
    y: str | Measure = "nDCG@10",
    slicing: Slicing | None = None,
    baseline: str | None = None,
    cuts: tuple[float, float] | None = None,
    level: float = 0.95,
    rate: float = 0.1,
    resamples: int = 100_000,
    seed: int = 0,
    **policies: Any,
) -> Matrix:
    """Set runs, slices and topics against two measures: one of the candidates, one of the final ranking.

    High on both: healthy. High on x and low on y: what is relevant is found and ranked badly. Low on x: it is not
    found; where y is high all the same, a page may be good by luck, or judgments too few.

    Parameters
    ----------
    scores
        What `evaluate` returned, with both measures; or qrels, and then `runs` follow.
    runs
        As `evaluate` takes them.
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
    rate
        The false discovery rate of the topics that are said to have lost.
    resamples, seed
        Of the paired randomisation tests.
    policies
        Of `evaluate`, where qrels and runs are given.

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
    >>> qrels = {f"q{at}": {"a": 1} for at in range(20)}
    >>> run = {f"q{at}": ["a"] if at < 10 else ["x", "y", "a"] for at in range(20)}
    >>> found = performance_matrix(qrels, run, x="R@3", y="RR@10", cuts=(0.5, 0.5))
    >>> found.counts("run")
    {'healthy': 10, 'ranking problem': 10, 'coverage problem': 0, 'both problems': 0}
    """
    axes = one_measure(x), one_measure(y)
    _check_axes(*axes)
    choices = MatrixChoices(level, rate, resamples, seed)
    wanted = None if runs is None else list(dict.fromkeys([*axes, parse(_JUDGED)]))
    judgments = None if runs is None else Qrels.of(scores)
    table = scores_of(scores if judgments is None else judgments, runs, wanted, policies)
    names = table.run_names
    chosen = names[0] if baseline is None else baseline
    if chosen not in names:
        raise InputError(f"no run {chosen!r} to be the baseline", fix=f"one of {', '.join(names)}")
    sliced = None if slicing is None else slicing_given(slicing).over(table.query_ids)
    where = everywhere(len(table.query_ids), sliced)
    values = {name: _columns(table, at, axes) for at, name in enumerate(names)}
    limits = _means(values[chosen]) if cuts is None else (float(cuts[0]), float(cuts[1]))
    if not all(map(np.isfinite, limits)):
        raise InputError(f"the cuts {limits} are no numbers", fix="give cuts=(x, y), or a baseline with scores")
    ranges = [_range(one) for one in axes]
    _check_cuts(limits, ranges, axes)
    wholes = {name for name in names if name != chosen or cuts is not None}
    prepared = None if judgments is None else dialect_of(policies.get("dialect")).prepare_qrels(judgments)
    pairs = [
        Quantity(name, str(axis), values[chosen][at], values[name][at], "both axes")
        for name in names
        if name != chosen
        for at, axis in enumerate(axes)
    ]
    return Matrix(
        scores=table,
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
        changes=compared(pairs, where, alpha=1 - level, resamples=resamples, seed=seed) if pairs else (),
        lost=_lost(pairs, rate),
        slicing=sliced,
        choices=choices,
        barren=_barren(prepared, table, max(float(getattr(one, "rel", POSITIVE)) for one in axes)),
        warnings=table.warnings,
    )


def _check_axes(x: Measure, y: Measure) -> None:
    for one in (x, y):
        if one.entry.aggregate != "mean":
            raise MeasureError(f"{one} has no mean over topics. Fix: take one such as R@100, nDCG@10, AP, RR@10")
        if not one.properties.higher_is_better:
            raise MeasureError(f"of {one} higher is not better. Fix: take one such as R@100, nDCG@10, AP, RR@10")
    if x == y:
        raise InputError(f"both axes are {x}", fix="name two measures")


def _check_cuts(cuts: tuple[float, float], ranges: list[tuple[float, float]], axes: tuple[Measure, ...]) -> None:
    """Refuse cuts that no score can lie on both sides of."""
    for cut, (low, high), axis in zip(cuts, ranges, axes, strict=True):
        if not low <= cut <= high:
            raise InputError(f"{axis} is never on both sides of {cut:g}", fix=f"give a cut from {low:g} to {high:g}")


def _barren(qrels: Qrels | None, scores: Scores, level: float) -> Bools:
    """Mark the topics without a document of a grade: (T,); none, where the judgments are not known."""
    if qrels is None:
        return np.zeros(len(scores.query_ids), dtype=np.bool_)
    index = qrels.index
    kept = {index.topics[code] for code in set(index.topic[index.grade >= level].tolist())}
    return np.array([query not in kept for query in scores.query_ids], dtype=np.bool_)


def _lost(pairs: list[Quantity], rate: float) -> dict[str, dict[str, Discoveries]]:
    """Find the topics that lost, by run and axis."""
    made: dict[str, dict[str, Discoveries]] = {}
    for one in pairs:
        scale = float(np.nanmax(np.abs(one.first), initial=1.0))
        made.setdefault(one.system, {})[one.part] = losers(one.second - one.first, rate, scale=scale)
    return made


def _range(measure: Measure) -> tuple[float, float]:
    low, high = measure.properties.low, measure.properties.high
    return -np.inf if low is None else low, np.inf if high is None else high


def _columns(scores: Scores, run: int, axes: tuple[Measure, ...]) -> Floats:
    """Give x, y and the judged share of a run: (3, T)."""
    known = scores.measure_names
    if missing := [str(one) for one in axes if str(one) not in known]:
        raise InputError(f"{missing[0]} was not evaluated", fix=f"evaluate it, or take one of {', '.join(known)}")
    rows = [scores.values[run, known.index(str(one))] for one in axes]
    share = scores.values[run, known.index(_JUDGED)] if _JUDGED in known else np.full(len(scores.query_ids), np.nan)
    return np.stack([*rows, share])


def _means(values: Floats) -> tuple[float, float]:
    both = values[:2, ~np.isnan(values[:2]).any(axis=0)]
    means = both.mean(axis=1) if both.shape[1] else np.full(2, np.nan)
    return float(means[0]), float(means[1])
