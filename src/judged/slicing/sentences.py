"""What may be concluded of slices, and what not, in plain words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from judged.comparison.claims import of_means, shown
from judged.comparison.marks import TIMES
from judged.comparison.sentences import name_of_correction
from judged.decimals import decimal
from judged.slicing.slice_scores import MEAN_OF_SLICES, TOPIC_MEAN
from judged.stats.pairing import topics_text
from judged.stats.results import p_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.slicing.compared_slices import BetweenSlices, ComparedSlices, SlicePair
    from judged.slicing.slice_scores import SliceFinding, SliceTable
    from judged.slicing.slices import Slicing

_SHOWN = 6  # slices named in one sentence
_RUNS = 3  # of more, only the first and the count are told
_PAIRS = 2  # of more, what is not shown is told of all together


def sentences_of_scores(found: SliceTable) -> tuple[str, ...]:
    """Say which slices differ from the other topics, and how the ways to average differ."""
    made = [*_differing(found), *_averages(found), _few(found.slicing)]
    return tuple(one for one in made if one)


def _differing(found: SliceTable) -> Iterator[str]:
    """Name the worst and the best slice of each run and measure, where that is more than luck."""
    if not found.tests:
        return
    apart = [one for one in found.findings if one.significant]
    runs = found.scores.run_names[:_RUNS]
    for run in runs:
        for measure in found.scores.measures:
            mine = [one for one in apart if (one.run, one.measure) == (run, str(measure))]
            lower = measure.properties.higher_is_better is False
            mine.sort(key=lambda one: -one.value if lower else one.value)
            yield from _ends(mine, found)
    if len(found.scores.runs) > _RUNS and apart:
        count = len({one.run for one in apart})
        of = f"{count} of the {len(found.scores.runs)} runs"
        yield f"For {of}, some slice differs from the other topics: the tables mark them."
    if not apart:
        tests = "one test" if found.tests == 1 else f"{found.tests} tests, Holm"
        yield (f"No slice is shown to differ from the other topics ({tests}). That does not make them alike.")


def _ends(mine: Sequence[SliceFinding], found: SliceTable) -> Iterator[str]:
    """Say of the worst and the best that they are; two slices that make up all topics are told once."""
    worse = [one for one in mine if one.better is False]
    better = [one for one in mine if one.better is True]
    if worse:
        yield _standing(worse[0], "worse", "worst", found)
    if better and not (worse and _opposite(worse[0], better[-1], found)):
        yield _standing(better[-1], "better", "best", found)
    unsided = [one for one in mine if one.better is None]
    for one in unsided:
        yield _standing(one, "higher" if one.rest.difference > 0 else "lower", "", found)


def _opposite(one: SliceFinding, other: SliceFinding, found: SliceTable) -> bool:
    """Whether two slices make up all topics, those without a score aside: one test, told once."""
    inside = [found.slicing.mask(name) for name in (one.slice, other.slice)]
    whole = one.rest.n + one.rest.n_rest
    return not (inside[0] & inside[1]).any() and one.rest.n + other.rest.n == whole


def _standing(one: SliceFinding, word: str, end: str, found: SliceTable) -> str:
    ranked = [
        row.estimate.value
        for row in found.estimates[len(found.scores.runs) * len(found.scores.measures) :]
        if not row.small and (row.estimate.run, row.estimate.measure) == (one.run, one.measure)
    ]
    extreme = len(ranked) > 2 and one.value == (min(ranked) if one.rest.difference < 0 else max(ranked))
    which = f", the {end} slice," if end and extreme else ""
    kinds = {str(measure): measure.entry.aggregate for measure in found.scores.measures}
    gap, low, high = (
        f"{TIMES}{decimal(math.exp(value), 3)}" if kinds[one.measure] == "geometric mean" else decimal(value, 3, "+")
        for value in (one.rest.difference, *(one.rest.interval or (math.nan, math.nan)))
    )
    limits = f"{found.method.level:.0%} interval {low} to {high}"
    after = f" after Holm over {found.tests} tests" if found.tests > 1 else ""
    return (
        f"{one.run}: `{one.slice}`{which} is {word} than the other topics in {one.measure}: {decimal(one.value, 3)}"
        f" over"
        f" {topics_text(one.rest.n)}, {gap} against the other {one.rest.n_rest}"
        f" ({limits}), p {p_text(one.adjusted, 1 - found.method.level)}{after}."
    )


def _averages(found: SliceTable) -> Iterator[str]:
    """Put the ways to average of the first run and measure beside one another."""
    if not found.averages:
        return
    first = found.averages[0]
    mine = [one for one in found.averages if (one.run, one.measure) == (first.run, first.measure)]
    ways = [one for one in mine if not math.isnan(one.value)]  # a slice may lack scores
    if len({decimal(one.value) for one in ways}) > 1:
        large = int((~found.slicing.small).sum())
        several = {MEAN_OF_SLICES: f"mean of the {large} slices that have enough topics"}
        shown = ", ".join(f"{several.get(one.name, one.name)} {decimal(one.value)}" for one in ways)
        others = "" if len(found.scores.runs) * len(found.scores.measures) == 1 else f" ({first.run}, {first.measure})"
        yield f"Each average answers another question{others}: {shown}."
    if not found.slicing.disjoint:
        yield f"Slices overlap: there is no {MEAN_OF_SLICES}, only the {TOPIC_MEAN}."


def _few(slicing: Slicing) -> str:
    small = [
        f"`{one.name}` {n} of {one.minimum}"
        for one, n, few in zip(slicing.slices, slicing.n.tolist(), slicing.small.tolist(), strict=True)
        if few
    ]
    if not small:
        return ""
    what = "slice has" if len(small) == 1 else "slices have"
    them = "it is" if len(small) == 1 else "they are"
    return f"{len(small)} {what} fewer topics than needed ({_some(small)}): {them} shown, and not tested."


def sentences_of_comparison(found: ComparedSlices) -> tuple[str, ...]:
    """Say of each measure and pair where which system is better, and whether the difference varies."""
    few = _few(found.slicing)
    if not any(row.pair is not None for row in found.rows):
        return ("Nothing can be said of single slices: all have too few topics.", *([few] if few else []))
    made: list[str] = []
    for measure in found.measures:
        parts = [found.of(measure, second) for _, second in found.pairs]
        for rows in parts:
            made += _better(rows, found)
            made += _unshown(rows) if len(parts) <= _PAIRS else ()
        made += _nowhere(parts) if len(parts) > _PAIRS else ()
        made += _variation(found, measure, parts)
    return (*made, *([few] if few else []))


def _variation(found: ComparedSlices, measure: str, parts: Sequence[Sequence[SlicePair]]) -> Iterator[str]:
    """Say which differences vary between slices; of the others together that this is not shown."""
    tested = [one for one in found.between if one.measure == measure]
    yield from (_varying(one) for one in tested if one.significant)
    rest = [one for one in tested if not one.significant and not math.isnan(one.adjusted)]
    if not rest:
        return
    least = min(one.adjusted for one in rest)
    which = "the difference varies" if len(rest) == 1 else "any other difference varies"
    which = "any difference varies" if len(rest) == len(tested) > 1 else which
    mixed = any(0 < sum(row.better is not None for row in rows if row.pair) < _tested(rows) for rows in parts)
    luck = ": a finding on one slice and none on another may be luck" if mixed else ""
    yield (
        f"That {which} between slices in {measure} is not shown ({'p' if len(rest) == 1 else 'least p'}"
        f" {p_text(least, found.choices.alpha)}, {len(rest[0].slices)} slices){luck}."
    )


def _tested(rows: Sequence[SlicePair]) -> int:
    return sum(row.pair is not None for row in rows)


def _nowhere(parts: Sequence[Sequence[SlicePair]]) -> Iterator[str]:
    """Name the systems that differ from the baseline on no slice, and say of the others that this is all."""
    first = parts[0][0]
    none = [rows[0].second for rows in parts if not any(row.pair and row.pair.significant for row in rows)]
    if none:
        yield f"No difference in {first.measure} from {first.first} is shown on any slice for {_some(none, ' and ')}."
    if len(none) < len(parts):
        yield f"On all other slices that were tested, no difference in {first.measure} is shown; that makes none equal."


def _better(rows: Sequence[SlicePair], found: ComparedSlices) -> Iterator[str]:
    for winner, loser in ((rows[0].second, rows[0].first), (rows[0].first, rows[0].second)):
        won = [row for row in rows if row.better == winner]
        if won:
            size = found.families[rows[0].measure]
            test = found.choices.test
            claim = f"{shown(test, winner, loser, rows[0].measure)}{'' if of_means(test) else ','} on"
            yield f"{claim} {_some([_won(row) for row in won], ' and ')}{_after(found, size)}."
    torn = [f"`{row.slice}`" for row in rows if row.pair is not None and row.pair.significant and row.better is None]
    if torn:
        yield f"On {_some(torn)} the test sees a difference in {rows[0].measure} that the means do not point to."


def _won(row: SlicePair) -> str:
    pair = row.pair
    if pair is None:
        return f"`{row.slice}`"
    side = f"{TIMES}{decimal(row.difference, 3)}" if pair.is_ratio else decimal(row.difference, 3, "+")
    if pair.found.posterior is not None:
        sure = f"probability {decimal(max(pair.found.posterior.higher, pair.found.posterior.lower), 3)}"
    else:
        sure = f"p {p_text(pair.found.decisive_p, pair.alpha)}"
    return f"`{row.slice}` ({side}, {topics_text(row.n)}, {sure})"


def _after(found: ComparedSlices, size: int) -> str:
    if found.choices.test == "bayes" or found.choices.correction == "none" or size < 2:
        return ""
    return f", after {name_of_correction(found.choices.correction)} over {size} comparisons"


def _unshown(rows: Sequence[SlicePair]) -> Iterator[str]:
    """Name the slices without a finding, and what could have been missed there."""
    rest = [row for row in rows if row.pair is not None and not row.pair.significant]
    unknown = [row for row in rest if row.pair and row.pair.found.posterior is None and math.isnan(row.pair.found.p)]
    if unknown:
        named = _some([f"`{row.slice}`" for row in unknown])
        yield f"On {named} nothing in {rows[0].measure} can be tested: too few topics, or differences that do not vary."
    rest = [row for row in rest if row not in unknown]
    if not rest:
        return
    seen = [row.pair.detectable for row in rest if row.pair is not None and not math.isnan(row.pair.detectable)]
    missed = ""
    if seen:
        sizes = decimal(min(seen), 3) if len(seen) == 1 else f"{decimal(min(seen), 3)} to {decimal(max(seen), 3)}"
        missed = f" There, differences below {sizes} would often be missed."
    what = f"{rows[0].measure} between {rows[0].second} and {rows[0].first}"
    yield f"No difference in {what} is shown on {_some([f'`{row.slice}`' for row in rest])}.{missed}"
    close = [f"`{row.slice}`" for row in rest if row.pair and row.pair.equivalence and row.pair.equivalence.shown]
    if close:
        margin = next(row.pair.equivalence.margin for row in rest if row.pair and row.pair.equivalence)
        yield f"On {_some(close)} they are surely closer than {margin:g} (not corrected for the number of slices)."


def _varying(one: BetweenSlices) -> str:
    means = one.found.means
    top, least = max(range(len(means)), key=means.__getitem__), min(range(len(means)), key=means.__getitem__)
    return (
        f"The difference between {one.second} and {one.first} in {one.measure} varies between slices (p"
        f" {p_text(one.adjusted, one.alpha)}): from {decimal(means[least], 3, '+')} on `{one.slices[least]}` to"
        f" {decimal(means[top], 3, '+')} on `{one.slices[top]}`."
    )


def _some(names: Sequence[str], last: str = ", ") -> str:
    """List names, not more than can be taken in."""
    if len(names) > _SHOWN:
        return ", ".join(names[:_SHOWN]) + f" and {len(names) - _SHOWN} more"
    return last.join(names) if len(names) < 3 else f"{', '.join(names[:-1])}{last}{names[-1]}"
