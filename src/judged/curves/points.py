"""The points of curves by run, with intervals, and the scores that they are made of."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

import numpy as np

from judged._types import ReadOnly
from judged.errors import InputError
from judged.notes import lines

if TYPE_CHECKING:
    from judged._types import Floats, Ints
    from judged.evaluation import Policies, QrelsFacts, Scores
    from judged.notes import Note
    from judged.stats import IntervalMethod

Kind: TypeAlias = Literal["cutoff", "interpolated", "raw"]
"""A measure by cutoff, interpolated precision by recall, or precision by recall at each cutoff."""

_LONG = 50  # cutoffs: from here on the first ones would be squeezed on an even scale
_ROWS = 4000  # lines times cutoffs whose resamples are held at a time
_SERIES = re.compile(r"([A-Za-z]\w*(?:\([^()]*\))?)@[0-9.]+(?:, \1@[0-9.]+)+(?:, \.\.\. \([0-9]+ in all\))?")


@dataclass(frozen=True, eq=False)
class CurvePoints(ReadOnly):
    """Curves as numbers, of R runs and K points each: the part of a result that its forms stand on."""

    # `cutoff`: a measure by cutoff; `interpolated`: interpolated precision by recall; `raw`: precision and recall at
    # the same cutoffs
    kind: Kind
    name: str  # what is drawn: the measure's name with `k` for the cutoff, or `c` for the recall
    at: Floats  # (K,): the cutoff of each point, or its recall where `kind` is `interpolated`; rising
    # x, mean, low, high: (R, K): where each point stands: `x` is `at`, or the mean recall of a run at that cutoff;
    # `mean` is the measure's own aggregate over topics, `low` and `high` its interval. NaN where there is no point, or
    # no interval.
    x: Floats = field(repr=False)
    mean: Floats = field(repr=False)
    low: Floats = field(repr=False)
    high: Floats = field(repr=False)
    topics: Ints = field(repr=False)  # (R, K): how many topics each point rests on
    # the scores of every topic that the points are made of. For `raw` the K precisions, then the K recalls.
    scores: Scores = field(repr=False)
    interval: IntervalMethod  # how the intervals are made

    @classmethod
    def of(cls, kind: Kind, name: str, at: Floats, scores: Scores, interval: IntervalMethod) -> Self:
        """Draw lines through scores: their measures are the K points, for ``raw`` followed by the K recalls."""
        points = len(at)
        mean, low, high, topics = _estimated(scores, slice(0, points), interval)
        x = np.broadcast_to(at, mean.shape).copy()
        if kind == "raw":
            x = _estimated(scores, slice(points, 2 * points), replace(interval, method="none"))[0]
            if len(scores.query_ids) == 1:  # of one topic only the ranks where something relevant was found
                same = np.diff(x, axis=1, prepend=0.0) <= 0
                x, mean = np.where(same, np.nan, x), np.where(same, np.nan, mean)
        return cls(kind, name, at, x, mean, low, high, topics, scores, interval)

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
        return self.scores.values[:, : len(self.at)]

    @property
    def policies(self) -> Policies:
        """The choices of the call that change the numbers."""
        return self.scores.policies

    @property
    def qrels(self) -> QrelsFacts:
        """What is worth knowing of the judgments."""
        return self.scores.qrels

    @property
    def notes(self) -> tuple[Note, ...]:
        """What should be known of the call as a whole; a series of measures is named once."""
        return tuple(replace(note, text=_SERIES.sub(self.name, note.text)) for note in self.scores.notes)

    @property
    def warnings(self) -> tuple[str, ...]:
        """All that should be known before the numbers are used."""
        return lines(self.notes)

    @property
    def long(self) -> bool:
        """Whether the cutoffs reach so far that they are drawn on a logarithmic scale."""
        return self.kind == "cutoff" and bool(self.at[-1] > _LONG)

    @property
    def labels(self) -> tuple[str, str]:
        """What stands at the axes, x and y."""
        if self.kind == "cutoff":
            return "k", self.name
        return "recall", "interpolated precision" if self.kind == "interpolated" else "precision"

    @property
    def title(self) -> str:
        """What is drawn, in one line."""
        if self.kind == "cutoff":
            return f"{self.name} by cutoff k"
        if self.kind == "interpolated":
            return f"Interpolated precision by recall: {self.name}"
        return f"Precision by recall, k = {self.at[0]:.0f} to {self.at[-1]:.0f}: {self.name}"

    def basis(self, *, intervals: bool = True) -> str:
        """Say what each point is: over how many topics, and with which interval."""
        if len(self.query_ids) == 1:
            return f"topic {self.query_ids[0]}"
        fewest, most = int(self.topics.min()), int(self.topics.max())
        count = f"{most}" if fewest == most else f"{fewest} to {most}"
        said = f"{self.scores.measures[0].entry.aggregate} over {count} topics"
        if not intervals or np.isnan(self.low).all():
            return said
        return f"{said}, [{self.scores.interval_words(self.interval)}]"

    def topic(self, query_id: str) -> Self:
        """Draw one topic alone. Its precision and recall have a point at each relevant document that was found.

        Raises
        ------
        InputError
            If the topic is not among those that count.
        """
        if query_id not in self.query_ids:
            some = ", ".join(self.query_ids[:5]) + (", ..." if len(self.query_ids) > 5 else "")
            raise InputError(f"there is no topic {query_id!r} among those that count", fix=f"one of {some}")
        at = self.query_ids.index(query_id)
        scores = replace(
            self.scores,
            query_ids=(query_id,),
            values=self.scores.values[:, :, at : at + 1],
            counted=self.scores.counted[:, at : at + 1],
            notes=tuple(note for note in self.scores.notes if note.rule != "ties"),  # it is about means
        )
        return self.of(self.kind, self.name, self.at, scores, self.interval)


def _estimated(scores: Scores, part: slice, interval: IntervalMethod) -> tuple[Floats, Floats, Floats, Ints]:
    """Estimate some measures: mean, low, high and topics, each (R, K)."""
    # Some runs at a time: the resamples of a thousand cutoffs of many runs would fill the memory.
    measures = scores.measures[part]
    shape, size = (len(scores.runs), len(measures)), max(1, _ROWS // len(measures))
    found = [
        one
        for first in range(0, len(scores.runs), size)
        for one in replace(
            scores,
            runs=scores.runs[first : first + size],
            measures=measures,
            values=scores.values[first : first + size, part],
            counted=scores.counted[first : first + size],
        ).estimates(ci=interval.method, level=interval.level, resamples=interval.resamples, seed=interval.seed)
    ]
    none = (np.nan, np.nan)
    numbers = np.array([(one.value, *(one.ci or none)) for one in found], dtype=np.float64)
    mean, low, high = (column.reshape(shape) for column in numbers.T.copy())
    return mean, low, high, np.array([one.topics for one in found], dtype=np.int64).reshape(shape)
