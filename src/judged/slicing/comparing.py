"""`compare_slices`: whether systems differ on each slice, and whether their difference varies between slices."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison import Choices
from judged.comparison.choices import MANY
from judged.comparison.comparing import compared
from judged.comparison.notes import least_p_text, short_of_topics
from judged.comparison.testing import differences, pair_of
from judged.errors import InputError
from judged.evaluation.given import scores_of
from judged.measures import logarithms
from judged.notes import Note, lines
from judged.slicing.compared import BetweenSlices, SliceComparison, SlicePair
from judged.slicing.slices import slicing_given
from judged.stats.correction import adjust, corrected_family
from judged.stats.heterogeneity import against_rest, heterogeneity
from judged.stats.pairing import topics_text
from judged.stats.skewness import allowing_for_skew
from judged.stats.weighted import groups_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from judged._types import Floats
    from judged.comparison import Comparison, Pair
    from judged.comparison.choices import Family
    from judged.evaluation import Scores
    from judged.slicing.slices import Slicing
    from judged.stats.heterogeneity import AgainstRest
    from judged.stats.results import Difference


@dataclass(frozen=True, eq=False)
class _Asked:
    """One measure and pair, with the difference on each topic: (T,), NaN where there is none."""

    at: int
    which: tuple[int, int]
    geometric: bool
    gaps: Floats


def compare_slices(
    scores: Any,
    slicing: Slicing,
    baseline: str | None = None,
    *,
    test: str = "randomisation",
    correction: str = "holm",
    family: Family = "all",
    alpha: float = 0.05,
    resamples: int = 100_000,
    seed: int = 0,
    measures: Any = None,
    margin: float | None = None,
) -> SliceComparison:
    """Compare systems slice by slice, over the same topics.

    Parameters
    ----------
    scores
        What `evaluate` returned, or a file that `Scores.save` wrote.
    slicing
        Slices of topics, as `slice_topics` makes them. Those with fewer topics than they are judged by are shown, and
        not tested.
    baseline
        The run that all others are compared with. Of two runs it is the first, if none is named.
    test
        Of two systems, as for `compare`: ``randomisation``, ``t``, ``wilcoxon``, ``sign``, ``bootstrap``, ``bca``,
        ``studentised``, ``ratio``, ``bayes``.
    correction
        For the number of comparisons: ``holm``, ``bonferroni``, ``hochberg``, ``bh``, ``by`` or ``none``.
    family
        What is corrected together: ``all`` slices, pairs and measures, or those of each ``measure``.
    alpha
        A p-value up to here is significant. Intervals have the level 1 - alpha, corrected as p is.
    resamples, seed
        Of tests by resampling. Whether differences vary between slices is tested by as many permutations, at most
        10,000.
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
        If there is no such baseline or measure, no measure that is a mean, what is given are no slices, there are
        three runs or more and no baseline, or a test of many systems is asked for.

    Notes
    -----
    On a slice, the p-value of ``randomisation``, ``t`` and ``ratio`` is the larger of the test's own and that of Hall's
    test, and the interval the wider one: of few topics that lie far to one side, one test alone claims
    a difference where there is none two to three times as often as it should. Five slices of 12 topics with
    exponential differences and true means of 0 have some finding in 7 % of samples, and of 24 topics in 5 % (16 and
    14 % with the randomisation test alone). Losses so rare that a slice has none of them deceive any test: see
    docs/calibration.md.

    A difference on one slice and none on another is no sign that they differ: that is a test of its own
    (`SliceComparison.between`). It permutes which topic is in which slice, for slices that do not overlap and are not
    small.

    Examples
    --------
    >>> from judged import evaluate
    >>> from judged.slicing.slices import slice_topics
    >>> ids = [f"q{at}" for at in range(24)]
    >>> scores = evaluate({query: {"d": 1} for query in ids}, {
    ...     "old": {query: ["x", "d"] for query in ids},
    ...     "new": {query: ["d"] if at < 12 else ["x", "d"] for at, query in enumerate(ids)}}, "RR")
    >>> kinds = slice_topics({query: {"kind": "law" if at < 12 else "news"} for at, query in enumerate(ids)}, "kind")
    >>> [(row.slice, row.difference, row.better) for row in compare_slices(scores, kinds).rows]
    [('kind=law', 0.5, 'new'), ('kind=news', 0.0, None)]
    """
    if test.replace("randomized-", "randomised-") in MANY:
        raise InputError(f"{test} compares all systems at once, not two on a slice", fix="take randomisation, say")
    choices = Choices(test, correction, family, alpha, resamples, seed, margin=margin, baseline=baseline)
    table = scores_of(scores, None, measures, {})
    if baseline is None and len(table.runs) > 2:
        raise InputError(
            f"{len(table.runs)} runs make {math.comb(len(table.runs), 2)} pairs on each slice",
            fix=f"name a baseline, such as {table.run_names[0]}",
        )
    overall = compared(table, choices)
    cut = slicing_given(slicing).over(table.query_ids)
    asked = list(_asked(overall))
    if not asked:
        why = ", ".join(reason.split(":")[0] for reason in _untested(overall))
        raise InputError(
            f"there is nothing to compare by slice: {why}", fix="take a measure that is a mean, such as AP"
        )
    order = sorted(range(len(cut)), key=lambda at: bool(cut.small[at]))
    rows, families = _rows(table, asked, cut, order, choices)
    between = tuple(_between(asked, table, cut, choices))
    return SliceComparison(
        overall=overall,
        slicing=cut,
        rows=tuple(rows),
        between=between,
        choices=choices,
        families=families,
        warnings=(*_overall_notes(overall), *_notes(overall, rows, cut), *_short(rows, families, choices)),
    )


def _untested(overall: Comparison) -> tuple[str, ...]:
    return tuple(one.untested for one in overall.measures if one.untested)


def _overall_notes(overall: Comparison) -> Iterator[str]:
    """Give the warnings of the comparison over all topics; what it does not test is not shown by slice."""
    untested = _untested(overall)
    for text in overall.warnings:
        yield f"{text.split(':')[0]}: it is not compared by slice" if text in untested else text


def _asked(overall: Comparison) -> Iterator[_Asked]:
    """Give the measures and pairs that are tested over all topics: the same are on each slice."""
    scores = overall.scores
    for at, one in enumerate(overall.measures):
        geometric = one.measure.entry.aggregate == "geometric mean"
        for pair in one.pairs:
            which = scores.run_names.index(pair.first), scores.run_names.index(pair.second)
            first, second = (scores.values[run, at] for run in which)
            gaps = logarithms(second) - logarithms(first) if geometric else second - first
            yield _Asked(at, which, geometric, gaps)


def _rows(
    scores: Scores, asked: list[_Asked], slicing: Slicing, order: list[int], choices: Choices
) -> tuple[list[SlicePair], dict[str, int]]:
    """Test every slice that is large enough, and correct all p-values of a family together."""
    expected = len(asked) * int((~slicing.small).sum())
    found: dict[tuple[int, int], Difference] = {}
    for g in order:
        found |= _tested(scores, asked, slicing, g, choices, 1 - choices.alpha_of_one(expected))

    def again(keys: list[tuple[int, int]], level: float) -> list[Difference]:
        made: dict[tuple[int, int], Difference] = {}
        for g in {g for _, g in keys}:
            made |= _tested(scores, asked, slicing, g, choices, level, {place for place, at in keys if at == g})
        return [made[key] for key in keys]

    corrected, sizes = _corrected(found, asked, choices, again)
    parts = {g: scores.over_topics(slicing.members[g]) for g in {g for _, g in found}}
    made: list[SlicePair] = []
    for place, one in enumerate(asked):
        rests = _rests(one, slicing, [g for at, g in found if at == place], choices)
        for g in order:
            pair, test = None, corrected.get((place, g))
            if test is not None:
                pair = pair_of(parts[g], one.at, one.which, test, choices, sizes[one.at])
            made.append(_row(scores, one, slicing, g, pair, rests.get(g)))
    return made, {scores.measure_names[at]: size for at, size in sizes.items()}


def _tested(
    scores: Scores,
    asked: list[_Asked],
    slicing: Slicing,
    g: int,
    choices: Choices,
    level: float,
    wanted: set[int] | None = None,
) -> dict[tuple[int, int], Difference]:
    """Test every measure and pair, or the wanted ones, on one slice with enough topics; they share their resamples."""
    mask, measures = slicing.members[g], len(scores.measures)
    rows = scores.values[:, :, mask].reshape(len(scores.runs) * measures, int(mask.sum()))
    found: dict[tuple[int, int], Difference] = {}
    for geometric in (False, True):
        places = [
            place
            for place, one in enumerate(asked)
            if one.geometric == geometric
            and (wanted is None or place in wanted)
            and np.count_nonzero(~np.isnan(one.gaps[mask])) >= slicing.slices[g].minimum
        ]
        if places:
            pairs = [
                (asked[at].which[0] * measures + asked[at].at, asked[at].which[1] * measures + asked[at].at)
                for at in places
            ]
            tests = differences(rows, pairs, choices, geometric=geometric, level=level).found
            gaps = np.stack([asked[at].gaps[mask] for at in places])
            tests = allowing_for_skew(gaps, tests)
            found |= {(place, g): test for place, test in zip(places, tests, strict=True)}
    return found


def _rests(one: _Asked, slicing: Slicing, tested: list[int], choices: Choices) -> dict[int, AgainstRest]:
    """Compare the difference on each slice with that on the other topics."""
    how = {"resamples": _draws(choices), "seed": choices.seed}
    found = against_rest(one.gaps, slicing.members[tested], level=choices.level, **how)
    return dict(zip(tested, found, strict=True))


def _corrected(
    found: dict[tuple[int, int], Difference],
    asked: list[_Asked],
    choices: Choices,
    again: Callable[[list[tuple[int, int]], float], list[Difference]],
) -> tuple[dict[tuple[int, int], Difference], dict[int, int]]:
    """Correct over slices, pairs and measures, or over slices and pairs of each measure: p-values and intervals."""
    measures = sorted({one.at for one in asked})
    parts = [measures] if choices.family == "all" else [[at] for at in measures]
    made: dict[tuple[int, int], Difference] = {}
    sizes: dict[int, int] = {}
    for part in parts:
        keys = [key for key in found if asked[key[0]].at in part]
        sizes |= dict.fromkeys(part, sum(not math.isnan(found[key].p) for key in keys))

        def anew(places: list[int], level: float, keys: list[tuple[int, int]] = keys) -> list[Difference]:
            return again([keys[place] for place in places], level)

        corrected = corrected_family([found[key] for key in keys], choices.correction, choices.alpha, anew)
        made |= dict(zip(keys, corrected, strict=True))
    return made, sizes


def _row(
    scores: Scores, one: _Asked, slicing: Slicing, g: int, pair: Pair | None, rest: AgainstRest | None
) -> SlicePair:
    gaps = one.gaps[slicing.members[g]]
    n = int((~np.isnan(gaps)).sum())
    difference = pair.found.difference if pair is not None else float(np.nanmean(gaps)) if n else math.nan
    return SlicePair(
        slice=slicing.names[g],
        measure=scores.measure_names[one.at],
        first=scores.run_names[one.which[0]],
        second=scores.run_names[one.which[1]],
        n=n,
        share=float(slicing.members[g].mean()),
        difference=math.exp(difference) if one.geometric else difference,
        minimum=slicing.slices[g].minimum,
        small=pair is None,
        pair=pair,
        rest=rest,
    )


def _draws(choices: Choices) -> int:
    return min(choices.resamples, 10_000)


def _between(asked: list[_Asked], scores: Scores, slicing: Slicing, choices: Choices) -> Iterator[BetweenSlices]:
    """Test whether each difference varies between the slices that are not small."""
    at = np.flatnonzero(~slicing.small).tolist()
    if len(at) < 2 or (groups := groups_of(slicing.members[at])) is None:
        return
    found = [heterogeneity(one.gaps, groups, resamples=_draws(choices), seed=choices.seed) for one in asked]
    adjusted = adjust([one.p for one in found]).tolist()
    for one, test, p in zip(asked, found, adjusted, strict=True):
        first, second = (scores.run_names[run] for run in one.which)
        names = tuple(slicing.names[at[group]] for group in test.groups)
        yield BetweenSlices(scores.measure_names[one.at], first, second, names, test, p, choices.alpha)


def _notes(overall: Comparison, rows: list[SlicePair], slicing: Slicing) -> Iterator[str]:
    outside = int((~slicing.members.any(axis=0)).sum())
    if outside:
        yield f"{outside} of {topics_text(len(slicing.query_ids))} are in no slice"
    if not slicing.disjoint:
        yield "slices overlap: their tests share topics, and whether differences vary between slices is not tested"
    by_pair: defaultdict[tuple[str, str, str], list[SlicePair]] = defaultdict(list)
    for row in rows:
        by_pair[row.measure, row.first, row.second].append(row)
    pairs = [(one.name, pair.first, pair.second) for one in overall.measures for pair in one.pairs]
    yield from lines((note for pair in pairs for note in _reversals(overall, *pair, by_pair[pair])), "pairs")


def _short(rows: list[SlicePair], families: dict[str, int], choices: Choices) -> tuple[str, ...]:
    """Warn of slices with so few topics that no difference there could be significant."""
    short: dict[str, Note] = {}
    for row in rows:
        family = families.get(row.measure, 1)
        if row.pair is not None and row.slice not in short and short_of_topics(row.pair, family, choices):
            text = least_p_text(row.pair.found, family, choices)
            short[row.slice] = Note("few-topics", text, row.slice, -row.n)
    return lines(short.values(), "slices")


def _reversals(overall: Comparison, measure: str, first: str, second: str, rows: list[SlicePair]) -> Iterator[Note]:
    """Warn where all topics together say something else than the slices do."""
    subject = f"{measure} of {first} and {second}"
    found = overall.measure(measure)
    names = overall.scores.run_names
    means = [found.estimates[names.index(run)].value for run in (first, second)]
    neutral = 1.0 if found.measure.entry.aggregate == "geometric mean" else 0.0
    signs = {_sign(row.difference - neutral) for row in rows if row.n}
    whole = _sign(means[1] - means[0])
    if whole and signs == {-whole}:
        text = (
            f"Simpson's paradox: over all topics {second if whole > 0 else first} has the higher mean, on every slice"
            f" {first if whole > 0 else second} has; the systems' means are over different topics, or not every topic"
            " is in a slice"
        )
        yield Note("simpson", text, subject)
    better = {row.better: row.slice for row in reversed(rows) if row.better is not None}
    if len(better) > 1:
        text = f"the overall difference hides opposite ones: {first} is better on {better[first]}, {second} on"
        yield Note("opposite-slices", f"{text} {better[second]}", subject)


def _sign(value: float) -> int:
    return 0 if math.isnan(value) or abs(value) < 1e-12 else 1 if value > 0 else -1
