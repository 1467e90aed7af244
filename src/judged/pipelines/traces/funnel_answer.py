"""Result of `funnel`: loss by step and by slice, numbers by stage, and lost documents."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.comparison.slicing.parts import topic_subsets
from judged.diagnosis.changes import Mean, mean_of
from judged.diagnosis.stages.trace import ORDER, POSITIVE
from judged.pipelines.traces.steps import CORPUS, UNRECORDED, compare_with_rest, sufficient_intervals
from judged.results import Answer, Axis, Chart, Column, Headline, Sentences, Table, counted
from judged.results.decimals import decimal, p_text, percent
from judged.results.table import CHANGE, COUNT, NUMBER, SHARE, TEXT, number, p_value
from judged.results.types import ReadOnly, cached_property
from judged.stats.correction import adjust
from judged.stats.interval import IntervalMethod

if TYPE_CHECKING:
    from judged.comparison.slicing.topic_slices import Slicing
    from judged.pipelines.traces.traces import Stage, Traces
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.evaluation.facts import Provenance
    from judged.scoring.measures.base import Measure
    from judged.stats.slice_differences import AgainstRest

SCORE = "score"
"""Key of the limits of the score."""


@dataclass(frozen=True, eq=False)
class StageLoss(ReadOnly):
    """One stage compared with the judgments, by topic; NaN if a needed stage is not recorded.

    Parameters
    ----------
    stage
        The stage.
    recorded
        (T,) whether its documents are recorded.
    score
        (T,) measure of its list.
    attainable
        (T,) measure of the best order of its documents.
    input_attainable
        (T,) measure of the best order of its input; for a first stage, of all judged documents.
    n_relevant
        (T,) relevant documents in its output.
    n_kept
        (T,) of these, those in its input; for a first stage all.
    n_input_relevant
        (T,) relevant documents in its input; for a first stage all relevant documents.
    latency_ms
        Median latency in milliseconds; NaN if not recorded.
    """

    stage: Stage
    recorded: Bools
    score: Floats
    attainable: Floats
    input_attainable: Floats
    n_relevant: Floats
    n_kept: Floats
    n_input_relevant: Floats
    latency_ms: float


@dataclass(frozen=True, eq=False, repr=False)
class TraceFunnel(Answer):
    """Loss of a measure by stage of a pipeline, in parts that sum to the loss of each topic.

    Attributes
    ----------
    traces : Traces
        The traces.
    measure : Measure
        Measure whose loss is split.
    query_ids : tuple of T str
        Topics.
    best, score : (T,) float64
        Measure of the best order of all judged documents, and of the list that users saw; NaN if it is not recorded.
    parts : dict of (T,) float64
        Loss by step, with the sum ``best - score``. ``corpus`` is the loss due to documents that the corpus lacks,
        ``order`` that due to the order of the final list. NaN if the documents before or after the step are unknown.
    limits : dict of (2, T) float64
        Lowest and highest possible values of ``score`` and of each part, whatever was not recorded.
    losses : tuple of StageLoss
        Stages, with branches separate.
    relevant : (T,) int64
        Number of relevant documents.
    listed : tuple of (str, str, int, float)
        Topic, document, rank, and grade of relevant documents in the list that users saw.
    lost : tuple of (str, str, str, float)
        Topic, document, step at which it was lost, and grade of all other relevant documents. The step is
        ``unrecorded`` if it is unknown; such a document could have been shown.
    """

    kind: ClassVar[str] = "trace-funnel"

    traces: Traces
    measure: Measure
    query_ids: tuple[str, ...]
    best: Floats
    score: Floats
    parts: Mapping[str, Floats]
    limits: Mapping[str, Floats]
    losses: tuple[StageLoss, ...]
    relevant: Ints
    listed: tuple[tuple[str, str, int, float], ...]
    lost: tuple[tuple[str, str, str, float], ...]
    level: float
    provenance: Provenance
    slicing: Slicing | None = None
    notes: tuple[Note, ...] = ()

    def below_cutoff(self, cutoff: float) -> tuple[tuple[str, str, str, float], ...]:
        """Return the relevant documents of the final list below a rank, in the format of `lost`."""
        return tuple((topic, doc, ORDER, grade) for topic, doc, rank, grade in self.listed if rank > cutoff)

    @property
    def rel(self) -> float:
        """Lowest relevant grade."""
        return float(getattr(self.measure, "rel", POSITIVE))

    @property
    def title(self) -> str:
        """Title of the result."""
        return f"{self.traces.name}: where {self.measure} is lost"

    @cached_property
    def complete(self) -> Bools:
        """Mask (T,) of the topics for which all stages before the list are recorded; means of parts are over these."""
        return np.all([~np.isnan(part) for part in self.parts.values()], axis=0)

    def part(self, name: str) -> Floats:
        """Return a part (T,), NaN for topics for which not all parts are known."""
        return np.where(self.complete, self.parts[name], np.nan)

    def bounds(self, name: str, mask: Bools | None = None) -> tuple[float, float]:
        """Return the lowest and highest mean of `score` or a part over topics, whatever was not recorded."""
        low, high = self.limits[name] if mask is None else self.limits[name][:, mask]
        return mean_of(low), mean_of(high)

    @cached_property
    def mean_parts(self) -> dict[str, float]:
        """Mean loss by step, over the topics of `complete`."""
        return {name: mean_of(self.part(name)) for name in self.parts}

    @property
    def worst(self) -> str | None:
        """Step with the largest mean loss; None without a known loss."""
        return max(self.parts, key=self.mean_parts.__getitem__) if sum(self.mean_parts.values()) > 0 else None

    @property
    def headline(self) -> Headline:
        """The step with the largest loss. Whether other steps lose less is not tested."""
        known, topics = int(self.complete.sum()), counted(len(self.score), "topic")
        if not known:
            sentence = f"The loss by stage is known for none of {topics}, because stages are not recorded."
            return Headline("unknown", "not recorded", sentence)
        scope = f"on {topics}" if self.complete.all() else f"on the {known} of {topics} with complete traces"
        if self.worst is None:
            return Headline("info", "no loss", f"No order of the judged documents is better, {scope}.")
        lost, step = sum(self.mean_parts.values()), format_step(self.worst)
        mean = self._means(self._all)[step]
        source = self.truncated_stages.get(self.worst)
        cause = f", which only truncates the list of {source}" if source else ""
        sentence = f"{percent(mean.value / lost)} of the loss of {lost:.4f} is {step}{cause}, {scope}."
        options: dict[str, Any] = {"ci": mean.ci, "level": self.level, "axis": Axis.over([0.0, lost], [mean.ci])}
        return Headline("info", "largest loss", sentence, f"{self.measure} lost {step}", mean.value, **options)

    @property
    def _all(self) -> Bools:
        return np.ones(len(self.score), dtype=np.bool_)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The loss, and the step that loses most."""
        is_recorded, complete, topics = ~np.isnan(self.score), self.complete, len(self.score)
        score, best = mean_of(self.score), mean_of(self.best[is_recorded])
        if complete.all():
            if best - score <= 0 or not self.parts:
                return (f"{self.measure} is {score:.4f}, and no order of the judged documents is better.",)
            attained = (f"{self.measure} is {score:.4f} of an attainable {best:.4f}.",)
        else:
            low, high = self.bounds(SCORE)
            scope = f"over the {counted(int(is_recorded.sum()), 'topic')} of {topics} whose final list is recorded"
            value = f"{self.measure} is {score:.4f} of an attainable {best:.4f} {scope}" if is_recorded.any() else (
                f"{self.measure} is unknown: the final list is recorded for none of {counted(topics, 'topic')}"
            )  # fmt: skip
            bounds = (
                f"over all topics, {self.measure} is between {low:.4f} and {high:.4f}, whatever documents the"
                " unrecorded stages returned"
            )
            stages = f"The loss by stage is known for {int(complete.sum())} of {counted(topics, 'topic')}"
            attained = (f"{value}; {bounds}." if not is_recorded.all() else f"{value}.", f"{stages}.")
        worst = self.worst
        if worst is None:
            return attained
        place = "due to documents that are not in the corpus" if worst == CORPUS else format_step(worst)
        parts = self.mean_parts
        largest = f"The largest part of the loss is {place}: {parts[worst]:.4f} of {sum(parts.values()):.4f}."
        source = self.truncated_stages.get(worst)
        cause = (
            f" {worst} only truncates the list of {source}, so the ranking by {source} is the cause of this loss."
            if source
            else ""
        )
        return (" ".join((*attained, f"{largest}{cause}")), *self._by_slice())

    def _by_slice(self) -> Iterator[str]:
        tests = self.against_others.items()
        alpha = 1 - self.level
        rows = [
            f"{name} {part} {decimal(test.difference, 3, '+')} (p {p_text(p, alpha)})"
            for (name, part), (test, p) in tests
            if p <= alpha
        ]
        if tests:
            text = (
                "Slices whose loss differs significantly from the loss of all other topics:"
                f" {', '.join(rows) or 'none'}"
            )
            yield f"{text} ({counted(len(tests), 'test')}, Holm)."

    @cached_property
    def against_others(self) -> dict[tuple[str, str], tuple[AgainstRest, float]]:
        """Tests of each slice against all other topics, by part, with p-values corrected by Holm."""
        subsets = topic_subsets(len(self.score), self.slicing)
        large = [subset for subset in subsets if not (subset.small or subset.is_all)]
        comparisons: dict[tuple[str, str], AgainstRest] = {}
        for name, part in self.parts.items() if large else ():
            values = np.where(self.complete, part, np.nan)
            tests = compare_with_rest(values, [subset.mask for subset in large], level=self.level)
            pairs = zip(large, tests, strict=True)
            comparisons |= {(subset.name, format_step(name)): test for subset, test in pairs if test}
        adjusted = adjust([test.p for test in comparisons.values()], "holm") if comparisons else []
        return {key: (test, float(p)) for (key, test), p in zip(comparisons.items(), adjusted, strict=True)}

    @property
    def truncated_stages(self) -> dict[str, str]:
        """Stages that return the top documents of another stage in its order, and that stage."""
        sources: dict[str, str] = {}
        for stage in (loss.stage for loss in self.losses):
            if len(stage.parents) != 1:
                continue
            pairs = (
                tuple(self.traces.documents(query, name) for name in (stage.name, stage.parents[0]))
                for query in self.query_ids
            )
            lists = [
                ([document.doc_id for document in after], [document.doc_id for document in before])
                for after, before in pairs
                if after and before
            ]
            if lists and all(after == before[: len(after)] for after, before in lists):
                sources[stage.name] = stage.parents[0]
        return sources

    def blocks(self) -> tuple[Block, ...]:
        """Return the sentences, the chart, stages, parts of the loss, topics, and lost documents."""
        parts, chart = self._parts()
        tables = (self.stages_table(), parts, self.topics_table(), self.documents_table())
        return (Sentences(self.sentences), chart, *tables)

    def facts(self) -> Mapping[str, Any]:
        """Return traces, measure, pipeline, and level."""
        stages = [vars(loss.stage) for loss in self.losses]
        return {"traces": self.traces.name, "measure": self.measure, "pipeline": stages, "level": self.level}

    def stages_table(self) -> Table:
        """Build a table with one row for each stage."""
        losses, topics = self.losses, len(self.query_ids)
        latencies, unrecorded = [loss.latency_ms for loss in losses], [int((~loss.recorded).sum()) for loss in losses]
        parts = [mean_of(loss.input_attainable - loss.attainable) for loss in losses]
        lost = [total_recorded(loss.n_input_relevant - loss.n_kept) for loss in losses]
        shares = [_ratio(loss.n_kept, loss.n_input_relevant) for loss in losses]
        only = "data" if np.isnan(latencies).all() else ""
        return Table(
            "stages",
            (
                Column("stage", [loss.stage.name for loss in losses], TEXT),
                Column("kind", [loss.stage.kind for loss in losses], TEXT),
                Column("parents", [", ".join(loss.stage.parents) for loss in losses], TEXT, "input from", only="data"),
                Column("unrecorded", unrecorded, COUNT, "topics not recorded", only="" if any(unrecorded) else "data"),
                Column("n_relevant", [total_recorded(loss.n_relevant) for loss in losses], COUNT, "relevant"),
                Column("recall", [_ratio(loss.n_relevant, self.relevant) for loss in losses], SHARE),
                Column("retained", shares, SHARE),
                Column("lost", lost, COUNT),
                Column("score", [mean_of(loss.score) for loss in losses], NUMBER, str(self.measure)),
                Column("attainable", [mean_of(loss.attainable) for loss in losses], NUMBER, "best order"),
                Column("headroom", [mean_of(loss.attainable - loss.score) for loss in losses], NUMBER, "headroom"),
                Column("loss", parts, CHANGE, only="data"),
                Column("latency_ms", latencies, number(1), "median ms", only=only),
            ),
            "Stages",
            note=f"{topics} topics; relevant: relevant documents in the output; retained: share of the relevant"
            " documents in the input that are in the output; headroom: score of the best order of the output, minus"
            " the score of the output"
            + (
                "; each number is computed over the topics for which the required stages are recorded"
                if any(unrecorded)
                else ""
            ),
        )

    def _parts(self) -> tuple[Table, Chart]:
        rows = [
            (subset.name, name, mean)
            for subset in topic_subsets(len(self.score), self.slicing)
            for name, mean in self._means(subset.mask, is_small=subset.small).items()
        ]
        tests = [self.against_others.get((slice_name, name), (None, math.nan)) for slice_name, name, _ in rows]
        comparisons, p = [test for test, _ in tests], [adjusted for _, adjusted in tests]
        is_sliced, is_complete = self.slicing is not None, bool(self.complete.all())
        masks = {subset.name: subset.mask for subset in topic_subsets(len(self.score), self.slicing)}
        n_complete = [int((self.complete & masks[slice_name]).sum()) for slice_name, *_ in rows]
        names = {format_step(name): name for name in self.parts}
        bounds = [self.bounds(names[name], masks[slice_name]) for slice_name, name, _ in rows]
        only, alpha = "" if is_sliced else "data", 1 - self.level
        values, intervals = [row[2].value for row in rows], [row[2].ci for row in rows]
        axis = Axis.over(values, intervals, reference=0.0)
        test_note = (
            "; p: permutation test of the difference from all other topics, Holm-corrected over slices and parts"
            if is_sliced
            else ""
        )
        table = Table(
            "parts",
            (
                Column("slice", [row[0] for row in rows], TEXT, only=only),
                Column("part", [row[1] for row in rows], TEXT),
                Column("value", values, NUMBER, str(self.measure), ci=intervals, axis=axis),
                Column("n", n_complete, COUNT, "topics", only="data" if is_complete else ""),
                Column("low", [low for low, _ in bounds], NUMBER, "lower bound", only="data" if is_complete else ""),
                Column("high", [high for _, high in bounds], NUMBER, "upper bound", only="data" if is_complete else ""),
                Column(
                    "difference",
                    [test.difference if test else None for test in comparisons],
                    CHANGE,
                    "vs. others",
                    only=only,
                    ci=[test.interval if test else None for test in comparisons],
                ),
                Column("p", p, p_value(alpha), only=only, mark=["*" if value <= alpha else "" for value in p]),
            ),
            "Parts of the loss",
            note="on every topic, the parts add up to the loss, which is the best possible score minus the score;"
                f" {100 * self.level:g}% confidence intervals over topics{test_note}"
            + ("" if is_complete else "; bounds: lowest and highest possible mean over all topics, whatever documents"
                " the unrecorded stages returned"),
            labels=2 if is_sliced else 1,
        )  # fmt: skip
        overall_rows = [i for i, row in enumerate(rows) if row[0] == rows[0][0]]
        title = f"Where {self.measure} is lost"
        return (table, Chart("losses", title, table.take(overall_rows), self.sentences[0], kind="bars", y="part"))

    def _means(self, mask: Bools, *, is_small: bool = False) -> dict[str, Mean]:
        names, values = list(self.parts), np.stack([self.part(name)[mask] for name in self.parts])
        low, high = self.measure.properties.bounds
        method = IntervalMethod("none") if is_small else IntervalMethod(level=self.level)
        # The documents of the first step are a subset of all judged ones, and no order is better than the best one:
        # these two parts cannot be negative.
        never_negative = {names[0], ORDER}
        bounds = [(0 if name in never_negative else low - high, high - low) for name in names]
        intervals = sufficient_intervals(values, method, bounds).tolist()
        return {
            format_step(name): Mean(mean_of(part), *ci) for name, part, ci in zip(names, values, intervals, strict=True)
        }

    def topics_table(self) -> Table:
        """Build a table with one row for each topic, the largest loss first."""
        columns = (
            Column("query_id", self.query_ids, TEXT, "topic"),
            Column("score", self.score.tolist(), NUMBER, str(self.measure)),
            Column("best", self.best.tolist(), NUMBER),
            *(Column(f"lost_{name}", part.tolist(), NUMBER, format_step(name)) for name, part in self.parts.items()),
        )
        order = np.argsort(np.nan_to_num(self.score - self.best), kind="stable")
        return Table("topics", columns, "Topics", folded=True).take(order.tolist())

    def documents_table(self) -> Table:
        """Build a table of the lost relevant documents."""
        columns = (
            Column("query_id", [topic for topic, _, _, _ in self.lost], TEXT, "topic"),
            Column("doc_id", [doc for _, doc, _, _ in self.lost], TEXT, "document"),
            Column("lost", [format_step(step) for _, _, step, _ in self.lost], TEXT),
            Column("grade", [grade for _, _, _, grade in self.lost], number(0)),
        )
        return Table("documents", columns, "Lost relevant documents", labels=3, folded=True)


def format_step(step: str) -> str:
    """Format the name of a part for people."""
    names = {CORPUS: "not in the corpus", ORDER: "in the final order", UNRECORDED: "not recorded"}
    return names.get(step, f"at {step}")


def _ratio(numerators: Floats, denominators: Floats | Ints) -> float:
    # Only topics for which both are recorded count.
    is_recorded = ~np.isnan(numerators + denominators)
    total = float(denominators[is_recorded].sum())
    return float(numerators[is_recorded].sum()) / total if total else math.nan


def total_recorded(values: Floats) -> int | None:
    """Return the sum over topics with a recorded value; None without any."""
    recorded = values[~np.isnan(values)]
    return int(recorded.sum()) if len(recorded) else None
