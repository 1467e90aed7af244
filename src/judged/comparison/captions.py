"""One paragraph that says by which rules a comparison was made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.comparison.choices import MANY
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
    ratio = " (geometric means: of ratios)" if choices.test != "ratio" and any(pair.is_ratio for pair in pairs) else ""
    if not drawn:
        return _TESTS[choices.test] + ratio
    if all(exact for _, exact in drawn):
        return f"{_TESTS[choices.test]}{ratio}, all arrangements"
    return f"{_TESTS[choices.test]}{ratio}, {choices.resamples} resamples, seed {choices.seed}"


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
    if choices.baseline is not None:
        return f"{BETTER} significantly better, {WORSE} worse than {baseline}{how}"
    kind = "letters" if names[0].isalpha() else "numbers"
    return f"{kind}: the systems that this one is significantly better than{how}"


def numbers(values: Iterable[int]) -> str:
    """Write one number, or the least and the greatest of several.

    >>> numbers([48, 48]), numbers([50, 43, 48])
    ('48', '43 to 50')
    """
    found = sorted(set(values))
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"
