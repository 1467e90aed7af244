"""Two sets of traces side by side: what changed, and at which step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.answer import CHANGE, COUNT, NUMBER, TEXT, Answer, Column, Sentences, Show, Table, number
from judged.cache import cached_property
from judged.comparison import Choices
from judged.diagnosis.changes import changes_table, compared, mean_of, told_by_slice
from judged.slicing.comparison import direction
from judged.slicing.slice_tests import Quantity, everywhere
from judged.stats.skewness import SECOND
from judged.traces.funnel import funnel, where_lost

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.answer import Block
    from judged.diagnosis.changes import Change
    from judged.evaluation.provenance import Provenance
    from judged.measures.base import Measure
    from judged.notes import Note
    from judged.traces.funnel import TraceFunnel
    from judged.traces.traces import Traces

_SCORE = "score"


@dataclass(frozen=True, eq=False, repr=False)
class TraceDiff(Answer):
    """What changed from one set of traces to another, split into steps; each part is tested.

    Parameters
    ----------
    baseline, other
        The funnels of both, over the same topics.
    choices
        Of the tests.
    notes
        Of both.
    """

    kind: ClassVar[str] = "trace-diff"

    baseline: TraceFunnel
    other: TraceFunnel
    choices: Choices
    provenance: Provenance = field(repr=False)
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """What is compared."""
        return f"{self.other.traces.name} against {self.baseline.traces.name}: where {self.other.measure} changed"

    @cached_property
    def gains(self) -> dict[str, Floats]:
        """By part, how much less is lost there than by the baseline, on each topic; together the change of the score.

        A step that one of the two does not have lost nothing there.
        """
        none = np.zeros(len(self.other.score))
        names = dict.fromkeys((*self.baseline.parts, *self.other.parts))
        gains = {name: self.baseline.parts.get(name, none) - self.other.parts.get(name, none) for name in names}
        return {_SCORE: self.other.score - self.baseline.score, **gains}

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """The tested change of the score and of each part, over all topics and by slice; higher is better."""
        none, reach = np.zeros(len(self.other.score)), self.other.measure.properties.reach
        quantities = {
            (self.other.traces.name, _SCORE): Quantity(
                self.baseline.score, self.other.score, family=_SCORE, reach=reach
            )
        }
        for name in list(self.gains)[1:]:
            before, now = (-one.parts.get(name, none) for one in (self.baseline, self.other))
            quantities[self.other.traces.name, name] = Quantity(before, now, family="parts", reach=2 * reach)
        return compared(quantities, everywhere(len(none), self.other.slicing), self.choices)

    @property
    def sentences(self) -> tuple[str, ...]:
        """How much the score changed, and which steps did it."""
        score, *parts = (change for change in self.changes if change.every)
        said = [f"{self.other.measure} changed by {score.told()}."]
        sure = [f"{where_lost(change.part)} {change.told()}" for change in parts if change.significant]
        said.append(f"Gained by step: {'; '.join(sure)}." if sure else "No single step is shown to have changed it.")
        return (*said, *told_by_slice(self.changes, len(self.changes)))

    def facts(self) -> Mapping[str, Any]:
        """Give names, measure and choices."""
        names = {"baseline": self.baseline.traces.name, "other": self.other.traces.name}
        return {**names, "measure": self.other.measure, "choices": vars(self.choices)}

    def blocks(self) -> tuple[Block, ...]:
        """Give what changed, and every topic."""
        choices = self.choices
        part = Show(lambda name: str(self.other.measure) if name == _SCORE else where_lost(name), "string")
        note = (
            f"parts add up to the change of {self.other.measure}; paired randomisation test, {choices.resamples}"
            f" resamples, seed {choices.seed}{SECOND if self.other.slicing else ''}; p by Holm; * p up to"
            f" {choices.alpha:g}"
        )
        title = direction(self.other.traces.name, self.baseline.traces.name)
        order = np.argsort(np.nan_to_num(self.gains[_SCORE]), kind="stable").tolist()
        topics = Table(
            "topics",
            (
                Column("query_id", self.other.query_ids, TEXT, "topic"),
                Column("baseline", self.baseline.score.tolist(), NUMBER, self.baseline.traces.name),
                Column("other", self.other.score.tolist(), NUMBER, self.other.traces.name),
                *(
                    Column(f"change_{name}", gains.tolist(), CHANGE, part.write(name) if name != _SCORE else "change")
                    for name, gains in self.gains.items()
                ),
            ),
            "Topics",
            folded=True,
        ).take(order)
        changes = changes_table(self.changes, title, note, part, runs=False)
        return (Sentences(self.sentences), changes, self._stages(), topics, self._documents())

    def _stages(self) -> Table:
        """Lay out the stages of both side by side."""
        sides = [{loss.stage.name: loss for loss in side.losses} for side in (self.baseline, self.other)]
        names = list(dict.fromkeys(name for side in sides for name in side))
        columns = [Column("stage", names, TEXT)]
        for key, title, show, value in (
            ("held", "relevant held", COUNT, lambda loss: int(loss.held.sum())),
            ("score", str(self.other.measure), NUMBER, lambda loss: mean_of(loss.score)),
            ("latency_ms", "median ms", number(1), lambda loss: loss.latency_ms),
        ):  # fmt: skip
            for side, before, head in zip(sides, ("baseline_", ""), (f"{title}, before", title), strict=True):
                values = [value(side[name]) if name in side else None for name in names]
                only = "" if any(one is not None and not math.isnan(one) for one in values) else "data"
                columns.append(Column(f"{before}{key}", values, show, head, only=only))
        return Table("stages", tuple(columns), "Stages")

    def _documents(self) -> Table:
        """Lay out the relevant documents that are lost elsewhere than before, or no more, or were not before."""
        before, now = (
            {(topic, doc): step for topic, doc, step, _ in side.lost} for side in (self.baseline, self.other)
        )
        moved = [key for key in dict.fromkeys((*before, *now)) if before.get(key) != now.get(key)]
        steps = [[where_lost(side[key]) if key in side else None for key in moved] for side in (before, now)]
        columns = (
            Column("query_id", [topic for topic, _ in moved], TEXT, "topic"),
            Column("doc_id", [doc for _, doc in moved], TEXT, "document"),
            Column("before", steps[0], TEXT, "lost before"),
            Column("lost", steps[1], TEXT, "lost now"),
        )
        return Table(
            "documents", columns, "Relevant documents that are lost elsewhere than before", labels=2, folded=True
        )


def diff(
    qrels: Any,
    baseline: Traces,
    other: Traces,
    measure: str | Measure = "nDCG@10",
    *,
    slicing: Any = None,
    attributes: Any = None,
    where: str | None = None,
    alpha: float = 0.05,
    resamples: int = 100_000,
    seed: int = 0,
) -> TraceDiff:
    """Split what changed between two sets of traces into their steps.

    Parameters
    ----------
    qrels
        As `judged.evaluate` takes them.
    baseline, other
        The traces; steps of one name are the same step.
    measure
        As for `funnel`.
    slicing, attributes, where
        As for `funnel`.
    alpha
        Significance of the tests.
    resamples, seed
        Of the paired randomisation tests.

    Raises
    ------
    InputError
        If something cannot be read, or an option makes no sense.
    MeasureError
        If the best order is not known for the measure.

    Examples
    --------
    >>> from judged.traces import traces_of_runs
    >>> old, new = (traces_of_runs({"bm25": {"q1": run, "q2": ["a"]}}) for run in (["x", "a"], ["a", "x"]))
    >>> found = diff({"q1": {"a": 1}, "q2": {"a": 1}}, old, new, "RR")
    >>> {name: gains.tolist() for name, gains in found.gains.items()}
    {'score': [0.5, 0.0], 'bm25': [0.0, 0.0], 'order': [0.5, 0.0]}
    """
    asked: dict[str, Any] = {"slicing": slicing, "attributes": attributes, "where": where}
    first, second = (funnel(qrels, traces, measure, **asked) for traces in (baseline, other))
    if other.name == baseline.name:
        second = replace(second, traces=replace(other, name=f"{other.name} (other)"))
    choices = Choices(alpha=alpha, resamples=resamples, seed=seed)
    notes = tuple(dict.fromkeys((*first.notes, *second.notes)))
    return TraceDiff(first, second, choices, second.provenance, notes)
