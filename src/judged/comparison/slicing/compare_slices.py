"""`compare_slices`: tests of systems on each slice, and of the variation of their difference between slices."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison import Choices
from judged.comparison.choices import JOINT_TESTS, default_resamples, default_test, describe_least_p, has_too_few_topics
from judged.comparison.compare import build_pair, compare_scores
from judged.comparison.slicing.class_measures import measures_of_classes
from judged.comparison.slicing.comparison import BetweenSlices, SliceComparison, SlicePair
from judged.comparison.slicing.parts import ValuePair, compare_subsets, topic_subsets
from judged.comparison.slicing.topic_slices import as_slicing
from judged.data.run import find_run_name
from judged.errors import InputError
from judged.results.blocks import Note
from judged.results.spelling import canonical_name
from judged.scoring.evaluation.evaluate import select_measures
from judged.stats.correction import adjust
from judged.stats.slice_differences import against_rest, heterogeneity
from judged.stats.weighted import encode_groups

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from judged.comparison import Comparison, MeasureComparison
    from judged.comparison.choices import Family
    from judged.comparison.slicing.topic_slices import Slicing
    from judged.scoring.evaluation import Scores
    from judged.scoring.measures.base import Measure

    Quantities = Mapping[tuple[int, int, int], ValuePair]  # by indices of the measure and of the two runs

_MAX_RESAMPLES = 10_000  # maximum of permutation tests against the other topics and between slices


def compare_slices(
    scores: Scores,
    slicing: Slicing,
    baseline: str | None = None,
    *,
    test: str | None = None,
    correction: str = "holm",
    family: Family = "all",
    alpha: float = 0.05,
    resamples: int | None = None,
    seed: int = 0,
    measures: Any = None,
    margin: float | None = None,
) -> SliceComparison:
    """Compare systems on each slice, over the same topics.

    Parameters
    ----------
    scores
        Result of `evaluate`.
    slicing
        Slices of topics from `slice_topics`, or a table with one attribute of topics. Slices with fewer than
        `min_topics` topics are shown but not tested. Slices with their own measure
        (`Slicing.with_measures`) are compared by this measure only.
    baseline
        The run that all others are compared with. Default with two runs: the first.
    test
        Test of two systems, as in `compare`: ``randomization``, ``t``, ``wilcoxon``, ``sign``, ``bootstrap``, ``bca``,
        ``studentized``, ``bounded``, ``ratio``, ``bayes``. None: ``randomization``, or ``t`` above 2,000 topics.
    correction
        Correction for multiple comparisons: ``holm``, ``bonferroni``, ``hochberg``, ``bh``, ``by`` or ``none``.
    family
        Comparisons that are corrected together: ``all`` slices, pairs, and measures, or those of each ``measure``.
    alpha
        P-values up to this value are significant. Intervals have level 1 - alpha, with the same correction.
    resamples, seed
        Of resampling tests; None: 100,000 resamples, or 10,000 with more than 300 topics. Tests of variation between
        slices use at most 10,000 permutations.
    measures
        Subset of the measures of `scores`. Default: all.
    margin
        Margin of the equivalence test on each slice. None: no such test.

    Returns
    -------
    SliceComparison

    Raises
    ------
    InputError
        If the baseline or a measure is unknown, no measure is a mean, `slicing` has the wrong type, there are three or
        more runs and no baseline, or `test` is a joint test.

    Notes
    -----
    On a slice, the p-value of ``randomization``, ``t``, and ``ratio`` is the larger of the p-values of the test and of
    Hall's test, and the interval is the wider one. With few topics and skewed differences, one test alone has two to
    three times the nominal error rate. With five slices of 12 topics, exponential differences, and true means of 0,
    7% of samples have a significant slice, and 5% with 24 topics (16% and 14% with the randomization test alone). No
    test detects losses so rare that they are absent from the slice: see docs/calibration.md.

    A difference that is significant on one slice only does not show that slices differ. `SliceComparison.between` tests
    this by permuting topics between slices that are disjoint and not small.

    Examples
    --------
    >>> from judged import evaluate, slice_topics
    >>> from judged.comparison.slicing import compare_slices
    >>> ids = [f"q{i}" for i in range(24)]
    >>> scores = evaluate({query: {"d": 1} for query in ids}, {
    ...     "old": {query: ["x", "d"] for query in ids},
    ...     "new": {query: ["d"] if i < 12 else ["x", "d"] for i, query in enumerate(ids)}}, "RR")
    >>> kinds = slice_topics({query: {"kind": "law" if i < 12 else "news"} for i, query in enumerate(ids)}, "kind")
    >>> [(row.slice, row.difference, row.better) for row in scores.compare_slices(kinds).rows]
    [('kind=law', 0.5, 'new'), ('kind=news', 0.0, None)]
    """
    topics = len(scores.query_ids)
    test, resamples = test or default_test(topics), resamples or default_resamples(topics)
    if canonical_name(test, JOINT_TESTS) in JOINT_TESTS:
        raise InputError(f"`test` must compare two systems, got {test}", fix="use randomization, for example")
    table = scores if measures is None else select_measures(scores, measures)
    if baseline is not None:
        baseline = find_run_name(baseline, table.run_names, "to use as the baseline")
    choices = Choices(test, correction, family, alpha, resamples, seed, margin=margin, baseline=baseline)
    if baseline is None and len(table.runs) > 2:
        problem = f"a baseline is required with more than two runs, got {len(table.runs)} runs"
        raise InputError(problem, fix=f"set a baseline, such as {table.run_names[0]}")
    slicing = as_slicing(slicing).over(table.query_ids)
    classes = measures_of_classes(table, slicing)
    table = select_measures(table, list(classes.values())) if classes else table
    overall = compare_scores(table, choices)
    overall = replace(overall, notes=table.notes) if classes else overall  # those of tests over all topics do not apply
    quantities = _quantities(overall)
    if not quantities:
        reasons = ", ".join(map(_aggregate_reason, overall.measures))
        fix = "add a measure that is averaged over topics, such as AP"
        raise InputError(f"no measure is a mean over topics: {reasons}", fix=fix)
    rows, families = _pair_rows(overall, quantities, slicing, classes)
    between = () if classes else tuple(_test_between_slices(overall, quantities, slicing))
    notes = (
        *_overall_notes(overall),
        *_slice_notes(overall, rows, slicing),
        *_few_topics_notes(rows, families, choices),
    )
    return SliceComparison(overall, slicing, tuple(rows), between, families, notes)


def _quantities(overall: Comparison) -> Quantities:
    """Return the measures and pairs that are tested over all topics; slices test the same ones."""
    scores = overall.scores
    quantities: dict[tuple[int, int, int], ValuePair] = {}
    for column, compared in enumerate(overall.measures):
        geometric = compared.measure.entry.aggregate == "geometric mean"
        family = "" if overall.choices.family == "all" else compared.name
        for pair in compared.pairs:
            first, second = scores.run_names.index(pair.first), scores.run_names.index(pair.second)
            max_difference = math.inf if geometric else compared.measure.properties.score_range
            values = scores.values[first, column], scores.values[second, column]
            quantities[column, first, second] = ValuePair(*values, geometric, family, max_difference)
    return quantities


def _pair_rows(
    overall: Comparison, quantities: Quantities, slicing: Slicing, classes: Mapping[int, Measure]
) -> tuple[list[SlicePair], dict[str, int]]:
    """Test the large slices, and return rows, small slices last, and the size of the family of each measure."""
    scores, choices = overall.scores, overall.choices
    # a measure may have no score on some topics, so a slice can be too small for one measure only
    small = {
        (i, j)
        for j, quantity in enumerate(quantities.values())
        for i, slice_ in enumerate(slicing.slices)
        if np.count_nonzero(~np.isnan(quantity.differences[slicing.members[i]])) < slice_.min_topics
    }
    # a class is compared only by its own measure
    other_measures = {
        (i, j)
        for j, (column, *_) in enumerate(quantities)
        for i in range(len(slicing))
        if classes and classes.get(i) != scores.measures[column]
    }
    untested = small | other_measures
    subsets = topic_subsets(len(scores.query_ids), slicing)[1:]
    tests = compare_subsets(list(quantities.values()), subsets, choices, untested)
    sizes: dict[str, int] = {}
    for measure, *_ in quantities:
        in_family = [choices.family == "all" or other == measure for other, *_ in quantities]
        size = sum(in_family[j] and not math.isnan(test.p) for (_, j), test in tests.items())
        sizes[scores.measure_names[measure]] = size
    slice_scores = {i: scores.over_topics(slicing.members[i]) for i in {key[0] for key in tests if key not in untested}}
    rows: list[SlicePair] = []
    for j, ((measure, *runs), quantity) in enumerate(quantities.items()):
        name, (first, second) = scores.measure_names[measure], (scores.run_names[run] for run in runs)
        large = [i for i in range(len(slicing)) if (i, j) not in untested]
        options = {"resamples": min(choices.resamples, _MAX_RESAMPLES), "seed": choices.seed}
        results = against_rest(quantity.differences, slicing.members[large], level=choices.level, **options)
        # the measure of a class is not that of the other topics
        contrasts = dict(zip(large, [None] * len(large) if classes else results, strict=True))
        for i in sorted(range(len(slicing)), key=slicing.small.tolist().__getitem__):
            if (i, j) in other_measures:
                continue
            test, min_topics = tests[i, j], slicing.slices[i].min_topics
            pair = None
            if i in contrasts:
                pair = build_pair(slice_scores[i], measure, (runs[0], runs[1]), test, choices, sizes[name])
            difference = math.exp(test.difference) if quantity.geometric else test.difference
            share = float(slicing.members[i].mean())
            labels = slicing.names[i], name, first, second
            rows.append(SlicePair(*labels, test.n, share, difference, min_topics, pair is None, pair, contrasts.get(i)))
    return rows, sizes


def _test_between_slices(overall: Comparison, quantities: Quantities, slicing: Slicing) -> Iterator[BetweenSlices]:
    """Test whether differences vary between slices that are not small."""
    large, scores, choices = np.flatnonzero(~slicing.small).tolist(), overall.scores, overall.choices
    if len(large) < 2 or (groups := encode_groups(slicing.members[large])) is None:
        return
    options = {"resamples": min(choices.resamples, _MAX_RESAMPLES), "seed": choices.seed}
    tests = [heterogeneity(quantity.differences, groups, **options) for quantity in quantities.values()]
    adjusted = adjust([math.nan if test.insufficiency else test.p for test in tests]).tolist()
    for (measure, *runs), test, p in zip(quantities, tests, adjusted, strict=True):
        first, second = (scores.run_names[run] for run in runs)
        names = tuple(slicing.names[large[group]] for group in test.groups)
        yield BetweenSlices(scores.measure_names[measure], first, second, names, test, p, choices.alpha)


def _aggregate_reason(compared: MeasureComparison) -> str:
    return f"{compared.name} is a {compared.measure.entry.aggregate} over the topics"


def _overall_notes(overall: Comparison) -> Iterator[Note]:
    # measures without tests are not part of the result by slice
    yield from (note for note in overall.notes if note.rule != "not-tested")
    for compared in overall.measures:
        if compared.untested:
            yield Note("not-tested", f"{_aggregate_reason(compared)}, so it is not compared by slice")


def _slice_notes(overall: Comparison, rows: Sequence[SlicePair], slicing: Slicing) -> Iterator[Note]:
    yield from slicing.notes()
    if not slicing.disjoint:
        text = "slices overlap, so their tests share topics, and the variation between slices is not tested"
        yield Note("slices-overlap", text)
    for compared in () if slicing.class_measures else overall.measures:
        for pair in compared.pairs:
            names = pair.first, pair.second
            pair_rows = [row for row in rows if (row.measure, row.first, row.second) == (compared.name, *names)]
            yield from _reversal_notes(overall, compared, *names, pair_rows)


def _few_topics_notes(rows: Sequence[SlicePair], families: dict[str, int], choices: Choices) -> Iterator[Note]:
    """Yield a note on each slice with too few topics for any significant difference."""
    noted_slices: set[str] = set()
    for row in rows:
        family = families.get(row.measure, 1)
        if row.pair is not None and row.slice not in noted_slices and has_too_few_topics(row.pair, family, choices):
            noted_slices.add(row.slice)
            yield Note("few-topics", describe_least_p(row.pair.result, family, choices), row.slice, -row.n, of="slices")


def _reversal_notes(
    overall: Comparison, compared: MeasureComparison, first: str, second: str, rows: Sequence[SlicePair]
) -> Iterator[Note]:
    """Yield notes on slices that contradict the comparison over all topics."""
    subject = f"{compared.name} of {first} and {second}"
    names = overall.scores.run_names
    means = [compared.estimates[names.index(run)].value for run in (first, second)]
    # geometric means are compared by ratios: no difference is 1, not 0
    neutral = 1.0 if compared.measure.entry.aggregate == "geometric mean" else 0.0
    signs = {_sign(row.difference - neutral) for row in rows if row.n}
    overall_sign = _sign(means[1] - means[0])
    if overall_sign and signs == {-overall_sign}:
        higher, lower = (second, first) if overall_sign > 0 else (first, second)
        text = (
            f"Simpson's paradox: {higher} has the higher mean over all topics, but {lower} has the higher mean on"
            f" every slice, because the means of the two systems are over different topics, or because some topics"
            f" are in no slice"
        )
        yield Note("simpson", text, subject, of="pairs")
    slice_by_winner = {row.better: row.slice for row in reversed(rows) if row.better is not None}
    if len(slice_by_winner) > 1:
        text = (
            f"the overall difference hides opposite differences: {first} is better on"
            f" {slice_by_winner[first]}, and {second} is better on"
        )
        yield Note("opposite-slices", f"{text} {slice_by_winner[second]}", subject, of="pairs")


def _sign(value: float) -> int:
    return 0 if math.isnan(value) or abs(value) < 1e-12 else 1 if value > 0 else -1
