"""What the funnel says: what each stage held of what is relevant, what it lost, and what that cost."""

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
from judged.results import Answer, Chart, Column, Sentences, Table, counted
from judged.results.decimals import decimal
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
"""The key of the limits of the score."""


@dataclass(frozen=True, eq=False)
class StageLoss(ReadOnly):
    """One stage against the judgments, topic by topic; NaN where what it rests on is not recorded.

    Parameters
    ----------
    stage
        The stage.
    recorded
        (T,): whether its documents are recorded.
    score
        (T,): the measure of its list.
    attainable
        (T,): the measure of the best order of its documents.
    given
        (T,): the measure of the best order of all that it was given; of a first stage, of all that is judged.
    held
        (T,): relevant documents that it passed on.
    kept
        (T,): those of them that it was given; of a first stage all.
    offered
        (T,): relevant documents that it was given; of a first stage all that are relevant.
    latency_ms
        The median of its latencies; NaN where none is recorded.
    """

    stage: Stage
    recorded: Bools
    score: Floats
    attainable: Floats
    given: Floats
    held: Floats
    kept: Floats
    offered: Floats
    latency_ms: float


@dataclass(frozen=True, eq=False, repr=False)
class TraceFunnel(Answer):
    """What each stage of a pipeline lost of a measure: parts that add up to the loss of every topic.

    Attributes
    ----------
    traces : Traces
        What was traced.
    measure : Measure
        What is lost of.
    query_ids : tuple of T str
        The topics.
    best, score : (T,) float64
        The measure of the best order of all judged documents, and of the list that people saw; NaN if that list is not
        recorded.
    parts : dict of (T,) float64
        By step, what was lost there: together ``best - score``. ``corpus`` is what the corpus does not hold,
        ``order`` the order of the last list. NaN if the documents before or behind the step are not recorded.
    limits : dict of (2, T) float64
        Of ``score`` and of each part the lowest and the highest value that is possible, whatever was not recorded.
    losses : tuple of StageLoss
        Each stage, those of branches apart.
    relevant : (T,) int64
        Relevant documents that are known.
    listed : tuple of (str, str, int, float)
        Topic, document, rank and grade of the relevant documents in the list that people saw.
    lost : tuple of (str, str, str, float)
        Topic, document, the step at which the last stage that could still pass it on lost it, and its grade. The step
        is ``unrecorded`` if the trace does not tell; the document may then even have been shown.
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

    def below(self, cutoff: float) -> tuple[tuple[str, str, str, float], ...]:
        """Give the relevant documents that the last list holds below a rank, as `lost` gives others."""
        return tuple((topic, doc, ORDER, grade) for topic, doc, rank, grade in self.listed if rank > cutoff)

    @property
    def rel(self) -> float:
        """The lowest grade that is relevant."""
        return float(getattr(self.measure, "rel", POSITIVE))

    @property
    def title(self) -> str:
        """What is lost where."""
        return f"{self.traces.name}: where {self.measure} is lost"

    @cached_property
    def complete(self) -> Bools:
        """Whether everything that leads to the list is recorded: (T,). Means of parts are over these topics."""
        return np.all([~np.isnan(part) for part in self.parts.values()], axis=0)

    def part(self, name: str) -> Floats:
        """Return a part on the topics of which all parts are known, NaN on others: (T,)."""
        return np.where(self.complete, self.parts[name], np.nan)

    def bounds(self, name: str, mask: Bools | None = None) -> tuple[float, float]:
        """Return the lowest and highest mean of `score` or a part over topics, whatever was not recorded."""
        limits = self.limits[name] if mask is None else self.limits[name][:, mask]
        low, high = limits
        return mean_of(low), mean_of(high)

    @property
    def sentences(self) -> tuple[str, ...]:
        """How much is lost, and where most of it."""
        known, complete, topics = ~np.isnan(self.score), self.complete, len(self.score)
        score, best = mean_of(self.score), mean_of(self.best[known])
        parts = {name: mean_of(self.part(name)) for name in self.parts}
        if complete.all():
            if best - score <= 0 or not parts:
                return (f"{self.measure} is {score:.4f}, and no order of the judged documents is better.",)
            attained = (f"{self.measure} is {score:.4f} of an attainable {best:.4f}.",)
        else:
            low, high = self.bounds(SCORE)
            over = f"over the {counted(int(known.sum()), 'topic')} of {topics} whose final list is recorded"
            value = f"{self.measure} is {score:.4f} of an attainable {best:.4f} {over}" if known.any() else (
                f"{self.measure} is unknown: the final list is recorded for none of {counted(topics, 'topic')}"
            )  # fmt: skip
            whatever = f"over all topics it is between {low:.4f} and {high:.4f}, whatever was not recorded"
            stages = f"all stages are recorded for {int(complete.sum())} of {counted(topics, 'topic')}"
            attained = (f"{value}; {whatever}." if not known.all() else f"{value}.", f"Of the loss, {stages}.")
        lost = sum(parts.values())
        if not lost > 0:
            return attained
        worst = max(parts, key=lambda name: parts[name])
        most = f"Most of the loss is {where_lost(worst)}: {parts[worst]:.4f} of {lost:.4f}."
        before = self.cuts.get(worst)
        so = f" {worst} only cuts the list of {before}, so the order of {before} lost it." if before else ""
        return (" ".join((*attained, f"{most}{so}")), *self._by_slice())

    def _by_slice(self) -> Iterator[str]:
        tests = self.against_others.items()
        sure = [
            f"{where} {decimal(rest.difference, 3, '+')} {part}"
            for (where, part), (rest, p) in tests
            if p <= 1 - self.level
        ]
        if tests:
            told = f"Slices that lose more or less than all other topics: {', '.join(sure) or 'none shown'}"
            yield f"{told} ({counted(len(tests), 'test')}, Holm)."

    @cached_property
    def against_others(self) -> dict[tuple[str, str], tuple[AgainstRest, float]]:
        """What each slice loses by each part against all other topics, with its p-value corrected by Holm."""
        large = [where for where in topic_subsets(len(self.score), self.slicing) if not (where.small or where.is_all)]
        masks = [where.mask for where in large]
        found: dict[tuple[str, str], AgainstRest] = {}
        for name, part in self.parts.items() if large else ():
            values = np.where(self.complete, part, np.nan)
            tests = compare_with_rest(values, masks, level=self.level)
            found |= {(where.name, where_lost(name)): test for where, test in zip(large, tests, strict=True) if test}
        adjusted = adjust([test.p for test in found.values()], "holm") if found else []
        return {key: (test, float(p)) for (key, test), p in zip(found.items(), adjusted, strict=True)}

    @property
    def cuts(self) -> dict[str, str]:
        """The stages that pass on the first documents of another stage, in its order, and that stage."""
        found: dict[str, str] = {}
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
                found[stage.name] = stage.parents[0]
        return found

    def blocks(self) -> tuple[Block, ...]:
        """Give where it is lost, stages, parts of the loss, by slice too, every topic, and the documents lost."""
        parts, chart = self._parts()
        return (
            Sentences(self.sentences),
            chart,
            self.stages_table(),
            parts,
            self.topics_table(),
            self.documents_table(),
        )

    def facts(self) -> Mapping[str, Any]:
        """Give what was traced."""
        stages = [vars(loss.stage) for loss in self.losses]
        return {"traces": self.traces.name, "measure": self.measure, "pipeline": stages, "level": self.level}

    def stages_table(self) -> Table:
        """Lay out one row a stage: what it held of what is relevant, what it scores, what it could."""
        losses, topics = self.losses, len(self.query_ids)
        took, unknown = [one.latency_ms for one in losses], [int((~one.recorded).sum()) for one in losses]
        return Table(
            "stages",
            (
                Column("stage", [one.stage.name for one in losses], TEXT),
                Column("kind", [one.stage.kind for one in losses], TEXT),
                Column("parents", [", ".join(one.stage.parents) for one in losses], TEXT, "given by", only="data"),
                Column("unrecorded", unknown, COUNT, "topics not recorded", only="" if any(unknown) else "data"),
                Column("held", [total_known(one.held) for one in losses], COUNT, "relevant held"),
                Column("recall", [_share(one.held, self.relevant) for one in losses], SHARE, "of all"),
                Column("kept", [_share(one.kept, one.offered) for one in losses], SHARE, "of those given"),
                Column("lost", [total_known(one.offered - one.kept) for one in losses], COUNT, "lost here"),
                Column("score", [mean_of(one.score) for one in losses], NUMBER, str(self.measure)),
                Column("attainable", [mean_of(one.attainable) for one in losses], NUMBER, "best order"),
                Column("headroom", [mean_of(one.attainable - one.score) for one in losses], NUMBER, "headroom"),
                Column(
                    "part", [mean_of(one.given - one.attainable) for one in losses], CHANGE, "own part", only="data"
                ),
                Column("latency_ms", took, number(1), "median ms", only="" if not np.isnan(took).all() else "data"),
            ),
            "Stages",
            note=f"{topics} topics; headroom: what the best order of its documents would gain"
            + ("; each number is over the topics for which what it needs is recorded" if any(unknown) else ""),
        )

    def _parts(self) -> tuple[Table, Chart]:
        rows = [
            (where.name, name, mean)
            for where in topic_subsets(len(self.score), self.slicing)
            for name, mean in self._means(where.mask, small=where.small).items()
        ]
        tests = [self.against_others.get((where, name)) for where, name, _ in rows]
        others, p = [test[0] if test else None for test in tests], [test[1] if test else math.nan for test in tests]
        sliced, all_known = self.slicing is not None, bool(self.complete.all())
        masks = {where.name: where.mask for where in topic_subsets(len(self.score), self.slicing)}
        names = {where_lost(name): name for name in self.parts}
        ends = [self.bounds(names[name], masks[where]) for where, name, _ in rows]
        only, alpha = "" if sliced else "data", 1 - self.level
        tested = "; p: permutation tests against all other topics, Holm over slices and parts" if sliced else ""
        table = Table(
            "parts",
            (
                Column("slice", [row[0] for row in rows], TEXT, only=only),
                Column("part", [row[1] for row in rows], TEXT, "lost"),
                Column(
                    "value", [row[2].value for row in rows], NUMBER, str(self.measure), ci=[row[2].ci for row in rows]
                ),
                Column("n", [int((self.complete & masks[where]).sum()) for where, *_ in rows], COUNT, "topics",
                       only="data" if all_known else ""),
                Column("low", [end[0] for end in ends], NUMBER, "at least", only="data" if all_known else ""),
                Column("high", [end[1] for end in ends], NUMBER, "at most", only="data" if all_known else ""),
                Column(
                    "difference",
                    [one.difference if one else None for one in others],
                    CHANGE,
                    "against others",
                    only=only,
                    ci=[one.interval if one else None for one in others],
                ),
                Column("p", p, p_value(alpha), only=only, mark=["*" if value <= alpha else "" for value in p]),
            ),
            "Parts of the loss",
            note=f"they add up to best - score on every topic; {100 * self.level:g}% intervals over topics{tested}"
            + ("" if all_known else "; at least, at most: means over all topics, whatever was not recorded"),
            labels=2 if sliced else 1,
        )  # fmt: skip
        every = [at for at, row in enumerate(rows) if row[0] == rows[0][0]]
        chart = Chart(
            "losses", f"Where {self.measure} is lost", table.take(every), self.sentences[0], kind="bars", y="part"
        )
        return (table, chart)

    def _means(self, mask: Bools, *, small: bool = False) -> dict[str, Mean]:
        names, values = list(self.parts), np.stack([self.part(name)[mask] for name in self.parts])
        low, high = self.measure.properties.bounds
        method = IntervalMethod("none") if small else IntervalMethod(level=self.level)
        # what is kept of all that is judged is never better than all of it, nor is an order better than the best
        never_negative = {names[0], ORDER}
        ends = [(0 if name in never_negative else low - high, high - low) for name in names]
        limits = sufficient_intervals(values, method, ends).tolist()
        return {
            where_lost(name): Mean(mean_of(part), *of) for name, part, of in zip(names, values, limits, strict=True)
        }

    def topics_table(self) -> Table:
        """Lay out one row a topic, the largest loss first."""
        columns = (
            Column("query_id", self.query_ids, TEXT, "topic"),
            Column("score", self.score.tolist(), NUMBER, str(self.measure)),
            Column("best", self.best.tolist(), NUMBER),
            *(Column(f"lost_{name}", part.tolist(), NUMBER, where_lost(name)) for name, part in self.parts.items()),
        )
        order = np.argsort(np.nan_to_num(self.score - self.best), kind="stable")
        return Table("topics", columns, "Topics", folded=True).take(order.tolist())

    def documents_table(self) -> Table:
        """Lay out the relevant documents that were lost, and where."""
        columns = (
            Column("query_id", [topic for topic, _, _, _ in self.lost], TEXT, "topic"),
            Column("doc_id", [doc for _, doc, _, _ in self.lost], TEXT, "document"),
            Column("lost", [where_lost(step) for _, _, step, _ in self.lost], TEXT),
            Column("grade", [grade for _, _, _, grade in self.lost], number(0)),
        )
        return Table("documents", columns, "Relevant documents that were lost", labels=3, folded=True)


def where_lost(step: str) -> str:
    """Name a part for people."""
    names = {CORPUS: "not in the corpus", ORDER: "in the final order", UNRECORDED: "not recorded"}
    return names.get(step, f"at {step}")


def _share(kept: Floats, offered: Floats | Ints) -> float:
    """Divide the sums over the topics of which both are known."""
    known = ~np.isnan(kept + offered)
    total = float(offered[known].sum())
    return float(kept[known].sum()) / total if total else math.nan


def total_known(values: Floats) -> int | None:
    """Return the sum over topics of which the number is known; None if there is none."""
    known = values[~np.isnan(values)]
    return int(known.sum()) if len(known) else None
