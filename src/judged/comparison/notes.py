"""What a reader of a comparison should know beside its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.notes import first_few
from judged.stats.attainable import least_p, out_of_reach
from judged.stats.pairing import topics_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.comparison.choices import Choices
    from judged.comparison.pair import MeasureComparison, Pair
    from judged.evaluation import Scores
    from judged.stats.results import Difference

_ROUNDING = 1e-12
_ENDLESS = 1 << 62  # resamples: what is asked is what the topics allow
_FEW = 4  # topics, of which no arrangement of signs is rare


def notes(scores: Scores, compared: Sequence[MeasureComparison], choices: Choices) -> tuple[str, ...]:
    """Give the warnings of the scores, and those of the comparison."""
    tested = [one for one in compared if one.pairs]
    made = [
        _topics(scores),
        *(one.untested for one in compared if one.untested),
        _left_out(tested),
        _identical(tested),
        _too_few_topics(tested, choices) or _few_topics(tested),
        _too_few_resamples(tested, choices),
        *_of_pairs(tested),
    ]
    return scores.warnings + tuple(note for note in made if note)


def _topics(scores: Scores) -> str:
    """Warn where runs have different topics: the means then rest on others than the differences do."""
    if (scores.counted == scores.counted[0]).all():
        return ""
    counts = first_few(
        [f"{run} {n}" for run, n in zip(scores.run_names, scores.counted.sum(axis=1).tolist(), strict=True)]
    )
    return (
        f"the runs have different topics ({counts}): each mean is over the run's own, each difference over those"
        " that both have; --topics qrels gives all the same"
    )


def _left_out(tested: Sequence[MeasureComparison]) -> str:
    most = [(max(pair.found.left_out for pair in one.pairs), one.name) for one in tested]
    named = first_few([f"{name} {count}" for count, name in most if count])
    return f"topics left out of pairs, as they lack a score for one of the systems, at most: {named}" if named else ""


def _identical(tested: Sequence[MeasureComparison]) -> str:
    """Name systems that are the same on every topic by every measure: perhaps one file under two names."""
    if not tested:
        return ""
    same = [
        f"{pair.first} = {pair.second}"
        for pair in tested[0].pairs
        if all(_same(one.by_runs[pair.first, pair.second]) for one in tested)
    ]
    return f"the same scores on every topic: {first_few(same)}" if same else ""


def _same(pair: Pair) -> bool:
    return pair.found.n > 0 and not pair.gains and not pair.losses


def _too_few_topics(tested: Sequence[MeasureComparison], choices: Choices) -> str:
    """Say where so few topics are compared that no difference could be significant."""
    short = [
        (pair.found, one.family) for one in tested for pair in one.pairs if short_of_topics(pair, one.family, choices)
    ]
    if not short:
        return ""
    pairs = sum(len(one.pairs) for one in tested)
    some = "" if len(short) == pairs else f"{len(short)} of {pairs} pairs: "
    found, family = max(short, key=lambda one: (one[0].differing, one[0].n, one[1]))
    return some + least_p_text(found, family, choices, together=not some)


def _few_topics(tested: Sequence[MeasureComparison]) -> str:
    """Say what a p-value of very few topics rests on, where it is not bounded by their number."""
    few = [pair.found for one in tested for pair in one.pairs if 1 < pair.found.n <= _FEW]
    if not few:
        return ""
    n = max(found.n for found in few)
    return (
        f"with {topics_text(n)} chance alone gives all of them the same sign with p = {least_p(n):.2g}: a smaller p"
        " rests on the assumption that differences are normal, which so few cannot show"
    )


def short_of_topics(pair: Pair, family: int, choices: Choices) -> bool:
    """Tell whether a pair has so few topics that its difference cannot pass the strictest step of its family."""
    found = pair.found
    moved = found.n > 0 and not (found.n > 1 and found.differing == 0)  # that no topic differs is said of the pair
    return moved and out_of_reach(
        choices.alpha_of_one(family), found.n, found.method, resamples=_ENDLESS, differing=found.differing
    )


def least_p_text(found: Difference, family: int, choices: Choices, *, together: bool = False) -> str:
    """Say which p-value so many topics can give at least, and what follows."""
    # `found`, `family`: a pair that is short of topics, and how many comparisons share alpha.
    least = least_p(found.n, found.method, resamples=_ENDLESS, differing=found.differing)
    after = unless = ""
    if least <= choices.alpha * (1 + _ROUNDING):  # it is the correction that asks for more
        after = f", nor below {min(least * family, 1.0):.2g} after {choices.correction} for {family} comparisons"
        never = choices.correction == "bonferroni" or (together and choices.correction == "holm")
        unless = "" if never else ", unless others are"
    some = f"a difference on {found.differing} of " if found.differing < found.n else ""
    return (
        f"with {some}{topics_text(found.n)} p cannot be below {least:.2g}{after}: no difference can be significant at"
        f" {choices.alpha:g}{unless}"
    )


def _too_few_resamples(tested: Sequence[MeasureComparison], choices: Choices) -> str:
    """Say where the least p that the resamples allow is not significant after correction."""
    family = max((one.family for one in tested), default=0)
    drawn = [pair.found for one in tested for pair in one.pairs if pair.found.resamples and not pair.found.exact]
    least = family / (choices.resamples + 1)
    if choices.many or choices.alpha_of_one(2) == choices.alpha or not drawn or least <= choices.alpha:
        return ""
    needed = int(np.ceil(family / choices.alpha))
    return (
        f"with {choices.resamples} resamples and {family} comparisons p cannot be below {least:.2g} after"
        f" {choices.correction}; take at least {needed} resamples"
    )


def _of_pairs(tested: Sequence[MeasureComparison]) -> list[str]:
    """Give what the tests remark on every pair; what is said of some stands in their sentences."""
    said = [pair.found.note for one in tested for pair in one.pairs]
    return [said[0]] if said and said[0] and len(set(said)) == 1 else []
