"""Steps of a chain over topics: the share that passes, its interval, and the share at the end if the step lost nothing.

Within a topic and over all topics, the shares of items that reach each step multiply to the share of all items, as
fractions of counts. Means over topics do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from judged.comparison.slicing.parts import ALL
from judged.errors import InputError
from judged.pipelines.rag.chains import LOST, PASSED, UNITS, UNJUDGED
from judged.pipelines.rag.responses import CONTRADICTS, FAILED, SUPPORT, Responses, middle_verdicts
from judged.pipelines.traces.steps import sufficient_intervals
from judged.results import COUNT, SHARE, TEXT, Answer, Chart, Column, Table, columns_of, counted
from judged.results.types import ReadOnly, cached_property
from judged.stats.correction import adjust
from judged.stats.interval import IntervalMethod
from judged.stats.ratio import RatioDifference, RatioSums, correlation, ratio_difference
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from judged.pipelines.rag.chains import Chain
    from judged.results import Block
    from judged.results.types import Bools, Floats, Ints
    from judged.stats.sufficiency import Insufficiency, Purpose


_UNIT = (0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Share(ReadOnly):
    """Share of items that pass, as a ratio of sums over U independent units."""

    passed: Floats  # (U,) items that pass
    totals: Floats  # (U,) items that reach the step and are judged
    level: float

    @cached_property
    def sums(self) -> RatioSums:
        """Sums over units from which the ratio and its variance are computed."""
        n, d = self.passed[self.totals > 0], self.totals[self.totals > 0]
        return RatioSums(len(d), *map(float, (n.sum(), d.sum(), n @ n, d @ d, n @ d)))

    @property
    def value(self) -> float:
        """The share; NaN if there are no items."""
        return self.sums.value

    def insufficiency(self, purpose: Purpose) -> Insufficiency | None:
        """Return why the units do not support an interval or a verdict; None if they do."""
        # The interval of a share rests on binomial bounds, which need no estimated variance.
        return insufficiency(self.sums.units, purpose, weights=self.totals if self.sums.units else None)

    @property
    def ci(self) -> tuple[float, float] | None:
        """Confidence interval; None if there are too few units."""
        if self.insufficiency("interval"):
            return None
        low, high = self.sums.interval(self.level, share=True, counted=False)
        return None if math.isnan(low) else (low, high)

    def minus(self, other: Share) -> RatioDifference:
        """Return the difference to another share of the same units, without interval or p-value if units are few."""
        products = (float(b @ a) for b in (other.passed, other.totals) for a in (self.passed, self.totals))
        rho = correlation(other.sums, self.sums, *products)
        difference = ratio_difference(other.sums, self.sums, self.level, rho=rho, share=True)
        if self.insufficiency("interval") or other.insufficiency("interval"):
            difference = replace(difference, low=math.nan, high=math.nan)
        is_tested = not (self.insufficiency("verdict") or other.insufficiency("verdict"))
        return difference if is_tested else replace(difference, p=math.nan)


@dataclass(frozen=True)
class ChainStep:
    """One step of a chain, over a set of topics."""

    run: str
    slice: str
    unit: str  # a key of `UNITS`
    step: str  # a key of `STEPS`
    n_reached: int  # items that passed all earlier steps
    n: int  # of these, items that pass this step
    unjudged: int  # of these, items without a verdict
    reappeared: int  # items that are present although an earlier step lost them
    share: Share = field(repr=False)  # n / (n_reached - unjudged)
    lost: Share = field(repr=False)  # of all items at the start: n_reached - unjudged - n
    overall: Share = field(repr=False)  # of all items at the start: the product of the shares up to this step
    lowest: float  # bounds of `overall`, whatever the missing verdicts are
    highest: float
    mean: float  # mean over topics of the shares within topics
    mean_ci: tuple[float, float] | None
    if_perfect: Share = field(repr=False)  # `overall` at the end, if this step lost nothing and later shares stayed


@dataclass(frozen=True)
class Weakest:
    """Step of a chain that loses the most items, and the evidence that every other step loses fewer."""

    step: ChainStep
    final: float  # share of all items that pass all steps
    second: str  # step with the largest p-value in a test against `step`
    p: float  # that p-value; NaN without another step, or with too little data
    insufficiency: Insufficiency | None = None  # reason why it was not tested


class LostItem(NamedTuple):
    """Item that does not pass a step; `is_unjudged` if only a verdict is missing."""

    run: str
    unit: str
    topic: str
    item_id: str
    step: str
    is_unjudged: bool


@dataclass(frozen=True)
class StepDifference:
    """Difference between a step of one system and of the first system, over topics that both have."""

    run: str
    unit: str
    step: str
    share: RatioDifference
    overall: RatioDifference
    p: float  # of `share`, with Holm's correction over all steps and systems


class ChainCounts:
    """Numbers of items of a chain by topic (T), at the start and after each of S steps."""

    def __init__(self, chain: Chain, topics: Sequence[str]) -> None:
        columns = {topic: column for column, topic in enumerate(topics)}
        topic_of_item = np.array([columns[item[0]] for item in chain.items])

        def by_topic(mask: Bools) -> Ints:
            return np.stack([np.bincount(topic_of_item, row, len(topics)) for row in mask]).astype(np.int64)

        has_passed = np.concatenate([np.ones((1, len(topic_of_item)), dtype=np.bool_), chain.cumulative == PASSED])
        self.chain = chain
        self.remaining = by_topic(has_passed)  # (S + 1, T)
        self.unjudged = by_topic(has_passed[:-1] & (chain.cumulative == UNJUDGED))  # (S, T), like the next two
        self.possible = by_topic(chain.cumulative != LOST)
        self.reappeared = by_topic(~has_passed[:-1] & (chain.status == PASSED))

    def steps(self, mask: Bools, units: Ints, level: float, slice_name: str = ALL) -> list[ChainStep]:
        """Estimate each step over the topics of `mask` (T,); `units` (T,): index of the independent unit of a topic."""
        remaining, unjudged = self.remaining[:, mask], self.unjudged[:, mask]
        judged = remaining[:-1] - unjudged
        remaining_by_unit, judged_by_unit = (
            _by_unit(rows, units[mask], int(units.max()) + 1) for rows in (remaining, judged)
        )
        shares = np.where(judged > 0, remaining[1:] / np.maximum(judged, 1), np.nan)
        limits = sufficient_intervals(shares, IntervalMethod(level=level), _UNIT).tolist()
        possible, reappeared = self.possible[:, mask].sum(axis=1), self.reappeared[:, mask].sum(axis=1)
        total, steps = max(int(remaining[0].sum()), 1), list[ChainStep]()
        for i, (n_before, n_after) in enumerate(pairwise(remaining.sum(axis=1).tolist())):
            step_shares = shares[i][~np.isnan(shares[i])]
            bounds = n_after / total, float(possible[i] / total)
            steps.append(
                ChainStep(
                    run=self.chain.run,
                    slice=slice_name,
                    unit=self.chain.unit,
                    step=self.chain.steps[i],
                    n_reached=n_before,
                    n=n_after,
                    unjudged=int(unjudged[i].sum()),
                    reappeared=int(reappeared[i]),
                    share=Share(remaining_by_unit[i + 1], judged_by_unit[i], level),
                    lost=Share(judged_by_unit[i] - remaining_by_unit[i + 1], remaining_by_unit[0], level),
                    overall=_product(remaining_by_unit, judged_by_unit, range(i + 1), level, bounds),
                    lowest=bounds[0],
                    highest=bounds[1],
                    mean=float(step_shares.mean()) if len(step_shares) else math.nan,
                    mean_ci=None if math.isnan(limits[i][0]) else (limits[i][0], limits[i][1]),
                    if_perfect=_product(
                        remaining_by_unit, judged_by_unit, [j for j in range(len(judged)) if j != i], level
                    ),
                )
            )
        return steps


def _by_unit(rows: Ints, units: Ints, size: int) -> Floats:
    return np.stack([np.bincount(units, row, size) for row in rows]).astype(np.float64)


def _product(n: Floats, d: Floats, steps: Iterable[int], level: float, bounds: tuple[float, float] = _UNIT) -> Share:
    """Multiply the shares n[s + 1] / d[s] of steps, with the standard error of the delta method over units."""
    # If nothing is unjudged, the product of the first steps is the share of all items that remain after the last of
    # them. Otherwise an item that is unjudged here may be judged as lost at a later step: `bounds` account for that.
    product, linear_terms = Fraction(1), np.zeros(n.shape[1])
    for step in steps:
        passed, judged = int(n[step + 1].sum()), int(d[step].sum())
        if product and not judged:
            return Share(np.full(n.shape[1], np.nan), n[0], level)
        product *= Fraction(passed, judged) if product else 1
        # Linearization of log(passed / judged): the relative influence of each unit.
        linear_terms += (n[step + 1] - passed / judged * d[step]) / passed if product else 0.0
    return Share(min(max(float(product), bounds[0]), bounds[1]) * (n[0] + linear_terms * n[0].sum()), n[0], level)


def weakest(steps: Sequence[ChainStep]) -> Weakest | None:
    """Find the step that loses the most items, and test it against all others; None if no step loses an item.

    It loses significantly more if all of these tests are significant. The error rate of that decision is at most
    that of one test, although the step was selected from the data (Gutmann and Maymin, Annals of Statistics 1987).
    """
    judged_steps = [step for step in steps if not math.isnan(step.share.value)]
    worst = max(judged_steps, key=lambda step: step.lost.value, default=None)
    if worst is None or worst.share.value == 1:
        return None
    other_steps = [step for step in judged_steps if step is not worst]
    if reason := next(filter(None, (step.lost.insufficiency("verdict") for step in judged_steps)), None):
        return Weakest(worst, steps[-1].overall.value, "", math.nan, reason if other_steps else None)
    tests = [(worst.lost.minus(step.lost).p, step.step) for step in other_steps]
    p, second = max(((1.0 if math.isnan(p) else p, name) for p, name in tests), default=(math.nan, ""))
    return Weakest(worst, steps[-1].overall.value, second, p)


def differences(
    names: Sequence[str], counts: Sequence[ChainCounts], sampling_units: Ints, level: float
) -> Iterator[StepDifference]:
    """Compare each system with the first one, chain by chain."""
    counts_of = {(chain_counts.chain.run, chain_counts.chain.unit): chain_counts for chain_counts in counts}
    rows: list[tuple[ChainStep, RatioDifference, RatioDifference]] = []
    for run, unit in ((run, unit) for run in names[1:] for unit in UNITS):
        first, other = counts_of.get((names[0], unit)), counts_of.get((run, unit))
        if first is not None and other is not None:
            in_both = (first.remaining[0] > 0) & (other.remaining[0] > 0)
            base = {step.step: step for step in first.steps(in_both, sampling_units, level)}
            rows += [
                (step, step.share.minus(base[step.step].share), step.overall.minus(base[step.step].overall))
                for step in other.steps(in_both, sampling_units, level)
                if step.step in base
            ]
    adjusted = adjust([share.p for _, share, _ in rows], "holm") if rows else ()
    for (step, share, overall), p in zip(rows, adjusted, strict=True):
        yield StepDifference(step.run, step.unit, step.step, share, overall, float(p))


_EPOCH, _MS_PER_DAY = date(1970, 1, 1), 86_400_000


@dataclass(frozen=True)
class Period:
    """Support of the sentences of one system in one period."""

    run: str
    begin: date
    n: int  # answers with a sentence
    sentences: int
    unjudged: int  # sentences without a verdict, which are in neither share
    supported: Share  # sentences that a citation or the context supports
    contradicted: Share  # sentences that a citation or the context contradicts, and none supports


@dataclass(frozen=True, eq=False, repr=False)
class SupportOverTime(Answer):
    """Shares of supported and of contradicted sentences, by period.

    Attributes
    ----------
    periods : tuple of Period
        Sorted by system, then by time; periods without a sentence are left out.
    days : int
        Length of a period.
    """

    kind: ClassVar[str] = "support-over-time"

    periods: tuple[Period, ...]
    days: int
    level: float

    @property
    def title(self) -> str:
        """Title of the result."""
        return "Support over time"

    def blocks(self) -> tuple[Block, ...]:
        """Return one row for each system and period, and a chart of the supported share."""
        rows = self.periods
        shares = {name: [getattr(row, name) for row in rows] for name in ("supported", "contradicted")}
        table = Table(
            "periods",
            (
                Column("begin", [row.begin.isoformat() for row in rows], TEXT),
                Column("run", [row.run for row in rows], TEXT, "system"),
                Column("begin_ms", [(row.begin - _EPOCH).days * _MS_PER_DAY for row in rows], COUNT, only="data"),
                *columns_of(rows, ("n", COUNT, "answers"), ("sentences", COUNT), ("unjudged", COUNT)),
                *(Column(name, [share.value for share in values], SHARE, ci=[share.ci for share in values])
                  for name, values in shares.items()),
            ),
            self.title,
            f"each period has {counted(self.days, 'day')}; {100 * self.level:g}% confidence intervals over answers,"
            " for periods with at least 3 answers",
            labels=2,
        )  # fmt: skip
        days = [row.begin for row in rows]
        caption = f"Share of supported sentences among all sentences with a verdict, from {min(days)} to {max(days)}."
        chart = Chart("supported", "Supported sentences", table, caption, "lines", "begin_ms", "supported", color="run",
                      spread="time", percent="y", x_title="period")  # fmt: skip
        return (table, chart)


def support_over_time(
    responses: Any, times: Mapping[str, date | datetime | str], *, days: int = 1, level: float = 0.95
) -> SupportOverTime:
    """Compute the shares of supported and of contradicted sentences by period.

    Parameters
    ----------
    responses
        As for `Responses.of`. Sentences without a verdict are counted separately.
    times
        Time at which each topic was answered: dates, or texts that begin with one, such as ``2026-03-01T10:00``.
        Traces do not record it.
    days
        Length of a period in days; the first one begins on the first day.
    level
        Confidence level of the intervals, over answers.

    Raises
    ------
    InputError
        If a time is not a date, or no topic has both a time and a sentence with a verdict.

    Examples
    --------
    >>> tables = {"answers": [{"query_id": name} for name in "ab"],
    ...           "support": [{"query_id": name, "sentence": 1, "doc_id": "d", "verdict": verdict}
    ...                       for name, verdict in (("a", "support"), ("b", "contradicts"))]}
    >>> support = support_over_time(tables, {"a": "2026-03-01", "b": "2026-03-02"})
    >>> [(str(period.begin), period.supported.value, period.contradicted.value) for period in support.periods]
    [('2026-03-01', 1.0, 0.0), ('2026-03-02', 0.0, 1.0)]
    """
    responses = Responses.of(responses)
    if days < 1:
        raise InputError(f"`days` must be at least 1, got {days}", fix="use 1 or more")
    day_of = {topic: _date_of(topic, time) for topic, time in times.items()}
    verdicts: dict[tuple[Any, ...], set[str]] = {}
    key_columns = ("run_id", "query_id", "sentence")
    for key, verdict in middle_verdicts(responses["support"], *key_columns, "doc_id").items():
        verdicts.setdefault(key[:-1], set()).update({verdict} - {FAILED})
    # By system and period: by topic, the set of verdicts of each sentence.
    answers_of: dict[tuple[int, date], dict[str, list[set[str]]]] = {}
    for key in responses.keys("sentences", *key_columns):
        if (day := day_of.get(key[1])) is not None:
            begin = day - timedelta(days=(day - min(day_of.values())).days % days)
            answers = answers_of.setdefault((responses.run_names.index(key[0]), begin), {})
            answers.setdefault(key[1], []).append(verdicts.get(key, set()))
    if not any(any(sentences) for answers in answers_of.values() for sentences in answers.values()):
        raise InputError(
            "no topic has both a time and a sentence with a verdict",
            fix="pass the time of each topic as `times`, and add a table `support`",
            path=responses.where,
        )
    periods: list[Period] = []
    for (run_index, begin), answers in sorted(answers_of.items(), key=lambda period_answers: period_answers[0]):
        counts = np.array([
            (len(sentences), sum(map(bool, sentences)), sum(SUPPORT in verdicts for verdicts in sentences),
             sum(CONTRADICTS in verdicts and SUPPORT not in verdicts for verdicts in sentences))
            for sentences in answers.values()
        ], dtype=np.float64)  # fmt: skip
        n_sentences, n_judged, *passed_counts = counts.T
        total, unjudged = int(n_sentences.sum()), int((n_sentences - n_judged).sum())
        shares = (Share(passed, n_judged, level) for passed in passed_counts)
        periods.append(Period(responses.run_names[run_index], begin, len(answers), total, unjudged, *shares))
    return SupportOverTime(tuple(periods), days, level)


def _date_of(topic: str, time: date | datetime | str) -> date:
    if isinstance(time, date):
        return time.date() if isinstance(time, datetime) else time
    try:
        return date.fromisoformat(time[:10])
    except ValueError:
        problem = f"the time of topic {topic} must begin with a date, got {time!r}"
        raise InputError(problem, fix="use a date such as 2026-03-01") from None
