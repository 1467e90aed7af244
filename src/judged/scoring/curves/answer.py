"""What `curve` and `precision_recall` return: the points of every run, with intervals, as an answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias

import numpy as np

from judged.errors import InputError, MissingExtraError
from judged.results import COUNT, NUMBER, TEXT, Answer, Chart, Column, Table, significant
from judged.results.blocks import first_few
from judged.results.chart_drawings import AREAS
from judged.results.charts import picture, round_of
from judged.results.decimals import decimal
from judged.results.escaping import visible
from judged.results.types import ReadOnly
from judged.scoring.evaluation.summary import describe_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.types import Floats, Ints
    from judged.scoring.evaluation import Scores
    from judged.scoring.evaluation.facts import Provenance
    from judged.stats.interval import IntervalMethod

How: TypeAlias = Literal["cutoff", "interpolated", "raw"]
_HELD = 4000  # lines times cutoffs whose resamples are held at a time
_ROWS = 12  # points of a table for people


@dataclass(frozen=True, eq=False, repr=False)
class Curves(ReadOnly, Answer):
    """One line per run, of R runs and K points.

    Its main table has one row per run and point; ``table("topics")`` every topic's.

    Attributes
    ----------
    how : str
        ``cutoff``: a measure by cutoff; ``interpolated``: interpolated precision by recall; ``raw``: precision and
        recall at the same cutoffs.
    name : str
        What is drawn: the measure's name with ``k`` for the cutoff, or ``c`` for the recall.
    points : array
        (K,): the cutoff of each point, or its recall where it is interpolated; rising.
    x : array
        (R, K): where each point stands: its place, or the mean recall of a run at that cutoff; NaN where it has none.
    mean, low, high : array
        (R, K): the measure's own aggregate over topics and its interval; NaN where there is none.
    n : array
        (R, K): how many topics each point rests on.
    scores : Scores
        The scores of every topic that the points are made of. For ``raw`` the K precisions, then the K recalls.
    interval : IntervalMethod
        How the intervals are made.

    Examples
    --------
    >>> from judged import curve
    >>> made = curve({"q": {"a": 1, "b": 1}}, {"q": {"x": 3.0, "a": 2.0, "b": 1.0}}, "R")
    >>> made.x.tolist(), made.mean.tolist()
    ([[1.0, 2.0, 3.0]], [[0.0, 0.5, 1.0]])
    """

    kind: ClassVar[str] = "curves"

    how: How
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
    def of(cls, how: How, name: str, at: Floats, scores: Scores, interval: IntervalMethod) -> Self:
        """Draw lines through scores: their measures are the K points, for ``raw`` followed by the K recalls."""
        points = len(at)
        mean, low, high, topics = _estimated(scores, slice(0, points), interval)
        x = np.broadcast_to(at, mean.shape).copy()
        if how == "raw":
            x = _estimated(scores, slice(points, 2 * points), replace(interval, name="none"))[0]
            if len(scores.query_ids) == 1:  # of one topic only the ranks where something relevant was found
                same = np.diff(x, axis=1, prepend=0.0) <= 0
                x, mean = np.where(same, np.nan, x), np.where(same, np.nan, mean)
        return cls(how, name, at, x, mean, low, high, topics, scores, interval, scores.notes)

    @property
    def title(self) -> str:
        """What is drawn, in one line."""
        if self.how == "cutoff":
            return f"{self.name} by cutoff k"
        if self.how == "interpolated":
            return f"Interpolated precision by recall: {self.name}"
        return f"Precision by recall, k = {self.points[0]:.0f} to {self.points[-1]:.0f}: {self.name}"

    @property
    def labels(self) -> tuple[str, str]:
        """What stands at the axes, x and y."""
        if self.how == "cutoff":
            return "k", self.name
        return "recall", "interpolated precision" if self.how == "interpolated" else "precision"

    @property
    def provenance(self) -> Provenance:
        """What the numbers rest on."""
        return replace(self.scores.provenance, interval=self.interval)

    @property
    def run_names(self) -> tuple[str, ...]:
        """The names of the runs, one a line."""
        return self.scores.run_names

    @property
    def query_ids(self) -> tuple[str, ...]:
        """The topics, in byte order."""
        return self.scores.query_ids

    @property
    def per_topic(self) -> Floats:
        """The score of every topic at each point: (R, K, T); NaN where a topic does not count."""
        return self.scores.values[:, : len(self.points)]

    @property
    def caption(self) -> str:
        """By which rules the numbers were made."""
        if len(self.query_ids) == 1:
            return describe_rules(self.scores, over=f"topic {self.query_ids[0]}")
        return describe_rules(self.scores, self.interval)

    def basis(self, *, intervals: bool = True) -> str:
        """Say what each point is: over how many topics, and with which interval."""
        if len(self.query_ids) == 1:
            return f"topic {self.query_ids[0]}"
        fewest, most = int(self.n.min()), int(self.n.max())
        count = f"{most}" if fewest == most else f"{fewest} to {most}"
        said = f"{self.scores.measures[0].entry.aggregate} over {count} topics"
        if not intervals or np.isnan(self.low).all():
            return said
        return f"{said}, [{self.scores.interval_caption(self.interval)}]"

    def topic(self, query_id: str) -> Self:
        """Draw one topic alone. Its precision and recall have a point at each relevant document that was found.

        Raises
        ------
        InputError
            If the topic is not among those that count.
        """
        query_id = str(query_id)
        if query_id not in self.query_ids:
            problem = f"there is no topic {query_id!r} among those that count"
            raise InputError(problem, fix=f"use one of {first_few(self.query_ids)}")
        scores = self.scores.over_topics(np.array(self.query_ids) == query_id)
        notes = tuple(note for note in scores.notes if note.rule != "ties")  # it is about means
        return self.of(self.how, self.name, self.points, replace(scores, notes=notes), self.interval)

    def blocks(self) -> tuple[Block, ...]:
        """Give the table of the round points, all points as data, and the chart."""
        return self.by_run(), self._points(), self._chart()

    def facts(self) -> dict[str, Any]:
        """Give what is drawn, and where its points are."""
        name = "recalls" if self.how == "interpolated" else "cutoffs"
        return {"how": self.how, "measure": self.name, name: self._place(range(len(self.points))).values}

    def table(self, name: str | None = None) -> Table:
        """Give a table by its name; the points for None, those of every topic for ``topics``.

        Raises
        ------
        InputError
            If there is none of this name.
        """
        return self._by_topic() if name == "topics" else super().table(name)

    def plot(self, *, width: int = 80, height: int = 20, ascii_only: bool = False, colour: bool = False) -> str:
        """Draw for a terminal, with axes and a legend.

        Parameters
        ----------
        width, height
            Of the drawing with its axes, in characters; the legend and what it rests on come below.
        ascii_only
            Draw with letters alone, where the terminal has no braille characters.
        colour
            Give each run a colour too.
        """
        from judged.scoring.curves.curve import plot

        where = self.provenance.where
        over = f"\n\nOver the topics where {visible(where)}." if where else ""
        return f"{plot(self, width, height, ascii_only=ascii_only, colour=colour)}\n\n{self.caption}{over}"

    def by_run(self) -> Table:
        """Lay out one row per point, one column per run; of many points the round ones: 1, 2, 5, 10, 20 ..."""
        shown = np.flatnonzero(~np.isnan(self.mean).all(axis=0))
        shown = shown[round_of(self.points[shown], _ROWS)]
        columns = [self._place(shown)]
        for row, run in enumerate(self.run_names):
            if self.how == "raw":
                columns.append(Column(f"recall{row}", self.x[row, shown].tolist(), NUMBER, f"{run} recall"))
            title = f"{run} precision" if self.how == "raw" else run
            columns.append(self.values(f"value{row}", (row, shown), title))
        return Table("curves", tuple(columns), self.title, self.caption, only="people")

    def values(self, name: str, where: Any, title: str) -> Column:
        """Make a column of some points with their intervals."""
        low, high = self.low[where].tolist(), self.high[where].tolist()
        limits = [None if np.isnan(ends[0]) else ends for ends in zip(low, high, strict=True)]
        return Column(name, self.mean[where].tolist(), NUMBER, title, ci=limits)

    def _place(self, points: Sequence[int] | Ints) -> Column:
        """Make the column of where points are: their cutoffs or recalls."""
        if self.how == "interpolated":
            return Column("recall", self.points[points].tolist(), significant(12))
        return Column("cutoff", self.points[points].astype(int).tolist(), COUNT, "k")

    def _points(self) -> Table:
        """Lay out one row per run and point."""
        where = run, at = np.nonzero(~np.isnan(self.mean))
        columns = [Column("run", [self.run_names[row] for row in run.tolist()], TEXT), self._place(at)]
        if self.how == "raw":
            columns.append(Column("recall", self.x[where].tolist(), NUMBER))
        columns += [self.values("value", where, self.labels[1]), Column("n", self.n[where].tolist(), COUNT, "topics")]
        return Table("points", tuple(columns), labels=2, only="data")

    def _by_topic(self) -> Table:
        """Lay out one row per run, point and topic."""
        where = run, at, topic = np.nonzero(~np.isnan(self.per_topic))
        columns = [
            Column("run", [self.run_names[row] for row in run.tolist()], TEXT),
            self._place(at),
            Column("query_id", [self.query_ids[row] for row in topic.tolist()], TEXT),
        ]
        if self.how == "raw":
            columns.append(Column("recall", self.scores.values[:, len(self.points) :][where].tolist(), NUMBER))
        columns.append(Column("value", self.per_topic[where].tolist(), NUMBER))
        return Table("topics", tuple(columns), labels=3, only="data")

    def _chart(self) -> Chart:
        """Draw lines with their intervals, on a logarithmic scale beyond 50 cutoffs."""
        by_cutoff = self.how == "cutoff"
        sentence = f"{self.title}, {self.basis()}."
        if by_cutoff:
            last = self.mean[:, -1]
            best = int(np.nan_to_num(last, nan=-np.inf).argmax())
            sentence = (
                f"{self.title} from {self.points[0]:.0f} to {self.points[-1]:.0f}, {self.basis()}."
                f" At k = {self.points[-1]:.0f}, {self.run_names[best]} is highest with {decimal(float(last[best]))}."
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
            colour="run",
            spread="cutoff" if by_cutoff else "",
            from_zero=True,
            reach={"x": (0.0, 1.0)} if self.how == "interpolated" else {},
            height=300,
        )

    def _repr_html_(self) -> str:
        try:
            drawn = picture(self.chart(), "svg").decode()
        except MissingExtraError:
            drawn = ""
        return drawn + super()._repr_html_()

    def __repr__(self) -> str:
        return "\n".join([self.plot(), *(f"warning: {text}" for text in self.warnings)])


def _estimated(scores: Scores, part: slice, interval: IntervalMethod) -> tuple[Floats, Floats, Floats, Ints]:
    """Estimate some measures: mean, low, high and topics, each (R, K)."""
    # Some runs at a time: the resamples of a thousand cutoffs of many runs would fill the memory.
    measures = scores.measures[part]
    shape, size = (len(scores.runs), len(measures)), max(1, _HELD // len(measures))
    estimates = [
        estimate
        for first in range(0, len(scores.runs), size)
        for estimate in replace(
            scores,
            runs=scores.runs[first : first + size],
            measures=measures,
            values=scores.values[first : first + size, part],
            counted=scores.counted[first : first + size],
        ).estimates(ci=interval.name, level=interval.level, resamples=interval.resamples, seed=interval.seed)
    ]
    none = (np.nan, np.nan)
    numbers = np.array([(row.value, *(row.ci or none)) for row in estimates], dtype=np.float64)
    mean, low, high = (column.reshape(shape) for column in numbers.T.copy())
    return mean, low, high, np.array([row.n for row in estimates], dtype=np.int64).reshape(shape)
