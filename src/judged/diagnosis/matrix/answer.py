"""A performance matrix as an answer: runs, slices and topics by two measures, against cuts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.comparison.answer import AnswerOfScores
from judged.comparison.slicing.comparison import difference_title
from judged.data.run import run_named
from judged.diagnosis.changes import SMALL, changes_table, lost_table, told_by_slice, who_lost
from judged.diagnosis.matrix.points import COVERAGE, NOTHING, OPEN, QUADRANTS, RANKING, SHORT, topic_quadrants
from judged.results import Chart, Column, Line, Sentences, Show, Table
from judged.results.chart_drawings import drawn
from judged.results.charts import PALETTE
from judged.results.decimals import counted, decimal, percent
from judged.results.table import CHANGE, COUNT, NUMBER, SHARE, TEXT, columns_of
from judged.stats.classical import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.comparison.slicing.topic_slices import Slicing
    from judged.diagnosis.changes import Change
    from judged.diagnosis.matrix.points import Axis, MatrixChoices, Point
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.types import Bools, Floats
    from judged.scoring.evaluation import Scores
    from judged.scoring.measures.base import Measure
    from judged.stats.correction import Discoveries

_FEW_RUNS = 4  # of more, a summary is shown
_JUDGED = 0.95  # of the first 10 documents: with more, low recall has other reasons
_SIGN = {"below": "-", "above": "+"}
_SIGNS = "- wholly below the cut, + wholly above it, ? not distinguishable from it"
_PROBLEM = Show(lambda quadrant: SHORT.get(quadrant, "-"), "string")
_MEANING = {RANKING: "what is relevant is found, and ranked badly", COVERAGE: "what is relevant is not found"}
_CLASSES = (*QUADRANTS, OPEN, "all topics", "too few topics")
_COLOURS: dict[str, str] = dict(
    zip(_CLASSES, (*(PALETTE[at] for at in (2, 1, 3)), "#7B3F00", PALETTE[0], PALETTE[6], "#5F5F5F"), strict=True)
)


@dataclass(frozen=True, eq=False, repr=False)
class Matrix(AnswerOfScores):
    """Runs, slices and topics by two measures, against cuts that come from a baseline.

    Attributes
    ----------
    scores : Scores
        What it is made of.
    x, y : Measure
        The axes: of the candidates, and of the final ranking.
    baseline : str
        The run whose means over all topics are the cuts, and that the others are compared with.
    cuts : tuple of two float
    given_cuts : bool
        Whether the caller gave the cuts.
    points : tuple of Point
        Run by run: all topics, then each slice.
    changes : tuple of Change
        Of every other run against the baseline: all topics, then each slice; x, then y; corrected by Holm.
    lost : dict of dict of Discoveries
        By run, then axis: the topics that lost against the baseline, with a declared rate of false findings.
    slicing : Slicing or None
    choices : MatrixChoices
    barren : (T,) bool
        Topics without a document that is relevant to both axes, as far as that is known.
    notes : tuple of Note
    """

    kind: ClassVar[str] = "matrix"

    scores: Scores
    x: Measure
    y: Measure
    baseline: str
    cuts: tuple[float, float]
    given_cuts: bool
    points: tuple[Point, ...]
    changes: tuple[Change, ...]
    lost: dict[str, dict[str, Discoveries]]
    slicing: Slicing | None
    choices: MatrixChoices
    barren: Bools
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """What is set against what."""
        return f"{self.y} against {self.x}"

    def values(self, run: str) -> Floats:
        """Give x and y of every topic: (2, T); NaN where a topic does not count.

        Raises
        ------
        InputError
            If there is no such run.
        """
        names = self.scores.run_names
        at = names.index(run_named(run, names))
        return self.scores.values[at][[self.scores.measure_names.index(str(axis)) for axis in (self.x, self.y)]]

    def topics(self, run: str) -> tuple[str, ...]:
        """Class every topic of a run by the cuts alone: T names; empty where a topic has no score.

        Raises
        ------
        InputError
            If there is no such run.
        """
        return topic_quadrants(self.values(run), self.cuts, self.barren)

    def counts(self, run: str) -> dict[str, int]:
        """Count the topics of a run in each quadrant; and those with nothing relevant, where there are any."""
        counts = Counter(self.topics(run))
        return {name: counts[name] for name in (*QUADRANTS, *([NOTHING] if counts[NOTHING] else []))}

    def said_counts(self, run: str) -> str:
        """Say the counts of a run, those above 0: ``17 healthy, 7 with a ranking problem``."""
        called = {name: f"with {'a ' * name.endswith('problem')}{name}" for name in (*QUADRANTS[1:], NOTHING)}
        counts = {called.get(name, name): n for name, n in self.counts(run).items() if n}
        return ", ".join(f"{n:,} {name}" for name, n in counts.items())

    def facts(self) -> dict[str, Any]:
        """Give measures, baseline, cuts and choices."""
        names = ("x", "y", "baseline", "cuts", "given_cuts")
        known = {name: getattr(self, name) for name in names}
        return {**known, "choices": vars(self.choices), "quadrants": QUADRANTS}

    def blocks(self) -> tuple[Block, ...]:
        """Give points, changes, what may be concluded, and every topic; of many runs a summary, and these folded."""
        many = len(self.scores.runs) > _FEW_RUNS
        counts = [
            {"run": run, "quadrant": name, "n": count}
            for run in self.scores.run_names
            for name, count in self.counts(run).items()
        ]
        lost = [(run, axis, topics) for run, axes in self.lost.items() for axis, topics in axes.items()]
        full = (self._points(), *self._changes(), Sentences(self.sentences, title="Run by run" if many else ""))
        return (
            *((self._summary(), Sentences(tuple(self._in_short()), "summary")) if many else ()),
            *(replace(block, folded=many) for block in full),
            self.chart_of(),
            self.topics_table(),
            Table("counts", columns_of(counts, ("run", TEXT), ("quadrant", TEXT), ("n", COUNT)), only="data"),
            *([lost_table(lost, self.scores.query_ids)] if lost else []),
        )

    def _points(self) -> Table:
        """Lay out one row per run and slice: both measures with intervals, and the quadrant."""
        points, several = self.points, len(self.scores.runs) > 1
        columns = [
            *columns_of(points, ("run", TEXT) if several else "run", ("slice", TEXT)),
            Column("quadrant", [point.quadrant or None for point in points], _PROBLEM, "problem"),
            Column("n", [point.n for point in points], COUNT, beside=[SMALL * p.small for p in points]),
            *columns_of(points, "small"),
        ]
        for name in "xy":
            axes = [getattr(point, name) for point in points]
            columns.append(replace(self._axis(name, axes), ci=[axis.ci for axis in axes]))
            columns.append(Column(f"{name}_side", [axis.side or None for axis in axes], TEXT, only="data"))
        columns += columns_of(points, ("judged", SHARE) if any(point.judged < 1 for point in points) else "judged")
        return Table("points", tuple(columns), note="; ".join(self._rules()), labels=3 if several else 2)

    def _axis(self, name: str, axes: Sequence[Axis]) -> Column:
        marks = [_SIGN.get(axis.side, "") for axis in axes]
        return Column(name, [axis.value for axis in axes], NUMBER, str(getattr(self, name)), mark=marks)

    def _rules(self) -> Iterator[str]:
        """Say where the cuts come from, and how slices are classed."""
        points, choices = self.points, self.choices
        runs = sum(point.every and bool(point.quadrant) for point in points)
        slices = len({point.slice for point in points if point.quadrant and not point.every})
        yield f"{self._cuts}, taken as they are; [{choices.level:.0%} interval: Student's t]"
        if runs:
            whose = counted(runs, "run") + ("" if self.given_cuts else " beside the baseline")
            yield f"runs are classed by intervals of {choices.corrected(2 * runs):.2%} (Bonferroni: {whose}, two axes)"
        if slices:
            yield (
                f"slices by those of {choices.corrected(2 * slices):.2%} (Bonferroni: {counted(slices, 'slice')}, two"
                " axes) and the spread of the slice or of all topics, whichever is wider"
            )
        yield _SIGNS if runs or slices else "nothing is classed"
        if any(point.small for point in points):
            yield f"{SMALL}: too few topics to be classed"

    @property
    def _cuts(self) -> str:
        whose = "cuts as given" if self.given_cuts else f"cuts: the means of {self.baseline} over all topics"
        return f"{whose}, {self.x} {decimal(self.cuts[0])} and {self.y} {decimal(self.cuts[1])}"

    def _summary(self) -> Table:
        """Lay out one row per run, without intervals: both measures, how they changed, how many slices are what."""
        wholes, slicing = [point for point in self.points if point.every], self.slicing
        pairs = {x.system: (x, y) for x, y in self._pairs() if x.every}
        columns = list(columns_of(wholes, ("run", TEXT), ("quadrant", _PROBLEM, "problem"), ("n", COUNT, "topics")))
        for at, name in enumerate("xy"):
            changes = [pairs[point.run][at] if point.run in pairs else None for point in wholes]
            sizes = [change and change.result.difference for change in changes]
            stars = ["*" if change and change.significant else "" for change in changes]
            columns.append(self._axis(name, [getattr(point, name) for point in wholes]))
            columns.append(Column(f"{name}_change", sizes, CHANGE, "change", mark=stars))
        told = Counter((point.run, point.quadrant) for point in self.points if not point.every)
        columns += [
            Column(name, [told[point.run, name] for point in wholes], COUNT, SHORT[name])
            for name in (QUADRANTS if slicing is not None else ())
        ]
        last = "" if slicing is None else "; the last columns count the slices that lie clearly above or below the cuts"
        note = (
            f"{len(wholes)} runs in short, without intervals (in full: --per-run; in Python, unfold); {self._cuts};"
            f" {_SIGNS}; changes: {self._tested}{last}"
        )
        return Table("summary", tuple(columns), note=note, labels=2, only="people")

    def _pairs(self) -> list[tuple[Change, Change]]:
        """Give the changes of x and y together, run by run."""
        pairs = zip(self.changes[::2], self.changes[1::2], strict=True)
        return sorted(pairs, key=lambda pair: self.scores.run_names.index(pair[0].system))

    @property
    def _tested(self) -> str:
        choices = self.choices
        return (
            f"each run minus {self.baseline}; paired randomisation test, {choices.resamples} resamples, seed"
            f" {choices.seed}{SECOND if self.slicing else ''}; p by Holm: over runs and axes for all topics, over runs,"
            f" slices and axes below; intervals are as wide as the correction asks; * p up to {1 - choices.level:.2g}"
        )

    def _changes(self) -> Iterator[Table]:
        """Lay out one row per run, slice and axis: how much it changed against the baseline."""
        if self.changes:
            changes = [change for pair in self._pairs() for change in pair]
            yield changes_table(changes, difference_title("run", self.baseline), self._tested, runs=True)

    def topics_table(self, run: str | None = None) -> Table:
        """Lay out one row per topic (and run), worst y first: both measures, the quadrant, and how it changed."""
        runs = self.scores.run_names if run is None else (run,)
        before, labels = self.values(self.baseline), list[tuple[str, str, str]]()
        numbers: list[Any] = []
        for name in runs:
            values, classes = self.values(name), self.topics(name)
            lost = [axis.mask for axis in self.lost.get(name, {}).values()] or np.zeros_like(values)
            order = [at for at in np.lexsort((values[0], values[1])).tolist() if classes[at]]
            labels += [(name, self.scores.query_ids[at], classes[at]) for at in order]
            numbers.append(np.vstack([values, values - before, lost])[:, order])
        x, y, x_change, y_change, *marks = np.hstack(numbers).tolist()
        stars = [["*" if lost else "" for lost in column] for column in marks]
        several = "" if len(runs) > 1 else "data"
        compared = "" if any(name != self.baseline for name in runs) else "data"
        columns = (
            Column("run", [run for run, _, _ in labels], TEXT, only=several),
            Column("query_id", [query for _, query, _ in labels], TEXT),
            Column("quadrant", [quadrant for _, _, quadrant in labels], TEXT),
            Column("x", x, NUMBER, str(self.x)),
            Column("y", y, NUMBER, str(self.y)),
            Column("x_change", x_change, CHANGE, f"{self.x} change", mark=stars[0], only=compared),
            Column("y_change", y_change, CHANGE, f"{self.y} change", mark=stars[1], only=compared),
        )
        return Table("topics", columns, labels=2 if several else 3, folded=True)

    def chart(self, name: str | None = None, **changes: Any) -> Any:
        """Draw topics, slices with their intervals, and the cuts: one run by its name, or all side by side.

        Raises
        ------
        InputError
            If there is no such run.
        MissingExtraError
            If altair is not installed.
        """
        if name in self.scores.run_names:
            return drawn(replace(self.chart_of(name), **changes))
        return super().chart(name, **changes)

    def chart_of(self, run: str | None = None) -> Chart:
        """Draw slices with their intervals over the topics, on axes that hold all runs, a panel a run."""
        points, topics = [point for point in self.points if run in {None, point.run}], self.topics_table(run)
        small = ["all topics" if point.every else "too few topics" if point.small else "" for point in points]
        classes = [name or point.quadrant or OPEN for name, point in zip(small, points, strict=True)]
        none, axes = [None] * len(topics), list[Column]()
        reach: dict[str, tuple[float, ...]] = {}
        every = np.stack([self.values(name) for name in self.scores.run_names])
        for name, axis, numbers in zip("xy", (self.x, self.y), np.moveaxis(every, 1, 0), strict=True):
            means: list[Axis] = [getattr(point, name) for point in points]
            values = [*(mean.value for mean in means), *topics.column(name).values]
            axes.append(Column(name, values, NUMBER, str(axis), ci=[*(mean.ci for mean in means), *none]))
            ends = [end for end in (axis.properties.low, axis.properties.high) if end is not None]
            reach[name] = (*ends, float(np.nanmin(numbers)), float(np.nanmax(numbers)))
        table = Table(
            "map",
            (
                Column("run", [*(point.run for point in points), *topics.column("run").values], TEXT, only="data"),
                Column("name", [*(point.slice for point in points), *topics.column("query_id").values], TEXT),
                Column("quadrant", [*classes, *topics.column("quadrant").values], TEXT),
                Column("class", [*classes, *none], TEXT, only="data"),
                Column("n", [*(point.n for point in points), *none], COUNT),
                *axes,
                Column("small", [*(point.small for point in points), *none], only="data"),
                Column("faint", [*(False for _ in points), *(True for _ in none)], only="data"),
            ),
            only="people",
        )
        whose = "given" if self.given_cuts else f"means of {self.baseline}"
        return Chart(
            "matrix",
            f"{run}: {self.title}" if run else self.title,
            table,
            f"Topics and slices by {self.x} across and {self.y} upwards, with the cuts that part them.",
            "points",
            x="x",
            y="y",
            colour="class",
            colours=_COLOURS,
            hollow="small",
            label="name",
            faint="faint",
            facet="run",
            subtitle=f"cuts (dashed): {whose}; bars: intervals; grey: topics",
            corners=QUADRANTS,
            reach=reach,
            lines=(Line("x", self.cuts[0]), Line("y", self.cuts[1])),
            width=380,
            height=380,
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What each run shows by slice and topic, and what changed against the baseline."""
        if self.barren.all():
            return ("No topic has a relevant document: nothing can be missed, and nothing ranked badly.",)
        of_runs = (said for run in self.scores.run_names for said in self.of_run(run))
        of_changes = (said for x, y in self._pairs() if x.every for said in self._of_change(x, y))
        return (*of_runs, *of_changes)

    def _in_short(self) -> Iterator[str]:
        """Say of many runs how many differ, and on how many slices."""
        runs = len(self.scores.runs)
        wholes = [pair for pair in self._pairs() if pair[0].every]
        for at, axis in enumerate((self.x, self.y)):
            seen = [pair[at].result.difference for pair in wholes if pair[at].significant]
            down = sum(difference < 0 for difference in seen)
            yield (
                f"{axis}: {down} of the other {runs - 1} runs are lower than {self.baseline}, and {len(seen) - down}"
                f" higher, beyond luck (Holm over {2 * len(wholes)} tests)."
            )
        if self.slicing is not None:
            told = {point.run for point in self.points if not point.every and point.quadrant not in {"", OPEN}}
            yield (
                f"On {len(told)} of {runs} runs some slice lies clearly above or below the cuts: the last"
                " columns count such slices."
            )
            if small := dict.fromkeys(point.slice for point in self.points if point.small):
                yield f"Too few topics to be classed: {', '.join(small)}."

    def of_run(self, run: str) -> Iterator[str]:
        """Say which slices of a run are low or high, and count its topics."""
        several = len(self.scores.runs) > 1
        prefix = f"{run}, " if several else ""
        whole, *slices = (point for point in self.points if point.run == run)
        for point in (whole, *slices):
            if point.quadrant not in {"", OPEN}:
                yield prefix + self._of_point(point)
        if undecided := ", ".join(point.slice for point in slices if point.quadrant == OPEN):
            yield f"{prefix}not distinguishable from the cuts: {undecided}."
        if small := [point.slice for point in slices if point.small]:
            yield f"{prefix}too few topics to be classed: {', '.join(small)}."
        if len(self.scores.runs) <= _FEW_RUNS:
            yield (
                f"Of {counted(whole.n, 'topic')}{f' of {run}' if several else ''}, by quadrant:"
                f" {self.said_counts(run)}. This describes them: a single topic proves nothing."
            )

    def _of_point(self, point: Point) -> str:
        whose = "" if self.given_cuts else "the baseline's "
        x, y = (
            f"{name} {axis.text(3)} {axis.side}{' from' if axis.side == OPEN else ''} {whose}{decimal(cut, 3)}"
            for name, axis, cut in ((self.x, point.x, self.cuts[0]), (self.y, point.y, self.cuts[1]))
        )
        meaning = f" ({_MEANING[point.quadrant]})" if point.quadrant in _MEANING else ""
        if point.quadrant == RANKING and point.x.side == OPEN:  # of what is found, nothing is shown
            meaning = " (what is relevant is ranked badly; that less of it is found is not shown)"
        judged = ""
        if point.quadrant == COVERAGE and point.judged < _JUDGED:
            judged = f"; {percent(point.judged)} of its first 10 are judged, so recall may be low for want of judgments"
        return f"{point.slice}: {point.quadrant}{meaning}: {x}, {y}{judged}."

    def _of_change(self, x: Change, y: Change) -> Iterator[str]:
        """Say how a run changed against the baseline, over all topics, by slice and topic."""
        run = x.system
        if x.result.n < 2:
            yield f"{run}: too few topics to test what changed against {self.baseline}."
            return
        yield f"{run} against {self.baseline}: {x.part} {x.told()}, {y.part} {y.told()}."
        mine = [change for change in self.changes if change.system == run]
        for told in told_by_slice(mine, sum(change.by_slice for change in self.changes)):
            yield f"{run} {told}"
        for axis, lost in self.lost[run].items():
            if lost.count or len(self.scores.runs) <= _FEW_RUNS:
                yield f"{run} by {axis}: {who_lost(lost, self.scores.query_ids)}."
