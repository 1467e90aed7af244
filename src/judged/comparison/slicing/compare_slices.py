"""`compare_slices`: whether systems differ on each slice, and whether their difference varies between slices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison import Choices
from judged.comparison.choices import MANY, default_resamples, default_test, least_p_text, short_of_topics
from judged.comparison.compare import compared, pair_of
from judged.comparison.slicing.comparison import BetweenSlices, SliceComparison, SlicePair
from judged.comparison.slicing.parts import Quantity, everywhere, tests_of
from judged.comparison.slicing.topic_slices import slicing_given
from judged.data.run import run_named
from judged.errors import InputError
from judged.results.blocks import Note
from judged.results.spelling import spelled
from judged.scoring.evaluation.evaluate import chosen_measures
from judged.stats.correction import adjust
from judged.stats.slice_differences import against_rest, heterogeneity
from judged.stats.weighted import groups_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from judged.comparison import Comparison, MeasureComparison
    from judged.comparison.choices import Family
    from judged.comparison.slicing.topic_slices import Slicing
    from judged.scoring.evaluation import Scores

    Quantities = Mapping[tuple[int, int, int], Quantity]  # by the places of a measure, and of the two runs

_MOST_DRAWS = 10_000  # permutations of tests against the other topics, and between slices


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
    """Compare systems slice by slice, over the same topics.

    Parameters
    ----------
    scores
        What `evaluate` returned.
    slicing
        Slices of topics, as `slice_topics` makes them, or a table with one attribute of topics. Those with fewer topics
        than they are judged by are shown, and not tested.
    baseline
        The run that all others are compared with. Of two runs it is the first, if none is named.
    test
        Of two systems, as for `compare`: ``randomisation``, ``t``, ``wilcoxon``, ``sign``, ``bootstrap``, ``bca``,
        ``studentised``, ``bounded``, ``ratio``, ``bayes``. None: ``randomisation``, with more than 2,000 topics ``t``.
    correction
        For the number of comparisons: ``holm``, ``bonferroni``, ``hochberg``, ``bh``, ``by`` or ``none``.
    family
        What is corrected together: ``all`` slices, pairs and measures, or those of each ``measure``.
    alpha
        A p-value up to here is significant. Intervals have the level 1 - alpha, corrected as p is.
    resamples, seed
        Of tests by resampling; None: 100,000 resamples, with more than 300 topics 10,000. Whether differences vary
        between slices is tested by as many permutations, at most 10,000.
    measures
        Some of the measures of the scores; all, if left out.
    margin
        Say whether systems are equivalent on a slice: surely closer than this.

    Returns
    -------
    SliceComparison

    Raises
    ------
    InputError
        If there is no such baseline or measure, no measure that is a mean, what is given are not slices, there are
        three runs or more and no baseline, or a test of many systems is asked for.

    Notes
    -----
    On a slice, the p-value of ``randomisation``, ``t`` and ``ratio`` is the larger of the test's own and that of Hall's
    test, and the interval the wider one: of few topics that lie far to one side, one test alone claims
    a difference where there is none two to three times as often as it should. Five slices of 12 topics with
    exponential differences and true means of 0 have some finding in 7 % of samples, and of 24 topics in 5 % (16 and
    14 % with the randomisation test alone). Losses so rare that a slice has none of them deceive any test: see
    docs/calibration.md.

    A difference on one slice and none on another is not a sign that they differ: that is a test of its own
    (`SliceComparison.between`). It permutes which topic is in which slice, for slices that do not overlap and are not
    small.

    Examples
    --------
    >>> from judged import evaluate, slice_topics
    >>> from judged.comparison.slicing import compare_slices
    >>> ids = [f"q{at}" for at in range(24)]
    >>> scores = evaluate({query: {"d": 1} for query in ids}, {
    ...     "old": {query: ["x", "d"] for query in ids},
    ...     "new": {query: ["d"] if at < 12 else ["x", "d"] for at, query in enumerate(ids)}}, "RR")
    >>> kinds = slice_topics({query: {"kind": "law" if at < 12 else "news"} for at, query in enumerate(ids)}, "kind")
    >>> [(row.slice, row.difference, row.better) for row in scores.compare_slices(kinds).rows]
    [('kind=law', 0.5, 'new'), ('kind=news', 0.0, None)]
    """
    topics = len(scores.query_ids)
    test, resamples = test or default_test(topics), resamples or default_resamples(topics)
    if spelled(test, MANY) in MANY:
        raise InputError(f"{test} compares all systems at once, not two on a slice", fix="take randomisation, say")
    table = scores if measures is None else chosen_measures(scores, measures)
    if baseline is not None:
        baseline = run_named(baseline, table.run_names, "to use as the baseline")
    choices = Choices(test, correction, family, alpha, resamples, seed, margin=margin, baseline=baseline)
    if baseline is None and len(table.runs) > 2:
        raise InputError(
            f"{len(table.runs)} runs make {math.comb(len(table.runs), 2)} pairs on each slice",
            fix=f"name a baseline, such as {table.run_names[0]}",
        )
    overall = compared(table, choices)
    cut = slicing_given(slicing).over(table.query_ids)
    quantities = _quantities(overall)
    if not quantities:
        why = ", ".join(map(_why_not, overall.measures))
        raise InputError(
            f"there is nothing to compare by slice: {why}", fix="take a measure that is a mean, such as AP"
        )
    rows, families = _rows(overall, quantities, cut)
    notes = (*_notes_of_all(overall), *_notes(overall, rows, cut), *_short(rows, families, choices))
    return SliceComparison(overall, cut, tuple(rows), tuple(_between(overall, quantities, cut)), families, notes)


def _quantities(overall: Comparison) -> Quantities:
    """Give the measures and pairs that are tested over all topics: the same are on each slice."""
    scores = overall.scores
    quantities: dict[tuple[int, int, int], Quantity] = {}
    for at, by_measure in enumerate(overall.measures):
        geometric = by_measure.measure.entry.aggregate == "geometric mean"
        family = "" if overall.choices.family == "all" else by_measure.name
        for pair in by_measure.pairs:
            one, two = scores.run_names.index(pair.first), scores.run_names.index(pair.second)
            reach = math.inf if geometric else by_measure.measure.properties.reach
            quantities[at, one, two] = Quantity(
                scores.values[one, at], scores.values[two, at], geometric, family, reach
            )
    return quantities


def _rows(overall: Comparison, quantities: Quantities, slicing: Slicing) -> tuple[list[SlicePair], dict[str, int]]:
    """Test every slice that is large enough, small ones last; and tell how many tests of a measure share alpha."""
    scores, choices = overall.scores, overall.choices
    small = {
        (at, place)
        for place, quantity in enumerate(quantities.values())
        for at, part in enumerate(slicing.slices)
        if np.count_nonzero(~np.isnan(quantity.gaps[slicing.members[at]])) < part.min_topics
    }
    where = everywhere(len(scores.query_ids), slicing)[1:]
    tests = tests_of(list(quantities.values()), where, choices, small)
    sizes: dict[str, int] = {}
    for measure, *_ in quantities:
        alike = [choices.family == "all" or other == measure for other, *_ in quantities]
        sizes[scores.measure_names[measure]] = sum(
            alike[place] and not math.isnan(test.p) for (_, place), test in tests.items()
        )
    parts = {at: scores.over_topics(slicing.members[at]) for at in {key[0] for key in tests if key not in small}}
    rows: list[SlicePair] = []
    for place, ((measure, *runs), quantity) in enumerate(quantities.items()):
        name, (first, second) = scores.measure_names[measure], (scores.run_names[run] for run in runs)
        large = [at for at in range(len(slicing)) if (at, place) not in small]
        how = {"resamples": min(choices.resamples, _MOST_DRAWS), "seed": choices.seed}
        against = against_rest(quantity.gaps, slicing.members[large], level=choices.level, **how)
        rests = dict(zip(large, against, strict=True))
        for at in sorted(range(len(slicing)), key=slicing.small.tolist().__getitem__):
            test, min_topics = tests[at, place], slicing.slices[at].min_topics
            pair = pair_of(parts[at], measure, (runs[0], runs[1]), test, choices, sizes[name]) if at in rests else None
            difference = math.exp(test.difference) if quantity.geometric else test.difference
            share = float(slicing.members[at].mean())
            named = slicing.names[at], name, first, second
            rows.append(SlicePair(*named, test.n, share, difference, min_topics, pair is None, pair, rests.get(at)))
    return rows, sizes


def _between(overall: Comparison, quantities: Quantities, slicing: Slicing) -> Iterator[BetweenSlices]:
    """Test whether each difference varies between the slices that are not small."""
    large, scores, choices = np.flatnonzero(~slicing.small).tolist(), overall.scores, overall.choices
    if len(large) < 2 or (groups := groups_of(slicing.members[large])) is None:
        return
    how = {"resamples": min(choices.resamples, _MOST_DRAWS), "seed": choices.seed}
    tests = [heterogeneity(quantity.gaps, groups, **how) for quantity in quantities.values()]
    adjusted = adjust([math.nan if test.insufficiency else test.p for test in tests]).tolist()
    for (measure, *runs), test, p in zip(quantities, tests, adjusted, strict=True):
        first, second = (scores.run_names[run] for run in runs)
        names = tuple(slicing.names[large[group]] for group in test.groups)
        yield BetweenSlices(scores.measure_names[measure], first, second, names, test, p, choices.alpha)


def _why_not(by_measure: MeasureComparison) -> str:
    return f"{by_measure.name} is a {by_measure.measure.entry.aggregate} over the topics"


def _notes_of_all(overall: Comparison) -> Iterator[Note]:
    """Give the notes of the comparison over all topics; what it does not test is not shown by slice."""
    yield from (note for note in overall.notes if note.rule != "not-tested")
    for by_measure in overall.measures:
        if by_measure.untested:
            yield Note("not-tested", f"{_why_not(by_measure)}: it is not compared by slice")


def _notes(overall: Comparison, rows: Sequence[SlicePair], slicing: Slicing) -> Iterator[Note]:
    yield from slicing.notes()
    if not slicing.disjoint:
        text = "slices overlap: their tests share topics, and whether differences vary between slices is not tested"
        yield Note("slices-overlap", text)
    for by_measure in overall.measures:
        for pair in by_measure.pairs:
            names = pair.first, pair.second
            same = [row for row in rows if (row.measure, row.first, row.second) == (by_measure.name, *names)]
            yield from _reversals(overall, by_measure, *names, same)


def _short(rows: Sequence[SlicePair], families: dict[str, int], choices: Choices) -> Iterator[Note]:
    """Warn of slices with so few topics that no difference there could be significant."""
    said: set[str] = set()
    for row in rows:
        family = families.get(row.measure, 1)
        if row.pair is not None and row.slice not in said and short_of_topics(row.pair, family, choices):
            said.add(row.slice)
            yield Note("few-topics", least_p_text(row.pair.result, family, choices), row.slice, -row.n, of="slices")


def _reversals(
    overall: Comparison, by_measure: MeasureComparison, first: str, second: str, rows: Sequence[SlicePair]
) -> Iterator[Note]:
    """Warn where all topics together say something else than the slices do."""
    subject = f"{by_measure.name} of {first} and {second}"
    names = overall.scores.run_names
    means = [by_measure.estimates[names.index(run)].value for run in (first, second)]
    neutral = 1.0 if by_measure.measure.entry.aggregate == "geometric mean" else 0.0
    signs = {_sign(row.difference - neutral) for row in rows if row.n}
    whole = _sign(means[1] - means[0])
    if whole and signs == {-whole}:
        text = (
            f"Simpson's paradox: over all topics {second if whole > 0 else first} has the higher mean, on every slice"
            f" {first if whole > 0 else second} has; the systems' means are over different topics, or not every topic"
            " is in a slice"
        )
        yield Note("simpson", text, subject, of="pairs")
    better = {row.better: row.slice for row in reversed(rows) if row.better is not None}
    if len(better) > 1:
        text = f"the overall difference hides opposite ones: {first} is better on {better[first]}, {second} on"
        yield Note("opposite-slices", f"{text} {better[second]}", subject, of="pairs")


def _sign(value: float) -> int:
    return 0 if math.isnan(value) or abs(value) < 1e-12 else 1 if value > 0 else -1
