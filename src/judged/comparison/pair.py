"""Comparison of two systems by one measure, and the texts that describe tests, corrections, and marks."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from judged.comparison.choices import JOINT_TESTS, correction_name
from judged.results import NUMBER, TEXT, Column, Show, Table, columns_of, number
from judged.results.decimals import counted, decimal, format_distinct, format_level, p_text
from judged.stats.inputs import ROUNDING, topics_text
from judged.stats.results import TEST_NAMES
from judged.stats.sensitivity import sensitivity_sentences
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from judged.comparison.choices import Choices
    from judged.stats.effect import Effects, Equivalence, Wins
    from judged.stats.results import Difference, Posterior
    from judged.stats.sensitivity import Sensitivity
    from judged.stats.sufficiency import Insufficiency

TIMES, SIGNIFICANT, SENSITIVE = "\N{MULTIPLICATION SIGN}", "*", "(*)"


def _difference(digits: int = 4) -> Show:
    return Show(number(digits, "+").write, "float64", number(digits).limit, _difference)


def _ratio(digits: int = 3) -> Show:
    return Show(lambda value: f"{TIMES}{decimal(value, digits)}", "float64", number(digits).write, _ratio)


DIFFERENCE, RATIO = _difference(), _ratio()


class ClaimWording(NamedTuple):
    """Wording for the result of a test; `{winner}`, `{loser}`, and `{measure}` are placeholders."""

    verb_phrase: str  # follows the name of the winner
    letters_legend: str  # leaderboard letters: systems ...
    ahead_legend: str  # leaderboard daggers: this system is ...
    behind_legend: str  # ... or ... the baseline
    inconclusive: str  # sentence for a result that is not significant


_MEAN_WORDING = ClaimWording(
    "is better than {loser} in {measure}",
    "that this system is significantly better than",
    "significantly better",
    "worse than",
    "No significant difference between {winner} and {loser} in {measure}",
)
_WORDING_BY_TEST = {
    "ratio": _MEAN_WORDING._replace(verb_phrase="is better than {loser} in {measure} by the ratio of geometric means"),
    "sign": ClaimWording(
        "wins more topics than {loser} in {measure}",
        "against which this system wins significantly more topics",
        "wins significantly more topics",
        "wins significantly fewer topics than",
        "No significant difference between the numbers of topics won by {winner} and {loser} in {measure}",
    ),
    "wilcoxon": ClaimWording(
        "is favored over {loser} by the signed ranks of the differences in {measure}",
        "over which the signed-rank test significantly favors this system",
        "significantly favored by the signed-rank test",
        "disfavored compared with",
        "The signed ranks of the differences in {measure} do not significantly favor {winner} or {loser}",
    ),
    "nemenyi": ClaimWording(
        "has a better mean rank over topics than {loser} in {measure}",
        "with a significantly worse mean rank over topics than this system",
        "significantly better mean rank over topics",
        "worse than",
        "No significant difference between the mean ranks of {winner} and {loser} in {measure}",
    ),
}


def claim_wording(test: str) -> ClaimWording:
    """Return the wording for the results of a test."""
    return _WORDING_BY_TEST.get(test, _MEAN_WORDING)


def is_test_of_means(test: str) -> bool:
    """Return whether a test compares means, or the ratio of geometric means."""
    return test == "ratio" or test not in _WORDING_BY_TEST


def describe_winner(test: str, winner: str, loser: str, measure: str) -> str:
    """Format the statement that one system is significantly better than another.

    >>> describe_winner("t", "new", "old", "AP"), describe_winner("sign", "new", "old", "AP")
    ('new is better than old in AP', 'new wins more topics than old in AP')
    """
    return f"{winner} {claim_wording(test).verb_phrase.format(loser=loser, measure=measure)}"


@dataclass(frozen=True)
class TopicDifference:
    """Score of the second system minus score of the first on one topic."""

    query_id: str
    difference: float
    first: float
    second: float


@dataclass(frozen=True)
class Pair:
    """Comparison of two systems over the same topics; differences are second minus first."""

    measure: str
    first: str
    second: str
    result: Difference  # difference, test, and interval; significance depends on its `adjusted` p-value
    effects: Effects  # in units of the spread over topics; geometric means: computed from logarithms
    wins: Wins  # numbers of topics on which the second system is higher, equal, and lower
    detectable: float  # mean difference found with 80% power; NaN: unknown, or not a test of means
    equivalence: Equivalence | None  # equivalence test; None without a margin
    gains: tuple[TopicDifference, ...]  # topics with the largest differences in favor of the second system
    losses: tuple[TopicDifference, ...]  # ... and against it
    side: int  # 1: the test favors the second system, -1: the first. The sign of the mean may differ.
    alpha: float  # p-values up to this value are significant
    lower_is_better: bool = False  # whether lower scores of the measure are better
    sharing: int = 1  # number of comparisons that share alpha in `detectable`
    sensitivity: Sensitivity | None = None  # of the verdict to a few topics; None without a verdict on means
    few_topics: tuple[str, ...] = ()  # topics whose uncertain share of all topics could reverse the verdict

    @property
    def adjusted(self) -> float:
        """The p-value that determines significance: the corrected one if there was a correction."""
        return self.result.decisive_p

    @property
    def decisive(self) -> float:
        """`adjusted`; for ``bayes`` the probability that the second system is higher."""
        return self.adjusted if self.result.posterior is None else self.result.posterior.higher

    @property
    def significant(self) -> bool:
        """Whether `adjusted` is at most alpha; for ``bayes``, whether one side has probability >= 1 - alpha / 2.

        Always False with fewer topics than a verdict requires (`judged.stats.sufficiency`).
        """
        return self._passes_threshold and self.insufficiency is None

    @property
    def insufficiency(self) -> Insufficiency | None:
        """Reason why there are too few topics for a verdict, or None."""
        return insufficiency(self.result.n, "verdict")

    @property
    def sensitive(self) -> bool:
        """Whether the verdict depends on a few topics: see `judged.stats.sensitivity`."""
        return self.sensitivity is not None and self.sensitivity.sensitive

    @property
    def mark(self) -> str:
        """Mark of the difference in tables: significant, significant but sensitive to a few topics, or empty."""
        return (SENSITIVE if self.sensitive else SIGNIFICANT) if self.significant else ""

    @property
    def _passes_threshold(self) -> bool:
        if self.result.posterior is not None:
            return max(self.result.posterior.higher, self.result.posterior.lower) >= 1 - self.alpha / 2
        return self.adjusted <= self.alpha * (1 + ROUNDING)

    @property
    def is_ratio(self) -> bool:
        """Whether the systems are compared by the ratio of their geometric means."""
        return self.result.test == "ratio"

    @property
    def shown_difference(self) -> float:
        """Displayed difference: of the means, or the ratio of the geometric means."""
        return math.exp(self.result.difference) if self.is_ratio else self.result.difference

    @property
    def shown_interval(self) -> tuple[float, float] | None:
        """Confidence interval of `shown_difference`, or None."""
        if self.result.interval is None or not all(map(math.isfinite, self.result.interval)):
            return None
        low, high = self.result.interval
        return (math.exp(low), math.exp(high)) if self.is_ratio else (low, high)

    @property
    def interval_agrees(self) -> bool:
        """Whether the interval excludes 0 exactly if the difference is significant; True without an interval."""
        if self.shown_interval is None or self.result.interval is None:
            return True
        low, high = self.result.interval
        return self._passes_threshold == (low > 0 or high < 0)

    @property
    def favored(self) -> str | None:
        """System favored by a significant test. Sign and rank tests may contradict the means."""
        if not self.significant or not self.side:
            return None
        return self.second if (self.side > 0) != self.lower_is_better else self.first

    @property
    def better(self) -> str | None:
        """System that is favored by both the test and the mean, or None."""
        return self.favored if self.side * self.result.difference > 0 else None

    @property
    def won_tied_lost(self) -> tuple[int, int, int]:
        """Topics on which the second system is better, equal, and worse; higher to lower for neutral measures."""
        lost, tied, won = self.wins.losses, self.wins.ties, self.wins.wins
        return (lost, tied, won) if self.lower_is_better else (won, tied, lost)

    def other(self, system: str) -> str:
        """Return the other system of the pair."""
        return self.first if system == self.second else self.second

    def format_p(self, least: float = 0.0095) -> str:
        """Format the decisive p-value: scientific below `least`, else with enough decimals to show the verdict."""
        p, alpha = self.decisive, self.alpha
        if p < least:
            return p_text(p, alpha).removeprefix("= ").replace(" ", "")
        limits = (0.0, alpha) if self.result.posterior is None else (alpha / 2, 1 - alpha / 2)
        return "-" if math.isnan(p) else format_distinct(p, limits, "f", 3)

    @property
    def sentence(self) -> str:
        """Conclusion of the test, effect, topics won and lost, and caveats."""
        result = self.result
        if insufficiency(result.n):
            shared = f"only {topics_text(result.n)}" if result.n else "no topic"
            systems = f"{self.second} and {self.first}"
            return f"{self.measure} was computed for {systems} on {shared}: no conclusion is possible."
        if not self.gains and not self.losses:
            return f"{self.second} and {self.first} have the same {self.measure} on all {result.n} topics."
        if result.posterior is not None:
            verdict = self._posterior_sentence(result.posterior)
        else:
            verdict = self._means_sentence() if is_test_of_means(result.test) else self._topics_test_sentence()
        effect = "" if math.isnan(self.effects.dz) else f"Effect size dz = {self.effects.dz:+.2f}; "
        topics = f"higher on {counted(self.wins.wins, 'topic')}, equal on {self.wins.ties}, lower on {self.wins.losses}"
        caveats = " ".join(self._caveats())
        equivalence = "" if self.equivalence is None else self.equivalence.sentence
        note = f"Note: {result.note}." if result.note else ""
        parts = (verdict, f"{effect}{self.second} is {topics}.", caveats, equivalence, note)
        return " ".join(filter(None, parts))

    def _caveats(self) -> Iterator[str]:
        if self.insufficiency is not None:
            yield self.insufficiency.sentence("topic")
        yield from sensitivity_sentences(self.sensitivity, self.few_topics)

    @property
    def topics_sentence(self) -> str:
        """Topics with the largest differences in either direction."""
        parts = [
            f"in favor of {name}: "
            + ", ".join((f"{topic.query_id} {decimal(abs(topic.difference), 3)}") for topic in topics)
            for name, topics in ((self.second, self.gains), (self.first, self.losses))
            if topics
        ]
        return f"Largest differences {'; '.join(parts)}." if parts else ""

    def _means_sentence(self) -> str:
        evidence = f"{self._difference_text()} over {self.result.n} topics, {self._p_text()}"
        if self.better is not None:
            winner = describe_winner(self.result.test, self.better, self.other(self.better), self.measure)
            return f"{winner}: {evidence}."
        detectable_text = ""
        if not math.isnan(self.detectable):
            correction = f" after correction for {self.sharing} comparisons" if self.sharing > 1 else ""
            detectable_text = f": differences below {decimal(self.detectable, 3)} would often be missed{correction}"
        return (
            f"{self._inconclusive_text()}: {evidence}. This does not mean that the systems are equal{detectable_text}."
        )

    def _topics_test_sentence(self) -> str:
        method = self.result.test
        test_name = "" if self.result.correction == method else f" ({TEST_NAMES.get(method, method)})"
        mean_text = (
            "The test does not compare means. The difference of the means is"
            f" {self._difference_text()} over {self.result.n} topics"
        )
        # Sign and rank tests can favor the system with the lower mean: the sentence must mention that.
        if self.favored is None:
            return f"{self._inconclusive_text()}: {self._p_text()}{test_name}. {mean_text}."
        other = self.other(self.favored)
        contrast = f", so the mean favors {other}" if self.better is None and self.result.difference else ""
        winner = describe_winner(method, self.favored, other, self.measure)
        return f"{winner}: {self._p_text()}{test_name}. {mean_text}{contrast}."

    def _posterior_sentence(self, posterior: Posterior) -> str:
        return (
            f"The probability that {self.second} is higher than {self.first} in {self.measure} is"
            f" {posterior.higher:.1%}: {self._difference_text()} over {self.result.n} topics. {self.second} is"
            f" higher by more than {posterior.rope:g} with probability {posterior.practically_higher:.1%}, and"
            f" lower by more than {posterior.rope:g} with probability {posterior.practically_lower:.1%}."
        )

    def _inconclusive_text(self) -> str:
        template = claim_wording(self.result.test).inconclusive
        return template.format(winner=self.second, loser=self.first, measure=self.measure)

    def _difference_text(self) -> str:
        sign, digits, style = ("/", 3, "") if self.is_ratio else ("-", 4, "+")
        text = f"{self.second} {sign} {self.first} = {decimal(self.shown_difference, digits, style)}"
        if self.shown_interval is None:
            return text
        low, high = (decimal(limit, 3) for limit in self.shown_interval)
        disagreement = (
            ""
            if self.interval_agrees
            else "; the CI and p use different methods and disagree, and p decides significance"
        )
        interval = "CI" if self.result.posterior is None else "credible interval"
        return f"{text} ({format_level(self.result.level)} {interval} [{low}, {high}]{disagreement})"

    def _p_text(self) -> str:
        result = self.result
        if result.adjusted is None or result.correction == "none":
            return f"p {p_text(result.p, self.alpha)}"
        text = f"p {p_text(result.adjusted, self.alpha)}"
        if result.correction == result.test:  # a joint test corrects for its own comparisons
            return f"{text} ({TEST_NAMES.get(result.test, result.test)})"
        return f"{text} after {correction_name(result.correction)} correction"


def pair_columns(pairs: Sequence[Pair]) -> tuple[Column, ...]:
    """Return all numbers of pairs as columns; the difference of geometric means is a ratio."""
    ratio_results = [pair.result if pair.is_ratio else None for pair in pairs]
    log_ratios = [result and result.difference for result in ratio_results]
    log_intervals = [result and result.interval for result in ratio_results]
    columns = [
        *columns_of(pairs, "measure", "first", "second"),
        Column("difference", [pair.shown_difference for pair in pairs], ci=[pair.shown_interval for pair in pairs]),
        Column("log_ratio", log_ratios, NUMBER, ci=log_intervals),
        *columns_of(pairs, "is_ratio", "significant", "better", "adjusted", "detectable", "sensitive", "few_topics"),
        *sensitivity_columns([pair.sensitivity for pair in pairs]),
        *columns_of(pairs, "sentence"),
    ]
    column_names = {column.name for column in columns} | {"interval", "posterior"}
    for attribute in ("result", "effects", "wins", "result.posterior", "equivalence"):
        parts = [*map(attrgetter(attribute), pairs)]
        example = next((part for part in parts if part is not None), None)
        prefix = {"result.posterior": "posterior_", "equivalence": "equivalence_"}.get(attribute, "")
        for name in () if example is None else [prefix + field.name for field in fields(example)]:
            if name not in column_names:
                columns.append(Column(name, [getattr(part, name.removeprefix(prefix), None) for part in parts]))
                column_names.add(name)
    return tuple(columns)


def sensitivity_columns(sensitivities: Sequence[Sensitivity | None]) -> Iterator[Column]:
    """Yield the results of the sensitivity analysis as data columns; null without a verdict on means."""
    for name in ("bounded_p", "bounded_significant", "missed_share", "reversing_difference"):
        yield Column(name, [sensitivity and getattr(sensitivity, name) for sensitivity in sensitivities], only="data")


def verdict_columns(
    pairs: Sequence[Pair | None], differences: Sequence[float], title: str, p_name: str, untested: str = "too few"
) -> tuple[Column, ...]:
    """Return the columns shown for pairs; None is an untested pair."""
    marks = [pair.mark if pair else "" for pair in pairs]
    intervals = [pair and pair.shown_interval for pair in pairs]
    topic_counts = [pair and "-".join(map(str, pair.won_tied_lost)) for pair in pairs]
    show = RATIO if any(pair and pair.is_ratio for pair in pairs) else DIFFERENCE
    return (
        Column("difference", differences, show, title, ci=intervals, mark=marks),
        Column("p", [pair.format_p() if pair else untested for pair in pairs], TEXT, p_name),
        Column("won-tied-lost", topic_counts, TEXT),
        Column("detectable", [pair and pair.detectable for pair in pairs], number(3)),
    )


def topics_table(pairs: Sequence[Pair]) -> Table:
    """Return the topics with the largest differences of each pair."""
    rows = [(pair, topic) for pair in pairs for topic in (*pair.gains, *pair.losses)]
    topics = columns_of([topic for _, topic in rows], "query_id", "difference", "first", "second")
    scores = (replace(column, name=f"{column.name}_value") for column in topics[2:])
    keys = columns_of([pair for pair, _ in rows], "measure", "first", "second")
    return Table("topics", (*keys, *topics[:2], *scores), only="data")


BETTER, WORSE = "\N{DAGGER}", "\N{DOUBLE DAGGER}"


def describe_test(choices: Choices, pairs: Sequence[Pair]) -> str:
    """Describe the test and its number of resamples."""
    resamplings = {(pair.result.resamples, pair.result.exact) for pair in pairs if pair.result.resamples}
    name = JOINT_TESTS.get(choices.test) or f"paired {TEST_NAMES[choices.test]}"
    replaced_count = sum(pair.result.test not in {choices.test, "ratio"} for pair in pairs)
    if replaced_count and replaced_count == len(pairs):
        name = f"paired randomization test instead of {name}"
    elif replaced_count:
        name = f"{name} (paired randomization test for {replaced_count} of {len(pairs)} pairs)"
    if choices.test != "ratio" and any(pair.is_ratio for pair in pairs):
        name += " (geometric means are compared by their ratio)"
    if not resamplings:
        return name
    if all(exact for _, exact in resamplings):
        return f"{name}, exact"
    return f"{name}, {choices.resamples} resamples, seed {choices.seed}"


def describe_correction(choices: Choices, sizes: str, *, several: bool) -> str:
    """Describe the correction and the number of comparisons."""
    scopes = {"all": " over all measures", "measure": " within each measure"}
    count_text = "one comparison" if sizes == "1" else f"{sizes} comparisons"
    count_text += scopes[choices.family] if several else ""
    if choices.test == "bayes":
        return "probabilities are not corrected for the number of comparisons"
    if choices.test in JOINT_TESTS:
        return f"corrected for {count_text}"
    if sizes == "1" or choices.correction == "none":
        only = "one comparison per measure" if several else "only one comparison"
        return f"p not corrected: {only}" if sizes == "1" else f"p not corrected for {count_text}"
    return f"p corrected by {correction_name(choices.correction)} for {count_text}"


def describe_marks(choices: Choices, baseline: str, names: tuple[str, ...]) -> str:
    """Describe the marks of significance in a leaderboard."""
    threshold = f" (probability at least {1 - choices.alpha / 2:g})" if choices.test == "bayes" else ""
    wording = claim_wording(choices.test)
    if choices.baseline is not None:
        return f"{BETTER} {wording.ahead_legend}, {WORSE} {wording.behind_legend} {baseline}{threshold}"
    if len(names) == 2:
        return f"{BETTER} {wording.ahead_legend}{threshold}"
    symbols = "letters" if names[0].isalpha() else "numbers"
    return f"{symbols}: systems {wording.letters_legend}{threshold}"


def describe_intervals(pairs: Sequence[Pair], choices: Choices, family: int) -> str:
    """Describe the confidence level of the intervals of differences, and whether it is simultaneous."""
    levels = sorted({pair.result.level for pair in pairs if pair.shown_interval is not None}, reverse=True)
    if not levels or family < 2 or choices.test == "bayes":
        return ""
    nominal, levels_text = format_level(1 - choices.alpha), " and ".join(format_level(level) for level in levels)
    if choices.test in JOINT_TESTS:
        return f"simultaneous {nominal} CIs"
    if choices.correction == "none":
        return f"{nominal} CIs are not corrected for the number of comparisons"
    if choices.correction in {"bh", "by"}:
        return f"{levels_text} CIs: {nominal} of the CIs that exclude 0 are expected to contain the true difference"
    narrower = f"; later steps of the {correction_name(choices.correction)} procedure use lower CI levels"
    simultaneous = (
        f"{levels_text} CIs: in at least {nominal} of samples, {'both' if family == 2 else f'all {family}'} CIs"
        f" contain the true differences"
    )
    return simultaneous + (narrower if levels[1:] else "")


def mark_legend(pairs: Iterable[Pair], noun: str = "differences") -> str:
    """Describe the marks of significant differences."""
    sensitive_text = f", {SENSITIVE} if sensitive to a few topics" if any(pair.sensitive for pair in pairs) else ""
    return f"significant {noun} are marked {SIGNIFICANT}{sensitive_text}"


def describe_detectable(pairs: Sequence[Pair]) -> str:
    """Describe the meaning of the detectable difference, and its alpha; empty if no pair has one."""
    estimated = [pair for pair in pairs if not math.isnan(pair.detectable)]
    if not estimated:
        return ""
    sharing = max(pair.sharing for pair in estimated)
    alpha_text = f" at the corrected alpha = {estimated[0].alpha:g} / {sharing}" if sharing > 1 else ""
    condition = "if differences on new topics vary as on these topics (less power if rare topics cause the difference)"
    return f"detectable: true difference that is detected with at least 80% power{alpha_text}, {condition}"


def format_range(values: Iterable[int]) -> str:
    """Format one number, or the minimum and maximum of several.

    >>> format_range([48, 48]), format_range([50, 43, 48])
    ('48', '43 to 50')
    """
    distinct = sorted(set(values))
    return str(distinct[0]) if len(distinct) == 1 else f"{distinct[0]} to {distinct[-1]}"
