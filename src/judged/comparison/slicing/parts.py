"""Scores of parts of the topics as an answer: what scores by slice and by group of documents have in common."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from judged.comparison.answer import AnswerOfScores
from judged.comparison.compare import differences
from judged.data.run import run_named
from judged.errors import InputError
from judged.results import COUNT, NUMBER, TEXT, Chart, Column, Sentences, Table, columns_of
from judged.results.chart_drawings import SERIES
from judged.results.decimals import counted, decimal
from judged.scoring.evaluation import Estimate
from judged.scoring.measures.aggregates import logarithms
from judged.scoring.measures.grammar import parse
from judged.stats.classical import allowing_for_skew
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

    Key = tuple[int, int]  # the place of a set of topics, and that of a quantity


FEW = "(few)"  # behind the name of a small part
MOST_INTERVALS = 3  # columns: more of them show no intervals


@dataclass(frozen=True, kw_only=True)
class PartEstimate(Estimate):
    """One number: a measure of a run over a part of the topics."""

    part: str  # its name; the first part is all topics
    size: int  # topics of the part; `n` of them have a value
    small: bool  # whether it has fewer topics than a mean should rest on

    @property
    def mark(self) -> str:
        """The sign behind its number."""
        return ""


Row = TypeVar("Row", bound=PartEstimate)


@dataclass(frozen=True, eq=False, repr=False)
class ScoresOfParts(AnswerOfScores, Generic[Row]):
    """Scores of all topics and of parts of them, by part, run and measure."""

    main: ClassVar[str] = "results"
    part: ClassVar[str]  # what a part is
    known: ClassVar[tuple[str, ...]]  # what JSON has of each part beside the number of its topics

    scores: Scores
    estimates: tuple[Row, ...]
    method: IntervalMethod

    @property
    def by(self) -> str:
        """By what topics are parted."""
        return f"by {self.part}"

    @property
    def title(self) -> str:
        """What is shown by which parts."""
        return f"{', '.join(self.scores.measure_names)} {self.by}"

    @property
    def names(self) -> tuple[str, ...]:
        """All topics, then the parts as they are shown."""
        return tuple(dict.fromkeys(row.part for row in self.estimates))

    def estimate(self, name: str | None = None, run: str | None = None, measure: str | None = None) -> Row:
        """Give one number; that of all topics, the first run and the first measure, where none is named.

        Raises
        ------
        InputError
            If there is no such part, run or measure.
        """
        rows = {row.part: row for row in self.estimates_of(*self.named(run, measure))}
        name = self.names[0] if name is None else name
        if name not in rows:
            raise InputError(f"no {self.part} {name!r}", fix=f"use one of {', '.join(rows)}")
        return rows[name]

    def value(self, name: str | None = None, run: str | None = None, measure: str | None = None) -> float:
        """Give the value of the same."""
        return self.estimate(name, run, measure).value

    def named(self, run: str | None, measure: str | None) -> tuple[str, str]:
        """Fill in the run and the measure that are not named: the first of each."""
        runs = self.scores.run_names
        return runs[0] if run is None else run_named(run, runs), measure_named(measure, self.scores.measure_names)

    def estimates_of(self, run: str, measure: str) -> list[Row]:
        """Give the numbers of one run and measure, part by part."""
        return [row for row in self.estimates if (row.run, row.measure) == (run, measure)]

    def shown_of(self, run: str, measure: str) -> Sequence[Row]:
        """Give the rows that people see of them."""
        return self.estimates_of(run, measure)

    def about(self, rows: Sequence[Row]) -> tuple[Column, ...]:
        """Give what people see of the parts beside their numbers."""
        return columns_of(rows, ("size", COUNT, "topics"))

    def overview(self, measure: str | None = None, *, run: str | None = None) -> Table:
        """Lay out one row per part. With one run, or one that is named: a column per measure; else a column per run.

        Raises
        ------
        InputError
            If there is no such run or measure.
        """
        first, which = self.named(run, measure)
        if len(self.scores.runs) == 1 or run is not None:
            label, pairs = self.part, {name: (first, name) for name in self.scores.measure_names}
        else:
            label, pairs = which, {name: (name, which) for name in self.scores.run_names}
        parts = [self.shown_of(*pair) for pair in pairs.values()]
        names = [f"{row.part} {FEW}" if row.small else row.part for row in parts[0]]
        columns = [Column(self.part, names, TEXT, label), *self.about(parts[0])]
        for heading, rows in zip(pairs, parts, strict=True):
            show = COUNT if rows[0].aggregate in {"sum", "count"} else NUMBER
            ci = [row.ci for row in rows] if len(pairs) <= MOST_INTERVALS else None
            values, marks = [row.value for row in rows], [row.mark for row in rows]
            columns.append(Column(heading, values, show, ci=ci, mark=marks))
        return Table(label, tuple(columns), only="people")

    def blocks(self) -> tuple[Block, ...]:
        """Give tables of parts, what may be concluded, all numbers, and a chart for each measure."""
        names = self.scores.measure_names
        tables = [self.overview(name) for name in (names if len(self.scores.runs) > 1 else names[:1])]
        tables[-1] = replace(tables[-1], note=self.caption)
        return (*tables, Sentences(self.sentences), *self.data(), *map(self._chart, names))

    @property
    def rule(self) -> str:
        """How the dots of a chart were made."""
        return f"{self.method.level:.0%} intervals over topics"

    @property
    def caption(self) -> str:
        """What stands below the tables: what marks and intervals mean."""
        return ""

    def data(self) -> tuple[Table, ...]:
        """Give the tables of data, the one of all numbers first."""
        rows = self.estimates
        results = (
            Column(self.part, [row.part for row in rows], TEXT),
            *columns_of(rows, "run", "measure", "aggregate"),
            value_column(rows),
            *columns_of(rows, ("n", COUNT), ("size", COUNT), *self.known, "small"),
        )
        return (Table("results", results, only="data"),)

    def _chart(self, measure: str) -> Chart:
        rows = [row for row in self.estimates if row.measure == measure]
        said, best = self._highest(measure, [row for row in rows if not math.isnan(row.value)])
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
            sentence=f"{said}{measure} of each run by {self.part}, with intervals.",
            y=self.part,
            colour="run",
            loud=(best,) if len(self.scores.runs) > SERIES else (),
            hollow="small",
        )

    def _highest(self, measure: str, rows: Sequence[Row]) -> tuple[str, str]:
        """Say where the best run is best as well, or of one run from where to where it goes; and name the run."""
        lower = self.scores.measures[self.scores.measure_names.index(measure)].properties.higher_is_better is False
        least = {name: sorted(row.value for row in rows if row.part == name) for name in self.names}
        top = {name: values[0 if lower else -1] for name, values in least.items() if values}
        best = next((row.run for row in rows if row.part == self.names[0] and row.value == top[row.part]), "")
        if not best:
            return "", ""
        if len(self.scores.runs) > 1:
            won = sum(row.value == top[row.part] for row in rows if row.run == best) - 1
            of = f"{won} of {counted(len(top) - 1, self.part)}"
            return f"No run is {'below' if lower else 'above'} {best} over {self.names[0]}, and on {of}. ", best
        parts = sorted((row for row in rows[1:] if not row.small), key=lambda row: row.value)
        if len(parts) < 2:
            return "", best
        low, high = parts[0], parts[-1]
        spread = f"from {decimal(low.value, 3)} on {low.part} to {decimal(high.value, 3)} on {high.part}"
        return f"{measure} of {best} goes {spread}. ", best


def value_column(rows: Sequence[Any], title: str | None = None) -> Column:
    """Give the values of rows with their intervals."""
    return Column("value", [row.value for row in rows], NUMBER, title, ci=[row.ci for row in rows])


def measure_named(name: str | None, known: Sequence[str]) -> str:
    """Give the canonical name of a measure that is among those known; the first, if none is named."""
    if name is None or name in known:
        return name or known[0]
    canonical = str(parse(name))
    if canonical not in known:
        raise InputError(f"{canonical} was not evaluated", fix=f"use one of {', '.join(known)}")
    return canonical


ALL = "all topics"


class Where(NamedTuple):
    """Some topics: the name, the topics (T,) and whether there are too few to be judged by."""

    name: str
    mask: Bools
    small: bool
    every: bool = False


def everywhere(topics: int, slicing: Slicing | None) -> list[Where]:
    """Give all topics, and then each slice."""
    where = [Where(ALL, np.ones(topics, dtype=np.bool_), small=False, every=True)]
    if slicing is not None:
        where += map(Where, slicing.names, slicing.members, slicing.small.tolist())
    return where


class Quantity(NamedTuple):
    """What two systems are held against each other by, topic by topic: (T,) each, NaN where there is no score."""

    first: Floats
    second: Floats
    geometric: bool = False  # whether means of logarithms are compared
    family: Hashable = ""  # what its p-values are corrected together with, in slices and over all topics apart
    reach: float = math.inf  # how far from 0 a difference can be: no interval goes beyond

    @property
    def gaps(self) -> Floats:
        """Second minus first, of logarithms for a geometric mean."""
        if self.geometric:
            return logarithms(self.second) - logarithms(self.first)
        return self.second - self.first


def tests_of(
    quantities: Sequence[Quantity], where: Sequence[Where], choices: Choices, untested: Container[Key]
) -> dict[Key, Difference]:
    """Test each quantity over each set of topics, on slices with Hall's test too; corrected family by family."""
    families: dict[Hashable, list[Key]] = {}
    for at, place in product(range(len(where)), range(len(quantities))):
        families.setdefault((where[at].every, quantities[place].family), []).append((at, place))

    def test(keys: Sequence[Key], level: float) -> list[Difference]:
        tests: dict[Key, Difference] = {}

        def kind(key: Key) -> tuple[int, bool, float]:
            quantity = quantities[key[1]]
            return key[0], quantity.geometric, quantity.reach

        for at, geometric, reach in dict.fromkeys(map(kind, keys)):
            alike = [key for key in keys if kind(key) == (at, geometric, reach)]
            rows, mask = [quantities[place] for _, place in alike], where[at].mask
            table = np.stack([*(row.first[mask] for row in rows), *(row.second[mask] for row in rows)])
            pairs = [(row, len(rows) + row) for row in range(len(rows))]
            found = differences(table, pairs, choices, geometric=geometric, reach=reach, level=level).differences
            if not where[at].every:
                found = allowing_for_skew([row.gaps[mask] for row in rows], found)
            tests |= zip(alike, map(_within, found, rows), strict=True)
        return [tests[key] for key in keys]

    tests: dict[Key, Difference] = {}
    for family in families.values():
        found = test(family, 1 - choices.alpha_of_one(sum(key not in untested for key in family)))
        for place, key in enumerate(family):
            if key in untested:
                found[place] = replace(found[place], p=math.nan, interval=None, note="too few topics to be tested")

        def again(places: list[int], level: float, family: list[Key] = family) -> list[Difference]:
            return test([family[place] for place in places], level)

        tests |= zip(family, corrected_family(found, choices.correction, choices.alpha, again), strict=True)
    return tests


def _within(found: Difference, of: Quantity) -> Difference:
    """Leave out of an interval what no difference can be."""
    if found.interval is None or math.isinf(of.reach):
        return found
    low, high = (min(max(end, -of.reach), of.reach) if math.isfinite(end) else end for end in found.interval)
    return replace(found, interval=(low, high))
