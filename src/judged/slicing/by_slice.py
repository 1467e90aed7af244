"""`by_slice`: scores by slice, and which slices differ from the rest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from judged.errors import InputError
from judged.evaluation import Estimate
from judged.evaluation.given import scores_of
from judged.evaluation.notes import few_note
from judged.measures import logarithms
from judged.notes import first_few
from judged.slicing.sliced import ALL, MEAN_OF_SLICES, TOPIC_MEAN, Average, SlicedScores, SliceEstimate, SliceFinding
from judged.slicing.slices import slicing_given
from judged.stats import IntervalMethod
from judged.stats.correction import adjust
from judged.stats.heterogeneity import AgainstRest, against_rest
from judged.stats.pairing import topics_text
from judged.stats.weighted import WeightedMeans, groups_of, means_of_groups, weighted_means

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged._types import Bools, Floats
    from judged.evaluation import Scores
    from judged.measures import Measure
    from judged.slicing.slices import Slicing
    from judged.stats import IntervalName

_MEANS = ("mean", "geometric mean")
_LEAST_EFFECTIVE = 20  # topics: below, intervals of weighted means hold their level less well


def by_slice(
    scores: Any,
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
        What `evaluate` returned, or a file that `Scores.save` wrote.
    slicing
        Slices of topics, as `slice_topics` makes them; those that have no scores do not count.
    weights
        By which topics are averaged besides: the name of an attribute that is a number, such as ``traffic`` or
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
        If weights are no numbers, what is given are no scores or no slices, or an option makes no sense.

    Examples
    --------
    >>> from judged import evaluate
    >>> from judged.slicing.slices import slice_topics
    >>> scores = evaluate({"a": {"d": 1}, "b": {"d": 1}}, {"a": ["d"], "b": ["x", "d"]}, "RR")
    >>> known = {"a": {"kind": "law", "traffic": 300}, "b": {"kind": "news", "traffic": 100}}
    >>> found = by_slice(scores, slice_topics(known, "kind"), weights="traffic", ci="none")
    >>> found.value("kind=news"), found.average("topic mean").value, found.average("traffic-weighted mean").value
    (0.5, 0.75, 0.875)
    """
    method = IntervalMethod(ci, level, resamples, seed)
    scores = scores_of(scores, None, None, {})
    cut = slicing_given(slicing).over(scores.query_ids)
    weighing = _weights(weights, cut)
    first = next(iter(weighing.values()), None)
    whole = scores.estimates(ci=ci, level=level, resamples=resamples, seed=seed)
    made = [*_rows(ALL, whole, np.ones(len(scores.query_ids), dtype=np.bool_), first, small=False)]
    small = cut.small.tolist()
    order = sorted(range(len(cut)), key=lambda at: bool(small[at]))
    for at in order:
        mask = cut.members[at]
        found = _estimates(scores, mask, method)
        made += _rows(cut.names[at], found, mask, first, small=bool(small[at]))
    values = {(one.slice, one.estimate.run, one.estimate.measure): one.estimate.value for one in made}
    findings, tests = _findings(scores, cut, method, values)
    return SlicedScores(
        scores=scores,
        slicing=cut,
        method=method,
        estimates=tuple(made),
        averages=tuple(_averages(scores, cut, weighing, method, whole)),
        findings=findings,
        tests=tests,
        weights=tuple(weighing),
        warnings=(*scores.warnings, *_notes(cut, weighing), *_levels(scores, weighing)),
    )


def _estimates(scores: Scores, mask: Bools, method: IntervalMethod) -> tuple[Estimate, ...]:
    """Aggregate over the topics of a slice; NaN where it has none."""
    if not mask.any():
        return tuple(
            Estimate(run, str(one), one.entry.aggregate, math.nan, None, 0)
            for run in scores.run_names
            for one in scores.measures
        )
    return scores.over_topics(mask).estimates(
        ci=method.method, level=method.level, resamples=method.resamples, seed=method.seed
    )


def _rows(
    name: str, estimates: Iterable[Estimate], mask: Bools, weights: Floats | None, *, small: bool
) -> Iterator[SliceEstimate]:
    n, share = int(mask.sum()), float(mask.mean())
    weight = math.nan if weights is None else float(np.nansum(weights[mask]) / np.nansum(weights))
    for one in estimates:
        yield SliceEstimate(name, one, n, share, weight, small)


def _weights(given: Any, slicing: Slicing) -> dict[str, Floats]:
    """Give weights by name: (T,) each, NaN where a topic has none."""
    if given is None:
        return {}
    if isinstance(given, str):
        given = [given]
    named: dict[str, Any] = {}
    if isinstance(given, Mapping):
        named = dict(cast("Mapping[str, Any]", given))
    elif isinstance(given, Iterable):
        listed = list(cast("Iterable[Any]", given))
        texts = [one for one in listed if isinstance(one, str)]
        named = {one: one for one in texts} if texts and len(texts) == len(listed) else {"traffic": listed}
    else:
        raise InputError(f"a {type(given).__name__} gives no weights", fix="name an attribute that is a number")
    return {name: _numbers(name, one, slicing) for name, one in named.items()}


def _numbers(name: str, given: Any, slicing: Slicing) -> Floats:
    if isinstance(given, str):
        column = slicing.attributes.column(given)
        if str(column.type) != "double":
            raise InputError(f"the attribute {given} is no number, and cannot weigh topics", fix="name one that is")
        given = [math.nan if value is None else value for value in column.to_pylist()]
    found = np.asarray(given, dtype=np.float64)
    if found.shape != (len(slicing.query_ids),):
        raise InputError(
            f"the weights {name} have the shape {found.shape}",
            fix=f"give one of each of {len(slicing.query_ids)} topics",
        )
    if np.isinf(found).any() or (found < 0).any():
        raise InputError(f"a weight of {name} is negative or infinite", fix="give weights from 0")
    if not np.nansum(found) > 0:
        raise InputError(f"no topic has a weight in {name}", fix="check that both files use the same query ids")
    return found


def _weighted_name(name: str) -> str:
    return "weighted by relevant documents" if name == "relevant" else f"{name}-weighted mean"


def _averages(
    scores: Scores, slicing: Slicing, weighing: dict[str, Floats], method: IntervalMethod, whole: Iterable[Estimate]
) -> Iterator[Average]:
    """Average all topics in every way that makes sense."""
    rows = [
        (run, measure, scores.values[r, m])
        for r, run in enumerate(scores.run_names)
        for m, measure in enumerate(scores.measures)
        if measure.entry.aggregate in _MEANS
    ]
    if not rows:
        return
    for one in whole:
        if one.aggregate in _MEANS:
            yield Average(TOPIC_MEAN, one.run, one.measure, one.value, one.ci, one.topics, float(one.topics))
    table = np.stack([_scale(measure, values) for _, measure, values in rows])
    groups = groups_of(slicing.members[~slicing.small])
    level = None if method.method == "none" else method.level
    if groups is not None and len(np.unique(groups[groups >= 0])) > 1:
        yield from _made(MEAN_OF_SLICES, rows, means_of_groups(table, groups, level))
    linearised = IntervalMethod("none" if level is None else "t", method.level)
    for name, weights in weighing.items():
        yield from _made(_weighted_name(name), rows, weighted_means(table, weights, linearised))


def _made(name: str, rows: list[tuple[str, Measure, Floats]], found: WeightedMeans) -> Iterator[Average]:
    for at, (run, measure, _) in enumerate(rows):
        shown = math.exp if measure.entry.aggregate == "geometric mean" else float
        low, high = found.limits[at].tolist()
        ci = None if math.isnan(low) else (shown(low), shown(high))
        value, effective = float(found.values[at]), float(found.effective[at])
        yield Average(name, run, str(measure), shown(value), ci, int(found.n[at]), effective)


def _scale(measure: Measure, values: Floats) -> Floats:
    """Give the numbers whose mean is asked for: the scores, or their logarithms."""
    return logarithms(values) if measure.entry.aggregate == "geometric mean" else values


def _findings(
    scores: Scores, slicing: Slicing, method: IntervalMethod, values: Mapping[tuple[str, str, str], float]
) -> tuple[tuple[SliceFinding, ...], int]:
    """Test every slice that is not small against the other topics; and say how many tests share alpha."""
    at = np.flatnonzero(~slicing.small).tolist()
    made: list[tuple[str, str, Measure, AgainstRest]] = []
    keys: list[tuple[str, str, bytes]] = []
    for r, run in enumerate(scores.run_names):
        for m, measure in enumerate(scores.measures):
            if measure.entry.aggregate not in _MEANS or not at:
                continue
            numbers = _scale(measure, scores.values[r, m])
            tested = against_rest(numbers, slicing.members[at], level=method.level, seed=method.seed)
            for place, rest in zip(at, tested, strict=True):
                if rest.n < slicing.slices[place].minimum:  # the measure leaves topics out
                    continue
                made.append((slicing.names[place], run, measure, rest))
                keys.append((run, str(measure), _side(slicing.members[place], numbers)))
    family = {key: one[-1].p for key, one in zip(keys, made, strict=True)}
    adjusted = dict(zip(family, adjust(list(family.values())).tolist(), strict=True))
    return (
        tuple(
            _finding(name, run, measure, rest, adjusted[key], method.level, values[name, run, str(measure)])
            for key, (name, run, measure, rest) in zip(keys, made, strict=True)
        ),
        sum(not math.isnan(p) for p in adjusted.values()),
    )


def _side(mask: Bools, numbers: Floats) -> bytes:
    """Name a division of the topics in two, whichever side is asked for: both sides are one test."""
    counted = mask[~np.isnan(numbers)]
    return (counted if counted[:1].all() else ~counted).tobytes()


def _finding(
    name: str, run: str, measure: Measure, rest: AgainstRest, adjusted: float, level: float, value: float
) -> SliceFinding:
    apart = rest.interval is not None and (rest.interval[0] > 0 or rest.interval[1] < 0)
    significant = apart and adjusted <= (1 - level) * (1 + 1e-12)
    higher = measure.properties.higher_is_better
    better = None if not significant or higher is None else (rest.difference > 0) == higher
    return SliceFinding(name, run, str(measure), value, rest, adjusted, significant, better)


def _levels(scores: Scores, weighing: Iterable[str]) -> Iterator[str]:
    """Say which measures count other documents than those that are relevant from grade 1 on."""
    other = [str(one) for one in scores.measures if getattr(one, "rel", 1) != 1]
    if "relevant" in weighing and other:
        yield (
            f"relevant documents are counted from grade 1 on, unless the attribute was made otherwise:"
            f" {', '.join(other)} weighted by them is not that of all documents pooled"
        )


def _notes(slicing: Slicing, weighing: dict[str, Floats]) -> Iterator[str]:
    outside = int((~slicing.members.any(axis=0)).sum())
    if outside:
        yield f"{outside} of {topics_text(len(slicing.query_ids))} are in no slice"
    if empty := [name for name, n in zip(slicing.names, slicing.n.tolist(), strict=True) if not n]:
        yield f"no topic is in the slice {first_few(empty)}"
    counts = dict(zip(slicing.names, slicing.n.tolist(), strict=True))
    if few := {name: n for name, n in counts.items() if few_note(n)}:
        yield f"{first_few(list(few))}: {few_note(max(few.values()))}"
    for name, weights in weighing.items():
        if lacking := int(np.isnan(weights).sum()):
            of = f"{lacking} of {topics_text(len(weights))}"
            yield f"{of} have no {name}: they do not count in the {_weighted_name(name)}"
        effective = float(np.nansum(weights) ** 2 / np.nansum(weights**2))
        if effective < min(_LEAST_EFFECTIVE, len(weights) / 2):
            yield (
                f"the weights {name} lie on few topics: the mean is as sure as that of {topics_text(round(effective))},"
                " and its interval may be too narrow"
            )
