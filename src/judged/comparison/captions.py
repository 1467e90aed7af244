"""One paragraph that says by which rules a comparison was made."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from judged.comparison.choices import MANY
from judged.comparison.claims import claim_of, level_text
from judged.comparison.marks import BETTER, WORSE, letters
from judged.comparison.sentences import name_of_correction
from judged.stats import IntervalMethod

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.comparison.choices import Choices
    from judged.comparison.compared import ComparedSystems
    from judged.comparison.pair import Pair

_TESTS = {
    "randomisation": "paired randomisation test",
    "t": "paired t-test",
    "wilcoxon": "Wilcoxon signed-rank test",
    "sign": "sign test",
    "bootstrap": "paired bootstrap test",
    "bca": "paired bootstrap test (bias-corrected and accelerated)",
    "studentised": "paired bootstrap test (studentised)",
    "ratio": "randomisation test of ratios of geometric means",
    "bayes": "posterior of the mean difference",
    **MANY,
}


def caption(comparison: ComparedSystems) -> str:
    """Say how many topics, which test and correction, which alpha, what the marks mean, how intervals are made."""
    choices = comparison.choices
    parts = ["nothing is tested"]
    if comparison.pairs:
        parts = [
            pair_caption(comparison),
            marked(choices, f"the baseline {choices.baseline}", letters(len(comparison.scores.runs)))
            if choices.baseline is None or any(pair.better is not None for pair in comparison.pairs)
            else "",  # no mark, no legend
        ]
    words = comparison.scores.interval_words(IntervalMethod(comparison.ci, choices.level, seed=choices.seed))
    return "; ".join(part for part in (*parts, words and f"[{words}]") if part)


def pair_caption(comparison: ComparedSystems) -> str:
    """Say how many topics, which test and correction, and which alpha."""
    choices, pairs = comparison.choices, comparison.pairs
    sizes = numbers([one.family for one in comparison.measures if one.family] or [0])
    several = sum(bool(one.pairs) for one in comparison.measures) > 1
    count = numbers(pair.found.n for pair in pairs)
    topics = f"n = {count} topic{'' if count == '1' else 's'}"
    return "; ".join([
        topics, tested(choices, pairs), corrected(choices, sizes, several=several), f"alpha = {choices.alpha:g}",
    ])  # fmt: skip


def tested(choices: Choices, pairs: Sequence[Pair]) -> str:
    """Name the test, and how many resamples were drawn."""
    drawn = {(pair.found.resamples, pair.found.exact) for pair in pairs if pair.found.resamples}
    name, replaced = _TESTS[choices.test], sum(pair.found.method not in {choices.test, "ratio"} for pair in pairs)
    if replaced:
        stands_in = (
            f"{_TESTS['randomisation']}{f' for {replaced} of {len(pairs)} pairs' if replaced < len(pairs) else ''}"
        )
        name = f"{stands_in} in place of the {name}" if replaced == len(pairs) else f"{name} ({stands_in})"
    ratio = " (geometric means: of ratios)" if choices.test != "ratio" and any(pair.is_ratio for pair in pairs) else ""
    if not drawn:
        return name + ratio
    if all(exact for _, exact in drawn):
        return f"{name}{ratio}, all arrangements"
    return f"{name}{ratio}, {choices.resamples} resamples, seed {choices.seed}"


def corrected(choices: Choices, sizes: str, *, several: bool) -> str:
    """Name the correction, and how many comparisons it allows for."""
    of = (
        {"all": " of all measures together", "measure": " of each measure by itself"}[choices.family] if several else ""
    )
    what = f"one comparison{of}" if sizes == "1" else f"the {sizes} comparisons{of}"
    if choices.test == "bayes":
        return "beliefs are not corrected for the number of comparisons"
    if choices.many:
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
    whole, text = level_text(choices.level), " and ".join(level_text(level) for level in levels)
    if choices.many:
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
    found = sorted(set(values))
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"
