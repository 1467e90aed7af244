"""The steps of a chain over topics: what each passes on, how sure that is, and what it would be worth if it lost none.

Within a topic and over all topics together, the shares of what was given multiply to the share of all, as fractions of
counts. Means over topics do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.comparison.slicing.parts import ALL
from judged.errors import InputError
from judged.pipelines.rag.chains import LOST, PASSED, UNITS, UNJUDGED
from judged.pipelines.rag.responses import CONTRADICTS, FAILED, SUPPORT, Responses, middle_verdicts
from judged.pipelines.traces.steps import sufficient_intervals
from judged.results import COUNT, SHARE, TEXT, Answer, Chart, Column, Table, columns_of
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


_WHOLE = (0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Share(ReadOnly):
    """A share of what came to a step, by what is independent (U,): what passed, and of how much."""

    passed: Floats
    given: Floats
    level: float

    @cached_property
    def sums(self) -> RatioSums:
        """The sums that its interval is made of."""
        n, d = self.passed[self.given > 0], self.given[self.given > 0]
        return RatioSums(len(d), *map(float, (n.sum(), d.sum(), n @ n, d @ d, n @ d)))

    @property
    def value(self) -> float:
        """The share; NaN of nothing."""
        return self.sums.value

    def lacking(self, purpose: Purpose) -> Insufficiency | None:
        """Return why the units do not support an interval or a verdict; None if they do."""
        # The interval of a share rests on binomial bounds, which need no estimated variance.
        return insufficiency(self.sums.units, purpose, weights=self.given if self.sums.units else None)

    @property
    def ci(self) -> tuple[float, float] | None:
        """Its interval; None where there is none."""
        if self.lacking("interval"):
            return None
        low, high = self.sums.interval(self.level, share=True, counted=False)
        return None if math.isnan(low) else (low, high)

    def less(self, other: Share) -> RatioDifference:
        """Return this share less another one of the same units, without an interval or p-value for too few units."""
        products = (float(its @ own) for its in (other.passed, other.given) for own in (self.passed, self.given))
        rho = correlation(other.sums, self.sums, *products)
        made = ratio_difference(other.sums, self.sums, self.level, rho=rho, share=True)
        if self.lacking("interval") or other.lacking("interval"):
            made = replace(made, low=math.nan, high=math.nan)
        return replace(made, p=math.nan) if self.lacking("verdict") or other.lacking("verdict") else made


@dataclass(frozen=True)
class Step:
    """One step of a chain, over some topics."""

    run: str
    slice: str
    unit: str  # what is followed: a key of `UNITS`
    step: str  # a key of `STEPS`
    given: int  # what passed all earlier steps
    n: int  # what of it passes this one
    unjudged: int  # what of it may or may not
    around: int  # what is here although an earlier step lost it
    share: Share = field(repr=False)  # of what was given and is judged
    overall: Share = field(repr=False)  # of all there was at the begin: the product of the shares up to here
    lowest: float  # lowest, highest: what `overall` would be, whatever the missing verdicts are
    highest: float
    mean: float  # over topics, of their own shares
    mean_ci: tuple[float, float] | None
    perfect: Share = field(
        repr=False
    )  # `overall` at the end, if this one lost nothing and later ones kept their shares


@dataclass(frozen=True)
class Weakest:
    """The step of a chain at which most would be gained, and how sure that is."""

    step: Step
    final: float  # what comes through all steps
    second: str  # the step that it is told apart from least
    p: float  # the largest p-value against another step; NaN where there is no other, or too little data
    lacking: Insufficiency | None = None  # why it was not tested


@dataclass(frozen=True)
class StepDifference:
    """One step of one system less that of the first one, over topics that both have."""

    run: str
    unit: str
    step: str
    share: RatioDifference  # of what was given
    overall: RatioDifference  # of all
    p: float  # of `share`, corrected by Holm over all steps and systems


class Counts:
    """A chain counted by topic (T): what is there at the begin and behind each step, and what nobody knows."""

    def __init__(self, chain: Chain, topics: Sequence[str]) -> None:
        place = {topic: at for at, topic in enumerate(topics)}
        of = np.array([place[item[0]] for item in chain.items])

        def by_topic(mask: Bools) -> Ints:
            return np.stack([np.bincount(of, row, len(topics)) for row in mask]).astype(np.int64)

        passed = np.concatenate([np.ones((1, len(of)), dtype=np.bool_), chain.held == PASSED])
        self.chain = chain
        self.alive = by_topic(passed)  # (S + 1, T)
        self.unjudged = by_topic(passed[:-1] & (chain.held == UNJUDGED))  # (S, T), as the following
        self.possible = by_topic(chain.held != LOST)
        self.around = by_topic(~passed[:-1] & (chain.seen == PASSED))

    def steps(self, mask: Bools, units: Ints, level: float, where: str = ALL) -> list[Step]:
        """Estimate each step over some topics (T,); ``units``: the place of each topic among what is independent."""
        alive, unjudged = self.alive[:, mask], self.unjudged[:, mask]
        judged = alive[:-1] - unjudged
        n, d = (_by_unit(rows, units[mask], int(units.max()) + 1) for rows in (alive, judged))
        shares = np.where(judged > 0, alive[1:] / np.maximum(judged, 1), np.nan)
        limits = sufficient_intervals(shares, IntervalMethod(level=level), _WHOLE).tolist()
        possible, around = self.possible[:, mask].sum(axis=1), self.around[:, mask].sum(axis=1)
        total, made = max(int(alive[0].sum()), 1), list[Step]()
        for at, (before, after) in enumerate(pairwise(alive.sum(axis=1).tolist())):
            known = shares[at][~np.isnan(shares[at])]
            bounds = after / total, float(possible[at] / total)
            others = [other for other in range(len(judged)) if other != at]
            made.append(
                Step(
                    run=self.chain.run,
                    slice=where,
                    unit=self.chain.unit,
                    step=self.chain.steps[at],
                    given=before,
                    n=after,
                    unjudged=int(unjudged[at].sum()),
                    around=int(around[at]),
                    share=Share(n[at + 1], d[at], level),
                    overall=_product(n, d, range(at + 1), level, bounds),
                    lowest=bounds[0],
                    highest=bounds[1],
                    mean=float(known.mean()) if len(known) else math.nan,
                    mean_ci=None if math.isnan(limits[at][0]) else (limits[at][0], limits[at][1]),
                    perfect=_product(n, d, others, level),
                )
            )
        return made


def _by_unit(rows: Ints, units: Ints, size: int) -> Floats:
    return np.stack([np.bincount(units, row, size) for row in rows]).astype(np.float64)


def _product(n: Floats, d: Floats, steps: Iterable[int], level: float, bounds: tuple[float, float] = _WHOLE) -> Share:
    """Multiply the shares of steps, with the error over units that the delta method gives a product."""
    # Where nothing is unjudged, that of the first steps is what is there behind the last of them, of what there was at
    # the begin. Else an item without a verdict here may be known to fail later: the bounds know, and are kept to.
    value, off = Fraction(1), np.zeros(n.shape[1])
    for step in steps:
        passed, given = int(n[step + 1].sum()), int(d[step].sum())
        if value and not given:
            return Share(np.full(n.shape[1], np.nan), n[0], level)
        value *= Fraction(passed, given) if value else 1
        off += (n[step + 1] - passed / given * d[step]) / passed if value else 0.0
    return Share(min(max(float(value), bounds[0]), bounds[1]) * (n[0] + off * n[0].sum()), n[0], level)


def weakest(steps: Sequence[Step]) -> Weakest | None:
    """Name the step with the lowest share, and test it against each other one; None where nothing is lost.

    It is shown to be the lowest if each of these tests finds so: whatever was chosen, it is then named in error no more
    often than one test alone errs (Gutmann and Maymin, Annals of Statistics 1987).
    """
    known = [step for step in steps if not math.isnan(step.share.value)]
    worst = min(known, key=lambda step: step.share.value, default=None)
    if worst is None or worst.share.value == 1:
        return None
    others = [step for step in known if step is not worst]
    if lacking := next((why for step in known if (why := step.share.lacking("verdict"))), None):
        return Weakest(worst, steps[-1].overall.value, "", math.nan, lacking if others else None)
    tests = [(worst.share.less(step.share).p, step.step) for step in others]
    p, second = max(((1.0 if math.isnan(p) else p, name) for p, name in tests), default=(math.nan, ""))
    return Weakest(worst, steps[-1].overall.value, second, p)


def differences(names: Sequence[str], counts: Sequence[Counts], units: Ints, level: float) -> Iterator[StepDifference]:
    """Set each system against the first one, chain by chain."""
    of = {(one.chain.run, one.chain.unit): one for one in counts}
    found: list[tuple[Step, RatioDifference, RatioDifference]] = []
    for run, unit in ((run, unit) for run in names[1:] for unit in UNITS):
        first, other = of.get((names[0], unit)), of.get((run, unit))
        if first is not None and other is not None:
            both = (first.alive[0] > 0) & (other.alive[0] > 0)
            base = {step.step: step for step in first.steps(both, units, level)}
            found += [
                (step, step.share.less(base[step.step].share), step.overall.less(base[step.step].overall))
                for step in other.steps(both, units, level)
                if step.step in base
            ]
    adjusted = adjust([share.p for _, share, _ in found], "holm") if found else ()
    for (step, share, overall), p in zip(found, adjusted, strict=True):
        yield StepDifference(step.run, step.unit, step.step, share, overall, float(p))


_MS = 86_400_000


@dataclass(frozen=True)
class Period:
    """What one system said in one period."""

    run: str
    begin: date
    n: int  # answers with a sentence
    sentences: int
    unjudged: int  # sentences without any verdict: they are in neither share
    supported: Share  # sentences that a citation or the context supports
    contradicted: Share  # sentences that one contradicts, and none supports


@dataclass(frozen=True, eq=False, repr=False)
class SupportOverTime(Answer):
    """The share of sentences that are supported, and that are contradicted, by period.

    Attributes
    ----------
    periods : tuple of Period
        System by system, in the order of time; those without a sentence are left out.
    days : int
        How long each is.
    """

    kind: ClassVar[str] = "support-over-time"

    periods: tuple[Period, ...]
    days: int
    level: float

    @property
    def title(self) -> str:
        """What changes."""
        return "Support over time"

    def blocks(self) -> tuple[Block, ...]:
        """Give one row a system and period, and draw the share that is supported."""
        rows = self.periods
        made = {name: [getattr(row, name) for row in rows] for name in ("supported", "contradicted")}
        table = Table(
            "periods",
            (
                Column("begin", [row.begin.isoformat() for row in rows], TEXT),
                Column("run", [row.run for row in rows], TEXT, "system"),
                Column("begin_ms", [(row.begin - date(1970, 1, 1)).days * _MS for row in rows], COUNT, only="data"),
                *columns_of(rows, ("n", COUNT, "answers"), ("sentences", COUNT), ("unjudged", COUNT)),
                *(Column(name, [share.value for share in shares], SHARE, ci=[share.ci for share in shares])
                  for name, shares in made.items()),
            ),
            self.title,
            f"periods of {self.days} days; {100 * self.level:g}% intervals over answers, from 3 of them",
            labels=2,
        )  # fmt: skip
        said = (
            f"From {min(row.begin for row in rows)} to {max(row.begin for row in rows)}, of sentences with a verdict."
        )
        chart = Chart("supported", "Supported sentences", table, said, "lines", "begin_ms", "supported", color="run",
                      spread="time", percent="y", x_title="period")  # fmt: skip
        return (table, chart)


def support_over_time(
    responses: Any, times: Mapping[str, date | datetime | str], *, days: int = 1, level: float = 0.95
) -> SupportOverTime:
    """Give the shares of supported and of contradicted sentences by period.

    Parameters
    ----------
    responses
        What `Responses.of` takes. What no verdict is known of is counted beside.
    times
        When each topic was answered: dates, or texts that begin with one, such as ``2026-03-01T10:00``. Traces say how
        long a stage took, not when.
    days
        How long a period is; the first one begins on the first day.
    level
        Of the intervals, over answers.

    Raises
    ------
    InputError
        If a time is no date, or no sentence has both a time and a verdict.

    Examples
    --------
    >>> given = {"answers": [{"query_id": name} for name in "ab"],
    ...          "support": [{"query_id": name, "sentence": 1, "doc_id": "d", "verdict": verdict}
    ...                      for name, verdict in (("a", "support"), ("b", "contradicts"))]}
    >>> made = support_over_time(given, {"a": "2026-03-01", "b": "2026-03-02"})
    >>> [(str(period.begin), period.supported.value, period.contradicted.value) for period in made.periods]
    [('2026-03-01', 1.0, 0.0), ('2026-03-02', 0.0, 1.0)]
    """
    given = Responses.of(responses)
    if days < 1:
        raise InputError(f"periods of {days} days", fix="one day or more")
    day_of = {topic: _day(topic, time) for topic, time in times.items()}
    verdicts: dict[tuple[Any, ...], set[str]] = {}
    key = ("run_id", "query_id", "sentence")
    for place, verdict in middle_verdicts(given["support"], *key, "doc_id").items():
        verdicts.setdefault(place[:-1], set()).update({verdict} - {FAILED})
    said: dict[tuple[int, date], dict[str, list[set[str]]]] = {}
    for place in given.keys("sentences", *key):
        if (day := day_of.get(place[1])) is not None:
            begin = day - timedelta(days=(day - min(day_of.values())).days % days)
            answers = said.setdefault((given.run_names.index(place[0]), begin), {})
            answers.setdefault(place[1], []).append(verdicts.get(place, set()))
    if not any(known for answers in said.values() for one in answers.values() for known in one):
        raise InputError("no sentence has a time and a verdict", fix="give times by topic, and a table support",
                         path=given.where)  # fmt: skip
    made: list[Period] = []
    for (run, begin), answers in sorted(said.items(), key=lambda item: item[0]):
        counts = np.array([
            (len(answer), sum(map(bool, answer)), sum(SUPPORT in one for one in answer),
             sum(CONTRADICTS in one and SUPPORT not in one for one in answer))
            for answer in answers.values()
        ], dtype=np.float64)  # fmt: skip
        sentences, judged, *shares = counts.T
        total, unjudged = int(sentences.sum()), int((sentences - judged).sum())
        passed = (Share(some, judged, level) for some in shares)
        made.append(Period(given.run_names[run], begin, len(answers), total, unjudged, *passed))
    return SupportOverTime(tuple(made), days, level)


def _day(topic: str, time: date | datetime | str) -> date:
    if isinstance(time, date):
        return time.date() if isinstance(time, datetime) else time
    try:
        return date.fromisoformat(time[:10])
    except ValueError:
        raise InputError(f"the time of {topic} is {time!r}", fix="write a date, such as 2026-03-01") from None
