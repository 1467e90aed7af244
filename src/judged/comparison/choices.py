"""How systems are compared: the test, the correction, and what counts as a difference."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from judged.errors import InputError
from judged.results.blocks import Note, first_few
from judged.results.decimals import counted
from judged.results.spelling import one_of
from judged.scoring.measures.grammar import condition_of
from judged.stats.inputs import ROUNDING, check_resampling
from judged.stats.sample_size import least_p, out_of_reach

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.comparison.answer import MeasureComparison
    from judged.comparison.pair import Pair
    from judged.scoring.evaluation import Scores
    from judged.stats.results import Difference


Family: TypeAlias = Literal["measure", "all"]

MANY = {
    "tukey": "Tukey's HSD on a two-way layout",
    "randomised-tukey": "randomised Tukey HSD",
    "nemenyi": "Nemenyi's test on ranks",
    "dunnett": "Dunnett's test against one baseline",
    "randomised-dunnett": "randomised test of the largest difference from the baseline",
}
"""Tests of all systems at once; each allows for its own comparisons, and takes no correction."""

AGAINST_BASELINE = ("dunnett", "randomised-dunnett")
_FAMILY_WISE = ("bonferroni", "holm", "hochberg")
_FEW_TOPICS = 300  # 100,000 resamples of more topics take seconds where many runs are compared
_NO_RESAMPLES = ("t", "wilcoxon", "sign", "bounded", "bayes", "tukey", "nemenyi", "dunnett")


MANY_TOPICS = 2000
"""With more topics Student's t-test is the default: it gives the p-value of the randomisation test, at once."""


def default_test(topics: int) -> str:
    """Return the test that is used for so many topics if none is named.

    >>> default_test(50), default_test(6980)
    ('randomisation', 't')
    """
    return "t" if topics > MANY_TOPICS else "randomisation"


def default_resamples(topics: int) -> int:
    """Return the number of resamples that is used for so many topics if none is given.

    >>> default_resamples(50), default_resamples(1000)
    (100000, 10000)
    """
    return 10_000 if topics > _FEW_TOPICS else 100_000


def known_tests() -> dict[str, str]:
    """Give every test by name: those of two systems, and those of many."""
    from judged.stats.paired import TESTS

    return {**TESTS, **MANY}


@dataclass(frozen=True)
class Choices:
    """How systems are compared; it travels with the result."""

    test: str = "randomisation"  # a name in `known_tests()`
    # for the number of comparisons: a name in `judged.stats.correction.CORRECTIONS`. Tests of many systems take none.
    correction: str = "holm"
    family: Family = "measure"  # what is corrected together: the pairs of one `measure`, or the pairs of `all` measures
    alpha: float = 0.05  # a p-value up to here counts as significant. Intervals leave out 0 where the corrected p is.
    # resamples, seed: of tests by resampling
    resamples: int = 100_000
    seed: int = 0
    min_difference: float = 0.0  # the least difference on a topic that counts as a win or a loss
    # systems whose difference is surely smaller are called equivalent; None: nothing is said of it
    margin: float | None = None
    baseline: str | None = None  # the system that all others are compared with; None: every pair

    def __post_init__(self) -> None:
        from judged.stats.correction import CORRECTIONS

        for name, known in (("test", known_tests()), ("correction", CORRECTIONS), ("family", get_args(Family))):
            object.__setattr__(self, name, one_of(name, getattr(self, name), known))
        if not 0 < self.alpha < 0.5:
            raise InputError(f"alpha {self.alpha} is not between 0 and 0.5", fix="use 0.05, for example")
        check_resampling(self.resamples, self.seed)
        if not (math.isfinite(self.min_difference) and self.min_difference >= 0):
            raise InputError(f"the minimum difference {self.min_difference} makes no sense", fix="give a number from 0")
        if self.margin is not None and not (math.isfinite(self.margin) and self.margin > 0):
            raise InputError(f"the margin {self.margin} makes no sense", fix="give a number above 0, such as 0.02")
        if self.test in AGAINST_BASELINE and self.baseline is None:
            raise InputError(f"{self.test} compares with a baseline", fix="name a baseline, or use tukey for all pairs")
        if self.many and self.family == "all":
            raise InputError(
                f"{self.test} allows for the pairs of one measure, not for all measures together",
                fix="leave out family, or take a test of two systems, such as randomisation",
            )

    @property
    def many(self) -> bool:
        """Whether all systems are tested at once."""
        return self.test in MANY

    @property
    def level(self) -> float:
        """That of the intervals."""
        return 1 - self.alpha

    @property
    def draws(self) -> bool:
        """Whether the test draws at random."""
        return self.test not in _NO_RESAMPLES

    def alpha_of_one(self, family: int) -> float:
        """Give the alpha that the strictest step of a family of so many comparisons goes by."""
        shared = self.many or self.correction in _FAMILY_WISE
        return self.alpha / max(family, 1) if shared and self.test != "bayes" else self.alpha


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
    if least <= choices.alpha * (1 + ROUNDING):  # it is the correction that asks for more
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
