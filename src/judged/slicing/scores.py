"""Scores by slice as an answer: a row a slice, ways to average all topics, and which slices differ from the others."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from judged.answer import (
    ANY,
    CHANGE,
    COUNT,
    NUMBER,
    SHARE,
    TEXT,
    YES_NO,
    Answer,
    Chart,
    Column,
    Sentences,
    Table,
    columns_of,
    counted,
)
from judged.comparison.captions import BETTER, WORSE
from judged.comparison.pair import TIMES
from judged.decimals import decimal, p_text
from judged.errors import InputError
from judged.evaluation import Estimate
from judged.notes import first_few

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.answer import Block
    from judged.evaluation import Scores
    from judged.evaluation.provenance import Provenance
    from judged.notes import Note
    from judged.slicing.slices import Slicing
    from judged.stats import IntervalMethod
    from judged.stats.heterogeneity import AgainstRest

ALL = "all topics"
FEW = "(few)"  # behind the name of a small slice
MOST = 6  # slices named in one sentence
TOPIC_MEAN, MEAN_OF_SLICES = "topic mean", "mean of slices"
_INTERVALS = 3  # columns: more of them show no intervals
_RUNS = 3  # of more, only the first and the count are told
_MARKS = {None: "", True: BETTER, False: WORSE}


@dataclass(frozen=True, kw_only=True)
class SliceEstimate(Estimate):
    """One number: a measure of a run over the topics of a slice that have a score, and against all other topics."""

    slice: str  # its name, or `all topics`
    n: int  # topics of the slice
    share: float  # of all topics that are in it
    weight: float  # the share of the first weights that its topics have; NaN without weights
    small: bool  # whether it has fewer topics than it is judged by: it is not ranked
    # its mean against that of the other topics, of logarithms for a geometric mean; None where it was not tested
    rest: AgainstRest | None = None
    adjusted: float = math.nan  # the p-value of this test, corrected for all the tests of the call
    significant: bool = False  # whether the slice differs: `adjusted` is at most alpha, and the interval excludes 0
    # whether the slice is the better side; None where it does not differ, or the measure has no better side
    better: bool | None = None


@dataclass(frozen=True)
class Average:
    """All topics of a run as one number, in one of several ways."""

    # `topic mean`: every topic counts the same. `mean of slices`: every slice that is not small does. `traffic-weighted
    # mean` and the like: every topic counts by its weight. `weighted by relevant documents`: every relevant document
    # counts the same.
    name: str
    run: str
    measure: str
    value: float
    ci: tuple[float, float] | None
    topics: int  # that it rests on
    effective: float  # as many topics of equal weight would give a mean as sure


@dataclass(frozen=True, eq=False, repr=False)
class SlicedScores(Answer):
    """What `by_slice` returns: scores of slices, ways to average over them, and which slices differ from the others.

    Attributes
    ----------
    scores : Scores
        Of all topics.
    slicing : Slicing
        Of the same topics.
    method : IntervalMethod
        How intervals were made.
    estimates : tuple of SliceEstimate
        By slice, run and measure; ``all topics`` first, small slices last.
    averages : tuple of Average
        By way, run and measure.
    tests : int
        How many slices, runs and measures share alpha (Holm) in tests against the other topics.
    weights : tuple of str
        The names of the weights.
    provenance : Provenance
        What the scores rest on.
    notes : tuple of Note

    Examples
    --------
    >>> from judged import by_slice, evaluate, slice_topics
    >>> qrels = {"a": {"d": 1}, "b": {"d": 1}, "c": {"d": 1}}
    >>> scores = evaluate(qrels, {"a": ["d"], "b": ["x", "d"], "c": ["d"]}, "RR")
    >>> kinds = slice_topics({"a": {"kind": "law"}, "b": {"kind": "news"}, "c": {"kind": "law"}}, "kind", minimum=1)
    >>> found = by_slice(scores, kinds, ci="none")
    >>> found.value("kind=law"), found.value("kind=news"), found.average("mean of slices").value
    (1.0, 0.5, 0.75)
    """

    kind: ClassVar[str] = "slices"
    main: ClassVar[str] = "results"

    scores: Scores
    slicing: Slicing
    method: IntervalMethod
    estimates: tuple[SliceEstimate, ...] = field(repr=False)
    averages: tuple[Average, ...] = field(repr=False)
    tests: int
    weights: tuple[str, ...]
    provenance: Provenance = field(repr=False)
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """What is shown by slice."""
        return f"{', '.join(self.scores.measure_names)} by slice"

    @property
    def names(self) -> tuple[str, ...]:
        """``all topics``, then the slices as they are shown: small ones last."""
        return tuple(dict.fromkeys(row.slice for row in self.estimates))

    @property
    def findings(self) -> tuple[SliceEstimate, ...]:
        """The estimates of slices that were tested against the other topics: all that are not small."""
        return tuple(row for row in self.estimates if row.rest is not None)

    def estimate(self, name: str = ALL, run: str | None = None, measure: str | None = None) -> SliceEstimate:
        """Give one number; the first run and measure, if none is named.

        Raises
        ------
        InputError
            If there is no such slice, run or measure.
        """
        wanted = (name, *self._named(run, measure))
        for row in self.estimates:
            if (row.slice, row.run, row.measure) == wanted:
                return row
        raise InputError(f"no slice {name!r}", fix=f"one of {', '.join(self.names)}")

    def value(self, name: str = ALL, run: str | None = None, measure: str | None = None) -> float:
        """Give the value of the same."""
        return self.estimate(name, run, measure).value

    def average(self, name: str = TOPIC_MEAN, run: str | None = None, measure: str | None = None) -> Average:
        """Give one way to average; the first run and measure, if none is named.

        Raises
        ------
        InputError
            If it was not made: there is no mean of slices that overlap.
        """
        wanted = (name, *self._named(run, measure))
        for row in self.averages:
            if (row.name, row.run, row.measure) == wanted:
                return row
        known = ", ".join(dict.fromkeys(row.name for row in self.averages))
        raise InputError(f"no {name} was made", fix=f"one of {known}" if known else "take a measure that is a mean")

    def _named(self, run: str | None, measure: str | None) -> tuple[str, str]:
        """Fill in the run and the measure that are not named: the first of each."""
        runs = self.scores.run_names
        if run is not None and run not in runs:
            raise InputError(f"no run {run!r}", fix=f"one of {', '.join(runs)}")
        return run or runs[0], measure_named(measure, self.scores.measure_names)

    def overview(self, measure: str | None = None, *, run: str | None = None) -> Table:
        """Lay out one row a slice. With one run, or one that is named: a column a measure; else a column a run.

        Raises
        ------
        InputError
            If there is no such run or measure.
        """
        first, which = self._named(run, measure)
        if len(self.scores.runs) == 1 or run is not None:
            label, pairs = "slice", {name: (first, name) for name in self.scores.measure_names}
        else:
            label, pairs = which, {name: (name, which) for name in self.scores.run_names}
        averages = {(row.name, row.run, row.measure): row for row in self.averages}
        ways = [name for name in dict.fromkeys(row.name for row in self.averages) if name != TOPIC_MEAN]
        parts = [
            ([row for row in self.estimates if (row.run, row.measure) == pair],
             [averages.get((way, *pair)) for way in ways])
            for pair in pairs.values()
        ]  # fmt: skip
        slices, means = parts[0]
        gap = [None] * len(ways)
        shown = [
            Column(
                "slice", [*(f"{row.slice} {FEW}" if row.small else row.slice for row in slices), *ways], TEXT, label
            ),
            Column("topics", [*(row.n for row in slices), *(mean and mean.topics for mean in means)], COUNT),
            Column("share", [*(row.share for row in slices), *gap], SHARE),
        ]
        shown += [
            Column("weight", [*(row.weight for row in slices), *gap], SHARE, f"of {name}") for name in self.weights[:1]
        ]
        for heading, (slices, means) in zip(pairs, parts, strict=True):
            rows = (*slices, *means)
            show = COUNT if slices[0].aggregate in {"sum", "count"} else NUMBER
            ci = [row and row.ci for row in rows] if len(pairs) <= _INTERVALS else None
            mark = [*(_MARKS[row.better] for row in slices), *("" for _ in ways)]
            shown.append(Column(heading, [row and row.value for row in rows], show, ci=ci, mark=mark))
        return Table(label, tuple(shown), only="people")

    def blocks(self) -> tuple[Block, ...]:
        """Give tables of slices, what may be concluded, all numbers, and a chart for each measure."""
        names = self.scores.measure_names
        tables = [self.overview()] if len(self.scores.runs) == 1 else [self.overview(name) for name in names]
        tables[-1] = replace(tables[-1], note=self._caption())
        rows, averages = self.estimates, self.averages
        results = Table("results", (
            *columns_of(rows, "slice", "run", "measure", "aggregate"),
            Column("value", [row.value for row in rows], NUMBER, ci=[row.ci for row in rows]),
            Column("scored", [row.topics for row in rows], COUNT),
            Column("topics", [row.n for row in rows], COUNT),
            *columns_of(rows, "share", "weight", "small"),
            *rest_columns([row.rest for row in rows]),
            *columns_of(rows, "adjusted"),
            Column("significant", [row.rest and row.significant for row in rows], YES_NO),
            *columns_of(rows, "better"),
        ), only="data")  # fmt: skip
        ways = Table("averages", (
            *columns_of(averages, "name", "run", "measure"),
            Column("value", [row.value for row in averages], NUMBER, ci=[row.ci for row in averages]),
            *columns_of(averages, "topics", "effective"),
        ), only="data")  # fmt: skip
        sentences = Sentences(self.sentences)
        return (*tables, sentences, results, ways, self.slicing.table(), *map(self._chart, names))

    def facts(self) -> dict[str, Any]:
        """Give how intervals were made, whether slices overlap, the weights, and the number of tests."""
        return {
            "ci": vars(self.method),
            "overlap": not self.slicing.disjoint,
            "weights": self.weights,
            "tests": self.tests,
        }

    def _chart(self, measure: str) -> Chart:
        rows = [row for row in self.estimates if row.measure == measure]
        points = Table("points", (
            Column("slice", [f"{row.slice} ({row.n})" for row in rows], TEXT),
            *columns_of(rows, ("run", TEXT)),
            Column("value", [row.value for row in rows], NUMBER, measure, ci=[row.ci for row in rows]),
            Column("small", [row.small for row in rows], only="data"),
        ))  # fmt: skip
        few = "; hollow: too few topics to be judged by" if any(row.small for row in rows) else ""
        return Chart(
            name=measure,
            title=f"{measure} by slice",
            subtitle=f"{self.method.level:.0%} intervals over topics{few}",
            table=points,
            sentence=f"One dot a slice and run: its {measure}, with the interval; hollow where topics are too few.",
            y="slice", colour="run", hollow="small",
        )  # fmt: skip

    def _caption(self) -> str:
        """Say what the marks and the intervals mean."""
        parts: list[str] = []
        if self.tests:
            sides = {row.better for row in self.findings}
            better = f"{BETTER} the slice scores significantly better than the other topics"
            worse = (
                f"{WORSE} worse" if True in sides else f"{WORSE} the slice scores significantly worse than the others"
            )
            marks = ", ".join([better] * (True in sides) + [worse] * (False in sides))
            test = "permutation" if any(row.rest and row.rest.resamples for row in self.findings) else "Welch"
            corrected = f", p corrected by Holm for {self.tests} tests" if self.tests > 1 else ""
            nothing = "no slice is marked as better or worse than the other topics"
            parts.append(f"{marks or nothing} ({test} test{corrected}, alpha = {1 - self.method.level:g})")
        if self.slicing.small.any():
            parts.append(f"{FEW}: fewer topics than the slice is judged by, not tested")
        words = self.scores.interval_words(self.method)
        runs = len(self.scores.runs)
        wide = (runs if runs > 1 else len(self.scores.measures)) > _INTERVALS
        left_out = f"no intervals beside more than {_INTERVALS} columns of numbers: CSV and JSON have them"
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
                for row in rows:
                    if row.better is None and row.rest:
                        yield row, self._standing(row, "higher" if row.rest.difference > 0 else "lower")
        if len(runs) > _RUNS and apart:
            of = f"{len({row.run for row in apart})} of the {len(runs)} runs"
            yield None, f"For {of}, some slice differs from the other topics: the tables mark them."
        if self.tests and not apart:
            tests = "one test" if self.tests == 1 else f"{self.tests} tests, Holm"
            yield None, f"No slice is shown to differ from the other topics ({tests}). That does not make them alike."

    def _opposite(self, first: SliceEstimate, second: SliceEstimate) -> bool:
        """Whether two slices make up all topics, those without a score aside: one test, told once."""
        apart = not (self.slicing.mask(first.slice) & self.slicing.mask(second.slice)).any()
        return apart and first.rest is not None and first.rest.n_rest == second.topics

    def _standing(self, row: SliceEstimate, word: str, end: str = "") -> str:
        """Set a slice against the other topics."""
        rest = row.rest
        if rest is None:
            return ""
        alike = [other.value for other in self.estimates if (other.run, other.measure) == (row.run, row.measure)
                 and other.slice != ALL and not other.small]  # fmt: skip
        extreme = end and len(alike) > 2 and row.value == (min(alike) if rest.difference < 0 else max(alike))
        gap, low, high = (
            f"{TIMES}{decimal(math.exp(value), 3)}" if row.aggregate == "geometric mean" else decimal(value, 3, "+")
            for value in (rest.difference, *(rest.interval or (math.nan, math.nan)))
        )
        level = self.method.level
        after = f" after Holm over {self.tests} tests" if self.tests > 1 else ""
        return (
            f"{row.run}: `{row.slice}`{f', the {end} slice,' if extreme else ''} is {word} than the other topics in"
            f" {row.measure}: {decimal(row.value, 3)} over {counted(rest.n, 'topic')}, {gap} against the other"
            f" {rest.n_rest} ({level:.0%} interval {low} to {high}), p {p_text(row.adjusted, 1 - level)}{after}."
        )

    def _averaging(self) -> Iterator[str]:
        """Put the ways to average of the first run and measure beside one another."""
        if not self.averages:
            return
        run, measure = self.averages[0].run, self.averages[0].measure
        ways = {
            row.name: decimal(row.value)
            for row in self.averages
            if (row.run, row.measure) == (run, measure) and not math.isnan(row.value)  # a slice may lack scores
        }
        if len(set(ways.values())) > 1:
            large = f"mean of the {int((~self.slicing.small).sum())} slices that have enough topics"
            said = ", ".join(f"{large if way == MEAN_OF_SLICES else way} {value}" for way, value in ways.items())
            one = len(self.scores.runs) * len(self.scores.measures) == 1
            yield f"Each average answers another question{'' if one else f' ({run}, {measure})'}: {said}."
        if not self.slicing.disjoint:
            yield f"Slices overlap: there is no {MEAN_OF_SLICES}, only the {TOPIC_MEAN}."


def measure_named(name: str | None, known: Sequence[str]) -> str:
    """Give the canonical name of a measure that is among those known; the first, if none is named."""
    if name is None or name in known:
        return name or known[0]
    from judged.measures import parse

    canonical = str(parse(name))
    if canonical not in known:
        raise InputError(f"{canonical} was not evaluated", fix=f"one of {', '.join(known)}")
    return canonical


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
        f"`{part.name}` {n} of {part.minimum}"
        for part, n in zip(slicing.slices, slicing.n.tolist(), strict=True)
        if n < part.minimum
    ]
    if small:
        what, them = ("slice has", "it is") if len(small) == 1 else ("slices have", "they are")
        named = first_few(small, MOST)
        yield f"{len(small)} {what} fewer topics than needed ({named}): {them} shown, and not tested."
