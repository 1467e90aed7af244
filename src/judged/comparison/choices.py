"""Options of a comparison (test, correction, thresholds), and the notes on its result."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from judged.errors import InputError
from judged.results.blocks import Note, first_few
from judged.results.decimals import counted
from judged.results.spelling import one_of
from judged.scoring.measures.grammar import split_condition
from judged.stats.inputs import ROUNDING, check_resampling
from judged.stats.sample_size import cannot_be_significant, smallest_p

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.comparison.answer import MeasureComparison
    from judged.comparison.pair import Pair
    from judged.scoring.evaluation import Scores
    from judged.stats.results import Difference


Family: TypeAlias = Literal["measure", "all"]

JOINT_TESTS = {
    "tukey": "Tukey's HSD on a two-way layout",
    "randomized-tukey": "randomized Tukey HSD",
    "nemenyi": "Nemenyi's test on ranks",
    "dunnett": "Dunnett's test against one baseline",
    "randomized-dunnett": "randomized test of the largest difference from the baseline",
}
"""Joint tests of all systems. Each corrects for its own comparisons; no correction is applied."""

AGAINST_BASELINE = ("dunnett", "randomized-dunnett")
_CORRECTIONS = {
    "bonferroni": "Bonferroni",
    "holm": "Holm",
    "hochberg": "Hochberg",
    "bh": "Benjamini-Hochberg",
    "by": "Benjamini-Yekutieli",
}
_FAMILY_WISE = ("bonferroni", "holm", "hochberg")
_MAX_TOPICS_FOR_MANY_RESAMPLES = 300  # with more topics, 100,000 resamples of many runs take seconds
_ANALYTIC_TESTS = ("t", "wilcoxon", "sign", "bounded", "bayes", "tukey", "nemenyi", "dunnett")


MANY_TOPICS = 2000
"""Above this number of topics the default is the t-test: it is fast, and its p-value equals that of randomization."""


def default_test(topics: int) -> str:
    """Return the default test for a number of topics.

    >>> default_test(50), default_test(6980)
    ('randomization', 't')
    """
    return "t" if topics > MANY_TOPICS else "randomization"


def default_resamples(topics: int) -> int:
    """Return the default number of resamples for a number of topics.

    >>> default_resamples(50), default_resamples(1000)
    (100000, 10000)
    """
    return 10_000 if topics > _MAX_TOPICS_FOR_MANY_RESAMPLES else 100_000


def all_tests() -> dict[str, str]:
    """Return the descriptions of all tests, by name."""
    from judged.stats.paired import TESTS

    return {**TESTS, **JOINT_TESTS}


@dataclass(frozen=True)
class Choices:
    """Options of a comparison; they are part of the result."""

    test: str = "randomization"  # a key of `all_tests()`
    # for multiple comparisons: a key of `judged.stats.correction.CORRECTIONS`; ignored by joint tests
    correction: str = "holm"
    family: Family = "measure"  # comparisons corrected together: the pairs of one `measure`, or of `all` measures
    alpha: float = 0.05  # p-values up to this value are significant; intervals have level 1 - alpha
    resamples: int = 100_000  # of resampling tests, as is `seed`
    seed: int = 0
    min_difference: float = 0.0  # smallest difference on a topic that counts as a win or a loss
    # equivalence margin; None: no equivalence test
    margin: float | None = None
    baseline: str | None = None  # system that all others are compared with; None: all pairs

    def __post_init__(self) -> None:
        from judged.stats.correction import CORRECTIONS

        for name, allowed in (("test", all_tests()), ("correction", CORRECTIONS), ("family", get_args(Family))):
            object.__setattr__(self, name, one_of(name, getattr(self, name), allowed))
        if not 0 < self.alpha < 0.5:
            raise InputError(f"`alpha` must be between 0 and 0.5, got {self.alpha}", fix="use 0.05")
        check_resampling(self.resamples, self.seed)
        if not (math.isfinite(self.min_difference) and self.min_difference >= 0):
            problem = f"`min_difference` must be a finite number >= 0, got {self.min_difference}"
            raise InputError(problem, fix="use 0.01, for example")
        if self.margin is not None and not (math.isfinite(self.margin) and self.margin > 0):
            raise InputError(f"`margin` must be a positive number, got {self.margin}", fix="use 0.02, for example")
        if self.test in AGAINST_BASELINE and self.baseline is None:
            raise InputError(f"{self.test} requires a baseline", fix="set `baseline`, or use tukey for all pairs")
        if self.is_joint_test and self.family == "all":
            raise InputError(
                f"{self.test} corrects within one measure, not over all measures",
                fix="remove `family`, or use a test of two systems, such as randomization",
            )

    @property
    def is_joint_test(self) -> bool:
        """Whether all systems are tested jointly."""
        return self.test in JOINT_TESTS

    @property
    def level(self) -> float:
        """Confidence level of intervals."""
        return 1 - self.alpha

    @property
    def uses_resampling(self) -> bool:
        """Whether the test uses random resamples."""
        return self.test not in _ANALYTIC_TESTS

    def alpha_per_comparison(self, family: int) -> float:
        """Return the alpha of the strictest step of the correction in a family of this size."""
        is_divided = self.is_joint_test or self.correction in _FAMILY_WISE
        return self.alpha / max(family, 1) if is_divided and self.test != "bayes" else self.alpha


_UNLIMITED = 1 << 62  # resamples: p is then limited by the number of topics only


def notes(scores: Scores, measures: Sequence[MeasureComparison], choices: Choices) -> Iterator[Note]:
    """Yield the notes on a comparison; the notes of its scores are not included."""
    if not (scores.counted == scores.counted[0]).all():
        counts = zip(scores.run_names, scores.counted.sum(axis=1).tolist(), strict=True)
        counts_text = first_few([f"{run} {n}" for run, n in counts])
        text = "each mean is over all topics of its run, and each difference is over the topics that two runs share"
        fix = "to use the same topics for all runs, set --topics qrels"
        yield Note("different-topics", f"the runs have different topics ({counts_text}): {text}; {fix}")
    yield from (Note("not-tested", measure.untested) for measure in measures if measure.untested)
    if tested := [measure for measure in measures if measure.pairs]:
        yield from _left_out_note(tested)
        yield from _identical_systems_note(tested)
        yield from list(_smallest_p_note(tested, choices)) or _no_verdict_note(tested)
        yield from _sensitivity_note(tested)
        yield from _resamples_note(tested, choices)
        texts = {pair.result.note for measure in tested for pair in measure.pairs}
        if len(texts) == 1:  # a note on some pairs only is part of their sentences
            yield from (Note("every-test", text) for text in texts if text)


def _left_out_note(measures: Sequence[MeasureComparison]) -> Iterator[Note]:
    unconditional = [measure for measure in measures if not split_condition(measure.name)[1]]
    counts = [(max(pair.result.left_out for pair in measure.pairs), measure.name) for measure in unconditional]
    if counts_text := first_few([f"{name} {count}" for count, name in counts if count]):
        text = "if a system has no score on a topic, its differences exclude this topic"
        yield Note("left-out", f"{text}; largest number of excluded topics in a pair: {counts_text}")


def _identical_systems_note(measures: Sequence[MeasureComparison]) -> Iterator[Note]:
    identical_pairs = [
        f"{pair.first} = {pair.second}"
        for pair in measures[0].pairs
        if all(_has_equal_scores(measure.by_runs[pair.first, pair.second]) for measure in measures)
    ]
    if identical_pairs:
        yield Note("same-scores", f"equal scores on every topic: {first_few(identical_pairs)}")


def _has_equal_scores(pair: Pair) -> bool:
    return pair.result.n > 0 and not pair.gains and not pair.losses


def _smallest_p_note(measures: Sequence[MeasureComparison], choices: Choices) -> Iterator[Note]:
    pairs = [(pair, measure.family) for measure in measures for pair in measure.pairs]
    too_small = [(pair.result, family) for pair, family in pairs if has_too_few_topics(pair, family, choices)]
    if too_small:
        scope = "" if len(too_small) == len(pairs) else f"{len(too_small)} of {len(pairs)} pairs: "
        difference, family = max(too_small, key=lambda row: (row[0].differing, row[0].n, row[1]))
        yield Note("too-few-topics", scope + describe_least_p(difference, family, choices, all_pairs=not scope))


def _no_verdict_note(measures: Sequence[MeasureComparison]) -> Iterator[Note]:
    too_small = [pair for measure in measures for pair in measure.pairs if pair.result.n > 1 and pair.insufficiency]
    if too_small and (reason := max(too_small, key=lambda pair: pair.result.n).insufficiency):
        yield Note("few-topics", f"no verdict: {reason.sentence('topic')}")


def _sensitivity_note(measures: Sequence[MeasureComparison]) -> Iterator[Note]:
    pairs = [pair for measure in measures for pair in measure.pairs]
    names = [f"{pair.second} and {pair.first} in {pair.measure}" for pair in pairs if pair.sensitive]
    if names and len(pairs) > 1:  # the sentence of a single pair mentions it already
        count = counted(sum(pair.significant for pair in pairs), "significant difference")
        yield Note("sensitive", f"sensitive to a few topics ({len(names)} of {count}): {first_few(names)}")


def correction_name(correction: str) -> str:
    """Return the name of a correction as written in text."""
    return _CORRECTIONS.get(correction, correction)


def has_too_few_topics(pair: Pair, family: int, choices: Choices) -> bool:
    """Return whether a pair has too few topics for any difference to pass the strictest step of its correction."""
    difference = pair.result
    # The sentence of a pair without any difference mentions that already.
    may_differ = difference.n > 0 and not (difference.n > 1 and difference.differing == 0)
    alpha, n = choices.alpha_per_comparison(family), difference.n
    return may_differ and cannot_be_significant(
        alpha, n, difference.test, resamples=_UNLIMITED, differing=difference.differing
    )


def describe_least_p(difference: Difference, family: int, choices: Choices, *, all_pairs: bool = False) -> str:
    """Describe the smallest possible p-value of a pair with too few topics, and its consequence."""
    least = smallest_p(difference.n, difference.test, resamples=_UNLIMITED, differing=difference.differing)
    corrected = exception = ""
    if least <= choices.alpha * (1 + ROUNDING):  # significant before the correction, not after it
        correction = correction_name(choices.correction)
        corrected = f", or below {min(least * family, 1.0):.2g} after {correction} for {family} comparisons"
        is_strict = choices.correction == "bonferroni" or (all_pairs and choices.correction == "holm")
        exception = "" if is_strict else ", unless other comparisons are significant"
    differing = f"differences on only {difference.differing} of " if difference.differing < difference.n else ""
    return (
        f"with {differing}{counted(difference.n, 'topic')}, p cannot be below {least:.2g}{corrected}: no difference"
        f" can be significant at alpha = {choices.alpha:g}{exception}"
    )


def _resamples_note(measures: Sequence[MeasureComparison], choices: Choices) -> Iterator[Note]:
    family = max(measure.family for measure in measures)
    is_sampled = any(pair.result.resamples and not pair.result.exact for measure in measures for pair in measure.pairs)
    least, is_divided = family / (choices.resamples + 1), choices.alpha_per_comparison(2) != choices.alpha
    if is_sampled and is_divided and not choices.is_joint_test and least > choices.alpha:
        text = (
            f"with {choices.resamples} resamples and {family} comparisons, p cannot be below {least:.2g} after"
            f" {correction_name(choices.correction)}; use at least {math.ceil(family / choices.alpha)} resamples"
        )
        yield Note("too-few-resamples", text)
