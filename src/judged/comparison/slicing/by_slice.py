"""`by_slice`: scores by slice, ways to average all topics, and which slices differ from the other topics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from judged.comparison.slicing.parts import ALL, everywhere
from judged.comparison.slicing.scores import MEAN_OF_SLICES, TOPIC_MEAN, Average, SlicedScores, SliceEstimate
from judged.comparison.slicing.topic_slices import slicing_given
from judged.errors import InputError
from judged.results import counted
from judged.results.blocks import Note, first_few
from judged.scoring.evaluation import Estimate
from judged.scoring.evaluation.evaluate import of_runs
from judged.scoring.evaluation.notes import few_note
from judged.scoring.measures.aggregates import logarithms
from judged.stats.correction import adjust
from judged.stats.interval import IntervalMethod
from judged.stats.slice_differences import against_rest
from judged.stats.weighted import WeightedMeans, groups_of, means_of_groups, weighted_means

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.comparison.slicing.topic_slices import Slicing
    from judged.results.types import Floats
    from judged.scoring.evaluation import Scores
    from judged.scoring.measures.base import Measure
    from judged.stats.interval import IntervalName
    from judged.stats.slice_differences import AgainstRest

_LEAST_EFFECTIVE = 20  # topics: below, intervals of weighted means hold their level less well


def by_slice(
    scores: Scores,
    slicing: Slicing,
    *,
    weights: Any = None,
    ci: IntervalName = "adjusted",
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> SlicedScores:
    """Give every number for every slice, with intervals, and say which slices differ from the other topics.

    Parameters
    ----------
    scores
        What `evaluate` returned.
    slicing
        Slices of topics, as `slice_topics` makes them, or a table with one attribute of topics, such as a path; topics
        that have no scores do not count.
    weights
        By which topics are also averaged: the name of an attribute that is a number, such as ``traffic`` or
        ``relevant``; several names; ``{name: (T,) numbers}``, in the order of ``scores.query_ids``; or such numbers.
        A recall that is weighted by relevant documents is that of all of them pooled, if both count from the same
        grade.
    ci, level, resamples, seed
        Of the intervals, as for `Scores.estimates`. Those of weighted means are linearised unless ``ci`` is ``none``:
        where weights differ much, the bootstrap's are too narrow. A slice differs from the other topics if
        the p-value of a permutation test is at most 1 - level after Holm's correction for all slices, runs and
        measures.

    Returns
    -------
    SlicedScores

    Raises
    ------
    InputError
        If weights are not numbers, what is given are neither scores nor slices, or an option makes no sense.

    Examples
    --------
    >>> from judged import evaluate, slice_topics
    >>> scores = evaluate({"a": {"d": 1}, "b": {"d": 1}}, {"a": ["d"], "b": ["x", "d"]}, "RR")
    >>> known = {"a": {"kind": "law", "traffic": 300}, "b": {"kind": "news", "traffic": 100}}
    >>> found = scores.by_slice(slice_topics(known, "kind"), weights="traffic", ci="none")
    >>> found.value("kind=news"), found.average("topic mean").value, found.average("traffic-weighted mean").value
    (0.5, 0.75, 0.875)
    """
    method = IntervalMethod(ci, level, resamples, seed)
    cut = slicing_given(slicing).over(scores.query_ids)
    weighing, means = _weights(weights, cut), _means(scores)
    tests, count = _tests(means, cut, method)
    estimates = tuple(_estimates(scores, cut, method, next(iter(weighing.values()), None), tests))
    averages = tuple(_averages(means, estimates, cut, weighing, method)) if means else ()
    notes = (*scores.notes, *_notes(scores, cut, weighing))
    return SlicedScores(scores, estimates, method, cut, averages, count, tuple(weighing), notes)


slices = of_runs(
    by_slice,
    "slices",
    examples="""
    >>> from judged import slice_topics, slices
    >>> qrels, run = {"a": {"d": 1}, "b": {"d": 1}}, {"a": ["d"], "b": ["x", "d"]}
    >>> kinds = slice_topics({"a": {"kind": "law"}, "b": {"kind": "news"}}, "kind")
    >>> slices(qrels, run, kinds, "RR", ci="none").value("kind=news")
    0.5
    """,
)


def _means(scores: Scores) -> dict[tuple[str, Measure], Floats]:
    """Give the numbers by topic of each run and measure whose mean is asked for: scores, or their logarithms."""
    return {
        (run, measure): logarithms(values) if measure.entry.aggregate == "geometric mean" else values
        for run, table in zip(scores.run_names, scores.values, strict=True)
        for measure, values in zip(scores.measures, table, strict=True)
        if measure.entry.aggregate in {"mean", "geometric mean"}
    }


def _estimates(
    scores: Scores,
    slicing: Slicing,
    method: IntervalMethod,
    weights: Floats | None,
    tests: Mapping[tuple[str, str, str], dict[str, Any]],
) -> Iterator[SliceEstimate]:
    """Aggregate over all topics, and over those of each slice, small ones last; NaN where it has none."""
    how: dict[str, Any] = {"level": method.level, "resamples": method.resamples, "seed": method.seed}
    for name, mask, small, every in sorted(everywhere(len(scores.query_ids), slicing), key=lambda part: part.small):
        weight = math.nan if weights is None else float(np.nansum(weights[mask]) / np.nansum(weights))
        known: dict[str, Any] = {"size": int(mask.sum()), "share": float(mask.mean()), "weight": weight, "small": small}
        rows = [
            Estimate(run, str(measure), measure.entry.aggregate, math.nan, None, 0)
            for run in scores.run_names
            for measure in scores.measures
        ]
        if mask.any():
            rows = (scores if every else scores.over_topics(mask)).estimates(ci=method.name, **how)
        for row in rows:
            yield SliceEstimate(**vars(row), part=name, **known, **tests.get((name, row.run, row.measure), {}))


def _tests(
    means: Mapping[tuple[str, Measure], Floats], slicing: Slicing, method: IntervalMethod
) -> tuple[dict[tuple[str, str, str], dict[str, Any]], int]:
    """Test every slice that is not small against the other topics; and say how many tests share alpha."""
    large = np.flatnonzero(~slicing.small).tolist()
    tests: list[tuple[str, str, Measure, AgainstRest]] = []
    sides: list[tuple[str, Measure, bytes]] = []  # two sides of the topics have one test
    for (run, measure), numbers in means.items() if large else ():
        against = against_rest(numbers, slicing.members[large], level=method.level, seed=method.seed)
        for part, rest in zip(large, against, strict=True):
            # the measure may leave topics out
            if rest.n >= slicing.slices[part].min_topics and rest.insufficiency is None:
                side = slicing.members[part][~np.isnan(numbers)]
                tests.append((slicing.names[part], run, measure, rest))
                sides.append((run, measure, (side if side[:1].all() else ~side).tobytes()))
    family = dict(zip(sides, (rest.p for *_, rest in tests), strict=True))
    adjusted = dict(zip(family, adjust(list(family.values())).tolist(), strict=True))
    told: dict[tuple[str, str, str], dict[str, Any]] = {}
    for (name, run, measure, rest), side in zip(tests, sides, strict=True):
        apart = rest.interval is not None and (rest.interval[0] > 0 or rest.interval[1] < 0)
        significant = apart and adjusted[side] <= (1 - method.level) * (1 + 1e-12)
        higher = measure.properties.higher_is_better if significant else None
        better = None if higher is None else (rest.difference > 0) == higher
        known = {"rest": rest, "adjusted": adjusted[side], "significant": significant, "better": better}
        told[name, run, str(measure)] = known
    return told, sum(not math.isnan(p) for p in adjusted.values())


def _weights(given: Any, slicing: Slicing) -> dict[str, Floats]:
    """Give weights by name: (T,) each, NaN where a topic has none."""
    if given is None:
        return {}
    if isinstance(given, str):
        given = [given]
    if isinstance(given, Mapping):
        named = dict(cast("Mapping[str, Any]", given))
    elif isinstance(given, Iterable):
        parts = list(cast("Iterable[Any]", given))
        names = parts and all(isinstance(part, str) for part in parts)
        named = dict(zip(parts, parts, strict=True)) if names else {"traffic": parts}
    else:
        problem = f"a {type(given).__name__} cannot be used as weights"
        raise InputError(problem, fix="name an attribute that is a number")
    return {name: _numbers(name, part, slicing) for name, part in named.items()}


def _numbers(name: str, given: Any, slicing: Slicing) -> Floats:
    if isinstance(given, str):
        known = slicing.attributes.numbers(given)
        given = [known.get(query, math.nan) for query in slicing.query_ids]
    numbers = np.asarray(given, dtype=np.float64)
    topics = len(slicing.query_ids)
    if numbers.shape != (topics,):
        problem = f"the weights {name} have the shape {numbers.shape}"
        raise InputError(problem, fix=f"give one of each of {topics} topics")
    if np.isinf(numbers).any() or (numbers < 0).any():
        raise InputError(f"a weight of {name} is negative or infinite", fix="give weights from 0")
    if not np.nansum(numbers) > 0:
        raise InputError(f"no topic has a weight in {name}", fix="check that both files use the same query ids")
    return numbers


def _weighted_name(name: str) -> str:
    return "weighted by relevant documents" if name == "relevant" else f"{name}-weighted mean"


def _averages(
    means: Mapping[tuple[str, Measure], Floats],
    estimates: Iterable[SliceEstimate],
    slicing: Slicing,
    weighing: Mapping[str, Floats],
    method: IntervalMethod,
) -> Iterator[Average]:
    """Average all topics in every way that makes sense."""
    pairs = {(run, str(measure)) for run, measure in means}
    for row in estimates:
        if row.part == ALL and (row.run, row.measure) in pairs:
            known: dict[str, Any] = {**vars(row), "part": TOPIC_MEAN, "effective": float(row.n)}
            yield Average(**known)
    table = np.stack(list(means.values()))
    level = None if method.name == "none" else method.level
    ways: dict[str, WeightedMeans] = {}
    groups = groups_of(slicing.members[~slicing.small])
    if groups is not None and len(np.unique(groups[groups >= 0])) > 1:
        ways[MEAN_OF_SLICES] = means_of_groups(table, groups, level)
    linearised = IntervalMethod("none" if level is None else "t", method.level)
    ways |= {_weighted_name(name): weighted_means(table, weights, linearised) for name, weights in weighing.items()}
    for name, way in ways.items():
        for place, (run, measure) in enumerate(means):
            aggregate, n = measure.entry.aggregate, int(way.n[place])
            shown = math.exp if aggregate == "geometric mean" else float
            value, low, high = (shown(float(number)) for number in (way.values[place], *way.limits[place]))
            ci, effective = None if math.isnan(low) else (low, high), float(way.effective[place])
            named: dict[str, Any] = {"part": name, "size": n, "small": False, "effective": effective}
            yield Average(run, str(measure), aggregate, value, ci, n, **named)


def _notes(scores: Scores, slicing: Slicing, weighing: Mapping[str, Floats]) -> Iterator[Note]:
    topics = counted(len(slicing.query_ids), "topic")
    yield from slicing.notes()
    sizes = dict(zip(slicing.names, slicing.n.tolist(), strict=True))
    if empty := [name for name, n in sizes.items() if not n]:
        yield Note("empty-slices", f"no topic is in the slice {first_few(empty)}")
    if few := {name: n for name, n in sizes.items() if few_note(n)}:
        yield Note("few-topics", few_note(max(few.values())), first_few(list(few)))
    for name, weights in weighing.items():
        if lacking := int(np.isnan(weights).sum()):
            text = f"{lacking} of {topics} have no {name}: they do not count in the {_weighted_name(name)}"
            yield Note("weights-missing", text)
        effective = float(np.nansum(weights) ** 2 / np.nansum(weights**2))
        if effective < min(_LEAST_EFFECTIVE, len(weights) / 2):
            text = (
                f"the weights {name} are concentrated on few topics: the mean is as certain as that of"
                f" {counted(round(effective), 'topic')}, and its interval may be too narrow"
            )
            yield Note("weights-on-few-topics", text)
    other = [str(measure) for measure in scores.measures if getattr(measure, "rel", 1) != 1]
    if "relevant" in weighing and other:
        text = (
            f"relevant documents are counted from grade 1 on, unless the attribute was made otherwise:"
            f" {', '.join(other)} weighted by them is not that of all documents pooled"
        )
        yield Note("weights-of-another-level", text)
