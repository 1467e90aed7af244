"""Two systems compared by one measure: the numbers, what they allow to say, and the rules that are said below."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from judged.comparison.choices import MANY
from judged.results import NUMBER, TEXT, Column, Show, Table, columns_of, number
from judged.results.decimals import beside, counted, decimal, p_text
from judged.stats.inputs import ROUNDING, topics_text
from judged.stats.results import TEST_NAMES
from judged.stats.sensitivity import doubts_of
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
_CORRECTIONS = {
    "bonferroni": "Bonferroni",
    "holm": "Holm",
    "hochberg": "Hochberg",
    "bh": "Benjamini-Hochberg",
    "by": "Benjamini-Yekutieli",
}


class Claim(NamedTuple):
    """How a significant test is put into words, of means or of what else it looks at; names stand in braces."""

    verb: str  # what follows the name of the winner
    letters: str  # what the letters of a leaderboard mean: the systems that this one is ...
    ahead: str  # what the signs of a leaderboard mean: this one is ...
    behind: str  # ... or ... the baseline
    open: str  # what is said where nothing is shown


_OF_MEANS = Claim(
    "is better than {loser} in {measure}",
    "significantly better than",
    "significantly better",
    "worse than",
    "No difference between {winner} and {loser} is shown in {measure}",
)
_OTHERS = {
    "ratio": _OF_MEANS._replace(verb="is better than {loser} in {measure} by the ratio of geometric means"),
    "sign": Claim(
        "is ahead of {loser} in {measure} on more topics than it is behind",
        "ahead of on significantly more topics than behind",
        "ahead on significantly more topics",
        "behind on more than",
        "That {winner} or {loser} is ahead in {measure} on more topics than it is behind is not shown",
    ),
    "wilcoxon": Claim(
        "is favoured over {loser} in {measure} by the signed ranks of their differences",
        "favoured over by the signed ranks of differences, significantly",
        "significantly favoured by signed ranks",
        "disfavoured against",
        "That the signed ranks of differences in {measure} favour {winner} or {loser} is not shown",
    ),
    "nemenyi": Claim(
        "has a better mean rank over topics than {loser} in {measure}",
        "significantly better than in its mean rank over topics",
        "significantly better in its mean rank over topics",
        "worse than",
        "No difference between the mean ranks of {winner} and {loser} is shown in {measure}",
    ),
}


def claim_of(test: str) -> Claim:
    """Give the words for what a test shows."""
    return _OTHERS.get(test, _OF_MEANS)


def of_means(test: str) -> bool:
    """Whether a test speaks of the means that stand beside it, or of their ratio."""
    return test == "ratio" or test not in _OTHERS


def shown(test: str, winner: str, loser: str, measure: str) -> str:
    """Say what a significant test shows.

    >>> shown("t", "new", "old", "AP"), shown("sign", "new", "old", "AP")
    ('new is better than old in AP', 'new is ahead of old in AP on more topics than it is behind')
    """
    return f"{winner} {claim_of(test).verb.format(loser=loser, measure=measure)}"


def level_text(level: float) -> str:
    """Write the level of an interval, with as many digits as tell it from 100%.

    >>> level_text(0.95), level_text(1 - 0.05 / 7), level_text(1 - 0.05 / 66)
    ('95%', '99.29%', '99.924%')
    """
    rest = 100 * (1 - level)
    digits = max(0, 1 - math.floor(math.log10(rest) + 1e-9))
    text = f"{100 - rest:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if digits else text}%"


def name_of_correction(correction: str) -> str:
    """Give the name of a correction as it is written in a text."""
    return _CORRECTIONS.get(correction, correction)


@dataclass(frozen=True)
class TopicDifference:
    """The second system's score minus the first's on one topic."""

    query_id: str
    difference: float
    first: float
    second: float


@dataclass(frozen=True)
class Pair:
    """Two systems over the same topics: the second minus the first."""

    measure: str
    first: str
    second: str
    result: Difference  # the difference, its test and its interval; its `adjusted` p-value is the one that decides
    effects: Effects  # against the spread of the topics; those of a geometric mean are of the logarithms
    wins: Wins  # on how many topics which one is ahead
    detectable: float  # the mean difference found four times out of five; NaN: not known, or no test of means
    equivalence: Equivalence | None  # whether the two are surely closer than the margin, where one was given
    gains: tuple[TopicDifference, ...]  # the topics with the largest differences for the second system
    losses: tuple[TopicDifference, ...]  # and against it
    side: int  # 1 where the test sees the second system higher, -1 where lower; the mean may be on another side
    alpha: float  # a p-value up to here is significant
    lower_is_better: bool = False
    sharing: int = 1  # how many comparisons alpha was shared among for `detectable`
    sensitivity: Sensitivity | None = None  # how far the verdict rests on a few topics; None without one on means
    few_topics: tuple[str, ...] = ()  # the topics whose uncertain share of all topics could undo it

    @property
    def adjusted(self) -> float:
        """The p-value that decides: the corrected one where there was a correction."""
        return self.result.decisive_p

    @property
    def decisive(self) -> float:
        """The same; for ``bayes`` the probability that the second system is higher."""
        return self.adjusted if self.result.posterior is None else self.result.posterior.higher

    @property
    def significant(self) -> bool:
        """Whether the deciding p-value is at most alpha; for ``bayes``, whether the belief is as strong.

        Never with fewer topics than a verdict requires (`judged.stats.sufficiency`).
        """
        return self._decides and self.insufficiency is None

    @property
    def insufficiency(self) -> Insufficiency | None:
        """Why there are too few topics for a verdict; None if there are enough."""
        return insufficiency(self.result.n, "verdict")

    @property
    def sensitive(self) -> bool:
        """Whether the verdict is sensitive to a few topics: see `judged.stats.sensitivity`."""
        return self.sensitivity is not None and self.sensitivity.sensitive

    @property
    def mark(self) -> str:
        """What marks the difference in a table: significant, significant but sensitive to a few topics, or nothing."""
        return (SENSITIVE if self.sensitive else SIGNIFICANT) if self.significant else ""

    @property
    def _decides(self) -> bool:
        if self.result.posterior is not None:
            return max(self.result.posterior.higher, self.result.posterior.lower) >= 1 - self.alpha / 2
        return self.adjusted <= self.alpha * (1 + ROUNDING)

    @property
    def is_ratio(self) -> bool:
        """Whether the two are compared by the ratio of their geometric means."""
        return self.result.test == "ratio"

    @property
    def shown_difference(self) -> float:
        """The difference as people read it: of means, or the ratio of geometric means."""
        return math.exp(self.result.difference) if self.is_ratio else self.result.difference

    @property
    def shown_interval(self) -> tuple[float, float] | None:
        """The interval of the same."""
        if self.result.interval is None or not all(map(math.isfinite, self.result.interval)):
            return None
        low, high = self.result.interval
        return (math.exp(low), math.exp(high)) if self.is_ratio else (low, high)

    @property
    def agrees(self) -> bool:
        """Whether the interval, if there is one, leaves out 0 just where the difference is significant."""
        if self.shown_interval is None or self.result.interval is None:
            return True
        low, high = self.result.interval
        return self._decides == (low > 0 or high < 0)

    @property
    def favoured(self) -> str | None:
        """The system for which a significant test speaks; tests of signs and ranks do not speak of the mean."""
        if not self.significant or not self.side:
            return None
        return self.second if (self.side > 0) != self.lower_is_better else self.first

    @property
    def better(self) -> str | None:
        """The system that is favoured, where the mean points to it too; else None."""
        return self.favoured if self.side * self.result.difference > 0 else None

    @property
    def won_tied_lost(self) -> tuple[int, int, int]:
        """On how many topics the second system is better, equal and worse; higher, where neither end is better."""
        lost, tied, won = self.wins.losses, self.wins.ties, self.wins.wins
        return (lost, tied, won) if self.lower_is_better else (won, tied, lost)

    def other(self, system: str) -> str:
        """Give the system that is not this one."""
        return self.first if system == self.second else self.second

    def p_shown(self, least: float = 0.0095) -> str:
        """Write what decides for a table: three decimals, or as many as show the verdict; below `least` as it is."""
        p, alpha = self.decisive, self.alpha
        if p < least:
            return p_text(p, alpha).removeprefix("= ").replace(" ", "")
        limits = (0.0, alpha) if self.result.posterior is None else (alpha / 2, 1 - alpha / 2)
        return "-" if math.isnan(p) else beside(p, limits, "f", 3)

    @property
    def sentence(self) -> str:
        """What may be concluded, and what not."""
        result = self.result
        if insufficiency(result.n):
            some = topics_text(result.n) if result.n else "no topic"
            return f"{self.second} and {self.first} have {some} in common for {self.measure}: nothing can be concluded."
        if not self.gains and not self.losses:
            return f"{self.second} and {self.first} have the same {self.measure} on all {result.n} topics."
        if result.posterior is not None:
            verdict = self._belief(result.posterior)
        else:
            verdict = self._of_means() if of_means(result.test) else self._of_topics()
        effect = "" if math.isnan(self.effects.dz) else f"Effect dz {self.effects.dz:+.2f}; "
        topics = f"higher on {counted(self.wins.wins, 'topic')}, equal on {self.wins.ties}, lower on {self.wins.losses}"
        doubts = " ".join(self._doubts())
        close = "" if self.equivalence is None else self.equivalence.sentence
        note = f"Note: {result.note}." if result.note else ""
        return " ".join(part for part in (verdict, f"{effect}{self.second} is {topics}.", doubts, close, note) if part)

    def _doubts(self) -> Iterator[str]:
        """Say what the verdict rests on, or why there is none."""
        if self.insufficiency is not None:
            yield self.insufficiency.sentence("topic")
        yield from doubts_of(self.sensitivity, self.few_topics)

    @property
    def topics_sentence(self) -> str:
        """The topics with the largest differences each way."""
        parts = [
            f"of {name}: " + ", ".join(f"{topic.query_id} {decimal(abs(topic.difference), 3)}" for topic in topics)
            for name, topics in ((self.second, self.gains), (self.first, self.losses))
            if topics
        ]
        return f"Largest differences in favour {'; '.join(parts)}." if parts else ""

    def _of_means(self) -> str:
        what = f"{self._size()} over {self.result.n} topics, {self._p()}"
        if self.better is not None:
            return f"{shown(self.result.test, self.better, self.other(self.better), self.measure)}: {what}."
        missed = ""
        if not math.isnan(self.detectable):
            many = f" with {self.sharing} comparisons to allow for" if self.sharing > 1 else ""
            missed = f": a difference below {decimal(self.detectable, 3)} would often be missed{many}"
        return f"{self._open()}: {what}. That does not make them equal{missed}."

    def _of_topics(self) -> str:
        """Say what a test of signs or ranks shows, and that this is not the mean."""
        method = self.result.test
        test = self._p() if self.result.correction == method else f"{self._p()} ({TEST_NAMES.get(method, method)})"
        mean = f"The test does not speak of the mean: {self._size()} over {self.result.n} topics"
        if self.favoured is None:
            return f"{self._open()}: {test}. {mean}."
        turned = ", which points the other way" if self.better is None and self.result.difference else ""
        return f"{shown(method, self.favoured, self.other(self.favoured), self.measure)}: {test}. {mean}{turned}."

    def _belief(self, posterior: Posterior) -> str:
        return (
            f"The probability that {self.second} is higher than {self.first} in {self.measure} is"
            f" {posterior.higher:.1%}: {self._size()} over {self.result.n} topics. It is higher by more than"
            f" {posterior.rope:g} with probability {posterior.practically_higher:.1%}, lower by more with"
            f" {posterior.practically_lower:.1%}."
        )

    def _open(self) -> str:
        return claim_of(self.result.test).open.format(winner=self.second, loser=self.first, measure=self.measure)

    def _size(self) -> str:
        sign, digits, style = ("/", 3, "") if self.is_ratio else ("-", 4, "+")
        size = f"{self.second} {sign} {self.first} {decimal(self.shown_difference, digits, style)}"
        if self.shown_interval is None:
            return size
        low, high = (decimal(end, 3) for end in self.shown_interval)
        apart = "" if self.agrees else ", made in another way than p, which decides"
        return f"{size} ({level_text(self.result.level)} interval {low} to {high}{apart})"

    def _p(self) -> str:
        result = self.result
        if result.adjusted is None or result.correction == "none":
            return f"p {p_text(result.p, self.alpha)}"
        p = f"p {p_text(result.adjusted, self.alpha)}"
        if result.correction == result.test:  # the test of many systems allows for them itself
            return f"{p} ({TEST_NAMES.get(result.test, result.test)})"
        return f"{p} after {name_of_correction(result.correction)}"


def pair_columns(pairs: Sequence[Pair]) -> tuple[Column, ...]:
    """Give everything about pairs as columns, each number once; a geometric mean's difference is a ratio."""
    logs = [pair.result if pair.is_ratio else None for pair in pairs]
    ratios, ends = [log and log.difference for log in logs], [log and log.interval for log in logs]
    columns = [
        *columns_of(pairs, "measure", "first", "second"),
        Column("difference", [pair.shown_difference for pair in pairs], ci=[pair.shown_interval for pair in pairs]),
        Column("log_ratio", ratios, NUMBER, ci=ends),
        *columns_of(pairs, "is_ratio", "significant", "better", "adjusted", "detectable", "sensitive", "few_topics"),
        *sensitivity_columns([pair.sensitivity for pair in pairs]),
        *columns_of(pairs, "sentence"),
    ]
    known = {column.name for column in columns} | {"interval", "posterior"}
    for name in ("result", "effects", "wins", "result.posterior", "equivalence"):
        parts = [*map(attrgetter(name), pairs)]
        some = next((part for part in parts if part is not None), None)
        prefix = {"result.posterior": "posterior_", "equivalence": "equivalence_"}.get(name, "")
        for part in () if some is None else [prefix + field.name for field in fields(some)]:
            if part not in known:
                columns.append(Column(part, [getattr(row, part.removeprefix(prefix), None) for row in parts]))
                known.add(part)
    return tuple(columns)


def sensitivity_columns(found: Sequence[Sensitivity | None]) -> Iterator[Column]:
    """Give the numbers behind the label, for data; null where there is no verdict on means."""
    for name in ("bounded_p", "bounded_significant", "missed_share", "reversing_difference"):
        yield Column(name, [some and getattr(some, name) for some in found], only="data")


def verdict_columns(
    pairs: Sequence[Pair | None], differences: Sequence[float], title: str, p_name: str, untested: str = "too few"
) -> tuple[Column, ...]:
    """Give what people see of pairs, and of differences that are not tested: difference, p, topics won, detectable."""
    marks = [pair.mark if pair else "" for pair in pairs]
    ends = [pair and pair.shown_interval for pair in pairs]
    wins = [pair and "-".join(map(str, pair.won_tied_lost)) for pair in pairs]
    show = RATIO if any(pair and pair.is_ratio for pair in pairs) else DIFFERENCE
    return (
        Column("difference", differences, show, title, ci=ends, mark=marks),
        Column("p", [pair.p_shown() if pair else untested for pair in pairs], TEXT, p_name),
        Column("won-tied-lost", wins, TEXT),
        Column("detectable", [pair and pair.detectable for pair in pairs], number(3)),
    )


def topics_table(pairs: Sequence[Pair]) -> Table:
    """Give the topics with the largest differences of each pair."""
    rows = [(pair, topic) for pair in pairs for topic in (*pair.gains, *pair.losses)]
    topics = columns_of([topic for _, topic in rows], "query_id", "difference", "first", "second")
    named = (*topics[:2], *(replace(column, name=f"{column.name}_value") for column in topics[2:]))
    return Table("topics", (*columns_of([pair for pair, _ in rows], "measure", "first", "second"), *named), only="data")


BETTER, WORSE = "\N{DAGGER}", "\N{DOUBLE DAGGER}"


def tested(choices: Choices, pairs: Sequence[Pair]) -> str:
    """Name the test, and how many resamples were drawn."""
    drawn = {(pair.result.resamples, pair.result.exact) for pair in pairs if pair.result.resamples}
    name = MANY.get(choices.test) or f"paired {TEST_NAMES[choices.test]}"
    replaced = sum(pair.result.test not in {choices.test, "ratio"} for pair in pairs)
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
    levels = sorted({pair.result.level for pair in pairs if pair.shown_interval is not None}, reverse=True)
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


def legend(pairs: Iterable[Pair], things: str = "differences") -> str:
    """Say what the marks of differences mean."""
    few = f", {SENSITIVE} if sensitive to a few topics" if any(pair.sensitive for pair in pairs) else ""
    return f"significant {things} are marked {SIGNIFICANT}{few}"


def detectable(pairs: Sequence[Pair]) -> str:
    """Say what a detectable difference is, and at which alpha; nothing, where there is none."""
    known = [pair for pair in pairs if not math.isnan(pair.detectable)]
    if not known:
        return ""
    sharing = max(pair.sharing for pair in known)
    at = f" at alpha = {known[0].alpha:g} / {sharing}, as the correction has it" if sharing > 1 else ""
    as_these = "if other topics differ as these do (less often where it rests on rare topics)"
    return f"detectable: a true difference of this size is found at least four times out of five{at}, {as_these}"


def numbers(values: Iterable[int]) -> str:
    """Write one number, or the least and the greatest of several.

    >>> numbers([48, 48]), numbers([50, 43, 48])
    ('48', '43 to 50')
    """
    known = sorted(set(values))
    return str(known[0]) if len(known) == 1 else f"{known[0]} to {known[-1]}"
