"""Conclusions of `compare_slices`: on which slices a system is better, and whether the difference varies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from judged.comparison.pair import TIMES, correction_name, describe_winner, is_test_of_means
from judged.comparison.slicing.scores import MAX_NAMES
from judged.results import counted, listed
from judged.results.decimals import decimal, p_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.comparison import Pair
    from judged.comparison.slicing.comparison import SliceComparison, SlicePair

_MAX_DETAILED_PAIRS = 2  # with more pairs, inconclusive results are summarized


def conclusions(comparison: SliceComparison) -> list[str]:
    """Return the conclusions for each measure and pair."""
    sentences: list[str] = []
    for measure in comparison.measures:
        rows_by_pair = [comparison.rows_of(measure, second) for _, second in comparison.pairs]
        for rows in rows_by_pair:
            sentences += _winner_sentences(comparison, rows)
            sentences += _inconclusive_sentences(rows) if len(rows_by_pair) <= _MAX_DETAILED_PAIRS else ()
        sentences += _no_difference_sentences(rows_by_pair) if len(rows_by_pair) > _MAX_DETAILED_PAIRS else ()
        sentences += _variation_sentences(comparison, measure, rows_by_pair)
    return sentences


def _winner_sentences(comparison: SliceComparison, rows: Sequence[SlicePair]) -> Iterator[str]:
    first, second, measure = rows[0].first, rows[0].second, rows[0].measure
    test, correction, size = comparison.choices.test, comparison.choices.correction, comparison.families[measure]
    uncorrected = test == "bayes" or correction == "none" or size < 2
    correction_text = "" if uncorrected else f", after {correction_name(correction)} correction for {size} comparisons"
    for winner, loser in ((second, first), (first, second)):
        if wins := [row for row in rows if row.better == winner]:
            claim = describe_winner(test, winner, loser, measure) + ("" if is_test_of_means(test) else ",")
            # Only the first difference has a label, to keep the list of slices short.
            slices = join_names([_format_win(row.slice, row.pair, label=row is wins[0]) for row in wins if row.pair])
            yield f"{claim} on {slices}{correction_text}."
            yield from _sensitivity_sentences(wins)
    significant = [row for row in rows if row.pair and row.pair.significant]
    if slices := [f"`{row.slice}`" for row in significant if row.better is None]:
        claim = f"the test of {measure} is significant, but no run is favored by both the test and the mean"
        yield f"On {join_names(slices)}, {claim}."


def _variation_sentences(
    comparison: SliceComparison, measure: str, rows_by_pair: Sequence[Sequence[SlicePair]]
) -> Iterator[str]:
    tests = [test for test in comparison.between if test.measure == measure]
    for test in tests:
        if test.significant:
            slices = dict(zip(test.result.means, test.slices, strict=True))  # by mean difference
            low, high = (f"{decimal(mean, 3, '+')} on `{slices[mean]}`" for mean in (min(slices), max(slices)))
            yield (
                f"The difference {test.second} - {test.first} in {measure} varies between slices"
                f" (p {p_text(test.adjusted, test.alpha)}): from {low} to {high}."
            )
    p_values = [test.adjusted for test in tests if not test.significant and not math.isnan(test.adjusted)]
    if p_values:
        noun = "difference" if len(p_values) == len(tests) else "other difference"
        mixed = any({row.better is None for row in rows if row.pair} == {True, False} for rows in rows_by_pair)
        yield (
            f"No {noun} in {measure} varies significantly between slices (smallest p"
            f" {p_text(min(p_values), comparison.choices.alpha)}, {len(tests[0].slices)} slices)"
            f"{': a significant result on only some slices may be due to chance' if mixed else ''}."
        )


def _no_difference_sentences(rows_by_pair: Sequence[Sequence[SlicePair]]) -> Iterator[str]:
    measure, baseline = rows_by_pair[0][0].measure, rows_by_pair[0][0].first
    unchanged = [rows[0].second for rows in rows_by_pair if not any(row.pair and row.pair.significant for row in rows)]
    if unchanged:
        yield f"No significant difference in {measure} from {baseline} on any slice: {join_names(unchanged)}."
    if len(unchanged) < len(rows_by_pair):
        claim = f"No significant difference in {measure} on the other tested slices"
        yield f"{claim}. This does not mean that the systems are equal on these slices."


def _format_win(name: str, pair: Pair, *, label: bool) -> str:
    result, posterior = pair.result, pair.result.posterior
    difference = f"{TIMES}{decimal(pair.shown_difference, 3)}" if pair.is_ratio else decimal(result.difference, 3, "+")
    if label:
        sign = "/" if pair.is_ratio else "-"
        difference = f"{pair.second} {sign} {pair.first} = {difference.removeprefix(TIMES)}"
    evidence = f"p {p_text(result.decisive_p, pair.alpha)}"
    if posterior is not None:
        evidence = f"probability {decimal(max(posterior.higher, posterior.lower), 3)}"
    sensitivity = f", sensitive to {counted(len(pair.few_topics), 'topic')}" if pair.sensitive else ""
    return f"`{name}` ({difference}, {counted(result.n, 'topic')}, {evidence}{sensitivity})"


def _sensitivity_sentences(wins: Sequence[SlicePair]) -> Iterator[str]:
    sensitivities = [(row.slice, row.pair.sensitivity) for row in wins if row.pair and row.pair.sensitivity]
    shares = [
        f"on `{name}`, if such topics are {sensitivity.missed_share:.0%} of the slice and have a mean difference"
        f" {'below' if sensitivity.reversing_difference < 0 else 'above'}"
        f" {decimal(sensitivity.reversing_difference, 2, '+')}"
        for name, sensitivity in sensitivities
        if sensitivity.may_miss
    ]
    if shares:
        yield f"Topics of a kind that was not sampled could reverse the result: {'; '.join(shares)}."


def _inconclusive_sentences(rows: Sequence[SlicePair]) -> Iterator[str]:
    measure = rows[0].measure
    pairs = {f"`{row.slice}`": row.pair for row in rows if row.pair and not row.pair.significant}
    untestable = [name for name, pair in pairs.items() if pair.result.posterior is None and math.isnan(pair.result.p)]
    if untestable:
        problem = f"{measure} cannot be tested: too few topics, or differences that do not vary"
        yield f"On {join_names(untestable)}, {problem}."
    pairs = {name: pair for name, pair in pairs.items() if name not in untestable}
    if not pairs:
        return
    sizes = sorted(pair.detectable for pair in pairs.values() if pair.detectable > 0)
    detectable = [decimal(size, 3) for size in sizes]
    limits = " to ".join(dict.fromkeys((*detectable[:1], *detectable[-1:])))
    scope = ", depending on the slice," if " to " in limits else ""
    missed = f" On these slices, differences below {limits}{scope} would often be missed." if detectable else ""
    systems = f"between {rows[0].second} and {rows[0].first}"
    yield f"No significant difference in {measure} {systems} on {join_names(list(pairs))}.{missed}"
    tests = {name: pair.equivalence for name, pair in pairs.items() if pair.equivalence}
    equivalent = {name: test for name, test in tests.items() if test.significant}
    for margin in {test.margin for test in equivalent.values()}:
        claim = f"On {join_names(list(equivalent))}, the difference is significantly smaller than {margin:g}"
        yield f"{claim} (not corrected for the number of slices)."


def join_names(names: Sequence[str]) -> str:
    """Format a list of at most `MAX_NAMES` names, and the number of others."""
    omitted = [f"{len(names) - MAX_NAMES} more"] if len(names) > MAX_NAMES else []
    return listed([*names[:MAX_NAMES], *omitted])
