"""Result of `matrix`: runs, slices and topics by two measures, and their quadrants."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.comparison.answer import AnswerOfScores
from judged.comparison.slicing.class_measures import NO_AVERAGE
from judged.comparison.slicing.comparison import difference_title
from judged.comparison.slicing.scores import describe_small_slices
from judged.data.run import find_run_name
from judged.diagnosis.changes import SMALL, changes_table, describe_losers, describe_slice_changes, lost_table
from judged.diagnosis.matrix.points import (
    BOTH,
    COVERAGE,
    NO_RELEVANT,
    QUADRANTS,
    RANKING,
    SHORT,
    UNDECIDED,
    topic_quadrants,
)
from judged.results import Chart, Column, Headline, ReferenceLine, Sentences, Show, Table
from judged.results.chart_drawings import draw_charts
from judged.results.charts import PALETTE
from judged.results.decimals import counted, decimal, percent
from judged.results.table import CHANGE, COUNT, NUMBER, SHARE, TEXT, columns_of
from judged.stats.classical import HALL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from judged.comparison import Comparison
    from judged.comparison.slicing.topic_slices import Slicing
    from judged.diagnosis.changes import TestedChange
    from judged.diagnosis.matrix.points import MatrixAxis, MatrixChoices, MatrixPoint
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.types import Bools, Floats
    from judged.scoring.evaluation import Scores
    from judged.scoring.measures.base import Measure
    from judged.stats.correction import Discoveries

_MAX_FULL_RUNS = 4  # with more runs, a summary is shown
_FULLY_JUDGED = 0.95  # share of the top 10; above it, missing judgments do not explain a low recall
_SIGN = {"below": "-", "above": "+"}
_SIGNS = "-: CI below the threshold, +: CI above the threshold, ?: CI includes the threshold"
_PROBLEM = Show(lambda quadrant: SHORT.get(quadrant, "-"), "string")
_MEANING = {
    RANKING: "relevant documents are retrieved but ranked low",
    COVERAGE: "relevant documents are not retrieved",
}
_SIDE_TEXT = {UNDECIDED: "not significantly different from"}
_CLASSES = (*QUADRANTS, UNDECIDED, "all topics", "too few topics")
_COLORS: dict[str, str] = dict(
    zip(_CLASSES, (*(PALETTE[i] for i in (2, 1, 3)), "#7B3F00", PALETTE[0], PALETTE[6], "#5F5F5F"), strict=True)
)


@dataclass(frozen=True, eq=False, repr=False)
class Matrix(AnswerOfScores):
    """Quadrants of runs, slices and topics by two measures.

    Attributes
    ----------
    scores : Scores
        Scores of both measures.
    x, y : Measure
        Axes: measures of the candidates, and of the final ranking.
    baseline : str
        Run whose means over all topics are the thresholds, and that the other runs are compared with.
    cuts : tuple of two float
        Thresholds between low and high on x and y.
    custom_cuts : bool
        Whether the caller provided the thresholds.
    points : tuple of MatrixPoint
        By run: all topics, then each slice.
    changes : tuple of TestedChange
        Changes of the other runs against the baseline: all topics, then each slice; x, then y; corrected by Holm.
    lost : dict of dict of Discoveries
        By run, then axis: the topics that lost against the baseline, at the configured false discovery rate.
    slicing : Slicing or None
        Slices of topics.
    choices : MatrixChoices
        Level, false discovery rate, resamples and seed.
    no_relevant : (T,) bool
        Topics without a document that is relevant to both axes; all False if the judgments are unknown.
    notes : tuple of Note
        Warnings about the scores.
    """

    kind: ClassVar[str] = "matrix"

    scores: Scores
    x: Measure
    y: Measure
    baseline: str
    cuts: tuple[float, float]
    custom_cuts: bool
    points: tuple[MatrixPoint, ...]
    changes: tuple[TestedChange, ...]
    lost: dict[str, dict[str, Discoveries]]
    slicing: Slicing | None
    choices: MatrixChoices
    no_relevant: Bools
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Measures of both axes."""
        return f"{self.y} against {self.x}"

    def with_overall(self, comparison: Comparison) -> Matrix:
        """Return the matrix with the tests of a comparison of the same topics, which may correct for more runs."""
        if comparison.scores.query_ids != self.scores.query_ids:  # selected by outcomes of different runs
            return self
        pairs = {(pair.second, pair.measure): pair for pair in comparison.pairs if pair.first == self.baseline}
        changes = (
            replace(change, result=pairs[change.system, change.part].result)
            if change.is_overall and (change.system, change.part) in pairs
            else change
            for change in self.changes
        )
        return replace(self, changes=tuple(changes))

    def values(self, run: str) -> Floats:
        """Return x and y of every topic, shape (2, T); NaN if a topic has no score.

        Raises
        ------
        InputError
            If the run does not exist.
        """
        run_names = self.scores.run_names
        row = run_names.index(find_run_name(run, run_names))
        return self.scores.values[row][[self.scores.measure_names.index(str(axis)) for axis in (self.x, self.y)]]

    def topics(self, run: str) -> tuple[str, ...]:
        """Classify every topic of a run by the cuts; empty text if a topic has no score.

        Raises
        ------
        InputError
            If the run does not exist.
        """
        return topic_quadrants(self.values(run), self.cuts, self.no_relevant)

    def counts(self, run: str) -> dict[str, int]:
        """Count the topics of a run by quadrant, and those without a relevant document if there are any."""
        counts = Counter(self.topics(run))
        return {name: counts[name] for name in (*QUADRANTS, *([NO_RELEVANT] if counts[NO_RELEVANT] else []))}

    def describe_counts(self, run: str) -> str:
        """Describe the counts of a run above 0, such as ``17 healthy, 7 with a ranking problem``."""
        labels = {name: f"with a {name}" for name in (RANKING, COVERAGE)}
        labels |= {BOTH: "with a ranking and a coverage problem", NO_RELEVANT: f"with {NO_RELEVANT}"}
        counts = {labels.get(name, name): n for name, n in self.counts(run).items() if n}
        return ", ".join(f"{n:,} {name}" for name, n in counts.items())

    def headline_of(self, run: str) -> Headline:
        """Return the number of topics of a run with a problem, and the most frequent problem; nothing is tested."""
        counts = self.counts(run)
        problems = {name: counts[name] for name in (RANKING, COVERAGE, BOTH)}
        total, most_frequent = sum(counts.values()), max(problems, key=problems.__getitem__)
        if not sum(counts[name] for name in QUADRANTS):
            return Headline("unknown", "not classified", "No topic has both scores and a relevant document.")
        described = ", ".join(f"{n:,} {name}" for name, n in counts.items() if n)
        return Headline(
            "info",
            f"most frequent: {most_frequent}" if problems[most_frequent] else "no problem",
            f"{described[0].upper()}{described[1:]}. Topics are classified, not tested.",
            f"of {counted(total, 'topic')} of {run} below a threshold",
            sum(problems.values()),
            COUNT,
        )

    def facts(self) -> dict[str, Any]:
        """Return measures, baseline, cuts and options."""
        names = ("x", "y", "baseline", "cuts", "custom_cuts")
        attributes = {name: getattr(self, name) for name in names}
        return {**attributes, "choices": vars(self.choices), "quadrants": QUADRANTS}

    def blocks(self) -> tuple[Block, ...]:
        """Return points, changes, sentences and topics. With many runs, a summary comes first."""
        brief = len(self.scores.runs) > _MAX_FULL_RUNS
        counts = [
            {"run": run, "quadrant": name, "n": count}
            for run in self.scores.run_names
            for name, count in self.counts(run).items()
        ]
        losses = [(run, axis, discoveries) for run, axes in self.lost.items() for axis, discoveries in axes.items()]
        full = (self._points(), *self._changes(), Sentences(self.sentences, title="Run by run" if brief else ""))
        return (
            *((self._summary(), Sentences(tuple(self._summary_sentences()), "summary")) if brief else ()),
            *(replace(block, folded=brief) for block in full),
            self.run_chart(),
            self.topics_table(),
            Table("counts", columns_of(counts, ("run", TEXT), ("quadrant", TEXT), ("n", COUNT)), only="data"),
            *([lost_table(losses, self.scores.query_ids)] if losses else []),
        )

    def _points(self) -> Table:
        titles = {"x": str(self.x), "y": str(self.y)}
        table = _points_table(self.points, titles, runs=len(self.scores.runs) > 1)
        return replace(table, note="; ".join(self._rules()))

    def _rules(self) -> Iterator[str]:
        """Yield the origin of the cuts, and the rules by which runs and slices are classified."""
        points, options = self.points, self.choices
        runs = sum(point.is_overall and bool(point.quadrant) for point in points)
        slices = len({point.slice for point in points if point.quadrant and not point.is_overall})
        yield f"{self._cuts_text}; the uncertainty of thresholds is ignored; [{options.level:.0%} CI: Student's t]"
        if runs:
            runs_text = counted(runs, "run") + ("" if self.custom_cuts else " besides the baseline")
            level = options.corrected(2 * runs)
            yield f"runs are classified by {level:.2%} CIs (Bonferroni: {runs_text}, two measures)"
        if slices:
            yield (
                f"slices are classified by {options.corrected(2 * slices):.2%} CIs (Bonferroni:"
                f" {counted(slices, 'slice')}, two measures); each CI uses the standard deviation of the slice"
                " or of all topics, whichever is larger"
            )
        yield _SIGNS if runs or slices else "no run or slice is assigned to a quadrant"
        if any(point.small for point in points):
            yield f"{SMALL}: too few topics"

    @property
    def _cuts_text(self) -> str:
        origin = "set by the user" if self.custom_cuts else f"the means of {self.baseline} over all topics"
        return (
            f"thresholds between low and high ({origin}): {self.x} {decimal(self.cuts[0])} and"
            f" {self.y} {decimal(self.cuts[1])}"
        )

    def _summary(self) -> Table:
        """Return a table with one row per run: both measures, their changes, and the number of slices by quadrant."""
        overall, slicing = [point for point in self.points if point.is_overall], self.slicing
        pairs = {x.system: (x, y) for x, y in self._change_pairs() if x.is_overall}
        columns = list(columns_of(overall, ("run", TEXT), ("quadrant", _PROBLEM, "problem"), ("n", COUNT, "topics")))
        for i, name in enumerate("xy"):
            changes = [pairs[point.run][i] if point.run in pairs else None for point in overall]
            differences = [change and change.result.difference for change in changes]
            stars = ["*" if change and change.significant else "" for change in changes]
            columns.append(_axis_column(name, [getattr(point, name) for point in overall], str(getattr(self, name))))
            columns.append(Column(f"{name}_change", differences, CHANGE, "change", mark=stars))
        slice_counts = Counter((point.run, point.quadrant) for point in self.points if not point.is_overall)
        columns += [
            Column(name, [slice_counts[point.run, name] for point in overall], COUNT, SHORT[name])
            for name in (QUADRANTS if slicing is not None else ())
        ]
        legend = "" if slicing is None else "; the last columns count the slices of each class"
        note = (
            f"summary of {len(overall)} runs; for CIs, use --per-run (in Python, unfold);"
            f" {self._cuts_text}; {_SIGNS}; changes: {self._test_text}{legend}"
        )
        return Table("summary", tuple(columns), note=note, labels=2, only="people")

    def _change_pairs(self) -> list[tuple[TestedChange, TestedChange]]:
        """Return the changes of x and y in pairs, by run."""
        pairs = zip(self.changes[::2], self.changes[1::2], strict=True)
        return sorted(pairs, key=lambda pair: self.scores.run_names.index(pair[0].system))

    @property
    def _test_text(self) -> str:
        options = self.choices
        return (
            f"each run minus {self.baseline}; paired randomization test, {options.resamples} resamples, seed"
            f" {options.seed}{HALL if self.slicing else ''}; p corrected by Holm, separately for tests over all"
            f" topics and tests by slice; CIs corrected in the same way; *: p <= {1 - options.level:.2g}"
        )

    def _changes(self) -> Iterator[Table]:
        if self.changes:
            changes = [change for pair in self._change_pairs() for change in pair]
            yield changes_table(changes, difference_title("run", self.baseline), self._test_text, runs=True)

    def topics_table(self, run: str | None = None) -> Table:
        """Return a table with one row per topic, and run, sorted by y."""
        runs = self.scores.run_names if run is None else (run,)
        baseline_values, labels = self.values(self.baseline), list[tuple[str, str, str]]()
        numbers: list[Any] = []
        for name in runs:
            values, quadrants = self.values(name), self.topics(name)
            masks = [discoveries.mask for discoveries in self.lost.get(name, {}).values()] or np.zeros_like(values)
            order = [i for i in np.lexsort((values[0], values[1])).tolist() if quadrants[i]]
            labels += [(name, self.scores.query_ids[i], quadrants[i]) for i in order]
            numbers.append(np.vstack([values, values - baseline_values, masks])[:, order])
        x, y, x_change, y_change, *marks = np.hstack(numbers).tolist()
        stars = [["*" if is_lost else "" for is_lost in column] for column in marks]
        run_visibility = "" if len(runs) > 1 else "data"
        change_visibility = "" if any(name != self.baseline for name in runs) else "data"
        columns = (
            Column("run", [run for run, _, _ in labels], TEXT, only=run_visibility),
            Column("query_id", [topic for _, topic, _ in labels], TEXT),
            Column("quadrant", [quadrant for _, _, quadrant in labels], TEXT),
            Column("x", x, NUMBER, str(self.x)),
            Column("y", y, NUMBER, str(self.y)),
            Column("x_change", x_change, CHANGE, f"{self.x} change", mark=stars[0], only=change_visibility),
            Column("y_change", y_change, CHANGE, f"{self.y} change", mark=stars[1], only=change_visibility),
        )
        return Table("topics", columns, labels=2 if run_visibility else 3, folded=True)

    def chart(self, name: str | None = None, **changes: Any) -> Any:
        """Return a chart of topics, slices with their intervals, and cuts, for one run by name or all runs in panels.

        Raises
        ------
        InputError
            If the run does not exist.
        MissingExtraError
            If altair is not installed.
        """
        if name in self.scores.run_names:
            return draw_charts(replace(self.run_chart(name), **changes))
        return super().chart(name, **changes)

    def run_chart(self, run: str | None = None) -> Chart:
        """Return a chart of slices with intervals over the topics. The axes have the same range for all runs."""
        points, topics = [point for point in self.points if run in {None, point.run}], self.topics_table(run)
        labels = ["all topics" if point.is_overall else "too few topics" if point.small else "" for point in points]
        quadrants = [name or point.quadrant or UNDECIDED for name, point in zip(labels, points, strict=True)]
        no_topics, axes = [None] * len(topics), list[Column]()
        axis_ranges: dict[str, tuple[float, ...]] = {}
        all_values = np.stack([self.values(name) for name in self.scores.run_names])
        for name, axis, axis_values in zip("xy", (self.x, self.y), np.moveaxis(all_values, 1, 0), strict=True):
            means: list[MatrixAxis] = [getattr(point, name) for point in points]
            values = [*(mean.value for mean in means), *topics.column(name).values]
            axes.append(Column(name, values, NUMBER, str(axis), ci=[*(mean.ci for mean in means), *no_topics]))
            bounds = [end for end in (axis.properties.low, axis.properties.high) if end is not None]
            axis_ranges[name] = (*bounds, float(np.nanmin(axis_values)), float(np.nanmax(axis_values)))
        table = Table(
            "map",
            (
                Column("run", [*(point.run for point in points), *topics.column("run").values], TEXT, only="data"),
                Column("name", [*(point.slice for point in points), *topics.column("query_id").values], TEXT),
                Column("quadrant", [*quadrants, *topics.column("quadrant").values], TEXT),
                Column("class", [*quadrants, *no_topics], TEXT, only="data"),
                Column("n", [*(point.n for point in points), *no_topics], COUNT),
                *axes,
                Column("small", [*(point.small for point in points), *no_topics], only="data"),
                Column("faint", [*(False for _ in points), *(True for _ in no_topics)], only="data"),
            ),
            only="people",
        )
        origin = "set by the user" if self.custom_cuts else f"means of {self.baseline}"
        return Chart(
            "matrix",
            f"{run}: {self.title}" if run else self.title,
            table,
            f"Topics and slices by {self.x} (horizontal) and {self.y} (vertical). Dashed lines: thresholds.",
            "points",
            x="x",
            y="y",
            color="class",
            colors=_COLORS,
            hollow="small",
            label="name",
            faint="faint",
            facet="run",
            subtitle=f"thresholds (dashed): {origin}; bars: CIs; gray: topics",
            corners=QUADRANTS,
            includes=axis_ranges,
            lines=(ReferenceLine("x", self.cuts[0]), ReferenceLine("y", self.cuts[1])),
            width=380,
            height=380,
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """Quadrants of each run by slice and topic, and changes against the baseline."""
        if self.no_relevant.all():
            return ("No topic has a relevant document, so no topic can be classified.",)
        runs = (text for run in self.scores.run_names for text in self.describe_run(run))
        changes = (text for x, y in self._change_pairs() if x.is_overall for text in self._describe_change(x, y))
        return (*runs, *changes)

    def _summary_sentences(self) -> Iterator[str]:
        """Yield the number of runs, and of runs with a slice, that differ."""
        runs = len(self.scores.runs)
        pairs = [pair for pair in self._change_pairs() if pair[0].is_overall]
        for i, axis in enumerate((self.x, self.y)):
            significant = [pair[i].result.difference for pair in pairs if pair[i].significant]
            down, up = (sum(sign * difference > 0 for difference in significant) for sign in (-1, 1))
            yield (
                f"{axis}: of the other {runs - 1} runs, {down} are significantly lower than {self.baseline}, and {up}"
                f" significantly higher (p corrected by Holm for {2 * len(pairs)} tests)."
            )
        if self.slicing is not None:
            slices = [point for point in self.points if not point.is_overall]
            count = len({point.run for point in slices if point.quadrant not in {"", UNDECIDED}})
            yield (
                f"For {count} of {runs} runs, the CIs classify at least one slice as healthy or as a problem. The last"
                " columns count the slices of each class."
            )
            if small := dict.fromkeys(point.slice for point in self.points if point.small):
                yield f"Slices with too few topics for a classification: {', '.join(small)}."

    def describe_run(self, run: str) -> Iterator[str]:
        """Yield the slices of a run that are low or high, and the counts of its topics."""
        has_several_runs = len(self.scores.runs) > 1
        prefix = f"{run}, " if has_several_runs else ""
        of_run = f" of run {run}" if has_several_runs else ""
        overall, *slices = (point for point in self.points if point.run == run)
        for point in (overall, *slices):
            if point.quadrant not in {"", UNDECIDED}:
                measures, owner = (str(self.x), str(self.y)), "" if self.custom_cuts else "the baseline's "
                yield prefix + _describe_point(point, measures, self.cuts, owner)
        if undecided := ", ".join(point.slice for point in slices if point.quadrant == UNDECIDED):
            limit = "the threshold" if self.custom_cuts else f"the mean of run {self.baseline}"
            yield (
                f"Slices{of_run} that cannot be classified, because {self.x} or {self.y} does not differ significantly"
                f" from {limit}: {undecided}."
            )
        if small := [point.slice for point in slices if point.small]:
            yield f"Slices{of_run} with too few topics for a classification: {', '.join(small)}."
        if len(self.scores.runs) <= _MAX_FULL_RUNS:
            yield (
                f"The {counted(overall.n, 'topic')}{of_run} by quadrant:"
                f" {self.describe_counts(run)}. The quadrants of topics are descriptive, not tested."
            )

    def _describe_change(self, x: TestedChange, y: TestedChange) -> Iterator[str]:
        """Yield the changes of a run against the baseline, over all topics, by slice and by topic."""
        run = x.system
        if x.result.n < 2:
            yield f"{run}: too few topics to test changes from {self.baseline}."
            return
        yield f"{run} against {self.baseline}: {x.part} {x.describe()}, {y.part} {y.describe()}."
        run_changes = [change for change in self.changes if change.system == run]
        tests = sum(change.by_slice for change in self.changes)
        yield from describe_slice_changes(run_changes, tests, f"{run} against {self.baseline}")
        for axis, discoveries in self.lost[run].items():
            if discoveries.count or len(self.scores.runs) <= _MAX_FULL_RUNS:
                yield f"{run} against {self.baseline} by {axis}: {describe_losers(discoveries, self.scores.query_ids)}."


@dataclass(frozen=True, eq=False, repr=False)
class ClassMatrix(AnswerOfScores):
    """Quadrants of runs on classes of topics, each by its own measure.

    Attributes
    ----------
    x : Measure
        Measure of the candidates, the same for all classes.
    baseline : str
        Run whose means on each class are the thresholds of this class.
    level : float
        Simultaneous confidence level of the intervals that classify.
    points : tuple of MatrixPoint
        By run and class, first those of the baseline.
    """

    kind: ClassVar[str] = "class-matrix"

    scores: Scores
    x: Measure
    baseline: str
    level: float
    points: tuple[MatrixPoint, ...]
    slicing: Slicing
    notes: tuple[Note, ...] = ()

    def facts(self) -> dict[str, Any]:
        """Return the measure of the candidates, the baseline, and the level."""
        return {"x": self.x, "baseline": self.baseline, "level": self.level}

    def blocks(self) -> tuple[Block, ...]:
        """Return the table of points, the sentences, and the classes."""
        note = (
            f"thresholds: the means of {self.baseline} on each class; their uncertainty is ignored; [CI: Student's t,"
            f" {self.level:.0%} for all CIs together (Bonferroni)]; {_SIGNS}"
        )
        table = _points_table(self.points, {"x": str(self.x), "y": "own measure"}, runs=True)
        return replace(table, note=note, labels=4), Sentences(self.sentences), self.slicing.table()

    @property
    def sentences(self) -> tuple[str, ...]:
        """Classified classes of each run, and small classes."""
        owner = f"{self.baseline}'s "
        points = (
            f"{point.run}, {_describe_point(point, (str(self.x), point.measure), point.cuts, owner)}"
            for point in self.points
            if point.quadrant not in {"", UNDECIDED}
        )
        return (*points, NO_AVERAGE, *describe_small_slices(self.slicing))


def _points_table(points: Sequence[MatrixPoint], titles: Mapping[str, str], *, runs: bool) -> Table:
    """Return a table with one row per point; `titles` name both axes, and `runs` is whether to show the run."""
    by_class = any(point.measure for point in points)
    columns = [
        *columns_of(points, ("run", TEXT) if runs else "run", ("slice", TEXT)),
        *(columns_of(points, ("measure", TEXT)) if by_class else ()),
        Column("quadrant", [point.quadrant or None for point in points], _PROBLEM, "problem"),
        Column("n", [point.n for point in points], COUNT, details=[SMALL * point.small for point in points]),
        *columns_of(points, "small"),
    ]
    for i, (name, title) in enumerate(titles.items()):
        axes = [getattr(point, name) for point in points]
        columns.append(replace(_axis_column(name, axes, title), ci=[axis.ci for axis in axes]))
        columns.append(Column(f"{name}_side", [axis.side or None for axis in axes], TEXT, only="data"))
        if by_class:
            columns.append(Column(f"{name}_cut", [point.cuts[i] for point in points], NUMBER, "threshold"))
    columns += columns_of(points, ("judged", SHARE) if any(point.judged < 1 for point in points) else "judged")
    return Table("points", tuple(columns), labels=3 if runs else 2)


def _axis_column(name: str, axes: Sequence[MatrixAxis], title: str) -> Column:
    marks = [_SIGN.get(axis.side, "") for axis in axes]
    return Column(name, [axis.value for axis in axes], NUMBER, title, mark=marks)


def _describe_point(point: MatrixPoint, measures: tuple[str, str], cuts: tuple[float, float], owner: str) -> str:
    x, y = (
        f"{name} {axis.text(3)} {_SIDE_TEXT.get(axis.side, axis.side)} {owner}{decimal(cut, 3)}"
        for name, axis, cut in zip(measures, (point.x, point.y), cuts, strict=True)
    )
    meaning = f" ({_MEANING[point.quadrant]})" if point.quadrant in _MEANING else ""
    if point.quadrant == RANKING and point.x.side == UNDECIDED:  # x is not shown to be high
        meaning = " (relevant documents are ranked low; it is undecided whether fewer are retrieved)"
    judged = ""
    if point.quadrant == COVERAGE and point.judged < _FULLY_JUDGED:
        judged = (
            f"; only {percent(point.judged)} of the top 10 documents are judged, so recall may be low because"
            f" judgments are missing"
        )
    return f"{point.slice}: {point.quadrant}{meaning}: {', '.join(dict.fromkeys((x, y)))}{judged}."
