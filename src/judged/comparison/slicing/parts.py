"""Scores and tests on subsets of topics: the common part of scores by slice and by document group."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from judged.comparison.answer import AnswerOfScores
from judged.comparison.compare import run_paired_tests
from judged.data.run import find_run_name
from judged.errors import InputError
from judged.results import COUNT, NUMBER, TEXT, Chart, Column, Sentences, Table, columns_of
from judged.results.chart_drawings import SERIES
from judged.results.decimals import counted, decimal
from judged.results.spelling import use_one_of
from judged.scoring.evaluation import Estimate
from judged.scoring.measures.aggregates import logarithms
from judged.scoring.measures.grammar import parse
from judged.stats.classical import with_hall_tests
from judged.stats.correction import corrected_family

if TYPE_CHECKING:
    from collections.abc import Container, Hashable, Sequence

    from judged.comparison import Choices
    from judged.comparison.slicing.topic_slices import Slicing
    from judged.results import Block
    from judged.results.types import Bools, Floats
    from judged.scoring.evaluation import Scores
    from judged.stats.interval import IntervalMethod
    from judged.stats.results import Difference

    Key = tuple[int, int]  # indices of a topic subset and of a quantity


FEW = "(few)"  # suffix of the names of small parts
MAX_INTERVAL_COLUMNS = 3  # tables with more columns of values show no intervals


@dataclass(frozen=True, kw_only=True)
class PartEstimate(Estimate):
    """Value of a measure for a run, over a part of the topics."""

    part: str  # name of the part; the first part is all topics
    size: int  # topics in the part; `n` of them have a value
    small: bool  # whether the part has too few topics for a reliable mean

    @property
    def mark(self) -> str:
        """Mark shown next to the value."""
        return ""


Row = TypeVar("Row", bound=PartEstimate)


@dataclass(frozen=True, eq=False, repr=False)
class PartScores(AnswerOfScores, Generic[Row]):
    """Scores of all topics and of parts of them, by part, run, and measure."""

    main: ClassVar[str] = "results"
    part: ClassVar[str]  # noun for a part, such as slice
    part_columns: ClassVar[tuple[str, ...]]  # columns of each part in JSON, in addition to its number of topics

    scores: Scores
    estimates: tuple[Row, ...]
    method: IntervalMethod

    @property
    def by_class(self) -> bool:
        """Whether each part has its own measure, so that no row is over all topics."""
        return False

    @property
    def by(self) -> str:
        """Phrase that names the grouping."""
        return f"by {self.part}"

    @property
    def title(self) -> str:
        """Measures and grouping."""
        return f"{', '.join(self.scores.measure_names)} {self.by}"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parts in display order; the first is all topics."""
        return tuple(dict.fromkeys(row.part for row in self.estimates))

    def estimate(self, name: str | None = None, run: str | None = None, measure: str | None = None) -> Row:
        """Return one estimate, by default that of all topics, the first run, and the first measure.

        Raises
        ------
        InputError
            If the part, run, or measure does not exist.
        """
        run, wanted = self.run_and_measure(run, measure)
        rows: dict[str, Row] = {}
        for row in self.estimates:
            if row.run == run and (row.measure == wanted or measure is None):
                rows.setdefault(row.part, row)
        name = self.names[0] if name is None else name
        if name not in rows:
            raise InputError(f"unknown {self.part}: {name!r}", fix=use_one_of(rows))
        return rows[name]

    def value(self, name: str | None = None, run: str | None = None, measure: str | None = None) -> float:
        """Return the value of `estimate` with the same arguments."""
        return self.estimate(name, run, measure).value

    def run_and_measure(self, run: str | None, measure: str | None) -> tuple[str, str]:
        """Return the names of the run and the measure; None stands for the first."""
        runs = self.scores.run_names
        return runs[0] if run is None else find_run_name(run, runs), measure_name(measure, self.scores.measure_names)

    def estimates_of(self, run: str, measure: str) -> list[Row]:
        """Return the estimates of one run and measure, part by part."""
        return [row for row in self.estimates if (row.run, row.measure) == (run, measure)]

    def displayed_estimates(self, run: str, measure: str) -> Sequence[Row]:
        """Return the rows shown to people for one run and measure."""
        return self.estimates_of(run, measure)

    def part_info(self, rows: Sequence[Row]) -> tuple[Column, ...]:
        """Return the columns that describe the parts."""
        return columns_of(rows, ("size", COUNT, "topics"))

    def overview(self, measure: str | None = None, *, run: str | None = None) -> Table:
        """Return a table with one row per part.

        Columns are measures if there is one run or `run` is given, else runs. With class measures, columns are runs.

        Raises
        ------
        InputError
            If the run or measure does not exist.
        """
        fixed_run, fixed_measure = self.run_and_measure(run, measure)
        if self.by_class:
            label, keys = "class", {name: (name, "") for name in ([fixed_run] if run else self.scores.run_names)}
        elif len(self.scores.runs) == 1 or run is not None:
            label, keys = self.part, {name: (fixed_run, name) for name in self.scores.measure_names}
        else:
            label, keys = fixed_measure, {name: (name, fixed_measure) for name in self.scores.run_names}
        rows_by_column = [self.displayed_estimates(*key) for key in keys.values()]
        names = [f"{row.part} {FEW}" if row.small else row.part for row in rows_by_column[0]]
        columns = [Column(self.part, names, TEXT, label), *self.part_info(rows_by_column[0])]
        for heading, rows in zip(keys, rows_by_column, strict=True):
            formatter = COUNT if rows[0].aggregate in {"sum", "count"} else NUMBER
            ci = [row.ci for row in rows] if len(keys) <= MAX_INTERVAL_COLUMNS else None
            values, marks = [row.value for row in rows], [row.mark for row in rows]
            columns.append(Column(heading, values, formatter, ci=ci, mark=marks))
        text_columns = sum(column.show is TEXT for column in columns)
        return Table(label, tuple(columns), only="people", labels=text_columns)

    def blocks(self) -> tuple[Block, ...]:
        """Return the tables, the sentences, the data tables, and a chart for each measure."""
        names = self.scores.measure_names
        several = len(self.scores.runs) > 1 and not self.by_class
        tables = [self.overview(name) for name in (names if several else names[:1])]
        tables[-1] = replace(tables[-1], note=self.caption)
        return (*tables, Sentences(self.sentences), *self.data(), *map(self._chart, names))

    @property
    def rule(self) -> str:
        """Description of the intervals in charts."""
        return f"{self.method.level:.0%} CIs over topics"

    @property
    def caption(self) -> str:
        """Explanation of marks and intervals, shown below the tables."""
        return ""

    def data(self) -> tuple[Table, ...]:
        """Return the data tables; the first has all estimates."""
        rows = self.estimates
        results = (
            Column(self.part, [row.part for row in rows], TEXT),
            *columns_of(rows, "run", "measure", "aggregate"),
            value_column(rows),
            *columns_of(rows, ("n", COUNT), ("size", COUNT), *self.part_columns, "small"),
        )
        return (Table("results", results, only="data"),)

    def _chart(self, measure: str) -> Chart:
        rows = [row for row in self.estimates if row.measure == measure]
        finding, best_run = self._best_run_sentence(measure, [row for row in rows if not math.isnan(row.value)])
        points = (
            Column(self.part, [f"{row.part} ({row.size})" for row in rows], TEXT),
            *columns_of(rows, ("run", TEXT)),
            value_column(rows, measure),
            *columns_of(rows, "small"),
        )
        return Chart(
            name=measure,
            title=f"{measure} {self.by}",
            subtitle=self.rule + "; hollow: too few topics" * any(row.small for row in rows),
            table=Table("points", points),
            sentence=f"{finding}{measure} of each run by {self.part}, with CIs.",
            y=self.part,
            color="run",
            highlighted=(best_run,) if len(self.scores.runs) > SERIES else (),
            hollow="small",
        )

    def _best_run_sentence(self, measure: str, rows: Sequence[Row]) -> tuple[str, str]:
        """Return a sentence on where the best run is best, or on the range of a single run, and the name of the run."""
        lower = self.scores.measures[self.scores.measure_names.index(measure)].properties.higher_is_better is False
        values_by_part = {name: sorted(row.value for row in rows if row.part == name) for name in self.names}
        best = {name: values[0 if lower else -1] for name, values in values_by_part.items() if values}
        winners = [row for row in rows if row.value == best[row.part]]
        best_run = next((row.run for row in winners if row.part == self.names[0]), "")
        if not best_run or self.by_class:
            return "", ""
        if len(self.scores.runs) > 1:
            win_count = sum(row.run == best_run for row in winners) - 1  # without the win over all topics
            wins = f"{'and on' if win_count else 'but on'} {win_count} of {counted(len(best) - 1, self.part)}"
            side = "lower" if lower else "higher"
            return f"Over {self.names[0]} {wins}, no run scores {side} than {best_run}. ", best_run
        parts = sorted((row for row in rows[1:] if not row.small), key=lambda row: row.value)
        if len(parts) < 2:
            return "", best_run
        low, high = parts[0], parts[-1]
        range_text = f"from {decimal(low.value, 3)} on {low.part} to {decimal(high.value, 3)} on {high.part}"
        return f"{measure} of {best_run} ranges {range_text}. ", best_run


def value_column(rows: Sequence[Any], title: str | None = None) -> Column:
    """Return the column of values with their intervals."""
    return Column("value", [row.value for row in rows], NUMBER, title, ci=[row.ci for row in rows])


def measure_name(name: str | None, evaluated: Sequence[str]) -> str:
    """Return the canonical name of an evaluated measure; None stands for the first."""
    if name is None or name in evaluated:
        return name or evaluated[0]
    canonical = str(parse(name))
    if canonical not in evaluated:
        raise InputError(f"{canonical} was not evaluated", fix=use_one_of(evaluated))
    return canonical


ALL = "all topics"


class TopicSubset(NamedTuple):
    """Subset of the topics: a slice, or all topics."""

    name: str
    mask: Bools  # (T,)
    small: bool  # whether it has too few topics for a test
    is_all: bool = False


def topic_subsets(topic_count: int, slicing: Slicing | None) -> list[TopicSubset]:
    """Return the set of all topics, followed by the slices."""
    subsets = [TopicSubset(ALL, np.ones(topic_count, dtype=np.bool_), small=False, is_all=True)]
    if slicing is not None:
        subsets += map(TopicSubset, slicing.names, slicing.members, slicing.small.tolist())
    return subsets


class ValuePair(NamedTuple):
    """Values of two systems by topic, (T,) each; NaN: no value."""

    first: Floats
    second: Floats
    geometric: bool = False  # whether to compare means of logarithms
    family: Hashable = ""  # p-values of the same family are corrected together; all topics and slices are separate
    max_difference: float = math.inf  # largest possible absolute difference; intervals are clipped to it

    @property
    def differences(self) -> Floats:
        """Second minus first, of logarithms for geometric means: (T,)."""
        if self.geometric:
            return logarithms(self.second) - logarithms(self.first)
        return self.second - self.first


def compare_subsets(
    quantities: Sequence[ValuePair], subsets: Sequence[TopicSubset], choices: Choices, untested: Container[Key]
) -> dict[Key, Difference]:
    """Test each quantity on each topic subset, on slices with Hall's test as well, and correct by family."""
    families: dict[Hashable, list[Key]] = {}
    for i, j in product(range(len(subsets)), range(len(quantities))):
        families.setdefault((subsets[i].is_all, quantities[j].family), []).append((i, j))

    def test(keys: Sequence[Key], level: float) -> list[Difference]:
        tests: dict[Key, Difference] = {}

        def batch_key(key: Key) -> tuple[int, bool, float]:
            quantity = quantities[key[1]]
            return key[0], quantity.geometric, quantity.max_difference

        # quantities of one subset with equal options are tested in one call
        for i, geometric, max_difference in dict.fromkeys(map(batch_key, keys)):
            group = [key for key in keys if batch_key(key) == (i, geometric, max_difference)]
            rows, mask = [quantities[j] for _, j in group], subsets[i].mask
            table = np.stack([*(row.first[mask] for row in rows), *(row.second[mask] for row in rows)])
            pairs = [(j, len(rows) + j) for j in range(len(rows))]
            results = run_paired_tests(
                table, pairs, choices, geometric=geometric, max_difference=max_difference, level=level
            ).differences
            if not subsets[i].is_all:
                # subsets are small and often skewed, where the tests alone reject too often
                results = with_hall_tests([row.differences[mask] for row in rows], results)
            tests |= zip(group, map(_clip_interval, results, rows), strict=True)
        return [tests[key] for key in keys]

    tests: dict[Key, Difference] = {}
    for family in families.values():
        results = test(family, 1 - choices.alpha_per_comparison(sum(key not in untested for key in family)))
        for j, key in enumerate(family):
            if key in untested:
                results[j] = replace(results[j], p=math.nan, interval=None, note="too few topics to be tested")

        def retest(positions: list[int], level: float, family: list[Key] = family) -> list[Difference]:
            return test([family[j] for j in positions], level)

        tests |= zip(family, corrected_family(results, choices.correction, choices.alpha, retest), strict=True)
    return tests


def _clip_interval(result: Difference, quantity: ValuePair) -> Difference:
    # intervals from a t distribution can exceed the possible range of differences
    max_difference = quantity.max_difference
    if result.interval is None or math.isinf(max_difference):
        return result
    low, high = (
        min(max(limit, -max_difference), max_difference) if math.isfinite(limit) else limit for limit in result.interval
    )
    return replace(result, interval=(low, high))
