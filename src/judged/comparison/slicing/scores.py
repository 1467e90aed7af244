"""Scores by slice, ways to average over topics, and differences between slices and the other topics."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from judged.comparison.pair import BETTER, TIMES, WORSE
from judged.comparison.slicing.class_measures import NO_AVERAGE
from judged.comparison.slicing.parts import ALL, FEW, MAX_INTERVAL_COLUMNS, PartEstimate, PartScores, value_column
from judged.errors import InputError
from judged.results import (
    ANY,
    CHANGE,
    COUNT,
    P_VALUE,
    SHARE,
    TEXT,
    YES_NO,
    Axis,
    Column,
    Headline,
    Table,
    columns_of,
    counted,
    number,
)
from judged.results.blocks import first_few
from judged.results.decimals import decimal, p_text
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.comparison.slicing.topic_slices import Slicing
    from judged.results import Status
    from judged.results.blocks import Note
    from judged.stats.slice_differences import AgainstRest

MAX_NAMES = 6  # slices listed in one sentence
TOPIC_MEAN, MEAN_OF_SLICES = "topic mean", "mean of slices"
_MAX_RUNS = 3  # with more runs, sentences cover the first ones only


@dataclass(frozen=True, kw_only=True)
class SliceEstimate(PartEstimate):
    """Value of a measure for a run on one slice, and its test against all other topics."""

    share: float = math.nan  # share of all topics
    weight: float = math.nan  # share of the total weight, by the first weights; NaN without weights
    # mean of the slice minus mean of the other topics, of logarithms for geometric means; None: not tested
    contrast: AgainstRest | None = None
    adjusted: float = math.nan  # p-value of `contrast`, corrected over all tests of the call
    significant: bool = False  # `adjusted` is at most alpha, and the interval excludes 0
    better: bool | None = None  # whether the slice is better than the rest; None: no difference, or neutral measure

    @property
    def difference(self) -> float:
        """Mean of the slice minus mean of the other topics, of logarithms for geometric means; NaN without a test."""
        return math.nan if self.contrast is None else self.contrast.difference

    @property
    def interval(self) -> tuple[float, float] | None:
        """Confidence interval of the difference; None without a test."""
        return self.contrast and self.contrast.interval

    @property
    def mark(self) -> str:
        """Dagger if the slice is better or worse than the other topics."""
        return "" if self.better is None else BETTER if self.better else WORSE


@dataclass(frozen=True, kw_only=True)
class TopicAverage(SliceEstimate):
    """Value over all topics of a run, averaged in one of several ways."""

    # `topic mean`: equal weight per topic. `mean of slices`: equal weight per slice that is not small.
    # `traffic-weighted mean` etc.: topics by weight. `weighted by relevant documents`: equal weight per document.
    effective: float  # effective number of topics (Kish)


@dataclass(frozen=True, eq=False, repr=False)
class SlicedScores(PartScores[SliceEstimate]):
    """Result of `by_slice`: scores of slices, averages over topics, and slices that differ from the other topics.

    Attributes
    ----------
    scores : Scores
        Scores of all topics.
    estimates : tuple of SliceEstimate
        By slice, run, and measure; ``all topics`` first, small slices last. If slices have their own measures, only
        these, without ``all topics``.
    method : IntervalMethod
        Method of the intervals.
    slicing : Slicing
        Slices of the same topics.
    averages : tuple of TopicAverage
        By kind of average, run, and measure.
    tests : int
        Number of tests against the other topics that share alpha (Holm), over slices, runs, and measures.
    weights : tuple of str
        Names of the weights.
    notes : tuple of Note

    Examples
    --------
    >>> from judged import evaluate, slice_topics
    >>> from judged.comparison.slicing import by_slice
    >>> qrels = {"a": {"d": 1}, "b": {"d": 1}, "c": {"d": 1}}
    >>> scores = evaluate(qrels, {"a": ["d"], "b": ["x", "d"], "c": ["d"]}, "RR")
    >>> kinds = slice_topics({"a": {"kind": "law"}, "b": {"kind": "news"}, "c": {"kind": "law"}}, "kind", min_topics=1)
    >>> result = by_slice(scores, kinds, ci="none")
    >>> result.value("kind=law"), result.value("kind=news"), result.average("mean of slices").value
    (1.0, 0.5, 0.75)
    """

    kind: ClassVar[str] = "slices"
    part: ClassVar[str] = "slice"
    part_columns: ClassVar[tuple[str, ...]] = ("share", "weight")

    slicing: Slicing
    averages: tuple[TopicAverage, ...]
    tests: int
    weights: tuple[str, ...]
    notes: tuple[Note, ...] = ()

    @property
    def tested(self) -> tuple[SliceEstimate, ...]:
        """Estimates of the slices that were tested against the other topics."""
        return tuple(row for row in self.estimates if row.contrast is not None)

    def average(self, name: str = TOPIC_MEAN, run: str | None = None, measure: str | None = None) -> TopicAverage:
        """Return one of the averages, by default for the first run and measure.

        Raises
        ------
        InputError
            If the average does not exist, such as the mean of slices that overlap.
        """
        pair = self.run_and_measure(run, measure)
        averages = {row.part: row for row in self.averages if (row.run, row.measure) == pair}
        if name not in averages:
            fix = use_one_of(averages) if averages else "use a measure that is averaged over topics"
            raise InputError(f"no average {name!r}", fix=fix)
        return averages[name]

    @property
    def by_class(self) -> bool:
        """Whether slices have their own measures."""
        return bool(self.slicing.class_measures)

    def displayed_estimates(self, run: str, measure: str) -> Sequence[SliceEstimate]:
        """Return the slices and the averages; averages without a value for this measure are empty rows."""
        if self.by_class:
            return [row for row in self.estimates if row.run == run]
        empty = {row.part: replace(row, value=math.nan, ci=None) for row in self.averages if row.part != TOPIC_MEAN}
        averages = {row.part: row for row in self.averages if (row.run, row.measure) == (run, measure)}
        return [*self.estimates_of(run, measure), *(averages.get(name, row) for name, row in empty.items())]

    def part_info(self, rows: Sequence[SliceEstimate]) -> tuple[Column, ...]:
        """Return the number of topics of each slice, and its shares of topics and weight."""
        weights = (("weight", SHARE, f"of {name}") for name in self.weights[:1])
        measure = [("measure", TEXT)] if self.by_class else []
        return columns_of(rows, *measure, ("size", COUNT, "topics"), ("share", SHARE), *weights)

    def data(self) -> tuple[Table, ...]:
        """Return the data tables of estimates with their tests, of averages, and of slices."""
        rows, averages = self.estimates, self.averages
        (results,) = super().data()
        tests = (
            *rest_columns([row.contrast for row in rows]),
            *columns_of(rows, "adjusted"),
            Column("significant", [row.contrast and row.significant for row in rows], YES_NO),
            *columns_of(rows, "better"),
        )
        names = Column("name", [row.part for row in averages])
        columns = columns_of(averages, "run", "measure"), columns_of(averages, "n", "effective")
        average_table = Table("averages", (names, *columns[0], value_column(averages), *columns[1]), only="data")
        return replace(results, columns=(*results.columns, *tests)), average_table, self.slicing.table()

    def facts(self) -> dict[str, Any]:
        """Return the interval method, whether slices overlap, the weights, and the number of tests."""
        overlap = not self.slicing.disjoint
        return {"ci": vars(self.method), "overlap": overlap, "weights": self.weights, "tests": self.tests}

    @property
    def headline(self) -> Headline | None:
        """The weakest slice of the first run and measure, by its test against the other topics."""
        run, measure = self.run_and_measure(None, None)
        rows = [row for row in self.tested if (row.run, row.measure) == (run, measure) and not math.isnan(row.value)]
        if not rows:
            return Headline("unknown", "not tested", "No slice was tested against the other topics.")
        sign = -1 if self.scores.measures[0].properties.higher_is_better is False else 1
        row = min(rows, key=lambda row: (row.better is not False, sign * row.value))
        comparison = f"{row.part} than on the other topics (p {p_text(row.adjusted, 1 - self.method.level)})"
        status, word = "same", "none significantly weak"
        sentence = f"No slice is significantly worse than the other topics; the lowest is {row.part}."
        if row.better is not None:
            status, word = ("better", "better slice") if row.better else ("worse", "weak slice")
            sentence = f"{run} is significantly {status} on {comparison}."
        elif row.significant:  # a measure without a better end
            status, word = "info", "slices differ"
            sentence = f"{run} is significantly {'higher' if row.difference > 0 else 'lower'} on {comparison}."
        geometric = row.aggregate == "geometric mean"
        shown = math.exp if geometric else float
        return Headline(
            status,
            word,
            sentence,
            f"{measure} of {run}, {row.part} {'/' if geometric else '-'} other topics",
            shown(row.difference),
            number() if geometric else CHANGE,
            None if row.interval is None else (shown(row.interval[0]), shown(row.interval[1])),
            self.method.level,
            reference=shown(0.0),
        )

    @property
    def caption(self) -> str:
        """Explanation of marks and intervals."""
        parts: list[str] = []
        if self.tests:
            directions = {row.better for row in self.tested}
            texts = {True: f"{BETTER} significantly better", False: f"{WORSE} significantly worse"}
            marks = ", ".join(text for better, text in texts.items() if better in directions)
            marks = marks or "no slice is significantly better or worse"
            test = "permutation" if any(row.contrast and row.contrast.resamples for row in self.tested) else "Welch"
            correction = f", p corrected by Holm for {self.tests} tests" if self.tests > 1 else ""
            rule = f"{test} test{correction}, alpha = {1 - self.method.level:g}"
            parts.append(f"{marks} than the other topics ({rule})")
        if self.slicing.small.any():
            parts.append(f"{FEW}: too few topics, not tested")
        interval_text = self.scores.interval_caption(self.method)
        runs = len(self.scores.runs)
        too_wide = (runs if runs > 1 else len(self.scores.measures)) > MAX_INTERVAL_COLUMNS
        if interval_text and too_wide:
            tables = f"tables with more than {MAX_INTERVAL_COLUMNS} columns of numbers"
            parts.append(f"{tables} omit CIs; CSV and JSON include them")
        elif interval_text:
            parts.append(f"[{interval_text}]")
        return "; ".join(parts)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences on slices that differ, on the averages, and on small slices."""
        if self.by_class:
            return (NO_AVERAGE, *describe_small_slices(self.slicing))
        differences = (text for _, text in self.describe_differences())
        return (*differences, *self._averages_text(), *describe_small_slices(self.slicing))

    def describe_differences(self) -> Iterator[tuple[SliceEstimate | None, str]]:
        """Yield the worst and best significant slice of each run and measure, with a sentence on each."""
        significant = [row for row in self.tested if row.significant]
        runs = self.scores.run_names
        for run in runs[:_MAX_RUNS]:
            for measure in self.scores.measures:
                sign = -1 if measure.properties.higher_is_better is False else 1
                rows = [row for row in significant if (row.run, row.measure) == (run, str(measure))]
                rows.sort(key=lambda row: sign * row.value)
                worse, better = ([row for row in rows if row.better is is_better] for is_better in (False, True))
                if worse:
                    yield worse[0], self._describe_slice(worse[0], "worse", "worst")
                if better and not (worse and self._are_complements(worse[0], better[-1])):
                    yield better[-1], self._describe_slice(better[-1], "better", "best")
                for row in rows:
                    if row.better is None and row.contrast:
                        yield row, self._describe_slice(row, "higher" if row.contrast.difference > 0 else "lower")
        if len(runs) > _MAX_RUNS and significant:
            runs_text = f"{len({row.run for row in significant})} of the {len(runs)} runs"
            yield (
                None,
                (
                    f"For {runs_text}, at least one slice differs significantly from the other"
                    " topics; the tables mark such slices."
                ),
            )
        if self.tests and not significant:
            tests = "one test" if self.tests == 1 else f"{self.tests} tests, p corrected by Holm"
            yield (
                None,
                (
                    f"No slice differs significantly from the other topics ({tests}). This"
                    " does not mean that all slices have equal scores."
                ),
            )

    def _are_complements(self, first: SliceEstimate, second: SliceEstimate) -> bool:
        # complementary slices have the same test: only one of the two is described
        disjoint = not (self.slicing.mask(first.part) & self.slicing.mask(second.part)).any()
        return disjoint and first.contrast is not None and first.contrast.n_rest == second.n

    def _describe_slice(self, row: SliceEstimate, comparative: str, superlative: str = "") -> str:
        test = row.contrast
        if test is None:
            return ""
        rows = (other for other in self.estimates_of(row.run, row.measure) if not other.small)
        values = [other.value for other in rows if other.part != ALL]
        extreme = min(values) if test.difference < 0 else max(values)
        rank = f", the {superlative} slice," if superlative and len(values) > 2 and row.value == extreme else ""
        difference, low, high = (
            f"{TIMES}{decimal(math.exp(value), 3)}" if row.aggregate == "geometric mean" else decimal(value, 3, "+")
            for value in (test.difference, *(test.interval or (math.nan, math.nan)))
        )
        level = self.method.level
        correction = f" after Holm correction for {self.tests} tests" if self.tests > 1 else ""
        return (
            f"{row.run}: `{row.part}`{rank} is significantly {comparative} than the other topics in {row.measure}:"
            f" {decimal(row.value, 3)} over {counted(test.n, 'topic')}, {difference} compared with"
            f" the other {counted(test.n_rest, 'topic')}"
            f" ({level:.0%} CI [{low}, {high}]), p {p_text(row.adjusted, 1 - level)}{correction}."
        )

    def _averages_text(self) -> Iterator[str]:
        run, measure = next(((row.run, row.measure) for row in self.averages), ("", ""))
        rows = [row for row in self.averages if (row.run, row.measure) == (run, measure)]
        values = {row.part: decimal(row.value) for row in rows if not math.isnan(row.value)}  # a slice may lack scores
        if len(set(values.values())) > 1:
            names = {MEAN_OF_SLICES: f"mean of the {int((~self.slicing.small).sum())} slices with enough topics"}
            text = ", ".join(f"{names.get(name, name)} {value}" for name, value in values.items())
            yield f"Averages of the {measure} of {run} with different weights of topics: {text}."
        if not self.slicing.disjoint:
            yield f"The slices overlap, so the {MEAN_OF_SLICES} is not computed, only the {TOPIC_MEAN}."


def with_tests(table: Table, name: str, rows: Sequence[SliceEstimate]) -> Table:
    """Draw the intervals of a column of a table of slices, and add the tests against the other topics after it.

    Parameters
    ----------
    table
        A row per slice.
    name
        Column of the values of `rows`.
    rows
        Estimates of one run and measure.
    """
    statuses, words = zip(*map(_verdict, rows), strict=True)
    values, intervals = [row.value for row in rows], [row.ci for row in rows]
    drawn = table.changed(name, ci=intervals, axis=Axis.over(values, intervals), statuses=statuses, mark=()).columns
    tests = (
        Column("verdict", words, TEXT, "Against other topics", statuses=statuses),
        Column("difference", [row.difference for row in rows], CHANGE, "Difference"),
        Column("p", [row.adjusted for row in rows], P_VALUE),
    )
    end = [column.name for column in drawn].index(name) + 1
    return replace(table, columns=(*drawn[:end], *tests, *drawn[end:]))


def _verdict(row: SliceEstimate) -> tuple[Status, str]:
    """Return whether a slice is better or worse than the other topics; no text for all topics and for averages."""
    if row.contrast is None:
        return ("unknown", "too few topics") if row.small else ("info", "")
    if row.better is not None:
        return ("better", "better") if row.better else ("worse", "worse")
    return ("info", "differs") if row.significant else ("same", "not significant")


def rest_columns(tests: Sequence[AgainstRest | None]) -> tuple[Column, ...]:
    """Return the columns of tests of slices against all other topics."""
    fields = {"statistic": "rest_statistic", "p": "rest_p", "n_rest": "rest_topics", "resamples": "rest_resamples"}
    values = [test and test.difference for test in tests]
    return (
        Column("rest_difference", values, CHANGE, ci=[test and test.interval for test in tests]),
        *(Column(name, [getattr(test, field, None) for test in tests], ANY) for field, name in fields.items()),
    )


def describe_small_slices(slicing: Slicing) -> Iterator[str]:
    """Yield a sentence on slices with fewer topics than their minimum."""
    small = [
        f"`{slice_.name}` {n} of {slice_.min_topics}"
        for slice_, n in zip(slicing.slices, slicing.n.tolist(), strict=True)
        if n < slice_.min_topics
    ]
    if small:
        subject, verb = ("slice has", "was") if len(small) == 1 else ("slices have", "were")
        yield f"{len(small)} {subject} too few topics ({first_few(small, MAX_NAMES)}) and {verb} not tested."
