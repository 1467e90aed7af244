"""Differences between two sets of traces, by step."""

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
from judged.pipelines.traces.funnel_answer import SCORE, format_step, total_recorded
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
    """Change of a measure from one set of traces to another, split into steps; each part is tested.

    Parameters
    ----------
    baseline, other
        Funnels of both, over the same topics.
    choices
        Options of the tests.
    notes
        Notes of both.
    """

    kind: ClassVar[str] = "trace-diff"

    baseline: TraceFunnel
    other: TraceFunnel
    choices: Choices
    provenance: Provenance
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Title of the result."""
        return f"{self.other.traces.name} vs. {self.baseline.traces.name}: change of {self.other.measure} by step"

    @cached_property
    def gains(self) -> dict[str, Floats]:
        """Decrease of the loss compared with the baseline, by part and topic; the sum is the change of the score.

        A step that one of the two lacks loses nothing there. NaN if a stage is not recorded.
        """
        gains = {name: self._lost(self.baseline, name) - self._lost(self.other, name) for name in self._names}
        return {SCORE: self.other.score - self.baseline.score, **gains}

    @property
    def _names(self) -> tuple[str, ...]:
        """Names of the parts of both."""
        return tuple(dict.fromkeys((*self.baseline.parts, *self.other.parts)))

    def _lost(self, side: TraceFunnel, name: str) -> Floats:
        return side.parts.get(name, np.zeros(len(self.other.score)))

    @cached_property
    def complete(self) -> Bools:
        """Mask (T,) of the topics for which all stages of both are recorded; changes of parts are tested over these."""
        return self.baseline.complete & self.other.complete

    def bounds(self, name: str, mask: Bools | None = None) -> tuple[float, float]:
        """Return the lowest and highest possible mean gain over topics, whatever was not recorded."""
        selected = np.ones(len(self.other.score), dtype=np.bool_) if mask is None else mask
        no_loss = np.zeros((2, len(self.other.score)))
        before, after = (side.limits.get(name, no_loss)[:, selected] for side in (self.baseline, self.other))
        limits = after - before[::-1] if name == SCORE else before - after[::-1]
        return mean_of(limits[0]), mean_of(limits[1])

    @cached_property
    def changes(self) -> tuple[TestedChange, ...]:
        """Tested changes of the score and of each part, over all topics and by slice; higher is better."""
        run, score_range = self.other.traces.name, self.other.measure.properties.score_range
        scores = ValuePair(self.baseline.score, self.other.score, family=SCORE, max_difference=score_range)
        quantities = {(run, SCORE): scores}
        for name in self._names:
            sides = (self.baseline, self.other)
            before, after = (-np.where(self.complete, self._lost(side, name), np.nan) for side in sides)
            quantities[run, name] = ValuePair(before, after, family="parts", max_difference=2 * score_range)
        changes = changes_of_quantities(quantities, topic_subsets(len(self.complete), self.other.slicing), self.choices)
        return tuple(map(_sufficient, changes))

    @property
    def sentences(self) -> tuple[str, ...]:
        """The change of the score, and the steps that caused it."""
        score, *parts = (change for change in self.changes if change.is_overall)
        n, topics = score.result.n, len(self.other.score)
        is_tested = not np.isnan(score.result.p)
        amount = (score.describe() if is_tested else score.estimate_text) if n else "unknown"
        texts = [f"Change of {self.other.measure}: {amount}."]
        if n < topics:
            low, high = self.bounds(SCORE)
            bounds = f"between {decimal(low, sign='+')} and {decimal(high, sign='+')}"
            scope = f"Both sets of traces record the final list for {n} of {counted(topics, 'topic')}"
            texts.append(
                f"{scope}. Over all topics, the change is {bounds}, whatever documents the unrecorded stages returned."
            )
        if shortage := insufficiency(n, "verdict"):
            return (*texts, shortage.sentence("topic"))
        significant = [f"{format_step(change.part)} {change.describe()}" for change in parts if change.significant]
        is_tested = any(not np.isnan(change.result.p) for change in parts)
        no_step = (
            "No step changed significantly."
            if is_tested
            else "No step was tested, because the traces record too few topics."
        )
        texts.append(f"Significant changes by step: {'; '.join(significant)}." if significant else no_step)
        pair = f"{self.other.traces.name} against {self.baseline.traces.name}"
        return (*texts, *describe_slice_changes(self.changes, len(self.changes), pair, self._format_part))

    def _format_part(self, part: str) -> str:
        return str(self.other.measure) if part == SCORE else format_step(part)

    def facts(self) -> Mapping[str, Any]:
        """Return names, measure, and choices."""
        names = {"baseline": self.baseline.traces.name, "other": self.other.traces.name}
        return {**names, "measure": self.other.measure, "choices": vars(self.choices)}

    def blocks(self) -> tuple[Block, ...]:
        """Return the sentences, changes, stages, topics, and documents."""
        choices = self.choices
        part_format = Show(lambda name: str(self.other.measure) if name == SCORE else format_step(name), "string")
        note = (
            f"the parts add up to the change of {self.other.measure}; p: paired randomization test,"
            f" {choices.resamples} resamples, seed {choices.seed}{HALL if self.other.slicing else ''}; Holm-corrected;"
            f" * p at most {choices.alpha:g}"
        )
        title = difference_title(self.other.traces.name, self.baseline.traces.name)
        gains_of, titles = self.gains, {name: format_step(name) for name in self.gains} | {SCORE: "change"}
        topics = Table(
            "topics",
            (
                Column("query_id", self.other.query_ids, TEXT, "topic"),
                Column("baseline", self.baseline.score.tolist(), NUMBER, self.baseline.traces.name),
                Column("other", self.other.score.tolist(), NUMBER, self.other.traces.name),
                *(
                    Column(f"change_{name}", gains.tolist(), CHANGE, titles.get(name))
                    for name, gains in gains_of.items()
                ),
            ),
            "Topics",
            folded=True,
        ).take(np.argsort(np.nan_to_num(self.gains[SCORE]), kind="stable").tolist())
        changes = changes_table(self.changes, title, note, part_format, runs=False)
        if not self.complete.all():
            masks = {subset.name: subset.mask for subset in topic_subsets(len(self.complete), self.other.slicing)}
            bounds = [self.bounds(change.part, masks[change.slice]) for change in self.changes]
            low = Column("low", [low for low, _ in bounds], CHANGE, "lower bound")
            high = Column("high", [high for _, high in bounds], CHANGE, "upper bound")
            note = (
                f"{note}; bounds: lowest and highest possible change over all topics, whatever documents the unrecorded"
                " stages returned"
            )
            changes = replace(changes, columns=(*changes.columns, low, high), note=note)
        return (Sentences(self.sentences), changes, self._stages(), topics, self._documents())

    def _stages(self) -> Table:
        sides = [{loss.stage.name: loss for loss in side.losses} for side in (self.baseline, self.other)]
        names = list(dict.fromkeys(name for side in sides for name in side))
        columns = [Column("stage", names, TEXT)]
        for key, title, show, value in (
            ("unrecorded", "topics not recorded", COUNT, lambda loss: int((~loss.recorded).sum()) or None),
            ("n_relevant", "relevant", COUNT, lambda loss: total_recorded(loss.n_relevant)),
            ("score", str(self.other.measure), NUMBER, lambda loss: mean_of(loss.score)),
            ("latency_ms", "median ms", number(1), lambda loss: loss.latency_ms),
        ):  # fmt: skip
            for side, prefix, heading in zip(sides, ("baseline_", ""), (f"{title} (before)", title), strict=True):
                values = [value(side[name]) if name in side else None for name in names]
                only = "" if any(cell is not None and not math.isnan(cell) for cell in values) else "data"
                columns.append(Column(f"{prefix}{key}", values, show, heading, only=only))
        return Table("stages", tuple(columns), "Stages")

    def _documents(self) -> Table:
        """Build a table of relevant documents that are lost at another step, no longer, or only now."""
        sides = (self.baseline, self.other)
        before, after = ({(topic, doc): step for topic, doc, step, _ in side.lost} for side in sides)
        moved = [key for key in dict.fromkeys((*before, *after)) if before.get(key) != after.get(key)]
        steps = [[format_step(side[key]) if key in side else None for key in moved] for side in (before, after)]
        columns = (
            Column("query_id", [topic for topic, _ in moved], TEXT, "topic"),
            Column("doc_id", [doc for _, doc in moved], TEXT, "document"),
            Column("before", steps[0], TEXT, "lost at (before)"),
            Column("lost", steps[1], TEXT, "lost at (now)"),
        )
        title = "Relevant documents that are lost in only one set of traces, or at different steps"
        return Table("documents", columns, title, labels=2, folded=True)


def _sufficient(change: TestedChange) -> TestedChange:
    """Remove the interval and p-value of a change if there are too few topics, or the differences do not vary."""
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
    """Split the change of a measure between two sets of traces into steps.

    Parameters
    ----------
    qrels
        As for `judged.evaluate`.
    baseline, other
        Traces; steps with the same name are compared.
    measure, slicing, attributes, where
        As for `funnel`.
    alpha
        Significance level of the tests.
    resamples, seed
        Options of the paired randomization tests. Default: as many resamples as for `compare`.

    Raises
    ------
    InputError
        If an input or option is invalid.
    MeasureError
        If the best order for the measure is unknown.

    Examples
    --------
    >>> from judged.pipelines.traces import traces_of_runs
    >>> old, new = (traces_of_runs({"bm25": {"q1": run, "q2": ["a"]}}) for run in (["x", "a"], ["a", "x"]))
    >>> result = diff({"q1": {"a": 1}, "q2": {"a": 1}}, old, new, "RR")
    >>> {name: gains.tolist() for name, gains in result.gains.items()}
    {'score': [0.5, 0.0], 'bm25': [0.0, 0.0], 'order': [0.5, 0.0]}
    """
    options: dict[str, Any] = {"slicing": slicing, "attributes": attributes, "where": where}
    first, second = (build_funnel(qrels, traces, measure, **options, join=False) for traces in (baseline, other))
    if other.name == baseline.name:
        second = replace(second, traces=replace(other, name=f"{other.name} (other)"))
    resamples = resamples or default_resamples(len(first.query_ids))
    choices = Choices(alpha=alpha, resamples=resamples, seed=seed)
    return TraceDiff(first, second, choices, second.provenance, tuple(dict.fromkeys((*first.notes, *second.notes))))
