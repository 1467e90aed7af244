"""The rules of a comparison in words: test, correction, marks, intervals, and what could be detected."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from judged.comparison.choices import MANY
from judged.comparison.pair import claim_of, level_text, name_of_correction
from judged.stats.results import TEST_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.comparison.choices import Choices
    from judged.comparison.pair import Pair

BETTER, WORSE = "\N{DAGGER}", "\N{DOUBLE DAGGER}"


def tested(choices: Choices, pairs: Sequence[Pair]) -> str:
    """Name the test, and how many resamples were drawn."""
    drawn = {(pair.found.resamples, pair.found.exact) for pair in pairs if pair.found.resamples}
    name = MANY.get(choices.test) or f"paired {TEST_NAMES[choices.test]}"
    replaced = sum(pair.found.method not in {choices.test, "ratio"} for pair in pairs)
    if replaced and replaced == len(pairs):
        name = f"paired randomisation test in place of the {name}"
    elif replaced:
        name = f"{name} (paired randomisation test for {replaced} of {len(pairs)} pairs)"
    if choices.test != "ratio" and any(pair.is_ratio for pair in pairs):
        name += " (geometric means: of ratios)"
    if not drawn:
        return name
    if all(exact for _, exact in drawn):
        return f"{name}, all arrangements"
    return f"{name}, {choices.resamples} resamples, seed {choices.seed}"


def corrected(choices: Choices, sizes: str, *, several: bool) -> str:
    """Name the correction, and how many comparisons it allows for."""
    ways = {"all": " of all measures together", "measure": " of each measure by itself"}
    what = "one comparison" if sizes == "1" else f"the {sizes} comparisons"
    what += ways[choices.family] if several else ""
    if choices.test == "bayes":
        return "beliefs are not corrected for the number of comparisons"
    if choices.test in MANY:
        return f"it allows for {what}"
    if sizes == "1" or choices.correction == "none":
        return f"p not corrected: {what}"
    return f"p corrected by {name_of_correction(choices.correction)} for {what}"


def marked(choices: Choices, baseline: str, names: tuple[str, ...]) -> str:
    """Say what the marks mean."""
    how = f" (probability at least {1 - choices.alpha / 2:g})" if choices.test == "bayes" else ""
    claim = claim_of(choices.test)
    if choices.baseline is not None:
        return f"{BETTER} {claim.ahead}, {WORSE} {claim.behind} {baseline}{how}"
    kind = "letters" if names[0].isalpha() else "numbers"
    return f"{kind}: the systems that this one is {claim.letters}{how}"


def intervals(pairs: Sequence[Pair], choices: Choices, family: int) -> str:
    """Say which level the intervals of the differences have, and what they hold together."""
    levels = sorted({pair.found.level for pair in pairs if pair.shown_interval is not None}, reverse=True)
    if not levels or family < 2 or choices.test == "bayes":
        return ""
    whole, text = level_text(1 - choices.alpha), " and ".join(level_text(level) for level in levels)
    if choices.test in MANY:
        return f"{whole} intervals, which hold together"
    if choices.correction == "none":
        return f"each {whole} interval is for one difference alone"
    if choices.correction in {"bh", "by"}:
        return f"{text} intervals: of those that leave out 0, {whole} hold the true difference"
    narrower = f"; the narrower where a later step of {name_of_correction(choices.correction)} finds the difference"
    together = f"{text} intervals: all {family} together hold the true differences in {whole} of samples"
    return together + (narrower if levels[1:] else "")


def detectable(pairs: Sequence[Pair]) -> str:
    """Say what a detectable difference is, and at which alpha; nothing, where there is none."""
    known = [pair for pair in pairs if not math.isnan(pair.detectable)]
    if not known:
        return ""
    sharing = max(pair.sharing for pair in known)
    at = f" at alpha = {known[0].alpha:g} / {sharing}, as the correction has it" if sharing > 1 else ""
    return f"detectable: a true difference of this size is found at least four times out of five{at}"


def numbers(values: Iterable[int]) -> str:
    """Write one number, or the least and the greatest of several.

    >>> numbers([48, 48]), numbers([50, 43, 48])
    ('48', '43 to 50')
    """
    known = sorted(set(values))
    return str(known[0]) if len(known) == 1 else f"{known[0]} to {known[-1]}"
