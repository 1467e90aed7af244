"""`by_slice`: scores by slice, averages over topics, and slices that differ from the other topics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from judged.comparison.slicing.class_measures import measures_of_classes
from judged.comparison.slicing.parts import ALL, topic_subsets
from judged.comparison.slicing.scores import MEAN_OF_SLICES, TOPIC_MEAN, SlicedScores, SliceEstimate, TopicAverage
from judged.comparison.slicing.topic_slices import as_slicing
from judged.errors import InputError
from judged.results import counted
from judged.results.blocks import Note, first_few
from judged.scoring.evaluation import Estimate
from judged.scoring.evaluation.evaluate import build_run_function, select_measures
from judged.scoring.evaluation.notes import few_topics_note
from judged.scoring.measures.aggregates import logarithms
from judged.scoring.measures.grammar import list_measures
from judged.stats.correction import adjust
from judged.stats.interval import IntervalMethod
from judged.stats.slice_differences import against_rest
from judged.stats.weighted import WeightedMeans, encode_groups, group_balanced_means, weighted_means

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.comparison.slicing.topic_slices import Slicing
    from judged.data.qrels import Qrels
    from judged.results.types import Floats
    from judged.scoring.evaluation import Scores
    from judged.scoring.measures.base import Measure
    from judged.stats.interval import IntervalName
    from judged.stats.slice_differences import AgainstRest

_MIN_EFFECTIVE_TOPICS = 20  # with fewer, intervals of weighted means cover less than their level


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
    """Compute all scores for each slice with intervals, and test slices against the other topics.

    Parameters
    ----------
    scores
        Result of `evaluate`.
    slicing
        Slices of topics from `slice_topics`, or a table with one attribute of topics, such as a path. Topics without
        scores are ignored. Slices with their own measure (`Slicing.with_measures`) are scored by this measure only,
        and neither averaged nor tested against other topics.
    weights
        Topic weights for additional averages: the name of a numeric attribute, such as ``traffic`` or ``relevant``;
        several names; ``{name: (T,) numbers}``, in the order of ``scores.query_ids``; or such numbers.
        Recall weighted by relevant documents equals the recall of all pooled relevant documents, if both use the same
        relevance threshold.
    ci, level, resamples, seed
        Of the intervals, as in `Scores.estimates`. Intervals of weighted means use linearization unless ``ci`` is
        ``none``, because bootstrap intervals are too narrow for very unequal weights. A slice differs from the other
        topics if the p-value of a permutation test is at most 1 - level after Holm's correction over all slices, runs,
        and measures.

    Returns
    -------
    SlicedScores

    Raises
    ------
    InputError
        If weights are not numbers, `scores` or `slicing` have the wrong type, or an option is out of range.

    Examples
    --------
    >>> from judged import evaluate, slice_topics
    >>> scores = evaluate({"a": {"d": 1}, "b": {"d": 1}}, {"a": ["d"], "b": ["x", "d"]}, "RR")
    >>> attributes = {"a": {"kind": "law", "traffic": 300}, "b": {"kind": "news", "traffic": 100}}
    >>> result = scores.by_slice(slice_topics(attributes, "kind"), weights="traffic", ci="none")
    >>> result.value("kind=news"), result.average("topic mean").value, result.average("traffic-weighted mean").value
    (0.5, 0.75, 0.875)
    """
    method = IntervalMethod(ci, level, resamples, seed)
    slicing = as_slicing(slicing).over(scores.query_ids)
    classes = measures_of_classes(scores, slicing)
    scores = select_measures(scores, list(classes.values())) if classes else scores
    # with class measures, slices are neither tested against other topics nor averaged
    weightings, topic_values = _parse_weights(weights, slicing), {} if classes else _topic_values(scores)
    tests, test_count = _test_slices(topic_values, slicing, method)
    first_weights = next(iter(weightings.values()), None)
    rows = _compute_estimates(scores, slicing, method, first_weights, tests)
    own = {slicing.names[i]: str(measure) for i, measure in classes.items()}
    estimates = tuple(row for row in rows if not classes or own.get(row.part) == row.measure)
    averages = tuple(_compute_averages(topic_values, estimates, slicing, weightings, method)) if topic_values else ()
    notes = (*scores.notes, *_notes(scores, slicing, weightings))
    return SlicedScores(scores, estimates, method, slicing, averages, test_count, tuple(weightings), notes)


def _evaluate_class_measures(qrels: Qrels, call: dict[str, Any]) -> tuple[Qrels, tuple[Note, ...]]:
    measures = [name for name in getattr(call["slicing"], "class_measures", ()) if name]
    call["measures"] = [*list_measures(call["measures"] or ()), *measures] or None
    return qrels, ()


slices = build_run_function(
    by_slice,
    "slices",
    prepare=_evaluate_class_measures,
    examples="""
    >>> from judged import slice_topics, slices
    >>> qrels, run = {"a": {"d": 1}, "b": {"d": 1}}, {"a": ["d"], "b": ["x", "d"]}
    >>> kinds = slice_topics({"a": {"kind": "law"}, "b": {"kind": "news"}}, "kind")
    >>> slices(qrels, run, kinds, "RR", ci="none").value("kind=news")
    0.5
    """,
)


def _topic_values(scores: Scores) -> dict[tuple[str, Measure], Floats]:
    # only means and geometric means (as means of logarithms) can be compared between slices
    return {
        (run, measure): logarithms(values) if measure.entry.aggregate == "geometric mean" else values
        for run, table in zip(scores.run_names, scores.values, strict=True)
        for measure, values in zip(scores.measures, table, strict=True)
        if measure.entry.aggregate in {"mean", "geometric mean"}
    }


def _compute_estimates(
    scores: Scores,
    slicing: Slicing,
    method: IntervalMethod,
    weights: Floats | None,
    tests: Mapping[tuple[str, str, str], dict[str, Any]],
) -> Iterator[SliceEstimate]:
    """Aggregate over all topics and over each slice, small slices last; NaN for slices without topics."""
    options: dict[str, Any] = {"level": method.level, "resamples": method.resamples, "seed": method.seed}
    subsets = topic_subsets(len(scores.query_ids), slicing)
    for name, mask, small, is_all in sorted(subsets, key=attrgetter("small")):
        weight = math.nan if weights is None else float(np.nansum(weights[mask]) / np.nansum(weights))
        size, share = int(mask.sum()), float(mask.mean())
        part: dict[str, Any] = {"part": name, "size": size, "share": share, "weight": weight, "small": small}
        rows = [
            Estimate(run, str(measure), measure.entry.aggregate, math.nan, None, 0)
            for run in scores.run_names
            for measure in scores.measures
        ]
        if mask.any():
            rows = (scores if is_all else scores.over_topics(mask)).estimates(ci=method.name, **options)
        for row in rows:
            yield SliceEstimate(**vars(row), **part, **tests.get((name, row.run, row.measure), {}))


def _test_slices(
    topic_values: Mapping[tuple[str, Measure], Floats], slicing: Slicing, method: IntervalMethod
) -> tuple[dict[tuple[str, str, str], dict[str, Any]], int]:
    """Test the slices that are not small against the other topics; return test results and the number of tests."""
    large = np.flatnonzero(~slicing.small).tolist()
    tests: list[tuple[str, str, Measure, AgainstRest]] = []
    sides: list[tuple[str, Measure, bytes]] = []  # a slice and its complement have the same test
    for (run, measure), values in topic_values.items() if large else ():
        contrasts = against_rest(values, slicing.members[large], level=method.level, seed=method.seed)
        for i, contrast in zip(large, contrasts, strict=True):
            # topics without a score by this measure do not count
            if contrast.n >= slicing.slices[i].min_topics and contrast.insufficiency is None:
                side = slicing.members[i][~np.isnan(values)]
                tests.append((slicing.names[i], run, measure, contrast))
                sides.append((run, measure, (side if side[:1].all() else ~side).tobytes()))
    # complementary slices share one test, which counts once in the correction
    family = dict(zip(sides, (contrast.p for *_, contrast in tests), strict=True))
    adjusted = dict(zip(family, adjust(list(family.values())).tolist(), strict=True))
    results: dict[tuple[str, str, str], dict[str, Any]] = {}
    for (name, run, measure, contrast), side in zip(tests, sides, strict=True):
        excludes_zero = contrast.interval is not None and (contrast.interval[0] > 0 or contrast.interval[1] < 0)
        significant = excludes_zero and adjusted[side] <= (1 - method.level) * (1 + 1e-12)
        higher = measure.properties.higher_is_better if significant else None
        better = None if higher is None else (contrast.difference > 0) == higher
        result = {"contrast": contrast, "adjusted": adjusted[side], "significant": significant, "better": better}
        results[name, run, str(measure)] = result
    return results, sum(not math.isnan(p) for p in adjusted.values())


def _parse_weights(source: Any, slicing: Slicing) -> dict[str, Floats]:
    """Return weights by name: (T,) each, NaN for topics without a weight."""
    if source is None:
        return {}
    if isinstance(source, str):
        source = [source]
    if isinstance(source, Mapping):
        by_name = dict(cast("Mapping[str, Any]", source))
    elif isinstance(source, Iterable):
        values = list(cast("Iterable[Any]", source))
        are_names = values and all(isinstance(value, str) for value in values)
        by_name = dict(zip(values, values, strict=True)) if are_names else {"traffic": values}
    else:
        problem = f"`weights` must be names or numbers, got {type(source).__name__}"
        raise InputError(problem, fix="use the name of a numeric attribute")
    return {name: _weight_values(name, value, slicing) for name, value in by_name.items()}


def _weight_values(name: str, source: Any, slicing: Slicing) -> Floats:
    if isinstance(source, str):
        attribute = slicing.attributes.numbers(source)
        source = [attribute.get(query, math.nan) for query in slicing.query_ids]
    weights = np.asarray(source, dtype=np.float64)
    topics = len(slicing.query_ids)
    if weights.shape != (topics,):
        problem = f"the weights {name} must have shape ({topics},), got {weights.shape}"
        raise InputError(problem, fix="pass one weight per topic")
    if len(invalid := weights[np.isinf(weights) | (weights < 0)]):
        raise InputError(f"the weights {name} must be finite and >= 0, got {invalid[0]:g}", fix="correct them")
    if not np.nansum(weights) > 0:
        raise InputError(
            f"the weights {name} have no positive weight for any topic of the scores",
            fix="use the same query ids in both files",
        )
    return weights


def _weighted_name(name: str) -> str:
    return "weighted by relevant documents" if name == "relevant" else f"{name}-weighted mean"


def _compute_averages(
    topic_values: Mapping[tuple[str, Measure], Floats],
    estimates: Iterable[SliceEstimate],
    slicing: Slicing,
    weightings: Mapping[str, Floats],
    method: IntervalMethod,
) -> Iterator[TopicAverage]:
    pairs = {(run, str(measure)) for run, measure in topic_values}
    for row in estimates:
        if row.part == ALL and (row.run, row.measure) in pairs:
            fields: dict[str, Any] = {**vars(row), "part": TOPIC_MEAN, "effective": float(row.n)}
            yield TopicAverage(**fields)
    table = np.stack(list(topic_values.values()))
    level = None if method.name == "none" else method.level
    averages: dict[str, WeightedMeans] = {}
    # overlapping slices have no mean: some topics would count twice
    groups = encode_groups(slicing.members[~slicing.small])
    if groups is not None and len(np.unique(groups[groups >= 0])) > 1:
        averages[MEAN_OF_SLICES] = group_balanced_means(table, groups, level)
    # linearization: bootstrap intervals are too narrow for very unequal weights
    interval_method = IntervalMethod("none" if level is None else "t", method.level)
    for name, weights in weightings.items():
        averages[_weighted_name(name)] = weighted_means(table, weights, interval_method)
    for name, average in averages.items():
        for column, (run, measure) in enumerate(topic_values):
            aggregate, n = measure.entry.aggregate, int(average.n[column])
            transform = math.exp if aggregate == "geometric mean" else float
            estimate = (average.values[column], *average.limits[column])
            value, low, high = (transform(float(number)) for number in estimate)
            ci, effective = None if math.isnan(low) else (low, high), float(average.effective[column])
            fields: dict[str, Any] = {"part": name, "size": n, "small": False, "effective": effective}
            yield TopicAverage(run, str(measure), aggregate, value, ci, n, **fields)


def _notes(scores: Scores, slicing: Slicing, weightings: Mapping[str, Floats]) -> Iterator[Note]:
    topics = counted(len(slicing.query_ids), "topic")
    yield from slicing.notes()
    sizes = dict(zip(slicing.names, slicing.n.tolist(), strict=True))
    if empty := [name for name, n in sizes.items() if not n]:
        yield Note("empty-slices", f"no topic is in the slice {first_few(empty)}")
    if small := {name: n for name, n in sizes.items() if few_topics_note(n)}:
        yield Note("few-topics", few_topics_note(max(small.values())), first_few(list(small)))
    for name, weights in weightings.items():
        if missing := int(np.isnan(weights).sum()):
            text = f"{missing} of {topics} have no {name}, and are excluded from the {_weighted_name(name)}"
            yield Note("weights-missing", text)
        effective = float(np.nansum(weights) ** 2 / np.nansum(weights**2))
        if effective < min(_MIN_EFFECTIVE_TOPICS, len(weights) / 2):
            text = (
                f"the weights {name} are concentrated on a few topics: the effective sample size is"
                f" {counted(round(effective), 'topic')}, and the CI may be too narrow"
            )
            yield Note("weights-on-few-topics", text)
    stricter_measures = [str(measure) for measure in scores.measures if getattr(measure, "rel", 1) != 1]
    if "relevant" in weightings and stricter_measures:
        text = (
            "the attribute `relevant`, used as weights, counts documents of grade 1 or higher, unless you computed"
            f" it differently. The relevance threshold of {', '.join(stricter_measures)} is different, so the weighted"
            " mean is not the micro-average"
        )
        yield Note("weights-of-another-level", text)
