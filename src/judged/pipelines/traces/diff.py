"""Two sets of traces side by side: what changed, and at which step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.comparison import Choices
from judged.comparison.choices import default_resamples
from judged.comparison.slicing.comparison import difference_title
from judged.comparison.slicing.parts import ValuePair, topic_subsets
from judged.diagnosis.changes import changes_of_quantities, changes_table, describe_slice_changes, mean_of
from judged.pipelines.traces.funnel import build_funnel
from judged.pipelines.traces.funnel_answer import SCORE, total_known, where_lost
from judged.results import CHANGE, COUNT, NUMBER, TEXT, Answer, Column, Sentences, Show, Table, counted, number
from judged.results.decimals import decimal
from judged.results.types import cached_property
from judged.stats.classical import HALL
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from judged.diagnosis.changes import TestedChange
    from judged.pipelines.traces.funnel_answer import TraceFunnel
    from judged.pipelines.traces.traces import Traces
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.types import Bools, Floats
    from judged.scoring.evaluation.facts import Provenance
    from judged.scoring.measures.base import Measure


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
    provenance: Provenance
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """What is compared."""
        return f"{self.other.traces.name} against {self.baseline.traces.name}: where {self.other.measure} changed"

    @cached_property
    def gains(self) -> dict[str, Floats]:
        """By part, how much less is lost there than by the baseline, on each topic; together the change of the score.

        A step that one of the two does not have lost nothing there. Where a stage is not recorded, what is gained is
        unknown, NaN.
        """
        gains = {name: self._lost(self.baseline, name) - self._lost(self.other, name) for name in self._names}
        return {SCORE: self.other.score - self.baseline.score, **gains}

    @property
    def _names(self) -> tuple[str, ...]:
        """The parts of both."""
        return tuple(dict.fromkeys((*self.baseline.parts, *self.other.parts)))

    def _lost(self, side: TraceFunnel, name: str) -> Floats:
        return side.parts.get(name, np.zeros(len(self.other.score)))

    @cached_property
    def complete(self) -> Bools:
        """Whether all stages of both are recorded: (T,). Changes of parts are tested over these topics."""
        return self.baseline.complete & self.other.complete

    def bounds(self, name: str, mask: Bools | None = None) -> tuple[float, float]:
        """Return the lowest and highest mean gain over topics, whatever was not recorded."""
        chosen = np.ones(len(self.other.score), dtype=np.bool_) if mask is None else mask
        none = np.zeros((2, len(self.other.score)))
        before, now = (side.limits.get(name, none)[:, chosen] for side in (self.baseline, self.other))
        ends = now - before[::-1] if name == SCORE else before - now[::-1]
        return mean_of(ends[0]), mean_of(ends[1])

    @cached_property
    def changes(self) -> tuple[TestedChange, ...]:
        """The tested change of the score and of each part, over all topics and by slice; higher is better."""
        reach = self.other.measure.properties.score_range
        quantities = {
            (self.other.traces.name, SCORE): ValuePair(self.baseline.score, self.other.score, family=SCORE, reach=reach)
        }
        for name in self._names:
            before, now = (
                -np.where(self.complete, self._lost(side, name), np.nan) for side in (self.baseline, self.other)
            )
            quantities[self.other.traces.name, name] = ValuePair(before, now, family="parts", reach=2 * reach)
        changes = changes_of_quantities(quantities, topic_subsets(len(self.complete), self.other.slicing), self.choices)
        return tuple(map(_sufficient, changes))

    @property
    def sentences(self) -> tuple[str, ...]:
        """How much the score changed, and which steps did it."""
        score, *parts = (change for change in self.changes if change.is_overall)
        n, topics = score.result.n, len(self.other.score)
        tested = not np.isnan(score.result.p)
        amount = (score.describe() if tested else score.estimate_text) if n else "an unknown amount"
        changed = f"changed by {amount}"
        said = [f"{self.other.measure} {changed}."]
        if n < topics:
            low, high = self.bounds(SCORE)
            ends = f"between {decimal(low, sign='+')} and {decimal(high, sign='+')}, whatever was not recorded"
            known = f"The final lists of both are recorded for {n} of {counted(topics, 'topic')}"
            said.append(f"{known}; over all, the change is {ends}.")
        if lacking := insufficiency(n, "verdict"):
            return (*said, lacking.sentence("topic"))
        sure = [f"{where_lost(change.part)} {change.describe()}" for change in parts if change.significant]
        tested = any(not np.isnan(change.result.p) for change in parts)
        none = f"No single step is {'shown to have changed it' if tested else 'tested: too little is recorded'}."
        said.append(f"Gained by step: {'; '.join(sure)}." if sure else none)
        return (*said, *describe_slice_changes(self.changes, len(self.changes)))

    def facts(self) -> Mapping[str, Any]:
        """Give names, measure and choices."""
        names = {"baseline": self.baseline.traces.name, "other": self.other.traces.name}
        return {**names, "measure": self.other.measure, "choices": vars(self.choices)}

    def blocks(self) -> tuple[Block, ...]:
        """Give what changed, and every topic."""
        choices = self.choices
        part = Show(lambda name: str(self.other.measure) if name == SCORE else where_lost(name), "string")
        note = (
            f"parts add up to the change of {self.other.measure}; paired randomization test, {choices.resamples}"
            f" resamples, seed {choices.seed}{HALL if self.other.slicing else ''}; p by Holm; * p up to"
            f" {choices.alpha:g}"
        )
        title = difference_title(self.other.traces.name, self.baseline.traces.name)
        order = np.argsort(np.nan_to_num(self.gains[SCORE]), kind="stable").tolist()
        topics = Table(
            "topics",
            (
                Column("query_id", self.other.query_ids, TEXT, "topic"),
                Column("baseline", self.baseline.score.tolist(), NUMBER, self.baseline.traces.name),
                Column("other", self.other.score.tolist(), NUMBER, self.other.traces.name),
                *(
                    Column(f"change_{name}", gains.tolist(), CHANGE, part.write(name) if name != SCORE else "change")
                    for name, gains in self.gains.items()
                ),
            ),
            "Topics",
            folded=True,
        ).take(order)
        changes = changes_table(self.changes, title, note, part, runs=False)
        if not self.complete.all():
            masks = {where.name: where.mask for where in topic_subsets(len(self.complete), self.other.slicing)}
            ends = [self.bounds(change.part, masks[change.slice]) for change in self.changes]
            more = (Column("low", [low for low, _ in ends], CHANGE, "at least"),
                    Column("high", [high for _, high in ends], CHANGE, "at most"))  # fmt: skip
            note = f"{note}; at least, at most: over all topics, whatever was not recorded"
            changes = replace(changes, columns=(*changes.columns, *more), note=note)
        return (Sentences(self.sentences), changes, self._stages(), topics, self._documents())

    def _stages(self) -> Table:
        """Lay out the stages of both side by side."""
        sides = [{loss.stage.name: loss for loss in side.losses} for side in (self.baseline, self.other)]
        names = list(dict.fromkeys(name for side in sides for name in side))
        columns = [Column("stage", names, TEXT)]
        for key, title, show, value in (
            ("unrecorded", "topics not recorded", COUNT, lambda loss: int((~loss.recorded).sum()) or None),
            ("held", "relevant held", COUNT, lambda loss: total_known(loss.held)),
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


def _sufficient(change: TestedChange) -> TestedChange:
    """Leave out the interval and p-value of a change over too few topics, or none of which differs from another."""
    result, values = change.result, {}
    if insufficiency(change.result.n) or not result.differing:
        values["interval"] = None
    if insufficiency(result.n, "verdict"):
        values |= {"p": np.nan, "adjusted": None}
    return replace(change, result=replace(result, **values)) if values else change


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
    resamples: int | None = None,
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
        Of the paired randomization tests; None: as many as `compare` takes.

    Raises
    ------
    InputError
        If something cannot be read, or an option makes no sense.
    MeasureError
        If the best order is not known for the measure.

    Examples
    --------
    >>> from judged.pipelines.traces import traces_of_runs
    >>> old, new = (traces_of_runs({"bm25": {"q1": run, "q2": ["a"]}}) for run in (["x", "a"], ["a", "x"]))
    >>> found = diff({"q1": {"a": 1}, "q2": {"a": 1}}, old, new, "RR")
    >>> {name: gains.tolist() for name, gains in found.gains.items()}
    {'score': [0.5, 0.0], 'bm25': [0.0, 0.0], 'order': [0.5, 0.0]}
    """
    asked: dict[str, Any] = {"slicing": slicing, "attributes": attributes, "where": where}
    first, second = (build_funnel(qrels, traces, measure, **asked, join=False) for traces in (baseline, other))
    if other.name == baseline.name:
        second = replace(second, traces=replace(other, name=f"{other.name} (other)"))
    resamples = resamples or default_resamples(len(first.query_ids))
    choices = Choices(alpha=alpha, resamples=resamples, seed=seed)
    notes = tuple(dict.fromkeys((*first.notes, *second.notes)))
    return TraceDiff(first, second, choices, second.provenance, notes)
