"""Scores by slice as an answer: a row per slice, means over all topics, and which slices differ from the others."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from judged.comparison.pair import BETTER, TIMES, WORSE
from judged.comparison.slicing.parts import ALL, FEW, MOST_INTERVALS, PartEstimate, ScoresOfParts, value_column
from judged.errors import InputError
from judged.results import ANY, CHANGE, COUNT, SHARE, YES_NO, Column, Table, columns_of, counted
from judged.results.blocks import first_few
from judged.results.decimals import decimal, p_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.comparison.slicing.topic_slices import Slicing
    from judged.results.blocks import Note
    from judged.stats.slice_differences import AgainstRest

MOST = 6  # slices named in one sentence
TOPIC_MEAN, MEAN_OF_SLICES = "topic mean", "mean of slices"
_RUNS = 3  # of more, only the first and the count are told


@dataclass(frozen=True, kw_only=True)
class SliceEstimate(PartEstimate):
    """One number: a measure of a run over the topics of a slice that have a score, and against all other topics."""

    share: float = math.nan  # of all topics that are in it
    weight: float = math.nan  # the share of the first weights that its topics have; NaN without weights
    # its mean against that of the other topics, of logarithms for a geometric mean; None where it was not tested
    rest: AgainstRest | None = None
    adjusted: float = math.nan  # the p-value of this test, corrected for all the tests of the call
    significant: bool = False  # whether the slice differs: `adjusted` is at most alpha, and the interval excludes 0
    # whether the slice is the better side; None where it does not differ, or the measure has no better side
    better: bool | None = None

    @property
    def mark(self) -> str:
        """Whether it is better or worse than the other topics."""
        return "" if self.better is None else BETTER if self.better else WORSE


@dataclass(frozen=True, kw_only=True)
class Average(SliceEstimate):
    """All topics of a run as one number, in one of several ways."""

    # `topic mean`: every topic counts the same. `mean of slices`: every slice that is not small does. `traffic-weighted
    # mean` and the like: every topic counts by its weight. `weighted by relevant documents`: every relevant document
    # counts the same.
    effective: float  # as many topics of equal weight would give a mean as sure


@dataclass(frozen=True, eq=False, repr=False)
class SlicedScores(ScoresOfParts[SliceEstimate]):
    """What `by_slice` returns: scores of slices, ways to average over them, and which slices differ from the others.

    Attributes
    ----------
    scores : Scores
        Of all topics.
    estimates : tuple of SliceEstimate
        By slice, run and measure; ``all topics`` first, small slices last.
    method : IntervalMethod
        How intervals were made.
    slicing : Slicing
        Of the same topics.
    averages : tuple of Average
        By way, run and measure.
    tests : int
        How many slices, runs and measures share alpha (Holm) in tests against the other topics.
    weights : tuple of str
        The names of the weights.
    notes : tuple of Note

    Examples
    --------
    >>> from judged import evaluate, slice_topics
    >>> from judged.comparison.slicing import by_slice
    >>> qrels = {"a": {"d": 1}, "b": {"d": 1}, "c": {"d": 1}}
    >>> scores = evaluate(qrels, {"a": ["d"], "b": ["x", "d"], "c": ["d"]}, "RR")
    >>> kinds = slice_topics({"a": {"kind": "law"}, "b": {"kind": "news"}, "c": {"kind": "law"}}, "kind", min_topics=1)
    >>> found = by_slice(scores, kinds, ci="none")
    >>> found.value("kind=law"), found.value("kind=news"), found.average("mean of slices").value
    (1.0, 0.5, 0.75)
    """

    kind: ClassVar[str] = "slices"
    part: ClassVar[str] = "slice"
    known: ClassVar[tuple[str, ...]] = ("share", "weight")

    slicing: Slicing
    averages: tuple[Average, ...]
    tests: int
    weights: tuple[str, ...]
    notes: tuple[Note, ...] = ()

    @property
    def findings(self) -> tuple[SliceEstimate, ...]:
        """The estimates of slices that were tested against the other topics: all that are not small."""
        return tuple(row for row in self.estimates if row.rest is not None)

    def average(self, name: str = TOPIC_MEAN, run: str | None = None, measure: str | None = None) -> Average:
        """Give one way to average; the first run and measure, if none is named.

        Raises
        ------
        InputError
            If it was not made: there is no mean of slices that overlap.
        """
        pair = self.named(run, measure)
        ways = {row.part: row for row in self.averages if (row.run, row.measure) == pair}
        if name not in ways:
            fix = f"use one of {', '.join(ways)}" if ways else "take a measure that is a mean"
            raise InputError(f"no {name} was made", fix=fix)
        return ways[name]

    def shown_of(self, run: str, measure: str) -> Sequence[SliceEstimate]:
        """Give the slices, and below them the ways to average; empty where a measure has no mean."""
        ways = {row.part: replace(row, value=math.nan, ci=None) for row in self.averages if row.part != TOPIC_MEAN}
        made = {row.part: row for row in self.averages if (row.run, row.measure) == (run, measure)}
        return [*self.estimates_of(run, measure), *(made.get(way, row) for way, row in ways.items())]

    def about(self, rows: Sequence[SliceEstimate]) -> tuple[Column, ...]:
        """Give how many topics slices have, and which shares of topics and weights."""
        weights = (("weight", SHARE, f"of {name}") for name in self.weights[:1])
        return columns_of(rows, ("size", COUNT, "topics"), ("share", SHARE), *weights)

    def data(self) -> tuple[Table, ...]:
        """Give all numbers with their tests, the averages, and the slices."""
        rows, averages = self.estimates, self.averages
        (results,) = super().data()
        tests = (
            *rest_columns([row.rest for row in rows]),
            *columns_of(rows, "adjusted"),
            Column("significant", [row.rest and row.significant for row in rows], YES_NO),
            *columns_of(rows, "better"),
        )
        names = Column("name", [row.part for row in averages])
        known = columns_of(averages, "run", "measure"), columns_of(averages, "n", "effective")
        ways = Table("averages", (names, *known[0], value_column(averages), *known[1]), only="data")
        return replace(results, columns=(*results.columns, *tests)), ways, self.slicing.table()

    def facts(self) -> dict[str, Any]:
        """Give how intervals were made, whether slices overlap, the weights, and the number of tests."""
        overlap = not self.slicing.disjoint
        return {"ci": vars(self.method), "overlap": overlap, "weights": self.weights, "tests": self.tests}

    @property
    def caption(self) -> str:
        """What the marks and the intervals mean."""
        parts: list[str] = []
        if self.tests:
            sides = {row.better for row in self.findings}
            words = {True: f"{BETTER} significantly better", False: f"{WORSE} significantly worse"}
            marks = ", ".join(word for side, word in words.items() if side in sides) or "no slice is better or worse"
            test = "permutation" if any(row.rest and row.rest.resamples for row in self.findings) else "Welch"
            corrected = f", p corrected by Holm for {self.tests} tests" if self.tests > 1 else ""
            rule = f"{test} test{corrected}, alpha = {1 - self.method.level:g}"
            parts.append(f"{marks} than the other topics ({rule})")
        if self.slicing.small.any():
            parts.append(f"{FEW}: fewer topics than the slice is judged by, not tested")
        words = self.scores.interval_words(self.method)
        runs = len(self.scores.runs)
        wide = (runs if runs > 1 else len(self.scores.measures)) > MOST_INTERVALS
        left_out = f"no intervals beside more than {MOST_INTERVALS} columns of numbers: CSV and JSON have them"
        return "; ".join([*parts, *([left_out if wide else f"[{words}]"] if words else [])])

    @property
    def sentences(self) -> tuple[str, ...]:
        """Which slices differ from the other topics, and how the ways to average differ."""
        return (*(text for _, text in self.differing()), *self._averaging(), *too_few(self.slicing))

    def differing(self) -> Iterator[tuple[SliceEstimate | None, str]]:
        """Give the worst and the best slice of each run and measure, where that is more than luck, and what it says."""
        apart = [row for row in self.findings if row.significant]
        runs = self.scores.run_names
        for run in runs[:_RUNS]:
            for measure in self.scores.measures:
                sign = -1 if measure.properties.higher_is_better is False else 1
                rows = [row for row in apart if (row.run, row.measure) == (run, str(measure))]
                rows.sort(key=lambda row: sign * row.value)
                worse, better = ([row for row in rows if row.better is side] for side in (False, True))
                if worse:
                    yield worse[0], self._standing(worse[0], "worse", "worst")
                if better and not (worse and self._opposite(worse[0], better[-1])):
                    yield better[-1], self._standing(better[-1], "better", "best")
                for row in (row for row in rows if row.better is None and row.rest):
                    yield row, self._standing(row, "higher" if row.rest and row.rest.difference > 0 else "lower")
        if len(runs) > _RUNS and apart:
            of = f"{len({row.run for row in apart})} of the {len(runs)} runs"
            yield None, f"For {of}, some slice differs from the other topics: the tables mark them."
        if self.tests and not apart:
            tests = "one test" if self.tests == 1 else f"{self.tests} tests, Holm"
            yield None, f"No slice is shown to differ from the other topics ({tests}). That does not make them alike."

    def _opposite(self, first: SliceEstimate, second: SliceEstimate) -> bool:
        """Whether two slices make up all topics, those without a score aside: one test, told once."""
        apart = not (self.slicing.mask(first.part) & self.slicing.mask(second.part)).any()
        return apart and first.rest is not None and first.rest.n_rest == second.n

    def _standing(self, row: SliceEstimate, word: str, end: str = "") -> str:
        """Set a slice against the other topics."""
        rest = row.rest
        if rest is None:
            return ""
        rows = (other for other in self.estimates_of(row.run, row.measure) if not other.small)
        alike = [other.value for other in rows if other.part != ALL]
        extreme = end and len(alike) > 2 and row.value == (min(alike) if rest.difference < 0 else max(alike))
        gap, low, high = (
            f"{TIMES}{decimal(math.exp(value), 3)}" if row.aggregate == "geometric mean" else decimal(value, 3, "+")
            for value in (rest.difference, *(rest.interval or (math.nan, math.nan)))
        )
        level = self.method.level
        after = f" after Holm over {self.tests} tests" if self.tests > 1 else ""
        return (
            f"{row.run}: `{row.part}`{f', the {end} slice,' if extreme else ''} is {word} than the other topics in"
            f" {row.measure}: {decimal(row.value, 3)} over {counted(rest.n, 'topic')}, {gap} against the other"
            f" {rest.n_rest} ({level:.0%} interval {low} to {high}), p {p_text(row.adjusted, 1 - level)}{after}."
        )

    def _averaging(self) -> Iterator[str]:
        """Put the ways to average of the first run and measure beside one another."""
        run, measure = next(((row.run, row.measure) for row in self.averages), ("", ""))
        rows = [row for row in self.averages if (row.run, row.measure) == (run, measure)]
        ways = {row.part: decimal(row.value) for row in rows if not math.isnan(row.value)}  # a slice may lack scores
        if len(set(ways.values())) > 1:
            large = f"mean of the {int((~self.slicing.small).sum())} slices that have enough topics"
            said = ", ".join(f"{large if way == MEAN_OF_SLICES else way} {value}" for way, value in ways.items())
            yield f"Each average answers another question ({run}, {measure}): {said}."
        if not self.slicing.disjoint:
            yield f"Slices overlap: there is no {MEAN_OF_SLICES}, only the {TOPIC_MEAN}."


def rest_columns(tests: Sequence[AgainstRest | None]) -> tuple[Column, ...]:
    """Give the numbers of slices against all other topics."""
    names = {"statistic": "rest_statistic", "p": "rest_p", "n_rest": "rest_topics", "resamples": "rest_resamples"}
    values = [test and test.difference for test in tests]
    return (
        Column("rest_difference", values, CHANGE, ci=[test and test.interval for test in tests]),
        *(Column(name, [getattr(test, part, None) for test in tests], ANY) for part, name in names.items()),
    )


def too_few(slicing: Slicing) -> Iterator[str]:
    """Say which slices have fewer topics than they are judged by."""
    small = [
        f"`{part.name}` {n} of {part.min_topics}"
        for part, n in zip(slicing.slices, slicing.n.tolist(), strict=True)
        if n < part.min_topics
    ]
    if small:
        what, them = ("slice has", "it is") if len(small) == 1 else ("slices have", "they are")
        named = first_few(small, MOST)
        yield f"{len(small)} {what} fewer topics than needed ({named}): {them} shown, and not tested."
