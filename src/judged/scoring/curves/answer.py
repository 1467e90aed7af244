"""`Curves`, the result of `curve` and `precision_recall`: the points of each run, with confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias

import numpy as np

from judged.errors import InputError
from judged.results import COUNT, NUMBER, TEXT, Answer, Chart, Column, Table, significant
from judged.results.blocks import first_few
from judged.results.chart_drawings import AREAS
from judged.results.charts import round_positions
from judged.results.decimals import decimal
from judged.results.escaping import escape_controls
from judged.results.types import ReadOnly
from judged.scoring.curves.terminal_plot import render
from judged.scoring.evaluation.summary import describe_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.types import Floats, Ints
    from judged.scoring.evaluation import Scores
    from judged.scoring.evaluation.facts import Provenance
    from judged.stats.interval import IntervalMethod

CurveKind: TypeAlias = Literal["cutoff", "interpolated", "raw"]
_BATCH_CURVES = 4000  # most points (runs times cutoffs) in one batch of estimates
_MAX_ROWS = 12  # rows of the displayed table


@dataclass(frozen=True, eq=False, repr=False)
class Curves(ReadOnly, Answer):
    """One curve per run, for R runs and K points.

    The main table has one row per run and point; ``table("topics")`` has one row per run, point, and topic.

    Attributes
    ----------
    how : str
        ``cutoff``: a measure by cutoff; ``interpolated``: interpolated precision by recall; ``raw``: precision and
        recall at the same cutoffs.
    name : str
        Name of the measure with ``k`` for the cutoff, or ``c`` for the recall.
    points : array
        (K,): cutoffs, or recalls for ``interpolated``, in ascending order.
    x : array
        (R, K): x-coordinates: `points`, or for ``raw`` the mean recall of each run at the cutoff; NaN for no point.
    mean, low, high : array
        (R, K): aggregate of the measure over topics, and its confidence interval; NaN for no value.
    n : array
        (R, K): number of topics of each point.
    scores : Scores
        Scores of all topics at the K points. For ``raw``, the K precisions followed by the K recalls.
    interval : IntervalMethod
        Method of the confidence intervals.

    Examples
    --------
    >>> from judged import curve
    >>> curves = curve({"q": {"a": 1, "b": 1}}, {"q": {"x": 3.0, "a": 2.0, "b": 1.0}}, "R")
    >>> curves.x.tolist(), curves.mean.tolist()
    ([[1.0, 2.0, 3.0]], [[0.0, 0.5, 1.0]])
    """

    kind: ClassVar[str] = "curves"

    how: CurveKind
    name: str
    points: Floats
    x: Floats
    mean: Floats
    low: Floats
    high: Floats
    n: Ints
    scores: Scores
    interval: IntervalMethod
    notes: tuple[Note, ...] = ()

    @classmethod
    def from_scores(cls, how: CurveKind, name: str, points: Floats, scores: Scores, interval: IntervalMethod) -> Self:
        """Create curves from the scores of K measures, one per point; for ``raw``, followed by the K recalls."""
        num_points = len(points)
        mean, low, high, counts = _estimate(scores, slice(0, num_points), interval)
        x = np.broadcast_to(points, mean.shape).copy()
        if how == "raw":
            x = _estimate(scores, slice(num_points, 2 * num_points), replace(interval, name="none"))[0]
            if len(scores.query_ids) == 1:  # one topic: keep only the ranks of relevant documents
                has_no_new_hit = np.diff(x, axis=1, prepend=0.0) <= 0
                x, mean = np.where(has_no_new_hit, np.nan, x), np.where(has_no_new_hit, np.nan, mean)
        return cls(how, name, points, x, mean, low, high, counts, scores, interval, scores.notes)

    @property
    def title(self) -> str:
        """Title of the chart."""
        if self.how == "cutoff":
            return f"{self.name} by cutoff k"
        if self.how == "interpolated":
            return f"Interpolated precision by recall: {self.name}"
        return f"Precision by recall, k = {self.points[0]:.0f} to {self.points[-1]:.0f}: {self.name}"

    @property
    def labels(self) -> tuple[str, str]:
        """Labels of the x-axis and the y-axis."""
        if self.how == "cutoff":
            return "k", self.name
        return "recall", "interpolated precision" if self.how == "interpolated" else "precision"

    @property
    def provenance(self) -> Provenance:
        """Inputs and policies of the scores, and the interval method."""
        return replace(self.scores.provenance, interval=self.interval)

    @property
    def run_names(self) -> tuple[str, ...]:
        """Names of the runs."""
        return self.scores.run_names

    @property
    def query_ids(self) -> tuple[str, ...]:
        """Query ids in byte order."""
        return self.scores.query_ids

    @property
    def per_topic(self) -> Floats:
        """Scores by run, point, and topic: (R, K, T); NaN for a topic that does not count."""
        return self.scores.values[:, : len(self.points)]

    @property
    def caption(self) -> str:
        """Policies and interval method of the scores."""
        if len(self.query_ids) == 1:
            return describe_rules(self.scores, over=f"topic {self.query_ids[0]}")
        return describe_rules(self.scores, self.interval)

    def basis(self, *, intervals: bool = True) -> str:
        """Return the aggregate, the number of topics, and the interval method, as text."""
        if len(self.query_ids) == 1:
            return f"topic {self.query_ids[0]}"
        lowest, highest = int(self.n.min()), int(self.n.max())
        count = f"{highest}" if lowest == highest else f"{lowest} to {highest}"
        text = f"{self.scores.measures[0].entry.aggregate} over {count} topics"
        if not intervals or np.isnan(self.low).all():
            return text
        return f"{text}, [{self.scores.interval_caption(self.interval)}]"

    def topic(self, query_id: str) -> Self:
        """Return the curves of one topic. For ``raw``, there is one point per relevant document in the ranking.

        Raises
        ------
        InputError
            If the topic is not among those that count.
        """
        query_id = str(query_id)
        if query_id not in self.query_ids:
            problem = f"no topic {query_id!r} in the curves"
            raise InputError(problem, fix=f"use one of {first_few(self.query_ids)}")
        scores = self.scores.over_topics(np.array(self.query_ids) == query_id)
        notes = tuple(note for note in scores.notes if note.rule != "ties")  # that note is about means
        return self.from_scores(self.how, self.name, self.points, replace(scores, notes=notes), self.interval)

    def blocks(self) -> tuple[Block, ...]:
        """Return the table of round points, all points as data, and the chart."""
        return self.by_run(), self._points(), self._chart()

    def facts(self) -> dict[str, Any]:
        """Return the kind of curve, the measure, and the points."""
        name = "recalls" if self.how == "interpolated" else "cutoffs"
        return {"how": self.how, "measure": self.name, name: self._point_column(range(len(self.points))).values}

    def table(self, name: str | None = None) -> Table:
        """Return a table by name: all points for None, the scores of all topics for ``topics``.

        Raises
        ------
        InputError
            If there is no table of this name.
        """
        return self._by_topic() if name == "topics" else super().table(name)

    def plot(self, *, width: int = 80, height: int = 20, ascii_only: bool = False, color: bool = False) -> str:
        """Render the curves for a terminal, with axes and a legend.

        Parameters
        ----------
        width, height
            Size of the plot with its axes in characters. The legend and the caption follow below.
        ascii_only
            Whether to use letters only, for a terminal without braille characters.
        color
            Whether to use a color for each run.
        """
        where = self.provenance.where
        over = f"\n\nOver the topics where {escape_controls(where)}." if where else ""
        return f"{render(self, width, height, ascii_only=ascii_only, color=color)}\n\n{self.caption}{over}"

    def by_run(self) -> Table:
        """Return a table with one row per point and one column per run; of many points, only 1, 2, 5, 10, 20 ..."""
        round_points = np.flatnonzero(~np.isnan(self.mean).all(axis=0))
        round_points = round_points[round_positions(self.points[round_points], _MAX_ROWS)]
        columns = [self._point_column(round_points)]
        for row, run in enumerate(self.run_names):
            if self.how == "raw":
                columns.append(Column(f"recall{row}", self.x[row, round_points].tolist(), NUMBER, f"{run} recall"))
            title = f"{run} precision" if self.how == "raw" else run
            columns.append(self.value_column(f"value{row}", (row, round_points), title))
        return Table("curves", tuple(columns), self.title, self.caption, only="people")

    def value_column(self, name: str, index: Any, title: str) -> Column:
        """Return a column with the means and intervals of the points selected by `index`."""
        low, high = self.low[index].tolist(), self.high[index].tolist()
        intervals = [None if np.isnan(limits[0]) else limits for limits in zip(low, high, strict=True)]
        return Column(name, self.mean[index].tolist(), NUMBER, title, ci=intervals)

    def _point_column(self, points: Sequence[int] | Ints) -> Column:
        if self.how == "interpolated":
            return Column("recall", self.points[points].tolist(), significant(12))
        return Column("cutoff", self.points[points].astype(int).tolist(), COUNT, "k")

    def _points(self) -> Table:
        index = run_index, point = np.nonzero(~np.isnan(self.mean))
        columns = [Column("run", [self.run_names[row] for row in run_index.tolist()], TEXT), self._point_column(point)]
        if self.how == "raw":
            columns.append(Column("recall", self.x[index].tolist(), NUMBER))
        columns += [
            self.value_column("value", index, self.labels[1]),
            Column("n", self.n[index].tolist(), COUNT, "topics"),
        ]
        return Table("points", tuple(columns), labels=2, only="data")

    def _by_topic(self) -> Table:
        index = run_index, point, topic_index = np.nonzero(~np.isnan(self.per_topic))
        columns = [
            Column("run", [self.run_names[row] for row in run_index.tolist()], TEXT),
            self._point_column(point),
            Column("query_id", [self.query_ids[row] for row in topic_index.tolist()], TEXT),
        ]
        if self.how == "raw":
            columns.append(Column("recall", self.scores.values[:, len(self.points) :][index].tolist(), NUMBER))
        columns.append(Column("value", self.per_topic[index].tolist(), NUMBER))
        return Table("topics", tuple(columns), labels=3, only="data")

    def _chart(self) -> Chart:
        by_cutoff = self.how == "cutoff"
        sentence = f"{self.title}, {self.basis()}."
        if by_cutoff:
            best = int(np.nan_to_num(self.mean[:, -1], nan=-np.inf).argmax())
            sentence = (
                f"{self.title} from {self.points[0]:.0f} to {self.points[-1]:.0f}, {self.basis()}."
                f" At k = {self.points[-1]:.0f}, {self.run_names[best]} is highest with"
                f" {decimal(float(self.mean[best, -1]))}."
            )
        return Chart(
            name="curves",
            title=self.title,
            subtitle=self.basis(intervals=len(self.run_names) <= AREAS),
            table=self._points(),
            numbers=self.by_run(),
            sentence=sentence,
            kind="lines",
            x="cutoff" if by_cutoff else "recall",
            y="value",
            color="run",
            spread="cutoff" if by_cutoff else "",
            from_zero=True,
            includes={"x": (0.0, 1.0)} if self.how == "interpolated" else {},
            height=300,
        )

    def __repr__(self) -> str:
        return "\n".join([self.plot(), *(f"warning: {text}" for text in self.warnings)])


def _estimate(scores: Scores, selection: slice, interval: IntervalMethod) -> tuple[Floats, Floats, Floats, Ints]:
    """Estimate the aggregates of some measures. Return mean, low, high, and number of topics, each (R, K)."""
    # In batches of runs: the resamples of all runs at a thousand cutoffs would not fit into memory.
    measures = scores.measures[selection]
    shape, batch_size = (len(scores.runs), len(measures)), max(1, _BATCH_CURVES // len(measures))
    estimates = [
        estimate
        for start in range(0, len(scores.runs), batch_size)
        for estimate in replace(
            scores,
            runs=scores.runs[start : start + batch_size],
            measures=measures,
            values=scores.values[start : start + batch_size, selection],
            counted=scores.counted[start : start + batch_size],
        ).estimates(ci=interval.name, level=interval.level, resamples=interval.resamples, seed=interval.seed)
    ]
    no_interval = (np.nan, np.nan)
    rows = np.array([(row.value, *(row.ci or no_interval)) for row in estimates], dtype=np.float64)
    mean, low, high = (column.reshape(shape) for column in rows.T.copy())
    return mean, low, high, np.array([row.n for row in estimates], dtype=np.int64).reshape(shape)
