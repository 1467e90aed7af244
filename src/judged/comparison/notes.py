"""What a reader of a comparison should know beside its numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from judged.results.decimals import counted
from judged.results.notes import Note, first_few
from judged.scoring.measures.grammar import condition_of
from judged.stats.detectable import least_p, out_of_reach

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.comparison.answer import MeasureComparison
    from judged.comparison.choices import Choices
    from judged.comparison.pair import Pair
    from judged.scoring.evaluation import Scores
    from judged.stats.results import Difference

_ROUNDING = 1e-12
_ENDLESS = 1 << 62  # resamples: what is asked is what the topics allow


def notes(scores: Scores, measures: Sequence[MeasureComparison], choices: Choices) -> Iterator[Note]:
    """Give the notes on a comparison, beside the notes of its scores."""
    if not (scores.counted == scores.counted[0]).all():
        counts = zip(scores.run_names, scores.counted.sum(axis=1).tolist(), strict=True)
        some = first_few([f"{run} {n}" for run, n in counts])
        text = "each mean is over the run's own topics, each difference over those of both; --topics qrels takes all"
        yield Note("different-topics", f"the runs have different topics ({some}): {text} the same")
    yield from (Note("not-tested", compared.untested) for compared in measures if compared.untested)
    if tested := [compared for compared in measures if compared.pairs]:
        yield from _left_out(tested)
        yield from _identical(tested)
        yield from list(_too_few_topics(tested, choices)) or _few_topics(tested)
        yield from _sensitive(tested)
        yield from _too_few_resamples(tested, choices)
        texts = {pair.result.note for compared in tested for pair in compared.pairs}
        if len(texts) == 1:  # what is noted of some pairs alone stands in their sentences
            yield from (Note("every-test", text) for text in texts if text)


def _left_out(tested: Sequence[MeasureComparison]) -> Iterator[Note]:
    everywhere = [compared for compared in tested if not condition_of(compared.name)[1]]
    most = [(max(pair.result.left_out for pair in compared.pairs), compared.name) for compared in everywhere]
    if some := first_few([f"{name} {count}" for count, name in most if count]):
        text = "topics left out of pairs, as they lack a score for one of the systems, at most"
        yield Note("left-out", f"{text}: {some}")


def _identical(tested: Sequence[MeasureComparison]) -> Iterator[Note]:
    """Name systems that are the same on every topic by every measure: perhaps one file under two names."""
    same = [
        f"{pair.first} = {pair.second}"
        for pair in tested[0].pairs
        if all(_same(compared.by_runs[pair.first, pair.second]) for compared in tested)
    ]
    if same:
        yield Note("same-scores", f"the same scores on every topic: {first_few(same)}")


def _same(pair: Pair) -> bool:
    return pair.result.n > 0 and not pair.gains and not pair.losses


def _too_few_topics(tested: Sequence[MeasureComparison], choices: Choices) -> Iterator[Note]:
    """Say where so few topics are compared that no difference could be significant."""
    pairs = [(pair, compared.family) for compared in tested for pair in compared.pairs]
    short = [(pair.result, family) for pair, family in pairs if short_of_topics(pair, family, choices)]
    if short:
        some = "" if len(short) == len(pairs) else f"{len(short)} of {len(pairs)} pairs: "
        difference, family = max(short, key=lambda row: (row[0].differing, row[0].n, row[1]))
        yield Note("too-few-topics", some + least_p_text(difference, family, choices, together=not some))


def _few_topics(tested: Sequence[MeasureComparison]) -> Iterator[Note]:
    """Say where there are too few topics for a verdict, whatever p is."""
    few = [pair for compared in tested for pair in compared.pairs if pair.result.n > 1 and pair.insufficiency]
    if few and (lacking := max(few, key=lambda pair: pair.result.n).insufficiency):
        yield Note("few-topics", f"no verdict: {lacking.sentence('topic')}")


def _sensitive(tested: Sequence[MeasureComparison]) -> Iterator[Note]:
    """Name the pairs whose verdict is sensitive to a few topics, where there are several pairs."""
    pairs = [pair for compared in tested for pair in compared.pairs]
    some = [f"{pair.second} and {pair.first} in {pair.measure}" for pair in pairs if pair.sensitive]
    if some and len(pairs) > 1:
        count = counted(sum(pair.significant for pair in pairs), "significant difference")
        yield Note("sensitive", f"{len(some)} of {count} sensitive to a few topics: {first_few(some)}")


def short_of_topics(pair: Pair, family: int, choices: Choices) -> bool:
    """Tell whether a pair has so few topics that its difference cannot pass the strictest step of its family."""
    difference = pair.result
    # that no topic differs is said of the pair
    moved = difference.n > 0 and not (difference.n > 1 and difference.differing == 0)
    return moved and out_of_reach(
        choices.alpha_of_one(family), difference.n, difference.test, resamples=_ENDLESS, differing=difference.differing
    )


def least_p_text(difference: Difference, family: int, choices: Choices, *, together: bool = False) -> str:
    """Say how small p can be of a pair that is short of topics, where so many share alpha, and what follows."""
    least = least_p(difference.n, difference.test, resamples=_ENDLESS, differing=difference.differing)
    after = unless = ""
    if least <= choices.alpha * (1 + _ROUNDING):  # it is the correction that asks for more
        after = f", nor below {min(least * family, 1.0):.2g} after {choices.correction} for {family} comparisons"
        never = choices.correction == "bonferroni" or (together and choices.correction == "holm")
        unless = "" if never else ", unless others are"
    some = f"a difference on {difference.differing} of " if difference.differing < difference.n else ""
    return (
        f"with {some}{counted(difference.n, 'topic')} p cannot be below {least:.2g}{after}: no difference can be"
        f" significant at {choices.alpha:g}{unless}"
    )


def _too_few_resamples(tested: Sequence[MeasureComparison], choices: Choices) -> Iterator[Note]:
    """Say where the least p that the resamples allow is not significant after correction."""
    family = max(compared.family for compared in tested)
    drawn = any(pair.result.resamples and not pair.result.exact for compared in tested for pair in compared.pairs)
    least, shared = family / (choices.resamples + 1), choices.alpha_of_one(2) != choices.alpha
    if drawn and shared and not choices.many and least > choices.alpha:
        text = (
            f"with {choices.resamples} resamples and {family} comparisons p cannot be below {least:.2g} after"
            f" {choices.correction}; take at least {math.ceil(family / choices.alpha)} resamples"
        )
        yield Note("too-few-resamples", text)
