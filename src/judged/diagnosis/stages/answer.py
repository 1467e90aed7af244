"""Result of `stages`: loss of a system by stage, its changes against a baseline, and tables and charts."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.comparison import Choices
from judged.comparison.slicing.comparison import difference_title
from judged.comparison.slicing.parts import ValuePair, topic_subsets
from judged.diagnosis.changes import (
    SMALL,
    changes_of_quantities,
    changes_table,
    describe_losers,
    describe_slice_changes,
    lost_table,
)
from judged.diagnosis.stages.trace import BOTH, PARTS, SCORE, SHORT, VERDICTS, TopicStages, large_parts, losses_by_slice
from judged.errors import InputError
from judged.results import Answer, Chart, Column, Sentences, Show, Table
from judged.results.charts import PALETTE
from judged.results.decimals import counted, decimal, percent
from judged.results.spelling import use_one_of
from judged.results.table import CHANGE, COUNT, NUMBER, SHARE, TEXT, columns_of, significant
from judged.results.types import cached_property
from judged.stats.classical import HALL
from judged.stats.correction import losers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.comparison.slicing.topic_slices import Slicing
    from judged.diagnosis.changes import TestedChange
    from judged.diagnosis.stages.trace import LossByStage, StageOptions, Trace
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.types import Floats
    from judged.scoring.evaluation.facts import Provenance
    from judged.scoring.measures.base import Measure
    from judged.stats.correction import Discoveries

_MAX_NON_CANDIDATES = 0.1  # share of documents; above it, the final ranking is not a reranking of the candidates
_MAX_BARS = 200  # in the chart of topics: those with the largest loss
_COLORS = (
    PALETTE[0],
    PALETTE[4],
    PALETTE[1],
    PALETTE[3],
)  # of the score, then of the losses from the last part to the first
_VERDICT = Show(lambda verdict: SHORT.get(verdict) or verdict, "string")


@dataclass(frozen=True, eq=False, repr=False)
class Stages(Answer):
    """Loss of a system by stage, and changes against a second system.

    Attributes
    ----------
    measure, recall : Measure
        Measures of the final ranking, and of the candidates.
    query_ids : tuple of str
        Ids of the T topics.
    trace : Trace
        Scores, losses and documents of the system.
    baseline : Trace or None
        The system that it is compared with.
    choices : StageOptions
        Cutoff, thresholds, error rates, resamples and seed.
    provenance : Provenance
        Judgments, runs and policies.
    slicing : Slicing or None
        Slices of topics.
    notes : tuple of Note
        Warnings about the runs.

    Examples
    --------
    >>> from judged import stages
    >>> qrels = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 1}}
    >>> run = {"q1": ["a"], "q2": ["x", "y", "a"], "q3": ["x"]}
    >>> result = stages(qrels, run, measure="RR@10", cutoff=2)
    >>> result.trace.parts.tolist()  # candidates and ranking, by topic
    [[0.0, 1.0, 1.0], [0.0, 0.0, 0.0]]
    >>> result.verdicts
    ('small loss', 'not retrieved', 'not retrieved')
    """

    kind: ClassVar[str] = "stages"

    measure: Measure
    recall: Measure
    query_ids: tuple[str, ...]
    trace: Trace
    baseline: Trace | None
    choices: StageOptions
    provenance: Provenance
    slicing: Slicing | None = None
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Systems and measure."""
        return f"{' and '.join(trace.name for trace in self.traces)}: loss of {self.measure} by stage"

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The system, and the baseline if there is one."""
        return (self.trace,) if self.baseline is None else (self.trace, self.baseline)

    @cached_property
    def rows(self) -> tuple[LossByStage, ...]:
        """Means and verdicts over all topics, then over each slice; for each, the system before the baseline."""
        by_system = [losses_by_slice(trace, self.measure, self.slicing, self.choices) for trace in self.traces]
        return tuple(row for rows in zip(*by_system, strict=True) for row in rows)

    @property
    def parts(self) -> tuple[LossByStage, ...]:
        """Rows of the system only."""
        return self.rows[:: len(self.traces)]

    @property
    def verdicts(self) -> tuple[str, ...]:
        """Verdict of each topic: small loss, not retrieved, ranked low, both, or no relevant documents."""
        return self.trace.verdicts(self.choices)

    @property
    def headroom(self) -> LossByStage:
        """Row over all topics. Its last loss is the gain of the best possible order of the candidates."""
        return self.rows[0]

    @cached_property
    def changes(self) -> tuple[TestedChange, ...]:
        """Tested changes of the score and of each part, over all topics and by slice; higher is better."""
        if self.baseline is None:
            return ()
        trace, baseline, options = self.trace, self.baseline, self.choices
        max_difference = self.measure.properties.score_range
        quantities = {
            (trace.name, SCORE): ValuePair(baseline.score, trace.score, family=SCORE, max_difference=max_difference)
        }
        for name, baseline_part, part in zip(PARTS, baseline.parts, trace.parts, strict=True):
            quantities[trace.name, name] = ValuePair(
                -baseline_part, -part, family="parts", max_difference=max_difference
            )
        test_options = Choices(alpha=options.alpha, resamples=options.resamples, seed=options.seed)
        return changes_of_quantities(quantities, topic_subsets(len(trace.score), self.slicing), test_options)

    @cached_property
    def lost(self) -> dict[str, Discoveries]:
        """By part: the topics that lost against the baseline, at the configured false discovery rate."""
        best = np.stack([trace.best for trace in self.traces])
        scale = float(np.nanmax(np.abs(best), initial=1.0))
        return {name: losers(gains, self.choices.fdr, scale=scale) for name, gains in self._gains.items()}

    @property
    def _gains(self) -> dict[str, Floats]:
        """By part: the gain of each topic against the baseline."""
        if self.baseline is None:
            return {}
        part_gains = self.baseline.parts - self.trace.parts
        return {SCORE: self.trace.score - self.baseline.score, **dict(zip(PARTS, part_gains, strict=True))}

    @property
    def lost_kinds(self) -> tuple[str, ...]:
        """Parts by which each topic lost against the baseline, at the configured false discovery rate; T texts.

        A part is included if it is at least the configured share of the loss.
        """
        if self.baseline is None:
            return ("",) * len(self.query_ids)
        large = large_parts(np.maximum(self.trace.parts - self.baseline.parts, 0.0), self.choices)
        return tuple(
            " and ".join(name for name, is_large in zip(PARTS, row, strict=True) if is_large) if has_lost else ""
            for row, has_lost in zip(large.T.tolist(), self.lost[SCORE].mask.tolist(), strict=True)
        )

    def topic(self, query_id: str, query: str = "") -> TopicStages:
        """Return the scores and losses of one topic, and the stage at which each relevant document was lost.

        Parameters
        ----------
        query_id
            Id of the topic.
        query
            Text of the topic, to show with it.

        Raises
        ------
        InputError
            If the topic does not exist.
        """
        query_id = str(query_id)
        if query_id not in self.query_ids:
            raise InputError(f"no topic {query_id!r}", fix=f"{use_one_of(self.query_ids[:5])}, ...")
        return TopicStages(self, query_id, query, self.provenance, self.notes)

    def facts(self) -> dict[str, Any]:
        """Return measures, names and options."""
        return {
            "measure": self.measure,
            "recall": self.recall,
            "systems": [trace.name for trace in self.traces],
            "parts": PARTS,
            "choices": vars(self.choices),
        }

    def blocks(self) -> tuple[Block, ...]:
        """Return tables, sentences and charts about slices, changes, topics and documents."""
        return (
            *self._slices(),
            *self._changes(),
            Sentences(self.sentences),
            self._chart_of_slices(),
            self.topics_table(),
            self._chart_of_topics(),
            self.documents_table(),
        )

    def _slices(self) -> tuple[Table, Table]:
        """Return tables with one row per slice and system: means, and counts of verdicts."""
        rows, labels = self.rows, len(self.traces)
        small_marks = [SMALL if row.small else "" for row in rows]
        names = columns_of(rows, ("slice", TEXT), ("system", TEXT) if self.baseline else "system")
        columns = [*names, *columns_of(rows, ("n", COUNT), "small")]
        titles = {"score": str(self.measure), "best": "best", "recall": self._recall_title}
        titles |= {f"lost_{name}": f"loss: {name}" for name in PARTS}
        for i, (name, title) in enumerate(titles.items()):
            means = [row.means[i] for row in rows]
            column = Column(name, [mean.value for mean in means], NUMBER, title, ci=[mean.ci for mean in means])
            if name in {"score", "recall"}:  # printed without intervals, which would make the table too wide
                columns.append(replace(column, ci=None, only="people"))
            columns.append(column if i > 2 else replace(column, only="data"))
        titles_of_verdicts = [(verdict, COUNT, SHORT.get(verdict, verdict)) for verdict in VERDICTS]
        counts = columns_of([row.verdicts for row in rows], *titles_of_verdicts)
        columns += [replace(column, only="data") for column in counts]
        note = f"{self._topics_note}; [{self.choices.interval.words}]"
        note += f"; {SMALL}: too few topics" if any(small_marks) else ""
        return (
            Table("slices", tuple(columns), note=note, labels=labels).changed("n", details=small_marks),
            Table("verdicts", (*names, *counts), labels=labels, only="people"),
        )

    @property
    def _topics_note(self) -> str:
        return f"over {counted(len(self.query_ids), 'topic')}; candidates: top {self.choices.cutoff}"

    @property
    def _recall_title(self) -> str:
        """Title of the recall measure, distinct from that of the score."""
        return f"{self.recall} of candidates" if str(self.recall) == str(self.measure) else str(self.recall)

    def _changes(self) -> Iterator[Table]:
        """Yield a table with one row per slice and part, and a table of the topics that lost."""
        if self.baseline is None:
            return
        first, second, options = self.trace.name, self.baseline.name, self.choices
        note = (
            f"{first} minus {second}; candidates, ranking: change of {self.measure} due to the candidate loss or the"
            f" ranking loss (negative: {first} loses more); the two changes add up to the change of {self.measure};"
            f" paired randomization test,"
            f" {options.resamples} resamples, seed {options.seed}{HALL if self.slicing else ''}; p"
            " corrected by Holm, separately for tests over all topics and tests by slice; CIs corrected in the same"
            f" way; *: p <= {options.alpha:g}"
        )
        part = Show(lambda name: str(self.measure) if name == SCORE else name, "string")
        yield changes_table(self.changes, difference_title(first, second), note, part, runs=False)
        yield lost_table(((first, name, losses) for name, losses in self.lost.items()), self.query_ids)

    def topics_table(self) -> Table:
        """Return a table with one row per topic, sorted by the loss against the baseline if there is one."""
        trace, score_gains = self.trace, np.zeros(len(self.query_ids))
        columns = [Column("query_id", self.query_ids, TEXT, "topic"), *self._topic_columns(trace)]
        if self.baseline is not None:
            columns += [
                replace(column, name=f"other_{column.name}", only="data")
                for column in self._topic_columns(self.baseline)
            ]
        for name, gains in self._gains.items():
            stars = ["*" if has_lost else "" for has_lost in self.lost[name].mask.tolist()]
            title = "change" if name == SCORE else f"by {name}"
            columns.append(Column(f"change_{name}", gains.tolist(), CHANGE, title, mark=stars))
            score_gains = gains if name == SCORE else score_gains
        order = np.lexsort((trace.score - trace.best, np.nan_to_num(score_gains)))
        return Table("topics", tuple(columns), labels=2, folded=True).take(order.tolist())

    def _topic_columns(self, trace: Trace) -> Iterator[Column]:
        yield Column("system", [trace.name] * len(trace.score), TEXT, only="data")
        yield Column("verdict", trace.verdicts(self.choices), _VERDICT)
        yield Column("score", trace.score.tolist(), NUMBER, str(self.measure))
        yield Column("best", trace.best.tolist(), NUMBER)
        yield Column("attainable_candidates", trace.attainable.tolist(), NUMBER, only="data")
        yield Column("recall", trace.recall.tolist(), NUMBER, self._recall_title)
        yield Column(
            "retrieved",
            trace.num_retrieved.tolist(),
            COUNT,
            "hits",
            details=[f"of {n}" for n in trace.relevant.tolist()],
        )
        yield Column("relevant", trace.relevant.tolist(), COUNT, only="data")
        for name, part in zip(PARTS, trace.parts.tolist(), strict=True):
            yield Column(f"lost_{name}", part, NUMBER, f"loss: {name}", only="data" if self.baseline else "")
        yield Column("judged", trace.judged.tolist(), SHARE)
        yield Column("non_candidates", trace.non_candidates.tolist(), COUNT, only="data")

    def documents_table(self) -> Table:
        """Return a table of the relevant documents beyond the cutoff of the measure, with the stage that lost them."""
        cutoff = getattr(self.measure, "cutoff", None)
        measure_cutoff = cutoff if isinstance(cutoff, int) else math.inf
        rows: list[dict[str, Any]] = []
        for trace in self.traces:
            documents = trace.documents
            conditions = {
                "not returned": documents.candidate == 0,
                "below the cutoff": documents.candidate > self.choices.cutoff,
                "ranked low": documents.final > 0,
            }
            stage_lost = np.select(list(conditions.values()), list(conditions), "dropped").tolist()
            rows += [
                {
                    "system": trace.name,
                    "query_id": self.query_ids[documents.topic[i]],
                    "doc_id": documents.doc[i],
                    "grade": documents.grade[i],
                    "lost": stage_lost[i],
                    "candidate_rank": int(documents.candidate[i]) or None,
                    "final_rank": int(documents.final[i]) or None,
                }
                for i in np.flatnonzero((documents.final == 0) | (documents.final > measure_cutoff)).tolist()
            ]
        system = ("system", TEXT) if self.baseline else "system"
        columns_of_document = (("query_id", TEXT), ("doc_id", TEXT), ("grade", significant()), ("lost", TEXT))
        columns = columns_of(rows, system, *columns_of_document, ("candidate_rank", COUNT), ("final_rank", COUNT))
        return Table("documents", columns, labels=1 + len(self.traces), only="data")

    def _chart_of_slices(self) -> Chart:
        bars: list[tuple[str, str, list[float]]] = []
        for row in self.rows:
            label = f"{row.slice} (n {row.n}{', few' if row.small else ''})"
            verdict_counts = ", ".join(f"{count} {verdict}" for verdict, count in row.verdicts.items() if count)
            sizes = [mean.value for mean in (row.score, *row.losses[::-1])]
            bars.append((f"{label}: {row.system}" if self.baseline else label, verdict_counts, sizes))
        return self._chart("slices", self.title, f"mean {self.measure}", bars)

    def _chart_of_topics(self) -> Chart:
        trace = self.trace
        sizes = np.stack([trace.score, *trace.parts[::-1]]).T.tolist()
        bars = list(zip(self.query_ids, self.verdicts, sizes, strict=True))
        order = np.argsort(trace.score - trace.best, kind="stable").tolist()
        title = f"{trace.name}: loss of {self.measure} by topic"
        title += f", the {_MAX_BARS} topics with the largest loss" if len(bars) > _MAX_BARS else ""
        return self._chart("topics", title, f"{self.measure} of {trace.name}", [bars[i] for i in order[:_MAX_BARS]])

    def _chart(self, name: str, title: str, score: str, bars: Sequence[tuple[str, str, list[float]]]) -> Chart:
        """Return a chart of stacked bars: score, loss by ranking, loss by candidates. They end at the best score."""
        kinds = [str(self.measure), *(f"loss: {part}" for part in reversed(PARTS))]
        rows = [
            {"bar": label, "part": kind, "start": start, "end": start + size, "size": size, "topics": description}
            for label, description, sizes in bars
            for kind, size, start in zip(kinds, sizes, np.cumsum([0.0, *sizes[:-1]]).tolist(), strict=True)
            if size and not math.isnan(size)
        ]
        position_columns = (("start", NUMBER), ("end", NUMBER), ("size", NUMBER))
        columns = columns_of(rows, ("bar", TEXT), ("part", TEXT), *position_columns, ("topics", TEXT))
        x_title = f"{score}, and the loss relative to the best score"
        return Chart(
            name,
            title,
            Table(name, columns),
            f"{x_title}.",
            "bars",
            x="start",
            x2="end",
            y="bar",
            x_title=x_title,
            color="part",
            colors=dict(zip(kinds, _COLORS, strict=False)),
            width=480,
            subtitle=self._topics_note,
            folded=name == "topics",
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """Changes against the baseline, then losses of the system by part."""
        return (*self._change_sentences(), *self._system_sentences())

    @property
    def summary(self) -> str:
        """Score and losses of the system in one sentence; empty if nothing can be lost."""
        overall = self.headroom
        if not overall.n or overall.has_no_relevant:
            return ""
        candidates, ranking = overall.losses[0].text(), overall.losses[-1].text()
        return (
            f"{self.trace.name} scores {decimal(overall.score.value)} in {self.measure}, and the best possible score is"
            f" {decimal(overall.best.value)}: a loss of {candidates} is due to relevant documents that are not in its"
            f" top {self.choices.cutoff} candidates, and a loss of {ranking} to the order of the candidates."
        )

    def _system_sentences(self) -> Iterator[str]:
        name, measure, cutoff = self.trace.name, self.measure, self.choices.cutoff
        overall, non_candidate_share = self.headroom, self.trace.non_candidate_share
        if not overall.n:
            yield f"{measure} has no score on any topic, so the loss of {name} is unknown."
            return
        if overall.has_no_relevant:
            yield "No topic has a relevant document, so no loss is possible."
            return
        if non_candidate_share >= _MAX_NON_CANDIDATES:
            yield (
                f"{name} does not only rank the candidates: {percent(non_candidate_share)} of the documents of"
                f" {name} are not in the top {cutoff} of {self.trace.candidates}. Therefore, the candidate loss and the"
                " ranking loss"
                f" do not add up to the loss of {name}."
            )
        yield self.summary
        ranking = overall.losses[-1]
        if ranking.value > 0 and non_candidate_share < _MAX_NON_CANDIDATES:
            yield (
                f"The best order of the top {cutoff} candidates would score"
                f" {decimal(overall.score.value + ranking.value)}: no reranker of the top {cutoff} of"
                f" {self.trace.candidates} can gain more than"
                f" {decimal(ranking.value)}."
            )
        named = (
            (("both causes" if verdict == BOTH else verdict), count) for verdict, count in overall.verdicts.items()
        )
        counts = ", ".join(f"{verdict} {count}" for verdict, count in named if count)
        yield (
            f"Number of topics by main cause of the loss of {name}: {counts} (a cause counts if its loss is at least"
            f" {self.choices.least:.0%} of the topic's best possible score and {self.choices.share:.0%} of the topic's"
            " total loss)."
        )

    def _change_sentences(self) -> Iterator[str]:
        if self.baseline is None:
            return
        score, *overall = (change for change in self.changes if change.is_overall)
        yield self._overall_change_sentence(score, overall)
        opposite = overall[0].result.difference * overall[-1].result.difference < 0
        if opposite and any(change.significant for change in overall):
            yield (
                "The candidate loss (relevant documents that are not candidates) and the ranking loss (order of the"
                " candidates) changed in opposite directions. If fewer relevant documents are candidates, fewer can be"
                " ranked low. Therefore, a change of the ranking loss does not necessarily show a better or"
                " worse ranker."
            )
        parts = [change for change in self.changes if change.part != SCORE]
        yield from describe_slice_changes(
            parts,
            sum(change.by_slice for change in parts),
            f"{self.trace.name} against {self.baseline.name}",
            lambda part: f"change due to the {part}",
        )
        if small := {change.slice for change in self.changes if change.small}:
            yield f"Slices with too few topics for a test: {', '.join(sorted(small))}."
        kinds = Counter(kind for kind in self.lost_kinds if kind).most_common()
        for name, losses in self.lost.items():
            causes = ", ".join(f"{kind} on {counted(count, 'topic')}" for kind, count in kinds)
            kind_counts = f". Cause of the loss: {causes}" if causes and name == SCORE else ""
            subject = str(self.measure) if name == SCORE else f"the change due to the {name} only"
            against = f"{self.trace.name} against {self.baseline.name}"
            yield f"{against} by {subject}: {describe_losers(losses, self.query_ids)}{kind_counts}."

    def _overall_change_sentence(self, score: TestedChange, parts: list[TestedChange]) -> str:
        first, second = (trace.name for trace in self.traces)
        if score.result.n < 2:
            return "There are too few topics to test the changes."
        if not any(change.result.difference for change in (score, *parts)):
            return f"{first} and {second} have the same {self.measure} and the same losses."
        higher_or_lower = "lower" if score.result.difference < 0 else "higher"
        part_texts = " and ".join(change.describe(f" due to the {change.part}") for change in parts)
        size = decimal(abs(score.result.difference))
        verdict = f"{first} scores {size} {higher_or_lower} than {second} in {self.measure}"
        return f"{verdict} ({score.p_value_text}): {part_texts}."
