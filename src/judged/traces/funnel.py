"""The funnel: what each stage held of what is relevant, what it lost, and what that cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged._types import ReadOnly
from judged.answer import Answer, Chart, Column, Sentences, Table, counted
from judged.answer.table import CHANGE, COUNT, NUMBER, SHARE, TEXT, number, p_value
from judged.cache import cached_property
from judged.data.qrels import Qrels
from judged.decimals import decimal
from judged.diagnosis.changes import Mean, mean_of
from judged.diagnosis.stages.split import ORDER, POSITIVE, best_order, check_measure, one_measure, split
from judged.errors import InputError, MeasureError
from judged.evaluation.conditions import narrowed
from judged.evaluation.provenance import provenance_of_lists
from judged.judging import judge
from judged.slicing.slice_tests import everywhere
from judged.slicing.topic_slices import slicing_given
from judged.stats.correction import adjust
from judged.stats.interval import IntervalMethod, mean_intervals
from judged.stats.slice_differences import against_rest
from judged.traces.steps import CORPUS, held_behind, inside, lost_of, relevant_in, stages_to

if TYPE_CHECKING:
    from judged._types import Bools, Floats, Ints
    from judged.answer import Block
    from judged.evaluation.provenance import Provenance
    from judged.judging import Judged
    from judged.measures.base import Measure
    from judged.notes import Note
    from judged.slicing.topic_slices import Slicing
    from judged.stats.slice_differences import AgainstRest
    from judged.traces.traces import Stage, Traces


@dataclass(frozen=True, eq=False)
class StageLoss(ReadOnly):
    """One stage against the judgments, topic by topic.

    Parameters
    ----------
    stage
        The stage.
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
    score: Floats
    attainable: Floats
    given: Floats
    held: Ints
    kept: Ints
    offered: Ints
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
        The measure of the best order of all judged documents, and of the list that people saw.
    parts : dict of (T,) float64
        By step, what was lost there: together ``best - score``. ``corpus`` is what the corpus does not hold,
        ``order`` the order of the last list.
    losses : tuple of StageLoss
        Each stage, those of branches apart.
    relevant : (T,) int64
        Relevant documents that are known.
    listed : tuple of (str, str, int, float)
        Topic, document, rank and grade of the relevant documents in the list that people saw.
    lost : tuple of (str, str, str, float)
        Topic, document, the step at which the last stage that could still pass it on lost it, and its grade.
    """

    kind: ClassVar[str] = "trace-funnel"

    traces: Traces
    measure: Measure
    query_ids: tuple[str, ...]
    best: Floats
    score: Floats
    parts: Mapping[str, Floats]
    losses: tuple[StageLoss, ...]
    relevant: Ints
    listed: tuple[tuple[str, str, int, float], ...]
    lost: tuple[tuple[str, str, str, float], ...]
    level: float
    provenance: Provenance = field(repr=False)
    slicing: Slicing | None = field(default=None, repr=False)
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

    @property
    def sentences(self) -> tuple[str, ...]:
        """How much is lost, and where most of it."""
        score, best = mean_of(self.score), mean_of(self.best)
        parts = {name: mean_of(part) for name, part in self.parts.items()}
        if best - score <= 0 or not parts:
            return (f"{self.measure} is {score:.4f}, and no order of the judged documents is better.",)
        worst = max(parts, key=lambda name: parts[name])
        attained = f"{self.measure} is {score:.4f} of an attainable {best:.4f}"
        most = f"Most of the loss is {where_lost(worst)}: {parts[worst]:.4f} of {best - score:.4f}"
        before = self.cuts.get(worst)
        so = f" {worst} only cuts the list of {before}, so the order of {before} lost it." if before else ""
        return (f"{attained}. {most}.{so}", *self._by_slice())

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
        large = [where for where in everywhere(len(self.score), self.slicing) if not (where.small or where.every)]
        masks = [where.mask for where in large]
        found: dict[tuple[str, str], AgainstRest] = {}
        for name, part in self.parts.items() if large else ():
            tests = against_rest(part, masks, level=self.level)
            found |= {(where.name, where_lost(name)): test for where, test in zip(large, tests, strict=True)}
        adjusted = adjust([test.p for test in found.values()], "holm") if found else []
        return {key: (test, float(p)) for (key, test), p in zip(found.items(), adjusted, strict=True)}

    @property
    def cuts(self) -> dict[str, str]:
        """The stages that pass on the first documents of another stage, in its order, and that stage."""
        found: dict[str, str] = {}
        for stage in (loss.stage for loss in self.losses):
            pairs = [(spans.get(stage.name), spans.get(stage.parents[0])) for spans in
                     map(self.traces.spans_of, self.query_ids)] if len(stage.parents) == 1 else []  # fmt: skip
            lists = [
                ([one.doc_id for one in after.documents], [one.doc_id for one in before.documents])
                for after, before in pairs
                if after and before and after.documents and before.documents
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
        losses = self.losses
        relevant, took = max(int(self.relevant.sum()), 1), [one.latency_ms for one in losses]
        return Table(
            "stages",
            (
                Column("stage", [one.stage.name for one in losses], TEXT),
                Column("kind", [one.stage.kind for one in losses], TEXT),
                Column("parents", [", ".join(one.stage.parents) for one in losses], TEXT, "given by", only="data"),
                Column("held", [int(one.held.sum()) for one in losses], COUNT, "relevant held"),
                Column("recall", [int(one.held.sum()) / relevant for one in losses], SHARE, "of all"),
                Column("kept", [_share(one.kept, one.offered) for one in losses], SHARE, "of those given"),
                Column("lost", [int((one.offered - one.kept).sum()) for one in losses], COUNT, "lost here"),
                Column("score", [mean_of(one.score) for one in losses], NUMBER, str(self.measure)),
                Column("attainable", [mean_of(one.attainable) for one in losses], NUMBER, "best order"),
                Column("headroom", [mean_of(one.attainable - one.score) for one in losses], NUMBER, "headroom"),
                Column(
                    "part", [mean_of(one.given - one.attainable) for one in losses], CHANGE, "own part", only="data"
                ),
                Column("latency_ms", took, number(1), "median ms", only="" if not np.isnan(took).all() else "data"),
            ),
            "Stages",
            note=f"{len(self.query_ids)} topics; headroom: what the best order of its documents would gain",
        )

    def _parts(self) -> tuple[Table, Chart]:
        rows = [
            (where.name, name, mean)
            for where in everywhere(len(self.score), self.slicing)
            for name, mean in self._means(where.mask, small=where.small).items()
        ]
        tests = [self.against_others.get((where, name)) for where, name, _ in rows]
        others, p = [test[0] if test else None for test in tests], [test[1] if test else math.nan for test in tests]
        sliced = self.slicing is not None
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
            note=f"they add up to best - score on every topic; {100 * self.level:g}% intervals over topics{tested}",
            labels=2 if sliced else 1,
        )
        every = [at for at, row in enumerate(rows) if row[0] == rows[0][0]]
        chart = Chart(
            "losses", f"Where {self.measure} is lost", table.take(every), self.sentences[0], kind="bars", y="part"
        )
        return (table, chart)

    def _means(self, mask: Bools, *, small: bool = False) -> dict[str, Mean]:
        names, values = list(self.parts), np.stack([part[mask] for part in self.parts.values()])
        low, high = self.measure.properties.bounds
        method = IntervalMethod("none") if small else IntervalMethod(level=self.level)
        # what is kept of all that is judged is never better than all of it, nor is an order better than the best
        never_negative = {names[0], ORDER}
        ends = [(0 if name in never_negative else low - high, high - low) for name in names]
        limits = mean_intervals(values, method, ends).tolist()
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
    return {CORPUS: "not in the corpus", ORDER: "in the final order"}.get(step, f"at {step}")


def _share(kept: Ints, offered: Ints) -> float:
    return float(kept.sum() / offered.sum()) if offered.sum() else math.nan


def funnel(
    qrels: Any,
    traces: Traces,
    measure: str | Measure = "nDCG@10",
    *,
    final: str | None = None,
    corpus: Iterable[str] | None = None,
    slicing: Any = None,
    attributes: Any = None,
    where: str | None = None,
    level: float = 0.95,
) -> TraceFunnel:
    """Split what each topic lost into the stages of its pipeline.

    With U(S) the measure of the best order of the documents S, and S the documents that all branches still hold behind
    a step, a step's part is U before it less U behind it; the first U is that of all judged documents, and the last
    part is U of the last list less its score. The parts of a topic add up to ``best - score``. A part is negative
    where a step adds documents. Stages that are equally far from the query are one step; what each of them lost stands
    beside.

    Parameters
    ----------
    qrels
        As `judged.evaluate` takes them.
    traces
        What was traced.
    measure
        One whose best order is that of falling grades, and which does not fall when documents are added: nDCG, DCG, AP,
        RR, R, RBP, ERR, P.
    final
        The stage whose list is scored; None: see `Traces.final`.
    corpus
        Ids of all documents that there are: relevant ones outside are told apart from those that were not found.
    slicing
        Slices of topics, by which parts are shown too.
    attributes, where
        Which topics count, as for `judged.evaluate`.
    level
        Of the intervals.

    Raises
    ------
    InputError
        If something cannot be read, or no traced query is judged.
    MeasureError
        If the best order is not known for the measure.

    Examples
    --------
    >>> from judged.traces import traces_of_runs
    >>> made = traces_of_runs({"bm25": {"q": ["x", "a", "b"]}, "rerank": {"q": ["x", "a"]}})
    >>> found = funnel({"q": {"a": 1, "b": 1, "c": 1}}, made, "R@2")
    >>> {name: part.round(4).tolist() for name, part in found.parts.items()}
    {'bm25': [0.0], 'rerank': [0.3333], 'order': [0.0]}
    >>> found.lost
    (('q', 'b', 'rerank', 1.0), ('q', 'c', 'bm25', 1.0))
    """
    chosen = one_measure(measure)
    check_measure(chosen)
    if chosen.properties.judged_better_first and not getattr(chosen, "judged_only", False):
        problem = f"{chosen} depends on which documents are judged not relevant"
        raise MeasureError(f"{problem}: its loss cannot be split into stages. Fix: take one such as nDCG@10, AP, R@100")
    judgments, lacking = narrowed(Qrels.of(qrels), where, attributes)
    last = traces.stage(final) if final is not None else traces.final
    path = stages_to(traces, last)
    lists = {stage.name: judge(judgments, traces.run(stage.name)) for stage in path}
    shown = lists[last.name]
    if not any(one.present.any() for one in lists.values()):
        problem = "no traced query is judged"
        raise InputError(problem, fix="check that ids of queries are those of the qrels", path=traces.name)
    sets = list(held_behind(traces, path, judgments, lists))
    if corpus is not None:
        sets.insert(0, (CORPUS, judge(judgments, inside(judgments, corpus))))
    best, _, score, parts = split(chosen, dict(sets), shown)
    rel = float(getattr(chosen, "rel", POSITIVE))
    losses = tuple(_stage_loss(traces, stage, lists, judgments, chosen, best, rel) for stage in path)
    provenance = provenance_of_lists(list(lists.values()), [chosen])
    return TraceFunnel(
        traces=traces,
        measure=chosen,
        query_ids=shown.query_ids,
        best=best,
        score=score,
        parts=parts,
        losses=losses,
        relevant=shown.num_relevant(rel).astype(np.int64),
        listed=tuple(relevant_in(shown, rel)),
        lost=tuple(lost_of(shown, sets, rel)),
        level=level,
        provenance=provenance,
        slicing=None if slicing is None else slicing_given(slicing).over(shown.query_ids),
        notes=(*traces.notes, *lacking, *provenance.notes),
    )


def _stage_loss(
    traces: Traces,
    stage: Stage,
    lists: Mapping[str, Judged],
    judgments: Qrels,
    measure: Measure,
    best: Floats,
    rel: float,
) -> StageLoss:
    """Hold a stage against the judgments, and against what it was given."""
    own = lists[stage.name]
    relevant = own.num_relevant(rel).astype(np.int64)
    held = own.sum(own.relevant(rel)).astype(np.int64)
    took = [span.latency_ms for span in traces.spans if span.stage == stage.name and span.latency_ms is not None]
    given, kept, offered = best, held, relevant
    if stage.parents:
        several = len(stage.parents) > 1
        before = judge(judgments, traces.union(stage.parents)) if several else lists[stage.parents[0]]
        given = measure(best_order(before))
        offered = before.sum(before.relevant(rel)).astype(np.int64)
        kept = own.sum(own.relevant(rel) & np.isin(own.row, before.row)).astype(np.int64)
    latency = median(took) if took else math.nan
    return StageLoss(stage, measure(own), measure(best_order(own)), given, held, kept, offered, latency)
